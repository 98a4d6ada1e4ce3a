from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis.verification import Mismatch, Verdict, outputs, unlike, verify
from ringnet.collectives import ALGORITHMS, Schedule, split_sizes
from ringnet.payload import (
    DTYPES,
    REDUCTIONS,
    ArraySource,
    FileSource,
    RampSource,
    RandomSource,
    Source,
    is_float,
    make_reduction,
    payload_text,
)
from ringnet.payload.blocks import LARGE, THREADS, parallel
from ringnet.payload.tamper import Tamper, make_payload

Drive = Callable[[Schedule, Any], None]
EVERY_DTYPE = pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
PACKED = pytest.mark.parametrize("packed", [False, True], ids=["chunks", "packed"])
SIZES = pytest.mark.parametrize("n_elements", [200, 4 * LARGE + 3], ids=["small chunks", "large chunks"])


@dataclass
class Checked:
    schedule: Schedule
    payload: Any
    source: Source
    verdict: Verdict


@pytest.fixture(scope="session")
def run(drive: Drive) -> Callable[..., Checked]:
    """Make, move and verify a payload: ``run(source, reduce="max", tamper=Tamper("drop", 1, 0))``."""

    def checked(
        source: Source,
        *,
        reduce: str = "sum",
        schedule: Schedule | str = "all-reduce",
        carry: int | None = None,
        packed: bool = False,
        tamper: Tamper | None = None,
        moved: bool = True,
    ) -> Checked:
        n = source.n_workers
        schedule = ALGORITHMS["ring"].build(n, schedule) if isinstance(schedule, str) else schedule
        reduction = make_reduction(reduce, n, list(range(1, n + 1)) if reduce == "weighted-mean" else None)
        sizes = split_sizes(source.n_elements, schedule.n_chunks)
        payload = make_payload(source, reduction, sizes, schedule.source, carry, packed=packed, tamper=tamper)
        if moved:
            drive(schedule, payload)
        return Checked(schedule, payload, source, verify(schedule, payload, source, reduction, sizes, carry))

    return checked


def random(n_elements: int = 200, dtype: Any = "float32", n_workers: int = 4, reduce: str = "sum") -> Source:
    return RandomSource(n_workers, n_elements, np.dtype(DTYPES.get(dtype, dtype)), 9, for_product=reduce == "prod")


def reductions_of(dtype: np.dtype) -> list[str]:
    return [name for name in REDUCTIONS if is_float(dtype) or "mean" not in name]


# ------------------------------------------------------------------------------------- right results


@PACKED
@SIZES
@EVERY_DTYPE
@pytest.mark.parametrize("collective", ALGORITHMS["ring"].collectives)
def test_a_right_result_is_right(
    run: Callable[..., Checked], collective: str, dtype: np.dtype, n_elements: int, packed: bool
) -> None:
    for reduce in reductions_of(dtype):
        source = random(n_elements, dtype, reduce=reduce)
        verdict = run(source, reduce=reduce, schedule=collective, packed=packed).verdict
        assert (verdict.sum_ok, verdict.workers_agree, verdict.mismatch) == (True, True, None)
        assert (verdict.replay_ok, verdict.bound_ok, verdict.overflowed) == (True, True, False)
        assert verdict.verified_elements == n_elements * (1 if collective == "reduce-scatter" else 4)
        assert 0 <= verdict.max_error_share <= 1


def test_errors_are_measured(run: Callable[..., Checked]) -> None:
    verdict = run(random(20_000)).verdict
    assert 1e-8 < verdict.max_abs_error < 4 * 4 * 2**-24
    assert 0.05 < verdict.max_error_share < 1
    assert run(random(20_000, "int32")).verdict.max_abs_error == 0


@PACKED
@pytest.mark.parametrize("n_elements", [0, 1, 3, 5])
def test_uneven_and_empty_chunks(run: Callable[..., Checked], n_elements: int, packed: bool) -> None:
    verdict = run(random(n_elements), packed=packed).verdict
    assert (verdict.sum_ok, verdict.verified_elements) == (True, 4 * n_elements)


@PACKED
@pytest.mark.parametrize("carry", [1, 7, 50, 60, LARGE + 5])
def test_the_first_elements_of_each_chunk(run: Callable[..., Checked], carry: int, packed: bool) -> None:
    source = random(4 * (LARGE + 30) if carry > LARGE else 201)
    verdict = run(source, carry=carry, packed=packed).verdict
    sizes = np.minimum(split_sizes(source.n_elements, 4), carry)
    assert (verdict.sum_ok, verdict.verified_elements) == (True, 4 * sizes.sum())
    assert verdict.payload == payload_text(carry)


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("collective", ALGORITHMS["ring"].collectives)
def test_one_worker_holds_its_input_prepared(run: Callable[..., Checked], collective: str, reduce: str) -> None:
    source = ArraySource(np.array([[0.1, -2.0, 0.0]], np.float32))
    checked = run(source, reduce=reduce, schedule=collective)
    assert (checked.verdict.sum_ok, checked.verdict.verified_elements) == (True, 3)
    assert outputs(checked.schedule, checked.payload, source)[0].tobytes() == source.read(0, 0, 3).tobytes()


def test_many_workers(run: Callable[..., Checked]) -> None:
    for packed in (False, True):
        verdict = run(random(300, n_workers=70), carry=3, packed=packed).verdict
        assert (verdict.sum_ok, verdict.verified_elements) == (True, 70 * 70 * 3)


def test_no_payload() -> None:
    verdict = verify(ALGORITHMS["ring"].build(2), None, None, make_reduction("sum", 2), split_sizes(4, 2))
    assert verdict == Verdict("none")
    assert (verdict.sum_ok, verdict.verified_elements, verdict.max_abs_error) == (None, 0, None)


def test_other_schedules_than_rings(run: Callable[..., Checked], custom: Callable[..., Schedule]) -> None:
    # Everyone sends to worker 0 at once; it reduces them by sender, and sends the result back.
    gather = custom(3, [(2, 0, 0), (1, 0, 0)], op="reduce")
    steps = [*gather.steps(), *custom(3, [(0, 1, 0), (0, 2, 0)], op="copy").steps()]
    schedule = custom(3, [(2, 0, 0)], make_steps=lambda: iter(steps))
    for n_elements in (10, LARGE + 10):
        for packed in (False, True):
            verdict = run(random(n_elements, "float16", 3), schedule=schedule, packed=packed).verdict
            assert (verdict.sum_ok, verdict.verified_elements) == (True, 3 * n_elements)


@given(data=st.data())
def test_random_runs_are_right(run: Callable[..., Checked], data: st.DataObject) -> None:
    dtype = DTYPES[data.draw(st.sampled_from(list(DTYPES)))]
    reduce = data.draw(st.sampled_from(reductions_of(dtype)))
    n_workers, n_elements = data.draw(st.integers(1, 9)), data.draw(st.integers(0, 60))
    checked = run(
        random(n_elements, dtype, n_workers, reduce),
        reduce=reduce,
        schedule=data.draw(st.sampled_from(ALGORITHMS["ring"].collectives)),
        carry=data.draw(st.none() | st.integers(1, 8)),
        packed=data.draw(st.booleans()),
    )
    assert checked.verdict.sum_ok


# -------------------------------------------------------------------------------------- wrong results


@PACKED
@SIZES
@EVERY_DTYPE
@pytest.mark.parametrize("kind", ["drop", "double", "swap", "flip"])
@pytest.mark.parametrize("reduce", ["sum", "prod"])
def test_whatever_goes_wrong_is_seen_by_both_checks(
    run: Callable[..., Checked], reduce: str, kind: Any, dtype: np.dtype, n_elements: int, packed: bool
) -> None:
    source = random(n_elements, dtype, reduce=reduce)
    # The highest bit is the sign, or for integers far from rounding.
    verdict = run(source, reduce=reduce, packed=packed, tamper=Tamper(kind, 2, 1, bit=-1)).verdict
    assert (verdict.sum_ok, verdict.replay_ok, verdict.bound_ok) == (False, False, False)
    assert verdict.workers_agree  # they all hold the same wrong result
    assert (verdict.mismatch.chunk, verdict.mismatch.check) == (1, "replay")
    assert verdict.mismatch.got != verdict.mismatch.expected


@PACKED
@EVERY_DTYPE
@pytest.mark.parametrize("kind", ["drop", "swap", "flip"])
@pytest.mark.parametrize("reduce", ["max", "min", "mean", "weighted-mean"])
def test_other_reductions_see_it_too(
    run: Callable[..., Checked], reduce: str, kind: Any, dtype: np.dtype, packed: bool
) -> None:
    if reduce not in reductions_of(dtype):
        return
    tamper = Tamper(kind, 2, 1, bit=-1)
    if kind == "flip" and reduce in ("max", "min"):
        # Whether a flipped sign changes the extreme depends on the value: turn it over in the result instead.
        tamper = Tamper(kind, 1, 1, bit=-1)
        checked = run(random(200, dtype), reduce=reduce, packed=packed, schedule="all-gather", tamper=tamper)
    else:
        checked = run(random(400, dtype), reduce=reduce, packed=packed, tamper=tamper)
    assert (checked.verdict.replay_ok, checked.verdict.bound_ok) == (False, False)


@PACKED
@EVERY_DTYPE
def test_one_low_bit_is_seen_bit_for_bit(run: Callable[..., Checked], dtype: np.dtype, packed: bool) -> None:
    # Worker 2 is the last to get chunk 3: the bit reaches the result of no other worker.
    schedule = ALGORITHMS["ring"].build(4, "all-gather")
    verdict = run(random(200, dtype), schedule=schedule, packed=packed, tamper=Tamper("flip", 1, 3)).verdict
    assert (verdict.replay_ok, verdict.sum_ok, verdict.workers_agree) == (False, False, False)
    assert (verdict.mismatch.worker, verdict.mismatch.chunk, verdict.mismatch.element) == (1, 3, 150)


def test_a_low_bit_is_within_what_rounding_may_do(run: Callable[..., Checked]) -> None:
    verdict = run(random(200), tamper=Tamper("flip", 2, 1)).verdict
    assert (verdict.replay_ok, verdict.bound_ok, verdict.sum_ok) == (False, True, False)


def test_a_maximum_taken_twice_is_the_maximum(run: Callable[..., Checked]) -> None:
    assert run(random(200), reduce="max", tamper=Tamper("double", 2, 1)).verdict.sum_ok


@PACKED
def test_a_result_that_was_never_copied(run: Callable[..., Checked], packed: bool) -> None:
    verdict = run(random(200), moved=False, packed=packed).verdict
    assert (verdict.sum_ok, verdict.replay_ok, verdict.bound_ok, verdict.workers_agree) == (
        False,
        False,
        False,
        False,
    )


def test_a_worker_that_holds_nothing(run: Callable[..., Checked]) -> None:
    verdict = run(random(200), schedule="all-gather", moved=False).verdict
    assert (verdict.sum_ok, verdict.replay_ok, verdict.bound_ok) == (False, False, False)
    assert (verdict.mismatch.check, verdict.mismatch.got) == ("missing", "nothing")
    assert (verdict.mismatch.worker, verdict.mismatch.chunk) == (0, 0)


@pytest.mark.parametrize(("n_elements", "at"), [(200, 5), (4 * LARGE + 3, 5), (600_000, 140_000)])
def test_a_mismatch_names_the_place(run: Callable[..., Checked], n_elements: int, at: int) -> None:
    checked = run(RampSource(4, n_elements, DTYPES["int64"]))
    array = checked.payload.held(3, 2)
    array.flags.writeable = True
    array[at] += 1
    reduction, sizes = make_reduction("sum", 4), checked.payload.layout.sizes
    verdict = verify(checked.schedule, checked.payload, checked.source, reduction, sizes)
    element = int(sizes[:2].sum()) + at
    value = (element % 9 + 1) * 111 + (element % 9 + 1 + 1000)
    assert verdict.mismatch == Mismatch(0, 2, element, "replay", str(value + 1), str(value))
    assert str(verdict.mismatch) == (
        f"worker 0, chunk 2, element {element}: got {value + 1}, expected {value} (replay)"
    )
    assert verdict.max_abs_error == 1
    assert verdict.max_error_share is None


# -------------------------------------------------------------------- what a reader should know besides


@EVERY_DTYPE
def test_nan_and_infinity_are_said_and_summed(run: Callable[..., Checked], dtype: np.dtype) -> None:
    if not is_float(dtype):
        return
    values = np.ones((3, 9), dtype)
    values[0, 1], values[1, 4], values[1, 1], values[2, 8] = np.nan, np.inf, -np.inf, np.nan
    for reduce in REDUCTIONS:
        for packed in (False, True):
            verdict = run(ArraySource(values), reduce=reduce, packed=packed).verdict
            assert (verdict.sum_ok, verdict.n_nonfinite_inputs, verdict.overflowed) == (True, 4, False)
            assert verdict.notes == ("4 input values are infinite or NaN; they are combined as IEEE 754 says",)
            assert np.isfinite(verdict.max_abs_error)


def test_nan_is_nan_whatever_its_bits() -> None:
    nan, minus = np.array([np.nan, 1], np.float32), np.array([-np.nan, 1], np.float32)
    assert nan.tobytes() != minus.tobytes()
    assert unlike(nan, minus).tolist() == [False, False]
    assert unlike(nan, np.array([1, np.nan], np.float32)).tolist() == [True, True]
    assert unlike(np.array([0.0]), np.array([-0.0])).tolist() == [True]


@pytest.mark.parametrize(("dtype", "large"), [("float16", 6e4), ("float32", 3e38), ("float64", 1.7e308)])
def test_overflow_is_a_verdict_of_its_own(run: Callable[..., Checked], dtype: str, large: float) -> None:
    values = np.ones((2, 6), DTYPES[dtype])
    values[:, 3] = large
    verdict = run(ArraySource(values)).verdict
    assert (verdict.overflowed, verdict.sum_ok, verdict.replay_ok, verdict.bound_ok) == (
        True,
        False,
        True,
        True,
    )
    assert (verdict.mismatch.element, verdict.mismatch.check, verdict.mismatch.got) == (3, "overflow", "inf")
    assert verdict.notes == (f"{dtype} overflowed: a result is infinite or NaN though its input is finite",)
    assert verdict.max_abs_error == 0


@pytest.mark.parametrize(("name", "limit"), [("int8", 127), ("uint8", 255), ("int64", 2**63 - 1)])
def test_integers_wrap_and_it_is_said(run: Callable[..., Checked], name: str, limit: int) -> None:
    fits = np.array([[limit - 1, 0], [1, 0]], DTYPES[name])
    assert not run(ArraySource(fits)).verdict.wrapped
    verdict = run(ArraySource(np.vstack([fits, fits]))).verdict
    assert (verdict.wrapped, verdict.sum_ok, verdict.max_abs_error) == (True, True, 0)
    bits = 8 * DTYPES[name].itemsize
    assert verdict.notes == (f"{name} wrapped: not every result fits, all are exact modulo 2^{bits}",)


def test_a_bound_that_tells_nothing_is_said(run: Callable[..., Checked]) -> None:
    assert run(random(200, "bfloat16", 20)).verdict.bound_tells
    verdict = run(random(200, "bfloat16", 40)).verdict
    assert (verdict.bound_tells, verdict.sum_ok) == (False, True)
    assert verdict.notes == ("the error bound tells nothing with 40 workers in bfloat16",)
    assert verdict.max_error_share is not None
    # From N u = 1 on there is no bound at all.
    assert run(random(600, "bfloat16", 260), carry=1).verdict.max_error_share is None
    assert run(random(200, "bfloat16", 40), reduce="max").verdict.bound_tells
    assert run(random(200, "bfloat16", 40), schedule="all-gather").verdict.bound_tells


# ---------------------------------------------------------------------------------------- what is saved


def test_the_result_has_the_shape_of_the_input(run: Callable[..., Checked], tmp_path: Path) -> None:
    for worker in range(2):
        np.save(tmp_path / f"{worker}.npy", np.arange(12.0).reshape(3, 4) * (worker + 1))
    source = FileSource([tmp_path / "0.npy", tmp_path / "1.npy"])
    checked = run(source)
    (result,) = outputs(checked.schedule, checked.payload, source)
    assert checked.verdict.sum_ok
    assert (result == np.arange(12.0).reshape(3, 4) * 3).all()
    partial = run(source, carry=2)
    assert outputs(partial.schedule, partial.payload, source)[0].tolist() == [0, 3, 18, 21]


def test_a_reduce_scatter_leaves_one_result_per_worker(run: Callable[..., Checked]) -> None:
    checked = run(RampSource(3, 5, DTYPES["int32"]), schedule="reduce-scatter")
    results = outputs(checked.schedule, checked.payload, checked.source)
    assert [result.tolist() for result in results] == [[333, 444], [555], [111, 222]]
    empty = run(RampSource(3, 1, DTYPES["int32"]), schedule="reduce-scatter")
    saved = outputs(empty.schedule, empty.payload, empty.source)
    assert [(result.tolist(), result.dtype) for result in saved] == [
        ([], "int32"),
        ([], "int32"),
        ([111], "int32"),
    ]


# ------------------------------------------------------------------------------------------------ blocks


def test_threads_keep_the_order_and_pass_errors_on() -> None:
    assert parallel(lambda x: x * x, range(50)) == [x * x for x in range(50)]
    assert THREADS >= 1
    with pytest.raises(ZeroDivisionError):
        parallel(lambda x: 1 // x, [2, 1, 0])
