"""Faults of the disk and of processes: ``python -m tests.faults disk``, ``python -m tests.faults kill --times 50``.

Each command that writes is run again for everything that it asks of the disk, which is refused once, and for disks that
are full at many sizes, 1,200 faults in some five minutes of processor time; commands are killed, or what they have
started is, at random moments by random signals.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import chdir
from itertools import product
from pathlib import Path
from random import Random

from typer.testing import CliRunner

from ringnet.cli import app
from tests.faults import disk, kill


def main() -> int:
    """Return 1 if anything was left neither whole nor absent."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("what", choices=["disk", "kill"])
    parser.add_argument("--command", default=None, help="one of them only")
    parser.add_argument("--times", type=int, default=50, help="kills of each command")
    asked = parser.parse_args()
    known = disk.COMMANDS if asked.what == "disk" else kill.COMMANDS
    if asked.command not in (None, *known):
        parser.error(f"--command: {asked.what} has no {asked.command}; it has {', '.join(known)}")
    with tempfile.TemporaryDirectory() as home:
        found = [*(_disk if asked.what == "disk" else _kill)(asked, Path(home))]
    return 1 if found else 0


def _disk(asked: argparse.Namespace, home: Path) -> list[str]:
    os.environ["XDG_CACHE_HOME"] = str(home / "cache")
    disk.prepare(home / "folder")
    with chdir(home / "folder"):
        for command in disk.COMMANDS.values():  # what a command imports when it is run is imported once
            CliRunner().invoke(app, command.split())
    found: list[str] = []
    for name, older in product([asked.command] if asked.command else disk.COMMANDS, (False, True)):
        begin = time.monotonic()
        n_tried, wrong = disk.try_all(name, home / "folder", older=older)
        took_s = time.monotonic() - begin
        where = "older files there" if older else "nothing there"
        _say(f"{name:10} {where:18} {n_tried:4} faults, {len(wrong)} findings, {took_s:.0f} s", *wrong)
        found += wrong
    return found


def _kill(asked: argparse.Namespace, home: Path) -> list[str]:
    found: list[str] = []
    for name in [asked.command] if asked.command else kill.COMMANDS:
        whole = kill.undisturbed(name, home / "folder")
        tried = [kill.kill_once(name, home / "folder", Random(f"{name} {n}"), whole) for n in range(asked.times)]
        wrong = [f"{one}" for one in tried if one.wrong]
        n_workers = sum(one.victim == "a worker" for one in tried)
        _say(f"{name:10} {len(tried):4} kills, {n_workers} of a worker, {len(wrong)} findings", *wrong)
        found += wrong
    return found


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
