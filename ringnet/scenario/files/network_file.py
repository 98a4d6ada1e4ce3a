"""A network from another tool's file: ``network: {file: topology.xml}``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from ringnet.documents.document import Document, Mark, Path
from ringnet.errors import Fault, InputError, NetworkError
from ringnet.formats.networks import network_from_file, read_network_file
from ringnet.formats.networks.reading import Reading
from ringnet.networks import Network
from ringnet.scenario.checks.finding import Finding, unread
from ringnet.scenario.keys.network import NetworkKeys
from ringnet.scenario.keys.topology import parameter_names

if TYPE_CHECKING:
    from ringnet.scenario.files.folder import ScenarioFolder
    from ringnet.scenario.keys.model import Keys

KEY: Path = ("network", "file")
#: Keys that every network needs and that a file makes unread; what stands for them is never looked at.
STAND_INS = {"bandwidth": "1 GB/s", "latency": "0 s"}


class FoundFile(str):
    """The name of a file, and where it was found; ``stamp`` is another one when the file has changed."""

    path: FilePath
    stamp: tuple[str, int, int]

    @classmethod
    def of(cls, name: str, path: FilePath) -> FoundFile:
        """Return a name that knows its file; `InputError` if it is not there."""
        found = cls(name)
        try:
            status = path.stat()
        except OSError as error:
            raise InputError(Fault(f"the file cannot be read: {error.strerror}")) from error
        found.path, found.stamp = path, (str(path), status.st_mtime_ns, status.st_size)
        return found


def with_network_file(document: Document, place: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with what its network file gives, workers among it, and what is wrong with the file."""
    name = document.get(KEY)
    if name is None:
        return document, []
    missing = {(*KEY[:-1], key) for key in STAND_INS if not document.has((*KEY[:-1], key))}
    missing |= set() if document.has(("workers",)) else {("workers",)}
    broken = replace(document, broken=document.broken | missing)
    if not isinstance(name, str) or not name:  # told where keys are read one by one
        return broken, []
    try:
        found = FoundFile.of(name, place.find(name))
        reading = read_found(found)
    except InputError as error:
        faults = [told_at(KEY, fault, name, document) for fault in error.faults]
        return replace(broken, broken=broken.broken | {KEY}), faults
    return _put(document, found, reading), []


def _put(document: Document, found: FoundFile, reading: Reading) -> Document:
    mark = document.mark(KEY)
    document = document.put(KEY, found, {(): mark})
    given: dict[Path, str | int] = {(*KEY[:-1], key): text for key, text in STAND_INS.items()}
    if not document.has(("jobs",)) and not document.has((*KEY[:-1], "places")):
        given["workers",] = reading.n_workers
    at: dict[Path, Mark] = {(): replace(mark, path="network.file")}
    for path, value in given.items():
        document = document if document.has(path) else document.put(path, value, at)
    return document


@lru_cache(maxsize=64)
def _read(stamp: tuple[str, int, int]) -> Reading:
    """Read a file; time and size only say when to read it again."""
    return read_network_file(stamp[0])


def read_found(file: FoundFile) -> Reading:
    """Return what a file says that was found; `InputError` for what is wrong with it."""
    return _read(file.stamp)


def told_at(key: Path, fault: Fault, name: str, document: Document) -> Fault:
    """Tell the fault of a file at the key that names it, with the file's own line."""
    where = f"{name}:{fault.line}" if fault.line else name
    message = ": ".join(filter(None, (where, fault.path, fault.message)))
    return document.fault(key, message, value=fault.value, right=fault.right)


def network_of(file: str, places: int) -> Network:
    """Return the network of a file that was found; `NetworkError` at ``file`` if it is for other workers."""
    assert isinstance(file, FoundFile)  # as `with_network_file` has it
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


def check_network_file(keys: Keys) -> Iterator[Finding]:
    """Find keys that a network file leaves nothing to say for."""
    if keys.network.file is None:
        return
    names = ["topology", "link", "bandwidth", "latency", "regimes", "profile"]
    for name in [*names, *parameter_names()]:
        yield unread(("network", name), "the file says what the network is", KEY, right="links: exceptions")
    if keys.network.routes == "ecmp":
        message = "the network of a file has its own routes"
        right = "routes listed, or left out"
        yield Finding(("network", "routes"), message, right, causes=(KEY,))


def about_file(keys: NetworkKeys) -> list[str]:
    """Return a sentence on what the file does not say."""
    if not isinstance(keys.file, FoundFile) or not read_found(keys.file).assumed:
        return []
    return [f"network.file: `ringnet network {keys.file}` says what is assumed where the file says nothing"]
