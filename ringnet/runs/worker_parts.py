"""How the workers of a scenario behave: what each costs, and what they do by chance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ringnet.array_types import FloatArray
from ringnet.chance import Draws, stream
from ringnet.engines.luck import Interruptions, Luck
from ringnet.engines.trace import Workers
from ringnet.networks.behaviour import NEVER
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.drawn import OF_WORKERS, ONCE, Drawn, distribution_of, mean_of, noise_of
from ringnet.scenario.measured_links import launch_of
from ringnet.scenario.trouble import workers_in_trouble


def build_workers(scenario: Scenario) -> Workers:
    """Return how each worker behaves, before any run is chosen."""
    keys, rule = scenario.worker, {column: getattr(scenario.worker, column) for column in OF_WORKERS.values()}
    exceptions = {
        int(worker): {column: value for column in rule if (value := getattr(one, column)) is not None}
        for worker, one in keys.exceptions.items()
    }
    policy = scenario.on_failure
    patience_s = NEVER if policy is None or policy.timeout_s is None else policy.timeout_s
    workers = _workers(scenario, 0, scenario.workers, rule, exceptions)
    workers = replace(workers, launch_s=launches(scenario, scenario.message_bytes))
    whiles = workers_in_trouble(scenario)
    drawn = {worker: own for worker, own in whiles.items() if any(one.is_drawn for one in own)}
    alike = replace(workers, whiles={worker: own for worker, own in whiles.items() if worker not in drawn})
    paces = alike.in_run(0).paces
    return replace(workers, paces=paces, whiles=drawn, patience_s=patience_s)


def launches(scenario: Scenario, message_bytes: int, n_beside: int | None = None) -> FloatArray:
    """Return what a collective of that size takes once at each worker, in the mean: nothing at one, as nothing moves.

    ``n_beside`` is how many workers another job or group has, if it is one's: they have no exceptions.
    """
    found = np.full(n_beside or scenario.workers, launch_of(scenario, message_bytes))
    for worker, one in scenario.worker.exceptions.items() if n_beside is None else ():
        found[int(worker)] = found[int(worker)] if one.launch_s is None else mean_of(one.launch_s)
    return found * (len(found) > 1)


def workers_beside(
    scenario: Scenario, number: int, n_workers: int, message_bytes: int, start_s: float = 0.0
) -> Workers:
    """Return how the workers of another job or group behave: as the scenario says, without its exceptions."""
    rule = {column: getattr(scenario.worker, column) for column in OF_WORKERS.values()}
    workers = _workers(scenario, number, n_workers, rule | {"start_s": start_s}, {})
    return replace(workers, launch_s=launches(scenario, message_bytes, n_workers))


def _workers(
    scenario: Scenario,
    number: int,
    n_workers: int,
    rule: Mapping[str, float | Drawn | None],
    exceptions: Mapping[int, Mapping[str, float | Drawn]],
) -> Workers:
    """Return the workers of the job of that number, all by the rule but for exceptions, each by column."""
    columns = {column: np.full(n_workers, mean_of(value)) for column, value in rule.items()}
    drawn = {column: dict.fromkeys(range(n_workers), one) for column, one in rule.items() if isinstance(one, Drawn)}
    for worker, exception in exceptions.items():
        for column, value in exception.items():
            columns[column][worker] = mean_of(value)
            drawn.get(column, {}).pop(worker, None)
            if isinstance(value, Drawn):
                drawn.setdefault(column, {})[worker] = value
    draws = defaultdict[int, dict[str, Draws]](dict)
    if n_workers == 1:  # as in `launches`
        drawn.pop("launch_s", None)
    once = [OF_WORKERS[key] for key in ONCE]
    for column, of_workers in drawn.items():
        for worker, keys in of_workers.items():
            whose = ("run",) if keys.per == "run" else ("worker", number, worker)
            for_each = keys.per in (None, "transfer") and column not in once
            numbers = stream(scenario.seed, *whose, column)
            draws[worker][column] = Draws(distribution_of(keys), numbers, for_each)
    luck = Luck(dict(draws), _interruptions(scenario, number, n_workers))
    return Workers(
        columns["start_s"],
        columns["send_overhead_s"],
        columns["recv_overhead_s"],
        columns["reduce_Bps"],
        columns["launch_s"],
        sends=scenario.worker.sends,
        luck=luck if luck.draws or luck.interruptions else None,
    )


def _interruptions(scenario: Scenario, number: int, n_workers: int) -> dict[int, Interruptions]:
    if scenario.worker.noise is None:
        return {}
    noise = noise_of(scenario.worker.noise)
    phases = [stream(scenario.seed, "worker", number, worker, "noise") for worker in range(n_workers)]
    return {worker: Interruptions(noise, phase) for worker, phase in enumerate(phases)}
