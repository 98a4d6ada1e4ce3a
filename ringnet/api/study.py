"""What came of many simulations, or of a fit: a table, what is to be said of it, and its picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from ringnet.analysis.answer import caption_html, list_html
from ringnet.documents.text import one_line
from ringnet.reporting.plots import draw_of_study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Rows that a notebook shows of a table.
SHOWN_ROWS = 20


@dataclass(frozen=True, eq=False)
class Study:
    """What came of a study.

    Parameters
    ----------
    name : str
        Of the scenario.
    kind : str
        Which study it is: ``compare``, ``numerics``, ``blame``, ``whatif``, ``calibrate`` or ``predict``.
    table : pandas.DataFrame
        Columns as ``ringnet list columns`` has them.
    notes : tuple of str
        What a person should know to read it; of a comparison first which algorithm to use from which size on.
    failed : tuple of str
        Which parts have no answer because something went wrong, and what.
    """

    name: str
    kind: str
    table: pd.DataFrame
    notes: tuple[str, ...]
    failed: tuple[str, ...] = ()

    def plot(self, name: str | None = None, ax: Axes | None = None) -> Figure:
        """Draw a picture of the study.

        Parameters
        ----------
        name : str, optional
            ``time-by-algorithm``, ``bound-share-by-algorithm`` or ``winner-map`` of a comparison; the others have one
            each. The first that suits if left out.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a figure of its own otherwise.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ResultsError
            There is no such picture, the study has nothing for it, or it has several panels and ``ax`` is given.
        """
        return draw_of_study({self.kind: self.table}, self.name, name, ax)

    def __repr__(self) -> str:
        return f"<Study {self.kind} of {one_line(self.name)}: {len(self.table)} rows>"

    def _repr_html_(self) -> str:
        """Show notes and table in a notebook, escaped."""
        table = self.table.dropna(axis="columns", how="all").to_html(max_rows=SHOWN_ROWS, index=False)
        notes = list_html([*self.failed, *self.notes])
        return f"<div>{caption_html(f'{self.kind}: {self.name}')}{notes}{table}</div>"
