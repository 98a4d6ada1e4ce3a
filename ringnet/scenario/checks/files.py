"""Keys that a file leaves nothing to say for, and files that do not fit the scenario."""

from __future__ import annotations

from collections.abc import Iterator

from ringnet.scenario.checks.mistake import Mistake, counted, unread
from ringnet.scenario.files.links import INSIDE, NETWORK
from ringnet.scenario.files.network_file import NETWORK_FILE, OF_CHANNELS, ORDER_FILE, reading_of
from ringnet.scenario.keys.links import BEHAVIOUR_KEYS, LinkFile
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.topology import inside_of, parameter_names


def check_network_file(keys: Keys) -> Iterator[Mistake]:
    """Find keys that a network file leaves nothing to say for."""
    if keys.network.file is None:
        return
    names = ["topology", "link", "bandwidth", "latency", *BEHAVIOUR_KEYS]
    for name in [*names, *parameter_names()]:
        yield unread(
            ("network", name), "the file says what the network is", NETWORK_FILE, right="links: exceptions"
        )
    if keys.network.routes == "ecmp":
        message = "the network of a file has its own routes"
        right = "routes listed, or left out"
        yield Mistake(("network", "routes"), message, right, causes=(NETWORK_FILE,))


def check_link_profiles(keys: Keys) -> Iterator[Mistake]:
    """Find keys that a profile leaves nothing to say for."""
    network = keys.network
    inside = inside_of(network)
    for path, link in ((NETWORK, network.link), (INSIDE, inside.link if inside else None)):
        names = ["bandwidth", "latency", *BEHAVIOUR_KEYS] if path == NETWORK else ["bandwidth", "latency"]
        for name in names if isinstance(link, LinkFile) and network.file is None else ():
            key = (*path[:-1], name)
            yield unread(key, "the profile says what the links do", path, right="links: exceptions")


def check_order_file(keys: Keys) -> Iterator[Mistake]:
    """Find a file without orders or for other workers, and what it leaves nothing to say for."""
    reading = reading_of(keys.network)
    if reading is None:
        return
    if not reading.orders:
        message = f"this is the {reading.kind}: it has links, and no order of rings"
        yield Mistake(ORDER_FILE, message, "NCCL's graph file; network: {file: ...} takes this one")
    elif reading.n_workers != keys.workers:
        has = f"the scenario has {counted(keys.workers)}"
        message = f"the file is for {counted(reading.n_workers)}, {has}"
        yield Mistake(ORDER_FILE, message, f"workers: {reading.n_workers}", causes=(("workers",),))
    if keys.algorithm_name == OF_CHANNELS:
        for name in ("strides", "node_size"):
            message = "the file says the order of each ring"
            yield unread(("algorithm", name), message, ORDER_FILE, right="order: numbered")
