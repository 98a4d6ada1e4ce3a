"""Real DistributedDataParallel on the testbed, in its short form; ``python -m tests.testbed.ddp`` runs it in full.

``RINGNET_TORCH`` may name another Python that has PyTorch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.testbed import ddp
from tests.testbed.namespaces import why_not

PYTHON = os.environ.get("RINGNET_TORCH", sys.executable)


def why_no_torch():
    if not shutil.which(PYTHON):
        return f"RINGNET_TORCH names no program: {PYTHON}"
    asks = "import numpy, torch.distributed as d; assert d.is_gloo_available()"
    if subprocess.run([PYTHON, "-c", asks], capture_output=True, check=False).returncode:
        return f"{PYTHON} has no PyTorch with gloo"
    return None


REASON = why_not() or why_no_torch()
real = [
    pytest.mark.testbed,
    pytest.mark.slow,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
]


def marked(test):
    for mark in real:
        test = mark(test)
    return test


def test_a_prediction_of_ddp_is_the_formula():
    """Three workers, 8 layers of 1 MiB and 50 ms, a ring at 12.5 MB/s: the stream goes on from the first bucket."""
    known = ddp.Calibration(0.001, 12.5e6, {"even": 0.4})
    taken_s = 4 * (0.001 + ddp.MIB / 3 / 12.5e6)
    assert ddp.predict("even", 3, 1.0, 1, known) == pytest.approx(0.05 + 8 * taken_s, rel=1e-5)
    all_s = 4 * (0.001 + 8 * ddp.MIB / 3 / 12.5e6)
    assert ddp.predict("even", 3, 1.0, 25, known) == pytest.approx(0.4 + all_s, rel=1e-5)
    slow_s = 4 * (0.001 + 8 * ddp.MIB / 3 / 6.25e6)
    assert ddp.predict("even", 3, 0.5, 25, known) == pytest.approx(0.4 + slow_s, rel=2e-3)


def test_what_was_measured_last_is_as_close_as_was_promised():
    """The table of the last full run, from which the table of trust is made."""
    table = Path(__file__).parents[1] / "reports" / "gallery" / "ddp.csv"
    points = pd.read_csv(table)
    errors = (points["predicted_s"] / points["measured_s"] - 1).abs()
    assert set(zip(points["model"], points["slow_share"], points["n_workers"], strict=True)) == {
        (model, share, n) for model, n, share in ddp.CASES
    }
    assert len(points) >= 18
    assert errors.median() <= 0.05
    assert errors.max() <= 0.12


def test_a_full_run_that_was_stopped_goes_on(tmp_path):
    kept = ddp.Kept(tmp_path)
    kept.known = ddp.Calibration(0.001, 12.5e6, {"even": 0.4})
    kept.points.append(ddp.DdpPoint("even", 2, 1.0, 1, 1.0, 1.1))
    kept.write()
    again = ddp.Kept(tmp_path)
    assert (again.known, again.points) == (kept.known, kept.points)
    assert [case for case in ddp.CASES if not again.has(case)] == ddp.CASES[1:]


@marked
def test_steps_of_ddp_take_what_is_predicted():
    known = ddp.calibrate(PYTHON, ["even"])
    points = ddp.compare(PYTHON, "even", 3, 1.0, known)
    assert [point.cap_mib for point in points] == [1, 5, 25]
    assert max(abs(point.error) for point in points) <= 0.12, points


@marked
def test_parameters_of_ddp_are_within_rounding_of_one_process_and_so_are_ours():
    for optimizer, (own, real) in ddp.train_both(PYTHON).items():
        assert own.share <= 1, optimizer
        assert real.share <= 1, optimizer
