"""Hosts with several workers each: a fast inside, and network cards into any of the other topologies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from math import isqrt
from typing import Annotated

import numpy as np

from ringnet.array_types import IntArray
from ringnet.errors import Fault, NetworkError
from ringnet.networks.basic import switch
from ringnet.networks.inside import INSIDE_KINDS, INSIDES, Host, Inside
from ringnet.networks.link_names import LinkNames
from ringnet.networks.network import ONE_WAY, Groups, LinkSource, LinkSources, Network, Route
from ringnet.networks.shape import CARDS, HOSTS, RAILS
from ringnet.networks.topology import MOST_LINKS, NetworkBuilder, TopologyParameter, each_of


def nodes(
    n_workers: int,
    bandwidth_Bps: float,
    latency_s: float,
    *,
    workers_per_host: Annotated[
        int | Sequence[int], TopologyParameter("workers of a host; of each host where they differ", 4)
    ],
    inside: Annotated[
        Inside,
        TopologyParameter(
            "what joins them: a switch, a ring, a mesh (a link between every two), or a PCIe tree with a shared root",
            {"shape": "switch", "link": "nvlink4"},
        ),
    ],
    nics: Annotated[
        int | Sequence[int],
        TopologyParameter("network cards of a host; of each host where they differ; 1 if left out", 4),
    ] = 1,
    affinity: Annotated[
        Sequence[int] | None,
        TopologyParameter(
            "card that each worker of a host uses; spread over them in order if left out",
            [0, 0, 1, 1],
            least=0,
        ),
    ] = None,
    between: Annotated[
        NetworkBuilder,
        TopologyParameter(
            "topology that joins the cards; a switch if left out", {"topology": "leaf-spine", "leaves": 2}
        ),
    ] = switch,
) -> Network:
    """Workers fill the hosts in order; worker j of a host uses its card ``j * nics // workers_per_host``.

    Shapes of the inside:

    - ``switch``: every worker has a link to the host's switch and one back (NVSwitch), and a link to its card;
    - ``ring``: every worker has a link to both neighbours, the shorter way around is taken, and a link to its card;
    - ``mesh``: every worker has a link to every other one, and a link to its card;
    - ``pcie``: one PCIe switch for each card with its workers; all of a socket share one root, by a link up and a link
      down for each switch.

    A worker whose card is at another socket goes over the links between the two sockets. Where the topology between
    the cards has no way from one card to another (rails without a spine), a transfer first goes inside its host to a
    worker with a card that has one, as NCCL's PXN does; if there is none, over such a worker of the other host.

    Parameters
    ----------
    n_workers : int
        A whole number of hosts.
    bandwidth_Bps, latency_s : float
        Of every link between the hosts, in bytes per second and seconds.
    workers_per_host : int or sequence of int
    inside : Inside
    nics : int or sequence of int
        Network cards of a host.
    affinity : sequence of int, optional
        By worker of a host, the card that it uses.
    between : callable
        ``between(n, bandwidth_Bps, latency_s)`` builds the network of n cards.

    Raises
    ------
    NetworkError
        If the links are more than can be made, the workers are no whole number of hosts, the cards are more than the
        workers of a host or not on a rail each, or what is said of cards and sockets does not fit the workers.

    Examples
    --------
    >>> network = nodes(4, 50e9, 5e-6, workers_per_host=2, inside=Inside("switch", 450e9, 1e-6))
    >>> [network.names[link] for link in network.route(1, 2)]
    ['1->h0/nic0', 'h0/nic0->switch', 'switch->h1/nic0', 'h1/nic0->2']
    """
    hosts = _hosts(n_workers, workers_per_host, nics, affinity)
    _check_sockets(inside, hosts)
    n_cards = sum(host.n_cards for host in hosts)
    outer = between(n_cards, bandwidth_Bps, latency_s)
    groups_between = outer.find_groups() if outer.find_groups else {}
    _check_rails(hosts, groups_between)
    # What hosts alike have inside is made once.
    kinds = {
        like: _InsideHost(Host(0, 0, *like, 0), inside)
        for like in dict.fromkeys((host.cards, host.n_cards) for host in hosts)
    }
    insides = [kinds[host.cards, host.n_cards] for host in hosts]
    firsts = [0, *accumulate(len(one.link_kinds) for one in insides)]
    n_inner = firsts[-1]
    if n_inner + outer.n_links > MOST_LINKS:
        most = MOST_LINKS * len(hosts) // (n_inner + outer.n_links)
        message = f"the network would have {n_inner + outer.n_links:,} links, more than {MOST_LINKS:,}"
        raise NetworkError(Fault(message, "workers", value=str(n_workers), right=f"at most {most} hosts"))
    inner, link_kinds = _joined(hosts, insides)
    of_worker = np.repeat(np.arange(len(hosts)), [host.size for host in hosts]).tolist()
    way_out = _WayOut(outer)

    def find_route(src: int, dst: int) -> Route:
        here, there = hosts[of_worker[src]], hosts[of_worker[dst]]
        one, other = insides[here.number], insides[there.number]
        up, down = firsts[here.number], firsts[there.number]
        if here is there:
            return tuple(up + link for link in one.route(src - here.first, dst - here.first))
        leaving, entering, over = way_out.between(src, dst, here, there)
        return (
            *(up + link for link in one.way_out(src - here.first, leaving)),
            *(n_inner + link for link in over),
            *(down + link for link in other.way_in(entering, dst - there.first)),
        )

    numbers = np.array([inside.numbers(kind) for kind in INSIDE_KINDS])[link_kinds]
    # What has numbers of its own keeps them where measured ones take the place of those inside hosts.
    own = [
        LinkSource.OWN if {"card": inside.card, "socket": inside.socket}.get(kind) else LinkSource.INSIDE
        for kind in INSIDE_KINDS
    ]
    sources = np.array(own, dtype=np.int8)[link_kinds]
    return Network(
        topology="nodes",
        n_workers=n_workers,
        names=_with_outer(inner, hosts, outer.link_ends),
        bandwidth_Bps=np.concatenate([numbers[:, 0], outer.bandwidth_Bps]),
        latency_s=np.concatenate([numbers[:, 1], outer.latency_s]),
        find_route=find_route,
        find_groups=lambda: _groups(hosts, inner.nodes, groups_between),
        given_sources=LinkSources(sources, sources.copy()) + outer.sources,
    )


class _InsideHost:
    """What hosts alike have inside: links by number, and routes over them between workers by their place."""

    def __init__(self, host: Host, inside: Inside) -> None:
        if inside.shape == "mesh" and host.size**2 > MOST_LINKS:
            message = f"a mesh of {host.size:,} workers has more than {MOST_LINKS:,} links"
            right = f"at most {isqrt(MOST_LINKS)}"
            raise NetworkError(Fault(message, "workers_per_host", value=str(host.size), right=right))
        links, find_route = INSIDES[inside.shape](host, inside)
        number = {name: link for link, name in enumerate(links)}
        self.names = LinkNames.of([(one, other) for one, _, other in (name.partition(ONE_WAY) for name in links)])
        self.link_kinds = np.array([INSIDE_KINDS.index(kind) for kind in links.values()], dtype=np.int64)

        @cache
        def route(src: int, dst: int) -> Route:
            return tuple(number[name] for name in find_route(str(src), str(dst)))

        @cache
        def way_out(src: int, leaving: int) -> Route:
            last = find_route(str(leaving), host.card(leaving))
            return (*route(src, leaving), *(number[name] for name in last))

        @cache
        def way_in(entering: int, dst: int) -> Route:
            first = find_route(host.card(entering), str(entering))
            return (*(number[name] for name in first), *route(entering, dst))

        self.route, self.way_out, self.way_in = route, way_out, way_in


def _joined(hosts: Sequence[Host], insides: Sequence[_InsideHost]) -> tuple[LinkNames, IntArray]:
    """Return the links inside all hosts, host by host, and of each the place of its kind in `INSIDE_KINDS`.

    Nodes are the workers, and then what else is in each host.
    """
    beside = {one: [node for node in one.names.nodes if "/" in node] for one in dict.fromkeys(insides)}
    workers, others, links = (
        np.array([0, *accumulate(each)])
        for each in (
            (host.size for host in hosts),
            (len(beside[one]) for one in insides),
            (len(one.link_kinds) for one in insides),
        )
    )
    place = {one: at for at, one in enumerate(beside)}
    which = np.array([place[one] for one in insides])
    start, end, kinds = (np.empty(links[-1], dtype=np.int64) for _ in range(3))
    for at, (one, nodes) in enumerate(beside.items()):
        alike = np.flatnonzero(which == at)[:, None]
        number = np.concatenate(
            [
                workers[alike] + int(node) if "/" not in node else workers[-1] + others[alike] + nodes.index(node)
                for node in one.names.nodes
            ],
            axis=1,
        )
        rows = links[alike] + np.arange(len(one.link_kinds))
        start[rows], end[rows], kinds[rows] = (
            number[:, one.names.start],
            number[:, one.names.end],
            one.link_kinds,
        )
    inner = [
        host.node(node.partition("/")[2]) for host, one in zip(hosts, insides, strict=True) for node in beside[one]
    ]
    return LinkNames((*map(str, range(workers[-1])), *inner), start, end), kinds


def _with_outer(inner: LinkNames, hosts: Sequence[Host], outer: LinkNames) -> LinkNames:
    """Return the links inside hosts, and after them those between the cards, which are places there."""
    number = {node: at for at, node in enumerate(inner.nodes)}
    card = {str(host.first_card + one): host.node(f"nic{one}") for host in hosts for one in range(host.n_cards)}
    place = np.array([number.setdefault(card.get(node, node), len(number)) for node in outer.nodes], np.int64)
    start, end = (np.concatenate(both) for both in ((inner.start, place[outer.start]), (inner.end, place[outer.end])))
    return LinkNames(tuple(number), start, end)


def _hosts(
    n_workers: int,
    workers_per_host: int | Sequence[int],
    nics: int | Sequence[int],
    affinity: Sequence[int] | None,
) -> list[Host]:
    """Return the hosts, or raise with all that keeps these numbers from making any."""
    sizes = each_of(workers_per_host, n_workers)
    if sum(sizes) != n_workers:
        if isinstance(workers_per_host, int):
            message = f"{n_workers} workers are no whole number of hosts with {workers_per_host} each"
            right = f"a divisor of {n_workers}"
        else:
            message = f"hosts of {_listed(sizes)} hold {sum(sizes)} workers, not {n_workers}"
            right = f"numbers whose sum is {n_workers}"
        raise NetworkError(Fault(message, "workers_per_host", right=right))
    n_cards = [nics] * len(sizes) if isinstance(nics, int) else [*nics]
    if len(n_cards) != len(sizes):
        message = f"cards of {len(n_cards)} hosts, and there are {len(sizes)}"
        raise NetworkError(Fault(message, "nics", right="one number for each host"))
    for host, (cards, size) in enumerate(zip(n_cards, sizes, strict=True)):
        if cards > size:
            where = "a host" if len({*sizes, *n_cards}) <= 2 else f"host h{host}"  # noqa: PLR2004 -- all alike
            message = f"{cards} cards are more than the {size} workers of {where}"
            raise NetworkError(Fault(message, "nics", right=f"at most {size}"))
    used = _cards_used(affinity, sizes, n_cards)
    firsts, first_cards = ([0, *accumulate(each)] for each in (sizes, n_cards))
    return [Host(at, firsts[at], cards, n_cards[at], first_cards[at]) for at, cards in enumerate(used)]


def _cards_used(affinity: Sequence[int] | None, sizes: Sequence[int], n_cards: Sequence[int]) -> list[tuple[int, ...]]:
    """Return, by host, the card of each worker."""
    if affinity is None:
        return [
            tuple(worker * cards // size for worker in range(size)) for size, cards in zip(sizes, n_cards, strict=True)
        ]
    faults = []
    if len({*sizes}) > 1 or len({*n_cards}) > 1:
        faults.append(Fault("hosts differ: one list says nothing of all of them", "affinity", right="no affinity"))
    elif len(affinity) != sizes[0]:
        message = f"cards of {len(affinity)} workers, and a host has {sizes[0]}"
        faults.append(Fault(message, "affinity", right="one card for each worker of a host"))
    elif max(affinity) >= n_cards[0]:
        message = f"there is no card {max(affinity)} among {n_cards[0]}"
        faults.append(Fault(message, "affinity", right=f"0 to {n_cards[0] - 1}"))
    elif idle := sorted({*range(n_cards[0])} - {*affinity}):
        message = f"nobody uses card {idle[0]}"
        faults.append(Fault(message, "affinity", right="each card used by some worker, or fewer nics"))
    if faults:
        raise NetworkError(*faults)
    return [tuple(affinity)] * len(sizes)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


def _check_sockets(inside: Inside, hosts: Sequence[Host]) -> None:
    """Refuse sockets that do not go with the workers, or whose link nobody knows."""
    sizes, faults = {host.size for host in hosts}, []
    if isinstance(inside.sockets, int):
        if inside.sockets > min(sizes):
            message = f"{inside.sockets} sockets are more than the {min(sizes)} workers of a host"
            faults.append(Fault(message, "inside.sockets", right=f"at most {min(sizes)}"))
    elif inside.shape == "pcie":
        message = "a PCIe tree has its switches at the sockets in order"
        faults.append(Fault(message, "inside.sockets", right="a number of sockets"))
    elif {len(inside.sockets)} != sizes:
        message = f"sockets of {len(inside.sockets)} workers, and a host has {_listed(sorted(sizes))}"
        faults.append(Fault(message, "inside.sockets", right="one socket for each worker of a host"))
    elif skipped := sorted({*range(max(inside.sockets))} - {*inside.sockets}):
        message = f"no worker is at socket {skipped[0]}"
        faults.append(Fault(message, "inside.sockets", right="sockets numbered from 0 without a gap"))
    if inside.n_sockets > 1 and inside.socket is None:
        message = "the key is missing: what joins two sockets"
        faults.append(Fault(message, "inside.socket", right="socket: {bandwidth: 20 GB/s, latency: 0.5 us}"))
    if faults:
        raise NetworkError(*faults)


def _check_rails(hosts: Sequence[Host], groups_between: Groups) -> None:
    """Refuse rails on which the cards of a host do not lie as they are numbered."""
    rails = groups_between.get(RAILS)
    if rails is None:
        return
    n_rails, cards = len({*rails.values()}), {host.n_cards for host in hosts}
    if cards == {n_rails}:
        return
    if len(cards) > 1:
        message, right = "hosts differ in their cards: these have no rails", "topology: leaf-spine"
    elif cards == {1}:
        message, right = f"{n_rails} rails, and a host has one card", "topology: switch, or more nics"
    else:
        message = f"{n_rails} rails, and a host has {max(cards)} cards: card k of every host is on rail k"
        right = f"rails: {max(cards)}"
    raise NetworkError(Fault(message, "between.rails", right=right))


class _WayOut:
    """Over which workers transfers leave and enter hosts."""

    def __init__(self, outer: Network) -> None:
        self.outer = outer

    def between(self, src: int, dst: int, here: Host, there: Host) -> tuple[int, int, Route]:
        """Return over whose cards a transfer leaves and enters, by place in the host, and the links between these.

        Its own where these have a way to each other.
        """
        own, other = src - here.first, dst - there.first
        refused: NetworkError | None = None
        for leaving, entering in self._pairs(own, other, here, there):
            try:
                return (
                    leaving,
                    entering,
                    self.outer.route(here.card_place(leaving), there.card_place(entering)),
                )
            except NetworkError as error:
                refused = refused or error
        assert refused is not None  # the own cards are tried first
        raise refused

    @staticmethod
    def _pairs(own: int, other: int, here: Host, there: Host) -> Iterator[tuple[int, int]]:
        """Yield workers of the two hosts by their numbers in these, the least way first."""
        yield own, other
        # The worker that has the receiver's number most likely has its rail.
        if other < here.size:
            yield other, other
        yield from ((here.cards.index(card), other) for card in sorted({*here.cards}))
        yield from ((own, there.cards.index(card)) for card in sorted({*there.cards}))


def _groups(hosts: Sequence[Host], nodes_inside: Sequence[str], groups_between: Groups) -> Groups:
    """Return cards with their workers, hosts, rails, and what the topology between groups of whole hosts."""
    host_of = {name: f"h{host.number}" for host in hosts for name in host.workers}
    host_of |= {node: node.partition("/")[0] for node in nodes_inside if "/" in node}
    card_of = {name: host.card(place) for host in hosts for place, name in enumerate(host.workers)}
    card_of |= {name.replace("nic", kind): name for name in dict.fromkeys(card_of.values()) for kind in ("nic", "pcie")}
    groups: dict[str, Mapping[str, str]] = {
        CARDS: {node: f"card {name}" for node, name in card_of.items()},
        HOSTS: {node: f"host {name}" for node, name in host_of.items()},
    }
    for kind, between in groups_between.items():
        switches = {node: group for node, group in between.items() if not node.isdecimal()}
        if kind == RAILS:
            rail_of = {
                host.node(f"nic{one}"): between[str(host.first_card + one)]
                for host in hosts
                for one in range(host.n_cards)
            }
            groups[kind] = switches | {node: rail_of[name] for node, name in card_of.items()}
            continue
        of_hosts = [{between[str(host.first_card + one)] for one in range(host.n_cards)} for host in hosts]
        if all(len(found) == 1 for found in of_hosts):
            whole = {f"h{number}": found.pop() for number, found in enumerate(of_hosts)}
            groups[kind] = switches | {node: whole[name] for node, name in host_of.items()}
    return groups
