"""A call of an operation: build the request, send it with the http toolset, and read the response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.errors import ToolFailed, ToolNotFound
from neuroscript.interop.openapi.parameter_styles import (
    join_pairs,
    percent_encode,
    serialize_cookie,
    serialize_header,
    serialize_path,
    serialize_query,
    value_error,
)
from neuroscript.interop.openapi.parameters import SLOT, Parameter
from neuroscript.interop.openapi.request_body import RequestBody
from neuroscript.interop.openapi.responses import ReturnSpec, value_of
from neuroscript.interop.openapi.security import Credential
from neuroscript.interop.openapi.servers import has_dots
from neuroscript.runtime.interfaces import Runtime

REDIRECT_METHODS: Final = ("GET", "HEAD")
"""Methods whose redirects are followed, as long as they stay on the same server."""

HOST_ERRORS: Final[Mapping[str, Literal["host"]]] = {
    "http.redirect": "host",
    "http.too_large": "host",
    "http.bad_header": "host",
}
"""Errors that the caller of an operation cannot fix: the caller sets no URL, no limit and no unchecked header."""


@attrs.frozen
class RequestSettings:
    """Request settings from the host.

    Attributes:
        seconds: Timeout of a request, in seconds.
        limit: Maximum size of a response, in bytes.
        private: Private addresses with ports that may be reached.
    """

    seconds: float = 30.0
    limit: int = 1024 * 1024
    private: tuple[str, ...] = ()


@attrs.define(eq=False)
class Request:
    """A request under construction.

    Attributes:
        path: The path, with the parameter values filled in.
        query: Pairs of name and value for each argument; the argument name is ``""`` for pairs from the host. Values
            are already percent-encoded, names are not.
        headers: Values by name.
        cookies: Names and values.
    """

    path: str = ""
    query: list[tuple[str, list[tuple[str, str]]]] = attrs.field(factory=list)
    headers: dict[str, str] = attrs.field(factory=dict)
    cookies: list[tuple[str, str]] = attrs.field(factory=list)


@attrs.frozen(eq=False)
class OperationCall:
    """The function of one operation.

    Attributes:
        method: The HTTP method, in capitals.
        url: The URL of the server.
        route: The path template, with ``{names}``.
        args: The names of the arguments, in order.
        always: The arguments that are always passed.
        parameters: The parameters in the path, the query, the headers and the cookies.
        content: The request body, or None if the operation has none.
        credentials: The secrets of the host to send.
        promise: What the operation returns.
        settings: The request settings.
    """

    method: str
    url: str
    route: str
    args: tuple[str, ...]
    always: frozenset[str]
    parameters: tuple[Parameter, ...]
    content: RequestBody | None
    credentials: tuple[Credential, ...]
    promise: ReturnSpec
    settings: RequestSettings

    def __call__(self, rt: Runtime, *values: Any) -> Any:
        """Make the request and return the value of the response."""
        if self.content is not None and self.content.is_variadic:
            fixed = len(self.args) - 1
            values = (*values[:fixed], [*values[fixed:]])
        arguments = dict(zip(self.args, values, strict=True))
        request = Request()
        self._put_credentials(rt, request)
        self._put_path(request, arguments)
        for each in self.parameters:
            if each.where != "path":
                _write_parameter(request, each, arguments[each.arg])
        body = self.content.written(arguments, self.always) if self.content else None
        return value_of(self._answer(rt, self._http_arguments(request, body)), self.promise)

    def _put_credentials(self, rt: Runtime, request: Request) -> None:
        for each in self.credentials:
            text = each.written(rt.secret(each.secret))
            match each.where:
                case "header":
                    request.headers[each.name] = text
                case "query":
                    request.query.append(("", [(each.name, percent_encode(text))]))
                case "cookie":
                    request.cookies.append((each.name, text))

    def _put_path(self, request: Request, arguments: Mapping[str, Any]) -> None:
        parts = {each.style.name: each for each in self.parameters if each.where == "path"}
        written = {name: serialize_path(each.style, arguments[each.arg]) for name, each in parts.items()}
        request.path = SLOT.sub(lambda found: written[found[1]], self.route)
        for template, segment in zip(self.route.split("/"), request.path.split("/"), strict=True):
            names = [parts[name].arg for name in SLOT.findall(template)]
            if names and (not segment or has_dots(segment)):
                raise value_error(names[0], "expected a path segment other than . or ..")

    def _http_arguments(self, request: Request, body: tuple[bytes, str] | None) -> dict[str, Any]:
        query = join_pairs(request.query)
        headers = {"Accept": self.promise.accept, **request.headers}
        if request.cookies:
            headers["Cookie"] = "; ".join(f"{name}={text}" for name, text in request.cookies)
        arguments: dict[str, Any] = {
            "url": f"{self.url}{request.path}{f'?{query}' if query else ''}",
            "headers": headers,
        }
        if body is not None:
            arguments["body"], headers["Content-Type"] = body
        if self.method != "GET":
            arguments["method"] = self.method
        return arguments

    def _answer(self, rt: Runtime, arguments: dict[str, Any]) -> Mapping[str, Any]:
        settings = {
            "seconds": self.settings.seconds,
            "limit": self.settings.limit,
            "private": list(self.settings.private),
        }
        tool = "http.request" if "method" in arguments else "http.get"
        try:
            answer: Mapping[str, Any] = rt.call_tool_named(
                tool, {**arguments, **settings, "follow": self.method in REDIRECT_METHODS}
            )
        except ToolNotFound:
            text = "the http toolset, which makes the requests, is not available; install neuroscript[http]"
            raise ToolFailed(text, code="openapi.no_http", retry="host") from None
        except ToolFailed as error:
            retry = HOST_ERRORS.get(error.code, error.retry)
            raise ToolFailed(error.text, code=error.code, retry=retry) from error
        return answer


def _write_parameter(request: Request, parameter: Parameter, value: Any) -> None:
    """Write the value of a parameter into its part of the request; an omitted parameter is not written."""
    style = parameter.style
    if value is None:
        if parameter.required:
            raise value_error(style.arg, "expected a value, got None")
        return
    match parameter.where:
        case "query":
            pairs = serialize_query(style, value)
            _hold_required(parameter, bool(pairs))
            request.query.append((style.arg, pairs))
        case "header":
            header = serialize_header(style, value)
            _hold_required(parameter, header is not None)
            if header is not None:
                request.headers[style.name] = header
        case "cookie":
            cookie = serialize_cookie(style, value)
            _hold_required(parameter, cookie is not None)
            if cookie is not None:
                request.cookies.append((style.name, cookie))


def _hold_required(parameter: Parameter, is_there: bool) -> None:
    if parameter.required and not is_there:
        raise value_error(parameter.arg, "expected a non-empty value, because the parameter is required")
