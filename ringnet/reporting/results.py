"""Results in memory: all tables of one run or sweep as on disk; and two of them side by side, by what was changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np

from ringnet.analysis.answer import is_missing, result_html
from ringnet.analysis.frames import Table, of_rows, rows_of
from ringnet.errors import Fault, ResultsError
from ringnet.reporting.columns import ANSWERS, OF_SOME_RUNS, OF_TRAINING, RUN_TABLES, TABLES
from ringnet.reporting.plots import draw
from ringnet.reporting.sweeps import distinguishing
from ringnet.reporting.tables import RunTables, frame_of, typed_table
from ringnet.reporting.text import sweep_html
from ringnet.units import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Tables of which a sweep has the rows of all its points.
OF_POINTS = ("jobs", "runs")
#: Of a SHA-256, for a person: enough to tell contents apart.
SHOWN_DIGITS = 12


class ResultLike(Protocol):
    """What `write_results` takes of one run: a row of the summary, and its tables where there are any."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """The row of the summary, by column."""

    def columns(self, table: str) -> Table | None:
        """Return another table by the name of its file, if there is one."""


@dataclass(frozen=True, eq=False, repr=False)
class Results(RunTables):
    """A folder of results as it is on disk: all that a plot, a table or a comparison takes.

    Parameters
    ----------
    summary : DataFrame
        One row per point; columns as in `columns.TABLES`, then one per swept key that has none of its own.
    links, workers, transfers, states, jobs, runs, queues, utilisation, routes, path, trouble : DataFrame or None
    training, divergence, step_states : DataFrame or None
        Tables of a single run, where they were written.
    run_info : dict
        ``run.json``: scenario, versions, seed, notes, files.
    """

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

    def __repr__(self) -> str:
        tables = ", ".join(name for name in RUN_TABLES if getattr(self, name) is not None)
        points = f"{counted(len(self.summary), 'point')}"
        return f"<Results {self.name}: {points}; tables {tables}>"

    def plot(self, name: str, ax: Axes | None = None) -> Figure:
        """Draw a picture of the run or the sweep.

        Parameters
        ----------
        name : str
            One of ``ringnet list plots``: ``"time-vs-workers"``.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a figure of its own otherwise.

        Returns
        -------
        matplotlib.figure.Figure
            A notebook shows it; ``figure.savefig`` writes it.

        Raises
        ------
        ResultsError
            There is no such picture, the results have nothing for it, or it has several panels and ``ax`` is given.
        """
        return draw(self, name, ax)


def collect(results: Sequence[ResultLike], run_info: Mapping[str, Any]) -> Results:
    """Return the same `Results` that would be read back from disk.

    Parameters
    ----------
    results : sequence of ResultLike
        One per point, at least one; tables other than the summary and the jobs are taken where there is one only.
    run_info : mapping
        What ``run.json`` shall hold.
    """
    return as_results(typed_tables(results), run_info)


def as_results(tables: Mapping[str, Table], run_info: Mapping[str, Any]) -> Results:
    """Return tables of `typed_tables` as data frames."""
    frames = {name: frame_of(table, name) for name, table in tables.items()}
    return Results(frames.pop("summary"), run_info=dict(run_info), **frames)


def typed_tables(results: Sequence[ResultLike]) -> dict[str, Table]:
    """Return what is written of a run or of the points of a sweep: each table by its name, each column of its type.

    Tables other than the summary and the jobs are taken where there is one result only.
    """
    rows = of_rows([result.summary for result in results])
    empty = np.full(len(results), None)
    ordered = {name: rows.get(name, empty) for name in TABLES["summary"]}
    tables = {"summary": ordered | rows}
    names = [name for name in RUN_TABLES if name not in ("summary", *OF_POINTS)] if len(results) == 1 else []
    found = {name: results[0].columns(name) for name in names}
    tables |= {name: table for name, table in found.items() if table is not None}
    if jobs := _jobs(results):
        tables["jobs"] = jobs
    if runs := _runs(results):
        tables["runs"] = runs
    return {name: typed_table(table, name) for name, table in tables.items()}


def _jobs(results: Sequence[ResultLike]) -> Table | None:
    """Return the jobs of all points, where some have several."""
    rows = [row | {"point": point} for point, result in enumerate(results) for row in rows_of(result.columns("jobs"))]
    of_runs_only = {*TABLES["summary"], *OF_SOME_RUNS} - {*TABLES["jobs"]}
    return {name: cells for name, cells in of_rows(rows).items() if name not in of_runs_only}


def _runs(results: Sequence[ResultLike]) -> Table | None:
    """Return the runs of all points, where some are repeated."""
    found = [(point, table) for point, one in enumerate(results) if (table := one.columns("runs"))]
    numbered = [{"point": np.full(len(table["run"]), point), **table} for point, table in found]
    if len(results) == 1 or not numbered:
        return found[0][1] if found else None
    return {name: np.concatenate([table[name] for table in numbered]) for name in numbered[0]}


class Difference(NamedTuple):
    """What `diff_results` found; the frames have no rows where nothing differs.

    Parameters
    ----------
    scenario : DataFrame
        ``path, a, b``: keys of the scenario that differ, ``None`` where one has no such key; and files that do, by the
        first digits of their SHA-256.
    answer : DataFrame
        One column per key that the points are matched on, then ``column, a, b, ratio``: cells of the summary
        that differ, and b/a where both are numbers and a is not zero.
    only_a, only_b : DataFrame
        Points that the other does not have, by the keys that they were matched on.
    """

    scenario: pd.DataFrame
    answer: pd.DataFrame
    only_a: pd.DataFrame
    only_b: pd.DataFrame


def diff_results(a: Results, b: Results) -> Difference:
    """Compare two folders of results; points of sweeps are matched on what either sweep varies.

    Raises
    ------
    ResultsError
        The points cannot be told apart by the keys that both have: the sweeps vary different keys.
    """
    import pandas as pd  # noqa: PLC0415 -- a run is written without

    keys = _matching_keys(a, b)
    rows_a, rows_b = _by_key(a.summary, keys), _by_key(b.summary, keys)
    common = [key for key in rows_a if key in rows_b]
    changes = [(*key, *change) for key in common for change in _changes(rows_a[key], rows_b[key])]
    return Difference(
        scenario=pd.DataFrame(_changed_keys(a, b), columns=["path", "a", "b"], dtype=object),
        answer=pd.DataFrame(changes, columns=[*keys, "column", "a", "b", "ratio"], dtype=object),
        only_a=pd.DataFrame([key for key in rows_a if key not in rows_b], columns=keys, dtype=object),
        only_b=pd.DataFrame([key for key in rows_b if key not in rows_a], columns=keys, dtype=object),
    )


def _matching_keys(a: Results, b: Results) -> list[str]:
    """Keys that vary within a or within b; a key that only one of them has cannot match anything."""
    keys = dict.fromkeys([*distinguishing(a.summary), *distinguishing(b.summary)])
    return [key for key in keys if key in a.summary.columns and key in b.summary.columns]


def _by_key(summary: pd.DataFrame, keys: list[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    records = cast("list[dict[str, Any]]", summary.to_dict("records"))
    rows = {tuple(row[key] for key in keys): row for row in records}
    if len(rows) < len(summary):
        message = "the points of the two sweeps cannot be matched: they vary different keys"
        found, right = ", ".join(keys) or "no key in common", "two sweeps over the same keys"
        raise ResultsError(Fault(message, "sweep", value=found, right=right))
    return rows


def _changes(row_a: Mapping[str, Any], row_b: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield every cell of the answer, and the engine, that differs between two points."""
    for column in ("engine", *ANSWERS, *OF_TRAINING):
        value_a, value_b = _plain(row_a.get(column)), _plain(row_b.get(column))
        if value_a != value_b:
            yield column, value_a, value_b, _ratio(value_a, value_b)


def _plain(value: Any) -> Any:
    """Return a cell as Python has it, every way of being missing as None."""
    if is_missing(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def _ratio(a: Any, b: Any) -> float | None:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (a, b))
    return b / a if numbers and a else None


def _changed_keys(a: Results, b: Results) -> list[tuple[str, Any, Any]]:
    flat_a, flat_b = _said(a.run_info), _said(b.run_info)
    paths = dict.fromkeys([*flat_a, *flat_b])
    return [(path, flat_a.get(path), flat_b.get(path)) for path in paths if flat_a.get(path) != flat_b.get(path)]


def _said(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return every key of the scenario, and which content each of its files had."""
    digests = info.get("data_sha256", {})
    contents = {f"content of {name}": str(digest)[:SHOWN_DIGITS] for name, digest in digests.items()}
    return dict(_flat(info["scenario"])) | contents


def _flat(document: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf with its path; a list of plain values is one leaf, as it stands in the scenario.

    >>> list(_flat({"network": {"bandwidth": "50 GB/s", "links": [{"a": 1}]}, "workers": [2, 4]}))
    [('network.bandwidth', '50 GB/s'), ('network.links[0].a', 1), ('workers', '[2, 4]')]
    """
    for key, value in document.items():
        path = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping):
            yield from _flat(value, path)
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                yield from _flat({f"{path}[{index}]": item})
        else:
            yield path, json.dumps(value) if isinstance(value, list) else value
