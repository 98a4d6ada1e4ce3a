"""Command lines: every command with every option that it has, and what somebody may type after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from ringnet.cli import load

#: What each command is about; options come after it. `measure` starts processes, and a cluster is somebody's.
ARGUMENTS: Mapping[str, Sequence[str]] = {
    "blame": ["s.yaml"],
    "calibrate": ["log.txt"],
    "check": ["s.yaml"],
    "compare": ["s.yaml"],
    "diff": ["whole", "whole"],
    "draw": ["s.yaml"],
    "export": ["s.yaml"],
    "init": ["new.yaml"],
    "list": ["algorithms"],
    "logs": ["log.txt"],
    "nccl": ["s.yaml"],
    "network": ["topology.xml"],
    "numerics": ["s.yaml"],
    "plot": ["whole"],
    "predict": ["profile.yaml"],
    "report": ["whole"],
    "run": ["s.yaml"],
    "show": ["dgx-h100"],
    "step": ["t.yaml"],
    "whatif": ["s.yaml"],
}
LEFT_OUT = {"--cluster", "--help", "--yes"}
PLAIN = """
scenario_version: 1
workers: 4
message: 4 KiB
network: {bandwidth: 1 GB/s, latency: 1 us}
"""
STEP = """
scenario_version: 1
workers: 4
network: {bandwidth: 1 GB/s, latency: 1 us}
step: {model: resnet-18, rate: 150 TFLOP/s}
"""
#: Words that somebody may type where a value is wanted: right somewhere, or nowhere.
_WORDS = """
0 1 2 3 4 -1 1.5 1e3 1,000 1,2 2,4,8 4, ,4 ,, 0x10 99999999999 nan inf none all auto
ring direct ring,direct ring,ring rings nonsense float32 float32,bfloat16 float23 float64 inorder pairwise tree
1KiB 1KiB,4KiB 4.KiB 1G 64M 1MiB:4MiB 5us '' " ' a b/c out out/ . .. / /dev/null /none/such s.yaml whole log.txt
p.png p.svg p.pdf p.xyz p x.csv x.xml x.goal x.yaml tuner.csv
workers=2 workers=0 workers=x workers= =2 message=1KiB message=nonsense network.bandwidth=2GB/s network.latency=0s
network.topology=switch network.topology=torus algorithm=direct algorithm.n_slices=3 algorithm=channel-ring
collective=all-gather collective=broadcast worker.start=never payload=none payload.elements=2 seed=-1 dtype=int8
sweep.over.message=[1KiB,4KiB] sweep.over.workers=[2,3] jobs=[] report.plots=[none] x=1 network.x=1 a.b.c=1
network.links.0->1.bandwidth=1MB/s network.links.9->1.bandwidth=1MB/s scenario_version=2 network={} network=
"""
_TEXTS = (
    "",
    " ",
    "a b",
    "\x1b[31m",
    "\u202e",
    "\u00e9",
    "a\nb",
    "--json",
    "-1 us",
    "5 us",
    "400 Gbit/s",
    "workers= 3",
)
TYPED = [*_WORDS.split(), *_TEXTS]


def _options() -> tuple[dict[str, list[str]], set[str]]:
    options: dict[str, list[str]] = {}
    flags: set[str] = set()
    for name in ARGUMENTS:
        found = [one for one in load(name).params if one.param_type_name == "option"]
        options[name] = sorted({word for one in found for word in one.opts if word not in LEFT_OUT})
        flags |= {word for one in found for word in (*one.opts, *one.secondary_opts) if one.is_flag}
    return options, flags


#: Options of each command by name, and those that take no value: as the commands have them.
OPTIONS, FLAGS = _options()


def typed_command(random: Random) -> list[str]:
    """Return a command with a few options, each with a word that may be right."""
    name = random.choice(sorted(ARGUMENTS))
    arguments = [random.choice(TYPED) if random.random() < 0.1 else word for word in ARGUMENTS[name]]
    words = [name, *arguments]
    for option in random.choices(OPTIONS[name], k=random.choice((0, 1, 1, 2, 3))):
        words += [option, *([] if option in FLAGS else [random.choice(TYPED)])]
    return words
