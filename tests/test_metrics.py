"""What a trace means in numbers: shares of the time, tables, and the link that holds the others back.

Unless a test says otherwise a link has 100 B/s and half a second of latency, and a chunk 100 bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis import blame, frames, metrics, upgrades
from ringnet.analysis.answer import made_of_words
from ringnet.collectives import COLLECTIVES
from ringnet.engines import PATH_PARTS
from ringnet.networks import BySize, LinkChange, OverTime, Piece, change_links
from ringnet.networks.behaviour import ANY_SIZE


def shares(run):
    return {part: share for part, share in metrics.path_shares(run.run()).items() if share}


@dataclass(frozen=True)
class RunAgain:
    """Simulates a case again with other links and workers."""

    case: object
    affordable: int = 1000

    def __call__(self, upgrade):
        case = self.case
        changed = case.but(network=upgrade.of_network(case.network), workers=upgrade.of_workers(case.workers))
        return metrics.makespan_s(changed.run())


def slowest_of(run, affordable=1000):
    trace = run.run()
    links = upgrades.LinksInUse(run.network, trace.links)
    return blame.slowest_links(links, metrics.makespan_s(trace), RunAgain(run, affordable))


def slowest(run):
    """Name of the slowest link, where there is one alone."""
    links = slowest_of(run).links
    assert len(links) <= 1
    return run.network.names[links[0]] if links else None


# ----------------------------------------------------------------------------------------- time and shares


def test_the_makespan_is_from_the_first_start_to_the_last_end(case):
    assert metrics.makespan_s(case(2).run()) == 3.0
    assert metrics.makespan_s(case(2, start_s=[2.0, 5.0]).run()) == 6.0  # from 2 to 8
    assert metrics.makespan_s(case(1, start_s=2.0).run()) == 0.0


def test_shares_of_a_uniform_ring(case):
    assert shares(case(2)) == {"latency": pytest.approx(1 / 3), "bandwidth": pytest.approx(2 / 3)}


def test_shares_of_a_run_with_everything_in_it(case):
    """Two steps: 0.25 s to send, 1.5 s on the way, 0.125 s to receive; the first takes 0.5 s to reduce."""
    costs = {"send_overhead_s": 0.25, "recv_overhead_s": 0.125, "reduce_Bps": 200.0}
    assert metrics.makespan_s(case(2, **costs).run()) == 4.25
    assert shares(case(2, **costs)) == {
        "latency": pytest.approx(1.0 / 4.25),
        "bandwidth": pytest.approx(2.0 / 4.25),
        "overhead": pytest.approx(0.75 / 4.25),
        "reducing": pytest.approx(0.5 / 4.25),
    }


def test_a_late_start_is_waiting_and_a_taken_link_is_queueing(case):
    late = case(2, start_s=[0.0, 3.0])
    assert shares(late) == pytest.approx({"waiting": 1 / 2, "bandwidth": 1 / 3, "latency": 1 / 6})
    slow = case(3, latency_s=0.0, links={"0->1": LinkChange(25.0)})
    assert shares(slow) == pytest.approx({"bandwidth": 10 / 16, "queueing": 6 / 16})


@pytest.mark.parametrize(
    ("rates", "busiest"),
    [
        ([200.0] * 8, []),
        ([200.0] * 7 + [100.0], [7]),
        ([np.inf, 50.0, 100.0] + [np.inf] * 5, [1, 2]),
        ([50.0, 50.0, 50.0] + [np.inf] * 5, []),
        ([np.inf] * 7 + [1e6], []),
    ],
)
def test_the_few_workers_whose_processors_stand_out(case, rates, busiest):
    assert metrics.busiest_workers(case(8, reduce_Bps=rates).run()) == busiest


def test_shares_are_of_the_path_that_ended_last(case, custom):
    """Worker 2 ends at 4.5 s after four seconds on a slow link, worker 1 at 1.5 s."""
    schedule = custom(3, [(0, 1, 0), (1, 2, 0)])
    run = case(3, schedule=schedule, links={"1->2": LinkChange(25.0)})
    assert shares(run) == pytest.approx({"bandwidth": 4 / 4.5, "latency": 0.5 / 4.5})


@given(data=st.data())
def test_shares_add_up_to_one(data, cases):
    run = data.draw(cases()).run()
    parts = metrics.path_shares(run)
    assert tuple(parts) == (PATH_PARTS if metrics.makespan_s(run) else ())
    assert sum(parts.values()) == pytest.approx(1.0 if parts else 0.0, rel=1e-9, abs=0)
    assert min(parts.values(), default=0.0) >= -1e-12


@pytest.mark.parametrize("run", [{"n_workers": 1}, {"n_workers": 3, "chunk_bytes": 0, "latency_s": 0.0}])
def test_no_time_has_no_shares(case, run):
    assert metrics.path_shares(case(**run).run()) == {}


WORDS = [
    ({"latency": 0.07, "bandwidth": 0.93, "queueing": 0.0}, "93 % bandwidth, 7 % latency"),
    ({"latency": 1.0, "bandwidth": 0.0}, "100 % latency"),
    ({"latency": 0.004, "bandwidth": 0.996}, "100 % bandwidth"),
    ({"latency": 0.006, "bandwidth": 0.994}, "99 % bandwidth, 1 % latency"),
    ({"latency": -1e-17, "bandwidth": 0.5, "reducing": 0.5}, "50 % bandwidth, 50 % reducing"),
    ({}, ""),
]


@pytest.mark.parametrize(("parts", "words"), WORDS)
def test_in_words(parts, words):
    assert made_of_words({f"{part}_share": share for part, share in parts.items()}) == words


@pytest.mark.parametrize(
    ("collective", "factor"), [("all-reduce", 1.5), ("reduce-scatter", 0.75), ("all-gather", 0.75)]
)
def test_bytes_on_the_bus_for_each_byte_of_the_message(collective, factor):
    assert metrics.BUS_FACTORS[collective](4) == factor
    assert metrics.BUS_FACTORS[collective](1) == 0.0
    assert set(metrics.BUS_FACTORS) >= set(COLLECTIVES)


# -------------------------------------------------------------------------------------------------- tables


def test_a_row_for_each_link(case, custom):
    run = case(2, 200, schedule=custom(2, [(0, 1, 0)], [(0, 1, 0)]))
    frame = frames.as_frame(frames.link_table(run.run(), run.network))
    assert frame.pop("mean_wait_s").tolist() == [1.0, pytest.approx(np.nan, nan_ok=True)]
    assert frame.to_dict("records") == [
        {
            "link": "0->1",
            "from": "0",
            "to": "1",
            "bandwidth_Bps": 100.0,
            "latency_s": 0.5,
            "bytes": 400,
            "transfers": 2,
            "busy_s": 4.0,
            "occupied_s": 4.0,
            "utilisation": 4.0 / 4.5,
            "longest_queue": 1,
            "queued_s": 2.0,
        },
        {
            "link": "1->0",
            "from": "1",
            "to": "0",
            "bandwidth_Bps": 100.0,
            "latency_s": 0.5,
            "bytes": 0,
            "transfers": 0,
            "busy_s": 0.0,
            "occupied_s": 0.0,
            "utilisation": 0.0,
            "longest_queue": 0,
            "queued_s": 0.0,
        },
    ]


def test_a_link_that_is_held_is_not_busy(case, custom):
    """The down link passes 200 bytes in 2 s, and is held for 4 s by the slow up link; the run takes 5 s."""
    links = {"0->switch": LinkChange(50.0)}
    run = case(2, 200, schedule=custom(2, [(0, 1, 0)]), topology="switch", links=links)
    frame = frames.as_frame(frames.link_table(run.run(), run.network)).set_index("link")
    assert frame["utilisation"].to_dict() == {
        "0->switch": 0.8,
        "1->switch": 0.0,
        "switch->0": 0.0,
        "switch->1": 0.4,
    }
    assert frame["occupied_s"]["switch->1"] == 4.0


def test_links_of_one_worker(case):
    ring, switch = case(1), case(1, topology="switch")
    assert frames.as_frame(frames.link_table(ring.run(), ring.network)).empty
    frame = frames.as_frame(frames.link_table(switch.run(), switch.network))
    assert frame["utilisation"].isna().all()
    assert frame["transfers"].tolist() == [0, 0]


def test_a_row_for_each_worker(case):
    late = case(2, start_s=[0.0, 3.0])
    frame = frames.as_frame(frames.worker_table(late.run(), late.spent(late.run())))
    assert list(frame) == [
        "worker",
        "start_s",
        "end_s",
        "sent_bytes",
        "received_bytes",
        "overhead_s",
        "reducing_s",
        *(f"path_{part}_s" for part in PATH_PARTS),
        "own_queueing_s",
        "moving_s",
        "late_partner_s",
        "busy_link_s",
        "waiting_s",
        "idle_end_s",
    ]
    assert frame["worker"].tolist() == [0, 1]
    assert frame["end_s"].tolist() == [5.5, 6.0]
    assert frame["sent_bytes"].tolist() == [200, 200]
    assert frame["waiting_s"].tolist() == [2.0, 0.0]
    assert frame["idle_end_s"].tolist() == [0.5, 0.0]


# -------------------------------------------------------------------------------------------- slowest link

ONE_OF_EACH = {"1->2": LinkChange(bandwidth_Bps=25.0), "2->3": LinkChange(latency_s=5.0)}


def test_large_messages_find_the_link_of_low_bandwidth_and_small_ones_that_of_high_latency(case):
    """1000 bytes: 40.5 s against 15 s each; 1 byte: 0.54 s against 5.01 s."""
    assert slowest(case(4, 1000, links=ONE_OF_EACH)) == "1->2"
    assert slowest(case(4, 1, links=ONE_OF_EACH)) == "2->3"
    assert slowest(case(4, 0, links=ONE_OF_EACH)) == "2->3"


def test_a_slow_link_of_a_switch(case):
    assert slowest(case(4, topology="switch", links={"switch->2": LinkChange(99.0)})) == "switch->2"


def test_of_links_that_are_alike_none_is_slowest(case):
    assert slowest(case(4)) is None
    assert slowest(case(4, 0, latency_s=0.0)) is None
    assert slowest(case(1)) is None
    assert slowest(case(1, topology="switch")) is None


def test_a_link_that_carries_nothing_is_not_slowest(case, custom):
    schedule = custom(3, [(0, 1, 0), (1, 2, 0)])
    links = {"2->0": LinkChange(1.0), "1->2": LinkChange(99.0)}
    assert slowest(case(3, schedule=schedule, links=links)) == "1->2"


def test_the_only_links_that_carry_anything_are_not_slower_than_others(case, custom):
    schedule = custom(3, [(0, 1, 0)])
    assert slowest(case(3, schedule=schedule)) is None
    assert slowest(case(3, schedule=schedule, topology="switch")) is None


def test_a_link_that_becomes_slow_is_slowest(case):
    """From 1 s on link 1->2 has 10 B/s instead of 100."""
    run = case(4, 1000)
    changing = replace(run.network, behaviours={1: OverTime(100.0, 0.5, ((1.0, 10.0),))})
    assert slowest(run.but(network=changing)) == "1->2"


def test_a_link_that_is_slow_for_these_sizes_is_slowest(case):
    """Link 1->2 has 10 B/s, or 2->3 two seconds of latency, for small transfers only; for others all are alike."""
    run = case(4, 100)
    for link, piece in ((1, Piece(500, 10.0, 0.5)), (2, Piece(500, 100.0, 2.0))):
        by_size = BySize((piece, Piece(ANY_SIZE, 100.0, 0.5)))
        slow = run.but(network=replace(run.network, behaviours={link: by_size}))
        assert slowest(slow) == run.network.names[link]
        assert slowest(slow.but(chunk_bytes=slow.chunk_bytes * 10)) is None


def test_links_that_are_equally_slow_are_named_together(case):
    """One of the two alone gains nothing: the other takes as long."""
    run = case(4, 1000, links={"1->2": LinkChange(25.0), "2->3": LinkChange(25.0)})
    found = slowest_of(run)
    assert found.links == (1, 2)
    assert found.gain_s == metrics.makespan_s(run.run()) - metrics.makespan_s(case(4, 1000).run())


def test_a_slow_link_that_is_not_on_the_path_is_not_blamed(case):
    """Both are below their likes, but 2->3 takes less for all its transfers than 0->1 does."""
    run = case(4, 1000, links={"0->1": LinkChange(20.0), "2->3": LinkChange(90.0)})
    assert slowest(run) == "0->1"
    assert slowest(run.but(network=change_links(run.network, {"0->1": LinkChange(100.0)}))) == "2->3"


def test_where_no_mending_gains_none_is_slowest(case, custom):
    """Worker 1 starts late: the slow link before it has ended long since."""
    schedule = custom(3, [(0, 1, 0), (1, 2, 0)])
    found = slowest_of(case(3, schedule=schedule, links={"0->1": LinkChange(50.0)}, start_s=[0.0, 50.0, 0.0]))
    assert found == blame.SlowestLinks(gain_s=0.0, by="simulation")


def test_a_slow_card_is_blamed_with_both_its_directions(case):
    both = {"2->switch": LinkChange(25.0), "switch->2": LinkChange(25.0)}
    found = slowest_of(case(4, 1000, topology="switch", links=both))
    assert found.links == (2, 6)


def test_what_cannot_be_afforded_is_not_confirmed(case):
    run = case(4, 1000, links=ONE_OF_EACH)
    found = slowest_of(run, affordable=0)
    assert (found.links, found.by) == ((), "load")
    assert math.isnan(found.gain_s)
    one = slowest_of(run, affordable=1)
    assert (one.links, one.gain_s, one.by) == ((1,), slowest_of(run).gain_s, "trials")
    few = slowest_of(run, affordable=2)
    assert (few.links, few.gain_s) == ((1,), slowest_of(run).gain_s)
