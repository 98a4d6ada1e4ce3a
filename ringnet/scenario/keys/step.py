"""The keys of a training step: the layers of a model, how long they take, and how the step is spread over workers."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from ringnet.scenario.keys.base import (
    NotEmpty,
    PlaceNumber,
    Seconds,
    Settings,
    SomeSeconds,
    SomeSize,
    WorkerNumber,
)
from ringnet.scenario.keys.kinds import Line, NamesIn, Number, OneOf, Quantity, Whole
from ringnet.training.buckets import BUCKET_CAP_BYTES, FIRST_BUCKET_BYTES

_Places: TypeAlias = Annotated[tuple[PlaceNumber, ...], NotEmpty]


class StepKeys(Settings):
    """A step of a training in time: `ringnet step` reads it."""

    model: Annotated[str, OneOf(NamesIn("ringnet.training.layers", "MODEL_PRESETS"), "model")] | None = Field(
        default=None, description="A model that is made by formula: `gpt2-small`.", examples=["gpt2-small"]
    )
    layers: Annotated[str, Line("layers.csv", 1000)] | None = Field(
        default=None,
        description="A table of layers instead: CSV with name, parameters, forward and backward.",
        examples=["layers.csv"],
    )
    python: Annotated[str, Line("my.py:model", 1000)] | None = Field(
        default=None,
        description="A function of yours instead, which returns a PyTorch module; run only with `--allow-python`.",
        examples=["my.py:model"],
    )
    batch: Annotated[int, Whole(1, 10**9, example=8)] = Field(
        default=1, description="Examples of one worker in one pass.", examples=[8]
    )
    sequence: Annotated[int, Whole(1, 10**7, example=1024)] | None = Field(
        default=None,
        description="Tokens of an example, of models of language; as published if left out.",
        examples=[1024],
    )
    rate_flops: Annotated[float, Quantity("flops")] | None = Field(
        default=None,
        alias="rate",
        description="Operations that a worker gets through in a second, from which times follow: `150 TFLOP/s`.",
        examples=["150 TFLOP/s"],
    )
    forward_s: SomeSeconds | None = Field(
        default=None,
        alias="forward",
        description="Instead of a rate: one forward pass of all layers, as measured: `40 ms`.",
    )
    backward_s: SomeSeconds | None = Field(
        default=None, alias="backward", description="With forward: one backward pass: `80 ms`."
    )
    strategy: Annotated[str, OneOf(NamesIn("ringnet.training.steps", "STRATEGIES"), "strategy")] = Field(
        default="ddp",
        description="ddp: gradients are all-reduced; zero-1: optimizer states are sharded; fsdp: parameters, too.",
    )
    bucket_cap_bytes: SomeSize = Field(
        default=BUCKET_CAP_BYTES,
        alias="bucket_cap",
        description="A bucket of gradients closes when it holds as much: `25 MiB`.",
        examples=["25 MiB"],
    )
    first_bucket_bytes: SomeSize = Field(
        default=FIRST_BUCKET_BYTES,
        alias="first_bucket",
        description="The same of the first bucket: `1 MiB`. PyTorch from 2.4 on takes the cap where one is given.",
        examples=["1 MiB"],
    )
    prefetch: Annotated[int, Whole(0, 1000, example=1)] = Field(
        default=1, description="Of fsdp: blocks that are gathered ahead of the one at work."
    )
    microbatches: Annotated[int, Whole(1, 10_000, example=4)] = Field(
        default=1, description="Passes whose gradients are added up before they are combined."
    )
    update_s: Seconds = Field(
        default=0.0, alias="update", description="What the optimizer takes for all parameters: `5 ms`."
    )
    slow_workers: dict[WorkerNumber, Annotated[float, Number(1.5)]] = Field(
        default={},
        description="Workers that take so many times as long: `{3: 1.5}`.",
        examples=[{"3": 1.5}],
    )
    noise: Annotated[float, Number(0.05, most=10)] = Field(
        default=0.0,
        description="Standard deviation of each computation as a share of its time, drawn by the scenario's seed.",
    )
    steps: Annotated[int, Whole(1, 10_000, example=20)] = Field(
        default=1,
        description="With noise: steps that are drawn, of which the mean is told; `repeat` in its place tells how they "
        "are spread, too.",
    )
    groups: tuple[_Places, ...] = Field(
        default=(),
        description="Other groups that take the same step on the same links at the same time, each a list of places.",
        examples=[[[4, 5, 6, 7]]],
    )
