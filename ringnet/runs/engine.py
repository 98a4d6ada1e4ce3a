"""What a scenario leaves open: which engine runs, and how links are shared."""

from __future__ import annotations

from ringnet.array_types import IntArray
from ringnet.engines import ENGINES, Choice
from ringnet.engines.arrays import why_not_exact
from ringnet.engines.sharing import Sending, resolve_sharing
from ringnet.errors import Fault, InputError
from ringnet.networks import DrawnBandwidth
from ringnet.networks.network import Sharing
from ringnet.payload import PackedPayload, Payload, SwitchSums
from ringnet.payload.tamper import Tamper, make_payload
from ringnet.runs.parts import RunParts, streams

#: Carried elements of a chunk up to which one array for all chunks is faster than an array for each.
PACKED_ELEMENTS = 4096
#: Transfers a second of each engine on a slow core.
TRANSFERS_PER_S = {"events": 100e3, "recurrence": 10e6, "compiled": 300e3}


def engine_for(parts: RunParts) -> Choice:
    """Return the engine that runs, and why; `InputError` for one that cannot."""
    require_whole_links(parts)
    if not parts.is_alone:
        return _beside_others(parts)
    if parts.engine == "auto":
        return parts.choice
    engine = ENGINES[parts.engine]
    if reason := engine.why_not(parts.schedule, parts.network_of_run, parts.workers, parts.chunk_bytes):
        raise InputError(Fault(f"{engine.refusal}: {reason}", "engine", right="events, or auto"))
    return Choice(parts.engine, "the scenario says so", engine.run)


def repeats_by(parts: RunParts) -> str:
    """Return the engine that computes the times of many runs; ``parts`` are those of no run.

    Raises
    ------
    InputError
        The scenario names one that is not exact here.
    """
    if not parts.is_alone or parts.engine == "events":
        return "events"
    reason = why_not_exact(parts.schedule, parts.network_of_run, parts.workers, may_draw=True)
    if reason and parts.engine == "recurrence":
        raise InputError(Fault(f"the recurrence is not exact here: {reason}", "engine", right="events, or auto"))
    return "events" if reason else "recurrence"


def require_whole_links(parts: RunParts) -> None:
    """Refuse links that draw a bandwidth for each transfer and have several at once.

    Raises
    ------
    InputError
        They are shared fairly.
    """
    draws = any(type(one) is DrawnBandwidth for one in parts.network.behaviours.values())
    if draws and sharing_of(parts, "events") == "fair":
        message = "a bandwidth is drawn for each transfer, and a link that is shared fairly has several at once"
        raise InputError(Fault(message, "network.sharing", right="sharing: fifo, or bandwidth per: link"))


def engine_of(parts: RunParts) -> str:
    """Return the name of the engine that would run."""
    return parts.engine if parts.engine != "auto" else engine_for(parts).name


def is_packed(engine: str, chunk_sizes: IntArray, carry: int | None) -> bool:
    """Whether a payload travels as one array for all chunks: little of each, in the engine that can."""
    largest = int(chunk_sizes.max(initial=0))
    return engine != "events" and min(largest, largest if carry is None else carry) <= PACKED_ELEMENTS


def payload_for(parts: RunParts, engine: str, tamper: Tamper | None = None) -> Payload | PackedPayload | None:
    """Return what is carried, as the engine carries it; None where nothing is."""
    if parts.source is None:
        return None
    packed = is_packed(engine, parts.chunk_sizes, parts.carry)
    sizes, holders = parts.chunk_sizes, parts.schedule.source
    what = (parts.source, parts.reduction, sizes, holders, parts.carry)
    switches = SwitchSums(parts.schedule.n_switches, parts.accumulate)
    return make_payload(*what, packed=packed, tamper=tamper, switches=switches)


def _beside_others(parts: RunParts) -> Choice:
    reason = "others share the links"
    if parts.engine not in ("auto", "events"):
        raise InputError(Fault(f"{ENGINES[parts.engine].refusal}: {reason}", "engine", right="events, or auto"))
    return Choice("events", reason, ENGINES["events"].run)


def sharing_of(parts: RunParts, engine: str) -> Sharing:
    """Return how links are shared in a run."""
    if parts.network.sharing != "auto":
        return parts.network.sharing
    if engine == "recurrence":  # which is exact for links of one sender each only
        return "fifo"
    everybody = (parts, *parts.others)
    sending = [
        Sending(stream, one.schedule, one.network) for stream, one in zip(streams(everybody), everybody, strict=True)
    ]
    return resolve_sharing(parts.network, sending, [(one.name, one.links) for one in parts.traffic])
