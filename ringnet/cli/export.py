"""``ringnet export``: a scenario's schedule as other tools' files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from ringnet.cli import options
from ringnet.cli.printing import note, print_table
from ringnet.cli.targets import check_targets, sources_of
from ringnet.collectives.proof import check
from ringnet.errors import Fault, InputError
from ringnet.formats.goal import HOLDS, dumps_goal
from ringnet.formats.msccl import dumps_msccl
from ringnet.reporting.atomic import written_file
from ringnet.runs.parts import build
from ringnet.scenario import Scenario
from ringnet.scenario.drawn import mean_of, refuse_what_is_drawn
from ringnet.units import format_bytes

EXAMPLE = "ringnet export scenario.yaml --msccl ring.xml --goal ring.goal"

NS = 1e9


def command(
    scenario: options.ScenarioFile,
    msccl: Annotated[Path | None, typer.Option(metavar="FILE", help="Write MSCCL's XML.")] = None,
    goal: Annotated[Path | None, typer.Option(metavar="FILE", help="Write LogGOPSim's GOAL text.")] = None,
    overrides: options.Overrides = None,
    allow_outside: options.AllowOutside = False,
    allow_python: options.AllowPython = False,
) -> int:
    """Write the schedule of a scenario for other tools."""
    found = options.read_scenario(scenario, overrides, allow_outside, allow_python)
    _check_files(msccl, goal, sources_of(found, scenario))
    _export(found, msccl, goal)
    note(f"left out: {', '.join(_left_out(found))}")
    if goal is not None:
        note(HOLDS)
    if found.sweep is not None:
        note("this scenario is a sweep: the schedule is that of its first point")
    return 0


def _check_files(msccl: Path | None, goal: Path | None, sources: Iterable[Path]) -> None:
    """Refuse if neither file is named, the same twice, or one that cannot or must not be written."""
    if msccl is None and goal is None:
        raise InputError(
            Fault("no file is named", "--msccl, --goal", right="--msccl FILE, --goal FILE, or both")
        )
    if msccl is not None and goal is not None and msccl.resolve() == goal.resolve():
        raise InputError(
            Fault("both texts would go to one file", "--goal", value=str(goal), right="another file")
        )
    check_targets({"--msccl": msccl, "--goal": goal}, sources)


def _export(scenario: Scenario, msccl: Path | None, goal: Path | None) -> None:
    """Write the schedule of a scenario, of a sweep that of its first point; nothing where it is wrong."""
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
        with written_file(file) as path:
            path.write_text(text, encoding="utf-8")
    print_table([(kind, str(file)) for kind, file, _ in texts])


def _left_out(scenario: Scenario) -> Iterator[str]:
    """Yield what a schedule of one collective cannot say of a scenario."""
    yield "the network"
    window = scenario.network.window
    if window is not None:
        yield f"window {format_bytes(window) if isinstance(window, int) else f'of {window.transfers} transfers'}"
    for number, job in enumerate(scenario.jobs, 1):
        yield f"job {job.name or number}"
    for number, one in enumerate(scenario.background, 1):
        yield f"background {one.name or f'traffic {number}'}"
    if scenario.worker.exceptions:
        yield f"what is different about worker {', '.join(scenario.worker.exceptions)}"
