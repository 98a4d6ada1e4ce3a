"""Keys that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from ringnet.collectives import ALGORITHMS
from ringnet.errors import InputError
from ringnet.networks import TOPOLOGIES
from ringnet.payload.dtypes import DTYPES
from ringnet.payload.reductions import REDUCTIONS, check_dtype, make_reduction
from ringnet.scenario.document import Path
from ringnet.scenario.fields import quantity_text
from ringnet.scenario.model import Keys

#: Collectives that move chunks and never combine them.
COPYING = ("all-gather",)
#: Reductions that weights belong to.
WEIGHTED = ("mean", "weighted-mean")
#: Elements of all workers' buffers up to which a table of states is worth its room.
READABLE_ELEMENTS = 1024


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with keys taken together.

    Parameters
    ----------
    path : tuple
        The key that is wrong.
    message, right, nearest : str
        As in `Fault`.
    causes : tuple of tuple
        The other keys that it is wrong with.
    unread : bool
        Whether it is wrong only in that it is never read; a later writer of a cause may have orphaned it.
    """

    path: Path
    message: str
    right: str = ""
    nearest: str = ""
    causes: tuple[Path, ...] = ()
    unread: bool = False


def check(keys: Keys) -> Iterator[Finding]:
    """Return what is wrong with ``keys`` taken together; of unread keys also those that were left out."""
    for find in CHECKS:
        yield from find(keys)


def _whole_elements(keys: Keys) -> Iterator[Finding]:
    itemsize = DTYPES[keys.dtype].itemsize
    if keys.message_bytes % itemsize:
        below = keys.message_bytes // itemsize * itemsize
        right = f"{quantity_text(below, 'bytes')} or {quantity_text(below + itemsize, 'bytes')}"
        message = f"not a whole number of {keys.dtype} elements, {itemsize} bytes each"
        yield Finding(("message",), message, right, causes=(("dtype",),))


def _collective_known(keys: Keys) -> Iterator[Finding]:
    known = ALGORITHMS[keys.algorithm].collectives
    if keys.collective not in known:
        message = f"the algorithm {keys.algorithm} has no {keys.collective}"
        yield Finding(("collective",), message, " or ".join(known), causes=(("algorithm",),))


def _reduction(keys: Keys) -> Iterator[Finding]:
    if keys.collective in COPYING:
        return
    yield from _told(
        ("reduce",), lambda: check_dtype(REDUCTIONS[keys.reduce], DTYPES[keys.dtype]), (("dtype",),)
    )
    if keys.reduce == "weighted-mean" and keys.weights is None:
        yield Finding(("reduce",), "a weighted mean needs weights", f"weights: {_as_many(keys.workers)}")
    elif keys.reduce in WEIGHTED and keys.weights is not None:
        yield from _weights(keys, keys.weights)


def _weights(keys: Keys, weights: tuple[float, ...]) -> Iterator[Finding]:
    causes = ("workers",), ("reduce",)
    if len(weights) != keys.workers:
        message = f"{len(weights)} weights for {_count(keys.workers)}"
        yield Finding(("weights",), message, f"one for each worker: {_as_many(keys.workers)}", causes=causes)
    else:
        yield from _told(("weights",), lambda: make_reduction(*reduction_of(keys)), causes)


def _told(path: Path, act: Callable[[], object], causes: tuple[Path, ...]) -> Iterator[Finding]:
    """Tell at ``path`` what another room refuses."""
    try:
        act()
    except InputError as error:
        yield from (
            Finding(path, fault.message, fault.right, fault.nearest, causes) for fault in error.faults
        )


def _links_are_there(keys: Keys) -> Iterator[Finding]:
    network = keys.network
    names = link_names(network.topology, keys.workers) if network.links else {}
    for name in network.links:
        if name not in names:
            message = f"the {network.topology} of {_count(keys.workers)} has no such link"
            causes = ("workers",), ("network", "topology")
            nearest = _nearest_link(name, names)
            yield Finding(("network", "links", name), message, _some(names), nearest, causes, unread=True)


def _nearest_link(name: str, names: Iterable[str]) -> str:
    """Return a link that starts where ``name`` does, or ends there; a million others are not compared."""
    start, _, end = name.partition("->")
    for near in (
        [one for one in names if one.startswith(f"{start}->")],
        [one for one in names if one.endswith(f"->{end}")],
    ):
        if near:
            return (get_close_matches(name, near, n=1) or near)[0]
    return ""


def _workers_are_there(keys: Keys) -> Iterator[Finding]:
    named = [("network", "links_of", key) for key in keys.network.links_of]
    named += [("worker", "exceptions", key) for key in keys.worker.exceptions]
    for path in named:
        if int(path[-1]) >= keys.workers:
            message = f"there is no worker {path[-1]} among {_count(keys.workers)}"
            yield Finding(path, message, f"0 to {keys.workers - 1}", causes=(("workers",),), unread=True)


def _links_set_once(keys: Keys) -> Iterator[Finding]:
    """Refuse to let the order settle a link between two workers that both have exceptions."""
    changes = keys.network.links_of
    for name in link_names(keys.network.topology, keys.workers) if len(changes) > 1 else ():
        start, _, end = name.partition("->")
        if (
            start in changes
            and end in changes
            and changes[start] != changes[end]
            and name not in keys.network.links
        ):
            message = f"links_of.{start} says otherwise of link {name}"
            causes = ("network", "links_of", start), ("workers",)
            yield Finding(
                ("network", "links_of", end), message, f"links: {{{name}: ...}} beside it", causes=causes
            )


def _states(keys: Keys) -> Iterator[Finding]:
    """Refuse a table of states that nobody can read, or of buffers that are not there."""
    if "states" not in keys.report.tables:
        return
    path = ("report", "tables", keys.report.tables.index("states"))
    if keys.payload != "full":
        right = "payload: full"
        yield Finding(path, "states need every element", right, causes=(("payload",),), unread=True)
    n_elements = keys.workers * keys.message_bytes // DTYPES[keys.dtype].itemsize
    if n_elements > READABLE_ELEMENTS:
        message = f"states of {n_elements:,} elements, over all workers, are not for reading"
        causes = ("workers",), ("message",), ("dtype",)
        yield Finding(path, message, f"at most {READABLE_ELEMENTS:,}", causes=causes, unread=True)


def _unread_in_copying(keys: Keys) -> Iterator[Finding]:
    if keys.collective in COPYING:
        exceptions = (("worker", "exceptions", key, "reduce_rate") for key in keys.worker.exceptions)
        for path in (("reduce",), ("weights",), ("worker", "reduce_rate"), *exceptions):
            yield _unread(path, f"{keys.collective} combines nothing", ("collective",))


def _unread_weights(keys: Keys) -> Iterator[Finding]:
    if keys.reduce not in WEIGHTED and keys.collective not in COPYING:
        yield _unread(("weights",), f"{keys.reduce} has no weights", ("reduce",), right="reduce: mean")


def _unread_data(keys: Keys) -> Iterator[Finding]:
    if keys.files:
        yield _unread(("message",), "the files say how large it is", ("data",))
        yield _unread(("seed",), "the data comes from files", ("data",))
    elif keys.payload == "none":
        yield _unread(("data",), "no payload is carried", ("payload",))
        yield _unread(("seed",), "no payload is carried", ("payload",))
    elif keys.data != "random":
        yield _unread(("seed",), f"{keys.data} data has no seed", ("data",))


def _unread_switching(keys: Keys) -> Iterator[Finding]:
    if not goes_on(keys.network.topology):
        message = f"every route of a {keys.network.topology} is a single link"
        yield _unread(("network", "switching"), message, ("network", "topology"), right="topology: switch")


def _unread(path: Path, reason: str, *causes: Path, right: str = "") -> Finding:
    return Finding(path, f"the key is never read: {reason}", right, causes=causes, unread=True)


CHECKS: tuple[Callable[[Keys], Iterator[Finding]], ...] = (
    _whole_elements,
    _collective_known,
    _reduction,
    _links_are_there,
    _workers_are_there,
    _links_set_once,
    _states,
    _unread_in_copying,
    _unread_weights,
    _unread_data,
    _unread_switching,
)


def reduction_of(keys: Keys) -> tuple[str, int, tuple[float, ...] | None]:
    """Return name, workers and weights of the reduction; a mean with weights is the weighted mean."""
    name = "weighted-mean" if keys.weights is not None and keys.reduce == "mean" else keys.reduce
    return name, keys.workers, keys.weights


@lru_cache(maxsize=4)
def link_names(topology: str, n_workers: int) -> dict[str, None]:
    """Return the names of all links, in order, quick to search."""
    return dict.fromkeys(TOPOLOGIES[topology].build(n_workers, 1.0, 0.0).names)


@lru_cache(maxsize=64)
def goes_on(topology: str) -> bool:
    """Whether a route of this topology has more than one link, so that switching matters."""
    return len(TOPOLOGIES[topology].build(2, 1.0, 0.0).route(0, 1)) > 1


def _as_many(n_workers: int) -> str:
    return f"[{_some(['1'] * n_workers)}]"


def _count(n_workers: int) -> str:
    return "1 worker" if n_workers == 1 else f"{n_workers} workers"


def _some(names: Iterable[str]) -> str:
    first = list(names)
    return ", ".join(first[:3]) + (", ..." if len(first) > 3 else "")  # noqa: PLR2004 -- three examples
