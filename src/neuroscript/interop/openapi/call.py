"""One call of an operation: a request is put together, the http toolset makes it, and its answer is read.

Source: contract section 5, nested calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.errors import ToolFailed, ToolNotFound
from neuroscript.interop.openapi.parameter_styles import (
    encoded,
    in_cookie,
    in_header,
    in_path,
    in_query,
    joined,
    refused,
)
from neuroscript.interop.openapi.parameters import SLOT, Parameter
from neuroscript.interop.openapi.request_body import Content
from neuroscript.interop.openapi.responses import Promise, value_of
from neuroscript.interop.openapi.security import Credential
from neuroscript.interop.openapi.servers import has_dots
from neuroscript.runtime.interfaces import Runtime

SAFE: Final = ("GET", "HEAD")
"""Methods whose redirects within the server are followed."""

OURS: Final[Mapping[str, Literal["host"]]] = {
    "http.redirect": "host",
    "http.too_large": "host",
    "http.bad_header": "host",
}
"""What a caller of an operation can not mend, for it says no URL, no limit, and no header that was not looked at."""


@attrs.frozen
class Manner:
    """How requests are made, as their host says.

    Attributes:
        seconds: How long one may take.
        limit: Bytes that an answer may have.
        private: Private addresses with their ports that may be reached.
    """

    seconds: float = 30.0
    limit: int = 1024 * 1024
    private: tuple[str, ...] = ()


@attrs.define(eq=False)
class Request:
    """A request that is put together.

    Attributes:
        path: With the values in it.
        query: The name of each argument, or ``""`` for what the host says, and its pairs: of names, which are not
            encoded yet, and of texts, which are.
        headers: By name.
        cookies: Names and values.
    """

    path: str = ""
    query: list[tuple[str, list[tuple[str, str]]]] = attrs.field(factory=list)
    headers: dict[str, str] = attrs.field(factory=dict)
    cookies: list[tuple[str, str]] = attrs.field(factory=list)


@attrs.frozen(eq=False)
class Calling:
    """The function of one operation.

    Attributes:
        method: In capitals.
        url: That of the server.
        route: The path, with ``{names}``.
        args: The names of the arguments, in order.
        always: Those that are always given.
        parameters: What stands in the path, the query, the headers and the cookies.
        content: What the body can be, or None.
        credentials: What the host's secrets become.
        promise: What is returned.
        manner: How the request is made.
    """

    method: str
    url: str
    route: str
    args: tuple[str, ...]
    always: frozenset[str]
    parameters: tuple[Parameter, ...]
    content: Content | None
    credentials: tuple[Credential, ...]
    promise: Promise
    manner: Manner

    def __call__(self, rt: Runtime, *values: Any) -> Any:
        """Make the request and return the value of its answer."""
        given = dict(zip(self.args, values, strict=True))
        request = Request()
        self._put_credentials(rt, request)
        self._put_path(request, given)
        for each in self.parameters:
            if each.where != "path":
                _put(request, each, given[each.arg])
        body = self.content.written(given, self.always) if self.content else None
        return value_of(self._answer(rt, self._asked(request, body)), self.promise)

    def _put_credentials(self, rt: Runtime, request: Request) -> None:
        for each in self.credentials:
            text = each.written(rt.secret(each.secret))
            match each.where:
                case "header":
                    request.headers[each.name] = text
                case "query":
                    request.query.append(("", [(each.name, encoded(text))]))
                case "cookie":
                    request.cookies.append((each.name, text))

    def _put_path(self, request: Request, given: Mapping[str, Any]) -> None:
        parts = {each.style.name: each for each in self.parameters if each.where == "path"}
        written = {name: in_path(each.style, given[each.arg]) for name, each in parts.items()}
        request.path = SLOT.sub(lambda found: written[found[1]], self.route)
        for template, segment in zip(self.route.split("/"), request.path.split("/"), strict=True):
            names = [parts[name].arg for name in SLOT.findall(template)]
            if names and (not segment or has_dots(segment)):
                raise refused(names[0], "expected something else than dots, for it is a part of a path")

    def _asked(self, request: Request, body: bytes | None) -> dict[str, Any]:
        query = joined(request.query)
        headers = {"Accept": self.promise.accept, **request.headers}
        if request.cookies:
            headers["Cookie"] = "; ".join(f"{name}={text}" for name, text in request.cookies)
        asked: dict[str, Any] = {"url": f"{self.url}{request.path}{f'?{query}' if query else ''}", "headers": headers}
        if body is not None and self.content is not None:
            headers["Content-Type"] = self.content.media_type
            asked["body"] = body
        if self.method != "GET":
            asked["method"] = self.method
        return asked

    def _answer(self, rt: Runtime, asked: dict[str, Any]) -> Mapping[str, Any]:
        manner = {"seconds": self.manner.seconds, "limit": self.manner.limit, "private": list(self.manner.private)}
        tool = "http.request" if "method" in asked else "http.get"
        try:
            answer: Mapping[str, Any] = rt.call_tool_named(tool, {**asked, **manner, "follow": self.method in SAFE})
        except ToolNotFound:
            text = "there is no http toolset, which makes the requests; install neuroscript[http]"
            raise ToolFailed(text, code="openapi.no_http", retry="host") from None
        except ToolFailed as error:
            retry = OURS.get(error.code, error.retry)
            raise ToolFailed(error.text, code=error.code, retry=retry) from error
        return answer


def _put(request: Request, parameter: Parameter, value: Any) -> None:
    """Put the value of a parameter where it stands; one that was not given stands nowhere."""
    style = parameter.style
    if value is None:
        if parameter.required:
            raise refused(style.arg, "expected a value, got None")
        return
    match parameter.where:
        case "query":
            pairs = in_query(style, value)
            _hold_required(parameter, bool(pairs))
            request.query.append((style.arg, pairs))
        case "header":
            header = in_header(style, value)
            _hold_required(parameter, header is not None)
            if header is not None:
                request.headers[style.name] = header
        case "cookie":
            cookie = in_cookie(style, value)
            _hold_required(parameter, cookie is not None)
            if cookie is not None:
                request.cookies.append((style.name, cookie))


def _hold_required(parameter: Parameter, is_there: bool) -> None:
    if parameter.required and not is_there:
        raise refused(parameter.arg, "expected something that is not empty, for it is required")
