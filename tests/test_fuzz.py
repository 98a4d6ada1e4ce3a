"""A few wrong inputs of every kind in every run of the tests; `python -m tests.fuzz` is the long run."""

from __future__ import annotations

import pytest

from tests.fuzz.kinds import kinds
from tests.fuzz.trying import attempt, wrong_with

#: How many of each kind: fewer of those that draw.
N_INPUTS = {"scenario": 12, "msccl": 12, "network": 12, "log": 4, "profile": 12, "npy": 12, "results": 3}
KINDS = tuple(N_INPUTS)


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
    assert sum(n_commands for n_commands, _ in tried) == N_INPUTS[kind] * len(made[kind].commands)


@pytest.mark.parametrize(
    ("code", "said", "wrong"),
    [
        (0, "fine\n", ""),
        (2, "Error: a.yaml:1: no\n", ""),
        (1, "Error: this is a bug", "exit code 1: Error: this is a bug"),
        (124, "", "exit code 124: "),
        (0, "\x1b[31m", "what is not printable"),
        (2, " ", "refused without a word"),
        (2, "out of memory", "memory ran out"),
    ],
)
def test_what_no_command_may_do_is_seen(code, said, wrong):
    found = [*wrong_with(code, said)]
    assert found == [] if not wrong else found[0].startswith(wrong)
