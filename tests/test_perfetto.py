"""Traces for Perfetto, read back: what they say is what the tables say."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import ringnet
from ringnet.reporting.results import collect

perfetto_trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
Trace, TrackEvent = perfetto_trace_pb2.Trace, perfetto_trace_pb2.TrackEvent

#: Names a trace_processor_shell, which the package would download otherwise.
PROCESSOR = "RINGNET_TRACE_PROCESSOR"
LINK = {"bandwidth": "50 GB/s", "latency": "5 us"}
RUNS = {
    "a ring with a slow link": {"workers": 4, "network": LINK | {"links": {"1->2": {"bandwidth": "5 GB/s"}}}},
    "many at once, fairly": {
        "workers": 5,
        "algorithm": "direct",
        "network": LINK | {"topology": "switch"},
        "worker": {"recv_overhead": "1 us", "reduce_rate": "10 GB/s"},
    },
    "queues on racks": {
        "workers": 8,
        "algorithm": "halving-doubling",
        "network": LINK | {"topology": "leaf-spine", "leaves": 2, "spines": 1, "sharing": "fifo"},
    },
    "sums in the switch": {
        "workers": 4,
        "algorithm": "sharp",
        "network": LINK | {"topology": "switch", "reduction": {"switches": ["switch"]}},
    },
}


def read(file):
    """Read a trace with the package's own messages: tracks by number, slices and counts by the name of their track."""
    tracks, names, about, texts = {}, {}, {}, {}
    slices, counts, opened = defaultdict(list), defaultdict(list), defaultdict(list)
    # As Perfetto does: by time, what is of one time in the order of the file.
    for packet in sorted(Trace.FromString(file.read_bytes()).packet, key=lambda packet: packet.timestamp):
        assert packet.trusted_packet_sequence_id == 1
        for one in packet.interned_data.event_names:
            names[one.iid] = one.name
        for one in packet.interned_data.debug_annotation_names:
            about[one.iid] = one.name
        for one in packet.interned_data.debug_annotation_string_values:
            texts[one.iid] = one.str.decode()
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            above = tracks[track.parent_uuid] if track.parent_uuid else ()
            tracks[track.uuid] = (*above, track.name)
        elif packet.HasField("track_event"):
            event, way = packet.track_event, tracks[packet.track_event.track_uuid]
            if event.type == TrackEvent.TYPE_COUNTER:
                counts[way].append((packet.timestamp, event.double_counter_value))
            elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
                assert not opened[event.track_uuid], "slices of one track lie in each other, or after each other"
                opened[event.track_uuid].append((packet.timestamp, event))
            else:
                begin, start = opened[event.track_uuid].pop()
                notes = {
                    about[one.name_iid]: texts[one.string_value_iid]
                    if one.HasField("string_value_iid")
                    else one.double_value
                    if one.HasField("double_value")
                    else one.int_value
                    for one in start.debug_annotations
                }
                flows = [*start.flow_ids], [*start.terminating_flow_ids]
                slices[way].append(
                    SimpleNamespace(name=names[start.name_iid], begin=begin, end=packet.timestamp, flows=flows, **notes)
                )
    assert not any(opened.values())
    return SimpleNamespace(tracks=tracks, slices=slices, counts=counts)


@pytest.fixture(params=RUNS)
def traced(request, tmp_path):
    scenario = ringnet.scenario(name=request.param, message="64 MiB", payload="none", **RUNS[request.param])
    result = ringnet.simulate(scenario)
    file = result.to_perfetto(tmp_path / "run.pftrace")
    return result, read(file), file


def below(trace, group, name):
    """All slices of the tracks of a name, by the track above them."""
    return {way[2]: found for way, found in trace.slices.items() if way[1] == group and way[3:] == (name,)}


def test_bytes_and_counts_by_worker_and_link_are_those_of_the_tables(traced):
    result, trace, _ = traced
    sent, received = (below(trace, "workers", name) for name in ("sends", "receives"))
    for number, row in result.workers.set_index("worker").iterrows():
        assert sum(one.bytes for one in sent.get(f"worker {number}", [])) == row["sent_bytes"]
        assert sum(one.bytes for one in received.get(f"worker {number}", [])) == row["received_bytes"]
    on_links = below(trace, "links", "transfers")
    first = {one["links"].split(" ")[0] for one in result.routes.to_dict("records")}
    assert on_links.keys() == first
    for name, row in result.links.set_index("link").iterrows():
        if name in first and name.split("->")[0].isdecimal():  # of others it is not the first link of all routes
            assert sum(one.bytes for one in on_links[name]) == row["bytes"]
            assert len(on_links[name]) == row["transfers"]


def test_slices_are_the_transfers_to_the_nanosecond_and_say_their_times_as_they_are(traced):
    result, trace, _ = traced
    sent = [one for found in below(trace, "workers", "sends").values() for one in found]
    columns = [name for name in result.transfers.columns if name != "op"]
    written = sorted(tuple(getattr(one, name) for name in columns) for one in sent)
    assert written == sorted(result.transfers[columns].itertuples(index=False, name=None))
    for one in sent:
        assert (one.begin, one.end) == (round(1e9 * one.started_s), round(1e9 * one.sent_s))
    waits = [one for found in below(trace, "workers", "waits to send").values() for one in found]
    waited_s = (result.transfers["started_s"] - result.transfers["posted_s"]).sum()
    assert sum(one.end - one.begin for one in waits) == pytest.approx(1e9 * waited_s, abs=len(sent))


def test_an_arrow_leads_from_each_send_to_its_arrival(traced):
    result, trace, _ = traced
    sent, received = (below(trace, "workers", name) for name in ("sends", "receives"))
    starts = {one.flows[0][0]: one for found in sent.values() for one in found}
    ends = {one.flows[1][0]: (who, one) for who, found in received.items() for one in found}
    assert len(starts) == len(ends) == len(result.transfers)
    assert starts.keys() == ends.keys()
    for number, start in starts.items():
        who, end = ends[number]
        member = f"worker {start.dst}" if start.dst < len(result.workers) else "switch 0"
        assert (who, end.begin) == (member, round(1e9 * start.arrived_s))
        assert end.end == round(1e9 * start.applied_s)


def test_counters_are_the_shares_and_queues_of_the_tables(traced):
    result, trace, _ = traced
    busy_s = result.links.set_index("link")["busy_s"]
    shares = {way[2]: found for way, found in trace.counts.items() if way[1] == "links"}
    assert shares.keys() == set(result.links["link"][result.links["bytes"] > 0])
    for name, found in shares.items():
        times, values = np.array(found).T
        assert times[-1] == round(1e9 * result.summary["makespan_s"])
        assert values[:-1] @ np.diff(times) / 100 == pytest.approx(1e9 * busy_s[name], rel=1e-4)
    queues = {way[2]: found for way, found in trace.counts.items() if way[1] == "queues"}
    rows = [] if result.queues is None else result.queues.itertuples(index=False, name=None)
    wanted = defaultdict(list)
    for name, time_s, waiting in rows:
        wanted[name].append((round(1e9 * time_s), waiting))
    assert queues == wanted


def test_the_path_that_ended_last_adds_up_to_the_time(traced):
    result, trace, _ = traced
    (way,) = [way for way in trace.slices if way[1] == "path"]
    pieces = trace.slices[way]
    assert sum(one.seconds for one in pieces) == pytest.approx(result.summary["makespan_s"], rel=1e-12, abs=0)
    assert Counter(one.name for one in pieces) == Counter(result.path["part"])
    assert all(one.end == after.begin for one, after in pairwise(pieces))


def test_by_hand(tmp_path):
    """Two workers halve 1 MiB: 524288 B / 50 GB/s is 10485.76 ns, and it arrives 5000 ns later."""
    result = ringnet.simulate(ringnet.scenario(workers=2, message="1 MiB", network=LINK, name="<two>"))
    trace = read(result.to_perfetto(tmp_path / "two.pftrace"))
    first, second = trace.slices["<two>", "workers", "worker 0", "sends"]
    assert (first.name, first.phase, first.begin, first.end) == ("chunk 0", "reduce-scatter", 0, 10486)
    assert (second.name, second.phase, second.begin) == ("chunk 1", "all-gather", 15486)
    arrived = trace.slices["<two>", "workers", "worker 1", "receives"][0]
    assert (arrived.name, arrived.begin, arrived.end) == ("reduce chunk 0", 15486, 15486)
    assert first.flows == (arrived.flows[1], [])
    run = trace.slices["<two>", "run"][0]
    assert (run.name, run.end, run.makespan_s) == ("<two>", 30972, result.summary["makespan_s"])


@pytest.mark.skipif(PROCESSOR not in os.environ, reason=f"{PROCESSOR} names no trace_processor_shell")
def test_the_trace_processor_reads_what_was_written(traced):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig  # noqa: PLC0415

    result, trace, file = traced
    config = TraceProcessorConfig(bin_path=os.environ[PROCESSOR])
    with TraceProcessor(trace=str(file), config=config) as processor:

        def ask(query):
            return next(iter(processor.query(query)))

        assert ask("select count(*) n from flow").n == len(result.transfers)
        assert ask("select count(*) n from slice where dur < 0").n == 0
        assert ask("select count(*) n from slice").n == sum(map(len, trace.slices.values()))
        found = ask(
            "select sum(a.int_value) n from slice s join track t on s.track_id = t.id join args a using (arg_set_id) "
            "where t.name = 'sends' and a.key = 'debug.bytes'"
        )
        assert found.n == result.transfers["bytes"].sum()
        assert ask("select count(*) n from counter").n == sum(map(len, trace.counts.values()))
        errors = "select ifnull(sum(value), 0) n from stats where severity in ('error', 'data_loss')"
        assert ask(errors).n == 0


def test_what_cannot_be_traced_is_told(tmp_path, monkeypatch):
    scenario = ringnet.scenario(workers=4, message="1 KiB", network=LINK, report={"transfers": 10})
    with pytest.raises(ringnet.InputError, match="there are no rows of them; right would be: a single run, with"):
        ringnet.simulate(scenario).to_perfetto(tmp_path / "a.pftrace")
    result = ringnet.simulate(scenario.replace("report.transfers", "all"))
    with pytest.raises(ringnet.InputError, match="cannot be written"):
        result.to_perfetto("/proc/nowhere/a.pftrace")
    monkeypatch.delitem(sys.modules, "ringnet.reporting.perfetto", raising=False)
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace.perfetto_trace_pb2", None)
    with pytest.raises(ringnet.InputError, match=r"needs the package perfetto: .*pip install 'ringnet\[perfetto\]'"):
        result.to_perfetto(tmp_path / "a.pftrace")
    assert [*tmp_path.iterdir()] == []


def test_the_command_writes_what_the_function_writes(tmp_path, monkeypatch, ringnet_command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "four.yaml").write_text(
        "{scenario_version: 1, workers: 4, message: 1 KiB, network: {bandwidth: 50 GB/s, latency: 5 us}}"
    )
    printed = ringnet_command("export", "four.yaml", "--perfetto", "four.pftrace")
    assert (printed.exit_code, printed.stdout) == (0, "perfetto  four.pftrace\n")
    own = ringnet.simulate("four.yaml").to_perfetto("own.pftrace")
    assert own.read_bytes() == (tmp_path / "four.pftrace").read_bytes()
    assert collect([ringnet.simulate("four.yaml")], {}).name == "four"
    refused = ringnet_command("export", "four.yaml", "--perfetto", "x", "--set", "report.transfers=3")
    assert (refused.exit_code, (tmp_path / "x").exists()) == (2, False)
    assert "report.transfers: all" in refused.stderr


@pytest.fixture
def ringnet_command(request):
    return request.getfixturevalue("ringnet")
