"""The choice between algorithms as the CSV that NCCL's example tuner plug-in reads."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any, NamedTuple

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
