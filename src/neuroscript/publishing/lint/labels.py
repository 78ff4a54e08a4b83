"""Checks of the sources and sinks in policies: contradictions, and labels that are left to be assumed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.labels import label_contradictions, sinks_of, sources_of
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.publishing.lint.finding import Finding
from neuroscript.publishing.lint.sources import Module
from neuroscript.publishing.lint.tools import find_tools, is_open, keyword

FIELDS: Final = ("effects", "capabilities", "sources", "sinks", "declassifies")
"""The fields of a policy that labels follow from."""

ANYTHING: Final = "it counts as reading and sending anything; declare effects, or sources and sinks"


def contradictions(module: Module) -> Iterator[Finding]:
    """Yield a finding for each policy whose labels contradict its effects or capabilities."""
    for call, policy in _policies(module):
        for sentence in label_contradictions(policy):
            yield module.finding(call, "lint.labels", sentence)


def missing_labels(module: Module) -> Iterator[Finding]:
    """Yield a suggestion for each policy whose labels are assumed, and for each tool without a policy."""
    for call, policy in _policies(module):
        if policy.sources is None and policy.sinks is None and (sources_of(policy) or sinks_of(policy)):
            yield module.finding(call, "lint.no-labels", _suggestion(policy))
    for tool in (each for tools in find_tools(module) for each in tools):
        if tool.is_without_policy:
            text = f"{quote_untrusted(tool.name)} has no policy, so {ANYTHING}"
            yield module.finding(tool.node, "lint.no-labels", text)


def _suggestion(policy: ToolPolicy) -> str:
    if not policy.effects:
        return f"the policy has neither effects nor labels, so {ANYTHING}"
    sources, sinks = (", ".join(labels) or "nothing" for labels in (sources_of(policy), sinks_of(policy)))
    return f"the policy has no labels; declare sources (assumed: {sources}) and sinks (assumed: {sinks})"


def _policies(module: Module) -> Iterator[tuple[ast.Call, ToolPolicy]]:
    """Yield each call of `ToolPolicy` whose labels the module determines, and the policy without its other fields."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or module.dotted(node.func) != "neuroscript.ToolPolicy" or is_open(node):
            continue
        stated = {name: value for name in FIELDS if (value := keyword(node, name)) is not None}
        values = {name: _strings(module, value) for name, value in stated.items()}
        known = {name: value for name, value in values.items() if value is not None}
        if len(known) == len(stated):
            try:
                yield node, ToolPolicy(**known)  # type: ignore[arg-type]
            except SpecError:  # reported when the module is imported
                continue


def _strings(module: Module, node: ast.AST) -> tuple[str, ...] | None:
    """Return the strings of a literal collection, or None if the module does not determine all of them."""
    match node:
        case ast.Name(id=name) if name in module.top and not isinstance(module.top[name], ast.Name):
            return _strings(module, module.top[name])
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            found = [_string(module, each) for each in items]
            return None if None in found else tuple(map(str, found))
    return None


def _string(module: Module, node: ast.AST) -> str | None:
    value = module.top.get(node.id) if isinstance(node, ast.Name) else node
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
