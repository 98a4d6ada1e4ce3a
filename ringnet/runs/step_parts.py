"""What a training step is made of: groups of workers with their programs, collectives, and the numbers they carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np

from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.steps import StepVerdict
from ringnet.analysis.verification import Verdict, verify
from ringnet.array_types import FloatArray, IntArray
from ringnet.collectives import Schedule
from ringnet.collectives.proof import check
from ringnet.errors import Fault, InputError
from ringnet.networks import BySize, Network
from ringnet.networks.network import beyond
from ringnet.payload import RandomSource, Reduction, payload_text
from ringnet.payload.dtypes import DTYPES, DType
from ringnet.payload.tamper import Tamper
from ringnet.runs.engine import engine_for, payload_for
from ringnet.runs.memory import available_bytes, require_memory
from ringnet.runs.parts import MADE, RunParts, build, read_off_network
from ringnet.runs.worker_parts import launches, workers_beside
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.drawn import refuse_what_is_drawn
from ringnet.scenario.files.step_layers import layers_of
from ringnet.scenario.keys.training import StepKeys
from ringnet.scenario.network import hardware, seated
from ringnet.scenario.schedule import schedule_beside, schedule_of
from ringnet.training.buckets import gradient_buckets
from ringnet.training.layers import count_parameters
from ringnet.training.step_numbers import StepNumbers, carried_places
from ringnet.training.steps import STRATEGIES, StepCollective, StepProgram, StepShape, WorkerPace
from ringnet.units import format_bytes, format_count

#: Numbers of all workers together up to which they are carried where the scenario leaves it open.
CARRIED_NUMBERS = 2**21
#: The parameters that all workers start from are drawn by a seed of their own.
_OF_PARAMETERS = 2**32


@dataclass(frozen=True)
class StepPayload:
    """How much of the numbers of a step is carried: elements of each chunk, None for all, 0 for none; and why."""

    carry: int | None
    why: str = ""


def step_payload(scenario: Scenario, n_parameters: int) -> StepPayload:
    """Return what the scenario says of the numbers of a step, or what is sensible where it says nothing."""
    if "payload" in scenario.model_fields_set:
        return StepPayload(scenario.carry, "" if scenario.carry != 0 else "the scenario says payload: none")
    n_numbers = n_parameters * scenario.workers
    if n_numbers <= CARRIED_NUMBERS:
        return StepPayload(None)
    many = f"{format_count(n_parameters)} parameters at each worker are many"
    return StepPayload(0, f"{many}; payload: full or {{elements: 16}} carries them")


def numbers_bytes(n_carried: int, n_workers: int, dtype: DType) -> int:
    """Return the memory of gradients and parameters, of what came of both and of what is verified, as measured."""
    return n_carried * (n_workers * (26 + 5 * dtype.itemsize // 2) + 62 + 4 * dtype.itemsize)


def require_memory_of_numbers(wanted: int) -> None:
    """Refuse numbers that do not fit into memory, of so many bytes."""
    available = available_bytes()
    if wanted > available:
        message = f"the numbers of this step take about {format_bytes(wanted)} of memory"
        right = "payload: {elements: 16}"
        raise InputError(Fault(message, "payload", value=f"{format_bytes(available)} free", right=right))


class CarriedStep:
    """The numbers of one step of a scenario's own group, and what verification says of each of its collectives."""

    def __init__(
        self,
        scenario: Scenario,
        reduction: Reduction,
        places: IntArray,
        carry: int | None,
        tamper: Tamper | None,
    ) -> None:
        dtype, n_workers = DTYPES[scenario.dtype], scenario.workers
        source = MADE[str(scenario.data)](scenario, int(places.max(initial=-1)) + 1)
        gradients = [np.empty(len(places), dtype) for _ in range(n_workers)]
        source.fill(places, range(n_workers), gradients)
        start = [np.empty(len(places), dtype)]
        RandomSource(1, source.n_elements, dtype, scenario.seed + _OF_PARAMETERS).fill(places, [0], start)
        self._carry, self._tamper = carry, tamper
        self._numbers = StepNumbers(places, gradients, start[0], reduction)
        self._verdicts: list[tuple[str, Verdict]] = []

    def run(self, one: StepCollective, parts: RunParts) -> float:
        """Run a collective with its numbers, and verify them; return what it takes alone."""
        parts = replace(parts, source=self._numbers.sent(one), carry=self._carry, is_alone=True)
        require_memory(parts)
        chosen = engine_for(parts)
        payload = payload_for(parts, chosen.name, self._tamper)
        assert payload is not None
        what = parts.schedule, parts.network_of_run, parts.workers, parts.chunk_bytes, payload
        trace = chosen.run(*what, keep_transfers=None)
        checked = parts.schedule, payload, parts.source, parts.reduction, parts.chunk_sizes, self._carry
        self._verdicts.append((one.name, verify(*checked, accumulate=parts.accumulate)))
        self._numbers.received(one, parts.schedule, parts.chunk_sizes, payload.held)
        return makespan_s(trace)

    def verdict(self, *, everywhere: bool) -> StepVerdict:
        """Return what came of all collectives; ``everywhere`` says that each worker has all parameters in the end."""
        parameters = self._numbers.finish(everywhere=everywhere)
        found = [f"{name}: {one.mismatch}" for name, one in self._verdicts if one.mismatch is not None]
        return StepVerdict(
            payload=payload_text(self._carry),
            verified_elements=sum(one.verified_elements for _, one in self._verdicts),
            sum_ok=all(one.sum_ok for _, one in self._verdicts),
            parameters_agree=parameters.agree,
            parameters_ok=parameters.ok,
            wrong=[*found, parameters.wrong][0],
        )


@dataclass(frozen=True)
class StepWorkers:
    """One group of workers that take a step together.

    Parameters
    ----------
    name : str
    parts : RunParts
        Of any of its collectives, but for the schedule and the sizes: see `collective`.
    shape : StepShape
    program : StepProgram
    pace : WorkerPace
    schedules : callable
        Returns the schedule of a collective by name, proved.
    launches : callable
        Returns what a collective of so many bytes takes once at each worker.
    carried : CarriedStep or None
        The numbers that the next step carries.
    known_s : dict
        What a collective of some kind and size takes alone, as far as it was simulated.
    """

    name: str
    parts: RunParts
    shape: StepShape
    program: StepProgram
    pace: WorkerPace
    schedules: Callable[[str], Schedule]
    launches: Callable[[int], FloatArray]
    carried: CarriedStep | None = None
    known_s: dict[tuple[str, int], float] = field(default_factory=dict)

    def collective(self, one: StepCollective) -> RunParts:
        """Return what one of its collectives is made of."""
        schedule = self.schedules(one.collective)
        sizes = schedule.chunk_sizes(one.n_elements)
        n_bytes = one.n_elements * self.parts.dtype.itemsize
        return replace(
            self.parts,
            schedule=schedule,
            workers=replace(self.parts.workers, launch_s=self.launches(n_bytes)),
            chunk_sizes=sizes,
            chunk_bytes=sizes * self.parts.dtype.itemsize,
            message_bytes=n_bytes,
        )

    def carried_places(self, carry: int | None) -> IntArray:
        """Return which parameters are carried where so many elements of each chunk are; None for all.

        Raises
        ------
        InputError
            Their numbers do not fit into memory.
        """
        require_memory_of_numbers(self.numbers_bytes(carry))
        return carried_places(self._reduced(), carry)

    def numbers_bytes(self, carry: int | None) -> int:
        """Return the memory that the numbers of a step take where so many elements of each chunk are carried."""
        sizes = (each if carry is None else np.minimum(each, carry) for _, each in self._reduced())
        return numbers_bytes(sum(int(each.sum()) for each in sizes), self.shape.n_workers, self.parts.dtype)

    def _reduced(self) -> Iterator[tuple[StepCollective, IntArray]]:
        """Yield the collectives that reduce, each with the sizes of its chunks."""
        for one in self.program.collectives:
            if one.collective != "all-gather":
                yield one, self.schedules(one.collective).chunk_sizes(one.n_elements)


def step_keys(scenario: Scenario) -> StepKeys:
    """Return what a scenario says of a step.

    Raises
    ------
    InputError
        It says nothing, or runs something beside it that a step cannot.
    """
    keys = scenario.step
    if keys is None:
        right = "step: {model: gpt2-small, rate: 150 TFLOP/s}"
        raise InputError(Fault("the scenario says nothing of a training step", "step", right=right))
    refuse_what_is_drawn(scenario, "a training step")
    if scenario.jobs:
        raise InputError(
            Fault("other jobs do not run beside a training step", "jobs", right="step.groups, or background")
        )
    return keys


@dataclass(frozen=True)
class StepParts:
    """What a step of a scenario is made of.

    Parameters
    ----------
    keys : StepKeys
    groups : tuple of StepWorkers
        The scenario's own first.
    together : str or None
        Why what a collective takes depends on when it starts, or on others; None where each is simulated by itself.
    payload : StepPayload
        Which numbers are carried.
    n_steps : int
        Steps that are timed, each with draws of its own.
    """

    keys: StepKeys
    groups: tuple[StepWorkers, ...]
    together: str | None
    payload: StepPayload
    n_steps: int

    def simulated(self) -> Iterator[RunParts]:
        """Yield every collective that is simulated for one step, as it is simulated."""
        carries, known = self.payload.carry != 0, set[tuple[str, int]]()
        own = self.groups[0]
        for one in own.program.collectives:
            key = one.collective, one.n_elements
            if carries:
                yield replace(own.collective(one), carry=self.payload.carry, is_alone=True)
            elif not self.together and key not in known:
                yield own.collective(one)
            known.add(key)
        for group in self.groups if self.together else ():
            for one in group.program.collectives:
                yield group.collective(one)


def build_step(scenario: Scenario) -> StepParts:
    """Build the parts of a step; of a sweep, those of its first point.

    Raises
    ------
    InputError
        As `step_keys`; or a file of layers that was there when the scenario was loaded is not there any more.
    """
    groups = tuple(_groups(scenario))
    payload = step_payload(scenario, count_parameters(groups[0].shape.layers))
    keys = step_keys(scenario)
    n_steps = scenario.repeat or (keys.steps if keys.noise else 1)
    return StepParts(keys, groups, _why_together(groups), payload, n_steps)


def _groups(scenario: Scenario) -> Iterator[StepWorkers]:
    """Yield the scenario's own group, and the others on the same links."""
    keys = step_keys(scenario)
    layers, dtype = layers_of(keys, scenario.home), DTYPES[scenario.dtype]
    buckets = gradient_buckets(layers, dtype.itemsize, keys.bucket_cap_bytes, keys.first_bucket_bytes)
    own = replace(build(scenario), source=None, carry=0, keep_transfers=0, keep_values=False, others=())

    def group(number: int, name: str, parts: RunParts, schedules: Callable[[str], Schedule]) -> StepWorkers:
        n_workers = len(parts.workers.start_s)
        slow = {int(worker): times for worker, times in keys.slow_workers.items()} if number == 0 else {}
        slowness = tuple(slow.get(worker, 1.0) for worker in range(n_workers))
        shape = StepShape(layers, buckets, n_workers, keys.microbatches, keys.prefetch, keys.update_s)
        pace = WorkerPace(slowness, keys.noise, scenario.seed, number)
        proved = cache(partial(_proved, schedules))
        launched = partial(launches, scenario, n_beside=n_workers if number else None)
        return StepWorkers(name, parts, shape, STRATEGIES[keys.strategy].program(shape), pace, proved, launched)

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
    group: Callable[[int, str, RunParts, Callable[[str], Schedule]], StepWorkers],
) -> StepWorkers:
    n_workers = network.n_workers
    site = own.make_site()
    here = replace(site, networks=(network,))
    workers = workers_beside(scenario, number, n_workers, scenario.message_bytes)
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


def _why_together(groups: Sequence[StepWorkers]) -> str | None:
    """Say why what a collective takes depends on when it starts, or on others; None where it does not."""
    if len(groups) > 1:
        return "other groups share the links"
    if not groups[0].parts.is_alone:
        return "others share the links"
    return beyond(groups[0].parts.network, [BySize], fair=True, window=True, packets=True)
