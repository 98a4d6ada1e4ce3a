"""How things are measured: in turn, so that other load falls on both; memory in a process of its own."""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import simpy

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Pairs:
    """Seconds of two things that took turns, one entry per round."""

    ours_s: list[float]
    theirs_s: list[float]

    @property
    def speed_up(self) -> float:
        """How many times faster ours is: the median over the rounds."""
        return median(theirs / ours for ours, theirs in zip(self.ours_s, self.theirs_s, strict=True))

    @property
    def slow_down(self) -> float:
        """How many times longer ours takes."""
        return 1 / self.speed_up


def in_turn(
    benchmark: Any,
    ours: Callable[[], object],
    theirs: Callable[[], float],
    rounds: int,
    prepare: Callable[[], None] = lambda: None,
) -> Pairs:
    """Measure ``ours`` with pytest-benchmark, and before each round let ``theirs`` say how long it took.

    ``prepare`` makes what ``ours`` uses up; it is not timed.
    """
    theirs_s: list[float] = []

    def before_round() -> None:
        theirs_s.append(theirs())
        prepare()
        gc.collect()

    with collector_sees_only_ours():
        benchmark.pedantic(ours, setup=before_round, rounds=rounds)
    benchmark.extra_info["theirs_s"] = theirs_s
    return Pairs(list(benchmark.stats.stats.data), theirs_s)


@contextmanager
def collector_sees_only_ours() -> Iterator[None]:
    """Keep the collector from searching what pytest and its plugins have loaded: a plain program has not."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def cpu_s(run: Callable[[], object]) -> float:
    """Return the processor time of one call, which other processes do not lengthen as they do the time on the wall."""
    gc.collect()
    start_s = time.process_time()
    run()
    return time.process_time() - start_s


def wall_s(run: Callable[[], object]) -> float:
    """Return the time that one call takes on the wall."""
    start_s = time.perf_counter()
    run()
    return time.perf_counter() - start_s


def allocated_bytes(run: Callable[[], object]) -> int:
    """Return the most memory that one call holds, as Python and NumPy ask for it: exact, and slow."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peak_bytes() -> int:
    """Return the most memory that this process has had.

    Linux's ``ru_maxrss`` starts with what the process had that started this one; ``VmHWM`` starts at zero.
    """
    status = Path("/proc/self/status")
    if status.exists() and (peak := re.search(r"VmHWM:\s*(\d+) kB", status.read_text())):
        return int(peak[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def python(*arguments: str | Path) -> str:
    """Run this Python in a process of its own; return what it printed."""
    done = subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def simulated_alone(scenario: dict[str, object]) -> dict[str, Any]:
    """Simulate a scenario in a process of its own; return its summary and, as ``peak_bytes``, its memory."""
    answer: dict[str, Any] = json.loads(python(HERE / "simulate_alone.py", json.dumps(scenario)))
    return answer


def exponent(sizes: list[int], values: list[float]) -> float:
    """Return k of the fit ``value = c * size ** k``."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def machine() -> str:
    """Name the machine and what runs on it."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{_cpu()}, {os.cpu_count()} cores{load}; {platform.platform()}; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SimPy {simpy.__version__}"
    )


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return found[1] if found else platform.processor() or platform.machine()
