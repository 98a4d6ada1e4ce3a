"""``ringnet list``: every name that a scenario can choose, with a line about it."""

from __future__ import annotations

from textwrap import shorten

import typer

from ringnet.cli.printing import print_json, print_table
from ringnet.collectives import ALGORITHMS, COLLECTIVES
from ringnet.engines import ENGINES
from ringnet.networks import PRESETS, TOPOLOGIES
from ringnet.payload.dtypes import DTYPES
from ringnet.payload.reductions import REDUCTIONS
from ringnet.reporting.plots import PLOTS

#: Characters of a line about a name.
WIDTH = 96


def list_choices(as_json: bool) -> int:
    """Print all names by kind."""
    known = choices()
    if as_json:
        print_json(known)
        return 0
    for kind, names in known.items():
        typer.echo(kind)
        print_table([*names.items()], indent="  ")
    return 0


def choices() -> dict[str, dict[str, str]]:
    """Return, by kind, every name with a line about it.

    >>> choices()["dtypes"]["bfloat16"]
    '2 bytes an element'
    """
    return {
        "collectives": {name: _known_by(name) for name in COLLECTIVES},
        "algorithms": {name: algorithm.summary for name, algorithm in ALGORITHMS.items()},
        "topologies": {name: topology.summary for name, topology in TOPOLOGIES.items()},
        "links": {name: preset.summary for name, preset in PRESETS.items()},
        "reductions": {name: reduction.summary for name, reduction in REDUCTIONS.items()},
        "dtypes": {name: f"{_plural(dtype.itemsize, 'byte')} an element" for name, dtype in DTYPES.items()},
        "engines": {name: engine.summary for name, engine in ENGINES.items()},
        "plots": {name: plot.summary for name, plot in PLOTS.items()},
    }


def _known_by(collective: str) -> str:
    """Name the algorithms that know a collective, as many as fit in a line."""
    names = [name for name, algorithm in ALGORITHMS.items() if collective in algorithm.collectives]
    return shorten(f"by {', '.join(names)}", WIDTH, placeholder=" ...")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
