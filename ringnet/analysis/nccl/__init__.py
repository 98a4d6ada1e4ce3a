"""What NCCL believes of a machine, and what it would choose: its constants as data, its cost model, its search."""

from ringnet.analysis.nccl.model import (
    Cell,
    CellCost,
    ChannelGraph,
    NcclMachine,
    Pick,
    cost_table,
    pick,
    picks,
    time_us,
)

__all__ = [
    "Cell",
    "CellCost",
    "ChannelGraph",
    "NcclMachine",
    "Pick",
    "cost_table",
    "pick",
    "picks",
    "time_us",
]
