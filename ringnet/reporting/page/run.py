"""What a page shows of a single run: its tables, who holds what when, its network laid out, or why that is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ringnet.analysis.answer import is_missing, percent
from ringnet.array_types import FloatArray, IntArray
from ringnet.engines.trace import TIMES
from ringnet.payload.dtypes import ITEMSIZES
from ringnet.reporting.columns import RUN_TABLES
from ringnet.reporting.held import holdings
from ringnet.reporting.page.packing import MOST, Packer, check_cells
from ringnet.reporting.plots import MOST_LINKS
from ringnet.reporting.plots.positions import WIDTH, is_place, lay_out
from ringnet.reporting.results import Results

#: Transfers that a browser draws one by one; beyond, shares of time.
MOST_TRANSFERS = 100_000
#: Nodes that a browser lays out, and signs of the longest name of one: what is read from disk may say anything.
MOST_NODES, LONGEST_NAME = 20_000, 200
#: Links or workers that are named for each part of the path.
MOST_BLAMED = 4


class Blamed(NamedTuple):
    """A part of the path that ended last: for how long, which share of the time that is, and whose it mostly is."""

    part: str
    seconds: float
    share: float
    mostly: str


def held_back(path: pd.DataFrame | None) -> list[Blamed]:
    """Return what the path that ended last is made of, the longest first, and which links or workers that was."""
    if path is None or path.empty:
        return []
    whose = path["link"].where(path["link"].notna(), "worker " + path["worker"].astype(str))
    lasted = (path["to_s"] - path["from_s"]).rename("seconds")
    total_s = float(lasted.sum()) or 1.0
    found = []
    for part, rows in lasted.groupby(path["part"]):
        owners = rows.groupby(whose).sum().sort_values(ascending=False, kind="stable")
        shown = zip(owners.index.astype(str), owners.head(MOST_BLAMED).tolist(), strict=False)
        names = [f"{name} {percent(one_s / total_s)}" for name, one_s in shown]
        names += [f"{len(owners) - len(names)} others"] if len(owners) > len(names) else []
        seconds = float(rows.sum())
        found.append(Blamed(str(part), seconds, seconds / total_s, ", ".join(names)))
    return sorted(found, key=lambda one: -one.seconds)


def run_header(results: Results, packer: Packer) -> dict[str, Any]:
    """Pack all that a page shows of a single run.

    Raises
    ------
    ResultsError
        A table that was read back holds what no run writes.
    """
    row = {str(key): value for key, value in results.summary.iloc[0].items()}
    transfers = _checked(results.transfers)
    many = transfers is not None and len(transfers) > MOST_TRANSFERS
    return {
        "tables": {
            name: packer.table(name, frame) for name, frame in _tables(results) if name != "transfers" or not many
        },
        "workers": _n_workers(results, row),
        "schedule": None if transfers is None or many else _schedule(transfers, row, packer),
        "lanes": lanes(transfers, packer) if transfers is not None and many else None,
        "network": _network(results, row, packer),
    }


def _tables(results: Results) -> Iterator[tuple[str, pd.DataFrame]]:
    for name in RUN_TABLES:
        frame = getattr(results, name)
        if frame is not None and len(frame):
            yield name, frame


def _n_workers(results: Results, row: Mapping[str, Any]) -> int:
    return int(row["n_workers"]) if results.workers is None else len(results.workers)


def _checked(transfers: pd.DataFrame | None) -> pd.DataFrame | None:
    """Return the rows of transfers if there are any, and they are such as a run writes: no others are followed."""
    if transfers is None or transfers.empty:
        return None
    whole = dict.fromkeys(("src", "dst", "chunk", "step", "channel", "bytes"), MOST)
    check_cells(transfers, "transfers.csv", whole, TIMES)
    return transfers


def why_no_schedule(results: Results) -> str:
    """Say why there is no schedule to be shown; nothing if there is one."""
    row = results.summary.iloc[0]
    if results.transfers is not None and len(results.transfers):
        return ""
    if is_missing(row["makespan_s"]):
        return "The run did not come to an end."
    n_transfers = 0 if is_missing(row["n_transfers"]) else int(row["n_transfers"])
    if not n_transfers:
        return "Nothing moved: there is one worker."
    tables = results.run_info.get("scenario", {}).get("report", {})
    if isinstance(tables, dict) and "transfers" not in tables.get("tables", ["transfers"]):
        return "The rows of transfers were not written: report.tables of the scenario leaves transfers out."
    return f"The rows of its {n_transfers:,} transfers were not kept: run it again with --transfers all."


def _schedule(transfers: pd.DataFrame, row: Mapping[str, Any], packer: Packer) -> dict[str, Any]:
    """Pack what a browser needs to say who holds what when; the times are in the table of transfers."""
    n_workers, itemsize = int(row["n_workers"]), ITEMSIZES.get(str(row["dtype"]), 1)
    told: dict[str, Any] = {
        # A ring's last worker sends to the first: below it there is a second row of that one.
        "again": bool(((transfers["dst"] - transfers["src"]) % n_workers == 1).all()) and n_workers > 2,  # noqa: PLR2004
        "chunks": int(transfers["chunk"].max()) + 1,
    }
    n_elements = 0 if is_missing(row["message_bytes"]) else int(row["message_bytes"]) // itemsize
    found = holdings(transfers, str(row["collective"]), n_workers, n_elements, itemsize)
    if isinstance(found, str):
        return told | {"why": found}
    return told | {
        "chunks": len(found.sizes),
        "nodes": len(found.first),
        "complete": found.complete,
        **{name: packer.add(getattr(found, name).ravel()) for name in ("first", "carried", "count", "sizes")},
    }


def _network(results: Results, row: Mapping[str, Any], packer: Packer) -> dict[str, Any]:
    """Pack where nodes stand and which of them each link joins; or say why not."""
    links, workers = results.links, results.workers
    if links is None or links.empty:
        return {"why": "There is no links.csv: the network is not drawn."}
    n_workers = _n_workers(results, row)
    if len(links) > MOST_LINKS or n_workers > MOST_NODES:
        return {"why": f"A network of at most {MOST_LINKS:,} links is drawn; this one has {len(links):,}."}
    starts, ends = ([str(name) for name in links[end]] for end in ("from", "to"))
    if max(map(len, [*starts, *ends])) > LONGEST_NAME:
        return {"why": f"The network is not drawn: a node's name has more than {LONGEST_NAME} signs."}
    places = [str(place) for place in range(n_workers)]
    if workers is not None and "place" in workers:
        places = [str(place) for place in workers["place"]]
    layout = lay_out(zip(starts, ends, strict=True), places)
    numbers = {node: number for number, node in enumerate(layout.points)}
    seats = {place: worker for worker, place in enumerate(places)}
    points = np.array([*layout.points.values()], dtype=np.float64).reshape(-1, 2)
    rows = {node: number for number, group in enumerate(layout.rows) for node in group}
    names = pd.DataFrame({"name": [*layout.points]})
    return {
        "size": [WIDTH, layout.height],
        "radius": min(0.105, 0.34 * layout.room),
        "layered": bool(layout.rows),
        "nodes": packer.table("links", names),
        "x": packer.add(points[:, 0]),
        "y": packer.add(layout.height - points[:, 1]),
        "row": packer.add(np.array([rows.get(node, -1) for node in numbers])),
        "worker": packer.add(np.array([seats.get(node, -1) for node in numbers])),
        "place": packer.add(np.array([is_place(node) for node in numbers], dtype=np.int64)),
        **{
            name: packer.add(np.array([numbers.get(node, -1) for node in nodes], dtype=np.int64))
            for name, nodes in (("from", starts), ("to", ends))
        },
    }


#: Rows and spans of time of the picture; of more workers, neighbours share a row.
MOST_LANES, N_SPANS = 512, 1000
#: Phases that are told apart; what comes after them is shown with the last.
MOST_PHASES = 4


def lanes(transfers: pd.DataFrame, packer: Packer) -> dict[str, Any]:
    """Pack shares of time, from 0 to 255, by phase, row and span.

    Parameters
    ----------
    transfers : DataFrame
        At least one, all times finite.
    packer : Packer
    """
    n_nodes = int(transfers["src"].max()) + 1
    each = -(-n_nodes // MOST_LANES)
    n_rows, end_s = -(-n_nodes // each), float(transfers["applied_s"].max()) or 1.0
    phases = list(dict.fromkeys(transfers["phase"]))
    number = transfers["phase"].map({name: min(at, MOST_PHASES - 1) for at, name in enumerate(phases)})
    shares = []
    for phase in range(min(len(phases), MOST_PHASES)):
        rows = transfers[(number == phase).to_numpy()]
        begun, ended = (rows[name].to_numpy(np.float64) * (N_SPANS / end_s) for name in ("started_s", "sent_s"))
        busy = covered(rows["src"].to_numpy(np.int64) // each, begun, ended, (n_rows, N_SPANS))
        shares.append(np.clip(np.ceil(busy / each * 255), 0, 255).astype(np.int64))
    return {
        "transfers": len(transfers),
        "end_s": end_s,
        "each": each,
        "rows": n_rows,
        "spans": N_SPANS,
        "phases": [str(name) for name in phases[:MOST_PHASES]],
        "shares": packer.add(np.concatenate([share.ravel() for share in shares])),
    }


def covered(row: IntArray, begun: FloatArray, ended: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Return by how much intervals cover each cell of a row, added up.

    Parameters
    ----------
    row : ndarray of int64, shape (n_intervals,)
    begun, ended : ndarray, shape (n_intervals,)
        In cells.
    shape : (n_rows, n_cells)

    Examples
    --------
    >>> covered(np.array([0, 0]), np.array([0.5, 2.0]), np.array([2.25, 2.5]), (1, 3)).tolist()
    [[0.5, 1.0, 0.75]]
    """
    n_rows, n_cells = shape
    # How much lies before each edge, summed over the intervals that have begun: a difference gives each cell its part.
    before = np.zeros((n_rows, n_cells + 2))
    for ends, sign in ((begun, 1.0), (ended, -1.0)):
        cell = np.clip(np.floor(ends).astype(np.int64), 0, n_cells - 1)
        np.add.at(before, (row, cell), sign * (cell + 1 - ends))
        np.add.at(before, (row, cell + 1), sign * (ends - cell))
    found: FloatArray = np.cumsum(before, axis=1)[:, :n_cells]
    return np.maximum(found, 0.0)
