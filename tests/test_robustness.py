"""What people, shells and disks do: each once led to a bug's words, to a hang or to nothing, and is told now."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ringnet.cli import COMMANDS, app, main
from ringnet.cli.options import values_of
from ringnet.cli.printing import complain, note, print_json, print_table
from ringnet.documents import text
from ringnet.networks import TOPOLOGIES
from ringnet.study.outcome import DamagedError, Outcome, read_entry, write_entry
from tests.fuzz.trying import apart

RING = "{scenario_version: 1, workers: 4, message: 64 B, network: {bandwidth: 1 GB/s, latency: 1 us}}"
OWN = "{scenario_version: 1, data: own.npy, network: {bandwidth: 1 GB/s, latency: 1 us}}"
OSU = "# OSU MPI Allreduce Latency Test v7.0\n# Size       Avg Latency(us)\n"


def told(*command: str, code: int = 2) -> str:
    done = CliRunner().invoke(app, command)
    assert done.exit_code == code, done.output
    return done.stderr


@pytest.fixture
def folder(own_folder):
    (own_folder / "ring.yaml").write_text(RING)
    (own_folder / "own.yaml").write_text(OWN)
    return own_folder


class TestFiles:
    @pytest.mark.parametrize("shape", ["((((4, 8)", "(" * 5000 + ")" * 5000, "(4, 8), 'x': [(", "'\n"])
    def test_a_header_of_npy_is_text_of_anybody(self, folder, shape):
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
        (folder / "own.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
        assert "data: own.npy: cannot be read as .npy" in told("check", "own.yaml")

    def test_a_silent_pipe_is_given_up(self, folder, monkeypatch):
        monkeypatch.setattr(text, "PATIENCE_S", 0.05)
        os.mkfifo("pipe.yaml")
        assert "pipe.yaml: the file cannot be read: nothing has come" in told("check", "pipe.yaml")

    def test_a_socket_is_no_file(self, folder):
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket")
            assert "socket: the file cannot be read: this is a socket, not a file" in told("check", "socket")
            assert "right would be: a regular file" in told("logs", "socket")

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (RING.encode("utf-16"), "not text in UTF-8 (byte 0); got 0xff; right would be: a file saved as UTF-8"),
            (b"a: 1\n---\nb: 2\n", "two.yaml:2: another document begins here; got ---; right would be"),
        ],
    )  # fmt: skip
    def test_a_text_that_is_no_scenario_is_told_what_one_is(self, folder, content, words):
        Path("two.yaml").write_bytes(content)
        assert words in told("check", "two.yaml")

    def test_a_pipe_that_speaks_is_read_whole(self, folder):
        os.mkfifo("pipe.yaml")
        writer = threading.Thread(target=lambda: Path("pipe.yaml").write_text(RING))
        writer.start()
        assert "no mistakes" in CliRunner().invoke(app, ["check", "pipe.yaml"]).stdout
        writer.join()

    def test_a_pipe_is_no_data_and_no_log(self, folder):
        os.mkfifo("own.npy")
        right = "right would be: a regular file"
        assert f"data: this is a pipe or a device; got own.npy; {right}" in told("check", "own.yaml")
        assert right in told("logs", "own.npy")

    def test_times_of_zero_are_left_out_of_a_fit(self, folder):
        (folder / "some.txt").write_text(f"{OSU}4    0.00\n8   1.00\n1024  1.5\n65536 16\n")
        assert "1 row(s) with a time of 0 left out" in told("calibrate", "some.txt", "--workers", "4", code=0)
        (folder / "none.txt").write_text(f"{OSU}4    0.00\n8   0.00\n")
        assert "every time in it is 0" in told("calibrate", "none.txt", "--workers", "4")

    def test_a_kept_point_of_another_shape_is_damaged(self, tmp_path):
        path = tmp_path / "a" / "b.json"
        for summary, notes, jobs in ((["a row"], (), ()), ({}, "abc", ()), ({}, (), ("job",))):
            write_entry(path, Outcome(summary, notes, job_rows=jobs))
            with pytest.raises(DamagedError, match="another shape"):
                read_entry(path)


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("more", ["", ", link: {file: none.yaml}", ", order: {file: none.xml}"])
def test_a_network_file_that_is_not_there_is_told_beside_any_topology(folder, topology, more):
    """What no file says is nothing that could be built."""
    np.save("own.npy", np.ones((4, 8), np.float32))
    where = f"{{topology: {topology}, bandwidth: 1 GB/s, latency: 1 us, file: none.yml{more}}}"
    (folder / "a.yaml").write_text(f"scenario_version: 1\ndata: own.npy\nnetwork: {where}\n")
    assert "network.file: none.yml: the file cannot be read" in told("check", "a.yaml")


@pytest.mark.parametrize("more", ["jobs: [{workers: [2, 3], message: 1 KiB}]", "seed: 1"])
@pytest.mark.parametrize("own", ["n_slices: 4", "parameters: {n_slices: 4}", "root: 1"])
def test_a_parameter_that_an_algorithm_has_not_is_told_beside_a_job_and_on_a_ring(folder, own, more):
    text = f"scenario_version: 1\nworkers: 4\nmessage: 64 B\nnetwork: {{bandwidth: 1 GB/s, latency: 1 us}}\n{more}\n"
    (folder / "a.yaml").write_text(f"{text}algorithm: {{name: ring, {own}}}\n")
    assert "a.yaml:6: algorithm" in told("check", "a.yaml")


@pytest.mark.parametrize(
    ("heads", "rate"), [("name,parameters", "rate: 1 TFLOP/s"), ("name,parameters,forward_flops", "")]
)
def test_layers_without_times_are_told_by_check_as_by_step(folder, heads, rate):
    (folder / "layers.csv").write_text(f"{heads}\n{','.join(['a', '8x8', '1e9'][: heads.count(',') + 1])}\n")
    text = "scenario_version: 1\nworkers: 4\nnetwork: {bandwidth: 1 GB/s, latency: 1 us}\n"
    (folder / "a.yaml").write_text(f"{text}step:\n  layers: layers.csv\n  {rate}\n")
    for command in ("check", "step"):
        assert "a.yaml:5: step.layers: nothing says how long the layers take" in told(command, "a.yaml")


def test_a_network_that_is_wrong_by_itself_has_no_ways_that_could_be_missing(folder):
    where = "network: {bandwidth: 1 GB/s, latency: 1 us, nics: 2, topology: %s}"
    text = f"scenario_version: 1\nworkers: 8\nmessage: 4 KiB\nalgorithm: direct\n{where}\n"
    (folder / "a.yaml").write_text(text % "''")
    assert "a.yaml:5: network.topology" in told("check", "a.yaml")
    (folder / "a.yaml").write_text(text % "nodes")
    assert "direct has no way on it" in told("check", "a.yaml", "--set", "network.topology=ring")


def test_an_engine_that_is_not_exact_and_a_ring_of_a_job_without_ways_have_a_place(folder):
    """Found by pairs of keys: the engine was told by `check` alone, the ring where the others had one worker."""
    where = "network: {bandwidth: 1 GB/s, latency: 1 us, topology: %s}"
    text = f"scenario_version: 1\nmessage: 4 KiB\n{where}\nworkers: %d\n%s\n"
    hierarchical = "algorithm: {name: hierarchical, node_size: 4, outer: ring}\nengine: recurrence"
    (folder / "a.yaml").write_text(text % ("switch", 8, hierarchical))
    (folder / "b.yaml").write_text(text % ("ring", 1, "jobs: [{workers: 8, message: 1 KiB}]"))
    for command in (["check"], ["run", "--quiet", "--no-plots", "--out", "out"]):
        assert "a.yaml:6: engine: the recurrence is not exact here: link switch->7" in told(*command, "a.yaml")
        assert told(*command, "b.yaml").endswith("not to 1; got ring; right would be: topology: switch\n")


def test_what_is_of_another_type_is_told_before_anything_is_made_of_it(folder):
    for sort in ("{a: 1}", "[ring]", "{topology: [], a: 1}"):
        for key in ("topology", "topology: nodes, between"):
            text = "scenario_version: 1\nworkers: 4\nmessage: 64 B\nnetwork: {link: 100gbe, %s: %s}\n"
            (folder / "a.yaml").write_text(text % (key, sort))
            assert "a.yaml:4: network." in told("check", "a.yaml")


def test_survivors_of_an_algorithm_that_is_told_of_its_parameters_have_none(folder):
    where = "{topology: switch, bandwidth: 1 GB/s, latency: 1 us}"
    text = "scenario_version: 1\nworkers: 4\nmessage: 64 B\nalgorithm: {name: ring, n_slices: 2}\n"
    (folder / "a.yaml").write_text(
        f"{text}network: {where}\ntrouble: [{{worker: 1, dies: 5 us}}]\non_failure: {{policy: shrink}}\n"
    )
    assert "algorithm.n_slices: the key is never read: ring has no such parameter" in told("check", "a.yaml")


class TestTerminal:
    @pytest.mark.parametrize("backend", ["module://none_such.backend", "nonsense"])
    def test_what_a_notebook_left_in_the_environment_keeps_no_plot_from_being_drawn(self, folder, backend):
        """In a process of its own: matplotlib reads the variable once."""
        import subprocess  # noqa: PLC0415
        import sys  # noqa: PLC0415

        command = [sys.executable, "-m", "ringnet", "run", "ring.yaml", "--quiet", "--out", "out"]
        command += ["--set", "report.plots=[link-traffic]"]
        done = subprocess.run(
            command, check=False, env={**os.environ, "MPLBACKEND": backend}, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert [*Path("out").glob("*.png")]

    def test_nothing_of_a_name_is_obeyed_by_a_terminal(self, folder, capsys):
        evil = "a\x1b]0;owned\x07\x9b2J\r\nb"
        complain(evil)
        note(evil)
        print_table([("file", evil)])
        print_json({evil: [evil]})
        shown = capsys.readouterr()
        assert all(sign.isprintable() or sign == "\n" for sign in shown.out + shown.err)
        assert json.loads(shown.out[shown.out.index("{") :]) == {evil: [evil]}
        assert "\\x1b" in told("check", "no\x1b[31msuch\n.yaml")

    def test_a_mistake_is_one_line_whatever_is_quoted_in_it(self, folder):
        (folder / "a.yaml").write_text(f'{RING[:-1]}, sweep: {{over: {{message: "a\\nb"}}}}}}')
        assert told("check", "a.yaml").count("\n") == 1
        assert told("logs", "a\nb", "--workers", "x.csv").count("\n") == 1

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["ring.yaml", "--json"], "No such command 'ring.yaml'; right would be: ringnet run ring.yaml"),
            (
                ["--html", "run", "ring.yaml"],
                "No such option: --html; right would be: ringnet run ... --html",
            ),
            (["rnu", "ring.yaml"], "No such command 'rnu'; right would be: ringnet run ring.yaml"),
            (["sweep", "ring.yaml"], "No such command 'sweep'; right would be: ringnet run ring.yaml"),
            (["validate", "ring.yaml"], "No such command 'validate'; right would be: ringnet check ring.yaml"),
            (["help", "run"], "No such command 'help'; right would be: ringnet run --help"),
            (["--verbose", "run", "ring.yaml"], "No such option: --verbose; right would be: ringnet run ring.yaml"),
            (["all-reduce"], "No such command 'all-reduce'; ringnet --help has those that there are"),
        ],
    )
    def test_what_is_no_command_is_told_with_one(self, monkeypatch, capfd, words, said):
        monkeypatch.setattr("sys.argv", ["ringnet", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert capfd.readouterr().err.endswith(f"Error: {said}\n")

    @pytest.mark.parametrize("place", ["argument", "option"])
    @pytest.mark.parametrize("command", COMMANDS)
    def test_no_command_prints_what_it_was_given_as_it_is(self, folder, monkeypatch, capfd, command, place):
        evil = "\x1b[31mno\x9b2Jsuch"
        words = {
            "argument": [evil, evil],
            "option": [f"--{evil}"],
            "value": [evil, "--set", evil, "--out", evil],
        }
        monkeypatch.setattr("sys.argv", ["ringnet", command, *words[place]])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capfd.readouterr()
        assert ended.value.code == 2
        assert "no\\x9b2Jsuch" in told.err or "is missing" in told.err or "Missing" in told.err
        assert all(sign.isprintable() or sign == "\n" for sign in told.out + told.err)

    def test_names_in_results_that_somebody_edited_are_no_orders_for_a_terminal(self, folder, capfd):
        """They were escaped wherever a scenario was read; what is read again is anybody's text."""
        for name in ("a", "b"):
            told("run", "ring.yaml", "--no-plots", "--out", name, "--quiet", code=0)
        info = json.loads((folder / "b" / "run.json").read_text())
        info["scenario"]["\x1b[31mnetwork"] = "\x1b]0;owned\x07"
        (folder / "b" / "run.json").write_text(json.dumps(info))
        done = CliRunner().invoke(app, ["diff", "a", "b"])
        assert done.exit_code == 0
        assert "\\x1b[31mnetwork" in done.stdout
        assert all(sign.isprintable() or sign == "\n" for sign in done.output)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["measure", "--sizes", "1,000"], "--sizes: a comma parts two values; got 1,000; right would be: 1000"),
        (["measure", "--sizes", "64KiB,1,048,576"], "a comma parts two values; got 1,048,576; right would be: 1048576"),
        (["measure", "--sizes", "6"], "--sizes: not a whole number of float32 elements, 4 bytes each; got 6 B"),
        (["measure", "--dtype", "foo"], "--dtype: unknown element type; got foo"),
        (["compare", "ring.yaml", "--workers", "1,024"], "--workers: a comma parts two values; got 1,024"),
        (["check", "ring.yaml", "--set", "sweep.over.workers=8"], "got 8; right would be: [8]"),
        (["check", "ring.yaml", "--set", "sweep.over.message=1KiB..1MiB"], "right would be: {from: 1KiB, to: 1MiB, f"),
        (["check", "ring.yaml", "--set", "dtype=float"], "did you mean float32?"),
        (["check", "ring.yaml", "--set", "reduce=avg"], "did you mean mean?"),
        (["blame", "ring.yaml", "--html", "x.txt"], "--html: a page is a file that ends in .html; got 'x.txt'; right "
         "would be: --html x.html"),
        (["run", "ring.yaml", "--plots", "none"], "--plots: the option takes no value; got none; right"),
        (["run", "ring.yaml", "own.yaml", "--out", "own.yaml"], "run: a word too many; got own.yaml; right would be: "
         "ringnet run SCENARIO"),
        (["run", "ring.yaml", "--set", "workers:8"], "got workers:8; right would be: --set workers=8"),
        (["run", "ring.yaml", "--set", "workers=2, 4"], "got 2, 4; right would be: sweep: {over: {workers: [2, 4]}}"),
        (["run", "ring.yaml", "--set", "network.latency=[1us, 2us]"], "sweep: {over: {network.latency: [1us, 2us]}}"),
        (["run", "ring.yaml", "--set", "message=1KiB..1MiB"], "{over: {message: {from: 1KiB, to: 1MiB, factor: 2}}}"),
        (["run", "ring.yaml", "--set", "workers=1,024"], "a whole number is wanted; got 1,024; right would be: 8"),
        (["run", "ring.yaml", "--sweep", "workers=2,4"], "right would be: --set 'sweep.over.workers=[2,4]'"),
        (["run", "ring.yaml", "-o", "x"], "No such option: -o; right would be: --out"),
        (["whatif", "ring.yaml", "workers=4"], "a key is changed by --if; got workers=4; right would be: --if w"),
        (["run", "ring.yaml", "workers=4"], "run: a key is changed by --set; got workers=4; right would be: --set w"),
        (["run", "ring.yaml", "--set", "workers=4", "network.latency=1", "us"], "right would be: --set workers=4 --set "
         "'network.latency=1 us'"),
        (["whatif", "ring.yaml", "--if", "workers=4", "and", "message=8"], "would be: --if 'workers=4 and message=8'"),
        (["compare", "ring.yaml", "--workers", "4", "4"], "got 4 4; right would be: --workers 4,4"),
        (["compare", "ring.yaml", "--algorithms", "all,ring"], "--algorithms: all stands alone; got all, ring; right "
         "would be: all"),
        (["nccl", "ring.yaml", "--collective", "all,reduce"], "--collective: all stands alone; got all, reduce"),
        (["compare", "ring.yaml", "--algorithms", "ring,"], "--algorithms: a value is missing; got 'ring,'; right"),
        (["compare", "ring.yaml", "--algorithms", "tree"], "did you mean double-binary-tree?"),
        (["compare", "ring.yaml", "--algorithms"], "requires an argument; right would be: --algorithms all|A,B"),
        (["compare", "ring.yaml", "--jobs=two"], "a valid integer; got two; right would be: --jobs 2"),
        (["diff", "ring.yaml"], "Missing argument 'RESULTS_B'; right would be: ringnet diff reports/before"),
        (["nccl"], "--ranks: a scenario or this is needed; right would be: --ranks 8"),
        (["nccl", "--ranks", "8", "--gpu", "a100"], "did you mean ampere?"),
        (["nccl", "ring.yaml", "--sizes", "5"], "--sizes: not a whole number of float32 elements, 4 bytes each; got 5"),
        (["network", "ring.yaml", "0-1"], "LINK: no link has a name like this; got 0-1"),
        (["measure", "--sizes", "1KiB.."], "--sizes: a range of sizes has two ends; got 1KiB..; right"),
        (["run", "ring.yaml", "--transfers", "some"], "--transfers: all or a whole number is wanted; got some"),
        (["whatif", "ring.yaml", "--changes", "/dev/null"], "the file of changes is empty; right would be: whatif: ["),
        (["check", "ring.yaml", "--set", "network.bandwidth=5.0e10"], "right would be: 50000000000 B/s = 50 GB/s or"),
        (["run", "ring.yaml", "--out", "own.yaml"], "this is a file; right would be: a new folder"),
        (["run", "ring.yaml", "--workers", "8"], "No such option: --workers; right would be: --set workers=8"),
        (["compare", "ring.yaml", "--sizes", "1KiB"], "right would be: --set 'sweep.over.message=[1 KiB, 1 MiB]'"),
        (["numerics", "ring.yaml", "--dtype", "x"], "No such option: --dtype; right would be: --dtypes"),
        (["blame", "ring.yaml", "--factor", "2"], "No such option: --factor; ringnet blame -h has those"),
        (["run", "ring.yaml", "--set", "network.latency"], "right would be: --set 'network.latency=5 us'"),
        (["run", "ring.yaml", "--set", "worker"], "right would be: --set network.bandwidth='5 GB/s'"),
        (["nccl", "ring.yaml", "--ranks", "4"], "the scenario says this; got 4; right would be: --set workers=4"),
        (["nccl", "ring.yaml", "--link", "400gbe"], "got 400gbe; right would be: --set network.link=400gbe"),
        (["run", "ring.yaml", "--dry-run"], "No such option: --dry-run; right would be: ringnet check ring.yaml"),
        (["run", "ring.yaml", "--plots=no"], "does not take a value; right would be: --no-plots"),
        (["run", "ring.yaml", "--out", "r.csv"], "this is the name of a file; got r.csv; right would be: r\n"),
        (["show", "nvlink4"], "it is one of the links; got nvlink4; right would be: ringnet list links"),
        (["show", "ring.yaml"], "this is a file; got ring.yaml; right would be: ringnet network ring.yaml"),
        (["list", "switch"], "it is one of the topologies; got switch; right would be: ringnet list topologies"),
        (["network", "ring.yaml", "--links", "x*"], "--links: no link has a name like this; got x*"),
        (["plot", "ring.yaml"], "ring.yaml: this is a file, not a folder of results"),
        (["nccl", "--ranks", "8", "--cpu", "i9"], "--cpu: there is no such CPU; got i9; right would be: intel, amd"),
        (["check", "ring.yaml", "--set", "workers=1e1"], "a whole number is wanted; got 1e1; right would be: 10"),
        (["check", "ring.yaml", "--set", "workers='12'"], "wanted, and this is a text; got 12; right would be: 12"),
        (["check", "ring.yaml", "--set", "weights=['2.5']"], "this is a text; got 2.5; right would be: 2.5"),
    ],
)  # fmt: skip
def test_an_option_is_told_with_its_name(folder, words, said):
    assert said in told(*words)


@pytest.mark.parametrize("sizes", ["8,128,256", "100,200", "1,0", "4,0"])
def test_commas_between_numbers_stay(sizes):
    assert values_of([sizes], "--sizes") == sizes.split(",")


class TestResults:
    @pytest.fixture
    def results(self, folder):
        assert told("run", "ring.yaml", "--no-plots", "--out", "r", "--quiet", code=0) == ""
        return folder / "r"

    @pytest.mark.parametrize("n_renamed", [0, 1, 3])
    def test_a_plot_that_is_killed_at_any_of_its_names_leaves_a_folder_that_a_run_replaces(self, results, n_renamed):
        """Hidden files that no list has; a list of pictures that are not there; some of them are."""

        def draw_and_die():
            replace, done = Path.replace, []

            def one_of(path, target):
                if Path(target).parent.name == "r":
                    if len(done) == n_renamed:
                        os._exit(9)
                    done.append(target)
                return replace(path, target)

            Path.replace = one_of
            told("plot", "r", "--plot", "space-time,link-traffic", code=0)

        assert apart(draw_and_die) == "the process ended with 9"
        assert sum(path.name.startswith(".") for path in results.iterdir()) == 5 - n_renamed
        assert not {path.name for path in results.glob("*.*g")} - {
            *json.loads((results / "run.json").read_text())["files"]
        }
        told("report", "r", code=0)
        assert "space-time." not in (results / "report.html").read_text()
        told("run", "ring.yaml", "--no-plots", "--out", "r", "--quiet", code=0)
        assert not [path for path in results.iterdir() if path.name.startswith(".")]

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("files", ["summary.csv", ["run.json"]]),
            ("files", ["summary.csv", "../ring.yaml"]),
            ("files", "summary.csv"),
            ("notes", [1]),
            ("data_folder", "/etc"),
            ("data_folder", 3),
            ("data_sha256", ["a"]),
            ("data_sha256", {"a": 1}),
            ("scenario", []),
        ],
    )
    def test_a_manifest_that_somebody_edited_is_told_by_its_key(self, results, key, value):
        info = json.loads((results / "run.json").read_text())
        (results / "run.json").write_text(json.dumps(info | {key: value}))
        for command in (["plot", "r"], ["diff", "r", "r"], ["run", "r", "--out", "s"], ["check", "r"]):
            assert told(*command).startswith(f"Error: r/run.json: {key}: run.json is damaged")
        assert not Path("s").exists()

    @pytest.mark.parametrize("text", ['"\\ud800"', "NaN", "1e999", "[" * 100000])
    def test_a_manifest_that_no_json_is_is_told(self, results, text):
        manifest = results / "run.json"
        manifest.write_text(manifest.read_text().replace('"seed": 0', f'"seed": {text}'))
        assert "run.json cannot be read" in told("diff", "r", "r")

    @pytest.mark.parametrize("table", ["workers", "links", "transfers", "summary"])
    @pytest.mark.parametrize("change", ["doubled", "emptied", "other"])
    def test_a_table_that_somebody_edited_is_told_or_drawn(self, results, sketched, table, change):
        path = results / f"{table}.csv"
        heads, *rows = path.read_text().splitlines()
        rows = {
            "doubled": [rows[0], *rows],
            "emptied": [],
            "other": [row.replace("0", "7", 1) for row in rows],
        }[change]
        path.write_text("\n".join([heads, *rows]) + "\n")
        for command in (["plot", "r", "--plot", "space-time,link-utilisation"], ["diff", "r", "r"]):
            done = CliRunner().invoke(app, command)
            assert done.exit_code in {0, 2}, done.output
        if change == "doubled" and table in {"workers", "links"}:
            assert "stands twice" in told("plot", "r")

    def test_a_piece_of_the_path_of_another_name_is_drawn_where_it_was(self, results):
        path = results / "path.csv"
        path.write_text(path.read_text().replace("bandwidth", "banddwidth", 1))
        told("plot", "r", "--plot", "space-time", code=0)

    @pytest.mark.parametrize(
        ("table", "column"),
        [("path", "src"), ("path", "dst"), ("links", "link"), ("links", "bytes"), ("summary", "n_workers")],
    )
    def test_an_empty_cell_where_none_is_is_told_with_its_line(self, results, table, column):
        heads, *rows = [line.split(",") for line in (results / f"{table}.csv").read_text().splitlines()]
        rows[-1][heads.index(column)] = ""
        (results / f"{table}.csv").write_text("".join(",".join(row) + "\n" for row in [heads, *rows]))
        assert f"{table}.csv:{len(rows) + 1}: {column}: a cell is empty" in told("plot", "r")

    @pytest.mark.parametrize(
        ("text", "right"),
        [
            ('<algo name="ring">\n</algo>', "algorithm: {file: x.yaml} in a scenario"),
            ('<system version="1">\n</system>', "ringnet network x.yaml"),
            (
                "ringnet_profile: 3\nlinks: {}",
                "ringnet predict x.yaml, or network: {link: {file: x.yaml}} in a scenario",
            ),
        ],
    )
    def test_a_file_of_another_kind_is_told_with_what_reads_it(self, own_folder, text, right):
        Path("x.yaml").write_text(text)
        said = told("run", "x.yaml")
        assert f"no scenario; got {text[:18].split(': ')[-1][:1]}" in said
        assert said.endswith(f"right would be: {right}\n")
        assert "did you mean x.yaml?" in told("run", "x.yml")

    def test_a_link_without_some_of_its_bins_is_told(self, results):
        path = results / "utilisation.csv"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
        said = told("plot", "r")
        assert "utilisation.csv: link: rows are missing" in said
        assert "as of others" in said

    def test_a_pipe_in_results_is_no_table(self, results):
        (results / "links.csv").unlink()
        os.mkfifo(results / "links.csv")
        assert "this is no regular file" in told("plot", "r")


def test_what_a_killed_process_left_is_cleared_up(folder):
    """A process number that nobody has: the largest there can be is never given."""
    from ringnet.reporting import atomic  # noqa: PLC0415

    here, gone = atomic._this_machine(), 2**22 + 1
    (folder / f".r.{here}-{gone}-0123abcd.new").mkdir()
    (folder / f".ring.goal.{here}-{gone}-0123abcd.new").write_text("half")
    other = folder / f".r.{here}-{os.getpid()}-0123abcd.new"
    other.mkdir()
    old = folder / f".s.{here}-{gone}-0123abcd.old"
    assert told("run", "ring.yaml", "--no-plots", "--out", "s", "--quiet", code=0) == ""
    Path("s").rename(old)
    assert told("run", "ring.yaml", "--no-plots", "--out", "r", "--quiet", code=0) == ""
    told("export", "ring.yaml", "--goal", "ring.goal", code=0)
    assert sorted(path.name for path in folder.glob(".*")) == sorted([old.name, other.name])
    told("run", "ring.yaml", "--set", "engine=recurrence", "--set", "network.sharing=fair", "--out", "s")
    assert told("run", "ring.yaml", "--no-plots", "--out", "s", "--quiet", code=0) == ""
    assert [path.name for path in folder.glob(".*")] == [other.name]
    assert np.isfinite(len([*Path("s").iterdir()]))
