"""The keys of a topology: its parameters, as the signature of the function that builds it has them."""

from collections.abc import Iterable, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from pydantic import Discriminator, Field, Tag, create_model

from ringnet.networks import TOPOLOGIES, Cable, Inside, NetworkBuilder, TopologyParameter
from ringnet.networks.custom import Duplex
from ringnet.networks.inside import InsideShape
from ringnet.scenario.keys.base import (
    LIST,
    MOST_WORKERS,
    ONE,
    NotEmpty,
    Rate,
    Seconds,
    Settings,
    list_or_one,
)
from ringnet.scenario.keys.kinds import Leaf, Node, Number, OneOf, Truth, Whole
from ringnet.scenario.keys.links import A_LINK, A_LINK_OR_FILE, LinkOrFile, PresetName

#: Sockets of a host at most.
MOST_SOCKETS = 64

NodeName: TypeAlias = Annotated[str, Node()]
SocketKeys: TypeAlias = Annotated[
    Annotated[int, Whole(1, MOST_SOCKETS), Tag(ONE)]
    | Annotated[tuple[Annotated[int, Whole(0, MOST_SOCKETS - 1)], ...], NotEmpty, Tag(LIST)],
    Discriminator(list_or_one),
]


class InsideLinkKeys(Settings):
    """Some of the links inside a host."""

    link: PresetName | None = Field(default=None, description=A_LINK)
    bandwidth_Bps: Rate = Field(description="Of each direction: `64 GB/s`.")
    latency_s: Seconds = Field(description="From one end to the other: `500 ns`.")


class InsideKeys(Settings):
    """The inside of a host."""

    shape: Annotated[InsideShape, OneOf(get_args(InsideShape), "inside of a host")] = Field(
        default="switch",
        description="switch, ring, mesh (a link between every two), or pcie: a tree with a root that is shared.",
    )
    link: LinkOrFile | None = Field(default=None, description=A_LINK_OR_FILE)
    bandwidth_Bps: Rate = Field(description="Of every link in a host: `450 GB/s`.")
    latency_s: Seconds = Field(description="Of every link in a host: `1 us`.")
    card: InsideLinkKeys | None = Field(
        default=None,
        description="Links to network cards, where they are not as the others: `{link: pcie5-x16}`.",
        examples=[{"link": "pcie5-x16"}],
    )
    sockets: SocketKeys = Field(
        default=1,
        description="Sockets of a host, over which workers and cards are spread in order; or the socket of each worker "
        "of a host: `[0, 0, 1, 1]`. Who uses a card at another socket crosses the links between them.",
        examples=[2, [0, 0, 1, 1]],
    )
    socket: InsideLinkKeys | None = Field(
        default=None,
        description="Links between two sockets, each way: `{bandwidth: 20 GB/s, latency: 0.5 us}`.",
        examples=[{"bandwidth": "20 GB/s", "latency": "0.5 us"}],
    )


class CableKeys(Settings):
    """A cable between two nodes."""

    start: NodeName = Field(alias="from", description="A worker's place or a switch: `0`, `leaf0`.", examples=[0])
    end: NodeName = Field(alias="to", description="A worker's place or a switch: `leaf0`.", examples=["leaf0"])
    link: PresetName | None = Field(default=None, description=A_LINK)
    bandwidth_Bps: Rate | None = Field(
        default=None, description="Of each direction; that of the network if left out: `5 GB/s`."
    )
    latency_s: Seconds | None = Field(default=None, description="That of the network if left out: `20 us`.")
    duplex: Annotated[Duplex, OneOf(get_args(Duplex), "duplex")] = Field(
        default="full",
        description="full: a link each way; half: one link that carries both ways; one-way: from `from` to `to`.",
    )


#: Parameters that are mappings of their own in a scenario; text is the name of a node.
_MAPPINGS: dict[Any, Any] = {Inside: InsideKeys, Cable: CableKeys, str: NodeName}


def _read_as(parameter: TopologyParameter, kind: Any) -> Any:
    """Return how a scenario has a parameter of some kind; `TypeError` for a kind that it has no form for."""
    example = parameter.example[0] if isinstance(parameter.example, list) else parameter.example
    if get_origin(kind) in (Union, UnionType):  # a number, or a list of such
        one, several = get_args(kind)
        single, listed = _read_as(parameter, one), _read_as(parameter, several)
        form: Any = Union[Annotated[single, Tag(ONE)], Annotated[listed, NotEmpty, Tag(LIST)]]  # noqa: UP007
        return Annotated[form, Discriminator(list_or_one)]
    if get_origin(kind) is Sequence:
        items = tuple.__class_getitem__((_read_as(parameter, get_args(kind)[0]), ...))
        return Annotated[items, NotEmpty] if parameter.required else items
    if get_origin(kind) is Literal:
        return Annotated[str, OneOf(get_args(kind), "choice")]
    if kind == NetworkBuilder:
        return BetweenKeys
    if kind in _MAPPINGS:
        return _MAPPINGS[kind]
    return Annotated[kind, _number(parameter, kind, example)]


def _number(parameter: TopologyParameter, kind: Any, example: Any) -> Leaf:
    if kind is bool:
        return Truth()
    if kind is int:
        least, most = parameter.least, parameter.most
        return Whole(1 if least is None else int(least), MOST_WORKERS if most is None else int(most), example=example)
    if kind is float:
        return Number(example, parameter.least or 0, parameter.most)
    raise TypeError(f"a scenario has no form for a parameter of a topology that is a {kind}")


def _field(name: str, topologies: Iterable[str]) -> Any:
    """Return one key for all topologies that have a parameter of this name."""
    having = {one: TOPOLOGIES[one].parameters[name] for one in topologies if name in TOPOLOGIES[one].parameters}
    forms = {(str(one.kind), one.least, one.most) for one in having.values()}
    if len(forms) > 1:
        raise TypeError(f"{' and '.join(having)} differ in what their parameter {name} may be: rename one")
    first = next(iter(having.values()))
    meanings: dict[str, list[str]] = {}
    for topology, one in having.items():
        meanings.setdefault(one.meaning, []).append(topology)
    description = "; ".join(f"{', '.join(by)}: {meaning}" for meaning, by in meanings.items())
    return _read_as(first, first.kind) | None, Field(
        default=None, description=f"{description}.", examples=[first.example]
    )


def parameter_names(topologies: Iterable[str] = TOPOLOGIES) -> dict[str, None]:
    """Return the parameters that some topologies have, each once."""
    return dict.fromkeys(name for topology in topologies for name in TOPOLOGIES[topology].parameters)


def _keys(model: str, topologies: Sequence[str]) -> Any:
    fields: dict[str, Any] = {name: _field(name, topologies) for name in parameter_names(topologies)}
    text = "Parameters of topologies: each is read by those that its description names."
    return create_model(model, __base__=Settings, __module__=__name__, __doc__=text, **fields)


def _is_plain(topology: str) -> bool:
    """Whether it takes numbers only: what joins cards is no list of cables, and has no hosts of its own."""
    kinds = [one.kind for one in TOPOLOGIES[topology].parameters.values()]
    return all(kind in (bool, int, float, Sequence[int], Sequence[float], int | Sequence[int]) for kind in kinds)


#: Topologies that can join the cards of hosts, and those that cannot.
BETWEEN = [*filter(_is_plain, TOPOLOGIES)]
_OTHERS = " and ".join(topology for topology in TOPOLOGIES if topology not in BETWEEN)

if TYPE_CHECKING:

    class PlainShapeKeys(Settings):
        """Parameters of the topologies that can join the cards of hosts."""

    class ShapeKeys(Settings):
        """Parameters of all topologies."""

else:
    PlainShapeKeys = _keys("PlainShapeKeys", BETWEEN)


class BetweenKeys(PlainShapeKeys):
    """The topology that joins the cards of hosts."""

    topology: Annotated[str, OneOf(BETWEEN, "topology between hosts")] = Field(
        default="switch",
        description=f"Any topology but {_OTHERS}.",
    )


if not TYPE_CHECKING:
    ShapeKeys = _keys("ShapeKeys", [*TOPOLOGIES])


def parameters_of(keys: ShapeKeys | BetweenKeys) -> dict[str, Any]:
    """Return the parameters of a topology that are given, by keyword."""
    given = {name: getattr(keys, name, None) for name in parameter_names()}
    return {name: value for name, value in given.items() if value is not None}


def inside_of(keys: ShapeKeys) -> InsideKeys | None:
    """Return what is said of the inside of hosts; None where there are none."""
    found: InsideKeys | None = getattr(keys, "inside", None)
    return found


def workers_per_host(keys: ShapeKeys) -> int | None:
    """Return the workers of every host; None where there are none, or where hosts differ in them."""
    found: int | tuple[int, ...] | None = getattr(keys, "workers_per_host", None)
    if isinstance(found, tuple):
        return found[0] if len({*found}) == 1 else None
    return found


def cards_of(keys: ShapeKeys) -> int:
    """Return the network cards of a host, the most that one has; one where nobody says."""
    found: int | tuple[int, ...] | None = getattr(keys, "nics", None)
    return max(found) if isinstance(found, tuple) else found or 1


def hosts_differ(keys: ShapeKeys) -> bool:
    """Whether there are hosts with other numbers of workers, or of cards, than others."""
    given = (getattr(keys, name, None) for name in ("workers_per_host", "nics"))
    return any(isinstance(one, tuple) and len({*one}) > 1 for one in given)
