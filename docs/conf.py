"""How the pages are built; `make docs` writes them to out/docs."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

os.environ["STEPPE_PROGRESS"] = "off"  # of runs on the pages

project = "steppe"
author = "The steppe authors"
copyright = author  # noqa: A001, the name Sphinx looks for
version = release = installed_version("steppe")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "mathml",
]
exclude_patterns = [
    "_build",
    "_ext",
    "_static",
    "figures",
    "images",
    "inventories",
    "notebooks",
    "results",
    "results/*",
]

# Pages
# A word in code such as `recipe` may name an attribute of several classes; it is then not linked.
suppress_warnings = ["ref.python"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 600  # of one cell, on a machine that does other work too
nb_execution_raise_on_error = True
nb_execution_excludepatterns: list[str] = []
nb_merge_streams = True

# Links to the pages of other projects, as {py:class}`xarray.DataTree`. What they list is read from them where
# STEPPE_DOCS_ONLINE is 1, and else from the few names in inventories/: a build needs no network.
OTHER_PROJECTS = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "jax": "https://docs.jax.dev/en/latest",
    "xarray": "https://docs.xarray.dev/en/stable",
}
is_online = os.environ.get("STEPPE_DOCS_ONLINE") == "1"
intersphinx_mapping = {
    name: (address, None if is_online else f"inventories/{name}.inv")
    for name, address in OTHER_PROJECTS.items()
}

# Reference from docstrings, which say everything in single backticks
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "steppe"
html_static_path = ["_static"]
html_css_files = ["steppe.css"]
html_js_files = [("steppe.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "logo": {"text": "steppe"},
    "header_links_before_dropdown": 6,
}
# Of several versions beside each other, as `make docs-site` lays them out, every page lists the others.
if docs_version := os.environ.get("STEPPE_DOCS_VERSION"):
    html_context["docs_version"] = docs_version
    html_theme_options["navbar_end"] = ["versions", "theme-switcher", "navbar-icon-links"]
# Pages that have none below or beside them need no list of those.
html_sidebars = {
    name: []
    for name in (
        "index",
        "start",
        "choose",
        "gallery",
        "coming-from",
        "bridges",
        "problems",
        "cheat-sheet",
        "faq",
    )
}
