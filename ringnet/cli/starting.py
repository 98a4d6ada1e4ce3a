"""``ringnet init`` and ``ringnet schema``: what helps to write a scenario."""

from __future__ import annotations

from pathlib import Path

import typer

from ringnet.cli.printing import print_json
from ringnet.cli.targets import check_files
from ringnet.errors import Fault, InputError
from ringnet.reporting.atomic import written_file
from ringnet.scenario import schema, template


def write_template(file: Path, force: bool) -> int:
    """Write a commented scenario; a file that is there stays as it is, unless ``force``."""
    if file.is_dir() or (file.exists() and not force):
        right = "the name of a file" if file.is_dir() else "another name, or --force"
        raise InputError(Fault("there is such a file already", file=str(file), right=right))
    check_files({"FILE": file})
    with written_file(file) as path:
        path.write_text(template(), encoding="utf-8")
    typer.echo(f"written: {file}. Next: ringnet run {file}")
    return 0


def print_schema() -> int:
    """Print the JSON Schema of scenarios."""
    print_json(schema())
    return 0
