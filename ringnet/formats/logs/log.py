"""What every log comes to, whoever wrote it: measurements, and what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import numpy as np

#: ``busbw / algbw`` of each collective, as nccl-tests defines them: a function of N.
BUS_FACTORS: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "sendrecv": lambda n: 1.0,
}
_NAMES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "alltoall",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "reduce": "reduce",
    "sendrecv": "sendrecv",
}
#: How a remark asks for N.
ASKED = "say it with --workers"
#: A time above so many times those of the sizes on either side is an outlier.
_OUTLIER = 1.5
#: Half of the last digit of a bandwidth as printed, in GB/s, and a little for a rounded number.
_HALF_DIGIT = 0.00501
#: Share of the rows that must agree; one that a line was printed into may not.
_MOST_ROWS = 0.95


@dataclass(frozen=True)
class Remark:
    """Something about a log that its reader should know; ``line`` is where, from 1."""

    text: str
    line: int | None = None

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


@dataclass(frozen=True)
class Measurement:
    """One row of a log: how long a collective took.

    Parameters
    ----------
    message_bytes : int
        The whole buffer of one worker, as nccl-tests counts it.
    time_s : float
        Out of place, or the only time there is.
    in_place_s : float or None
    n_workers, n_nodes : int or None
        None where the log does not say.
    collective : str
        ``all_reduce``, ...; empty where nothing tells.
    algbw_Bps, busbw_Bps : float or None
        As printed, out of place.
    algorithm, protocol : str
        Where forced or named: ``Ring``, ``LL128``.
    wrong : str
        What a check of the values found, empty for nothing.
    is_outlier : bool
        Far above the sizes on either side; left out of fits.
    line : int or None
    """

    message_bytes: int
    time_s: float
    in_place_s: float | None = None
    n_workers: int | None = None
    n_nodes: int | None = None
    collective: str = ""
    dtype: str = ""
    redop: str = ""
    algbw_Bps: float | None = None
    busbw_Bps: float | None = None
    algorithm: str = ""
    protocol: str = ""
    wrong: str = ""
    is_outlier: bool = False
    line: int | None = None


@dataclass(frozen=True)
class Log:
    """A file of measurements.

    Parameters
    ----------
    path : Path
    tool : str
        Which format it is in: ``nccl-tests``, ``OSU``, ``CSV``, ...
    measurements : tuple of Measurement
        In the order of the file; rows of zero bytes are among them.
    remarks : tuple of Remark
        What was missing, assumed, recovered or left out.
    devices : tuple of str
        Models that the log names, sorted.
    sha256 : str
    """

    path: Path
    tool: str
    measurements: tuple[Measurement, ...]
    remarks: tuple[Remark, ...] = ()
    devices: tuple[str, ...] = ()
    sha256: str = ""

    @property
    def collectives(self) -> tuple[str, ...]:
        """Collectives in it, in order of appearance."""
        return tuple(dict.fromkeys(row.collective for row in self.measurements))

    def of(self, collective: str) -> tuple[Measurement, ...]:
        """Measurements of one collective that moved something."""
        return tuple(row for row in self.measurements if row.collective == collective and row.message_bytes)


@dataclass
class Notes:
    """Remarks as they come up while a log is read; the same one about many lines is kept once."""

    found: list[Remark] = field(default_factory=list)

    def say(self, text: str, line: int | None = None) -> None:
        """Add a remark."""
        self.found.append(Remark(text, line))

    def sayings(self) -> tuple[Remark, ...]:
        """Return each remark once, at the first of its lines, with how often it holds."""
        counts = Counter(remark.text for remark in self.found)
        first = {remark.text: remark for remark in reversed(self.found)}
        texts = dict.fromkeys(remark.text for remark in self.found)
        return tuple(
            replace(
                first[text], text=text if counts[text] == 1 else f"{text} (and {counts[text] - 1} more such)"
            )
            for text in texts
        )


def collective_name(text: str) -> str:
    """Return our name of a collective in a tool's spelling; empty for none that is known.

    >>> collective_name("all_reduce_perf"), collective_name("Allreduce"), collective_name("latency")
    ('all_reduce', 'all_reduce', '')
    >>> collective_name("all_reduce_perf_mpi"), collective_name("All-to-All Personalized Exchange")
    ('all_reduce', 'alltoall')
    """
    bare = (
        text.lower()
        .replace("mpi_", "")
        .removesuffix("_mpi")
        .removesuffix("_perf")
        .removesuffix(" personalized exchange")
        .replace("_", "")
        .replace("-", "")
        .replace(" ", "")
    )
    return _NAMES.get(bare, "")


def possible_workers(pairs: Sequence[tuple[float, float]], collective: str, most: int = 8192) -> list[int]:
    """Return every N that printed bandwidths allow.

    Parameters
    ----------
    pairs : sequence of (float, float)
        algbw and busbw of each row, in GB/s with two digits, as nccl-tests prints them.
    collective : str

    Examples
    --------
    >>> possible_workers([(41.78, 78.33), (0.29, 0.54)], "all_reduce")
    [16]
    """
    n = np.arange(2, most + 1)
    factor = np.array([BUS_FACTORS[collective](int(each)) for each in n])[:, None]
    alg, bus = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    fits = np.abs(bus - factor * alg) <= _HALF_DIGIT * (1 + factor)
    return [int(each) for each in n[fits.mean(axis=1) >= _MOST_ROWS]] if len(alg) else []


def flag_outliers(rows: Sequence[Measurement]) -> list[Measurement]:
    """Mark the rows whose time is far above those of the next smaller and the next larger size.

    The largest size has none above it and is never marked; only rows of one series are compared.

    Parameters
    ----------
    rows : sequence of Measurement
        In order of size within each series.
    """
    flagged: list[Measurement] = []
    for _, group in groupby(rows, key=lambda row: (row.collective, row.n_workers, row.n_nodes, row.dtype)):
        series = list(group)
        times = [row.time_s for row in series]
        flagged += [
            replace(row, is_outlier=_stands_out(times, place)) if _ascends(series, place) else row
            for place, row in enumerate(series)
        ]
    return flagged


def _stands_out(times: list[float], place: int) -> bool:
    return place + 1 < len(times) and times[place] > _OUTLIER * max(
        [*times[max(place - 1, 0) : place], times[place + 1]]
    )


def _ascends(series: Sequence[Measurement], place: int) -> bool:
    sizes = [row.message_bytes for row in series[max(place - 1, 0) : place + 2]]
    return sizes == sorted(sizes)
