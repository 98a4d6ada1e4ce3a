"""A sweep on a real Dask cluster: a scheduler and worker processes on loopback."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringnet.errors import InputError, StudyError
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads
from ringnet.study.points import run_points

if importlib.util.find_spec("distributed") is None:
    pytest.skip("needs distributed: pip install 'ringnet[cluster]'", allow_module_level=True)

from distributed import Client
from joblib._dask import DaskDistributedBackend

from ringnet.study import cluster as rooms

#: How long a cluster may take to come up on a busy machine.
PATIENCE_S = 120
SWEEP = """
scenario_version: 1
name: on a cluster
message: 4 KiB
payload: {elements: 4}
network: {bandwidth: 50 GB/s, latency: 500 ns}
sweep:
  over:
    workers: {from: 2, to: 13, step: 1}
"""
N_POINTS = 12
#: What a cluster watches of itself takes more of a processor than these points.
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}
#: More of the same: ``RINGNET_POINTS=1000 pytest --timeout 0 tests/test_cluster.py -k losing_a_worker``.
MANY_POINTS = int(os.environ.get("RINGNET_POINTS", str(N_POINTS)))


class Cluster:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder, self.environment = folder, os.environ | QUIET | environment
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0")
        self.workers: list[subprocess.Popen[bytes]] = []

    def _start(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        file = self.folder / "scheduler.json"
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.{program}",
            "--no-dashboard",
            "--scheduler-file",
            file,
        ]
        with (self.folder / f"{program}.log").open("ab") as log:
            return subprocess.Popen([*command, *options], stdout=log, stderr=log, cwd=self.folder, env=self.environment)

    def add_workers(self, count: int) -> None:
        for _ in range(count):
            self.workers.append(self._start("dask_worker", "--no-nanny", "--nthreads", "1"))
        with Client(self.address, timeout=PATIENCE_S, set_as_default=False) as client:
            client.wait_for_workers(len(self.workers), timeout=PATIENCE_S)

    @property
    def address(self) -> str:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):  # not yet, or not yet whole
                return str(json.loads((self.folder / "scheduler.json").read_text())["address"])
            time.sleep(0.05)
        raise TimeoutError("the scheduler did not come up")

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that no test harms."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    made.add_workers(2)
    yield made
    made.close()


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster to be harmed, with no workers yet; it gives a point up as soon as one worker died of it."""
    made = Cluster(tmp_path, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    yield made
    made.close()


@pytest.fixture
def points():
    return loads(SWEEP).points()


def slowly():
    """A simulate that takes a moment; made here, so that it is sent to the workers as it is."""

    def run(scenario):
        time.sleep(0.1)
        return simulate(scenario)

    return run


def once(act):
    """Act on the first outcome only."""
    left = [act]
    return lambda outcome: left.pop()() if left else None


def rows(outcomes):
    return [outcome.summary for outcome in outcomes]


def test_a_cluster_gives_what_this_machine_gives(cluster, points):
    assert run_points(points, cluster=cluster.address) == run_points(points, processes=1)


@pytest.mark.parametrize("n_cores", [1, 2])
def test_the_points_run_on_its_workers(cluster, points, monkeypatch, n_cores):
    # joblib takes a single core as leave to run everything in the calling process.
    monkeypatch.setattr(DaskDistributedBackend, "effective_n_jobs", lambda self, n_jobs: n_cores)

    def tell(scenario):
        raise InputError(f"process {os.getpid()}")

    outcomes = run_points(points, cluster=cluster.address, simulate=tell)
    workers = {f"process {worker.pid}" for worker in cluster.workers}
    assert {outcome.error for outcome in outcomes} == workers


def test_finished_points_are_kept_here_and_need_no_cluster(cluster, points, tmp_path):
    first = run_points(points, cluster=cluster.address, cache_dir=tmp_path)
    again = run_points(points, cluster="tcp://127.0.0.1:9", cache_dir=tmp_path)
    assert rows(again) == rows(first)
    assert not any(outcome.computed for outcome in again)


def test_one_failing_point_is_an_error_of_its_own(cluster, points):
    def fail(scenario):
        return simulate(scenario) if scenario.workers != 5 else 1 / 0

    outcomes = run_points(points, cluster=cluster.address, simulate=fail)
    assert [outcome.ok for outcome in outcomes].count(False) == 1
    assert "ZeroDivisionError" in outcomes[3].error


def test_losing_a_worker_loses_no_point(tmp_path):
    sizes = f"message: {{from: 1 KiB, to: {MANY_POINTS} KiB, step: 1 KiB}}"
    many = SWEEP.replace("message: 4 KiB", "workers: 4").replace("workers: {from: 2, to: 13, step: 1}", sizes)
    points = loads(many).points()
    assert len(points) == MANY_POINTS
    made = Cluster(tmp_path)
    made.add_workers(4 if MANY_POINTS > N_POINTS else 2)
    lose_one = once(made.workers[0].kill)
    outcomes = run_points(points, cluster=made.address, simulate=slowly(), on_result=lose_one)
    made.close()
    assert rows(outcomes) == rows(run_points(points, processes=1))


def test_a_point_that_kills_its_worker_is_given_up_and_no_other(victim, points, tmp_path):
    victim.add_workers(3)  # two die: it is tried once more, alone

    def kill(scenario):
        return simulate(scenario) if scenario.workers != 5 else os._exit(1)

    outcomes = run_points(points, cluster=victim.address, simulate=kill, cache_dir=tmp_path / "kept")
    assert [outcome.ok for outcome in outcomes].count(False) == 1
    assert "gave it up" in outcomes[3].error
    assert len([*(tmp_path / "kept").rglob("*.json")]) == N_POINTS - 1


def test_losing_all_workers_ends_with_an_error_and_what_is_finished_kept(victim, points, tmp_path, monkeypatch):
    victim.add_workers(2)
    monkeypatch.setattr(rooms, "PATIENCE_S", 0.5)
    monkeypatch.setattr(rooms, "WATCH_S", 0.1)
    lose_all = once(lambda: [worker.kill() for worker in victim.workers])
    # The others wait, so that no worker dies of a point in hand, which the cluster would give up.
    with pytest.raises(StudyError, match=r"was lost: no worker for 0\.5 seconds"):
        run_points(points, cluster=victim.address, simulate=slowly(), on_result=lose_all, cache_dir=tmp_path / "kept")
    assert len([*(tmp_path / "kept").rglob("*.json")]) >= 1


def test_losing_the_scheduler_ends_with_an_error(victim, points):
    victim.add_workers(1)
    with pytest.raises(StudyError, match="was lost"):
        run_points(points, cluster=victim.address, simulate=slowly(), on_result=once(victim.scheduler.kill))


def test_a_scheduler_that_stands_still_ends_with_an_error(victim, points, monkeypatch):
    victim.add_workers(1)
    monkeypatch.setattr(rooms, "PATIENCE_S", 0.1)
    monkeypatch.setattr(rooms, "SILENCE_S", 3.0)
    stop = once(lambda: victim.scheduler.send_signal(signal.SIGSTOP))
    with pytest.raises(StudyError, match=r"was lost: its scheduler has not answered for 3 seconds"):
        run_points(points, cluster=victim.address, simulate=slowly(), on_result=stop)


# ----------------------------------------------------------------------------- what is no cluster to run on


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(rooms, "ANSWER_S", 1.0)


@pytest.fixture
def listening():
    """A port that is open, and what its server shall say to whoever connects."""
    server = socket.create_server(("127.0.0.1", 0))
    said = []

    def serve():
        connection, _ = server.accept()
        with connection:
            connection.sendall(said[0])
            connection.recv(4096)

    yield f"tcp://127.0.0.1:{server.getsockname()[1]}", said, serve
    server.close()


def refusal(points, address):
    with pytest.raises(InputError) as caught:
        run_points(points, cluster=address)
    (fault,) = caught.value.faults
    assert fault.path == "--cluster"
    return str(fault)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "tcp://no-such-host.invalid:8786"])
def test_an_address_where_nothing_answers(points, impatient, address):
    assert f"nothing answers within 1 seconds; got {address}" in refusal(points, address)


def test_an_open_port_that_says_nothing(points, impatient, listening):
    address, _, _ = listening
    assert "nothing answers within 1 seconds" in refusal(points, address)


def test_an_open_port_that_speaks_another_language(points, impatient, listening):
    address, said, serve = listening
    said.append(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    thread = threading.Thread(target=serve)
    thread.start()
    assert "no Dask scheduler answers" in refusal(points, address)
    thread.join()


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:8786", "tcp://127.0.0.1:port", ""])
def test_what_is_no_address(points, address):
    assert "right would be: tcp://10.0.0.1:8786" in refusal(points, address)


def test_the_address_of_a_worker(cluster, points):
    with Client(cluster.address, set_as_default=False) as client:
        worker = next(iter(client.ncores()))
    assert "the address of a worker, not of a scheduler" in refusal(points, worker)


def test_a_cluster_without_workers(victim, points):
    assert "the cluster has no workers" in refusal(points, victim.address)


def test_workers_with_another_ringnet(cluster, points, monkeypatch):
    monkeypatch.setattr(rooms, "__version__", "99.0")
    assert "has ringnet 0." in refusal(points, cluster.address)


def test_workers_with_other_code_of_the_same_number(cluster, points, monkeypatch):
    monkeypatch.setattr(rooms, "code_digest", lambda: str(os.getpid()))
    assert "of other code" in refusal(points, cluster.address)


def test_without_the_extra(points, monkeypatch):
    monkeypatch.setattr(rooms, "find_spec", lambda name: None)
    assert 'pip install "ringnet[cluster]"' in refusal(points, "tcp://127.0.0.1:9")
