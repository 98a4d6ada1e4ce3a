"""How much a run takes, before it is run; what does not fit is refused with the setting that would."""

from __future__ import annotations

import os
import resource
from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice
from math import isqrt
from pathlib import Path

import numpy as np

from ringnet.collectives import Schedule
from ringnet.collectives.one_owner import BLOCK_BYTES, Owners
from ringnet.collectives.proof import WORD
from ringnet.collectives.schedule import EVERY_WORKER
from ringnet.engines.arrays.recall import MOST_BYTES, MOST_STEPS, NOTED_BYTES, STEP_BYTES
from ringnet.engines.columns import LOADED_BYTES, TRANSFERS_AT_ONCE
from ringnet.engines.trace import KEEP_TRANSFERS, MOST_ROWS, MOST_SERVICES, MOST_TIMES, SERVICE_BYTES, TIMES_BYTES
from ringnet.errors import Fault, InputError
from ringnet.payload import payload_bytes
from ringnet.payload.blocks import GROUP_BYTES, THREADS
from ringnet.runs.engine import engine_of, is_packed, sharing_of
from ringnet.runs.parts import RunParts
from ringnet.units import format_bytes

#: Python, its libraries, the blocks of verification; and what loads machine code.
FIXED_BYTES, LOADER_BYTES = 72 * 2**20, 56 * 2**20
#: What is found out of the plots that there could be, and what draws them.
FRAMES_BYTES, PLOTS_BYTES = 34 * 2**20, 38 * 2**20
#: A row of the transfers: its columns, and what makes a table of them. What a link did with a packet or a slot of one:
#: its columns, and what is worked out of them; and in the compiled loop one that has not arrived yet.
ROW_BYTES, PART_BYTES, OPEN_PART_BYTES = 620, 400, 64
#: A transfer of a step that some worker has not left yet, as an object of the events. Under fair sharing the spans of
#: one at even rates, of which there are some eight; and when it was on a link, and sorted at the end.
OPEN_BYTES, SPANS_BYTES, ON_LINK_BYTES, SORTED_BYTES = 2_000, 8 * 32, 32, 48
#: What a worker takes, with its links and its rows.
WORKER_BYTES = 5_000
#: What a link takes where there are far more of them than workers: its columns, and its row of the table.
LINK_BYTES = 1_450
#: Sets of contributions that the proof looks at together, where workers differ, with what it makes of them.
PROOF_BYTES = 3 * BLOCK_BYTES
#: Steps of a schedule that are looked at, and transfers after which no more are.
MOST_LOOKED_AT, ENOUGH = 2_000, 10_000_000
#: Memory of a payload from which it matters enough to find out which engine runs: one of them packs small chunks.
MATTERS_BYTES = 64 * 2**20

_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


@dataclass(frozen=True)
class Estimate:
    """What one run takes.

    Parameters
    ----------
    n_transfers : int
        Transfers in all.
    n_rows : int
        Transfers that rows are kept of.
    payload_bytes : int
        Memory of the carried elements, of all workers.
    memory_bytes : int
        Memory of the whole process at its most, roughly.
    """

    n_transfers: int
    n_rows: int
    payload_bytes: int
    memory_bytes: int


def estimate(parts: RunParts, beside_bytes: int = 0) -> Estimate:
    """Estimate one run, of a large network before that is made; ``beside_bytes`` is what goes on beside it.

    Examples
    --------
    >>> from ringnet.runs.parts import build
    >>> from ringnet.scenario import loads
    >>> network = "network: {bandwidth: 50 GB/s, latency: 5 us}"
    >>> text = f"{{scenario_version: 1, workers: 8, message: 64 MiB, {network}}}"
    >>> estimate(build(loads(text))).n_transfers, estimate(build(loads(text, ["payload=none"]))).payload_bytes
    (112, 0)
    """
    return _with_carry(parts, parts.carry, beside_bytes)


def _with_carry(parts: RunParts, carry: int | None, beside_bytes: int) -> Estimate:
    schedule = parts.schedule
    payload = 0 if carry == 0 else sum(_carried_bytes(one, carry) for one in (parts, *parts.others))
    n_rows = schedule.n_transfers if parts.keeps_rows else 0
    memory = FIXED_BYTES + beside_bytes + schedule.n_workers * WORKER_BYTES + parts.n_pair_links * LINK_BYTES
    run = payload + _verifying_bytes(parts, payload, carry) + n_rows * ROW_BYTES + _engine_bytes(parts)
    run += _parts_bytes(parts) if n_rows else _path_bytes(parts)
    # The proof is over, and its memory free, when the run begins.
    return Estimate(schedule.n_transfers, n_rows, payload, memory + max(run, _proof_bytes(schedule)))


def _verifying_bytes(parts: RunParts, payload: int, carry: int | None) -> int:
    """Return the memory of the groups of small packed chunks that are verified at the same time."""
    return min(payload, THREADS * GROUP_BYTES) if is_packed("recurrence", parts.chunk_sizes, carry) else 0


def _engine_bytes(parts: RunParts) -> int:
    """Return the memory of an engine with the transfers that are open at once; nothing where that is little of all."""
    few_workers = parts.schedule.n_workers * WORKER_BYTES < 4 * MATTERS_BYTES
    if parts.n_pair_links or not few_workers or (engine := engine_of(parts)) == "recurrence":
        return 0
    everybody = (parts, *parts.others)
    n_open = sum(_most_open(one.schedule) for one in everybody)
    n_loops, noted_bytes = 1, 0
    if sharing_of(parts, engine) == "fair":
        n_loops += engine == "compiled"  # `NudgedRuns` run beside it
        n_on_links = min(sum(one.schedule.n_transfers * _mean_hops(one) for one in everybody), MOST_ROWS)
        noted_bytes = int(n_on_links * (ON_LINK_BYTES + SORTED_BYTES))
        noted_bytes += sum(one.schedule.n_transfers for one in everybody if one.keeps_rows) * SPANS_BYTES
    if engine == "events":
        return n_open * OPEN_BYTES + noted_bytes
    # As many more are loaded as there are already.
    n_each = _parts_of_transfer(parts)
    n_open = min(2 * max(n_open, int(TRANSFERS_AT_ONCE / n_each)), parts.schedule.n_transfers)
    each_bytes = LOADED_BYTES + int((n_each - 1) * OPEN_PART_BYTES)
    return LOADER_BYTES + n_loops * n_open * each_bytes + noted_bytes


def _mean_hops(parts: RunParts) -> float:
    """Return how many links a route has, in the mean over the pairs that send."""
    return float(np.diff(parts.network_of_run.joined_routes(*parts.schedule.pairs)[1]).mean())


def _most_open(schedule: Schedule) -> int:
    """Return the transfers of steps that are open at once, at least: who is owed nothing goes on to where it is."""
    n_channels, n_passed, most = schedule.n_channels, 0, 0
    at = np.zeros(schedule.n_members * n_channels, dtype=np.int64)
    for step in islice(schedule.steps(), MOST_LOOKED_AT):
        owed = step.dst * n_channels + step.receiving_channel
        n_passed += len(step)
        most = max(most, n_passed - int(at[owed].min(initial=n_passed)))
        at[owed] = n_passed
        if n_passed > ENOUGH:
            break
    return max(most, n_passed - int(at.min(initial=n_passed)))


def keeps_sets(schedule: Schedule) -> bool:
    """Whether the proof keeps sets of contributions; numbers of them do where nobody uses again what it has given."""
    return schedule.made_by is None or schedule.n_switches > 0 or schedule.n_chunks == 1


def _proof_bytes(schedule: Schedule) -> int:
    """Return the memory of what the proof keeps of contributions; of a ring one worker's stand for all."""
    if schedule.algorithm == "ring":
        return 0
    if not keeps_sets(schedule):
        return min(PROOF_BYTES, 3 * schedule.n_workers * schedule.n_chunks * Owners.CELL.itemsize)
    # A chunk of one worker is there or not: no set of workers, one word.
    words = -(-schedule.n_workers // WORD) if (schedule.source == EVERY_WORKER).any() else 1
    each = 3 * schedule.n_workers * words * 8
    # However few are looked at together, one chunk is: of 100,000 workers that is more than any block.
    return min(max(PROOF_BYTES, each), each * schedule.n_chunks)


def _parts_of_transfer(parts: RunParts) -> float:
    """Return into how many packets, or slots of a window, a transfer is cut, in the mean over the chunks."""
    each = parts.network.part_bytes
    if each is None or not len(parts.chunk_bytes):
        return 1.0
    return float(np.maximum(-(-parts.chunk_bytes // each), 1).mean())


def n_services(parts: RunParts) -> int:
    """Return how many rows say when a link served what: one for each part and link; under fair sharing for each part.

    Where they are more than `MOST_SERVICES`, they are dropped once there are as many.
    """
    n_links = _mean_hops(parts) if sharing_of(parts, "events") == "fifo" else 1.0
    return int(parts.schedule.n_transfers * _parts_of_transfer(parts) * n_links)


def _parts_bytes(parts: RunParts) -> int:
    """Return the memory of what links did with the parts of transfers; of what goes whole the rows have it."""
    if parts.n_pair_links or parts.network.part_bytes is None:
        return 0
    n_rows = n_services(parts)
    return n_rows * PART_BYTES if n_rows <= MOST_SERVICES else MOST_SERVICES * SERVICE_BYTES


def _path_bytes(parts: RunParts) -> int:
    """Return the memory of what is kept for a path where rows are not."""
    schedule, n_transfers = parts.schedule, parts.schedule.n_transfers
    if not parts.keep_transfers or not n_transfers:
        return 0
    if n_transfers <= MOST_TIMES and not parts.n_pair_links and engine_of(parts) != "recurrence":
        return n_transfers * TIMES_BYTES + min(n_services(parts), MOST_SERVICES) * SERVICE_BYTES
    if schedule.n_steps > MOST_STEPS:
        return 0
    return min(MOST_BYTES, int(n_transfers * NOTED_BYTES)) + schedule.n_steps * STEP_BYTES


def _carried_bytes(parts: RunParts, carry: int | None) -> int:
    """Return the memory of the carried elements of one job, as its engine would carry them."""
    n_workers, held = parts.schedule.n_workers, parts.schedule.source
    carried = (n_workers, parts.chunk_sizes, held, parts.dtype, carry)
    payload = payload_bytes(*carried, n_switches=parts.schedule.n_switches)
    if parts.is_alone and payload > MATTERS_BYTES and is_packed("recurrence", parts.chunk_sizes, carry):
        packed = payload_bytes(*carried, packed=True)
        if packed < available_bytes() and engine_of(parts) != "events":
            return packed
    return payload


def require_memory(parts: RunParts, available: int | None = None, beside_bytes: int = 0) -> None:
    """Refuse a run that does not fit into ``available`` bytes, by default what this machine has left.

    ``beside_bytes`` is what goes on beside it.

    Raises
    ------
    InputError
        With both figures, and a setting that would fit.
    """
    available = available_bytes() if available is None else available
    wanted = estimate(parts, beside_bytes)
    if wanted.memory_bytes > available:
        message = f"the run takes about {format_bytes(wanted.memory_bytes)} of memory"
        path, right = _remedy(parts, wanted, available - beside_bytes)
        raise InputError(Fault(message, path, value=f"{format_bytes(available)} free", right=right))


def _remedy(parts: RunParts, wanted: Estimate, available: int) -> tuple[str, str]:
    """Return the key that is to blame, and the setting that would fit, into what is ``available`` for the run alone."""
    rows_bytes, proof_bytes = wanted.n_rows * ROW_BYTES or _path_bytes(parts), _proof_bytes(parts.schedule)
    carried_bytes = wanted.payload_bytes + _verifying_bytes(parts, wanted.payload_bytes, parts.carry)
    run_bytes = max(carried_bytes + rows_bytes, proof_bytes)
    if proof_bytes == run_bytes or wanted.memory_bytes - run_bytes > available:
        left = available - FIXED_BYTES
        n_links = max(left, 0) // LINK_BYTES
        if parts.n_pair_links > max(n_links, parts.schedule.n_workers**2):
            return "network", f"at most {n_links:,} links, not {parts.n_pair_links:,}"
        most = isqrt(n_links) if parts.n_pair_links else left // WORKER_BYTES
        if proof_bytes > PROOF_BYTES:  # then it grows with the square of the workers
            each = WORKER_BYTES + 3 * WORD // 8  # a word that is not full
            most = min(most, (isqrt(each**2 + 3 * left // 2) - each) * 4 // 3)
        is_less = 0 < most < parts.schedule.n_workers
        return "workers", f"at most {most:,} workers" if is_less else "a machine with more memory"
    if rows_bytes > wanted.payload_bytes:
        return "report.transfers", f"report: {{transfers: {KEEP_TRANSFERS if wanted.n_rows else 0}}}"
    return "payload", _fitting_payload(parts, available)


def _fitting_payload(parts: RunParts, available: int) -> str:
    largest = int(parts.chunk_sizes.max(initial=1))
    powers = range(largest.bit_length() + 1)
    n_fitting = bisect_right(powers, available, key=lambda power: _with_carry(parts, 2**power, 0).memory_bytes)
    return f"payload: {{elements: {2 ** (n_fitting - 1)}}}" if n_fitting else "payload: none"


def available_bytes() -> int:
    """Return the bytes that this process may still take: of the machine, of its container or ``ulimit -v`` if less."""
    limits = [_machine_bytes(), _unlimited_bytes(), *(_cgroup_bytes(*files) for files in _CGROUPS)]
    return min(limit for limit in limits if limit is not None)


def _machine_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _unlimited_bytes() -> int | None:
    """Return what a limit of this process leaves of its address space; None without one."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        n_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):  # of another system than Linux
        n_pages = 0
    return max(0, limit - n_pages * os.sysconf("SC_PAGE_SIZE"))


def _cgroup_bytes(limit: str, used: str) -> int | None:
    try:
        return max(0, int(Path(limit).read_text(encoding="ascii")) - int(Path(used).read_text(encoding="ascii")))
    except (OSError, ValueError):  # no such group, or "max"
        return None
