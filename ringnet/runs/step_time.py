"""The time of a training step: its collectives on the network of a scenario, under what the workers compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np

from ringnet.analysis.bounds import collective_bound
from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.steps import StepGroup, StepResult, make_step_result
from ringnet.collectives import Schedule
from ringnet.collectives.proof import check
from ringnet.engines import ENGINES
from ringnet.engines.events import Job, run_jobs
from ringnet.engines.trace import Workers
from ringnet.errors import Fault, InputError
from ringnet.networks import BySize, Network
from ringnet.networks.network import beyond
from ringnet.payload.dtypes import DTYPES
from ringnet.runs.engine import engine_for
from ringnet.runs.parts import RunParts, build, read_off_network
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.files.step_layers import layers_of, tokens_of
from ringnet.scenario.keys.step import StepKeys
from ringnet.scenario.network import hardware, seated
from ringnet.scenario.schedule import schedule_beside, schedule_of
from ringnet.training.buckets import gradient_buckets
from ringnet.training.steps import (
    STRATEGIES,
    FloatArray,
    RunningStep,
    StepCollective,
    StepProgram,
    StepShape,
    StepTimes,
    WorkerPace,
    run_step,
    step_in_time,
    timed_step,
)


@dataclass(frozen=True)
class _Group:
    """One group of workers that take a step together; ``known_s`` is what a collective of some size takes alone."""

    name: str
    parts: RunParts
    shape: StepShape
    program: StepProgram
    pace: WorkerPace
    schedules: Callable[[str], Schedule]
    known_s: dict[tuple[str, int], float] = field(default_factory=dict)

    def collective(self, one: StepCollective) -> RunParts:
        """Return what one of its collectives is made of."""
        schedule = self.schedules(one.collective)
        sizes = schedule.chunk_sizes(one.n_elements)
        return replace(
            self.parts,
            schedule=schedule,
            chunk_sizes=sizes,
            chunk_bytes=sizes * self.parts.dtype.itemsize,
            message_bytes=one.n_elements * self.parts.dtype.itemsize,
        )


def simulate_step(scenario: Scenario) -> StepResult:
    """Time a step of training.

    Parameters
    ----------
    scenario : Scenario
        With a section ``step``; of a sweep, its first point.

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
    keys = _step_keys(scenario)
    groups = [*_groups(scenario)]
    why = _why_together(groups)
    run = _together if why else _apart
    n_steps = keys.steps if keys.noise else 1
    draws = [*zip(*(group.pace.draws(group.program, n_steps) for group in groups), strict=True)]
    found: list[list[StepTimes]] = [run(groups, seconds) for seconds in draws]
    bound_s = _Bounds(groups[0])
    return make_step_result(
        _labels(scenario, groups[0]),
        [
            StepGroup(group.name, group.shape, [step[number] for step in found])
            for number, group in enumerate(groups)
        ],
        [bound_s.of(seconds[0]) for seconds in draws],
        groups[0].parts.dtype.itemsize,
        (*scenario.notes, *([f"collectives are simulated together: {why}"] if why else [])),
    )


def _step_keys(scenario: Scenario) -> StepKeys:
    keys = scenario.step
    if keys is None:
        right = "step: {model: gpt2-small, rate: 150 TFLOP/s}"
        raise InputError(Fault("the scenario says nothing of a training step", "step", right=right))
    if scenario.jobs:
        raise InputError(
            Fault("other jobs do not run beside a training step", "jobs", right="step.groups, or background")
        )
    return keys


def _groups(scenario: Scenario) -> Iterator[_Group]:
    """Yield the scenario's own group, and the others on the same links."""
    keys = _step_keys(scenario)
    layers, dtype = layers_of(keys, scenario.home), DTYPES[scenario.dtype]
    buckets = gradient_buckets(layers, dtype.itemsize, keys.bucket_cap_bytes, keys.first_bucket_bytes)
    own = replace(build(scenario), source=None, carry=0, keep_transfers=0, keep_values=False, others=())

    def group(number: int, name: str, parts: RunParts, schedules: Callable[[str], Schedule]) -> _Group:
        n_workers = len(parts.workers.start_s)
        slow = {int(worker): times for worker, times in keys.slow_workers.items()} if number == 0 else {}
        slowness = tuple(slow.get(worker, 1.0) for worker in range(n_workers))
        shape = StepShape(layers, buckets, n_workers, keys.microbatches, keys.prefetch, keys.update_s)
        pace = WorkerPace(slowness, keys.noise, scenario.seed + number)
        return _Group(
            name, parts, shape, STRATEGIES[keys.strategy](shape), pace, cache(partial(_proved, schedules))
        )

    def own_schedule(collective: str) -> Schedule:
        changed = scenario.model_copy(update={"collective": collective})
        return schedule_of(changed, scenario.home, own.read.parameters)

    yield group(0, scenario.name, own, own_schedule)
    whole = hardware(scenario)[0] if keys.groups else None
    for number, places in enumerate(keys.groups, start=1):
        assert whole is not None
        yield _other_group(scenario, number, seated(whole, places, "step.groups"), own, group)


def _other_group(
    scenario: Scenario,
    number: int,
    network: Network,
    own: RunParts,
    group: Callable[[int, str, RunParts, Callable[[str], Schedule]], _Group],
) -> _Group:
    worker, n_workers = scenario.worker, network.n_workers
    site = own.make_site()
    here = replace(site, networks=(network,))
    workers = Workers.alike(
        n_workers,
        send_overhead_s=worker.send_overhead_s,
        recv_overhead_s=worker.recv_overhead_s,
        reduce_Bps=worker.reduce_Bps,
        sends=worker.sends,
    )
    parts = replace(own, workers=workers, make_site=lambda: here, is_alone=False)
    read = read_off_network(scenario, lambda: network)
    return group(
        number,
        f"group {number}",
        parts,
        lambda collective: schedule_beside(scenario, None, n_workers, collective, read.parameters),
    )


def _proved(make: Callable[[str], Schedule], collective: str) -> Schedule:
    schedule = make(collective)
    check(schedule)
    return schedule


def _why_together(groups: Sequence[_Group]) -> str | None:
    """Say why what a collective takes depends on when it starts, or on others; None where it does not."""
    if len(groups) > 1:
        return "other groups share the links"
    if not groups[0].parts.is_alone:
        return "others share the links"
    return beyond(groups[0].parts.network, [BySize], fair=True, window=True, packets=True)


def _apart(groups: Sequence[_Group], seconds: Sequence[FloatArray]) -> list[StepTimes]:
    """Time each collective of one group by itself, each size once: when it starts makes no difference."""
    (group,) = groups

    def cost_s(one: StepCollective) -> float:
        key = one.collective, one.n_elements
        if key not in group.known_s:
            group.known_s[key] = _alone_s(group.collective(one))
        return group.known_s[key]

    return [timed_step(group.program, seconds[0], cost_s)]


def _alone_s(parts: RunParts) -> float:
    if parts.schedule.n_workers == 1:
        return 0.0
    what = parts.schedule, parts.network_of_run, parts.workers, parts.chunk_bytes, None
    return makespan_s(
        ENGINES[engine_for(parts).name].run(*what, keep_transfers=0, keep_values=False, watch=None)
    )


def _together(groups: Sequence[_Group], seconds: Sequence[FloatArray]) -> list[StepTimes]:
    """Simulate the collectives of all groups on the same links and the same clock."""
    running = [step_in_time(group.program, own) for group, own in zip(groups, seconds, strict=True)]
    streams = StepStreams(running, [len(group.program.collectives) for group in groups])
    jobs = []
    for number, group in enumerate(groups):
        for one in group.program.collectives:
            parts = group.collective(one)
            jobs.append(
                Job(parts.schedule, parts.network, parts.workers, parts.chunk_bytes, None, 0, stream=number)
            )
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

    def __init__(self, group: _Group) -> None:
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


def _labels(scenario: Scenario, group: _Group) -> dict[str, Any]:
    """Return what a row of the table says of the scenario."""
    keys, sharded = _step_keys(scenario), _step_keys(scenario).strategy == "fsdp"
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
