"""Pictures of digits, made by formula: something to learn that is in no file and the same on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Rows of each digit, three dots wide, five high.
_FONT = (
    "###|#.#|#.#|#.#|###",
    ".#.|##.|.#.|.#.|###",
    "###|..#|###|#..|###",
    "###|..#|.##|..#|###",
    "#.#|#.#|###|..#|..#",
    "###|#..|###|..#|###",
    "###|#..|###|#.#|###",
    "###|..#|.#.|.#.|.#.",
    "###|#.#|###|#.#|###",
    "###|#.#|###|..#|###",
)
#: Pictures are so many dots high and wide.
SIDE = 8
N_CLASSES = len(_FONT)


def digit_images(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw digits, each a dot up or down and right or left of the middle, of random brightness, under random noise.

    Parameters
    ----------
    n : int
    seed : int

    Returns
    -------
    images : ndarray of float64, shape (n, 64)
        8 x 8 dots each, in sixteenths: from 0 to 1, exact in every floating-point type down to bfloat16.
    labels : ndarray of int64, shape (n,)
        0 to 9: which digit.

    Examples
    --------
    >>> images, labels = digit_images(3, seed=1)
    >>> images.shape, bool((images * 16 == np.round(images * 16)).all())
    ((3, 64), True)
    """
    # Raw 64-bit draws of a named generator: their values are promised to stay, those of distributions are not.
    draws = np.random.PCG64(seed).random_raw(n * (SIDE * SIDE + 4)).reshape(n, SIDE * SIDE + 4)
    labels = (draws[:, 0] % N_CLASSES).astype(np.int64)
    down, right = 1 + draws[:, 1] % 2, 2 + draws[:, 2] % 2
    bright = (9 + draws[:, 3] % 8).astype(np.int64)
    images = (draws[:, 4:] % 4).astype(np.int64).reshape(n, SIDE, SIDE)
    for number, label in enumerate(labels.tolist()):
        for y, line in enumerate(_FONT[label].split("|")):
            for x, dot in enumerate(line):
                if dot == "#":
                    images[number, y + int(down[number]), x + int(right[number])] = bright[number]
    return images.reshape(n, -1) / 16.0, labels
