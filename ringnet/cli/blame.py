"""``ringnet blame``: who holds a run back, in a table, a plot and a sentence."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from ringnet.analysis.answer import answer, is_missing, percent
from ringnet.analysis.upgrades import BY_COLUMN
from ringnet.cli.printing import print_table, say
from ringnet.cli.studies import StudyOptions, carried_through, records, study, told
from ringnet.study.blame import SAME, Blame, BlamePlan, blame_parts, plan_blame
from ringnet.units import format_seconds

EXAMPLE = "ringnet blame scenario.yaml --set message='1 GiB'"

#: Rows of each kind that a person is shown; the table on disk has all of them.
SHOWN_ROWS = 5
#: What the rows of a kind are called above them.
HEADS = {
    "link": "one link",
    "links": "links together",
    "card": "network card",
    "worker": "worker",
    "workers": "workers together",
    "window": "window",
}


@study
def command(
    asked: StudyOptions,
    most: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Simulations that may be spent; half a minute's worth otherwise."),
    ] = None,
) -> int:
    """Say who holds a run back: what it gains from each link, card and worker that is made better."""
    scenario = asked.read()
    asked.check(scenario)
    plan = plan_blame(scenario, most)
    found, points = carried_through(len(plan.parts), partial(blame_parts, plan), asked)
    lines = asked.write(scenario, {"blame": found.table}, found.notes)
    notes = (*scenario.notes, *found.notes)
    return told(asked, lambda: document(plan, found), lambda: _print(plan, found), [points, *lines], notes=notes)


def document(plan: BlamePlan, found: Blame) -> dict[str, Any]:
    """Return what came of it as plain data: the time, the slowest link, and rows by the columns of ``blame.csv``."""
    keys = [key for key in plan.today.summary if key.startswith(("makespan", "slowest_link", "n_slowest"))]
    return {
        **{key: plan.today.summary[key] for key in keys},
        "suspects": records(found.table),
        "notes": list(found.notes),
    }


def _print(plan: BlamePlan, found: Blame) -> None:
    said = dict(answer(plan.today.summary, plan.today.sentence))
    labels = ["time", "made of", "waits for", "slow worker", "busiest worker", "window"]
    labels += [] if plan.runs else ["slowest link"]
    print_table([(label, said[label]) for label in labels if label in said])
    all_gains = found.table[[f"{change}_gain_s" for change in BY_COLUMN]].fillna(0.0)
    kinds = [(all_gains.loc[rows.index], kind, rows) for kind, rows in found.table.groupby("kind", sort=False)]
    # What gains most comes first, and not below links that gain nothing where a worker is slow.
    for gains, kind, rows in sorted(kinds, key=lambda one: -one[0].to_numpy().max()):
        gaining = rows[gains.ne(0).any(axis=1)]
        shown = gaining.head(SHOWN_ROWS).to_dict("records")
        lines = [(row["name"], *(_gain(row, change) for change in BY_COLUMN)) for row in shown]
        say()
        print_table([(HEADS[str(kind)], *BY_COLUMN.values()), *lines])
        if len(gaining) > len(shown):
            say(f"... and {len(gaining) - len(shown)} more in blame.csv")
        untried = int(found.table.loc[rows.index, all_gains.columns].isna().all(axis=1).sum())
        if nothing := len(rows) - len(gaining) - untried:
            say(f"{nothing} that gain nothing")
        if untried:
            say(f"{untried} not tried")
    say()


def _gain(row: dict[Any, Any], change: str) -> str:
    """Write what is gained; where another path becomes the longest, what this one says, too.

    >>> row = {"twice_gain_s": 1e-3, "twice_by_path_s": 2e-3, "makespan_s": 4e-3}
    >>> _gain(row, "twice"), _gain(row | {"twice_gain_s": 0.0}, "twice")
    ('1 ms less (25 %), by the path 2 ms', 'nothing, by the path 2 ms')
    """
    gain_s, by_path_s = row[f"{change}_gain_s"], row[f"{change}_by_path_s"]
    if is_missing(gain_s):
        return ""
    more_or_less = "less" if gain_s > 0 else "more"
    share = percent(abs(gain_s) / row["makespan_s"])
    gain = f"{format_seconds(abs(gain_s))} {more_or_less} ({share})" if gain_s else "nothing"
    if is_missing(by_path_s) or abs(by_path_s - gain_s) <= SAME * abs(by_path_s):
        return gain
    return f"{gain}, by the path {format_seconds(by_path_s)}"
