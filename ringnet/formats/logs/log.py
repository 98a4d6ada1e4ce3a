"""What a log is, of any tool: text, measurements, remarks; and which collective, N and unit its numbers tell."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeAlias

import numpy as np

from ringnet.errors import Fault, InputError
from ringnet.units import format_bytes

# ----------------------------------------------------------------------------------------------------- the text

#: Bytes of a log that are read; the table of a benchmark is a few kilobytes of it.
MOST_BYTES = 64 * 2**20
#: Bytes of a line that are kept; no row of any table is that long.
_MOST_LINE = 4096
_HEAD = 65536

_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK": "a zip archive",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class LogText:
    """A file that is text, as far as it is read: bounded, decoded, without colours.

    Parameters
    ----------
    path : Path
    encoding : str
    n_bytes : int
        Size of the whole file.
    """

    path: Path
    encoding: str
    n_bytes: int

    @property
    def is_cut(self) -> bool:
        """Whether the file is longer than what is read of it."""
        return self.n_bytes > MOST_BYTES

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number of each line, from 1, and its text; long lines are cut."""
        # A carriage return overwrites what a progress bar wrote before it: both are lines here.
        content = self.content().replace("\r\n", "\n").replace("\r", "\n")
        for number, line in enumerate(content.split("\n"), 1):
            yield number, _ESCAPE.sub("", line[:_MOST_LINE])

    def content(self) -> str:
        """Return the whole text, as far as it is read."""
        with self.path.open("rb") as file:
            return file.read(MOST_BYTES).decode(self.encoding, errors="replace").lstrip("\ufeff")

    def sha256(self) -> str:
        """Return the hash of what is read of the file."""
        with self.path.open("rb") as file:
            return hashlib.sha256(file.read(MOST_BYTES)).hexdigest()


def open_text(path: Path) -> LogText:
    """Find out whether a file is text, without reading all of it.

    Raises
    ------
    InputError
        It cannot be read, is empty or is binary; says which.
    """
    if path.is_dir():
        raise InputError(Fault("this is a folder, not a log", file=str(path), right="one or more files"))
    if path.exists() and not path.is_file():
        message = "this is a pipe or a device: a log is read more than once"
        raise InputError(Fault(message, file=str(path), right="a regular file"))
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            n_bytes = path.stat().st_size
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=str(path))) from error
    return LogText(path, _encoding(path, head, n_bytes), n_bytes)


def _encoding(path: Path, head: bytes, n_bytes: int) -> str:
    if not head.strip():
        raise InputError(Fault("the file is empty", file=str(path)))
    packed = next((name for magic, name in _PACKED.items() if head.startswith(magic)), "")
    if packed:
        raise InputError(Fault(f"the file is packed ({packed})", file=str(path), right="the log, unpacked"))
    if head[:2] in _UTF16:
        return _UTF16[head[:2]]
    if b"\x00" in head:
        size = format_bytes(n_bytes)
        raise InputError(
            Fault(f"the file is binary ({size}), not a log", file=str(path), right="text, CSV or JSON")
        )
    return "utf-8"


# ------------------------------------------------------------------------------------------------- measurements


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
    """Remarks as they come up while a log is read."""

    found: list[Remark] = field(default_factory=list)

    def say(self, text: str, line: int | None = None) -> None:
        """Add a remark."""
        self.found.append(Remark(text, line))

    def remarks(self) -> tuple[Remark, ...]:
        """Return each remark once, at the first of its lines, with how often it holds."""
        counts = Counter(remark.text for remark in self.found)
        lines = {remark.text: remark.line for remark in reversed(self.found)}
        return tuple(
            Remark(text if n == 1 else f"{text} (and {n - 1} more such)", lines[text])
            for text, n in counts.items()
        )


# ------------------------------------------------------------------------------ which collective, N and which unit

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
#: Half of the last digit of a bandwidth as printed, in GB/s, and a little for a rounded number.
_HALF_DIGIT = 0.00501
#: Share of the rows that must agree; one that a line was printed into may not.
_MOST_ROWS = 0.95

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
#: GB/s from which two printed digits say enough of a time.
_TELLING = 0.5
_TOLERANCE = 0.1

#: algbw and busbw in GB/s as printed, and the reduction of a row.
Bandwidths: TypeAlias = tuple[float | None, float | None, str]


def collective_name(text: str) -> str:
    """Return ringnet's name of a collective, from a tool's spelling; empty for none that is known.

    >>> collective_name("all_reduce_perf"), collective_name("Allreduce"), collective_name("latency")
    ('all_reduce', 'all_reduce', '')
    >>> collective_name("all_reduce_perf_mpi"), collective_name("All-to-All Personalized Exchange")
    ('all_reduce', 'alltoall')
    """
    bare = text.lower().replace("mpi_", "").removesuffix("_mpi").removesuffix("_perf")
    bare = re.sub(r"[-_ ]", "", bare.removesuffix(" personalized exchange"))
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


def time_unit(stated: str, rows: Sequence[tuple[int, float | None, float]], notes: Notes) -> float:
    """Return seconds per unit of the times of a table: as its heading says, if size over algbw agrees.

    Parameters
    ----------
    stated : str
        ``us`` or ``ms``; empty where the heading does not say.
    rows : sequence of (int, float or None, float)
        Bytes, and algbw in GB/s and the time as printed.
    """
    ratios = [
        size / (algbw * 1e9 * time) for size, algbw, time in rows if algbw and time and algbw >= _TELLING
    ]
    if not ratios:
        if not stated:
            notes.say("no unit of time is stated, and no row tells it: microseconds are assumed")
        return _SECONDS[stated or "us"]
    implied = median(ratios)
    unit = next((name for name, s in _SECONDS.items() if abs(implied / s - 1) < _TOLERANCE), "")
    if not stated:
        notes.say(f"no unit of time is stated: {unit or 'us'}, as size over algbw says")
    elif unit not in ("", stated):
        notes.say(f"times are headed ({stated}), but size over algbw makes them {unit}: {unit} is taken")
    return _SECONDS[unit or stated or "us"]


def collective_and_workers(
    stated: str, n_stated: int | None, rows: Sequence[Bandwidths], notes: Notes
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
    collective = stated or _likely_collective(pairs, n_stated, redops, notes)
    return collective, _likely_workers(collective, n_stated, pairs, notes)


def _likely_collective(
    pairs: Sequence[tuple[float, float]], n: int | None, redops: set[str], notes: Notes
) -> str:
    """Return the collective whose busbw / algbw is the one that was printed."""
    moved = any(redop not in ("", "none") for redop in redops)
    names = ["all_reduce", "reduce_scatter", "reduce"] if moved else ["all_gather", "alltoall", "broadcast"]
    possible = {name: possible_workers(pairs, name) for name in names}
    fitting = [name for name in names if (n in possible[name] if n else possible[name])]
    if not pairs or not fitting:
        notes.say(f"the collective is not named, and the bandwidths do not tell it: {names[0]} is assumed")
        return names[0]
    notes.say(f"the collective is not named: {fitting[0]}, by busbw / algbw and the reduction")
    return fitting[0]


def _likely_workers(
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
    allowed = f", and busbw / algbw allows {possible[0]} to {possible[-1]}" if possible else ""
    notes.say(f"N is not in the log{allowed}: {ASKED}")
    return None
