"""``ringnet network``: what another tool's file says of a network, and what it does not say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ringnet.cli import options
from ringnet.cli.printing import print_json, print_table
from ringnet.formats.networks import read_network_file
from ringnet.formats.networks.reading import Reading

EXAMPLE = "ringnet network topology.xml"


def command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="ASTRA-sim's network YAML, or NCCL's topology or graph XML."),
    ],
    as_json: options.Json = False,
) -> int:
    """Say what another tool's network file holds, what is assumed, and what is left out."""
    reading = read_network_file(file)
    if as_json:
        print_json(_document(reading))
    else:
        print_table(_rows(reading, file))
    return 0


def _rows(reading: Reading, file: Path) -> list[tuple[str, str]]:
    parts = {"understood": reading.understood, "assumed": reading.assumed, "left out": reading.left_out}
    rows = [("file", f"{file}: {reading.kind}"), ("workers", str(reading.n_workers))]
    for title, sentences in parts.items():
        rows += [
            (title if place == 0 else "", sentence)
            for place, sentence in enumerate(sentences or ("nothing",))
        ]
    return [*rows, ("in a scenario", _use(reading, file))]


def _use(reading: Reading, file: Path) -> str:
    """Say how a scenario takes the file."""
    if reading.network is not None:
        return f"network: {{file: {file.name}}}"
    channels = "; algorithm: channel-ring gives each channel its own" if len(reading.orders) > 1 else ""
    return f"network: {{order: {{file: {file.name}}}, ...}}{channels}"


def _document(reading: Reading) -> dict[str, Any]:
    return {
        "kind": reading.kind,
        "n_workers": reading.n_workers,
        "understood": reading.understood,
        "assumed": reading.assumed,
        "left_out": reading.left_out,
        "orders": reading.orders,
        "nodes": dict(reading.nodes),
        "links": _links(reading),
    }


def _links(reading: Reading) -> list[dict[str, Any]]:
    if reading.network is None:
        return []
    network = reading.network
    return [
        {
            "link": name,
            "from": network.ends(link)[0],
            "to": network.ends(link)[1],
            "bandwidth_Bps": network.bandwidth_Bps[link],
            "latency_s": network.latency_s[link],
        }
        for link, name in enumerate(network.names)
    ]
