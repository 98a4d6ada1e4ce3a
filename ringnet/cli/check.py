"""``ringnet check``: what would run, before it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from ringnet.cli import options
from ringnet.cli.printing import note, print_json, print_table, say
from ringnet.collectives.proof import check
from ringnet.engines.arrays import why_not_exact
from ringnet.errors import Fault, InputError
from ringnet.runs.engine import engine_for
from ringnet.runs.memory import Estimate, available_bytes, estimate, require_memory
from ringnet.runs.parts import RunParts, build
from ringnet.scenario import Scenario
from ringnet.study.cost import in_words, most_s, n_cores, run_s, sample, sweep_s
from ringnet.units import format_bytes, format_count

EXAMPLE = "ringnet check scenario.yaml --set workers=1024"

#: Points of a sweep that are all looked at; of a larger one, some.
MOST_LOOKED_AT = 200


@dataclass(frozen=True)
class Preview:
    """What a scenario would run; of a very large sweep, judged by some of its points.

    Parameters
    ----------
    name : str
    points : int
        1 for a single run.
    swept : tuple of str
        The keys that the points differ in.
    least_transfers, most_transfers : int
        Of one point.
    memory_bytes : int
        Of the largest point.
    available_bytes : int
        What this machine has left.
    engines : dict of str to str
        The engines that would run, each with the reason.
    seconds : float
        Roughly, on all cores.
    """

    name: str
    points: int
    swept: tuple[str, ...]
    least_transfers: int
    most_transfers: int
    memory_bytes: int
    available_bytes: int
    engines: dict[str, str]
    seconds: float


def command(
    scenario: options.ScenarioFile,
    overrides: options.Overrides = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of each key that somebody gave where its value comes from.")
    ] = False,
    as_json: options.Json = False,
    allow_outside: options.AllowOutside = False,
    allow_python: options.AllowPython = False,
) -> int:
    """Find every mistake in a scenario, and show what would run."""
    found = options.read_scenario(scenario, overrides, allow_outside, allow_python)
    preview = preview_of(found)
    rows = found.explained() if explain else []
    if as_json:
        said = [dict(zip(("key", "value", "from"), row, strict=True)) for row in rows]
        print_json(asdict(preview) | ({"keys": said} if explain else {}))
        return 0
    print_table(_lines(preview))
    if explain:
        say()
        print_table([("key", "value", "from"), *rows, ("every other key", "its default", "")])
    note(*found.notes)
    return 0


def preview_of(scenario: Scenario) -> Preview:
    """Work out what a scenario would run, without running it.

    Raises
    ------
    InputError
        It cannot be run: it is too large for this machine, or its engine is not exact for it.
    """
    looked_at = [_look(point, is_single=scenario.sweep is None) for point in _points(scenario)]
    wanted, engines, seconds = zip(*looked_at, strict=True)
    transfers = [one.n_transfers for one in wanted]
    return Preview(
        name=scenario.name,
        points=scenario.n_points,
        swept=scenario.swept,
        least_transfers=min(transfers),
        most_transfers=max(transfers),
        memory_bytes=max(one.memory_bytes for one in wanted),
        available_bytes=available_bytes(),
        engines=dict(engines),
        seconds=seconds[0] if scenario.sweep is None else sweep_s(scenario, n_cores(), seconds),
    )


def _points(scenario: Scenario) -> Sequence[Scenario]:
    if scenario.n_points <= MOST_LOOKED_AT:
        return [point.scenario for point in scenario.iter_points()]
    return sample(scenario)


def _look(scenario: Scenario, *, is_single: bool) -> tuple[Estimate, tuple[str, str], float]:
    """Return what one run takes, the engine that would run and why, and roughly the seconds."""
    with scenario.placing_faults():
        parts = build(scenario)
        if is_single:
            require_memory(parts)
        engine = _engine(parts)
        return estimate(parts), engine, run_s(scenario, parts) if is_single else most_s(parts)


def _engine(parts: RunParts) -> tuple[str, str]:
    """Return the engine that would run, and why; a schedule or traffic that is wrong is refused on the way."""
    check(parts.schedule)
    for one in parts.others:
        check(one.schedule)
    network = parts.network_of_run
    if parts.engine == "auto" or not parts.is_alone:
        return engine_for(parts)
    if parts.engine == "recurrence":
        reason = why_not_exact(parts.schedule, network, parts.workers)
        if reason:
            raise InputError(
                Fault(f"the recurrence is not exact here: {reason}", "engine", right="events, or auto")
            )
    return parts.engine, "the scenario says so"


def _lines(preview: Preview) -> list[tuple[str, str]]:
    is_sweep = preview.points > 1
    return [
        ("scenario", f"{preview.name}: no mistakes"),
        ("points", f"{preview.points:,}, over {', '.join(preview.swept)}" if is_sweep else "1, no sweep"),
        (
            "transfers",
            _range(preview.least_transfers, preview.most_transfers) + (" a point" if is_sweep else ""),
        ),
        (
            "memory",
            f"about {format_bytes(preview.memory_bytes)}, {format_bytes(preview.available_bytes)} are free",
        ),
        ("engine", "; ".join(f"{name}, for {reason}" for name, reason in preview.engines.items())),
        ("takes", f"roughly {in_words(preview.seconds)}"),
    ]


def _range(least: int, most: int) -> str:
    return format_count(most) if least == most else f"{format_count(least)} to {format_count(most)}"
