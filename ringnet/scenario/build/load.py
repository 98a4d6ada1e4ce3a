"""Text, file or keywords to a `Scenario`, or to every mistake in it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path as FilePath
from typing import Any

from ringnet.collectives import Schedule
from ringnet.documents.text import SHOWN, decode
from ringnet.documents.yaml_text import SCENARIO, read_text, read_yaml
from ringnet.errors import Fault, InputError
from ringnet.scenario.build.include import included
from ringnet.scenario.build.interpret import interpret
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.keys.model import VERSIONS

#: What stands for a file on the command line.
STANDARD_INPUT = "-"
#: XML whose outermost element is that of an MSCCL schedule, whatever stands before it.
_SCHEDULE = re.compile(r"\s*+(?:(?><\?.*?\?>|<!--.*?-->)\s*+)*+<algo\b", re.DOTALL)
_OTHERWISE = "load(path), loads(text), or Scenario.from_dict(mapping)"


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
        ``path.key=value`` each, as for ``--set``: see `ringnet.scenario.build.interpret.override`.
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
    if not isinstance(path, str | os.PathLike):
        raise InputError(Fault("this is no path of a scenario", value=type(path).__name__, right=_OTHERWISE))
    if os.fspath(path) == STANDARD_INPUT:
        here = ScenarioFolder(FilePath().absolute(), allow_outside, allow_python)
        return _read(_standard_input(), overrides, "<stdin>", "stdin", here)
    file = FilePath(path)
    home = ScenarioFolder(file.absolute().parent, allow_outside, allow_python)
    return _read(read_text(path), overrides, os.fspath(path), file.stem, home)


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
    if not isinstance(text, str | bytes):
        raise InputError(Fault("this is no text of a scenario", value=type(text).__name__, right=_OTHERWISE))
    home = ScenarioFolder(FilePath(folder).absolute(), allow_outside, allow_python)
    return _read(text, overrides, file, "scenario", home)


def _read(text: str, overrides: Sequence[str], file: str, name: str, home: ScenarioFolder) -> Scenario:
    given = [overrides] if isinstance(overrides, str) else overrides
    first = text.lstrip()[:SHOWN].partition("\n")[0] if isinstance(text, str) else ""
    if first.startswith("<"):
        is_schedule = _SCHEDULE.match(text)
        right = f"algorithm: {{file: {file}}} in a scenario" if is_schedule else f"ringnet network {file}"
        raise InputError(Fault("this is XML, no scenario", "", file, 1, first, right))
    document, faults = read_yaml(text, file)
    if not document.has(("scenario_version",)):
        from ringnet.formats.profiles import KEY as PROFILE  # noqa: PLC0415 -- of a mistake only: it brings calibration

        if document.has((PROFILE,)):
            right = f"ringnet predict {file}, or network: {{link: {{file: {file}}}}} in a scenario"
            raise InputError(document.fault((PROFILE,), "this is a profile, no scenario", right=right))
    document, unfound = included(document, home, file)
    return Scenario.made(interpret(document, given, name, home, [*faults, *unfound], file))


#: Keys that a schedule says itself.
SAID_BY_SCHEDULE = ("algorithm", "collective", "workers")


def scenario(
    schedule: Schedule | None = None,
    /,
    *,
    folder: str | os.PathLike[str] = ".",
    allow_outside: bool = False,
    allow_python: bool = False,
    **keys: Any,
) -> Scenario:
    """Return the scenario that keywords are, with the same checks as a file.

    Parameters
    ----------
    schedule : Schedule, optional
        Who sends what to whom, in place of the keys ``algorithm``, ``collective`` and ``workers``: one of your own, as
        `ringnet.make_schedule` returns it.
    folder : path
        Where names of files start.
    allow_outside, allow_python : bool
        As for `ringnet.load`.
    **keys
        The keys of a scenario; what is a mapping in YAML is one here. ``scenario_version`` may be left out.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        With every mistake at once, each with its path.

    Examples
    --------
    >>> import ringnet
    >>> ringnet.scenario(workers=8, message="64 MiB", network={"bandwidth": "50 GB/s", "latency": "5 us"})
    <Scenario scenario: ring all-reduce, 8 workers, 64 MiB, ring network>
    """
    if schedule is not None:
        keys = keys | _keys_of(schedule, keys)
    home = ScenarioFolder(FilePath(folder).absolute(), allow_outside, allow_python, schedule)
    return Scenario.of_data({"scenario_version": VERSIONS[-1], **keys}, home)


def _keys_of(schedule: object, keys: dict[str, Any]) -> dict[str, Any]:
    """Return the keys that a schedule says; `InputError` where it is none, or where they are given too."""
    if not isinstance(schedule, Schedule):
        right = "a ringnet.Schedule, or the keys of a scenario by name: workers=8, message='64 MiB'"
        raise InputError(Fault("this is no schedule", value=type(schedule).__name__, right=right))
    twice = [
        Fault("the schedule says this itself", key, right="leave the key out")
        for key in SAID_BY_SCHEDULE
        if key in keys
    ]
    if twice:
        raise InputError(*twice)
    # A colon would part a file and a function.
    name = str(schedule.algorithm).replace(":", "-")
    return {
        "algorithm": {"python": name},
        "collective": schedule.collective,
        "workers": schedule.n_workers,
    }
