"""An HTTP service with an operation for each tool, and the OpenAPI document that describes them.

A request accepts exactly what the document says. Each has a session of its own, which has no variables and handles of
earlier requests, and is a call like any other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from neuroscript._imports import missing_extra
from neuroscript.calls.steps import GRACE_SECONDS, CallFrame
from neuroscript.coercion.context import type_name
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.scalars import AnyContent
from neuroscript.coercion.schema_validation import SchemaValidator, compile_schema
from neuroscript.engine.engine import Engine
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError, CallError, Retry, ToolFailed, ToolNotFound
from neuroscript.interop.http_server import PRINCIPAL
from neuroscript.interop.http_server.guard import (
    BODY_TIMEOUT_SECONDS,
    MAX_BODY_BYTES,
    RequestGuard,
    check_access,
)
from neuroscript.interop.http_server.metadata import ASGIApplication, with_metadata
from neuroscript.interop.http_server.principals import Authenticator, Principal, StaticTokens
from neuroscript.interop.http_server.protected_resource import ProtectedResource
from neuroscript.interop.http_server.request_session import Stateless, request_session, session_id, uses_handles
from neuroscript.interop.http_server.scope_policies import (
    ScopePolicies,
    ScopeTable,
    missing_scopes,
    resource_with_scopes,
)
from neuroscript.interop.media import media_type
from neuroscript.interop.openapi.clients import REQUEST_CODE, Client, Clients
from neuroscript.interop.openapi.export import BYTES, OCTETS, PROBLEM, is_empty, path_of
from neuroscript.interop.openapi.problems import problem, problem_of, status_of
from neuroscript.io.text import NotJSON, parse_json
from neuroscript.llm.offered_tools import narrow_session
from neuroscript.llm.wire.tools import input_schema
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.runtime.interfaces import ToolCall, ToolResult
from neuroscript.runtime.prompter import noninteractive
from neuroscript.spec.tool_spec import ToolSpec

try:
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
except ImportError as error:
    raise missing_extra("serving over HTTP needs Starlette and uvicorn", "serve", error) from None

DOCUMENT_PATH: Final = "/openapi.json"
"""The path of the document."""

STATELESS: Final = Stateless("openapi.stateless", "requests of this service have no session")
"""Why nothing is stored between requests."""

NO_USER: Final = "cannot ask the user: a service has none"

GUARD_CODES: Final[Mapping[int, tuple[str, Retry]]] = {408: (REQUEST_CODE, "later")}
"""The code and the retry word of a response of the guard, if they are not those of every other one."""


class NoPrompter:
    """Refuses every prompt, because no user is there to answer."""

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Raise an error.

        Raises:
            PromptError: Always, with the code ``prompt.noninteractive``.
        """
        raise noninteractive(NO_USER)


def app(
    engine: Engine,
    *,
    tools: str | Iterable[str] = "*",
    title: str = "neuroscript",
    token: str = "",
    authenticator: Authenticator | None = None,
    policy: ExecutionPolicy | None = None,
    scopes: Mapping[str, ScopeTable] | Iterable[tuple[str, ScopeTable]] | None = None,
    origins: Iterable[str] = (),
    is_local: bool = True,
    most_bytes: int = MAX_BODY_BYTES,
    slowest: float = BODY_TIMEOUT_SECONDS,
) -> ASGIApplication:
    """Return an ASGI application: ``POST /GROUP/NAME`` calls a tool, and ``GET /openapi.json`` returns the document.

    Args:
        engine: The engine that runs the calls; close it after the application.
        tools: Patterns of the tools to serve, among those that the engine permits.
        title: The title of the document.
        token: The token that clients must send as ``Authorization: Bearer TOKEN``; ``""`` requires none.
        authenticator: Finds out who sent a request, in place of *token*. Each principal has its own limits, flow labels
            and name in the audit log. With access tokens, as of a ``JWTAuthenticator``, the metadata of the service is
            served too, as RFC 9728 specifies.
        policy: What the service permits, within the policy of the engine. Its limits count for each principal of an
            *authenticator*, and the limits of the engine for all of them together.
        scopes: What each scope of a principal permits, within what the service permits: patterns of tools, or fields of
            an `ExecutionPolicy` by name. A principal has the sum of its scopes. Pairs instead of a mapping may repeat
            a scope.
        origins: Origins of web pages that may access the service, in addition to those of this machine.
        is_local: Whether only this machine may access the service; requests must then name a local host.
        most_bytes: Maximum size of a request body, in bytes.
        slowest: Timeout for receiving a whole request body, in seconds.

    Raises:
        ValueError: It is neither local nor authenticates its clients, the token is invalid, or there are both a token
            and an authenticator. It has scopes, but no authenticator.
        SpecError: A pattern matches no permitted tool, or a scope is invalid.
        ModuleNotFoundError: The validator of the extra ``serve`` is not installed.
    """
    if token and authenticator is not None:
        raise ValueError("expected a token or an authenticator, not both")
    if scopes is not None and authenticator is None:
        raise ValueError("scopes need an authenticator, such as JWTAuthenticator")
    are_separate = authenticator is not None
    authenticator = StaticTokens.anonymous(token) if token else authenticator
    check_access(is_local=is_local, authenticator=authenticator)
    if compile_schema("{}")[1]:
        raise missing_extra("serving over HTTP needs jsonschema-rs", "serve", ImportError(name="jsonschema_rs"))
    host = attrs.evolve(engine.host, prompter=NoPrompter())
    patterns = (tools,) if isinstance(tools, str) else tuple(tools)
    shared = narrow_session(engine.session(policy=policy, host=host), patterns, "openapi")
    permitted = None if scopes is None else ScopePolicies(scopes)
    has_token = authenticator is not None
    clients = Clients(engine, shared, title, has_token=has_token, are_separate=are_separate, scopes=permitted)
    resource = resource_with_scopes(authenticator, permitted)
    guard = RequestGuard(
        Service(clients, resource, most_bytes),
        authenticator=authenticator,
        origins=origins,
        is_local=is_local,
        slowest=slowest,
        respond=_refused_by_guard,
    )
    return with_metadata(guard, resource)


def _refused_by_guard(text: str, status: int, headers: Mapping[str, str] | None) -> Response:
    code, retry = GUARD_CODES.get(status, (REQUEST_CODE, "host"))
    return _problem(problem(status, text, code, retry), headers)


class Service:
    """The application behind the guard.

    Args:
        clients: What each client may do.
        resource: What clients learn about authorization, or None if they need no access tokens.
        most_bytes: Maximum size of a request body, in bytes.
    """

    def __init__(self, clients: Clients, resource: ProtectedResource | None, most_bytes: int) -> None:
        self._clients = clients
        self._resource = resource
        self._most_bytes = most_bytes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request."""
        request = Request(scope, receive)
        try:
            response = await self._response(request)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        principal: Principal | None = request.scope.get(PRINCIPAL)
        path = request.scope["path"]  # the path of the URL of a request also depends on its Host header
        try:
            client = self._clients.client(principal)
        except ToolFailed as error:  # there are too many
            return _failed(error, 503)
        missing = self._clients.missing(client, principal, path)
        if missing and principal is not None:
            refusal = missing_scopes(self._resource, principal.scopes, missing)
            return _refused_by_guard(refusal.text, refusal.status, refusal.headers)
        offer = client.catalog.offer()
        if path == DOCUMENT_PATH:
            if request.method not in ("GET", "HEAD"):
                return _not_allowed("GET, HEAD")
            return Response(offer.document, media_type="application/json")
        spec = offer.specs.get(path)
        if spec is None:
            return self._unknown(path, client)
        if request.method != "POST":
            return _not_allowed("POST")
        body = await self._body(request)
        if isinstance(body, Response):
            return body
        arguments = _arguments(body, client.session._shared.coercion.sizes.nodes)
        if isinstance(arguments, Response):
            return arguments
        return await self._call(request, client, spec, arguments)

    def _unknown(self, path: str, client: Client) -> Response:
        """Return the response for a path without an operation."""
        name = path.strip("/").replace("/", ".")
        info = client.session.infos.get(name)
        if info is not None and path == path_of(info.spec) and uses_handles(info.spec):
            return _failed(STATELESS.refuse_handles(name))
        error = ToolNotFound("")
        text = f"no tool has this path; {DOCUMENT_PATH} lists the paths"
        return _problem(problem(404, text, error.code, error.retry))

    async def _body(self, request: Request) -> bytes | Response:
        """Return the body of a request, or the response to an unsuitable one."""
        declared = request.headers.get("content-length", "")
        too_large = f"expected a body of at most {self._most_bytes} bytes"
        if declared.isdecimal() and int(declared) > self._most_bytes:
            return _invalid(413, too_large, {"connection": "close"})
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > self._most_bytes:
                return _invalid(413, too_large, {"connection": "close"})
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/json":
            return _invalid(415, "expected a body of type application/json", {"accept": "application/json"})
        return bytes(body)

    async def _call(self, request: Request, client: Client, spec: ToolSpec, arguments: dict[str, Any]) -> Response:
        """Return the result of a call, which ends early if its client disconnects."""
        session = request_session(client.session, STATELESS, session_id(client.name))
        try:
            try:
                problems = _validator(spec).problems(arguments)
            except UnicodeEncodeError:
                return _invalid(400, "expected strings of valid Unicode, without lone surrogates")
            if problems:
                error = ArgumentError(problems, spec.full_name)
                return _failed(session._refused(CallFrame(session, spec.full_name), error), 400)
            result = await self._carried_out(request, session, ToolCall(spec.full_name, arguments))
        finally:
            session.close()
        return _failed(result.error) if result.error is not None else _result(result, spec)

    async def _carried_out(self, request: Request, session: Session, call: ToolCall) -> ToolResult:
        running = asyncio.create_task(session.aexecute(call))
        leaving = asyncio.create_task(_disconnected(request))
        try:
            await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise ClientDisconnect
        except BaseException:
            running.cancel()
            await asyncio.wait({running}, timeout=GRACE_SECONDS)
            raise
        finally:
            leaving.cancel()
        error = running.exception()
        if isinstance(error, GeneratorExit):  # it would end the server for all clients
            failed = ToolFailed(f"the tool failed ({type_name(error)})", tool=call.name)
            return ToolResult(call.id, call.name, error=failed)
        return running.result()


async def _disconnected(request: Request) -> None:
    """Return when the client of a request whose body has been read disconnects."""
    while not (await request.receive())["type"].endswith(".disconnect"):
        pass


def _arguments(body: bytes, most: int) -> dict[str, Any] | Response:
    """Return the arguments in a body, or the response to an invalid one; they have at most *most* values."""
    if not body:
        return {}
    try:
        found = parse_json(body.decode(), most)
    except UnicodeDecodeError:
        return _invalid(400, "expected UTF-8")
    except NotJSON as error:
        return _invalid(400, error.hint)
    if not isinstance(found, dict):
        return _invalid(400, f"expected an object with the arguments by name, got {type_name(found)}")
    return found


def _validator(spec: ToolSpec) -> SchemaValidator:
    """Return the validator for the arguments of a tool, which the spec stores."""
    found: SchemaValidator | None = spec.exports.get("openapi validator")
    if found is None:
        compiled, faults = compile_schema(json.dumps(input_schema(spec)))
        if compiled is None:  # an imported schema that the validator does not support: the engine checks the rest
            compiled, faults = compile_schema('{"type": "object"}')
        assert compiled is not None, faults
        found = spec.exports["openapi validator"] = compiled
    return found


def _result(result: ToolResult, spec: ToolSpec) -> Response:
    """Return the response to a call that succeeded: bytes as such, and any other value as JSON."""
    value = result.value
    if value is None and is_empty(spec):
        return Response(status_code=204)
    if isinstance(value, AnyContent):
        value = value.wire.get("structuredContent", value.wire)
    if type(value) is bytes and not spec.stream:
        kind = media_type(value) or OCTETS
        return Response(value, media_type=kind if kind in BYTES else OCTETS, headers=NO_SNIFFING)
    text = json.dumps(to_plain(value), allow_nan=False)
    return Response(text, media_type="application/json", headers=NO_SNIFFING)


NO_SNIFFING: Final = {"x-content-type-options": "nosniff"}
"""So that a browser treats no result of a tool as a page."""


def _failed(error: CallError, status: int | None = None) -> Response:
    """Return the response to a call that failed; *status* replaces that of the error."""
    return _problem(problem_of(error, status or status_of(error)))


def _invalid(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return _problem(problem(status, text, REQUEST_CODE, "model"), headers)


def _not_allowed(methods: str) -> Response:
    return _invalid(405, f"expected {methods.replace(', ', ' or ')}", {"allow": methods})


def _problem(found: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    said = {**NO_SNIFFING, **(headers or {})}
    return Response(json.dumps(found), found["status"], media_type=PROBLEM, headers=said)
