"""Real DistributedDataParallel on the testbed, in its short form; ``python -m tests.testbed.ddp`` runs it in full."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from tests.testbed import ddp
from tests.testbed.namespaces import why_not

REASON = why_not() or ("this Python has no PyTorch" if find_spec("torch") is None else None)


def test_a_prediction_of_ddp_is_the_formula():
    """Three workers, 8 layers of 1 MiB and 50 ms, a ring at 12.5 MB/s: the stream goes on from the first bucket."""
    taken_s = 4 * (0.001 + ddp.MIB / 3 / 12.5e6)
    assert ddp.predict(3, 1.0, 1, (0.001, 12.5e6), 0.05) == pytest.approx(0.05 + 8 * taken_s, rel=1e-5)
    all_s = 4 * (0.001 + 8 * ddp.MIB / 3 / 12.5e6)
    assert ddp.predict(3, 1.0, 25, (0.001, 12.5e6), 0.05) == pytest.approx(0.4 + all_s, rel=1e-5)
    slow_s = 4 * (0.001 + 8 * ddp.MIB / 3 / 6.25e6)
    assert ddp.predict(3, 0.5, 25, (0.001, 12.5e6), 0.05) == pytest.approx(0.4 + slow_s, rel=2e-3)


@pytest.mark.testbed
@pytest.mark.slow
@pytest.mark.skipif(REASON is not None, reason=str(REASON))
def test_steps_of_ddp_take_what_is_predicted():
    points = list(ddp.compare(sys.executable, [(3, 1.0)]))
    assert [point.cap_mib for point in points] == [1, 5, 25]
    assert max(abs(point.error) for point in points) <= 0.12, points
