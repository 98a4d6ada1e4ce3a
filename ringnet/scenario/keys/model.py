"""The keys of a scenario: one model per mapping, every key with its meaning, its unit and an example.

Inside, values are plain SI and their names say the unit (``latency_s``); outside, a key is ``latency: 5 us``.
"""

import math
import sys
from typing import Annotated, Any, TypeAlias, get_args

from pydantic import Discriminator, Field, Tag, model_validator

from ringnet.analysis.spread import FIGURES
from ringnet.collectives import COLLECTIVES
from ringnet.engines import ENGINES
from ringnet.engines.trace import KEEP_TRANSFERS, Sends
from ringnet.payload.dtypes import DTYPES
from ringnet.payload.reductions import REDUCTIONS
from ringnet.reporting.columns import RUN_TABLES
from ringnet.reporting.plots import PLOTS
from ringnet.scenario.keys.algorithm import AlgorithmNameOrKeys, name_of
from ringnet.scenario.keys.base import (
    LIST,
    MAPPING,
    MOST_WORKERS,
    ONE,
    IncludeKeys,
    MachineName,
    MessageSize,
    NotEmpty,
    Settings,
    WorkerNumber,
    list_or_one,
    mapping_or_list,
    mapping_or_one,
    not_empty,
)
from ringnet.scenario.keys.drawn import DrawableReduceRate, DrawableSeconds, DrawableStart, NoiseKeys
from ringnet.scenario.keys.figure import FigureKeys
from ringnet.scenario.keys.jobs_and_traffic import JobKeys, TrafficKeys
from ringnet.scenario.keys.kinds import Line, Name, Number, OneOf, Share, Version, Whole
from ringnet.scenario.keys.network import NetworkKeys
from ringnet.scenario.keys.training import StepKeys, TrainingKeys
from ringnet.scenario.keys.trouble import FailureKeys, TroubleKeys

#: Versions of the format that are read.
VERSIONS = (1,)
#: The most values of a range.
MOST_VALUES = 10_000
#: The most runs of one scenario.
MOST_RUNS = 1_000_000
#: Collectives that move chunks and never combine them.
COPYING = ("all-gather", "all-to-all", "broadcast")
#: Values of ``data`` that are not files.
MADE_DATA = ("random", "ramp")


class ElementKeys(Settings):
    """Carry the first elements of each chunk; time is charged for all of them."""

    elements: Annotated[int, Whole(1, example=16)] = Field(
        description="Elements of each chunk that are carried.", examples=[16]
    )


class WorkerExceptionKeys(Settings):
    """What is different about one worker; what is not named here stays as the rule for all workers has it."""

    send_overhead_s: DrawableSeconds | None = Field(
        default=None,
        description="Time of the worker's processor for each transfer it sends: `1 us`; or how it is drawn.",
    )
    recv_overhead_s: DrawableSeconds | None = Field(
        default=None,
        description="Time of the worker's processor for each transfer it receives: `1 us`; or how it is drawn.",
    )
    reduce_Bps: DrawableReduceRate | None = Field(
        default=None,
        alias="reduce_rate",
        description="Bytes reduced per second: `10 GB/s`, or `free`; or how it is drawn.",
    )
    start_s: DrawableStart | None = Field(
        default=None, description="When the worker comes to the collective: `20 us`, or `never`; or how it is drawn."
    )
    launch_s: DrawableSeconds | None = Field(
        default=None,
        description="What each collective takes at the worker once, before its first step: `8 us`; or how it is drawn.",
    )


class WorkerKeys(Settings):
    """How the workers behave."""

    sends: Annotated[Sends, OneOf(get_args(Sends), "kind of sends")] = Field(
        default="eager",
        description="eager: a worker never waits for its own send; rendezvous: a transfer starts when both "
        "sides are in the step, and ends it for both.",
    )
    send_overhead_s: DrawableSeconds = Field(
        default=0.0,
        description="Time of the worker's processor for each transfer it sends: `1 us`; or how it is drawn.",
    )
    recv_overhead_s: DrawableSeconds = Field(
        default=0.0,
        description="Time of the worker's processor for each transfer it receives: `1 us`; or how it is drawn.",
    )
    reduce_Bps: DrawableReduceRate = Field(
        default=math.inf,
        alias="reduce_rate",
        description="Bytes reduced per second: `100 GB/s`; `free` (the rule) costs no time. Or how it is drawn: "
        "`{mean: 100 GB/s, distribution: gamma, cv: 0.2}`.",
    )
    start_s: DrawableStart = Field(
        default=0.0,
        description="When a worker comes to the collective: `20 us`; `never` is a dead worker. Or how it is drawn for "
        "each worker: `{mean: 20 us, distribution: exponential}`.",
    )
    launch_s: DrawableSeconds | None = Field(
        default=None,
        description="What each collective takes at each worker once, before its first step and whatever its size, as "
        "GPU libraries take to start one: `8 us`; or how it is drawn for each worker. It is an overhead that noise "
        "does not prolong. Left out, it is what the profile of measured links says, for each message; without one it "
        "is nothing.",
    )
    noise: NoiseKeys | None = Field(
        default=None,
        description="Interruptions of the processor of each worker, each in a phase of its own: "
        "`{every: 1 ms, for: 25 us}`. They prolong overheads and reductions.",
        examples=[{"every": "1 ms", "for": "25 us"}],
    )
    exceptions: dict[WorkerNumber, Annotated[WorkerExceptionKeys, NotEmpty]] = Field(
        default={},
        description="Workers that differ: `{5: {reduce_rate: 10 GB/s, start: 20 us}}`.",
        examples=[{"5": {"reduce_rate": "10 GB/s"}}],
    )


class UntilKeys(Settings):
    """How well a figure of repeated runs is to be known."""

    half_width: Annotated[float, Share("share of the figure", "1 %")] = Field(
        description="Half of the 95 % interval, as a share of the figure: `1 %`.", examples=["1 %"]
    )
    of: Annotated[str, OneOf(FIGURES, "figure")] = Field(
        default="mean", description="Which figure: `mean`, `median`, `p95`.", examples=["p95"]
    )
    most: Annotated[int, Whole(2, MOST_RUNS, example=10_000)] = Field(
        default=10_000, description="No more runs than this: `10000`.", examples=[10_000]
    )


class RangeKeys(Settings):
    """Values from one end to the other; with exactly one of factor, count and step."""

    first: Any = Field(alias="from", description="The first value: `1 KiB`.", examples=["1 KiB"])
    last: Any = Field(alias="to", description="The last value, taken if it is hit.", examples=["1 GiB"])
    factor: Annotated[float, Number(2)] | None = Field(
        default=None, description="Each value is this times the one before: `4`."
    )
    count: Annotated[int, Whole(2, MOST_VALUES)] | None = Field(
        default=None, description="So many values, each the same factor times the one before: `11`."
    )
    step: Any = Field(default=None, description="Each value is this more than the one before: `2`, `1 MiB`.")


AxisKeys: TypeAlias = Annotated[
    Annotated[list[Any], NotEmpty, Tag(LIST)] | Annotated[RangeKeys, Tag(MAPPING)],
    Discriminator(mapping_or_list),
]
KeyPath: TypeAlias = Annotated[str, Name(r"[^\s]+", "the path of a key", "network.bandwidth")]


class SweepKeys(Settings):
    """Many runs from one file: keys by path, each with its values."""

    _is_some = model_validator(mode="before")(not_empty)

    over: Annotated[dict[KeyPath, AxisKeys], NotEmpty] = Field(
        default={},
        description="Keys by path, each with a list or a range; several make a grid, the first slowest: "
        "`{workers: [2, 4, 8], message: {from: 1 KiB, to: 1 GiB, factor: 4}}`.",
        examples=[{"network.bandwidth": ["10 GB/s", "50 GB/s"]}],
    )
    zip: Annotated[dict[KeyPath, AxisKeys], NotEmpty] = Field(
        default={},
        description="Keys by path that change together, the first value of each, then the second, and so on.",
        examples=[{"workers": [4, 8], "message": ["1 MiB", "2 MiB"]}],
    )


class CompareKeys(Settings):
    """What `ringnet compare` compares; the sizes are those of a sweep over message, or 1 KiB to 1 GiB."""

    _is_some = model_validator(mode="before")(not_empty)

    algorithms: Annotated[
        Annotated[str, OneOf(("all",), "choice"), Tag(ONE)]
        | Annotated[tuple[AlgorithmNameOrKeys, ...], NotEmpty, Tag(LIST)],
        Discriminator(list_or_one),
    ] = Field(
        default="all",
        description="all that know the collective, or a list: `[ring, {name: channel-ring, n_channels: 4}]`.",
        examples=[["ring", "halving-doubling"]],
    )
    workers: Annotated[tuple[Annotated[int, Whole(1, MOST_WORKERS)], ...], NotEmpty] | None = Field(
        default=None, description="Numbers of workers; those of the scenario if left out.", examples=[[4, 8]]
    )


class ReportKeys(Settings):
    """What is written of the results."""

    tables: tuple[Annotated[str, OneOf(RUN_TABLES, "table")], ...] = Field(
        default=tuple(name for name in RUN_TABLES if name != "states"),
        description="Tables to write. states: the buffer of every worker after every step, for small runs.",
    )
    plots: tuple[Annotated[str, OneOf(PLOTS, "plot")], ...] | None = Field(
        default=None,
        description="Plots to draw; those that suit the run if the key is left out, none for an empty list.",
    )
    figure: FigureKeys = Field(default=FigureKeys.model_construct(), description="How figures look.")
    transfers: Annotated[int, Whole(0, example=KEEP_TRANSFERS, words={"all": sys.maxsize})] = Field(
        default=KEEP_TRANSFERS,
        description="Rows are kept one per transfer up to so many transfers; `all` keeps them always.",
    )


PayloadKeys: TypeAlias = Annotated[
    Annotated[str, OneOf(("full", "none"), "payload"), Tag(ONE)] | Annotated[ElementKeys, Tag(MAPPING)],
    Discriminator(mapping_or_one),
]
DataFileName: TypeAlias = Annotated[str, Line("gradients.npy", 1000)]
DataKeys: TypeAlias = Annotated[
    Annotated[DataFileName, Tag(ONE)] | Annotated[tuple[DataFileName, ...], NotEmpty, Tag(LIST)],
    Discriminator(list_or_one),
]


class Keys(Settings):
    """All keys of a scenario, in the order in which a document is written."""

    scenario_version: Annotated[int, Version(VERSIONS)] = Field(
        description="Version of this format; this ringnet reads 1.", examples=[1]
    )
    name: Annotated[str, Line("slow link")] = Field(
        description="A few words for titles and tables; the name of the file if left out.",
        examples=["quickstart"],
    )
    include: IncludeKeys | None = Field(
        default=None,
        description="Scenarios that this one is based on, files in its folder or machines by name: `base.yaml`, "
        "`[dgx-h100, base.yaml]`; of a key in several the later one counts, and what is written here counts most.",
        examples=["base.yaml", ["dgx-h100", "base.yaml"]],
    )
    machine: MachineName | None = Field(
        default=None,
        description="A known machine, for what the network does not say: `dgx-h100`. `ringnet list machines` names "
        "them, `ringnet show dgx-h100` tells numbers and sources.",
        examples=["dgx-h100"],
    )
    hosts: Annotated[int, Whole(1, MOST_WORKERS)] | None = Field(
        default=None,
        description="Hosts of the machine; as many as the workers take if left out, and workers as many as they hold.",
        examples=[16],
    )
    collective: Annotated[str, OneOf(COLLECTIVES, "collective")] = Field(
        default="all-reduce", description="What is computed together."
    )
    algorithm: AlgorithmNameOrKeys = Field(
        default="ring",
        description="How it is computed: a name, or a mapping with parameters, a file or a function: "
        "`{name: channel-ring, n_channels: 4}`, `{file: schedule.xml}`, `{python: my_ring.py:my_ring}`.",
        examples=["ring", {"name": "channel-ring", "n_channels": 4}],
    )
    workers: Annotated[int, Whole(1, MOST_WORKERS)] = Field(
        description="N, the number of workers; left out where files give it.", examples=[8]
    )
    message_bytes: MessageSize = Field(
        description="The whole buffer of one worker: `64 MiB`; MiB is 2^20 bytes, a whole number is one of bytes. "
        "Files of data give it too.",
        examples=["64 MiB", "1 GB"],
    )
    dtype: Annotated[str, OneOf(DTYPES, "dtype")] = Field("float32", description="Type of the elements.")
    reduce: Annotated[str, OneOf(REDUCTIONS, "reduction")] = Field(
        default="sum",
        description="What becomes of the workers' values; mean with weights is the weighted mean.",
    )
    weights: tuple[Annotated[float, Number()], ...] | None = Field(
        default=None, description="One number per worker, for a weighted mean: `[1, 3]`.", examples=[[1, 3]]
    )
    data: DataKeys = Field(
        default="random",
        description="random, ramp, a .npy file with a leading worker axis, or a list of one file per worker.",
        examples=["random", "gradients.npy", ["w0.npy", "w1.npy"]],
    )
    payload: PayloadKeys = Field(
        default="full",
        description="full: every element is carried and verified; {elements: 16}: 16 of each chunk; "
        "none: byte counts only. The time is the same.",
        examples=["full", {"elements": 16}],
    )
    seed: Annotated[int, Whole(0, 2**63 - 1, example=1)] = Field(
        default=0, description="Of random data, and of what is drawn or lost by chance.", examples=[1]
    )
    engine: Annotated[str, OneOf(ENGINES, "engine", ("auto",))] = Field(
        default="auto", description="What computes the times; auto takes the fastest that is exact."
    )
    repeat: Annotated[int, Whole(1, MOST_RUNS, example=200)] | None = Field(
        default=None,
        description="So many runs, each with draws of its own: median, mean and percentiles of the time, each with an "
        "interval: `200`.",
        examples=[200],
    )
    until: UntilKeys | None = Field(
        default=None,
        description="In place of repeat: as many runs as the interval of a figure takes to be so narrow: "
        "`{half_width: 1 %}`.",
        examples=[{"half_width": "1 %"}],
    )
    network: NetworkKeys = Field(
        description="Over what the transfers move.", examples=[{"bandwidth": "50 GB/s", "latency": "500 ns"}]
    )
    worker: WorkerKeys = Field(default=WorkerKeys.model_construct(), description="How the workers behave.")
    jobs: tuple[JobKeys, ...] = Field(
        default=(),
        description="Other collectives that run beside this one on the same network, each with workers of its own: "
        "`[{name: other, workers: 8, message: 64 MiB}]`.",
        examples=[[{"workers": 8, "message": "64 MiB"}]],
    )
    background: tuple[TrafficKeys, ...] = Field(
        default=(),
        description="Traffic of nobody's collective: `[{from: 0, to: 4, burst: 1 MiB, rate: 10 GB/s}]`.",
        examples=[[{"from": 0, "to": 4, "burst": "1 MiB", "rate": "10 GB/s"}]],
    )
    trouble: tuple[TroubleKeys, ...] = Field(
        default=(),
        description="What goes wrong, and when: `[{link: 0->1, down: {at: 1 ms, for: 2 s}}, {worker: 3, dies: 2 ms}]`.",
        examples=[[{"worker": 3, "dies": "2 ms"}]],
    )
    on_failure: FailureKeys | None = Field(
        default=None,
        description="What the collective does when a worker has died; it waits if left out: "
        "`{policy: shrink, detect: 1 s, agree: 10 ms}`.",
        examples=[{"policy": "shrink", "detect": "1 s"}],
    )
    training: TrainingKeys | None = Field(
        default=None, description="What the all-reduce is for: the steps of a training."
    )
    step: StepKeys | None = Field(
        default=None,
        description="A step of a training in time, computation over communication: `ringnet step` reads it.",
        examples=[{"model": "gpt2-small", "rate": "150 TFLOP/s"}],
    )
    sweep: SweepKeys | None = Field(default=None, description="Many runs from one file.")
    compare: CompareKeys | None = Field(default=None, description="What `ringnet compare` compares.")
    report: ReportKeys = Field(default=ReportKeys.model_construct(), description="What is written of the results.")

    @property
    def algorithm_name(self) -> str:
        """The name of the algorithm, of its file or of its function."""
        return name_of(self.algorithm)

    @property
    def job_names(self) -> tuple[str, ...]:
        """Names of all jobs, the scenario's own first."""
        others = (one.name or f"job {number}" for number, one in enumerate(self.jobs, start=1))
        return (self.name, *others)

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that the data comes from; none for data that is made."""
        if isinstance(self.data, str):
            return () if self.data in MADE_DATA else (self.data,)
        return self.data

    @property
    def carry(self) -> int | None:
        """Elements of each chunk that are carried: 0 for none, None for all."""
        if isinstance(self.payload, ElementKeys):
            return self.payload.elements
        return None if self.payload == "full" else 0
