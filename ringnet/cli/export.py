"""``ringnet export``: a scenario's schedule, or its run as a trace, as other tools' files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from ringnet.cli import options
from ringnet.cli.printing import note, print_table, run_progress
from ringnet.cli.targets import check_targets, sources_of
from ringnet.collectives.proof import check
from ringnet.errors import Fault, InputError
from ringnet.formats.goal import HOLDS, dumps_goal
from ringnet.formats.msccl import dumps_msccl
from ringnet.reporting.atomic import write_text
from ringnet.reporting.results import Results, collect
from ringnet.reporting.storage import write_perfetto
from ringnet.runs.parts import build
from ringnet.runs.worker_parts import launches
from ringnet.scenario import Scenario
from ringnet.scenario.drawn import mean_of, refuse_what_is_drawn
from ringnet.study.whatif import simulate_bare
from ringnet.units import format_bytes, format_seconds

EXAMPLE = "ringnet export scenario.yaml --msccl ring.xml --perfetto ring.pftrace"

NS = 1e9


def command(  # noqa: PLR0917 -- every option is a parameter
    scenario: options.ScenarioFile,
    msccl: Annotated[Path | None, typer.Option(metavar="FILE", help="Write MSCCL's XML.")] = None,
    goal: Annotated[Path | None, typer.Option(metavar="FILE", help="Write LogGOPSim's GOAL text.")] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Simulate it, and write a trace of the run for ui.perfetto.dev."),
    ] = None,
    overrides: options.Overrides = None,
    allow_outside: options.AllowOutside = False,
    allow_python: options.AllowPython = False,
) -> int:
    """Write the schedule of a scenario for other tools, or the run of it as a trace."""
    found = options.read_scenario(scenario, overrides, allow_outside, allow_python)
    _check_files(msccl, goal, perfetto, sources_of(found, scenario))
    first = next(found.iter_points()).scenario
    run = None if perfetto is None else _simulated(first)
    written = []
    if msccl is not None or goal is not None:
        written += _export(first, msccl, goal)
        note(f"left out: {', '.join(_left_out(first))}")
    if run is not None and perfetto is not None:
        write_perfetto(run, perfetto)
        written.append(("perfetto", str(perfetto)))
    print_table(written)
    if goal is not None:
        note(HOLDS)
    if found.sweep is not None:
        note("this scenario is a sweep: what is written is of its first point")
    return 0


def _check_files(msccl: Path | None, goal: Path | None, perfetto: Path | None, sources: Iterable[Path]) -> None:
    """Refuse if no file is named, one twice, or one that cannot or must not be written."""
    if msccl is None and goal is None and perfetto is None:
        right = "--msccl FILE, --goal FILE, --perfetto FILE, or several"
        raise InputError(Fault("no file is named", "--msccl, --goal, --perfetto", right=right))
    if msccl is not None and goal is not None and msccl.resolve() == goal.resolve():
        raise InputError(Fault("both texts would go to one file", "--goal", value=str(goal), right="another file"))
    check_targets({"--msccl": msccl, "--goal": goal, "--perfetto": perfetto}, sources)


def _simulated(scenario: Scenario) -> Results:
    """Simulate a run, whose times need no payload."""
    with run_progress(lambda: f"simulating {scenario.name}", quiet=False) as watch:
        return collect([simulate_bare(scenario, watch=watch)], {})


def _export(scenario: Scenario, msccl: Path | None, goal: Path | None) -> list[tuple[str, str]]:
    """Write the schedule of a scenario, nothing where it is wrong; return what was written, kind and file."""
    parts = build(scenario.model_copy(update={"payload": "none"}))
    check(parts.schedule)
    texts: list[tuple[str, Path, str]] = []
    if msccl is not None:
        texts.append(("msccl", msccl, dumps_msccl(parts.schedule)))
    if goal is not None:
        refuse_what_is_drawn(scenario, "a GOAL file")
        reduce_ns_per_byte = NS / mean_of(scenario.worker.reduce_Bps)
        texts.append(("goal", goal, dumps_goal(parts.schedule, parts.chunk_bytes, reduce_ns_per_byte)))
    for _, file, text in texts:
        write_text(file, text)
    return [(kind, str(file)) for kind, file, _ in texts]


def _left_out(scenario: Scenario) -> Iterator[str]:
    """Yield what a schedule of one collective cannot say of a scenario."""
    yield "the network"
    window = scenario.network.window
    if window is not None:
        yield f"window {format_bytes(window) if isinstance(window, int) else f'of {window.transfers} transfers'}"
    if launch_s := float(launches(scenario, scenario.message_bytes).max()):
        yield f"launch {format_seconds(launch_s)}"
    for number, job in enumerate(scenario.jobs, 1):
        yield f"job {job.name or number}"
    for number, one in enumerate(scenario.background, 1):
        yield f"background {one.name or f'traffic {number}'}"
    if scenario.worker.exceptions:
        yield f"what is different about worker {', '.join(scenario.worker.exceptions)}"
    if scenario.trouble:
        yield "trouble"
