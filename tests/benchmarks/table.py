"""The table that a run of the benchmarks ends with: what was measured, what was wanted, and whether it was met."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ringnet.units import format_seconds

#: Sections in the order of the table, ratios first: they mean the same on another machine. How each writes a value.
SECTIONS: dict[str, Callable[[float], str]] = {
    "Ratios": "{:.3g}".format,
    "Growth, as an exponent": "{:.2f}".format,
    "Times": lambda seconds: format_seconds(float(f"{seconds:.3g}")),
    "Peak memory": lambda n_bytes: f"{n_bytes / 2**20:,.0f} MiB",
    "Counts": "{:,.6g}".format,
}

HEADINGS = ("", "measured", "wanted", "")


@dataclass(frozen=True)
class Row:
    """One line; ``verdict`` is empty where nothing was wanted."""

    section: str
    what: str
    measured: str
    wanted: str = ""
    verdict: str = ""

    @property
    def cells(self) -> tuple[str, str, str, str]:
        return self.what, self.measured, self.wanted, self.verdict


@dataclass
class Table:
    """Lines as the benchmarks hand them in; a target that is missed is said, and fails nothing."""

    rows: list[Row] = field(default_factory=list)

    def add(
        self,
        section: str,
        what: str,
        value: float,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> None:
        show = SECTIONS[section]
        if at_least is not None:
            row = Row(section, what, show(value), f"at least {show(at_least)}", _verdict(value >= at_least))
        elif at_most is not None:
            row = Row(section, what, show(value), f"at most {show(at_most)}", _verdict(value <= at_most))
        else:
            row = Row(section, what, show(value))
        self.rows.append(row)

    def sections(self) -> Iterator[tuple[str, list[Row]]]:
        for section in SECTIONS:
            if rows := [row for row in self.rows if row.section == section]:
                yield section, rows

    def lines(self) -> Iterator[str]:
        """Yield the table as text, in columns."""
        shown = [HEADINGS, *(row.cells for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        yield _padded(HEADINGS, widths)
        for section, rows in self.sections():
            yield section
            yield from (_padded(row.cells, widths) for row in rows)

    def markdown(self, machine: str) -> str:
        """Return the table as Markdown, with the machine that it was measured on."""
        lines = [f"Measured on {machine}.", "", _piped(HEADINGS), "|---|---:|---:|---|"]
        for section, rows in self.sections():
            lines.append(_piped((f"**{section}**", "", "", "")))
            lines += [_piped(row.cells) for row in rows]
        return "\n".join(lines) + "\n"


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def _padded(cells: tuple[str, ...], widths: list[int]) -> str:
    what, *others = cells
    return "  ".join((f"  {what:<{widths[0]}}", *map(str.rjust, others, widths[1:]))).rstrip()


def _piped(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
