"""Random scenarios in which something goes wrong: each ends as its policy says, its sums are right, its tables agree.

``python -m tests.trouble --scenarios 2000`` runs as many; some are part of every run of the tests.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from functools import cached_property
from random import Random

import yaml

from ringnet.analysis.result import RunResult
from ringnet.collectives import ALGORITHMS
from ringnet.errors import AbortedError, DeadlockError, InputError
from ringnet.runs.parts import RunParts, build
from ringnet.runs.simulate import simulate
from ringnet.scenario import Scenario, loads
from tests.audit import Ran, audit

#: Without trouble all of these take some hundred microseconds.
SPAN_US = 400
#: How often times are drawn.
BY_CHANCE = 0.3
PLAIN = [name for name, one in ALGORITHMS.items() if not one.in_switches and "all-reduce" in one.collectives]
NETWORKS = [
    {"topology": "switch"},
    {"topology": "fully-connected"},
    {"topology": "leaf-spine", "leaves": 2, "spines": 2},
]
#: Links beside which there is another way.
OTHER_WAYS = {"fully-connected": "0->1", "leaf-spine": "leaf0->spine0"}


class Troubled(Ran):
    """A scenario in trouble, audited as the attempt that came through has it."""

    @cached_property
    def parts(self) -> RunParts:
        built, run = build(self.scenario), self.result.made_from[0]
        site = replace(built.make_site(), networks=(run.offered, *built.make_site().networks[1:]))
        changes = {"schedule": run.schedule, "workers": run.workers, "chunk_bytes": run.chunk_bytes}
        return replace(built, make_site=lambda: site, **changes)


def scenario(random: Random) -> Scenario | None:
    """Return a scenario with trouble; None where its algorithm is none for so many workers."""
    n, spares = random.choice([3, 3, 4, 4, 5, 6, 8]), random.choice([0, 0, 1, 2])
    sharing = random.choice(["fifo", "fair", "auto"])
    network = random.choice(NETWORKS) | {"bandwidth": "1 GB/s", "latency": "1 us", "sharing": sharing}
    network["places"] = n + spares + (n + spares) % 2
    if sharing == "fifo":
        network |= random.choice([{}, {"packet": "1 KiB", "header": "16 B"}])
    network |= random.choice([{}, {}, {"window": "8 KiB"}, {"window": {"transfers": 1}}])
    worker = {"sends": random.choice(["eager", "rendezvous"])}
    worker |= random.choice([{}, {"send_overhead": "2 us", "recv_overhead": "1 us", "reduce_rate": "2 GB/s"}])
    keys = {
        "scenario_version": 1,
        "name": "in trouble",
        "workers": n,
        "message": random.choice(["4004 B", "64 KiB", "100 KiB"]),
        "dtype": random.choice(["float32", "int32"]),
        "algorithm": random.choice(PLAIN),
        "network": network,
        "worker": worker,
    }
    names = _link_names(n)
    if network["topology"] != "switch":
        names = ["0->*", "*->1", OTHER_WAYS[network["topology"]]]
    packet = {} if "packet" in network else {"packet": "700 B"}
    if random.random() < BY_CHANCE:
        per = "transfer" if sharing == "fifo" and not {"packet", "window"} & network.keys() else "link"
        network["latency"] = {"mean": "1 us", "distribution": "exponential", "per": per}
    keys["trouble"] = [_trouble(random, n, names, packet) for _ in range(random.choice([1, 1, 2, 3]))]
    keys |= _policy(random, n, spares, keys["trouble"])
    try:
        return loads(yaml.safe_dump(keys))
    except InputError as error:
        wrong = error
    told = {fault.path.partition(".")[0] for fault in wrong.faults if not fault.path.endswith("].loss")}
    assert told <= {"algorithm", "on_failure", "workers", "collective"}, f"{wrong}\n{yaml.safe_dump(keys)}"
    return None


def _link_names(n: int) -> list[str]:
    return [name for worker in range(n) for name in (f"{worker}->switch", f"switch->{worker}", f"{worker}->*")]


def _trouble(random: Random, n: int, links: list[str], packet: dict) -> dict:
    at, lasts = (f"{random.uniform(least, SPAN_US):.3f} us" for least in (0, 1))
    if random.random() < BY_CHANCE:
        at, lasts = ({"mean": mean, "distribution": "exponential", "least": "1 ns"} for mean in (at, lasts))
    link, worker = {"link": random.choice(links)}, {"worker": random.randrange(n)}
    return random.choice(
        [
            link | {"down": {"at": at, "for": lasts}},
            link | {"down": {"at": at, "for": lasts, "retry": "7 us"}},
            link | {"flap": {"at": at, "down": "5 us", "period": "12.5 us", "times": 20}},
            link | {"probability": 0.7, "flap": {"at": at, "down": lasts, "up": lasts, "times": 5}},
            link | {"slow": {"at": at, "for": lasts, "factor": 3}},
            link | {"dies": at},
            link
            | {
                "loss": {
                    "probability": "20 %",
                    **packet,
                    **random.choice([{"timeout": "9 us"}, {"go_back": 3}]),
                }
            },
            worker | {"pause": {"at": at, "for": lasts}},
            worker | {"slow": {"at": at, "factor": 2.5}},
            worker | {"dies": at},
            worker | {"dies": at, "probability": 0.8},
        ]
    )


def _policy(random: Random, n: int, spares: int, trouble: list[dict]) -> dict:
    mortal = any("worker" in one and "dies" in one for one in trouble)
    times = {"detect": "50 us", "agree": "10 us", "rebuild": "5 us"}
    known = [None, {"policy": "wait"}, {"policy": "abort", "timeout": "90 us"}]
    if mortal:
        known += [{"policy": "shrink"} | times] * 3
    if mortal and spares:
        places = [*range(n, n + spares)]
        known += [{"policy": "spare", "load": "20 us", "spares": places} | times] * 3
    chosen = random.choice(known)
    return {} if chosen is None else {"on_failure": chosen}


def ends(one: Scenario) -> str:
    """Run a scenario, check whatever it comes to, and say how it ended."""
    policy, found = one.on_failure.policy if one.on_failure else "wait", _come_to(one)
    if isinstance(found, AbortedError):
        assert policy == "abort"
        assert found.aborted_s - found.waits[0].since_s >= one.on_failure.timeout_s * (1 - 1e-9)
        return "aborted"
    if isinstance(found, DeadlockError):
        mortal = {trouble.worker for trouble in one.trouble if trouble.dies_s is not None}
        died = {wait.worker for wait in found.waits if wait.died}
        assert died <= mortal
        assert died or any(wait.cause for wait in found.waits), str(found)
        return "waits for ever"
    ran = Troubled(one, found)
    audit(ran)
    assert ran.summary["sum_ok"]
    assert "on_failure" not in ran.summary or policy in ("shrink", "spare")
    return policy if "on_failure" in ran.summary else "done"


def _come_to(one: Scenario) -> RunResult | DeadlockError:
    try:
        return simulate(one)
    except DeadlockError as error:
        return error


def main() -> int:
    """Run as many as are asked for; tell the seed of each that is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.trouble", description=__doc__)
    parser.add_argument("--scenarios", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    found: Counter[str] = Counter()
    seed = asked.first
    while found.total() < asked.scenarios:
        one = scenario(Random(seed))
        if one is not None:
            try:
                found[ends(one)] += 1
            except Exception as error:
                found["WRONG"] += 1
                sys.stdout.write(f"seed {seed}: {type(error).__name__}: {str(error).splitlines()[:3]}\n")
        seed += 1
    sys.stdout.write(", ".join(f"{count} {name}" for name, count in found.most_common()) + "\n")
    return 1 if found["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
