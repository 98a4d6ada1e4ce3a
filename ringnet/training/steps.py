"""A step of a training in time: what every worker computes, and the collectives that wait for it and are waited for.

Collectives of one group share a stream: one starts when what it sends is ready on every worker and the one before has
ended. What a collective takes is not known here: whoever runs the step says of each when it ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import NamedTuple, TypeAlias

import numpy as np

from ringnet.array_types import FloatArray
from ringnet.chance import Lognormal, stream
from ringnet.training.buckets import GradientBucket
from ringnet.training.layers import TimedLayer, count_parameters

#: Yields the number of a collective and when it starts; is told when it has ended; returns the times of the step.
RunningStep: TypeAlias = "Generator[tuple[int, float], float, StepTimes]"


class Computation(NamedTuple):
    """Something that every worker computes, one after the other; ``needs`` is the last collective it waits for."""

    name: str
    phase: str
    seconds: float
    needs: int = -1


class StepCollective(NamedTuple):
    """A collective of the step; ``after`` is the computation that has to end first, on every worker; -1 for none.

    What is gathered are parameters, what is reduced their gradients: ``n_elements`` of them from place ``first`` on, in
    the order in which the strategy lays parameters out.
    """

    name: str
    collective: str
    n_elements: int
    after: int = -1
    first: int = 0


@dataclass(frozen=True)
class StepProgram:
    """What a step is made of: computations in the order of a worker, collectives in the order of their stream."""

    computations: tuple[Computation, ...]
    collectives: tuple[StepCollective, ...]

    @property
    def seconds(self) -> FloatArray:
        """What each computation takes by rule; shape (n_computations,)."""
        return np.array([one.seconds for one in self.computations])


class _Writer:
    """Writes a program down, computation by computation."""

    def __init__(self) -> None:
        self.computations: list[Computation] = []
        self.collectives: list[StepCollective] = []

    def compute(self, name: str, phase: str, seconds: float, needs: int = -1) -> int:
        """Add a computation; return its number."""
        self.computations.append(Computation(name, phase, seconds, needs))
        return len(self.computations) - 1

    def send(self, name: str, collective: str, n_elements: int, after: int, first: int) -> int:
        """Add a collective; return its number."""
        self.collectives.append(StepCollective(name, collective, n_elements, after, first))
        return len(self.collectives) - 1

    def program(self) -> StepProgram:
        """Return what was written."""
        return StepProgram(tuple(self.computations), tuple(self.collectives))


@dataclass(frozen=True)
class StepShape:
    """What the program of a step depends on beside the strategy.

    Parameters
    ----------
    layers : tuple of TimedLayer
        In the order of registration.
    buckets : tuple of GradientBucket
        In the order in which the backward pass completes them.
    n_workers : int
    microbatches : int
        Passes whose gradients are added up before they are combined.
    prefetch : int
        Blocks of parameters that are gathered ahead of the one at work, where parameters are sharded.
    update_s : float
        What the optimizer takes for all parameters.
    """

    layers: tuple[TimedLayer, ...]
    buckets: tuple[GradientBucket, ...]
    n_workers: int
    microbatches: int = 1
    prefetch: int = 1
    update_s: float = 0.0

    @property
    def single_s(self) -> float:
        """What the same step takes one worker that is alone."""
        once = sum(layer.forward_s + layer.backward_s for layer in self.layers)
        return self.microbatches * once + self.update_s


def _backward(writer: _Writer, shape: StepShape, collective: str) -> list[int]:
    """Write all passes, and a collective for each bucket of the last; return those collectives."""
    for _ in range(shape.microbatches):
        for layer in shape.layers:
            writer.compute(layer.name, "forward", layer.forward_s)
        ended = {
            number: writer.compute(shape.layers[number].name, "backward", shape.layers[number].backward_s)
            for number in reversed(range(len(shape.layers)))
        }
    return [
        writer.send(f"bucket {number}", collective, bucket.n_elements, ended[bucket.last_layer], first)
        for number, (bucket, first) in enumerate(zip(shape.buckets, _firsts(shape.buckets), strict=True))
    ]


def _firsts(buckets: Sequence[GradientBucket]) -> list[int]:
    """Return where each bucket starts, in a row of them all."""
    return [0, *accumulate(bucket.n_elements for bucket in buckets)][:-1]


def ddp_step(shape: StepShape) -> StepProgram:
    """Return a step of DistributedDataParallel: every bucket of gradients is all-reduced under the backward pass."""
    writer = _Writer()
    sent = _backward(writer, shape, "all-reduce")
    writer.compute("update", "update", shape.update_s, sent[-1] if sent else -1)
    return writer.program()


def zero_1_step(shape: StepShape) -> StepProgram:
    """Return a step of ZeRO stage 1: the optimizer's state is sharded.

    Every bucket of gradients is reduce-scattered under the backward pass; each worker updates its share of the
    parameters, and the shares are gathered, bucket by bucket (Rajbhandari and others, 2020).
    """
    writer = _Writer()
    sent = _backward(writer, shape, "reduce-scatter")
    share_s = shape.update_s / shape.n_workers
    updated = writer.compute("update", "update", share_s, sent[-1] if sent else -1)
    for number, (bucket, first) in enumerate(zip(shape.buckets, _firsts(shape.buckets), strict=True)):
        writer.send(f"parameters {number}", "all-gather", bucket.n_elements, updated, first)
    return writer.program()


class TimedBlock(NamedTuple):
    """Layers whose parameters are gathered together: how many, and where they start."""

    layers: tuple[TimedLayer, ...]
    first: int

    @property
    def name(self) -> str:
        """What its layers call it."""
        return self.layers[0].unit

    @property
    def n_elements(self) -> int:
        """How many parameters it has."""
        return count_parameters(self.layers)


def _blocks(layers: Sequence[TimedLayer]) -> Iterator[TimedBlock]:
    first = 0
    for _, members in groupby(layers, key=lambda layer: layer.unit):
        block = TimedBlock(tuple(members), first)
        yield block
        first += block.n_elements


def fsdp_step(shape: StepShape) -> StepProgram:
    """Return a step of fully sharded data parallelism: parameters, gradients and optimizer's state are sharded.

    Each block's parameters are gathered before its forward pass and again before its backward pass, at most
    ``prefetch`` blocks ahead of the one at work; its gradients are reduce-scattered after the last backward pass. All
    go through one stream, in the order in which they are issued (Zhao and others, "PyTorch FSDP", 2023).
    """
    writer = _Writer()
    blocks = [*_blocks(shape.layers)]
    for number in range(shape.microbatches):
        start = len(writer.computations) - 1
        _sharded_pass(writer, blocks, "forward", shape.prefetch, start, reduces=False)
        start, is_last = len(writer.computations) - 1, number == shape.microbatches - 1
        _sharded_pass(writer, blocks[::-1], "backward", shape.prefetch, start, reduces=is_last)
    last = len(writer.collectives) - 1
    writer.compute("update", "update", shape.update_s / shape.n_workers, last)
    return writer.program()


def _sharded_pass(
    writer: _Writer,
    blocks: Sequence[TimedBlock],
    phase: str,
    prefetch: int,
    start: int,
    *,
    reduces: bool,
) -> None:
    """Write one pass over blocks of layers; ``start`` is the computation before it."""
    gathered: list[int] = []

    def gather(after: int) -> None:
        """Gather the next block that has not been, if there is one."""
        if len(gathered) < len(blocks):
            block = blocks[len(gathered)]
            name = f"{phase} {block.name}"
            gathered.append(writer.send(name, "all-gather", block.n_elements, after, block.first))

    for _ in range(prefetch + 1):
        gather(start)
    for number, block in enumerate(blocks):
        ended, needs = start, gathered[number]
        for layer in block.layers if phase == "forward" else reversed(block.layers):
            seconds = layer.forward_s if phase == "forward" else layer.backward_s
            ended, needs = writer.compute(layer.name, phase, seconds, needs), -1
        if reduces:
            writer.send(f"gradients {block.name}", "reduce-scatter", block.n_elements, ended, block.first)
        gather(ended)


class Strategy(NamedTuple):
    """A way to spread a step over workers: what makes its program, the collectives that it sends, a line about it."""

    program: Callable[[StepShape], StepProgram]
    sends: tuple[str, ...]
    summary: str


#: Ways to spread a step over workers, by name.
STRATEGIES: dict[str, Strategy] = {
    "ddp": Strategy(ddp_step, ("all-reduce",), "gradients are all-reduced, bucket by bucket"),
    "zero-1": Strategy(
        zero_1_step,
        ("reduce-scatter", "all-gather"),
        "the optimizer's state is sharded: gradients are reduce-scattered, updated parameters gathered",
    ),
    "fsdp": Strategy(
        fsdp_step,
        ("all-gather", "reduce-scatter"),
        "parameters are sharded, too: gathered block by block before each pass",
    ),
}


# -------------------------------------------------------------------------------------------------------- in time


@dataclass(frozen=True)
class StepTimes:
    """When everything of a step was.

    Parameters
    ----------
    program : StepProgram
    starts_s, ends_s : ndarray, shape (n_computations, n_workers)
        Of the computations.
    ready_s, sent_s, done_s : ndarray, shape (n_collectives,)
        When what it sends was ready on every worker; when it started; when it had ended everywhere.
    """

    program: StepProgram
    starts_s: FloatArray
    ends_s: FloatArray
    ready_s: FloatArray
    sent_s: FloatArray
    done_s: FloatArray

    @property
    def step_s(self) -> float:
        """From the start to the end of the last computation and the last collective."""
        return max(float(self.ends_s.max(initial=0.0)), float(self.done_s.max(initial=0.0)))

    @property
    def compute_s(self) -> FloatArray:
        """What each worker computed; shape (n_workers,)."""
        seconds: FloatArray = (self.ends_s - self.starts_s).sum(axis=0)
        return seconds

    @property
    def communication_s(self) -> float:
        """What the collectives took: one after the other, as they are in one stream."""
        return math.fsum((self.done_s - self.sent_s).tolist())

    def hidden_s(self) -> FloatArray:
        """Return how much of each collective each worker computed through; shape (n_collectives, n_workers)."""
        taken = (self.done_s - self.sent_s)[:, None]
        shape = len(self.done_s), self.starts_s.shape[1]
        if not len(self.starts_s):
            return np.zeros(shape)
        hidden = np.empty(shape)
        for worker in range(shape[1]):
            spans = np.column_stack((self.starts_s[:, worker], self.ends_s[:, worker]))
            lengths = np.diff(spans, axis=1).ravel()
            # The time computed until each start and each end; in between it grows with the time, or not at all.
            until = np.column_stack((np.cumsum(lengths) - lengths, np.cumsum(lengths))).ravel()
            sent, done = (np.interp(times, spans.ravel(), until) for times in (self.sent_s, self.done_s))
            hidden[:, worker] = done - sent
        return np.clip(hidden, 0.0, taken)


def step_in_time(program: StepProgram, seconds: FloatArray) -> RunningStep:
    """Run a step, whose collectives somebody else times.

    Parameters
    ----------
    program : StepProgram
    seconds : ndarray, shape (n_computations, n_workers)
        What each computation takes each worker.

    Yields
    ------
    number : int
        Of the next collective in the stream.
    start_s : float
        When it starts. Whoever runs the step sends back when it has ended.
    """
    starts_s, ends_s = np.zeros_like(seconds), np.zeros_like(seconds)
    n_collectives = len(program.collectives)
    ready_s, sent_s, done_s = np.zeros(n_collectives), np.zeros(n_collectives), np.zeros(n_collectives)
    now_s, computed = np.zeros(seconds.shape[1]), 0

    def compute(n_ended: int) -> None:
        """Do all computations whose collectives have ended."""
        nonlocal now_s, computed
        while computed < len(seconds) and program.computations[computed].needs < n_ended:
            needs = program.computations[computed].needs
            starts_s[computed] = now_s if needs < 0 else np.maximum(now_s, done_s[needs])
            now_s = ends_s[computed] = starts_s[computed] + seconds[computed]
            computed += 1

    compute(0)
    for number, collective in enumerate(program.collectives):
        assert collective.after < computed, "a collective waits for what waits for it"
        ready_s[number] = 0.0 if collective.after < 0 else ends_s[collective.after].max()
        sent_s[number] = max(ready_s[number], done_s[number - 1] if number else 0.0)
        done_s[number] = yield number, float(sent_s[number])
        compute(number + 1)
    return StepTimes(program, starts_s, ends_s, ready_s, sent_s, done_s)


def timed_step(program: StepProgram, seconds: FloatArray, cost_s: Callable[[StepCollective], float]) -> StepTimes:
    """Run a step whose collectives take what they take, whenever they start."""
    return run_step(
        step_in_time(program, seconds),
        lambda number, start_s: start_s + cost_s(program.collectives[number]),
    )


def run_step(running: RunningStep, end_s: Callable[[int, float], float]) -> StepTimes:
    """Run a step to its end; ``end_s`` says of a collective that starts when it has ended."""
    try:
        number, start_s = next(running)
        while True:
            number, start_s = running.send(end_s(number, start_s))
    except StopIteration as ended:
        times: StepTimes = ended.value
        return times


@dataclass(frozen=True)
class WorkerPace:
    """How workers differ from the rule in what they compute.

    Parameters
    ----------
    slowness : tuple of float
        How many times as long as by rule each worker takes.
    noise : float
        Standard deviation of each computation, as a share of its time: drawn log-normally, right in the mean.
    seed, group : int
        Each worker of a group has a stream of its own, and each step a part of it.
    """

    slowness: tuple[float, ...]
    noise: float = 0.0
    seed: int = 0
    group: int = 0

    def draws(self, program: StepProgram, n_steps: int) -> Iterator[FloatArray]:
        """Yield, for each of some steps, what each computation takes each worker."""
        rule = program.seconds[:, None] * np.array(self.slowness)
        spread, workers = Lognormal(1.0, self.noise), range(rule.shape[1])
        numbers = [stream(self.seed, "worker", self.group, worker, "compute") for worker in workers]
        for step in range(n_steps):
            if self.noise:
                uniforms = [of_worker.uniforms([step], len(rule))[0] for of_worker in numbers]
                yield rule * spread.quantile(np.column_stack(uniforms))
            else:
                yield rule
