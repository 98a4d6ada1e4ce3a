"""What README, CONTRIBUTING and docs say is true today: their commands and code run, their links and pictures exist.

In a ``console`` block a line that starts with ``$`` is a command. Those of ringnet are run, and what follows is
compared with what they print, where a line ``...`` stands for any lines. A block after a line that ends in the name of
a file and a colon (`star.py`:) is that file. Blocks of Python run in the order of their page; YAML is checked.

After a change that is meant to change answers: ``RINGNET_DOCS=write pytest tests/test_docs.py``, and read the diff.
"""

from __future__ import annotations

import doctest
import importlib.util
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ringnet as package
from ringnet.scenario import loads

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *SITE]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.yaml"))
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED_FILE = re.compile(r"`([\w-]+\.\w+)`:\n\n$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
#: What a part of a scenario is completed with where it does not say it itself.
REST = (
    "scenario_version: 1",
    "workers: 8",
    "message: 1 MiB",
    "network: {topology: switch, bandwidth: 50 GB/s, latency: 1 us}",
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    file: str
    start: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        named = NAMED_FILE.search(text[: match.start()])
        found.append(Block(match[1].strip(), match[2], named[1] if named else "", match.start(2)))
    return found


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Command:
    """A command of a console block, and what the page says that it prints; where that stands in the page."""

    line: str
    printed: str
    start: int


def commands(block: Block) -> Iterator[Command]:
    for match in re.finditer(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        yield Command(match[1].replace("\\\n", " "), match[2], block.start + match.start(2))


def is_like(printed: str, expected: str) -> bool:
    """Whether a command prints what the page says, ``...`` standing for any lines."""
    pattern = "".join("(?:.*\n)*" if line == "...\n" else re.escape(line) for line in expected.splitlines(True))
    return re.fullmatch(pattern, printed) is not None


class Reader:
    """Somebody who does what a page says, from top to bottom, in a folder with the shipped scenarios."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run
        self.names: dict[str, Any] = {"__name__": "page"}
        #: Places in the page whose text is no longer what is printed: start, text of the page, what is printed.
        self.stale: list[tuple[int, str, str]] = []

    def do(self, block: Block) -> None:
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            self.compute(block)
        elif block.language == "console":
            for command in commands(block):
                self.enter(command)

    def compute(self, block: Block) -> None:
        if ">>>" in block.text:
            test = doctest.DocTestParser().get_doctest(block.text, self.names, "page", None, None)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            runner.run(test, clear_globs=False)
            assert runner.failures == 0
            self.names |= test.globs
        else:
            exec(compile(block.text, "page", "exec"), self.names)

    def enter(self, command: Command) -> None:
        program, *arguments = shlex.split(command.line)
        if program != "ringnet":
            return
        result = self.run(*arguments)
        wanted = 3 if "cannot finish" in command.printed else 2 if "Error:" in command.printed else 0
        assert result.exit_code == wanted, f"{command.line}\n{result.output}"
        # A note, and a word on what runs, go to the other stream: a terminal shows them in the order of printing.
        if command.printed and not is_like(result.output, command.printed):
            self.stale.append((command.start, command.printed, result.output))


def rewrite(page: Path, stale: list[tuple[int, str, str]]) -> None:
    text = page.read_text(encoding="utf-8")
    for start, old, new in reversed(stale):
        text = text[:start] + new + text[start + len(old) :]
    page.write_text(text, encoding="utf-8")


def runs(block: Block) -> bool:
    return block.language == "python" or (block.language == "console" and "\n$ ringnet " in f"\n{block.text}")


@pytest.mark.parametrize("page", [page for page in PAGES if any(map(runs, blocks(page)))], ids=name_of)
def test_what_a_page_shows_is_what_happens(
    page: Path,
    own_folder: Path,
    ringnet: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if page.name != "pictures.md":
        request.getfixturevalue("sketched")
    (own_folder / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.setenv("COLUMNS", "200")
    reader = Reader(ringnet)
    for block in blocks(page):
        reader.do(block)
    if os.environ.get("RINGNET_DOCS") == "write":
        rewrite(page, reader.stale)
        return
    for _, shown, printed in reader.stale:
        assert printed == shown


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_scenario_in_a_page_is_one_or_part_of_one(page: Path, tmp_path: Path) -> None:
    (tmp_path / "profile.yaml").write_bytes((ROOT / "scenarios/data/v100-profile.yaml").read_bytes())
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        if block.file:  # what it is worth is seen when a command reads it
            assert f" {block.file}" in text or f"'{block.file}:" in text
        elif block.language == "yaml":
            said = {line.partition(":")[0] for line in block.text.splitlines()}
            said |= {"message"} if "step" in said else set()  # the layers say how large it is
            rest = "\n".join(line for line in REST if line.partition(":")[0] not in said)
            loads(block.text + rest, folder=tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_pictures_are_there(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert file.is_relative_to(ROOT)
        if anchor and "made from:" not in file.read_text(encoding="utf-8"):
            assert anchor in anchors(file), target


def anchors(page: Path) -> set[str]:
    """The names that GitHub and the site give to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_scenario_answers_a_question_of_a_how_to_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "how-to").glob("*.md"))
    assert [path.name for path in SCENARIOS if f"scenarios/{path.name}" not in text] == []


def test_every_page_is_in_a_table_of_contents() -> None:
    listed = set()
    for page in SITE:
        for block in blocks(page):
            if block.language == "{toctree}":
                entries = [line for line in block.text.splitlines() if line and not line.startswith(":")]
                listed |= {
                    path for entry in entries for path in (page.parent / entry).parent.glob(f"{Path(entry).name}.*")
                }
    notebooks = {*(DOCS / "notebooks").glob("*.ipynb")}
    assert {path.resolve() for path in listed} == (set(SITE) | notebooks) - {DOCS / "index.md"}


def test_every_public_name_is_in_the_api_reference() -> None:
    text = (DOCS / "reference/python.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\.\. auto\w+:: ringnet\.(\w+)(?:\(\))?$", text, re.MULTILINE)
    assert sorted(documented) == [name for name in package.__all__ if not name.startswith("__")]


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    """What makes parts of the site from the code; it needs nothing that ringnet does not."""
    spec = importlib.util.spec_from_file_location("generated", DOCS / "generated.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_scenario_reference_has_every_key_of_the_schema(generated: ModuleType, ringnet: Callable[..., Any]) -> None:
    schema = json.loads(ringnet("schema").stdout)
    text = generated.scenario_format()
    for mapping in (schema, *schema["$defs"].values()):
        for key, value in mapping["properties"].items():
            assert f"| `{key}` | {value.get('description', '')}" in text
    assert text.count("\n## ") == len(schema["$defs"])


def test_every_place_in_a_page_can_be_filled(generated: ModuleType) -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert "made from:" not in generated.fill(text), page


def test_the_reference_of_commands_shows_each(generated: ModuleType, ringnet: Callable[..., Any]) -> None:
    listed = re.findall(r"^  ([a-z]+)  ", ringnet("--help").stdout, re.MULTILINE)
    text = generated.commands()
    assert sorted(listed) == re.findall(r"^## ringnet (\w+)$", text, re.MULTILINE)
    assert all(f"Usage: ringnet {name} " in text for name in listed)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_are_there(page: Path) -> None:
    named = re.findall(r"`((?:ringnet|tests|scenarios|docs|\.ci)/[\w./-]*)`", page.read_text(encoding="utf-8"))
    written = [path for path in named if not path.startswith("docs/_build/")]  # which is built, not kept
    assert [path for path in written if not (ROOT / path).exists()] == []


def test_the_way_of_a_transfer_is_the_one_that_is_taken() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    way = re.findall(r"^\| .* \| `(ringnet/[\w/]+\.py)` \| `(\w+)` \|$", text, re.MULTILINE)
    assert len(way) > 10
    missing = [
        (path, name)
        for path, name in way
        if not re.search(rf"^ *(?:def|class) {name}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert missing == []


def test_the_architecture_has_every_room() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.name for path in (ROOT / "ringnet").iterdir() if (path / "__init__.py").exists()}
    rooms |= {path.name for path in (ROOT / "ringnet").glob("[a-z]*.py")}
    assert {path.strip("/") for path in re.findall(r"^\| `ringnet/([\w./]+)` \|", text, re.MULTILINE)} == rooms


def test_the_readme_has_the_growth_that_was_measured():
    rows = re.findall(
        r"\| (time|memory) of (\w+), \S+ to \d+ \| ([\d.]+) \|", (ROOT / "docs" / "benchmarks.md").read_text()
    )
    measured = {(engine, what): float(exponent) for what, engine, exponent in rows}
    told = re.findall(r"\| `(\w+)`, N=[^|]+\| N\^([\d.]+) \| N\^([\d.]+) \|", (ROOT / "README.md").read_text())
    said = {(engine, "time"): float(time) for engine, time, _ in told}
    said |= {(engine, "memory"): float(memory) for engine, _, memory in told}
    assert len(said) >= 4
    assert said == measured
