"""What another setting would be worth, where that is known without a run."""

from __future__ import annotations

from ringnet.networks import best_order, placed, ring_load
from ringnet.runs.parts import build
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.keys.algorithm import name_of

#: Algorithms in which each worker sends to the next one only.
RINGS = ("ring", "pipelined-ring")
#: From how many times the load on another order is worth a word.
WORTH = 1.1


def about_order(scenario: Scenario) -> str | None:
    """Say by how much another order of the ring would unload the busiest link; None where it would not, or by little.

    Of one run: it looks for the best order, which takes half a second for hundreds of workers.
    """
    if name_of(scenario.algorithm) not in RINGS or scenario.network.order != "numbered":
        return None
    network = build(scenario).network
    load = ring_load(network)
    times = load / ring_load(placed(network, best_order(network))) if load else 1.0
    if times < WORTH:
        return None
    return (
        f"this order of the ring puts {times:.3g} times as much on the busiest link as the best one would: "
        "network.order: best"
    )
