"""What a server says of a tool as a tool of ours: its contract, its words made safe, and what it needs.

What annotations say are claims. Without ``trust_annotations`` none is believed, and every tool deletes.

Source: contract section 5; Model Context Protocol, "Tool annotations".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.types import ArgType
from neuroscript.errors import SpecError
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import LONGEST, by_word, call_need, plain_schema
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.call import Calling
from neuroscript.interop.mcp.client.connection import Asking, Unconnected
from neuroscript.interop.mcp.client.results import promise_of
from neuroscript.io.text import one_line, shown
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.tool import ToolImplementation


@attrs.frozen
class Belief:
    """What a host says of a server.

    Attributes:
        trusted: Whether its tools are called without an approval.
        annotations: Whether what it says of what its tools do is believed.
    """

    trusted: bool = False
    annotations: bool = False


def named(definitions: Iterable[Definition], faults: list[str]) -> dict[str, Definition]:
    """Return definitions by the word of each; those that have none, or one with another, are noted."""
    things = ((each.name, each) for each in definitions)
    return by_word(things, faults, "leave out all but one with select")


def tool_of(definition: Definition, group: str, word: str, connection: Asking, belief: Belief) -> ToolImplementation:
    """Return the tool that a definition describes.

    Raises:
        SpecError: With everything about it that can not be taken.
    """
    data = definition.data
    schema = plain_schema(data["inputSchema"])
    schema.setdefault("type", "object")
    text = one_line(data.get("description") or data.get("title"), LONGEST)
    promise = promise_of(data.get("outputSchema"))
    spec = spec_from_schema(word, schema, group=group, description=text, return_type=promise.type)
    if promise.nullable and promise.type is not ArgType.ANY:
        spec = attrs.evolve(spec, return_nullable=True)
    policy = policy_of(definition, group, belief, connection.seconds)
    return ToolImplementation(spec, Calling(definition, spec.args, promise, connection), policy)


def described(definition: Definition, group: str) -> ToolImplementation:
    """Return the tool that a definition describes, to be looked at: no call of it comes to an end, so it needs nothing.

    Raises:
        SpecError: With everything about it that can not be taken.
    """
    return attrs.evolve(single(definition, group, Unconnected(), Belief()), policy=ToolPolicy())


def single(definition: Definition, group: str, connection: Asking, belief: Belief) -> ToolImplementation:
    """Return the tool that a definition describes, which has no others beside it.

    Raises:
        SpecError: With everything about it that can not be taken.
    """
    faults: list[str] = []
    for word in named([definition], faults):
        return tool_of(definition, group, word, connection, belief)
    raise SpecError("definition", faults)


def policy_of(definition: Definition, group: str, belief: Belief, seconds: float) -> ToolPolicy:
    """Return what a foreign tool needs: ``mcp:call:GROUP/NAME``, and an approval of each call unless it is trusted."""
    said: Mapping[str, Any] = definition.data.get("annotations") or {}
    claims = said if belief.annotations else {}
    is_reading = claims.get("readOnlyHint") is True
    effects = ["net", "reads"]
    if not is_reading:
        effects.append("writes")
        if claims.get("destructiveHint") is not False:
            effects.append("deletes")
    if is_reading or claims.get("idempotentHint") is True:
        effects.append("idempotent")
    return ToolPolicy(
        capabilities=(call_need("mcp", group, definition.name),),
        effects=tuple(effects),
        requires_approval=not (belief.trusted or is_reading),
        timeout=seconds,
    )


def tools_of(
    definitions: Iterable[Definition],
    group: str,
    connection: Asking,
    belief: Belief,
    faults: list[str],
    deadline: float | None = None,
) -> list[ToolImplementation]:
    """Return the tools that definitions describe.

    Args:
        faults: Where to note each tool that cannot be used, and why; it stops no other.
        deadline: Until when the definitions may be read, in seconds of `time.monotonic`.

    Raises:
        TimeoutError: The deadline has passed.
    """
    found: list[ToolImplementation] = []
    for word, each in named(definitions, faults).items():
        if deadline is not None and monotonic() > deadline:
            raise TimeoutError
        try:
            found.append(tool_of(each, group, word, connection, belief))
        except SpecError as error:
            faults.extend(f"{shown(each.name)}: {problem}" for problem in error.problems)
        except Exception as error:  # a definition is from outside, and one that we cannot read stops no other
            faults.append(f"{shown(each.name)}: cannot be read ({type_name(error)})")
    return found
