"""Traffic that asks for more than links carry: its queue grows, for a while or for ever, and others wait with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ringnet.analysis.metrics import charged_bytes
from ringnet.engines.events import Traffic
from ringnet.networks import Behaviour, Network
from ringnet.networks.behaviour import ANY_SIZE, NEVER
from ringnet.units import format_rate, format_seconds

#: A rate that is above another by less than this share is the same.
SAME_RATE = 1e-9
#: Changes of a link that are looked at; what it does after the last of them counts for ever.
MOST_CHANGES = 10_000


@dataclass(frozen=True)
class Overload:
    """What some flows together ask of a link, in the mean, and what it carries, while that is less.

    ``flows`` are their numbers; ``changed_s`` is since when the link carries that, 0 if it always did; ``until_s`` is
    infinite where the queue grows for ever.
    """

    flows: tuple[int, ...]
    link: str
    asked_Bps: float
    carried_Bps: float
    changed_s: float
    until_s: float

    def __str__(self) -> str:
        since = f" from {format_seconds(self.changed_s)} on" if self.changed_s else ""
        carried = f"{self.link} carries{since}, {format_rate(self.carried_Bps)}"
        return f"{format_rate(self.asked_Bps)} are more than {carried}: its queue only grows"


def overloads(flows: Sequence[Sequence[Traffic]], network: Network) -> list[Overload]:
    """Return what is asked of links beyond what they carry: by each flow alone, then by several together.

    Parameters
    ----------
    flows : sequence of sequences of Traffic
        Each flow as bursts of one or more phases over the same links.
    network : Network
        Its links are those of the traffic. Unless it is fifo, what the links have for large transfers counts.

    Returns
    -------
    list of Overload
        For each flow, and each set of flows, the worst, and rather one for ever. A flow that overloads a link for ever
        by itself is not told again with others.
    """
    steady = {number: flow for number, flow in enumerate(flows) if flow and flow[0].every_s is not None}
    alone = [worst for number in steady if (worst := _worst({number: steady[number]}, network))]
    told = {number for one in alone for number in one.flows}
    for_ever = {number for one in alone if one.until_s == NEVER for number in one.flows}
    rest = {number: flow for number, flow in steady.items() if number not in for_ever}
    together: dict[tuple[int, ...], dict[int, Sequence[Traffic]]] = {}
    for link in dict.fromkeys(link for flow in rest.values() for link in flow[0].links):
        sharing = {number: flow for number, flow in rest.items() if link in flow[0].links}
        if len(sharing) > 1:
            together[tuple(sharing)] = sharing
    both = [worst for sharing in together.values() if (worst := _worst(sharing, network))]
    return alone + [one for one in both if one.until_s == NEVER or not told & {*one.flows}]


def _worst(flows: Mapping[int, Sequence[Traffic]], network: Network) -> Overload | None:
    """Return the worst overload of the links that all of some flows cross; None where there is none."""
    shared = set.intersection(*(set(flow[0].links) for flow in flows.values()))
    found = [one for link in sorted(shared) for one in _of_link(link, flows, network)]
    return min(found, key=lambda one: (one.until_s != NEVER, one.carried_Bps / one.asked_Bps), default=None)


def _of_link(link: int, flows: Mapping[int, Sequence[Traffic]], network: Network) -> Iterator[Overload]:
    """Yield the stretches of time in which some flows ask for more than a link carries."""
    behaviour = network.behaviour(link)
    rates_Bps = {number: _asked(flow, network) for number, flow in flows.items()}
    changes_s = {0.0, *_changes_s(behaviour)}
    begins_and_ends_s = {time_s for flow in flows.values() for time_s in (flow[0].start_s, flow[0].stop_s)}
    times_s = sorted((changes_s | begins_and_ends_s) - {NEVER})
    for at_s, until_s in zip(times_s, [*times_s[1:], NEVER], strict=True):
        going = [number for number, (one, *_) in flows.items() if one.start_s <= at_s < one.stop_s]
        asked_Bps = sum(rates_Bps[number] for number in going)
        busy = 0.0
        for number in going:
            # Under fair sharing a link's own limit is that of large transfers.
            size = flows[number][0].burst_bytes if network.sharing == "fifo" else ANY_SIZE
            carried_Bps = behaviour.offer(size, at_s).bandwidth_Bps
            busy += rates_Bps[number] / carried_Bps if carried_Bps else NEVER
        if busy > 1 + SAME_RATE:
            changed_s = max(time_s for time_s in changes_s if time_s <= at_s)
            yield Overload(tuple(going), network.names[link], asked_Bps, asked_Bps / busy, changed_s, until_s)


def _asked(flow: Sequence[Traffic], network: Network) -> float:
    """Return the bytes per second that a flow puts on a link in the mean, with the headers of packets."""
    charged = charged_bytes(network, np.array([one.burst_bytes for one in flow], dtype=np.int64))
    return float(sum(n / one.every_s for n, one in zip(charged.tolist(), flow, strict=True) if one.every_s))


def _changes_s(behaviour: Behaviour) -> Iterator[float]:
    time_s = behaviour.next_change_s(0.0)
    for _ in range(MOST_CHANGES):
        if time_s == NEVER:
            return
        yield time_s
        time_s = behaviour.next_change_s(time_s)
