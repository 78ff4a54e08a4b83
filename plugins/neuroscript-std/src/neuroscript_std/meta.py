"""Tools on tools: which may be called here, with what, and what each needs of the host.

A tool that this host does not permit is not shown.

Source: upstream ``pkg/tool/meta``, which tells neither trust nor capabilities nor effects.
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

LOOKING: Final = ToolPolicy(effects=("reads", "idempotent"), blocking=False)

NONE: Final = "No tools found matching filter."

toolset = Toolset("meta")


@toolset.tool(
    policy=LOOKING,
    when_to_use="For a short look at what can be called; meta.show tells all of one tool, meta.toolshelp of several.",
    examples=(
        Example(("meta.show",), "meta.show(name: string) -> map"),
        Example({"filter": "IO."}, 'io.input(message: string = "") -> string\nio.print(*values: any | null) -> nil'),
        Example(("no such tool",), ""),
        Example(([],), error="coercion.type"),
    ),
)
def listtoolnames(rt: Runtime, filter: str = "") -> str:
    """List the tools that may be called, by their signatures.

    Args:
        filter: A part of the names to be listed, in any case; all are unless it is said.

    Returns:
        One signature in each line, in the order of their names.
    """
    return "\n".join(signature(each.spec) for each in _found(rt, filter))


@toolset.tool(
    policy=LOOKING,
    when_to_use="For the specs of tools as data; meta.gettoolspecificationsjson gives the same as text.",
    examples=(
        Example(("no such tool",), []),
        Example({"filter": "math."}),
        Example((["math."],), error="coercion.type"),
    ),
)
def listtools(rt: Runtime, filter: str = "") -> list[dict[str, Any]]:
    """Describe the tools that may be called, as data.

    Args:
        filter: A part of the names of the tools, in any case; all are described unless it is said.

    Returns:
        One map for each, in the order of their names, as meta.show gives it.
    """
    return [_described(each) for each in _found(rt, filter)]


@toolset.tool(
    policy=LOOKING,
    when_to_use="For all that is to be known of one tool; meta.listtoolnames tells which there are.",
    examples=(
        Example(("math.add",)),
        Example({"name": "math__add"}, note="in any spelling"),
        Example(("math.plus",), error="meta.unknown"),
    ),
)
def show(rt: Runtime, name: str) -> dict[str, Any]:
    """Describe one tool, as data.

    Args:
        name: Its name, in any spelling.

    Returns:
        Its spec (name, groupname, fullname, args, returnType and others), what it needs (requiresTrust, requiredCaps,
        effects, requiresApproval) and its origin, the distribution that brought it.

    Raises:
        ToolFailed: meta.unknown.
    """
    info = rt.tools.get(_canonical(name))
    if info is None:
        text = "name: expected one of the tools that meta.listtoolnames lists, got another text"
        raise ToolFailed(text, code="meta.unknown", retry="model")
    return _described(info)


@toolset.tool(
    policy=LOOKING,
    when_to_use="For the specs of tools as JSON, to hand them on; meta.listtools gives them as data.",
    examples=(
        Example(("no such tool",), "[]"),
        Example({"filter": "math."}),
        Example((None, "math."), error="arg.count"),
    ),
)
def gettoolspecificationsjson(rt: Runtime, filter: str = "") -> str:
    """Describe the tools that may be called, as JSON text.

    Args:
        filter: A part of the names of the tools, in any case; all are described unless it is said.

    Returns:
        An array of what meta.listtools gives, keys sorted.
    """
    from neuroscript_std.text.jsontext import compact

    return compact(listtools(rt, filter))


@toolset.tool(
    policy=LOOKING,
    when_to_use="For help that is read, by a person or a model; meta.show gives one tool as data.",
    examples=(
        Example(("no such tool",), NONE),
        Example({"filter": "math."}),
        Example((7,), error="coercion.type"),
    ),
)
def toolshelp(rt: Runtime, filter: str = "") -> str:
    """Explain the tools that may be called, in Markdown.

    Args:
        filter: A part of the names of the tools, in any case; all are explained unless it is said.

    Returns:
        A section for each, in the order of their names, or a sentence where there is none.
    """
    return "\n\n".join(help_of(each) for each in _found(rt, filter)) or NONE


def _found(rt: Runtime, filter: str) -> list[ToolInfo]:
    wanted = filter.lower()
    return [info for name, info in sorted(rt.tools.items()) if wanted in name]


def _described(info: ToolInfo) -> dict[str, Any]:
    return {**spec_to_data(info.spec), **policy_to_data(info.policy), "origin": info.origin}


def _canonical(name: str) -> str:
    plain = name.lower().replace("__", ".")
    while plain.startswith("tool."):
        plain = plain.removeprefix("tool.")
    return plain
