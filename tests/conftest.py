"""What test modules share: small cases to run, random ones, and what must hold for every run."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ringnet.analysis.bounds import collective_bound, schedule_bound_s
from ringnet.analysis.result import Run, RunResult, make_result
from ringnet.analysis.verification import Verdict
from ringnet.analysis.worker_time import worker_time
from ringnet.collectives import ALGORITHMS, EVERY_WORKER, Schedule, Step
from ringnet.engines import ENGINES, PATH_PARTS, Trace, Workers
from ringnet.engines.sharing import Sending, resolve_sharing
from ringnet.networks import TOPOLOGIES, LinkChange, Network, change_links
from ringnet.payload import PackedPayload, Payload
from ringnet.runs import memory

#: Run by the testbed in a Python of its own, which has PyTorch: doctests are not looked for in it.
collect_ignore = ["testbed/ddp_worker.py"]

# A process that ignores a signal hands that on to those that it starts (nohup, `&` in a script); the tests send
# Ctrl-C to such processes, and would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)

# A process that may keep no compiled modules compiles ringnet anew: two seconds for each command that is started.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What whoever starts the tests wants of colours and widths is not for the commands that they look at.
for _name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(_name, None)

# A deadline, or a check of how fast examples are drawn, would be a test that asserts on time. Every run draws other
# examples, so a few in each are many in a week; more of them, for an hour of trust:
# ``RINGNET_EXAMPLES=5000 pytest --timeout 0 tests/test_compiled.py -k same``.
settings.register_profile(
    "ringnet",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=int(os.environ.get("RINGNET_EXAMPLES", "25")),
)
settings.load_profile("ringnet")

#: What is traced for coverage takes twice as long, and what a long test does later, or a late case of one, has mostly
#: been done before, with other numbers. So the cases of a test are traced together for `TRACED_S` of processor time,
#: each for `TRACED_LEAST_S`; and then for moments of `LOOK_S`: on while they see new lines, after pauses that grow.
TRACED_S, TRACED_LEAST_S = 1.0, 0.05
LOOK_S, PAUSE_S = 0.02, 0.64


class Looks:
    """When coverage traces: never what pytest does around a test or a fixture, and of these as much as may be new."""

    def __init__(self) -> None:
        self.tracing: Any = None
        self.traced_s: Counter[Any] = Counter()
        self.on, self.known, self.pause_s = False, 0, LOOK_S

    @contextmanager
    def at(self, what: Any) -> Iterator[None]:
        """Look at what runs in this context; a fixture that a test asks for while it runs is part of the test."""
        if self.tracing is None or signal.getsignal(signal.SIGVTALRM) == self.turn:
            yield
            return
        began_s, self.pause_s = time.process_time(), LOOK_S
        handler = signal.signal(signal.SIGVTALRM, self.turn)
        self.turn()
        signal.setitimer(signal.ITIMER_VIRTUAL, max(TRACED_S - self.traced_s[what], TRACED_LEAST_S))
        try:
            yield
        finally:
            # Ignored first, for a signal that is on its way would set the timer again.
            signal.signal(signal.SIGVTALRM, signal.SIG_IGN)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, handler)
            if self.on:
                self.tracing.stop()
                self.on = False
            self.traced_s[what] += time.process_time() - began_s

    def turn(self, *_: Any) -> None:
        before, self.known = self.known, sum(map(len, [*self.tracing._collector.data.values()]))
        next_s = LOOK_S
        if not self.on:
            self.tracing.start()
            self.on = True
        elif self.known > before:
            self.pause_s = LOOK_S
        else:
            self.tracing.stop()
            self.on, next_s, self.pause_s = False, self.pause_s, min(2 * self.pause_s, PAUSE_S)
        signal.setitimer(signal.ITIMER_VIRTUAL, next_s)


_looks = Looks()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Trace all imports now, and then the looks alone: collecting tests would take twice as long.

    A process of pytest-xdist has begun to trace twice: stopping the later one alone would resume the earlier.
    """
    tracings = sys.modules["coverage"].Coverage if "coverage" in sys.modules else None
    if tracings and tracings.current() and hasattr(signal, "ITIMER_VIRTUAL"):
        for module in pkgutil.walk_packages([str(Path(__file__).parents[1] / "ringnet")], "ringnet."):
            importlib.import_module(module.name)
        _looks.tracing = tracings.current()
        while tracing := tracings.current():
            tracing.stop()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
    with _looks.at(fixturedef.func) if fixturedef.baseid else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with _looks.at((item.path, getattr(item, "originalname", item.name))):
        return (yield)


#: Topologies that take nothing but workers and what their links have.
PLAIN = sorted(name for name, topology in TOPOLOGIES.items() if not topology.parameters)
#: Relative error that a few hundred additions may leave.
DUST = 1e-12


@dataclass(frozen=True)
class Case:
    """All that an engine is told, and a way to run it."""

    schedule: Schedule
    network: Network
    workers: Workers
    chunk_bytes: np.ndarray

    def run(self, payload: Any = None, engine: str = "events", **options: Any) -> Trace:
        return ENGINES[engine].run(self.schedule, self.network, self.workers, self.chunk_bytes, payload, **options)

    def spent(self, trace: Trace) -> dict[str, np.ndarray]:
        """What each worker did with its time."""
        sharing = resolve_sharing(self.network, [Sending(0, self.schedule, self.network)])
        return worker_time(trace, replace(self.network, sharing=sharing), self.workers)

    def but(self, **changes: Any) -> Case:
        return replace(self, **changes)


def make_workers(n_workers: int, sends: str = "eager", **columns: float | list[float]) -> Workers:
    """Workers with some columns given, as one number or one per worker."""
    alike = Workers.alike(n_workers, sends=sends)
    return replace(alike, **{name: np.full(n_workers, value, dtype=float) for name, value in columns.items()})


def make_schedule(n_workers: int, *steps: list[tuple[int, ...]], op: str = "copy", **changes: Any) -> Schedule:
    """A schedule from rows ``(src, dst, chunk[, channel[, to_channel]])``, a list for each step."""
    rows = [[_row(*row) for row in step] for step in steps]
    n_chunks = 1 + max((row[2] for step in rows for row in step), default=0)
    return replace(
        Schedule(
            algorithm="custom",
            collective="all-reduce",
            n_workers=n_workers,
            n_chunks=n_chunks,
            n_steps=len(rows),
            n_transfers=sum(map(len, rows)),
            make_steps=lambda: (_step(number, op, step) for number, step in enumerate(rows)),
            source=np.full(n_chunks, EVERY_WORKER),
            target=np.full(n_chunks, EVERY_WORKER),
            n_channels=1 + max((max(row[3:]) for step in rows for row in step), default=0),
        ),
        **changes,
    )


def _row(src: int, dst: int, chunk: int, channel: int = 0, to_channel: int | None = None) -> tuple[int, ...]:
    return src, dst, chunk, channel, channel if to_channel is None else to_channel


def _step(number: int, op: str, rows: list[tuple[int, ...]]) -> Step:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    return Step("reduce-scatter" if op == "reduce" else "all-gather", number, op, *columns)


def make_network(
    links: dict[str, tuple[float, float]], routes: dict[tuple[int, int], Sequence[str]], n_workers: int
) -> Network:
    """A network from ``{name: (bandwidth, latency)}`` and ``{(src, dst): names of links}``."""
    names = tuple(links)
    return Network(
        topology="wired",
        sharing="fifo",
        n_workers=n_workers,
        names=names,
        bandwidth_Bps=np.array([bandwidth for bandwidth, _ in links.values()], dtype=float),
        latency_s=np.array([latency for _, latency in links.values()], dtype=float),
        find_route=lambda src, dst: tuple(names.index(name) for name in routes[src, dst]),
    )


def make_case(
    n_workers: int = 2,
    chunk_bytes: int | list[int] = 100,
    *,
    collective: str = "all-reduce",
    schedule: Schedule | None = None,
    topology: str = "ring",
    bandwidth_Bps: float = 100.0,
    latency_s: float = 0.5,
    links: dict[str, LinkChange] | None = None,
    switching: str = "cut-through",
    **workers: Any,
) -> Case:
    """A case from what differs from 2 workers, links of 100 B/s and half a second, chunks of 100 bytes."""
    schedule = schedule or ALGORITHMS["ring"].build(n_workers, collective)
    network = TOPOLOGIES[topology].build(n_workers, bandwidth_Bps=bandwidth_Bps, latency_s=latency_s)
    network = replace(change_links(network, links or {}), switching=switching, sharing="fifo")
    chunks = np.full(schedule.n_chunks, chunk_bytes, dtype=np.int64)
    return Case(schedule, network, make_workers(n_workers, **workers), chunks)


@st.composite
def random_cases(draw: Callable[..., Any], **fixed: Any) -> Case:
    """Rings and switches of up to 9 workers in which everything differs but what is ``fixed``."""
    n_workers = fixed.pop("n_workers", None) or draw(st.integers(1, 9))
    topology = fixed.pop("topology", None) or draw(st.sampled_from(PLAIN))
    names = TOPOLOGIES[topology].build(n_workers, bandwidth_Bps=1.0, latency_s=0.0).names

    def each(values: st.SearchStrategy[float], n: int = n_workers) -> list[float]:
        return draw(st.lists(values, min_size=n, max_size=n))

    seconds = st.just(0.0) | st.floats(1e-7, 1e-3)
    bandwidths = each(st.sampled_from([1e9, 4e9]) | st.floats(1e8, 1e11), len(names))
    changes = map(LinkChange, bandwidths, each(st.just(1e-6) | seconds, len(names)))
    drawn = {
        "collective": draw(st.sampled_from(ALGORITHMS["ring"].collectives)),
        "switching": draw(st.sampled_from(["cut-through", "store-and-forward"])),
        "sends": draw(st.sampled_from(["eager", "rendezvous"])),
        "links": dict(zip(names, changes, strict=True)),
        "chunk_bytes": each(st.integers(0, 3) | st.integers(0, 1_000_000)),
        "start_s": each(seconds),
        "send_overhead_s": each(seconds),
        "recv_overhead_s": each(seconds),
        "launch_s": each(seconds),
        "reduce_Bps": each(st.just(np.inf) | st.floats(1e8, 1e11)),
    }
    return make_case(n_workers, topology=topology, **(drawn | fixed))


# --------------------------------------------------------------------------------------- what always holds


def makespan(trace: Trace) -> float:
    return float(trace.workers["end_s"].max() - trace.workers["start_s"].min())


def at_most(smaller: Any, larger: Any) -> bool:
    return bool(np.all(np.asarray(smaller) <= np.asarray(larger) * (1 + DUST) + 1e-18))


def routed(case: Case, rows: dict[str, np.ndarray], values: np.ndarray) -> np.ndarray:
    """Sums over the transfers that cross each link, by the routes of the network."""
    sums = np.zeros(case.network.n_links, dtype=np.int64)
    for src, dst, value in zip(rows["src"].tolist(), rows["dst"].tolist(), values.tolist(), strict=True):
        for link in case.network.route(src, dst):
            sums[link] += value
    return sums


def times_are_in_order(case: Case, trace: Trace) -> None:
    rows = trace.transfers
    times = np.array([rows[name] for name in ("posted_s", "started_s", "sent_s", "arrived_s", "applied_s")])
    assert np.isfinite(times).all()
    assert (np.diff(times, axis=0) >= 0).all()
    assert (rows["posted_s"] >= case.workers.launched_s[rows["src"]]).all()


def bytes_are_conserved(case: Case, trace: Trace) -> None:
    """Every byte sent is received once, and crosses each link of its route once."""
    rows, n_workers = trace.transfers, case.schedule.n_workers
    assert len(rows["bytes"]) == trace.n_transfers == case.schedule.n_transfers
    for end, column in (("src", "sent_bytes"), ("dst", "received_bytes")):
        counted = np.bincount(rows[end], rows["bytes"], minlength=n_workers)
        assert trace.workers[column].tolist() == counted.tolist()
    assert trace.links["bytes"].tolist() == routed(case, rows, rows["bytes"]).tolist()
    assert trace.links["transfers"].tolist() == routed(case, rows, np.ones_like(rows["bytes"])).tolist()


def no_link_is_busy_over_100_percent(case: Case, trace: Trace) -> None:
    links = trace.links
    assert links["busy_s"] == pytest.approx(links["bytes"] / case.network.bandwidth_Bps, rel=DUST, abs=0)
    assert at_most(links["busy_s"], links["occupied_s"] + DUST * makespan(trace))
    assert at_most(links["occupied_s"], makespan(trace))


def links_serve_one_at_a_time(case: Case, trace: Trace) -> None:
    rows = trace.transfers
    first = np.array(
        [case.network.route(*pair)[0] for pair in zip(rows["src"].tolist(), rows["dst"].tolist(), strict=True)]
    )
    served_s = rows["bytes"] / case.network.bandwidth_Bps[first] if len(first) else np.zeros(0)
    assert np.allclose(rows["sent_s"] - rows["started_s"], served_s, rtol=1e-9, atol=1e-12 * makespan(trace))
    order = np.lexsort((rows["sent_s"], rows["started_s"], first))
    same_link = np.diff(first[order]) == 0
    assert (rows["started_s"][order][1:] >= rows["sent_s"][order][:-1])[same_link].all()


def no_run_beats_its_bounds(case: Case, trace: Trace) -> None:
    bound_s = schedule_bound_s(trace.links["bytes"], case.network)
    assert at_most(bound_s, makespan(trace))
    assert at_most(collective_bound(case.schedule, case.network, case.chunk_bytes).seconds, makespan(trace))


def paths_add_up(case: Case, trace: Trace) -> None:
    parts = np.array([trace.workers[f"path_{part}_s"] for part in PATH_PARTS])
    ends_s = trace.workers["end_s"] - trace.workers["start_s"].min()
    assert parts.min() >= -DUST * ends_s.max()
    assert parts.sum(axis=0) == pytest.approx(ends_s, rel=1e-9, abs=0)


def time_of_workers_is_accounted_for(case: Case, trace: Trace) -> None:
    """Something of a worker moves, or it waits, or its processor works: nothing else takes its time."""
    workers, rows, costs = trace.workers, trace.transfers, case.workers
    columns = case.spent(trace) | workers
    parts = np.array([columns[name] for name in ("moving_s", "waiting_s", "overhead_s", "reducing_s")])
    assert (parts >= 0).all()
    assert parts.sum(axis=0) == pytest.approx(workers["end_s"] - workers["start_s"], rel=1e-9, abs=1e-15)
    sent, received = (np.bincount(rows[end], minlength=case.schedule.n_workers) for end in ("src", "dst"))
    overhead_s = costs.launch_s + sent * costs.send_overhead_s + received * costs.recv_overhead_s
    assert workers["overhead_s"] == pytest.approx(overhead_s, rel=1e-9, abs=0)
    reduced = np.bincount(rows["dst"], rows["bytes"] * (rows["op"] == "reduce"), minlength=len(sent))
    assert workers["reducing_s"] == pytest.approx(reduced / costs.reduce_Bps, rel=1e-9, abs=0)


def workers_end_with_their_last_transfer(case: Case, trace: Trace) -> None:
    rows, ends_s = trace.transfers, case.workers.launched_s
    np.maximum.at(ends_s, rows["dst"], rows["applied_s"])
    if case.workers.sends == "rendezvous":
        np.maximum.at(ends_s, rows["src"], rows["arrived_s"])
    assert trace.workers["end_s"].tolist() == ends_s.tolist()


INVARIANTS = (
    times_are_in_order,
    bytes_are_conserved,
    no_link_is_busy_over_100_percent,
    links_serve_one_at_a_time,
    no_run_beats_its_bounds,
    paths_add_up,
    time_of_workers_is_accounted_for,
    workers_end_with_their_last_transfer,
)


# ------------------------------------------------------------------------------------------------ fixtures
# Test modules do not import each other, so these hand out functions, once a session: hypothesis wants that.


@pytest.fixture(scope="session")
def case() -> Callable[..., Case]:
    """Build a `Case` from what differs from the usual: ``case(3, 200, latency_s=0)``."""
    return make_case


@pytest.fixture(scope="session")
def custom() -> Callable[..., Schedule]:
    """Build a `Schedule` from rows: ``custom(2, [(0, 1, 0)], [(1, 0, 0)])``."""
    return make_schedule


@pytest.fixture(scope="session")
def wired() -> Callable[..., Network]:
    """Build a `Network` from links and routes: ``wired({"a": (100, 0.5)}, {(0, 1): "a"}, 2)``."""
    return make_network


@pytest.fixture(scope="session")
def cases() -> Callable[..., st.SearchStrategy[Case]]:
    """Draw a random `Case`: ``data.draw(cases(topology="ring"))``."""
    return random_cases


@pytest.fixture(scope="session")
def holds() -> Callable[[Case, Trace], None]:
    """Check everything that holds for every run with one channel."""

    def check(case: Case, trace: Trace) -> None:
        for invariant in INVARIANTS:
            invariant(case, trace)

    return check


@pytest.fixture(scope="session")
def times() -> Callable[[Trace], list[tuple[float, ...]]]:
    """Read a trace: posted, started, sent, arrived and applied of each transfer."""
    names = ("posted_s", "started_s", "sent_s", "arrived_s", "applied_s")
    return lambda trace: list(zip(*(trace.transfers[name].tolist() for name in names), strict=True))


@pytest.fixture(scope="session")
def result() -> Callable[..., RunResult]:
    """Run a case and say what it means, without a payload: ``result(3, 200, name="three", n_channels=1)``.

    Columns of the summary replace what the run gave: ``seed=7``, ``**{"network.bandwidth": "1 GB/s"}``.
    """

    def run(*shape: Any, **changes: Any) -> RunResult:
        of_case = {key: value for key, value in changes.items() if key in inspect.signature(make_case).parameters}
        of_case |= {key: changes[key] for key in ("start_s", "recv_overhead_s", "reduce_Bps") if key in changes}
        built = make_case(*shape, **of_case)
        trace = built.run()
        labels = {"name": "ring", "message_bytes": int(built.chunk_bytes.sum()), "dtype": "float32"}
        labels |= {"reduce": "sum", "sharing": "fifo", "payload": "none", "seed": 1}
        case = (built.schedule, built.network, built.workers, built.chunk_bytes, trace)
        made = make_result([Run(*case, labels, Verdict("none"))], list)
        columns = {key: value for key, value in changes.items() if key not in of_case}
        return replace(made, summary=made.summary | columns)

    return run


@pytest.fixture(scope="session")
def bytes_of() -> Callable[[Trace], bytes]:
    """Read every number of a trace as bytes, to compare whole traces to the last bit."""

    def read(trace: Trace) -> bytes:
        columns = [column for rows in (trace.transfers, trace.links, trace.workers) for column in rows.values()]
        return b"".join(column.tobytes() for column in columns if column.dtype != object)

    return read


@pytest.fixture(scope="session")
def drive() -> Callable[[Schedule, Any], None]:
    """Move a payload through a schedule without a clock: all sends of a step, then the rest, by sender."""

    def step_on(payload: Payload, step: Step) -> None:
        rows = sorted(zip(step.src.tolist(), step.dst.tolist(), step.chunk.tolist(), strict=True))
        sent = [payload.send(src, chunk) for src, _, chunk in rows]
        for (_, dst, chunk), array in zip(rows, sent, strict=True):
            (payload.reduce if step.op == "reduce" else payload.copy)(dst, chunk, array)

    def run(schedule: Schedule, payload: Payload | PackedPayload) -> None:
        for step in schedule.steps():
            if isinstance(payload, PackedPayload):
                payload.step(step.op, step.src, step.dst, step.chunk)
            else:
                step_on(payload, step)

    return run


# ----------------------------------------------------------------------------------------------- the machine


@pytest.fixture(scope="session", autouse=True)
def machine_bytes() -> Iterator[Callable[[], int]]:
    """Let no test depend on the memory of the machine: it has 64 GiB. What it has in truth, this returns."""
    with pytest.MonkeyPatch.context() as patch:
        in_truth = memory._machine_bytes
        patch.setattr(memory, "_machine_bytes", lambda: 64 * 2**30)
        patch.setattr(memory, "_CGROUPS", ())
        yield in_truth


# ---------------------------------------------------------------------------------------- the command line


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep nothing in the home folder, nor read what is kept there but the fonts that matplotlib has found."""
    with pytest.MonkeyPatch.context() as patched:
        fonts = os.environ.get("MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib"))
        patched.setenv("MPLCONFIGDIR", fonts)
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with a cache of its own and no debugging."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RINGNET_DEBUG", "")
    return tmp_path


@pytest.fixture
def ringnet() -> Callable[..., Any]:
    """Run the command line in this process."""
    from typer.testing import CliRunner  # noqa: PLC0415 -- for the tests of commands only

    from ringnet.cli import app  # noqa: PLC0415 -- the same

    return lambda *arguments, **options: CliRunner().invoke(app, [*map(str, arguments)], **options)


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every figure and write an empty file, for tests that do not look at it: writing takes half a second."""

    def save(_: Any, targets: dict[str, Path]) -> None:
        for path in targets.values():
            path.touch()

    monkeypatch.setattr("ringnet.reporting.plots.canvas.save", save)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # the other cores have other tests


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let every run come out another way: ``simulated(lambda scenario: ...)``."""

    def come_out(act: Callable[..., Any]) -> None:
        monkeypatch.setattr("ringnet.cli.run.simulate", lambda scenario, watch=None, parts=None: act(scenario))
        monkeypatch.setattr("ringnet.cli.run.simulate_all", act)

    return come_out


@pytest.fixture(scope="session")
def on_a_terminal() -> Callable[..., tuple[bytes, str]]:
    """Start a process with a terminal for its messages; return what it says there, and on standard output.

    ``on_a_terminal(lambda **streams: subprocess.Popen(command, text=True, stdout=PIPE, **streams))``
    """
    pty = pytest.importorskip("pty", reason="terminals are a thing of Unix")

    def run(begin: Callable[..., Any]) -> tuple[bytes, str]:
        leader, follower = pty.openpty()
        shown = begin(stderr=follower, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"})
        os.close(follower)
        seen = b""
        while chunk := read_terminal(leader):
            seen += chunk
        out, _ = shown.communicate()
        os.close(leader)
        return seen, out

    return run


def read_terminal(leader: int) -> bytes:
    try:
        return os.read(leader, 65536)
    except OSError:  # the other end is closed: Linux says so with an error
        return b""
