"""A step carries numbers: every bucket goes through the simulated network with them, and is verified."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.steps import StepVerdict
from ringnet.analysis.verification import Verdict, payload_text, verify
from ringnet.engines import ENGINES
from ringnet.errors import Fault, InputError
from ringnet.payload import RandomSource, Reduction
from ringnet.payload.dtypes import DTYPES, DType
from ringnet.payload.tamper import Tamper
from ringnet.runs.engine import engine_for, payload_for
from ringnet.runs.memory import available_bytes, require_memory
from ringnet.runs.parts import MADE, RunParts
from ringnet.scenario.build.scenario import Scenario
from ringnet.training.step_numbers import StepNumbers
from ringnet.training.steps import StepCollective
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
        places: NDArray[np.int64],
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
        engine = engine_for(parts).name
        payload = payload_for(parts, engine, self._tamper)
        assert payload is not None
        what = parts.schedule, parts.network_of_run, parts.workers, parts.chunk_bytes, payload
        trace = ENGINES[engine].run(*what, keep_transfers=0, keep_values=False, watch=None)
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
