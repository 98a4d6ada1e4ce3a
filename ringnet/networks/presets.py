"""Links by name: what the makers and the standards say of one direction.

Bandwidths are those of the data, line coding taken off, protocol headers not. Latencies are from end to end of a small
transfer between two neighbours as users measure it, in round figures: your own, where you know them, are better. Where
a switch is between the two, each of the two links has half of it.
"""

from __future__ import annotations

from typing import NamedTuple


class NumberSource(NamedTuple):
    """Where a number comes from, and whether nobody published it: then it is an estimate."""

    text: str
    is_estimate: bool = False

    def __str__(self) -> str:
        return f"estimate: {self.text}" if self.is_estimate else self.text


class Preset(NamedTuple):
    """Bandwidth of one direction of a link, latency from end to end, in a few words what it is, and the sources."""

    bandwidth_Bps: float
    latency_s: float
    summary: str
    bandwidth_source: NumberSource
    latency_source: NumberSource


# Latencies in round figures, since no standard gives them.
_NVLINK_S, _PCIE_S, _INFINIBAND_S, _ETHERNET_S, _EFA_S = 1e-6, 1e-6, 0.7e-6, 2e-6, 15e-6
_GPU = "1 to 2 us measured between two GPUs, Li et al., arXiv 1903.04611; NCCL's tuning.cc takes 0.6 us a hop of LL"
_LATENCY = {
    _NVLINK_S: NumberSource(_GPU, is_estimate=True),
    _INFINIBAND_S: NumberSource("makers say 0.6 us of an adapter and 0.1 us of a switch", is_estimate=True),
    _ETHERNET_S: NumberSource("RDMA over Ethernet, a round figure", is_estimate=True),
    _EFA_S: NumberSource("AWS on MPI between two instances, 2018"),
}


def _nvlink(bandwidth_Bps: float, summary: str) -> Preset:
    # The rate on the wire is a sixteenth more: NVIDIA's health checks expect 26,562 MB/s of a link of an H100, 53,125
    # of a GB200.
    source = NumberSource(
        "NVIDIA's table of NVLink generations, nvidia.com/en-us/data-center/nvlink, half of both ways"
    )
    return Preset(bandwidth_Bps, _NVLINK_S, summary, source, _LATENCY[_NVLINK_S])


def _pcie(transfers_per_s: float, generation: str) -> Preset:
    # PCI-SIG's "up to 128 GB/s" of 5.0 is both ways, before coding.
    source = NumberSource(
        f"PCI Express Base Specification {generation}, PCI-SIG: {transfers_per_s / 1e9:g} GT/s, 128b/130b"
    )
    summary = f"PCI Express {generation}, sixteen lanes"
    return Preset(16 * transfers_per_s / 8 * 128 / 130, _PCIE_S, summary, source, _LATENCY[_PCIE_S])


def _infiniband(bits_per_s: float, name: str) -> Preset:
    source = NumberSource("InfiniBand Trade Association's roadmap, infinibandta.org: four lanes")
    summary = f"InfiniBand {name}, four lanes: {bits_per_s / 1e9:g} Gbit/s"
    return Preset(bits_per_s / 8, _INFINIBAND_S, summary, source, _LATENCY[_INFINIBAND_S])


def _ethernet(bits_per_s: float, standard: str) -> Preset:
    source = NumberSource(f"IEEE 802.3{standard}: the rate of the data at the MAC")
    summary = f"{bits_per_s / 1e9:g} Gbit/s Ethernet"
    return Preset(bits_per_s / 8, _ETHERNET_S, summary, source, _LATENCY[_ETHERNET_S])


PRESETS: dict[str, Preset] = {
    "nvlink2": _nvlink(150e9, "V100: six NVLink 2 links together"),
    "nvlink3": _nvlink(300e9, "A100: twelve NVLink 3 links together"),
    "nvlink4": _nvlink(450e9, "H100: eighteen NVLink 4 links together"),
    "nvlink5": _nvlink(900e9, "B200: eighteen NVLink 5 links together"),
    "pcie3-x16": _pcie(8e9, "3.0"),
    "pcie4-x16": _pcie(16e9, "4.0"),
    "pcie5-x16": _pcie(32e9, "5.0"),
    "infiniband-edr": _infiniband(100e9, "EDR"),
    "infiniband-hdr": _infiniband(200e9, "HDR"),
    "infiniband-ndr": _infiniband(400e9, "NDR"),
    "10gbe": _ethernet(10e9, "ae"),
    "25gbe": _ethernet(25e9, "by"),
    "100gbe": _ethernet(100e9, "ba"),
    "200gbe": _ethernet(200e9, "bs"),
    "400gbe": _ethernet(400e9, "bs"),
    "efa": Preset(
        100e9 / 8,
        _EFA_S,
        "Elastic Fabric Adapter of EC2, one card of a p4d: 100 Gbit/s",
        NumberSource("Amazon EC2's page of p4d.24xlarge: four cards, 400 Gbit/s together"),
        _LATENCY[_EFA_S],
    ),
}
