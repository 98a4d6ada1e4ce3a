"""Max-min fair rates, kept up to date as flows come and go: only what a change reaches is computed again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ringnet.engines.tolerances import EQUAL_RATES, added


class Flow:
    """Something that moves over some links at a rate.

    Parameters
    ----------
    links : sequence of int
    cap_Bps : float
        What it cannot exceed by itself, in bytes per second.
    """

    __slots__ = ("before_Bps", "cap_Bps", "links", "rate_Bps", "stop")

    def __init__(self, links: Sequence[int], cap_Bps: float = float("inf")) -> None:
        self.links, self.cap_Bps = links, cap_Bps
        #: Its rate, and the one that it had before the last settlement that changed it.
        self.rate_Bps = self.before_Bps = 0.0
        #: The link that keeps it from having more; None if that is its own cap.
        self.stop: int | None = None


class Shares:
    """The flows on some links, and their rates.

    Parameters
    ----------
    capacity_Bps : list of float
        Of each link, in bytes per second.

    Notes
    -----
    An allocation is max-min fair exactly if no link carries more than it can and every flow has a *bottleneck*: a full
    link on which no flow has more than it (or it is at its own cap) -- Bertsekas and Gallager, *Data Networks*, section
    6.5.2. So after a change it is enough to fill up anew, progressively, a pool of flows while the others stay; then
    whoever is found without a bottleneck, or takes more than one of the pool on the link that stops it, joins the pool.
    When nobody is left to join, the allocation is the fair one. A pool can grow to all flows that are connected, and
    filling it takes at most flows x links, but most changes reach a few.

    Examples
    --------
    Two flows share link 0, of which one also crosses the narrow link 1:

    >>> shares = Shares([10.0, 2.0])
    >>> wide, narrow = Flow([0]), Flow([0, 1])
    >>> changed = shares.settle([wide, narrow], [], [])
    >>> wide.rate_Bps, narrow.rate_Bps
    (8.0, 2.0)
    """

    def __init__(self, capacity_Bps: list[float]) -> None:
        self.capacity_Bps = capacity_Bps
        self.on: list[dict[Flow, None]] = [{} for _ in capacity_Bps]
        self._use: dict[int, tuple[bool, float]] = {}
        #: How many rates were worked out: what settling costs.
        self.n_filled = 0

    def settle(self, coming: Iterable[Flow], going: Iterable[Flow], changed: Iterable[int]) -> list[Flow]:
        """Take in flows that start, flows that end and links whose capacity has changed; return whose rate is new."""
        touched = dict.fromkeys(changed)
        pool: dict[Flow, float] = {}
        for flow in going:
            for link in flow.links:
                del self.on[link][flow]
            touched.update(dict.fromkeys(flow.links))
        for flow in coming:
            for link in flow.links:
                self.on[link][flow] = None
            pool[flow] = -1.0
        # A link that can do less than before takes from all who are on it.
        for link in changed:
            pool.update({flow: flow.rate_Bps for flow in self.on[link]})
        self._grow(pool, list(touched))
        new = [flow for flow, before_Bps in pool.items() if flow.rate_Bps != before_Bps]
        for flow in new:
            flow.before_Bps = max(pool[flow], 0.0)
        return new

    def _grow(self, pool: dict[Flow, float], touched: list[int]) -> None:
        """Fill the pool, and let join who must, until nobody has to."""
        if pool:
            self._fill(pool)
            touched = [*touched, *(link for flow in pool for link in flow.links)]
        while True:
            self._use.clear()
            joining = self._without_bottleneck(pool, touched)
            joining.update(self._above(pool))
            if not joining:
                return
            pool.update(joining)
            self._fill(pool)
            touched = [link for flow in pool for link in flow.links]

    def _without_bottleneck(self, pool: dict[Flow, float], touched: list[int]) -> dict[Flow, float]:
        """Return the flows outside the pool, on some links, that nothing stops from having more."""
        joining: dict[Flow, float] = {}
        for link in dict.fromkeys(touched):
            for flow in self.on[link]:
                if flow not in pool and flow not in joining and not self._stopped(flow):
                    joining[flow] = flow.rate_Bps
        return joining

    def _above(self, pool: dict[Flow, float]) -> dict[Flow, float]:
        """Return the flows outside the pool that have more than one of it on the link that stops that one."""
        lowest = {flow.stop: flow.rate_Bps for flow in pool if flow.stop is not None}
        return {
            flow: flow.rate_Bps
            for link, rate_Bps in lowest.items()
            for flow in self.on[link]
            if flow not in pool and flow.rate_Bps > rate_Bps * (1 + EQUAL_RATES)
        }

    def _stopped(self, flow: Flow) -> bool:
        rate_Bps = flow.rate_Bps * (1 + EQUAL_RATES)
        if rate_Bps >= flow.cap_Bps:
            return True
        for link in flow.links:
            is_full, most_Bps = self._use.get(link) or self._used(link)
            if is_full and rate_Bps >= most_Bps:
                return True
        return False

    def _used(self, link: int) -> tuple[bool, float]:
        """Whether a link is full, and the largest rate on it; remembered until the pool is filled again."""
        rates = [flow.rate_Bps for flow in self.on[link]]
        use = self._use[link] = sum(rates) >= self.capacity_Bps[link] * (1 - EQUAL_RATES), max(rates)
        return use

    def _fill(self, pool: dict[Flow, float]) -> None:
        """Let the rates of the pool rise together from zero, beside the others as they are, until each is stopped."""
        self.n_filled += len(pool)
        caps, rising = self._rising(pool)
        left = {link: self._left(link, flows, pool) for link, flows in rising.items()}
        count = {link: len(flows) for link, flows in rising.items()}
        by_cap = sorted(caps, key=caps.__getitem__, reverse=True)
        while caps:
            while by_cap[-1] not in caps:
                by_cap.pop()
            level, stop = caps[by_cap[-1]], None
            for link, n in count.items():
                if n and left[link] < level * n:
                    level, stop = left[link] / n, link
            for flow in (by_cap[-1],) if stop is None else rising[stop]:
                if caps.pop(flow, None) is not None:
                    flow.rate_Bps, flow.stop = max(level, 0.0), stop
                    for link in flow.links:
                        if link in count:
                            left[link] -= flow.rate_Bps
                            count[link] -= 1

    def _rising(self, pool: dict[Flow, float]) -> tuple[dict[Flow, float], dict[int, list[Flow]]]:
        """Return what each flow cannot exceed by itself or alone on a link, and who of the pool is on other links."""
        caps: dict[Flow, float] = {}
        rising: dict[int, list[Flow]] = {}
        for flow in pool:
            cap_Bps = flow.cap_Bps
            for link in flow.links:
                if len(self.on[link]) == 1:
                    cap_Bps = min(cap_Bps, self.capacity_Bps[link])
                else:
                    rising.setdefault(link, []).append(flow)
            caps[flow] = cap_Bps
        return caps, rising

    def _left(self, link: int, inside: list[Flow], pool: dict[Flow, float]) -> float:
        """Return what the flows outside the pool leave of a link."""
        if len(inside) == len(self.on[link]):
            return self.capacity_Bps[link]
        return self.capacity_Bps[link] - added([flow.rate_Bps for flow in self.on[link] if flow not in pool])
