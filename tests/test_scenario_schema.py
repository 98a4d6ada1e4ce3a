"""The JSON Schema agrees with the loader on what ships, and on the mistakes that one key alone can make."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ringnet.documents.yaml_text import read_yaml
from ringnet.errors import UnitError
from ringnet.scenario import load, loads, schema, template
from ringnet.units import format_bytes, format_rate, format_seconds, parse_quantity

SHIPPED = sorted((Path(__file__).parents[1] / "scenarios").glob("*.yaml"))
GOOD = "scenario_version: 1\nworkers: 4\nmessage: 1 KiB\nnetwork: {bandwidth: 50 GB/s, latency: 5 us}\n"


@pytest.fixture(scope="module")
def validator():
    Draft202012Validator.check_schema(schema())
    return Draft202012Validator(schema())


def complaints(validator, text):
    return [error.json_path for error in validator.iter_errors(read_yaml(text, "s.yaml")[0].data)]


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_scenarios_and_their_documents(validator, file):
    assert complaints(validator, file.read_text(encoding="utf-8")) == []
    assert list(validator.iter_errors(load(file).document())) == []


def test_the_template(validator):
    assert complaints(validator, template()) == []


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("wrkers: 4", "$"),
        ("seed: one", "$.seed"),
        ("seed: -1", "$.seed"),
        ("message: 5.5", "$.message"),
        ("dtype: float23", "$.dtype"),
        ("payload: {element: 4}", "$.payload"),
        ("report: {plots: [none]}", "$.report.plots[0]"),
        ("worker: {start: 5}", "$.worker.start"),
        ("worker: {exceptions: {one: {start: never}}}", "$.worker.exceptions"),
        ("worker: {exceptions: {1: {strt: never}}}", "$.worker.exceptions['1']"),
        ("sweep: {over: {workers: 4}}", "$.sweep.over.workers"),
        ("sweep: {ovr: {workers: [4]}}", "$.sweep"),
        ("scenario_version: 2", "$.scenario_version"),
    ],
)
def test_a_mistake_is_marked_where_it_is(validator, line, place):
    key = line.split(":")[0]
    text = "".join(kept for kept in GOOD.splitlines(keepends=True) if not kept.startswith(f"{key}:")) + line
    assert complaints(validator, text) == [place]


def test_what_a_single_run_must_have(validator):
    assert complaints(validator, "scenario_version: 1") == ["$", "$"]
    assert complaints(validator, GOOD.replace("latency: 5 us", "")) == ["$.network"]
    assert complaints(validator, "scenario_version: 1\ndata: a.npy\nnetwork: {bandwidth: 5 GB/s, latency: 1 s}") == []


def test_a_sweep_may_give_it(validator):
    sweep = "sweep: {over: {workers: [2], message: {from: 1 KiB, to: 1 MiB, factor: 4}, network.latency: [1 us]}}"
    assert complaints(validator, f"scenario_version: 1\nnetwork: {{bandwidth: 50 GB/s}}\n{sweep}\n") == []


def test_every_key_is_explained():
    def keys(part, path=""):
        for name, inner in part.get("properties", {}).items():
            yield f"{path}.{name}", inner

    found = schema()
    parts = [found, *found["$defs"].values()]
    described = {path: "description" in inner or "$ref" in inner for part in parts for path, inner in keys(part)}
    assert len(described) > 40
    assert all(described.values())


def test_no_trace_of_how_it_was_made():
    assert "'type': 'null'" not in str(schema())
    assert "None" not in str(schema())
    assert str(schema()).count("'title': ") == 1


@given(st.integers(0, 2**60), st.floats(0, 1e9), st.floats(1e-3, 1e18))
def test_every_quantity_that_is_written_is_allowed(validator, size, time_s, rate_Bps):
    text = f"""{{scenario_version: 1, workers: 1, message: {format_bytes(size)},
    network: {{bandwidth: {format_rate(rate_Bps)}, latency: {format_seconds(time_s)}}}}}"""
    assert complaints(validator, text) == []


@given(st.from_regex(r"\A[+]?[0-9]{1,3}(\.[0-9])?(e[0-9])? ?[A-Za-z/]{0,5}\Z"))
def test_what_the_loader_reads_the_schema_allows(validator, text):
    try:
        parse_quantity(text, "seconds")
    except UnitError:
        return
    found = read_yaml(GOOD, "s")[0].data | {"worker": {"start": text}}
    assert list(validator.iter_errors(found)) == []


def test_names_come_from_the_registries():
    found = schema()["properties"]
    assert found["engine"]["enum"][0] == "auto"
    assert "bfloat16" in found["dtype"]["enum"]
    assert loads(GOOD).engine in found["engine"]["enum"]
