"""The answer as HTML, for a notebook; every text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from ringnet.reporting.text import answer, sweep_table


def result_html(row: Mapping[str, Any], made_of: str = "", notes: Iterable[str] = ()) -> str:
    """Return one run as a table of labels and values, its name above and its notes below.

    Parameters
    ----------
    row : mapping
        A row of the summary.
    made_of : str, optional
        What the time is made of, in words.
    notes : iterable of str
        What a person should know to read the numbers.

    Examples
    --------
    >>> "&lt;b&gt;" in result_html({"name": "<b>", "sum_ok": None})
    True
    """
    cells = "".join(
        f"<tr>{_cell('th', label)}{_cell('td', value)}</tr>" for label, value in answer(row, made_of)
    )
    return f"<div>{_caption(row.get('name'))}<table><tbody>{cells}</tbody></table>{_list(notes)}</div>"


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
    head, rows = _row("th", table.heads), "".join(_row("td", row) for row in table.rows)
    body = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return f"<div>{_caption(summary['name'].iloc[0])}{body}{_list(notes)}</div>"


def _row(tag: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(_cell(tag, text) for text in texts)}</tr>"


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="text-align: left">{escape(text)}</{tag}>'


def _caption(name: object) -> str:
    return f"<p><b>{escape(str(name))}</b></p>" if name else ""


def _list(notes: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<ul>{items}</ul>" if items else ""
