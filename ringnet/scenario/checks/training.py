"""Keys of a training that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Iterator

from ringnet.payload.dtypes import DTYPES, is_float
from ringnet.scenario.checks.mistake import Mistake, counted, unread
from ringnet.scenario.files.trained_model import EXAMPLES
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.training import ModelKeys, TrainingKeys
from ringnet.training.optimizers import OPTIMIZERS

#: What the all-reduce of a training may return.
REDUCES = ("sum", "mean", "weighted-mean")
_MODEL = ("training", "model")
#: Keys of a model, and which kinds read them.
_READ_BY = {
    "gradients": ("given",),
    "parameters": ("given",),
    "hidden": ("digits",),
    "examples": ("digits", "python"),
}


def check_training(keys: Keys, training: TrainingKeys) -> Iterator[Mistake]:
    """Return what is wrong with a training, and with the collective that it uses."""
    yield from _collective(keys)
    yield from _optimizer(training)
    if training.model is None:
        yield Mistake(("training",), "a training needs a model", "model: {name: digits}")
    else:
        yield from _model(keys, training.model)
        yield from _counts(keys, training, training.model)


def _collective(keys: Keys) -> Iterator[Mistake]:
    """Find what gradients cannot go through, and what is not read where they are the data."""
    cause = _MODEL
    if keys.collective != "all-reduce":
        yield Mistake(
            ("collective",), "gradients are combined by an all-reduce", "all-reduce", causes=(cause,)
        )
    if keys.reduce not in REDUCES:
        message = "gradients are combined into a mean, from their sum or as the network averages them"
        yield Mistake(("reduce",), message, ", ".join(REDUCES), causes=(cause,))
    if not is_float(DTYPES[keys.dtype]):
        yield Mistake(("dtype",), "gradients are no whole numbers", "float32", causes=(cause,))
    if keys.payload != "full":
        yield Mistake(("payload",), "a training needs every element", "full", causes=(cause,))
    yield unread(("weights",), "a training weights by numbers of examples", cause, right="training.batch")
    yield unread(("message",), "the model says how large it is", _MODEL)
    yield unread(("data",), "the gradients are the data", cause)
    if keys.training and keys.training.model and keys.training.model.name != "digits":
        yield unread(("seed",), "nothing in this training is drawn", _MODEL)


def _optimizer(training: TrainingKeys) -> Iterator[Mistake]:
    """Tell settings that the optimizer does not have."""
    own = training.optimizer
    for key in type(own).model_fields:
        if key not in {"name", "learning_rate", *OPTIMIZERS[own.name].settings}:
            reason, cause = f"{own.name} has no {key}", ("training", "optimizer", "name")
            yield unread(("training", "optimizer", key), reason, cause)


def _model(keys: Keys, model: ModelKeys) -> Iterator[Mistake]:
    if (model.name is None) == (model.python is None):
        yield Mistake(_MODEL, "a model has a name or a function, one of both", "{name: digits}")
        return
    kind = model.name or "python"
    for key, kinds in _READ_BY.items():
        if kind not in kinds:
            yield unread((*_MODEL, key), f"it is for {' and '.join(kinds)}", (*_MODEL, "name"))
    if kind == "python" and model.examples is None:
        message = "nothing says how many examples there are"
        yield Mistake(_MODEL, message, "examples: 1000")
    if kind == "given":
        yield from _given(keys, model)


def _given(keys: Keys, model: ModelKeys) -> Iterator[Mistake]:
    if model.gradients is None:
        yield Mistake(_MODEL, "no gradients are given", "gradients: [[2], [6]]")
        return
    path, widths = (*_MODEL, "gradients"), {len(row) for row in model.gradients}
    if len(model.gradients) != keys.workers:
        message = f"{len(model.gradients)} gradients for {counted(keys.workers)}"
        yield Mistake(path, message, "a row for each worker", causes=(("workers",),))
    if len(widths) > 1:
        lengths = ", ".join(str(len(row)) for row in model.gradients)
        yield Mistake(path, f"the gradients have {lengths} elements", "rows of one length")
    if model.parameters is not None and {len(model.parameters)} != widths:
        message = f"{len(model.parameters)} parameters for gradients of {min(widths)}"
        yield Mistake((*_MODEL, "parameters"), message, "as many as a gradient has elements", causes=(path,))


def _counts(keys: Keys, training: TrainingKeys, model: ModelKeys) -> Iterator[Mistake]:
    """Find batches and parts of the examples that do not fit, or in which nobody has anything."""
    for key in ("split", "batch"):
        counts = getattr(training, key)
        if isinstance(counts, tuple) and len(counts) != keys.workers:
            message = f"{len(counts)} numbers for {counted(keys.workers)}"
            yield Mistake(("training", key), message, "one for each worker", causes=(("workers",),))
        if isinstance(counts, tuple) and not any(counts):
            message = "no worker has an example: there is no mean over none"
            yield Mistake(("training", key), message, "at least one above 0")
    if model.name == "given":
        yield unread(
            ("training", "split"), "given gradients have no examples of their own", (*_MODEL, "name")
        )
        return
    n_examples = model.examples or EXAMPLES
    if training.split is None or len(training.split) != keys.workers:
        return
    if sum(training.split) > n_examples:
        message = f"the parts add up to {sum(training.split):,}, and there are {n_examples:,} examples"
        yield Mistake(("training", "split"), message, f"at most {n_examples:,}", causes=(_MODEL,))
    batch = training.batch
    if isinstance(batch, tuple) and any(batch) and any(training.split):
        pairs = zip(training.split, batch, strict=False)
        if not any(has and takes for has, takes in pairs):
            message = "those who have examples take none"
            yield Mistake(("training", "batch"), message, causes=(("training", "split"),))
