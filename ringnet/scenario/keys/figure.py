"""How figures shall look: ``report: {figure: {width: 3.5 in, dpi: 300, font: DejaVu Serif, format: [pdf, svg]}}``."""

import re
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from ringnet.errors import closest
from ringnet.reporting.look import FORMATS, UNASKED, Look
from ringnet.reporting.plots import start_matplotlib
from ringnet.scenario.keys.base import LIST, ONE, NotEmpty, Settings, list_or_one
from ringnet.scenario.keys.kinds import Leaf, Line, Number, OneOf, wrong

#: Inches of each unit of a length, and how narrow and how wide a figure may be.
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
NARROWEST_IN, WIDEST_IN = 2.0, 20.0
#: Fonts that are named where the one that is wanted is not installed.
_NAMED_FONTS = 8
_LENGTH = re.compile(r"\s*\+?(\d+\.?\d*|\.\d+)\s*([A-Za-z\"]*)\s*")


@dataclass(frozen=True)
class Width(Leaf):
    """A width with its unit, read to inches."""

    def read(self, given: Any) -> float:
        """See `Leaf.read`."""
        found = _LENGTH.fullmatch(str(given)) if isinstance(given, str | int | float) else None
        if found is None or isinstance(given, bool):
            raise wrong("a width is wanted", "3.5 in or 9 cm")
        number, unit = found.groups()
        if not unit:
            meant = [f"{number} {name}" for name, inches in _INCHES.items() if _fits(float(number) * inches)]
            raise wrong("a width needs its unit", " or ".join(meant) or "3.5 in or 9 cm")
        if unit not in _INCHES:
            known = [name for name in _INCHES if name == unit.lower()]
            raise wrong(f"{unit} is not a unit of a width", f"{number} {known[0]}" if known else "3.5 in or 9 cm")
        width_in = float(number) * _INCHES[unit]
        if not _fits(width_in):
            raise wrong(f"a figure is {NARROWEST_IN:g} to {WIDEST_IN:g} inches wide", "3.5 in or 9 cm")
        return width_in

    def write(self, value: float) -> str:
        """See `Leaf.write`."""
        return f"{value!r} in"

    def describe(self) -> dict[str, Any]:
        """See `Leaf.describe`."""
        return {"type": "string", "pattern": r"^\s*\+?[0-9.]+\s*(in|cm|mm|pt)\s*$", "examples": ["3.5 in"]}


def _fits(width_in: float) -> bool:
    return NARROWEST_IN <= width_in <= WIDEST_IN


@dataclass(frozen=True)
class Font(Line):
    """The name of a family of fonts that is installed, or of a kind of them."""

    def read(self, given: Any) -> str:
        """See `Leaf.read`."""
        name = super().read(given)
        start_matplotlib()
        fonts = import_module("matplotlib.font_manager")
        known = sorted({*fonts.font_family_aliases, *(font.name for font in fonts.fontManager.ttflist)})
        if name in known:
            return name
        some = ", ".join(known[:_NAMED_FONTS])
        more = f", or one of {len(known) - _NAMED_FONTS} more" if len(known) > _NAMED_FONTS else ""
        raise wrong("no font of this name is installed", f"{some}{more}", closest(name, known))


FormatName = Annotated[str, OneOf(FORMATS, "format of figures")]


class FigureKeys(Settings):
    """How figures look; what is left out is as your matplotlib has it, or else as ringnet does."""

    width: Annotated[float, Width()] | None = Field(
        default=None,
        description="How wide figures are: a number with in, cm, mm or pt; 3.5 in, a column of a paper, if left out.",
        examples=["3.5 in"],
    )
    dpi: Annotated[float, Number(300, 50, 1200)] | None = Field(
        default=None, description="Dots per inch of PNG files; 200 if left out.", examples=[300]
    )
    font: Annotated[str, Font("DejaVu Serif")] | None = Field(
        default=None, description="A family of fonts that is installed.", examples=["DejaVu Serif"]
    )
    format: (
        Annotated[
            Annotated[FormatName, Tag(ONE)] | Annotated[tuple[FormatName, ...], NotEmpty, Tag(LIST)],
            Discriminator(list_or_one),
        ]
        | None
    ) = Field(
        default=None,
        description="What figures are written as, one or several; png and svg if left out.",
        examples=[["pdf", "svg"]],
    )

    @property
    def look(self) -> Look:
        """What plots take."""
        formats = (self.format,) if isinstance(self.format, str) else self.format or UNASKED
        return Look(self.width, self.dpi, self.font, tuple(dict.fromkeys(formats)))
