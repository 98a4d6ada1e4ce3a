"""NCCL's and RCCL's topology files: the PCIe trees of a server, its processors, GPUs, network ports, NVLink and xGMI.

A worker is a GPU. A transfer takes the NVLink or xGMI between two GPUs if there is one, else their NVSwitch, else the
PCIe tree: up to the first switch that both are below, or from processor to processor.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from ringnet.documents.text import clip
from ringnet.documents.xml_tree import XmlElement
from ringnet.errors import Fault, InputError
from ringnet.formats.networks.nccl_rates import (
    LATENCY_S,
    SWITCH,
    direct_rate,
    is_gpu,
    is_port,
    number_of,
    pcie_rate,
    port_rate,
    processor_rate,
)
from ringnet.formats.networks.reading import Reading, Wiring, told_once
from ringnet.units import counted, format_rate, format_seconds

#: The node that all NVSwitches make, and the PCI class of one.
_SWITCHED, _NVSWITCH = "nvswitch", "0x068000"


@dataclass(frozen=True)
class Gpu:
    """A GPU: its PCI device, and the element that says more of it, where there is one."""

    pci: XmlElement
    detail: XmlElement | None
    above: str

    @property
    def busid(self) -> str:
        """Its address, as NVLinks name it."""
        return self.pci.attributes.get("busid", "").lower()

    def number(self, name: str) -> int | None:
        """Return a number that the file gives it; None where it gives none."""
        text = self.detail.attributes.get(name, "") if self.detail is not None else ""
        return number_of(text)


@dataclass
class Server:
    """What is found while the file is walked through."""

    file: str
    wiring: Wiring = field(default_factory=Wiring)
    #: The node above each node of the PCIe trees; processors have none.
    above: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    gpus: list[Gpu] = field(default_factory=list)
    understood: list[str] = field(default_factory=list)
    assumed: dict[str, None] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)

    def node(self, kind: str, element: XmlElement, words: str) -> str:
        """Return the name of a new node."""
        name = f"{kind}{self.seen[kind]}"
        self.seen[kind] += 1
        self.nodes[name] = f"{words}, line {element.line}"
        return name

    def fault(self, element: XmlElement, message: str, value: str = "", right: str = "") -> None:
        """Note a mistake."""
        self.faults.append(element.fault(self.file, message, value, right))

    def stop(self) -> None:
        """Raise what was found to be wrong."""
        if self.faults:
            raise InputError(*told_once(self.faults))


def topology_of(top: XmlElement, file: str) -> Reading:
    """Return what a document says; its outermost element is ``system``.

    Returns
    -------
    Reading
        Workers are numbered by rank, else by device, else by bus address.

    Raises
    ------
    InputError
        With every mistake, its line and element.
    """
    server = Server(file)
    for child in top.children:
        if child.tag == "cpu":
            name = server.node("cpu", child, f"processor of NUMA node {clip(child.attributes.get('numaid', '?'))}")
            for inner in child.children:
                _below(inner, name, server)
        else:
            server.left_out[f"element <{child.tag}> in <system>"] += 1
    for (first, cpu), (second, _) in combinations(enumerate(top.of("cpu")), 2):
        rate = processor_rate(cpu, server.assumed)
        server.wiring.join(f"cpu{first}", f"cpu{second}", rate, LATENCY_S["processors"])
    server.stop()
    workers = _numbered(top, server)
    direct = _direct_links(workers, server)
    server.stop()
    switched = frozenset(start for start, end in server.wiring.links if end == _SWITCHED)
    routes = ServerRoutes(server.above, frozenset(direct), switched)
    network = server.wiring.network("nccl-topology", len(workers), routes)
    _note_latencies(server)
    return Reading(
        kind="NCCL topology",
        network=network,
        understood=(*_understood(server, workers), *server.understood, *_pairs_in_words(server, routes)),
        assumed=tuple(server.assumed),
        left_out=tuple(_left_out(server)),
        nodes=server.nodes,
    )


# ------------------------------------------------------------------------------------------- the PCIe trees


def _below(element: XmlElement, above: str, server: Server) -> None:
    if element.tag == "pci":
        _device(element, above, server)
    elif element.tag == "nic":
        _ports(element, above, server)
    else:
        server.left_out[f"element <{element.tag}> in <{element.around[-1]}>"] += 1


def _device(pci: XmlElement, above: str, server: Server) -> None:
    gpus = [*pci.of("gpu")]
    kind = pci.attributes.get("class", "").lower()
    if len(gpus) > 1:
        server.fault(gpus[1], "a PCI device is one GPU", right="one <gpu> in each <pci>")
    elif gpus or is_gpu(kind):
        server.gpus.append(Gpu(pci, gpus[0] if gpus else None, above))
    elif not pci.children and kind != SWITCH and not is_port(kind):
        server.left_out[f"PCI device of class {clip(kind) or 'unknown'}"] += 1
    else:
        node, words = ("nic", "network card") if is_port(kind) else ("pci", "PCIe switch")
        name = server.node(node, pci, f"{words} {clip(pci.attributes.get('busid', ''))}")
        _join_above(name, pci, above, server)
        for child in pci.children:
            _below(child, name, server)


def _join_above(name: str, pci: XmlElement, above: str, server: Server) -> None:
    server.above[name] = above
    rate = pcie_rate(pci, server.fault, server.assumed)
    server.wiring.join(name, above, rate, LATENCY_S["pcie"])


def _ports(nic: XmlElement, above: str, server: Server) -> None:
    for child in nic.children:
        if child.tag != "net":
            server.left_out[f"element <{child.tag}> in <nic>"] += 1
            continue
        words = f"network port {clip(child.attributes.get('name', ''))}"
        name = server.node("net", child, words)
        server.above[name] = above
        server.wiring.join(name, above, port_rate(child, server.fault, server.assumed), LATENCY_S["port"])


# ----------------------------------------------------------------------------------------------- the workers


def _numbered(top: XmlElement, server: Server) -> list[Gpu]:
    """Return the GPUs in the order of the workers, each joined to its tree."""
    gpus, names = server.gpus, Counter(gpu.busid for gpu in server.gpus)
    if not gpus:
        server.fault(top, "there is no GPU in the file", right="<gpu>, or a <pci> of class 0x0302 or 0x1200")
    for gpu in gpus:
        if names[gpu.busid] > 1 or not gpu.busid:
            server.fault(gpu.pci, "a GPU needs a bus address of its own", gpu.busid, 'busid="0000:10:1c.0"')
    server.stop()
    workers = _in_order(gpus, server)
    for worker, gpu in enumerate(workers):
        server.nodes[str(worker)] = f"GPU {clip(gpu.busid)}, line {gpu.pci.line}"
        _join_above(str(worker), gpu.pci, gpu.above, server)
    return workers


def _in_order(gpus: list[Gpu], server: Server) -> list[Gpu]:
    for name in ("rank", "dev"):
        numbers = {number: gpu for gpu in gpus if (number := gpu.number(name)) is not None}
        if len(numbers) == len(gpus):
            gaps = "" if {*numbers} == {*range(len(gpus))} else ", which has gaps"
            server.understood.append(f"workers are the GPUs in the order of their {name}{gaps}")
            return [numbers[number] for number in sorted(numbers)]
    server.assumed["workers are the GPUs in the order of their bus addresses: the file does not number them"] = None
    return sorted(gpus, key=lambda gpu: gpu.busid)


# ------------------------------------------------------------------------------------------ NVLink and xGMI


def _direct_links(workers: list[Gpu], server: Server) -> Mapping[tuple[int, int], float]:
    """Add the links between GPUs, and to the NVSwitch; return those between GPUs, by workers."""
    numbers = {gpu.busid: worker for worker, gpu in enumerate(workers)}
    direct: defaultdict[tuple[int, int], float] = defaultdict(float)
    switched: defaultdict[int, float] = defaultdict(float)
    for worker, link, n_links in _listed(workers, server):
        target, kind = link.attributes.get("target", "").lower(), link.attributes.get("tclass", "").lower()
        if kind != _NVSWITCH and numbers.get(target, worker) == worker:
            what = "that leads back to its own GPU" if target in numbers else "whose other end is no GPU of the file"
            server.left_out[f"<{link.tag}> {what}"] += 1
            continue
        rate = n_links * direct_rate(link, workers[worker].detail, server.fault, server.assumed)
        if kind == _NVSWITCH:
            switched[worker] += rate
        else:
            direct[worker, numbers[target]] += rate
    _add_direct(direct, server)
    for worker, rate in switched.items():
        server.wiring.join(str(worker), _SWITCHED, rate, LATENCY_S["nvlink"] / 2)
    if switched:
        server.nodes[_SWITCHED] = "all NVSwitches together"
        server.assumed["all NVSwitches count as one, which never is the bottleneck"] = None
    return direct


def _listed(workers: list[Gpu], server: Server) -> Iterator[tuple[int, XmlElement, int]]:
    for worker, gpu in enumerate(workers):
        for link in gpu.detail.children if gpu.detail is not None else ():
            text = link.attributes.get("count", "")
            if link.tag not in {"nvlink", "xgmi"}:
                server.left_out[f"element <{link.tag}> in <gpu>"] += 1
            elif not text.isdecimal() or not 0 < int(text[:4]) < 1000:  # noqa: PLR2004 -- no GPU has as many
                server.fault(link, f"the count of an {link.tag} is a whole number from 1 up", text, 'count="2"')
            else:
                yield worker, link, int(text)


def _add_direct(direct: dict[tuple[int, int], float], server: Server) -> None:
    for (src, dst), rate in [*direct.items()]:
        server.wiring.add(str(src), str(dst), rate, LATENCY_S["nvlink"])
        if (dst, src) not in direct:
            direct[dst, src] = rate
            server.wiring.add(str(dst), str(src), rate, LATENCY_S["nvlink"])
            server.assumed["a link between two GPUs that only one of them lists goes both ways"] = None


# ------------------------------------------------------------------------------------------------ the routes


@dataclass(frozen=True)
class ServerRoutes:
    """The nodes on the way from worker to worker."""

    above: Mapping[str, str]
    direct: frozenset[tuple[int, int]]
    switched: frozenset[str]

    def __call__(self, src: int, dst: int) -> list[str]:
        """Return the nodes from ``src`` to ``dst``, both among them."""
        start, end = str(src), str(dst)
        if src == dst:
            return [start]
        if (src, dst) in self.direct:
            return [start, end]
        if start in self.switched and end in self.switched:
            return [start, _SWITCHED, end]
        up, down = [*self._upwards(start)], [*self._upwards(end)]
        meet = next((node for node in up if node in down), None)
        if meet is None:
            return [*up, *reversed(down)]
        return [*up[: up.index(meet) + 1], *reversed(down[: down.index(meet)])]

    def _upwards(self, node: str) -> Iterator[str]:
        yield node
        while node in self.above:
            node = self.above[node]
            yield node


# ------------------------------------------------------------------------------------------------- in words


def _understood(server: Server, workers: list[Gpu]) -> Iterator[str]:
    seen, links = server.seen, server.wiring.links
    kinds = {"cpu": ("processor", ""), "pci": ("PCIe switch", "PCIe switches"), "nic": ("network card", "")}
    kinds["net"] = ("network port", "")
    nodes = [counted(seen[kind], *words) for kind, words in kinds.items() if seen[kind]]
    yield f"{', '.join([counted(len(workers), 'GPU'), *nodes])}: {counted(len(links), 'link')}"
    pcie = {links[str(worker), gpu.above][0] for worker, gpu in enumerate(workers)}
    yield f"the PCIe link of a GPU: {_rates(pcie)} each way"


def _pairs_in_words(server: Server, routes: ServerRoutes) -> Iterator[str]:
    """Say over what the pairs of GPUs reach each other."""
    links = server.wiring.links
    n_gpus = len(server.gpus)
    n_pairs, n_switched = n_gpus * (n_gpus - 1) // 2, len(routes.switched) * (len(routes.switched) - 1) // 2
    linked = {pair for pair in routes.direct if pair[0] < pair[1]}
    n_switched -= sum(str(one) in routes.switched and str(other) in routes.switched for one, other in linked)
    if linked:
        rates = _rates({links[str(src), str(dst)][0] for src, dst in routes.direct})
        yield f"{len(linked)} of {counted(n_pairs, 'pair')} of GPUs are linked directly: {rates} each way"
    if n_switched:
        rates = _rates({rate for (_, end), (rate, _) in links.items() if end == _SWITCHED})
        yield f"{n_switched} of {counted(n_pairs, 'pair')} of GPUs go over the NVSwitch: {rates} each way for a GPU"
    if n_pairs > len(linked) + n_switched:
        yield f"{n_pairs - len(linked) - n_switched} of {counted(n_pairs, 'pair')} of GPUs go over PCIe"


def _rates(rates: set[float]) -> str:
    return " or ".join(map(format_rate, sorted(rates)))


def _note_latencies(server: Server) -> None:
    said = {"a PCIe link": "pcie", "a link between GPUs": "nvlink", "between processors": "processors"}
    waits = ", ".join(f"{name} {format_seconds(LATENCY_S[kind])}" for name, kind in said.items())
    server.assumed[f"the file has no latencies: {waits}"] = None


def _left_out(server: Server) -> Iterator[str]:
    yield from (f"{number} x {what}" for what, number in server.left_out.items())
    if not any(gpu.detail for gpu in server.gpus):
        yield "NVLink, if the GPUs have it: NCCL asks the driver, and NCCL_TOPO_DUMP_FILE writes a file with it"
    if server.seen["net"] + server.seen["nic"]:
        kinds = {"network card": server.seen["nic"], "network port": server.seen["net"]}
        unused = " and ".join(counted(number, kind) for kind, number in kinds.items() if number)
        yield f"{unused}: the file is of one server, and no route between its GPUs leads over them"
