"""The time of a training step: its collectives on the network of a scenario, under what the workers compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ringnet.analysis.bounds import collective_bound
from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.steps import StepGroup, StepResult, StepVerdict, make_step_result
from ringnet.array_types import FloatArray
from ringnet.engines.events import Job, run_jobs
from ringnet.payload.tamper import Tamper
from ringnet.runs.engine import engine_for
from ringnet.runs.parts import RunParts
from ringnet.runs.step_parts import CarriedStep, StepWorkers, build_step, step_keys
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.files.step_layers import tokens_of
from ringnet.training.steps import RunningStep, StepCollective, StepTimes, run_step, step_in_time, timed_step


def simulate_step(scenario: Scenario, *, tamper: Tamper | None = None) -> StepResult:
    """Time a step of training, and verify its numbers where they are carried.

    Parameters
    ----------
    scenario : Scenario
        With a section ``step``; of a sweep, its first point.
    tamper : Tamper, optional
        For tests: something that goes wrong with the numbers of every collective.

    Returns
    -------
    StepResult

    Raises
    ------
    InputError
        The scenario has no step, or runs something beside it that a step cannot.
    DeadlockError
        If some workers wait for ever.
    """
    with scenario.placing_faults():
        return _simulate(scenario, tamper)


def _simulate(scenario: Scenario, tamper: Tamper | None) -> StepResult:
    parts = build_step(scenario)
    keys, groups = parts.keys, [*parts.groups]
    own = groups[0]
    carry, carried = parts.payload.carry, None
    if carry != 0:
        carried = CarriedStep(scenario, own.parts.reduction, own.carried_places(carry), carry, tamper)
    run = _together if parts.together else _apart
    draws = [*zip(*(group.pace.draws(group.program, parts.n_steps) for group in groups), strict=True)]
    found: list[list[StepTimes]] = []
    for number, seconds in enumerate(draws):  # all steps carry the same numbers
        groups[0] = replace(own, carried=None if number else carried)
        found.append(run(groups, seconds))
    verdict, bound_s = StepVerdict(), _Bounds(own)
    if carried is not None:
        verdict = carried.verdict(everywhere=keys.strategy != "fsdp")
    return make_step_result(
        _labels(scenario, own),
        [StepGroup(group.name, group.shape, [step[number] for step in found]) for number, group in enumerate(groups)],
        [bound_s.of(seconds[0]) for seconds in draws],
        own.parts.dtype.itemsize,
        verdict,
        (
            *scenario.notes,
            *([f"no numbers are carried: {parts.payload.why}"] if parts.payload.why else []),
            *([f"collectives are simulated together: {parts.together}"] if parts.together else []),
        ),
        is_repeated=scenario.repeat is not None,
    )


def _apart(groups: Sequence[StepWorkers], seconds: Sequence[FloatArray]) -> list[StepTimes]:
    """Time each collective of one group by itself, each size once: when it starts makes no difference."""
    (group,) = groups

    def cost_s(one: StepCollective) -> float:
        key = one.collective, one.n_elements
        if group.carried is not None:
            group.known_s[key] = group.carried.run(one, group.collective(one))
        elif key not in group.known_s:
            group.known_s[key] = _alone_s(group.collective(one))
        return group.known_s[key]

    return [timed_step(group.program, seconds[0], cost_s)]


def _alone_s(parts: RunParts) -> float:
    if parts.schedule.n_workers == 1:
        return 0.0
    what = parts.schedule, parts.network_of_run, parts.workers, parts.chunk_bytes, None
    return makespan_s(engine_for(parts).run(*what, keep_transfers=None))


def _together(groups: Sequence[StepWorkers], seconds: Sequence[FloatArray]) -> list[StepTimes]:
    """Simulate the collectives of all groups on the same links and the same clock."""
    if groups[0].carried is not None:
        for one in groups[0].program.collectives:
            groups[0].carried.run(one, groups[0].collective(one))
    running = [step_in_time(group.program, own) for group, own in zip(groups, seconds, strict=True)]
    streams = StepStreams(running, [len(group.program.collectives) for group in groups])
    jobs = []
    for number, group in enumerate(groups):
        for one in group.program.collectives:
            parts = group.collective(one)
            jobs.append(Job(parts.schedule, parts.network, parts.workers, parts.chunk_bytes, None, 0, stream=number))
    first = groups[0].parts
    if jobs:
        run_jobs(jobs, first.network, first.traffic, succession=streams)
    else:
        streams.first()
    return streams.times()


class StepStreams:
    """The steps of several groups as an engine sees them: each collective is a job, in one stream for each group."""

    def __init__(self, running: Sequence[RunningStep], n_collectives: Sequence[int]) -> None:
        self.running = running
        self.offsets = np.cumsum([0, *n_collectives]).tolist()
        self.found: dict[int, StepTimes] = {}

    def first(self) -> list[tuple[int, float]]:
        """Return the first collective of each group."""
        return [one for group in range(len(self.running)) for one in self._next(group, None)]

    def ended(self, number: int, now_s: float) -> list[tuple[int, float]]:
        """Return the next collective of a group whose last has ended."""
        group = int(np.searchsorted(self.offsets, number, side="right")) - 1
        return self._next(group, now_s)

    def _next(self, group: int, now_s: float | None) -> list[tuple[int, float]]:
        step = self.running[group]
        try:
            number, start_s = next(step) if now_s is None else step.send(now_s)
        except StopIteration as ended:
            self.found[group] = ended.value
            return []
        return [(self.offsets[group] + number, start_s)]

    def times(self) -> list[StepTimes]:
        """Return the times of every group's step."""
        return [self.found[group] for group in range(len(self.running))]


class _Bounds:
    """What no algorithm takes less than, for each collective of a step."""

    def __init__(self, group: StepWorkers) -> None:
        self.group, self.known_s = group, dict[tuple[str, int, float], float]()
        self.is_constant = not group.parts.network.behaviours

    def of(self, seconds: FloatArray) -> float:
        """Return the step if every collective took as long as its bound says."""
        found = run_step(step_in_time(self.group.program, seconds), self.end_s)
        return found.step_s

    def end_s(self, number: int, start_s: float) -> float:
        """Return when a collective that starts then has ended at the earliest."""
        one = self.group.program.collectives[number]
        key = one.collective, one.n_elements, 0.0 if self.is_constant else start_s
        if key not in self.known_s:
            parts = self.group.collective(one)
            alone = parts.schedule.n_workers == 1
            bound = collective_bound(parts.schedule, parts.network, parts.chunk_bytes, key[2])
            self.known_s[key] = 0.0 if alone else bound.seconds
        return start_s + self.known_s[key]


def _labels(scenario: Scenario, group: StepWorkers) -> dict[str, Any]:
    """Return what a row of the table says of the scenario."""
    keys = step_keys(scenario)
    sharded = keys.strategy == "fsdp"
    return {
        "name": scenario.name,
        "model": keys.model or keys.layers or keys.python,
        "strategy": keys.strategy,
        "n_workers": scenario.workers,
        "batch": keys.batch,
        "microbatches": keys.microbatches,
        "dtype": scenario.dtype,
        "algorithm": scenario.algorithm_name,
        "topology": group.parts.network.topology,
        "bucket_cap_bytes": None if sharded else keys.bucket_cap_bytes,
        "first_bucket_bytes": None if sharded else keys.first_bucket_bytes,
        "prefetch": keys.prefetch if sharded else None,
        "sequence": tokens_of(keys),
    }
