"""What the sum is for: weighted means, optimizers and the steps of a training that is spread over workers."""

from __future__ import annotations
