"""The house as a whole: what is public, what an import costs, and what lies at the top level."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from collections import defaultdict
from importlib import resources
from pathlib import Path

import networkx as nx
import pytest

import ringnet
from ringnet.study.cost import pace
from tests import conftest

ROOT = Path(__file__).parents[1]
TOP_LEVEL = {
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "docs",
    "pyproject.toml",
    "reports",
    "ringnet",
    "scenarios",
    "tests",
}
HEAVY = {
    "matplotlib",
    "ml_dtypes",
    "networkx",
    "numpy",
    "pandas",
    "pydantic",
    "rich",
    "scipy",
    "simpy",
    "typer",
    "yaml",
}


def loaded_by(code):
    """Top-level modules that a fresh interpreter holds after running the code."""
    code = f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}}, file=sys.stderr)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split())


def test_the_public_names_are_one_sorted_list_without_doubles():
    assert ringnet.__all__ == sorted(set(ringnet.__all__))


@pytest.mark.parametrize("name", ringnet.__all__)
def test_a_public_name_is_there_and_can_be_found(name):
    assert getattr(ringnet, name) is not None
    assert name in dir(ringnet)
    assert not name.startswith("_") or name == "__version__"


def test_what_is_shown_is_what_is_public():
    assert dir(ringnet) == ringnet.__all__


def test_a_public_name_brings_its_documentation():
    undocumented = [
        name for name in ringnet.__all__ if callable(getattr(ringnet, name)) and not getattr(ringnet, name).__doc__
    ]
    assert undocumented == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="ring_all_reduse"):
        ringnet.ring_all_reduse  # noqa: B018 -- reading it is the test


def test_importing_ringnet_loads_nothing_heavy():
    assert loaded_by("import ringnet") & HEAVY == set()


SCENARIO = str(ROOT / "scenarios" / "quickstart.yaml")


@pytest.mark.parametrize(
    ("command", "used"),
    [
        (["list"], {"numpy", "pydantic", "typer"}),
        (["schema"], {"pydantic", "typer"}),
        (["check", SCENARIO], {"numpy", "pydantic", "typer", "yaml"}),
        (
            ["run", SCENARIO, "--set", "message=1 KiB", "--no-plots"],
            {"numpy", "pydantic", "simpy", "typer", "yaml"},
        ),
    ],
)
def test_a_command_does_its_work_without_what_it_does_not_use(command, used, tmp_path):
    pace()  # measured once on a machine, by SimPy
    command = ["ringnet", *command, *(["--out", str(tmp_path / "out")] if command[0] == "run" else [])]
    code = f"import sys; sys.argv = {command}\nfrom ringnet.cli import main\ntry: main()\nexcept SystemExit: pass"
    assert loaded_by(code) & (HEAVY | {"concurrent", "joblib", "multiprocessing"}) == used


def test_the_model_is_used_without_the_engine():
    rooms = ("collectives", "networks", "payload", "reference", "units", "spellings", "errors")
    code = "; ".join(f"import ringnet.{room}" for room in rooms)
    assert loaded_by(code) & {"simpy", "pandas", "matplotlib", "yaml", "pydantic"} == set()


def test_a_network_that_knows_its_routes_needs_no_graph():
    made = "from ringnet.networks import Cable, ecmp, make_network; tree = make_network('fat-tree', 16, 1e9, 0.0, k=4)"
    assert "networkx" not in loaded_by(f"{made}; tree.route(0, 15)")
    assert "networkx" in loaded_by(f"{made}; ecmp(tree).route(0, 15)")


def test_type_information_ships():
    assert resources.files(ringnet).joinpath("py.typed").is_file()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_the_top_level_holds_what_it_should_and_nothing_else():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    top = {name.partition("/")[0] for name in tracked}
    assert {name for name in top if not name.startswith(".")} == TOP_LEVEL


def test_packages_that_list_their_chapters_list_those_that_they_have():
    for path in sorted((ROOT / "ringnet").rglob("__init__.py")):
        about = ast.get_docstring(ast.parse(path.read_text())) or ""
        rows = about.partition("\n==")[2].partition("\n==")[0].splitlines()[1:]
        named = {name for row in rows for name in row.partition("  ")[0].split(", ")}
        assert named <= {one.stem for one in path.parent.iterdir()}, path
        assert not rows or all(one.stem in about for one in path.parent.glob("[!_]*.py")), path


def test_tests_are_collected_with_what_the_readme_installs():
    """Its command installs the extra ``test``; what another brings is imported where it is used, or its tests skip."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    words = {name: {*re.findall(r"[a-z]\w*", " ".join(asked).replace("-", "_"))} for name, asked in extras.items()}
    more = set().union(*words.values()) - words["test"]
    assert {"distributed", "playwright"} <= more
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text()
        at_top = [one for one in ast.parse(text).body if isinstance(one, ast.Import | ast.ImportFrom)]
        names = {name for one in at_top for name in (getattr(one, "module", None), *(of.name for of in one.names))}
        assert not {name.partition(".")[0] for name in names if name} & more or "allow_module_level=True" in text, path


def test_coverage_traces_nothing_between_its_looks():
    """Also in a process of pytest-xdist, which begins to trace twice."""
    while conftest._looks.on:  # until its timer, of processor time, says that it has seen enough
        pass
    assert sys.gettrace() is None


def test_tests_import_helpers_and_no_tests():
    for path in (ROOT / "tests").glob("test_*.py"):
        assert not re.search(r"^\s*(from|import) tests(\.| import )test_", path.read_text(), re.MULTILINE), path


def developer_commands():
    """What ``python -m`` runs for a person; the rest is started by tests and benchmarks, with what it is to do."""
    started = {"ddp_worker", "worker", "bare_typer", "pathless", "simulate_alone"}
    paths = [path for path in sorted((ROOT / "tests").rglob("*.py")) if path.stem not in started]
    return [path for path in paths if '\nif __name__ == "__main__":\n' in path.read_text()]


@pytest.mark.parametrize("path", developer_commands(), ids=lambda path: f"{path.parent.name}-{path.stem}")
@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("--nonsense", 2)])
def test_a_command_of_the_developers_answers_what_it_is_asked(path, word, code, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(path), word])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    out, err = capsys.readouterr()
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
    assert (ended.value.code, err if code == 0 else out) == (code, "")
    assert (out or err).startswith(f"usage: python -m {name} ")


# ------------------------------------------------------------------------------------------- names and imports


@pytest.fixture(scope="module")
def trees():
    """Syntax trees by module: a million objects, which every test would wait for if they were kept."""
    files = sorted((ROOT / "ringnet").rglob("*.py"))
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files)
    return {
        name.removesuffix(".__init__"): ast.parse(path.read_text()) for name, path in zip(names, files, strict=True)
    }


#: What two names of modules may differ by and be told apart by nobody.
ENDINGS = (
    "ings",
    "ing",
    "isons",
    "ison",
    "ations",
    "ation",
    "ions",
    "ion",
    "ers",
    "er",
    "ed",
    "es",
    "s",
    "e",
)


def stem(name):
    """``measur`` of measure, measuring and measures."""
    ending = next((one for one in ENDINGS if name.endswith(one) and len(name) - len(one) >= 4), "")
    return name.removesuffix(ending)


def imported(name, trees):
    """Modules that a module names in an import, also for types only and inside functions."""
    found = set()
    for node in ast.walk(trees[name]):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
            found.update({node.module} if any(f"{node.module}.{one.name}" not in trees for one in node.names) else ())
    return (found & trees.keys()) - {name}


def test_no_class_name_stands_twice(trees):
    places = defaultdict(list)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module)
    twice = {name: modules for name, modules in places.items() if len(modules) > 1}
    assert twice == {}


def test_no_imports_go_in_a_circle_not_even_of_types(trees):
    graph = nx.DiGraph((name, other) for name in trees for other in imported(name, trees))
    assert [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []


def test_no_two_modules_of_a_package_differ_by_an_ending_only(trees):
    alike = defaultdict(list)
    for module in trees:
        package, _, name = module.rpartition(".")
        alike[package, stem(name)].append(module)
    assert [modules for modules in alike.values() if len(modules) > 1] == []


def test_all_that_a_command_says_passes_one_place(trees):
    """Where what a terminal would obey is escaped; the version is a text of ringnet's own."""
    speaking = {
        (module, ast.unparse(node.func))
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func)
        in {"print", "typer.echo", "typer.secho", "Console", "sys.stdout.write", "sys.stderr.write"}
    }
    told = {("ringnet.cli.printing", "typer.echo"), ("ringnet.cli.progress", "Console")}
    worker = ("ringnet.measure.worker", "sys.stdout.write")  # JSON to the process that started it
    assert speaking == told | {worker, ("ringnet.cli", "typer.echo")}


def test_what_is_said_is_one_line(trees):
    """What is no sign that can be printed is escaped, a new line too."""
    lines = [
        (module, part.value)
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"say", "note"}
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and "\n" in part.value
    ]
    assert lines == []
