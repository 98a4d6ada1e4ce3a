"""What links do: the behaviours that there are, and one that nobody has heard of, over every engine and formula."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from ringnet.analysis import metrics
from ringnet.analysis.blame import slowest_links
from ringnet.analysis.bounds import collective_bound, schedule_bound_s
from ringnet.analysis.closed_form import closed_form_s
from ringnet.analysis.upgrades import LinksInUse, Upgrade
from ringnet.collectives import ALGORITHMS
from ringnet.engines import ENGINES, Workers, choose_engine
from ringnet.engines.arrays import run_sizes
from ringnet.engines.events import Job, Traffic, run_jobs
from ringnet.errors import DeadlockError, InputError, NetworkError
from ringnet.networks import (
    TOPOLOGIES,
    Behaviour,
    BySize,
    Constant,
    LinkChange,
    OverTime,
    Packets,
    Piece,
    Window,
    beyond,
    change_links,
    settled,
)
from ringnet.networks.behaviour import ANY_SIZE, NEVER, Offer
from ringnet.scenario.keys.links import BEHAVIOUR_KEYS, BehaviourKeys, LinkExceptionKeys
from ringnet.scenario.keys.network import NetworkKeys
from ringnet.scenario.network import BEHAVIOURS

B, L = 1e9, 1e-6


@dataclass(frozen=True)
class Tired(Behaviour):
    """Needs a rest before each service, the longer the later it is; nobody but this test knows it."""

    share: float
    meaning: ClassVar[str] = "links get tired"

    def offer(self, size_bytes: float, at_s: float) -> Offer:
        return Offer(B, L)

    def service_s(self, start_s: float, n_bytes: float, size_bytes: float) -> float:
        return n_bytes / B + self.share * start_s

    def peak(self) -> float:
        return B


class Slower(OverTime):
    """Derives from what everybody knows, and is no such thing."""

    meaning: ClassVar[str] = "links are slower than that"


UNKNOWN = [Tired(0.5), Slower(B, L, ((1e-6, B / 2),))]


def ring(n_workers, behaviours, **changes):
    network = TOPOLOGIES["ring"].build(n_workers, B, L)
    return replace(network, behaviours=behaviours, **changes)


def setup(n_workers, behaviours, n_bytes=1000, **changes):
    """A ring, and what an engine takes beside its network."""
    network = ring(n_workers, behaviours, **changes)
    schedule = ALGORITHMS["ring"].build(n_workers, "all-reduce")
    return schedule, network, Workers.alike(n_workers), np.full(n_workers, n_bytes)


def end_s(*case):
    return float(ENGINES["events"].run(*case).workers["end_s"].max())


@dataclass(frozen=True)
class CaseAgain:
    """Simulates a case again with other links."""

    case: tuple
    affordable: int = 10

    def __call__(self, upgrade):
        schedule, network, *others = self.case
        return end_s(schedule, upgrade.of_network(network), *others)


def slowest(case):
    """Links that gain most where they are mended, by simulating again."""
    links = LinksInUse(case[1], ENGINES["events"].run(*case).links)
    return slowest_links(links, end_s(*case), CaseAgain(case)).links


# ------------------------------------------------------------------------------------------ one that nobody knows


def test_links_ask_a_behaviour_that_nobody_knows():
    schedule, network, workers, sizes = setup(2, {0: Tired(0.5)})
    trace = ENGINES["events"].run(schedule, network, workers, sizes)
    # Two steps: the second service starts at 2 us and rests for 1 us.
    assert trace.workers["end_s"].tolist() == pytest.approx([4e-6, 5e-6])
    assert trace.links["busy_s"].tolist() == pytest.approx([3e-6, 2e-6])
    paths = sum(trace.workers[f"path_{part}_s"] for part in metrics.PATH_PARTS)
    assert paths.tolist() == pytest.approx([4e-6, 5e-6])


@pytest.mark.parametrize("behaviour", UNKNOWN)
def test_what_is_fair_among_links_that_nobody_knows_is_refused_by_name(behaviour):
    with pytest.raises(InputError, match=f"cannot be shared fairly here: {behaviour.meaning}"):
        end_s(*setup(3, {1: behaviour}, sharing="fair"))


@pytest.mark.parametrize("behaviour", UNKNOWN)
@pytest.mark.parametrize("sharing", ["fifo", "auto"])
def test_arrays_refuse_it_by_name(behaviour, sharing):
    schedule, network, workers, sizes = setup(80, {1: behaviour}, sharing=sharing)
    with pytest.raises(InputError, match=behaviour.meaning):
        ENGINES["recurrence"].run(schedule, network, workers, sizes)
    with pytest.raises(InputError, match=behaviour.meaning):
        run_sizes(schedule, network, workers, sizes[None])
    assert choose_engine(schedule, network, workers, sizes)[:2] == (
        "events",
        f"the recurrence is not exact here: {behaviour.meaning}",
    )


@pytest.mark.parametrize("behaviour", UNKNOWN)
@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@pytest.mark.parametrize("algorithm", ["ring", "pairwise", "direct"])
def test_no_closed_form_knows_it(behaviour, sharing, algorithm):
    network = replace(TOPOLOGIES["fully-connected"].build(4, B, L), behaviours={1: behaviour}, sharing=sharing)
    collective = "all-to-all" if algorithm == "pairwise" else "all-reduce"
    schedule = ALGORITHMS[algorithm].build(4, collective)
    sizes = np.full(schedule.n_chunks, 1000)
    assert closed_form_s(schedule, network, Workers.alike(4), sizes) is None
    assert closed_form_s(schedule, replace(network, behaviours={}), Workers.alike(4), sizes) is not None or (
        algorithm != "ring" and sharing == "fair"
    )


def test_bounds_hold_for_it_by_its_peak():
    case = setup(3, {1: Tired(0.5)})
    trace = ENGINES["events"].run(*case)
    bound_s = schedule_bound_s(trace.links["bytes"], case[1])
    assert 0 < collective_bound(case[0], case[1], case[3]).seconds <= bound_s <= end_s(*case)


def test_the_slowest_link_is_seen_from_what_it_took():
    case = setup(3, {1: Tired(0.5)})
    assert slowest(case) == (1,)
    links = LinksInUse(case[1], ENGINES["events"].run(*case).links)
    assert links.upgrade([1], "alike") == Upgrade(((1, Constant(B, L)),))


def test_nobody_knows_what_it_is_at_twice_the_speed():
    case = setup(3, {1: Tired(0.5)})
    links = LinksInUse(case[1], ENGINES["events"].run(*case).links)
    assert links.upgrade([0, 1], "twice") is None
    assert links.unknown([0, 1]) == Tired.meaning
    assert links.upgrade([0], "twice") == Upgrade(((0, Constant(2 * B, L)),))


@pytest.mark.parametrize("behaviour", UNKNOWN)
def test_sizes_settle_nothing_of_it(behaviour):
    network = ring(3, {0: BySize((Piece(100, B / 2, L), Piece(ANY_SIZE, B, L))), 1: behaviour})
    assert settled(network, 1, 100).behaviours == {1: behaviour}
    assert beyond(settled(network, 1, 100)) == behaviour.meaning


@pytest.mark.parametrize("behaviour", UNKNOWN)
def test_credit_does_not_come_back_over_it(behaviour):
    schedule = ALGORITHMS["ring"].build(3, "all-reduce")
    network = replace(
        TOPOLOGIES["switch"].build(3, B, L),
        behaviours={1: behaviour},
        window=Window(bytes=800),
        sharing="fifo",
    )
    with pytest.raises(InputError, match=f"credit cannot come back here: {behaviour.meaning}"):
        end_s(schedule, network, Workers.alike(3), np.full(3, 1000))


def test_what_derives_from_a_known_one_is_not_known():
    network = ring(3, {1: UNKNOWN[1]})
    assert beyond(network, [OverTime, BySize]) == "links are slower than that"
    assert beyond(network, [Slower]) is None


def test_a_link_is_changed_before_it_gets_a_behaviour():
    with pytest.raises(NetworkError, match="link 1->2 is to be changed before"):
        change_links(ring(3, {1: Tired(0.5)}), {"*->*": LinkChange(latency_s=1.0)})


# ------------------------------------------------------------------------------------------ those that there are


def test_a_link_of_which_nothing_more_is_said_is_constant():
    link = ring(3, {}).behaviour(2)
    assert link == Constant(B, L)
    assert (link.service_s(5.0, 1e9, 1e9), link.peak(), link.next_change_s(0.0)) == (1.0, B, NEVER)


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_a_bandwidth_may_rise_above_what_it_was(sharing):
    rises = OverTime(B, 0.0, ((1e-6, 4 * B),))
    network = ring(2, {0: rises, 1: rises}, sharing=sharing, latency_s=np.zeros(2))
    schedule = ALGORITHMS["ring"].build(2, "all-gather")
    # 1000 bytes in the first microsecond, the other 4000 in the second.
    case = (schedule, network, Workers.alike(2), np.full(2, 5000))
    trace = ENGINES["events"].run(*case)
    assert trace.workers["end_s"].tolist() == pytest.approx([2e-6, 2e-6])
    assert trace.links["busy_s"].tolist() == pytest.approx([2e-6, 2e-6])
    assert schedule_bound_s(trace.links["bytes"], network) == pytest.approx(2e-6)


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_a_link_may_rest_for_a_while(sharing):
    rests = OverTime(B, 0.0, ((1e-6, 0.0), (6e-6, B)))
    network = ring(2, {0: rests}, sharing=sharing, latency_s=np.zeros(2))
    schedule = ALGORITHMS["ring"].build(2, "all-gather")
    case = (schedule, network, Workers.alike(2), np.full(2, 3000))
    trace = ENGINES["events"].run(*case)
    assert sorted(trace.workers["end_s"].tolist()) == pytest.approx([3e-6, 8e-6])
    assert schedule_bound_s(trace.links["bytes"], network) == pytest.approx(8e-6)
    if sharing == "fifo":
        assert slowest(case) == (0,)


DIES = OverTime(B, L, ((1.5e-6, 0.0),))


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@pytest.mark.parametrize("n_bytes", [0, 1000])
@pytest.mark.parametrize("topology", ["ring", "switch"])
def test_over_a_link_that_dies_workers_wait_for_ever(sharing, n_bytes, topology):
    network = replace(TOPOLOGIES[topology].build(3, B, L), behaviours={1: DIES}, sharing=sharing)
    schedule = ALGORITHMS["ring"].build(3, "all-reduce")
    with pytest.raises(DeadlockError, match="worker 2 waits for worker 1"):
        end_s(schedule, network, Workers.alike(3), np.full(3, n_bytes))


def test_other_traffic_may_be_stuck_on_a_dead_link():
    network = replace(TOPOLOGIES["fully-connected"].build(3, B, L), behaviours={1: OverTime(B, L, ((0.0, 0.0),))})
    assert network.names[1] == "0->2"
    schedule = ALGORITHMS["ring"].build(3, "all-reduce")
    job = Job(schedule, network, Workers.alike(3), np.full(3, 1000))
    (trace,) = run_jobs([job], network, [Traffic("stuck", (1,), 1000)])
    assert trace.workers["end_s"].max() == pytest.approx(8e-6)
    assert trace.until_s == pytest.approx(7e-6, rel=0.2)
    assert np.isfinite([*trace.links["busy_s"], *trace.links["occupied_s"]]).all()


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@pytest.mark.parametrize("packets", [None, Packets(100)])
@pytest.mark.parametrize("window", [None, Window(bytes=800)])
def test_other_traffic_goes_on_no_longer_than_somebody_can_move(sharing, packets, window):
    network = replace(
        TOPOLOGIES["switch"].build(3, B, L),
        behaviours={1: DIES},
        sharing=sharing,
        packets=packets,
        window=window,
    )
    schedule = ALGORITHMS["ring"].build(3, "all-reduce")
    job = Job(schedule, network, Workers.alike(3), np.full(3, 1000))
    with pytest.raises(DeadlockError, match="worker 2 waits for worker 1"):
        run_jobs([job], network, [Traffic("others", (0, 5), 10, every_s=1e-6)])


def test_every_behaviour_key_of_a_scenario_makes_a_behaviour():
    """One that was forgotten in either place would be read and have no effect."""
    assert tuple(BEHAVIOURS) == BEHAVIOUR_KEYS
    assert issubclass(NetworkKeys, BehaviourKeys)
    own = set(LinkExceptionKeys.model_fields) - set(BEHAVIOUR_KEYS)
    assert own == {"link", "bandwidth_Bps", "latency_s"}
