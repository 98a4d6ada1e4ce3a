"""Whether the columns of a schedule make sense at all: before anything is proved of what they move."""

from __future__ import annotations

from typing import NoReturn, get_args

import numpy as np

from ringnet.collectives.schedule import EVERY_WORKER, IntArray, Op, Schedule, Step
from ringnet.errors import Fault, ScheduleError

#: By collective: whether every worker contributes to each chunk, and whether every worker must end with it.
ENDS = {
    "all-gather": (False, True),
    "all-reduce": (True, True),
    "all-to-all": (False, False),
    "broadcast": (False, True),
    "reduce": (True, False),
    "reduce-scatter": (True, False),
}


def check_columns(schedule: Schedule) -> None:
    """Check every number of a schedule: lengths, ranges, counts, and what its collective says of its ends.

    Raises
    ------
    ScheduleError
        Says what is wrong, in which step, and what would be right.
    """
    _check_ends(schedule)
    n_steps = n_transfers = 0
    for step in schedule.steps():
        _check_step(schedule, step)
        n_steps += 1
        n_transfers += len(step)
    if (n_steps, n_transfers) != (schedule.n_steps, schedule.n_transfers):
        said = f"{schedule.n_steps} steps and {schedule.n_transfers} transfers"
        refuse(
            "the schedule does not have what it says", said, f"{n_steps} steps and {n_transfers} transfers"
        )


def refuse(message: str, value: str = "", right: str = "") -> NoReturn:
    """Raise one fault."""
    raise ScheduleError(Fault(message, value=value, right=right))


def at(step: Step) -> str:
    """Name a step: ``all-gather step 3``."""
    return f"{step.phase} step {step.step}"


def _check_ends(schedule: Schedule) -> None:
    """Check that each chunk has a source and a target, and that they are those of the collective."""
    for name, workers in (("source", schedule.source), ("target", schedule.target)):
        if len(workers) != schedule.n_chunks:
            refuse(f"there is not one {name} for each chunk", str(len(workers)), str(schedule.n_chunks))
        _check_range(f"a {name}", workers, EVERY_WORKER, schedule.n_workers)
    for name, everyone in zip(("source", "target"), ENDS.get(schedule.collective, ()), strict=False):
        workers = getattr(schedule, name)
        for chunk in np.flatnonzero((workers == EVERY_WORKER) != everyone)[:1].tolist():
            what = f"the {name} of chunk {chunk} is not that of {schedule.collective}"
            refuse(what, str(workers[chunk]), f"{EVERY_WORKER}, every worker" if everyone else "one worker")


def _check_step(schedule: Schedule, step: Step) -> None:
    if step.op not in get_args(Op):
        refuse(f"{at(step)}: an op that there is not", step.op, " or ".join(get_args(Op)))
    limits = {
        "src": schedule.n_workers,
        "dst": schedule.n_workers,
        "chunk": schedule.n_chunks,
        "channel": schedule.n_channels,
        "to_channel": schedule.n_channels,
    }
    for name, limit in limits.items():
        column = step.receiving_channel if name == "to_channel" else getattr(step, name)
        if len(column) != len(step):
            refuse(f"{at(step)}: columns of unequal length", f"{name} has {len(column)}, src {len(step)}")
        _check_range(f"{at(step)}: {name}", column, 0, limit)
    if step.count is not None:
        _check_counts(schedule, step, step.count)
    if (to_itself := step.src == step.dst).any():
        worker, chunk = step.src[to_itself][0], step.chunk[to_itself][0]
        refuse(f"{at(step)}: worker {worker} sends chunk {chunk} to itself")


def _check_counts(schedule: Schedule, step: Step, count: IntArray) -> None:
    if len(count) != len(step):
        refuse(f"{at(step)}: columns of unequal length", f"count has {len(count)}, src {len(step)}")
    _check_range(f"{at(step)}: a count", count, 1, schedule.n_chunks + 1)
    _check_range(f"{at(step)}: the last chunk of a transfer", step.chunk + count - 1, 0, schedule.n_chunks)


def _check_range(what: str, numbers: IntArray, first: int, limit: int) -> None:
    if len(numbers) and not (first <= numbers.min() and numbers.max() < limit):
        wrong = numbers[(numbers < first) | (numbers >= limit)][0]
        refuse(f"{what} that there is not", str(wrong), f"{first} to {limit - 1}")
