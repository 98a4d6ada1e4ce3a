"""What other choices would be worth to a run: each is simulated before it is told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ringnet.analysis.metrics import crossing_bytes, makespan_s
from ringnet.analysis.routes import collisions, pair_traffic, spread_routes
from ringnet.array_types import IntArray
from ringnet.collectives import ALGORITHMS
from ringnet.errors import RingnetError, some_and_more
from ringnet.networks import Network
from ringnet.networks.shape import CARDS, HOSTS, NetworkShape
from ringnet.runs.engine import TRANSFERS_PER_S, engine_of
from ringnet.runs.notes import ring_equivalents
from ringnet.runs.parts import RunParts, Site, build
from ringnet.runs.shapes import open_traits, read_off_shape
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.drawn import what_is_drawn
from ringnet.scenario.keys.algorithm import AlgorithmKeys, label_of, parameters_of
from ringnet.units import format_seconds

if TYPE_CHECKING:
    from ringnet.analysis.result import RunResult
    from ringnet.analysis.steps import StepResult

#: Transfers of a run that is simulated once more for advice.
MOST_TRANSFERS = 20_000
#: What other routes, or another algorithm, must gain, as a share of the time, to be worth a word.
WORTH = 0.01
#: Seconds that another algorithm may take to be simulated, or the share of what the run took.
FREE_S, SHARE = 0.3, 0.1


def route_advice(result: RunResult, parts: RunParts) -> str | None:
    """Say what routes cost that ecmp drew over one link while another of equal cost carried nothing.

    The run is simulated once more, with the routes of its own workers spread. None where that gains little, where none
    collide, or where the run is too large to be simulated again.
    """
    network = parts.network
    if network.find_equal_routes is None or parts.schedule.n_transfers > MOST_TRANSFERS:
        return None
    traffic = pair_traffic(parts.schedule, parts.chunk_bytes)
    links = result.tables["links"]
    found = collisions(network, traffic, links["bytes"])
    if not found:
        return None
    before_s = makespan_s(result.made_from[0].trace)
    from ringnet.runs.again import makespan_of  # noqa: PLC0415 -- a check counts advice, and simulates none

    spread = _with_routes(parts, spread_routes(network, traffic))
    after_s = makespan_of(spread)
    if before_s - after_s < WORTH * before_s:
        return None
    worst = max(found.values(), key=lambda one: float(links["busy_s"][one.link]))
    named = some_and_more([f"{src}->{dst}" for src, dst in worst.pairs])
    return (
        f"ecmp drew {network.names[worst.link]} for {named}, while {network.names[worst.idle]}, of equal cost, "
        f"carries nothing: with routes spread over all of them the run takes {format_seconds(after_s)} in place of "
        f"{format_seconds(before_s)}; routes.csv says which collide, another route_seed draws again"
    )


def _with_routes(parts: RunParts, moved: dict[tuple[int, int], tuple[int, ...]]) -> RunParts:
    """Return the parts of the run with some routes of its own workers replaced, and without payload."""
    site = parts.make_site()

    def find_route(src: int, dst: int) -> tuple[int, ...]:
        return moved.get((src, dst)) or parts.network.find_route(src, dst)

    own: Network = replace(parts.network, find_route=find_route)
    networks = tuple(own if number == parts.number else one for number, one in enumerate(site.networks))
    changed = Site(networks, site.flows, site.too_slow_inside)
    return replace(parts, make_site=lambda: changed, source=None, keep_transfers=0, keep_values=False)


# Cards and links that are idle.


class Use(NamedTuple):
    """How many of some things a run uses: ``Use(1, 8, "cards of a host each way")``."""

    used: int
    there: int
    what: str

    def __str__(self) -> str:
        return f"uses {self.used} of {self.there} {self.what}"


def use_of(network: Network, shape: NetworkShape, link_bytes: IntArray) -> Use | None:
    """Return what a run uses of the cards of hosts, or of the links of a grid; None where there are neither.

    Of cards those of the host that sends over most of them: what comes in takes the other direction of a cable.
    """
    busy = np.flatnonzero(link_bytes).tolist()
    if shape.sides is not None:
        return Use(len(busy), network.n_links, "links")
    if shape.workers_per_host is None or shape.cards_per_host is None or shape.workers_per_host == shape.n_workers:
        return None
    groups = {} if network.find_groups is None else network.find_groups()
    hosts, cards = groups[HOSTS], groups[CARDS]
    sending = defaultdict(set)
    for start, end in map(network.ends, busy):
        if start in cards and hosts.get(start) != hosts.get(end):
            sending[hosts[start]].add(cards[start])
    most = max(map(len, sending.values()), default=0)
    return Use(most, shape.cards_per_host, "cards of a host each way")


def idle_advice(scenario: Scenario, parts: RunParts, result: RunResult) -> str | None:
    """Say which algorithm would use the cards or links that a run leaves idle, and in which time.

    It is simulated first, and named only if it is faster; where that would take too long, it is said what is idle, and
    what uses it. None where nothing is idle, or where nothing is known to use it.
    """
    candidates = [*_candidates(scenario, parts)]
    use = use_of(parts.network, parts.shape, result.tables["links"]["bytes"]) if candidates else None
    if use is None or use.used >= use.there:
        return None
    from ringnet.runs.again import makespan_of  # noqa: PLC0415 -- as above

    affordable = _affordable(scenario, [parts], _alone, candidates)
    times = ((label, partial(makespan_of, others[0]) if others else None) for label, _, others in affordable)
    return _faster(use, "", result.summary["makespan_s"], times)


def idle_step_advice(scenario: Scenario, result: StepResult) -> str | None:
    """Say the same of a training step, by its largest collective.

    All of the step is simulated again: to what computation hides, another algorithm adds nothing.
    """
    from ringnet.runs.step_parts import build_step  # noqa: PLC0415 -- of steps only
    from ringnet.runs.step_time import simulate_step  # noqa: PLC0415

    own = build_step(scenario).groups[0]
    largest = max(own.program.collectives, key=lambda one: one.n_elements, default=None)
    if largest is None:
        return None
    parts = own.collective(largest)
    candidates = [*_candidates(scenario, parts)]
    link_bytes = crossing_bytes(parts.schedule, parts.network, parts.chunk_bytes)
    use = use_of(parts.network, parts.shape, link_bytes) if candidates else None
    if use is None or use.used >= use.there:
        return None

    def simulated(one: Scenario) -> list[RunParts]:
        step = build_step(one)
        return [*step.simulated()] * (step.n_steps if step.together else 1)

    def step_s(other: Scenario) -> float:
        return float(simulate_step(other).summary["step_s"])

    affordable = _affordable(scenario, simulated(scenario), simulated, candidates)
    times = ((label, partial(step_s, other) if others else None) for label, other, others in affordable)
    return _faster(use, "a step with ", result.summary["step_s"], times)


def _faster(use: Use, what: str, here_s: float, times: Iterable[tuple[str, Callable[[], float] | None]]) -> str | None:
    """Say what is idle, and the fastest of several algorithms that leave less idle; the first with no time for all."""
    found: dict[str, float] = {}
    for label, time_s in times:
        if time_s is None:
            return f"this {use}; {label} is made for all of them"
        with suppress(RingnetError):  # it cannot run here: nothing to name
            found[label] = time_s()
    label = min(found, key=lambda name: found[name], default="")
    if not label or found[label] > here_s * (1 - WORTH):
        return None
    return f"this {use}: {what}{label} takes {format_seconds(found[label])}, not {format_seconds(here_s)}"


def cost_of_idle_advice(scenario: Scenario, parts: RunParts) -> tuple[float, bool]:
    """Return the seconds that advice on what a run leaves idle may take, and whether it takes machine code."""
    if parts.n_pair_links or what_is_drawn(scenario):  # of so many links nothing is made before their memory is asked
        return 0.0, False
    affordable = _affordable(scenario, [parts], _alone, [*_candidates(scenario, parts)])
    tried = [one for _, _, others in affordable for one in others]
    return sum(map(_cost_s, tried)), any(engine_of(others) == "compiled" for others in tried)


def _alone(scenario: Scenario) -> list[RunParts]:
    return [build(scenario)]


def _affordable(
    scenario: Scenario,
    here: Sequence[RunParts],
    parts_of: Callable[[Scenario], list[RunParts]],
    candidates: Sequence[AlgorithmKeys],
) -> Iterator[tuple[str, Scenario, list[RunParts]]]:
    """Yield other algorithms by their labels, each with what is simulated; at last one with nothing: it takes too long.

    ``parts_of`` returns the parts of all that is simulated of a scenario, ``here`` are those of this one.
    """
    allowed_s = max(FREE_S, SHARE * sum(map(_cost_s, here)))
    for keys in candidates:
        other = scenario.model_copy(update={"algorithm": keys, "payload": "none"})
        try:
            others = parts_of(other)
            allowed_s -= sum(map(_cost_s, others))
        except RingnetError:  # it cannot run here: nothing to name
            continue
        yield label_of(keys), other, others if allowed_s >= 0 else []
        if allowed_s < 0:
            return


def _candidates(scenario: Scenario, parts: RunParts) -> Iterator[AlgorithmKeys]:
    """Yield what does the same in the shape of the network: with parameters that nobody set, or wider algorithms."""
    if scenario.algorithm_name not in ALGORITHMS or not parts.is_alone or parts.schedule.n_workers == 1:
        return
    if ring_equivalents(scenario, [scenario.message_bytes])[0]:  # nothing follows of them for other algorithms
        return
    given, shape = parameters_of(scenario.algorithm), parts.shape
    own = {name: given[name] for name in given if name not in open_traits(scenario.algorithm_name, {})}
    names: Mapping[str, Mapping[str, object]] = {
        **({scenario.algorithm_name: own} if own != given else {}),
        **{name: {} for name in ALGORITHMS[scenario.algorithm_name].wider},
    }
    for name, kept in names.items():
        read = read_off_shape(open_traits(name, kept), shape).parameters
        if read and scenario.collective in ALGORITHMS[name].collectives:
            yield AlgorithmKeys(name=name, **{**kept, **read})


def _cost_s(parts: RunParts) -> float:
    """Return roughly how long a run takes, in seconds, without its payload."""
    return parts.schedule.n_transfers / TRANSFERS_PER_S[engine_of(parts)]
