"""The keys of what a scenario is based on: a machine, and files that it includes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Discriminator, Tag

from ringnet.scenario.keys.base import LIST, ONE, NotEmpty, list_or_one
from ringnet.scenario.keys.kinds import Line, OneOf

#: The files of the machines.
FOLDER = Path(__file__).parent.parent / "machines"
#: Their names.
MACHINES = tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))


def title_of(machine: str) -> str:
    """Return what a machine is, in words: the first line of its file, which alone is read.

    >>> title_of("dgx-h100").partition(",")[0]
    'NVIDIA DGX H100'
    """
    with (FOLDER / f"{machine}.yaml").open(encoding="utf-8") as file:
        return file.readline().removeprefix("title:").strip()


MachineName: TypeAlias = Annotated[str, OneOf(MACHINES, "machine")]
IncludeName: TypeAlias = Annotated[str, Line("base.yaml", 1000)]
IncludeKeys: TypeAlias = Annotated[
    Annotated[IncludeName, Tag(ONE)] | Annotated[tuple[IncludeName, ...], NotEmpty, Tag(LIST)],
    Discriminator(list_or_one),
]
