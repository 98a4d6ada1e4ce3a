"""The long run: ``python -m tests.fuzz --inputs 5000``, with a count of inputs a kind and every finding.

An input is known by its kind and number; ``--kind log --first 17 --inputs 1 --keep DIR`` makes that one again, and
leaves it in DIR. ``--pairs`` instead sets every two kinds of key of the format, 53,000 scenarios in some twenty minutes
of processor time, and ``--counts`` every number, size and length of a list to as much as 2**61, 4,000 scenarios in
some forty; both in an order of which any part is a sample: ``--first`` and ``--inputs`` choose one.

Inputs are tried in processes forked from one that has all modules, a handful in each, and each alone where that
crashes, hangs, takes more memory than was told or finds anything. What any input may lead to is in `tests.fuzz.trying`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tests.fuzz.kinds import CountsKind, KeysKind, Kind, PairsKind, kinds
from tests.fuzz.trying import Finding, attempt, attempt_apart

SHOWN = 400
#: Inputs after which it is said how many there were.
TOLD = 500


def main() -> int:
    """Try inputs of every kind in turn; return 1 if any command ended as none may."""
    asked = _asked()
    findings: list[Finding] = []
    inputs, commands, codes = Counter[str](), 0, Counter[int]()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"XDG_CACHE_HOME": f"{home}/cache", "RINGNET_DEBUG": "", "MPLBACKEND": "agg"}
        here = Path(home, "here")
        made = kinds(Path(home))
        for kind, one in made.items():  # what a command imports when it is run is imported once
            attempt(kind, one, 0, here)
        instead: dict[str, type[KeysKind]] = {"pairs": PairsKind, "counts": CountsKind}
        if asked.instead:
            made = {asked.instead: instead[asked.instead](made["keys"].files, made["keys"].commands)}
        if asked.kind not in (None, *made):
            sys.exit(f"--kind: there is no {asked.kind}; there are {', '.join(made)}")
        with suppress(KeyboardInterrupt):  # which ends it with the counts so far
            for kind, seeds in _chosen(asked, made):
                ended, found = attempt_apart(kind, made[kind], seeds, asked.keep or here)
                inputs[kind] += len(seeds)
                commands += len(ended)
                codes.update(one.code for one in ended)
                findings += found
                for one in found:
                    _print(f"{one.kind} {one.seed}: {one.command}: {one.what[-SHOWN:]!r}")
                if sum(inputs.values()) // TOLD > (sum(inputs.values()) - len(seeds)) // TOLD:
                    _print(f"... {sum(inputs.values())} inputs, {len(findings)} findings")
                if asked.minutes and time.monotonic() - begin > 60 * asked.minutes:
                    break
    _print(f"{sum(inputs.values())} inputs, {commands} commands, {time.monotonic() - begin:.0f} s")
    _print(f"exit codes: {', '.join(f'{code}: {number}' for code, number in sorted(codes.items()))}")
    for kind, count in inputs.items():
        _print(f"{kind:10} {count:6} inputs, {sum(one.kind == kind for one in findings)} findings")
    return 1 if findings else 0


def _chosen(asked: argparse.Namespace, made: Mapping[str, Kind]) -> Iterator[tuple[str, range]]:
    """Yield the kinds in turn, each with the numbers of its next inputs."""
    chosen = {name: one for name, one in made.items() if asked.kind in (None, name)}
    n_inputs = asked.inputs or max(one.n_inputs for one in chosen.values())
    left = {
        name: range(n_inputs // len(chosen) + (place < n_inputs % len(chosen))) for place, name in enumerate(chosen)
    }
    while any(left.values()):
        for name, one in chosen.items():
            numbers, left[name] = left[name][: one.together], left[name][one.together :]
            if numbers:
                yield name, range(asked.first + numbers.start, asked.first + numbers.stop)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=0, help="how many; 5000, or all that there are")
    parser.add_argument("--first", type=int, default=0, help="number of the first input of each kind")
    parser.add_argument("--kind", default=None, help="inputs of this kind only")
    parser.add_argument("--pairs", dest="instead", action="store_const", const="pairs", help="set every two keys")
    parser.add_argument("--counts", dest="instead", action="store_const", const="counts", help="set every count")
    parser.add_argument("--minutes", type=float, default=0.0, help="end after so many minutes")
    parser.add_argument("--keep", type=lambda text: Path(text).absolute(), default=None)
    return parser.parse_args()


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
