"""Numbers of workers that are no power of two, the standard way: some are folded into neighbours first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringnet.collectives.schedule import IntArray


@dataclass(frozen=True)
class Fold:
    """Who takes part in an algorithm for powers of two, and who stands in for whom.

    Of the first 2r workers, r = N - 2^floor(log2 N), each even one hands what it has to its right-hand
    neighbour before the algorithm begins, and gets its result from it at the end.

    Parameters
    ----------
    members : ndarray of int64, shape (a power of two,)
        The workers that take part, in order.
    folded, stand_in : ndarray of int64, shape (r,)
        The others, and who stands in for each.

    Notes
    -----
    Rabenseifner, *Optimization of collective reduction operations*, ICCS 2004; Thakur, Rabenseifner and
    Gropp, IJHPCA 19 (2005).

    Examples
    --------
    >>> fold = Fold.of(6)
    >>> fold.members.tolist(), fold.folded.tolist(), fold.stand_in.tolist()
    ([1, 3, 4, 5], [0, 2], [1, 3])
    """

    members: IntArray
    folded: IntArray
    stand_in: IntArray

    @classmethod
    def of(cls, n_workers: int) -> Fold:
        """Fold ``n_workers`` to the next smaller power of two."""
        rest = n_workers - (1 << (n_workers.bit_length() - 1))
        folded = 2 * np.arange(rest)
        return cls(np.concatenate((folded + 1, np.arange(2 * rest, n_workers))), folded, folded + 1)

    @property
    def n_rounds(self) -> int:
        """Log2 of the number of members."""
        return len(self.members).bit_length() - 1
