"""Machines by name, ``machine: dgx-h100``: networks with the sources of their numbers, which scenarios change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path as FilePath
from typing import Any

from ringnet.documents.document import Document, Path, key_path, path_text
from ringnet.documents.yaml_text import read_text, read_yaml
from ringnet.errors import Fault, InputError
from ringnet.networks.presets import NumberSource
from ringnet.scenario.keys.base import MACHINE_FOLDER, MACHINES, MOST_WORKERS
from ringnet.scenario.keys.topology import parameter_names
from ringnet.units import counted


def layered(upper: Document, lower: Document) -> Document:
    """Return a document with the keys of two; of those in both, and of lists, what the upper one says.

    What the upper one makes pointless goes: bandwidth and latency below a link, the parameters below a topology that is
    named (again) and the switches that reduce in it, all of a network below a file. An algorithm is a whole.

    Examples
    --------
    >>> base = Document({"network": {"topology": "leaf-spine", "leaves": 2, "link": "100gbe"}, "workers": 8})
    >>> layered(Document({"network": {"topology": "switch"}}), base).data
    {'network': {'topology': 'switch', 'link': '100gbe'}, 'workers': 8}
    """
    kept: set[Path] = set()
    data = _merged(upper.data, lower.data, (), kept)
    marks = {path: mark for path, mark in lower.marks.items() if any(path[:n] in kept for n in range(len(path) + 1))}
    # What was taken out of the upper one has a mark there, and is given by the lower one all the same.
    marks |= {path: mark for path, mark in upper.marks.items() if path not in marks}
    return replace(upper, data=data, marks=marks, broken=upper.broken | lower.broken)


def _merged(upper: Any, lower: Any, path: Path, kept: set[Path]) -> Any:
    """Return the data of both; ``kept`` gets the paths of what is the lower one's."""
    if not isinstance(upper, dict) or not isinstance(lower, dict) or path == ("algorithm",):
        return upper
    found: dict[str, Any] = {}
    # In the order of what is below, so that the network of a machine stays together.
    for key, value in lower.items():
        if key in upper:
            found[key] = _merged(upper[key], value, (*path, key), kept)
        elif not _is_pointless(key, upper):
            kept.add((*path, key))
            found[key] = value
    return found | {key: value for key, value in upper.items() if key not in lower}


def _is_pointless(key: str, upper: Mapping[str, Any]) -> bool:
    """Whether what is said below has no meaning beside what is said above."""
    if "file" in upper:  # of a network, or of a link: it says all
        return True
    if key in ("bandwidth", "latency") and "link" in upper:
        return True
    if key == "link" and {"bandwidth", "latency"} <= upper.keys():
        return True
    inside = upper.get("inside")
    if key == "reduction" and ("topology" in upper or (isinstance(inside, dict) and "shape" in inside)):
        return True  # it names switches of the network below
    # A topology that is named is a whole, also the same one again.
    return "topology" in upper and key in parameter_names()


#: What a machine gives by itself, beside its network.
GIVEN: tuple[Path, ...] = (("workers",), ("network", "places"))


@dataclass(frozen=True)
class Machine:
    """A machine that can be bought or rented.

    Parameters
    ----------
    name : str
    title : str
        What it is, in a line.
    document : Document
        The keys of a scenario that it gives, all of them of the network.
    sources : mapping of str to NumberSource
        Where each number comes from, by the path of its key.
    """

    name: str
    title: str
    document: Document
    sources: Mapping[str, NumberSource]

    def seen_from(self, document: Document) -> Document:
        """Return its keys as if they stood where a scenario names it, which is where their mistakes are told."""
        at = document.mark(("machine",))
        marks = {
            path: replace(mark, file=at.file, line=at.line, origin=at.origin, path=self.told(path))
            for path, mark in self.document.marks.items()
        }
        return replace(self.document, marks=marks)

    def told(self, path: Path) -> str:
        """Return how a key of it is told."""
        return f"{path_text(path)} (machine {self.name})"

    @property
    def estimates(self) -> list[str]:
        """The keys whose numbers nobody published."""
        return [key for key, source in self.sources.items() if source.is_estimate]


@cache
def machine_of(name: str) -> Machine:
    """Return a machine that is there; its file is the package's own."""
    file = FilePath(MACHINE_FOLDER) / f"{name}.yaml"
    whole, faults = read_yaml(read_text(file), file.name)
    if faults:
        raise InputError(*faults)
    # Lines are told as of the machine.
    marks = {path: replace(mark, file=f"machine {name}") for path, mark in whole.marks.items()}
    network = {path: mark for path, mark in marks.items() if path[:1] == ("network",)}
    sources = {
        key: NumberSource(str(one["source"]), bool(one.get("estimate", False)))
        for key, one in whole.data["sources"].items()
    }
    document = Document({"network": whole.data["network"]}, network)
    return Machine(name, str(whole.data["title"]), document, sources)


def with_machine(document: Document) -> tuple[Document, list[Fault]]:
    """Return the document over what its machine gives, its workers among it, and what is wrong with that.

    The workers are as many as the hosts hold if they are left out, and the hosts as many as these take; with fewer
    workers the other places stay empty. Of a machine that is no cluster of hosts the sides of its torus count.
    """
    name = document.get(("machine",))
    if name is None:
        return document, []
    if name not in MACHINES:
        needed: tuple[Path, ...] = (
            ("network",),
            ("workers",),
            ("network", "bandwidth"),
            ("network", "latency"),
        )
        return document.breaking(document.left_out(needed)), []  # told where keys are read one by one
    machine = machine_of(name)
    found = layered(document, machine.seen_from(document))
    network = found.get(("network",)) if isinstance(found.get(("network",)), dict) else {}
    each = network.get("workers_per_host", machine.document.get(("network", "workers_per_host")) or 1)
    if "sides" in network:
        return _with_workers(found, network["sides"], prod, "network.sides"), []
    if "file" in network:
        return found, []
    if isinstance(each, list):
        return _of_listed(found, each)
    return _of_hosts(found, each)


def _with_workers(found: Document, numbers: Any, together: Callable[[list[int]], int], path: str) -> Document:
    """Return a document with the workers that some numbers make, unless it says how many; broken for no numbers."""
    if found.has(("workers",)):
        return found
    if not isinstance(numbers, list) or not all(type(one) is int and one > 0 for one in numbers):
        return found.breaking([("workers",)])
    mark = found.mark(key_path(path, found.data))
    return found.filled({("workers",): together(numbers)}, replace(mark, path=path))


def _of_listed(found: Document, sizes: list[Any]) -> tuple[Document, list[Fault]]:
    """Return a document of hosts whose workers are listed."""
    hosts, faults = found.get(("hosts",)), []
    if type(hosts) is int and hosts != len(sizes):
        message = f"{hosts} hosts, and the workers of {len(sizes)} are listed"
        faults.append(found.fault(("hosts",), message, right="the key left out"))
    return _with_workers(found, sizes, sum, "network.workers_per_host"), faults


def _of_hosts(found: Document, per_host: Any) -> tuple[Document, list[Fault]]:
    """Return a document of hosts alike."""
    hosts, workers = found.get(("hosts",)), found.get(("workers",))
    given = [one for one in (hosts, workers, per_host) if one is not None]
    if not all(type(one) is int and 0 < one <= MOST_WORKERS for one in given):
        return found.breaking(found.left_out([("workers",)])), []
    by = "hosts" if hosts else "machine"
    mark = replace(found.mark((by,)), path=by)
    hosts = hosts or -(-(workers or per_host) // per_host)
    capacity = hosts * per_host
    if capacity > MOST_WORKERS:
        message = f"hosts of {per_host} hold {capacity:,} workers, more than {MOST_WORKERS:,}"
        told = found.breaking([("workers",), ("network", "workers_per_host")])
        return told, [found.fault(("hosts",), message, right=f"at most {MOST_WORKERS // per_host}")]
    if workers is None:
        return found.filled({("workers",): capacity}, mark), []
    if workers > capacity:
        held = f"{counted(hosts, 'host')} of {per_host} hold"
        message = f"{workers} workers are more than the {capacity} that {held}"
        right = f"at most {capacity}, or hosts: {-(-workers // per_host)}"
        # That these are no whole number of hosts is the same mistake once more.
        told = found.breaking([("network", "workers_per_host")])
        return told, [found.fault(("workers",), message, right=right)]
    has_empty = workers < capacity and not found.has(("jobs",))
    return (found.filled({("network", "places"): capacity}, mark) if has_empty else found), []


def given_by_machine(base: Document, first: Document) -> set[Path]:
    """Return what a machine gave, as paths of a document: what is in the first point and nobody wrote."""
    name = first.get(("machine",))
    if not isinstance(name, str) or name not in MACHINES:
        return set()
    written = {path for path in base.marks if base.has(path)}
    leaves = {path for path in machine_of(name).document.marks if not base.has(path)}
    return {path for path in leaves | {*GIVEN} if path not in written}


def source_of(machine: Machine, path: Path) -> NumberSource | None:
    """Return where the number at a path comes from; that of the key around it where it has none of its own."""
    known = {key_path(key, machine.document.data): source for key, source in machine.sources.items()}
    for length in range(len(path), 0, -1):
        if path[:length] in known:
            return known[path[:length]]
    return None


def estimate_note(base: Document) -> str | None:
    """Say which numbers of a machine nobody published, of those that a scenario leaves as they are."""
    name = base.get(("machine",))
    if not isinstance(name, str) or name not in MACHINES:
        return None
    machine = machine_of(name)
    document, _ = with_machine(base)
    left = [
        key
        for key in machine.estimates
        if document.mark(key_path(key, document.data)).path == f"{key} (machine {name})"
    ]
    if not left:
        return None
    return f"machine {name}: estimated, since nobody published it: {', '.join(left)} (ringnet show {name})"
