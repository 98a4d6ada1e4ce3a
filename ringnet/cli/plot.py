"""``ringnet plot``: the plots of results once more, from their tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringnet.cli import options
from ringnet.cli.printing import note, say
from ringnet.reporting.storage import redraw
from ringnet.reporting.text import written

EXAMPLE = "ringnet plot reports/quickstart --plot space-time"


def command(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS_DIR", help="A folder that run, compare or numerics wrote.")
    ],
    names: Annotated[
        list[str] | None,
        typer.Option("--plot", metavar="NAME,NAME", help="Draw these; all that suit otherwise."),
    ] = None,
) -> int:
    """Draw the plots of results again, without simulating."""
    wanted = options.values_of(names, "--plot") if names else None
    files = redraw(results, wanted)
    note(*files.notes)
    say(f"written  {written(files.folder, files.files)}" if files.files else "no plot suits these results")
    return 0
