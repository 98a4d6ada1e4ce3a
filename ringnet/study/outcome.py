"""One point of a sweep: the task that computes it, what it came to, and how that is kept on disk.

An outcome is small enough to keep and to send between machines: a row, no arrays.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ringnet.analysis.frames import Table, of_rows, rows_of
from ringnet.analysis.spread import run_table
from ringnet.errors import ResultsError, RingnetError, VerificationError
from ringnet.reporting.atomic import write_text
from ringnet.scenario import Scenario

if TYPE_CHECKING:
    from ringnet.analysis.result import RunResult
    from ringnet.scenario import Scenario

#: What computes one point: `ringnet.scenario.simulate.simulate`, unless another is handed in. What is no run, but a
#: part of a comparison, returns its outcome itself.
Simulate = Callable[["Scenario"], "RunResult | Outcome"]


@dataclass(frozen=True)
class Outcome:
    """One point of a sweep, when it is finished.

    Parameters
    ----------
    summary : dict
        The point's row of ``summary.csv``: plain Python values, None for an empty cell. Of a part of a comparison what
        came of it, as JSON can hold it.
    notes : tuple of str
        What is to be said of its network and its sum.
    error : str
        Why the point has no result, or what is wrong with its sum; empty when all is well.
    exit_code : int
        0, or what the error of this point stands for (`ringnet.errors`).
    computed : bool
        Whether this call computed it; False when an earlier one had kept it.
    not_kept : str
        Why it could not be kept for the next call; empty otherwise.
    swept : dict of str to str
        The swept keys, with the values of this point as they were written.
    job_rows : tuple of dict
        The point's rows of ``jobs.csv``; none where there is one job.
    times_s : tuple of float
        The times of all runs of the point, where it is repeated.
    """

    summary: dict[str, Any]
    notes: tuple[str, ...] = ()
    error: str = ""
    exit_code: int = 0
    computed: bool = True
    not_kept: str = ""
    swept: Mapping[str, str] = field(default_factory=dict)
    job_rows: tuple[dict[str, Any], ...] = ()
    times_s: tuple[float, ...] = ()

    def columns(self, table: str) -> Table | None:
        """Return one row per job, or per run, with the swept keys, where there are several; there are no others."""
        if table == "runs" and self.times_s:
            runs = run_table(np.array(self.times_s), self.summary)
            return {**runs, **{path: np.full(len(self.times_s), text) for path, text in self.swept.items()}}
        if table != "jobs" or not self.job_rows:
            return None
        return of_rows([{**self.swept, **row} for row in self.job_rows])

    @property
    def ok(self) -> bool:
        """Whether the point has a result and its sum is right."""
        return self.exit_code == 0

    @property
    def label(self) -> str:
        """Which point of the sweep this is."""
        return ", ".join(f"{path}={text}" for path, text in self.swept.items())


def compute(scenario: Scenario, simulate: Simulate) -> Outcome:
    """Run one point; whatever goes wrong in it becomes its outcome, so that it cannot take others with it.

    Examples
    --------
    >>> def broken(scenario):
    ...     raise MemoryError
    >>> compute(None, broken).error
    'out of memory'
    """
    try:
        found = simulate(scenario)
        return found if isinstance(found, Outcome) else _found(found)
    except RingnetError as error:
        return failed(str(error), error.exit_code)
    except MemoryError as error:
        return failed(f"out of memory: {error}".removesuffix(": "), 1)
    except Exception as error:
        # Any other mistake is ringnet's own, and still no reason to lose the other points.
        return failed(f"a bug in ringnet: {type(error).__name__}: {error}", 1)


def failed(error: str, exit_code: int) -> Outcome:
    r"""Return the outcome of a point without a result; the error in one line, as a cell of a table.

    >>> failed("the run cannot finish\n  worker 1 waits", 3).error
    'the run cannot finish; worker 1 waits'
    """
    line = "; ".join(part.strip() for part in error.splitlines() if part.strip())
    return Outcome({"error": line}, error=line, exit_code=exit_code)


def _found(result: RunResult) -> Outcome:
    row = plain_row(result.summary)
    jobs = tuple(map(plain_row, rows_of(result.columns("jobs"))))
    runs = result.columns("runs")
    times_s = () if runs is None else tuple(runs["makespan_s"].tolist())
    found = Outcome(row, (*result.about, *result.verdict.notes), job_rows=jobs, times_s=times_s)
    if row["sum_ok"] is not False:
        return found
    error = wrong_sum(result)
    return replace(found, summary={**row, "error": error}, error=error, exit_code=VerificationError.exit_code)


def wrong_sum(result: RunResult) -> str:
    """Say what is wrong with a sum: worker, chunk, element, got and expected."""
    return f"the sum is wrong: {result.verdict.mismatch}"


def plain_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row as JSON brings it back, so that it is the same whether it was kept or not."""
    return {str(column): value.item() if isinstance(value, np.generic) else value for column, value in row.items()}


# Finished points on disk.
#
# They are one small file each, so that a sweep that was killed goes on where it stopped. An entry is named by a hash of
# everything that its row depends on: the point's whole scenario with the content of the files it reads, and the code
# that computes it. A checksum inside tells one that was damaged later.

#: Raised by one whenever entries of the same code would be read otherwise.
ENTRY_VERSION = 5


#: Rooms that show what was computed, and compute nothing of it.
_SHOWING = {"cli", "measure", "reporting"}


@cache
def code_digest() -> str:
    """Return a hash of all code and tables that what comes of a scenario depends on, and of NumPy's version.

    What one ringnet has computed is no answer of another: between two releases many have the same number.
    """
    package = Path(__file__).parents[1]
    sources = [file.relative_to(package) for ending in ("py", "yaml", "json") for file in package.rglob(f"*.{ending}")]
    digest = sha256(np.__version__.encode())
    for source in sorted(sources):
        if source.parts[0] not in _SHOWING:
            digest.update(f"{source.as_posix()}\0".encode() + (package / source).read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Store:
    """A folder of finished points.

    Parameters
    ----------
    folder : Path or None
        None keeps nothing.
    fresh : bool
        Whether what was kept before is passed over.
    say : callable
        Called with each sentence that a person should read.
    """

    folder: Path | None
    fresh: bool
    say: Callable[[str], None]

    def path(self, key: str) -> Path | None:
        """Return the file of a point."""
        name = _digest(f"{ENTRY_VERSION} {code_digest()} {key}")
        return None if self.folder is None else self.folder / name[:2] / f"{name}.json"

    def find(self, key: str) -> Outcome | None:
        """Return what was kept of a point; None if nothing was, or it is damaged, which is said."""
        path = self.path(key)
        if path is None or self.fresh:
            return None
        try:
            return read_entry(path)
        except DamagedError as error:
            self.say(f"a kept point is damaged and is computed again: {path}: {error}")
            return None


class DamagedError(Exception):
    """An entry that cannot be what was written; never leaves this package."""


def write_entry(path: Path, outcome: Outcome) -> None:
    """Keep ``outcome`` at ``path``, whole or not at all; raises ResultsError where that cannot be done."""
    body = json.dumps(
        {
            "summary": outcome.summary,
            "notes": outcome.notes,
            "jobs": outcome.job_rows,
            "times": outcome.times_s,
        }
    )
    # The checksum tells one that a power cut has emptied.
    write_text(path, json.dumps({"sha256": _digest(body), "body": body}), settles=False)


def read_entry(path: Path) -> Outcome | None:
    """Return what was kept at ``path``, or None if nothing was.

    Raises
    ------
    DamagedError
        When something is there, but not what `write_entry` left.
    """
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        body: str = entry["body"]
        if entry["sha256"] != _digest(body):
            raise DamagedError("its checksum is wrong")
        kept: dict[str, Any] = json.loads(body)
        row, notes, jobs, times = kept["summary"], kept["notes"], kept["jobs"], kept["times"]
        if not (isinstance(row, dict) and isinstance(notes, list) and all(isinstance(job, dict) for job in jobs)):
            raise DamagedError("it is of another shape")
        times_s = tuple(map(float, times))
        return Outcome(row, tuple(map(str, notes)), computed=False, job_rows=tuple(jobs), times_s=times_s)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{type(error).__name__}: {error}") from error


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


# Points to be computed.


#: The key of a task, and what came of it.
Done: TypeAlias = "tuple[str, Outcome]"


@dataclass(frozen=True)
class Task:
    """A scenario without a sweep to be computed by ``simulate``, and kept at ``path`` (None: not kept)."""

    key: str
    scenario: Scenario
    simulate: Simulate
    path: Path | None = None

    def lost(self, error: str) -> Done:
        """Return the outcome of a task whose process never came back."""
        return self.key, failed(error, 1)


#: What hears of each outcome, and what hears each sentence for a person.
OnResult: TypeAlias = Callable[[Outcome], None]
Say: TypeAlias = Callable[[str], None]
#: What computes tasks, on this machine or on others.
Compute: TypeAlias = Callable[[list[Task]], Generator[Done]]


def carry_out(task: Task) -> Done:
    """Compute a point and keep it where it was computed, before anything else can be killed."""
    outcome = compute(task.scenario, task.simulate)
    return task.key, keep(outcome, task.path)


def keep(outcome: Outcome, path: Path | None) -> Outcome:
    """Keep a good outcome at ``path``; one that cannot be kept says why, and counts all the same."""
    if path is None or not outcome.ok:
        return outcome
    try:
        write_entry(path, outcome)
    except ResultsError as error:
        return replace(outcome, not_kept=error.faults[0].message)
    return outcome


@contextmanager
def quietly() -> Iterator[None]:
    """Keep joblib from warning that not all was asked for of what it computes: Ctrl-C means just that.

    And Python from warning of threads where it doubles a process: those of libraries are idle then.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*multi-threaded", DeprecationWarning)
        warnings.filterwarnings("ignore", category=UserWarning, module="joblib")
        yield


def once(say: Say) -> Say:
    """Return what says each sentence only the first time."""
    said: set[str] = set()

    def say_once(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            say(sentence)

    return say_once


def finished(tasks: list[Task], store: Store, compute: Compute) -> Generator[Done]:
    """Yield what is kept of some tasks, then what is computed."""
    left = []
    for task in tasks:
        kept = store.find(task.key)
        if kept is None:
            left.append(task)
        else:
            yield task.key, kept
    if left:
        with closing(compute(left)) as done:
            for key, outcome in done:
                if outcome.not_kept:
                    store.say(f"points cannot be kept in {store.folder}: {outcome.not_kept}")
                yield key, outcome
