"""``network: {file: ...}``: another tool's file as the network of a scenario."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ringnet.errors import InputError
from ringnet.runs.parts import build
from ringnet.runs.simulate import simulate
from ringnet.scenario import load, loads

FILES = Path(__file__).parent / "data" / "networks"
TEXT = "{{scenario_version: 1, message: 1 MiB, network: {{file: {}}}}}"


@pytest.fixture
def scenario(tmp_path):
    """Read a scenario beside copies of the files: ``scenario("ring-4.yml", "workers=4")``."""
    shutil.copytree(FILES, tmp_path, dirs_exist_ok=True)

    def read(name, *overrides, **options):
        return loads(TEXT.format(name), overrides, folder=tmp_path, **options)

    return read


@pytest.fixture
def faults(scenario):
    def of(*args):
        with pytest.raises(InputError) as caught:
            scenario(*args)
        return [str(fault) for fault in caught.value.faults]

    return of


@pytest.mark.parametrize("name", ["ring-4.yml", "pcie-server.xml", "nvlink-server.xml", "xgmi-server.xml", "cube.yml"])
def test_every_kind_of_file_runs_and_the_sum_is_right(scenario, name):
    result = simulate(scenario(name))
    assert result.verdict.sum_ok
    assert result.summary["bound_share"] <= 1 + 1e-12


def test_the_file_says_how_many_workers_there_are(scenario):
    assert scenario("cube.yml").workers == 24
    assert scenario("cube.yml", "workers=24").workers == 24


def test_a_ring_file_takes_as_long_as_a_ring(scenario):
    plain = "{scenario_version: 1, workers: 4, message: 1 MiB, network: {bandwidth: 53687091200 B/s, latency: 500 ns}}"
    makespans = [simulate(one).summary["makespan_s"] for one in (scenario("ring-4.yml"), loads(plain))]
    assert makespans[0] == pytest.approx(makespans[1], rel=1e-12, abs=0)


def test_other_workers_than_in_the_file_are_refused_with_both_numbers(faults):
    (fault,) = faults("ring-4.yml", "workers=8")
    assert "the file is for 4 workers, the scenario has 8 workers" in fault
    assert "network.file" in fault


def test_empty_places_are_asked_for_by_name(scenario):
    parts = build(scenario("cube.yml", "workers=4", "network.places=24", "network.placement=[0, 6, 12, 18]"))
    assert parts.network.places == ("0", "6", "12", "18")


def test_links_of_the_file_can_be_made_unequal(scenario):
    network = build(scenario("ring-4.yml", "network.links.0->1.bandwidth=1 GB/s")).network
    assert network.bandwidth_Bps[network.names.index("0->1")] == 1e9
    assert network.bandwidth_Bps[network.names.index("1->2")] == 50 * 2**30


@pytest.mark.parametrize(
    "key", ["topology=switch", "bandwidth=1 GB/s", "latency=1 us", "leaves=2", "link=nvlink4", "nics=2"]
)
def test_keys_that_the_file_answers_are_refused(faults, key):
    (fault,) = faults("ring-4.yml", f"network.{key}")
    assert "never read: the file says what the network is" in fault


def test_flows_are_not_spread_over_a_file(faults):
    (fault,) = faults("ring-4.yml", "network.routes=ecmp")
    assert "has its own routes" in fault


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing.xml", "nothing.xml: the file cannot be read: No such file"),
        ("rings.xml", "the order of rings, and no links"),
        ("../x.yml", "outside the scenario's folder"),
        ("8", "text is wanted"),
        ("[ring-4.yml]", "text is wanted"),
    ],
)
def test_what_is_no_network_file_is_told_at_its_key(faults, name, said):
    (fault,) = faults(name)
    assert said in fault
    assert fault.startswith("<text>:1: network.file")


def test_a_mistake_in_the_file_is_told_with_its_own_line(faults, tmp_path):
    (tmp_path / "bad.yml").write_text((FILES / "ring-4.yml").read_text().replace("50.0", "0"))
    (fault,) = faults("bad.yml")
    assert "network.file: bad.yml:4: bandwidth: out of range; got 0" in fault


def test_the_document_loads_again_and_has_nothing_that_the_file_says(scenario, tmp_path):
    first = scenario("cube.yml")
    document = first.document()
    assert document["network"]["file"] == "cube.yml"
    assert not {"topology", "bandwidth", "latency"} & {*document["network"]}
    again = loads(str(document).replace("'", '"').replace("None", "null"), folder=tmp_path)
    assert again.document() == document
    assert again.key() == first.key()


def test_another_content_is_another_run(scenario, tmp_path):
    before = scenario("ring-4.yml").key()
    path = tmp_path / "ring-4.yml"
    path.write_text(path.read_text().replace("50.0", "25.0"))
    os.utime(path, ns=(1, 1))
    after = scenario("ring-4.yml")
    assert after.key() != before
    assert build(after).network.bandwidth_Bps[0] == 25 * 2**30


def test_files_can_be_swept(scenario, tmp_path):
    files = "[ring-4.yml, pcie-server.xml]"
    text = f"{{scenario_version: 1, message: 1 MiB, workers: 4, sweep: {{over: {{network.file: {files}}}}}}}"
    points = loads(text, folder=tmp_path).points()
    assert [build(point.scenario).network.topology for point in points] == ["ring", "nccl-topology"]
    assert {*loads(text, folder=tmp_path).inputs()} == {"ring-4.yml", "pcie-server.xml"}


def test_a_run_says_that_something_is_assumed(scenario):
    assert "`ringnet network pcie-server.xml`" in " ".join(simulate(scenario("pcie-server.xml")).notes)


def test_a_scenario_file_finds_what_lies_beside_it(tmp_path):
    shutil.copy(FILES / "ring-4.yml", tmp_path)
    (tmp_path / "s.yaml").write_text(TEXT.format("ring-4.yml"))
    assert load(tmp_path / "s.yaml").workers == 4


def test_placed_workers_say_where_they_sit(scenario):
    result = simulate(scenario("ring-4.yml", "network.order=[0, 2, 1, 3]"))
    assert result.workers["place"].tolist() == ["0", "2", "1", "3"]
    assert "place" not in simulate(scenario("ring-4.yml")).workers
