"""What test modules share: small cases to run, random ones, and what must hold for every run."""

from __future__ import annotations
