"""The keys of what runs beside: other jobs, and traffic of nobody's collective."""

from typing import Annotated, TypeAlias

from pydantic import Discriminator, Field, Tag

from ringnet.collectives import ALGORITHMS, COLLECTIVES
from ringnet.scenario.keys.base import (
    LIST,
    MOST_WORKERS,
    ONE,
    LinkName,
    MessageSize,
    NotEmpty,
    PlaceNumber,
    Rate,
    Seats,
    Seconds,
    Settings,
    SomeSeconds,
    SomeSize,
    list_or_one,
)
from ringnet.scenario.keys.kinds import Line, OneOf, Whole

JobWorkers: TypeAlias = Annotated[Annotated[int, Whole(1, MOST_WORKERS), Tag(ONE)] | Seats, Discriminator(list_or_one)]
_JobName: TypeAlias = Annotated[str, Line("other job", 200)]
JobNames: TypeAlias = Annotated[
    Annotated[_JobName, Tag(ONE)] | Annotated[tuple[_JobName, ...], NotEmpty, Tag(LIST)],
    Discriminator(list_or_one),
]


class JobKeys(Settings):
    """Another collective on the same network; but for weights and exceptions, the rest is as in the scenario."""

    name: Annotated[str, Line("other job", 40)] | None = Field(
        default=None, description="For tables; `job 1` and so on if left out.", examples=["other job"]
    )
    workers: JobWorkers = Field(
        description="How many, at the places after all others; or a list of places, in the order of its ring.",
        examples=[8, [8, 9, 10, 11]],
    )
    message_bytes: MessageSize = Field(description="The whole buffer of one worker: `64 MiB`.", examples=["64 MiB"])
    collective: Annotated[str, OneOf(COLLECTIVES, "collective")] | None = Field(
        default=None, description="That of the scenario if left out."
    )
    algorithm: Annotated[str, OneOf(ALGORITHMS, "algorithm")] | None = Field(
        default=None, description="That of the scenario if left out."
    )
    after: JobNames | None = Field(
        default=None,
        description="It starts when these jobs have ended on all their workers; the scenario has a name, too.",
        examples=["other job", ["other job", "quickstart"]],
    )
    start_s: Seconds = Field(default=0.0, description="When its workers start, with after from then on: `20 us`.")

    @property
    def n_workers(self) -> int:
        """How many workers it has, wherever they are."""
        return self.workers if isinstance(self.workers, int) else len(self.workers)

    @property
    def follows(self) -> tuple[str, ...]:
        """Names of the jobs that have to end first."""
        return (self.after,) if isinstance(self.after, str) else self.after or ()


class TrafficKeys(Settings):
    """Bursts of bytes from one place to another, or over some links."""

    name: Annotated[str, Line("storage", 40)] | None = Field(
        default=None, description="For tables; `traffic 1` and so on if left out.", examples=["storage"]
    )
    start: PlaceNumber | None = Field(default=None, alias="from", description="The place that sends.", examples=[0])
    end: PlaceNumber | None = Field(default=None, alias="to", description="The place that receives.", examples=[4])
    links: Annotated[tuple[LinkName, ...], NotEmpty] | None = Field(
        default=None, description="The links that it crosses, instead of from and to.", examples=[["3->4"]]
    )
    burst_bytes: SomeSize = Field(description="Bytes that move as one transfer does: `1 MiB`.", examples=["1 MiB"])
    rate_Bps: Rate | None = Field(
        default=None,
        description="A burst starts whenever the rate has room for it, again and again: `10 GB/s`. Left out, there is "
        "one burst.",
    )
    on_s: SomeSeconds | None = Field(default=None, description="With off: it sends for so long: `1 ms`.")
    off_s: Seconds | None = Field(default=None, description="With on: and then pauses for so long: `3 ms`.")
    begin_s: Seconds = Field(default=0.0, alias="start", description="When it begins: `20 us`.")
    stop_s: SomeSeconds | None = Field(default=None, description="When it ends: `1 ms`; with the run if left out.")
