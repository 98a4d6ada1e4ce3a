"""The critical path: whole, in order, and its derivatives those that running again with other numbers shows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ringnet.analysis.critical_path import critical_path
from ringnet.analysis.derivatives import Derivatives, derivatives
from ringnet.collectives import ALGORITHMS
from ringnet.engines import ENGINES, Workers
from ringnet.engines import trace as traces
from ringnet.engines.arrays import recall, run
from ringnet.engines.arrays.steps import Steps
from ringnet.engines.events import Job, run_jobs
from ringnet.errors import InputError
from ringnet.networks import BySize, LinkChange, OverTime, Packets, Piece, Window, make_network
from ringnet.networks.behaviour import ANY_SIZE

#: What a derivative may be off, as a share of it.
SHARE = 1e-6
#: Those of networks and workers; switches that reduce have tests of their own.
KINDS = [kind for kind in Derivatives.__dataclass_fields__ if kind != "inverse_switch_rate"]


def path_of(case, trace):
    return critical_path(case.schedule, case.network, case.workers, case.chunk_bytes, trace)


def end_s(case, engine="events"):
    return float(case.run(engine=engine).workers["end_s"].max())


def pushed(case, kind, by):
    """The case with one kind of numbers changed: seconds, or (of bandwidths and rates) seconds per byte."""
    network, workers = case.network, case.workers
    if kind == "latency":
        return case.but(network=replace(network, latency_s=network.latency_s + by))
    if kind == "inverse_bandwidth":
        return case.but(network=replace(network, bandwidth_Bps=1 / (1 / network.bandwidth_Bps + by)))
    if kind == "inverse_reduce_rate":
        return case.but(workers=replace(workers, reduce_Bps=1 / (1 / workers.reduce_Bps + by)))
    name = f"{kind}_s"
    return case.but(workers=replace(workers, **{name: getattr(workers, name) + by}))


def is_whole(case, trace):
    pieces = path_of(case, trace).pieces
    assert pieces[0].from_s == case.workers.start_s.min()
    assert pieces[-1].to_s == trace.workers["end_s"].max()
    assert [piece.to_s for piece in pieces[:-1]] == [piece.from_s for piece in pieces[1:]]
    assert all(piece.to_s >= piece.from_s for piece in pieces)


def slopes(case, kind, weights, engine="events"):
    """What running again says of a change, backwards and forwards; and what the derivatives say of it."""
    trace = case.run(engine=engine)
    is_whole(case, trace)
    found = derivatives(case.schedule, case.network, case.workers, case.chunk_bytes, trace)
    says, now_s = float(getattr(found, kind) @ weights), float(trace.workers["end_s"].max())
    # So that the end moves by a ten-millionth: rounding is a billion times less.
    step = 1e-7 * now_s / (says or 1e9)
    later = (end_s(pushed(case, kind, step * weights), engine) - now_s) / step
    earlier = (now_s - end_s(pushed(case, kind, -step * weights), engine)) / step
    return earlier, later, says


def network_over(draw, n_workers, is_ring):
    """Any network on which any two workers reach each other; where a ring is enough, a ring too."""
    topology, parameters = draw(
        st.sampled_from(
            [
                ("switch", {}),
                ("fully-connected", {}),
                ("leaf-spine", {"leaves": 1 + n_workers // 4, "spines": 2}),
                ("torus", {"sides": [n_workers, 1]}),
                *([("ring", {})] if is_ring else []),
            ]
        )
    )
    return make_network(topology, n_workers, 1e9, 1e-6, **parameters)


def all_different(draw, case):
    """Any algorithm over any network, and no two numbers the same, so that only one path is the longest."""
    algorithm = ALGORITHMS[draw(st.sampled_from([name for name, one in ALGORITHMS.items() if not one.in_switches]))]
    fitting = [n for n in range(2, 9) if _builds(algorithm, n)]
    n_workers = draw(st.sampled_from(fitting))
    schedule = algorithm.build(n_workers, draw(st.sampled_from(algorithm.collectives)))
    network = network_over(draw, n_workers, schedule.algorithm == "ring")
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    network = replace(
        network,
        sharing="fifo",
        switching=draw(st.sampled_from(["cut-through", "store-and-forward"])),
        bandwidth_Bps=10 ** rng.uniform(8, 10, network.n_links),
        latency_s=10 ** rng.uniform(-7, -4, network.n_links),
    )
    # With costs channels wait for the processor, without for the chunks that they share.
    free, sends = draw(st.booleans()), draw(st.sampled_from(["eager", "rendezvous"]))
    costs = (0.0, 0.0, np.inf) if free else (*10 ** rng.uniform(-6, -3, 2), 1e9)
    each = (np.full(n_workers, cost) * rng.uniform(0.5, 1.0, n_workers) for cost in costs)
    starts_s, launches_s = rng.uniform(0, 1e-4, (2, n_workers))
    workers = Workers(starts_s, *each, launches_s, sends)
    sizes = rng.integers(1, 1_000_000, schedule.n_chunks)
    return case(2).but(schedule=schedule, network=network, workers=workers, chunk_bytes=sizes), rng


def _builds(algorithm, n_workers):
    try:
        algorithm.build(n_workers, algorithm.collectives[0])
    except InputError:
        return False
    return True


def can_be_less(case):
    """Kinds of numbers that are above zero everywhere, so that they can be changed either way."""
    network, workers = case.network, case.workers
    inverse = {"inverse_bandwidth": 1 / network.bandwidth_Bps, "inverse_reduce_rate": 1 / workers.reduce_Bps}
    numbers = inverse | {"latency": network.latency_s}
    return [kind for kind in KINDS if (numbers[kind] if kind in numbers else getattr(workers, f"{kind}_s")).all()]


def weights_for(case, kind, rng):
    per_link = kind in {"latency", "inverse_bandwidth"}
    return rng.uniform(0.2, 1.0, case.network.n_links if per_link else case.schedule.n_workers)


@given(st.data())
def test_derivatives_are_those_of_running_again(case, data):
    one, rng = all_different(data.draw, case)
    for kind in can_be_less(one):
        earlier, later, says = slopes(one, kind, weights_for(one, kind, rng))
        assert (earlier, later) == pytest.approx((says, says), rel=SHARE)


@given(st.data())
def test_derivatives_are_those_of_running_the_recurrence_again(cases, data):
    one = data.draw(cases(n_workers=data.draw(st.integers(2, 9))))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    for kind in can_be_less(one):
        earlier, later, says = slopes(one, kind, weights_for(one, kind, rng), "recurrence")
        # Where several paths are as long, what the walk has found lies between.
        assert earlier <= says * (1 + SHARE)
        assert says <= later * (1 + SHARE)


@given(st.data())
def test_the_path_of_what_waited_is_made_of_what_the_engines_tell(case, data):
    """Where it waited behind other workers alone; what it waited behind its own is of parts that those took."""
    one, _ = all_different(data.draw, case)
    trace = one.run(engine="events")
    parts = one.schedule, one.network, one.workers, one.chunk_bytes, trace
    path = critical_path(*parts, behind_others=False)
    end_s, worker = trace.workers["end_s"].max(), int(trace.workers["end_s"].argmax())
    tells = {part: float(trace.workers[f"path_{part}_s"][worker]) for part in traces.PATH_PARTS}
    walked = {part: path.part_s(part) for part in traces.PATH_PARTS}
    own_s = float(trace.workers[traces.OWN_QUEUEING][worker])
    assert sum(walked.values()) == pytest.approx(end_s - one.workers.start_s.min())
    # Under cut-through a head may wait at a link while the tail still comes in over the one before it.
    if own_s <= 1e-9 * end_s and one.network.switching == "store-and-forward":
        assert walked == pytest.approx(tells, abs=1e-9 * end_s)
    elif tells["queueing"] - own_s <= 1e-9 * end_s and one.schedule.n_channels == 1:
        assert walked["bandwidth"] > tells["bandwidth"] - 1e-9 * end_s


@given(st.data())
def test_a_run_without_rows_leaves_the_same_path(case, data):
    """Also with times that are alike, of which the walk has to choose as it does with all rows."""
    one, _ = all_different(data.draw, case)
    if data.draw(st.booleans()):
        network = replace(one.network, bandwidth_Bps=one.network.bandwidth_Bps * 0 + 1e9)
        one = one.but(network=replace(network, latency_s=network.latency_s * 0 + 1e-6))
    try:
        long = one.run(engine="recurrence", keep_transfers=1)
    except InputError:
        assume(condition=False)
    whole = one.run(engine="recurrence")
    assume(long.transfers is None)
    # Channels of a worker that share chunks, or links, leave times; all others what led to the end.
    assert (long.recall is None) == (long.times is not None)
    if one.schedule.n_channels == 1 or one.schedule.channels_share_chunks:
        assert (long.recall is None) == one.schedule.channels_share_chunks
    assert path_of(one, long).pieces == path_of(one, whole).pieces
    expected = derivatives(one.schedule, one.network, one.workers, one.chunk_bytes, whole)
    found = derivatives(one.schedule, one.network, one.workers, one.chunk_bytes, long)
    assert all((getattr(found, kind) == getattr(expected, kind)).all() for kind in KINDS)


def test_the_path_of_a_run_without_rows_is_walked_without_doing_its_steps_again(case, monkeypatch):
    one = case(64, 6400)
    whole = path_of(one, one.run(engine="recurrence")).pieces
    trace = one.run(engine="recurrence", keep_transfers=1)
    monkeypatch.delattr(Steps, "do")
    assert path_of(one, trace).pieces == whole
    # Of steps that are alike one is kept: of 126 that leap to each other a few.
    choices = trace.recall.args[0]
    assert len(choices.steps) == one.schedule.n_steps
    assert len(set(map(id, choices.steps))) < 10


@pytest.mark.parametrize(("where", "most"), [(recall, "MOST_BYTES"), (run, "MOST_STEPS")])
def test_bits_and_steps_that_are_too_many_are_not_kept(case, monkeypatch, where, most):
    monkeypatch.setattr(where, most, 1)
    one = case(4)
    with pytest.raises(InputError, match="times of transfers are left out"):
        path_of(one, one.run(engine="recurrence", keep_transfers=1))


@given(st.data())
def test_under_fair_sharing_there_is_a_path_and_no_derivative(case, data):
    one, _ = all_different(data.draw, case)
    # Which way links are shared is what the run says, also where the network leaves it open.
    trace = one.but(network=replace(one.network, sharing="fair")).run()
    is_whole(one.but(network=replace(one.network, sharing="auto")), trace)
    with pytest.raises(InputError, match="shared fairly"):
        derivatives(one.schedule, one.network, one.workers, one.chunk_bytes, trace)


@given(st.data())
def test_what_comes_in_parts_has_a_whole_path(case, data):
    """Packets and windows: every wait is one for something of this very run, of which it is known what it was."""
    one, _ = all_different(data.draw, case)
    slots = Window(bytes=data.draw(st.sampled_from([1000, 100_000, 10_000_000])))
    changes = {
        "sharing": data.draw(st.sampled_from(["fifo", "fair"])),
        "packets": data.draw(st.sampled_from([None, Packets(70_000, 100)])),
        "window": data.draw(st.sampled_from([None, slots, Window(transfers=1), Window(transfers=2)])),
    }
    assume(changes["window"] is None or one.network.topology != "ring")  # on which no credit comes back
    sizes = one.chunk_bytes // (1 if slots.bytes > 1000 else 500)
    one = one.but(network=replace(one.network, **changes), chunk_bytes=sizes)
    trace = one.run()
    is_whole(one, trace)
    path = path_of(one, trace)
    # What flows lose to others' is nothing that could have been walked further.
    assert all(one.part != "queueing" or (trace.rates and one.queue == "others") for one in path.pieces)
    # Parts of a transfer that follow each other over a link are one piece.
    pieces = [(piece.part, piece.link, piece.transfer) for piece in path.pieces]
    assert not any(one == other and one[0] == "bandwidth" for one, other in pairwise(pieces))


def pieces_in_words(path, names):
    return [
        (piece.part, names[piece.link] if piece.link >= 0 else "", piece.from_s, piece.to_s)
        for piece in path.pieces
        if piece.to_s > piece.from_s
    ]


def one_way(case, custom, wired, n_bytes, **changes):
    """One transfer over one link of 100 B/s and half a second, with a way back of the same."""
    network = wired({"there": (100.0, 0.5), "back": (100.0, 0.5)}, {(0, 1): ["there"], (1, 0): ["back"]}, 2)
    network = replace(network, sharing="fifo", **changes)
    return case(2, n_bytes, schedule=custom(2, [(0, 1, 0)])).but(network=network)


def test_packets_that_follow_each_other_are_one_piece(case, custom, wired):
    one = one_way(case, custom, wired, 300, packets=Packets(50))
    path = path_of(one, one.run())
    assert pieces_in_words(path, one.network.names) == [
        ("bandwidth", "there", 0.0, 3.0), ("latency", "there", 3.0, 3.5)
    ]  # fmt: skip
    assert not any(piece.queue for piece in path.pieces)


def test_a_link_that_is_held_by_a_slower_one_before_it_is_not_blamed(case, custom, wired):
    """Under cut-through its service ends with the tail: the bytes took their time on the slow link."""
    wires = {"slow": (100.0, 0.5), "fast": (400.0, 0.25), "last": (200.0, 0.125)}
    network = wired(wires, {(0, 1): [*wires]}, 2)
    one = case(2, 1000, schedule=custom(2, [(0, 1, 0)])).but(network=network)
    trace = one.run()
    latencies = [
        ("latency", "slow", 10.0, 10.5),
        ("latency", "fast", 10.5, 10.75),
        ("latency", "last", 10.75, 10.875),
    ]
    words = pieces_in_words(path_of(one, trace), network.names)
    assert words == [("bandwidth", "slow", 0.0, 10.0), *latencies]
    found = derivatives(one.schedule, network, one.workers, one.chunk_bytes, trace)
    assert found.inverse_bandwidth.tolist() == [1000.0, 0.0, 0.0]
    # Where the links behind are the slow ones, the heads go ahead and the bytes take their time there.
    wires = {"fast": (400.0, 0.5), "slow": (100.0, 0.25)}
    one = one.but(network=wired(wires, {(0, 1): [*wires]}, 2))
    assert pieces_in_words(path_of(one, one.run()), [*wires]) == [
        ("latency", "fast", 0.0, 0.5), ("bandwidth", "slow", 0.5, 10.5), ("latency", "slow", 10.5, 10.75)
    ]  # fmt: skip


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_a_window_makes_the_path_go_there_and_back(case, custom, wired, sharing):
    # Eight slots of 10 bytes go at once; the credit of the first is back at 0.1 + 0.5 + 0.5 s, and so on.
    one = one_way(case, custom, wired, 160, window=Window(bytes=80))
    one = one.but(network=replace(one.network, sharing=sharing))
    words = pieces_in_words(path_of(one, one.run()), one.network.names)
    parts = [(part, round(to_s - from_s, 9)) for part, _, from_s, to_s in words]
    there = [("bandwidth", 0.8), ("latency", 0.5)] if sharing == "fifo" else [("latency", 0.5), ("bandwidth", 0.8)]
    assert sum(seconds for _, seconds in parts) == pytest.approx(2.4)
    assert sum(seconds for part, seconds in parts if part == "latency") == pytest.approx(1.5)
    assert [seconds for part, seconds in parts if part == "bandwidth"] in (
        pytest.approx([0.1 * first, 0.1 * (9 - first)]) for first in range(1, 9)
    )
    assert {part for part, _ in parts} == {part for part, _ in there}


@pytest.mark.parametrize("algorithm", ["binary-tree", "pipelined-ring"])
def test_credit_that_comes_at_once_leads_in_no_circle(case, algorithm):
    """Empty transfers without latency: what one gives back on its arrival comes when it went out."""
    schedule = ALGORITHMS[algorithm].build(6, "all-reduce")
    n_bytes = [4] + [0] * (schedule.n_chunks - 1)
    one = case(6, n_bytes, schedule=schedule, topology="switch", latency_s=0.0)
    one = one.but(network=replace(one.network, sharing="fair", window=Window(transfers=1)))
    trace = one.run()
    pieces = path_of(one, trace).pieces
    assert all(before.to_s == after.from_s for before, after in pairwise(pieces))
    assert (pieces[0].from_s, pieces[-1].to_s) == (0.0, trace.workers["end_s"].max())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"packets": Packets(64)}, "cut into packets"),
        ({"window": Window(bytes=64)}, "a window"),
        ({"behaviours": {0: OverTime(100.0, 0.5, ((1.0, 50.0),))}}, "changes over time"),
    ],
)
def test_what_has_no_derivatives_says_so(case, change, words):
    one = case(3, topology="switch")
    one = one.but(network=replace(one.network, **change))
    with pytest.raises(InputError, match=words):
        derivatives(one.schedule, one.network, one.workers, one.chunk_bytes, one.run())


@pytest.mark.parametrize("engine", ["events", "compiled"])
@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_more_transfers_than_rows_are_kept_of_leave_the_same_path(case, engine, sharing):
    one = case(5, [30, 70, 200, 0, 11], topology="switch")
    one = one.but(network=replace(one.network, sharing=sharing))
    long = one.run(engine=engine, keep_transfers=1)
    assert (long.transfers, long.rates) == (None, None)
    assert path_of(one, long).pieces == path_of(one, one.run(engine=engine)).pieces


@pytest.mark.parametrize("engine", ["events", "compiled"])
@pytest.mark.parametrize(
    ("most", "words"), [("MOST_TIMES", "times of transfers are left out"), ("MOST_SERVICES", "crossed links")]
)
def test_what_is_not_kept_leaves_no_path(case, monkeypatch, engine, most, words):
    one = case(3)
    with pytest.raises(InputError, match="times of transfers are left out"):
        path_of(one, one.run(engine=engine, keep_transfers=0))
    monkeypatch.setattr(traces, most, 2)
    with pytest.raises(InputError, match=words):
        path_of(one, one.run(engine=engine, keep_transfers=1))


def test_services_in_many_blocks_are_those_in_one(case, monkeypatch):
    one = case(5, [30, 70, 200, 0, 11], topology="switch")
    whole = one.run().services
    monkeypatch.setattr(traces, "ROWS_AT_ONCE", 3)
    for name, column in one.run().services.items():
        assert (column == whole[name]).all()
        assert column.dtype == traces.SERVICES[name]


def test_links_that_treat_sizes_differently_have_the_derivative_of_the_piece_that_applies(case):
    by_size = BySize((Piece(150, 10.0, 3.0), Piece(ANY_SIZE, 100.0, 1.0)))
    one = case(2, [100, 200], collective="all-gather")
    one = one.but(network=replace(one.network, behaviours={0: by_size, 1: by_size}))
    trace = one.run()
    found = derivatives(one.schedule, one.network, one.workers, one.chunk_bytes, trace)
    # A hundred bytes at 10 B/s end after two hundred at 100 B/s.
    assert float(trace.workers["end_s"].max()) == 100 / 10 + 3
    assert sorted(found.inverse_bandwidth.tolist()) == [0, 100]
    assert sorted(found.latency.tolist()) == [0, 1]


def test_a_queue_behind_another_job_is_a_piece_of_its_own(case):
    one = case(2, [100, 100], topology="switch", collective="all-gather")
    other = Job(one.schedule, one.network, one.workers, np.array([5000, 5000]), keep_transfers=0)
    mine = replace(other, workers=replace(one.workers, start_s=one.workers.start_s + 1.0), keep_transfers=10)
    mine = replace(mine, chunk_bytes=one.chunk_bytes)
    trace, _ = run_jobs([mine, other], one.network)
    pieces = critical_path(one.schedule, one.network, mine.workers, one.chunk_bytes, trace).pieces
    (queueing,) = [piece for piece in pieces if piece.part == "queueing"]
    assert (queueing.from_s, queueing.to_s) == (1.0, 50.0)
    assert (queueing.behind, queueing.owner) == (-1, 1)
    assert pieces[-1].to_s == float(trace.workers["end_s"].max())
    with pytest.raises(InputError, match="others share the links"):
        derivatives(one.schedule, one.network, mine.workers, one.chunk_bytes, trace)


def test_a_channel_waits_for_what_another_has_to_send_of_its_chunk(case, custom):
    steps = ([(1, 0, 1, 0)], [(0, 2, 0, 0)], [(3, 0, 0, 1)], [(0, 3, 0, 1)])
    slow = {"1->0": LinkChange(10.0, 0.5), "0->3": LinkChange(1.0, 0.5)}
    one = case(4, schedule=custom(4, *steps), topology="fully-connected", links=slow)
    pieces = path_of(one, one.run()).pieces
    # Not by 3->0, over which chunk 0 came early: worker 0 had yet to send its own, on the channel that waited for 1->0.
    on_links = [one.network.names[piece.link] for piece in pieces if piece.part == "bandwidth"]
    assert on_links == ["1->0", "0->3"]


@pytest.mark.parametrize(("sharing", "in_front"), [("fifo", [1, 2]), ("fair", [2])])
@pytest.mark.parametrize("engine", ["events", "compiled"])
def test_it_is_told_whose_transfer_was_in_front(case, custom, wired, engine, sharing, in_front):
    """Under fifo sharing what the link served before; of three flows the one that the longest was with longest."""
    wires = {"a": (1e4, 0.0), "b": (1e4, 0.0), "c": (1e4, 0.0), "narrow": (100.0, 0.0)}
    routes = {(1, 0): ["a", "narrow"], (2, 0): ["b", "narrow"], (3, 0): ["c", "narrow"]}
    schedule = custom(4, [(1, 0, 0), (2, 0, 1), (3, 0, 2)])
    one = case(4, schedule=schedule).but(
        network=replace(wired(wires, routes, 4), sharing=sharing), chunk_bytes=np.array([100, 200, 300])
    )
    path = path_of(one, one.run(engine=engine))
    waits = [place for place, piece in enumerate(path.pieces) if piece.queue]
    assert {path.pieces[place].queue for place in waits} == {"others"}
    assert [path.behind("src")[place] for place in waits] == in_front


@pytest.mark.parametrize("engine", ["events", "compiled"])
def test_what_a_flow_did_before_and_after_another_counts_for_nothing(case, custom, wired, engine):
    """Of 1->4 and 5->4, which take longest, but most of it alone, and of 2->4, which was with 3->0 for longest."""
    wires = {"narrow": (100.0, 0.0), "slow": (10.0, 0.0)}
    pairs = [(1, 4), (2, 4), (3, 0), (5, 4)]
    schedule = custom(7, [(*pair, chunk) for chunk, pair in enumerate(pairs)], [(0, 6, 2)])
    routes = {pair: ["narrow"] for pair in pairs} | {(0, 6): ["slow"]}
    one = case(7, schedule=schedule, start_s=[0, 0, 8, 8, 0, 13, 0]).but(
        network=replace(wired(wires, routes, 7), sharing="fair"), chunk_bytes=np.array([900, 200, 300, 1000])
    )
    path = path_of(one, one.run(engine=engine))
    assert [path.behind("src")[place] for place, piece in enumerate(path.pieces) if piece.queue] == [2]


@pytest.mark.parametrize("sends", ["eager", "rendezvous"])
def test_all_engines_leave_the_same_services(case, sends):
    one = case(5, [30, 70, 200, 0, 11], topology="switch", sends=sends, start_s=[0, 0.1, 5, 0, 0.3])
    first, *others = (one.run(engine=engine) for engine in ENGINES)

    def by_transfer(services):
        order = np.lexsort((services["hop"], services["transfer"]))
        return [column[order].tolist() for column in services.values()]

    for other in others:
        assert by_transfer(first.services) == by_transfer(other.services)
        assert path_of(one, first).pieces == path_of(one, other).pieces


@pytest.mark.parametrize(("first", "latency_s"), [(1, 1.0), (2, 0.0)])
def test_of_posts_that_are_done_at_once_that_of_the_first_channel_is_told(case, custom, first, latency_s):
    """Both paths to worker 0 take 2 s, one of them half of that as latency; channel 2 waits for what both post."""
    second = 3 - first
    steps = [(first, 0, 1, 0), (second, 0, 2, 1)], [(0, 2, 0, 0), (0, 1, 0, 1)], [(3, 0, 0, 2)]
    links = {"1->0": LinkChange(10.0, 1.0), "2->0": LinkChange(5.0, 0.0), "3->0": LinkChange(100.0, 0.0)}
    one = case(4, schedule=custom(4, *steps), topology="fully-connected", links=links)
    one = one.but(chunk_bytes=np.full(one.schedule.n_chunks, 10))
    traces = [one.run(engine=engine) for engine in ("events", "recurrence")]
    for trace in traces:
        assert trace.workers["end_s"][0] == 2.0
        assert trace.workers["path_latency_s"][0] == latency_s
    assert path_of(one, traces[0]).pieces == path_of(one, traces[1]).pieces
