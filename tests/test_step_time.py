"""The time of a step on a network: against formulas, together and apart, and what is said of a sweep."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import ringnet
from ringnet.reporting.storage import redraw
from ringnet.runs import advice, step_parts
from ringnet.runs.advice import idle_step_advice
from ringnet.runs.step_time import simulate_step
from ringnet.units import format_seconds

BASE = """
scenario_version: 1
name: mine
workers: 4
network: {topology: ring, bandwidth: 1 GB/s, latency: 10 us}
step: {layers: layers.csv, bucket_cap: 4 MB, first_bucket: 4 MB}
"""
#: Eight layers of 4 MB; 10 ms backward each.
LAYERS = "name,parameters,forward,backward\n" + "".join(f"layer {n},1000x1000,5 ms,10 ms\n" for n in range(8))


@pytest.fixture
def step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layers.csv").write_text(LAYERS)

    def run(*changes, text=BASE):
        (tmp_path / "a.yaml").write_text(text)
        return simulate_step(ringnet.load(tmp_path / "a.yaml", [*changes]))

    return run


def ring_s(n_bytes, n=4, rate=1e9, latency_s=10e-6):
    return 2 * (n - 1) * (latency_s + n_bytes / n / rate)


def test_all_but_the_last_bucket_is_hidden(step):
    """6.06 ms under 10 ms of backward pass."""
    row = step().summary
    assert row["step_s"] == pytest.approx(8 * 15e-3 + ring_s(4e6), rel=1e-12, abs=0)
    assert row["exposed_s"] == pytest.approx(ring_s(4e6), rel=1e-12, abs=0)
    assert row["hidden_s"] == pytest.approx(7 * ring_s(4e6), rel=1e-12, abs=0)
    assert row["efficiency"] == pytest.approx(0.12 / row["step_s"], rel=1e-12, abs=0)
    assert row["gradient_bytes"] == 32_000_000


def test_a_slow_network_is_busy_from_the_first_bucket_on(step):
    row = step("network.bandwidth=100 MB/s").summary
    taken = ring_s(4e6, rate=1e8)
    assert row["step_s"] == pytest.approx(8 * 5e-3 + 10e-3 + 8 * taken, rel=1e-12, abs=0)
    assert row["hidden_s"] == pytest.approx(70e-3, rel=1e-12, abs=0)


def test_one_bucket_hides_nothing(step):
    row = step("step.bucket_cap=1 GB", "step.first_bucket=1 GB").summary
    assert row["step_s"] == pytest.approx(8 * 15e-3 + ring_s(32e6), rel=1e-12, abs=0)
    assert row["hidden_s"] == 0


def test_without_any_network_time_a_step_is_its_computation(step):
    row = step("network.bandwidth=1e30 B/s", "network.latency=0 s", "step.update=2 ms").summary
    assert row["step_s"] == pytest.approx(0.122, rel=1e-12, abs=0)
    assert row["efficiency"] == pytest.approx(1.0, rel=1e-12, abs=0)


def test_one_worker_sends_nothing(step):
    row = step("workers=1").summary
    assert row["communication_s"] == 0
    assert row["efficiency"] == pytest.approx(1.0, rel=1e-12, abs=0)


ODD = """
scenario_version: 1
name: odd
workers: 6
algorithm: {algorithm}
network: {{topology: leaf-spine, leaves: 2, spines: 1, oversubscription: 3, bandwidth: 1 GB/s, latency: 20 us,
  links: {{"0->leaf0": {{bandwidth: 300 MB/s}}}}}}
worker: {{sends: {sends}, recv_overhead: 3 us, reduce_rate: 4 GB/s}}
step: {{layers: layers.csv, bucket_cap: 5 MB, strategy: {strategy}, noise: 0.2, slow_workers: {{2: 1.3}},
  microbatches: 2, update: 1 ms}}
"""


@pytest.mark.parametrize(
    ("strategy", "algorithm", "sends"),
    [("ddp", "halving-doubling", "eager"), ("zero-1", "ring", "rendezvous"), ("fsdp", "ring", "eager")],
)
def test_together_collectives_take_what_they_take_apart(step, monkeypatch, strategy, algorithm, sends):
    """One group on links that never change: one clock for all collectives, or each timed by itself."""
    text = ODD.format(strategy=strategy, algorithm=algorithm, sends=sends)
    if strategy == "fsdp":
        text = text.replace("bucket_cap: 5 MB, ", "")
    if algorithm == "halving-doubling":
        text = text.replace("workers: 6", "workers: 8").replace("noise: 0.2, ", "")
    apart = step(text=text)
    monkeypatch.setattr(step_parts, "_why_together", lambda groups: "the test wants it")
    together = step(text=text)
    for column in ("ready_s", "start_s", "end_s", "exposed_s"):
        assert np.allclose(apart.buckets[column], together.buckets[column], rtol=1e-9, atol=1e-12)
    assert together.summary["step_s"] == pytest.approx(apart.summary["step_s"], rel=1e-12, abs=0)


def test_random_steps_on_networks_keep_the_accounts(step):
    generator = np.random.default_rng(8)
    for _ in range(12):
        strategy = str(generator.choice(["ddp", "zero-1", "fsdp"]))
        changes = [
            f"workers={generator.integers(1, 7)}",
            f"network.bandwidth={generator.choice([50, 500, 5000])} MB/s",
            f"step.strategy={strategy}",
            f"step.noise={generator.choice([0, 0.1])}",
            f"seed={generator.integers(100)}",
        ]
        text = BASE.replace(", bucket_cap: 4 MB, first_bucket: 4 MB", "") if strategy == "fsdp" else BASE
        row = step(*changes, text=text).summary
        assert row["exposed_s"] + row["hidden_s"] == pytest.approx(row["communication_s"], rel=1e-12, abs=0)
        parts = row["compute_s"] + row["exposed_s"] + row["idle_s"]
        assert parts == pytest.approx(row["step_s"], rel=1e-9, abs=0)
        assert row["step_s"] >= row["compute_s_max"]
        assert row["step_s"] >= row["bound_s"] * (1 - 1e-12)


TWO = """
scenario_version: 1
name: mine
workers: 4
network: {topology: leaf-spine, leaves: 2, spines: 1, oversubscription: 4, bandwidth: 1 GB/s, latency: 10 us,
  placement: [0, 1, 4, 5], places: 8}
step: {layers: layers.csv, bucket_cap: 4 MB, first_bucket: 4 MB, groups: [[2, 3, 6, 7]]}
"""


def test_two_groups_on_one_trunk_take_longer_and_less_than_one_after_the_other(step):
    alone, both = step("step.groups=[]", text=TWO), step(text=TWO)
    assert set(both.buckets["group"]) == {"mine", "group 1"}
    taken = alone.summary["communication_s"]
    assert taken * 1.5 < both.summary["communication_s"] <= 2 * taken * (1 + 1e-9)
    # Places that share nothing but the switch do not disturb each other.
    apart = step("network.oversubscription=1", "network.spines=4", text=TWO)
    by_itself = step("network.oversubscription=1", "network.spines=4", "step.groups=[]", text=TWO)
    assert apart.summary["step_s"] == pytest.approx(by_itself.summary["step_s"], rel=1e-9, abs=0)


def test_traffic_of_others_and_links_that_change_are_simulated(step):
    plain = step().summary["communication_s"]
    traffic = "background=[{from: 0, to: 1, burst: 64 KiB, rate: 400 MB/s}]"
    assert step(traffic).summary["communication_s"] > 1.3 * plain
    slower = "network.links={0->1: {profile: [{at: 80 ms, bandwidth: 250 MB/s}]}}"
    found = step(slower)
    ends = found.buckets.set_index("number")
    taken = ends["end_s"] - ends["start_s"]
    assert taken[0] == pytest.approx(ring_s(4e6), rel=1e-9, abs=0)
    assert taken[7] > 3 * taken[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("step.bucket_cap=0 B", "a bucket of no bytes"),
        ("step.layers=none.csv", "cannot be read"),
        ("step.strategy=zero-4", "no such strategy"),
        ("step.model=gpt2-small", "come from model already"),
        ("step.slow_workers={9: 2}", "there is no worker 9 among"),
        ("step.slow_workers={1: 0}", "takes some time"),
        ("step.groups=[[9]]", "9"),
        ("step.prefetch=2", "never read"),
        (
            "network.topology=switch & algorithm=binary-tree & step.strategy=zero-1",
            "which binary-tree does not have",
        ),
        ("worker.start=5 us", "when its workers start"),
        ("step={model: gpt2-small}", "how long the layers take"),
        ("step={model: gpt2-small, forward: 5 ms}", "backward is missing"),
        ("step={model: gpt2-small, rate: 5 TB/s}", "a unit of a rate, not of a rate of operations"),
        ("step={model: gpt2-small, rate: 5 TFLOP/s, sequence: 4096}", "1024 positions"),
        ("step={batch: 3}", "needs the layers of a model"),
        ("network.topology=switch & jobs=[{workers: 2, message: 1 MiB}]", "other jobs do not run beside"),
    ],
)
def test_mistakes_are_told(step, change, said):
    changes = change.split(" & ")
    with pytest.raises(ringnet.InputError) as error:
        step(*changes)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "column is missing"),
        ("name,forward,backward\n", "parameters"),
        ("name,parameters,forward,backward\n", "no rows"),
        ("name,parameters,forward,backward\na,3,5,5 ms\n", "needs a unit"),
        ("name,parameters,forward,backward\na,3y4,5 ms,5 ms\n", "no shape"),
        ("name,parameters,forward,backward\na,,5 ms,5 ms\n", "no gradients"),
        ("name,parameters,forward\na,3,5 ms\n", "backward"),
        ("name,parameters,forward,backward\na,3,5 ms\n", "3 cells under 4 names"),
        ("name,parameters\na,3\n", "how long the layers take"),
    ],
)
def test_mistakes_of_a_table_are_told(step, tmp_path, table, said):
    (tmp_path / "layers.csv").write_text(table)
    text = BASE + "\n"
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(ringnet.InputError) as error:
        simulate_step(ringnet.load(tmp_path / "a.yaml"))
    assert said in str(error.value)


def test_the_best_point_of_a_sweep_is_what_a_second_run_says(step, tmp_path, ringnet):
    sweep = "sweep: {over: {workers: [2, 6], step.bucket_cap: [4 MB, 8 MB, 32 MB]}}\n"
    (tmp_path / "a.yaml").write_text(BASE + sweep)
    told = json.loads(ringnet("step", "a.yaml", "--out", "out", "--json").stdout)
    assert "best of 6 points: workers=6, step.bucket_cap=" in told["advice"][0]
    best = told["advice"][0].partition("bucket_cap=")[2].partition(":")[0].partition(",")[0]
    caps = ("4 MB", "8 MB", "32 MB")
    again = {cap: step("workers=6", f"step.bucket_cap={cap}").summary["step_s"] for cap in caps}
    assert again[best] == min(again.values())
    assert [row["step_s"] for row in told["points"][3:]] == list(again.values())


#: Two hosts of four cards, of which one ring uses one; the same layers.
HOSTS = """
scenario_version: 1
workers: 8
payload: none
network:
  topology: nodes
  workers_per_host: 4
  nics: 4
  inside: {shape: switch, bandwidth: 300 GB/s, latency: 1 us}
  bandwidth: 1 GB/s
  latency: 5 us
step: {layers: layers.csv, bucket_cap: 4 MB, first_bucket: 4 MB}
"""
WIDER = "algorithm={name: channel-ring, node_size: 4, n_channels: 4}"


@pytest.mark.parametrize("strategy", ["ddp", "zero-1", "fsdp"])
def test_a_step_that_leaves_cards_idle_is_told_what_it_takes_with_all_of_them(step, tmp_path, ringnet, strategy):
    """As a run is: who reads the time of a step on machines with several cards must know that it is that of one."""
    (tmp_path / "a.yaml").write_text(HOSTS)
    asked = ("step", "a.yaml", "--out", "out", "--no-plots", "--set", f"step.strategy={strategy}", "--set")
    there = json.loads(ringnet(*asked, "network.bandwidth=100 MB/s", "--json").stdout)
    here, wider = (
        step("network.bandwidth=100 MB/s", f"step.strategy={strategy}", *more, text=HOSTS).summary["step_s"]
        for more in ([], [WIDER])
    )
    assert there["advice"] == [
        "this uses 1 of 4 cards of a host each way: a step with channel-ring (node_size 4, n_channels 4) takes "
        f"{format_seconds(wider)}, not {format_seconds(here)}"
    ]


@pytest.mark.parametrize(
    "changes",
    [
        [WIDER],  # all are in use
        ["network.nics=1"],
        ["network.bandwidth=50 GB/s"],  # computation hides all but a little
    ],
    ids=str,
)
def test_of_cards_that_would_gain_a_step_nothing_nothing_is_said(step, changes):
    step(*changes, text=HOSTS)
    scenario = ringnet.load("a.yaml", [*changes])
    assert idle_step_advice(scenario, simulate_step(scenario)) is None


def test_a_step_that_takes_long_to_simulate_again_is_told_what_idles_without_a_time(step, monkeypatch):
    monkeypatch.setattr(advice, "FREE_S", 0.0)
    found = step(text=HOSTS)
    assert idle_step_advice(ringnet.load("a.yaml"), found) == (
        "this uses 1 of 4 cards of a host each way; channel-ring (node_size 4, n_channels 4) is made for all of them"
    )


def test_a_sweep_keeps_its_points_and_goes_on(step, tmp_path, ringnet):
    sweep = "payload: none\nsweep: {over: {workers: [2, 6], step.bucket_cap: [4 MB, 8 MB]}}\n"
    (tmp_path / "a.yaml").write_text(BASE + sweep)
    (tmp_path / "layers.csv").write_text(LAYERS)

    def run(*more):
        done = ringnet("step", "a.yaml", "--out", "out", "--cache", "kept", "--no-plots", *more)
        return done.stdout, (tmp_path / "out" / "step.csv").read_bytes()

    first, table = run("--jobs", "2")
    assert "4: 4 computed, 0 kept" in first
    again, same = run()
    assert "4: 0 computed, 4 kept" in again
    assert same == table
    more, _ = run("--set", "sweep.over.workers=[2, 3, 6]")
    assert "6: 2 computed, 4 kept" in more
    assert "4: 4 computed" in run("--fresh")[0]
    assert "4: 4 computed" in run("--set", "payload={elements: 1}")[0]
    (tmp_path / "layers.csv").write_text(LAYERS.replace("10 ms", "11 ms"))
    assert "4: 4 computed" in run()[0]


def test_a_point_that_fails_is_a_row_with_its_error(step, tmp_path, ringnet):
    """The recurrence cannot do what is shared; the other point has its answer all the same."""
    sweep = "payload: none\nengine: recurrence\nsweep: {over: {network.placement: [[0, 1, 2, 3], [0, 2, 1, 3]]}}\n"
    text = BASE.replace("topology: ring", "topology: leaf-spine, leaves: 2, spines: 1, oversubscription: 2")
    (tmp_path / "a.yaml").write_text(text + sweep)
    done = ringnet("step", "a.yaml", "--out", "out", "--cache", "kept", "--no-plots")
    table = pd.read_csv(tmp_path / "out" / "step.csv")
    assert done.exit_code == 5
    assert table["error"].notna().tolist() == [False, True]
    assert table["step_s"].notna().tolist() == [True, False]
    assert "network.placement=[0, 2, 1, 3]: " in done.stderr
    assert "failed" in done.stdout


def test_check_says_what_a_step_would_do(step, tmp_path, ringnet):
    step()
    told = ringnet("check", "a.yaml").stdout
    assert "collectives  8, of 4 MB" in told
    assert "simulated    each size by itself, once; 24 transfers" in told
    assert "numbers      none: 8,000,000 parameters at each worker are many" in told
    sweep = ("--set", "sweep={over: {workers: [2, 4]}}", "--set", "payload={elements: 4}")
    told = ringnet("check", "a.yaml", *sweep, "--json").stdout
    preview = json.loads(told)
    assert (preview["points"], preview["numbers"]) == (2, "first 4 elements, verified")
    assert (preview["least_transfers"], preview["most_transfers"]) == (8 * 4, 8 * 24)
    shared = "background=[{from: 0, to: 1, burst: 64 KiB, rate: 400 MB/s}]"
    assert "together, for others share the links" in ringnet("check", "a.yaml", "--set", shared).stdout


def test_check_refuses_a_step_that_does_not_fit(step, tmp_path, ringnet):
    step()
    (tmp_path / "layers.csv").write_text("name,parameters,forward,backward\na,1000000x1000000,1 ms,1 ms\n")
    assert ringnet("check", "a.yaml").exit_code == 0
    done = ringnet("check", "a.yaml", "--set", "payload=full")
    assert done.exit_code == 2
    assert "{elements: " in done.stderr


def test_a_step_is_printed_written_and_drawn_again(step, tmp_path, ringnet):
    step()
    found = ringnet("step", "a.yaml", "--out", "out")
    assert found.exit_code == 0
    assert "communication" in found.output
    assert "hidden under computation" in found.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"step.csv", "buckets.csv", "timeline.csv", "run.json", "step-timeline.png"}
    drawn = (tmp_path / "out" / "step-timeline.png").read_bytes()
    (tmp_path / "out" / "step-timeline.png").unlink()
    redraw(tmp_path / "out")
    assert (tmp_path / "out" / "step-timeline.png").read_bytes() == drawn


def test_repeated_steps_tell_how_they_are_spread(step):
    """Each step has the draws of its run, a worker of its own: the first of many is the first of few."""
    few, many = (step("step.noise=0.1", f"repeat={n}", "seed=4").summary for n in (1, 60))
    assert few["step_s"] == step("step.noise=0.1", "seed=4").summary["step_s"]
    assert (many["n_runs"], many["mean_s"]) == (60, pytest.approx(many["step_s"]))
    ordered = [many[name] for name in ("step_s_min", "p5_s", "median_low_s", "median_s", "p95_s", "step_s_max")]
    assert ordered == sorted({*ordered})
    with pytest.raises(ringnet.InputError, match="repeat says how many steps"):
        step("step.noise=0.1", "step.steps=3", "repeat=4")
    with pytest.raises(ringnet.InputError, match="repeated so often as is said"):
        step("step.noise=0.1", "until={half_width: 1 %}")
    with pytest.raises(ringnet.InputError, match="nothing is drawn"):
        step("repeat=4")


def test_the_same_seed_gives_the_same_steps(step):
    noisy = ("step.noise=0.1", "step.steps=3", "seed=4")
    assert step(*noisy).summary == step(*noisy).summary
    assert step(*noisy).summary["step_s"] != step(*noisy[:2], "seed=5").summary["step_s"]


def test_a_module_of_the_user_is_timed(step, tmp_path):
    (tmp_path / "my.py").write_text(
        "class P:\n    shape = (1000, 1000)\n\n"
        "class M:\n    def named_parameters(self):\n"
        "        return [(f'{n}.weight', P()) for n in range(8)]\n\n"
        "def model():\n    return M()\n"
    )
    (tmp_path / "b.yaml").write_text(
        BASE.replace("layers: layers.csv", "python: my.py:model, forward: 40 ms, backward: 80 ms")
    )
    with pytest.raises(ringnet.InputError, match="allow"):
        ringnet.load(tmp_path / "b.yaml")
    loaded = ringnet.load(tmp_path / "b.yaml", allow_python=True)
    assert simulate_step(loaded).summary["step_s"] == pytest.approx(step().summary["step_s"], rel=1e-12, abs=0)
