"""An MCP server's tools as a set of tools, over one connection, and held to what a host has accepted.

Source: issue "MCP", from_mcp; contract section 5.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from time import monotonic
from types import TracebackType
from typing import Final, Self

from neuroscript._imports import mending
from neuroscript.config.mcp_servers import SECONDS, is_group, is_seconds
from neuroscript.errors import PluginError, SpecError, ToolFailed
from neuroscript.interop.mcp.client import accepted_definitions as file
from neuroscript.interop.mcp.client.accepted_definitions import Definition, Difference
from neuroscript.interop.mcp.client.connection import Connection
from neuroscript.interop.mcp.client.definition import Belief, tools_of
from neuroscript.interop.mcp.client.location import Place, place_faults, secret_headers, texts
from neuroscript.io.text import shown
from neuroscript.names import canonical, word_of
from neuroscript.runtime.redaction import Redactor
from neuroscript.runtime.secret_forms import SHORTEST
from neuroscript.runtime.secret_set import SecretSet
from neuroscript.tools.derived import matching
from neuroscript.tools.hookspecs import hookimpl
from neuroscript.tools.injection_sources import Secret
from neuroscript.tools.toolset import Toolset

SUBJECT: Final = "mcp"
"""What errors call what is made here, before its group."""

MISSING: Final = f"the SDK of MCP is not installed; install it with: {mending('mcp')}"


class McpServer:
    """A server of the Model Context Protocol; a plugin of hooks too, which brings its tools and ends with its engine.

    It is made by `from_mcp`, and closed by `close`, by ``with``, or with the engine whose hook it is.

    Attributes:
        toolset: The tools that were taken.
        skipped: Why others were left out.
        definitions: What was accepted of the server, by the server's names.
    """

    def __init__(
        self, toolset: Toolset, skipped: Sequence[str], definitions: file.Definitions, connection: Connection
    ) -> None:
        self.toolset = toolset
        self.skipped = tuple(skipped)
        self.definitions = dict(definitions)
        self._connection = connection

    def connect(self) -> None:
        """Open the connection now, where it is not open.

        Raises:
            PluginError: ``mcp.start``, it can not be opened.
        """
        listed(self._connection, self.toolset.name)

    @property
    def offered(self) -> file.Definitions:
        """What the server says its tools are now, by its names; `PluginError` where it can not be asked."""
        return listed(self._connection, self.toolset.name)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """What the server says now that is not what was accepted; `PluginError` where it can not be asked."""
        return file.differences(self.definitions, self.offered)

    def accept(self, path: str | os.PathLike[str]) -> tuple[Difference, ...]:
        """Write down all that the server says now as accepted, and return what is different from before.

        The tools of this set stay what they are; `from_mcp` with ``accepted`` takes those of the file.

        Raises:
            PluginError: The server can not be asked.
            OSError: The file can not be written.
        """
        now = self.offered
        file.write(path, now)
        return file.differences(self.definitions, now)

    def close(self) -> None:
        """End the connection: its child, its thread and its descriptors are gone when this returns."""
        self._connection.close()

    @hookimpl
    def neuroscript_toolsets(self) -> Iterable[Toolset]:
        """Bring the tools to an engine."""
        return [self.toolset]

    @hookimpl
    def neuroscript_engine_closed(self) -> None:
        """End the connection with the engine."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"McpServer({self.toolset.name!r}, {len(self.toolset)} tools)"


def from_mcp(
    command: Sequence[str] = (),
    *,
    url: str = "",
    group: str,
    env: Mapping[str, str | Secret] | None = None,
    headers: Mapping[str, str | Secret] | None = None,
    secrets: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    plain_http: bool = False,
    trusted: bool = False,
    trust_annotations: bool = False,
    select: str | Iterable[str] | None = None,
    skip: bool = False,
    accepted: str | os.PathLike[str] | Mapping[str, Definition] | None = None,
    timeout: float = SECONDS,
) -> McpServer:
    """Return the tools of an MCP server, which is a program that is started here, or is reached over HTTP.

    With *accepted* nothing is started or reached before the first call; without, the server is asked at once, and what
    it says is taken for as long as this lives.

    Args:
        command: The program and its arguments; no shell reads them.
        url: The address of a server of streamable HTTP, in place of a command.
        group: The group of the tools, and what the server is called in needs: ``mcp:call:GROUP/TOOL``.
        env: What the program gets besides ``HOME``, ``LOGNAME``, ``PATH``, ``SHELL``, ``TERM`` and ``USER``; a `Secret`
            stands for one of *secrets*.
        headers: What goes with each request, likewise.
        secrets: Texts by name, those of the host.
        cwd: The program's working directory.
        plain_http: Whether secrets may go to another machine unencrypted: headers that are a `Secret`, or are called
            ``Authorization``, ``Cookie`` or ``Proxy-Authorization``.
        trusted: Whether its tools are called without an approval of each call.
        trust_annotations: Whether what the server says of what its tools do is believed: a tool that says it only reads
            needs no approval then.
        select: Patterns of the tools to take, as in ``files.read_*``. None takes all.
        skip: Whether tools that can not be taken are left out; ``skipped`` says why.
        accepted: A file that `McpServer.accept` wrote, or definitions by the server's names. Nothing else is taken, and
            a tool that is not what stands there is not called.
        timeout: Seconds that a call may take, and the opening of the connection.

    Raises:
        SpecError: With everything that is wrong: with what was given here, or with the tools. One that says a secret
            which its server was given is not taken at all.
        PluginError: ``mcp.start``, the server can not be reached, or its tools cannot be read within *timeout*.
    """
    word = canonical(group)
    exposed = () if plain_http else secret_headers(headers or {})
    faults = [*place_faults(command, url, exposed), *_group_faults(word, timeout)]
    taken_env, taken_headers = (
        texts(name, given or {}, secrets or {}, faults) for name, given in (("env", env), ("headers", headers))
    )
    if faults:
        raise SpecError(SUBJECT, faults)
    if not _is_installed():
        raise SpecError(SUBJECT, [MISSING])
    place = Place(tuple(command), url, taken_env, taken_headers, None if cwd is None else os.fspath(cwd))
    connection = Connection(place.dialogue, timeout)
    server = taken(connection, word, Belief(trusted, trust_annotations), accepted, select, skip)
    given = (*(env or {}).values(), *(headers or {}).values())
    told = [*_told(server.definitions, [(secrets or {})[each.name] for each in given if isinstance(each, Secret)])]
    if told:
        server.close()
        raise SpecError(f"{SUBJECT} {word}", told)
    return server


def _told(definitions: file.Definitions, secrets: Iterable[str]) -> Iterable[str]:
    """Yield which definitions say a secret that their server was given; models would read it."""
    received = SecretSet()
    for secret in secrets:
        if len(secret) >= SHORTEST:
            received.add(secret)
    known = Redactor(received)
    for name, each in definitions.items():
        if known.plain(dict(each.data)) != each.data:
            yield f"{known.text(shown(name))}: says a secret that the server was given"


def group_of(group: str, timeout: float) -> str:
    """Return the group of a server's tools as it is written; `SpecError` where it or the timeout can not be."""
    word = canonical(group)
    faults = list(_group_faults(word, timeout))
    if faults:
        raise SpecError(SUBJECT, faults)
    return word


def _group_faults(group: str, timeout: float) -> Iterable[str]:
    if not is_group(group):
        yield f"group: {shown(group)} is not that of a group"
    if not is_seconds(timeout):
        yield "timeout: expected a finite number of seconds above 0"


def _is_installed() -> bool:
    """Tell whether there is an SDK, and load none of it."""
    try:
        return find_spec("mcp") is not None
    except ValueError:
        return False


def taken(
    connection: Connection,
    group: str,
    belief: Belief,
    accepted: str | os.PathLike[str] | Mapping[str, Definition] | None,
    select: str | Iterable[str] | None,
    skip: bool,
) -> McpServer:
    """Return what stands at the other end of a connection, with its tools as `from_mcp` says; else it is closed.

    Raises:
        SpecError: With everything about the tools that is wrong.
        PluginError: It can not be asked, or its tools cannot be read in time.
    """
    deadline: float | None = None
    try:
        if accepted is None:
            deadline = monotonic() + connection.seconds
            listing = _listing(connection, group)
        else:
            listing = file.Listing(accepted if isinstance(accepted, Mapping) else file.read(accepted))
        chosen = _selected([*listing.definitions, *listing.faults], group, select)
        skipped = [f"{shown(name)}: {each}" for name in chosen for each in listing.faults.get(name, ())]
        definitions = [listing.definitions[name] for name in chosen if name in listing.definitions]
        tools = tools_of(definitions, group, connection, belief, skipped, deadline)
        if skipped and not skip:
            raise SpecError(f"{SUBJECT} {group}", skipped)
        return McpServer(Toolset(group, tuple(tools)), skipped, listing.definitions, connection)
    except TimeoutError:
        connection.close()
        text = f"its tools could not be read within {connection.seconds:g} s"
        raise PluginError(f"{SUBJECT} {group}", text, code="mcp.start") from None
    except BaseException:
        connection.close()
        raise


def _selected(names: list[str], group: str, select: str | Iterable[str] | None) -> list[str]:
    """Return the names of a server whose tools a pattern matches."""
    if select is None:
        return names
    patterns = [select] if isinstance(select, str) else list(select)
    chosen: set[str] = set()
    for pattern in patterns:
        matches = matching(pattern)
        some = {name for name in names if matches(f"{group}.{word_of(name)}")}
        if not some:
            raise SpecError(f"{SUBJECT} {group}", [f"select: no tool has a name that {shown(pattern)} matches"])
        chosen |= some
    return [name for name in names if name in chosen]


def listed(connection: Connection, group: str) -> file.Definitions:
    """Return what a server says its tools are now; `PluginError` where it can not be asked."""
    return dict(_listing(connection, group).definitions)


def _listing(connection: Connection, group: str) -> file.Listing:
    try:
        found: file.Listing = connection.asked_now(lambda dialogue: dialogue.listing())
    except ToolFailed as error:
        raise PluginError(f"{SUBJECT} {group}", error.text, code=error.code) from error
    return found
