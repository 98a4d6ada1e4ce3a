"""``ringnet run``: one run or a sweep, from the scenario to what is written and printed."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Annotated

import typer

from ringnet.analysis.answer import answer
from ringnet.analysis.result import RunResult
from ringnet.analysis.routes import top_talkers
from ringnet.cli import options
from ringnet.cli.printing import complain, note, print_json, print_table, run_progress, say
from ringnet.cli.studies import StudyOptions, carried_through, study
from ringnet.cli.targets import check_saved, sources_of
from ringnet.errors import Fault, InputError, StudyError, VerificationError
from ringnet.reporting.atomic import save_outputs
from ringnet.reporting.plots import film_to
from ringnet.reporting.results import ResultLike, collect
from ringnet.reporting.storage import Written, write_results
from ringnet.reporting.text import job_lines, sweep_table, written
from ringnet.runs.advice import idle_advice, route_advice
from ringnet.runs.memory import require_memory
from ringnet.runs.notes import order_advice
from ringnet.runs.parts import RunParts, build
from ringnet.runs.simulate import simulate
from ringnet.scenario import Scenario, SweepPoint
from ringnet.scenario.build.interpret import CHECKED_POINTS
from ringnet.scenario.drawn import what_is_drawn
from ringnet.study.cost import beside_bytes, in_words, learn, n_cores, run_s, sweep_s
from ringnet.study.outcome import Outcome, wrong_sum
from ringnet.study.parts import PartOptions
from ringnet.study.points import run_info, run_points
from ringnet.study.repeat import n_blocks, repeats, simulate_all, times_of, with_all_runs

if TYPE_CHECKING:
    from ringnet.study.whatif import Changed

EXAMPLE = "ringnet run scenario.yaml --set message='1 GiB' --set workers=16"

#: Points of a sweep that runs unasked.
MOST_UNASKED = 10_000
#: Rows and errors of a sweep that a person is shown; the table on disk has all of them.
SHOWN_ROWS = 40
SHOWN_ERRORS = 10
#: Share of the time in queues from which another order of the ring is looked for.
WORTH_ADVICE = 0.1


@dataclass(frozen=True)
class RunCommandOptions(StudyOptions):
    """What is asked of a run beside what is asked of every study."""

    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where tables and plots go; reports/NAME otherwise.")
    ] = None
    changes: options.WhatIfs = None
    film: options.Film = None
    save_result: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Save the verified result: a folder, or a name in .npy."),
    ] = None
    transfers: Annotated[
        str | None,
        typer.Option(metavar="all|N", help="Keep a row for each transfer, all or up to N; 200000 otherwise."),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(metavar="tcp://HOST:PORT", help="Run the points of a sweep on this Dask cluster."),
    ] = None
    yes: Annotated[bool, typer.Option("--yes", help="Run a very large sweep unasked.")] = False

    def folder(self, scenario: Scenario) -> Path:
        """Return where the results go: ``reports/<name>`` unless the user says otherwise."""
        return self.out or Path("reports") / options.file_name(scenario.name)

    def unused(self, scenario: Scenario) -> Iterator[str]:
        """Yield a sentence for each option that this scenario does not read.

        Raises
        ------
        InputError
            One asks for something that would not be written.
        """
        if scenario.compare is not None:
            yield "compare is not used: `ringnet compare` reads it"
        if scenario.step is not None:
            yield "step is not used: `ringnet step` reads it; this is all of its gradients in one collective"
        if scenario.sweep is None and not repeats(scenario):
            for option in _given({"--jobs": self.processes, "--fresh": self.fresh, "--cache": self.cache}):
                yield f"{option} is not used: this scenario is a single run"
        if scenario.sweep is None:
            self._refuse({"--cluster": self.cluster}, "a sweep, and this scenario is a single run")
        else:
            single = {
                "--save-result": self.save_result,
                "--transfers": self.transfers,
                "--animate": self.film,
            }
            self._refuse(single, "a single run, and this scenario is a sweep")
        if self.cluster and self.processes:
            yield "--jobs is not used: the cluster says how many points run at once"
        if self.save_result and scenario.payload != "full":
            message = "the result is whole only when all of it is carried"
            raise InputError(
                Fault(message, "--save-result", value=f"payload: {scenario.payload}", right="payload: full")
            )

    def check_targets(self, scenario: Scenario) -> None:
        """Refuse, before any work is done, to write where something would be lost; see `targets.check_targets`."""
        result = self.save_result
        is_file = result is not None and result.suffix == ".npy"
        self.check(scenario, {"--save-result": result if is_file else None, "--animate": self.film})
        options.check_film(self.film, scenario.workers)
        if result is not None and not is_file:
            check_saved(result, self.folder(scenario), sources_of(scenario, self.source))

    @staticmethod
    def _refuse(given: Mapping[str, object], only_for: str) -> None:
        options.refuse(Fault(f"this option is for {only_for}", option) for option in _given(given))


def _given(values: Mapping[str, object]) -> list[str]:
    return [option for option, value in values.items() if value]


@study
def command(asked: RunCommandOptions) -> int:
    """Simulate a scenario: print the answer, write tables and plots."""
    if asked.transfers and asked.transfers != "all" and not asked.transfers.isdecimal():
        message, right = "all or a whole number is wanted", "--transfers all"
        raise InputError(Fault(message, "--transfers", value=asked.transfers, right=right))
    kept = [f"report.transfers={asked.transfers}"] if asked.transfers else []
    asked = replace(asked, overrides=[*(asked.overrides or ()), *kept])
    found = asked.read()
    note(*asked.unused(found), quiet=asked.quiet)
    asked.check_targets(found)
    if not asked.changes:
        return _run_one(found, asked) if found.sweep is None else _run_sweep(found, asked)
    from ringnet.study.whatif import changed_scenarios  # noqa: PLC0415 -- most runs ask of no change

    return _run_one(found, asked, changed_scenarios(asked.read, [" and ".join(asked.changes)])[1])


def _run_one(scenario: Scenario, asked: RunCommandOptions, then: Changed | None = None) -> int:
    said_s: list[float] = []

    def words() -> str:
        said_s.append(run_s(scenario, parts, plots=asked.plots))
        return f"{scenario.name}: takes roughly {in_words(said_s[0])}"

    parts = build(scenario)
    with scenario.placing_faults():
        require_memory(parts)  # before anything is made of a network for what is beside it
        require_memory(parts, beside_bytes=beside_bytes(scenario, parts, plots=asked.plots))
    many = None
    if repeats(scenario):
        many, _ = carried_through(n_blocks(scenario), partial(times_of, scenario), asked)
    with run_progress(words, asked.quiet) as watch:
        result = simulate(scenario, watch=watch, parts=parts) if many is None else with_all_runs(scenario, many)
        advice = _advice(scenario, result, parts)
        files = _write(scenario, asked, [result], [*result.notes, *advice])
        no_film = film_to(asked.film, collect([result], {}), scenario.report.figure.look) if asked.film else ""
    for seconds in said_s:
        learn(seconds, process_time())
    is_right = result.verdict.sum_ok is not False
    saved = save_outputs(asked.save_result, result.outputs()) if asked.save_result and is_right else ()
    changed = None
    if then is not None:
        from ringnet.cli.whatif import side_by_side  # noqa: PLC0415 -- most runs ask of no change

        changed = side_by_side(result.summary, then)
    if asked.json:
        print_json(result.summary if changed is None else result.summary | {"what_if": changed.document()})
    elif not asked.quiet:
        results = [("result", str(path)) for path in saved]
        results += [("film", str(asked.film))] if asked.film and not no_film else []
        print_table(
            [
                *answer(result.summary, result.sentence),
                *_talkers(result),
                *job_lines(result.columns("jobs")),
                ("written", written(files.folder, files.files)),
                *results,
            ]
        )
        if changed is not None:
            say("")
            print_table(changed.rows())
    note(*(() if changed is None else changed.notes()), quiet=asked.quiet)
    note(*files.notes, *filter(None, [no_film]), quiet=asked.quiet)
    if is_right:
        return 0
    complain(wrong_sum(result))
    return VerificationError.exit_code


def _talkers(result: RunResult) -> list[tuple[str, str]]:
    """Return a line on the busiest link and whose bytes cross it, where several workers send over it."""
    routes = result.columns("routes")
    words = "" if routes is None else top_talkers(routes, result.tables["links"])
    return [("busiest link", words)] if words else []


def _advice(scenario: Scenario, result: RunResult, parts: RunParts) -> list[str]:
    """Return what would be worth trying where cards or links are idle, or where a run spends its time in queues."""
    if what_is_drawn(scenario):  # what one run would gain need not be what others do
        return []
    row = result.summary
    # What queues behind a worker's own transfers is bandwidth by another name: no other order would take it away.
    queueing = (row["queueing_share"] or 0.0) - (row["own_queueing_share"] or 0.0)
    # Of a network in trouble nobody knows which order was best.
    asks = queueing > WORTH_ADVICE and not scenario.trouble
    order = order_advice(scenario, parts.network) if asks else None
    found = (idle_advice(scenario, parts, result), order, route_advice(result, parts))
    return [*filter(None, found)]


def _run_sweep(scenario: Scenario, asked: RunCommandOptions) -> int:
    if scenario.n_points > MOST_UNASKED and not asked.yes:
        _ask_about_size(scenario, asked.processes)

    def run(how: PartOptions) -> list[Outcome]:
        return run_points(_points(scenario), **vars(how), cluster=asked.cluster, simulate=simulate_all)

    outcomes, points = carried_through(scenario.n_points, run, asked, (KeyboardInterrupt, StudyError))
    files = _write(scenario, asked, outcomes, _notes(scenario, outcomes))
    if asked.json:
        print_json({"points": [outcome.summary for outcome in outcomes]})
    elif not asked.quiet:
        _print_sweep(outcomes, points, files)
    note(*files.notes, quiet=asked.quiet)
    return _complain_of(outcomes)


def _ask_about_size(scenario: Scenario, processes: int | None) -> None:
    """Ask whether a very large sweep shall run; refuse it where nobody can answer.

    Raises
    ------
    InputError
        Nobody said yes.
    """
    time = in_words(sweep_s(scenario, processes or n_cores()))
    size = f"the grid has {scenario.n_points:,} points and takes roughly {time}"
    if not is_terminal():
        raise InputError(Fault(size, "sweep", right="fewer values, or --yes"))
    if not typer.confirm(f"{size}. Run it?", err=True):
        raise InputError(Fault("the sweep was not run", "sweep"))


def is_terminal() -> bool:
    """Whether somebody sits at standard input."""
    return sys.stdin.isatty()


def _points(scenario: Scenario) -> Iterator[SweepPoint]:
    if scenario.n_points > CHECKED_POINTS:  # `load` has checked each value once, but not every combination
        deque(scenario.iter_points(), maxlen=0)
    return scenario.iter_points()


def _write(
    scenario: Scenario, asked: RunCommandOptions, results: Sequence[ResultLike], notes: Iterable[str]
) -> Written:
    folder = asked.folder(scenario)
    info = run_info(scenario, folder, results[0].summary["seed"], notes)
    report = scenario.report
    plots = report.plots if asked.plots else ()
    page, look = options.page_of(asked.html, folder), report.figure.look
    return write_results(folder, results, info, tables=report.tables, plots=plots, look=look, page=page)


def _notes(scenario: Scenario, outcomes: Sequence[Outcome]) -> list[str]:
    """Return what is to be said of a sweep: each sentence once, with how many points it is about."""
    counts = Counter(sentence for outcome in outcomes for sentence in outcome.notes)
    return [
        *scenario.notes,
        *(f"{sentence} ({count} of {len(outcomes)} points)" for sentence, count in counts.items()),
    ]


def _print_sweep(outcomes: Sequence[Outcome], points: tuple[str, str], files: Written) -> None:
    found = collect(outcomes, {})
    table = sweep_table(found.summary, found.jobs)
    print_table([table.heads, *table.rows[:SHOWN_ROWS]])
    if len(table.rows) > SHOWN_ROWS:
        say(f"... and {len(table.rows) - SHOWN_ROWS} more in {files.folder / 'summary.csv'}")
    print_table([points, ("written", written(files.folder, files.files))])


def _complain_of(outcomes: Sequence[Outcome]) -> int:
    """Tell of every point without a right result; return the exit code, in which a wrong sum weighs most."""
    bad = [outcome for outcome in outcomes if not outcome.ok]
    for outcome in bad[:SHOWN_ERRORS]:
        complain(f"{outcome.label}: {outcome.error}")
    if len(bad) > SHOWN_ERRORS:
        complain(f"and {len(bad) - SHOWN_ERRORS} more points; see the column error of summary.csv")
    if VerificationError.exit_code in {outcome.exit_code for outcome in bad}:
        return VerificationError.exit_code
    return StudyError.exit_code if bad else 0
