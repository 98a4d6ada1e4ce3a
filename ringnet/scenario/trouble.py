"""The keys of trouble to what links and workers do: whiles with a share of their speed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ringnet.chance import Draws, NumberStream, stream
from ringnet.networks import InTrouble, Lossy, Network, Span, Whiles, find_links
from ringnet.networks.behaviour import NEVER, Behaviour
from ringnet.scenario.drawn import Drawn, distribution_of
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.trouble import LossKeys, TroubleKeys


class Incident(NamedTuple):
    """One thing that goes wrong: which key says so, with whom, and when; ``who`` is a link's name or a worker.

    ``fails_over_s`` is how long after a link has died another path is taken, where one is.
    """

    kind: str
    who: str | int
    whiles: Whiles
    fails_over_s: float | None = None

    def spans(self, run: int) -> Iterator[tuple[str, Span]]:
        """Yield what it is in a run, and when; then the time until another path is taken."""
        for span in self.whiles.spans(run):
            yield self.kind, span
            if self.fails_over_s is not None:
                yield "fails_over", Span(span.from_s, span.from_s + self.fails_over_s, 0.0)


def incidents(keys: Keys, network: Network | None = None) -> Iterator[Incident]:
    """Yield what goes wrong with workers, and with the links of a network, if one is given, in the order of the keys.

    Raises
    ------
    NetworkError
        A link is not there.
    """
    names = [one.link for one in keys.trouble if one.link is not None and network is not None]
    links = {} if network is None else find_links(network, names)
    before = Counter[tuple[str, str | int]]()
    for one in keys.trouble:
        if not (kinds := one.kinds()):
            continue  # an entry that says nothing is a mistake, and told as that
        kind, of_links = kinds[0], links.get(one.link or "", ())
        whose: list[str | int] = [network.names[link] for link in of_links] if network is not None else []
        for who in whose if one.worker is None else [one.worker]:
            # Of several alike each has numbers of its own, which no other link or worker moves.
            yield Incident(kind, who, _whiles(one, keys.seed, who, before[kind, who]), one.fails_over_s)
            before[kind, who] += 1


def _whiles(one: TroubleKeys, seed: int, who: str | int, number: int) -> Whiles:
    """Return when something goes wrong with a link or a worker: the so many-th of its kind there."""
    kind = one.kinds()[0]

    def numbers(what: str, *, alike: bool = False) -> NumberStream:
        whose = ("run",) if alike else ("link", who) if isinstance(who, str) else ("worker", 0, who)
        return stream(seed, *whose, "trouble", kind, number, what)

    def drawn(value: float | Drawn, what: str) -> float | Draws:
        if not isinstance(value, Drawn):
            return value
        return Draws(distribution_of(value), numbers(what, alike=value.per == "run"), for_each=True)

    found = Whiles(0.0, NEVER, 1.0)
    if one.slow is not None:
        lasts = NEVER if one.slow.for_s is None else drawn(one.slow.for_s, "for")
        found = Whiles(drawn(one.slow.at_s, "at"), lasts, 1 / one.slow.factor)
    if one.down is not None:
        found = Whiles(drawn(one.down.at_s, "at"), drawn(one.down.for_s, "for"), 0.0, retry_s=one.down.retry_s)
    if one.flap is not None:
        up = None if one.flap.up_s is None else drawn(one.flap.up_s, "up")
        at, lasts = drawn(one.flap.at_s, "at"), drawn(one.flap.down_s, "down")
        found = Whiles(at, lasts, 0.0, one.flap.times, up, one.flap.period_s)
    if one.pause is not None:
        found = Whiles(drawn(one.pause.at_s, "at"), drawn(one.pause.for_s, "for"), 0.0)
    if one.dies_s is not None:
        found = Whiles(drawn(one.dies_s, "dies"), NEVER, 0.0)
    if one.probability is None:
        return found
    return replace(found, probability=one.probability, happens=numbers("happens"))


def in_trouble(network: Network, keys: Keys) -> Network:
    """Return the network with what goes wrong with its links; `NetworkError` for a link that is not there."""
    whiles: dict[str, list[Incident]] = {}
    for one in incidents(keys, network):
        if isinstance(one.who, str) and one.kind != "loss":
            whiles.setdefault(one.who, []).append(one)
    number = {name: link for link, name in enumerate(network.names)} if whiles else {}
    behaviours = dict(network.behaviours)
    for name, own in whiles.items():
        link = number[name]
        in_trouble = InTrouble(
            network.behaviour(link),
            tuple(one.whiles for one in own if one.fails_over_s is None),
            tuple((one.whiles, one.fails_over_s) for one in own if one.fails_over_s is not None),
        )
        behaviours[link] = in_trouble.in_run(0) if in_trouble.is_alike else in_trouble
    losing = [(one.link, one.loss) for one in keys.trouble if one.link is not None and one.loss is not None]
    found = find_links(network, [name for name, _ in losing])
    for link, loss in ((link, loss) for name, loss in losing for link in found[name]):
        carries = behaviours.get(link) or network.behaviour(link)
        behaviours[link] = _lossy(carries, loss, keys, network.names[link])
    return replace(network, behaviours=behaviours)


def _lossy(carries: Behaviour, loss: LossKeys, keys: Keys, name: str) -> Lossy:
    packet_bytes = loss.packet_bytes or keys.network.packet or 1
    numbers = stream(keys.seed, "link", name, "loss")
    return Lossy(carries, loss.probability, packet_bytes, loss.timeout_s, loss.go_back or 0, numbers)


def workers_in_trouble(keys: Keys) -> dict[int, tuple[Whiles, ...]]:
    """Return when workers are in trouble."""
    found: dict[int, tuple[Whiles, ...]] = {}
    for one in incidents(keys):
        if isinstance(one.who, int):
            found[one.who] = (*found.get(one.who, ()), one.whiles)
    return found
