"""Request headers, the subset that is sent to another host after a redirect, and response headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from neuroscript_http.faults import fault

Pairs = Sequence[tuple[str, str]]

NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
VALUE: Final = re.compile(r"(?:[!-~](?:[ -~\t]*[!-~])?)?")
MAX_HEADERS: Final = 64
"""Maximum number of request headers."""

MAX_HEADER_BYTES: Final = 16 * 1024
"""Maximum bytes of the request headers."""

CLIENT_HEADERS: Final = frozenset(
    (
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
"""Headers that only the client sets, because they frame or address the request."""

HARMLESS: Final = frozenset(("accept", "accept-language", "content-type", "user-agent"))
"""Headers that are also sent to another host; any other header could contain a key."""

CONTENT: Final = "content-"

AGENT: Final = "neuroscript-http"


def request_headers(headers: Mapping[str, str]) -> Pairs:
    """Return the headers of the first request.

    Raises:
        ToolFailed: ``http.bad_header``.
    """
    names = [name.lower() for name in headers]
    if len(names) > MAX_HEADERS or sum(len(name) + len(value) for name, value in headers.items()) > MAX_HEADER_BYTES:
        raise fault(
            "bad_header", f"headers: expected at most {MAX_HEADERS}, with {MAX_HEADER_BYTES} bytes in total, got more"
        )
    if len(set(names)) < len(names):
        raise fault("bad_header", "headers: expected unique names, got a duplicate that may differ in case")
    for name, value in headers.items():
        _require_fit(name, value)
    preset = {"accept": "*/*", "user-agent": AGENT}
    missing = ((name, value) for name, value in preset.items() if name not in names)
    return (*headers.items(), *missing, ("accept-encoding", "gzip"))


def cross_host_headers(headers: Pairs) -> Pairs:
    """Return the headers to send after a redirect to another scheme, host or port."""
    return tuple(pair for pair in headers if pair[0].lower() in {*HARMLESS, "accept-encoding"})


def bodyless_headers(headers: Pairs) -> Pairs:
    """Return the headers of a request whose body a redirect removed."""
    return tuple(pair for pair in headers if not pair[0].lower().startswith(CONTENT))


def answer_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers of a response by their names in lower case.

    Several values of one name are joined with a comma, cookies with a line feed, because a cookie may contain a comma.
    Control characters are escaped, so that a terminal that shows a value does not obey it.
    """
    joined: dict[str, str] = {}
    for name_bytes, value_bytes in raw:
        name, value = (_escaped(each.decode("latin-1")) for each in (name_bytes.lower(), value_bytes))
        gap = "\n" if name == "set-cookie" else ", "
        joined[name] = f"{joined[name]}{gap}{value}" if name in joined else value
    return joined


def _escaped(text: str) -> str:
    """Return *text* with every non-printable character except tabs escaped."""
    return "".join(each if each.isprintable() or each == "\t" else repr(each)[1:-1] for each in text)


def _require_fit(name: str, value: str) -> None:
    if NAME.fullmatch(name) is None:
        raise fault("bad_header", "headers: expected names of letters, digits and -, got another name")
    if name.lower() in CLIENT_HEADERS:
        raise fault("bad_header", f"headers: {name.lower()} is set by the client and cannot be passed")
    if VALUE.fullmatch(value) is None:
        raise fault(
            "bad_header", f"headers: expected {name.lower()} as printable ASCII on one line, got another string"
        )
