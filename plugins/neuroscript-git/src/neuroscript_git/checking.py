"""What a caller, a remote or a repository may write for a branch, a commit, a path, a remote and a URL.

Nothing that passes begins with a dash, so that no text can be read as an option, wherever it stands.

Source: ``git help check-ref-format``; ``git help revisions``, of which suffixes of ``~`` and ``^`` alone are taken.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from neuroscript import ToolFailed

LONGEST: Final = 255
"""How many characters the name of a branch or a remote has at most."""

NO_REF: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\A[/.-]|[/.]\Z|\A@\Z|/\.|\.lock(?:/|\Z)")
SUFFIXES: Final = re.compile(r"(?:[~^][0-9]{0,5})*\Z")
REMOTE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.|lock\Z|\Z))*")
URL: Final = re.compile(
    r"(https?)://([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(/[A-Za-z0-9._~%+/@-]*)?", re.ASCII
)
"""No user, no password, no query: what git would send along, or keep in its configuration, stands in no URL."""

PORTS: Final = {"https": "443", "http": "80"}


@attrs.frozen
class Address:
    """The URL of a repository, taken apart.

    Attributes:
        url: The text itself.
        scheme: ``https`` or ``http``.
        place: ``host:port``, as a scope of ``net``.
    """

    url: str
    scheme: str
    place: str


def bad(code: str, text: str) -> ToolFailed:
    """Return the error of what a caller can mend."""
    return ToolFailed(text, code=code, retry="model")


def is_ref(text: str) -> bool:
    """Tell whether a text can be the name of a branch, a tag or a ref."""
    return 0 < len(text) <= LONGEST and NO_REF.search(text) is None


def ref(text: str) -> str:
    """Return a name of a branch as it is.

    Raises:
        ToolFailed: git.bad_ref.
    """
    if not is_ref(text) or text == "HEAD":
        raise bad("git.bad_ref", "the name of a branch must be one that git permits, and not begin with '-'")
    return text


def commit(text: str) -> str:
    """Return the name of a commit as it is: a branch, a tag or a digest, with ``~`` and ``^`` behind it.

    Raises:
        ToolFailed: git.bad_ref.
    """
    found = SUFFIXES.search(text)
    if not is_ref(text[: found.start()] if found else text):
        raise bad("git.bad_ref", "a commit must be a branch, a tag or a digest, with ~1 or ^1 behind it at most")
    return text


def path(text: str) -> str:
    """Return a path below the repository as it is.

    Raises:
        ToolFailed: git.bad_path.
    """
    names = text.split("/")
    if not text or not text.isprintable() or "\\" in text or text[0] == "/" or not is_inside(names):
        raise bad("git.bad_path", "a path must be relative to the repository, printable, without '..' and '.git'")
    return text


def is_inside(names: list[str]) -> bool:
    """Tell whether the names of a path lead neither out of the repository nor into what git keeps there."""
    return not any(name == ".." or name.lower().rstrip(" .") in (".git", "git~1") for name in names)


def paths(texts: list[str]) -> list[str]:
    """Return paths below the repository as they are.

    Raises:
        ToolFailed: git.bad_path, also where there is none.
    """
    if not texts:
        raise bad("git.bad_path", "name at least one path; '.' is all of the repository")
    return [path(text) for text in texts]


def remote(text: str) -> str:
    """Return the name of a remote as it is.

    Raises:
        ToolFailed: git.bad_remote.
    """
    if len(text) > LONGEST or REMOTE.fullmatch(text) is None:
        raise bad("git.bad_remote", "the name of a remote is made of letters, digits, '.', '_' and '-'")
    return text


def address(text: str, protocol: str) -> Address:
    """Return a URL taken apart.

    Args:
        protocol: The one that the call asked for, and was granted.

    Raises:
        ToolFailed: git.bad_url.
    """
    found = URL.fullmatch(text)
    if found is None or int(found[3] or 0) > 65535 or found[1] != protocol:
        raise bad("git.bad_url", f"a URL must begin with {protocol}://, without a user, a password and a query")
    return Address(text, found[1], f"{found[2]}:{int(found[3] or PORTS[found[1]])}")


def message(text: str) -> bytes:
    """Return the message of a commit as it is given to git.

    Raises:
        ToolFailed: git.bad_message.
    """
    if not text.strip() or "\0" in text:
        raise bad("git.bad_message", "the message of a commit must have a word in it, and no NUL")
    return text.encode()


def person(text: str) -> str:
    """Return the name or the address of an author as it is.

    Raises:
        ToolFailed: git.bad_author.
    """
    if not text.isprintable() or set(text) & set('<>\\"') or len(text) > LONGEST:
        raise bad("git.bad_author", "an author must be printable, without '<', '>', quotes and backslashes")
    return text
