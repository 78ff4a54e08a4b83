"""What the adapters of agent frameworks have in common: their tools as a toolset, and results in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.content import Audio, Block, Content, EmbeddedResource, Image
from neuroscript.coercion.context import type_name
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.scalars import AnyContent
from neuroscript.coercion.types import ArgType
from neuroscript.errors import CoercionError, Retry, SpecError, ToolFailed
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import (
    MAX_DESCRIPTION_CHARS,
    bounded_schema,
    default_policy,
    passed_arguments,
    tools_by_name,
)
from neuroscript.interop.media import media_type
from neuroscript.io.text import one_line, quote_untrusted
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.callables import is_coroutine
from neuroscript.spec.tool_spec import ArgSpec
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset


@attrs.frozen
class Framework:
    """An agent framework.

    Attributes:
        system: Its name in capabilities and in the names of functions, such as ``llama_index``.
        title: Its name for people.
        kind: The class of its tools.
    """

    system: str
    title: str
    kind: type


@attrs.frozen
class FrameworkTool:
    """A tool of a framework as data.

    Attributes:
        name: Its name in the framework.
        description: Untrusted text.
        schema: The unchecked JSON Schema of its arguments.
        call: A function or coroutine function that receives the runtime and the exact arguments by name.
    """

    name: str
    description: str
    schema: Any
    call: Callable[[Runtime, dict[str, Any]], Any]


def load_toolset(
    framework: Framework,
    tools: Any,
    read: Callable[[Any], FrameworkTool],
    group: str,
    policy: ToolPolicy | None,
    trusted: bool,
) -> Toolset:
    """Return tools of a framework as a toolset, each with *policy* or the `default_policy`.

    Args:
        tools: One tool of the framework, or several.
        read: Returns a tool as data, or raises a `SpecError`.

    Raises:
        SpecError: With every problem found.
    """
    group = Toolset(group).name
    faults: list[str] = []
    found: list[ToolImplementation] = []
    for word, each in tools_by_name(_read_tools(framework, tools, read, faults), faults).items():
        try:
            schema = {"type": "object", **(bounded_schema(each.schema, word) or {})}
            description = one_line(each.description, MAX_DESCRIPTION_CHARS)
            spec = spec_from_schema(word, schema, group=group, description=description)
            needs = policy or default_policy(framework.system, group, each.name, trusted)
            found.append(ToolImplementation(spec, _function(each, spec.args), needs))
        except SpecError as error:
            faults.extend(f"{quote_untrusted(each.name)}: {problem}" for problem in error.problems)
    if faults:
        raise SpecError(f"from_{framework.system} {group}", faults)
    return Toolset(group, tuple(found))


def _read_tools(
    framework: Framework, tools: Any, read: Callable[[Any], FrameworkTool], faults: list[str]
) -> Iterator[tuple[str, FrameworkTool]]:
    """Yield the tools with their names; record the ones that cannot be loaded."""
    is_one = isinstance(tools, framework.kind) or not isinstance(tools, Iterable)  # a model of pydantic is iterable
    for each in (tools,) if is_one else tools:
        if not isinstance(each, framework.kind):
            faults.append(f"tools: expected tools of {framework.title}, got {type_name(each)}")
            continue
        try:
            tool = read(each)
        except SpecError as error:
            faults.extend(f"{quote_untrusted(error.subject)}: {problem}" for problem in error.problems)
        except Exception as error:  # third-party code makes the schema
            name = getattr(getattr(each, "metadata", each), "name", type(each).__name__)
            faults.append(f"{quote_untrusted(str(name))}: cannot be converted to JSON Schema ({type_name(error)})")
        else:
            yield tool.name, tool


def _function(tool: FrameworkTool, args: tuple[ArgSpec, ...]) -> Callable[..., Any]:
    def call(rt: Runtime, *values: Any) -> Any:
        return tool.call(rt, passed_arguments(args, values))

    async def acall(rt: Runtime, *values: Any) -> Any:
        return await tool.call(rt, passed_arguments(args, values))

    return acall if is_coroutine(tool.call) else call


def plain_value(answer: Any, shown: Callable[[Any], str] = str) -> Any:
    """Return a result of a framework's tool; if it is not plain data, the string that a model would see there."""
    try:
        return coerce(answer, ArgType.ANY)
    except CoercionError:
        return shown(answer)


def failed_tool(message: object, retry: Retry = "model") -> ToolFailed:
    """Return the error for the message of a framework's tool, on one line."""
    text = one_line(str(message), MAX_DESCRIPTION_CHARS)
    return ToolFailed(text or "the tool failed without a message", retry=retry)


@attrs.frozen
class Media:
    """An image or audio of a framework.

    Attributes:
        data: Its bytes; nothing if it is elsewhere.
        mime_type: Its media type, if that is known.
    """

    data: bytes | None = attrs.field(repr=False)
    mime_type: str | None


def result_of(parts: Any, value: Any, media: Callable[[Any], Media | None], shown: Callable[[Any], str] = str) -> Any:
    """Return a result of a framework's tool: content if it contains media, otherwise its `plain_value`.

    Args:
        parts: The parts of the result, or a single one.
        value: The result as the tool returned it.
        media: Returns the image or audio in a part, or None.
        shown: Returns the string that a model would see.
    """
    several = parts if isinstance(parts, (list, tuple)) else (parts,)
    found = [(each, media(each)) for each in several]
    if not any(each is not None and each.data for _, each in found):
        return plain_value(value, shown)
    return Content(*(_block(*each) for each in found))


def _block(part: Any, media: Media | None) -> str | Block:
    """Return a part as a block of content; a part without media becomes its text."""
    if media is None or not media.data:
        return str(getattr(part, "text", None) or part)
    kind = media.mime_type or media_type(media.data) or "application/octet-stream"
    if kind.startswith(("image/", "audio/")):
        return (Audio if kind.startswith("audio/") else Image)(media.data, kind)
    return EmbeddedResource("result", media.data, media_type=kind)


def media_parts(value: Any, part: Callable[..., Any]) -> list[Any] | None:
    """Return a result as strings and media of a framework, in order, or None if it contains no media.

    Args:
        part: Returns an image or audio in the form of the framework; called with ``data`` and ``mime_type`` by name.
    """
    if not isinstance(value, AnyContent):
        kind = media_type(value)
        return [part(data=value, mime_type=kind)] if kind.startswith(("image/", "audio/")) else None
    if not any(map(_is_media, value.parts)):
        return None
    return [part(data=each.data, mime_type=each.media_type) if _is_media(each) else each.note for each in value.parts]


def _is_media(block: Any) -> bool:
    return block.kind in ("image", "audio")


def parts_or_data(value: Any, part: Callable[..., Any]) -> Any:
    """Return the `media_parts` of a result, or the result as plain data; content without media is its text."""
    parts = media_parts(value, part)
    if parts is not None:
        return parts
    return value.text if isinstance(value, AnyContent) else to_plain(value)


def is_cached(arguments: Any = None, result: Any = None) -> bool:
    """Return False: a framework may not cache results, because the engine checks and records every call."""
    return False
