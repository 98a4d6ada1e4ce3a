"""What the models of all keys are made of, and the names of what a scenario is based on."""

import math
import re
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Tag,
)
from pydantic_core import CoreSchema, core_schema

from ringnet.scenario.keys.kinds import Line, Name, OneOf, Quantity, Whole, wrong

#: The most workers of a scenario.
MOST_WORKERS = 2**20

Seconds: TypeAlias = Annotated[float, Quantity("seconds")]
SomeSeconds: TypeAlias = Annotated[float, Quantity("seconds", above_zero=True)]
Rate: TypeAlias = Annotated[float, Quantity("bytes_per_second")]
ReduceRate: TypeAlias = Annotated[float, Quantity("bytes_per_second", {"free": math.inf})]
Start: TypeAlias = Annotated[float, Quantity("seconds", {"never": math.inf})]
WorkerNumber: TypeAlias = Annotated[str, Name(r"0|[1-9][0-9]*", "the number of a worker", "3")]
NodeKey: TypeAlias = Annotated[
    str,
    Name(
        r"0|[1-9][0-9]*|[A-Za-z*][^\s.<>]*",
        "the number of a worker's place, or the name of a node, a host or a rail",
        "3",
    ),
]
LinkPattern: TypeAlias = Annotated[
    str, Name(r"[^\s.]+->[^\s.]+", "the name of a link, * standing for anything", "3->4")
]

Count: TypeAlias = Annotated[int, Whole(1, MOST_WORKERS)]
PlaceNumber: TypeAlias = Annotated[int, Whole(0, MOST_WORKERS)]
Size: TypeAlias = Annotated[int, Quantity("bytes")]
MessageSize: TypeAlias = Annotated[int, Quantity("bytes", is_count=True)]
SomeSize: TypeAlias = Annotated[int, Quantity("bytes", above_zero=True)]
LinkName: TypeAlias = Annotated[str, Name(r"[^\s.*]+->[^\s.*]+", "the name of a link", "3->4")]

LIST, MAPPING, ONE = "<list>", "<mapping>", "<one>"
#: What pydantic adds to the path of a value; no part of the path as written.
TAGS = frozenset({LIST, MAPPING, ONE, "[key]"})


def mapping_or_one(given: Any) -> str:
    """Tell a mapping from anything else."""
    return MAPPING if isinstance(given, dict | BaseModel) else ONE


def list_or_one(given: Any) -> str:
    """Tell a list from anything else."""
    return LIST if isinstance(given, list | tuple) else ONE


def list_mapping_or_one(given: Any) -> str:
    """Tell a list, a mapping and anything else from each other."""
    return LIST if isinstance(given, list | tuple) else mapping_or_one(given)


def mapping_or_list(given: Any) -> str:
    """Tell a mapping from a list."""
    return MAPPING if isinstance(given, dict | BaseModel) else LIST


def not_empty(given: Any) -> Any:
    """Refuse a list or mapping without anything in it."""
    if given in ([], {}):
        raise wrong("nothing stands here: leave the key out")
    return given


NotEmpty = BeforeValidator(not_empty)
#: A list of places.
Seats: TypeAlias = Annotated[tuple[PlaceNumber, ...], NotEmpty, Tag(LIST)]


def key_of(name: str) -> str:
    """Return the key of a field: values have their units beside them, names inside have them at their end.

    >>> key_of("bandwidth_Bps"), key_of("message_bytes"), key_of("start_s"), key_of("workers")
    ('bandwidth', 'message', 'start', 'workers')
    """
    return re.sub("_(s|bytes|Bps|flops)$", "", name)


#: In a JSON Schema in the making: the name of the mapping that stands there.
NAMED = "mapping"
#: Whether what is described to pydantic stands inside another mapping.
_IS_INSIDE = ContextVar("_IS_INSIDE", default=False)


class Settings(BaseModel):
    """A mapping of the scenario: frozen, and unknown keys are mistakes; the key of a field is `key_of` its name."""

    # What reads a mapping is made when one is read, of those inside it, too: most scenarios have few of those that
    # there may be.
    model_config = ConfigDict(
        alias_generator=key_of,
        extra="forbid",
        frozen=True,
        defer_build=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if _IS_INSIDE.get():
            return core_schema.no_info_plain_validator_function(cls.model_validate)
        before = _IS_INSIDE.set(True)
        try:
            return handler(source)
        finally:
            _IS_INSIDE.reset(before)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        if schema["type"] == "function-plain":
            return {NAMED: cls.__name__}
        return handler(schema)


#: The files of the machines.
MACHINE_FOLDER = Path(__file__).parent.parent / "machines"
#: Their names.
MACHINES = tuple(sorted(file.stem for file in MACHINE_FOLDER.glob("*.yaml")))


def title_of(machine: str) -> str:
    """Return what a machine is, in words: the first line of its file, which alone is read.

    >>> title_of("dgx-h100").partition(",")[0]
    'NVIDIA DGX H100'
    """
    with (MACHINE_FOLDER / f"{machine}.yaml").open(encoding="utf-8") as file:
        return file.readline().removeprefix("title:").strip()


MachineName: TypeAlias = Annotated[str, OneOf(MACHINES, "machine")]
IncludeName: TypeAlias = Annotated[str, Line("base.yaml", 1000)]
IncludeKeys: TypeAlias = Annotated[
    Annotated[IncludeName, Tag(ONE)] | Annotated[tuple[IncludeName, ...], NotEmpty, Tag(LIST)],
    Discriminator(list_or_one),
]
