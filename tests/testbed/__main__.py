"""The testbed in full, as root on Linux, in about five minutes: ``python -m tests.testbed``.

Writes ``reports/gallery/testbed.csv``, ``.png`` and ``.svg``, or to the folder given.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.testbed import report, study
from tests.testbed.beds import CASES
from tests.testbed.namespaces import why_not
from tests.testbed.study import Point


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.testbed", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", nargs="?", type=Path, default=Path("reports/gallery"))
    folder = parser.parse_args().folder
    if reason := why_not():
        sys.exit(f"no testbed here: {reason}")
    link = study.calibrate(study.FULL.repeat)
    print(
        f"two workers: {link.short_s * 1e3:.3f} ms a short transfer; "
        f"long ones {link.latency_s * 1e3:.3f} ms and {link.bandwidth_Bps / 1e6:.3f} MB/s"
    )
    points: list[Point] = []
    for point in study.compare(CASES, study.FULL, link):
        points.append(point)
        print(
            f"{point.case}, N={point.n_workers}, {point.message_bytes} B: "
            f"predicted {point.predicted_s:.5f} s, measured {point.measured_s:.5f} s, {point.error:+.1%}",
            flush=True,
        )
    print(report.verdict(points))
    print(*report.write(points, folder), sep="\n")


if __name__ == "__main__":
    main()
