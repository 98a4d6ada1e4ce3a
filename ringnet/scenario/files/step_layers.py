"""The layers of a training step: by formula, from a table or from a user's module; what they say of a scenario."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path as FilePath

from ringnet.documents.document import Document, Path
from ringnet.errors import Fault, InputError
from ringnet.formats.layer_table import LayerTable, read_layer_table
from ringnet.formats.python_hook import called, find_function
from ringnet.payload.dtypes import ITEMSIZES
from ringnet.scenario.files.folder import ScenarioFolder, digest, with_given
from ringnet.scenario.keys.training import StepKeys
from ringnet.training.layers import (
    MODEL_PRESETS,
    TimedLayer,
    count_parameters,
    module_layers,
    preset_layers,
    timed_by_rate,
    timed_by_share,
)
from ringnet.units import quantity_text

STEP: Path = ("step",)


def layers_of(keys: StepKeys, home: ScenarioFolder) -> tuple[TimedLayer, ...]:
    """Return the layers with their times.

    Raises
    ------
    InputError
        What is wrong with the table, or the user's file; no times, or no operations that a rate could time.
    """
    table = layer_table_of(keys, home)
    if table is not None and table.has_times:
        return table.layers
    layers = _untimed(keys, home) if table is None else table.layers
    if keys.forward_s is not None and keys.backward_s is not None:
        return timed_by_share(layers, keys.forward_s, keys.backward_s)
    if keys.rate_flops is None or not any(layer.forward_flops for layer in layers):
        message = "nothing says how long the layers take"
        raise InputError(Fault(message, right="forward: 40 ms, backward: 80 ms"))
    return timed_by_rate(layers, keys.batch, keys.rate_flops)


def _untimed(keys: StepKeys, home: ScenarioFolder) -> tuple[TimedLayer, ...]:
    if keys.python is not None:
        function = find_function(keys.python, home.folder, allowed=home.allow_python, right="my.py:model")
        module = called(function, keys.python)
        if not hasattr(module, "named_parameters"):
            message = "the function returns no module: it has no named_parameters()"
            raise InputError(Fault(message, "python", value=type(module).__name__, right="torch.nn.Module"))
        return module_layers(module)
    if keys.model is None:
        raise InputError(Fault("a step needs the layers of a model", "step", right="model: gpt2-small"))
    return preset_layers(keys.model, keys.sequence)


def layer_table_of(keys: StepKeys, home: ScenarioFolder) -> LayerTable | None:
    """Return the table that a step names; None where its layers come from elsewhere."""
    if keys.layers is None:
        return None
    file = home.find(keys.layers)
    return _read(file, digest(file))


@lru_cache(maxsize=16)
def _read(file: FilePath, content: str) -> LayerTable:
    """Read a file of this content once: a run asks for its layers several times."""
    return read_layer_table(file)


def tokens_of(keys: StepKeys) -> int | None:
    """Return the tokens of an example; None where an example has none, or nobody says."""
    return keys.sequence or (MODEL_PRESETS[keys.model].sequence if keys.model else None)


def with_step(document: Document, home: ScenarioFolder) -> tuple[Document, list[Fault]]:
    """Return the document with the size of all gradients for the message, where nothing else gives it."""

    def give() -> dict[Path, str]:
        keys = StepKeys.model_validate(document.get(STEP))
        table = layer_table_of(keys, home)
        layers = _untimed(keys, home) if table is None else layers_of(keys, home)
        dtype = document.get(("dtype",)) or "float32"
        if not isinstance(dtype, str) or dtype not in ITEMSIZES:
            return {}
        return {("message",): quantity_text(count_parameters(layers) * ITEMSIZES[dtype], "bytes")}

    return with_given(document, STEP, give, partial(_told, home, document))


def _told(home: ScenarioFolder, document: Document, fault: Fault) -> Fault:
    """Tell a fault at the key that it comes from, with the file's own line."""
    table = document.get((*STEP, "layers"))
    key = next((path for name in ("layers", "python") if document.has(path := (*STEP, name))), STEP)
    name = table if table and fault.file else ""
    where = f"{name}:{fault.line}" if name and fault.line else name
    column = fault.path if table else ""
    message = ": ".join(filter(None, (where, column, fault.message)))
    message = message.replace(f"{home.folder}/", "")
    return document.fault(key, message, value=fault.value or None, right=fault.right)
