"""What the benchmarks share, and the table at their end. Run them with ``pytest tests/benchmarks``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# The scripts beside this file are imported by it and run on their own: they find each other by name.
sys.path.insert(0, str(Path(__file__).parent))

from measuring import machine
from table import Table

TABLE = pytest.StashKey[Table]()
MACHINE = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--markdown",
        metavar="FILE",
        type=Path,
        help="also write the table of the benchmarks, for docs/benchmarks.md",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TABLE] = Table()
    config.stash[MACHINE] = machine()
    # One table, not two: that of pytest-benchmark is there for whoever asks for it with --benchmark-verbose.
    config.option.benchmark_quiet = True


@pytest.fixture(scope="session")
def table(pytestconfig: pytest.Config) -> Table:
    """The table, to add lines to."""
    return pytestconfig.stash[TABLE]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    table, named = config.stash[TABLE], config.stash[MACHINE]
    if not table.rows:
        return
    terminalreporter.section("benchmarks")
    terminalreporter.line(named)
    for line in table.lines():
        terminalreporter.line(line, red=line.endswith("MISSED"))
    if config.option.markdown:
        config.option.markdown.write_text(table.markdown(named), encoding="utf-8")
