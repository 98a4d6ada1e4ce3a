"""Trouble on the real network: what is cut or stopped in the middle of an all-reduce, predicted and measured.

``python -m tests.testbed.trouble`` as root on Linux, in about a minute; writes ``testbed-trouble.csv`` to the gallery.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from threading import Thread

import pandas as pd

from ringnet.collectives.rings import ring
from ringnet.collectives.schedule import split_sizes
from ringnet.engines import Workers
from ringnet.engines.events import run_events
from ringnet.engines.pace import ProcessorPace
from ringnet.measure.allreduce import AllReduce, expected_sum
from ringnet.measure.processes import WorkerProcesses, run_once
from ringnet.networks import Network
from ringnet.networks.trouble import Span, troubled
from ringnet.scenario.keys.trouble import DownKeys
from ringnet.scenario.trouble import stands_still_s
from tests.testbed import study
from tests.testbed.beds import Case, Link, ring_case, uplink_case
from tests.testbed.namespaces import PREFIX, why_not
from tests.testbed.worker import sleep_until

MIB = 1024 * 1024
#: How long cables are cut and processes stopped.
LASTS_S = 2.0
#: The beginning of a command that runs on each host.
HOSTS = [("ip", "netns", "exec", f"{PREFIX}{os.getpid()}-w{worker}") for worker in range(4)]
#: From the call to the common start of all workers, as `run_once` has it for four.
LEAD_S = 2.8e-3


@dataclass(frozen=True)
class Stall:
    """One row: by how much an all-reduce took longer, in seconds."""

    trouble: str
    predicted_s: float
    measured_s: float

    @property
    def error(self) -> float:
        """The prediction less the measurement, as a share of the measurement."""
        return self.predicted_s / self.measured_s - 1


def makespan_s(
    case: Case, n_bytes: int, link: Link, spans: dict[str, Span], paces: dict[int, list[Span]]
) -> float:
    """What the simulator says of an all-reduce with some links down and some workers paused for a while."""
    chunk_bytes = 4 * split_sizes(n_bytes // 4, case.n_workers)
    network: Network = case.network(link.bandwidth_Bps, link.latency_of(int(chunk_bytes.max())))
    number = {name: one for one, name in enumerate(network.names)}
    changed = {
        number[name]: troubled(network.behaviour(number[name]), [span]) for name, span in spans.items()
    }
    workers = Workers.alike(case.n_workers)
    workers = replace(workers, paces={worker: ProcessorPace.of(own) for worker, own in paces.items()})
    network = replace(network, behaviours=changed)
    return float(run_events(ring(case.n_workers), network, workers, chunk_bytes).workers["end_s"].max())


def prepared(workers: WorkerProcesses, n_bytes: int) -> float:
    """Prepare an all-reduce of four, run it a few times, and return what it takes without trouble."""
    job = AllReduce(4, n_bytes, "float32")
    workers.expect(expected_sum(job.source()))
    workers.ask("prepare", job=job.document(), in_place=False)
    return median([run_once(workers).makespan_s for _ in range(6)][1:])


def run_in_trouble(
    workers: WorkerProcesses,
    at_s: float,
    begins: Callable[[], object],
    ends: Callable[[], object],
    lasts_s: float = LASTS_S,
) -> float:
    """Run once; some time after its start something goes wrong, and is over again. The sum must be right."""

    def go(start_ns: int) -> None:
        sleep_until(start_ns + round(at_s * 1e9))
        begins()
        sleep_until(start_ns + round((at_s + lasts_s) * 1e9))
        ends()

    thread = Thread(target=go, args=[time.monotonic_ns() + round(LEAD_S * 1e9)])
    thread.start()
    run = run_once(workers)
    thread.join()
    assert not any(wrong.n_elements for wrong in run.wrong)
    return run.makespan_s


def stopped(link: Link, at_s: float = 0.1, n_bytes: int = 4 * MIB) -> Stall:
    """Stop a worker (SIGSTOP), and let it go on two seconds later."""
    case = ring_case(4)
    with case.workers() as workers:
        calm_s = prepared(workers, n_bytes)
        pid = workers.pids[1]
        took_s = run_in_trouble(
            workers, at_s, lambda: os.kill(pid, signal.SIGSTOP), lambda: os.kill(pid, signal.SIGCONT)
        )
    pauses = {1: [Span(at_s, at_s + LASTS_S, 0.0)]}
    calm, in_trouble = (makespan_s(case, n_bytes, link, {}, paces) for paces in ({}, pauses))
    return Stall("a worker stopped for 2 s", in_trouble - calm, took_s - calm_s)


def cut(link: Link, at_s: float = 0.1, n_bytes: int = 4 * MIB) -> Stall:
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
    found: list[float] = []
    with case.workers() as workers:
        # Or the first answer after so long makes TCP believe that nothing was lost, and wait once more (RFC 5682).
        # It may do so still, where answers were lost on their way.
        for host in HOSTS:
            _run(
                *host,
                "sh",
                "-c",
                "echo 0 > /proc/sys/net/ipv4/tcp_frto",
            )
        calm_s = prepared(workers, n_bytes)
        for _ in range(3):  # as the timeout is in the middle of a run
            run_in_trouble(workers, at_s, lambda: found.append(timeout_s()), lambda: None, lasts_s=0.0)
        took_s = run_in_trouble(workers, at_s, lambda: _run(*port, "0"), lambda: _run(*port, "3"))
    down = DownKeys.model_validate({"at": f"{at_s} s", "for": f"{LASTS_S} s", "retry": f"{median(found)} s"})
    span = Span(at_s, at_s + stands_still_s(down), 0.0)
    calm, in_trouble = (
        makespan_s(case, n_bytes, link, spans, {}) for spans in ({}, {"s0->s1": span, "s1->s0": span})
    )
    return Stall("the cable between two racks cut for 2 s", in_trouble - calm, took_s - calm_s)


def timeout_s() -> float:
    """The retransmission timeout that TCP has come to, the longest of all workers' connections."""
    found = []
    for host in HOSTS:
        told = _run(*host, "ss", "-tin")
        found += [float(one) for one in re.findall(r"\brto:([0-9.]+)", told)]
    return max(found) * 1e-3


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def stalls(link: Link) -> Iterator[Stall]:
    """Everything, one after another."""
    yield stopped(link)
    yield stopped(link, at_s=0.2)
    yield cut(link)
    yield cut(link, at_s=0.3)


def main(folder: Path) -> None:
    if reason := why_not():
        sys.exit(f"no testbed here: {reason}")
    rows = []
    for one in stalls(study.calibrate(study.SHORT.repeat)):
        rows.append(vars(one) | {"error": one.error})
        print(
            f"{one.trouble}: predicted {one.predicted_s:.3f} s, measured {one.measured_s:.3f} s, {one.error:+.1%}"
        )
    path = folder / "testbed-trouble.csv"
    pd.DataFrame(rows).to_csv(path, index=False, float_format="%.6g", lineterminator="\n")
    print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("reports/gallery"))
