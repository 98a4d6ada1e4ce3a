"""Closed forms of the ring: by hand, against both engines, and silent where something differs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis.closed_form import (
    TransferCost,
    closed_form_s,
    ring_all_gather_s,
    ring_all_reduce_s,
    ring_reduce_scatter_s,
    uniform_cost,
)
from ringnet.collectives import ALGORITHMS, split_sizes
from ringnet.engines import ENGINES
from ringnet.networks import LinkChange, Network

EXACT = 1e-12
MESSAGES = [4, 1024, 2**20 - 4, 2**20, 64 * 2**20, 2**30]


def closed_form(run):
    return closed_form_s(run.schedule, run.network, run.workers, run.chunk_bytes)


def makespan(trace):
    return float(trace.workers["end_s"].max() - trace.workers["start_s"].min())


# ------------------------------------------------------------------------------------------------- by hand


def test_two_steps_of_each_phase():
    """Half a second, 200 bytes at 100 B/s, and 200 bytes reduced at 200 B/s."""
    cost = TransferCost(alpha_s=0.5, beta_s_per_byte=0.01, gamma_s_per_byte=0.005)
    assert ring_reduce_scatter_s(3, 200, cost) == 7.0
    assert ring_all_gather_s(3, 200, cost) == 5.0
    assert ring_all_reduce_s(3, 200, cost) == 12.0


COSTS = {"send_overhead_s": 0.25, "recv_overhead_s": 0.125, "reduce_Bps": 200.0}
HOPS = [
    ("ring", "cut-through", TransferCost(0.875, 0.01, 0.005)),
    ("ring", "store-and-forward", TransferCost(0.875, 0.01, 0.005)),
    ("switch", "cut-through", TransferCost(1.375, 0.01, 0.005)),
    ("switch", "store-and-forward", TransferCost(1.375, 0.02, 0.005)),
]


@pytest.mark.parametrize(("topology", "switching", "cost"), HOPS)
def test_what_a_transfer_to_the_neighbour_costs(case, topology, switching, cost):
    run = case(3, topology=topology, switching=switching, **COSTS)
    assert uniform_cost(run.network, run.workers) == cost


def test_eight_workers_and_a_mebibyte(case):
    """14 steps of 500 ns and 128 KiB at 50 GB/s; SimGrid says the same."""
    run = case(8, 2**17, bandwidth_Bps=50e9, latency_s=500e-9)
    assert closed_form(run) == pytest.approx(4.370016e-05, rel=EXACT)


def test_the_largest_chunk_counts(case):
    assert closed_form(case(3, [100, 300, 200])) == pytest.approx(4 * (0.5 + 3.0), rel=EXACT)


# ------------------------------------------------------------------------------------------------- engines


@pytest.mark.parametrize("n_workers", range(2, 65))
def test_uniform_rings_take_what_the_closed_form_says(case, n_workers):
    for message_bytes in MESSAGES:
        run = uniform(case, n_workers, message_bytes)
        trace = run.run(engine="recurrence", keep_transfers=0)
        assert makespan(trace) == pytest.approx(closed_form(run), rel=EXACT)


@pytest.mark.parametrize("collective", ALGORITHMS["ring"].collectives)
@pytest.mark.parametrize("message_bytes", MESSAGES)
@pytest.mark.parametrize("n_workers", [2, 3, 13, 32])
def test_and_so_they_do_in_simpy(case, n_workers, message_bytes, collective):
    run = uniform(case, n_workers, message_bytes, collective=collective)
    assert makespan(run.run()) == pytest.approx(closed_form(run), rel=EXACT)


@pytest.mark.parametrize("n_workers", [50, 64])
def test_and_large_ones(case, n_workers):
    run = uniform(case, n_workers, 2**30)
    assert makespan(run.run(keep_transfers=0)) == pytest.approx(closed_form(run), rel=EXACT)


def uniform(case, n_workers, message_bytes, **changes):
    chunk_bytes = (4 * split_sizes(message_bytes // 4, n_workers)).tolist()
    return case(n_workers, chunk_bytes, bandwidth_Bps=50e9, latency_s=500e-9, **changes)


SECONDS = st.just(0.0) | st.floats(1e-7, 1e-3)
UNIFORM = {
    "collective": st.sampled_from(ALGORITHMS["ring"].collectives),
    "topology": st.sampled_from(["ring", "switch"]),
    "switching": st.sampled_from(["cut-through", "store-and-forward"]),
    "bandwidth_Bps": st.floats(1e8, 1e11),
    "latency_s": SECONDS,
    "sends": st.sampled_from(["eager", "rendezvous"]),
    "start_s": st.sampled_from([0.0, 1.0]),
    "send_overhead_s": SECONDS,
    "recv_overhead_s": SECONDS,
    "launch_s": SECONDS,
    "reduce_Bps": st.just(np.inf) | st.floats(1e8, 1e11),
}


@pytest.mark.parametrize("engine", ENGINES)
@given(
    st.lists(st.integers(0, 3) | st.integers(0, 1_000_000), min_size=2, max_size=9),
    st.fixed_dictionaries(UNIFORM),
)
def test_all_that_is_uniform_has_a_closed_form(case, engine, chunk_bytes, drawn):
    """Overheads, reductions, both kinds of sends and of switching, chunks of any sizes, a common start."""
    run = case(len(chunk_bytes), chunk_bytes, **drawn)
    # A second at the start leaves its own rounding in times of microseconds.
    rounding_s = 1e-13 * drawn["start_s"]
    assert makespan(run.run(engine=engine)) == pytest.approx(closed_form(run), rel=EXACT, abs=rounding_s)


# -------------------------------------------------------------------------------------- where there is none

DIFFERENT = [
    {"links": {"1->2": LinkChange(99.0)}},
    {"links": {"1->2": LinkChange(latency_s=0.6)}},
    {"start_s": [0.0, 0.0, 1.0, 0.0]},
    {"launch_s": [0.0, 0.0, 1.0, 0.0]},
    {"send_overhead_s": [0.0, 0.0, 1.0, 0.0]},
    {"recv_overhead_s": [0.0, 0.0, 1.0, 0.0]},
    {"reduce_Bps": [100.0, 100.0, 99.0, 100.0]},
    {"topology": "switch", "links": {"2->switch": LinkChange(99.0)}},
    {"topology": "switch", "links": {f"switch->{worker}": LinkChange(99.0) for worker in range(4)}},
]


@pytest.mark.parametrize("changes", DIFFERENT)
def test_there_is_none_where_links_or_workers_differ(case, changes):
    assert closed_form(case(4, **changes)) is None


def test_there_is_none_for_one_worker_or_another_algorithm(case):
    assert closed_form(case(1)) is None
    other = case(4)
    assert closed_form(other.but(schedule=replace(other.schedule, algorithm="tree"))) is None
    assert closed_form(other.but(schedule=replace(other.schedule, make_steps=lambda: iter(())))) is None
    assert closed_form(other) is not None


def wired(routes, n_links):
    """Links that are all alike, and a route from each worker to its right-hand neighbour."""
    names = tuple(f"a{link}->b{link}" for link in range(n_links))
    columns = np.full(n_links, 100.0), np.full(n_links, 0.5)
    return Network("wired", len(routes), names, *columns, find_route=lambda src, dst: routes[src])


def test_there_is_none_where_routes_share_a_link_or_differ_in_length(case):
    run = case(3)
    assert closed_form(run.but(network=wired([(0,), (1,), (1,)], 2))) is None
    assert closed_form(run.but(network=wired([(0,), (1,), (2, 3)], 4))) is None


def test_a_link_that_no_neighbour_uses_may_be_as_it_likes(case):
    run = case(3)
    network = wired([(0,), (1,), (3,)], 4)
    network.bandwidth_Bps[2] = 1.0
    assert closed_form(run.but(network=network)) == closed_form(run) == 6.0
