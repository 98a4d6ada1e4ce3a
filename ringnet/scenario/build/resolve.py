"""One run, without a sweep: from a document to keys that are all right and all read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError

from ringnet.documents.document import Document, Origin, Path, are_related, path_text
from ringnet.errors import Fault, InputError
from ringnet.scenario.checks import check
from ringnet.scenario.checks.mistake import Mistake
from ringnet.scenario.checks.schedule import check_compared, check_schedule, check_ways
from ringnet.scenario.files.completing import completed
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.keys.faults import translate
from ringnet.scenario.keys.model import Keys

#: In place of what is wrong or missing, so that the other keys can be checked together.
_STAND_INS: dict[Path, Any] = {
    ("scenario_version",): 1,
    ("name",): "stand-in",
    ("workers",): 2,
    ("message",): "0 B",
    ("network", "bandwidth"): "1 GB/s",
    ("network", "latency"): "0 s",
}
#: A missing key takes the mapping around it along; nothing lies deeper.
_ROUNDS = 4


class Resolved(NamedTuple):
    """Keys of one run that are all right, and all read by it; which were orphaned and left out, and why."""

    document: Document
    notes: tuple[str, ...]


def resolve(document: Document, home: ScenarioFolder) -> Resolved:
    """Check the keys of one run.

    Raises
    ------
    InputError
        With every mistake, in the order of the lines.
    """
    known, faults = completed(document, home)
    keys, found = validate(known)
    faults += found.values()
    broken = known.broken | found.keys()
    mended = keys or _mended(known, broken)
    findings = [*check(mended), *check_schedule(mended, home), *check_compared(mended, home)]
    findings = [one for one in findings if _counts(one, document, broken)]
    orphans = {one.path: one for one in findings if one.unread and is_orphan(one, document)}
    faults += [_fault(one, known) for one in findings if one.path not in orphans]
    whole = None if faults else validate(known.drop(orphans))[0] if orphans else keys
    if whole is not None:  # or nobody knows what network there would be
        faults += [_fault(one, known) for one in check_ways(whole, home) if _counts(one, document, broken)]
    if faults or keys is None:  # what is broken was told when it was read
        raise InputError(*in_order(faults))
    notes = (f"{path_text(one.path)}: left out, {one.message}" for one in orphans.values())
    return Resolved(document.drop(orphans), tuple(notes))


def validate(document: Document) -> tuple[Keys | None, dict[Path, Fault]]:
    """Read each key by itself: the keys, or what is wrong with them."""
    try:
        return Keys.model_validate(document.data), {}
    except ValidationError as error:
        return None, translate(error, document)


def nonsense_on_the_way(document: Document, path: Path) -> list[Fault]:
    """Return what is wrong with a word on the way to a key that a sweep or an override gives.

    A word that is right by itself gives way (``payload: full`` to ``payload.elements``); nonsense must not go unseen.
    """
    here = document.in_the_way(path)
    if here is None:
        return []
    found = validate(document)[1]
    return [found[here]] if here in found else []


def is_orphan(finding: Mistake, document: Document) -> bool:
    """Whether a later writer made the key unread: a sweep, or an override of something else."""
    causes = origins_of(finding, document)
    return "sweep" in causes or ("set" in causes and "set" not in document.origins(finding.path))


def origins_of(finding: Mistake, document: Document) -> set[Origin]:
    """Who wrote the keys because of which something is wrong."""
    return {origin for cause in finding.causes for origin in document.origins(cause)}


def in_order(faults: Iterable[Fault]) -> list[Fault]:
    """Sort faults by line, and tell each once: the points of a sweep share most of theirs."""
    once: dict[object, Fault] = {}
    for fault in faults:
        once.setdefault((fault.file, fault.line, fault.path, fault.message), fault)
    return sorted(once.values(), key=lambda fault: (fault.file == "--set", fault.line or 0))


def _mended(document: Document, broken: frozenset[Path] | set[Path]) -> Keys:
    for _ in range(_ROUNDS):
        document = document.drop(path for path in broken if path)
        for path, value in _STAND_INS.items():
            if not document.has(path):
                document = document.put(path, value, {})
        keys, found = validate(Document(document.data))
        if keys is not None:
            return keys
        broken = {path if document.has(path) else path[:-1] for path in found}
    raise AssertionError(f"the stand-ins do not mend {sorted(map(str, broken))}")


def _counts(finding: Mistake, document: Document, broken: Iterable[Path]) -> bool:
    """Whether a finding is about keys that stand there, and rests on no broken one."""
    touched = (finding.path, *finding.causes)
    if any(are_related(path, wrong) for path in touched for wrong in broken):
        return False
    return document.has(finding.path) or not finding.unread


def _fault(finding: Mistake, document: Document) -> Fault:
    right, nearest = finding.right, finding.nearest
    return document.fault(finding.path, finding.message, value=finding.value, right=right, nearest=nearest)
