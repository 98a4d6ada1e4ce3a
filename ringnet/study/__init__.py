"""Many scenarios: on all cores of this machine, or on a cluster by a switch; a killed sweep goes on."""

from __future__ import annotations

from ringnet.study.kept import default_cache_dir
from ringnet.study.outcome import Outcome
from ringnet.study.points import run_points
from ringnet.study.running import run

__all__ = ["Outcome", "default_cache_dir", "run", "run_points"]
