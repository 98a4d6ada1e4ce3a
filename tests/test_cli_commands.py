"""The commands beside ``run``: init, schema, list, check, plot, diff."""

from __future__ import annotations

import json
import shlex
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
import typer

from ringnet.cli import COMMANDS, app
from ringnet.collectives import ALGORITHMS
from ringnet.engines import ENGINES
from ringnet.networks import TOPOLOGIES
from ringnet.payload.dtypes import DTYPES
from ringnet.payload.reductions import REDUCTIONS
from ringnet.reporting.plots import PLOTS
from ringnet.scenario import schedule, template
from tests.commands import FOLDER, SINGLE, cells, is_refused, written

pytestmark = pytest.mark.usefixtures("sketched")  # what figures look like is tested elsewhere


@pytest.fixture(autouse=True)
def here(own_folder):
    """Every command runs in an empty folder but for a scenario."""
    (own_folder / "ring.yaml").write_text(SINGLE)


def test_init_writes_a_scenario_that_runs(ringnet):
    assert ringnet("init").exit_code == 0
    assert Path("scenario.yaml").read_text() == template()
    assert ringnet("check", "scenario.yaml").exit_code == 0


def test_init_never_writes_over_a_file_unasked(ringnet):
    assert is_refused(ringnet("init", "ring.yaml"), "ring.yaml", "--force")
    assert Path("ring.yaml").read_text() == SINGLE
    assert ringnet("init", "ring.yaml", "--force").exit_code == 0
    assert Path("ring.yaml").read_text() == template()


def test_init_needs_the_name_of_a_file(ringnet, tmp_path):
    assert is_refused(ringnet("init", tmp_path, "--force"), "the name of a file")


def test_the_schema_is_json(ringnet):
    schema = json.loads(ringnet("schema").stdout)
    assert schema["properties"]["scenario_version"]


def test_list_names_everything_that_can_be_chosen(ringnet):
    shown = ringnet("list").stdout
    registries = (ALGORITHMS, TOPOLOGIES, REDUCTIONS, DTYPES, ENGINES, PLOTS)
    assert all(f"\n  {name} " in shown for registry in registries for name in registry)
    assert all(len(line) <= 120 for line in shown.splitlines())
    known = json.loads(ringnet("list", "--json").stdout)
    assert [*known["plots"]] == [*PLOTS]
    assert json.loads(ringnet("list", "plots", "--json").stdout) == {"plots": known["plots"]}


def test_list_says_what_columns_mean(ringnet):
    ringnet("run", "ring.yaml", "--no-plots")
    meant = json.loads(ringnet("list", "columns", "--json").stdout)
    shown = ringnet("list", "columns").stdout
    for table in ("summary", "links", "workers", "transfers"):
        assert f"{table}.csv" in shown
        assert {*pd.read_csv(f"{FOLDER}/{table}.csv").columns} <= {*meant[table]}


def test_list_of_a_kind_that_is_none(ringnet):
    assert is_refused(ringnet("list", "topologys"), "topologys", "did you mean topologies?")


def test_check_says_what_would_run(ringnet):
    shown = ringnet("check", "ring.yaml").stdout
    assert "two rings & a bell: no mistakes" in shown
    plan = json.loads(ringnet("check", "ring.yaml", "--json").stdout)
    assert (plan["points"], plan["least_transfers"], plan["most_transfers"]) == (1, 12, 12)
    assert [*plan["engines"]] == ["events"]
    assert 2**20 < plan["memory_bytes"] < plan["available_bytes"]
    assert not Path("reports").exists()


BY_SWITCH = ("--set", "algorithm=direct", "--set", "network.topology=switch")


def test_check_leaves_long_proofs_to_the_run_and_says_so(ringnet, monkeypatch):
    monkeypatch.setattr("ringnet.cli.check.MOST_PROOF_S", 0.0)
    proved = []
    monkeypatch.setattr("ringnet.cli.check.check", proved.append)
    schedule._built.cache_clear()  # what was proved before takes nothing
    Path("own.py").write_text("from ringnet.collectives.rings import ring as own\n")
    left = ringnet("check", "ring.yaml", *BY_SWITCH)
    assert "the schedule is not proved here, which takes roughly a second; ringnet run proves it" in left.stderr
    assert not proved
    own = ringnet("check", "ring.yaml", "--set", "algorithm={python: own.py:own}", "--allow-python")
    assert "not proved" not in own.stderr
    assert len(proved) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["workers=1000000", "algorithm=direct"], ["too large", "transfers", "at most"]),
        (["workers=1000000", "message=1 TB"], ["memory", "payload: none"]),
        (["workers=1024", "message=1 TB"], ["memory", "payload: {elements"]),
        (
            ["engine=recurrence", "network.topology=switch", "worker.exceptions={1: {start: never}}"],
            ["not exact", "events"],
        ),
        (["workers=0"], ["workers"]),
    ],
)
def test_check_finds_what_run_would_refuse(ringnet, changes, words):
    options = [part for change in changes for part in ("--set", change)]
    assert is_refused(ringnet("check", "ring.yaml", *options), *words)
    assert is_refused(ringnet("run", "ring.yaml", *options), *words)


def test_plots_are_drawn_again_without_simulating(ringnet, simulated):
    ringnet("run", "ring.yaml", "--no-plots")
    simulated(lambda scenario: pytest.fail("it ran"))
    result = ringnet("plot", FOLDER, "--plot", "link-traffic")
    assert "link-traffic.png" in result.stdout
    assert [name for name in written() if "." in name and name.endswith("png")] == ["link-traffic.png"]
    ringnet("plot", FOLDER)
    assert "space-time.svg" in written()


def test_plots_of_what_is_no_results(ringnet):
    assert is_refused(ringnet("plot", "gone"), "gone", "no such folder")
    assert is_refused(ringnet("plot", "."), "not a folder of results")


def test_an_unknown_plot_is_refused_with_the_nearest(ringnet):
    ringnet("run", "ring.yaml", "--no-plots", "--out", "there")
    assert is_refused(ringnet("plot", "there", "--plot", "link-trafic"), "did you mean link-traffic")


def test_diff_says_what_was_changed_and_what_it_changed(ringnet):
    ringnet("run", "ring.yaml", "--no-plots", "--out", "a")
    ringnet("run", "ring.yaml", "--no-plots", "--out", "b", "--set", "network.latency=2 us")
    shown = ringnet("diff", "a", "b").stdout
    assert "  network.latency  1 us  ->  2 us\n" in shown
    assert ["makespan_s", "4.048 us", "->", "8.048 us", "x 1.988"] in cells(shown)
    found = json.loads(ringnet("diff", "a", "b", "--json").stdout)
    assert found["scenario"] == [{"path": "network.latency", "a": "1 us", "b": "2 us"}]
    assert next(row for row in found["answer"] if row["column"] == "makespan_s")["ratio"] == pytest.approx(
        1.988, rel=1e-3
    )


def test_diff_of_the_same_run(ringnet):
    ringnet("run", "ring.yaml", "--no-plots", "--out", "a")
    assert ringnet("diff", "a", "a").stdout == "changed in the scenario: nothing\nchanged in the answer: nothing\n"
    assert is_refused(ringnet("diff", "a", "gone"), "gone")


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"schema"}))
def test_help_ends_with_an_example_of_what_the_command_takes(name):
    example = import_module(f"ringnet.cli.{name}").EXAMPLE
    program, called, *arguments = shlex.split(example)
    assert (program, called) == ("ringnet", name)
    with typer.main.get_command(app).commands[name].make_context(name, arguments) as context:
        assert context.command.epilog == f"Example: {example}"
        assert any(context.params.values())


@pytest.mark.parametrize(("name", "line"), COMMANDS.items())
def test_the_list_of_commands_says_what_each_command_says_of_itself(name, line):
    assert import_module(f"ringnet.cli.{name}").command.__doc__.partition("\n")[0] == line
