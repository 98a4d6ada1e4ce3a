"""From logs to the samples of a calibration: one collective, N and nodes of every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ringnet.analysis.calibration import PASSES, CalibrationVerdict, Samples, SourceFile
from ringnet.analysis.calibration.calibration import TWO_MACHINES
from ringnet.errors import Fault, InputError
from ringnet.formats.logs.log import ASKED, Log, Measurement, Notes
from ringnet.formats.logs.osu import PER_RANK

_FORCED = {"ring": ("ring",), "tree": ("tree", "doubling")}


def complete(log: Log, workers: Mapping[str, int], nodes: Mapping[str, int]) -> Log:
    """Return a log with N and nodes filled in where it says none; what it says itself stands.

    Parameters
    ----------
    log : Log
    workers, nodes : mapping of str to int
        By name of the file; the empty name is for every file.
    """
    n_workers, n_nodes = (
        given.get(log.path.name, given.get(str(log.path), given.get(""))) for given in (workers, nodes)
    )
    rows = []
    for row in log.measurements:
        # OSU counts a part of the buffer: with N it is known how much the whole one is.
        is_part = log.tool == "OSU" and row.collective in PER_RANK and not row.n_workers
        n_parts = n_workers if is_part and n_workers else 1
        rows.append(
            replace(
                row,
                message_bytes=row.message_bytes * n_parts,
                n_workers=row.n_workers or n_workers,
                n_nodes=row.n_nodes or n_nodes,
            )
        )
    remarks = log.remarks
    if n_workers:
        answer = f"N={n_workers}, as --workers says"
        remarks = tuple(replace(one, text=one.text.replace(ASKED, answer)) for one in remarks)
    return replace(log, measurements=tuple(rows), remarks=remarks)


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
        A log has none of them, does not say its N, or N is one: every fault at once.
    """
    if collective not in PASSES:
        known = ", ".join(PASSES)
        raise InputError(Fault("no model of this collective", "--collective", value=collective, right=known))
    faults = [fault for log in logs for fault in _faults(log, collective)]
    if faults:
        raise InputError(*faults)
    used = [[row for row in log.of(collective) if not row.is_outlier and row.time_s > 0] for log in logs]
    _say_what_is_left_out(logs, used, collective, notes)
    rows = [(row, index) for index, found in enumerate(used) for row in found]
    nodes = np.array([row.n_nodes or 0 for row, _ in rows], dtype=np.int64)
    if (nodes == 0).any() and (nodes > 0).any():
        notes.say("some logs say on how many nodes they ran, some do not: all hops are taken as one kind")
        nodes[:] = 0
    return Samples(
        np.array([row.n_workers for row, _ in rows], dtype=np.int64),
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
        right = f"--workers N, or --workers {log.path.name}=N where several logs need it"
        return [Fault("this log does not say how many workers there were", file=file, right=right)]
    small = next((row for row in rows if (row.n_workers or 0) < 2), None)  # noqa: PLR2004 -- one worker moves nothing
    if small:
        return [
            Fault("a single worker moves nothing", file=file, line=small.line, value=f"N={small.n_workers}")
        ]
    if not any(row.time_s > 0 for row in rows):
        return [Fault("every time in it is 0", file=file, right="a log with more digits")]
    bad = next((row for row in rows if row.n_nodes and row.n_nodes > (row.n_workers or 0)), None)
    if bad:
        return [
            Fault(
                "more nodes than workers",
                file=file,
                line=bad.line,
                value=f"N={bad.n_workers} on {bad.n_nodes} nodes",
            )
        ]
    return []


def _say_what_is_left_out(
    logs: Sequence[Log], used: Sequence[Sequence[Measurement]], collective: str, notes: Notes
) -> None:
    for log, rows in zip(logs, used, strict=True):
        others = [name for name in log.collectives if name != collective]
        if others:
            notes.say(f"{log.path.name}: {', '.join(others)} are left aside, {collective} is taken")
        n_timeless = sum(row.time_s <= 0 for row in log.of(collective))
        if n_timeless:
            notes.say(
                f"{log.path.name}: {n_timeless} row(s) with a time of 0 left out: the clock was too coarse"
            )
        n_outliers = len(log.of(collective)) - len(rows) - n_timeless
        if n_outliers:
            notes.say(f"{log.path.name}: {n_outliers} outlier(s) left out")
        if len({row.dtype for row in rows}) > 1:
            notes.say(f"{log.path.name}: several types of elements are taken together")


def models_of(logs: Sequence[Log], collective: str) -> tuple[str, ...]:
    """Return what a regime may be: fewer where every log forces one algorithm."""
    forced = {row.algorithm.lower() for log in logs for row in log.of(collective)}
    only = forced.pop() if len(forced) == 1 else ""
    return _FORCED.get(only, ("ring", "tree", "doubling"))


def sources_of(logs: Sequence[Log], samples: Samples) -> list[SourceFile]:
    """Return the files, with how many rows of each are used."""
    counts = np.bincount(samples.log, minlength=len(logs))
    return [
        SourceFile(log.path.name, log.sha256, int(count)) for log, count in zip(logs, counts, strict=True)
    ]


def machines_of(logs: Sequence[Log]) -> list[CalibrationVerdict]:
    """Say it where logs are of different devices, or of different tools that time different things."""
    devices = {log.devices: log.path.name for log in logs if log.devices}
    tools = {log.tool.removesuffix(" JSON"): log.path.name for log in logs}
    found = []
    if len(devices) > 1:
        named = "; ".join(f"{name}: {', '.join(each)}" for each, name in devices.items())
        found.append(
            CalibrationVerdict(
                TWO_MACHINES, f"the logs are of different devices ({named}): their fit is of neither"
            )
        )
    if len(tools) > 1 and "CSV" not in tools and "JSON" not in tools:
        named = "; ".join(f"{name}: {tool}" for tool, name in tools.items())
        found.append(
            CalibrationVerdict(TWO_MACHINES, f"the logs are of tools that time different things ({named})")
        )
    return found
