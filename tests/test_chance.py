"""Chance: distributions, streams, and what links and workers draw in both engines."""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest
from scipy import integrate, stats

from ringnet import InputError, loads
from ringnet.analysis.metrics import makespan_s
from ringnet.chance import (
    BoundedPareto,
    Draws,
    Exponential,
    Fixed,
    Gamma,
    Lognormal,
    Mixture,
    Noise,
    NormalAboveZero,
    RunDraws,
    Sample,
    Scaled,
    Shifted,
    stream,
)
from ringnet.engines.arrays import run_many
from ringnet.engines.events import run_events
from ringnet.runs.parts import build
from ringnet.runs.simulate import simulate

RING = "{scenario_version: 1, workers: 5, message: 1 MiB, payload: none, network: {bandwidth: 10 GB/s, latency: 5 us}}"
JITTER = "network.latency={mean: 5 us, distribution: lognormal, cv: 0.3}"
SHARES = np.linspace(0.001, 0.999, 99)


# ---------------------------------------------------------------------------------------------- distributions


@pytest.mark.parametrize(
    ("ours", "scipys"),
    [
        (Exponential(3.0), stats.expon(scale=3.0)),
        (Lognormal(3.0, 0.5), stats.lognorm(sqrt(np.log(1.25)), scale=3.0 / sqrt(1.25))),
        (Gamma(3.0, 0.5), stats.gamma(4.0, scale=0.75)),
        (Gamma(3.0, 2.0), stats.gamma(0.25, scale=12.0)),
        (Gamma(3.0, 4.0), stats.gamma(0.0625, scale=48.0)),
        (NormalAboveZero(3.0, 2.0), stats.truncnorm(-1.5, np.inf, 3.0, 2.0)),
        (BoundedPareto(3.0, 1.5, 100.0), None),
        (Scaled(2.0, Shifted(1.0, Exponential(3.0))), stats.expon(2.0, 6.0)),
    ],
)
def test_quantiles_and_mean_are_those_of_scipy(ours, scipys):
    if scipys is None:  # whose bounded Pareto starts at one
        least = ours.least
        scipys = stats.truncpareto(ours.shape, 100.0 / least, scale=least)
    assert ours.quantile(SHARES) == pytest.approx(scipys.ppf(SHARES), rel=1e-9, abs=0)
    assert ours.mean == pytest.approx(scipys.mean(), rel=1e-6)


def test_a_mixture_is_each_of_its_parts_as_often_as_it_says():
    mixed = Mixture(((0.7, Fixed(1.0)), (0.3, Sample((4.0, 6.0)))))
    drawn = mixed.quantile((np.arange(1000) + 0.5) / 1000)
    assert [int((drawn == value).sum()) for value in (1.0, 4.0, 6.0)] == [700, 150, 150]
    assert (mixed.mean, mixed.least, mixed.most) == (pytest.approx(2.2), 1.0, 6.0)


def test_noise_takes_its_time_from_work_and_from_nothing_else():
    noise = Noise((0.2, 0.5), (0.1, 0.3), 1.0)
    starts, work = np.array([0.0, 0.0, 0.25, 0.6, 2.85, 0.3]), np.array([0.1, 0.25, 0.1, 0.0, 0.5, 1.3])

    def stepped(start_s, work_s, step_s=1e-5):  # an interruption at a time, as a processor would meet them
        now, left = start_s, work_s
        while left > 1e-12:
            within = now % 1.0
            busy = any(at - 1e-12 <= within < at + lasts - 1e-12 for at, lasts in ((0.2, 0.1), (0.5, 0.3)))
            left -= 0.0 if busy else step_s
            now += step_s
        return now

    wanted = [stepped(*one) for one in zip(starts, work, strict=True)]
    assert noise.end_s(starts, work, np.zeros(6)) == pytest.approx(wanted, abs=1e-4)
    assert noise.end_s(starts, work, np.full(6, 3.0)) == pytest.approx(wanted, abs=1e-4)
    assert noise.share == pytest.approx(0.4)


# ----------------------------------------------------------------------------------------------------- streams


def test_a_stream_is_a_child_of_the_seed_and_each_run_has_a_part_of_its_own():
    one = stream(3, "link", "0->1", "latency")
    child = np.random.PCG64DXSM(np.random.SeedSequence(3, spawn_key=one.key))
    assert one.uniforms([0], 4)[0].tolist() == np.random.Generator(child).random(4).tolist()
    assert one.uniforms([5, 2], 9)[::-1].tolist() == one.uniforms([2, 5], 9).tolist()
    jumped = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(3, spawn_key=one.key)).jumped(2))
    assert one.uniforms([2], 3)[0].tolist() == jumped.random(3).tolist()


def test_draws_are_the_same_one_by_one_and_many_at_once():
    draws = Draws(Gamma(2.0, 0.7), stream(0, "worker", 0), for_each=True)
    one_by_one = RunDraws(draws, 7)
    assert [one_by_one[number] for number in (70, 0, 3)] == draws.of_runs([7], 71)[0, [70, 0, 3]].tolist()


def test_a_change_to_one_link_moves_no_others_numbers():
    def drawn(*changes):
        network = build(loads(RING, [JITTER, *changes]), None).network
        names = dict(zip(network.names, range(network.n_links), strict=True))
        return {name: network.behaviours[link].latency_s.of_runs(range(3), 8) for name, link in names.items()}

    before = drawn()
    other = drawn("network.links.1->2.latency={mean: 9 us, distribution: exponential}", "workers=7")
    assert len({values.tobytes() for values in before.values()}) == 5
    same = {name for name in before if name in other and before[name].tobytes() == other[name].tobytes()}
    assert same == {"0->1", "2->3", "3->4"}  # 4->0 is no link of a ring of seven


# ----------------------------------------------------------------------------------------------------- engines


def times_of(scenario, runs):
    """Times of some runs by both engines: all at once, and one by one."""
    parts = build(scenario, None)
    what = (parts.schedule, replace(parts.network, sharing="fifo"), parts.workers, parts.chunk_bytes)
    each = []
    for run in runs:
        one = parts.in_run(run)
        trace = run_events(one.schedule, one.network, one.workers, one.chunk_bytes, keep_transfers=0)
        each.append(makespan_s(trace))
    return run_many(*what, runs), np.array(each)


@pytest.mark.parametrize(
    "changes",
    [
        [JITTER, "worker.start={mean: 20 us, distribution: exponential}"],
        [JITTER, "worker.launch=8 us", "worker.exceptions.2.launch=90 us"],
        ["worker.launch={mean: 80 us, distribution: gamma, cv: 0.5}", "worker.exceptions.2.launch=9 us"],
        ["worker.exceptions.2.launch={mean: 8 us, distribution: exponential, per: run}"],
        [
            "network.bandwidth={mean: 10 GB/s, distribution: lognormal, cv: 0.5}",
            JITTER,
            "network.links.2->3.latency={distribution: sample, values: [1 us, 30 us], per: link}",
        ],
        [
            "network.bandwidth={mean: 10 GB/s, distribution: gamma, cv: 0.5, per: run}",
            "worker.reduce_rate={mean: 10 GB/s, distribution: normal, cv: 0.1}",
            "worker.exceptions.3.recv_overhead={mean: 3 us, distribution: gamma, cv: 0.5}",
        ],
        [
            JITTER,
            "worker.sends=rendezvous",
            "worker.send_overhead={mean: 1 us, distribution: pareto, shape: 1.5, most: 1 ms}",
        ],
        ["worker.recv_overhead=1 us", "worker.noise={every: 50 us, for: 5 us}", "worker.reduce_rate=5 GB/s"],
        ["network.topology=fully-connected", "algorithm=halving-doubling", "workers=8", JITTER],
    ],
)
def test_both_engines_agree_run_by_run(changes):
    at_once, each = times_of(loads(RING, changes), range(4))
    assert at_once.exact.all()
    assert at_once.makespan_s == pytest.approx(each, rel=1e-12, abs=0)
    assert len({*each}) == 4


def test_what_overtakes_on_a_later_link_is_told_as_not_exact():
    changes = ["network.topology=switch", "message=10 KiB"]
    latency = "network.latency={mean: 50 us, distribution: exponential}"
    at_once, each = times_of(loads(RING, [*changes, latency]), range(4))
    assert not at_once.exact.any()
    small = "network.latency={mean: 50 us, distribution: normal, cv: 0.00001}"
    at_once, each = times_of(loads(RING, [*changes, small]), range(4))
    assert at_once.exact.all()
    assert at_once.makespan_s == pytest.approx(each, rel=1e-12, abs=0)


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_a_run_that_draws_adds_up(sharing):
    changes = [JITTER, "network.topology=switch", f"network.sharing={sharing}", "payload=full"]
    changes += ["worker.recv_overhead={mean: 2 us, distribution: exponential}", "worker.reduce_rate=20 GB/s"]
    result = simulate(loads(RING, changes))
    row, workers = result.summary, result.workers
    assert row["sum_ok"]
    parts = [name for name in workers if name.startswith("path_")]
    assert workers[parts].sum(axis=1).to_numpy() == pytest.approx(workers["end_s"].to_numpy(), rel=1e-9, abs=0)
    assert (workers["path_queueing_s"] < 0.3 * workers["end_s"]).all()
    assert row["drawn"] == "latency for each transfer, recv overhead for each transfer; run 0 of seed 0"
    assert row["seed"] == 0


def test_numbers_that_are_drawn_once_leave_a_plain_network():
    scenario = loads(RING, ["network.latency={mean: 5 us, distribution: lognormal, cv: 0.3, per: run}"])
    network = build(scenario, 4).network
    assert not network.behaviours
    assert len({*network.latency_s}) == 1
    assert network.latency_s[0] != build(scenario, 5).network.latency_s[0]
    assert simulate(scenario).summary["closed_form_s"] == pytest.approx(simulate(scenario).summary["makespan_s"])


@pytest.mark.parametrize(
    ("distribution", "frozen"),
    [("exponential", stats.expon(scale=2e-5)), ("lognormal, cv: 0.8", None)],
)
def test_the_last_of_many_starts_ends_the_run(distribution, frozen):
    """With nothing to send all end at the last start: max and min of N starts, H_N and by quadrature."""
    frozen = frozen or stats.lognorm(sqrt(np.log1p(0.64)), scale=2e-5 / sqrt(1.64))
    start = f"worker.start={{mean: 20 us, distribution: {distribution}}}"
    parts = build(loads(RING, ["workers=8", "message=0 B", "network.latency=0 s", start]), None)
    times = run_many(parts.schedule, parts.network, parts.workers, parts.chunk_bytes, range(4000)).makespan_s
    spread = integrate.quad(lambda x: 1 - frozen.cdf(x) ** 8 - frozen.sf(x) ** 8, 0, 1e-3, limit=200)[0]
    if distribution == "exponential":  # mean x (H_8 - 1/8)
        assert spread == pytest.approx(2e-5 * sum(1 / n for n in range(1, 8)), rel=1e-6)
    assert abs(times.mean() - spread) < 4 * times.std() / sqrt(len(times))


def test_a_launch_is_drawn_once_for_each_worker_and_run_and_not_where_nothing_moves():
    drawn = "worker.launch={mean: 20 us, distribution: exponential}"
    parts = build(loads(RING, ["workers=8", "message=0 B", "network.latency=0 s", drawn]), None)
    times = run_many(parts.schedule, parts.network, parts.workers, parts.chunk_bytes, range(4000)).makespan_s
    largest = 2e-5 * sum(1 / n for n in range(1, 9))  # of 8 launches from one start: mean x H_8
    assert abs(times.mean() - largest) < 4 * times.std() / sqrt(len(times))
    assert simulate(loads(RING, [drawn, "workers=8"])).summary["drawn"] == "launch for each worker; run 0 of seed 0"
    assert simulate(loads(RING, [drawn, "workers=1"])).summary["makespan_s"] == 0


def test_a_ring_of_random_steps_takes_what_a_plain_sketch_of_it_takes():
    parts = build(loads(RING, [JITTER, "workers=6", "message=60 kB"]), None)
    times = run_many(parts.schedule, parts.network, parts.workers, parts.chunk_bytes, range(2000)).makespan_s
    numbers, n, service = np.random.default_rng(1), 6, 1e-6
    ready, free = np.zeros((2000, n)), np.zeros((2000, n))
    for _ in range(2 * (n - 1)):
        free = np.maximum(ready, free) + service
        latency = 5e-6 / sqrt(1.09) * np.exp(sqrt(np.log(1.09)) * numbers.standard_normal((2000, n)))
        ready = np.maximum(ready, np.roll(free + latency, 1, axis=1))
    sketch = ready.max(axis=1)
    assert abs(times.mean() - sketch.mean()) < 4 * sqrt((times.var() + sketch.var()) / 2000)
    assert stats.ks_2samp(times, sketch).pvalue > 0.001


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ("network.latency={mean: -5 us, distribution: exponential}", "network.latency.mean", "negative"),
        ("network.latency={mean: 5 us, distribution: lognormal}", "network.latency.cv", "lognormal needs mean and cv"),
        ("network.latency={mean: 5 us, distribution: normal, cv: 0}", "network.latency.cv", "nothing to draw"),
        ("network.latency={mean: 5 us}", "network.latency.distribution", "missing"),
        ("network.latency={mean: 5 us, distribution: weibull}", "network.latency.distribution", "no such distribution"),
        ("network.latency={mean: 5 us, distribution: exponential, cv: 1}", "network.latency.cv", "has no cv"),
        ("network.latency={mean: 5 us, distribution: exponential, per: worker}", "network.latency.per", "each worker"),
        ("network.latency={mean: 5 us, distribution: gamma, cv: 1, least: 5 us}", "network.latency.least", "above"),
        ("network.latency={mean: 5 us, distribution: pareto, shape: 2, most: 4 us}", "network.latency.most", "above"),
        (
            "network.latency={mean: 5 us, distribution: pareto, shape: 1e-9, most: 1 s}",
            "network.latency.shape",
            "so far below",
        ),
        ("network.latency={distribution: sample, values: []}", "network.latency.values", "the sample is empty"),
        ("network.latency={distribution: sample}", "network.latency.values", "a list of values or a file"),
        ("network.latency={distribution: sample, file: none.csv}", "network.latency.file", "cannot be read"),
        (
            "network.latency={distribution: mixture, of: [{value: 1 us}, {value: 2 ms, probability: 2}]}",
            "network.latency.of[1].probability",
            "from zero to one",
        ),
        (
            "network.latency={distribution: mixture, of: [{value: 1 us, probability: 0.4}]}",
            "network.latency.of",
            "add up to 0.4",
        ),
        ("network.bandwidth={mean: 1 GB/s, distribution: exponential}", "network.bandwidth.distribution", "no mean"),
        ("network.bandwidth={mean: 1 GB/s, distribution: gamma, cv: 1.5}", "network.bandwidth.cv", "no mean"),
        ("worker.start={mean: 1 us, distribution: exponential, per: transfer}", "worker.start.per", "each transfer"),
        ("worker.launch={mean: 1 us, distribution: exponential, per: link}", "worker.launch.per", "of a launch"),
        ("worker.noise={every: 1 ms, for: 25 us}", "worker.noise", "no processor works"),
        ("worker={recv_overhead: 1 us, noise: {every: 1 ms, for: 2 ms}}", "worker.noise.every", "more than the period"),
        ("network={bandwidth: 1 GB/s, packet: 4 KiB, latency: {mean: 1 us, distribution: exponential}}",
         "network.latency.per", "go in parts"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_told_with_its_place(change, path, message):
    with pytest.raises(InputError) as caught:
        loads(RING, [change])
    faults = {fault.path: fault for fault in caught.value.faults}
    assert path in faults, caught.value
    assert message in faults[path].message
    assert faults[path].right or "cannot be read" in message


def test_a_mixture_of_values_keeps_no_other_mistake_from_being_told():
    changes = ["worker.send_overhead={distribution: mixture, of: [{value: 5 us}]}"]
    with pytest.raises(InputError) as caught:
        loads(RING, [*changes, "jobs=[{workers: [2, 3], message: 1 KiB}]"])
    assert "network.topology" in [fault.path for fault in caught.value.faults]


def test_a_sample_comes_from_a_file_and_what_is_wrong_in_it_has_its_line(tmp_path):
    (tmp_path / "cells.csv").write_text("at,latency_us\n1,4\n2,6\n3,20\n")
    change = "network.latency={distribution: sample, file: cells.csv, column: latency}"
    scenario = loads(RING, [change], folder=tmp_path)
    network = build(scenario, None).network
    assert network.latency_s.tolist() == pytest.approx([1e-5] * 5)
    assert {*network.behaviours[0].latency_s.of_runs([0], 50)[0].round(9)} == {4e-6, 6e-6, 2e-5}
    assert [*scenario.inputs()] == ["cells.csv"]
    (tmp_path / "cells.csv").write_text("latency_us\n\n4\n-1\n")
    with pytest.raises(InputError, match=r"cells\.csv:4: this is no time in us") as caught:
        loads(RING, [change], folder=tmp_path)
    assert caught.value.faults[0].path == "network.latency.file"
    (tmp_path / "cells.csv").write_text("latency_us\n")
    with pytest.raises(InputError, match="the sample is empty"):
        loads(RING, [change], folder=tmp_path)


def test_who_knows_nothing_of_chance_refuses_it_by_name():
    from ringnet.study.compare import plan_comparison  # noqa: PLC0415

    scenario = loads(RING, [JITTER])
    with pytest.raises(InputError, match=r"one run of each algorithm would say little"):
        plan_comparison(scenario)
    with pytest.raises(InputError, match="a latency is drawn for each transfer"):
        simulate(loads(RING, [JITTER, "engine=recurrence"]))
    of_no_run = build(scenario, None)
    with pytest.raises(InputError, match="drawn anew for each run"):
        run_events(of_no_run.schedule, of_no_run.network, of_no_run.workers, of_no_run.chunk_bytes)
    drawn = "network.bandwidth={mean: 1 GB/s, distribution: gamma, cv: 0.5}"
    shared = ["network.topology=switch", "algorithm=direct", drawn]
    with pytest.raises(InputError, match="shared fairly has several at once"):
        simulate(loads(RING, shared))


def test_no_bound_follows_of_bandwidths_without_bound():
    unbounded = simulate(loads(RING, ["network.bandwidth={mean: 1 GB/s, distribution: gamma, cv: 0.5}"]))
    assert unbounded.summary["collective_bound_s"] is None
    assert unbounded.summary["schedule_bound_s"] is None
    bounded = simulate(loads(RING, ["network.bandwidth={distribution: sample, values: [1 GB/s, 2 GB/s]}"]))
    assert bounded.summary["collective_bound_s"] == pytest.approx(2 * 4 / 5 * 2**20 / 2e9)
    assert bounded.summary["bound_share"] < 1 < inf
