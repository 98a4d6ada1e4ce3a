"""Two runs side by side: what was changed in the scenario, and what that changed in the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from ringnet.errors import Fault, ResultsError
from ringnet.reporting.columns import ANSWERS
from ringnet.reporting.sweeps import telling
from ringnet.reporting.tables import Results


class Difference(NamedTuple):
    """What `diff_results` found; the frames have no rows where nothing differs.

    Parameters
    ----------
    scenario : DataFrame
        ``path, a, b``: keys of the scenario that differ; ``None`` where one has no such key.
    answer : DataFrame
        One column per key that the points are matched on, then ``column, a, b, ratio``: cells of the summary
        that differ, and b/a where both are numbers and a is not zero.
    only_a, only_b : DataFrame
        Points that the other does not have, by the keys that they were matched on.
    """

    scenario: pd.DataFrame
    answer: pd.DataFrame
    only_a: pd.DataFrame
    only_b: pd.DataFrame


def diff_results(a: Results, b: Results) -> Difference:
    """Compare two folders of results; points of sweeps are matched on what either sweep varies.

    Raises
    ------
    ResultsError
        The points cannot be told apart by the keys that both have: the sweeps vary different keys.
    """
    keys = _matching_keys(a, b)
    rows_a, rows_b = _by_key(a.summary, keys), _by_key(b.summary, keys)
    common = [key for key in rows_a if key in rows_b]
    changes = [(*key, *change) for key in common for change in _changes(rows_a[key], rows_b[key])]
    return Difference(
        scenario=pd.DataFrame(_changed_keys(a, b), columns=["path", "a", "b"], dtype=object),
        answer=pd.DataFrame(changes, columns=[*keys, "column", "a", "b", "ratio"], dtype=object),
        only_a=pd.DataFrame([key for key in rows_a if key not in rows_b], columns=keys, dtype=object),
        only_b=pd.DataFrame([key for key in rows_b if key not in rows_a], columns=keys, dtype=object),
    )


def _matching_keys(a: Results, b: Results) -> list[str]:
    """Keys that vary within a or within b; a key that only one of them has cannot match anything."""
    keys = dict.fromkeys([*telling(a.summary), *telling(b.summary)])
    return [key for key in keys if key in a.summary.columns and key in b.summary.columns]


def _by_key(summary: pd.DataFrame, keys: list[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    records = cast("list[dict[str, Any]]", summary.to_dict("records"))
    rows = {tuple(row[key] for key in keys): row for row in records}
    if len(rows) < len(summary):
        message = "the points of the two sweeps cannot be matched: they vary different keys"
        raise ResultsError(Fault(message, value=", ".join(keys) or "no key in common"))
    return rows


def _changes(row_a: Mapping[str, Any], row_b: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield every cell of the answer, and the engine, that differs between two points."""
    for column in ("engine", *ANSWERS):
        value_a, value_b = _plain(row_a.get(column)), _plain(row_b.get(column))
        if value_a != value_b:
            yield column, value_a, value_b, _ratio(value_a, value_b)


def _plain(value: Any) -> Any:
    """Return a cell as Python has it, every way of being missing as None."""
    if value is None or value is pd.NA or value != value:  # noqa: PLR0124 -- not a NaN
        return None
    return value.item() if isinstance(value, np.generic) else value


def _ratio(a: Any, b: Any) -> float | None:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (a, b))
    return b / a if numbers and a else None


def _changed_keys(a: Results, b: Results) -> list[tuple[str, Any, Any]]:
    flat_a, flat_b = dict(_flat(a.run_info["scenario"])), dict(_flat(b.run_info["scenario"]))
    paths = dict.fromkeys([*flat_a, *flat_b])
    return [
        (path, flat_a.get(path), flat_b.get(path)) for path in paths if flat_a.get(path) != flat_b.get(path)
    ]


def _flat(document: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf with its path; a list of plain values is one leaf, as it stands in the scenario.

    >>> list(_flat({"network": {"bandwidth": "50 GB/s", "links": [{"a": 1}]}, "workers": [2, 4]}))
    [('network.bandwidth', '50 GB/s'), ('network.links[0].a', 1), ('workers', '[2, 4]')]
    """
    for key, value in document.items():
        path = f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping):
            yield from _flat(value, path)
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                yield from _flat({f"{path}[{index}]": item})
        else:
            yield path, json.dumps(value) if isinstance(value, list) else value
