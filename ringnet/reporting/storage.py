"""A folder of results: tables, plots and `run.json` of a run or a study; written whole, read back, drawn again."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ringnet._version import __version__
from ringnet.analysis.frames import Table
from ringnet.documents.text import clip, decode, read_bounded
from ringnet.errors import Fault, InputError, ResultsError
from ringnet.reporting.atomic import (
    MANIFEST,
    PAGE,
    VERSION_KEY,
    write_text,
    written_file,
    written_whole,
)
from ringnet.reporting.columns import RUN_TABLES, TABLES
from ringnet.reporting.look import Look
from ringnet.reporting.plots import PLOTS, STUDY_PLOTS, choose, choose_of_study, draw_to
from ringnet.reporting.results import ResultLike, Results, as_results, typed_tables
from ringnet.reporting.tables import read_table, write_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: Commands that write a table of their own name, and no summary.
STUDIES = ("compare", "numerics", "blame", "whatif", "step")
#: Raised by one whenever an older ringnet could misread the tables.
RESULTS_VERSION = 1
#: Of a manifest: far more than one has, whatever its scenario.
MOST_BYTES = 1 << 26
UNASKED_LOOK = Look()
#: What draws each plot, by its name; and why others that were asked for are not drawn.
Figures: TypeAlias = tuple[dict[str, "Callable[[], Figure]"], list[str]]


class Written(NamedTuple):
    """What `write_results` left on disk: the folder, its files by name, and what is to be said about them."""

    folder: Path
    files: tuple[str, ...]
    notes: tuple[str, ...]


def write_results(
    out_dir: str | Path,
    results: Sequence[ResultLike],
    run_info: Mapping[str, Any],
    *,
    tables: Sequence[str] | None = None,
    plots: Sequence[str] | None = None,
    look: Look = UNASKED_LOOK,
    page: Path | None = None,
) -> Written:
    """Write tables, plots and ``run.json`` to a folder, whole or not at all.

    Parameters
    ----------
    out_dir : path
        The folder; another run's results in it are replaced whole.
    results : sequence of ResultLike
        One per point, in the order of the rows. Tables of a single run are written if there is only one.
    run_info : mapping
        Must hold ``scenario``, the whole document; may hold ``seed``, ``notes`` and whatever JSON can hold.
        Versions and the list of files are added.
    tables : sequence of str, optional
        Tables wanted beside ``summary``; all that there are by default.
    plots : sequence of str, optional
        Names of `plots.PLOTS`; all that apply by default. One that does not is left out, and a note says why.
    look : Look
        How plots are drawn, and as which files.
    page : Path, optional
        Where one page of it all goes: `PAGE` in the folder, or a file elsewhere, which is written after the folder.

    Raises
    ------
    ResultsError
        Nothing was written: see `atomic.written_whole`.
    """
    found = typed_tables(results)
    with written_whole(Path(out_dir)) as folder:
        skipped: Sequence[str] = ()
        files = [*_write_tables(found, folder, tables), MANIFEST]
        if plots is None or plots:
            figures, skipped = _figures(as_results(found, run_info), plots)
            files += _draw(figures, look, folder.joinpath)
        info = manifest(run_info, files, skipped)
        if page is not None:
            from ringnet.reporting.page import document  # noqa: PLC0415 -- a run is written without pandas

            text = document.run_page(as_results(found, info), document.way(page, Path(out_dir)))
        if page == Path(out_dir) / PAGE:
            (folder / PAGE).write_text(text, encoding="utf-8")
            info["files"] = files = [*files, PAGE]
            page = None
        write_json(info, folder / MANIFEST)
    if page is not None:
        write_text(page, text)
    return Written(Path(out_dir), tuple(files), tuple(info["notes"]))


def _write_tables(found: Mapping[str, Table], folder: Path, wanted: Sequence[str] | None) -> list[str]:
    """Write the tables that there are, in the order of `RUN_TABLES`; return their file names."""
    files = []
    for name in RUN_TABLES:
        if name in found and (wanted is None or name == "summary" or name in wanted):
            write_table(found[name], folder / f"{name}.csv")
            files.append(f"{name}.csv")
    return files


def _draw(figures: Mapping[str, Callable[[], Figure]], look: Look, place: Callable[[str], Path]) -> list[str]:
    """Draw figures to where ``place`` says for the name of each file; return the names."""
    paths = {name: {ending: place(f"{name}.{ending}") for ending in look.formats} for name in figures}
    if figures:
        draw_to([(paths[name], draw) for name, draw in figures.items()], look)
    return [f"{name}.{ending}" for name in figures for ending in look.formats]


def write_study(
    out_dir: Path,
    run_info: Mapping[str, Any],
    tables: Mapping[str, pd.DataFrame],
    *,
    plots: bool = True,
    look: Look = UNASKED_LOOK,
) -> Written:
    """Write the tables of a study, which is no run, what plots suit them and ``run.json``, whole or not at all.

    Parameters
    ----------
    out_dir : Path
        The folder; another run's results in it are replaced whole.
    run_info : mapping
        As for `write_results`.
    tables : mapping of str to DataFrame
        By the name of the file, without ``.csv``; one of them by a name of `STUDIES`.
    plots : bool
    look : Look
        How plots are drawn, and as which files.

    Raises
    ------
    ResultsError
        Nothing was written.
    """
    files = [f"{table}.csv" for table in tables] + [MANIFEST]
    with written_whole(out_dir) as folder:
        for table, frame in tables.items():
            write_table(frame, folder / f"{table}.csv")
        if plots:
            files += _draw(_study_figures(run_info, tables)[0], look, folder.joinpath)
        write_json(manifest(run_info, files, ()), folder / MANIFEST)
    return Written(out_dir, tuple(files), tuple(run_info.get("notes", ())))


def write_perfetto(results: Results, target: Path) -> None:
    """Write a single run as a trace of Perfetto, whole or not at all.

    Raises
    ------
    ResultsError
        The package is missing, there are no rows of transfers, or the file cannot be written.
    """
    try:
        from ringnet.reporting.perfetto import write_trace  # noqa: PLC0415 -- an extra
    except ImportError as error:
        right = "pip install 'ringnet[perfetto]'"
        raise ResultsError(Fault(f"a trace needs the package perfetto: {error}", right=right)) from error
    with written_file(target) as path, path.open("wb") as file:
        write_trace(results, file)


def manifest(run_info: Mapping[str, Any], files: Sequence[str], notes: Sequence[str]) -> dict[str, Any]:
    """Return what ``run.json`` holds: what is known of the run, versions, notes and files."""
    return {
        VERSION_KEY: RESULTS_VERSION,
        "versions": _versions(),
        "seed": run_info.get("seed"),
        **{key: value for key, value in run_info.items() if key not in {VERSION_KEY, "versions", "files", "notes"}},
        "notes": [*run_info.get("notes", ()), *notes],
        "files": list(files),
    }


def _versions() -> dict[str, str]:
    return {"ringnet": __version__, "python": platform.python_version()} | {
        package: _version_of(package) for package in ("numpy", "simpy")
    }


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def write_json(document: Mapping[str, Any], path: Path) -> None:
    """Write a document; `TypeError` for what JSON cannot hold."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False, default=_plain)
    path.write_text(text + "\n", encoding="utf-8")


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path | tuple):
        return str(value)
    raise TypeError(f"run.json cannot hold a {type(value).__name__}: {value!r}")


def read_results(folder: str | Path) -> Results:
    """Read what `write_results` wrote.

    Raises
    ------
    ResultsError
        A folder that is not there or holds no results, a damaged file, a missing column, a newer version.
    """
    folder = Path(folder)
    info = read_manifest(folder)
    names = [name for name in RUN_TABLES if f"{name}.csv" in info["files"]]
    if "summary" not in names:
        studied = [name for name in STUDIES if f"{name}.csv" in info["files"]]
        what = f"these are results of ringnet {studied[0]}" if studied else "run.json lists no summary.csv"
        raise ResultsError(Fault(what, file=str(folder / MANIFEST), right="a folder that ringnet run wrote"))
    frames = {name: read_table(folder / f"{name}.csv", name) for name in names}
    if frames["summary"].empty:
        raise ResultsError(Fault("this table has no rows", file=str(folder / "summary.csv")))
    return Results(run_info=info, **frames)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read ``run.json`` of a folder of results.

    Raises
    ------
    ResultsError
        There is none, it is damaged, or a newer ringnet wrote it.
    """
    path = folder / MANIFEST
    if not path.is_file():
        what = "there is no such folder"
        if folder.exists():
            what = f"this is {'not' if folder.is_dir() else 'a file, not'} a folder of results: no run.json in it"
        raise ResultsError(Fault(what, file=str(folder), right="a folder that ringnet run wrote"))
    try:
        info = json.loads(decode(read_bounded(path, MOST_BYTES, "a run.json"), str(path)), parse_constant=float)
        json.dumps(info, ensure_ascii=False, allow_nan=False).encode()
    except InputError as error:
        raise ResultsError(*error.faults) from None
    except (ValueError, RecursionError) as error:
        raise ResultsError(Fault(f"run.json cannot be read: {clip(str(error))}", file=str(path))) from None
    return _checked(info, path)


def _checked(info: Any, path: Path) -> dict[str, Any]:
    if not isinstance(info, dict) or not isinstance(info.get(VERSION_KEY), int):
        raise ResultsError(Fault("this run.json was not written by ringnet", VERSION_KEY, str(path)))
    if info[VERSION_KEY] > RESULTS_VERSION:
        raise ResultsError(_too_new(info, path))
    refused = [
        Fault(f"run.json is damaged: {key} is not {what}", key, str(path), value=clip(str(info.get(key))))
        for key, (what, is_right) in _WRITTEN.items()
        if (key in info or key in _NEEDED) and not is_right(info.get(key))
    ]
    if refused:
        raise ResultsError(*refused)
    return info


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(values: object) -> bool:
    return isinstance(values, list) and all(map(_is_text, values))


def _are_names(values: object) -> bool:
    """Whether these are names of files in the folder itself: none that leads out of it."""
    return isinstance(values, list) and all(_is_text(name) and Path(name).name == name for name in values)


def _is_below_or_beside(value: object) -> bool:
    """Whether this is how `run.json` speaks of the folder of the data, seen from its own: never from the root."""
    return isinstance(value, str) and "\0" not in value and not Path(value).is_absolute()


def _are_digests(values: object) -> bool:
    return isinstance(values, dict) and all(map(_is_text, values.values()))


#: What stands in a manifest that is read again: in words, and whether it is that.
_WRITTEN: dict[str, tuple[str, Callable[[object], bool]]] = {
    "scenario": ("a scenario", lambda value: isinstance(value, dict)),
    "files": ("a list of names of files in the folder", _are_names),
    "notes": ("a list of sentences", _are_texts),
    "data_folder": ("a folder, seen from this one", _is_below_or_beside),
    "data_sha256": ("a SHA-256 for each file", _are_digests),
}
_NEEDED = ("scenario", "files")


def _too_new(info: dict[str, Any], path: Path) -> Fault:
    wrote = info["versions"].get("ringnet", "?") if isinstance(info.get("versions"), dict) else "?"
    message = f"these results were written by a newer ringnet ({wrote}); this one is {__version__}"
    return Fault(message, VERSION_KEY, str(path), value=str(info[VERSION_KEY]), right=f"{RESULTS_VERSION} or less")


def tables_of_study(info: Mapping[str, Any]) -> list[str]:
    """Return the names of the tables that a study wrote; none for a run."""
    return [name for name in TABLES if name not in RUN_TABLES and f"{name}.csv" in info["files"]]


@contextmanager
def listed_also(folder: Path, info: Mapping[str, Any], files: Sequence[str]) -> Iterator[Callable[[], None]]:
    """Give what lists more files of a folder, to be called when they are written and do not have their names yet.

    Who is killed then has listed what is not there; what is there and not listed would be foreign to the next run. On
    an error those that were not there before go again, and the list is as it was.
    """
    manifest, new = folder / MANIFEST, [folder / file for file in files if not (folder / file).exists()]
    before = manifest.read_bytes()

    def list_them() -> None:
        with written_file(manifest) as path:
            write_json({**info, "files": list(dict.fromkeys([*info["files"], *files]))}, path)

    try:
        yield list_them
    except BaseException:
        with suppress(OSError, ResultsError):  # what went wrong is told by the error
            for file in new:
                file.unlink(missing_ok=True)
            if manifest.read_bytes() != before:
                with written_file(manifest) as path:
                    path.write_bytes(before)
        raise


def redraw(folder: str | Path, names: Sequence[str] | None = None, look: Look = UNASKED_LOOK) -> Written:
    """Draw plots again from the tables of a folder, into the same folder, without simulating.

    Parameters
    ----------
    folder : path
        Of a run, a sweep or a study.
    names : sequence of str, optional
        Names of `plots.PLOTS`, of a study `plots.STUDY_PLOTS`; all that apply by default.
    look : Look
        How plots are drawn, and as which files.

    Raises
    ------
    ResultsError
        As `read_results`; and for a name that is no plot, or one that does not apply, with the reason.
    """
    folder = Path(folder)
    info = read_manifest(folder)
    if studied := tables_of_study(info):
        tables = {table: read_table(folder / f"{table}.csv", table) for table in studied}
        figures, skipped = _study_figures(info, tables, names)
    else:
        figures, skipped = _figures(read_results(folder), names)
    if skipped and names is not None:
        raise ResultsError(*(Fault(note, file=str(folder)) for note in skipped))
    files = [f"{name}.{ending}" for name in figures for ending in look.formats]
    with listed_also(folder, info, files) as list_them, ExitStack() as stack:
        paths = {file: stack.enter_context(written_file(folder / file)) for file in files}
        _draw(figures, look, paths.__getitem__)
        list_them()
    return Written(folder, tuple(files), ())


def _figures(results: Results, names: Sequence[str] | None) -> Figures:
    chosen, skipped = choose(results, names)
    return {name: partial(PLOTS[name].draw, results) for name in chosen}, skipped


def _study_figures(
    info: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], names: Sequence[str] | None = None
) -> Figures:
    chosen, skipped = choose_of_study(tables, names)
    title, plots = str(info["scenario"].get("name", "")), {name: STUDY_PLOTS[name] for name in chosen}
    return {name: partial(plot.draw, title, tables[plot.table]) for name, plot in plots.items()}, skipped


def write_report(folder: str | Path, page: Path | None = None) -> Path:
    """Write one page of a folder of results, without simulating; return where it is.

    Parameters
    ----------
    folder : path
        Of a run, a sweep or a study.
    page : Path, optional
        The file; `PAGE` in the folder by default.

    Raises
    ------
    ResultsError
        As `read_results`; and for what no run writes, and a file that cannot be written.
    """
    from ringnet.reporting.page import document  # noqa: PLC0415 -- a run is written without pandas

    folder = Path(folder)
    page, info = page or folder / PAGE, read_manifest(folder)
    shown = info | {"files": [name for name in info["files"] if name != PAGE and (folder / name).exists()]}
    where = document.way(page, folder)
    if studied := tables_of_study(info):
        tables = {table: read_table(folder / f"{table}.csv", table) for table in studied}
        text = document.study_page(shown, tables, where)
    else:
        text = document.run_page(replace(read_results(folder), run_info=shown), where)
    is_inside = page == folder / PAGE
    with listed_also(folder, info, [PAGE] * is_inside) as list_them, written_file(page) as fresh:
        fresh.write_text(text, encoding="utf-8")
        if is_inside:
            list_them()
    return page
