"""The error tree: exit codes, texts, and that an error survives SimPy and a process boundary."""

from __future__ import annotations

import pickle
import re

import pytest
import simpy

from ringnet import errors
from ringnet.errors import (
    AbortedError,
    DeadlockError,
    Fault,
    InputError,
    NetworkError,
    ResultsError,
    RingnetError,
    ScheduleError,
    StudyError,
    UnitError,
    VerificationError,
    Wait,
    WorkerError,
)

CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]

FAULT = Fault("a rate needs a unit", "network.bandwidth", "ring.yaml", 7, "50", "50 GB/s", "GB/s or Gb/s")
WAIT = Wait(1, 0, "chunk 3 of step 2", 4e-6)
EXAMPLES = [
    RingnetError("a bug"),
    InputError(FAULT, "and another thing"),
    UnitError(FAULT),
    ScheduleError("worker 1 never gets chunk 2"),
    NetworkError("no route"),
    ResultsError("not ours"),
    DeadlockError(WAIT),
    AbortedError(2.0, "at 2 s, after a wait of 1.5 s", WAIT),
    WorkerError("worker 2 was killed (SIGKILL)"),
    VerificationError("worker 1, chunk 2, element 3"),
    StudyError("2 of 9 points failed"),
]


def test_the_tree_in_the_docstring_is_the_tree_in_the_code():
    drawn = {name: int(code) for name, code in re.findall(r"(\w+Error) +(\d)", errors.__doc__)}
    assert drawn == {kind.__name__: kind.exit_code for kind in CLASSES}
    assert {type(error) for error in EXAMPLES} == set(CLASSES)


def test_every_error_is_a_ringnet_error():
    assert all(issubclass(kind, RingnetError) for kind in CLASSES)
    assert all(issubclass(kind, InputError) == (kind.exit_code == 2) for kind in CLASSES)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_wait_of_another_simpy_process(error):
    def failing(env):
        yield env.timeout(1)
        raise error

    def waiting(env):
        yield env.process(failing(env))

    env = simpy.Environment()
    with pytest.raises(type(error)) as caught:
        env.run(env.process(waiting(env)))
    assert caught.value is not error  # SimPy has made a new one
    assert (str(caught.value), vars(caught.value)) == (str(error), vars(error))


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_a_process_boundary(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_a_fault_says_where_what_and_what_would_be_right():
    assert str(FAULT) == (
        "ring.yaml:7: network.bandwidth: a rate needs a unit; "
        "got 50; right would be: 50 GB/s; did you mean GB/s or Gb/s?"
    )


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("no"), "no"),
        (Fault("no", file="ring.yaml"), "ring.yaml: no"),
        (Fault("no", file="--set", path="workers"), "--set: workers: no"),
        (Fault("no", line=3), "no"),
        (Fault("no", value="0", right="8"), "no; got 0; right would be: 8"),
        (Fault("no", nearest="workers"), "no; did you mean workers?"),
    ],
)
def test_a_fault_leaves_out_what_it_does_not_know(fault, text):
    assert str(fault) == text


def test_an_input_error_tells_all_faults_at_once():
    error = InputError(FAULT, "and another thing")
    assert error.faults == (FAULT, Fault("and another thing"))
    assert str(error).splitlines() == [str(FAULT), "and another thing"]


def test_a_deadlock_says_who_waits_for_whom():
    assert str(DeadlockError(WAIT)).splitlines() == [
        "the run cannot finish: 1 worker(s) wait for ever",
        "  worker 1 waits for worker 0: chunk 3 of step 2, since 4e-06 s",
    ]
    assert str(Wait(2, 2, "its start", 0.0)) == "worker 2 waits for its start, since 0 s"


@pytest.mark.parametrize(
    ("n_waits", "last"), [(12, "  worker 11 waits"), (13, "  and 1 more"), (5000, "  and 4988 more")]
)
def test_a_large_deadlock_is_cut_short(n_waits, last):
    lines = str(DeadlockError(*(Wait(i, i + 1, "chunk 0", 0.0) for i in range(n_waits)))).splitlines()
    assert len(lines) == min(n_waits, 13) + 1
    assert lines[-1].startswith(last)
