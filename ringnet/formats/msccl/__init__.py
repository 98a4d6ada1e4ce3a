"""MSCCL's XML: schedules of thread blocks, as `msccl-tools` prints them and NCCL-like runtimes run them.

A file becomes a `Schedule`, and any engine, network and verification takes it like ringnet's own; the other way round
any schedule of ringnet becomes a file.
"""

from __future__ import annotations

from pathlib import Path

from ringnet.collectives.schedule import Schedule, frozen, make_schedule
from ringnet.documents.text import read_bounded
from ringnet.formats.msccl.dataflow import BufferLayout, follow
from ringnet.formats.msccl.steps import plan_transfers, put_in_order
from ringnet.formats.msccl.thread_blocks import SCHEDULE_XML, ScheduleFile, execute, parse_schedule
from ringnet.formats.msccl.writer import dumps_msccl
from ringnet.formats.msccl.written import as_written
from ringnet.formats.others import refuse_other

__all__ = ["dumps_msccl", "load_msccl", "loads_msccl"]


def load_msccl(path: Path) -> Schedule:
    """Read a schedule from a file.

    Returns
    -------
    Schedule
        Its name as the algorithm. Whether it does what its collective says is for `check` to tell.

    Raises
    ------
    InputError
        The file cannot be read; all else as `loads_msccl`.
    """
    text = read_bounded(path, SCHEDULE_XML.n_bytes, "a schedule")
    if not text.lstrip().startswith(b"<"):
        refuse_other(text, str(path))
    return loads_msccl(text, str(path))


def loads_msccl(text: bytes, file: str = "schedule.xml") -> Schedule:
    """Read a schedule from the text of a file, named ``file`` in what is said of it.

    Raises
    ------
    ScheduleError
        With line and element: text that is no such schedule, numbers that do not fit, blocks that wait for
        each other for ever, messages left over, accesses that race, output that is not the worker's value of
        its chunk, and what a schedule of ringnet cannot say: two values of one chunk at a worker at the same
        time.

    Notes
    -----
    A file that ringnet wrote is the schedule that it was written from, row for row. Any other goes by its waits, also
    one of these in which somebody changed more than the layout: thread blocks become channels and run in order;
    a step that waits for another block (``depid``) waits for it here too where they share a channel or a chunk. What is
    received into scratch and added later is one transfer that reduces, at the place of the addition.
    Chunks of a collective in which each worker has its own are numbered by worker.

    Examples
    --------
    >>> from ringnet.collectives import ALGORITHMS
    >>> from ringnet.formats.msccl import dumps_msccl
    >>> schedule = loads_msccl(dumps_msccl(ALGORITHMS["ring"].build(4, "all-reduce")).encode())
    >>> schedule.n_workers, schedule.n_chunks, schedule.n_transfers
    (4, 4, 24)
    """
    schedule = parse_schedule(text, file)
    layout = BufferLayout.of(schedule, file)
    written = as_written(schedule, layout)
    if written is not None:
        return written
    run = execute(schedule, file)
    flow = follow(run, layout, file, schedule.copies)
    channels, steps = put_in_order(plan_transfers(flow.deliveries), run, flow, file)
    return make_schedule(
        schedule.name,
        layout.collective,
        schedule.n_gpus,
        layout.n_chunks,
        steps,
        source=frozen(layout.source),
        target=frozen(layout.target),
        n_channels=max((channel.number + 1 for channel in channels), default=1),
        n_buffers=layout.n_buffers,
        parameters=_bytes_for(schedule),
    )


def _bytes_for(schedule: ScheduleFile) -> dict[str, object]:
    """Return the sizes of messages that a file says it is for, those that it says."""
    said = zip(("min_bytes", "max_bytes"), schedule.bytes_for, strict=True)
    return {name: value for name, value in said if value is not None}
