"""The ``http`` tools: specs, policies and functions.

Every tool needs at least ``net:read:{url.host}``. Allowed redirect targets and private addresses are arguments too, so
that they are checked against the grants, and shown to an approver, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

import attrs

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolPolicy, Toolset, ToolSpec
from neuroscript_http.network import Network
from neuroscript_http.timeouts import RequestTimeout
from neuroscript_http.urls import target_of

MAX_REDIRECTS: Final = 5
"""Maximum number of redirects to follow."""

METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")

DEFAULT_RESULT_BYTES: Final = 1024 * 1024
MAX_RESULT_BYTES: Final = 8 * 1024 * 1024
DEFAULT_FILE_BYTES: Final = 64 * 1024 * 1024
MAX_FILE_BYTES: Final = 256 * 1024 * 1024
"""Bytes of a decompressed response: default and maximum for a result, default and maximum for a file."""

PRIVATE: Final = "lan:reach:{private}"
"""A separate resource, so that even a wide network grant does not include private addresses."""

READING: Final = ToolPolicy(
    capabilities=("net:read:{url.host}", "net:read:{redirects.host}", PRIVATE),
    effects=("net", "idempotent"),
    sources=("untrusted",),
    sinks=("outside",),
)
CHANGING: Final = ToolPolicy(
    capabilities=("net:read,write:{url.host}", "net:read,write:{redirects.host}", PRIVATE),
    effects=("net", "writes"),
    sources=("untrusted",),
    sinks=("outside", "storage"),
)
KEEPING: Final = ToolPolicy(
    capabilities=("net:read:{url.host}", "net:read:{redirects.host}", PRIVATE, "fs:write:{path}"),
    effects=("net", "writes", "idempotent"),
    sources=("untrusted",),
    sinks=("outside", "storage"),
)

URL: Final = ArgSpec(
    "url",
    ArgType.STRING,
    min_length=1,
    description="http:// or https:// URL with an ASCII host, other characters as %XX, without user and password.",
)
HEADERS: Final = ArgSpec(
    "headers",
    ArgType.MAP_STRING_STRING,
    default={},
    description="Request headers; framing headers such as Host are set by the client.",
)
SECONDS: Final = ArgSpec(
    "seconds",
    ArgType.FLOAT,
    default=30.0,
    minimum=0.1,
    maximum=300.0,
    description="Timeout in seconds for the whole request, including redirects.",
)
FOLLOW: Final = ArgSpec(
    "follow",
    ArgType.BOOL,
    default=True,
    description=f"True to follow up to {MAX_REDIRECTS} redirects; false to return the redirect response.",
)
REDIRECTS: Final = ArgSpec(
    "redirects",
    ArgType.SLICE_STRING,
    default=[],
    description="URLs whose hosts and ports are allowed as redirect targets, besides those of url.",
)
PRIVATE_ARGUMENT: Final = ArgSpec(
    "private",
    ArgType.SLICE_STRING,
    default=[],
    description="Private addresses with ports that the request can reach, such as 127.0.0.1:8080 or [::1]:8080.",
)
CODES: Final = (
    "http.bad_url, http.bad_header, http.private (the host is not a public address), http.resolve, http.connect, "
    "http.tls, http.timeout, http.incomplete, http.protocol, http.redirect, http.bad_encoding, http.too_large, "
    "http.cancelled"
)
ANSWER: Final = (
    "status, url (after redirects), headers (lowercase names), media_type, charset, text or bytes, size (in bytes) "
    "and seconds. A status such as 404 is a result, not an error. The body is always complete."
)


def _limit(default: int, maximum: int) -> ArgSpec:
    text = "Maximum bytes of the decompressed response body; a longer one is an error."
    return ArgSpec("limit", ArgType.INT, default=default, minimum=0, maximum=maximum, description=text)


@attrs.frozen(eq=False)
class Tools:
    """The functions of the tools, bound to one network."""

    network: Network

    def get(
        self,
        rt: Runtime,
        url: str,
        headers: dict[str, str],
        seconds: float,
        limit: int,
        follow: bool,
        redirects: list[str],
        private: list[str],
    ) -> dict[str, Any]:
        """Make a GET request."""
        return self._fetch_content(rt, "GET", url, headers, b"", seconds, limit, follow)

    def request(
        self,
        rt: Runtime,
        method: str,
        url: str,
        headers: dict[str, str],
        body: bytes | None,
        seconds: float,
        limit: int,
        follow: bool,
        redirects: list[str],
        private: list[str],
    ) -> dict[str, Any]:
        """Send a request with any method."""
        return self._fetch_content(rt, method, url, headers, body or b"", seconds, limit, follow)

    def download(
        self,
        rt: Runtime,
        url: str,
        path: str,
        headers: dict[str, str],
        seconds: float,
        limit: int,
        follow: bool,
        redirects: list[str],
        private: list[str],
    ) -> dict[str, Any]:
        """Save the content of a URL to a file in the sandbox."""
        from hashlib import sha256

        with self._fetched(rt, "GET", url, headers, b"", seconds, limit, follow) as (answer, began):
            result = {"status": answer.status, "url": answer.url, "headers": answer.headers}
            if answer.status != 200:
                return {**result, "path": None, "size": 0, "sha256": None, "seconds": monotonic() - began}
            body = b"".join(answer.pieces)
        rt.fs.write_bytes(path, body)
        digest = sha256(body).hexdigest()
        return {**result, "path": path, "size": len(body), "sha256": digest, "seconds": monotonic() - began}

    def _fetch_content(self, rt: Runtime, *request: Any) -> dict[str, Any]:
        from neuroscript_http.bodies import as_map, content_of

        with self._fetched(rt, *request) as (answer, began):
            body = b"".join(answer.pieces)
        content = content_of(body, answer.headers.get("content-type", ""))
        result = {"status": answer.status, "url": answer.url, "headers": answer.headers}
        return {**result, **as_map(body, content), "seconds": monotonic() - began}

    @contextmanager
    def _fetched(
        self,
        rt: Runtime,
        method: str,
        url: str,
        headers: dict[str, str],
        body: bytes,
        seconds: float,
        limit: int,
        follow: bool,
    ) -> Iterator[tuple[Any, float]]:
        """Yield the response and the start time; httpx is imported here because it is slow to import."""
        from neuroscript_http.headers import request_headers
        from neuroscript_http.request_chain import Request, fetch

        began = monotonic()
        hops = MAX_REDIRECTS if follow else None
        sent = Request(target_of(url), method, request_headers(headers), body, limit, hops)
        with fetch(rt, self.network, sent, RequestTimeout.of(rt, seconds)) as answer:
            yield answer, began


GET: Final = ToolSpec(
    "get",
    "http",
    (URL, HEADERS, SECONDS, _limit(DEFAULT_RESULT_BYTES, MAX_RESULT_BYTES), FOLLOW, REDIRECTS, PRIVATE_ARGUMENT),
    return_type=ArgType.MAP,
    description="Make an HTTP GET request to retrieve a URL, such as a web page or an API response.",
    when_to_use="Use it to read; to save to a file, use http.download, for other methods, http.request.",
    return_help=ANSWER,
    error_conditions=CODES,
    examples=(
        Example(("https://api.example.com/items",)),
        Example({"url": "https://api.example.com/items", "headers": {"Accept": "application/json"}, "limit": 10_000}),
        Example(("https://user:word@api.example.com/",), error="http.bad_url"),
    ),
)

REQUEST: Final = ToolSpec(
    "request",
    "http",
    (
        ArgSpec("method", ArgType.STRING, choices=METHODS, description="HTTP method, in uppercase."),
        URL,
        HEADERS,
        ArgSpec(
            "body",
            ArgType.BLOB,
            required=False,
            description="Request body: bytes, or a string sent as UTF-8; set its media type in headers.",
        ),
        SECONDS,
        _limit(DEFAULT_RESULT_BYTES, MAX_RESULT_BYTES),
        FOLLOW,
        REDIRECTS,
        PRIVATE_ARGUMENT,
    ),
    return_type=ArgType.MAP,
    description="Send an HTTP request with any method, such as POST, PUT or DELETE, and an optional body.",
    when_to_use="Use it for any method except GET; for GET, use http.get, which needs fewer grants.",
    return_help=ANSWER,
    error_conditions=CODES,
    examples=(
        Example(
            {
                "method": "POST",
                "url": "https://api.example.com/items",
                "headers": {"Content-Type": "application/json"},
                "body": '{"name": "tea"}',
            }
        ),
        Example(("DELETE", "https://api.example.com/items/7")),
        Example(("GET", "ftp://api.example.com/"), error="http.bad_url"),
    ),
)

DOWNLOAD: Final = ToolSpec(
    "download",
    "http",
    (
        URL,
        ArgSpec(
            "path",
            ArgType.STRING,
            min_length=1,
            description="The file, relative to the sandbox; replaced if it exists, missing directories are created.",
        ),
        HEADERS,
        SECONDS,
        _limit(DEFAULT_FILE_BYTES, MAX_FILE_BYTES),
        FOLLOW,
        REDIRECTS,
        PRIVATE_ARGUMENT,
    ),
    return_type=ArgType.MAP,
    description="Download a URL and save it to a file in the sandbox.",
    when_to_use="Use it for large or binary content; to get the content as the result, use http.get.",
    return_help=(
        "status, url (after redirects), headers (lowercase names), path, size (in bytes), sha256 (hexadecimal) and "
        "seconds. If the status is not 200, nothing is written, and path and sha256 are None."
    ),
    error_conditions=f"{CODES}; sandbox.type, sandbox.notdir, sandbox.symlink, sandbox.full.",
    examples=(
        Example(("https://api.example.com/items", "items.json")),
        Example({"url": "https://api.example.com/nothing", "path": "new/nothing.txt"}, note="nothing is written"),
        Example(("ftp://api.example.com/items", "items.json"), error="http.bad_url"),
    ),
)


def make_toolset(network: Network | None = None) -> Toolset:
    """Return the tools bound to another network, with custom name resolution, connections or certificates.

    Args:
        network: The network to use; None for the system's network, which `toolset` uses.
    """
    tools = Tools(network or Network())
    http = Toolset("http")
    http.add(GET, tools.get, policy=READING)
    http.add(REQUEST, tools.request, policy=CHANGING)
    http.add(DOWNLOAD, tools.download, policy=KEEPING)
    return http


toolset = make_toolset()
