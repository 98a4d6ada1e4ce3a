"""A step carries numbers: every bucket is verified, and all workers end with the same parameters."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import ringnet
from ringnet.collectives import ALGORITHMS
from ringnet.collectives.rings import ring
from ringnet.errors import InputError
from ringnet.payload import make_reduction
from ringnet.payload.tamper import Tamper
from ringnet.runs import step_time
from ringnet.runs.step_parts import CarriedStep
from ringnet.runs.step_time import simulate_step
from ringnet.training.step_numbers import StepNumbers, StepParameters
from ringnet.training.steps import StepCollective

STRATEGIES = ("ddp", "zero-1", "fsdp")
NETWORKS = (
    {"topology": "ring", "bandwidth": "40 kB/s", "latency": "1 ms"},
    {"topology": "switch", "bandwidth": "5 kB/s", "latency": "2 ms"},
    {"topology": "ring", "bandwidth": "10 MB/s", "latency": "10 us"},
)


def random_document(generator):
    """Any strategy on some network, a few layers, some of them without parameters or without time."""
    strategy = str(generator.choice(STRATEGIES))
    noisy = bool(generator.integers(2))
    step = {
        "layers": "layers.csv",
        "strategy": strategy,
        "microbatches": int(generator.integers(1, 3)),
        "update": f"{generator.choice([0, 3])} ms",
    }
    step |= {"prefetch": int(generator.integers(3))} if strategy == "fsdp" else {}
    step |= {"bucket_cap": "200 B", "first_bucket": "90 B"} if strategy != "fsdp" else {}
    step |= {"noise": 0.2, "steps": 2} if noisy else {}
    n_workers = int(generator.integers(1, 5))
    step |= {"slow_workers": {"0": 1.5}} if generator.integers(2) else {}
    rows = [
        f"layer {number},{' '.join(map(str, generator.integers(1, 40, generator.integers(3))))},"
        f"{generator.choice([0, 2])} ms,{generator.choice([0, 5])} ms"
        for number in range(generator.integers(1, 5))
    ]
    rows.append("last,7,1 ms,1 ms")
    return {
        "scenario_version": 1,
        "workers": n_workers,
        "network": NETWORKS[generator.integers(len(NETWORKS))],
        "dtype": str(generator.choice(["float32", "float64", "bfloat16", "float16"])),
        "reduce": str(generator.choice(["sum", "mean"])),
        "seed": int(generator.integers(1000)),
        "step": step,
    }, "name,parameters,forward,backward\n" + "\n".join(rows) + "\n"


def test_random_steps_keep_the_accounts_and_end_with_the_same_parameters(tmp_path):
    """``RINGNET_RANDOM_STEPS=1000`` runs as many; each takes some hundredths of a second."""
    generator = np.random.default_rng(12)
    for _ in range(int(os.environ.get("RINGNET_RANDOM_STEPS", "80"))):
        document, table = random_document(generator)
        (tmp_path / "layers.csv").write_text(table)
        found = simulate_step(ringnet.loads(json.dumps(document), folder=tmp_path))
        row, verdict = found.summary, found.verdict
        assert row["exposed_s"] + row["hidden_s"] == pytest.approx(row["communication_s"], rel=1e-12, abs=0)
        assert row["step_s"] >= row["compute_s_max"] * (1 - 1e-12)
        assert row["step_s"] >= row["bound_s"] * (1 - 1e-12)
        assert verdict.sum_ok, (document, verdict)
        assert verdict.parameters_agree, (document, verdict)
        assert verdict.parameters_ok, (document, verdict)
        assert verdict.wrong == ""


SMALL = """
scenario_version: 1
name: small
workers: 3
network: {topology: switch, bandwidth: 1 MB/s, latency: 10 us}
step: {layers: layers.csv, bucket_cap: 400 B, first_bucket: 400 B}
"""
TABLE = "name,parameters,forward,backward\na,10x9 5,1 ms,2 ms\nb,64,1 ms,2 ms\nc,7x7 100,1 ms,2 ms\n"
N_PARAMETERS = 95 + 64 + 149


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layers.csv").write_text(TABLE)

    def run(*changes, text=SMALL, **options):
        (tmp_path / "a.yaml").write_text(text)
        return simulate_step(ringnet.load(tmp_path / "a.yaml", changes), **options)

    return run


def of(strategy):
    return SMALL if strategy != "fsdp" else SMALL.replace(", bucket_cap: 400 B, first_bucket: 400 B", "")


@pytest.mark.parametrize(
    ("strategy", "verified"),
    [
        ("ddp", 4 * N_PARAMETERS),  # every bucket at every worker
        ("zero-1", (1 + 4) * N_PARAMETERS),  # each gradient at one, then every parameter at all
        ("fsdp", (4 + 4 + 1) * N_PARAMETERS),  # gathered twice, and reduced
    ],
)
@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling"])
def test_every_element_of_every_collective_is_verified(small, strategy, verified, algorithm):
    found = small(f"step.strategy={strategy}", f"algorithm={algorithm}", "workers=4", text=of(strategy))
    assert found.verdict.verified_elements == verified
    assert found.verdict.parameters_ok
    assert found.summary["payload"] == "full"


def test_carrying_numbers_takes_no_time(small):
    for strategy in STRATEGIES:
        own = of(strategy)
        carried, bare = (small(f"step.strategy={strategy}", more, text=own) for more in ("seed=1", "payload=none"))
        assert carried.buckets.equals(bare.buckets)
        assert bare.verdict.sum_ok is None


@pytest.mark.parametrize("kind", ["flip", "drop", "double"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_goes_wrong_on_the_way_is_found_with_its_bucket(small, strategy, kind):
    wrong = Tamper(kind, worker=1, chunk=2, bit=12)
    verdict = small(f"step.strategy={strategy}", text=of(strategy), tamper=wrong).verdict
    assert not verdict.sum_ok
    assert not verdict.parameters_ok
    assert "worker" in verdict.wrong


def numbers(gradients):
    dtype = np.dtype("float32")
    start = np.array([1, 2, 3, 4], dtype)
    return StepNumbers(np.arange(4), [np.array(one, dtype) for one in gradients], start, make_reduction("sum", 2))


SIZES = np.array([2, 2])
BUCKET = StepCollective("bucket 0", "all-reduce", 4)
SCATTER, GATHER = BUCKET._replace(collective="reduce-scatter"), BUCKET._replace(collective="all-gather")


def receive(step, one, values):
    """Let both workers of a ring hold these values of both chunks."""
    schedule = ring(2, one.collective)
    step.received(one, schedule, SIZES, lambda worker, chunk: np.array(values[worker][chunk], np.float32))


def test_by_hand_a_step_is_half_of_the_mean_gradient():
    step = numbers([[2, 4, 6, 8], [4, 4, 4, 4]])
    assert step.sent(BUCKET).read(1, 0, 4).tolist() == [4, 4, 4, 4]
    receive(step, BUCKET, [[[6, 8], [10, 12]]] * 2)
    assert step.finish(everywhere=True) == StepParameters(True, True, "")
    # The mean is 3, 4, 5, 6; the step 1.5, 2, 2.5, 3.
    assert step._parameters.tolist() == [[-0.5, 0, 0.5, 1]] * 2


def test_by_hand_shares_are_updated_where_they_are_and_then_gathered():
    step = numbers([[2, 4, 6, 8], [4, 4, 4, 4]])
    receive(step, SCATTER, [[[0, 0], [10, 12]], [[6, 8], [0, 0]]])  # worker 0 ends with chunk 1
    sent = [step.sent(GATHER).read(worker, 0, 4).tolist() for worker in (0, 1)]
    assert sent == [[1, 2, 0.5, 1], [-0.5, 0, 3, 4]]
    receive(step, GATHER, [[[-0.5, 0], [0.5, 1]]] * 2)
    assert step.finish(everywhere=True).ok


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([[[6, 8], [10, 12]], [[6, 8], [10, 13]]], "parameter 3 is 0.75 at worker 1 and 1.0 at worker 0"),
        (
            [[[6, 8], [10, 13]]] * 2,
            "parameter 3 of worker 0 is 0.75, 1 of one process: further than rounding goes",
        ),
    ],
)
def test_parameters_that_are_wrong_are_told(values, said):
    step = numbers([[2, 4, 6, 8], [4, 4, 4, 4]])
    receive(step, BUCKET, values)
    found = step.finish(everywhere=True)
    assert (found.ok, found.wrong) == (False, said)


def test_parameters_that_were_not_gathered_are_told():
    step = numbers([[2, 4, 6, 8], [4, 4, 4, 4]])
    receive(step, SCATTER, [[[0, 0], [10, 12]], [[6, 8], [0, 0]]])
    assert "was not updated everywhere" in step.finish(everywhere=True).wrong


def test_numbers_are_carried_where_they_are_few_or_asked_for(small, tmp_path):
    many = TABLE + "big,1000x1000,1 ms,1 ms\n"
    (tmp_path / "layers.csv").write_text(many)
    found = small()
    assert found.verdict.sum_ok is None
    assert found.notes[-1] == (
        "no numbers are carried: 1,000,308 parameters at each worker are many; payload: full or {elements: 16} "
        "carries them"
    )
    some = small("payload={elements: 5}")
    assert some.verdict.parameters_ok
    assert some.verdict.verified_elements == 3 * 3 * 5 * some.summary["n_collectives"]
    assert small("payload=full", "workers=2").verdict.verified_elements == 2 * (N_PARAMETERS + 1_000_000)


def test_beside_others_numbers_go_through_each_collective_by_itself(small):
    text = SMALL.replace("latency: 10 us}", "latency: 10 us, places: 6}").replace(
        "400 B}", "400 B, groups: [[3, 4, 5]]}"
    )
    assert small(text=text).verdict.parameters_ok
    assert small("background=[{from: 0, to: 1, burst: 1 KiB, rate: 100 kB/s}]").verdict.parameters_ok


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("reduce=max", "combined into a mean"),
        ("reduce=weighted-mean", "combined into a mean"),
        ("dtype=int32", "no whole numbers"),
        ("data=x.npy", "the numbers of a step are made"),
    ],
)
def test_numbers_that_no_step_has_are_refused(small, tmp_path, change, said):
    np.save(tmp_path / "x.npy", np.zeros((3, 5), np.float32))
    with pytest.raises(InputError) as caught:
        small(change)
    assert said in str(caught.value)


def test_wrong_numbers_end_the_command_with_4(small, ringnet, monkeypatch):
    small()
    monkeypatch.setattr(step_time, "CarriedStep", tampered)
    done = ringnet("step", "a.yaml", "--out", "out", "--no-plots")
    assert done.exit_code == 4
    assert "WRONG: see the error" in done.output
    assert "Error: bucket 0: worker 1, chunk 1, element" in done.output


def tampered(scenario, reduction, places, carry, tamper):
    return CarriedStep(scenario, reduction, places, carry, Tamper("flip", worker=1, chunk=1, bit=12))


#: Parameters without which these make no schedule.
SHAPES = {"hierarchical": {"node_size": 2}}
SHARDING = [name for name, one in ALGORITHMS.items() if {"reduce-scatter", "all-gather"} <= {*one.collectives}]


@pytest.mark.parametrize("name", SHARDING)
def test_what_is_gathered_is_cut_and_owned_as_what_was_reduced(name):
    """So a worker gathers from others what they have updated."""
    kinds = ("reduce-scatter", "all-gather")
    reduced, gathered = (ALGORITHMS[name].build(8, kind, **SHAPES.get(name, {})) for kind in kinds)
    assert reduced.chunk_sizes(1001).tolist() == gathered.chunk_sizes(1001).tolist()
    assert reduced.target.tolist() == gathered.source.tolist()


def test_numbers_that_do_not_fit_are_refused_before_they_are_made(small, tmp_path):
    (tmp_path / "layers.csv").write_text("name,parameters,forward,backward\na,1000000x1000000,1 ms,2 ms\n")
    with pytest.raises(InputError) as caught:
        small("payload=full")
    assert "the numbers of this step take about" in str(caught.value)
    assert "{elements: 16}" in str(caught.value)
    assert small("payload={elements: 2}").verdict.parameters_ok
