"""The page in a real browser: Debian's Chromium, driven by Playwright; one of them for all tests."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from ringnet.reporting.page.document import run_page, study_page
from ringnet.reporting.results import collect
from ringnet.runs.simulate import simulate
from ringnet.scenario import load
from ringnet.units import format_seconds
from tests.commands import PATIENCE_S

SCENARIOS = Path(__file__).parents[1] / "scenarios"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
#: No sandbox, for the tests run as root, too; and nothing that calls home.
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
#: Design, section 4: what each worker holds at the start, after each step, and in the end.
WORKED = [
    ([[1, 2, 3], [10, 20, 30], [100, 200, 300]], "ppp ppp ppp"),
    ([[1, 2, 303], [11, 20, 30], [100, 220, 300]], "ppp ppp ppp"),
    ([[1, 222, 303], [11, 20, 333], [111, 220, 300]], "pcp ppc cpp"),
    ([[111, 222, 303], [11, 222, 333], [111, 220, 333]], "ccp pcc cpc"),
    ([[111, 222, 333]] * 3, "ccc ccc ccc"),
]


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'ringnet[browser]'")
    if CHROMIUM is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Opened:
    """A page from disk, what its console said and what it asked for."""

    def __init__(self, browser, path, **options):
        self.said, self.asked = [], []
        self.page = browser.new_page(**options)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", timeout=1000 * PATIENCE_S)
        self.path = path

    def press(self, *keys):
        self.page.focus(".spacetime")
        for key in keys:
            self.page.keyboard.press(key)

    def frame(self):
        """Wait until what was asked for has been drawn."""
        self.page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")

    def cells(self, attribute=None):
        """The buffers: their words or an attribute, by worker and chunk."""
        read = "cell.textContent.split(' ')[0]" if attribute is None else f"cell.dataset.{attribute}"
        row = f"(row) => [...row.querySelectorAll('td')].map((cell) => {read})"
        return self.page.evaluate(f"() => [...document.querySelectorAll('.buffers tbody tr')].map({row})")

    def sent(self):
        """How many pixels of the diagram are of the colours of chunks: more transfers, more of them."""
        self.frame()
        return self.page.evaluate(
            """() => {
              const shown = document.querySelector(".spacetime");
              const { width, height } = shown;
              const copy = new OffscreenCanvas(width, height).getContext("2d");
              copy.drawImage(shown, 0, 0);
              const { data } = copy.getImageData(90, 12, width - 100, height - 60);
              let coloured = 0;
              for (let at = 0; at < data.length; at += 4) {
                const [red, green, blue, seen] = data.subarray(at, at + 4);
                coloured += seen > 0 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60;
              }
              return coloured;
            }"""
        )


@pytest.fixture(scope="module")
def opened(chromium, tmp_path_factory):
    """Open a page in a window of its own; it said nothing on the console and asked for nothing but itself."""
    made = []

    def opening(text, **options):
        path = tmp_path_factory.mktemp("page") / "report.html"
        path.write_text(text, encoding="utf-8")
        made.append(Opened(chromium, path, **options))
        return made[-1]

    yield opening
    for one in made:
        assert one.said == []
        assert one.asked == [one.path.as_uri()]


@pytest.fixture(scope="module")
def worked():
    return collect([simulate(load(SCENARIOS / "worked-example.yaml"))], {"scenario": {"name": "worked"}})


@pytest.fixture(scope="module")
def slow():
    scenario = load(SCENARIOS / "slow-link.yaml", ["payload=none"])
    return collect([simulate(scenario)], {"scenario": scenario.document()})


def test_the_cursor_goes_through_the_states_of_the_worked_example(worked, opened):
    shown = opened(run_page(worked, "."))
    ends = [0.0, *sorted(worked.transfers["applied_s"].unique())]
    for number, (values, states) in enumerate(WORKED):
        # Without overheads a step begins when the one before has ended: a moment for each.
        shown.press("ArrowRight" if number else "Home")
        assert shown.page.locator("output").inner_text().startswith(f"at {format_seconds(ends[number])} of")
        assert [[int(cell) for cell in row] for row in shown.cells()] == values
        initials = " ".join("".join(cell[0] for cell in row) for row in shown.cells("state"))
        assert initials == states
        moving = [cell for row in shown.cells("moving") for cell in row if cell]
        assert len(moving) == (0 if number == len(WORKED) - 1 else 6)  # three chunks leave, and come to three workers


def test_a_click_on_a_worker_a_phase_or_a_link_leaves_its_transfers(slow, opened):
    shown = opened(run_page(slow, "."))
    everything = shown.sent()
    canvas = shown.page.locator(".spacetime")
    canvas.click(position={"x": 30, "y": 8})
    assert shown.page.locator("input[data-filter=worker]").input_value() == "0"
    of_worker = shown.sent()
    canvas.click(position={"x": 30, "y": 8})
    assert shown.sent() == everything
    shown.page.click("button[data-phase=all-gather]")
    phase = shown.page.locator("select[data-filter=phase]")
    assert phase.evaluate("box => box.selectedOptions[0].text") == "all-gather"
    of_phase = shown.sent()
    shown.press("Escape")
    shown.page.fill("input[data-filter=link]", "3->4")
    of_link = shown.sent()
    assert 0 < of_worker < 0.6 * everything
    assert 0 < of_phase < 0.8 * everything
    assert 0 < of_link < everything
    shown.page.fill("input[data-filter=link]", "3->5")
    assert shown.page.locator("input[data-filter=link]").get_attribute("aria-invalid") == "true"
    assert shown.sent() == of_link


def test_the_network_names_a_link_under_the_pointer_and_a_click_chooses_it(slow, opened):
    shown = opened(run_page(slow, "."))
    box = shown.page.locator(".network").bounding_box()
    # Eight workers on a circle, clockwise from the top: the link from 0 to 1 is up to the right of the middle.
    scale, middle = box["height"] / 3.3, (box["width"] / 2, box["height"] / 2)
    radius = (3.3 / 2 - 0.2 - 0.12) * scale
    at = {"x": middle[0] + radius * 0.3536, "y": middle[1] - radius * 0.8536}
    bins = slow.utilisation[slow.utilisation["link"] == "0->1"]
    turns = int(bins["utilisation"].diff().abs().to_numpy()[1:].argmax()) + 1  # there both are unlike
    for row in bins.iloc[turns - 1 : turns + 1].itertuples():
        cursor = shown.page.locator(".cursor input")
        cursor.fill(str((row.from_s + row.to_s) / 2 / slow.transfers["applied_s"].max()))
        shown.page.locator("h1").hover()
        shown.page.locator(".network").hover(position=at)
        told = shown.page.locator("#tip").inner_text()
        assert told.startswith(f"0->1: {100 * row.utilisation:.4g} % busy at the cursor")
    shown.page.locator(".network").click(position=at)
    assert shown.page.locator("input[data-filter=link]").input_value() == "0->1"


def test_pointing_at_a_transfer_tells_all_about_it(slow, opened):
    shown = opened(run_page(slow, "."))
    row = shown.page.locator(".spacetime").bounding_box()["height"] - 24
    shown.page.locator(".spacetime").hover(position={"x": 120, "y": row * 4 / 9})  # between workers 3 and 4
    told = shown.page.locator("#tip").inner_text()
    assert "chunk 3, 2 MiB: worker 3 to worker 4" in told
    assert "over 3->4" in told


def test_tables_sort_both_ways_by_numbers_and_by_the_numbers_in_names(slow, opened):
    names = [f"{at}->{at + 1}" for at in range(8, 16)]
    links = slow.links.assign(link=names, busy_s=[3, 1, None, 2, 10, 0.5, 7, 4])
    shown = opened(run_page(replace(slow, links=links), "."))
    shown.page.click("details[data-table=links] summary")

    def column(at):
        cells = f"details[data-table=links] tbody td:nth-child({at})"
        return shown.page.eval_on_selector_all(cells, "cells => cells.map((cell) => cell.textContent)")

    head = shown.page.locator("details[data-table=links] th", has_text="busy_s")
    head.locator("button").click()
    assert column(8) == ["500 ms", "1 s", "2 s", "3 s", "4 s", "7 s", "10 s", ""]
    head.locator("button").click()
    assert column(8) == ["10 s", "7 s", "4 s", "3 s", "2 s", "1 s", "500 ms", ""]
    assert head.get_attribute("aria-sort") == "descending"
    shown.page.locator("details[data-table=links] th button").first.click()
    assert column(1)[:3] == ["8->9", "9->10", "10->11"]


def test_nothing_that_is_named_is_run_or_becomes_a_part_of_the_page(slow, opened):
    name = '</script><script>window.hacked=1</script>"><img src=x onerror=window.hacked=1>]]>\u2028'
    links = slow.links.assign(**{"link": [f"{name}{at}" for at in range(8)]})
    workers = slow.workers.assign(place=name)
    transfers = slow.transfers.assign(phase=name)
    tables = {"links": links, "workers": workers, "transfers": transfers}
    info = {"scenario": {name: name}, "notes": [name], "files": ["javascript:alert(1)"]}
    shown = opened(run_page(replace(slow, **tables, run_info=info), "."))
    shown.page.eval_on_selector_all("details", "folds => folds.forEach((fold) => (fold.open = true))")
    shown.page.click("button[data-phase]")
    shown.frame()
    assert shown.page.evaluate("window.hacked") is None
    assert shown.page.locator("img").count() == 0
    assert shown.page.locator("script").count() == 2
    assert "onerror=window.hacked=1" in shown.page.locator("details[data-table=links]").inner_text()


def test_a_sweep_and_a_comparison_have_curves_that_tell_each_point(opened, result):
    runs = [result(n, 100 * size, message_bytes=100 * size * n) for n in (2, 4) for size in (1, 10)]
    shown = opened(run_page(collect(runs, {"scenario": {}}), "."))
    assert shown.page.locator("#curves .point").count() == 4
    shown.page.locator("#curves .point").first.hover()
    assert "time 3 s" in shown.page.locator("#tip").inner_text()  # two steps of 100 bytes at 100 B/s, and 0.5 s
    rows = [
        {"n_workers": n, "message_bytes": size, "algorithm": name, "makespan_s": seconds, "algbw_Bps": 1.0}
        | {"busbw_Bps": 1.0, "bound_share": 0.5, "rank": 1, "guess": None}
        for n in (2, 4)
        for size, ring, tree in ((1024, 2.0, 1.0), (4096, 3.0, 4.0))
        for name, seconds in (("ring", ring), ("tree", tree))
    ]
    shown = opened(study_page({"scenario": {"name": "x"}}, {"compare": pd.DataFrame(rows)}, "."))
    assert shown.page.locator(".winners tbody").inner_text().split() == [
        "N",
        "=",
        "2",
        "B",
        "A",
        "N",
        "=",
        "4",
        "B",
        "A",
    ]
    shown.page.locator(".winners tbody td").first.hover()
    assert "use tree" in shown.page.locator("#tip").inner_text()


def test_the_quickstart_is_small_and_answers_within_a_second(opened):
    scenario = load(SCENARIOS / "quickstart.yaml", ["payload=none"])
    text = run_page(collect([simulate(scenario)], {"scenario": scenario.document()}), ".")
    assert len(text.encode()) < 1.5e6
    shown = opened(text)
    shown.press("ArrowRight")
    assert shown.page.locator("output").inner_text() == "at 168.3 us of 2.356 ms"


def test_paper_and_dark_screens_have_colours_of_their_own(worked, opened):
    shown = opened(run_page(worked, "."), color_scheme="dark")
    back = "getComputedStyle(document.body).backgroundColor"
    assert shown.page.evaluate(back) == "rgb(21, 24, 27)"
    shown.page.emulate_media(media="print")
    assert shown.page.evaluate(back) == "rgb(255, 255, 255)"
    assert shown.page.locator(".tools").is_hidden()
