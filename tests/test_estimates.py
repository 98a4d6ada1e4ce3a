"""What a run is said to take is counted: so it is held against counts of the run itself, not against a clock."""

from __future__ import annotations

import json
import math
import resource
from dataclasses import replace

import pytest

from ringnet.cli.check import preview_of, step_preview_of
from ringnet.engines import columns, max_min
from ringnet.engines.arrays import run_recurrence
from ringnet.engines.arrays.steps import Steps
from ringnet.engines.events import run_jobs
from ringnet.errors import InputError
from ringnet.runs.memory import available_bytes, estimate, require_memory
from ringnet.runs.parts import build, jobs_of
from ringnet.runs.work import steps_done, work_of
from ringnet.scenario import loads
from ringnet.study import cost
from ringnet.study.cost import Pace, learn, pace, run_s

RING = "scenario_version: 1\nworkers: 16\nmessage: 1 MiB\npayload: none\nengine: events\n"
ON = "bandwidth: 25 GB/s, latency: 1 us"
RACKS = f"network: {{topology: leaf-spine, leaves: 4, hosts_per_leaf: 4, spines: 2, {ON}"
NETWORKS = {
    "ring": f"network: {{topology: ring, {ON}}}",
    "switch": f"network: {{topology: switch, {ON}}}",
    "packets": f"network: {{topology: switch, sharing: fifo, packet: 4 KiB, {ON}}}",
    "window": f"network: {{topology: switch, window: 64 KiB, {ON}}}",
    "long routes": f"{RACKS}, sharing: fifo, placement: interleaved}}",
}
SHARED = {
    "in step": f"{RACKS}, placement: interleaved}}",
    "out of step": f"{RACKS}, routes: ecmp, placement: interleaved}}",
    "channels": f"{RACKS}, routes: ecmp}}\nalgorithm: {{name: channel-ring, n_channels: 4}}",
    "both ways": f"network: {{topology: switch, {ON}}}\nalgorithm: bidirectional-ring",
    "traffic": f"{RACKS}}}\nbackground: [{{from: 0, to: 5, burst: 64 KiB, rate: 10 GB/s}}]",
}


def simulated(parts):
    return run_jobs(
        [replace(job, payload=None) for job in jobs_of((parts, *parts.others))], parts.network, parts.traffic
    )


def near(found, wanted, factor):
    return found == pytest.approx(wanted, rel=0) or 1 / factor < found / wanted < factor


@pytest.mark.parametrize("network", NETWORKS)
def test_events_are_counted_as_they_come(network):
    parts = build(loads(RING + NETWORKS[network]))
    (trace,) = simulated(parts)
    assert near(work_of(parts).events, trace.counts["events"], 1.3)


@pytest.mark.parametrize("topology", ["ring", "switch"])
def test_steps_that_leaps_do_not_spare_are_counted(topology, monkeypatch):
    done, do = [], Steps.do
    monkeypatch.setattr(Steps, "do", lambda self, step: (done.append(step), do(self, step)))
    parts = build(loads(RING.replace("16", "4096").replace("events", "recurrence") + NETWORKS[topology]))
    run_recurrence(parts.schedule, parts.network, parts.workers, parts.chunk_bytes)
    assert near(steps_done(parts), len(done), 1.5)


def test_a_large_ring_takes_no_more_than_its_leaps_and_few_steps():
    """A million workers took 18 s of the engine, and nothing is simulated again for the answer."""
    text = RING.replace("16", "1048576").replace("1 MiB", "1 GiB").replace("events", "recurrence")
    work = work_of(build(loads(text + NETWORKS["ring"])))
    assert near(work.engine_s, 18, 1.5)
    assert work.answer_s == 0


@pytest.fixture
def filled(monkeypatch):
    """How many rates are worked out each time, as they come."""
    counted, fill = [], max_min.fill

    def counting(real, whole):
        counted.append(whole[columns.COUNT][columns.N_POOL])
        fill(real, whole)

    monkeypatch.setattr(max_min, "fill", counting)
    return counted


@pytest.mark.parametrize("network", SHARED)
@pytest.mark.parametrize("workers", [8, 16])
def test_rates_under_fair_sharing_are_judged_by_the_beginning(network, workers, filled):
    parts = build(loads(RING.replace("16", str(workers)) + SHARED[network]))
    simulated(parts)
    n_rates = sum(filled)
    assert near(work_of(parts).rates, n_rates, 2.0)


def test_what_the_estimate_itself_simulates_is_bounded(filled):
    """However large the run: in rates, of which each takes some ten microseconds."""
    work = work_of(build(loads(FAIR)))
    assert 0 < sum(filled) < 25_000 < work.rates / 20


FAIR = """
scenario_version: 1
engine: events
workers: 48
message: 1 GB
payload: none
network:
  topology: nodes
  workers_per_host: 8
  nics: 8
  inside: {shape: switch, bandwidth: 300 GB/s, latency: 1 us}
  between: {topology: leaf-spine, leaves: 6, hosts_per_leaf: 8, spines: 8}
  bandwidth: 12.5 GB/s
  latency: 3 us
  sharing: fair
  routes: ecmp
  placement: interleaved
algorithm: {name: channel-ring, n_channels: 8, node_size: 8}
report: {plots: []}
"""
PACKETS = f"""
{{scenario_version: 1, engine: events, workers: 8, message: 16 MiB, payload: none, report: {{plots: []}},
 network: {{topology: switch, sharing: fifo, packet: 48 B, {ON}}}}}
"""


@pytest.mark.parametrize(("text", "took_s"), [(FAIR, 23), (FAIR.replace("events", "compiled"), 1.8), (PACKETS, 95)])
def test_runs_that_were_said_to_take_a_second(text, took_s, monkeypatch):
    """Processor time that they took where the seconds of `ringnet.runs.work` were measured."""
    monkeypatch.setattr(cost, "pace", lambda: 1.0)
    assert near(preview_of(loads(text)).seconds, took_s, 2.0)


def test_check_and_run_say_the_same():
    scenario = loads(RING + NETWORKS["packets"])
    assert preview_of(scenario).seconds == run_s(scenario, build(scenario))


class TestPace:
    @pytest.fixture(autouse=True)
    def kept(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        cost._pace.cache_clear()
        yield cost._kept_at()
        cost._pace.cache_clear()

    def test_it_is_measured_once_and_kept_beside_the_cache(self, kept, monkeypatch):
        monkeypatch.setattr(cost, "_measure", lambda: 1.5)
        assert pace() == 1.5
        assert json.loads(kept.read_text()) == {"measured": 1.5, "now": 1.5}
        monkeypatch.setattr(cost, "_measure", lambda: 9.0)
        cost._pace.cache_clear()
        assert pace() == 1.5

    def test_a_small_run_says_how_fast_the_machine_is(self):
        assert 0.01 < cost._measure() < 100

    @pytest.mark.parametrize(
        "text", ["", "[]", "{}", '{"measured": NaN, "now": 1}', '{"measured": 1, "now": 100}', "x" * 2000]
    )
    def test_what_is_kept_and_damaged_is_measured_again(self, kept, monkeypatch, text):
        monkeypatch.setattr(cost, "_measure", lambda: 2.0)
        kept.parent.mkdir(parents=True)
        kept.write_text(text)
        assert pace() == 2.0
        assert json.loads(kept.read_text())["now"] == 2.0

    def test_it_follows_what_runs_took_a_little_at_a_time_and_not_far(self, monkeypatch):
        monkeypatch.setattr(cost, "_measure", lambda: 1.0)
        learn(10.0, 15.0)
        assert pace() == pytest.approx(1.1)
        learn(10.0, 0.1)  # tells nothing
        assert pace() == pytest.approx(1.1)
        for _ in range(20):
            learn(10.0, 1000.0)
        assert pace() == pytest.approx(1.5)

    def test_where_nothing_can_be_kept_nothing_is_said(self, kept, monkeypatch):
        monkeypatch.setattr(cost, "_measure", lambda: 1.0)
        kept.parent.parent.mkdir(parents=True, exist_ok=True)
        kept.parent.write_text("a file where the folder should be")
        assert pace() == 1.0
        assert cost._keep(kept, Pace(1.0, 1.2)).now == 1.2


def test_a_step_that_is_most_of_the_run_is_not_simulated_to_estimate_it(monkeypatch):
    monkeypatch.setattr("ringnet.engines.events.run.begin", lambda *_: pytest.fail("it was simulated"))
    direct = RING.replace("16", "128") + NETWORKS["switch"]
    work = work_of(build(loads(direct + "\nalgorithm: direct")))
    assert math.isclose(work.rates, 2 * 128 * 127)


def test_the_memory_of_a_step_has_its_numbers_and_that_of_its_gradients_as_one_run():
    text = "scenario_version: 1\nworkers: 4\nnetwork: {bandwidth: 1 GB/s, latency: 1 us}\n"
    text += "step: {model: resnet-18, rate: 150 TFLOP/s}\n"
    took_mib = {"float16": 2225, "float32": 2539, "float64": 3110}  # peaks of a process, measured
    for dtype, most in took_mib.items():
        told = step_preview_of(loads(text, ["payload=full", f"dtype={dtype}"])).memory_bytes
        assert near(told, most * 2**20, 1.2)
    bare = step_preview_of(loads(text))
    assert bare.memory_bytes < 200 * 2**20
    assert near(bare.run_bytes, 248 * 2**20, 1.2)


def test_the_proof_of_many_workers_is_told_with_how_many_would_fit():
    text = RING.replace("engine: events", "algorithm: {name: binary-tree, n_slices: 1}") + NETWORKS["switch"]
    n, available = 2**15, 600 << 20
    parts = build(loads(text, [f"workers={n}"]))
    assert estimate(parts).memory_bytes > 3 * n * n // 8  # a bit for each two workers, thrice at most
    with pytest.raises(InputError, match=r"at most [\d,]+ workers") as told:
        require_memory(parts, available)
    most = int(told.value.faults[0].right.split()[2].replace(",", ""))
    assert 0.9 * n < most < n
    require_memory(build(loads(text, [f"workers={most}"])), available)


@pytest.mark.parametrize(("algorithm", "took_mib"), [("halving-doubling", 178), ("pairwise", 145)])
def test_the_memory_of_a_proof_is_free_again_when_the_run_loads_its_engine(algorithm, took_mib):
    """Peaks of a process, measured: of many workers the proof is the most; of an all-to-all it has few words."""
    n, more = (1024, []) if algorithm == "halving-doubling" else (128, ["collective=all-to-all"])
    text = RING.replace("engine: events", f"algorithm: {{name: {algorithm}}}") + NETWORKS["switch"]
    parts = build(loads(text, [f"workers={n}", "payload=none", *more]))
    assert near(estimate(parts).memory_bytes, took_mib * 2**20, 1.2)


#: Peaks of a process, measured, of a ring on the compiled loop whose transfers go in parts.
TOOK_MIB = {
    "window": ("window: 64 KiB", 32, "64 MiB", 200_000, 425),
    "packets": ("sharing: fifo, packet: 4 KiB", 32, "64 MiB", 200_000, 1071),
    "packets, no rows": ("sharing: fifo, packet: 4 KiB", 64, "64 MiB", 0, 114),
    "more packets than rows are kept of": ("sharing: fifo, packet: 1 KiB", 16, "256 MiB", 200_000, 431),
    "more slots than rows are kept of": ("window: 1 MiB", 512, "1 GiB", 200_000, 442),
}


@pytest.mark.parametrize("name", TOOK_MIB)
def test_the_memory_of_what_goes_in_parts_is_that_of_their_rows_where_these_are_kept(name):
    cut, workers, message, rows, took_mib = TOOK_MIB[name]
    network = f"{{topology: switch, bandwidth: 25 GB/s, latency: 2 us, {cut}}}"
    text = f"{{scenario_version: 1, workers: {workers}, message: {message}, payload: none, engine: compiled, "
    parts = build(loads(text + f"network: {network}, report: {{transfers: {rows}}}}}"))
    assert near(estimate(parts).memory_bytes, took_mib * 2**20, 1.5)


def test_a_limit_of_the_process_is_a_limit_of_memory(monkeypatch):
    whole = available_bytes()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (whole // 2, whole // 2))
    assert 0 <= available_bytes() < whole // 2
