"""A run today and with a change, side by side: what ``ringnet run --if`` says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ringnet.analysis.answer import is_missing, percent
from ringnet.engines import PATH_PARTS
from ringnet.study.repeat import simulate_all
from ringnet.study.whatif import ROUNDING, STAYS, Changed, cause, path_seconds, without_payload
from ringnet.units import format_rate, format_seconds


class SideBySide(NamedTuple):
    """The row of the summary today, and the one with a change.

    Parameters
    ----------
    change : Changed
    today, then : mapping
    """

    change: Changed
    today: Mapping[str, Any]
    then: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        gain_s = self.today["makespan_s"] - self.then["makespan_s"]
        said = {"change": self.change.change, "gain_s": gain_s, "cause": cause(self.today, self.then)}
        return said | {"summary": dict(self.then)}

    def rows(self) -> list[tuple[str, ...]]:
        """Return the lines of a table: what, today, then, the difference."""
        before, after = path_seconds(self.today), path_seconds(self.then)
        parts = [
            _row(part, before.get(part, 0.0), after.get(part, 0.0), format_seconds, self.today["makespan_s"])
            for part in PATH_PARTS
            if before.get(part) or after.get(part)
        ]
        names = [_or_none(row["slowest_link"], str) for row in (self.today, self.then)]
        return [
            ("", "today", "if", "difference"),
            self._line("time", "makespan_s", format_seconds),
            *([self._line("mean", "mean_s", format_seconds)] if "mean_s" in self.today else []),
            *parts,
            self._line("algbw", "algbw_Bps", format_rate),
            self._line("busbw", "busbw_Bps", format_rate),
            ("of the bound", *(_or_none(row["bound_share"], percent) for row in (self.today, self.then)), ""),
            ("slowest link", *names, ""),
            ("because", "", "", cause(self.today, self.then)),
        ]

    def _line(self, label: str, key: str, form: Callable[[Any], str]) -> tuple[str, ...]:
        return _row(label, self.today[key], self.then.get(key, self.then["makespan_s"]), form)

    def notes(self) -> list[str]:
        """Return what a person should know: that the change is none, or its gain a guess."""
        if self.change.guess:
            return [f"what {self.change.change} gains is a guess: {self.change.guess}"]
        if self.change.says_nothing_new:
            return [f"{self.change.change} changes nothing: the scenario says so already"]
        if cause(self.today, self.then) == STAYS:
            return [f"{self.change.change} changes nothing in the time"]
        return []


def side_by_side(today: Mapping[str, Any], change: Changed) -> SideBySide:
    """Simulate a changed scenario, without its payload, and put it beside the row of the summary today."""
    return SideBySide(change, today, simulate_all(change.scenario, bare=without_payload).summary)


def _or_none(value: Any, form: Callable[[Any], str]) -> str:
    return "none" if is_missing(value) else form(value)


def _row(
    label: str, before: Any, after: Any, form: Callable[[Any], str], of: float | None = None
) -> tuple[str, ...]:
    """Return a line of the table; what differs by rounding only, ``of`` what it is a part of, is the same."""
    cells = (label, _or_none(before, form), _or_none(after, form))
    if is_missing(before) or is_missing(after):
        return (*cells, "")
    if abs(after - before) <= ROUNDING * (of or before):
        return (*cells, "the same")
    factor = f" (x {after / before:.4g})" if before else ""
    return (*cells, f"{form(abs(after - before))} {'more' if after > before else 'less'}{factor}")
