"""Queues: who waits for which link and when, in the tables and in the picture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringnet
from ringnet.analysis import frames
from ringnet.analysis.critical_path import critical_path
from ringnet.analysis.frames import MOST_CHANGES, MOST_LINKS, N_SPANS, as_frame, queue_table
from ringnet.engines.events.fair import LinkUse
from ringnet.engines.tolerances import ROUNDING
from ringnet.engines.trace import LinkWaits, beyond_the_first
from ringnet.networks import LinkChange, make_network
from ringnet.reporting.plots import PLOTS, choose
from ringnet.reporting.plots.traffic import _by_owner
from ringnet.reporting.storage import read_results

pytestmark = pytest.mark.usefixtures("sketched")  # what figures look like is tested elsewhere

#: Two workers behind a trunk that carries 100 B/s, and one at its other end.
WIRES = {"a": (400.0, 0.0), "b": (400.0, 0.0), "trunk": (100.0, 0.0)}
ROUTES = {(0, 2): ["a", "trunk"], (1, 2): ["b", "trunk"]}


@pytest.fixture
def trunk(case, custom, wired):
    def run(sharing, sizes):
        network = replace(wired(WIRES, ROUTES, 3), sharing=sharing)
        return case(3, sizes, schedule=custom(3, [(0, 2, 0), (1, 2, 1)])).but(network=network).run()

    return run


def rows(waits):
    return list(zip(waits["link"].tolist(), waits["from_s"].tolist(), waits["to_s"].tolist(), strict=True))


def test_one_after_the_other_the_second_waits(trunk):
    trace = trunk("fifo", [200, 400])
    assert rows(trace.waits) == [(2, 0.0, 2.0)]
    assert trace.links["queued_s"].tolist() == [0.0, 0.0, 2.0]


def test_together_both_take_longer_than_alone(trunk):
    # 50 B/s each until the smaller has ended at 4 s, alone after 2 s; the other at 6 s, alone after 4.
    trace = trunk("fair", [200, 400])
    assert trace.transfers["arrived_s"].tolist() == [4.0, 6.0]
    assert trace.links["queued_s"].tolist() == [0.0, 0.0, 4.0]
    assert trace.links["longest_queue"].tolist() == [0, 0, 1]
    # The first one to come does not wait; of two that come together the first to end counts as that.
    assert rows(trace.waits) == [(2, 0.0, 4.0)]


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@pytest.mark.parametrize("engine", ["events", "compiled"])
@given(sizes=st.lists(st.lists(st.integers(1, 1000), min_size=1, max_size=4), min_size=2, max_size=4))
def test_queueing_behind_others_is_what_goes_without_them(engine, sharing, sizes, case, custom, wired):
    """Many send some transfers each over one trunk: simulated again, whoever ends last is alone there."""
    there = len(sizes)
    wires = {**{f"{one}": (1e12, 0.0) for one in range(there)}, "trunk": (100.0, 0.0)}
    routes = {(one, there): [f"{one}", "trunk"] for one in range(there)}
    network = replace(wired(wires, routes, there + 1), sharing=sharing)
    each = [(sender, size) for sender, its in enumerate(sizes) for size in its]

    def run(sent):
        rows = [(sender, there, chunk) for chunk, (sender, _) in enumerate(sent)]
        one = case(there + 1, [size for _, size in sent], schedule=custom(there + 1, rows))
        one = one.but(network=network)
        return one, one.run(engine=engine)

    one, trace = run(each)
    ends = trace.workers["end_s"][there]
    # Of those that end together the path is that of the last.
    last = trace.transfers["src"][len(each) - 1 - trace.transfers["arrived_s"][::-1].argmax()]
    _, alone = run([sent for sent in each if sent[0] == last])
    queueing_s, own_s = (trace.workers[name][there] for name in ("path_queueing_s", "own_queueing_s"))
    assert queueing_s - own_s == pytest.approx(ends - alone.workers["end_s"][there], abs=1e-7)
    if sharing == "fair":
        path = critical_path(one.schedule, one.network, one.workers, one.chunk_bytes, trace)
        assert path.part_s("queueing") == pytest.approx(queueing_s - own_s, abs=1e-7)


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
@given(st.data())
def test_on_any_network_it_is_told_whose_transfers_were_before(sharing, case, custom, data):
    """Who is alone waits for its own only, if one after the other; who sends once for others only; as engines agree."""
    n_workers = data.draw(st.integers(3, 6))
    shapes = {
        "switch": {},
        "fully-connected": {},
        "leaf-spine": {"leaves": 2},
        "torus": {"sides": [n_workers, 1]},
    }
    topology = data.draw(st.sampled_from([*shapes]))
    network = make_network(topology, n_workers, 1e9, 1e-6, **shapes[topology])
    drawn = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    bandwidth_Bps = 10 ** drawn.uniform(8, 10, network.n_links)
    network = replace(network, sharing=sharing, bandwidth_Bps=bandwidth_Bps)
    ends = [drawn.permutation(n_workers)[:2].tolist() for _ in range(3 * n_workers)]
    once = {src: (src, dst) for src, dst in ends}
    for sent in (ends, [pair for pair in ends if pair[0] == ends[0][0]], [*once.values()]):
        schedule = custom(n_workers, [(src, dst, chunk) for chunk, (src, dst) in enumerate(sent)])
        one = case(n_workers, drawn.integers(1, 10**6, len(sent)), schedule=schedule).but(network=network)
        told = [one.run(engine=engine).workers for engine in ("events", "compiled")]
        queueing_s, own_s = (told[0][name] for name in ("path_queueing_s", "own_queueing_s"))
        assert all(np.array_equal(own_s, other["own_queueing_s"]) for other in told)
        assert ((own_s >= 0) & (own_s <= queueing_s)).all()
        senders = {src for src, _ in sent}
        if len(senders) == 1:
            assert own_s == pytest.approx(queueing_s, rel=1e-9, abs=1e-15)
        elif len(senders) == len(sent):
            assert own_s.max() <= ROUNDING * told[0]["end_s"].max()  # what rounding makes is behind nobody else


@given(st.data())
def test_what_a_flow_loses_to_others_it_does_not_lose_without_them(case, custom, data):
    """Simulated again with the flows of one sender alone, which meet on several links of a torus or a leaf-spine."""
    topology, shape = data.draw(st.sampled_from([("torus", {"sides": [3, 2]}), ("leaf-spine", {"leaves": 2})]))
    drawn = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    network = make_network(topology, 6, 1e9, 1e-6, **shape)
    network = replace(network, sharing="fair", bandwidth_Bps=10 ** drawn.uniform(8, 10, network.n_links))
    ends = [drawn.permutation(6)[:2].tolist() for _ in range(18)]
    sizes = drawn.integers(1, 10**6, len(ends))

    def run(chosen, engine):
        schedule = custom(6, [(*ends[row], chunk) for chunk, row in enumerate(chosen)])
        return case(6, sizes[chosen], schedule=schedule).but(network=network).run(engine=engine)

    both = [run([*range(len(ends))], engine) for engine in ("events", "compiled")]
    for sender in {src for src, _ in ends}:
        its = [row for row, (src, _) in enumerate(ends) if src == sender]
        alone_s = run(its, "compiled").transfers["arrived_s"]
        for trace in both:
            to_others_s = trace.services["others_s"][np.argsort(trace.services["transfer"])][its]
            later_s = trace.transfers["arrived_s"][its] - alone_s
            assert to_others_s == pytest.approx(np.maximum(later_s, 0.0), abs=1e-12 + 1e-9 * alone_s.max())


@pytest.mark.parametrize("engine", ["events", "compiled"])
def test_for_the_makespan_alone_nobody_looks_at_senders_alone(engine, case, custom, wired):
    """Times are the same to the last bit, and what is not known is no number."""
    network = replace(wired(WIRES, ROUTES, 3), sharing="fair")
    schedule = custom(3, [(0, 2, 0), (0, 2, 1), (1, 2, 2)])
    one = case(3, [300, 300, 100], schedule=schedule).but(network=network)
    told, bare = (one.run(engine=engine, keep_transfers=keep) for keep in (0, None))
    assert bare.counts == told.counts
    for name in ("end_s", "path_queueing_s"):
        assert np.array_equal(bare.workers[name], told.workers[name])
    assert 0 < told.workers["own_queueing_s"][2] < told.workers["path_queueing_s"][2]
    assert np.isnan(bare.workers["own_queueing_s"][2])


@pytest.mark.parametrize("engine", ["events", "compiled"])
def test_of_ones_own_that_others_made_slow_others_are_to_blame(engine, case, custom, wired):
    """Worker 0 sends one by one as it is given; alone each would be through before the next comes."""
    wires = WIRES | {"b": (4000.0, 0.0), "c": (100.0, 0.0)}
    routes = {**ROUTES, (3, 0): ["c"]}
    network = replace(wired(wires, routes, 4), sharing="fair")
    rows = [(3, 0, 0), (1, 2, 2)], [(0, 2, 0), (3, 0, 1)], [(0, 2, 1)]
    one = case(4, [100, 200, 300], schedule=custom(4, *rows)).but(network=network)
    alone = case(4, [100, 200], schedule=custom(4, *[[row for row in step if row[0] != 1] for step in rows]))
    # What worker 3 sends stands in each other's way on its own link, with and without the others.
    found = [run.but(network=network).run(engine=engine).workers for run in (one, alone)]
    ends_s, queueing_s, own_s = zip(
        *([float(workers[name][2]) for name in ("end_s", "path_queueing_s", "own_queueing_s")] for workers in found),
        strict=True,
    )
    assert ends_s == pytest.approx((6.0, 5.0))
    assert queueing_s == pytest.approx((2.0, 1.0))
    assert own_s == pytest.approx((1.0, 1.0))


def test_of_two_links_as_full_the_one_with_ones_own_holds_one_back(case, custom, wired):
    """Were the others not on the trunk, the two from worker 0 would still fill their own link."""
    wires = {"a": (50.0, 0.0), "b": (50.0, 0.0), "trunk": (100.0, 0.0)}
    network = replace(wired(wires, ROUTES, 3), sharing="fair")
    schedule = custom(3, [(0, 2, 0), (0, 2, 1), (1, 2, 2), (1, 2, 3)])
    trace = case(3, 100, schedule=schedule).but(network=network).run()
    found = [trace.workers[name][2] for name in ("path_bandwidth_s", "path_queueing_s", "own_queueing_s")]
    assert found == [2.0, 2.0, 2.0]


def test_a_link_that_holds_nobody_back_has_no_wait(case, custom, wired):
    """Two flows on a wide link that others keep narrow: nobody waits for the wide one."""
    wires = {"a": (100.0, 0.0), "b": (100.0, 0.0), "trunk": (400.0, 0.0)}
    network = replace(wired(wires, ROUTES, 3), sharing="fair")
    trace = case(3, 200, schedule=custom(3, [(0, 2, 0), (1, 2, 1)])).but(network=network).run()
    assert trace.links["queued_s"].tolist() == [0.0, 0.0, 0.0]
    assert trace.links["longest_queue"].tolist() == [0, 0, 1]


def test_time_lost_to_sharing_is_that_of_the_flows(tmp_path):
    """What links are said to cost adds up to what all transfers took longer than alone."""
    network = "topology: leaf-spine, leaves: 2, oversubscription: 4, link: 100gbe, placement: interleaved"
    text = f"scenario_version: 1\nworkers: 6\nmessage: 6 MiB\npayload: none\nnetwork: {{{network}}}\n"
    (tmp_path / "a.yaml").write_text(text)
    result = ringnet.simulate(ringnet.load(tmp_path / "a.yaml"))
    moved = result.transfers
    took_s = (moved["arrived_s"] - moved["started_s"]).sum()
    uplink_Bps = result.links["bandwidth_Bps"].min()  # which all of them cross
    alone_s = (moved["bytes"] / uplink_Bps).sum()
    assert result.links["queued_s"].sum() == pytest.approx(took_s - alone_s, rel=1e-9, abs=0)


def test_both_engines_say_who_waited(case):
    slow = case(3, latency_s=0.0, links={"0->1": LinkChange(25.0)})
    events, recurrence = (slow.run(engine=engine).waits for engine in ("events", "recurrence"))
    assert sorted(rows(events)) == sorted(rows(recurrence)) == [(0, 1.0, 4.0), (0, 2.0, 8.0), (0, 6.0, 12.0)]


def test_too_many_waits_are_none():
    delays = LinkWaits(most=2)
    for number in range(3):
        delays.add(0, 0, number, number + 1.0)
    assert delays.columns() is None
    delays = LinkWaits(most=2)
    delays.add_rows(np.zeros(3, dtype=np.int64), np.zeros(3), np.ones(3))
    assert delays.columns() is None


TREE = """
scenario_version: 1
workers: 8
message: 32 MiB
payload: none
network:
  topology: nodes
  workers_per_host: 4
  nics: 2
  inside: {shape: switch, link: pcie4-x16}
  between: {topology: fat-tree, k: 4}
  link: infiniband-hdr
"""


@pytest.mark.parametrize("engine", ["events", "recurrence"])
def test_what_rounding_tears_apart_is_no_queue(tmp_path, engine):
    """Heads come as the links behind the first full one become free, but for the last digit of the time."""
    (tmp_path / "tree.yaml").write_text(f"{TREE}engine: {engine}\n")
    result = ringnet.simulate(ringnet.load(tmp_path / "tree.yaml"))
    links = result.links.set_index("link")
    real = {"h0/nic1->edge0", "h1/nic1->edge1"}
    assert {*links.index[links["queued_s"] > 0]} == real
    assert {*links.index[links["longest_queue"] > 0]} == real
    assert {*result.queues["link"]} == real


@pytest.mark.parametrize("sharing", ["fifo", "fair"])
def test_only_links_that_cost_time_are_drawn(tmp_path, sharing):
    (tmp_path / "tree.yaml").write_text(f"{TREE}  sharing: {sharing}\n")
    ringnet.run(tmp_path / "tree.yaml", out=tmp_path / "out")
    results = read_results(tmp_path / "out")
    titles = [ax.get_title(loc="left") for ax in PLOTS["queues"].draw(results).axes]
    costly = results.links.loc[results.links["queued_s"] > 0, "link"]
    assert "h0/nic1->edge0" in titles
    assert {*titles} <= {*costly}


def test_flows_that_overlap_by_rounding_are_no_queue():
    waits = {"link": np.zeros(2, dtype=np.int64), "owner": np.zeros(2, dtype=np.int64)}
    waits |= {"from_s": np.array([0.0, 1.0]), "to_s": np.array([1.0 + 4e-16, 2.0])}
    assert len(beyond_the_first(waits)["link"]) == 0
    use = LinkUse()
    for n_flows, now_s in ((1, 0.0), (2, 1.0), (1, 1.0 + 4e-16), (0, 2.0)):
        use.now_has(n_flows, now_s)
    assert (use.longest, use.occupied_s) == (0, 2.0)


# ---------------------------------------------------------------------------------------------------- table


def waits(link, from_s, to_s, owner=None):
    owner = np.zeros(len(link), dtype=np.int64) if owner is None else np.array(owner)
    times = {"from_s": np.array(from_s, dtype=float), "to_s": np.array(to_s, dtype=float)}
    return {"link": np.array(link), "owner": owner, **times}


def queue_frame(*shape):
    return as_frame(queue_table(*shape))


def test_links_with_most_queueing_come_first():
    frame = queue_frame(waits([0, 1, 1], [0, 0, 1], [1, 4, 2]), ["a", "b"], ["mine"])
    assert frame["link"].tolist() == ["b"] * 4 + ["a"] * 2
    assert frame["time_s"].tolist() == [0.0, 1.0, 2.0, 4.0, 0.0, 1.0]
    assert frame["waiting"].tolist() == [1.0, 2.0, 1.0, 0.0, 1.0, 0.0]
    assert list(frame.columns) == ["link", "time_s", "waiting"]


def test_one_that_follows_another_at_once_is_no_change():
    frame = queue_frame(waits([0, 0], [0, 1], [1, 2]), ["a"], ["mine"])
    assert frame["time_s"].tolist() == [0.0, 2.0]


def test_where_one_takes_the_place_of_another_owner_that_is_a_change():
    frame = queue_frame(waits([0, 0], [0, 1], [1, 2], [0, 1]), ["a"], ["mine", "other"])
    assert frame["waiting of mine"].tolist() == [1.0, 0.0, 0.0]
    assert frame["waiting of other"].tolist() == [0.0, 1.0, 0.0]


def test_few_links_are_kept():
    many = MOST_LINKS + 5
    frame = queue_frame(waits(range(many), [0] * many, range(1, many + 1)), [str(one) for one in range(many)], ["m"])
    assert list(dict.fromkeys(frame["link"])) == [str(one) for one in range(many - 1, 4, -1)]


def test_many_changes_become_means_that_keep_the_time_waited():
    rng = np.random.default_rng(1)
    from_s = rng.uniform(0, 100, MOST_CHANGES)
    to_s = from_s + rng.uniform(0, 3, MOST_CHANGES)
    frame = queue_frame(waits([0] * MOST_CHANGES, from_s, to_s), ["a"], ["mine"])
    assert len(frame) == N_SPANS + 1
    area = (frame["time_s"].diff().shift(-1) * frame["waiting"]).sum()
    assert area == pytest.approx((to_s - from_s).sum(), rel=1e-9, abs=0)
    assert frame["waiting"].iloc[-1] == pytest.approx(0.0)


def test_nothing_that_waits_has_no_table():
    assert queue_table(waits([], [], []), ["a"], ["mine"]) is None


# ------------------------------------------------------------------------------------------------- scenarios

CROWD = """
scenario_version: 1
name: crowd
workers: 4
message: 4 MiB
payload: none
network: {topology: switch, link: 100gbe, places: 6, sharing: SHARING}
jobs: [{name: second, workers: [4, 5], message: 1 MiB, start: 50 us}]
background:
- {name: storage, from: 4, to: 1, burst: 1 MiB, rate: 6 GB/s}
- {name: backup, from: 4, to: 2, burst: 1 MiB}
"""


@pytest.fixture(params=["fifo", "fair"])
def crowd(request, tmp_path):
    (tmp_path / "crowd.yaml").write_text(CROWD.replace("SHARING", request.param))
    return tmp_path / "crowd.yaml"


def test_jobs_and_traffic_are_told_apart(crowd):
    """Two kinds of traffic over one first link, both from the start, are served in the order of the scenario."""
    result = ringnet.simulate(ringnet.load(crowd))
    owners = [name.removeprefix("waiting of ") for name in result.queues.columns[3:]]
    assert owners == ["crowd", "second", "storage", "backup"]
    shares = result.queues[[f"waiting of {owner}" for owner in owners]]
    assert shares.sum(axis=1).tolist() == result.queues["waiting"].tolist()
    assert (shares.max() > 0)[["waiting of crowd", "waiting of backup"]].all()
    assert result.queues["waiting"].max() == result.links["longest_queue"].max()


def test_what_was_behind_ones_own_is_known_beside_other_jobs_too(crowd):
    """Of flows that share fairly a worker has one at a time here: all that it loses it loses to others."""
    result = ringnet.simulate(ringnet.load(crowd))
    queueing_s, own_s = (result.workers[name] for name in ("path_queueing_s", "own_queueing_s"))
    assert (queueing_s > 0).any()
    most = 1e-9 if result.summary["sharing"] == "fair" else 1.0
    assert ((own_s >= 0) & (own_s <= most * queueing_s)).all()


def test_what_was_behind_ones_own_is_empty_where_it_is_sent_again(crowd):
    text = crowd.read_text().partition("jobs:")[0]
    crowd.write_text(f"{text}trouble: [{{link: '0->*', loss: {{probability: 10 %, packet: 4 KiB, timeout: 9 us}}}}]\n")
    workers = ringnet.simulate(ringnet.load(crowd)).workers
    assert (workers["path_queueing_s"] > 0).any()
    assert (workers["own_queueing_s"].isna() == (workers["path_queueing_s"] > 0)).all()


def test_the_mean_wait_is_that_of_a_transfer(crowd):
    links = ringnet.simulate(ringnet.load(crowd)).links
    used = links["transfers"] > 0
    assert (links["mean_wait_s"] * links["transfers"])[used].tolist() == pytest.approx(links["queued_s"][used].tolist())
    assert links["mean_wait_s"][~used].isna().all()
    assert links["mean_wait_s"].max() > 0
    assert links["mean_wait_s"][used].notna().all()


def test_one_transfer_has_a_mean_wait_too(trunk, case):
    frame = frames.link_table(trunk("fifo", [200, 400]), case(3).network)
    assert frame["mean_wait_s"].tolist()[:3] == [0.0, 0.0, 1.0]


def test_the_picture_is_drawn_from_the_tables(crowd, tmp_path):
    ringnet.run(crowd, out=tmp_path / "out")
    results = read_results(tmp_path / "out")
    assert (tmp_path / "out" / "queues.png").is_file()
    assert "queues" in choose(results)[0]
    figure = PLOTS["queues"].draw(results)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    costly = {*results.links.loc[results.links["queued_s"] > 0, "link"]}
    assert titles == [link for link in dict.fromkeys(results.queues["link"]) if link in costly][:6]
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert {"crowd", "backup"} <= set(labels)


def test_nothing_is_drawn_where_nothing_waits(tmp_path):
    text = "scenario_version: 1\nworkers: 4\nmessage: 1 MiB\nnetwork: {topology: switch, link: 100gbe}\n"
    (tmp_path / "a.yaml").write_text(text)
    ringnet.run(tmp_path / "a.yaml", out=tmp_path / "out")
    assert not (tmp_path / "out" / "queues.csv").exists()
    assert not (tmp_path / "out" / "queues.png").exists()


def test_many_owners_share_the_last_colour():
    frame = pd.DataFrame({"link": ["a"] * 3, "time_s": [0.0, 1.0, 2.0], "waiting": [9.0, 9.0, 0.0]})
    for number in range(9):
        frame[f"waiting of job {number}"] = [1.0, 1.0, 0.0]
    stacked, owners = _by_owner(frame)
    assert len(owners) == 6
    assert owners[-1] == "waiting of 4 others"
    assert stacked[owners].sum(axis=1).tolist() == [9.0, 9.0, 0.0]


def test_one_worker_on_fair_links_waits_for_nobody(case):
    network = replace(case(1).network, sharing="fair")
    assert len(case(1).but(network=network).run().waits["link"]) == 0
