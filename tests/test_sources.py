from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringnet.errors import InputError
from ringnet.payload import (
    DTYPES,
    ArraySource,
    FileSource,
    RampSource,
    RandomSource,
    Source,
    message_elements,
)

EVERY_DTYPE = pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
FLOATS = [DTYPES[name] for name in ("float64", "float32", "float16", "bfloat16")]
HUGE = 2**45


def read_all(source: Source) -> list[list[float]]:
    return [source.read(worker, 0, source.n_elements).tolist() for worker in range(source.n_workers)]


# ---------------------------------------------------------------------------------------------- random


@EVERY_DTYPE
@pytest.mark.parametrize("for_product", [False, True])
def test_any_block_can_be_made_again(dtype: np.dtype, for_product: bool) -> None:
    source = RandomSource(3, 1000, dtype, 5, for_product=for_product)
    whole = source.read(2, 0, 1000)
    assert whole.dtype == dtype
    assert source.read(2, 137, 491).tobytes() == whole[137:491].tobytes()


@EVERY_DTYPE
def test_values_depend_on_seed_worker_and_element_alone(dtype: np.dtype) -> None:
    small, large = RandomSource(2, 100, dtype, 5), RandomSource(64, HUGE, dtype, 5)
    assert small.read(1, 0, 100).tobytes() == large.read(1, 0, 100).tobytes()


def test_scattered_elements_are_those_of_the_whole() -> None:
    source = RandomSource(4, HUGE, DTYPES["float32"], 1)
    index = np.array([0, 3, 4, 70_000, 2**32 + 5, 2**40])
    outs = list(np.empty((2, len(index)), np.float32))
    source.fill(index, [3, 0], outs)
    for worker, out in zip([3, 0], outs, strict=True):
        assert out.tolist() == [source.read(worker, e, e + 1)[0] for e in index.tolist()]


def test_seeds_workers_and_distant_elements_differ() -> None:
    def read(seed: int, worker: int, start: int) -> bytes:
        return RandomSource(2, HUGE, DTYPES["float32"], seed).read(worker, start, start + 50).tobytes()

    places = [(0, 0, 0), (1, 0, 0), (2**80, 0, 0), (0, 1, 0), (0, 0, 2**32), (0, 0, 2**33), (0, 0, 2**16)]
    assert len({read(*place) for place in places}) == len(places)


def test_the_numbers_of_a_seed_never_change() -> None:
    source = RandomSource(2, 3, DTYPES["float32"], 42)
    assert read_all(source) == [
        [0.41910186409950256, 0.3418412208557129, 0.9808770418167114],
        [0.4512125551700592, -0.3649391531944275, 0.36262285709381104],
    ]
    assert read_all(RandomSource(1, 2, DTYPES["float64"], 42)) == [[0.4191019079143982, 0.34184124548982386]]


@EVERY_DTYPE
def test_random_values_are_spread_over_their_range(dtype: np.dtype) -> None:
    values = RandomSource(1, 20_000, dtype, 3).read(0, 0, 20_000).astype(float)
    low, high = {"int8": (-8, 7), "uint8": (0, 15), "int32": (-(2**20), 2**20 - 1)}.get(dtype.name, (-1, 1))
    low, high = (-(2**20), 2**20 - 1) if dtype.name == "int64" else (low, high)
    width = high - low
    assert low <= values.min() < low + width / 100
    assert high - width / 100 < values.max() <= high
    assert abs(values.mean() - (low + high) / 2) < width / 50


@EVERY_DTYPE
def test_workers_and_neighbours_are_uncorrelated(dtype: np.dtype) -> None:
    source = RandomSource(8, 20_000, dtype, 3)
    rows = np.array([source.read(worker, 0, 20_000).astype(float) for worker in range(8)])
    apart = np.corrcoef(rows) - np.eye(8)
    assert np.abs(apart).max() < 0.04  # 5.6 standard deviations
    assert abs(np.corrcoef(rows[0, 1:], rows[0, :-1])[0, 1]) < 0.04


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_order_of_additions_shows(dtype: np.dtype) -> None:
    source = RandomSource(3, 10_000, dtype, 3)
    a, b, c = (source.read(worker, 0, 10_000) for worker in range(3))
    assert ((a + b) + c != a + (b + c)).mean() > 0.05


def test_float64_uses_all_its_bits() -> None:
    for for_product in (False, True):
        values = RandomSource(1, 1000, DTYPES["float64"], 3, for_product=for_product).read(0, 0, 1000)
        low_bits = values.view(np.uint64) & np.uint64(0xFF)
        assert len(np.unique(low_bits)) > 200


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_factors_stay_around_one(dtype: np.dtype) -> None:
    values = RandomSource(1, 20_000, dtype, 3, for_product=True).read(0, 0, 20_000).astype(float)
    assert 0.67 < np.abs(values).min() < 0.69
    assert 1.35 < np.abs(values).max() < 1.37
    assert abs(np.log(np.abs(values)).mean()) < 0.01
    assert 0.45 < (values < 0).mean() < 0.55


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "int64"])
def test_integer_factors_are_odd_and_never_one(name: str) -> None:
    values = RandomSource(1, 1000, DTYPES[name], 3, for_product=True).read(0, 0, 1000)
    assert np.unique(values).tolist() == [3, 5, 7, 9]


# ------------------------------------------------------------------------------------------------ ramp


@EVERY_DTYPE
def test_ramp_is_readable(dtype: np.dtype) -> None:
    source = RampSource(2, 11, dtype)
    assert read_all(source) == [
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2],
        [10, 20, 30, 40, 50, 60, 70, 80, 90, 10, 20],
    ]


def test_ramp_tells_later_workers_apart() -> None:
    source = RampSource(30, 2, DTYPES["int32"])
    assert read_all(source)[3:6] == [[1001, 1002], [1010, 1020], [1100, 1200]]
    assert len({tuple(row) for row in read_all(source)}) == 30


# -------------------------------------------------------------------------------------- arrays in memory


def test_arrays_are_read_in_any_layout_and_never_written() -> None:
    array = np.arange(24.0).reshape(4, 6)
    before = array.copy()
    layouts = [array, np.asfortranarray(array), np.repeat(array, 2, axis=1)[:, ::2], array.astype(">f8")]
    source = ArraySource(layouts)
    assert (source.shape, source.n_elements, source.dtype) == ((4, 6), 24, np.dtype(np.float64))
    for worker in range(len(layouts)):
        assert source.read(worker, 0, 24).tolist() == list(range(24))
        assert source.read(worker, 5, 9).tolist() == [5, 6, 7, 8]
    source.read(0, 0, 24)[:] = -1
    assert (array == before).all()


def test_arrays_with_a_leading_worker_axis() -> None:
    assert read_all(ArraySource(np.array([[1, 2], [3, 4]]))) == [[1, 2], [3, 4]]


def test_every_array_that_does_not_fit_is_named() -> None:
    with pytest.raises(InputError) as caught:
        ArraySource([np.zeros(3), np.zeros(4), np.zeros(3, np.float32), np.zeros(3, complex)])
    said = [(fault.message[:21], fault.value) for fault in caught.value.faults]
    assert said == [
        ("the array of worker 1", "float64 (4,)"),
        ("the array of worker 2", "float32 (3,)"),
        ("the array of worker 3", "complex128"),
    ]


def test_no_arrays() -> None:
    with pytest.raises(InputError, match="no arrays"):
        ArraySource([])


# ------------------------------------------------------------------------------------------------ files


def saved(folder: Path, *arrays: np.ndarray) -> list[Path]:
    paths = [folder / f"{k}.npy" for k in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        np.save(path, array)
    return paths


@EVERY_DTYPE
def test_files_are_read_as_they_were_saved(tmp_path: Path, dtype: np.dtype) -> None:
    arrays = np.arange(24).reshape(2, 3, 4).astype(dtype)
    source = FileSource(saved(tmp_path, *arrays), dtype)
    assert (source.n_workers, source.shape, source.dtype) == (2, (3, 4), dtype)
    assert read_all(source) == [list(range(12)), list(range(12, 24))]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["<f4", ">f4"])
def test_byte_order_and_layout_do_not_matter(tmp_path: Path, order: str, kind: str) -> None:
    arrays = [np.array(np.arange(12.0).reshape(3, 4) + k, kind, order=order) for k in (0, 100)]
    source = FileSource(saved(tmp_path, *arrays))
    assert source.dtype == np.dtype(np.float32)
    assert source.read(1, 0, 12).tolist() == list(range(100, 112))
    assert source.read(1, 3, 7).tolist() == [103, 104, 105, 106]
    out = np.empty(3, np.float32)
    source.fill(np.array([1, 6, 11]), [1], [out])
    assert out.tolist() == [101, 106, 111]


@pytest.mark.parametrize("order", ["C", "F"])
def test_one_file_with_a_leading_worker_axis(tmp_path: Path, order: str) -> None:
    (path,) = saved(tmp_path, np.array(np.arange(24).reshape(2, 3, 4), order=order))
    source = FileSource.stacked(path)
    assert (source.n_workers, source.shape) == (2, (3, 4))
    assert read_all(source) == [list(range(12)), list(range(12, 24))]
    assert source.read(1, 5, 7).tolist() == [17, 18]


def test_empty_arrays_are_arrays(tmp_path: Path) -> None:
    source = FileSource(saved(tmp_path, np.zeros((0, 4)), np.zeros((0, 4))))
    assert (source.n_elements, source.read(1, 0, 0).tolist()) == (0, [])


def test_bfloat16_is_asked_for(tmp_path: Path) -> None:
    paths = saved(tmp_path, np.arange(3).astype(DTYPES["bfloat16"]))
    assert read_all(FileSource(paths, DTYPES["bfloat16"])) == [[0, 1, 2]]
    with pytest.raises(InputError, match="V2"):
        FileSource(paths)


def test_every_bad_file_is_named_at_once(tmp_path: Path) -> None:
    good, short, objects, complex_, wide = saved(
        tmp_path, np.zeros(9), np.zeros(9), np.zeros(9), np.zeros(9, complex), np.zeros(9, np.float32)
    )
    short.write_bytes(short.read_bytes()[:-8])
    np.save(objects, np.array([{}], dtype=object), allow_pickle=True)
    text, empty, missing = tmp_path / "text.npy", tmp_path / "empty.npy", tmp_path / "missing.npy"
    text.write_text("1, 2, 3")
    empty.write_bytes(b"")
    with pytest.raises(InputError) as caught:
        FileSource([good, short, objects, complex_, wide, text, empty, missing, tmp_path], DTYPES["float64"])
    said = {Path(fault.file).name: fault.message for fault in caught.value.faults}
    assert "8 bytes are missing" in said.pop("1.npy")
    assert "Python objects" in said.pop("2.npy")
    assert "complex128" in said.pop("3.npy")
    assert "float32, not the float64" in said.pop("4.npy")
    assert "No such file" in said.pop("missing.npy")
    assert "directory" in said.pop(tmp_path.name)
    assert set(said) == {"text.npy", "empty.npy"}


@pytest.mark.parametrize("shape", [(-3,), (2**40, 2**40)])
def test_a_header_that_promises_too_much(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "big.npy"
    with path.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(InputError, match=r"its shape is|bytes are missing"):
        FileSource([path])


def test_files_must_fit_the_first(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        FileSource(saved(tmp_path, np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((2, 3), np.int8)))
    assert [fault.value for fault in caught.value.faults] == ["float64 (3, 2)", "int8 (2, 3)"]
    assert all("float64 (2, 3)" in fault.right for fault in caught.value.faults)


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_a_worker_axis_is_needed(tmp_path: Path, shape: tuple[int, ...]) -> None:
    (path,) = saved(tmp_path, np.zeros(shape))
    with pytest.raises(InputError, match="leading worker axis"):
        FileSource.stacked(path)


def test_no_files() -> None:
    with pytest.raises(InputError, match="no files"):
        FileSource([])


def test_a_stacked_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        FileSource.stacked(tmp_path / "none.npy")


@pytest.mark.parametrize("index", [[7, 8], [0, 8]], ids=["in one go", "scattered"])
def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path, index: list[int]) -> None:
    (path,) = saved(tmp_path, np.zeros(9))
    source = FileSource([path])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match="cannot be read any more"):
        source.fill(np.array(index), [0], [np.empty(2)])


# ---------------------------------------------------------------------------------------------- message


def test_message_elements() -> None:
    assert message_elements(0, DTYPES["float64"]) == 0
    assert message_elements(2**30, DTYPES["bfloat16"]) == 2**29


def test_a_message_that_the_element_does_not_divide() -> None:
    with pytest.raises(InputError, match=r"not a whole number of float32 elements, 4 bytes each; .*8 B or 12 B"):
        message_elements(10, DTYPES["float32"])
