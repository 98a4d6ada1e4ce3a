"""A document with all that it takes from elsewhere: machines, presets, and the files that it names."""

from __future__ import annotations

from ringnet.documents.document import Document
from ringnet.errors import Fault, InputError
from ringnet.scenario.files.data import with_facts
from ringnet.scenario.files.drawn_samples import with_samples
from ringnet.scenario.files.folder import ScenarioFolder
from ringnet.scenario.files.link_profile import with_link_profiles
from ringnet.scenario.files.machines import with_machine
from ringnet.scenario.files.network_file import with_network_file, with_order_file
from ringnet.scenario.files.presets import with_presets
from ringnet.scenario.keys.training import MODEL


def completed(document: Document, folder: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with what its presets and its files give, and what is wrong with them."""
    document, crowded = with_machine(document)
    document, unused = with_presets(document)
    document, no_profile = with_link_profiles(document, folder)
    document, unreadable = with_network_file(document, folder)
    document, disordered = with_order_file(document, folder)
    document, wrong = with_facts(document, folder)
    faults = [*crowded, *wrong, *unused, *no_profile, *unreadable, *disordered]
    if document.get(MODEL) is not None:
        from ringnet.scenario.files.trained_model import with_model  # noqa: PLC0415 -- most scenarios train nothing

        document, untrainable = with_model(document, folder)
        faults += untrainable
    if document.get(("step",)) is not None:
        from ringnet.scenario.files.step_layers import with_step  # noqa: PLC0415 -- nor are of a step

        document, untimed = with_step(document, folder)
        faults += untimed
    document, undrawn = with_samples(document, folder)
    return document, [*faults, *undrawn]


def known(document: Document, folder: ScenarioFolder) -> Document:
    """Return a document that was right with what its files give; `InputError` where they are not what they were."""
    found, faults = completed(document, folder)
    if faults:
        raise InputError(*faults)
    return found
