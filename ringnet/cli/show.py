"""``ringnet show``: a machine that a scenario can name, its numbers, where each comes from, and a drawing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from ringnet.cli import options
from ringnet.cli.printing import print_json, print_table, say
from ringnet.documents.document import in_flow, path_text
from ringnet.errors import InputError
from ringnet.networks import PRESETS, Network
from ringnet.runs.parts import build_site
from ringnet.scenario import loads
from ringnet.scenario.files.machines import Machine, machine_of, source_of
from ringnet.scenario.keys.base import MACHINES
from ringnet.units import format_rate, format_seconds

EXAMPLE = "ringnet show dgx-h100"


class _Value(NamedTuple):
    """A number of a machine as its file has it, and where it comes from."""

    key: str
    value: str
    source: str
    is_estimate: bool


def command(
    machine: Annotated[
        str, typer.Argument(metavar="MACHINE", help="The name of a machine; ringnet list machines has all.")
    ],
    as_json: options.Json = False,
) -> int:
    """Show a machine: its numbers, where each comes from, and a drawing."""
    if machine not in MACHINES:
        from ringnet.cli.list import no_such  # noqa: PLC0415 -- knows all that has a name, and is asked of a mistake only

        raise InputError(no_such("machine", machine, MACHINES, "MACHINE"))
    found = machine_of(machine)
    values = [*_values(found)]
    if as_json:
        rows: list[dict[str, Any]] = [one._asdict() for one in values]
        print_json({"machine": machine, "title": found.title, "values": rows})
        return 0
    say(f"{machine}: {found.title}")
    say()
    said = [(key, value, f"estimate: {text}" if guess else text) for key, value, text, guess in values]
    print_table([("key", "value", "source"), *said])
    say()
    say("ways of a transfer:")
    print_table([*_ways(found)], indent="  ")
    say()
    say(f"in a scenario: machine: {machine}, and beside it the keys that differ")
    return 0


def _values(machine: Machine) -> Iterator[_Value]:
    document = machine.document
    for path in document.marks:
        value = document.get(path)
        is_whole = isinstance(value, dict) or (path and isinstance(path[-1], int))
        if not path or is_whole:
            continue
        source = source_of(machine, path)
        text, is_estimate = (source.text, source.is_estimate) if source else ("", False)
        yield _Value(path_text(path), _told(path[-1], value), text, is_estimate)


def _told(key: str | int, value: Any) -> str:
    """Write a value, and of a link by name its numbers."""
    if key != "link" or value not in PRESETS:
        return in_flow(value)
    link = PRESETS[value]
    numbers = f"{format_rate(link.bandwidth_Bps)}, {format_seconds(link.latency_s)} from end to end"
    return f"{value} ({numbers})"


def _ways(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield the ways that transfers take, from one worker to another, with what each link gives."""
    text = {"scenario_version": 1, "machine": machine.name, "message": 0, "payload": "none"}
    # Two hosts, or two racks of such that have one worker each.
    has_hosts = machine.document.has(("network", "workers_per_host"))
    on_leaf = machine.document.get(("network", "hosts_per_leaf")) or 1
    is_grid = machine.document.has(("network", "sides"))
    hosts = {} if is_grid else {"hosts": 2 if has_hosts else 2 * on_leaf}
    scenario = loads(json.dumps(text | hosts), file=machine.name)
    network = build_site(scenario).networks[0]
    per_host, last = network.shape.workers_per_host, network.n_workers - 1
    pairs = {"to the next": (0, 1), "to the last": (0, last)}
    if per_host is not None and per_host < network.n_workers:
        pairs = {
            "inside a host": (0, 1),
            "to another host": (0, per_host),
            **({"over another card": (0, last)} if network.shape.cards_per_host != 1 else {}),
        }
    for name, (src, dst) in pairs.items():
        if src != dst and dst <= last:
            yield name, _way(network, src, dst)


def _way(network: Network, src: int, dst: int) -> str:
    """Draw a route: ``0 ==450 GB/s==> h0/switch``."""
    links = network.route(src, dst)
    here, drawn = network.node(src), [network.node(src)]
    for link in links:
        start, end = network.ends(link)
        here = end if here == start else start
        drawn.append(f"=={format_rate(network.bandwidth_Bps[link])}==> {here}")
    return " ".join(drawn)
