"""What a scenario draws: every drawn value with its place, as a distribution, and the mean that stands for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from ringnet.chance import (
    BoundedPareto,
    Distribution,
    Exponential,
    Fixed,
    Gamma,
    Lognormal,
    Mixture,
    Noise,
    NormalAboveZero,
    Sample,
    Shifted,
)
from ringnet.documents.document import Path
from ringnet.errors import Fault, InputError
from ringnet.formats.value_columns import read_columns
from ringnet.scenario.keys.drawn import (
    DrawnRate,
    DrawnSeconds,
    NoiseKeys,
    RatePart,
    RateSpread,
    SecondsPart,
    SecondsSpread,
)
from ringnet.scenario.keys.kinds import FoundFile
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.trouble import TroubleKeys
from ringnet.units import Kind

Drawn: TypeAlias = DrawnSeconds | DrawnRate
AnySpread: TypeAlias = SecondsSpread | RateSpread

#: The keys that may be drawn, and whose they are: of links and of workers, which exceptions have too.
OF_LINKS = {"bandwidth": "bandwidth_Bps", "latency": "latency_s"}
OF_WORKERS = {
    "send_overhead": "send_overhead_s",
    "recv_overhead": "recv_overhead_s",
    "reduce_rate": "reduce_Bps",
    "start": "start_s",
    "launch": "launch_s",
}
#: Those of them that come once in a run.
ONCE = ("start", "launch")


class DrawnValue(NamedTuple):
    """A drawn value of a scenario, where it stands, and whose it is; ``is_trouble``: it says when something fails."""

    path: Path
    keys: Drawn
    whose: Literal["link", "worker"]
    is_trouble: bool = False

    @property
    def per(self) -> str:
        """What has a draw of its own."""
        if self.keys.per is not None:
            return self.keys.per
        if self.is_trouble:
            return self.whose
        return "worker" if self.path[-1] in ONCE else "transfer"


def drawn_values(keys: Keys) -> Iterator[DrawnValue]:
    """Yield everything that a scenario draws, noise apart."""
    network, worker = keys.network, keys.worker
    around = [
        (("network",), network, OF_LINKS),
        *((("network", "links_of", name), one, OF_LINKS) for name, one in network.links_of.items()),
        *((("network", "links", name), one, OF_LINKS) for name, one in network.links.items()),
        (("worker",), worker, OF_WORKERS),
        *((("worker", "exceptions", name), one, OF_WORKERS) for name, one in worker.exceptions.items()),
    ]
    for path, inside, names in around:
        for key, field in names.items():
            value = getattr(inside, field)
            if isinstance(value, Drawn):
                yield DrawnValue((*path, key), value, "link" if names is OF_LINKS else "worker")
    for number, one in enumerate(keys.trouble):
        whose: Literal["link", "worker"] = "link" if one.worker is None else "worker"
        for within, value in _times(one):
            if isinstance(value, Drawn):
                yield DrawnValue(("trouble", number, *within), value, whose, is_trouble=True)


def _times(one: TroubleKeys) -> Iterator[tuple[Path, object]]:
    """Yield every time of some trouble, and where it stands."""
    yield ("dies",), one.dies_s
    for kind in ("slow", "down", "flap", "pause"):
        for field, value in getattr(one, kind) or ():
            yield (kind, field.removesuffix("_s")), value


def what_is_drawn(keys: Keys) -> list[Path]:
    """Return the path of everything that is drawn: noise, and what goes wrong by chance, too."""
    noise = [("worker", "noise")] if keys.worker.noise is not None else []
    chances = [
        ("trouble", number, key)
        for number, one in enumerate(keys.trouble)
        for key in ("loss", "probability")
        if getattr(one, key) is not None
    ]
    return [*(one.path for one in drawn_values(keys)), *noise, *chances]


def drawn_words(keys: Keys) -> str:
    """Say what is drawn, and for what each: ``latency for each transfer``; nothing where nothing is."""
    said = [
        f"{'trouble' if one.is_trouble else str(one.path[-1]).replace('_', ' ')} for each {one.per}"
        for one in drawn_values(keys)
    ]
    said += ["noise for each worker"] if keys.worker.noise is not None else []
    for one in keys.trouble:
        whose = "link" if one.worker is None else "worker"
        said += [f"trouble for each {whose}"] if one.probability is not None else []
        said += ["losses for each link"] if one.loss is not None else []
    return ", ".join(dict.fromkeys(said))


def refuse_what_is_drawn(keys: Keys, who: str) -> None:
    """Refuse, for whoever has nothing to say of chance; what goes wrong by chance does so as in the first run.

    Raises
    ------
    InputError
        Something is drawn.
    """
    message = f"{who} takes nothing that is drawn"
    paths = [".".join(map(str, path)) for path in what_is_drawn(keys) if path[0] != "trouble"]
    if paths:
        raise InputError(*(Fault(message, path, right="a plain value") for path in paths))


def mean_of(value: float | Drawn | None) -> float:
    """Return the mean of what is drawn, and of what is not the value."""
    return distribution_of(value).mean if isinstance(value, Drawn) else float(value or 0.0)


def _at_least(keys: AnySpread, made: Callable[[float, float], Distribution]) -> Distribution:
    """Return what is drawn above the least value; mean and cv are those of the whole."""
    mean, cv, least = keys.mean or 0.0, keys.cv or 0.0, keys.least or 0.0
    more = made(mean - least, cv * mean / (mean - least))
    return Shifted(least, more) if least else more


def _mixture(keys: AnySpread) -> Distribution:
    assert isinstance(keys, Drawn)
    parts = [(part.probability, distribution_of(part)) for part in keys.of or ()]
    left = 1.0 - sum(probability for probability, _ in parts if probability is not None)
    return Mixture(tuple((left if probability is None else probability, one) for probability, one in parts))


def _sample(keys: AnySpread) -> Distribution:
    return Sample(tuple(sorted(keys.values if keys.values is not None else _in_file(keys))))


def _in_file(keys: AnySpread) -> list[float]:
    kind: Kind = "seconds" if isinstance(keys, SecondsSpread) else "bytes_per_second"
    assert isinstance(keys.file, FoundFile)
    return columns_of(keys.file, () if keys.column is None else (keys.column,), kind)[0]


@lru_cache(maxsize=64)
def columns_of(file: FoundFile, names: tuple[str, ...], kind: Kind) -> list[list[float]]:
    """Return columns of a file that was found; `InputError` for what is wrong in it."""
    return read_columns(file.path, names, kind)


#: What makes the distribution of each name of `ringnet.scenario.keys.drawn.SPREADS`.
MADE: Mapping[str, Callable[[AnySpread], Distribution]] = {
    "lognormal": lambda keys: _at_least(keys, Lognormal),
    "exponential": lambda keys: _at_least(keys, lambda mean, _: Exponential(mean)),
    "gamma": lambda keys: _at_least(keys, Gamma),
    "normal": lambda keys: NormalAboveZero(keys.mean or 0.0, (keys.cv or 0.0) * (keys.mean or 0.0)),
    "pareto": lambda keys: BoundedPareto(keys.mean or 0.0, keys.shape or 0.0, keys.most or 0.0),
    "mixture": _mixture,
    "sample": _sample,
}


@lru_cache(maxsize=256)
def distribution_of(keys: AnySpread) -> Distribution:
    """Return the distribution that keys stand for, which are known to be right."""
    if isinstance(keys, SecondsPart | RatePart) and keys.value is not None:
        return Fixed(keys.value)
    return MADE[keys.distribution or "sample"](keys)


def noise_of(keys: NoiseKeys) -> Noise:
    """Return the interruptions that keys stand for, which are known to be right."""
    if keys.for_s is not None:
        return Noise((0.0,), (keys.for_s,), keys.every_s)
    assert isinstance(keys.file, FoundFile)
    at_s, for_s = columns_of(keys.file, ("at", "for"), "seconds")
    rows = sorted(zip(at_s, for_s, strict=True))
    return Noise(tuple(at for at, _ in rows), tuple(lasts for _, lasts in rows), keys.every_s)
