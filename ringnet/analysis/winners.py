"""Which algorithm to use: ranks, ranges of sizes, where one overtakes another, and a sentence that says so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from ringnet.units import format_size

#: Times that differ by less than this share are the same.
ALIKE = 1e-9
#: Share of time for which nobody changes the algorithm.
WORTH = 1e-3


class WinningRange(NamedTuple):
    """Sizes from the first to the last, of those compared, for which one algorithm is the one to use.

    ``runner_up`` is the fastest other at ``ahead_at_bytes``, the size of the range where the lead is largest, and
    ``ahead`` how many times longer it takes there; None where there is no other. ``alike`` are those that take the same
    time at all sizes of the range. ``after_guess`` and ``before_guess``: whether the size compared before it, or after
    it, is no ground for a recommendation.
    """

    n_workers: int
    algorithm: str
    first_bytes: int
    last_bytes: int
    runner_up: str | None
    ahead: float | None
    ahead_at_bytes: int | None
    alike: tuple[str, ...]
    after_guess: bool = False
    before_guess: bool = False


class Crossover(NamedTuple):
    """Where one algorithm overtakes another: between two of the sizes compared, at about ``at_bytes``."""

    n_workers: int
    slower_above: str
    faster_above: str
    at_bytes: int
    between_low_bytes: int
    between_high_bytes: int


def with_ranks(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a column ``rank``, 1 for the fastest of each N and size; those alike share one.

    Parameters
    ----------
    frame : DataFrame
        ``n_workers, message_bytes, makespan_s``.

    Examples
    --------
    >>> rows = pd.DataFrame({"n_workers": 2, "message_bytes": 8, "makespan_s": [3.0, 1.0, 1.0]})
    >>> with_ranks(rows)["rank"].tolist()
    [3, 1, 1]
    """
    ranks = np.empty(len(frame), dtype=np.int64)
    times = frame["makespan_s"].to_numpy(dtype=np.float64)
    for places in frame.groupby(["n_workers", "message_bytes"]).indices.values():
        here = times[places]
        ranks[places] = 1 + (here[None, :] < here[:, None] * (1 - ALIKE)).sum(axis=1)
    return frame.assign(rank=ranks)


def ranges(frame: pd.DataFrame) -> list[WinningRange]:
    """Return which algorithm to use for which sizes, by N and then by size.

    Of algorithms that differ by less than a thousandth the one of the size before is kept, so that ranges are as
    long as they can be. Sizes with a ``guess``, if there is such a column, are in none.
    """
    found: list[WinningRange] = []
    for n_workers, times, after_guess, before_guess in _stretches(frame):
        winners = _winners(times)
        ends = [place for place, (a, b) in enumerate(pairwise(winners)) if a != b] + [len(winners) - 1]
        first = 0
        for last in ends:
            one = _range(n_workers, times.iloc[first : last + 1], winners[last])
            is_after, is_before = after_guess and first == 0, before_guess and last == ends[-1]
            found.append(one._replace(after_guess=is_after, before_guess=is_before))
            first = last + 1
    return found


def crossovers(frame: pd.DataFrame) -> list[Crossover]:
    """Return where the algorithm to use changes; between two sizes, log time over log size is taken as straight."""
    found: list[Crossover] = []
    for n_workers, times, *_ in _stretches(frame):
        sizes = times.index.tolist()
        for place, (before, after) in enumerate(pairwise(_winners(times))):
            if before != after:
                low, high = sizes[place], sizes[place + 1]
                lead = [math.log(times[before][size] / times[after][size]) for size in (low, high)]
                share = min(max(lead[0] / (lead[0] - lead[1]), 0.0), 1.0) if lead[0] < 0 else 0.0
                at = round(math.exp(math.log(low) + share * math.log(high / low)))
                found.append(Crossover(n_workers, before, after, at, low, high))
    return found


def advice(frame: pd.DataFrame) -> list[str]:
    """Return a sentence for each N: which algorithm to use up to which size, and by how much it is ahead.

    Of one that nothing was compared with it is said that there is nothing to choose from.
    """
    by_n: dict[int, list[WinningRange]] = {}
    for one in ranges(frame):
        by_n.setdefault(one.n_workers, []).append(one)
    where = {(one.n_workers, one.between_low_bytes): one.at_bytes for one in crossovers(frame)}
    compared = frame.groupby("n_workers")["algorithm"].nunique()
    return [
        _sentence(n_workers, parts, where)
        if compared[n_workers] > 1
        else f"with {n_workers} workers there is {parts[0].algorithm} and nothing to compare it with"
        for n_workers, parts in by_n.items()
    ]


class _Stretch(NamedTuple):
    """Times of one N at sizes between which there is no guess: a row per size, ascending, a column per algorithm."""

    n_workers: int
    times: pd.DataFrame
    after_guess: bool
    before_guess: bool


def _stretches(frame: pd.DataFrame) -> Iterator[_Stretch]:
    """Yield for each N the times that are above zero, in as many stretches as guesses leave."""
    shown = frame[(frame["makespan_s"] > 0) & (frame["message_bytes"] > 0)]
    for n_workers, rows in shown.groupby("n_workers", sort=True):
        order = list(dict.fromkeys(rows["algorithm"]))
        table = rows.pivot_table("makespan_s", "message_bytes", "algorithm", aggfunc="first")[order]
        table = table.dropna(axis="columns").sort_index()
        if table.columns.empty:  # each algorithm lacks the time of some size
            continue
        guessed = rows["message_bytes"][rows["guess"].notna()] if "guess" in rows else ()
        is_guess = table.index.isin(guessed)
        edges = [0, *(np.flatnonzero(np.diff(is_guess)) + 1).tolist(), len(table)]
        for first, last in pairwise(edges):
            if first < last and not is_guess[first]:
                yield _Stretch(int(str(n_workers)), table.iloc[first:last], first > 0, last < len(table))


def _winners(times: pd.DataFrame) -> list[str]:
    winners: list[str] = []
    for _, row in times.iterrows():
        best = [str(name) for name in row.index[row <= row.min() * (1 + WORTH)]]
        winners.append(winners[-1] if winners and winners[-1] in best else _lasting(best, times.loc[row.name :]))
    return winners


def _lasting(best: Sequence[str], after: pd.DataFrame) -> str:
    """Return the one of several alike that stays the fastest for the most sizes to come."""

    def stays(name: str) -> int:
        leads = (after[name] <= after.min(axis=1) * (1 + WORTH)).to_numpy()
        return len(leads) if leads.all() else int(np.argmin(leads))

    return max(best, key=stays)


def _range(n_workers: int, times: pd.DataFrame, winner: str) -> WinningRange:
    own = times[winner]
    alike = tuple(str(name) for name in times if name != winner and bool((abs(times[name] - own) <= ALIKE * own).all()))
    first, last = int(times.index[0]), int(times.index[-1])
    others = times.drop(columns=[winner, *alike])
    leads = (others.min(axis=1) / own).to_numpy() if len(others.columns) else np.ones(1)
    place = int(leads.argmax())
    if leads[place] <= 1 + ALIKE:
        return WinningRange(n_workers, winner, first, last, None, None, None, alike)
    runner_up, at_bytes = str(others.iloc[place].idxmin()), int(times.index[place])
    return WinningRange(n_workers, winner, first, last, runner_up, float(leads[place]), at_bytes, alike)


def _sentence(n_workers: int, parts: Sequence[WinningRange], where: dict[tuple[int, int], int]) -> str:
    use = f"with {n_workers} workers use {', '.join(_span(part, where) for part in parts)}"
    return "; ".join([use, *_leads(parts)])


def _span(part: WinningRange, where: dict[tuple[int, int], int]) -> str:
    """Say for which sizes one algorithm is the one to use."""
    crossover = where.get((part.n_workers, part.last_bytes))
    if part.after_guess and part.before_guess and part.first_bytes == part.last_bytes:
        return f"{part.algorithm} at {format_size(part.first_bytes)}"
    said = [part.algorithm, *([f"from {format_size(part.first_bytes)}"] if part.after_guess else [])]
    if part.before_guess:
        said.append(f"up to {format_size(part.last_bytes)}")
    elif crossover is not None:
        said.append(f"up to {_about(crossover)}")
    elif not part.after_guess:
        is_first = not any(n == part.n_workers for n, _ in where)
        said.append("for every size" if is_first else "above")
    return " ".join(said)


def _leads(parts: Sequence[WinningRange]) -> Iterator[str]:
    for part in parts:
        if part.runner_up is not None and part.ahead is not None and part.ahead_at_bytes is not None:
            size = format_size(part.ahead_at_bytes)
            yield f"{part.algorithm} is at most {_by(part.ahead)} {part.runner_up}, at {size}"
        if part.alike:
            yield f"{' and '.join(part.alike)} as good as {part.algorithm} there"


def _by(ahead: float) -> str:
    """Say how much faster one is, by how many times longer the other takes.

    >>> _by(1.8), _by(1.0004)
    ('1.8 times as fast as', '0.04 % faster than')
    """
    small = 1.1
    return f"{ahead:.3g} times as fast as" if ahead >= small else f"{100 * (ahead - 1):.2g} % faster than"


def _about(n_bytes: int) -> str:
    """Write a size that was interpolated, with three digits.

    >>> _about(123456), _about(2**21)
    ('about 121 KiB', 'about 2 MiB')
    """
    unit = 1024 ** min(int(math.log(max(n_bytes, 1), 1024)), 4)
    name = ("B", "KiB", "MiB", "GiB", "TiB")[int(math.log(unit, 1024) + 0.5)]
    return f"about {n_bytes / unit:.3g} {name}"
