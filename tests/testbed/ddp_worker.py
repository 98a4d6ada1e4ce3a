"""A process of PyTorch's DistributedDataParallel over gloo, whose backward passes sleep; the first prints its times.

Run as ``ddp_worker.py SPEC``, SPEC being JSON: layers, elements of each, seconds of each backward pass, caps in MiB,
sizes of all-reduces in bytes. Knows nothing of ringnet.
"""

import json
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

#: All-reduces that follow each other, as those of buckets do, when one of them is timed.
IN_A_ROW = 4


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
    """Layers of one parameter each."""

    def __init__(self, n_layers, n_elements, seconds):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.zeros(n_elements) for _ in range(n_layers))
        self.seconds = seconds

    def forward(self, x):
        for weight in self.weights:
            x = Sleep.apply(x, weight, self.seconds)
        return x.sum()


def timed(what, n):
    """Return how long something took, n times, after one that is not counted."""
    times = []
    for _ in range(n + 1):
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


def main(n_layers, n_elements, backward_s, caps_mib, sizes):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    x = torch.ones(1, requires_grad=True)
    alone = SleepingModel(n_layers, n_elements, backward_s)
    found = {
        "alone_s": timed(lambda: alone(x).backward(), 3),
        "all_reduce_s": {
            n_bytes: [one / IN_A_ROW for one in timed(lambda n_bytes=n_bytes: all_reduces(n_bytes), 3)]
            for n_bytes in sizes
        },
        "step_s": {},
    }
    for cap in caps_mib:
        model = DistributedDataParallel(SleepingModel(n_layers, n_elements, backward_s), bucket_cap_mb=cap)
        model(x).backward()  # after which the buckets are those of the order of the gradients
        found["step_s"][cap] = timed(lambda model=model: model(x).backward(), 3)
    dist.barrier()
    if dist.get_rank() == 0:
        sys.stdout.write(json.dumps(found) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
