"""A real ring over TCP on shaped links, in its short form; ``python -m tests.testbed`` runs it in full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ringnet.analysis.blame import slowest_links
from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.upgrades import LinksInUse, Upgrade
from ringnet.collectives.rings import ring
from ringnet.collectives.schedule import split_sizes
from ringnet.engines import Workers
from ringnet.engines.events import run_events
from ringnet.errors import WorkerError
from ringnet.measure.allreduce import AllReduce, expected_sum
from ringnet.measure.processes import run_once
from ringnet.networks import Network
from tests.testbed import report, study, trouble
from tests.testbed.beds import CASES, SHAPE, Link, ring_case, uplink_case
from tests.testbed.namespaces import PREFIX, Bed, Cable, why_not

REASON = why_not()

pytestmark = pytest.mark.testbed
real = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def namespaces():
    folder = Path("/run/netns")
    return {path.name for path in folder.glob(f"{PREFIX}{os.getpid()}-*")} if folder.is_dir() else set()


@real
@pytest.mark.slow
def test_two_workers_predict_every_other_network():
    link = study.calibrate(study.SHORT.repeat)
    points = list(study.compare(CASES, study.SHORT, link))
    large = [abs(point.error) for point in points if point.message_bytes >= report.LARGE_BYTES]
    small = [point.error for point in points if point.message_bytes < report.LARGE_BYTES]
    told = report.table(points).to_string()
    assert np.median(large) <= 0.05, told
    assert max(large) <= 0.12, told
    assert all(1 / 1.5 <= 1 + error <= 1.5 for error in small), told
    assert not namespaces()


@dataclass(frozen=True)
class BedAgain:
    """Simulates an all-reduce on a network once more, with other links."""

    network: Network
    chunk_bytes: np.ndarray
    affordable: int = 100

    def trace(self, upgrade):
        n_workers = self.network.n_workers
        network, workers = upgrade.of_network(self.network), Workers.alike(n_workers)
        return run_events(ring(n_workers), network, workers, self.chunk_bytes)

    def __call__(self, upgrade):
        return makespan_s(self.trace(upgrade))


@real
@pytest.mark.slow
def test_the_link_that_is_blamed_gains_what_was_said_when_it_is_really_upgraded():
    slow, n_bytes = {1: 0.5}, 2**20
    link = study.calibrate(study.SHORT.repeat)
    chunk_bytes = 4 * split_sizes(n_bytes // 4, 4)
    network = ring_case(4, slow).network(link.bandwidth_Bps, link.latency_of(int(chunk_bytes.max())))
    again = BedAgain(network, chunk_bytes)
    links = LinksInUse(network, again.trace(Upgrade()).links)
    blamed = slowest_links(links, again(Upgrade()), again)
    assert [network.names[one] for one in blamed.links] == ["1->2"]
    mended = {worker: factor for worker, factor in slow.items() if worker not in blamed.links}
    effort = study.Effort((n_bytes,), repeat=7, tries=3)
    cases = [ring_case(4, slow), ring_case(4, mended)]
    before, after = (point.measured_s for point in study.compare(cases, effort, link))
    assert before - after == pytest.approx(blamed.gain_s, rel=0.1)


@real
def test_the_sums_over_two_racks_are_those_of_the_reference():
    job = AllReduce(4, 40_004, "float16", seed=3)
    with uplink_case().workers() as workers:
        workers.expect(expected_sum(job.source()))
        workers.ask("prepare", job=job.document(), in_place=True)
        assert [wrong.n_elements for wrong in run_once(workers).wrong] == [0, 0, 0, 0]
        assert len(namespaces()) == 6
    assert not namespaces()


@real
def test_a_worker_that_is_killed_on_the_bed_is_named():
    with ring_case(3).workers() as workers:
        os.kill(workers.pids[1], signal.SIGKILL)
        with pytest.raises(WorkerError, match=r"worker 1 .* was killed \(SIGKILL\)"):
            workers.ask("ping_pong", n_bytes=8, n_times=1)
    assert not namespaces()


@real
def test_a_worker_that_is_stopped_makes_the_others_late_by_as_much_as_was_said():
    stall = trouble.stopped(Link(short_s=0.002, latency_s=0.0025, bandwidth_Bps=24e6))
    assert stall.measured_s == pytest.approx(stall.predicted_s, rel=0.15)


@real
@pytest.mark.slow
def test_lost_packets_and_a_killed_worker_cost_what_was_said():
    link = study.calibrate(study.SHORT.repeat)
    lost, *_ = trouble.lost(link, n_runs=30)
    (death,) = trouble.deaths(link, [(1, 0.2)])
    assert lost.measured_s == pytest.approx(lost.predicted_s, rel=0.15)
    assert death.measured_s == pytest.approx(death.predicted_s, rel=0.2)
    assert not namespaces()


@real
def test_what_a_killed_run_left_behind_is_removed_by_the_next():
    code = (
        "import os, signal, tests.testbed.namespaces as n\n"
        "n.Bed([n.Cable('w0', 'w1')]).__enter__(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[1])
    assert killed.wait() == -signal.SIGKILL
    left = [Path("/run/netns", f"{PREFIX}{killed.pid}-{host}") for host in ("w0", "w1")]
    assert all(path.exists() for path in left)
    with Bed([Cable("w0", "w1", SHAPE)]):
        assert not any(path.exists() for path in left)


LINK = Link(short_s=0.002, latency_s=0.001, bandwidth_Bps=25e6)


def test_a_prediction_is_the_closed_form_where_there_is_one():
    ring, uplink = ring_case(4), uplink_case()
    assert ring.predicted_s(2**20, LINK) == pytest.approx(6 * (0.001 + 2**18 / 25e6))
    assert uplink.predicted_s(2**20, LINK) == pytest.approx(6 * (0.001 + 2**19 / 25e6))


def test_a_short_transfer_takes_the_time_that_short_ones_were_measured_to_take():
    assert ring_case(3).predicted_s(48, LINK) == pytest.approx(4 * 0.002)


def test_a_slow_link_takes_longer_but_not_as_if_all_were_slow():
    whole, slow = (ring_case(4, slow).predicted_s(2**20, LINK) for slow in ({}, {1: 0.5}))
    assert whole < slow < 2 * whole


def test_the_comparison_is_written_as_a_table_and_two_plots(tmp_path):
    points = [study.Point("ring", 3, size, 0.11, 0.1, 0.01, 5) for size in (2**14, 2**20)]
    paths = report.write(points, tmp_path)
    assert [path.name for path in paths] == ["testbed.csv", "testbed.png", "testbed.svg"]
    assert paths[0].read_text().splitlines()[1] == "ring,3,16384,0.11,0.1,0.01,5,0.1"
    assert report.verdict(points).endswith("Smaller, 1 points: within a factor of 1.10.")


def test_without_root_there_is_a_reason(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert why_not() == "network namespaces need root"
