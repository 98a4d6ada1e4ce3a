"""Nothing in a picture hides, drops or joins what it should show: each was wrong once, for some algorithm or sweep."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex, to_rgba

import ringnet
from ringnet.reporting.plots import PLOTS
from ringnet.reporting.plots.algorithms import share_by_algorithm, time_by_algorithm
from ringnet.reporting.results import collect


@cache
def run_of(algorithm, n_workers, message="1 MiB", network="{topology: switch, bandwidth: 50 GB/s, latency: 1 us}"):
    """Results of one run, without a payload."""
    text = f"{{scenario_version: 1, name: a run, workers: {n_workers}, message: {message}, payload: none, "
    scenario = ringnet.loads(f"{text}algorithm: {algorithm}, network: {network}}}")
    return collect([ringnet.simulate(scenario)], {})


@pytest.fixture
def points(result):
    """Results of a sweep: a run for each dict of settings."""
    return lambda *settings, **common: collect([result(**(common | one)) for one in settings], {})


def labels(figure):
    """What the legend says."""
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def with_points(ax):
    return [line for line in ax.lines if len(line.get_xdata())]


def boxes(figure, texts):
    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    return [text.get_window_extent(renderer) for text in texts]


# -------------------------------------------------------------------------------------------- space-time


@pytest.mark.parametrize(
    ("algorithm", "n_workers"),
    [("binary-tree", 8), ("direct", 3), ("halving-doubling", 8), ("swing", 8), ("bidirectional-ring", 3)],
)
def test_no_number_of_a_chunk_lies_on_another(algorithm, n_workers):
    figure = PLOTS["space-time"].draw(run_of(algorithm, n_workers))
    found = boxes(figure, figure.axes[0].texts)
    assert len(found) > 3
    for index, box in enumerate(found):
        assert not any(box.padded(-1).overlaps(other.padded(-1)) for other in found[:index])


def test_slices_of_a_tree_that_lie_on_each_other_are_one_stroke_that_names_them_all():
    figure = PLOTS["space-time"].draw(run_of("double-binary-tree", 8))
    assert {"chunks 0-3", "chunks 4-7"} == {label for label in labels(figure) if label.startswith("chunk")}
    drawn = {to_hex(color) for group in figure.axes[0].collections for color in group.get_colors()}
    assert len(drawn) == 2


def test_every_phase_has_its_own_dashes_or_hatch_and_the_legend_has_the_same():
    network = "{topology: nodes, workers_per_host: 4, inside: {shape: switch, bandwidth: 300 GB/s, latency: 1 us}, "
    network += "nics: 1, bandwidth: 50 GB/s, latency: 1 us}"
    figure = PLOTS["space-time"].draw(run_of("hierarchical", 8, network=network))
    groups = {group.get_label(): group.get_linestyle()[0] for group in figure.axes[0].collections}
    assert len(groups) == 4
    assert len({str(dashes) for dashes in groups.values()}) == 4
    assert set(groups) <= set(labels(figure))


def test_a_dashed_stroke_goes_one_way_only_so_that_its_dashes_are_seen():
    strokes = PLOTS["space-time"].draw(run_of("binary-tree", 3)).axes[0].collections
    assert all(isinstance(group, LineCollection) for group in strokes)
    assert {len(path.vertices) for group in strokes for path in group.get_paths()} == {2}


def test_an_all_gather_alone_is_drawn_as_its_legend_says(points):
    figure = PLOTS["space-time"].draw(points({}, n_workers=3, collective="all-gather", chunk_bytes=100))
    (bands,) = figure.axes[0].collections
    (handle,) = [h for legend in figure.legends for h in legend.get_patches() if h.get_label() == "all-gather"]
    assert bands.get_hatch() == handle.get_hatch()


def test_rings_in_both_directions_cross_no_picture_from_top_to_bottom():
    figure = PLOTS["space-time"].draw(run_of("bidirectional-ring", 8))
    heights = [np.ptp(path.vertices[:, 1]) for group in figure.axes[0].collections for path in group.get_paths()]
    assert max(heights) < 1
    names = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
    assert (names[0], names[-1]) == ("(7)", "(0)")


def test_of_a_tree_of_many_the_workers_around_the_last_one_are_shown_with_what_they_send():
    figure = PLOTS["space-time"].draw(run_of("binary-tree", 64))
    assert sum(len(group.get_paths()) for group in figure.axes[0].collections) >= 31
    assert "32 of 64 workers, nearest to" in " ".join(text.get_text() for text in figure.texts)


def test_of_many_channels_one_is_shown_and_of_many_transfers_fewer_workers():
    figure = PLOTS["space-time"].draw(run_of("{name: channel-ring, n_channels: 4}", 40))
    about = " ".join(text.get_text() for text in figure.texts)
    assert "workers 0 to 15 of 40, channel 3 of 4" in about
    assert sum(len(group.get_paths()) for group in figure.axes[0].collections) == 16 * 78


# ---------------------------------------------------------------------------------------------- sweeps


def test_between_two_points_of_a_breakdown_nothing_is_drawn(points):
    sweep = points(*({"chunk_bytes": size} for size in (1, 50, 2000)), latency_s=1.0)
    ax = PLOTS["time-breakdown"].draw(sweep).axes[0]
    assert not ax.collections
    centres = {round(bar.get_x() + bar.get_width() / 2, 6) for bar in ax.patches}
    assert centres == {0, 1, 2}
    tops = [bar.get_y() + bar.get_height() for bar in ax.patches]
    assert max(tops) == pytest.approx(1)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["2 B", "100 B", "4000 B"]


def test_draws_of_a_seed_are_a_median_with_a_range_and_no_zigzag(points):
    settings = [
        {"chunk_bytes": size, "latency_s": latency_s, "network.route_seed": seed}
        for size in (1, 100)
        for seed, latency_s in enumerate((3.0, 1.0, 2.0))
    ]
    figure = PLOTS["time-vs-message-size"].draw(points(*settings))
    simulated = with_points(figure.axes[0])[1]
    assert len(simulated.get_xdata()) == 2
    rows = points(*settings).summary
    medians = rows.groupby("message_bytes")["makespan_s"].median()
    assert simulated.get_ydata() == pytest.approx(medians.to_numpy())
    (ranges,) = figure.axes[0].collections
    assert [path.vertices[:, 1].tolist() for path in ranges.get_paths()] == [
        [low, high] for low, high in rows.groupby("message_bytes")["makespan_s"].agg(["min", "max"]).to_numpy()
    ]
    assert "median and range of 3 draws" in " ".join(text.get_text() for text in figure.texts)


def test_a_sweep_over_nothing_but_a_seed_is_points_that_no_line_joins(points):
    figure = PLOTS["time-vs-key"].draw(
        points(*({"network.route_seed": seed, "latency_s": seed + 1.0} for seed in range(4)))
    )
    _, simulated, *_ = with_points(figure.axes[0])
    assert simulated.get_linestyle() == "None"
    assert figure.axes[0].get_xscale() == "linear"


def test_keys_that_go_along_are_one_panel_that_says_so(points):
    figure = PLOTS["time-vs-key"].draw(
        points(*({"network.nics": n, "network.workers_per_host": 2 * n, "latency_s": 1.0 / n} for n in (1, 2, 4)))
    )
    assert len(figure.axes) == 1
    assert figure.axes[0].get_xlabel() == "network cards of a host"
    assert "workers per host with network cards of a host" in " ".join(text.get_text() for text in figure.texts)


def test_a_line_under_another_one_is_wider(points):
    settings = [{"sends": sends, "chunk_bytes": size} for sends in ("eager", "rendezvous") for size in (1, 100)]
    _, below, _, _, _, above, *_ = PLOTS["time-vs-message-size"].draw(points(*settings)).axes[0].lines
    assert below.get_ydata() == pytest.approx(above.get_ydata())
    assert below.get_linewidth() > above.get_linewidth() + 1
    assert below.get_markersize() > above.get_markersize() + 1


def test_a_bound_of_a_single_point_is_a_stroke_that_is_seen_and_the_legend_has_the_same(points):
    sweep = points({"n_workers": 2}, {"n_workers": 4, "chunk_bytes": 50})
    row = sweep.summary.assign(closed_form_s=[1.0, None])
    figure = PLOTS["time-vs-workers"].draw(replace(sweep, summary=row))
    closed = with_points(figure.axes[0])[-1]
    assert closed.get_markevery() == [0]
    (handle,) = [one for legend in figure.legends for one in legend.get_lines() if one.get_label() == "closed form"]
    assert handle.get_marker() == closed.get_marker() == "_"
    without = sweep.summary.assign(closed_form_s=np.nan)
    assert "closed form" not in labels(PLOTS["time-vs-workers"].draw(replace(sweep, summary=without)))


def test_what_is_extrapolated_is_hollow(points):
    sweep = points({"chunk_bytes": 1}, {"chunk_bytes": 100})
    marked = replace(sweep, summary=sweep.summary.assign(is_beyond=[False, True]))
    figure = PLOTS["time-vs-message-size"].draw(marked)
    (hollow,) = [line for line in with_points(figure.axes[0]) if line.get_markerfacecolor() == "white"]
    assert hollow.get_xdata().tolist() == [200]
    assert "extrapolated" in labels(figure)
    assert "extrapolated" not in labels(PLOTS["time-vs-message-size"].draw(sweep))


# ------------------------------------------------------------------------------------- compare, matrix, bars


@pytest.mark.parametrize("plot", [time_by_algorithm, share_by_algorithm])
@pytest.mark.parametrize(("counts", "n_panels", "said"), [((4, 8, 16, 32), 4, ""), (range(2, 22), 6, "6 of 20")])
def test_no_number_of_workers_is_dropped_without_a_word(plot, counts, n_panels, said):
    table = pd.DataFrame(
        [
            {
                "n_workers": n,
                "message_bytes": size,
                "algorithm": name,
                "makespan_s": size * n,
                "bound_share": 0.5,
            }
            for n in counts
            for size in (1024, 4096)
            for name in ("ring", "direct")
        ]
    ).assign(rank=1, guess=None)
    figure = plot("compared", table)
    assert len(figure.axes) == n_panels
    assert said in " ".join(text.get_text() for text in figure.texts)
    one, other = figure.axes[0].lines
    assert one.get_linewidth() > other.get_linewidth() + 1  # they lie on each other


def test_a_matrix_shows_nothing_sent_as_the_legend_does_and_its_bar_begins_with_the_least():
    figure = PLOTS["traffic-matrix"].draw(run_of("halving-doubling", 8))
    matrix, bar = figure.axes
    image = matrix.images[0]
    sent = image.get_array()
    assert image.norm.vmin == sent.min() > 0
    assert bar.get_ylim() == (sent.min(), sent.max())
    assert image.cmap(0.0) != to_rgba("white")
    assert labels(figure) == ["nothing sent"]
    alike = PLOTS["traffic-matrix"].draw(run_of("direct", 8))
    assert len(alike.axes) == 1
    assert labels(alike) == ["nothing sent", "256 KiB sent"]


@pytest.mark.parametrize("name", ["link-traffic", "link-utilisation", "worker-waiting", "queues"])
def test_no_bar_reaches_the_right_edge(name):
    figure = PLOTS[name].draw(run_of("binary-tree", 8))
    for ax in figure.axes:
        ends = [bar.get_x() + bar.get_width() for bar in ax.patches if hasattr(bar, "get_width")]
        assert max(ends, default=0) < ax.get_xlim()[1]


def test_a_share_stands_behind_what_was_held():
    run = run_of("binary-tree", 8)
    ax = PLOTS["link-utilisation"].draw(run).axes[0]
    held = run.links["occupied_s"] / run.summary["makespan_s"].iloc[0]
    for text in ax.texts:
        assert text.xy[0] >= held[round(text.xy[1])] - 1e-9


def test_no_legend_leaves_the_figure():
    run = run_of("swing", 8)
    many = run.summary.assign(waiting_share=0.1, overhead_share=0.1, reducing_share=0.1, queueing_share=0.1)
    figure = PLOTS["time-breakdown"].draw(replace(run, summary=many))
    for box in boxes(figure, figure.legends):
        assert figure.bbox.padded(1).contains(box.x0, box.y0)
        assert figure.bbox.padded(1).contains(box.x1, box.y1)
