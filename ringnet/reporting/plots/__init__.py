"""Every plot by name, drawn from the tables on disk alone. A new plot is one function, and one entry here.

Matplotlib is imported when something is drawn, not before: a list of the plots costs nothing.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ringnet.errors import Fault, ResultsError, unknown
from ringnet.reporting.look import FORMATS, MOST_IN_FILM, Look
from ringnet.reporting.sweeps import other_keys

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ringnet.reporting.tables import RunTables


#: The variable that says how matplotlib shows pictures.
BACKEND = "MPLBACKEND"
#: Links of a network that is drawn.
MOST_LINKS = 20_000


class Plot(NamedTuple):
    """An entry of the registry for runs and sweeps: drawn from all their tables.

    Parameters
    ----------
    place : str
        ``module.function`` in this package: takes `Results`, returns a figure.
    summary : str
        One line about it.
    applies : callable
        Whether there is something to draw.
    needs : str
        The same in words.
    unasked : bool
        Whether it is drawn where no plots are named.
    """

    place: str
    summary: str
    applies: Callable[[RunTables], bool]
    needs: str
    unasked: bool = True

    def draw(self, results: RunTables) -> Figure:
        """Draw it; the plot applies to the results."""
        return _drawn(self.place, results)


class StudyPlot(NamedTuple):
    """An entry of the registry for studies: drawn from one table, below the name of the study.

    Parameters
    ----------
    place : str
        ``module.function`` in this package: takes a name and a table, returns a figure.
    table : str
        Which table it is drawn from.
    applies : callable
        Whether there is something to draw in the table.
    needs : str
        The same in words.
    """

    place: str
    table: str
    applies: Callable[[pd.DataFrame], bool]
    needs: str

    def draw(self, name: str, frame: pd.DataFrame) -> Figure:
        """Draw it; the plot applies to the table."""
        return _drawn(self.place, name, frame)


def start_matplotlib() -> None:
    """Import matplotlib, whatever the shell inherited: it does not start where it knows no backend of that name.

    That of a notebook is none in a plain shell; figures that go to files need none.
    """
    if "matplotlib" in sys.modules:
        return
    inherited = os.environ.pop(BACKEND, None)
    matplotlib = import_module("matplotlib")
    if inherited is not None:
        os.environ[BACKEND] = inherited
        with suppress(ValueError):
            matplotlib.rcParams["backend"] = inherited


def _drawn(place: str, *of: Any) -> Figure:
    start_matplotlib()
    module, _, function = place.partition(".")
    figure: Figure = getattr(import_module(f"{__name__}.{module}"), function)(*of)
    return figure


def _over(column: str) -> Callable[[RunTables], bool]:
    """Ask for several values of a key, among the points that a logarithmic axis can show."""

    def applies(results: RunTables) -> bool:
        rows = results.finished
        return len(rows.loc[(rows["makespan_s"] > 0) & (rows[column] > 0), column].unique()) > 1

    return applies


def _took_time(results: RunTables) -> bool:
    return bool((results.finished["makespan_s"] > 0).any())


def _has(table: str, column: str) -> Callable[[RunTables], bool]:
    """Ask for a single run that took time, with something to show in a column of a table."""

    def applies(results: RunTables) -> bool:
        frame = getattr(results, table)
        return frame is not None and len(results.summary) == 1 and _took_time(results) and bool(frame[column].any())

    return applies


def _has_states(results: RunTables) -> bool:
    if results.states is None:
        return False
    from ringnet.reporting.held import has_readable_states  # noqa: PLC0415 -- brings NumPy, which a list does without

    return len(results.summary) == 1 and has_readable_states(results)


def _was_trained(results: RunTables) -> bool:
    frames = results.training, results.divergence
    return all(frame is not None and len(frame["step"].unique()) > 1 for frame in frames)


def _was_repeated(results: RunTables) -> bool:
    runs = results.runs
    return runs is not None and len(results.summary) == 1 and len(runs) > 1 and bool((runs["makespan_s"] > 0).any())


_SWEEP_N, _SWEEP_S = "a sweep over the number of workers", "a sweep over the message size"
_SINGLE = "a single run that takes time, with its table {}.csv"

PLOTS: dict[str, Plot] = {
    "time-vs-workers": Plot(
        "curves.time_vs_workers",
        "time over N, a line per message size, with closed form and bound",
        _over("n_workers"),
        _SWEEP_N,
    ),
    "time-vs-message-size": Plot(
        "curves.time_vs_message_size",
        "time over message size, a line per N, with closed form and bound",
        _over("message_bytes"),
        _SWEEP_S,
    ),
    "algbw-vs-message-size": Plot(
        "curves.algbw_vs_message_size",
        "algorithm bandwidth over message size, a line per N, with closed form and bound",
        _over("message_bytes"),
        _SWEEP_S,
    ),
    "busbw-vs-message-size": Plot(
        "curves.busbw_vs_message_size",
        "bus bandwidth over message size, a line per N, with closed form and bound",
        _over("message_bytes"),
        _SWEEP_S,
    ),
    "time-vs-key": Plot(
        "curves.time_vs_key",
        "time over any other swept key",
        lambda results: _took_time(results) and bool(other_keys(results.finished)),
        "a sweep over a key other than N and message size",
    ),
    "time-distribution": Plot(
        "breakdown.time_distribution",
        "how many of repeated runs took how long, and how well median, mean and percentiles are known",
        _was_repeated,
        "a scenario of a single point that is repeated, with its table runs.csv",
    ),
    "time-breakdown": Plot(
        "breakdown.time_breakdown",
        "what the time is made of: latency, bandwidth, queueing, waiting, overheads, reducing",
        lambda results: bool(results.finished["latency_share"].notna().any()),
        "a run that takes time",
    ),
    "space-time": Plot(
        "spacetime.space_time",
        "a run as it happened: workers down, time across, a band per transfer",
        _has("transfers", "applied_s"),
        _SINGLE.format("transfers"),
    ),
    "states": Plot(
        "states.states",
        "the buffers of all workers after every step, with their values: partial, complete, sent next",
        _has_states,
        "states.csv (report: {tables: [states]}) of at most 16 workers with 16 elements, and transfers.csv",
    ),
    "link-traffic": Plot(
        "traffic.link_traffic",
        "bytes that crossed each link",
        _has("links", "bytes"),
        _SINGLE.format("links"),
    ),
    "link-utilisation": Plot(
        "traffic.link_utilisation",
        "share of the time that each link was busy",
        _has("links", "utilisation"),
        _SINGLE.format("links"),
    ),
    "utilisation-over-time": Plot(
        "traffic.utilisation_over_time",
        "how busy each link was over time, the busiest on top",
        lambda results: _has("utilisation", "utilisation")(results) and results.links is not None,
        f"{_SINGLE.format('utilisation')} and links.csv",
    ),
    "queues": Plot(
        "traffic.queues",
        "transfers that wait for the links with most queueing, over time, and whose they are",
        _has("queues", "waiting"),
        _SINGLE.format("queues"),
    ),
    "training-ways": Plot(
        "training.training_ways",
        "loss over steps, and how far the ways that are often taken for the right one part from it",
        _was_trained,
        "a training of several steps, with its tables training.csv and divergence.csv",
    ),
    "worker-waiting": Plot(
        "breakdown.worker_waiting",
        "what each worker did: sending or receiving, waiting for whom, overheads, reducing, done",
        _has("workers", "moving_s"),
        _SINGLE.format("workers"),
    ),
    "network": Plot(
        "network.network",
        "the network: workers, switches, links by their traffic, who sends to whom",
        lambda results: (
            _has("links", "bytes")(results) and results.links is not None and len(results.links) <= MOST_LINKS
        ),
        f"{_SINGLE.format('links')}, of at most {MOST_LINKS:,} links",
        unasked=False,
    ),
    "traffic-matrix": Plot(
        "traffic.traffic_matrix",
        "bytes that each worker sent to each other one",
        _has("transfers", "bytes"),
        _SINGLE.format("transfers"),
        unasked=False,
    ),
}


def _has_curves(frame: pd.DataFrame) -> bool:
    return bool((frame["makespan_s"] > 0).any()) and len(frame["message_bytes"].unique()) > 1


def _has_gains(frame: pd.DataFrame) -> bool:
    gains = [name for name in frame.columns if name.endswith("_gain_s")]
    return bool((frame[gains].fillna(0.0) > 0).any(axis=None))


def _has_rows(frame: pd.DataFrame) -> bool:
    return bool(len(frame))


_CURVES = "several message sizes, and times above zero"


STUDY_PLOTS: dict[str, StudyPlot] = {
    "step-timeline": StudyPlot(
        "training.step_timeline",
        "timeline",
        lambda frame: bool((frame["end_s"] > 0).any()),
        "a single step that takes time",
    ),
    "step-parts": StudyPlot(
        "training.step_parts",
        "step",
        lambda frame: bool((frame["step_s"] > 0).sum() > 1),
        "several steps that take time",
    ),
    "time-by-algorithm": StudyPlot("algorithms.time_by_algorithm", "compare", _has_curves, _CURVES),
    "bound-share-by-algorithm": StudyPlot("algorithms.share_by_algorithm", "compare", _has_curves, _CURVES),
    "winner-map": StudyPlot(
        "algorithms.winner_map", "compare", lambda frame: _has_curves(frame[frame["guess"].isna()]), _CURVES
    ),
    "error-by-algorithm": StudyPlot(
        "algorithms.error_by_algorithm",
        "numerics",
        lambda frame: bool((frame["relative_rms_error"] > 0).any()),
        "errors above zero",
    ),
    "gains": StudyPlot("algorithms.gains", "blame", _has_gains, "something that gains"),
    "whatif": StudyPlot(
        "algorithms.whatif",
        "whatif",
        lambda frame: bool(frame["rank"].notna().any()),
        "changes with an answer",
    ),
    "calibration": StudyPlot("calibration.calibration_plot", "calibrate", _has_rows, "a measurement"),
    "prediction": StudyPlot("calibration.prediction_plot", "predict", _has_rows, "a prediction"),
}


def choose(results: RunTables, names: Sequence[str] | None = None) -> tuple[list[str], list[str]]:
    """Choose the plots of a run or a sweep to draw.

    Parameters
    ----------
    results : Results
    names : sequence of str, optional
        Wanted plots; by default every one that applies and is drawn unasked.

    Returns
    -------
    chosen : list of str
        Names, in the order of the registry.
    left_out : list of str
        For each one that was asked for and does not apply, a sentence that says what it needs.

    Raises
    ------
    ResultsError
        For names that are no plots.
    """
    unasked = [name for name, plot in PLOTS.items() if plot.unasked]
    return _chosen(PLOTS, unasked, names, lambda plot: plot.applies(results), "there is no such plot")


def choose_of_study(
    tables: Mapping[str, pd.DataFrame], names: Sequence[str] | None = None
) -> tuple[list[str], list[str]]:
    """Choose the plots of a study to draw, as `choose` does; ``tables`` are its tables by name."""
    return _chosen(
        STUDY_PLOTS,
        [*STUDY_PLOTS],
        names,
        lambda plot: plot.table in tables and plot.applies(tables[plot.table]),
        "there is no such plot of a study",
    )


AnyPlot = TypeVar("AnyPlot", Plot, StudyPlot)


def _chosen(
    plots: Mapping[str, AnyPlot],
    unasked: Sequence[str],
    names: Sequence[str] | None,
    applies: Callable[[AnyPlot], bool],
    message: str,
) -> tuple[list[str], list[str]]:
    if faults := [unknown(message, name, plots, "names") for name in names or () if name not in plots]:
        raise ResultsError(*faults)
    wanted = unasked if names is None else names
    chosen = [name for name, plot in plots.items() if name in wanted and applies(plot)]
    left_out = [name for name in dict.fromkeys(names or ()) if name not in chosen]
    return chosen, [f"plot {name} is not drawn: it needs {plots[name].needs}" for name in left_out]


def draw(results: RunTables, name: str, ax: Axes | None = None) -> Figure:
    """Draw one plot of a run or a sweep, on axes of a user's if there are any.

    Raises
    ------
    ResultsError
        There is no such plot, it does not apply, or it has several panels and there are axes for one.
    """
    choose_one(choose(results, [name]))
    with _on(ax):
        return PLOTS[name].draw(results)


def draw_of_study(
    tables: Mapping[str, pd.DataFrame], title: str, name: str | None = None, ax: Axes | None = None
) -> Figure:
    """Draw one plot of a study, as `draw` does; the first that applies where no name is given."""
    name = choose_one(choose_of_study(tables, None if name is None else [name]))
    plot = STUDY_PLOTS[name]
    with _on(ax):
        return plot.draw(title, tables[plot.table])


def choose_one(found: tuple[list[str], list[str]]) -> str:
    """Return the first plot that was chosen; `ResultsError` for those that were left out, or where there is none."""
    chosen, left_out = found
    if left_out or not chosen:
        raise ResultsError(*map(Fault, left_out or ["there is nothing to draw"]))
    return chosen[0]


def _on(ax: Axes | None) -> AbstractContextManager[None]:
    if ax is None:
        return nullcontext()
    start_matplotlib()
    from ringnet.reporting.plots.canvas import drawing_on  # noqa: PLC0415 -- brings matplotlib, half a second

    return drawing_on(ax)


def draw_to(figures: Iterable[tuple[Mapping[str, Path], Callable[[], Figure]]], look: Look) -> None:
    """Draw figures as they shall look, and save each to a file for each format: ``png``, ``svg``, ``pdf``."""
    start_matplotlib()
    from ringnet.reporting.plots.canvas import looking, save  # noqa: PLC0415 -- brings matplotlib, half a second

    with looking(look):
        _share([partial(lambda targets, draw: save(draw(), targets), *one) for one in figures])


def _share(tasks: Sequence[Callable[[], None]]) -> None:
    """Do tasks on two cores, in this process and in a double of it, which has imported and read all that this one has.

    A process that is not a double would take longer to start than most figures take to be drawn. What fails in the
    double is done again here, to fail with its own words.
    """
    from multiprocessing import current_process, get_context  # noqa: PLC0415 -- a list of plots is drawn by nobody

    if len(tasks) <= 1 or sys.platform != "linux" or os.cpu_count() == 1 or current_process().daemon:
        for task in tasks:
            task()
        return
    waiting, end = os.pipe()  # of numbers of tasks, each read by one of the two
    os.write(end, bytes(range(len(tasks))))
    os.close(end)

    def work() -> None:
        while number := os.read(waiting, 1):
            tasks[number[0]]()

    def work_beside() -> None:
        with suppress(BaseException):
            work()
            os._exit(0)
        os._exit(1)

    double = get_context("fork").Process(target=work_beside)
    with warnings.catch_warnings():
        # The threads that Python warns of are idle ones of libraries, which take part in nothing that is drawn.
        warnings.filterwarnings("ignore", ".*multi-threaded", DeprecationWarning)
        double.start()
    try:
        work()
    except BaseException:
        double.kill()
        raise
    finally:
        double.join()
        os.close(waiting)
    if double.exitcode != 0:
        for task in tasks:
            task()


def save_drawn(place: str, target: Path, *of: Any) -> None:
    """Draw a figure that is in no registry, and write it as its name ends: ``module.function``, and what that takes.

    Raises
    ------
    ResultsError
        The file cannot be written.
    """
    from ringnet.reporting.atomic import written_file  # noqa: PLC0415 -- most figures are drawn into a folder

    figure = _drawn(place, *of)
    from ringnet.reporting.plots.canvas import save  # noqa: PLC0415 -- brings matplotlib

    ending = target.suffix.lstrip(".").lower()
    with written_file(target) as path:
        save(figure, {ending if ending in FORMATS else "png": path})


def film_to(path: Path, results: RunTables, look: Look) -> str:
    """Write a single run as a film, in the format that the name ends in; or return why there is none.

    Raises
    ------
    ResultsError
        The file cannot be written.
    """
    from ringnet.reporting.atomic import written_file  # noqa: PLC0415 -- only a film is written here
    from ringnet.reporting.held import holding  # noqa: PLC0415

    n_workers = int(results.summary["n_workers"].iloc[0])
    if n_workers > MOST_IN_FILM:
        return f"there is no film: it shows up to {MOST_IN_FILM} workers, and these are {n_workers}"
    if results.transfers is None or results.transfers.empty or not _took_time(results):
        return "there is no film: nothing moves, or no transfers were kept"
    if holding(results) is None:
        return "there is no film: the table of transfers does not say who holds what, as where switches reduce"
    start_matplotlib()
    from ringnet.reporting.plots.canvas import looking  # noqa: PLC0415 -- brings matplotlib

    with looking(look), written_file(path) as target:
        import_module(f"{__name__}.film").save_film(results, target, path.suffix.lower().lstrip("."))
    return ""
