"""The long run: ``python -m tests.fuzz --inputs 5000``, with a count of inputs a kind and every finding.

An input is known by its kind and number; ``--kind log --first 17 --inputs 1 --keep DIR`` makes that one again, and
leaves it in DIR.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.kinds import kinds
from tests.fuzz.trying import Finding, attempt

#: Address space of the whole run: an input that wants more ends as one that nobody bounded.
MOST_BYTES = 8 << 30
SHOWN = 400


def main() -> int:
    """Try inputs of every kind in turn; return 1 if any command ended as none may."""
    asked = _asked()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    findings: list[Finding] = []
    inputs, commands = Counter[str](), 0
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"XDG_CACHE_HOME": f"{home}/cache", "RINGNET_DEBUG": ""}
        here = Path(home, "here")
        made = kinds(Path(home))
        chosen = [name for name in made if asked.kind in (None, name)]
        for number in range(asked.inputs):
            kind = chosen[number % len(chosen)]
            seed = asked.first + number // len(chosen)
            n_commands, found = attempt(kind, made[kind], seed, asked.keep or here)
            inputs[kind] += 1
            commands += n_commands
            findings += found
            for one in found:
                _print(f"{one.kind} {one.seed}: {one.command}: {one.what[-SHOWN:]!r}")
            if asked.minutes and time.monotonic() - begin > 60 * asked.minutes:
                break
    _print(f"{sum(inputs.values())} inputs, {commands} commands, {time.monotonic() - begin:.0f} s")
    for kind, count in inputs.items():
        _print(f"{kind:10} {count:6} inputs, {sum(one.kind == kind for one in findings)} findings")
    return 1 if findings else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input of each kind")
    parser.add_argument("--kind", default=None)
    parser.add_argument("--minutes", type=float, default=0.0, help="end after so many minutes")
    parser.add_argument("--keep", type=lambda text: Path(text).absolute(), default=None)
    return parser.parse_args()


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
