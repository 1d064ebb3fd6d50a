"""Sphinx's settings: `make docs` builds the site from these pages."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.napoleon.docstring import GoogleDocstring

from dataprep import __version__

project = "dataprep and iobench"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
# Fields such as ``bytes`` and ``split`` have the names of types and of each other.
suppress_warnings = ["ref.python"]
autodoc_default_options = {"exclude-members": "model_config"}
napoleon_numpy_docstring = False
napoleon_use_ivar = True
highlight_language = "text"  # blocks without a language are what programs print
default_role = "code"  # single backticks in docstrings, as in Markdown
exclude_patterns: list[str] = []
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
myst_url_schemes = ("http", "https", "mailto")
html_theme = "pydata_sphinx_theme"
html_title = project
html_show_sourcelink = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["width.css"]
html_sidebars = {"**": ["globaltoc.html"], "index": []}
html_theme_options = {
    "navbar_center": [],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": ["theme-version"],
}

_NAMES = re.compile(r"( +)(\w+(?:, \w+)+): (.*)")
"""Several names of an "Attributes:" section on one line, with their common description."""

_LONGEST_SIGNATURE = 600


def _prepare_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Give each name of an "Attributes:" section a line; drop NamedTuple's words on its fields."""
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()
    prepared: list[str] = []
    is_in_attributes = False
    rest = list(lines)
    while rest:
        line = rest.pop(0)
        if line and not line.startswith(" "):
            is_in_attributes = line == "Attributes:"
        several = _NAMES.fullmatch(line) if is_in_attributes else None
        if several is None:
            prepared.append(line)
            continue
        indent, names, description = several.groups()
        continued = []
        while rest and rest[0].startswith(f"{indent} "):
            continued.append(rest.pop(0))
        for attribute in names.split(", "):
            prepared += [f"{indent}{attribute}: {description}", *continued]
    lines[:] = prepared


def _shorten_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """Replace a signature with long defaults; the list of the keys follows it."""
    if signature and len(signature) > _LONGEST_SIGNATURE:
        return "(**keys)", returns
    return None


def setup(app: Sphinx) -> None:
    """Adapt docstrings before napoleon reads them."""
    # Napoleon takes the text before the first colon of an attribute's docstring for its type.
    GoogleDocstring._parse_attribute_docstring = GoogleDocstring._consume_to_end
    app.connect("autodoc-process-docstring", _prepare_docstring, priority=400)
    app.connect("autodoc-process-signature", _shorten_signature)
