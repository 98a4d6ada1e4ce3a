"""Jitter on a real ring: a relay between neighbours holds each transfer back by chance, and the spread is predicted.

The kernel's own (`netem`) is not everywhere; a relay of ours is. It draws with its own generator, not with ringnet's.
Root is not needed: the workers are processes of this machine.

``python -m tests.testbed.jitter`` measures, and writes ``reports/gallery/jitter.csv``.
"""

from __future__ import annotations

import argparse
import csv
import queue
import socket
import struct
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ringnet.measure.allreduce import AllReduce, expected_sum
from ringnet.measure.processes import Endpoint, WorkerProcesses, run_once
from ringnet.runs.repeat import times_of_runs
from ringnet.scenario import loads

GALLERY = Path(__file__).parents[2] / "reports" / "gallery"
#: As the workers frame what they send: who is calling, and before each transfer its tag and its bytes.
HELLO_BYTES, HEADER = 24, struct.Struct("<qq")
N_WORKERS, MESSAGE_BYTES, MEAN_S = 4, 64 * 1024, 1e-2
#: Distributions of the delays as a scenario has them, and as the relay draws them.
SPREADS = {
    "lognormal": ("distribution: lognormal, cv: {cv}", 0.6, lambda rng: MEAN_S / 1.36**0.5 * np.exp(
        np.log(1.36) ** 0.5 * rng.standard_normal())),
    "exponential": ("distribution: exponential, least: {least}", 1.0, lambda rng: MEAN_S * rng.exponential()),
}  # fmt: skip
RUNS, PREDICTED_RUNS = 150, 4000


class Relay:
    """Stands between a worker and its right-hand neighbour, and holds each transfer back by what it draws."""

    def __init__(self, target, draw):
        self.target, self.draw = tuple(target), draw
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = list(self.listener.getsockname())
        self.held = queue.Queue()
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self):
        incoming, _ = self.listener.accept()
        outgoing = socket.create_connection(self.target)
        outgoing.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._give, args=(outgoing,), daemon=True).start()
        self.held.put((0.0, _read(incoming, HELLO_BYTES)))
        while header := _read(incoming, HEADER.size):
            data = _read(incoming, HEADER.unpack(header)[1])
            self.held.put((time.monotonic() + self.draw(), header + data))

    def _give(self, outgoing):
        while True:
            at_s, data = self.held.get()
            time.sleep(max(0.0, at_s - time.monotonic()))
            try:
                outgoing.sendall(data)
            except OSError:  # the ring has ended
                return


def _read(connection, n_bytes):
    parts = bytearray()
    while len(parts) < n_bytes:
        try:
            more = connection.recv(n_bytes - len(parts))
        except OSError:
            more = b""
        if not more:
            return b""
        parts += more
    return bytes(parts)


class JitteringRing(WorkerProcesses):
    """Workers on this machine with a relay between each two neighbours."""

    def __init__(self, n_workers, draw):
        super().__init__([Endpoint("127.0.0.1", 0) for _ in range(n_workers)])
        self.draw = draw

    def ask_each(self, requests: Iterable[dict]):
        """Tell each worker the address of a relay in place of its neighbour's."""
        asked = [
            {**one, "address": Relay(one["address"], self.draw).address} if one.get("do") == "join" else one
            for one in requests
        ]
        return super().ask_each(asked)


def measured_s(draw, n_runs):
    """Return the times of some runs of a real ring, whose sums are right."""
    job = AllReduce(N_WORKERS, MESSAGE_BYTES, "float32")
    with JitteringRing(N_WORKERS, draw) as workers:
        workers.expect(expected_sum(job.source()))
        workers.ask("prepare", job=job.document(), in_place=False)
        runs = [run_once(workers) for _ in range(n_runs)]
    assert not any(wrong.n_elements for run in runs for wrong in run.wrong)
    return np.array([run.makespan_s for run in runs])


def predicted_s(spread, cv, base_s):
    """Return the times that ringnet gives for the same delays, with what a step takes beside them."""
    mean_s = MEAN_S + base_s
    drawn = spread.format(cv=cv * MEAN_S / mean_s, least=f"{base_s} s")
    if "least" not in drawn:
        drawn += f", least: {base_s} s"
    latency = f"{{mean: {mean_s} s, {drawn}}}"
    network = f"{{bandwidth: 1 TB/s, latency: {latency}}}"
    ring = f"scenario_version: 1, workers: {N_WORKERS}, message: {MESSAGE_BYTES} B, payload: none"
    text = f"{{{ring}, network: {network}}}"
    return times_of_runs(loads(text), range(PREDICTED_RUNS))


def compare(n_runs=RUNS):
    """Yield for each distribution the predicted and the measured median and 95th percentile.

    One number is calibrated: what a step takes beside its delay.
    """
    steps = 2 * (N_WORKERS - 1)
    # With a constant delay: without any, all processes would want the few cores at once.
    base_s = float(np.median(measured_s(lambda: MEAN_S, 25))) / steps - MEAN_S
    for name, (spread, cv, draw) in SPREADS.items():
        rng = np.random.default_rng(1)
        real, ours = measured_s(lambda draw=draw, rng=rng: draw(rng), n_runs), predicted_s(spread, cv, base_s)
        for figure, share in (("median", 0.5), ("p95", 0.95)):
            predicted, measured = (float(np.quantile(one, share)) for one in (ours, real))
            yield {
                "delays": name, "figure": figure, "predicted_s": predicted, "measured_s": measured,
                "error": predicted / measured - 1, "runs": n_runs,
            }  # fmt: skip


def main():
    """Measure and keep."""
    argparse.ArgumentParser(prog="python -m tests.testbed.jitter", description=__doc__).parse_args()
    rows = [*compare()]
    with (GALLERY / "jitter.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
