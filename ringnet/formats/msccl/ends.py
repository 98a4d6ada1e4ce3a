"""Which cell holds which chunk at the start and at the end, by collective: what MSCCL means by input and output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringnet.collectives.schedule import EVERY_WORKER, IntArray
from ringnet.formats.msccl.document import Cell, Document, refuse

#: ringnet's name of each collective, by MSCCL's.
COLLECTIVES = {
    "allreduce": "all-reduce",
    "reduce_scatter": "reduce-scatter",
    "reducescatter": "reduce-scatter",
    "allgather": "all-gather",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
}


@dataclass(frozen=True)
class Ends:
    """The chunks of a collective, numbered as ringnet does, and where a gpu has them.

    Chunks of a reduce-scatter, an all-gather or an all-to-all are numbered by worker: those of worker 0
    first.

    Parameters
    ----------
    collective : str
        As ringnet calls it.
    n_gpus, each : int
        Workers, and chunks of each where each has its own.
    in_place : bool
        Whether input and output are one buffer.
    source, target : ndarray of int64, shape (n_chunks,)
    """

    collective: str
    n_gpus: int
    each: int
    in_place: bool
    source: IntArray
    target: IntArray

    @classmethod
    def of(cls, document: Document, file: str) -> Ends:
        """Read them from a file's head."""
        if document.collective not in COLLECTIVES:
            refuse(
                file,
                1,
                "a collective that ringnet does not know",
                document.collective,
                " | ".join(COLLECTIVES),
            )
        collective = COLLECTIVES[document.collective]
        each = document.n_chunks
        if collective in {"reduce-scatter", "all-gather", "all-to-all"}:
            each, rest = divmod(document.n_chunks, document.n_gpus)
            if rest:
                right = f"a multiple of {document.n_gpus} gpus"
                refuse(file, 1, "nchunksperloop does not come out even", str(document.n_chunks), right)
        return make_ends(collective, document.n_gpus, each, document.root, in_place=document.in_place)

    @property
    def n_chunks(self) -> int:
        """All chunks."""
        return len(self.source)

    @property
    def n_buffers(self) -> int:
        """Buffers that they are cut from: see `Schedule`."""
        return self.n_gpus if self.collective == "all-to-all" else 1

    def place(self, gpu: int, cell: Cell) -> Cell:
        """Return the one name of a cell that may have two, where input and output share memory."""
        buffer, offset = cell
        if not self.in_place or buffer == "s":
            return cell
        if self.collective == "all-gather":
            return ("o", gpu * self.each + offset) if buffer == "i" else cell
        if self.collective == "reduce-scatter":
            return ("i", gpu * self.each + offset) if buffer == "o" else cell
        return "i", offset

    def first(self, gpu: int) -> dict[Cell, int]:
        """Return the chunks that a gpu has at the start, by cell."""
        mine = np.flatnonzero((self.source == EVERY_WORKER) | (self.source == gpu)).tolist()
        alone = self.collective in {"all-gather", "all-to-all"}
        return {self.place(gpu, ("i", place if alone else chunk)): chunk for place, chunk in enumerate(mine)}

    def last(self, gpu: int) -> dict[int, Cell]:
        """Return the cells that must hold the chunks that a gpu is to have at the end, by chunk."""
        mine = np.flatnonzero((self.target == EVERY_WORKER) | (self.target == gpu)).tolist()
        alone = self.collective in {"reduce-scatter", "all-to-all"}
        return {chunk: self.place(gpu, ("o", place if alone else chunk)) for place, chunk in enumerate(mine)}


def make_ends(collective: str, n_gpus: int, each: int, root: int, *, in_place: bool) -> Ends:
    """Return the ends of a collective: ``each`` chunks, of each worker where each has its own."""
    own = np.repeat(np.arange(n_gpus), each)
    everyone = np.full(each, EVERY_WORKER)
    source, target = {
        "all-reduce": (everyone, everyone),
        "reduce-scatter": (np.full(len(own), EVERY_WORKER), own),
        "all-gather": (own, np.full(len(own), EVERY_WORKER)),
        "all-to-all": (np.repeat(np.arange(n_gpus), n_gpus * each), np.tile(own, n_gpus)),
        "broadcast": (np.full(each, root), everyone),
        "reduce": (everyone, np.full(each, root)),
    }[collective]
    return Ends(collective, n_gpus, each, in_place, source.astype(np.int64), target.astype(np.int64))
