"""``ringnet logs``, ``calibrate`` and ``predict``: the commands with their options."""

# ruff: noqa: PLC0415, PLR0917 -- what a command does is imported when it is called; its arguments are options

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringnet.cli.answers import answers

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Logs of nccl-tests, rccl-tests, OSU, or CSV.")
]
Workers = Annotated[
    list[str] | None,
    typer.Option(
        "--workers", metavar="N|FILE=N", help="How many workers, where a log does not say. Again for more."
    ),
]
Nodes = Annotated[
    list[str] | None,
    typer.Option(
        "--nodes", metavar="M|FILE=M", help="On how many nodes, where a log does not say. Again for more."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]


def add_calibration(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(epilog="Example: ringnet logs run-8.txt run-16.txt")(answers(logs))
    app.command(epilog="Example: ringnet calibrate run-*.txt --out machine.yaml")(answers(calibrate))
    app.command(epilog="Example: ringnet predict machine.yaml --workers 256 --sizes 1KiB..1GiB")(
        answers(predict)
    )


def logs(files: Files, workers: Workers = None, nodes: Nodes = None, as_json: Json = False) -> int:
    """Show what logs of benchmarks hold, and what is wrong with them."""
    from ringnet.cli.logs import show_logs

    return show_logs(files, workers or (), nodes or (), as_json)


def calibrate(
    files: Files,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PROFILE.yaml",
            help="Write the profile here, for predict and for scenarios: link: {file: PROFILE.yaml}.",
        ),
    ] = None,
    collective: Annotated[str, typer.Option(help="Which collective of the logs.")] = "all_reduce",
    workers: Workers = None,
    nodes: Nodes = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Draw points, fit and errors.  [beside the profile]"),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE.csv", help="Write measured and fitted times.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Fit latency and bandwidth to logs of one machine, and say how far to trust them."""
    from ringnet.cli.calibrating import Targets, calibrate_logs

    targets = Targets(out, plot or (out.with_suffix(".png") if out else None), csv)
    return calibrate_logs(files, collective, (workers or (), nodes or ()), targets, as_json)


def predict(
    profile: Annotated[Path, typer.Argument(metavar="PROFILE.yaml", help="What calibrate wrote.")],
    workers: Annotated[
        list[int], typer.Option("--workers", metavar="N", min=2, help="How many. Again for more.")
    ],
    sizes: Annotated[
        str, typer.Option(metavar="FROM..TO|A,B", help="Message sizes, by factors of two or one by one.")
    ] = "1KiB..1GiB",
    nodes: Annotated[
        int | None, typer.Option(min=1, help="On how many nodes.  [as full as in the logs]")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw times and ranges.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE.csv", help="Write the table.")] = None,
    as_json: Json = False,
) -> int:
    """Predict times that were not measured, each with a range."""
    from ringnet.cli.predicting import predict_times

    return predict_times(profile, workers, nodes, sizes, (plot, csv), as_json)
