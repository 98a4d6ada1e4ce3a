"""What the user asks of a run beside its scenario: the options of ``ringnet run``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ringnet.cli.targets import check_files
from ringnet.errors import Fault, InputError
from ringnet.scenario import Scenario


@dataclass(frozen=True)
class Wishes:
    """The options of ``ringnet run``, by the names that they have there."""

    out: Path | None = None
    json: bool = False
    quiet: bool = False
    plots: bool = True
    save_result: Path | None = None
    transfers: str | None = None
    jobs: int | None = None
    fresh: bool = False
    cache: Path | None = None
    cluster: str | None = None
    yes: bool = False

    def overrides(self, given: Sequence[str] | None) -> list[str]:
        """Return the changes to the scenario: those that were given, and what an option stands for."""
        return [*(given or ()), *([f"report.transfers={self.transfers}"] if self.transfers else ())]

    def folder(self, scenario: Scenario) -> Path:
        """Return where the results go: ``reports/<name>`` unless the user says otherwise."""
        return self.out or Path("reports") / file_name(scenario.name)

    def drawn(self, scenario: Scenario) -> tuple[str, ...] | None:
        """Return the plots to draw; None for all that suit the run."""
        return scenario.report.plots if self.plots else ()

    def unused(self, scenario: Scenario) -> Iterator[str]:
        """Yield a sentence for each option that this scenario does not read.

        Raises
        ------
        InputError
            One asks for something that would not be written.
        """
        if scenario.compare is not None:
            yield "compare is not used: `ringnet compare` reads it"
        if scenario.sweep is None:
            for option in _given({"--jobs": self.jobs, "--fresh": self.fresh, "--cache": self.cache}):
                yield f"{option} is not used: this scenario is a single run"
            self._refuse({"--cluster": self.cluster}, "a sweep, and this scenario is a single run")
        else:
            options = {"--save-result": self.save_result, "--transfers": self.transfers}
            self._refuse(options, "a single run, and this scenario is a sweep")
        if self.cluster and self.jobs:
            yield "--jobs is not used: the cluster says how many points run at once"
        if self.save_result and self.save_result.suffix == ".npy":
            check_files({"--save-result": self.save_result})
        if self.save_result and scenario.payload != "full":
            message = "the result is whole only when all of it is carried"
            raise InputError(
                Fault(message, "--save-result", value=f"payload: {scenario.payload}", right="payload: full")
            )

    @staticmethod
    def _refuse(options: Mapping[str, object], only_for: str) -> None:
        faults = [Fault(f"this option is for {only_for}", option) for option in _given(options)]
        if faults:
            raise InputError(*faults)


def _given(options: Mapping[str, object]) -> list[str]:
    return [option for option, value in options.items() if value]


def file_name(name: str) -> str:
    """Turn the name of a scenario into the name of a folder.

    >>> file_name("time against N, 1 MiB"), file_name("../.."), file_name("slow_link.v2")
    ('time-against-N-1-MiB', 'run', 'slow_link.v2')
    """
    return re.sub(r"[^\w.]+", "-", name).strip("-.") or "run"
