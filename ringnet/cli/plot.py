"""``ringnet plot``: the plots of results once more, from their tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from ringnet.cli import options
from ringnet.cli.printing import note, say
from ringnet.cli.targets import check_targets
from ringnet.errors import Fault, InputError
from ringnet.reporting.look import Look
from ringnet.reporting.plots import film_to
from ringnet.reporting.storage import read_manifest, read_results, redraw
from ringnet.reporting.text import written
from ringnet.scenario.keys.figure import FigureKeys

EXAMPLE = "ringnet plot reports/quickstart --plot space-time"


def command(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS_DIR", help="A folder that run, compare or numerics wrote.")
    ],
    names: Annotated[
        list[str] | None,
        typer.Option("--plot", metavar="NAME,NAME", help="Draw these; all that suit otherwise."),
    ] = None,
    formats: options.Formats = None,
    film: options.Film = None,
) -> int:
    """Draw the plots of results again, without simulating."""
    wanted = options.values_of(names, "--plot") if names else None
    options.check_film(film)
    check_targets({"--animate": film}, [results])
    look = _look(read_manifest(results))
    if formats:
        look = look._replace(formats=tuple(options.formats_of(formats)))
    if film is not None:
        found = read_results(results)
        if len(found.summary) > 1:
            raise InputError(Fault("a film shows a single run, and these are of a sweep", "--animate", value=str(film)))
        if reason := film_to(film, found, look):
            raise InputError(Fault(reason, file=str(results)))
        say(f"film     {film}")
        if wanted is None:
            return 0
    files = redraw(results, wanted, look)
    note(*files.notes)
    say(f"written  {written(files.folder, files.files)}" if files.files else "no plot suits these results")
    return 0


def _look(info: dict[str, Any]) -> Look:
    """Return how the scenario of these results would have figures look; where another version wrote that, as usual."""
    report = info["scenario"].get("report")
    asked = report.get("figure") if isinstance(report, dict) else None
    try:
        return FigureKeys.model_validate(asked or {}).look
    except ValidationError:
        note("report.figure of these results cannot be read: they are drawn as usual")
        return Look()
