"""MSCCL's schedules: read, proved, run and written; and every way in which a file can be wrong, with its line."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.analysis.verification import verify
from ringnet.collectives import ALGORITHMS, Schedule
from ringnet.collectives.proof import check
from ringnet.engines import ENGINES, Workers
from ringnet.errors import InputError, ScheduleError
from ringnet.formats.msccl import dumps_msccl, load_msccl, loads_msccl
from ringnet.networks import TOPOLOGIES, Network
from ringnet.payload import Payload
from ringnet.payload.reductions import make_reduction
from ringnet.payload.sources import RandomSource

PAIR = (Path(__file__).parent / "data" / "msccl" / "pair.xml").read_text()
PUBLIC = Path(__file__).parents[2] / "shared" / "reference" / "msccl"
#: Other tools know workers only.
KINDS = [
    (name, kind)
    for name, algorithm in ALGORITHMS.items()
    for kind in algorithm.collectives
    if not algorithm.in_switches
]


def full(n_workers: int, latency_s: float = 1e-6) -> Network:
    pairs = [(src, dst) for src in range(n_workers) for dst in range(n_workers) if src != dst] or [(0, 0)]
    number, values = {pair: (link,) for link, pair in enumerate(pairs)}, np.ones(len(pairs))
    names = tuple(f"{src}->{dst}" for src, dst in pairs)
    return Network("full", n_workers, names, values * 1e9, values * latency_s, lambda src, dst: number[src, dst])


def end_times(schedule: Schedule, reduce_Bps: float = np.inf, latency_s: float = 1e-6) -> np.ndarray:
    workers = Workers.alike(schedule.n_workers, reduce_Bps=reduce_Bps)
    chunk_bytes = np.full(schedule.n_chunks, 1000)
    network = full(schedule.n_workers, latency_s)
    return ENGINES["events"].run(schedule, network, workers, chunk_bytes).workers["end_s"]


def results(schedule: Schedule, n_elements: int = 48) -> np.ndarray:
    """What every worker holds of every chunk in the end; NaN where it need hold nothing."""
    n_workers = schedule.n_workers
    source = RandomSource(n_workers, n_elements, np.dtype("float32"), seed=3)
    rule, sizes = make_reduction("sum", n_workers), schedule.chunk_sizes(n_elements)
    payload = Payload(source, rule, n_workers, sizes, schedule.source)
    ENGINES["events"].run(schedule, full(n_workers), Workers.alike(n_workers), 4 * sizes, payload)
    verdict = verify(schedule, payload, source, rule, sizes)
    assert verdict.sum_ok, verdict.mismatch
    held = [
        payload.held(worker, chunk)
        for worker in range(n_workers)
        for chunk in range(schedule.n_chunks)
        if worker in schedule.holders(chunk)
    ]
    return np.concatenate([np.zeros(0, "float32"), *held])


def told(text: str) -> str:
    with pytest.raises(ScheduleError) as caught:
        check(loads_msccl(text.encode(), "pair.xml"))
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------- reading


def test_a_sum_through_scratch_is_a_reduce() -> None:
    schedule = loads_msccl(PAIR.encode())
    check(schedule)
    steps = [(step.op, step.src.tolist(), step.dst.tolist(), step.chunk.tolist()) for step in schedule.steps()]
    assert steps == [("reduce", [0, 1], [1, 0], [1, 0]), ("copy", [0, 1], [1, 0], [0, 1])]
    assert (schedule.algorithm, schedule.collective, schedule.n_channels) == ("pair", "all-reduce", 1)
    assert end_times(schedule).tolist() == pytest.approx([4e-6, 4e-6])
    results(schedule)


def test_a_message_of_several_chunks_is_one_transfer() -> None:
    schedule = loads_msccl(dumps_msccl(ALGORITHMS["halving-doubling"].build(8, "all-reduce")).encode())
    counts = {int(size) for step in schedule.steps() for size in step.sizes(np.ones(8, dtype=int))}
    assert counts == {1, 2, 4}
    assert schedule.n_transfers == 48


PUBLISHED = {
    "azure_ncv4_ar_tree_12_LL.xml": (4, 24),
    "mscclang_allreduce_a100_allpairs_4_1.xml": (4, 16),
    "mscclang_allreduce_recursive_doubling_halving_8_1.xml": (8, 8),
    "mscclang_hierarchical_allreduce_4_2_1.xml": (8, 8),
    "mscclang_simple_allreduce_ring_4_1.xml": (4, 4),
}


def public(name: str) -> Path:
    if not (PUBLIC / name).is_file():
        pytest.skip(f"the public schedules are not at {PUBLIC}")
    return PUBLIC / name


@pytest.mark.parametrize("name", PUBLISHED)
def test_public_schedules_sum_on_any_network(name: str) -> None:
    schedule = load_msccl(public(name))
    assert (schedule.n_workers, schedule.n_chunks) == PUBLISHED[name]
    check(schedule)
    results(schedule)
    network, workers = (
        TOPOLOGIES["switch"].build(schedule.n_workers, 1e9, 1e-6),
        Workers.alike(schedule.n_workers),
    )
    trace = ENGINES["events"].run(schedule, network, workers, np.full(schedule.n_chunks, 1000))
    assert trace.workers["end_s"].max() > 0


def test_the_public_ring_is_ringnets_ring() -> None:
    read = load_msccl(public("mscclang_simple_allreduce_ring_4_1.xml"))
    assert end_times(read).tolist() == end_times(ALGORITHMS["ring"].build(4, "all-reduce")).tolist()


def test_the_public_schedule_that_does_not_sum_is_refused_with_its_chunks() -> None:
    schedule = load_msccl(public("msccl_ar_ll_8.xml"))
    with pytest.raises(ScheduleError) as caught:
        check(schedule)
    faults = [str(fault) for fault in caught.value.faults]
    assert faults[0].startswith("worker 0 ends chunk 1 without the contribution of worker(s) 1, 2, 3, 4, 5, 6, 7")
    assert faults[-1] == "and 48 more"  # 56 of 64: all but chunk 0
    with pytest.raises(AssertionError, match="worker=0, chunk=1"):
        results(schedule)


# ------------------------------------------------------------------------------------------------------- writing


def rows(schedule: Schedule) -> list[object]:
    """All that a schedule says of what moves, but for the names of its phases."""
    columns = [
        (step.op, np.stack([step.src, step.dst, step.chunk, step.channel, step.receiving_channel]).tolist())
        for step in schedule.steps()
        if len(step)
    ]
    sizes = [step.sizes(np.ones(schedule.n_chunks, int)).tolist() for step in schedule.steps() if len(step)]
    ends = (schedule.source.tolist(), schedule.target.tolist())
    n_channels = schedule.n_channels if columns else 1  # of one worker nothing is said: it sends nothing
    counts = (schedule.n_workers, schedule.n_chunks, n_channels, schedule.n_buffers)
    return [schedule.algorithm, schedule.collective, counts, ends, columns, sizes]


def foreign(text: str) -> str:
    """Return a file without what ringnet adds to it."""
    return re.sub(r' (lane|turn|row|chunk|chunks|own)="[^"]*"', "", text)


@pytest.mark.parametrize(("name", "collective"), KINDS)
def test_what_is_written_reads_back_row_for_row(name: str, collective: str) -> None:
    """The same rows take the same time on any network, and have the same sums."""
    for n_workers in (1, 2, 3, 6, 8, 12):
        try:
            schedule = ALGORITHMS[name].build(n_workers, collective)
        except InputError:  # there is none for so many
            continue
        text = dumps_msccl(schedule)
        assert rows(loads_msccl(text.encode())) == rows(schedule)
        longest = max(map(len, re.findall(r'"([^"]*)"', text)))
        assert longest < 256  # what NCCL's reader of XML takes of an attribute
        assert max(line.count('="') for line in text.splitlines()) <= 16  # and of an element


@pytest.mark.parametrize(("name", "collective"), KINDS)
def test_what_ringnet_adds_is_not_needed_for_the_sums(name: str, collective: str) -> None:
    schedule = ALGORITHMS[name].build(6, collective)
    read = loads_msccl(foreign(dumps_msccl(schedule)).encode())
    check(read)
    assert (read.collective, read.n_workers, read.n_chunks) == (collective, 6, schedule.n_chunks)
    if collective != "reduce-scatter" and (read.source == schedule.source).all():
        assert results(read).tobytes() == results(schedule).tobytes()


CHANNELS = [
    ("binary-tree", "broadcast", {"root": 5, "n_channels": 2, "node_size": 4}),
    ("binary-tree", "all-reduce", {"root": 5, "n_channels": 4, "node_size": 4}),
    ("double-binary-tree", "all-reduce", {"n_channels": 2, "node_size": 4}),
    ("pipelined-ring", "reduce-scatter", {"n_slices": 8}),
    ("channel-ring", "all-gather", {"n_channels": 4}),
]


@pytest.mark.parametrize(("name", "collective", "parameters"), CHANNELS)
def test_channels_and_slices_read_back_row_for_row(name: str, collective: str, parameters: dict[str, int]) -> None:
    schedule = ALGORITHMS[name].build(12, collective, **parameters)
    assert rows(loads_msccl(dumps_msccl(schedule).encode())) == rows(schedule)


#: Algorithms of a level of which the other is a ring: channels of both meet at a worker.
LEVELS = [
    {level: name}
    for level in ("inner", "outer")
    for name in (
        "binary-tree",
        "binomial-tree",
        "channel-ring",
        "double-binary-tree",
        "halving-doubling",
        "swing",
    )
    if not (level == "inner" and name == "double-binary-tree")
]


@pytest.mark.parametrize("told", LEVELS, ids=str)
@pytest.mark.parametrize(("n_workers", "node_size"), [(6, 2), (12, 3)])
def test_levels_read_back_with_the_same_sums_and_times(n_workers: int, node_size: int, told: dict[str, str]) -> None:
    schedule = ALGORITHMS["hierarchical"].build(n_workers, "all-reduce", node_size=node_size, **told)
    text = dumps_msccl(schedule)
    assert rows(loads_msccl(text.encode())) == rows(schedule)
    read = loads_msccl(foreign(text).encode())
    check(read)
    assert results(read).tobytes() == results(schedule).tobytes()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('lane="1"', 'lane="0"'),  # another channel than the waits of the file tell of
        (r'turn="0" row="0"', 'turn="0" row="1"'),  # two transfers in one
        ('turn="1"', 'turn="7"'),  # a step much later than the file has it
        (r'chunk="\d+"', 'chunk="0"'),
        (r'chunk="0" chunks="1"', 'chunk="0" chunks="99"'),
        (r' turn="0" row="0" chunk="\d+" chunks="\d+"', ""),
        ('own="[^"]*"', 'own="0:1:99999999 a::b"'),
        ('own="[^"]*"', 'own="0:0:2"'),
    ],
)
def test_what_ringnet_adds_is_passed_over_where_the_file_does_not_bear_it_out(old: str, new: str) -> None:
    schedule = ALGORITHMS["channel-ring"].build(4, "all-gather", n_channels=2)
    text = dumps_msccl(schedule)
    assert re.search(old, text)
    for edited in (re.sub(old, new, text, count=1), re.sub(old, new, text)):
        read = loads_msccl(edited.encode())
        check(read)
        assert rows(read) == rows(loads_msccl(foreign(text).encode()))
    assert rows(read) != rows(schedule)
    assert end_times(read) == pytest.approx(end_times(schedule), rel=1e-12, abs=0)


def test_a_file_with_other_waits_is_not_what_ringnet_wrote() -> None:
    """Somebody takes a wait out: the chunk of the second step is no longer the one that came in the first."""
    text = dumps_msccl(ALGORITHMS["ring"].build(3, "all-reduce"))
    assert 'depid="0"' not in text  # each block does all of its worker, in order
    swapped = re.sub(r'(<step s="1" .*?)cnt="1"', r'\1cnt="2"', text, count=1)
    with pytest.raises(ScheduleError):
        loads_msccl(swapped.encode())
    assert "lane is no whole number in range; got x" in told(text.replace('lane="0"', 'lane="x"'))
    assert "turn is no whole number in range; got x" in told(text.replace('turn="1"', 'turn="x"'))


def test_a_root_is_kept() -> None:
    for collective in ("broadcast", "reduce"):
        read = loads_msccl(dumps_msccl(ALGORITHMS["binomial-tree"].build(6, collective, root=4)).encode())
        check(read)
        assert {*read.source.tolist(), *read.target.tolist()} == {-1, 4}


def test_chunks_of_a_reduce_scatter_are_numbered_as_msccl_wants_them() -> None:
    text = dumps_msccl(ALGORITHMS["ring"].build(4, "reduce-scatter"))
    assert loads_msccl(foreign(text).encode()).target.tolist() == [0, 1, 2, 3]


def test_blocks_and_names_are_as_msccl_wants_them() -> None:
    text = dumps_msccl(ALGORITHMS["recursive-doubling"].build(4, "all-reduce"))
    assert 'name="recursive-doubling" proto="Simple"' in text
    assert 'nchunksperloop="1" ngpus="4" coll="allreduce" inplace="1"' in text
    assert text.count("<tb ") == 8  # one for each of two partners
    assert 'depid="0" deps="1"' in text  # the second exchange waits for the first


# ------------------------------------------------------------------------------------------- files that are wrong


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("<algo", "<algo><tb", "pair.xml:2: an element that has no place here; got <tb>"),
        ("</algo>", "", "not XML, or cut off: no element found"),
        (
            "<algo",
            '<!DOCTYPE a [<!ENTITY b "c">]><algo',
            "pair.xml:2: a document type or an entity is declared",
        ),
        (
            'ngpus="2"',
            'ngpus="3"',
            "pair.xml:2: <algo>: there is not one gpu for each of 3; got 2 gpu elements",
        ),
        (
            'ngpus="2"',
            'ngpus="many"',
            "ngpus is no whole number in range; got many; right would be: 1 to 4096",
        ),
        ('ngpus="2"', 'ngpus="99999999999999999999"', "ngpus is no whole number in range"),
        ('nchunksperloop="2"', "", "nchunksperloop is no whole number in range; got nothing"),
        ('coll="allreduce"', 'coll="allsum"', "a collective that ringnet does not know; got allsum"),
        ('type="re"', 'type="add"', "a type of step that there is not; got add; right would be: r | "),
        ('recv="1"', 'recv="-1"', "pair.xml:6: <step>: a step of type r receives in a block without a peer"),
        ('send="1"', 'send="0"', "pair.xml:4: <tb>: a thread block whose peer is its own gpu; got 0"),
        (
            'srcoff="1"',
            'srcoff="2"',
            "pair.xml:5: gpu 0 block 0: src goes beyond buffer i; got chunks 2 to 2",
        ),
        ('srcbuf="s"', 'srcbuf="t"', "srcbuf is no buffer; got t; right would be: i | o | s"),
        ('<tb id="1"', '<tb id="7"', "thread blocks are not numbered from 0 up; got 7; right would be: 1"),
        ('s="3"', 's="4"', "steps are not numbered from 0 up; got 4; right would be: 3"),
        ('depid="1" deps="0"', 'depid="1" deps="5"', "deps is no whole number in range; got 5"),
        ('cnt="1"', 'cnt="0"', "cnt is no whole number in range; got 0"),
    ],
)
def test_a_text_that_is_no_schedule_is_told_with_line_and_element(old: str, new: str, said: str) -> None:
    assert old in PAIR
    assert said in told(PAIR.replace(old, new, 1))


def test_all_mistakes_are_told_at_once() -> None:
    said = told(PAIR.replace('type="re"', 'type="add"').replace('id="1" send="-1"', 'id="1" send="9"'))
    assert said.count("a type of step that there is not") == 2
    assert said.count("send is no whole number in range; got 9") == 2


def steps_of(gpu: int, block: int) -> list[str]:
    body = re.findall(r"<gpu .*?</gpu>", PAIR, flags=re.S)[gpu]
    return re.findall(r"<step .*?/>", re.findall(r"<tb .*?</tb>", body, flags=re.S)[block])


def test_a_cycle_of_waits_names_the_blocks() -> None:
    """Each block waits for the other before it does what the other waits for."""
    first = steps_of(0, 0)[0]
    said = told(PAIR.replace(first, first.replace('depid="-1" deps="-1"', 'depid="1" deps="0"'), 1))
    assert "pair.xml:5: gpu 0 block 0 waits for ever in step 0: for block 1 of its gpu to be through with" in said
    assert "gpu 0 block 1 waits for ever in step 0: for block 0 of its gpu to be through with step 1" in said
    assert "gpu 1 block 0 waits for ever in step 1: for a message of gpu 0 on channel 0" in said


def test_a_message_left_over_is_told() -> None:
    last = steps_of(1, 0)[3]
    assert told(PAIR.replace(last, "", 1)) == "pair.xml:7: the message of gpu 0 block 0 step 2 is never received"


def test_two_blocks_on_one_connection_are_told() -> None:
    said = told(PAIR.replace('<tb id="1" send="-1" recv="-1"', '<tb id="1" send="1" recv="-1"', 1))
    assert "blocks 0 and 1 of gpu 0 both send to gpu 1 on channel 0" in said


def test_a_race_is_told() -> None:
    """Without its wait, the send of the sum may come before the sum."""
    third = steps_of(0, 0)[2]
    said = told(PAIR.replace(third, third.replace('depid="1" deps="0"', 'depid="-1" deps="-1"'), 1))
    assert "race for i[0]: nothing says which comes first" in said


def test_what_is_received_and_never_added_is_told() -> None:
    adds, nothing = steps_of(0, 1)[0], 'type="nop"'
    said = told(PAIR.replace(adds, adds.replace('type="re"', nothing), 1))
    assert "what gpu 0 block 0 step 1 receives of chunk 0 is never used" in said


def test_a_chunk_added_to_another_is_told() -> None:
    adds = steps_of(0, 1)[0]
    said = told(PAIR.replace(adds, adds.replace('dstbuf="i" dstoff="0"', 'dstbuf="i" dstoff="1"'), 1))
    assert "adds chunk 0 to chunk 1" in said


def test_messages_of_unequal_length_are_told() -> None:
    first = steps_of(0, 0)[0].replace('srcoff="1"', 'srcoff="0"').replace('cnt="1"', 'cnt="2"')
    said = told(PAIR.replace(steps_of(0, 0)[0], first, 1))
    assert "gpu 1 block 0 step 1 receives 1 chunks where gpu 0 block 0 step 0 sends 2" in said


def test_a_cell_that_nobody_wrote_is_told() -> None:
    first = steps_of(0, 0)[0]
    said = told(PAIR.replace(first, first.replace('srcbuf="i" srcoff="1"', 'srcbuf="s" srcoff="0"'), 1))
    assert "gpu 0 block 0 step 0 reads s[0], where there is nothing yet" in said


def test_two_values_of_a_chunk_at_one_gpu_are_refused() -> None:
    """The sum goes back raw: received and kept in scratch, while the gpu's own part is still to be sent."""
    third = steps_of(0, 0)[2].replace('srcbuf="i" srcoff="0"', 'srcbuf="s" srcoff="0"')
    said = told(PAIR.replace(steps_of(0, 0)[2], third, 1))
    assert "needs two values of chunk 0 at gpu 0 at once" in said


def test_a_bomb_of_entities_and_a_huge_file_are_not_read() -> None:
    bomb = '<!DOCTYPE b [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><algo name="&b;"/>'
    assert "a document type or an entity is declared" in told(bomb)
    utf16 = bomb.encode("utf-16")
    with pytest.raises(ScheduleError, match="a document type or an entity"):
        loads_msccl(utf16)
    with pytest.raises(ScheduleError, match="the file is too large"):
        loads_msccl(b" " * ((64 << 20) + 1))


def test_a_head_that_would_take_all_memory_is_refused_at_once() -> None:
    said = told(PAIR.replace('ngpus="2"', 'ngpus="4096"').replace('nchunksperloop="2"', 'nchunksperloop="65536"'))
    assert said.startswith(
        "pair.xml:2: <algo>: too many chunks; got 4096 gpus of 65536 chunks; right would be: at most "
    )


def test_a_text_in_no_known_encoding_is_told() -> None:
    said = told('<?xml version="1.0" encoding="klingon"?><algo/>')
    assert said == "pair.xml:1: the text cannot be decoded: unknown encoding: klingon"


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the file cannot be read: No such file"):
        load_msccl(tmp_path / "none.xml")


@given(st.data())
def test_whatever_is_in_a_file_it_is_read_or_refused(data: st.DataObject) -> None:
    """A damaged attribute never ends in anything but a schedule or an error of the user's."""
    places = [match.span(2) for match in re.finditer(r'(\w+)="([^"]*)"', PAIR)]
    start, stop = data.draw(st.sampled_from(places))
    value = data.draw(st.sampled_from(["", "-1", "0", "1", "2", "3", "x", "s", "r", "rcs", "rrc", "rrs", "cpy", "o"]))
    with suppress(InputError):
        check(loads_msccl((PAIR[:start] + value + PAIR[stop:]).encode()))
