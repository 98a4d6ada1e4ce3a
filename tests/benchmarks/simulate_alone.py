"""Simulate the scenario that is the only argument; print its summary and the memory of this process as JSON."""

from __future__ import annotations

import json
import sys

from measuring import peak_bytes

import ringnet


def main(text: str) -> str:
    summary = ringnet.simulate(ringnet.loads(text)).summary
    return json.dumps({**summary, "peak_bytes": peak_bytes()}, default=float)


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1]))
