"""The command line: every command with its options. What a command does is imported when it is called.

Exit codes: 0 all is well, 1 a bug in ringnet, 2 a mistake in what was given, 3 a run that cannot finish, 4 a
sum that is wrong, 5 some points of a sweep failed, 130 stopped by Ctrl-C.
"""

# ruff: noqa: PLC0415 -- `ringnet --help` answers in a third of a second, pandas alone takes longer

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ringnet._version import __version__
from ringnet.cli import options
from ringnet.cli.answers import DEBUG, answers
from ringnet.cli.calibration import add_calibration
from ringnet.cli.measure import measure

app = typer.Typer(
    name="ringnet",
    help="How long does an all-reduce take on a network, which link is slowest, and is the sum right?",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich doubles the time of --help, and frames errors in boxes
    pretty_exceptions_enable=False,
)

ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="A scenario in YAML, or a folder of results to run again.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key: network.latency='5 us'. Again for more."),
]
Outside = Annotated[bool, typer.Option("--allow-outside", help="Let it name data files outside its folder.")]
Python = Annotated[
    bool, typer.Option("--allow-python", help="Run the Python function that it names as its algorithm.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
ResultsFolder = Annotated[
    Path, typer.Argument(metavar="RESULTS_DIR", help="A folder that run, compare or numerics wrote.")
]


def main() -> None:
    """Run the command line."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ringnet {__version__}")
        raise typer.Exit


def _set_debug(wanted: bool) -> None:
    if wanted:
        os.environ[DEBUG] = "1"


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", callback=_set_debug, help=f"Show where an error comes from, as {DEBUG}=1."),
    ] = False,
) -> None:
    """Options before the command."""


@app.command(epilog="Example: ringnet run scenario.yaml --set message='1 GiB' --set workers=16")
@answers
def run(  # noqa: PLR0913, PLR0917 -- every option is a parameter
    scenario: ScenarioFile,
    overrides: Overrides = None,
    out: options.Out = None,
    as_json: Json = False,
    quiet: options.Quiet = False,
    plots: options.Plots = True,
    save_result: options.SaveResult = None,
    transfers: options.Transfers = None,
    jobs: options.Jobs = None,
    fresh: options.Fresh = False,
    cache: options.Cache = None,
    cluster: options.Cluster = None,
    yes: options.Yes = False,
    allow_outside: Outside = False,
    allow_python: Python = False,
) -> int:
    """Simulate a scenario: print the answer, write tables and plots."""
    from ringnet.cli.run import run_scenario
    from ringnet.cli.sources import read_scenario
    from ringnet.cli.wishes import Wishes

    wishes = Wishes(
        out=out,
        json=as_json,
        quiet=quiet,
        plots=plots,
        save_result=save_result,
        transfers=transfers,
        jobs=jobs,
        fresh=fresh,
        cache=cache,
        cluster=cluster,
        yes=yes,
    )
    return run_scenario(
        read_scenario(scenario, wishes.overrides(overrides), allow_outside, allow_python), wishes
    )


@app.command(epilog="Example: ringnet check scenario.yaml --set workers=1024")
@answers
def check(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    as_json: Json = False,
    allow_outside: Outside = False,
    allow_python: Python = False,
) -> int:
    """Find every mistake in a scenario, and show what would run."""
    from ringnet.cli.checking import check_scenario
    from ringnet.cli.sources import read_scenario

    return check_scenario(read_scenario(scenario, overrides or (), allow_outside, allow_python), as_json)


@app.command(epilog="Example: ringnet compare scenario.yaml --algorithms ring,direct --workers 8,64")
@answers
def compare(  # noqa: PLR0913, PLR0917 -- every option is a parameter
    scenario: ScenarioFile,
    algorithms: Annotated[
        str | None, typer.Option(metavar="all|A,B", help="What to compare; the scenario says, or all.")
    ] = None,
    workers: Annotated[
        str | None, typer.Option(metavar="N,N", help="Numbers of workers; the scenario's otherwise.")
    ] = None,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where it goes; reports/NAME-compare otherwise.")
    ] = None,
    tuner: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the choice for NCCL's example tuner plug-in.")
    ] = None,
    as_json: Json = False,
    quiet: options.Quiet = False,
    plots: options.Plots = True,
    jobs: options.StudyJobs = None,
    fresh: options.Fresh = False,
    cache: options.Cache = None,
    allow_outside: Outside = False,
    allow_python: Python = False,
) -> int:
    """Compare algorithms over message sizes: which one to use, from which size on, and by how much."""
    from ringnet.cli.comparing import CompareWishes, compare_algorithms
    from ringnet.cli.sources import read_scenario
    from ringnet.cli.targets import check_files

    check_files({"--tuner": tuner})
    wishes = CompareWishes(algorithms, workers, out, as_json, quiet, plots, jobs, fresh, cache, tuner=tuner)
    return compare_algorithms(read_scenario(scenario, overrides or (), allow_outside, allow_python), wishes)


@app.command(
    epilog="Example: ringnet numerics scenario.yaml --algorithms all --dtypes bfloat16 --accumulate float32"
)
@answers
def numerics(  # noqa: PLR0913, PLR0917 -- every option is a parameter
    scenario: ScenarioFile,
    algorithms: Annotated[
        str | None, typer.Option(metavar="all|A,B", help="What to compare; the scenario says, or all.")
    ] = None,
    workers: Annotated[
        str | None, typer.Option(metavar="N,N", help="Numbers of workers; the scenario's otherwise.")
    ] = None,
    dtypes: Annotated[
        str | None, typer.Option(metavar="T,T", help="Element types; float32,float16,bfloat16 otherwise.")
    ] = None,
    accumulate: Annotated[
        str | None,
        typer.Option(metavar="T", help="Also with the partial sums of narrower types in this one."),
    ] = None,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where it goes; reports/NAME-numerics otherwise.")
    ] = None,
    as_json: Json = False,
    quiet: options.Quiet = False,
    plots: options.Plots = True,
    jobs: options.StudyJobs = None,
    fresh: options.Fresh = False,
    cache: options.Cache = None,
    allow_outside: Outside = False,
    allow_python: Python = False,
) -> int:
    """Show what rounding does to the sum: the error by algorithm and element type, and who holds the same bits."""
    from ringnet.cli.rounding import NumericsWishes, study_rounding
    from ringnet.cli.sources import read_scenario

    wishes = NumericsWishes(
        algorithms,
        workers,
        out,
        as_json,
        quiet,
        plots,
        jobs,
        fresh,
        cache,
        dtypes=dtypes,
        accumulate=accumulate,
    )
    return study_rounding(read_scenario(scenario, overrides or (), allow_outside, allow_python), wishes)


@app.command(epilog="Example: ringnet export scenario.yaml --msccl ring.xml --goal ring.goal")
@answers
def export(
    scenario: ScenarioFile,
    msccl: Annotated[Path | None, typer.Option(metavar="FILE", help="Write MSCCL's XML.")] = None,
    goal: Annotated[Path | None, typer.Option(metavar="FILE", help="Write LogGOPSim's GOAL text.")] = None,
    overrides: Overrides = None,
    allow_outside: Outside = False,
    allow_python: Python = False,
) -> int:
    """Write the schedule of a scenario for other tools."""
    from ringnet.cli.exporting import export_schedule
    from ringnet.cli.sources import read_scenario

    found = read_scenario(scenario, overrides or (), allow_outside, allow_python)
    return export_schedule(found, msccl, goal)


@app.command(epilog="Example: ringnet plot reports/quickstart --plot space-time")
@answers
def plot(
    results: ResultsFolder,
    names: Annotated[
        list[str] | None,
        typer.Option("--plot", metavar="NAME", help="Draw this one; all that suit otherwise."),
    ] = None,
) -> int:
    """Draw the plots of results again, without simulating."""
    from ringnet.cli.results import redraw_plots

    return redraw_plots(results, names)


@app.command(epilog="Example: ringnet diff reports/before reports/after")
@answers
def diff(
    first: Annotated[Path, typer.Argument(metavar="RESULTS_A", help="A folder that was written by run.")],
    second: Annotated[Path, typer.Argument(metavar="RESULTS_B", help="Another.")],
    as_json: Json = False,
) -> int:
    """Show what was changed, and what that changed in the answer."""
    from ringnet.cli.results import show_difference

    return show_difference(first, second, as_json)


@app.command()
@answers
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("scenario.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> int:
    """Write a commented scenario to start from."""
    from ringnet.cli.starting import write_template

    return write_template(file, force)


@app.command(epilog="Example: ringnet draw scenario.yaml --set network.placement=interleaved")
@answers
def draw(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the pictures go; reports/NAME-network otherwise."),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="RESULTS_DIR", help="Draw the traffic of this run of it; simulated otherwise."),
    ] = None,
    allow_outside: Outside = False,
) -> int:
    """Draw the network, the busiest link standing out, and how much each worker sends to each other one."""
    from ringnet.cli.drawing import draw_network
    from ringnet.cli.sources import read_scenario

    return draw_network(read_scenario(scenario, overrides or (), allow_outside), results, out)


@app.command(epilog="Example: ringnet network topology.xml")
@answers
def network(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="ASTRA-sim's network YAML, or NCCL's topology or graph XML."),
    ],
    as_json: Json = False,
) -> int:
    """Say what another tool's network file holds, what is assumed, and what is left out."""
    from ringnet.cli.network_files import show_network_file

    return show_network_file(file, as_json)


@app.command("list")
@answers
def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help="These only: algorithms, links, plots; columns for those of tables."
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """List the names that a scenario can choose from, or what the columns of the tables mean."""
    from ringnet.cli.listing import list_choices

    return list_choices(kind, as_json)


@app.command()
@answers
def schema() -> int:
    """Print the JSON Schema of scenarios, for editors."""
    from ringnet.cli.starting import print_schema

    return print_schema()


add_calibration(app)
app.command("measure", epilog="Example: ringnet measure --workers 4 --out measured.txt")(measure)
