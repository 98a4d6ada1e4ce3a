"""Quantities with their units: text outside, plain SI numbers inside.

GB is 1e9 bytes and GiB is 2**30 bytes; ``b`` and ``bit`` are an eighth of ``B``; a bare number is refused
where a unit is needed. Spellings of the field are read where they can mean one thing only: see `spellings`.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias, overload

from ringnet.errors import Fault, UnitError
from ringnet.spellings import (
    BINARY,
    DECIMAL,
    FLOPS,
    SIZES,
    TIMES,
    Meant,
    bare_number_meant,
    flops_meant,
    numbers_meant,
    rate_meant,
    size_meant,
    time_meant,
)

Kind: TypeAlias = Literal["bytes", "seconds", "bytes_per_second", "flops", "number"]

# What is written, largest first.
_IN_BINARY = {f"{prefix}B": float(factor) for prefix, factor in reversed(BINARY.items())} | {"B": 1.0}
_IN_DECIMAL = {f"{prefix}B": float(factor) for prefix, factor in reversed(DECIMAL.items())} | {"B": 1.0}
_IN_FLOPS = {f"{prefix}FLOP": float(factor) for prefix, factor in reversed(DECIMAL.items())} | {"FLOP": 1.0}
_IN_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

_FACTORS = SIZES | TIMES | FLOPS

_QUANTITY = re.compile(
    r"""(?P<number>[+-]? (?: (?:[0-9]+\.?[0-9]*|\.[0-9]+) (?:e[+-]?[0-9]+)? | (?:inf|infinity|nan)\b ))
        [ ]? (?P<unit>.*)""",
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST_TEXT, _LONGEST_SHOWN, _FIVE_DIGITS = 100, 60, 10**4


def _no_unit(spelt: str) -> Meant:
    return Meant((spelt,), is_read=not spelt)


class _Rule(NamedTuple):
    """What a kind of quantity looks like, and a range in which no later arithmetic can overflow."""

    noun: str
    base: str
    example: str
    meant: Callable[[str], Meant]
    least: Fraction
    most: Fraction
    whole: bool = False


_RULES: dict[Kind, _Rule] = {
    "bytes": _Rule("a size", "B", "64 MiB", size_meant, Fraction(0), Fraction(2**63 - 1), whole=True),
    "seconds": _Rule("a time", "s", "5 us", time_meant, Fraction(0), Fraction(10**12)),
    "bytes_per_second": _Rule("a rate", "B/s", "50 GB/s", rate_meant, Fraction(1, 10**9), Fraction(10**30)),
    "flops": _Rule("a rate of operations", "FLOP/s", "150 TFLOP/s", flops_meant, Fraction(1, 10**9), Fraction(10**30)),
    "number": _Rule("a plain number", "", "8", _no_unit, Fraction(0), Fraction(10**300)),
}
#: What one of each kind looks like.
EXAMPLES: dict[Kind, str] = {kind: rule.example for kind, rule in _RULES.items()}

#: Whole floats below are written without a point: 50000000000 rather than 50000000000.0.
_PLAIN = 10**15


@overload
def parse_quantity(value: object, kind: Literal["bytes"], *, is_count: bool = False) -> int: ...
@overload
def parse_quantity(
    value: object, kind: Literal["seconds", "bytes_per_second", "flops", "number"], *, is_count: bool = False
) -> float: ...
def parse_quantity(value: object, kind: Kind, *, is_count: bool = False) -> float:
    """Read a quantity as a person writes it.

    Parameters
    ----------
    value : object
        Text such as ``50 GB/s``, ``400 Gbit/s``, ``100GbE``, ``5 us``, ``64 MiB`` or ``64M``; for ``"number"`` also an
        int or a float. Anything else is refused, since it may come straight from a document.
    kind : {"bytes", "seconds", "bytes_per_second", "flops", "number"}
        What is wanted.
    is_count : bool
        Whether a whole number alone counts bytes, as it does for a message.

    Returns
    -------
    float
        In bytes, seconds or bytes/s, the nearest float to the exact value; an ``int`` for ``"bytes"``.

    Raises
    ------
    UnitError
        If there is no unit, the wrong one or an unknown one; if the number is negative, infinite, not a number or
        beyond all use; if a rate is zero or a size no whole number of bytes. It says what was meant where that is
        certain, and every reading with what it comes to where it is not.

    Examples
    --------
    >>> parse_quantity("64 MiB", "bytes"), parse_quantity("400 Gbit/s", "bytes_per_second")
    (67108864, 50000000000.0)
    >>> parse_quantity("64M", "bytes"), parse_quantity("100GbE", "bytes_per_second")
    (67108864, 12500000000.0)
    >>> parse_quantity("400G", "bytes_per_second")
    Traceback (most recent call last):
    ringnet.errors.UnitError: G is not a unit of a rate; got 400G; right would be: 400 Gbit/s = 50 GB/s or 400 GB/s
    """
    rule = _RULES[kind]
    text = _text(rule, value)
    exact = _read(rule, f"{text} B" if is_count and _is_whole(text) else text)
    return int(exact) if rule.whole else float(exact)


def format_bytes(n_bytes: float) -> str:
    """Write a size in four digits: exactly if some binary or decimal unit allows, in binary units if not.

    >>> [format_bytes(n) for n in (0, 100, 64 * 2**20, 25_000_000, 1_234_567)]
    ['0 B', '100 B', '64 MiB', '25 MB', '1.177 MiB']
    """
    scaled = ((n_bytes / factor, unit) for units in (_IN_BINARY, _IN_DECIMAL) for unit, factor in units.items())
    exact = (f"{x:.4g} {unit}" for x, unit in scaled if 1 <= x < _FIVE_DIGITS and float(f"{x:.4g}") == x)
    return next(exact, _scaled(n_bytes, _IN_BINARY))


def format_size(n_bytes: float) -> str:
    """Write a size in four digits of a binary unit, as sizes that are compared with each other are best read.

    >>> [format_size(n) for n in (0, 302_200, 64 * 2**20)]
    ['0 B', '295.1 KiB', '64 MiB']
    """
    return _scaled(n_bytes, _IN_BINARY) if n_bytes else "0 B"


def format_seconds(seconds: float) -> str:
    """Write a time in the unit that suits it, to four digits.

    >>> [format_seconds(t) for t in (0, 5e-6, 0.002360012, 90)]
    ['0 s', '5 us', '2.36 ms', '90 s']
    """
    return _scaled(seconds, _IN_TIME) if seconds else "0 s"


def format_rate(bytes_per_second: float) -> str:
    """Write a rate in the decimal unit that suits it, to four digits.

    >>> [format_rate(rate) for rate in (50e9, 1.5e3, 7)]
    ['50 GB/s', '1.5 kB/s', '7 B/s']
    """
    return f"{_scaled(bytes_per_second, _IN_DECIMAL)}/s"


def format_flops(flops_per_second: float) -> str:
    """Write a rate of operations in the decimal unit that suits it, to four digits.

    >>> format_flops(150e12)
    '150 TFLOP/s'
    """
    return f"{_scaled(flops_per_second, _IN_FLOPS)}/s"


#: What writes a quantity, by its base unit.
_WRITTEN: dict[str, Callable[[float], str]] = {
    "B": format_bytes,
    "s": format_seconds,
    "B/s": format_rate,
    "FLOP/s": format_flops,
}


def quantity_text(value: float, kind: Kind) -> str:
    """Write a value so that a person can read it and a computer reads the same value again.

    >>> quantity_text(2**20, "bytes"), quantity_text(5e-06, "seconds"), quantity_text(1/3, "seconds")
    ('1 MiB', '5 us', '0.3333333333333333 s')
    """
    base = _RULES[kind].base
    text = _WRITTEN[base](value)
    try:
        return text if parse_quantity(text, kind) == value else f"{value!r} {base}"
    except UnitError:  # rounded to a broken number of bytes
        return f"{value!r} {base}"


def format_count(count: int) -> str:
    """Write a number of things with a comma every three digits.

    >>> format_count(200000)
    '200,000'
    """
    return f"{count:,}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Say how many there are of something.

    >>> counted(1, "link"), counted(2048, "link"), counted(2, "switch", "switches")
    ('1 link', '2,048 links', '2 switches')
    """
    return f"{format_count(number)} {noun if number == 1 else plural or noun + 's'}"


# Meant.


def _read(rule: _Rule, text: str) -> Fraction:
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise _refusal(rule, text, f"this should be {rule.noun}", _respelt(rule, text))
    number, spelt = match["number"], _compact(match["unit"])
    meant = rule.meant(spelt)
    if not meant.is_read:
        raise _refusal(rule, text, _wrong_unit(rule, text, spelt), _respelt(rule, text))
    # A rate is so much of its count each second.
    unit = _FACTORS[meant.units[0].removesuffix("/s")] if meant.units[0] else Fraction(1)
    exact = _exact(rule, text, number) * unit
    _check_range(rule, text, exact)
    return exact


def _text(rule: _Rule, value: object) -> str:
    """Text on one line and of bearable length; a number as it is written."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _refusal(rule, value, f"this should be {rule.noun}")
    if isinstance(value, int) and value.bit_length() > _LONGEST_TEXT:
        raise _refusal(rule, f"an integer of {value.bit_length()} bits", _at_most(rule))
    is_plain = isinstance(value, float) and value.is_integer() and abs(value) < _PLAIN
    text = f"{value:.0f}" if is_plain else " ".join(str(value).split())
    if len(text) > _LONGEST_TEXT:
        raise _refusal(rule, text, f"this should be {rule.noun}, not {len(text)} characters")
    return text


def _is_whole(text: str) -> bool:
    match = _QUANTITY.fullmatch(text)
    return match is not None and not match["unit"] and float(match["number"]).is_integer()


def _compact(unit: str) -> str:
    # Keyboards have both the micro sign and the Greek letter mu.
    return re.sub(" ?/ ?", "/", unit).translate({0xB5: "u", 0x3BC: "u"})


def _exact(rule: _Rule, text: str, number: str) -> Fraction:
    # The float first: as a fraction, 1e999999999 would fill the memory.
    nearest = float(number)
    if nearest == 0 and re.search("[1-9]", number.lower().partition("e")[0]):
        right = "" if rule.least else f"0 {rule.base}".rstrip()
        raise _refusal(rule, text, f"{rule.noun} so small would be read as zero", right)
    if math.isfinite(nearest):
        return Fraction(number) if nearest else Fraction(0)
    raise _refusal(rule, text, _at_most(rule) if number[-1].isdigit() else f"{rule.noun} must be finite")


def _check_range(rule: _Rule, text: str, exact: Fraction) -> None:
    if exact < 0:
        raise _refusal(rule, text, f"{rule.noun} must not be negative")
    if exact < rule.least:
        bound = "more than zero" if exact == 0 else f"at least {float(rule.least):g} {rule.base}"
        raise _refusal(rule, text, f"{rule.noun} must be {bound}")
    if exact > rule.most:
        raise _refusal(rule, text, _at_most(rule))
    if rule.whole and exact.denominator != 1:
        right = f"{math.floor(exact)} B or {math.ceil(exact)} B"
        raise _refusal(rule, text, f"{rule.noun} must be a whole number of bytes", right)


# Refusing.


def _refusal(rule: _Rule, value: object, message: str, right: str = "") -> UnitError:
    return UnitError(Fault(message, value=_shown(value), right=right or f"something like {rule.example}"))


def _shown(value: object) -> str:
    """As it stands in a YAML document, but on one line and short."""
    if isinstance(value, str):
        text = value if value and value.isprintable() else repr(value)
    else:
        text = json.dumps(value) if value is None or isinstance(value, bool) else reprlib.repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _at_most(rule: _Rule) -> str:
    return f"{rule.noun} must be at most {float(rule.most):.3g} {rule.base}".rstrip()


def _wrong_unit(rule: _Rule, text: str, spelt: str) -> str:
    if not rule.base:
        return f"{rule.noun} takes no unit"
    if not spelt:
        return f"{rule.noun} needs a unit"
    if numbers_meant(text):
        return "a number has a point before its decimals, and nothing between its thousands"
    of_others = (other.noun for other in _RULES.values() if other.base and other.meant(spelt).units == (spelt,))
    meant = next(of_others, "")
    return f"{_shown(spelt)} is {f'a unit of {meant}, not' if meant else 'not a unit'} of {rule.noun}"


def _respelt(rule: _Rule, text: str) -> str:
    """Return what the text says in the right form: every reading of it that will do, with what each comes to."""
    texts = [text]
    if marked := numbers_meant(text):
        numbers, unit = marked
        texts = [f"{number} {unit}" for number in numbers]
    told = (f"{reading}{_comes_to(rule, reading)}" for one in texts for reading in _readings(rule, one))
    return " or ".join(dict.fromkeys(told))


def _readings(rule: _Rule, text: str) -> Iterator[str]:
    match = _QUANTITY.fullmatch(text.strip())
    if not match:
        return
    number, spelt = match["number"], _compact(match["unit"])
    if not rule.base:
        units: tuple[str, ...] = ("",)
    else:
        units = rule.meant(spelt).units if spelt else bare_number_meant(number, rule.base)
    for unit in units:
        reading = f"{number} {unit}".rstrip()
        try:
            _read(rule, reading)
        except UnitError:
            continue
        yield reading


def _comes_to(rule: _Rule, reading: str) -> str:
    """Return `` = 50 GB/s`` for `400 Gbit/s`: what a reading is in the units that are written, if that is exact."""
    if not rule.base:
        return ""
    exact = _read(rule, reading)
    written = _WRITTEN[rule.base](float(exact))
    try:
        return f" = {written}" if written != reading and _read(rule, written) == exact else ""
    except UnitError:  # rounded to a broken number of bytes
        return ""


# Writing.


def _scaled(value: float, units: dict[str, float]) -> str:
    """Write in the first of the units that gives at least 1, else in the last."""
    fitting = (unit for unit, factor in units.items() if abs(float(_digits(value / factor))) >= 1)
    unit = next(fitting, next(reversed(units)))
    return f"{_digits(value / units[unit])} {unit}"


def _digits(number: float) -> str:
    text = f"{number:.4g}"
    return f"{number:.0f}" if "e+" in text else text
