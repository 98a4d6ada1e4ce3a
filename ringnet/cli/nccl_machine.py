"""The machine that ``ringnet nccl`` is asked of: by options, by a scenario's network, by a log of NCCL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from ringnet.analysis.nccl import NcclMachine, constants
from ringnet.analysis.nccl.search import HostRates, NcclTraits, fitted_to
from ringnet.cli import options
from ringnet.cli.targets import check_targets, sources_of
from ringnet.errors import Fault, InputError, unknown
from ringnet.formats.tuner import NcclTuning
from ringnet.networks import PRESETS
from ringnet.scenario import Scenario, loads
from ringnet.units import parse_quantity

#: The NVLink of each generation, by its name among known links.
_NVLINKS = {"volta": "nvlink2", "ampere": "nvlink3", "hopper": "nvlink4", "blackwell": "nvlink5"}
#: Seconds of links whose latency nobody said, between hosts and inside.
_BETWEEN_S, _INSIDE_S = 2e-6, 1e-6


@dataclass(frozen=True)
class NcclOptions:
    """What is asked: of which machine, what of it, and where the answer goes."""

    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO", help="A scenario, for its network; or --ranks.")
    ] = None
    ranks: Annotated[int | None, typer.Option(min=2, metavar="N", help="GPUs in all.")] = None
    nodes: Annotated[int | None, typer.Option(min=1, metavar="M", help="Hosts.  [1]")] = None
    link: Annotated[str | None, typer.Option(metavar="RATE|NAME", help="Each card: '50 GB/s', infiniband-ndr.")] = None
    cards: Annotated[int | None, typer.Option(min=1, metavar="K", help="Network cards of a host.  [one a GPU]")] = None
    inside: Annotated[
        str | None,
        typer.Option(metavar="RATE|NAME", help="Each GPU inside its host.  [NVLink of the GPU]"),
    ] = None
    gpu: Annotated[str, typer.Option(metavar="|".join(constants.GPUS), help="Generation.")] = "hopper"
    cpu: Annotated[str, typer.Option(metavar="|".join(constants.CPUS), help="Of the hosts.")] = "intel"
    pci: Annotated[bool, typer.Option("--pci", help="GPUs of a host are joined by PCI, not NVLink.")] = False
    nvls: Annotated[bool | None, typer.Option(help="The NVLink switch reduces.  [Hopper and later, with NVLink]")] = (
        None
    )
    ll128: Annotated[bool | None, typer.Option(help="LL128 is on.  [with NVLink]")] = None
    sharp: Annotated[bool, typer.Option("--sharp", help="Switches of the network reduce: CollNet, NVLS.")] = False
    collective: Annotated[
        list[str] | None,
        typer.Option(metavar="all|A,B", help="Which.  [the scenario's, or all-reduce]"),
    ] = None
    sizes: Annotated[
        list[str] | None,
        typer.Option(metavar="FROM..TO|A,B", help="Message sizes.  [the scenario's, or 1 KiB to 1 GiB by 4]"),
    ] = None
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What NCCL printed with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING, held against the model.",
        ),
    ] = None
    tuner: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write where the simulation differs, for NCCL's plug-in."),
    ] = None
    simulate: Annotated[
        bool | None, typer.Option(help="Simulate rings and trees of the same network.  [up to 64 GPUs]")
    ] = None
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw times and the choice.")] = None
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE.csv", help="Write the times.")] = None
    overrides: options.Overrides = None
    as_json: options.Json = False
    allow_outside: options.AllowOutside = False

    def traits(self) -> NcclTraits:
        """Return what the model must know of the machine beside its rates."""
        return NcclTraits(
            _one_of(self.gpu, constants.GPUS, "--gpu"),
            _one_of(self.cpu, constants.CPUS, "--cpu"),
            "pci" if self.pci else "nvlink",
            self.nvls,
            self.ll128,
            self.sharp,
        )

    def check_targets(self, sources: Iterable[Path]) -> None:
        """Refuse, before any work is done, to write where something would be lost; see `targets.check_targets`."""
        check_targets({"--tuner": self.tuner, "--plot": self.plot, "--csv": self.csv}, sources)


def _one_of(value: str, known: Sequence[str], option: str) -> str:
    """Return a name that is known; `InputError` for any other."""
    if value not in known:
        raise InputError(unknown(f"there is no such {option.strip('-').upper()}", value, known, option))
    return value


def scenario_asked(asked: NcclOptions, sizes: Sequence[int]) -> Scenario | None:
    """Return the scenario, swept over sizes that are asked for or that it does not say; None where none is given.

    Raises
    ------
    InputError
        With options that say what a scenario says; it is none of a collective that has the network to itself.
    """
    if asked.scenario is None:
        return None
    _refuse_beside_a_scenario(asked)
    found = options.read_scenario(asked.scenario, asked.overrides, asked.allow_outside)
    _refuse_what_is_no_collective(found)
    if asked.sizes or "message" not in found.swept:
        swept = [*(asked.overrides or ()), f"sweep={{{_over(sizes)}}}"]
        with _at_the_sizes():
            found = options.read_scenario(asked.scenario, swept, asked.allow_outside)
    asked.check_targets(sources_of(found, asked.scenario))
    return found


def _refuse_beside_a_scenario(asked: NcclOptions) -> None:
    """Refuse options that say what the scenario says."""
    given = {
        "--ranks": (asked.ranks, "workers"),
        "--link": (asked.link, _key_of("network", asked.link)),
        "--cards": (asked.cards, "network.nics"),
        "--inside": (asked.inside, _key_of("network.inside", asked.inside)),
    }
    options.refuse(
        Fault("the scenario says this", option, value=str(value), right=f"--set {quote(f'{key}={value}')}")
        for option, (value, key) in given.items()
        if value is not None
    )


def _key_of(links: str, link: str | None) -> str:
    return f"{links}.{'link' if link in PRESETS else 'bandwidth'}"


def _refuse_what_is_no_collective(scenario: Scenario) -> None:
    """Refuse scenarios of more than one collective of one size at a time, and of one worker."""
    others = [key for key in ("step", "jobs", "background") if getattr(scenario, key)]
    message = "what NCCL chooses is asked of one collective that has the network to itself"
    options.refuse(Fault(message, key, right="leave the key out") for key in others)
    if scenario.workers < 2:  # noqa: PLR2004 -- one moves nothing
        raise InputError(Fault("a single GPU moves nothing", "workers", value="1", right="2 or more"))


@contextmanager
def _at_the_sizes() -> Iterator[None]:
    """Tell faults of swept messages, which the type of the scenario has not, at the option that asked for them."""
    try:
        yield
    except InputError as error:
        raise InputError(
            *(
                replace(fault, file="", path="--sizes") if fault.path.startswith("sweep.over.message") else fault
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


def rates_asked(asked: NcclOptions, traits: NcclTraits, printed: NcclTuning | None) -> HostRates:
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
    options.refuse(Fault(message, option, right=f"{option} 8") for option, value in missing.items() if value is None)
    assert ranks is not None  # both were refused above
    assert nodes is not None
    if ranks > options.MOST_WORKERS:
        raise InputError(Fault("too many", "--ranks", value=str(ranks), right=f"at most {options.MOST_WORKERS}"))
    if ranks < 2 or ranks % nodes:  # noqa: PLR2004 -- one moves nothing
        message = "every host has the same number of GPUs, and there are two at least"
        raise InputError(Fault(message, "--ranks", value=f"{ranks} on {nodes}", right=f"{2 * nodes}"))
    if nodes > 1 and asked.link is None and printed is None:
        right = "--link '50 GB/s', or a name: infiniband-ndr"
        raise InputError(Fault("what joins the hosts is not said", "--link", right=right))
    inside_Bps, _ = _link(asked.inside or ("pcie4-x16" if traits.inside == "pci" else _NVLINKS[traits.gpu]), "--inside")
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


def network_asked(rates: HostRates, asked: NcclOptions, sizes: Sequence[int]) -> Scenario:
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
    return loads(text, asked.overrides or ())


def as_printed(machine: NcclMachine, printed: NcclTuning, *, may_fit: bool) -> NcclMachine:
    """Return the machine with the graphs that the log has, or that its values speak of."""
    if not may_fit:
        return machine
    machine = fitted_to(machine, printed.cells)
    machine = replace(machine, **printed.graphs)  # type: ignore[arg-type]  # ring and tree, both graphs
    return machine if printed.same_channels is None else replace(machine, same_channels=printed.same_channels)
