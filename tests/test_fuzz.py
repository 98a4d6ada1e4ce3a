"""A few wrong inputs of every kind in every run of the tests; `python -m tests.fuzz` is the long run."""

from __future__ import annotations

import os
import re
import signal
from copy import deepcopy
from itertools import chain, product
from random import Random

import pytest

from ringnet.errors import InputError
from ringnet.scenario import loads
from ringnet.study import cost
from tests.fuzz import keys
from tests.fuzz.keys import BASES, COUNTS, Place, kinds_of_keys, pairs, places, put, text_of
from tests.fuzz.kinds import CountsKind, PairsKind, kinds
from tests.fuzz.options import ARGUMENTS
from tests.fuzz.trying import apart, attempt, attempt_apart, is_long, wrong_with

#: How many of each kind: fewer of those that draw.
N_INPUTS = {
    "scenario": 12,
    "msccl": 12,
    "network": 8,
    "log": 2,
    "nccl": 8,
    "profile": 8,
    "npy": 12,
    "results": 2,
    "keys": 20,
    "layers": 12,
    "hook": 10,
    "options": 8,
}
KINDS = tuple(N_INPUTS)
#: What says itself what is to be done.
SELF_EVIDENT = "never read|leave the key out|cannot be read.*No such file"
N_PAIRS = 40


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found = kinds(tmp_path_factory.mktemp("start"))
    assert tuple(found) == KINDS
    return found


@pytest.mark.filterwarnings("default")  # what a user gets, too
@pytest.mark.parametrize("kind", KINDS)
def test_no_wrong_input_ends_in_a_bug_a_hang_or_without_a_word(kind, made, own_folder):
    tried = [attempt(kind, made[kind], seed, own_folder / "here") for seed in range(N_INPUTS[kind])]
    assert [one for _, findings in tried for one in findings] == []
    assert sum(len(ended) for ended, _ in tried) >= N_INPUTS[kind]


@pytest.mark.filterwarnings("default")
def test_no_two_keys_of_the_format_end_in_a_bug(made, own_folder):
    """Every kind of key is in one of them; `python -m tests.fuzz --pairs` sets every two."""
    kind = PairsKind(made["keys"].files, made["keys"].commands)
    numbers = Random(1).sample(range(len(pairs())), N_PAIRS)
    tried = [attempt("pairs", kind, number, own_folder / "here") for number in numbers]
    assert [one for _, findings in tried for one in findings] == []
    # One random pair in six goes together and is run; of the others, few are told by a command.
    codes = [one.code for ended, _ in tried for one in ended]
    assert {*codes} == {0, 2}
    assert codes.count(0) >= N_PAIRS / 10


@pytest.mark.filterwarnings("default")
def test_no_count_is_too_large_for_its_time_and_memory(made, own_folder, monkeypatch):
    """One of the keys, set to all of them; `python -m tests.fuzz --counts` sets every one."""
    chosen = [base for base in BASES if base.get("algorithm", {}) == {"name": "pipelined-ring", "n_slices": 2}]
    monkeypatch.setattr(keys, "BASES", chosen)
    monkeypatch.setattr(keys, "kinds_of_keys", lambda: {"": [Place(("algorithm", "n_slices"), (1,), "")]})
    monkeypatch.setattr(cost, "pace", lambda: 1.0)  # a machine whose tests are traced is not slow
    kind = CountsKind(made["keys"].files, made["keys"].commands)
    assert kind.n_inputs == 2 * len(COUNTS)
    tried = [attempt_apart("counts", kind, [number], own_folder / "here") for number in range(kind.n_inputs)]
    assert [one for _, findings in tried for one in findings] == []
    ends = [[one.code for one in ended] for ended, _ in tried]
    assert [0, 0] in ends
    assert [2, 2] in ends


@pytest.mark.parametrize(
    ("said", "is_not_run"),
    [
        ("takes   roughly a second\n", False),
        ("takes   roughly 9 seconds\n", False),
        ("takes   roughly 15 seconds\n", True),
        ("takes   roughly 1,157 days\n", True),
        ("memory  about 5 GiB, 9 GiB are free\n", True),
        ("Error: a.yaml:1: workers: too large\n", False),
    ],
)
def test_what_takes_long_is_not_run(said, is_not_run):
    assert is_long(said) == is_not_run


def test_every_key_and_every_command_has_its_turn():
    kinds = kinds_of_keys()
    assert len(pairs()) == len(kinds) * (len(kinds) - 1) / 2
    assert [*chain(*kinds.values())] == sorted(places(), key=lambda place: [*kinds].index(place.kind))
    assert all(place.values for place in places())
    assert {"network.topology", "jobs.0.after", "step.slow_workers.1"} <= {str(place) for place in places()}
    assert {str(place) for place in kinds["LinkExceptionKeys.latency"]} == {
        f"network.{links}.latency" for links in ("links.0->1", "links.*->*", "links_of.n_slices", "links_of.h0/nic0")
    }
    from ringnet.cli import COMMANDS  # noqa: PLC0415

    assert {*COMMANDS} - {*ARGUMENTS} == {"measure", "schema"}


def test_whatever_keys_are_put_into_is_right_by_itself(made):
    for base in BASES:
        text = text_of({"scenario_version": 1, **base})
        assert loads(text, folder=made["keys"].files[0].parent, allow_python=True)


def test_what_is_of_another_type_is_told_with_what_would_be_right(made):
    """At every key: nothing, and values that are not as it is; `RINGNET_LONG=1` tries all of them."""
    random, tried = Random(2), list(product(places(), (None, True, 2.5, "nonsense", [], [[0]], {"a": 1})))
    for place, value in tried if os.environ.get("RINGNET_LONG") else random.sample(tried, 150):
        scenario = {"scenario_version": 1, **deepcopy(random.choice(BASES))}
        put(scenario, place.path, deepcopy(value))
        try:
            loads(text_of(scenario), folder=made["keys"].files[0].parent, allow_python=True)
        except InputError as error:
            helpless = [one for one in error.faults if not (one.right or one.nearest)]
            assert [one for one in helpless if not re.search(SELF_EVIDENT, one.message)] == []


@pytest.mark.parametrize(
    ("code", "said", "wrong"),
    [
        (0, "fine\n", ""),
        (2, "Error: a.yaml:1: no\n", ""),
        (1, "Error: this is a bug", "exit code 1: Error: this is a bug"),
        (124, "", "exit code 124: "),
        (0, "\x1b[31m", "what is not printable"),
        (2, " ", "refused without a word"),
        (2, "Error: somewhere something is wrong", "no place: Error: somewhere"),
        (2, "out of memory", "memory ran out"),
    ],
)
def test_what_no_command_may_do_is_seen(code, said, wrong):
    found = [*wrong_with(code, said)]
    assert found == [] if not wrong else found[0].startswith(wrong)


def test_what_crashes_or_takes_memory_is_seen():
    assert apart(lambda: os.kill(os.getpid(), signal.SIGKILL)) == "the process ended with SIGKILL"
    assert apart(lambda: os._exit(3)) == "the process ended with 3"
    n_bytes = 64 << 20
    done, taken_bytes = apart(lambda: len(b"x" * n_bytes))
    # The system counts memory in batches of pages: a little of it may have been seen before.
    assert (done, 0.9 * n_bytes < taken_bytes < 1.5 * n_bytes) == (n_bytes, True)
