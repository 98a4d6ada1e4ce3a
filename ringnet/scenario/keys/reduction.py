"""The keys of switches that reduce."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

from pydantic import Field

from ringnet.payload.dtypes import DTYPES
from ringnet.scenario.keys.base import NotEmpty, ReduceRate, Settings
from ringnet.scenario.keys.kinds import Name, OneOf

NodePattern: TypeAlias = Annotated[
    str, Name(r"[A-Za-z*][^\s.<>]*", "the name of a switch, * standing for anything", "leaf*")
]
ElementType: TypeAlias = Annotated[str, OneOf(DTYPES, "dtype")]


class ReductionKeys(Settings):
    """What switches add."""

    switches: Annotated[tuple[NodePattern, ...], NotEmpty] | None = Field(
        default=None,
        description="Which of them do, by name or rule: `[leaf*, spine0]`; all if left out, but none of a network from "
        "a file. `ringnet network SCENARIO --links` names them.",
        examples=[["h*/switch"], ["leaf*", "spine0"]],
    )
    reduce_Bps: ReduceRate = Field(
        default=math.inf,
        alias="rate",
        description="Bytes that a switch takes in and adds, over all its links together: `3600 GB/s`; free: at once.",
        examples=["3600 GB/s", "free"],
    )
    dtypes: Annotated[tuple[ElementType, ...], NotEmpty] | None = Field(
        default=None,
        description="Types of elements that they add: `[float16, bfloat16]`; all if left out.",
        examples=[["float16", "bfloat16", "float32"]],
    )
    accumulate: ElementType | None = Field(
        default=None,
        description="Type in which a switch adds, before it rounds the sum to that of the elements and sends it on; "
        "that of the elements if left out.",
        examples=["float32"],
    )
