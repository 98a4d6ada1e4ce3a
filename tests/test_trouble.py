"""Trouble: links that are down or die, workers that pause, slow down or die, and what the collective does then."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from scipy.stats import kstest

from ringnet.chance import stream
from ringnet.collectives import ALGORITHMS
from ringnet.engines import Workers, choose_engine
from ringnet.engines.arrays import why_not_exact
from ringnet.engines.events import run_events
from ringnet.engines.pace import ProcessorPace
from ringnet.errors import AbortedError, DeadlockError, InputError
from ringnet.networks import TOPOLOGIES, Lossy, in_run
from ringnet.networks.behaviour import NEVER, Constant, OverTime
from ringnet.networks.trouble import Span, troubled
from ringnet.payload import ArraySource, Payload
from ringnet.payload.reductions import make_reduction
from ringnet.runs.parts import build
from ringnet.runs.repeat import times_of_runs
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads
from ringnet.study.repeat import simulate_all
from tests import trouble

#: All deaths of all algorithms, and not a few of them: ``RINGNET_LONG=1 pytest tests/test_trouble.py``.
LONG = bool(os.environ.get("RINGNET_LONG"))
SYMMETRIC = [name for name, one in ALGORITHMS.items() if "all-reduce" in one.collectives and not one.in_switches]
RING = "topology: ring, bandwidth: 1 GB/s, latency: 0 s"
SWITCH = "topology: switch, bandwidth: 1 GB/s, latency: 1 us"


def scenario(said="", n=4, message="4 MB", network=RING, rest=""):
    return loads(f"""
    scenario_version: 1
    workers: {n}
    message: {message}
    network: {{{network}}}
    {f"trouble: [{said}]" if said else ""}
    {rest}
    """)


def makespan(*given, **more):
    return simulate(scenario(*given, **more)).summary["makespan_s"]


# --------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize(
    "more",
    ["sharing: fifo", "sharing: fair", "sharing: fifo, packet: 50 kB", "sharing: fifo, window: 1 GB"],
)
@pytest.mark.parametrize(
    ("said", "lost_s"),
    [
        ("down: {at: 1.5 ms, for: 2 s}", 2.0),
        ("down: {at: 1.5 ms, for: 2 s, retry: 200 ms}", 3.0),  # tried after 0.2, 0.6, 1.4 and 3.0 s
        ("flap: {at: 0.5 ms, down: 1 ms, period: 2 ms, times: 2}", 2e-3),
        ("slow: {at: 1.5 ms, for: 1 ms, factor: 4}", 0.75e-3),
        ("slow: {at: 5 ms, factor: 2}", 1e-3),  # of 6 ms one is left
    ],
)
def test_a_link_that_is_always_busy_loses_what_it_does_not_carry(said, lost_s, more):
    """Without latency each link of a ring is busy from the first step to the last, 6 ms."""
    network = f"{RING}, {more}"
    if "window" in more:  # for which there is a way back
        network = network.replace("topology: ring", "topology: fully-connected")
    rest = "worker: {sends: rendezvous}" if "fair" in more else ""  # or transfers that wait would share the link
    found_s = makespan(f"{{link: 0->1, {said}}}", network=network, rest=rest)
    assert found_s == pytest.approx(6e-3 + lost_s, rel=1e-9, abs=0)


def test_whiles_that_meet_take_shares_of_shares():
    link = troubled(OverTime(8.0, 0.5, ((5.0, 4.0),)), [Span(1.0, 6.0, 0.5), Span(3.0, 4.0, 0.5)])
    assert link.changes == ((1.0, 4.0), (3.0, 2.0), (4.0, 4.0), (5.0, 2.0), (6.0, 4.0))
    assert troubled(Constant(8.0, 0.0), [Span(0.0, NEVER, 0.0)]).service_s(0.0, 1.0, 1.0) == NEVER


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_who_waits_at_a_dead_link_says_so(sharing):
    with pytest.raises(DeadlockError) as caught:
        simulate(scenario("{link: 2->3, dies: 1.5 ms}", network=f"{RING}, sharing: {sharing}"))
    (wait,) = [wait for wait in caught.value.waits if wait.cause]
    assert (wait.worker, wait.waits_for, wait.cause) == (3, 2, "link 2->3 carries nothing any more")


def test_trouble_that_comes_too_late_is_said_to_change_nothing():
    calm, late = simulate(scenario()), simulate(scenario("{link: 0->1, dies: 1 s}"))
    assert late.notes[-1] == "trouble has no effect: it begins at 1 s, and the run ends at 6 ms"
    assert late.summary["makespan_s"] == calm.summary["makespan_s"]
    assert late.summary["trouble_s"] == 0.0
    assert calm.trouble is None


# -------------------------------------------------------------------------------------------------- losses


def sent_over_and_over(n_times, behaviour, custom):
    """Transfers of 1000 bytes from worker 0 to worker 1, one after another, over a link of 1 GB/s without latency."""
    schedule = custom(2, *[[(0, 1, 0)]] * n_times)
    network = TOPOLOGIES["ring"].build(2, bandwidth_Bps=1e9, latency_s=0.0)
    network = replace(network, sharing="fifo", behaviours={0: behaviour})
    return run_events(schedule, network, Workers.alike(2, sends="rendezvous"), np.array([1000]))


def test_what_is_lost_is_sent_again_after_a_timeout(custom):
    """Tries of a packet until it arrives are geometric: 1/(1-p) of them, and p/(1-p) timeouts, in the mean."""
    n, p, sent_s, timeout_s = 5000, 0.2, 1e-6, 3e-6
    trace = sent_over_and_over(n, Lossy(Constant(1e9, 0.0), p, 1000, timeout_s, 0, stream(1, "loss")), custom)
    lost = int(trace.links["lost_packets"][0])
    expected, deviation = n * p / (1 - p), (n * p) ** 0.5 / (1 - p)
    assert abs(lost - expected) < 3 * deviation
    assert trace.workers["end_s"][1] == pytest.approx((n + lost) * sent_s + lost * timeout_s)
    assert trace.links["resent_bytes"][0] == 1000 * lost
    assert trace.links["transfers"][0] == n


def test_going_back_sends_a_window_again_for_each_packet_that_is_lost(custom):
    """The efficiency of go-back-N, (1-p)/(1 - p + pW): Stallings, Data and Computer Communications, W = 2a + 1."""
    p, window, n = 0.02, 16, 200
    trace = sent_over_and_over(n, Lossy(Constant(1e9, 0.0), p, 10, None, window, stream(1, "loss")), custom)
    efficiency = n * 1000 / float(trace.links["bytes"][0])
    assert efficiency == pytest.approx((1 - p) / (1 - p + p * window), rel=0.05)
    assert trace.workers["end_s"][1] == pytest.approx(float(trace.links["bytes"][0]) / 1e9)


@pytest.mark.parametrize(
    "more",
    ["sharing: fifo", "sharing: fair", "sharing: fifo, packet: 50 kB", "sharing: fair, window: 100 kB"],
)
def test_a_link_that_loses_nothing_is_as_others_are(more):
    packet = "" if "packet" in more else "packet: 1 kB, "
    said = f"{{link: '*->*', loss: {{probability: 0, {packet}timeout: 1 ms}}}}"
    network = f"{SWITCH}, {more}"
    result = simulate(scenario(said, network=network))
    assert result.summary["makespan_s"] == pytest.approx(makespan(network=network), rel=1e-12, abs=0)
    assert (result.summary["lost_packets"], result.summary["resent_bytes"]) == (0, 0)


def test_a_transfer_is_there_when_its_last_packet_has_been_sent_again():
    """Of packets that arrive in another order none is left out; and other links lose what they lose by themselves."""
    loss = "loss: {probability: 10 %, timeout: 700 us}"
    network = "topology: ring, bandwidth: 1 GB/s, latency: 0 s, sharing: fifo, packet: 100 kB"
    one = simulate(scenario(f"{{link: 0->1, {loss}}}", network=network))
    both = simulate(scenario(f"{{link: 0->1, {loss}}}, {{link: 2->3, {loss}}}", network=network))
    lost = one.links["lost_packets"].tolist()
    assert lost[0] > 2
    assert both.links["lost_packets"][0] == lost[0]
    rows = one.transfers[one.transfers["src"] == 0]
    assert (rows["arrived_s"] - rows["started_s"]).max() > 700e-6
    assert one.path is None
    assert one.summary["sum_ok"]


# ------------------------------------------------------------------------------------------------ failover

TWO_WAYS = """topology: custom, bandwidth: 1 GB/s, latency: 0 s, switches: [a, b], cables: [
    {from: 0, to: a}, {from: a, to: 1}, {from: 0, to: b, bandwidth: 500 MB/s}, {from: b, to: 1}], sharing: """


@pytest.mark.parametrize(
    ("sharing", "dead", "again"),
    [
        ("fifo", "0->a", {}),
        ("fifo", "a->1", {"0->a": 1_000_000}),  # which it had crossed
        ("fair", "a->1", {"0->a": 1_000_000, "a->1": 1_000_000}),
        ("fifo, packet: 100 kB", "0->a", {}),
    ],
)
def test_what_stands_at_a_link_that_dies_goes_another_way(sharing, dead, again):
    """Of 1 MB, sent in 1 ms, 0.45 are over when the link dies; 0.1 ms later all of it goes at 500 MB/s."""
    rest = "collective: all-gather"
    said = f"{{link: {dead}, dies: 0.45 ms, fails_over: 0.1 ms}}"
    result = simulate(scenario(said, 2, "2 MB", TWO_WAYS + sharing, rest))
    ends_s = 2.55e-3 if "packet" not in sharing else 0.55e-3 + 6 * 0.2e-3  # four packets had come
    assert result.workers["end_s"].tolist() == [pytest.approx(1e-3), pytest.approx(ends_s, rel=1e-9, abs=0)]
    links = result.links.set_index("link")
    assert links.loc["0->b", "bytes"] == (1_000_000 if "packet" not in sharing else 600_000)
    resent = links["resent_bytes"]
    assert resent[resent > 0].to_dict() == again
    assert result.trouble["what"].tolist() == ["dead", "failing over"]
    assert result.summary["trouble"] == f"{dead} dead at 450 us"
    assert result.summary["slowest_link"] == "0->b"  # all that is left of it at 500 MB/s
    assert result.summary["makespan_s"] - result.summary["slowest_link_gain_s"] < ends_s / 1.5
    assert result.summary["sum_ok"]


def test_of_two_links_of_a_way_the_second_may_fail_first():
    said = ", ".join(
        f"{{link: {link}, dies: {at}, fails_over: 0.1 ms}}" for link, at in (("0->a", "5 ms"), ("a->1", "0.45 ms"))
    )
    result = simulate(scenario(said, 2, "2 MB", f"{TWO_WAYS}fifo", "collective: all-gather"))
    assert result.workers["end_s"][1] == pytest.approx(2.55e-3)


def test_where_there_is_no_other_path_that_is_said(ringnet, tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text(
        f"scenario_version: 1\nworkers: 2\nmessage: 1 MB\nnetwork: {{{RING}}}\n"
        "trouble: [{link: 0->1, dies: 1 ms, fails_over: 1 ms}]\n"
    )
    told = ringnet("check", file)
    assert (told.exit_code, ":5: trouble: there is no other path for what goes over 0->1" in told.stderr) == (
        2,
        True,
    )
    with pytest.raises(InputError, match="there is no other path for what goes over 0->switch"):
        simulate(scenario("{link: 0->switch, dies: 1 ms, fails_over: 1 ms}", network=SWITCH))


# ------------------------------------------------------------------------------------------------- workers


def test_the_pace_of_a_processor():
    pace = ProcessorPace.of([Span(2.0, 4.0, 0.0), Span(6.0, NEVER, 0.25)])
    assert pace.end_s(1.0, 3.0) == 6.0
    assert pace.end_s(1.0, 4.0) == 10.0
    assert pace.begin_s(10.0, 4.0) == 1.0
    assert (pace.end_s(2.0, 0.0), pace.still_s(3.0, 9.0), pace.dies_s) == (4.0, 1.0, NEVER)
    assert ProcessorPace.of([Span(3.0, NEVER, 0.0)]).end_s(1.0, 2.1) == NEVER


@pytest.mark.parametrize("sends", ["eager", "rendezvous"])
@pytest.mark.parametrize(
    ("said", "expected_s"),
    [
        # Two workers, chunks of 1 MB: sent in 1 ms, reduced in 2 ms, sent back in 1 ms.
        ("", 4e-3),
        ("{worker: 1, pause: {at: 0.2 ms, for: 0.3 ms}}", 4e-3),  # while it only waits
        ("{worker: 1, pause: {at: 0.5 ms, for: 1 ms}}", 4.5e-3),  # it would have reduced from 1 ms on
        ("{worker: 1, pause: {at: 2 ms, for: 10 ms}}", 14e-3),
        ("{worker: 1, slow: {at: 2 ms, factor: 3}}", 6e-3),  # half of the reduction at a third of the rate
        ("{worker: 1, pause: {at: 2 ms, for: 1 ms}}, {worker: 1, slow: {factor: 2}}", 7e-3),
    ],
)
def test_a_worker_in_trouble(said, expected_s, sends):
    rest = f"worker: {{sends: {sends}, reduce_rate: 500 MB/s}}"
    result = simulate(scenario(said, n=2, message="2 MB", rest=rest))
    assert result.summary["makespan_s"] == pytest.approx(expected_s, rel=1e-9, abs=0)
    if said.startswith("{worker: 1, pause") and "slow" not in said:
        span = simulate(scenario(said, n=2, message="2 MB", rest=rest)).trouble.iloc[0]
        assert result.workers["paused_s"][1] == pytest.approx(span["to_s"] - span["from_s"])
        assert result.workers["paused_s"][0] == 0.0


@pytest.mark.parametrize(
    ("said", "launched_s"),
    [
        ("{worker: 1, pause: {at: 2 ms, for: 3 ms}}", 8e-3),
        ("{worker: 1, slow: {at: 2 ms, factor: 3}}", 11e-3),
        ("{worker: 1, pause: {at: 0 s, for: 1 ms}}", 6e-3),
    ],
)
def test_a_launch_takes_what_the_processor_has_for_it(said, launched_s):
    result = simulate(scenario(said, n=2, message="2 MB", rest="worker: {launch: 5 ms}"))
    assert result.summary["makespan_s"] == pytest.approx(launched_s + 2e-3, rel=1e-9, abs=0)
    workers, paused_s = result.workers, 3e-3 * ("pause: {at: 2" in said) + 1e-3 * ("at: 0" in said)
    assert workers["overhead_s"].tolist() == pytest.approx([5e-3, launched_s - paused_s])
    parts = [workers[name][1] for name in ("moving_s", "waiting_s", "overhead_s", "reducing_s", "idle_end_s")]
    assert sum(parts) + paused_s == pytest.approx(launched_s + 2e-3)
    pieces = result.path[result.path["to_s"] > result.path["from_s"]]
    assert pieces["to_s"].tolist()[:-1] == pieces["from_s"].tolist()[1:]
    seconds = (pieces["to_s"] - pieces["from_s"]).groupby(pieces["part"]).sum().to_dict()
    expected = {"overhead": launched_s - paused_s, "waiting": paused_s, "bandwidth": 2e-3}
    assert seconds == pytest.approx({part: value for part, value in expected.items() if value})


def test_who_steps_in_launches_as_all_do():
    """Of four workers one launches late, and dies; the spare does not."""
    late = "worker: {launch: 1 ms, exceptions: {2: {launch: 40 ms}}}"
    rest = f"{late}\n    on_failure: {{policy: spare, spares: [4], detect: 1 ms}}"
    result = simulate(scenario("{worker: 2, dies: 0.5 ms}", network=f"{SWITCH}, places: 5", rest=rest))
    assert result.workers["overhead_s"].tolist() == pytest.approx([1e-3] * 4)


def test_a_wait_that_is_too_long_aborts_the_collective():
    rest = "on_failure: {policy: abort, timeout: 10 ms}"
    with pytest.raises(AbortedError) as caught:
        simulate(scenario("{worker: 2, pause: {at: 1.5 ms, for: 1 s}}", rest=rest))
    first = caught.value.waits[0]
    assert (first.worker, first.waits_for, first.since_s) == (3, 2, pytest.approx(2e-3))
    assert ", since 2 ms" in str(first)
    assert "aborted at 12 ms, after a wait of 10 ms" in str(caught.value)
    assert caught.value.exit_code == 3
    assert makespan("{worker: 2, pause: {at: 1.5 ms, for: 9 ms}}", rest=rest) == pytest.approx(14.5e-3)


def test_stepping_whole_arrays_is_refused_by_name():
    network = TOPOLOGIES["ring"].build(3, bandwidth_Bps=1e9, latency_s=1e-6)
    schedule = ALGORITHMS["ring"].build(3)
    pace = replace(Workers.alike(3), paces={1: ProcessorPace(((1.0, 0.0),))})
    patience = replace(Workers.alike(3), patience_s=1.0)
    assert why_not_exact(schedule, network, pace) == "worker 1 does not work as fast all the time"
    assert why_not_exact(schedule, network, patience) == "a wait that is too long aborts the collective"
    assert choose_engine(schedule, network, pace, np.ones(3)).name == "events"


# -------------------------------------------------------------------------------- deaths, at every moment


class Digits:
    """All-reduces in which worker i adds 16^i to each element: each digit of a sum says how often it was counted."""

    def __init__(self, name, n, sends):
        self.schedule = ALGORITHMS[name].build(n)
        self.network = TOPOLOGIES["switch"].build(n, bandwidth_Bps=1e9, latency_s=1e-6)
        self.workers = Workers.alike(n, send_overhead_s=1e-6, recv_overhead_s=5e-7, reduce_Bps=2e9, sends=sends)
        self.sizes = self.schedule.chunk_sizes(7 * n)
        self.n = n

    def payload(self):
        source = ArraySource([np.full(int(self.sizes.sum()), 16**worker) for worker in range(self.n)])
        return Payload(source, make_reduction("sum", self.n), self.n, self.sizes, self.schedule.source)

    def run(self, payload=None, paces=None):
        workers = replace(self.workers, paces=paces or {})
        return run_events(self.schedule, self.network, workers, self.sizes * 8, payload)

    def moments(self, worker):
        """When a worker does something before its end, and between."""
        rows = self.run().transfers
        own = [rows["posted_s"][rows["src"] == worker], rows["applied_s"][rows["dst"] == worker]]
        ends_s = self.run().workers["end_s"][worker]
        times_s = np.unique(np.concatenate([[0.0], *(times_s[times_s < ends_s] for times_s in own)]))
        return sorted([*times_s.tolist(), *((one + other) / 2 for one, other in pairwise(times_s.tolist()))])


def counted(payload, n, n_chunks):
    """How often each worker's data is in what each worker holds, at the most."""
    held = [payload.held(worker, chunk) for worker in range(n) for chunk in range(n_chunks)]
    values = {int(value) for array in held if array is not None for value in array}
    return max(value >> 4 * worker & 15 for value in values for worker in range(n))


@pytest.mark.parametrize("sends", ["eager", "rendezvous"])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_nothing_is_counted_twice_whenever_a_worker_dies(name, sends):
    """Every moment of death of every worker, up to five of them; some of both unless all are asked for."""
    for n in (2, 3, 4, 5):
        try:
            case = Digits(name, n, sends)
        except InputError:
            continue
        for worker in range(n) if LONG else [n - 1]:
            moments = case.moments(worker)
            for died_s in moments if LONG else moments[n::8]:
                payload, paces = case.payload(), {worker: ProcessorPace(((died_s, 0.0),))}
                with pytest.raises(DeadlockError) as caught:
                    case.run(payload, paces)
                assert (worker, died_s) in {(one.worker, one.since_s) for one in caught.value.waits if one.died}
                assert counted(payload, n, case.schedule.n_chunks) == 1


@pytest.mark.parametrize("policy", ["shrink", "spare"])
@pytest.mark.parametrize("name", SYMMETRIC if LONG else ["ring", "halving-doubling"])
def test_whenever_a_worker_dies_the_others_come_to_their_sum(name, policy):
    """A death up to the end fails the attempt; the next takes what it takes without trouble, from then on."""
    more = "load: 3 us, spares: [5]" if policy == "spare" else ""
    rest = f"""
    algorithm: {name}
    dtype: int64
    worker: {{send_overhead: 1 us, reduce_rate: 2 GB/s}}
    on_failure: {{policy: {policy}, detect: 40 us, agree: 5 us, rebuild: 2 us, {more}}}
    """
    calm = rest.partition("on_failure")[0].rstrip()
    for n in (2, 3, 4, 5) if LONG else (4,):
        network = f"{SWITCH}, places: 6"
        whole = simulate(scenario(n=n, message=f"{56 * n} B", network=network, rest=calm))
        left = n if policy == "spare" else n - 1
        again_s = makespan(n=left, message=f"{56 * n} B", network=network, rest=calm)
        for worker in range(n) if LONG else [1]:
            ends_s = float(whole.workers["end_s"][worker])
            for died_s in np.linspace(0.0, ends_s * 0.999, 40 if LONG else 6).tolist():
                said = f"{{worker: {worker}, dies: {died_s!r} s}}"
                result = simulate(scenario(said, n, f"{56 * n} B", network, rest))
                begun_s = died_s + 47e-6 + (3e-6 if policy == "spare" else 0.0)
                assert result.summary["makespan_s"] == pytest.approx(begun_s + again_s, rel=1e-9, abs=0)
                assert result.summary["sum_ok"]
                assert result.summary["verified_elements"] == left * 7 * n
                assert result.summary["survivors"] == (None if policy == "spare" else left)


def test_two_deaths_one_after_the_other():
    """Worker 0 dies while the others start again: they start once more, without it."""
    said = "{worker: 2, dies: 1 ms}, {worker: 0, dies: 13 ms}"
    rest = "on_failure: {policy: shrink, detect: 10 ms, agree: 1 ms}"
    result = simulate(scenario(said, network=SWITCH, rest=rest))
    assert result.summary["on_failure"] == "worker 2 left out, worker 0 left out; started again at 24 ms"
    alone_s = makespan(n=2, network=SWITCH)
    assert result.summary["makespan_s"] == pytest.approx(24e-3 + alone_s, rel=1e-9, abs=0)
    assert result.workers["place"].tolist() == ["1", "3"]
    assert result.trouble["what"].tolist().count("agreed") == 2


def test_the_survivors_sum_is_that_of_their_own_data():
    """Weights, too: those of the survivors add up to one."""
    rest = """
    data: ramp
    reduce: mean
    weights: [1, 2, 3]
    on_failure: {policy: shrink, detect: 1 ms}
    """
    result = simulate(scenario("{worker: 1, dies: 1 us}", 3, "16 B", SWITCH, rest))
    assert result.outputs()[0].tolist() == [(one + 3 * 100 * one) / 4 for one in (1, 2, 3, 4)]


def test_who_has_ended_before_it_dies_is_not_missed():
    rest = "on_failure: {policy: shrink, detect: 1 ms}"
    result = simulate(scenario("{worker: 1, dies: 1 s}", network=SWITCH, rest=rest))
    assert "on_failure" not in result.summary
    assert result.summary["trouble_s"] == 0.0


def test_without_a_spare_left_the_run_ends():
    said = "{worker: 1, dies: 1 ms}, {worker: 2, dies: 1 ms}"
    rest = "on_failure: {policy: spare, spares: [4], detect: 1 ms}"
    with pytest.raises(DeadlockError):
        simulate(scenario(said, network=f"{SWITCH}, places: 5", rest=rest))


# ------------------------------------------------------------------------------------------------ mistakes

SHRINK = "on_failure: {policy: shrink}"


@pytest.mark.parametrize(
    ("said", "rest", "path", "words"),
    [
        ("{worker: 4, dies: 1 ms}", "", "trouble[0].worker", "there is no worker 4 among 4 workers"),
        ("{link: 0->2, dies: 1 ms}", "", "trouble[0].link", "has no such link"),
        ("{link: 9->*, dies: 1 ms}", "", "trouble[0].link", "has no such link"),
        ("{dies: 1 ms}", "", "trouble[0]", "one link or one worker"),
        ("{link: 0->1, worker: 1, dies: 1 ms}", "", "trouble[0]", "one link or one worker"),
        ("{link: 0->1}", "", "trouble[0]", "here 0"),
        ("{worker: 0}", "jobs: [{workers: [2, 3], message: 1 KiB}]", "trouble[0]", "here 0"),
        ("{worker: 1, dies: 1 ms, pause: {at: 1 ms, for: 1 ms}}", "", "trouble[0]", "here 2"),
        ("{link: 0->1, pause: {at: 1 ms, for: 1 ms}}", "", "trouble[0].pause", "a link has no such trouble"),
        ("{worker: 1, down: {at: 1 ms, for: 1 ms}}", "", "trouble[0].down", "a worker has no such trouble"),
        ("{worker: 1, dies: -1 ms}", "", "trouble[0].dies", ""),
        ("{worker: 1, dies: 1}", "", "trouble[0].dies", "unit"),
        ("{link: 0->1, down: {at: 1 ms, for: 0 s}}", "", "trouble[0].down.for", "no time at all"),
        ("{link: 0->1, down: {at: 1 ms}}", "", "trouble[0].down.for", "missing"),
        (
            "{link: 0->1, flap: {at: 0 s, down: 2 ms, period: 1 ms, times: 3}}",
            "",
            "trouble[0].flap.period",
            "before it is up",
        ),
        (
            "{link: 0->1, flap: {at: 0 s, down: 2 ms, period: 3 ms, times: 0}}",
            "",
            "trouble[0].flap.times",
            "",
        ),
        (
            "{link: 0->1, loss: {probability: 2, packet: 1 kB, timeout: 1 ms}}",
            "",
            "trouble[0].loss.probability",
            "zero to",
        ),
        (
            "{link: 0->1, loss: {probability: 100 %, packet: 1 kB, timeout: 1 ms}}",
            "",
            "trouble[0].loss.probability",
            "ever",
        ),
        ("{link: 0->1, loss: {probability: 1 %, packet: 1 kB}}", "", "trouble[0].loss", "sent again"),
        (
            "{link: 0->1, loss: {probability: 1 %, packet: 1 kB, timeout: 1 s, go_back: 2}}",
            "",
            "trouble[0].loss",
            "again",
        ),
        (
            "{link: 0->1, loss: {probability: 1 %, timeout: 1 ms}}",
            "",
            "trouble[0].loss",
            "how large are they",
        ),
        (
            "{link: 0->1, loss: {probability: 1 %, packet: 0 B, timeout: 1 ms}}",
            "",
            "trouble[0].loss.packet",
            "has bytes",
        ),
        (
            "{link: 0->1, loss: {probability: 1 %, packet: 1 kB, go_back: 1}}, "
            "{link: 0->*, loss: {probability: 1 %, packet: 1 kB, go_back: 1}}",
            "",
            "trouble[1].loss",
            "trouble[0] says it of link 0->1 already",
        ),
        ("{worker: 1, dies: 1 ms, fails_over: 1 ms}", "", "trouble[0].fails_over", "never read"),
        ("{link: 0->1, slow: {factor: 2}, fails_over: 1 ms}", "", "trouble[0].fails_over", "never read"),
        ("{worker: 1, slow: {factor: 0.5}}", "", "trouble[0].slow.factor", "from 1 to 1e+06"),
        ("{worker: 1, dies: 1 ms}", "on_failure: {policy: shrnk}", "on_failure.policy", "no such policy"),
        ("{worker: 1, dies: 1 ms}", "on_failure: {policy: abort}", "on_failure", "longest wait"),
        ("{worker: 1, dies: 1 ms}", "on_failure: {policy: spare}", "on_failure", "no worker stands by"),
        (
            "{worker: 1, dies: 1 ms}",
            "on_failure: {policy: spare, spares: [2]}",
            "on_failure.spares[0]",
            "a worker's already",
        ),
        (
            "{worker: 1, dies: 1 ms}",
            "on_failure: {policy: spare, spares: [7]}",
            "on_failure.spares[0]",
            "the network has 4 places",
        ),
        (
            "{worker: 1, dies: 1 ms}",
            "on_failure: {policy: wait, detect: 1 s}",
            "on_failure.detect",
            "never read",
        ),
        ("{link: 0->1, dies: 1 ms}", SHRINK, "on_failure.policy", "no worker dies"),
        ("{worker: 1, dies: 1 ms}", SHRINK, "on_failure.policy", "no way past a worker that has died"),
        (
            "{worker: 1, dies: {mean: -1 s, distribution: exponential}}",
            "",
            "trouble[0].dies.mean",
            "negative",
        ),
        ("{worker: 1, dies: {mean: 1 s}}", "", "trouble[0].dies.distribution", "the key is missing"),
        (
            "{worker: 1, dies: {mean: 1 s, distribution: gamma}}",
            "",
            "trouble[0].dies.cv",
            "gamma needs mean and cv",
        ),
        (
            "{worker: 1, dies: {mean: 1 s, distribution: exponential, per: transfer}}",
            "",
            "trouble[0].dies.per",
            "trouble with a worker has no draw for each transfer",
        ),
        ("{worker: 1, probability: 2, dies: 1 s}", "", "trouble[0].probability", "from zero to one"),
        ("{worker: 1, probability: 0, dies: 1 s}", "", "trouble[0].probability", "never happens"),
        (
            "{link: 0->1, probability: 5 %, loss: {probability: 1 %, packet: 1 kB, timeout: 1 ms}}",
            "",
            "trouble[0].probability",
            "a probability of its own",
        ),
        ("{link: 0->1, flap: {at: 0 s, down: 1 ms, times: 2}}", "", "trouble[0].flap", "in between"),
        (
            "{link: 0->1, flap: {at: 0 s, down: 1 ms, up: 1 ms, period: 3 ms, times: 2}}",
            "",
            "trouble[0].flap",
            "in between",
        ),
        (
            "{link: 0->1, flap: {at: 0 s, down: {mean: 1 ms, distribution: exponential}, period: 3 ms, times: 2}}",
            "",
            "trouble[0].flap.period",
            "has no period",
        ),
        (
            ", ".join(f"{{worker: {w}, dies: 1 ms}}" for w in range(4)),
            SHRINK,
            "on_failure.policy",
            "nobody is left",
        ),
        (
            "{worker: 1, dies: 1 ms}",
            f"collective: all-gather\n    {SHRINK}",
            "on_failure.policy",
            "all-reduce",
        ),
        (
            "{worker: 1, dies: 1 ms}",
            f"jobs: [{{workers: 2, message: 1 MB}}]\n    {SHRINK}",
            "on_failure.policy",
            "here is more: jobs",
        ),
        (
            "{worker: 1, dies: 1 ms}",
            f"algorithm: {{name: hierarchical, node_size: 2}}\n    {SHRINK}",
            "on_failure.policy",
            "with 3 workers left",
        ),
    ],
)
def test_mistakes_are_told_with_their_place(said, rest, path, words):
    network = SWITCH if "jobs" in rest else RING
    with pytest.raises(InputError) as caught:
        scenario(said, rest=rest, network=network)
    assert [fault.path for fault in caught.value.faults] == [path]
    assert words in caught.value.faults[0].message


def test_a_step_knows_no_worker_in_trouble():
    text = f"""
scenario_version: 1
workers: 4
network: {{{RING}}}
step: {{model: gpt2-small, rate: 1 TFLOP/s}}
trouble: [{{worker: 1, pause: {{at: 1 ms, for: 1 ms}}}}]
"""
    with pytest.raises(InputError, match=r"6: trouble\[0\].worker: a training step knows trouble of links") as caught:
        loads(text)
    assert len(caught.value.faults) == 1
    loads(text.replace("worker: 1, pause", "link: 0->1, down"))


# --------------------------------------------------------------------------------------------------- by chance

EXPONENTIAL = "{mean: 1 ms, distribution: exponential}"


def times_s(said, n_runs, *given, **more):
    return times_of_runs(scenario(said, *given, **more), range(n_runs))


def test_a_while_that_is_drawn_is_as_it_was_said_to_be():
    """A link that is always busy and down for a while makes 6 ms longer by just that while."""
    lost_s = times_s(f"{{link: 0->1, down: {{at: 1.5 ms, for: {EXPONENTIAL}}}}}", 150) - 6e-3
    assert kstest(lost_s, "expon", (0, 1e-3)).pvalue > 0.01
    flaps = f"{{link: 0->1, flap: {{at: 0 s, down: {EXPONENTIAL}, up: 1 ms, times: 6}}}}"
    assert kstest(times_s(flaps, 100) - 6e-3, "gamma", (6, 0, 1e-3)).pvalue > 0.01  # the sum of six


def test_what_goes_wrong_with_a_probability_does_so_that_often_and_for_each_link_by_itself():
    some = times_s("{link: 0->1, probability: 30 %, down: {at: 1 ms, for: 1 s}}", 200) > 1
    assert 40 <= some.sum() <= 80
    beside = "{link: 2->3, probability: 30 %, down: {at: 1 ms, for: 1 us}}, "
    pair = times_s(beside + "{link: 0->1, probability: 30 %, down: {at: 1 ms, for: 1 s}}", 200) > 1
    assert (some == pair).all()  # trouble of another link moves none of its numbers


def test_links_alike_draw_for_themselves_or_for_the_run():
    def begins_s(per):
        drawn = f"{{mean: 1 ms, distribution: exponential{per}}}"
        whiles = in_run(build(scenario(f"{{link: '*->*', dies: {drawn}}}"), None).network, 3).behaviours
        return {one.changes[0][0] for one in whiles.values()}

    assert (len(begins_s("")), len(begins_s(", per: link")), len(begins_s(", per: run"))) == (4, 4, 1)
    assert begins_s("") == begins_s(", per: link")
    twice = ", ".join([f"{{link: 0->1, down: {{at: {EXPONENTIAL}, for: 1 ns}}}}"] * 2)
    assert len(in_run(build(scenario(twice), None).network, 0).behaviours[0].changes) == 4


def test_a_link_that_loses_a_little_more_does_so_under_the_same_luck():
    def lossy(probability):
        return f"{{link: 0->1, loss: {{probability: {probability}, packet: 10 kB, timeout: 1 ms}}}}"

    today, then, others = (
        times_s(lossy(p), 60, rest=f"seed: {seed}") for p, seed in ((0.05, 1), (0.055, 1), (0.05, 2))
    )
    assert np.var(then - today) < np.var(others - today) / 3


def test_deaths_by_chance_are_survived_as_often_as_they_come():
    """Of the 6 ms a worker that dies at random sees all with a probability of exp(-6 / 10)."""
    dies = "{worker: 3, dies: {mean: 10 ms, distribution: exponential}}"
    rest = "on_failure: {policy: shrink, detect: 1 s}\n    worker: {start: {mean: 1 us, distribution: exponential}}"
    found_s = times_s(dies, 200, network=SWITCH, rest=rest)
    assert 0.45 <= (found_s < 0.1).mean() <= 0.65
    assert (found_s[found_s > 0.1] > 1 + 4 * 4e-3 / 3).all()  # three are left, and start again
    result = simulate_all(scenario(dies, network=SWITCH, rest=f"{rest}\n    repeat: 20"))
    assert (result.summary["n_runs"], result.summary["sum_ok"]) == (20, True)
    assert "trouble for each worker" in result.summary["drawn"]


def test_of_repeated_runs_the_one_that_never_ends_is_named():
    with pytest.raises(DeadlockError, match=r"of all runs, in run \d+: the run cannot finish: 1 died"):
        simulate_all(scenario("{worker: 3, probability: 10 %, dies: 1 ms}", rest="repeat: 100"))


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@pytest.mark.parametrize("per", ["transfer", "link"])
def test_links_that_draw_are_late_by_as_long_as_all_of_them_are_down(sharing, per):
    network = RING.replace("0 s", f"{{mean: 90 us, distribution: exponential, per: {per}}}, sharing: {sharing}")
    down = "{link: '*->*', down: {at: 0 s, for: 1 s}}"
    if (sharing, per) == ("fair", "transfer"):
        with pytest.raises(InputError, match="drawn for each transfer over a link in trouble"):
            times_s(down, 1, network=network)
        return
    late_s = times_s(down, 8, network=network) - times_s("", 8, network=network)
    # Under fair sharing the first latencies pass while the links are down.
    assert late_s == (pytest.approx(1) if sharing == "fifo" else pytest.approx(0.9995, abs=5e-4))
    assert (late_s < 1).all() or sharing == "fifo"


@pytest.mark.parametrize(
    ("said", "latency", "rest", "words"),
    [
        (
            "{worker: 1, dies: 1 ms}",
            "0 s",
            "worker: {noise: {every: 1 ms, for: 10 us}}",
            "cannot be in trouble",
        ),
        (
            "{link: 0->1, dies: 1 ms, fails_over: 1 us}",
            "{mean: 5 us, distribution: exponential}",
            "",
            "what is sent again has no draws of its own",
        ),
    ],
)
def test_some_of_what_is_drawn_cannot_be_in_trouble(said, latency, rest, words):
    with pytest.raises(InputError, match=words):
        scenario(said, network=RING.replace("0 s", latency), rest=rest)


def test_measured_links_cannot_be_in_trouble():
    network = f"{RING}, regimes: [{{up_to: 1 KiB, bandwidth: 1 GB/s, latency: 1 us}}]"
    with pytest.raises(InputError, match="links with regimes"):
        scenario("{link: 0->1, dies: 1 ms}", network=network)


# -------------------------------------------------------------------------------------------------- random


@pytest.mark.parametrize("part", range(4))
def test_random_scenarios_end_and_agree(part):
    """Eight each; ``python -m tests.trouble --scenarios 2000`` runs as many as are asked for."""
    n_run, seed = 0, 10_000 * part
    while n_run < 8:
        one = trouble.scenario(Random(seed))
        if one is not None:
            trouble.ends(one)
            n_run += 1
        seed += 1
