"""One run: its parts are built once, and its links know where their numbers come from."""

from __future__ import annotations

from collections import Counter

import pytest

from ringnet.networks import Inside, LinkChange, LinkSource, change_links, make_network
from ringnet.runs import parts as parts_of_runs
from ringnet.runs.parts import build
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads

SCENARIO = """\
scenario_version: 1
workers: 4
message: 1 MiB
network: {topology: switch, bandwidth: 50 GB/s, latency: 1 us}
"""
RULE, SCALED, INSIDE, OWN = LinkSource


@pytest.fixture
def counted(monkeypatch):
    """How often each part of a run is made."""
    count = Counter()
    for name in ("hardware", "schedule_of", "build_source", "build_workers"):
        make = getattr(parts_of_runs, name)

        def counting(*given, name=name, make=make):
            count[name] += 1
            return make(*given)

        monkeypatch.setattr(parts_of_runs, name, counting)
    return count


@pytest.mark.parametrize("change", ["payload=full", "engine=recurrence", "workers=128", "network.order=best"])
def test_a_plain_run_makes_each_part_once(counted, ringnet, tmp_path, change):
    (tmp_path / "s.yaml").write_text(SCENARIO)
    given = ["--set", change, "--set", "network.topology=fully-connected", "--no-plots"]
    done = ringnet("run", tmp_path / "s.yaml", *given, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert counted == dict.fromkeys(("hardware", "schedule_of", "build_source", "build_workers"), 1)


def test_a_check_makes_each_part_once(counted, ringnet, tmp_path):
    (tmp_path / "s.yaml").write_text(SCENARIO)
    assert ringnet("check", tmp_path / "s.yaml").exit_code == 0
    assert set(counted.values()) == {1}


def sources(network):
    found = network.sources
    return list(map(LinkSource, found.bandwidth)), list(map(LinkSource, found.latency))


def test_links_know_where_their_numbers_come_from():
    ring = make_network("ring", 3, 50e9, 1e-6)
    assert sources(ring) == ([RULE] * 3, [RULE] * 3)
    changed = change_links(ring, {"0->1": LinkChange(5e9), "1->2": LinkChange(50e9, 2e-6)})
    assert sources(changed) == ([OWN, RULE, RULE], [RULE, OWN, RULE])


def test_trunks_are_a_multiple_of_the_rule():
    narrow = make_network("leaf-spine", 4, 50e9, 1e-6, leaves=2, oversubscription=4)
    assert sources(narrow) == ([RULE] * 8 + [SCALED] * 4, [RULE] * 12)
    alike = make_network("leaf-spine", 4, 50e9, 1e-6, leaves=2, spines=2)
    assert set(sources(alike)[0]) == {RULE}


def test_links_inside_hosts_keep_to_themselves_whatever_their_numbers():
    """Regimes of the network are for its own links: a link inside with the same numbers is none of them."""
    hosts = make_network("nodes", 4, 50e9, 1e-6, workers_per_host=2, inside=Inside("switch", 50e9, 1e-6))
    between = [(name.endswith("->switch") and "/nic" in name) or name.startswith("switch->") for name in hosts.names]
    for source, is_between in zip(sources(hosts)[0], between, strict=True):
        assert source == (RULE if is_between else INSIDE)
    assert 0 < sum(between) < hosts.n_links
    nodes = "topology: nodes, workers_per_host: 2, inside: {bandwidth: 50 GB/s, latency: 1 us}"
    regimes = "regimes: [{up_to: 8 KiB, bandwidth: 5 GB/s, latency: 2 us}]"
    text = SCENARIO.replace("topology: switch", f"{nodes}, {regimes}")
    network = build(loads(text)).network
    assert [link in network.behaviours for link in range(network.n_links)] == between


RACKS = "topology: leaf-spine, leaves: 2, bandwidth: 25 GB/s, latency: 1 us, routes: ecmp"
DRAGONFLY = "topology: dragonfly, groups: 3, routers_per_group: 2, hosts_per_router: 2, bandwidth: 1 GB/s, latency: 0 s"
PRIVATE = "topology: ring, bandwidth: 50 GB/s, latency: 2 us"


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (f"{RACKS}, spines: 1", "ecmp has nothing to draw from"),
        (f"{RACKS}, spines: 2", ""),
        (f"{PRIVATE}, profile: [{{at: 10 s, bandwidth: 1 GB/s}}]", "no profile has an effect: the first change is at"),
        (f"{PRIVATE}, profile: [{{at: 10 us, bandwidth: 1 GB/s}}]", ""),
        (
            f"{PRIVATE}, regimes: [{{up_to: 1 KiB, bandwidth: 1 GB/s, latency: 1 us}}]",
            "regimes up to 1 KiB have no effect: the smallest transfer is 128 KiB",
        ),
        (f"{PRIVATE}, regimes: [{{up_to: 128 KiB, bandwidth: 1 GB/s, latency: 1 us}}]", ""),
        (f"{DRAGONFLY}, links: {{'g*->g*': {{bandwidth: 1 GB/s}}}}", "6 of its 12 links between switches are"),
        (f"{DRAGONFLY}, links: {{'g0/*->g1/*': {{bandwidth: 1 GB/s}}}}", ""),
    ],
)  # fmt: skip
def test_a_key_of_the_network_that_changes_nothing_or_too_much_is_named(network, said):
    text = f"{{scenario_version: 1, workers: 8, message: 1 MiB, payload: none, network: {{{network}}}}}"
    said_of = ("effect", "nothing to draw", "inside groups")
    notes = [note for note in simulate(loads(text)).notes if any(words in note for words in said_of)]
    assert len(notes) == bool(said)
    assert all(said in note for note in notes)


def test_trouble_that_comes_too_late_is_not_taken_for_a_profile():
    trouble = "trouble: [{link: 0->1, down: {at: 1 s, for: 1 s}}]"
    text = f"{{scenario_version: 1, workers: 4, message: 1 MiB, payload: none, network: {{{PRIVATE}}}, {trouble}}}"
    (note,) = [note for note in simulate(loads(text)).notes if "effect" in note]
    assert note.startswith("trouble has no effect: it begins at 1 s")
