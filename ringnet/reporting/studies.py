"""Tables and figures of a study that is no run: a comparison, errors of rounding. Written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringnet.reporting.csvfiles import write_table
from ringnet.reporting.folder import MANIFEST, written_whole
from ringnet.reporting.results import Written, manifest, write_json

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def write_study(
    out_dir: Path,
    run_info: Mapping[str, Any],
    tables: Mapping[str, pd.DataFrame],
    figures: Mapping[str, Callable[[], Figure]],
    formats: tuple[str, ...] = ("png", "svg"),
) -> Written:
    """Write tables, figures and ``run.json`` to a folder, whole or not at all.

    Parameters
    ----------
    out_dir : Path
        The folder; another run's results in it are replaced whole.
    run_info : mapping
        As for `ringnet.reporting.results.write_results`.
    tables : mapping of str to DataFrame
        By the name of the file, without ``.csv``.
    figures : mapping of str to callable
        By the name of the files; called to draw.
    formats : tuple of str
        ``png``, ``svg``, ``pdf``.

    Raises
    ------
    ResultsError
        Nothing was written.
    """
    files = [f"{name}.csv" for name in tables] + [MANIFEST]
    with written_whole(out_dir) as folder:
        for name, frame in tables.items():
            write_table(frame, folder / f"{name}.csv")
        for name, draw in figures.items():
            files += _save(draw(), folder, name, formats)
        write_json(manifest(run_info, files, ()), folder / MANIFEST)
    return Written(out_dir, tuple(files), tuple(run_info.get("notes", ())))


def _save(figure: Figure, folder: Path, name: str, formats: tuple[str, ...]) -> list[str]:
    from ringnet.reporting.plots.canvas import save  # noqa: PLC0415 -- brings matplotlib, half a second

    files = [f"{name}.{ending}" for ending in formats]
    for file, ending in zip(files, formats, strict=True):
        save(figure, folder / file, ending)
    return files
