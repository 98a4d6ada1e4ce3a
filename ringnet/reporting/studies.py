"""Tables and figures of a study that is no run: a comparison, errors of rounding. Written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ringnet.errors import Fault, ResultsError
from ringnet.reporting.atomic import MANIFEST, written_file, written_whole
from ringnet.reporting.storage import STUDIES, Written, manifest, read_manifest, write_json
from ringnet.reporting.tables import read_table, write_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")


class StudyPlot(NamedTuple):
    """A plot of a study: ``module.function`` in `ringnet.reporting.plots`, called with a name and a table.

    ``applies`` is asked whether there is something to draw in the table, ``needs`` says the same in words.
    """

    place: str
    table: str
    applies: Callable[[pd.DataFrame], bool]
    needs: str

    def draw(self, name: str, frame: pd.DataFrame) -> Figure:
        """Draw it; the plot applies to the table."""
        module, _, function = self.place.partition(".")
        figure: Figure = getattr(import_module(f"ringnet.reporting.plots.{module}"), function)(name, frame)
        return figure


def _has_curves(frame: pd.DataFrame) -> bool:
    return bool((frame["makespan_s"] > 0).any()) and len(frame["message_bytes"].unique()) > 1


def _has_errors(frame: pd.DataFrame) -> bool:
    return bool((frame["relative_rms_error"] > 0).any())


_CURVES = "several message sizes, and times above zero"
#: Every plot of a study, by the name of its files.
STUDY_PLOTS = {
    "time-by-algorithm": StudyPlot("compare.time_by_algorithm", "compare", _has_curves, _CURVES),
    "bound-share-by-algorithm": StudyPlot("compare.share_by_algorithm", "compare", _has_curves, _CURVES),
    "winner-map": StudyPlot("compare.winner_map", "compare", _has_curves, _CURVES),
    "error-by-algorithm": StudyPlot(
        "numerics.error_by_algorithm", "numerics", _has_errors, "errors above zero"
    ),
}


def write_study(
    out_dir: Path, run_info: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], *, plots: bool = True
) -> Written:
    """Write tables, what plots suit them and ``run.json`` to a folder, whole or not at all.

    Parameters
    ----------
    out_dir : Path
        The folder; another run's results in it are replaced whole.
    run_info : mapping
        As for `ringnet.reporting.storage.write_results`.
    tables : mapping of str to DataFrame
        By the name of the file, without ``.csv``; one of them by a name of `STUDIES`.
    plots : bool

    Raises
    ------
    ResultsError
        Nothing was written.
    """
    name = str(run_info["scenario"].get("name", ""))
    files = [f"{table}.csv" for table in tables] + [MANIFEST]
    with written_whole(out_dir) as folder:
        for table, frame in tables.items():
            write_table(frame, folder / f"{table}.csv")
        for plot, one in STUDY_PLOTS.items() if plots else ():
            if one.table in tables and one.applies(tables[one.table]):
                paths = {ending: folder / f"{plot}.{ending}" for ending in FORMATS}
                _save(one.draw(name, tables[one.table]), paths)
                files += [path.name for path in paths.values()]
        write_json(manifest(run_info, files, ()), folder / MANIFEST)
    return Written(out_dir, tuple(files), tuple(run_info.get("notes", ())))


def is_study(folder: Path) -> bool:
    """Whether a folder holds a study, and not a run; `ResultsError` where it holds no results."""
    files = read_manifest(folder)["files"]
    return any(f"{name}.csv" in files for name in STUDIES)


def redraw_study(folder: Path, names: Sequence[str] | None = None) -> Written:
    """Draw the plots of a study again from its tables, into the same folder, without computing anything.

    Parameters
    ----------
    folder : Path
    names : sequence of str, optional
        Names of `STUDY_PLOTS`; all that apply by default.

    Raises
    ------
    ResultsError
        No study, a damaged table; a name that is no plot of a study, or one that does not apply.
    """
    info = read_manifest(folder)
    name = str(info["scenario"].get("name", ""))
    tables = {
        table: read_table(folder / f"{table}.csv", table)
        for table in STUDIES
        if f"{table}.csv" in info["files"]
    }
    chosen = _chosen(folder, tables, names)
    paths = {plot: {ending: folder / f"{plot}.{ending}" for ending in FORMATS} for plot in chosen}
    drawn = [path.name for targets in paths.values() for path in targets.values()]
    # The manifest first: a file that it lists may be missing; one that it does not list is foreign.
    with written_file(folder / MANIFEST) as path:
        write_json(info | {"files": list(dict.fromkeys([*info["files"], *drawn]))}, path)
    for plot, targets in paths.items():
        with ExitStack() as stack:
            safe = {ending: stack.enter_context(written_file(path)) for ending, path in targets.items()}
            _save(STUDY_PLOTS[plot].draw(name, tables[STUDY_PLOTS[plot].table]), safe)
    return Written(folder, tuple(drawn), ())


def _chosen(folder: Path, tables: Mapping[str, pd.DataFrame], names: Sequence[str] | None) -> list[str]:
    unknown = [name for name in names or () if name not in STUDY_PLOTS]
    if unknown:
        raise ResultsError(*map(_no_such_plot, unknown))
    suits = [
        name for name, one in STUDY_PLOTS.items() if one.table in tables and one.applies(tables[one.table])
    ]
    missing = [name for name in dict.fromkeys(names or ()) if name not in suits]
    if missing:
        faults = (f"plot {name} is not drawn: it needs {STUDY_PLOTS[name].needs}" for name in missing)
        raise ResultsError(*(Fault(fault, file=str(folder)) for fault in faults))
    return suits if names is None else [name for name in suits if name in names]


def _no_such_plot(name: str) -> Fault:
    nearest = get_close_matches(name, STUDY_PLOTS, n=1)
    message = "there is no such plot of a study"
    return Fault(message, value=name, right=", ".join(STUDY_PLOTS), nearest=nearest[0] if nearest else "")


def _save(figure: Figure, targets: Mapping[str, Path]) -> None:
    from ringnet.reporting.plots.canvas import save  # noqa: PLC0415 -- brings matplotlib, half a second

    for ending, path in targets.items():
        save(figure, path, ending)
