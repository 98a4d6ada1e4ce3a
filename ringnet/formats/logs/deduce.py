"""What a log does not say, found from what it does: never without a remark."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ringnet.formats.logs.log import BUS_FACTORS, Notes, possible_workers
from ringnet.formats.logs.nccl_rows import Body

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
#: GB/s from which two printed digits say enough of a time.
_TELLING = 0.5
_TOLERANCE = 0.1

#: algbw and busbw as printed, and the reduction of a row.
Printed = tuple[float | None, float | None, str]


def time_unit(stated: str, rows: Sequence[tuple[int, Body]], notes: Notes) -> float:
    """Return seconds per unit of the times of a table: as its heading says, if size over algbw agrees.

    Parameters
    ----------
    stated : str
        ``us`` or ``ms``; empty where the heading does not say.
    rows : sequence of (int, Body)
        Bytes, and the row as printed.
    """
    told = [(size, body.algbw or 0.0, body.time) for size, body in rows]
    ratios = [size / (algbw * 1e9 * time) for size, algbw, time in told if algbw >= _TELLING and time]
    if not ratios:
        if not stated:
            notes.say("no unit of time is stated, and no row tells it: microseconds are assumed")
        return _SECONDS[stated or "us"]
    implied = median(ratios)
    unit = next((name for name, s in _SECONDS.items() if abs(implied / s - 1) < _TOLERANCE), "")
    return _SECONDS[_agreed(stated, unit, notes)]


def _agreed(stated: str, implied: str, notes: Notes) -> str:
    if stated and implied in ("", stated):
        return stated
    if not stated:
        notes.say(f"no unit of time is stated: {implied or 'us'}, as size over algbw says")
        return implied or "us"
    notes.say(f"times are headed ({stated}), but size over algbw makes them {implied}: {implied} is taken")
    return implied


def settled(
    stated: str, n_stated: int | None, rows: Sequence[Printed], notes: Notes
) -> tuple[str, int | None]:
    """Return the collective and N of a table: as stated, else from busbw / algbw.

    Parameters
    ----------
    stated : str
        The collective by its name, empty if there is none.
    n_stated : int or None
        N by the list of ranks.
    rows : sequence of (algbw, busbw, redop)
        As printed, in GB/s.
    """
    pairs = [(alg, bus) for alg, bus, _ in rows if alg and bus]
    redops = {redop for _, _, redop in rows}
    collective = stated or _likely(pairs, n_stated, redops, notes)
    return collective, _workers(collective, n_stated, pairs, notes)


def _likely(pairs: Sequence[tuple[float, float]], n: int | None, redops: set[str], notes: Notes) -> str:
    """Return the collective whose busbw / algbw is the one that was printed."""
    moved = any(redop not in ("", "none") for redop in redops)
    names = ["all_reduce", "reduce_scatter", "reduce"] if moved else ["all_gather", "alltoall", "broadcast"]
    fitting = [name for name in names if _fits(name, pairs, n)]
    if not pairs or not fitting:
        notes.say(f"the collective is not named, and the bandwidths do not tell it: {names[0]} is assumed")
        return names[0]
    notes.say(f"the collective is not named: {fitting[0]}, by busbw / algbw and the reduction")
    return fitting[0]


def _fits(name: str, pairs: Sequence[tuple[float, float]], n: int | None) -> bool:
    possible = possible_workers(pairs, name)
    return (n in possible) if n else bool(possible)


def _workers(
    collective: str, n: int | None, pairs: Sequence[tuple[float, float]], notes: Notes
) -> int | None:
    if not pairs or BUS_FACTORS[collective](2) == BUS_FACTORS[collective](3):
        return n
    possible = possible_workers(pairs, collective)
    if n:
        if n not in possible:
            notes.say(f"busbw / algbw does not fit N={n} of the list of ranks: the list is taken")
        return n
    if len(possible) == 1:
        notes.say(f"N is not in the log: N={possible[0]}, the only one that fits busbw / algbw in every row")
        return possible[0]
    notes.say(f"N is not in the log{_range(possible)}: say it with --workers")
    return None


def _range(possible: Sequence[int]) -> str:
    return f", and busbw / algbw allows {possible[0]} to {possible[-1]}" if possible else ""
