"""The numbers of a step: what each worker sends in every collective, and the parameters that come of it.

Every worker has a gradient of its own, all have the same parameters. What a worker receives of the combined gradient it
takes a step of SGD with; what it then gathers from others replaces its own. In the end all that hold a parameter must
hold the same bits, and none may be further from one exact process than rounding goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ringnet.array_types import Array, IntArray
from ringnet.collectives import Schedule
from ringnet.payload import Reduction, Source
from ringnet.payload.bounds import U64
from ringnet.payload.dtypes import bits_of, unit_roundoff
from ringnet.training.exact import REACHES, ExactState
from ringnet.training.models import Around
from ringnet.training.optimizers import make_optimizer
from ringnet.training.steps import StepCollective
from ringnet.training.whole_batch import gradient_bound

#: What a worker holds of a chunk in the end; None where it holds nothing.
Held: TypeAlias = Callable[[int, int], "Array | None"]

#: The step that is taken: half of the gradient, so that a wrong one is seen in the parameters.
_OPTIMIZER = make_optimizer("sgd", 0.5)


@dataclass(frozen=True)
class StepParameters:
    """What the parameters are after a step.

    Parameters
    ----------
    agree : bool
        All workers that hold a parameter hold the same bits.
    ok : bool
        They do, somebody holds each, and none is further from one exact process than rounding goes.
    wrong : str
        What is wrong first; empty if nothing is.
    """

    agree: bool
    ok: bool
    wrong: str


class _Places(Source):
    """Numbers of some elements of a buffer; no others are asked for."""

    def __init__(self, places: IntArray, values: Sequence[Array], n_elements: int) -> None:
        super().__init__(len(values), (n_elements,), values[0].dtype)
        self._places, self._values = places, values

    def fill(self, index: IntArray, workers: Sequence[int], outs: Sequence[Array]) -> None:
        """See `Source.fill`."""
        at = np.searchsorted(self._places, index)
        assert (self._places[at] == index).all(), "gradients and parameters are cut alike"
        for worker, out in zip(workers, outs, strict=True):
            out[...] = self._values[worker][at]


class StepNumbers:
    """Gradients and parameters of all workers, from one collective of a step to the next.

    Parameters
    ----------
    places : ndarray of int64, shape (n_carried,)
        Which parameters are carried, ascending, by their place among all of them.
    gradients : sequence of ndarray of shape (n_carried,)
        Of each worker, all of one floating-point dtype.
    parameters : ndarray of shape (n_carried,)
        At all workers before the step, of the same dtype.
    reduction : Reduction
        How the network combines gradients: their sum, or their mean.
    """

    def __init__(
        self,
        places: IntArray,
        gradients: Sequence[Array],
        parameters: Array,
        reduction: Reduction,
    ) -> None:
        self._places, self._gradients, self._start = places, gradients, parameters
        self._scale = 1.0 if reduction.name == "mean" else 1 / len(gradients)
        shape = len(gradients), len(parameters)
        self._parameters = np.broadcast_to(parameters, shape).copy()
        self._combined = np.zeros(shape, parameters.dtype)
        # What a worker has a combined gradient of and has not updated; what it has updated, or gathered from others.
        self._waiting, self._updated = np.zeros(shape, bool), np.zeros(shape, bool)

    def sent(self, one: StepCollective) -> Source:
        """Return what each worker hands to a collective."""
        part = self._part(one.first, one.n_elements)
        if one.collective == "all-gather":
            self._update(part)
            values = [own[part].copy() for own in self._parameters]
        else:
            values = [gradient[part] for gradient in self._gradients]
        return _Places(self._places[part] - one.first, values, one.n_elements)

    def _part(self, start: int, size: int) -> slice:
        """Return where what is carried of some parameters stands."""
        first, last = np.searchsorted(self._places, [start, start + size]).tolist()
        return slice(first, last)

    def received(self, one: StepCollective, schedule: Schedule, sizes: IntArray, held: Held) -> None:
        """Take in what each worker holds of every chunk that is its own after a collective."""
        starts = one.first + np.cumsum(sizes) - sizes
        for chunk, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
            part = self._part(start, size)
            for worker in schedule.holders(chunk):
                array = held(worker, chunk)
                if array is None:
                    continue
                values = array[: part.stop - part.start]
                if one.collective == "all-gather":
                    self._parameters[worker, part] = values
                    self._updated[worker, part] = self._updated[schedule.contributors(chunk)[0], part]
                else:
                    self._combined[worker, part] = values * values.dtype.type(self._scale)
                    self._waiting[worker, part] = True

    def _update(self, part: slice) -> None:
        """Let each worker take a step with what it has of a combined gradient."""
        new, _ = _OPTIMIZER.update(self._parameters[:, part], self._combined[:, part], {}, 1)
        waiting = self._waiting[:, part]
        self._parameters[:, part] = np.where(waiting, new, self._parameters[:, part])
        self._updated[:, part] |= waiting
        self._waiting[:, part] = False

    def finish(self, *, everywhere: bool) -> StepParameters:
        """Take the step with what is left, and say whether the parameters are right.

        ``everywhere`` says that every worker holds all of them; otherwise each is at one at least.
        """
        self._update(slice(None))
        missing = ~(self._updated.all(axis=0) if everywhere else self._updated.any(axis=0))
        if missing.any():
            element = self._places[missing][0]
            return StepParameters(False, False, f"parameter {element} was not updated everywhere")
        unlike = self._unlike()
        if unlike is not None:
            worker, element, first = unlike
            got, other = self._parameters[[worker, first], element]
            wrong = f"parameter {self._places[element]} is {got} at worker {worker} and {other} at worker {first}"
            return StepParameters(False, False, wrong)
        return self._against_one_process()

    def _unlike(self) -> tuple[int, int, int] | None:
        """Find a worker whose bits of a parameter are not those of the first that holds it."""
        first = self._updated.argmax(axis=0)
        bits = bits_of(self._parameters)
        differs = self._updated & (bits != bits[first, np.arange(bits.shape[1])])
        found = np.argwhere(differs)
        if not len(found):
            return None
        worker, element = (int(number) for number in found[0])
        return worker, element, int(first[element])

    def _against_one_process(self) -> StepParameters:
        dtype, n_workers = self._start.dtype, len(self._gradients)
        wide = np.stack([gradient.astype(np.float64) for gradient in self._gradients])
        mean, magnitude = wide.mean(axis=0), np.abs(wide).mean(axis=0)
        kinds = {"wire": dtype, "master": dtype}
        ones = np.ones(n_workers, dtype=np.int64)
        bound = gradient_bound(magnitude, ones, **kinds, microbatches=1, scale=self._scale)
        state = ExactState(Around.exactly(self._start), {}, 0)
        unit = unit_roundoff(dtype) + U64
        new, _ = REACHES["sgd"](state, Around(mean, bound), _OPTIMIZER.settings, unit)
        error = np.where(self._updated, np.abs(self._parameters.astype(np.float64) - new.value), 0.0)
        beyond = np.argwhere(~(error <= new.radius))
        if not len(beyond):
            return StepParameters(True, True, "")
        worker, element = (int(number) for number in beyond[0])
        got, right = self._parameters[worker, element], new.value[element]
        said = f"is {got}, {right:.9g} of one process: further than rounding goes"
        return StepParameters(True, False, f"parameter {self._places[element]} of worker {worker} {said}")


def carried_places(parts: Iterable[tuple[StepCollective, IntArray]], carry: int | None) -> IntArray:
    """Return which parameters are carried, ascending: the first ``carry`` of each chunk of their gradients.

    Parameters
    ----------
    parts : iterable of tuple
        The collectives that combine gradients, each with the elements of its chunks.
    carry : int or None
        None for all of them.

    Examples
    --------
    >>> bucket = StepCollective("bucket 1", "all-reduce", 5, first=10)
    >>> carried_places([(bucket, np.array([3, 2]))], carry=2).tolist()
    [10, 11, 13, 14]
    """
    found = [np.empty(0, dtype=np.int64)]
    for one, sizes in parts:
        starts = one.first + np.cumsum(sizes) - sizes
        counts = sizes if carry is None else np.minimum(sizes, carry)
        ranges = zip(starts.tolist(), counts.tolist(), strict=True)
        found.extend(np.arange(start, start + count) for start, count in ranges)
    return np.sort(np.concatenate(found))
