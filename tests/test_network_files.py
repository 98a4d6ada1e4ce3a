"""Other tools' network files: what they say, what is assumed and left out, and what bad ones are told."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from ringnet.collectives import ALGORITHMS
from ringnet.documents.xml_tree import parse_xml
from ringnet.engines import ENGINES, Workers
from ringnet.errors import InputError, NetworkError
from ringnet.formats.networks import network_from_file, read_network_file
from ringnet.formats.networks.astra import read_astra
from ringnet.formats.networks.reading import NETWORK_XML
from ringnet.networks import TOPOLOGIES

FILES = Path(__file__).parent / "data" / "networks"
GIB = 2**30
PCIE3 = 8e9 * 128 / 130 / 8  # bytes/s of a lane


@pytest.fixture
def read():
    """Read one of our files."""
    return lambda name: read_network_file(FILES / name)


@pytest.fixture
def way(read):
    """Names of the links from worker to worker in one of our files."""

    def names(name, src, dst):
        network = read(name).network
        return [network.names[link] for link in network.route(src, dst)]

    return names


@pytest.fixture
def rates(read):
    """Bandwidth of each link of one of our files, by name."""
    return lambda name: dict(zip((n := read(name).network).names, n.bandwidth_Bps.tolist(), strict=True))


@pytest.fixture
def faults(tmp_path):
    """What is said of a file with this content."""

    def of(content, name="file.xml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(InputError) as caught:
            read_network_file(path)
        return [str(fault).removeprefix(f"{path}") for fault in caught.value.faults]

    return of


def routes_are_ways(network):
    """Every route is a chain of links from its worker to its worker, no node twice; no link has no rate."""
    for src, dst in permutations(range(network.n_workers), 2):
        ends = [network.ends(link) for link in network.route(src, dst)]
        nodes = [ends[0][0], *(end for _, end in ends)]
        assert [start for start, _ in ends] == nodes[:-1]
        assert (nodes[0], nodes[-1]) == (str(src), str(dst))
        assert len({*nodes}) == len(nodes)
        assert not {*nodes[1:-1]} & {node for node in nodes[1:-1] if node.startswith(("net", "nic"))}
    assert len({*network.names}) == network.n_links
    assert (network.bandwidth_Bps > 0).all()
    assert (network.latency_s >= 0).all()


def all_words(reading):
    return " ".join((*reading.understood, *reading.assumed, *reading.left_out))


# ---------------------------------------------------------------------------------------------- ASTRA-sim


def test_a_gb_of_astra_is_2_to_the_30(read):
    network = read("ring-4.yml").network
    assert network.bandwidth_Bps.tolist() == [50 * GIB] * 8
    assert network.latency_s == pytest.approx([500e-9] * 8)


def test_a_ring_goes_the_shorter_way_up_in_a_tie(way):
    assert way("ring-4.yml", 0, 3) == ["0->3"]
    assert way("ring-4.yml", 3, 1) == ["3->0", "0->1"]


def test_dimensions_are_crossed_from_the_inside_out(way):
    """Worker 23 stands at 3, 2, 1: up one ring from 0, across the row, over the switch of its column."""
    assert way("cube.yml", 0, 23) == ["0->3", "3->11", "11->switch2-11", "switch2-11->23"]
    assert way("cube.yml", 0, 4) == ["0->4"]


def test_every_dimension_has_its_own_rate(read, rates):
    network, of = read("cube.yml").network, rates("cube.yml")
    assert (of["0->3"], of["3->11"], of["11->switch2-11"]) == (200 * GIB, 100 * GIB, 50 * GIB)
    # 6 rings of 4, 8 triangles, 12 switches of 2, both ways each
    assert network.n_links == 2 * (6 * 4 + 8 * 3 + 12 * 2)
    assert network.latency_s[network.route(0, 23)[-1]] == pytest.approx(2e-6)


def test_what_astra_does_not_say_and_what_is_not_read(read):
    reading = read("cube.yml")
    assert "line 6: the key packaging" in "".join(reading.left_out)
    assert "one by one" in "".join(reading.assumed)
    assert not read("ring-4.yml").left_out


@pytest.mark.parametrize("topology", ["Ring", "Switch"])
@pytest.mark.parametrize("n_workers", [2, 3, 16])
def test_astra_files_take_as_long_as_our_topologies(topology, n_workers):
    """The conversions are those that agree with ASTRA-sim's own figures."""
    text = f"topology: [{topology}]\nnpus_count: [{n_workers}]\nbandwidth: [37.5]\nlatency: [250]\n"
    theirs = read_astra(text.encode(), "x.yml").network
    ours = TOPOLOGIES[topology.lower()].build(n_workers, 37.5 * GIB, 250e-9)
    schedule = ALGORITHMS["ring"].build(n_workers, "all-reduce")
    chunk_bytes = np.full(n_workers, 100_000)
    ends = [
        ENGINES["events"].run(schedule, network, Workers.alike(n_workers), chunk_bytes).workers["end_s"]
        for network in (theirs, ours)
    ]
    assert ends[0].tolist() == pytest.approx(ends[1].tolist(), rel=1e-15, abs=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[ 4 ]", "[ 4, 2 ]"), ":3: npus_count: 2 entries for 1 dimension"),
        (("[ 50.0 ]", "[ 0 ]"), ":4: bandwidth: out of range; got 0; right would be: a number above 0"),
        (("[ 50.0 ]", "[ -1 ]"), ":4: bandwidth: out of range; got -1"),
        (("[ 50.0 ]", "[ .nan ]"), ":4: bandwidth: a number is wanted; got .nan"),
        (("[ 50.0 ]", "[ nan ]"), ":4: bandwidth: out of range; got nan"),
        (("[ 500.0 ]", "[ -1 ]"), ":5: latency: out of range; got -1; right would be: a number from 0"),
        (("[ 500.0 ]", "500.0"), ":5: latency: a list with an entry for each dimension is wanted"),
        (("[ 500.0 ]", "[ [ 1 ] ]"), ":5: latency: a list with an entry for each dimension is wanted"),
        (("[ 4 ]", "[ 1 ]"), ":3: npus_count: out of range; got 1"),
        (("[ 4 ]", "[ 4.5 ]"), ":3: npus_count: a number is wanted; got 4.5"),
        (("[ 4 ]", "[ 1000000 ]"), ":3: npus_count: the network has 1,000,000 workers and 2,000,000 links"),
        (
            ("[ Ring ]", "[ Torus ]"),
            ":2: topology: there is no such topology; got Torus; right would be: Ring,",
        ),
        (("npus_count", "npu_count"), ": npus_count: the key is missing; got npu_count"),
        (("latency", "bandwidth"), ":5: bandwidth: the key is here twice"),
        (("[ 4 ]", "&a [ 4 ]"), ":3: anchors, aliases and tags are not read"),
        (("[ 4 ]", "!!python/tuple [ 4 ]"), ":3: anchors, aliases and tags are not read"),
        (("[ 4 ]", "[ 4"), ":4: the text is not readable as YAML"),
    ],
)
def test_a_mistake_in_an_astra_file_is_told_with_its_line(faults, change, said):
    content = (FILES / "ring-4.yml").read_text()
    assert any(fault.startswith(said) for fault in faults(content.replace(*change), "ring.yml"))


def test_every_mistake_of_an_astra_file_is_told_at_once(faults):
    text = "topology: [Rings]\nnpus_count: [0]\nbandwidth: [0]\nlatency: [x]\n"
    assert len(faults(text, "ring.yml")) == 4


@pytest.mark.parametrize(
    "text",
    ["", "just words", "[" * 3000, "a: [" + "1," * 9000 + "]", "- 1", "{[1]: 2}", "a: " + "x" * 70_000],
)
def test_what_is_no_mapping_of_lists_is_refused(faults, text):
    assert len(faults(text, "ring.yml")) >= 1


def test_bytes_that_are_no_text_are_refused(faults):
    message = ":1: the file is not text in UTF-8 (byte 12); got 0xff; right would be: a file saved as UTF-8"
    assert faults(b"topology: [ \xff ]", "a.yml") == [message]


# ------------------------------------------------------------------------------------------ NCCL topologies


def test_workers_without_numbers_go_by_bus_address(read, way):
    assert way("pcie-server.xml", 0, 1) == ["0->pci0", "pci0->1"]
    assert read("pcie-server.xml").nodes["0"] == "GPU 0000:11:00.0, line 6"
    assert "bus addresses" in "".join(read("pcie-server.xml").assumed)


def test_between_sockets_the_way_leads_over_both(way):
    assert way("pcie-server.xml", 1, 2) == ["1->pci0", "pci0->cpu0", "cpu0->cpu1", "cpu1->pci1", "pci1->2"]


def test_pcie_links_are_lanes_times_transfers_without_the_coding(rates):
    of = rates("pcie-server.xml")
    assert of["0->pci0"] == pytest.approx(16 * PCIE3)
    assert of["pci0->cpu0"] == pytest.approx(32 * PCIE3)
    assert of["pci1->3"] == pytest.approx(4 * 2.5e9 * 0.8 / 8)
    assert of["nic0->pci0"] == pytest.approx(8 * PCIE3)
    assert of["net0->nic0"] == 12.5e9
    assert of["cpu0->cpu1"] == 16e9


def test_a_hidden_pcie_link_is_assumed_and_said(read, rates):
    assert rates("pcie-server.xml")["2->pci1"] == pytest.approx(16 * PCIE3)
    assert "hides" in "".join(read("pcie-server.xml").assumed)


def test_what_of_a_server_is_left_out(read):
    left_out = " ".join(read("pcie-server.xml").left_out)
    assert "1 x PCI device of class 0x010802" in left_out
    assert "1 network card and 1 network port" in left_out
    assert "NVLink, if the GPUs have it" in left_out


def test_workers_go_by_rank(read):
    assert read("nvlink-server.xml").nodes["0"] == "GPU 0000:2f:00.0, line 10"


def test_nvlinks_come_before_pcie(way):
    assert way("nvlink-server.xml", 0, 1) == ["0->nvswitch", "nvswitch->1"]
    assert way("nvlink-server.xml", 2, 3) == ["2->3"]
    assert way("nvlink-server.xml", 3, 2) == ["3->2"]
    assert way("nvlink-server.xml", 0, 2) == ["0->cpu0", "cpu0->2"]


def test_nvlinks_to_all_switches_add_up(rates):
    of = rates("nvlink-server.xml")
    assert of["0->nvswitch"] == of["nvswitch->0"] == of["1->nvswitch"] == 9 * 25e9
    assert of["2->3"] == of["3->2"] == 2 * 25e9


def test_odd_nvlinks_are_said(read):
    reading = read("nvlink-server.xml")
    left_out = " ".join(reading.left_out)
    assert "<nvlink> that leads back to its own GPU" in left_out
    assert "<nvlink> whose other end is no GPU" in left_out
    assert "element <c2c> in <gpu>" in left_out
    assert "only one of them lists" in " ".join(reading.assumed)
    assert "4 of 6 pairs of GPUs go over PCIe" in reading.understood


def test_xgmi_joins_gpus_of_amd(way, rates):
    assert way("xgmi-server.xml", 1, 0) == ["1->0"]
    assert rates("xgmi-server.xml")["0->1"] == 2 * 64e9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ('link_speed="8 GT/s" link_width="8"', 'link_speed="8 GB/s" link_width="8"'),
            ":7: system > cpu > pci > pci: this is no speed",
        ),
        (('link_width="8"', 'link_width="7"'), ":7: system > cpu > pci > pci: this is no width"),
        (('speed="100000"', 'speed="fast"'), ":9: system > cpu > pci > pci > nic > net: the speed of a port"),
        (('speed="100000"', 'speed="-5"'), ":9: system > cpu > pci > pci > nic > net: the speed of a port"),
        (
            ("0000:12:00.0", "0000:11:00.0"),
            ":5: system > cpu > pci > pci: a GPU needs a bus address of its own",
        ),
        (("0x030200", "0x010802"), ":2: system: there is no GPU in the file"),
    ],
)
def test_a_mistake_in_a_topology_is_told_with_line_and_element(faults, change, said):
    content = (FILES / "pcie-server.xml").read_text()
    assert any(fault.startswith(said) for fault in faults(content.replace(*change)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('count="9"', 'count="0"'), ":12: system > cpu > pci > gpu > nvlink: the count of an nvlink"),
        (('count="9"', 'count="many"'), ":12: system > cpu > pci > gpu > nvlink: the count of an nvlink"),
        (('sm="90"', 'sm="hopper"'), ":6: system > cpu > pci > gpu > nvlink: the sm of a GPU"),
        (("</gpu>", '</gpu><gpu dev="9"/>'), ":8: system > cpu > pci > gpu: a PCI device is one GPU"),
    ],
)
def test_a_mistake_in_an_nvlink_is_told_with_line_and_element(faults, change, said):
    content = (FILES / "nvlink-server.xml").read_text()
    assert any(fault.startswith(said) for fault in faults(content.replace(*change)))


# ---------------------------------------------------------------------------------------------- NCCL graphs


def test_a_graph_file_has_the_order_of_each_channel(read):
    reading = read("rings.xml")
    assert reading.orders == ((0, 1, 2, 3), (0, 3, 2, 1))
    assert reading.network is None
    assert reading.n_workers == 4


def test_devices_of_a_graph_become_workers_and_that_is_said(read):
    reading = read("rings.xml")
    assert reading.assumed == ("workers 0 to 3 are the devices 1, 2, 4, 7",)
    assert "channel 1: 1 -> 7 -> 4 -> 2" in reading.understood
    assert "line 19: <graph>, balanced tree" in reading.left_out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('pattern="4"', 'pattern="3"'), ":2: graphs: there is no ring"),
        (
            ('<gpu dev="7"/>\n      <gpu dev="4"/>', '<gpu dev="7"/>\n      <gpu dev="7"/>'),
            ":12: graphs > graph > channel: a GPU is here twice",
        ),
        (
            ('<gpu dev="7"/>\n      <gpu dev="4"/>', '<gpu dev="7"/>'),
            ":12: graphs > graph > channel: not the same GPUs",
        ),
        (('<gpu dev="7"/>', "<gpu/>"), ":9: graphs > graph > channel > gpu: the dev of a GPU"),
    ],
)
def test_a_mistake_in_a_graph_is_told_with_line_and_element(faults, change, said):
    content = (FILES / "rings.xml").read_text()
    assert any(fault.startswith(said) for fault in faults(content.replace(*change)))


def test_a_ring_without_gpus_is_refused(faults):
    assert ": graphs > graph: the ring has no channel" in faults('<graphs><graph pattern="4"/></graphs>')[0]


# ---------------------------------------------------------------------------------------------- untrusted


BOMB = """<?xml version="1.0"?>
<!DOCTYPE system [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<system>&b;</system>"""


def test_an_xml_bomb_is_not_even_begun(faults):
    assert faults(BOMB) == [
        ":2: a document type or an entity is declared: such files are not read; got system; "
        "right would be: a file without <!DOCTYPE"
    ]


@pytest.mark.parametrize("name", ["pcie-server.xml", "nvlink-server.xml", "rings.xml"])
def test_a_file_cut_off_anywhere_is_refused(faults, name):
    content = (FILES / name).read_bytes()
    for size in range(1, len(content.rstrip()), 97):
        assert faults(content[:size])


def test_depth_and_number_of_elements_are_bounded():
    deep = b"<a>" * (NETWORK_XML.depth + 1) + b"</a>" * (NETWORK_XML.depth + 1)
    many = b"<a>" + b"<b/>" * NETWORK_XML.n_elements + b"</a>"
    for content, said in (
        (deep, "nested too deep"),
        (many, "too many elements"),
        (b" " * (NETWORK_XML.n_bytes + 1), "too large"),
    ):
        with pytest.raises(InputError, match=said):
            parse_xml(content, "x.xml", NETWORK_XML)


def test_a_large_file_is_not_read_whole(tmp_path):
    path = tmp_path / "large.xml"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="too large for a network"):
        read_network_file(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('<algo name="x" ngpus="2"/>', "this is an MSCCL schedule, not a network"),
        ('<platform version="4.1"/>', "this is a SimGrid platform, not a network"),
        ("<html/>", "this is no network"),
        ('<?xml version="1.0" encoding="klingon"?><system/>', "encoding"),
        ('<system a="1" a="2"/>', "duplicate attribute"),
        ("<system>&amp;&nope;</system>", "undefined entity"),
    ],
)
def test_xml_that_is_no_network_is_named(faults, content, said):
    assert said in faults(content)[0]


def test_nothing_a_file_says_reaches_a_terminal_raw(faults):
    text = "".join(faults('<system><cpu><pci class="0x0302" busid="a\u202eb" link_speed="&#x9b;31m"/></cpu></system>'))
    assert text.isprintable()


def test_files_that_are_not_there():
    for path in (FILES, FILES / "nothing.xml"):
        with pytest.raises(InputError, match="cannot be read"):
            read_network_file(path)


# ---------------------------------------------------------------------------------------------- scenarios


def test_a_file_for_other_workers_is_refused_with_both_numbers(tmp_path):
    path = tmp_path / "ring.yml"
    path.write_text((FILES / "ring-4.yml").read_text().replace("4", "16"))
    with pytest.raises(NetworkError, match="the file is for 16 workers, the scenario has 8 workers"):
        network_from_file(path, 8)
    assert network_from_file(path, 16).network.n_workers == 16


def test_a_graph_is_no_network_to_run_on():
    with pytest.raises(NetworkError, match="the order of rings, and no links"):
        network_from_file(FILES / "rings.xml", 4)


@pytest.mark.parametrize("name", [path.name for path in sorted(FILES.iterdir()) if path.name != "rings.xml"])
def test_routes_lead_where_they_should(read, name):
    routes_are_ways(read(name).network)


@pytest.mark.parametrize("name", ["pcie-server.xml", "nvlink-server.xml", "cube.yml"])
def test_what_is_read_can_be_run(read, name):
    network = read(name).network
    n = network.n_workers
    schedule = ALGORITHMS["ring"].build(n, "all-reduce")
    trace = ENGINES["events"].run(schedule, network, Workers.alike(n), np.full(n, 1_000_000))
    assert (trace.workers["end_s"] > 0).all()


# ------------------------------------------------------------------------------------- the tools' own files


def tools_files(folder):
    """Files that other tools ship, which are not part of this repository: beside it, if anywhere."""
    beside = [parent / "shared" / "reference" / folder for parent in Path(__file__).resolve().parents]
    found = sorted(path for place in beside for path in place.glob("*.*ml"))
    why = f"no shared/reference/{folder} beside the repository"
    return found or [pytest.param(None, marks=pytest.mark.skip(reason=why))]


@pytest.mark.parametrize("path", [*tools_files("astra"), *tools_files("topology")], ids=str)
def test_every_file_of_the_tools_is_read_and_explained(path):
    reading = read_network_file(path)
    assert reading.understood
    assert reading.assumed
    if reading.network is not None:
        routes_are_ways(reading.network)
    else:
        assert all(sorted(order) == [*range(reading.n_workers)] for order in reading.orders)


@pytest.mark.parametrize("path", tools_files("topology"), ids=str)
def test_whole_servers_are_found(path):
    assert read_network_file(path).n_workers == (4 if "ncv4" in path.name else 8)


@pytest.mark.parametrize(
    "text",
    ["scenario_version: 1\nname: x\n", "# mine\nname: x\nscenario_version: 1\n", '{"scenario_version": 1}'],
)
def test_a_scenario_of_ringnet_is_told_as_such(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_network_file(path)
    (fault,) = caught.value.faults
    assert fault.message == ("this is a scenario of ringnet, not a network file: `ringnet draw` shows its network")
