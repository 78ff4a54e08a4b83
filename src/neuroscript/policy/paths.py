"""Normalisation of sandbox paths and network addresses, without file system or network access.

Grants and the sandbox call the same functions, so the path that a grant is compared with is the path that is opened.
"""

from __future__ import annotations

import os
import re
from typing import Final

from neuroscript.coercion.scalars import is_unicode, to_builtin
from neuroscript.errors import SandboxError

MAX_PATH_BYTES: Final = 4095
MAX_NAME_BYTES: Final = 255
"""Bytes of UTF-8 in one path segment, as most file systems count."""

MAX_SEGMENTS: Final = 256
"""Maximum number of segments, so that no call creates or removes an excessively deep tree of directories."""

WINDOWS: Final = os.name == "nt"

INVISIBLE_CHARS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
"""Control characters, bidirectional marks and zero-width characters, which can make two different names look alike."""

DRIVE: Final = re.compile(r"[A-Za-z]:")
DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\..*)?", re.IGNORECASE)
SHORT: Final = re.compile(r"~[0-9]")
"""Names that Windows treats as devices regardless of extension, and the mark of 8.3 short names."""

HOST_PORT: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s/@?#\\\[\]:]*[^\s/@?#\\\[\]:.])\.?)(?::([0-9]{1,5}))?")

EXAMPLE_URL: Final = "http://127.0.0.1:8080/v1"
"""Example server address for error messages."""


def relative(path: object, *, windows: bool = WINDOWS) -> tuple[str, ...]:
    """Return the segments of a path relative to the sandbox, ``.``, ``//`` and ``..`` resolved; ``()`` is the root.

    Args:
        path: A string. A subclass of str is read through str's own methods.
        windows: Whether to refuse names that have a special meaning on Windows.

    Raises:
        SandboxError: With the code ``sandbox.`` and one of argtype, empty, toolong, nul, encoding, control, separator,
            absolute, escape, name. The message does not repeat the path.

    >>> relative("data/./old/../a.txt")
    ('data', 'a.txt')
    """
    segments = _collapsed(_plain(path))
    if segments and segments[0].startswith("~"):
        raise _refused("name", "a path must not begin with '~'")
    if segments and DRIVE.match(segments[0]):
        raise _refused("absolute", "a path must be relative to the sandbox")
    if len(segments) > MAX_SEGMENTS or any(len(name.encode()) > MAX_NAME_BYTES for name in segments):
        raise _refused("toolong", f"a path has at most {MAX_SEGMENTS} names of at most {MAX_NAME_BYTES} bytes each")
    if windows and any(_means_something_else(name) for name in segments):
        raise _refused("name", "a path must not name a Windows device, stream or short name")
    return tuple(segments)


def canonical_path(segments: tuple[str, ...]) -> str:
    """Return the canonical form of a path: its segments joined by ``/``, or ``.`` for the root."""
    return "/".join(segments) or "."


def names_directory(path: str) -> bool:
    """Return whether a path can only mean a directory, as ``a/``, ``a/.`` and ``.`` do."""
    return path.rpartition("/")[2] in ("", ".", "..")


def host_port(text: str) -> str:
    """Return the canonical form of ``host`` or ``host:port``: lower case, no trailing dot, compressed IPv6 in brackets.

    The port is neither changed nor added. ``*`` in a host is an ordinary character.

    Raises:
        ValueError: If *text* is neither. The message does not repeat it.

    >>> host_port("Example.COM.:443"), host_port("[0:0::1]:80")
    ('example.com:443', '[::1]:80')
    """
    match = HOST_PORT.fullmatch(text.lower())
    port = int(match[3] or 0) if match else 0
    if match is None or port > 65535:
        raise ValueError("expected host or host:port")
    host = f"[{_compressed(match[1])}]" if match[1] else match[2]
    return f"{host}:{port}" if match[3] else host


def _compressed(address: str) -> str:
    from socket import AF_INET6, inet_ntop, inet_pton

    try:
        return inet_ntop(AF_INET6, inet_pton(AF_INET6, address))
    except OSError:
        raise ValueError("expected an IPv6 address in brackets") from None


def _plain(path: object) -> str:
    """Return a path as a string that is valid on every system; check its length before its characters."""
    text = to_builtin(path)
    if type(text) is not str:
        raise _refused("argtype", "a path must be a string")
    if not text:
        raise _refused("empty", "a path must not be empty; the sandbox itself is '.'")
    if len(text) > MAX_PATH_BYTES:
        raise _refused("toolong", f"a path has at most {MAX_PATH_BYTES} bytes")
    if "\0" in text:
        raise _refused("nul", "a path must not contain a NUL character")
    if not is_unicode(text):
        raise _refused("encoding", "a path must be valid Unicode, without lone surrogates")
    if len(text.encode()) > MAX_PATH_BYTES:
        raise _refused("toolong", f"a path has at most {MAX_PATH_BYTES} bytes")
    if INVISIBLE_CHARS.search(text):
        raise _refused("control", "a path must not contain invisible characters")
    if "\\" in text:
        raise _refused("separator", "a path uses '/' as its separator and must not contain a backslash")
    if text[0] == "/":
        raise _refused("absolute", "a path must be relative to the sandbox")
    return text


def _collapsed(text: str) -> list[str]:
    segments: list[str] = []
    for name in text.split("/"):
        if name == "..":
            if not segments:
                raise _refused("escape", "the path leads out of the sandbox")
            segments.pop()
        elif name not in ("", "."):
            segments.append(name)
    return segments


def _means_something_else(name: str) -> bool:
    return name[-1] in ". " or ":" in name or bool(DEVICE.fullmatch(name) or SHORT.search(name))


def _refused(word: str, text: str) -> SandboxError:
    return SandboxError(text, code=f"sandbox.{word}", retry="model")


def is_address(text: str) -> bool:
    """Return whether a string is the URL of an HTTP server and contains no spaces or control characters.

    >>> is_address(EXAMPLE_URL), is_address("127.0.0.1:8080")
    (True, False)
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # of a port, or of brackets
        return False
    return is_one and " " not in text and text.isprintable()
