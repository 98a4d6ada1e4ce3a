"""Other tools' files: ``network: {file: topology.xml}``, and the order of rings, ``order: {file: graph.xml}``."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ringnet.documents.document import Document, Path
from ringnet.errors import Fault, NetworkError
from ringnet.networks import Network
from ringnet.scenario.files.folder import STAND_INS, ScenarioFolder, read_at
from ringnet.scenario.keys.kinds import FoundFile
from ringnet.scenario.keys.network import NetworkKeys, OrderFile

if TYPE_CHECKING:
    from ringnet.formats.networks.reading import Reading

NETWORK_FILE: Path = ("network", "file")
ORDER_FILE: Path = ("network", "order", "file")
_STAND_INS: dict[Path, str] = {(*NETWORK_FILE[:-1], key): text for key, text in STAND_INS.items()}
#: The algorithm whose channels each have a ring of their own.
OF_CHANNELS = "channel-ring"


def with_network_file(document: Document, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with what its network file gives, workers among it, and what is wrong with the file."""
    name = document.get(NETWORK_FILE)
    if name is None:
        return document, []
    broken = document.breaking(document.left_out([*_STAND_INS, ("workers",)]))
    if not isinstance(name, str) or not name:  # told where keys are read one by one
        return broken, []
    read = read_at(NETWORK_FILE, document, home, read_found)
    if isinstance(read, list):
        return broken.breaking([NETWORK_FILE]), read
    found, reading = read
    mark = document.mark(NETWORK_FILE)
    given: dict[Path, str | int] = {**_STAND_INS}
    if not document.has(("jobs",)) and not document.has((*NETWORK_FILE[:-1], "places")):
        given["workers",] = reading.n_workers
    return document.put(NETWORK_FILE, found, {(): mark}).filled(given, replace(mark, path="network.file")), []


@lru_cache(maxsize=64)
def read_found(file: FoundFile) -> Reading:
    """Return what a file says that was found; `InputError` for what is wrong with it."""
    from ringnet.formats.networks import read_network_file  # noqa: PLC0415 -- few scenarios name such a file

    return read_network_file(str(file.path))


def network_of(file: FoundFile, places: int) -> Network:
    """Return the network of a file that was found; `NetworkError` at ``file`` if it is for other workers."""
    from ringnet.formats.networks import network_from_file  # noqa: PLC0415 -- few scenarios name such a file

    try:
        network = network_from_file(file.path, places).network
    except NetworkError as error:
        raise NetworkError(*(_at_file(fault) for fault in error.faults)) from error
    assert network is not None
    return network


def _at_file(fault: Fault) -> Fault:
    right = fault.right.replace("workers: ", "places: ")
    said = f"{fault.right}, or {right} for fewer workers" if right != fault.right else fault.right
    return replace(fault, path="file", file="", right=said)


def with_order_file(document: Document, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with its file of orders found, and what is wrong with the file."""
    name = document.get(ORDER_FILE) if isinstance(document.get(ORDER_FILE[:-1]), dict) else None
    if not isinstance(name, str) or not name:  # told where keys are read one by one
        return document, []
    read = read_at(ORDER_FILE, document, home, read_found)
    if isinstance(read, list):
        return document.breaking([ORDER_FILE[:-1]]), read
    return document.put(ORDER_FILE, read[0], {(): document.mark(ORDER_FILE)}), []


def reading_of(keys: NetworkKeys) -> Reading | None:
    """Return what the file of orders says; None where there is none."""
    order = keys.order
    if not isinstance(order, OrderFile) or not isinstance(order.file, FoundFile):
        return None
    return read_found(order.file)


def ring_order(keys: NetworkKeys, algorithm: str) -> tuple[int, ...] | None:
    """Return the order in which workers sit along the one ring; None if no file says it, or one for each channel."""
    reading = reading_of(keys)
    return None if reading is None or algorithm == OF_CHANNELS else reading.orders[0]


def channel_orders(keys: NetworkKeys, algorithm: str) -> tuple[tuple[int, ...], ...]:
    """Return the order of each channel's ring; empty where no file says it, or the algorithm has one ring."""
    reading = reading_of(keys)
    return () if reading is None or algorithm != OF_CHANNELS else reading.orders
