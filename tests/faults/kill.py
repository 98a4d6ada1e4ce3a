"""Processes that are killed at any moment, by any signal: every point is computed once in all, every file is whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from random import Random
from typing import NamedTuple, Self

from typer.testing import CliRunner

from ringnet.cli import app
from tests.commands import PATIENCE_S

#: What may come from a user, a terminal that goes, a scheduler or the system.
SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGKILL", "SIGSEGV")
SWEEP = """
scenario_version: 1
message: 256 KiB
algorithm: direct
network: {topology: switch, bandwidth: 1 GB/s, latency: 1 us}
sweep: {over: {workers: [12, 13, 14, 15, 16, 17, 18, 19]}}
"""
#: A command as it is, but that starts processes for however little work.
BEGIN = "from ringnet.cli import main; from ringnet.study import local; local.SMALL_S = 0; main()"
_ALWAYS = "--quiet --no-plots --jobs 2 --cache cache --out out"
COMMANDS: Mapping[str, str] = {
    "run": f"run one.yaml {_ALWAYS.replace('--jobs 2 --cache cache ', '')}",
    "sweep": f"run w.yaml {_ALWAYS}",
    "compare": f"compare one.yaml {_ALWAYS} --algorithms ring,direct --workers 4,8",
    "numerics": f"numerics one.yaml {_ALWAYS} --algorithms ring,direct --workers 4,8 --dtypes float32,bfloat16",
    "cluster": f"run w.yaml {_ALWAYS} --cluster {{address}}",
    "plot": "plot out",
    "report": "report out",
}
#: What adds to a folder of results, which another run replaces afterwards; of others the same command is given again.
ADDING = {"plot", "report"}
#: A command that has not ended by then hangs, on however busy a machine.
MOST_S = 600.0


class Tried(NamedTuple):
    """One kill: which command, whom, by what, after how long; and what was wrong afterwards."""

    command: str
    victim: str
    signal: str
    after_s: float
    wrong: list[str]


def prepare(name: str, folder: Path) -> None:
    """Make a folder with nothing but what a command reads."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "w.yaml").write_text(SWEEP)
    (folder / "one.yaml").write_text(
        SWEEP.replace("sweep: {over: {workers: [12, 13, 14, 15, 16, 17, 18, 19]}}", "workers: 16")
    )
    if name in ADDING:
        with chdir(folder):
            assert CliRunner().invoke(app, COMMANDS["run"].split()).exit_code == 0


@contextmanager
def started(name: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """Start a command in a session of its own, and the cluster that it needs; give it and the processes of that."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(folder)) if "{address}" in COMMANDS[name] else None
        words = COMMANDS[name].format(address=cluster and cluster.address).split()
        pipe = subprocess.PIPE
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "home")}
        process = subprocess.Popen(
            [sys.executable, "-c", BEGIN, *words],
            cwd=folder,
            env=environment,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )
        yield process, [one.pid for one in cluster.processes] if cluster else []


class Cluster:
    """A Dask scheduler and two workers on this machine, each a process of its own, that are gone afterwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        (self.folder / "scheduler.json").unlink(missing_ok=True)
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        for _ in range(2):
            self._start("worker", "--no-nanny", "--nthreads", "1")
        from distributed import Client  # noqa: PLC0415 -- for a cluster alone: the tests are collected without it

        with Client(self.address, timeout=MOST_S, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=MOST_S)
        return self

    def _start(self, program: str, *options: str) -> None:
        words = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--no-dashboard"]
        words += ["--scheduler-file", "scheduler.json", *options]
        null = subprocess.DEVNULL
        self.processes.append(subprocess.Popen(words, cwd=self.folder, stdout=null, stderr=null))

    @cached_property
    def address(self) -> str:
        """Where the scheduler listens."""
        until = time.monotonic() + MOST_S
        while time.monotonic() < until:
            with suppress(FileNotFoundError, ValueError):  # not yet, or not yet whole
                return str(json.loads((self.folder / "scheduler.json").read_text())["address"])
            time.sleep(0.05)
        raise TimeoutError("the scheduler did not come up")

    def __exit__(self, *error: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def members(session: int) -> list[int]:
    """Return the processes of a session that are not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has gone
            continue
        if int(sid) == session and state != "Z":
            found.append(int(stat.parent.name))
    return found


def kept(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the points that are kept, each with when and where it was written."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in (folder / "cache").rglob("*.json")
    }


def outputs(folder: Path) -> dict[str, str]:
    """Return the tables of the results, which are the same bytes whenever they are computed."""
    return {path.name: path.read_text() for path in sorted((folder / "out").glob("*.csv"))}


def undisturbed(name: str, folder: Path) -> tuple[float, int, dict[str, str]]:
    """Return how long a command takes, how many points it keeps and its tables."""
    prepare(name, folder)
    with started(name, folder) as (process, _):
        begin = time.monotonic()
        _, said = process.communicate(timeout=MOST_S)
    assert process.returncode == 0, said
    return time.monotonic() - begin, len(kept(folder)), outputs(folder)


def kill_once(name: str, folder: Path, random: Random, whole: tuple[float, int, dict[str, str]]) -> Tried:
    """Kill a command, or one that it has started or works with, at some moment; then let the same command end."""
    took_s, n_points, tables = whole
    prepare(name, folder)
    with started(name, folder) as (process, cluster):
        begin, is_worker = time.monotonic(), name not in {"run", *ADDING} and random.random() < 0.5
        if is_worker and not cluster:
            _wait_for_others(process)
            time.sleep(random.uniform(0.0, took_s / 20))
        else:
            time.sleep(random.uniform(0.0, took_s))
        others = [one for one in (*members(process.pid), *cluster) if one != process.pid]
        is_worker = is_worker and bool(others)
        victim = random.choice(others) if is_worker else process.pid
        by, after_s = random.choice(SIGNALS), time.monotonic() - begin
        with suppress(ProcessLookupError):  # it has ended by itself
            os.kill(victim, signal.Signals[by])
        tried = Tried(name, "a worker" if is_worker else "itself", by, after_s, [])
        tried.wrong.extend(_after(process, folder))
    before = kept(folder)
    with started("run" if name in ADDING else name, folder) as (again, _):
        try:
            _, said = again.communicate(timeout=MOST_S)
        except subprocess.TimeoutExpired:
            os.killpg(again.pid, signal.SIGKILL)
            tried.wrong.append("the same command again hangs")
            return tried
    if again.returncode or "tracker" in said:
        tried.wrong.append(f"the same command again ends with {again.returncode}: {said[-300:]}")
    if outputs(folder) != tables:
        tried.wrong.append("the tables differ from those of an undisturbed run")
    now = kept(folder)
    if len(now) != n_points or any(now.get(point) != when for point, when in before.items()):
        tried.wrong.append(
            f"{len(now)} points kept of {n_points}, and {len(before.items() - now.items())} written again"
        )
    left = [path.name for path in folder.rglob(".*") if path.name.endswith((".new", ".old"))]
    if left:
        tried.wrong.append(f"left behind: {left}")
    return tried


def _wait_for_others(process: subprocess.Popen[str]) -> None:
    """Wait until a command has started processes, which may be there for a tenth of its time only."""
    while process.poll() is None and members(process.pid) in ([], [process.pid]):
        time.sleep(0.002)


def _after(process: subprocess.Popen[str], folder: Path) -> Iterator[str]:
    """Yield what is wrong when a command was killed, or lost one that it had started."""
    try:
        _, said = process.communicate(timeout=MOST_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        yield "it hangs"
        return
    if (process.returncode not in {0, 2, 5, 130} and process.returncode > 0) or "tracker" in said:
        yield f"it ends with {process.returncode}: {said[-300:]}"
    end = time.monotonic() + PATIENCE_S
    while (left := members(process.pid)) and time.monotonic() < end:
        time.sleep(0.1)
    if left:
        os.killpg(process.pid, signal.SIGKILL)
        yield f"{len(left)} processes go on without it"
    for path in (folder / "cache").rglob("*.json"):
        try:
            json.loads(path.read_text())
        except ValueError:
            yield f"half a kept point: {path.name}"
    if (folder / "out").exists() and not (folder / "out" / "run.json").exists():
        yield "half a folder of results"
