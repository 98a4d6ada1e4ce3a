"""Algorithms for workers that are not alike: StragglAR by the time of its paper, the uneven ring by what it carries."""

from __future__ import annotations

from itertools import product
from math import log2

import numpy as np
import pytest

import ringnet
from ringnet.collectives import ALGORITHMS, Schedule
from ringnet.collectives.unequal import even_slices, stragglar, uneven_ring
from ringnet.errors import InputError
from ringnet.runs.parts import build

HALF = '{"3->*": {bandwidth: 25 GB/s}, "*->3": {bandwidth: 25 GB/s}}'


def summary(algorithm: str, n_workers: int, message: str, network: str, rest: str = "") -> dict[str, object]:
    text = f"scenario_version: 1\nworkers: {n_workers}\nmessage: {message}\npayload: none\nalgorithm: {algorithm}\n"
    return ringnet.simulate(ringnet.loads(f"{text}network: {network}\n{rest}")).summary


@pytest.mark.parametrize("engine", ["events", "recurrence"])
@pytest.mark.parametrize("n_workers", [2, 4, 8, 32])
def test_stragglar_takes_the_time_of_its_paper(n_workers: int, engine: str) -> None:
    """(N - 2 + log2 N)(alpha + S beta / (N - 1)) from the late worker's start on, every port at 50 GB/s."""
    network = "{topology: switch, sharing: fifo, bandwidth: 50 GB/s, latency: 2.5 us}"
    if engine == "recurrence":
        network = "{topology: fully-connected, bandwidth: 50 GB/s, latency: 5 us}"
    rest = f"engine: {engine}\nworker: {{exceptions: {{{n_workers - 1}: {{start: 1 s}}}}}}"
    n_bytes = 64 * 31 * 3 * 7 * 1024  # which N - 1 divides
    made = summary("stragglar", n_workers, f"{n_bytes} B", network, rest)
    rounds = n_workers - 2 + log2(n_workers)
    expected_s = rounds * (5e-6 + n_bytes / (n_workers - 1) / 50e9)
    assert made["makespan_s"] - 1 == pytest.approx(expected_s, rel=1e-9, abs=0)


@pytest.mark.parametrize("n_workers", [4, 8, 64, 128])
def test_in_each_round_of_stragglar_everybody_sends_and_receives_once_at_most(n_workers: int) -> None:
    rounds: dict[int, list[tuple[int, int]]] = {}
    for step in stragglar(n_workers, late=1).steps():
        if step.phase != "reduce-scatter":
            rounds.setdefault(step.step, []).extend(zip(step.src.tolist(), step.dst.tolist(), strict=True))
    assert len(rounds) == n_workers - 2 + log2(n_workers)
    for pairs in rounds.values():
        for ends in zip(*pairs, strict=True):
            assert len(set(ends)) == len(ends)


def test_a_worker_at_half_bandwidth_costs_little_where_it_completes_everything() -> None:
    """A ring reaches 53 % of the bound of any algorithm, this one 94 %; on a ring and over a switch."""
    ring = f"{{topology: ring, bandwidth: 50 GB/s, latency: 5 us, links: {HALF}}}"
    on_a_switch = ring.replace("topology: ring", "topology: switch").replace("*", "switch").replace("5 us", "2.5 us")
    before = summary("ring", 16, "1 GiB", ring)
    assert before["bound_share"] == pytest.approx(0.533, abs=1e-3)
    for network in (ring, on_a_switch):
        made = summary("uneven-ring", 16, "1 GiB", network)
        assert made["bound_share"] > 0.93
        assert made["makespan_s"] < 0.58 * before["makespan_s"]


def carried(schedule: Schedule) -> np.ndarray:
    """Chunks that go from each worker to the next."""
    return sum(np.bincount(step.src, minlength=schedule.n_workers) for step in schedule.steps())


def test_a_link_carries_less_by_what_its_ends_complete() -> None:
    assert carried(uneven_ring(4, rates=[1, 1, 2, 2], n_slices=3)).tolist() == [12, 12, 24, 24]
    assert carried(uneven_ring(4, n_slices=3)).tolist() == [18] * 4
    assert carried(uneven_ring(4, "all-gather", rates=[1, 1, 2, 2], n_slices=3)).tolist() == [9] * 4


def test_the_slices_are_the_best_there_are() -> None:
    """Against every way to share 12 slices among 4 workers."""
    rates = np.random.default_rng(3).integers(3, 9, (6, 4))
    ways = np.array([way for way in product(range(13), repeat=4) if sum(way) == 12])
    for rate in rates:
        longest = ((24 - ways - np.roll(ways, -1, axis=1)) / rate).max(axis=1)
        best = np.array(even_slices(rate, 12))
        assert ((24 - best - np.roll(best, -1)) / rate).max() <= longest.min() + 2 / rate.min()  # by rounding
        fine = np.array(even_slices(rate, 1200))
        assert ((24 - (fine + np.roll(fine, -1)) / 100) / rate).max() <= longest.min() + 0.02 / rate.min()


def test_the_uneven_ring_is_no_slower_than_a_ring_whatever_the_links() -> None:
    rng = np.random.default_rng(5)
    for n_workers in (3, 8, 12):
        rates = rng.integers(10, 50, n_workers)
        links = ", ".join(f"{i}->{(i + 1) % n_workers}: {{bandwidth: {rate} GB/s}}" for i, rate in enumerate(rates))
        network = f"{{topology: ring, bandwidth: 50 GB/s, latency: 2 us, links: {{{links}}}}}"
        times = [summary(name, n_workers, "256 MiB", network)["makespan_s"] for name in ("uneven-ring", "ring")]
        assert times[0] <= times[1]


@pytest.mark.parametrize(
    ("algorithm", "links", "phrase"),
    [
        (
            "uneven-ring",
            HALF,
            "rates 25 GB/s to 50 GB/s: bandwidth from each worker to the next",
        ),
        ("stragglar", "{}", "late 2: the worker that starts last"),
    ],
)
def test_what_is_slow_and_who_is_late_is_read_off_the_scenario(algorithm: str, links: str, phrase: str) -> None:
    links = links.replace("*", "switch")
    scenario = ringnet.loads(f"""
scenario_version: 1
workers: 4
message: 1 MiB
algorithm: {algorithm}
network: {{topology: switch, sharing: fair, bandwidth: 50 GB/s, latency: 5 us, links: {links}}}
worker: {{exceptions: {{2: {{start: 1 ms}}}}}}
""")
    parts = build(scenario)
    assert parts.read.phrases == (phrase,)
    result = ringnet.simulate(scenario)
    assert result.summary["sum_ok"]
    assert "worker.sends: rendezvous sends one after another" in " ".join(result.notes)


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        (
            "uneven-ring",
            {"rates": (1, 2)},
            "rates of 2 workers, not of 4; got .*1, 2.*; right would be: one for each",
        ),
        ("stragglar", {"late": 4}, "no such worker among 4; got 4; right would be: 0 to 3"),
        ("uneven-ring", {"n_slices": 10**7}, "too large"),
    ],
)
def test_wrong_parameters_are_told(name: str, parameters: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ALGORITHMS[name].build(4, "all-reduce", **parameters)
