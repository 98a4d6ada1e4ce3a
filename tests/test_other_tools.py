"""Words of other tools: how they spell what ringnet reads, what they leave out, and what of them is not read."""

from __future__ import annotations

import json

import pytest

from ringnet.collectives.proof import check
from ringnet.errors import InputError, ScheduleError
from ringnet.formats.msccl import load_msccl, loads_msccl
from ringnet.formats.networks import read_network_file
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads


@pytest.fixture
def read(tmp_path):
    def of(content, name="file.xml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_network_file(path)

    return of


def amd(gcn):
    """Two GPUs, one link between them."""
    gpus = "".join(
        f'<pci busid="0000:0{one}:00.0" class="0x038000" link_speed="32.0 GT/s PCIe" link_width="16">'
        f'<gpu dev="{one}" sm="94" gcn="{gcn}" rank="{one}"><xgmi target="0000:0{1 - one}:00.0" count="1"/></gpu></pci>'
        for one in (0, 1)
    )
    return f'<system version="2"><cpu numaid="0" arch="x86_64">{gpus}</cpu></system>'


@pytest.mark.parametrize(
    ("gcn", "rate"),
    [
        ("940", 64e9),
        ("gfx940", 64e9),
        ("GFX942", 64e9),
        ("gfx942:sramecc+:xnack-", 64e9),
        ("941", 64e9),
        ("906", 46e9),
        ("gfx908", 46e9),
        ("908", 46e9),
        ("910", 50e9),
        ("gfx90a", 50e9),
        ("gfx950", 76.8e9),
        ("nobody", 50e9),
    ],
)
def test_amds_architectures_in_every_spelling(read, gcn, rate):
    reading = read(amd(gcn))
    assert reading.network.bandwidth_Bps[list(reading.network.route(0, 1))].tolist() == [rate]


def server(*speeds, devs=("0", "1")):
    gpus = "".join(
        f'<pci busid="0000:1{dev[-1]}:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">'
        f'<gpu dev="{dev}"/></pci>'
        for dev in devs
    )
    ports = "\n".join(f'<net name="mlx5_{place}"{speed}/>' for place, speed in enumerate(speeds))
    slot = 'link_speed="16.0 GT/s PCIe" link_width="16"'
    card = f'<pci busid="0000:20:00.0" class="0x020000" {slot}><nic>\n{ports}</nic></pci>'
    return f'<system><cpu numaid="0">{gpus}{card}</cpu></system>'


@pytest.mark.parametrize("speed", ["", ' speed=""', ' speed="-1"', ' speed="0"'])
def test_a_port_without_a_speed_is_what_nccl_takes(read, speed):
    reading = read(server(speed))
    rate = dict(zip(reading.network.names, reading.network.bandwidth_Bps.tolist(), strict=True))
    assert rate["net0->nic0"] == 1.25e9
    assert any("ports without a speed are 10 Gbit/s" in one for one in reading.assumed)


def test_sixteen_times_the_same_mistake_is_one(read):
    with pytest.raises(InputError) as caught:
        read(server(*[' speed="fast"'] * 16))
    (fault,) = caught.value.faults
    assert "(also in lines 3, 4, 5, 6, 7 and 10 more)" in fault.message


def test_devices_in_hexadecimal(read):
    channel = '<channel><gpu dev="0x4"/><gpu dev="0xb"/><gpu dev="1"/></channel>'
    orders = read(f'<graphs><graph pattern="4">{channel}</graph></graphs>').orders
    assert orders == ((1, 2, 0),)
    assert read(server(devs=("0x1", "0x0"))).nodes["0"].startswith("GPU 0000:10")


def test_a_run_says_what_its_network_file_leaves_out(tmp_path):
    (tmp_path / "cloud.xml").write_text(server().replace('<gpu dev="0"/>', "").replace('<gpu dev="1"/>', ""))
    text = "{scenario_version: 1, message: 4 KiB, network: {file: cloud.xml}}"
    notes = simulate(loads(text, folder=tmp_path)).notes
    assert any("network.file leaves out" in note and "NVLink, if the GPUs have it" in note for note in notes)


# -------------------------------------------------------------------------------------------------- schedules


def gather(copies=("0", "1"), *, in_place="0", sizes=""):
    """All-gather of two, each of which copies its own chunk to its output first."""
    gpus = "".join(
        f'<gpu id="{gpu}" i_chunks="1" o_chunks="2" s_chunks="0"><copy i_off="0" o_off="{copies[gpu]}"/>'
        f'<tb id="0" send="{1 - gpu}" recv="{1 - gpu}" chan="0">'
        f'<step s="0" type="s" srcbuf="o" srcoff="{gpu}" dstbuf="o" dstoff="{gpu}" cnt="1" depid="-1" deps="-1"/>'
        f'<step s="1" type="r" srcbuf="o" srcoff="{1 - gpu}" dstbuf="o" dstoff="{1 - gpu}" cnt="1" depid="-1"/>'
        "</tb></gpu>"
        for gpu in (0, 1)
    )
    head = f'name="pair" nchannels="1" nchunksperloop="2" coll="allgather" inplace="{in_place}" ngpus="2" {sizes}'
    return f"<algo {head}>{gpus}</algo>".encode()


@pytest.mark.parametrize("in_place", ["0", "1"])
def test_a_local_copy_puts_the_input_where_it_is_sent_from(in_place):
    schedule = loads_msccl(gather(in_place=in_place))
    check(schedule)
    assert schedule.n_transfers == 2


def test_a_copy_to_the_wrong_place_is_found():
    with pytest.raises(ScheduleError):
        loads_msccl(gather(("1", "0")))
    with pytest.raises(ScheduleError, match="a copy goes beyond buffer o"):
        loads_msccl(gather(("0", "2")))


@pytest.mark.parametrize(
    ("message", "said"),
    [("1 KiB", "from 2 KiB up to 4 KiB: this one of 1 KiB"), ("2 KiB", ""), ("8 KiB", "this one of 8 KiB")],
)
def test_a_message_that_the_schedule_is_not_for_is_said(tmp_path, message, said):
    (tmp_path / "pair.xml").write_bytes(gather(sizes='minBytes="2048" maxBytes="4096"'))
    network = "network: {topology: switch, bandwidth: 25 GB/s, latency: 1 us}"
    head = "scenario_version: 1, workers: 2, collective: all-gather, algorithm: {file: pair.xml}"
    notes = simulate(loads(f"{{{head}, message: {message}, {network}}}", folder=tmp_path)).notes
    told = [note for note in notes if "is for messages" in note]
    assert [said in note for note in told] == ([True] if said else [])


def test_sizes_that_no_message_has_are_refused():
    with pytest.raises(ScheduleError, match="maxBytes is below minBytes"):
        loads_msccl(gather(sizes='minBytes="4096" maxBytes="2048"'))


# ------------------------------------------------------------------------------------ told by name, not read

PLAN = {
    "name": "allreduce_pkt",
    "gpus": [{"id": 0, "threadblocks": [{"id": 0, "ops": [{"channel_ids": [0]}]}]}],
}


def test_a_plan_of_mscclpp_is_told_by_name(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    with pytest.raises(InputError, match=r"an execution plan of MSCCL\+\+.*right would be: MSCCL's XML"):
        load_msccl(tmp_path / "plan.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (json.dumps(PLAN), "an execution plan of MSCCL++"),
        ('{"devices": [], "instances": [], "edges": []}', "an InfraGraph"),
        ("name: x\ndevices: []\ninstances: []\nedges: []\n", "an InfraGraph"),
        ('{"schema": "1.0.2-chakra.0.0.4", "nodes": []}', "a Chakra trace"),
        (b"\x05\x0a\x05\x00\x10COMM_COLL_NODE_ALL_REDUCE", "a Chakra trace"),
        (
            '{"topologies-per-dim": ["Ring", "Switch"], "units-count": [4, 2],\n "link-latency": [400, 700], '
            '"link-bandwidth": [100, 20], "nic-latency": [0, 1]}',
            "a file with topology: [Ring, Switch], npus_count: [4, 2], bandwidth: [100, 20], latency: [400, 700]; "
            "nic-latency have no place there",
        ),
    ],
)
def test_files_that_are_no_networks_are_told_by_name(read, content, said):
    with pytest.raises(InputError) as caught:
        read(content, "file")
    assert said in str(caught.value)
    assert len(caught.value.faults) == 1
