"""A topology that nobody has seen before: one file, one line in the registry, and everything else follows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ringnet

CHAIN = '''
"""Switches in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated

from ringnet.errors import Fault, NetworkError
from ringnet.networks.custom import Cable, custom
from ringnet.networks.network import Network
from ringnet.networks.topology import TopologyParameter


def chain(
    n_workers: int,
    bandwidth_Bps: float,
    latency_s: float,
    *,
    taps: Annotated[Sequence[int], TopologyParameter("workers on each switch", [4, 4])],
    widening: Annotated[float, TopologyParameter("how much wider the trunk is", 2, least=0.5, most=8)] = 1.0,
    first_tap: Annotated[int, TopologyParameter("where worker 0 sits", 1, least=0, most=7)] = 0,
) -> Network:
    """Workers on switches, switches in a row."""
    if sum(taps) != n_workers:
        raise NetworkError(Fault(f"there are {sum(taps)} taps for {n_workers} workers", "taps", right="as many"))
    seats = [switch for switch, size in enumerate(taps) for _ in range(size)]
    cables = [Cable(str(i), f"s{seats[(i + first_tap) % n_workers]}") for i in range(n_workers)]
    trunk = [f"s{switch}" for switch in range(len(taps))]
    cables += [Cable(one, other, bandwidth_Bps * widening) for one, other in pairwise(trunk)]
    made = custom(n_workers, bandwidth_Bps, latency_s, cables=cables, switches=trunk)
    return replace(made, topology="chain")
'''
LINE = '    "chain": Topology(chain, "switches in a row"),\n'
SCENARIO = """\
scenario_version: 1
workers: 8
message: 1 MiB
network:
  topology: chain
  taps: [4, 4]
  widening: 0.5
  bandwidth: 50 GB/s
  latency: 1 us
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory) -> Path:
    """A copy of ringnet, what is compiled of it too, with one file and one line more, and a scenario beside it."""
    home = tmp_path_factory.mktemp("house")
    shutil.copytree(Path(ringnet.__file__).parent, home / "ringnet")
    networks = home / "ringnet" / "networks"
    (networks / "chain.py").write_text(CHAIN, encoding="utf-8")
    registry = (networks / "__init__.py").read_text(encoding="utf-8")
    start = "TOPOLOGIES: dict[str, Topology] = {\n"
    assert start in registry
    registry = registry.replace(
        start, f"from ringnet.networks.chain import chain\n\n{start}{LINE}"
    )  # the line, and its import
    (networks / "__init__.py").write_text(registry, encoding="utf-8")
    (home / "chain.yaml").write_text(SCENARIO, encoding="utf-8")
    return home


#: Commands by the line, and what each answered.
COMMANDS = """
import json, sys
from typer.testing import CliRunner
import ringnet
from ringnet.cli import app
from ringnet.cli.schema import KEPT
from ringnet.scenario import schema
KEPT.write_text(json.dumps(schema()))  # as RINGNET_GOLDEN=write does
print(ringnet.__file__, flush=True)
for line in sys.stdin:
    done = CliRunner().invoke(app, json.loads(line))
    print(json.dumps([done.exit_code, done.stdout, done.stderr]), flush=True)
"""


@pytest.fixture(scope="module")
def run(house):
    """What a command of that ringnet answers: exit code, output, errors."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMANDS],
        cwd=house,
        env={**os.environ, "PYTHONPATH": str(house)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert Path(process.stdout.readline().strip()).is_relative_to(house)

    def of(*given: str) -> tuple[int, str, str]:
        process.stdin.write(f"{json.dumps(given)}\n")
        process.stdin.flush()
        return tuple(json.loads(process.stdout.readline()))

    yield of
    process.stdin.close()
    process.wait(60)
    process.stdout.close()


def test_it_runs_and_its_parameters_matter(run):
    code, out, _ = run("run", "chain.yaml", "--json")
    assert code == 0
    slow = json.loads(out)
    assert (slow["topology"], slow["sum_ok"]) == ("chain", True)
    wide = json.loads(run("run", "chain.yaml", "--json", "--no-plots", "--set", "network.widening=2")[1])
    assert wide["makespan_s"] < slow["makespan_s"]


def test_a_sweep_goes_over_its_parameter(run, house):
    sweep = "sweep: {over: {network.widening: {from: 1, to: 4, factor: 2}}}\n"
    (house / "sweep.yaml").write_text(SCENARIO + sweep, encoding="utf-8")
    code, _, err = run("run", "sweep.yaml", "--no-plots", "--out", "swept")
    assert code == 0, err
    head, *rows = (house / "swept" / "summary.csv").read_text(encoding="utf-8").splitlines()
    assert "network.widening" in head
    assert len(rows) == 3


def test_every_mistake_is_told_at_once_with_line_and_path(run, house):
    wrong = SCENARIO.replace("taps: [4, 4]", "tap: [4, 4]").replace("0.5", "9")
    wrong = wrong.replace("  latency", "  first_tap: 0.5\n  latency")
    (house / "wrong.yaml").write_text(wrong, encoding="utf-8")
    code, _, err = run("check", "wrong.yaml")
    assert code == 2
    assert [line.removeprefix("Error: wrong.yaml:") for line in err.splitlines()] == [
        "4: network.taps: the key is missing: topology chain needs it; right would be: taps: [4, 4]",
        "6: network.tap: there is no such key; did you mean taps?",
        "7: network.widening: a finite number from 0.5 to 8 is wanted; got 9; right would be: 2",
        "9: network.first_tap: a whole number is wanted; got 0.5; right would be: 1",
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("network.taps=", "network.taps: the key is missing: topology chain needs it; right would be: taps: [4, 4]"),
        ("network.taps=[4, 3]", "network.taps: there are 7 taps for 8 workers; right would be: as many"),
        ("network.taps=[4, x]", "network.taps[1]: a whole number is wanted; got x; right would be: 4"),
        ("network.taps=[]", "network.taps: nothing stands here: leave the key out"),
        ("network.first_tap=8", "network.first_tap: a whole number from 0 to 7 is wanted; got 8"),
        ("network.k=4", "network.k: topology chain has no k: fat-tree has; got 4"),
        ("network.topology=chian", "there is no such topology; got chian"),
        ("network.between.topology=chian", "did you mean chain?"),
    ],
)
def test_a_wrong_value(run, change, told):
    code, _, err = run("check", "chain.yaml", "--set", change)
    assert code == 2
    assert told in err


def test_another_topology_leaves_its_parameters_out(run):
    code, out, err = run("check", "chain.yaml", "--set", "network.topology=switch")
    assert code == 0
    assert "network.taps: left out, topology switch has no taps: chain has" in out + err


def test_schema_and_list_know_it(run):
    keys = json.loads(run("schema")[1])["$defs"]["NetworkKeys"]["properties"]
    assert "chain" in keys["topology"]["enum"]
    assert keys["taps"]["items"] == {"type": "integer", "minimum": 1, "maximum": 2**20}
    assert keys["taps"]["description"] == "chain: workers on each switch."
    assert (keys["widening"]["minimum"], keys["widening"]["maximum"]) == (0.5, 8)
    assert (keys["first_tap"]["minimum"], keys["first_tap"]["maximum"]) == (0, 7)
    assert "switches in a row" in run("list", "topologies")[1]
