"""Steps of PyTorch's DistributedDataParallel over gloo, on hosts of their own, against what ringnet predicts of them.

As root on Linux, with a Python that has PyTorch: ``python -m tests.testbed.ddp PYTHON [FOLDER]``; some ten minutes.
Writes ``ddp.csv``, ``ddp.png`` and ``ddp.svg`` to ``reports/gallery``, or to the folder given. Every finished case is
kept there until all are, so that a run that was stopped goes on where it was.

Two workers on equal links say what a link takes, by all-reduces alone, and what the backward passes take without a
network; all else is predicted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import ringnet
from ringnet.reference import ring_allreduce
from ringnet.reporting.plots import canvas
from ringnet.runs.step_time import simulate_step
from ringnet.runs.training import plan_of
from ringnet.training.exact import ExactDistance, ExactTraining
from ringnet.training.models import N_CLASSES, digit_images, unflattened
from ringnet.training.trainer import train
from tests.testbed.namespaces import Bed, Cable, Shape, why_not

MIB = 2**20
#: 100 Mbit/s.
RATE_BPS = 12.5e6
BURST_BYTES = 27_300
CAPS_MIB = (1, 5, 25)
SIZES = (MIB, 2 * MIB, 4 * MIB)
MOST_S = 150
#: Layers in the order of the forward pass: bytes, and seconds of the backward pass.
MODELS = {
    "even": ((MIB, 0.05),) * 8,
    "uneven": tuple(
        (kib * 1024, ms / 1000)
        for kib, ms in zip(
            (64, 1024, 256, 2048, 512, 96, 1536, 128, 768, 3072, 32, 640),
            (20, 60, 10, 40, 30, 50, 15, 70, 25, 35, 5, 45),
            strict=True,
        )
    ),
}


@dataclass(frozen=True)
class DdpPoint:
    """One row of the comparison; times in seconds."""

    model: str
    n_workers: int
    slow_share: float
    cap_mib: int
    predicted_s: float
    measured_s: float

    @property
    def error(self) -> float:
        """The prediction less the measurement, as a share of the measurement."""
        return self.predicted_s / self.measured_s - 1


@dataclass(frozen=True)
class Calibration:
    """What two workers on equal links showed.

    Parameters
    ----------
    latency_s, rate_Bps : float
        Of a link.
    alone_s : dict of str to float
        All backward passes of each model, without a network.
    """

    latency_s: float
    rate_Bps: float
    alone_s: dict[str, float]


def run_ranks(python: str, job: str, spec: Sequence[Any], rates_Bps: Sequence[float]) -> Any:
    """Run a process on a host of its own for each rate of a cable to one switch; return what the first printed."""
    shapes = [Shape(rate, BURST_BYTES) for rate in rates_Bps]
    cables = [
        Cable(f"w{worker}", "s0", shape, shape, a_address=f"10.9.0.{worker + 1}/24")
        for worker, shape in enumerate(shapes)
    ]
    script, processes = str(Path(__file__).with_name("ddp_worker.py")), []
    with Bed(cables) as bed:
        try:
            for rank in range(len(cables)):
                told = {
                    "RANK": rank,
                    "WORLD_SIZE": len(cables),
                    "MASTER_ADDR": "10.9.0.1",
                    "MASTER_PORT": 29555,
                }
                told |= {"GLOO_SOCKET_IFNAME": f"eth{rank}", "OMP_NUM_THREADS": 1}
                environment = os.environ | {name: str(value) for name, value in told.items()}
                command = [*bed.enter(f"w{rank}"), python, script, job, json.dumps(spec)]
                pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
                processes.append(subprocess.Popen(command, env=environment, **pipes))
            answers = [process.communicate(timeout=MOST_S)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
    return json.loads(answers[0].splitlines()[-1])


def _measure(python: str, model: str, rates_Bps: Sequence[float], caps_mib: Sequence[int], sizes=()) -> dict:
    layers = [(n_bytes // 4, seconds) for n_bytes, seconds in MODELS[model]]
    return run_ranks(python, "time", [layers, list(caps_mib), list(sizes)], rates_Bps)


def calibrate(python: str, models: Sequence[str] = tuple(MODELS)) -> Calibration:
    """Measure all-reduces alone, and backward passes alone, on two workers."""
    found = {
        model: _measure(python, model, [RATE_BPS] * 2, (), () if number else SIZES)
        for number, model in enumerate(models)
    }
    times_s = [median(found[models[0]]["all_reduce_s"][str(n_bytes)]) for n_bytes in SIZES]
    per_byte, fixed_s = np.polyfit(SIZES, times_s, 1)  # of two workers: 2 latencies, and every byte once
    alone_s = {model: median(one["alone_s"]) for model, one in found.items()}
    return Calibration(max(float(fixed_s) / 2, 0.0), 1 / float(per_byte), alone_s)


def predict(model: str, n_workers: int, slow_share: float, cap_mib: int, known: Calibration) -> float:
    """Return the step that ringnet predicts; the links to and from worker 0 have so large a share of the rate."""
    slow = f"{known.rate_Bps * slow_share!r} B/s"
    links = {one: {"bandwidth": slow} for one in ("0->1", f"{n_workers - 1}->0")}
    longer = known.alone_s[model] / sum(seconds for _, seconds in MODELS[model])
    rows = "".join(
        f"layer {number},{n_bytes // 4},0 s,{seconds * longer!r} s\n"
        for number, (n_bytes, seconds) in enumerate(MODELS[model])
    )
    document = {
        "scenario_version": 1,
        "workers": n_workers,
        "network": {
            "topology": "ring",
            "bandwidth": f"{known.rate_Bps!r} B/s",
            "latency": f"{known.latency_s!r} s",
            "links": links,
        },
        "step": {"layers": "layers.csv", "bucket_cap": f"{cap_mib} MiB", "first_bucket": f"{cap_mib} MiB"},
    }
    with TemporaryDirectory() as folder:
        (Path(folder) / "layers.csv").write_text("name,parameters,forward,backward\n" + rows)
        return simulate_step(ringnet.loads(json.dumps(document), folder=folder)).summary["step_s"]


def compare(python: str, model: str, n_workers: int, slow_share: float, known: Calibration) -> list[DdpPoint]:
    """Measure one case with every cap, and predict it."""
    rates = [RATE_BPS * slow_share, *[RATE_BPS] * (n_workers - 1)]
    measured = _measure(python, model, rates, CAPS_MIB)["step_s"]
    case = model, n_workers, slow_share
    return [DdpPoint(*case, cap, predict(*case, cap, known), median(measured[str(cap)])) for cap in CAPS_MIB]


# ------------------------------------------------------------------------------------------------------- parameters

#: Of `train_both`: what ringnet and what PyTorch calls it.
OPTIMIZERS = {
    "sgd": ("SGD", {"lr": 0.05}),
    "momentum": ("SGD", {"lr": 0.02, "momentum": 0.9}),
    "adamw": ("AdamW", {"lr": 0.001, "weight_decay": 0.01}),
}
TRAINED = """
scenario_version: 1
workers: 3
reduce: mean
seed: 2
network: {topology: ring, bandwidth: 12.5 MB/s, latency: 200 us}
training: {model: {name: digits, hidden: [24], examples: 240}, batch: 16, steps: 5}
"""


def train_both(python: str) -> dict[str, tuple[ExactDistance, ExactDistance]]:
    """Train five steps by each optimizer, over the network of a simulation and by PyTorch between hosts.

    Returns
    -------
    dict of str to tuple
        By the optimizer, how far the simulation's parameters, and how far PyTorch's, are from those of one exact
        process.
    """
    scenarios = {
        name: ringnet.loads(TRAINED, [f"training.optimizer={{name: {name}, learning_rate: {settings['lr']}}}"])
        for name, (_, settings) in OPTIMIZERS.items()
    }
    plans = {name: plan_of(scenario, scenario.training) for name, scenario in scenarios.items()}
    plan, seed = plans["sgd"], scenarios["sgd"].seed
    start = unflattened(plan.model.start(plan.master), plan.model.shapes)
    images, labels = digit_images(plan.model.n_examples, seed)
    with TemporaryDirectory() as folder:
        arrays = {f"parameter{number}": array for number, array in enumerate(start.values())}
        examples = {"inputs": images, "targets": np.eye(N_CLASSES)[labels]}
        path = Path(folder) / "training.npz"
        np.savez(path, **arrays, **{key: array.astype(np.float32) for key, array in examples.items()})
        spec = [str(path), OPTIMIZERS, len(plan.steps), plan.batch[0]]
        found = run_ranks(python, "train", spec, [RATE_BPS] * plan.n_workers)
    distances = {}
    for name, scenario in scenarios.items():
        exact = ExactTraining(plans[name])
        for step in train(plans[name], lambda sent, _: ring_allreduce([a * np.float32(1 / 3) for a in sent])):
            assert exact.follow(step) is not None, "the bound tells nothing"
        ours = [*ringnet.simulate(scenario).parameters.values()]
        own, real = (
            exact.distance(np.concatenate([np.ravel(part) for part in parts])) for parts in (ours, found[name])
        )
        distances[name] = own, real
    return distances


# -------------------------------------------------------------------------------------------------------- in full

CASES = [(model, n, share) for model in MODELS for share in (1.0, 0.5) for n in (2, 3, 4)]


class Kept:
    """What was measured so far, in a file that is there until all is measured."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "ddp-unfinished.json"
        found = json.loads(self.path.read_text()) if self.path.is_file() else {"known": None, "points": []}
        self.known = Calibration(**found["known"]) if found["known"] else None
        self.points = [DdpPoint(*point) for point in found["points"]]

    def has(self, case: tuple[str, int, float]) -> bool:
        """Whether a case has been measured."""
        return case in {(point.model, point.n_workers, point.slow_share) for point in self.points}

    def write(self) -> None:
        """Keep what there is."""
        known = vars(self.known) if self.known else None
        points = [[*vars(point).values()] for point in self.points]
        self.path.write_text(json.dumps({"known": known, "points": points}))


def verdict(points: Sequence[DdpPoint]) -> str:
    """Say how far off the predictions are."""
    errors = [abs(point.error) for point in points]
    return f"{len(errors)} points: median error {median(errors):.1%}, worst {max(errors):.1%}"


def table(points: Sequence[DdpPoint]) -> pd.DataFrame:
    """One row per point, the error as a share of the measurement."""
    return pd.DataFrame([vars(point) | {"error": point.error} for point in points])


@canvas.in_style
def draw(rows: pd.DataFrame):
    """Measured steps as marks over what was predicted, a line; below, the errors."""
    figure, (above, below) = canvas.new_figure(3.6, 2, sharex=True)
    groups = list(rows.groupby(["model", "slow_share"], sort=False))
    handles = []
    for ((model, share), group), color, marker in zip(
        groups, canvas.colors(len(groups)), canvas.markers(len(groups)), strict=True
    ):
        above.plot(group.predicted_s, group.measured_s, marker, color=color)
        below.plot(group.predicted_s, group.error * 100, marker, color=color)
        links = "equal links" if share == 1 else "worker 0 at half the rate"
        handles.append(canvas.stroke(color, f"{model} layers, {links}", marker=marker, linestyle=""))
    ends = [0.9 * rows.predicted_s.min(), 1.05 * rows.predicted_s.max()]
    above.plot(ends, ends, color=canvas.GREY, lw=0.6)
    above.set_ylabel("measured step (s)")
    below.fill_between(ends, -12, 12, color=canvas.PALE, alpha=0.4, lw=0)
    below.axhline(0, color=canvas.GREY, lw=0.6)
    below.set_ylabel("error (%)")
    below.set_xlabel("predicted step (s)")
    title = "Steps of PyTorch's DDP over gloo, predicted"
    about = "2 to 4 hosts, caps of 1, 5 and 25 MiB, 100 Mbit/s; two calibrate"
    kinds = [canvas.stroke(canvas.GREY, "as predicted"), canvas.patch(canvas.PALE, "promised: worst 12 %")]
    return canvas.titled(figure, title, about, handles, kinds)


def write(points: Sequence[DdpPoint], folder: Path) -> list[Path]:
    """Write ``ddp.csv``, ``ddp.png`` and ``ddp.svg``."""
    paths = [folder / f"ddp.{ending}" for ending in ("csv", "png", "svg")]
    table(points).to_csv(paths[0], index=False, float_format="%.6g", lineterminator="\n")
    figure = draw(table(points))
    for path in paths[1:]:
        canvas.save(figure, {path.suffix[1:]: path})
    return paths


def main() -> None:
    """Compare in full, and say how far off the predictions are."""
    parser = argparse.ArgumentParser(prog="python -m tests.testbed.ddp", description=__doc__)
    parser.add_argument("python", metavar="PYTHON", nargs="?", default=sys.executable)
    parser.add_argument("folder", metavar="FOLDER", nargs="?", type=Path, default=Path("reports/gallery"))
    asked = parser.parse_args()
    python, folder = asked.python, asked.folder
    if reason := why_not():
        sys.exit(f"no testbed here: {reason}")
    kept = Kept(folder)
    if kept.known is None:
        kept.known = calibrate(python)
        kept.write()
    print(f"two workers: a link takes {kept.known.latency_s * 1e3:.3f} ms and {kept.known.rate_Bps / 1e6:.3f} MB/s")
    for case in (case for case in CASES if not kept.has(case)):
        points = compare(python, *case, kept.known)
        kept.points.extend(points)
        kept.write()
        for point in points:
            print(
                f"{point.model} layers, N={point.n_workers}, worker 0 at {point.slow_share:g} of the rate, "
                f"cap {point.cap_mib} MiB: predicted {point.predicted_s:.3f} s, measured {point.measured_s:.3f} s, "
                f"{point.error:+.1%}",
                flush=True,
            )
    print(verdict(kept.points))
    for optimizer, (own, real) in train_both(python).items():
        print(
            f"{optimizer}, parameters after 5 steps, share of what rounding allows: "
            f"ringnet {own.share:.2g}, PyTorch {real.share:.2g}"
        )
    print(*write(kept.points, folder), sep="\n")
    kept.path.unlink()


if __name__ == "__main__":
    main()
