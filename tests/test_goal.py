"""GOAL text: as LogGOPSim takes it, and simulated by its rules in a few lines, against the engine."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from itertools import count
from typing import Any

import numpy as np
import pytest

from ringnet.collectives import ALGORITHMS
from ringnet.engines import ENGINES, Workers
from ringnet.errors import ScheduleError
from ringnet.formats.goal import HOLDS, dumps_goal
from ringnet.networks import TOPOLOGIES, Network

#: Other tools know workers only.
KINDS = [
    (name, kind)
    for name, algorithm in ALGORITHMS.items()
    for kind in algorithm.collectives
    if not algorithm.in_switches
]
LINE = re.compile(
    r"(l\d+): (send|recv) (\d+)b (?:to|from) (\d+) tag (\d+)$|(l\d+): calc (\d+)$|(l\d+) (i?requires) (l\d+)$"
)


def parse(text: str) -> list[dict[str, dict[str, Any]]]:
    """Operations of each rank by label, strictly: labels before their use, no empty transfer, integers only."""
    comment, *lines = text.splitlines()
    assert comment.startswith("// ")
    assert re.fullmatch(r"num_ranks \d+", lines[0])
    ranks: list[dict[str, dict[str, Any]]] = []
    for line in lines[1:]:
        if re.fullmatch(rf"rank {len(ranks)} {{", line):
            ranks.append({})
        elif line != "}":
            label, kind, size, peer, tag, calc, ns, later, how, earlier = LINE.fullmatch(line).groups()
            if later:
                ranks[-1][later]["after" if how == "requires" else "behind"].append(earlier)
                assert earlier in ranks[-1]
            elif calc:
                ranks[-1][calc] = {"kind": "calc", "size": int(ns), "after": [], "behind": []}
            else:
                assert int(size) > 0
                ranks[-1][label] = {
                    "kind": kind,
                    "size": int(size),
                    "peer": int(peer),
                    "tag": int(tag),
                    "after": [],
                    "behind": [],
                }
    return ranks


def simulate(text: str, L: float, G: float) -> float:
    """The makespan with a link for each pair, one message at a time on it, L + c G each; overheads nil."""
    ranks = parse(text)
    ends: dict[tuple[int, str], float] = {}
    arrivals: dict[tuple[int, int, int], float] = {}
    free: dict[tuple[int, int], float] = defaultdict(float)
    left = [(rank, label) for rank, operations in enumerate(ranks) for label in operations]
    while left:
        ready = []
        for rank, label in left:
            one = ranks[rank][label]
            if any((rank, before) not in ends for before in (*one["after"], *one["behind"])):
                continue
            start = max((ends[rank, before] for before in one["after"]), default=0.0)
            if one["kind"] == "recv" and (one["peer"], rank, one["tag"]) not in arrivals:
                continue
            ready.append((start, one.get("tag", 0), rank, label))
        assert ready, "it waits for ever"
        start, _, rank, label = min(ready)
        one = ranks[rank][label]
        if one["kind"] == "send":
            link = (rank, one["peer"])
            free[link] = max(start, free[link]) + one["size"] * G
            arrivals[rank, one["peer"], one["tag"]] = free[link] + L
            ends[rank, label] = start
        elif one["kind"] == "recv":
            ends[rank, label] = max(start, arrivals.pop((one["peer"], rank, one["tag"])))
        else:
            ends[rank, label] = start + one["size"]
        left.remove((rank, label))
    assert not arrivals, "a message is left over"
    return max(ends.values(), default=0.0)


def as_loggopsim(text: str, L: int, G: int) -> int:
    """The makespan by LogGOPSim's rules, with eager messages and o, g and O nil; c bytes are charged c here, not c - 1.

    A rank has one processor and one card. A message that comes in holds the processor, a send holds the card.
    """
    ranks = parse(text)
    processor, sends = [0] * len(ranks), [0] * len(ranks)
    taken, started, done = ([set() for _ in ranks] for _ in range(3))
    posted, early = [{} for _ in ranks], [set() for _ in ranks]
    events: list[tuple[int, int, int, Any]] = []
    number = count()

    def take_up(rank: int, now: int) -> None:
        for label, one in ranks[rank].items():
            may = done[rank].issuperset(one["after"]) and started[rank].issuperset(one["behind"])
            if may and label not in taken[rank]:
                taken[rank].add(label)
                heapq.heappush(events, (now, next(number), rank, label))

    for rank in range(len(ranks)):
        take_up(rank, 0)
    while events:
        now, _, rank, what = heapq.heappop(events)
        one = ranks[rank][what] if isinstance(what, str) else {"kind": "message", "size": what[2]}
        kind = one["kind"]
        free = {"recv": 0, "send": max(processor[rank], sends[rank])}.get(kind, processor[rank])
        if free > now:
            heapq.heappush(events, (free, next(number), rank, what))
            continue
        if kind == "message":
            processor[rank] = now + one["size"] * G
            if what[:2] in posted[rank]:
                done[rank].add(posted[rank].pop(what[:2]))
            else:
                early[rank].add(what[:2])
        else:
            started[rank].add(what)
            if kind == "send":
                sends[rank] = now + one["size"] * G
                message = (rank, one["tag"], one["size"])
                heapq.heappush(events, (now + L, next(number), one["peer"], message))
            elif kind == "calc":
                processor[rank] = now + one["size"]
            if kind == "recv" and (one["peer"], one["tag"]) not in early[rank]:
                posted[rank][one["peer"], one["tag"]] = what
            else:
                done[rank].add(what)
        take_up(rank, now)
    assert [len(one) for one in done] == [len(one) for one in ranks], "it waits for ever"
    return max(processor)


def full(n_workers: int, bandwidth_Bps: float, latency_s: float) -> Network:
    pairs = [(src, dst) for src in range(n_workers) for dst in range(n_workers) if src != dst]
    number, ones = {pair: (link,) for link, pair in enumerate(pairs)}, np.ones(len(pairs))
    names = tuple(f"{src}->{dst}" for src, dst in pairs)
    return Network("full", n_workers, names, ones * bandwidth_Bps, ones * latency_s, lambda src, dst: number[src, dst])


@pytest.mark.parametrize(
    ("name", "collective", "parameters"),
    [
        *((*kind, {}) for kind in KINDS),
        ("binary-tree", "all-reduce", {"n_channels": 3, "node_size": 3}),
        ("double-binary-tree", "all-reduce", {"n_channels": 2, "node_size": 3}),
    ],
)
def test_simulated_by_its_own_rules_it_takes_as_long(name: str, collective: str, parameters: dict[str, int]) -> None:
    n_workers = 6 if parameters else 5
    schedule = ALGORITHMS[name].build(n_workers, collective, **parameters)
    chunk_bytes = np.full(schedule.n_chunks, 100)
    network = full(n_workers, 1.0, 700.0)
    trace = ENGINES["events"].run(schedule, network, Workers.alike(n_workers), chunk_bytes)
    expected = float(trace.workers["end_s"].max())
    assert simulate(dumps_goal(schedule, chunk_bytes), L=700.0, G=1.0) == pytest.approx(expected, rel=1e-12, abs=0)


def test_a_ring_takes_what_loggopsim_says_but_for_its_one_byte_less() -> None:
    """LogGOPSim: 2(N-1)(L + (c-1)G) without overheads; here each of 2(N-1) transfers is charged its last byte too."""
    text = dumps_goal(ALGORITHMS["ring"].build(8, "all-reduce"), np.full(8, 4096))
    assert simulate(text, L=2500, G=6) == 14 * (2500 + 4095 * 6) + 14 * 6


#: LogGOPSim's time in ringnet's, on a switch: where a message that comes in keeps nobody waiting, and where it does.
HELD = {
    ("ring", "all-reduce"): 1.0,
    ("direct", "all-to-all"): 1.0,
    ("pairwise", "all-to-all"): 1.0,
    ("bruck", "all-to-all"): 1.0,
    ("hierarchical", "all-reduce"): 1.0,
    ("pipelined-ring", "all-reduce"): 1.313,
    ("channel-ring", "all-reduce"): 1.108,
    ("binary-tree", "broadcast"): 1.130,
}


@pytest.mark.parametrize(("name", "collective"), HELD)
def test_where_loggopsim_takes_another_time_is_where_messages_come_in_meanwhile(name: str, collective: str) -> None:
    schedule = ALGORITHMS[name].build(5, collective)
    chunk_bytes = np.full(schedule.n_chunks, 100)
    network = TOPOLOGIES["switch"].build(5, 1.0, 350.0)
    trace = ENGINES["events"].run(schedule, network, Workers.alike(5), chunk_bytes)
    theirs = as_loggopsim(dumps_goal(schedule, chunk_bytes), L=700, G=1)
    assert theirs / trace.workers["end_s"].max() == pytest.approx(HELD[name, collective], abs=6e-4)


@pytest.mark.parametrize(("name", "collective"), [*HELD, ("pipelined-ring", "reduce")])
def test_sends_of_a_channel_begin_in_order(name: str, collective: str) -> None:
    """What is ready together would be sent in any order: each send is behind the one before it on its channel."""
    schedule = ALGORITHMS[name].build(5, collective)
    for operations in parse(dumps_goal(schedule, np.full(schedule.n_chunks, 100))):
        sends = [one for one in operations.values() if one["kind"] == "send"]
        heads = sum(not one["behind"] for one in sends)
        assert heads <= (schedule.n_channels if sends else 0)


def test_reductions_are_whole_nanoseconds_after_the_receive() -> None:
    text = dumps_goal(ALGORITHMS["ring"].build(2, "all-reduce"), np.array([8, 8]), reduce_ns_per_byte=0.5)
    assert text.split("rank 1")[0].splitlines()[3:-1] == [
        "l1: send 8b to 1 tag 0",
        "l2: recv 8b from 1 tag 0",
        "l3: calc 4",
        "l3 requires l2",
        "l4: send 8b to 1 tag 1",
        "l4 requires l3",
        "l4 irequires l1",
        "l5: recv 8b from 1 tag 1",
        "l5 requires l1",
        "l5 requires l3",
    ]
    assert simulate(text, L=10, G=1) == 2 * 18 + 4


def test_transfers_of_no_bytes_are_left_out_and_their_order_is_kept() -> None:
    ranks = parse(dumps_goal(ALGORITHMS["ring"].build(3, "all-reduce"), np.array([8, 0, 0])))
    assert [len(operations) for operations in ranks] == [3, 3, 2]
    alone = dumps_goal(ALGORITHMS["ring"].build(1, "all-reduce"), np.array([8]))
    assert alone == f"// {HOLDS}\nnum_ranks 1\nrank 0 {{\n}}\n"


def test_too_many_transfers_are_refused() -> None:
    with pytest.raises(ScheduleError, match="too long for a text"):
        dumps_goal(ALGORITHMS["direct"].build(1500, "all-reduce"), np.zeros(1500, dtype=int))
