"""Links by name: what the makers and the standards say of one direction.

Bandwidths are those of the data, line coding taken off, protocol headers not. Latencies are from end to end of a small
transfer between two neighbours as users measure it, in round figures: where one's own are known they are better.
"""

from __future__ import annotations

from typing import NamedTuple


class Preset(NamedTuple):
    """Bandwidth and latency of one direction of a link, and in a few words what it is."""

    bandwidth_Bps: float
    latency_s: float
    summary: str


#: Latencies, in seconds: one hop between two GPUs over NVLink (P2P writes, 1 to 2 us in microbenchmarks such as Li et
#: al., "Evaluating Modern GPU Interconnect", IEEE TPDS 31 (2020)); over PCIe (same paper: two to three times that of
#: NVLink for a peer copy, 0.5 to 1 us for the bus itself); InfiniBand (makers' data sheets: 0.6 us for a message
#: between two adapters, 0.1 us for a switch); RDMA over Ethernet (about 2 us); EFA (15 us and more between instances).
_NVLINK_S, _PCIE_S, _INFINIBAND_S, _ETHERNET_S, _EFA_S = 1e-6, 1e-6, 0.7e-6, 2e-6, 15e-6

PRESETS: dict[str, Preset] = {
    # NVIDIA Tesla V100 whitepaper (WP-08608, 2017): six links, 300 GB/s in both directions together: 25 GB/s each way.
    "nvlink2": Preset(150e9, _NVLINK_S, "V100: six NVLink 2 links together"),
    # NVIDIA A100 whitepaper (2020): twelve links of 25 GB/s each way, 600 GB/s in both directions together.
    "nvlink3": Preset(300e9, _NVLINK_S, "A100: twelve NVLink 3 links together"),
    # NVIDIA H100 whitepaper (2022): eighteen links of 25 GB/s each way, 900 GB/s in both directions together.
    "nvlink4": Preset(450e9, _NVLINK_S, "H100: eighteen NVLink 4 links together"),
    # NVIDIA Blackwell architecture brief (2024): eighteen links of 50 GB/s each way, 1.8 TB/s in both directions.
    "nvlink5": Preset(900e9, _NVLINK_S, "B200: eighteen NVLink 5 links together"),
    # PCI Express Base Specification: 8, 16, 32 GT/s a lane, sixteen lanes, 128b/130b coding.
    "pcie3-x16": Preset(16 * 8e9 / 8 * 128 / 130, _PCIE_S, "PCI Express 3.0, sixteen lanes"),
    "pcie4-x16": Preset(16 * 16e9 / 8 * 128 / 130, _PCIE_S, "PCI Express 4.0, sixteen lanes"),
    "pcie5-x16": Preset(16 * 32e9 / 8 * 128 / 130, _PCIE_S, "PCI Express 5.0, sixteen lanes"),
    # InfiniBand Trade Association roadmap: four lanes of 25, 50, 100 Gbit/s of data.
    "infiniband-edr": Preset(100e9 / 8, _INFINIBAND_S, "InfiniBand EDR, four lanes: 100 Gbit/s"),
    "infiniband-hdr": Preset(200e9 / 8, _INFINIBAND_S, "InfiniBand HDR, four lanes: 200 Gbit/s"),
    "infiniband-ndr": Preset(400e9 / 8, _INFINIBAND_S, "InfiniBand NDR, four lanes: 400 Gbit/s"),
    # IEEE 802.3: ae (10), by (25), ba (100), bs (200 and 400): the rate of the data at the MAC.
    "10gbe": Preset(10e9 / 8, _ETHERNET_S, "10 Gbit/s Ethernet"),
    "25gbe": Preset(25e9 / 8, _ETHERNET_S, "25 Gbit/s Ethernet"),
    "100gbe": Preset(100e9 / 8, _ETHERNET_S, "100 Gbit/s Ethernet"),
    "200gbe": Preset(200e9 / 8, _ETHERNET_S, "200 Gbit/s Ethernet"),
    "400gbe": Preset(400e9 / 8, _ETHERNET_S, "400 Gbit/s Ethernet"),
    # Amazon EC2 instance types, p4d.24xlarge: 4 x 100 Gbit/s of EFA; latency as in AWS's notes on EFA (2018, 15.5 us).
    "efa": Preset(100e9 / 8, _EFA_S, "Elastic Fabric Adapter of EC2, one card of a p4d: 100 Gbit/s"),
}
