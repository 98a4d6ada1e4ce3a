"""Large rings: runs of alike steps at once, the same to the last bit; a proof in which one worker stands for all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ringnet.collectives import ALGORITHMS, check, make_schedule, make_step
from ringnet.collectives.one_for_all import OneForAll
from ringnet.collectives.rings import _RingSteps
from ringnet.engines import Workers
from ringnet.engines.arrays import run_recurrence
from ringnet.engines.arrays.leaps import Leaps
from ringnet.engines.arrays.steps import Steps
from ringnet.errors import ScheduleError
from ringnet.networks import make_network

#: Of workers: what all of them cost.
KINDS = [
    {},
    {"sends": "rendezvous"},
    {"send_overhead_s": 1e-6, "recv_overhead_s": 3e-7, "reduce_Bps": 1.1e11},
    {"launch_s": 7e-6},
]


@pytest.fixture
def done(monkeypatch):
    """The steps that were done, one by one."""
    found, do = [], Steps.do
    monkeypatch.setattr(Steps, "do", lambda self, step: (found.append(step), do(self, step)))
    return found


def both_ways(monkeypatch, *what):
    """Return the trace of a run with leaps, and that of one without."""
    with_leaps = run_recurrence(*what, keep_transfers=1)
    with monkeypatch.context() as without:
        without.setattr(Leaps, "do", lambda self, step: self.steps.do(step))
        return with_leaps, run_recurrence(*what, keep_transfers=1)


def assert_same(one, other):
    for name in ("links", "workers", "waits"):
        for column, values in getattr(one, name).items():
            assert values.tobytes() == getattr(other, name)[column].tobytes(), (name, column)
    assert one.n_transfers == other.n_transfers
    assert one.recall() == other.recall()


@pytest.mark.parametrize("n_workers", [5, 64, 333, 1024])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_leaps_are_the_steps_to_the_last_bit(monkeypatch, done, n_workers, kind):
    drawn = np.random.default_rng(n_workers)
    for topology in ("ring", "switch"):
        network = make_network(topology, n_workers, drawn.uniform(1e9, 1e11), drawn.uniform(0, 2e-6))
        schedule, sizes = ALGORITHMS["ring"].build(n_workers), np.full(n_workers, drawn.integers(1, 10**6))
        network = replace(network, sharing="fifo")
        done.clear()
        assert_same(*both_ways(monkeypatch, schedule, network, Workers.alike(n_workers, **kind), sizes))
        if n_workers >= 333:
            assert len(done) - schedule.n_steps < schedule.n_steps * 0.7  # the others are of the run without


def test_what_lies_half_way_between_two_numbers_goes_to_the_even_one_in_leaps_as_well(monkeypatch):
    # Service and latency end in halves of what the last bit stands for, of times from a half to two seconds.
    for half in (2.0**-53, 2.0**-54, 3 * 2.0**-54, 5 * 2.0**-53):
        network = make_network("ring", 200, 1 / (2.0**-9 + half), 2.0**-10 + 3 * half)
        what = (ALGORITHMS["ring"].build(200), network, Workers.alike(200), np.ones(200, dtype=np.int64))
        assert_same(*both_ways(monkeypatch, *what))


def odd_ones():
    alike = Workers.alike(256)
    late, slow = alike.start_s.copy(), np.full(256, np.inf)
    late[7], slow[9] = 3e-5, 1e9
    bandwidth_Bps, latency_s = np.full(256, 5e10), np.full(256, 5e-7)
    bandwidth_Bps[100], latency_s[200] = 2e10, 9e-6
    ring = make_network("ring", 256, 5e10, 5e-7)
    yield replace(ring, bandwidth_Bps=bandwidth_Bps), alike
    yield replace(ring, latency_s=latency_s), alike
    yield ring, replace(alike, start_s=late)
    yield ring, replace(alike, reduce_Bps=slow)
    yield replace(ring, bandwidth_Bps=bandwidth_Bps), replace(alike, sends="rendezvous")


@pytest.mark.parametrize(("network", "workers"), [*odd_ones()])
def test_one_odd_link_or_worker_is_seen(monkeypatch, network, workers):
    for size in (
        4096,
        4_000_000,
    ):  # latency, or bandwidth and so queues, of one lap and the same ones in the next
        what = (ALGORITHMS["ring"].build(256), network, workers, np.full(256, size))
        assert_same(*both_ways(monkeypatch, *what))


def test_steps_in_which_something_waits_are_done_one_by_one(monkeypatch, done):
    # Two chunks to the right in each step: the second waits for the link behind the first.
    twice = np.tile(np.arange(8), 2)
    step = make_step("copy", 0, twice, (twice + 1) % 8, twice)
    schedule = make_schedule("pairs", "all-reduce", 8, 8, [step] * 300)
    what = (schedule, make_network("ring", 8, 5e10, 5e-7), Workers.alike(8), np.full(8, 4096))
    one, other = both_ways(monkeypatch, *what)
    assert_same(one, other)
    assert len(one.waits["link"]) == 300 * 8
    assert len(done) == 2 * 300


def test_65536_workers_take_a_few_hundred_steps(done):
    n_workers = 65_536
    schedule, network = ALGORITHMS["ring"].build(n_workers), make_network("ring", n_workers, 5e10, 5e-7)
    trace = run_recurrence(schedule, network, Workers.alike(n_workers), np.full(n_workers, 16_384), keep_transfers=0)
    assert schedule.n_steps == 131_070
    assert len(done) < 400
    # Each step adds a service and a latency, and each addition rounds by half a last digit at most.
    rounding = 2 * 131_070 * 2.0**-53
    end_s = pytest.approx(131_070 * (5e-7 + 16_384 / 5e10), rel=rounding, abs=0)
    assert trace.workers["end_s"].max() == end_s
    assert (trace.links["bytes"] == 131_070 * 16_384).all()


def turns(drawn, n_workers):
    """Steps in which every worker does the same; most of them wrong."""
    worker = np.arange(n_workers)
    for number in range(drawn.integers(1, 2 * n_workers)):
        distance = 1 if drawn.random() < 0.7 else int(drawn.integers(1, n_workers))
        first = -number if drawn.random() < 0.8 else int(drawn.integers(n_workers))
        op = "reduce" if number < n_workers - 1 else "copy"
        yield make_step(op, number, worker, (worker + distance) % n_workers, (first + worker) % n_workers, op=op)


def told(schedule):
    try:
        check(schedule)
    except ScheduleError as error:
        return [fault.message for fault in error.faults]
    return []


def test_one_worker_tells_the_same_as_all(monkeypatch):
    drawn, wrong = np.random.default_rng(3), 0
    for collective, target in (("all-reduce", -1), ("reduce-scatter", 1)):
        for _ in range(150):
            n_workers = int(drawn.integers(2, 7))
            target_of = -1 if target < 0 else (np.arange(n_workers) - 1) % n_workers
            steps = [*turns(drawn, n_workers)]
            schedule = make_schedule("turns", collective, n_workers, n_workers, steps, target=target_of)
            alone = OneForAll(schedule)
            for step in steps:
                alone.take(step)
            by_one = told(schedule)
            with monkeypatch.context() as without:
                without.setattr(OneForAll, "take", lambda self, step: setattr(self, "stands_for_all", False))
                by_all = told(schedule)
            assert bool(by_one) == bool(by_all)
            # Of what is missing in the end all tell more.
            assert not by_one or by_one[0] in by_all or "more" in by_all[-1]
            wrong += bool(by_one) and alone.stands_for_all
    assert wrong > 50


def test_steps_that_do_not_move_as_their_schedule_says_are_told():
    class Turned(_RingSteps):
        def __call__(self):
            yield from reversed([*super().__call__()])

        def runs(self):
            yield self._step("all-gather", 0), 2 * (self.n_workers - 1)

    schedule = replace(ALGORITHMS["ring"].build(4), make_steps=Turned(4, ("reduce-scatter", "all-gather")))
    with pytest.raises(ScheduleError, match="reduce-scatter step 2: it does not move as those before it"):
        check(schedule)
