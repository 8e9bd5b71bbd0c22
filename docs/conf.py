"""Sphinx settings. Build with ``make docs``: warnings are errors, and the examples in the pages run."""

from __future__ import annotations

import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from warnings import filterwarnings

import polytrain

sys.path.insert(0, str(Path(__file__).parent))  # for gallery_order

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
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections state the types, with shapes
numpydoc_show_class_members = False  # the class template lists them
numpydoc_xref_param_type = False
toc_object_entries_show_parents = "hide"  # methods without the class before them fit beside the page

doctest_test_doctest_blocks = ""  # only explicit doctest directives; pytest runs the examples in docstrings
# For what is not installed everywhere: ":skipif: find_spec(NAME) is None".
doctest_global_setup = "from importlib.util import find_spec"

# What is copied is what can be pasted: without prompts, and of sessions without their answers.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# Workers that run examples are replaced when they have grown, and joblib says so.
filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)",  # the demo is no example
    "within_subsection_order": "gallery_order.place",
    "image_scrapers": ("matplotlib",),
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("polytrain",),
    "inspect_global_variables": False,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    "write_computation_times": False,  # a page of figures that nobody asks for
    "parallel": 2,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"polytrain {version}"
html_show_copyright = False
html_show_sourcelink = False
# Formulas need no network: the scripts and fonts of MathJax are copied into the pages. The package that brings them is
# an extension, too, which is not used: it does not say that pages may be read in parallel.
_mathjax = Path(str(distribution("sphinx-mathjax-offline").locate_file("sphinx-mathjax-offline")))
html_static_path = ["_static", str(_mathjax / "static")]
mathjax_path = "mathjax/tex-chtml.js"
html_css_files = ["polytrain.css"]
html_favicon = "_static/favicon.svg"
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "polytrain", "image_light": "_static/logo.svg", "image_dark": "_static/logo-dark.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def _skip_foreign(app: object, what: str, name: str, obj: Any, skip: bool, options: object) -> bool | None:
    """Leave out what scikit-learn adds to every estimator; its texts point to pages that are not here."""
    function = getattr(obj, "fget", None) or getattr(obj, "__func__", obj)
    if str(getattr(function, "__module__", "")).startswith("sklearn"):
        return True
    return None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", _skip_foreign)
