"""Figures as a paper wants them: one column wide, colours for every eye, settings in words, no state of pyplot."""

from __future__ import annotations

import functools
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ringnet.reporting.sweeps import describe, distinguishing, is_varied

if TYPE_CHECKING:
    import pandas as pd

P = ParamSpec("P")
T = TypeVar("T")

#: One column of a two-column paper, in inches.
COLUMN_IN = 3.5
#: Okabe and Ito (2008), without the yellow, which is too pale for a line on white.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
#: Paler, for areas that carry text: Okabe and Ito's eight, half mixed with white.
CHUNKS = ("#7FB8D9", "#F3CF80", "#80CEB9", "#EBAE80", "#E6BCD3", "#F8F2A1", "#ABDAF4", "#B8B8B8")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK, GREY, SOLID, PALE, ALERT = "#222222", "#767676", "#A4A9AE", "#D0D4D8", "#D55E00"

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#E4E6E8",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.6,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "legend.handlelength": 2.0,
    "legend.columnspacing": 1.0,
    "legend.labelspacing": 0.25,
    "hatch.linewidth": 0.5,
    "text.parse_math": False,  # a scenario's name is text, whatever dollars it has
    "svg.hashsalt": "ringnet",  # the same ids in every run
    "svg.fonttype": "path",  # looks the same where the font is missing
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}


@contextmanager
def _our_style() -> Iterator[None]:
    """Use our settings, on top of matplotlib's own defaults and not of the user's; then all is as before."""
    defaults: dict[Any, Any] = dict(matplotlib.rcParamsDefault)
    ours = {key: value for key, value in defaults.items() if not key.startswith("backend")} | _STYLE
    with matplotlib.rc_context(ours), warnings.catch_warnings():
        # A name in a script that the font does not have is drawn as boxes; that is no news for a terminal.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def in_style(draw: Callable[P, T]) -> Callable[P, T]:
    """Make a function draw in our style."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> T:
        with _our_style():
            return draw(*args, **kwargs)

    return drawn


def new_figure(height_in: float, n_rows: int = 1, *, sharex: bool = True) -> tuple[Figure, list[Axes]]:
    """Return a figure of one column's width and its axes, one above the other."""
    figure = Figure(figsize=(COLUMN_IN, height_in), layout="constrained")
    return figure, list(figure.subplots(n_rows, 1, sharex=sharex, squeeze=False)[:, 0])


def titled(figure: Figure, name: str, about: str, *legend: Sequence[Artist]) -> Figure:
    """Add a name, a line about what is shown, and the legend below, each in room of its own.

    Parameters
    ----------
    figure : Figure
        Grows by what the title and the legend need.
    name : str
    about : str
        What the picture shows and under which settings.
    *legend : sequence of Artist
        Labelled handles, in groups; each group starts a new row.
    """
    _legend_below(figure, [group for group in legend if group])
    _title_above(figure, plain(name), plain(about))
    return figure


def _legend_below(figure: Figure, groups: list[Sequence[Artist]]) -> None:
    if not groups:
        return
    n_columns = next(
        n for n in range(max(map(len, groups)), 0, -1) if n == 1 or _width(groups, n) < COLUMN_IN
    )
    rows = _rows(groups, n_columns)
    _grow(figure, 0.13 * len(rows) + 0.08)
    # A legend fills its columns one after the other, and reads along its rows all the same.
    handles = [row[column] for column in range(n_columns) for row in rows]
    figure.legend(handles=handles, loc="outside lower center", ncols=n_columns)


def _rows(groups: list[Sequence[Artist]], n_columns: int) -> list[list[Artist]]:
    """Lay out groups of handles in rows of equal length, with invisible ones at the end of a group."""
    rows = [
        list(group[start : start + n_columns])
        for group in groups
        for start in range(0, len(group), n_columns)
    ]
    return [row + [stroke("none", "") for _ in range(n_columns - len(row))] for row in rows]


def _width(groups: list[Sequence[Artist]], n_columns: int) -> float:
    """Estimate the width of a legend in inches: each column is as wide as its longest label."""
    columns = zip(*_rows(groups, n_columns), strict=True)
    return sum(0.36 + 0.051 * max(len(str(handle.get_label())) for handle in column) for column in columns)


def _title_above(figure: Figure, name: str, about: str) -> None:
    lines = [(line, 8.0, "bold", INK) for line in _wrapped(name, 48)]
    lines += [(line, 6.5, "normal", GREY) for line in _wrapped(about, 76)]
    room = sum(1.3 * size / 72 for _, size, _, _ in lines) + 0.06
    _grow(figure, room)
    height = figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, 0, 1, 1 - room / height))  # type: ignore[union-attr,call-arg]
    top = height - 0.04
    for line, size, weight, color in lines:
        figure.text(0.012, top / height, line, size=size, weight=weight, color=color, va="top")
        top -= 1.3 * size / 72


def _grow(figure: Figure, inches: float) -> None:
    figure.set_figheight(figure.get_figheight() + inches)


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text over two lines at most.

    >>> _wrapped("one slow link of many", 12)
    ['one slow', 'link of many']
    """
    return textwrap.wrap(text, width, max_lines=2, placeholder=" …")


def plain(text: str) -> str:
    r"""Return a text on one line, without what cannot be printed (which would break an SVG).

    >>> plain("one\nslow \x07link")
    'one slow link'
    """
    return " ".join("".join(char for char in text if char.isprintable() or char.isspace()).split())


def colors(n: int) -> list[str]:
    """Return n colours: the palette as long as it lasts, then steps from dark to light.

    >>> colors(2)
    ['#0072B2', '#E69F00']
    """
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    return [to_hex(colormaps["viridis"](0.92 * index / (n - 1))) for index in range(n)]


def markers(n: int) -> list[str]:
    """Return n markers, in turn."""
    return list(islice(cycle(MARKERS), n))


def paler(color: str) -> str:
    """Mix a colour with as much white."""
    red, green, blue = ((1 + part) / 2 for part in to_rgb(color))
    return to_hex((red, green, blue))


def on(color: str) -> str:
    """Return black or white, whichever can be read on a colour."""
    red, green, blue = to_rgb(color)
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"  # noqa: PLR2004 -- middle grey


def patch(color: str, label: str, **style: Any) -> Artist:
    """Return a filled square for a legend."""
    return Patch(facecolor=color, label=label, **style)


def stroke(color: str, label: str, **style: Any) -> Artist:
    """Return a line for a legend."""
    return Line2D([], [], color=color, label=label, **style)


@in_style
def save(figure: Figure, path: Path, ending: str) -> None:
    """Write a figure as ``png``, ``svg`` or ``pdf``: the same bytes whenever it is drawn again."""
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(path, format=ending, metadata=dated.get(ending))


def settings(rows: pd.DataFrame, *more: str) -> str:
    """Say what all points have in common: ``ring all-reduce, N = 8, 64 MiB, ring network, fifo, eager``."""
    fixed = {name: rows[name].iloc[0] for name in rows.columns if not is_varied(rows[name])}
    said = [" ".join(str(fixed[name]) for name in ("algorithm", "collective") if name in fixed)]
    said += [describe(name, fixed[name]) for name in ("n_workers", "message_bytes") if name in fixed]
    said += [f"{fixed['topology']} network"] if fixed.get("topology") else []
    said += [str(fixed[name]) for name in ("switching", "sharing", "sends") if fixed.get(name)]
    return ", ".join(filter(None, [*said, *more]))


def point_labels(rows: pd.DataFrame) -> list[str]:
    """Say of each point what tells it from the others."""
    keys = distinguishing(rows)
    return [", ".join(describe(key, row[key]) for key in keys) for row in rows.to_dict("records")]


def evenly_chosen(items: Sequence[T], most: int, what: str) -> tuple[list[T], str]:
    """Return at most so many items, evenly chosen from first to last, and a word if some are left out.

    >>> evenly_chosen(range(10), 4, "lines")
    ([0, 3, 6, 9], '4 of 10 lines shown')
    """
    if len(items) <= most:
        return list(items), ""
    chosen = np.linspace(0, len(items) - 1, most).round().astype(int)
    return [items[index] for index in chosen], f"{most} of {len(items)} {what} shown"


def clipped(text: str, width: int) -> str:
    """Shorten a text in its middle, where names differ least.

    >>> clipped("nodes.leaf12->spine3", 12)
    'nodes.…pine3'
    """
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - head - 1) :]}"
