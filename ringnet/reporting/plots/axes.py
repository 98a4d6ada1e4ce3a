"""Axes that read in units: sizes in powers of two, times in powers of ten; never more ticks than fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from ringnet.array_types import FloatArray
from ringnet.reporting.plots import canvas
from ringnet.reporting.sweeps import is_seed, key_words, numbers
from ringnet.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Quantity = Literal["bytes", "seconds", "bytes_per_second", "flops", "number", "share"]

_MOST_TICKS = 6
#: First digits of round ticks.
_ROUND = (1, 2, 2.5, 5, 10)
#: Share of the length of an upright axis that the label of a tick takes; inches of a panel that are not its axis.
_LABEL_HEIGHT, _BESIDE = 0.06, 0.6
#: Values that span this factor are drawn on a logarithmic axis.
_WIDE = 8


class Unit(NamedTuple):
    """A unit that a linear axis is labelled with, and how much of the base unit it is."""

    name: str
    size: float


_UNITS: dict[Quantity, tuple[Unit, ...]] = {
    "bytes": tuple(Unit(name, 1024.0**power) for power, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))),
    "seconds": (Unit("ns", 1e-9), Unit("us", 1e-6), Unit("ms", 1e-3), Unit("s", 1.0)),
    "bytes_per_second": tuple(
        Unit(name, 1000.0**power) for power, name in enumerate(("B/s", "kB/s", "MB/s", "GB/s", "TB/s"))
    ),
    "flops": tuple(
        Unit(f"{prefix}FLOP/s", 1000.0**power) for power, prefix in enumerate(("", "k", "M", "G", "T", "P"))
    ),
    "number": (Unit("", 1.0),),
    "share": (Unit("%", 0.01),),
}


def unit_for(largest: float, quantity: Quantity) -> Unit:
    """Return the unit in which the largest value of an axis is a short number.

    >>> unit_for(2.36e-3, "seconds").name, unit_for(5e10, "bytes_per_second").name
    ('ms', 'GB/s')
    """
    units = _UNITS[quantity]
    return max((unit for unit in units if unit.size <= largest), key=lambda unit: unit.size, default=units[0])


def linear(axis: Axis, quantity: Quantity, label: str, largest: float | None = None) -> None:
    """Give an axis round ticks in one unit, named in its label; values on it stay in the base unit.

    Parameters
    ----------
    axis : Axis
        Its limits are kept.
    largest : float, optional
        Of the values shown, in the base unit; it decides the unit. By default the end of the axis.
    """
    unit = unit_for(max(axis.get_view_interval()) if largest is None else largest, quantity)
    low, high = (end / unit.size for end in axis.get_view_interval())
    round_ones = MaxNLocator(_MOST_TICKS, steps=_ROUND).tick_values(low, high)
    _label(axis, {tick * unit.size: f"{tick:.6g}" for tick in round_ones if low <= tick <= high})
    axis.set_label_text(f"{label} ({unit.name})" if unit.name else label)


def logarithmic(axis: Axis, quantity: Quantity, label: str) -> None:
    """Give a log axis a few round ticks, each with its own unit; its limits are kept."""
    low, high = sorted(axis.get_view_interval())
    steps = _powers_of_two(low, high) if quantity == "bytes" else _decades(low, high)
    ticks = _few_enough(steps) or _round(low, high)
    _label(axis, {tick: _FORMATS[quantity](tick) for tick in ticks})
    axis.set_label_text(label)


def at_values(axis: Axis, values: Iterable[float], label: str) -> None:
    """Put ticks where the data is: at every second, third, ... value where there are many; none that would touch."""
    ticks = sorted(set(values))
    ticks = ticks[:: -(-len(ticks) // (_MOST_TICKS + 2))]
    _label(axis, {tick: f"{tick:.6g}" for tick in ticks})
    axis.set_label_text(label)


def _label(axis: Axis, ticks: dict[float, str]) -> None:
    """Put labelled ticks on an axis, without those that would touch the one before, and no others."""
    kept = _apart(axis, list(ticks), list(ticks.values()))
    axis.set_ticks([tick for tick in ticks if tick in kept], [ticks[tick] for tick in ticks if tick in kept])
    axis.set_ticks([], minor=True)


def _apart(axis: Axis, ticks: list[float], labels: list[str]) -> set[float]:
    """Return the ticks whose labels keep clear of the ones before."""
    places = axis.get_transform().transform(np.array(ticks, dtype=np.float64))
    low, high = axis.get_transform().transform(np.array(axis.get_view_interval()))
    is_upright = axis.axis_name == "y"  # type: ignore[attr-defined]
    length = axis.axes.get_figure(root=True).get_figwidth() - _BESIDE  # type: ignore[union-attr]
    kept, end = set(), -np.inf
    for tick, label, place in zip(ticks, labels, (places - low) / (high - low), strict=True):
        half = _LABEL_HEIGHT / 2 if is_upright else canvas.text_in(f"{label} ") / 2 / length
        if place - half > end:
            kept.add(tick)
            end = place + half
    return kept


def _few_enough(choices: Iterable[list[float]]) -> list[float]:
    """Return the first choice of neither too many ticks nor too few to read by; empty where none is."""
    # Two ticks do not show that an axis is logarithmic.
    return next((ticks for ticks in choices if 2 < len(ticks) <= _MOST_TICKS), [])  # noqa: PLR2004


def _powers_of_two(low: float, high: float) -> Iterator[list[float]]:
    """Yield ticks at every power of two, then every second, fifth, fourth, tenth: 1 KiB, 32 KiB, 1 MiB."""
    exponents = range(math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9) + 1)
    for step in (1, 2, 5, 4, 10, 20):
        yield [2.0**exponent for exponent in exponents if exponent % step == 0]


def _decades(low: float, high: float) -> Iterator[list[float]]:
    """Yield ticks at 1, 2, 5 of every decade, at 1 and 3, then at every decade, second and third one."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for step, digits in ((1, (1, 2, 5)), (1, (1, 3)), (1, (1,)), (2, (1,)), (3, (1,)), (6, (1,))):
        ticks = (float(f"{digit}e{exponent}") for exponent in exponents if exponent % step == 0 for digit in digits)
        yield [tick for tick in ticks if low <= tick <= high]


def _round(low: float, high: float) -> list[float]:
    """Return round values for an axis that spans less than a decade."""
    return [float(tick) for tick in MaxNLocator(5, steps=_ROUND).tick_values(low, high) if low <= tick <= high]


_FORMATS: dict[Quantity, Callable[[Any], str]] = {
    "bytes": lambda value: format_bytes(round(value)),
    "seconds": format_seconds,
    "bytes_per_second": format_rate,
    "number": lambda value: f"{value:.6g}",
    "share": lambda value: f"{100 * value:.4g} %",
}


def place(column: pd.Series[Any]) -> FloatArray:
    """Return where the values of a swept key stand on an axis, in base units."""
    found = numbers(column)
    assert found is not None  # only keys that are numbers are drawn over
    return found.numbers


def _log_is_better(values: FloatArray) -> bool:
    return bool(values.min() > 0 and values.max() >= _WIDE * values.min())


def key_scale(ax: Axes, column: pd.Series[Any]) -> None:
    """Make the horizontal axis logarithmic where the values of its key, if it counts something, span a decade or so."""
    if not is_seed(str(column.name)) and _log_is_better(place(column)):
        ax.set_xscale("log", base=2)


def key(axis: Axis, name: str, column: pd.Series[Any]) -> None:
    """Label an axis with a swept key and its values, in units where it has any."""
    found = numbers(column)
    assert found is not None  # only keys that are numbers are drawn over
    kind: Quantity = "bytes" if name == "message_bytes" else found.kind
    label = key_words(name)
    if kind == "number":
        at_values(axis, found.numbers, label)
    elif _log_is_better(found.numbers):
        logarithmic(axis, kind, label)
    else:
        linear(axis, kind, label, float(found.numbers.max()))


def samples(axis: Axis, name: str, column: pd.Series[Any]) -> FloatArray:
    """Give each value of a swept key a place of its own, one beside the other; return the values in that order."""
    found = numbers(column)
    assert found is not None  # only keys that are numbers are drawn over
    format_value = _FORMATS["bytes" if name == "message_bytes" else found.kind]
    values = np.unique(found.numbers)
    axis.axes.set_xlim(-0.6, len(values) - 0.4)
    _label(axis, {place: format_value(value) for place, value in enumerate(values.tolist())})
    axis.set_label_text(key_words(name))
    return values


def times(axis: Axis, column: pd.Series[Any]) -> None:
    """Label an axis of times: logarithmic if it is so already or they span a decade or so, else from zero."""
    values = column.to_numpy(dtype=np.float64)
    name = axis.axis_name  # type: ignore[attr-defined]
    if axis.get_scale() == "log" or _log_is_better(values):
        axis.axes.set(**{f"{name}scale": "log"})
        # Where latency rules, the bound lies far below: a part of it says as much, and leaves room.
        low, high = axis.get_view_interval()
        axis.axes.set(**{f"{name}lim": (max(low, values.min() / 12), high)})
        logarithmic(axis, "seconds", "time")
    else:
        axis.axes.set(**{f"{name}lim": (0, 1.08 * values.max() or 1.0)})
        linear(axis, "seconds", "time", float(values.max()))
