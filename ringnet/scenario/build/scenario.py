"""A scenario as the rest of the house sees it: checked, frozen, in plain SI; one run or a sweep of many."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import Signature
from math import prod
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from pydantic import PrivateAttr

from ringnet.documents.document import Document, Mark, Path, in_flow, key_path, path_text
from ringnet.documents.plain_data import read_data
from ringnet.documents.text import clip, one_line
from ringnet.errors import Fault, InputError
from ringnet.scenario.build.include import included
from ringnet.scenario.build.interpret import Change, Interpreted, MadeFrom, interpret
from ringnet.scenario.build.resolve import Resolved, in_order, origins_of, resolve
from ringnet.scenario.build.sweep import Axis, SweptValue, first_values, grid, with_values
from ringnet.scenario.checks import check
from ringnet.scenario.files.completing import FACTS, known, sample_files
from ringnet.scenario.files.folder import ScenarioFolder, digest
from ringnet.scenario.files.links import PROFILES, link_files, unwritten
from ringnet.scenario.files.machines import given_by_machine
from ringnet.scenario.files.network_file import NETWORK_FILE, ORDER_FILE
from ringnet.scenario.keys.algorithm import AlgorithmKeys
from ringnet.scenario.keys.format import leaf_of
from ringnet.scenario.keys.kinds import Quantity
from ringnet.scenario.keys.model import MADE_DATA, Keys, SweepKeys
from ringnet.scenario.keys.network import OrderFile
from ringnet.scenario.keys.training import MODEL
from ringnet.scenario.schedule import content_of, file_names, files_read
from ringnet.units import format_rate, format_size

_READ_NOT_MADE = Fault("a Scenario is read, not made", right="ringnet.scenario(workers=8, message=..., network={...})")


class SweepPoint(NamedTuple):
    """One run of a sweep: its scenario, and each swept key with its value as it was written."""

    scenario: Scenario
    swept: dict[str, str]


class Scenario(Keys):
    """A checked scenario: the keys in plain SI, and what can be asked of them as a whole.

    `ringnet.scenario`, `ringnet.load`, `ringnet.loads` and `Scenario.from_dict` return one. Of a sweep, the keys are
    those of its first point.
    """

    _origin: MadeFrom = PrivateAttr()

    def __new__(cls, *given: object, **keys: object) -> Scenario:
        """Refuse to make one of what nobody has checked."""
        if given or keys:
            raise InputError(_READ_NOT_MADE)
        return super().__new__(cls)

    # Without both, `Scenario?` shows for every key how it is checked.
    __signature__ = Signature()

    def __init__(self) -> None:
        raise InputError(_READ_NOT_MADE)

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        folder: str | os.PathLike[str] = ".",
        allow_outside: bool = False,
        allow_python: bool = False,
    ) -> Scenario:
        """Return the scenario that a mapping is, with the same checks as a file.

        Parameters
        ----------
        data : mapping
            What YAML would hold: mappings, lists, texts, numbers.
        folder : path
            Where names of files start.
        allow_outside, allow_python : bool
            As for `ringnet.load`.

        Raises
        ------
        InputError
            With every mistake at once, each with its path in place of file and line.

        Examples
        --------
        >>> link = {"bandwidth": "50 GB/s", "latency": "5 us"}
        >>> Scenario.from_dict({"scenario_version": 1, "workers": 4, "message": "1 MiB", "network": link})
        <Scenario scenario: ring all-reduce, 4 workers, 1 MiB, ring network>
        """
        return cls.of_data(data, ScenarioFolder(FilePath(folder).absolute(), allow_outside, allow_python))

    @classmethod
    def of_data(cls, data: Mapping[str, Any], home: ScenarioFolder) -> Scenario:
        """Return the scenario that a mapping is; its files are in ``home``."""
        document, faults = read_data(data)
        document, unfound = included(document, home, "")
        return cls.made(interpret(document, (), "scenario", home, [*faults, *unfound]))

    def replace(self, key: str | Mapping[str, Any], value: Any = None) -> Scenario:
        """Return the same scenario with other values, checked anew.

        Parameters
        ----------
        key : str or mapping of str to object
            The path of a key, ``network.links.3->4.bandwidth``; or several, each with its value.
        value : object
            What YAML would hold; None takes the key out. A key that was swept no longer is.

        Raises
        ------
        InputError
            With every mistake at once.

        Examples
        --------
        >>> slow = scenario.replace("network.latency", "50 us")  # doctest: +SKIP
        >>> large = scenario.replace({"message": "1 GiB", "workers": 64})  # doctest: +SKIP
        """
        return self.changed([*key.items()] if isinstance(key, Mapping) else [(key, value)])

    def changed(self, changes: Sequence[Change]) -> Scenario:
        """Return the same scenario with some changes, checked anew; see `ringnet.scenario.build.interpret.override`."""
        if not changes:
            return self
        return Scenario.made(interpret(self._origin.whole, changes, self.name, self.home))

    @classmethod
    def made(cls, found: Interpreted) -> Scenario:
        """Return the scenario that was read."""
        scenario = cls.of(known(found.first, found.origin.home).data, found.origin)
        return scenario.with_origin(found.origin, found.sweep)

    def __repr__(self) -> str:
        what = f"{self.algorithm_name} {self.collective}, {self.workers} workers, {format_size(self.message_bytes)}"
        network = f"{self.network.topology} network" if self.network.file is None else str(self.network.file)
        points = f", {self.n_points} points over {', '.join(self.swept)}" if self.swept else ""
        return f"<Scenario {one_line(self.name)}: {what}, {network}{points}>"

    __str__ = __repr__

    @classmethod
    def of(cls, data: dict[str, Any], origin: MadeFrom) -> Scenario:
        """Return a scenario of ``data``, which is known to be right."""
        # Validated as `Keys`, as it was before: a schema of its own would have to be built for the same keys.
        keys = Keys.model_validate(data)
        scenario = cls.model_construct(keys.model_fields_set, **dict(keys))
        scenario._origin = origin
        return scenario

    def with_origin(self, origin: MadeFrom, sweep: SweepKeys | None) -> Scenario:
        """Return the same keys as the first point of a sweep, or with other notes."""
        scenario = self.model_copy(update={"sweep": sweep})
        scenario._origin = origin
        return scenario

    @property
    def base(self) -> Document:
        """The keys as written, overrides applied, orphans left out, without the sweep."""
        return self._origin.base

    @property
    def notes(self) -> tuple[str, ...]:
        """Keys that an override or a sweep orphaned, one sentence each."""
        return self._origin.notes

    def with_notes(self, sentences: Sequence[str]) -> Scenario:
        """Return the same scenario with more to be said about it."""
        origin = replace(self._origin, notes=(*self.notes, *sentences))
        return self.with_origin(origin, self.sweep)

    @contextmanager
    def placing_faults(self) -> Iterator[None]:
        """Tell the mistakes that show once a run is built or runs at the lines where their keys are written."""
        try:
            yield
        except InputError as error:
            raise type(error)(*map(self._placed, error.faults)) from error

    def _placed(self, fault: Fault) -> Fault:
        if fault.file or not fault.path:
            return fault
        mark = self.base.mark(key_path(fault.path, self.base.data))
        return replace(fault, file=mark.file, line=mark.line)

    @property
    def n_points(self) -> int:
        """Runs that the scenario stands for; 1 without a sweep."""
        return prod(len(axis.rows) for axis in self._origin.axes)

    @property
    def swept(self) -> tuple[str, ...]:
        """Paths of the swept keys, in order."""
        return tuple(_dotted(value) for value in first_values(self._origin.axes))

    @property
    def home(self) -> ScenarioFolder:
        """Where its files are."""
        return self._origin.home

    def points(self) -> list[SweepPoint]:
        """Return the runs of a sweep in grid order, the first key slowest; `InputError` with all faults."""
        return list(self.iter_points())

    def iter_points(self) -> Iterator[SweepPoint]:
        """Yield the runs of a sweep one by one; `InputError` with all faults after the last."""
        if not self._origin.axes:
            yield SweepPoint(self, {})
            return
        faults: list[Fault] = []
        for number, (document, values) in enumerate(grid(self.base, self._origin.axes)):
            try:
                found = self._origin.points[number] if self._origin.points else resolve(document, self.home)
                yield SweepPoint(_of_one_run(found, self.home), {_dotted(value): value.text for value in values})
            except InputError as error:
                faults += error.faults
        if faults:
            raise InputError(*in_order(faults))

    def document(self) -> dict[str, Any]:
        """Return the scenario as plain data, every default written out; loading it gives the same runs.

        Quantities are written in one way whatever the file had (``1 KiB`` for ``1024 B``), and keys that no
        run reads are left out, so equal documents mean equal runs.
        """
        origin = self._origin
        first = known(with_values(origin.base, first_values(origin.axes)), origin.home)
        keys = Keys.model_validate(first.data)
        unread = [finding for finding in check(keys) if finding.unread]
        gone = {finding.path for finding in unread if "sweep" not in origins_of(finding, first)}
        gone |= {finding.path for finding in unread if not origin.base.has(finding.path)}
        if origin.axes:  # other points may have other files
            gone |= {(key,) for key in FACTS if not origin.base.has((key,))} if keys.files else set()
            gone |= {value.path for value in first_values(origin.axes)}
        if {"machine", "hosts"} & {str(value.path[0]) for value in first_values(origin.axes)}:
            gone |= given_by_machine(origin.base, first)
        gone |= unwritten(origin.base, first, {value.path for value in first_values(origin.axes)})
        plain = Document(keys.model_dump(mode="json", exclude_none=True)).drop(gone).data
        return plain | ({"sweep": _sweep_document(origin.axes)} if origin.axes else {})

    def explained(self) -> list[tuple[str, str, str]]:
        """Return each key that somebody gave: its path, its value, and where that was written or what it follows from.

        Of a sweep, those of its first point. All other keys have their defaults.
        """
        origin = self._origin
        first = known(with_values(origin.base, first_values(origin.axes)), origin.home)
        return [
            (path_text(path), clip(_as_written(mark, path, first.get(path))), _told_from(mark, path))
            for path, mark in first.marks.items()
            if path and first.has(path) and _is_value(first.get(path)) and not _is_value(first.get(path[:-1]))
        ]

    def inputs(self) -> dict[str, str]:
        """Return the SHA-256 of each file that data, network or schedule come from, by its name in the scenario.

        Files that a user's function reads are among them, and a schedule that was handed over in place of a file.
        """
        order, data = self.network.order, [self.data] if isinstance(self.data, str) else self.data
        found = [
            self.network.file,
            order.file if isinstance(order, OrderFile) else None,
            *link_files(self.network),
        ]
        names = {*data, *(str(file) for file in found if file is not None)}
        for given in (one for axis in self._origin.axes for one in _swept_files(axis)):
            names |= {given} if isinstance(given, str) else {*map(str, given)}
        names |= {*sample_files(self.base.data)}
        for value in (value for axis in self._origin.axes for row in axis.rows for value in row):
            names |= {*sample_files(Document({}).put(value.path, value.given, {}).data)}
        schedules = self._schedule_files()
        named = {name: self.home.find(name) for name in {*names, *schedules} - {*MADE_DATA}}
        also = {name: self.home.folder / name for name in self._files_of_functions(schedules)}
        schedule = self.home.schedule
        handed_over = {} if schedule is None else {self.algorithm_name: content_of(schedule)}
        return {name: digest(file) for name, file in sorted((also | named).items())} | handed_over

    def _files_of_functions(self, schedules: set[str]) -> set[str]:
        """Return what the functions read that algorithms come from: at every point, and of what is compared."""
        if not any(name.endswith(".py") for name in schedules):
            return set()
        compared = self.compare.algorithms if self.compare else ()
        others = [] if isinstance(compared, str) else compared
        runs: list[Keys] = [point.scenario for point in self.iter_points()]
        runs += [self.model_copy(update={"algorithm": one}) for one in others if file_names(one)]
        return set[str]().union(*(files_read(run, self.home) for run in runs))

    def _schedule_files(self) -> set[str]:
        """Return the files that algorithms and models come from: of the scenario, of its sweep, of what it compares."""
        swept = [value for axis in self._origin.axes for row in axis.rows for value in row]
        found = {name for value in swept for name in _schedule_file(value)}
        compared = self.compare.algorithms if self.compare else ()
        for algorithm in (self.algorithm, *(() if isinstance(compared, str) else compared)):
            found.update(file_names(algorithm))
        model = self.training.model if self.training else None
        trained = [model.python] if model and model.python else []
        trained += [name for value in swept if (name := _swept_model(value))]
        trained += [self.step.python] if self.step and self.step.python else []
        tables = {self.step.layers} if self.step and self.step.layers else set()
        return found | tables | {name.rpartition(":")[0] for name in trained}

    def key(self) -> str:
        """Return a hash of the document and of the content of its files: equal keys mean equal results."""
        whole = json.dumps([self.document(), self.inputs()], sort_keys=True)
        return hashlib.sha256(whole.encode()).hexdigest()


def single(document: Document, home: ScenarioFolder) -> Scenario:
    """Return the scenario of one run; `InputError` for everything that is wrong."""
    return _of_one_run(resolve(document, home), home)


def _of_one_run(found: Resolved, home: ScenarioFolder) -> Scenario:
    left, notes = found
    return Scenario.of(known(left, home).data, MadeFrom(left, left, (), home, notes))


def _is_value(given: Any) -> bool:
    """Whether something is a scalar, or a list of such."""
    if isinstance(given, list):
        return not any(isinstance(one, dict | list) for one in given)
    return not isinstance(given, dict)


def _as_written(mark: Mark, path: Path, value: Any) -> str:
    """Return a value as it was written; one that follows from another key in flow, and a rate to four digits."""
    if mark.text and (not mark.path or mark.path == path_text(path) or mark.origin == "sweep"):
        return mark.text
    leaf = leaf_of(path)
    if isinstance(leaf, Quantity) and leaf.kind == "bytes_per_second" and isinstance(value, str):
        return format_rate(leaf.read(value))
    return in_flow(value)


def _told_from(mark: Mark, path: Path) -> str:
    """Say where a value was written; of one that follows from another key, which."""
    where = f"{mark.file}:{mark.line}" if mark.line else mark.file
    if mark.origin == "sweep":
        where = f"the sweep, {where}"
    if mark.path and mark.path != path_text(path) and mark.origin != "sweep":
        by = mark.path.removeprefix(path_text(path)).strip(" ()")  # of a machine's own key: which machine
        where = f"{by}, {where}"
    return where


def _dotted(value: SweptValue) -> str:
    return ".".join(map(str, value.path))


def _swept_files(axis: Axis) -> Iterator[Any]:
    """Yield what a sweep gives where files of data, networks, orders or links are named."""
    wholes = {*PROFILES, ORDER_FILE[:-1]}
    places = {("data",), NETWORK_FILE, *((*path, "file") for path in wholes)}
    for value in (value for row in axis.rows for value in row):
        if value.path in places:
            yield value.given
        elif value.path in wholes and isinstance(value.given, dict):
            yield value.given.get("file", [])


def _schedule_file(value: SweptValue) -> list[str]:
    """Return the file of a swept algorithm: of a mapping, or of one of its keys."""
    given = value.given if value.path == ("algorithm",) else {value.path[-1]: value.given}
    if value.path[0] != "algorithm" or not isinstance(given, dict):
        return []
    return file_names(AlgorithmKeys.model_construct(**{"file": None, "python": None, **given}))


def _swept_model(value: SweptValue) -> str | None:
    """Return the user's function that a sweep trains, if it is one."""
    inside = {("training",): ("model", "python"), MODEL: ("python",), (*MODEL, "python"): ()}
    if value.path not in inside:
        return None
    given = value.given
    for key in inside[value.path]:
        given = given.get(key) if isinstance(given, dict) else None
    return given if isinstance(given, str) else None


def _sweep_document(axes: tuple[Axis, ...]) -> dict[str, Any]:
    sections: dict[str, dict[str, Any]] = {}
    for axis in axes:
        section = sections.setdefault("over" if len(axis.rows[0]) == 1 else "zip", {})
        for column in zip(*axis.rows, strict=True):
            section[_dotted(column[0])] = [_plain(value) for value in column]
    return sections


def _plain(value: SweptValue) -> Any:
    leaf = leaf_of(value.path)
    return value.given if leaf is None or isinstance(value.given, dict | list) else leaf.write(leaf.read(value.given))
