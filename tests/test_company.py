"""Predictions of N that were not measured, on published series: as promised, and better than simpler predictions."""

from __future__ import annotations

import numpy as np
import pytest

from ringnet.analysis.calibration import Setting, predict
from tests import company

V100 = tuple(Setting(4 * nodes, nodes) for nodes in (1, 2, 4, 8, 16, 32))


def medians(scores):
    return dict(zip(company.Score._fields, np.median(np.array(list(scores)), axis=0), strict=True))


@pytest.mark.parametrize(("machine", "within"), [("V100", 0.1), ("A100", 0.14), ("P100", 0.09), ("DGX-A100", 0.11)])
def test_one_n_foretells_another_far_better_than_its_bus_bandwidth(machine, within):
    found = medians(company.from_one(machine))
    assert found["ringnet"] <= within
    assert found["ringnet"] <= min(found["same_busbw"], found["line"], found["alpha_beta"]) / 2


@pytest.mark.parametrize(("count", "wanted", "within"), [(2, V100[3], 0.12), (4, V100[4], 0.03), (4, V100[5], 0.05)])
def test_several_n_foretell_a_larger_one(count, wanted, within):
    assert company.score("V100", V100[:count], wanted).ringnet <= within


def test_ranges_hold_eight_to_nineteen_in_twenty_and_are_no_wider_than_promised():
    scores = {name: [*company.from_several(name)] for name in ("V100", "A100", "host memory")}
    covered = {name: np.mean([each.covered for each in found]) for name, found in scores.items()}
    assert min(covered.values()) >= 0.8
    assert np.mean([*covered.values()]) <= 0.95
    for times, widest in ((2, 1.6), (4, 2.5)):
        for found in scores.values():
            assert np.median([each.width for each in found if each.times_largest == times]) <= widest
    # The last are those from three N and more.
    of_three = [
        each for name, n_first in (("V100", 4), ("A100", 3), ("host memory", 4)) for each in scores[name][n_first:]
    ]
    assert all(each.ringnet <= 1.2 * each.line for each in of_three)


def test_what_only_a_prior_tells_is_as_unsure_as_that_and_no_more():
    """No log of M40 up to 8 crosses nodes: what links between them take is a guess, and said to be one."""
    two, four, eight, sixteen = company.machines()["M40"].samples.settings[:4]
    within, across = (company.score("M40", (two, four), wanted) for wanted in (eight, sixteen))
    assert within.width <= 1.6
    assert 4 < across.width < 10
    assert across.covered == 1


def test_a_hop_that_is_a_guess_may_take_far_longer_and_not_as_much_less():
    """It is added to what was measured: of one host of eight H100 the range of two reaches further up than down."""
    one, two = company.machines()["H100"].samples.settings
    found = predict(company.profile_of("H100", (one,)), two, np.array([8.0, 1024.0]))
    assert (np.log(found.high_s / found.time_s) > 1.3 * np.log(found.time_s / found.low_s)).all()
    assert np.mean([each.covered for each in company.from_one("H100")]) >= 0.75


@pytest.mark.parametrize("machine", ["M40", "P100"])
def test_seven_times_do_not_tell_a_library_by_a_hundredth(machine):
    """Neither machine's series names one: what fits by 1 % better than the truth may, foretells another N far worse."""
    scores = [*company.from_one(machine)]
    assert max(each.ringnet for each in scores) <= 0.4
    assert min(each.covered for each in scores) >= 0.8


def test_ranges_from_one_log_of_one_small_size_hold_as_much():
    """What launch and hops take together says little of another N: the range must say so."""
    assert np.mean([each.covered for each in company.from_one("DGX-A100")]) >= 0.8


def test_what_others_predict_is_as_they_are_defined():
    machine = company.machines()["DGX-A100"]
    assert machine.samples.time_s[:3] == pytest.approx([10e-6, 13.76e-6, 16.88e-6])
    two, three, four = machine.samples.settings[:3]
    found = company.score("DGX-A100", (two, three), four)
    # 10 us and 13.76 us: the bus bandwidth of 3 workers gives 13.76 x (3/4) / (2/3).
    assert found.same_busbw == pytest.approx(1 - 13.76 * (3 / 4) / (2 / 3) / 16.88, rel=1e-3)
    slope = (13.76 - 10) / (np.log2(3) - 1)
    assert found.line == pytest.approx(abs((10 + slope) / 16.88 - 1), rel=1e-3)
