"""A training: every step's gradients go through the simulated network, and every step is verified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from ringnet.analysis.result import RunResult
from ringnet.analysis.training import READABLE_STATES, TrainingLog, state_rows, with_training
from ringnet.array_types import Array
from ringnet.engines.trace import Watch
from ringnet.errors import Fault, InputError
from ringnet.payload import ArraySource, PackedPayload, Payload, Reduction
from ringnet.payload.dtypes import DTYPES
from ringnet.runs.memory import available_bytes
from ringnet.runs.parts import RunParts
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.files.trained_model import EXAMPLES, model_of
from ringnet.scenario.keys.training import TrainingKeys
from ringnet.training.exact import ExactTraining
from ringnet.training.models import n_parameters, unflattened
from ringnet.training.optimizers import make_optimizer
from ringnet.training.trainer import TrainingPlan, train
from ringnet.training.wrong_ways import Ways
from ringnet.units import format_bytes


class RunOnce(Protocol):
    """Runs one collective: its result, and what every worker holds afterwards."""

    def __call__(self, parts: RunParts, *, tries_links: bool) -> tuple[RunResult, Payload | PackedPayload | None]:
        """Run it; where it ``tries_links``, what the slowest are is confirmed by simulating again."""


#: Arrays like the parameters that a worker keeps, and that all ways beside the right one keep for it, at the most.
_ARRAYS_KEPT = 24


def plan_of(scenario: Scenario, training: TrainingKeys) -> TrainingPlan:
    """Return what a scenario trains, on what, and how.

    Raises
    ------
    InputError
        What is wrong with a user's file.
    """
    assert training.model is not None
    model, n_workers = model_of(training.model, scenario.home, scenario.seed), scenario.workers
    batch = training.batch if isinstance(training.batch, tuple) else (training.batch,) * n_workers
    n_examples = 0 if training.model.name == "given" else training.model.examples or EXAMPLES
    even = tuple(len(part) for part in np.array_split(np.arange(n_examples), n_workers))
    own = training.optimizer
    settings = own.model_dump(exclude={"name", "learning_rate"}, exclude_none=True)
    return TrainingPlan(
        model=model,
        optimizer=make_optimizer(own.name, own.learning_rate, **settings),
        split=() if training.model.name == "given" else training.split or even,
        batch=batch,
        wire=DTYPES[scenario.dtype],
        master=DTYPES[training.master_dtype],
        n_steps=training.steps or 0,
        microbatches=training.microbatches,
        reduce=scenario.reduce,
        decay=training.moving_average,
        on_nonfinite=training.on_nonfinite,
    )


def run_training(scenario: Scenario, parts: RunParts, run_once: RunOnce, watch: Watch | None) -> RunResult:
    """Train, each step with an all-reduce over the network of the scenario.

    Parameters
    ----------
    scenario : Scenario
        With a ``training.model``.
    parts : RunParts
        Of the scenario; the data of the workers is replaced at each step.
    run_once : callable
    watch : callable, optional
        Called with the number of steps, as `simulate` calls it with transfers.

    Returns
    -------
    RunResult
        Of the last step's all-reduce, with the tables of the training and a verdict on all its steps.

    Raises
    ------
    InputError
        The workers' parameters and optimizers do not fit into memory; a user's function returns something wrong.
    VerificationError
        A gradient is not finite, and the scenario says to stop.
    """
    assert scenario.training is not None
    plan = plan_of(scenario, scenario.training)
    n = n_parameters(plan.model.shapes)
    _require_memory(plan, n)
    log, ways, exact, results = TrainingLog.empty(), Ways(plan), ExactTraining(plan), list[RunResult]()
    is_readable = n * plan.n_workers * len(plan.steps) * _states_kept(plan) <= READABLE_STATES

    def all_reduce(sent: Sequence[Array], reduction: Reduction) -> list[Array]:
        one = replace(parts, source=ArraySource(sent), reduction=reduction)
        # All steps take the same time over the same links: the last one says for all what holds them back.
        result, payload = run_once(one, tries_links=len(log.rows) == len(plan.steps) - 1)
        results[:] = [result]
        return [_held(payload, worker, one) for worker in range(plan.n_workers)]

    if watch is not None:
        watch(len(plan.steps), lambda: len(log.rows))
    for step in train(plan, all_reduce):
        log.add(step, results[0], parts.schedule, n, exact.follow(step))
        log.divergence.extend(ways.follow(step))
        log.states.extend(state_rows(step, plan.model.shapes) if is_readable else ())
        if log.is_wrong:  # what follows would be wrong for this reason
            break
    parameters = {name: part.copy() for name, part in unflattened(step.parameters, plan.model.shapes).items()}
    return with_training(results[0], log, parameters, _notes(plan, log))


def _states_kept(plan: TrainingPlan) -> int:
    """Return how many arrays of each worker a table of states has: gradients, parameters and memory."""
    return 5 + len(plan.optimizer.start(np.zeros(1))) + (plan.decay is not None)


def _held(payload: Payload | PackedPayload | None, worker: int, parts: RunParts) -> Array:
    assert payload is not None  # a training carries everything
    held = (payload.held(worker, chunk) for chunk in range(len(parts.chunk_sizes)))
    return np.concatenate([part for part in held if part is not None])


def _require_memory(plan: TrainingPlan, n: int) -> None:
    """Refuse a training whose workers do not fit into memory."""
    wanted, available = _ARRAYS_KEPT * n * plan.n_workers * plan.master.itemsize, available_bytes()
    if wanted > available:
        message = f"the workers of this training take about {format_bytes(wanted)} of memory"
        right = "fewer workers, or a smaller model"
        raise InputError(Fault(message, "training", value=f"{format_bytes(available)} free", right=right))


def _notes(plan: TrainingPlan, log: TrainingLog) -> list[str]:
    """Return what a person should know to read the numbers of a training."""
    notes = []
    skipped = [row for row in log.rows if row["skipped"]]
    if skipped:
        first, n = skipped[0], len(skipped)
        many = f"{n} steps are" if n > 1 else "one step is"
        notes.append(f"{many} skipped at all workers: in step {first['step']} {first['skipped']}")
    idle = sum(row["idle_workers"] > 0 for row in log.rows)
    if idle:
        notes.append(f"in {idle} of {len(log.rows)} steps some workers have no example: they weigh nothing in the mean")
    if all(row["whole_batch_share"] is None for row in log.rows):
        notes.append("how your function rounds is not known: its whole batch is compared, and not judged")
    return notes
