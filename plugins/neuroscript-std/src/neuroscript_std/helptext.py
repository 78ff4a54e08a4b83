"""Text descriptions of a tool: its signature in one line, its help in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from neuroscript import UNSET, ArgSpec, ArgType, ToolInfo, ToolPolicy, ToolSpec


def signature(spec: ToolSpec) -> str:
    """Return the name, arguments and result of a tool in one line, with the names of ArgTypes."""
    last = len(spec.args) - 1
    arguments = [_argument(arg, spec.variadic and index == last) for index, arg in enumerate(spec.args)]
    kind = _kind(spec.return_type, spec.return_nullable)
    returned = {True: f"stream of {kind}", "maybe": f"{kind} or stream of {kind}"}.get(spec.stream, kind)
    return f"{spec.full_name}({', '.join(arguments)}) -> {returned}"


def help_of(info: ToolInfo) -> str:
    """Return a Markdown section: what a tool does, when to use it, its arguments, result and requirements."""
    spec = info.spec
    parts = [f"## {spec.full_name}", f"`{signature(spec)}`", spec.description, spec.when_to_use]
    parts.append("\n".join(f"- `{arg.name}`: {arg.description}" for arg in spec.args))
    parts.append("\n".join(_facts(spec, info.policy)))
    return "\n\n".join(filter(None, parts))


def _facts(spec: ToolSpec, policy: ToolPolicy) -> Iterator[str]:
    facts = {
        "Returns": spec.return_help,
        "Fails": spec.error_conditions,
        "Needs": ", ".join(f"`{each}`" for each in policy.capabilities),
        "Trust": "requires a trusted host" if policy.requires_trust else "",
        "Approval": "each call requires approval" if policy.requires_approval else "",
        "Effects": ", ".join(policy.effects),
        "Reads": ", ".join(policy.sources or ()),
        "Sends to": ", ".join(policy.sinks or ()),
    }
    yield from (f"- {what}: {text}" for what, text in facts.items() if text)


def _argument(arg: ArgSpec, further: bool) -> str:
    kind = _kind(arg.type, arg.nullable)
    if further:
        return f"*{arg.name}: {kind}"
    if arg.default is not UNSET:
        return f"{arg.name}: {kind} = {_format_default(arg)}"
    return f"{arg.name}: {kind}" if arg.required else f"{arg.name}?: {kind}"


def _format_default(arg: ArgSpec) -> str:
    from neuroscript_std.text.jsontext import compact

    return compact(arg.default)


def _kind(type: ArgType, nullable: bool) -> str:
    return f"{type} | null" if nullable and type is not ArgType.NIL else str(type)
