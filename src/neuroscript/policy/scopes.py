"""Scopes of capabilities: their normal form as keys, and which keys a scope covers.

A key is the normal form of a scope. Globs written by the author of a scope are represented by lone surrogates, which no
valid string contains. A single match therefore decides whether a grant covers a need: a glob in the need is matched
only by a glob in the grant that is at least as wide, and a literal is never a glob, whatever characters it contains.

==========  ============================================================================================
fs          paths below the sandbox; ``*`` and ``?`` match within a segment, ``**`` any number of segments
net         ``host[:port]``; ``*`` matches whole labels, a leading ``*`` also none; no port means every port
all others  case-insensitive globs
==========  ============================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from neuroscript.errors import SandboxError
from neuroscript.names import MAX_NAME_CHARS

Key = str
Covers = Callable[[Key], bool]

ANY: Final = "\ud800"
"""Stands for ``*`` in a key: characters within a segment, one or more labels, any port, or any string."""

ONE: Final = "\ud801"
"""Stands for ``?`` in a key."""

MANY: Final = "\ud802"
"""Any number of whole segments or labels, including none: ``**`` in a path, a leading ``*`` in a host."""

DIGITS: Final = "\ud803"
"""Stands for ``*`` in a numeric host: it matches numeric labels only, so that no name poses as an address."""

WHOLE: Final = "\ud804"
"""The key of the whole resource, which the scope ``*`` means."""

TOOLS: Final = re.compile(r"[a-z0-9_.*?]+")
"""The characters of a tool pattern. A pattern with any other character would match no name."""

SURROGATE: Final = re.compile("[\ud800-\udfff]")
MARKED: Final = re.compile("[\\\\*?[\ud800-\udfff]")
STARS: Final = re.compile(r"\*+")
SPECIAL: Final = re.compile(r"[\\:,*?\[{}]|\A/")
SYNTAX: Final = "\\:,*?[{}"
"""The characters with a special meaning in a scope; a backslash before one makes it literal."""

ESCAPE_PLACEHOLDERS: Final = {"\\\\": "\ud805", "\\*": "\ud806", "\\?": "\ud807", "\\[": "\ud808"}
"""Placeholders for escaped characters while the surrounding globs are read; the backslash comes first."""

PLACE: Final = r"(\[[^\]]*\]|(?:\\.|[^\\:\[])+)(?::(\*|[0-9]{1,5}))?"
LABEL: Final = r"[a-z0-9_-]+"
HOST: Final = rf"{LABEL}(?:\.{LABEL})*|\[[0-9a-f:.]+\]"
"""Compiled on first use, because every process would pay for it and few handle hosts."""

NO_HOST: Final = "expected a host of ASCII letters, digits, - and _, or an IPv6 address in brackets"


class InvalidScope(ValueError):
    """A scope that is invalid for its resource; the message says what to write."""


def literal(text: str) -> str:
    r"""Return the scope that matches *text* literally.

    >>> print(literal("a:b*"))
    a\:b\*
    """
    if not SPECIAL.search(text):
        return text
    for mark in SYNTAX:  # one call per character would take seconds for a value made of special characters
        text = text.replace(mark, f"\\{mark}")
    return f"\\{text}" if text[0] == "/" else text


def key_of(resource: str, scope: str) -> Key:
    """Return the normal form of a scope; ``*`` alone is `WHOLE`.

    Raises:
        Unfit: If the scope is invalid for that resource.
    """
    return WHOLE if scope == "*" else _KEYS.get(resource, _text_key)(scope)


def covers(resource: str, key: Key) -> Covers:
    """Return a predicate that tests whether the scope of *key* covers another key of the same resource."""
    if key == WHOLE:
        return lambda other: True
    if not SURROGATE.search(key):
        return key.__eq__
    matches = re.compile(_PATTERNS.get(resource, _text_pattern)(key), re.DOTALL).fullmatch
    return lambda other: other != WHOLE and matches(other) is not None


def is_tool_pattern(text: str) -> bool:
    """Return whether *text*, already canonical, is a tool name or a glob over tool names."""
    return len(text) <= MAX_NAME_CHARS and TOOLS.fullmatch(text) is not None


def is_exact_tool(text: str) -> bool:
    """Return whether *text*, already canonical, is a tool name without globs."""
    return is_tool_pattern(text) and not {*"*?"} & {*text}


def tool_matcher(pattern: str) -> Covers:
    """Return a predicate that tests canonical names against a canonical pattern, in which ``*`` crosses dots."""
    return covers("tool", key_of("tool", pattern))


def _marked(scope: str) -> str:
    """Return a scope with globs replaced by symbols and escapes resolved; ``**`` becomes `MANY`."""
    if not MARKED.search(scope):
        return scope
    if SURROGATE.search(scope):
        raise InvalidScope("a scope must be valid Unicode, without lone surrogates")
    for escaped, symbol in ESCAPE_PLACEHOLDERS.items():
        scope = scope.replace(escaped, symbol)
    if "[" in scope:
        raise InvalidScope(r"character classes are not supported; write \[ for a bracket")
    if "*" in scope:
        scope = STARS.sub(lambda stars: MANY if stars[0] == "**" else ANY, scope)
    scope = scope.replace("?", ONE).replace("\\", "")
    for escaped, symbol in ESCAPE_PLACEHOLDERS.items():
        scope = scope.replace(symbol, escaped[1])
    return scope


def _text_key(scope: str) -> Key:
    return _marked(scope).replace(MANY, ANY).lower()


def _text_pattern(key: Key) -> str:
    return _spread([_escaped(piece, f"[^{ANY}]") for piece in key.split(ANY)], ".*")


def _escaped(piece: str, one: str) -> str:
    return re.escape(piece).replace(ONE, one)


def _spread(pieces: Sequence[str], gap: str, first_gap: str = "") -> str:
    """Return a regular expression that matches *pieces* in order with gaps between them.

    Each middle piece matches at its first possible position and never backtracks. No match is lost by that, and the
    time stays linear for every key.
    """
    if len(pieces) == 1:
        return pieces[0]
    head, *middle, tail = pieces
    *gaps, last_gap = [first_gap or gap, *[gap] * len(middle)]
    return head + "".join(f"(?>{each}?{piece})" for each, piece in zip(gaps, middle, strict=True)) + last_gap + tail


# Paths: each segment of a key ends in a slash; the root is the empty key


def _path_key(scope: str) -> Key:
    from neuroscript.policy.paths import relative

    path = _marked(scope.lstrip("/"))
    if not path:
        return ""
    try:
        segments = _segments(path) if SURROGATE.search(path) else relative(path)
    except SandboxError as error:
        raise InvalidScope(error.text) from None
    return "/".join((*segments, ""))


def _segments(path: str) -> list[str]:
    from neuroscript.policy.paths import relative

    segments = path.split("/")
    first = next(at for at, segment in enumerate(segments) if SURROGATE.search(segment))
    start = relative("/".join(segments[:first]) or "/") if first else ()
    return [*start, *(_glob(segment) for segment in segments[first:] if segment not in ("", "."))]


def _glob(segment: str) -> str:
    """Return a segment at or after the first glob. Its literal characters must be valid in a path."""
    from neuroscript.policy.paths import relative

    if segment == "..":
        raise InvalidScope("'..' after a glob is not supported")
    relative(f"x/{SURROGATE.sub('x', segment)}")
    return segment if segment == MANY else segment.replace(MANY, ANY)


def _path_pattern(key: Key) -> str:
    groups: list[str] = [""]
    for segment in key.split("/")[:-1]:
        if segment == MANY:
            groups.append("")
        else:
            groups[-1] += f"{_segment_pattern(segment)}/"
    return _spread(groups, "(?:[^/]+/)*")


def _segment_pattern(segment: str) -> str:
    if segment == ANY:
        return f"[^/{MANY}]+"
    return _spread([_escaped(piece, f"[^/{ANY}{MANY}]") for piece in segment.split(ANY)], "[^/]*")


# Hosts: each label of a key ends in a dot, followed by the port


def _place_key(scope: str) -> Key:
    found = re.fullmatch(PLACE, scope)
    if found is None:
        raise InvalidScope("expected host or host:port, such as api.example.com:443, *.example.com or [::1]:80")
    host, port = found.groups()
    if port not in (None, "*") and int(port) > 65535:
        raise InvalidScope("a port is at most 65535")
    return f"{_host_key(host)}:{ANY if port in (None, '*') else int(port)}"


def _host_key(host: str) -> Key:
    if not host.isascii():
        raise InvalidScope(NO_HOST)
    text = host if host[0] == "[" else _marked(host).lower()
    if not SURROGATE.search(text):
        return f"{literal_host(text)}."
    labels = text.removesuffix(".").replace(MANY, ANY).split(".")
    if not all(label == ANY or re.fullmatch(LABEL, label) for label in labels):
        raise InvalidScope("* in a host matches whole labels; write *.example.com")
    numbers = [label for label in labels if label != ANY]
    if numbers and all(map(str.isdigit, numbers)):
        labels = [DIGITS if label == ANY else label for label in labels]
    elif labels[:2] == [ANY, ANY]:
        del labels[0]  # "none or more" followed by "one or more" is "one or more"
    elif labels[0] == ANY:
        labels[0] = MANY
    return "".join(f"{label}." for label in labels)


def literal_host(host: str) -> str:
    """Return a host without globs in the form used for comparison: lower case, IPv6 in brackets, no trailing dot.

    Raises:
        Unfit: If clients could interpret the host differently.
    """
    from neuroscript.policy.paths import host_port

    try:
        normal = host_port(f"[{host}]" if ":" in host and host[0] != "[" else host)
    except ValueError:
        normal = ""
    if re.fullmatch(HOST, normal) is None:
        raise InvalidScope(NO_HOST)
    return normal


def _place_pattern(key: Key) -> str:
    host, _, port = key.rpartition(":")
    return f"{'.+' if host == f'{MANY}.' else _host_pattern(host)}:{'.+' if port == ANY else port}"


def _host_pattern(host: Key) -> str:
    groups: list[str] = [""]
    for label in host.split(".")[:-1]:
        if label in (ANY, MANY, DIGITS):
            groups.append("")
        else:
            groups[-1] += re.escape(f"{label}.")
    gap = f"(?:[0-9{DIGITS}]+\\.)+" if DIGITS in host else f"(?:[^.:\\[{MANY}]+\\.)+"
    return _spread(groups, gap, "(?:[^.:\\[]+\\.)*" if host.startswith(MANY) else "")


_KEYS: Final[dict[str, Callable[[str], Key]]] = {"fs": _path_key, "net": _place_key}
_PATTERNS: Final[dict[str, Callable[[Key], str]]] = {"fs": _path_pattern, "net": _place_pattern}
