"""What rounding may do, alike for every engine: differences that are none, and sums in one order."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add

#: Rates and capacities that differ by less than this share are equal.
EQUAL_RATES = 1e-12
#: Ends of flows that differ by less than this share of the time are one: what symmetry makes equal, rounding parts.
SAME_TIME = 1e-14
#: Waits shorter than this share of the time are none. A head that comes as its link becomes free has its time from
#: other sums than the link, which differ by some 1e-16 of it for each step; nothing that waits is over so soon.
ROUNDING = 1e-12


def added(values: Iterable[float]) -> float:
    """Add up from the left, on every Python: from 3.12 on its own ``sum`` rounds otherwise, and compiled loops do not.

    >>> added([1.0, 1e-16, 1e-16])
    1.0
    """
    return reduce(add, values, 0.0)
