"""Resources and prompts of an MCP server: for the host directly, and as tools that pass through the pipeline.

Everything that a server sends is untrusted. Names and descriptions are shown as one line and truncated, and items
without a valid URI or name are left out.
"""

from __future__ import annotations

from binascii import Error, a2b_base64
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from neuroscript.coercion.content import Content
from neuroscript.coercion.types import ArgType
from neuroscript.errors import PluginError, ToolFailed
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS
from neuroscript.interop.mcp.client.connection import Connection, RequestSender
from neuroscript.interop.mcp.client.results import content_of, response_error
from neuroscript.io.text import one_line
from neuroscript.policy.labels import ALL_SINKS, ALL_SOURCES
from neuroscript.policy.scopes import literal
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Runtime
from neuroscript.spec.served import MAX_URI_CHARS
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.tool import ToolImplementation

MAX_ITEMS: Final = 10_000
"""Maximum number of resources, templates or prompts of a server."""

MAX_PAGES: Final = 100
"""Maximum number of pages in a list."""

MAX_NAME_CHARS: Final = 256
"""Maximum length of the name of a prompt or an argument, in characters."""

T = TypeVar("T")


@attrs.frozen
class RemoteResource:
    """A resource of a server, or a template of resources.

    Attributes:
        uri: The URI, or the URI template, exactly as the server sent it.
        name: The name on the server.
        title: The name for people, or ``""``.
        description: What it contains, or ``""``.
        media_type: Its media type, or ``""``.
        size: Its size in bytes, or None.
    """

    uri: str
    name: str
    title: str = ""
    description: str = ""
    media_type: str = ""
    size: int | None = None


@attrs.frozen
class RemoteContent:
    """One part of the content of a resource.

    Attributes:
        uri: The URI of the part.
        value: A string or bytes.
        media_type: Its media type, or ``""``.
    """

    uri: str
    value: str | bytes = attrs.field(repr=False)
    media_type: str = ""


@attrs.frozen
class RemoteArgument:
    """An argument of a prompt.

    Attributes:
        name: The name, exactly as the server sent it.
        description: What it means, or ``""``.
        required: Whether the prompt needs it.
    """

    name: str
    description: str = ""
    required: bool = False


@attrs.frozen
class RemotePrompt:
    """A prompt of a server.

    Attributes:
        name: The name, exactly as the server sent it.
        title: The name for people, or ``""``.
        description: What it asks for, or ``""``.
        arguments: Its arguments.
    """

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[RemoteArgument, ...] = ()


@attrs.frozen
class RemoteMessage:
    """A message of a prompt.

    Attributes:
        role: ``user`` or ``assistant``.
        content: A string, or a `Content` of one block for everything else.
    """

    role: str
    content: str | Content = attrs.field(repr=False)


class RemoteResources:
    """The resources of a server, for the host itself: these requests are not calls, so no policy applies to them."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._connection = connection
        self._group = group

    def list(self) -> tuple[RemoteResource, ...]:
        """Return the resources; raise a `PluginError` if the server does not list them."""
        return asked(self._connection, self._group, list_resources)

    def templates(self) -> tuple[RemoteResource, ...]:
        """Return the templates; raise a `PluginError` if the server does not list them."""
        return asked(self._connection, self._group, list_templates)

    def read(self, uri: str) -> tuple[RemoteContent, ...]:
        """Return the content of a resource; raise a `PluginError` if the server does not send it."""
        return asked(self._connection, self._group, lambda dialogue: read_resource(dialogue, uri))


class RemotePrompts:
    """The prompts of a server, for the host itself: these requests are not calls, so no policy applies to them."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._connection = connection
        self._group = group

    def list(self) -> tuple[RemotePrompt, ...]:
        """Return the prompts; raise a `PluginError` if the server does not list them."""
        return asked(self._connection, self._group, list_prompts)

    def get(self, name: str, arguments: Mapping[str, str] | None = None) -> tuple[RemoteMessage, ...]:
        """Return the messages of a prompt; raise a `PluginError` if the server does not send them."""
        return asked(self._connection, self._group, lambda dialogue: get_prompt(dialogue, name, arguments or {}))


def asked(connection: Connection, group: str, work: Callable[[Any], Awaitable[T]]) -> T:
    """Return the result of a request, blocking the thread; raise a `PluginError` if it fails."""
    try:
        return connection.asked_now(work)
    except ToolFailed as error:
        raise PluginError(f"mcp {group}", error.text, code=error.code) from error


# Requests


async def list_resources(dialogue: Any) -> tuple[RemoteResource, ...]:
    """Return the resources that a server lists."""
    return tuple(_resources(await _listed(dialogue, "resources/list", "resources"), "uri"))


async def list_templates(dialogue: Any) -> tuple[RemoteResource, ...]:
    """Return the templates of resources that a server lists."""
    return tuple(_resources(await _listed(dialogue, "resources/templates/list", "resourceTemplates"), "uriTemplate"))


async def list_prompts(dialogue: Any) -> tuple[RemotePrompt, ...]:
    """Return the prompts that a server lists."""
    found = await _listed(dialogue, "prompts/list", "prompts")
    return tuple(
        RemotePrompt(each["name"], _text(each, "title"), _text(each, "description"), tuple(_arguments(each)))
        for each in found
        if _is_name(each.get("name"), MAX_NAME_CHARS)
    )


async def read_resource(dialogue: Any, uri: str) -> tuple[RemoteContent, ...]:
    """Return the content of a resource."""
    result = await dialogue.ask("resources/read", {"uri": uri})
    return tuple(_content(each) for each in result["contents"])


async def get_prompt(dialogue: Any, name: str, arguments: Mapping[str, str]) -> tuple[RemoteMessage, ...]:
    """Return the messages of a prompt."""
    result = await dialogue.ask("prompts/get", {"name": name, "arguments": dict(arguments)})
    return tuple(RemoteMessage(each["role"], _message_content(each["content"])) for each in result["messages"])


async def _listed(dialogue: Any, method: str, key: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        page = await dialogue.ask(method, params)
        found += page[key]
        if len(found) > MAX_ITEMS:
            raise response_error(f"lists more than {MAX_ITEMS} items")
        if page.get("nextCursor") is None:
            return found
        params = {"cursor": page["nextCursor"]}
    raise response_error(f"has a list on more than {MAX_PAGES} pages")


def _resources(items: Iterable[Mapping[str, Any]], key: str) -> Iterable[RemoteResource]:
    for each in items:
        uri, name, size = str(each[key]), one_line(each.get("name"), MAX_NAME_CHARS), each.get("size")
        if _is_name(uri, MAX_URI_CHARS) and name:
            texts = (_text(each, "title"), _text(each, "description"), _text(each, "mimeType"))
            yield RemoteResource(uri, name, *texts, size if type(size) is int else None)


def _arguments(prompt: Mapping[str, Any]) -> Iterable[RemoteArgument]:
    for each in prompt.get("arguments") or ():
        if _is_name(each.get("name"), MAX_NAME_CHARS):
            yield RemoteArgument(each["name"], _text(each, "description"), each.get("required") is True)


def _is_name(name: object, longest: int) -> bool:
    """Return whether a name can be shown exactly as it is."""
    return isinstance(name, str) and name != "" and one_line(name, longest) == name


def _text(item: Mapping[str, Any], key: str) -> str:
    return one_line(item.get(key), MAX_DESCRIPTION_CHARS)


def _content(part: Mapping[str, Any]) -> RemoteContent:
    value = _bytes(part["blob"]) if "blob" in part else part["text"]
    return RemoteContent(one_line(str(part["uri"]), MAX_URI_CHARS), value, _text(part, "mimeType"))


def _message_content(block: Mapping[str, Any]) -> str | Content:
    """Return the content of a message as a prompt of our own returns it."""
    if block.keys() == {"type", "text"} and block["type"] == "text":
        return str(block["text"])
    return content_of({"content": [block]})


def _bytes(text: str) -> bytes:
    try:
        return a2b_base64(text, strict_mode=True)
    except (Error, ValueError):
        raise response_error("contains invalid base64") from None


# Tools


@attrs.frozen(eq=False)
class RemoteRequest:
    """The function of a tool that requests something of a server.

    Attributes:
        work: Takes the dialogue and the values of the arguments.
        plain: Converts the result to plain data.
    """

    connection: RequestSender = attrs.field(repr=False)
    work: Callable[..., Awaitable[Any]]
    plain: Callable[[Any], Any]

    async def __call__(self, rt: Runtime, *values: Any) -> Any:
        """Send the request and return the result."""
        return self.plain(await self.connection.request(lambda dialogue: self.work(dialogue, *values)))


def resource_tools(connection: RequestSender, group: str, trusted: bool) -> list[ToolImplementation]:
    """Return tools that list and read the resources and prompts of a server.

    They need ``mcp:read:GROUP/resources`` or ``mcp:read:GROUP/prompts``, and are labelled like other tools of a server.

    Args:
        trusted: Whether they are called without approval.
    """

    def made(kind: str, spec: ToolSpec, work: Callable[..., Awaitable[Any]], plain: Callable[[Any], Any]) -> Any:
        policy = ToolPolicy(
            capabilities=(f"mcp:read:{literal(f'{group}/{kind}')}",),
            effects=("net", "reads"),
            requires_approval=not trusted,
            timeout=connection.seconds,
            sources=ALL_SOURCES,
            sinks=ALL_SINKS,
        )
        return ToolImplementation(spec, RemoteRequest(connection, work, plain), policy)

    def spec(name: str, description: str, *args: ArgSpec, returns: ArgType = ArgType.SLICE_MAP) -> ToolSpec:
        return ToolSpec(name, group, args, return_type=returns, description=description)

    uri = ArgSpec("uri", ArgType.STRING, description="The URI of the resource.")
    name = ArgSpec("name", ArgType.STRING, description="The name of the prompt.")
    arguments = ArgSpec(
        "arguments",
        ArgType.MAP_STRING_ANY,
        required=False,
        default={},
        value_spec=ArgType.STRING,
        description="The arguments by name.",
    )
    read = spec("read_resource", f"Read a resource of the server {group}.", uri, returns=ArgType.ANY)
    get = spec("get_prompt", f"Get the messages of a prompt of the server {group}.", name, arguments)
    return [
        made("resources", spec("list_resources", f"List the resources of the server {group}."), list_resources, _maps),
        made(
            "resources",
            spec("list_resource_templates", f"List the URI templates of the server {group}."),
            list_templates,
            _maps,
        ),
        made("resources", read, read_resource, _plain_content),
        made("prompts", spec("list_prompts", f"List the prompts of the server {group}."), list_prompts, _maps),
        made("prompts", get, get_prompt, _messages),
    ]


def _maps(items: Iterable[Any]) -> list[dict[str, Any]]:
    return [attrs.asdict(each, value_serializer=lambda _, __, value: _listed_value(value)) for each in items]


def _messages(found: Iterable[RemoteMessage]) -> list[dict[str, Any]]:
    return [{"role": each.role, "content": each.content} for each in found]


def _listed_value(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _plain_content(parts: tuple[RemoteContent, ...]) -> Any:
    """Return the string or bytes of a resource, or a map for each of several parts."""
    return parts[0].value if len(parts) == 1 else _maps(parts)
