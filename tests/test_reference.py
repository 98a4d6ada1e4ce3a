"""The oracle against its definition in plain Python, against pinned values, and against bad input."""

from __future__ import annotations

import copy
from functools import reduce

import array_api_strict
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.reference import all_gather, reduce_scatter, ring_all_reduce, ring_allreduce

INTEGERS = ["int8", "uint8", "int16", "int32", "uint32", "int64"]
FLOATS = ["float16", "float32", "float64", ml_dtypes.bfloat16]


def chunked(rows):
    """Nested lists of one-element arrays from nested lists of numbers."""
    return [[np.array([number]) for number in row] for row in rows]


def numbers(chunks):
    return [[int(chunk[0]) for chunk in row] for row in chunks]


def random_buffers(n, m, dtype, seed=0):
    rng = np.random.default_rng(seed)
    integers = np.dtype(dtype).kind in "iu"
    return list((rng.integers(0, 100, (n, m)) if integers else rng.standard_normal((n, m))).astype(dtype))


def in_ring_order(buffers):
    """Chunk c starts at worker c and passes c+1, c+2, ...; each adds what comes in to its own."""
    n = len(buffers)
    cut = [np.array_split(buffer, n) for buffer in buffers]
    order = [[cut[(c + k) % n][c] for k in range(n)] for c in range(n)]
    return np.concatenate([reduce(lambda incoming, own: own + incoming, parts) for parts in order])


sizes = st.tuples(st.integers(1, 9), st.integers(0, 25))
dtypes = st.sampled_from(INTEGERS + FLOATS)


def test_the_worked_example_of_three_workers():
    start = [[1, 2, 3], [10, 20, 30], [100, 200, 300]]
    scattered = reduce_scatter(chunked(start))
    assert numbers(scattered) == [[1, 222, 303], [11, 20, 333], [111, 220, 300]]
    assert numbers(all_gather(scattered)) == [[111, 222, 333]] * 3
    assert [result.tolist() for result in ring_allreduce(list(np.array(start)))] == [[111, 222, 333]] * 3


class Logged(np.ndarray):
    """An array that writes down every addition that is made with it."""

    log: list  # shared by the test and all its arrays

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        assert (ufunc, method, kwargs) == (np.add, "__call__", {})
        own, incoming = (np.asarray(array) for array in inputs)
        Logged.log.append((int(own[0]), int(incoming[0])))
        return np.add(own, incoming).view(Logged)


@pytest.fixture
def log(monkeypatch):
    monkeypatch.setattr(Logged, "log", [], raising=False)
    return Logged.log


def test_each_step_adds_what_came_in_to_its_own(log):
    start = chunked([[1, 2, 3], [10, 20, 30], [100, 200, 300]])
    reduce_scatter([[chunk.view(Logged) for chunk in row] for row in start])
    first_step = [(10, 1), (200, 20), (3, 300)]
    assert log == [*first_step, (30, 303), (100, 11), (2, 220)]


def test_all_gather_adds_nothing(log):
    chunks = chunked([[1, 222, 303], [11, 20, 333], [111, 220, 300]])
    gathered = all_gather([[chunk.view(Logged) for chunk in row] for row in chunks])
    assert numbers(gathered) == [[111, 222, 333]] * 3
    assert log == []


def test_the_worked_example_of_two_workers():
    scattered = reduce_scatter(chunked([[1, 2], [3, 4]]))
    assert numbers(scattered) == [[1, 6], [4, 4]]
    assert numbers(all_gather(scattered)) == [[4, 6], [4, 6]]
    assert [result.tolist() for result in ring_allreduce([np.array([1, 2]), np.array([3, 4])])] == [[4, 6]] * 2


@given(sizes, dtypes, st.integers(0, 99))
def test_every_worker_gets_the_sum_in_ring_order_to_the_last_bit(size, dtype, seed):
    buffers = random_buffers(*size, dtype, seed)
    expected = in_ring_order(buffers)
    for result in ring_allreduce(buffers):
        assert result.dtype == dtype
        assert result.tobytes() == expected.tobytes()


@given(sizes, st.sampled_from(INTEGERS))
def test_integers_wrap_as_their_dtype_does(size, dtype):
    buffers = [np.full(size[1], np.iinfo(dtype).max, dtype) for _ in range(size[0])]
    exact = size[0] * np.iinfo(dtype).max % 2 ** np.iinfo(dtype).bits
    assert all((result == np.array(exact, "uint64").astype(dtype)).all() for result in ring_allreduce(buffers))


@given(st.integers(1, 9), st.integers(0, 4), st.lists(st.integers(0, 3), max_size=2), st.sampled_from(FLOATS))
def test_trailing_axes_are_kept(n, rows, trailing, dtype):
    shape = (n * rows, *trailing)
    stack = np.reshape(random_buffers(n, int(np.prod(shape)), dtype), (n, *shape))
    result = ring_all_reduce(stack)
    assert (result.shape, result.dtype) == (shape, dtype)
    assert result.tobytes() == in_ring_order(list(stack)).tobytes()


@given(sizes)
def test_a_reduce_scatter_leaves_chunk_i_plus_1_complete_with_worker_i(size):
    n, _ = size
    buffers = random_buffers(*size, "int64")
    scattered = reduce_scatter([np.array_split(buffer, n) for buffer in buffers])
    complete = np.array_split(np.sum(buffers, axis=0), n)
    for i, held in enumerate(scattered):
        assert np.array_equal(held[(i + 1) % n], complete[(i + 1) % n])


@given(sizes)
def test_an_all_gather_spreads_chunk_i_plus_1_of_worker_i(size):
    n, _ = size
    chunks = [np.array_split(buffer, n) for buffer in random_buffers(*size, "int64")]
    for held in all_gather(chunks):
        assert all(np.array_equal(held[c], chunks[(c - 1) % n][c]) for c in range(n))


@pytest.mark.parametrize("phase", [reduce_scatter, all_gather])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_input_is_not_modified_and_no_result_shares_memory(phase, n):
    chunks = [np.array_split(buffer, n) for buffer in random_buffers(n, 7, "int64")]
    before = copy.deepcopy(chunks)
    arrays = [chunk for row in phase(chunks) for chunk in row]
    for k, array in enumerate(arrays):
        array[...] = k
    assert all((array == k).all() for k, array in enumerate(arrays))
    np.testing.assert_equal(chunks, before)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_results_of_the_whole_ring_share_no_memory_either(n):
    shared = np.arange(6.0)
    results = [*ring_allreduce([shared] * n), ring_all_reduce([shared] * n)]
    for result in results:
        result[...] = -1
        assert (shared == np.arange(6.0)).all()
    results[0][...] = 5
    assert all((result == -1).all() for result in results[1:])


def test_read_only_input_gives_a_writable_result():
    frozen = np.ones(4)
    frozen.flags.writeable = False
    assert all(result.flags.writeable for result in ring_allreduce([frozen] * 2))


def test_one_worker_runs_no_step_and_gets_a_copy(log):
    alone = np.arange(3.0)
    assert ring_allreduce([alone])[0].tolist() == ring_all_reduce([alone]).tolist() == [0, 1, 2]
    reduce_scatter([[alone.view(Logged)]])
    assert log == []


@pytest.mark.parametrize("number", [int, float, np.int8, np.array])
def test_plain_numbers_and_scalars_do_as_chunks(number):
    chunks = reduce_scatter([[number(1), number(2)], [number(3), number(4)]])
    assert chunks == [[1, 6], [4, 4]]
    assert {type(chunk) for row in chunks for chunk in row} == {np.ndarray}


def test_a_foreign_byte_order_is_kept():
    assert [result.dtype.str for result in ring_allreduce([np.ones(3, ">f4")] * 2)] == [">f4", ">f4"]


def test_infinity_and_nan_are_summed_as_ieee_says():
    assert ring_allreduce([[np.inf, np.nan], [1.0, 1.0]])[1].tolist()[0] == np.inf
    assert np.isnan(ring_allreduce([[np.inf, np.nan], [1.0, 1.0]])[1][1])


# Other array libraries.


def test_array_api_strict_stacked_and_as_a_list():
    stack = array_api_strict.asarray(np.arange(12, dtype="float32").reshape(2, 2, 3))
    for given_as in (stack, [stack[0, ...], stack[1, ...]]):
        result = ring_all_reduce(given_as)
        assert (type(result), result.dtype) == (type(stack), array_api_strict.float32)
        assert np.asarray(result).tolist() == [[6, 8, 10], [12, 14, 16]]


def test_array_api_strict_integers_through_the_nested_lists_and_the_ring():
    arrays = [array_api_strict.asarray([120, 2, 3], dtype=array_api_strict.int8) for _ in range(2)]
    assert [np.asarray(result).tolist() for result in ring_allreduce(arrays)] == [[-16, 4, 6]] * 2
    assert ring_allreduce(arrays)[0].dtype == array_api_strict.int8


def test_array_api_strict_keeps_the_device():
    elsewhere = array_api_strict.Device("device1")
    result = ring_all_reduce(array_api_strict.ones((2, 4), device=elsewhere))
    assert result.device == elsewhere


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_torch_keeps_dtype_and_device_and_leaves_the_input(name):
    torch = pytest.importorskip("torch")
    stack = torch.arange(24, dtype=getattr(torch, name)).reshape(2, 4, 3)
    before = stack.clone()
    for given_as in (stack, list(stack)):
        result = ring_all_reduce(given_as)
        assert (result.dtype, result.device) == (stack.dtype, stack.device)
        assert torch.equal(result, stack.sum(0))
    result.zero_()
    assert torch.equal(stack, before)


def test_torch_integers_go_round_the_ring_but_not_through_ring_all_reduce():
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor([100, 2, 3], dtype=torch.int8)] * 2
    assert [result.tolist() for result in ring_allreduce(tensors)] == [[-56, 4, 6]] * 2
    with pytest.raises(TypeError, match=r"worker 0 has dtype torch\.int8, but a real floating dtype is needed"):
        ring_all_reduce(tensors)


def test_torch_and_numpy_do_not_mix():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="worker 1 has library torch, worker 0 has numpy"):
        ring_all_reduce([np.ones(2), torch.ones(2)])


# Bad input: the worker, and both values.

one, two = np.ones(1), np.ones(2)

BAD_CHUNKS = [
    ([], ValueError, "no workers: the list is empty"),
    (None, TypeError, "the input must be a list of arrays, got NoneType"),
    (7, TypeError, "the input must be a list of arrays, got int"),
    ([1, 2], TypeError, "worker 0 must be a list of arrays, got int"),
    ([[one, one], [one]], ValueError, "worker 1 has 1 chunks, 2 workers need 2 each"),
    ([[one, one, one]], ValueError, "worker 0 has 3 chunks, 1 workers need 1 each"),
    (
        [[one, two], [one, one]],
        ValueError,
        r"worker 1, chunk 1 has shape \(1,\), worker 0, chunk 1 has \(2,\)",
    ),
    (
        [[one, one], [one, one.astype("f4")]],
        TypeError,
        "worker 1, chunk 1 has dtype float32, worker 0, chunk 0 has float64",
    ),
    (
        [[one, one.astype(int)], [one, one]],
        TypeError,
        "worker 0, chunk 1 has dtype int64, worker 0, chunk 0 has float64",
    ),
    ([[one, [[1], [2, 3]]], [one, one]], ValueError, "worker 0, chunk 1 holds no array: .*inhomogeneous"),
    ([["a"]], TypeError, "worker 0 has dtype <U1, but a numeric dtype is needed"),
    ([[np.array([True])]], TypeError, "worker 0 has dtype bool, but a numeric dtype is needed"),
    ([[None]], TypeError, "worker 0 has dtype object, but a numeric dtype is needed"),
]


@pytest.mark.parametrize("phase", [reduce_scatter, all_gather])
@pytest.mark.parametrize(("chunks", "error", "words"), BAD_CHUNKS)
def test_bad_chunks_are_refused_with_worker_and_both_values(phase, chunks, error, words):
    with pytest.raises(error, match=words):
        phase(chunks)


BAD_ARRAYS = [
    ([], ValueError, "no workers"),
    (None, TypeError, "must be a list of arrays, got NoneType"),
    (np.ones((0, 3)), ValueError, "no workers"),
    (np.array(5.0), TypeError, "must be a list of arrays, got ndarray"),
    ([one, two], ValueError, r"worker 1 has shape \(2,\), worker 0 has \(1,\)"),
    ([two, two, two.astype("f4")], TypeError, "worker 2 has dtype float32, worker 0 has float64"),
    ([two, None], TypeError, "worker 1 has dtype object, worker 0 has float64"),
    ([two, [[1], [2, 3]]], ValueError, "worker 1 holds no array"),
    ([two, array_api_strict.ones(2)], TypeError, "worker 1 has library array_api_strict, worker 0 has numpy"),
    (
        [array_api_strict.ones(2), array_api_strict.ones(2, device=array_api_strict.Device("device1"))],
        ValueError,
        r"worker 1 has device .*device1.*, worker 0 has .*CPU_DEVICE",
    ),
]


@pytest.mark.parametrize("ring", [ring_allreduce, ring_all_reduce])
@pytest.mark.parametrize(("arrays", "error", "words"), BAD_ARRAYS)
def test_bad_arrays_are_refused_with_worker_and_both_values(ring, arrays, error, words):
    with pytest.raises(error, match=words):
        ring(arrays)


@pytest.mark.parametrize(("shape", "shown"), [((), r"\(\)"), ((2, 2), r"\(2, 2\)")])
def test_the_ring_of_arrays_takes_one_axis_only(shape, shown):
    with pytest.raises(ValueError, match=f"worker 0 has shape {shown}, ring_allreduce takes 1-D arrays"):
        ring_allreduce([np.ones(shape)] * 2)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool", "complex64"])
def test_the_ring_of_tensors_takes_floating_point_only(dtype):
    with pytest.raises(TypeError, match=f"worker 0 has dtype {dtype}, but a real floating dtype is needed"):
        ring_all_reduce(np.ones((2, 2), dtype))


def test_the_number_of_workers_must_divide_the_leading_axis():
    with pytest.raises(ValueError, match=r"worker 0 has shape \(4, 2\): 3 workers do not divide its 4 rows"):
        ring_all_reduce(np.ones((3, 4, 2)))


def test_a_tensor_needs_an_axis_to_cut():
    with pytest.raises(ValueError, match=r"worker 0 has shape \(\), ring_all_reduce needs an axis to cut"):
        ring_all_reduce(np.ones(3))
