"""The machine that ``ringnet nccl`` is asked of: by options, by a scenario's network, by a log of NCCL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ringnet.analysis.nccl import NcclMachine
from ringnet.analysis.nccl.search import HostRates, NcclTraits, fitted_to
from ringnet.cli import options
from ringnet.errors import Fault, InputError, unknown
from ringnet.formats.tuner import NcclTuning
from ringnet.networks import PRESETS
from ringnet.scenario import Scenario, loads
from ringnet.units import parse_quantity

#: The NVLink of each generation, by its name among known links.
_NVLINKS = {"volta": "nvlink2", "ampere": "nvlink3", "hopper": "nvlink4", "blackwell": "nvlink5"}
#: Seconds of links whose latency nobody said, between hosts and inside.
_BETWEEN_S, _INSIDE_S = 2e-6, 1e-6


class Asked(NamedTuple):
    """A machine as options describe it; None for what is not said."""

    ranks: int | None
    nodes: int | None
    link: str | None
    cards: int | None
    inside: str | None


def one_of(value: str, known: Sequence[str], option: str) -> str:
    """Return a name that is known; `InputError` for any other."""
    if value not in known:
        raise InputError(unknown("there is none of this name", value, known, option))
    return value


def refuse_beside_a_scenario(asked: Asked) -> None:
    """Refuse options that say what the scenario says."""
    given = {
        "--ranks": asked.ranks,
        "--link": asked.link,
        "--cards": asked.cards,
        "--inside": asked.inside,
    }
    options.refuse(
        Fault("the scenario says this", option, value=str(value), right="--set, to change it there")
        for option, value in given.items()
        if value is not None
    )


def refuse_what_is_no_collective(scenario: Scenario) -> None:
    """Refuse scenarios of more than one collective of one size at a time, and of one worker."""
    others = [key for key in ("step", "jobs", "background") if getattr(scenario, key)]
    message = "what NCCL chooses is asked of one collective that has the network to itself"
    options.refuse(Fault(message, key, right="leave the key out") for key in others)
    if scenario.workers < 2:  # noqa: PLR2004 -- one moves nothing
        raise InputError(Fault("a single GPU moves nothing", "workers", value="1", right="2 or more"))


def swept_over(
    scenario: Path, overrides: Sequence[str] | None, sizes: Sequence[int], allow_outside: bool
) -> Scenario:
    """Read a scenario that is swept over the sizes that are asked for; `InputError` for one that its type has not."""
    try:
        return options.read_scenario(
            scenario, [*(overrides or ()), f"sweep={{{_over(sizes)}}}"], allow_outside
        )
    except InputError as error:
        raise InputError(
            *(
                replace(fault, file="", path="--sizes")
                if fault.path.startswith("sweep.over.message")
                else fault
                for fault in error.faults
            )
        ) from error


def _over(sizes: Sequence[int]) -> str:
    return f"over: {{message: [{', '.join(map(str, sizes))}]}}"


def on_nodes(rates: HostRates, nodes: int) -> HostRates:
    """Return workers without hosts as those of one; `InputError` where the network has other hosts than said."""
    if nodes == rates.n_nodes:
        return rates
    if nodes != 1 or rates.per_node != 1:
        message, value = "the network has other hosts", str(nodes)
        right = f"{rates.n_nodes}, or 1 for workers that the scenario puts on no hosts"
        raise InputError(Fault(message, "--nodes", value=value, right=right))
    return HostRates(1, rates.n_nodes, rates.between_GBps, rates.between_GBps)


def rates_asked(asked: Asked, traits: NcclTraits, printed: NcclTuning | None) -> HostRates:
    """Return the hosts that options describe, or that a log does; `InputError` where something is missing."""
    if printed:
        stated = (("--ranks", asked.ranks, printed.n_ranks), ("--nodes", asked.nodes, printed.n_nodes))
        options.refuse(
            Fault("the log says another number", option, value=str(given), right=str(found))
            for option, given, found in stated
            if given and found and given != found
        )
    ranks = asked.ranks or (printed.n_ranks if printed else None)
    nodes = asked.nodes or (printed.n_nodes if printed else None) or (None if printed else 1)
    missing = {"--ranks": ranks, "--nodes": nodes}
    message = "how many is not said, and not in the log" if printed else "a scenario or this is needed"
    options.refuse(
        Fault(message, option, right=f"{option} 8") for option, value in missing.items() if value is None
    )
    assert ranks is not None  # both were refused above
    assert nodes is not None
    if ranks > options.MOST_WORKERS:
        raise InputError(
            Fault("too many", "--ranks", value=str(ranks), right=f"at most {options.MOST_WORKERS}")
        )
    if ranks < 2 or ranks % nodes:  # noqa: PLR2004 -- one moves nothing
        message = "every host has the same number of GPUs, and there are two at least"
        raise InputError(Fault(message, "--ranks", value=f"{ranks} on {nodes}", right=f"{2 * nodes}"))
    if nodes > 1 and asked.link is None and printed is None:
        right = "--link '50 GB/s', or a name: infiniband-ndr"
        raise InputError(Fault("what joins the hosts is not said", "--link", right=right))
    inside_Bps, _ = _link(
        asked.inside or ("pcie4-x16" if traits.inside == "pci" else _NVLINKS[traits.gpu]), "--inside"
    )
    cards = asked.cards or ranks // nodes
    link_Bps = _link(asked.link, "--link")[0] if asked.link else inside_Bps
    return HostRates(nodes, ranks // nodes, inside_Bps / 1e9, cards * link_Bps / 1e9, cards)


def _link(text: str, option: str) -> tuple[float, float | None]:
    """Return bandwidth, and latency where it is known, of a known link or of a rate."""
    if text in PRESETS:
        return PRESETS[text].bandwidth_Bps, PRESETS[text].latency_s
    try:
        return parse_quantity(text, "bytes_per_second"), None
    except InputError as error:
        faults = (
            Fault(
                one.message,
                option,
                value=one.value,
                right="50 GB/s, or a link that `ringnet list` names",
            )
            for one in error.faults
        )
        raise InputError(*faults) from error


def network_asked(
    rates: HostRates, asked: Asked, sizes: Sequence[int], overrides: Sequence[str] | None
) -> Scenario:
    """Return the scenario of the network that options describe, to be simulated."""
    between_s = (_link(asked.link, "--link")[1] if asked.link else None) or _BETWEEN_S
    inside_s = (_link(asked.inside, "--inside")[1] if asked.inside else None) or _INSIDE_S
    inside = f"bandwidth: {rates.inside_GBps:.12g} GB/s, latency: {inside_s:.12g} s"
    card = rates.between_GBps / rates.n_cards
    between = f"bandwidth: {card:.12g} GB/s, latency: {between_s:.12g} s"
    if rates.n_nodes == 1:
        network = f"topology: switch, {inside}"
    elif rates.per_node == 1 and rates.n_cards == 1:
        network = f"topology: switch, {between}"
    else:
        hosts = f"topology: nodes, workers_per_host: {rates.per_node}, nics: {rates.n_cards}"
        network = f"{hosts}, inside: {{shape: switch, {inside}}}, {between}"
    text = (
        f"scenario_version: 1\nname: as asked\nworkers: {rates.n_nodes * rates.per_node}\nmessage: 1 MiB\n"
        f"dtype: uint8\npayload: none\nnetwork: {{{network}}}\nsweep: {{{_over(sizes)}}}\n"
    )
    return loads(text, overrides or ())


def as_printed(machine: NcclMachine, printed: NcclTuning, *, may_fit: bool) -> NcclMachine:
    """Return the machine with the graphs that the log has, or that its values speak of."""
    if not may_fit:
        return machine
    machine = fitted_to(machine, printed.cells)
    machine = replace(machine, **printed.graphs)  # type: ignore[arg-type]  # ring and tree, both graphs
    return machine if printed.same_channels is None else replace(machine, same_channels=printed.same_channels)
