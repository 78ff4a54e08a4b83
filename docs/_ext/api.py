"""The API reference: each public name on exactly one page.

A name is public if the ``__all__`` of a package contains it, or if `DOCUMENTED` lists it. A name that several packages
export is described once, under its shortest spelling; the other spellings lead there.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import attrs
from docs._ext.source import ROOT, Pages
from sphinx.ext.autodoc.mock import mock  # type: ignore[attr-defined]
from sphinx.pycode import ModuleAnalyzer

PACKAGE: Final = ROOT / "src" / "neuroscript"

DOCUMENTED: Final[Mapping[str, str]] = {
    "neuroscript.audit.recording": "decode encode",
    "neuroscript.calls.hooks": "Hooks",
    "neuroscript.config.policy_file": "policy_of_toml",
    "neuroscript.interop.crewai": "from_crewai to_crewai",
    "neuroscript.interop.google_adk": "from_google_adk to_google_adk",
    "neuroscript.interop.http_server.access_tokens": "JWTAuthenticator",
    "neuroscript.interop.http_server.introspection": "IntrospectionAuthenticator",
    "neuroscript.interop.http_server.listener": "server",
    "neuroscript.interop.http_server.principals": "Authenticator Principal Refusal StaticTokens",
    "neuroscript.interop.inspect_ai": "to_inspect_ai",
    "neuroscript.interop.llama_index": "from_llama_index to_llama_index",
    "neuroscript.interop.mcp.server.http": "app",
    "neuroscript.interop.openai_agents": "to_openai_agents",
    "neuroscript.interop.opentelemetry": "Tracing",
    "neuroscript.interop.pydantic_ai": "to_pydantic_ai",
    "neuroscript.policy.flow_rules": "FLOW_PROFILES",
    "neuroscript.runtime.wire_names": "WireNames",
    "neuroscript.testing.replay": "Difference Replayed replay",
    "neuroscript.tools.fingerprints": "fingerprint",
    "neuroscript.tools.hookspecs": """
        neuroscript_call_finished neuroscript_call_started neuroscript_decide neuroscript_engine_closed
        neuroscript_tool_registered neuroscript_toolsets
    """,
}
"""Public names of modules that are not packages; the documents import them."""

ABSENT: Final = ["crewai", "google.adk"]
"""Packages that need an environment of their own; Sphinx replaces them, so that their adapters can be described."""

PAGES: Final[Mapping[str, tuple[str, str]]] = {
    "engine": ("Engines and sessions", "engine discovery calls isolation state"),
    "tools": ("Tools, specs and types", "tools spec coercion"),
    "authority": ("Authority and approval", "policy approval config"),
    "runtime": ("Runtime, host and sandbox", "runtime sandbox _version"),
    "errors": ("Errors", "errors"),
    "audit": ("Audit log and recordings", "audit"),
    "formats": ("Schemas and prompts", "formats interop.functions interop.openapi.export"),
    "models": ("Models and conversations", "llm"),
    "model-formats": ("Formats of model APIs", "llm.wire"),
    "plans": ("Plans and traces", "workflow"),
    "durable-plans": ("Durable plans", "workflow.durable"),
    "testing": ("Test kit", "testing"),
    "console": ("Web console", "console"),
    "integrations": ("Integrations", "interop"),
    "command": ("Command", "cli"),
}
"""The title of each page, and the packages and modules whose names it describes; the longest one decides."""


@attrs.frozen(order=True)
class PublicName:
    """A public name.

    Attributes:
        module: The package that exports it.
        home: The module that defines it.
    """

    module: str
    name: str
    home: str

    @property
    def full(self) -> str:
        """The name with its module."""
        return f"{self.module}.{self.name}"

    @property
    def page(self) -> str:
        """The name of the page that describes it."""
        fitting = [
            (len(prefix), page)
            for page, (_, prefixes) in PAGES.items()
            for prefix in prefixes.split()
            if f"{self.home}.".startswith(f"neuroscript.{prefix}.")
        ]
        return max(fitting)[1]


@cache
def public_names() -> tuple[PublicName, ...]:
    """Return every public name, in each package that exports it."""
    listed = [PublicName(module, name, module) for module, names in DOCUMENTED.items() for name in names.split()]
    return tuple(sorted([*listed, *_exported()]))


def _exported() -> Iterator[PublicName]:
    for file in sorted(PACKAGE.rglob("__init__.py")):
        module = ".".join(file.parent.relative_to(PACKAGE.parent).parts)
        yield from _exported_by(module, file)


def _exported_by(module: str, file: Path) -> Iterator[PublicName]:
    """Yield the names in ``__all__`` of a package, with the modules from which it imports them."""
    tree = ast.parse(file.read_text())
    homes = {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == ["__all__"]:
            for name in ast.literal_eval(node.value):
                yield PublicName(module, name, homes.get(name) or module)


@cache
def described_names() -> Mapping[str, tuple[PublicName, ...]]:
    """Return all spellings of each described name, the described one first, by its full name."""

    def definition(each: PublicName) -> tuple[str, str]:
        return each.home, each.name

    found: dict[str, tuple[PublicName, ...]] = {}
    for _, spellings in groupby(sorted(public_names(), key=definition), key=definition):
        first, *others = sorted(spellings, key=lambda each: (each.module.count("."), each.module))
        found[first.full] = (first, *others)
    return found


def api_pages() -> Pages:
    """Return the pages of the API reference."""
    names = [spellings[0] for spellings in described_names().values()]
    pages: Pages = {f"api/{page}.rst": _page(page, [each for each in names if each.page == page]) for page in PAGES}
    listed = "\n   ".join(PAGES)
    pages["api/index.rst"] = (
        f"{_heading('API reference', '=')}\n"
        "Every public name is on one of these pages. Other names may change in any version.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n   {listed}\n\n"
        f"{_heading('neuroscript', '-')}\n.. automodule:: neuroscript\n   :no-members:\n"
    )
    return pages


def _page(page: str, names: list[PublicName]) -> str:
    parts = [_heading(PAGES[page][0], "=")]
    for module, members in groupby(sorted(names), key=lambda each: each.module):
        declared = "py:currentmodule" if module == "neuroscript" else "automodule"
        options = "" if module == "neuroscript" else "   :no-members:\n"
        parts += [_heading(module, "-"), f".. {declared}:: {module}\n{options}"]
        parts += [_directive(each) for each in members]
    return "\n".join(parts)


def _directive(name: PublicName) -> str:
    """Return the directive that describes a name."""
    with mock(ABSENT):
        thing = getattr(import_module(name.module), name.name)
    match thing:
        case type():
            return f".. {'autoexception' if issubclass(thing, BaseException) else 'autoclass'}:: {name.full}\n"
        case _ if inspect.isroutine(thing):
            return f".. autofunction:: {name.full}\n"
        case _:
            return f".. py:data:: {name.name}\n   :canonical: {name.home}.{name.name}\n\n{_comment(name)}\n"


def _comment(name: PublicName) -> str:
    """Return the docstring of a constant or of a type alias."""
    documented: Mapping[tuple[str, str], list[str]] = ModuleAnalyzer.for_module(name.home).find_attr_docs()
    return indent("\n".join(documented.get(("", name.name), [])), "   ")


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


@cache
def resolved(name: str) -> Any:
    """Return the object with a full name, or None."""
    parts = name.split(".")
    if not all(map(str.isidentifier, parts)):
        return None
    for end in range(len(parts), 0, -1):
        try:
            with mock(ABSENT):
                found: Any = import_module(".".join(parts[:end]))
            for part in parts[end:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found
    return None
