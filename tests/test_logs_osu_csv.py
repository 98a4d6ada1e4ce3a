"""Logs of the OSU micro-benchmarks, and tables as people write them."""

from __future__ import annotations

import pytest

from ringnet.errors import InputError
from ringnet.formats.logs import read_log
from ringnet.formats.logs.samples import complete


@pytest.fixture
def read(tmp_path):
    """Read a text as a log."""

    def read_text(text, name="log.txt"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return read_log(path)

    return read_text


def said(log):
    return " / ".join(map(str, log.remarks))


def faults(call):
    with pytest.raises(InputError) as caught:
        call()
    return str(caught.value)


OSU = "# OSU MPI {} Latency Test v7.1\n# Size       Avg Latency(us)\n{}"
OSU_ROWS = "4                       1.34\n1024                    1.59\n65536                  16.93\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("OSU MPI ", "OSU "),
        lambda text: text.replace("OSU MPI ", "OSU MPI-CUDA "),
        lambda text: "\n".join(f"[1,0]<stdout>:{line}" for line in text.splitlines()),
        lambda text: "\n".join(f"0: {line}" for line in text.splitlines()),
        lambda text: text.replace("# OSU", "OSU").replace("# Size", "Size"),
        lambda text: text.replace("1.34\n", "1.34   1.1   1.9   1000\n"),
        lambda text: text.replace("1.34\n", "1.34        Pass\n"),
        lambda text: text.replace("\n", "\r\n"),
    ],
)
def test_osu_of_every_era(read, change):
    log = read(change(OSU.format("Allreduce", OSU_ROWS)))
    assert [(row.message_bytes, row.time_s) for row in log.measurements] == [
        (4, pytest.approx(1.34e-6)),
        (1024, pytest.approx(1.59e-6)),
        (65536, pytest.approx(16.93e-6)),
    ]
    assert log.collectives == ("all_reduce",)


def test_a_validation_that_failed_is_said(read):
    log = read(OSU.format("Allreduce", OSU_ROWS.replace("1.59\n", "1.59  Fail\n")))
    assert "wrong values at 1 KiB: validation failed" in said(log)


def test_several_osu_benchmarks_in_one_file(read):
    latency = "mpirun -np 2 osu_latency\n# OSU MPI Latency Test v5.8\n# Size   Latency (us)\n0   0.42\n4   0.31\n"
    command = "mpirun --hostfile h.txt -np 4 /opt/osu/collective/osu_allreduce\n"
    gather = OSU.format("Allgather", OSU_ROWS)
    log = read(latency + command + OSU.format("Allreduce", OSU_ROWS) + gather)
    assert log.collectives == ("all_reduce", "all_gather")
    assert [row.n_workers for row in log.measurements] == [4, 4, 4, None, None, None]
    assert "line 2: OSU's Latency is no collective: left out" in said(log)
    assert "N=4, by the command that stands in the log" in said(log)
    assert "the size is taken times N" in said(log)
    whole = complete(log, {"": 8}, {})
    assert [row.message_bytes for row in whole.of("all_gather")] == [32, 8192, 524288]
    assert [row.message_bytes for row in whole.of("all_reduce")] == [4, 1024, 65536]
    assert "N=8, as given" in said(whole)
    assert "OSU's Latency is no collective" in faults(lambda: read(latency))


@pytest.mark.parametrize(
    ("text", "sizes", "words"),
    [
        ("size,ranks,time\n1K,8,10us\n4M,8,1.2ms\n", (1024, 2**22), "sizes say K: taken as 1,024 bytes each"),
        (
            "size,ranks,time\n1KB,8,10us\n4MB,8,1.2ms\n",
            (1000, 4 * 10**6),
            "sizes say KB: taken as 1,000 bytes",
        ),
        ("size,ranks,time_ms\n1 KiB,8,0.01\n4 MiB,8,1.2\n", (1024, 2**22), ""),
        ('size,ranks,time_us\n"1,024",8,10\n"4,194,304",8,"1,200.0"\n', (1024, 2**22), "part thousands"),
        (
            "Message Size (B);Ranks;Time (us)\r\n1024;8;10,0\r\n4194304;8;1200\r\n",
            (1024, 2**22),
            "decimal points",
        ),
        ("size_in_bytes\tranks\tlatency_us\n1024\t8\t10\n4194304\t8\t1200\n", (1024, 2**22), ""),
        (",bytes,ranks,time_us\n0,1024,8,10\n1,4194304,8,1200\n", (1024, 2**22), ""),
    ],
)
def test_tables_as_people_write_them(read, text, sizes, words):
    log = read(text, "t.csv")
    assert tuple(row.message_bytes for row in log.measurements) == sizes
    assert [row.time_s for row in log.measurements] == pytest.approx([10e-6, 1200e-6])
    assert {(row.n_workers, row.algorithm) for row in log.measurements} == {(8, "")}
    assert words in said(log)


def test_a_size_that_is_not_understood_is_no_reason_to_leave_it_out(read):
    told = faults(lambda: read("msg size per rank,ranks,time_us\n1024,8,10\n", "t.csv"))
    assert "a column that is not understood; got msg size per rank" in told
