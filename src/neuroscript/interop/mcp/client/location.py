"""The location of a server, and the checks of its settings.

The SDK is imported when a connection is first opened, because importing it takes longer than most commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import attrs

from neuroscript.config.mcp_servers import is_command, is_line
from neuroscript.config.oauth import OAuth
from neuroscript.interop.http_server.addresses import SECRET, url_faults
from neuroscript.io.text import quote_untrusted
from neuroscript.tools.injection_sources import Secret


@attrs.frozen
class Access:
    """What a confined server can use, besides its own files.

    Attributes:
        read: Files and directories that it may read.
        write: Files and directories that it may read, write and delete.
        network: Whether it may use the network.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False


@attrs.frozen
class AnswerSettings:
    """What a server may ask during a call, besides questions to the user.

    Attributes:
        server: The host's name for the server, for prompts.
        roots: Whether it receives the directory of the sandbox.
        sampling: Whether it may use the host's model.
    """

    server: str
    roots: bool = False
    sampling: bool = False


@attrs.frozen
class Location:
    """The location of a server: a command or a URL.

    Attributes:
        command: The program and its arguments; no shell interprets them.
        url: The URL of a streamable HTTP server.
        env: Environment variables in addition to ``HOME``, ``LOGNAME``, ``PATH``, ``SHELL``, ``TERM`` and ``USER``.
        headers: Headers for each request.
        cwd: The working directory of the program.
        answers: What the server may ask.
        access: What the program can use if it runs confined, or None if it does not.
        auth: An ``httpx2.Auth`` that authorizes each request, or None.
        oauth: How to get access tokens, or None.
    """

    command: tuple[str, ...]
    url: str
    env: Mapping[str, str] = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    cwd: str | None
    answers: AnswerSettings
    access: Access | None = None
    auth: Any = attrs.field(default=None, repr=False)
    oauth: OAuth | None = None

    def dialogue(self, ended: Callable[[], None]) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that opens a `Dialogue`; *ended* is called if the other side closes it."""
        from neuroscript.interop.mcp.client.sdk import open_dialogue

        return open_dialogue(self, ended)


def location_problems(command: Sequence[str], url: str, exposed: Iterable[str]) -> Iterator[str]:
    """Yield the problems of a command and a URL; exactly one of them is required.

    Args:
        exposed: Names of headers that must not be sent to another machine unencrypted.
    """
    if bool(command) == bool(url):
        yield "pass either a command or a url"
    if command and not is_command(command):
        yield "command: expected the program and its arguments, each a string"
    if url:
        yield from url_faults(url, exposed)


def secret_headers(headers: Mapping[str, str | Secret]) -> list[str]:
    """Return the names of the headers that contain a secret."""
    return [name for name, each in headers.items() if isinstance(each, Secret) or name.lower() in SECRET]


def resolve_secrets(
    what: str, given: Mapping[str, str | Secret], secrets: Mapping[str, str], faults: list[str]
) -> dict[str, str]:
    """Return strings by name, with secrets replaced by their values; record secrets that the host does not provide."""
    found = {}
    for name, each in given.items():
        if isinstance(each, Secret):
            if each.name not in secrets:
                faults.append(f"{what}: the host provides no secret named {quote_untrusted(each.name)}")
                continue
            each = secrets[each.name]
        if not is_line(each):
            faults.append(f"{what}: {quote_untrusted(name)}: expected a string of one line, or a Secret")
            continue
        found[name] = each
    return found


def oauth_problems(oauth: object, url: str, headers: Mapping[str, str | Secret], auth: object | None) -> Iterator[str]:
    """Yield the problems of a parameter ``oauth`` next to the other parameters."""
    if oauth is None:
        return
    if not isinstance(oauth, OAuth):
        yield "oauth: expected True or an OAuth"
    elif not url or auth is not None or any(name.lower() == "authorization" for name in headers):
        yield "oauth: expected a url, and neither auth nor the header Authorization"


def resolve_client_secret(oauth: OAuth, secrets: Mapping[str, str], faults: list[str]) -> OAuth:
    """Return settings in which the client secret is a string; record a secret that the host does not provide."""
    secret = getattr(oauth, "client_secret", "")
    if not isinstance(secret, Secret):
        return oauth
    if secret.name not in secrets:
        faults.append(f"oauth: the host provides no secret named {quote_untrusted(secret.name)}")
        return oauth
    return attrs.evolve(oauth, client_secret=secrets[secret.name])
