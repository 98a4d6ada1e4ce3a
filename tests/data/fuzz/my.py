"""What scenarios of the fuzz tests name: an algorithm, a model to train and one to time."""

import numpy as np

from ringnet import make_schedule, make_step


def my_ring(n_workers, collective, twist=0):
    """An all-reduce over a star: all send to worker 0, which sends the sum back."""
    others = np.arange(1, n_workers)
    up = make_step(phase="reduce", step=0, src=others, dst=0, chunk=twist)
    down = make_step(phase="broadcast", step=0, src=0, dst=others, chunk=0)
    return make_schedule("star", collective, n_workers, n_chunks=1, steps=[up, down])


def gradients(parameters, examples):
    """The loss and gradient of a straight line."""
    w = parameters["w"]
    error = w[0] * examples + w[1] - 2 * examples
    return float((error**2).mean()), {"w": np.array([(2 * error * examples).mean(), 2 * error.mean()], w.dtype)}


def parameters(dtype="float32"):
    """Where it starts."""
    return {"w": np.zeros(2, dtype)}


class Parameter:
    """A part of a model, as PyTorch names it."""

    def __init__(self, *shape):
        self.shape, self.requires_grad = shape, True

    def numel(self):
        """Its elements."""
        return int(np.prod(self.shape))


class Model:
    """A model, as far as it is asked."""

    def named_parameters(self):
        """Two layers."""
        yield from {"a.weight": Parameter(8, 8), "a.bias": Parameter(8), "b.weight": Parameter(8, 2)}.items()


def model():
    """Make one."""
    return Model()
