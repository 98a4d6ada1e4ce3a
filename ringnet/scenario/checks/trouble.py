"""Keys of trouble, and of what the collective does then, that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from fnmatch import fnmatchcase

from ringnet.collectives import ALGORITHMS
from ringnet.documents.document import Path, in_flow
from ringnet.errors import InputError
from ringnet.scenario.checks.mistake import Mistake, no_such_worker, unread
from ringnet.scenario.checks.network import no_such_link, shape_of
from ringnet.scenario.drawn import Drawn, drawn_values
from ringnet.scenario.files.links import link_files
from ringnet.scenario.keys.algorithm import knows_parameters
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.trouble import LossKeys, TroubleKeys
from ringnet.scenario.network import n_places
from ringnet.scenario.schedule import schedule_beside
from ringnet.units import counted

#: What can go wrong with a link, and with a worker; each with an example.
OF_LINKS = {
    "slow": "slow: {at: 1 ms, factor: 2}",
    "down": "down: {at: 1 ms, for: 2 s}",
    "flap": "flap: {at: 1 ms, down: 10 ms, period: 1 s, times: 5}",
    "loss": "loss: {probability: 0.1 %, packet: 4 KiB, timeout: 1 ms}",
    "dies": "dies: 2 ms",
}
OF_WORKERS = {"slow": OF_LINKS["slow"], "pause": "pause: {at: 1 ms, for: 2 s}", "dies": OF_LINKS["dies"]}
#: Keys that only some policies read.
_READ_BY = {
    "timeout": ("abort",),
    "detect": ("shrink", "spare"),
    "agree": ("shrink", "spare"),
    "rebuild": ("shrink", "spare"),
    "load": ("spare",),
    "spares": ("spare",),
}


def _each(keys: Keys) -> Iterator[Mistake]:
    for number, one in enumerate(keys.trouble):
        path = ("trouble", number)
        if (one.link is None) == (one.worker is None):
            yield Mistake(path, "trouble is with one link or one worker", "link: 0->1, or worker: 3")
            continue
        whose, known = ("link", OF_LINKS) if one.worker is None else ("worker", OF_WORKERS)
        kinds = one.kinds()
        for kind in kinds:
            if kind not in known:
                right = " or ".join(known)
                yield Mistake((*path, kind), f"a {whose} has no such trouble", right, causes=((*path, whose),))
        if len(kinds) != 1:
            message = f"one thing goes wrong in each entry, here {len(kinds)}"
            value = ", ".join(kinds) or None
            yield Mistake(path, message, f"one of {', '.join(known)}; another entry for another", value=value)
        yield from _lasting(one, path)
        if one.fails_over_s is not None and (one.link is None or one.dies_s is None):
            yield unread((*path, "fails_over"), "no link dies here", (*path, "dies"), right="dies: 2 ms")
        if one.probability == 0:
            yield Mistake((*path, "probability"), "this never happens", "10 %")
        if one.loss is not None:
            yield from _loss(keys, one.loss, (*path, "loss"))
            if one.probability is not None:
                message = "what is lost has a probability of its own"
                yield unread((*path, "probability"), message, (*path, "loss"), right="loss.probability")


def _loss(keys: Keys, loss: LossKeys, path: Path) -> Iterator[Mistake]:
    if (loss.timeout_s is None) == (loss.go_back is None):
        message = "what is lost is sent again after a timeout, or with what came behind it"
        yield Mistake(path, message, "timeout: 1 ms, or go_back: 64")
    if loss.probability == 1:
        yield Mistake((*path, "probability"), "nothing would ever arrive", "below 100 %")
    if loss.packet_bytes == 0:
        yield Mistake((*path, "packet"), "a packet has bytes", "packet: 4 KiB")
    if loss.packet_bytes is None and keys.network.packet is None:
        yield Mistake(path, "packets are lost: how large are they?", "packet: 4 KiB")
    if loss.packet_bytes and keys.network.packet and loss.packet_bytes != keys.network.packet:
        message, cause = "the network has other packets", ("network", "packet")
        yield Mistake((*path, "packet"), message, "leave it out", causes=(cause,))


def _lasting(one: TroubleKeys, path: Path) -> Iterator[Mistake]:
    """Find whiles that take no time, and links that go down again before they are up."""
    for kind, given in (("slow", one.slow), ("down", one.down), ("flap", one.flap), ("pause", one.pause)):
        for key in ("for", "down", "up", "retry"):
            if given is not None and getattr(given, f"{key}_s", None) == 0:
                yield Mistake((*path, kind, key), "this takes no time at all", f"{key}: 10 ms")
    if one.flap is None:
        return
    at, period_s, down_s = (*path, "flap"), one.flap.period_s, one.flap.down_s
    if (period_s is None) == (one.flap.up_s is None):
        message = "from one time that it goes down to the next there is a period, or it is up for a while in between"
        yield Mistake(at, message, "period: 1 s, or up: 1 s")
    elif period_s is not None and isinstance(down_s, Drawn):
        message = "what is down for a while that is drawn has no period"
        yield Mistake((*at, "period"), message, "up: 1 s", causes=((*at, "down"),))
    elif period_s is not None and not isinstance(down_s, Drawn) and period_s <= down_s:
        message = "the link would go down again before it is up"
        yield Mistake((*at, "period"), message, "longer than down", causes=((*at, "down"),))


def _they_are_there(keys: Keys) -> Iterator[Mistake]:
    linked = [(number, one.link) for number, one in enumerate(keys.trouble) if one.link is not None]
    made = shape_of(keys)[0] if linked else None
    names = {} if made is None else dict.fromkeys(made.names)
    for number, link in linked:
        if made is not None:
            yield from no_such_link(("trouble", number, "link"), link, made, names)
    yield from _lossy_once(keys, names)
    for number, one in enumerate(keys.trouble):
        if one.worker is not None:
            yield from no_such_worker(("trouble", number, "worker"), one.worker, keys.workers)


def _lossy_once(keys: Keys, names: Collection[str]) -> Iterator[Mistake]:
    """Find links that are said to lose packets twice."""
    losing: dict[str, int] = {}
    for number, one in enumerate(keys.trouble):
        for name in names if one.loss is not None and one.link is not None else ():
            if fnmatchcase(name, one.link or ""):
                first = losing.setdefault(name, number)
                if first != number:
                    message, cause = f"trouble[{first}] says it of link {name} already", ("trouble", first)
                    yield Mistake(("trouble", number, "loss"), message, "each link once", causes=(cause,))
                    break


def _of_links_without_regimes(keys: Keys) -> Iterator[Mistake]:
    """Refuse trouble of links that treat sizes differently: they have no one bandwidth to lose."""
    network = keys.network
    around = [network, *network.links.values(), *network.links_of.values()]
    if not (link_files(network) or any(one.regimes for one in around)):
        return
    for number, one in enumerate(keys.trouble):
        if one.link is not None:
            message = "links with regimes, as measured ones have, cannot be in trouble"
            yield Mistake(("trouble", number, "link"), message, "bandwidth and latency", causes=(("network",),))


def _beside_chance(keys: Keys) -> Iterator[Mistake]:
    """Refuse trouble of what is drawn, where nobody knows what comes of both."""
    drawn = {one.whose: one.path for one in drawn_values(keys) if one.per == "transfer"}
    for number, one in enumerate(keys.trouble):
        again = "loss" if one.loss is not None else "fails_over" if one.fails_over_s is not None else ""
        if one.link is not None and again and "link" in drawn:
            message, cause = "what is sent again has no draws of its own", (*drawn["link"], "per")
            yield Mistake(("trouble", number, again), message, "per: link, or per: run", causes=(cause,))
        if one.worker is not None and keys.worker.noise is not None:
            message, cause = "a worker with noise cannot be in trouble", ("worker", "noise")
            yield Mistake(("trouble", number, "worker"), message, "one of the two", causes=(cause,))


def _policy(keys: Keys) -> Iterator[Mistake]:
    failure, path = keys.on_failure, ("on_failure",)
    if failure is None:
        return
    for key, policies in _READ_BY.items():
        if failure.policy not in policies:
            right = f"policy: {' or '.join(policies)}"
            yield unread((*path, key), f"{failure.policy} has no {key}", (*path, "policy"), right=right)
    if failure.policy == "abort" and not failure.timeout_s:
        at: Path = ("on_failure", "timeout") if failure.timeout_s == 0 else path
        yield Mistake(at, "abort needs the longest wait of a worker", "timeout: 1 s")
    if failure.policy == "spare" and not failure.spares:
        yield Mistake(path, "no worker stands by", f"spares: [{keys.workers}], and places for them")
    if failure.policy in ("shrink", "spare"):
        found = [*_starts_again(keys), *_spares(keys)]
        yield from found or _has_a_way(keys)


def _has_a_way(keys: Keys) -> Iterator[Mistake]:
    """Find links in a ring, of which those beside a worker that has died lead nowhere."""
    failure = keys.on_failure
    assert failure is not None
    n_left = keys.workers - 1 if failure.policy == "shrink" else keys.workers if failure.spares else 0
    if keys.network.file is None and keys.network.topology == "ring" and n_left > 1:
        message, cause = "links in a ring have no way past a worker that has died", ("network", "topology")
        yield Mistake(("on_failure", "policy"), message, "topology: switch", causes=(cause,))


def _starts_again(keys: Keys) -> Iterator[Mistake]:
    """Find what cannot be started again with other workers."""
    failure = keys.on_failure
    assert failure is not None
    path, policy = ("on_failure", "policy"), failure.policy
    mortal = {one.worker for one in keys.trouble if one.worker is not None and one.dies_s is not None}
    mortal &= {*range(keys.workers)}
    if not mortal:
        yield unread(path, "no worker dies", ("trouble",), right="trouble: [{worker: 3, dies: 2 ms}]")
        return
    if keys.collective != "all-reduce":
        message = f"{policy} starts an all-reduce again, and this is {keys.collective}"
        yield Mistake(path, message, "policy: wait", causes=(("collective",),))
    for key, given in (("jobs", keys.jobs), ("training", keys.training), ("step", keys.step)):
        if given:
            message = f"{policy} starts one collective again, and here is more: {key}"
            yield Mistake(path, message, "policy: wait", causes=((key,),))
    certain = {one.worker for one in keys.trouble if one.dies_s is not None and one.probability is None}
    if policy == "shrink" and len(mortal & certain) == keys.workers:
        yield Mistake(path, "every worker dies: nobody is left", "a worker that lives", causes=(("trouble",),))
    elif policy == "shrink" and keys.collective == "all-reduce":
        yield from _has_a_schedule(keys, min(len(mortal), keys.workers - 1))


def _has_a_schedule(keys: Keys, n_mortal: int) -> Iterator[Mistake]:
    """Find algorithms that the survivors cannot run, however many of the mortal have died."""
    path, causes = ("on_failure", "policy"), (("algorithm",), ("workers",), ("trouble",))
    if keys.algorithm_name not in ALGORITHMS:
        message = f"the survivors have no schedule: {keys.algorithm_name} is one of so many workers"
        yield Mistake(path, message, "an algorithm of ringnet: ring", causes=causes)
        return
    if keys.collective not in ALGORITHMS[keys.algorithm_name].collectives or not knows_parameters(keys.algorithm):
        return  # which is told of it
    for n_workers in range(keys.workers - n_mortal, keys.workers):
        try:
            schedule_beside(keys, None, n_workers, keys.collective)
        except InputError as error:
            message = f"with {counted(n_workers, 'worker')} left: {error.faults[0].message}"
            yield Mistake(path, message, "algorithm: ring", causes=causes)
            return


def _spares(keys: Keys) -> Iterator[Mistake]:
    failure, places = keys.on_failure, n_places(keys)
    assert failure is not None
    given, placement = failure.spares or (), keys.network.placement
    taken = {*placement} if isinstance(placement, tuple) else {*range(keys.workers)}
    for number, place in enumerate(given):
        path = ("on_failure", "spares", number)
        if place in taken:
            message, causes = "this place is a worker's already", (("workers",), ("network", "placement"))
            yield Mistake(path, message, "a place without one", causes=causes)
        elif place in given[:number]:
            yield Mistake(path, "this worker stands by already", "each once")
        elif place >= places:
            right = in_flow({"network": {"places": place + 1}})
            cause = ("network", "places")
            yield Mistake(path, f"the network has {places} places", right, causes=(cause,))


def _beside_a_step(keys: Keys) -> Iterator[Mistake]:
    """Find workers in trouble that would go on computing."""
    for number, one in enumerate(keys.trouble):
        if keys.step is not None and one.worker is not None:
            message = "a training step knows trouble of links, not of workers, who would go on computing"
            yield Mistake(("trouble", number, "worker"), message, "link: 0->1", causes=(("step",),))


TROUBLE_CHECKS: tuple[Callable[[Keys], Iterator[Mistake]], ...] = (
    _each,
    _they_are_there,
    _of_links_without_regimes,
    _beside_chance,
    _beside_a_step,
    _policy,
)
