"""``ringnet nccl``: what NCCL would choose by its own cost model, beside a simulation and beside what it printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ringnet.analysis.nccl import NcclMachine, Pick, constants, cost_table, pick, picks
from ringnet.analysis.nccl.search import host_rates, nccl_machine
from ringnet.cli import options
from ringnet.cli.nccl_machine import (
    NcclOptions,
    as_printed,
    network_asked,
    on_nodes,
    rates_asked,
    scenario_asked,
)
from ringnet.cli.printing import note, print_json, print_table, say
from ringnet.cli.studies import StudyOptions, carried_through, records
from ringnet.errors import Fault, InputError, unknown
from ringnet.formats.tuner import ALGORITHMS, NcclTuning, read_tuning
from ringnet.reporting.atomic import write_text, written_file
from ringnet.reporting.plots import save_drawn
from ringnet.runs.parts import build_site
from ringnet.scenario import Scenario
from ringnet.study.compare import Comparison, compare_parts, plan_comparison, sizes_of
from ringnet.study.nccl import (
    SIMULATED,
    OtherChoice,
    base_name,
    differences,
    missing_in_ringnet,
    nccl_times,
    tuner_file,
)
from ringnet.units import counted, format_rate, format_seconds, format_size

EXAMPLE = "ringnet nccl --ranks 32 --nodes 4 --link infiniband-ndr --cards 8"

#: Sizes that a person is shown; the CSV has all of them.
SHOWN_SIZES = 12
#: Sizes of the plot.
DRAWN_SIZES = 161
#: GPUs that are simulated without being asked.
MOST_SIMULATED = 64
AGREED = "wherever NCCL takes a ring or a tree, it is the faster as simulated"


@options.asking(NcclOptions)
def command(asked: NcclOptions) -> int:
    """Say what NCCL would choose by its own cost model, for each size, and what a simulation says instead."""
    asked.check_targets([path for path in (asked.scenario, asked.log) if path])
    printed = read_tuning(asked.log) if asked.log else None
    traits = asked.traits()
    wanted = options.sizes_of(asked.sizes, least=1) if asked.sizes else options.sizes_of(["1KiB..1GiB"], 4)
    found = scenario_asked(asked, wanted)
    if found is None:
        rates = rates_asked(asked, traits, printed)
    else:
        wanted = sizes_of(found)
        rates = host_rates(build_site(found).networks[0])
        rates = on_nodes(rates, asked.nodes) if asked.nodes else rates
    machine = nccl_machine(rates, traits)
    if printed:
        machine = as_printed(machine, printed, may_fit=not found and not asked.link)
    names = _collectives(asked.collective, found)
    has_network = bool(found or asked.link or not printed)
    why_not = _why_not_simulated(machine, names[0], asked.simulate, has_network=has_network)
    if asked.tuner and why_not:
        raise InputError(Fault("nothing is simulated to compare with", "--tuner", value=why_not))
    beside = None
    if not why_not:
        beside = _beside(machine, found or network_asked(rates, asked, wanted), asked.as_json)
    answer = NcclAnswer(machine, names, wanted, beside, printed, why_not)
    _write(answer, asked)
    if asked.as_json:
        print_json(answer.document())
        return 0
    _print(answer)
    for path in filter(None, (asked.tuner, asked.plot, asked.csv)):
        say(f"written  {path}")
    note(*_cautions(answer))
    return 0


class Beside(NamedTuple):
    """What was simulated on the same network, and where it differs from NCCL's choice."""

    found: Comparison
    differ: list[OtherChoice]


class NcclAnswer(NamedTuple):
    """Everything that is told: the machine, its collectives (the first is simulated), sizes, and what stands beside."""

    machine: NcclMachine
    collectives: Sequence[str]
    sizes: Sequence[int]
    beside: Beside | None
    printed: NcclTuning | None
    why_not_simulated: str = ""

    def picks(self, collective: str) -> list[Pick]:
        """Return what NCCL takes of a collective over all sizes."""
        return picks(self.machine, cost_table(self.machine), collective, min(self.sizes), max(self.sizes))

    def times(self) -> pd.DataFrame:
        """Return NCCL's times of every collective, a row per size and cell."""
        frames = [nccl_times(self.machine, name, self.sizes).assign(collective=name) for name in self.collectives]
        return pd.concat(frames, ignore_index=True)

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        table = cost_table(self.machine)
        return {
            "machine": asdict(self.machine),
            "cells": [
                dict(zip(("collective", "algorithm", "protocol"), cell, strict=True)) | cost._asdict()
                for cell, cost in table.items()
                if cell[0] in self.collectives
            ],
            "picks": {name: [one._asdict() for one in self.picks(name)] for name in self.collectives},
            "times": records(self.times()),
            "simulated": records(self.beside.found.table) if self.beside else None,
            "differences": [one._asdict() for one in self.beside.differ] if self.beside else None,
            "printed": _printed_rows(self) if self.printed else None,
            "choices": _choice_rows(self) if self.printed else None,
            "notes": _cautions(self),
        }


# ------------------------------------------------------------------------------------------------- what is asked


def _collectives(asked: Sequence[str] | None, scenario: Scenario | None) -> list[str]:
    names = options.values_of(asked, "--collective") if asked else []
    if names == ["all"]:
        return ["all-reduce", *(name for name in constants.COLLECTIVES if name != "all-reduce")]
    if "all" in names:
        raise InputError(Fault("all stands alone", "--collective", value=", ".join(names), right="all"))
    names = names or [scenario.collective if scenario else "all-reduce"]
    options.refuse(
        unknown("NCCL tunes no such collective", name, ("all", *constants.COLLECTIVES), "--collective")
        for name in names
        if name not in constants.COLLECTIVES
    )
    return [*dict.fromkeys(names)]


def _why_not_simulated(machine: NcclMachine, collective: str, simulate: bool | None, *, has_network: bool) -> str:
    """Say why nothing is simulated beside NCCL's model; empty where it is."""
    if simulate is False:
        return "--no-simulate"
    if collective != "all-reduce":
        return f"of {collective} NCCL has a ring, and what is not simulated here: there is no choice to compare"
    if not has_network:
        return "a log says nothing of links: with a scenario, or --link, its network is simulated"
    if simulate is None and machine.n_ranks > MOST_SIMULATED:
        return f"more than {MOST_SIMULATED} GPUs take long to simulate: --simulate does"
    return ""


def _beside(machine: NcclMachine, scenario: Scenario, as_json: bool) -> Beside:
    """Simulate what NCCL has of ringnet's algorithms."""
    quiet = StudyOptions(command="nccl", source=Path(), json=as_json)
    plan = plan_comparison(scenario, SIMULATED, [scenario.workers])
    found, _ = carried_through(len(plan.parts), partial(compare_parts, plan), quiet)
    return Beside(found, differences(machine, scenario.collective, found))


# ------------------------------------------------------------------------------------------------- what is told


def _print(answer: NcclAnswer) -> None:
    print_table(_machine_rows(answer.machine))
    for collective in answer.collectives:
        say("")
        print_table([(f"{collective}, of NCCL", "protocol", "from", "to", "time"), *_pick_rows(answer, collective)])
        say("")
        print_table([("algorithm", *constants.PROTOCOLS), *_cell_rows(answer.machine, collective)])
    if answer.beside:
        say("")
        heads = ("size", "NCCL takes", "its time", "busbw", "fastest as simulated", "time", "")
        print_table([heads, *_size_rows(answer, answer.beside)])
        say("")
        for sentence in _differences_in_words(answer.beside) or [AGREED]:
            say(sentence)
    if answer.printed:
        say("")
        _print_comparison(answer)


def _machine_rows(machine: NcclMachine) -> list[tuple[str, str]]:
    nodes, gpus = counted(machine.n_nodes, "host"), counted(machine.n_ranks, "GPU")
    rows = [("NCCL's model", f"{gpus} on {nodes}, {machine.gpu}, {machine.cpu}, {machine.inside} inside")]
    for name in ("ring", "tree", "nvls", "collnet"):
        graph = machine.graph(name)
        if graph:
            rate = f"{graph.inside_GBps:.4g} GB/s"
            if graph.inside_GBps != graph.between_GBps:
                rate += f" inside, {graph.between_GBps:.4g} GB/s between hosts"
            rows.append((f"{name} channels", f"{graph.n_channels} x {rate}"))
    return rows


def _pick_rows(answer: NcclAnswer, collective: str) -> list[tuple[str, ...]]:
    table = nccl_times(answer.machine, collective, [one.first_bytes for one in answer.picks(collective)])
    firsts = table[table["is_pick"]]["time_s"]
    return [
        (
            one.algorithm,
            one.protocol,
            format_size(one.first_bytes),
            format_size(one.last_bytes),
            format_seconds(time_s),
        )
        for one, time_s in zip(answer.picks(collective), firsts, strict=True)
    ]


def _cell_rows(machine: NcclMachine, collective: str) -> list[tuple[str, ...]]:
    """Return latency and bandwidth by algorithm and protocol, of algorithms that are available."""
    table = cost_table(machine)
    rows = []
    for algorithm in constants.ALGORITHMS:
        costs = [table[collective, algorithm, protocol] for protocol in constants.PROTOCOLS]
        if any(cost.bandwidth_GBps for cost in costs):
            cells = [
                f"{cost.latency_us:.1f} us, {cost.bandwidth_GBps:.1f} GB/s" if cost.bandwidth_GBps else ""
                for cost in costs
            ]
            rows.append((algorithm, *cells))
    return rows


def _size_rows(answer: NcclAnswer, beside: Beside) -> list[tuple[str, ...]]:
    times = nccl_times(answer.machine, answer.collectives[0], answer.sizes)
    taken = times[times["is_pick"]].set_index("message_bytes")
    sizes = sorted(set(answer.sizes))
    shown = [sizes[at] for at in np.unique(np.linspace(0, len(sizes) - 1, SHOWN_SIZES).round().astype(int))]
    rows: list[tuple[str, ...]] = []
    for size in shown:
        ours = beside.found.table[beside.found.table["message_bytes"] == size].iloc[0]
        name, differs = (
            str(ours["algorithm"]),
            any(one.first_bytes <= size <= one.last_bytes for one in beside.differ),
        )
        row = taken.loc[size]
        rows.append(
            (
                format_size(size),
                f"{row['algorithm']} {row['protocol']}",
                format_seconds(row["time_s"]),
                format_rate(row["busbw_Bps"]) if row["busbw_Bps"] else "",
                name,
                format_seconds(ours["makespan_s"]),
                f"not {row['algorithm']}" if differs and ALGORITHMS[base_name(name)] != row["algorithm"] else "",
            )
        )
    return rows


def _differences_in_words(beside: Beside) -> list[str]:
    """Say each range of sizes once, whatever the protocols within it."""
    words: list[OtherChoice] = []
    for one in beside.differ:
        if words and words[-1][2:4] == one[2:4] and words[-1].last_bytes + 1 == one.first_bytes:
            words[-1] = words[-1]._replace(last_bytes=one.last_bytes)
        else:
            words.append(one)
    return [
        f"from {format_size(one.first_bytes)} to {format_size(one.last_bytes)} NCCL takes the {one.nccl}, and the "
        f"{one.ringnet} is faster as simulated"
        for one in words
    ]


def _cautions(answer: NcclAnswer) -> list[str]:
    """Return what is to be known of an answer."""
    said = ["the constants are those of NCCL 2.29; other releases choose at other sizes"]
    if answer.printed and answer.printed.version and not answer.printed.version.startswith("2.29"):
        said[0] = f"the log is of NCCL {answer.printed.version}, the constants are those of 2.29"
    if not answer.printed:
        said.append(
            "channels are taken as the links fill them; NCCL's own search of a machine may find others: --log shows "
            "those of a real run"
        )
    if answer.why_not_simulated:
        said.append(f"not simulated: {answer.why_not_simulated}")
    if answer.beside:
        said += answer.beside.found.notes
        said += missing_in_ringnet(answer.machine, answer.collectives[0], answer.sizes)
        said.append(
            "what is simulated has no protocols, and no launch but worker.launch: its times are those of the network"
        )
    return said


# ------------------------------------------------------------------------------------------- beside what it printed


def _printed_rows(answer: NcclAnswer) -> list[dict[str, Any]]:
    """Return every printed value with the model's, as NCCL would print it."""
    assert answer.printed is not None
    table = cost_table(answer.machine)
    return [
        dict(zip(("collective", "algorithm", "protocol"), cell, strict=True))
        | {"what": what, "printed": printed, "model": f"{model:.1f}", "is_equal": printed == f"{model:.1f}"}
        for cell, values in answer.printed.cells.items()
        for what, printed, model in zip(("latency_us", "bandwidth_GBps"), values, table[cell], strict=True)
    ]


def _choice_rows(answer: NcclAnswer) -> list[dict[str, Any]]:
    assert answer.printed is not None
    table = cost_table(answer.machine)
    rows = []
    for (collective, n_bytes), taken in answer.printed.choices.items():
        model = pick(answer.machine, table, collective, n_bytes)
        rows.append(
            {
                "collective": collective,
                "message_bytes": n_bytes,
                "taken": taken,
                "model": model,
                "is_equal": taken == model,
            }
        )
    return rows


def _print_comparison(answer: NcclAnswer) -> None:
    values, choices = _printed_rows(answer), _choice_rows(answer)
    # Zeros stand for what a machine does not have: that they agree says little.
    telling = [row for row in values if float(row["printed"]) or float(row["model"])]
    if telling:
        equal = sum(row["is_equal"] for row in telling)
        say(f"{equal} of {len(telling)} printed values are the model's, to the last digit")
    if choices:
        say(f"{sum(row['is_equal'] for row in choices)} of {len(choices)} choices that NCCL logged are the model's")
    rows = [
        (row["collective"], row["algorithm"], row["protocol"], row["what"], row["printed"], row["model"])
        for row in telling
        if not row["is_equal"]
    ] + [
        (
            row["collective"],
            format_size(row["message_bytes"]),
            "",
            "choice",
            " ".join(row["taken"]),
            " ".join(row["model"]),
        )
        for row in choices
        if not row["is_equal"]
    ]
    if rows:
        say("")
        print_table([("collective", "of", "protocol", "what", "NCCL printed", "the model says"), *rows])


def _write(answer: NcclAnswer, asked: NcclOptions) -> None:
    collective = answer.collectives[0]
    if asked.tuner and answer.beside:
        text = tuner_file(answer.machine, collective, *answer.beside)
        write_text(asked.tuner, text)
    if asked.csv:
        with written_file(asked.csv) as path:
            answer.times().to_csv(path, index=False)
    if asked.plot:
        # The model is a line between its borders: many sizes cost nothing.
        drawn = np.geomspace(min(answer.sizes), max(answer.sizes), DRAWN_SIZES).round().astype(int)
        times = nccl_times(answer.machine, collective, [*map(int, np.unique(drawn))])
        found = answer.beside.found.table if answer.beside else None
        about = f"{collective}, {answer.machine.n_ranks} GPUs on {counted(answer.machine.n_nodes, 'host')}"
        save_drawn("calibration.nccl_plot", asked.plot, times, found, "what NCCL would choose", about)
