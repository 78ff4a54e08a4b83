"""Validation of branches, commits, paths, remotes and URLs, from a caller, a remote or a repository.

No valid value starts with a dash, so git never reads it as an option. Names of refs follow ``git help
check-ref-format``; of ``git help revisions``, only the suffixes ``~`` and ``^`` are supported.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from neuroscript import ToolFailed

MAX_NAME_CHARS: Final = 255
"""Maximum characters in the name of a branch or a remote."""

NO_REF: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\A[/.-]|[/.]\Z|\A@\Z|/\.|\.lock(?:/|\Z)")
SUFFIXES: Final = re.compile(r"(?:[~^][0-9]{0,5})*\Z")
REMOTE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.|lock\Z|\Z))*")
URL: Final = re.compile(
    r"(https?)://([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(/[A-Za-z0-9._~%+/@-]*)?", re.ASCII
)
"""URLs have no user, password or query, because git would send them or store them in its configuration."""

PORTS: Final = {"https": "443", "http": "80"}


@attrs.frozen
class Address:
    """The parsed URL of a repository.

    Attributes:
        url: The URL.
        scheme: ``https`` or ``http``.
        place: ``host:port``, as in the scope of a ``net`` capability.
    """

    url: str
    scheme: str
    place: str


def input_error(code: str, text: str) -> ToolFailed:
    """Return an error that the caller can fix."""
    return ToolFailed(text, code=code, retry="model")


def is_ref(text: str) -> bool:
    """Return whether a string is a valid name of a branch, a tag or a ref."""
    return 0 < len(text) <= MAX_NAME_CHARS and NO_REF.search(text) is None


def ref(text: str) -> str:
    """Check the name of a branch and return it.

    Raises:
        ToolFailed: git.bad_ref.
    """
    if not is_ref(text) or text == "HEAD":
        raise input_error("git.bad_ref", "a branch name must be a valid git ref and must not start with '-'")
    return text


def commit(text: str) -> str:
    """Check the name of a commit (a branch, a tag or a hash, with suffixes ``~`` and ``^``) and return it.

    Raises:
        ToolFailed: git.bad_ref.
    """
    found = SUFFIXES.search(text)
    if not is_ref(text[: found.start()] if found else text):
        raise input_error("git.bad_ref", "a commit must be a branch, a tag or a hash, optionally followed by ~1 or ^1")
    return text


def path(text: str) -> str:
    """Check a path in the repository and return it.

    Raises:
        ToolFailed: git.bad_path.
    """
    names = text.split("/")
    if not text or not text.isprintable() or "\\" in text or text[0] == "/" or not is_inside(names):
        raise input_error(
            "git.bad_path", "a path must be relative to the repository, printable, without '..' and '.git'"
        )
    return text


def is_inside(names: list[str]) -> bool:
    """Return whether a path leads neither out of the repository nor into its ``.git``."""
    return not any(name == ".." or name.lower().rstrip(" .") in (".git", "git~1") for name in names)


def paths(texts: list[str]) -> list[str]:
    """Check paths in the repository and return them.

    Raises:
        ToolFailed: git.bad_path, also if the list is empty.
    """
    if not texts:
        raise input_error("git.bad_path", "pass at least one path; '.' means the whole repository")
    return [path(text) for text in texts]


def remote(text: str) -> str:
    """Check the name of a remote and return it.

    Raises:
        ToolFailed: git.bad_remote.
    """
    if len(text) > MAX_NAME_CHARS or REMOTE.fullmatch(text) is None:
        raise input_error("git.bad_remote", "a remote name consists of letters, digits, '.', '_' and '-'")
    return text


def address(text: str, protocol: str) -> Address:
    """Parse a URL.

    Args:
        protocol: The requested and granted protocol.

    Raises:
        ToolFailed: git.bad_url.
    """
    found = URL.fullmatch(text)
    if found is None or int(found[3] or 0) > 65535 or found[1] != protocol:
        raise input_error("git.bad_url", f"a URL must start with {protocol}://, without a user, a password or a query")
    return Address(text, found[1], f"{found[2]}:{int(found[3] or PORTS[found[1]])}")


def message(text: str) -> bytes:
    """Check the message of a commit and return its bytes.

    Raises:
        ToolFailed: git.bad_message.
    """
    if not text.strip() or "\0" in text:
        raise input_error("git.bad_message", "a commit message must not be blank and must not contain null bytes")
    return text.encode()


def person(text: str) -> str:
    """Check the name or email address of an author and return it.

    Raises:
        ToolFailed: git.bad_author.
    """
    if not text.isprintable() or set(text) & set('<>\\"') or len(text) > MAX_NAME_CHARS:
        raise input_error("git.bad_author", "an author must be printable, without '<', '>', quotes and backslashes")
    return text
