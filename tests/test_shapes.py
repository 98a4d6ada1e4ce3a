"""Algorithms that see the network: what is read off it, what that is worth, and what is said of it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis.answer import answer
from ringnet.analysis.winners import advice as advise
from ringnet.api.questions import blame
from ringnet.collectives import ALGORITHMS
from ringnet.errors import InputError
from ringnet.networks import TRAITS, Inside, Network, NetworkShape, make_network, placed
from ringnet.reporting.plots import STUDY_PLOTS
from ringnet.runs import advice
from ringnet.runs.advice import idle_advice
from ringnet.runs.parts import build
from ringnet.runs.simulate import simulate
from ringnet.scenario import Scenario, loads
from ringnet.study.blame import plan_blame
from ringnet.study.compare import compare_parts, plan_comparison
from ringnet.study.nccl import tuner_text
from ringnet.study.parts import PartOptions
from ringnet.study.whatif import WhatIfPlan, changed_scenarios, whatif_parts
from ringnet.units import format_seconds

INSIDE = Inside("switch", 300e9, 1e-6)


def hosts(n_workers: int, workers_per_host: int, nics: int) -> Network:
    parameters = {"workers_per_host": workers_per_host, "nics": nics, "inside": INSIDE}
    return make_network("nodes", n_workers, 3.7e9, 5e-6, **parameters)


def torus(*sides: int) -> Network:
    return make_network("torus", math.prod(sides), 200e9, 1e-9, sides=sides)


# ------------------------------------------------------------------------------------------- what a network says


@pytest.mark.parametrize(
    ("network", "places", "expected"),
    [
        (hosts(8, 4, 2), None, (4, 2, None)),
        (hosts(8, 4, 3), None, (4, 3, None)),
        # Half of each host: the second worker of a card stays out, so that each has a card of its own.
        (hosts(8, 4, 2), [0, 2, 4, 6], (2, 2, None)),
        (hosts(8, 4, 2), [6, 7, 4, 5, 0, 1, 2, 3], (4, 2, None)),
        # Two workers at one card and one at the other, and the other way round: no cards that channels could take.
        (hosts(8, 4, 2), [0, 1, 2, 4, 6, 7], (3, None, None)),
        (hosts(8, 4, 4), [0, 4, 1, 5], (None, None, None)),
        (hosts(8, 4, 4), [0, 1, 2, 4], (None, None, None)),
        (hosts(8, 4, 4), [0, 1, 4, 5, 2, 3], (None, None, None)),
        (torus(2, 8), None, (None, None, (2, 8))),
        (torus(4, 4), [*range(8)], (None, None, (4, 2))),
        (torus(4, 4), [0, 2, 1, 3], (None, None, None)),
        (torus(4, 4), [*range(1, 16), 0], (None, None, None)),
        (make_network("leaf-spine", 8, 1e9, 0.0, leaves=2), None, (None, None, None)),
    ],
)
def test_hosts_cards_and_sides_are_known_wherever_the_workers_sit(
    network: Network, places: list[int] | None, expected: tuple[object, ...]
) -> None:
    shape = (network if places is None else placed(network, places)).shape
    assert (shape.workers_per_host, shape.cards_per_host, shape.sides) == expected


@given(st.permutations(range(12)), st.integers(2, 12), st.sampled_from([(2, 1), (3, 2), (4, 4), (6, 3)]))
def test_whatever_the_places_what_is_said_is_so(seats: list[int], n_workers: int, host: tuple[int, int]) -> None:
    """By the routes alone: workers of one host reach each other without a card, and others by the same one each."""
    network = placed(hosts(12, *host), seats[:n_workers])
    shape = network.shape

    def cards(src: int, dst: int) -> list[str]:
        ends = (network.ends(link)[0] for link in network.route(src, dst))
        return [end for end in ends if "nic" in end]

    alone = [[not cards(one, other) for other in range(n_workers)] for one in range(n_workers)]
    per_host = shape.workers_per_host
    by_number = [
        [one // g == other // g for other in range(n_workers)] for g in [per_host or 1] for one in range(n_workers)
    ]
    assert (alone == by_number) == (per_host is not None)
    if per_host is None or per_host == n_workers or shape.cards_per_host is None:
        return
    for worker in range(n_workers):
        far = (worker + per_host) % n_workers
        first = worker // per_host * per_host
        place, each = (
            worker - first,
            [cards(first + at, (first + at + per_host) % n_workers)[0] for at in range(per_host)],
        )
        assert list(dict.fromkeys(each)).index(cards(worker, far)[0]) == place * shape.cards_per_host // per_host


def test_every_trait_of_a_parameter_is_one_that_networks_have() -> None:
    named = {one.trait for algorithm in ALGORITHMS.values() for one in algorithm.parameters.values()} - {""}
    assert named == TRAITS.keys()


@pytest.mark.parametrize(
    ("shape", "trait", "expected"),
    [
        (NetworkShape(8, 4, 4), "workers_per_host", 4),
        (NetworkShape(8, 8, 4), "workers_per_host", None),  # all on one host
        (NetworkShape(8, 1, 1), "workers_per_host", None),
        (NetworkShape(8, 4, 1), "channels", None),  # one card: as many channels as without hosts
        (NetworkShape(8, 4, 4), "channels", 4),
        (NetworkShape(16, sides=(2, 8)), "rows", 8),
        (NetworkShape(64, sides=(4, 2, 8)), "rows", 8),
        (NetworkShape(16, sides=(2, 8)), "powers_of_two", (8, 2)),
        (NetworkShape(12, sides=(3, 4)), "powers_of_two", None),
    ],
)
def test_what_parameters_are_read_off_a_shape(shape: NetworkShape, trait: str, expected: object) -> None:
    assert TRAITS[trait].read(shape) == expected


# ------------------------------------------------------------------------------------------ channels over all cards


@pytest.mark.parametrize("nics", [2, 3, 4, 8])
@pytest.mark.parametrize("name", ["channel-ring", "binary-tree", "double-binary-tree"])
def test_channel_c_goes_over_card_c(name: str, nics: int) -> None:
    """Of a ring all that comes in by it; of trees all that crosses: each card has as many of them as any other."""
    n_workers, per_host = 24, 8
    schedule = ALGORITHMS[name].build(n_workers, "all-reduce", n_channels=nics, node_size=per_host)
    pair = {"channel-ring": 1, "binary-tree": 2, "double-binary-tree": 4}[name]  # channels of a ring, tree or pair
    rows = np.concatenate([np.stack((step.src, step.dst, step.channel)) for step in schedule.steps()], axis=1)
    src, dst, channel = rows[:, rows[0] // per_host != rows[1] // per_host]
    card = dst % per_host * nics // per_host
    assert (card == channel // pair).all()
    assert {*card.tolist()} == {*range(nics)}
    if name != "channel-ring":
        assert (src % per_host * nics // per_host == channel // pair).all()


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_in_channels_too_a_tree_has_its_root_where_it_is_told(collective: str) -> None:
    schedule = ALGORITHMS["binary-tree"].build(12, collective, root=6, n_channels=4, node_size=4)
    ends = np.concatenate([step.dst if collective == "broadcast" else step.src for step in schedule.steps()])
    assert sorted({*ends.tolist()}) == [worker for worker in range(12) if worker != 6]


# ------------------------------------------------------------------------------------- runs, by default and as set

#: Two hosts of four workers and four cards, 1 GB: the issue's numbers, as simulated when the shape was set by hand.
HOSTS = """\
scenario_version: 1
workers: 8
message: 1 GB
payload: none
network:
  topology: nodes
  workers_per_host: 4
  nics: 4
  inside: {shape: switch, bandwidth: 300 GB/s, latency: 1 us}
  bandwidth: 3.7 GB/s
  latency: 5 us
  sharing: fair
report: {plots: []}
"""
TORUS = """\
scenario_version: 1
workers: 16
message: 64 MiB
payload: none
network: {topology: torus, sides: [2, 8], bandwidth: 200 GB/s, latency: 1 ns}
report: {plots: []}
"""


def summary(text: str, *changes: str) -> dict[str, object]:
    return dict(simulate(loads(text, [*changes])).summary)


@pytest.mark.parametrize(
    ("text", "algorithm", "before_ms", "by_hand_ms", "shape"),
    [
        (HOSTS, "hierarchical", 206.1, 72.6, "node_size 4: workers of a host"),
        (HOSTS, "channel-ring", 473.0, 118.3, "one for each card of a host, node_size 4: workers of a host"),
        (HOSTS, "double-binary-tree", 547.3, 280.3, "n_channels 4: one for each card of a host"),
        (TORUS, "torus-ring", 1.026, 0.5243, "n_rows 8: rows of the network"),
    ],
)
def test_by_default_it_takes_no_more_than_with_the_shape_of_the_network(
    text: str, algorithm: str, before_ms: float, by_hand_ms: float, shape: str
) -> None:
    row = summary(text, f"algorithm={algorithm}")
    assert float(str(row["makespan_s"])) <= by_hand_ms * 1e-3 * 1.001 < before_ms * 1e-3
    assert shape in str(row["shape"])
    assert ("shape", row["shape"]) in answer(row)


def test_what_is_set_stays() -> None:
    row = summary(HOSTS, "algorithm={name: double-binary-tree, node_size: 4, n_channels: 1}")
    assert row["makespan_s"] == pytest.approx(280.3e-3, rel=1e-3)
    assert "shape" not in row
    half = simulate(loads(HOSTS, ["algorithm={name: channel-ring, node_size: 2}"])).made_from[0].schedule
    assert (half.parameters["node_size"], half.parameters["n_channels"]) == (2, 4)


@pytest.mark.parametrize(
    ("algorithm", "change", "node_size"),
    [
        ("hierarchical", "network.placement=interleaved", 2),
        ("channel-ring", "network.order=[0, 4, 1, 5, 2, 6, 3, 7]", 1),
    ],
)
def test_where_workers_are_not_numbered_host_by_host_no_shape_is_taken_and_it_is_said(
    algorithm: str, change: str, node_size: int
) -> None:
    result = simulate(loads(HOSTS, [f"algorithm={algorithm}", change]))
    assert result.made_from[0].schedule.parameters["node_size"] == node_size  # as on any network
    assert "shape" not in result.summary
    assert any(note.startswith("workers are not numbered host by host: ") for note in result.notes)


def test_half_of_each_host_is_a_shape_too_and_each_job_has_its_own() -> None:
    places = ["network.places=16", "network.placement=[0, 1, 4, 5, 8, 9, 12, 13]", "algorithm=channel-ring"]
    jobs = ["jobs=[{workers: [2, 3, 6, 7], message: 1 MB, algorithm: hierarchical}]", "message=1 MB"]
    result = simulate(loads(HOSTS, [*places, *jobs]))
    own, other = (run.schedule.parameters for run in result.made_from)
    assert (own["node_size"], own["n_channels"], other["node_size"]) == (2, 2, 2)


def test_the_numbers_come_out_in_channels() -> None:
    for algorithm in ("channel-ring", "binary-tree", "double-binary-tree", "hierarchical"):
        row = summary(HOSTS, f"algorithm={algorithm}", "message=4 KB", "payload=full")
        assert row["sum_ok"] is True, algorithm


# -------------------------------------------------------------------------------------- what idles, and what would not


def advised(text: str, *changes: str) -> str | None:
    scenario = loads(text, [*changes])
    parts = build(scenario)
    return idle_advice(scenario, parts, simulate(scenario, parts=parts))


@pytest.mark.parametrize(
    ("text", "algorithm", "said"),
    [
        (
            HOSTS,
            "ring",
            "uses 1 of 4 cards of a host each way: channel-ring (node_size 4, n_channels 4) takes",
        ),
        (HOSTS, "bidirectional-ring", "uses 2 of 4 cards of a host each way: channel-ring (node_size 4, n_"),
        (HOSTS, "{name: double-binary-tree, n_channels: 1}", "uses 2 of 4 cards of a host each way: double-"),
        (TORUS, "ring", "uses 24 of 48 links: swing (dims 8x2) takes 377.5 us, not 629.2 us"),
        (TORUS, "torus-ring", "links: swing (dims 8x2) takes 377.5 us, not 524.3 us"),
    ],
)
def test_an_algorithm_that_is_named_for_idle_cards_is_as_fast_as_is_said(text: str, algorithm: str, said: str) -> None:
    """Pasted as it stands, the label is answered with what to write: that is simulated."""
    sentence = str(advised(text, f"algorithm={algorithm}"))
    assert said in sentence
    label, took, instead = re.findall(r": (.*) takes (.*), not (.*)$", sentence)[0]
    with pytest.raises(InputError) as pasted:
        loads(text, [f"algorithm={label}"])
    (mapping,) = re.findall(r"right would be: (?:--set )?(?:'?algorithm=)?(\{.*\})", str(pasted.value))
    again = summary(text, f"algorithm={mapping}")["makespan_s"]
    assert format_seconds(float(str(again))) == took
    assert format_seconds(float(str(summary(text, f"algorithm={algorithm}")["makespan_s"]))) == instead


@pytest.mark.parametrize(
    "changes",
    [
        ["algorithm=channel-ring"],  # all cards are in use
        ["algorithm=ring", "message=1 KB"],  # latency alone: nothing is gained
        ["algorithm=ring", "network.nics=1"],
        ["algorithm=ring", "workers=4"],  # one host
        ["algorithm=ring", "network.placement=interleaved"],  # nobody knows a better shape
    ],
    ids=str,
)
def test_where_nothing_idles_or_nothing_would_be_gained_nothing_is_said(changes: list[str]) -> None:
    assert advised(HOSTS, *changes) is None


def test_what_would_take_long_to_simulate_again_is_named_without_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advice, "FREE_S", 0.0)
    sentence = str(advised(HOSTS, "algorithm=ring"))
    assert sentence == (
        "this uses 1 of 4 cards of a host each way; channel-ring (node_size 4, n_channels 4) is made for all of them"
    )


# ------------------------------------------------------------------------------------------------------- compare


def test_a_comparison_says_which_shapes_it_measured_and_where_eager_slices_mislead() -> None:
    text = HOSTS + "sweep: {over: {message: [1 MB, 100 MB]}}\n"
    found = compare_parts(plan_comparison(loads(text), ["hierarchical", "double-binary-tree", "ring"]), PartOptions(1))
    times = found.table.set_index(["algorithm", "message_bytes"])["makespan_s"]
    tree = summary(HOSTS, "algorithm=double-binary-tree", "message=100 MB")["makespan_s"]
    assert times["double-binary-tree", 100_000_000] == pytest.approx(tree, rel=1e-12, abs=0)
    assert "node_size 4: workers of a host (hierarchical, double-binary-tree)" in found.notes
    assert "n_channels 4: one for each card of a host (double-binary-tree)" in found.notes
    assert any(note.startswith("double-binary-tree: eager sends hand over all slices") for note in found.notes)
    assert found.table["guess"].isna().all()


def test_nothing_is_recommended_on_links_that_are_a_rings_equivalent(tmp_path: Path) -> None:
    """ABCI's V100 nodes: a tree at 4 KiB, and a ring above."""
    profile = Path(__file__).parents[1] / "scenarios" / "data" / "v100-profile.yaml"
    (tmp_path / "profile.yaml").write_bytes(profile.read_bytes())
    inside = "inside: {shape: switch, bandwidth: 450 GB/s, latency: 100 ns}"
    text = f"""\
scenario_version: 1
workers: 16
payload: none
network: {{topology: nodes, workers_per_host: 4, {inside}, link: {{file: profile.yaml}}}}
"""
    swept = loads(text + "sweep: {over: {message: [4 KiB, 1 MiB]}}\n", folder=tmp_path)
    found = compare_parts(plan_comparison(swept, ["ring", "direct"]), PartOptions(1))
    assert {*found.guesses} == {(16, 4096)}
    (said,) = advise(found.table)
    assert said.startswith("with 16 workers use ring from 1 MiB; ring is at most")
    why = next(note for note in found.notes if note.startswith("nothing is recommended at 4 KiB"))
    assert "measured as a tree" in why
    assert "NCCL_ALGO=Tree" in why
    assert "\nallreduce,1048576,4294967295," in tuner_text(found.table, "all-reduce")[0]
    guesses = found.table.assign(guess="measured as a tree")
    assert advise(guesses) == []
    with pytest.raises(InputError, match="there is nothing to recommend"):
        tuner_text(guesses, "all-reduce")
    assert not STUDY_PLOTS["winner-map"].applies(guesses)
    assert STUDY_PLOTS["winner-map"].applies(found.table.assign(guess=None))
    (cells,) = STUDY_PLOTS["winner-map"].draw("", found.table).axes[0].collections
    assert np.ma.getmaskarray(cells.get_array()).ravel().tolist() == [True, False]
    one = simulate(loads(text + "message: 4 KiB\nalgorithm: direct\n", folder=tmp_path)).summary
    said = dict(answer(one))
    assert said["of the bound"].startswith("not known: the links are a ring's equivalent (measured as a tree")
    assert said["slowest link"] == "not known: the links are a ring's equivalent"


def test_nobody_is_blamed_on_links_that_are_a_rings_equivalent(tmp_path: Path) -> None:
    profile = Path(__file__).parents[1] / "scenarios" / "data" / "v100-profile.yaml"
    (tmp_path / "profile.yaml").write_bytes(profile.read_bytes())
    network = "network: {topology: switch, link: {file: profile.yaml}}"
    text = f"scenario_version: 1\nworkers: 16\npayload: none\n{network}\nmessage: 4 KiB\n"

    def read(changes: Sequence[str]) -> Scenario:
        return loads(text, changes, folder=tmp_path)

    with pytest.raises(InputError, match="the links are a ring's equivalent"):
        plan_blame(read([]))
    # Above that a ring was measured, with a launch that its latencies hold.
    found = blame(read(["message=32 MiB"]), most=1, jobs=1)
    assert any(note.startswith("what is gained without latency is a guess") for note in found.notes)
    plan = WhatIfPlan(changed_scenarios(read, ["algorithm=direct", "workers=32"]))
    said = whatif_parts(plan, PartOptions(1)).notes
    assert [note.partition(":")[0] for note in said] == ["what algorithm=direct gains is a guess"]
