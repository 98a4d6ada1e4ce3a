"""What other choices would be worth to a run: each is simulated before it is told."""

from __future__ import annotations

from dataclasses import replace

from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.result import Result
from ringnet.analysis.routes import collisions, pair_traffic, spread_routes
from ringnet.networks import Network
from ringnet.runs.parts import RunParts, Site
from ringnet.runs.simulate import simulate
from ringnet.scenario.build.scenario import Scenario
from ringnet.units import format_seconds

#: Transfers of a run that is simulated once more for advice.
MOST_TRANSFERS = 20_000
#: What other routes must gain, as a share of the time, to be worth a word.
WORTH_ROUTES = 0.01
#: Pairs that are named.
NAMED = 3


def route_advice(scenario: Scenario, result: Result, parts: RunParts) -> str | None:
    """Say what routes cost that ecmp drew over one link while another of equal cost carried nothing.

    The run is simulated once more, with the routes of its own workers spread. None where that gains little, where none
    collide, or where the run is too large to be simulated again.
    """
    network = parts.network
    if network.find_equal_routes is None or parts.schedule.n_transfers > MOST_TRANSFERS:
        return None
    traffic = pair_traffic(parts.schedule, parts.chunk_bytes)
    found = collisions(network, traffic, result.links["bytes"].to_numpy())
    if not found:
        return None
    before_s = makespan_s(result.runs[0].trace)
    spread = _with_routes(parts, spread_routes(network, traffic))
    after_s = makespan_s(simulate(scenario, parts=spread).runs[0].trace)
    if before_s - after_s < WORTH_ROUTES * before_s:
        return None
    worst = max(found.values(), key=lambda one: float(result.links["busy_s"][one.link]))
    named = ", ".join(f"{src}->{dst}" for src, dst in worst.pairs[:NAMED])
    more = f" and {len(worst.pairs) - NAMED} more" if len(worst.pairs) > NAMED else ""
    return (
        f"ecmp drew {network.names[worst.link]} for {named}{more}, while {network.names[worst.idle]}, of equal cost, "
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
