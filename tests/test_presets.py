"""Links by name: what is known of them, as a person would check it against a data sheet."""

from __future__ import annotations

import pytest

from ringnet.networks import PRESETS


@pytest.mark.parametrize(
    ("name", "bandwidth_Bps"),
    [
        ("nvlink2", 150e9),
        ("nvlink3", 300e9),
        ("nvlink4", 450e9),
        ("nvlink5", 900e9),
        ("pcie3-x16", 15.754e9),
        ("pcie4-x16", 31.508e9),
        ("pcie5-x16", 63.015e9),
        ("infiniband-edr", 12.5e9),
        ("infiniband-hdr", 25e9),
        ("infiniband-ndr", 50e9),
        ("10gbe", 1.25e9),
        ("25gbe", 3.125e9),
        ("100gbe", 12.5e9),
        ("200gbe", 25e9),
        ("400gbe", 50e9),
        ("efa", 12.5e9),
    ],
)
def test_one_direction_has_the_bandwidth_of_its_data_sheet(name, bandwidth_Bps):
    assert PRESETS[name].bandwidth_Bps == pytest.approx(bandwidth_Bps, rel=1e-4)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_link_and_says_what_it_is(name):
    preset = PRESETS[name]
    assert 0.1e-6 <= preset.latency_s <= 50e-6
    assert preset.summary
    assert "\n" not in preset.summary
    assert name == name.lower()


def test_a_generation_is_as_fast_or_faster():
    for family in ("nvlink", "pcie"):
        rates = [preset.bandwidth_Bps for name, preset in PRESETS.items() if name.startswith(family)]
        assert rates == sorted(rates)
