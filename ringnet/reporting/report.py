"""One page of a folder of results, written from what is on disk: see `ringnet.reporting.page`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ringnet.reporting.atomic import PAGE, written_file
from ringnet.reporting.page.document import run_page, study_page, way
from ringnet.reporting.storage import list_also, read_manifest, read_results, tables_of_study
from ringnet.reporting.tables import read_table


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
    folder = Path(folder)
    page, info = page or folder / PAGE, read_manifest(folder)
    shown = info | {"files": [name for name in info["files"] if name != PAGE]}
    where = way(page, folder)
    if studied := tables_of_study(info):
        tables = {table: read_table(folder / f"{table}.csv", table) for table in studied}
        text = study_page(shown, tables, where)
    else:
        text = run_page(replace(read_results(folder), run_info=shown), where)
    with written_file(page) as path:
        path.write_text(text, encoding="utf-8")
        if page == folder / PAGE:  # listed when it is all there but for its name
            list_also(folder, info, [PAGE])
    return page
