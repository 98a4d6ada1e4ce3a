"""NCCL's choices as text: what it prints of them, and the CSV that its example tuner plug-in reads."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ringnet.analysis.nccl import Cell, ChannelGraph, constants
from ringnet.errors import Fault, InputError
from ringnet.formats.logs.log import open_text

#: Collectives as the plug-in names them; it has no all-to-all.
COLLECTIVES = {
    "all-gather": "allgather",
    "all-reduce": "allreduce",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "reduce-scatter": "reducescatter",
}
#: Algorithms that NCCL has, as it names them. Its tree is the double binary tree, of all-reduces only; its ring is
#: sent on in slices, which that of ringnet is not, and has as many channels as it is given.
ALGORITHMS = {
    "channel-ring": "ring",
    "double-binary-tree": "tree",
    "pipelined-ring": "ring",
    "ring": "ring",
}
#: The plug-in takes no "any" for a protocol.
PROTOCOL = "simple"
#: What its documentation has for sizes without end.
ENDLESS_BYTES = 2**32 - 1
ANY = -1
HEADER = "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff"


class TunerLine(NamedTuple):
    """One line: an algorithm of ringnet, by its name, for messages from the first to the last size; -1 is any."""

    n_workers: int
    algorithm: str
    first_bytes: int
    last_bytes: int
    channels: int = ANY
    n_nodes: int = ANY
    protocol: str = PROTOCOL


def known_to_nccl(algorithm: str) -> bool:
    """Whether NCCL has this algorithm of ringnet.

    >>> known_to_nccl("double-binary-tree"), known_to_nccl("halving-doubling")
    (True, False)
    """
    return algorithm in ALGORITHMS


def dumps_tuner(collective: str, uses: Iterable[TunerLine], comments: Iterable[str] = ()) -> str:
    """Return the text of a tuner file.

    Parameters
    ----------
    collective : str
        One of `COLLECTIVES`.
    uses : iterable of TunerLine
        In the order of N and of sizes; a size between them is left to NCCL.
    comments : iterable of str
        Sentences for the head of the file.

    Notes
    -----
    ``ext-tuner/example`` of NVIDIA/nccl (README.md, plugin.c): ten fields a line, the first line that matches counts,
    both ends of a range belong to it, -1 stands for any number of channels, nodes, ranks, pipelined operations, and for
    buffers registered or not. Lines that start with ``#`` are skipped, any other head would be read as a setting, and
    lines beyond 255 characters as two. The protocol must be named: ringnet simulates none, and writes ``simple``, to
    which the plug-in falls back itself, where nothing else is known.

    Examples
    --------
    >>> print(dumps_tuner("all-reduce", [TunerLine(8, "ring", 0, 4294967295)]), end="")
    # collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
    allreduce,0,4294967295,ring,simple,-1,-1,8,-1,-1
    """
    lines = [f"# {part}" for comment in comments for part in textwrap.wrap(comment, 110)]
    lines.append(f"# {HEADER}")
    for use in uses:
        fields = (
            COLLECTIVES[collective],
            use.first_bytes,
            use.last_bytes,
            ALGORITHMS[use.algorithm],
            use.protocol.lower(),
            use.channels,
            use.n_nodes,
            use.n_workers,
            ANY,
            ANY,
        )
        lines.append(",".join(map(str, fields)))
    return "\n".join(lines) + "\n"


def loads_tuner(text: str) -> list[dict[str, Any]]:
    r"""Read a tuner file as the plug-in does: a dict by field for each line that is no comment.

    >>> loads_tuner("# head\nallreduce,0,65536,tree,simple,2,1,-1")[0]["regBuff"]
    -1
    """
    rows = [line.split(",") for line in text.splitlines() if line and not line.startswith("#")]
    names = HEADER.split(",")
    return [dict(zip(names, map(_cell, [*row, "-1", "-1"]), strict=False)) for row in rows]


def _cell(text: str) -> int | str:
    return int(text) if text.strip().lstrip("-").isdigit() else text.strip()


_ALGORITHMS = dict(
    zip(
        ("tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"),
        constants.ALGORITHMS,
        strict=True,
    )
)
_PROTOCOLS = {name.lower(): name for name in constants.PROTOCOLS}
_COLLECTIVES = {name.replace("-", ""): name for name in constants.COLLECTIVES}
_LINE = re.compile(r"NCCL INFO\s+(.*\S)")
_BLOCK = re.compile(r"Algorithm\s*\|(.*)")
#: The one heading of NCCL before 2.20: ``Latency/AlgBw |    Tree/    LL |    Tree/ LL128 | ...``.
_OLD_BLOCK = re.compile(r"Latency/AlgBw\s*\|(.*)")
_ROW = re.compile(r"(Broadcast|Reduce|AllGather|ReduceScatter|AllReduce)\s*\|(\s*[\d.]+/.*)")
_VALUES = re.compile(r"\s*(\d+\.\d)\s*/\s*(\d+\.\d)\s*")
_CHOICE = re.compile(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+)")
_VERSION = re.compile(r"NCCL version (\d[\w.]*)")
_RANKS = re.compile(r"\bnranks (\d+)\b", re.I)
_NODES = re.compile(r"\bnNodes (\d+)\b", re.I)
_CHANNELS = re.compile(r"\b(\d+) coll channels\b")
_GRAPH = re.compile(
    r"Pattern (\d+), crossNic \d+, nChannels (\d+), bw ([\d.]+)/([\d.]+), type (\w+)/\w+, sameChannels (\d)"
)
#: What NCCL numbers its patterns: trees of three kinds, then rings.
_RING_PATTERN, _TREE_PATTERNS = 4, (1, 2, 3)


@dataclass
class NcclTuning:
    """What was found in a log of NCCL.

    Parameters
    ----------
    version : str
        Empty where it does not say.
    n_ranks, n_nodes, n_channels : int or None
    cells : dict of Cell to (str, str)
        Latency and bandwidth as printed.
    choices : dict of (str, int) to (str, str)
        By collective and bytes: algorithm and protocol that NCCL took.
    graphs : dict of str to ChannelGraph
        ``ring`` and ``tree``, as far as they are printed.
    same_channels : bool or None
    """

    version: str = ""
    n_ranks: int | None = None
    n_nodes: int | None = None
    n_channels: int | None = None
    cells: dict[Cell, tuple[str, str]] = field(default_factory=dict)
    choices: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)
    graphs: dict[str, ChannelGraph] = field(default_factory=dict)
    same_channels: bool | None = None


def read_tuning(path: Path) -> NcclTuning:
    """Read the tables of NCCL's cost model from a log.

    Raises
    ------
    InputError
        It cannot be read, or holds none; says which variables print them.
    """
    found, algorithms = NcclTuning(), list[str]()
    for _, line in open_text(path).lines():
        match = _LINE.search(line)
        if match:
            algorithms = _read_line(found, match[1], algorithms)
    if not found.cells and not found.choices:
        message = "no table of NCCL's cost model is in it"
        right = "a log of a run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING"
        raise InputError(Fault(message, "--log", file=str(path), right=right))
    return found


def _read_line(found: NcclTuning, text: str, algorithms: list[str]) -> list[str]:
    """Take in a line of NCCL; return the algorithm of each column of the table that is being read."""
    if block := _BLOCK.match(text):
        names = [_ALGORITHMS.get(name.strip().lower(), "") for name in block[1].split("|")]
        return [name for name in names if name for _ in constants.PROTOCOLS]
    if block := _OLD_BLOCK.match(text):
        names = [cell.partition("/")[0].strip().lower() for cell in block[1].split("|")]
        return [_ALGORITHMS.get(name.replace("collnet", "collnetdirect"), "") for name in names if name]
    if row := _ROW.match(text):
        _read_row(found, _COLLECTIVES[row[1].lower()], row[2], algorithms)
    elif choice := _CHOICE.search(text):
        collective, n_bytes, algorithm, protocol = choice.groups()
        taken = _ALGORITHMS.get(algorithm.lower().replace("_", ""), ""), _PROTOCOLS.get(protocol.lower(), "")
        if collective.lower() in _COLLECTIVES and all(taken):
            found.choices.setdefault((_COLLECTIVES[collective.lower()], int(n_bytes)), taken)
    elif graph := _GRAPH.search(text):
        kind = "ring" if int(graph[1]) == _RING_PATTERN else "tree" if int(graph[1]) in _TREE_PATTERNS else ""
        if kind and kind not in found.graphs:
            found.graphs[kind] = ChannelGraph(int(graph[2]), float(graph[3]), float(graph[4]))
            found.same_channels = graph[6] == "1" if kind == "ring" else found.same_channels
    else:
        _read_fact(found, text)
    return algorithms


def _read_row(found: NcclTuning, collective: str, text: str, algorithms: list[str]) -> None:
    cells = text.split("|")
    for place, (algorithm, cell) in enumerate(zip(algorithms, cells, strict=False)):
        values = _VALUES.fullmatch(cell)
        if values and algorithm:
            protocol = constants.PROTOCOLS[place % len(constants.PROTOCOLS)]
            found.cells.setdefault((collective, algorithm, protocol), (values[1], values[2]))


def _read_fact(found: NcclTuning, text: str) -> None:
    if version := _VERSION.search(text):
        found.version = found.version or version[1].partition("+")[0]
    for name, pattern in (("n_ranks", _RANKS), ("n_nodes", _NODES), ("n_channels", _CHANNELS)):
        number = pattern.search(text)
        if number and getattr(found, name) is None:
            setattr(found, name, int(number[1]))
