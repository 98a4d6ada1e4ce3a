"""What one point of a sweep came to, small enough to keep and to send between machines: a row, no arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ringnet.errors import RingnetError, VerificationError

if TYPE_CHECKING:
    from ringnet.analysis.result import Result
    from ringnet.scenario import Scenario

#: What computes one point: `ringnet.scenario.simulate.simulate`, unless another is handed in. What is no run, but a
#: part of a comparison, returns its outcome itself.
Simulate = Callable[["Scenario"], "Result | Outcome"]


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
    """

    summary: dict[str, Any]
    notes: tuple[str, ...] = ()
    error: str = ""
    exit_code: int = 0
    computed: bool = True
    not_kept: str = ""
    swept: Mapping[str, str] = field(default_factory=dict)
    job_rows: tuple[dict[str, Any], ...] = ()

    #: A sweep has no other tables; those of single runs are made by running the point alone.
    transfers = links = workers = states = None

    @property
    def jobs(self) -> pd.DataFrame | None:
        """One row per job, with the swept keys, where there are several jobs."""
        if not self.job_rows:
            return None
        return pd.DataFrame([{**self.swept, **row} for row in self.job_rows], dtype=object)

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


def _found(result: Result) -> Outcome:
    row = _plain_row(result.summary)
    jobs = () if result.jobs is None else tuple(_plain_row(one) for one in result.jobs.to_dict("records"))
    found = Outcome(row, (*result.about, *result.verdict.notes), job_rows=jobs)
    if row["sum_ok"] is not False:
        return found
    error = wrong_sum(result)
    return replace(found, summary={**row, "error": error}, error=error, exit_code=VerificationError.exit_code)


def wrong_sum(result: Result) -> str:
    """Say what is wrong with a sum: worker, chunk, element, got and expected."""
    return f"the sum is wrong: {result.verdict.mismatch}"


def _plain_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(column): _plain(value) for column, value in row.items()}


def _plain(value: Any) -> Any:
    # As JSON brings it back, so that a row is the same whether it was kept or not.
    return value.item() if isinstance(value, np.generic) else value
