"""Figures as they are asked for, the states of a worked example, and films."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from PIL import Image
from typer.testing import CliRunner

import ringnet
from ringnet.cli import app
from ringnet.errors import InputError
from ringnet.reporting import held
from ringnet.reporting.look import Look
from ringnet.reporting.plots import PLOTS, choose, film_to
from ringnet.reporting.plots.film import _Film
from ringnet.reporting.results import collect

NETWORK = "network: {topology: ring, bandwidth: 1 GB/s, latency: 1 us}"
EXAMPLE = "scenarios/worked-example.yaml"


def run(*arguments):
    """Run the command line in this process."""
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def example():
    """Results of the worked example, with its states."""
    return collect([ringnet.simulate(ringnet.load(EXAMPLE))], {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The worked example on disk, drawn as its scenario asks."""
    out = tmp_path_factory.mktemp("figures") / "out"
    figure = "{width: 4 in, dpi: 100, font: DejaVu Serif, format: [png, svg, pdf]}"
    changes = ["--set", f"report.figure={figure}", "--set", "report.plots=[space-time]"]
    changes += ["--set", "report.tables=[transfers, path]"]
    assert run("run", EXAMPLE, *changes, "--out", out, "--quiet").exit_code == 0
    return out


def run_of(algorithm, n_workers, more=""):
    text = f"{{scenario_version: 1, workers: {n_workers}, message: 1 MiB, payload: none, algorithm: {algorithm}, {more}"
    network = "network: {topology: switch, bandwidth: 50 GB/s, latency: 1 us}}"
    return collect([ringnet.simulate(ringnet.loads(text + network))], {})


# ------------------------------------------------------------------------------------- as they are asked for


def test_a_figure_is_as_wide_as_asked_for_in_the_dots_and_the_font_asked_for_and_text_stays_text(folder):
    assert {path.suffix for path in folder.glob("space-time.*")} == {".png", ".svg", ".pdf"}
    with Image.open(folder / "space-time.png") as picture:
        assert picture.width == 400
    drawing = (folder / "space-time.svg").read_text()
    assert 'width="288pt"' in drawing
    assert ">worked example</text>" in drawing
    assert "DejaVu Serif" in drawing
    paper = (folder / "space-time.pdf").read_bytes()
    assert b"DejaVuSerif" in paper
    assert b"/Subtype /Type3" not in paper  # outlines of letters; those of TrueType can be searched and edited
    assert b"CreationDate" not in paper


def test_a_plot_drawn_again_looks_as_its_scenario_asked_and_is_written_as_the_option_says(folder):
    before = (folder / "space-time.pdf").read_bytes()
    (folder / "space-time.svg").unlink()
    assert run("plot", folder, "--plot", "space-time", "--format", "pdf").exit_code == 0
    assert (folder / "space-time.pdf").read_bytes() == before
    assert not (folder / "space-time.svg").exists()


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        ("{width: 3.5}", "width needs its unit; got 3.5; right would be: 3.5 in"),
        ("{width: 90}", "width needs its unit; got 90; right would be: 90 mm"),
        ("{width: 9 px}", "px is not a unit of a width; got 9 px; right would be: 3.5 in or 9 cm"),
        ("{width: 9 CM}", "right would be: 9 cm"),
        ("{width: 1 in}", "2 to 20 inches wide; got 1 in"),
        ("{width: [9 cm]}", "a width is wanted"),
        ("{dpi: 10}", "from 50 to 1200"),
        ("{dpi: 300 in}", "a number is wanted"),
        ("{font: Dejavu Serf}", "no font of this name is installed; got Dejavu Serf"),
        ("{font: Dejavu Serf}", "did you mean DejaVu Serif"),
        ("{format: jpg}", "no such format of figures; got jpg; right would be: png, svg, pdf"),
        ("{format: [pdf, 3]}", "report.figure.format[1]"),
        ("{colour: red}", "there is no such key; got red"),
    ],
)
def test_a_wrong_wish_is_told_with_its_place_and_what_would_be_right(figure, said):
    text = f"scenario_version: 1\nworkers: 4\nmessage: 1 MiB\n{NETWORK}\nreport:\n  figure: {figure}\n"
    with pytest.raises(InputError, match=re.escape(said)) as error:
        ringnet.loads(text)
    assert all("6: report.figure" in str(fault) for fault in error.value.faults)


def test_a_figure_reads_back_as_it_was_written():
    text = f"{{scenario_version: 1, workers: 4, message: 1 MiB, {NETWORK}, report: {{figure: {{width: 89 mm}}}}}}"
    found = ringnet.loads(text)
    width = found.document()["report"]["figure"]["width"]
    assert ringnet.loads(text, [f"report.figure.width={width}"]).report.figure.look == found.report.figure.look
    assert found.report.figure.look.width_in == 89 / 25.4


def test_a_format_that_there_is_not_is_told():
    done = run("run", EXAMPLE, "--format", "pdf,jpg")
    assert done.exit_code == 2
    assert "--format: there is no such format of figures; got jpg; right would be: png, svg, pdf" in done.stderr


# ------------------------------------------------------------------------------------------------- states


def test_the_worked_example_is_drawn_as_the_exercise_has_it(example):
    """Section 4 of the design: values by hand, which chunks are complete, and which are sent next."""
    figure = PLOTS["states"].draw(example)
    names = [ax.get_title(loc="left") for ax in figure.axes if ax.get_visible()]
    assert names == [
        "start",
        "reduce-scatter, step 0",
        "reduce-scatter, step 1",
        "all-gather, step 0",
        "all-gather, step 1",
    ]
    tables = [[text.get_text() for text in ax.texts] for ax in figure.axes if ax.get_visible()]
    assert tables[0] == ["1", "2", "3", "10", "20", "30", "100", "200", "300"]
    assert tables[1] == ["1", "2", "303", "11", "20", "30", "100", "220", "300"]
    assert tables[2] == ["1", "222", "303", "11", "20", "333", "111", "220", "300"]
    assert tables[3] == ["111", "222", "303", "11", "222", "333", "111", "220", "333"]
    assert tables[4] == ["111", "222", "333"] * 3
    complete = [{text.get_text() for text in ax.texts if text.get_weight() == "bold"} for ax in figure.axes[:5]]
    assert complete == [set(), set(), {"111", "222", "333"}, {"111", "222", "333"}, {"111", "222", "333"}]
    sent = [{(int(box.get_x()), int(box.get_y())) for box in ax.patches if not box.get_fill()} for ax in figure.axes]
    assert sent[0] == {(0, 0), (1, 1), (2, 2)}  # worker i sends chunk i first
    assert sent[2] == {(1, 0), (2, 1), (0, 2)}  # and in all-gather the chunk that it has completed
    assert sent[4] == set()


def test_states_need_their_table_and_few_elements(example):
    assert choose(replace(example, states=None), ["states"])[0] == []
    many = example.states.assign(**{f"e{place}": 0.0 for place in range(3, 20)})
    (said,) = choose(replace(example, states=many), ["states"])[1]
    assert "at most 16 workers with 16 elements" in said


@pytest.mark.parametrize(
    ("algorithm", "n_workers"),
    [
        ("ring", 5),
        ("halving-doubling", 8),
        ("halving-doubling", 6),
        ("binary-tree", 7),
        ("swing", 8),
        ("direct", 4),
    ],
)
def test_who_holds_what_follows_from_the_table_for_every_algorithm(algorithm, n_workers):
    run = run_of(algorithm, n_workers)
    found = held.holding(run)
    now = found.first.copy()
    for one in held.sent(run.transfers, found):
        one.apply(now)
    assert (now == n_workers).all()
    assert held.holding(replace(run, transfers=run.transfers.iloc[:-1])) is None  # someone would miss a chunk


def test_a_chunk_that_is_an_element_longer_is_not_taken_for_two():
    text = "{scenario_version: 1, workers: 3, message: 64 B, algorithm: pipelined-ring, "
    network = "network: {topology: switch, bandwidth: 50 GB/s, latency: 1 us}}"
    run = collect([ringnet.simulate(ringnet.loads(text + network))], {})
    assert (held.holding(run).count == 1).all()


def test_where_switches_reduce_nobody_can_say_who_holds_what():
    text = "{scenario_version: 1, workers: 4, message: 1 MiB, payload: none, algorithm: nvls, "
    network = "network: {topology: switch, bandwidth: 50 GB/s, latency: 1 us, reduction: {}}}"
    run = collect([ringnet.simulate(ringnet.loads(text + network))], {})
    assert held.holding(run) is None
    assert "switches reduce" in film_to("unused.gif", run, Look())


# -------------------------------------------------------------------------------------------------- films


def test_a_chunk_moves_from_where_it_stands_to_where_it_goes_and_cells_say_what_they_hold(example):
    film = _Film(example)
    second_s = float(example.transfers["started_s"].iloc[3])
    film.show(second_s * 1.5)
    cells = [patch for patch in film._ax.patches if isinstance(patch, Rectangle)]
    moving = [cell for cell in cells if to_hex(cell.get_edgecolor()) == "#d55e00"]
    assert len(moving) == 3
    corners = film._workers[0].corners[2], film._workers[1].corners[2]  # worker 0 sends chunk 2 to worker 1
    assert any(np.allclose(cell.get_xy(), (corners[0] + corners[1]) / 2, atol=0.02) for cell in moving)
    assert [said.get_text() for said in film._workers[0].said] == ["1", "2", "303"]
    film.show(4.1e-6)
    assert [said.get_text() for worker in film._workers for said in worker.said] == ["111", "222", "333"] * 3
    assert film._caption.get_text().startswith("done")


def test_without_values_cells_count_the_parts_that_they_have():
    film = _Film(run_of("ring", 4))
    film.show(0.0)
    assert {said.get_text() for worker in film._workers for said in worker.said} == {"1"}
    film.show(1.0)
    assert {said.get_text() for worker in film._workers for said in worker.said} == {"4"}


def test_a_film_is_the_same_bytes_on_every_run_and_moves(example, tmp_path):
    for name in ("a.gif", "b.gif"):
        assert film_to(tmp_path / name, example, Look(width_in=2.0, dpi=50)) == ""
    assert (tmp_path / "a.gif").read_bytes() == (tmp_path / "b.gif").read_bytes()
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames > 20
        assert film.width == 100


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_with_ffmpeg_a_film_can_be_an_mp4(example, tmp_path):
    assert film_to(tmp_path / "a.mp4", example, Look(width_in=2.0, dpi=50)) == ""
    assert (tmp_path / "a.mp4").read_bytes()[4:8] == b"ftyp"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", EXAMPLE, "--animate", "a.avi"], "a film is a GIF or an MP4; got a.avi"),
        (["run", EXAMPLE, "--animate", "nowhere/a.gif"], "there is no such folder; got nowhere"),
        (["run", "scenarios/time-vs-workers.yaml", "--animate", "a.gif"], "for a single run"),
        (
            ["run", "scenarios/quickstart.yaml", "--set", "workers=17", "--animate", "a.gif"],
            "up to 16 workers; got 17",
        ),
    ],
)
def test_a_film_that_cannot_be_is_refused_before_anything_runs(arguments, said):
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_without_ffmpeg_an_mp4_is_refused_and_a_gif_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    done = run("run", EXAMPLE, "--animate", "a.mp4")
    assert done.exit_code == 2
    assert "made by ffmpeg, which is not here; got a.mp4; right would be: a.gif" in done.stderr
