"""The order of rings from NCCL's graph file: ``order: {file: graph.xml}``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ringnet.documents.document import Document, Path
from ringnet.errors import Fault, InputError
from ringnet.formats.networks.reading import Reading, count
from ringnet.scenario.checks.finding import Finding, unread
from ringnet.scenario.files.network_file import FoundFile, read_found, told_at
from ringnet.scenario.keys.network import OrderFile

if TYPE_CHECKING:
    from ringnet.scenario.files.folder import ScenarioFolder
    from ringnet.scenario.keys.model import Keys

KEY: Path = ("network", "order", "file")
#: The algorithm whose channels each have a ring of their own.
OF_CHANNELS = "channel-ring"


def with_order_file(document: Document, place: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with its file of orders found, and what is wrong with the file."""
    name = document.get(KEY) if isinstance(document.get(KEY[:-1]), dict) else None
    if not isinstance(name, str) or not name:  # told where keys are read one by one
        return document, []
    try:
        found = FoundFile.of(name, place.find(name))
        read_found(found)
    except InputError as error:
        faults = [told_at(KEY, fault, name, document) for fault in error.faults]
        return replace(document, broken=document.broken | {KEY[:-1]}), faults
    return document.put(KEY, found, {(): document.mark(KEY)}), []


def reading_of(keys: Keys) -> Reading | None:
    """Return what the file of orders says; None where there is none."""
    order = keys.network.order
    if not isinstance(order, OrderFile) or not isinstance(order.file, FoundFile):
        return None
    return read_found(order.file)


def ring_order(keys: Keys) -> tuple[int, ...] | None:
    """Return the order in which workers sit along the one ring; None if no file says it, or one for each channel."""
    reading = reading_of(keys)
    return None if reading is None or keys.algorithm_name == OF_CHANNELS else reading.orders[0]


def channel_orders(keys: Keys) -> tuple[tuple[int, ...], ...]:
    """Return the order of each channel's ring; empty where no file says it, or the algorithm has one ring."""
    reading = reading_of(keys)
    return () if reading is None or keys.algorithm_name != OF_CHANNELS else reading.orders


def check_order_file(keys: Keys) -> Iterator[Finding]:
    """Find a file without orders or for other workers, and what it leaves nothing to say for."""
    reading = reading_of(keys)
    if reading is None:
        return
    if not reading.orders:
        message = f"this is the {reading.kind}: it has links, and no order of rings"
        yield Finding(KEY, message, "NCCL's graph file; network: {file: ...} takes this one")
    elif reading.n_workers != keys.workers:
        has = f"the scenario has {count(keys.workers, 'worker')}"
        message = f"the file is for {count(reading.n_workers, 'worker')}, {has}"
        yield Finding(KEY, message, f"workers: {reading.n_workers}", causes=(("workers",),))
    if keys.algorithm_name == OF_CHANNELS:
        for name in ("strides", "node_size"):
            message = "the file says the order of each ring"
            yield unread(("algorithm", name), message, KEY, right="order: numbered")


def about_order_file(keys: Keys) -> list[str]:
    """Return a sentence on the channels of the file that are not taken."""
    reading = reading_of(keys)
    if reading is None or keys.algorithm_name == OF_CHANNELS or len(reading.orders) == 1:
        return []
    others = f"of {len(reading.orders)} channels in the file the first is the ring"
    return [f"network.order: {others}; algorithm: {OF_CHANNELS} takes them all"]
