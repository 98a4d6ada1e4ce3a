"""The buffers of all workers after every step, from what each transfer left behind: for worked examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ringnet.collectives import Schedule
from ringnet.engines.trace import Trace


def state_frame(schedule: Schedule, trace: Trace, first: list[NDArray[Any]]) -> pd.DataFrame:
    """Return the whole buffer of every worker at the start and after every step.

    Parameters
    ----------
    schedule : Schedule
    trace : Trace
        With ``transfers`` and ``values``.
    first : list of ndarray, shape (n_elements,)
        Buffer of each worker at the start.

    Returns
    -------
    pandas.DataFrame
        Columns ``phase, step, worker, e0, e1, ...``; phase ``start`` for the rows before the first step.
    """
    assert trace.values is not None
    buffers = [buffer.copy() for buffer in first]
    sizes = schedule.chunk_sizes(len(first[0]))
    starts = ((np.cumsum(sizes) - sizes) % max(1, len(first[0]))).tolist()
    rows: list[tuple[Any, ...]] = [("start", None, worker, *buffer) for worker, buffer in enumerate(buffers)]
    values = iter(trace.values)
    for step in schedule.steps():
        for dst, chunk in zip(step.dst.tolist(), step.chunk.tolist(), strict=True):
            value = next(values)
            buffers[dst][starts[chunk] : starts[chunk] + len(value)] = value
        rows += [(step.phase, step.step, worker, *buffer) for worker, buffer in enumerate(buffers)]
    names = [f"e{element}" for element in range(len(first[0]))]
    return pd.DataFrame(rows, columns=["phase", "step", "worker", *names]).astype({"step": "Int64"})
