"""NCCL's cost model against what NCCL 2.29.7 printed and chose; its choice to the byte."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest

from ringnet.analysis.nccl import ChannelGraph, NcclMachine, cost_table, pick, picks, time_us
from ringnet.analysis.nccl import constants as c

#: Two hosts with a GPU each, over sockets; what NCCL's search finds there.
SOCKETS = NcclMachine(
    n_ranks=2,
    n_nodes=2,
    ring=ChannelGraph(2, 1.2, 1.2),
    tree=ChannelGraph(2, 2.4, 2.4),
    gpu="blackwell",
    inside="pci",
    ll128=False,
    nvswitch=False,
    tree_through_one_gpu=True,
)
#: What NCCL 2.29.7 printed there, latency and bandwidth (public notes of the nccl-eBPF project, with
#: NCCL_DEBUG_SUBSYS=TUNING).
PRINTED = {
    ("broadcast", "ring", "LL"): ("9.3", "1.2"),
    ("broadcast", "ring", "LL128"): ("18.0", "0.0"),
    ("broadcast", "ring", "Simple"): ("22.4", "2.4"),
    ("all-gather", "ring", "LL"): ("11.6", "2.4"),
    ("all-gather", "ring", "LL128"): ("22.5", "0.0"),
    ("all-gather", "ring", "Simple"): ("22.4", "4.8"),
    ("all-gather", "pat", "Simple"): ("17.6", "3.6"),
    ("all-reduce", "tree", "LL"): ("16.8", "0.5"),
    ("all-reduce", "tree", "LL128"): ("31.0", "0.0"),
    ("all-reduce", "tree", "Simple"): ("36.4", "1.9"),
    ("all-reduce", "ring", "LL"): ("16.6", "1.2"),
    ("all-reduce", "ring", "LL128"): ("31.0", "0.0"),
    ("all-reduce", "ring", "Simple"): ("36.4", "2.4"),
    ("all-reduce", "collnet-direct", "LL128"): ("8.5", "0.0"),
    ("all-reduce", "collnet-chain", "Simple"): ("14.0", "0.0"),
    ("broadcast", "tree", "LL"): ("0.0", "0.0"),
    ("all-reduce", "pat", "Simple"): ("0.0", "0.0"),
}


@pytest.mark.parametrize(("cell", "printed"), PRINTED.items())
def test_every_printed_value_to_the_last_digit(cell, printed):
    assert tuple(f"{value:.1f}" for value in cost_table(SOCKETS)[cell]) == printed


def test_the_choice_is_the_one_that_nccl_logged():
    # The same run: Broadcast of 1 to 16 KiB on Ring with LL, from 32 KiB on with Simple.
    table = cost_table(SOCKETS)
    chosen = {kib: pick(SOCKETS, table, "broadcast", kib * 1024) for kib in (1, 2, 4, 8, 16, 32, 64, 131072)}
    assert {kib for kib, one in chosen.items() if one == ("ring", "LL")} == {1, 2, 4, 8, 16}
    assert {kib for kib, one in chosen.items() if one == ("ring", "Simple")} == {32, 64, 131072}


H100 = NcclMachine(
    n_ranks=64,
    n_nodes=8,
    ring=ChannelGraph(16, 22.0, 22.0),
    tree=ChannelGraph(16, 24.0, 20.0),
    nvls=ChannelGraph(16, 22.0, 22.0),
    collnet=ChannelGraph(8, 44.0, 40.0),
    cpu="amd",
)


def test_a_ring_by_hand():
    # 2 x 63 steps of which 14 cross hosts: LL128 14 + 112 x max(1.9, 2 of AMD) + 14 x 4; bus 352 x 0.92 x 64/126.
    found = cost_table(H100)["all-reduce", "ring", "LL128"]
    assert found.latency_us == pytest.approx(14 + 112 * 2 + 14 * 4)
    assert found.bandwidth_GBps == pytest.approx(352 * 0.92 * 64 / 126)
    simple = cost_table(H100)["all-reduce", "ring", "Simple"]
    assert simple.latency_us == pytest.approx(8.4 + 112 * 6 + 14 * 14)


def test_trees_and_nvls_by_hand():
    table = cost_table(H100)
    # 6.8 + 2 (7 x 0.6 + 3 x 5); 16 x 20 x 0.92 / 3.8 is more than the 19 of AMD, halved.
    assert table["all-reduce", "tree", "LL"] == pytest.approx((45.2, 19.0 / 2))
    # 25 + 2 x 3 x 20.9; a channel has the least of 22 x 0.85 x 15/16 x 2, 22 and 45.5.
    assert table["all-reduce", "nvls-tree", "Simple"] == pytest.approx((25 + 6 * 20.9, 16 * 22 * 64 / 126))
    # 16 x 22 x 0.85 x 15/16 x 7/8 inside, no ratio of an all-gather.
    gathered = table["all-gather", "nvls", "Simple"].bandwidth_GBps
    assert gathered == pytest.approx(16 * 22 * 0.85 * 15 / 16 * 7 / 8)
    # 8 GPUs over 8 channels: no factor but Hopper's, halved.
    assert table["all-reduce", "collnet-direct", "Simple"].bandwidth_GBps == pytest.approx(352 * 0.85 / 2)


def test_latencies_of_what_reduces_on_the_way_and_ll128_by_hand():
    """From the constants as NCCL publishes them, written out: us, and GB/s of a message's bytes."""
    table = cost_table(H100)
    found = {cell[1:]: cost for cell, cost in table.items() if cell[0] == "all-reduce"}
    # NVLS: once inside and once across, with no more than the 22 of a channel between hosts.
    assert found["nvls", "Simple"] == pytest.approx((25.0 + 18.0, 16 * 22 * 64 / 126))
    # CollNet: up and down a chain of 7 hops, or to 7 others at once at 0.4 each; then the network once.
    assert found["collnet-chain", "Simple"] == pytest.approx((2 * 7 * 2.8 + 30.0, 8 * 44 / 2))
    assert found["collnet-direct", "Simple"].latency_us == pytest.approx(2 * (3.7 + 7 * 0.4) + 31.0)
    # LL128 has 120 of 128 bytes, a tree 0.92 of that; 16 x 29 is no limit.
    assert found["tree", "LL128"] == pytest.approx((14 + 2 * (7 * 1.25 + 3 * 8.5), 16 * 20 * 0.92 * 120 / 128 / 2))
    # On one host a tree's LL128 has 7/9, and its hops are those inside alone; NVLS is not across.
    one = cost_table(replace(H100, n_ranks=8, n_nodes=1))
    assert one["all-reduce", "tree", "LL128"] == pytest.approx((14 + 2 * 7 * 1.25, 16 * 24 * 0.92 * 7 / 9 / 2))
    assert one["all-reduce", "nvls", "Simple"].latency_us == pytest.approx(25.0)


def test_the_tree_is_corrected_by_size_and_the_ring_has_a_plateau():
    table = cost_table(H100)
    tree, ring = ("all-reduce", "tree", "LL"), ("all-reduce", "ring", "Simple")
    slow, whole = (time_us(H100, tree, table[tree], size) - table[tree].latency_us for size in (2**18, 2**30))
    assert 2**30 / whole / (2**18 / slow) == pytest.approx(1 / 0.4)
    edge = c.PLATEAU_BYTES * H100.n_channels * 64
    below, above = (time_us(H100, ring, table[ring], size) for size in (edge - 1, edge))
    assert above - below == pytest.approx(0.4 * table[ring].latency_us, rel=1e-3)


@pytest.mark.parametrize("collective", c.COLLECTIVES)
@pytest.mark.parametrize("machine", [SOCKETS, H100, replace(H100, n_ranks=8, n_nodes=1, gpu="blackwell")])
def test_ranges_say_what_every_size_takes(machine, collective):
    table = cost_table(machine)
    parts = picks(machine, table, collective, 1, 2**34)
    assert (parts[0].first_bytes, parts[-1].last_bytes) == (1, 2**34)
    assert all(one.last_bytes + 1 == two.first_bytes for one, two in pairwise(parts))
    assert all(one[:2] != two[:2] for one, two in pairwise(parts))
    draw = random.Random(7)
    sizes = [edge for part in parts for edge in part[2:]] + [int(2 ** draw.uniform(0, 34)) for _ in range(300)]
    for size in sizes:
        (part,) = [part for part in parts if part.first_bytes <= size <= part.last_bytes]
        assert part[:2] == pick(machine, table, collective, size)


def test_what_a_machine_does_not_have_is_not_available():
    bare = replace(H100, nvls=None, collnet=None, ll128=False)
    for cell, cost in cost_table(bare).items():
        if cell[1].startswith(("nvls", "collnet")) or cell[2] == "LL128":
            assert cost.bandwidth_GBps == 0.0
            assert time_us(bare, cell, cost, 1024) == inf
    without_sharp = cost_table(replace(H100, collnet=None))
    assert without_sharp["all-reduce", "nvls", "Simple"].bandwidth_GBps == 0.0  # between hosts it needs SHARP
    assert without_sharp["all-reduce", "nvls-tree", "Simple"].bandwidth_GBps > 0.0
