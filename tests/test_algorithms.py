"""Every algorithm: proved by sets, replayed without a clock, run with a payload, as its docstring says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from ringnet.analysis.replay import replay_table
from ringnet.analysis.verification import verify
from ringnet.collectives import ALGORITHMS, EVERY_WORKER, Schedule
from ringnet.collectives.proof import check
from ringnet.engines import ENGINES, Workers
from ringnet.engines.arrays import why_not_exact
from ringnet.engines.arrays.run import stepper
from ringnet.errors import InputError
from ringnet.networks import Network
from ringnet.networks.basic import switch
from ringnet.payload import PackedPayload, Payload, SwitchSums
from ringnet.payload.reductions import REDUCTIONS, make_reduction
from ringnet.payload.sources import RandomSource

COUNTS = [*range(1, 18), 32, 33, 64]
FLAT = sorted(set(ALGORITHMS) - {"hierarchical"})
KINDS = [(name, kind) for name, algorithm in ALGORITHMS.items() for kind in algorithm.collectives]

#: What else an algorithm can be told, beside its defaults, by name.
TOLD = [
    ("binary-tree", "broadcast", {"n_slices": 3, "root": 2}),
    ("binary-tree", "reduce", {"n_slices": 1, "root": 5}),
    ("binary-tree", "all-reduce", {"root": 5, "n_channels": 2, "node_size": 4}),
    ("binary-tree", "broadcast", {"root": 6, "n_channels": 3, "node_size": 4}),
    ("binary-tree", "reduce", {"root": 2, "n_channels": 4, "node_size": 3}),
    ("binomial-tree", "broadcast", {"root": 5}),
    ("binomial-tree", "reduce", {"root": 3}),
    ("channel-ring", "all-reduce", {"n_channels": 3, "strides": (1, -1)}),
    ("channel-ring", "reduce-scatter", {"n_channels": 2, "strides": (5, 1)}),
    ("channel-ring", "all-gather", {"n_channels": 3, "node_size": 4}),
    ("double-binary-tree", "all-reduce", {"n_slices": 2, "node_size": 2}),
    ("double-binary-tree", "all-reduce", {"n_slices": 3, "node_size": 6}),
    ("double-binary-tree", "all-reduce", {"node_size": 4, "n_channels": 4}),
    ("double-binary-tree", "all-reduce", {"node_size": 4, "n_channels": 3}),
    ("pipelined-ring", "broadcast", {"n_slices": 7, "root": 4}),
    ("pipelined-ring", "reduce", {"n_slices": 2, "root": 1}),
    ("swing", "all-gather", {"all_ports": False}),
    ("stragglar", "all-reduce", {"late": 7}),
    ("torus-ring", "all-reduce", {"n_rows": 6}),
    ("torus-ring", "reduce-scatter", {"n_rows": 1}),
    ("uneven-ring", "all-reduce", {"rates": tuple([9, 5, 2] * 4), "n_slices": 3}),
    ("uneven-ring", "reduce-scatter", {"rates": tuple([9, 5, 2] * 4), "n_slices": 2}),
]


def told(kind: str) -> list[tuple[str, str, dict[str, object]]]:
    """The hierarchical algorithm with every other at either level, in nodes of 3."""
    return [("hierarchical", kind, {"node_size": 3, level: name}) for level in ("inner", "outer") for name in FLAT]


def knows(name: str, collective: str) -> bool:
    return collective in ALGORITHMS[name].collectives


def in_switches(name: object) -> bool:
    return ALGORITHMS[str(name)].in_switches


def sizes(n_workers: int) -> list[int]:
    """None at all, one, one less than there are workers and just as many, a lot."""
    return [0, 1, n_workers - 1, n_workers, 1000]


# ------------------------------------------------------------------------------------- on numbers, without a clock


def contributions(schedule: Schedule, dtype: str, width: int, *, factors: bool) -> np.ndarray:
    """What every worker holds at the start, shape (n_workers, n_chunks, width); zero where it holds nothing."""
    rng = np.random.default_rng(schedule.n_workers)
    shape = (schedule.n_workers, schedule.n_chunks, width)
    values = rng.integers(-9, 10, shape) if dtype == "int32" else rng.uniform(-1, 1, shape)
    if factors:
        values = np.where(rng.random(shape) < 0.5, 1, -1) * (3 if dtype == "int32" else 1 + values / 8)
    alone = np.flatnonzero(schedule.source != EVERY_WORKER)
    held = np.arange(schedule.n_workers)[:, None] == schedule.source[None, :]
    values[:, alone] *= held[:, alone, None]
    return values.astype(dtype)


def expected(schedule: Schedule, start: np.ndarray, ufunc: np.ufunc) -> tuple[np.ndarray, np.ndarray]:
    """The exact result of every chunk, and how far rounding may take it from there."""
    wide = start.astype(np.int64 if start.dtype == np.int32 else np.float64)
    whole = (schedule.source == EVERY_WORKER)[:, None]
    own = wide[schedule.source.clip(min=0), np.arange(schedule.n_chunks)]
    exact = np.where(whole, ufunc.reduce(wide, axis=0), own)
    if start.dtype == np.int32 or ufunc in {np.maximum, np.minimum}:
        return exact.astype(start.dtype), np.zeros(exact.shape)
    u = (len(start) - 1) * np.finfo(start.dtype).eps / 2
    scale = np.abs(wide).sum(axis=0) if ufunc is np.add else np.abs(exact)
    return exact, np.where(whole, u / (1 - u) * scale, 0.0)


def holders(schedule: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """Worker and chunk of each cell that must be whole at the end."""
    mine = (schedule.target == EVERY_WORKER) | (schedule.target == np.arange(schedule.n_workers)[:, None])
    return np.nonzero(mine)


def sums_come_out(schedule: Schedule, dtype: str, ufunc: np.ufunc, width: int = 3) -> None:
    start = contributions(schedule, dtype, width, factors=ufunc is np.multiply)
    with np.errstate(over="ignore"):
        exact, bound = expected(schedule, start, ufunc)
        table = start.copy()
        replay_table(schedule, np.arange(schedule.n_chunks), table, ufunc)
    worker, chunk = holders(schedule)
    assert (np.abs(table[worker, chunk] - exact[chunk]) <= bound[chunk]).all()


@pytest.mark.parametrize(("name", "collective"), KINDS)
def test_every_schedule_is_proved_right(name: str, collective: str) -> None:
    for n_workers in COUNTS:
        check(ALGORITHMS[name].build(n_workers, collective))


@pytest.mark.parametrize(("name", "collective", "parameters"), TOLD)
def test_whatever_an_algorithm_is_told_it_is_right(name: str, collective: str, parameters: dict[str, object]) -> None:
    schedule = ALGORITHMS[name].build(12, collective, **parameters)
    assert parameters.items() <= schedule.parameters.items()
    check(schedule)
    sums_come_out(schedule, "int32", np.add)


@pytest.mark.parametrize(("name", "collective", "parameters"), told("all-reduce"))
def test_any_algorithm_does_at_either_level(name: str, collective: str, parameters: dict[str, object]) -> None:
    levels = [parameters.get("inner", "ring"), parameters.get("outer", "ring")]
    inside = any(knows(str(levels[0]), kind) for kind in ("reduce-scatter", "reduce"))
    if not inside or not knows(str(levels[1]), "all-reduce") or any(map(in_switches, levels)):
        with pytest.raises(InputError, match="no such algorithm has"):
            ALGORITHMS[name].build(12, collective, **parameters)
        return
    schedule = ALGORITHMS[name].build(12, collective, **parameters)
    check(schedule)
    sums_come_out(schedule, "int32", np.add)


@pytest.mark.parametrize("dims", [(4, 4), (2, 8), (2, 2, 4), (16,)])
def test_swing_goes_round_tori(dims: tuple[int, ...]) -> None:
    for all_ports in (True, False):
        schedule = ALGORITHMS["swing"].build(16, "all-reduce", dims=dims, all_ports=all_ports)
        assert schedule.n_channels == (2 * len(dims) if all_ports else 1)
        check(schedule)
        sums_come_out(schedule, "int32", np.add)
        assert schedule.n_steps == 8


# --------------------------------------------------------------------------------------------------- with a payload


def payload_run(schedule: Schedule, reduction: str, n_elements: int, dtype: str, made: type) -> None:
    source = RandomSource(schedule.n_workers, n_elements, np.dtype(dtype), seed=5, for_product=reduction == "prod")
    weights = list(range(1, schedule.n_workers + 1)) if reduction == "weighted-mean" else None
    rule = make_reduction(reduction, schedule.n_workers, weights)
    chunk_sizes = schedule.chunk_sizes(n_elements)
    switches = {"switches": SwitchSums(schedule.n_switches)} if made is Payload else {}
    payload = made(source, rule, schedule.n_workers, chunk_sizes, schedule.source, **switches)
    move = stepper(payload, None)
    for step in schedule.steps():
        move(step)
    verdict = verify(schedule, payload, source, rule, chunk_sizes)
    assert verdict.sum_ok, verdict.mismatch
    assert verdict.workers_agree


@pytest.mark.parametrize(("name", "collective"), KINDS)
def test_chunks_of_every_size_arrive(name: str, collective: str) -> None:
    """None, one, just too few and just enough elements, and many: the reductions and dtypes take turns."""
    turn = 0
    for n_workers in (1, 2, 3, 5, 8, 12):
        schedule = ALGORITHMS[name].build(n_workers, collective)
        for n_elements in sizes(n_workers):
            reduction = sorted(REDUCTIONS)[turn % len(REDUCTIONS)]
            dtype = "float32" if "mean" in reduction or turn % 2 else "int32"
            packed = turn % 3 == 0 and not in_switches(name)
            payload_run(schedule, reduction, n_elements, dtype, (Payload, PackedPayload)[packed])
            turn += 1


def private_links(n_workers: int, bandwidth_Bps: float = 1e9, latency_s: float = 1e-6) -> Network:
    """A link of its own from every worker to every other."""
    pairs = [(src, dst) for src in range(n_workers) for dst in range(n_workers) if src != dst] or [(0, 0)]
    values, number = np.ones(len(pairs)), {pair: (link,) for link, pair in enumerate(pairs)}
    names = tuple(f"{src}->{dst}" for src, dst in pairs)
    return Network(
        "full",
        n_workers,
        names,
        values * bandwidth_Bps,
        values * latency_s,
        lambda src, dst: number[src, dst],
    )


def network_for(schedule: Schedule) -> Network:
    """Links of their own for all pairs, or a switch that adds for a schedule that takes one."""
    if not schedule.n_switches:
        return private_links(schedule.n_workers)
    return replace(switch(schedule.n_workers, 1e9, 1e-6), reduce_Bps={"switch": 4e9})


@pytest.mark.parametrize("sends", ["eager", "rendezvous"])
@pytest.mark.parametrize(("name", "collective"), KINDS)
def test_the_engines_bring_the_payload_where_it_belongs(name: str, collective: str, sends: str) -> None:
    n_workers, n_elements = 6, 17
    schedule = ALGORITHMS[name].build(n_workers, collective)
    source = RandomSource(n_workers, n_elements, np.dtype("float32"), seed=5)
    rule, chunk_sizes = make_reduction("sum", n_workers), schedule.chunk_sizes(n_elements)
    workers = Workers.alike(n_workers, send_overhead_s=1e-7, recv_overhead_s=2e-7, reduce_Bps=1e8, sends=sends)
    workers.start_s[2] = 3e-6
    switches = SwitchSums(schedule.n_switches)
    payload = Payload(source, rule, n_workers, chunk_sizes, schedule.source, switches=switches)
    what = (schedule, network_for(schedule), workers, 4 * chunk_sizes, payload)
    if in_switches(name) and sends == "rendezvous":
        with pytest.raises(InputError, match="switches that reduce take what comes"):
            ENGINES["events"].run(*what)
        return
    trace = ENGINES["events"].run(*what)
    verdict = verify(schedule, payload, source, rule, chunk_sizes)
    assert verdict.sum_ok, verdict.mismatch
    at_workers = trace.transfers["dst"] < n_workers
    assert trace.transfers["bytes"][at_workers].sum() == trace.workers["received_bytes"].sum()


#: Numbers of workers, elements, reductions and types by turns, with a clock.
TIMED = [
    (1, 5, "sum", "int32"),
    (2, 1, "prod", "int32"),
    (3, 0, "mean", "float32"),
    (5, 4, "min", "float32"),
    (8, 8, "weighted-mean", "float32"),
    (11, 1000, "max", "int32"),
    (16, 15, "sum", "float32"),
    (12, 1000, "prod", "float32"),
    (9, 8, "sum", "int32"),
]


@pytest.mark.parametrize(("name", "collective"), KINDS)
def test_with_a_clock_sums_are_those_of_the_replay(name: str, collective: str) -> None:
    for n_workers, n_elements, reduction, dtype in TIMED:
        schedule = ALGORITHMS[name].build(n_workers, collective)
        source = RandomSource(n_workers, n_elements, np.dtype(dtype), seed=n_workers, for_product=reduction == "prod")
        weights = list(range(1, n_workers + 1)) if reduction == "weighted-mean" else None
        rule, chunk_sizes = make_reduction(reduction, n_workers, weights), schedule.chunk_sizes(n_elements)
        switches = SwitchSums(schedule.n_switches)
        payload = Payload(source, rule, n_workers, chunk_sizes, schedule.source, switches=switches)
        network, workers = network_for(schedule), Workers.alike(n_workers, reduce_Bps=1e9)
        ENGINES["events"].run(schedule, network, workers, np.dtype(dtype).itemsize * chunk_sizes, payload)
        verdict = verify(schedule, payload, source, rule, chunk_sizes)
        assert verdict.sum_ok, (n_workers, n_elements, reduction, verdict.mismatch)


@pytest.mark.parametrize(("name", "collective"), KINDS)
def test_the_fast_engine_has_the_same_times_or_says_why_not(name: str, collective: str) -> None:
    schedule = ALGORITHMS[name].build(7, collective)
    network, workers = network_for(schedule), Workers.alike(7)
    chunk_bytes = 4 * schedule.chunk_sizes(1000)
    events = ENGINES["events"].run(schedule, network, workers, chunk_bytes)
    if reason := why_not_exact(schedule, network, workers):
        assert "link" in reason or "channels" in reason or "switches" in reason
        return
    fast = ENGINES["recurrence"].run(schedule, network, workers, chunk_bytes)
    assert fast.workers["end_s"].tolist() == events.workers["end_s"].tolist()
    assert fast.transfers["applied_s"].tolist() == events.transfers["applied_s"].tolist()


# ------------------------------------------------------------------------------------------ what the docstrings say


def sent(schedule: Schedule) -> np.ndarray:
    """Elements that each worker sends, of a buffer of 5040."""
    totals = np.zeros(schedule.n_workers)
    for step in schedule.steps():
        np.add.at(totals, step.src, step.sizes(schedule.chunk_sizes(5040)))
    return totals / 5040


@pytest.mark.parametrize("n_workers", [2, 4, 8, 16])
@pytest.mark.parametrize("name", ["bidirectional-ring", "channel-ring", "direct", "halving-doubling", "swing"])
def test_bandwidth_optimal_algorithms_send_what_the_ring_sends(name: str, n_workers: int) -> None:
    for collective, phases in (("all-reduce", 2), ("reduce-scatter", 1), ("all-gather", 1)):
        schedule = ALGORITHMS[name].build(n_workers, collective)
        assert sent(schedule) == pytest.approx(phases * (n_workers - 1) / n_workers, rel=2e-2)


def test_the_steps_are_as_many_as_said() -> None:
    steps = {name: algorithm.build(16, algorithm.collectives[0]).n_steps for name, algorithm in ALGORITHMS.items()}
    assert steps == {
        "bidirectional-ring": 30,
        "binary-tree": 2 * (4 + 4 - 1),
        "binomial-tree": 8,
        "bruck": 4,
        "channel-ring": 30,
        "direct": 2,
        "double-binary-tree": 14,
        "halving-doubling": 8,
        "hierarchical": 12,
        "nvls": 4 * 16,
        "nvls-tree": 4 * 16,
        "pairwise": 15,
        "pipelined-ring": 120,
        "recursive-doubling": 4,
        "ring": 30,
        "sharp": 2 * 16,
        "stragglar": 14 + 15 + 17,
        "swing": 8,
        "torus-ring": 12,
        "uneven-ring": 30,
    }


def test_inner_workers_of_one_tree_are_leaves_of_the_other() -> None:
    """For an even number; with an odd one the shift leaves one worker inner in both."""
    for n_workers in range(2, 40):
        inner = [
            {int(step.dst[k]) for step in tree for k in range(len(step)) if step.channel[k] == channel}
            for channel in (0, 2)
            for tree in [list(ALGORITHMS["double-binary-tree"].build(n_workers, n_slices=1).steps())]
        ]
        assert len(inner[0] & inner[1]) <= n_workers % 2


def test_swing_swings() -> None:
    """Worker 0 of 16 meets 1, then -1, 3 and -5: De Sensi and others, figure 2."""
    schedule = ALGORITHMS["swing"].build(16, "reduce-scatter", all_ports=False)
    assert [int(step.dst[0]) for step in schedule.steps()] == [1, 15, 3, 11]


def test_the_torus_uses_all_four_ways_out_of_a_worker_at_once() -> None:
    step = next(ALGORITHMS["torus-ring"].build(16).steps())
    assert Counter(step.src.tolist()) == dict.fromkeys(range(16), 2)
    assert {int(dst) for src, dst in zip(step.src, step.dst, strict=True) if src == 5} == {6, 9}


def test_large_schedules_are_columns_that_are_shared() -> None:
    for name, algorithm in ALGORITHMS.items():
        if "all-reduce" in algorithm.collectives:
            schedule = algorithm.build(1024, "all-reduce")
            assert schedule.n_transfers <= 2**23, name
            assert not next(schedule.steps()).src.flags.writeable


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("channel-ring", {"strides": (2,)}, "does not pass all 12 workers; got 2"),
        ("double-binary-tree", {"node_size": 5}, "12 workers do not fill nodes of this size; got 5"),
        ("hierarchical", {"node_size": 5}, "12 workers do not fill nodes of this size; got 5"),
        (
            "hierarchical",
            {"outer": "bruck"},
            "no such algorithm has all-reduce, as this level needs; got bruck",
        ),
        ("hierarchical", {"inner": "rings"}, "got rings; right would be: bidirectional-ring | "),
        ("swing", {"dims": (3, 4)}, "Swing cannot go round such a torus; got 3 x 4"),
        ("torus-ring", {"n_rows": 5}, "do not fill this many rows; got 5"),
    ],
)
def test_what_cannot_be_is_refused_with_what_could(name: str, parameters: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        ALGORITHMS[name].build(12, "all-reduce", **parameters)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", FLAT)
def test_a_collective_that_an_algorithm_does_not_know_is_a_key_error(name: str) -> None:
    for collective in {"all-reduce", "broadcast", "all-to-all"} - set(ALGORITHMS[name].collectives):
        with pytest.raises(KeyError, match=collective):
            ALGORITHMS[name].build(4, collective)
