"""A typer program with one command and nothing else: what any program of its kind takes to start."""

from __future__ import annotations

import typer

app = typer.Typer()


@app.command()
def run(scenario: str, quiet: bool = False) -> None:
    """Do nothing."""


if __name__ == "__main__":
    app()
