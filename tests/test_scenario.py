"""What a loaded scenario is: plain SI, a document that gives the same run, a key; and what ships."""

from __future__ import annotations

import json
import math
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ringnet.errors import InputError
from ringnet.scenario import Scenario, load, loads, template

ROOT = Path(__file__).parents[1] / "scenarios"
SHIPPED = sorted(ROOT.glob("*.yaml"))

GOOD = "{scenario_version: 1, name: x, workers: 4, message: 1 KiB, network: {bandwidth: 50 GB/s, latency: 5 us}}"


def scenario_or_error(act) -> Scenario | InputError:
    """What ``act`` returns, or the faults it raises: nothing else may come out of it."""
    try:
        return act()
    except InputError as error:
        return error


class TestKeys:
    def test_defaults(self):
        found = loads(GOOD)
        assert (found.collective, found.algorithm, found.dtype, found.reduce) == (
            "all-reduce",
            "ring",
            "float32",
            "sum",
        )
        assert (found.data, found.payload, found.seed, found.engine) == ("random", "full", 0, "auto")
        assert (found.network.topology, found.network.switching, found.network.sharing) == (
            "ring",
            "cut-through",
            "auto",
        )
        assert (found.worker.sends, found.worker.reduce_Bps, found.worker.start_s) == ("eager", math.inf, 0)
        assert (found.report.transfers, found.report.plots) == (200_000, None)
        assert "states" not in found.report.tables

    def test_quantities_are_plain_si(self):
        found = loads(GOOD, ["network.bandwidth=400 Gbit/s", "message=64 MiB", "worker.start=1 min"])
        assert (found.network.bandwidth_Bps, found.message_bytes, found.worker.start_s) == (50e9, 2**26, 60)

    def test_words(self):
        found = loads(GOOD, ["worker.start=never", "worker.reduce_rate=free", "report.transfers=all"])
        assert (found.worker.start_s, found.worker.reduce_Bps, found.report.transfers) == (
            math.inf,
            math.inf,
            sys.maxsize,
        )

    @pytest.mark.parametrize(("payload", "carry"), [("full", None), ("none", 0), ("{elements: 5}", 5)])
    def test_carry(self, payload, carry):
        assert loads(GOOD, [f"payload={payload}"]).carry == carry

    def test_the_name_is_that_of_the_file_if_left_out(self, tmp_path):
        file = tmp_path / "my ring.yaml"
        file.write_text(GOOD.replace("name: x, ", ""))
        assert load(file).name == "my ring"

    def test_is_frozen(self):
        with pytest.raises(ValidationError, match="frozen"):
            loads(GOOD).workers = 5

    def test_survives_another_process(self):
        found = loads(GOOD, ["sweep.over.seed=[1, 2]"])
        again = pickle.loads(pickle.dumps(found))
        assert again.key() == found.key()
        assert [point.scenario.key() for point in again.points()] == [point.scenario.key() for point in found.points()]


class TestDocument:
    def test_holds_every_default(self):
        document = loads(GOOD).document()
        assert document["worker"]["reduce_rate"] == "free"
        assert document["network"] == {
            "topology": "ring",
            "bandwidth": "50 GB/s",
            "latency": "5 us",
            "sharing": "auto",
            "routes": "shortest",
            "placement": "numbered",
            "order": "numbered",
            "links_of": {},
            "links": {},
        }

    def test_holds_no_key_that_is_never_read(self):
        found = loads(GOOD, ["payload=none", "collective=all-gather"]).document()
        assert {"seed", "data", "reduce", "weights"} & found.keys() == set()
        assert "reduce_rate" not in found["worker"]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (["message=1 KiB"], ["message=1024 B"]),
            (["network.bandwidth=400 Gbit/s"], ["network.bandwidth=50 GB/s"]),
            (["network.latency=5 us"], ["network.latency=5000 ns"]),
            (["payload=none"], ["payload=none", "engine=auto"]),
            ([], ["seed=0", "dtype=float32"]),
        ],
    )
    def test_equal_runs_have_one_key(self, one, other):
        assert loads(GOOD, one).key() == loads(GOOD, other).key()

    def test_a_seed_that_nobody_reads_is_not_in_the_key(self):
        seeded = GOOD.replace("name: x", "name: x, seed: 7")
        assert loads(seeded, ["payload=none"]).key() == loads(GOOD, ["payload=none"]).key()

    @pytest.mark.parametrize(
        "change",
        [
            *("workers=5", "message=2 KiB", "seed=1", "reduce=max", "dtype=int8", "name=y", "data=ramp"),
            *("network.latency=5.0001 us", "network.links.0->1.latency=1 us", "network.topology=switch"),
            *("worker.exceptions.0.start=1 us", "worker.sends=rendezvous", "payload.elements=1"),
            "engine=events",
        ],
    )
    def test_every_change_changes_the_key(self, change):
        assert loads(GOOD, [change]).key() != loads(GOOD).key()

    def test_numbers_are_exact(self):
        latency_s = 1e-6 / 3
        document = loads(GOOD, [f"network.latency={latency_s!r} s"]).document()
        assert loads(json.dumps(document)).network.latency_s == latency_s


QUANTITIES = st.integers(1, 10**6)


@st.composite
def changes(draw):
    """Overrides that go together, one for each of some keys."""
    reduce = draw(st.sampled_from(["sum", "max", "mean"]))
    choices = {
        "collective": st.sampled_from(["all-reduce", "reduce-scatter"]),
        "message": QUANTITIES.map(lambda number: f"{8 * number} B"),
        "dtype": st.sampled_from(["float64", "bfloat16", "float32"]),
        "data": st.sampled_from(["ramp", "random"]),
        "payload": st.sampled_from(["full", "none", "{elements: 3}"]),
        "name": st.text(min_size=1, max_size=9)
        .filter(lambda text: text.strip() and text.isprintable())
        .map(json.dumps),
        "network.bandwidth": st.floats(1, 1e15).map(lambda rate: f"{rate!r} B/s"),
        "network.latency": st.floats(0, 100).map(lambda time: f"{time!r} s"),
        "network.topology": st.sampled_from(["ring", "switch"]),
        "network.links_of.2.latency": QUANTITIES.map("{} ns".format),
        "worker.sends": st.sampled_from(["eager", "rendezvous"]),
        "worker.reduce_rate": QUANTITIES.map("{} MB/s".format) | st.just("free"),
        "worker.exceptions.3.start": QUANTITIES.map("{} ns".format) | st.just("never"),
        "report.transfers": QUANTITIES.map(str) | st.just("all"),
        "report.tables": st.just("[links, summary]"),
    }
    keys = draw(st.sets(st.sampled_from(sorted(choices))))
    given_keys = [f"{key}={draw(choices[key])}" for key in sorted(keys)]
    return [*given_keys, f"reduce={reduce}", *(["weights=[1, 2, 3, 4]"] if reduce == "mean" else [])]


@given(changes())
def test_a_document_gives_the_same_run(overrides):
    found = scenario_or_error(lambda: loads(GOOD, overrides))
    if isinstance(found, InputError):  # the one pair of keys that does not go together
        assert {fault.path for fault in found.faults} == {"data"}
        return
    again = loads(json.dumps(found.document()))
    assert again.document() == found.document()
    assert again.key() == found.key()
    assert again.notes == ()
    assert again.model_dump() == found.model_dump()


class TestFiles:
    @pytest.fixture
    def text(self, tmp_path):
        np.save(tmp_path / "both.npy", np.arange(12, dtype=np.float64).reshape(2, 3, 2))
        np.save(tmp_path / "w0.npy", np.zeros(6, np.int32))
        np.save(tmp_path / "w1.npy", np.ones(6, np.int32))
        return "{scenario_version: 1, name: x, network: {bandwidth: 1 GB/s, latency: 1 us}, data: both.npy}"

    def test_give_workers_size_and_dtype(self, tmp_path, text):
        found = loads(text, folder=tmp_path)
        assert (found.workers, found.message_bytes, found.dtype, found.files) == (
            2,
            48,
            "float64",
            ("both.npy",),
        )
        one_each = loads(text, ["data=[w0.npy, w1.npy]"], folder=tmp_path)
        assert (one_each.workers, one_each.message_bytes, one_each.dtype) == (2, 24, "int32")

    def test_what_they_give_may_be_stated_too(self, tmp_path, text):
        assert loads(text, ["workers=2", "dtype=float64"], folder=tmp_path).workers == 2

    def test_their_content_is_in_the_key(self, tmp_path, text):
        before = loads(text, folder=tmp_path)
        first = before.key()
        np.save(tmp_path / "both.npy", np.ones((2, 3, 2)))
        assert loads(text, folder=tmp_path).key() != first
        np.save(tmp_path / "both.npy", np.arange(12, dtype=np.float64).reshape(2, 3, 2))
        assert loads(text, folder=tmp_path).key() == first
        assert list(before.inputs()) == ["both.npy"]

    def test_a_file_that_has_gone_since(self, tmp_path, text):
        found = loads(text, folder=tmp_path)
        (tmp_path / "both.npy").unlink()
        with pytest.raises(InputError, match=r"data: both\.npy: cannot be read as \.npy"):
            found.key()

    def test_a_document_with_files_gives_the_same_run(self, tmp_path, text):
        found = loads(text, folder=tmp_path)
        again = loads(json.dumps(found.document()), folder=tmp_path)
        assert (again.key(), again.document(), again.notes) == (found.key(), found.document(), ())

    def test_swept(self, tmp_path, text):
        sweep = "sweep.over.data=[both.npy, [w0.npy, w1.npy]]"
        found = loads(text.replace(", data: both.npy", ""), [sweep], folder=tmp_path)
        assert [point.scenario.dtype for point in found.points()] == ["float64", "int32"]
        assert sorted(found.inputs()) == ["both.npy", "w0.npy", "w1.npy"]
        again = loads(json.dumps(found.document()), folder=tmp_path)
        assert [point.scenario.key() for point in again.points()] == [point.scenario.key() for point in found.points()]

    def test_an_override_by_made_data(self, tmp_path, text):
        found = loads(text, ["data=ramp", "workers=3", "message=8 B"], folder=tmp_path)
        assert (found.workers, found.files, found.inputs()) == (3, (), {})


class TestShipped:
    @pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
    def test_loads_without_a_note(self, file):
        found = load(file)
        assert found.notes == ()
        assert found.n_points == len(found.points())

    @pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
    def test_says_what_it_asks_and_what_to_look_at(self, file):
        lines = file.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("# ")
        assert "?" in lines[0]
        assert lines[1].startswith("# Look at: ")
        assert "scenario_version: 1" in lines

    def test_what_there_is(self):
        stems = {file.stem for file in SHIPPED}
        assert stems >= {
            *("quickstart", "worked-example", "time-vs-workers", "time-vs-message-size", "grid", "slow-link"),
            *("slow-worker", "uneven-chunks", "fewer-elements-than-workers", "weighted-mean"),
            *("store-and-forward", "own-gradients"),
        }

    def test_quickstart(self):
        found = load(ROOT / "quickstart.yaml")
        assert (found.workers, found.message_bytes, found.dtype, found.payload) == (
            8,
            2**26,
            "float32",
            "full",
        )

    def test_data_is_small(self):
        assert sum(file.stat().st_size for file in ROOT.rglob("*")) < 100_000


def test_the_template_loads_without_a_note():
    assert loads(template()).notes == ()


def test_everything_that_the_template_only_mentions_can_be_said():
    """Each commented key of the template, made a key."""
    _, _, body = template().partition("scenario_version")
    lines = f"scenario_version{body}".splitlines()
    spoken = [line.replace("# ", "", 1) if line.lstrip().startswith("# ") else line for line in lines]
    text = "\n".join(line for line in spoken if not line.startswith("Many runs"))
    found = loads(text.replace("topology: ring ", "topology: switch ").replace("3->4:", "3->switch:"))
    assert isinstance(found, Scenario)
    assert found.n_points == 4 * 11


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_tree_of_known_keys_is_a_scenario_or_faults(data):
    words = "ring,switch,full,none,never,free,all-gather,mean,1 KiB,5 us,5 GB/s,a.npy,0->1,1e400 s,.."
    names = (
        "0 0->1 elements collective workers message dtype reduce weights data payload seed network worker",
        "sweep report topology bandwidth latency switching links links_of start exceptions over zip from to",
    )
    leaf = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.sampled_from(words.split(","))
        | st.text(max_size=5)
    )
    keys = st.sampled_from(" ".join(names).split()) | st.text(max_size=3)
    tree = st.recursive(leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))
    drawn = data.draw(st.lists(st.tuples(st.lists(keys, min_size=1, max_size=3), tree), max_size=3))
    overrides = [f"{'.'.join(path)}={json.dumps(value)}" for path, value in drawn]
    found = scenario_or_error(lambda: loads(GOOD, overrides))
    if isinstance(found, Scenario):
        assert loads(json.dumps(found.document())).document() == found.document()
