"""The resources of a service: tools that are served as resources, and files of the sandbox.

Reading a resource calls its tool in the session of the client. See MCP 2025-11-25, "Resources".
"""

from __future__ import annotations

import asyncio
import json
from binascii import b2a_base64
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from math import inf
from mimetypes import guess_type
from time import monotonic
from typing import Any, Final
from weakref import WeakKeyDictionary

import attrs

from neuroscript._imports import missing_extra
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.scalars import AnyContent
from neuroscript.engine.session import Session
from neuroscript.interop.mcp.server.client_session import Client
from neuroscript.interop.mcp.server.files import FILE, LIST_NAME, READ_NAME, ServedFiles
from neuroscript.interop.mcp.server.served_calls import COMPLETE, call_failed, is_missing, not_found, page
from neuroscript.interop.media import media_type
from neuroscript.io.text import sendable
from neuroscript.policy.paths import canonical_path, relative
from neuroscript.runtime.interfaces import ToolCall, ToolInfo, ToolResult
from neuroscript.spec.served import Resource

try:
    from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, SubscriptionBus
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        INVALID_PARAMS,
        PaginatedRequestParams,
        ReadResourceRequestParams,
        SubscribeRequestParams,
        UnsubscribeRequestParams,
    )
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

MAX_SUBSCRIPTIONS: Final = 100
"""Maximum number of resources that one client subscribes to."""

UNCACHED: Final = {"ttlMs": 0, "cacheScope": "private"}
"""What the content of a resource contains in protocol 2026-07-28, because it may differ with each call."""

FILES_SECONDS: Final = 0.4
"""Minimum time between two searches for changed files, in seconds."""

READ_SECONDS: Final = 5.0
"""Interval at which a subscribed resource of a toolset is read again, in seconds. Files are checked more often, because
that reads no content."""


class Resources:
    """The resources of a service.

    Args:
        service: The `Service`.
        files: The files of the sandbox that are served.

    Attributes:
        files: The same.
    """

    def __init__(self, service: Any, files: ServedFiles) -> None:
        self._service = service
        self.files = files
        self._watches: WeakKeyDictionary[Any, Watch] = WeakKeyDictionary()
        self._checks: WeakKeyDictionary[Any, asyncio.Task[None]] = WeakKeyDictionary()
        self._listened: Counter[str] = Counter()
        self._finding = asyncio.Lock()
        self._found: dict[str, tuple[int, float]] = {}
        self._found_at = -inf
        server = service.server
        server.add_request_handler("resources/list", PaginatedRequestParams, self._list)
        server.add_request_handler("resources/templates/list", PaginatedRequestParams, self._list_templates)
        server.add_request_handler("resources/read", ReadResourceRequestParams, self._read)
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

    # Requests

    async def _list(self, context: Any, params: PaginatedRequestParams) -> dict[str, Any]:
        session = self._service._client(context).session
        items = [_described(info, "uri") for info in resource_infos(session) if not _resource(info).variables]
        if self.files.patterns:
            items += map(_file, await self.files.found(session))
        return page(sorted(items, key=lambda item: str(item["uri"])), "resources", "uri", params.cursor)

    async def _list_templates(self, context: Any, params: PaginatedRequestParams) -> dict[str, Any]:
        infos = [info for info in resource_infos(self._service._client(context).session) if _resource(info).variables]
        items = [_described(info, "uriTemplate") for info in infos]
        items.sort(key=lambda item: str(item["uriTemplate"]))
        return page(items, "resourceTemplates", "uriTemplate", params.cursor)

    async def _read(self, context: Any, params: ReadResourceRequestParams) -> dict[str, Any]:
        client: Client = self._service._client(context)
        uri = str(params.uri)
        call = self.call(client.session, uri)
        if call is None:
            raise not_found(context, uri)
        info, values = call
        tool = ToolCall(info.spec.full_name, values, id=str(context.request_id))
        result: ToolResult | dict[str, Any] = await self._service.execute(context, params, tool)
        if isinstance(result, dict):
            return result
        if is_missing(result.error):
            raise not_found(context, uri)
        if not result.ok:
            raise call_failed(result, client.names)
        return {**COMPLETE, **UNCACHED, "contents": contents(uri, _resource(info), result.value)}

    async def _subscribe(self, context: Any, params: SubscribeRequestParams) -> dict[str, Any]:
        client = self._service._client(context)
        uri = str(params.uri)
        if self.call(client.session, uri) is None:
            raise not_found(context, uri)
        if not self._is_subscribable(client.session, uri):
            raise MCPError(INVALID_PARAMS, "the resource cannot be subscribed to", {"uri": uri})
        watch = self._watch_of(client)
        if len(watch.uris) >= MAX_SUBSCRIPTIONS and uri not in watch.uris:
            raise MCPError(INVALID_PARAMS, f"a client can subscribe to {MAX_SUBSCRIPTIONS} resources")
        await watch.add(uri)
        return {}

    async def _unsubscribe(self, context: Any, params: UnsubscribeRequestParams) -> dict[str, Any]:
        self._watch_of(self._service._client(context)).remove(str(params.uri))
        return {}

    def call(self, session: Session, uri: str) -> tuple[ToolInfo, dict[str, str]] | None:
        """Return the tool that reads a URI in a session, with its arguments; None if there is no such resource.

        A URI without variables precedes a template, and otherwise the first tool by name precedes the others.
        """
        matches: list[tuple[ToolInfo, dict[str, str]]] = []
        for info in resource_infos(session):
            values = _resource(info).match(uri)
            if values is None or (info.spec.full_name == READ_NAME and values["path"] not in self.files):
                continue
            if not values:
                return info, values
            matches.append((info, values))
        return matches[0] if matches else None

    # Changes

    def _watch_of(self, client: Client) -> Watch:
        watch = self._watches.get(client)
        if watch is None:
            watch = self._watches[client] = Watch(self, client.session)
        return watch

    def notify(self, client: Client) -> None:
        """Start to notify a client of what has changed, unless the check before this one still runs."""
        connection = client.connection

        async def send(changes: Changes) -> None:
            if changes.prompts:
                await connection.send_prompt_list_changed()
            if changes.resources:
                await connection.send_resource_list_changed()
            for uri in changes.uris:
                await connection.send_resource_updated(uri)

        self._check(client, send)

    def publish(self, client: Client, bus: SubscriptionBus) -> None:
        """Start to publish what has changed for clients without a handshake.

        Args:
            client: What they have in common.
            bus: Receives the events.
        """

        async def send(changes: Changes) -> None:
            if changes.prompts:
                await bus.publish(PromptsListChanged())
            if changes.resources:
                await bus.publish(ResourcesListChanged())
            for uri in changes.uris:
                await bus.publish(ResourceUpdated(uri))

        self._check(client, send)

    @asynccontextmanager
    async def listening(self, client: Client, uris: Iterable[str]) -> AsyncIterator[None]:
        """Watch resources for one stream of ``subscriptions/listen``; those that cannot be watched are ignored.

        Args:
            client: What the clients without a handshake have in common.
        """
        watch = self._watch_of(client)
        watched = self.subscribable(client.session, uris)
        self._listened.update(watched)
        try:
            for uri in watched:
                await watch.add(uri)
            yield
        finally:
            self._listened.subtract(watched)
            for uri in watched:
                if self._listened[uri] <= 0:
                    del self._listened[uri]
                    watch.remove(uri)

    def subscribable(self, session: Session, uris: Iterable[str]) -> list[str]:
        """Return the resources that a session may watch, at most `MAX_SUBSCRIPTIONS`."""
        return [uri for uri in dict.fromkeys(uris) if self._is_subscribable(session, uri)][:MAX_SUBSCRIPTIONS]

    def _is_subscribable(self, session: Session, uri: str) -> bool:
        """Return whether the resource may be read again and again: permitted, and without an approval of each call."""
        call = self.call(session, uri)
        if call is None or not _resource(call[0]).subscribable:
            return False
        (decision,) = session.check([ToolCall(call[0].spec.full_name, call[1])])
        return decision.allowed and not decision.needs_approval

    def _check(self, client: Client, send: Callable[[Changes], Awaitable[None]]) -> None:
        check = self._checks.get(client)
        if check is None or check.done():
            self._checks[client] = asyncio.create_task(self._send_changes(client, send))

    async def _send_changes(self, client: Client, send: Callable[[Changes], Awaitable[None]]) -> None:
        with suppress(Exception):  # the client has disconnected
            await send(await self._watch_of(client).changes())

    async def found_files(self, session: Session) -> Mapping[str, tuple[int, float]]:
        """Return the size and the time of modification of each file, by path.

        All clients may read the same files, so they share what was found within the last `FILES_SECONDS`.
        """
        if not self.files.patterns:
            return {}
        async with self._finding:
            if monotonic() >= self._found_at + FILES_SECONDS:
                entries = await asyncio.to_thread(self.files.entries, session)
                self._found = {each.path: (each.size, each.modified) for each in entries}
                self._found_at = monotonic()
            return self._found


@attrs.frozen
class Changes:
    """What has changed since the last check.

    Attributes:
        resources: Whether the list of resources has changed.
        prompts: Whether the list of prompts has changed.
        uris: The resources that have changed.
    """

    resources: bool
    prompts: bool
    uris: tuple[str, ...]


class Watch:
    """The changes of the lists and of some resources, as one session sees them.

    Args:
        resources: The resources of the service.
        session: The session that may read them.

    Attributes:
        uris: The URI of each watched resource, with a digest of what was found last, and when it was read: -inf for
            files, which are not read. None before the first time.
    """

    def __init__(self, resources: Resources, session: Session) -> None:
        self.uris: dict[str, tuple[str, float] | None] = {}
        self._resources = resources
        self._session = session
        self._lists: tuple[Any, Any] | None = None
        self._files: Mapping[str, tuple[int, float]] = {}

    async def add(self, uri: str) -> None:
        """Watch another resource, from its present state on."""
        if uri in self.uris:
            return
        self.uris[uri] = None  # it counts from now on
        try:
            self._files = await self._resources.found_files(self._session)
            self._note(uri, await self._found(uri))
        except BaseException:
            self.remove(uri)
            raise

    def remove(self, uri: str) -> None:
        """Watch a resource no longer."""
        self.uris.pop(uri, None)

    def _note(self, uri: str, found: tuple[str, float]) -> None:
        if uri in self.uris:  # it may have been removed meanwhile
            self.uris[uri] = found

    async def changes(self) -> Changes:
        """Return what has changed since this was last called; the first time, the lists have not."""
        self._files = await self._resources.found_files(self._session)
        before = self._lists
        self._lists = now = (resource_infos(self._session), [*self._files]), prompt_infos(self._session)
        changed = tuple([uri for uri in tuple(self.uris) if await self._has_changed(uri)])
        if before is None:
            return Changes(False, False, changed)
        return Changes(before[0] != now[0], before[1] != now[1], changed)

    async def _has_changed(self, uri: str) -> bool:
        before = self.uris.get(uri)
        if before is None or monotonic() < before[1] + READ_SECONDS:
            return False
        now = await self._found(uri)
        self._note(uri, now)
        return before[0] != now[0]

    async def _found(self, uri: str) -> tuple[str, float]:
        """Return a digest of the content of a resource, or of the facts about a file, and when it was read."""
        call = self._resources.call(self._session, uri)
        if call is None:
            return "", -inf
        info, values = call
        if info.spec.full_name == READ_NAME:
            return repr(self._files.get(canonical_path(relative(values["path"])))), -inf
        start = monotonic()
        result = await self._session.aexecute(ToolCall(info.spec.full_name, values))
        text = result.error.code if result.error else json.dumps(contents(uri, _resource(info), result.value))
        return sha256(text.encode()).hexdigest(), start


def resource_infos(session: Session) -> list[ToolInfo]:
    """Return the tools of a session that are served as resources, by name; the first of several with one URI."""
    found: dict[str, ToolInfo] = {}
    for name, info in session.infos.items():
        if info.spec.resource is not None and name != LIST_NAME:
            found.setdefault(info.spec.resource.uri, info)
    return list(found.values())


def prompt_infos(session: Session) -> list[ToolInfo]:
    """Return the tools of a session that are served as prompts, by name."""
    return [info for info in session.infos.values() if info.spec.prompt is not None]


def _resource(info: ToolInfo) -> Resource:
    assert info.spec.resource is not None
    return info.spec.resource


def _described(info: ToolInfo, key: str) -> dict[str, Any]:
    resource = _resource(info)
    facts = {"title": resource.title, "description": info.spec.description, "mimeType": resource.media_type}
    return {key: resource.uri, "name": info.spec.full_name, **{name: each for name, each in facts.items() if each}}


def _file(facts: Mapping[str, Any]) -> dict[str, Any]:
    path = facts["path"]
    kind = guess_type(path)[0]
    described = {"uri": FILE.expand({"path": path}), "name": path, "size": facts["size"]}
    return {**described, "mimeType": kind} if kind else described


def contents(uri: str, resource: Resource, value: Any) -> list[dict[str, Any]]:
    """Return what a resource contains in the wire format of MCP: text, or base64 for bytes."""
    declared = resource.media_type or (guess_type(uri)[0] if resource.uri == FILE.uri else None)
    match value:
        case AnyContent():
            return [_block(uri, each) for each in value.shown if each["type"] != "resource_link"]
        case bytes():
            kind = declared or media_type(value) or "application/octet-stream"
            return [{"uri": uri, "mimeType": kind, "blob": b2a_base64(value, newline=False).decode("ascii")}]
        case str():
            return [{"uri": uri, "mimeType": declared or "text/plain", "text": sendable(value)}]
        case _:
            text = json.dumps(to_plain(value), ensure_ascii=False)
            return [{"uri": uri, "mimeType": declared or "application/json", "text": sendable(text)}]


def _block(uri: str, block: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a resource contains for a block of content; an embedded resource has its own URI."""
    match block:
        case {"type": "resource", "resource": dict(embedded)}:
            return embedded
        case {"type": "text", "text": str(text)}:
            return {"uri": uri, "mimeType": "text/plain", "text": sendable(text)}
        case _:
            return {"uri": uri, "mimeType": block["mimeType"], "blob": block["data"]}
