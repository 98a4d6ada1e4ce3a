"""Comparisons of algorithms: known shapes, crossovers, advice, the command, and many sizes at once."""

from __future__ import annotations

import ctypes
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ringnet.analysis.winners import advice, crossovers, ranges, with_ranks
from ringnet.api.questions import compare
from ringnet.cli import app
from ringnet.collectives import ALGORITHMS
from ringnet.collectives.proof import check
from ringnet.engines.arrays import kernel, run_sizes, sizes, why_not_exact
from ringnet.engines.arrays.drawn_steps import DrawnSteps
from ringnet.engines.arrays.rounds import RoundMaker
from ringnet.engines.events import run_events
from ringnet.engines.trace import Workers
from ringnet.errors import InputError
from ringnet.networks import TOPOLOGIES
from ringnet.runs.engine import engine_of
from ringnet.runs.parts import build
from ringnet.scenario import loads
from ringnet.study.compare import COLUMNS, N_SIZES, plan_comparison, sizes_of, time_beforehand
from ringnet.study.parts import workers_of

pytestmark = pytest.mark.usefixtures("sketched")  # what figures look like is tested elsewhere

SCENARIOS = Path(__file__).parents[1] / "scenarios"
HEAD = "scenario_version: 1\nworkers: 8\nmessage: 1 MiB\n"
SWITCH = HEAD + "network: {topology: switch, bandwidth: 50 GB/s, latency: 1 us}\n"
FULL = HEAD + "network: {topology: fully-connected, bandwidth: 50 GB/s, latency: 5 us}\n"
SPINE = HEAD + ("network: {topology: leaf-spine, leaves: 2, oversubscription: 4, bandwidth: 50 GB/s, latency: 1 us}\n")
SIZES = "sweep: {over: {message: {from: 1 KiB, to: 1 GiB, factor: 8}}}\n"
ALL_REDUCING = [name for name, one in ALGORITHMS.items() if "all-reduce" in one.collectives]


def compared(text: str, algorithms: object = "all", workers: object = None) -> pd.DataFrame:
    return compare(loads(text), algorithms, workers, jobs=1).table


def best(table: pd.DataFrame, n_workers: int, size: int) -> set[str]:
    rows = table[(table["n_workers"] == n_workers) & (table["message_bytes"] == size)]
    return set(rows.loc[rows["rank"] == 1, "algorithm"])


def made(times: dict[str, list[float]], sizes: tuple[int, ...] = (1024, 4096, 16384)) -> pd.DataFrame:
    rows = [
        {"n_workers": 4, "message_bytes": size, "algorithm": name, "makespan_s": times[name][place]}
        for place, size in enumerate(sizes)
        for name in times
    ]
    return with_ranks(pd.DataFrame(rows))


class TestWinners:
    def test_a_crossover_lies_between_two_sizes_where_the_logarithms_meet(self):
        (one,) = crossovers(made({"tree": [1.0, 2.0, 8.0], "ring": [4.0, 4.0, 4.0]}))
        assert (one.slower_above, one.faster_above) == ("tree", "ring")
        assert (one.between_low_bytes, one.between_high_bytes) == (4096, 16384)
        assert one.at_bytes == 8192

    def test_advice_says_what_to_use_up_to_where_and_by_how_much(self):
        (sentence,) = advice(made({"tree": [1.0, 2.0, 8.0], "ring": [4.0, 4.0, 4.0]}))
        assert sentence == (
            "with 4 workers use tree up to about 8 KiB, ring above; "
            "tree is at most 4 times as fast as ring, at 1 KiB; ring is at most 2 times as fast as tree, at 16 KiB"
        )

    def test_of_two_alike_the_one_that_stays_ahead_is_used_and_there_is_no_crossover(self):
        table = made({"first": [1.0, 2.0, 8.0], "second": [1.0, 2.0, 4.0]})
        assert [one.algorithm for one in ranges(table)] == ["second"]
        assert crossovers(table) == []

    def test_those_that_are_alike_all_the_way_are_said(self):
        (sentence,) = advice(made({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0], "c": [2.0, 3.0, 4.0]}))
        assert "b as good as a there" in sentence

    def test_what_was_compared_with_nothing_is_not_recommended(self):
        (sentence,) = advice(made({"ring": [1.0, 2.0, 8.0]}))
        assert sentence == "with 4 workers there is ring and nothing to compare it with"

    def test_a_time_of_zero_has_no_winner(self):
        assert ranges(made({"a": [0.0, 0.0, 0.0]})) == []

    def test_where_each_lacks_a_size_nothing_is_advised(self):
        table = made({"a": [1.0, 2.0, np.nan], "b": [np.nan, 2.0, 3.0]})
        assert (ranges(table), crossovers(table), advice(table)) == ([], [], [])

    def test_sizes_that_are_guesses_are_in_no_range(self):
        times = made({"tree": [1.0, 2.0, 8.0], "ring": [4.0, 4.0, 4.0]})
        expected = {
            1024: "use tree from 4 KiB up to about 8 KiB, ring above;",
            4096: "use tree up to 1 KiB, ring from 16 KiB;",
            16384: "use tree up to 4 KiB;",
        }
        for size, said in expected.items():
            guess = times.assign(guess=times["message_bytes"].map({size: "a guess"}))
            assert said in advice(guess)[0]
            assert not any(one.first_bytes <= size <= one.last_bytes for one in ranges(guess))
            assert len(crossovers(guess)) == (size == 1024)
        alone = times.assign(guess=times["message_bytes"].map({1024: "a guess", 16384: "a guess"}))
        assert "use tree at 4 KiB;" in advice(alone)[0]


class TestCompare:
    def test_the_columns_are_those_that_are_promised(self):
        table = compared(SWITCH + SIZES, ["ring", "direct"])
        assert tuple(table.columns) == COLUMNS
        assert (table["bound_share"] <= 1 + 1e-12).all()
        ring = table[table["algorithm"] == "ring"]
        assert (ring["busiest_link_bytes"] * 8 >= ring["message_bytes"] * 14).all()

    def test_the_busiest_link_is_the_one_that_was_busy_longest(self):
        """A bandwidth that falls under way, or is lower for these sizes, counts; not the number in its name."""
        falls = "{profile: [{at: 1 us, bandwidth: 1 GB/s}]}"
        small = "{regimes: [{up_to: 1 GiB, bandwidth: 1 GB/s, latency: 1 us}]}"
        for behaviour in (falls, small):
            links = f"latency: 1 us, sharing: fifo, links: {{switch->5: {behaviour}}}"
            text = SWITCH.replace("latency: 1 us", links)
            table = compared(text + "sweep: {over: {message: [1 MiB]}}", ["ring", "direct"])
            assert set(table["busiest_link"]) == {"switch->5"}

    def test_sizes_and_workers_are_those_of_the_scenario(self):
        assert len(sizes_of(loads(SWITCH))) == N_SIZES
        assert sizes_of(loads(SWITCH))[0::39] == [1 << 10, 1 << 30]
        assert sizes_of(loads(SWITCH + "sweep: {over: {message: [2 KiB, 1 KiB]}}")) == [1024, 2048]
        assert workers_of(loads(SWITCH + "sweep: {over: {workers: [4, 2]}}")) == [2, 4]
        assert workers_of(loads(SWITCH + "compare: {workers: [3, 2]}")) == [2, 3]

    def test_yaml_says_what_is_compared(self):
        text = SWITCH + SIZES + "compare: {algorithms: [ring, {name: channel-ring, n_channels: 3}]}\n"
        found = compared(text, None)
        assert set(found["algorithm"]) == {"ring", "channel-ring (n_channels 3)"}

    def test_other_swept_keys_are_refused(self):
        with pytest.raises(InputError, match=r"network\.latency"):
            compared(SWITCH + "sweep: {over: {network.latency: [1 us, 2 us]}}")

    def test_what_cannot_run_is_left_out_and_said(self):
        found = compare(loads(HEAD + "network: {bandwidth: 50 GB/s, latency: 1 us}\n" + SIZES), jobs=1)
        assert "ring" in set(found.table["algorithm"])
        assert any(note.startswith("direct is left out with 8 workers: ") for note in found.notes)

    @pytest.mark.parametrize(("cost", "told"), [("0 s", True), ("1 us", False)])
    def test_free_sends_are_said_where_who_wins_has_many_at_once(self, cost, told):
        text = SWITCH + SIZES + f"worker: {{send_overhead: {cost}}}\n"
        found = compare(loads(text), ["ring", "direct"], jobs=1)
        assert found.table["algorithm"].iloc[0] == "direct"
        assert any("sends take no time" in note for note in found.notes) is told

    def test_many_processes_give_the_same_table(self):
        one, two = (compare(loads(SWITCH + SIZES), ["ring", "direct"], jobs=jobs).table for jobs in (1, 2))
        pd.testing.assert_frame_equal(one, two)

    @pytest.mark.parametrize(
        ("text", "other", "told"),
        [
            (SWITCH, "bidirectional-ring", "bidirectional-ring;"),
            (SWITCH, "direct", ""),  # flows that start and end together are timed at all sizes at once
            (FULL, "direct", ""),
            (SWITCH + SIZES, "bidirectional-ring", ""),
        ],
    )
    def test_what_takes_minutes_is_said_beforehand(self, text, other, told):
        plan = plan_comparison(loads(text), ["ring", other], [512])
        said = time_beforehand(plan, 1)
        assert [one.partition("most of it for ")[2].partition(" ")[0] for one in said] == [told][: bool(told)]

    def test_times_are_those_of_a_run(self):
        import ringnet  # noqa: PLC0415 -- heavy

        table = compared(SWITCH, ["halving-doubling"])
        size = int(table["message_bytes"].iloc[11])
        text = SWITCH.replace("1 MiB", f"{size} B") + "payload: none\nalgorithm: halving-doubling\n"
        alone = ringnet.run(loads(text)).summary
        row = table[table["message_bytes"] == size]
        for column in ("makespan_s", "algbw_Bps", "busbw_Bps", "bound_share"):
            assert float(alone[column].iloc[0]) == float(row[column].iloc[0])

    @pytest.mark.parametrize("cut", ["sharing: fifo, packet: 4 KiB", "window: 64 KiB", "sharing: fifo"])
    def test_the_engine_is_the_one_that_a_run_of_the_same_takes(self, cut):
        """It counts the parts that transfers are cut into: 480 transfers are few, in 64 packets each they are many."""
        text = SWITCH.replace("}", f", {cut}}}").replace("workers: 8", "workers: 16").replace("1 MiB", "4 MiB")
        (engine,) = compared(text + "sweep: {over: {message: [4 MiB]}}\n", ["ring"])["engine"]
        assert engine == engine_of(build(loads(text)))


class TestKnownShapes:
    def test_trees_and_doubling_are_ahead_of_the_ring_for_small_messages(self):
        table = compared(FULL + SIZES)
        times = table[table["message_bytes"] == 1024].set_index("algorithm")["makespan_s"]
        for name in ("recursive-doubling", "binomial-tree", "double-binary-tree", "halving-doubling"):
            assert times[name] < times["ring"]

    def test_the_ring_overtakes_doubling_at_a_size_that_grows_with_n(self):
        table = compared(FULL, ["recursive-doubling", "ring"], [4, 8, 16, 32])
        assert [one.faster_above for one in crossovers(table)] == ["ring"] * 4
        at = [one.at_bytes for one in crossovers(table)]
        assert at == sorted(set(at))

    @pytest.mark.parametrize("n_workers", [4, 8, 16])
    def test_on_a_uniform_switch_the_ring_never_overtakes_rabenseifner(self, n_workers: int):
        table = compared(SWITCH + SIZES, ["halving-doubling", "ring"], [n_workers])
        assert crossovers(table) == []
        assert [one.algorithm for one in ranges(table)] == ["halving-doubling"]

    @pytest.mark.parametrize("n_workers", [4, 8, 16])
    def test_on_an_oversubscribed_leaf_spine_it_does(self, n_workers: int):
        table = compared(SPINE + SIZES, ["halving-doubling", "ring"], [n_workers])
        assert [one.faster_above for one in crossovers(table)] == ["ring"]


class TestPublished:
    """Measured by others, with as few numbers fitted as the scenarios say."""

    @staticmethod
    def column(name: str, column: str) -> list[float]:
        import ringnet  # noqa: PLC0415 -- heavy

        return ringnet.run(SCENARIOS / f"{name}.yaml", jobs=1).summary[column].tolist()

    def test_eight_gpus_on_eight_four_and_two_nodes(self):
        assert self.column("nodes-and-nics", "makespan_s") == pytest.approx([0.363, 0.173, 0.132], rel=0.05)

    def test_one_rack_and_two(self):
        assert self.column("one-rack-or-two", "busbw_Bps") == pytest.approx([43.5e9, 19.5e9], rel=0.05)


def test_each_channel_of_a_ring_leaves_a_node_at_another_worker():
    schedule = ALGORITHMS["channel-ring"].build(8, "all-reduce", n_channels=4, node_size=4)
    check(schedule)
    step = next(schedule.steps())
    leaves = step.src[step.src // 4 != step.dst // 4].reshape(4, 2)
    assert (leaves % 4).tolist() == [[3, 3], [0, 0], [1, 1], [2, 2]]


def uneven(n_workers: int, topology: str, switching: str = "cut-through"):
    from dataclasses import replace  # noqa: PLC0415

    network = TOPOLOGIES[topology].build(n_workers, 50e9, 1e-6)
    generator = np.random.default_rng(n_workers)
    factors = 1 + 0.2 * generator.random(network.n_links)
    return replace(
        network,
        bandwidth_Bps=network.bandwidth_Bps * factors,
        latency_s=network.latency_s * factors[::-1],
        switching=switching,
    )


def as_python(do_step):
    """Give a kernel that takes addresses what lies there, of any length, as machine code sees it."""

    def advance(real, whole):
        tables = zip((real, whole), (ctypes.c_double, ctypes.c_int64), strict=True)
        return do_step(*([seen(at, kind) for at in table.tolist()] for table, kind in tables))

    def seen(at, kind):
        return np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(kind)), shape=(2**20,)) if at else None

    return advance


class TestManySizes:
    """The times of all sizes at once are those of SimPy's events, to the last bit, or are said not to be."""

    @pytest.mark.parametrize("algorithm", ALL_REDUCING)
    @pytest.mark.parametrize("topology", ["fully-connected", "switch"])
    def test_same_as_events(self, algorithm: str, topology: str):
        for n_workers in (2, 3, 5, 8):
            schedule = ALGORITHMS[algorithm].build(n_workers, "all-reduce")
            for network in (TOPOLOGIES[topology].build(n_workers, 50e9, 1e-6), uneven(n_workers, topology)):
                self.compare(schedule, network, Workers.alike(n_workers))

    @pytest.mark.parametrize("sends", ["eager", "rendezvous"])
    @pytest.mark.parametrize("switching", ["cut-through", "store-and-forward"])
    def test_overheads_reductions_starts_and_rendezvous(self, sends: str, switching: str):
        workers = Workers.alike(4, send_overhead_s=1e-7, recv_overhead_s=3e-7, reduce_Bps=1e11, sends=sends)
        workers.start_s[2], workers.launch_s[1] = 5e-6, 7e-6
        for algorithm in ("ring", "halving-doubling", "direct", "binary-tree"):
            schedule = ALGORITHMS[algorithm].build(4, "all-reduce")
            self.compare(schedule, uneven(4, "fully-connected", switching), workers)

    def test_a_ring_at_all_sizes_is_exact(self):
        schedule = ALGORITHMS["channel-ring"].build(8, "all-reduce")
        network = TOPOLOGIES["fully-connected"].build(8, 50e9, 1e-6)
        rows = np.array([schedule.chunk_sizes(n) * 4 for n in (0, 1, 7, 1000, 10**6)])
        assert run_sizes(schedule, network, Workers.alike(8), rows).exact.all()

    @pytest.mark.parametrize("switching", ["cut-through", "store-and-forward"])
    def test_workers_who_meet_on_a_link_that_serves_one_after_another(self, switching: str):
        """A link serves by when heads come, and then by worker; where they come in another order, that is seen."""
        found = {}
        for algorithm in ("direct", "hierarchical", "binomial-tree", "stragglar", "torus-ring"):
            schedule = ALGORITHMS[algorithm].build(8, "all-reduce")
            even = TOPOLOGIES["switch"].build(8, 50e9, 1e-6)
            for network in (replace(even, switching=switching), uneven(8, "switch", switching)):
                fifo = replace(network, sharing="fifo")
                found[algorithm, network.bandwidth_Bps.std() > 0] = self.compare(schedule, fifo, Workers.alike(8))
        assert [found["direct", False], found["binomial-tree", False], found["hierarchical", True]] == [True] * 3
        assert not found["stragglar", True]
        at_once = replace(even, sharing="fifo", latency_s=np.zeros(even.n_links))
        with pytest.raises(InputError, match="carries transfers of workers"):
            run_sizes(
                ALGORITHMS["bidirectional-ring"].build(8, "all-reduce"), at_once, Workers.alike(8), np.ones((1, 16))
            )

    @pytest.mark.parametrize("algorithm", ["bidirectional-ring", "swing", "torus-ring"])
    def test_what_a_worker_sends_second_comes_after_what_others_send_first(self, algorithm: str):
        """Its channels queue behind each other on their first link: at sizes of many bytes all come as supposed."""
        schedule = ALGORITHMS[algorithm].build(8, "all-reduce")
        fifo = replace(TOPOLOGIES["switch"].build(8, 50e9, 1e-6), sharing="fifo")
        rows = np.array([schedule.chunk_sizes(n) * 4 for n in (123_457, 10**6, 10**6 + 1)])
        times = run_sizes(schedule, fifo, Workers.alike(8), rows)
        assert times.exact.all()
        for row, makespan_s in zip(rows, times.makespan_s, strict=True):
            assert (
                run_events(schedule, fifo, Workers.alike(8), row, keep_transfers=0).workers["end_s"].max() == makespan_s
            )

    def test_of_shared_chunks_a_few_uses_are_kept(self, monkeypatch):
        """Slices pass on what another channel has just applied; who has passed them all waits for none of them."""
        monkeypatch.setattr(sizes, "SLOTS_OF_STEPS", 1)
        schedule, workers = ALGORITHMS["pipelined-ring"].build(24, "all-reduce"), Workers.alike(24)
        network = uneven(24, "fully-connected")
        self.compare(schedule, network, workers)
        maker = RoundMaker(schedule, network)
        for step in schedule.steps():
            maker.rounds(step)
        of_sizes = sizes.Sizes(schedule, network, workers, maker)
        of_sizes.run(schedule.steps(), np.full((3, schedule.n_chunks), 4096))
        of_runs = DrawnSteps(schedule, network, workers, np.full(schedule.n_chunks, 4096), maker, runs=range(3))
        for step in schedule.steps():
            of_runs.do(step)
        for n_kept in (of_sizes.n_slots, len(of_runs.shared.posted.cell)):
            assert n_kept < 24 * schedule.n_chunks / 2

    def test_the_kernel_is_what_its_source_says(self, monkeypatch):
        """As Python runs it it leaves what the events leave."""
        monkeypatch.setattr(sizes, "compiled", lambda _: as_python(kernel.do_step))
        monkeypatch.setattr(sizes, "SLOTS_OF_STEPS", 0)
        for sends, switching in (("eager", "cut-through"), ("rendezvous", "store-and-forward")):
            costs = {"send_overhead_s": 1e-7, "recv_overhead_s": 3e-7, "reduce_Bps": 1e11}
            for algorithm in ("ring", "pipelined-ring", "halving-doubling", "direct", "channel-ring"):
                schedule = ALGORITHMS[algorithm].build(4, "all-reduce")
                # A processor that channels share is beyond the kernel.
                workers = Workers.alike(4, sends=sends, **(costs if schedule.n_channels == 1 else {}))
                # Nor do links always serve channels as supposed where each waits for its own sends.
                found = self.compare(schedule, uneven(4, "fully-connected", switching), workers)
                assert found or (algorithm, sends) == ("channel-ring", "rendezvous")

    @pytest.mark.parametrize("sends", ["eager", "rendezvous"])
    def test_flows_that_start_and_end_together(self, monkeypatch, sends: str):
        """Where links are shared fairly they have one rate all the time; where others come between, that is seen."""
        found, workers = {}, Workers.alike(6, sends=sends)
        for algorithm in ("direct", "bidirectional-ring", "hierarchical"):
            schedule = ALGORITHMS[algorithm].build(6, "all-reduce")
            rows = np.array([schedule.chunk_sizes(n) * 4 for n in (1, 63, 1200, 123_457)])
            for latency_s, is_uneven in ((1e-6, False), (0.0, False), (1e-6, True)):
                network = TOPOLOGIES["switch"].build(6, 50e9, latency_s)
                network.bandwidth_Bps[3] /= 1 + is_uneven
                times = run_sizes(schedule, network, workers, rows)
                with monkeypatch.context() as as_source:
                    as_source.setattr(sizes, "compiled", lambda _: as_python(kernel.do_step))
                    for one, other in zip(run_sizes(schedule, network, workers, rows), times, strict=True):
                        np.testing.assert_array_equal(one, other)
                for place in np.flatnonzero(times.exact):
                    trace = run_events(schedule, replace(network, sharing="fair"), workers, rows[place])
                    busy_s, busiest = trace.links["busy_s"], times.busiest_link[place]
                    assert times.makespan_s[place] == pytest.approx(trace.workers["end_s"].max(), rel=1e-12)
                    assert busy_s[busiest] == pytest.approx(busy_s.max(), rel=1e-12)
                    assert times.busiest_bytes[place] == trace.links["bytes"][busiest]
                found[algorithm, latency_s, is_uneven] = times.exact.tolist()
        assert found["direct", 1e-6, False] == [True] * 4
        assert found["bidirectional-ring", 1e-6, False] == [False, False, True, False]
        # Whoever has a smaller chunk has its sum before others, and goes on while they are not done.
        eager = [True, False, True, False]
        assert found["direct", 0.0, False] == (eager if sends == "eager" else [True] * 4)

    @staticmethod
    def compare(schedule, network, workers: Workers) -> bool:
        """Hold the sizes that are exact against events; return whether there are any."""
        if why_not_exact(schedule, network, workers, channels_may_meet=True, workers_may_meet=True) is not None:
            return False
        rows = np.array([schedule.chunk_sizes(n) * 4 for n in (0, 1, 63, 1000, 123_457)])
        times = run_sizes(schedule, network, workers, rows)
        for place in np.flatnonzero(times.exact):
            trace = run_events(schedule, network, workers, rows[place], keep_transfers=0)
            ends, starts = trace.workers["end_s"], trace.workers["start_s"]
            assert times.makespan_s[place] == ends.max() - starts.min()
            busy_s = trace.links["bytes"] / network.bandwidth_Bps
            busiest = times.busiest_link[place]  # which may be any, where nothing has a byte
            assert busiest == busy_s.argmax() or not busy_s.any()
            assert times.busiest_bytes[place] == trace.links["bytes"][busiest]
        return bool(times.exact.any())


@pytest.mark.usefixtures("own_folder")
class TestCommand:
    def run(self, tmp_path, *options: str, text: str = SWITCH + SIZES):
        file = tmp_path / "some.yaml"
        file.write_text(text)
        return CliRunner().invoke(app, ["compare", str(file), "--jobs", "1", *options])

    def test_writes_table_plots_and_a_sentence(self, tmp_path):
        out = tmp_path / "out"
        done = self.run(tmp_path, "--algorithms", "ring,direct", "--workers", "4,8", "--out", str(out))
        assert done.exit_code == 0, done.output
        assert "with 8 workers use " in done.stdout
        written = {path.name for path in out.iterdir()}
        assert {"compare.csv", "run.json", "time-by-algorithm.png", "winner-map.svg"} <= written
        assert tuple(pd.read_csv(out / "compare.csv").columns) == COLUMNS

    def test_table_and_sentence_name_the_same_algorithm(self, tmp_path):
        text = SWITCH + "sweep: {over: {message: [1 KiB, 1 MiB, 1 GiB]}}\n"
        done = self.run(tmp_path, "--no-plots", "--out", str(tmp_path / "o"), text=text)
        lines = [line.split() for line in done.stdout.splitlines()]
        assert [line[3] for line in lines[1:4]] == ["direct", "pipelined-ring", "pipelined-ring"]
        assert "pipelined-ring above" in done.stdout
        assert "pipelined-ring is at most" in done.stdout

    def test_json_has_the_columns_as_keys(self, tmp_path):
        done = self.run(tmp_path, "--algorithms", "ring,direct", "--json", "--no-plots", "--out", str(tmp_path / "o"))
        found = json.loads(done.stdout)
        assert tuple(found["points"][0]) == COLUMNS
        assert found["advice"]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--algorithms", "rink"), "there is no such algorithm; got rink"),
            (("--workers", "4,x"), "this is no number of workers; got x"),
            (("--workers", "1"), "with one worker nothing moves"),
        ],
    )
    def test_mistakes_are_told(self, tmp_path, options: tuple[str, ...], said: str):
        done = self.run(tmp_path, *options, "--out", str(tmp_path / "o"))
        assert done.exit_code == 2
        assert said in done.stderr
        assert not (tmp_path / "o").exists()

    def test_one_size_has_no_curves(self, tmp_path):
        out = tmp_path / "o"
        text = SWITCH + "sweep: {over: {message: [1 MiB]}}\n"
        assert self.run(tmp_path, "--algorithms", "ring", "--out", str(out), text=text).exit_code == 0
        assert {path.name for path in out.iterdir()} == {"compare.csv", "run.json"}
