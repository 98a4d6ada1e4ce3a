"""Scenarios that train: what is written and said, every step through the network, every mistake with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ringnet
from ringnet.cli import app
from ringnet.errors import InputError, VerificationError
from ringnet.payload.tamper import Tamper
from ringnet.reporting.results import collect
from ringnet.runs.training import plan_of
from ringnet.training.trainer import Replica, train
from tests.trainings import by_reference

pytestmark = pytest.mark.usefixtures("sketched")  # what figures look like is tested elsewhere

SCENARIOS = Path(__file__).parents[1] / "scenarios"
NETWORK = "network: {bandwidth: 1 GB/s, latency: 1 us}"
BY_HAND = f"""\
scenario_version: 1
{NETWORK}
training:
  model: {{name: given, gradients: [[2], [6]], parameters: [10]}}
  batch: [1, 3]
  optimizer: {{learning_rate: 0.5}}
"""
DIGITS = f"""\
scenario_version: 1
workers: 4
{NETWORK}
training:
  model: {{name: digits, hidden: [5], examples: 60}}
  split: [30, 20, 10, 0]
  batch: 8
  microbatches: 2
  optimizer: {{name: adam}}
  moving_average: 0.9
"""
OWN = f"""\
scenario_version: 1
workers: 3
{NETWORK}
training:
  model: {{python: 'my.py:gradients', examples: 30}}
  batch: 5
"""
MY_PY = """\
import numpy as np

inputs = np.linspace(-1, 1, 60).reshape(30, 2)

def parameters():
    return {"weight": np.zeros(2), "bias": np.zeros(())}

def gradients(now, examples):
    error = inputs[examples] @ now["weight"] + now["bias"] - 1
    return (error**2).mean() / 2, {"weight": (inputs[examples] * error[:, None]).mean(0), "bias": error.mean()}

def wrong_shape(now, examples):
    return 1.0, {"weight": np.zeros(3), "bias": 0.0}

def no_number(now, examples):
    loss, found = gradients(now, examples)
    if 17 in examples:
        found["weight"][1] = np.inf
    return loss, found

def fails(now, examples):
    return now["nothing"]
"""


def run(text, *overrides, **options):
    return ringnet.simulate(ringnet.loads(text, overrides), **options)


@pytest.fixture
def cli():
    return lambda *arguments: CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def home(tmp_path):
    (tmp_path / "my.py").write_text(MY_PY)
    return tmp_path


def own(home, *overrides):
    return ringnet.loads(OWN, overrides, folder=home, allow_python=True)


def faults(text, *overrides, **options):
    with pytest.raises(InputError) as caught:
        ringnet.loads(text, overrides, **options)
    return [str(fault) for fault in caught.value.faults]


# ------------------------------------------------------------------------------------------------- what comes out


def test_by_hand_every_number_of_the_shipped_scenario_is_in_a_table():
    result = ringnet.simulate(ringnet.load(SCENARIOS / "training-by-hand.yaml"))
    states = result.step_states
    assert len(states) == 3 * 2 * 7
    first = states[states["step"] == 0].pivot_table("value", "what", "worker", aggfunc="first")
    assert first.loc["gradient"].tolist() == [2, 6]
    assert first.loc["sent"].tolist() == [2, 18]
    assert first.loc["received"].tolist() == [20, 20]
    assert first.loc["combined"].tolist() == [5, 5]
    assert first.loc["parameter"].tolist() == [7.5, 7.5]
    assert first.loc["average"].tolist() == [9.375, 9.375]


@pytest.mark.parametrize(("batch", "mean"), [("1", 4), ("[1, 3]", 5)])
def test_equal_counts_give_4_and_1_and_3_give_5(batch, mean):
    result = run(BY_HAND, f"training.batch={batch}")
    assert result.training["max_abs_gradient"].tolist() == [mean]
    assert result.summary["loss"] == mean * 10


@pytest.mark.parametrize(
    "change",
    [
        ("algorithm=ring",),
        ("algorithm=halving-doubling", "network.topology=switch", "reduce=mean"),
        ("algorithm=binomial-tree", "network.topology=switch", "dtype=bfloat16"),
        ("engine=recurrence", "reduce=weighted-mean", "dtype=float16"),
        ("engine=events", "training.master_dtype=float64", "dtype=float64"),
        ("jobs=[{workers: 2, message: 4 KiB}]", "network.topology=switch"),
    ],
    ids=" ".join,
)
def test_every_step_is_right_over_any_algorithm_network_and_type(change):
    result = run(DIGITS, *change)
    assert result.summary["sum_ok"]
    assert result.summary["state_agrees"]
    assert 0 < result.summary["whole_batch_share"] <= 1
    n = 64 * 5 + 5 + 5 * 10 + 10
    assert result.summary["verified_elements"] == n * 4 * len(result.training)
    assert result.summary["training_steps"] == 4
    assert result.training["examples"].tolist() == [24, 18, 12, 6]
    assert result.training["idle_workers"].tolist() == [1, 1, 2, 3]
    assert result.training["end_s"].iloc[-1] == pytest.approx(result.training["makespan_s"].sum(), rel=1e-12, abs=0)


def test_the_whole_training_is_that_of_the_ring_without_time_bit_for_bit():
    scenario = ringnet.loads(DIGITS.replace("  moving", "  steps: 6\n  moving"), ["reduce=mean"])
    bits = []
    for step in train(plan_of(scenario, scenario.training), by_reference):
        bits.append(float(np.abs(step.arrays["combined"][0]).max()))
    assert ringnet.simulate(scenario).training["max_abs_gradient"].tolist() == bits


def test_each_step_takes_the_time_of_the_same_all_reduce_without_training():
    result = run(DIGITS)
    alone = f"{{scenario_version: 1, workers: 4, message: {(64 * 5 + 5 + 60) * 4} B, {NETWORK}}}"
    assert set(result.training["makespan_s"]) == {run(alone).summary["makespan_s"]}


def test_parameters_are_within_rounding_of_one_exact_process_and_are_handed_out():
    momentum = "training.optimizer={name: momentum, learning_rate: 0.02}"
    result = run(DIGITS, momentum, "training.steps=8")
    assert result.summary["exact_steps"] == 8
    assert 0 < result.summary["exact_share"] <= 1
    assert result.training["exact_share"].max() == result.summary["exact_share"]
    assert {name: array.shape for name, array in result.parameters.items()} == {
        "weight0": (64, 5), "bias0": (5,), "weight1": (5, 10), "bias1": (10,)
    }  # fmt: skip
    short = run(
        DIGITS,
        "dtype=bfloat16",
        "training.microbatches=1",
        "training.optimizer={name: sgd, learning_rate: 0.1}",
        "training.steps=8",
    )
    n = short.summary["exact_steps"]
    assert 0 < n < 8
    assert short.training["exact_share"].isna().tolist() == [False] * n + [True] * (8 - n)


def test_parameters_beyond_what_rounding_can_do_are_wrong(monkeypatch):
    update = Replica.update
    monkeypatch.setattr(Replica, "update", lambda self, plan, gradient: update(self, plan, gradient * 1.001))
    result = run(DIGITS, "training.optimizer.name=sgd", "training.optimizer.learning_rate=0.1")
    assert result.summary["sum_ok"] is False
    assert "parameters further from one process than rounding goes" in str(result.verdict.mismatch)


def test_the_ways_are_in_a_table_and_the_wrong_ones_part():
    ways = run(DIGITS, "training.steps=8").divergence
    assert set(ways["way"]) == {
        "one process", "unweighted mean", "averaged updates", "as returned", "average each microbatch"
    }  # fmt: skip
    last = ways[ways["step"] == 7].set_index("way")["parted"]
    assert last["one process"] < 1e-4
    assert (last.drop("one process") > 1e-3).all()


def test_a_shorter_type_costs_digits_and_saves_time():
    points = [run(DIGITS, f"dtype={dtype}").summary for dtype in ("float32", "float16", "bfloat16")]
    digits, times = ([point[key] for point in points] for key in ("gradient_digits", "all_reduce_s"))
    assert digits[0] > 6
    assert 3 < digits[1] < 4
    assert 2 < digits[2] < 3
    assert times[0] > times[1] == times[2]


def test_a_bit_that_flips_under_way_is_a_wrong_sum_and_ends_the_training():
    result = run(DIGITS, tamper=Tamper("flip", worker=1, chunk=0, bit=10))
    assert result.summary["sum_ok"] is False
    assert result.verdict.mismatch.check == "replay"
    assert len(result.training) == 1


def test_a_copy_that_goes_wrong_leaves_workers_unlike():
    # In a ring of four, worker 3 gets chunk 3 as a copy of the complete sum only.
    result = run(DIGITS, tamper=Tamper("flip", worker=3, chunk=3, bit=20))
    assert result.summary["state_agrees"] is False
    assert result.training["state_agrees"].tolist() == [False]


def test_collected_tables_have_the_types_of_their_columns():
    found = collect([run(BY_HAND)], {})
    assert found.training["examples"].dtype == "int64"
    assert found.divergence["parted"].dtype == "float64"
    assert found.step_states["what"].tolist()[:4] == ["gradient", "sent", "received", "combined"]


def test_states_are_left_out_where_nobody_could_read_them():
    assert run(DIGITS).step_states is None


# ------------------------------------------------------------------------------------ a function of one's own


def test_a_function_of_ones_own_trains(home):
    result = ringnet.simulate(own(home, "training.steps=40", "training.optimizer.learning_rate=0.5"))
    assert result.training["loss"].iloc[0] == pytest.approx(0.5)
    assert result.training["loss"].iloc[-1] < 0.01
    assert result.summary["sum_ok"]
    assert result.summary["gradient_digits"] > 6
    assert result.summary["whole_batch_share"] is None
    assert "how your function rounds is not known: its whole batch is compared, and not judged" in result.notes


def test_each_run_starts_anew(home):
    scenario = own(home)
    first, second = ringnet.simulate(scenario), ringnet.simulate(scenario)
    assert first.training.equals(second.training)


def test_its_file_counts_where_results_are_kept(home):
    before, scenario = own(home).key(), own(home)
    assert set(scenario.inputs()) == {"my.py"}
    (home / "my.py").write_text(MY_PY.replace("- 1", "- 2"))
    assert own(home).key() != before
    swept = OWN + "sweep: {over: {training.model.python: ['my.py:gradients', 'my.py:no_number']}}"
    assert set(ringnet.loads(swept, folder=home, allow_python=True).inputs()) == {"my.py"}


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (
            "wrong_shape",
            InputError,
            "returns a wrong gradient of weight; got float64, shape (3,); right would be: shape (2,)",
        ),
        ("fails", InputError, "my.py:22: KeyError: 'nothing'"),
        (
            "no_number",
            VerificationError,
            "step 1: the gradient of worker 1 is inf in layer weight, element 1",
        ),
    ],
)
def test_what_goes_wrong_in_it_is_said(home, function, error, message):
    with pytest.raises(error) as caught:
        ringnet.simulate(own(home, f"training.model.python=my.py:{function}"))
    assert message in str(caught.value)


def test_a_step_that_is_skipped_is_said_and_counted(home):
    skip = ("training.model.python=my.py:no_number", "training.on_nonfinite=skip")
    result = ringnet.simulate(own(home, *skip))
    place = "the gradient of worker 1 is inf in layer weight, element 1"
    assert result.summary["skipped_steps"] == 1
    assert result.summary["sum_ok"]
    assert [row or None for row in result.training["skipped"]] == [None, place]
    assert f"one step is skipped at all workers: in step 1 {place}" in result.notes


def test_it_is_run_only_where_that_is_allowed(home):
    (fault,) = faults(OWN, folder=home)
    assert "training.model.python: a scenario that runs a Python file is only run if you allow it" in fault
    assert "--allow-python" in fault


def test_a_model_is_one_of_both(home):
    (fault,) = faults(OWN, "training.model.name=digits", folder=home, allow_python=True)
    assert "training.model: a model has a name or a function, one of both" in fault
    (fault,) = faults(OWN.replace(", examples: 30", ""), folder=home, allow_python=True)
    assert "training.model: nothing says how many examples there are" in fault


def test_a_file_without_a_start_is_refused(home):
    (home / "my.py").write_text("def gradients(now, examples): pass")
    (fault,) = faults(OWN, folder=home, allow_python=True)
    assert "the file needs a function parameters(), which returns the arrays before the first step" in fault


# ------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.batch=[0, 0]", "training.batch: no worker has an example: there is no mean over none"),
        ("training.batch=[1, -3]", "training.batch[1]: a whole number from 0 up is wanted; got -3"),
        ("training.batch=[1, 2, 3]", "training.batch: 3 numbers for 2 workers"),
        ("training.split=[1, 2]", "training.split: the key is never read: given gradients have no examples"),
        ("training.optimizer.name=adm", "training.optimizer.name: there is no such optimizer; got adm"),
        ("training.optimizer.beta2=0.9", "training.optimizer.beta2: the key is never read: sgd has no beta2"),
        (
            "training.model.gradients=[[1, 2], [3]]",
            "training.model.gradients: the gradients have 2, 1 elements",
        ),
        ("training.model.parameters=[1, 2]", "training.model.parameters: 2 parameters for gradients of 1"),
        ("training.model.hidden=[4]", "training.model.hidden: the key is never read: it is for digits"),
        ("training.model.name=diggits", "training.model.name: there is no such model; got diggits"),
        ("workers=3", "training.model.gradients: 2 gradients for 3 workers"),
        ("message=4 B", "message: the key is never read: the model says how large it is"),
        ("weights=[1, 3]", "weights: the key is never read: a training weights by numbers of examples"),
        ("seed=1", "seed: the key is never read: nothing in this training is drawn"),
        ("data=ramp", "data: the key is never read: the gradients are the data"),
        ("reduce=max", "reduce: gradients are combined into a mean"),
        ("collective=broadcast", "collective: gradients are combined by an all-reduce"),
        ("dtype=int8", "dtype: gradients are no whole numbers"),
        ("payload={elements: 1}", "payload: a training needs every element"),
        (
            "training.moving_average=1",
            "training.moving_average: a finite number from zero to below 1 is wanted",
        ),
        ("training.on_nonfinite=stip", "training.on_nonfinite: there is no such way out; got stip"),
        ("training.steps=0", "training.steps: a whole number from 1 to 10,000 is wanted; got 0"),
    ],
)
def test_a_mistake_is_told_at_its_key(change, message):
    assert any(message in fault for fault in faults(BY_HAND, change)), faults(BY_HAND, change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "training.split=[30, 30, 30, 30]",
            "training.split: the parts add up to 120, and there are 60 examples",
        ),
        ("training.split=[0, 0, 0, 0]", "training.split: no worker has an example"),
        ("training.batch=[0, 0, 0, 4]", "training.batch: those who have examples take none"),
    ],
)
def test_a_mistake_in_the_parts_is_told(change, message):
    assert any(message in fault for fault in faults(DIGITS, change)), faults(DIGITS, change)


def test_all_mistakes_come_at_once_with_their_lines():
    text = BY_HAND.replace("[1, 3]", "[0, 0]").replace("learning_rate: 0.5", "name: adagrad") + "reduce: min\n"
    found = faults(text)
    assert [fault.split(": ")[0] for fault in found] == ["<text>:5", "<text>:6", "<text>:7"]


# ------------------------------------------------------------------------------------------------- the command line


def test_the_command_trains_and_draws(cli, tmp_path):
    (tmp_path / "train.yaml").write_text(DIGITS)
    done = cli("run", tmp_path / "train.yaml", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "training" in done.stdout
    assert "one process      gradients alike to" in done.stdout
    assert {"training.csv", "divergence.csv", "training-ways.png"} <= {
        file.name for file in (tmp_path / "out").iterdir()
    }


def test_a_gradient_that_is_no_number_ends_the_command_with_4(cli, home):
    (home / "train.yaml").write_text(OWN)
    change = "training.model.python=my.py:no_number"
    done = cli("run", home / "train.yaml", "--allow-python", "--set", change, "--out", home / "out")
    assert done.exit_code == 4
    assert "the gradient of worker 1 is inf in layer weight, element 1" in done.stderr
    assert not (home / "out").exists()


def test_what_asks_for_times_alone_takes_those_of_one_all_reduce(cli, tmp_path):
    (tmp_path / "train.yaml").write_text(DIGITS.replace("1 GB/s", "1 GB/s, links: {0->1: {bandwidth: 10 MB/s}}"))
    done = cli("blame", tmp_path / "train.yaml", "--no-plots", "--out", tmp_path / "blame")
    assert done.exit_code == 0, done.output
    assert "0->1" in done.stdout
    options = (
        "--algorithms",
        "ring,halving-doubling",
        "--no-plots",
        "--set",
        "network.topology=fully-connected",
    )
    reduce = ("--set", "reduce=weighted-mean")
    for command in ("compare", "numerics"):
        done = cli(command, tmp_path / "train.yaml", *options, *reduce, "--out", tmp_path / command)
        assert done.exit_code == 0, done.output


def test_a_way_that_leads_nowhere_is_drawn_as_far_as_it_goes(cli, tmp_path):
    (tmp_path / "train.yaml").write_text(DIGITS)
    sgd = "training.optimizer={name: sgd, learning_rate: 0.5}"
    changes = ("--set", sgd, "--set", "training.steps=60")
    done = cli("run", tmp_path / "train.yaml", *changes, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    ways = ringnet.read_results(tmp_path / "out").divergence.groupby("way").last(skipna=False)
    assert ways["loss"].isna().to_dict()["as returned"]
    assert ways["loss"]["one process"] < 0.5
    assert (tmp_path / "out" / "training-ways.svg").is_file()


def test_two_trainings_differ_by_their_loss(cli, tmp_path):
    (tmp_path / "train.yaml").write_text(BY_HAND)
    for batch in ("1", "[1, 3]"):
        change = f"training.batch={batch}"
        done = cli("run", tmp_path / "train.yaml", "--no-plots", "--set", change, "--out", tmp_path / batch[:2])
        assert done.exit_code == 0
    done = cli("diff", tmp_path / "1", tmp_path / "[1")
    assert "loss  40  ->  50" in done.stdout
