"""Text or file to a `Scenario`, or to every mistake in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from math import prod
from pathlib import Path as FilePath

from pydantic import ValidationError

from ringnet.documents.document import Document, Mark, is_within, key_path, path_text
from ringnet.documents.text import clip, decode
from ringnet.documents.yaml_text import SCENARIO, read_text, read_yaml
from ringnet.errors import Fault, InputError
from ringnet.scenario.build.include import INCLUDE, included
from ringnet.scenario.build.overrides import override
from ringnet.scenario.build.resolve import in_order, nonsense_on_the_way
from ringnet.scenario.build.scenario import MadeFrom, Scenario, single
from ringnet.scenario.build.sweep import SECTIONS, Axis, first_values, grid, read_axes, with_values
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.keys.faults import translate
from ringnet.scenario.keys.model import SweepKeys

#: What stands for a file on the command line.
STANDARD_INPUT = "-"
#: Points of a sweep that are all checked when it is loaded; of a larger one, each value once.
CHECKED_POINTS = 10_000


def load(
    path: str | os.PathLike[str],
    overrides: Sequence[str] = (),
    *,
    allow_outside: bool = False,
    allow_python: bool = False,
) -> Scenario:
    """Read a scenario file.

    Parameters
    ----------
    path : path
        YAML, in UTF-8; ``-`` for standard input, whose files are those of the folder one is in.
    overrides : sequence of str
        ``path.key=value`` each, as for ``--set``: see `overrides.override`.
    allow_outside : bool
        Whether the scenario may name files outside its own folder.
    allow_python : bool
        Whether a Python function that it names as its algorithm may be run: it may do whatever you may.

    Returns
    -------
    Scenario
        With ``notes`` on keys that an override or a sweep orphaned.

    Raises
    ------
    InputError
        With every mistake at once, each with file, line, path, value, and what would be right.
    """
    if os.fspath(path) == STANDARD_INPUT:
        here = ScenarioFolder(FilePath().absolute(), allow_outside, allow_python)
        return _interpret(_standard_input(), overrides, "<stdin>", "stdin", here)
    file = FilePath(path)
    home = ScenarioFolder(file.absolute().parent, allow_outside, allow_python)
    return _interpret(read_text(path), overrides, os.fspath(path), file.stem, home)


@cache
def _standard_input() -> str:
    """Return what comes over standard input, once: some commands read a scenario again, with other settings."""
    content = sys.stdin.buffer.read(SCENARIO.n_bytes + 1)
    if len(content) > SCENARIO.n_bytes:
        right = f"at most {SCENARIO.n_bytes:,} bytes"
        raise InputError(Fault("the text is too large for a scenario", file="<stdin>", right=right))
    return decode(content, "<stdin>")


def loads(
    text: str,
    overrides: Sequence[str] = (),
    *,
    file: str = "<text>",
    folder: str | os.PathLike[str] = ".",
    allow_outside: bool = False,
    allow_python: bool = False,
) -> Scenario:
    """Read the text of a scenario; ``file`` stands in messages, names of data files start in ``folder``.

    Examples
    --------
    >>> scenario = loads(
    ...     "{scenario_version: 1, workers: 4, message: 1 KiB, network: {bandwidth: 50 GB/s, latency: 5 us}}",
    ...     ["message=1 MiB"],
    ... )
    >>> scenario.message_bytes, scenario.network.latency_s
    (1048576, 5e-06)
    """
    home = ScenarioFolder(FilePath(folder).absolute(), allow_outside, allow_python)
    return _interpret(text, overrides, file, "scenario", home)


def _interpret(text: str, overrides: Sequence[str], file: str, name: str, home: ScenarioFolder) -> Scenario:
    document, faults = read_yaml(text, file)
    document, unfound = included(document, home, file)
    faults += unfound
    document, notes, wrong = override(document, overrides)
    if not document.has(("name",)):
        document = document.put(("name",), clip(name), {(): Mark(file)})
    if document.has(INCLUDE):
        message, right = "files are included before --set counts", "include in the file"
        wrong.append(document.fault(INCLUDE, message, right=right))
        document = document.drop([INCLUDE])
    sweep, axes, unreadable = _sweep_of(document)
    values = first_values(axes)
    wrong += [fault for value in values for fault in nonsense_on_the_way(document, value.path)]
    base = _without_sweep(document, sweep is None)
    first, orphaned, found = _try(_probes(base, axes), home)
    faults = in_order([*faults, *wrong, *unreadable, *found])
    if faults or first is None:
        raise InputError(*faults)
    notes = list(dict.fromkeys([*notes, *_shadowed(base, axes), *orphaned]))
    return first.with_origin(MadeFrom(base if axes else first.base, axes, home, tuple(notes)), sweep)


def _sweep_of(document: Document) -> tuple[SweepKeys | None, tuple[Axis, ...], list[Fault]]:
    given = document.get(("sweep",))
    if given is None or any(is_within(path, ("sweep",)) for path in document.broken):
        return None, (), []
    try:
        sweep = SweepKeys.model_validate(given)
        return sweep, read_axes(sweep, document), []
    except ValidationError as error:
        return None, (), list(translate(error, document, ("sweep",)).values())
    except InputError as error:
        return None, (), list(error.faults)


def _without_sweep(document: Document, is_unread: bool) -> Document:
    """Return the plain keys; those of a sweep that cannot be read are broken, so that nobody misses them."""
    base = document.drop([("sweep",)])
    axes = (document.get(("sweep", section)) for section in SECTIONS)
    swept = {key_path(key, document.data) for keys in axes if isinstance(keys, dict) for key in keys}
    return replace(base, broken=base.broken | swept) if is_unread else base


def _shadowed(base: Document, axes: Sequence[Axis]) -> list[str]:
    """Keys that stand beside a sweep over them."""
    paths = [value.path for value in first_values(axes) if base.has(value.path)]
    return [f"{path_text(path)}: left out, the sweep gives it" for path in paths]


def _probes(base: Document, axes: Sequence[Axis]) -> Iterator[Document]:
    """Every point of a sweep, or every value once with the first ones of the other keys."""
    if prod(len(axis.rows) for axis in axes) <= CHECKED_POINTS:
        return (document for document, _ in grid(base, axes))
    first = with_values(base, first_values(axes))
    return chain([first], (with_values(first, row) for axis in axes for row in axis.rows[1:]))


def _try(
    documents: Iterable[Document], home: ScenarioFolder
) -> tuple[Scenario | None, list[str], list[Fault]]:
    """Read every point: the first that is right, the notes and the faults of all."""
    first: Scenario | None = None
    notes: list[str] = []
    faults: list[Fault] = []
    for document in documents:
        try:
            point = single(document, home)
        except InputError as error:
            faults += error.faults
        else:
            first = first or point
            notes += point.notes
    return first, notes, faults
