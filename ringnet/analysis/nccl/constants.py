"""Numbers of NCCL's own cost model, as plain data: latencies in microseconds, bandwidths in GB/s (1e9 bytes).

Source: ``src/graph/tuning.cc`` of NVIDIA/nccl as of NCCL 2.29 (``ncclTunerConstantsDefaults``; the same numbers from
2.28 to 2.30), speeds of channels from ``src/graph/search.cc``. They are NVIDIA's facts about NVIDIA's code, retyped;
which of them a machine follows is another question. Whoever needs them (as the cost model, as priors of a fit) takes
them from here.

Tuples over protocols are in the order of `PROTOCOLS`; a zero stands where NCCL has none.
"""

from __future__ import annotations

#: In NCCL's order, which decides between two that are equal: the first is taken.
ALGORITHMS = ("tree", "ring", "collnet-direct", "collnet-chain", "nvls", "nvls-tree", "pat")
PROTOCOLS = ("LL", "LL128", "Simple")
#: Collectives that NCCL tunes, by ringnet's names, in NCCL's order.
COLLECTIVES = ("broadcast", "reduce", "all-gather", "reduce-scatter", "all-reduce")
#: GPUs by what NCCL tells apart: compute capability 7.x and below, 8.x, 9.x, 10.x and above.
GPUS = ("volta", "ampere", "hopper", "blackwell")
CPUS = ("intel", "amd", "other")
#: What joins the GPUs of a host.
INSIDE = ("nvlink", "pci")

#: Launch and synchronisation of a collective, once.
BASE_US = {
    "tree": (6.8, 14.0, 8.4),
    "ring": (6.6, 14.0, 8.4),
    "collnet-direct": (0.0, 0.0, 0.0),
    "collnet-chain": (0.0, 0.0, 0.0),
    "nvls": (0.0, 0.0, 0.0),
    "nvls-tree": (0.0, 0.0, 0.0),
    "pat": (8.0, 8.0, 8.0),
}
#: A hop over each kind of link.
HOP_US = {
    "nvlink": {
        "tree": (0.6, 1.25, 4.0),
        "ring": (0.6, 1.9, 3.4),
        "collnet-direct": (0.0, 0.0, 3.7),
        "collnet-chain": (0.0, 0.0, 2.8),
        "nvls": (0.0, 0.0, 25.0),
        "nvls-tree": (0.0, 0.0, 25.0),
        "pat": (0.0, 0.0, 4.0),
    },
    "pci": {
        "tree": (1.0, 1.9, 4.0),
        "ring": (1.0, 2.5, 5.7),
        "collnet-direct": (0.0, 0.0, 3.7),
        "collnet-chain": (0.0, 0.0, 2.8),
        "nvls": (0.0, 0.0, 0.0),
        "nvls-tree": (0.0, 0.0, 0.0),
        "pat": (0.0, 0.0, 4.0),
    },
    "network": {
        "tree": (5.0, 8.5, 14.0),
        "ring": (2.7, 4.0, 14.0),
        "collnet-direct": (0.0, 0.0, 31.0),
        "collnet-chain": (0.0, 0.0, 30.0),
        "nvls": (0.0, 0.0, 18.0),
        "nvls-tree": (0.0, 0.0, 20.9),
        "pat": (0.0, 0.0, 14.0),
    },
}
#: What a CPU takes to post a transfer to the network; a hop of a ring takes at least this, of Simple three times this.
NET_OVERHEAD_US = {"intel": 1.0, "amd": 2.0, "other": 1.0}
SIMPLE_OVERHEADS = 3

#: Most that LL reaches, on 1, 2, more hosts: by the GPU on one host, else by the CPU (AMD as Ampere, others as Volta).
LL_MOST_GBps = {
    "volta": (39.0, 39.0, 20.4),
    "ampere": (87.7, 22.5, 19.0),
    "hopper": (141.0, 45.0, 35.0),
    "blackwell": (282.0, 90.0, 70.0),
}
#: Most of a channel, on 1, 2, more hosts.
RING_LL128_MOST_GBps = {
    "volta": (20.0, 20.0, 20.0),
    "ampere": (20.0, 20.0, 20.0),
    "hopper": (36.7, 36.7, 36.7),
    "blackwell": (40.0, 40.0, 40.0),
}
TREE_LL128_MOST_GBps = {
    "volta": (20.0, 20.0, 20.0),
    "ampere": (20.0, 20.0, 20.0),
    "hopper": (36.7, 36.7, 29.0),
    "blackwell": (55.6, 31.67, 20.0),
}
TREE_MOST_GBps = {
    "volta": (26.5, 18.5, 10.0),
    "ampere": (24.0, 23.6, 17.8),
    "hopper": (38.7, 41.4, 36.0),
    "blackwell": (70.0, 42.8, 24.0),
}
NVLS_TREE_MOST_GBps = {
    "volta": (26.5, 18.5, 10.0),
    "ampere": (24.0, 23.6, 17.8),
    "hopper": (0.0, 57.7, 45.5),
    "blackwell": (0.0, 96.0, 80.0),
}

#: Shares of the bandwidth that an algorithm or a protocol reaches.
RING_LL, RING_LL128 = 0.5, 0.92
TREE, TREE_LL = 0.92, 1 / 3.8
TREE_LL128_ONE_HOST, TREE_LL128 = 7 / 9, 120 / 128
#: A tree whose traffic of the network all goes through one GPU of each host.
TREE_THROUGH_ONE_GPU = 0.85
PAT = 0.75
COLLNET_DIRECT_HOPPER = 0.85
COLLNET_BETWEEN = 0.9
NVLS_EFFICIENCY = {"volta": 0.0, "ampere": 0.0, "hopper": 0.85, "blackwell": 0.74}
#: A tree all-reduce of 64 B, 128 B, ... (powers of two, to 256 MiB, 512 MiB for the NVLS tree) reaches this share.
TREE_CORRECTION = (
    (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    (
        *(0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5),
        *(0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9),
    ),
)
TREE_CORRECTED, NVLS_TREE_CORRECTED = 23, 24
#: The latency of a Simple ring all-reduce between hosts from `PLATEAU_BYTES` a channel and rank on, by the GPU.
RING_PLATEAU = {"volta": 1.9, "ampere": 1.4, "hopper": 1.4, "blackwell": 1.4}
PLATEAU_BYTES = 64
#: Latency of serving one more GPU of a host directly, and of the two parts of PAT.
COLLNET_DIRECT_ARITY_US = 0.4
PAT_LOG_SHARE, PAT_RANK_US = 1 / 3.5, 2.8

#: Most GPUs of a host for collectives through a switch that reduces, for NVLS other than of all-reduce.
COLLNET_MOST_PER_HOST = 8
NVLS_MOST_PER_HOST = 32
#: Share of the nominal bandwidth of an NVLink that NCCL counts (``src/graph/topo.h``: 20, 20, 20.6, 40.1 GB/s a link).
NVLINK_COUNTED = {"volta": 20 / 25, "ampere": 20 / 25, "hopper": 20.6 / 25, "blackwell": 40.1 / 50}
#: A channel from this speed on is doubled, at half of it; on Hopper and later only from the second on where there are
#: more than so many channels.
DOUBLED_GBps, DOUBLED_MANY_GBps, MANY_CHANNELS = 25.0, 50.0, 4
NVLS_CHANNELS = 16
#: Speeds below this share of that of the best channels so far are not tried.
SLOWEST_TRIED = 0.49
#: Channels: those that the search looks for at most, and twice as many once rings are joined.
MOST_SEARCHED_CHANNELS = 32
CHANNELS_PER_SEARCHED = 2
#: Speeds of a channel that the search tries, on one host and on several, by the GPU.
_SPEEDS_INSIDE = (40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0)
_SPEEDS_BETWEEN = (
    *(
        48.0,
        30.0,
        28.0,
        24.0,
        20.0,
        18.0,
        15.0,
        12.0,
        10.0,
        9.0,
        7.0,
        6.0,
        5.0,
        4.0,
        3.0,
        2.4,
        1.2,
        0.24,
        0.12,
    ),
)
SPEEDS_INSIDE_GBps = {
    "volta": _SPEEDS_INSIDE,
    "ampere": _SPEEDS_INSIDE,
    "hopper": (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0),
    "blackwell": (90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0),
}
SPEEDS_BETWEEN_GBps = {
    "volta": _SPEEDS_BETWEEN,
    "ampere": _SPEEDS_BETWEEN,
    "hopper": (*(48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4, 1.2, 0.24, 0.12),),
    "blackwell": (
        *(96.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0, 2.4),
        *(1.2, 0.24, 0.12),
    ),
}
