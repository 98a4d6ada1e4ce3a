"""Steps of PyTorch's DistributedDataParallel over gloo, on hosts of their own, against what ringnet predicts of them.

As root on Linux, with a Python that has PyTorch: ``python -m tests.testbed.ddp PYTHON``; some five minutes. Two workers
on equal links say what a link takes, and what the backward pass takes without a network; all else is predicted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

import ringnet
from ringnet.runs.step_time import simulate_step
from tests.testbed.namespaces import Bed, Cable, Shape, why_not

MIB = 2**20
#: 100 Mbit/s.
RATE_BPS = 12.5e6
BURST_BYTES = 27_300
LAYERS, LAYER_BYTES, BACKWARD_S, CAPS_MIB = 8, MIB, 0.05, (1, 5, 25)
SIZES = (MIB, 2 * MIB, 4 * MIB)
MOST_S = 400


@dataclass(frozen=True)
class DdpPoint:
    """One row of the comparison."""

    n_workers: int
    slow_share: float
    cap_mib: int
    predicted_s: float
    measured_s: float

    @property
    def error(self) -> float:
        """The prediction less the measurement, as a share of the measurement."""
        return self.predicted_s / self.measured_s - 1


def measure(
    python: str, n_workers: int, slow_share: float, caps_mib: Sequence[int], sizes: Sequence[int]
) -> dict:
    """Run the processes; worker 0 has so large a share of the rate of the others."""
    rates = [RATE_BPS * (slow_share if worker == 0 else 1) for worker in range(n_workers)]
    shapes = [Shape(rate, BURST_BYTES) for rate in rates]
    cables = [
        Cable(f"w{worker}", "s0", shape, shape, a_address=f"10.9.0.{worker + 1}/24")
        for worker, shape in enumerate(shapes)
    ]
    spec = json.dumps([LAYERS, LAYER_BYTES // 4, BACKWARD_S, list(caps_mib), list(sizes)])
    script, processes = str(Path(__file__).with_name("ddp_worker.py")), []
    with Bed(cables) as bed:
        try:
            for rank in range(n_workers):
                told = {
                    "RANK": rank,
                    "WORLD_SIZE": n_workers,
                    "MASTER_ADDR": "10.9.0.1",
                    "MASTER_PORT": 29555,
                }
                told |= {"GLOO_SOCKET_IFNAME": f"eth{rank}", "OMP_NUM_THREADS": 1}
                environment = os.environ | {name: str(value) for name, value in told.items()}
                command = [*bed.enter(f"w{rank}"), python, script, spec]
                pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
                processes.append(subprocess.Popen(command, env=environment, **pipes))
            answers = [process.communicate(timeout=MOST_S)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
    return json.loads(answers[0].splitlines()[-1])


def predict(
    n_workers: int, slow_share: float, cap_mib: int, link: tuple[float, float], backward_s: float
) -> float:
    """Return the step that ringnet predicts, from the latency and the rate of a link."""
    latency_s, rate_Bps = link
    slow = f"{rate_Bps * slow_share!r} B/s"
    links = {f"{one}": {"bandwidth": slow} for one in ("0->1", f"{n_workers - 1}->0")}
    rows = "".join(f"layer {number},{LAYER_BYTES // 4},0 s,{backward_s!r} s\n" for number in range(LAYERS))
    document = {
        "scenario_version": 1,
        "workers": n_workers,
        "network": {
            "topology": "ring", "bandwidth": f"{rate_Bps!r} B/s", "latency": f"{latency_s!r} s", "links": links,
        },
        "step": {"layers": "layers.csv", "bucket_cap": f"{cap_mib} MiB", "first_bucket": f"{cap_mib} MiB"},
    }  # fmt: skip
    with TemporaryDirectory() as folder:
        (Path(folder) / "layers.csv").write_text("name,parameters,forward,backward\n" + rows)
        return simulate_step(ringnet.loads(json.dumps(document), folder=folder)).summary["step_s"]


def compare(python: str, cases: Sequence[tuple[int, float]]) -> Iterator[DdpPoint]:
    """Calibrate on two workers, then predict and measure every case with every cap."""
    found = measure(python, 2, 1.0, (), SIZES)
    times_s = [median(found["all_reduce_s"][str(n_bytes)]) for n_bytes in SIZES]
    per_byte, fixed_s = np.polyfit(SIZES, times_s, 1)  # of two workers: 2 latencies, and every byte once
    link = max(float(fixed_s) / 2, 0.0), 1 / float(per_byte)
    backward_s = median(found["alone_s"]) / LAYERS
    for n_workers, slow_share in cases:
        measured = measure(python, n_workers, slow_share, CAPS_MIB, ())["step_s"]
        for cap in CAPS_MIB:
            predicted_s = predict(n_workers, slow_share, cap, link, backward_s)
            yield DdpPoint(n_workers, slow_share, cap, predicted_s, median(measured[str(cap)]))


def say(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(python: str) -> None:
    """Compare in full, and say how far off the predictions are."""
    if reason := why_not():
        sys.exit(f"no testbed here: {reason}")
    errors = []
    for point in compare(python, [(n, share) for share in (1.0, 0.5) for n in (2, 3, 4)]):
        errors.append(abs(point.error))
        say(
            f"N={point.n_workers}, worker 0 at {point.slow_share:g} of the rate, cap {point.cap_mib} MiB: "
            f"predicted {point.predicted_s:.3f} s, measured {point.measured_s:.3f} s, {point.error:+.1%}"
        )
    say(f"{len(errors)} points: median error {median(errors):.1%}, worst {max(errors):.1%}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else sys.executable)
