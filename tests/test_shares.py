"""Max-min fair rates: the incremental ones against progressive filling from scratch and against linear programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from ringnet.engines.max_min import Flow, Shares

CAPACITIES = st.sampled_from([1.0, 2.0, 3.0, 5.0, 10.5])
CAPS = st.sampled_from([np.inf, np.inf, np.inf, 0.7, 2.2])


def incidence(flows: list[Flow], n_links: int) -> np.ndarray:
    """Which flow is on which link, shape (n_links, n_flows)."""
    on = np.zeros((n_links, len(flows)))
    for number, flow in enumerate(flows):
        on[list(flow.links), number] = 1
    return on


def filled(flows: list[Flow], capacity: list[float]) -> np.ndarray:
    """Progressive filling as the textbook has it: all rates rise together, and stop where a link is full."""
    on, rates, rising = incidence(flows, len(capacity)), np.zeros(len(flows)), np.ones(len(flows), dtype=bool)
    caps = np.array([flow.cap_Bps for flow in flows])
    while rising.any():
        count = on @ rising
        room = np.where(count > 0, (capacity - on @ rates) / np.maximum(count, 1), np.inf)
        rise = min(room.min(), (caps - rates)[rising].min())
        rates[rising] += rise
        full = (room <= rise * (1 + 1e-12)) & (count > 0)
        rising &= ~((on[full].any(axis=0)) | (rates >= caps * (1 - 1e-12)))
    return rates


def by_linear_programs(flows: list[Flow], capacity: list[float]) -> np.ndarray:
    """The largest smallest rate, then the largest second smallest, and so on: one linear program for each."""
    on, n = incidence(flows, len(capacity)), len(flows)
    fixed = np.full(n, np.nan)
    while np.isnan(fixed).any():
        free = np.isnan(fixed)
        # Variables: the rates, and the level under all that are free; maximise the level.
        above = np.hstack((-np.eye(n)[free], np.ones((free.sum(), 1))))
        rows = np.vstack((np.hstack((on, np.zeros((len(on), 1)))), above))
        limits = np.concatenate((capacity, np.zeros(free.sum())))
        rates = [
            (0, min(flow.cap_Bps, 1e3)) if open_ else (done, done)
            for flow, done, open_ in zip(flows, fixed, free, strict=True)
        ]
        best = linprog([0.0] * n + [-1.0], rows, limits, bounds=[*rates, (0, None)])
        level = best.x[-1]
        for number in np.flatnonzero(free):
            # Whoever cannot have more at this level is there for good.
            goal = np.zeros(n + 1)
            goal[number] = -1
            most = linprog(goal, rows, limits, bounds=[*rates, (level, level)])
            if -most.fun <= level * (1 + 1e-7) + 1e-9:
                fixed[number] = level
    return fixed


@st.composite
def stories(
    draw: st.DrawFn,
) -> tuple[list[float], list[tuple[list[tuple[set[int], float]], list[int], dict[int, float]]]]:
    """Capacities, and a list of changes: flows that come, places of flows that go, new capacities."""
    n_links = draw(st.integers(1, 8))
    links = st.sets(st.integers(0, n_links - 1), min_size=1, max_size=4)
    change = st.tuples(
        st.lists(st.tuples(links, CAPS), max_size=4),
        st.lists(st.integers(0, 99), max_size=3),
        st.dictionaries(st.integers(0, n_links - 1), CAPACITIES, max_size=1),
    )
    return draw(st.lists(CAPACITIES, min_size=n_links, max_size=n_links)), draw(st.lists(change, max_size=12))


@given(stories())
def test_rates_after_any_changes_are_those_filled_from_scratch(story: tuple) -> None:
    capacity, changes = story
    shares, flows = Shares([*capacity]), []
    for come, go, renewed in changes:
        coming = [Flow([*links], cap) for links, cap in come]
        going = list(dict.fromkeys(flows[place % len(flows)] for place in go)) if flows else []
        for link, value in renewed.items():
            shares.capacity_Bps[link] = value
        before = {flow: flow.rate_Bps for flow in flows}
        flows = [flow for flow in flows if flow not in going] + coming
        changed = shares.settle(coming, going, [*renewed])
        assert [flow.rate_Bps for flow in flows] == pytest.approx(filled(flows, shares.capacity_Bps), rel=1e-9, abs=0)
        assert {flow for flow in flows if flow.rate_Bps != before.get(flow, -1.0)} == set(changed)


@given(stories())
def test_rates_are_max_min_fair_by_linear_programming(story: tuple) -> None:
    capacity, changes = story
    flows = [Flow([*links], cap) for come, _, _ in changes for links, cap in come][:6]
    Shares([*capacity]).settle(flows, [], [])
    assert [flow.rate_Bps for flow in flows] == pytest.approx(by_linear_programs(flows, capacity), rel=1e-5, abs=1e-7)


def test_a_change_reaches_only_those_that_it_concerns() -> None:
    """Two pairs of flows on links of their own: what happens to one pair is not computed for the other."""
    shares = Shares([10.0, 10.0])
    here, there = [Flow([0]), Flow([0])], [Flow([1]), Flow([1])]
    assert shares.settle([*here, *there], [], []) == [*here, *there]
    assert shares.settle([], [here[0]], []) == [here[1]]
    assert [flow.rate_Bps for flow in (here[1], *there)] == [10.0, 5.0, 5.0]
