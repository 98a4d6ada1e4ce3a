"""What one transfer costs where all cost the same: the alpha, beta and gamma of every closed form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hop:
    """What one transfer costs, the same for every worker and route.

    Parameters
    ----------
    alpha_s : float
        Seconds per transfer, whatever its size.
    beta_s_per_byte : float
        Seconds per byte on the way.
    gamma_s_per_byte : float
        Seconds per byte reduced.
    """

    alpha_s: float
    beta_s_per_byte: float
    gamma_s_per_byte: float = 0.0

    def move_s(self, n_bytes: float) -> float:
        """Return alpha + n beta."""
        return self.alpha_s + n_bytes * self.beta_s_per_byte

    def reduce_s(self, n_bytes: float) -> float:
        """Return n gamma."""
        return n_bytes * self.gamma_s_per_byte
