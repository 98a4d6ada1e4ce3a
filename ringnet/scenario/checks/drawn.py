"""What is drawn: distributions without what they take, or that make no sense; and how often a run is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ringnet.chance import BoundedPareto
from ringnet.documents.document import Path
from ringnet.scenario.checks.mistake import Mistake, unread
from ringnet.scenario.drawn import (
    ONCE,
    AnySpread,
    DrawnValue,
    distribution_of,
    drawn_values,
    noise_of,
    what_is_drawn,
)
from ringnet.scenario.keys.drawn import SPREADS, RatePart, RateSpread, SecondsPart
from ringnet.scenario.keys.kinds import FoundFile
from ringnet.scenario.keys.model import Keys

#: The most that a normal rate may vary: beyond, what is cut at zero counts, and one by it has no mean.
MOST_NORMAL_CV = 0.2
#: Probabilities that add up to one but for this.
ROUNDING = 1e-9
#: What may have a draw of its own, by whose the number is.
ALLOWED = {
    "a link": ("transfer", "link", "run"),
    "a worker": ("transfer", "worker", "run"),
    "a start": ("worker", "run"),
    "a launch": ("worker", "run"),
    "trouble with a link": ("link", "run"),
    "trouble with a worker": ("worker", "run"),
}


def check_drawn(keys: Keys) -> Iterator[Mistake]:
    """Find what is wrong with what is drawn, each by itself."""
    for one in drawn_values(keys):
        yield from _whole(one)
        if one.whose == "link" and one.per == "transfer" and not one.is_trouble:
            yield from _in_parts(keys, one.path)
    if keys.worker.noise is not None:
        yield from _noise(keys)


def _in_parts(keys: Keys, path: Path) -> Iterator[Mistake]:
    """Find transfers that have draws of their own, and go in parts."""
    for key in ("packet", "window"):
        if getattr(keys.network, key) is not None:
            message = "transfers that go in parts have no draws of their own"
            yield Mistake(
                (*path, "per"),
                message,
                "per: link, or per: run",
                causes=(("network", key),),
                value="transfer",
            )


def _whole(one: DrawnValue) -> Iterator[Mistake]:
    whose = f"trouble with a {one.whose}" if one.is_trouble else f"a {one.whose}"
    whose = f"a {one.path[-1]}" if one.path[-1] in ONCE else whose
    if one.keys.per is not None and one.keys.per not in ALLOWED[whose]:
        message = f"what is drawn of {whose} has no draw for each {one.keys.per}"
        yield Mistake((*one.path, "per"), message, ", ".join(ALLOWED[whose]))
    yield from _spread(one.keys, one.path)


def _spread(keys: AnySpread, path: Path) -> Iterator[Mistake]:
    if isinstance(keys, SecondsPart | RatePart) and keys.value is not None:
        for key in ("distribution", *keys.given()):
            yield unread((*path, key), "it is always the value", (*path, "value"), right="one of the two")
        if isinstance(keys, RatePart) and not keys.value:
            yield Mistake((*path, "value"), "nothing would move", "1 GB/s")
        return
    if keys.distribution is None:
        yield Mistake((*path, "distribution"), "the key is missing", ", ".join(SPREADS))
        return
    name, spread = keys.distribution, SPREADS[keys.distribution]
    missing = [key for key in spread.needs if key not in keys.given()]
    for key in missing:
        message = f"the key is missing: {name} needs {' and '.join(spread.needs)}"
        yield Mistake((*path, key), message, _example(keys, key), causes=((*path, "distribution"),))
    for key in keys.given().keys() - {*spread.needs, *spread.may}:
        message = f"{name} has no {key}"
        yield unread((*path, key), message, (*path, "distribution"), right=_takers(key))
    if missing:
        return
    if _is_lost(keys):
        return
    wrong = [*_numbers(keys, path), *_PARTICULAR.get(name, lambda *_: ())(keys, path)]
    yield from wrong
    if isinstance(keys, RateSpread) and not wrong:
        yield from _rate(keys, path)


def _example(keys: AnySpread, key: str) -> str:
    info = type(keys).model_fields.get(key)
    return f"{key}: {(info.examples or [''])[0]}" if info is not None else "a mixture is made of plain distributions"


def _takers(key: str) -> str:
    names = [name for name, spread in SPREADS.items() if key in (*spread.needs, *spread.may)]
    return f"distribution: {' or '.join(names)}"


def _numbers(keys: AnySpread, path: Path) -> Iterator[Mistake]:
    for key in ("mean", "cv", "shape"):
        if getattr(keys, key) == 0:
            right = _example(keys, key).partition(": ")[2]
            yield Mistake((*path, key), "zero leaves nothing to draw", f"{right}, or a plain value for what stays")
    if keys.least is not None and keys.mean and keys.least >= keys.mean:
        message = "the mean is above the least"
        yield Mistake((*path, "least"), message, "a least below the mean", causes=((*path, "mean"),))


def _pareto(keys: AnySpread, path: Path) -> Iterator[Mistake]:
    if keys.mean is not None and keys.most is not None and keys.most <= keys.mean * (1 + ROUNDING):
        message = "the bound is above the mean"
        yield Mistake((*path, "most"), message, "some times the mean", causes=((*path, "mean"),))
    elif keys.mean and keys.shape and not BoundedPareto(keys.mean, keys.shape, keys.most or 0.0).exists:
        message = "with such a shape no mean is so far below the bound"
        yield Mistake((*path, "shape"), message, "a larger shape, or a smaller bound", causes=((*path, "most"),))


def _mixture(keys: AnySpread, path: Path) -> Iterator[Mistake]:
    parts: tuple[SecondsPart | RatePart, ...] = getattr(keys, "of", None) or ()
    for place, part in enumerate(parts):
        if part.value is None and part.distribution is None:
            message = "the key is missing: a part of a mixture has a value or a distribution"
            yield Mistake((*path, "of", place, "value"), message, _example(part, "value"))
        else:
            yield from _spread(part, (*path, "of", place))
    known = [part.probability for part in parts if part.probability is not None]
    open_parts, total = len(parts) - len(known), sum(known)
    if open_parts > 1:
        yield Mistake((*path, "of"), "one part at most may leave its probability out", "a probability for each other")
    elif total > 1 + ROUNDING or (not open_parts and total < 1 - ROUNDING):
        yield Mistake((*path, "of"), f"the probabilities add up to {total:.6g}", "1 in all", value="")


def _sample(keys: AnySpread, path: Path) -> Iterator[Mistake]:
    if (keys.values is None) == (keys.file is None):
        yield Mistake((*path, "values"), "a sample is a list of values or a file", "values, or file")
    elif keys.values == ():
        yield Mistake((*path, "values"), "the sample is empty", _example(keys, "values"))
    if keys.column is not None and keys.file is None:
        yield unread((*path, "column"), "there is no file", (*path, "file"), right="file: latencies.csv")


_PARTICULAR: dict[str, Callable[[AnySpread, Path], Iterator[Mistake]]] = {
    "pareto": _pareto,
    "mixture": _mixture,
    "sample": _sample,
}


def _rate(keys: RateSpread, path: Path) -> Iterator[Mistake]:
    """Find rates that come so near to zero that the time of a byte has no mean."""
    name, cv, right = keys.distribution, keys.cv or 0.0, "lognormal, or gamma with a cv below 1"
    near_zero = {
        "exponential": not keys.least,
        "gamma": cv >= 1 and not keys.least,
        "normal": cv > MOST_NORMAL_CV,
    }
    if near_zero.get(name or ""):
        message = "such a rate comes so near to zero that the time of a byte has no mean"
        right = f"a cv up to {MOST_NORMAL_CV}" if name == "normal" else right
        yield Mistake((*path, "cv" if keys.cv else "distribution"), message, right)
    elif name == "sample" and not distribution_of(keys).least:
        at = (*path, "values" if keys.values else "file")
        yield Mistake(at, "a rate of zero is among the values: nothing would move", "values above zero")


def _noise(keys: Keys) -> Iterator[Mistake]:
    noise, path = keys.worker.noise, ("worker", "noise")
    assert noise is not None
    if (noise.file is None) == (noise.for_s is None):
        message = "an interruption has a length, or a file says how long each is"
        yield Mistake((*path, "for"), message, "for: 25 us, or file: noise.csv")
        return
    if not noise.every_s:
        yield Mistake((*path, "every"), "a period lasts some time", "1 ms")
        return
    if not any(map(_works, (keys.worker, *keys.worker.exceptions.values()))):
        message = "no processor works: noise prolongs overheads and reductions"
        causes = tuple(("worker", key) for key in ("send_overhead", "recv_overhead", "reduce_rate"))
        yield unread(path, message, *causes, right="worker.recv_overhead: 1 us beside it")
    if noise.file is not None and not isinstance(noise.file, FoundFile):  # which is told where it is looked for
        return
    found = noise_of(noise)
    ends = [at + lasts for at, lasts in zip(found.at_s, found.for_s, strict=True)]
    if ends[-1] > noise.every_s or noise.for_s == noise.every_s:
        message = "the interruptions take more than the period" if noise.file is None else "they reach beyond it"
        yield Mistake((*path, "every"), message, "a longer period", causes=((*path, "file"), (*path, "for")))
    elif any(end > begin for end, begin in zip(ends, found.at_s[1:], strict=False)):
        yield Mistake((*path, "file"), "an interruption begins before the one before it has ended", "no overlap")
    elif found.share >= 1:
        yield Mistake((*path, "every"), "the processor is never free", "a longer period")


def _works(keys: object) -> bool:
    costs = [getattr(keys, name, None) for name in ("send_overhead_s", "recv_overhead_s")]
    rate = getattr(keys, "reduce_Bps", None)
    return any(map(bool, costs)) or not (rate is None or rate == float("inf"))


def is_right(keys: Keys) -> bool:
    """Whether everything that is drawn can be: else nothing can be made of it."""
    values = [*drawn_values(keys)]
    # What is never read keeps nobody from drawing; among it are keys that were left out.
    return not any(_is_lost(one.keys) or any(not wrong.unread for wrong in _whole(one)) for one in values)


def _is_lost(keys: AnySpread) -> bool:
    """Whether a file was not found, which is told where it was looked for."""
    return isinstance(keys.file, str) or any(map(_is_lost, getattr(keys, "of", None) or ()))


def check_repeats(keys: Keys) -> Iterator[Mistake]:
    """Find runs that are repeated though nothing is drawn, or too few for what is asked of them."""
    given = {"repeat": keys.repeat, "until": keys.until}
    asked = [(key,) for key, value in given.items() if value is not None]
    if len(asked) > 1:
        yield unread(("repeat",), "until says how many runs there are", ("until",), right="one of them")
    for path in asked:
        if not (what_is_drawn(keys) or (keys.step is not None and keys.step.noise)):
            message = "nothing is drawn, and all runs would be alike"
            right = "network.latency: {mean: 5 us, distribution: lognormal, cv: 0.3}"
            yield unread(path, message, ("network",), ("worker",), right=right)
        if keys.step is not None and path == ("until",):
            yield Mistake(path, "a step is repeated so often as is said", "repeat: 200", causes=(("step",),))
        if keys.training is not None:
            yield Mistake(path, "a training is not repeated", "without training", causes=(("training",),))
    if keys.until is not None and not 0 < keys.until.half_width < 1:
        yield Mistake(("until", "half_width"), "an interval has some width, and less than all", "1 %")
