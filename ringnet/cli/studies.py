"""What the commands of many simulations share: their options, progress, what is kept and written, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, TypeVar

from ringnet.cli import options
from ringnet.cli.printing import complain, note, print_json, print_table, sweep_progress
from ringnet.cli.targets import check_targets, sources_of
from ringnet.errors import StudyError
from ringnet.reporting.atomic import PAGE
from ringnet.reporting.storage import write_report, write_study
from ringnet.reporting.text import written
from ringnet.scenario import Scenario
from ringnet.study.cost import default_cache_dir
from ringnet.study.outcome import Outcome
from ringnet.study.parts import PartOptions, named_algorithms
from ringnet.study.points import run_info

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
A = TypeVar("A", bound="StudyOptions")


@dataclass(frozen=True)
class StudyOptions:
    """The options that all studies have; ``--help`` tells a study's own between ``--set`` and the others.

    What a subclass has beside them are options of its own; a field that it has, too, is told in its words.
    """

    command: str
    source: options.ScenarioFile
    overrides: options.Overrides = None
    out: options.StudyFolder = None
    json: options.Json = False
    quiet: options.Quiet = False
    plots: options.Plots = True
    formats: options.Formats = None
    html: options.Html = None
    processes: options.Processes = None
    fresh: options.Fresh = False
    cache: options.Cache = None
    allow_outside: options.AllowOutside = False
    allow_python: options.AllowPython = False

    def read(self, changes: Sequence[str] = ()) -> Scenario:
        """Read the scenario; some more changes count in place of a ``--set`` of the same key."""
        given = options.with_formats(self.overrides, self.formats)
        return options.changed_reader(self.source, given, self.allow_outside, self.allow_python)(changes)

    def folder(self, scenario: Scenario) -> Path:
        """Return where it goes: ``reports/<name>-<command>`` unless the user says otherwise."""
        return self.out or Path("reports") / f"{options.file_name(scenario.name)}-{self.command}"

    def check(
        self, scenario: Scenario, files: Mapping[str, Path | None] | None = None, read: Iterable[Path] = ()
    ) -> None:
        """Refuse, before any work is done, targets that would take something with them; see `check_targets`."""
        folder = self.folder(scenario)
        page = options.page_of(self.html, folder)
        outputs = {**(files or {}), "--html": page if page != folder / PAGE else None}
        check_targets(outputs, [*sources_of(scenario, self.source), *read], {"--out": folder})

    def write(
        self,
        scenario: Scenario,
        tables: Mapping[str, pd.DataFrame],
        notes: Sequence[str],
        *,
        seed: int | None = None,
        compared: Mapping[str, Any] | None = None,
        **info: Any,
    ) -> list[tuple[str, str]]:
        """Write tables, plots, ``run.json`` and a page that is asked for; return the lines that say so.

        Parameters
        ----------
        scenario : Scenario
        tables : mapping of str to DataFrame
        notes : sequence of str
        seed : int or None
            Of what was drawn at random.
        compared : mapping or None
            ``compare`` of the scenario as options changed it, so that the folder can be run again.
        **info
            More for ``run.json``.
        """
        folder = self.folder(scenario)
        info = run_info(scenario, folder, seed, notes) | info
        info["scenario"] |= {"compare": compared} if compared else {}
        files = write_study(folder, info, tables, plots=self.plots, look=scenario.report.figure.look)
        lines = [("written", written(files.folder, files.files))]
        if page := options.page_of(self.html, folder):
            lines.append(("page", str(write_report(folder, page))))
        return lines


def study(command: Callable[Concatenate[A, ...], int]) -> Callable[..., int]:
    """Give a command the options that all studies have around its own: it gets them as `StudyOptions`."""
    name = command.__module__.rpartition(".")[2]
    first, *own = signature(command, eval_str=True).parameters.values()
    _, *asked_for = signature(first.annotation, eval_str=True).parameters.values()
    shared = {one.name for one in fields(StudyOptions)}
    own += [one for one in asked_for if one.name not in shared]
    source, overrides, *others = [one for one in asked_for if one.name in shared]

    def with_all(**given: Any) -> int:
        asked = first.annotation(name, **{one.name: given.pop(one.name) for one in asked_for})
        return command(asked, **given)

    return options.with_signature(with_all, Signature([source, overrides, *own, *others]), command.__doc__)


def asked_algorithms(texts: Sequence[str] | None) -> str | list[str] | None:
    """Return the algorithms of ``--algorithms``; see `named_algorithms`."""
    names = options.values_of(texts, "--algorithms") if texts else None
    return named_algorithms("all" if names == ["all"] else names)


def compared(scenario: Scenario, algorithms: str | list[str] | None, workers: list[int] | None) -> dict[str, Any]:
    """Return ``compare`` of the scenario as the options changed it."""
    said = scenario.compare.model_dump(mode="json", exclude_none=True) if scenario.compare else {}
    given = {"algorithms": algorithms, "workers": workers}
    return {"algorithms": "all"} | said | {key: value for key, value in given.items() if value is not None}


def carried_through(
    n_parts: int,
    run: Callable[[PartOptions], T],
    asked: StudyOptions,
    stops: type[BaseException] | tuple[type[BaseException], ...] = KeyboardInterrupt,
) -> tuple[T, tuple[str, str]]:
    """Run ``n_parts`` at most, with progress on a terminal; what is finished is kept, whatever becomes of the rest.

    What ``stops`` it leaves it to be gone on with, and that is said.

    Returns
    -------
    found
        What ``run`` returns.
    points : tuple of str
        A line for a person: how many points there were, and how many of them an earlier run had kept.
    """
    n_finished = n_kept = 0
    with sweep_progress(n_parts, asked.quiet or asked.json) as watch:

        def count(outcome: Outcome) -> None:
            nonlocal n_finished, n_kept
            n_finished += 1
            n_kept += not outcome.computed
            watch.on_result(outcome)

        how = PartOptions(asked.processes, asked.cache or default_cache_dir(), asked.fresh, count, watch.say)
        try:
            found = run(how)
        except stops:
            watch.say(f"{n_finished} of {n_parts} points are finished and kept: run it again to go on")
            raise
    computed = f"{n_finished - n_kept} computed, {n_kept} kept from an earlier run"
    return found, ("points", f"{n_finished}: {computed}")


def told(
    asked: StudyOptions,
    document: Callable[[], Mapping[str, Any]],
    show: Callable[[], None],
    lines: Sequence[tuple[str, str]],
    *,
    notes: Iterable[str],
    failed: Iterable[str] = (),
) -> int:
    """Tell what came of a study, as one JSON object or to a person, then what is to be known; return the exit code."""
    if asked.json:
        print_json(document())
    elif not asked.quiet:
        show()
        print_table(lines)
    note(*notes, quiet=asked.quiet)
    for sentence in failed:
        complain(sentence)
    return StudyError.exit_code if failed else 0


def records(table: pd.DataFrame) -> list[dict[str, object]]:
    """Return the rows of a table as plain data, with None for an empty cell."""
    plain = table.astype(object).where(table.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in plain.to_dict("records")]
