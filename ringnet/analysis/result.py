"""The result of one run: a row of numbers, tables, the verdict on the sum, and what a person should know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ringnet.analysis import metrics
from ringnet.analysis.bounds import collective_bound_s, schedule_bound_s
from ringnet.analysis.closed_form import closed_form_s
from ringnet.analysis.html import result_html
from ringnet.analysis.queues import queue_frame
from ringnet.analysis.states import state_frame
from ringnet.collectives import Schedule
from ringnet.engines.trace import PATH_PARTS, Trace, Workers
from ringnet.networks import Network

if TYPE_CHECKING:
    from ringnet.analysis.verification import Verdict

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One run as the engines see it: what moved over what, and what came of it.

    ``offered`` is the network as it is for transfers of any size, where ``network`` is that of this run's sizes;
    ``traffic`` names what else was on the links, beside other jobs.
    """

    schedule: Schedule
    network: Network
    workers: Workers
    chunk_bytes: NDArray[np.int64]
    trace: Trace
    offered: Network | None = None
    traffic: tuple[str, ...] = ()

    @property
    def alone(self) -> bool:
        """Whether nothing else was on the links."""
        return self.trace.until_s is None

    @property
    def link_bytes(self) -> NDArray[np.int64]:
        """What this run alone put on each link."""
        if self.alone:
            return np.asarray(self.trace.links["bytes"])
        return metrics.crossing_bytes(self.schedule, self.network, self.chunk_bytes)


@dataclass(frozen=True)
class Result:
    """What one run means.

    Parameters
    ----------
    summary : dict
        The row of ``summary.csv``: values by column, None for an empty cell.
    links, workers : pandas.DataFrame
        One row per link, and per worker.
    transfers : pandas.DataFrame or None
        One row per transfer; None where they were too many to be kept.
    states : pandas.DataFrame or None
        The whole buffer of every worker after every step, for runs small enough to be read.
    verdict : Verdict
        Whether the sum is right, and how that is known.
    notes : tuple of str
        What a person should know to read the numbers.
    outputs : callable
        Returns the verified results: a list with one array, or one array per worker for reduce-scatter.
    jobs : pandas.DataFrame or None
        One row per job, the scenario's own first, where there are several.
    queues : pandas.DataFrame or None
        How many transfers waited for the links with most queueing, over time; None where nothing waited.
    about : tuple of str
        Those of the notes that say what the network was taken to be, in a sweep too.
    """

    summary: Row
    links: pd.DataFrame
    workers: pd.DataFrame
    transfers: pd.DataFrame | None
    states: pd.DataFrame | None
    verdict: Verdict
    notes: tuple[str, ...]
    outputs: Callable[[], list[NDArray[Any]]]
    jobs: pd.DataFrame | None = None
    queues: pd.DataFrame | None = None
    about: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What the time is made of, in words."""
        shares = {part: self.summary[f"{part}_share"] for part in PATH_PARTS}
        return metrics.in_words(shares) if shares["latency"] is not None else "nothing moved"

    def __repr__(self) -> str:
        row = self.summary
        return f"<Result {row['name']}: {row['makespan_s']:.6g} s, {self.sentence}, sum_ok={row['sum_ok']}>"

    def _repr_html_(self) -> str:
        """Show the answer as a table in a notebook."""
        return result_html(self.summary, self.sentence, self.notes)


def summarise(run: Run, labels: Mapping[str, Any], verdict: Verdict) -> Row:
    """Return the row of ``summary.csv``.

    Parameters
    ----------
    run : Run
    labels : mapping
        What the scenario says and the run does not: ``name, message_bytes, dtype, reduce, payload, seed``; and of
        measured links ``is_beyond``.
    verdict : Verdict
    """
    schedule, network = run.schedule, run.network
    links = metrics.link_frame(run.trace, network)
    latency_s = metrics.mean_latency_s(schedule, network, run.chunk_bytes)
    slowest = metrics.slowest_links(links.assign(latency_s=latency_s))
    return {
        "name": labels["name"],
        "collective": schedule.collective,
        "algorithm": schedule.algorithm,
        "n_workers": schedule.n_workers,
        **{key: labels[key] for key in ("message_bytes", "dtype", "reduce")},
        "topology": network.topology,
        "switching": network.switching,
        "sharing": labels["sharing"],
        "sends": run.workers.sends,
        "engine": run.trace.engine,
        **{key: labels[key] for key in ("payload", "seed")},
        "n_transfers": run.trace.n_transfers,
        **_times(run, labels["message_bytes"]),
        **_traffic(run, labels["message_bytes"]),
        "slowest_link": links["link"][slowest[0]] if slowest else None,
        "slowest_link_utilisation": float(links["utilisation"][slowest[0]]) if slowest else None,
        "n_slowest_links": len(slowest) or None,
        "longest_queue": int(links["longest_queue"].max()) if len(links) else 0,
        "waiting_s_max": float(run.trace.workers["waiting_s"].max()),
        "verified_elements": verdict.verified_elements,
        "max_abs_error": verdict.max_abs_error,
        "max_error_share": verdict.max_error_share,
        "workers_agree": verdict.workers_agree,
        "sum_ok": verdict.sum_ok,
        "error": None,
        **{key: labels[key] for key in ("is_beyond",) if key in labels},
    }


def _times(run: Run, message_bytes: int) -> Row:
    schedule, makespan_s = run.schedule, metrics.makespan_s(run.trace)
    start_s = float(run.trace.workers["start_s"].min())
    collective_s = collective_bound_s(schedule, run.offered or run.network, run.chunk_bytes)
    # With one worker, or without latency and bytes, nothing takes time: bandwidths and shares are empty, not 0/0.
    timed = schedule.n_workers > 1 and makespan_s > 0
    algbw = message_bytes / makespan_s if timed else None
    shares = metrics.path_shares(run.trace) if timed else {}
    return {
        "makespan_s": makespan_s,
        "algbw_Bps": algbw,
        "busbw_Bps": algbw and algbw * metrics.BUS_FACTORS[schedule.collective](schedule.n_workers),
        "closed_form_s": closed_form_s(schedule, run.network, run.workers, run.chunk_bytes)
        if run.alone
        else None,
        "schedule_bound_s": schedule_bound_s(run.link_bytes, run.network, start_s) if timed else None,
        "collective_bound_s": collective_s if timed else None,
        "bound_share": collective_s / makespan_s if timed else None,
        **{f"{part}_share": shares.get(part) for part in PATH_PARTS},
    }


def _traffic(run: Run, message_bytes: int) -> Row:
    n_workers = run.schedule.n_workers
    expected = message_bytes * metrics.BUS_FACTORS[run.schedule.collective](n_workers)
    return {
        "bytes_sent_per_worker": int(run.trace.workers["sent_bytes"].max()),
        "expected_bytes_per_worker": expected,
    }


def make_result(
    run: Run,
    labels: Mapping[str, Any],
    verdict: Verdict,
    outputs: Callable[[], list[NDArray[Any]]],
    first: list[NDArray[Any]] | None = None,
    notes: tuple[str, ...] = (),
    *,
    others: Sequence[tuple[Run, Mapping[str, Any], Verdict]] = (),
    about: tuple[str, ...] = (),
) -> Result:
    """Put all that one run means together; of other jobs, what they were, what is said of them, and their verdicts.

    ``about`` are notes on what the network was taken to be.
    ``first`` holds the buffer of every worker at the start, shape (n_elements,) each, where the states are wanted;
    ``notes`` come before the verdict's own.
    """
    trace = run.trace
    runs = [(run, labels, verdict), *others]
    by_job = {said["name"]: one.link_bytes for one, said, _ in runs} if not run.alone else None
    jobs = _job_frame(runs) if others else None
    owners = [*(said["name"] for _, said, _ in runs), *dict.fromkeys(run.traffic)]
    verdict = _joined(runs)
    states = None if first is None or trace.values is None else state_frame(run.schedule, trace, first)
    return Result(
        summary=summarise(run, labels, verdict),
        links=metrics.link_frame(trace, run.network, by_job),
        workers=metrics.worker_frame(trace, run.network.places),
        transfers=None if trace.transfers is None else pd.DataFrame(trace.transfers),
        states=states,
        verdict=verdict,
        notes=(*about, *notes, *_notes(run), *verdict.notes),
        about=about,
        outputs=outputs,
        jobs=jobs,
        queues=None if trace.waits is None else queue_frame(trace.waits, run.network.names, owners),
    )


def _joined(runs: Sequence[tuple[Run, Mapping[str, Any], Verdict]]) -> Verdict:
    """Return the verdict of the first run, unless it is right and that of another is not."""
    first = runs[0][2]
    for _, labels, verdict in runs[1:]:
        if verdict.sum_ok is False and first.sum_ok is not False:
            note = f"the wrong sum is that of {labels['name']}"
            return replace(first, sum_ok=False, mismatch=verdict.mismatch, notes=(*first.notes, note))
    return first


#: Columns of a job that are those of a summary.
JOB_COLUMNS = (
    "collective", "algorithm", "n_workers", "message_bytes", "makespan_s", "algbw_Bps", "busbw_Bps",
    "schedule_bound_s", "collective_bound_s", "bound_share", "latency_share", "bandwidth_share", "queueing_share",
    "waiting_share", "overhead_share", "reducing_share", "verified_elements", "max_abs_error", "workers_agree",
    "sum_ok",
)  # fmt: skip


def _job_frame(runs: Sequence[tuple[Run, Mapping[str, Any], Verdict]]) -> pd.DataFrame:
    rows = []
    for run, labels, verdict in runs:
        row, workers = summarise(run, labels, verdict), run.trace.workers
        ends = {"start_s": float(workers["start_s"].min()), "end_s": float(workers["end_s"].max())}
        rows.append({"job": labels["name"], **ends, **{name: row[name] for name in JOB_COLUMNS}})
    return pd.DataFrame(rows, dtype=object)


def _notes(run: Run) -> list[str]:
    notes = []
    if run.trace.waits is None:
        notes.append("queues over time are left out: more transfers waited than are kept")
    if run.trace.transfers is not None:
        return notes
    return [*notes, f"transfer rows are left out: {run.trace.n_transfers:,} are more than are kept unasked"]
