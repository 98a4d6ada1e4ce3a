"""What the spelling of a unit stands for: one unit where nobody could mean another, every unit that it may be if not.

`Gb`, `gbps`, `GBytes/sec`, `100GbE` and `gigabits per second` are read. `400G` of a bandwidth may be 400 Gbit/s or
400 GB/s, as may `400 gb/s`: nothing is read, and both are told. A size in `M` is MiB, as nccl-tests, OSU's benchmarks
and dd have it; with a `B` behind it, k, M and G count thousands: `KB` is a thousand bytes, `KiB` 1024.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}

#: What each unit is in the base unit of its kind, exactly. Every prefix stands there in full: rules for prefixes would
#: make a millibyte of `mB` and a megasecond of `Ms`, and a slip of the shift key would pass.
SIZES = {"B": Fraction(1), "bit": Fraction(1, 8)}
SIZES |= {
    f"{prefix}{unit}": factor * SIZES[unit] for unit in ("B", "bit") for prefix, factor in (DECIMAL | BINARY).items()
}
TIMES = {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}
TIMES |= {"ps": Fraction(1, 10**12), "min": Fraction(60), "h": Fraction(3600)}
FLOPS = {"FLOP": Fraction(1)} | {f"{prefix}FLOP": Fraction(factor) for prefix, factor in DECIMAL.items()}

_WORDS = {"kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P"}
_WORDS |= {"kibi": "Ki", "mebi": "Mi", "gibi": "Gi", "tebi": "Ti", "pebi": "Pi"}
_SPELT = re.compile(
    rf"""(?P<prefix> {"|".join(_WORDS)} | [kmgtp]i? )? [ ]? (?P<base> bytes? | bits? | b )?
         (?P<per> ps | /s(?:ec(?:ond)?)? | [ ]per[ ]sec(?:ond)? )? (?P<many> s )?""",
    re.IGNORECASE | re.VERBOSE,
)
_ETHERNET = re.compile(r"(?P<prefix>[mgt]) ?(?:be|ige|e|base-?[a-z0-9]+|(?:igabit|bit)? ?ethernet)", re.IGNORECASE)
_TIME_WORDS = {"s": "sec second", "ms": "msec millisecond", "us": "usec microsecond", "ns": "nsec nanosecond"}
_TIME_WORDS |= {"ps": "psec picosecond", "min": "min minute", "h": "hr hour"}
_TIME_OF_WORD = {
    spelt: unit for unit, words in _TIME_WORDS.items() for word in words.split() for spelt in (word, f"{word}s")
}
_SHORT_TIMES = {
    "m": ("ms", "min"),
    "u": ("us",),
    "micro": ("us",),
    "n": ("ns",),
    "nano": ("ns",),
    "milli": ("ms",),
}
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?P<sign>[_,' ])[0-9]{3}(?:(?P=sign)[0-9]{3})*(?![0-9])(?:\.[0-9]+)?")
_WITH_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?![0-9,])")
# Bare numbers: below the first they may count gigabytes or gigabits, from the second on bytes or bits; a time below
# the third is in seconds.
_MOST_GIGA, _LEAST_PLAIN, _MOST_S = 1e4, 1e6, 1e-3


class Meant(NamedTuple):
    """What a spelling may stand for, the likeliest first; and whether it is read, since it can mean one thing only."""

    units: tuple[str, ...]
    is_read: bool = False


@lru_cache(maxsize=1024)
def size_meant(spelt: str) -> Meant:
    """Return the sizes that a spelling may stand for.

    >>> size_meant("KB"), size_meant("gb")
    (Meant(units=('kB',), is_read=True), Meant(units=('GB', 'Gbit'), is_read=False))
    """
    if spelt in SIZES:
        return Meant((spelt,), is_read=True)
    match = _parts(spelt)
    if match is None:
        return Meant(())
    if not match["base"]:
        if len(match["prefix"]) > 2 or match["many"]:  # noqa: PLR2004 -- a word such as giga
            return Meant(())
        return Meant((f"{match['prefix'][0].upper()}iB",), is_read=not match["per"])
    units, is_certain = _sizes(match, is_rate=False)
    return Meant(units, is_read=is_certain and not match["per"])


@lru_cache(maxsize=1024)
def rate_meant(spelt: str) -> Meant:
    """Return the rates that a spelling may stand for.

    >>> rate_meant("gbps"), rate_meant("G")
    (Meant(units=('Gbit/s',), is_read=True), Meant(units=('Gbit/s', 'GB/s'), is_read=False))
    """
    if ethernet := _ETHERNET.fullmatch(spelt):
        return Meant((f"{ethernet['prefix'].upper()}bit/s",), is_read=True)
    match = _parts(spelt)
    if match is None:
        return Meant(())
    if not match["base"]:
        if match["many"]:
            return Meant(())
        scale = _scale(match["prefix"])
        return Meant((f"{scale}bit/s", f"{scale}B/s"))
    units, is_certain = _sizes(match, is_rate=True)
    return Meant(tuple(f"{unit}/s" for unit in units), is_read=is_certain and bool(match["per"]))


@lru_cache(maxsize=1024)
def time_meant(spelt: str) -> Meant:
    """Return the times that a spelling may stand for.

    >>> time_meant("usecs"), time_meant("m")
    (Meant(units=('us',), is_read=True), Meant(units=('ms', 'min'), is_read=False))
    """
    lower = spelt.lower()
    if spelt in TIMES or lower in _TIME_OF_WORD:
        return Meant((_TIME_OF_WORD.get(lower, spelt),), is_read=True)
    return Meant((lower,) if lower in TIMES else _SHORT_TIMES.get(spelt, ()))


def flops_meant(spelt: str) -> Meant:
    """Return the rates of operations that a spelling may stand for.

    >>> flops_meant("TFLOPS"), flops_meant("gflop/s")
    (Meant(units=('TFLOP/s',), is_read=True), Meant(units=('GFLOP/s',), is_read=True))
    """
    plain = spelt.lower().removesuffix("/s").removesuffix("s")
    known = {count.lower(): count for count in FLOPS}
    if plain not in known or plain == spelt.lower():  # operations alone are no rate
        return Meant((f"{known[plain]}/s",) if plain in known else ())
    return Meant((f"{known[plain]}/s",), is_read=True)


def bare_number_meant(number: str, base: str) -> tuple[str, ...]:
    """Return what a number without a unit may be in, the likeliest first; nothing where anything may be meant.

    >>> bare_number_meant("50e9", "B/s"), bare_number_meant("5e-6", "s"), bare_number_meant("3", "s")
    (('B/s', 'bit/s'), ('s',), ('us', 'ns'))
    """
    value = abs(float(number))
    if base == "B":
        return ("B",) if value.is_integer() else ()
    if base == "s":
        if value < _MOST_S:
            return ("s",) if value else ("us",)
        return ("us", "ns") if value >= 1 else ("us", "s")
    if base == "FLOP/s":
        return ("FLOP/s",) if value >= _LEAST_PLAIN else ("TFLOP/s",)
    if value >= _LEAST_PLAIN:
        return "B/s", "bit/s"
    return ("Gbit/s", "GB/s") if 0 < value < _MOST_GIGA else ()


def numbers_meant(text: str) -> tuple[tuple[str, ...], str] | None:
    """Return what a number with marks between its digits may be, and what stands behind it; None for another one.

    >>> numbers_meant("1,000,000 B"), numbers_meant("1,5 kB"), numbers_meant("1,500 us"), numbers_meant("5 us")
    ((('1000000',), 'B'), (('1.5',), 'kB'), (('1500', '1.500'), 'us'), None)
    """
    if match := _GROUPED.match(text):
        numbers: tuple[str, ...] = (re.sub("[_,' ]", "", match[0]),)
        if match["sign"] == "," and match[0].count(",") == 1 and "." not in match[0]:
            numbers += (match[0].replace(",", "."),)
    elif match := _WITH_COMMA.match(text):
        numbers = (match[0].replace(",", "."),)
    else:
        return None
    return numbers, text[match.end() :].strip()


def _parts(spelt: str) -> re.Match[str] | None:
    match = _SPELT.fullmatch(spelt)
    return match if match and (match["base"] or match["prefix"]) else None


def _scale(prefix: str) -> str:
    """Return a prefix as it should be: k and the other capitals, Ki and the like."""
    if prefix.lower() in _WORDS:
        return _WORDS[prefix.lower()]
    if prefix[1:]:
        return f"{prefix[0].upper()}i"
    return "k" if prefix in ("k", "K") else prefix.upper()


def _sizes(match: re.Match[str], *, is_rate: bool) -> tuple[tuple[str, ...], bool]:
    """Return the sizes that prefix and base may be, and whether nobody could mean another thing than the first.

    A small b before ``ps`` is bits. Elsewhere people are careless with it, in small letters and in binary units.
    """
    prefix, base, per = match["prefix"] or "", match["base"], match["per"] or ""
    scale = _scale(prefix)
    in_bytes, in_bits = (f"{scale}B",), (f"{scale}bit",)
    if len(base) > 1:
        return in_bytes if base[:2].lower() == "by" else in_bits, not (match["many"] and base[-1] in "sS")
    is_exact = prefix in (scale, "K") and not match["many"] and per == per.lower()
    if base == "B":
        return (in_bits + in_bytes, False) if per == "PS" else (in_bytes, is_exact)
    if len(scale) > 1:
        sloppy = in_bytes if prefix.islower() and not is_rate else in_bytes + in_bits
        return (in_bits, is_exact) if per == "ps" else (sloppy, False)
    if per == "ps" or prefix in (scale, "K"):
        return in_bits, per == per.lower() and not match["many"]
    return (in_bits + in_bytes if is_rate else in_bytes + in_bits), False
