"""``ringnet list``: every name that a scenario can choose, and every column of a table, with a line about it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from shlex import quote
from textwrap import wrap
from typing import Annotated

import typer

from ringnet.cli import options
from ringnet.cli.printing import print_json, print_table, say
from ringnet.collectives import ALGORITHMS, COLLECTIVES
from ringnet.engines import ENGINES
from ringnet.errors import Fault, InputError, unknown
from ringnet.networks import PRESETS, TOPOLOGIES
from ringnet.payload.dtypes import ITEMSIZES
from ringnet.payload.reductions import REDUCTIONS
from ringnet.reporting.columns import OF_SOME_RUNS, TABLES
from ringnet.reporting.plots import PLOTS
from ringnet.scenario.keys.base import MACHINES, title_of
from ringnet.training.layers import MODEL_PRESETS, ModelPreset
from ringnet.training.optimizers import OPTIMIZERS, OptimizerKind
from ringnet.training.steps import STRATEGIES
from ringnet.units import counted, format_count, format_rate, format_seconds

EXAMPLE = "ringnet list algorithms"

#: The kind that no scenario chooses from.
COLUMNS = "columns"
#: The kind whose numbers and sources are told where it is asked for.
LINKS = "links"
#: Characters of a line about a name.
WIDTH = 96


def command(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help="These only: algorithms, links, plots; columns for those of tables."),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """List the names that a scenario can choose from, or what the columns of the tables mean."""
    known: Mapping[str, Mapping[str, str]] = choices()
    if kind == COLUMNS:
        known = columns()
    elif kind is not None:
        known = {kind: known[_known(kind, [*known, COLUMNS])]}
    if as_json:
        print_json(known)
        return 0
    for heading, names in known.items():
        say(f"{heading}.csv" if kind == COLUMNS else heading)
        if kind == LINKS:
            _tell_links()
        else:
            print_table([*_wrapped(names)], indent="  ")
    if kind is None:
        say(f"{COLUMNS} of the tables: ringnet list {COLUMNS}")
    return 0


def _known(kind: str, kinds: list[str]) -> str:
    if kind in kinds:
        return kind
    raise InputError(no_such("kind of names", kind, kinds, "KIND"))


def no_such(what: str, name: str, known: Collection[str], path: str) -> Fault:
    """Return the fault of an unknown name: which command shows what it is the name of, or the names that there are."""
    message = f"there is no such {what}"
    if Path(name).is_file():
        return Fault(f"{message}: this is a file", path, value=name, right=f"ringnet network {quote(name)}")
    kinds = [kind for kind, names in choices().items() if name in names]
    if not kinds:
        return unknown(message, name, known, path)
    right = " or ".join(f"ringnet list {kind}" for kind in kinds)
    return Fault(f"{message}: it is one of the {' and the '.join(kinds)}", path, value=name, right=right)


def columns() -> dict[str, dict[str, str]]:
    """Return, by table, every column with its meaning.

    >>> columns()["links"]["busy_s"]
    'bytes served / bandwidth'
    """
    known = TABLES | {"summary": TABLES["summary"] | OF_SOME_RUNS}
    return {table: {name: column.meaning for name, column in of.items()} for table, of in known.items()}


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
        "machines": {name: title_of(name) for name in MACHINES},
        "reductions": {name: reduction.summary for name, reduction in REDUCTIONS.items()},
        "dtypes": {name: f"{counted(n_bytes, 'byte')} an element" for name, n_bytes in ITEMSIZES.items()},
        "models": {name: _model_words(preset) for name, preset in MODEL_PRESETS.items()},
        "strategies": {name: strategy.summary for name, strategy in STRATEGIES.items()},
        "optimizers": {name: _optimizer_words(kind) for name, kind in OPTIMIZERS.items()},
        "engines": {name: engine.summary for name, engine in ENGINES.items()},
        "plots": {name: plot.summary for name, plot in PLOTS.items()},
    }


def _wrapped(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names and what is said of them, which goes on below itself where it is long."""
    for name, text in texts.items():
        first, *more = wrap(text, WIDTH) or [""]
        yield name, first
        yield from (("", line) for line in more)


def _tell_links() -> None:
    """Print the links by name with their numbers and where these come from."""
    rows = [
        (name, format_rate(link.bandwidth_Bps), format_seconds(link.latency_s), link.summary)
        for name, link in PRESETS.items()
    ]
    print_table([("link", "each way", "end to end", "what it is"), *rows], indent="  ")
    say("sources")
    sources = {
        name: f"bandwidth: {link.bandwidth_source}; latency: {link.latency_source}" for name, link in PRESETS.items()
    }
    print_table([*_wrapped(sources)], indent="  ")
    say("  a latency is from end to end: through a switch each of the two links has half of it")


def _model_words(preset: ModelPreset) -> str:
    """Say how large a model is, and what it is made after."""
    tokens = f", {preset.sequence} tokens an example" if preset.sequence else ""
    return f"{format_count(preset.n_parameters)} parameters{tokens} ({preset.source})"


def _optimizer_words(kind: OptimizerKind) -> str:
    """Say what an optimizer is, and which settings it has beside the learning rate."""
    return f"{kind.summary}; {', '.join(f'{name} {value:g}' for name, value in kind.settings.items())}"


def _known_by(collective: str) -> str:
    """Name the algorithms that know a collective."""
    names = [name for name, algorithm in ALGORITHMS.items() if collective in algorithm.collectives]
    return f"by {', '.join(names)}"
