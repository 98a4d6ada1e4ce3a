"""A model's layers in a table: CSV with a row for each layer, times with their units."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ringnet.documents.text import read_csv
from ringnet.errors import Fault, InputError, UnitError
from ringnet.training.layers import TimedLayer
from ringnet.units import parse_quantity

#: Columns that a table has, and those that it may have.
NEEDED, OPTIONAL = ("name", "parameters"), ("block", "forward", "backward", "forward_flops")
#: The largest file and the most layers that are read.
MOST_BYTES, MOST_LAYERS = 16 * 2**20, 100_000
#: The most elements of one parameter.
MOST_ELEMENTS = 2**50
_SHAPE = re.compile(r"[0-9]{1,18}(x[0-9]{1,18}){0,15}")
_EXAMPLE = "name,parameters,forward,backward"


@dataclass(frozen=True)
class LayerTable:
    """Layers of a table, and whether it tells their times."""

    layers: tuple[TimedLayer, ...]
    has_times: bool


def read_layer_table(path: Path) -> LayerTable:
    """Read layers from a CSV file.

    Parameters
    ----------
    path : pathlib.Path
        Columns ``name`` and ``parameters`` (shapes parted by spaces: ``64x3x7x7 64``; empty for none); ``forward`` and
        ``backward``, each with its unit (``50 ms``), or ``forward_flops`` of one example; and ``block``, what is
        gathered together where parameters are sharded.

    Raises
    ------
    InputError
        All that is wrong, each with its line.
    """
    rows = read_csv(path, MOST_BYTES, "a table of layers", _EXAMPLE)
    heads = rows[0][1] if rows else []
    if faults := [*_faults_of_heads(heads, str(path))]:
        raise InputError(*faults)
    return _table(heads, rows[1:], str(path))


def _faults_of_heads(heads: list[str], file: str) -> Iterator[Fault]:
    for name in NEEDED:
        if name not in heads:
            yield Fault("the column is missing", path=name, file=file, line=1, right=_EXAMPLE)
    for name in heads:
        if name not in (*NEEDED, *OPTIONAL):
            right = ", ".join((*NEEDED, *OPTIONAL))
            yield Fault("there is no such column", file=file, line=1, value=name, right=right)
        elif heads.count(name) > 1:
            yield Fault("the column stands twice", path=name, file=file, line=1)
    if ("forward" in heads) != ("backward" in heads):
        other = "backward" if "forward" in heads else "forward"
        yield Fault("the column is missing: both passes take time", path=other, file=file, line=1)
    if "forward" in heads and "forward_flops" in heads:
        message = "times say it all: operations are never read"
        yield Fault(message, path="forward_flops", file=file, line=1)


def _table(heads: list[str], rows: list[tuple[int, list[str]]], file: str) -> LayerTable:
    faults: list[Fault] = []
    layers: list[TimedLayer] = []
    for number, cells in rows[: MOST_LAYERS + 1]:
        if len(cells) != len(heads):
            message = f"the row has {len(cells)} cells under {len(heads)} names"
            faults.append(Fault(message, file=file, line=number))
            continue
        row = dict(zip(heads, cells, strict=True))
        try:
            layers.append(_layer(row))
        except InputError as error:
            faults += [replace(fault, file=file, line=number) for fault in error.faults]
    if not rows:
        faults.append(Fault("a model has layers: the table has no rows", file=file))
    if len(rows) > MOST_LAYERS:
        faults.append(Fault(f"more than {MOST_LAYERS:,} layers", file=file))
    if not faults and not any(layer.n_parameters for layer in layers):
        faults.append(Fault("no layer has parameters: there are no gradients to send", file=file))
    if faults:
        raise InputError(*faults)
    return LayerTable(tuple(layers), "forward" in heads)


def _layer(row: dict[str, str]) -> TimedLayer:
    faults: list[Fault] = []
    if not row["name"]:
        faults.append(Fault("a layer has a name", "name"))
    shapes = []
    for text in row["parameters"].split():
        if not _SHAPE.fullmatch(text):
            faults.append(Fault("this is no shape", "parameters", value=text, right="64x3x7x7"))
            continue
        shape = tuple(map(int, text.split("x")))
        size = 1
        for extent in shape:
            size = min(size * extent, MOST_ELEMENTS + 1)
        if size > MOST_ELEMENTS:
            faults.append(Fault("larger than any parameter", "parameters", value=text))
        shapes.append(shape)
    numbers = {}
    for column, kind in (("forward", "seconds"), ("backward", "seconds"), ("forward_flops", "number")):
        if column in row:
            try:
                numbers[column] = float(parse_quantity(row[column], kind))  # type: ignore[call-overload]
            except UnitError as error:
                faults += [replace(fault, path=column) for fault in error.faults]
    if faults:
        raise InputError(*faults)
    return TimedLayer(
        row["name"],
        tuple(shapes),
        row.get("block", ""),
        numbers.get("forward_flops", 0.0),
        numbers.get("forward", 0.0),
        numbers.get("backward", 0.0),
    )
