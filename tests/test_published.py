"""Figures that others published, which a machine by name must reproduce: from its data sheet, or with one constant."""

from __future__ import annotations

import pandas as pd
import pytest

from tests import published
from tests.published import MODELS

FIGURES = pd.read_csv(published.TABLE, comment="#").set_index(["name", "case"])["figure"]


def off(name, case, share=1.0):
    """How far what is computed lies from the figure."""
    return MODELS[name](case, share) / FIGURES[name, case] - 1


def share_of(name, *cases):
    return sum(FIGURES[name, case] / MODELS[name](case, 1.0) for case in cases) / len(cases)


def test_every_figure_has_a_model_and_every_model_a_figure():
    assert {name for name, _ in FIGURES.index} == {*MODELS}


@pytest.mark.parametrize("name", ["H200 NVLS", "B200 NVLS"])
def test_five_and_six_workers_say_what_seven_and_eight_take(name):
    share = share_of(name, "N=5", "N=6")
    assert [abs(off(name, case, share)) < 0.04 for case in ("N=7", "N=8")] == [True, True]


def test_the_bus_bandwidth_of_a_ring_is_the_same_for_every_number_of_workers():
    share = share_of("H200 ring", "N=4")
    assert max(abs(off("H200 ring", f"N={n}", share)) for n in range(4, 9)) < 0.01


def test_reduce_scatter_says_what_all_gather_and_the_ring_take_and_not_quite_what_nvls_does():
    share = MODELS["H100 4 GiB"]("reduce-scatter", 1.0) / FIGURES["H100 4 GiB", "reduce-scatter"]
    assert abs(off("H100 4 GiB", "all-gather", share)) < 0.05
    assert abs(off("H100 4 GiB", "ring", share)) < 0.05
    # Missed: a switch that reduces is not as fast as its links.
    assert off("H100 4 GiB", "nvls", share) == pytest.approx(-0.057, abs=0.002)


@pytest.mark.parametrize("case", ["ring", "tree"])
def test_the_data_sheet_of_a_gb200_says_what_three_hosts_take(case):
    assert abs(off("GB200, three hosts of 4", case)) < 0.02


def test_cards_of_their_own_halve_the_time_of_two_hosts_without_shaping_by_hand():
    share = MODELS["two hosts"]("1 GPU each", 1.0) / FIGURES["two hosts", "1 GPU each"]
    assert max(abs(off("two hosts", f"{n} GPUs each", share)) for n in (2, 4)) < 0.1


def test_one_card_costs_about_nine_times():
    assert abs(off("cross-host penalty", "one card")) < 0.1
