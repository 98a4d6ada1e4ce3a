"""``ringnet report``: one page of results, for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringnet.cli import options
from ringnet.cli.printing import say
from ringnet.cli.targets import check_targets
from ringnet.reporting.atomic import PAGE
from ringnet.reporting.storage import read_manifest, write_report
from ringnet.units import format_size

EXAMPLE = "ringnet report reports/quickstart"


def command(
    results: Annotated[
        Path,
        typer.Argument(metavar="RESULTS_DIR", help="A folder that run, compare or another command wrote."),
    ],
    html: Annotated[
        str,
        typer.Option(metavar="FILE.html", help="Where the page goes; report.html in the folder otherwise."),
    ] = "",
) -> int:
    """Write one page of results: to be opened in a browser, without a network."""
    read_manifest(results)
    page = options.page_of(html, results)
    check_targets({"--html": page if page != results / PAGE else None})
    written = write_report(results, page)
    say(f"written  {written}, {format_size(written.stat().st_size)}")
    return 0
