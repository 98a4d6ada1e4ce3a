"""What holds for every result, whatever ran over whatever: one function each, over the tables that a user gets.

Bytes, times and shares are worked out here once more, from the schedule, the routes and the rows of transfers, and
compared with what the other tables say. Nothing here asks `ringnet.analysis`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ringnet.analysis.answer import TOLD_SHARE
from ringnet.engines import PATH_PARTS
from ringnet.networks import Network
from ringnet.reporting.results import collect
from ringnet.reporting.storage import read_results, write_results
from ringnet.runs.parts import RunParts, build
from ringnet.runs.simulate import simulate
from ringnet.scenario import Scenario

#: Relative error that sums of some hundred terms may leave, and that of one time beside another.
SUMS, DUST = 1e-9, 1e-12
TIMES = ["posted_s", "started_s", "sent_s", "arrived_s", "applied_s"]
#: Slots of a window.
SLOTS = 8


@dataclass(frozen=True)
class Ran:
    """A scenario and what came of it."""

    scenario: Scenario
    result: Any

    @classmethod
    def of(cls, scenario: Scenario) -> Ran:
        return cls(scenario, simulate(scenario))

    @cached_property
    def parts(self) -> RunParts:
        return build(self.scenario)

    @property
    def jobs(self) -> tuple[RunParts, ...]:
        return (self.parts, *self.parts.others)

    @property
    def summary(self) -> dict[str, Any]:
        return self.result.summary

    @property
    def links(self) -> pd.DataFrame:
        return self.result.links

    @property
    def workers(self) -> pd.DataFrame:
        return self.result.workers

    @property
    def transfers(self) -> pd.DataFrame:
        return self.result.transfers

    @cached_property
    def end_s(self) -> float:
        """When the last worker of all jobs ended."""
        ends = self.workers["end_s"] if self.result.jobs is None else self.result.jobs["end_s"]
        return float(ends.max())

    @property
    def draws(self) -> bool:
        """Whether some links draw their numbers for each transfer: then nobody says what a worker waited for."""
        network = self.parts.network
        return any(network.behaviour(link).differs_by_transfer for link in range(network.n_links))

    @property
    def slack_s(self) -> float:
        return DUST * self.end_s


# --------------------------------------------------------------------------------------- bytes and transfers


def charged(network: Network, n_bytes: int, *, fair: bool, in_slots: bool) -> int:
    """What a link is charged for one transfer: slot by slot, packet by packet."""
    packets, window = network.packets, network.window
    slots = [n_bytes]
    if in_slots and window is not None and window.bytes is not None:
        slot = max(window.bytes // SLOTS, 1)
        slots = [min(slot, n_bytes - first) for first in range(0, n_bytes, slot)] or [0]
    if packets is None:
        return sum(slots)
    n_packets = sum(max(math.ceil(slot / packets.bytes), 0 if fair else 1) for slot in slots)
    return sum(slots) + n_packets * packets.header_bytes


def sent_rows(parts: RunParts) -> Iterator[tuple[int, int, int]]:
    """Source, destination and bytes of every transfer of a job, chunk by chunk from its schedule."""
    for step in parts.schedule.steps():
        for row in range(len(step.src)):
            first, count = int(step.chunk[row]), 1 if step.count is None else int(step.count[row])
            n_bytes = sum(int(parts.chunk_bytes[chunk]) for chunk in range(first, first + count))
            yield int(step.src[row]), int(step.dst[row]), n_bytes


def rows_are_those_of_the_schedule(ran: Ran) -> None:
    rows = ran.transfers[["src", "dst", "bytes"]].itertuples(index=False, name=None)
    assert sorted(rows) == sorted(sent_rows(ran.parts))
    assert len(ran.transfers) == ran.summary["n_transfers"] == ran.parts.schedule.n_transfers


def links_carry_what_is_routed(ran: Ran) -> None:
    """Each link's bytes and transfers by owner: of each job those of its transfers, the rest those of bursts.

    Where links fail over, others carry some of that.
    """
    if any(one.fails_over_s is not None for one in ran.scenario.trouble):
        return
    links, fair = ran.links, ran.summary["sharing"] == "fair"
    if "resent_bytes" in links:  # because packets were lost
        links = links.assign(bytes=links["bytes"] - links["resent_bytes"])
    n_bytes, n_transfers = np.zeros(len(links), dtype=np.int64), np.zeros(len(links), dtype=np.int64)
    for job in ran.jobs:
        own = np.zeros(len(links), dtype=np.int64)
        for src, dst, size in sent_rows(job):
            on_way = [*job.network.route(src, dst)]
            own[on_way] += charged(job.network, size, fair=fair, in_slots=True)
            n_transfers[on_way] += 1
        if not ran.parts.is_alone:
            assert links[f"bytes of {job.name}"].tolist() == own.tolist()
        n_bytes += own
    least, most = bursts(ran, ran.end_s - ran.slack_s), bursts(ran, ran.end_s + ran.slack_s)
    for column, own, place in (("bytes", n_bytes, 0), ("transfers", n_transfers, 1)):
        others = links[column].to_numpy() - own
        assert (least[place] <= others).all()
        assert (others <= most[place]).all()
    if not ran.parts.is_alone:
        assert links["bytes of other traffic"].tolist() == (links["bytes"] - n_bytes).tolist()


def bursts(ran: Ran, until_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Bytes and number of the bursts on each link that start up to some time."""
    found = np.zeros((2, len(ran.links)), dtype=np.int64)
    fair = ran.summary["sharing"] == "fair"
    for one in ran.parts.traffic:
        last_s = min(until_s, one.stop_s)
        if one.every_s is None:
            count = int(one.start_s <= last_s)
        else:
            count = max(0, math.floor((last_s - one.start_s) / one.every_s) + 1)
        each = charged(ran.parts.network, one.burst_bytes, fair=fair, in_slots=False)
        found[0, [*one.links]] += count * each
        found[1, [*one.links]] += count
    return found[0], found[1]


def routes_are_those_of_the_transfers(ran: Ran) -> None:
    """Each pair of each job with its links in order, and together, without headers, what is on the links."""
    expected: dict[tuple[str, int, int], list[int]] = {}
    for job in ran.jobs:
        for src, dst, size in sent_rows(job):
            moved = expected.setdefault((job.name, src, dst), [0, 0])
            moved[0], moved[1] = moved[0] + 1, moved[1] + size
    networks = {job.name: job.network for job in ran.jobs}
    rows = ran.result.routes.to_dict("records")
    assert {(row["job"], row["src"], row["dst"]): [row["transfers"], row["bytes"]] for row in rows} == expected
    for row in rows:
        network = networks[row["job"]]
        assert row["links"].split() == [network.names[link] for link in network.route(row["src"], row["dst"])]


def of_workers(ran: Ran, end: str) -> pd.DataFrame:
    """The transfers of which one end is a worker, not a switch that reduces."""
    return ran.transfers[ran.transfers[end] < len(ran.workers)]


def workers_send_and_receive_what_is_moved(ran: Ran) -> None:
    for end, column in (("src", "sent_bytes"), ("dst", "received_bytes")):
        rows = of_workers(ran, end)
        moved = np.bincount(rows[end], rows["bytes"], minlength=len(ran.workers))
        assert ran.workers[column].tolist() == moved.tolist()


# ---------------------------------------------------------------------------------------------------- times


def times_fit_within_each_other(ran: Ran) -> None:
    rows, workers = ran.transfers, ran.workers
    times = rows[TIMES].to_numpy(float)
    assert np.isfinite(times).all()
    assert (np.diff(times, axis=1) >= -ran.slack_s).all()
    assert (workers["start_s"] <= workers["end_s"]).all()
    start_s, end_s = workers["start_s"].to_numpy(), workers["end_s"].to_numpy()
    for worker, column in (("src", "posted_s"), ("dst", "applied_s")):
        own = of_workers(ran, worker)
        assert (own[column] >= start_s[own[worker]] - ran.slack_s).all()
        assert (own[column] <= end_s[own[worker]] + ran.slack_s).all()


def workers_end_with_their_last_transfer(ran: Ran) -> None:
    rows, to, ends_s = (
        of_workers(ran, "src"),
        of_workers(ran, "dst"),
        ran.parts.workers.start_s.copy(),
    )
    np.maximum.at(ends_s, to["dst"], to["applied_s"])
    np.maximum.at(ends_s, rows["src"], rows["posted_s"])
    if ran.summary["sends"] == "rendezvous":
        np.maximum.at(ends_s, rows["src"], rows["arrived_s"])
        for worker, pace in ran.parts.workers.paces.items():  # who stands still then leaves no step
            ends_s[worker] = pace.end_s(float(ends_s[worker]), 0.0)
    assert ran.workers["end_s"].tolist() == ends_s.tolist()


def no_transfer_is_faster_than_its_links(ran: Ran) -> None:
    """From its start to its arrival it takes the latency of its route, and its bytes over the peak of each link."""
    network, rows = ran.parts.network, ran.transfers
    served: Counter[int] = Counter()
    for src, dst, size, started_s, arrived_s in (
        rows[["src", "dst", "bytes", "started_s", "arrived_s"]]
        .sort_values("started_s", kind="stable")
        .itertuples(index=False, name=None)
    ):
        route = network.route(src, dst)
        # In which order another link serves what comes over several is not in the table: its draws are not looked at.
        behaviours = [network.behaviour(link).of_transfer(served[link]) for link in route[:1]]
        behaviours += [one for one in map(network.behaviour, route[1:]) if not one.differs_by_transfer]
        served.update(route[:1])
        least_s = max(size / behaviour.peak() for behaviour in behaviours)
        if ran.summary["sharing"] != "fair":  # under which the latency comes before the start
            least_s += sum(behaviour.offer(size, started_s).latency_s for behaviour in behaviours)
        assert arrived_s - started_s >= least_s * (1 - SUMS) - ran.slack_s


def bounds_are_below_the_time(ran: Ran) -> None:
    if not ran.summary["makespan_s"] or len(ran.workers) == 1:
        return  # where nothing takes time, or nobody is left to send to, bounds are empty cells
    rows = [ran.summary] if ran.result.jobs is None else [ran.summary, *ran.result.jobs.to_dict("records")]
    for row in rows:
        for bound in ("schedule_bound_s", "collective_bound_s"):
            assert row[bound] <= row["makespan_s"] * (1 + SUMS)
        assert row["bound_share"] == pytest.approx(row["collective_bound_s"] / row["makespan_s"], rel=SUMS)


def paths_add_up(ran: Ran) -> None:
    """Each worker's path to its end, the last one's to the makespan, and the shares of it to 1."""
    parts = ran.workers[[f"path_{part}_s" for part in PATH_PARTS]]
    ends_s = ran.workers["end_s"] - ran.workers["start_s"].min()
    assert parts.min().min() >= -ran.slack_s
    assert parts.sum(axis=1).to_numpy() == pytest.approx(ends_s.to_numpy(), rel=SUMS, abs=ran.slack_s)
    makespan_s = ran.summary["makespan_s"]
    if makespan_s and len(ran.workers) > 1:
        shares = np.array([ran.summary[f"{part}_share"] for part in PATH_PARTS])
        assert shares.sum() == pytest.approx(1, rel=SUMS)
        assert shares.min() >= -SUMS
        worker = ran.workers["end_s"].idxmax()
        last, own_s = parts.loc[worker].to_numpy(), ran.workers["own_queueing_s"][worker]
        queued_s, path = last[PATH_PARTS.index("queueing")], ran.result.path
        if path is not None and queued_s >= TOLD_SHARE * makespan_s:
            # What waited goes on with what the same worker sent before, and for credit with what brought it back.
            by_path = ran.summary["sharing"] == "fair" or ran.parts.network.window is not None
            if not by_path and not queued_s - own_s < TOLD_SHARE * makespan_s:
                return
            seconds = (path["to_s"] - path["from_s"]).groupby(path["part"]).sum()
            last = np.array([seconds.get(part, 0.0) for part in PATH_PARTS])
        assert shares * makespan_s == pytest.approx(last, rel=SUMS, abs=ran.slack_s)


def the_path_goes_from_the_first_start_to_the_last_end(ran: Ran) -> None:
    """Without a gap, and each piece within the time of its transfer."""
    path = ran.result.path
    assert (path is None) == (len(ran.workers) == 1 or "resent_bytes" in ran.links or ran.draws)
    if path is None or path.empty:
        return
    assert path["from_s"].iloc[0] == ran.workers["start_s"].min()
    assert path["to_s"].iloc[-1] == ran.workers["end_s"].max()
    assert path["from_s"].tolist()[1:] == path["to_s"].tolist()[:-1]
    assert (path["from_s"] < path["to_s"]).all()
    assert set(path["part"]) <= set(PATH_PARTS)
    name = ["phase", "step", "chunk", "src", "dst"]
    pieces = path.dropna(subset=name).astype(dict.fromkeys(name[1:], np.int64)).reset_index()
    rows = pieces.merge(ran.transfers, on=name, suffixes=("", "_row"))
    assert set(rows["index"]) == set(pieces["index"])
    # Off the links, a credit may be on its way back before the transfer that waits for it is posted.
    moving = rows["part"].isin(["latency", "bandwidth", "queueing"]) & rows["link"].notna()
    assert (rows["from_s"] >= rows["posted_s"] - ran.slack_s)[moving].all()
    assert (rows["to_s"] <= rows["arrived_s"] + ran.slack_s)[moving].all()
    assert (rows["to_s"] <= rows["applied_s"] + ran.slack_s).all()


# ------------------------------------------------------------------------------------------ links and workers


def no_link_is_busy_over_100_percent(ran: Ran) -> None:
    links = ran.links
    until_s = ran.end_s - float(ran.workers["start_s"].min())
    assert (links["busy_s"] <= links["occupied_s"] * (1 + SUMS) + ran.slack_s).all()
    assert (links["utilisation"].fillna(0) <= 1 + SUMS).all()
    if ran.parts.is_alone:
        assert (links["occupied_s"] <= until_s * (1 + SUMS)).all()
    if not until_s:
        assert links["utilisation"].isna().all()
    elif ran.parts.is_alone:
        busy = links["busy_s"].to_numpy() / until_s
        assert links["utilisation"].to_numpy() == pytest.approx(busy, rel=SUMS)


def links_are_busy_with_their_bytes(ran: Ran) -> None:
    network, links = ran.parts.network, ran.links
    for link, row in enumerate(links[["bytes", "busy_s", "bandwidth_Bps", "latency_s"]].to_dict("records")):
        behaviour = network.behaviour(link)
        if link in network.behaviours and ran.summary["sharing"] == "fifo":
            assert row["busy_s"] >= row["bytes"] / behaviour.peak() * (1 - SUMS)
        elif behaviour.next_change_s(0.0) == math.inf:
            assert row["busy_s"] == pytest.approx(row["bytes"] / row["bandwidth_Bps"], rel=SUMS)


def waits_are_at_links_that_carry(ran: Ran) -> None:
    links = ran.links
    assert (links[["queued_s", "longest_queue"]] >= 0).all().all()
    idle = links["transfers"] == 0
    assert not links.loc[idle, ["bytes", "busy_s", "occupied_s", "queued_s", "longest_queue"]].any().any()
    assert links.loc[idle, "mean_wait_s"].isna().all()
    waits = links.loc[~idle, "queued_s"] / links.loc[~idle, "transfers"]
    assert links.loc[~idle, "mean_wait_s"].to_numpy() == pytest.approx(waits.to_numpy(), rel=SUMS)


def processors_do_what_is_charged(ran: Ran) -> None:
    rows, costs = ran.transfers, ran.parts.workers
    n_workers = len(ran.workers)
    sent, received = (np.bincount(rows[end], minlength=n_workers)[:n_workers] for end in ("src", "dst"))
    overhead_s = costs.launch_s + sent * costs.send_overhead_s + received * costs.recv_overhead_s
    even = np.array([worker not in costs.paces for worker in range(n_workers)])
    assert ran.workers["overhead_s"].to_numpy()[even] == pytest.approx(overhead_s[even], rel=SUMS)
    assert (ran.workers["overhead_s"] >= overhead_s * (1 - SUMS) - ran.slack_s).all()
    reduced = np.bincount(rows["dst"], rows["bytes"] * (rows["op"] == "reduce"), minlength=n_workers)[:n_workers]
    reducing_s = reduced / costs.reduce_Bps
    assert ran.workers["reducing_s"].to_numpy()[even] == pytest.approx(reducing_s[even], rel=SUMS)
    assert (ran.workers["reducing_s"] >= reducing_s * (1 - SUMS) - ran.slack_s).all()
    busy_s = ran.workers["overhead_s"] + ran.workers["reducing_s"]
    assert (busy_s <= (ran.workers["end_s"] - ran.workers["start_s"]) * (1 + SUMS)).all()


def parts_of_workers_add_up_to_their_time(ran: Ran) -> None:
    """Moving, waiting, overhead, reducing and the idle end, with any number of channels: to the last worker's end."""
    workers = ran.workers
    names = ["moving_s", "late_partner_s", "busy_link_s", "overhead_s", "reducing_s", "idle_end_s"]
    parts = workers[names + [name for name in ("paused_s",) if name in workers]]
    time_s = (workers["end_s"].max() - workers["start_s"]).to_numpy()
    if ran.draws:
        assert workers["waiting_s"].isna().all()
        return
    assert (parts >= 0).all().all()
    assert parts.sum(axis=1).to_numpy() == pytest.approx(time_s, rel=SUMS, abs=ran.slack_s)
    waiting_s = workers["late_partner_s"] + workers["busy_link_s"]
    assert workers["waiting_s"].tolist() == waiting_s.tolist()
    if ran.summary["sharing"] == "fair":
        assert not workers["busy_link_s"].any()


# --------------------------------------------------------------------------------------------------- tables


def summary_agrees_with_the_tables(ran: Ran) -> None:
    row, workers, links = ran.summary, ran.workers, ran.links
    makespan_s = float(workers["end_s"].max() - workers["start_s"].min())
    assert row["makespan_s"] == makespan_s
    assert row["bytes_sent_per_worker"] == workers["sent_bytes"].max()
    assert row["waiting_s_max"] == (None if ran.draws else workers["waiting_s"].max())
    assert row["longest_queue"] == (links["longest_queue"].max() if len(links) else 0)
    if makespan_s and len(workers) > 1:
        assert row["algbw_Bps"] == pytest.approx(row["message_bytes"] / makespan_s, rel=SUMS)
    if row["slowest_link"] is not None:
        slowest = links.set_index("link").loc[row["slowest_link"]]
        assert slowest["transfers"] > 0
        if ran.result.jobs is None:
            assert row["slowest_link_utilisation"] == slowest["utilisation"]
    if ran.result.jobs is not None:
        own = ran.result.jobs.iloc[0]
        assert own["job"] == row["name"]
        assert [own[name] for name in own.index if name in row] == [row[name] for name in own.index if name in row]


def tables_read_back_the_same(ran: Ran, folder: Path) -> None:
    info = {"scenario": ran.scenario.document()}
    written = collect([ran.result], info)
    write_results(folder, [ran.result], info, plots=[])
    read = read_results(folder)
    for name in (
        "summary",
        "links",
        "workers",
        "transfers",
        "jobs",
        "queues",
        "utilisation",
        "routes",
        "path",
    ):
        before, after = getattr(written, name), getattr(read, name)
        assert (before is None) == (after is None)
        if before is not None:
            pd.testing.assert_frame_equal(before, after, check_exact=True)


#: All but what needs a folder.
VALIDATORS = (
    rows_are_those_of_the_schedule,
    links_carry_what_is_routed,
    routes_are_those_of_the_transfers,
    workers_send_and_receive_what_is_moved,
    times_fit_within_each_other,
    workers_end_with_their_last_transfer,
    no_transfer_is_faster_than_its_links,
    bounds_are_below_the_time,
    paths_add_up,
    the_path_goes_from_the_first_start_to_the_last_end,
    no_link_is_busy_over_100_percent,
    links_are_busy_with_their_bytes,
    waits_are_at_links_that_carry,
    processors_do_what_is_charged,
    parts_of_workers_add_up_to_their_time,
    summary_agrees_with_the_tables,
)


def audit(ran: Ran) -> None:
    """Check everything."""
    for holds in VALIDATORS:
        holds(ran)
