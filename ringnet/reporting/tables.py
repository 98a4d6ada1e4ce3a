"""A run's tables as they are on disk: all that a plot, a comparison or a line of text takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pandas as pd

from ringnet.analysis.html import result_html
from ringnet.reporting.columns import RUN_TABLES, TABLES
from ringnet.reporting.html import sweep_html
from ringnet.reporting.kinds import typed_frame


class ResultLike(Protocol):
    """What `write_results` takes of one run: a row of the summary, and its tables where there are any."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """The row of the summary, by column."""

    @property
    def transfers(self) -> pd.DataFrame | None:
        """One row per transfer, if they were kept."""

    @property
    def links(self) -> pd.DataFrame | None:
        """One row per link."""

    @property
    def workers(self) -> pd.DataFrame | None:
        """One row per worker."""

    @property
    def states(self) -> pd.DataFrame | None:
        """The buffer of every worker after every step, if it is small."""


@dataclass(frozen=True, eq=False)
class Results:
    """A folder of results as it is on disk: all that a plot, a table or a comparison takes.

    Parameters
    ----------
    summary : DataFrame
        One row per point; columns as in `columns.TABLES`, then one per swept key that has none of its own.
    links, workers, transfers, states, jobs, queues : DataFrame or None
        Tables of a single run, where they were written.
    run_info : dict
        ``run.json``: scenario, versions, seed, notes, files.
    """

    summary: pd.DataFrame
    links: pd.DataFrame | None = None
    workers: pd.DataFrame | None = None
    transfers: pd.DataFrame | None = None
    states: pd.DataFrame | None = None
    jobs: pd.DataFrame | None = None
    queues: pd.DataFrame | None = None
    run_info: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return str(self.summary["name"].iloc[0] or "")

    def _repr_html_(self) -> str:
        """Show a sweep as a table with a row per point, a single run as its answer, in a notebook."""
        notes = self.run_info.get("notes", ())
        if len(self.summary) == 1:
            return result_html({str(key): value for key, value in self.summary.iloc[0].items()}, notes=notes)
        return sweep_html(self.summary, notes)

    @property
    def finished(self) -> pd.DataFrame:
        """Rows of the summary that have an answer."""
        return self.summary[self.summary["error"].isna() & self.summary["makespan_s"].notna()]


def collect(results: Sequence[ResultLike], run_info: Mapping[str, Any]) -> Results:
    """Return the same `Results` that would be read back from disk.

    Parameters
    ----------
    results : sequence of ResultLike
        One per point, at least one; tables other than the summary and the jobs are taken where there is one only.
    run_info : mapping
        What ``run.json`` shall hold.
    """
    rows = pd.DataFrame([dict(result.summary) for result in results], dtype=object)
    swept = [name for name in rows.columns if name not in TABLES["summary"]]
    summary = typed_frame(rows.reindex(columns=[*TABLES["summary"], *swept]), "summary")
    frames = _frames(results[0]) if len(results) == 1 else {}
    return Results(summary, run_info=dict(run_info), **(frames | _jobs(results)))


def _jobs(results: Sequence[ResultLike]) -> dict[str, pd.DataFrame]:
    """Return the jobs of all points, where some have several."""
    frames = [(point, getattr(result, "jobs", None)) for point, result in enumerate(results)]
    numbered = [frame.assign(point=point) for point, frame in frames if frame is not None]
    return {"jobs": typed_frame(pd.concat(numbered, ignore_index=True), "jobs")} if numbered else {}


def _frames(result: ResultLike) -> dict[str, Any]:
    frames = {name: getattr(result, name, None) for name in RUN_TABLES if name not in ("summary", "jobs")}
    return {name: typed_frame(frame, name) for name, frame in frames.items() if frame is not None}
