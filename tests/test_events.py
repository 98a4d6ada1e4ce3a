"""The events engine, one story at a time; every time is worked out by hand from the timing model.

Unless a story says otherwise a link has 100 B/s and half a second of latency, and a chunk 100 bytes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ringnet.engines import PATH_PARTS
from ringnet.errors import DeadlockError, NetworkError, Wait
from ringnet.networks import LinkChange

NEVER = float("inf")
SENDS = ("eager", "rendezvous")
SLOW, FAST = LinkChange(50.0), LinkChange(200.0)


def path(trace, worker):
    """What the path that ended last at a worker is made of, without the parts that are zero."""
    parts = {part: float(trace.workers[f"path_{part}_s"][worker]) for part in PATH_PARTS}
    return {part: seconds for part, seconds in parts.items() if seconds}


# -------------------------------------------------------------------------------------------- one transfer


def test_one_transfer_on_one_link(case, custom, times):
    one = case(2, 200, schedule=custom(2, [(0, 1, 0)]))
    trace = one.run()
    assert times(trace) == [(0.0, 0.0, 2.0, 2.5, 2.5)]
    assert trace.workers["end_s"].tolist() == [0.0, 2.5]
    assert one.spent(trace)["moving_s"].tolist() == [0.0, 2.5]
    assert one.spent(trace)["waiting_s"].tolist() == [0.0, 0.0]


def test_a_processor_takes_its_overheads_and_reduces(case, custom, times):
    costs = {"send_overhead_s": 0.25, "recv_overhead_s": 0.125, "reduce_Bps": 400.0}
    trace = case(2, 200, schedule=custom(2, [(0, 1, 0)], op="reduce"), **costs).run()
    assert times(trace) == [(0.25, 0.25, 2.25, 2.75, 3.375)]
    assert trace.workers["overhead_s"].tolist() == [0.25, 0.125]
    assert trace.workers["reducing_s"].tolist() == [0.0, 0.5]
    assert path(trace, 1) == {"latency": 0.5, "bandwidth": 2.0, "overhead": 0.375, "reducing": 0.5}


def test_a_copy_is_free(case, custom, times):
    trace = case(2, 200, schedule=custom(2, [(0, 1, 0)], op="copy"), reduce_Bps=400.0).run()
    assert times(trace) == [(0.0, 0.0, 2.0, 2.5, 2.5)]


def test_an_empty_transfer_costs_its_latency(case, times):
    trace = case(3, 0).run()
    assert trace.workers["end_s"].tolist() == [2.0, 2.0, 2.0]  # four steps
    assert times(trace)[-1] == (1.5, 1.5, 1.5, 2.0, 2.0)
    assert trace.links["transfers"].tolist() == [4, 4, 4]
    assert trace.links["busy_s"].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("topology", ["ring", "switch"])
@pytest.mark.parametrize("sends", ["eager", "rendezvous"])
def test_one_worker_has_nothing_to_do(case, topology, sends):
    trace = case(1, topology=topology, sends=sends, start_s=3.0, send_overhead_s=1.0).run()
    assert (trace.n_transfers, len(trace.transfers["src"])) == (0, 0)
    assert trace.workers["start_s"].tolist() == trace.workers["end_s"].tolist() == [3.0]
    assert trace.links["bytes"].sum() == 0


# ------------------------------------------------------------------------------------------------ two hops

TWO_HOPS = [
    # switching, change of the up link, change of the down link, sent, arrived, seconds the down link is held
    ("cut-through", None, None, 2.0, 3.0, 2.0),
    ("cut-through", None, SLOW, 2.0, 5.0, 4.0),
    ("cut-through", SLOW, None, 4.0, 5.0, 4.0),  # the tail comes late: held for 4 s, busy for 2
    ("cut-through", SLOW, FAST, 4.0, 5.0, 4.0),
    ("store-and-forward", None, None, 2.0, 5.0, 2.0),
    ("store-and-forward", None, SLOW, 2.0, 7.0, 4.0),
    ("store-and-forward", SLOW, None, 4.0, 7.0, 2.0),
    ("store-and-forward", SLOW, FAST, 4.0, 6.0, 1.0),
]


@pytest.mark.parametrize("row", TWO_HOPS)
def test_two_hops(case, custom, times, row):
    switching, up, down, sent_s, arrived_s, occupied_s = row
    links = {"0->switch": up or LinkChange(), "switch->1": down or LinkChange()}
    schedule = custom(2, [(0, 1, 0)])
    trace = case(2, 200, schedule=schedule, topology="switch", switching=switching, links=links).run()
    assert times(trace) == [(0.0, 0.0, sent_s, arrived_s, arrived_s)]
    assert trace.links["occupied_s"].tolist() == [sent_s, 0.0, 0.0, occupied_s]
    assert path(trace, 1) == {"latency": 1.0, "bandwidth": arrived_s - 1.0}


@pytest.mark.parametrize(("switching", "arrived_s"), [("cut-through", 5.5), ("store-and-forward", 9.5)])
def test_three_hops_with_a_slow_one_in_the_middle(case, custom, wired, times, switching, arrived_s):
    links = {"a": (100, 0.5), "b": (50, 0.5), "c": (100, 0.5)}
    network = replace(wired(links, {(0, 1): "abc"}, 2), switching=switching)
    trace = case(2, 200, schedule=custom(2, [(0, 1, 0)])).but(network=network).run()
    assert times(trace) == [(0.0, 0.0, 2.0, arrived_s, arrived_s)]
    assert trace.links["busy_s"].tolist() == [2.0, 4.0, 2.0]


def test_a_big_link_behind_slow_ones_is_held_by_each_in_turn(case, custom, times):
    links = {"1->switch": SLOW, "2->switch": SLOW}
    schedule = custom(3, [(1, 0, 0), (2, 0, 0)])
    trace = case(3, 200, schedule=schedule, topology="switch", links=links).run()
    # The second head is there at 0.5 s and served at 4.5 s, when the first tail has passed.
    assert times(trace) == [(0.0, 0.0, 4.0, 5.0, 5.0), (0.0, 0.0, 4.0, 7.0, 7.0)]
    down = 3
    assert trace.links["busy_s"][down] == 4.0
    assert trace.links["occupied_s"][down] == 6.0
    assert (trace.links["longest_queue"][down], trace.links["queued_s"][down]) == (1, 4.0)
    # Of its 7 s the second transfer would need 5 alone.
    assert path(trace, 0) == {"latency": 1.0, "bandwidth": 4.0, "queueing": 2.0}


def test_what_is_stored_whole_waits_whole(case, custom, times):
    links = {"1->switch": SLOW, "2->switch": SLOW}
    schedule = custom(3, [(1, 0, 0), (2, 0, 0)])
    trace = case(3, 200, schedule=schedule, topology="switch", switching="store-and-forward", links=links).run()
    # Both are there whole at 4.5 s.
    assert times(trace) == [(0.0, 0.0, 4.0, 7.0, 7.0), (0.0, 0.0, 4.0, 9.0, 9.0)]
    assert path(trace, 0) == {"latency": 1.0, "bandwidth": 6.0, "queueing": 2.0}


# -------------------------------------------------------------------------------------------------- queues


def test_what_was_posted_waits_for_the_link(case, custom, times):
    trace = case(2, 200, schedule=custom(2, [(0, 1, 0)], [(0, 1, 1)], [(0, 1, 2)])).run()
    assert times(trace) == [(0.0, 0.0, 2.0, 2.5, 2.5), (0.0, 2.0, 4.0, 4.5, 4.5), (0.0, 4.0, 6.0, 6.5, 6.5)]
    assert trace.links["longest_queue"].tolist() == [2, 0]
    assert trace.links["queued_s"].tolist() == [6.0, 0.0]
    assert path(trace, 1) == {"latency": 0.5, "bandwidth": 2.0, "queueing": 4.0}


def test_empty_transfers_that_leave_at_once_do_not_queue(case, custom):
    trace = case(2, 0, schedule=custom(2, [(0, 1, 0)], [(0, 1, 1)], [(0, 1, 2)])).run()
    assert trace.links["longest_queue"].tolist() == [0, 0]


def test_eager_senders_fill_the_queue_of_a_slow_link(case):
    trace = case(3, latency_s=0.0, links={"0->1": LinkChange(25.0)}).run()
    assert trace.workers["end_s"].tolist() == [10.0, 16.0, 13.0]
    assert trace.links["longest_queue"].tolist() == [2, 0, 0]
    assert trace.links["queued_s"].tolist() == [15.0, 0.0, 0.0]  # 1 to 4 s, 2 to 8, 6 to 12
    # Worker 0 runs ahead: what it waits for is posted early, what it sends queues.
    assert trace.transfers["posted_s"][trace.transfers["src"] == 0].tolist() == [0.0, 1.0, 2.0, 6.0]
    assert path(trace, 1) == {"bandwidth": 10.0, "queueing": 6.0}


def test_in_a_rendezvous_a_slow_link_has_no_queue(case):
    trace = case(3, latency_s=0.0, links={"0->1": LinkChange(25.0)}, sends="rendezvous").run()
    assert trace.workers["end_s"].tolist() == [16.0, 16.0, 13.0]
    assert trace.links["longest_queue"].tolist() == [0, 0, 0]
    started = trace.transfers["started_s"].reshape(4, 3).tolist()  # by step and sender
    assert started == [[0.0, 0.0, 0.0], [4.0, 4.0, 4.0], [8.0, 8.0, 8.0], [12.0, 12.0, 12.0]]


# --------------------------------------------------------------------------------------------- start times


def test_a_worker_that_starts_late_finds_what_was_sent_early(case, times):
    late = case(2, start_s=[0.0, 3.0])
    trace = late.run()
    assert times(trace) == [
        (0.0, 0.0, 1.0, 1.5, 3.0),  # 0 -> 1 is there before its receiver
        (3.0, 3.0, 4.0, 4.5, 4.5),
        (4.5, 4.5, 5.5, 6.0, 6.0),
        (3.0, 4.0, 5.0, 5.5, 5.5),  # 1 -> 0 waits for its link
    ]
    assert trace.workers["end_s"].tolist() == [5.5, 6.0]
    assert late.spent(trace)["late_partner_s"].tolist() == [2.0, 0.0]  # from 1, when its own is gone, to 3
    assert late.spent(trace)["moving_s"].tolist() == [3.5, 3.0]
    assert path(trace, 0) == {"waiting": 3.0, "bandwidth": 1.0, "queueing": 1.0, "latency": 0.5}
    assert path(trace, 1) == {"waiting": 3.0, "bandwidth": 2.0, "latency": 1.0}


def test_a_path_starts_with_the_first_worker(case):
    trace = case(2, start_s=[2.0, 5.0]).run()
    assert trace.workers["end_s"].tolist() == [7.5, 8.0]
    assert path(trace, 1) == {"waiting": 3.0, "bandwidth": 2.0, "latency": 1.0}


# ---------------------------------------------------------------------------------------------- rendezvous


def test_a_rendezvous_waits_for_a_late_receiver(case, times):
    late = case(2, start_s=[0.0, 3.0], sends="rendezvous")
    trace = late.run()
    assert times(trace) == [
        (0.0, 3.0, 4.0, 4.5, 4.5),  # posted at 0, and its receiver comes at 3
        (3.0, 3.0, 4.0, 4.5, 4.5),
        (4.5, 4.5, 5.5, 6.0, 6.0),
        (4.5, 4.5, 5.5, 6.0, 6.0),
    ]
    assert late.spent(trace)["late_partner_s"].tolist() == [3.0, 0.0]
    assert late.spent(trace)["moving_s"].tolist() == [3.0, 3.0]
    assert path(trace, 0) == path(trace, 1) == {"waiting": 3.0, "bandwidth": 2.0, "latency": 1.0}


@pytest.mark.parametrize(("start_s", "started_s"), [([0.0, 3.0], 3.0), ([3.0, 0.0], 3.25)])
def test_they_meet_after_the_send_overhead(case, custom, times, start_s, started_s):
    """A late receiver is ready as it comes; a late sender has its overhead before it."""
    costs = {"send_overhead_s": 0.25, "recv_overhead_s": 0.5}
    trace = case(2, schedule=custom(2, [(0, 1, 0)]), start_s=start_s, sends="rendezvous", **costs).run()
    posted_s = start_s[0] + 0.25
    assert times(trace) == [(posted_s, started_s, started_s + 1, started_s + 1.5, started_s + 2)]


def test_a_sender_is_released_at_arrival(case, custom, times):
    """Before the receive overhead; its next transfer waits for the receiver, not in the step yet."""
    schedule = custom(2, [(0, 1, 0)], [(0, 1, 0)])
    eager, rendezvous = (case(2, 200, schedule=schedule, recv_overhead_s=1.0, sends=sends) for sends in SENDS)
    assert times(rendezvous.run()) == [(0.0, 0.0, 2.0, 2.5, 3.5), (2.5, 3.5, 5.5, 6.0, 7.0)]
    assert rendezvous.run().workers["end_s"].tolist() == [6.0, 7.0]
    assert times(eager.run()) == [(0.0, 0.0, 2.0, 2.5, 3.5), (0.0, 2.0, 4.0, 4.5, 5.5)]
    assert eager.run().workers["end_s"].tolist() == [0.0, 5.5]


# ------------------------------------------------------------------------------------------------ channels


def test_channels_run_beside_each_other_on_one_processor(case, custom, times):
    schedule = custom(2, [(0, 1, 0, 0), (0, 1, 1, 1)])
    trace = case(2, schedule=schedule, send_overhead_s=0.25, recv_overhead_s=2.0).run()
    # Posted one after the other, queued behind each other, received one after the other: the path goes back to the
    # first that was received, for which the processor had no time for the second.
    assert times(trace) == [(0.25, 0.25, 1.25, 1.75, 3.75), (0.5, 1.25, 2.25, 2.75, 5.75)]
    assert path(trace, 1) == {"latency": 0.5, "bandwidth": 1.0, "overhead": 4.25}
    assert trace.workers["overhead_s"].tolist() == [0.5, 4.0]


def test_a_channel_does_not_wait_for_another(case, custom, times):
    """Channel 0 of worker 1 waits until worker 0 has started; channel 1 does both its steps before."""
    schedule = custom(3, [(0, 1, 0, 0), (2, 1, 1, 1)], [(1, 2, 0, 0), (1, 2, 1, 1)])
    trace = case(3, schedule=schedule, topology="switch", start_s=[10.0, 0.0, 0.0]).run()
    assert times(trace) == [
        (10.0, 10.0, 11.0, 12.0, 12.0),
        (0.0, 0.0, 1.0, 2.0, 2.0),
        (12.0, 12.0, 13.0, 14.0, 14.0),
        (2.0, 2.0, 3.0, 4.0, 4.0),
    ]
    assert trace.workers["end_s"].tolist() == [10.0, 12.0, 14.0]


def test_a_channel_sends_what_another_has_brought(case, custom, times):
    """Channel 1 of worker 1 does not send chunk 0 before channel 0 has applied what came for it."""
    schedule = custom(3, [(0, 1, 0, 0)], [(1, 2, 0, 1)])
    trace = case(3, schedule=schedule, recv_overhead_s=1.0).run()
    assert times(trace) == [(0.0, 0.0, 1.0, 1.5, 2.5), (2.5, 2.5, 3.5, 4.0, 5.0)]
    assert path(trace, 2) == {"latency": 1.0, "bandwidth": 2.0, "overhead": 2.0}


def test_a_channel_does_not_change_what_another_has_yet_to_send(case, custom, times):
    """Chunk 0 of worker 1 leaves on channel 1 before channel 0 replaces it: what came at 2 s waits to 7 s."""
    schedule = custom(3, [(2, 1, 1, 1)], [(1, 2, 0, 1)], [(0, 1, 0, 0)])
    trace = case(3, schedule=schedule, topology="switch", start_s=[0.0, 0.0, 5.0]).run()
    assert times(trace) == [(5.0, 5.0, 6.0, 7.0, 7.0), (7.0, 7.0, 8.0, 9.0, 9.0), (0.0, 0.0, 1.0, 2.0, 7.0)]


def test_a_transfer_may_be_received_on_another_channel(case, custom, times):
    """Worker 1 waits for it on channel 1, so that its channel 0 goes on to the next step at once."""
    schedule = custom(2, [(0, 1, 0, 0, 1)], [(1, 0, 1, 0)])
    trace = case(2, schedule=schedule).run()
    assert times(trace) == [(0.0, 0.0, 1.0, 1.5, 1.5)] * 2


# ------------------------------------------------------------------------------------- what cannot be done

NEVER_STARTS = Wait(2, 2, "its own start, which never comes", 0.0)


def test_a_worker_that_never_starts(case):
    with pytest.raises(DeadlockError) as caught:
        case(3, start_s=[0.0, 0.0, NEVER]).run()
    assert caught.value.waits == (
        Wait(0, 2, "to send chunk 2 in reduce-scatter step 0", 0.0),
        Wait(1, 0, "to send chunk 2 in reduce-scatter step 1", 1.5),
        NEVER_STARTS,
    )
    assert caught.value.exit_code == 3
    assert str(caught.value).splitlines() == [
        "the run cannot finish: 3 worker(s) wait for ever",
        "  worker 0 waits for worker 2: to send chunk 2 in reduce-scatter step 0, since 0 s",
        "  worker 1 waits for worker 0: to send chunk 2 in reduce-scatter step 1, since 1.5 s",
        "  worker 2 waits for its own start, which never comes, since 0 s",
    ]


def test_in_a_rendezvous_its_sender_is_stuck_too(case):
    with pytest.raises(DeadlockError) as caught:
        case(3, start_s=[0.0, 0.0, NEVER], sends="rendezvous").run()
    assert caught.value.waits == (
        Wait(0, 2, "to send chunk 2 in reduce-scatter step 0", 0.0),
        Wait(1, 2, "to receive chunk 1 in reduce-scatter step 0", 1.5),
        NEVER_STARTS,
    )


def test_nobody_starts(case):
    with pytest.raises(DeadlockError, match="worker 1 waits for its own start, which never comes"):
        case(2, start_s=NEVER).run()


def test_a_worker_with_no_part_in_it_may_be_dead(case, custom):
    with pytest.raises(DeadlockError) as caught:
        case(3, schedule=custom(3, [(0, 1, 0)]), start_s=[0.0, 0.0, NEVER]).run()
    assert caught.value.waits == (NEVER_STARTS,)


def test_a_missing_route_is_named(case, custom):
    with pytest.raises(NetworkError, match="from worker 0 to worker 1 only, not to 2"):
        case(3, schedule=custom(3, [(0, 2, 0)])).run()
