"""From logs to the samples of a calibration: one collective, N and nodes of every row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ringnet.analysis.calibration import PASSES, CalibrationVerdict, Samples, SourceFile
from ringnet.analysis.calibration.calibration import TWO_MACHINES
from ringnet.analysis.calibration.machine import LIBRARIES, UNNAMED
from ringnet.errors import Fault, InputError, unknown
from ringnet.formats.logs.log import ASKED, Log, Measurement, Notes
from ringnet.formats.logs.osu import PER_RANK
from ringnet.formats.logs.tables import APART, tables_of, times_apart
from ringnet.units import counted

_MAKER = re.compile(r"^(?:NVIDIA|AMD)\s+")
#: What a benchmark tells of who ran the collective.
_LIBRARIES = {"nccl-tests": ("gpu",), "nccom-test": ("neuron",), "OSU": ("mpi",), "gloo": ("gloo",)}


def complete(log: Log, workers: Mapping[str, int], nodes: Mapping[str, int]) -> Log:
    """Return a log with N and nodes filled in where it says none; what it says itself stands, and that is said.

    Parameters
    ----------
    log : Log
    workers, nodes : mapping of str to int
        By name of the file, with ``#2`` behind it for its second table; the empty name is for every file.

    Raises
    ------
    InputError
        A number of workers is given that a rank of the log belies, or a number for a table that the log has not.
    """
    tables = {row.table for row in log.measurements}
    for place, given in (("workers", workers), ("nodes", nodes)):
        for name in given.keys() - {log.path.name, str(log.path)}:
            file, _, table = name.rpartition("#")
            if file in (log.path.name, str(log.path)) and int(table) not in tables:
                right = ", ".join(f"{file}#{one}" for one in sorted(tables))
                raise InputError(Fault("the log has no such table", place, value=name, right=right))
    notes, rows, filled = Notes(), [], set[int]()
    for row in log.measurements:
        n_workers, n_nodes = (_given(given, log, row.table) for given in (workers, nodes))
        if n_workers and row.n_workers and row.is_n_sure and n_workers != row.n_workers:
            notes.say(f"workers={n_workers} is not used: the log says N={row.n_workers}", row.line)
        elif n_workers and row.n_workers and n_workers != row.n_workers:
            notes.say(f"N={n_workers} is taken, as given, and not {row.n_workers}", row.line)
        if n_nodes and row.n_nodes and n_nodes != row.n_nodes:
            notes.say(f"nodes={n_nodes} is not used: the log lists {row.n_nodes}", row.line)
        is_stated = row.n_workers and (row.is_n_sure or not n_workers)
        if n_workers and not is_stated and n_workers < row.n_least:
            message = f"rank {row.n_least - 1} is listed in line {row.line} of {log.path.name}"
            right = f"{row.n_least} or more"
            raise InputError(Fault(message, "workers", value=str(n_workers), right=right))
        n_of_row = row.n_workers if is_stated else n_workers
        filled |= {n_workers} if n_workers and not is_stated else set()
        # OSU counts a part of the buffer: with N it is known how much the whole one is.
        is_part = log.tool == "OSU" and row.collective in PER_RANK and not row.n_workers
        rows.append(
            replace(
                row,
                message_bytes=row.message_bytes * (n_of_row or 1 if is_part else 1),
                n_workers=n_of_row,
                n_nodes=row.n_nodes or n_nodes,
            )
        )
    remarks = log.remarks
    if filled and all(row.n_workers for row in rows):
        answer = f"N={', '.join(map(str, sorted(filled)))}, as given"
        remarks = tuple(replace(one, text=one.text.replace(ASKED, answer)) for one in remarks)
    return replace(log, measurements=tuple(rows), remarks=(*remarks, *notes.remarks()))


def _given(given: Mapping[str, int], log: Log, table: int) -> int | None:
    """Return what an option says of a table: of that table first, then of its file, then of all."""
    files = (log.path.name, str(log.path))
    keys = [f"{name}#{table}" for name in files], files, (f"#{table}", "")
    return next((given[key] for group in keys for key in group if key in given), None)


def samples_of(logs: Sequence[Log], collective: str, notes: Notes) -> Samples:
    """Return the rows of one collective that a fit may use.

    Parameters
    ----------
    logs : sequence of Log
    collective : str
    notes : Notes
        Gets what is left out and why.

    Raises
    ------
    InputError
        A log has none of them, does not say its N, or N is one, or its tables are of conditions that are far apart:
        every fault at once.
    """
    if collective not in PASSES:
        raise InputError(unknown("no model of this collective", collective, PASSES, "collective"))
    faults = [fault for log in logs for fault in _faults(log, collective)]
    if faults:
        raise InputError(*faults)
    used = [[row for row in log.of(collective) if not row.is_outlier and row.time_s > 0] for log in logs]
    _say_what_is_left_out(logs, used, collective, notes)
    _say_what_is_pooled(logs, used, notes)
    rows = [(row, index) for index, found in enumerate(used) for row in found]
    nodes = np.array([row.n_nodes or 0 for row, _ in rows], dtype=np.int64)
    n_workers = np.array([row.n_workers for row, _ in rows], dtype=np.int64)
    if (nodes == 0).any() and (nodes > 0).any():
        notes.say("some logs say on how many nodes they ran, some do not: all hops are taken as one kind")
        nodes[:] = 0
    return Samples(
        n_workers,
        nodes,
        np.array([row.message_bytes for row, _ in rows], dtype=np.float64),
        np.array([row.time_s for row, _ in rows], dtype=np.float64),
        np.array([index for _, index in rows], dtype=np.int64),
        tuple(log.path.name for log in logs),
    )


def _faults(log: Log, collective: str) -> list[Fault]:
    file, rows = str(log.path), log.of(collective)
    if not rows:
        there = ", ".join(name or "nothing" for name in log.collectives) or "nothing"
        return [
            Fault(
                f"no {collective} of more than zero bytes in it",
                file=file,
                value=there,
                right=f"a log of {collective}",
            )
        ]
    if any(row.n_workers is None for row in rows):
        message = f"{log.path.name} does not say how many workers there were"
        right = f"8, or {log.path.name}=8 where several logs need it"
        return [Fault(message, "workers", right=right)]
    small = next((row for row in rows if (row.n_workers or 0) < 2), None)  # noqa: PLR2004 -- one worker moves nothing
    if small:
        return [Fault("a single worker moves nothing", file=file, line=small.line, value=f"N={small.n_workers}")]
    if not any(row.time_s > 0 for row in rows):
        return [Fault("every time in it is 0", file=file, right="a log with more digits")]
    bad = next((row for row in rows if row.n_nodes and row.n_nodes > (row.n_workers or 0)), None)
    if bad:
        message, value = "more nodes than workers", f"N={bad.n_workers} on {bad.n_nodes} nodes"
        return [Fault(message, file=file, line=bad.line, value=value)]
    return _conditions_apart(log, rows)


def _conditions_apart(log: Log, rows: Sequence[Measurement]) -> list[Fault]:
    """Return a fault where two tables of one N are so far apart that no fit would be of either."""
    tables = [*tables_of(rows).items()]
    for place, (number, one) in enumerate(tables):
        for other_number, other in tables[place + 1 :]:
            factor = times_apart(one, other) if _where(one[0]) == _where(other[0]) else None
            if factor and factor > APART:
                message = f"tables {number} and {other_number} are both of {_where(one[0])}, {factor:.3g} times apart"
                right = f"one of them: --table {_called(number, one)}, or --table {_called(other_number, other)}"
                return [Fault(message, file=str(log.path), line=other[0].line, right=right)]
    return []


def _where(row: Measurement) -> str:
    on = f" on {counted(row.n_nodes, 'node')}" if row.n_nodes else ""
    return f"N={row.n_workers}{on}"


def _called(number: int, rows: Sequence[Measurement]) -> str:
    return f"{number} ({rows[0].condition})" if rows[0].condition else str(number)


def _say_what_is_pooled(logs: Sequence[Log], used: Sequence[Sequence[Measurement]], notes: Notes) -> None:
    """Say which tables, of one log or of several, are of one N: their times are taken together."""
    by_where: dict[str, list[tuple[str, Sequence[Measurement]]]] = {}
    for log, rows in zip(logs, used, strict=True):
        tables = tables_of(rows)
        for number, table in tables.items():
            name = f"table {number} of {log.path.name}" if len(tables) > 1 else log.path.name
            by_where.setdefault(_where(table[0]), []).append((name, table))
    for where, tables_there in by_where.items():
        if len(tables_there) > 1:
            names = ", ".join(name for name, _ in tables_there)
            apart = [times_apart(tables_there[0][1], table) or 1.0 for _, table in tables_there[1:]]
            far = f", though up to {max(apart):.3g} times apart" if max(apart) > APART else ""
            notes.say(f"{names} are all of {where}: taken together{far}")


def _say_what_is_left_out(
    logs: Sequence[Log], used: Sequence[Sequence[Measurement]], collective: str, notes: Notes
) -> None:
    for log, rows in zip(logs, used, strict=True):
        others = [name for name in log.collectives if name != collective]
        if others:
            notes.say(f"{log.path.name}: {', '.join(others)} are left aside, {collective} is taken")
        n_timeless = sum(row.time_s <= 0 for row in log.of(collective))
        if n_timeless:
            notes.say(f"{log.path.name}: {n_timeless} row(s) with a time of 0 left out: the clock was too coarse")
        n_outliers = len(log.of(collective)) - len(rows) - n_timeless
        if n_outliers:
            notes.say(f"{log.path.name}: {n_outliers} outlier(s) left out")
        if len({row.dtype for row in rows}) > 1:
            notes.say(f"{log.path.name}: several types of elements are taken together")


def algorithms_of(logs: Sequence[Log], collective: str) -> tuple[str, ...]:
    """Return the algorithm that every log forces; none where the library chose."""
    forced = {row.algorithm.lower() for log in logs for row in log.of(collective)}
    only = forced.pop() if len(forced) == 1 else ""
    return {"ring": ("ring",), "tree": ("tree", "doubling")}.get(only, ())


def libraries_of(logs: Sequence[Log]) -> tuple[str, ...]:
    """Return who may have run what the logs time: a library of GPUs, MPI, or either."""
    tools = {log.tool.removesuffix(" JSON") for log in logs}
    return _LIBRARIES.get(tools.pop(), UNNAMED) if len(tools) == 1 else UNNAMED


def sources_of(logs: Sequence[Log], samples: Samples) -> list[SourceFile]:
    """Return the files, with how many rows of each are used."""
    counts = np.bincount(samples.log, minlength=len(logs))
    return [SourceFile(log.path.name, log.sha256, int(count)) for log, count in zip(logs, counts, strict=True)]


def _models(log: Log) -> tuple[str, ...]:
    """Return the devices of a log without their maker: drivers of some years name it, of others not."""
    return tuple(sorted({_MAKER.sub("", device) for device in log.devices}))


def machines_of(logs: Sequence[Log]) -> list[CalibrationVerdict]:
    """Say it where logs are of different devices, or of different tools that time different things."""
    devices = {_models(log): log.path.name for log in logs if log.devices}
    tools = {log.tool.removesuffix(" JSON"): log.path.name for log in logs}
    found = []
    per_node = LIBRARIES[libraries_of(logs)[0]].per_node if len(tools) == 1 else 1
    if per_node > 1 and not any(row.n_nodes for log in logs for row in log.measurements):
        text = f"no log says on how many nodes it ran: nodes of {per_node} workers are taken, where nodes are not given"
        found.append(CalibrationVerdict("nodes taken", text))
    if len(devices) > 1:
        named = "; ".join(f"{name}: {', '.join(each)}" for each, name in devices.items())
        found.append(
            CalibrationVerdict(TWO_MACHINES, f"the logs are of different devices ({named}): their fit is of neither")
        )
    if len(tools) > 1 and "CSV" not in tools and "JSON" not in tools:
        named = "; ".join(f"{name}: {tool}" for tool, name in tools.items())
        found.append(CalibrationVerdict(TWO_MACHINES, f"the logs are of tools that time different things ({named})"))
    return found
