"""Scenarios that are based on others: ``include: base.yaml``, and machines by name."""

from __future__ import annotations

import os
from typing import NamedTuple

from ringnet.documents.document import Document, Mark, Path
from ringnet.documents.text import clip
from ringnet.documents.yaml_text import read_text, read_yaml
from ringnet.errors import Fault, InputError, closest
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.files.machines import layered
from ringnet.scenario.keys.base import MACHINES

INCLUDE: Path = ("include",)
#: Files that one scenario is made from.
MOST_FILES = 64
#: What tells a file from a machine.
ENDINGS = (".yaml", ".yml")


def included(document: Document, home: ScenarioFolder, file: str) -> tuple[Document, list[Fault]]:
    """Return a scenario over all that it includes, and what is wrong with what it includes.

    Parameters
    ----------
    document : Document
        As it was read.
    home : ScenarioFolder
        Where names start, also those in files that are included.
    file : str
        Its name; those of others are told beside it.
    """
    return _Including(home, os.path.dirname(file), []).layers(document, (_Opened("", file),))


class _Opened(NamedTuple):
    """A file that is being read: its name in a scenario, and what messages call it."""

    name: str
    shown: str


class _Including(NamedTuple):
    home: ScenarioFolder
    folder: str
    read: list[str]

    def layers(self, document: Document, opened: tuple[_Opened, ...]) -> tuple[Document, list[Fault]]:
        """Return a document over all that it includes; ``opened`` are those on the way to it."""
        given = document.get(INCLUDE)
        if given is None:
            return document, []
        upper = document.drop([INCLUDE])
        names = given if isinstance(given, list) else [given]
        faults: list[Fault] = []
        for number in reversed(range(len(names))):
            at = (*INCLUDE, number) if isinstance(given, list) else INCLUDE
            try:
                lower, wrong = self.one(names[number], opened)
            except InputError as error:
                faults = [*(_placed(fault, document, at) for fault in error.faults), *faults]
                upper = upper.breaking([("network",), ("workers",), ("message",)])
                continue
            faults = [*wrong, *faults]
            upper = layered(upper, lower)
        return upper, faults

    def one(self, name: object, opened: tuple[_Opened, ...]) -> tuple[Document, list[Fault]]:
        """Return what one name stands for, with all that it includes itself; a machine as the key that names it."""
        if not isinstance(name, str) or not name:
            raise InputError(Fault("an include is the name of a file, or of a machine", right="base.yaml"))
        if not name.endswith(ENDINGS):
            if name not in MACHINES:
                nearest = closest(name, MACHINES)
                message, right = "there is no such machine, and a file ends with .yaml", ", ".join(MACHINES)
                raise InputError(Fault(message, value=clip(name), right=right, nearest=nearest))
            mark = Mark(opened[-1].shown, None, name, path="include")
            return Document({"machine": name}, {("machine",): mark}), []
        found = self.home.found(name)
        real = os.path.realpath(found.path)
        on_the_way = [os.path.realpath(self.home.folder / one.name if one.name else one.shown) for one in opened]
        if real in on_the_way:
            way = " includes ".join([*(one.shown for one in opened[on_the_way.index(real) :]), clip(name)])
            raise InputError(Fault(f"the file includes itself: {way}", value=clip(name), right="no circle"))
        self.read.append(name)
        if len(self.read) > MOST_FILES:
            raise InputError(Fault(f"more than {MOST_FILES} files are included", value=clip(name)))
        shown = os.path.join(self.folder, name)
        document, faults = read_yaml(read_text(found.path), shown)
        below, wrong = self.layers(document, (*opened, _Opened(name, shown)))
        return below, [*faults, *wrong]


def _placed(fault: Fault, document: Document, at: Path) -> Fault:
    """Tell a fault where the file is named, unless it is told in that file."""
    if fault.file:
        return fault
    return document.fault(at, fault.message, value=fault.value or None, right=fault.right, nearest=fault.nearest)
