"""Profiles of a calibration on disk: YAML with units in text, for `predict` and for scenarios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringnet.analysis.calibration import PASSES, Curve, Profile, Setting, SourceFile
from ringnet.analysis.calibration.machine import LIBRARIES, N_PARAMETERS, PARAMETERS, Family
from ringnet.documents.text import clip, one_line
from ringnet.documents.values import ValueReader
from ringnet.documents.yaml_text import YamlKind, read_text, read_yaml, write_yaml
from ringnet.errors import Fault, InputError

#: The first key of the file, the version that is read, and what earlier ones had.
KEY, VERSION, EARLIER = "ringnet_profile", 3, (1, 2)
#: What says that each worker has a card, as far as was seen.
EACH_WORKER = "each worker"
#: Left out where the algorithm is not in question, and the profile has it no more than a file that was made before it.
SWITCH, DOUBLED = "bandwidth_of_the_switch", "largest_doubled"
_ONLY_OF = {SWITCH: "switch", DOUBLED: "doubling"}

_RIGHT = "a file that `ringnet calibrate --out` wrote"
_PROFILE = YamlKind("a profile", _RIGHT, n_bytes=1 << 22, n_values=50_000, depth=12)
_KEYS = (
    KEY, "collective", "library", "algorithms", "rails", "links", "verdicts", "sources", "measured", "line_weight",
    "alternatives",
)  # fmt: skip
#: Logarithms of alternatives are nearer to zero than that, and ratios nearer to one.
_MOST_LOG, _MOST_RATIO = 50.0, 1e6


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
    version = read.get(KEY)
    if not faults and (isinstance(version, bool) or version != VERSION):
        raise InputError(_version_fault(read, version, file))
    profile = None if faults else _profile(read)
    if profile is None or read.faults:
        raise InputError(*faults, *sorted(read.faults, key=lambda fault: fault.line or 0))
    return profile


def _version_fault(read: ValueReader, version: object, file: str) -> Fault:
    line = read.document.mark((KEY,)).line
    if isinstance(version, bool) or version not in EARLIER:
        return Fault("a version that is not known", KEY, file, line, clip(str(version)), str(VERSION))
    sources = read.get("sources")
    named = [one.get("file") for one in sources if isinstance(one, dict)] if isinstance(sources, list) else []
    logs = " ".join(str(name) for name in named if isinstance(name, str)) or "its logs"
    message = "a profile of an earlier ringnet, which knew no chunks of trees"
    right = f"made anew from the same logs: ringnet calibrate {logs} --out {file}"
    return Fault(message, KEY, file, line, clip(str(version)), one_line(right))


def _profile(read: ValueReader) -> Profile:
    read.known(*_KEYS)
    family = _family(read)
    links = read.mapping("links")
    parameters = _links(links)
    if "switch" in family.algorithms and SWITCH not in links:
        links.fault("the key is missing", SWITCH, right="480 GB/s")
    curves = tuple(_curve(curve) for curve in read.items("measured"))
    if not curves and not read.is_wrong("measured"):
        right = "[{workers: 8, nodes: 2, scatter: 0.02, sizes: 4 8, times_us: 18 19}]"
        read.fault("what was measured is missing", "measured", right=right)
    for place, curve in enumerate(curves):
        if curve.setting in [other.setting for other in curves[:place]]:
            read.fault("this setting is here twice", "measured", place, value=curve.setting)
    return Profile(
        family=family,
        parameters=parameters,
        alternatives=_alternatives(read),
        curves=tuple(sorted(curves, key=lambda curve: curve.setting)),
        line_weight=read.number("line_weight", 0.0, 1.0),
        verdicts=read.texts("verdicts"),
        sources=tuple(_source(source) for source in read.items("sources")),
    )


def _family(read: ValueReader) -> Family:
    library = read.one_of("library", LIBRARIES)
    known, algorithms = LIBRARIES[library].algorithms, read.texts("algorithms")
    if not read.is_wrong("algorithms", "library") and (not algorithms or set(algorithms) - set(known)):
        value = ", ".join(algorithms) or "none"
        read.fault(f"algorithms of {library} are wanted", "algorithms", value=value, right=", ".join(known))
    algorithms = tuple(name for name in known if name in algorithms) or known[:1]
    rails = math.inf if read.get("rails") == EACH_WORKER else read.number("rails", 1.0, right=f"2, or {EACH_WORKER}")
    return Family(library, algorithms, rails, read.one_of("collective", PASSES))


def _links(read: ValueReader) -> tuple[float, ...]:
    if not read.given:
        return (1.0,) * N_PARAMETERS
    read.known(*(parameter.name for parameter in PARAMETERS))
    found = []
    for parameter in PARAMETERS:
        if parameter.name in _ONLY_OF and parameter.name not in read:
            value = parameter.mpi[0]
        elif parameter.kind == "seconds":
            value = read.quantity(parameter.name, "seconds")
            if value <= 0 and not read.is_wrong(parameter.name):
                read.fault("it takes some time", parameter.name, value=read[parameter.name], right="1 us")
        elif parameter.kind == "bytes":
            value = read.quantity(parameter.name, "bytes")
            if value < 1 and not read.is_wrong(parameter.name):
                read.fault("it is one byte at least", parameter.name, value=read[parameter.name], right="64 KiB")
        elif parameter.kind == "bytes_per_second":
            value = read.quantity(parameter.name, "bytes_per_second")
        else:
            value = read.number(parameter.name, 1 / _MOST_RATIO, _MOST_RATIO, right="1.5")
        found.append(value or 1.0)
    return tuple(found)


def _curve(read: ValueReader) -> Curve:
    read.known("workers", "nodes", "scatter", "sizes", "times_us")
    setting = Setting(read.whole("workers", 2), read.whole("nodes", 0, default=0))
    if setting.n_nodes > setting.n_workers:
        right = f"at most {setting.n_workers}"
        read.fault("more nodes than workers", "nodes", value=setting.n_nodes, right=right)
    sizes = read.numbers("sizes")
    times_us = read.numbers("times_us", len(sizes))
    if not read.is_wrong("sizes") and (min(sizes) < 1 or (np.diff(sizes) <= 0).any()):
        read.fault("sizes rise, from 1 byte on", "sizes", value=read["sizes"])
    if not read.is_wrong("sizes", "times_us") and (min(times_us) <= 0 or (np.diff(times_us) < 0).any()):
        read.fault("times are above 0 and never fall with the size", "times_us", value=read["times_us"])
    return Curve(setting, sizes, tuple(time / 1e6 for time in times_us), read.number("scatter", 0.0, _MOST_LOG))


def _alternatives(read: ValueReader) -> tuple[tuple[float, ...], ...]:
    rows = []
    for place, text in enumerate(read.texts("alternatives")):
        try:
            row = tuple(float(word) for word in text.split())
        except ValueError:
            row = ()
        row += (0.0,) * (len(row) == N_PARAMETERS - 1)  # made before there was a largest message that is doubled
        if len(row) != N_PARAMETERS or not all(abs(value) <= _MOST_LOG for value in row):
            message = f"{N_PARAMETERS} logarithms with spaces between them are wanted"
            read.fault(message, "alternatives", place, value=text)
        rows.append(row)
    return tuple(rows)


def _source(read: ValueReader) -> SourceFile:
    read.known("file", "sha256", "points")
    return SourceFile(read.text("file"), read.text("sha256"), read.whole("points", 0))


# ---------------------------------------------------------------------------------------------------- writing

_HEAD = """\
# Calibrated by ringnet. A hop is one of 2(N-1) of a ring; _medium and _large are factors by which the library's
# second and third protocol take longer, share_ what they get of the bandwidth. alternatives: other links that fit
# about as well, as logarithms of factors on each of the links, in order.
"""


def profile_text(profile: Profile) -> str:
    """Return a profile as YAML."""
    return _HEAD + write_yaml(_profile_data(profile))


def _profile_data(profile: Profile) -> dict[str, Any]:
    rails, algorithms = profile.family.most_rails, profile.family.algorithms
    return {
        KEY: VERSION,
        "collective": profile.collective,
        "library": profile.family.library,
        "algorithms": list(algorithms),
        "rails": EACH_WORKER if math.isinf(rails) else _digits(rails),
        "links": {
            parameter.name: _link_text(value, parameter.kind)
            for parameter, value in zip(PARAMETERS, profile.parameters, strict=True)
            if _ONLY_OF.get(parameter.name, algorithms[0]) in algorithms
        },
        "verdicts": list(profile.verdicts),
        "sources": [{"file": s.file, "sha256": s.sha256, "points": s.n_points} for s in profile.sources],
        "line_weight": _digits(profile.line_weight),
        "measured": [_curve_data(curve) for curve in profile.curves],
        "alternatives": [_row(row) for row in profile.alternatives],
    }


def _curve_data(curve: Curve) -> dict[str, Any]:
    return {
        "workers": curve.setting.n_workers,
        **({"nodes": curve.setting.n_nodes} if curve.setting.n_nodes else {}),
        "scatter": _digits(min(curve.scatter, _MOST_LOG)),
        "sizes": " ".join(str(round(size)) for size in curve.message_bytes),
        "times_us": _row([time * 1e6 for time in curve.time_s]),
    }


def _row(values: Sequence[float]) -> str:
    return " ".join(f"{value:.7g}" for value in values)


def _link_text(value: float, kind: str) -> str | float:
    if kind == "seconds":
        return f"{value * 1e6:.7g} us"
    if kind == "bytes":
        return f"{round(value)} B"
    return f"{value / 1e9:.7g} GB/s" if kind == "bytes_per_second" else float(f"{value:.7g}")


def _digits(number: float) -> float:
    return float(f"{number:.4g}")
