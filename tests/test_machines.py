"""Machines by name, scenarios in layers, and where each key comes from."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest
import yaml

from ringnet.errors import InputError
from ringnet.networks import PRESETS
from ringnet.runs.parts import build, build_site
from ringnet.runs.simulate import simulate
from ringnet.scenario import load, loads
from ringnet.scenario.build import load as loading
from ringnet.scenario.files.machines import machine_of, source_of
from ringnet.scenario.keys.base import MACHINE_FOLDER, MACHINES, title_of

#: The machines that a buyer asks for.
WANTED = {
    "dgx-a100", "dgx-h100", "hgx-h200", "hgx-b200", "gb200-nvl72", "aws-p4d", "aws-p5", "aws-g5", "gcp-a3-mega",
    "azure-nd-a100-v4", "azure-nd-h100-v5", "mi300x", "tpu-v4", "tpu-v5e", "pcie-box", "rack-100gbe",
}  # fmt: skip
#: Bytes per second into and out of a worker over its fastest links, and over the cards of its host to others, from the
#: data sheets: NVLink 600, 900, 1800 GB/s both ways; 200, 400 Gbit/s a card; seven links of 64 GB/s; and so on.
RATES = {
    "dgx-a100": (300e9, 8 * 25e9),
    "dgx-h100": (450e9, 8 * 50e9),
    "hgx-h200": (450e9, 8 * 50e9),
    "hgx-b200": (900e9, 8 * 50e9),
    "gb200-nvl72": (900e9, 72 * 50e9),
    "aws-p4d": (300e9, 50e9),
    "aws-p5": (450e9, 400e9),
    "gcp-a3-mega": (450e9, 200e9),
    "azure-nd-a100-v4": (300e9, 200e9),
    "azure-nd-h100-v5": (450e9, 400e9),
    "mi300x": (64e9, 8 * 50e9),
}


def of(machine, *overrides, **keys):
    text = {"scenario_version": 1, "machine": machine, "message": "1 MiB", "payload": "none"}
    return loads(json.dumps(text | keys), overrides, file="s.yaml")


def faults(*args, **keys):
    with pytest.raises(InputError) as caught:
        of(*args, **keys)
    return [str(fault) for fault in caught.value.faults]


# --------------------------------------------------------------------------------------------------- machines


def test_every_machine_that_is_wanted_is_there():
    assert {*MACHINES} == WANTED


@pytest.mark.parametrize("name", MACHINES)
def test_every_number_of_a_machine_has_a_source_and_the_machine_a_title(name):
    machine = machine_of(name)
    assert title_of(name) == machine.title
    numbers = [
        path
        for path in machine.document.marks
        if path and path[-1] not in ("topology", "shape") and not isinstance(machine.document.get(path), dict)
    ]
    assert [path for path in numbers if source_of(machine, path) is None] == []
    assert not {*machine.sources} - {".".join(map(str, path)) for path in numbers}
    assert all(source.text for source in machine.sources.values())
    assert len((MACHINE_FOLDER / f"{name}.yaml").read_text().splitlines()) < 40


@pytest.mark.parametrize("name", RATES)
def test_a_machine_has_the_rates_of_its_data_sheet(name):
    scenario = of(name, hosts=2)
    network = build_site(scenario).networks[0]
    rate = dict(zip(network.names, network.bandwidth_Bps.tolist(), strict=True))
    inside = max(value for link, value in rate.items() if link.startswith("0->"))
    leaving = [link for link in rate if re.fullmatch(r"h0/nic\d+->(rail|leaf|switch).*", link)]
    assert (inside, sum(rate[link] for link in leaving)) == RATES[name]


@pytest.mark.parametrize("name", MACHINES)
def test_an_all_reduce_runs_on_every_machine(name):
    scenario = of(name) if machine_of(name).document.has(("network", "sides")) else of(name, hosts=2)
    summary = simulate(scenario).summary
    assert 0 < summary["collective_bound_s"] <= summary["makespan_s"]


def test_hosts_give_the_workers_and_workers_the_hosts():
    assert of("dgx-h100", hosts=16).workers == 128
    assert of("dgx-h100").workers == 8
    some = of("dgx-h100", workers=12)
    assert (some.workers, some.network.places) == (12, 16)
    assert of("tpu-v4", network={"sides": [2, 2]}).workers == 4
    assert of("rack-100gbe", hosts=40).workers == 40
    assert (
        of("dgx-h100", network={"workers_per_host": [8, 4], "nics": 1, "between": {"topology": "switch"}}).workers == 12
    )


def test_too_many_workers_are_told_as_the_hosts_that_were_written():
    found = of("dgx-h100", algorithm="hierarchical", hosts=2048)
    with pytest.raises(InputError) as caught:
        build(found)
    (fault,) = caught.value.faults
    assert (fault.path, fault.value, fault.right) == ("hosts", "2048", "at most 1444")


def test_the_switches_that_reduce_go_with_the_network_that_has_them():
    assert of("dgx-h100", hosts=2).network.reduction.switches == ("h*/switch",)
    assert of("dgx-h100", hosts=2, network={"inside": {"shape": "ring"}}).network.reduction is None
    assert of("dgx-h100", workers=8, network={"topology": "torus", "sides": [2, 4]}).network.reduction is None


def test_what_a_scenario_changes_counts_and_takes_along_what_it_makes_pointless():
    changed = of("dgx-h100", hosts=2, network={"between": {"spines": 2}, "inside": {"bandwidth": "100 GB/s"}}).network
    assert changed.between.spines == 2
    assert changed.between.rails == 8
    assert (changed.inside.bandwidth_Bps, changed.inside.latency_s) == (
        1e11,
        PRESETS["nvlink4"].latency_s / 2,
    )
    other = of("mi300x", hosts=2, network={"inside": {"link": "nvlink3"}, "between": {"topology": "switch"}}).network
    assert (other.inside.bandwidth_Bps, other.between.topology, other.between.rails) == (3e11, "switch", None)


def test_a_topology_that_is_named_again_begins_anew():
    alone = of("dgx-h100", hosts=2, network={"between": {"topology": "rails", "rails": 8}}).network
    assert (alone.between.rails, alone.between.spines) == (8, None)


def test_what_a_machine_gives_is_not_taken_out_in_silence():
    with pytest.raises(InputError, match="the key comes from machine dgx-h100"):
        of("dgx-h100", "network.between.spines=", hosts=2)


def test_a_machine_can_be_swept_and_repeated():
    swept = of("dgx-h100", sweep={"over": {"hosts": [1, 2]}})
    assert [point.scenario.workers for point in swept.iter_points()] == [8, 16]
    again = loads(json.dumps(swept.document()))
    assert again.document() == swept.document()
    assert [point.scenario.workers for point in again.iter_points()] == [8, 16]
    kinds = of("dgx-h100", hosts=2, sweep={"over": {"machine": ["dgx-a100", "mi300x"]}})
    assert [point.scenario.network.inside.bandwidth_Bps for point in kinds.iter_points()] == [3e11, 64e9]
    single = of("dgx-h100", hosts=2)
    assert loads(json.dumps(single.document())).document() == single.document()


def test_a_run_says_which_numbers_are_estimates():
    notes = simulate(of("dgx-h100", hosts=2)).notes
    assert any("nobody published it: network.between.spines" in note for note in notes)
    assert not any("published" in note for note in simulate(of("dgx-h100", "network.between.spines=1", hosts=2)).notes)


@pytest.mark.parametrize(
    ("machine", "keys", "said"),
    [
        ("dgx-h10", {}, "did you mean dgx-h100?"),
        (
            "dgx-h100",
            {"workers": 17, "hosts": 2},
            "workers: 17 workers are more than the 16 that 2 hosts of 8 hold",
        ),
        ("dgx-h100", {"hosts": 0}, "hosts: "),
        ("dgx-h100", {"hosts": "x"}, "hosts: "),
        ("tpu-v4", {"hosts": 4}, "hosts: the key is never read: this network has no hosts"),
        (7, {}, "machine: "),
        (
            "dgx-h100",
            {"hosts": 3, "network": {"workers_per_host": [8, 4]}},
            "hosts: 3 hosts, and the workers of 2",
        ),
        (
            "tpu-v4",
            {"network": {"sides": "4x4"}},
            "network.sides: a list is wanted; got 4x4; right would be: sides: [4, 4]",
        ),
        (
            "dgx-h100",
            {"network": {"workers_per_host": "8"}},
            "network.workers_per_host: a whole number is wanted",
        ),
        ("dgx-h100", {"network": 5}, "network: "),
        ("dgx-h100", {"network": {"nics": 9}}, "network.nics: 9 cards are more than the 8 workers of a host"),
        ("dgx-h100", {"network": {"nics": 1}}, "network.between.rails (machine dgx-h100): "),
    ],
)
def test_wrong_machines_are_told(machine, keys, said):
    told = faults(machine, **keys)
    assert any(said in fault for fault in told)
    assert not any("workers: the key is missing" in fault for fault in told)


def test_hosts_without_a_machine_are_unread():
    text = "{scenario_version: 1, workers: 2, hosts: 2, message: 1 B, network: {bandwidth: 1 GB/s, latency: 0 s}}"
    with pytest.raises(InputError, match="hosts are those of a machine"):
        loads(text)


def test_parameters_of_hosts_without_any_are_told():
    """A ring has no cards, whatever algorithm would ask it for a way."""
    network = "network: {bandwidth: 1 GB/s, latency: 0 s, nics: 2, between: {rails: 2}}"
    text = f"{{scenario_version: 1, workers: 4, message: 1 B, algorithm: channel-ring, {network}}}"
    with pytest.raises(InputError, match="topology ring has no nics"):
        loads(text)


# --------------------------------------------------------------------------------------------------- includes


@pytest.fixture
def folder(tmp_path):
    def write(**files):
        for name, keys in files.items():
            (tmp_path / f"{name}.yaml").write_text(keys if isinstance(keys, str) else yaml.dump(keys, sort_keys=False))
        return tmp_path / "main.yaml"

    return write


LINK = {"network": {"bandwidth": "1 GB/s", "latency": "1 us"}}


def test_later_files_count_more_and_the_scenario_most(folder):
    main = folder(
        one={"workers": 2, "message": "1 KiB", **LINK},
        two={"workers": 4, "network": {"latency": "2 us"}},
        main={"include": ["one.yaml", "two.yaml"], "scenario_version": 1, "message": "2 KiB"},
    )
    found = load(main)
    assert (found.workers, found.message_bytes, found.network.latency_s) == (4, 2048, 2e-6)
    assert (found.network.bandwidth_Bps, found.name) == (1e9, "main")
    assert load(main, ["workers=3"]).workers == 3


def test_files_include_files_and_machines(folder):
    main = folder(
        base={"include": "dgx-a100", "hosts": 2, "message": "1 KiB"},
        main={"include": "base.yaml", "scenario_version": 1, "network": {"nics": 4, "between": {"rails": 4}}},
    )
    found = load(main)
    assert (found.machine, found.workers, found.network.nics) == ("dgx-a100", 16, 4)


def test_a_fault_is_told_in_the_file_where_it_is(folder):
    main = folder(
        base="workers: 2\nmessage: 1 KiB\nnetwork:\n  bandwidth: 5\n  latency: 1 us\n",
        main={"include": "base.yaml", "scenario_version": 1},
    )
    with pytest.raises(InputError, match=r"base\.yaml:4: network\.bandwidth"):
        load(main)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"main": {"include": "main.yaml"}}, "main.yaml:1: include: the file includes itself"),
        (
            {"main": {"include": "a.yaml"}, "a": {"include": "b.yaml"}, "b": {"include": "a.yaml"}},
            "the file includes itself",
        ),
        ({"main": {"include": "../x.yaml"}}, "include: the file lies outside the scenario's folder"),
        ({"main": {"include": "/etc/passwd.yaml"}}, "include: the file lies outside the scenario's folder"),
        ({"main": {"include": "not.yaml"}}, "include: the file cannot be read"),
        ({"main": {"include": "dgx-h10"}}, "did you mean dgx-h100?"),
        ({"main": {"include": 5}}, "an include is the name of a file"),
        ({"main": {"include": []}}, "include"),
        ({"main": {"include": "a.yaml"}, "a": "- 1\n"}, "a.yaml:1: "),
        (
            {"main": {"include": "a.yaml"}, "a": "workers: 2\nworkers: 3\n"},
            "a.yaml:2: workers: the key is here twice",
        ),
        ({"main": {"include": {"file": "a.yaml"}}}, "include"),
    ],
)
def test_wrong_includes_are_told(folder, files, said):
    main = folder(**files)
    with pytest.raises(InputError) as caught:
        load(main)
    assert said in str(caught.value)


def test_an_include_cannot_be_set_or_swept(folder):
    whole = {"scenario_version": 1, "workers": 2, "message": "1 KiB", **LINK}
    main = folder(main=whole, other=whole)
    with pytest.raises(InputError, match="include: files are included before --set counts"):
        load(main, ["include=other.yaml"])
    with pytest.raises(InputError, match="include"):
        load(main, ["sweep.over.include=[other.yaml]"])


def test_a_bomb_of_includes_is_refused(folder):
    files = {f"f{number}": {"include": [f"f{number + 1}.yaml"] * 4} for number in range(12)}
    main = folder(**files, f12={"workers": 2}, main={"include": "f0.yaml"})
    with pytest.raises(InputError, match="more than 64 files"):
        load(main)


def test_standard_input_is_a_scenario_and_can_be_read_again(monkeypatch, folder):
    text = "{scenario_version: 1, workers: 2, message: 1 KiB, network: {bandwidth: 1 GB/s, latency: 0 s}}"
    loading._standard_input.cache_clear()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert (load("-").workers, load("-", ["workers=3"]).workers, load("-").name) == (2, 3, "stdin")
    loading._standard_input.cache_clear()


# -------------------------------------------------------------------------------------------- what comes from where


def test_each_key_says_where_it_comes_from(folder):
    main = folder(
        base={"machine": "dgx-a100", "hosts": 2},
        main={
            "include": "base.yaml",
            "scenario_version": 1,
            "message": "1 KiB",
            "sweep": {"over": {"seed": [3, 4]}},
        },
    )
    told = {
        key: (value, where.replace(f"{main.parent}/", ""))
        for key, value, where in load(main, ["dtype=float64"]).explained()
    }
    assert told["workers"] == ("16", "hosts, base.yaml:2")
    assert told["network.nics"] == ("8", "machine dgx-a100, base.yaml:1")
    assert told["network.inside.bandwidth"] == (
        "300 GB/s",
        "network.inside.link, base.yaml:1",
    )
    assert told["message"] == ("1 KiB", "main.yaml:3")
    assert told["dtype"] == ("float64", "--set")
    assert told["seed"] == ("3", "the sweep, main.yaml:7")
