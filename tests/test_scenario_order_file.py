"""``order: {file: ...}``: the order of rings from NCCL's graph file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from ringnet.collectives.proof import check
from ringnet.collectives.rings import channel_ring
from ringnet.errors import InputError
from ringnet.runs.parts import build
from ringnet.runs.simulate import simulate
from ringnet.scenario import loads

FILES = Path(__file__).parent / "data" / "networks"
#: The workers of rings.xml along the rings of its channels: devices 1, 2, 4, 7 there, and 1, 7, 4, 2 back.
FIRST, SECOND = (0, 1, 2, 3), (0, 3, 2, 1)
TEXT = (
    "{scenario_version: 1, workers: 4, message: 1 MiB, network: {topology: switch, bandwidth: 50 GB/s, latency: 1 us, "
    "order: {file: rings.xml}}}"
)


@pytest.fixture
def scenario(tmp_path):
    shutil.copytree(FILES, tmp_path, dirs_exist_ok=True)
    # The order of the first channel is turned around, so that it differs from the numbers.
    text = (tmp_path / "rings.xml").read_text()
    back = '<gpu dev="1"/>\n      <gpu dev="7"/>\n      <gpu dev="2"/>\n      <gpu dev="4"/>'
    there = '<gpu dev="1"/>\n      <gpu dev="2"/>\n      <gpu dev="4"/>\n      <gpu dev="7"/>'
    assert there in text
    (tmp_path / "turned.xml").write_text(text.replace(there, back))
    return lambda *overrides, **options: loads(TEXT, overrides, folder=tmp_path, **options)


@pytest.fixture
def faults(scenario):
    def of(*args):
        with pytest.raises(InputError) as caught:
            scenario(*args)
        return [str(fault) for fault in caught.value.faults]

    return of


def neighbours(one, channel=0):
    """Who sends to whom on a channel, as the places where they sit."""
    parts = build(one)
    step = next(parts.schedule.steps())
    rows = step.channel == channel
    node = parts.network.node
    return {(node(src), node(dst)) for src, dst in zip(step.src[rows].tolist(), step.dst[rows].tolist(), strict=True)}


def around(*order):
    return {(str(one), str(other)) for one, other in zip(order, (*order[1:], order[0]), strict=True)}


def test_the_ring_goes_round_as_the_first_channel_does(scenario):
    result = simulate(scenario("network.order.file=turned.xml"))
    assert result.workers["place"].tolist() == ["0", "3", "1", "2"]
    assert result.verdict.sum_ok
    assert "network.order: of 2 channels in the file the first is the ring; algorithm: channel-ring takes" in " ".join(
        result.notes
    )


def test_every_channel_has_its_own_ring(scenario):
    one = scenario("algorithm=channel-ring", "network.order.file=turned.xml")
    assert build(one).schedule.n_channels == 2
    assert neighbours(one, 0) == around(0, 3, 1, 2)
    assert neighbours(one, 1) == around(*SECOND)
    result = simulate(one)
    assert result.verdict.sum_ok
    assert "place" not in result.workers  # ranks stay as they are
    assert result.notes == ()


def test_more_channels_than_in_the_file_take_its_rings_by_turns(scenario):
    one = scenario("algorithm={name: channel-ring, n_channels: 3}")
    assert [neighbours(one, channel) for channel in range(3)] == [
        around(*FIRST),
        around(*SECOND),
        around(*FIRST),
    ]


def test_a_file_for_other_workers_is_refused_with_both_numbers(faults):
    (fault,) = faults("workers=8")
    assert "network.order.file: the file is for 4 workers, the scenario has 8 workers; got rings.xml" in fault


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "network.order.file=nothing.xml",
            "network.order.file: nothing.xml: the file cannot be read: No such file",
        ),
        ("network.order.file=pcie-server.xml", "it has links, and no order of rings"),
        ("network.order.file=../x.xml", "outside the scenario's folder"),
        ("network.order.file=8", "network.order.file: text is wanted"),
        ("network.order={files: rings.xml}", "did you mean file?"),
        (
            "algorithm={name: channel-ring, strides: [1]}",
            "algorithm.strides: the key is never read: the file says",
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_key(faults, override, said):
    assert said in "\n".join(faults(override))


def test_a_mistake_in_the_file_is_told_with_its_own_line(faults, scenario, tmp_path):
    text = (tmp_path / "rings.xml").read_text()
    (tmp_path / "bad.xml").write_text(text.replace('<gpu dev="7"/>', '<gpu dev="2"/>', 1))
    fault, _ = faults("network.order.file=bad.xml")  # the other channel then has other GPUs
    assert "network.order.file: bad.xml:4: " in fault
    assert "a GPU is here twice; got dev=2" in fault


def test_the_document_loads_again_and_knows_its_file(scenario, tmp_path):
    first = scenario()
    assert first.document()["network"]["order"] == {"file": "rings.xml"}
    assert [*first.inputs()] == ["rings.xml"]
    key = first.key()
    assert loads(str(first.document()).replace("'", '"'), folder=tmp_path).key() == key
    (tmp_path / "rings.xml").write_text((tmp_path / "turned.xml").read_text())
    os.utime(tmp_path / "rings.xml", ns=(1, 1))
    assert scenario().key() != key


def test_orders_can_be_swept(tmp_path, scenario):
    orders = "sweep: {over: {network.order: [numbered, {file: turned.xml}, best]}}"
    swept = loads(TEXT[:-1] + ", " + orders + "}", folder=tmp_path)
    assert [point.swept["network.order"] for point in swept.points()] == [
        "numbered",
        "{file: turned.xml}",
        "best",
    ]
    assert "turned.xml" in swept.inputs()


def test_files_of_orders_can_be_swept(tmp_path, scenario):
    files = "sweep: {over: {network.order.file: [rings.xml, turned.xml]}}"
    swept = loads(TEXT[:-1] + ", " + files + "}", folder=tmp_path)
    assert [neighbours(point.scenario) for point in swept.points()] == [around(*FIRST), around(0, 3, 1, 2)]
    assert {*swept.inputs()} == {"rings.xml", "turned.xml"}


def test_orders_are_checked_by_whoever_makes_the_schedule():
    schedule = channel_ring(4, n_channels=2, orders=[(0, 2, 1, 3), (3, 1, 2, 0)])
    check(schedule)
    step = next(schedule.steps())
    assert step.dst[np.flatnonzero((step.src == 0) & (step.channel == 0))].tolist() == [2]
    with pytest.raises(InputError, match="does not pass each of 4 workers once"):
        channel_ring(4, orders=[(0, 1, 2, 2)])


def test_an_order_is_for_algorithms_with_a_ring_also_where_they_have_parameters(scenario, faults):
    assert build(scenario("algorithm={name: channel-ring, n_channels: 2}", "network.order=[0, 2, 1, 3]"))
    assert build(scenario("algorithm={name: pipelined-ring, n_slices: 2}")).network.places is not None
