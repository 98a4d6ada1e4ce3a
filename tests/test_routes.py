"""Who took which links: routes with their bytes, collisions of equal-cost choices, what spreading them is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import yaml

from ringnet.analysis.routes import collisions, pair_traffic, spread_routes, top_talkers
from ringnet.networks import make_network
from ringnet.networks.graph import ecmp
from ringnet.runs import advice
from ringnet.runs.advice import route_advice
from ringnet.runs.parts import build
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads
from ringnet.units import format_seconds

LEAVES = {"topology": "leaf-spine", "leaves": 2, "spines": 2, "bandwidth": "10 GB/s", "latency": "1 us"}


def scenario(network, **keys):
    keys = {"scenario_version": 1, "workers": 8, "message": "8 MiB", "payload": "none"} | keys
    return loads(yaml.safe_dump(keys | {"network": network}))


def drawn(seed, **keys):
    """Return a scenario whose pairs between the leaves are all drawn over one spine, or over both."""
    return scenario(LEAVES | {"routes": "ecmp", "route_seed": seed}, algorithm="halving-doubling", **keys)


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "direct", "binary-tree"])
def test_pairs_move_what_the_transfers_say(algorithm):
    result = simulate(scenario(LEAVES, algorithm=algorithm, message="100004 B", workers=6))
    by_pair = result.transfers.groupby(["src", "dst"])["bytes"].agg(["count", "sum"])
    routes = result.routes.set_index(["src", "dst"])
    assert routes.index.tolist() == by_pair.index.tolist()
    assert routes["transfers"].tolist() == by_pair["count"].tolist()
    assert routes["bytes"].tolist() == by_pair["sum"].tolist()


def test_of_two_jobs_each_has_its_routes_and_all_bytes_are_on_the_links():
    jobs = [{"name": "other", "workers": [1, 4], "algorithm": "ring", "message": "1 MiB"}]
    network = LEAVES | {"places": 8}
    result = simulate(scenario(network, workers=2, algorithm="ring", jobs=jobs, name="own"))
    assert result.routes["job"].tolist() == ["own", "own", "other", "other"]
    on_link = dict.fromkeys(result.links["link"], 0)
    for row in result.routes.to_dict("records"):
        for link in row["links"].split():
            on_link[link] += row["bytes"]
    assert [*on_link.values()] == result.links["bytes"].tolist()


def test_more_pairs_than_are_kept_are_left_out(monkeypatch):
    monkeypatch.setattr("ringnet.analysis.routes.MOST_PAIRS", 7)
    result = simulate(scenario(LEAVES))
    assert result.routes is None


def test_equal_routes_are_the_shortest_ones_and_the_drawn_one_is_among_them():
    network = ecmp(make_network("fat-tree", 16, 1e9, 1e-6, k=4), seed=5)
    for src, dst, count in ((0, 1, 1), (0, 3, 2), (0, 9, 4)):
        routes = network.find_equal_routes(src, dst)
        assert len({*routes}) == count
        assert network.route(src, dst) in routes
        assert {len(route) for route in routes} == {len(network.route(src, dst))}


def test_only_drawn_routes_collide_and_only_where_another_link_is_idle():
    assert simulate(scenario(LEAVES)).routes["equal_routes"].isna().all()
    for seed in range(8):
        one = drawn(seed)
        parts, result = build(one), simulate(one)
        for row in result.routes.to_dict("records"):
            if row["collides_on"] is None:
                continue
            links = result.links.set_index("link")
            assert links.loc[row["idle_instead"], "bytes"] == 0
            assert row["collides_on"].split("->")[0] == row["idle_instead"].split("->")[0]
            users = [row["collides_on"] in names.split() for names in result.routes["links"]]
            assert row["collides_with"] == sum(users) - 1 > 0
        assert parts.network.find_equal_routes is not None


def collides(seed):
    result = simulate(drawn(seed))
    return bool(result.routes["collides_on"].notna().any())


def test_what_is_said_of_spread_routes_is_what_a_run_with_them_takes():
    """The scenario is written down once more, with the spread routes listed, and takes the time that was said."""
    seed = next(filter(collides, range(100)))
    one = drawn(seed)
    parts, result = build(one), simulate(one)
    said = route_advice(result, parts)
    traffic = pair_traffic(parts.schedule, parts.chunk_bytes)
    names = parts.network.names
    routes = {
        f"{src}->{dst}": [names[link] for link in moved]
        for (src, dst), moved in spread_routes(parts.network, traffic).items()
    }
    routes |= {
        f"{row['src']}->{row['dst']}": row["links"].split()
        for row in result.routes.to_dict("records")
        if f"{row['src']}->{row['dst']}" not in routes
    }
    again = simulate(scenario(LEAVES | {"routes": routes}, algorithm="halving-doubling"))
    assert again.summary["makespan_s"] < 0.99 * result.summary["makespan_s"]
    before, after = (format_seconds(one.summary["makespan_s"]) for one in (result, again))
    assert f"the run takes {after} in place of {before}" in said
    assert "of equal cost, carries nothing: with routes spread" in said


def test_what_costs_nothing_is_not_said():
    seed = next(filter(collides, range(100)))
    # Links between the switches so fast that sharing one is no loss.
    rule = {"links": {"*leaf*->*spine*": {"bandwidth": "1 TB/s"}, "spine*->leaf*": {"bandwidth": "1 TB/s"}}}
    network = LEAVES | {"routes": "ecmp", "route_seed": seed} | rule
    one = scenario(network, algorithm="halving-doubling")
    result = simulate(one)
    assert result.routes["collides_on"].notna().any()
    assert route_advice(result, build(one)) is None


def test_what_is_too_large_is_not_simulated_again(monkeypatch):
    monkeypatch.setattr(advice, "MOST_TRANSFERS", 10)
    one = drawn(next(filter(collides, range(100))))
    result = simulate(one)
    monkeypatch.setattr("ringnet.runs.again.makespan_of", None)
    assert route_advice(result, build(one)) is None


def test_a_network_whose_routes_are_fixed_has_no_collisions():
    network = make_network("leaf-spine", 4, 1e9, 1e-6, leaves=2, spines=4)
    schedule = build(scenario(LEAVES, workers=4)).schedule
    traffic = pair_traffic(schedule, build(scenario(LEAVES, workers=4)).chunk_bytes)
    assert collisions(network, traffic, 0 * network.bandwidth_Bps.astype(int)) == {}


def test_equal_routes_are_found_only_where_an_idle_link_is_beside_a_shared_one():
    seed = next(filter(collides, range(100)))
    parts = build(drawn(seed))
    traffic, asked = pair_traffic(parts.schedule, parts.chunk_bytes), []
    find = parts.network.find_equal_routes
    network = replace(parts.network, find_equal_routes=lambda *pair: (asked.append(pair), find(*pair))[1])
    all_busy = np.ones(network.n_links, dtype=np.int64)
    assert collisions(network, traffic, all_busy) == {}
    assert asked == []
    crossed, _ = network.joined_routes(traffic.src, traffic.dst)
    found = collisions(network, traffic, np.bincount(crossed, minlength=network.n_links))
    assert found
    assert {pair for one in found.values() for pair in one.pairs} & {*asked}


def test_top_talkers_share_the_busiest_link():
    result = simulate(scenario(LEAVES | {"spines": 1, "oversubscription": 2, "placement": "interleaved"}))
    said = top_talkers(result.columns("routes"), result.tables["links"])
    assert said.startswith("leaf0->spine0, busy ")
    assert said.endswith("of the time; of its bytes 0->1 25 %, 2->3 25 %, 4->5 25 % and 1 more")
    ring = simulate(scenario({"bandwidth": "10 GB/s", "latency": "1 us"}))
    assert top_talkers(ring.columns("routes"), ring.tables["links"]) == ""
    nothing = ring.tables["links"] | {"busy_s": np.zeros(4)}
    assert top_talkers(ring.columns("routes"), nothing) == ""
