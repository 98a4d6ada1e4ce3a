"""Options that several commands have, each with the words that ``--help`` has for it, and how their values are read.

What reads a scenario is imported when one is read: commands that read none start in half the time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ringnet.errors import Fault, InputError, unknown
from ringnet.reporting.atomic import MANIFEST, PAGE
from ringnet.reporting.look import FORMATS, MOST_IN_FILM
from ringnet.units import parse_quantity

if TYPE_CHECKING:
    from ringnet.scenario import Scenario

ScenarioFile = Annotated[
    Path,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario in YAML, - for standard input, or a folder of results to run again.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key: network.latency='5 us'. May be repeated."),
]
WhatIfs = Annotated[
    list[str] | None,
    typer.Option(
        "--if",
        metavar="KEY=VALUE",
        help="What if: 'network.links.0->1.bandwidth=50 GB/s', several keys with `and` between. May be repeated.",
    ),
]
AllowOutside = Annotated[
    bool, typer.Option("--allow-outside", help="Let the scenario name data files outside its folder.")
]
AllowPython = Annotated[
    bool,
    typer.Option("--allow-python", help="Run the Python function that the scenario names as its algorithm."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
Plots = Annotated[bool, typer.Option(help="Draw the plots.")]
Html = Annotated[
    str | None,
    typer.Option(metavar="[FILE.html]", help="Write one page of it all, too: report.html in the folder, or this file."),
]
Formats = Annotated[
    list[str] | None,
    typer.Option("--format", metavar="pdf|svg|png", help="Write plots as these; the scenario says, or png,svg."),
]
Film = Annotated[
    Path | None,
    typer.Option("--animate", metavar="FILE", help="Make a film of a run of up to 16 workers: ring.gif, ring.mp4."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute points again that an earlier run kept.")]
Cache = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where finished points are kept; ~/.cache/ringnet/points otherwise."),
]

# Of compare and numerics.
Algorithms = Annotated[
    list[str] | None, typer.Option(metavar="all|A,B", help="What to compare; the scenario says, or all.")
]
WorkerCounts = Annotated[
    list[str] | None,
    typer.Option("--workers", metavar="N,N", help="Numbers of workers; the scenario's otherwise."),
]
StudyFolder = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Where tables and plots go; reports/NAME-COMMAND otherwise."),
]
Processes = Annotated[
    int | None,
    typer.Option("--jobs", min=1, metavar="N", help="Processes at once; all cores otherwise, if memory allows."),
]

# Of logs and calibrate.
Logs = Annotated[list[Path], typer.Argument(metavar="FILE", help="Logs of nccl-tests, rccl-tests, OSU, or CSV.")]
WorkersOfLogs = Annotated[
    list[str] | None,
    typer.Option(
        "--workers",
        metavar="N",
        help="How many workers, where a log does not say: 8, of one of several FILE=8, of its second table FILE#2=8.",
    ),
]
NodesOfLogs = Annotated[
    list[str] | None,
    typer.Option(
        "--nodes",
        metavar="M",
        help="On how many nodes, where a log does not say: 2, of one of several FILE=2, of its second table FILE#2=2.",
    ),
]
TablesOfLogs = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="TABLE",
        help="Only this table of a log: its number as `ringnet logs` has it, or words of its condition; "
        "of one of several FILE=2.",
    ),
]
InPlace = Annotated[
    bool, typer.Option("--in-place", help="Take times in place, where there are any, for those out of place.")
]

#: Most workers of a study, as of a scenario.
MOST_WORKERS = 2**20
SIZES_RIGHT = "1KiB..1GiB, or 4 KiB,1 MiB"


Asked = TypeVar("Asked")


def asking(kind: type[Asked]) -> Callable[[Callable[[Asked], int]], Callable[..., int]]:
    """Make the fields of a dataclass the options of a command, which gets them all as one object."""

    def of_fields(command: Callable[[Asked], int]) -> Callable[..., int]:
        return with_signature(lambda **given: command(kind(**given)), signature(kind, eval_str=True), command.__doc__)

    return of_fields


def with_signature(command: Callable[..., int], parameters: Signature, about: str | None) -> Callable[..., int]:
    """Return a command with the options that the command line shall read off it, and what ``--help`` says."""
    command.__signature__ = parameters  # type: ignore[attr-defined]
    command.__doc__ = about
    return command


def read_scenario(
    path: Path, overrides: Sequence[str] | None, allow_outside: bool, allow_python: bool = False
) -> Scenario:
    """Read a scenario file, or from a folder of results (or its ``run.json``) the scenario to run again.

    Raises
    ------
    InputError
        With every mistake in it.
    """
    from ringnet.scenario import load, loads  # noqa: PLC0415

    changes = overrides or ()
    if not path.is_dir() and path.name != MANIFEST:
        return load(path, changes, allow_outside=allow_outside, allow_python=allow_python)
    from ringnet.reporting.storage import read_manifest  # noqa: PLC0415 -- brings pandas, which a check does without

    folder = path if path.is_dir() else path.parent
    info = read_manifest(folder)
    found = loads(
        json.dumps(info["scenario"]),
        changes,
        file=str(folder / MANIFEST),
        folder=folder / info.get("data_folder", "."),
        allow_outside=allow_outside,
        allow_python=allow_python,
    )
    return found.with_notes(changed_files(found, info))


def with_formats(overrides: Sequence[str] | None, texts: Sequence[str] | None) -> list[str]:
    """Return the changes of a scenario, with the formats of figures that ``--format`` asks for.

    Raises
    ------
    InputError
        With every one that there is not.
    """
    return [*(overrides or ()), *([f"report.figure.format={json.dumps(formats_of(texts))}"] if texts else ())]


def formats_of(texts: Sequence[str]) -> list[str]:
    """Return formats of figures, each once; `InputError` for those that there are not."""
    names = values_of(texts, "--format")
    refuse(
        unknown("there is no such format of figures", name, FORMATS, "--format")
        for name in names
        if name not in FORMATS
    )
    return list(dict.fromkeys(names))


def check_film(path: Path | None, n_workers: int = 1) -> None:
    """Refuse, before any work is done, a film that could not be made; `InputError` says why."""
    if path is None:
        return
    ending = path.suffix.lower()
    if ending not in (".gif", ".mp4"):
        raise InputError(Fault("a film is a GIF or an MP4", "--animate", value=str(path), right="ring.gif, ring.mp4"))
    if n_workers > MOST_IN_FILM:
        message, right = f"a film shows up to {MOST_IN_FILM} workers", f"--set workers={MOST_IN_FILM}"
        raise InputError(Fault(message, "--animate", value=str(n_workers), right=right))
    if ending == ".mp4" and shutil.which("ffmpeg") is None:
        right = f"{path.with_suffix('.gif').name}, or install ffmpeg"
        raise InputError(
            Fault("an MP4 is made by ffmpeg, which is not here", "--animate", value=str(path), right=right)
        )


def changed_files(scenario: Scenario, info: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each file that is not what it was when results were written: a run of it is another run."""
    before = info.get("data_sha256", {})
    now = scenario.inputs() if before else {}
    return [
        f"{name} has changed since these results were written: what is said now is of the new content"
        for name, content in now.items()
        if before.get(name, content) != content
    ]


def changed_reader(
    path: Path, overrides: Sequence[str] | None, allow_outside: bool, allow_python: bool
) -> Callable[[Sequence[str]], Scenario]:
    """Return what reads a scenario with some more changes; a change counts in place of a ``--set`` of the same key."""

    def read(changes: Sequence[str]) -> Scenario:
        keys = {one.partition("=")[0].strip() for one in changes}
        kept = [one for one in overrides or () if one.partition("=")[0].strip() not in keys]
        return read_scenario(path, [*kept, *changes], allow_outside, allow_python)

    return read


def file_name(name: str) -> str:
    """Turn the name of a scenario into the name of a folder.

    >>> file_name("time against N, 1 MiB"), file_name("../.."), file_name("slow_link.v2")
    ('time-against-N-1-MiB', 'run', 'slow_link.v2')
    """
    return re.sub(r"[^\w.]+", "-", name).strip("-.") or "run"


def page_of(html: str | None, folder: Path) -> Path | None:
    """Return where a page goes: nowhere unless it is asked for, into the folder unless a file elsewhere is named.

    Raises
    ------
    InputError
        A name that no page has.
    """
    if not html:
        return None if html is None else folder / PAGE
    page = Path(html)
    is_inside = os.path.realpath(page.parent) == os.path.realpath(folder)
    if page.suffix != ".html":
        raise InputError(Fault("a page is a file that ends in .html", "--html", value=html, right=PAGE))
    if is_inside and page.name != PAGE:
        raise InputError(Fault("a page in the folder of the results has its name", "--html", value=html, right=PAGE))
    return folder / PAGE if is_inside else page


@contextmanager
def placing_at(option: str) -> Iterator[None]:
    """Name the option in faults that say no place."""
    try:
        yield
    except InputError as error:
        faults = [replace(fault, path=fault.path or option) for fault in error.faults]
        raise InputError(*faults) from error


def refuse(faults: Iterable[Fault]) -> None:
    """Raise `InputError` if there are any faults."""
    if found := list(faults):
        raise InputError(*found)


#: A number whose commas can only part its thousands: of two numbers no second one begins with a zero.
_THOUSANDS = re.compile(r"(\d{1,3}(?:,\d{3})*,0\d\d(?:,\d{3})*)(?![\d.])")


def values_of(texts: Sequence[str], option: str) -> list[str]:
    """Return the values of an option that takes several: with commas between them, or the option again.

    Raises
    ------
    InputError
        A comma stands for thousands, or nothing stands beside one.

    Examples
    --------
    >>> values_of(["ring, direct", "swing"], "--algorithms")
    ['ring', 'direct', 'swing']
    """
    refuse(
        Fault("a comma parts two values", option, value=found, right=found.replace(",", ""))
        for text in texts
        for found in _THOUSANDS.findall(text)
    )
    values = [value.strip() for text in texts for value in text.split(",")]
    if not all(values):
        right = f"{option} {','.join(filter(None, values)) or 'A,B'}"
        raise InputError(Fault("a value is missing", option, value=repr(",".join(texts)), right=right))
    return values


def worker_counts_of(texts: Sequence[str], least: int = 1) -> list[int]:
    """Return numbers of workers, each once, ascending; `InputError` for each that is unreadable or below ``least``."""
    values = values_of(texts, "--workers")
    right = f"4,8,16: each from {least} to {MOST_WORKERS:,}"
    refuse(
        Fault("this is no number of workers", "--workers", value=value, right=right)
        for value in values
        if not _is_count(value, least)
    )
    return sorted(set(map(int, values)))


def _is_count(text: str, least: int) -> bool:
    known = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_WORKERS))
    return known and least <= int(text) <= MOST_WORKERS


def sizes_of(texts: Sequence[str], factor: int = 2, least: int = 0) -> list[int]:
    """Return message sizes in bytes: single ones and ranges, in the order in which they are written.

    Parameters
    ----------
    texts : sequence of str
        Sizes and ranges with commas between them.
    factor : int
        From one size of a range to the next; the upper end belongs to it where it is hit.
    least : int
        Bytes of the smallest message that makes sense.

    Raises
    ------
    InputError
        A size cannot be read or is too small, or a range runs downwards or starts at zero.

    Examples
    --------
    >>> sizes_of(["1KiB..8KiB, 1MiB"])
    [1024, 2048, 4096, 8192, 1048576]
    """
    if factor < 2:  # noqa: PLR2004 -- below, a range would not grow
        raise InputError(Fault("must be at least 2", "--factor", value=str(factor), right="2"))
    sizes = [size for value in values_of(texts, "--sizes") for size in _range(value, factor)]
    message = f"a message has {least} byte(s) at least"
    refuse(Fault(message, "--sizes", value=f"{size} B", right=SIZES_RIGHT) for size in sizes if size < least)
    return sizes


def _range(text: str, factor: int) -> Iterator[int]:
    first, dots, last = text.partition("..")
    if dots and not (first and last):
        raise InputError(Fault("a range of sizes has two ends", "--sizes", value=text, right=SIZES_RIGHT))
    size = _size(first)
    end = _size(last) if dots else size
    if end < size or (dots and not size):
        message = "a range of sizes starts above zero and runs upwards"
        raise InputError(Fault(message, "--sizes", value=text, right=SIZES_RIGHT))
    yield size
    while size and (size := size * factor) <= end:
        yield size


def _size(text: str) -> int:
    try:
        return parse_quantity(text.strip(), "bytes", is_count=True)
    except InputError as error:
        faults = (Fault(fault.message, "--sizes", value=fault.value, right=SIZES_RIGHT) for fault in error.faults)
        raise InputError(*faults) from error
