"""``ringnet predict``: times that were not measured, from a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ringnet.analysis.calibration import Prediction, Profile, Setting, predict
from ringnet.cli.answers import note
from ringnet.cli.logs import echo
from ringnet.cli.printing import print_json, print_table
from ringnet.cli.targets import check_files
from ringnet.errors import Fault, InputError
from ringnet.formats.profiles import read_profile
from ringnet.reporting.atomic import written_file
from ringnet.units import format_bytes, format_seconds, parse_quantity

_MOST_SIZES = 10_000
_RIGHT = "1KiB..1GiB, or 4 KiB,1 MiB"


def sizes_of(text: str) -> list[int]:
    """Read message sizes: a range by factors of two, or a list.

    >>> sizes_of("1KiB..8KiB"), sizes_of("100 B, 1 MiB")
    ([1024, 2048, 4096, 8192], [100, 1048576])
    """
    first, dots, last = text.partition("..")
    if not dots:
        return [_size(part) for part in text.split(",")]
    low, high = _size(first), _size(last)
    if low > high:
        raise InputError(Fault("the range is empty", "--sizes", value=text, right=_RIGHT))
    return [low << shift for shift in range(64) if low << shift <= high]


def _size(text: str) -> int:
    try:
        n_bytes = parse_quantity(text.strip(), "bytes")
    except InputError as error:
        raise InputError(
            *(Fault(f.message, "--sizes", value=f.value, right=_RIGHT) for f in error.faults)
        ) from error
    if n_bytes < 1:
        raise InputError(Fault("a message has one byte at least", "--sizes", value=text, right=_RIGHT))
    return n_bytes


def predict_times(
    path: Path,
    workers: Sequence[int],
    nodes: int | None,
    sizes: str,
    targets: tuple[Path | None, Path | None],
    as_json: bool,
) -> int:
    """Predict, print the table, and write what is wanted (plot, CSV)."""
    check_files({"--plot": targets[0], "--csv": targets[1]})
    profile = read_profile(path)
    wanted = np.array(sizes_of(sizes)[:_MOST_SIZES], dtype=np.float64)
    settings = [_setting(profile, n, nodes) for n in workers]
    predictions = [predict(profile, setting, wanted) for setting in settings]
    table = pd.concat([_table(each) for each in predictions], ignore_index=True)
    _write(table, targets, path)
    if as_json:
        print_json(
            {"profile": str(path), "collective": profile.collective, "predictions": table.to_dict("records")}
        )
        return 0
    for sentence in profile.cautions(settings):
        note(sentence)
    print_table([_HEADS, *map(_row, table.to_dict("records"))])
    for target in filter(None, targets):
        echo(f"written  {target}")
    return 0


_HEADS = ("N", "nodes", "message", "time", "from", "to", "")


def _row(row: Mapping[Any, Any]) -> tuple[str, ...]:
    times = [format_seconds(row[key]) for key in ("predicted_s", "low_s", "high_s")]
    nodes = str(row["n_nodes"] or "?")
    beyond = "extrapolated" if row["is_beyond"] else ""
    return (str(row["n_workers"]), nodes, format_bytes(row["message_bytes"]), *times, beyond)


def _setting(profile: Profile, n: int, nodes: int | None) -> Setting:
    if nodes and nodes > n:
        raise InputError(Fault("more nodes than workers", "--nodes", value=str(nodes), right=f"at most {n}"))
    if nodes and not profile.knows_nodes:
        raise InputError(
            Fault(
                "the profile does not know nodes: no log said on how many it ran", "--nodes", value=str(nodes)
            )
        )
    return Setting(n, nodes) if nodes else profile.setting_for(n)


def _table(found: Prediction) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "n_workers": found.setting.n_workers,
            "n_nodes": found.setting.n_nodes,
            "message_bytes": found.message_bytes.astype("int64"),
            "predicted_s": found.time_s,
            "low_s": found.low_s,
            "high_s": found.high_s,
            "is_beyond": found.is_beyond,
        }
    )


def _write(table: pd.DataFrame, targets: tuple[Path | None, Path | None], profile: Path) -> None:
    plot, csv = targets
    if csv:
        with written_file(csv) as path:
            table.to_csv(path, index=False)
    if plot:
        from ringnet.reporting.plots.calibration import prediction_plot, save_figure  # noqa: PLC0415 -- half a second

        numbers = ", ".join(map(str, sorted(set(table["n_workers"]))))
        figure = prediction_plot(table, "prediction", f"N={numbers}, from {profile.name}")
        with written_file(plot) as path:
            save_figure(figure, path, plot)
