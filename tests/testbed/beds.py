"""The networks of the testbed, each as cables on the bed and as a network of the simulator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ringnet.collectives.rings import ring as ring_schedule
from ringnet.collectives.schedule import split_sizes
from ringnet.engines import Workers
from ringnet.engines.events import run_events
from ringnet.measure.processes import Endpoint, WorkerProcesses
from ringnet.networks import LinkChange, Network, change_links
from ringnet.networks.basic import ring as ring_network
from tests.testbed.namespaces import Bed, Cable, Shape

#: 200 Mbit/s, and a bucket of three packets: it makes good what a timer is late.
SHAPE = Shape(rate_Bps=25e6, burst_bytes=27_300)
#: Of the cable from each worker; longer than the bucket takes to fill, so that each transfer finds it full.
DELAY_NS = 2_000_000
WORKER = (sys.executable, str(Path(__file__).with_name("worker.py")), str(DELAY_NS))


@dataclass(frozen=True)
class Link:
    """What two workers showed of one link.

    Parameters
    ----------
    short_s : float
        Time of a transfer that the bucket lets pass at once.
    latency_s, bandwidth_Bps : float
        Line through the times of longer ones.
    """

    short_s: float
    latency_s: float
    bandwidth_Bps: float

    def latency_of(self, n_bytes: int) -> float:
        """The latency to give the simulator, such that no transfer is faster than a short one."""
        return max(self.latency_s, self.short_s - n_bytes / self.bandwidth_Bps)


class BedProcesses(WorkerProcesses):
    """Workers on the hosts of a bed, which may be joined anew."""

    def lose(self, probability: float, timeout_s: float) -> None:
        """Let them send datagrams of which some are lost, and sent again after a timeout."""
        self.ask("lose", probability=probability, timeout_ns=round(timeout_s * 1e9), seed=1)
        self._join()

    def survive(self, dead: int) -> None:
        """Go on without a worker that has died: the others have new numbers, and new neighbours."""
        self._members.pop(dead).wait()
        self.endpoints = [one for worker, one in enumerate(self.endpoints) if worker != dead]
        n_workers = len(self._members)
        self.ask_each({"do": "survive", "rank": rank, "n_workers": n_workers} for rank in range(n_workers))
        self._join()


@dataclass(frozen=True)
class Case:
    """A network to measure: its cables, the address of each worker, and what the simulator is told of it."""

    name: str
    n_workers: int
    cables: Sequence[Cable]
    addresses: Sequence[str]
    network: Callable[[float, float], Network]

    @contextmanager
    def workers(self, settings: Mapping[str, str] = MappingProxyType({})):
        """The workers on their hosts, whose kernels have some settings more, connected."""
        with Bed(self.cables, settings) as bed:
            endpoints = [
                Endpoint(address, prefix=bed.enter(f"w{worker}")) for worker, address in enumerate(self.addresses)
            ]
            with BedProcesses(endpoints, WORKER) as workers:
                yield workers

    def predicted_s(self, message_bytes: int, link: Link) -> float:
        """The makespan of an all-reduce of float32, from nothing but a link that two workers measured."""
        chunk_bytes = 4 * split_sizes(message_bytes // 4, self.n_workers)
        network = self.network(link.bandwidth_Bps, link.latency_of(int(chunk_bytes.max())))
        trace = run_events(ring_schedule(self.n_workers), network, Workers.alike(self.n_workers), chunk_bytes)
        return float(trace.workers["end_s"].max())


def ring_case(n_workers: int, slow: Mapping[int, float] = MappingProxyType({})) -> Case:
    """A private link from each worker to the next; ``slow`` has factors by the worker that sends."""
    cables = [
        Cable(
            f"w{worker}",
            f"w{(worker + 1) % n_workers}",
            there=SHAPE.scaled(slow.get(worker, 1.0)),
            a_address=f"10.79.{worker}.1/30",
            b_address=f"10.79.{worker}.2/30",
        )
        for worker in range(n_workers)
    ]
    addresses = [f"10.79.{(worker - 1) % n_workers}.2" for worker in range(n_workers)]
    names = [f"slow link {worker}->{(worker + 1) % n_workers}" for worker in slow]
    return Case(", ".join(names) or "ring", n_workers, cables, addresses, partial(_ring_network, n_workers, slow))


def uplink_case() -> Case:
    """Two racks of two workers, neighbours in different racks: an uplink carries two flows at once."""
    cables = [
        Cable(f"w{worker}", f"s{worker % 2}", SHAPE, SHAPE, a_address=f"10.79.100.{worker + 1}/24")
        for worker in range(4)
    ]
    uplink = Cable("s0", "s1", SHAPE, SHAPE)
    addresses = [f"10.79.100.{worker + 1}" for worker in range(4)]
    return Case("shared uplink", 4, [*cables, uplink], addresses, _racks_network)


def _ring_network(n_workers: int, slow: Mapping[int, float], bandwidth_Bps: float, latency_s: float) -> Network:
    network = ring_network(n_workers, bandwidth_Bps, latency_s)
    changes = {
        network.names[worker]: LinkChange(bandwidth_Bps=factor * bandwidth_Bps) for worker, factor in slow.items()
    }
    return change_links(network, changes)


def _racks_network(bandwidth_Bps: float, latency_s: float) -> Network:
    """Cables of one rate, fairly shared; all of the latency is in the first, where the bed has it, too."""
    up = [f"{worker}->s{worker % 2}" for worker in range(4)]
    down = [f"s{worker % 2}->{worker}" for worker in range(4)]
    return Network(
        topology="racks",
        n_workers=4,
        names=(*up, "s0->s1", "s1->s0", *down),
        bandwidth_Bps=np.full(10, bandwidth_Bps),
        latency_s=np.array([latency_s] * 4 + [0.0] * 6),
        find_route=lambda src, dst: (src, 4 + src % 2, 6 + dst),
        sharing="fair",
    )


#: What is predicted from two workers.
CASES = (*map(ring_case, (3, 4, 6, 8)), ring_case(4, {1: 0.5}), uplink_case())
