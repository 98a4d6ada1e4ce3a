"""The answer of one run as HTML, for a notebook; every text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ringnet.analysis.words import answer


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
    return (
        f"<div>{caption_html(row.get('name'))}<table><tbody>{cells}</tbody></table>{list_html(notes)}</div>"
    )


def row_html(tag: str, texts: Sequence[str]) -> str:
    """Return a row of cells, escaped."""
    return f"<tr>{''.join(_cell(tag, text) for text in texts)}</tr>"


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="text-align: left">{escape(text)}</{tag}>'


def caption_html(name: object) -> str:
    """Return a name as a heading, escaped; nothing for none."""
    return f"<p><b>{escape(str(name))}</b></p>" if name else ""


def list_html(notes: Iterable[str]) -> str:
    """Return notes as a list, escaped; nothing for none."""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<ul>{items}</ul>" if items else ""
