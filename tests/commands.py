"""What the tests of commands share: a scenario of one run, what was written and kept, processes that are stopped."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

SINGLE = """
scenario_version: 1
name: two rings & a bell
workers: 3
message: 36 B
seed: 1
network: {bandwidth: 1 GB/s, latency: 1 us}
"""
FOLDER = Path("reports/two-rings-a-bell")
#: How long a process may take to begin, or to end, on a busy machine.
PATIENCE_S = 120


def cells(text):
    return [re.split("  +", line.strip()) for line in text.splitlines()]


def written():
    return sorted(path.name for path in Path("reports").rglob("*") if path.is_file())


def is_refused(result, *words, code=2):
    """No answer, nothing written, clear words, the right exit code."""
    assert (result.exit_code, result.stdout) == (code, "")
    assert "Traceback" not in result.stderr
    assert all(word in result.stderr for word in words), result.stderr
    assert not Path("reports").exists()
    return True


def entries():
    """Kept points, with what tells whether they were written again."""
    return {path: path.stat().st_mtime_ns for path in Path("cache/ringnet/points").rglob("*.json")}


def wait_for(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.02)


def press_ctrl_c(process):
    """As a terminal does, to all of them; and as a person does, again where it had no effect."""
    while process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)


def members(group):
    """Processes of a group that are alive; one that has ended may wait to be asked how."""
    listed = subprocess.run(["ps", "-o", "stat=,pid=", "-g", str(group)], capture_output=True, text=True, check=False)
    return [line for line in listed.stdout.splitlines() if not line.startswith("Z")]
