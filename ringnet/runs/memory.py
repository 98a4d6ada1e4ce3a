"""How much a run takes, before it is run; what does not fit is refused with the setting that would."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

from ringnet.errors import Fault, InputError
from ringnet.payload import payload_bytes
from ringnet.payload.dtypes import DTYPES
from ringnet.payload.sources import message_elements
from ringnet.runs.engine import engine_of, is_packed
from ringnet.runs.parts import build_schedule, chunk_sizes
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.keys.jobs_and_traffic import JobKeys
from ringnet.scenario.schedule import schedule_beside
from ringnet.units import format_bytes

#: Python, its libraries, the blocks of verification, plots.
FIXED_BYTES = 200 * 2**20
#: A row of the transfers: its columns, and what makes a table of them.
ROW_BYTES = 400
#: What a worker takes, with its links and its rows.
WORKER_BYTES = 20_000
#: What a link takes where there are far more of them than workers: its columns, and its row of the table.
LINK_BYTES = 400
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


def estimate(scenario: Scenario) -> Estimate:
    """Estimate one run; of a sweep, its first point.

    Examples
    --------
    >>> from ringnet.scenario import loads
    >>> network = "network: {bandwidth: 50 GB/s, latency: 5 us}"
    >>> text = f"{{scenario_version: 1, workers: 8, message: 64 MiB, {network}}}"
    >>> estimate(loads(text)).n_transfers, estimate(loads(text, ["payload=none"])).payload_bytes
    (112, 0)
    """
    return _with_carry(scenario, scenario.carry)


def _with_carry(scenario: Scenario, carry: int | None) -> Estimate:
    schedule = build_schedule(scenario)
    sizes = chunk_sizes(scenario, schedule)
    carried = (scenario.workers, sizes, schedule.source, DTYPES[scenario.dtype], carry)
    payload = 0 if carry == 0 else payload_bytes(*carried)
    if payload > MATTERS_BYTES and is_packed("recurrence", sizes, carry):
        packed = payload_bytes(*carried, packed=True)
        if packed < available_bytes() and engine_of(scenario) == "recurrence":
            payload = packed
    payload += 0 if carry == 0 else sum(_job_bytes(scenario, job, carry) for job in scenario.jobs)
    n_rows = schedule.n_transfers if schedule.n_transfers <= scenario.report.transfers else 0
    memory = FIXED_BYTES + payload + n_rows * ROW_BYTES + scenario.workers * WORKER_BYTES
    memory += _pairs(scenario) * LINK_BYTES
    return Estimate(schedule.n_transfers, n_rows, payload, memory)


def _job_bytes(scenario: Scenario, job: JobKeys, carry: int | None) -> int:
    """Return the bytes of the carried elements of another job."""
    n_workers = job.workers if isinstance(job.workers, int) else len(job.workers)
    collective, dtype = job.collective or scenario.collective, DTYPES[scenario.dtype]
    schedule = schedule_beside(scenario, job.algorithm, n_workers, collective)
    sizes = schedule.chunk_sizes(message_elements(job.message_bytes, dtype))
    return payload_bytes(n_workers, sizes, schedule.source, dtype, carry)


def _pairs(scenario: Scenario) -> int:
    """Return the links of a network that has one for every pair of workers."""
    n_workers = scenario.network.places or scenario.workers
    return n_workers * (n_workers - 1) if scenario.network.topology == "fully-connected" else 0


def require_memory(scenario: Scenario, available: int | None = None) -> None:
    """Refuse a run that does not fit into ``available`` bytes, by default what this machine has left.

    Raises
    ------
    InputError
        With both figures, and a setting that would fit.
    """
    available = available_bytes() if available is None else available
    wanted = estimate(scenario)
    if wanted.memory_bytes > available:
        message = f"the run takes about {format_bytes(wanted.memory_bytes)} of memory"
        path, right = _remedy(scenario, wanted, available)
        raise InputError(Fault(message, path, value=f"{format_bytes(available)} free", right=right))


def _remedy(scenario: Scenario, wanted: Estimate, available: int) -> tuple[str, str]:
    """Return the key that is to blame, and the setting that would fit."""
    rows_bytes = wanted.n_rows * ROW_BYTES
    if wanted.memory_bytes - wanted.payload_bytes - rows_bytes > available:
        left = available - FIXED_BYTES
        most = isqrt(max(left, 0) // LINK_BYTES) if _pairs(scenario) else left // WORKER_BYTES
        return "workers", f"at most {most:,} workers" if most > 0 else "a machine with more memory"
    if rows_bytes > wanted.payload_bytes:
        return "report.transfers", "report: {transfers: 200000}"
    return "payload", _fitting_payload(scenario, available)


def _fitting_payload(scenario: Scenario, available: int) -> str:
    largest = int(chunk_sizes(scenario, build_schedule(scenario)).max(initial=1))
    round_numbers = (2**power for power in range(largest.bit_length(), -1, -1))
    found = next((k for k in round_numbers if _with_carry(scenario, k).memory_bytes <= available), None)
    return "payload: none" if found is None else f"payload: {{elements: {found}}}"


def available_bytes() -> int:
    """Return the bytes that this process may still take: of the machine, or of its container if less."""
    return min(
        [_machine_bytes(), *(limit for files in _CGROUPS if (limit := _cgroup_bytes(*files)) is not None)]
    )


def _machine_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cgroup_bytes(limit: str, used: str) -> int | None:
    try:
        return max(
            0, int(Path(limit).read_text(encoding="ascii")) - int(Path(used).read_text(encoding="ascii"))
        )
    except (OSError, ValueError):  # no such group, or "max"
        return None
