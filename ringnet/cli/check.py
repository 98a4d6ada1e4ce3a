"""``ringnet check``: what would run, before it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ringnet.cli import options
from ringnet.cli.printing import note, print_json, print_table, say
from ringnet.collectives.proof import check
from ringnet.errors import InputError
from ringnet.payload import payload_text
from ringnet.runs.engine import engine_for
from ringnet.runs.failures import check_other_paths
from ringnet.runs.memory import Estimate, available_bytes, estimate, require_memory
from ringnet.runs.parts import RunParts, build
from ringnet.runs.work import proof_s
from ringnet.scenario import Scenario
from ringnet.study.cost import beside_bytes, in_words, most_s, n_cores, run_s, sample, sweep_s
from ringnet.units import format_bytes, format_count

if TYPE_CHECKING:
    from ringnet.runs.step_parts import StepParts

EXAMPLE = "ringnet check scenario.yaml --set workers=1024"

#: Points of a sweep that are all looked at; of a larger one, some.
MOST_LOOKED_AT = 200
#: Seconds of proofs that are made here of schedules that ringnet makes itself: a run proves its own before it starts.
MOST_PROOF_S = 10.0


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
    unproved_s : float
        Roughly, of the proofs of schedules that are left to the run; 0 where all are proved.
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
    unproved_s: float


@dataclass
class _Proofs:
    """Proofs of schedules, up to `MOST_PROOF_S` in all; those of a user's own are always made."""

    made_s: float = 0.0
    left_s: float = 0.0

    def make(self, parts: RunParts) -> None:
        """Prove the schedules of a run, or leave them."""
        for one in (parts, *parts.others):
            takes_s = 0.0 if one.schedule.proved else proof_s(one)
            if one.schedule.made_by is not None and self.made_s + takes_s > MOST_PROOF_S:
                self.left_s += takes_s
            else:
                check(one.schedule)
                self.made_s += takes_s


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
    preview = preview_of(found) if found.step is None else step_preview_of(found)
    rows = found.explained() if explain else []
    if as_json:
        said = [dict(zip(("key", "value", "from"), row, strict=True)) for row in rows]
        print_json(asdict(preview) | ({"keys": said} if explain else {}))
        return 0
    print_table(_lines(preview) if isinstance(preview, Preview) else _step_lines(preview))
    if explain:
        say()
        print_table([("key", "value", "from"), *rows, ("every other key", "its default", "")])
    note(*found.notes)
    if isinstance(preview, Preview) and preview.unproved_s:
        takes = in_words(preview.unproved_s)
        note(f"the schedule is not proved here, which takes roughly {takes}; ringnet run proves it first")
    return 0


def preview_of(scenario: Scenario) -> Preview:
    """Work out what a scenario would run, without running it.

    Raises
    ------
    InputError
        It cannot be run: it is too large for this machine, or its engine is not exact for it.
    """
    proofs = _Proofs()
    looked_at = [_look(point, proofs, is_single=scenario.sweep is None) for point in _points(scenario)]
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
        unproved_s=proofs.left_s,
    )


@dataclass(frozen=True)
class StepPreview:
    """What ``ringnet step`` would do with a scenario; of a very large sweep, judged by some of its points.

    Parameters
    ----------
    name, points, swept, memory_bytes, available_bytes, seconds
        As for `Preview`.
    run_bytes : int
        Memory of all gradients in one collective, which is what ``ringnet run`` makes of it; 0 where that refuses it.
    least_collectives, most_collectives : int
        Of a step of one point, of all groups.
    least_bytes, most_bytes : int
        Of the collectives of the first point.
    least_transfers, most_transfers : int
        That are simulated for one step of one point: those of collectives of one size once, where that is exact.
    together : str
        Why collectives are simulated together; empty where each is by itself.
    numbers : str
        Which numbers are carried, or why none are.
    """

    name: str
    points: int
    swept: tuple[str, ...]
    least_collectives: int
    most_collectives: int
    least_bytes: int
    most_bytes: int
    least_transfers: int
    most_transfers: int
    memory_bytes: int
    run_bytes: int
    available_bytes: int
    together: str
    numbers: str
    seconds: float


def step_preview_of(scenario: Scenario) -> StepPreview:
    """Work out what `ringnet step` would do, without doing it.

    Raises
    ------
    InputError
        It cannot be done: a step does not fit into memory, or its engine is not exact for it.
    """
    from ringnet.study.steps import step_s  # noqa: PLC0415 -- brings pandas, and few scenarios are of a step

    built = [_built_step(point, scenario.sweep is None) for point in _points(scenario)]
    first, carry = built[0], built[0].payload.carry
    counts = [sum(len(group.program.collectives) for group in parts.groups) for parts in built]
    wanted = [[estimate(one) for one in parts.simulated()] for parts in built]
    transfers = [sum(one.n_transfers for one in estimates) for estimates in wanted]
    itemsize = first.groups[0].parts.dtype.itemsize
    sizes = [one.n_elements * itemsize for group in first.groups for one in group.program.collectives]
    return StepPreview(
        name=scenario.name,
        points=scenario.n_points,
        swept=scenario.swept,
        least_collectives=min(counts),
        most_collectives=max(counts),
        least_bytes=min(sizes, default=0),
        most_bytes=max(sizes, default=0),
        least_transfers=min(transfers),
        most_transfers=max(transfers),
        memory_bytes=max(
            _numbers_bytes(parts) + max((one.memory_bytes for one in estimates), default=0)
            for parts, estimates in zip(built, wanted, strict=True)
        ),
        run_bytes=max(map(_run_bytes, _points(scenario))),
        available_bytes=available_bytes(),
        together=first.together or "",
        numbers=f"none: {first.payload.why}" if carry == 0 else f"{payload_text(carry)}, verified",
        seconds=sweep_s(scenario, 1 if scenario.n_points == 1 else n_cores(), [*map(step_s, built)]),
    )


def _built_step(scenario: Scenario, must_fit: bool) -> StepParts:
    from ringnet.runs.step_parts import build_step  # noqa: PLC0415

    with scenario.placing_faults():
        parts = build_step(scenario)
        for one in parts.simulated():
            engine_for(one)
            if must_fit:
                require_memory(one)
        if must_fit and parts.payload.carry != 0:
            parts.groups[0].carried_places(parts.payload.carry)
        return parts


def _numbers_bytes(parts: StepParts) -> int:
    carry = parts.payload.carry
    return 0 if carry == 0 else parts.groups[0].numbers_bytes(carry)


def _run_bytes(scenario: Scenario) -> int:
    try:
        return estimate(build(scenario)).memory_bytes
    except InputError:
        return 0


def _points(scenario: Scenario) -> Sequence[Scenario]:
    if scenario.n_points <= MOST_LOOKED_AT:
        return [point.scenario for point in scenario.iter_points()]
    return sample(scenario)


def _look(scenario: Scenario, proofs: _Proofs, *, is_single: bool) -> tuple[Estimate, tuple[str, str], float]:
    """Return what one run takes, the engine that would run and why, and roughly the seconds."""
    with scenario.placing_faults():
        parts = build(scenario)
        if is_single:
            require_memory(parts)
        proofs.make(parts)
        check_other_paths(parts)
        engine = engine_for(parts)[:2]
        beside = beside_bytes(scenario, parts if is_single else None)
        if is_single:
            require_memory(parts, beside_bytes=beside)
        return estimate(parts, beside), engine, run_s(scenario, parts) if is_single else most_s(parts)


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


def _step_lines(preview: StepPreview) -> list[tuple[str, str]]:
    is_sweep = preview.points > 1
    a_point = " a point" if is_sweep else ""
    together = f"together, for {preview.together}" if preview.together else "each size by itself, once"
    if not preview.together and not preview.numbers.startswith("none"):
        together = "each by itself"
    sizes = " to ".join(dict.fromkeys(map(format_bytes, (preview.least_bytes, preview.most_bytes))))
    transfers = _range(preview.least_transfers, preview.most_transfers)
    run_bytes = format_bytes(preview.run_bytes)
    as_run = f", about {run_bytes} by ringnet run, in one collective" if preview.run_bytes else ""
    return [
        ("scenario", f"{preview.name}: no mistakes; ringnet step times it"),
        ("points", f"{preview.points:,}, over {', '.join(preview.swept)}" if is_sweep else "1, no sweep"),
        (
            "collectives",
            f"{_range(preview.least_collectives, preview.most_collectives)}{a_point}, of {sizes}"
            f"{' at the first' if is_sweep else ''}",
        ),
        ("simulated", f"{together}; {transfers} transfers{a_point}"),
        ("numbers", preview.numbers),
        (
            "memory",
            f"about {format_bytes(preview.memory_bytes)}{as_run}; {format_bytes(preview.available_bytes)} are free",
        ),
        ("takes", f"roughly {in_words(preview.seconds)}"),
    ]


def _range(least: int, most: int) -> str:
    return format_count(most) if least == most else f"{format_count(least)} to {format_count(most)}"
