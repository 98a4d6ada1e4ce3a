"""Files of other tools that are not read, told by name, with what to use in their place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ringnet.errors import Fault, InputError

#: Bytes at the beginning of a file in which its keys are looked for.
LOOKED_AT = 1 << 16
#: Of a word without a colon nothing is looked at twice: a long one would take for ever.
_KEY = re.compile(rb"""(?<![\w.-])([A-Za-z_][\w.-]*+)["']?\s*+:""")


class OtherFile(NamedTuple):
    """What a file is, what to use in its place, and how it is known: by its content and the keys in it."""

    what: str
    right: str
    is_one: Callable[[bytes, set[bytes]], bool]


_SCHEDULE_RIGHT = "MSCCL's XML, or {python: file.py:function}"
OTHERS: tuple[OtherFile, ...] = (
    OtherFile(
        "an execution plan of MSCCL++, whose packets and channels have no meaning without its kernels",
        _SCHEDULE_RIGHT,
        lambda _content, keys: (
            b"gpus" in keys and bool(keys & {b"threadblocks", b"channel_ids", b"use_double_scratch_buffer"})
        ),
    ),
    OtherFile(
        "an InfraGraph, which says what is joined to what and not what workers there are",
        "topology: custom with its edges as cables, or a machine",
        lambda _content, keys: {b"devices", b"instances", b"edges"} <= keys,
    ),
    OtherFile(
        "a Chakra trace, which says what is computed and sent for what",
        "the collective and its message in a scenario, or `ringnet step` for a step of training",
        lambda content, keys: (
            (b"chakra" in content.lower() and b"nodes" in keys) or (b"\x00" in content and b"COMM_COLL_NODE" in content)
        ),
    ),
)


def refuse_other(content: bytes, file: str) -> None:
    """Raise `InputError` for a file of another tool that is known and not read; do nothing for any other.

    >>> refuse_other(b'{"devices": [], "instances": [], "edges": []}', "infra.json")
    Traceback (most recent call last):
    ...
    ringnet.errors.InputError: infra.json: this is an InfraGraph, which says what is joined to what and not what...
    """
    head = content[:LOOKED_AT]
    keys = {*_KEY.findall(head)}
    for other in OTHERS:
        if other.is_one(head, keys):
            raise InputError(Fault(f"this is {other.what}: it is not read", file=file, right=other.right))
