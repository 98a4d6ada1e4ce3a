"""Tuner files for NCCL: ranges without gaps, only what NCCL has, and what is left out is said."""

from __future__ import annotations

import pandas as pd
import pytest

from ringnet.analysis.winners import with_ranks
from ringnet.errors import InputError
from ringnet.formats.tuner import ENDLESS_BYTES, HEADER, TunerLine, dumps_tuner, loads_tuner
from ringnet.study.nccl import tuner_text


def table(times: dict[str, list[float]], n_workers: int = 8) -> pd.DataFrame:
    rows = [
        {"n_workers": n_workers, "message_bytes": 1024 * 4**place, "algorithm": name, "makespan_s": time_s}
        for name, column in times.items()
        for place, time_s in enumerate(column)
    ]
    return with_ranks(pd.DataFrame(rows))


TREE_THEN_RING = table({"double-binary-tree": [1.0, 2.0, 8.0], "ring": [4.0, 4.0, 4.0]})


def test_ranges_follow_each_other_from_nothing_to_everything():
    text, notes = tuner_text(TREE_THEN_RING, "all-reduce")
    first, second = loads_tuner(text)
    assert (first["algorithm"], first["min_bytes"], first["max_bytes"]) == ("tree", 0, 8192)
    assert (second["algorithm"], second["min_bytes"], second["max_bytes"]) == ("ring", 8193, ENDLESS_BYTES)
    assert {row["nRanks"] for row in (first, second)} == {8}
    assert notes == []


def test_what_nccl_does_not_have_is_not_chosen_and_said():
    text, notes = tuner_text(
        table({"direct": [0.5, 1.0, 9.0], "double-binary-tree": [1.0, 2.0, 8.0], "ring": [4.0, 4.0, 4.0]}),
        "all-reduce",
    )
    assert [row["algorithm"] for row in loads_tuner(text)] == ["tree", "ring"]
    (note,) = notes
    assert note == (
        "with 8 workers direct is the fastest from 1 KiB to 4 KiB, but NCCL does not have it: "
        "the best that it has takes up to 2 times as long there"
    )
    assert "NCCL does not have it" in text.replace("\n# ", " ")


def test_what_is_one_to_nccl_is_one_line():
    text, _ = tuner_text(table({"pipelined-ring": [1.0, 2.0, 8.0], "ring": [4.0, 4.0, 4.0]}), "all-reduce")
    (row,) = loads_tuner(text)
    assert (row["algorithm"], row["min_bytes"], row["max_bytes"]) == ("ring", 0, ENDLESS_BYTES)


def test_channels_that_were_asked_for_are_written():
    label = "channel-ring (n_channels 4)"
    text, _ = tuner_text(table({label: [1.0, 2.0, 3.0]}), "all-reduce", {label: 4})
    assert loads_tuner(text)[0]["channels"] == 4


def test_nodes_are_written_where_the_network_has_some():
    text, _ = tuner_text(pd.concat([TREE_THEN_RING, table({"ring": [1.0, 2.0]}, 16)]), "all-reduce", None, 4)
    assert [(row["nNodes"], row["nRanks"]) for row in loads_tuner(text)] == [(2, 8), (2, 8), (4, 16)]
    text, _ = tuner_text(TREE_THEN_RING, "all-reduce")
    assert {row["nNodes"] for row in loads_tuner(text)} == {-1}


def test_the_plug_in_reads_every_line():
    """Its buffer has 256 bytes, and a head that is no comment would be a setting."""
    text = dumps_tuner("all-gather", [TunerLine(8, "ring", 0, 10)], ["a very long comment " * 40])
    lines = text.splitlines()
    assert max(map(len, lines)) < 256
    assert lines[-1] == "allgather,0,10,ring,simple,-1,-1,8,-1,-1"
    assert f"# {HEADER}" in lines


@pytest.mark.parametrize(("collective", "algorithm"), [("all-to-all", "ring"), ("all-reduce", "direct")])
def test_what_nccl_cannot_do_at_all_is_refused(collective: str, algorithm: str):
    with pytest.raises(InputError):
        tuner_text(table({algorithm: [1.0, 2.0]}), collective)
