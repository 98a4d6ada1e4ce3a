"""Links as they were measured: ``link: {file: profile.yaml}``, what `ringnet calibrate` wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ringnet.documents.document import Document, Mark, Path, path_text
from ringnet.errors import Fault, InputError
from ringnet.scenario.files.folder import STAND_INS, ScenarioFolder, fault_at
from ringnet.scenario.keys.kinds import FoundFile
from ringnet.scenario.keys.links import LinkFile
from ringnet.scenario.keys.network import NetworkKeys
from ringnet.scenario.keys.topology import InsideKeys, inside_of

if TYPE_CHECKING:
    from ringnet.analysis.calibration import Profile

#: Where a profile may stand: for the links of the network, and for those inside hosts.
NETWORK: Path = ("network", "link")
INSIDE: Path = ("network", "inside", "link")
PATHS: tuple[Path, ...] = (NETWORK, INSIDE)


def with_link_profiles(document: Document, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with the profiles that it names found, and what is wrong with them."""
    faults: list[Fault] = []
    for path in PATHS:
        if isinstance(document.get(path), dict):
            document, wrong = _with_profile(document, path, home)
            faults += wrong
    return document, faults


def _with_profile(document: Document, path: Path, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    name, key = document.get((*path, "file")), (*path, "file")
    given: dict[Path, str] = {(*path[:-1], one): text for one, text in STAND_INS.items()}
    missing = {one: text for one, text in given.items() if not document.has(one)}
    broken = replace(document, broken=document.broken | missing.keys())
    if not isinstance(name, str) or not name:  # told where keys are read one by one
        return broken, []
    try:
        found = home.found(name)
        profile_in(found)
    except InputError as error:
        faults = [fault_at(key, fault, name, document) for fault in error.faults]
        return replace(broken, broken=broken.broken | {key}), faults
    at: dict[Path, Mark] = {(): replace(document.mark(key), path=path_text(key))}
    document = document.put(key, found, {(): document.mark(key)})
    for one, text in missing.items():
        document = document.put(one, text, at)
    return document, []


@lru_cache(maxsize=64)
def profile_in(file: FoundFile) -> Profile:
    """Return the profile in a file that was found; `InputError` for what is wrong with it."""
    from ringnet.formats.profiles import read_profile  # noqa: PLC0415 -- few scenarios have measured links

    return read_profile(str(file.path))


def link_file(around: NetworkKeys | InsideKeys | None) -> FoundFile | None:
    """Return the file that says what some links do; None where they are said to have a bandwidth and a latency."""
    link = around.link if around else None
    return link.file if isinstance(link, LinkFile) and isinstance(link.file, FoundFile) else None


def profile_of(keys: NetworkKeys, path: Path) -> Profile | None:
    """Return the profile that stands at ``path``; None where there is none."""
    file = link_file(keys if path == NETWORK else inside_of(keys))
    return None if file is None else profile_in(file)


def link_files(keys: NetworkKeys) -> list[FoundFile]:
    """Return the files of the profiles."""
    return [*_files(keys)]


def _files(keys: NetworkKeys) -> Iterator[FoundFile]:
    for around in (keys, inside_of(keys)):
        file = link_file(around)
        if file is not None:
            yield file
