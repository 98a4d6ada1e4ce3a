"""Sweeps as HTML, for a notebook; every text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from ringnet.analysis.html import caption_html, list_html, row_html
from ringnet.reporting.text import sweep_table


def sweep_html(summary: pd.DataFrame, notes: Iterable[str] = ()) -> str:
    """Return a sweep as a table with one row per point.

    Parameters
    ----------
    summary : DataFrame
        As in `Results.summary`.
    notes : iterable of str
        What a person should know to read the numbers.
    """
    table = sweep_table(summary)
    head, rows = row_html("th", table.heads), "".join(row_html("td", row) for row in table.rows)
    body = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return f"<div>{caption_html(summary['name'].iloc[0])}{body}{list_html(notes)}</div>"
