"""The options of ``ringnet run``, each with the words that ``--help`` has for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Where tables and plots go; reports/NAME otherwise.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]
Plots = Annotated[bool, typer.Option(help="Draw the plots.")]
SaveResult = Annotated[
    Path | None, typer.Option(metavar="PATH", help="Save the verified result: a folder, or a name in .npy.")
]
Transfers = Annotated[
    str | None, typer.Option(metavar="all|N", help="Keep a row per transfer, of up to N; 200000 otherwise.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Points of a sweep at once; all cores otherwise, as memory allows."
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute points again that an earlier run kept.")]
Cache = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where finished points are kept; ~/.cache/ringnet/points otherwise."),
]
StudyJobs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes; all cores otherwise.")]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="tcp://HOST:PORT", help="Run the points of a sweep on this Dask cluster."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Run a very large sweep unasked.")]
