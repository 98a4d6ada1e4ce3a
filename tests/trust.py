"""The table of trust: what ringnet computes against everything that it is checked with.

``python -m tests.trust`` prints it as Markdown, for docs/trust.md. A row whose data is not here says so; logs of
nccl-tests are found through ``RINGNET_LOGS``, and the figures of the real network are those of the last
``python -m tests.testbed`` and ``python -m tests.testbed.ddp``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import ringnet
from tests import company, published
from tests import test_calibration_logs as logs
from tests import test_peers as peers
from tests import test_simgrid as simgrid
from tests import test_switches as switches

ROOT = Path(__file__).parents[1]
NETWORK = "network: {topology: %s, bandwidth: 50 GB/s, latency: 500 ns}"


class Row(NamedTuple):
    """One line of the table: against what, and the relative errors of all points."""

    against: str
    errors: np.ndarray | None
    remark: str = ""

    def __str__(self) -> str:
        if self.errors is None or not len(self.errors):
            return f"| {self.against} | | | | {self.remark} |"
        size = np.abs(self.errors)
        numbers = f"{len(size)} | {_percent(np.median(size))} | {_percent(size.max())}"
        return f"| {self.against} | {numbers} | {self.remark} |"


def _percent(error: float) -> str:
    return f"{float(f'{100 * error:.2g}'):g} %" if error > 1e-6 else f"{error:.0e}" if error else "0"


def closed_form() -> Row:
    """Uniform rings and switches, against 2(N-1)(alpha + c/B)."""
    return Row("closed form of the ring", np.array([row["makespan_s"] / row["closed_form_s"] - 1 for row in _runs()]))


def bound() -> Row:
    """The same runs: how far above the time that no algorithm beats; less than nothing would be a fault."""
    above = np.array([row["makespan_s"] / row["collective_bound_s"] - 1 for row in _runs()])
    below = (above < -1e-12).sum()
    return Row("physical bound", np.minimum(above, 0.0), f"{below} runs below it; the errors are how far below")


def _runs() -> Iterator[dict]:
    sizes = ["4 B", "1 KiB", "1 MiB", "1 GiB"]
    for n, size, topology in product([2, 3, 5, 8, 16, 64], sizes, ["ring", "switch"]):
        text = f"{{scenario_version: 1, workers: {n}, message: {size}, payload: none, {NETWORK % topology}}}"
        yield ringnet.simulate(ringnet.loads(text)).summary


def astra() -> Row:
    """Whole nanoseconds there, cut off at every step and hop."""
    found = [peers.astra_ns(row) for _, row in peers.rows("astra_ring.csv")]
    errors = np.array([simulated / expected - 1 for simulated, expected in found])
    return Row("ASTRA-sim, ring and switch", errors, "it cuts times to whole ns at every step")


def loggopsim() -> Row:
    """A transfer of c bytes is charged c - 1 there."""
    found = [peers.loggopsim_s(row) for _, row in peers.rows("loggopsim_ring.csv")]
    return Row("LogGOPSim", np.array([simulated / expected - 1 for simulated, expected in found]))


def simgrid_cases() -> Iterator[Row]:
    """Rendezvous and eager sends under fair sharing, and plain flows."""
    for sends, column in (("rendezvous", "rendezvous_s"), ("eager", "eager_fair_s")):
        errors = []
        for name in simgrid.RINGS:
            expected = float(simgrid.CASES.loc[name, column])
            if sends == "eager":
                expected = simgrid.UNFAIR_THERE.get(name, expected)
            errors.append(max(simgrid.ends(simgrid.run(name, sends))) / expected - 1)
        yield Row(f"SimGrid, {sends} sends", np.array(errors))
    flows = [name for name in simgrid.FLOWS if not name.endswith("L")]
    pairs = [(simgrid.plain_flows(name), simgrid.CASES.loc[name, "flow_end_times_s"].split(";")) for name in flows]
    errors = [got / float(end) - 1 for ends, expected in pairs for got, end in zip(ends, expected, strict=True)]
    yield Row("SimGrid, plain flows", np.array(errors))


def real_logs() -> Iterator[Row]:
    """nccl-tests and OSU logs: fitted, and held out."""
    if logs.FOLDER is None:
        yield Row("real logs", None, "not here: RINGNET_LOGS names no folder of logs")
        return
    fits = [logs.single(start) for start in logs.SMALL_AND_LARGE]
    yield Row(
        "real logs, the links alone",
        np.concatenate([fit.errors_of_links() for fit in fits]),
        f"{len(fits)} logs of nccl-tests and OSU, each by itself; a prediction gives what was measured as it was",
    )
    held = np.concatenate([each.errors for fit in fits for each in logs.hold_out_sizes(fit)])
    yield Row("real logs, each third size held out", np.expm1(held), "predicted without it")


def simpler_predictions() -> Iterator[Row]:
    """Other N of published series, from one N and from several, beside what simpler predictions are off."""
    for machine in company.machines():
        for given, found in (("one N", company.from_one), ("several N", company.from_several)):
            scores = list(found(machine))
            if not scores:
                continue
            medians = np.median(np.array(scores), axis=0)
            others = ", ".join(
                f"{name} {_percent(error)}"
                for name, error in zip(("same busbw", "log2 N line", "alpha-beta ring"), medians[1:4], strict=True)
            )
            covered = 100 * np.mean([one.covered for one in scores])
            remark = f"{others}; {covered:.0f} % inside ranges of x{medians[5]:.3g}"
            yield Row(f"{machine}, other N from {given}", np.array([one.ringnet for one in scores]), remark)


def switches_that_reduce() -> Row:
    """NVLS in a host: what was measured with 7 and 8 GPUs, from 5 and 6."""
    remark = "H100, H200, B200: N = 7 and 8 from 5 and 6, and 4 GiB on 8 x H100; one bandwidth of the links each"
    return Row("NVLS, public figures", switches.nvls_errors(), remark)


def real_network() -> Iterator[Row]:
    """TCP over shaped links between network namespaces, as last measured."""
    table = ROOT / "reports/gallery/testbed.csv"
    found = pd.read_csv(table)
    large = found["message_bytes"] >= 256 * 1024
    yield Row("real network, 256 KiB and more", found["error"][large].to_numpy(), "calibrated on two workers")
    yield Row("real network, smaller", found["error"][~large].to_numpy())
    stalls = pd.read_csv(table.with_name("testbed-trouble.csv"))
    for trouble, own in stalls.groupby("trouble", sort=False):
        remark = "from the start to the sum of the survivors" if "killed" in trouble else "by how much it is late"
        yield Row(f"real network, {trouble}", own["error"].to_numpy(), remark)
    jitter = pd.read_csv(table.with_name("jitter.csv"))
    for figure, words in (("median", "median of"), ("p95", "95th percentile of")):
        errors = jitter["error"][jitter["figure"] == figure].to_numpy()
        yield Row(
            f"real jitter, {words} many runs",
            errors,
            "relays that delay by chance; a constant delay calibrated",
        )
    steps = pd.read_csv(table.with_name("ddp.csv"))
    remark = "steps of DistributedDataParallel over gloo, calibrated on two workers"
    yield Row("real PyTorch", steps["error"].to_numpy(), remark)


def published_figures() -> Iterator[Row]:
    """What others measured and published: from data sheets alone, then with one constant; see ``tests.published``."""
    found = [*published.figures()]
    for name in dict.fromkeys(one.name for one in found):
        own = [one for one in found if one.name == name]
        sheet = [one.from_sheet / one.measured - 1 for one in own if one.from_sheet is not None]
        fitted = [one.calibrated / one.measured - 1 for one in own if one.calibrated is not None and not one.is_known]
        if sheet:
            yield Row(f"published: {name}", np.array(sheet), "from the data sheet alone")
        if fitted:
            yield Row(f"published: {name}", np.array(fitted), "with one constant, the figures that it is not from")


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(prog="python -m tests.trust", description=__doc__).parse_args()
    print("| against | points | median error | worst error | |\n|---|---|---|---|---|")
    for row in (
        closed_form(),
        bound(),
        astra(),
        loggopsim(),
        *simgrid_cases(),
        *real_logs(),
        *simpler_predictions(),
        switches_that_reduce(),
        *real_network(),
        *published_figures(),
    ):
        print(row, flush=True)


if __name__ == "__main__":
    main()
