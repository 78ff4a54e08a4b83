"""Names of tools and of arguments as they are written in Python, where some words are keywords and some are no names.

Source: issue "Authoring from Python, schemas, AgentHeaven", typed stubs.
"""

from __future__ import annotations

import re
from keyword import iskeyword
from typing import Final

from neuroscript.spec.tool_spec import ToolSpec

ODD: Final = re.compile(r"\W", re.ASCII)
"""What stands for no letter of a name in Python."""

PLAIN: Final = re.compile(r"_?[^\W\d_]")
"""How a name begins that a class neither mangles nor takes by position alone."""


def attribute(word: str) -> str:
    """Return the attribute that a tool's name, or a segment of a group, is in Python.

    >>> attribute("add"), attribute("import"), attribute("import_")
    ('add', 'import_', 'import__')
    """
    return f"{word}_" if iskeyword(word.rstrip("_")) else word


def word(attribute: str) -> str:
    """Return the name that an attribute means; a keyword means itself.

    >>> word("add"), word("import_"), word("import__"), word("import")
    ('add', 'import', 'import_', 'import')
    """
    is_keyword = attribute.endswith("_") and iskeyword(attribute.rstrip("_"))
    return attribute[:-1] if is_keyword else attribute


def parameters(spec: ToolSpec) -> dict[str, str]:
    """Return the arguments of a tool, in order, by the names that they have as parameters in Python.

    A name that is one in Python stays as it is; another one is made of its letters, and is nobody else's.

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
    """Tell whether *text* can be given as the name of an argument in Python, just as it is."""
    if not text.isidentifier() or iskeyword(text) or PLAIN.match(text) is None:
        return False
    if text.isascii():
        return True
    from unicodedata import normalize

    return normalize("NFKC", text) == text  # as the parser reads it


def free(name: str, taken: set[str]) -> str:
    """Return *name*, with as many ``_`` behind it as make it nobody else's."""
    while name in taken or iskeyword(name):
        name = f"{name}_"
    return name


def _made(name: str, taken: set[str]) -> str:
    letters = ODD.sub("_", name)
    return free(letters if PLAIN.match(letters) else f"arg_{letters}", taken)
