"""Profiles as text: YAML with units, written by ``calibrate``."""

from __future__ import annotations

import math
from typing import Any

import yaml

from ringnet.analysis.calibration import Profile, Regime, Setting
from ringnet.analysis.calibration.boundaries import Boundary

#: The first key of the file, and the versions that are read.
KEY, VERSIONS = "ringnet_profile", (1,)
#: Bandwidth where bytes cost nothing that could be seen.
UNLIMITED = "unlimited"


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
    return f"{rate / 1e9:.7g} GB/s" if math.isfinite(rate) else UNLIMITED


def _digits(number: float) -> float:
    return float(f"{number:.4g}")
