"""Quantities with their units: text outside, plain SI numbers inside.

GB is 1e9 bytes and GiB is 2**30 bytes; ``b`` and ``bit`` are an eighth of ``B``; a bare number is refused
where a unit is needed. Case counts: ``MB`` is a million bytes, ``Mb`` a million bits, ``mB`` is nothing.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import reprlib
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, overload

from ringnet.errors import Fault, UnitError

if TYPE_CHECKING:
    import pint

Kind: TypeAlias = Literal["bytes", "seconds", "bytes_per_second", "number"]

_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}

# Every known unit with its definition, each in full: prefixes left to pint would make a millibyte of `mB` and
# a megasecond of `Ms`, and a slip of the shift key would pass.
_SIZES = {"B": "[information]", "bit": "1/8 B", "b": "bit", "byte": "B", "bytes": "B", "bits": "bit"}
_SIZES |= {f"{prefix}B": f"{factor} B" for prefix, factor in (_DECIMAL | _BINARY).items()}
_SIZES |= {f"{prefix}bit": f"{factor} bit" for prefix, factor in (_DECIMAL | _BINARY).items()}
_SIZES |= {f"{prefix}b": f"{factor} bit" for prefix, factor in _DECIMAL.items()}
_TIMES = {"s": "[time]", "ms": "1/1000 s", "us": "1/1000 ms", "ns": "1/1000 us", "min": "60 s"}
_TIMES |= {"sec": "s", "second": "s", "seconds": "s", "minute": "min", "minutes": "min"}
_TIMES |= {"msec": "ms", "usec": "us", "nsec": "ns"}
_RATES = {f"{prefix}{b}ps": f"{prefix}{b}/s" for prefix in ("", *_DECIMAL) for b in "bB"}

# What is written, largest first.
_IN_BINARY = {f"{prefix}B": float(factor) for prefix, factor in reversed(_BINARY.items())} | {"B": 1.0}
_IN_DECIMAL = {f"{prefix}B": float(factor) for prefix, factor in reversed(_DECIMAL.items())} | {"B": 1.0}
_IN_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

_QUANTITY = re.compile(
    r"""(?P<number>[+-]? (?: (?:[0-9]+\.?[0-9]*|\.[0-9]+) (?:e[+-]?[0-9]+)? | (?:inf|infinity|nan)\b ))
        [ ]? (?P<unit>.*)""",
    re.IGNORECASE | re.VERBOSE,
)
_THOUSANDS = re.compile(r"(?<=[0-9])[_,](?=[0-9]{3}(?![0-9]))")
_LONGEST_TEXT, _LONGEST_SHOWN, _FIVE_DIGITS = 100, 60, 10**4


class _Rule(NamedTuple):
    """What a kind of quantity looks like, and a range in which no later arithmetic can overflow."""

    noun: str
    base: str
    example: str
    units: tuple[str, ...]
    least: Fraction
    most: Fraction
    whole: bool = False


_RULES: dict[Kind, _Rule] = {
    "bytes": _Rule("a size", "B", "64 MiB", tuple(_SIZES), Fraction(0), Fraction(2**63 - 1), whole=True),
    "seconds": _Rule("a time", "s", "5 us", tuple(_TIMES), Fraction(0), Fraction(10**12)),
    "bytes_per_second": _Rule(
        "a rate",
        "B/s",
        "50 GB/s",
        (*(f"{size}/s" for size in _SIZES), *_RATES),
        Fraction(1, 10**9),
        Fraction(10**30),
    ),
    "number": _Rule("a plain number", "", "8", ("",), Fraction(0), Fraction(10**300)),
}


@overload
def parse_quantity(value: object, kind: Literal["bytes"]) -> int: ...
@overload
def parse_quantity(value: object, kind: Literal["seconds", "bytes_per_second", "number"]) -> float: ...
def parse_quantity(value: object, kind: Kind) -> float:
    """Read a quantity as a person writes it.

    Parameters
    ----------
    value : object
        Text such as ``50 GB/s``, ``400 Gbit/s``, ``5 us`` or ``64 MiB``; for ``"number"`` also an int or a
        float. Anything else is refused, since it may come straight from a document.
    kind : {"bytes", "seconds", "bytes_per_second", "number"}
        What is wanted.

    Returns
    -------
    float
        In bytes, seconds or bytes/s, the nearest float to the exact value; an ``int`` for ``"bytes"``.

    Raises
    ------
    UnitError
        If there is no unit, the wrong one or an unknown one; if the number is negative, infinite, not a
        number or beyond all use; if a rate is zero or a size no whole number of bytes. Says what would do.

    Examples
    --------
    >>> parse_quantity("64 MiB", "bytes"), parse_quantity("400 Gbit/s", "bytes_per_second")
    (67108864, 50000000000.0)
    >>> parse_quantity(50, "bytes_per_second")
    Traceback (most recent call last):
    ringnet.errors.UnitError: a rate needs a unit; got 50; right would be: 50 GB/s
    """
    rule = _RULES[kind]
    exact = _read(rule, _text(rule, value))
    return int(exact) if rule.whole else float(exact)


def format_bytes(n_bytes: float) -> str:
    """Write a size in four digits: exactly if some binary or decimal unit allows, in binary units if not.

    >>> [format_bytes(n) for n in (0, 100, 64 * 2**20, 25_000_000, 1_234_567)]
    ['0 B', '100 B', '64 MiB', '25 MB', '1.177 MiB']
    """
    scaled = (
        (n_bytes / factor, unit) for units in (_IN_BINARY, _IN_DECIMAL) for unit, factor in units.items()
    )
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


def format_count(count: int) -> str:
    """Write a number of things with a comma every three digits.

    >>> format_count(200000)
    '200,000'
    """
    return f"{count:,}"


# Reading.


def _read(rule: _Rule, text: str) -> Fraction:
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise _refusal(rule, text, f"{rule.noun} is wanted", *_respelt(rule, text))
    number, unit = match["number"], _compact(match["unit"])
    if unit not in rule.units:
        raise _refusal(rule, text, _wrong_unit(rule, unit), *_respelt(rule, text))
    exact = _exact(rule, text, number) * _factor(unit, rule.base)
    _check_range(rule, text, exact)
    return exact


def _text(rule: _Rule, value: object) -> str:
    """Text on one line and of bearable length; a number as it is written."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _refusal(rule, value, f"{rule.noun} is wanted")
    if isinstance(value, int) and value.bit_length() > _LONGEST_TEXT:
        raise _refusal(rule, f"an integer of {value.bit_length()} bits", _at_most(rule))
    text = " ".join(str(value).split())
    if len(text) > _LONGEST_TEXT:
        raise _refusal(rule, text, f"{rule.noun} is wanted, not {len(text)} characters")
    return text


def _compact(unit: str) -> str:
    # Keyboards have both the micro sign and the Greek letter mu.
    return re.sub(" ?/ ?", "/", unit).translate({0xB5: "u", 0x3BC: "u"})


def _exact(rule: _Rule, text: str, number: str) -> Fraction:
    # The float first: as a fraction, 1e999999999 would fill the memory.
    nearest = float(number)
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
        raise _refusal(rule, text, f"{rule.noun} must be a whole number of bytes", f"{math.ceil(exact)} B")


@cache
def _factor(unit: str, base: str) -> Fraction:
    if unit == base:
        return Fraction(1)
    return Fraction(_registry().Quantity(Fraction(1), unit).to(base).magnitude)


@cache
def _registry() -> pint.UnitRegistry[Fraction]:
    import pint  # noqa: PLC0415 -- takes a third of a second, and only a scenario with units needs it

    registry: pint.UnitRegistry[Fraction] = pint.UnitRegistry(None, non_int_type=Fraction)
    for name, definition in (_SIZES | _TIMES | _RATES).items():
        registry.define(f"{name} = {definition}")
    return registry


# Refusing.


def _refusal(rule: _Rule, value: object, message: str, right: str = "", nearest: str = "") -> UnitError:
    return UnitError(Fault(message, value=_shown(value), right=right or rule.example, nearest=nearest))


def _shown(value: object) -> str:
    """As it stands in a YAML document, but on one line and short."""
    if isinstance(value, str):
        text = value if value and value.isprintable() else repr(value)
    else:
        text = json.dumps(value) if value is None or isinstance(value, bool) else reprlib.repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _at_most(rule: _Rule) -> str:
    return f"{rule.noun} must be at most {float(rule.most):.3g} {rule.base}".rstrip()


def _wrong_unit(rule: _Rule, unit: str) -> str:
    if not rule.base:
        return f"{rule.noun} takes no unit"
    if not unit:
        return f"{rule.noun} needs a unit"
    meant = next((other.noun for other in _RULES.values() if unit in other.units), "")
    return f"{_shown(unit)} is {f'the unit of {meant}, not' if meant else 'no unit'} of {rule.noun}"


def _respelt(rule: _Rule, text: str) -> tuple[str, str]:
    """Return the right form, with the user's own number if it will do, and the units if several are near."""
    match = _QUANTITY.fullmatch(_THOUSANDS.sub("", text).replace(",", "."))
    if not match:
        return rule.example, ""
    known = _nearest(_compact(match["unit"]), rule.units)
    right = " ".join([match["number"], known[0] if known else rule.example.partition(" ")[2]]).rstrip()
    try:
        _read(rule, right)
    except UnitError:
        right = rule.example
    return right, " or ".join(known) if len(known) > 1 else ""


def _nearest(unit: str, units: tuple[str, ...]) -> list[str]:
    """Known units: the same with or without /s, or in another case, or one with a similar spelling."""
    others = {unit} if unit in units else {f"{unit}/s", unit.removesuffix("/s")}
    lowered = {other.lower() for other in (unit, *others)}
    return (
        [known for known in units if known in others]
        or [known for known in units if known.lower() in lowered]
        or difflib.get_close_matches(unit, units, n=1, cutoff=0.75)
    )


# Writing.


def _scaled(value: float, units: dict[str, float]) -> str:
    """Write in the first of the units that gives at least 1, else in the last."""
    fitting = (unit for unit, factor in units.items() if abs(float(_digits(value / factor))) >= 1)
    unit = next(fitting, next(reversed(units)))
    return f"{_digits(value / units[unit])} {unit}"


def _digits(number: float) -> str:
    text = f"{number:.4g}"
    return f"{number:.0f}" if "e+" in text else text
