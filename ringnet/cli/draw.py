"""``ringnet draw``: the network of a scenario and what crosses it, in two pictures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ringnet.analysis.frames import Table
from ringnet.cli import options
from ringnet.cli.printing import note, run_progress, say
from ringnet.cli.targets import check_targets, sources_of
from ringnet.errors import Fault, InputError
from ringnet.reporting.plots import choose
from ringnet.reporting.results import ResultLike, Results
from ringnet.reporting.storage import Written, read_results, redraw, write_results
from ringnet.reporting.text import written
from ringnet.runs.simulate import simulate
from ringnet.scenario import Scenario, loads
from ringnet.study.points import run_info

EXAMPLE = "ringnet draw scenario.yaml --set network.placement=interleaved"

PICTURES = ("network", "traffic-matrix")
#: Tables that go into the folder of the pictures.
KEPT = ("links", "workers", "transfers", "states", "jobs")


def command(
    scenario: options.ScenarioFile,
    overrides: options.Overrides = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the pictures go; reports/NAME-network otherwise."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="RESULTS_DIR", help="Draw the traffic of these results; a run is simulated otherwise."),
    ] = None,
    formats: options.Formats = None,
    allow_outside: options.AllowOutside = False,
) -> int:
    """Draw the network, the busiest link standing out, and how much each worker sends to each other one."""
    found = options.read_scenario(scenario, options.with_formats(overrides, formats), allow_outside)
    if found.sweep is not None:
        note("the scenario is a sweep: its first point is drawn")
    if not results or out:
        check_targets(
            {},
            [*sources_of(found, scenario), *([results] if results else [])],
            {"--out": _folder(found, out)},
        )
    files = _drawn_again(found, results) if results and not out else _drawn(found, results, out)
    note(*files.notes)
    say(f"written  {written(files.folder, files.files)}")
    return 0


def _drawn(scenario: Scenario, results: Path | None, out: Path | None) -> Written:
    """Write a folder of results with the two pictures."""
    target = _folder(scenario, out)
    run: ResultLike
    if results is None:
        first = _without_payload(scenario)
        with run_progress(lambda: f"simulating {scenario.name}", quiet=False) as watch:
            run = simulate(first, watch=watch)
    else:
        first, run = scenario, _one_run(_read(scenario, results))
    info = run_info(first, target, None, scenario.notes)
    return write_results(target, [run], info, plots=PICTURES, look=scenario.report.figure.look)


def _folder(scenario: Scenario, out: Path | None) -> Path:
    return out or Path("reports") / f"{options.file_name(scenario.name)}-network"


def _drawn_again(scenario: Scenario, folder: Path) -> Written:
    """Draw the pictures into a folder of results."""
    chosen, left_out = choose(_read(scenario, folder), PICTURES)
    if not chosen:
        raise InputError(*(Fault(sentence, file=str(folder)) for sentence in left_out))
    files = redraw(folder, chosen, scenario.report.figure.look)
    return files._replace(notes=(*files.notes, *left_out))


def _without_payload(scenario: Scenario) -> Scenario:
    """Return the first point: times and traffic are the same without a payload."""
    document = next(scenario.iter_points()).scenario.document()
    place = scenario.home
    return loads(
        json.dumps(document),
        ["payload=none"],
        file=scenario.name,
        folder=place.folder,
        allow_outside=place.allow_outside,
    )


def _read(scenario: Scenario, folder: Path) -> Results:
    found = read_results(folder)
    if found.run_info["scenario"] != scenario.document():
        raise InputError(Fault("these are the results of another scenario", "--results", value=str(folder)))
    options.refuse(
        Fault(sentence, "--results", value=str(folder)) for sentence in options.changed_files(scenario, found.run_info)
    )
    return found


@dataclass(frozen=True)
class _OneRun:
    """A folder of results of a single run, as what `write_results` takes."""

    summary: Mapping[str, Any]
    found: Results

    def columns(self, table: str) -> Table | None:
        """Return one of the tables that are kept, by the name of its file."""
        frame = getattr(self.found, table) if table in KEPT else None
        return None if frame is None else {str(name): column for name, column in frame.items()}


def _one_run(found: Results) -> _OneRun:
    if len(found.summary) > 1:
        raise InputError(Fault("a single run is drawn, and these are the results of a sweep", "--results"))
    row = {str(key): value for key, value in found.summary.iloc[0].items()}
    return _OneRun(row, found)
