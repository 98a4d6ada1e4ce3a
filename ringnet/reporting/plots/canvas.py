"""Figures as a paper wants them: one column wide, colours for every eye, settings in words, no state of pyplot.

What the reader's own matplotlibrc or style sets, counts; the scenario's ``report.figure`` counts for more.
"""

from __future__ import annotations

import functools
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
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
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import LoadFlags
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ringnet.array_types import FloatArray
from ringnet.errors import Fault, ResultsError
from ringnet.reporting.look import COLUMN_IN, Look
from ringnet.reporting.sweeps import describe, distinguishing

if TYPE_CHECKING:
    import pandas as pd

P = ParamSpec("P")
T = TypeVar("T")

#: Okabe and Ito (2008), without the yellow, which is too pale for a line on white.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
#: Paler, for areas that carry text: Okabe and Ito's eight, half mixed with white.
CHUNKS = ("#7FB8D9", "#F3CF80", "#80CEB9", "#EBAE80", "#E6BCD3", "#F8F2A1", "#ABDAF4", "#B8B8B8")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Curves that differ by less lie on each other, if so for half of their points; so many are nested, each so much wider.
ALIKE, HALF, MOST_NESTED, APART_PT = 0.01, 0.5, 4, 1.6
#: Points of an inch; the size at which letters are measured.
POINTS, _MEASURED_PT = 72.0, 64.0
INK, GREY, SOLID, PALE, ALERT = "#222222", "#767676", "#A4A9AE", "#D0D4D8", "#D55E00"

_STYLE = {
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
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
    "savefig.dpi": 200,
}
#: Whatever a user sets: a scenario's name is text, whatever dollars it has; text can be searched and edited; the same
#: bytes in every run.
_FIXED = {
    "text.parse_math": False,
    "text.usetex": False,
    "text.hinting": "none",  # as wide as it was measured
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "ringnet",
    "pdf.fonttype": 42,
}
#: Without the time at which it was written.
_UNDATED: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
#: Matplotlib's settings, whose keys mypy knows one by one.
_rc: Any = matplotlib.rcParams
_DEFAULTS: Any = matplotlib.rcParamsDefault
_UNASKED = Look()
_look = ContextVar("look", default=_UNASKED)


@contextmanager
def looking(look: Look) -> Iterator[None]:
    """Draw and save as a user asked; then all is as before."""
    token = _look.set(look)
    try:
        yield
    finally:
        _look.reset(token)


@contextmanager
def our_style() -> Iterator[None]:
    """Use our settings where the user has none of their own; then all is as before."""
    style = {key: value for key, value in _STYLE.items() if _is_default(key)} | _FIXED
    look = _look.get()
    if look.font:
        style["font.family"] = look.font
    if look.dpi:
        style["savefig.dpi"] = look.dpi
    with matplotlib.rc_context(style), warnings.catch_warnings():  # type: ignore[arg-type]
        # A name in a script that the font does not have is drawn as boxes; that is no news for a terminal.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _is_default(key: str) -> bool:
    return bool(_rc[key] == _DEFAULTS[key])


def in_style(draw: Callable[P, T]) -> Callable[P, T]:
    """Make a function draw in our style."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> T:
        with our_style():
            return draw(*args, **kwargs)

    return drawn


def width_in() -> float:
    """Return how wide figures are: as asked for, as the user's own matplotlib has them, or one column of a paper."""
    own = COLUMN_IN if _is_default("figure.figsize") else float(_rc["figure.figsize"][0])
    return _look.get().width_in or own


def asked_width_in() -> float | None:
    """Return how wide the user wants figures, if the user said so."""
    return _look.get().width_in


def asked_dpi() -> float | None:
    """Return how many dots per inch the user wants, if the user said so."""
    return _look.get().dpi


def font_size() -> float:
    """Return the size of plain text in points: ringnet's, or the user's own."""
    return float(_rc["font.size"])


def text_in(text: str, size: float | None = None, weight: str = "normal") -> float:
    """Return how wide a text is in inches; its size in points, by default that of plain text."""
    family = tuple(_rc["font.family"])
    return (size or font_size()) / POINTS * sum(_advance(char, family, weight) for char in text)


@functools.lru_cache(4096)
def _advance(char: str, family: tuple[str, ...], weight: str) -> float:
    """Return how far a character reaches, in sizes of the font."""
    font = get_font(findfont(FontProperties(family=list(family), weight=weight)))
    if not font.get_char_index(ord(char)):
        return 1.0  # of another font, or a box
    font.set_size(_MEASURED_PT, POINTS)
    return float(font.load_char(ord(char), LoadFlags.NO_HINTING).linearHoriAdvance / 2**16 / _MEASURED_PT)


class ShownFigure(Figure):
    """A figure that a notebook shows, whether or not pyplot is in use there."""

    @in_style
    def _repr_png_(self) -> bytes:
        content = BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()


#: Axes of a user's, which the next plot is drawn on.
_given: ContextVar[Axes | None] = ContextVar("given axes", default=None)


@contextmanager
def drawing_on(ax: object) -> Iterator[None]:
    """Draw on axes of a user's in place of a figure of one's own; a plot of several panels is refused."""
    if not isinstance(ax, Axes):
        right = "axes of matplotlib: figure, ax = plt.subplots()"
        raise ResultsError(Fault("these are no axes", "ax", value=type(ax).__name__, right=right))
    token = _given.set(ax)
    try:
        yield
    finally:
        _given.reset(token)


def new_figure(
    height_in: float, n_rows: int = 1, n_columns: int = 1, *, sharex: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, row by row; a user's, where there are any.

    Raises
    ------
    ResultsError
        Several axes are wanted where there are a user's.
    """
    given = _given.get()
    if given is None:
        figure: Figure = ShownFigure(figsize=(width_in(), height_in), layout="constrained")
        return figure, list(figure.subplots(n_rows, n_columns, sharex=sharex, squeeze=False).flat)
    if n_rows * n_columns > 1:
        message = f"this plot has {n_rows * n_columns} panels, and is drawn on a figure of its own"
        raise ResultsError(Fault(message, "ax", right="leave ax out"))
    return given.figure.figure, [given]


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
    if (given := _given.get()) is not None:
        return _titled_axes(given, name, legend)
    # Letters that are fitted to coarse dots, as in a notebook, are up to a twentieth wider.
    room_in, large, small = 0.94 * figure.get_figwidth(), 1.15 * font_size(), 0.93 * font_size()
    lines = [(line, large, "bold", INK) for line in _wrapped(plain(name), room_in, large, "bold")]
    lines += [(line, small, "normal", GREY) for line in _wrapped(plain(about), room_in, small)]
    rows = [row for group in legend for row in _legend_rows(group, room_in)]
    row_in = 1.35 * _legend_size() / POINTS
    above_in = sum(1.3 * size / POINTS for _, size, _, _ in lines) + 0.06
    below_in = row_in * len(rows) + 0.05
    height = figure.get_figheight() + above_in + below_in
    figure.set_figheight(height)
    rect = (0, below_in / height, 1, 1 - (below_in + above_in) / height)
    figure.get_layout_engine().set(rect=rect)  # type: ignore[union-attr,call-arg]
    top = height - 0.04
    for line, size, weight, color in lines:
        figure.text(0.012, top / height, line, size=size, weight=weight, color=color, va="top")
        top -= 1.3 * size / POINTS
    for place, row in enumerate(reversed(rows)):
        at = (0.5, place * row_in / height)
        figure.legend(handles=row, loc="lower center", bbox_to_anchor=at, ncols=len(row), borderaxespad=0.2)
    return figure


def _titled_axes(ax: Axes, name: str, legend: Sequence[Sequence[Artist]]) -> Figure:
    """Add a name above axes of a user's, and the legend below them."""
    figure = ax.figure.figure
    ax.set_title(plain(name), loc="left")
    rows = [row for group in legend for row in _legend_rows(group, figure.get_figwidth() * ax.get_position().width)]
    if rows:
        n_columns = max(map(len, rows))
        # A legend fills its columns one after the other, and reads along its rows all the same.
        full = [[*row, *[stroke("none", "")] * (n_columns - len(row))] for row in rows]
        handles = [row[column] for column in range(n_columns) for row in full]
        ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=n_columns)
    return figure


def _legend_size() -> float:
    return FontProperties(size=_rc["legend.fontsize"]).get_size_in_points()


def _legend_rows(handles: Sequence[Artist], room_in: float) -> list[list[Artist]]:
    """Return handles in rows of so many inches at most."""
    size = _legend_size()
    rooms = ("handlelength", "handletextpad", "columnspacing")
    around_in = sum(_rc[f"legend.{room}"] for room in rooms) * size / POINTS
    rows: list[list[Artist]] = []
    left_in = 0.0
    for handle in handles:
        width_in = around_in + text_in(str(handle.get_label()), size)
        if left_in < width_in:
            rows.append([])
            left_in = room_in
        rows[-1].append(handle)
        left_in -= width_in
    return rows


def _wrapped(text: str, room_in: float, size: float, weight: str = "normal") -> list[str]:
    """Break a text over two lines at most, of so many inches.

    >>> _wrapped("one slow link of many", 0.8, 7)
    ['one slow link', 'of many']
    """
    width = text_in(text, size, weight)
    fits = int(len(text) * room_in / width) if width > room_in else len(text) + 1
    for n_characters in range(fits, 0, -1):
        lines = textwrap.wrap(text, n_characters, max_lines=2, placeholder=" …")
        if all(text_in(line, size, weight) <= room_in for line in lines):
            return lines
    return [text]


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


def chunk_colors(n: int) -> list[str]:
    """Return a colour for each of n chunks, pale ones that carry text as long as they last."""
    return list(CHUNKS[:n]) if n <= len(CHUNKS) else colors(n)


def by_turns(items: Sequence[T], n: int) -> list[T]:
    """Return n items, from the first again after the last.

    >>> by_turns("abc", 5)
    ['a', 'b', 'c', 'a', 'b']
    """
    return list(islice(cycle(items), n))


def markers(n: int) -> list[str]:
    """Return n markers, in turn."""
    return by_turns(MARKERS, n)


def nested(curves: Sequence[tuple[FloatArray, FloatArray]]) -> list[int]:
    """Return how many later curves lie on each one, as far as they share places: the wider it must be to be seen.

    Parameters
    ----------
    curves : sequence of (ndarray, ndarray)
        Places and values.

    >>> at, low = np.arange(3.0), np.ones(3)
    >>> nested([(at, low), (at, 2 * low), (at, low)])
    [1, 0, 0]
    """

    def coincide(one: int, other: int) -> bool:
        _, at_one, at_other = np.intersect1d(curves[one][0], curves[other][0], return_indices=True)
        apart = np.abs(curves[one][1][at_one] / curves[other][1][at_other] - 1)
        return len(at_one) > 0 and bool((apart < ALIKE).mean() >= HALF)

    n = len(curves)
    return [min(MOST_NESTED, sum(coincide(one, later) for later in range(one + 1, n))) for one in range(n)]


def paler(color: str, white: float = 0.5) -> str:
    """Mix a colour with a share of white."""
    red, green, blue = (white + (1 - white) * part for part in to_rgb(color))
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
def save(figure: Figure, targets: Mapping[str, Path]) -> None:
    """Write a figure to a file for each of ``png``, ``svg``, ``pdf``: the same bytes whenever it is drawn again."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine(None)  # where everything stands is found once, not once or twice for each file
    for ending, path in targets.items():
        figure.savefig(path, format=ending, metadata=_UNDATED.get(ending))


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
