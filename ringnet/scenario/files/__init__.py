"""What a scenario takes from elsewhere: presets, and the files that it names."""

from __future__ import annotations

from ringnet.documents.document import Document
from ringnet.errors import Fault, InputError
from ringnet.scenario.files.data import with_facts
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.files.link_profile import with_link_profiles
from ringnet.scenario.files.machines import with_machine
from ringnet.scenario.files.network_file import with_network_file, with_order_file
from ringnet.scenario.files.presets import with_presets
from ringnet.scenario.files.step_layers import with_step
from ringnet.scenario.files.trained_model import with_model


def completed(document: Document, folder: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with what its presets and its files give, and what is wrong with them."""
    document, crowded = with_machine(document)
    document, unused = with_presets(document)
    document, no_profile = with_link_profiles(document, folder)
    document, unreadable = with_network_file(document, folder)
    document, disordered = with_order_file(document, folder)
    document, wrong = with_facts(document, folder)
    document, untrainable = with_model(document, folder)
    document, untimed = with_step(document, folder)
    return document, [
        *crowded,
        *wrong,
        *unused,
        *no_profile,
        *unreadable,
        *disordered,
        *untrainable,
        *untimed,
    ]


def known(document: Document, folder: ScenarioFolder) -> Document:
    """Return a document that was right with what its files give; `InputError` where they are not what they were."""
    found, faults = completed(document, folder)
    if faults:
        raise InputError(*faults)
    return found
