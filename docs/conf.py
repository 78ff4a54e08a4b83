"""Configuration of the documentation site. `python3 dev.py docs` builds it; see `docs/_ext/build.py`."""

from __future__ import annotations

from docs._ext.api import ABSENT

import neuroscript

project = "neuroscript"
author = "The NeuroScript for Python authors"
copyright = author
release = version = neuroscript.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "docs._ext.diagrams", "docs._ext.references"]
myst_fence_as_directive = ["mermaid"]
root_doc = "index"
nitpicky = True
smartquotes = False  # options begin with two dashes
highlight_language = "text"
default_role = "py:obj"

myst_heading_anchors = 6

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ABSENT
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"neuroscript {release}"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
