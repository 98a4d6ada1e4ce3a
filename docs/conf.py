"""How the site is built: ``sphinx-build -b html docs docs/_build``.

Neither the building nor a built page needs a network.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import generated

import ringnet
from ringnet.reporting.page.document import run_page
from ringnet.reporting.results import collect

project = "ringnet"
author = "the authors of ringnet"
version = release = ringnet.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "jupyter_execute"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}

# Notebooks hold no outputs: they run whenever the site is built, and one that fails is an error.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 240
nb_execution_in_temp = True
nb_merge_streams = True
smartquotes = False  # they would make one dash of the two before an option

# Every heading can be linked to as GitHub does it, so that a link works in both places.
myst_heading_anchors = 3

napoleon_google_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "ringnet"
html_static_path = ["static"]
html_css_files = ["wide-tables.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False


def _fill(_app: Any, _page: str, source: list[str]) -> None:
    source[0] = generated.fill(source[0])


def _add_sample(app: Any, error: Exception | None) -> None:
    """Add a page of results to the site, made by what it is a sample of."""
    if error is None and app.builder.name == "html":
        scenario = ringnet.load(Path(__file__).parents[1] / "scenarios" / "slow-link.yaml")
        shown = run_page(collect([ringnet.simulate(scenario)], {"scenario": scenario.document()}), ".")
        (Path(app.outdir) / "slow-link.html").write_text(shown, encoding="utf-8")


def setup(app: Any) -> None:
    """Put what is made from the code in its place, whenever a page is read."""
    app.connect("source-read", _fill)
    app.connect("build-finished", _add_sample)
    # A page that is made from the code changes when the code does: read them all, always.
    app.connect("env-get-outdated", lambda _app, env, *_: list(env.found_docs))
