"""Python as people use it: scenarios from keywords and dicts, results with pictures, studies as functions."""

from __future__ import annotations

import json
import pickle
from inspect import signature
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.figure import Figure

import ringnet
from ringnet import InputError, Scenario
from ringnet.api.progress import ProgressLine
from ringnet.documents.yaml_text import read_yaml
from ringnet.errors import ScheduleError
from ringnet.reporting.columns import RUN_TABLES

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "tests/data/logs"
LINK = {"bandwidth": "50 GB/s", "latency": "5 us"}
FOUR = {"scenario_version": 1, "workers": 4, "message": "4 KiB", "network": LINK}


@pytest.fixture
def four():
    return ringnet.scenario(workers=4, message="4 KiB", network=LINK)


@pytest.fixture
def exchange():
    """Two workers that swap what they have: a schedule that no algorithm of ringnet is."""
    step = ringnet.make_step(phase="reduce", step=0, src=[0, 1], dst=[1, 0], chunk=0)
    return ringnet.make_schedule("exchange", "all-reduce", n_workers=2, n_chunks=1, steps=[step])


# ------------------------------------------------------------------------------------------------- scenarios


def test_a_dict_is_the_scenario_that_its_yaml_is():
    for path in sorted((ROOT / "scenarios").glob("*.yaml")):
        data = {"name": path.stem} | read_yaml(path.read_text(), path.name)[0].data
        found = Scenario.from_dict(data, folder=path.parent)
        assert found.document() == ringnet.load(path).document(), path


@pytest.mark.parametrize(
    "change",
    [
        {"workers": 8.5},
        {"workers": True},
        {"network": {"bandwidth": 50, "latencyy": "5 us"}},
        {"message": "64 QB"},
        {"algorithm": {"name": "ring", "n_channels": 2}},
        {"sweep": {"over": {"wrkers": [2, 4]}}},
        {"collective": "broadcast", "weights": [1, 2]},
        {"data": "nowhere.npy"},
        {"report": {"plots": ["spacetime"]}},
        {"worker": {"exceptions": {"9": {"start": "1 us"}}}},
    ],
    ids=json.dumps,
)
def test_a_mistake_in_a_dict_is_told_as_in_a_file_without_the_line(change, tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump(FOUR | change))
    with pytest.raises(InputError) as of_file:
        ringnet.load(file)
    with pytest.raises(InputError) as of_dict:
        Scenario.from_dict(FOUR | change, folder=tmp_path)
    told = [str(fault).removeprefix(f"{fault.file}:{fault.line}: ") for fault in of_file.value.faults]
    assert sorted(map(str, of_dict.value.faults)) == sorted(told)


def test_what_yaml_could_not_hold_is_told_with_its_path():
    loop: dict[str, object] = {}
    loop["network"] = loop
    cases = {
        "weights: plain data is wanted; got set": {"weights": {1, 2}},
        "name: the text holds a character that is not text": {"name": "a\x00b"},
        "message: the key has no value": {"message": None},
        "network.5: the key is here twice": {"network": {5: 1, "5": 2}},
        "?: a key is a single word; got (1,)": {(1,): 2},
        'got True; right would be: "on", in quotation marks': {"background": [{True: "0->1"}]},
        "nested deeper than 20 levels": loop,
    }
    for text, data in cases.items():
        with pytest.raises(InputError) as error:
            Scenario.from_dict(FOUR | data)
        assert text in str(error.value)
    for nothing in (None, [FOUR], 3):
        with pytest.raises(InputError, match="a scenario is a mapping of keys"):
            Scenario.from_dict(nothing)


def test_what_is_no_path_or_text_is_told_what_takes_it(tmp_path):
    for call, told in ((ringnet.load, "no path"), (ringnet.loads, "no text")):
        for given in (FOUR, 5, None):
            with pytest.raises(InputError, match=rf"{told} of a scenario; .*Scenario.from_dict"):
                call(given)
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(FOUR))
    assert ringnet.load(tmp_path / "a.yaml", "workers=5").workers == 5


def test_numbers_of_numpy_tuples_and_paths_are_data(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 16), dtype=np.float32))
    data = {key: FOUR[key] for key in ("scenario_version", "network")}
    found = Scenario.from_dict(data | {"data": Path("x.npy")}, folder=tmp_path)
    assert (found.workers, found.message_bytes) == (4, 64)
    swept = Scenario.from_dict(FOUR | {"sweep": {"over": {"workers": np.array([2, 4]), "message": (4, 8)}}})
    assert swept.n_points == 4


def test_keys_are_replaced_one_by_one_and_together(four):
    assert four.replace("network.latency", "7 us").network.latency_s == 7e-6
    assert four.network.latency_s == 5e-6
    more = four.replace({"workers": 8, "network.links.3->4.bandwidth": "1 GB/s"})
    assert (more.workers, more.network.links["3->4"].bandwidth_Bps) == (8, 1e9)
    assert more.replace("network.links", None).document() == four.replace("workers", 8).document()


def test_a_key_that_is_replaced_is_swept_no_more_and_that_is_said(four):
    swept = four.replace("sweep.over.workers", [2, 3])
    assert (swept.n_points, repr(swept).endswith(", 2 points over workers>")) == (2, True)
    single = swept.replace("workers", 8)
    assert (single.sweep, single.workers) == (None, 8)
    assert "not swept, since a replacement gives workers" in single.notes[0]
    assert swept.points()[1].scenario.replace("message", "1 KiB").workers == 3


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("network.latency", "5 parsec", "network.latency: parsec is not a unit of a time; got 5 parsec"),
        ("netwrk.latency", "5 us", "netwrk: there is no such key; did you mean network?"),
        ("workers", None, "workers: the key is missing; right would be: workers: 8"),
        ("network.latency", {1}, "network.latency: plain data is wanted; got set"),
        ("", 1, 'a key is given by its path; right would be: replace("network.bandwidth"'),
        (3, 1, "a key is given by its path; got 3"),
    ],
)
def test_a_replacement_that_is_wrong_is_told_at_its_key(four, key, value, text):
    with pytest.raises(InputError) as error:
        four.replace(key, value)
    assert text in str(error.value)


def test_a_scenario_is_short_to_look_at_and_is_not_made_by_its_class(four):
    assert repr(four) == str(four) == "<Scenario scenario: ring all-reduce, 4 workers, 4 KiB, ring network>"
    assert not signature(Scenario).parameters
    assert next(iter(signature(ringnet.scenario).parameters)) == "schedule"
    with pytest.raises(InputError, match=r"read, not made; right would be: ringnet\.scenario"):
        Scenario(**FOUR)


# ------------------------------------------------------------------------------------------------------ runs


def test_scenario_path_and_dict_give_one_result(four, tmp_path):
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(FOUR))
    results = [ringnet.simulate(given) for given in (four, FOUR, file, str(file))]
    assert all(one.summary == results[0].summary for one in results)
    assert ringnet.run(FOUR, overrides=["workers=8"]).summary["n_workers"].tolist() == [8]


def test_a_schedule_of_ones_own_is_timed_and_its_sums_are_verified(exchange):
    result = ringnet.simulate(exchange, LINK, message="1 MiB", data="ramp", dtype="int64")
    assert result.summary["makespan_s"] == pytest.approx(5e-6 + 2**20 / 50e9, rel=1e-12, abs=0)
    assert (result.summary["algorithm"], result.summary["sum_ok"]) == ("exchange", True)
    assert result.summary["verified_elements"] == 2 * 2**17


def test_a_schedule_of_ones_own_is_told_from_another_of_its_name(exchange):
    twice = ringnet.make_schedule("exchange", "all-reduce", 2, 1, [*exchange.steps(), *_nothing(exchange)])
    one, other = (ringnet.scenario(each, network=LINK, message="1 MiB") for each in (exchange, twice))
    assert one.document() == other.document()
    assert one.key() != other.key()
    assert pickle.loads(pickle.dumps(one)).key() == one.key()


def _nothing(schedule):
    """A step more in which a worker tells the other what that knows already."""
    return [ringnet.make_step("copy", 1, [0], [1], 0)] if schedule.n_workers == 2 else []


def test_a_schedule_that_is_wrong_is_told(exchange):
    half = ringnet.make_schedule("half", "all-reduce", 2, 1, [ringnet.make_step("reduce", 0, [0], [1], 0)])
    with pytest.raises(ScheduleError, match="worker 0 ends chunk 0 without the contribution"):
        ringnet.simulate(half, LINK, message="1 MiB")
    with pytest.raises(InputError, match="workers: the schedule says this itself"):
        ringnet.simulate(exchange, LINK, message="1 MiB", workers=2)
    with pytest.raises(InputError, match="message: the key is missing"):
        ringnet.simulate(exchange, LINK)
    with pytest.raises(InputError, match="got all-reduce of 2 workers; right would be: all-reduce of 3"):
        ringnet.scenario(exchange, network=LINK, message="1 MiB").replace("workers", 3)


def test_a_sweep_is_for_run_and_that_is_said(four):
    swept = four.replace("sweep.over.workers", [2, 4])
    for function in (ringnet.simulate, ringnet.draw, ringnet.simulate_step):
        with pytest.raises(InputError, match=r"sweep: \w+ is for one run, .* ringnet\.run\(scenario\)"):
            function(swept)
    assert len(ringnet.run(swept).summary) == 2


def test_what_is_no_scenario_is_told(four):
    for function in (ringnet.simulate, ringnet.run, ringnet.compare, ringnet.blame, ringnet.draw):
        with pytest.raises(InputError, match="this is no scenario; got int"):
            function(3)
    with pytest.raises(InputError, match="workers: keys are given beside a Schedule only"):
        ringnet.simulate(four, workers=3)


# --------------------------------------------------------------------------------------------------- results


def test_a_result_draws_itself_on_a_figure_or_on_axes(four):
    result = ringnet.simulate(four)
    own = result.plot("space-time")
    assert isinstance(own, Figure)
    assert own._repr_png_()[:4] == b"\x89PNG"
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert result.plot("space-time", ax=left) is figure
    drawn = [own.axes[0], left]
    assert len({tuple(ax.get_xlim()) for ax in drawn}) == len({len(ax.collections) for ax in drawn}) == 1
    assert left.get_legend() is not None
    assert not right.has_data()


@pytest.mark.parametrize(
    ("name", "ax", "text"),
    [
        ("spacetime", None, "there is no such plot; got spacetime;"),
        ("time-vs-workers", None, "it needs a sweep over the number of workers"),
        ("space-time", 3, "ax: these are no axes; got int; right would be: axes of matplotlib"),
    ],
)
def test_a_picture_that_there_is_not_is_told(four, name, ax, text):
    with pytest.raises(InputError) as error:
        ringnet.simulate(four).plot(name, ax)
    assert text in str(error.value)


def test_a_plot_of_several_panels_has_a_figure_of_its_own(four):
    swept = ringnet.run(
        four.replace("sweep.over", {"network.latency": ["1 us", "9 us"], "worker.reduce_rate": ["1 GB/s", "9 GB/s"]})
    )
    assert len(swept.plot("time-vs-key").axes) == 2
    with pytest.raises(InputError, match="this plot has 2 panels"):
        swept.plot("time-vs-key", Figure().subplots())
    assert mpl.rcParams["font.size"] == mpl.rcParamsDefault["font.size"]


def test_a_result_goes_through_a_pickle_with_all_that_it_says(four):
    result = ringnet.simulate(four.replace({"message": "64 B", "report.tables": [*RUN_TABLES]}))
    again = pickle.loads(pickle.dumps(result))
    for name in {*RUN_TABLES} - {"summary", "runs"}:  # what is called runs here is what it was made from
        one, other = getattr(result, name), getattr(again, name)
        assert (one is None) == (other is None)
        if one is not None:
            pd.testing.assert_frame_equal(one, other)
    assert again.summary == result.summary
    np.testing.assert_array_equal(again.outputs()[0], result.outputs()[0])
    assert again.blame.table.equals(result.blame.table)


def test_text_is_of_one_type_in_memory_from_a_run_and_from_disk(four, tmp_path):
    result = ringnet.simulate(four)
    read = ringnet.read_results(result.save(tmp_path / "out", plots=False))
    for name in ("links", "workers", "transfers", "routes", "path", "utilisation"):
        pd.testing.assert_frame_equal(getattr(result, name), getattr(read, name))
    study = ringnet.blame(four).table
    assert {str(study[name].dtype) for name in ("kind", "name")} == {"object"}
    assert result.links["link"].dtype == object


def test_what_is_saved_is_what_the_command_writes(four, tmp_path, ringnet_command):
    saved = ringnet.simulate(four).save(tmp_path / "saved", plots=False)
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(FOUR))
    ringnet_command("run", str(file), "--out", str(tmp_path / "written"), "--no-plots")
    names = sorted(path.name for path in saved.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "written").iterdir())
    for name in names:
        assert (saved / name).read_bytes() == (tmp_path / "written" / name).read_bytes()


@pytest.fixture
def ringnet_command(request):
    return request.getfixturevalue("ringnet")


def test_a_page_is_one_file_that_says_the_answer_and_no_name_becomes_markup(four, tmp_path):
    page = ringnet.simulate(four.replace("name", "</script><b>")).to_html(tmp_path / "four.html")
    text = page.read_text()
    assert [*tmp_path.iterdir()] == [page]
    assert "30.12 us" in text
    assert "&lt;/script&gt;&lt;b&gt;" in text
    assert "</script><b>" not in text


# --------------------------------------------------------------------------------------------------- studies


def test_studies_are_functions_with_a_table_notes_and_a_picture(four):
    switch = four.replace("network.topology", "switch")
    compared = ringnet.compare(switch, ["ring", "direct"], workers=[4])
    assert set(compared.table["algorithm"]) == {"ring", "direct"}
    assert compared.notes[0].startswith("with 4 workers use direct")
    assert isinstance(compared.plot("winner-map"), Figure)
    blamed = ringnet.blame(four.replace("network.links.1->2.latency", "50 us"))
    assert blamed.table["name"][0] == "1->2"
    assert isinstance(blamed.plot(ax=Figure().subplots()), Figure)
    ranked = ringnet.whatif(four, ["network.latency=1 us", {"workers": 2, "message": "2 KiB"}]).table
    assert ranked["change"].tolist() == ["network.latency=1 us", "workers=2 and message=2 KiB", "today"]
    rounded = ringnet.numerics(four, "ring", dtypes="float16").table
    assert rounded[["algorithm", "dtype"]].to_numpy().tolist() == [["ring", "float16"]]
    assert isinstance(ringnet.draw(switch, "traffic-matrix"), Figure)


def test_a_study_shows_itself_in_a_notebook_and_no_name_becomes_markup(four):
    study = ringnet.whatif(four.replace("name", "<b>four</b>"), ["workers=8", "workers=4"])
    shown = study._repr_html_()
    assert "&lt;b&gt;four" in shown
    assert "<b>four" not in shown
    assert "workers=4 changes nothing" in shown
    assert repr(study) == "<Study whatif of <b>four</b>: 3 rows>"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda four: ringnet.compare(four, "rign"), "algorithms: there is no such algorithm; got rign"),
        (lambda four: ringnet.compare(four, []), "algorithms: no algorithm is named"),
        (lambda four: ringnet.compare(four, workers="8"), "workers: this is no number of workers; got '8'"),
        (lambda four: ringnet.compare(four, jobs=0), "no point can be run; got 0"),
        (lambda four: ringnet.whatif(four, "workers=8"), "changes are a list of them; got 'workers=8'"),
        (lambda four: ringnet.whatif(four, ["workers=x"]), "workers: a whole number is wanted; got x"),
        (
            lambda four: ringnet.numerics(four, dtypes="int32"),
            "there is no such floating-point type; got int32",
        ),
        (lambda four: ringnet.calibrate([]), "logs: no log is named"),
        (lambda four: ringnet.calibrate(LOGS / "osu.txt"), "does not say how many workers there were"),
        (lambda four: ringnet.predict(four, 4), "machine: this is no machine; got Scenario"),
        (lambda four: ringnet.predict(LOGS / "osu.txt", 4), "the text is not readable as YAML"),
    ],
)
def test_what_is_wrong_with_a_study_is_told(four, call, text):
    with pytest.raises(InputError) as error:
        call(four)
    assert text in str(error.value)


def test_a_machine_that_was_measured_foretells_times_also_from_disk(tmp_path, ringnet_command):
    machine = ringnet.calibrate(LOGS / "nccl-2019.txt", workers=8)
    assert (machine.table["measured_s"] > 0).all()
    assert machine.notes
    file = machine.save(tmp_path / "machine.yaml")
    predicted = ringnet.predict(machine, [16, 32], ["1 MiB", 2**24])
    from_disk = ringnet.predict(file, [32, 16], ["1 MiB", 2**24]).table
    pd.testing.assert_frame_equal(predicted.table, from_disk, rtol=1e-6)  # numbers on disk have their digits
    printed = json.loads(
        ringnet_command("predict", str(file), "--workers", "16,32", "--sizes", "1MiB,16MiB", "--json").stdout
    )
    assert [row["predicted_s"] for row in printed["predictions"]] == from_disk["predicted_s"].tolist()
    errors_below = 2
    assert len(machine.plot().axes) == errors_below
    (times,) = predicted.plot("prediction").axes
    assert {text.get_text() for text in times.texts} == {"N=4"}  # what was measured


# ------------------------------------------------------------------------------------------------- notebooks


def test_progress_is_one_line_that_comes_late_and_goes():
    now, shown = [0.0], []

    class Handle:
        def update(self, data, raw):
            shown.append(data["text/html"])

    def display(data, raw, display_id):
        shown.append(data["text/plain"])
        return Handle()

    line = ProgressLine("points", display, lambda: now[0])
    for now[0], done in ((0.1, 1), (1.0, 10), (1.1, 11), (2.0, 30)):
        line.update(done, 40)
    line.end()
    assert shown == [
        "points 10 of 40, 10 points/s, 3 s left",
        "points 30 of 40, 15 points/s, 670 ms left",
        "",
    ]


def test_nothing_is_shown_outside_of_notebooks(four, capsys):
    ringnet.run(four.replace("sweep.over.workers", [2, 4]), progress=True)
    ringnet.simulate(four, progress=True)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("question", "wrong", "told"),
    [
        ("numerics", {"dtypes": "float12"}, "dtypes: there is no such floating-point type; got float12"),
        ("numerics", {"dtypes": []}, "dtypes: no element type is named"),
        ("numerics", {"accumulate": "int8"}, "accumulate: there is no such floating-point type; got int8"),
        ("compare", {"jobs": 0}, "jobs: no point can be run; got 0"),
        ("compare", {"jobs": "x"}, "jobs: no point can be run; got x"),
        ("blame", {"most": 0}, "most: no simulation may be spent; got 0"),
        ("whatif", {"changes": ["workers"]}, "changes: an override is a path"),
        ("whatif", {"changes": ["workers=0"]}, "changes: workers: a whole number from 1"),
        ("whatif", {"changes": [3]}, "changes: changes are a list of them; got [3]"),
        ("whatif", {"changes": ["sweep.over.workers=[2, 3]"]}, "changes: a what-if is about one run"),
        ("calibrate", {"collective": "all"}, "collective: no model of this collective; got all"),
        ("calibrate", {"workers": 0}, "workers: this is no number of them; got 0"),
        ("calibrate", {"nodes": {"run.txt": 2}}, "got run.txt; right would be: 8, or {'nccl-2019.txt': 8}"),
    ],
)
def test_a_wrong_argument_is_told_by_its_name_not_by_that_of_an_option(four, question, wrong, told):
    with pytest.raises(InputError) as caught:
        getattr(ringnet, question)(LOGS / "nccl-2019.txt" if question == "calibrate" else four, **wrong)
    assert str(caught.value).startswith(f"{next(iter(wrong))}: ")
    assert told in str(caught.value)
    assert "--" not in str(caught.value)
