"""The pictures of the site and README: ``python -m tests.gallery [SCENARIO...]`` makes them anew; look at what changed.

Those of measurements (``ddp``, ``testbed``) are written by ``python -m tests.testbed``, on a network of its own.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "reports" / "gallery"
#: The command, its scenario, and which plots are kept.
PICTURES = (
    ("run", "quickstart", ("space-time",)),
    ("run", "slow-link", ("space-time", "link-utilisation")),
    ("run", "scale", ("time-vs-workers",)),
    ("run", "two-jobs", ("queues",)),
    ("run", "worked-example", ("states",)),
    ("draw", "rack-order", ("network",)),
    ("compare", "compare-on-racks", ("winner-map",)),
    ("step", "training-step", ("step-timeline",)),
)
#: Names that are not those of the file.
NAMES = {
    "slow-link": "one-slow-link",
    "scale": "up-to-16384-workers",
    "rack-order": "order-of-two-racks",
    "compare-on-racks": "racks",
    "training-step": "training",
}
#: One point of what is a sweep.
CHANGES = {"two-jobs": ["--set", "sweep=null", "--set", "jobs.0.start=2 ms"]}


def main() -> None:
    """Run every scenario, or those that are wanted, and keep their plots."""
    parser = argparse.ArgumentParser(prog="python -m tests.gallery", description=__doc__)
    known = [scenario for _, scenario, _ in PICTURES]
    parser.add_argument("wanted", metavar="SCENARIO", nargs="*", help=f"default: all of {', '.join(known)}")
    wanted = parser.parse_args().wanted
    if unknown := {*wanted} - {*known}:
        parser.error(f"no pictures of {min(unknown)}; there are those of {', '.join(known)}")
    for command, scenario, plots in PICTURES:
        if wanted and scenario not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "results"
            arguments = [command, str(ROOT / "scenarios" / f"{scenario}.yaml"), "--out", str(target)]
            arguments += CHANGES.get(scenario, [])
            _run(arguments)
            for plot in plots:
                shutil.copyfile(target / f"{plot}.png", GALLERY / f"{NAMES.get(scenario, scenario)}-{plot}.png")
            if scenario == "worked-example":
                _run(["plot", str(target), "--animate", str(GALLERY / f"{scenario}.gif")])


def _run(arguments: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "ringnet", *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
