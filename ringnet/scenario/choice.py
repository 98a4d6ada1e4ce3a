"""What a scenario leaves open: which engine runs, and how links are shared."""

from __future__ import annotations

from itertools import chain

from ringnet.engines import ENGINES, Choice, choose_engine
from ringnet.engines.sharing import resolve_sharing, used_routes
from ringnet.errors import Fault, InputError
from ringnet.networks.network import Sharing
from ringnet.scenario.build import Parts
from ringnet.scenario.scenario import Scenario


def engine_for(scenario: Scenario, parts: Parts) -> Choice:
    """Return the engine that runs a scenario, and why; `InputError` for one that cannot."""
    if not parts.alone:
        return _beside_others(scenario)
    if scenario.engine in ENGINES:
        return Choice(scenario.engine, "the scenario says so")
    return choose_engine(parts.schedule, parts.network, parts.workers)


def _beside_others(scenario: Scenario) -> Choice:
    reason = "others share the links"
    if scenario.engine == "recurrence":
        raise InputError(
            Fault(f"the recurrence is not exact here: {reason}", "engine", right="events, or auto")
        )
    return Choice("events", reason)


def sharing_of(parts: Parts, engine: str) -> Sharing:
    """Return how links are shared in a run."""
    if parts.network.sharing != "auto":
        return parts.network.sharing
    if engine == "recurrence":  # which is exact for links of one sender each only
        return "fifo"
    everybody = (parts, *parts.others)
    routes = [used_routes(number, one.schedule, one.network) for number, one in enumerate(everybody)]
    others = [((one.name, 0), one.links) for one in parts.traffic]
    return resolve_sharing(parts.network, chain(others, *routes))
