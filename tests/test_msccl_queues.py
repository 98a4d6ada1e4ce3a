"""Exported files end on real connections, which hold a few sends only: all algorithms, all collectives, N = 2 to 16."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import pytest

from ringnet.collectives import ALGORITHMS
from ringnet.errors import InputError, ScheduleError
from ringnet.formats.msccl import dumps_msccl, loads_msccl, writer
from tests.conftest import make_schedule

DEPTHS = {"Simple": 2, "LL": 8, "LL128": 8}


def is_carried_out(text: str, depth: int | None = None) -> bool:
    """Do the steps of a file, block by block in turn, with connections of a depth; whether all are done."""
    tree = ElementTree.fromstring(text)
    depth = depth or DEPTHS[tree.get("proto")]
    blocks = {(int(gpu.get("id")), int(tb.get("id"))): (tb, list(tb)) for gpu in tree for tb in gpu}
    done, held = dict.fromkeys(blocks, 0), Counter()
    before = None
    while done != before:
        before = dict(done)
        for (gpu, block), (tb, steps) in blocks.items():
            channel = int(tb.get("chan"))
            to, of = (gpu, int(tb.get("send")), channel), (int(tb.get("recv")), gpu, channel)
            while done[gpu, block] < len(steps):
                step = steps[done[gpu, block]].attrib
                if int(step["depid"]) >= 0 and done[gpu, int(step["depid"])] <= int(step["deps"]):
                    break
                sends, receives = step["type"] == "s", step["type"] in {"r", "rrc"}
                if (sends and held[to] == depth) or (receives and held[of] == 0):
                    break
                held[to] += sends
                held[of] -= receives
                done[gpu, block] += 1
    return all(done[name] == len(steps) for name, (_, steps) in blocks.items())


def schedules(name):
    for n_workers in range(2, 17):
        for collective in ALGORITHMS[name].collectives:
            try:
                yield ALGORITHMS[name].build(n_workers, collective)
            except InputError:  # there is none for so many
                continue


@pytest.mark.parametrize("name", [name for name, one in ALGORITHMS.items() if not one.in_switches])
def test_every_exported_file_is_carried_out(name):
    found = list(schedules(name))
    assert found
    for schedule in found:
        assert is_carried_out(dumps_msccl(schedule)), (schedule.collective, schedule.n_workers)


def test_the_checker_sees_a_file_that_waits_for_itself():
    """Three sends each way before the first receive."""
    text = """<algo proto="Simple">{}</algo>""".format(
        "".join(
            f'<gpu id="{gpu}"><tb id="0" send="{1 - gpu}" recv="{1 - gpu}" chan="0">'
            + "".join(f'<step type="{kind}" depid="-1" deps="-1"/>' for kind in ("s", "s", "s", "r", "r", "r"))
            + "</tb></gpu>"
            for gpu in (0, 1)
        )
    )
    assert not is_carried_out(text)
    assert is_carried_out(text, depth=3)


def exchange(n_at_once):
    """Two workers that send each other so many chunks at once, and only then the rest."""
    first = [(src, 1 - src, chunk) for chunk in range(n_at_once) for src in (0, 1)]
    return make_schedule(2, first, op="reduce", algorithm="exchange")


def test_blocks_are_taken_apart_where_that_is_enough():
    text = dumps_msccl(exchange(5))
    assert 'proto="Simple"' in text
    assert 'send="-1"' in text
    assert is_carried_out(text)
    assert loads_msccl(text).n_transfers == 10


def test_what_no_protocol_carries_is_refused(monkeypatch):
    monkeypatch.setattr(writer, "DEPTHS", {"Simple": 0})
    with pytest.raises(ScheduleError, match="holds 0 sends at most"):
        dumps_msccl(exchange(9))
