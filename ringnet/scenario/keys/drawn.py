"""The keys of what is drawn: a mapping in place of a number, with a mean, a distribution and what that takes."""

from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import Discriminator, Field, Tag

from ringnet.scenario.keys.base import (
    MAPPING,
    ONE,
    NotEmpty,
    Rate,
    ReduceRate,
    Seconds,
    Settings,
    SomeSeconds,
    Start,
    mapping_or_one,
)
from ringnet.scenario.keys.kinds import FileName, FoundFile, Line, Number, OneOf, Share


class Spread(NamedTuple):
    """What a distribution takes: the keys that it needs, and those that it may have."""

    needs: tuple[str, ...]
    may: tuple[str, ...]
    summary: str


SPREADS: dict[str, Spread] = {
    "lognormal": Spread(("mean", "cv"), ("least",), "what many small factors make"),
    "exponential": Spread(("mean",), ("least",), "the time to the next of events that come at random"),
    "gamma": Spread(("mean", "cv"), ("least",), "a sum of waits; with cv 1 it is exponential"),
    "normal": Spread(("mean", "cv"), (), "normal, and what lies below zero is never drawn"),
    "pareto": Spread(("mean", "shape", "most"), (), "heavy tails up to a bound"),
    "mixture": Spread(("of",), (), "now one, now another, each with a probability"),
    "sample": Spread((), ("values", "file", "column"), "what was measured, from a list or a CSV file"),
}
#: What has a draw of its own.
PER = ("transfer", "link", "worker", "run")
#: Keys of every drawn value that say what is drawn; the others say for what.
OF_SPREADS = ("mean", "cv", "least", "shape", "most", "of", "values", "file", "column")

_CV = "Coefficient of variation: the standard deviation by the mean: `0.3`."
_SHAPE = "Of pareto: a share of 2^-shape of what exceeds a value exceeds twice of it: `1.5`."
_FILE = "Of a sample: a CSV file, with one row for each value."
_COLUMN = "The column of the file; it may be left out where there is one. A name such as `latency_us` has the unit."
_LEAST = "No draw is below this; mean and cv are those of the whole."
_MEAN, _MOST, _VALUES = "Mean of what is drawn", "Of pareto: no draw is above this", "Of a sample: the values"
_VALUE, _PROBABILITY = (
    "In a mixture: always this",
    ("How often: `0.0001`, `0.01 %` or `1 of 10000`; one of them may leave it out and takes what is left."),
)
_PER = (
    "What has a draw of its own: each transfer (on each link that it crosses), each link, each worker, or each run; "
    "transfer if left out, of a start worker."
)


class DrawnKeys(Settings):
    """What is drawn, but for its quantity."""

    distribution: Annotated[str, OneOf(SPREADS, "distribution")] | None = Field(
        default=None,
        description="; ".join(f"{name}: {spread.summary}" for name, spread in SPREADS.items()) + ".",
        examples=["lognormal"],
    )
    cv: Annotated[float, Number(0.3)] | None = Field(default=None, description=_CV, examples=[0.3])
    shape: Annotated[float, Number(1.5)] | None = Field(default=None, description=_SHAPE, examples=[1.5])
    file: Annotated[FoundFile | str, FileName("latencies.csv")] | None = Field(
        default=None, description=_FILE, examples=["latencies.csv"]
    )
    column: Annotated[str, Line("latency_us")] | None = Field(
        default=None, description=_COLUMN, examples=["latency_us"]
    )

    def given(self) -> dict[str, Any]:
        """Return what is given of the keys that say what is drawn."""
        values = {key: getattr(self, key, None) for key in OF_SPREADS}
        return {key: value for key, value in values.items() if value is not None}


class SecondsSpread(DrawnKeys):
    """A time that is drawn."""

    mean: Seconds | None = Field(default=None, description=f"{_MEAN}: `5 us`.", examples=["5 us"])
    least: Seconds | None = Field(default=None, description=f"{_LEAST}: `4 us`.", examples=["4 us"])
    most: Seconds | None = Field(default=None, description=f"{_MOST}: `1 ms`.", examples=["1 ms"])
    values: tuple[Seconds, ...] | None = Field(
        default=None, description=f"{_VALUES}: `[4 us, 5 us, 9 us]`.", examples=[["4 us", "5 us", "9 us"]]
    )


class RateSpread(DrawnKeys):
    """A rate that is drawn."""

    mean: Rate | None = Field(default=None, description=f"{_MEAN}: `50 GB/s`.", examples=["50 GB/s"])
    least: Rate | None = Field(default=None, description=f"{_LEAST}: `40 GB/s`.", examples=["40 GB/s"])
    most: Rate | None = Field(default=None, description=f"{_MOST}: `60 GB/s`.", examples=["60 GB/s"])
    values: tuple[Rate, ...] | None = Field(
        default=None, description=f"{_VALUES}: `[48 GB/s, 50 GB/s]`.", examples=[["48 GB/s", "50 GB/s"]]
    )


class SecondsPart(SecondsSpread):
    """One of the times of a mixture."""

    value: Seconds | None = Field(default=None, description=f"{_VALUE}: `2 ms`.", examples=["2 ms"])
    probability: Annotated[float, Share()] | None = Field(default=None, description=_PROBABILITY)


class RatePart(RateSpread):
    """One of the rates of a mixture."""

    value: Rate | None = Field(default=None, description=f"{_VALUE}: `1 GB/s`.", examples=["1 GB/s"])
    probability: Annotated[float, Share()] | None = Field(default=None, description=_PROBABILITY)


class DrawnSeconds(SecondsSpread):
    """A time that is drawn, and for what."""

    of: Annotated[tuple[SecondsPart, ...], NotEmpty] | None = Field(
        default=None,
        description="Of a mixture: `[{value: 5 us}, {value: 2 ms, probability: 1 of 10000}]`.",
        examples=[[{"value": "5 us"}, {"value": "2 ms", "probability": "1 of 10000"}]],
    )
    per: Annotated[str, OneOf(PER, "thing to draw for")] | None = Field(
        default=None, description=_PER, examples=["link"]
    )


class DrawnRate(RateSpread):
    """A rate that is drawn, and for what."""

    of: Annotated[tuple[RatePart, ...], NotEmpty] | None = Field(
        default=None,
        description="Of a mixture: `[{value: 50 GB/s}, {value: 5 GB/s, probability: 1 %}]`.",
        examples=[[{"value": "50 GB/s"}, {"value": "5 GB/s", "probability": "1 %"}]],
    )
    per: Annotated[str, OneOf(PER, "thing to draw for")] | None = Field(
        default=None, description=_PER, examples=["link"]
    )


class NoiseKeys(Settings):
    """Interruptions of a worker's processor, again and again, in a phase of each worker's own."""

    file: Annotated[FoundFile | str, FileName("noise.csv")] | None = Field(
        default=None,
        description="A CSV file with a row for each interruption: columns `at` and `for`, with units in the cells or "
        "in the names (`at_us`).",
        examples=["noise.csv"],
    )
    every_s: SomeSeconds = Field(description="The period after which they come again: `1 ms`.", examples=["1 ms"])
    for_s: Seconds | None = Field(
        default=None, description="In place of a file: how long one is: `25 us`.", examples=["25 us"]
    )


#: A number, or how it is drawn.
DrawableSeconds: TypeAlias = Annotated[
    Annotated[Seconds, Tag(ONE)] | Annotated[DrawnSeconds, Tag(MAPPING)], Discriminator(mapping_or_one)
]
DrawableSomeSeconds: TypeAlias = Annotated[
    Annotated[SomeSeconds, Tag(ONE)] | Annotated[DrawnSeconds, Tag(MAPPING)], Discriminator(mapping_or_one)
]
DrawableStart: TypeAlias = Annotated[
    Annotated[Start, Tag(ONE)] | Annotated[DrawnSeconds, Tag(MAPPING)], Discriminator(mapping_or_one)
]
DrawableRate: TypeAlias = Annotated[
    Annotated[Rate, Tag(ONE)] | Annotated[DrawnRate, Tag(MAPPING)], Discriminator(mapping_or_one)
]
DrawableReduceRate: TypeAlias = Annotated[
    Annotated[ReduceRate, Tag(ONE)] | Annotated[DrawnRate, Tag(MAPPING)], Discriminator(mapping_or_one)
]
