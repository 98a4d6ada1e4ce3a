"""MSCCL's XML: schedules of thread blocks, as `msccl-tools` prints them and NCCL-like runtimes run them."""

from __future__ import annotations

from ringnet.formats.msccl.reader import load_msccl, loads_msccl
from ringnet.formats.msccl.writer import dumps_msccl

__all__ = ["dumps_msccl", "load_msccl", "loads_msccl"]
