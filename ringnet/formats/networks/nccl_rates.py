"""What the elements of an NCCL topology file are in bytes per second, and what is assumed where they do not say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from ringnet.documents.text import clip
from ringnet.documents.xml_tree import XmlElement
from ringnet.units import format_rate

#: Takes an element, a message, the value, and what would be right.
Complain: TypeAlias = Callable[[XmlElement, str, str, str], None]

#: Classes of PCI devices (PCI Code and ID Assignment): bridges, displays and accelerators, networks.
SWITCH, _GPUS, _PORTS = "0x060400", ("0x03", "0x1200"), ("0x02",)

#: Seconds of one link of each kind. The file has none; round figures of what users measure between neighbours: PCIe
#: 0.5 to 1 us through a switch, which is two links; NVLink 1 to 2 us, the fabric between sockets 0.1 to 0.2 us.
LATENCY_S = {"pcie": 0.5e-6, "nvlink": 1e-6, "processors": 0.2e-6, "port": 0.0}

#: Giga-transfers per second of each PCIe generation, and how many of the bits on the wire are data (PCI-SIG).
_CODING = {2.5: 0.8, 5.0: 0.8, 8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 64.0: 242 / 256}
_SPEED = re.compile(r"(\d{1,2}(?:\.\d)?) GT/s(?: PCIe)?")
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)

#: GB/s of one NVLink in one direction, from some compute capability on (NVIDIA's white papers: P100, V100, A100; the
#: NVLink of GA10x and of Blackwell), the last that fits.
_NVLINK = ((60, 20.0), (70, 25.0), (86, 14.0625), (90, 25.0), (100, 50.0))
#: GB/s of one xGMI (Infinity Fabric) link in one direction (AMD's data sheets: MI50, MI100, MI200, MI300).
_XGMI = {
    "gfx906": 46.0,
    "gfx908": 46.0,
    "gfx90a": 50.0,
    "gfx940": 64.0,
    "gfx941": 64.0,
    "gfx942": 64.0,
    "gfx950": 76.8,
}
#: What RCCL's older files have in place of a name with letters: HIP's number of the architecture.
_GCN_NUMBERS = {"910": "90a"}
_UNKNOWN_NVLINK, _UNKNOWN_XGMI = 25.0, 50.0
#: Bytes per second of a port that says no speed, or -1 (NCCL's ``topo.cc``: 10 Gbit/s).
UNKNOWN_PORT_BPS = 10e9 / 8

#: GB/s between two processors, as NCCL 2.2x has them in ``topo.h``: by vendor, from some model on.
_PROCESSORS = {
    "GenuineIntel": ((0, 6.0), (0x55, 10.0), (0x8F, 22.0)),
    "AuthenticAMD": ((0, 16.0),),
    "CentaurHauls": ((0, 6.0),),
    "  Shanghai  ": ((0, 6.0),),
}
_ARCHITECTURES = {"arm64": 6.0, "ppc64": 32.0}
_UNKNOWN_PROCESSOR = 10.0


def is_gpu(kind: str) -> bool:
    """Whether a PCI class is that of a GPU."""
    return kind.startswith(_GPUS)


def is_port(kind: str) -> bool:
    """Whether a PCI class is that of a network card."""
    return kind.startswith(_PORTS)


def pcie_rate(pci: XmlElement, complain: Complain, assumed: dict[str, None]) -> float:
    """Return what one direction of a device's link carries: lanes x transfers, without the coding.

    A virtual machine hides the link: ``link_speed=""`` and ``link_width="0"`` are taken as 8 GT/s and 16 lanes.
    """
    speed, width = pci.attributes.get("link_speed", ""), pci.attributes.get("link_width", "0") or "0"
    if not speed or width == "0":
        assumed["PCIe links whose speed or width the file hides are 8 GT/s with 16 lanes, as NCCL takes them"] = None
    rate, lanes = _rate(speed or "8 GT/s"), 16 if width == "0" else int(width) if width.isdecimal() else None
    if rate is None:
        complain(pci, "this is no speed of a PCIe link", speed, "8.0 GT/s PCIe")
    if lanes not in _WIDTHS:
        complain(pci, "this is no width of a PCIe link", width, "16")
    return 1.0 if rate is None or lanes not in _WIDTHS else rate * 1e9 * _CODING[rate] * lanes / 8


def _rate(text: str) -> float | None:
    match = _SPEED.fullmatch(text.strip())
    rate = float(match[1]) if match else 0.0
    return rate if rate in _CODING else None


def direct_rate(link: XmlElement, gpu: XmlElement | None, complain: Complain, assumed: dict[str, None]) -> float:
    """Return what one direction of one NVLink or xGMI carries; the file has the number of links only."""
    attributes = gpu.attributes if gpu is not None else {}
    if link.tag == "xgmi":
        name = clip(gcn_name(attributes.get("gcn", "")))
        rate = _XGMI.get(name, _UNKNOWN_XGMI)
    else:
        text = attributes.get("sm", "")
        if text and not (text.isdecimal() and len(text) < 5):  # noqa: PLR2004 -- 80, 90, 100
            complain(link, "the sm of a GPU is a whole number", text, 'sm="90"')
            return 1.0
        name = f"sm {text}"
        rate = _from(_NVLINK, int(text or 0), _UNKNOWN_NVLINK)
    assumed[f"one {link.tag} of {name or 'an unknown GPU'} is {format_rate(rate * 1e9)} each way"] = None
    return rate * 1e9


def gcn_name(text: str) -> str:
    """Return the name of AMD's architecture, however a file spells it: with its features, without ``gfx``, by number.

    >>> [gcn_name(text) for text in ("gfx942:sramecc+:xnack-", "940", "GFX90A", "910", "")]
    ['gfx942', 'gfx940', 'gfx90a', 'gfx90a', '']
    """
    bare = text.strip().lower().partition(":")[0].removeprefix("gfx").removeprefix("0x")
    return f"gfx{_GCN_NUMBERS.get(bare, bare)}" if bare else ""


def port_rate(net: XmlElement, complain: Complain, assumed: dict[str, None]) -> float:
    """Return what one direction of a network port carries; where the file does not say it, what NCCL takes."""
    text = net.attributes.get("speed", "").strip()
    if text in ("", "0", "-1"):
        assumed["network ports without a speed are 10 Gbit/s, as NCCL takes them"] = None
        return UNKNOWN_PORT_BPS
    if text.isdecimal() and 0 < int(text[:12]) < 10**9:
        return int(text) * 1e6 / 8
    complain(net, "the speed of a port is a number of Mbit/s above 0", text, 'speed="100000"')
    return 1.0


def number_of(text: str) -> int | None:
    """Return the number of a device, in decimal or, as in ``0x4``, in hexadecimal; None for what is none.

    >>> number_of("12"), number_of("0x1b"), number_of("-1"), number_of("x")
    (12, 27, None, None)
    """
    if len(text) >= 8:  # noqa: PLR2004 -- no device has such a number
        return None
    if text.isascii() and text.isdecimal():
        return int(text)
    return int(text, 16) if re.fullmatch(r"0[xX][0-9a-fA-F]+", text) else None


def processor_rate(cpu: XmlElement, assumed: dict[str, None]) -> float:
    """Return what one direction between two processors carries."""
    vendor, model = cpu.attributes.get("vendor", ""), cpu.attributes.get("modelid", "")
    arch = cpu.attributes.get("arch", "")
    known = _PROCESSORS.get(vendor, ((0, _ARCHITECTURES.get(arch, _UNKNOWN_PROCESSOR)),))
    rate = _from(known, int(model) if model.isdecimal() and len(model) < 6 else 0, _UNKNOWN_PROCESSOR)  # noqa: PLR2004
    name = " ".join(filter(None, [clip(arch), clip(vendor.strip()), f"model {clip(model)}" if model else ""]))
    assumed[
        f"processors ({name or 'unknown'}) are all joined, {format_rate(rate * 1e9)} each way, as NCCL takes them"
    ] = None
    return rate * 1e9


def _from(steps: tuple[tuple[int, float], ...], number: int, otherwise: float) -> float:
    """Return the value of the last step that ``number`` reaches.

    >>> _from(((60, 20.0), (70, 25.0)), 80, 1.0), _from(((60, 20.0),), 0, 1.0)
    (25.0, 1.0)
    """
    return next((value for least, value in reversed(steps) if number >= least), otherwise)
