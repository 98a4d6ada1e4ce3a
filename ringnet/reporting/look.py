"""How a figure shall look, as a user asks for it; matplotlib is not needed to say so."""

from __future__ import annotations

from typing import NamedTuple

#: One column of a two-column paper, in inches.
COLUMN_IN = 3.5
#: What a figure can be written as, and what it is written as unasked.
FORMATS = ("png", "svg", "pdf")
UNASKED = ("png", "svg")
#: Workers that a film shows.
MOST_IN_FILM = 16


class Look(NamedTuple):
    """What is asked of every figure; the user's own matplotlib, or ringnet, decides what is None.

    Parameters
    ----------
    width_in : float, optional
        Width in inches.
    dpi : float, optional
        Dots per inch of what is drawn in dots.
    font : str, optional
        Name of a family of fonts.
    formats : tuple of str
        Of `FORMATS`.
    """

    width_in: float | None = None
    dpi: float | None = None
    font: str | None = None
    formats: tuple[str, ...] = UNASKED
