"""``ringnet network`` and ``ringnet draw`` as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ringnet.cli import app

FILES = Path(__file__).parent / "data" / "networks"
SCENARIO = """
scenario_version: 1
name: slow link
workers: 4
message: 1 MiB
network: {bandwidth: 50 GB/s, latency: 500 ns, links: {1->2: {bandwidth: 5 GB/s}}}
"""
PICTURES = {f"{name}.{ending}" for name in ("network", "traffic-matrix") for ending in ("png", "svg")}


@pytest.fixture
def ringnet(tmp_path, monkeypatch):
    """Call the command line in a folder of its own that holds a scenario."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.yaml").write_text(SCENARIO)
    runner = CliRunner()
    return lambda *args: runner.invoke(app, [*map(str, args)])


# ---------------------------------------------------------------------------------------- ringnet network


def test_a_person_is_told_what_is_in_a_file(ringnet):
    answer = ringnet("network", FILES / "pcie-server.xml")
    assert answer.exit_code == 0
    for title in ("understood", "assumed", "left out"):
        assert f"\n{title}" in answer.stdout
    assert "4 GPUs, 2 processors, 2 PCIe switches" in answer.stdout
    assert "\nin a scenario  network: {file: pcie-server.xml}\n" in answer.stdout


def test_what_is_not_in_a_server_is_not_counted(ringnet):
    assert " 0 " not in ringnet("network", FILES / "nvlink-server.xml").stdout.partition("\n")[2].partition("links")[0]


def test_a_person_is_told_how_a_scenario_takes_the_rings(ringnet):
    said = "network: {order: {file: rings.xml}, ...}; algorithm: channel-ring gives each channel its own\n"
    assert ringnet("network", FILES / "rings.xml").stdout.endswith(said)


def test_a_program_is_told_all_of_it(ringnet):
    answer = json.loads(ringnet("network", FILES / "ring-4.yml", "--json").stdout)
    assert answer["n_workers"] == 4
    assert answer["links"][0] == {
        "link": "0->1",
        "from": "0",
        "to": "1",
        "bandwidth_Bps": 50 * 2**30,
        "latency_s": 5e-7,
    }
    assert answer["left_out"] == []


def test_orders_are_shown(ringnet):
    answer = json.loads(ringnet("network", FILES / "rings.xml", "--json").stdout)
    assert answer["orders"] == [[0, 1, 2, 3], [0, 3, 2, 1]]
    assert answer["links"] == []


def test_a_bad_file_is_an_error_of_one_line(ringnet, tmp_path):
    (tmp_path / "bad.xml").write_text("<system><cpu>")
    answer = ringnet("network", "bad.xml")
    assert answer.exit_code == 2
    assert answer.stderr.startswith("Error: bad.xml:1: system > cpu: not XML, or cut off")
    assert answer.stderr.count("\n") == 1


def test_links_of_a_scenario_are_listed_before_a_run(ringnet):
    answer = ringnet("network", "slow.yaml", "--links")
    assert answer.exit_code == 0
    assert [line.split() for line in answer.stdout.splitlines()] == [
        ["link", "from", "to", "bandwidth", "latency"],
        ["0->1", "0", "1", "50", "GB/s", "500", "ns"],
        ["1->2", "1", "2", "5", "GB/s", "500", "ns"],
        ["2->3", "2", "3", "50", "GB/s", "500", "ns"],
        ["3->0", "3", "0", "50", "GB/s", "500", "ns"],
    ]
    changed = "network.links.3->0={profile: [{at: 20 us, bandwidth: 5 GB/s}]}"
    answer = ringnet("network", "slow.yaml", "3->*", "--set", changed)
    assert answer.stdout.splitlines()[1:] == ["3->0  3     0   50 GB/s    500 ns   5 GB/s from 20 us on"]


def test_a_name_that_no_link_has_is_an_error(ringnet):
    answer = ringnet("network", "slow.yaml", "leaf*", "1->2", "x")
    assert answer.exit_code == 2
    assert [line.split("; ")[1] for line in answer.stderr.splitlines()] == ["got leaf*", "got x"]


def test_of_a_scenario_a_person_is_told_what_its_links_are(ringnet):
    answer = ringnet("network", "slow.yaml")
    assert "ring, 4 workers" in answer.stdout
    assert "3 links, 50 GB/s and 500 ns\n" in answer.stdout
    assert "1 link, 5 GB/s and 500 ns\n" in answer.stdout
    assert "ringnet network slow.yaml --links" in answer.stdout


def test_a_program_is_told_all_links(ringnet):
    inside = "inside: {shape: switch, bandwidth: 400 GB/s, latency: 1 us}"
    nodes = f"network={{topology: nodes, workers_per_host: 2, nics: 2, {inside}, bandwidth: 9 GB/s, latency: 5 us}}"
    card = "network.links_of={h0/nic1: {bandwidth: 3 GB/s}}"
    answer = ringnet("network", "slow.yaml", "--json", "--set", nodes, "--set", card)
    links = json.loads(answer.stdout)["links"]
    assert len(links) == 24
    slow = [one["link"] for one in links if one["bandwidth_Bps"] == 3e9]
    assert slow == ["1->h0/nic1", "h0/nic1->1", "h0/nic1->switch", "switch->h0/nic1"]


def test_rings_alone_have_no_links_to_list(ringnet):
    answer = ringnet("network", FILES / "rings.xml", "--links")
    assert answer.exit_code == 2
    assert "it has the order of rings, and no links" in answer.stderr


# ------------------------------------------------------------------------------------------- ringnet draw


def test_a_scenario_is_simulated_and_drawn(ringnet, tmp_path):
    answer = ringnet("draw", "slow.yaml")
    assert answer.exit_code == 0
    folder = tmp_path / "reports" / "slow-link-network"
    assert {path.name for path in folder.iterdir()} > PICTURES
    assert json.loads((folder / "run.json").read_text())["scenario"]["payload"] == "none"
    assert ringnet("draw", "slow.yaml").exit_code == 0  # what it wrote itself it replaces


def test_a_run_that_is_there_is_drawn_as_it_is(ringnet, tmp_path):
    ringnet("run", "slow.yaml", "--out", "done", "--no-plots")
    before = (tmp_path / "done" / "links.csv").read_text()
    assert not PICTURES & {path.name for path in (tmp_path / "done").iterdir()}
    assert ringnet("draw", "slow.yaml", "--results", "done").exit_code == 0
    assert {path.name for path in (tmp_path / "done").iterdir()} > PICTURES
    assert (tmp_path / "done" / "links.csv").read_text() == before
    assert ringnet("draw", "slow.yaml", "--results", "done", "--out", "pictures").exit_code == 0
    assert (tmp_path / "pictures" / "network.svg").read_bytes() == (tmp_path / "done" / "network.svg").read_bytes()


def test_results_of_another_scenario_are_not_drawn(ringnet):
    ringnet("run", "slow.yaml", "--out", "done", "--no-plots")
    answer = ringnet("draw", "slow.yaml", "--set", "message=2 MiB", "--results", "done")
    assert answer.exit_code == 2
    assert "another scenario" in answer.stderr


def test_of_a_sweep_the_first_point_is_drawn(ringnet, tmp_path):
    (tmp_path / "slow.yaml").write_text(SCENARIO + "sweep: {over: {message: [1 KiB, 1 MiB]}}\n")
    answer = ringnet("draw", "slow.yaml", "--out", "pictures")
    assert answer.exit_code == 0
    assert "its first point is drawn" in answer.stderr
    assert json.loads((tmp_path / "pictures" / "run.json").read_text())["scenario"]["message"] == "1 KiB"


def test_results_of_a_sweep_are_not_drawn(ringnet, tmp_path):
    (tmp_path / "slow.yaml").write_text(SCENARIO + "sweep: {over: {message: [1 KiB, 1 MiB]}}\n")
    ringnet("run", "slow.yaml", "--out", "done", "--no-plots", "--cache", "cache")
    for more in ((), ("--out", "pictures")):
        answer = ringnet("draw", "slow.yaml", "--results", "done", *more)
        assert answer.exit_code == 2
        assert "single run" in answer.stderr
    assert not (tmp_path / "pictures").exists()


def test_one_worker_has_nothing_to_draw_and_that_is_said(ringnet):
    answer = ringnet("draw", "slow.yaml", "--set", "workers=1")
    assert "plot network is not drawn" in answer.stderr


# ------------------------------------------------------------------------------------------ a better order

RACKS = """
scenario_version: 1
workers: 8
message: 1 MiB
payload: none
network: {topology: leaf-spine, leaves: 2, spines: 1, oversubscription: 4, link: 100gbe, placement: interleaved}
"""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("network.placement=interleaved", True),
        ("network.placement=numbered", False),
        ("network.order=best", False),
        ("algorithm=direct", False),
    ],
)
def test_an_order_that_loads_a_link_more_than_it_must_is_told(ringnet, tmp_path, change, told):
    (tmp_path / "racks.yaml").write_text(RACKS)
    answer = ringnet("run", "racks.yaml", "--no-plots", "--set", change)
    assert answer.exit_code == 0
    said = "this order of the ring puts 4 times as much on the busiest link as the best one would: network.order: best"
    assert (said in answer.stderr) is told
