"""The two engines are one: the same trace for every run that the recurrence accepts, a reason for others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ringnet.analysis.critical_path import critical_path
from ringnet.analysis.frames import path_table
from ringnet.collectives import ALGORITHMS, EVERY_WORKER, Schedule, Step, split_sizes
from ringnet.engines import ENGINES, Trace, Workers, choose_engine
from ringnet.engines.arrays import run, why_not_exact, why_not_recurrence
from ringnet.errors import InputError, NetworkError
from ringnet.networks import TOPOLOGIES, BySize, Network, OverTime, Packets, Piece, Window
from ringnet.networks.behaviour import ANY_SIZE

events, recurrence = ENGINES["events"].run, ENGINES["recurrence"].run

BANDWIDTHS = st.sampled_from([1e9, 2.5e9, 7e8, 3.3e10])
LATENCIES = st.sampled_from([0.0, 1e-6, 3.7e-6, 2e-5])
SECONDS = st.sampled_from([0.0, 0.0, 1e-6, 1.3e-5])


def same(one: Trace, other: Trace) -> None:
    """All tables are the same bytes, whichever engine ran."""
    for rows, others in ((one.links, other.links), (one.workers, other.workers)):
        assert rows.keys() == others.keys()
        for name, column in rows.items():
            np.testing.assert_array_equal(column, others[name], err_msg=name)
    assert (one.transfers is None) == (other.transfers is None)
    for name, column in (one.transfers or {}).items():
        np.testing.assert_array_equal(column, other.transfers[name], err_msg=name)


@st.composite
def workers(draw: st.DrawFn, n_workers: int) -> Workers:
    def column(values: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=n_workers, max_size=n_workers)))

    rates = st.sampled_from([np.inf, np.inf, 1e9, 3e8])
    return Workers(
        start_s=column(SECONDS),
        send_overhead_s=column(SECONDS),
        recv_overhead_s=column(SECONDS),
        reduce_Bps=column(rates),
        launch_s=column(SECONDS),
        sends=draw(st.sampled_from(["eager", "rendezvous"])),
    )


@st.composite
def unequal(draw: st.DrawFn, network: Network) -> Network:
    n_links = network.n_links
    return replace(
        network,
        bandwidth_Bps=np.array(draw(st.lists(BANDWIDTHS, min_size=n_links, max_size=n_links))),
        latency_s=np.array(draw(st.lists(LATENCIES, min_size=n_links, max_size=n_links))),
        switching=draw(st.sampled_from(["cut-through", "store-and-forward"])),
    )


@given(st.data(), st.integers(1, 9), st.sampled_from(["fully-connected", "ring", "switch"]), st.integers(0, 5000))
def test_random_unequal_rings(data: st.DataObject, n_workers: int, topology: str, n_elements: int) -> None:
    collective = data.draw(st.sampled_from(["all-reduce", "reduce-scatter", "all-gather"]))
    schedule = ALGORITHMS["ring"].build(n_workers, collective)
    network = data.draw(unequal(TOPOLOGIES[topology].build(n_workers, 1e9, 1e-6)))
    behave = data.draw(workers(n_workers))
    chunk_bytes = 4 * split_sizes(n_elements, n_workers)
    same(events(schedule, network, behave, chunk_bytes), recurrence(schedule, network, behave, chunk_bytes))


# ------------------------------------------------------------------ any schedule, on private routes of one or two links


def private_routes(n_workers: int, n_hops: int) -> Network:
    """Between every two workers a route of its own: of ``n_hops`` links, or of 1 or 2 by turns where that is 0."""
    names, routes = [], {}
    for src in range(n_workers):
        for dst in range(n_workers):
            hops = n_hops or 1 + (src + dst) % 2
            routes[src, dst] = tuple(range(len(names), len(names) + hops))
            names += [f"{src}->{dst}"] if hops == 1 else [f"{src}->{src}.{dst}", f"{src}.{dst}->{dst}"]
    values = np.ones(len(names))
    return Network("private", n_workers, tuple(names), values * 1e9, values * 1e-6, lambda src, dst: routes[src, dst])


@st.composite
def schedules(draw: st.DrawFn, n_workers: int, n_chunks: int, n_channels: int) -> Schedule:
    """Steps of any transfers at all: several of one sender, several to one receiver, none; no collective."""
    row = st.tuples(st.integers(0, n_workers - 1), st.integers(1, n_workers - 1), st.integers(0, n_chunks - 1))
    drawn = draw(st.lists(st.tuples(st.sampled_from(["reduce", "copy"]), st.lists(row, max_size=8)), max_size=8))
    steps = []
    for number, (op, rows) in enumerate(drawn):
        src, distance, chunk = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        dst = (src + distance) % n_workers
        # Each pair has its channels, so that no link carries two; on each side the other one's number says which.
        steps.append(Step("any", number, op, src, dst, chunk, dst % n_channels, src % n_channels))
    everyone = np.full(n_chunks, EVERY_WORKER)
    n_transfers = sum(map(len, steps))
    return Schedule(
        "any",
        "any",
        n_workers,
        n_chunks,
        len(steps),
        n_transfers,
        lambda: iter(steps),
        everyone,
        everyone,
        n_channels,
    )


@given(st.data(), st.integers(2, 5), st.integers(0, 2), st.integers(1, 3))
def test_any_schedule_on_private_routes(data: st.DataObject, n_workers: int, n_hops: int, n_channels: int) -> None:
    schedule = data.draw(schedules(n_workers, 3, n_channels))
    network = data.draw(unequal(private_routes(n_workers, n_hops)))
    behave = data.draw(workers(n_workers))
    if n_channels > 1:  # a processor that they share must be free
        free = Workers.alike(n_workers, sends=behave.sends)
        behave = replace(free, start_s=behave.start_s, launch_s=behave.launch_s)
    chunk_bytes = np.array(data.draw(st.lists(st.sampled_from([0, 4, 1000, 7777]), min_size=3, max_size=3)))
    reason = why_not_exact(schedule, network, behave)
    event(reason or f"{n_channels} channels compared")
    if reason is None:
        what = (schedule, network, behave, chunk_bytes)
        traces = events(*what), recurrence(*what)
        same(*traces)
        if schedule.n_transfers:  # of paths that are as long one is told, by one rule
            one, other = (path_table(critical_path(*what, trace), network.names, ["this"]) for trace in traces)
            assert repr(one) == repr(other)
    else:
        assert n_channels > 1 or (behave.sends == "rendezvous" and "carries two transfers" in reason)


SEVERAL_CHANNELS = (
    "channel-ring",
    "torus-ring",
    "uneven-ring",
    "swing",
    "double-binary-tree",
    "bidirectional-ring",
)


@given(
    st.data(),
    st.integers(2, 8),
    st.sampled_from(SEVERAL_CHANNELS),
    st.sampled_from(["ring", "switch"]),
    st.integers(0, 9999),
)
def test_channels_that_meet_on_a_link(
    data: st.DataObject, n_workers: int, algorithm: str, topology: str, n_elements: int
) -> None:
    """Which of them it serves first the times say: the traces are the same, or the run is refused."""
    schedule = ALGORITHMS[algorithm].build(n_workers, "all-reduce")
    network = data.draw(unequal(TOPOLOGIES[topology].build(n_workers, 1e9, 1e-6)))
    behave = replace(Workers.alike(n_workers), start_s=data.draw(workers(n_workers)).start_s)
    what = (schedule, network, behave, 4 * schedule.chunk_sizes(n_elements))
    try:
        by_schedule, by_times = why_not_recurrence(*what[:3]), why_not_recurrence(*what)
    except NetworkError:  # a ring's links lead to the neighbours only
        return
    event(f"by schedule: {by_schedule}, by times: {by_times}")
    if by_times is not None:
        assert by_schedule == by_times
        with pytest.raises(InputError):
            recurrence(*what)
        return
    one, other = events(*what), recurrence(*what)
    same(one, other)
    waits = (sorted(zip(*map(np.ndarray.tolist, trace.waits.values()), strict=True)) for trace in (one, other))
    assert next(waits) == next(waits)


# ------------------------------------------------------------------------------------------------- what is refused


def schedule_of(n_workers: int, *steps: list[tuple[int, int]], n_channels: int = 1) -> Schedule:
    made = []
    for number, pairs in enumerate(steps):
        src, dst = np.array(pairs, dtype=np.int64).T
        channel = np.arange(len(pairs)) % n_channels
        made.append(Step("any", number, "copy", src, dst, np.zeros(len(pairs), dtype=np.int64), channel))
    everyone = np.full(1, EVERY_WORKER)
    total = sum(map(len, made))
    return Schedule("any", "any", n_workers, 1, len(made), total, lambda: iter(made), everyone, everyone, n_channels)


def refused(schedule: Schedule, network: Network, behave: Workers | None = None) -> str:
    behave = behave or Workers.alike(network.n_workers)
    with pytest.raises(InputError) as caught:
        recurrence(schedule, network, behave, np.full(schedule.n_chunks, 1000))
    return str(caught.value)


def test_a_link_of_two_senders_is_refused_by_name() -> None:
    switch = TOPOLOGIES["switch"].build(3, 1e9, 1e-6)
    said = refused(schedule_of(3, [(0, 2), (1, 2)]), switch)
    assert "link switch->2 carries transfers of workers 0 and 1" in said


def test_senders_of_different_steps_count_too() -> None:
    switch = TOPOLOGIES["switch"].build(3, 1e9, 1e-6)
    assert "workers 0 and 1" in refused(schedule_of(3, [(0, 2)], [(1, 2)]), switch)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sharing": "fair"}, "shared fairly"),
        (
            {"behaviours": {0: BySize((Piece(100, 1e9, 0.0), Piece(ANY_SIZE, 1e9, 1e-6)))}},
            "sizes differently",
        ),
        ({"behaviours": {0: OverTime(1e9, 1e-6, ((1.0, 1e9),))}}, "changes over time"),
        ({"window": Window(bytes=100)}, "window"),
        ({"packets": Packets(100)}, "packets"),
    ],
)
def test_what_a_network_may_do_beside_is_refused(change: dict[str, object], reason: str) -> None:
    ring = replace(TOPOLOGIES["ring"].build(3, 1e9, 1e-6), **change)
    assert reason in refused(ALGORITHMS["ring"].build(3, "all-reduce"), ring)


def test_two_ways_to_one_link_are_refused() -> None:
    routes = {(0, 1): (0, 2), (0, 2): (1, 2)}
    network = Network(
        "bow", 3, ("0->a", "0->b", "a->c"), np.full(3, 1e9), np.zeros(3), lambda src, dst: routes[src, dst]
    )
    assert "link a->c gets the transfers of one worker over two ways" in refused(
        schedule_of(3, [(0, 1)], [(0, 2)]), network
    )


def test_two_transfers_of_a_step_on_one_link_in_a_rendezvous_are_refused() -> None:
    ring = TOPOLOGIES["ring"].build(2, 1e9, 1e-6)
    said = refused(schedule_of(2, [(0, 1), (0, 1)]), ring, Workers.alike(2, sends="rendezvous"))
    assert "link 0->1 carries two transfers of one step" in said


def test_channels_that_share_a_costly_processor_are_refused() -> None:
    both_ways = TOPOLOGIES["switch"].build(2, 1e9, 1e-6)
    said = refused(schedule_of(2, [(0, 1), (1, 0)], n_channels=2), both_ways, Workers.alike(2, recv_overhead_s=1e-6))
    assert "2 channels" in said


def test_channels_run_beside_each_other_where_the_processor_is_free() -> None:
    schedule = schedule_of(2, [(0, 1), (1, 0)], [(0, 1), (1, 0)], n_channels=2)
    network, behave = TOPOLOGIES["switch"].build(2, 1e9, 1e-6), Workers.alike(2)
    chunk_bytes = np.array([1000])
    same(events(schedule, network, behave, chunk_bytes), recurrence(schedule, network, behave, chunk_bytes))


def test_a_worker_that_never_starts_is_for_the_engine_that_can_say_who_waits() -> None:
    behave = Workers.alike(3)
    behave.start_s[1] = np.inf
    with pytest.raises(InputError, match="worker 1 never starts"):
        recurrence(
            ALGORITHMS["ring"].build(3, "all-reduce"),
            TOPOLOGIES["ring"].build(3, 1e9, 0.0),
            behave,
            np.ones(3),
        )


# --------------------------------------------------------------------------------------------------------- choice


def test_auto_takes_the_recurrence_for_large_exact_runs() -> None:
    small, large = (ALGORITHMS["ring"].build(n_workers, "all-reduce") for n_workers in (8, 128))
    assert choose_engine(small, TOPOLOGIES["ring"].build(8, 1e9, 0.0), Workers.alike(8), np.ones(8)).name == "events"
    chosen = choose_engine(large, TOPOLOGIES["ring"].build(128, 1e9, 0.0), Workers.alike(128), np.ones(128))
    assert chosen[:2] == ("recurrence", "32,512 transfers are many, and it is exact here")


def test_the_rounds_of_a_choice_serve_its_own_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are made once for both; whatever else is run by that choice makes its own."""
    looks, look = [], why_not_exact
    monkeypatch.setattr(run, "why_not_exact", lambda *what, **how: (looks.append(1), look(*what, **how))[1])
    schedule, network = ALGORITHMS["ring"].build(16, "all-reduce"), TOPOLOGIES["ring"].build(16, 1e9, 1e-6)
    behave, chunk_bytes = Workers.alike(16), np.full(16, 1000)
    chosen, other = choose_engine(schedule, network, behave, chunk_bytes), TOPOLOGIES["ring"].build(16, 2e9, 1e-6)
    assert chosen.name == "recurrence"
    for on, n_looks in ((network, 1), (other, 2), (network, 2)):
        same(chosen.run(schedule, on, behave, chunk_bytes), events(schedule, on, behave, chunk_bytes))
        assert len(looks) == n_looks


def test_auto_says_why_a_large_run_is_left_to_another_engine() -> None:
    trunk = Network("trunk", 128, ("trunk",), np.array([1e9]), np.zeros(1), lambda src, dst: (0,))
    schedule, reason = (
        ALGORITHMS["ring"].build(128, "all-reduce"),
        "link trunk carries transfers of workers 0 and 1",
    )
    assert choose_engine(schedule, trunk, Workers.alike(128), np.ones(128))[:2] == (
        "compiled",
        f"32,512 transfers are many, and the recurrence is not exact here: {reason}",
    )
    window = replace(trunk, window=Window(transfers=1))
    assert choose_engine(schedule, window, Workers.alike(128), np.ones(128))[:2] == (
        "compiled",
        "32,512 transfers are many, and the recurrence is not exact here: a window holds transfers back",
    )


def test_rows_beyond_the_limit_are_left_out_and_the_rest_is_the_same() -> None:
    schedule, network = ALGORITHMS["ring"].build(4, "all-reduce"), TOPOLOGIES["ring"].build(4, 1e9, 1e-6)
    chunk_bytes = np.full(4, 1000)
    kept = recurrence(schedule, network, Workers.alike(4), chunk_bytes, keep_transfers=24)
    left_out = recurrence(schedule, network, Workers.alike(4), chunk_bytes, keep_transfers=23)
    assert kept.transfers is not None
    assert left_out.transfers is None
    np.testing.assert_array_equal(kept.workers["end_s"], left_out.workers["end_s"])
