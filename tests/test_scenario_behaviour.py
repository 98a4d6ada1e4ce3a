"""Regimes and profiles: which links they are for, and what is said of those that they are not for."""

from __future__ import annotations

import pytest

from ringnet.errors import InputError
from ringnet.runs.parts import build
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads
from ringnet.study.points import run_points

REGIMES = "regimes: [{up_to: 256 KiB, bandwidth: 5 GB/s, latency: 2 us}]"
PROFILE = "profile: [{at: 20 us, bandwidth: 10 GB/s}]"


def scenario(network, *overrides):
    keys = f"topology: switch, bandwidth: 50 GB/s, latency: 1 us, {network}"
    text = f"{{scenario_version: 1, workers: 4, message: 1 MiB, payload: none, network: {{{keys}}}}}"
    return loads(text, overrides)


@pytest.mark.parametrize("behaviour", [REGIMES, PROFILE])
def test_nothing_is_said_where_all_links_are_alike(behaviour):
    assert simulate(scenario(behaviour)).notes == ()


@pytest.mark.parametrize(("key", "behaviour"), [("regimes", REGIMES), ("profile", PROFILE)])
def test_links_that_differ_are_named(key, behaviour):
    """A link of another bandwidth or latency is none of which the rule speaks: that is said, and by name."""
    result = simulate(scenario(f"{behaviour}, links_of: {{2: {{bandwidth: 5 GB/s}}}}"))
    assert result.notes == (
        f"network.{key}: 2 of 8 links differ in bandwidth or latency and have none: 2->switch, switch->2",
    )


def test_links_with_regimes_of_their_own_have_some():
    own = f"links: {{0->switch: {{latency: 3 us, {REGIMES}}}, 1->switch: {{latency: 3 us}}}}"
    assert simulate(scenario(f"{REGIMES}, {own}")).notes == (
        "network.regimes: 1 of 8 links differ in bandwidth or latency and have none: 1->switch",
    )


@pytest.mark.parametrize(("key", "behaviour"), [("regimes", REGIMES), ("profile", PROFILE)])
def test_what_is_for_no_link_is_a_mistake(key, behaviour):
    rule = "links: {'*->*': {bandwidth: 5 GB/s}}"
    with pytest.raises(InputError) as caught:
        scenario(f"{behaviour}, {rule}")
    (fault,) = caught.value.faults
    assert fault.path == f"network.{key}"
    assert fault.message == "the key is never read: no link has the network's bandwidth and latency"


def test_what_an_override_leaves_for_no_link_is_left_out_with_a_note():
    one = scenario(REGIMES, "network.links.*->*.bandwidth=5 GB/s")
    assert not build(one).network.behaviours
    assert one.notes == (
        "network.regimes: left out, the key is never read: no link has the network's bandwidth and latency",
    )


def test_a_sweep_says_it_too():
    keys = f"topology: switch, bandwidth: 50 GB/s, latency: 1 us, {REGIMES}, links_of: {{2: {{latency: 3 us}}}}"
    sweep = "sweep: {over: {message: [1 KiB, 1 MiB]}}"
    text = f"{{scenario_version: 1, workers: 4, message: 1 KiB, payload: none, network: {{{keys}}}, {sweep}}}"
    outcomes = run_points(loads(text).points(), processes=1)
    assert [one.notes for one in outcomes] == [
        ("network.regimes: 2 of 8 links differ in bandwidth or latency and have none: 2->switch, switch->2",)
    ] * 2
