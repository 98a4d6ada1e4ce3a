"""The page around it all: what is said in words, links to the files, the scenario, and the data with its script.

Nothing that the page shows is loaded from anywhere, and its policy says so: a browser runs the one script and uses the
one style whose digests it names, and asks nobody for anything.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from ringnet._version import __version__
from ringnet.analysis.answer import answer, percent
from ringnet.documents.text import one_line
from ringnet.documents.yaml_text import write_yaml
from ringnet.reporting.page.curves import study_header, sweep_header
from ringnet.reporting.page.packing import Packer, check_summary
from ringnet.reporting.page.run import Blamed, held_back, run_header, why_no_schedule
from ringnet.reporting.results import Results
from ringnet.reporting.sweeps import settings
from ringnet.reporting.text import sweep_table
from ringnet.units import format_seconds

#: The chapters of the script, in the order in which they build upon each other.
SCRIPT = (
    "unpack.js",
    "words.js",
    "drawing.js",
    "schedule.js",
    "lanes.js",
    "spacetime.js",
    "buffers.js",
    "network.js",
    "tables.js",
    "curves.js",
    "page.js",
)
#: Rows of a sweep that stand in the page itself; the table below has all of them.
MOST_POINTS = 200


def run_page(results: Results, folder: str) -> str:
    """Return the page of a run or a sweep.

    Parameters
    ----------
    results : Results
        Its ``run_info`` is what ``run.json`` holds.
    folder : str
        Where the files are, seen from the page: a path with slashes, ``.`` for the same folder.

    Raises
    ------
    ResultsError
        A table that was read back holds what no run writes.
    """
    packer, info = Packer(), results.run_info
    check_summary(results.summary, "summary.csv")
    if len(results.summary) > 1:
        header = {"kind": "sweep"} | sweep_header(results, packer)
        said = [_section("answer", "The points", _points(results)), _notes(info)]
        said += [_section("curves", "Curves")] if header["charts"] else []
    else:
        header = {"kind": "run"} | run_header(results, packer)
        row = {str(key): value for key, value in results.summary.iloc[0].items()}
        said = [
            _section("answer", "The answer", _pairs(answer(row))),
            _notes(info),
            _blame(held_back(results.path)),
            _section("schedule", "The schedule", _missing(why_no_schedule(results))),
            f'<div class="pair">{_at_the_cursor(header)}</div>',
        ]
    return _page(results.name, settings(results.summary), said, info, folder, packer.packed(header))


def study_page(info: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], folder: str) -> str:
    """Return the page of a study, such as a comparison: charts where there are some, and its tables.

    Parameters
    ----------
    info : mapping
        What ``run.json`` holds.
    tables : mapping of str to DataFrame
        By name.
    folder : str
        As for `run_page`.

    Raises
    ------
    ResultsError
        As `run_page`.
    """
    packer = Packer()
    if "compare" in tables:
        check_summary(tables["compare"], "compare.csv")
    header = {"kind": "study"} | study_header(tables, packer)
    said = [_notes(info)]
    said += [_section("winners", "Who is fastest")] if header.get("winners") else []
    said += [_section("curves", "Curves")] if header.get("charts") else []
    name = str(info["scenario"].get("name", ""))
    return _page(name, f"ringnet {next(iter(tables))}", said, info, folder, packer.packed(header))


def way(page: Path, folder: Path) -> str:
    """Return where a folder is, seen from a page."""
    home = os.path.dirname(os.path.realpath(page))
    return Path(os.path.relpath(os.path.realpath(folder), home)).as_posix()


# ------------------------------------------------------------------------------------------------------ parts


def _section(name: str, title: str, inside: str = "") -> str:
    """Return a section; what is not inside is put there by the script."""
    return f'<section id="{name}"><h2>{title}</h2>{inside}</section>'


def _at_the_cursor(header: Mapping[str, Any]) -> str:
    """Return what is shown of one moment of a schedule: what workers hold, and the network."""
    why = header["network"].get("why", "")
    holds = _section("holds", "What each worker holds then") if header["schedule"] else ""
    moves = header["schedule"] or header["lanes"]
    return holds + _section("network", "The network then" if moves else "The network", _missing(why))


def _missing(why: str) -> str:
    return f'<p class="missing">{_said(why)}</p>' if why else ""


def _said(text: object) -> str:
    """Return a text as words of a page, never markup; what cannot be printed is written as an escape."""
    return escape(one_line(str(text)))


def _row(cells: Iterable[str], tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _pairs(lines: Iterable[tuple[str, str]]) -> str:
    rows = "".join(f'<tr><th scope="row">{_said(label)}</th><td>{_said(text)}</td></tr>' for label, text in lines)
    return f"<table><tbody>{rows}</tbody></table>"


def _points(results: Results) -> str:
    table = sweep_table(results.summary, results.jobs)
    rows = "".join(_row(map(_said, row)) for row in table.rows[:MOST_POINTS])
    more = f"{len(table.rows):,} points; the first {MOST_POINTS} are here, and all in the table summary below."
    head = f"<thead>{_row(map(_said, table.heads), 'th')}</thead>"
    left_out = _missing(more if len(table.rows) > MOST_POINTS else "")
    return f'<div class="wide"><table>{head}<tbody>{rows}</tbody></table></div>{left_out}'


def _notes(info: Mapping[str, Any]) -> str:
    items = "".join(f"<li>{_said(note)}</li>" for note in info.get("notes", ()))
    return _section("notes", "Notes", f"<ul>{items}</ul>") if items else ""


def _blame(parts: Sequence[Blamed]) -> str:
    """Show the path that ended last by what it is made of, a bar for each."""
    if not parts:
        return ""
    rows = "".join(
        _row(
            (
                _said(one.part),
                format_seconds(one.seconds),
                percent(one.share),
                _bar(one.share),
                _said(one.mostly),
            )
        )
        for one in parts
    )
    head = _row(("of the path that ended last", "time", "share", "", "whose"), "th")
    return _section("blame", "What the time went to", f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>")


def _bar(share: float) -> str:
    return (
        f'<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{100 * share:.2f}" height="8"/></svg>'
    )


def _files(names: Iterable[str], folder: str) -> str:
    """Return links to the files of the folder; a name is never a scheme, nor leads anywhere else."""
    links = (f'<li><a href="{escape(_address(folder, name))}">{_said(name)}</a></li>' for name in names)
    return _section("files", "Files", f"<ul>{''.join(links)}</ul>")


def _address(folder: str, name: str) -> str:
    """Return where a file is, seen from the page.

    >>> _address(".", "a b:c.csv"), _address("../reports/x", "run.json")
    ('./a%20b%3Ac.csv', './../reports/x/run.json')
    """
    inside = "" if folder == "." else f"{quote(folder)}/"
    return f"./{inside}{quote(name)}"


def _scenario(document: Mapping[str, Any]) -> str:
    text = "\n".join(map(_said, write_yaml(document).splitlines()))
    return _section("scenario", "The scenario", f'<pre tabindex="0">{text}</pre>')


# --------------------------------------------------------------------------------------------------- the page


def _page(name: str, about: str, said: Sequence[str], info: Mapping[str, Any], folder: str, data: str) -> str:
    style, script = static("page.css"), "\n".join(map(static, SCRIPT))
    parts = [
        *said,
        _section("tables", "Tables"),
        _files(info.get("files", ()), folder),
        _scenario(info.get("scenario", {})),
    ]
    return _FRAME.format(
        policy=f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'",
        title=_said(name),
        about=_said(about),
        style=style,
        parts="\n".join(filter(None, parts)),
        version=_said(__version__),
        data=data,
        script=script,
    )


def static(name: str) -> str:
    """Return a file of the script or the style as text."""
    return resources.files("ringnet.reporting.page").joinpath("static", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return what a policy names a script or a style by."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1><p>{about}</p></header>
<main>
<noscript><p class="missing">Pictures and tables need JavaScript; the answer and all files are here.</p></noscript>
{parts}
</main>
<footer>ringnet {version}</footer>
<script type="application/octet-stream" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""
