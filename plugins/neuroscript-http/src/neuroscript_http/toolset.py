"""The HTTP tools: what each takes, needs and gives.

``net:read:{url.host}`` is what they need at least. Where redirects may lead and which private addresses may be reached
are arguments too, so that they are granted, and seen by an approver, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

import attrs

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolPolicy, Toolset, ToolSpec
from neuroscript_http.network import Network
from neuroscript_http.patience import Patience
from neuroscript_http.urls import target_of

HOPS: Final = 5
"""Redirects that are followed at most."""

METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")

SHOWN: Final = 1024 * 1024
MOST_SHOWN: Final = 8 * 1024 * 1024
KEPT: Final = 64 * 1024 * 1024
MOST_KEPT: Final = 256 * 1024 * 1024
"""Bytes of an answer, unpacked: what is given and what is written where nobody says a limit, and at most."""

PRIVATE: Final = "lan:reach:{private}"
"""A resource of its own, so that no grant for the network, however wide, opens what is not public."""

READING: Final = ToolPolicy(
    capabilities=("net:read:{url.host}", "net:read:{redirects.host}", PRIVATE), effects=("net", "idempotent")
)
CHANGING: Final = ToolPolicy(
    capabilities=("net:read,write:{url.host}", "net:read,write:{redirects.host}", PRIVATE), effects=("net", "writes")
)
KEEPING: Final = ToolPolicy(
    capabilities=("net:read:{url.host}", "net:read:{redirects.host}", PRIVATE, "fs:write:{path}"),
    effects=("net", "writes", "idempotent"),
)

URL: Final = ArgSpec(
    "url",
    ArgType.STRING,
    min_length=1,
    description="http:// or https://, a host in ASCII, and other characters written as %XX; no user, no password.",
)
HEADERS: Final = ArgSpec(
    "headers",
    ArgType.MAP_STRING_STRING,
    default={},
    description="Headers to send; those that frame a request, such as Host, are the client's own.",
)
SECONDS: Final = ArgSpec(
    "seconds",
    ArgType.FLOAT,
    default=30.0,
    minimum=0.1,
    maximum=300.0,
    description="How long the whole of it may take, redirects included.",
)
FOLLOW: Final = ArgSpec(
    "follow",
    ArgType.BOOL,
    default=True,
    description=f"Whether at most {HOPS} redirects are followed; without, a redirect is the answer.",
)
REDIRECTS: Final = ArgSpec(
    "redirects",
    ArgType.SLICE_STRING,
    default=[],
    description="URLs whose hosts and ports a redirect may lead to, besides those of url itself.",
)
PRIVATELY: Final = ArgSpec(
    "private",
    ArgType.SLICE_STRING,
    default=[],
    description="Private addresses with their ports that may be reached, such as 127.0.0.1:8080 or [::1]:8080.",
)
CODES: Final = (
    "http.bad_url, http.bad_header, http.private (the host is no public address), http.resolve, http.connect, "
    "http.tls, http.timeout, http.cut, http.protocol, http.redirect, http.bad_encoding, http.too_large, http.cancelled"
)
ANSWER: Final = (
    "status, url (behind redirects), headers (by names in lower case), media_type, charset, text or else bytes, "
    "size (of them, in bytes) and seconds. A status such as 404 is a result, and what is given is whole."
)


def _limit(default: int, most: int) -> ArgSpec:
    text = "Bytes that the body of the answer may have, unpacked; a longer one is an error."
    return ArgSpec("limit", ArgType.INT, default=default, minimum=0, maximum=most, description=text)


@attrs.frozen(eq=False)
class Tools:
    """The functions of the tools, over one network."""

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
        """Ask for what a URL names."""
        return self._told(rt, "GET", url, headers, b"", seconds, limit, follow)

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
        """Send a request by any method."""
        return self._told(rt, method, url, headers, body or b"", seconds, limit, follow)

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
        """Write what a URL names into a file of the sandbox."""
        from hashlib import sha256

        with self._fetched(rt, "GET", url, headers, b"", seconds, limit, follow) as (answer, began):
            told = {"status": answer.status, "url": answer.url, "headers": answer.headers}
            if answer.status != 200:
                return {**told, "path": None, "size": 0, "sha256": None, "seconds": monotonic() - began}
            body = b"".join(answer.pieces)
        rt.fs.write_bytes(path, body)
        digest = sha256(body).hexdigest()
        return {**told, "path": path, "size": len(body), "sha256": digest, "seconds": monotonic() - began}

    def _told(self, rt: Runtime, *asked: Any) -> dict[str, Any]:
        from neuroscript_http.bodies import as_map, content_of

        with self._fetched(rt, *asked) as (answer, began):
            body = b"".join(answer.pieces)
        content = content_of(body, answer.headers.get("content-type", ""))
        told = {"status": answer.status, "url": answer.url, "headers": answer.headers}
        return {**told, **as_map(body, content), "seconds": monotonic() - began}

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
        """Give the answer, and when it was first asked for; httpx is loaded here, for it takes its time."""
        from neuroscript_http.fetching import Sent, fetched
        from neuroscript_http.headers import request_headers

        began = monotonic()
        hops = HOPS if follow else None
        sent = Sent(target_of(url), method, request_headers(headers), body, limit, hops)
        with fetched(rt, self.network, sent, Patience.of(rt, seconds)) as answer:
            yield answer, began


GET: Final = ToolSpec(
    "get",
    "http",
    (URL, HEADERS, SECONDS, _limit(SHOWN, MOST_SHOWN), FOLLOW, REDIRECTS, PRIVATELY),
    return_type=ArgType.MAP,
    description="Ask a web server for what a URL names.",
    when_to_use="For a page or the answer of an API; http.download keeps a file, http.request uses other methods.",
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
        ArgSpec("method", ArgType.STRING, choices=METHODS, description="What is asked for, in capitals."),
        URL,
        HEADERS,
        ArgSpec(
            "body",
            ArgType.BLOB,
            required=False,
            description="What is sent: bytes, or a text as UTF-8. Its media type is said in the headers.",
        ),
        SECONDS,
        _limit(SHOWN, MOST_SHOWN),
        FOLLOW,
        REDIRECTS,
        PRIVATELY,
    ),
    return_type=ArgType.MAP,
    description="Send a request by any method, with a body, to a web server.",
    when_to_use="To change something by an API, or for HEAD and OPTIONS; http.get needs less, for it only reads.",
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
            description="The file, below the sandbox; one that is there is replaced, missing directories are made.",
        ),
        HEADERS,
        SECONDS,
        _limit(KEPT, MOST_KEPT),
        FOLLOW,
        REDIRECTS,
        PRIVATELY,
    ),
    return_type=ArgType.MAP,
    description="Write what a URL names into a file of the sandbox: the whole of it, or nothing changes.",
    when_to_use="For what is large or no text; http.get gives the content itself and writes nothing.",
    return_help=(
        "status, url (behind redirects), headers (by names in lower case), path, size (in bytes), sha256 (hexadecimal) "
        "and seconds. Nothing is written unless the status is 200: then path and sha256 are None."
    ),
    error_conditions=f"{CODES}; sandbox.type, sandbox.notdir, sandbox.symlink, sandbox.full.",
    examples=(
        Example(("https://api.example.com/items", "items.json")),
        Example({"url": "https://api.example.com/nothing", "path": "new/nothing.txt"}, note="nothing is written"),
        Example(("ftp://api.example.com/items", "items.json"), error="http.bad_url"),
    ),
)


def made(network: Network | None = None) -> Toolset:
    """Return the tools over another network: with name servers, connections or certificates of a host's own.

    Args:
        network: What reaches the network; None for the system's, which `toolset` has too.
    """
    tools = Tools(network or Network())
    http = Toolset("http")
    http.add(GET, tools.get, policy=READING)
    http.add(REQUEST, tools.request, policy=CHANGING)
    http.add(DOWNLOAD, tools.download, policy=KEEPING)
    return http


toolset = made()
