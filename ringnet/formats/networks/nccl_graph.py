"""NCCL's graph files: the channels that it found, each with the order of the GPUs along its ring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ringnet.documents.text import clip
from ringnet.documents.xml_tree import XmlElement
from ringnet.errors import Fault, InputError
from ringnet.formats.networks.nccl_rates import number_of
from ringnet.formats.networks.reading import Reading, told_once
from ringnet.units import counted

#: Patterns of NCCL's search, by their number in ``graph.h``.
_PATTERNS = {
    "1": "balanced tree",
    "2": "split tree",
    "3": "tree",
    "4": "ring",
    "5": "NVLink SHARP",
    "6": "CollNet direct",
}
_RING = "4"


def graph_of(top: XmlElement, file: str) -> Reading:
    """Return what a document says; its outermost element is ``graphs``.

    Returns
    -------
    Reading
        ``orders`` has one tuple of workers for each channel of the ring.

    Raises
    ------
    InputError
        With every mistake, its line and element.
    """
    rings = [graph for graph in top.of("graph") if graph.attributes.get("pattern") == _RING]
    if not rings:
        raise InputError(top.fault(file, "there is no ring among the graphs", right='<graph pattern="4" ...>'))
    faults: list[Fault] = []
    channels = [_devices(channel, file, faults) for channel in rings[0].of("channel")]
    faults += _wrong(rings[0], channels, file)
    if faults:
        raise InputError(*told_once(faults))
    devices = sorted(channels[0])
    workers = {device: worker for worker, device in enumerate(devices)}
    return Reading(
        kind="NCCL graph",
        orders=tuple(tuple(workers[device] for device in channel) for channel in channels),
        understood=tuple(_understood(rings[0], channels)),
        assumed=tuple(_assumed(devices)),
        left_out=tuple(_left_out(top, rings[0])),
    )


def _devices(channel: XmlElement, file: str, faults: list[Fault]) -> list[int]:
    """Return the devices of a channel in order; ports of the network, at its ends, are not among them."""
    found = []
    for gpu in channel.of("gpu"):
        text = gpu.attributes.get("dev", "")
        number = number_of(text)
        if number is not None:
            found.append(number)
        else:
            faults.append(gpu.fault(file, "the dev of a GPU is a whole number", text, 'dev="0"'))
    faults.extend(
        channel.fault(file, "a GPU is here twice", f"dev={device}", "each GPU once on a ring")
        for device, times in Counter(found).items()
        if times > 1
    )
    return found


def _wrong(ring: XmlElement, channels: list[list[int]], file: str) -> Iterator[Fault]:
    if not channels or not channels[0]:
        yield ring.fault(file, "the ring has no channel with a GPU", right='<channel><gpu dev="0"/>...</channel>')
        return
    for element, channel in zip(ring.of("channel"), channels, strict=True):
        if {*channel} != {*channels[0]}:
            others = ", ".join(map(str, sorted({*channel} ^ {*channels[0]})))
            yield element.fault(file, "not the same GPUs as on the first channel", f"dev {others}")


def _understood(ring: XmlElement, channels: list[list[int]]) -> Iterator[str]:
    yield f"ring of {counted(len(channels[0]), 'GPU')}, {counted(len(channels), 'channel')}"
    yield from (f"channel {place}: {' -> '.join(map(str, channel))}" for place, channel in enumerate(channels))
    named = {"speedintra": "between GPUs", "speedinter": "between servers"}
    said = [f"{clip(ring.attributes[key])} GB/s {what}" for key, what in named.items() if key in ring.attributes]
    if said:
        yield f"NCCL searched for {' and '.join(said)} a channel"


def _assumed(devices: list[int]) -> Iterator[str]:
    if devices == [*range(len(devices))]:
        yield "worker i is device i"
    else:
        yield f"workers 0 to {len(devices) - 1} are the devices {', '.join(map(str, devices))}"


def _left_out(top: XmlElement, ring: XmlElement) -> Iterator[str]:
    for element in top.children:
        pattern = element.attributes.get("pattern", "")
        if element is ring:
            continue
        what = "a second ring" if pattern == _RING else _PATTERNS.get(pattern, f"pattern {clip(pattern)}")
        yield f"line {element.line}: <{element.tag}>, {what}"
    if ring.attributes.get("nchannels", str(len([*ring.of("channel")]))) != str(len([*ring.of("channel")])):
        yield f"nchannels={clip(ring.attributes['nchannels'])}: the channels that are listed count"
    nets = sum(channel.tag == "channel" and any(True for _ in channel.of("net")) for channel in ring.children)
    if nets:
        yield f"network ports of {counted(nets, 'channel')}"
    yield "speeds and kinds of paths: a topology file or a scenario says what the links carry"
