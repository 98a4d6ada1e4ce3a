"""Pictures of networks: where nodes stand, which link stands out, and who sends what to whom."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import combinations

import matplotlib.text
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import FancyArrowPatch

from ringnet.networks import TOPOLOGIES
from ringnet.networks.nodes import Inside, nodes
from ringnet.reporting.plots import PLOTS, canvas
from ringnet.reporting.plots.network import MOST_PT, _hottest, _widths
from ringnet.reporting.plots.positions import lay_out
from ringnet.reporting.results import collect

ALERT = to_rgba(canvas.ALERT)


@pytest.fixture
def single(result):
    """Results of a single run: ``single(8, 100, topology="switch")``."""
    return lambda *shape, **changes: collect([result(*shape, **changes)], {})


def texts(figure):
    """Everything that is written in a figure."""
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_visible()]


def both_ways(*cables):
    return [pair for one, other in cables for pair in ((one, other), (other, one))]


def leaf_spine(leaves=2, per_leaf=4, spines=2):
    return both_ways(
        *((str(leaf * per_leaf + place), f"leaf{leaf}") for leaf in range(leaves) for place in range(per_leaf)),
        *((f"leaf{leaf}", f"spine{spine}") for leaf in range(leaves) for spine in range(spines)),
    )


def with_traffic(results, **bytes_of):
    """The same results with other traffic on some links: ``with_traffic(results, **{"3->4": 500})``."""
    links = results.links.copy()
    for name, n_bytes in bytes_of.items():
        links.loc[links["link"] == name, ["bytes", "busy_s"]] = n_bytes, n_bytes / 100
    return replace(results, links=links)


# ------------------------------------------------------------------------------------------------ layouts


def test_workers_of_a_ring_stand_on_a_circle():
    layout = lay_out([(str(i), str((i + 1) % 8)) for i in range(8)], [*map(str, range(8))])
    assert {round(math.dist(point, layout.centre), 9) for point in layout.points.values()} == {
        round(layout.points["0"][1] - layout.centre[1], 9)
    }
    assert layout.points["2"][0] > layout.centre[0] > layout.points["6"][0]


def test_a_switch_stands_in_the_middle_of_a_star():
    layout = lay_out(both_ways(*((str(i), "switch") for i in range(8))), [*map(str, range(8))])
    assert layout.points["switch"] == layout.centre


def test_switches_stand_in_layers_above_the_workers():
    layout = lay_out(leaf_spine(), [*map(str, range(8))])
    assert layout.rows == (tuple(map(str, range(8))), ("leaf0", "leaf1"), ("spine0", "spine1"))
    heights = [layout.points[row[0]][1] for row in layout.rows]
    assert heights == sorted(heights)


def test_leaves_stand_over_their_workers_whatever_they_are_called():
    cables = both_ways(("0", "z"), ("1", "z"), ("2", "a"), ("3", "a"), ("z", "top"), ("a", "top"))
    assert lay_out(cables, ["0", "1", "2", "3"]).rows[1] == ("z", "a")


def test_a_torus_stands_in_rows():
    def near(node):
        x, y = node % 4, node // 4
        return [(x + 1) % 4 + 4 * y, x + 4 * ((y + 1) % 3)]

    layout = lay_out(
        both_ways(*((str(node), str(other)) for node in range(12) for other in near(node))),
        [*map(str, range(12))],
    )
    assert layout.points["1"][1] == layout.points["3"][1]
    assert layout.points["4"][0] == layout.points["8"][0]
    assert layout.points["4"][1] < layout.points["0"][1]


def test_fully_connected_workers_are_no_grid():
    pairs = both_ways(*combinations(map(str, range(6)), 2))
    assert lay_out(pairs, [*map(str, range(6))]).centre is not None


@pytest.mark.parametrize("n", [1, 2, 3, 8, 64, 200])
@pytest.mark.parametrize(
    "make", [lambda n: leaf_spine(2, n), lambda n: both_ways(*((str(i), "hub") for i in range(n)))]
)
def test_no_two_nodes_stand_in_one_place(n, make):
    links = make(n)
    workers = sorted({end for pair in links for end in pair if end.isdecimal()}, key=int)
    layout = lay_out(links, workers)
    assert len({*layout.points.values()}) == len(layout.points)
    assert {*layout.points} == {end for pair in links for end in pair}


def test_empty_places_are_drawn_with_the_others():
    layout = lay_out(both_ways(("0", "a"), ("free1", "a"), ("2", "a")), ["2", "0"])
    assert {*layout.points} == {"0", "2", "free1", "a"}


# ------------------------------------------------------------------------------------------------ networks


def hot_lines(figure):
    (links,) = [lines for lines in figure.axes[0].collections if isinstance(lines, LineCollection)]
    return [tuple(color) for color in links.get_colors()].count(ALERT)


def test_the_busiest_link_stands_out(single):
    results = with_traffic(single(8, 100), **{"3->4": 5000})
    figure = PLOTS["network"].draw(results)
    assert hot_lines(figure) == 1
    assert any(text.startswith("busiest: 3->4") for text in texts(figure))


def test_nothing_stands_out_among_links_alike(single):
    figure = PLOTS["network"].draw(single(8, 100))
    assert hot_lines(figure) == 0
    assert any("all alike" in text for text in texts(figure))


def test_a_chunk_that_is_an_element_larger_makes_no_busiest_link(single):
    links = single(3, 100).links
    links["busy_s"] = [1.0, 0.9999, 0.9999]
    assert not _hottest(links).any()


def test_idle_links_are_there_and_said_to_be_idle(single):
    figure = PLOTS["network"].draw(with_traffic(single(4, 100), **{"1->2": 0}))
    assert "idle" in texts(figure)


def test_links_are_as_wide_as_what_crossed_them(single):
    figure = PLOTS["network"].draw(with_traffic(single(4, 100), **{"1->2": 0, "2->3": 5000}))
    (links,) = [lines for lines in figure.axes[0].collections if isinstance(lines, LineCollection)]
    assert min(links.get_linewidths()) == pytest.approx(0.5)
    assert max(links.get_linewidths()) == pytest.approx(3.2)


def test_the_edges_of_the_ring_are_laid_over_the_network(single):
    figure = PLOTS["network"].draw(single(8, 100, topology="switch"))
    assert len(figure.findobj(FancyArrowPatch)) == 8
    assert "sends to" in texts(figure)


def test_without_transfers_only_the_network_is_drawn(single):
    figure = PLOTS["network"].draw(replace(single(8, 100), transfers=None))
    assert not figure.findobj(FancyArrowPatch)


@pytest.mark.parametrize("n_workers", [2, 3, 8, 64, 300])
@pytest.mark.parametrize("topology", ["ring", "switch"])
def test_workers_are_numbered_as_far_as_there_is_room(single, custom, topology, n_workers):
    once_around = custom(n_workers, [(worker, (worker + 1) % n_workers, worker) for worker in range(n_workers)])
    figure = PLOTS["network"].draw(single(n_workers, 100, topology=topology, schedule=once_around))
    numbers = [text for text in figure.axes[0].texts if text.get_text().isdecimal()]
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in numbers]
    assert numbers[0].get_text() == "0"
    assert len(numbers) == n_workers or len(numbers) > 20
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_workers_stand_where_they_were_placed(single):
    results = single(4, 100, topology="switch")
    results = replace(results, workers=results.workers.assign(place=["2", "0", "3", "1"]))
    figure = PLOTS["network"].draw(results)
    at = {text.get_text(): text.get_position() for text in figure.axes[0].texts}
    assert at["1"][1] > max(at[worker][1] for worker in "023")  # place 0 is at the top


def test_networks_of_too_many_links_are_not_drawn(single):
    results = single(4, 100)
    many = results.links.loc[np.zeros(20_001, dtype=int)]
    assert not PLOTS["network"].applies(replace(results, links=many))
    assert PLOTS["network"].applies(results)


# -------------------------------------------------------------------------------------------------- matrix


def test_the_matrix_has_what_each_worker_sent_to_each(single):
    results = single(4, 100)
    (image,) = PLOTS["traffic-matrix"].draw(results).axes[0].images
    shown = np.asarray(image.get_array().filled(0))
    expected = np.zeros((4, 4))
    np.add.at(expected, (results.transfers["src"], results.transfers["dst"]), results.transfers["bytes"])
    assert (shown == expected).all()
    assert shown.sum() == results.workers["sent_bytes"].sum()


def test_few_workers_have_their_bytes_written_in(single):
    assert texts(PLOTS["traffic-matrix"].draw(single(4, 100))).count("600\nB") == 4
    assert "\n" not in "".join(texts(PLOTS["traffic-matrix"].draw(single(16, 100))))


def test_many_workers_are_summed_up_and_that_is_said(single):
    results = single(4, 100)
    summary = results.summary.assign(n_workers=1024)
    figure = PLOTS["traffic-matrix"].draw(replace(results, summary=summary))
    assert "of every 2 workers the sum" in " ".join(text.get_text() for text in figure.texts)
    (image,) = figure.axes[0].images
    assert np.nansum(image.get_array()) == results.transfers["bytes"].sum()


# ------------------------------------------------------------------------------------ many nodes, many links


@pytest.mark.parametrize("sides", [(4, 4, 4), (8, 8, 4), (2, 2, 2), (3, 5, 7), (8, 8)])
def test_no_node_of_a_grid_stands_on_another(sides):
    network = TOPOLOGIES["torus"].build(math.prod(sides), 1e9, 0.0, sides=sides)
    layout = lay_out(map(network.ends, range(network.n_links)), [*map(str, range(network.n_workers))])
    points = [*layout.points.values()]
    nearest = min(math.dist(one, other) for place, one in enumerate(points) for other in points[:place])
    assert nearest >= layout.room * (1 - 1e-9)
    assert nearest > 0.1


def test_empty_places_stand_beside_the_workers():
    """Of a fat tree of which half is taken: all places below, every edge switch above them."""
    network = TOPOLOGIES["fat-tree"].build(8, 1e9, 0.0, k=4)
    layout = lay_out(map(network.ends, range(network.n_links)), [*map(str, range(8))])
    assert [len(row) for row in layout.rows] == [16, 8, 8, 4]
    assert {*layout.rows[1]} == {f"edge{number}" for number in range(8)}


def cards_over_a_fat_tree(n_workers, k=4):
    inside = Inside("switch", 4e9, 0.0)
    tree = partial(TOPOLOGIES["fat-tree"].build, k=k)
    return nodes(n_workers, 1e9, 0.0, workers_per_host=4, nics=2, inside=inside, between=tree)


def test_switches_of_one_kind_stand_beside_each_other_with_and_without_cards():
    network = cards_over_a_fat_tree(8)
    layout = lay_out(map(network.ends, range(network.n_links)), [*map(str, range(8))])
    hosts = [f"h{host}/{node}" for host in (0, 1) for node in ("nic0", "switch", "nic1")]
    assert [{*row} for row in layout.rows] == [
        {*map(str, range(8))},
        {*hosts},
        {f"edge{number}" for number in range(8)},
        {f"agg{number}" for number in range(8)},
        {f"core{number}" for number in range(4)},
    ]
    assert layout.rows[2] == tuple(f"edge{number}" for number in range(8))  # the idle ones at the end


@pytest.mark.parametrize("shape", ["switch", "ring", "pcie"])
@pytest.mark.parametrize("per_host", [1, 4])
def test_ports_without_a_card_are_not_drawn(shape, per_host):
    tree = partial(TOPOLOGIES["fat-tree"].build, k=4)
    inside = Inside(shape, 4e9, 0.0)
    network = nodes(8, 1e9, 0.0, workers_per_host=per_host, inside=inside, between=tree)
    layout = lay_out(map(network.ends, range(network.n_links)), [*map(str, range(8))])
    assert not [node for node in layout.points if node.startswith("free")]
    rows = [{node.rstrip("0123456789") for node in row} for row in layout.rows]
    assert rows[-3:] == [{"edge"}, {"agg"}, {"core"}]


@pytest.mark.parametrize(("n_workers", "k"), [(8, 4), (24, 6)])
def test_switches_of_crowded_rows_have_names_that_do_not_touch(single, n_workers, k):
    network = cards_over_a_fat_tree(n_workers, k)
    results = single(n_workers, 100, topology="switch")
    ends = [network.ends(link) for link in range(network.n_links)]
    links = pd.DataFrame(ends, columns=["from", "to"]).assign(link=network.names, bytes=1, busy_s=1.0)
    links["utilisation"] = 1.0
    figure = PLOTS["network"].draw(replace(results, links=links))
    written = texts(figure)
    assert "empty place" not in written
    n_switches = {4: (8, 8, 4), 6: (18, 18, 9)}[k]
    for kind, number in zip(("edge", "agg", "core"), n_switches, strict=True):
        assert {f"{kind}{one}" for one in range(number)} <= {*written}
    names = [text for text in figure.axes[0].texts if not text.get_text().isdecimal()]
    boxes = [text.get_window_extent() for text in names]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_links_that_meet_in_hundreds_are_narrow():
    def widths(n_workers):
        frame = pd.DataFrame({"from": [*map(str, range(n_workers))], "to": ["switch"] * n_workers})
        layout = lay_out(zip(frame["from"], frame["to"], strict=True), [*frame["from"]])
        return _widths(layout, frame)

    assert widths(8)[1] == MOST_PT
    assert widths(256)[1] < 1.0
    assert widths(256)[0] <= widths(256)[1]
