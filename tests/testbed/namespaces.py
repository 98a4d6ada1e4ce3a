"""Hosts as network namespaces, cables as veth pairs, and a token bucket on each direction that has a rate.

Everything is named after the process that made it, so that what a killed run left behind is found and removed
by the next one. Nothing touches the network of the machine itself.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PREFIX = "ringnet-tb-"
#: Few packets, since each costs a timer and an interrupt: eight busy links must leave two cores half idle.
MTU_BYTES = 9000
#: What its kernel is told: no second slow start, room for a whole chunk, nothing remembered, no chatter.
SETTINGS = {
    "net/ipv4/tcp_slow_start_after_idle": "0",
    "net/ipv4/tcp_congestion_control": "reno",
    "net/ipv4/tcp_no_metrics_save": "1",
    "net/ipv4/tcp_rmem": "4096 4194304 16777216",
    "net/ipv4/tcp_wmem": "4096 4194304 16777216",
    "net/ipv6/conf/all/disable_ipv6": "1",
}


@dataclass(frozen=True)
class Shape:
    """A token bucket: bytes per second on the wire, headers included, and bytes that may pass at once."""

    rate_Bps: float
    burst_bytes: int

    def scaled(self, factor: float) -> Shape:
        """The same bucket for another rate: it takes as long to fill."""
        return Shape(self.rate_Bps * factor, round(self.burst_bytes * factor))


@dataclass(frozen=True)
class Cable:
    """Two hosts, and for each direction its shape and the address at its start; s0, s1, ... are switches."""

    a: str
    b: str
    there: Shape | None = None
    back: Shape | None = None
    a_address: str = ""
    b_address: str = ""

    def ends(self):
        return (self.a, self.a_address, self.there), (self.b, self.b_address, self.back)


@dataclass
class Bed:
    """Hosts and cables, there for as long as the ``with`` block lasts."""

    cables: Sequence[Cable]
    settings: Mapping[str, str] = field(default_factory=dict)
    hosts: list[str] = field(init=False)

    def __post_init__(self):
        self.hosts = sorted({host for cable in self.cables for host in (cable.a, cable.b)})

    def __enter__(self):
        remove_stale()
        atexit.register(self.close)
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def name(self, host: str) -> str:
        return f"{PREFIX}{os.getpid()}-{host}"

    def enter(self, host: str) -> tuple[str, ...]:
        """The beginning of a command that runs on a host."""
        return ("ip", "netns", "exec", self.name(host))

    def close(self):
        for host in self.hosts:
            remove(self.name(host))
        atexit.unregister(self.close)

    def _make(self):
        pairs = (
            f"link add eth{k} netns {self.name(cable.a)} mtu {MTU_BYTES} type veth "
            f"peer name eth{k} netns {self.name(cable.b)} mtu {MTU_BYTES}"
            for k, cable in enumerate(self.cables)
        )
        _batch(["ip"], [*(f"netns add {self.name(host)}" for host in self.hosts), *pairs])
        for host in self.hosts:
            self._set_up(host)

    def _set_up(self, host: str):
        ends = [
            (f"eth{k}", address, shape)
            for k, cable in enumerate(self.cables)
            for name, address, shape in cable.ends()
            if name == host
        ]
        settings = [f"echo '{value}' > /proc/sys/{key}" for key, value in {**SETTINGS, **self.settings}.items()]
        buckets = [_bucket(device, shape) for device, _, shape in ends if shape]
        _run([*self.enter(host), "sh", "-e", "-c", "\n".join(settings + buckets)])
        bridge = [f"link add bridge mtu {MTU_BYTES} type bridge"] if host.startswith("s") else []
        ports = [f"link set {device} master bridge" for device, _, _ in ends] if bridge else []
        addresses = [f"addr add {address} dev {device}" for device, address, _ in ends if address]
        devices = ["lo", *(device for device, _, _ in ends), *(["bridge"] if bridge else [])]
        ups = [f"link set {device} up" for device in devices]
        _batch(["ip", "-n", self.name(host)], bridge + ports + addresses + ups)


def _bucket(device: str, shape: Shape) -> str:
    rate = f"rate {round(shape.rate_Bps)}bps burst {shape.burst_bytes} limit 33554432"
    return f"tc qdisc add dev {device} root tbf {rate}"


def why_not() -> str | None:
    """The reason why there can be no testbed here, or None."""
    if sys.platform != "linux":
        return "network namespaces need Linux"
    if os.geteuid():
        return "network namespaces need root"
    missing = [command for command in ("ip", "tc") if not shutil.which(command)]
    if missing:
        return f"{' and '.join(missing)} missing: apt-get install iproute2"
    try:
        with Bed([Cable("w0", "w1", Shape(1e6, 20_000))]):
            return None
    except subprocess.CalledProcessError as error:
        return f"the kernel has no namespaces, veth or token bucket: {error.stderr.strip()}"


def remove_stale():
    """Remove the namespaces of processes that are no more, and end what still runs in them."""
    folder = Path("/run/netns")
    for path in folder.glob(f"{PREFIX}*") if folder.is_dir() else ():
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        if not Path("/proc", pid).exists():
            remove(path.name)


def remove(name: str):
    """Remove a namespace if it is there, and end what runs in it."""
    if not Path("/run/netns", name).exists():
        return
    inside = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
    for pid in inside.stdout.split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _batch(command: list[str], lines: list[str]):
    _run([*command, "-batch", "-"], "\n".join(lines))


def _run(command: list[str], text: str | None = None):
    subprocess.run(command, input=text, capture_output=True, text=True, check=True)
