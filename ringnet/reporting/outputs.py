"""The reduced arrays on disk: one ``.npy`` where all workers hold the same, else one per worker."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ringnet.reporting.folder import written_file

AnyArray: TypeAlias = "NDArray[Any]"


def save_outputs(target: str | Path, arrays: Sequence[AnyArray]) -> tuple[Path, ...]:
    """Save arrays as ``.npy``, each file whole or not at all; files of the same name are replaced.

    Parameters
    ----------
    target : path
        A folder, made if need be, that gets ``result.npy`` for one array, ``worker-0.npy``, ... for several.
        A name that ends in ``.npy`` is the file itself; several go to ``NAME-worker-0.npy``, ... beside it.
    arrays : sequence of ndarray
        One where every worker holds the same; one per worker, in their order, for a reduce-scatter.

    Returns
    -------
    tuple of Path
        The files, in the order of the arrays.

    Raises
    ------
    ResultsError
        A file that cannot be written.

    Notes
    -----
    NumPy has no bfloat16 of its own: its ``.npy`` holds two raw bytes an element, to be read by
    ``np.load(path).view(ml_dtypes.bfloat16)``.
    """
    target = Path(target)
    paths = [target.parent / name for name in _names_beside(target, len(arrays))]
    if target.suffix != ".npy":
        paths = [target / name for name in _names(len(arrays))]
    with ExitStack() as stack:  # every file is written before the first is renamed
        for path, array in zip(paths, arrays, strict=True):
            _save(array, stack.enter_context(written_file(path)))
    return tuple(paths)


def write_outputs(folder: Path, arrays: Sequence[AnyArray]) -> list[str]:
    """Save arrays into a folder that is itself being written whole; return the names of the files."""
    names = _names(len(arrays))
    for name, array in zip(names, arrays, strict=True):
        _save(array, folder / name)
    return names


def _save(array: AnyArray, path: Path) -> None:
    with path.open("wb") as file:  # np.save adds .npy to a name, not to an open file
        np.save(file, array, allow_pickle=False)


def _names(n_arrays: int) -> list[str]:
    """Names that sort in the order of the workers.

    >>> _names(1), _names(2), _names(11)[-2:]
    (['result.npy'], ['worker-0.npy', 'worker-1.npy'], ['worker-09.npy', 'worker-10.npy'])
    """
    if n_arrays == 1:
        return ["result.npy"]
    width = len(str(n_arrays - 1))
    return [f"worker-{worker:0{width}d}.npy" for worker in range(n_arrays)]


def _names_beside(target: Path, n_arrays: int) -> list[str]:
    return [target.name] if n_arrays == 1 else [f"{target.stem}-{name}" for name in _names(n_arrays)]
