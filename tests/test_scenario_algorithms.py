"""What a scenario can say of its algorithm: parameters, files, functions; and its schedule for other tools."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

import ringnet
from ringnet.cli import app
from ringnet.collectives import ALGORITHMS
from ringnet.collectives.proof import check
from ringnet.errors import InputError
from ringnet.formats.msccl import dumps_msccl, load_msccl
from ringnet.runs.parts import build, build_schedule
from ringnet.scenario import load, loads

NETWORK = "network: {topology: switch, bandwidth: 50 GB/s, latency: 1 us}\n"
HEAD = "scenario_version: 1\nworkers: 4\nmessage: 1 KiB\n" + NETWORK
HOOK = """
from ringnet.collectives import ALGORITHMS

def mine(n_workers, collective):
    return ALGORITHMS["ring"].build(n_workers, collective)
"""


def with_algorithm(text: str) -> str:
    return f"{HEAD}algorithm: {text}\n"


def faults(text: str, **options) -> list[str]:
    with pytest.raises(InputError) as caught:
        loads(text, **options)
    return [f"{fault.path}: {fault.message}" for fault in caught.value.faults]


class TestParameters:
    @pytest.mark.parametrize(
        ("name", "parameter", "least"),
        [
            (name, parameter, one.least)
            for name, algorithm in ALGORITHMS.items()
            for parameter, one in algorithm.parameters.items()
            if isinstance(one.default, int) and one.least is not None
        ],
    )
    def test_each_algorithm_has_its_own_least_number(self, name, parameter, least):
        """The format has one key for all that have the parameter: 0 slices suit one ring, and no tree."""
        text = f"{{name: {name}, {parameter}: %d}}"
        assert ALGORITHMS[name].size_of(4, **{parameter: least}) is not None
        told = faults(with_algorithm(text % (least - 1)))
        assert any(one.startswith(f"algorithm.{parameter}: ") for one in told)
        with pytest.raises(InputError, match=rf"^{parameter}: "):
            ALGORITHMS[name].build(4, **{parameter: least - 1})

    def test_reach_the_algorithm(self):
        schedule = build_schedule(loads(with_algorithm("{name: channel-ring, n_channels: 3, strides: [1, 3]}")))
        assert schedule.n_channels == 3
        assert schedule.parameters["strides"] == (1, 3)

    @pytest.mark.parametrize(
        ("slices", "more", "told"),
        [
            (4, "network.sharing=fair", True),
            (1, "network.sharing=fair", False),
            (4, "network.sharing=fifo", False),
        ],
    )
    def test_slices_that_pipeline_nothing_are_told(self, slices, more, told):
        text = with_algorithm(f"{{name: binary-tree, n_slices: {slices}}}")
        notes = ringnet.simulate(loads(text, [more])).notes
        assert any("slices of a chunk" in note for note in notes) is told
        meeting = ringnet.simulate(loads(text, [more, "worker.sends=rendezvous"])).notes
        assert not any("slices of a chunk" in note for note in meeting)

    def test_can_be_swept(self):
        text = with_algorithm("{name: channel-ring}") + "sweep: {over: {algorithm.n_channels: [1, 2]}}\n"
        assert [build_schedule(point.scenario).n_channels for point in loads(text).points()] == [1, 2]

    def test_survive_the_document(self):
        first = loads(with_algorithm("{name: swing, all_ports: false}"))
        again = loads(str(first.document()).replace("'", '"').replace("False", "false").replace("True", "true"))
        assert again.algorithm == first.algorithm

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                "{name: ring, n_channels: 2}",
                "algorithm.n_channels: the key is never read: ring has no such parameter",
            ),
            (
                "{name: channel-ring, n_channels: 0}",
                "algorithm.n_channels: a whole number from 1 up is wanted",
            ),
            (
                "{name: channel-ring, strides: [2]}",
                "algorithm: a ring of this stride does not pass all 4 workers: 2",
            ),
            ("{name: swing, all_ports: 1}", "algorithm.all_ports: true or false is wanted"),
            ("{name: ring, file: a.xml}", "algorithm: one of name, file, python is wanted"),
            ("{name: rink}", "algorithm.name: there is no such algorithm"),
            ("{name: pairwise}", "collective: the algorithm pairwise has no all-reduce"),
        ],
    )
    def test_mistakes_are_told(self, text: str, said: str):
        assert faults(with_algorithm(text)) == [said]


class TestFiles:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "ring.xml").write_text(dumps_msccl(ALGORITHMS["ring"].build(4, "all-reduce")))
        (tmp_path / "some.yaml").write_text(with_algorithm("{file: ring.xml}"))
        return tmp_path

    def test_a_schedule_from_a_file_runs_and_sums(self, folder: Path):
        rows = ringnet.run(folder / "some.yaml").summary
        own = ringnet.run(loads(with_algorithm("ring"))).summary
        assert rows["sum_ok"].all()
        assert rows["makespan_s"].tolist() == own["makespan_s"].tolist()

    def test_its_content_is_part_of_the_key(self, folder: Path):
        before = load(folder / "some.yaml").key()
        (folder / "ring.xml").write_text((folder / "ring.xml").read_text().replace('name="ring"', 'name="other"'))
        assert load(folder / "some.yaml").key() != before

    def test_other_workers_and_a_missing_file_are_told(self, folder: Path):
        text = with_algorithm("{file: ring.xml}")
        other = text.replace("workers: 4", "workers: 8")
        assert faults(other, folder=folder) == ["workers: the schedule is that of 4 workers"]
        assert faults(text.replace("ring.xml", "none.xml"), folder=folder) == [
            "algorithm.file: the file cannot be read: No such file or directory"
        ]
        assert "outside" in faults(text.replace("ring.xml", "../ring.xml"), folder=folder)[0]

    def test_a_missing_file_of_what_is_compared_is_told_before_anything_reads_it(self, folder: Path):
        text = with_algorithm("ring") + "compare: {algorithms: [ring, {file: none.xml}]}\n"
        assert faults(text, folder=folder) == [
            "compare.algorithms[1].file: the file cannot be read: No such file or directory"
        ]
        assert loads(text.replace("none.xml", "ring.xml"), folder=folder).compare


#: Made for workers that are not alike: without a closed form for those that are.
FORMLESS = {"stragglar", "uneven-ring"}
#: Every algorithm of ringnet with each of its collectives, on a network on which it has a closed form if it has any.
OWN = [
    (name, one) for name, algorithm in ALGORITHMS.items() for one in algorithm.collectives if not algorithm.in_switches
]


class TestExportedSchedules:
    @pytest.mark.parametrize(("name", "collective"), OWN)
    def test_run_again_they_have_the_same_sums_and_no_closed_form(self, tmp_path: Path, name, collective):
        text = with_algorithm(name).replace("switch", "fully-connected") + f"collective: {collective}\n"
        own = ringnet.run(loads(text)).summary
        exported = dumps_msccl(build_schedule(loads(text)))
        # A file that bears the algorithm's name, outside and inside, is still no algorithm of ringnet.
        (tmp_path / name).write_text(exported)
        again = loads(text.replace(f"algorithm: {name}", f"algorithm: {{file: {name}}}"), folder=tmp_path)
        assert build_schedule(again).algorithm == name
        rows = ringnet.run(again).summary
        assert (own["closed_form_s"].notna() != (name in FORMLESS)).all()
        assert rows["closed_form_s"].isna().all()
        assert rows["sum_ok"].all()
        assert rows["verified_elements"].tolist() == own["verified_elements"].tolist()

    def test_nor_has_what_a_function_of_the_user_returns(self, tmp_path: Path):
        (tmp_path / "hook.py").write_text(HOOK)
        text = with_algorithm("{python: 'hook.py:mine'}").replace("switch", "ring")
        rows = ringnet.run(loads(text, folder=tmp_path, allow_python=True)).summary
        assert rows["closed_form_s"].isna().all()


class TestPython:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        (tmp_path / "hook.py").write_text(HOOK)
        (tmp_path / "some.yaml").write_text(with_algorithm("{python: 'hook.py:mine'}"))
        return tmp_path / "some.yaml"

    def test_runs_only_when_it_is_allowed(self, file: Path):
        done = CliRunner().invoke(app, ["check", str(file)])
        assert done.exit_code == 2
        assert "--allow-python" in done.stderr
        done = CliRunner().invoke(app, ["run", str(file), "--allow-python", "--out", str(file.parent / "out")])
        assert done.exit_code == 0, done.output
        assert "right" in done.stdout

    def test_what_it_raises_is_told_with_its_file_and_line(self, file: Path):
        (file.parent / "hook.py").write_text("def mine(n_workers, collective):\n    raise ValueError('no')\n")
        with pytest.raises(InputError) as caught:
            load(file, allow_python=True)
        assert f"{file}:5: algorithm.python: hook.py:2: ValueError: no" in str(caught.value)

    def test_parameters_reach_it_and_can_be_swept(self, file: Path):
        made = 'ALGORITHMS["pipelined-ring"].build(n_workers, collective, n_slices)'
        (file.parent / "hook.py").write_text(
            HOOK.replace("collective)", "collective, n_slices=1, ways=())", 1).replace(
                'ALGORITHMS["ring"].build(n_workers, collective)', made
            )
        )
        text = "{python: 'hook.py:mine', parameters: {n_slices: 2, ways: [1, two, true]}}"
        file.write_text(with_algorithm(text))
        scenario = load(file, allow_python=True)
        assert build_schedule(scenario).n_chunks == 8
        again = load(file, ["algorithm.parameters.n_slices=3"], allow_python=True)
        assert build_schedule(again).n_chunks == 12
        assert scenario.key() != again.key()
        file.write_text(with_algorithm(text) + "sweep: {over: {algorithm.parameters.n_slices: [1, 4]}}\n")
        points = load(file, allow_python=True).points()
        assert [build_schedule(point.scenario).n_chunks for point in points] == [4, 16]
        assert scenario.document()["algorithm"]["parameters"] == {"n_slices": 2, "ways": [1, "two", True]}

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                "{python: 'hook.py:mine', parameters: {n: 1}}",
                "algorithm.python: hook.py:mine cannot be called so: an unexpected keyword argument 'n'",
            ),
            (
                "{python: 'hook.py:mine', parameters: {n: {a: 1}}}",
                "algorithm.parameters.n: a plain value is wanted",
            ),
            (
                "{python: 'hook.py:mine', parameters: {'a b': 1}}",
                "algorithm.parameters.a b: a key here is the name",
            ),
            (
                "{name: ring, parameters: {n: 1}}",
                "algorithm.parameters: the key is never read: it is for a function of yours",
            ),
        ],
    )
    def test_mistakes_in_parameters_are_told(self, file: Path, text: str, said: str):
        file.write_text(with_algorithm(text))
        with pytest.raises(InputError) as caught:
            load(file, allow_python=True)
        assert [f"{fault.path}: {fault.message}"[: len(said)] for fault in caught.value.faults] == [said]


class TestFunctionMessages:
    """What is said of a user's function, read aloud: the key, what is wrong, what was got, each of them once."""

    def said(self, folder: Path, function: str, *, allowed: bool = True) -> str:
        (folder / "hook.py").write_text(
            "from dataclasses import replace\n"
            "from ringnet.collectives import ALGORITHMS\n"
            "def nothing(n_workers, collective):\n    return None\n"
            "def wide(n_workers, collective):\n    return ALGORITHMS['ring'].build(5, collective)\n"
            "def late(n_workers, collective):\n"
            "    def steps():\n        raise RuntimeError('too late')\n        yield\n"
            "    return replace(ALGORITHMS['ring'].build(4, collective), make_steps=steps)\n"
        )
        (folder / "some.yaml").write_text(with_algorithm(f"{{python: 'hook.py:{function}'}}"))
        with pytest.raises(InputError) as caught:
            check(build(load(folder / "some.yaml", allow_python=allowed)).schedule)
        return str(caught.value).removeprefix(f"{folder / 'some.yaml'}:5: ")

    def test_one_that_is_not_allowed(self, tmp_path: Path):
        said = self.said(tmp_path, "nothing", allowed=False)
        assert said.endswith(
            "since the file may do anything; got hook.py:nothing; right would be: --allow-python (allow_python=True)"
        )

    @pytest.mark.parametrize(
        ("function", "said"),
        [
            (
                "nothing",
                "hook.py:nothing returns no schedule; got NoneType; right would be: a ringnet.Schedule",
            ),
            (
                "wide",
                "hook.py:wide returns the schedule of something else; got all-reduce of 5 workers; "
                "right would be: all-reduce of 4 workers",
            ),
            ("theirs", "the file has no such function; got theirs"),
            ("late", "hook.py:9: RuntimeError: too late"),
        ],
    )
    def test_others(self, tmp_path: Path, function: str, said: str):
        assert self.said(tmp_path, function) == f"algorithm.python: {said}"


class TestExport:
    def test_writes_what_msccl_and_loggopsim_read(self, tmp_path: Path):
        (tmp_path / "some.yaml").write_text(with_algorithm("halving-doubling"))
        files = [str(tmp_path / name) for name in ("a.xml", "a.goal")]
        done = CliRunner().invoke(app, ["export", str(tmp_path / "some.yaml"), "--msccl", files[0], "--goal", files[1]])
        assert done.exit_code == 0, done.output
        assert load_msccl(Path(files[0])).n_workers == 4
        assert "\nnum_ranks 4\n" in Path(files[1]).read_text()
        assert "LogGOPSim lets a message that comes in hold its rank's processor" in done.stderr

    def test_two_texts_do_not_go_to_one_file(self, tmp_path: Path):
        (tmp_path / "some.yaml").write_text(with_algorithm("ring"))
        file = str(tmp_path / "a.xml")
        done = CliRunner().invoke(app, ["export", str(tmp_path / "some.yaml"), "--msccl", file, "--goal", file])
        assert done.exit_code == 2
        assert "both texts would go to one file" in done.stderr
        assert not Path(file).exists()

    def test_wants_a_file(self, tmp_path: Path):
        (tmp_path / "some.yaml").write_text(with_algorithm("ring"))
        assert CliRunner().invoke(app, ["export", str(tmp_path / "some.yaml")]).exit_code == 2

    def test_says_what_is_left_out(self, tmp_path: Path):
        text = with_algorithm("ring") + (
            "jobs: [{name: other, workers: [0, 1], message: 1 KiB}, {workers: [2, 3], message: 1 KiB}]\n"
            "background: [{name: storage, from: 0, to: 1, burst: 1 KiB}]\n"
            "worker: {exceptions: {2: {start: 1 us}}}\n"
            "trouble: [{worker: 1, pause: {at: 1 us, for: 1 us}}]\n"
        )
        (tmp_path / "some.yaml").write_text(text)
        given = ["export", str(tmp_path / "some.yaml"), "--goal", str(tmp_path / "a.goal")]
        done = CliRunner().invoke(app, [*given, "--set", "network.window=1 KiB"])
        assert done.exit_code == 0, done.output
        said = "the network, window 1 KiB, job other, job 2, background storage, what is different about worker 2"
        assert f"Note: left out: {said}, trouble\n" in done.stderr
        assert "Note: left out: the network\n" in _plain_export(tmp_path).stderr


def _plain_export(folder: Path) -> Result:
    (folder / "plain.yaml").write_text(with_algorithm("ring"))
    return CliRunner().invoke(app, ["export", str(folder / "plain.yaml"), "--goal", str(folder / "b.goal")])
