"""Chance: how a number is distributed, and the streams from which each link and each worker draws its own."""

from ringnet.chance.distributions import (
    BoundedPareto,
    Distribution,
    Exponential,
    Fixed,
    Gamma,
    Lognormal,
    Mixture,
    NormalAboveZero,
    Sample,
    Scaled,
    Shifted,
    lost_of,
    lost_until,
)
from ringnet.chance.streams import Draws, Noise, NumberStream, RunDraws, stream

__all__ = [
    "BoundedPareto",
    "Distribution",
    "Draws",
    "Exponential",
    "Fixed",
    "Gamma",
    "Lognormal",
    "Mixture",
    "Noise",
    "NormalAboveZero",
    "NumberStream",
    "RunDraws",
    "Sample",
    "Scaled",
    "Shifted",
    "lost_of",
    "lost_until",
    "stream",
]
