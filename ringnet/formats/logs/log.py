"""What a log is, of any tool: text, measurements, remarks, and the names of collectives."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

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
    b"PK": "a zip archive",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_GZIP = b"\x1f\x8b"
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class LogText:
    """A file that is text, as far as it is read: bounded, unpacked from gzip, decoded, without colours.

    Parameters
    ----------
    path : Path
    encoding : str
    n_bytes : int
        Size of the whole text, as far as it is known without reading on: of one that is packed, up to a byte more
        than what is read.
    """

    path: Path
    encoding: str
    n_bytes: int

    @property
    def is_cut(self) -> bool:
        """Whether the text is longer than what is read of it."""
        return self.n_bytes > MOST_BYTES

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number of each line, from 1, and its text; long lines are cut."""
        # A carriage return overwrites what a progress bar wrote before it: both are lines here.
        content = self.content().replace("\r\n", "\n").replace("\r", "\n")
        for number, line in enumerate(content.split("\n"), 1):
            yield number, _ESCAPE.sub("", line[:_MOST_LINE])

    def content(self) -> str:
        """Return the whole text, as far as it is read."""
        return _read(self.path, MOST_BYTES).decode(self.encoding, errors="replace").lstrip("\ufeff")

    def sha256(self) -> str:
        """Return the hash of what is read of the text: packed or not, a log is the same."""
        return hashlib.sha256(_read(self.path, MOST_BYTES)).hexdigest()


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
        head, n_bytes = _read(path, _HEAD), path.stat().st_size
        if _is_packed(path):
            n_bytes = len(_read(path, MOST_BYTES + 1))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        message = f"the file is packed (gzip), and damaged: {error}"
        raise InputError(Fault(message, file=str(path), right="the log, unpacked")) from error
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=str(path))) from error
    return LogText(path, _encoding(path, head, n_bytes), n_bytes)


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def _read(path: Path, most: int) -> bytes:
    """Return the first bytes of a file, unpacked; a bomb is unpacked so far only."""
    with gzip.open(path) if _is_packed(path) else path.open("rb") as file:
        return file.read(most)


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
        raise InputError(Fault(f"the file is binary ({size}), not a log", file=str(path), right="text, CSV or JSON"))
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
    table : int
        Number of its table within the file, from 1.
    condition : str
        What the log says of how that table came to be: the launch, the environment, a heading; may be empty.
    is_n_sure : bool
        Whether N is stated, not what bandwidths leave.
    n_least : int
        N is this at least: the largest rank that is listed, and one more; 0 where none is.
    is_in_place, is_rescued : bool
        Whether ``time_s`` is the time in place: as asked, or as that out of place is an outlier.
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
    table: int = 1
    condition: str = ""
    is_n_sure: bool = True
    n_least: int = 0
    is_in_place: bool = False
    is_rescued: bool = False


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
            Remark(text if n == 1 else f"{text} (and {n - 1} more such)", lines[text]) for text, n in counts.items()
        )


# ---------------------------------------------------------------------------------------- names of collectives

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
ASKED = "say it by the number of workers"


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
