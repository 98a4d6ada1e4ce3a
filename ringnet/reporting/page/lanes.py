"""Of more transfers than a browser draws, who was sending when, as shares of time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ringnet.array_types import FloatArray, IntArray
from ringnet.reporting.page.packing import Packer

#: Rows and spans of time of the picture; of more workers, neighbours share a row.
MOST_ROWS, N_SPANS = 512, 1000
#: Phases that are told apart; what comes after them is shown with the last.
MOST_PHASES = 4


def lanes(transfers: pd.DataFrame, packer: Packer) -> dict[str, Any]:
    """Pack shares of time, from 0 to 255, by phase, row and span.

    Parameters
    ----------
    transfers : DataFrame
        At least one, all times finite.
    packer : Packer
    """
    n_nodes = int(transfers["src"].max()) + 1
    each = -(-n_nodes // MOST_ROWS)
    n_rows, end_s = -(-n_nodes // each), float(transfers["applied_s"].max()) or 1.0
    phases = list(dict.fromkeys(transfers["phase"]))
    number = transfers["phase"].map({name: min(at, MOST_PHASES - 1) for at, name in enumerate(phases)})
    shares = []
    for phase in range(min(len(phases), MOST_PHASES)):
        rows = transfers[(number == phase).to_numpy()]
        begun, ended = (
            rows[name].to_numpy(np.float64) * (N_SPANS / end_s) for name in ("started_s", "sent_s")
        )
        busy = covered(rows["src"].to_numpy(np.int64) // each, begun, ended, (n_rows, N_SPANS))
        shares.append(np.clip(np.ceil(busy / each * 255), 0, 255).astype(np.int64))
    return {
        "transfers": len(transfers),
        "end_s": end_s,
        "each": each,
        "rows": n_rows,
        "spans": N_SPANS,
        "phases": [str(name) for name in phases[:MOST_PHASES]],
        "shares": packer.add(np.concatenate([share.ravel() for share in shares])),
    }


def covered(row: IntArray, begun: FloatArray, ended: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Return by how much intervals cover each cell of a row, added up.

    Parameters
    ----------
    row : ndarray of int64, shape (n_intervals,)
    begun, ended : ndarray, shape (n_intervals,)
        In cells.
    shape : (n_rows, n_cells)

    Examples
    --------
    >>> covered(np.array([0, 0]), np.array([0.5, 2.0]), np.array([2.25, 2.5]), (1, 3)).tolist()
    [[0.5, 1.0, 0.75]]
    """
    n_rows, n_cells = shape
    # How much lies before each edge, summed over the intervals that have begun: a difference gives each cell its part.
    before = np.zeros((n_rows, n_cells + 2))
    for ends, sign in ((begun, 1.0), (ended, -1.0)):
        cell = np.clip(np.floor(ends).astype(np.int64), 0, n_cells - 1)
        np.add.at(before, (row, cell), sign * (cell + 1 - ends))
        np.add.at(before, (row, cell + 1), sign * (ends - cell))
    found: FloatArray = np.cumsum(before, axis=1)[:, :n_cells]
    return np.maximum(found, 0.0)
