"""The engines on random runs: what always holds, and a plain recurrence that must say the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.engines import ENGINES
from ringnet.networks import LinkChange, change_links

EXACT = 1e-12


@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data())
def test_what_holds_for_every_run(data, cases, holds, engine):
    case = data.draw(cases())
    holds(case, case.run(engine=engine))


# -------------------------------------------------------------------------------------- independent oracle


def recurrence(case):
    """When each worker ends and each transfer is applied, on a ring of private links: max and plus."""
    n, rendezvous = case.schedule.n_workers, case.workers.sends == "rendezvous"
    costs = (case.workers.send_overhead_s, case.workers.recv_overhead_s, case.workers.reduce_Bps)
    send_s, recv_s, reduce_Bps = (column.tolist() for column in costs)
    now, free, applied = (case.workers.start_s + case.workers.launch_s).tolist(), [0.0] * n, []
    for step in case.schedule.steps():
        size = [int(case.chunk_bytes[chunk]) for chunk in step.chunk.tolist()]  # row i is sent by worker i
        posted = [now[i] + send_s[i] for i in range(n)]
        together = [max(posted[i], now[(i + 1) % n]) if rendezvous else posted[i] for i in range(n)]
        free = [max(together[i], free[i]) + size[i] / float(case.network.bandwidth_Bps[i]) for i in range(n)]
        arrived = [free[i] + float(case.network.latency_s[i]) for i in range(n)]
        for i in range(n):
            left = (i - 1) % n
            work_s = recv_s[i] + (size[left] / reduce_Bps[i] if step.op == "reduce" else 0.0)
            now[i] = max(posted[i], arrived[left]) + work_s
        applied += [now[(i + 1) % n] for i in range(n)]
        if rendezvous:
            now = [max(now[i], arrived[i]) for i in range(n)]
    return now, applied


@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data())
def test_a_ring_is_what_the_recurrence_says(data, cases, engine):
    case = data.draw(cases(topology="ring"))
    ends, applied = recurrence(case)
    trace = case.run(engine=engine)
    assert trace.workers["end_s"] == pytest.approx(ends, rel=EXACT)
    assert trace.transfers["applied_s"] == pytest.approx(applied, rel=EXACT)


@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data())
def test_what_all_launch_alike_comes_on_top(data, cases, engine):
    """Whatever the links and the workers, late ones too: once, not for each step or channel."""
    case, launch_s = data.draw(cases(launch_s=0.0)), data.draw(st.floats(1e-6, 1e-3))
    launching = case.but(workers=replace(case.workers, launch_s=np.full(case.schedule.n_workers, launch_s)))
    without, trace = case.run(engine=engine), launching.run(engine=engine)
    assert trace.workers["end_s"] == pytest.approx(without.workers["end_s"] + launch_s, rel=1e-9, abs=0)
    overhead_s = without.workers["overhead_s"] + launch_s
    assert trace.workers["overhead_s"] == pytest.approx(overhead_s, rel=1e-9, abs=0)


# -------------------------------------------------------------------------------------------------- queues


def waiting(case, rows):
    """From when to when each transfer waits for the links of its eager route, by link; each has one sender."""
    network, waits = case.network, {link: [] for link in range(case.network.n_links)}
    free = dict.fromkeys(waits, 0.0)
    names = ("src", "dst", "bytes", "posted_s", "started_s", "sent_s")
    for src, dst, n_bytes, posted, started, sent in zip(*(rows[name].tolist() for name in names), strict=True):
        first, *second = network.route(src, dst)
        waits[first].append((posted, started))
        for link in second:
            tail = sent + float(network.latency_s[first])
            through = network.switching == "cut-through"
            head = started + float(network.latency_s[first]) if through else tail
            start = max(head, free[link])
            end = start + n_bytes / float(network.bandwidth_Bps[link])
            free[link] = max(end, tail) if through else end
            waits[link].append((head, start))
    return waits


def longest(waits):
    """The most transfers that wait at one time; one that starts then, or a rounding later, does not wait any more."""
    return max((sum(a <= at < b * (1 - EXACT) for a, b in waits) for at, _ in waits), default=0)


@pytest.mark.parametrize("engine", ENGINES)
@given(data=st.data())
def test_queues_are_what_the_rows_say(data, cases, engine):
    case = data.draw(cases(sends="eager"))
    trace = case.run(engine=engine)
    for link, waits in waiting(case, trace.transfers).items():
        assert trace.links["longest_queue"][link] == longest(waits)
        queued_s = sum(end - start for start, end in waits if end - start > EXACT * end)
        assert trace.links["queued_s"][link] == pytest.approx(queued_s, rel=1e-9, abs=1e-15)


@given(data=st.data())
def test_no_queue_where_sender_and_receiver_meet(data, cases):
    trace = data.draw(cases(topology="ring", sends="rendezvous")).run()
    assert not trace.links["longest_queue"].any()
    assert not trace.links["queued_s"].any()


# --------------------------------------------------------------------------------- one run against another


def sent(case, sends):
    return case.but(workers=replace(case.workers, sends=sends))


@given(data=st.data())
def test_rendezvous_is_never_earlier_than_eager(data, cases):
    """On both topologies: in a ring schedule each link has one sender."""
    case = data.draw(cases())
    eager, rendezvous = (sent(case, sends).run().workers["end_s"] for sends in ("eager", "rendezvous"))
    assert (eager <= rendezvous * (1 + EXACT)).all()


@given(data=st.data())
def test_cut_through_is_never_later_than_store_and_forward(data, cases):
    case = data.draw(cases(topology="switch", switching="cut-through"))
    stored = case.but(network=replace(case.network, switching="store-and-forward"))
    assert (case.run().workers["end_s"] <= stored.run().workers["end_s"] * (1 + EXACT)).all()


@given(data=st.data())
def test_a_faster_link_makes_no_worker_later(data, cases):
    case = data.draw(cases(n_workers=data.draw(st.integers(2, 9))))
    link = data.draw(st.integers(0, case.network.n_links - 1))
    better = LinkChange(2 * float(case.network.bandwidth_Bps[link]), float(case.network.latency_s[link]) / 2)
    faster = case.but(network=change_links(case.network, {case.network.names[link]: better}))
    assert (faster.run().workers["end_s"] <= case.run().workers["end_s"] * (1 + EXACT)).all()


@given(data=st.data())
def test_time_in_other_units_is_the_same_run(data, cases):
    """Everything four times slower: the same bits, an exponent higher. No time has a constant in it."""
    case = data.draw(cases())
    network, workers = case.network, case.workers
    slower = case.but(
        network=replace(network, bandwidth_Bps=network.bandwidth_Bps / 4, latency_s=network.latency_s * 4),
        workers=replace(
            workers,
            start_s=workers.start_s * 4,
            launch_s=workers.launch_s * 4,
            send_overhead_s=workers.send_overhead_s * 4,
            recv_overhead_s=workers.recv_overhead_s * 4,
            reduce_Bps=workers.reduce_Bps / 4,
        ),
    )
    fast, slow = case.run(), slower.run()
    assert (fast.transfers["applied_s"] * 4 == slow.transfers["applied_s"]).all()
    assert (fast.workers["end_s"] * 4 == slow.workers["end_s"]).all()
    assert (fast.links["longest_queue"] == slow.links["longest_queue"]).all()


@given(data=st.data())
def test_turning_a_ring_turns_the_result(data, cases):
    """Worker i with its links becomes worker i + 1, chunk c chunk c + 1: nobody is special."""
    case = data.draw(cases(topology="ring"))
    workers = case.workers
    columns = ("start_s", "launch_s", "send_overhead_s", "recv_overhead_s", "reduce_Bps")
    network = case.network
    turned = case.but(
        chunk_bytes=np.roll(case.chunk_bytes, 1),
        workers=replace(workers, **{name: np.roll(getattr(workers, name), 1) for name in columns}),
        network=replace(
            network,
            bandwidth_Bps=np.roll(network.bandwidth_Bps, 1),
            latency_s=np.roll(network.latency_s, 1),
        ),
    )
    assert np.roll(case.run().workers["end_s"], 1).tolist() == turned.run().workers["end_s"].tolist()


@given(data=st.data())
def test_a_run_repeats_to_the_last_byte(data, cases, bytes_of):
    case = data.draw(cases())
    assert len({bytes_of(case.run()) for _ in range(3)}) == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sends", ["eager", "rendezvous"])
def test_whoever_watches_is_told_how_far_a_run_is(case, engine, sends):
    told = []

    def watch(total, how_far):
        told.append((total, how_far(), how_far))

    run = case(5, 0, sends=sends)
    trace = run.run(engine=engine, watch=watch)
    ((total, before, how_far),) = told
    assert (total, before, how_far()) == (trace.n_transfers, 0, trace.n_transfers)
