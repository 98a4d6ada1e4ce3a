"""``ringnet init``: a commented scenario to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringnet.cli.printing import say
from ringnet.cli.targets import check_targets
from ringnet.errors import Fault, InputError
from ringnet.reporting.atomic import write_text
from ringnet.scenario import template

EXAMPLE = "ringnet init my.yaml"


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("scenario.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> int:
    """Write a commented scenario to start from."""
    if file.is_dir() or (file.exists() and not force):
        right = "the name of a file" if file.is_dir() else "another name, or --force"
        raise InputError(Fault("there is such a file already", file=str(file), right=right))
    check_targets({"FILE": file})
    write_text(file, template())
    say(f"written: {file}. Next: ringnet run {file}")
    return 0
