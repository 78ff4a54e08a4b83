"""Tool and argument names as Python identifiers, with replacements for keywords and invalid names."""

from __future__ import annotations

import re
from keyword import iskeyword
from typing import Final

from neuroscript.spec.tool_spec import ToolSpec

ODD: Final = re.compile(r"\W", re.ASCII)
"""A character that cannot be part of a Python identifier."""

PLAIN: Final = re.compile(r"_?[^\W\d_]")
"""The start of a name that is neither mangled by a class nor treated as positional-only."""


def attribute(word: str) -> str:
    """Return the Python attribute for a tool's name or a segment of a group.

    >>> attribute("add"), attribute("import"), attribute("import_")
    ('add', 'import_', 'import__')
    """
    return f"{word}_" if iskeyword(word.rstrip("_")) else word


def word(attribute: str) -> str:
    """Return the name that an attribute stands for; a bare keyword stands for itself.

    >>> word("add"), word("import_"), word("import__"), word("import")
    ('add', 'import', 'import_', 'import')
    """
    is_keyword = attribute.endswith("_") and iskeyword(attribute.rstrip("_"))
    return attribute[:-1] if is_keyword else attribute


def parameters(spec: ToolSpec) -> dict[str, str]:
    """Return the arguments of a tool, in order, by their parameter names in Python.

    A valid name is unchanged; another name is converted to a unique identifier.

    >>> from neuroscript import ArgSpec
    >>> args = [ArgSpec(name, "int") for name in ("from", "user-id", "user_id", "2nd", "x")]
    >>> [*parameters(ToolSpec("t", "g", args))]
    ['from_', 'user_id_', 'user_id', 'arg_2nd', 'x']
    """
    taken = {arg.name for arg in spec.args if is_name(arg.name)}
    found: dict[str, str] = {}
    for arg in spec.args:
        name = arg.name if arg.name in taken else _made(arg.name, taken)
        taken.add(name)
        found[name] = arg.name
    return found


def is_name(text: str) -> bool:
    """Return whether *text* is valid as a keyword argument in Python without changes."""
    if not text.isidentifier() or iskeyword(text) or PLAIN.match(text) is None:
        return False
    if text.isascii():
        return True
    from unicodedata import normalize

    return normalize("NFKC", text) == text  # the parser normalizes identifiers like this


def free(name: str, taken: set[str]) -> str:
    """Return *name* with as many ``_`` appended as necessary to make it unique."""
    while name in taken or iskeyword(name):
        name = f"{name}_"
    return name


def _made(name: str, taken: set[str]) -> str:
    letters = ODD.sub("_", name)
    return free(letters if PLAIN.match(letters) else f"arg_{letters}", taken)
