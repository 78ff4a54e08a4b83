"""One operation as a tool: its spec, its policy and its function.

See the OpenAPI Specification 3.1.1, "Operation Object".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.schema_inspection import MARK
from neuroscript.errors import SpecError
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.openapi.call import OperationCall, RequestSettings
from neuroscript.interop.openapi.document import Document, Problems, at, try_call
from neuroscript.interop.openapi.names import Operation
from neuroscript.interop.openapi.parameters import Parameter, parameters_of
from neuroscript.interop.openapi.request_body import RequestBody, content_of
from neuroscript.interop.openapi.responses import ReturnSpec, promise_of
from neuroscript.interop.openapi.schemas import Schemas
from neuroscript.interop.openapi.security import Credential, SecretsByServer, credentials_of
from neuroscript.interop.openapi.servers import Server, server_of
from neuroscript.io.text import one_line
from neuroscript.policy.labels import ALL_SOURCES
from neuroscript.policy.scopes import literal
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.tools.tool import ToolImplementation

METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "get": ("net", "reads", "idempotent"),
    "put": ("net", "writes", "idempotent"),
    "post": ("net", "writes"),
    "delete": ("net", "deletes", "idempotent"),
    "options": ("net", "reads", "idempotent"),
    "head": ("net", "reads", "idempotent"),
    "patch": ("net", "writes"),
    "trace": (),
}
"""The methods of a path item and their effects, after RFC 9110; the http toolset does not support ``trace``."""

MAX_DESCRIPTION_CHARS: Final = 1000
"""Maximum length of a tool description, in characters."""

CODES: Final = "openapi.status (the response is not 2xx), openapi.value, openapi.answer, openapi.no_http, http.*"


@attrs.frozen
class HostSettings:
    """The settings that the host passes with a description.

    Attributes:
        group: The group of the tools.
        base_url: The URL of the server, or ``""`` for the one in the description.
        secrets: The names of host secrets, by security scheme and by the origin of a server.
        settings: The request settings.
        formats: Whether the formats of strings are checked.
    """

    group: str
    base_url: str
    secrets: SecretsByServer
    settings: RequestSettings
    formats: bool = False


def tool_of(document: Document, operation: Operation, host: HostSettings, notes: Problems) -> ToolImplementation | None:
    """Return an operation as a tool; if it cannot be loaded, record the problems in *notes* and return None."""
    before = len(notes.texts)
    schemas = Schemas(document)
    path, data = operation.path, operation.data
    for text in document.problems.get(path, ()):
        notes.add(path, text)
    levels = (
        (at(path, "servers"), data.get("servers")),
        (at(path.rpartition(".")[0], "servers"), operation.item.get("servers")),
        ("servers", document.root.get("servers")),
    )
    server = try_call(notes, server_of, document, levels, host.base_url)
    credentials = try_call(notes, credentials_of, document, data, path, host.secrets, server)
    parameters = parameters_of(document, operation, schemas, credentials or (), notes)
    body = at(path, "requestBody")
    names = {each.arg for each in parameters}
    content = try_call(notes, content_of, document, data.get("requestBody"), body, schemas, names)
    promise = try_call(notes, promise_of, document, operation.method, data.get("responses"), at(path, "responses"))
    if operation.method == "TRACE":
        notes.add(path, "the http toolset does not support the method TRACE")
    if operation.method in ("GET", "HEAD") and data.get("requestBody") is not None:
        notes.add(body, f"a {operation.method} request cannot have a body")
    if len(notes.texts) > before or server is None or credentials is None or promise is None:
        return None
    try:
        spec = _spec(operation, host, schemas, parameters, content, promise)
        func = _calling(operation, spec, server, credentials, parameters, content, promise, host.settings)
        return ToolImplementation(spec, func, _policy(operation, server, credentials, host.settings))
    except SpecError as error:
        for problem in error.problems:
            notes.add(path, problem)
        return None


def _spec(
    operation: Operation,
    host: HostSettings,
    schemas: Schemas,
    parameters: tuple[Parameter, ...],
    content: RequestBody | None,
    promise: ReturnSpec,
) -> ToolSpec:
    needed = [each.arg for each in parameters if each.required]
    properties = {each.arg: each.schema for each in parameters if each.required}
    properties |= {each.arg: each.schema for each in parameters if not each.required}
    if content is not None:
        properties |= content.schemas
        needed += content.needed
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if needed:
        schema["required"] = needed
    if content is not None and content.is_variadic:
        schema[MARK] = {"variadic": True}
    if schemas.definitions:
        schema["$defs"] = schemas.definitions
    spec = spec_from_schema(
        operation.name,
        schema,
        group=host.group,
        description=_described(operation.data),
        return_type=promise.type,
        formats=host.formats,
    )
    return attrs.evolve(
        spec,
        returns=promise.returns,
        return_nullable=promise.nullable,
        return_help=promise.help,
        error_conditions=CODES,
        deprecated="marked as deprecated in the server's description" if _is_deprecated(operation) else "",
    )


def _is_deprecated(operation: Operation) -> bool:
    return operation.data.get("deprecated") is True


def _described(data: dict[str, Any]) -> str:
    """Return the description of an operation, from its summary and its description."""
    summary, text = (one_line(data.get(word), MAX_DESCRIPTION_CHARS) for word in ("summary", "description"))
    if not summary or not text or text.startswith(summary.rstrip(".")):
        return text or summary
    return one_line(f"{summary.rstrip('.')}. {text}", MAX_DESCRIPTION_CHARS)


def _calling(
    operation: Operation,
    spec: ToolSpec,
    server: Server,
    credentials: tuple[Credential, ...],
    parameters: tuple[Parameter, ...],
    content: RequestBody | None,
    promise: ReturnSpec,
    settings: RequestSettings,
) -> OperationCall:
    names = tuple(arg.name for arg in spec.args)
    always = frozenset(arg.name for arg in spec.args if arg.required)
    return OperationCall(
        operation.method,
        server.url,
        operation.route,
        names,
        always,
        parameters,
        content,
        credentials,
        promise,
        settings,
    )


def _policy(
    operation: Operation, server: Server, credentials: tuple[Credential, ...], settings: RequestSettings
) -> ToolPolicy:
    """Return the policy of an operation: the needs of the http toolset for its requests, and the secrets.

    A response is private if the request needs a secret or a private address; anyone may have written part of it.
    """
    verbs = "read" if operation.method == "GET" else "read,write"
    needs = [f"net:{verbs}:{server.place}"]
    needs += [f"lan:reach:{literal(place)}" for place in settings.private]
    needs += [f"secret:read:{literal(each.secret)}" for each in credentials]
    effects = METHODS[operation.method.lower()]
    is_private = bool(credentials or settings.private)
    return ToolPolicy(
        capabilities=tuple(dict.fromkeys(needs)),
        effects=effects,
        sources=ALL_SOURCES if is_private else ("untrusted",),
        sinks=("outside",) if "reads" in effects else ("outside", "storage"),
    )
