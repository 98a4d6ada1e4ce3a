"""One run, from a scenario to its result: build the parts, prove the schedule, run, verify, put together."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ringnet.analysis.answer import TOLD_SHARE
from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.result import Run, RunResult, make_result
from ringnet.analysis.verification import outputs, verify
from ringnet.array_types import Array
from ringnet.collectives.proof import check
from ringnet.engines import Choice, Trace
from ringnet.engines.events import Job, run_jobs
from ringnet.engines.trace import Watch
from ringnet.networks.network import Sharing
from ringnet.payload import PackedPayload, Payload, payload_text
from ringnet.payload.tamper import Tamper
from ringnet.runs.again import NudgedRuns, SimulatedAgain, moved_note
from ringnet.runs.engine import engine_for, payload_for, sharing_of
from ringnet.runs.failures import CameThrough, attempts, check_other_paths, since_the_first_start
from ringnet.runs.memory import require_memory
from ringnet.runs.notes import effect_notes, measured_link_labels, network_notes, run_notes, window_note
from ringnet.runs.parts import RunParts, build, jobs_of
from ringnet.runs.trouble import with_trouble
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.checks.collective import READABLE_ELEMENTS
from ringnet.scenario.drawn import drawn_words, refuse_what_is_drawn, what_is_drawn

AnyPayload = Payload | PackedPayload | None


def simulate(
    scenario: Scenario,
    *,
    tamper: Tamper | None = None,
    watch: Watch | None = None,
    parts: RunParts | None = None,
) -> RunResult:
    """Simulate one run and verify its sums; of a sweep, the first point.

    Parameters
    ----------
    scenario : Scenario
        As `ringnet.load` returns it.
    tamper : Tamper, optional
        For tests: something that goes wrong with the payload on its way.
    watch : callable, optional
        Called once with the number of transfers, and with a function that says, to any thread, how many are done.

    parts : RunParts, optional
        What `ringnet.runs.parts.build` made of the scenario, where that is at hand.

    Returns
    -------
    RunResult
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
    with scenario.placing_faults():
        parts = build(scenario) if parts is None else parts
        trains = scenario.training is not None and scenario.training.model is not None
        if trains and parts.source is not None:  # who hands in parts without payload asks for times alone
            from ringnet.runs.training import run_training  # noqa: PLC0415 -- most scenarios train nothing

            refuse_what_is_drawn(scenario, "a training")
            return run_training(scenario, parts, partial(_run_once, scenario, tamper=tamper), watch)
        return _run_once(scenario, parts, tamper=tamper, watch=watch)[0]


def _run_once(
    scenario: Scenario,
    parts: RunParts,
    *,
    tamper: Tamper | None = None,
    watch: Watch | None = None,
    tries_links: bool = True,
) -> tuple[RunResult, AnyPayload]:
    """Run the collective once: what it means, and what every worker holds afterwards.

    Where it ``tries_links``, what the slowest links are is confirmed by simulating again.
    """
    came = attempts(scenario, parts, partial(_moved, tamper=tamper, watch=watch))
    jobs = came.found.jobs
    if came.begun_s is not None:
        _, payload, trace = jobs[0]
        jobs[0] = came.parts, payload, since_the_first_start(trace, parts.workers, came.members)
    result = _result(scenario, came, tries_links=tries_links)
    if scenario.trouble:
        result = with_trouble(result, scenario, parts, came)
    return result, jobs[0][1]


class _Moved(NamedTuple):
    """What one attempt has left behind: of each job its parts, what it carried, and its trace.

    ``moved_share``: by how much of it the time moves where latencies hardly do; see `ringnet.runs.again`.
    """

    chosen: Choice
    jobs: list[tuple[RunParts, AnyPayload, Trace]]
    first: list[Array] | None
    moved_share: float | None = None


def _moved(parts: RunParts, *, tamper: Tamper | None, watch: Watch | None) -> _Moved:
    """Run all jobs by the engine that suits."""
    require_memory(parts)
    everybody = (parts, *parts.others)
    for one in everybody:
        check(one.schedule)
    check_other_paths(parts)
    chosen = engine_for(parts)
    payloads = [payload_for(one, chosen.name, tamper if one is parts else None) for one in everybody]
    first = _buffers(parts, payloads[0]) if _states_wanted(parts, payloads[0]) else None
    has_states, moved_share = first is not None, None
    if parts.is_alone:
        nudged = NudgedRuns(parts) if chosen.name == "compiled" and sharing_of(parts, chosen.name) == "fair" else None
        keep = {"keep_transfers": parts.keep_transfers, "keep_values": has_states}
        what = (parts.schedule, parts.network_of_run, parts.workers, parts.chunk_bytes, payloads[0])
        traces = [chosen.run(*what, **keep, watch=watch)]
        moved_share = None if nudged is None else nudged.moved_share(makespan_s(traces[0]))
    else:
        alike = zip(jobs_of(everybody), everybody, payloads, strict=True)
        jobs = [_carrying(job, one, payload, has_states) for job, one, payload in alike]
        traces = run_jobs(jobs, parts.network, parts.traffic, watch=watch)
    return _Moved(chosen, list(zip(everybody, payloads, traces, strict=True)), first, moved_share)


def _result(scenario: Scenario, came: CameThrough[_Moved], *, tries_links: bool) -> RunResult:
    """Verify what every job came to, and put together what it means."""
    parts, (chosen, jobs, first, moved_share) = came.parts, came.found
    sharing = sharing_of(parts, chosen.name)
    runs = [_judged(scenario, *job, sharing) for job in jobs]
    # An attempt that others came before would not have begun when it did with other links.
    tries_links = tries_links and came.begun_s is None
    again = SimulatedAgain(parts, sharing, chosen.name, jobs[0][2]) if tries_links else None
    runs[0] = replace(runs[0], again=again, begun_s=came.begun_s)

    def results() -> list[Array]:
        payload, source = jobs[0][1], parts.source
        return [] if payload is None or source is None else outputs(parts.schedule, payload, source)

    notes = run_notes(scenario, parts, chosen, sharing, has_states=first is not None)
    if moved_share is not None:
        runs[0] = replace(runs[0], labels={**runs[0].labels, "moved_share": moved_share})
        notes = (*notes, moved_note(makespan_s(runs[0].trace), moved_share))
    end_s = max(float(run.trace.workers["end_s"].max()) for run in runs)
    notes = (*notes, *effect_notes(scenario, parts, end_s))
    result = make_result(runs, results, first, notes, network_notes(scenario, parts))
    gain_s = result.summary.get("window_gain_s")
    holds_back = sharing == "fifo" and (gain_s is None or gain_s >= TOLD_SHARE * result.summary["makespan_s"])
    narrow = window_note(parts) if holds_back else ""
    return replace(result, notes=(*result.notes, narrow)) if narrow else result


def _carrying(job: Job, parts: RunParts, payload: AnyPayload, has_states: bool) -> Job:
    """Return a job with its payload, and with the rows and values that are to be kept of it."""
    assert not isinstance(payload, PackedPayload)  # which only an engine takes that is alone
    keep_values = parts.keep_values and has_states
    return replace(job, payload=payload, keep_transfers=parts.keep_transfers, keep_values=keep_values)


def _judged(scenario: Scenario, parts: RunParts, payload: AnyPayload, trace: Trace, sharing: Sharing) -> Run:
    """Put together what moved in one job, and verify its sums."""
    return Run(
        parts.schedule,
        replace(parts.network_of_run, sharing=sharing),
        parts.workers,
        parts.chunk_bytes,
        trace,
        _labels(scenario, parts, sharing),
        verify(
            parts.schedule,
            payload,
            parts.source,
            parts.reduction,
            parts.chunk_sizes,
            parts.carry,
            accumulate=parts.accumulate,
        ),
        parts.network,
        tuple(one.name for one in parts.traffic),
    )


def _states_wanted(parts: RunParts, payload: AnyPayload) -> bool:
    return (
        parts.keep_values
        and payload is not None
        and int(parts.chunk_sizes.sum()) * parts.schedule.n_workers <= READABLE_ELEMENTS
    )


def _buffers(parts: RunParts, payload: AnyPayload) -> list[Array]:
    """Return the buffer of every worker as objects, None where it holds nothing yet."""
    return [
        np.concatenate([_held(payload, worker, chunk, size) for chunk, size in enumerate(parts.chunk_sizes.tolist())])
        for worker in range(parts.schedule.n_workers)
    ]


def _held(payload: AnyPayload, worker: int, chunk: int, size: int) -> Array:
    held = None if payload is None else payload.held(worker, chunk)
    return np.full(size, None, dtype=object) if held is None else held.astype(object)


def _labels(scenario: Scenario, parts: RunParts, sharing: str) -> dict[str, Any]:
    """Return what the summary says of the scenario and the run does not know; None for what is not read."""
    random = (parts.source is not None and scenario.data == "random") or what_is_drawn(scenario)
    return {
        "name": parts.name,
        "message_bytes": parts.message_bytes,
        "dtype": scenario.dtype,
        "reduce": parts.reduction.name if parts.reduces else None,
        "sharing": sharing,
        "payload": payload_text(parts.carry, carried=parts.source is not None),
        "seed": scenario.seed if random else None,
        **({"drawn": f"{words}; run {parts.run} of seed {scenario.seed}"} if (words := drawn_words(scenario)) else {}),
        **({"shape": ", ".join(parts.read.phrases)} if parts.read.phrases else {}),
        **(measured_link_labels(scenario) if parts.message_bytes == scenario.message_bytes else {}),
    }
