"""What a run has to do, counted before it is run: so many events, rates, rows and bytes, and what each takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ringnet.analysis.routes import MOST_PAIRS as MOST_PAIRS_OF_TABLE
from ringnet.array_types import Array
from ringnet.collectives import Step
from ringnet.collectives.schedule import AlikeSteps
from ringnet.engines.trace import MOST_SERVICES
from ringnet.networks.network import RouteFormula, Sharing
from ringnet.payload.blocks import EVERYONE
from ringnet.runs.engine import engine_of, is_packed, sharing_of
from ringnet.runs.memory import estimate, keeps_sets, n_services
from ringnet.runs.parts import RunParts, jobs_of

if TYPE_CHECKING:
    from ringnet.engines.events.run import Beginning

#: Steps of a schedule that are looked at, and pairs of a step whose routes are.
MOST_STEPS, MOST_PAIRS = 2_000, 32
#: Of a run under fair sharing the beginning is simulated, to see how far it is out of step. Rates worked out in it: for
#: each transfer, at least and at most; and of a large run, a share of all, and at most.
SHARE_OF_TRANSFERS, LEAST_RATES, MOST_RATES = 0.25, 400, 4_000
SHARE_OF_RATES, MOST_RATES_OF_LARGE = 0.05, 20_000
#: Settlements for each rate below which all are in step. What a run takes beyond its beginning, once they are not: more
#: where the channels of a worker, or other traffic, part from each other first.
IN_STEP, OUT_OF_STEP, OUT_OF_STEP_MUCH = 0.03, 1.1, 1.8
#: Workers in a word of a set of contributions.
_WORD_BITS = 64


class Prices(NamedTuple):
    """Seconds of what engines do: an event, a settlement of rates, a rate, and a flow, of SimPy.

    Of stepping whole arrays: a step and a transfer of it. Of the compiled loop: how many times as fast it is as SimPy,
    and a transfer in the making of its columns.
    """

    event_s: float
    settlement_s: float
    rate_s: float
    flow_s: float
    step_s: float
    stepped_s: float
    machine_speed: float
    loaded_s: float


# Seconds, on the machine that they were measured on; `ringnet.study.cost.pace` says how fast another one is.
MEASURED = Prices(4.5e-6, 20e-6, 12e-6, 17e-6, step_s=50e-6, stepped_s=14e-9, machine_speed=50, loaded_s=1.5e-6)
#: A row that is kept of stepping whole arrays; and to load the compiled loop.
STEPPED_ROW_S, LOAD_S = 0.5e-6, 0.06
#: A route that is found by going along links, which is done for the check and for the run; and all that are equal to
#: it, with the row that says of a pair how many there are.
ROUTE_S, EQUAL_ROUTES_S = 2 * 15e-6, 70e-6
#: A step that is leapt over, and its proof, however many transfers it has.
LEAPT_STEP_S, PROVED_LEAPT_STEP_S = 4.5e-6, 6e-6
#: Where all go on alike: steps that are done for each doubling of their number, as leaps end where times double; how
#: many times as many where the links of a route reach that one after another; and how many times as long such a step
#: takes, with what looks for leaps.
DONE_EACH_DOUBLING, LINKS_APART, LOOKED_AT = 15, 5, 2
#: Of the proof: a step, a chunk that moves, and each chunk of each worker; where its contributions are a set also each
#: word of that.
PROVED_STEP_S, PROVED_ALIKE_S, PROVED_S, PROVED_CELL_S = 20e-6, 28e-9, 50e-9, 6e-9
PROVED_SET_S, PROVED_WORD_S = 0.3e-6, 22e-9
#: Of tables: a row of the transfers with the path that is walked over them, what more it takes where rates change under
#: way; an event of a packet, or of a slot of a window; and a row of links, workers or routes.
ROW_S, FLOW_ROW_S, PART_EVENT_S, SMALL_ROW_S = 2e-6, 2.5e-6, 0.7e-6, 15e-6
#: Of carried elements: making, moving and verifying them, by byte, or by element where the processor has no such
#: arithmetic; and of those packed by chunk.
BYTE_S, SMALL_ELEMENT_S, PACKED_BYTE_S, PACKED_CHUNK_S = 2.6e-9, 24e-9, 12e-9, 0.3e-6
#: A run at the least.
LEAST_S = 0.004
#: What simulations for an answer may cost beside a run: so many seconds, or this share of what its engine takes; and
#: what a single one may, which confirms what is suspected first: more where no derivative says anything.
FREE_S, SHARE = 0.1, 0.1
ONE_S: Mapping[Sharing, float] = {"fifo": 0.25, "fair": 1.0}
#: Seconds of that budget, which stay when engines are measured anew: what is concluded of a run must not move then.
BUDGETED = Prices(4.5e-6, 10e-6, 10e-6, 0.0, step_s=50e-6, stepped_s=14e-9, machine_speed=20, loaded_s=0.0)
#: How many single ones there are, in the mean.
ANSWERED = 0.5
#: Transfers up to which latencies are moved both ways, in runs beside one of the compiled engine: a tie may fall as it
#: did when they are moved one way.
BOTH_WAYS = 50_000


@dataclass(frozen=True)
class SampledSteps:
    """What the steps of a schedule are, by those that were looked at."""

    steps: tuple[Step, ...]
    n_steps: int

    @property
    def share(self) -> float:
        """How much of the schedule was looked at."""
        return len(self.steps) / self.n_steps if self.n_steps else 1.0

    @cached_property
    def chunks(self) -> int:
        """Chunks that move in all."""
        return int(sum(len(step) if step.count is None else step.count.sum() for step in self.steps) / self.share)


@dataclass(frozen=True)
class Work:
    """What simulating a run takes, counted.

    Parameters
    ----------
    events, settlements, rates : float
        Of SimPy; under fair sharing, how often rates are worked out, and how many in all.
    engine_s, answer_s, proof_s, payload_s, table_s : float
        Seconds of the engine, with runs beside it; of what is simulated again for the answer; of the proof of the
        schedule, of what is carried, and of tables.
    """

    events: float
    settlements: float
    rates: float
    engine_s: float
    answer_s: float
    proof_s: float
    payload_s: float
    table_s: float

    @property
    def seconds(self) -> float:
        """All together but the tables, which points of a sweep have none of, on the machine that it was measured on."""
        return LEAST_S + self.engine_s + self.answer_s + self.proof_s + self.payload_s


def work_of(parts: RunParts) -> Work:
    """Count what a run takes, before it is run.

    Raises
    ------
    InputError
        Its network cannot be made, or its engine is not exact for it.
    """
    everybody = (parts, *parts.others)
    moves = [_moves_of(one) for one in everybody]
    events = settlements = rates = 0.0
    engine, schedule = engine_of(parts), parts.schedule
    sharing = sharing_of(parts, engine)
    if engine == "recurrence":
        again_s = engine_s(engine, {}, schedule.n_steps, schedule.n_transfers)
        if parts.keeps_rows:
            takes_s = schedule.n_steps * MEASURED.step_s + schedule.n_transfers * STEPPED_ROW_S
        elif _can_leap(parts) and _all_alike(parts):
            takes_s = _leapt_s(parts)
        else:
            takes_s = again_s
    else:
        if sharing == "fair":
            events, settlements, rates = _fair_work(parts, moves)
        else:
            events = sum(map(_fifo_events, everybody, moves))
        counts = {"events": events, "settlements": settlements, "rates": rates}
        n_transfers = sum(one.schedule.n_transfers for one in everybody)
        again_s = takes_s = engine_s(engine, counts, n_transfers=n_transfers)
        if engine == "compiled":
            n_nudged = (1 + (n_transfers <= BOTH_WAYS)) if sharing == "fair" else 0
            takes_s = LOAD_S + (1 + n_nudged) * again_s
    found = [one for one in everybody if not isinstance(one.network.find_route, RouteFormula)]
    takes_s += ROUTE_S * sum(len(one.schedule.pairs[0]) for one in found)
    return Work(
        events,
        settlements,
        rates,
        takes_s,
        ANSWERED * again_s if again_s <= ONE_S[sharing] else 0.0,
        sum(map(proof_s, everybody, moves)),
        sum(_payload_s(one, engine) for one in everybody),
        _table_s(parts, sharing, events),
    )


def engine_s(
    engine: str, counts: Mapping[str, float], n_steps: int = 0, n_transfers: int = 0, prices: Prices = MEASURED
) -> float:
    """Return what an engine takes, in seconds: for what it counts, or where it steps through arrays, by these.

    >>> engine_s("events", {"settlements": 1000}), engine_s("compiled", {"events": 0, "settlements": 0, "rates": 2000})
    (0.02, 0.00048)
    """
    if engine == "recurrence":
        return n_steps * prices.step_s + n_transfers * prices.stepped_s
    each_s = {"events": prices.event_s, "settlements": prices.settlement_s, "rates": prices.rate_s}
    takes_s = sum(number * each_s[name] for name, number in counts.items())
    if engine == "compiled":
        return takes_s / prices.machine_speed + n_transfers * prices.loaded_s
    return takes_s + n_transfers * prices.flow_s * (counts.get("rates", 0) > 0)


def steps_done(parts: RunParts) -> int:
    """Return how many steps the arrays do where times go on alike; the others are leapt over."""
    n_steps = parts.schedule.n_steps
    ends = LINKS_APART if len(parts.network.hops(*parts.schedule.pairs)) > 1 else 1
    return min(n_steps, int(DONE_EACH_DOUBLING * ends * np.log2(2 * n_steps)))


def _leapt_s(parts: RunParts) -> float:
    schedule, n_hops = parts.schedule, len(parts.network.hops(*parts.schedule.pairs))
    transfers_s = schedule.n_transfers / schedule.n_steps * n_hops * MEASURED.stepped_s
    done_s = MEASURED.step_s + LOOKED_AT * transfers_s
    return schedule.n_steps * LEAPT_STEP_S + steps_done(parts) * done_s


def _can_leap(parts: RunParts) -> bool:
    says_so = isinstance(parts.schedule.make_steps, AlikeSteps) and parts.schedule.n_steps > 0
    return says_so and not parts.keeps_rows and _same(parts.chunk_sizes)


def _all_alike(parts: RunParts) -> bool:
    """Whether all workers, and all links that are used, are alike, so that times go on alike from step to step."""
    network, workers = parts.network_of_run, parts.workers
    if network.behaviours or workers.paces or workers.luck is not None:
        return False
    columns = [workers.start_s, workers.launch_s, workers.reduce_Bps, workers.send_overhead_s, workers.recv_overhead_s]
    for within, links in network.hops(*parts.schedule.pairs):
        if within is not None:
            return False
        columns += [network.bandwidth_Bps[links], network.latency_s[links]]
    return all(map(_same, columns))


def _same(column: Array) -> bool:
    return bool((column == column[0]).all())


def _fifo_events(parts: RunParts, moves: SampledSteps) -> float:
    """Return the events of a job.

    Two for each link that a transfer crosses; one for each that a packet or a slot of a window does, one for its
    arrival, and one for the credit that comes back.
    """
    if not parts.schedule.n_transfers:
        return 0.0
    network, events = parts.network, 0.0
    hops_of: dict[tuple[int, int], int] = {}
    for step in moves.steps:
        rows = sorted({*np.linspace(0, len(step) - 1, min(len(step), MOST_PAIRS)).astype(int).tolist()})
        hops = 0
        for src, dst in zip(step.src[rows].tolist(), step.dst[rows].tolist(), strict=True):
            if (src, dst) not in hops_of:
                hops_of[src, dst] = len(network.route(src, dst))
            hops += hops_of[src, dst]
        n_parts, each = _n_parts(parts, step), hops / len(rows)
        has_parts = n_parts > len(step)
        events += n_parts * (each + 1 + (network.window is not None) if has_parts else 2 * each)
    return events / moves.share


def _n_parts(parts: RunParts, step: Step) -> int:
    """Return into how many packets, or slots of a window, the transfers of a step are cut."""
    each = parts.network.part_bytes
    if each is None:
        return len(step)
    return int(np.maximum(-(-step.sizes(parts.chunk_bytes) // each), 1).sum())


def _fair_work(parts: RunParts, moves: list[SampledSteps]) -> tuple[float, float, float]:
    """Return the events, settlements and rates of a run under fair sharing, by its beginning."""
    everybody = (parts, *parts.others)
    n_transfers = sum(one.schedule.n_transfers for one in everybody)
    n_steps = sum(one.schedule.n_steps for one in everybody)
    if max((len(move.steps[0]) for move in moves if move.steps), default=0) > MOST_RATES:
        return (
            1.0 * n_transfers,
            2.0 * n_steps,
            1.0 * n_transfers,
        )  # as in step: a beginning would be half of it
    from ringnet.engines.events.run import begin  # noqa: PLC0415 -- with SimPy, which most runs are counted without

    to_move, until = _bytes_to_move(everybody, moves), begin(jobs_of(everybody), parts.network, parts.traffic)
    n_rates = int(min(MOST_RATES, max(SHARE_OF_TRANSFERS * n_transfers, LEAST_RATES)))
    guess = _by_beginning(until, n_rates, to_move, parts)
    more = int(min(SHARE_OF_RATES * guess[2], MOST_RATES_OF_LARGE))
    return guess if more < 2 * n_rates else _by_beginning(until, more, to_move, parts)


def _by_beginning(
    until: Callable[[int], Beginning], n_rates: int, to_move: float, parts: RunParts
) -> tuple[float, float, float]:
    """Return the events, settlements and rates of a run, by the second half of a beginning with so many rates."""
    half, whole = until(n_rates // 2), until(n_rates)
    if whole.is_all:
        return whole.events, whole.settlements, whole.rates
    before = half[:4] if whole.moved_bytes != half.moved_bytes and whole.rates != half.rates else (0, 0, 0, 0)
    events, settlements, rates, moved_bytes = (last - first for last, first in zip(whole[:4], before, strict=True))
    ratio = max(to_move, 1.0) / max(moved_bytes, 1) * _out_of_step(parts, settlements, rates)
    return events * ratio, settlements * ratio, rates * ratio


def _bytes_to_move(jobs: Sequence[RunParts], moves: list[SampledSteps]) -> float:
    """Return what all workers post and apply."""
    looked_at = zip(jobs, moves, strict=True)
    return sum(
        2 * sum(int(step.sizes(one.chunk_bytes).sum()) for step in move.steps) / move.share for one, move in looked_at
    )


def _out_of_step(parts: RunParts, settlements: float, rates: float) -> float:
    """Return how much more it takes once all are out of step; where many rates are worked out at once, they are not."""
    if settlements < IN_STEP * rates:
        return 1.0
    parts_ways = bool(parts.traffic) or any(one.schedule.n_channels > 1 for one in (parts, *parts.others))
    return OUT_OF_STEP_MUCH if parts_ways else OUT_OF_STEP


def _moves_of(parts: RunParts) -> SampledSteps:
    return SampledSteps(tuple(islice(parts.schedule.steps(), MOST_STEPS)), parts.schedule.n_steps)


def proof_s(parts: RunParts, moves: SampledSteps | None = None) -> float:
    """Return the seconds that the proof of a job's schedule takes."""
    schedule = parts.schedule
    if not schedule.n_transfers:
        return 0.0
    if isinstance(schedule.make_steps, AlikeSteps):
        return schedule.n_steps * PROVED_LEAPT_STEP_S
    moves = moves or _moves_of(parts)
    first = moves.steps[0]
    # As in a ring, one worker stands for all; in an all-to-all no chunk of one is another's with the next target.
    if first.count is None and len(first) == schedule.n_workers and schedule.collective != "all-to-all":
        return schedule.n_steps * PROVED_STEP_S + schedule.n_transfers * PROVED_ALIKE_S
    steps_s = schedule.n_steps * PROVED_STEP_S
    if not keeps_sets(schedule):
        return steps_s + moves.chunks * PROVED_S + schedule.n_workers * schedule.n_chunks * PROVED_CELL_S
    words = -(-schedule.n_workers // _WORD_BITS) if (schedule.source == EVERYONE).any() else 1
    return steps_s + moves.chunks * (PROVED_SET_S + words * PROVED_WORD_S)


def _payload_s(parts: RunParts, engine: str) -> float:
    if parts.source is None:
        return 0.0
    n_bytes = estimate(parts).payload_bytes
    if is_packed(engine, parts.chunk_sizes, parts.carry):
        return n_bytes * PACKED_BYTE_S + parts.schedule.n_workers * len(parts.chunk_sizes) * PACKED_CHUNK_S
    is_small = parts.dtype.itemsize <= 2  # noqa: PLR2004 -- bytes of what no processor adds by itself
    return n_bytes * (SMALL_ELEMENT_S / parts.dtype.itemsize if is_small else BYTE_S)


def _table_s(parts: RunParts, sharing: Sharing, events: float) -> float:
    rows_s = 0.0
    if parts.keeps_rows:
        rows_s = parts.schedule.n_transfers * (ROW_S + FLOW_ROW_S * (sharing == "fair"))
        if parts.network.part_bytes is not None and n_services(parts) <= MOST_SERVICES:
            rows_s += events * PART_EVENT_S
    n_pairs = len(parts.schedule.pairs[0])
    if parts.network.find_equal_routes is not None and n_pairs <= MOST_PAIRS_OF_TABLE:
        rows_s += n_pairs * EQUAL_ROUTES_S
    return rows_s + (parts.network.n_links + parts.schedule.n_workers) * SMALL_ROW_S
