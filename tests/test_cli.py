"""The command line: answers on standard output, words on standard error, and exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ringnet.cli.run as running
from ringnet.cli import COMMANDS
from ringnet.cli.printing import has_colour
from ringnet.payload.tamper import Tamper
from ringnet.reporting.columns import TABLES
from tests.commands import FOLDER, SINGLE, is_refused, written

pytestmark = pytest.mark.usefixtures("sketched")  # what figures look like is tested elsewhere

ROOT = Path(__file__).parent.parent
HEAVY = ("matplotlib", "networkx", "numpy", "pandas", "pydantic", "rich", "scipy", "simpy", "yaml")


@pytest.fixture(autouse=True)
def here(own_folder):
    """Every command runs in an empty folder but for a scenario."""
    (own_folder / "ring.yaml").write_text(SINGLE)


real = running.simulate


def process(*arguments, **options):
    """Run the command line as a process of its own."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([sys.executable, "-m", "ringnet", *arguments], text=True, check=False, **options)


# ------------------------------------------------------------------------------------------ before commands


def test_the_version_is_said_in_every_way(ringnet):
    assert ringnet("--version").stdout == process("--version").stdout
    script = Path(sys.executable).with_name("ringnet")
    if script.exists():
        assert subprocess.check_output([script, "--version"], text=True) == ringnet("--version").stdout


def test_help_names_every_command(ringnet):
    shown = ringnet("--help").stdout
    lines = " ".join(shown.split())
    assert all(f"{command} {line}" in lines for command, line in COMMANDS.items())
    assert "ringnet init" in ringnet().stderr + ringnet().stdout  # what to do first, where nothing is said


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_of_its_own_in_words_of_a_person(ringnet, command):
    result = ringnet(command, "-h")
    assert result.exit_code == 0
    assert result.stdout == ringnet(command, "--help").stdout
    usage = result.stdout.partition("\n")[0]
    assert usage.startswith(f"Usage: ringnet {command}")
    assert not set(usage) & set("{}<>")
    assert "<path>" not in result.stdout
    assert "<list" not in result.stdout


def test_the_table_of_commands_has_every_command():
    table = (ROOT / "docs" / "reference" / "commands.md").read_text().partition("\n\n`ringnet --version`")[0]
    assert {*re.findall(r"`(?:ringnet )?([a-z]+)`", table)} == {*COMMANDS}


def test_help_imports_nothing_heavy():
    code = "import sys; sys.argv = ['ringnet', '--help']; from ringnet.cli import main\n"
    code += "try: main()\nfinally: print('loaded', *{name.partition('.')[0] for name in sys.modules})"
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert not set(shown.rpartition("loaded")[2].split()) & set(HEAVY)


def test_a_shell_can_complete(ringnet):
    typed = {"_RINGNET_COMPLETE": "complete_bash", "COMP_WORDS": "ringnet ru", "COMP_CWORD": "1"}
    assert ringnet(prog_name="ringnet", env=typed).stdout == "run\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["run"], "Missing argument 'SCENARIO'"),
        (["run", "ring.yaml", "--ot", "x"], "No such option: --ot"),
        (["run", "ring.yaml", "--jobs", "0"], "--jobs"),
        (["run", "ring.yaml", "--jobs", "two"], "--jobs"),
    ],
)
def test_a_wrong_call_says_how_to_call(ringnet, arguments, words):
    assert is_refused(ringnet(*arguments), "Usage:", words)


# ------------------------------------------------------------------------------------------------ one run


def test_a_run_answers_first_and_writes_tables_and_plots(ringnet):
    result = ringnet("run", "ring.yaml")
    assert result.exit_code == 0
    lines = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert [*lines][:3] == ["time", "algbw", "busbw"]
    assert lines["time"].strip() == "4.048 us"
    assert "right" in lines["sum"]
    assert str(FOLDER) in lines["written"]
    assert {"summary.csv", "links.csv", "workers.csv", "transfers.csv", "run.json", "space-time.png"} <= {*written()}
    assert result.stderr == ""


def test_json_is_one_object_with_the_columns_of_the_summary():
    result = process("run", "ring.yaml", "--json", "--no-plots")
    row = json.loads(result.stdout)
    assert [*row] == [*TABLES["summary"]]
    assert row["makespan_s"] == pytest.approx(4.048e-6)
    assert row["sum_ok"] is True
    assert (result.returncode, result.stderr) == (0, "")
    summary = pd.read_csv(FOLDER / "summary.csv")
    assert summary["makespan_s"][0] == row["makespan_s"]


def test_json_has_null_where_there_is_no_number(ringnet, simulated):
    def endless(scenario):
        result = real(scenario)
        return replace(result, summary=result.summary | {"max_abs_error": np.float64("nan"), "algbw_Bps": np.inf})

    simulated(endless)
    row = json.loads(ringnet("run", "ring.yaml", "--json", "--no-plots").stdout)
    assert (row["max_abs_error"], row["algbw_Bps"]) == (None, None)


def test_one_worker_moves_nothing(ringnet):
    row = json.loads(ringnet("run", "ring.yaml", "--json", "--set", "workers=1").stdout)
    assert row["makespan_s"] == 0
    assert row["algbw_Bps"] is row["bound_share"] is row["latency_share"] is None


def test_quiet_says_nothing(ringnet):
    result = ringnet("run", "ring.yaml", "--quiet", "--set", "payload=none", "--jobs", "2")
    assert (result.exit_code, result.output) == (0, "")
    assert "summary.csv" in written()


def test_notes_go_to_standard_error(ringnet):
    result = ringnet("run", "ring.yaml", "--json", "--set", "payload=none", "--no-plots")
    assert json.loads(result.stdout)["payload"] == "none"
    assert "Note: seed: left out" in result.stderr
    assert "seed: left out" in json.loads((FOLDER / "run.json").read_text())["notes"][0]


@pytest.mark.parametrize("command", ["diff", "check", "calibrate"])
def test_a_name_with_a_newline_is_told_in_one_line(ringnet, command):
    result = ringnet(command, *["a\nb"] * (1 + (command == "diff")))
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: a\\nb: ")
    assert result.stderr.count("\n") == 1


def test_output_that_is_no_terminal_has_no_colours(ringnet):
    for arguments in (["run", "ring.yaml", "--no-plots"], ["--help"], ["check", "gone.yaml"], ["rnu"]):
        result = ringnet(*arguments, color=True)  # what is said is shown as it is
        assert "\x1b" not in result.stdout + result.stderr


def test_colours_are_where_a_terminal_is_or_somebody_wants_them(ringnet, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal, pipe = (type("Stream", (), {"isatty": lambda self, is_one=one: is_one})() for one in (True, False))
    assert (has_colour(terminal), has_colour(pipe)) == (True, False)
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colour(terminal)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert has_colour(pipe)
    assert process("check", "ring.yaml").stdout.startswith("\x1b[1mscenario\x1b[0m   two rings & a bell: no mistakes\n")
    assert ringnet("check", "gone.yaml", color=True).stderr.startswith("\x1b[1;31mError:\x1b[0m gone.yaml: ")
    monkeypatch.setenv("NO_COLOR", "1")
    assert (has_colour(terminal), has_colour(pipe)) == (False, False)
    assert ringnet("check", "ring.yaml", color=True).stdout.startswith("scenario   two rings & a bell: no mistakes\n")


def test_no_line_of_a_list_runs_over(ringnet):
    shown = ringnet("list").stdout + ringnet("list", "links").stdout + ringnet("list", "columns").stdout
    assert max(map(len, shown.splitlines())) <= 140


def test_plots_are_left_out_on_request(ringnet):
    ringnet("run", "ring.yaml", "--no-plots")
    assert written() == [
        "links.csv",
        "path.csv",
        "routes.csv",
        "run.json",
        "summary.csv",
        "transfers.csv",
        "utilisation.csv",
        "workers.csv",
    ]


def test_the_scenario_says_which_tables_and_plots(ringnet):
    ringnet("run", "ring.yaml", "--set", "report={tables: [links], plots: [link-traffic]}", "--out", "there")
    assert {path.name for path in Path("there").iterdir()} == {
        "link-traffic.png",
        "link-traffic.svg",
        "links.csv",
        "run.json",
        "summary.csv",
    }


def test_a_folder_with_other_results_is_replaced_whole(ringnet):
    ringnet("run", "ring.yaml", "--out", "there")
    ringnet("run", "ring.yaml", "--out", "there", "--no-plots", "--set", "seed=2")
    names = {path.name for path in Path("there").iterdir()}
    tables = {f"{name}.csv" for name in ("summary", "links", "workers", "transfers", "path", "routes", "utilisation")}
    assert names == {*tables, "run.json"}
    assert pd.read_csv("there/summary.csv")["seed"][0] == 2


def test_a_folder_with_anything_else_is_refused_before_the_run(ringnet, simulated):
    simulated(lambda scenario: pytest.fail("it ran"))
    Path("there").mkdir()
    Path("there/thesis.txt").write_text("mine")
    assert is_refused(ringnet("run", "ring.yaml", "--out", "there"), "thesis.txt")
    assert Path("there/thesis.txt").read_text() == "mine"


def test_every_mistake_is_told_at_once(ringnet):
    Path("wrong.yaml").write_text(SINGLE.replace("1 GB/s", "1").replace("workers: 3", "wrokers: 3"))
    result = ringnet("run", "wrong.yaml", "--set", "dtype=float31", "--json")
    assert is_refused(
        result, "wrong.yaml:7: network.bandwidth", "wrokers", "did you mean workers", "did you mean float32"
    )
    assert result.stderr.count("Error: ") == 3  # a misspelt key is not also told as missing


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"a: [", b"- 1\n"])
def test_what_is_no_scenario_is_refused(ringnet, content):
    Path("odd.yaml").write_bytes(content)
    assert is_refused(ringnet("run", "odd.yaml"), "odd.yaml")


def test_a_file_that_is_not_there(ringnet):
    assert is_refused(ringnet("run", "gone.yaml"), "gone.yaml", "No such file")


def test_a_run_that_cannot_finish_says_who_waits(ringnet):
    result = ringnet("run", "ring.yaml", "--set", "worker.exceptions={1: {start: never}}")
    assert is_refused(result, "worker 2 waits for worker 1", code=3)


def test_a_wrong_sum_is_told_and_its_tables_are_written(ringnet, simulated):
    simulated(lambda scenario: real(scenario, tamper=Tamper("flip", 1, 0, 3)))
    result = ringnet("run", "ring.yaml", "--json", "--no-plots", "--save-result", "sum.npy")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["sum_ok"] is False
    assert all(word in result.stderr for word in ("worker", "chunk 0", "element 0", "got", "expected"))
    assert "summary.csv" in written()
    assert not Path("sum.npy").exists()


def test_a_bug_is_called_one(ringnet, simulated):
    simulated(lambda scenario: {}["chunk"])
    assert is_refused(
        ringnet("run", "ring.yaml"), "bug in ringnet: KeyError: 'chunk'", "report", "RINGNET_DEBUG=1", code=1
    )


@pytest.mark.parametrize("way", [["--debug"], []])
def test_a_bug_shows_where_it_is_on_request(ringnet, simulated, way, monkeypatch):
    monkeypatch.setenv("RINGNET_DEBUG", "" if way else "1")
    simulated(lambda scenario: {}["chunk"])
    result = ringnet(*way, "run", "ring.yaml")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "test_cli.py" in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "stopped"),
        (MemoryError(), 2, "out of memory"),
        (OSError(28, "No space left on device", "disk"), 2, "disk: No space left on device"),
    ],
)
def test_what_ends_a_run_from_outside(ringnet, simulated, error, code, said):
    def end(scenario):
        raise error

    simulated(end)
    assert is_refused(ringnet("run", "ring.yaml"), said, code=code)


# -------------------------------------------------------------------------------------- options of one run


def test_the_result_is_saved(ringnet):
    np.save("x.npy", np.arange(12, dtype=np.int64).reshape(3, 2, 2))
    Path("own.yaml").write_text("{scenario_version: 1, data: x.npy, network: {bandwidth: 1 GB/s, latency: 0 s}}")
    result = ringnet("run", "own.yaml", "--save-result", "sum.npy")
    assert "sum.npy" in result.stdout
    assert np.load("sum.npy").tolist() == [[12, 15], [18, 21]]
    ringnet("run", "own.yaml", "--save-result", "parts", "--set", "collective=reduce-scatter")
    assert sorted(path.name for path in Path("parts").iterdir()) == [
        "worker-0.npy",
        "worker-1.npy",
        "worker-2.npy",
    ]


@pytest.mark.parametrize("payload", ["none", "{elements: 2}"])
def test_a_result_that_is_not_carried_cannot_be_saved(ringnet, payload):
    result = ringnet("run", "ring.yaml", "--set", f"payload={payload}", "--save-result", "sum.npy")
    assert is_refused(result, "--save-result", "payload: full")


@pytest.mark.parametrize(("kept", "is_there"), [("all", True), ("12", True), ("11", False)])
def test_rows_of_transfers_are_kept_up_to_a_number(ringnet, kept, is_there):
    result = ringnet("run", "ring.yaml", "--transfers", kept, "--no-plots")
    assert ("transfers.csv" in written()) == is_there
    assert ("transfer rows, and when links were busy, are left out" in result.stderr) != is_there
    assert "path.csv" in written()


@pytest.mark.parametrize("option", [["--jobs", "2"], ["--fresh"], ["--cache", "there"]])
def test_an_option_of_sweeps_is_not_silently_ignored(ringnet, option):
    result = ringnet("run", "ring.yaml", "--no-plots", *option)
    assert result.exit_code == 0
    assert f"Note: {option[0]} is not used: this scenario is a single run" in result.stderr


def test_a_single_run_has_no_use_for_a_cluster(ringnet):
    assert is_refused(ringnet("run", "ring.yaml", "--cluster", "tcp://127.0.0.1:9"), "--cluster", "a sweep")


def test_files_outside_are_read_on_request_only(ringnet):
    np.save("x.npy", np.ones((2, 4), dtype=np.float32))
    Path("below").mkdir()
    text = "{scenario_version: 1, data: ../x.npy, network: {bandwidth: 1 GB/s, latency: 0 s}}"
    Path("below/own.yaml").write_text(text)
    assert is_refused(ringnet("run", "below/own.yaml"), "outside", "--allow-outside")
    assert ringnet("run", "below/own.yaml", "--allow-outside", "--no-plots").exit_code == 0


def test_results_can_be_run_again(ringnet):
    ringnet("run", "ring.yaml", "--out", "first", "--no-plots")
    Path("ring.yaml").unlink()
    for source in ("first", "first/run.json"):
        assert ringnet("run", source, "--out", "again", "--no-plots").exit_code == 0
        for name in ("summary.csv", "transfers.csv", "run.json"):
            assert Path("again", name).read_bytes() == Path("first", name).read_bytes()


def test_results_of_files_know_where_these_are(ringnet):
    np.save("x.npy", np.ones((2, 4), dtype=np.float32))
    Path("own.yaml").write_text("{scenario_version: 1, data: x.npy, network: {bandwidth: 1 GB/s, latency: 0 s}}")
    ringnet("run", "own.yaml", "--out", "a/b/first", "--no-plots")
    assert json.loads(Path("a/b/first/run.json").read_text())["data_folder"] == "../../.."
    assert ringnet("run", "a/b/first", "--out", "again", "--no-plots").exit_code == 0


def test_a_pipe_that_nobody_reads_is_no_complaint():
    running = subprocess.Popen(
        [sys.executable, "-m", "ringnet", "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait() == 141
    running.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_answer_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        result = process("list", stdout=full)
    assert result.returncode == 2
    assert "No space left on device" in result.stderr
    assert "Traceback" not in result.stderr
