"""The result of a run: its row of numbers, its tables, and the worked example step by step.

Unless a test says otherwise a link has 100 B/s and half a second of latency, and a chunk 100 bytes.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ringnet.analysis.frames import state_table
from ringnet.analysis.result import Run, make_result
from ringnet.analysis.verification import Verdict
from ringnet.collectives import split_sizes
from ringnet.engines import PATH_PARTS
from ringnet.networks import LinkChange
from ringnet.payload import ArraySource, Payload, make_reduction

TIMED = ("algbw_Bps", "busbw_Bps", "schedule_bound_s", "collective_bound_s", "bound_share")
SHARES = tuple(f"{part}_share" for part in PATH_PARTS)


def row(result, *columns):
    return {column: result.summary[column] for column in columns}


def test_the_row_of_a_uniform_ring(result):
    """Four workers and 400 bytes: six steps of 1.5 s."""
    summary = result(4, sends="rendezvous").summary
    assert summary == {
        "name": "ring",
        "collective": "all-reduce",
        "algorithm": "ring",
        "n_workers": 4,
        "message_bytes": 400,
        "dtype": "float32",
        "reduce": "sum",
        "topology": "ring",
        "switching": "cut-through",
        "sharing": "fifo",
        "sends": "rendezvous",
        "engine": "events",
        "payload": "none",
        "seed": 1,
        "n_transfers": 24,
        "makespan_s": 9.0,
        "algbw_Bps": pytest.approx(400 / 9),
        "busbw_Bps": pytest.approx(600 / 9),
        "closed_form_s": pytest.approx(9.0),
        "schedule_bound_s": 6.0,
        "collective_bound_s": 6.0,
        "bound_share": pytest.approx(6 / 9),
        "bound_cut": "between the workers",
        "latency_share": pytest.approx(3 / 9),
        "bandwidth_share": pytest.approx(6 / 9),
        "queueing_share": 0.0,
        "waiting_share": 0.0,
        "overhead_share": 0.0,
        "reducing_share": 0.0,
        "own_queueing_share": 0.0,
        "late_worker": None,
        "late_by_s": None,
        "late_gain_s": None,
        "bytes_sent_per_worker": 600,
        "expected_bytes_per_worker": 600.0,
        "slowest_link": None,
        "slowest_link_utilisation": None,
        "n_slowest_links": None,
        "slowest_link_change": None,
        "slowest_link_gain_s": None,
        "slowest_link_by": "likeness",
        "longest_queue": 0,
        "waiting_s_max": 0.0,  # all the time something moves
        "verified_elements": 0,
        "max_abs_error": None,
        "max_error_share": None,
        "workers_agree": None,
        "sum_ok": None,
        "error": None,
    }


def test_a_slow_link_is_named_and_leaves_no_closed_form(result):
    """Sixteen seconds through link 0->1; two transfers queue for it at a time."""
    slow = result(3, latency_s=0.0, links={"0->1": LinkChange(25.0)})
    assert row(slow, "makespan_s", "closed_form_s", "schedule_bound_s", "collective_bound_s") == {
        "makespan_s": 16.0,
        "closed_form_s": None,
        "schedule_bound_s": 16.0,
        "collective_bound_s": 12.0,
    }
    assert row(slow, "slowest_link", "slowest_link_utilisation", "longest_queue") == {
        "slowest_link": "0->1",
        "slowest_link_utilisation": 1.0,
        "longest_queue": 2,
    }
    assert row(slow, "bandwidth_share", "queueing_share", "own_queueing_share") == {
        "bandwidth_share": 1.0,  # it queues behind its own
        "queueing_share": 0.0,
        "own_queueing_share": 0.0,
    }
    assert slow.sentence == "100 % bandwidth"
    workers = slow.workers
    assert workers["own_queueing_s"][workers["end_s"].argmax()] == 6.0


@pytest.mark.parametrize("engine", ["events", "compiled", "recurrence"])
def test_a_latency_that_a_queue_hides_takes_no_time(result, engine):
    """Each hop of the others is over while the slow link still serves what was there before."""
    slow = result(8, latency_s=10.0, links={"0->1": LinkChange(2.0)}, engine=engine)
    without = result(8, latency_s=0.0, links={"0->1": LinkChange(2.0)}, engine=engine)
    gain_s = slow.summary["makespan_s"] - without.summary["makespan_s"]
    assert slow.summary["latency_share"] * slow.summary["makespan_s"] == pytest.approx(gain_s)
    assert 0 < slow.summary["latency_share"] < 0.05 < slow.workers["path_latency_s"].max() / slow.summary["makespan_s"]


@pytest.mark.parametrize("topology", ["ring", "switch"])
def test_one_worker_has_empty_cells(result, topology):
    one = result(1, topology=topology)
    empty = (*TIMED, *SHARES, "closed_form_s", "slowest_link", "slowest_link_utilisation")
    assert row(one, *empty) == dict.fromkeys(empty)
    assert row(one, "makespan_s", "n_transfers", "bytes_sent_per_worker", "longest_queue") == {
        "makespan_s": 0.0,
        "n_transfers": 0,
        "bytes_sent_per_worker": 0,
        "longest_queue": 0,
    }
    assert one.sentence == "nothing moved"
    assert one.links["utilisation"].isna().all()


def test_no_time_at_all_has_empty_cells_too(result):
    nothing = result(3, 0, latency_s=0.0)
    assert row(nothing, "makespan_s", *TIMED, *SHARES) == {"makespan_s": 0.0} | dict.fromkeys((*TIMED, *SHARES))
    assert nothing.sentence == "nothing moved"


def test_an_empty_message_takes_its_latency_at_no_bandwidth(result):
    empty = result(3, 0)
    assert row(empty, "makespan_s", "algbw_Bps", "busbw_Bps", "bound_share", "latency_share") == {
        "makespan_s": 2.0,
        "algbw_Bps": 0.0,
        "busbw_Bps": 0.0,
        "bound_share": 0.0,
        "latency_share": 1.0,
    }


def test_of_uneven_chunks_the_most_that_a_worker_sends_is_told(result):
    """Worker 0 sends chunks 0 and 2, then 1 and 0: 100 + 300 + 200 + 100 bytes; the others more."""
    uneven = result(3, [100, 200, 300])
    assert uneven.workers["sent_bytes"].tolist() == [700, 800, 900]
    assert row(uneven, "bytes_sent_per_worker", "expected_bytes_per_worker") == {
        "bytes_sent_per_worker": 900,
        "expected_bytes_per_worker": 800.0,
    }


def test_rows_that_were_not_kept_are_spoken_of(case):
    run = case(3)
    labels = dict.fromkeys(("name", "message_bytes", "dtype", "reduce", "sharing", "payload", "seed"), 1)
    verdict = Verdict("none", notes=("of the verdict",))
    trace = run.run(keep_transfers=0)
    facts = Run(run.schedule, run.network, run.workers, run.chunk_bytes, trace, labels, verdict)
    made = make_result([facts], list, notes=("of the run",))
    left_out = (
        "transfer rows, and the path that ended last, are left out: 12 transfers are more than are kept unasked "
        "(--transfers all keeps them)"
    )
    assert made.transfers is None
    assert made.notes == ("of the run", left_out, "of the verdict")


def test_a_result_shows_itself(result):
    shown = result(4, name="<b>four</b>")
    assert repr(shown) == "<Result <b>four</b>: 9 s, 67 % bandwidth, 33 % latency, sum_ok=None>"
    html = shown._repr_html_()
    assert "&lt;b&gt;four&lt;/b&gt;" in html
    assert "<b>four" not in html
    assert '<td style="text-align: left">9 s</td>' in html
    assert "slowest link" in html
    assert "largest error" not in html  # nothing was carried


# ------------------------------------------------------------------------------------------ worked example


def states(case, collective, buffers):
    """Every buffer at the start and after each step, as lists of rows."""
    run = case(len(buffers), 8, collective=collective)
    arrays = [np.array(buffer) for buffer in buffers]
    sizes, n_workers = split_sizes(len(buffers[0]), run.schedule.n_chunks), len(buffers)
    source, reduction = ArraySource(arrays), make_reduction("sum", n_workers)
    payload = Payload(source, reduction, n_workers, sizes, run.schedule.source)
    frame = pd.DataFrame(state_table(run.schedule, run.run(payload, keep_values=True), arrays))
    assert [array.tolist() for array in arrays] == buffers  # the user's own are as they were
    elements = [name for name in frame if name.startswith("e")]
    assert list(frame) == ["phase", "step", "worker", *elements]
    assert frame["worker"].tolist() == list(range(n_workers)) * (len(frame) // n_workers)
    groups = frame.groupby(["phase", "step"], sort=False, dropna=False)
    return [(phase, *group[elements].to_numpy().tolist()) for (phase, _), group in groups]


def test_three_workers_with_three_numbers(case):
    assert states(case, "all-reduce", [[1, 2, 3], [10, 20, 30], [100, 200, 300]]) == [
        ("start", [1, 2, 3], [10, 20, 30], [100, 200, 300]),
        ("reduce-scatter", [1, 2, 303], [11, 20, 30], [100, 220, 300]),
        ("reduce-scatter", [1, 222, 303], [11, 20, 333], [111, 220, 300]),
        ("all-gather", [111, 222, 303], [11, 222, 333], [111, 220, 333]),
        ("all-gather", [111, 222, 333], [111, 222, 333], [111, 222, 333]),
    ]


def test_two_workers_with_two_numbers(case):
    assert states(case, "reduce-scatter", [[1, 2], [3, 4]])[-1] == ("reduce-scatter", [1, 6], [4, 4])
    assert states(case, "all-reduce", [[1, 2], [3, 4]])[-1] == ("all-gather", [4, 6], [4, 6])


def test_chunks_of_two_elements_one_and_none(case):
    """Four elements over three workers: chunks of 2, 1 and 1; two elements: 1, 1 and 0."""
    assert states(case, "reduce-scatter", [[1, 2, 3, 4], [10, 20, 30, 40], [0, 0, 0, 0]])[-1] == (
        "reduce-scatter",
        [1, 2, 33, 4],
        [11, 22, 30, 44],
        [11, 22, 30, 0],
    )
    assert states(case, "all-reduce", [[1, 2], [10, 20], [100, 200]])[-1] == ("all-gather", *[[111, 222]] * 3)


def test_one_worker_has_only_a_start(case):
    assert states(case, "all-reduce", [[1, 2]]) == [("start", [1, 2])]
