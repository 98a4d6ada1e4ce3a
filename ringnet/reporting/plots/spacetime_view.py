"""What a space-time diagram shows of a run: which workers, in which rows, and which of their transfers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ringnet.array_types import IntArray

if TYPE_CHECKING:
    import pandas as pd

#: Workers and switches of a picture, bands from which fewer are shown, and bands that are drawn at all.
MOST_WORKERS, MOST_SWITCHES, MANY_BANDS, MOST_BANDS = 32, 16, 2048, 4096
#: Workers of whom all are neighbours.
SMALL_RING = 3
#: Times as near as this share of the run are one.
SAME = 1e-9
#: Numbers that are listed one by one.
MOST_LISTED = 3


class View(NamedTuple):
    """The part of a run that is shown.

    Parameters
    ----------
    transfers : DataFrame
        A row per transfer, as in ``transfers.csv``, with ``from_row`` and ``to_row``.
    bands : DataFrame
        The same; transfers that lie on each other, as those of a tree's slices, are one, of the first chunk.
        ``chunks`` are the numbers of all.
    rows : tuple of int
        Who stands in each row: workers, below them switches.
    place : mapping of int to int
        In which row each is at home. Where all send to a neighbour, the neighbours of the first and of the last stand
        beyond them once more, so that no band crosses the whole picture.
    n_workers : int
        All workers; switches that reduce are numbered after them.
    in_ring : bool
        Whether all send to a neighbour.
    words : str
        What is left out.
    """

    transfers: pd.DataFrame
    bands: pd.DataFrame
    rows: tuple[int, ...]
    place: Mapping[int, int]
    n_workers: int
    in_ring: bool
    words: str

    @property
    def end_s(self) -> float:
        """When the last of the transfers is done."""
        return float(self.transfers["applied_s"].max())

    @property
    def phases(self) -> list[str]:
        """Phases, as they start."""
        return [str(phase) for phase in dict.fromkeys(self.bands["phase"])]

    @property
    def one_way(self) -> bool:
        """Whether all send to the next one, so that nothing crosses."""
        return self.in_ring and bool((self.bands["to_row"] > self.bands["from_row"]).all())

    def row_of(self, member: int) -> float:
        """Return the row of a worker or a switch; NaN where it is not shown."""
        return float(self.place.get(member, np.nan))

    def ends_of(self, src: int, dst: int) -> tuple[float, float]:
        """Return the rows between which a transfer goes, both NaN where it is not shown."""
        begin, end = self.row_of(src), self.row_of(dst)
        if self.in_ring:
            end = begin + (1 if (dst - src) % self.n_workers == 1 else -1)
        return (begin, end) if 0 <= end < len(self.rows) and begin >= 0 else (np.nan, np.nan)

    def name(self, row: int) -> str:
        """Return what stands at a row; in brackets where it stands a second time."""
        member = self.rows[row]
        if member >= self.n_workers:
            return f"switch {member - self.n_workers}"
        return f"({member})" if self.place.get(member, row) != row else str(member)


def view_of(transfers: pd.DataFrame, n_workers: int) -> View:
    """Choose what can be read.

    That is workers around the one that ended last, and where they send much one channel of several, and fewer workers.
    """
    timed = transfers.dropna(subset=["started_s", "applied_s"])
    left_out = len(transfers) - len(timed)
    transfers = timed
    last = transfers.iloc[int(transfers["applied_s"].to_numpy().argmax())]
    words = [f"{left_out} transfers that never moved left out"] if left_out else []
    found = _view(transfers, n_workers, int(last["dst"]), MOST_WORKERS, words)
    n_channels = transfers["channel"].nunique()
    if len(found.bands) > MANY_BANDS and n_channels > 1:
        words.append(f"channel {last['channel']} of {n_channels}")
        transfers = transfers[transfers["channel"] == last["channel"]]
        found = _view(transfers, n_workers, int(last["dst"]), MOST_WORKERS, words)
    if len(found.bands) > MANY_BANDS:
        found = _view(transfers, n_workers, int(last["dst"]), MOST_WORKERS // 2, words)
    if len(found.bands) > MOST_BANDS:
        cut = found.bands.sort_values("started_s", kind="stable").iloc[:MOST_BANDS]
        found = found._replace(bands=cut, words=f"{found.words}, first transfers only".removeprefix(", "))
    return found


def _view(transfers: pd.DataFrame, n_workers: int, last: int, most: int, words: Sequence[str]) -> View:
    ahead = (transfers["dst"] - transfers["src"]) % n_workers
    members = transfers[["src", "dst"]].to_numpy()
    either_way = [1, n_workers - 1] if n_workers > SMALL_RING else [1]
    in_ring = bool(ahead.isin(either_way).all()) and members.max() < n_workers
    if in_ring:
        shown = _around(last, n_workers, most)
        kept = transfers[transfers["src"].isin(shown)]
        rows = _with_neighbours(shown, kept, n_workers)
    else:
        shown = _near(last, members, n_workers, most)
        kept = transfers[transfers["src"].isin(shown) & transfers["dst"].isin(shown)]
        rows = tuple(shown)
    place = {member: row for row, member in enumerate(rows) if member in shown}
    if in_ring:
        place = {member: row + (rows[0] != shown[0]) for row, member in enumerate(shown)}
    n_shown = sum(member < n_workers for member in shown)
    n_switches, n_kept = max(0, int(members.max()) + 1 - n_workers), len(shown) - n_shown
    said = [_shown_words(shown[:n_shown], n_workers, last)] if n_shown < n_workers else []
    said += [f"{n_kept} of {n_switches} switches"] * (n_kept < n_switches)
    view = View(kept, kept, rows, place, n_workers, in_ring, ", ".join([*said, *words]))
    ends = np.array([view.ends_of(*pair) for pair in kept[["src", "dst"]].to_numpy().tolist()])
    kept = kept.assign(from_row=ends[:, 0], to_row=ends[:, 1])
    return view._replace(transfers=kept, bands=_bands(kept))


def _around(last: int, n_workers: int, most: int) -> list[int]:
    """Return neighbours, the one that ended last in their middle."""
    first = min(max(0, last - most // 2), max(0, n_workers - most))
    return [*range(first, min(n_workers, first + most))]


def _with_neighbours(shown: Sequence[int], kept: pd.DataFrame, n_workers: int) -> tuple[int, ...]:
    """Add whom the first and the last send to, where they do."""
    pairs = {*map(tuple, kept[["src", "dst"]].drop_duplicates().to_numpy().tolist())}
    before, after = (shown[0] - 1) % n_workers, (shown[-1] + 1) % n_workers
    back = [before] if n_workers > SMALL_RING and (shown[0], before) in pairs else []
    return (*back, *shown, *([after] if (shown[-1], after) in pairs else []))


def _near(last: int, pairs: IntArray, n_workers: int, most: int) -> list[int]:
    """Return the one that ended last, whom it exchanges with, whom these exchange with, and so on: sorted."""
    beside: dict[int, set[int]] = {}
    for src, dst in np.unique(pairs, axis=0).tolist():
        beside.setdefault(src, set()).add(dst)
        beside.setdefault(dst, set()).add(src)
    if len(beside) <= min(most, n_workers):
        return [*range(n_workers)] if n_workers <= most else sorted(beside)
    found, waiting, room = (
        {last},
        deque([last]),
        [most - (last < n_workers), MOST_SWITCHES - (last >= n_workers)],
    )
    while waiting:
        for one in sorted(beside[waiting.popleft()] - found):
            kind = int(one >= n_workers)
            if room[kind]:
                room[kind] -= 1
                found.add(one)
                waiting.append(one)
    return sorted(found)


def _shown_words(workers: Sequence[int], n_workers: int, last: int) -> str:
    if workers[-1] - workers[0] == len(workers) - 1:
        return f"workers {workers[0]} to {workers[-1]} of {n_workers}"
    return f"{len(workers)} of {n_workers} workers, nearest to {last}"


def _bands(kept: pd.DataFrame) -> pd.DataFrame:
    """Put transfers that lie on each other together."""
    instant = SAME * float(kept["applied_s"].max()) or 1.0
    when = [(kept[name] / instant).round() for name in ("started_s", "arrived_s")]
    group = kept.groupby(["phase", "src", "dst", *when], sort=False).ngroup()
    first = ~group.duplicated()
    if first.all():
        return kept.assign(chunks=kept["chunk"].astype(str))
    chunks = kept["chunk"].groupby(group, sort=False)
    few = first.sum() <= MANY_BANDS  # of more, no numbers are written
    words = chunks.agg(lambda found: _numbers(found.unique())).to_numpy() if few else ""
    return kept[first].assign(chunk=chunks.min().to_numpy(), chunks=words)


def _numbers(found: Iterable[int]) -> str:
    """Write numbers shortly, if that can be done.

    >>> _numbers([2, 0, 1]), _numbers([0, 4]), _numbers([0, 2, 4, 6])
    ('0-2', '0,4', '')
    """
    numbers = sorted(found)
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return ",".join(map(str, numbers)) if len(numbers) <= MOST_LISTED else ""
