"""From a file to text, and from text to one line of a message: bounded both ways."""

from __future__ import annotations

import csv
import io
import os
import select
import stat
from pathlib import Path as FilePath

from ringnet.errors import Fault, InputError, closest

#: Longest value that a message shows whole.
SHOWN = 60
#: How long a pipe may be silent before it is given up.
PATIENCE_S = 10


def read_bounded(path: str | os.PathLike[str], most_bytes: int, what: str) -> bytes:
    """Read a file whole.

    Parameters
    ----------
    path : path
    most_bytes : int
        More than any such file has.
    what : str
        What it should be, for the message: ``a profile``.

    Raises
    ------
    InputError
        It cannot be read, or is too large.
    """
    file = one_line(os.fspath(path))
    try:
        content = _content(path, most_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            Fault(f"the file cannot be read: {reason}", file=file, nearest=_beside(path, error))
        ) from error
    if len(content) > most_bytes:
        right = f"at most {most_bytes:,} bytes"
        raise InputError(Fault(f"the file is too large for {what}", file=file, right=right))
    return content


def _beside(path: str | os.PathLike[str], error: Exception) -> str:
    """Return the file beside one that is not there whose name is nearly the same; empty if there is none."""
    wanted = FilePath(os.fspath(path))
    if not isinstance(error, FileNotFoundError) or not wanted.parent.is_dir():
        return ""
    found = closest(wanted.name, os.listdir(wanted.parent), alike=0.8)
    return one_line(os.fspath(wanted.with_name(found))) if found else ""


def _content(path: str | os.PathLike[str], n_bytes: int) -> bytes:
    """Return the first bytes of a file; of a pipe, what comes until it is closed, as long as something does."""
    if stat.S_ISSOCK(os.stat(path).st_mode):
        raise OSError(None, "this is a socket, not a file")
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as stream:
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            return stream.read(n_bytes)
        content, waiting = b"", select.poll()
        waiting.register(stream, select.POLLIN)
        while len(content) < n_bytes:
            if not waiting.poll(1000 * PATIENCE_S):
                raise OSError(None, f"nothing has come from this pipe for {PATIENCE_S} s")
            part = stream.read(n_bytes - len(content))
            if not part:
                break
            content += part
    return content


def decode(content: bytes, file: str) -> str:
    """Return the text of a file in UTF-8; `InputError` with line and byte where it is none."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message, value = (
            f"the file is not text in UTF-8 (byte {error.start})",
            f"0x{content[error.start]:02x}",
        )
        raise InputError(Fault(message, "", file, line, value, right="a file saved as UTF-8")) from error


def clip(text: str) -> str:
    r"""Make text fit for one line of a message.

    >>> clip("x" * 70) == "x" * 57 + "..."
    True
    >>> clip("a\nb")
    'a\\nb'
    """
    line = one_line(text[: SHOWN + 1])
    return line if len(line) <= SHOWN else line[: SHOWN - 3] + "..."


def read_csv(path: FilePath, most_bytes: int, what: str, right: str = "") -> list[tuple[int, list[str]]]:
    """Read a CSV file: its rows that are not empty, each with the line that it begins on; cells without outer blanks.

    Raises
    ------
    InputError
        As for `read_bounded`; it is no UTF-8, or no CSV, for which ``right`` says what would be.
    """
    text = decode(read_bounded(path, most_bytes, what), str(path))
    reader, rows, line = csv.reader(io.StringIO(text), strict=True), [], 1
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                rows.append((line, [cell.strip() for cell in cells]))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(Fault(f"the file is no CSV: {error}", file=str(path), right=right)) from error
    return rows


def one_line(text: str) -> str:
    """Return text with whatever cannot be printed written as an escape."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
