"""The prompts of a service, and completions for their arguments and for the variables of resources.

Getting a prompt calls its tool in the session of the client. See MCP 2025-11-25, "Prompts" and "Completion".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.coercion.scalars import AnyContent
from neuroscript.coercion.types import ArgType
from neuroscript.interop.mcp.server.files import READ_NAME, ServedFiles
from neuroscript.interop.mcp.server.resources import prompt_infos, resource_infos
from neuroscript.interop.mcp.server.results import known_block
from neuroscript.interop.mcp.server.served_calls import COMPLETE, call_failed, page
from neuroscript.io.text import quote_untrusted, sendable
from neuroscript.runtime.interfaces import ToolCall, ToolInfo, ToolResult
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.tool_spec import ToolSpec

try:
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        INTERNAL_ERROR,
        INVALID_PARAMS,
        CompleteRequestParams,
        GetPromptRequestParams,
        PaginatedRequestParams,
        PromptReference,
    )
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

MAX_COMPLETIONS: Final = 100
"""Maximum number of completions in one response, as the protocol requires."""

ROLES: Final = ("user", "assistant")


class Prompts:
    """The prompts of a service, and its completions.

    Args:
        service: The `Service`.
        files: The files of the sandbox that are served, for completions of their paths.
    """

    def __init__(self, service: Any, files: ServedFiles) -> None:
        self._service = service
        self._files = files
        server = service.server
        server.add_request_handler("prompts/list", PaginatedRequestParams, self._list)
        server.add_request_handler("prompts/get", GetPromptRequestParams, self._get)
        server.add_request_handler("completion/complete", CompleteRequestParams, self._complete)

    async def _list(self, context: Any, params: PaginatedRequestParams) -> dict[str, Any]:
        client = self._service._client(context)
        items = [_described(info, client.names) for info in prompt_infos(client.session)]
        return page(sorted(items, key=lambda item: str(item["name"])), "prompts", "name", params.cursor)

    async def _get(self, context: Any, params: GetPromptRequestParams) -> dict[str, Any]:
        client = self._service._client(context)
        info = self._named(client, params.name)
        call = ToolCall(info.spec.full_name, dict(params.arguments or {}), id=str(context.request_id))
        result: ToolResult | dict[str, Any] = await self._service.execute(context, params, call)
        if isinstance(result, dict):
            return result
        if not result.ok:
            raise call_failed(result, client.names)
        described = {"description": info.spec.description} if info.spec.description else {}
        messages = _messages(info.spec.full_name, result.value)
        known = [{**each, "content": known_block(each["content"], context.protocol_version)} for each in messages]
        return {**COMPLETE, **described, "messages": known}

    def _named(self, client: Any, name: str) -> ToolInfo:
        info: ToolInfo | None = client.session.infos.get(client.names.tool(name))
        if info is None or info.spec.prompt is None:
            raise MCPError(INVALID_PARAMS, f"unknown prompt: {quote_untrusted(name)}")
        return info

    # Completions

    async def _complete(self, context: Any, params: CompleteRequestParams) -> dict[str, Any]:
        client = self._service._client(context)
        name, start = params.argument.name, params.argument.value
        if isinstance(params.ref, PromptReference):
            spec = self._named(client, params.ref.name).spec
        else:
            spec = self._template(client, params.ref.uri)
        if all(arg.name != name for arg in spec.args):
            raise MCPError(INVALID_PARAMS, f"unknown argument: {quote_untrusted(name)}")
        if spec.full_name == READ_NAME:
            return _completion([each["path"] for each in await self._files.found(client.session)], start)
        return _completion(_choices(spec, name), start)

    def _template(self, client: Any, uri: str) -> ToolSpec:
        for info in resource_infos(client.session):
            if info.spec.resource is not None and info.spec.resource.uri == uri:
                return info.spec
        raise MCPError(INVALID_PARAMS, "unknown resource template", {"uri": uri})


def _choices(spec: ToolSpec, name: str) -> list[str]:
    """Return the values that an argument may have, as the strings that clients send."""
    arg = next(arg for arg in spec.args if arg.name == name)
    if arg.type is ArgType.BOOL:
        return ["true", "false"]
    return [str(each) for each in arg.choices or ()]


def _completion(values: Sequence[str], start: str) -> dict[str, Any]:
    found = [each for each in values if each.casefold().startswith(start.casefold())]
    shown = found[:MAX_COMPLETIONS]
    return {**COMPLETE, "completion": {"values": shown, "total": len(found), "hasMore": len(found) > len(shown)}}


def _described(info: ToolInfo, names: WireNames) -> dict[str, Any]:
    spec = info.spec
    assert spec.prompt is not None
    arguments = [
        {"name": arg.name, "required": arg.required, **({"description": arg.description} if arg.description else {})}
        for arg in spec.args
    ]
    facts = {"title": spec.prompt.title, "description": spec.description, "arguments": arguments}
    return {"name": names.wire(spec.full_name), **{name: each for name, each in facts.items() if each}}


def _messages(tool: str, value: Any) -> list[dict[str, Any]]:
    """Return the messages of a prompt: a string or content is from the user, and a list has a map for each message."""
    found = list(_from(value)) if isinstance(value, list) else list(_blocks("user", value))
    if not all(found):
        text = f"{tool}: expected a string, content, or a list of maps with role (user or assistant) and content"
        raise MCPError(INTERNAL_ERROR, text)
    return found


def _from(messages: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages in the wire format of MCP; an empty one stands for one that is invalid."""
    for each in messages:
        match each:
            case {"role": role, "content": content, **rest} if role in ROLES and not rest:
                yield from _blocks(role, content)
            case _:
                yield {}


def _blocks(role: str, content: Any) -> Iterator[dict[str, Any]]:
    """Yield a message for a string, or one for each block of content."""
    if isinstance(content, AnyContent):
        yield from ({"role": role, "content": block} for block in content.shown)
    else:
        is_text = isinstance(content, str)
        yield {"role": role, "content": {"type": "text", "text": sendable(content)}} if is_text else {}
