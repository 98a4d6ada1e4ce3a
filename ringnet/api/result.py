"""What a run means, as a script or a notebook has it: numbers and tables, pictures, a folder, whom to blame."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from ringnet.analysis.frames import Table
from ringnet.analysis.result import RunResult
from ringnet.api.questions import blame
from ringnet.api.study import Study
from ringnet.array_types import Array
from ringnet.reporting.atomic import write_text
from ringnet.reporting.columns import RUN_TABLES
from ringnet.reporting.page.document import run_page
from ringnet.reporting.results import Results, collect
from ringnet.reporting.storage import manifest, write_perfetto, write_results
from ringnet.reporting.tables import frame_of, typed_table
from ringnet.scenario import Scenario
from ringnet.study.points import run_info

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class HeldOutputs:
    """The verified results, once they were made: all that a pickle keeps of what made them."""

    arrays: tuple[Array, ...]

    def __call__(self) -> list[Array]:
        """Return them."""
        return list(self.arrays)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result(RunResult):
    """What one run means.

    Parameters
    ----------
    summary : dict
        The row of ``summary.csv``: values by column, None for an empty cell.
    verdict : Verdict
        Whether the sum is right, and how that is known.
    notes : tuple of str
        What a person should know to read the numbers.
    outputs : callable
        Returns the verified results: a list with one array, or one array per worker for reduce-scatter.
    tables : mapping of str to dict
        By the names of their files, as columns: what ``links``, ``workers`` and so on make data frames of.
    parameters : dict of str to ndarray, or None
        Of a training: the parameters after the last step, by name.
    scenario : Scenario
        What was simulated.
    """

    scenario: Scenario

    @classmethod
    def of(cls, found: RunResult, scenario: Scenario) -> Self:
        """Return what `ringnet.runs.simulate` found of a scenario."""
        return cls(**{one.name: getattr(found, one.name) for one in fields(RunResult)}, scenario=scenario)

    def _as_frame(self, columns: Table, table: str) -> pd.DataFrame:
        """Return a table with the types that it has when it is read from disk: text is text in one way everywhere."""
        return frame_of(typed_table(columns, table), table)

    def plot(self, name: str, ax: Axes | None = None) -> Figure:
        """Draw a picture of the run, one of ``ringnet list plots``: ``"space-time"``; see `Results.plot`."""
        return self._tables().plot(name, ax)

    def save(self, folder: str | os.PathLike[str], *, plots: bool = True) -> Path:
        """Write tables, plots and ``run.json`` to a folder, as ``ringnet run`` does, whole or not at all.

        Parameters
        ----------
        folder : path
            Another run's results in it are replaced whole.
        plots : bool
            Whether plots are drawn.

        Returns
        -------
        pathlib.Path
            The folder.

        Raises
        ------
        ResultsError
            The folder cannot be written, or holds what ringnet did not write: nothing is written.
        """
        report, where = self.scenario.report, Path(folder)
        pictures = report.plots if plots else ()
        return write_results(
            where, [self], self._info(where), tables=report.tables, plots=pictures, look=report.figure.look
        ).folder

    def to_html(self, file: str | os.PathLike[str]) -> Path:
        """Write one page to be opened in a browser, without a network, as ``ringnet run --html`` does.

        Parameters
        ----------
        file : path
            All that is on the page is in this file.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        ResultsError
            The file cannot be written.
        """
        page = Path(file)
        shown = collect([self], manifest(self._info(page.parent), (), ()))
        write_text(page, run_page(shown, "."))
        return page

    def to_perfetto(self, file: str | os.PathLike[str]) -> Path:
        """Write what happened when as a trace for ui.perfetto.dev, as ``ringnet export --perfetto`` does.

        Raises
        ------
        ResultsError
            The package ``perfetto`` is missing, transfers are not kept, or the file cannot be written.
        """
        write_perfetto(self._tables(), Path(file))
        return Path(file)

    @cached_property
    def blame(self) -> Study:
        """Who holds the run back, as `ringnet.blame` says with its defaults: simulated when it is first asked for."""
        return blame(self.scenario)

    def _tables(self) -> Results:
        return collect([self], {})

    def _info(self, where: Path) -> Mapping[str, Any]:
        return run_info(self.scenario, where, self.summary["seed"], self.notes)

    def __getstate__(self) -> dict[str, Any]:
        """Return the tables and the arrays, without what they were made from."""
        held = HeldOutputs(tuple(np.asarray(array) for array in self.outputs()))
        state = {one.name: getattr(self, one.name) for one in fields(self)}
        made = {name: table for name in RUN_TABLES if (table := self.columns(name)) is not None}
        return {**state, "tables": made, "outputs": held, "made_from": (), "_made": made}
