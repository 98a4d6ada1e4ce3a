"""Logs of benchmarks: every format, and every trap that launchers, libraries and people lay in them."""

from __future__ import annotations

import gzip
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.errors import InputError
from ringnet.formats.logs import Measurement, flag_outliers, read_log
from ringnet.formats.logs.evidence import possible_workers
from ringnet.formats.logs.log import MOST_BYTES

DATA = Path(__file__).parent / "data" / "logs"
HEADING = """\
# Collective test starting: {name}_perf
# nThread 1 nGpus 8 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 5 iters: 20
#  size   count   type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
ROW = "{size}  {count}  float  {redop}  -1" + 2 * "  {time:.2f}  {alg:.2f}  {bus:.2f}  0" + "\n"
END = "# Avg bus bandwidth    : 1\n"


def rows(n_workers, sizes=(1 << 20, 1 << 24), factor=2.0, redop="sum", time=lambda size: 10 + size / 1e5):
    """Print rows as nccl-tests does."""
    lines = []
    for size in sizes:
        alg = size / time(size) / 1e3
        bus = alg * factor * (n_workers - 1) / n_workers
        lines.append(ROW.format(size=size, count=size // 4, redop=redop, time=time(size), alg=alg, bus=bus))
    return "".join(lines)


@pytest.fixture
def read(tmp_path):
    """Read a text as a log."""

    def read_text(text, name="log.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_log(path)

    return read_text


def said(log):
    return " / ".join(map(str, log.remarks))


def faults(call):
    with pytest.raises(InputError) as caught:
        call()
    return str(caught.value)


def test_a_log_of_2019_has_no_root_and_errors_of_floats():
    log = read_log(DATA / "nccl-2019.txt")
    assert [row.message_bytes for row in log.measurements] == [1024 << 2 * k for k in range(8)]
    first = log.measurements[0]
    assert (first.time_s, first.in_place_s) == pytest.approx((22.1e-6, 21.9e-6))
    assert (first.n_workers, first.n_nodes) == (4, 2)
    assert not any(row.wrong for row in log.measurements)
    assert log.devices == ("Tesla V100-SXM2-16GB",)
    assert "the collective is not named: all_reduce" in said(log)


def test_a_launcher_that_prints_into_rows():
    log = read_log(DATA / "launcher.txt")
    assert [row.message_bytes for row in log.measurements] == [0, 4096, 32768, 1 << 24, 1 << 27, 1 << 30]
    assert [round(row.time_s * 1e6, 2) for row in log.measurements[:3]] == [15.51, 30.0, 38.0]
    assert {row.n_workers for row in log.measurements} == {16}
    text = said(log)
    for words in (
        "zero bytes",
        "put together again",
        "rows were left out",
        "cut off",
        "N=16, the only one that fits",
    ):
        assert words in text


def test_a_row_cut_within_its_numbers_is_put_together(read):
    whole = HEADING.format(name="all_reduce") + rows(8) + END
    cut = whole.replace("  0  ", "  0 host:1:2 [3] NCCL WARN went by\n  ", 1)
    early = whole.replace("-1  20.49", "-1  20.49 host:1:2 [3] NCCL WARN went by\n  ", 1)
    assert early != whole != cut
    for text in (cut, early):
        assert [row.time_s for row in read(text).measurements] == [row.time_s for row in read(whole).measurements]


def test_a_second_run_does_not_take_the_first_ones_name(read):
    first = HEADING.format(name="all_reduce") + rows(8) + END
    second = HEADING.format(name="all_reduce").partition("\n")[2] + rows(8, factor=1.0, redop="none") + END
    assert read(first + second).collectives == ("all_reduce", "all_gather")
    again = HEADING.format(name="all_reduce").partition("#  size")[2]
    assert len(read(first + "#  size" + again + rows(8) + END).of("all_reduce")) == 4


def test_milliseconds_of_2017_are_found_by_size_over_algbw():
    log = read_log(DATA / "nccl-2017-ms.txt")
    assert [row.time_s for row in log.measurements] == pytest.approx([1e-4, 8e-4, 7.5e-3])
    assert (log.measurements[0].n_workers, log.measurements[0].n_nodes) == (2, None)
    assert "no unit of time is stated: ms" in said(log)


def test_a_heading_that_lies_about_its_unit(read):
    text = HEADING.format(name="all_reduce") + rows(8, time=lambda size: 10 + size / 1e5).replace("0.00", "0.00")
    honest = read(text + END)
    liar = read(text.replace("(us)", "(ms)") + END)
    assert [row.time_s for row in liar.measurements] == [row.time_s for row in honest.measurements]
    assert "headed (ms), but size over algbw makes them us" in said(liar)
    assert "headed" not in said(honest)


def test_a_broken_launch_is_refused_with_the_reason():
    text = faults(lambda: read_log(DATA / "broken-launch.txt"))
    assert "each process ran alone" in text
    assert "MPI=1" in text


def test_several_collectives_each_with_its_name_and_n(read):
    text = "".join(
        HEADING.format(name=name) + rows(n, factor=factor, redop=redop) + END
        for name, n, factor, redop in (
            ("all_reduce", 8, 2.0, "sum"),
            ("all_gather", 16, 1.0, "none"),
            ("sendrecv", 4, 4 / 3, "sum"),
        )
    )
    log = read(text)
    assert log.collectives == ("all_reduce", "all_gather", "sendrecv")
    assert [(row.collective, row.n_workers) for row in log.measurements[::2]] == [
        ("all_reduce", 8),
        ("all_gather", 16),
        ("sendrecv", None),
    ]


def test_n_is_not_guessed_where_rounding_leaves_several(read):
    log = read(HEADING.format(name="all_reduce") + rows(64, sizes=(4096, 8192)) + END)
    assert {row.n_workers for row in log.measurements} == {None}
    assert "say it by the number of workers" in said(log)


@pytest.mark.parametrize("prefix", ["0: ", " 3: ", "[1,12]<stderr>:", "\x1b[32m", "pod-0 | ", "2026-01-01T10:00:00Z "])
def test_prefixes_of_launchers(read, prefix):
    plain = HEADING.format(name="all_reduce") + rows(8) + END
    prefixed = "".join(prefix + line for line in plain.splitlines(keepends=True))
    assert [(row.message_bytes, row.time_s) for row in read(prefixed).measurements] == [
        (row.message_bytes, row.time_s) for row in read(plain).measurements
    ]


def test_a_log_without_its_hashes_reads_the_same(read):
    text = (DATA / "nccl-2019.txt").read_text()
    bare = read(text.replace("#", " "))
    whole = read(text)
    assert [replace(row) for row in bare.measurements] == list(whole.measurements)
    assert bare.devices == whole.devices


def test_a_forced_algorithm_is_kept_and_a_choice_of_several_is_not(read):
    text = HEADING.format(name="all_reduce") + rows(8) + END
    forced = read("NCCL_ALGO=Ring NCCL_PROTO=LL128 mpirun ./all_reduce_perf\n" + text)
    assert {(row.algorithm, row.protocol) for row in forced.measurements} == {("Ring", "LL128")}
    free = read("host:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ring,Tree\n" + text)
    assert {row.algorithm for row in free.measurements} == {""}


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_ends_and_encodings_of_other_systems(read, ending, encoding):
    text = (DATA / "nccl-2019.txt").read_text().replace("\n", ending)
    assert len(read(text.encode(encoding)).measurements) == 8


def test_per_iteration_columns_and_timestamps_are_passed_over(read):
    heading = (
        "# Collective test starting: all_reduce_perf\n# size count type redop root"
        + 2 * " time algbw busbw #wrong i_min i_max i_p99 i_cv%"
        + " timestamp\n# (B) (elements) (us) (GB/s)\n"
    )
    row = "1048576 262144 float sum -1" + 2 * " 100.0 10.49 18.35 0 90.0 130.0 129.0 3.0" + " 2026-01-01 10:00:00\n"
    (found,) = read(heading + row + END).measurements
    assert (found.time_s, found.in_place_s, found.busbw_Bps) == pytest.approx((100e-6, 100e-6, 18.35e9))


def test_times_in_place_alone_are_measured_too(read):
    heading = "# Collective test starting: all_reduce_perf\n# size count type redop root"
    heading += 2 * " time algbw busbw #wrong" + "\n# (B) (elements) (us) (GB/s)\n"
    row = "1048576 262144 float sum -1" + 4 * " N/A" + " 100.0 10.49 18.35 0\n"
    (found,) = read(heading + row + END).measurements
    assert (found.time_s, found.is_in_place, found.busbw_Bps) == (pytest.approx(100e-6), True, 18.35e9)


def test_wrong_values_are_said(read):
    text = HEADING.format(name="all_reduce") + rows(8).replace("  0  ", "  7  ", 1) + END
    log = read(text)
    assert log.measurements[0].wrong == "7"
    assert "wrong values at 1 MiB: 7" in said(log)


def test_osu_has_no_n_and_warnings_between_rows():
    log = read_log(DATA / "osu.txt")
    assert [row.message_bytes for row in log.measurements] == [4, 64, 1024, 16384, 262144]
    assert [row.time_s for row in log.measurements][:2] == pytest.approx([1.72e-6, 2.28e-6])
    assert log.collectives == ("all_reduce",)
    assert "N is not in the logs of OSU" in said(log)


def test_osu_latency_between_two_is_no_collective(read):
    assert "is no collective" in faults(lambda: read("# OSU MPI Latency Test v5.9\n# Size Latency (us)\n4 1.0\n"))


def test_the_report_of_nccl_tests_in_json():
    log = read_log(DATA / "report.json")
    assert [row.time_s for row in log.measurements] == pytest.approx([50.5e-6, 90e-6, 170e-6])
    assert {(row.collective, row.n_workers, row.n_nodes, row.algorithm, row.protocol) for row in log.measurements} == {
        ("all_reduce", 2, 1, "Ring", "Simple")
    }
    assert [row.in_place_s for row in log.measurements] == [
        pytest.approx(50.1e-6),
        None,
        pytest.approx(170.1e-6),
    ]
    assert log.measurements[1].wrong == "3"


@pytest.mark.parametrize("kept", [0.72, 0.9, 0.97])
def test_a_json_that_was_cut_off_is_used_as_far_as_it_goes(read, kept):
    text = (DATA / "report.json").read_text()
    log = read(text[: int(kept * len(text))], "report.json")
    assert [row.message_bytes for row in log.measurements] == [1 << 20, 1 << 21, 1 << 22][: len(log.measurements)]
    assert {row.n_workers for row in log.measurements} == {2}
    assert "not one whole document" in said(log)


def test_the_json_of_rccl_tests_out_of_place():
    log = read_log(DATA / "rccl.json")
    assert [row.time_s for row in log.measurements] == pytest.approx([95.1e-6, 140e-6])
    assert {(row.collective, row.n_workers, row.n_nodes) for row in log.measurements} == {("all_reduce", 16, 2)}
    assert "measured in place: left out" in said(log)


def test_a_csv_with_units_in_its_names():
    log = read_log(DATA / "plain.csv")
    assert [(row.message_bytes, row.n_workers, row.n_nodes) for row in log.measurements] == [
        (400000, 2, 1),
        (400000, 4, 1),
        (12390400, 2, 1),
    ]
    assert log.measurements[0].time_s == pytest.approx(109.783e-6)
    assert "a time of nan" in said(log)
    assert "6 columns under 5 names" in said(log)


def test_a_csv_without_a_unit_of_time_is_asked_for_one(read):
    assert "no unit of time" in faults(lambda: read("bytes,ranks,time\n4,2,1.0\n", "x.csv"))
    for size, algbw in ((1000000, 10.0), (10000, 0.1)):
        log = read(f"bytes,ranks,time,algbw\n{size},2,100,{algbw}\n", "x.csv")
        assert log.measurements[0].time_s == pytest.approx(100e-6)


def test_a_csv_whose_counts_are_none_says_so(read):
    log = read("bytes,ranks,nodes,time_us\n8,4.5,1,9\n8,-4,1,9\n8,4,0,9\n8,4,-,9\n", "x.csv")
    assert [(row.n_workers, row.n_nodes) for row in log.measurements] == [(None, 1)] * 2 + [(4, None)] * 2
    for words in ("ranks of 4.5: no whole", "ranks of -4: no whole", "nodes of 0: no whole"):
        assert words in said(log)
    assert "nodes of -:" not in said(log)


def test_a_csv_of_sizes_in_other_units_and_of_what_ringnet_itself_writes(read):
    assert read("size_MiB,time_ms\n0.5,1\n", "x.csv").measurements[0].message_bytes == 2**19
    log = read("Size (MB);N;Time (us)\n4;8;1\n".replace(";N;", ";ranks;"), "x.csv")
    assert (log.measurements[0].message_bytes, log.measurements[0].n_workers) == (4_000_000, 8)
    assert "taken as 1,000,000 bytes each" in said(log)
    own = read("name,n_workers,message_bytes,makespan_s\na,8,1024,1e-3\n", "summary.csv").measurements[0]
    assert (own.n_workers, own.message_bytes, own.time_s) == (8, 1024, 1e-3)


def test_a_csv_of_latencies_without_sizes(read):
    log = read("gpus,measured_us\n2,10\n3,13.76\n", "x.csv")
    assert [(row.n_workers, row.time_s) for row in log.measurements] == [
        (2, pytest.approx(10e-6)),
        (3, pytest.approx(13.76e-6)),
    ]
    assert "pure latency" in said(log)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"  \n \n", "empty"),
        (b"\x7fELF\x00\x01\x02", "binary"),
        (gzip.compress(b"log", mtime=0), "no table of a benchmark"),
        (gzip.compress(b"log" * 99, mtime=0)[:20], "packed (gzip), and damaged"),
        (b"BZh9 and so on", "packed (bzip2)"),
        (b"Intel(R) MPI Benchmarks 2021\n# Allreduce\n 0 1000 0.1 0.2 0.3\n", "the Intel MPI Benchmarks"),
        (b"[ ID] Interval Transfer Bitrate\n[ 5] 0.00-1.00 sec 1.0 GBytes\n", "iperf"),
        (b"dear diary\nnothing happened today\n", "no table of a benchmark"),
        (b'{"results": []}', "holds no measurements"),
        (b'{"a": {"b": 1}}', "holds no measurements"),
        (b"[" * 100_000, "no table of a benchmark"),
        (b"bytes,time_us\n", "no row with a size and a time"),
        (b"# OSU MPI Allreduce Latency Test v5.7\n# Size Avg Latency(us)\n", "without a row"),
    ],
)
def test_what_is_no_log_is_told_what_it_is(read, content, words):
    assert words in faults(lambda: read(content))


def test_a_folder_and_a_file_that_is_not_there(tmp_path):
    assert "folder" in faults(lambda: read_log(tmp_path))
    assert "cannot be read" in faults(lambda: read_log(tmp_path / "none.txt"))


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("...\n{head}{rows}{end}", False),
        ("{head}...\n{rows}{end}", True),
        ("{head}{rows}...\n{end}", True),
        ("{head}{rows}{end}...\nbye\n", False),
    ],
)
def test_dots_stand_for_rows_only_where_rows_could_be(read, text, is_told):
    log = read(text.format(head=HEADING.format(name="all_reduce"), rows=rows(8), end=END))
    assert ("rows were left out" in said(log)) is is_told


def test_a_heading_without_rows(read):
    assert "no row that is whole" in faults(lambda: read(HEADING.format(name="all_reduce")))


def test_a_gibibyte_is_read_as_far_as_the_limit(tmp_path):
    path = tmp_path / "huge.txt"
    path.write_text(HEADING.format(name="all_reduce") + rows(8) + END + "NCCL INFO and so on\n" * 4000)
    with path.open("r+b") as file:
        file.truncate(2**30)  # sparse: it takes no room on the disk
    log = read_log(path)
    assert len(log.measurements) == 2
    assert "the file has 1 GiB: only the first 64 MiB are read" in said(log)


def test_a_gibibyte_of_nothing_known_is_refused_with_what_was_read(tmp_path):
    path = tmp_path / "huge.txt"
    path.write_bytes(b"a line of something else\n" * 4000)
    with path.open("r+b") as file:
        file.truncate(2**30)
    assert f"the first {MOST_BYTES >> 20} MiB of 1 GiB were read" in faults(lambda: read_log(path))
    path.write_bytes(b"")
    with path.open("r+b") as file:
        file.truncate(2**30)
    assert "binary (1 GiB)" in faults(lambda: read_log(path))


def test_all_zeros_are_no_measurements(read):
    text = HEADING.format(name="all_reduce") + ROW.format(size=1024, count=256, redop="sum", time=0, alg=0, bus=0) + END
    assert "log.txt:5: no row has a time above zero: nothing was measured" in faults(lambda: read(text))
    assert "got a time of 0: left out" in faults(lambda: read("bytes,ranks,time_us\n1024,4,0\n", "z.csv"))


def test_outliers_stand_out_from_both_sides():
    series = [Measurement(1 << k, t, n_workers=8) for k, t in enumerate([80.0, 8, 8, 80, 9, 9, 12, 100, 200])]
    assert [row.is_outlier for row in flag_outliers(series)] == [True, False, False, True, *5 * [False]]


@given(st.integers(2, 1000), st.lists(st.floats(50, 900), min_size=5, max_size=30))
def test_the_true_n_is_always_among_those_that_fit(n_workers, bandwidths):
    pairs = [(round(alg, 2), round(alg * 2 * (n_workers - 1) / n_workers, 2)) for alg in bandwidths]
    assert n_workers in possible_workers(pairs, "all_reduce")


def test_n_of_a_long_log_takes_little_memory():
    pairs = [(10.0 + row / 100, round((10.0 + row / 100) * 1.75, 2)) for row in range(3000)]
    tracemalloc.start()
    found, (_, peak_bytes) = possible_workers(pairs, "all_reduce"), tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [8]
    assert peak_bytes < 10 * 2**20


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("fuzz") / "any.txt"
    path.write_bytes(content)
    with suppress(InputError):
        assert read_log(path).tool


@given(st.integers(0, 2000), st.integers(0, 2000), st.binary(max_size=20))
def test_a_damaged_log_is_read_as_far_as_it_is_sound(tmp_path_factory, start, length, put):
    whole = (DATA / "nccl-2019.txt").read_bytes()
    path = tmp_path_factory.mktemp("fuzz") / "any.txt"
    path.write_bytes(whole[:start] + put + whole[start + length :])
    try:
        found = read_log(path)
    except InputError:
        return
    assert all(np.isfinite(row.time_s) and row.time_s > 0 and row.message_bytes >= 0 for row in found.measurements)


def test_a_test_that_was_built_with_mpi_has_another_name(read):
    text = HEADING.format(name="all_gather").replace("_perf", "_perf_mpi") + rows(8, factor=1.0, redop="none") + END
    log = read(text)
    assert log.collectives == ("all_gather",)
    assert "not named" not in said(log)
