"""The collective, its algorithm and what is reduced where: keys that are right one by one and wrong together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from ringnet.collectives import ALGORITHMS
from ringnet.documents.document import Path
from ringnet.errors import closest, some
from ringnet.payload import message_elements
from ringnet.payload.dtypes import DTYPES, is_float
from ringnet.payload.reductions import REDUCTIONS, check_dtype, make_reduction
from ringnet.scenario.checks.mistake import Mistake, no_such_worker, refused_by, unread
from ringnet.scenario.drawn import what_is_drawn
from ringnet.scenario.keys.algorithm import parameters_of
from ringnet.scenario.keys.model import COPYING, Keys
from ringnet.scenario.network import IN_SWITCHES
from ringnet.units import counted

_ALGORITHM: Path = ("algorithm",)


def reduces_in_switches(algorithm: str) -> bool:
    """Whether an algorithm of ringnet takes switches that reduce."""
    return algorithm in ALGORITHMS and ALGORITHMS[algorithm].in_switches


def check_reduction(keys: Keys) -> Iterator[Mistake]:
    """Return what is wrong with switches that reduce, and with algorithms that take them."""
    given = keys.network.reduction
    if given is not None:
        yield from _accumulate(keys)
    takers = [(keys.algorithm_name, keys.collective, _ALGORITHM)]
    for number, job in enumerate(keys.jobs):
        name, collective = job.algorithm or keys.algorithm_name, job.collective or keys.collective
        takers.append((name, collective, ("jobs", number)))
    takers = [one for one in takers if reduces_in_switches(one[0])]
    for name, collective, path in takers:
        yield from _can_be(keys, name, collective, path)
    if given is not None and given.reduce_Bps < math.inf and len(takers) > 1:
        message = "several jobs would share the rate of switches that reduce"
        right = "rate: free, or another algorithm for all but one"
        yield Mistake(("network", "reduction", "rate"), message, right, causes=(("jobs",),))


def _can_be(keys: Keys, name: str, collective: str, path: Path) -> Iterator[Mistake]:
    given, network = keys.network.reduction, ("network", "reduction")
    if given is None:
        message = f"{name} takes switches that reduce, and those of this network do not"
        right = "network: {reduction: {}} on a topology with switches, or algorithm: ring"
        yield Mistake(path, message, right, causes=(("network", "topology"), network))
        return
    if collective not in COPYING and given.dtypes is not None and keys.dtype not in given.dtypes:
        message = f"the switches of this network add {' and '.join(given.dtypes)}, no {keys.dtype}"
        yield Mistake(path, message, f"dtype: {given.dtypes[0]}", causes=(("dtype",), network), value="")
    if collective not in COPYING and keys.reduce not in IN_SWITCHES:
        message = f"no switch makes a {keys.reduce}"
        yield Mistake(("reduce",), message, " | ".join(IN_SWITCHES), causes=(path,))
    if keys.worker.sends == "rendezvous":
        message = f"{name} sends to switches, which take what comes: they are in no step that a sender could meet"
        yield Mistake(("worker", "sends"), message, "sends: eager", causes=(path,))


def _accumulate(keys: Keys) -> Iterator[Mistake]:
    """Refuse a type of sums that holds less than the elements: what a switch keeps would be rounded twice."""
    given = keys.network.reduction
    if given is None or given.accumulate is None:
        return
    path, wide, own = ("network", "reduction", "accumulate"), DTYPES[given.accumulate], DTYPES[keys.dtype]
    if is_float(wide) != is_float(own) or wide.itemsize < own.itemsize:
        message = f"a sum in {wide.name} does not hold every {own.name}"
        right = "float64" if is_float(own) else own.name
        yield Mistake(path, message, right, causes=(("dtype",),))


#: Reductions that weights belong to.
WEIGHTED = ("mean", "weighted-mean")
#: Elements of all workers' buffers up to which a table of states is worth its room.
READABLE_ELEMENTS = 1024


def check_algorithm(keys: Keys) -> Iterator[Mistake]:
    """Return what is wrong with the algorithm alone: the collective, its parameters, switches that it takes."""
    yield from _collective_known(keys)
    yield from _unread_parameters(keys)
    yield from check_reduction(keys)


def _whole_elements(keys: Keys) -> Iterator[Mistake]:
    yield from refused_by(("message",), lambda: message_elements(keys.message_bytes, DTYPES[keys.dtype]), (("dtype",),))


def _collective_known(keys: Keys) -> Iterator[Mistake]:
    algorithm = ALGORITHMS.get(keys.algorithm_name)
    known = (keys.collective,) if algorithm is None else algorithm.collectives
    if keys.collective not in known:
        message = f"the algorithm {keys.algorithm_name} has no {keys.collective}"
        yield Mistake(("collective",), message, " or ".join(known), causes=(("algorithm",),))


def _unread_parameters(keys: Keys) -> Iterator[Mistake]:
    """Tell parameters that the algorithm does not have."""
    name = keys.algorithm_name
    known = ALGORITHMS[name].parameters if name in ALGORITHMS else {}
    settings = keys.algorithm
    own = {} if isinstance(settings, str) else dict(settings.parameters or {})
    if own and not isinstance(settings, str) and not settings.python:
        message = "the key is never read: it is for a function of yours"
        right, causes = "the parameters of the algorithm, beside its name", (("algorithm", "name"),)
        yield Mistake(("algorithm", "parameters"), message, right, "", causes, unread=True)
    for parameter in parameters_of(settings):
        if parameter not in known and parameter not in own:
            reason = f"{name} has no such parameter"
            nearest = closest(parameter, known)
            right = ", ".join(known)
            message = f"the key is never read: {reason}"
            causes = (("algorithm", "name"),)
            yield Mistake(("algorithm", parameter), message, right, nearest, causes, unread=True)


def _reduction(keys: Keys) -> Iterator[Mistake]:
    if keys.collective in COPYING:
        return
    yield from refused_by(("reduce",), lambda: check_dtype(REDUCTIONS[keys.reduce], DTYPES[keys.dtype]), (("dtype",),))
    if keys.training is not None:  # the weights are the numbers of examples
        return
    if keys.reduce == "weighted-mean" and keys.weights is None:
        yield Mistake(("reduce",), "a weighted mean needs weights", f"weights: {_as_many(keys.workers)}")
    elif keys.reduce in WEIGHTED and keys.weights is not None:
        yield from _weights(keys, keys.weights)


def _weights(keys: Keys, weights: tuple[float, ...]) -> Iterator[Mistake]:
    causes = ("workers",), ("reduce",)
    if len(weights) != keys.workers:
        message = f"{len(weights)} weights for {counted(keys.workers, 'worker')}"
        yield Mistake(("weights",), message, f"one for each worker: {_as_many(keys.workers)}", causes=causes)
    else:
        yield from refused_by(("weights",), lambda: make_reduction(*reduction_of(keys)), causes)


def _workers_are_there(keys: Keys) -> Iterator[Mistake]:
    for key in keys.worker.exceptions:
        yield from no_such_worker(("worker", "exceptions", key), int(key), keys.workers, unread=True)


def _states(keys: Keys) -> Iterator[Mistake]:
    """Refuse a table of states that nobody can read, or of buffers that are not there."""
    if "states" not in keys.report.tables:
        return
    path = ("report", "tables", keys.report.tables.index("states"))
    if keys.payload != "full":
        right = "payload: full"
        yield Mistake(path, "states need every element", right, causes=(("payload",),), unread=True)
    n_elements = keys.workers * keys.message_bytes // DTYPES[keys.dtype].itemsize
    if n_elements > READABLE_ELEMENTS:
        message = f"states of {n_elements:,} elements, over all workers, are not for reading"
        causes = ("workers",), ("message",), ("dtype",)
        yield Mistake(path, message, f"at most {READABLE_ELEMENTS:,}", causes=causes, unread=True)


def _unread_in_copying(keys: Keys) -> Iterator[Mistake]:
    if keys.collective in COPYING:
        exceptions = (("worker", "exceptions", key, "reduce_rate") for key in keys.worker.exceptions)
        for path in (("reduce",), ("weights",), ("worker", "reduce_rate"), *exceptions):
            yield unread(path, f"{keys.collective} combines nothing", ("collective",))


def _unread_weights(keys: Keys) -> Iterator[Mistake]:
    if keys.training is None and keys.reduce not in WEIGHTED and keys.collective not in COPYING:
        yield unread(("weights",), f"{keys.reduce} has no weights", ("reduce",), right="reduce: mean")


def _unread_data(keys: Keys) -> Iterator[Mistake]:
    if keys.training is not None:  # which tells of them itself
        return
    drawn = what_is_drawn(keys)
    if keys.files:
        yield unread(("message",), "the files say how large it is", ("data",))
        if not drawn:
            yield unread(("seed",), "the data comes from files", ("data",))
    elif keys.payload == "none":
        yield unread(("data",), "no payload is carried", ("payload",))
        if not drawn:
            yield unread(("seed",), "no payload is carried", ("payload",))
    elif keys.data != "random" and not drawn:
        yield unread(("seed",), f"{keys.data} data has no seed", ("data",))


COLLECTIVE_CHECKS: tuple[Callable[[Keys], Iterator[Mistake]], ...] = (
    _whole_elements,
    _collective_known,
    _unread_parameters,
    check_reduction,
    _reduction,
    _workers_are_there,
    _states,
    _unread_in_copying,
    _unread_weights,
    _unread_data,
)


def reduction_of(keys: Keys) -> tuple[str, int, tuple[float, ...] | None]:
    """Return name, workers and weights of the reduction; a mean with weights is the weighted mean."""
    if keys.training is not None:  # each step has weights of its own
        return keys.reduce, keys.workers, (1.0,) * keys.workers if keys.reduce == "weighted-mean" else None
    name = "weighted-mean" if keys.weights is not None and keys.reduce == "mean" else keys.reduce
    return name, keys.workers, keys.weights


def _as_many(n_workers: int) -> str:
    return f"[{some(['1'] * n_workers)}]"
