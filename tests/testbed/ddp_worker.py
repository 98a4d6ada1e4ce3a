"""A process of PyTorch's DistributedDataParallel over gloo; the first one prints what came out as JSON.

Run as ``ddp_worker.py JOB SPEC``, SPEC being JSON. ``time`` times steps whose backward passes sleep, ``train`` trains
a small network on what a file of arrays holds. Knows nothing of ringnet.
"""

import json
import sys
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

#: All-reduces that follow each other, as those of buckets do, when one of them is timed.
IN_A_ROW = 4
#: How often everything is timed, after once that is not counted.
TIMES = 5


class Sleep(torch.autograd.Function):
    """Passes its input on; its backward pass takes some time and gives a gradient of ones."""

    @staticmethod
    def forward(context, x, weight, seconds):
        context.save_for_backward(weight)
        context.seconds = seconds
        return x + weight[0] * 0

    @staticmethod
    def backward(context, gradient):
        (weight,) = context.saved_tensors
        time.sleep(context.seconds)
        return gradient, torch.ones_like(weight), None


class SleepingModel(torch.nn.Module):
    """Layers of one parameter each; ``layers`` has the elements and the seconds of each."""

    def __init__(self, layers):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.zeros(n_elements) for n_elements, _ in layers)
        self.seconds = [seconds for _, seconds in layers]

    def forward(self, x):
        for weight, seconds in zip(self.weights, self.seconds, strict=True):
            x = Sleep.apply(x, weight, seconds)
        return x.sum()


class SmallNetwork(torch.nn.Module):
    """Layers with rectified outputs but the last; arrays as they are handed in."""

    def __init__(self, arrays):
        super().__init__()
        self.arrays = torch.nn.ParameterList(torch.tensor(array) for array in arrays)

    def forward(self, x):
        for number in range(0, len(self.arrays), 2):
            x = x @ self.arrays[number] + self.arrays[number + 1]
            x = torch.relu(x) if number + 2 < len(self.arrays) else x
        return x


def timed(what):
    """Return how long something took, several times."""
    times = []
    for _ in range(TIMES + 1):
        dist.barrier()
        start = time.monotonic()
        what()
        times.append(time.monotonic() - start)
    return times[1:]


def all_reduces(n_bytes):
    """All-reduce several buffers, one after the other."""
    works = [dist.all_reduce(torch.ones(n_bytes // 4), async_op=True) for _ in range(IN_A_ROW)]
    for work in works:
        work.wait()


def time_steps(layers, caps_mib, sizes):
    """Time backward passes without a network, all-reduces alone, and steps with each cap."""
    x = torch.ones(1, requires_grad=True)
    alone = SleepingModel(layers)
    found = {
        "alone_s": timed(lambda: alone(x).backward()),
        "all_reduce_s": {
            n_bytes: [one / IN_A_ROW for one in timed(lambda n_bytes=n_bytes: all_reduces(n_bytes))]
            for n_bytes in sizes
        },
        "step_s": {},
    }
    for cap in caps_mib:
        model = DistributedDataParallel(SleepingModel(layers), bucket_cap_mb=cap)
        model(x).backward()  # after which the buckets are those of the order of the gradients
        found["step_s"][cap] = timed(lambda model=model: model(x).backward())
    return found


def train(path, optimizers, n_steps, batch):
    """Train by the examples of this rank with each optimizer; return its parameters, one list for each array."""
    with np.load(path) as file:
        arrays = [file[f"parameter{number}"] for number in range(sum("parameter" in key for key in file))]
        inputs, targets = torch.tensor(file["inputs"]), torch.tensor(file["targets"])
    first, found = len(inputs) // dist.get_world_size() * dist.get_rank(), {}
    for key, (name, settings) in optimizers.items():
        model = DistributedDataParallel(SmallNetwork(arrays))
        optimizer = getattr(torch.optim, name)(model.parameters(), **settings)
        for step in range(n_steps):
            own = slice(first + step * batch, first + (step + 1) * batch)
            optimizer.zero_grad()
            (0.5 * ((model(inputs[own]) - targets[own]) ** 2).sum() / batch).backward()
            optimizer.step()
        found[key] = [parameter.detach().numpy().reshape(-1).tolist() for parameter in model.parameters()]
    return found


JOBS = {"time": time_steps, "train": train}


def main(job, spec):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    found = JOBS[job](*json.loads(spec))
    dist.barrier()
    if dist.get_rank() == 0:
        sys.stdout.write(json.dumps(found) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
