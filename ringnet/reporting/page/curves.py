"""What a page shows of many points: lines over whatever was varied, and who is fastest at which N and size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ringnet.analysis.winners import ranges
from ringnet.reporting.page.packing import Packer
from ringnet.reporting.results import Results
from ringnet.reporting.sweeps import describe, lines, numbers, other_keys, short, varying

#: What can be drawn upwards, in the order in which it is offered.
MEASURES = {
    "makespan_s": "time",
    "algbw_Bps": "algbw",
    "busbw_Bps": "busbw",
    "bound_share": "share of the bound",
}
#: What a sweep tells beside what was simulated, drawn with it where the measure is time.
BESIDE = {"closed_form_s": "closed form", "collective_bound_s": "bound"}
_AXES = {"n_workers": "workers, N", "message_bytes": "message size"}


def sweep_header(results: Results, packer: Packer) -> dict[str, Any]:
    """Pack a sweep: its table, and a chart for each key that it varies."""
    summary = results.summary.reset_index(drop=True)
    frames = {"summary": summary} | ({} if results.jobs is None else {"jobs": results.jobs})
    done = summary[summary["error"].isna() & (summary["makespan_s"] > 0)]
    keys = [key for key in ("n_workers", "message_bytes") if key in varying(done)]
    charts = [_chart(done, key, packer) for key in dict.fromkeys([*keys, *other_keys(done)])] if len(done) else []
    return {"tables": _tables(frames, packer), "of": "summary", "charts": charts, "measures": _measures(done)}


def study_header(tables: Mapping[str, pd.DataFrame], packer: Packer) -> dict[str, Any]:
    """Pack the tables of a study; of a comparison, also its charts and its map of winners."""
    told: dict[str, Any] = {"tables": _tables(tables, packer)}
    if "compare" not in tables:
        return told
    table = tables["compare"].reset_index(drop=True)
    shown = table[(table["message_bytes"] > 0) & (table["makespan_s"] > 0) & table["algorithm"].notna()]
    names = sorted(set(shown["algorithm"]))
    charts = [
        {"title": f"N = {n}", "label": _AXES["message_bytes"], "lines": [*_by_algorithm(rows, names)]}
        | {"column": "message_bytes", "at": _at(table["message_bytes"], packer)}
        for n, rows in shown.groupby("n_workers")
    ]
    return told | {
        "of": "compare",
        "charts": charts,
        "measures": _measures(shown),
        "winners": winners(shown, names) if _is_compared(shown) else None,
    }


def _is_compared(shown: pd.DataFrame) -> bool:
    """Whether at each N some algorithm was timed at all sizes: nothing else is ground for a map."""
    sizes = shown.groupby("n_workers")["message_bytes"].nunique()
    timed = shown.groupby(["n_workers", "algorithm"])["message_bytes"].nunique().groupby("n_workers").max()
    return len(shown) > 0 and bool((timed == sizes).all())


def _tables(frames: Mapping[str, pd.DataFrame], packer: Packer) -> dict[str, Any]:
    return {name: packer.table(name, frame) for name, frame in frames.items()}


def _measures(rows: pd.DataFrame) -> list[dict[str, Any]]:
    beside = [{"column": column, "label": label} for column, label in BESIDE.items() if _is_known(rows, column)]
    return [
        {"column": column, "label": label, "beside": beside if column == "makespan_s" else []}
        for column, label in MEASURES.items()
        if _is_known(rows, column)
    ]


def _is_known(rows: pd.DataFrame, column: str) -> bool:
    return column in rows and bool(np.isfinite(rows[column].to_numpy(np.float64, na_value=np.nan)).any())


def _chart(rows: pd.DataFrame, key: str, packer: Packer) -> dict[str, Any]:
    """Return a chart over one key: numbers, or words side by side in the order of the sweep."""
    label = _AXES.get(key, short(key))
    told: dict[str, Any] = {"title": f"over {label}", "label": label, "column": key}
    found, whole = numbers(rows[key]), range(int(rows.index.max()) + 1)
    told["lines"] = [
        {"label": line.label, "rows": line.rows.index.tolist(), "style": style}
        for style, line in enumerate(lines(rows, key))
    ]
    if found is not None:
        at = pd.Series(found.numbers, index=rows.index).reindex(whole)
        return told | {"at": _at(at, packer), "kind": found.kind}
    codes, words = pd.factorize(rows[key].astype(object).fillna("none"))
    at = pd.Series(codes, index=rows.index).reindex(whole)
    return told | {"at": _at(at, packer), "words": [describe(key, word) for word in words]}


def _at(cells: pd.Series[Any], packer: Packer) -> dict[str, Any]:
    return packer.add(cells.to_numpy(np.float64, na_value=np.nan))


def _by_algorithm(rows: pd.DataFrame, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a line for each algorithm, which looks alike in all charts and in the map."""
    for name, own in rows.sort_values("message_bytes", kind="stable").groupby("algorithm", sort=True):
        yield {"label": str(name), "rows": own.index.tolist(), "style": names.index(str(name))}


def winners(table: pd.DataFrame, names: Sequence[str]) -> dict[str, Any]:
    """Return who is to be used at each N and size, by places among ``names``; -1 where no time is ground for that.

    Parameters
    ----------
    table : DataFrame
        As ``compare.csv`` has it, times and sizes above zero.
    names : sequence of str
        All of its algorithms.
    """
    found = ranges(table)
    workers, sizes = (sorted(table[key].unique().tolist()) for key in ("n_workers", "message_bytes"))
    cells = np.full((len(workers), len(sizes)), -1)
    for one in found:
        within = [place for place, size in enumerate(sizes) if one.first_bytes <= size <= one.last_bytes]
        cells[workers.index(one.n_workers), within] = names.index(one.algorithm)
    return {"workers": workers, "sizes": sizes, "names": [*names], "cells": cells.tolist()}
