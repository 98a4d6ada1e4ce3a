"""The page of results: what is packed, who holds what, and that nothing that is named can become markup."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from ringnet.collectives import ALGORITHMS
from ringnet.errors import ResultsError
from ringnet.reporting.atomic import PAGE
from ringnet.reporting.held import holdings
from ringnet.reporting.page.document import SCRIPT, run_page, static, study_page
from ringnet.reporting.page.packing import Packer
from ringnet.reporting.page.run import held_back
from ringnet.reporting.results import collect
from ringnet.reporting.storage import read_results, write_report, write_results

#: Names that would be something else than words, were they put into a page as they are.
HOSTILE = (
    "</script><script>alert(1)</script>",
    "]]><!--<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>'",
    "</style><style>*{display:none}",
    "line\u2028\u2029 \u202e end {title} &lt;",
)
ARRAYS = {"Uint8": "u1", "Uint16": "<u2", "Int32": "<i4", "Float64": "<f8"}


def unpacked(page):
    """What a browser unpacks: the header, and what gives the array that a part of it tells of."""
    text = re.search(r'<script type="application/octet-stream" id="data">([^<]*)</script>', page)[1]
    whole = zlib.decompress(b64decode(text))
    length = int.from_bytes(whole[:4], "little")

    def array(told):
        return np.frombuffer(whole, ARRAYS[told["type"]], told["length"], 4 + length + told["at"])

    return json.loads(whole[4 : 4 + length]), array


class Tags(HTMLParser):
    """Tags and attributes of a page, as a browser sees them."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def page_of(run, tables=(), folder=".", **info):
    """The page of a run in which some tables are others."""
    found = collect([run], {"scenario": {"name": run.summary["name"]}} | info)
    return run_page(replace(found, **dict(tables)), folder)


# ------------------------------------------------------------------------------------------- who holds what


def followed(schedule, case, chunk_bytes=8):
    """What holdings says of a schedule that ran on a switch."""
    built = case(schedule.n_workers, chunk_bytes, schedule=schedule, topology="switch")
    rows = pd.DataFrame(built.run().transfers)
    n_bytes = int(built.chunk_bytes.sum()) // schedule.n_buffers
    return holdings(rows, schedule.collective, schedule.n_workers, n_bytes, 1), rows


def test_the_worked_example_carries_one_contribution_then_two_then_all_three(case):
    found, rows = followed(ALGORITHMS["ring"].build(3, "all-reduce"), case)
    assert found.complete == 3
    assert found.first.tolist() == [[1, 1, 1]] * 3
    carried = rows.assign(carried=found.carried).groupby(["phase", "step"], sort=False)["carried"]
    assert carried.unique().map(list).tolist() == [[1], [2], [3], [3]]


@pytest.mark.parametrize("n_workers", [3, 8])
def test_every_algorithm_leads_to_what_its_collective_promises(n_workers, case):
    refused = []
    for name, algorithm in ALGORITHMS.items():
        for collective in algorithm.collectives:
            try:
                schedule = algorithm.build(n_workers, collective)
            except Exception:
                continue
            if not schedule.n_switches:
                found, _ = followed(schedule, case)
                refused += [(name, collective)] * isinstance(found, str)
    assert refused == []


def test_rows_that_do_not_lead_to_the_sum_are_told_and_not_shown(case):
    _, rows = followed(ALGORITHMS["ring"].build(4, "all-reduce"), case)
    for wrong in (rows.iloc[1:], rows.assign(op="copy"), rows.assign(chunk=0), rows.iloc[::-1]):
        assert "cannot be told" in holdings(wrong, "all-reduce", 4, 32, 1)


def test_more_cells_than_anybody_looks_at_are_not_made(case):
    _, rows = followed(ALGORITHMS["ring"].build(4, "all-reduce"), case)
    far = rows.assign(src=rows["src"].where(rows.index > 0, 10**9))
    assert "too many" in holdings(far, "all-reduce", 4, 32, 1)


# -------------------------------------------------------------------------------------------------- packing


def test_a_table_comes_out_of_the_page_as_it_went_in(result):
    run = result(4, 300, latency_s=0.25)
    header, array = unpacked(page_of(run))
    columns = {one["name"]: one for one in header["tables"]["transfers"]["columns"]}
    assert [*columns] == [*run.transfers.columns]
    for name, one in columns.items():
        cells = array(one["array"])
        back = [one["values"][code] for code in cells] if "values" in one else cells.tolist()
        assert back == run.transfers[name].tolist()
    assert columns["src"]["array"]["type"] == "Uint8"
    assert columns["applied_s"]["meaning"] == "the receiver had reduced or copied it"


def test_empty_cells_and_truths_are_packed():
    frame = pd.DataFrame({"sum_ok": pd.array([True, pd.NA], "boolean"), "seed": pd.array([pd.NA, 7], "Int64")})
    packer = Packer()
    truth, seed = packer.table("summary", frame)["columns"]
    assert truth["values"] == ["true", ""]
    assert seed["array"]["type"] == "Float64"


def test_a_hundred_thousand_transfers_whose_times_all_differ_fit(result):
    run, rng, n = result(8), np.random.default_rng(1), 100_000
    columns = {name: rng.integers(0, 224, n) for name in ("step", "src", "dst", "chunk")}
    times = np.sort(rng.random((5, n)), axis=0)
    columns |= {
        name: times[row] for row, name in enumerate(("posted_s", "started_s", "sent_s", "arrived_s", "applied_s"))
    }
    rows = pd.DataFrame(columns).assign(phase="reduce-scatter", channel=0, op="reduce", bytes=4096)
    page = page_of(run, {"transfers": rows})
    assert unpacked(page)[0]["tables"]["transfers"]["rows"] == n
    assert len(page) < 8e6


def test_more_transfers_than_are_drawn_become_shares_of_time(result, monkeypatch):
    monkeypatch.setattr("ringnet.reporting.page.run.MOST_TRANSFERS", 10)
    run = result(3, 300, latency_s=0.0)  # each worker sends all of the time
    header, array = unpacked(page_of(run))
    assert header["schedule"] is None
    assert "transfers" not in header["tables"]
    shares = array(header["lanes"]["shares"]).reshape(2, 3, -1)
    half = shares.shape[2] // 2
    assert shares[0, :, : half - 1].min() == shares[1, :, half + 1 :].min() == 255
    assert shares[0, :, half + 1 :].max() == shares[1, :, : half - 1].max() == 0
    assert header["lanes"]["phases"] == ["reduce-scatter", "all-gather"]


# ------------------------------------------------------------------------------------------------- the page


def test_the_page_says_the_answer_the_path_and_where_the_files_are(result):
    run = result(4, 300, latency_s=0.25)
    page = page_of(run, folder="../reports/my run", files=["summary.csv", "a b:c.csv"])
    tags = Tags(page).found
    assert "<td>19.5 s</td>" in page  # by hand: six steps, each of 300 bytes at 100 B/s and 0.25 s
    assert [attrs["href"] for tag, attrs in tags if tag == "a"] == [
        "./../reports/my%20run/summary.csv",
        "./../reports/my%20run/a%20b%3Ac.csv",
    ]


def test_what_the_path_is_made_of_is_told_by_part_with_whose_it_is(result):
    path = result(4, 300, latency_s=0.25, links={}).path
    bandwidth, latency = held_back(path)
    assert (bandwidth.part, latency.part) == ("bandwidth", "latency")
    assert bandwidth.share + latency.share == pytest.approx(1)
    assert latency.seconds == pytest.approx(6 * 0.25)


def test_the_policy_names_the_script_and_the_style_and_nothing_else_may_run(result):
    page = page_of(result(3))
    policy = next(attrs["content"] for tag, attrs in Tags(page).found if attrs.get("http-equiv"))
    for tag, kind in (
        ("script-src", r'<script type="module">(.*?)</script>'),
        ("style-src", "<style>(.*?)</style>"),
    ):
        (inside,) = re.findall(kind, page, re.DOTALL)
        digest = b64encode(sha256(inside.encode()).digest()).decode()
        assert f"{tag} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert not any(name.startswith("on") or name == "style" for _, attrs in Tags(page).found for name in attrs)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_of_a_scenario_becomes_markup(name, result):
    run = result(3, name=name)
    links = run.links.assign(**{"link": [f"{name}{at}" for at in range(3)], "from": name})
    info = {"files": [name.replace("/", "")], "notes": [name], "scenario": {"name": name, name: [name]}}
    harmless = [tag for tag, _ in Tags(page_of(result(3), files=["x"], notes=["y"])).found]
    hostile = Tags(page_of(run, {"links": links}, **info))
    assert [tag for tag, _ in hostile.found] == harmless


def test_the_script_holds_nothing_that_would_end_it():
    text = "".join(map(static, SCRIPT))
    assert "</" not in text
    assert "<!--" not in text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(|XMLHttp", text)


# -------------------------------------------------------------------------------------- read back from disk


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"applied_s": np.inf}, "line 3: applied_s"),
        ({"started_s": -1.0}, "line 3: started_s"),
        ({"sent_s": np.nan}, "line 3: sent_s"),
        ({"chunk": -1}, "line 3: chunk"),
        ({"src": 0.5}, "line 3: src"),
    ],
)
def test_rows_that_no_run_writes_are_refused_with_their_line(cells, says, result, tmp_path):
    run = result(3, 300)
    rows = run.transfers.copy()
    for name, value in cells.items():
        rows[name] = rows[name].astype(object)
        rows.loc[1, name] = value
    with pytest.raises(ResultsError) as caught:
        page_of(run, {"transfers": rows})
    fault = caught.value.faults[0]
    assert f"line {fault.line}: {fault.path}" == says


@pytest.mark.parametrize("name", ["n_workers", "message_bytes", "verified_elements"])
@pytest.mark.parametrize("value", [-1, 0.5, np.inf, 1e30])
def test_counts_that_no_run_has_are_refused_with_their_place(name, value, result):
    summary = collect([result(3)], {}).summary.assign(**{name: value})
    with pytest.raises(ResultsError, match=f"summary.csv:2: {name}: no run writes this"):
        page_of(result(3), {"summary": summary})


def test_a_comparison_with_gaps_has_curves_and_no_map():
    rows = pd.DataFrame({"n_workers": 2, "message_bytes": [1, 2], "algorithm": ["ring", "tree"]})
    rows = rows.assign(makespan_s=1.0, algbw_Bps=1.0, busbw_Bps=1.0, bound_share=0.5, rank=1, guess=None)
    header, _ = unpacked(study_page({"scenario": {}}, {"compare": rows}, "."))
    assert header["winners"] is None
    assert [line["label"] for line in header["charts"][0]["lines"]] == ["ring", "tree"]


def test_a_name_of_a_node_may_be_anything(result):
    run = result(3)
    long = run.links.assign(**{"from": ["x" * 300, "1" * 5000, "\u0663"]})
    assert "more than 200 signs" in page_of(run, {"links": long})


@pytest.mark.parametrize(
    ("run_info", "says"),
    [
        ({"scenario": {"report": {"tables": ["summary", "links"]}}}, "leaves transfers out"),
        ({"scenario": {}}, "transfers were not kept: run it again with --transfers all"),
    ],
)
def test_a_page_without_transfers_says_why(run_info, says, result):
    page = page_of(result(3), {"transfers": None}, **run_info)
    assert says in page
    assert unpacked(page)[0]["schedule"] is None


def test_a_page_of_one_worker_says_that_nothing_moved(result):
    assert "Nothing moved" in page_of(result(1))


def test_a_page_is_a_part_of_its_folder(result, tmp_path):
    folder = tmp_path / "run"
    written = write_results(folder, [result(3, 300)], {"scenario": {"name": "x"}}, plots=(), page=folder / PAGE)
    assert PAGE in written.files
    before = (folder / PAGE).read_text()
    assert 'href="./transfers.csv"' in before
    assert PAGE not in [attrs.get("href", "")[2:] for _, attrs in Tags(before).found]
    assert write_report(folder) == folder / PAGE
    assert (folder / PAGE).read_text() == before  # read back, it is the same to the byte
    assert PAGE in read_results(folder).run_info["files"]


def test_a_page_elsewhere_leads_to_the_folder_and_leaves_it_alone(result, tmp_path):
    folder = tmp_path / "run"
    write_results(folder, [result(3, 300)], {"scenario": {"name": "x"}}, plots=(), page=tmp_path / "p.html")
    assert 'href="./run/transfers.csv"' in (tmp_path / "p.html").read_text()
    assert PAGE not in read_results(folder).run_info["files"]


def test_the_command_takes_a_folder_and_a_name_and_refuses_what_is_neither(ringnet, own_folder):
    (own_folder / "ring.yaml").write_text(
        "{scenario_version: 1, workers: 3, message: 36 B, network: {bandwidth: 1 GB/s, latency: 1 us}}"
    )
    run = ("run", "ring.yaml", "--no-plots", "--quiet")
    for arguments, right in (
        (("--html=page.txt",), "ends in .html"),
        (("--html", "none/page.html"), "no such folder"),
        (("--html", "reports/ring/page.html"), "report.html"),
    ):
        refused = ringnet(*run, *arguments)
        assert (refused.exit_code, right in refused.stderr) == (2, True), refused.stderr
    assert not (own_folder / "reports").exists()
    assert ringnet("run", "--html", "ring.yaml", "--no-plots").exit_code == 0  # what follows is no page
    assert (own_folder / "reports/ring/report.html").is_file()
    assert ringnet(*run, "--html", "page.html").exit_code == 0
    assert not (own_folder / "reports/ring/report.html").exists()
    assert 'href="./reports/ring/run.json"' in (own_folder / "page.html").read_text()
    written = ringnet("report", "reports/ring")
    assert written.stdout.startswith("written  reports/ring/report.html, ")
    assert ringnet("report", "ring.yaml").exit_code == 2
    changed = ("--if", "network.latency=1 us")
    for command, *own in (
        ("compare", "--algorithms", "ring"),
        ("blame", "--most", "9"),
        ("whatif", *changed),
    ):
        study = (command, "ring.yaml", *own, "--no-plots", "--quiet")
        assert ringnet(*study, "--html=page.txt").exit_code == 2
        assert ringnet(*study, "--html").exit_code == 0
        assert f"{command}.csv" in (own_folder / f"reports/ring-{command}/report.html").read_text()
    assert ringnet(*run).exit_code == 0  # a folder with its page is still one that may be replaced
