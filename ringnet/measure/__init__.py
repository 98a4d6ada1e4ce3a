"""The real ring: an all-reduce over TCP or MPI between processes, timed, and its sums held against the reference."""

from __future__ import annotations
