"""Utilisation over time: bins that hold every byte, and no more than a link can carry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringnet
from ringnet.analysis import utilisation
from ringnet.analysis.frames import as_frame
from ringnet.analysis.utilisation import bin_edges_s, utilisation_table
from ringnet.engines import ENGINES
from ringnet.networks import BySize, OverTime, Packets, Piece, Window
from ringnet.networks.behaviour import ANY_SIZE
from ringnet.reporting.plots import PLOTS
from ringnet.reporting.storage import read_results

#: Two workers behind a trunk that carries 100 B/s, and one at its other end.
WIRES = {"a": (400.0, 0.0), "b": (400.0, 0.0), "trunk": (100.0, 0.0)}
ROUTES = {(0, 2): ["a", "trunk"], (1, 2): ["b", "trunk"]}


def shares(frame, link):
    return frame.loc[frame["link"] == link, "utilisation"].to_numpy()


def utilisation_frame(trace, network):
    found = utilisation_table(trace, network)
    return None if found is None else as_frame(found)


def holds_every_byte(case, trace):
    """Each link's bytes and busy time, as its row has them, are in its bins, and none is over-full."""
    frame = utilisation_frame(trace, case.network)
    used = trace.links["bytes"] > 0
    if frame is None:
        assert not used.any() or not trace.workers["end_s"].any()
        return
    frame["busy_s"] = frame["utilisation"] * (frame["to_s"] - frame["from_s"])
    sums = frame.groupby("link")[["bytes", "busy_s"]].sum().reindex(case.network.names).fillna(0.0)
    assert sums["bytes"].tolist() == pytest.approx(trace.links["bytes"].tolist(), rel=1e-9, abs=0)
    assert sums["busy_s"].tolist() == pytest.approx(trace.links["busy_s"].tolist(), rel=1e-9, abs=1e-15)
    assert frame["utilisation"].between(0.0, 1.0 + 1e-9).all()
    ends = frame[["from_s", "to_s"]].to_numpy().reshape(used.sum(), -1, 2)
    assert (ends == ends[0]).all()
    assert (ends[0, 1:, 0] == ends[0, :-1, 1]).all()
    assert ends[0, 0, 0] == case.workers.start_s.min()
    assert ends[0, -1, 1] == trace.workers["end_s"].max()


@given(st.data())
def test_bins_of_both_engines_hold_every_byte(cases, data):
    one = data.draw(cases())
    frames = []
    for engine in ENGINES:
        trace = one.run(engine=engine)
        holds_every_byte(one, trace)
        frames.append(utilisation_frame(trace, one.network))
    if frames[0] is not None:
        assert frames[0]["bytes"].tolist() == pytest.approx(frames[1]["bytes"].tolist(), rel=1e-9, abs=1e-9)


@given(st.data())
def test_bins_hold_every_byte_whatever_links_do(case, data):
    one = case(4, data.draw(st.integers(1, 5000)), topology="switch", bandwidth_Bps=100.0, latency_s=0.25)
    behaviours = {
        0: OverTime(100.0, 0.25, ((1.3, 0.0), (4.0, 250.0), (9.0, 30.0))),
        5: BySize((Piece(300, 20.0, 0.5), Piece(ANY_SIZE, 80.0, 0.25))),
    }
    sharing = data.draw(st.sampled_from(["fifo", "fair"]))
    if sharing == "fair":  # the busy time of links by size is told by their nominal bandwidth there
        del behaviours[5]
    changes = {
        "sharing": sharing,
        "switching": data.draw(st.sampled_from(["cut-through", "store-and-forward"])),
        "packets": data.draw(st.sampled_from([None, Packets(70, 8)])),
        "window": data.draw(st.sampled_from([None, Window(bytes=160), Window(transfers=1)])),
        "behaviours": data.draw(st.sampled_from([{}, behaviours])),
    }
    one = one.but(network=replace(one.network, **changes))
    holds_every_byte(one, one.run())


def test_what_shares_a_trunk_moves_at_half_its_rate(case, custom, wired):
    network = replace(wired(WIRES, ROUTES, 3), sharing="fair")
    one = case(3, [200, 400], schedule=custom(3, [(0, 2, 0), (1, 2, 1)])).but(network=network)
    frame = utilisation_frame(one.run(), one.network)
    # 50 B/s each on ways in of 400 B/s until 4 s, then the second one alone at 100 B/s until 6 s.
    assert shares(frame, "trunk").tolist() == pytest.approx([1.0] * 60)
    assert shares(frame, "a").tolist() == pytest.approx([0.125] * 40 + [0.0] * 20)
    assert shares(frame, "b").tolist() == pytest.approx([0.125] * 40 + [0.25] * 20)


def test_a_link_that_is_held_by_a_slower_one_carries_at_its_rate(case, custom, wired):
    wires = {"slow": (100.0, 0.0), "fast": (400.0, 0.0)}
    network = wired(wires, {(0, 1): ["slow", "fast"]}, 2)
    one = case(2, 1000, schedule=custom(2, [(0, 1, 0)])).but(network=network)
    frame = utilisation_frame(one.run(), one.network)
    assert frame["link"].unique().tolist() == ["slow", "fast"]
    assert shares(frame, "fast").tolist() == pytest.approx([0.25] * 100)


@pytest.mark.parametrize(("end_s", "length_s", "n_bins"), [(1.0, 0.01, 100), (1.01, 0.02, 51), (4.2e-6, 5e-8, 84)])
def test_bins_have_round_lengths(end_s, length_s, n_bins):
    edges_s = bin_edges_s(0.0, end_s)
    assert len(edges_s) == n_bins + 1
    assert np.diff(edges_s)[:-1] == pytest.approx(length_s)
    assert edges_s[-1] == end_s


def test_large_runs_are_spread_in_blocks(case, monkeypatch):
    one = case(5, 1000)
    trace = one.run()
    whole = utilisation_frame(trace, one.network)
    monkeypatch.setattr(utilisation, "AT_ONCE", 7)
    assert utilisation_frame(trace, one.network).equals(whole)


def test_without_rows_nothing_is_said(case):
    one = case(3)
    assert utilisation_table(one.run(keep_transfers=0), one.network) is None


def test_others_on_the_links_are_counted_until_the_last_has_gone(tmp_path):
    traffic = "background: [{from: 2, to: 3, rate: 1 GB/s, burst: 1 MB, stop: 20 ms}]"
    text = f"{{scenario_version: 1, workers: 2, message: 8 MB, payload: none, {traffic}, network: {{topology: switch, "
    text += "bandwidth: 1 GB/s, latency: 1 us, places: 4}, report: {plots: [utilisation-over-time]}}"
    (tmp_path / "a.yaml").write_text(text)
    result = ringnet.run(tmp_path / "a.yaml", out=tmp_path / "out")
    results = read_results(tmp_path / "out")
    found = results.utilisation.groupby("link")["bytes"].sum()
    expected = result.links.set_index("link")["bytes"]
    assert found.to_dict() == pytest.approx(expected[expected > 0].to_dict(), rel=1e-9, abs=0)
    (heat, bar) = PLOTS["utilisation-over-time"].draw(results).axes
    assert [label.get_text() for label in heat.get_yticklabels()] == results.utilisation["link"].unique().tolist()
    assert bar.get_ylabel() == "busy (%)"
