"""The keys of trouble to what links and workers do: whiles with a share of their speed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ringnet.chance import stream
from ringnet.engines.pace import ProcessorPace
from ringnet.networks import Network, find_links
from ringnet.networks.behaviour import NEVER, Behaviour
from ringnet.networks.trouble import FailsOver, Lossy, Span, troubled
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.trouble import DownKeys, LossKeys, TroubleKeys


class Incident(NamedTuple):
    """One thing that goes wrong: which key says so, with whom, and when; ``who`` is a link's name or a worker."""

    kind: str
    who: str | int
    span: Span


def of_links(trouble: tuple[TroubleKeys, ...], network: Network) -> list[Incident]:
    """Return what goes wrong with links, in the order of the keys; `NetworkError` for a link that is not there."""
    links = find_links(network, [one.link for one in trouble if one.link is not None])
    return [
        Incident(kind, network.names[link], span)
        for one in trouble
        if one.link is not None
        for link in links[one.link]
        for kind, span in _what(one)
    ]


def of_workers(trouble: tuple[TroubleKeys, ...]) -> list[Incident]:
    """Return what goes wrong with workers, in the order of the keys."""
    return [
        Incident(kind, one.worker, span)
        for one in trouble
        if one.worker is not None
        for kind, span in _what(one)
    ]


def _what(one: TroubleKeys) -> Iterator[tuple[str, Span]]:
    """Yield what each while of some trouble is; the last is the time until another path is taken."""
    for span in _spans(one):
        yield one.kinds()[0], span
    if one.dies_s is not None and one.fails_over_s is not None:
        yield "fails_over", Span(one.dies_s, one.dies_s + one.fails_over_s, 0.0)


def _spans(one: TroubleKeys) -> Iterator[Span]:
    if one.slow is not None:
        lasts_s = NEVER if one.slow.for_s is None else one.slow.for_s
        yield Span(one.slow.at_s, one.slow.at_s + lasts_s, 1 / one.slow.factor)
    if one.down is not None:
        yield Span(one.down.at_s, one.down.at_s + stands_still_s(one.down), 0.0)
    if one.flap is not None:
        for number in range(one.flap.times):
            at_s = one.flap.at_s + number * one.flap.period_s
            yield Span(at_s, at_s + one.flap.down_s, 0.0)
    if one.pause is not None:
        yield Span(one.pause.at_s, one.pause.at_s + one.pause.for_s, 0.0)
    if one.dies_s is not None:
        yield Span(one.dies_s, NEVER, 0.0)
    if one.loss is not None:
        yield Span(0.0, NEVER, 1.0)


def stands_still_s(down: DownKeys) -> float:
    """Return how long nothing moves: until the first try, each twice as long after the last, when the link is up.

    >>> stands_still_s(DownKeys.model_validate({"at": "1 s", "for": "2 s", "retry": "200 ms"}))
    3.0
    """
    if down.retry_s is None:
        return down.for_s
    tried_s = wait_s = down.retry_s
    while tried_s < down.for_s:
        wait_s *= 2
        tried_s += wait_s
    return tried_s


def with_trouble(network: Network, keys: Keys) -> Network:
    """Return the network with what goes wrong with its links; `NetworkError` for a link that is not there."""
    found = find_links(network, [one.link for one in keys.trouble if one.link is not None])
    spans: dict[int, list[Span]] = {}
    behaviours = dict(network.behaviours)
    for one in keys.trouble:
        for link in found[one.link] if one.link is not None and one.loss is None else ():
            spans.setdefault(link, []).extend(_spans(one))
    for link, of_link in spans.items():
        behaviours[link] = troubled(network.behaviour(link), of_link)
    for one in keys.trouble:
        if one.link is not None and one.dies_s is not None and one.fails_over_s is not None:
            for link in found[one.link]:
                behaviours[link] = FailsOver(behaviours[link], one.dies_s, one.fails_over_s)
    for name, loss in ((one.link, one.loss) for one in keys.trouble):
        if name is None or loss is None:
            continue
        for link in found[name]:
            carries = behaviours.get(link) or network.behaviour(link)
            behaviours[link] = _lossy(carries, loss, keys, network.names[link])
    return replace(network, behaviours=behaviours)


def _lossy(carries: Behaviour, loss: LossKeys, keys: Keys, name: str) -> Lossy:
    packet_bytes = loss.packet_bytes or keys.network.packet or 1
    numbers = stream(keys.seed, "link", name, "loss")
    return Lossy(carries, loss.probability, packet_bytes, loss.timeout_s, loss.go_back or 0, numbers)


def paces(trouble: tuple[TroubleKeys, ...]) -> dict[int, ProcessorPace]:
    """Return how fast the processors of workers in trouble work over time."""
    spans: dict[int, list[Span]] = {}
    for one in of_workers(trouble):
        spans.setdefault(int(one.who), []).append(one.span)
    return {worker: ProcessorPace.of(of_worker) for worker, of_worker in spans.items()}
