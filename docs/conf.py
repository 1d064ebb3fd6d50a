"""Sphinx's settings: `make docs` builds the site from these pages."""

from dataprep import __version__

project = "dataprep and iobench"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
# Fields such as ``bytes`` and ``split`` have the names of types and of each other.
suppress_warnings = ["ref.python"]
autodoc_default_options = {"undoc-members": False, "exclude-members": "model_config"}
napoleon_numpy_docstring = False
napoleon_use_ivar = True
exclude_patterns: list[str] = []
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
myst_url_schemes = ("http", "https", "mailto")
html_theme = "pydata_sphinx_theme"
html_title = project
html_show_sourcelink = False
html_show_copyright = False
html_sidebars = {"**": ["globaltoc.html"], "index": []}
html_theme_options = {
    "navbar_center": [],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": ["theme-version"],
}
