"""The real ring: an all-reduce between processes, timed, and its sums held against the reference."""

from __future__ import annotations
