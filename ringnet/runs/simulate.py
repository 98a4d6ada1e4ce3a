"""One run, from a scenario to its result: build the parts, prove the schedule, run, verify, put together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringnet.analysis.result import Result, Run, make_result
from ringnet.analysis.verification import outputs, payload_text, verify
from ringnet.collectives.proof import check
from ringnet.engines import ENGINES, MANY_TRANSFERS, Choice, Trace
from ringnet.engines.events import Job, run_jobs
from ringnet.engines.trace import Watch
from ringnet.payload import PackedPayload, Payload
from ringnet.payload.tamper import Tamper, make_payload
from ringnet.runs.engine import engine_for, is_packed, network_of_run, sharing_of
from ringnet.runs.measured_links import about_links, links_label
from ringnet.runs.memory import require_memory
from ringnet.runs.parts import RunParts, about_traffic, build
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.checks.collective import READABLE_ELEMENTS
from ringnet.scenario.files.network_file import about_file
from ringnet.scenario.files.order_file import about_order_file
from ringnet.scenario.network import about_behaviour

AnyPayload = Payload | PackedPayload | None


def simulate(scenario: Scenario, *, tamper: Tamper | None = None, watch: Watch | None = None) -> Result:
    """Simulate one run and verify its sums; of a sweep, the first point.

    Parameters
    ----------
    scenario : Scenario
        As `ringnet.load` returns it.
    tamper : Tamper, optional
        For tests: something that goes wrong with the payload on its way.
    watch : callable, optional
        Called once with the number of transfers, and with a function that says, to any thread, how many are done.

    Returns
    -------
    Result
        A wrong sum is no exception: ``result.verdict`` says which worker, chunk and element.

    Raises
    ------
    InputError
        If the run does not fit into memory, or its engine is not exact for it.
    ScheduleError
        If the schedule does not do what its collective says.
    DeadlockError
        If some workers wait for ever.
    """
    require_memory(scenario)
    parts = build(scenario)
    everybody = (parts, *parts.others)
    for one in everybody:
        check(one.schedule)
    chosen = engine_for(scenario, parts)
    payloads = [_payload(one, chosen.name, tamper if one is parts else None) for one in everybody]
    first = _buffers(parts, payloads[0]) if _states_wanted(parts, payloads[0]) else None
    as_run = replace(parts, network=network_of_run(scenario, parts))
    traces = _run(as_run, chosen.name, payloads, first, watch)
    sharing = sharing_of(parts, chosen.name)
    networks = [
        replace(network, sharing=sharing)
        for network in (as_run.network, *(one.network for one in parts.others))
    ]
    traffic = tuple(one.name for one in parts.traffic)
    runs = [
        Run(
            one.schedule,
            network,
            one.workers,
            one.chunk_bytes,
            trace,
            _labels(scenario, one, sharing),
            verify(one.schedule, payload, one.source, one.reduction, one.chunk_sizes, one.carry),
            one.network,
            traffic,
        )
        for one, network, payload, trace in zip(everybody, networks, payloads, traces, strict=True)
    ]

    def results() -> list[NDArray[Any]]:
        payload, source = payloads[0], parts.source
        return [] if payload is None or source is None else outputs(parts.schedule, payload, source)

    notes = _notes(scenario, parts, chosen, first, sharing)
    about = (
        *about_file(scenario.network),
        *about_order_file(scenario),
        *about_behaviour(parts.network, scenario.network),
        *about_traffic(parts),
    )
    return make_result(runs, results, first, notes, about)


def _payload(parts: RunParts, engine: str, tamper: Tamper | None) -> AnyPayload:
    if parts.source is None:
        return None
    packed = is_packed(engine, parts.chunk_sizes, parts.carry)
    sizes, holders = parts.chunk_sizes, parts.schedule.source
    return make_payload(
        parts.source, parts.reduction, sizes, holders, parts.carry, packed=packed, tamper=tamper
    )


def _run(
    parts: RunParts, engine: str, payloads: list[AnyPayload], first: object, watch: Watch | None
) -> list[Trace]:
    if not parts.alone:
        jobs = [
            _job(one, payload, first) for one, payload in zip((parts, *parts.others), payloads, strict=True)
        ]
        return run_jobs(jobs, parts.network, parts.traffic, watch=watch)
    trace = ENGINES[engine].run(
        parts.schedule,
        parts.network,
        parts.workers,
        parts.chunk_bytes,
        payloads[0],
        keep_transfers=parts.keep_transfers,
        keep_values=first is not None,
        watch=watch,
    )
    return [trace]


def _job(parts: RunParts, payload: AnyPayload, first: object) -> Job:
    assert not isinstance(payload, PackedPayload)  # which only the recurrence takes
    return Job(
        parts.schedule,
        parts.network,
        parts.workers,
        parts.chunk_bytes,
        payload,
        parts.keep_transfers,
        parts.keep_values and first is not None,
    )


def _states_wanted(parts: RunParts, payload: AnyPayload) -> bool:
    return (
        parts.keep_values
        and payload is not None
        and int(parts.chunk_sizes.sum()) * parts.schedule.n_workers <= READABLE_ELEMENTS
    )


def _buffers(parts: RunParts, payload: AnyPayload) -> list[NDArray[Any]]:
    """Return the buffer of every worker as objects, None where it holds nothing yet."""
    return [
        np.concatenate(
            [_held(payload, worker, chunk, size) for chunk, size in enumerate(parts.chunk_sizes.tolist())]
        )
        for worker in range(parts.schedule.n_workers)
    ]


def _held(payload: AnyPayload, worker: int, chunk: int, size: int) -> NDArray[Any]:
    held = None if payload is None else payload.held(worker, chunk)
    return np.full(size, None, dtype=object) if held is None else held.astype(object)


def _labels(scenario: Scenario, parts: RunParts, sharing: str) -> dict[str, Any]:
    """Return what the summary says of the scenario and the run does not know; None for what is not read."""
    random = parts.source is not None and scenario.data == "random"
    return {
        "name": parts.name,
        "message_bytes": parts.message_bytes,
        "dtype": scenario.dtype,
        "reduce": parts.reduction.name if parts.reduces else None,
        "sharing": sharing,
        "payload": payload_text(parts.carry, carried=parts.source is not None),
        "seed": scenario.seed if random else None,
        **(links_label(scenario) if parts.message_bytes == scenario.message_bytes else {}),
    }


def _notes(
    scenario: Scenario, parts: RunParts, chosen: Choice, first: object, sharing: str
) -> tuple[str, ...]:
    notes = [*scenario.notes, *about_links(scenario)]
    network = scenario.network
    if sharing == "fair" and network.sharing == "auto":
        if network.switching != "cut-through":
            notes.append(f"switching: {network.switching} is not read, for links are shared fairly")
        if network.packet is not None and not network.header:
            notes.append("packet is not read: links are shared fairly, and headers are left out")
    if (
        sharing == "fair"
        and parts.workers.sends == "eager"
        and parts.schedule.parameters.get("n_slices", 1) != 1
    ):
        notes.append(
            "eager sends hand over all slices of a chunk at once, and under fair sharing they arrive together: "
            "worker.sends: rendezvous sends one after another"
        )
    if scenario.engine not in ENGINES and parts.schedule.n_transfers >= MANY_TRANSFERS:
        notes.append(f"engine: auto chose {chosen.name}, for {chosen.reason}")
    if parts.keep_values and first is None and parts.source is not None:
        notes.append(
            f"states are left out: more than {READABLE_ELEMENTS} elements in all are not for reading"
        )
    return tuple(notes)
