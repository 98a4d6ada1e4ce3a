"""A log as lines of text, from a file of any kind and size: bounded, decoded, without colours."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ringnet.errors import Fault, InputError
from ringnet.units import format_bytes

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
class Text:
    """A file that is text, as far as it is read.

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
    _digest: list[str] = field(default_factory=list, repr=False)

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


def open_text(path: Path) -> Text:
    """Find out whether a file is text, without reading all of it.

    Raises
    ------
    InputError
        It cannot be read, is empty or is binary; says which.
    """
    if path.is_dir():
        raise InputError(Fault("this is a folder, not a log", file=str(path), right="one or more files"))
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            n_bytes = path.stat().st_size
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=str(path))) from error
    return Text(path, _encoding(path, head, n_bytes), n_bytes)


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
