"""Text to numbers and back; and every bad form answered with the right one."""

from __future__ import annotations

import csv
import re
from fractions import Fraction
from pathlib import Path

import pint
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ringnet.errors import InputError, UnitError
from ringnet.spellings import FLOPS, SIZES, TIMES
from ringnet.units import (
    format_bytes,
    format_count,
    format_flops,
    format_rate,
    format_seconds,
    format_size,
    parse_quantity,
)

GOOD = [
    ("64 MiB", "bytes", 2**26),
    ("64 MB", "bytes", 64_000_000),
    ("1.5 kB", "bytes", 1500),
    ("0.5 GiB", "bytes", 2**29),
    ("2 TB", "bytes", 2 * 10**12),
    ("1 PiB", "bytes", 2**50),
    ("0 B", "bytes", 0),
    ("16 bits", "bytes", 2),
    ("8 Mbit", "bytes", 10**6),
    ("8 Mibit", "bytes", 2**20),
    ("8 kb", "bytes", 1000),
    ("7 bytes", "bytes", 7),
    ("5 us", "seconds", 5e-6),
    ("5 µs", "seconds", 5e-6),  # the micro sign
    ("5 \N{GREEK SMALL LETTER MU}s", "seconds", 5e-6),
    ("5us", "seconds", 5e-6),
    ("  5   us ", "seconds", 5e-6),
    ("5\N{NO-BREAK SPACE}us", "seconds", 5e-6),
    ("+5e-3 ms", "seconds", 5e-6),
    (".5 ns", "seconds", 5e-10),
    ("5. s", "seconds", 5.0),
    ("2 min", "seconds", 120.0),
    ("0 s", "seconds", 0.0),
    ("0e-400 s", "seconds", 0.0),
    ("50 GB/s", "bytes_per_second", 50e9),
    ("50GB/s", "bytes_per_second", 50e9),
    ("50 GB / s", "bytes_per_second", 50e9),
    ("400 Gbit/s", "bytes_per_second", 50e9),
    ("400 Gb/s", "bytes_per_second", 50e9),
    ("400 Gbps", "bytes_per_second", 50e9),
    ("50 GBps", "bytes_per_second", 50e9),
    ("1 GiB/s", "bytes_per_second", 2**30),
    ("8 bit/s", "bytes_per_second", 1.0),
    ("8", "number", 8.0),
    (8, "number", 8.0),
    (0.5, "number", 0.5),
    ("1e3", "number", 1000.0),
]


@pytest.mark.parametrize(("text", "kind", "value"), GOOD)
def test_a_quantity_is_read(text, kind, value):
    assert parse_quantity(text, kind) == value


def test_a_size_is_an_int_and_the_others_are_floats():
    kinds = {"64 MiB": "bytes", "5 min": "seconds", "1 GB/s": "bytes_per_second", "3": "number"}
    assert [type(parse_quantity(text, kind)) for text, kind in kinds.items()] == [int, float, float, float]


@given(st.decimals(0, 10**6, places=6), st.sampled_from([("s", 0), ("ms", -3), ("us", -6), ("ns", -9)]))
def test_the_value_is_the_float_nearest_to_the_exact_one(number, unit):
    name, power = unit
    assert parse_quantity(f"{number} {name}", "seconds") == float(Fraction(number) * Fraction(10) ** power)


# Every bad form: the kind, what was given, what the message says, and the right form that it shows.
LIKE_SIZE, LIKE_TIME, LIKE_RATE = "something like 64 MiB", "something like 5 us", "something like 50 GB/s"
MARKS = "a number has a point before its decimals, and nothing between its thousands"
BAD = [
    ("bytes_per_second", 50, "a rate needs a unit", "50 Gbit/s = 6.25 GB/s or 50 GB/s"),
    ("bytes_per_second", "50", "a rate needs a unit", "50 Gbit/s = 6.25 GB/s or 50 GB/s"),
    ("bytes_per_second", "50e9", "a rate needs a unit", "50e9 B/s = 50 GB/s or 50e9 bit/s = 6.25 GB/s"),
    ("bytes_per_second", 100000, "a rate needs a unit", LIKE_RATE),
    ("bytes", 64, "a size needs a unit", "64 B"),
    ("bytes", 4096, "a size needs a unit", "4096 B = 4 KiB"),
    ("bytes", 1.5, "a size needs a unit", LIKE_SIZE),
    ("seconds", 0, "a time needs a unit", "0 us = 0 s"),
    ("seconds", 5, "a time needs a unit", "5 us or 5 ns"),
    ("seconds", 5e-6, "a time needs a unit", "5e-06 s = 5 us"),
    ("bytes_per_second", "400G", "G is not a unit of a rate", "400 Gbit/s = 50 GB/s or 400 GB/s"),
    ("bytes_per_second", "50 B", "B is a unit of a size, not of a rate", "50 B/s"),
    ("bytes_per_second", "5e-18 G", "G is not a unit of a rate", "5e-18 GB/s = 5e-09 B/s"),
    ("bytes_per_second", "50 gb", "gb is not a unit of a rate", "50 Gbit/s = 6.25 GB/s or 50 GB/s"),
    ("bytes_per_second", "50 GBPS", "GBPS is not a unit of a rate", "50 Gbit/s = 6.25 GB/s or 50 GB/s"),
    ("bytes_per_second", "3 ms", "ms is a unit of a time, not of a rate", LIKE_RATE),
    ("bytes", "64 MB/s", "MB/s is a unit of a rate, not of a size", "64 MB"),
    ("number", "8 GB", "a plain number takes no unit", "8"),
    ("bytes_per_second", "-1 GB/s", "a rate must not be negative", LIKE_RATE),
    ("seconds", "-1e-9 s", "a time must not be negative", LIKE_TIME),
    ("bytes_per_second", "-1", "a rate needs a unit", LIKE_RATE),
    ("number", -1, "a plain number must not be negative", "something like 8"),
    ("bytes_per_second", "0 GB/s", "a rate must be more than zero", LIKE_RATE),
    ("bytes_per_second", "0e999999999 GB/s", "a rate must be more than zero", LIKE_RATE),
    ("bytes_per_second", "1e-10 B/s", "a rate must be at least 1e-09 B/s", LIKE_RATE),
    ("bytes_per_second", "1e31 B/s", "a rate must be at most 1e+30 B/s", LIKE_RATE),
    ("bytes_per_second", "1e-999 B/s", "a rate so small would be read as zero", LIKE_RATE),
    ("seconds", "1e-999 s", "a time so small would be read as zero", "0 s"),
    ("seconds", "inf s", "a time must be finite", LIKE_TIME),
    ("seconds", "-Infinity s", "a time must be finite", LIKE_TIME),
    ("seconds", "nan s", "a time must be finite", LIKE_TIME),
    ("number", float("nan"), "a plain number must be finite", "something like 8"),
    ("seconds", "1e400 s", "a time must be at most 1e+12 s", LIKE_TIME),
    ("seconds", "1e999999999 s", "a time must be at most 1e+12 s", LIKE_TIME),
    ("seconds", "2e12 s", "a time must be at most 1e+12 s", LIKE_TIME),
    ("bytes", "8 EB", "EB is not a unit of a size", LIKE_SIZE),
    ("bytes", "1e4 PB", "a size must be at most 9.22e+18 B", LIKE_SIZE),
    ("number", 10**301, "a plain number must be at most 1e+300", "something like 8"),
    ("bytes", "1.5 B", "a size must be a whole number of bytes", "1 B or 2 B"),
    ("bytes", "1 bit", "a size must be a whole number of bytes", "0 B or 1 B"),
    ("bytes", "0.1 GiB", "a size must be a whole number of bytes", "107374182 B or 107374183 B"),
    ("seconds", "5 us us", "us us is not a unit of a time", LIKE_TIME),
    ("seconds", "5 6 us", "6 us is not a unit of a time", LIKE_TIME),
    ("seconds", "5e us", "e us is not a unit of a time", LIKE_TIME),
    ("seconds", "us", "this should be a time", LIKE_TIME),
    ("seconds", "", "this should be a time", LIKE_TIME),
    ("seconds", "soon", "this should be a time", LIKE_TIME),
    ("seconds", "\N{ARABIC-INDIC DIGIT FIVE} us", "this should be a time", LIKE_TIME),
    ("seconds", "0x10 us", "x10 us is not a unit of a time", LIKE_TIME),
    ("bytes_per_second", 0, "a rate needs a unit", LIKE_RATE),
    ("bytes", "1_000 B", MARKS, "1000 B"),
    ("bytes", "1,000,000 B", MARKS, "1000000 B = 1 MB"),
    ("bytes", "1,5 kB", MARKS, "1.5 kB = 1500 B"),
    ("bytes", "1,5 B", MARKS, LIKE_SIZE),
    ("seconds", "1,500 us", MARKS, "1500 us = 1.5 ms or 1.500 us = 1.5 us"),
    ("bytes", "5\x00 B", "'\\x00 B' is not a unit of a size", LIKE_SIZE),
    ("bytes", True, "this should be a size", LIKE_SIZE),
    ("number", False, "this should be a plain number", "something like 8"),
    ("bytes", None, "this should be a size", LIKE_SIZE),
    ("bytes", [64], "this should be a size", LIKE_SIZE),
    ("bytes", {"64": "MiB"}, "this should be a size", LIKE_SIZE),
    ("bytes", b"64 MiB", "this should be a size", LIKE_SIZE),
    ("bytes", "6" * 10**6, "this should be a size, not 1000000 characters", LIKE_SIZE),
    # The shift key.
    ("bytes", "64 mib", "mib is not a unit of a size", "64 MiB"),
    ("bytes", "64 Mib", "Mib is not a unit of a size", "64 MiB or 64 Mibit = 8 MiB"),
    ("bytes", "64 mB", "mB is not a unit of a size", "64 MB"),
    ("bytes_per_second", "50 gb/s", "gb/s is not a unit of a rate", "50 Gbit/s = 6.25 GB/s or 50 GB/s"),
    ("bytes_per_second", "50 GB/S", "GB/S is not a unit of a rate", "50 GB/s"),
    ("seconds", "5 Ms", "Ms is not a unit of a time", "5 ms"),
    ("seconds", "5 US", "US is not a unit of a time", "5 us"),
    ("seconds", "5 m", "m is not a unit of a time", "5 ms or 5 min = 300 s"),
    # Spelt nearly right, and not at all.
    ("bytes_per_second", "50 GBs", "GBs is not a unit of a rate", "50 GB/s"),
    ("bytes", "64 boats", "boats is not a unit of a size", LIKE_SIZE),
    ("seconds", "5 us/KiB", "us/KiB is not a unit of a time", LIKE_TIME),
]


def fault_of(value, kind):
    with pytest.raises(UnitError) as caught:
        parse_quantity(value, kind)
    (fault,) = caught.value.faults
    return fault


@pytest.mark.parametrize(("kind", "value", "message", "right"), BAD)
def test_a_bad_form_is_answered_with_the_right_one(kind, value, message, right):
    fault = fault_of(value, kind)
    assert (fault.message, fault.right) == (message, right)
    assert (fault.value in {"null", "None"}) == (value is None)
    if isinstance(value, str) and value.isprintable():
        assert fault.value in {value, f"{value!r}"} or "..." in fault.value or not value.strip()
    assert len(str(fault)) < 250
    assert str(fault).isprintable()


def readings(right, kind):
    """Return what a suggestion comes to: each of its readings, and each of the two sides of an equation, read."""
    texts = right.removeprefix("something like ").split(" or ")
    return [{parse_quantity(side, kind) for side in text.split(" = ")} for text in texts]


@pytest.mark.parametrize(("kind", "right"), sorted({(kind, right) for kind, _, _, right in BAD}))
def test_the_right_form_can_be_read_and_both_sides_of_an_equation_are_equal(kind, right):
    assert all(len(sides) == 1 for sides in readings(right, kind))


SPELLINGS = [*csv.DictReader((Path(__file__).parent / "data" / "spellings.csv").read_text().splitlines())]


def test_a_spelling_of_the_field_is_read_as_what_it_means_or_every_reading_is_shown():
    """300 spellings, each with what it most likely means, and what else it may mean."""
    assert len(SPELLINGS) > 300
    wrong = []
    for row in SPELLINGS:
        meant = [float(value) for value in (row["likeliest"], row["or"]) if value]
        try:
            found, is_read = [parse_quantity(row["text"], row["kind"])], "yes"
        except UnitError as error:
            shown = readings(error.faults[0].right, row["kind"])
            found, is_read = [value for sides in shown for value in sides], "no"
        if (found, is_read) != (meant, row["read"]):
            wrong.append((row, found))
    assert wrong == []


WITH_UNITS = [row for row in SPELLINGS if re.fullmatch("[0-9.]+(e[0-9]+)? ?[^0-9.e,_ '-][^0-9]*", row["text"])]


@given(st.sampled_from(WITH_UNITS), st.integers(1, 999), st.sampled_from(["", " "]))
def test_no_number_makes_a_suggestion_wrong(row, number, between):
    """The meaning of a unit does not hang on its number: what a spelling means at one it means at all."""
    written, unit = re.fullmatch("([0-9.]+(?:e[0-9]+)?) ?(.*)", row["text"]).groups()
    times = number / float(written)
    meant = [float(value) * times for value in (row["likeliest"], row["or"]) if value]
    try:
        found = [parse_quantity(f"{number}{between}{unit}", row["kind"])]
    except UnitError as error:
        right = error.faults[0].right
        assume("whole number of bytes" not in error.faults[0].message)
        found = [value for sides in readings(right, row["kind"]) for value in sides]
    assert found == pytest.approx(meant)


def test_a_whole_number_alone_counts_bytes_where_a_message_is_read():
    assert [parse_quantity(value, "bytes", is_count=True) for value in (67108864, "1024", 1e6, "1e6", 0)] == [
        67108864,
        1024,
        10**6,
        10**6,
        0,
    ]
    for value in (-1, 1.5, "1.5", float("inf"), True, 2**64):
        with pytest.raises(UnitError):
            parse_quantity(value, "bytes", is_count=True)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (50, "50"),
        (True, "true"),
        (None, "null"),
        ("", "''"),
        ("a\nb", "a b"),
        ("\x1b[31m", r"'\x1b[31m'"),
        ([1, 2], "[1, 2]"),
        ("x" * 200, "x" * 57 + "..."),
    ],
)
def test_the_value_is_shown_as_written_but_short_and_printable(value, shown):
    assert fault_of(value, "bytes").value == shown


def test_an_integer_too_long_to_be_written_is_described():
    fault = fault_of(2**40000, "number")
    assert (fault.message, fault.value) == (
        "a plain number must be at most 1e+300",
        "an integer of 40001 bits",
    )


def test_a_document_that_holds_itself_is_shown_too():
    loop = []
    loop.append(loop)
    assert fault_of(loop, "bytes").value == "[[[[[[[...]]]]]]]"


def test_a_unit_error_is_an_input_error_and_a_value_error():
    assert issubclass(UnitError, InputError)
    assert issubclass(UnitError, ValueError)


def assert_read_or_refused(text, kind):
    try:
        value = parse_quantity(text, kind)
    except UnitError as error:
        (value, *others), *_ = readings(error.faults[0].right, kind)
        assert others == []
    assert 0 <= value < float("inf")


@given(st.text(), st.sampled_from(["bytes", "seconds", "bytes_per_second", "number"]))
def test_no_text_does_worse_than_a_unit_error(text, kind):
    assert_read_or_refused(text, kind)


@given(
    st.text("0123456789.-+e_, ", max_size=12),
    st.sampled_from(["", " ", "/"]),
    st.text("bBkKMGiIt/psu ", max_size=8),
    st.sampled_from(["bytes", "seconds", "bytes_per_second", "number"]),
)
def test_no_near_miss_does_worse_than_a_unit_error(number, between, unit, kind):
    assert_read_or_refused(number + between + unit, kind)


# Writing.


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1000, "1000 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1500, "1500 B"),
        (15000, "15 kB"),
        (1025 * 1024, "1025 KiB"),
        (1_000_000, "1 MB"),
        (1_234_567, "1.177 MiB"),
        (2**26, "64 MiB"),
        (2**30 - 1, "1 GiB"),
        (12345 * 2**50, "12345 PiB"),
    ],
)
def test_bytes_are_written_in_binary_units_unless_only_a_decimal_one_is_exact(n_bytes, text):
    assert format_bytes(n_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (5e-6, "5 us"),
        (0.00236, "2.36 ms"),
        (0.00235528, "2.355 ms"),
        (1e-9, "1 ns"),
        (2.5e-12, "0.0025 ns"),
        (999.96e-6, "1 ms"),
        (0.99996, "1 s"),
        (90, "90 s"),
        (123456.7, "123457 s"),
        (-0.002, "-2 ms"),
    ],
)
def test_seconds_are_written_in_the_unit_that_suits(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(50e9, "50 GB/s"), (1e12, "1 TB/s"), (1500, "1.5 kB/s"), (1, "1 B/s"), (0.25, "0.25 B/s"), (0, "0 B/s")],
)
def test_rates_are_written_in_decimal_units(rate, text):
    assert format_rate(rate) == text


def test_counts_have_commas():
    assert [format_count(count) for count in (0, 999, 1000, 200000)] == ["0", "999", "1,000", "200,000"]


@given(st.integers(1, 9999), st.sampled_from([1, 2**10, 2**20, 2**30, 2**40, 10**3, 10**6, 10**9, 10**12]))
def test_a_size_of_four_digits_comes_back_exactly(number, unit):
    assert parse_quantity(format_bytes(number * unit), "bytes") == number * unit


@given(st.integers(0, 2**62))
def test_any_size_comes_back_to_four_digits(n_bytes):
    as_rate = parse_quantity(f"{format_bytes(n_bytes or 1)}/s", "bytes_per_second")
    assert as_rate == pytest.approx(n_bytes or 1, rel=5.1e-4)


@given(st.floats(1e-15, 1e12))
def test_any_time_comes_back_to_four_digits(seconds):
    assert parse_quantity(format_seconds(seconds), "seconds") == pytest.approx(seconds, rel=5.1e-4)


@given(st.floats(1e-8, 1e29))
def test_any_rate_comes_back_to_four_digits(rate):
    assert parse_quantity(format_rate(rate), "bytes_per_second") == pytest.approx(rate, rel=5.1e-4)


@given(st.integers(1, 9999), st.integers(-2, 4), st.sampled_from(["ns", "us", "ms", "s"]))
def test_a_time_of_four_digits_comes_back_exactly(digits, power, unit):
    seconds = parse_quantity(f"{digits}e{power - 3} {unit}", "seconds")
    assert parse_quantity(format_seconds(seconds), "seconds") == seconds


def test_every_unit_is_what_pint_says_it_is():
    registry = pint.UnitRegistry(non_int_type=Fraction)
    registry.define("FLOP = [operation]")
    for base, units in (("B", SIZES), ("s", TIMES), ("FLOP", FLOPS)):
        for unit, factor in units.items():
            assert registry.Quantity(Fraction(1), unit).to(base).magnitude == factor, unit


def test_sizes_that_are_compared_are_in_binary_units_and_operations_in_decimal_ones() -> None:
    assert [format_size(n) for n in (0, 1000, 25_000_000, 2**40)] == ["0 B", "1000 B", "23.84 MiB", "1 TiB"]
    assert [format_flops(n) for n in (1e9, 312.5e12)] == ["1 GFLOP/s", "312.5 TFLOP/s"]


def test_only_a_whole_number_alone_counts_bytes() -> None:
    assert parse_quantity("4 KiB", "bytes", is_count=True) == 4096
    for text in ("1.5", "four", "1.5 flops"):
        with pytest.raises(UnitError):
            parse_quantity(text, "bytes", is_count=True)
