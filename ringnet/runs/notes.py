"""What a report says beside its numbers: of the network, of measured links, of what another setting is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ringnet.analysis.utilisation import overloads
from ringnet.collectives import Schedule
from ringnet.documents.document import path_text
from ringnet.engines import ENGINES, Choice, Workers
from ringnet.errors import some
from ringnet.networks import BySize, Network, OverTime, best_order, find_links, placed, ring_load
from ringnet.networks.network import WINDOW_SLOTS
from ringnet.runs.parts import RunParts
from ringnet.runs.shapes import open_traits, unread_note
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.checks.collective import READABLE_ELEMENTS
from ringnet.scenario.files.links import INSIDE, NETWORK, link_files, profile_of
from ringnet.scenario.files.machines import estimate_note
from ringnet.scenario.files.network_file import OF_CHANNELS, read_found, reading_of
from ringnet.scenario.keys.algorithm import name_of, parameters_of
from ringnet.scenario.keys.kinds import FoundFile
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.network import NetworkKeys
from ringnet.scenario.keys.topology import cards_of, workers_per_host
from ringnet.scenario.measured_links import launch_of, setting_of
from ringnet.units import format_bytes, format_rate, format_seconds, format_size

if TYPE_CHECKING:
    from ringnet.analysis.calibration import Prediction, Profile

#: Algorithms in which each worker sends to the next one only.
RINGS = ("ring", "pipelined-ring")
#: Transfers of a run from which it is told which engine ran: of a smaller one nobody waits for it.
ENGINE_TOLD_FROM = 10_000
#: From how many times the load on another order is worth a word.
WORTH = 1.1
#: Transfers of a run whose sizes and routes are looked at for keys that change nothing.
MOST_LOOKED_AT = 200_000
#: So many things are told that a file leaves out.
MOST_LEFT_OUT = 3
#: What a model that is no ring is in words.
_SHAPES = {
    "tree": "measured as a tree",
    "switch": "measured as a sum in the switch,",
    "doubling": "measured as exchanges of the whole message, log2 N of them,",
}


def network_notes(scenario: Scenario, parts: RunParts) -> tuple[str, ...]:
    """Return a sentence on each thing that the network was taken to be; in a sweep they are said once."""
    return (
        *([estimated] if (estimated := estimate_note(scenario.base)) else []),
        *network_file_notes(scenario.network),
        *schedule_file_notes(scenario, parts),
        *order_file_notes(scenario),
        *behaviour_notes(parts.network, scenario.network),
        *rule_notes(parts.network, scenario.network),
        *traffic_notes(parts),
    )


def slices_together(schedule: Schedule, workers: Workers, sharing: str) -> str:
    """Say that parts do not follow each other, where sends are eager and links are shared fairly; else nothing."""
    parts = "all slices of a chunk" if schedule.parameters.get("n_slices", 1) != 1 else ""
    if "late" in schedule.parameters:  # whose partial sums are there before it starts, so that it need not wait
        parts = "all chunks of the late worker"
    if sharing != "fair" or workers.sends != "eager" or not parts:
        return ""
    said = f"eager sends hand over {parts} at once, and under fair sharing they arrive together: "
    if schedule.n_switches:
        return f"{said}network.sharing: fifo serves one after another"
    return f"{said}worker.sends: rendezvous sends one after another"


def run_notes(
    scenario: Scenario, parts: RunParts, chosen: Choice, sharing: str, *, has_states: bool
) -> tuple[str, ...]:
    """Return what a person should know of one run, beside what its network was taken to be."""
    notes = [*scenario.notes, *measured_link_notes(scenario, parts)]
    if parts.read.why_not:
        unread = open_traits(scenario.algorithm_name, parameters_of(scenario.algorithm))
        notes.append(unread_note(unread, parts.read.why_not))
    network = scenario.network
    if sharing == "fair" and network.sharing == "auto":
        if network.switching != "cut-through":
            notes.append(f"switching: {network.switching} is not read, for links are shared fairly")
        if network.packet is not None and not network.header:
            notes.append("packet is not read: links are shared fairly, and headers are left out")
    if together := slices_together(parts.schedule, parts.workers, sharing):
        notes.append(together)
    if scenario.engine not in ENGINES and parts.schedule.n_transfers >= ENGINE_TOLD_FROM:
        notes.append(f"engine: auto chose {chosen.name}, for {chosen.reason}")
    if parts.keep_values and not has_states and parts.source is not None:
        notes.append(f"states are left out: more than {READABLE_ELEMENTS} elements in all are not for reading")
    return tuple(notes)


def effect_notes(scenario: Scenario, parts: RunParts, end_s: float) -> Iterator[str]:
    """Yield a sentence on each key of the network that changed nothing in a run that ended at some time."""
    network, given = parts.network, scenario.network
    schedules = [(one.schedule, one.chunk_bytes, one.network) for one in (parts, *parts.others)]
    if sum(schedule.n_transfers for schedule, _, _ in schedules) > MOST_LOOKED_AT:
        return
    if given.routes == "ecmp" and not any(
        len(seen.equal_routes(*pair)) > 1
        for schedule, _, seen in schedules
        for step in schedule.steps()
        for pair in {*zip(step.src.tolist(), step.dst.tolist(), strict=True)}
    ):
        yield "network.routes: ecmp has nothing to draw from: who sends to whom here has one shortest route only"
    changes = [one.changes[0][0] for one in network.behaviours.values() if type(one) is OverTime and one.changes]
    # What goes wrong changes links, too, and says so itself.
    if changes and min(changes) >= end_s and not parts.traffic and not scenario.trouble:
        when = f"{format_seconds(min(changes))}, and the run ends at {format_seconds(end_s)}"
        yield f"no profile has an effect: the first change is at {when}"
    if "regimes" not in given.behaviours():
        return
    steps = [(step, sizes) for schedule, sizes, _ in schedules for step in schedule.steps() if len(step)]
    least = min((int(step.sizes(sizes).min()) for step, sizes in steps), default=0)
    unused = {
        piece.up_to_bytes
        for one in network.behaviours.values()
        if type(one) is BySize
        for piece in one.pieces
        if piece.up_to_bytes < least
    }
    if unused:
        sizes = " and ".join(f"up to {format_bytes(size)}" for size in sorted(unused))
        yield f"regimes {sizes} have no effect: the smallest transfer is {format_bytes(least)}"


def window_note(parts: RunParts) -> str:
    """Say which way a window that costs time holds back most, and what window would not; "" if none.

    Of links with one sender each: a window of W lets at most W / (W/8B + R) through, where B is the bandwidth of the
    way and R its latency there and back.
    """
    network, window = parts.network, parts.network.window
    is_looked_at = not network.behaviours and parts.schedule.n_transfers <= MOST_LOOKED_AT
    if window is None or window.bytes is None or not is_looked_at:
        return ""
    pairs: set[tuple[int, int]] = set()
    for step in parts.schedule.steps():
        longer = step.sizes(parts.chunk_bytes) > window.bytes
        pairs |= {*zip(step.src[longer].tolist(), step.dst[longer].tolist(), strict=True)}
    most, said = WORTH, ""
    for src, dst in sorted(pairs):
        way, back = [*network.route(src, dst)], [*network.route(dst, src)]
        rate_Bps, round_s = network.bandwidth_Bps[way].min(), network.latency_s[[*way, *back]].sum()
        through_Bps = window.bytes / (window.slot_bytes / rate_Bps + round_s)
        if rate_Bps / through_Bps > most:
            most, enough = rate_Bps / through_Bps, rate_Bps * round_s * WINDOW_SLOTS / (WINDOW_SLOTS - 1)
            said = (
                f"network.window: {format_bytes(window.bytes)} let at most {format_rate(through_Bps)} through from "
                f"{src} to {dst}, {format_seconds(round_s)} there and back: {format_size(enough)} would let through "
                f"what the links carry, {format_rate(rate_Bps)}"
            )
    return said


def network_file_notes(keys: NetworkKeys) -> list[str]:
    """Return a sentence on what the file leaves out, and one on what it does not say."""
    if not isinstance(keys.file, FoundFile):
        return []
    reading = read_found(keys.file)
    left_out = "; ".join(reading.left_out[:MOST_LEFT_OUT])
    notes = [f"network.file leaves out {left_out}"] if left_out else []
    more = [f"{len(reading.left_out) - MOST_LEFT_OUT} more left out"] * (len(reading.left_out) > MOST_LEFT_OUT)
    more += ["what is assumed where the file says nothing"] * bool(reading.assumed)
    return notes + ([f"network.file: `ringnet network {keys.file}` says {' and '.join(more)}"] if more else [])


def schedule_file_notes(scenario: Scenario, parts: RunParts) -> list[str]:
    """Return a sentence where a message is of a size that a schedule's file says it is not for."""
    told, size = parts.schedule.parameters, scenario.message_bytes
    least, most = (told.get(name) for name in ("min_bytes", "max_bytes"))
    is_below = isinstance(least, int) and size < least
    is_above = isinstance(most, int) and size > most
    if not (is_below or is_above):
        return []
    span = [f"from {format_bytes(least)}"] if isinstance(least, int) else []
    span += [f"up to {format_bytes(most)}"] if isinstance(most, int) else []
    here = f"this one of {format_bytes(size)} would go another way"
    return [f"algorithm.file: the schedule says it is for messages {' '.join(span)}: {here}"]


def order_file_notes(keys: Keys) -> list[str]:
    """Return a sentence on the channels of the file that are not taken."""
    reading = reading_of(keys.network)
    if reading is None or keys.algorithm_name == OF_CHANNELS or len(reading.orders) == 1:
        return []
    others = f"of {len(reading.orders)} channels in the file the first is the ring"
    return [f"network.order: {others}; algorithm: {OF_CHANNELS} takes them all"]


def rule_notes(network: Network, given: NetworkKeys) -> Iterator[str]:
    """Yield a sentence on each rule for links that is for those inside groups and between them alike."""
    rules = [name for name in given.links if "*" in name]
    groups = {} if network.find_groups is None or not rules else network.find_groups().get("groups", {})
    for name in rules if groups else ():
        ends = [network.ends(link) for link in find_links(network, [name])[name]]
        switches = [pair for pair in ends if all(not end.isdecimal() for end in pair)]
        inside = sum(groups[start] == groups[end] for start, end in switches)
        if 0 < inside < len(switches):
            yield (
                f"network.links.{name}: {inside} of its {len(switches)} links between switches are inside groups, too; "
                "g0/*->g1/* is from one group to another"
            )


def behaviour_notes(network: Network, given: NetworkKeys) -> list[str]:
    """Return a sentence on each behaviour of the network that is for some links only, since the others differ."""
    notes = []
    differing = (~network.sources.as_the_rule).nonzero()[0].tolist()
    for key in given.behaviours():
        others = [link for link in differing if link not in network.behaviours]
        if others:
            names = some(network.names[link] for link in others)
            which = f"{len(others)} of {network.n_links} links differ in bandwidth or latency and have none"
            notes.append(f"network.{key}: {which}: {names}")
    return notes


def traffic_notes(parts: RunParts) -> list[str]:
    """Return a sentence on traffic that asks, in the mean, for more than a link carries, until one of both changes."""
    notes = []
    all_flows = parts.make_site().flows
    for one in overloads(all_flows, parts.network):
        flows = [all_flows[number][0] for number in one.flows]
        until = "it stops" if {flow.stop_s for flow in flows} == {one.until_s} else format_seconds(one.until_s)
        notes.append(f"{' and '.join(flow.name for flow in flows)}: {one} until {until}")
    return notes


def measured_link_notes(scenario: Scenario, parts: RunParts) -> list[str]:
    """Return a sentence on each thing to know of the profiles that a scenario runs on."""
    return list(_sentences(scenario, parts)) if link_files(scenario.network) and scenario.workers > 1 else []


def ring_equivalents(scenario: Scenario, sizes: Sequence[int], *, in_rate: bool = False) -> list[str]:
    """Return for each size in what the measured links are a ring's equivalent only, in words; "" where in nothing.

    They make a ring take what was measured on something else, so that nothing else on them takes what it would.

    Parameters
    ----------
    scenario : Scenario
        Of one N.
    sizes : sequence of int
        Messages, in bytes.
    in_rate : bool
        Whether only that counts of which the bandwidth is an equivalent, and with it every bound.
    """
    found = [""] * len(sizes)
    for path in (INSIDE, NETWORK) if scenario.workers > 1 else ():
        profile = profile_of(scenario.network, path)
        if profile is not None:
            found_there = _predicted(profile, scenario, sizes)
            hops_differ = found_there.setting.n_nodes > 1 and found_there.setting.per_node > 1
            is_mean = hops_differ and workers_per_host(scenario.network) is None and not in_rate
            ring = "hops inside hosts and between them are taken to be alike" if is_mean else ""
            algorithms = [profile.family.ways[way].algorithm for way in found_there.way.tolist()]
            own = [ring if one == "ring" else _SHAPES[one].rstrip(",") for one in algorithms]
            found = [one or before for one, before in zip(own, found, strict=True)]
    return found


def measured_link_labels(scenario: Scenario) -> dict[str, bool | str]:
    """Return of measured links whether N or the message is outside of that, and in what they are an equivalent."""
    profiles = (profile_of(scenario.network, path) for path in (NETWORK, INSIDE))
    profile = next(filter(None, profiles), None)
    if profile is None:
        return {}
    reason = ring_equivalents(scenario, [scenario.message_bytes], in_rate=True)[0]
    equivalent = {"equivalent": reason} if reason else {}
    return {
        "is_beyond": bool(_predicted(profile, scenario, [scenario.message_bytes]).is_beyond[0]),
        **equivalent,
    }


def _predicted(profile: Profile, scenario: Scenario, sizes: Sequence[int]) -> Prediction:
    from ringnet.analysis.calibration import predict  # noqa: PLC0415 -- few scenarios have measured links

    message_bytes = np.maximum(np.array(sizes, dtype=np.float64), 1.0)
    return predict(profile, setting_of(scenario, profile), message_bytes)


def _sentences(scenario: Scenario, parts: RunParts) -> Iterator[str]:
    for path in (NETWORK, INSIDE):
        profile = profile_of(scenario.network, path)
        if profile is not None:
            yield from (f"{path_text(path)}: {text}" for text in _about(profile, scenario))
            break  # of two, the one between hosts tells more
    if parts.make_site().too_slow_inside:
        yield (
            "network.link: on a way between hosts the links inside them take longer than was measured for the whole: "
            "those between take no time"
        )


def _about(profile: Profile, scenario: Scenario) -> Iterator[str]:
    found = _predicted(profile, scenario, [scenario.message_bytes])
    yield _extent(profile, found, scenario)
    yield from _made_of(profile, found, scenario)
    yield from _measured_otherwise(profile, scenario)
    yield from profile.cautions([found.setting])


def _extent(profile: Profile, found: Prediction, scenario: Scenario) -> str:
    distance = found.distance[0]
    where = f"extrapolated beyond what was measured ({distance})" if distance else "within what was measured"
    size, n = format_bytes(scenario.message_bytes), found.setting
    span = f"{format_seconds(found.low_s[0])} to {format_seconds(found.high_s[0])}"
    return f"{size} at {n} is {where}, {extent(profile)}: alone on such links a ring takes {span}, nine times in ten"


def extent(profile: Profile) -> str:
    """Return in words what a profile was measured at."""
    counts = sorted({setting.n_workers for setting in profile.settings})
    n = f"N={counts[0]}" if len(counts) == 1 else f"N={counts[0]} to {counts[-1]}"
    return f"{n}, {format_bytes(profile.smallest_bytes)} to {format_bytes(profile.largest_bytes)}"


def _made_of(profile: Profile, found: Prediction, scenario: Scenario) -> Iterator[str]:
    algorithm, given_s = profile.family.ways[int(found.way[0])].algorithm, scenario.worker.launch_s
    if algorithm != "ring":
        yield f"{_SHAPES[algorithm]} at this size: the links make a ring take as long as that did"
    launch = format_seconds(launch_of(scenario, scenario.message_bytes))
    yield (
        f"each collective of this size takes {launch} to launch, as was measured"
        if given_s is None
        else f"worker.launch, {launch}, stands in place of what was measured"
    )


def _measured_otherwise(profile: Profile, scenario: Scenario) -> Iterator[str]:
    measured_as, asked = profile.collective.replace("_", "-"), scenario.collective
    reason = ring_equivalents(scenario, [scenario.message_bytes])[0]
    if scenario.algorithm_name != "ring" and reason:
        whose = f"the links are such that a ring takes what was measured ({reason})"
        yield f"{whose}: {scenario.algorithm_name} on them is a guess"
    cards = cards_of(scenario.network)
    if cards > 1:
        yield (
            f"what the cards of a node had together is parted among its {cards}: one ring uses one card of each node, "
            "rings on as many channels as cards use all"
        )
    if measured_as != asked:
        yield f"measured on {measured_as}: for {asked} its hops are taken to be the same"


def order_advice(scenario: Scenario, network: Network) -> str | None:
    """Say by how much another order of the ring would unload the busiest link; None where it would not, or by little.

    Of one run on ``network``: it looks for the best order, which takes half a second for hundreds of workers.
    """
    if name_of(scenario.algorithm) not in RINGS or scenario.network.order != "numbered":
        return None
    load, n_bytes = ring_load(network, scenario.message_bytes), scenario.message_bytes
    times = load / ring_load(placed(network, best_order(network, n_bytes, for_load=True)), n_bytes) if load else 1.0
    if times < WORTH:
        return None
    return (
        f"this order of the ring puts {times:.3g} times as much on the busiest link as the best one would: "
        "network.order: best"
    )
