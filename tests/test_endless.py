"""Runs that would never end: whatever else goes on, they end with who waits for whom, or are refused."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest

from ringnet.engines.events import Job, Traffic, run_jobs
from ringnet.errors import DeadlockError
from ringnet.networks import OverTime, Window
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads

BACKGROUND = "background: [{from: 0, to: 1, burst: 64 KiB, rate: 5 GB/s}, {from: 3, to: 1, burst: 64 KiB}]"
HELD_BACK = ["", "window: 64 KiB", "window: {transfers: 1}", "window: 64 KiB, packet: 4 KiB, header: 64 B"]
ALGORITHMS = ["ring", "{name: channel-ring, n_channels: 2}", "double-binary-tree", "halving-doubling"]


def text(algorithm, sharing, sends, network="", rest=""):
    return f"""
    scenario_version: 1
    workers: 4
    message: 1 MiB
    algorithm: {algorithm}
    network: {{topology: switch, places: 8, bandwidth: 10 GB/s, latency: 1 us, sharing: {sharing}, {network}}}
    worker: {{sends: {sends}, exceptions: {{2: {{start: never}}}}}}
    {rest}
    """


def waits(scenario_text):
    """Who waits for whom, and for what; since when is another matter."""
    with pytest.raises(DeadlockError) as caught:
        simulate(loads(scenario_text))
    return [(wait.worker, wait.waits_for, wait.what) for wait in caught.value.waits]


@pytest.mark.parametrize(
    ("algorithm", "sharing", "sends", "network"),
    [*product(ALGORITHMS, ["fifo", "fair"], ["eager", "rendezvous"], HELD_BACK)],
)
def test_a_dead_worker_ends_the_run_beside_traffic_that_never_ends(algorithm, sharing, sends, network):
    alone = waits(text(algorithm, sharing, sends, network))
    assert waits(text(algorithm, sharing, sends, network, BACKGROUND)) == alone
    assert (2, 2, "its own start, which never comes") in alone


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_a_job_that_goes_on_is_waited_for(sharing):
    job = "jobs: [{workers: 4, message: 64 MiB}]"
    alone = waits(text("ring", sharing, "eager"))
    assert waits(text("ring", sharing, "eager", rest=f"{job}\n    {BACKGROUND}")) == alone


def test_traffic_that_begins_when_all_wait_ends_nothing():
    late = BACKGROUND.replace("rate", "start: 1 s, rate")
    assert waits(text("ring", "fifo", "eager", rest=late)) == waits(text("ring", "fifo", "eager"))


@pytest.mark.parametrize("start_s", [math.inf, 30.0])
def test_what_waits_for_credit_moves_only_if_credit_comes_back(case, custom, start_s):
    """Of two transfers from worker 0 to worker 1 one may be under way, and is applied once worker 2 has sent."""
    schedule = custom(3, [(2, 1, 0, 0)], [(0, 1, 1, 0)], [(0, 1, 2, 1)])
    built = case(3, schedule=schedule, topology="switch", latency_s=5.0, start_s=[0.0, 0.0, start_s])
    network = replace(built.network, window=Window(transfers=1))
    job = Job(schedule, network, built.workers, built.chunk_bytes)
    traffic = Traffic("beside", (0,), 10, every_s=1.0)
    if math.isfinite(start_s):
        (trace,) = run_jobs([job], network, [traffic])
        end_s = float(trace.workers["end_s"][1])
        assert end_s > start_s
        assert trace.links["bytes"][0] >= 2 * 100 + 10 * int(end_s)  # a burst each second until then
        return
    with pytest.raises(DeadlockError) as caught:
        run_jobs([job], network, [traffic])
    assert [wait.waits_for for wait in caught.value.waits if wait.worker == 1] == [2, 0]


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@pytest.mark.parametrize("window", [None, Window(bytes=80)])
def test_a_link_that_stops_for_ever_ends_the_run_and_one_that_rests_does_not(case, sharing, window):
    """From 1 s on nothing crosses 0->switch, for ever or for a minute; bursts go from worker 1 to worker 2."""
    built = case(3, topology="switch")
    (up,) = (link for link, name in enumerate(built.network.names) if name == "0->switch")
    traffic = Traffic("beside", built.network.route(1, 2), 10, every_s=1.0)
    for changes in (((1.0, 0.0),), ((1.0, 0.0), (61.0, 100.0))):
        behaviours = {up: OverTime(100.0, 0.5, changes)}
        network = replace(built.network, sharing=sharing, window=window, behaviours=behaviours)
        job = Job(built.schedule, network, built.workers, built.chunk_bytes)
        if len(changes) > 1:
            (trace,) = run_jobs([job], network, [traffic])
            end_s = float(trace.workers["end_s"].max())
            assert end_s > 61.0
            assert trace.links["bytes"][traffic.links[0]] >= 4 * 100 + 10 * int(end_s)
            continue
        with pytest.raises(DeadlockError) as caught:
            run_jobs([job], network, [traffic])
        assert (1, 0) in {(wait.worker, wait.waits_for) for wait in caught.value.waits}
