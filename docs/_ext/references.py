"""A Sphinx extension that resolves references in docstrings and signatures.

Modules import the names of their annotations only for type checkers, and docstrings use the short names of the module
that they are in. Both are looked up in that module.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from docs._ext.api import described_names, resolved
from docutils import nodes
from sphinx.addnodes import desc_signature, pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode


def setup(app: Sphinx) -> dict[str, object]:
    """Register the extension."""
    app.connect("builder-inited", import_for_type_checkers)
    app.connect("autodoc-process-docstring", protect_first_line, priority=400)  # before napoleon
    app.connect("env-updated", add_other_spellings)
    app.connect("missing-reference", resolve)
    code = "".join(file.read_text() for file in sorted(Path(__file__).parent.glob("*.py")))
    return {"env_version": crc32(code.encode()), "parallel_read_safe": True, "parallel_write_safe": True}


def import_for_type_checkers(app: Sphinx) -> None:
    """Run the imports below ``if TYPE_CHECKING`` of all our loaded modules, so that annotations can be evaluated."""
    for spellings in described_names().values():
        resolved(spellings[0].full)
    for name, module in [*sys.modules.items()]:
        file = Path(module.__file__ or "") if name.partition(".")[0] == "neuroscript" else Path()
        if file.suffix != ".py":
            continue
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                exec(compile(ast.Module(node.body, []), str(file), "exec"), vars(module))


def protect_first_line(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Begin the docstring of an attribute with a comment: napoleon takes the words before a colon for its type."""
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]


def add_other_spellings(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Let the other spellings of a public name lead to its description."""
    domain = env.domains.python_domain
    for full, (_, *others) in described_names().items():
        entry = domain.objects[full]
        for other in others:
            domain.objects[other.full] = entry._replace(aliased=True)
    return []


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement) -> nodes.Node | None:
    """Resolve a name as the module of its docstring does; a name that is not described is shown without a link."""
    if node.get("refdomain") != "py":
        return None
    objects = env.domains.python_domain.objects
    for name in candidates(node):
        thing = resolved(name)
        if thing is None:
            continue
        for full in (name, definition(thing)):
            if full in objects:
                entry = objects[full]
                where = node.get("refdoc", env.docname)
                return make_refnode(app.builder, where, entry.docname, entry.node_id, content, full)
        return content
    return None


def candidates(node: pending_xref) -> Iterator[str]:
    """Yield the full names that a reference may mean, the most likely first."""
    target = node["reftarget"]
    scope = described(node)
    while scope:
        yield f"{scope}.{target}"
        thing = resolved(scope)
        yield f"{getattr(thing, '__module__', '')}.{target}"
        if isinstance(thing, type) and re.search(rf"^ +{re.escape(target)}: ", thing.__doc__ or "", re.MULTILINE):
            yield scope  # an attribute of instances, which the docstring of the class describes
        scope = scope.rpartition(".")[0]
    yield target
    yield f"builtins.{target}"


def described(node: nodes.Node) -> str:
    """Return the full name of the object whose docstring contains a node, in the module that defines it."""
    above: nodes.Node | None = node
    while above is not None:
        _, is_docstring, name = (above.source or "").partition(":docstring of ")
        if is_docstring:
            return name.partition(":")[0]
        if isinstance(above, desc_signature):
            name = f"{above['module']}.{above['fullname']}"
            return definition(resolved(name)) or name
        above = above.parent
    return ""


def definition(thing: object) -> str:
    """Return the full name under which an object is defined, or an empty string."""
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
