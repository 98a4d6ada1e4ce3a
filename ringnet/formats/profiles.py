"""Profiles on disk: YAML with units in text, read by ``predict`` and by scenarios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from ringnet.analysis.calibration import MODELS, PASSES, Profile, Regime, Setting, Source
from ringnet.analysis.calibration.boundaries import Boundary
from ringnet.errors import Fault, InputError
from ringnet.formats.profile_text import KEY, UNLIMITED, VERSIONS, profile_text
from ringnet.formats.reading import read_bounded
from ringnet.formats.yaml_marks import read_marked
from ringnet.formats.yaml_reader import Document, Reader
from ringnet.units import Kind, format_bytes

__all__ = ["profile_text", "read_profile"]

_MOST_BYTES = 2**20
_KEYS = (
    KEY, "collective", "verdicts", "sources", "measured", "launch_told_from_hops", "error_per_doubling",
    "error_per_doubling_measured", "regimes",
)  # fmt: skip
_PARAMETERS = ("launch", "latency", "latency_between_nodes", "bandwidth", "bandwidth_between_nodes")
_OF_REGIME = ("up_to", "model", *_PARAMETERS, "standard_errors", "scatter", "points", "ends")
#: By how much ``up_to``, which is for people, may differ from what ``ends`` say.
_SAME = 0.01


def read_profile(path: Path | str) -> Profile:
    """Read a profile.

    Raises
    ------
    InputError
        With every mistake in it: line, path, value, and what would be right.
    """
    file, right = str(path), "a file that `ringnet calibrate --out` wrote"
    marked = read_marked(read_bounded(Path(path), _MOST_BYTES, "a profile"), file, right)
    if not isinstance(marked.data, dict) or KEY not in marked.data:
        raise InputError(Fault("this is no profile", KEY, file, right=right))
    reader = Reader(file, marked)
    profile = _profile(marked.data, reader)
    if reader.faults:
        raise InputError(*sorted(reader.faults, key=lambda fault: fault.line or 0))
    return profile


def _profile(document: Document, read: Reader) -> Profile:
    version = document[KEY]
    if isinstance(version, bool) or version not in VERSIONS:
        read.fault("a version that is not known", KEY, version, ", ".join(map(str, VERSIONS)))
    read.known(document, _KEYS)
    measured = read.mapping(document, "measured")
    settings, smallest, largest = ((Setting(2, 0),), 1, 1) if measured is None else _measured(measured, read)
    regimes = [
        _regime(item, f"regimes.{place}.", read) for place, item in enumerate(read.items(document, "regimes"))
    ]
    if measured is not None and not read.is_wrong("measured"):
        _check(settings, regimes, read)
    return Profile(
        collective=read.one_of(document, "collective", PASSES, ""),
        regimes=tuple(regimes),
        settings=settings,
        smallest_bytes=smallest,
        largest_bytes=largest,
        is_split=read.flag(document, "launch_told_from_hops"),
        drift=read.share(document, "error_per_doubling", ""),
        has_drift=read.flag(document, "error_per_doubling_measured"),
        verdicts=read.texts(document, "verdicts"),
        sources=tuple(
            _source(item, f"sources.{place}.", read)
            for place, item in enumerate(read.items(document, "sources"))
        ),
    )


def _measured(measured: Document, read: Reader) -> tuple[tuple[Setting, ...], int, int]:
    read.known(measured, ("settings", "smallest", "largest"), "measured.")
    settings = [
        _setting(item, f"measured.settings.{place}.", read, ())
        for place, item in enumerate(read.items(measured, "settings", "measured."))
    ]
    if not settings:
        read.fault("what was measured is missing", "measured.settings", right="[{workers: 8, nodes: 2}]")
    smallest, largest = (
        int(read.quantity(measured, key, "bytes", "measured.")) for key in ("smallest", "largest")
    )
    if smallest > largest:
        read.fault("the smallest size is above the largest", "measured.smallest", measured["smallest"])
    return tuple(settings), smallest, largest


def _setting(item: Document, path: str, read: Reader, more: Sequence[str]) -> Setting:
    read.known(item, ("workers", "nodes", *more), path)
    setting = Setting(read.whole(item, "workers", path, 2), read.whole(item, "nodes", path, 0, default=0))
    if setting.n_nodes > setting.n_workers:
        read.fault("more nodes than workers", f"{path}nodes", setting.n_nodes, f"at most {setting.n_workers}")
    return setting


def _source(item: Document, path: str, read: Reader) -> Source:
    read.known(item, ("file", "sha256", "points"), path)
    file, digest = (read.text(item, key, path) for key in ("file", "sha256"))
    return Source(file, digest, read.whole(item, "points", path, 0))


def _regime(item: Document, path: str, read: Reader) -> Regime:
    read.known(item, _OF_REGIME, path)
    ends = [
        _end(end, f"{path}ends.{place}.", read)
        for place, end in enumerate(read.items(item, "ends", path) if "ends" in item else [])
    ]
    errors = (read.mapping(item, "standard_errors", path) if "standard_errors" in item else None) or {}
    read.known(errors, _PARAMETERS, f"{path}standard_errors.")
    found = Regime(
        model=read.one_of(item, "model", MODELS, path),
        launch_s=read.quantity(item, "launch", "seconds", path),
        latency_s=read.quantity(item, "latency", "seconds", path),
        between_latency_s=_optional(item, "latency_between_nodes", "seconds", path, read),
        bandwidth_Bps=_optional(item, "bandwidth", "bytes_per_second", path, read),
        between_bandwidth_Bps=_optional(item, "bandwidth_between_nodes", "bytes_per_second", path, read),
        scatter=read.share(item, "scatter", path),
        n_points=read.whole(item, "points", path, 0),
        errors={name: read.share(errors, name, f"{path}standard_errors.") for name in map(str, errors)},
        ends=tuple(ends),
    )
    _check_regime(found, item, path, read)
    return found


def _optional(item: Document, key: str, kind: Kind, path: str, read: Reader) -> float | None:
    if key not in item:
        return None
    is_unlimited = item[key] == UNLIMITED and kind == "bytes_per_second"
    return math.inf if is_unlimited else read.quantity(item, key, kind, path)


def _end(item: Document, path: str, read: Reader) -> Boundary:
    setting = _setting(item, path, read, ("after", "before"))
    after = read.quantity(item, "after", "bytes", path, default=0.0)
    before = read.quantity(item, "before", "bytes", path, default=math.inf)
    if after >= before:
        right = f"below {item.get('before')}"
        read.fault("a regime that ends before it ends", f"{path}after", item.get("after", "0 B"), right)
    return Boundary(setting, after, before)


def _check_regime(found: Regime, item: Document, path: str, read: Reader) -> None:
    """Check what no single value of a regime shows."""
    if found.bandwidth_Bps is None and found.between_bandwidth_Bps is None:
        right = f"50 GB/s, or {UNLIMITED} where bytes cost nothing that was seen"
        read.fault("one of bandwidth and bandwidth_between_nodes is wanted", f"{path}bandwidth", right=right)
    is_sound = not read.is_wrong(f"{path}latency", f"{path}latency_between_nodes")
    between_s = found.between_latency_s
    if is_sound and between_s is not None and between_s < found.latency_s * (1 - 1e-6):
        message = "a hop between nodes is no faster than one inside"
        value, right = item["latency_between_nodes"], f"at least {item.get('latency')}"
        read.fault(message, f"{path}latency_between_nodes", value, right)
    if is_sound and not found.parameters.any():
        read.fault("a regime in which nothing takes any time", f"{path}latency", item.get("latency"), "5 us")
    up_to = read.quantity(item, "up_to", "bytes", path, default=math.inf)
    told = found.up_to_bytes()
    if (
        "up_to" in item
        and not read.is_wrong(f"{path}ends", f"{path}up_to")
        and not told * (1 - _SAME) - 1 <= up_to <= told * (1 + _SAME) + 1
    ):
        right = f"{round(told)} B, or left out" if math.isfinite(told) else "left out"
        read.fault("ends says otherwise of where the regime ends", f"{path}up_to", item["up_to"], right)


def _check(settings: Sequence[Setting], regimes: Sequence[Regime], read: Reader) -> None:
    """Check what no single regime shows: that they follow each other in every setting, and that one is the last."""
    if not regimes:
        read.fault("a profile has one regime at least", "regimes")
        return
    if regimes[-1].ends:
        read.fault("the last regime has no end", f"regimes.{len(regimes) - 1}.ends", right="[]")
    for place, regime in enumerate(regimes[:-1]):
        at = f"regimes.{place}.ends"
        if not regime.ends:
            right = "[{workers: 8, after: 1 KiB, before: 2 KiB}]"
            read.fault("only the last regime has no end", at, right=right)
        seen = [end.setting for end in regime.ends]
        for number, setting in enumerate(seen):
            if setting not in settings:
                read.fault("this setting is not among those measured", f"{at}.{number}", setting)
            if setting in seen[:number]:
                read.fault("this setting is here twice", f"{at}.{number}", setting)
    for place, (below, above) in enumerate(
        pairwise(regimes[:-1]) if not read.is_wrong("regimes") else (), start=1
    ):
        _check_order(below, above, f"regimes.{place}.ends", read)


def _check_order(below: Regime, above: Regime, at: str, read: Reader) -> None:
    ends = {end.setting: end for end in below.ends}
    for number, end in enumerate(above.ends):
        before = ends.get(end.setting, end)
        if end.last_bytes < before.last_bytes or end.first_bytes < before.first_bytes:
            right = f"at least {format_bytes(round(before.last_bytes))}"
            value = format_bytes(round(end.last_bytes))
            message = f"regimes must follow each other by size: at {end.setting} this one ends before the one before"
            read.fault(message, f"{at}.{number}", value, right)
