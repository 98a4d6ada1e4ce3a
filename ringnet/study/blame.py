"""Who holds a run back: what it gains from each link, class of links, network card and worker that is made better.

Every gain is that of a second simulation. Where all of them would take too long, the links on the path that ended last
are simulated first, until one gains more than the path says of the others; then classes, and of a class that gains its
halves, and theirs: what gains nothing all at once does not gain in parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ringnet.analysis.blame import Suspect, suspects
from ringnet.analysis.critical_path import CriticalPath
from ringnet.analysis.derivatives import Derivatives
from ringnet.analysis.metrics import makespan_s
from ringnet.analysis.result import RunResult
from ringnet.analysis.upgrades import (
    CHANGES,
    ROUNDING,
    Change,
    LinksInUse,
    Upgrade,
    estimated_gain_s,
    worker_upgrade,
)
from ringnet.array_types import FloatArray
from ringnet.documents.document import path_text
from ringnet.engines.trace import Workers
from ringnet.errors import Fault, InputError, StudyError
from ringnet.networks.network import Sharing
from ringnet.reporting.columns import TABLES
from ringnet.runs.again import SimulatedAgain
from ringnet.runs.engine import engine_of, sharing_of
from ringnet.runs.notes import ring_equivalents
from ringnet.runs.parts import RunParts, build
from ringnet.runs.repeat import middle_run
from ringnet.runs.simulate import simulate
from ringnet.runs.work import LEAST_S
from ringnet.scenario import Scenario
from ringnet.scenario.drawn import what_is_drawn
from ringnet.scenario.files.links import NETWORK
from ringnet.study.outcome import Outcome
from ringnet.study.parts import PartOptions, StudyPart, key_of, run_parts
from ringnet.study.repeat import most_runs

#: What all simulations may cost together unless somebody says.
MOST_S = 10.0
#: Simulations that are always affordable.
FEWEST = 24
#: One part of so many of what is left is spared for cards and workers, while classes of links are halved.
SPARED = 3
#: Sets of links that are halved at once, so that all cores have something to do.
AT_ONCE = 4
#: Of a scenario whose numbers are drawn, so many of its runs are simulated with each change.
MOST_RUNS = 9


@dataclass(frozen=True)
class UpgradedRun:
    """Simulates a scenario, which ``key`` stands for, again with an upgrade; see `SimulatedAgain` for the rest."""

    key: str
    upgrade: Upgrade
    sharing: Sharing
    ran: str

    def __call__(self, scenario: Scenario) -> Outcome:
        """Return ``makespan_s``."""
        again = _again(_BuiltFrom(self.key, scenario), self.sharing, self.ran)
        return Outcome({"makespan_s": again(self.upgrade)})


@dataclass(frozen=True)
class ChangedRuns:
    """Simulates runs of a scenario whose numbers are drawn again, each with its own draws and the same change."""

    key: str
    suspect: Suspect
    change: Change
    runs: tuple[int, ...]

    def __call__(self, scenario: Scenario) -> Outcome:
        """Return ``gains_s`` of each run."""
        runs = (_drawn_run(_BuiltFrom(self.key, scenario), run) for run in self.runs)
        upgrades = ((one, _upgrade(self.suspect, self.change, one.links, one.again.parts.workers)) for one in runs)
        gains_s = [one.today_s - one.again(upgrade) if upgrade else 0.0 for one, upgrade in upgrades]
        return Outcome({"gains_s": gains_s})


class _DrawnRun(NamedTuple):
    """A run with its draws: as it is, what links carried then, and how it is simulated again."""

    today_s: float
    links: LinksInUse
    again: SimulatedAgain


@dataclass(frozen=True)
class _BuiltFrom:
    """A scenario, known by its key."""

    key: str
    scenario: Scenario = field(compare=False)


@lru_cache(maxsize=1)
def _again(built_from: _BuiltFrom, sharing: Sharing, ran: str) -> SimulatedAgain:
    return SimulatedAgain(build(built_from.scenario), sharing, ran)


@lru_cache(maxsize=MOST_RUNS)
def _drawn_run(built_from: _BuiltFrom, run: int) -> _DrawnRun:
    parts = _bare_all(build(built_from.scenario, run))
    engine = engine_of(parts)
    again = SimulatedAgain(parts, sharing_of(parts, engine), engine)
    trace = again.trace(again.engine, Upgrade())
    return _DrawnRun(makespan_s(trace), LinksInUse(parts.network_of_run, trace.links), again)


class Trial(NamedTuple):
    """One suspect with one change, and what it becomes."""

    suspect: Suspect
    change: Change
    upgrade: Upgrade


@dataclass(frozen=True)
class BlamePlan:
    """What there is to blame.

    Parameters
    ----------
    scenario : Scenario
    today : RunResult
        The run as it is, without its payload.
    suspects : list of Suspect
    trials : list of Trial
        Every suspect with every change that changes something.
    affordable : int
        How many simulations may be spent.
    links : LinksInUse
    again : SimulatedAgain
    path : CriticalPath or None
        The one that ended last, where it can be walked.
    derivatives : Derivatives or str
        Of the time, by that path; or why there are none.
    runs : tuple of int
        Where numbers are drawn, the runs that gains are the medians of; ``today`` is the one in their middle.
    """

    scenario: Scenario
    today: RunResult
    suspects: list[Suspect]
    trials: list[Trial]
    affordable: int
    links: LinksInUse
    again: SimulatedAgain
    path: CriticalPath | None
    derivatives: Derivatives | str
    runs: tuple[int, ...] = ()

    def estimated_gain_s(self, upgrade: Upgrade) -> float | None:
        """Return what an upgrade gains by the path as it is; None where that is not known."""
        if isinstance(self.derivatives, str):
            return None
        parts = self.again.parts
        return estimated_gain_s(upgrade, self.derivatives, parts.network_of_run, parts.workers)

    def suspected_gain_s(self, upgrade: Upgrade) -> float:
        """Return what to suspect of an upgrade first: what the path says, or half of what it spends there."""
        if self.path is None or not isinstance(self.derivatives, str):
            return self.estimated_gain_s(upgrade) or 0.0
        on_links, at_workers = self._seconds
        return 0.5 * sum(
            float(seconds[number])
            for seconds, changed in ((on_links, upgrade.links), (at_workers, upgrade.workers))
            for number, _ in changed
        )

    @cached_property
    def _seconds(self) -> tuple[FloatArray, FloatArray]:
        assert self.path is not None
        parts = self.again.parts
        return self.path.seconds(parts.network_of_run.n_links, parts.schedule.n_workers)

    @property
    def parts(self) -> Sequence[Upgrade]:
        """What is simulated at most."""
        return list(dict.fromkeys(one.upgrade for one in self.trials))[: self.affordable]


class Blame(NamedTuple):
    """What came of it.

    Parameters
    ----------
    table : DataFrame
        A row per suspect; see ``blame`` of `ringnet.reporting.columns.TABLES`.
    notes : tuple of str
        What was not tried, and why.
    """

    table: pd.DataFrame
    notes: tuple[str, ...]


def plan_blame(scenario: Scenario, most: int | None = None) -> BlamePlan:
    """Run a scenario as it is, and return who can be blamed.

    Raises
    ------
    InputError
        As `ringnet.blame`.
    """
    if most is not None and (not isinstance(most, int) or most < 1):
        raise InputError(Fault("no simulation may be spent", "most", value=str(most), right="100"))
    _with_links_to_blame(_single(scenario))
    # What goes wrong by chance does so as in the first run.
    is_drawn = any(path[0] != "trouble" for path in what_is_drawn(scenario))
    runs = tuple(range(min(most_runs(scenario), MOST_RUNS))) if is_drawn else ()
    built_from = _BuiltFrom(key_of(scenario, "blame"), scenario)
    of_runs = [_drawn_run(built_from, run).today_s for run in runs]
    parts = _bare_all(build(scenario, middle_run(np.array(of_runs)) if runs else 0))
    today = simulate(scenario, parts=parts)
    if not today.summary["makespan_s"]:
        message = "the run takes no time: there is nothing to blame"
        raise InputError(Fault(message, "message", right="a message, or links with latency"))
    again = SimulatedAgain(parts, today.summary["sharing"], today.summary["engine"], today.made_from[0].trace)
    in_use = {name: today.links[name].to_numpy() for name in ("bytes", "transfers", "busy_s")}
    links = LinksInUse(parts.network_of_run, in_use)
    # What a worker does that draws a number for each transfer is not in its columns: no change of them is one of it.
    found = [one for one in suspects(links, parts.workers) if not (one.workers and parts.workers.chance)]
    affordable = max(FEWEST, int(MOST_S / again.cost_s / max(len(runs), 1))) if most is None else most
    trials = _trials(found, links, parts)
    return BlamePlan(scenario, today, found, trials, affordable, links, again, *again.path(), runs)


def _single(scenario: Scenario) -> Scenario:
    """Return a scenario of one run in which something moves."""
    if scenario.sweep is not None:
        message = "blame is about one run, and this scenario is a sweep"
        right = f"one value for each key: {scenario.swept[0]}=..."
        raise InputError(Fault(message, "sweep", right=right))
    if scenario.workers < 2:  # noqa: PLR2004 -- one has nobody to send to
        raise InputError(
            Fault("with one worker nothing moves: there is nothing to blame", "workers", value="1", right="2")
        )
    return scenario


def _with_links_to_blame(scenario: Scenario) -> Scenario:
    """Return a scenario whose links have their own bandwidth, and not one that makes a ring take what was measured."""
    reason = ring_equivalents(scenario, [scenario.message_bytes], in_rate=True)[0]
    if reason:
        message = f"there is no link to blame: the links are a ring's equivalent ({reason})"
        right = "the bandwidth and the latency of the links themselves in place of the profile"
        raise InputError(Fault(message, path_text(NETWORK), right=right))
    return scenario


def _bare_all(parts: RunParts) -> RunParts:
    """Return the parts of a run without payloads, its own and those of other jobs."""
    others = tuple(replace(one, source=None, carry=0) for one in parts.others)
    return replace(parts, source=None, carry=0, others=others)


def _trials(found: Sequence[Suspect], links: LinksInUse, parts: RunParts) -> list[Trial]:
    made = []
    for one in found:
        for change in CHANGES:
            upgrade = _upgrade(one, change, links, parts.workers)
            if upgrade is not None:
                made.append(Trial(one, change, upgrade))
    return made


def _upgrade(one: Suspect, change: Change, links: LinksInUse, workers: Workers) -> Upgrade | None:
    """Return what a suspect becomes in a run by a change; None where it is none, or not known."""
    if one.links:
        return links.upgrade(one.links, change)
    if one.kind == "window":
        return Upgrade(without_window=True) if change == "alike" else None
    return worker_upgrade(workers, one.workers, change)


def blame_parts(plan: BlamePlan, how: PartOptions) -> Blame:
    """Simulate what is planned, as far as it can be afforded, and put together what came of it.

    Raises
    ------
    StudyError
        A simulation failed.
    """
    gains = _Gains(plan, how)
    if len({one.upgrade for one in plan.trials}) <= plan.affordable:
        gains.try_all(plan.trials)
    else:
        classes = {tuple(found) for found in (*plan.links.classes(), *plan.links.most_loaded())}
        whole = [one for one in plan.trials if one.suspect.links in classes or one.suspect.kind == "workers"]
        gains.try_all([one for one in plan.trials if one.suspect.kind == "window"])
        gains.try_on_the_path()
        gains.try_all(whole)
        gains.try_halves()
        gains.try_the_likely([one for one in plan.trials if one not in whole and one.suspect.kind != "link"])
    gains.find_slopes()
    rows = pd.DataFrame([_row(one, gains) for one in plan.suspects], columns=["first", *TABLES["blame"]])
    rows = rows.sort_values(["kind", "first"], key=_order, kind="stable", ignore_index=True).drop(columns="first")
    table = rows.assign(rank=rows.groupby("kind", sort=False).cumcount() + 1)
    notes = (
        *_about_runs(plan, gains),
        *_about_estimates(plan, gains, table),
        *gains.notes,
        *_unknown(plan),
        *_about_latency(plan.scenario),
    )
    return Blame(table, notes)


class _Gains:
    """What was simulated, by upgrade: by how much the makespan falls."""

    def __init__(self, plan: BlamePlan, how: PartOptions) -> None:
        self.plan, self.how = plan, how
        self.today_s = float(plan.today.summary["makespan_s"])
        self._key = key_of(plan.scenario, "blame")
        self.of_upgrade: dict[Upgrade, float] = {}
        #: What they would gain if the time went on as it does with a little of them.
        self.slopes: dict[Upgrade, float | None] = {}
        self.notes: list[str] = []
        #: Where numbers are drawn, what is gained in each run.
        self.in_runs: dict[Upgrade, list[float]] = {}
        #: Links that are known to gain nothing alone, since a set with them does not.
        self.nothing: dict[Change, set[int]] = {change: set() for change in CHANGES}

    @property
    def left(self) -> int:
        """How many simulations may still be spent."""
        return self.plan.affordable - len(self.of_upgrade)

    def try_all(self, trials: Sequence[Trial]) -> None:
        """Simulate with each upgrade once, in the order given as far as can be afforded."""
        new = {one.upgrade: one for one in reversed(trials) if one.upgrade not in self.of_upgrade}
        tried = [new[one] for one in dict.fromkeys(trial.upgrade for trial in trials) if one in new]
        tried = tried[: max(self.left, 0)]
        for trial, outcome in zip(tried, run_parts(list(map(self._part, tried)), self.how), strict=True):
            if not outcome.ok:
                raise StudyError(outcome.error)
            if self.plan.runs:
                self.in_runs[trial.upgrade] = outcome.summary["gains_s"]
                gain_s = median(outcome.summary["gains_s"])
            else:
                gain_s = self.today_s - outcome.summary["makespan_s"]
            self.of_upgrade[trial.upgrade] = gain_s if abs(gain_s) > ROUNDING * self.today_s else 0.0

    def _part(self, trial: Trial) -> StudyPart:
        again, scenario, runs = self.plan.again, self.plan.scenario, self.plan.runs
        most_s = LEAST_S + again.cost_s * max(len(runs), 1)
        if runs:
            changed = ChangedRuns(self._key, trial.suspect, trial.change, runs)
            return StudyPart("", f"{self._key} {changed!r}", scenario, changed, most_s)
        run = UpgradedRun(self._key, trial.upgrade, again.sharing, again.ran)
        return StudyPart("", f"{self._key} {trial.upgrade!r}", scenario, run, most_s)

    def try_on_the_path(self) -> None:
        """Simulate with single links and workers on the path that ended last, what it says gains most first.

        What a link gains at twice the speed, by which links are ranked, is simulated until one gains more than the path
        says of any other: none gains more than that, unless another transfer comes first somewhere. Where the path has
        no derivatives, those are tried first that it spends most on.
        """
        told = [(self.plan.suspected_gain_s(one.upgrade), one) for one in self.plan.trials]
        known = sorted(((gain_s, one) for gain_s, one in told if gain_s > 0), key=lambda one: -one[0])
        says_most, most_s = not isinstance(self.plan.derivatives, str), 0.0
        links = [one for one in known if (one[1].suspect.kind, one[1].change) == ("link", "twice")]
        while links and self.left > self.plan.affordable // 2 and not (says_most and links[0][0] <= most_s):
            now, links = links[:AT_ONCE], links[AT_ONCE:]
            self.try_all([one for _, one in now])
            most_s = max(most_s, *(self.of_upgrade.get(one.upgrade, 0.0) for _, one in now))
        if says_most:
            self.try_all([one for _, one in known[: self.left // 2]])

    def find_slopes(self) -> None:
        """Where the path has no derivatives, find for the first of each kind what the time does with a little of it."""
        firsts: dict[str, tuple[float, Trial]] = {}
        for trial in self.plan.trials if isinstance(self.plan.derivatives, str) and not self.plan.runs else ():
            gain_s = self.of_upgrade.get(trial.upgrade, 0.0)
            if trial.change == "twice" and gain_s > firsts.get(trial.suspect.kind, (0.0, trial))[0]:
                firsts[trial.suspect.kind] = gain_s, trial
        for _, trial in firsts.values() if self.left >= 2 * len(firsts) else ():
            self.slopes[trial.upgrade] = self.plan.again.slope_s(trial.upgrade)

    def try_halves(self) -> None:
        """Simulate with halves of the classes that gain, those that gain most first, down to single links."""
        sets: list[tuple[float, Trial]] = []
        for links in self.plan.links.classes():
            for change in CHANGES:
                sets += self._halved(tuple(links), change)
        spared = self.left // SPARED
        while sets and self.left > spared:
            # By what they gain at twice the speed links are ranked.
            sets.sort(key=lambda one: (one[1].change != "twice", -one[0], len(one[1].suspect.links)))
            at_once = min(AT_ONCE, self.left - spared)
            now, sets = sets[:at_once], sets[at_once:]
            self.try_all([trial for _, trial in now])
            for _, trial in now:
                if trial.upgrade in self.of_upgrade:
                    sets += self._halved(trial.suspect.links, trial.change)
        n_left = sum(len(trial.suspect.links) for _, trial in sets)
        if n_left:
            self.notes.append(
                f"not every link was tried alone: {len(self.of_upgrade)} simulations were spent, as many as were to be"
            )

    def try_the_likely(self, trials: Sequence[Trial]) -> None:
        """Simulate with cards and workers: those with links that gain alone first, then those below their likes."""

        def alone_s(trial: Trial) -> float:
            each = (self.plan.links.upgrade((link,), trial.change) for link in trial.suspect.links)
            return max((self.of_upgrade.get(one, 0.0) for one in each if one is not None), default=0.0)

        below = self.plan.links.below_their_likes()
        self.try_all(sorted(trials, key=lambda one: (-alone_s(one), below.keys().isdisjoint(one.suspect.links))))

    def _halved(self, links: tuple[int, ...], change: Change) -> Iterator[tuple[float, Trial]]:
        """Yield both halves of a set of links that gains, with what the set gains; none of one that does not."""
        whole = self.plan.links.upgrade(links, change)
        gain_s = 0.0 if whole is None else self.of_upgrade.get(whole, self.today_s)
        if gain_s <= 0:
            self.nothing[change].update(links)
            return
        middle = len(links) // 2
        for half in (links[:middle], links[middle:]) if middle else ():
            upgrade = self.plan.links.upgrade(half, change)
            if upgrade is None:
                self.nothing[change].update(half)
            else:
                yield gain_s, Trial(Suspect("half", "", half), change, upgrade)

    def of(self, suspect: Suspect, change: Change) -> float | None:
        """Return what a suspect gains by a change; None where that is not known, or is no change."""
        trial = next((one for one in self.plan.trials if one.suspect is suspect and one.change == change), None)
        if trial is None:
            return None
        gain_s = self.of_upgrade.get(trial.upgrade)
        if gain_s is None and suspect.links and self.nothing[change].issuperset(suspect.links):
            return 0.0
        return gain_s


#: Kinds in the order of the table.
KINDS = ("link", "links", "card", "worker", "workers", "window")
#: Share of a gain by which the path may be wrong before it is said to change: rounding.
SAME = 1e-6


def _order(column: pd.Series[Any]) -> pd.Series[Any]:
    return column.map({kind: place for place, kind in enumerate(KINDS)}) if column.name == "kind" else -column


def _row(suspect: Suspect, gains: _Gains) -> dict[str, Any]:
    plan = gains.plan
    found = {change: gains.of(suspect, change) for change in CHANGES}
    estimates = {
        one.change: gains.slopes.get(one.upgrade, plan.estimated_gain_s(one.upgrade))
        for one in plan.trials
        if one.suspect is suspect and not plan.runs
    }
    both = [(found[change], by_path) for change, by_path in estimates.items()]
    parted = [abs(a - b) > SAME * abs(b) for a, b in both if a is not None and b is not None]
    known = [gain_s for gain_s in found.values() if gain_s is not None]
    named = {"alike": "alike", "twice": "twice", "no-latency": "no_latency"}
    return {
        # Whom to mend first is told apart by what twice the speed gains; where that is not known nobody is first.
        "first": found["twice"] if found["twice"] is not None else -2.0 + (max(known, default=-1.0) > 0),
        "kind": suspect.kind,
        "name": suspect.name,
        "n_links": len(suspect.links),
        "n_workers": len(suspect.workers),
        "makespan_s": gains.today_s,
        **{f"{named[change]}_gain_s": gain_s for change, gain_s in found.items()},
        **{f"{named[change]}_by_path_s": estimates.get(change) for change in CHANGES},
        "path_changes": any(parted) if parted else None,
    }


def _about_runs(plan: BlamePlan, gains: _Gains) -> list[str]:
    """Say of how many runs gains are the medians, and in how many of them the same link comes first."""
    if not plan.runs:
        return []
    n = len(plan.runs)
    medians = f"medians of {n} of {most_runs(plan.scenario):,} runs, each with its own draws"
    said = [f"numbers are drawn: gains are {medians if n > 1 else 'those of one run; repeat: 9 says what others gain'}"]
    twice = {
        one.suspect.name: gains.in_runs[one.upgrade]
        for one in plan.trials
        if (one.suspect.kind, one.change) == ("link", "twice") and one.upgrade in gains.in_runs
    }
    first = max(twice, key=lambda name: median(twice[name]), default=None)
    if first is not None and n > 1 and median(twice[first]) > 0:
        n_first = sum(twice[first][run] >= max(each[run] for each in twice.values()) for run in range(n))
        said.append(f"of the links tried {first} gains most at twice the speed in {n_first} of {n} runs")
    if plan.again.parts.workers.chance:
        said.append(f"workers are not tried: {plan.again.parts.workers.chance}")
    return said


def _about_latency(scenario: Scenario) -> list[str]:
    """Say it where the latencies of measured links are not theirs alone."""
    reason = ring_equivalents(scenario, [scenario.message_bytes])[0]
    return [f"what is gained without latency is a guess: {reason}"] if reason else []


def _about_estimates(plan: BlamePlan, gains: _Gains, table: pd.DataFrame) -> list[str]:
    """Say why there are no estimates by the path, or where they part from what was simulated."""
    if plan.runs:
        return []
    if isinstance(plan.derivatives, str):
        note = f"nothing is told by the path, all is simulated: {plan.derivatives}"
        if any(slope_s is not None for slope_s in gains.slopes.values()):
            note += "; what stands as told by it is a slope, by two more simulations with a little of the change"
        return [note]
    n_parted = int((table["path_changes"] == True).sum())  # noqa: E712 -- empty where nothing was compared
    if not n_parted:
        return []
    return [
        f"{n_parted} of {len(table)} gain less than the path as it is says, for another becomes the longest: "
        "blame.csv has both"
    ]


def _unknown(plan: BlamePlan) -> list[str]:
    meaning = plan.links.unknown(plan.links.used)
    return [] if meaning is None else [f"what twice as fast is, is not known where {meaning}"]
