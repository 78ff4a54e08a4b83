"""Conversion of a server's tool definition to a tool: its spec, its sanitized descriptions and its policy.

Annotations are unverified claims. Without ``trust_annotations`` they are ignored: every tool has the effect
``deletes``, its results carry every label, and its arguments may go anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.errors import SpecError
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS, call_capability, plain_schema, safe_text, tools_by_name
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.call import RemoteCall
from neuroscript.interop.mcp.client.connection import RequestSender, Unconnected
from neuroscript.interop.mcp.client.results import promise_of
from neuroscript.io.text import quote_untrusted
from neuroscript.names import wire_name
from neuroscript.policy.labels import ALL_SINKS, ALL_SOURCES
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.wire_names import truncate
from neuroscript.tools.tool import ToolImplementation


@attrs.frozen
class Trust:
    """The trust of a host in a server.

    Attributes:
        trusted: Whether its tools are called without approval.
        annotations: Whether its annotations about effects are accepted.
        formats: Whether the formats of strings in its schemas are checked.
        sampling: Whether it may use the host's model.
        description_chars: The maximum length of a description, which is on one line. None for definitions that the host
            has accepted: their descriptions are complete.
    """

    trusted: bool = False
    annotations: bool = False
    formats: bool = False
    sampling: bool = False
    description_chars: int | None = MAX_DESCRIPTION_CHARS


def definitions_by_name(definitions: Iterable[Definition], faults: list[str]) -> dict[str, Definition]:
    """Return definitions by tool name; record the ones without a valid or unique name."""
    things = ((each.name, each) for each in definitions)
    return tools_by_name(things, faults, "leave out all but one with select")


def _without_equal_wire_names(found: dict[str, Definition], group: str, faults: list[str]) -> dict[str, Definition]:
    """Leave out tools whose names would be equal for models after truncation, and record them.

    A server can choose such names on purpose, and the list of all tools would then fail.
    """
    words: dict[str, list[str]] = {}
    for word in found:
        words.setdefault(truncate(wire_name(f"{group}.{word}")), []).append(word)
    for several in words.values():
        if len(several) > 1:
            names = " and ".join(quote_untrusted(found.pop(word).name) for word in several)
            faults.append(f"{names} have the same name for models; leave out all but one with select")
    return found


def tool_of(
    definition: Definition, group: str, word: str, connection: RequestSender, belief: Trust
) -> ToolImplementation:
    """Return the tool for a definition.

    Raises:
        SpecError: With every problem found.
    """
    data = definition.data
    longest = belief.description_chars
    schema = plain_schema(data["inputSchema"], longest)
    schema.setdefault("type", "object")
    text = safe_text(data.get("description") or data.get("title"), longest)
    promise = promise_of(data.get("outputSchema"), formats=belief.formats)
    spec = spec_from_schema(word, schema, group=group, description=text, formats=belief.formats)
    spec = attrs.evolve(spec, returns=promise.returns, definition=json.dumps(_published(data, schema, belief)))
    policy = policy_of(definition, group, belief, connection.seconds)
    return ToolImplementation(spec, RemoteCall(definition, spec.args, promise, connection), policy)


def _published(data: Mapping[str, Any], schema: Mapping[str, Any], belief: Trust) -> dict[str, Any]:
    """Return what clients of the host learn about a tool: its definition, with the annotations of a trusted server."""
    longest = belief.description_chars
    found = {key: data[key] for key in ("name", "icons", "_meta") if data.get(key) is not None}
    found |= {key: safe_text(data[key], longest) for key in ("title", "description") if data.get(key) is not None}
    if data.get("outputSchema") is not None:
        found["outputSchema"] = plain_schema(data["outputSchema"], longest)
    if belief.annotations:
        hints: Mapping[str, Any] = data.get("annotations") or {}
        found["annotations"] = {k: safe_text(v, longest) if isinstance(v, str) else v for k, v in hints.items()}
    return {**found, "inputSchema": schema}


def inspection_tool(definition: Definition, group: str) -> ToolImplementation:
    """Return the tool for a definition, for inspection only; it needs no capability, because its calls always fail.

    Raises:
        SpecError: With every problem found.
    """
    return attrs.evolve(single_tool(definition, group, Unconnected(), Trust()), policy=ToolPolicy())


def single_tool(definition: Definition, group: str, connection: RequestSender, belief: Trust) -> ToolImplementation:
    """Return the tool for a definition on its own.

    Raises:
        SpecError: With every problem found.
    """
    faults: list[str] = []
    for word in definitions_by_name([definition], faults):
        return tool_of(definition, group, word, connection, belief)
    raise SpecError("definition", faults)


def policy_of(definition: Definition, group: str, belief: Trust, seconds: float) -> ToolPolicy:
    """Return the policy: the capability ``mcp:call:GROUP/NAME``, and approval of each call unless it is trusted."""
    annotations: Mapping[str, Any] = definition.data.get("annotations") or {}
    claims = annotations if belief.annotations else {}
    is_reading = claims.get("readOnlyHint") is True
    effects = ["net", "reads"]
    if not is_reading:
        effects.append("writes")
        if claims.get("destructiveHint") is not False:
            effects.append("deletes")
    if is_reading or claims.get("idempotentHint") is True:
        effects.append("idempotent")
    is_closed = claims.get("openWorldHint") is False
    sinks = (*(() if is_closed else ("outside",)), *(() if is_reading else ("storage",)))
    return ToolPolicy(
        capabilities=(call_capability("mcp", group, definition.name), *(("model:use",) if belief.sampling else ())),
        effects=tuple(effects),
        requires_approval=not (belief.trusted or is_reading),
        timeout=seconds,
        sources=("private",) if is_closed else ALL_SOURCES,
        sinks=sinks if belief.annotations else ALL_SINKS,
    )


def tools_of(
    definitions: Iterable[Definition],
    group: str,
    connection: RequestSender,
    belief: Trust,
    faults: list[str],
    deadline: float | None = None,
) -> list[ToolImplementation]:
    """Return the tools for definitions.

    Args:
        faults: Receives the problems of tools that cannot be used; they do not affect other tools.
        deadline: The time limit for reading the definitions, in seconds of `time.monotonic`.

    Raises:
        TimeoutError: The deadline has passed.
    """
    found: list[ToolImplementation] = []
    for word, each in _without_equal_wire_names(definitions_by_name(definitions, faults), group, faults).items():
        if deadline is not None and monotonic() > deadline:
            raise TimeoutError
        try:
            found.append(tool_of(each, group, word, connection, belief))
        except SpecError as error:
            faults.extend(f"{quote_untrusted(each.name)}: {problem}" for problem in error.problems)
        except Exception as error:  # definitions are untrusted; one that cannot be read must not affect the others
            faults.append(f"{quote_untrusted(each.name)}: cannot be read ({type_name(error)})")
    return found
