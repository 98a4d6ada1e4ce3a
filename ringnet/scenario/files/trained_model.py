"""The model that a scenario trains: made by ringnet, or the user's own; and what it says of the scenario."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from ringnet.documents.document import Document, Path
from ringnet.errors import Fault, InputError
from ringnet.formats.python_hook import called, find_function
from ringnet.payload.dtypes import ITEMSIZES
from ringnet.scenario.files.folder import ScenarioFolder, digest, with_given
from ringnet.scenario.keys.training import MODEL, ModelKeys
from ringnet.training.models import (
    DigitsNetwork,
    GivenGradients,
    TrainableModel,
    digits_shapes,
    n_parameters,
)
from ringnet.training.own_models import OwnModel
from ringnet.units import quantity_text

#: Of digits, where the scenario does not say it.
HIDDEN, EXAMPLES = (32,), 1000
#: The function of a user's file that returns the parameters before the first step.
START = "parameters"


def model_of(keys: ModelKeys, home: ScenarioFolder, seed: int) -> TrainableModel:
    """Return the model.

    Raises
    ------
    InputError
        What is wrong with the user's file or its functions.
    """
    if keys.python is not None:
        return _own(keys.python, keys.examples or 1, home)
    if keys.name == "given":
        rows = np.array(keys.gradients, dtype=np.float64)
        start = np.zeros(rows.shape[1]) if keys.parameters is None else np.array(keys.parameters, dtype=np.float64)
        return GivenGradients(rows, start)
    return DigitsNetwork(keys.hidden or HIDDEN, keys.examples or EXAMPLES, seed)


def _own(name: str, n_examples: int, home: ScenarioFolder) -> OwnModel:
    """Run the user's file, and ask it for the parameters at the start; a run asks anew, for they may have changed."""
    file = name.rpartition(":")[0]
    right = "my.py:gradients"
    function = find_function(name, home.folder, allowed=home.allow_python, right=right)
    start_name = f"{file}:{START}"
    try:
        start = find_function(start_name, home.folder, allowed=True, right=right)
    except InputError as error:
        message = f"the file needs a function {START}(), which returns the arrays before the first step, by name"
        raise InputError(Fault(message, value=file, right="{name: array}")) from error
    return OwnModel(partial(called, function, name), called(start, start_name), n_examples, name)


def with_model(document: Document, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with what its model says: the size of the message, and how many workers have gradients."""

    def give() -> dict[Path, str | int]:
        keys = ModelKeys.model_validate(document.get(MODEL))
        n, dtype = _size(keys, home), str(document.get(("dtype",)) or "float32")
        given: dict[Path, str | int] = {}
        if n and dtype in ITEMSIZES:
            given["message",] = quantity_text(n * ITEMSIZES[dtype], "bytes")
        if keys.gradients is not None:
            given["workers",] = len(keys.gradients)
        return given

    return with_given(document, MODEL, give, partial(_told, document))


def _size(keys: ModelKeys, home: ScenarioFolder) -> int:
    """Return how many parameters there are; 0 where the keys do not say it."""
    if keys.python is not None:
        file = home.find(keys.python.rpartition(":")[0])
        content = digest(file) if file.is_file() and home.allow_python else ""
        return _size_of_own(keys.python, home, content)
    if keys.name == "digits":
        return n_parameters(digits_shapes(keys.hidden or HIDDEN))
    return len(keys.gradients[0]) if keys.gradients else 0


@lru_cache(maxsize=16)
def _size_of_own(name: str, home: ScenarioFolder, content: str) -> int:
    """Run a file of this content once to learn its size: a scenario is looked at several times."""
    return n_parameters(_own(name, 1, home).shapes)


def _told(document: Document, fault: Fault) -> Fault:
    where = f"{fault.file}:{fault.line}" if fault.line else ""
    message = ": ".join(filter(None, (where, fault.message)))
    return document.fault((*MODEL, "python"), message, value=fault.value or None, right=fault.right)
