"""Every error that ringnet raises on purpose, and the exit code that each stands for.

::

    RingnetError                    1   something that ringnet itself got wrong
    ├── InputError                  2   a mistake in what the user gave: all faults at once
    │   ├── UnitError               2   a quantity that cannot be read (also a ValueError)
    │   ├── ScheduleError           2   a schedule that does not do what its collective says
    │   ├── NetworkError            2   a network that cannot carry what is asked of it
    │   └── ResultsError            2   an output folder that cannot be read or written
    ├── DeadlockError               3   a run that cannot finish: who waits for whom
    │   └── AbortedError            3   a collective that gave up after a wait that was too long
    ├── WorkerError                 3   a worker process that is gone or silent: which, and how it ended
    ├── VerificationError           4   a sum that is wrong: which worker, chunk, element
    └── StudyError                  5   some points of a sweep failed, the others are kept

Every class takes positional arguments, hands exactly those to ``Exception`` and builds its text in ``__str__``: SimPy
raises an error of a process again as ``type(error)(*error.args)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import ClassVar


class RingnetError(Exception):
    """Base of every error that ringnet raises on purpose."""

    exit_code: ClassVar[int] = 1


#: What the field calls by another name, which no likeness of letters finds, or finds wrong: ``float`` is C's.
_ALSO_CALLED = {
    "float64": "double fp64 f64",
    "float32": "float fp32 f32 single",
    "float16": "half fp16 f16",
    "bfloat16": "bf16",
    "int32": "int",
    "int64": "long",
    "int8": "char",
    "uint8": "byte",
    "mean": "avg average",
    "prod": "mul multiply",
    "sum": "add plus",
    "double-binary-tree": "tree dbt",
    "halving-doubling": "rabenseifner rhd recursive-halving recursive-halving-doubling",
    "recursive-doubling": "butterfly",
    "sharp": "collnet",
    "fully-connected": "full-mesh all-to-all",
    "leaf-spine": "clos",
    "switch": "star crossbar",
    "volta": "v100",
    "ampere": "a100",
    "hopper": "h100 h200",
    "blackwell": "b200 gb200",
    "dgx-a100": "a100 dgx",
    "dgx-h100": "h100",
    "hgx-h200": "h200",
    "hgx-b200": "b200",
    "bandwidth": "bw",
    "latency": "lat delay",
    "run": "sweep simulate sim time bench benchmark",
    "check": "validate lint dry-run dryrun",
    "whatif": "what-if",
    "calibrate": "fit",
    "--out": "--output --outdir --output-dir -o",
    "--jobs": "--threads --parallel --cores -j",
    "--algorithms": "--algos --algo",
    "--ranks": "--gpus --nranks",
}


def some(names: Iterable[object], most: int = 3) -> str:
    """Name the first few, for one line.

    >>> some([1, 2, 3]), some("abcde", 2)
    ('1, 2, 3', 'a, b, ...')
    """
    first = [str(name) for name in islice(names, most + 1)]
    return ", ".join([*first[:most], *(["..."] if len(first) > most else [])])


def some_and_more(names: Sequence[object], most: int = 3) -> str:
    """Name the first few, and say how many others there are.

    >>> some_and_more([1, 2, 3]), some_and_more("abcde", 2)
    ('1, 2, 3', 'a, b and 3 more')
    """
    return and_more(", ".join(map(str, names[:most])), len(names) - most)


def and_more(named: str, n_others: int) -> str:
    """Say how many there are beside what is named.

    >>> and_more("0->leaf0", 23), and_more("0->1", 0)
    ('0->leaf0 and 23 more', '0->1')
    """
    return f"{named} and {n_others} more" if n_others > 0 else named


def closest(name: str, known: Iterable[str], *, alike: float = 0.6) -> str:
    """Return which of the known names is meant by one that is not known; empty if none is.

    That is what others call so, or what is spelt most like it, whatever the capitals: ``alike`` is the least share
    of the letters that must match, 0 to 1.

    >>> closest("DGX-H100", ["dgx-a100", "dgx-h100"]), closest("fp16", ["bfloat16", "float16"]), closest("water", "a")
    ('dgx-h100', 'float16', '')
    """
    by_lower = {one.lower(): one for one in known}
    meant = [one for one in by_lower if name.lower().replace("_", "-") in _ALSO_CALLED.get(one, "").split()]
    if meant:
        return by_lower[meant[0]]
    return "".join(by_lower[one] for one in get_close_matches(name.lower(), by_lower, n=1, cutoff=alike))


@dataclass(frozen=True)
class Fault:
    """One mistake in the user's input, with all that helps to mend it.

    Parameters
    ----------
    message : str
        What is wrong, as a sentence without a full stop.
    path : str
        Where in the document: ``network.links.3->4.bandwidth``; empty for the document as a whole.
    file : str
        The file, or ``--set`` for a value given on the command line.
    line : int or None
        Line in ``file``, from 1.
    value : str
        What was given, as the user wrote it.
    right : str
        The right form, by example: ``50 GB/s``.
    nearest : str
        The nearest known name, where a name is unknown.

    Examples
    --------
    >>> print(Fault("a bandwidth needs a unit", "network.bandwidth", "ring.yaml", 7, "50", "50 GB/s"))
    ring.yaml:7: network.bandwidth: a bandwidth needs a unit; got 50; right would be: 50 GB/s
    """

    message: str
    path: str = ""
    file: str = ""
    line: int | None = None
    value: str = ""
    right: str = ""
    nearest: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        head = ": ".join(part for part in (place, self.path, self.message) if part)
        tail = [
            f"got {self.value}" if self.value else "",
            f"right would be: {self.right}" if self.right else "",
            f"did you mean {self.nearest}?" if self.nearest else "",
        ]
        return "; ".join([head, *filter(None, tail)])


def unknown(message: str, name: str, known: Iterable[str], path: str = "") -> Fault:
    """Return the fault of a name that is none of the known ones: it tells them all, and which is meant if one is.

    >>> print(unknown("there is no such GPU", "a100", ["volta", "ampere"], "--gpu"))
    --gpu: there is no such GPU; got a100; right would be: volta, ampere; did you mean ampere?
    """
    names = [*known]
    return Fault(message, path, value=name, right=", ".join(names), nearest=closest(name, names))


class InputError(RingnetError):
    """One or more mistakes in what the user gave; ``faults`` holds every one of them.

    Takes any number of `Fault` or plain strings.
    """

    exit_code = 2

    def __init__(self, *faults: Fault | str) -> None:
        super().__init__(*faults)
        self.faults = tuple(Fault(fault) if isinstance(fault, str) else fault for fault in faults)

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults))


class UnitError(InputError, ValueError):
    """A quantity that cannot be read: no unit, the wrong one, or a number out of range."""


class ScheduleError(InputError):
    """A schedule that does not do what its collective says."""


class NetworkError(InputError):
    """A network that cannot carry what is asked of it."""


class ResultsError(InputError):
    """A folder of results that cannot be read or written."""


@dataclass(frozen=True)
class Wait:
    """One worker that never went on: who waits, for whom (itself, if it never started), for what, since when.

    One that ``died`` waits for nothing. ``cause`` says in words what is known to be wrong on the way,
    ``since`` what a person is told of ``since_s``: units are above this room. Numbers from
    ``n_workers`` on are ``switches`` that reduce; None where there are none.
    """

    worker: int
    waits_for: int
    what: str
    since_s: float
    n_workers: int | None = None
    switches: tuple[str, ...] = ()
    died: bool = False
    cause: str = ""
    since: str = field(default="", compare=False)

    def __str__(self) -> str:
        since = self.since or f"{self.since_s:.9g} s"
        if self.died:
            return f"{self._name(self.worker)} died, at {since}"
        whom = "" if self.waits_for == self.worker else f"{self._name(self.waits_for)}: "
        said = f"{self._name(self.worker)} waits for {whom}{self.what}, since {since}"
        return f"{said}; {self.cause}" if self.cause else said

    def _name(self, member: int) -> str:
        if self.n_workers is None or member < self.n_workers:
            return f"worker {member}"
        return f"switch {self.switches[member - self.n_workers]}"


class DeadlockError(RingnetError):
    """A run that cannot finish. Takes one `Wait` for each worker that is stuck."""

    exit_code = 3
    shown: ClassVar[int] = 12

    def __init__(self, *waits: Wait) -> None:
        super().__init__(*waits)
        self.waits = waits
        #: Of runs that are repeated, which it was.
        self.run: int | None = None

    def __str__(self) -> str:
        lines = [self._head() if self.run is None else f"of all runs, in run {self.run}: {self._head()}"]
        lines += [f"  {wait}" for wait in self.waits[: self.shown]]
        if len(self.waits) > self.shown:
            lines.append(f"  and {len(self.waits) - self.shown} more")
        return "\n".join(lines)

    def _head(self) -> str:
        waiting = sum(not wait.died for wait in self.waits)
        died = len(self.waits) - waiting
        said = f"{waiting} worker(s) wait for ever" if waiting else ""
        return f"the run cannot finish: {', '.join(filter(None, [f'{died} died' if died else '', said]))}"


class AbortedError(DeadlockError):
    """A collective that gave up: when, in seconds and as a person is told, and one `Wait` for each that was not done.

    The first of them is the one that had waited too long.
    """

    def __init__(self, aborted_s: float, told: str, *waits: Wait) -> None:
        super().__init__(*waits)
        self.args = (aborted_s, told, *waits)
        self.aborted_s, self.told = aborted_s, told

    def _head(self) -> str:
        return f"the collective was aborted {self.told}"


class WorkerError(RingnetError):
    """One or more worker processes of a measurement that are gone or silent; a sentence for each names it."""

    exit_code = 3

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class VerificationError(RingnetError):
    """A result that is wrong; the text says which worker, chunk, element, got and expected."""

    exit_code = 4


class StudyError(RingnetError):
    """Some points of a sweep failed; the others are kept."""

    exit_code = 5
