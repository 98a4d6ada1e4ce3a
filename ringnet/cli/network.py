"""``ringnet network``: the links of a scenario's network before a run, and what another tool's network file says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from math import isinf
from pathlib import Path
from typing import Annotated, Any

import typer

from ringnet.cli import options
from ringnet.cli.printing import note, print_json, print_table, say
from ringnet.errors import Fault, InputError
from ringnet.formats.networks import is_scenario, read_network_file
from ringnet.formats.networks.reading import Reading
from ringnet.networks import Behaviour, BySize, Constant, Network, OverTime
from ringnet.reporting.atomic import MANIFEST
from ringnet.runs.parts import build_site
from ringnet.scenario.build.load import STANDARD_INPUT
from ringnet.units import counted, format_bytes, format_rate, format_seconds

EXAMPLE = "ringnet network scenario.yaml --links 'h0/*'"

#: Links that a person is shown; a pattern finds others, and ``--json`` has all.
SHOWN_LINKS = 200
#: Kinds of links that are told one by one.
SHOWN_KINDS = 8


def command(  # noqa: PLR0917 -- every option is a parameter
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A scenario; or ASTRA-sim's network YAML, NCCL's topology or graph XML."),
    ],
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="LINK", help="Links to list, by name; * stands for anything: '*->h0/nic1'."),
    ] = None,
    overrides: options.Overrides = None,
    links: Annotated[
        bool, typer.Option("--links", help="List the links: name, bandwidth, latency, and what else they do.")
    ] = False,
    as_json: options.Json = False,
    allow_outside: options.AllowOutside = False,
    allow_python: options.AllowPython = False,
) -> int:
    """List the links of a scenario's network, or say what another tool's network file holds and leaves out."""
    place = "--links" if links else "LINK"
    if str(file) == STANDARD_INPUT or file.is_dir() or file.name == MANIFEST or is_scenario(file):
        scenario = options.read_scenario(file, overrides, allow_outside, allow_python)
        note(*(["of a sweep the first point is told"] if scenario.sweep is not None else []))
        network = build_site(scenario).networks[0]
        if not links and not patterns and not as_json:
            print_table([*_summary(network), ("links by name", f"ringnet network {file} --links")])
            return 0
        return _tell_links(network, patterns or [], place, as_json=as_json)
    if overrides:
        raise InputError(Fault("this option is for a scenario", "--set", value=str(file)))
    reading = read_network_file(file)
    if links or patterns:
        if reading.network is None:
            message = f"this is the {reading.kind}: it has the order of rings, and no links"
            raise InputError(Fault(message, file=str(file), right="a scenario, or a topology file"))
        return _tell_links(reading.network, patterns or [], place, as_json=as_json)
    if as_json:
        print_json(_document(reading))
    else:
        print_table(_rows(reading, file))
    return 0


def _rows(reading: Reading, file: Path) -> list[tuple[str, str]]:
    parts = {"understood": reading.understood, "assumed": reading.assumed, "left out": reading.left_out}
    rows = [("file", f"{file}: {reading.kind}"), ("workers", str(reading.n_workers))]
    for title, sentences in parts.items():
        rows += [(title if place == 0 else "", sentence) for place, sentence in enumerate(sentences or ("nothing",))]
    return [*rows, ("in a scenario", _use(reading, file))]


def _use(reading: Reading, file: Path) -> str:
    """Say how a scenario takes the file."""
    if reading.network is not None:
        return f"network: {{file: {file.name}}}"
    channels = "; algorithm: channel-ring gives each channel its own" if len(reading.orders) > 1 else ""
    return f"network: {{order: {{file: {file.name}}}, ...}}{channels}"


def _document(reading: Reading) -> dict[str, Any]:
    network = reading.network
    return {
        "kind": reading.kind,
        "n_workers": reading.n_workers,
        "understood": reading.understood,
        "assumed": reading.assumed,
        "left_out": reading.left_out,
        "orders": reading.orders,
        "nodes": dict(reading.nodes),
        "links": [] if network is None else [link_row(network, link) for link in range(network.n_links)],
    }


def link_row(network: Network, link: int) -> dict[str, Any]:
    """Return the name of a link, its ends and what it offers."""
    start, end = network.ends(link)
    return {
        "link": network.names[link],
        "from": start,
        "to": end,
        "bandwidth_Bps": float(network.bandwidth_Bps[link]),
        "latency_s": float(network.latency_s[link]),
    }


def _tell_links(network: Network, patterns: Sequence[str], place: str, *, as_json: bool) -> int:
    """Print the links that fit any of the patterns, or all; `InputError` at ``place`` for a pattern that fits none."""
    chosen = _fitting(network, patterns, place)
    if as_json:
        rows = [link_row(network, link) | {"also": _behaviour_words(network.behaviour(link))} for link in chosen]
        print_json({"n_workers": network.n_workers, "topology": network.topology, "links": rows})
        return 0
    shown = [_link_words(network, link) for link in chosen[:SHOWN_LINKS]]
    print_table([("link", "from", "to", "bandwidth", "latency", ""), *shown])
    if len(chosen) > SHOWN_LINKS:
        say(f"... and {len(chosen) - SHOWN_LINKS:,} more; a name with * picks some, --json has all")
    return 0


def _fitting(network: Network, patterns: Sequence[str], place: str) -> list[int]:
    found = {
        pattern: [link for link, name in enumerate(network.names) if fnmatchcase(name, pattern)] for pattern in patterns
    }
    message, right = "no link has a name like this", ", ".join([*network.names[:3], "..."])
    options.refuse(Fault(message, place, value=pattern, right=right) for pattern in patterns if not found[pattern])
    return sorted({link for links in found.values() for link in links}) if patterns else [*range(network.n_links)]


def _link_words(network: Network, link: int) -> tuple[str, ...]:
    offer = format_rate(network.bandwidth_Bps[link]), format_seconds(network.latency_s[link])
    return (network.names[link], *network.ends(link), *offer, _behaviour_words(network.behaviour(link)))


def _behaviour_words(behaviour: Behaviour) -> str:
    """Say what a link does beyond its bandwidth and latency; nothing where that is all.

    >>> from ringnet.networks import Piece
    >>> _behaviour_words(OverTime(50e9, 1e-6, ((2e-5, 5e9),)))
    '5 GB/s from 20 us on'
    >>> _behaviour_words(BySize((Piece(8192, 5e9, 2e-6), Piece(float("inf"), 50e9, 5e-7))))
    'up to 8 KiB 5 GB/s and 2 us'
    """
    if isinstance(behaviour, BySize):
        return ", ".join(
            f"up to {format_bytes(int(piece.up_to_bytes))} {format_rate(piece.bandwidth_Bps)} and "
            f"{format_seconds(piece.latency_s)}"
            for piece in behaviour.pieces
            if not isinf(piece.up_to_bytes)
        )
    if isinstance(behaviour, OverTime):
        return ", ".join(f"{format_rate(rate)} from {format_seconds(at_s)} on" for at_s, rate in behaviour.changes)
    return "" if isinstance(behaviour, Constant) else behaviour.meaning


def _summary(network: Network) -> Iterator[tuple[str, str]]:
    """Yield what a network is in a few lines: links alike are counted."""
    yield "topology", f"{network.topology}, {counted(network.n_workers, 'worker')}"
    alike = Counter(_link_words(network, link)[3:] for link in range(network.n_links))
    for place, ((bandwidth, latency, more), count) in enumerate(alike.most_common(SHOWN_KINDS)):
        said = f"{counted(count, 'link')}, {bandwidth} and {latency}{f'; {more}' if more else ''}"
        yield "" if place else "links", said
    if len(alike) > SHOWN_KINDS:
        yield "", f"and {len(alike) - SHOWN_KINDS} more kinds"
    yield "sharing", f"{network.sharing}, {network.switching}"
