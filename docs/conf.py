"""Sphinx settings. Build with ``make docs``: warnings are errors, and the examples in the pages run."""

from __future__ import annotations

from typing import Any

import polytrain

project = "polytrain"
author = "the polytrain developers"
copyright = author
version = release = polytrain.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections state the types, with shapes
numpydoc_show_class_members = False  # the class template lists them
numpydoc_xref_param_type = False

doctest_test_doctest_blocks = ""  # only explicit doctest directives; pytest runs the examples in docstrings
# For what is not installed everywhere: ":skipif: find_spec(NAME) is None".
doctest_global_setup = "from importlib.util import find_spec"

html_theme = "furo"
html_title = f"polytrain {version}"
html_show_copyright = False


def _skip_foreign(app: object, what: str, name: str, obj: Any, skip: bool, options: object) -> bool | None:
    """Leave out what scikit-learn adds to every estimator; its texts point to pages that are not here."""
    function = getattr(obj, "fget", None) or getattr(obj, "__func__", obj)
    if str(getattr(function, "__module__", "")).startswith("sklearn"):
        return True
    return None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", _skip_foreign)
