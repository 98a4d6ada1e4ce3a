"""``ringnet predict``: times that were not measured, from a profile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from ringnet.analysis.calibration import Profile, predict
from ringnet.api.machines import prediction_table, setting_of, with_measured
from ringnet.cli import options
from ringnet.cli.printing import note, print_json, print_table, say
from ringnet.cli.targets import check_targets
from ringnet.formats.profiles import read_profile
from ringnet.reporting.atomic import written_file
from ringnet.reporting.plots import save_drawn
from ringnet.units import format_bytes, format_seconds

EXAMPLE = "ringnet predict machine.yaml --workers 256 --sizes 1KiB..1GiB"


def command(  # noqa: PLR0917 -- every option is a parameter
    profile: Annotated[Path, typer.Argument(metavar="PROFILE.yaml", help="What calibrate wrote.")],
    workers: Annotated[list[str], typer.Option("--workers", metavar="N,N", help="Numbers of workers.")],
    sizes: Annotated[
        list[str],
        typer.Option(metavar="FROM..TO|A,B", help="Message sizes, by factors of two or one by one."),
    ] = ["1KiB..1GiB"],  # noqa: B006 -- never changed
    nodes: Annotated[
        int | None, typer.Option(metavar="M", min=1, help="On how many nodes.  [as full as in the logs]")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw times and ranges.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE.csv", help="Write the table.")] = None,
    as_json: options.Json = False,
) -> int:
    """Predict times that were not measured, each with a range."""
    check_targets({"--plot": plot, "--csv": csv}, [profile])
    measured = read_profile(profile)
    wanted = np.array(options.sizes_of(sizes, least=1), dtype=np.float64)
    settings = [setting_of(measured, n, nodes, "--nodes") for n in options.worker_counts_of(workers, least=2)]
    predictions = [predict(measured, setting, wanted) for setting in settings]
    table = pd.concat([prediction_table(each, measured) for each in predictions], ignore_index=True)
    _write(table, plot, csv, profile, measured)
    if as_json:
        rows = table.to_dict("records")
        cautions = measured.cautions(settings)
        document = {"profile": str(profile), "collective": measured.collective, "cautions": cautions}
        print_json({**document, "predictions": rows})
        return 0
    note(*measured.cautions(settings))
    print_table([_HEADS, *map(_row, table.to_dict("records"))])
    for target in filter(None, (plot, csv)):
        say(f"written  {target}")
    return 0


_HEADS = ("N", "nodes", "message", "time", "from", "to", "way", "")


def _row(row: Mapping[Any, Any]) -> tuple[str, ...]:
    times = [format_seconds(row[key]) for key in ("predicted_s", "low_s", "high_s")]
    nodes = str(row["n_nodes"] or "?")
    beyond = f"extrapolated: {row['distance']}" if row["is_beyond"] else ""
    return (str(row["n_workers"]), nodes, format_bytes(row["message_bytes"]), *times, row["way"], beyond)


def _write(table: pd.DataFrame, plot: Path | None, csv: Path | None, profile: Path, measured: Profile) -> None:
    if csv:
        with written_file(csv) as path:
            table.to_csv(path, index=False)
    if plot:
        drawn = with_measured(table, measured)
        save_drawn("calibration.prediction_plot", plot, f"prediction from {profile.name}", drawn)
