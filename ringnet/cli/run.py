"""``ringnet run``: one run or a sweep, from the scenario to what is written and printed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

import typer

from ringnet.analysis.answer import answer
from ringnet.analysis.result import Result
from ringnet.cli.answers import complain, note
from ringnet.cli.grids import ask_about_size
from ringnet.cli.printing import print_json, print_table
from ringnet.cli.progress import waiting, watched
from ringnet.cli.wishes import Wishes
from ringnet.errors import StudyError, VerificationError
from ringnet.reporting.atomic import check_target, save_outputs
from ringnet.reporting.results import ResultLike, collect
from ringnet.reporting.storage import Written, write_results
from ringnet.reporting.text import job_lines, sweep_table, written
from ringnet.runs.advice import about_order
from ringnet.runs.simulate import simulate
from ringnet.scenario import Scenario, SweepPoint
from ringnet.scenario.build.load import CHECKED_POINTS
from ringnet.study.cost import in_words, most_s
from ringnet.study.kept import default_cache_dir
from ringnet.study.outcome import Outcome, wrong_sum
from ringnet.study.points import run_points
from ringnet.study.record import run_info

#: Rows and errors of a sweep that a person is shown; the table on disk has all of them.
SHOWN_ROWS = 40
SHOWN_ERRORS = 10
#: Share of the time in queues from which another order of the ring is looked for.
WORTH_ADVICE = 0.1


def run_scenario(scenario: Scenario, wishes: Wishes) -> int:
    """Run a scenario, write and print what came of it, and return the exit code.

    Raises
    ------
    RingnetError
        Whatever keeps it from having an answer; nothing is written then.
    """
    _say([*wishes.unused(scenario)], wishes)
    check_target(wishes.folder(scenario))
    return _run_one(scenario, wishes) if scenario.sweep is None else _run_sweep(scenario, wishes)


def _run_one(scenario: Scenario, wishes: Wishes) -> int:
    def words() -> str:
        return f"{scenario.name}: takes roughly {in_words(most_s(scenario))}"

    with waiting(words, wishes.quiet) as watch:
        result = simulate(scenario, watch=watch)
        files = _write(scenario, wishes, [result], result.notes)
    is_right = result.verdict.sum_ok is not False
    saved = save_outputs(wishes.save_result, result.outputs()) if wishes.save_result and is_right else ()
    if wishes.json:
        print_json(result.summary)
    elif not wishes.quiet:
        results = [("result", str(path)) for path in saved]
        print_table(
            [
                *answer(result.summary, result.sentence),
                *(() if result.jobs is None else job_lines(result.jobs)),
                ("written", written(files.folder, files.files)),
                *results,
            ]
        )
    _say([*files.notes, *_advice(scenario, result)], wishes)
    if is_right:
        return 0
    complain(wrong_sum(result))
    return VerificationError.exit_code


def _advice(scenario: Scenario, result: Result) -> list[str]:
    """Return what would be worth trying where a run spends its time in queues."""
    queueing = result.summary["queueing_share"] or 0.0
    sentence = about_order(scenario) if queueing > WORTH_ADVICE else None
    return [] if sentence is None else [sentence]


def _run_sweep(scenario: Scenario, wishes: Wishes) -> int:
    ask_about_size(scenario, wishes.yes, wishes.jobs)
    outcomes = _outcomes(scenario, wishes)
    files = _write(scenario, wishes, outcomes, _notes(scenario, outcomes))
    if wishes.json:
        print_json({"points": [outcome.summary for outcome in outcomes]})
    elif not wishes.quiet:
        _print_sweep(outcomes, files)
    _say(files.notes, wishes)
    return _complain_of(outcomes)


def _outcomes(scenario: Scenario, wishes: Wishes) -> list[Outcome]:
    n_finished = 0
    with watched(scenario.n_points, wishes.quiet) as watch:

        def heard(outcome: Outcome) -> None:
            nonlocal n_finished
            n_finished += 1
            watch.on_result(outcome)

        try:
            return run_points(
                _points(scenario),
                jobs=wishes.jobs,
                cache_dir=wishes.cache or default_cache_dir(),
                fresh=wishes.fresh,
                cluster=wishes.cluster,
                on_result=heard,
                say=watch.say,
                simulate=simulate,
            )
        except (KeyboardInterrupt, StudyError):
            watch.say(
                f"{n_finished} of {scenario.n_points} points are finished and kept: run it again to go on"
            )
            raise


def _points(scenario: Scenario) -> Iterator[SweepPoint]:
    if scenario.n_points > CHECKED_POINTS:  # `load` has checked each value once, but not every combination
        deque(scenario.iter_points(), maxlen=0)
    return scenario.iter_points()


def _write(
    scenario: Scenario, wishes: Wishes, results: Sequence[ResultLike], notes: Iterable[str]
) -> Written:
    folder = wishes.folder(scenario)
    info = run_info(scenario, folder, results[0].summary["seed"], notes)
    return write_results(folder, results, info, tables=scenario.report.tables, plots=wishes.drawn(scenario))


def _notes(scenario: Scenario, outcomes: Sequence[Outcome]) -> list[str]:
    """Return what is to be said of a sweep: each sentence once, with how many points it is about."""
    counts = Counter(sentence for outcome in outcomes for sentence in outcome.notes)
    return [
        *scenario.notes,
        *(f"{sentence} ({count} of {len(outcomes)} points)" for sentence, count in counts.items()),
    ]


def _say(notes: Iterable[str], wishes: Wishes) -> None:
    for sentence in () if wishes.quiet else notes:
        note(sentence)


def _print_sweep(outcomes: Sequence[Outcome], files: Written) -> None:
    found = collect(outcomes, {})
    table = sweep_table(found.summary, found.jobs)
    print_table([table.heads, *table.rows[:SHOWN_ROWS]])
    if len(table.rows) > SHOWN_ROWS:
        typer.echo(f"... and {len(table.rows) - SHOWN_ROWS} more in {files.folder / 'summary.csv'}")
    n_kept = sum(not outcome.computed for outcome in outcomes)
    points = f"{len(outcomes)}: {len(outcomes) - n_kept} computed, {n_kept} kept from an earlier run"
    print_table([("points", points), ("written", written(files.folder, files.files))])


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
