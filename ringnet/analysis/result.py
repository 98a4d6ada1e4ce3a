"""One run becomes a row of numbers, tables, the verdict on the sum, and what a person should know to read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from ringnet.analysis.answer import TOLD_SHARE, made_of_words, result_html
from ringnet.analysis.blame import Again, ByPath, SlowestLinks, slowest_links
from ringnet.analysis.bounds import Bound, collective_bound, peak_bandwidths, schedule_bound_s
from ringnet.analysis.closed_form import closed_form_s
from ringnet.analysis.critical_path import CriticalPath, critical_path, why_no_path
from ringnet.analysis.derivatives import Derivatives, derivatives_along, why_no_derivatives
from ringnet.analysis.frames import (
    Table,
    as_frame,
    link_table,
    of_rows,
    path_table,
    queue_table,
    state_table,
    worker_table,
)
from ringnet.analysis.metrics import (
    BUS_FACTORS,
    busiest_workers,
    crossing_bytes,
    late_start,
    makespan_s,
    path_shares,
)
from ringnet.analysis.path_records import NONE
from ringnet.analysis.routes import route_table
from ringnet.analysis.upgrades import (
    IN_WORDS,
    ROUNDING,
    LinksInUse,
    Upgrade,
    estimated_gain_s,
    worker_costs,
    worker_upgrade,
)
from ringnet.analysis.utilisation import utilisation_table
from ringnet.analysis.verification import Verdict
from ringnet.analysis.worker_time import worker_time
from ringnet.array_types import Array, FloatArray, IntArray
from ringnet.collectives import Schedule
from ringnet.engines.trace import OWN_QUEUEING, PATH_PARTS, Columns, Trace, Workers
from ringnet.errors import some_and_more
from ringnet.networks import (
    Behaviour,
    BySize,
    DrawnBandwidth,
    DrawnLatency,
    FailsOver,
    Lossy,
    Network,
    OverTime,
    TroubledDraws,
    beyond,
)
from ringnet.units import format_seconds

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

#: Transfers that take a quarter of a second at most where they go whole, and not in the slots of a window.
CHEAP_TRANSFERS = 25_000
#: Columns of the summary that are fields of `Verdict`.
_OF_THE_VERDICT = ("verified_elements", "max_abs_error", "max_error_share", "workers_agree", "sum_ok")


@dataclass(frozen=True)
class Run:
    """One run: what moved over what, what came of it, and whether the sum is right.

    Parameters
    ----------
    schedule : Schedule
    network : Network
        As it is for the sizes of this run.
    workers : Workers
    chunk_bytes : ndarray of int64, shape (n_chunks,)
    trace : Trace
    labels : mapping
        What the scenario says and the run does not: ``name, message_bytes, dtype, reduce, sharing, payload, seed``;
        of measured links ``is_beyond`` and ``equivalent``; of parameters that were read off the network ``shape``;
        of numbers that are drawn ``drawn``.
    verdict : Verdict
    offered : Network, optional
        As it is for transfers of any size, where that differs.
    traffic : tuple of str
        Names of what else was on the links, beside other jobs.
    again : callable, optional
        Simulates the run again with other links: what the slowest of them are is confirmed by it.
    begun_s : float, optional
        When it began, where attempts before it had failed: its workers have waited for that since they started.
    """

    schedule: Schedule
    network: Network
    workers: Workers
    chunk_bytes: IntArray
    trace: Trace
    labels: Mapping[str, Any]
    verdict: Verdict
    offered: Network | None = None
    traffic: tuple[str, ...] = ()
    again: Again | None = None
    begun_s: float | None = None

    @cached_property
    def by_link(self) -> Table:
        """One row per link, as `link_table` has it without jobs."""
        return link_table(self.trace, self.network)

    @property
    def alone(self) -> bool:
        """Whether nothing else was on the links."""
        return self.trace.until_s is None

    @cached_property
    def spent(self) -> Columns:
        """What each worker did with its time, as `worker_time` has it."""
        return worker_time(self.trace, self.network, self.workers.with_switches(self.schedule, self.network))

    @cached_property
    def path(self) -> CriticalPath | None:
        """The path that ended last, walked once; None where it cannot be."""
        return self._walked(behind_others=True)

    @property
    def path_of_own(self) -> CriticalPath | None:
        """The same, but where it waited behind transfers of another worker it goes on with what waited."""
        return self._walked(behind_others=False)

    def _walked(self, *, behind_others: bool) -> CriticalPath | None:
        if why_no_path(self.network, self.workers, self.trace) is not None or self.schedule.n_workers == 1:
            return None
        parts = self.schedule, self.network, self.workers, self.chunk_bytes, self.trace
        return critical_path(*parts, behind_others=behind_others)

    @cached_property
    def slowest(self) -> SlowestLinks | None:
        """The links that hold it back; None where that is not looked for."""
        known: list[type[Behaviour]] = [BySize, OverTime, Lossy, FailsOver]
        if beyond(self.network, known, fair=True, window=True, packets=True) or self.workers.chance:
            return None
        used = LinksInUse(self.network, self.trace.links)
        return slowest_links(used, makespan_s(self.trace), self.again, _by_path(self))

    @property
    def link_bytes(self) -> IntArray:
        """What this run alone put on each link."""
        if self.alone:
            return np.asarray(self.trace.links["bytes"])
        return crossing_bytes(self.schedule, self.network, self.chunk_bytes)


@dataclass(frozen=True, eq=False)
class RunResult:
    """What one run means: what a user finds in `ringnet.Result`, which says of each field what it is, and why.

    Parameters
    ----------
    about : tuple of str
        Those of the notes that say what the network was taken to be, in a sweep too.
    made_from : tuple of Run
        What was simulated, one for each job: tables that a sweep does not need are made of it when they are asked for.
    """

    summary: Row
    verdict: Verdict
    notes: tuple[str, ...]
    outputs: Callable[[], list[Array]]
    tables: Mapping[str, Table] = field(default_factory=dict)
    parameters: dict[str, Array] | None = None
    about: tuple[str, ...] = ()
    made_from: tuple[Run, ...] = ()

    def columns(self, table: str) -> Table | None:
        """Return a table by the name of its file, as `ringnet.analysis.frames` has it; None where there is none."""
        if table not in self._made:
            make = {"routes": self._routes, "path": self._path, "utilisation": self._utilisation}.get(table)
            self._made[table] = self.tables.get(table) if make is None else make()
        return self._made[table]

    @cached_property
    def _made(self) -> dict[str, Table | None]:
        """Tables that a sweep does not need are made when they are first asked for."""
        return {}

    def _routes(self) -> Table | None:
        links = self.columns("links")
        if links is None:
            return None
        jobs = [(run.labels["name"], run.network, run.schedule, run.chunk_bytes) for run in self.made_from]
        return route_table(jobs, links)

    def _path(self) -> Table | None:
        path = self.made_from[0].path if self.made_from else None
        owners = _owners(self.made_from)
        return None if path is None else path_table(path, self.made_from[0].network.names, owners)

    def _utilisation(self) -> Table | None:
        first = self.made_from[0] if self.made_from else None
        return None if first is None else utilisation_table(first.trace, first.network)

    def _as_frame(self, columns: Table, table: str) -> pd.DataFrame:
        """Return the columns of a table as a data frame."""
        return as_frame(columns)

    def _frame(self, table: str) -> pd.DataFrame | None:
        columns = self.columns(table)
        return None if columns is None else self._as_frame(columns, table)

    @cached_property
    def links(self) -> pd.DataFrame:
        """One row per link."""
        return self._as_frame(self.tables["links"], "links")

    @cached_property
    def workers(self) -> pd.DataFrame:
        """One row per worker."""
        return self._as_frame(self.tables["workers"], "workers")

    @cached_property
    def transfers(self) -> pd.DataFrame | None:
        """One row per transfer; None where they were too many to be kept."""
        return self._frame("transfers")

    @cached_property
    def states(self) -> pd.DataFrame | None:
        """The whole buffer of every worker after every step, for runs small enough to be read."""
        return self._frame("states")

    @cached_property
    def jobs(self) -> pd.DataFrame | None:
        """One row per job, the scenario's own first, where there are several."""
        return self._frame("jobs")

    @cached_property
    def runs(self) -> pd.DataFrame | None:
        """One row per run, where it was repeated."""
        return self._frame("runs")

    @cached_property
    def queues(self) -> pd.DataFrame | None:
        """How many transfers waited for the links with most queueing, over time; None where nothing waited."""
        return self._frame("queues")

    @cached_property
    def training(self) -> pd.DataFrame | None:
        """Of a training: one row per step."""
        return self._frame("training")

    @cached_property
    def divergence(self) -> pd.DataFrame | None:
        """Of a training: one row per step and way beside the right one."""
        return self._frame("divergence")

    @cached_property
    def step_states(self) -> pd.DataFrame | None:
        """Of a training: every number of every worker's state, where they are few enough to be read."""
        return self._frame("step_states")

    @cached_property
    def routes(self) -> pd.DataFrame | None:
        """One row per pair of workers that sent anything, with its links; None where there are too many."""
        return self._frame("routes")

    @cached_property
    def path(self) -> pd.DataFrame | None:
        """One row per piece of the path that ended last, walked when it is first asked for; None where it cannot be."""
        return self._frame("path")

    @cached_property
    def utilisation(self) -> pd.DataFrame | None:
        """How busy links were over time, whoever used them; None where that is not known."""
        return self._frame("utilisation")

    @cached_property
    def trouble(self) -> pd.DataFrame | None:
        """What went wrong and what was done about it, one row each; None where nothing does."""
        return self._frame("trouble")

    @property
    def sentence(self) -> str:
        """What the time is made of, in words."""
        if self.summary["latency_share"] is None:
            return "nothing moved"
        return made_of_words(self.summary, self._in_front)

    def _in_front(self) -> str:
        """Name whom the path that ended last queued behind longest, and how many others; nothing where nobody knows."""
        path = self.made_from[0].path if self.made_from else None
        found = {} if path is None else path.queued_behind()
        owners = _owners(self.made_from)
        named = [
            f"worker {worker}" if owner == NONE else owners[owner]
            for worker, owner in found
            if worker is not None or owner != NONE
        ]
        return some_and_more(named, 1)

    def __repr__(self) -> str:
        row = self.summary
        time = format_seconds(row["makespan_s"])
        return f"<Result {row['name']}: {time}, {self.sentence}, sum_ok={row['sum_ok']}>"

    def _repr_html_(self) -> str:
        """Show the answer as a table in a notebook."""
        return result_html(self.summary, self.sentence, self.notes)


def make_result(
    runs: Sequence[Run],
    outputs: Callable[[], list[Array]],
    first: list[Array] | None = None,
    notes: tuple[str, ...] = (),
    about: tuple[str, ...] = (),
) -> RunResult:
    """Put together all that a run means.

    Parameters
    ----------
    runs : sequence of Run
        The run, and after it the other jobs on the same network.
    outputs : callable
        Returns the verified results.
    first : list of ndarray, optional
        The buffer of every worker at the start, shape (n_elements,) each, where the states are wanted.
    notes, about : tuple of str
        What comes before the verdict's own notes; of these, ``about`` is what the network was taken to be.
    """
    run, trace, own = runs[0], runs[0].trace, summarise(runs[0])
    by_job = {one.labels["name"]: one.link_bytes for one in runs} if not run.alone else None
    verdict = _common_verdict(runs)
    links = run.by_link if by_job is None else link_table(trace, run.network, by_job)
    if run.slowest and len(run.slowest.links) > 1:
        links = links | {"is_slowest": np.isin(np.arange(run.network.n_links), run.slowest.links)}
    tables = {
        "links": links,
        "workers": worker_table(trace, run.spent | {OWN_QUEUEING: _own_queueing_s(run)}, run.network.places),
        "transfers": trace.transfers,
        "states": None if first is None or trace.values is None else state_table(run.schedule, trace, first),
        "jobs": _job_table(runs, own) if len(runs) > 1 else None,
        "queues": None if trace.waits is None else queue_table(trace.waits, run.network.names, _owners(runs)),
    }
    return RunResult(
        summary=own | {key: getattr(verdict, key) for key in _OF_THE_VERDICT},
        verdict=verdict,
        notes=(*about, *notes, *_left_out(trace), *verdict.notes),
        outputs=outputs,
        tables={name: table for name, table in tables.items() if table is not None},
        about=about,
        made_from=tuple(runs),
    )


def _owners(runs: Sequence[Run]) -> list[str]:
    """Return the names of the jobs, and after them of other traffic, in the order of their numbers."""
    return [*(one.labels["name"] for one in runs), *(dict.fromkeys(runs[0].traffic) if runs else ())]


def _common_verdict(runs: Sequence[Run]) -> Verdict:
    """Return the verdict of the first run, unless it is right and that of another is not."""
    first = runs[0].verdict
    for other in runs[1:]:
        if other.verdict.sum_ok is False and first.sum_ok is not False:
            note = f"the wrong sum is that of {other.labels['name']}"
            return replace(first, sum_ok=False, mismatch=other.verdict.mismatch, notes=(*first.notes, note))
    return first


def summarise(run: Run) -> Row:
    """Return the row of ``summary.csv``: every column is put there here, and nowhere else."""
    schedule, network, labels, verdict = run.schedule, run.network, run.labels, run.verdict
    links, slowest = run.by_link, run.slowest or SlowestLinks()
    # Of several that change together the first that is as busy as any of them is named.
    named = [*slowest.links]
    busy_s = run.trace.links["busy_s"][named]
    first = named[int((busy_s >= busy_s.max() * (1 - ROUNDING)).argmax())] if named else None
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
        **_times(run),
        "bytes_sent_per_worker": int(run.trace.workers["sent_bytes"].max()),
        "expected_bytes_per_worker": labels["message_bytes"] * BUS_FACTORS[schedule.collective](schedule.n_workers),
        "slowest_link": None if first is None else network.names[first],
        "slowest_link_utilisation": None if first is None else float(links["utilisation"][first]),
        "n_slowest_links": len(slowest.links) or None,
        "slowest_link_change": None if first is None and isnan(slowest.gain_s) else IN_WORDS[slowest.change],
        "slowest_link_gain_s": None if isnan(slowest.gain_s) else slowest.gain_s,
        "slowest_link_by": slowest.by if run.slowest else None,
        "longest_queue": int(links["longest_queue"].max(initial=0)),
        "waiting_s_max": None if np.isnan(run.spent["waiting_s"]).any() else float(run.spent["waiting_s"].max()),
        **{key: getattr(verdict, key) for key in _OF_THE_VERDICT},
        "error": None,
        **_busiest(run),
        **_of_the_window(run),
        **{key: labels[key] for key in ("is_beyond", "equivalent", "shape", "drawn", "moved_share") if key in labels},
    }


def _busiest(run: Run) -> Row:
    """Return the columns on the workers whose processors stand out; of slow ones with what it gains if they are not."""
    workers = busiest_workers(run.trace)
    if not workers:
        return {}
    spent, costs = run.trace.workers, worker_costs(run.workers)
    busy_s = float(spent["overhead_s"][workers[0]] + spent["reducing_s"][workers[0]])
    as_others = worker_upgrade(run.workers, workers, "alike") or Upgrade()
    slow = tuple(
        (worker, like._replace(start_s=costs[worker].start_s))
        for worker, like in as_others.workers
        if like._replace(start_s=costs[worker].start_s) != costs[worker]
    )
    return {
        "busiest_worker": workers[0],
        "n_busiest_workers": len(workers),
        "busiest_worker_share": busy_s / makespan_s(run.trace),
        "busiest_worker_gain_s": _gain_s(run, Upgrade(workers=slow)) if slow else None,
    }


def _of_the_window(run: Run) -> Row:
    """Return the column on what the window costs; nothing where there is none."""
    if run.network.window is None:
        return {}
    whole = run.trace.n_transfers <= CHEAP_TRANSFERS
    return {"window_gain_s": _gain_s(run, Upgrade(without_window=True), is_cheap=whole)}


def _by_path(run: Run) -> ByPath:
    """Return what says what an upgrade gains by the path that ended last, which is walked when it is first asked."""

    @cache
    def found() -> Derivatives | None:
        if why_no_derivatives(run.network, run.workers, run.trace) is not None or run.path is None:
            return None
        return derivatives_along(run.path, run.schedule, run.network)

    def gain_s(upgrade: Upgrade) -> float | None:
        slopes = found()
        return None if slopes is None else estimated_gain_s(upgrade, slopes, run.network, run.workers)

    return gain_s


def _times(run: Run) -> Row:
    schedule, network, total_s = run.schedule, run.network, makespan_s(run.trace)
    start_s = float(run.trace.workers["start_s"].min())
    # Of a bandwidth that may be drawn however large no bound follows.
    bounded = bool(np.isfinite(peak_bandwidths(network)).all())
    bound = (
        collective_bound(schedule, run.offered or network, run.chunk_bytes, run.trace.workers["start_s"])
        if bounded
        else Bound(0.0, "")
    )
    # With one worker, or without latency and bytes, nothing takes time: bandwidths and shares are empty, not 0/0.
    timed = schedule.n_workers > 1 and total_s > 0
    algbw = run.labels["message_bytes"] / total_s if timed else None
    shares, own_queueing_share = _path_shares(run) if timed else ({}, None)
    parts = {f"{part}_share": shares.get(part) for part in PATH_PARTS}
    is_plain = run.alone and run.begun_s is None
    formula_s = closed_form_s(schedule, network, run.workers, run.chunk_bytes) if is_plain else None
    # Where something goes wrong, what a path waits for may be no start.
    late, late_s = late_start(run.trace) if run.begun_s is None and not run.workers.paces else ([], 0.0)
    return {
        "makespan_s": total_s,
        "algbw_Bps": algbw,
        "busbw_Bps": algbw and algbw * BUS_FACTORS[schedule.collective](schedule.n_workers),
        "closed_form_s": formula_s,
        "schedule_bound_s": schedule_bound_s(run.link_bytes, network, start_s) if timed and bounded else None,
        "collective_bound_s": bound.seconds if timed and bounded else None,
        "bound_share": bound.seconds / total_s if timed and bounded else None,
        "bound_cut": bound.cut if timed and bounded else None,
        **{name: parts.pop(name) for name in ("latency_share", "bandwidth_share", "queueing_share")},
        "own_queueing_share": own_queueing_share,
        **parts,
        "late_worker": late[0] if late else None,
        "late_by_s": late_s if late else None,
        "late_gain_s": _gain_in_time_s(run, late, late_s) if late else None,
        **({"n_late_workers": len(late)} if len(late) > 1 else {}),
    }


def _gain_in_time_s(run: Run, late: Sequence[int], late_s: float) -> float | None:
    """Return what is gained if they start with the first: all of them, as the others would be waited for."""
    costs = worker_costs(run.workers)
    in_time = tuple((worker, costs[worker]._replace(start_s=costs[worker].start_s - late_s)) for worker in late)
    return _gain_s(run, Upgrade(workers=in_time))


def _gain_s(run: Run, upgrade: Upgrade, *, is_cheap: bool = False) -> float | None:
    """Return what an upgrade gains, by simulating it; None where that is too dear."""
    if run.again is None or not (is_cheap or run.again.affordable):
        return None
    total_s = makespan_s(run.trace)
    gain_s = total_s - run.again(upgrade)
    return gain_s if abs(gain_s) > ROUNDING * total_s else 0.0


#: Of links that do these it is known whose transfers a transfer waited for.
_OWN_IS_TOLD = (BySize, OverTime, DrawnLatency, DrawnBandwidth, TroubledDraws)


def _own_queueing_s(run: Run) -> FloatArray:
    """Return, of the queueing on the path to each worker, what was behind the same sender's; NaN where nobody knows.

    Where what is lost is sent again, nobody knows whether a worker's own would stand in its way without that.
    """
    workers = run.trace.workers
    if beyond(run.network, _OWN_IS_TOLD, fair=True, window=True, packets=True) is None:
        return workers[OWN_QUEUEING]
    return np.where(workers["path_queueing_s"] > 0, np.nan, 0.0)


def _path_shares(run: Run) -> tuple[dict[str, float], float | None]:
    """Return what the path is made of, and how much of its queueing was behind the same sender's; None if unknown.

    Where much of it queued, and it can be walked, the path goes on with what the same sender sent before: that took
    the time, and what was on its way meanwhile, a latency, did not.
    """
    shares, total_s = path_shares(run.trace), makespan_s(run.trace)
    own_s = float(_own_queueing_s(run)[int(run.trace.workers["end_s"].argmax())])
    behind_others = shares["queueing"] if isnan(own_s) else shares["queueing"] - own_s / total_s
    is_own = run.network.window is not None or behind_others < TOLD_SHARE
    if shares["queueing"] < TOLD_SHARE or (path := run.path if is_own else run.path_of_own) is None:
        return shares, None if isnan(own_s) else own_s / total_s
    return {part: path.part_s(part) / total_s for part in PATH_PARTS}, 0.0


def _job_table(runs: Sequence[Run], first: Row) -> Table:
    """Return one row per job: its name, when it was at work, and what a summary says of it, ``first`` of the first."""
    rows = []
    for run in runs:
        workers = run.trace.workers
        ends = {"start_s": float(workers["start_s"].min()), "end_s": float(workers["end_s"].max())}
        rows.append({"job": run.labels["name"], **ends, **(first if run is runs[0] else summarise(run))})
    return of_rows(rows)


def _left_out(trace: Trace) -> list[str]:
    """Return notes on tables that are too large to be kept."""
    notes = []
    if trace.waits is None:
        notes.append("queues over time are left out: more transfers waited than are kept")
    if trace.transfers is None:
        has_path = trace.recall is not None or (trace.times is not None and trace.services is not None)
        what = "when links were busy" if has_path else "the path that ended last"
        notes.append(
            f"transfer rows, and {what}, are left out: {trace.n_transfers:,} transfers are more than are kept unasked "
            "(--transfers all keeps them)"
        )
    return notes
