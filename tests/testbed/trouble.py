"""Trouble on the real network: cables cut, processes stopped and killed, packets lost, each predicted and measured.

``python -m tests.testbed.trouble`` as root on Linux, in three minutes; writes ``testbed-trouble.csv`` to the gallery.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from threading import Thread

import numpy as np
import pandas as pd
import pytest

from ringnet.chance import stream
from ringnet.collectives.rings import ring
from ringnet.collectives.schedule import split_sizes
from ringnet.engines import Workers
from ringnet.engines.events import run_events
from ringnet.engines.pace import ProcessorPace
from ringnet.errors import WorkerError
from ringnet.measure.allreduce import AllReduce, expected_sum
from ringnet.measure.processes import WorkerProcesses, run_once
from ringnet.networks import Behaviour
from ringnet.networks.trouble import Lossy, Span, Whiles, troubled
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads
from tests.testbed import study
from tests.testbed.beds import Case, Link, ring_case, uplink_case
from tests.testbed.namespaces import PREFIX, why_not
from tests.testbed.worker import PACKET_BYTES, sleep_until

MIB = 1024 * 1024
#: How long cables are cut and processes stopped.
LASTS_S = 2.0
#: What goes wrong so much later than it was to says more about the machine than about its network.
LATE_S = 0.02
#: Packets that are lost, and after what time they are sent again.
LOST, TIMEOUT_S = 0.01, 0.05
#: The beginning of a command that runs on each host.
HOSTS = [("ip", "netns", "exec", f"{PREFIX}{os.getpid()}-w{worker}") for worker in range(4)]
#: Or the first answer after a cut, to what came before it, makes TCP believe that nothing was lost, so that it waits
#: once more (RFC 5682, RFC 3522, RFC 3708).
LOST_IS_LOST = {f"net/ipv4/{key}": "0" for key in ("tcp_frto", "tcp_timestamps", "tcp_dsack")}
#: The least that TCP waits, in us: a little more or less than this comes to, and the third try finds the cable whole.
LEAST_RTO = {"net/ipv4/tcp_rto_min_us": "400000"}


@dataclass(frozen=True)
class Stall:
    """One row: by how much an all-reduce took longer, or of survivors how long in all, in seconds."""

    trouble: str
    predicted_s: float
    measured_s: float

    @property
    def error(self) -> float:
        """The prediction less the measurement, as a share of the measurement."""
        return self.predicted_s / self.measured_s - 1


def makespan_s(
    case: Case,
    n_bytes: int,
    link: Link,
    what: Callable[[str, Behaviour], Behaviour] = lambda _, behaviour: behaviour,
    paces: dict[int, list[Span]] | None = None,
) -> float:
    """What the simulator says of an all-reduce in which links do ``what``, and some workers pause for a while."""
    chunk_bytes = 4 * split_sizes(n_bytes // 4, case.n_workers)
    network = case.network(link.bandwidth_Bps, link.latency_of(int(chunk_bytes.max())))
    changed = {one: what(name, network.behaviour(one)) for one, name in enumerate(network.names)}
    workers = replace(
        Workers.alike(case.n_workers),
        paces={worker: ProcessorPace.of(own) for worker, own in (paces or {}).items()},
    )
    network = replace(network, behaviours=changed)
    return float(run_events(ring(case.n_workers), network, workers, chunk_bytes).workers["end_s"].max())


def prepared(workers: WorkerProcesses, n_bytes: int, n_runs: int = 6) -> float:
    """Prepare an all-reduce, run it a few times, and return what it takes without trouble."""
    job = AllReduce(len(workers.endpoints), n_bytes, "float32")
    workers.expect(expected_sum(job.source()))
    workers.ask("prepare", job=job.document(), in_place=False)
    return median([run_once(workers).makespan_s for _ in range(n_runs)][1:])


def lead_s(workers: WorkerProcesses) -> float:
    """From the call to the common start of all workers, as `run_once` has it."""
    return 2e-3 + 2e-4 * len(workers.endpoints)


def run_in_trouble(workers: WorkerProcesses, *what: tuple[float, Callable[[], object]]) -> float:
    """Run, and do some things at times after the start; again if a busy machine did one late. The sum must be right."""
    late_s: list[float] = []

    def go(start_ns: int) -> None:
        for at_s, do in what:
            sleep_until(start_ns + round(at_s * 1e9))
            late_s.append((time.monotonic_ns() - start_ns) * 1e-9 - at_s)
            do()

    thread = Thread(target=go, args=[time.monotonic_ns() + round(lead_s(workers) * 1e9)])
    thread.start()
    run = run_once(workers)
    thread.join()
    assert not any(wrong.n_elements for wrong in run.wrong)
    return run.makespan_s if max(late_s, default=0.0) < LATE_S else run_in_trouble(workers, *what)


def stopped(link: Link, at_s: float = 0.1, n_bytes: int = 4 * MIB) -> Stall:
    """Stop a worker (SIGSTOP), and let it go on two seconds later."""
    case = ring_case(4)
    with case.workers() as workers:
        calm_s = prepared(workers, n_bytes)
        stop, go = (lambda which=which: os.kill(workers.pids[1], which) for which in (signal.SIGSTOP, signal.SIGCONT))
        took_s = run_in_trouble(workers, (at_s, stop), (at_s + LASTS_S, go))
    pauses = {1: [Span(at_s, at_s + LASTS_S, 0.0)]}
    calm, in_trouble = (makespan_s(case, n_bytes, link, paces=paces) for paces in ({}, pauses))
    return Stall("a worker stopped for 2 s", in_trouble - calm, took_s - calm_s)


def cut(link: Link, times_s: Sequence[float], n_bytes: int = 4 * MIB) -> Iterator[Stall]:
    """Cut the cable between two racks for two seconds; TCP tries again, each time after twice as long."""
    case = uplink_case()
    # No port that is down, whose end would hear of it: one that hands nothing on.
    port = (
        "bridge",
        "-n",
        f"{PREFIX}{os.getpid()}-s0",
        "link",
        "set",
        "dev",
        f"eth{len(case.cables) - 1}",
        "state",
    )
    calm = makespan_s(case, n_bytes, link)
    for at_s in times_s:
        found: list[float] = []
        with case.workers(LOST_IS_LOST | LEAST_RTO) as workers, at_once():
            calm_s = prepared(workers, n_bytes)
            took_s = run_in_trouble(
                workers,
                (max(0.0, at_s - 0.15), lambda found=found: found.append(timeout_s())),
                (at_s, lambda: _run(*port, "0")),
                (at_s + LASTS_S, lambda: _run(*port, "3")),
            )
        spans = [*Whiles(at_s, LASTS_S, 0.0, retry_s=found[-1]).spans(0)]
        in_trouble = makespan_s(
            case, n_bytes, link,
            lambda name, own, spans=spans: troubled(own, spans) if name in ("s0->s1", "s1->s0") else own,
        )  # fmt: skip
        yield Stall("the cable between two racks cut for 2 s", in_trouble - calm, took_s - calm_s)


def timeout_s() -> float:
    """The retransmission timeout that TCP has come to, the longest of all workers' connections."""
    told = (_run(*host, "ss", "-tin") for host in HOSTS)
    return max(float(one) for text in told for one in re.findall(r"\brto:([0-9.]+)", text)) * 1e-3


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def lost(link: Link, n_bytes: int = MIB, n_runs: int = 100) -> Iterator[Stall]:
    """Lose packets on each link, again and again; compare by how much that makes it late."""
    case, measured = ring_case(4), []
    with case.workers() as workers:
        for probability in (0.0, LOST):
            workers.lose(probability, TIMEOUT_S)
            prepared(workers, n_bytes)
            measured.append([run_in_trouble(workers) for _ in range(n_runs)])

    def loses(run: int) -> Callable[[str, Behaviour], Behaviour]:
        return lambda name, behaviour: Lossy(
            behaviour, LOST, PACKET_BYTES, TIMEOUT_S, 0, stream(0, "link", name, "loss"), run
        )

    calm = makespan_s(case, n_bytes, link)
    predicted = [makespan_s(case, n_bytes, link, loses(run)) - calm for run in range(4 * n_runs)]
    calm_s, in_trouble_s = median(measured[0]), np.array(measured[1])
    figures = {"mean": np.mean, "median": np.median, "95th percentile": partial(np.quantile, q=0.95)}
    for name, figure in figures.items():
        said, seen = float(figure(predicted)), float(figure(in_trouble_s - calm_s))
        yield Stall(f"1 % of packets lost, {name}", said, seen)


@dataclass(frozen=True)
class Killed:
    """What a death came to, in seconds: until all knew of it, from then until all started again, and in all."""

    detect_s: float
    rebuild_s: float
    took_s: float


def killed(worker: int, at_s: float, n_bytes: int = 4 * MIB) -> Killed:
    """Kill a worker; the others hang up one after another, join a ring of their own, and start again without it."""
    with uplink_case().workers() as workers, at_once():
        prepared(workers, n_bytes)
        start_ns = time.monotonic_ns() + round(lead_s(workers) * 1e9)
        with pytest.raises(WorkerError, match=rf"worker {worker} .* was killed \(SIGKILL\)"):
            run_in_trouble(workers, (at_s, lambda: os.kill(workers.pids[worker], signal.SIGKILL)))
        known_s = (time.monotonic_ns() - start_ns) * 1e-9
        workers.survive(worker)
        job = AllReduce(len(workers.endpoints), n_bytes, "float32")
        workers.expect(expected_sum(job.source()))
        workers.ask("prepare", job=job.document(), in_place=False)
        again_s = (time.monotonic_ns() - start_ns) * 1e-9 + lead_s(workers)
        took_s = again_s + run_in_trouble(workers)
    return Killed(known_s - at_s, again_s - known_s, took_s)


@contextmanager
def at_once() -> Iterator[None]:
    """Let this process run as soon as there is something to do, as the workers do."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def shrunk(link: Link, worker: int, at_s: float, known: Sequence[Killed], n_bytes: int = 4 * MIB) -> float:
    """What a scenario says of a death, with times of its detection and of the new ring from other ones."""
    detect_s, rebuild_s = median(one.detect_s for one in known), median(one.rebuild_s for one in known)
    latency_s = link.latency_of(n_bytes // 4)
    cables = [
        f"{{from: {start}, to: {end}, duplex: one-way, latency: {latency} s}}"
        for one in range(4)
        for start, end, latency in ((one, f"s{one % 2}", latency_s), (f"s{one % 2}", one, 0))
    ]
    text = f"""
        scenario_version: 1
        workers: 4
        message: {n_bytes} B
        network: {{topology: custom, sharing: fair, bandwidth: {link.bandwidth_Bps} B/s, latency: 0 s,
                  switches: [s0, s1], cables: [{", ".join(cables)}, {{from: s0, to: s1}}]}}
        trouble: [{{worker: {worker}, dies: {at_s} s}}]
        on_failure: {{policy: shrink, detect: {detect_s} s, rebuild: {rebuild_s} s}}
    """
    return simulate(loads(text)).summary["makespan_s"]


def deaths(link: Link, of: Sequence[tuple[int, float]]) -> Iterator[Stall]:
    """Kill workers; how long it takes to know of it and to start again is what other deaths have shown."""
    known = [killed(worker, at_s) for worker, at_s in ((3, 0.05), (2, 0.12), (0, 0.22))]
    for worker, at_s in of:
        predicted_s = shrunk(link, worker, at_s, known)
        # Of three: a neighbour hears of it late where the machine is busy.
        took_s = median(killed(worker, at_s).took_s for _ in range(3))
        yield Stall("a worker killed, the others start again", predicted_s, took_s)


def stalls(link: Link) -> Iterator[Stall]:
    """Everything, one after another."""
    yield from (stopped(link, at_s) for at_s in (0.05, 0.1, 0.2))
    yield from cut(link, (0.1, 0.15, 0.2, 0.25, 0.3))
    yield from lost(link)
    yield from deaths(link, ((1, 0.1), (2, 0.2), (0, 0.3)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.testbed.trouble", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", nargs="?", type=Path, default=Path("reports/gallery"))
    folder = parser.parse_args().folder
    if reason := why_not():
        sys.exit(f"no testbed here: {reason}")
    rows = []
    for one in stalls(study.calibrate(study.SHORT.repeat)):
        rows.append(vars(one) | {"error": one.error})
        print(
            f"{one.trouble}: predicted {one.predicted_s:.3f} s, measured {one.measured_s:.3f} s, {one.error:+.1%}",
            flush=True,
        )
    path = folder / "testbed-trouble.csv"
    pd.DataFrame(rows).to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
    print(path)


if __name__ == "__main__":
    main()
