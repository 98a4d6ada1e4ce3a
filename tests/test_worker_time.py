"""What workers do with their time, against a count of moments; who is late; whose own transfers stand in the way."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis.answer import answer
from ringnet.analysis.worker_time import worker_time
from ringnet.collectives import ALGORITHMS
from ringnet.engines import Workers
from ringnet.engines.arrays import why_not_exact
from ringnet.engines.events import Job, run_jobs
from ringnet.networks import TOPOLOGIES, LinkChange, placed
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads
from ringnet.units import format_seconds

PARTS = ("moving_s", "late_partner_s", "busy_link_s")
COSTS = st.fixed_dictionaries(
    {},
    optional={
        "send_overhead_s": st.sampled_from([0.25, 1.0]),
        "recv_overhead_s": st.just(0.5),
        "reduce_Bps": st.just(300.0),
        "launch_s": st.sampled_from([0.5, 2.0]),
    },
)


def scenario(**keys):
    network = {"topology": "switch", "bandwidth": "1 GB/s", "latency": "1 us"} | keys.pop("network", {})
    return loads(
        yaml.safe_dump(
            {"scenario_version": 1, "workers": 4, "message": "64 KiB", "payload": "none"} | keys | {"network": network}
        )
    )


def in_order(case):
    """Return a case whose links serve one after another, also where several workers send over one."""
    return case.but(network=replace(case.network, sharing="fifo"))


def counted(case, trace):
    """Return the seconds of each worker by part, from a look at the middle of every span between two events."""
    rows, served, workers = trace.transfers, trace.services, case.workers
    n_transfers, rendezvous = len(rows["src"]), workers.sends == "rendezvous"
    works = [[one] for one in zip(workers.start_s.tolist(), workers.launched_s.tolist(), strict=True)]
    moves, stands = ([[] for _ in range(case.schedule.n_workers)] for _ in range(2))
    for row in range(n_transfers):
        src, dst = int(rows["src"][row]), int(rows["dst"][row])
        posted_s, applied_s = rows["posted_s"][row], rows["applied_s"][row]
        works[src].append((posted_s - workers.send_overhead_s[src], posted_s))
        reducing_s = rows["bytes"][row] / workers.reduce_Bps[dst] if rows["op"][row] == "reduce" else 0.0
        works[dst].append((applied_s - workers.recv_overhead_s[dst] - reducing_s, applied_s))
    for row in range(len(served["link"])):
        transfer, link = int(served["transfer"][row]), int(served["link"][row])
        src, dst = int(rows["src"][transfer]), int(rows["dst"][transfer])
        head_s, start_s, end_s = (float(served[name][row]) for name in ("head_s", "start_s", "end_s"))
        latency_s = float(case.network.latency_s[link])
        moves[dst].append((start_s, end_s + latency_s))
        stands[dst].append((head_s, start_s))
        if rendezvous or served["hop"][row] == 0:
            moves[src].append((start_s, end_s + latency_s if rendezvous else end_s))
            stands[src].append((head_s, start_s))
    found = {part: np.zeros(case.schedule.n_workers) for part in PARTS}
    for worker in range(case.schedule.n_workers):
        first_s, last_s = float(trace.workers["start_s"][worker]), float(trace.workers["end_s"][worker])
        kinds = works[worker], moves[worker], stands[worker]
        edges = sorted({first_s, last_s, *(time_s for kind in kinds for span in kind for time_s in span)})
        for low_s, high_s in pairwise(time_s for time_s in edges if first_s <= time_s <= last_s):
            middle_s = (low_s + high_s) / 2
            in_kinds = [any(a <= middle_s < b for a, b in kind) for kind in kinds]
            part = (None, *PARTS[:1], PARTS[2])[in_kinds.index(True)] if any(in_kinds) else PARTS[1]
            if part:
                found[part][worker] += high_s - low_s
    return found


@given(st.data())
def test_the_parts_are_those_of_a_count_of_moments(case, data):
    """On random unequal links, with costs and late starts, one or several channels, both ways to send."""
    algorithm = data.draw(st.sampled_from(["ring", "channel-ring", "halving-doubling", "direct", "double-binary-tree"]))
    n_workers = data.draw(st.sampled_from([2, 4]))
    slow = data.draw(st.dictionaries(st.integers(0, n_workers - 1), st.sampled_from([20.0, 50.0]), max_size=2))
    one = case(
        n_workers,
        schedule=ALGORITHMS[algorithm].build(n_workers, "all-reduce"),
        topology="switch",
        links={f"{worker}->switch": LinkChange(rate) for worker, rate in slow.items()},
        start_s=data.draw(st.lists(st.sampled_from([0.0, 0.0, 7.0]), min_size=n_workers, max_size=n_workers)),
        sends=data.draw(st.sampled_from(["eager", "rendezvous"])),
        **data.draw(COSTS),
    )
    one = in_order(one)
    trace = one.run()
    spent, expected = one.spent(trace), counted(one, trace)
    for part in PARTS:
        assert spent[part] == pytest.approx(expected[part], rel=1e-9, abs=1e-9)


@given(st.data())
def test_both_engines_say_the_same_to_the_last_bit(case, data):
    n_workers = data.draw(st.integers(2, 6))
    name = data.draw(st.sampled_from(["ring", "channel-ring", "pipelined-ring"]))
    one = case(
        n_workers,
        schedule=ALGORITHMS[name].build(n_workers, "all-reduce"),
        links={f"{data.draw(st.integers(0, n_workers - 1))}->switch": LinkChange(37.0, 0.3)},
        topology="switch",
        start_s=data.draw(st.lists(st.floats(0.0, 9.0), min_size=n_workers, max_size=n_workers)),
        sends=data.draw(st.sampled_from(["eager", "rendezvous"])),
    )
    if why_not_exact(one.schedule, one.network, one.workers) is None:
        events, arrays = (one.spent(one.run(engine=engine)) for engine in ("events", "recurrence"))
        assert {name: column.tolist() for name, column in events.items()} == {
            name: column.tolist() for name, column in arrays.items()
        }


def test_a_worker_stands_at_a_link_that_is_busy_with_others(case, custom):
    """Two hand whole transfers to one receiver: the second is at the switch, and stands while the first goes down."""
    two = custom(3, [(0, 2, 0), (1, 2, 1)])
    one = in_order(case(3, 200, schedule=two, topology="switch", sends="rendezvous", latency_s=0.0))
    one = one.but(network=replace(one.network, switching="store-and-forward"))
    spent = one.spent(one.run())
    assert spent["moving_s"].tolist() == [4.0, 4.0, 6.0]  # up in 2 s, both; down in 2 s each
    assert spent["busy_link_s"].tolist() == [0.0, 2.0, 0.0]
    assert spent["idle_end_s"].tolist() == [2.0, 0.0, 0.0]


def test_without_rows_nothing_is_said(case):
    one = case(3)
    spent = one.spent(one.run(keep_transfers=0))
    assert np.isnan([spent[name] for name in (*PARTS, "waiting_s")]).all()
    assert spent["idle_end_s"].tolist() == [0.0, 0.0, 0.0]


def test_a_late_worker_is_named_where_the_run_waited_for_it():
    result = simulate(scenario(worker={"exceptions": {3: {"start": "200 ms"}}}))
    assert (result.summary["late_worker"], result.summary["late_by_s"]) == (3, 0.2)
    others = result.workers["late_partner_s"][:3]
    assert (others > 0.19).all()
    assert result.workers["waiting_s"][3] < 1e-3
    on_time = simulate(scenario())
    gain_s = result.summary["makespan_s"] - on_time.summary["makespan_s"]
    assert result.summary["late_gain_s"] == gain_s
    said = dict(answer(result.summary))["waits for"]
    assert said.startswith("worker 3, late by 200 ms; in time 9")
    assert said.endswith(f"% less ({format_seconds(on_time.summary['makespan_s'])})")
    assert "waits for" not in dict(answer(on_time.summary))
    assert on_time.summary["late_worker"] is None


def test_workers_that_are_late_together_are_mended_together():
    """As a host is: one of them alone in time gains nothing, since the others are waited for."""
    row = simulate(scenario(worker={"exceptions": {worker: {"start": "200 ms"} for worker in (1, 3)}})).summary
    assert (row["late_worker"], row["n_late_workers"]) == (1, 2)
    assert row["late_gain_s"] == row["makespan_s"] - simulate(scenario()).summary["makespan_s"] > 0
    assert dict(answer(row))["waits for"].startswith("worker 1 and 1 more, late by 200 ms; in time 9")


def test_queueing_behind_others_is_no_bandwidth_of_ones_own():
    """Four workers of a leaf send over its one uplink: what waits there waits for others."""
    racks = {"topology": "leaf-spine", "hosts_per_leaf": 4, "spines": 1, "sharing": "fifo"}
    row = simulate(scenario(algorithm="halving-doubling", workers=8, network=racks)).summary
    assert row["own_queueing_share"] == 0
    assert 0.2 < row["queueing_share"] < 1


def test_what_waits_for_credit_waits_for_what_brings_it_back():
    free, held = (simulate(scenario(network={"window": size})) for size in ("1 GiB", "4 KiB"))
    assert held.workers["path_queueing_s"].max() > 0.05 * held.summary["makespan_s"]
    assert held.summary["queueing_share"] == held.summary["own_queueing_share"] == 0.0
    # Without latency the window has no effect: what is gained then is the latency of the ways there and back.
    at_once = simulate(scenario(network={"window": "4 KiB", "latency": "0 s"}))
    gained_s = held.summary["makespan_s"] - at_once.summary["makespan_s"]
    assert held.summary["latency_share"] > free.summary["latency_share"]
    assert held.summary["latency_share"] * held.summary["makespan_s"] >= gained_s * (1 - 1e-9)


def test_what_queues_behind_its_own_is_told_as_bandwidth():
    link = {"links": {"0->switch": {"bandwidth": "200 MB/s"}}}
    result = simulate(scenario(algorithm={"name": "pipelined-ring", "n_slices": 8}, network=link))
    last = result.workers.loc[result.workers["end_s"].idxmax()]
    assert last["own_queueing_s"] == pytest.approx(last["path_queueing_s"])
    assert last["path_queueing_s"] > 0.5 * result.summary["makespan_s"]
    assert result.summary["queueing_share"] == result.summary["own_queueing_share"] == 0
    assert result.sentence.split(",")[0].endswith("% bandwidth")
    assert "queueing" not in result.sentence


def test_each_job_has_its_own_time_whichever_is_the_first():
    """Two jobs that share no link: the services of all links are told apart by whose they are."""
    network = replace(TOPOLOGIES["switch"].build(8, 1e9, 1e-6), sharing="fifo")
    found = []
    for first in ("direct", "binomial-tree"):
        jobs = {}
        for name, seats in (("direct", [0, 1, 2, 3]), ("binomial-tree", [4, 5, 6, 7])):
            schedule = ALGORITHMS[name].build(4, "all-reduce")
            workers = Workers.alike(4, send_overhead_s=1e-6)
            own = placed(network, seats)
            jobs[name] = Job(schedule, own, workers, np.full(schedule.n_chunks, 5000))
        order = [first, *(name for name in jobs if name != first)]
        traces = run_jobs([jobs[name] for name in order], network)
        times = {
            name: worker_time(trace, jobs[name].network, jobs[name].workers)
            for name, trace in zip(order, traces, strict=True)
        }
        found.append({name: {part: column.tolist() for part, column in times[name].items()} for name in sorted(times)})
    assert found[0] == found[1]
    assert sum(found[0]["direct"]["moving_s"]) != sum(found[0]["binomial-tree"]["moving_s"]) > 0
