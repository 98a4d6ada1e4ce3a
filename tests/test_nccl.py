"""``ringnet nccl``: what NCCL would choose, beside a simulation and beside what NCCL printed."""

from __future__ import annotations

import json
from itertools import pairwise
from math import inf
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from ringnet.analysis.nccl import ChannelGraph, cost_table, picks
from ringnet.analysis.nccl.search import (
    HostRates,
    NcclTraits,
    fitted_to,
    found_graph,
    host_rates,
    nccl_machine,
)
from ringnet.cli import app
from ringnet.formats.tuner import loads_tuner, read_tuning
from ringnet.runs.parts import build_site
from ringnet.scenario import loads

LOG = Path(__file__).parent / "data" / "nccl" / "tuning-sockets.txt"
HOSTS = """
scenario_version: 1
name: two hosts
workers: {workers}
message: 1 MiB
payload: none
network: {network}
sweep: {{over: {{message: [1 KiB, 8 MiB, 1 GiB]}}}}
"""
NODES = (
    "{topology: nodes, workers_per_host: 4, nics: 2, inside: {shape: switch, bandwidth: 300 GB/s, latency: 1 us}, "
    "bandwidth: 25 GB/s, latency: 2 us}"
)


@pytest.fixture
def ringnet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.yaml").write_text(HOSTS.format(workers=1, network="{bandwidth: 50 GB/s, latency: 1 us}"))
    (tmp_path / "hosts.yaml").write_text(HOSTS.format(workers=8, network=NODES))
    return lambda *args: CliRunner().invoke(app, ["nccl", *map(str, args)])


def network(workers, text):
    return build_site(loads(HOSTS.format(workers=workers, network=text))).networks[0]


# ---------------------------------------------------------------------------------------------- what NCCL would find


@pytest.mark.parametrize(
    ("inside", "gpu", "cards", "is_tree", "graph"),
    [
        # One host of eight A100 behind NVSwitch, of eight H100 (NVIDIA/nccl#1197): nChannels 12, bw 20 and 30.
        (240.0, "ampere", None, False, ChannelGraph(12, 20.0, 20.0)),
        (370.8, "hopper", None, False, ChannelGraph(12, 30.0, 30.0)),
        # One GPU a host and a card of 24 GB/s: a ring of 24/24, a tree of 48/24, each doubled from one channel on.
        (inf, "volta", (1, 24.0), False, ChannelGraph(1, 24.0, 24.0)),
        (inf, "volta", (1, 24.0), True, ChannelGraph(2, 24.0, 12.0)),
        # Four cards of 25 GB/s: a channel goes through one of them, so that there are four, not five of 20.
        (600.0, "volta", (4, 25.0), False, ChannelGraph(4, 24.0, 24.0)),
        (0.05, "volta", (1, 0.05), False, ChannelGraph(1, 0.05, 0.05)),
    ],
)
def test_channels_that_nccl_finds(inside, gpu, cards, is_tree, graph):
    assert found_graph(inside, gpu, cards, is_tree=is_tree) == graph


def test_hosts_are_read_off_a_network():
    assert host_rates(network(8, NODES)) == HostRates(2, 4, 300.0, 50.0, 2)
    assert host_rates(network(8, "{topology: switch, bandwidth: 50 GB/s, latency: 2 us}")) == HostRates(
        8, 1, 50.0, 50.0, 1
    )


def test_what_is_not_alike_is_refused(ringnet, tmp_path):
    odd = "{bandwidth: 50 GB/s, latency: 1 us, links: {1->2: {bandwidth: 5 GB/s}}}"
    slower = "{bandwidth: 50 GB/s, latency: 1 us, links: {1->2: {profile: [{at: 1 ms, bandwidth: 5 GB/s}]}}}"
    for text, words in ((odd, "workers that are alike"), (slower, "links of one bandwidth")):
        (tmp_path / "odd.yaml").write_text(HOSTS.format(workers=4, network=text))
        result = ringnet("odd.yaml")
        assert (result.exit_code, words in result.stderr) == (2, True), result.output


# --------------------------------------------------------------------------------------------------- what it printed


def test_every_value_and_choice_of_a_log_is_the_models(ringnet):
    result = ringnet("--log", LOG, "--gpu", "blackwell", "--pci")
    assert "46 of 46 printed values are the model's, to the last digit" in result.stdout
    assert "9 of 9 choices that NCCL logged are the model's" in result.stdout
    found = json.loads(ringnet("--log", LOG, "--gpu", "blackwell", "--pci", "--json").stdout)
    assert all(row["is_equal"] for row in (*found["printed"], *found["choices"]))
    assert len(found["printed"]) == 2 * 3 * 7 * 5


def test_a_value_that_differs_is_shown_beside_the_models(ringnet, tmp_path):
    text = (
        LOG.read_text()
        .replace("36.4/   2.4", "77.7/   2.4")
        .replace("16384 Bytes -> Algo RING", "16384 Bytes -> Algo TREE")
    )
    (tmp_path / "changed.txt").write_text(text)
    shown = ringnet("--log", "changed.txt", "--gpu", "blackwell", "--pci").stdout
    assert "45 of 46 printed values" in shown
    assert "8 of 9 choices" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["all-reduce", "ring", "Simple", "latency_us", "77.7", "36.4"] in lines
    assert ["broadcast", "16", "KiB", "choice", "tree", "LL", "ring", "LL"] in lines


def test_a_table_of_an_older_nccl_and_graphs_are_read(tmp_path):
    path = tmp_path / "old.txt"
    path.write_text(
        "h:1:1 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 12, bw 30.000000/25.000000, type NVL/PIX, "
        "sameChannels 0\n"
        "h:1:1 [0] NCCL INFO Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple |    Ring/    LL |\n"
        "h:1:1 [0] NCCL INFO     AllReduce |     8.4/  9.0 |    10.8/ 70.0 |    48.0/ 80.0 |    5.7/ 11.0 |\n"
    )
    found = read_tuning(path)
    assert found.cells["all-reduce", "ring", "LL"] == ("5.7", "11.0")
    assert found.cells["all-reduce", "tree", "Simple"] == ("48.0", "80.0")
    assert (found.graphs["ring"], found.same_channels) == (ChannelGraph(12, 30.0, 25.0), False)


def test_bandwidths_are_recovered_from_printed_values():
    true = nccl_machine(HostRates(4, 8, 450.0, 400.0, 8), NcclTraits(nvls=False))
    printed = {
        cell: (f"{cost.latency_us:.1f}", f"{cost.bandwidth_GBps:.1f}") for cell, cost in cost_table(true).items()
    }
    blind = nccl_machine(HostRates(4, 8, 450.0, 100.0, 8), NcclTraits())
    again = fitted_to(blind, printed)
    assert again.ring.n_channels * again.ring.between_GBps == pytest.approx(360.0, rel=1e-3)
    # The tree is at the limit of its channels: its bandwidth is not to be told, its values are.
    table = cost_table(again)
    assert {cell: (f"{table[cell][0]:.1f}", f"{table[cell][1]:.1f}") for cell in printed} == printed
    assert (again.nvls, again.ll128) == (None, True)


# ------------------------------------------------------------------------------------------------ beside a simulation


def test_where_the_simulation_has_another_answer_a_tuner_file_says_so(ringnet, tmp_path):
    result = ringnet("hosts.yaml", "--gpu", "volta", "--tuner", "t.csv", "--csv", "x.csv", "--plot", "p.png", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    lines = loads_tuner((tmp_path / "t.csv").read_text())
    assert [(one["min_bytes"], one["max_bytes"], one["algorithm"]) for one in lines] == [
        (one["first_bytes"], one["last_bytes"], one["ringnet"]) for one in found["differences"]
    ]
    assert lines
    # Lines that say the same are one.
    named = [(one["algorithm"], one["protocol"]) for one in lines]
    meet = [one["max_bytes"] + 1 == other["min_bytes"] for one, other in pairwise(lines)]
    assert not any(one == other and joined for (one, other), joined in zip(pairwise(named), meet, strict=True))
    fastest = {row["message_bytes"]: row["algorithm"] for row in found["simulated"] if row["rank"] == 1}
    nccl = {row["message_bytes"]: row["algorithm"] for row in found["times"] if row["is_pick"]}
    for (
        size,
        name,
    ) in fastest.items():  # what is written is what was simulated, and what NCCL takes is left to it
        family = "tree" if "tree" in name else "ring"
        (*said,) = [one for one in lines if one["min_bytes"] <= size <= one["max_bytes"]]
        assert [one["algorithm"] for one in said] == ([family] if nccl[size] != family else [])
    assert {one["nRanks"] for one in lines} == {8}
    assert {one["nNodes"] for one in lines} == {2}
    assert set(pd.read_csv(tmp_path / "x.csv")["message_bytes"]) == {1024, 2**23, 2**30}
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_the_borders_of_nccl_are_what_is_shown(ringnet):
    machine = nccl_machine(HostRates(2, 4, 300.0, 50.0, 2), NcclTraits(gpu="ampere"))
    found = json.loads(ringnet("hosts.yaml", "--gpu", "ampere", "--no-simulate", "--json").stdout)
    parts = picks(machine, cost_table(machine), "all-reduce", 1024, 2**30)
    assert [tuple(one.values()) for one in found["picks"]["all-reduce"]] == [tuple(one) for one in parts]
    assert found["simulated"] is None
    assert "not simulated: --no-simulate" in found["notes"]


def test_all_collectives_at_once(ringnet):
    result = ringnet("--ranks", 4, "--nodes", 4, "--link", "infiniband-ndr", "--collective", "all", "--no-simulate")
    for words in ("broadcast, of NCCL", "all-gather, of NCCL", "reduce-scatter, of NCCL", "pat "):
        assert words in result.stdout


def test_a_machine_by_options_is_simulated_on_the_network_that_they_describe(ringnet):
    options = (
        "--inside",
        "300 GB/s",
        "--cards",
        2,
        "--link",
        "25 GB/s",
        "--gpu",
        "volta",
        "--sizes",
        "1KiB,8MiB,1GiB",
    )
    asked = json.loads(ringnet("--ranks", 8, "--nodes", 2, *options, "--json").stdout)
    told = json.loads(ringnet("hosts.yaml", "--gpu", "volta", "--json").stdout)
    for key in ("machine", "cells", "times", "simulated", "differences"):
        assert asked[key] == told[key], key


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "a scenario or this is needed"),
        (("--ranks", 8, "--nodes", 3), "every host has the same number of GPUs"),
        (("--ranks", 8, "--nodes", 2), "what joins the hosts is not said"),
        (("--ranks", 8, "--nodes", 2, "--link", "50"), "a rate needs a unit"),
        (("--ranks", 8, "--nodes", 2, "--link", "infiniband-foo"), "a link that `ringnet list` names"),
        (("--ranks", 8, "--gpu", "h100"), "volta, ampere, hopper, blackwell"),
        (("--ranks", 2_000_000), "too many"),
        (("--ranks", 8, "--collective", "all-to-all"), "NCCL tunes no such collective"),
        (("hosts.yaml", "--ranks", 8), "the scenario says this"),
        (("hosts.yaml", "--nodes", 4), "the network has other hosts"),
        (("one.yaml",), "a single GPU moves nothing"),
        (("--log", "hosts.yaml"), "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING"),
        (("--log", LOG, "--ranks", 4), "the log says another number"),
        (("--log", LOG, "--tuner", "t.csv"), "nothing is simulated to compare with"),
        (("hosts.yaml", "--tuner", "hosts.yaml"), "--tuner"),
    ],
)
def test_what_is_wrong_is_said(ringnet, arguments, words):
    result = ringnet(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
