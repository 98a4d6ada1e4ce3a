"""What a scenario says of its algorithm: a name, or a mapping with parameters, a file or a function."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model

from ringnet.collectives import ALGORITHMS, Parameter
from ringnet.networks import TRAITS
from ringnet.scenario.keys.base import MAPPING, ONE, Settings, mapping_or_one
from ringnet.scenario.keys.kinds import Line, Name, OneOf, Plain, Truth, Whole, wrong

FunctionName: TypeAlias = Annotated[str, Line("my_ring.py:my_ring", 1000)]
ParameterName: TypeAlias = Annotated[str, Name(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a parameter", "n_slices")]
#: Keys that say which algorithm; one of them stands in a mapping.
WHICH = ("name", "file", "python")

#: Every parameter of some algorithm.
PARAMETERS: dict[str, Parameter] = {
    name: parameter for algorithm in ALGORITHMS.values() for name, parameter in algorithm.parameters.items()
}
#: Algorithms that can stand on one level of another.
_FLAT = [
    name for name, algorithm in ALGORITHMS.items() if "inner" not in algorithm.parameters and not algorithm.in_switches
]


def _type_of(parameter: Parameter) -> Any:
    """Return how a parameter is read; its default says what kind it is."""
    default = parameter.default
    if isinstance(default, bool):
        return Annotated[bool, Truth()]
    if isinstance(default, int):
        return Annotated[int, Whole(parameter.least or 0, example=max(default, 1))]
    if isinstance(default, str):
        return Annotated[str, OneOf(_FLAT, "algorithm of a level")]
    least = 1 if parameter.least is None else parameter.least
    return tuple[Annotated[int, Whole(least, example=4)], ...]


def _field(name: str) -> Any:
    meanings: dict[str, list[str]] = {}
    traits: dict[str, None] = {}
    for algorithm, one in ALGORITHMS.items():
        if name in one.parameters:
            meanings.setdefault(one.parameters[name].summary, []).append(algorithm)
            traits |= {one.parameters[name].trait: None}
    words = " or ".join(TRAITS[trait].words for trait in traits if trait)
    text = "; ".join(f"of {', '.join(by)}: {meaning}" for meaning, by in meanings.items())
    read = f" If left out, {words}, where the network has such." if words else ""
    description = f"{text[:1].upper()}{text[1:]}.{read}"
    return _type_of(PARAMETERS[name]) | None, Field(default=None, description=description)


if TYPE_CHECKING:

    class AlgorithmKeys(Settings):
        """One of name, file and python, and parameters of the algorithm that is named."""

        name: str | None = None
        file: str | None = None
        python: str | None = None
        parameters: Mapping[str, Any] | None = None

else:
    AlgorithmKeys = create_model(
        "AlgorithmKeys",
        __base__=Settings,
        __module__=__name__,
        __doc__="One of name, file and python, and parameters of the algorithm that is named.",
        name=(
            Annotated[str, OneOf(ALGORITHMS, "algorithm")] | None,
            Field(default=None, description="An algorithm of ringnet."),
        ),
        file=(
            Annotated[str, Line("schedule.xml", 1000)] | None,
            Field(default=None, description="A schedule in MSCCL's XML: `schedule.xml`."),
        ),
        python=(
            FunctionName | None,
            Field(
                default=None,
                description="A function of yours that returns a schedule: `my_ring.py:my_ring`; "
                "run only with --allow-python.",
            ),
        ),
        parameters=(
            dict[ParameterName, Annotated[Any, Plain()]] | None,
            Field(
                default=None,
                description="What your function is called with, beside workers and collective: `{n_slices: 4}`.",
                examples=[{"n_slices": 4}],
            ),
        ),
        **{name: _field(name) for name in PARAMETERS},
    )


def _one_of_which(given: Any) -> Any:
    name, _, settings = str(given).removesuffix(")").partition(" (")
    if settings and name in ALGORITHMS:  # a label, out of an answer
        raise wrong("an algorithm with parameters is keys with values", _mapping_of(name, settings))
    keys = given if isinstance(given, dict) else given.model_fields_set if isinstance(given, Settings) else WHICH[:1]
    if sum(key in keys for key in WHICH) != 1:
        raise wrong(f"one of {', '.join(WHICH)} is wanted", "{name: channel-ring, n_channels: 4}")
    return given


#: A name, or a mapping.
AlgorithmNameOrKeys: TypeAlias = Annotated[
    Annotated[str, OneOf(ALGORITHMS, "algorithm"), Tag(ONE)] | Annotated[AlgorithmKeys, Tag(MAPPING)],
    Discriminator(mapping_or_one),
    BeforeValidator(_one_of_which),
]


def name_of(keys: str | AlgorithmKeys) -> str:
    """Return the name of the algorithm: of its file or function where ringnet has no other.

    >>> name_of(AlgorithmKeys(file="tree.xml")), name_of(AlgorithmKeys(file="ring"))  # a file, not the algorithm
    ('tree.xml', './ring')
    """
    if isinstance(keys, str) or keys.name:
        return keys if isinstance(keys, str) else str(keys.name)
    name = str(keys.file or keys.python)
    return f"./{name}" if name in ALGORITHMS else name


def parameters_of(keys: str | AlgorithmKeys) -> dict[str, Any]:
    """Return the parameters that are given, by name; those of a user's function where it has some."""
    if isinstance(keys, str):
        return {}
    given = {name: value for name in PARAMETERS if (value := getattr(keys, name)) is not None}
    return given | dict(keys.parameters or {})


def knows_parameters(keys: str | AlgorithmKeys) -> bool:
    """Whether an algorithm has all parameters that are given; if one of ringnet's has not, that is told of them."""
    is_ours = isinstance(keys, str) or keys.name
    return not is_ours or parameters_of(keys).keys() <= ALGORITHMS[name_of(keys)].parameters.keys()


def label_of(keys: str | AlgorithmKeys) -> str:
    """Return the name with its parameters, to tell an algorithm from itself with others.

    >>> label_of(AlgorithmKeys(name="channel-ring", n_channels=4)), label_of("ring")
    ('channel-ring (n_channels 4)', 'ring')
    """
    settings = ", ".join(f"{name} {value_text(value)}" for name, value in parameters_of(keys).items())
    return f"{name_of(keys)} ({settings})" if settings else name_of(keys)


def _mapping_of(name: str, settings: str) -> str:
    """Return what stands in a scenario for what `label_of` writes.

    >>> _mapping_of("swing", "dims 8x2, all_ports true")
    '{name: swing, dims: [8, 2], all_ports: true}'
    """
    pairs = (one.partition(" ") for one in settings.split(", "))
    values = {key: f"[{value.replace('x', ', ')}]" if "x" in value else value for key, _, value in pairs}
    return f"{{{', '.join(f'{key}: {value}' for key, value in {'name': name, **values}.items())}}}"


def value_text(value: Any) -> str:
    """Write the value of a parameter: ``"8x2"`` for sides."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()
