"""What is told of one run: labels and values in words, for a terminal, and as HTML for a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import inf
from typing import Any, TypeAlias

from ringnet.analysis.spread import FIGURES
from ringnet.engines.trace import PATH_PARTS
from ringnet.errors import and_more
from ringnet.payload.dtypes import ITEMSIZES
from ringnet.units import counted, format_bytes, format_count, format_rate, format_seconds

Row: TypeAlias = Mapping[str, Any]

#: Relative difference up to which what a worker sent is what the algorithm says.
_ROUNDING = 1e-9
#: Share of the time from which a part of it is told.
TOLD_SHARE = 0.005


def answer(row: Row, made_of: str = "") -> list[tuple[str, str]]:
    """Return the answer of one run, as labels and values; what does not apply is left out.

    Parameters
    ----------
    row : mapping
        A row of the summary, as `RunResult.summary` or as read back.
    made_of : str, optional
        What the time is made of, in words; by default put together from the shares of the row.

    Examples
    --------
    >>> answer({"makespan_s": 2.36e-3, "algbw_Bps": 28.4e9, "sum_ok": None})
    [('time', '2.36 ms'), ('algbw', '28.4 GB/s'), ('sum', 'not verified: no payload was carried')]
    """
    known = {key: value for key, value in row.items() if not is_missing(value)}
    told = {"made of": made_of} if made_of else {}
    lines = [(label, told.get(label) or say(known)) for label, say in _LINES]
    return [(label, value) for label, value in lines if value]


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None, NA or not a number."""
    # Without pandas no cell is its NA, and it is not imported to learn that.
    na = getattr(sys.modules.get("pandas"), "NA", None)
    return value is None or value is na or value != value  # noqa: PLR0124 -- not a NaN


def _formatted(key: str, form: Callable[[Any], str]) -> Callable[[Row], str]:
    return lambda row: form(row[key]) if key in row else ""


def _time(row: Row) -> str:
    """Say the time: of which of many runs, and where its last digits are chaos, how well it is known.

    >>> _time({"makespan_s": 5.597e-3, "moved_share": 0.00061})
    '5.597 ms, known to 0.061 %'
    """
    if "makespan_s" not in row:
        return ""
    many = f", the run in the middle of {format_count(int(row['n_runs']))}" if row.get("n_runs", 1) > 1 else ""
    known = f", known to {percent(row['moved_share'])}" if "moved_share" in row else ""
    return f"{format_seconds(row['makespan_s'])}{many}{known}"


def figure_of(name: str) -> Callable[[Row], str]:
    """Return what tells a figure of many runs, and how well it is known."""

    def say(row: Row) -> str:
        if f"{name}_s" not in row or row.get("n_runs", 1) == 1:
            return ""
        low, high = (row.get(f"{name}_{end}_s") for end in ("low", "high"))
        if low is None and high is None:
            return f"{format_seconds(row[f'{name}_s'])} (of too few runs to say how sure that is)"
        ends = [f"from {format_seconds(low)}" if low is not None else "from below all that were seen"]
        ends.append(f"to {format_seconds(high)}" if high is not None else "to above all that were seen")
        return f"{format_seconds(row[f'{name}_s'])} ({' '.join(ends)}, 95 % sure)"

    return say


def _bound(row: Row) -> str:
    if not {"bound_share", "collective_bound_s"} <= row.keys():
        return ""
    if "equivalent" in row:
        return f"not known: the links are a ring's equivalent ({row['equivalent']})"
    bound = format_seconds(row["collective_bound_s"])
    cut = f", for what must go {row['bound_cut']}" if "bound_cut" in row else ""
    return f"{percent(row['bound_share'])} (no algorithm takes less than {bound} here{cut})"


def _closed_form(row: Row) -> str:
    return format_seconds(row["closed_form_s"]) if row.get("closed_form_s") else ""


def percent(share: float) -> str:
    """Write a share; what is not quite all, or not quite nothing, is not said to be so.

    >>> percent(0.934), percent(0.99999), percent(1.0), percent(0.00064), percent(1e-7)
    ('93.4 %', '99.9 %', '100 %', '0.064 %', 'under 0.001 %')
    """
    hundredths = min(100 * share, 99.9) if share < 1 else 100 * share
    if 0 < hundredths < 0.001:  # noqa: PLR2004 -- shorter than it would be exact
        return "under 0.001 %"
    return f"{hundredths:.1f} %".replace(".0 %", " %") if hundredths >= 1 else f"{hundredths:.2g} %"


def told_shares(row: Row) -> dict[str, float]:
    """Return of what part the time is by how much; nothing where nothing took time.

    What waited behind transfers of the same worker waited for bandwidth, and is told as that.
    """
    shares = {part: row.get(f"{part}_share", 0.0) for part in PATH_PARTS}
    if any(map(is_missing, shares.values())):
        return {}
    own = row.get("own_queueing_share")
    own = 0.0 if is_missing(own) else own
    return shares | {"bandwidth": shares["bandwidth"] + own, "queueing": shares["queueing"] - own}


def made_of_words(row: Row, in_front: Callable[[], str] = str) -> str:
    """Say what the time is made of, the largest part first; and whom it queued behind, who is asked for where it did.

    >>> made_of_words({"latency_share": 0.93, "bandwidth_share": 0.07, "queueing_share": 0.0})
    '93 % latency, 7 % bandwidth'
    >>> made_of_words({"bandwidth_share": 0.25, "queueing_share": 0.75, "own_queueing_share": 0.7})
    '95 % bandwidth, 5 % queueing'
    >>> made_of_words({"bandwidth_share": 0.25, "queueing_share": 0.75}, lambda: "worker 3 and 2 more")
    '75 % queueing behind worker 3 and 2 more, 25 % bandwidth'
    """
    shares = dict(sorted(told_shares(row).items(), key=lambda one: -one[1]))
    said = {part: f"{100 * share:.0f} % {part}" for part, share in shares.items() if share >= TOLD_SHARE}
    if "queueing" in said and (behind := in_front()):
        said["queueing"] += f" behind {behind}"
    return ", ".join(said.values())


def _late(row: Row) -> str:
    """Name the worker that started late, and how many with it, where that is what the run waited for."""
    if "late_worker" not in row or row.get("waiting_share", 0.0) < TOLD_SHARE:
        return ""
    names = and_more(f"worker {row['late_worker']}", row.get("n_late_workers", 1) - 1)
    late = f"{names}, late by {format_seconds(row['late_by_s'])}"
    gain_s = row.get("late_gain_s")
    if gain_s is None:
        return late
    after = format_seconds(row["makespan_s"] - gain_s)
    return f"{late}; in time {percent(gain_s / row['makespan_s'])} less ({after})"


def _busiest(row: Row) -> str:
    """Name the worker whose processor stands out though it is no slower than others, or nobody tried that.

    >>> _busiest({"busiest_worker": 7, "n_busiest_workers": 2, "busiest_worker_share": 0.8})
    '7 and 1 more, overheads and reducing 80 % of the time'
    """
    if "busiest_worker" not in row or "busiest_worker_gain_s" in row:
        return ""
    name = and_more(str(row["busiest_worker"]), row["n_busiest_workers"] - 1)
    return f"{name}, overheads and reducing {percent(row['busiest_worker_share'])} of the time"


def _slow_worker(row: Row) -> str:
    """Name the worker that is slower than the others, where that costs time."""
    gain_s = row.get("busiest_worker_gain_s", 0.0)
    if gain_s <= 0 or gain_s < TOLD_SHARE * row["makespan_s"]:
        return ""
    name = and_more(str(row["busiest_worker"]), row["n_busiest_workers"] - 1)
    busy = f"overheads and reducing {percent(row['busiest_worker_share'])} of the time"
    return f"{name}, {_less(row, gain_s)} if as good as the best, {busy}"


def _window(row: Row) -> str:
    """Say what the window costs, where it holds the run back."""
    gain_s = row.get("window_gain_s", 0.0)
    is_told = gain_s > 0 and gain_s >= TOLD_SHARE * row["makespan_s"]
    return f"{_less(row, gain_s)} without it" if is_told else ""


def _less(row: Row, gain_s: float) -> str:
    """Say what the run takes then, and by how much that is less."""
    return f"the run takes {format_seconds(row['makespan_s'] - gain_s)} ({percent(gain_s / row['makespan_s'])} less)"


def _trouble(row: Row) -> str:
    """Say what went wrong, and what it cost."""
    if "trouble" not in row:
        return ""
    costs = format_seconds(row["trouble_s"]) if row["trouble_s"] > 0 else "nothing"
    lost = f"; {format_count(row['lost_packets'])} packets lost" if row.get("lost_packets") else ""
    if row.get("resent_bytes"):
        lost += f"; {format_bytes(row['resent_bytes'])} sent again"
    return f"{row['trouble']}: costs {costs}{lost}"


def slowest_name(row: Row) -> str:
    """Name the slowest link, and how many change with it.

    >>> slowest_name({"slowest_link": "0->leaf0", "n_slowest_links": 24}), slowest_name({"slowest_link": "0->1"})
    ('0->leaf0 and 23 more', '0->1')
    """
    return and_more(str(row["slowest_link"]), row.get("n_slowest_links", 1) - 1)


def _slowest(row: Row) -> str:
    if "equivalent" in row:
        return "not known: the links are a ring's equivalent"
    gain_s = row.get("slowest_link_gain_s")
    if "slowest_link" not in row:
        return _no_slowest(row) if row.get("n_workers", 0) > 1 else ""
    busy = row.get("slowest_link_utilisation")
    said = [slowest_name(row), _gain(row, gain_s, row.get("n_slowest_links", 1) - 1)]
    said.append(f"busy {percent(busy)} of the time" if busy is not None else "")
    queue = row.get("longest_queue", 0)
    return ", ".join(filter(None, [*said, f"longest queue of any link {queue}" if queue else ""]))


def _no_slowest(row: Row) -> str:
    """Say why no link is named: nothing gains, or nobody tried."""
    by = row.get("slowest_link_by")
    if by is None:
        return "not looked for where numbers are drawn: `ringnet blame` does" if "drawn" in row else ""
    if by == "load":
        return "not tried, since that takes long here: `ringnet blame` does"
    if by == "likeness":
        return "none: all links in use are alike"
    if row.get("slowest_link_change") == "twice as fast":
        return "none: no kind of links alone gains 1 % if twice as fast"
    return "none: links as good as their best likes gain nothing"


def _gain(row: Row, gain_s: float | None, others: int) -> str:
    """Say what a run gains if its slowest links change, or that nobody tried."""
    if gain_s is None:
        return "by the path, not confirmed (`ringnet blame` simulates it)"
    change = row["slowest_link_change"].replace("its best like", "their best likes" if others else "its best like")
    more = ", others not tried (`ringnet blame` does)" if row.get("slowest_link_by") == "trials" else ""
    return f"{_less(row, gain_s)} if {change}{more}"


def _traffic(row: Row) -> str:
    sent, expected = row.get("bytes_sent_per_worker"), row.get("expected_bytes_per_worker")
    if sent is None or expected is None:
        return "" if sent is None else format_bytes(sent)
    if abs(sent - expected) <= _ROUNDING * expected:
        return f"{format_bytes(sent)}, as expected"
    if sent > expected + _unevenness(row):  # a tree's root, or an algorithm that sends whole buffers
        return f"{format_bytes(sent)} at most; busbw counts {format_bytes(round(expected))}"
    if sent < expected - _unevenness(row):  # switches add the rest
        return f"{format_bytes(sent)} at most; busbw counts {format_bytes(round(expected))}, as if no switch reduced"
    return f"{format_count(sent)} B at most; {expected:,.2f} B if all chunks were alike".replace(".00 B", " B")


def _unevenness(row: Row) -> float:
    """Return the most bytes by which a worker's traffic grows because chunks differ: an element for each transfer."""
    if not {"n_transfers", "n_workers", "dtype"} <= row.keys():
        return inf
    return float(row["n_transfers"] / row["n_workers"] * ITEMSIZES[row["dtype"]])


def _verified(row: Row) -> str:
    if "sum_ok" not in row:
        return "not verified: no payload was carried"
    count = format_count(int(row.get("verified_elements", 0)))
    if not row["sum_ok"]:
        return f"WRONG: see the error ({count} elements compared)"
    whose = f", the sum of the {row['survivors']} survivors" if "survivors" in row else ""
    return f"right: {count} elements verified{whose}{_rounding(row)}"


def _rounding(row: Row) -> str:
    if not row.get("max_abs_error"):
        return ""
    error = f"{row['max_abs_error']:.3g}"
    if "max_error_share" not in row:
        return f", largest error {error}"
    return f", largest error {error} ({percent(row['max_error_share'])} of what rounding allows)"


def _beyond(row: Row) -> str:
    if "is_beyond" not in row:
        return ""
    return "extrapolated beyond what was measured" if row["is_beyond"] else "within what was measured"


def _trained(row: Row) -> str:
    """Say of a training how far it came, and that its time is that of one step."""
    if "training_steps" not in row:
        return ""
    n, skipped = int(row["training_steps"]), int(row.get("skipped_steps", 0))
    steps = f"{counted(n, 'step')}{f', {skipped} of them skipped' if skipped else ''}"
    loss = f", loss {row['loss']:.6g}" if "loss" in row else ""
    return f"{steps}{loss}; the time is that of one all-reduce, {format_seconds(row['all_reduce_s'])} for all"


def _alike(row: Row) -> str:
    """Say of a training whether all workers held the same after every step."""
    if "state_agrees" not in row:
        return ""
    return "alike after every step, bit for bit" if row["state_agrees"] else "NOT alike: see the error"


def _one_process(row: Row) -> str:
    """Say of a training how far it is from one process: each gradient, and the parameters of all steps so far."""
    said = [f"gradients alike to {row['gradient_digits']:.1f} digits"] if "gradient_digits" in row else []
    if "whole_batch_share" in row:
        share = row["whole_batch_share"]
        said.append(f"{percent(share)} of what rounding allows" if share else "gradients the same")
    if row.get("exact_steps"):
        n, share = int(row["exact_steps"]), row["exact_share"]
        steps = counted(n, "step")
        far = f"{percent(share)} of what {steps} allow{'s' if n == 1 else ''}" if share else f"too, for {steps}"
        said.append(f"parameters {far}")
    return ", ".join(said)


_LINES: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("time", _time),
    *((name, figure_of(name)) for name in FIGURES),
    ("algbw", _formatted("algbw_Bps", format_rate)),
    ("busbw", _formatted("busbw_Bps", format_rate)),
    ("of the bound", _bound),
    ("closed form", _closed_form),
    ("made of", made_of_words),
    ("trouble", _trouble),
    ("on failure", _formatted("on_failure", str)),
    ("waits for", _late),
    ("slow worker", _slow_worker),
    ("busiest worker", _busiest),
    ("window", _window),
    ("slowest link", _slowest),
    ("links", _beyond),
    ("shape", _formatted("shape", str)),
    ("drawn", _formatted("drawn", str)),
    ("sent per worker", _traffic),
    ("sum", _verified),
    ("training", _trained),
    ("workers", _alike),
    ("one process", _one_process),
    ("error", _formatted("error", str)),
)


def result_html(row: Mapping[str, Any], made_of: str = "", notes: Iterable[str] = ()) -> str:
    """Return one run as a table of labels and values, its name above and its notes below.

    Parameters
    ----------
    row : mapping
        A row of the summary.
    made_of : str, optional
        What the time is made of, in words.
    notes : iterable of str
        What a person should know to read the numbers.

    Examples
    --------
    >>> "&lt;b&gt;" in result_html({"name": "<b>", "sum_ok": None})
    True
    """
    cells = "".join(f"<tr>{_cell('th', label)}{_cell('td', value)}</tr>" for label, value in answer(row, made_of))
    return f"<div>{caption_html(row.get('name'))}<table><tbody>{cells}</tbody></table>{list_html(notes)}</div>"


def row_html(tag: str, texts: Sequence[str]) -> str:
    """Return a row of cells, escaped."""
    return f"<tr>{''.join(_cell(tag, text) for text in texts)}</tr>"


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="text-align: left">{escape(text)}</{tag}>'


def caption_html(name: object) -> str:
    """Return a name as a heading, escaped; nothing for none."""
    return f"<p><b>{escape(str(name))}</b></p>" if name else ""


def list_html(notes: Iterable[str]) -> str:
    """Return notes as a list, escaped; nothing for none."""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f"<ul>{items}</ul>" if items else ""
