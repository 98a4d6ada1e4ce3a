"""A scenario's parts, and what they will take."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from ringnet.errors import InputError
from ringnet.payload import FileSource, RampSource, RandomSource
from ringnet.runs.memory import available_bytes, estimate, require_memory
from ringnet.runs.parts import build
from ringnet.scenario import loads

GOOD = "{scenario_version: 1, name: x, workers: 4, message: 40 B, network: {bandwidth: 50 GB/s, latency: 5 us}}"


def parts(*overrides, **options):
    return build(loads(GOOD, overrides, **options))


class TestSchedule:
    def test_is_that_of_algorithm_and_collective(self):
        schedule = parts("collective=reduce-scatter").schedule
        assert (schedule.algorithm, schedule.collective, schedule.n_workers) == ("ring", "reduce-scatter", 4)
        assert schedule.n_transfers == 12

    def test_chunks_are_cut_as_numpy_cuts(self):
        found = parts()
        assert found.chunk_sizes.tolist() == [3, 3, 2, 2]
        assert found.chunk_bytes.tolist() == [12, 12, 8, 8]

    def test_fewer_elements_than_workers_leave_empty_chunks(self):
        assert parts("message=8 B").chunk_bytes.tolist() == [4, 4, 0, 0]

    def test_bytes_by_dtype(self):
        assert parts("dtype=bfloat16").chunk_bytes.sum() == 40
        assert parts("dtype=bfloat16").chunk_sizes.tolist() == [5, 5, 5, 5]


class TestNetwork:
    def test_rule_for_all_links(self):
        network = parts("network.topology=switch", "network.switching=store-and-forward").network
        assert (network.topology, network.switching, network.n_links) == ("switch", "store-and-forward", 8)
        assert set(network.bandwidth_Bps) == {50e9}
        assert set(network.latency_s) == {5e-6}

    def test_exceptions_of_a_worker_and_stronger_of_a_link(self):
        network = parts(
            "network.links_of.1={bandwidth: 5 GB/s, latency: 9 us}", "network.links.1->2.bandwidth=1 GB/s"
        ).network
        assert network.names == ("0->1", "1->2", "2->3", "3->0")
        assert network.bandwidth_Bps.tolist() == [5e9, 1e9, 50e9, 50e9]
        assert network.latency_s.tolist() == [9e-6, 9e-6, 5e-6, 5e-6]


class TestWorkers:
    def test_alike_by_default_and_free(self):
        workers = parts().workers
        assert workers.sends == "eager"
        assert workers.reduce_Bps.tolist() == [math.inf] * 4
        for column in (workers.start_s, workers.send_overhead_s, workers.recv_overhead_s):
            assert column.tolist() == [0, 0, 0, 0]

    def test_rules_and_exceptions(self):
        workers = parts(
            "worker={sends: rendezvous, send_overhead: 1 us, recv_overhead: 2 us, reduce_rate: 1 GB/s}",
            "worker.start=3 us",
            "worker.exceptions={1: {start: never, reduce_rate: free}, 3: {send_overhead: 0 s}}",
        ).workers
        assert workers.sends == "rendezvous"
        assert workers.start_s.tolist() == [3e-6, math.inf, 3e-6, 3e-6]
        assert workers.send_overhead_s.tolist() == [1e-6, 1e-6, 1e-6, 0]
        assert workers.recv_overhead_s.tolist() == [2e-6] * 4
        assert workers.reduce_Bps.tolist() == [1e9, math.inf, 1e9, 1e9]


class TestData:
    def test_random_by_seed(self):
        one, same, other = (parts(f"seed={seed}").source.read(1, 0, 10) for seed in (1, 1, 2))
        assert isinstance(parts().source, RandomSource)
        assert one.tolist() == same.tolist() != other.tolist()

    def test_factors_for_a_product(self):
        factors = parts("reduce=prod", "message=4 kB").source.read(0, 0, 1000)
        assert np.abs(factors).min() > 0.5

    def test_ramp(self):
        found = parts("data=ramp").source
        assert isinstance(found, RampSource)
        assert found.read(2, 0, 3).tolist() == [100, 200, 300]

    def test_files(self, tmp_path):
        np.save(tmp_path / "a.npy", np.arange(12, dtype=np.int64).reshape(3, 2, 2))
        text = GOOD.replace("workers: 4, message: 40 B", "data: a.npy")
        found = build(loads(text, folder=tmp_path))
        assert isinstance(found.source, FileSource)
        assert (found.dtype.name, found.schedule.n_workers, found.chunk_sizes.tolist()) == (
            "int64",
            3,
            [2, 1, 1],
        )
        assert found.source.read(2, 0, 4).tolist() == [8, 9, 10, 11]

    def test_no_payload_needs_no_data(self):
        assert (parts("payload=none").source, parts("payload=none").carry) == (None, 0)

    @pytest.mark.parametrize(("payload", "carry"), [("full", None), ("{elements: 2}", 2)])
    def test_carry(self, payload, carry):
        assert parts(f"payload={payload}").carry == carry


class TestReduction:
    def test_a_mean_with_weights_is_the_weighted_mean(self):
        found = parts("reduce=mean", "weights=[1, 1, 1, 5]").reduction
        assert (found.name, found.scales) == ("weighted-mean", (0.125, 0.125, 0.125, 0.625))
        assert parts("reduce=mean").reduction.scales == (0.25,) * 4

    def test_a_collective_that_copies_changes_no_number(self):
        found = parts("collective=all-gather")
        assert (found.reduces, found.reduction.scales) == (False, None)


def test_what_is_kept():
    assert (parts().keep_transfers, parts().keep_values) == (200_000, False)
    kept = parts("report={tables: [summary, states], transfers: all}")
    assert (kept.keep_transfers, kept.keep_values) == (sys.maxsize, True)


class TestMemory:
    """What is told, beside the most that a process held: measured, in MiB, and the same in every run of the tests."""

    LARGE = "{scenario_version: 1, workers: 8, message: 256 MiB, network: {bandwidth: 50 GB/s, latency: 5 us}}"

    def test_a_payload_counts_for_every_worker(self):
        found = estimate(build(loads(self.LARGE)))
        assert found.payload_bytes == pytest.approx(8 * 2**28, rel=1e-4)
        assert found.memory_bytes == pytest.approx(2115 * 2**20, rel=0.05)
        assert (found.n_transfers, found.n_rows) == (112, 112)

    def test_only_what_is_carried_counts(self):
        found = estimate(build(loads(self.LARGE, ["payload.elements=16"])))
        assert found.payload_bytes < 100_000
        assert estimate(build(loads(self.LARGE, ["payload=none"]))).payload_bytes == 0

    def test_little_of_many_chunks_counts_as_the_engine_carries_it(self):
        """The recurrence packs it into one array; with SimPy's engine every chunk is an array of its own."""
        little = ["workers=2000", "payload.elements=2"]
        packed = estimate(build(loads(self.LARGE, little))).payload_bytes
        assert packed == 2000 * 2000 * 2 * 4
        assert estimate(build(loads(self.LARGE, [*little, "engine=events"]))).payload_bytes > 10 * packed

    def test_rows_that_are_not_kept_do_not_count(self):
        many = ["workers=1000", "payload=none"]
        found, all_rows = (
            estimate(build(loads(self.LARGE, [*many, f"report.transfers={n}"]))) for n in ("200000", "all")
        )
        assert (found.n_rows, all_rows.n_rows) == (0, 2 * 999 * 1000)
        assert all_rows.memory_bytes - found.memory_bytes == pytest.approx(960 * 2**20, rel=0.25)

    def test_what_a_path_is_walked_over_counts(self):
        """Of the compiled loop times and services, of whole arrays what led to the end; nothing where none is asked."""
        many = ["workers=500", "payload=none", "network.topology=switch"]
        took_mib = {
            ("report.transfers=0",): 0,
            (): 3,
            ("network.sharing=fifo", "engine=compiled"): 135,
            ("network.sharing=fair",): 220,
        }
        told = [estimate(build(loads(self.LARGE, [*many, *one]))).memory_bytes for one in took_mib]
        assert [(one - told[0]) / 2**20 for one in told] == pytest.approx([*took_mib.values()], rel=0.2, abs=1)
        one = build(loads(self.LARGE, [*many, "network.sharing=fair"]))
        with pytest.raises(InputError, match=r"report.transfers: .* right would be: report: {transfers: 0}"):
            require_memory(one, available=(told[0] + 3 * told[-1]) // 4)

    def test_what_fits_is_let_through(self):
        require_memory(build(loads(GOOD)))
        require_memory(build(loads(self.LARGE)), available=2**32)

    def test_what_does_not_fit_is_refused_with_the_setting_that_would(self):
        with pytest.raises(InputError) as caught:
            require_memory(build(loads(self.LARGE)), available=2**30)
        (fault,) = caught.value.faults
        assert str(fault) == (
            "payload: the run takes about 2.07 GiB of memory; got 1 GiB free; "
            "right would be: payload: {elements: 2097152}"
        )
        require_memory(build(loads(self.LARGE, ["payload.elements=2097152"])), available=2**30)

    def test_nothing_but_counts_may_fit(self):
        many = loads(self.LARGE, ["workers=4096"])
        bare = estimate(build(loads(self.LARGE, ["workers=4096", "payload=none"])))
        with pytest.raises(InputError, match=r"payload: .* right would be: payload: none"):
            require_memory(build(many), available=bare.memory_bytes)
        require_memory(build(loads(self.LARGE, ["workers=4096", "payload=none"])), available=bare.memory_bytes)

    def test_too_many_workers(self):
        huge = loads(self.LARGE, ["workers=46000", "payload=none"])
        with pytest.raises(
            InputError, match=r"workers: .* got 256 MiB free; right would be: at most 38,\d\d\d workers"
        ):
            require_memory(build(huge), available=2**28)

    def test_no_room_for_anything(self):
        with pytest.raises(InputError, match="right would be: a machine with more memory"):
            require_memory(build(loads(GOOD)), available=2**20)

    def test_rows_beyond_memory(self):
        huge = loads(self.LARGE, ["workers=16384", "payload=none", "report.transfers=all"])
        with pytest.raises(InputError, match=r"report.transfers: .* right would be: report: {transfers: 200000}"):
            require_memory(build(huge), available=2**33)

    def test_the_machine_has_some_memory(self, machine_bytes):
        assert 2**20 < machine_bytes() < 2**50

    def test_the_limit_of_a_container_counts(self, tmp_path, monkeypatch):
        limit, used = tmp_path / "max", tmp_path / "current"
        monkeypatch.setattr("ringnet.runs.memory._CGROUPS", [(limit, used), (tmp_path / "gone", used)])
        used.write_text("4096\n")
        for text, free in (("1048576\n", 1048576 - 4096), ("max\n", 64 * 2**30), ("1024\n", 0)):
            limit.write_text(text)
            assert available_bytes() == free


def test_a_link_for_every_pair_of_workers_is_counted_and_refused_with_what_would_fit():
    scenario = loads(GOOD, ["workers=16384", "payload=none", "network.topology=fully-connected", "message=64 KiB"])
    assert estimate(build(scenario)).memory_bytes > 100e9
    with pytest.raises(InputError, match="at most 1,7") as caught:
        require_memory(build(scenario), available=4 * 2**30)
    assert caught.value.faults[0].path == "workers"
    few = loads(GOOD, ["network.topology=leaf-spine", "network.hosts_per_leaf=1", "network.spines=100000"])
    with pytest.raises(InputError, match=r"network: .* right would be: at most 688,\d\d\d links, not "):
        require_memory(build(few), available=2**30)
