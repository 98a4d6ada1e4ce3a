"""Several jobs: each has its row, in a sweep too, in the table and for a person."""

from __future__ import annotations

import pytest

import ringnet
from ringnet.analysis.frames import rows_of
from ringnet.reporting.storage import read_results
from ringnet.reporting.text import job_lines, sweep_table
from ringnet.runs.parts import build
from ringnet.study.points import run_points

TEXT = """
scenario_version: 1
name: mine
workers: 4
message: 1 MiB
network: {topology: switch, link: 100gbe, places: 8}
jobs: [{name: other, workers: [1, 5, 6], message: 4 MiB}]
"""
SWEEP = "sweep: {over: {message: [1 MiB, 2 MiB], network.link: [100gbe, 200gbe]}}\n"


@pytest.fixture
def scenario(tmp_path):
    def write(more=""):
        (tmp_path / "a.yaml").write_text(TEXT + more)
        return ringnet.load(tmp_path / "a.yaml")

    return write


def test_a_sweep_has_a_row_for_every_job_of_every_point(scenario, tmp_path):
    ringnet.run(scenario(SWEEP), out=tmp_path / "out")
    found = read_results(tmp_path / "out")
    jobs = found.jobs
    assert jobs["point"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert jobs["job"].tolist() == ["mine", "other"] * 4
    assert jobs["message"].tolist() == ["1 MiB"] * 4 + ["2 MiB"] * 4
    assert jobs["network.link"].tolist() == ["100gbe", "100gbe", "200gbe", "200gbe"] * 2
    own = jobs[jobs["job"] == "mine"]
    assert own["makespan_s"].tolist() == found.summary["makespan_s"].tolist()
    assert own["message_bytes"].tolist() == found.summary["message_bytes"].tolist()
    assert set(jobs[jobs["job"] == "other"]["message_bytes"]) == {4 * 2**20}
    assert jobs["sum_ok"].all()


def test_a_person_sees_a_line_for_every_job(scenario):
    found = ringnet.run(scenario(SWEEP))
    table = sweep_table(found.summary, found.jobs)
    assert table.heads[2] == "job"
    assert [row[2] for row in table.rows] == ["mine", "other"] * 4
    assert [row[-1] for row in table.rows] == ["right"] * 8


def test_kept_points_know_their_jobs(scenario, tmp_path):
    runs = [run_points(scenario(SWEEP).points(), processes=1, cache_dir=tmp_path / "cache") for _ in range(2)]
    assert [one.computed for one in runs[1]] == [False] * 4
    kept, again = ([rows_of(one.columns("jobs")) for one in of_a_run] for of_a_run in runs)
    assert len(kept[0]) > 1
    assert kept == again


def test_a_single_run_says_what_became_of_the_others(scenario):
    result = ringnet.simulate(scenario())
    ((label, said),) = job_lines(result.columns("jobs"))
    assert label == "job other"
    assert "of the bound" in said
    assert said.endswith("sum right")


def test_without_jobs_there_is_no_such_table(scenario, tmp_path):
    ringnet.run(scenario("\n").model_copy(update={"jobs": ()}), out=tmp_path / "out")
    assert not (tmp_path / "out" / "jobs.csv").exists()


def test_a_job_rings_in_the_order_of_its_list(scenario):
    (other,) = build(scenario()).others
    assert [other.network.node(worker) for worker in range(3)] == ["1", "5", "6"]


@pytest.mark.parametrize("algorithm", ["halving-doubling", "swing", "torus-ring", "hierarchical"])
@pytest.mark.parametrize("packets", ["", ", packet: 4 KiB, header: 64 B, sharing: fifo, window: 64 KiB"])
def test_what_is_not_of_a_job_is_of_other_traffic(algorithm, packets):
    """Also where one transfer carries several chunks, and where headers and slots count: one burst over two links."""
    text = f"""
    scenario_version: 1
    workers: 8
    message: 1 MiB
    algorithm: {algorithm}
    network: {{topology: switch, bandwidth: 10 GB/s, latency: 1 us{packets}}}
    background: [{{from: 0, to: 1, burst: 64 KiB}}]
    """
    links = ringnet.simulate(ringnet.loads(text)).links.set_index("link")
    others = links["bytes of other traffic"]
    burst = 2**16 + (16 * 64 if packets else 0)
    assert others[others != 0].to_dict() == {"0->switch": burst, "switch->1": burst}


IN_TURN = """
scenario_version: 1
name: first
workers: 4
message: 1 MiB
network: {topology: ring, bandwidth: 10 GB/s, latency: 1 us}
jobs:
- {name: last, workers: [0, 1, 2, 3], message: 1 MiB, after: [second], start: 20 us}
- {name: second, workers: [0, 1, 2, 3], message: 4 MiB, after: first}
"""


def test_jobs_in_turn_take_what_each_takes_alone():
    jobs = ringnet.simulate(ringnet.loads(IN_TURN)).jobs.set_index("job")
    alone = IN_TURN[: IN_TURN.index("jobs:")]
    small, large = (
        ringnet.simulate(ringnet.loads(alone, [f"message={size}"])).summary["makespan_s"] for size in ("1 MiB", "4 MiB")
    )
    assert jobs["makespan_s"].tolist() == pytest.approx([small, small, large], rel=1e-12, abs=0)
    assert jobs["start_s"].tolist() == pytest.approx([0.0, small + large + 20e-6, small], rel=1e-12, abs=0)
    assert jobs["sum_ok"].all()


def test_jobs_in_turn_on_the_same_places_do_not_share_links():
    result = ringnet.simulate(ringnet.loads(IN_TURN))
    assert result.summary["sharing"] == "fifo"
    assert len(result.workers) == 4
    assert result.links["queued_s"].sum() == 0
    # Two that follow the same one run beside each other, and share.
    together = ringnet.simulate(ringnet.loads(IN_TURN.replace("[second]", "[first]")))
    assert together.summary["sharing"] == "fair"
    assert together.jobs["start_s"].iloc[1] == pytest.approx(together.jobs["start_s"].iloc[2] + 20e-6)


def test_traffic_goes_on_between_jobs_in_turn():
    """A pause between two jobs is no end: bursts in it are sent, and those after the last job are not."""
    text = IN_TURN.replace("start: 20 us", "start: 1 ms") + (
        "background: [{from: 1, to: 2, burst: 1 KiB, rate: 100 MB/s}]\n"
    )
    links = ringnet.simulate(ringnet.loads(text)).links.set_index("link")
    sent_until_s = links.loc["1->2", "bytes of other traffic"] / 100e6
    end_s = ringnet.simulate(ringnet.loads(text)).jobs["end_s"].max()
    assert sent_until_s == pytest.approx(end_s, abs=2 * 1024 / 100e6)


@pytest.mark.parametrize(
    ("given", "right"),
    [("[secnd]", "did you mean second"), ("[last]", "wait for itself"), ("[]", "leave the key out")],
)
def test_jobs_that_follow_none_or_themselves_are_refused(given, right):
    with pytest.raises(ringnet.InputError, match=right):
        ringnet.loads(IN_TURN.replace("[second]", given))


def test_a_circle_of_jobs_is_refused():
    with pytest.raises(ringnet.InputError, match="wait for itself") as error:
        ringnet.loads(IN_TURN.replace("after: first", "after: last"))
    assert [fault.path for fault in error.value.faults] == ["jobs[0].after", "jobs[1].after"]


def test_a_job_of_one_worker_waits_for_nobody(tmp_path):
    (tmp_path / "a.yaml").write_text(TEXT.replace("[1, 5, 6]", "[4]"))
    found = ringnet.run(ringnet.load(tmp_path / "a.yaml"))
    assert found.jobs["makespan_s"].tolist()[1] == 0
