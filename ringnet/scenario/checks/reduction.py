"""Algorithms that reduce in switches: whether the switches of the network do, and what they are to add."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ringnet.collectives import ALGORITHMS
from ringnet.documents.document import Path
from ringnet.payload.dtypes import DTYPES, is_float
from ringnet.scenario.checks.mistake import Mistake
from ringnet.scenario.keys.model import COPYING, Keys
from ringnet.scenario.network import IN_SWITCHES

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
        message = (
            f"{name} sends to switches, which take what comes: they are in no step that a sender could meet"
        )
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
