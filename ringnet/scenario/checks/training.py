"""Keys of a training and of a training step that are right one by one and wrong together."""

from __future__ import annotations

from collections.abc import Iterator

from ringnet.collectives import ALGORITHMS
from ringnet.documents.document import Path
from ringnet.payload.dtypes import DTYPES, is_float
from ringnet.scenario.checks.mistake import Mistake, no_such_worker, unread
from ringnet.scenario.files.trained_model import EXAMPLES
from ringnet.scenario.keys.model import Keys
from ringnet.scenario.keys.training import MODEL, ModelKeys, StepKeys, TrainingKeys
from ringnet.training.layers import MODEL_PRESETS
from ringnet.training.optimizers import OPTIMIZERS
from ringnet.training.steps import STRATEGIES
from ringnet.units import counted

#: What the all-reduce of a training may return.
REDUCES = ("sum", "mean", "weighted-mean")
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
    cause = MODEL
    if keys.collective != "all-reduce":
        yield Mistake(("collective",), "gradients are combined by an all-reduce", "all-reduce", causes=(cause,))
    if keys.reduce not in REDUCES:
        message = "gradients are combined into a mean, from their sum or as the network averages them"
        yield Mistake(("reduce",), message, ", ".join(REDUCES), causes=(cause,))
    if not is_float(DTYPES[keys.dtype]):
        yield Mistake(("dtype",), "gradients are no whole numbers", "float32", causes=(cause,))
    if keys.payload != "full":
        yield Mistake(("payload",), "a training needs every element", "full", causes=(cause,))
    yield unread(("weights",), "a training weights by numbers of examples", cause, right="training.batch")
    yield unread(("message",), "the model says how large it is", MODEL)
    yield unread(("data",), "the gradients are the data", cause)
    if keys.training and keys.training.model and keys.training.model.name != "digits":
        yield unread(("seed",), "nothing in this training is drawn", MODEL)


def _optimizer(training: TrainingKeys) -> Iterator[Mistake]:
    """Tell settings that the optimizer does not have."""
    own = training.optimizer
    for key in type(own).model_fields:
        if key not in {"name", "learning_rate", *OPTIMIZERS[own.name].settings}:
            reason, cause = f"{own.name} has no {key}", ("training", "optimizer", "name")
            yield unread(("training", "optimizer", key), reason, cause)


def _model(keys: Keys, model: ModelKeys) -> Iterator[Mistake]:
    if (model.name is None) == (model.python is None):
        yield Mistake(MODEL, "a model has a name or a function, one of both", "{name: digits}")
        return
    kind = model.name or "python"
    for key, kinds in _READ_BY.items():
        if kind not in kinds:
            yield unread((*MODEL, key), f"it is for {' and '.join(kinds)}", (*MODEL, "name"))
    if kind == "python" and model.examples is None:
        message = "nothing says how many examples there are"
        yield Mistake(MODEL, message, "examples: 1000")
    if kind == "given":
        yield from _given(keys, model)


def _given(keys: Keys, model: ModelKeys) -> Iterator[Mistake]:
    if model.gradients is None:
        yield Mistake(MODEL, "no gradients are given", "gradients: [[2], [6]]")
        return
    path, widths = (*MODEL, "gradients"), {len(row) for row in model.gradients}
    if len(model.gradients) != keys.workers:
        message = f"{len(model.gradients)} gradients for {counted(keys.workers, 'worker')}"
        yield Mistake(path, message, "a row for each worker", causes=(("workers",),))
    if len(widths) > 1:
        lengths = ", ".join(str(len(row)) for row in model.gradients)
        yield Mistake(path, f"the gradients have {lengths} elements", "rows of one length")
    if model.parameters is not None and {len(model.parameters)} != widths:
        message = f"{len(model.parameters)} parameters for gradients of {min(widths)}"
        yield Mistake((*MODEL, "parameters"), message, "as many as a gradient has elements", causes=(path,))


def _counts(keys: Keys, training: TrainingKeys, model: ModelKeys) -> Iterator[Mistake]:
    """Find batches and parts of the examples that do not fit, or in which nobody has anything."""
    for key in ("split", "batch"):
        counts = getattr(training, key)
        if isinstance(counts, tuple) and len(counts) != keys.workers:
            message = f"{len(counts)} numbers for {counted(keys.workers, 'worker')}"
            yield Mistake(("training", key), message, "one for each worker", causes=(("workers",),))
        if isinstance(counts, tuple) and not any(counts):
            message = "no worker has an example: there is no mean over none"
            yield Mistake(("training", key), message, "at least one above 0")
    if model.name == "given":
        yield unread(("training", "split"), "given gradients have no examples of their own", (*MODEL, "name"))
        return
    n_examples = model.examples or EXAMPLES
    if training.split is None or len(training.split) != keys.workers:
        return
    if sum(training.split) > n_examples:
        message = f"the parts add up to {sum(training.split):,}, and there are {n_examples:,} examples"
        yield Mistake(("training", "split"), message, f"at most {n_examples:,}", causes=(MODEL,))
    batch = training.batch
    if isinstance(batch, tuple) and any(batch) and any(training.split):
        pairs = zip(training.split, batch, strict=False)
        if not any(has and takes for has, takes in pairs):
            message = "those who have examples take none"
            yield Mistake(("training", "batch"), message, causes=(("training", "split"),))


#: What a collective of gradients may return.
_REDUCES = ("sum", "mean")
_SOURCES = ("model", "layers", "python")


def check_step(keys: Keys, step: StepKeys) -> Iterator[Mistake]:
    """Return what is wrong with a training step."""
    if keys.training is None:
        yield unread(("message",), "the layers say how large it is", ("step",))
    yield from _layers(step)
    yield from _times(step)
    yield from _spread(keys, step)
    yield from _workers(keys, step)


def _layers(step: StepKeys) -> Iterator[Mistake]:
    given = [key for key in _SOURCES if getattr(step, key) is not None]
    if not given:
        yield Mistake(("step",), "a step needs the layers of a model", "model: gpt2-small", value="")
    for key in given[1:]:
        yield Mistake(("step", key), f"the layers come from {given[0]} already", f"one of {', '.join(_SOURCES)}")
    preset = MODEL_PRESETS[step.model] if step.model else None
    if step.sequence is not None and preset and preset.sequence is None:
        yield unread(("step", "sequence"), f"examples of {step.model} are images", ("step", "model"))
    elif step.sequence is not None and preset and preset.longest and step.sequence > preset.longest:
        message, right = (
            f"{step.model} has a table of {preset.longest} positions",
            f"at most {preset.longest}",
        )
        yield Mistake(("step", "sequence"), message, right, causes=(("step", "model"),))


def _times(step: StepKeys) -> Iterator[Mistake]:
    for key, other in (("forward", "backward"), ("backward", "forward")):
        if getattr(step, f"{key}_s") is not None and getattr(step, f"{other}_s") is None:
            yield Mistake(("step", key), f"forward and backward stand together: {other} is missing", "40 ms, 80 ms")
        if getattr(step, f"{key}_s") == 0:
            yield Mistake(("step", key), "a pass takes time", "40 ms")
    measured = step.forward_s is not None and step.backward_s is not None
    if measured and step.rate_flops is not None:
        yield unread(("step", "rate"), "forward and backward say it all", ("step", "forward"))
    if not measured and step.rate_flops is None and (step.model or step.python):
        right = "rate: 150 TFLOP/s" if step.model else "forward: 40 ms, backward: 80 ms"
        yield Mistake(("step",), "nothing says how long the layers take", right, value="")
    if step.python is not None and step.rate_flops is not None and not measured:
        message, right = "how many operations a module takes is not known", "forward: 40 ms, backward: 80 ms"
        yield Mistake(("step", "rate"), message, right, causes=(("step", "python"),))


def _spread(keys: Keys, step: StepKeys) -> Iterator[Mistake]:
    cause: Path = ("step", "strategy")
    for key in ("bucket_cap", "first_bucket"):
        if getattr(step, f"{key}_bytes") == 0:
            yield Mistake(("step", key), "a bucket of no bytes holds no gradient", "25 MiB")
        if step.strategy == "fsdp":
            yield unread(("step", key), "fsdp sends the gradients of a block together", cause)
    if step.strategy != "fsdp":
        yield unread(("step", "prefetch"), f"{step.strategy} gathers no parameters under way", cause)
    algorithm = ALGORITHMS.get(keys.algorithm_name)
    known = algorithm.collectives if algorithm else ("all-reduce",) if keys.collective == "all-reduce" else ()
    missing = [name for name in STRATEGIES[step.strategy].sends if name not in known]
    if missing:
        message = f"{step.strategy} needs {' and '.join(missing)}, which {keys.algorithm_name} does not have"
        yield Mistake(cause, message, "ddp, or algorithm: ring", causes=(("algorithm",),))
    if keys.reduce not in _REDUCES:
        message = "gradients of as many examples at each worker are combined into a mean, from their sum or as it is"
        yield Mistake(("reduce",), message, " or ".join(_REDUCES), causes=(("step",),))
    if not is_float(DTYPES[keys.dtype]):
        yield Mistake(("dtype",), "gradients are no whole numbers", "float32", causes=(("step",),))
    if keys.files:
        message = "the numbers of a step are made, for as many parameters as its layers have"
        yield Mistake(("data",), message, "random, or ramp", causes=(("step",),))
    if keys.collective != "all-reduce":
        message = "the strategy of the step says which collectives there are"
        yield Mistake(("collective",), message, "all-reduce", causes=(("step",),))
    if not step.noise:
        yield unread(("step", "steps"), "without noise all steps are alike", ("step", "noise"))
    elif keys.repeat is not None:
        yield unread(("step", "steps"), "repeat says how many steps there are", ("repeat",))


def _workers(keys: Keys, step: StepKeys) -> Iterator[Mistake]:
    for worker, times in step.slow_workers.items():
        path = ("step", "slow_workers", worker)
        yield from no_such_worker(path, int(worker), keys.workers)
        if times == 0:
            yield Mistake(path, "a worker takes some time", "1.5")
    message = "a step says when its workers start"
    if keys.worker.start_s:
        yield Mistake(("worker", "start"), message, "step.slow_workers", causes=(("step",),))
    for worker, one in keys.worker.exceptions.items():
        if one.start_s:
            at = ("worker", "exceptions", worker, "start")
            yield Mistake(at, message, "step.slow_workers", causes=(("step",),))
