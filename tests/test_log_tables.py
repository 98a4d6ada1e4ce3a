"""Several tables of one log: which collective, which N, which of them is which run, and which are wanted."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from itertools import permutations

import pytest
from typer.testing import CliRunner

from ringnet.analysis.calibration.calibration import TWO_MACHINES
from ringnet.cli import app
from ringnet.errors import InputError
from ringnet.formats.logs import read_log
from ringnet.formats.logs.log import Notes
from ringnet.formats.logs.printed_rows import heading_of, without_launcher
from ringnet.formats.logs.samples import complete, libraries_of, machines_of, samples_of
from ringnet.formats.logs.tables import MOST_TABLES, Condition, TableKey, numbers_of

NEW = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n# (B) (elements) (us) (GB/s)\n"
END = "# Avg bus bandwidth : 1\n"


def table(  # noqa: PLR0917
    n,
    sizes=(2**20, 2**24),
    redop="sum",
    root="-1",
    factor=2.0,
    parts=1,
    heading=NEW,
    slower=1.0,
    in_place=1.0,
):
    """Print a table of nccl-tests; ``parts`` is how many times count x element size the size is."""
    lines = []
    for size in sizes:
        time = slower * (20 + size / 1e5)
        alg = size / time / 1e3
        half = f"{alg:.2f} {alg * factor * (n - 1) / n:.2f} 0"
        head = " ".join(filter(None, (str(size), str(size // 4 // parts), "float", redop, root)))
        lines.append(f"{head} {time:.2f} {half} {time * in_place:.2f} {half}\n")
    return heading + "".join(lines) + END


def ranks(*numbers, host="node-a", pid=7):
    return "# Using devices\n" + "".join(
        f"#  Rank {number:2} Pid {pid} on {host} device {number % 8} [0x0{number % 8}] A100\n" for number in numbers
    )


@pytest.fixture
def write(tmp_path):
    def written(text, name="log.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


@pytest.fixture
def read(write):
    return lambda text, name="log.txt": read_log(write(text, name))


def said(log):
    return " / ".join(map(str, log.remarks))


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def facts(log):
    return {(row.collective, row.n_workers) for row in log.measurements}


def faults(call):
    with pytest.raises(InputError) as caught:
        call()
    return str(caught.value)


# --------------------------------------------------------------------------------- which collective, and which N


@pytest.mark.parametrize(
    ("columns", "collective"),
    [
        ({"redop": "none", "factor": 1.0, "parts": 32}, "all_gather"),
        ({"redop": "sum", "factor": 1.0, "parts": 32}, "reduce_scatter"),
        ({"redop": "none", "factor": 1.0, "root": "0"}, "broadcast"),
        ({"redop": "sum", "factor": 32 / 31, "root": "0"}, "reduce"),
        ({"redop": "sum"}, "all_reduce"),
    ],
)
def test_columns_and_count_tell_the_collective_of_tiny_messages(read, columns, collective):
    # 4 KiB and 8 KiB: bandwidths of two digits tell nothing.
    log = read(ranks(*range(32)) + table(32, sizes=(4096, 8192), **columns))
    assert facts(log) == {(collective, 32)}


def test_the_old_layouts_tell_broadcast_by_a_root_without_a_reduction(read):
    heading = "# size count type root time algbw busbw error time algbw busbw error\n# (B) (elements) (us) (GB/s)\n"
    log = read(table(8, sizes=(64,), redop="", root="0", factor=1.0, heading=heading))
    assert {row.collective for row in log.measurements} == {"broadcast"}


def test_size_over_count_is_n(read):
    log = read(table(32, sizes=(65536, 131072), redop="none", factor=1.0, parts=32))
    assert facts(log) == {("all_gather", 32)}
    assert "N=32, as size is so many times count x element size" in said(log)
    listed = read(ranks(*range(16)) + table(32, sizes=(65536,), redop="none", factor=1.0, parts=32))
    assert facts(listed) == {("all_gather", 16)}
    assert "size is 32 times count x element size, the list of ranks has 16" in said(listed)


def test_one_size_a_run_is_one_table_that_is_asked_as_a_whole(read):
    def loop(**columns):
        return "".join(
            f"mpirun -np 8 ./perf -b {2**power} -e {2**power} -g 1\n# nThread 8 nGpus 1 minBytes {2**power}\n"
            + ranks(*range(8))
            + table(8, sizes=(2**power,), **columns)
            for power in range(6, 28, 2)
        )

    log = read(loop())
    assert facts(log) == {("all_reduce", 8)}
    assert {row.table for row in log.measurements} == {1}
    assert len(log.measurements) == 11
    # 64 bytes alone would be taken for an all-reduce: their bandwidths are 0.00.
    assert facts(read(loop(factor=1.0))) == {("reduce_scatter", 8)}


def test_collectives_that_take_turns_in_a_loop_are_a_table_each(read):
    start = "# nThread 8 nGpus 1 minBytes 8 maxBytes 8\n"
    kinds = [{"redop": "sum"}, {"redop": "none", "factor": 1.0, "root": "0"}]
    text = "".join(
        start + ranks(*range(8)) + table(8, sizes=(2**power,), **kind) for power in range(10, 28, 2) for kind in kinds
    )
    found = {(row.collective, row.table) for row in read(text).measurements}
    assert found == {("all_reduce", 1), ("broadcast", 2)}


# ------------------------------------------------------------------------------------------------ lists of ranks


def test_the_ranks_of_an_aborted_run_are_not_those_of_the_next(read):
    start = "# nThread 1 nGpus 8\n"
    log = read(start + ranks(*range(4), pid=5) + start + ranks(*range(8), pid=6) + table(8))
    assert facts(log) == {("all_reduce", 8)}
    alone = start + ranks(0, pid=5) + "node-a: Test NCCL failure common.cu:958\n"
    assert facts(read(alone + start + ranks(*range(8), pid=6) + table(8))) == {("all_reduce", 8)}


def test_two_worlds_that_print_by_turns_are_still_refused(read):
    by_turns = "".join(line * 2 for line in table(8).splitlines(keepends=True))
    assert "each ran alone" in faults(lambda: read(ranks(*range(8), pid=5) + ranks(*range(8), pid=6) + by_turns))
    assert "each ran alone" in faults(lambda: read(ranks(0, pid=5) + ranks(0, pid=6) + table(2)))


def test_a_cut_list_of_ranks_is_a_least_and_busbw_decides(read):
    log = read(ranks(7, 15) + table(16, sizes=(2**24, 2**28)))
    assert facts(log) == {("all_reduce", 16)}
    assert {row.n_nodes for row in log.measurements} == {None}
    assert "the list of ranks is cut, there are 16 at least: N=16" in said(log)


def test_a_cut_list_gives_way_to_an_option_and_a_whole_one_says_so(read):
    cut = read(ranks(71) + table(72, sizes=(4096,)))
    assert facts(cut) == {("all_reduce", None)}
    assert "there are 72 at least" in said(cut)
    assert facts(complete(cut, {"": 72}, {})) == {("all_reduce", 72)}
    few = faults(lambda: complete(cut, {"": 8}, {}))
    assert re.search(r"workers: rank 71 is listed in line \d+ of .*; got 8; right would be: 72 or more", few)
    by_bandwidth = read(table(16, sizes=(2**24, 2**28)))
    otherwise = complete(by_bandwidth, {"": 24}, {})
    assert facts(otherwise) == {("all_reduce", 24)}
    assert "N=24 is taken, as given, and not 16" in said(otherwise)
    whole = complete(read(ranks(*range(8)) + table(8)), {"": 72}, {"": 3})
    assert facts(whole) == {("all_reduce", 8)}
    assert "workers=72 is not used: the log says N=8" in said(whole)
    assert "nodes=3 is not used: the log lists 1" in said(whole)


def test_nodes_of_each_table(write):
    large = (2**24, 2**28)
    path = write(table(8, sizes=large) + "# nThread 1 nGpus 8\n" + table(16, sizes=large))
    text = run("logs", path, "--nodes", "log.txt#2=2", "--nodes", "#1=1").stdout
    assert [line.split()[4:6] for line in text.splitlines()[1:]] == [["8", "1"], ["16", "2"]]
    result = run("logs", path, "--nodes", "log.txt#two=2")
    assert (result.exit_code, "log.txt#2=8" in result.stderr) == (2, True)
    result = run("logs", path, "--nodes", "log.txt#3=2")
    assert "--nodes: the log has no such table; got log.txt#3; right would be: log.txt#1, log.txt#2" in result.stderr


# ----------------------------------------------------------------------------------------------- several conditions

TWO = "=== with the plug-in\n" + table(8) + "=== plug-in missing\n" + table(8, slower=9)


def test_conditions_are_told_apart_by_what_stands_above(read):
    log = read(TWO)
    assert {(row.table, row.condition) for row in log.measurements} == {
        (1, "with the plug-in"),
        (2, "plug-in missing"),
    }
    by_launch = read(
        "NCCL_ALGO=Ring mpirun -np 8 all_reduce_perf -b 8\n" + table(8)
        + "NCCL_ALGO=Tree mpirun -np 8 all_reduce_perf -b 8\n" + table(8)
    )  # fmt: skip
    assert {(row.table, row.algorithm, row.condition) for row in by_launch.measurements} == {
        (1, "Ring", "NCCL_ALGO=Ring"),
        (2, "Tree", "NCCL_ALGO=Tree"),
    }


def test_a_variable_of_one_launch_does_not_reach_the_next(read):
    log = read("NCCL_ALGO=Ring mpirun all_reduce_perf\n" + table(8) + "mpirun all_reduce_perf\n" + table(8))
    assert [row.algorithm for row in log.measurements[::2]] == ["Ring", ""]
    exported = read("export NCCL_ALGO=Ring\n" + table(8) + "mpirun all_reduce_perf\n" + table(8))
    assert [row.algorithm for row in exported.measurements[::2]] == ["Ring", "Ring"]


def test_no_fit_is_of_two_conditions(read):
    text = faults(lambda: samples_of([read(TWO)], "all_reduce", Notes()))
    assert "tables 1 and 2 are both of N=8, 9 times apart" in text
    assert "--table 1 (with the plug-in), or --table 2 (plug-in missing)" in text


def test_what_is_alike_is_pooled_and_that_is_said(read):
    notes = Notes()
    again = table(8) + "# nThread 1 nGpus 8\n" + table(8, slower=1.1)
    assert len(samples_of([read(again), read(table(8), "b.txt")], "all_reduce", notes).time_s) == 6
    (remark,) = notes.remarks()
    assert remark.text == "table 1 of log.txt, table 2 of log.txt, b.txt are all of N=8: taken together"
    far = Notes()
    samples_of([read(table(8)), read(table(8, slower=3), "b.txt")], "all_reduce", far)
    assert "though up to 3 times apart" in str(far.remarks()[0])


@pytest.mark.parametrize("wanted", ["2", "log.txt=2", "MISSING", "plug-in m*"])
def test_a_table_is_chosen_by_number_or_words(write, wanted):
    path = write(TWO)
    text = run("logs", path, "--table", wanted).stdout
    assert [line.split()[1] for line in text.splitlines()[1:]] == ["2"]
    result = run("calibrate", path, "--table", wanted)
    assert (result.exit_code, "times apart" in result.stderr) == (0, False)


def test_a_table_that_is_not_there_names_those_that_are(write):
    result = run("calibrate", write(TWO), "--table", "3")
    assert result.exit_code == 2
    assert "1 (with the plug-in), 2 (plug-in missing)" in result.stderr


# ------------------------------------------------------------------------------------------ rows, tags and headings


@pytest.mark.parametrize("words", [*permutations(["size", "time", "algbw"]), ("time", "size", "algbw", "time")])
def test_prose_is_no_heading(read, words):
    prose = f"We plot {' '.join(words)} and busbw\n"
    assert heading_of(prose) is None
    assert heading_of("size against time algbw busbw") is None
    log = read(prose + table(8) + prose)
    assert facts(log) == {("all_reduce", 8)}
    assert "no table of a benchmark" in faults(lambda: read(prose))


@pytest.mark.parametrize("tag", ["[0]", "[12]", "[1,0]<stdout>:", "[prterun-host-1@1,0]<stdout>:"])
def test_tags_before_and_within_rows(read, tag):
    plain = table(8)
    tagged = "".join(f"{tag}{line}" for line in plain.replace(" -1 ", f" -1{tag} ").splitlines(keepends=True))
    assert [row.time_s for row in read(tagged).measurements] == [row.time_s for row in read(plain).measurements]
    assert without_launcher(f"{tag} 8 {tag} 2").split() == ["8", "2"]


def test_a_table_in_markdown_and_one_that_is_packed(read):
    plain = read(table(8))
    lines = [line.lstrip("# ") for line in table(8).splitlines()]
    rule = "|" + "---|" * 13
    markdown = "\n".join([f"| {' | '.join(line.split())} |" for line in lines[:1]] + [rule])
    markdown += "\n" + "\n".join(f"| {' | '.join(line.split())} |" for line in lines[2:-1]) + "\n"
    assert [row.time_s for row in read(markdown).measurements] == [row.time_s for row in plain.measurements]
    packed = read(gzip.compress(table(8).encode()), "log.txt.gz")
    assert packed.measurements == plain.measurements
    assert packed.sha256 == plain.sha256
    simple = read("| Size (KiB) | GPUs | Time (us) |\n|---:|:---:|---|\n| 4 | 8 | 12.5 |\n", "x.md")
    assert [(row.message_bytes, row.n_workers, row.time_s) for row in simple.measurements] == [
        (4096, 8, pytest.approx(12.5e-6))
    ]


# -------------------------------------------------------------------------------------------------- times in place


def test_a_cold_start_is_known_and_rescued_by_its_time_in_place(read):
    lines = table(8, sizes=(1024, 2048, 4096)).splitlines(keepends=True)
    first = lines[2].split()
    cold = " ".join([*first[:5], "900.00", *first[6:]]) + "\n"
    log = read("".join([*lines[:2], cold, *lines[3:]]))
    assert log.measurements[0].time_s == pytest.approx(20.01e-6)
    assert (log.measurements[0].is_rescued, log.measurements[0].is_outlier) == (True, False)
    assert "a cold start at 1 KiB: the time in place is taken" in said(log)
    both = " ".join([*first[:5], "900.00", *first[6:9], "900.00", *first[10:]]) + "\n"
    lost = read("".join([*lines[:2], both, *lines[3:]]))
    assert lost.measurements[0].is_outlier
    assert "a cold start at 1 KiB: no fit uses it" in said(lost)


def test_times_in_place_where_they_are_asked_for(write):
    path = write(table(8, in_place=0.5))
    out, in_place = (read_log(path, in_place=asked).measurements for asked in (False, True))
    assert [row.time_s for row in in_place] == pytest.approx([0.5 * row.time_s for row in out], rel=1e-3)
    assert all(row.is_in_place for row in in_place)
    assert "10 us" not in run("logs", path).stdout
    assert run("calibrate", path, "--in-place").exit_code == 0


# ------------------------------------------------------------------------------------------------------ other tools


def test_nonblocking_collectives_of_osu_without_what_is_computed_beside_them(read):
    log = read(
        "# OSU MPI-CUDA Non-blocking Allreduce Latency Test v5.9\n"
        "# Size   Overall(us)   Compute(us)   Pure Comm.(us)   Overlap(%)\n"
        "64   210.0   110.0   105.0   9.1\n4096   260.0   130.0   128.0   4.0\n"
    )
    assert [(row.collective, row.time_s) for row in log.measurements] == [
        ("all_reduce", pytest.approx(105e-6)),
        ("all_reduce", pytest.approx(128e-6)),
    ]
    assert "Pure Comm." in said(log)
    seven = "# OSU MPI Non-Blocking Allgather Latency Test v7.3\n# Size Overall(us) Compute(us) Coll. Init(us) "
    log = read(f"{seven}MPI_Test(us) MPI_Wait(us) Pure Comm.(us) Overlap(%)\n8 90 40 1 2 3 44 0.5\n")
    assert [(row.collective, row.time_s) for row in log.measurements] == [("all_gather", pytest.approx(44e-6))]


def test_nccom_test_says_n_in_its_command(read):
    rows = "  size(B)  count(elems)  type  time(us)  algbw(GB/s)  busbw(GB/s)\n"
    rows += "  1048576  524288  bf16  100  10.49  20.32\n  Avg bus bandwidth:  20.32GB/s\n"
    log = read("$ nccom-test -r 32 -b 1mb -e 1mb -d bf16 allr\n" + rows)
    assert (log.tool, facts(log)) == ("nccom-test", {("all_reduce", 32)})
    assert libraries_of([log]) == ("neuron",)  # which has no LL128
    assert log.measurements[0].time_s == pytest.approx(100e-6)


def test_the_benchmark_of_gloo(read):
    text = (
        "Algorithm:   allreduce_ring_chunked\nOptions:     processes=4, inputs=1, threads=1\n\n"
        "   elements   min (us)   p50 (us)   p99 (us)   max (us)   avg (GB/s)    samples\n"
        "        100         70         90        140        800        0.004       9000\n"
        "    1000000       2000       2500       4000       9000        1.550       1000\n"
    )
    log = read(text)
    assert [(row.message_bytes, row.time_s) for row in log.measurements] == [
        (400, pytest.approx(90e-6)),
        (4_000_000, pytest.approx(2500e-6)),
    ]
    assert {(row.collective, row.n_workers, row.algorithm) for row in log.measurements} == {
        ("all_reduce", 4, "allreduce_ring_chunked")
    }
    assert "no collective that is known" not in said(log)
    barrier = text.replace("allreduce_ring_chunked", "barrier_all_to_one")
    assert "without a row of a collective" in faults(lambda: read(barrier))


def test_a_maker_before_the_model_is_no_other_machine(read):
    log = read(table(8))
    named, bare = (replace(log, devices=(name,)) for name in ("NVIDIA A100-X", "A100-X"))
    other = replace(log, devices=("H100",))
    found = [[one.name for one in machines_of(pair)].count(TWO_MACHINES) for pair in ([named, bare], [bare, other])]
    assert found == [0, 1]


def test_what_has_no_model_is_refused_by_name(write):
    result = run("calibrate", write(table(8, redop="none", factor=1.0)), "--collective", "alltoall")
    assert result.exit_code == 2
    assert "no model of this collective" in result.stderr


def test_a_log_of_more_tables_than_anybody_looks_through_is_refused_in_no_time(read):
    keys = (TableKey("all_reduce", 4, ("", ""), Condition(), {1024}) for _ in range(100_000))
    assert max(numbers_of(keys)) == MOST_TABLES + 1
    heading = "# OSU MPI Allreduce Latency Test v5.7\n# Size       Avg Latency(us)\n"
    with pytest.raises(InputError, match="over 1000 tables are in it; right would be: a file of the runs that matter"):
        read(heading + "1024 1.72\n" * (MOST_TABLES + 1))
