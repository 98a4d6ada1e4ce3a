"""Machines that were measured: `calibrate` fits logs of benchmarks, `predict` gives times that were not measured."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from ringnet.analysis.calibration import Calibration, Prediction, Profile, Setting
from ringnet.analysis.calibration import calibrate as fit_profile
from ringnet.analysis.calibration import predict as predict_times
from ringnet.api.given import counts_of
from ringnet.api.study import Study
from ringnet.errors import Fault, InputError
from ringnet.formats.logs import Log, read_log
from ringnet.formats.logs.log import Notes
from ringnet.formats.logs.samples import (
    algorithms_of,
    complete,
    libraries_of,
    machines_of,
    samples_of,
    sources_of,
)
from ringnet.formats.profiles import profile_text, read_profile
from ringnet.reporting.atomic import write_text
from ringnet.reporting.plots import draw_of_study
from ringnet.units import parse_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AnyPath: TypeAlias = str | os.PathLike[str]
#: One number for all logs, or one for each by the name of its file (``"run.txt#2"`` for its second table).
Counts: TypeAlias = int | Mapping[str, int]

#: Message sizes where nobody names any, in bytes: by factors of two.
SIZES = tuple(1 << power for power in range(10, 31))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CalibratedMachine(Study):
    """What logs tell of a machine: measured and fitted times as its table, verdicts and remarks as its notes.

    Parameters
    ----------
    profile : Profile
        What the links were found to be: for `ringnet.predict`, and on disk for ``network: {link: {file: ...}}``.
    """

    profile: Profile

    def save(self, file: AnyPath) -> Path:
        """Write the profile, as ``ringnet calibrate --out`` does.

        Raises
        ------
        ResultsError
            The file cannot be written.
        """
        write_text(Path(file), profile_text(self.profile))
        return Path(file)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PredictedTimes(Study):
    """Times that were not measured; its picture has those that were, too.

    Parameters
    ----------
    profile : Profile
        What they were predicted from.
    """

    profile: Profile

    def plot(self, name: str | None = None, ax: Axes | None = None) -> Figure:
        """Draw times and ranges over sizes, and what was measured; see `Study.plot`."""
        return draw_of_study({self.kind: with_measured(self.table, self.profile)}, self.name, name, ax)


def calibrate(
    logs: AnyPath | Sequence[AnyPath],
    collective: str = "all_reduce",
    *,
    workers: Counts | None = None,
    nodes: Counts | None = None,
    in_place: bool = False,
) -> CalibratedMachine:
    """Fit latency and bandwidth to logs of one machine, and say how far to trust them.

    Parameters
    ----------
    logs : path or sequence of path
        Of nccl-tests, rccl-tests, OSU, or CSV.
    collective : str
        Which one of the logs.
    workers, nodes : int or mapping of str to int, optional
        How many there were, where a log does not say: for all, or by the name of the file.
    in_place : bool
        Whether times in place are taken, where there are any.

    Returns
    -------
    CalibratedMachine

    Raises
    ------
    InputError
        With everything that is wrong with the logs: file and line.
    """
    files = [Path(logs)] if isinstance(logs, str | os.PathLike) else [*map(Path, logs)]
    if not files:
        raise InputError(Fault("no log is named", "logs", right='["run-8.txt", "run-16.txt"]'))
    given = [_by_log(one, place, files) for place, one in (("workers", workers), ("nodes", nodes))]
    found, faults = list[Log](), list[Fault]()
    for file in files:
        try:
            found.append(complete(read_log(file, in_place=in_place), *given))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    remarks = Notes()
    fitted = fit_logs(found, collective, remarks)
    told = [f"{log.path.name}: {remark}" for log in found for remark in log.remarks]
    verdicts = [f"{one.name}: {one.text}" for one in fitted.verdicts]
    return CalibratedMachine(
        name=", ".join(file.name for file in files),
        kind="calibrate",
        table=_text_as_objects(points_table(fitted)),
        notes=(*verdicts, *told, *map(str, remarks.remarks())),
        profile=fitted.profile,
    )


def _by_log(given: object, place: str, files: Sequence[Path]) -> dict[str, int]:
    """Return numbers by the names of logs, or of their tables; `InputError` for what is none, or of no log."""
    numbers: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {} if given is None else {"": given}
    known = {"", *(name for file in files for name in (file.name, str(file)))}
    right, faults = f"8, or {{{files[0].name!r}: 8}}", []
    for name, one in numbers.items():
        log, _, table = str(name).rpartition("#")
        if name not in known and not (log in known and table.isdecimal()):
            faults.append(Fault("there is no such log, or table", place, value=str(name), right=right))
        elif isinstance(one, bool) or not isinstance(one, int) or one < 1:
            faults.append(Fault("this is no number of them", place, value=str(one), right=right))
    if faults:
        raise InputError(*faults)
    return numbers


def fit_logs(logs: Sequence[Log], collective: str, remarks: Notes) -> Calibration:
    """Return what fits logs whose N is known; ``remarks`` gets what was left out and why."""
    samples = samples_of(logs, collective, remarks)
    return fit_profile(
        samples,
        collective,
        libraries=libraries_of(logs),
        algorithms=algorithms_of(logs, collective),
        sources=sources_of(logs, samples),
        more=machines_of(logs),
    )


def points_table(found: Calibration) -> pd.DataFrame:
    """Return measured and fitted times, a row per measurement."""
    samples = found.fit.samples
    settings = [Setting(int(n), int(m)) for n, m in zip(samples.n_workers, samples.n_nodes, strict=True)]
    return pd.DataFrame(
        {
            "log": [samples.names[log] for log in samples.log],
            "setting": [str(setting) for setting in settings],
            "n_workers": samples.n_workers,
            "n_nodes": samples.n_nodes,
            "message_bytes": samples.message_bytes.astype("int64"),
            "measured_s": samples.time_s,
            "fitted_s": samples.time_s * (1 + found.fit.errors_of_links()),
        }
    )


def predict(
    machine: CalibratedMachine | AnyPath,
    workers: int | Sequence[int],
    sizes: Sequence[str | int] = SIZES,
    *,
    nodes: int | None = None,
) -> PredictedTimes:
    """Predict times that were not measured, each with a range.

    Parameters
    ----------
    machine : CalibratedMachine or path
        What `calibrate` returned, or the file of its profile.
    workers : int or sequence of int
        Numbers of workers, from 2.
    sizes : sequence of str or int
        Of messages: ``"4 KiB"``, or bytes; 1 KiB to 1 GiB by factors of two if left out.
    nodes : int, optional
        On how many nodes; as full as in the logs if left out.

    Returns
    -------
    PredictedTimes
        A row per N and size: ``predicted_s``, and ``low_s`` to ``high_s``, in which nine of ten such times lie.

    Raises
    ------
    InputError
        A profile that cannot be read, or numbers that are none.
    """
    name, profile = _profile_of(machine)
    wanted = np.array([_size(size) for size in sizes], dtype=np.float64)
    settings = [setting_of(profile, n, nodes) for n in counts_of(workers, "workers", least=2) or ()]
    tables = [prediction_table(predict_times(profile, setting, wanted), profile) for setting in settings]
    table = pd.concat(tables, ignore_index=True)
    return PredictedTimes(
        name=name,
        kind="predict",
        table=_text_as_objects(table),
        notes=tuple(profile.cautions(settings)),
        profile=profile,
    )


def _text_as_objects(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose text is of the type that text has in every other one."""
    names = table.select_dtypes(exclude=["number", "bool"]).columns
    return table.astype(dict.fromkeys(names, object))


def _profile_of(machine: object) -> tuple[str, Profile]:
    if isinstance(machine, CalibratedMachine):
        return machine.name, machine.profile
    if isinstance(machine, str | os.PathLike):
        return Path(machine).name, read_profile(Path(machine))
    right = "what ringnet.calibrate returned, or the file of a profile"
    raise InputError(Fault("this is no machine", "machine", value=type(machine).__name__, right=right))


def _size(given: str | int) -> int:
    size = parse_quantity(given, "bytes", is_count=True)
    if size < 1:
        raise InputError(Fault("a message has 1 byte(s) at least", "sizes", value=str(given), right="1 KiB"))
    return int(size)


def setting_of(profile: Profile, n: int, nodes: int | None, place: str = "nodes") -> Setting:
    """Return where workers sit; `InputError` at ``place`` for numbers of nodes that cannot be."""
    if nodes and nodes > n:
        raise InputError(Fault("more nodes than workers", place, value=str(nodes), right=f"at most {n}"))
    if nodes and n % nodes and all(curve.setting != (n, nodes) for curve in profile.curves):
        message = f"{n} workers are not as many on each of {nodes} nodes"
        fewer, more = (next(one for one in way if n % one == 0) for way in (range(nodes, 0, -1), range(nodes, n + 1)))
        raise InputError(Fault(message, place, value=str(nodes), right=f"{fewer} or {more}"))
    if nodes and not profile.knows_nodes:
        message = "the profile does not know nodes: no log said on how many it ran"
        raise InputError(Fault(message, place, value=str(nodes)))
    return Setting(n, nodes) if nodes else profile.setting_for(n)


def prediction_table(found: Prediction, measured: Profile) -> pd.DataFrame:
    """Return predicted times with their ranges, a row per size."""
    return pd.DataFrame(
        {
            "n_workers": found.setting.n_workers,
            "n_nodes": found.setting.n_nodes,
            "message_bytes": found.message_bytes.astype("int64"),
            "predicted_s": found.time_s,
            "low_s": found.low_s,
            "high_s": found.high_s,
            "is_beyond": found.is_beyond,
            "distance": list(found.distance),
            "way": [measured.family.named(way) for way in found.way.tolist()],
        }
    )


def with_measured(predicted: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """Return predictions and, as rows of ``measured_s``, all that was measured: what a picture shows."""
    measured = pd.DataFrame(
        [
            (curve.setting.n_workers, size, time_s)
            for curve in profile.curves
            for size, time_s in zip(curve.message_bytes, curve.time_s, strict=True)
        ],
        columns=["n_workers", "message_bytes", "measured_s"],
    )
    return pd.concat([predicted, measured], ignore_index=True)
