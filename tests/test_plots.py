"""Plots: which apply, what they show, and that they can be drawn for whatever a table holds."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from importlib import import_module

import matplotlib
import matplotlib.text
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ringnet.errors import ResultsError
from ringnet.networks import LinkChange
from ringnet.reporting.look import Look
from ringnet.reporting.plots import PLOTS, STUDY_PLOTS, axes, canvas, choose, draw_to
from ringnet.reporting.plots.axes import unit_for
from ringnet.reporting.plots.canvas import plain
from ringnet.reporting.results import collect
from tests.commands import wait_for

SINGLE = [
    "time-breakdown",
    "space-time",
    "link-traffic",
    "link-utilisation",
    "utilisation-over-time",
    "worker-waiting",
]
OVER_SIZE = ["time-vs-message-size", "algbw-vs-message-size", "busbw-vs-message-size"]
GPU = {"bandwidth_Bps": 50e9, "latency_s": 5e-7}


@pytest.fixture
def points(result):
    """Results of a sweep: a run for each dict of settings."""

    def of(*settings, **common):
        return collect([result(**(common | setting)) for setting in settings], {})

    return of


@pytest.fixture
def draw(points):
    """Draw one plot of a sweep, or of a single run."""
    return lambda name, *settings, **common: PLOTS[name].draw(points(*(settings or [{}]), **common))


def texts(figure):
    """Everything that is written in a figure."""
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_visible()]


def title(figure):
    """The scenario's name and what the picture is about, however they are broken into lines."""
    return " ".join(text.get_text() for text in figure.texts)


def curves(figure):
    """Lines that have points on them."""
    return [line for line in figure.axes[0].lines if len(line.get_xdata())]


def grid(ns, chunks, **common):
    return [{"n_workers": n, "chunk_bytes": chunk, **common} for n in ns for chunk in chunks]


# -------------------------------------------------------------------------------------------- which apply


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([{}], SINGLE),
        ([{"n_workers": 2}, {"n_workers": 4, "chunk_bytes": 50}], ["time-vs-workers", "time-breakdown"]),
        ([{"chunk_bytes": 1}, {"chunk_bytes": 2}], [*OVER_SIZE, "time-breakdown"]),
        (grid((2, 3), (1, 6)), ["time-vs-workers", *OVER_SIZE, "time-breakdown"]),
        ([{"network.latency": "1 s"}, {"network.latency": "2 s"}], ["time-vs-key", "time-breakdown"]),
        (
            [{"switching": "cut-through"}, {"switching": "store-and-forward"}],
            ["time-vs-key", "time-breakdown"],
        ),
        ([{"n_workers": 1}], []),
        ([{"n_workers": 1}, {"n_workers": 2}], ["time-breakdown"]),
        ([{"chunk_bytes": 0}], ["time-breakdown", "space-time", "worker-waiting"]),
    ],
)
def test_which_plots_apply_is_read_from_the_data(points, settings, expected):
    results = points(*settings)
    chosen, left_out = choose(results)
    assert (chosen, left_out) == (expected, [])
    for name in chosen:
        assert PLOTS[name].draw(results).axes


def test_an_empty_list_draws_nothing(points):
    assert choose(points({}), []) == ([], [])


def test_a_plot_that_is_unknown_is_an_error_that_knows_its_neighbour(points):
    with pytest.raises(ResultsError, match="did you mean link-traffic"):
        choose(points({}), ["link-trafic"])


def test_a_list_of_the_plots_costs_no_matplotlib():
    code = "import ringnet.reporting.plots, sys; print('matplotlib' in sys.modules, 'pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_every_plot_says_in_a_line_what_it_shows():
    assert all(plot.summary and plot.needs and "\n" not in plot.summary for plot in PLOTS.values())


@pytest.mark.parametrize("plot", [*PLOTS.values(), *STUDY_PLOTS.values()], ids=[*PLOTS, *STUDY_PLOTS])
def test_what_draws_a_plot_is_where_the_list_says(plot):
    chapter, _, function = plot.place.partition(".")
    assert callable(getattr(import_module(f"ringnet.reporting.plots.{chapter}"), function))


# ------------------------------------------------------------------------------------------ what is shown


def test_time_against_workers_has_a_line_for_each_size_with_form_and_bound_beside_it(draw):
    figure = draw("time-vs-workers", *({"n_workers": n, "chunk_bytes": s // n} for s in (64, 128) for n in (2, 4, 8)))
    bound, simulated, closed = curves(figure)[:3]
    assert len(curves(figure)) == 6
    assert simulated.get_xdata().tolist() == [2, 4, 8]
    assert closed.get_ydata() == pytest.approx(simulated.get_ydata(), rel=1e-12, abs=0)
    assert (bound.get_ydata() < simulated.get_ydata()).all()
    assert {"64 B", "128 B", "simulated", "closed form", "bound", "workers, N"} <= set(texts(figure))
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"


@pytest.mark.parametrize(
    ("plot", "column"), [("algbw-vs-message-size", "algbw_Bps"), ("busbw-vs-message-size", "busbw_Bps")]
)
def test_bandwidth_against_size_reaches_for_its_bound(points, plot, column):
    results = points(*grid((4,), (2**10, 2**20, 2**28)), **GPU)
    bound, simulated, closed = curves(PLOTS[plot].draw(results))
    assert simulated.get_ydata() == pytest.approx(results.summary[column].tolist(), rel=1e-12, abs=0)
    assert closed.get_ydata() == pytest.approx(simulated.get_ydata(), rel=1e-12, abs=0)
    assert (np.diff(simulated.get_ydata() / bound.get_ydata()) > 0).all()
    assert (simulated.get_ydata() < bound.get_ydata()).all()


def test_sizes_and_times_read_in_units(draw):
    figure = draw("time-vs-message-size", *grid((4,), [4**k for k in range(14)]), **GPU)
    assert {"1 KiB", "1 MiB", "10 us", "1 ms"} <= set(texts(figure))


def test_a_point_at_zero_cannot_be_on_a_log_axis_and_that_is_said(draw):
    figure = draw("time-vs-message-size", *grid((4,), (0, 1, 2)))
    assert "1 point(s) at zero left out" in title(figure)


def test_too_many_lines_are_thinned_and_that_is_said(draw):
    figure = draw("time-vs-message-size", *grid(range(2, 22), (1, 2)))
    assert "12 of 20 lines shown" in title(figure)
    assert {"N = 2", "N = 21"} <= set(texts(figure))


def test_the_slowest_link_stands_out(draw):
    figure = draw("link-utilisation", slowest_link="1->2", n_workers=4)
    colors = {bar.get_y(): matplotlib.colors.to_hex(bar.get_facecolor()) for bar in figure.axes[0].patches}
    assert list(colors.values()).count("#d55e00") == 1
    assert {"slowest link", "80 %", "1->2"} <= set(texts(figure)) | {"80 %"}


def test_many_links_are_a_profile_in_which_the_slowest_is_named(draw):
    figure = draw("link-traffic", slowest_link="17->18", n_workers=64)
    assert "slowest link, 17->18" in texts(figure)
    assert "all 64 links, from the most to the least" in texts(figure)


@pytest.mark.parametrize("used", [24, 100])
def test_of_many_links_the_idle_ones_are_left_out_and_counted(points, used):
    results = points({}, n_workers=128)
    links = results.links.copy()
    links.loc[used:, ["bytes", "busy_s", "occupied_s", "utilisation"]] = 0
    figure = PLOTS["link-utilisation"].draw(replace(results, links=links))
    assert f"{128 - used} idle links left out" in title(figure)
    if used == 24:
        assert {*links["link"][:used]} <= {*texts(figure)}
        assert len([bar for bar in figure.axes[0].patches if bar.get_width()]) == used
    else:
        assert "the 100 links in use, from the most to the least" in texts(figure)


def test_where_all_links_can_be_named_idle_ones_are_too(points):
    results = points({}, n_workers=8)
    links = results.links.copy()
    links.loc[4:, ["bytes", "busy_s", "occupied_s", "utilisation"]] = 0
    assert {*links["link"]} <= {*texts(PLOTS["link-utilisation"].draw(replace(results, links=links)))}


def test_a_worker_shows_its_waiting_its_overheads_and_its_reducing(points):
    results = points({}, n_workers=3, recv_overhead_s=0.25, reduce_Bps=100.0)
    figure = PLOTS["worker-waiting"].draw(results)
    assert {"sending or receiving", "overheads", "reducing"} <= set(texts(figure))
    assert "waiting for a late partner" not in texts(figure)
    ends = max(bar.get_x() + bar.get_width() for bar in figure.axes[0].patches)
    assert ends == pytest.approx(results.workers["end_s"].max(), rel=1e-12, abs=0)


def test_a_late_worker_and_a_slow_link_look_unlike(points):
    """Others wait for the late one, and in a run with a slow link its receiver receives all the time."""
    late = points({}, n_workers=3, start_s=[0.0, 9.0, 0.0])
    assert {"waiting for a late partner", "sending or receiving"} <= set(texts(PLOTS["worker-waiting"].draw(late)))
    assert late.workers["late_partner_s"].tolist()[1] == 0.0
    assert min(late.workers["late_partner_s"][[0, 2]]) > 4
    slow = points({}, n_workers=3, links={"0->1": LinkChange(10.0)}, latency_s=0.0).workers
    assert slow["moving_s"][1] == slow["end_s"].max()
    assert slow["late_partner_s"][1] == 0.0 < slow["late_partner_s"][2]


def test_shares_of_one_run_are_named_with_their_figures(draw):
    assert {"latency 20 %", "bandwidth 80 %"} <= set(texts(draw("time-breakdown", n_workers=3, chunk_bytes=200)))


def test_shares_of_a_grid_have_a_panel_for_each_setting(draw):
    figure = draw("time-breakdown", *grid((2, 3, 4, 5, 6), (1, 600), latency_s=1.0))
    assert len(figure.axes) == 4
    assert "4 of 5 settings shown" in title(figure)


def test_areas_can_be_told_apart_without_colour(draw):
    """As the legend shows them: a hatch in the colour of its area would not be seen."""
    slow = {"network.latency": 1.0, "links": {"0->1": LinkChange(1.0)}}
    costs = {"recv_overhead_s": 3.0, "send_overhead_s": 3.0}
    figure = draw("time-breakdown", *[slow | {"n_workers": n} | costs for n in (2, 3, 4)], chunk_bytes=9)
    FigureCanvasAgg(figure).draw()
    (left, low), (right, high) = figure.axes[0].get_window_extent().padded(-9).get_points().astype(int)
    pixels = np.asarray(figure.canvas.buffer_rgba())[::-1][low:high, left:right, :3]
    assert (pixels > 200).all(axis=2).any()  # strokes, all but white


def test_a_transfer_is_drawn_from_its_start_at_the_sender_to_its_end_at_the_receiver(points):
    results = points({}, n_workers=3, chunk_bytes=100)
    figure = PLOTS["space-time"].draw(results)
    bands = [path.vertices for group in figure.axes[0].collections for path in group.get_paths()]
    assert len(bands) == len(results.transfers)
    first = np.array(bands[0])
    assert first[0, 0] == results.transfers["started_s"].iloc[0]
    assert first[2, 0] == results.transfers["arrived_s"].iloc[0]
    assert (round(first[0, 1]), round(first[2, 1])) == (0, 1)
    assert all(round(band[2, 1]) - round(band[0, 1]) == 1 for band in bands)
    assert {"reduce-scatter", "all-gather", "chunk 0", "chunk 2", "(0)"} <= set(texts(figure))


def test_the_path_that_ended_last_is_a_line_along_workers_and_across_with_transfers(points):
    results = points({}, n_workers=3, chunk_bytes=100, latency_s=0.5, start_s=[0.0, 9.0, 0.0])
    figure = PLOTS["space-time"].draw(results)
    (line,) = [line for line in figure.axes[0].lines if line.get_color() == canvas.ALERT]
    points_of = line.get_xydata()
    # Worker 1 starts late; what it sends goes on to worker 2, to the first, which stands once more, and so on.
    assert points_of[:4].tolist() == [[0.0, 1.0], [9.0, 1.0], [9.0, 1.0], [10.5, 2.0]]
    assert points_of[-1, 0] == results.summary["makespan_s"].iloc[0]
    assert np.isnan(points_of[6]).all()
    assert "the path that ended last" in texts(figure)
    without = PLOTS["space-time"].draw(replace(results, path=None))
    assert "the path that ended last" not in texts(without)


def test_the_phases_can_be_told_apart(draw):
    first, second = draw("space-time", n_workers=3).axes[0].collections
    assert first.get_hatch() is None
    assert second.get_hatch()


def test_a_run_of_many_workers_is_shown_in_part_and_that_is_said(draw):
    assert "workers 0 to 15 of 40" in title(draw("space-time", n_workers=40))


def test_the_part_that_is_shown_is_where_the_run_ended_last(draw):
    figure = draw("space-time", n_workers=40, start_s=[0.0] * 38 + [1e6, 0.0], schedule=None)
    assert "workers 24 to 39 of 40" in title(figure)


def test_transfers_between_distant_workers_are_strokes_that_hide_nothing(points):
    results = points({}, n_workers=4)
    crossing = results.transfers.assign(dst=results.transfers["src"] ^ 2)
    figure = PLOTS["space-time"].draw(replace(results, transfers=crossing))
    assert {len(path.vertices) for group in figure.axes[0].collections for path in group.get_paths()} == {2}
    assert "(0)" not in texts(figure)


def test_reducing_is_drawn_as_long_as_it_takes_up_to_when_the_chunk_is_applied(points):
    results = points({}, n_workers=3, chunk_bytes=100, reduce_Bps=50.0, recv_overhead_s=0.5)
    *_, reducing = PLOTS["space-time"].draw(results).axes[0].collections
    boxes = [path.vertices for path in reducing.get_paths()]
    assert len(boxes) == (results.transfers["op"] == "reduce").sum()
    assert [box[1, 0] - box[0, 0] for box in boxes] == pytest.approx([2.0] * len(boxes))
    ends = results.transfers.loc[results.transfers["op"] == "reduce", "applied_s"]
    assert sorted(box[1, 0] for box in boxes) == pytest.approx(sorted(ends))


def test_of_very_many_workers_the_one_that_waited_least_is_still_seen(points):
    results = points({}, n_workers=4)
    many = pd.concat([results.workers] * 256, ignore_index=True).assign(worker=range(1024), moving_s=5.0, waiting_s=5.0)
    many.loc[777, ["moving_s", "waiting_s"]] = 1.0
    figure = PLOTS["worker-waiting"].draw(replace(results, workers=many))
    assert "of every 2 workers the one that stands out most" in title(figure)
    assert 1.0 in figure.axes[0].patches[0].get_data()[0]


def test_words_have_a_row_for_each_point_and_the_bound_beside_it(draw):
    figure = draw("time-vs-key", {"switching": "cut-through"}, {"switching": "store-and-forward", "latency_s": 9.0})
    assert {"cut-through", "store-and-forward", "bound"} <= set(texts(figure))
    assert [len(line.get_xdata()) for line in curves(figure)] == [2, 2]


def test_time_over_another_key_reads_in_its_units(draw):
    figure = draw(
        "time-vs-key",
        *({"network.bandwidth": f"{rate} GB/s", "bandwidth_Bps": rate * 1e9} for rate in (10, 50, 100)),
    )
    assert {"10 GB/s", "bandwidth"} <= set(texts(figure))


# ------------------------------------------------------------------------------------------- how it looks


@pytest.mark.parametrize("n_workers", [2, 3, 8, 33])
def test_no_two_texts_of_a_figure_overlap(points, n_workers):
    results = points({}, n_workers=n_workers, name="a name of some length, as people give them to their runs")
    for name in choose(results)[0]:
        assert_nothing_overlaps(PLOTS[name].draw(results))


@pytest.mark.parametrize(("ns", "sizes"), [((8,), 2), ((8,), 20), ((2, 3, 4, 5, 6, 7, 8, 16, 32), 5)])
def test_no_two_texts_of_a_sweep_overlap(points, ns, sizes):
    results = points(*grid(ns, [2**k for k in range(4, 4 + sizes)]), **GPU)
    for name in choose(results)[0]:
        assert_nothing_overlaps(PLOTS[name].draw(results))


def assert_nothing_overlaps(figure):
    """Titles, labels, tick labels and legends keep clear of each other and inside of the figure."""
    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    found = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text().strip() and text.get_visible()]
    inside_axes = {text for axes in figure.axes for text in axes.texts}
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in found if text not in inside_axes]
    for index, (text, box) in enumerate(boxes):
        assert figure.bbox.padded(1).contains(box.x0, box.y0), text
        assert figure.bbox.padded(1).contains(box.x1, box.y1), text
        for other, other_box in boxes[:index]:
            assert not box.padded(-0.5).overlaps(other_box.padded(-0.5)), (text, other)


def test_a_figure_is_one_column_wide(draw):
    assert all(draw(name).get_figwidth() == 3.5 for name in SINGLE)


@pytest.mark.parametrize(
    "name", ["$x^2$ costs $5", r"$\frac{$", "größer → 漢字 🚀", "a\x07b\nc", "<&--]]>", "-" * 300, "漢" * 300]
)
def test_any_name_makes_a_picture_that_can_be_read(points, tmp_path, name):
    results = points({}, name=name)
    targets = {"svg": tmp_path / "a.svg", "png": tmp_path / "a.png"}
    draw_to([(targets, lambda: PLOTS["space-time"].draw(results))], Look())
    ET.parse(tmp_path / "a.svg")
    assert plain(name)[:25] in title(PLOTS["space-time"].draw(results))


def test_what_a_user_set_in_matplotlib_counts_and_is_not_changed(points, tmp_path):
    theirs = {"font.size": 9.0, "axes.facecolor": "red", "figure.figsize": (6.0, 2.0), "svg.hashsalt": "mine"}
    with matplotlib.rc_context(theirs):
        before = dict(matplotlib.rcParams)
        figure = PLOTS["link-traffic"].draw(points({}, name="of $5"))
        draw_to([({"svg": tmp_path / "a.svg"}, lambda: figure)], Look())
        assert dict(matplotlib.rcParams) == before
    assert matplotlib.colors.to_hex(figure.axes[0].get_facecolor()) == "#ff0000"
    assert figure.get_figwidth() == 6
    assert figure.axes[0].xaxis.label.get_size() == 7.5  # ringnet's: the user said nothing of labels
    assert "of $5" in (tmp_path / "a.svg").read_text()  # text, and none of the user's mathematics


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_a_picture_is_the_same_bytes_on_every_run_alone_or_beside_others(points, tmp_path, ending):
    results, names = points({}), ("time-breakdown", "link-utilisation")
    figures = [({ending: tmp_path / name}, partial(PLOTS[name].draw, results)) for name in names]
    draw_to(figures, Look())
    together = [(tmp_path / name).read_bytes() for name in names]
    for name, figure in zip(names, figures, strict=True):
        (tmp_path / name).unlink()
        draw_to([figure], Look())
    assert [(tmp_path / name).read_bytes() for name in names] == together


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_picture_that_fails_says_why_whichever_core_draws_it(points, tmp_path, which):
    def fail():
        raise OSError(28, "No space left on device")

    results = points({})
    draws = [partial(PLOTS["link-traffic"].draw, results)] * 3
    draws[which] = fail
    with pytest.raises(OSError, match="No space left"):
        draw_to([({"svg": tmp_path / str(number)}, draw) for number, draw in enumerate(draws)], Look())


@pytest.mark.skipif(sys.platform != "linux" or os.cpu_count() == 1, reason="needs a second core, and Linux")
def test_pictures_are_drawn_on_two_cores(tmp_path):
    def note(number):
        (tmp_path / f"{number}").write_text(str(os.getpid()))
        wait_for(lambda: len({path.read_text() for path in tmp_path.glob("[0-9]")}) == 2)
        return Figure()

    targets = [({"svg": tmp_path / f"{number}.svg"}, partial(note, number)) for number in range(4)]
    draw_to(targets, Look())
    assert len({(tmp_path / f"{number}").read_text() for number in range(4)}) == 2


@pytest.mark.parametrize(
    ("largest", "quantity", "unit"),
    [
        (2**20, "bytes", "MiB"),
        (1023, "bytes", "B"),
        (0, "seconds", "ns"),
        (0.5, "seconds", "ms"),
        (1e9, "bytes_per_second", "GB/s"),
    ],
)
def test_an_axis_is_labelled_in_the_unit_that_makes_short_numbers(largest, quantity, unit):
    assert unit_for(largest, quantity).name == unit


@pytest.mark.parametrize(("first", "doublings"), [(0, 2), (1, 8), (16, 12), (19, 7), (10, 20), (3, 27), (0, 30)])
def test_sizes_stand_on_powers_of_two_as_many_as_can_be_read(first, doublings):
    ax = Figure(figsize=(4, 2)).add_subplot()
    ax.set_xscale("log", base=2)
    ax.set_xlim(2.0 ** (first - 0.3), 2.0 ** (first + doublings + 0.3))
    axes.logarithmic(ax.xaxis, "bytes", "message size")
    exponents = np.log2(ax.get_xticks())
    assert 3 <= len(exponents) <= 6
    assert exponents.tolist() == exponents.round().tolist()


def test_fourteen_numbers_of_workers_leave_some_ticks_to_read_by():
    ax = Figure().add_subplot()
    ax.set_xscale("log", base=2)
    workers = [2.0**power for power in range(1, 15)]
    ax.set_xlim(workers[0] / 2, workers[-1] * 2)
    axes.at_values(ax.xaxis, workers, "workers, N")
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        "2",
        "8",
        "32",
        "128",
        "512",
        "2048",
        "8192",
    ]
