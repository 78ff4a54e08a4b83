"""The ``meta`` tools: list and describe the available tools, their arguments and the permissions they need.

Tools that the host does not permit are not listed.
"""

from __future__ import annotations

from typing import Any, Final

from neuroscript import (
    Example,
    Runtime,
    ToolFailed,
    ToolInfo,
    ToolPolicy,
    Toolset,
    policy_to_data,
    spec_to_data,
)
from neuroscript_std.helptext import help_of, signature

LOOKING: Final = ToolPolicy(effects=("reads", "idempotent"), blocking=False, sources=(), sinks=())
"""A model already receives the specs of the tools that it can call."""

NONE: Final = "No tools found matching filter."

toolset = Toolset("meta")


@toolset.tool(
    policy=LOOKING,
    when_to_use="Use it for a short overview; for the details of one tool, use meta.show, for help, meta.toolshelp.",
    examples=(
        Example(("meta.show",), "meta.show(name: string) -> map"),
        Example({"filter": "IO."}, 'io.input(message: string = "") -> string\nio.print(*values: any | null) -> nil'),
        Example(("no such tool",), ""),
        Example(([],), error="coercion.type"),
    ),
)
def listtoolnames(rt: Runtime, filter: str = "") -> str:
    """List the names of all available tools as text: one line with the signature of each.

    Args:
        filter: List only names that contain this string, case-insensitive; by default, all.

    Returns:
        One signature per line, sorted by name.
    """
    return "\n".join(signature(each.spec) for each in _matching_tools(rt, filter))


@toolset.tool(
    policy=LOOKING,
    when_to_use="Use it to process specs as data; for a JSON string, use meta.gettoolspecificationsjson.",
    examples=(
        Example(("no such tool",), []),
        Example({"filter": "math."}),
        Example((["math."],), error="coercion.type"),
    ),
)
def listtools(rt: Runtime, filter: str = "") -> list[dict[str, Any]]:
    """List the available tools as data: names, arguments, results and required permissions.

    Args:
        filter: List only names that contain this string, case-insensitive; by default, all.

    Returns:
        One map for each tool, sorted by name, as returned by meta.show.
    """
    return [_described(each) for each in _matching_tools(rt, filter)]


@toolset.tool(
    policy=LOOKING,
    when_to_use="Use it for one tool; to see which tools exist, use meta.listtoolnames.",
    examples=(
        Example(("math.add",)),
        Example({"name": "math__add"}, note="the wire name is accepted too"),
        Example(("math.plus",), error="meta.unknown"),
    ),
)
def show(rt: Runtime, name: str) -> dict[str, Any]:
    """Show the details and documentation of a single tool by name, as data.

    Args:
        name: Name of the tool, canonical or as a model calls it (math__add).

    Returns:
        Its spec (name, groupname, fullname, args, returnType and others), its policy (requiresTrust,
        requiredCaps, effects, requiresApproval, sources, sinks) and its origin, the distribution that provides it.

    Raises:
        ToolFailed: meta.unknown.
    """
    info = rt.tools.get(_canonical(name))
    if info is None:
        text = "name: expected a tool that meta.listtoolnames lists, got another string"
        raise ToolFailed(text, code="meta.unknown", retry="model")
    return _described(info)


@toolset.tool(
    policy=LOOKING,
    when_to_use="Use it to export specs as a JSON string; for data, use meta.listtools.",
    examples=(
        Example(("no such tool",), "[]"),
        Example({"filter": "math."}),
        Example((None, "math."), error="arg.count"),
    ),
)
def gettoolspecificationsjson(rt: Runtime, filter: str = "") -> str:
    """Return the specifications of the available tools as a JSON string.

    Args:
        filter: List only names that contain this string, case-insensitive; by default, all.

    Returns:
        A JSON array of what meta.listtools returns, with sorted keys.
    """
    from neuroscript_std.text.jsontext import compact

    return compact(listtools(rt, filter))


@toolset.tool(
    policy=LOOKING,
    when_to_use="Use it for help that a user or a model reads; for the spec of one tool as data, use meta.show.",
    examples=(
        Example(("no such tool",), NONE),
        Example({"filter": "math."}),
        Example((7,), error="coercion.type"),
    ),
)
def toolshelp(rt: Runtime, filter: str = "") -> str:
    """Show help text for the available tools, formatted as Markdown.

    Args:
        filter: Show only names that contain this string, case-insensitive; by default, all.

    Returns:
        One section for each tool, sorted by name, or a message if no tool matches.
    """
    return "\n\n".join(help_of(each) for each in _matching_tools(rt, filter)) or NONE


def _matching_tools(rt: Runtime, filter: str) -> list[ToolInfo]:
    pattern = filter.lower()
    return [info for name, info in sorted(rt.tools.items()) if pattern in name]


def _described(info: ToolInfo) -> dict[str, Any]:
    return {**spec_to_data(info.spec), **policy_to_data(info.policy), "origin": info.origin}


def _canonical(name: str) -> str:
    plain = name.lower().replace("__", ".")
    while plain.startswith("tool."):
        plain = plain.removeprefix("tool.")
    return plain
