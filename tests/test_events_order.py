"""In which order the events engine serves what comes at the same time, and how much work that is.

Every time is worked out by hand. Links have 100 B/s and half a second of latency, chunks 100 bytes.
"""

from __future__ import annotations

import pytest

from ringnet.networks import LinkChange


def test_at_equal_times_the_lowest_sender_is_served_first(case, custom, times):
    schedule = custom(4, [(3, 0, 0), (2, 0, 0), (1, 0, 0)], op="reduce")
    trace = case(4, 200, schedule=schedule, topology="switch").run()
    assert times(trace) == [(0.0, 0.0, 2.0, 7.0, 7.0), (0.0, 0.0, 2.0, 5.0, 5.0), (0.0, 0.0, 2.0, 3.0, 3.0)]
    down = 4
    assert (trace.links["longest_queue"][down], trace.links["queued_s"][down]) == (2, 6.0)


def test_who_comes_first_is_served_first(case, custom):
    schedule = custom(4, [(1, 0, 0), (2, 0, 0), (3, 0, 0)], op="reduce")
    trace = case(4, 200, schedule=schedule, topology="switch", start_s=[0.0, 1.0, 0.5, 0.0]).run()
    assert trace.transfers["arrived_s"].tolist() == [7.0, 5.0, 3.0]


def test_the_lowest_sender_is_first_also_if_it_came_later_into_the_engine(case, custom):
    """Worker 2 starts at once on a long cable, worker 1 a second later: both heads are there at 1.5 s."""
    links = {"2->switch": LinkChange(latency_s=1.5)}
    schedule = custom(3, [(2, 0, 0), (1, 0, 0)])
    trace = case(3, 200, schedule=schedule, topology="switch", links=links, start_s=[0.0, 1.0, 0.0]).run()
    assert trace.transfers["arrived_s"].tolist() == [6.0, 4.0]


def test_the_lowest_sender_is_first_also_if_it_is_there_without_latency(case, custom):
    """At 2 s worker 2's head is there; worker 1 hears from worker 3, sends, and its head is there too."""
    links = {"1->switch": LinkChange(latency_s=0.0), "2->switch": LinkChange(latency_s=2.0)}
    schedule = custom(4, [(3, 1, 0)], [(2, 0, 1), (1, 0, 1)])
    trace = case(4, schedule=schedule, topology="switch", links=links).run()
    assert trace.transfers["posted_s"].tolist() == [0.0, 0.0, 2.0]
    assert trace.transfers["arrived_s"].tolist() == [2.0, 4.5, 3.5]


def test_at_equal_times_the_lowest_channel_of_a_sender_is_first(case, custom, wired):
    """Worker 0 hears on both channels at 2 s: on channel 1 from a transfer that has been long under way."""
    links = {"1->0": (100, 1.0), "2->0": (100, 2.0), "0->3": (100, 0.5)}
    network = wired(links, {(1, 0): ["1->0"], (2, 0): ["2->0"], (0, 3): ["0->3"]}, 4)
    schedule = custom(4, [(1, 0, 0, 0), (2, 0, 0, 1)], [(0, 3, 1, 1), (0, 3, 2, 0)])
    trace = case(4, [0, 100, 100], schedule=schedule, start_s=[0.0, 1.0, 0.0, 0.0]).but(network=network).run()
    assert trace.transfers["arrived_s"].tolist() == [2.0, 2.0, 4.5, 3.5]


def test_the_lowest_channel_is_first_also_if_it_had_to_hear_of_an_empty_transfer(case, custom):
    """Worker 1 sends at once on channel 1, and on channel 0 after what takes no time at all."""
    schedule = custom(3, [(0, 1, 0, 0), (1, 2, 1, 1)], [(1, 2, 2, 0)])
    trace = case(3, [0, 100, 100], schedule=schedule, latency_s=0.0).run()
    assert trace.transfers["posted_s"].tolist() == [0.0, 0.0, 0.0]
    assert trace.transfers["arrived_s"].tolist() == [0.0, 2.0, 1.0]


def test_transfers_of_one_step_on_one_link_keep_their_order(case, custom):
    schedule = custom(2, [(0, 1, 3), (0, 1, 2), (0, 1, 1), (0, 1, 0)])
    trace = case(2, schedule=schedule).run()
    assert trace.transfers["chunk"].tolist() == [3, 2, 1, 0]
    assert trace.transfers["started_s"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_a_step_is_applied_by_source(case, custom, times):
    """What worker 2 sends is there at 3 s and waits for what worker 1 sends, which is there at 5.5 s."""
    links = {"1->switch": LinkChange(latency_s=3.0)}
    schedule = custom(3, [(2, 0, 0), (1, 0, 0)], op="reduce")
    trace = case(3, 200, schedule=schedule, topology="switch", links=links, recv_overhead_s=0.25).run()
    assert times(trace) == [(0.0, 0.0, 2.0, 3.0, 6.0), (0.0, 0.0, 2.0, 5.5, 5.75)]


# --------------------------------------------------------------------------------------------- pinned work


def test_ten_runs_give_the_same_bytes(case, bytes_of):
    links = {f"switch->{worker}": LinkChange(10.0 * (worker + 3), worker / 7) for worker in range(8)}
    uneven = case(8, [*range(50, 58)], topology="switch", links=links, recv_overhead_s=0.1, start_s=[*range(8)])
    assert len({bytes_of(uneven.run()) for _ in range(10)}) == 1


UNEQUAL = {f"{worker}->{(worker + 1) % 16}": LinkChange(10.0 * (worker + 1), worker / 7) for worker in range(16)}
WORK = [
    # what differs from a uniform ring of 16, hops, events for each transfer and hop
    ({}, 1, 2),
    ({"links": UNEQUAL}, 1, 2),
    ({"sends": "rendezvous"}, 1, 2),
    ({"links": UNEQUAL, "sends": "rendezvous"}, 1, 2),
    ({"start_s": [float(worker) for worker in range(16)]}, 1, 2),
    ({"topology": "switch"}, 2, 2),
    ({"topology": "switch", "switching": "store-and-forward"}, 2, 2),
    ({"reduce_Bps": 100.0, "send_overhead_s": 0.1, "recv_overhead_s": 0.1}, 1, 4),
]


@pytest.mark.parametrize(("changes", "hops", "limit"), WORK)
def test_the_number_of_events_is_pinned(case, changes, hops, limit):
    """Four for each transfer and hop are allowed; each worker and link has a few to begin with."""
    run = case(16, **changes)
    trace = run.run()
    to_begin_with = 3 * 16 + run.network.n_links
    assert trace.n_transfers == 480
    assert trace.counts["events"] <= limit * hops * trace.n_transfers + to_begin_with
