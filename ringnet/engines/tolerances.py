"""Differences that are none, alike for every engine: what rounding tears apart is one."""

from __future__ import annotations

#: Rates and capacities that differ by less than this share are equal.
EQUAL_RATES = 1e-12
#: Ends of flows that differ by less than this share of the time are one: what symmetry makes equal, rounding parts.
SAME_TIME = 1e-14
#: Waits shorter than this share of the time are none. A head that comes as its link becomes free has its time from
#: other sums than the link, which differ by some 1e-16 of it for each step; nothing that waits is over so soon.
ROUNDING = 1e-12
