"""Algorithms on a network that draws its numbers: many runs of each at each size, all under the same luck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ringnet.analysis.bounds import Cuts, peak_bandwidths
from ringnet.analysis.metrics import BUS_FACTORS, crossing_bytes
from ringnet.analysis.spread import difference, figures
from ringnet.collectives.proof import check
from ringnet.errors import Fault, InputError
from ringnet.payload.dtypes import DTYPES
from ringnet.payload.sources import message_elements
from ringnet.reporting.columns import OF_REPEATED_COMPARISONS
from ringnet.runs.engine import repeats_by
from ringnet.runs.parts import RunParts, build
from ringnet.runs.repeat import times_of_runs
from ringnet.runs.worker_parts import launches
from ringnet.scenario import Scenario
from ringnet.scenario.drawn import what_is_drawn

#: The column in which the times of all runs go from a part of a comparison to the whole.
TIMES = "times_s"


def require_runs(scenario: Scenario) -> None:
    """Refuse to compare what is drawn by a single run of each.

    Raises
    ------
    InputError
        The scenario does not say how many runs there are to be.
    """
    if not what_is_drawn(scenario):
        return
    if scenario.until is not None:
        message = "a comparison has as many runs of each algorithm"
        raise InputError(Fault(message, "until", right="repeat: 200"))
    if scenario.repeat is None:
        message = "something is drawn, and one run of each algorithm would say little"
        raise InputError(Fault(message, "repeat", right="repeat: 200"))


def rows_of_many(label: str, sizes: Sequence[int], scenario: Scenario) -> list[dict[str, Any]]:
    """Return the rows of one algorithm: of each size the mean of all runs, and their times for `told_apart`."""
    parts, dtype = build(scenario, None), DTYPES[scenario.dtype]
    check(parts.schedule)
    bounded = bool(np.isfinite(peak_bandwidths(parts.network)).all())
    cuts = Cuts(parts.network, float(parts.workers.start_s.min())) if bounded else None
    rows = []
    for size in sizes:
        chunk_bytes = parts.schedule.chunk_sizes(message_elements(size, dtype)) * dtype.itemsize
        workers = replace(parts.workers, launch_s=launches(scenario, size))
        one = replace(parts, workers=workers, chunk_bytes=chunk_bytes, message_bytes=size)
        bound_s = None if cuts is None else cuts.bound(parts.schedule, chunk_bytes).seconds
        own = scenario.model_copy(update={"message_bytes": size})
        rows.append(_row(label, one, times_of_runs(own, range(scenario.repeat or 1), one), bound_s))
    return rows


def _row(label: str, parts: RunParts, times_s: np.ndarray, bound_s: float | None) -> dict[str, Any]:
    schedule, network, mean_s = parts.schedule, parts.network, float(times_s.mean())
    timed = schedule.n_workers > 1 and mean_s > 0
    algbw = parts.message_bytes / mean_s if timed else None
    link_bytes = crossing_bytes(schedule, network, parts.chunk_bytes)
    # By the means of what links draw: which of them is busiest differs from run to run.
    busiest = int((link_bytes / network.bandwidth_Bps).argmax()) if len(link_bytes) else 0
    n_bytes = int(link_bytes[busiest]) if len(link_bytes) else 0
    return {
        "n_workers": schedule.n_workers,
        "message_bytes": parts.message_bytes,
        "algorithm": label,
        "makespan_s": mean_s,
        "algbw_Bps": algbw,
        "busbw_Bps": algbw and algbw * BUS_FACTORS[schedule.collective](schedule.n_workers),
        "bound_share": bound_s / mean_s if timed and bound_s is not None else None,
        "busiest_link": network.names[busiest] if n_bytes else None,
        "busiest_link_bytes": n_bytes,
        "engine": repeats_by(parts),
        TIMES: times_s.tolist(),
    }


def told_apart(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of a comparison with how well each mean is known, and how far it is behind the fastest.

    Parameters
    ----------
    table : DataFrame
        With ``n_workers, message_bytes, makespan_s`` and the times of all runs, in their order.
    """
    found = table.reset_index(drop=True)
    added: list[tuple[float, ...]] = []
    fastest = found.groupby(["n_workers", "message_bytes"])["makespan_s"].transform("idxmin")
    for times, first in zip(found[TIMES], fastest, strict=True):
        mean, behind = figures(times)["mean"], difference(np.array(times), np.array(found[TIMES][first]))
        added.append((len(times), mean.low, mean.high, *behind))
    return found.drop(columns=TIMES).join(pd.DataFrame(added, columns=[*OF_REPEATED_COMPARISONS]))
