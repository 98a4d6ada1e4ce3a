"""Links by name: what the makers and the standards say of one direction.

Bandwidths are those of the data, line coding taken off, protocol headers not. Latencies are from end to end of a small
transfer between two neighbours as users measure it, in round figures: your own, where you know them, are better.
"""

from __future__ import annotations

from typing import NamedTuple


class Preset(NamedTuple):
    """Bandwidth and latency of one direction of a link, and in a few words what it is."""

    bandwidth_Bps: float
    latency_s: float
    summary: str


#: Latencies, in seconds, in round figures, since no standard gives them. Between two GPUs over NVLink and over PCIe:
#: 1 us (microbenchmarks say 1 to 2 us, and more over PCIe: Li et al., "Evaluating Modern GPU Interconnect", arXiv
#: 1903.04611; NCCL's own tuning, ``src/graph/tuning.cc``, takes 0.6 us a hop over NVLink and 1 us over PCI for its LL
#: protocol). InfiniBand: 0.7 us (makers say 0.6 us of an adapter, 0.1 us of a switch). RDMA over Ethernet: 2 us. EFA:
#: 15 us (what AWS said of MPI between two instances in 2018).
_NVLINK_S, _PCIE_S, _INFINIBAND_S, _ETHERNET_S, _EFA_S = 1e-6, 1e-6, 0.7e-6, 2e-6, 15e-6

PRESETS: dict[str, Preset] = {
    # NVIDIA's table of NVLink generations (nvidia.com/en-us/data-center/nvlink): the second to the fifth have 6, 12,
    # 18, 18 links a GPU and 300, 600, 900, 1800 GB/s in both directions together, half of it each way. The rate on the
    # wire is a sixteenth more: NVIDIA's health checks expect 26,562 MB/s of a link of an H100, 53,125 of a GB200.
    "nvlink2": Preset(150e9, _NVLINK_S, "V100: six NVLink 2 links together"),
    "nvlink3": Preset(300e9, _NVLINK_S, "A100: twelve NVLink 3 links together"),
    "nvlink4": Preset(450e9, _NVLINK_S, "H100: eighteen NVLink 4 links together"),
    "nvlink5": Preset(900e9, _NVLINK_S, "B200: eighteen NVLink 5 links together"),
    # PCI Express Base Specification 3.0, 4.0, 5.0 (PCI-SIG): 8, 16, 32 GT/s a lane, sixteen lanes, 128b/130b coding:
    # 15.75, 31.5, 63 GB/s each way. PCI-SIG's "up to 128 GB/s" of 5.0 is both ways, before coding.
    "pcie3-x16": Preset(16 * 8e9 / 8 * 128 / 130, _PCIE_S, "PCI Express 3.0, sixteen lanes"),
    "pcie4-x16": Preset(16 * 16e9 / 8 * 128 / 130, _PCIE_S, "PCI Express 4.0, sixteen lanes"),
    "pcie5-x16": Preset(16 * 32e9 / 8 * 128 / 130, _PCIE_S, "PCI Express 5.0, sixteen lanes"),
    # InfiniBand Trade Association's roadmap (infinibandta.org): EDR, HDR, NDR have 25, 50, 100 Gbit/s of data a lane,
    # four lanes.
    "infiniband-edr": Preset(100e9 / 8, _INFINIBAND_S, "InfiniBand EDR, four lanes: 100 Gbit/s"),
    "infiniband-hdr": Preset(200e9 / 8, _INFINIBAND_S, "InfiniBand HDR, four lanes: 200 Gbit/s"),
    "infiniband-ndr": Preset(400e9 / 8, _INFINIBAND_S, "InfiniBand NDR, four lanes: 400 Gbit/s"),
    # IEEE 802.3: ae (10), by (25), ba (100), bs (200 and 400): the rate of the data at the MAC.
    "10gbe": Preset(10e9 / 8, _ETHERNET_S, "10 Gbit/s Ethernet"),
    "25gbe": Preset(25e9 / 8, _ETHERNET_S, "25 Gbit/s Ethernet"),
    "100gbe": Preset(100e9 / 8, _ETHERNET_S, "100 Gbit/s Ethernet"),
    "200gbe": Preset(200e9 / 8, _ETHERNET_S, "200 Gbit/s Ethernet"),
    "400gbe": Preset(400e9 / 8, _ETHERNET_S, "400 Gbit/s Ethernet"),
    # Amazon EC2's page of p4d.24xlarge: four network cards with EFA, 400 Gbit/s together.
    "efa": Preset(100e9 / 8, _EFA_S, "Elastic Fabric Adapter of EC2, one card of a p4d: 100 Gbit/s"),
}
