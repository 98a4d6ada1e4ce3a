"""Other tools' files that say what a network is, or the order of rings in it; told apart by what is in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ringnet.documents.text import read_bounded
from ringnet.documents.xml_tree import XmlElement, parse_xml
from ringnet.errors import Fault, InputError, NetworkError
from ringnet.formats.networks.astra import read_astra
from ringnet.formats.networks.nccl_graph import graph_of
from ringnet.formats.networks.nccl_topology import topology_of
from ringnet.formats.networks.reading import NETWORK_XML, Reading
from ringnet.formats.others import refuse_other
from ringnet.units import counted

#: What reads a document, by its outermost element. A new kind of XML is one file, and one line here.
XML: dict[str, Callable[[XmlElement, str], Reading]] = {"system": topology_of, "graphs": graph_of}
#: What other documents are, for those who mix them up.
_OTHERS = {"algo": "an MSCCL schedule", "platform": "a SimGrid platform"}
#: Every scenario has this key, and no network file has.
_SCENARIO = re.compile(rb"^\W*scenario_version[\"']?\s*:", re.MULTILINE)
_RIGHT = "NCCL's <system> or <graphs>, or ASTRA-sim's YAML"


def read_network_file(path: str | Path) -> Reading:
    """Read a network file: ASTRA-sim's analytical YAML, NCCL's topology XML or graph XML.

    Raises
    ------
    InputError
        It cannot be read or is none of these; with every mistake, its line and element.
    """
    content, file = read_bounded(path, NETWORK_XML.n_bytes, "a network"), str(path)
    if not re.match(rb"(\xef\xbb\xbf)?\s*<", content):
        # What else it lacks of a network would only mislead.
        if _SCENARIO.search(content):
            message = "this is a scenario of ringnet, not a network file: `ringnet draw` shows its network"
            raise InputError(Fault(message, file=file, right=_RIGHT))
        refuse_other(content, file)
        return read_astra(content, file)
    top = parse_xml(content, file, NETWORK_XML)
    if top.tag not in XML:
        message = f"this is {_OTHERS[top.tag]}, not a network" if top.tag in _OTHERS else "this is no network"
        raise InputError(top.fault(file, message, f"<{top.tag}>", _RIGHT))
    return XML[top.tag](top, file)


def is_scenario(path: str | Path) -> bool:
    """Whether a file is a scenario of ringnet, and no network file; `InputError` where it cannot be read."""
    return bool(_SCENARIO.search(read_bounded(path, NETWORK_XML.n_bytes, "a network")))


def network_from_file(path: str | Path, n_workers: int) -> Reading:
    """Read the network of a scenario.

    Returns
    -------
    Reading
        Its ``network`` has ``n_workers`` workers.

    Raises
    ------
    InputError
        As `read_network_file`; and `NetworkError` for a file without links, or one for another number of workers.
    """
    reading = read_network_file(path)
    if reading.network is None:
        message = f"this is the {reading.kind}: it has the order of rings, and no links"
        right = f"a topology file; of this one, order: {{file: {Path(path).name}}}"
        raise NetworkError(Fault(message, file=str(path), right=right))
    if reading.n_workers != n_workers:
        in_file, in_scenario = (counted(number, "worker") for number in (reading.n_workers, n_workers))
        message = f"the file is for {in_file}, the scenario has {in_scenario}"
        raise NetworkError(Fault(message, file=str(path), right=f"workers: {reading.n_workers}"))
    return reading
