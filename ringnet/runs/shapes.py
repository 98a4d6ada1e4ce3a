"""Algorithms that see the network: parameters that nobody has set are read off its hosts, cards and sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ringnet.collectives import ALGORITHMS
from ringnet.networks import TRAITS, NetworkShape, Trait
from ringnet.scenario.keys.algorithm import value_text


class ReadOff(NamedTuple):
    """What was read off a network for an algorithm.

    Parameters
    ----------
    parameters : mapping of str to object
        By name; nothing where the network says nothing, or everything was set.
    phrases : tuple of str
        What each is: ``"node_size 4: workers of a host"``.
    why_not : str
        Why a network with hosts or sides says nothing, in words.
    """

    parameters: Mapping[str, Any] = {}
    phrases: tuple[str, ...] = ()
    why_not: str = ""


#: Of an algorithm that takes nothing from its network.
NOTHING = ReadOff()


def unread_note(names: Iterable[str], why_not: str) -> str:
    """Say that some parameters, or those of some algorithms, could not be read off a network with hosts or sides.

    >>> unread_note(["node_size"], "workers are not numbered host by host")
    'workers are not numbered host by host: node_size as on a network without hosts or sides'
    """
    return f"{why_not}: {' and '.join(names)} as on a network without hosts or sides"


def open_traits(algorithm: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of an algorithm that a network can say and nobody has, each with what it is read off."""
    known = ALGORITHMS[algorithm].parameters if algorithm in ALGORITHMS else {}
    return {name: one.trait for name, one in known.items() if one.trait and name not in given}


def read_off(algorithm: str, given: Mapping[str, Any], shape: Callable[[], NetworkShape]) -> ReadOff:
    """Return what an algorithm takes from its network.

    Parameters
    ----------
    algorithm : str
        Name; one of a file or a function takes nothing.
    given : mapping of str to object
        Parameters that are set: they stay.
    shape : callable
        Returns the shape of the network, as the workers see it; called only where something can be read off it.

    Examples
    --------
    >>> from ringnet.networks import make_network
    >>> torus = make_network("torus", 16, 1e9, 0.0, sides=[2, 8])
    >>> read_off("torus-ring", {}, lambda: torus.shape).phrases
    ('n_rows 8: rows of the network',)
    """
    traits = open_traits(algorithm, given)
    return read_off_shape(traits, shape()) if traits else NOTHING


def _phrase(name: str, value: Any, trait: Trait) -> str:
    return f"{name} {trait.said(value) if trait.said else value_text(value)}: {trait.words}"


def read_off_shape(traits: Mapping[str, str], shape: NetworkShape) -> ReadOff:
    """Return what some parameters are by a shape; ``traits`` says what each is read off."""
    values = {name: TRAITS[trait].read(shape) for name, trait in traits.items()}
    found = {name: value for name, value in values.items() if value is not None}
    phrases = (_phrase(name, value, TRAITS[traits[name]]) for name, value in found.items())
    return ReadOff(found, tuple(phrases), "" if found else shape.why_not)
