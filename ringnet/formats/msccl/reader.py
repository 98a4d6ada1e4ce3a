"""A schedule file of MSCCL as a `Schedule`: any engine, network and verification takes it like ringnet's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ringnet.collectives.schedule import Schedule, Step, frozen, make_schedule
from ringnet.documents.text import read_bounded
from ringnet.formats.msccl.document import SCHEDULE_XML, parse
from ringnet.formats.msccl.ends import Ends
from ringnet.formats.msccl.flow import follow
from ringnet.formats.msccl.machine import run
from ringnet.formats.msccl.order import make_rows, put_in_order


def load_msccl(path: Path) -> Schedule:
    """Read a schedule from a file.

    Parameters
    ----------
    path : Path

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
    Thread blocks become channels; of a file that ringnet wrote the channels are those it had. Their steps run in
    order; a step that waits for another block (``depid``) waits for it here too where they share a channel or a
    chunk. What is received into scratch and added later is one transfer that reduces, at the place of the addition.
    Chunks of a collective in which each worker has its own are numbered by worker.

    Examples
    --------
    >>> from ringnet.collectives import ALGORITHMS
    >>> from ringnet.formats.msccl import dumps_msccl
    >>> schedule = loads_msccl(dumps_msccl(ALGORITHMS["ring"].build(4, "all-reduce")).encode())
    >>> schedule.n_workers, schedule.n_chunks, schedule.n_transfers
    (4, 4, 24)
    """
    document = parse(text, file)
    ends = Ends.of(document, file)
    done = run(document, file)
    flow = follow(done, ends, file)
    rows = make_rows(flow.carried)
    lanes, steps = put_in_order(rows, done, flow, file)
    return make_schedule(
        document.name,
        ends.collective,
        document.n_gpus,
        ends.n_chunks,
        _Steps(tuple(steps)),
        source=frozen(ends.source),
        target=frozen(ends.target),
        n_channels=max((lane.number + 1 for lane in lanes), default=1),
        n_buffers=ends.n_buffers,
    )


@dataclass(frozen=True)
class _Steps:
    """Steps that are there already, handed out again and again."""

    steps: tuple[Step, ...]

    def __call__(self) -> Iterator[Step]:
        return iter(self.steps)
