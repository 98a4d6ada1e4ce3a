"""Keys of jobs and of other traffic that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from ringnet.analysis.utilisation import overloads
from ringnet.collectives import ALGORITHMS
from ringnet.documents.document import Path
from ringnet.engines import ENGINES
from ringnet.errors import InputError, NetworkError, closest, some
from ringnet.networks import Network, walk
from ringnet.networks.behaviour import NEVER
from ringnet.payload import message_elements
from ringnet.payload.dtypes import DTYPES
from ringnet.scenario.checks.drawn import is_right
from ringnet.scenario.checks.mistake import Mistake, refused_by, unread
from ringnet.scenario.checks.network import nearest_link, shape_of
from ringnet.scenario.drawn import mean_of
from ringnet.scenario.keys.algorithm import knows_parameters
from ringnet.scenario.keys.base import MOST_WORKERS
from ringnet.scenario.keys.jobs_and_traffic import TrafficKeys
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.network import bursts, hardware, n_places
from ringnet.scenario.schedule import schedule_beside
from ringnet.units import counted, format_bytes

#: Bursts of one period on and off that are told apart, and those that a run may have.
MOST_BURSTS, MOST_IN_ALL = 10_000, 1_000_000
#: What the tables call traffic that is no job's.
RESERVED = "other traffic"


def _workers_are_not_too_many(keys: Keys) -> Iterator[Mistake]:
    """Find jobs that have, together with the scenario, more workers than any scenario may have."""
    places = n_places(keys)
    if keys.jobs and places > MOST_WORKERS:
        message = f"{places:,} workers in all, with those of the jobs"
        yield Mistake(("jobs", 0, "workers"), message, f"at most {MOST_WORKERS:,} in all", causes=(("workers",),))


def _jobs(keys: Keys) -> Iterator[Mistake]:
    for number, job in enumerate(keys.jobs):
        path = ("jobs", number)
        whole = partial(message_elements, job.message_bytes, DTYPES[keys.dtype])
        yield from refused_by((*path, "message"), whole, (("dtype",),))
        algorithm, collective = job.algorithm or keys.algorithm_name, job.collective or keys.collective
        if algorithm not in ALGORITHMS:
            message = f"a job needs an algorithm of its own beside {algorithm}"
            yield Mistake((*path, "algorithm"), message, "algorithm: ring", causes=(("algorithm",),))
            continue
        known = ALGORITHMS[algorithm].collectives
        if collective not in known:
            key = "collective" if job.collective else "algorithm"
            message = f"the algorithm {algorithm} has no {collective}"
            yield Mistake((*path, key), message, " or ".join(known), causes=(("algorithm",), ("collective",)))
            continue
        yield from _has_a_schedule(keys, number)


def _has_a_schedule(keys: Keys, number: int) -> Iterator[Mistake]:
    """Find parameters of an algorithm that do not fit the workers of a job."""
    job = keys.jobs[number]
    if not job.algorithm and not knows_parameters(keys.algorithm):  # which is told of the scenario's own
        return
    n_workers = job.n_workers
    try:
        schedule_beside(keys, job.algorithm, n_workers, job.collective or keys.collective)
    except InputError as error:
        causes = ("algorithm",), ("jobs", number, "workers")
        for fault in error.faults:
            message = ": ".join(filter(None, (f"with {counted(n_workers, 'worker')}: {fault.message}", fault.value)))
            right = "an algorithm of its own, algorithm: ring"
            yield Mistake(("jobs", number, "algorithm"), message, right, causes=causes)


def _names(keys: Keys) -> Iterator[Mistake]:
    """Find jobs and traffic that the tables could not tell apart; traffic of one name is one."""
    taken = {keys.name: "the scenario", RESERVED: "all that is no job's"}
    jobs = [("jobs", number, one.name or f"job {number + 1}") for number, one in enumerate(keys.jobs)]
    traffic = [
        ("background", number, one.name or f"traffic {number + 1}") for number, one in enumerate(keys.background)
    ]
    for key, number, name in [*jobs, *traffic]:
        if taken.get(name, "background") != "background":
            message = f"this name is that of {taken[name]}"
            yield Mistake((key, number, "name"), message, "a name of its own", causes=(("name",),))
        taken.setdefault(name, "background" if key == "background" else f"jobs[{number}]")


def _order(keys: Keys) -> Iterator[Mistake]:
    """Find jobs that follow none that there is, or wait for themselves."""
    names, follows = keys.job_names, {}
    for number, job in enumerate(keys.jobs):
        path = ("jobs", number, "after")
        for place, name in enumerate(job.follows):
            if name not in names:
                at = path if isinstance(job.after, str) else (*path, place)
                nearest = closest(name, names)
                causes = (("name",), ("jobs",))
                yield Mistake(at, "there is no such job", some(names), nearest, causes=causes, value=name)
        follows[names[number + 1]] = {name for name in job.follows if name in names}
    done = {keys.name}
    while ready := {name for name, before in follows.items() if name not in done and before <= done}:
        done |= ready
    for number, name in enumerate(names[1:]):
        if name not in done and follows[name] - done:
            yield Mistake(("jobs", number, "after"), "it would wait for itself: none of these jobs comes first")


def _faster_engine_is_alone(keys: Keys) -> Iterator[Mistake]:
    for key, given in (("jobs", keys.jobs), ("background", keys.background)):
        if given and keys.engine not in ("auto", "events"):
            message = f"{ENGINES[keys.engine].refusal}: {key} share the links"
            yield Mistake(("engine",), message, "events, or auto", causes=((key,),))


def _traffic(keys: Keys) -> Iterator[Mistake]:
    made = shape_of(keys)[0] if keys.background else None
    names = {} if made is None else dict.fromkeys(made.names)
    places = n_places(keys)
    for number, one in enumerate(keys.background):
        path = ("background", number)
        for key, place in (("from", one.start), ("to", one.end)):
            if place is not None and place >= places:
                yield Mistake((*path, key), "there is no such place", f"0 to {places - 1}", causes=(("workers",),))
        if made is not None:
            yield from _has_a_way(made, one, path)
        for place, name in enumerate(one.links or ()):
            if names and name not in names:
                message = "the traffic goes over a link that is not there"
                yield Mistake((*path, "links", place), message, some(names), nearest_link(name, names))
        if made is not None and one.links is not None and all(name in names for name in one.links):
            yield from _is_a_way(made, one.links, path)
        yield from _traffic_itself(one, path)
        yield from _not_too_many(keys, one, path)


def _has_a_way(network: Network, one: TrafficKeys, path: Path) -> Iterator[Mistake]:
    """Find traffic between places that nothing leads from one to the other."""
    if one.start is None or one.end is None or max(one.start, one.end) >= network.n_workers:
        return
    try:
        network.route(one.start, one.end)
    except NetworkError as error:
        yield from (
            Mistake((*path, "to"), fault.message, "places that a way joins", causes=(("network",),))
            for fault in error.faults
        )


def _is_a_way(network: Network, links: Sequence[str], path: Path) -> Iterator[Mistake]:
    """Find links that do not follow each other."""
    starts = network.ends(network.names.index(links[0]))
    ways = [walk(network, start, links)[1] for start in starts]
    if all(ways) and ways[0] is not None:
        yield Mistake((*path, "links"), ways[0].message, ways[0].right, causes=(("network",),))


def _not_too_many(keys: Keys, one: TrafficKeys, path: Path) -> Iterator[Mistake]:
    """Find bursts so small that their number in the shortest run is beyond what can be simulated."""
    if one.rate_Bps is None or one.burst_bytes == 0 or keys.workers == 1 or not is_right(keys):
        return
    least_s = keys.message_bytes / mean_of(keys.network.bandwidth_Bps)
    bursts = one.rate_Bps * least_s / one.burst_bytes
    if bursts > MOST_IN_ALL:
        message = f"at this rate some {bursts:.2g} bursts go out while the message moves, more than {MOST_IN_ALL:,}"
        least = format_bytes(-(-int(one.rate_Bps * least_s) // MOST_IN_ALL))
        yield Mistake((*path, "burst"), message, f"at least {least}", causes=(("message",),))


def _is_carried(keys: Keys) -> Iterator[Mistake]:
    """Find traffic that never ends and asks, now or later, for more than links carry: what shares them never ends."""
    if not any(one.rate_Bps for one in keys.background) or shape_of(keys)[0] is None or [*_traffic(keys)]:
        return
    try:
        network = hardware(keys).network
        flows = [bursts(one, number, network) for number, one in enumerate(keys.background, start=1)]
    except NetworkError:  # which is told of the network
        return
    for one in overloads(flows, network):
        if one.until_s != NEVER:
            continue
        *others, last = one.flows
        beside = " and ".join(f"background[{number}]" for number in others)
        message = f"{f'with {beside}, ' if others else ''}{one}"
        right = "a lower rate, or a stop"
        causes = ("network",), *(("background", number) for number in others)
        yield Mistake(("background", last, "rate"), message, right, causes=causes)


def _traffic_itself(one: TrafficKeys, path: Path) -> Iterator[Mistake]:
    if (one.links is None) == (one.start is None and one.end is None):
        yield Mistake(path, "traffic needs from and to, or links instead", "{from: 0, to: 4, burst: 1 MiB}")
    elif one.links is None and (one.start is None or one.end is None or one.start == one.end):
        yield Mistake(path, "traffic goes from one place to another", "from: 0, to: 4")
    if one.burst_bytes == 0:
        yield Mistake((*path, "burst"), "a burst has bytes", "1 MiB")
    if one.stop_s is not None and one.stop_s <= one.begin_s:
        yield Mistake((*path, "stop"), "the traffic would end before it begins", "a stop after its start")
    if (one.on_s is None) != (one.off_s is None):
        yield Mistake(path, "on and off stand together", "on: 1 ms, off: 3 ms")
    for key in ("on", "stop"):
        if one.rate_Bps is None and getattr(one, f"{key}_s") is not None:
            yield unread((*path, key), "without a rate there is one burst", (*path, "rate"), right="rate: 10 GB/s")
    if one.rate_Bps is not None and one.on_s is not None:
        bursts = one.rate_Bps * one.on_s / max(one.burst_bytes, 1)
        if not 1 <= bursts <= MOST_BURSTS:
            message = f"at this rate {bursts:.3g} bursts go out while it is on"
            yield Mistake((*path, "burst"), message, f"1 to {MOST_BURSTS:,} of them")


#: In the order in which they are told.
JOB_CHECKS: tuple[Callable[[Keys], Iterator[Mistake]], ...] = (
    _names,
    _workers_are_not_too_many,
    _jobs,
    _order,
    _faster_engine_is_alone,
    _traffic,
    _is_carried,
)
