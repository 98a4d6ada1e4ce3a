"""The compiled engine: the same as SimPy's events on random networks, what it refuses, and how its code is kept."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis.critical_path import critical_path
from ringnet.analysis.metrics import makespan_s
from ringnet.collectives import ALGORITHMS, split_sizes
from ringnet.engines import ENGINES, Workers, choose_engine, columns, machine_code
from ringnet.engines.compiled import arrays, fair, loop, routes, rows, run, run_compiled, why_not_compiled
from ringnet.engines.compiled.arrays import MadeSteps
from ringnet.engines.events import run_events
from ringnet.engines.luck import Luck
from ringnet.errors import DeadlockError, InputError, RingnetError
from ringnet.networks import TOPOLOGIES, BySize, Cable, Inside, OverTime, Packets, Window
from ringnet.networks.behaviour import ANY_SIZE, Piece
from ringnet.runs.parts import build
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads

FAST, SLOW = (1e9, 1e-6), (2.5e8, 3e-6)


def cabled(n_workers, bandwidth_Bps, latency_s):
    """Switches in a chain that is closed by a slow cable: routes of many lengths over the same links."""
    cables = [Cable(str(worker), f"s{worker % 4}") for worker in range(n_workers)]
    cables += [Cable(f"s{switch}", f"s{switch + 1}") for switch in range(3)] + [Cable("s3", "s0", 1e8, 1e-5)]
    return TOPOLOGIES["custom"].build(
        n_workers, bandwidth_Bps, latency_s, cables=cables, switches=[f"s{switch}" for switch in range(4)]
    )


NETWORKS = {
    "leaf-spine": lambda n, *link: TOPOLOGIES["leaf-spine"].build(
        n, *link, hosts_per_leaf=3, spines=2, oversubscription=2.0
    ),
    "fat-tree": lambda n, *link: TOPOLOGIES["fat-tree"].build(n, *link, k=4),
    "dragonfly": lambda n, *link: TOPOLOGIES["dragonfly"].build(
        n, *link, groups=3, routers_per_group=2, hosts_per_router=2
    ),
    "hosts": lambda n, *link: TOPOLOGIES["nodes"].build(
        n, *link, workers_per_host=2 - n % 2, inside=Inside("switch", *FAST)
    ),
    "cabled": cabled,
    "switch": TOPOLOGIES["switch"].build,
}


def windows(most_bytes):
    """Windows through which the largest transfers go in up to nine slots, or in one."""
    return (Window(most_bytes), Window(3 * most_bytes + 8, 2), Window(transfers=1), Window(transfers=3))


def by_size(network, some):
    """What half of the links do: small transfers are slower, and have their own latency."""
    found = {}
    for link in np.flatnonzero(some.random(network.n_links) < 0.5).tolist():
        rate_Bps, latency_s = float(network.bandwidth_Bps[link]), float(network.latency_s[link])
        small = (Piece(4.0, rate_Bps / 4, 2 * latency_s), Piece(4_000.0, rate_Bps / 2, latency_s + 1e-7))
        found[link] = BySize((*small, Piece(ANY_SIZE, rate_Bps, latency_s)))
    return found


@st.composite
def runs(draw):
    """Workers in any order on a network whose links differ, or do not: then much comes at the same time."""
    algorithm = draw(
        st.sampled_from(sorted({*ALGORITHMS} - {"nvls", "nvls-tree", "sharp", "torus-ring", "hierarchical"}))
    )
    n_workers = draw(st.sampled_from([2, 4, 8]) if algorithm == "swing" else st.integers(2, 10))
    schedule = ALGORITHMS[algorithm].build(n_workers, draw(st.sampled_from(ALGORITHMS[algorithm].collectives)))
    n_elements = draw(st.sampled_from([1, n_workers, 40_000]))
    chunk_bytes = 4 * split_sizes(n_elements, schedule.n_chunks)
    most_bytes = int(chunk_bytes.max())
    made = NETWORKS[draw(st.sampled_from(sorted(NETWORKS)))](n_workers, *draw(st.sampled_from([FAST, SLOW])))
    place = draw(st.permutations(range(n_workers)))
    some = np.random.default_rng(draw(st.integers(0, 2**16)))
    differs = draw(st.booleans())
    network = replace(
        made,
        bandwidth_Bps=made.bandwidth_Bps * (some.uniform(0.5, 2, made.n_links) if differs else 1),
        latency_s=made.latency_s * draw(st.sampled_from([0, 1])),
        find_route=lambda src, dst: made.find_route(place[src], place[dst]),
        sharing=draw(st.sampled_from(["fair", "fair", "fifo"])),
        switching=draw(st.sampled_from(["cut-through", "store-and-forward"])),
        window=draw(st.sampled_from([None, None, *windows(most_bytes)])),
        packets=draw(st.sampled_from([None, None, Packets(most_bytes), Packets(most_bytes // 4 + 1, 64)])),
    )
    if draw(st.booleans()):
        network = replace(network, behaviours=by_size(network, some))
    seconds = st.sampled_from([0.0, 0.0, 1e-6])
    columns = {name: draw(seconds) for name in ("start_s", "launch_s", "send_overhead_s", "recv_overhead_s")}
    if draw(st.booleans()):
        columns = {name: some.uniform(0, 5 * value, n_workers) for name, value in columns.items()}
    columns = {**columns, "reduce_Bps": draw(st.sampled_from([np.inf, 1e9]))}
    workers = replace(
        Workers.alike(n_workers, sends=draw(st.sampled_from(["eager", "rendezvous"]))),
        **{name: np.full(n_workers, value) if np.isscalar(value) else value for name, value in columns.items()},
    )
    return schedule, network, workers, chunk_bytes


def differences(one, other):
    """Where two traces are not the same to the last bit."""
    found = []
    for part in ("transfers", "links", "workers", "waits", "services", "rates"):
        mine, its = (_columns(trace, part) for trace in (one, other))
        order = [
            np.lexsort([*columns.values()]) if part in ("waits", "services") and columns else ...
            for columns in (mine, its)
        ]
        found += [
            (part, name) for name in {**mine, **its} if not np.array_equal(mine[name][order[0]], its[name][order[1]])
        ]
    return found


def _columns(trace, part):
    if part == "rates":
        blocks = [] if trace.rates is None else [*trace.rates.on_links()]
        return {name: np.concatenate([block[name] for block in blocks]) for name in (blocks[0] if blocks else {})}
    return getattr(trace, part) or {}


@given(what=runs(), at_once=st.sampled_from([1, 20, 1 << 14]))
def test_the_same_as_the_events_to_the_last_bit(what, at_once):
    assert why_not_compiled(*what[:3]) is None
    # Of few at once, steps are dropped and loaded, and rows are taken out, in the middle of everything.
    with (
        mock.patch.object(arrays, "TRANSFERS_AT_ONCE", at_once),
        mock.patch.object(rows, "ROWS_AT_ONCE", at_once),
    ):
        found = run_compiled(*what)
    expected = run_events(*what)
    assert not differences(expected, found)
    if what[0].n_workers > 1:
        assert critical_path(*what, expected).pieces == critical_path(*what, found).pieces


@given(what=runs(), at_once=st.sampled_from([1, 20, 1 << 14]))
def test_what_runs_of_many_sizes_share_changes_none_of_them(what, at_once):
    """Also where steps are kept that others have left, and uses of chunks that are over; with waits they keep these."""
    *on, chunk_bytes = what
    shared = []
    with mock.patch.object(arrays, "LOOKED_AT_ONCE", at_once), mock.patch.object(arrays, "TRANSFERS_AT_ONCE", 20):
        for n_bytes in (chunk_bytes, 3 * chunk_bytes + 1, chunk_bytes // 7):
            found = run_compiled(*on, n_bytes, shared=shared)
            assert not differences(run_compiled(*on, n_bytes), found)
            alone = run_compiled(*on, n_bytes, keep_transfers=None, shared=shared)
            assert alone.waits is None
            assert makespan_s(alone) == makespan_s(found)
            assert all(np.array_equal(alone.links[name], column) for name, column in found.links.items())
    assert len(shared) == 1


@given(what=runs())
def test_links_that_a_sender_alone_never_fills_need_not_be_looked_at(what):
    with mock.patch("ringnet.engines.events.run._never_full", return_value=frozenset()):
        of_all = run_events(*what)
    assert not differences(of_all, run_events(*what))


def test_the_loop_is_what_its_source_says(monkeypatch):
    """As Python runs it the loop leaves what the events leave, with all that workers can cost."""
    monkeypatch.setattr(run, "addresses", lambda arrays: arrays)
    for sharing in ("fair", "fifo"):
        for sends in ("eager", "rendezvous"):
            what = shuffled(8, sends, sharing, send_overhead_s=1e-7, recv_overhead_s=2e-7, reduce_Bps=1e10)
            with monkeypatch.context() as interpreted:
                interpreted.setattr(run, "compiled", lambda _: loop.advance)
                slow = run_compiled(*what)
            assert not differences(run_events(*what), slow)


def shuffled(n_workers, sends, sharing, algorithm="ring", **costs):
    """Workers in a random order over leaves with two spines, twice oversubscribed."""
    place = np.random.default_rng(1).permutation(n_workers).tolist()
    made = NETWORKS["leaf-spine"](n_workers, *FAST)
    network = replace(made, sharing=sharing, find_route=lambda src, dst: made.find_route(place[src], place[dst]))
    schedule = ALGORITHMS[algorithm].build(n_workers, "all-reduce")
    workers = Workers.alike(n_workers, sends=sends, **costs)
    return schedule, network, workers, split_sizes(100_000, schedule.n_chunks)


def test_what_was_predicted_for_other_rates_is_dropped():
    """Of 240 flows that come one by one, each with new rates for the others, some ends for each are kept."""
    schedule = ALGORITHMS["direct"].build(16, "all-reduce")
    made = TOPOLOGIES["switch"].build(16, *FAST)
    latency_s = made.latency_s * np.random.default_rng(1).uniform(0.9, 1.1, made.n_links)
    network = replace(made, latency_s=latency_s, sharing="fair")
    made = MadeSteps(schedule, network)
    one = run.Loop(made, network, Workers.alike(16), split_sizes(10**6, 16), None)
    one.run()
    n_flows, counts = 16 * 15, one.counts()
    assert len(one.whole[columns.END_FLOW]) <= 5 * n_flows < counts["rates"] / 10
    assert counts["settlements"] > n_flows


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"behaviours": {0: OverTime(1e9, 0.0, ((1.0, 2e9),))}}, "a bandwidth changes over time"),
    ],
)
def test_what_it_does_not_know_it_refuses_by_name(changes, reason):
    schedule, network, *others = shuffled(6, "eager", "fair")
    with pytest.raises(InputError, match=f"the compiled loop does not know this: {reason}"):
        run_compiled(schedule, replace(network, **changes), *others)


def test_who_waits_for_ever_is_told_as_the_events_do(custom):
    """Of two transfers from worker 0 to worker 1 the first is applied after what the second one leads to."""
    schedule = custom(3, [(0, 1, 2, 1)], [(1, 2, 3, 1, 0)], [(2, 1, 0)], [(0, 1, 1)])
    network = replace(TOPOLOGIES["switch"].build(3, *FAST), window=Window(transfers=1))
    what = schedule, network, Workers.alike(3), np.full(4, 100)
    with pytest.raises(DeadlockError) as expected:
        run_events(*what)
    with pytest.raises(DeadlockError) as told:
        ENGINES["compiled"].run(*what)
    assert str(told.value) == str(expected.value)
    roomy = replace(network, window=Window(transfers=2))
    assert not differences(run_events(*what[:1], roomy, *what[2:]), run_compiled(*what[:1], roomy, *what[2:]))


def test_what_workers_do_by_chance_is_refused():
    schedule, network, workers, chunk_bytes = shuffled(6, "eager", "fair")
    with pytest.raises(InputError, match="processors are interrupted by noise"):
        run_compiled(schedule, network, replace(workers, luck=Luck()), chunk_bytes)


def test_a_worker_that_never_starts_is_refused():
    schedule, network, workers, chunk_bytes = shuffled(6, "eager", "fair")
    never = replace(workers, start_s=np.array([0, np.inf, 0, 0, 0, 0]))
    with pytest.raises(InputError, match="worker 1 never starts"):
        run_compiled(schedule, network, never, chunk_bytes)


@pytest.mark.parametrize(
    ("n_workers", "sharing", "engine"),
    [(32, "fair", "events"), (64, "fair", "compiled"), (64, "fifo", "events")],
)
def test_auto_takes_it_where_a_run_over_shared_links_is_large(n_workers, sharing, engine):
    """A ring of 64 has 8,064 transfers: many where links are shared fairly, few for SimPy where they are not."""
    assert choose_engine(*shuffled(n_workers, "eager", sharing)).name == engine


CHAOTIC = """
{scenario_version: 1, workers: 64, message: 64 MiB, payload: none, network: {topology: leaf-spine, hosts_per_leaf: 8,
 spines: 4, bandwidth: 50 GB/s, latency: 500 ns, placement: %s}, report: {plots: [], transfers: 0}}
"""


@pytest.mark.parametrize("sends", ["eager", "rendezvous"])
def test_how_well_a_time_is_known_is_said_where_it_is_chaos(sends):
    """By other draws of latencies than the run's own, it moves as far, within what chaos makes of it."""
    places = np.random.default_rng(1).permutation(64).tolist()
    scenario = loads(CHAOTIC % places, [f"worker.sends={sends}"])
    result, parts = simulate(scenario), build(scenario)
    share = result.summary["moved_share"]
    network, moves = parts.network_of_run, []
    for seed in range(1, 6):
        moved = 1 + np.random.default_rng(seed).uniform(-1e-12, 1e-12, network.n_links)
        other = replace(network, latency_s=network.latency_s * moved)
        trace = run_compiled(parts.schedule, other, parts.workers, parts.chunk_bytes)
        moves.append(abs(makespan_s(trace) / result.summary["makespan_s"] - 1))
    assert 1e-6 < max(moves) < 30 * share
    assert share < 0.05
    assert [note for note in result.notes if note.startswith("the time is known to about ")]


@pytest.mark.parametrize("changes", ["network.placement=numbered", "network.sharing=fifo"])
def test_where_it_is_no_chaos_nothing_is_said(changes):
    """Neighbours on one leaf, or links that serve one after another, whatever the latencies are."""
    scenario = loads(CHAOTIC % [*range(64)], [changes, "engine=compiled"])
    assert "moved_share" not in simulate(scenario).summary


def test_flows_that_start_together_nearly_do_in_the_runs_beside_a_run(monkeypatch):
    """Each by itself, all that are under way would have new rates with each that comes: 2,256 times 2,256."""
    rates, do = [], run.Loop.run

    def counting(self):
        do(self)
        rates.append(self.counts()["rates"])

    monkeypatch.setattr(run.Loop, "run", counting)
    network = "{topology: switch, sharing: fair, bandwidth: 25 GB/s, latency: 2 us}"
    text = f"{{scenario_version: 1, workers: 48, message: 64 MiB, payload: none, network: {network}}}"
    simulate(loads(text, ["algorithm=direct", "engine=compiled"]))
    assert len(rates) == 3
    assert max(rates) < 10 * min(rates)


def test_machine_code_is_kept_whole_where_it_can_be(monkeypatch, tmp_path):
    """What was compiled is read back; a file that is not whole is made again, and so is one that cannot be kept."""
    (kept,) = {file.name for folder in machine_code._folders() for file in folder.glob("loop-*.bin")} & {
        f"loop-{machine_code.key_of(run.LOOP)}.bin"
    }
    whole = next(file for folder in machine_code._folders() if (file := folder / kept).exists()).read_bytes()
    made = []

    def compile_again(*_, **__):
        made.append(1)
        return subprocess.CompletedProcess([], 0, whole)

    monkeypatch.setattr(subprocess, "run", compile_again)
    get = machine_code.compiled.__wrapped__
    for folder, before, times in [
        (tmp_path / "new", None, [1, 0]),
        (tmp_path / "new", whole[:-1], [1, 0]),
        (tmp_path / "new" / kept, None, [1, 1]),  # a file where a folder should be
    ]:
        monkeypatch.setenv("RINGNET_CACHE", str(folder))
        if before:
            (folder / kept).write_bytes(before)
        for expected in times:
            made.clear()
            assert callable(get(run.LOOP))
            assert len(made) == expected
    # Of files that were edited while this process runs another process makes another loop.
    monkeypatch.setattr(columns, "N_WHOLE", columns.N_WHOLE + 1)
    with pytest.raises(RingnetError, match="start it again"):
        get(run.LOOP)


def test_machine_code_belongs_to_what_was_imported(monkeypatch):
    """Numbers that are taken from elsewhere too, and functions, but not the files."""
    key = machine_code.key_of(run.LOOP)
    read = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda file, **how: file.suffix == ".py" or read(file, **how))
    keys = {key, machine_code.key_of(run.LOOP)}
    assert len(keys) == 1
    for module, name, value in ((fair, "SAME_TIME", 1e-8), (routes, "has_room", routes.alone_s)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            keys.add(machine_code.key_of(run.LOOP))
    assert len(keys) == 3
    assert machine_code.key_of(run.LOOP) == key
