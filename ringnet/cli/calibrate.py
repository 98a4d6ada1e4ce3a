"""``ringnet calibrate``: from logs to a profile, with the errors of the fit and of what was held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ringnet.analysis.calibration import Calibration, Profile
from ringnet.analysis.calibration.calibration import Errors, bands_of
from ringnet.analysis.calibration.machine import PARAMETERS
from ringnet.api.machines import fit_logs, points_table
from ringnet.cli import options
from ringnet.cli.logs import LogOptions, read_logs, say_remarks
from ringnet.cli.printing import note, print_json, print_table, run_progress, say
from ringnet.cli.targets import check_targets
from ringnet.formats.logs import Log
from ringnet.formats.logs.log import Notes
from ringnet.formats.profiles import profile_text
from ringnet.reporting.atomic import write_text, written_file
from ringnet.reporting.plots import save_drawn
from ringnet.units import format_bytes, format_rate, format_seconds

EXAMPLE = "ringnet calibrate run-*.txt --out machine.yaml"


@dataclass(frozen=True)
class CalibrateOptions:
    """What is asked: which logs, what they leave unsaid, and which files to write."""

    files: options.Logs
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PROFILE.yaml",
            help="Write the profile here, for predict and for scenarios: link: {file: PROFILE.yaml}.",
        ),
    ] = None
    collective: Annotated[str, typer.Option(metavar="NAME", help="Which collective of the logs.")] = "all_reduce"
    workers: options.WorkersOfLogs = None
    nodes: options.NodesOfLogs = None
    tables: options.TablesOfLogs = None
    in_place: options.InPlace = False
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Draw points, fit and errors.  [beside the profile]"),
    ] = None
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE.csv", help="Write measured and fitted times.")] = (
        None
    )
    as_json: options.Json = False

    @property
    def drawn(self) -> Path | None:
        """Where the picture goes: beside the profile, unless the user says otherwise."""
        return self.plot or (self.out and self.out.with_suffix(".png"))


@options.asking(CalibrateOptions)
def command(asked: CalibrateOptions) -> int:
    """Fit latency and bandwidth to logs of one machine, and say how far to trust them."""
    check_targets({"--out": asked.out, "--plot": asked.drawn, "--csv": asked.csv}, asked.files)
    said = LogOptions(asked.workers, asked.nodes, asked.tables, asked.in_place)
    logs, faults = read_logs(asked.files, said)
    options.refuse(faults)
    remarks = Notes()
    with run_progress(lambda: "fitting", asked.as_json):
        found = fit_logs(logs, asked.collective, remarks)
    _write(found, asked)
    if asked.as_json:
        print_json(_document(found, logs, [*map(str, remarks.remarks())]))
        return 0
    say_remarks(logs)
    note(*map(str, remarks.remarks()))
    _print(found)
    for path in filter(None, (asked.out, asked.drawn, asked.csv)):
        say(f"written  {path}")
    return 0


def _print(found: Calibration) -> None:
    print_table([_HEADS, *_link_rows(found)])
    say()
    print_table([_WAY_HEADS, *_way_rows(found.profile)])
    say()
    print_table([("errors of the links", "points", "median", "worst"), *_error_rows(found)])
    say()
    for verdict in found.verdicts:
        say(f"{verdict.name}: {verdict.text}")


_HEADS = ("links", "by the first protocol", "second", "third", "told by the logs")
_WAY_HEADS = ("N", "nodes", "sizes", "way", "next algorithm", "links that fit as well and agree")


def _link_rows(found: Calibration) -> list[tuple[str, ...]]:
    """Return a row for each link: what it takes by the three protocols, and whether the logs or only priors tell it."""
    values = dict(zip([one.name for one in PARAMETERS], found.profile.parameters, strict=True))
    told = dict(zip(values, _told(found), strict=True))
    rows = []
    for name, title in (("launch", "launch"), ("hop_inside", "hop inside"), ("hop_between", "hop between")):
        times = (1.0, values[f"{name}_medium"], values[f"{name}_large"])
        rows.append((title, *(format_seconds(values[name] * factor) for factor in times), told[name]))
    rates = [("bandwidth_inside", "bandwidth inside"), ("bandwidth_of_a_rail", "bandwidth of a rail")]
    if "switch" in found.profile.family.algorithms:
        rates.append(("bandwidth_of_the_switch", "bandwidth of the switch"))
    for name, title in rates:
        shares = (values["share_small"], values["share_medium"])
        # A switch reduces by the last protocol only.
        lesser = ["" if name.endswith("switch") else format_rate(values[name] * share) for share in shares]
        rows.append((title, *lesser, format_rate(values[name]), told[name]))
    family = found.profile.family
    for name, title, is_used in (
        ("chunk_of_tree", "chunk of a tree", "tree" in family.algorithms),
        ("largest_doubled", "largest message that is doubled", family.goes_by_size),
    ):
        size = format_bytes(round(values[name]))
        rows.extend([(title, size, size, size, told[name])] * is_used)
    return rows


def _told(found: Calibration) -> list[str]:
    """Return for each parameter its standard error, or that it is what such machines usually have."""
    pairs = zip(found.fit.deviations.tolist(), found.fit.prior_deviations.tolist(), strict=True)
    return [f"to {own:.0%}" if own < _TOLD * prior else "no: as such machines usually have" for own, prior in pairs]


#: A parameter is told by logs where they make it so much surer.
_TOLD = 0.5


def _way_rows(profile: Profile) -> list[tuple[str, ...]]:
    return [
        (
            str(band.setting.n_workers),
            str(band.setting.n_nodes or "?"),
            f"{format_bytes(band.first_bytes)} to {format_bytes(band.last_bytes)}",
            band.way,
            f"{band.ahead:.2f} times as long" if math.isfinite(band.ahead) else "",
            f"{band.sure:.0%}",
        )
        for band in bands_of(profile)
    ]


def _error_rows(found: Calibration) -> list[tuple[str, ...]]:
    names = found.fit.samples.names
    rows = [_error_row(name, found.errors_of_log(log)) for log, name in enumerate(names)]
    rows += [_error_row(_band(low, high), errors) for low, high, errors in found.errors_by_band()]
    rows.append(_error_row("with what is carried over", found.errors_of_curves()))
    rows += [
        _held_row(f"held out: {each.what}", len(each.errors), each.median, each.worst)
        for each in (*found.held_workers, *found.held_sizes)
    ]
    return rows


def _band(low: float, high: float) -> str:
    if math.isinf(high):
        return f"above {format_bytes(round(low))}"
    return f"{format_bytes(round(low))} to {format_bytes(round(high))}" if low else f"up to {format_bytes(round(high))}"


def _error_row(name: str, errors: Errors) -> tuple[str, ...]:
    return _held_row(name, *errors)


def _held_row(name: str, n_points: int, median: float, worst: float) -> tuple[str, ...]:
    return (name, str(n_points), f"{median:.1%}", f"{worst:.1%}")


def _write(found: Calibration, asked: CalibrateOptions) -> None:
    points = points_table(found)
    if asked.out:
        write_text(asked.out, profile_text(found.profile))
    if asked.csv:
        with written_file(asked.csv) as path:
            points.to_csv(path, index=False)
    if asked.drawn:
        title = f"calibration of {found.profile.collective}"
        save_drawn("calibration.calibration_plot", asked.drawn, title, points)


def _document(found: Calibration, logs: Sequence[Log], remarks: Sequence[str]) -> dict[str, Any]:
    return {
        "verdict": found.verdicts[0].name,
        "verdicts": [asdict(verdict) for verdict in found.verdicts],
        "collective": found.profile.collective,
        "library": found.profile.family.library,
        "links": {
            one.name: {"value": value, "kind": one.kind, "relative_standard_error": error}
            for one, value, error in zip(
                PARAMETERS, found.profile.parameters, found.fit.deviations.tolist(), strict=True
            )
        },
        "ways": [
            {
                "n_workers": band.setting.n_workers,
                "n_nodes": band.setting.n_nodes or None,
                "first_bytes": band.first_bytes,
                "last_bytes": band.last_bytes,
                "way": band.way,
                "next_algorithm_takes": band.ahead if math.isfinite(band.ahead) else None,
                "share_that_agrees": band.sure,
            }
            for band in bands_of(found.profile)
        ],
        "remarks": remarks,
        "errors_with_what_is_carried_over": _errors_document(found.errors_of_curves()),
        "logs": [_log_document(found, index, log) for index, log in enumerate(logs)],
        "bands": [
            {"above_bytes": low, "up_to_bytes": high, **(_errors_document(errors) or {})}
            for low, high, errors in found.errors_by_band()
        ],
        "held_out": {
            "sizes": _errors_document(found.held_out_sizes()),
            "workers": [
                {
                    "n_workers": each.n_workers,
                    "median_relative_error": each.median,
                    "worst_relative_error": each.worst,
                    "n_points": len(each.errors),
                }
                for each in found.held_workers
            ],
        },
    }


def _log_document(found: Calibration, index: int, log: Log) -> dict[str, Any]:
    samples = found.fit.samples
    counts = sorted(set(samples.n_workers[samples.log == index].tolist()))
    return {
        "file": str(log.path),
        "n_workers": counts[0] if len(counts) == 1 else counts,
        **(_errors_document(found.errors_of_log(index)) or {}),
        "remarks": [str(remark) for remark in log.remarks],
    }


def _errors_document(errors: Errors | None) -> dict[str, Any] | None:
    if errors is None:
        return None
    return {
        "median_relative_error": errors.median,
        "worst_relative_error": errors.worst,
        "n_points": errors.n_points,
    }
