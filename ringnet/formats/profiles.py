"""Profiles on disk: YAML with units in text, written by ``calibrate``, read by ``predict``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ringnet.analysis.calibration import MODELS, PASSES, Profile, Regime, Setting, Source
from ringnet.analysis.calibration.boundaries import Boundary
from ringnet.errors import Fault, InputError, UnitError
from ringnet.units import Kind, parse_quantity

#: The first key of the file, and the versions that are read.
KEY, VERSIONS = "ringnet_profile", (1,)
_UNLIMITED = "unlimited"
_MOST_BYTES = 2**20
_MOST_WORKERS = 2**20

Document = Mapping[str, Any]


def profile_text(profile: Profile) -> str:
    """Return a profile as YAML."""
    head = "# Calibrated by ringnet. `up_to` is bytes of one transfer of a ring: a message over N.\n"
    return head + yaml.safe_dump(_document(profile), sort_keys=False, allow_unicode=True, width=110)


def _document(profile: Profile) -> dict[str, Any]:
    return {
        KEY: VERSIONS[-1],
        "collective": profile.collective,
        "verdicts": list(profile.verdicts),
        "sources": [{"file": s.file, "sha256": s.sha256, "points": s.n_points} for s in profile.sources],
        "measured": {
            "settings": [_setting(setting) for setting in profile.settings],
            "smallest": _bytes(profile.smallest_bytes),
            "largest": _bytes(profile.largest_bytes),
        },
        "launch_told_from_hops": profile.is_split,
        "error_per_doubling": _digits(profile.drift),
        "error_per_doubling_measured": profile.has_drift,
        "regimes": [_regime(regime) for regime in profile.regimes],
    }


def _regime(regime: Regime) -> dict[str, Any]:
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
        "ends": [_end(end) for end in regime.ends],
    }
    return {key: value for key, value in texts.items() if value is not None}


def _setting(setting: Setting) -> dict[str, int]:
    return {"workers": setting.n_workers, **({"nodes": setting.n_nodes} if setting.n_nodes else {})}


def _end(end: Boundary) -> dict[str, Any]:
    after = {"after": _bytes(end.last_bytes)} if end.last_bytes else {}
    before = {"before": _bytes(end.first_bytes)} if math.isfinite(end.first_bytes) else {}
    return {**_setting(end.setting), **after, **before}


def _bytes(n_bytes: float) -> str:
    return f"{round(n_bytes)} B"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e6:.7g} us" if seconds >= 1e-9 else "0 us"  # noqa: PLR2004 -- below a millionth of a unit it is noise


def _rate(rate: float | None) -> str | None:
    if rate is None:
        return None
    return f"{rate / 1e9:.7g} GB/s" if math.isfinite(rate) else _UNLIMITED


def _digits(number: float) -> float:
    return float(f"{number:.4g}")


def read_profile(path: Path | str) -> Profile:
    """Read a profile.

    Raises
    ------
    InputError
        With every mistake in it: path, value, and what would be right.
    """
    path = Path(path)
    reader = _Reader(str(path))
    profile = _profile(_load(path), reader)
    if reader.faults:
        raise InputError(*reader.faults)
    return profile


def _load(path: Path) -> Document:
    right = "a file that `ringnet calibrate --out` wrote"
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise InputError(Fault("too large for a profile", file=str(path), right=right))
        document = yaml.safe_load(content.decode("utf-8"))
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=str(path))) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what = " ".join(str(error).split())[:200]
        raise InputError(Fault(f"no YAML: {what}", file=str(path), right=right)) from error
    if not isinstance(document, Mapping) or KEY not in document:
        raise InputError(Fault("this is no profile", KEY, str(path), right=right))
    return document


class _Reader:
    """Take values out of a document, and collect what is wrong with them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[Fault] = []

    def fault(self, message: str, path: str, value: object = "", right: str = "") -> None:
        text = str(value)
        self.faults.append(Fault(message, path, self.file, value=text[:60], right=right))

    def quantity(
        self, document: Document, key: str, kind: Kind, path: str, default: float | None = None
    ) -> float:
        """Return a quantity; a fault and 1 where it is none, the default where the key is missing."""
        if key not in document and default is not None:
            return default
        try:
            return float(parse_quantity(document.get(key), kind))
        except UnitError as error:
            self.faults += [
                Fault(f.message, f"{path}{key}", self.file, None, f.value, f.right) for f in error.faults
            ]
            return 1.0

    def whole(
        self, document: Document, key: str, path: str, least: int = 1, default: int | None = None
    ) -> int:
        """Return a whole number from ``least`` on."""
        value = document.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST_WORKERS:
            return value
        self.fault(f"a whole number from {least} to {_MOST_WORKERS} is wanted", f"{path}{key}", value, "8")
        return least

    def share(self, document: Document, key: str, path: str) -> float:
        """Return a relative error: a number from 0 to 10."""
        value = document.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 10:  # noqa: PLR2004
            return float(value)
        self.fault("a relative error from 0 to 10 is wanted", f"{path}{key}", value, "0.05")
        return 0.0

    def flag(self, document: Document, key: str) -> bool:
        """Return true or false."""
        value = document.get(key)
        if not isinstance(value, bool):
            self.fault("true or false is wanted", key, value, "true")
        return bool(value)

    def one_of(self, document: Document, key: str, known: Mapping[str, Any], path: str) -> str:
        """Return a name that is known."""
        value = document.get(key)
        if isinstance(value, str) and value in known:
            return value
        self.fault("a known name is wanted", f"{path}{key}", value, ", ".join(known))
        return next(iter(known))

    def items(self, document: Document, key: str, path: str = "") -> list[Document]:
        """Return a list of mappings."""
        value = document.get(key)
        if isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            return value
        self.fault("a list of mappings is wanted", f"{path}{key}", value)
        return []


def _profile(document: Document, read: _Reader) -> Profile:
    if document[KEY] not in VERSIONS:
        read.fault("a version that is not known", KEY, document[KEY], ", ".join(map(str, VERSIONS)))
    measured = document.get("measured")
    if not isinstance(measured, Mapping):
        read.fault("a mapping is wanted", "measured", measured)
        measured = {"settings": [{"workers": 2}], "smallest": "1 B", "largest": "1 B"}
    settings = _settings(measured, read)
    regimes = [
        _read_regime(item, f"regimes.{place}.", read)
        for place, item in enumerate(read.items(document, "regimes"))
    ]
    _check(measured, regimes, read)
    verdicts = document.get("verdicts")
    return Profile(
        collective=read.one_of(document, "collective", PASSES, ""),
        regimes=tuple(regimes),
        settings=settings,
        smallest_bytes=int(read.quantity(measured, "smallest", "bytes", "measured.")),
        largest_bytes=int(read.quantity(measured, "largest", "bytes", "measured.")),
        is_split=read.flag(document, "launch_told_from_hops"),
        drift=read.share(document, "error_per_doubling", ""),
        has_drift=read.flag(document, "error_per_doubling_measured"),
        verdicts=tuple(map(str, verdicts)) if isinstance(verdicts, list) else (),
        sources=tuple(
            _source(item, place, read) for place, item in enumerate(read.items(document, "sources"))
        ),
    )


def _settings(measured: Document, read: _Reader) -> tuple[Setting, ...]:
    found = [
        _read_setting(item, f"measured.settings.{place}.", read)
        for place, item in enumerate(read.items(measured, "settings", "measured."))
    ]
    if not found:
        read.fault("what was measured is missing", "measured.settings", right="[{workers: 8, nodes: 2}]")
    return tuple(found)


def _read_setting(item: Document, path: str, read: _Reader) -> Setting:
    setting = Setting(read.whole(item, "workers", path, 2), read.whole(item, "nodes", path, 0, default=0))
    if setting.n_nodes > setting.n_workers:
        read.fault("more nodes than workers", f"{path}nodes", setting.n_nodes, f"at most {setting.n_workers}")
    return setting


def _source(item: Document, place: int, read: _Reader) -> Source:
    return Source(
        str(item.get("file", "")),
        str(item.get("sha256", "")),
        read.whole(item, "points", f"sources.{place}.", 0),
    )


def _read_regime(item: Document, path: str, read: _Reader) -> Regime:
    ends = [
        _read_end(end, f"{path}ends.{place}.", read)
        for place, end in enumerate(read.items(item, "ends", path) if "ends" in item else [])
    ]
    errors = item.get("standard_errors") or {}
    names = list(errors) if isinstance(errors, Mapping) else []
    return Regime(
        model=read.one_of(item, "model", MODELS, path),
        launch_s=read.quantity(item, "launch", "seconds", path),
        latency_s=read.quantity(item, "latency", "seconds", path),
        between_latency_s=_optional(item, "latency_between_nodes", "seconds", path, read),
        bandwidth_Bps=_optional(item, "bandwidth", "bytes_per_second", path, read),
        between_bandwidth_Bps=_optional(item, "bandwidth_between_nodes", "bytes_per_second", path, read),
        scatter=read.share(item, "scatter", path),
        n_points=read.whole(item, "points", path, 0),
        errors={str(name): read.share(errors, name, f"{path}standard_errors.") for name in names},
        ends=tuple(ends),
    )


def _optional(item: Document, key: str, kind: Kind, path: str, read: _Reader) -> float | None:
    if key not in item:
        return None
    return math.inf if item[key] == _UNLIMITED else read.quantity(item, key, kind, path)


def _read_end(item: Document, path: str, read: _Reader) -> Boundary:
    setting = _read_setting(item, path, read)
    after = read.quantity(item, "after", "bytes", path, default=0.0)
    before = read.quantity(item, "before", "bytes", path, default=math.inf)
    if after > before:
        read.fault(
            "a regime that ends before it ends",
            f"{path}after",
            item.get("after"),
            f"at most {item.get('before')}",
        )
    return Boundary(setting, after, before)


def _check(measured: Document, regimes: list[Regime], read: _Reader) -> None:
    """Check what no single value shows."""
    if not regimes:
        read.fault("a profile has one regime at least", "regimes")
    for place, regime in enumerate(regimes[:-1]):
        if not regime.ends:
            read.fault(
                "only the last regime has no end",
                f"regimes.{place}.ends",
                right="[{workers: 8, after: 1 KiB, before: 2 KiB}]",
            )
    reached = [regime.up_to_bytes() for regime in regimes if regime.ends]
    if reached != sorted(reached):
        read.fault(
            "regimes must follow each other by size",
            "regimes",
            ", ".join(f"{up_to:.0f} B" for up_to in reached),
        )
    smallest, largest = (
        read.quantity(measured, key, "bytes", "measured.") for key in ("smallest", "largest")
    )
    if smallest > largest:
        read.fault("the smallest size is above the largest", "measured.smallest", measured["smallest"])
