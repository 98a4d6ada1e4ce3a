from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.errors import InputError
from ringnet.payload import DTYPES, REDUCTIONS, check_dtype, dtype_of, make_reduction
from ringnet.payload.bounds import ProductOracle, judge
from ringnet.payload.dtypes import is_float, smallest_subnormal, unit_roundoff
from ringnet.payload.reductions import Reduction

FLOATS = {name: dtype for name, dtype in DTYPES.items() if is_float(dtype)}
INTEGERS = {name: dtype for name, dtype in DTYPES.items() if not is_float(dtype)}


def reduction(name: str, n_workers: int, weights: list[float] | None = None) -> Reduction:
    if name == "weighted-mean" and weights is None:
        weights = list(range(1, n_workers + 1))
    return make_reduction(name, n_workers, weights)


def computed(kind: Reduction, values: np.ndarray) -> np.ndarray:
    """Reduce rows in order, in their own element type, as workers would."""
    with np.errstate(all="ignore"):
        rows = [kind.prepare(row.copy(), worker) for worker, row in enumerate(values)]
        result = rows[0]
        for row in rows[1:]:
            result = kind.combine(row, result)
    return result


def exact(kind: Reduction, column: list[Fraction], weights: list[Fraction] | None) -> Fraction:
    if weights is not None:
        return sum(x * w for x, w in zip(column, weights, strict=True)) / sum(weights)
    return {"sum": sum, "max": max, "min": min, "prod": prod}[kind.name](column)


# -------------------------------------------------------------------------------------------- registry


def test_names_are_those_of_the_registry() -> None:
    assert list(REDUCTIONS) == ["sum", "mean", "weighted-mean", "max", "min", "prod"]
    assert all(REDUCTIONS[name].name == name and REDUCTIONS[name].summary for name in REDUCTIONS)


def test_unknown_names() -> None:
    with pytest.raises(InputError, match=r"got avg; right would be: sum \| mean"):
        make_reduction("avg", 2)
    with pytest.raises(InputError, match=r"got flaot32.*did you mean float32\?"):
        dtype_of("flaot32")


@pytest.mark.parametrize("name", FLOATS)
def test_the_bound_of_a_product_has_a_rounding_for_each_worker_but_the_first(name):
    """One in the type itself, one in the float64 of the reference: no more, no fewer."""
    n_workers, (u, wide) = 5, (unit_roundoff(FLOATS[name]), unit_roundoff(DTYPES["float64"]))
    expected = sum((n_workers - 1) * each / (1 - (n_workers - 1) * each) for each in (u, wide))
    bound = ProductOracle(np.multiply, FLOATS[name], n_workers).factor
    assert bound == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize(("name", "expected"), [("sum", 5), ("max", 3), ("min", 2), ("prod", 6)])
def test_combine_in_every_type(name: str, expected: int, dtype: np.dtype) -> None:
    own, incoming = np.full(3, 2, dtype), np.full(3, 3, dtype)
    result = make_reduction(name, 2).combine(own, incoming)
    assert (result.dtype, result.tolist(), own.tolist()) == (dtype, [expected] * 3, [2] * 3)
    assert make_reduction(name, 2).combine(own, incoming, own) is own
    assert own.tolist() == [expected] * 3


@pytest.mark.parametrize("dtype", FLOATS.values(), ids=str)
def test_means_scale_before_they_sum(dtype: np.dtype) -> None:
    values = np.full(3, 4, dtype)
    assert make_reduction("mean", 4).prepare(values, 2) is values
    assert (values.dtype, values.tolist()) == (dtype, [1, 1, 1])
    assert make_reduction("weighted-mean", 2, [1, 3]).prepare(np.full(2, 4, dtype), 1).tolist() == [3, 3]
    assert make_reduction("sum", 4).prepare(values, 2).tolist() == [1, 1, 1]


def test_weights_of_any_size_add_up_to_one() -> None:
    assert make_reduction("weighted-mean", 2, [1e308, 1e308]).scales == (0.5, 0.5)
    assert make_reduction("weighted-mean", 3, [0, 1e-320, 0]).scales == (0, 1, 0)


@pytest.mark.parametrize(
    ("name", "weights", "messages"),
    [
        ("weighted-mean", None, ["needs weights"]),
        ("weighted-mean", [1], ["wrong number"]),
        ("weighted-mean", [0, 0], ["all weights are zero"]),
        ("weighted-mean", [1, -1, np.nan], ["wrong number", "worker 1", "worker 2"]),
        ("sum", [1, 1], ["takes no weights"]),
        ("mean", [1, 1], ["takes no weights"]),
    ],
)
def test_bad_weights(name: str, weights: list[float] | None, messages: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make_reduction(name, 2, weights)
    said = [fault.message for fault in caught.value.faults]
    assert len(said) == len(messages)
    assert all(part in message for part, message in zip(messages, said, strict=True))


def test_a_mean_of_integers_is_refused() -> None:
    for name in REDUCTIONS:
        for dtype in DTYPES.values():
            if "mean" in name and not is_float(dtype):
                with pytest.raises(InputError, match=dtype.name):
                    check_dtype(REDUCTIONS[name], dtype)
            else:
                check_dtype(REDUCTIONS[name], dtype)


# ---------------------------------------------------------------------------------------------- bounds


@st.composite
def inputs(draw: Any) -> tuple[Reduction, np.ndarray, list[Fraction] | None]:
    """A reduction and the values of 1 to 6 workers: of one size, of all sizes, or about to underflow."""
    n_workers = draw(st.integers(1, 6))
    name, dtype = draw(st.sampled_from(list(REDUCTIONS))), FLOATS[draw(st.sampled_from(list(FLOATS)))]
    tiny = smallest_subnormal(dtype)
    number = draw(
        st.sampled_from(
            [
                st.floats(-1, 1),
                st.floats(-6, 6),
                st.integers(-2000, 2000).map(lambda n: n * tiny),
                st.floats(-2, 2).map(lambda x: x * tiny**0.5),
            ]
        )
    )
    rows = st.lists(number, min_size=4, max_size=4)
    values = np.array(draw(st.lists(rows, min_size=n_workers, max_size=n_workers))).astype(dtype)
    if "mean" not in name:
        return make_reduction(name, n_workers), values, None
    if name == "mean":
        return make_reduction(name, n_workers), values, [Fraction(1)] * n_workers
    weights = draw(st.lists(st.floats(1e-9, 1), min_size=n_workers, max_size=n_workers))
    return make_reduction(name, n_workers, weights), values, list(map(Fraction, weights))


@given(inputs())
def test_no_error_is_beyond_its_bound(
    drawn: tuple[Reduction, np.ndarray, list[Fraction] | None],
) -> None:
    kind, values, weights = drawn
    got = computed(kind, values)
    with np.errstate(all="ignore"):
        expected = kind.oracle(values.dtype, len(values)).expected(values)
        judgement = judge(got, expected)
    assert judgement.wrong is None
    assert judgement.overflowed is None
    bounds = np.broadcast_to(expected.bound, got.shape)
    for column, result, bound in zip(values.T, got, bounds, strict=True):
        truth = exact(kind, [Fraction(float(x)) for x in column], weights)
        assert abs(Fraction(float(result)) - truth) <= (Fraction(float(bound)) if np.isfinite(bound) else 10**400)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS.values(), ids=str)
def test_bounds_are_tight_enough_to_tell(name: str, dtype: np.dtype) -> None:
    values = np.random.default_rng(1).uniform(0.5, 1, (4, 100)).astype(dtype)
    kind = reduction(name, 4)
    expected = kind.oracle(dtype, 4).expected(values)
    off = expected.value * (1 + 12 * unit_roundoff(dtype))
    assert judge(off.astype(dtype), expected).wrong is not None


def test_float64_is_held_against_more_than_float64() -> None:
    # 1 is lost in float64, in the order of the workers; what is left is the reference's own compensation.
    values = np.array([[1e16], [1.0], [-1e16]])
    expected = make_reduction("sum", 3).oracle(np.dtype(np.float64), 3).expected(values)
    assert expected.value + expected.rest == 1
    assert judge(np.array([0.0]), expected).max_abs_error == 1


def test_a_single_worker_is_exact() -> None:
    values = np.array([[0.1, -3.0, 0.0]], np.float32)
    for name in ("sum", "max", "min", "prod"):
        expected = reduction(name, 1).oracle(values.dtype, 1).expected(values)
        assert judge(values[0], expected).wrong is None
        assert judge(np.nextafter(values[0], np.float32(9)), expected).wrong is not None


@pytest.mark.parametrize("dtype", INTEGERS.values(), ids=str)
@given(data=st.data())
def test_integers_are_exact_modulo_their_range(dtype: np.dtype, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["sum", "max", "min", "prod"]))
    info = np.iinfo(dtype)
    number = st.integers(int(info.min), int(info.max)) | st.integers(max(-9, int(info.min)), 9)
    rows = data.draw(st.lists(st.lists(number, min_size=3, max_size=3), min_size=1, max_size=5))
    values, kind = np.array(rows, dtype), make_reduction(name, len(rows))
    expected = kind.oracle(dtype, len(rows)).expected(values)
    truth = [int(exact(kind, list(map(Fraction, column)), None)) for column in zip(*rows, strict=True)]
    modulus = 2 ** (8 * dtype.itemsize)
    assert [(int(got) - want) % modulus for got, want in zip(expected.value, truth, strict=True)] == [0, 0, 0]
    assert expected.wrapped == any(not info.min <= want <= info.max for want in truth)
    assert judge(computed(kind, values), expected).wrong is None


# ------------------------------------------------------------------------------------------- judgement


@pytest.mark.parametrize("dtype", FLOATS.values(), ids=str)
def test_nan_and_infinities_come_out_as_ieee_says(dtype: np.dtype) -> None:
    values = np.array([[np.nan, np.inf, np.inf, -np.inf, 1], [1, 1, -np.inf, -np.inf, 1]]).astype(dtype)
    for name in REDUCTIONS:
        kind = reduction(name, 2)
        with np.errstate(all="ignore"):
            expected = kind.oracle(dtype, 2).expected(values)
            judgement = judge(computed(kind, values), expected)
        assert expected.n_nonfinite == 6
        assert (judgement.wrong, judgement.overflowed) == (None, None)
        assert np.isfinite(judgement.max_abs_error)


def test_a_finite_result_where_the_input_is_not_is_wrong() -> None:
    kind = make_reduction("sum", 2)
    values = np.array([[np.inf, np.inf, 1], [1, -np.inf, 1]], np.float32)
    expected = kind.oracle(np.dtype(np.float32), 2).expected(values)
    assert judge(np.array([1, 1, 2], np.float32), expected).wrong.tolist() == [True, True, False]


@pytest.mark.parametrize(("dtype", "large"), [("float16", 6e4), ("bfloat16", 3e38), ("float32", 3e38)])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_overflow_is_a_verdict_of_its_own(name: str, dtype: str, large: float) -> None:
    values = np.array([[large, 1], [large, 1]]).astype(DTYPES[dtype])
    kind = make_reduction(name, 2)
    expected = kind.oracle(values.dtype, 2).expected(values)
    judgement = judge(computed(kind, values), expected)
    assert judgement.wrong is None
    assert judgement.overflowed.tolist() == [True, False]
    assert judgement.max_abs_error == 0


def test_float64_whose_reference_overflows_is_not_called_wrong() -> None:
    values = np.array([[1.5e308], [1.5e308], [-1.5e308]])
    kind = make_reduction("sum", 3)
    with np.errstate(all="ignore"):
        expected = kind.oracle(values.dtype, 3).expected(values)
        assert judge(np.array([1.5e308]), expected).wrong is None
        assert judge(np.array([np.inf]), expected).overflowed is not None


def test_huge_float32_values_have_a_finite_bound() -> None:
    values = np.full((4, 1), 2e38, np.float32) * np.array([[1], [-1], [1], [-1]], np.float32)
    expected = make_reduction("sum", 4).oracle(values.dtype, 4).expected(values)
    assert (expected.n_nonfinite, bool(np.isfinite(expected.bound).all())) == (0, True)
