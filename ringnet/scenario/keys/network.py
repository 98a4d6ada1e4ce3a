"""The keys of the network: shape, links, what goes on on them, routes and places."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, get_args

from pydantic import Discriminator, Field, Tag

from ringnet.networks import PRESETS, TOPOLOGIES
from ringnet.networks.custom import Duplex
from ringnet.networks.network import Sharing, Switching
from ringnet.networks.nodes import Shape
from ringnet.scenario.keys.base import (
    LIST,
    MAPPING,
    MOST_WORKERS,
    ONE,
    LinkPattern,
    NotEmpty,
    Rate,
    Seconds,
    Settings,
    WorkerNumber,
    list_mapping_or_one,
    list_or_one,
    mapping_or_one,
)
from ringnet.scenario.keys.kinds import Line, Name, Node, Number, OneOf, Quantity, Whole

#: Ways to find routes, and to place workers and rings, that have a name.
ROUTES = ("shortest", "ecmp")
PLACEMENTS = ("numbered", "interleaved")
ORDERS = ("numbered", "best")
#: Topologies that join the cards of hosts.
BETWEEN = tuple(name for name in TOPOLOGIES if name not in ("nodes", "custom"))

Count: TypeAlias = Annotated[int, Whole(1, MOST_WORKERS)]
PlaceNumber: TypeAlias = Annotated[int, Whole(0, MOST_WORKERS)]
PresetName: TypeAlias = Annotated[str, OneOf(PRESETS, "preset of a link")]
Size: TypeAlias = Annotated[int, Quantity("bytes")]
SomeSize: TypeAlias = Annotated[int, Quantity("bytes", above_zero=True)]
NodeName: TypeAlias = Annotated[str, Node()]
PlacePair: TypeAlias = Annotated[
    str, Name(r"(0|[1-9][0-9]*)->(0|[1-9][0-9]*)", "two workers' places", "3->4")
]
LinkName: TypeAlias = Annotated[str, Name(r"[^\s.*]+->[^\s.*]+", "the name of a link", "3->4")]
#: A list of places, or a word.
Seats: TypeAlias = Annotated[tuple[PlaceNumber, ...], NotEmpty, Tag(LIST)]


class LinkFile(Settings):
    """A link as it was measured."""

    file: Annotated[str, Line("profile.yaml", 1000)] = Field(
        description="What `ringnet calibrate --out` wrote: `profile.yaml`.", examples=["profile.yaml"]
    )


#: A name, or a file.
LinkOrFile: TypeAlias = Annotated[
    Annotated[str, OneOf(PRESETS, "preset of a link"), Tag(ONE)] | Annotated[LinkFile, Tag(MAPPING)],
    Discriminator(mapping_or_one),
]


class RegimeKeys(Settings):
    """What a link does with small transfers."""

    up_to_bytes: Size = Field(alias="up_to", description="The largest transfer that this is for: `8 KiB`.")
    bandwidth_Bps: Rate = Field(alias="bandwidth", description="Bytes per second: `5 GB/s`.")
    latency_s: Seconds = Field(alias="latency", description="Time from one end to the other: `2 us`.")


class ChangeKeys(Settings):
    """A bandwidth from some time on."""

    at_s: Seconds = Field(alias="at", description="From when on: `20 us`.")
    bandwidth_Bps: Rate = Field(alias="bandwidth", description="Bytes per second: `5 GB/s`.")


RegimeList: TypeAlias = Annotated[tuple[RegimeKeys, ...], NotEmpty]
ChangeList: TypeAlias = Annotated[tuple[ChangeKeys, ...], NotEmpty]
_LINK = "A known link, for what bandwidth and latency do not say: `nvlink4`."
_LINK_OR_FILE = (
    "A known link, for what bandwidth and latency do not say: `nvlink4`; or in their place one that was measured, "
    "from what `ringnet calibrate` wrote: `{file: profile.yaml}`."
)
_REGIMES = (
    "What transfers of up to some size get, ascending; larger ones get bandwidth and latency: "
    "`[{up_to: 8 KiB, bandwidth: 5 GB/s, latency: 2 us}]`."
)
_PROFILE = "Bandwidth from some time on, ascending; before, bandwidth: `[{at: 20 us, bandwidth: 10 GB/s}]`."


class LinkExceptionKeys(Settings):
    """What is different about some links; what is not named here stays as the rule for all links has it."""

    link: PresetName | None = Field(default=None, description=_LINK)
    bandwidth_Bps: Rate | None = Field(
        default=None, alias="bandwidth", description="Bytes per second: `5 GB/s`, `40 Gbit/s`."
    )
    latency_s: Seconds | None = Field(
        default=None, alias="latency", description="Time from one end to the other: `20 us`."
    )
    regimes: RegimeList | None = Field(default=None, description=_REGIMES)
    profile: ChangeList | None = Field(default=None, description=_PROFILE)


class InsideKeys(Settings):
    """The inside of a host."""

    shape: Annotated[Shape, OneOf(get_args(Shape), "inside of a host")] = Field(
        default="switch", description="switch, ring, or pcie: a tree with a root that is shared."
    )
    link: LinkOrFile | None = Field(default=None, description=_LINK_OR_FILE)
    bandwidth_Bps: Rate = Field(alias="bandwidth", description="Of every link in a host: `450 GB/s`.")
    latency_s: Seconds = Field(alias="latency", description="Of every link in a host: `1 us`.")


class CableKeys(Settings):
    """A cable between two nodes."""

    start: NodeName = Field(
        alias="from", description="A worker's place or a switch: `0`, `leaf0`.", examples=[0]
    )
    end: NodeName = Field(
        alias="to", description="A worker's place or a switch: `leaf0`.", examples=["leaf0"]
    )
    link: PresetName | None = Field(default=None, description=_LINK)
    bandwidth_Bps: Rate | None = Field(
        default=None,
        alias="bandwidth",
        description="Of each direction; that of the network if left out: `5 GB/s`.",
    )
    latency_s: Seconds | None = Field(
        default=None, alias="latency", description="That of the network if left out: `20 us`."
    )
    duplex: Annotated[Duplex, OneOf(get_args(Duplex), "duplex")] = Field(
        default="full",
        description="full: a link each way; half: one link that carries both ways; one-way: from `from` to `to`.",
    )


def _parameter(name: str) -> str:
    """Return what a parameter means, and for which topologies."""
    having = {
        topology: line.parameters[name] for topology, line in TOPOLOGIES.items() if name in line.parameters
    }
    return f"{', '.join(having)}: {next(iter(having.values())).meaning}."


class ShapeKeys(Settings):
    """Parameters of topologies: each is read by those that its description names."""

    sides: Annotated[tuple[Count, ...], NotEmpty] | None = Field(
        default=None, description=_parameter("sides"), examples=[[4, 4]]
    )
    leaves: Count | None = Field(default=None, description=_parameter("leaves"), examples=[2])
    hosts_per_leaf: Count | None = Field(default=None, description=_parameter("hosts_per_leaf"), examples=[4])
    spines: Count | None = Field(default=None, description=_parameter("spines"), examples=[2])
    oversubscription: Annotated[float, Number(4)] | None = Field(
        default=None, description=_parameter("oversubscription"), examples=[4]
    )
    k: Annotated[int, Whole(2, 128, example=4)] | None = Field(
        default=None, description=_parameter("k"), examples=[4]
    )
    groups: Count | None = Field(default=None, description=_parameter("groups"), examples=[5])
    routers_per_group: Count | None = Field(
        default=None, description=_parameter("routers_per_group"), examples=[4]
    )
    hosts_per_router: Count | None = Field(
        default=None, description=_parameter("hosts_per_router"), examples=[2]
    )


class BetweenKeys(ShapeKeys):
    """The topology that joins the cards of hosts."""

    topology: Annotated[str, OneOf(BETWEEN, "topology between hosts")] = Field(
        default="switch", description="Any topology but nodes and custom."
    )


class TransferWindow(Settings):
    """A window counted in transfers."""

    transfers: Count = Field(description="Transfers without credit at a time.", examples=[4])


RouteKeys: TypeAlias = Annotated[
    Annotated[str, OneOf(ROUTES, "way to find routes"), Tag(ONE)]
    | Annotated[dict[PlacePair, Annotated[tuple[LinkName, ...], NotEmpty]], NotEmpty, Tag(MAPPING)],
    Discriminator(mapping_or_one),
]
WindowKeys: TypeAlias = Annotated[
    Annotated[SomeSize, Tag(ONE)] | Annotated[TransferWindow, Tag(MAPPING)],
    Discriminator(mapping_or_one),
]
PlacementKeys: TypeAlias = Annotated[
    Annotated[str, OneOf(PLACEMENTS, "placement"), Tag(ONE)] | Seats, Discriminator(list_or_one)
]


class OrderFile(Settings):
    """The order of rings from a file."""

    file: Annotated[str, Line("graph.xml", 1000)] = Field(
        description="NCCL's graph XML: the order of the ring, or of the ring of each channel.",
        examples=["graph.xml"],
    )


OrderKeys: TypeAlias = Annotated[
    Annotated[str, OneOf(ORDERS, "order"), Tag(ONE)] | Seats | Annotated[OrderFile, Tag(MAPPING)],
    Discriminator(list_mapping_or_one),
]


class NetworkKeys(ShapeKeys):
    """Over what the transfers move."""

    file: Annotated[str, Line("topology.xml", 1000)] | None = Field(
        default=None,
        description="Another tool's file in place of topology, bandwidth and latency: ASTRA-sim's network YAML, or "
        "NCCL's topology XML.",
        examples=["topology.xml"],
    )
    topology: Annotated[str, OneOf(TOPOLOGIES, "topology")] = Field(
        default="ring",
        description="; ".join(f"{name}: {topology.summary}" for name, topology in TOPOLOGIES.items()) + ".",
    )
    workers_per_host: Count | None = Field(
        default=None, description=_parameter("workers_per_host"), examples=[8]
    )
    inside: InsideKeys | None = Field(
        default=None, description=_parameter("inside"), examples=[{"shape": "switch", "link": "nvlink4"}]
    )
    nics: Count | None = Field(default=None, description=_parameter("nics"), examples=[4])
    between: BetweenKeys | None = Field(
        default=None, description=_parameter("between"), examples=[{"topology": "leaf-spine", "leaves": 2}]
    )
    switches: tuple[NodeName, ...] | None = Field(
        default=None, description=_parameter("switches"), examples=[["leaf0", "leaf1"]]
    )
    cables: Annotated[tuple[CableKeys, ...], NotEmpty] | None = Field(
        default=None, description=_parameter("cables"), examples=[[{"from": 0, "to": "leaf0"}]]
    )
    link: LinkOrFile | None = Field(
        default=None, description=_LINK_OR_FILE, examples=["nvlink4", {"file": "profile.yaml"}]
    )
    bandwidth_Bps: Rate = Field(
        alias="bandwidth",
        description="Of every link and direction: `50 GB/s`, `400 Gbit/s`. GB is 1e9 bytes.",
        examples=["50 GB/s", "400 Gbit/s"],
    )
    latency_s: Seconds = Field(
        alias="latency",
        description="Of every link, from one end to the other: `500 ns`, `5 us`.",
        examples=["500 ns"],
    )
    regimes: RegimeList | None = Field(
        default=None,
        description=_REGIMES + " For every link that has the network's bandwidth and latency.",
        examples=[[{"up_to": "8 KiB", "bandwidth": "5 GB/s", "latency": "2 us"}]],
    )
    profile: ChangeList | None = Field(
        default=None,
        description=_PROFILE + " For every link that has the network's bandwidth and latency.",
        examples=[[{"at": "20 us", "bandwidth": "10 GB/s"}]],
    )
    switching: Annotated[Switching, OneOf(get_args(Switching), "switching")] = Field(
        default="cut-through",
        description="Whether a transfer goes on to the next link with its head, or once it is there whole. "
        "Read where a route has more than one link, and links are shared fifo.",
    )
    sharing: Annotated[Sharing, OneOf(("auto", "fifo", "fair"), "sharing")] = Field(
        default="auto",
        description="How transfers share a link. fifo: one after another; fair: all at once, at max-min fair rates; "
        "auto: fair if any link carries the transfers of more than one sender, fifo otherwise.",
    )
    packet: SomeSize | None = Field(
        default=None,
        description="Transfers are cut into packets of so many bytes, which queue on their own: `4 KiB`.",
        examples=["4 KiB"],
    )
    header: Size | None = Field(
        default=None, description="Bytes that each packet has more on the links: `64 B`.", examples=["64 B"]
    )
    window: WindowKeys | None = Field(
        default=None,
        description="What one worker may have on the way to another, until what was applied has sent its credit back: "
        "`1 MiB`, or `{transfers: 4}`. Transfers go in slots of an eighth of it, each with a credit "
        "of its own.",
        examples=["1 MiB", {"transfers": 4}],
    )
    routes: RouteKeys = Field(
        default="shortest",
        description="shortest: by hops, always the same of several; ecmp: spread over those alike, flow by flow; or "
        "links listed for some pairs of places: `{0->1: [0->leaf0, leaf0->1]}`.",
        examples=["ecmp", {"0->1": ["0->leaf0", "leaf0->1"]}],
    )
    route_seed: Annotated[int, Whole(0, 2**63 - 1, example=1)] = Field(
        default=0, description="Of ecmp: another one spreads the flows otherwise.", examples=[1]
    )
    places: Count | None = Field(
        default=None,
        description="Places for workers that the network has; as many as all jobs have workers if left out.",
        examples=[16],
    )
    placement: PlacementKeys = Field(
        default="numbered",
        description="Which place each worker has: a list, numbered (worker i at place i), or interleaved over leaves, "
        "hosts or groups.",
        examples=["interleaved", [0, 4, 1, 5]],
    )
    order: OrderKeys = Field(
        default="numbered",
        description="The order in which the ring goes round these places: a list of workers, numbered, best (the one "
        "that loads no link more than it must), or that of a file. Ranks are numbered along it; channel-ring takes the "
        "order of each channel from a file, and ranks stay as they are.",
        examples=["best", [0, 2, 1, 3], {"file": "graph.xml"}],
    )
    links_of: dict[WorkerNumber, Annotated[LinkExceptionKeys, NotEmpty]] = Field(
        default={},
        description="Exceptions by worker's place, for all links into and out of it: `{3: {bandwidth: 5 GB/s}}`.",
        examples=[{"3": {"bandwidth": "5 GB/s"}}],
    )
    links: dict[LinkPattern, Annotated[LinkExceptionKeys, NotEmpty]] = Field(
        default={},
        description="Exceptions by link, stronger than links_of: `{3->4: {latency: 20 us}}`; or by rule, for all that "
        "fit: `{leaf*->spine*: {bandwidth: 5 GB/s}}`.",
        examples=[{"3->4": {"bandwidth": "5 GB/s", "latency": "20 us"}}],
    )


def parameters_of(keys: Any) -> dict[str, Any]:
    """Return the parameters of a topology that are given, by keyword, of `NetworkKeys` or `BetweenKeys`."""
    names = dict.fromkeys(name for topology in TOPOLOGIES.values() for name in topology.parameters)
    given = {name: getattr(keys, name, None) for name in names}
    return {name: value for name, value in given.items() if value is not None}
