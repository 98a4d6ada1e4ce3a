"""What a report says of measured links: how far they may be trusted in this run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ringnet.analysis.calibration import Prediction, Profile, n_hops, predict
from ringnet.documents.document import path_text
from ringnet.scenario.build.scenario import Scenario
from ringnet.scenario.files.link_profile import INSIDE, NETWORK, link_files, measured, profile_of, setting_of
from ringnet.scenario.keys.topology import workers_per_host
from ringnet.scenario.network import NetworkShape, n_places, shape
from ringnet.units import format_bytes, format_seconds

#: What a model that is no ring is in words.
_SHAPES = {
    "tree": "measured as a tree",
    "doubling": "measured as exchanges of the whole message, log2 N of them,",
}


def about_links(scenario: Scenario) -> list[str]:
    """Return a sentence on each thing to know of the profiles that a scenario runs on."""
    return list(_sentences(scenario)) if link_files(scenario.network) and scenario.workers > 1 else []


def about_others(scenario: Scenario) -> list[str]:
    """Return what to know where other algorithms run on links that were measured."""
    if not link_files(scenario.network):
        return []
    text = "the links are such that a ring takes what was measured: what other algorithms take on them is a guess"
    return [f"{path_text(NETWORK)}: {text}"]


def links_label(scenario: Scenario) -> dict[str, bool]:
    """Return whether N or the message is outside what the links of the network were measured at, where they were."""
    profiles = (profile_of(scenario.network, path) for path in (NETWORK, INSIDE))
    profile = next(filter(None, profiles), None)
    return {} if profile is None else {"is_beyond": bool(_predicted(profile, scenario).is_beyond[0])}


def _predicted(profile: Profile, scenario: Scenario) -> Prediction:
    size = np.array([max(scenario.message_bytes, 1)], dtype=np.float64)
    return predict(profile, setting_of(scenario, profile), size)


def _sentences(scenario: Scenario) -> Iterator[str]:
    for path in (NETWORK, INSIDE):
        profile = profile_of(scenario.network, path)
        if profile is not None:
            yield from (f"{path_text(path)}: {text}" for text in _about(profile, scenario))
            break  # of two, the one between hosts tells more
    found = measured(shape(NetworkShape(scenario.network), n_places(scenario)), scenario)
    if found.too_slow_inside:
        yield (
            "network.link: on a way between hosts the links inside them take longer than was measured for the whole: "
            "those between take no time"
        )


def _about(profile: Profile, scenario: Scenario) -> Iterator[str]:
    found = _predicted(profile, scenario)
    yield _extent(profile, found, scenario)
    yield from _made_of(profile, found)
    yield from _measured_otherwise(profile, found, scenario)
    yield from profile.cautions([found.setting])


def _extent(profile: Profile, found: Prediction, scenario: Scenario) -> str:
    where = "extrapolated beyond" if found.is_beyond[0] else "within"
    size, n = format_bytes(scenario.message_bytes), found.setting
    span = f"{format_seconds(found.low_s[0])} to {format_seconds(found.high_s[0])}"
    return (
        f"{size} at {n} is {where} what was measured, {extent(profile)}: alone on such links a ring takes {span}, nine "
        "times in ten"
    )


def extent(profile: Profile) -> str:
    """Return in words what a profile was measured at."""
    counts = sorted({setting.n_workers for setting in profile.settings})
    n = f"N={counts[0]}" if len(counts) == 1 else f"N={counts[0]} to {counts[-1]}"
    return f"{n}, {format_bytes(profile.smallest_bytes)} to {format_bytes(profile.largest_bytes)}"


def _made_of(profile: Profile, found: Prediction) -> Iterator[str]:
    regime = profile.regimes[int(found.regime[0])]
    if regime.model != "ring":
        yield f"{_SHAPES[regime.model]} at this size: the links make a ring take as long as that did"
    elif regime.launch_s > 0:
        hops = f"{n_hops(profile, found.setting):.0f} hops"
        yield f"the launch, {format_seconds(regime.launch_s)} for each collective, is spread over the {hops} of a ring"


def _measured_otherwise(profile: Profile, found: Prediction, scenario: Scenario) -> Iterator[str]:
    is_ring = profile.regimes[int(found.regime[0])].model == "ring"
    measured_as, asked = profile.collective.replace("_", "-"), scenario.collective
    if scenario.algorithm_name != "ring":
        yield f"the links are such that a ring takes what was measured: {scenario.algorithm_name} on them is a guess"
    per_host = workers_per_host(scenario.network)
    hosts_differ = per_host is not None and scenario.workers > per_host
    if is_ring and hosts_differ:
        yield (
            "a simulated ring over hosts overlaps its hops inside with those between, where the fit adds them up, and "
            "may take less than was measured; topology: switch keeps to it"
        )
    if measured_as != asked:
        yield f"measured on {measured_as}: for {asked} its hops are taken to be the same"
