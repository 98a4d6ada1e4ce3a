"""Profiles of a calibration on disk: YAML with units in text, for `predict` and for scenarios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ringnet.analysis.calibration import MODELS, PASSES, Profile, Regime, Setting, SourceFile
from ringnet.analysis.calibration.profile import Boundary
from ringnet.documents.values import ValueReader
from ringnet.documents.yaml_text import YamlKind, read_text, read_yaml, write_yaml
from ringnet.errors import Fault, InputError
from ringnet.units import Kind, format_bytes

#: The first key of the file, and the versions that are read.
KEY, VERSIONS = "ringnet_profile", (1,)
#: Bandwidth where bytes cost nothing that could be seen.
UNLIMITED = "unlimited"

_RIGHT = "a file that `ringnet calibrate --out` wrote"
_PROFILE = YamlKind("a profile", _RIGHT, n_bytes=1 << 20, n_values=50_000, depth=12)
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
    file = str(path)
    document, faults = read_yaml(read_text(path, _PROFILE), file, _PROFILE)
    if KEY not in document.data and not faults:
        raise InputError(Fault("this is no profile", KEY, file, right=_RIGHT))
    read = ValueReader(document)
    profile = None if faults else _profile(read)
    if profile is None or read.faults:
        raise InputError(*faults, *sorted(read.faults, key=lambda fault: fault.line or 0))
    return profile


def _profile(read: ValueReader) -> Profile:
    version = read[KEY]
    if isinstance(version, bool) or version not in VERSIONS:
        right = ", ".join(map(str, VERSIONS))
        read.fault("a version that is not known", KEY, value=version, right=right)
    read.known(*_KEYS)
    settings, smallest, largest = _measured(read)
    regimes = [_regime(regime) for regime in read.items("regimes")]
    if not read.is_wrong("measured"):
        _check_regimes(settings, regimes, read)
    return Profile(
        collective=read.one_of("collective", PASSES),
        regimes=tuple(regimes),
        settings=settings,
        smallest_bytes=smallest,
        largest_bytes=largest,
        is_split=read.flag("launch_told_from_hops"),
        drift=read.share("error_per_doubling"),
        has_drift=read.flag("error_per_doubling_measured"),
        verdicts=read.texts("verdicts"),
        sources=tuple(_source(source) for source in read.items("sources")),
    )


def _measured(top: ValueReader) -> tuple[tuple[Setting, ...], int, int]:
    read = top.mapping("measured")
    if top.is_wrong("measured"):
        return (Setting(2, 0),), 1, 1
    read.known("settings", "smallest", "largest")
    settings = [_setting(setting) for setting in read.items("settings")]
    if not settings:
        read.fault("what was measured is missing", "settings", right="[{workers: 8, nodes: 2}]")
    smallest, largest = (int(read.quantity(key, "bytes")) for key in ("smallest", "largest"))
    if smallest > largest:
        read.fault("the smallest size is above the largest", "smallest", value=read["smallest"])
    return tuple(settings), smallest, largest


def _setting(read: ValueReader, *more: str) -> Setting:
    read.known("workers", "nodes", *more)
    setting = Setting(read.whole("workers", 2), read.whole("nodes", 0, default=0))
    if setting.n_nodes > setting.n_workers:
        right = f"at most {setting.n_workers}"
        read.fault("more nodes than workers", "nodes", value=setting.n_nodes, right=right)
    return setting


def _source(read: ValueReader) -> SourceFile:
    read.known("file", "sha256", "points")
    return SourceFile(read.text("file"), read.text("sha256"), read.whole("points", 0))


def _regime(read: ValueReader) -> Regime:
    read.known(*_OF_REGIME)
    ends = [_end(end) for end in (read.items("ends") if "ends" in read else ())]
    errors: dict[str, float] = {}
    if "standard_errors" in read:
        inside = read.mapping("standard_errors")
        inside.known(*_PARAMETERS)
        errors = {name: inside.share(name) for name in inside.given}
    found = Regime(
        model=read.one_of("model", MODELS),
        launch_s=read.quantity("launch", "seconds"),
        latency_s=read.quantity("latency", "seconds"),
        between_latency_s=_optional(read, "latency_between_nodes", "seconds"),
        bandwidth_Bps=_optional(read, "bandwidth", "bytes_per_second"),
        between_bandwidth_Bps=_optional(read, "bandwidth_between_nodes", "bytes_per_second"),
        scatter=read.share("scatter"),
        n_points=read.whole("points", 0),
        errors=errors,
        ends=tuple(ends),
    )
    _check_regime(found, read)
    return found


def _optional(read: ValueReader, key: str, kind: Kind) -> float | None:
    if key not in read:
        return None
    is_unlimited = read[key] == UNLIMITED and kind == "bytes_per_second"
    return math.inf if is_unlimited else read.quantity(key, kind)


def _end(read: ValueReader) -> Boundary:
    setting = _setting(read, "after", "before")
    after = read.quantity("after", "bytes", default=0.0)
    before = read.quantity("before", "bytes", default=math.inf)
    if after >= before:
        value, right = read.get("after", "0 B"), f"below {read.get('before')}"
        read.fault("a regime that ends before it ends", "after", value=value, right=right)
    return Boundary(setting, after, before)


def _check_regime(found: Regime, read: ValueReader) -> None:
    """Check what no single value of a regime shows."""
    if found.bandwidth_Bps is None and found.between_bandwidth_Bps is None:
        right = f"50 GB/s, or {UNLIMITED} where bytes cost nothing that was seen"
        read.fault("one of bandwidth and bandwidth_between_nodes is wanted", "bandwidth", right=right)
    is_sound = not read.is_wrong("latency", "latency_between_nodes")
    between_s = found.between_latency_s
    if is_sound and between_s is not None and between_s < found.latency_s * (1 - 1e-6):
        message = "a hop between nodes is no faster than one inside"
        value, right = read["latency_between_nodes"], f"at least {read.get('latency')}"
        read.fault(message, "latency_between_nodes", value=value, right=right)
    if is_sound and not found.parameters.any():
        value = read.get("latency")
        read.fault("a regime in which nothing takes any time", "latency", value=value, right="5 us")
    up_to, at_ends = read.quantity("up_to", "bytes", default=math.inf), found.up_to_bytes()
    if (
        "up_to" in read
        and not read.is_wrong("ends", "up_to")
        and not at_ends * (1 - _SAME) - 1 <= up_to <= at_ends * (1 + _SAME) + 1
    ):
        right = f"{round(at_ends)} B, or left out" if math.isfinite(at_ends) else "left out"
        message = "ends says otherwise of where the regime ends"
        read.fault(message, "up_to", value=read["up_to"], right=right)


def _check_regimes(settings: Sequence[Setting], regimes: Sequence[Regime], read: ValueReader) -> None:
    """Check what no single regime shows: that they follow each other in every setting, and that one is the last."""
    if not regimes:
        read.fault("a profile has one regime at least", "regimes")
        return
    if regimes[-1].ends:
        read.fault("the last regime has no end", "regimes", len(regimes) - 1, "ends", right="[]")
    for place, regime in enumerate(regimes[:-1]):
        if not regime.ends:
            right = "[{workers: 8, after: 1 KiB, before: 2 KiB}]"
            read.fault("only the last regime has no end", "regimes", place, "ends", right=right)
        seen = [end.setting for end in regime.ends]
        for number, setting in enumerate(seen):
            at = ("regimes", place, "ends", number)
            if setting not in settings:
                read.fault("this setting is not among those measured", *at, value=setting)
            if setting in seen[:number]:
                read.fault("this setting is here twice", *at, value=setting)
    is_sound = not read.is_wrong("regimes")
    for place, (below, above) in enumerate(pairwise(regimes[:-1]) if is_sound else (), start=1):
        _check_order(below, above, place, read)


def _check_order(below: Regime, above: Regime, place: int, read: ValueReader) -> None:
    ends = {end.setting: end for end in below.ends}
    for number, end in enumerate(above.ends):
        before = ends.get(end.setting, end)
        if end.last_bytes < before.last_bytes or end.first_bytes < before.first_bytes:
            right = f"at least {format_bytes(round(before.last_bytes))}"
            value = format_bytes(round(end.last_bytes))
            message = f"regimes must follow each other by size: at {end.setting} this one ends before the one before"
            read.fault(message, "regimes", place, "ends", number, value=value, right=right)


# ---------------------------------------------------------------------------------------------------- writing


def profile_text(profile: Profile) -> str:
    """Return a profile as YAML."""
    head = "# Calibrated by ringnet. `up_to` is bytes of one transfer of a ring: a message over N.\n"
    return head + write_yaml(_profile_data(profile))


def _profile_data(profile: Profile) -> dict[str, Any]:
    return {
        KEY: VERSIONS[-1],
        "collective": profile.collective,
        "verdicts": list(profile.verdicts),
        "sources": [{"file": s.file, "sha256": s.sha256, "points": s.n_points} for s in profile.sources],
        "measured": {
            "settings": [_setting_data(setting) for setting in profile.settings],
            "smallest": _bytes(profile.smallest_bytes),
            "largest": _bytes(profile.largest_bytes),
        },
        "launch_told_from_hops": profile.is_split,
        "error_per_doubling": _digits(profile.drift),
        "error_per_doubling_measured": profile.has_drift,
        "regimes": [_regime_data(regime) for regime in profile.regimes],
    }


def _regime_data(regime: Regime) -> dict[str, Any]:
    between = regime.between_latency_s
    texts = {
        "up_to": _bytes(regime.up_to_bytes()) if math.isfinite(regime.up_to_bytes()) else None,
        "model": regime.model,
        "launch": _seconds(regime.launch_s),
        "latency": _seconds(regime.latency_s),
        "latency_between_nodes": None if between is None else _seconds(between),
        "bandwidth": _rate(regime.bandwidth_Bps),
        "bandwidth_between_nodes": _rate(regime.between_bandwidth_Bps),
        "standard_errors": {name: _digits(error) for name, error in regime.errors.items()},
        "scatter": _digits(regime.scatter),
        "points": regime.n_points,
        "ends": [_end_data(end) for end in regime.ends],
    }
    return {key: value for key, value in texts.items() if value is not None}


def _setting_data(setting: Setting) -> dict[str, int]:
    return {"workers": setting.n_workers, **({"nodes": setting.n_nodes} if setting.n_nodes else {})}


def _end_data(end: Boundary) -> dict[str, Any]:
    after = {"after": _bytes(end.last_bytes)} if end.last_bytes else {}
    before = {"before": _bytes(end.first_bytes)} if math.isfinite(end.first_bytes) else {}
    return {**_setting_data(end.setting), **after, **before}


def _bytes(n_bytes: float) -> str:
    return f"{round(n_bytes)} B"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e6:.7g} us" if seconds >= 1e-9 else "0 us"  # noqa: PLR2004 -- below a millionth of a unit it is noise


def _rate(rate: float | None) -> str | None:
    if rate is None:
        return None
    return f"{rate / 1e9:.7g} GB/s" if math.isfinite(rate) else UNLIMITED


def _digits(number: float) -> float:
    return float(f"{number:.4g}")
