"""What it takes to settle fair rates anew when flows start and end, and how often that happens."""

from __future__ import annotations

import time
from statistics import median

import pytest
from measuring import exponent
from setups import scattered_setup

from ringnet.engines.max_min import Shares

#: By workers, how often rates are settled: the same on any machine.
SETTLEMENTS = {16: 142, 32: 3738, 64: 15831, 128: 64404}


@pytest.fixture
def settled_s(monkeypatch):
    """Seconds of each settlement, as they come."""
    seconds, settle = [], Shares.settle

    def timed(*arguments):
        start_s = time.process_time()
        rates = settle(*arguments)
        seconds.append(time.process_time() - start_s)
        return rates

    monkeypatch.setattr(Shares, "settle", timed)
    return seconds


@pytest.mark.benchmark(timer=time.process_time)
def test_fair_sharing(benchmark, table, settled_s):
    setups = {n_workers: scattered_setup(n_workers) for n_workers in SETTLEMENTS}
    mean_s = {n_workers: [] for n_workers in SETTLEMENTS}

    def run_all() -> None:
        for n_workers, setup in setups.items():
            settled_s.clear()
            setup.run("events")
            assert len(settled_s) == SETTLEMENTS[n_workers]
            mean_s[n_workers].append(sum(settled_s) / len(settled_s))

    benchmark.pedantic(run_all, rounds=3)
    typical_s = [median(each) for each in mean_s.values()]
    products = [n_workers * setup.network.n_links for n_workers, setup in setups.items()]
    what = "time per fair settlement, against flows x links"
    table.add("Growth, as an exponent", what, exponent(products, typical_s), at_most=1)
    for (n_workers, setup), seconds in zip(setups.items(), typical_s, strict=True):
        where = f"N={n_workers}, {setup.network.n_links} links"
        table.add("Times", f"one fair settlement, {where}", seconds)
        table.add("Counts", f"fair settlements, {where}", SETTLEMENTS[n_workers])
