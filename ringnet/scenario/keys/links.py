"""The keys of links: known ones by name, measured ones from a file, what they do by size and by time, exceptions."""

from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, Field, Tag

from ringnet.networks import PRESETS
from ringnet.scenario.keys.base import MAPPING, ONE, NotEmpty, Rate, Seconds, Settings, Size, mapping_or_one
from ringnet.scenario.keys.drawn import DrawableRate, DrawableSeconds
from ringnet.scenario.keys.kinds import FileName, FoundFile, OneOf

PresetName: TypeAlias = Annotated[str, OneOf(PRESETS, "preset of a link")]


class LinkFile(Settings):
    """A link as it was measured."""

    file: Annotated[FoundFile | str, FileName("profile.yaml")] = Field(
        description="What `ringnet calibrate --out` wrote: `profile.yaml`.", examples=["profile.yaml"]
    )


#: A name, or a file.
LinkOrFile: TypeAlias = Annotated[
    Annotated[str, OneOf(PRESETS, "preset of a link"), Tag(ONE)] | Annotated[LinkFile, Tag(MAPPING)],
    Discriminator(mapping_or_one),
]


class RegimeKeys(Settings):
    """What a link does with small transfers."""

    up_to_bytes: Size = Field(description="The largest transfer that this is for: `8 KiB`.")
    bandwidth_Bps: Rate = Field(description="Bytes per second: `5 GB/s`.")
    latency_s: Seconds = Field(description="Time from one end to the other: `2 us`.")


class ChangeKeys(Settings):
    """A bandwidth from some time on."""

    at_s: Seconds = Field(description="From when on: `20 us`.")
    bandwidth_Bps: Rate = Field(description="Bytes per second: `5 GB/s`.")


RegimeList: TypeAlias = Annotated[tuple[RegimeKeys, ...], NotEmpty]
ChangeList: TypeAlias = Annotated[tuple[ChangeKeys, ...], NotEmpty]
A_LINK = "A known link, for what bandwidth and latency do not say: `nvlink4`."
A_LINK_OR_FILE = (
    "A known link, for what bandwidth and latency do not say: `nvlink4`; or in their place one that was measured, "
    "from what `ringnet calibrate` wrote: `{file: profile.yaml}`."
)
_FOR_ALL = " As a key of the network: for every link that takes bandwidth and latency from it."


class BehaviourKeys(Settings):
    """What links do beside having one bandwidth and one latency; a link has one of these."""

    regimes: RegimeList | None = Field(
        default=None,
        description="What transfers of up to some size get, ascending; larger ones get bandwidth and latency: "
        "`[{up_to: 8 KiB, bandwidth: 5 GB/s, latency: 2 us}]`." + _FOR_ALL,
        examples=[[{"up_to": "8 KiB", "bandwidth": "5 GB/s", "latency": "2 us"}]],
    )
    profile: ChangeList | None = Field(
        default=None,
        description="Bandwidth from some time on, ascending; before, bandwidth: "
        "`[{at: 20 us, bandwidth: 10 GB/s}]`." + _FOR_ALL,
        examples=[[{"at": "20 us", "bandwidth": "10 GB/s"}]],
    )

    def behaviours(self) -> dict[str, Any]:
        """Return what is given of these keys."""
        given = {key: getattr(self, key) for key in BEHAVIOUR_KEYS}
        return {key: value for key, value in given.items() if value is not None}


BEHAVIOUR_KEYS = tuple(BehaviourKeys.model_fields)


class LinkExceptionKeys(BehaviourKeys):
    """What is different about some links; what is not named here stays as the rule for all links has it."""

    link: PresetName | None = Field(default=None, description=A_LINK)
    bandwidth_Bps: DrawableRate | None = Field(
        default=None, description="Bytes per second: `5 GB/s`, `40 Gbit/s`; or how it is drawn."
    )
    latency_s: DrawableSeconds | None = Field(
        default=None, description="Time from one end to the other: `20 us`; or how it is drawn."
    )
