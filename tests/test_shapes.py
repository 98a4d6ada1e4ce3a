"""Algorithms that see the network: what is read off it, what that is worth, and what is said of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringnet.collectives import ALGORITHMS
from ringnet.networks import TRAITS, Inside, Network, NetworkShape, make_network, placed

INSIDE = Inside("switch", 300e9, 1e-6)


def hosts(n_workers: int, workers_per_host: int, nics: int) -> Network:
    parameters = {"workers_per_host": workers_per_host, "nics": nics, "inside": INSIDE}
    return make_network("nodes", n_workers, 3.7e9, 5e-6, **parameters)


def torus(*sides: int) -> Network:
    return make_network("torus", math.prod(sides), 200e9, 1e-9, sides=sides)


# ------------------------------------------------------------------------------------------- what a network says


@pytest.mark.parametrize(
    ("network", "places", "expected"),
    [
        (hosts(8, 4, 2), None, (4, 2, None)),
        (hosts(8, 4, 3), None, (4, 3, None)),
        # Half of each host: the second worker of a card stays out, so that each has a card of its own.
        (hosts(8, 4, 2), [0, 2, 4, 6], (2, 2, None)),
        (hosts(8, 4, 2), [6, 7, 4, 5, 0, 1, 2, 3], (4, 2, None)),
        # Two workers at one card and one at the other, and the other way round: no cards that channels could take.
        (hosts(8, 4, 2), [0, 1, 2, 4, 6, 7], (3, None, None)),
        (hosts(8, 4, 4), [0, 4, 1, 5], (None, None, None)),
        (hosts(8, 4, 4), [0, 1, 2, 4], (None, None, None)),
        (hosts(8, 4, 4), [0, 1, 4, 5, 2, 3], (None, None, None)),
        (torus(2, 8), None, (None, None, (2, 8))),
        (torus(4, 4), [*range(8)], (None, None, (4, 2))),
        (torus(4, 4), [0, 2, 1, 3], (None, None, None)),
        (torus(4, 4), [*range(1, 16), 0], (None, None, None)),
        (make_network("leaf-spine", 8, 1e9, 0.0, leaves=2), None, (None, None, None)),
    ],
)
def test_hosts_cards_and_sides_are_known_wherever_the_workers_sit(
    network: Network, places: list[int] | None, expected: tuple[object, ...]
) -> None:
    shape = (network if places is None else placed(network, places)).shape
    assert (shape.workers_per_host, shape.cards_per_host, shape.sides) == expected


@given(st.permutations(range(12)), st.integers(2, 12), st.sampled_from([(2, 1), (3, 2), (4, 4), (6, 3)]))
def test_whatever_the_places_what_is_said_is_so(
    seats: list[int], n_workers: int, host: tuple[int, int]
) -> None:
    """By the routes alone: workers of one host reach each other without a card, and others by the same one each."""
    network = placed(hosts(12, *host), seats[:n_workers])
    shape = network.shape

    def cards(src: int, dst: int) -> list[str]:
        ends = (network.ends(link)[0] for link in network.route(src, dst))
        return [end for end in ends if "nic" in end]

    alone = [[not cards(one, other) for other in range(n_workers)] for one in range(n_workers)]
    per_host = shape.workers_per_host
    by_number = [
        [one // g == other // g for other in range(n_workers)]
        for g in [per_host or 1]
        for one in range(n_workers)
    ]
    assert (alone == by_number) == (per_host is not None)
    if per_host is None or per_host == n_workers or shape.cards_per_host is None:
        return
    for worker in range(n_workers):
        far = (worker + per_host) % n_workers
        first = worker // per_host * per_host
        place, each = (
            worker - first,
            [cards(first + at, (first + at + per_host) % n_workers)[0] for at in range(per_host)],
        )
        assert (
            list(dict.fromkeys(each)).index(cards(worker, far)[0]) == place * shape.cards_per_host // per_host
        )


def test_every_trait_of_a_parameter_is_one_that_networks_have() -> None:
    named = {one.trait for algorithm in ALGORITHMS.values() for one in algorithm.parameters.values()} - {""}
    assert named == TRAITS.keys()


@pytest.mark.parametrize(
    ("shape", "trait", "expected"),
    [
        (NetworkShape(8, 4, 4), "workers_per_host", 4),
        (NetworkShape(8, 8, 4), "workers_per_host", None),  # all on one host
        (NetworkShape(8, 1, 1), "workers_per_host", None),
        (NetworkShape(8, 4, 1), "channels", None),  # one card: as many channels as without hosts
        (NetworkShape(8, 4, 4), "channels", 4),
        (NetworkShape(16, sides=(2, 8)), "rows", 8),
        (NetworkShape(64, sides=(4, 2, 8)), "rows", 8),
        (NetworkShape(16, sides=(2, 8)), "powers_of_two", (8, 2)),
        (NetworkShape(12, sides=(3, 4)), "powers_of_two", None),
    ],
)
def test_what_parameters_are_read_off_a_shape(shape: NetworkShape, trait: str, expected: object) -> None:
    assert TRAITS[trait].read(shape) == expected


# ------------------------------------------------------------------------------------------ channels over all cards


@pytest.mark.parametrize("nics", [2, 3, 4, 8])
@pytest.mark.parametrize("name", ["channel-ring", "binary-tree", "double-binary-tree"])
def test_channel_c_goes_over_card_c(name: str, nics: int) -> None:
    """Of a ring all that comes in by it; of trees all that crosses: each card has as many of them as any other."""
    n_workers, per_host = 24, 8
    schedule = ALGORITHMS[name].build(n_workers, "all-reduce", n_channels=nics, node_size=per_host)
    pair = {"channel-ring": 1, "binary-tree": 2, "double-binary-tree": 4}[
        name
    ]  # channels of a ring, tree or pair
    rows = np.concatenate([np.stack((step.src, step.dst, step.channel)) for step in schedule.steps()], axis=1)
    src, dst, channel = rows[:, rows[0] // per_host != rows[1] // per_host]
    card = dst % per_host * nics // per_host
    assert (card == channel // pair).all()
    assert {*card.tolist()} == {*range(nics)}
    if name != "channel-ring":
        assert (src % per_host * nics // per_host == channel // pair).all()


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_in_channels_too_a_tree_has_its_root_where_it_is_told(collective: str) -> None:
    schedule = ALGORITHMS["binary-tree"].build(12, collective, root=6, n_channels=4, node_size=4)
    ends = np.concatenate([step.dst if collective == "broadcast" else step.src for step in schedule.steps()])
    assert sorted({*ends.tolist()}) == [worker for worker in range(12) if worker != 6]
