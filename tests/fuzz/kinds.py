"""The kinds of input that people and disks give: files to start from, and the commands that read them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
from typer.testing import CliRunner

from ringnet.cli import app
from ringnet.collectives import ALGORITHMS
from ringnet.errors import InputError
from ringnet.formats.msccl import dumps_msccl
from ringnet.scenario import load
from tests.fuzz.keys import changed, counts, kinds_of_keys, pairs, places, text_of
from tests.fuzz.mutate import ALL, BLIND
from tests.fuzz.options import PLAIN, STEP, typed_command

ROOT = Path(__file__).parents[2]
DATA, SCENARIOS = ROOT / "tests" / "data", ROOT / "scenarios"
#: A small network for files that are no network themselves.
NETWORK = "network: {topology: fully-connected, bandwidth: 10 GB/s, latency: 1 us}"
#: Of the pairs that are refused, so many are told by a command.
SHARE_TOLD = 0.05
Mutation = Callable[[bytes, Random], bytes]


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Parameters
    ----------
    files : sequence of pathlib.Path
        Whole ones to start from.
    commands : sequence of str
        Each is run with ``{file}`` for the name of the mutated file; what is not given is in the folder.
    mutations : sequence of callable
    beside : dict of str to str
        Other files in the folder, by their names; ``{file}`` stands for the mutated one.
    """

    files: Sequence[Path]
    commands: Sequence[str]
    mutations: Sequence[Mutation] = BLIND
    beside: dict[str, str] | None = None
    #: Inputs that are tried in one process, whose memory is looked at as a whole.
    together: ClassVar[int] = 25

    @property
    def n_inputs(self) -> int:
        """How many there are, or are tried of what has no end."""
        return 5000

    def prepare(self, folder: Path, random: Random, number: int) -> str:
        """Write one mutated file and what it needs into an empty folder; return its name."""
        source = random.choice(self.files)
        content = source.read_bytes()
        for _ in range(random.choice((1, 1, 1, 2))):
            content = random.choice(self.mutations)(content, random)
        (folder / source.name).write_bytes(content)
        self.put_beside(folder, source.name)
        return source.name

    def commands_for(self, random: Random) -> Sequence[Sequence[str]]:
        """Return the words of what is run on one input."""
        return [command.split() for command in self.commands]

    def put_beside(self, folder: Path, name: str) -> None:
        """Write what the file needs around it."""
        for other, text in (self.beside or {}).items():
            (folder / other).write_text(text.replace("{file}", name))


class ScenarioKind(Kind):
    """Scenarios, with the data that the shipped ones name."""

    def put_beside(self, folder: Path, name: str) -> None:
        """Copy the data."""
        shutil.copytree(SCENARIOS / "data", folder / "data")


class KeysKind(Kind):
    """Scenarios made of the schema: a few keys set, next to all files that the examples of the schema name."""

    def prepare(self, folder: Path, random: Random, number: int) -> str:
        """Choose a few keys."""
        chosen = random.sample(places(), random.choice((1, 1, 2, 3, 5)))
        (folder / "s.yaml").write_text(text_of(changed(random, chosen)))
        self.put_beside(folder, "s.yaml")
        return "s.yaml"

    def put_beside(self, folder: Path, name: str) -> None:
        """Link the files."""
        for file in self.files:
            if file.is_dir():
                shutil.copytree(file, folder / "whole")
            else:
                (folder / file.name).symlink_to(file)


class PairsKind(KeysKind):
    """The same of every two kinds of key: the number of an input is that of a pair."""

    @property
    def n_inputs(self) -> int:
        """The pairs that there are."""
        return len(pairs())

    def prepare(self, folder: Path, random: Random, number: int) -> str:
        """Set a key of each kind of a pair."""
        chosen = [random.choice(kinds_of_keys()[kind]) for kind in pairs()[number % len(pairs())]]
        (folder / "s.yaml").write_text(text_of(changed(random, chosen, share_wrong=0.02)))
        self.put_beside(folder, "s.yaml")
        return "s.yaml"

    def commands_for(self, random: Random) -> Sequence[Sequence[str]]:
        """Return no command for most of what is refused, as each would: to read it is a tenth of the work."""
        with suppress(Exception):  # of which the commands tell
            return super().commands_for(random) if random.random() < SHARE_TOLD or not _is_refused("s.yaml") else ()
        return super().commands_for(random)


class CountsKind(KeysKind):
    """One count as large as anybody may write it: the number of an input is that of a scenario."""

    together = 1

    @cached_property
    def scenarios(self) -> Sequence[dict[str, Any]]:
        """All of them."""
        return counts(self.files[0].parent)

    @property
    def n_inputs(self) -> int:
        """The scenarios that there are."""
        return len(self.scenarios)

    def prepare(self, folder: Path, random: Random, number: int) -> str:
        """Write the scenario of a number."""
        (folder / "s.yaml").write_text(text_of(self.scenarios[number % len(self.scenarios)]))
        self.put_beside(folder, "s.yaml")
        return "s.yaml"


def _is_refused(file: str) -> bool:
    try:
        load(file, allow_python=True)
    except InputError:
        return True
    return False


class OptionsKind(KeysKind):
    """Whole scenarios and whole commands, with options that are given what somebody may type."""

    def commands_for(self, random: Random) -> Sequence[Sequence[str]]:
        """Return one command."""
        return [typed_command(random)]

    def prepare(self, folder: Path, random: Random, number: int) -> str:
        """Leave all files whole."""
        for name, text in {"s.yaml": PLAIN, "t.yaml": STEP}.items():
            (folder / name).write_text(text)
        shutil.copy(DATA / "logs" / "nccl-2019.txt", folder / "log.txt")
        self.put_beside(folder, "s.yaml")
        return "s.yaml"


class ResultsKind(Kind):
    """Folders of results in which one file is damaged: by hand, by a disk."""

    def commands_for(self, random: Random) -> Sequence[Sequence[str]]:
        """Return one of what is run: to draw or run again takes long."""
        return [random.choice(self.commands).split()]

    def prepare(self, folder: Path, random: Random, number: int) -> str:
        """Copy a folder of results and damage one of its tables, or its manifest."""
        source = random.choice(self.files)
        shutil.copytree(source, folder / "results")
        shutil.copytree(self.files[0], folder / "whole")
        names = sorted(path.name for path in source.iterdir() if path.suffix in {".csv", ".json"})
        victim = folder / "results" / random.choice([*names, "run.json"])
        mutations = ALL if victim.suffix == ".json" else BLIND
        victim.write_bytes(random.choice(mutations)(victim.read_bytes(), random))
        return "results"


def small_scenarios() -> list[Path]:
    """Shipped scenarios that take no time."""
    slow = {"scale", "scale-verified", "time-vs-workers", "grid", "rack-order", "compare-on-racks"}
    return [path for path in sorted(SCENARIOS.glob("*.yaml")) if path.stem not in slow and "training" not in path.stem]


def results_folders(folder: Path) -> list[Path]:
    """Make folders of results to be damaged: a run, one with states and queues, a sweep, several jobs, a study."""
    made = []
    for name, text in {
        "plain": "{topology: ring}",
        "fair": "{topology: switch, sharing: fair}",
        "sweep": "{topology: ring}}\nsweep: {over: {message: [1 KiB, 4 KiB]}",
        "jobs": "{topology: switch, places: 8}}\njobs: [{workers: 4, message: 4 KiB}]\nreport: {plots: []",
    }.items():
        where = text.replace("}", ", bandwidth: 1 GB/s, latency: 1 us}", 1).replace("us}}", "us}")
        file = folder / f"{name}.yaml"
        file.write_text(f"scenario_version: 1\nworkers: 4\nmessage: 64 B\nnetwork: {_closed(where)}\n")
        made.append(_made("run", file, folder / f"{name}-results"))
    made.append(_made("compare", folder / "plain.yaml", folder / "study-results", "--algorithms", "ring,direct"))
    return made


def _closed(text: str) -> str:
    return text + "}" * (text.count("{") - text.count("}"))


def _made(command: str, file: Path, out: Path, *more: str) -> Path:
    done = CliRunner().invoke(
        app, [command, str(file), "--no-plots", "--quiet", "--jobs", "1", "--out", str(out), *more]
    )
    assert done.exit_code == 0, done.output
    return out


def files_of_examples(folder: Path) -> list[Path]:
    """Make the files that the examples of the schema name."""
    folder.mkdir(exist_ok=True)
    copies = {
        "topology.xml": DATA / "networks" / "nvlink-server.xml",
        "graph.xml": DATA / "networks" / "rings.xml",
        "profile.yaml": SCENARIOS / "data" / "v100-profile.yaml",
        "layers.csv": DATA / "fuzz" / "layers.csv",
        "my.py": DATA / "fuzz" / "my.py",
        "my_ring.py": DATA / "fuzz" / "my.py",
    }
    for name, source in copies.items():
        shutil.copy(source, folder / name)
    for name, shape in {"gradients": (4, 8), "w0": (8,), "w1": (8,)}.items():
        np.save(folder / f"{name}.npy", np.ones(shape, np.float32))
    (folder / "latencies.csv").write_text("latency_us\n1\n2\n")
    (folder / "rates.csv").write_text("rate\n1 GB/s\n2 GB/s\n")
    ring = dumps_msccl(ALGORITHMS["ring"].build(4, "all-reduce"))
    (folder / "schedule.xml").write_text(ring)
    return sorted(folder.iterdir())


def npy_files(folder: Path) -> list[Path]:
    """Make arrays to be damaged: of several types, of either order, with one axis and with two."""
    folder.mkdir(exist_ok=True)
    arrays = {
        "floats": np.ones((4, 8), np.float32),
        "fortran": np.asfortranarray(np.ones((4, 8))),
        "whole": np.ones((4, 8), np.int64),
        "half": np.ones((4, 8), np.float16),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return [folder / f"{name}.npy" for name in arrays]


def kinds(folder: Path) -> dict[str, Kind]:
    """Return every kind by its name; what there is to start from is made in ``folder`` where it is no file here."""
    run = "run {file} --no-plots --jobs 1 --quiet --out out"
    msccl = "{scenario_version: 1, workers: 2, message: 1 KiB, algorithm: {file: {file}}, " + NETWORK + "}"
    network = "{scenario_version: 1, message: 1 KiB, network: {file: {file}}}"
    order = (
        "{scenario_version: 1, workers: 8, message: 1 KiB, "
        "network: {bandwidth: 1 GB/s, latency: 1 us, topology: switch, order: {file: {file}}}}"
    )
    profile = "{scenario_version: 1, workers: 8, message: 1 MiB, network: {topology: ring, link: {file: {file}}}}"
    data = "{scenario_version: 1, data: {file}, " + NETWORK + "}"
    step = "{scenario_version: 1, workers: 4, step: {layers: {file}%s}, " + NETWORK + "}"
    hook = "{scenario_version: 1, workers: 4, message: 1 KiB, algorithm: {python: my.py:my_ring}, " + NETWORK + "}"
    model = (
        "{scenario_version: 1, workers: 2, training: {model: {python: my.py:gradients, examples: 8}, steps: 2}, "
        + NETWORK
        + "}"
    )
    results = results_folders(folder)
    beside = files_of_examples(folder / "examples")
    logs = sorted(path for path in (DATA / "logs").iterdir() if path.suffix != ".md")
    as_scenario = ("check s.yaml", run.replace("{file}", "s.yaml"))
    return {
        "scenario": ScenarioKind(small_scenarios(), ("check {file}", run), ALL),
        "msccl": Kind(sorted((DATA / "msccl").iterdir()), as_scenario, beside={"s.yaml": msccl}),
        "network": Kind(
            [*sorted((DATA / "networks").iterdir()), SCENARIOS / "data" / "pcie-server.xml"],
            ("network {file}", "check s.yaml", run.replace("{file}", "s.yaml"), "check o.yaml"),
            beside={"s.yaml": network, "o.yaml": order},
        ),
        "log": Kind(logs, ("logs {file}", "calibrate {file} --workers 8 --out p.yaml")),
        "nccl": Kind(
            [DATA / "nccl" / "tuning-sockets.txt"],
            ("nccl --log {file} --gpu blackwell --pci", "nccl --log {file} --json --collective all"),
        ),
        "profile": Kind(
            [SCENARIOS / "data" / "v100-profile.yaml"],
            ("predict {file} --workers 4,64 --plot p.svg", *as_scenario),
            ALL,
            {"s.yaml": profile},
        ),
        "npy": Kind(npy_files(folder / "arrays"), as_scenario, beside={"s.yaml": data}),
        "results": ResultsKind(
            results,
            ("plot results", "report results", "diff whole results", run.replace("{file}", "results")),
        ),
        "keys": KeysKind(beside, ("check s.yaml --allow-python", f"{as_scenario[1]} --allow-python")),
        "layers": Kind(
            [DATA / "fuzz" / "layers.csv", DATA / "fuzz" / "operations.csv"],
            (
                "check t.yaml",
                "step t.yaml --no-plots --quiet --out out",
                "step r.yaml --no-plots --quiet --out out2",
            ),
            beside={"t.yaml": step % "", "r.yaml": step % ", rate: 1 TFLOP/s"},
        ),
        "hook": Kind(
            [DATA / "fuzz" / "my.py"],
            tuple(f"{command} --allow-python" for command in (*as_scenario, run.replace("{file}", "m.yaml"))),
            beside={"s.yaml": hook, "m.yaml": model},
        ),
        "options": OptionsKind([*beside, results[0]], ()),
    }
