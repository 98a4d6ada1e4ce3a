"""What pydantic found, as faults with line, path, value, right form and the nearest known key."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from ringnet.documents.document import Document, Path, in_flow, is_within, path_text
from ringnet.documents.yaml_text import read_value
from ringnet.errors import Fault, InputError, closest
from ringnet.scenario.keys.base import TAGS
from ringnet.scenario.keys.format import all_paths, fields, leaf_of
from ringnet.scenario.keys.kinds import Quantity

#: Unknown keys for which the nearest known one is looked for.
MOST_SEARCHED = 50
_OF_WORKERS = "workers is how many there are", "workers: 8"
_OF_MESSAGE = "message is the buffer of one worker", "message: 64 MiB"
_DRAWN = (
    "a latency, bandwidth, overhead or start may be drawn",
    ("network.latency: {mean: 5 us, distribution: lognormal, cv: 0.5}"),
)
_TROUBLE = "trouble says what goes wrong, and when", "trouble: [{worker: 3, dies: 2 ms}]"
#: Keys of other tools and words of the field: what serves in their place here, and how it looks.
_IN_PLACE_OF = {
    **dict.fromkeys(("jitter", "variance", "std"), _DRAWN),
    **dict.fromkeys(("faults", "failures", "failure", "death", "crash"), _TROUBLE),
    "loss": ("trouble says which links lose packets", "trouble: [{link: 3->4, loss: {probability: 0.1 %}}]"),
    "mtu": ("network.packet cuts transfers into packets", "network.packet: 4 KiB"),
    "alpha": ("network.latency is the fixed time of a transfer", "network.latency: 5 us"),
    "beta": ("network.bandwidth is one over the time of a byte", "network.bandwidth: 50 GB/s"),
    "gamma": ("worker.reduce_rate is one over the time to reduce a byte", "worker.reduce_rate: 100 GB/s"),
    "overhead": (
        "worker.send_overhead and worker.recv_overhead are the processor's time for a transfer",
        "worker.send_overhead: 1 us",
    ),
    **dict.fromkeys(
        ("launch_overhead", "launch_latency", "kernel_launch", "startup"),
        ("worker.launch is what each collective takes once, before its first step", "worker.launch: 8 us"),
    ),
    "buckets": (
        "step.bucket_cap is what `ringnet step` cuts the gradients of a training step by",
        "step: {model: resnet-50, batch: 64, rate: 20 TFLOP/s, bucket_cap: 25 MiB}",
    ),
    "nodes": (
        "hosts counts those of a machine, others are workers / network.workers_per_host",
        "hosts: 16",
    ),
    **dict.fromkeys(("n", "ranks", "n_workers", "world_size", "gpus", "npus_count", "nranks"), _OF_WORKERS),
    **dict.fromkeys(("size", "bytes", "message_size", "message_bytes", "buffer_size"), _OF_MESSAGE),
}
#: A comma that parts thousands, not values.
_THOUSANDS = re.compile(r"\d,\d{3}(?!\d)")
_MISSING = "the key is missing"
_MISPLACED = "there is no such key here"
_MAPPING_WANTED = ("model_type", "dict_type", "model_attributes_type")


def translate(error: ValidationError, document: Document, at: Path = ()) -> dict[Path, Fault]:
    """Return one fault for each path that is wrong; those of broken paths are told already and left out.

    What was validated stands at ``at``.
    """
    found: dict[Path, Fault] = {}
    n_unknown = 0
    for detail in error.errors(include_url=False):
        path = at + tuple(part for part in detail["loc"] if part not in TAGS)
        if path in found or any(is_within(path, broken) for broken in document.broken):
            continue
        if detail["type"] == "extra_forbidden":
            n_unknown += 1
            found[path] = _unknown_key(path, document, is_searched=n_unknown <= MOST_SEARCHED)
        else:
            found[path] = _fault(detail, path, document)
    # A required key that is misspelt or misplaced is one mistake, and so is a misplaced machine, which gives the rest.
    missing = {path for path, fault in found.items() if fault.message == _MISSING}
    if any(path[-1:] == ("machine",) for path in found):
        return {path: fault for path, fault in found.items() if path not in missing}
    meant = {(*path[:-1], fault.nearest) for path, fault in found.items() if fault.nearest}
    meant |= {path[-1:] for path, fault in found.items() if fault.message == _MISPLACED}
    return {path: fault for path, fault in found.items() if path not in meant & missing}


def with_examples(faults: Iterable[Fault], document: Document) -> Iterator[Fault]:
    """Yield what could not be read in a document, each with what its key takes where nobody has said what is right."""
    broken = {path_text(path): path for path in document.broken}
    for fault in faults:
        is_helped = bool(fault.right or fault.nearest) or fault.path not in broken
        yield fault if is_helped else replace(fault, right=_example(broken[fault.path]))


def _fault(detail: ErrorDetails, path: Path, document: Document) -> Fault:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "wrong":
        right = _as_swept(path, document.get(path)) or _like_the_keys_example(context["right"], path)
        return document.fault(path, context["message"], right=right, nearest=context["nearest"])
    if kind == "missing":
        return document.fault(path, _MISSING, right=_example(path))
    if kind in _MAPPING_WANTED:
        return document.fault(path, "keys with values are wanted here", right=_known_keys(path) or _example(path))
    if path[:1] == ("sweep",) and len(path) == 3:  # noqa: PLR2004 -- a key that is swept
        return document.fault(path, "a list is wanted", right=_swept_as(str(document.get(path))))
    given = str(document.get(path))
    if leaf_of((*path, 0)) and re.fullmatch(r"\d+([x,\s]+\d+)*", given):  # 4x4, as answers tell sides
        numbers = ", ".join(re.findall(r"\d+", given))
        return document.fault(path, "a list is wanted", right=f"{path[-1]}: [{numbers}]")
    # Where keys with values would do, too, the list is that of the example around it.
    return document.fault(path, "a list is wanted", right=_example(path[:-1] if fields(path) else path))


def _like_the_keys_example(right: str, path: Path) -> str:
    """Put the example of the key for that of its kind: a header is no 64 MiB."""
    info, leaf = fields(path[:-1]).get(str(path[-1])) if path else None, leaf_of(path)
    example = (info.examples or [""])[0] if info else ""
    if not isinstance(example, str) or not isinstance(leaf, Quantity):
        return right
    return right.replace(f"something like {leaf.example}", f"something like {example or leaf.example}")


def _unknown_key(path: Path, document: Document, *, is_searched: bool = True) -> Fault:
    """Say what serves in place of a key of another tool, or point to the nearest key, beside it or somewhere else.

    Of thousands of unknown keys not each ``is_searched``: a comparison of names takes a millisecond.
    """
    key, known = str(path[-1]), fields(path[:-1])
    if key.lower() in _IN_PLACE_OF:
        instead, right = _IN_PLACE_OF[key.lower()]
        return document.fault(path, f"there is no such key: {instead}", right=right)
    if not is_searched:
        return document.fault(path, "there is no such key", right=f"one of {', '.join(known)}")
    if len(path) > 1 and key not in known and key in fields(()):
        right = f"{key}: {in_flow(document.get(path))}, at the top of the file"
        return document.fault(path, _MISPLACED, right=right)
    # Among two hundred keys something is always somewhat alike: elsewhere a key is spelt as this one, or nearly.
    elsewhere = all_paths()
    hint = closest(key, known) or elsewhere.get(closest(key, elsewhere, alike=0.8), "")
    right = "" if hint else f"one of {', '.join(known)}"
    return document.fault(path, "there is no such key", right=right, nearest=hint)


def _example(path: Path) -> str:
    is_end = path[:1] == ("sweep",) and path[-1] in ("from", "to")
    swept = leaf_of(tuple(str(path[2]).split("."))) if is_end else None
    if swept is not None:
        return f"{path[-1]}: {swept.right}"  # the ends of a range are of the kind that the swept key takes
    info = fields(path[:-1]).get(str(path[-1])) if path else None
    leaf = leaf_of(path)
    example = (info.examples or [""])[0] if info else ""
    if example:
        return f"{path[-1]}: {in_flow(example)}"
    item = leaf_of((*path, 0))
    return leaf.right if leaf else f"[{item.right}]" if item else _known_keys(path)


def _swept_as(text: str) -> str:
    """Return how the values of a sweep are written that somebody gave as one, or as a range.

    >>> _swept_as("8"), _swept_as("1 KiB..1 MiB"), _swept_as("2, 4")
    ('[8]', '{from: 1 KiB, to: 1 MiB, factor: 2}', '[2, 4]')
    """
    first, dots, last = text.partition("..")
    return f"{{from: {first}, to: {last}, factor: 2}}" if dots and first and last else f"[{text}]"


def _as_swept(path: Path, given: Any) -> str:
    """Return how several values, or a range, given where one is wanted are swept; nothing where they are not such."""
    leaf, text = leaf_of(path), ", ".join(map(str, given)) if isinstance(given, list) else given
    if leaf is None or path[:1] == ("sweep",) or not isinstance(text, str) or _THOUSANDS.search(text):
        return ""
    values = re.split(r"\s*(?:,|\.\.)\s*", text.strip("[] "))
    try:
        read = [leaf.read(read_value(value, "")[0]) for value in values]
    except (PydanticCustomError, InputError):
        return ""
    return f"sweep: {{over: {{{path_text(path)}: {_swept_as(text.strip('[] '))}}}}}" if len(read) > 1 else ""


def _known_keys(path: Path) -> str:
    known = fields(path)
    return f"some of {', '.join(known)}" if known else ""
