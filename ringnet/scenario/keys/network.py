"""The keys of the network: shape, links, what goes on on them, routes and places."""

import math
from typing import Annotated, TypeAlias, get_args

from pydantic import Discriminator, Field, Tag

from ringnet.networks import TOPOLOGIES
from ringnet.networks.network import Sharing, Switching
from ringnet.payload.dtypes import DTYPES
from ringnet.scenario.keys.base import (
    MAPPING,
    ONE,
    Count,
    LinkName,
    LinkPattern,
    NodeKey,
    NotEmpty,
    ReduceRate,
    Seats,
    Settings,
    Size,
    SomeSize,
    list_mapping_or_one,
    list_or_one,
    mapping_or_one,
)
from ringnet.scenario.keys.drawn import DrawableRate, DrawableSeconds
from ringnet.scenario.keys.kinds import FileName, FoundFile, Name, OneOf, Whole
from ringnet.scenario.keys.links import (
    A_LINK_OR_FILE,
    BehaviourKeys,
    LinkExceptionKeys,
    LinkOrFile,
)
from ringnet.scenario.keys.topology import ShapeKeys, parameter_names

#: Ways to find routes, and to place workers and rings, that have a name.
ROUTES = ("shortest", "ecmp")
PLACEMENTS = ("numbered", "interleaved")
ORDERS = ("numbered", "best")

PlacePair: TypeAlias = Annotated[str, Name(r"(0|[1-9][0-9]*)->(0|[1-9][0-9]*)", "two workers' places", "3->4")]

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

    file: Annotated[FoundFile | str, FileName("graph.xml")] = Field(
        description="NCCL's graph XML: the order of the ring, or of the ring of each channel.",
        examples=["graph.xml"],
    )


OrderKeys: TypeAlias = Annotated[
    Annotated[str, OneOf(ORDERS, "order"), Tag(ONE)] | Seats | Annotated[OrderFile, Tag(MAPPING)],
    Discriminator(list_mapping_or_one),
]


class NetworkKeys(ShapeKeys, BehaviourKeys):
    """Over what the transfers move."""

    file: Annotated[FoundFile | str, FileName("topology.xml")] | None = Field(
        default=None,
        description="Another tool's file in place of topology, bandwidth and latency: ASTRA-sim's network YAML, or "
        "NCCL's topology XML.",
        examples=["topology.xml"],
    )
    topology: Annotated[str, OneOf(TOPOLOGIES, "topology")] = Field(
        default="ring",
        description="; ".join(f"{name}: {topology.summary}" for name, topology in TOPOLOGIES.items()) + ".",
    )
    link: LinkOrFile | None = Field(
        default=None, description=A_LINK_OR_FILE, examples=["nvlink4", {"file": "profile.yaml"}]
    )
    bandwidth_Bps: DrawableRate = Field(
        description="Of every link and direction: `50 GB/s`, `400 Gbit/s`. GB is 1e9 bytes. Or how it is drawn: "
        "`{mean: 50 GB/s, distribution: gamma, cv: 0.1}`.",
        examples=["50 GB/s", "400 Gbit/s"],
    )
    latency_s: DrawableSeconds = Field(
        description="Of every link, from one end to the other: `500 ns`, `5 us`. Or how it is drawn: "
        "`{mean: 5 us, distribution: lognormal, cv: 0.3}`.",
        examples=["500 ns", {"mean": "5 us", "distribution": "lognormal", "cv": 0.3}],
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
    reduction: ReductionKeys | None = Field(
        default=None,
        description="Switches that reduce: they add what comes to them and send the sum on, to several at once. Taken "
        "by nvls, nvls-tree and sharp, and by the bound of every algorithm: `{}` for all switches.",
        examples=[{"rate": "3600 GB/s"}, {}],
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
    links_of: dict[NodeKey, Annotated[LinkExceptionKeys, NotEmpty]] = Field(
        default={},
        description="Exceptions by node, for all links into and out of it: a worker's place `{3: {latency: 9 us}}`, "
        "a network card `{h0/nic1: {bandwidth: 5 GB/s}}`, a switch, * standing for anything "
        "(`h*/nic1`, `h0/*`); or by group, for the links over its border: a host `{h0: {bandwidth: 5 GB/s}}`, a rail "
        "`rail1`, a rack `rack0`; `ringnet network SCENARIO --links` names them.",
        examples=[{"3": {"bandwidth": "5 GB/s"}, "h0/nic1": {"latency": "20 us"}}],
    )
    links: dict[LinkPattern, Annotated[LinkExceptionKeys, NotEmpty]] = Field(
        default={},
        description="Exceptions by link, stronger than links_of: `{3->4: {latency: 20 us}}`; or by rule, for all that "
        "fit: `{leaf*->spine*: {bandwidth: 5 GB/s}}`.",
        examples=[{"3->4": {"bandwidth": "5 GB/s", "latency": "20 us"}}],
    )


if taken := parameter_names() & NetworkKeys.__annotations__.keys():
    raise TypeError(f"a parameter of a topology has the name of a key of every network: {sorted(taken)}")
