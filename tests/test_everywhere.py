"""What holds for every run, whatever its algorithm, network and workers: random scenarios of everything at once."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import ringnet
from ringnet.collectives import ALGORITHMS
from tests.audit import Ran, audit

COLLECTIVES = sorted({collective for algorithm in ALGORITHMS.values() for collective in algorithm.collectives})
REDUCING = {"all-reduce", "reduce", "reduce-scatter"}
RATES = st.sampled_from(["1 GB/s", "3 GB/s", "10 GB/s", "25 Gbit/s"])
TIMES = st.sampled_from(["0 s", "500 ns", "1 us", "20 us"])
#: Relative error that sums over a whole run may leave.
DUST = 1e-9


def divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def sides(n_workers: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(divisors(n_workers)).map(lambda side: {"sides": [side, n_workers // side]})


def hosts(n_workers: int) -> st.SearchStrategy[dict[str, Any]]:
    """Hosts alike, or two that differ; cards on rails or not, used in order or not, over one socket or two."""
    link = st.fixed_dictionaries({"bandwidth": RATES, "latency": TIMES})

    def of_size(size: int) -> st.SearchStrategy[dict[str, Any]]:
        return st.integers(1, min(2, size)).flatmap(lambda nics: with_cards(size, nics))

    def with_cards(size: int, nics: int) -> st.SearchStrategy[dict[str, Any]]:
        n_cards, sockets = n_workers // size * nics, 1 if size == 1 else 2
        inside = {
            "shape": st.sampled_from(["switch", "ring", "mesh", "pcie"]),
            "bandwidth": RATES,
            "latency": TIMES,
            "card": maybe(link),
            "sockets": st.just(sockets),
            "socket": link if sockets > 1 else st.none(),
        }
        between = [
            {"topology": "fully-connected"},
            {"topology": "leaf-spine", "leaves": 2, "spines": 2},
            {"topology": "leaf-spine", "hosts_per_leaf": [1, n_cards], "oversubscription": 2},
            {"topology": "rails", "rails": nics, "spines": 2},
            {"topology": "rails", "rails": nics, "hosts_per_rack": [1, n_cards], "spines": 1},
            *([{"topology": "rails", "rails": nics}] if nics > 1 else []),
        ]
        used = st.permutations([place % nics for place in range(size)])
        keys = {
            "workers_per_host": st.just(size),
            "inside": st.fixed_dictionaries(inside).map(said),
            "nics": st.just(nics),
            "affinity": maybe(used),
            "between": st.sampled_from(between),
        }
        return st.fixed_dictionaries(keys).map(said)

    def that_differ(first: int) -> st.SearchStrategy[dict[str, Any]]:
        own = st.fixed_dictionaries(
            {"shape": st.sampled_from(["switch", "pcie"]), "bandwidth": RATES, "latency": TIMES}
        )
        sizes = {"workers_per_host": st.just([first, n_workers - first]), "inside": own}
        return st.fixed_dictionaries({**sizes, "nics": st.just([1, min(2, n_workers - first)])})

    alike = st.sampled_from(divisors(n_workers)).flatmap(of_size)
    return st.one_of(alike, alike, st.integers(1, n_workers - 1).flatmap(that_differ)) if n_workers > 1 else alike


def said(keys: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}


def on_rails(n_workers: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(divisors(n_workers)).map(lambda each: {"rails": each, "spines": 2})


def cables(n_workers: int) -> st.SearchStrategy[dict[str, Any]]:
    """Two switches, with a cable between them that may carry both ways on one link."""

    def listed(duplex: str, ends: list[str]) -> dict[str, Any]:
        own = [{"from": worker, "to": end} for worker, end in enumerate(ends)]
        return {"switches": ["a", "b"], "cables": [{"from": "a", "to": "b", "duplex": duplex}, *own]}

    ends = st.lists(st.sampled_from("ab"), min_size=n_workers, max_size=n_workers)
    return st.builds(listed, st.sampled_from(["full", "half"]), ends)


def leaves(n_workers: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "leaves": st.integers(1, min(4, n_workers)),
            "spines": st.integers(1, 3),
            "oversubscription": st.sampled_from([1, 2, 4]),
        }
    )


#: Parameters of each topology, by the number of workers.
SHAPES = {
    "ring": lambda n: st.just({}),
    "switch": lambda n: st.just({}),
    "fully-connected": lambda n: st.just({}),
    "torus": sides,
    "mesh": sides,
    "leaf-spine": leaves,
    "fat-tree": lambda n: st.just({"k": 4}),
    "rails": on_rails,
    "dragonfly": lambda n: st.just({"groups": 4, "routers_per_group": 2, "hosts_per_router": 2}),
    "nodes": hosts,
    "custom": cables,
}


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A key that is left out three times in four: its value is None."""
    return st.one_of(st.none(), st.none(), st.none(), values)


def rings(n_workers: int) -> st.SearchStrategy[Any]:
    return st.just("best") | st.permutations(range(n_workers))


def networks(n_workers: int) -> st.SearchStrategy[dict[str, Any]]:
    def of(topology: str) -> st.SearchStrategy[dict[str, Any]]:
        regime = st.fixed_dictionaries({"up_to": st.just("1 KiB"), "bandwidth": RATES, "latency": TIMES})
        change = st.fixed_dictionaries({"at": st.just("2 us"), "bandwidth": RATES})
        elsewhere = st.none() if topology == "ring" else maybe(rings(n_workers))
        keys = {
            "topology": st.just(topology),
            "bandwidth": RATES,
            "latency": TIMES,
            "sharing": st.sampled_from(["auto", "fifo", "fair"]),
            "packet": maybe(st.sampled_from(["256 B", "1 KiB"])),
            "window": maybe(st.sampled_from(["512 B", "2 KiB", {"transfers": 2}])),
            "regimes": maybe(st.lists(regime, min_size=1, max_size=1)),
            "profile": maybe(st.lists(change, min_size=1, max_size=1)),
            "order": elsewhere,
        }
        return st.builds(lambda all_of, own: all_of | own, st.fixed_dictionaries(keys), SHAPES[topology](n_workers))

    return st.sampled_from(sorted(SHAPES)).flatmap(of)


def parameters(algorithm: str) -> st.SearchStrategy[dict[str, Any]]:
    counts = {
        name: st.integers(1, 3) for name in ALGORITHMS[algorithm].parameters if name in ("n_channels", "n_slices")
    }
    return st.fixed_dictionaries({}, optional=counts).map(lambda chosen: {"name": algorithm} | chosen)


@st.composite
def scenarios(draw: Any) -> dict[str, Any]:
    """A random scenario with a small message; keys that are None are to be left out."""
    n_workers = draw(st.integers(2, 11))
    collective = draw(st.sampled_from(COLLECTIVES))
    able = [name for name, algorithm in ALGORITHMS.items() if collective in algorithm.collectives]
    n_elements = draw(st.sampled_from([0, 1, n_workers - 1, n_workers, 125, 1000]))
    return {
        "scenario_version": 1,
        "workers": n_workers,
        "message": f"{8 * n_elements} B",
        "collective": collective,
        "algorithm": draw(st.sampled_from(able).flatmap(parameters)),
        "dtype": draw(st.sampled_from(["float64", "float32", "bfloat16", "int32", "int8"])),
        "reduce": draw(st.sampled_from(["sum", "max", "prod"])) if collective in REDUCING else None,
        "network": draw(networks(n_workers)),
        "worker": draw(
            st.fixed_dictionaries(
                {"sends": st.sampled_from(["eager", "rendezvous"])},
                optional={
                    "send_overhead": TIMES,
                    "recv_overhead": TIMES,
                    "reduce_rate": RATES,
                    "start": TIMES,
                },
            )
        ),
    }


def given_keys(tree: dict[str, Any]) -> dict[str, Any]:
    return {
        key: given_keys(value) if isinstance(value, dict) else value for key, value in tree.items() if value is not None
    }


def simulated(tree: dict[str, Any], engine: str = "events") -> Ran:
    """Run a scenario; one that is refused, as a ring's link from 0 to 2 is, is no example."""
    text = yaml.safe_dump(given_keys(tree) | {"engine": engine})
    try:
        return Ran.of(ringnet.loads(text))
    except ringnet.InputError:
        assume(False)
        raise


def the_sum_is_right(ran: Ran) -> None:
    assert ran.summary["sum_ok"] is not False
    assert ran.summary["sum_ok"] or ran.summary["verified_elements"] == 0


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(scenarios())
def test_what_holds_everywhere(tree):
    ran = simulated(tree)
    the_sum_is_right(ran)
    audit(ran)


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(scenarios())
def test_both_engines_mean_the_same(tree):
    """Where the recurrence takes a scenario; what it refuses is no example, so most networks here are private."""
    private = {
        "topology": "fully-connected",
        "sharing": "fifo",
        "packet": None,
        "window": None,
        "profile": None,
    }
    tree["network"] = {key: tree["network"].get(key) for key in ("bandwidth", "latency")} | private
    fast, exact = simulated(tree, "recurrence"), simulated(tree)
    assert fast.summary["makespan_s"] == exact.summary["makespan_s"]
    assert fast.result.workers["end_s"].equals(exact.result.workers["end_s"])
    for table, names in (
        ("workers", ["sent_bytes", "reducing_s"]),
        ("links", ["bytes", "busy_s", "queued_s"]),
    ):
        for name in names:  # sums of many terms, which the engines add up in different orders
            assert getattr(fast.result, table)[name].to_numpy() == pytest.approx(
                getattr(exact.result, table)[name].to_numpy(), rel=DUST, abs=1e-18
            )
