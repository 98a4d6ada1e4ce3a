"""Links by name, ``link: nvlink4``, and as `ringnet calibrate` measured them, ``link: {file: profile.yaml}``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ringnet.documents.document import Document, Path, path_text
from ringnet.errors import Fault
from ringnet.networks import PRESETS, TOPOLOGIES, is_card
from ringnet.networks.network import ONE_WAY
from ringnet.scenario.files.folder import STAND_INS, ScenarioFolder, read_at
from ringnet.scenario.keys.kinds import FoundFile
from ringnet.scenario.keys.links import LinkFile
from ringnet.scenario.keys.network import NetworkKeys
from ringnet.scenario.keys.topology import InsideKeys, inside_of
from ringnet.units import quantity_text

if TYPE_CHECKING:
    from ringnet.analysis.calibration import Profile

#: Where a profile may stand: for the links of the network, and for those inside hosts.
NETWORK: Path = ("network", "link")
INSIDE: Path = ("network", "inside", "link")
PROFILES: tuple[Path, ...] = (NETWORK, INSIDE)


def with_link_profiles(document: Document, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with the profiles that it names found, and what is wrong with them."""
    faults: list[Fault] = []
    for path in PROFILES:
        if isinstance(document.get(path), dict):
            document, wrong = _with_profile(document, path, home)
            faults += wrong
    return document, faults


def _with_profile(document: Document, path: Path, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    name, key = document.get((*path, "file")), (*path, "file")
    given: dict[Path, str] = {(*path[:-1], one): text for one, text in STAND_INS.items()}
    broken = document.breaking(document.left_out(given))
    if not isinstance(name, str) or not name:  # told where keys are read one by one
        return broken, []
    read = read_at(key, document, home, profile_in)
    if isinstance(read, list):
        return broken.breaking([key]), read
    mark = document.mark(key)
    return document.put(key, read[0], {(): mark}).filled(given, replace(mark, path=path_text(key))), []


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


#: Mappings of links inside hosts.
INSIDES: tuple[Path, ...] = (
    ("network", "inside"),
    ("network", "inside", "card"),
    ("network", "inside", "socket"),
)
#: What a preset gives.
GIVEN = ("bandwidth", "latency")


def link_keys(document: Document) -> Iterator[Path]:
    """Yield the path of every key ``link`` of the network and inside it."""
    network = document.get(("network",))
    around: list[Path] = [("network",), *INSIDES]
    for key in ("links", "links_of"):
        inside = network.get(key) if isinstance(network, dict) else None
        around += [("network", key, str(name)) for name in inside] if isinstance(inside, dict) else []
    cables = document.get(("network", "cables"))
    around += [("network", "cables", place) for place in range(len(cables))] if isinstance(cables, list) else []
    return ((*path, "link") for path in around if document.has((*path, "link")))


def with_presets(document: Document) -> tuple[Document, list[Fault]]:
    """Return the document with what its presets give, and those presets that give nothing.

    A preset's latency is from end to end: through a switch each of the two links gets half of it.

    Where there is no such preset, the keys that it would give are broken: only the name is told.
    """
    faults = []
    for path in [*link_keys(document)]:
        name = document.get(path)
        if isinstance(name, dict) and path in PROFILES:
            continue
        missing = document.left_out((*path[:-1], key) for key in GIVEN)
        preset = PRESETS.get(name) if isinstance(name, str) else None
        if preset is None:
            document = document.breaking(missing)
            continue
        if not missing and document.origins((*path[:-1], "bandwidth")) == {"file"}:
            message = "the key is never read: bandwidth and latency say it all"
            faults.append(document.fault(path, message, right="one of the three left out"))
        latency_s = preset.latency_s / _links_of_a_way(document, path)
        values: dict[Path, str] = {
            (*path[:-1], "bandwidth"): quantity_text(preset.bandwidth_Bps, "bytes_per_second"),
            (*path[:-1], "latency"): quantity_text(latency_s, "seconds"),
        }
        document = document.filled(values, replace(document.mark(path), text=name, path=path_text(path)))
    return document, faults


def _links_of_a_way(document: Document, path: Path) -> int:
    """Return over how many links of a key a latency from end to end is spread: two where a switch is between."""
    place = path[1:-1]
    if place == ("inside",):
        return 1 if document.get((*path[:-1], "shape")) in ("ring", "mesh") else 2
    if place == ("inside", "socket"):
        return 1
    if place == ("inside", "card"):
        return 2
    ends: list[str] = []
    if place[:1] == ("cables",):
        ends = [str(document.get((*path[:-1], key))) for key in ("from", "to")]
    elif place[:1] == ("links",):
        ends = str(place[1]).split(ONE_WAY)
    if ends and "*" not in ends:
        return 1 if all(end.isdecimal() or is_card(end) for end in ends) else 2
    topology = document.get(("network", "topology")) or "ring"
    if topology == "nodes":
        between = document.get(("network", "between"))
        topology = (between.get("topology") if isinstance(between, dict) else None) or "switch"
    known = TOPOLOGIES.get(str(topology))  # which may be anything: nobody has read the key yet
    return known.n_way if known else 1


def unwritten(base: Document, first: Document, swept: set[Path]) -> set[Path]:
    """Return what a whole document leaves out: a preset beside what it gave; of a swept one, what it gave."""
    gone: set[Path] = set()
    for path in link_keys(first):
        if isinstance(first.get(path), dict) or path in swept:  # what a profile gave is no text at all
            gone |= base.left_out((*path[:-1], key) for key in GIVEN)
        else:
            gone.add(path)
    return gone
