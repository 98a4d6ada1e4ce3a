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
#: Waits of which all but this share are behind the same sender's, or behind others', are behind these only.
OWN_ALL = 1e-9


def added(values: Iterable[float]) -> float:
    """Add up from the left, on every Python: from 3.12 on its own ``sum`` rounds otherwise, and compiled loops do not.

    >>> added([1.0, 1e-16, 1e-16])
    1.0
    """
    return reduce(add, values, 0.0)


def to_others_s(lost_s: float, started_s: float, ended_s: float, alone_s: float) -> float:
    """Return what a flow has lost to other senders, in seconds: what it took longer than without them.

    Parameters
    ----------
    lost_s : float
        What it lost at links, by `Trace.links`.
    started_s, ended_s, alone_s : float
        When it started and ended, and when it would have ended with its sender's flows alone; NaN if nobody knows.

    Examples
    --------
    >>> to_others_s(2.0, 0.0, 9.0, 8.0), to_others_s(2.0, 0.0, 9.0, 9.0), to_others_s(0.0, 0.0, 9.0, float("nan"))
    (1.0, 0.0, 0.0)
    """
    later_s = ended_s - alone_s if lost_s else 0.0
    if later_s <= OWN_ALL * (ended_s - started_s):
        return 0.0
    return lost_s if lost_s - later_s <= OWN_ALL * lost_s else later_s


def own_part_s(queued_s: float, lost_s: float, own_lost_s: float, now_s: float) -> float:
    """Return what of a transfer's queueing was behind its sender's own, in seconds.

    Parameters
    ----------
    queued_s : float
        What it took longer than alone.
    lost_s, own_lost_s : float
        What it lost at links, by `Trace.links`, and of that behind its sender's own. Losses at several links, and of
        several parts, may overlap: then each counts by its share. What is queued for more than that is for nobody.
    now_s : float
        When it arrives: what is less than rounding may make of that is behind nobody else.

    Examples
    --------
    >>> own_part_s(2.0, 4.0, 3.0, 9.0), own_part_s(4.0, 2.0, 1.0, 9.0), own_part_s(2.0, 2.0, 2.0, 9.0)
    (1.5, 1.0, 2.0)
    >>> own_part_s(1e-16, 0.0, 0.0, 9.0)
    1e-16
    """
    most_s = max(queued_s, lost_s)
    if most_s - own_lost_s <= max(OWN_ALL * most_s, ROUNDING * now_s):
        return queued_s
    return own_lost_s * queued_s / most_s if queued_s < lost_s else own_lost_s
