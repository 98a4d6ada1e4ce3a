"""Windows and packets: what a sender may have on its way, and what links make of transfers that come in parts.

A link has 100 B/s and half a second of latency, so that credit comes back a second after a slot has left (one hop).
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringnet
from ringnet.engines import PATH_PARTS
from ringnet.networks.network import Packets, Window

#: Two workers, a link each way.
WIRES = {"there": (100.0, 0.5), "back": (100.0, 0.5)}
ROUTES = {(0, 1): ["there"], (1, 0): ["back"]}


@pytest.fixture
def one(case, custom, wired):
    """One transfer over one link, with a window or packets."""

    def make(n_bytes, sharing="fifo", wires=None, routes=None, **changes):
        network = replace(wired(wires or WIRES, routes or ROUTES, 2), sharing=sharing, **changes)
        return case(2, n_bytes, schedule=custom(2, [(0, 1, 0)])).but(network=network)

    return make


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_a_transfer_that_fits_takes_no_longer(one, times, sharing):
    alone = times(one(800, sharing).run())
    assert np.allclose(times(one(800, sharing, window=Window(bytes=800)).run()), alone, rtol=1e-12)
    assert times(one(800, sharing, window=Window(transfers=1)).run()) == alone


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_a_larger_window_makes_no_run_slower(case, sharing):
    """Also where a transfer, or two of them, only just fit."""
    ring = case(4, 160, topology="switch", bandwidth_Bps=100.0, latency_s=0.25)
    windows = [20, 80, 120, 150, 160, 200, 240, 320, 330, 480, 640, 2000]
    ends_s = [
        ring.but(network=replace(ring.network, sharing=sharing, window=Window(bytes=window)))
        .run()
        .workers["end_s"]
        .max()
        for window in windows
    ]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(ends_s))
    assert ends_s[-1] < ends_s[0] / 2


def test_slots_that_are_cut_into_packets_keep_their_order(one):
    """All slots are at the link at once: the packets of the last must not overtake those of the first."""
    trace = one(300, window=Window(bytes=800), packets=Packets(70)).run()
    free = one(300, packets=Packets(70)).run()
    assert trace.workers["end_s"][1] == pytest.approx(free.workers["end_s"][1])
    assert trace.transfers["started_s"].tolist() == [0.0]


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_a_window_slides_by_an_eighth(one, sharing):
    # Slots of 10 bytes, a tenth of a second: eight go at once, and from 1.1 s on one for each that has come back.
    trace = one(160, sharing, window=Window(bytes=80)).run()
    assert trace.workers["end_s"][1] == pytest.approx(1.1 + 0.8 + 0.5)
    assert trace.links["bytes"].tolist() == [160, 0]
    assert trace.links["transfers"].tolist() == [1, 0]
    assert trace.links["busy_s"].tolist() == pytest.approx([1.6, 0.0])


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@pytest.mark.parametrize("window", [40, 80, 160, 400])
def test_throughput_is_what_the_window_lets_through(one, sharing, window):
    n_bytes, there_and_back_s = 40_000, 1.0
    end_s = float(one(n_bytes, sharing, window=Window(bytes=window)).run().workers["end_s"][1])
    slot_s = window / 8 / 100.0
    assert n_bytes / end_s == pytest.approx(min(100.0, window / (slot_s + there_and_back_s)), rel=0.01)
    assert n_bytes / end_s < window / there_and_back_s


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_a_window_that_is_long_enough_costs_nothing(one, sharing):
    trace = one(10_000, sharing, window=Window(bytes=160)).run()
    assert trace.workers["end_s"][1] == pytest.approx(100.5)
    # Slots of one transfer follow each other: they do not queue.
    assert trace.links["longest_queue"].tolist() == [0, 0]
    assert trace.links["queued_s"].tolist() == [0.0, 0.0]
    assert len(trace.waits["link"]) == 0


def with_window(text, **changes):
    network = {"topology": "switch", "bandwidth": "12.5 GB/s", "latency": "500 us", "window": text, **changes}
    scenario = ringnet.scenario(workers=4, message="64 MiB", payload="none", network=network)
    result = ringnet.simulate(scenario)
    return result.summary["makespan_s"], [note for note in result.notes if note.startswith("network.window: ")]


def test_the_window_that_a_note_names_is_the_least_that_costs_nothing():
    narrow_s, (note,) = with_window("4 MiB")
    assert note.startswith("network.window: 4 MiB let at most 2.054 GB/s through from 0 to 1, 2 ms there and back: ")
    enough = re.search(r"back: (\d+\.\d+ MiB) would", note)[1]
    least_s, of_enough = with_window(enough)
    assert of_enough == []
    assert narrow_s > 2 * least_s
    assert least_s == pytest.approx(with_window("1 GiB")[0], rel=1e-4)
    assert with_window("12 MiB")[0] > 1.05 * least_s
    assert with_window("16 MiB", latency="5 us")[1] == []


def test_what_waits_for_credit_has_queued(one):
    trace = one(160, window=Window(bytes=80)).run()
    path = {part: float(trace.workers[f"path_{part}_s"][1]) for part in ("latency", "bandwidth", "queueing")}
    assert path == pytest.approx({"latency": 0.5, "bandwidth": 1.6, "queueing": 0.3})


def test_bytes_that_are_no_multiple_of_a_slot_all_arrive(one):
    trace = one(163, window=Window(bytes=85)).run()  # slots of 10, the last of 3
    assert trace.links["bytes"].tolist() == [163, 0]
    assert trace.workers["received_bytes"].tolist() == [0, 163]


@pytest.mark.parametrize("window", [1, 7])
def test_a_window_of_less_than_eight_bytes_lets_single_bytes_through(one, window):
    trace = one(10, window=Window(bytes=window)).run()
    assert trace.workers["received_bytes"].tolist() == [0, 10]


def test_a_window_of_transfers_holds_back_whole_ones(case, custom, wired, times):
    schedule = custom(2, [(0, 1, 0)], [(0, 1, 1)], [(0, 1, 2)])
    network = replace(wired(WIRES, ROUTES, 2), window=Window(transfers=2))
    trace = case(2, 100, schedule=schedule).but(network=network).run()
    # Applied at 1.5 s, credit at 2 s: the third starts with what is free of the link by then.
    assert [row[1] for row in times(trace)] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_two_transfers_share_the_window_of_their_connection(case, custom, wired, sharing):
    schedule = custom(2, [(0, 1, 0)], [(0, 1, 1)])
    network = replace(wired(WIRES, ROUTES, 2), sharing=sharing, window=Window(bytes=80))
    trace = case(2, 80, schedule=schedule).but(network=network).run()
    # The credit of the first slot is there at 1.1 s, that of the last at 1.8 s: as fast as one transfer of 160 bytes.
    assert trace.workers["end_s"][1] == pytest.approx(1.1 + 0.8 + 0.5)


def test_slots_are_one_flow_among_others(case, custom, wired):
    """A connection with a window takes no more of a fair link than one without."""
    wires = {"a": (1e6, 0.0), "b": (1e6, 0.0), "trunk": (100.0, 0.0), "back": (1e6, 0.0)}
    routes = {(0, 2): ["a", "trunk"], (1, 2): ["b", "trunk"], (2, 0): ["back"], (2, 1): ["back"]}
    schedule = custom(3, [(0, 2, 0), (1, 2, 1)])
    network = replace(wired(wires, routes, 3), sharing="fair", window=Window(bytes=160))
    trace = case(3, [1000, 100], schedule=schedule).but(network=network).run()
    # Together 100 B/s: the small one, which fits, has half of it, and so ends at 2 s.
    assert trace.transfers["arrived_s"].tolist() == pytest.approx([11.0, 2.0])
    assert trace.links["longest_queue"].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("packet", [16, 100])
def test_packets_of_one_transfer_do_not_queue(one, packet):
    wires = {"a": (100.0, 0.5), "b": (50.0, 0.5), "back": (100.0, 0.5)}
    routes = {(0, 1): ["a", "b"], (1, 0): ["back"]}
    trace = one(320, wires=wires, routes=routes, packets=Packets(packet)).run()
    assert trace.workers["end_s"][1] == pytest.approx(320 / 50 + 1.0)
    assert trace.links["longest_queue"].tolist() == [0, 0, 0]
    assert trace.links["queued_s"] == pytest.approx(np.zeros(3), abs=1e-9)


def test_packets_of_two_transfers_wait_for_each_other(case, custom, wired):
    wires = {"a": (100.0, 0.0), "b": (100.0, 0.0), "trunk": (100.0, 0.0)}
    routes = {(0, 2): ["a", "trunk"], (1, 2): ["b", "trunk"]}
    schedule = custom(3, [(0, 2, 0), (1, 2, 1)])
    network = replace(wired(wires, routes, 3), packets=Packets(100))
    trace = case(3, 200, schedule=schedule).but(network=network).run()
    # In turns: 0 has 0 to 1 s and 2 to 3 s, 1 the others. Worker 0 waits from 1 to 2 s, worker 1 for a second twice.
    assert trace.transfers["arrived_s"].tolist() == [3.0, 4.0]
    assert trace.links["longest_queue"].tolist() == [0, 0, 1]
    assert trace.links["queued_s"].tolist() == [0.0, 0.0, 3.0]
    waits = trace.waits
    assert sorted(zip(waits["from_s"].tolist(), waits["to_s"].tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]


@given(st.data())
def test_nothing_is_lost_and_paths_add_up(cases, data):
    """On random unequal networks: each byte arrives, and paths add up, whatever the window."""
    case = data.draw(cases(topology="switch"))
    window = data.draw(st.integers(1, 40)) * 50_000
    packets = data.draw(st.sampled_from([None, Packets(70_000, 100)]))
    for sharing in ("fifo", "fair"):
        free = replace(case.network, sharing=sharing, packets=packets if sharing == "fifo" else None)
        held = replace(free, window=Window(bytes=window))
        before, after = (case.but(network=network).run() for network in (free, held))
        for name in ("sent_bytes", "received_bytes"):
            assert after.workers[name].tolist() == before.workers[name].tolist()
        assert after.links["transfers"].tolist() == before.links["transfers"].tolist()
        if packets is None:
            assert after.links["bytes"].tolist() == before.links["bytes"].tolist()
        ends_s, first_s = after.workers["end_s"], float(after.workers["start_s"].min())
        paths_s = sum(after.workers[f"path_{part}_s"] for part in PATH_PARTS)
        assert paths_s == pytest.approx(ends_s - first_s, rel=1e-6, abs=1e-12)
        assert (after.links["queued_s"] >= 0).all()
        assert (after.links["longest_queue"] <= case.schedule.n_transfers).all()
