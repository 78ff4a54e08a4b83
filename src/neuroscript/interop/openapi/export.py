"""Tools as an OpenAPI 3.1 document, which `from_openapi` reads without loss.

See the OpenAPI Specification 3.1.1 and RFC 9457.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from neuroscript.coercion.parameters import FLAG, STRING, Form, as_tuple, collection, require
from neuroscript.coercion.schema_inspection import MANY, MARK, NAMED, ONE
from neuroscript.coercion.types import ArgType
from neuroscript.engine.session import Session
from neuroscript.formats.json_schema import result_schema, spec_to_schema
from neuroscript.interop.http_server.request_session import uses_handles
from neuroscript.interop.media import BEGINNINGS, RIFF
from neuroscript.interop.openapi.names import operation_ids
from neuroscript.interop.openapi.schemas import RULE_FACTS
from neuroscript.io.text import sendable
from neuroscript.llm.offered_tools import offered_infos
from neuroscript.llm.wire.tools import tool_description
from neuroscript.runtime.wire_names import spec_of
from neuroscript.spec.tool_spec import MAYBE, ToolSpec

if TYPE_CHECKING:
    from neuroscript.runtime.wire_names import HasSpec

VERSION: Final = "3.1.1"
"""The version of the specification."""

JSON: Final = "application/json"
OCTETS: Final = "application/octet-stream"
PROBLEM: Final = "application/problem+json"

BYTES: Final = (OCTETS, *dict.fromkeys([*(kind for _, kind in BEGINNINGS), *RIFF.values()]))
"""The media types of a result that consists of bytes."""

MAX_SUMMARY_CHARS: Final = 120
"""Maximum length of the summary of an operation, in characters."""

TOKEN: Final = "token"  # noqa: S105 (the name of the security scheme)

STATUSES: Final[Mapping[int, str]] = {
    400: "The body is not JSON, or the arguments do not match their description.",
    403: "The policy of the host does not permit the call, or the request comes from another website.",
    404: "The tool does not exist, or may not be called.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "The request names another host.",
    422: "The arguments match their description, but cannot be used; the detail says why.",
    429: "A limit of the host has been reached.",
    500: "The tool failed.",
    503: "The tool cannot carry out this call now.",
    504: "The tool did not finish in time.",
}
"""What the status of an error means."""

UNAUTHORIZED: Final = "A valid token is required."

ENGINE: Final = Form("an engine, a session, or tools and specs", lambda tools: isinstance(tools, Session))
TOOLS: Final = collection(Form("a tool or a spec", lambda tool: isinstance(spec_of(tool), ToolSpec)), "tools and specs")

PROBLEM_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "An error as RFC 9457 describes it.",
    "properties": {
        "type": {"type": "string", "const": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened, and what to do about it."},
        "code": {"type": "string", "description": "A stable dotted code."},
        "retry": {
            "enum": ["model", "later", "host", "never"],
            "description": "Who can make the call succeed: its sender, now or later, the host, or no one.",
        },
        "problems": {
            "type": "array",
            "description": "Each problem of the arguments.",
            "items": {
                "type": "object",
                "properties": {
                    "where": {"type": "string"},
                    "code": {"type": "string"},
                    "expected": {"type": "string"},
                    "got": {"type": "string"},
                    "hint": {"type": "string"},
                },
                "required": ["where", "code", "expected", "got", "hint"],
            },
        },
        "items": {"type": "integer", "description": "How many items a stream had produced before the error."},
    },
    "required": ["type", "title", "status", "detail", "code", "retry"],
}


def to_openapi(
    tools: Session | Iterable[HasSpec | ToolSpec],
    *,
    title: str = "neuroscript",
    version: str = "1",
    url: str = "/",
    token: bool = False,
) -> dict[str, Any]:
    """Return an OpenAPI 3.1 document with an operation for each tool, as `interop.openapi.app` serves them.

    Tools that take or return handles are left out, because a request has no session. So are tools that are only
    resources or prompts.

    Args:
        tools: An engine or a session, whose permitted tools are described, or tools and specs.
        title: The title of the document.
        version: The version of the tools.
        url: The URL of the server; the default is relative to the document.
        token: Whether requests need a bearer token.

    Returns:
        A new document as plain data.

    Raises:
        SpecError: A parameter has the wrong type, or an example contains a value that JSON cannot represent.

    >>> list(to_openapi([ToolSpec("ping", "net")])["paths"])
    ['/net/ping']
    """
    texts = {"title": (title, STRING), "version": (version, STRING), "url": (url, STRING)}
    given = tools if isinstance(tools, Session) else as_tuple(tools)
    form = TOOLS if isinstance(given, tuple) else ENGINE
    require("to_openapi", tools=(given, form), **texts, token=(token, FLAG))
    specs = described_specs(given)
    ids = operation_ids([spec.full_name for spec in specs])
    statuses = {401: UNAUTHORIZED, **STATUSES} if token else STATUSES
    components: dict[str, Any] = {
        "schemas": {"Problem": json.loads(json.dumps(PROBLEM_SCHEMA))},
        "responses": {f"Status{status}": _problem(text) for status, text in sorted(statuses.items())},
    }
    document: dict[str, Any] = {
        "openapi": VERSION,
        "info": {"title": sendable(title), "version": sendable(version)},
        "servers": [{"url": sendable(url)}],
        "paths": {path_of(spec): {"post": _operation(spec, ids[spec.full_name], sorted(statuses))} for spec in specs},
        "components": components,
    }
    if token:
        components["securitySchemes"] = {TOKEN: {"type": "http", "scheme": "bearer"}}
        document["security"] = [{TOKEN: []}]
    return document


def described_specs(tools: Any) -> list[ToolSpec]:
    """Return the specs of the tools that a service without sessions can call, sorted by name."""
    infos = offered_infos(tools) if isinstance(tools, Session) else tools
    specs = [spec_of(each) for each in infos]
    return sorted(
        (spec for spec in specs if spec.is_offered and not uses_handles(spec)), key=lambda spec: spec.full_name
    )


def path_of(spec: ToolSpec) -> str:
    """Return the path of a tool.

    >>> path_of(ToolSpec("ping", "net.icmp"))
    '/net/icmp/ping'
    """
    return "/" + spec.full_name.replace(".", "/")


def request_schema(spec: ToolSpec) -> dict[str, Any]:
    """Return the schema of the body of a request, as a new copy with references that are valid in the document."""
    schema = spec_to_schema(spec)
    pointer = f"/paths/{path_of(spec).replace('/', '~1')}/post/requestBody/content/{JSON.replace('/', '~1')}/schema"
    found = _rule(schema, pointer)
    for word in ("description", "deprecated"):
        found.pop(word, None)
    facts = {"arguments": True, **({"variadic": True} if spec.variadic else {})}
    return {**found, MARK: facts}


def _operation(spec: ToolSpec, id: str, statuses: list[int]) -> dict[str, Any]:
    description = tool_description(spec)
    operation: dict[str, Any] = {"operationId": id, "tags": [spec.group]}
    if description:
        operation |= {"summary": _summary(description), "description": description}
    if spec.deprecated:
        operation["deprecated"] = True
    if spec.args:
        required = any(arg.required for arg in spec.args)
        operation["requestBody"] = {"required": required, "content": {JSON: {"schema": request_schema(spec)}}}
    errors = {str(status): {"$ref": f"#/components/responses/Status{status}"} for status in statuses}
    return {**operation, "responses": {**_success(spec), **errors}}


def _summary(description: str) -> str:
    """Return the first sentence of a description."""
    first = description.partition(". ")[0].rstrip(".")
    return first if len(first) <= MAX_SUMMARY_CHARS else f"{first[: MAX_SUMMARY_CHARS - 1].rstrip()}…"


def is_empty(spec: ToolSpec) -> bool:
    """Return whether a tool never returns a value."""
    return spec.return_type in (ArgType.NIL, ArgType.VOID) and not spec.stream


def _success(spec: ToolSpec) -> dict[str, Any]:
    text = spec.return_help or "The result."
    if is_empty(spec):
        return {"204": {"description": spec.return_help or "The tool has run."}}
    content: dict[str, Any] = {}
    if spec.return_type is not ArgType.BLOB or spec.stream or spec.return_nullable:
        content[JSON] = {"schema": _result(spec)}
    if spec.return_type in (ArgType.BLOB, ArgType.ANY) and spec.stream is not True:
        content |= {each: {} for each in BYTES}
    return {"200": {"description": text, "content": content}}


def _result(spec: ToolSpec) -> Any:
    """Return the schema of a result as JSON; a stream is the list of its items."""
    if spec.return_type is ArgType.BLOB and not spec.stream:
        return {"type": "null"}
    schema = _rule(result_schema(spec), "")
    schema.pop("description", None)
    return {"type": "array", "items": schema} if spec.stream and spec.stream != MAYBE else schema


def _problem(text: str) -> dict[str, Any]:
    return {"description": text, "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def _rule(schema: Any, pointer: str) -> Any:
    """Return a copy of a schema for the document.

    It says no more under our keyword than `RULE_FACTS`, contains no default of a secret, and its references begin with
    *pointer*.
    """
    if not isinstance(schema, Mapping):
        return schema
    found: dict[str, Any] = {}
    for word, value in schema.items():
        if word == "$ref" and isinstance(value, str) and value.startswith("#"):
            found[word] = f"#{pointer}{value[1:]}"
        elif word == MARK:
            facts = _facts(value, pointer)
            if facts:
                found[word] = facts
        elif word in ONE and isinstance(value, Mapping):
            found[word] = _rule(value, pointer)
        elif word in MANY and isinstance(value, list):
            found[word] = [_rule(each, pointer) for each in value]
        elif word in NAMED and isinstance(value, Mapping):
            found[word] = {name: _rule(each, pointer) for name, each in value.items()}
        elif word != "discriminator":
            found[word] = json.loads(json.dumps(value))
    if found.get("writeOnly") is True and found.get("type") == "string":
        found.setdefault("format", "password")
    if _hides(found):
        found.pop("default", None)
        found.get(MARK, {}).pop("default", None)
    return found


def _facts(facts: Any, pointer: str) -> dict[str, Any]:
    pairs = facts.items() if isinstance(facts, Mapping) else ()
    return {
        word: _rule(each, pointer) if word == "propertyNames" else json.loads(json.dumps(each))
        for word, each in pairs
        if word in RULE_FACTS
    }


def _hides(node: Any) -> bool:
    """Return whether a part of a schema contains a secret."""
    if isinstance(node, dict):
        return node.get("writeOnly") is True or any(map(_hides, node.values()))
    return isinstance(node, list) and any(map(_hides, node))
