"""``ringnet measure``: its options. What it does is imported when it is called, as for every command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringnet.cli.answers import answers


@answers
def measure(  # noqa: PLR0913, PLR0917 -- every option is a parameter
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Processes on this machine.  [4; under --mpi: all ranks]")
    ] = None,
    sizes: Annotated[
        str, typer.Option(metavar="A..B", help="Messages: a range, a list, or both.")
    ] = "4KiB..16MiB",
    factor: Annotated[int, typer.Option(help="From one size of a range to the next.")] = 2,
    dtype: Annotated[str, typer.Option(help="Element type.")] = "float32",
    repeat: Annotated[int, typer.Option(help="Runs of each size; their median is the time.")] = 20,
    warmup: Annotated[int, typer.Option(help="Runs before those, which do not count.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the data: the same as in the simulator.")] = 0,
    mpi: Annotated[bool, typer.Option("--mpi", help="Run in the processes that mpirun started.")] = False,
    host: Annotated[str | None, typer.Option(help="Address of this machine to go over.  [127.0.0.1]")] = None,
    port: Annotated[
        int | None, typer.Option(help="First of N ports to listen on.  [free ones, chosen by the system]")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the log here, too.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with every run, instead of the log.")
    ] = False,
) -> int:
    """Time a real ring all-reduce, here or under MPI, and check its sums against the simulator's."""
    from ringnet.cli.measuring import Wishes, measure_ring  # noqa: PLC0415 -- as the first line says

    wishes = Wishes(workers, sizes, factor, dtype, repeat, warmup, seed, mpi, host, port, out, as_json)
    return measure_ring(wishes)
