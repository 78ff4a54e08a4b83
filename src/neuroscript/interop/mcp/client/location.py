"""Where a server is, and what is wrong with what a host says of it.

What speaks to it is loaded when it is first opened, for that takes longer than most commands.

Source: issue "MCP", from_mcp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import attrs

from neuroscript.config.mcp_servers import is_command, is_line
from neuroscript.interop.mcp.addresses import SECRET, url_faults
from neuroscript.io.text import shown
from neuroscript.tools.injection_sources import Secret


@attrs.frozen
class Place:
    """Where a server is: a command, or a URL.

    Attributes:
        command: The program and its arguments; no shell reads them.
        url: Of streamable HTTP.
        env: What the program gets besides ``HOME``, ``LOGNAME``, ``PATH``, ``SHELL``, ``TERM`` and ``USER``.
        headers: What goes with each request.
        cwd: The program's working directory.
    """

    command: tuple[str, ...]
    url: str
    env: Mapping[str, str] = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    cwd: str | None

    def dialogue(self, ended: Callable[[], None]) -> AbstractAsyncContextManager[Any]:
        """Return what opens a `Dialogue`, and closes it again; *ended* is called where the other side does that."""
        from neuroscript.interop.mcp.client.sdk import opened

        return opened(self, ended)


def place_faults(command: Sequence[str], url: str, exposed: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with a command and a URL, of which one is given.

    Args:
        exposed: Names of headers that must not go to another machine unencrypted.
    """
    if bool(command) == bool(url):
        yield "give a command or a url, one of the two"
    if command and not is_command(command):
        yield "command: expected the program and its arguments, each a text"
    if url:
        yield from url_faults(url, exposed)


def secret_headers(headers: Mapping[str, str | Secret]) -> list[str]:
    """Return the names of headers that hold a secret."""
    return [name for name, each in headers.items() if isinstance(each, Secret) or name.lower() in SECRET]


def texts(
    what: str, given: Mapping[str, str | Secret], secrets: Mapping[str, str], faults: list[str]
) -> dict[str, str]:
    """Return texts by name, with secrets in their places; one that is not lent is noted."""
    found = {}
    for name, each in given.items():
        if isinstance(each, Secret):
            if each.name not in secrets:
                faults.append(f"{what}: the host provides no secret named {shown(each.name)}")
                continue
            each = secrets[each.name]
        if not is_line(each):
            faults.append(f"{what}: {shown(name)} must be a text of one line, or a Secret")
            continue
        found[name] = each
    return found
