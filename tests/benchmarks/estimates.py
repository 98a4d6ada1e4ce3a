"""How far the estimates of `ringnet check` are from what runs take: ``python -m tests.benchmarks.estimates [WORD]``.

Each run of `estimated_runs` (or those with a word in their names) is estimated, and carried out in its own process.
Times are of the processor, so that other load matters less; memory is the most that the process held.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

from ringnet.cli.check import preview_of, step_preview_of
from ringnet.scenario import load
from ringnet.study.cost import sweep_s
from ringnet.study.repeat import repeats
from tests.benchmarks.estimated_runs import RUNS
from tests.benchmarks.measuring import python

#: How far an estimate may be off, either way.
MOST_OFF_TIME, MOST_OFF_MEMORY = 2.0, 1.5
MIB = 2**20


class Estimated(NamedTuple):
    """What was said of a run, and what it took: seconds, bytes; and the seconds of saying it."""

    name: str
    said_s: float
    took_s: float
    said_bytes: int
    took_bytes: int
    saying_s: float

    @property
    def line(self) -> str:
        time, memory = self.said_s / self.took_s, self.said_bytes / self.took_bytes
        return (
            f"{self.name:<36} {self.said_s:8.2f} {self.took_s:8.2f} {time:6.2f}{_mark(time, MOST_OFF_TIME)}"
            f" {self.said_bytes / MIB:8.0f} {self.took_bytes / MIB:8.0f} {memory:6.2f}{_mark(memory, MOST_OFF_MEMORY)}"
            f" {1000 * self.saying_s:8.0f}"
        )


def _mark(ratio: float, most: float) -> str:
    return " " if 1 / most <= ratio <= most else "*"


#: Starts a command, and says how it ended, its processor time and its memory. Of a process that is started, Linux's
#: ``ru_maxrss`` begins with what the one has that starts it: that is this one, which is as small as any Python.
STARTER = """
import os, sys
_, status, used = os.wait4(os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, *sys.argv[1:]]), 0)
print(status, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss)
"""


def measure(name: str, folder: Path) -> Estimated:
    """Estimate a run, or a step, and carry it out."""
    path = folder / "scenario.yaml"
    path.write_text(RUNS[name])
    start_s = process_time()
    scenario = load(path)
    preview = preview_of(scenario) if scenario.step is None else step_preview_of(scenario)
    saying_s = process_time() - start_s
    words = ["run" if scenario.step is None else "step", str(path), "--out", str(folder / "out"), "--quiet"]
    words += ["--cache", str(folder / "c"), "--jobs", "1"] if preview.points > 1 or repeats(scenario) else []
    said = python("-I", "-S", "-c", STARTER, "-m", "ringnet", *words).split()
    status, took_s, took_bytes = int(said[-3]), float(said[-2]), int(said[-1])
    if status:
        raise SystemExit(f"{name}: ringnet {words[0]} ended with {status}")
    said_s = sweep_s(scenario, 1) if preview.points > 1 else preview.seconds
    return Estimated(name, said_s, took_s, preview.memory_bytes, took_bytes, saying_s)


def spread(what: str, ratios: Sequence[float], most: float) -> str:
    """Return in words how a number of ratios are spread."""
    ordered = sorted(ratios)
    at = [ordered[int(share * (len(ordered) - 1))] for share in (0, 0.1, 0.5, 0.9, 1)]
    within = sum(1 / most <= ratio <= most for ratio in ratios)
    return (
        f"{what}: {within} of {len(ratios)} within a factor of {most}; "
        f"least {at[0]:.2f}, a tenth below {at[1]:.2f}, median {at[2]:.2f}, a tenth above {at[3]:.2f}, most {at[4]:.2f}"
    )


def main() -> int:
    """Print a line for each run, how the ratios are spread, and the verdict; return 1 where a run is too far off."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.estimates", description=__doc__)
    parser.add_argument("words", metavar="WORD", nargs="*", help="runs with one of these in their names; default: all")
    words = parser.parse_args().words
    if unknown := [word for word in words if not any(word in name for name in RUNS)]:
        parser.error(f"no run has {unknown[0]} in its name; there are: {', '.join(RUNS)}")
    chosen = [name for name in RUNS if not words or any(word in name for word in words)]
    print(f"{'':<36} {'said s':>8} {'took s':>8} {'ratio':>7} {'said MiB':>8} {'took':>8} {'ratio':>7} {'ms':>8}")
    found = []
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure(name, Path(folder)))
        print(found[-1].line, flush=True)
    print(spread("time", [one.said_s / one.took_s for one in found], MOST_OFF_TIME))
    print(spread("memory", [one.said_bytes / one.took_bytes for one in found], MOST_OFF_MEMORY))
    off = [one.name for one in found if "*" in one.line]
    verdict = f"{len(off)} too far off: {', '.join(off)}" if off else "none too far off"
    print(f"verdict: {len(found)} runs, {verdict}")
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
