"""What a training means: a row for each step, for each way beside the right one, and the verdict on all steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ringnet.analysis.frames import of_rows
from ringnet.analysis.result import RunResult
from ringnet.analysis.verification import Mismatch, Verdict
from ringnet.array_types import Array
from ringnet.collectives import Schedule
from ringnet.training.exact import ExactDistance
from ringnet.training.models import Shapes, unflattened
from ringnet.training.trainer import TrainedStep
from ringnet.training.wrong_ways import Divergence

#: Numbers up to which the states of all workers after all steps are worth their room.
READABLE_STATES = 5_000


@dataclass(frozen=True)
class TrainingLog:
    """What was kept of the steps of a training.

    Parameters
    ----------
    rows : list of dict
        A row of ``training.csv`` for each step.
    verdicts : list of Verdict
        Of each step's all-reduce.
    mismatches : list of Mismatch
        What was wrong beside: states that differ, a gradient beyond its bound.
    divergence : list of Divergence
    states : list of dict
        Rows of ``step_states.csv``.
    """

    rows: list[dict[str, Any]]
    verdicts: list[Verdict]
    mismatches: list[Mismatch]
    divergence: list[Divergence]
    states: list[dict[str, Any]]

    @classmethod
    def empty(cls) -> TrainingLog:
        """Return that of a training before its first step."""
        return cls([], [], [], [], [])

    @property
    def judged(self) -> list[Verdict]:
        """The verdicts that count: not those of an overflow, and nothing else, that made all workers skip the step."""
        return [
            verdict
            for verdict, row in zip(self.verdicts, self.rows, strict=True)
            if not (row["skipped"] is not None and verdict.replay_ok and verdict.bound_ok)
        ]

    @property
    def is_wrong(self) -> bool:
        """Whether a step was wrong."""
        return bool(self.mismatches) or not all(verdict.sum_ok for verdict in self.judged)

    def add(
        self,
        step: TrainedStep,
        result: RunResult,
        schedule: Schedule,
        n_elements: int,
        exact: ExactDistance | None,
    ) -> None:
        """Take in a step, the result of its all-reduce, and how far parameters then are from one exact process.

        What was sent has ``n_elements`` elements.
        """
        makespan_s, far, verdict = result.summary["makespan_s"], step.distance, result.verdict
        self.verdicts.append(verdict)
        self.rows.append(
            {
                "step": step.step,
                "examples": int(step.counts.sum()),
                "idle_workers": int((step.counts == 0).sum()),
                "loss": step.loss,
                "makespan_s": makespan_s,
                "end_s": makespan_s + (self.rows[-1]["end_s"] if self.rows else 0.0),
                "max_abs_gradient": float(np.abs(step.arrays["combined"][0]).max(initial=0.0)),
                "whole_batch_error": None if far is None else far.error,
                "whole_batch_share": None if far is None else far.share,
                "gradient_digits": None if far is None else far.digits,
                "exact_error": None if exact is None else exact.error,
                "exact_share": None if exact is None else exact.share,
                "max_abs_error": verdict.max_abs_error,
                "sum_ok": verdict.sum_ok,
                "state_agrees": step.difference is None,
                "skipped": step.nonfinite or None,
            }
        )
        sizes = schedule.chunk_sizes(n_elements)
        if step.difference is not None:
            one = step.difference
            chunk = int(np.searchsorted(np.cumsum(sizes), one.element, side="right"))
            check = f"step {step.step}: {one.what} unlike worker 0's"
            self.mismatches.append(Mismatch(one.worker, chunk, one.element, check, one.got, one.expected))
        if far is not None and far.share is not None and not far.share <= 1:
            check = f"step {step.step}: further from the whole batch's gradient than rounding goes"
            self.mismatches.append(Mismatch(0, 0, 0, check, f"an error of {far.error:.3g}", "less"))
        if exact is not None and not exact.share <= 1:
            check = f"step {step.step}: parameters further from one process than rounding goes in all steps"
            self.mismatches.append(Mismatch(0, 0, 0, check, f"an error of {exact.error:.3g}", "less"))


def state_rows(step: TrainedStep, shapes: Shapes) -> list[dict[str, Any]]:
    """Return every number of every worker in a step, a row each."""
    return [
        {
            "step": step.step,
            "worker": worker,
            "examples": int(step.counts[worker]),
            "what": what,
            "layer": layer,
            "element": element,
            "value": value,
        }
        for worker in range(len(step.counts))
        for what, arrays in step.arrays.items()
        for layer, part in unflattened(arrays[worker], shapes).items()
        for element, value in enumerate(part.astype(np.float64).reshape(-1).tolist())
    ]


def with_training(result: RunResult, log: TrainingLog, parameters: dict[str, Array], notes: Sequence[str]) -> RunResult:
    """Return the result of the last step's all-reduce as that of the training: its tables, and one verdict on all.

    ``parameters`` are those after the last step, by name.
    """
    verdict = _verdict(log)
    rows = log.rows
    of_verdict = ("verified_elements", "max_abs_error", "max_error_share", "workers_agree", "sum_ok")
    summary = result.summary | {key: getattr(verdict, key) for key in of_verdict}
    summary |= {
        "training_steps": len(rows),
        "skipped_steps": sum(row["skipped"] is not None for row in rows),
        "loss": rows[-1]["loss"],
        "all_reduce_s": rows[-1]["end_s"],
        "state_agrees": all(row["state_agrees"] for row in rows),
        "whole_batch_share": _extreme(rows, "whole_batch_share", max),
        "gradient_digits": _extreme(rows, "gradient_digits", min),
        "exact_steps": sum(row["exact_share"] is not None for row in rows),
        "exact_share": _extreme(rows, "exact_share", max),
    }
    divergence = [one._asdict() for one in log.divergence]
    tables = {"training": rows, "divergence": divergence, "step_states": log.states}
    kept = [note for note in result.notes if note not in result.verdict.notes]
    return replace(
        result,
        summary=summary,
        verdict=verdict,
        notes=(*kept, *notes, *verdict.notes),
        parameters=parameters,
        tables={**result.tables, **{name: of_rows(found) for name, found in tables.items() if found}},
    )


def _extreme(rows: Sequence[dict[str, Any]], column: str, choose: Any) -> float | None:
    known = [row[column] for row in rows if row[column] is not None]
    return float(choose(known)) if known else None


def _verdict(log: TrainingLog) -> Verdict:
    """Return one verdict on all steps: right if each was, an overflow aside where it made all workers skip the step."""
    judged = log.judged
    found = [verdict.mismatch for verdict in judged if verdict.mismatch is not None] + log.mismatches
    shares = [verdict.max_error_share for verdict in judged if verdict.max_error_share is not None]
    errors = [verdict.max_abs_error for verdict in judged if verdict.max_abs_error is not None]
    return replace(
        log.verdicts[-1],
        verified_elements=sum(verdict.verified_elements for verdict in log.verdicts),
        max_abs_error=max(errors, default=None),
        max_error_share=max(shares, default=None),
        sum_ok=not log.is_wrong,
        workers_agree=all(verdict.workers_agree for verdict in log.verdicts),
        replay_ok=all(verdict.replay_ok for verdict in log.verdicts),
        bound_ok=all(verdict.bound_ok for verdict in judged),
        overflowed=any(verdict.overflowed for verdict in log.verdicts),
        mismatch=found[0] if found else None,
        notes=tuple(dict.fromkeys(note for verdict in judged for note in verdict.notes)),
    )
