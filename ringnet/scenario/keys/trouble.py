"""The keys of trouble: what goes wrong with links and workers, when, and what the collective does then."""

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field

from ringnet.scenario.keys.base import (
    MOST_WORKERS,
    LinkPattern,
    NotEmpty,
    PlaceNumber,
    Seconds,
    Settings,
    SomeSeconds,
    SomeSize,
)
from ringnet.scenario.keys.drawn import DrawableSeconds, DrawableSomeSeconds
from ringnet.scenario.keys.kinds import Number, OneOf, Share, Whole

Policy: TypeAlias = Literal["wait", "abort", "shrink", "spare"]
#: The most times that a link flaps.
MOST_FLAPS = 10_000
#: How many times slower something may become: beyond, it is as good as dead.
MOST_SLOWER = 1e6


class DownKeys(Settings):
    """A link carries nothing for a while; what is under way on it goes on afterwards."""

    at_s: DrawableSeconds = Field(description="When it goes down: `1 ms`.", examples=["1 ms"])
    for_s: DrawableSomeSeconds = Field(description="How long: `2 s`.", examples=["2 s"])
    retry_s: SomeSeconds | None = Field(
        default=None,
        description="What stands still is tried again so long after it went down, and each time twice as long after, "
        "as TCP does it: nothing moves before the first try at which the link is up. `200 ms`; left out, it goes on "
        "as soon as the link is up.",
    )


class FlapKeys(Settings):
    """A link goes down again and again."""

    at_s: DrawableSeconds = Field(description="When it first goes down: `1 ms`.", examples=["1 ms"])
    down_s: DrawableSomeSeconds = Field(
        description="How long it is down each time, drawn anew for each if it is drawn: `10 ms`.", examples=["10 ms"]
    )
    period_s: SomeSeconds | None = Field(
        default=None, description="From one time that it goes down to the next: `1 s`."
    )
    up_s: DrawableSomeSeconds | None = Field(
        default=None,
        description="In place of period: how long it is up in between, as drawn anew each time: "
        "`{mean: 1 s, distribution: exponential}`.",
        examples=["1 s"],
    )
    times: Annotated[int, Whole(1, MOST_FLAPS, example=5)] = Field(description="How often.", examples=[5])


class SlowKeys(Settings):
    """A link or a worker's processor becomes slower."""

    at_s: DrawableSeconds = Field(default=0.0, description="From when on: `1 ms`.", examples=["1 ms"])
    for_s: DrawableSomeSeconds | None = Field(
        default=None, description="How long; for ever if left out: `2 s`.", examples=["2 s"]
    )
    factor: Annotated[float, Number(2, 1, MOST_SLOWER)] = Field(description="How many times slower.", examples=[2])


class PauseKeys(Settings):
    """A worker's processor stands still for a while; links go on."""

    at_s: DrawableSeconds = Field(description="From when on: `1 ms`.", examples=["1 ms"])
    for_s: DrawableSomeSeconds = Field(description="How long: `2 s`.", examples=["2 s"])


class LossKeys(Settings):
    """A link loses packets by chance; they are sent again, after a timeout or with those sent after them."""

    probability: Annotated[float, Share(example="0.1 %")] = Field(
        description="Of each packet: `0.1 %`.", examples=["0.1 %"]
    )
    packet_bytes: SomeSize | None = Field(
        default=None,
        description="How much is lost at a time; that of network.packet if left out: `4 KiB`.",
        examples=["4 KiB"],
    )
    timeout_s: Seconds | None = Field(
        default=None, description="A packet that was lost is sent again so long after it was sent: `1 ms`."
    )
    go_back: Annotated[int, Whole(1, example=64)] | None = Field(
        default=None,
        description="In place of timeout: packets sent again for each that is lost, itself and those behind it.",
        examples=[64],
    )


class TroubleKeys(Settings):
    """One thing that goes wrong: with a link or with a worker."""

    link: LinkPattern | None = Field(
        default=None,
        description="Which link, by name: `0->1`; of each that `*` fits: `0->*`.",
        examples=["0->1"],
    )
    worker: Annotated[int, Whole(0, MOST_WORKERS, example=3)] | None = Field(
        default=None, description="Which worker, by number.", examples=[3]
    )
    slow: SlowKeys | None = Field(
        default=None, description="It becomes slower: `{at: 1 ms, factor: 2}`.", examples=[{"factor": 2}]
    )
    down: DownKeys | None = Field(
        default=None,
        description="A link carries nothing for a while: `{at: 1 ms, for: 2 s}`.",
        examples=[{"at": "1 ms", "for": "2 s"}],
    )
    flap: FlapKeys | None = Field(
        default=None,
        description="A link goes down again and again: `{at: 1 ms, down: 10 ms, period: 1 s, times: 5}`.",
        examples=[{"at": "1 ms", "down": "10 ms", "period": "1 s", "times": 5}],
    )
    loss: LossKeys | None = Field(
        default=None,
        description="A link loses packets: `{probability: 0.1 %, packet: 4 KiB, timeout: 1 ms}`.",
        examples=[{"probability": "0.1 %", "packet": "4 KiB", "timeout": "1 ms"}],
    )
    pause: PauseKeys | None = Field(
        default=None,
        description="A worker does nothing for a while: `{at: 1 ms, for: 2 s}`.",
        examples=[{"at": "1 ms", "for": "2 s"}],
    )
    dies_s: DrawableSeconds | None = Field(
        default=None,
        description="When it stops for ever: a link carries nothing more, a worker does nothing more: `2 ms`, or "
        "`{mean: 100 h, distribution: exponential}`.",
        examples=["2 ms"],
    )
    probability: Annotated[float, Share(example="10 %")] | None = Field(
        default=None,
        description="How likely it is that this goes wrong in a run, for each link and worker by itself: `10 %`; it "
        "always does if left out.",
        examples=["10 %"],
    )
    fails_over_s: Seconds | None = Field(
        default=None,
        description="With dies, of a link: so long after that, what stands there is sent again over the shortest other "
        "path, and what comes goes there: `50 us`.",
    )

    def kinds(self) -> list[str]:
        """Return which things are said to go wrong, by their keys."""
        names = {"dies_s": "dies"}
        kinds = ("slow", "down", "flap", "loss", "pause", "dies_s")
        return [names.get(kind, kind) for kind in kinds if getattr(self, kind) is not None]


class FailureKeys(Settings):
    """What the collective does about a worker that has died, or about a wait that is too long."""

    policy: Annotated[Policy, OneOf(get_args(Policy), "policy")] = Field(
        description="wait: for ever, and the run ends with who waits for whom; abort: as soon as one wait is longer "
        "than timeout; shrink: the survivors start again without the dead; spare: another worker takes the place."
    )
    timeout_s: SomeSeconds | None = Field(default=None, description="abort: the longest wait of a worker: `1 s`.")
    detect_s: Seconds = Field(default=0.0, description="shrink, spare: from a death until all know of it: `1 s`.")
    agree_s: Seconds = Field(default=0.0, description="Then, until all agree on who is left: `10 ms`.")
    rebuild_s: Seconds = Field(default=0.0, description="Then, until the new ring is connected: `100 ms`.")
    load_s: Seconds = Field(
        default=0.0, description="spare: then, until the new worker has what the dead one had: `5 s`."
    )
    spares: Annotated[tuple[PlaceNumber, ...], NotEmpty] | None = Field(
        default=None,
        description="spare: places of workers that stand by, taken in this order.",
        examples=[[8]],
    )
