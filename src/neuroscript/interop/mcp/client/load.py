"""Load the tools of an MCP server as a toolset, and check them against the definitions that the host has accepted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from time import monotonic
from types import TracebackType
from typing import Final, Literal, Self

from neuroscript._imports import install_hint
from neuroscript.config.mcp_servers import SECONDS, access_problems, is_count, is_group, is_seconds
from neuroscript.config.oauth import OAuth as OAuth  # for the public names of the package
from neuroscript.errors import UNSET, PluginError, SpecError, ToolFailed, Unset
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS
from neuroscript.interop.mcp.client import accepted_definitions as file
from neuroscript.interop.mcp.client.accepted_definitions import Definition, Difference
from neuroscript.interop.mcp.client.connection import Connection, Openings
from neuroscript.interop.mcp.client.definition import Trust, tools_of
from neuroscript.interop.mcp.client.location import (
    Access,
    AnswerSettings,
    Location,
    location_problems,
    oauth_problems,
    resolve_client_secret,
    resolve_secrets,
    secret_headers,
)
from neuroscript.interop.mcp.client.resources import RemotePrompts, RemoteResources, resource_tools
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical, to_snake_case
from neuroscript.runtime.redaction import Redactor
from neuroscript.runtime.secret_forms import MIN_SECRET_CHARS
from neuroscript.runtime.secret_set import SecretSet
from neuroscript.tools.derived import name_matcher
from neuroscript.tools.hookspecs import hookimpl
from neuroscript.tools.injection_sources import Secret
from neuroscript.tools.toolset import Toolset

SUBJECT: Final = "mcp"
"""The subject of errors, before the group."""


class McpServer:
    """An MCP server; also a plugin that adds its tools to an engine and ends with it.

    `from_mcp` creates it. It is closed by `close`, by ``with``, or together with the engine it is a plugin of.

    Attributes:
        toolset: The loaded tools.
        skipped: Why other tools were left out.
        definitions: The accepted definitions, by name on the server.
    """

    def __init__(
        self, toolset: Toolset, skipped: Sequence[str], definitions: file.Definitions, connection: Connection
    ) -> None:
        self.toolset = toolset
        self.skipped = tuple(skipped)
        self.definitions = dict(definitions)
        self._connection = connection

    def connect(self) -> None:
        """Open the connection now, if it is not open.

        Raises:
            PluginError: ``mcp.start``: it cannot be opened.
        """
        list_definitions(self._connection, self.toolset.name)

    def start(self) -> None:
        """Start to open the connection if it is not open, without waiting for it.

        Raises:
            ToolFailed: It must not be opened now.
        """
        self._connection.open()

    @property
    def offered(self) -> file.Definitions:
        """The current definitions by name on the server; raises a `PluginError` if the server cannot be reached."""
        return list_definitions(self._connection, self.toolset.name)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """How the server differs from what was accepted; raises a `PluginError` if it cannot be reached."""
        return file.differences(self.definitions, self.offered)

    def accept(self, path: str | os.PathLike[str]) -> tuple[Difference, ...]:
        """Write the server's current definitions to a file as accepted, and return what has changed.

        The tools of this object do not change; pass the file to `from_mcp` as ``accepted`` to load the new ones.

        Raises:
            PluginError: The server cannot be reached.
            OSError: The file cannot be written.
        """
        now = self.offered
        file.write(path, now)
        return file.differences(self.definitions, now)

    @property
    def resources(self) -> RemoteResources:
        """The resources of the server, for the host itself."""
        return RemoteResources(self._connection, self.toolset.name)

    @property
    def prompts(self) -> RemotePrompts:
        """The prompts of the server, for the host itself."""
        return RemotePrompts(self._connection, self.toolset.name)

    def close(self) -> None:
        """End the connection; its child process, thread and descriptors are gone when this returns."""
        self._connection.close()

    @hookimpl
    def neuroscript_toolsets(self) -> Iterable[Toolset]:
        """Add the tools to an engine."""
        return [self.toolset]

    @hookimpl
    def neuroscript_engine_closed(self) -> None:
        """End the connection when the engine is closed."""
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
    formats: bool = False,
    confine: bool = False,
    read: Iterable[str | os.PathLike[str]] = (),
    write: Iterable[str | os.PathLike[str]] = (),
    network: bool = False,
    roots: bool = False,
    sampling: bool = False,
    auth: object | None = None,
    oauth: OAuth | bool = False,
    resources: Literal["tools"] | None = None,
    description_chars: int | Unset | None = UNSET,
    openings: Openings | None = None,
) -> McpServer:
    """Return the tools of an MCP server, which is started as a program or reached over HTTP.

    With *accepted*, the server is started or reached at the first call. Without it, the server is asked for its tools
    now, and these definitions remain in use.

    Args:
        command: The program and its arguments; no shell interprets them.
        url: The URL of a streamable HTTP server, in place of a command.
        group: The group of the tools, and the name of the server in the capability ``mcp:call:GROUP/TOOL``.
        env: Environment variables for the program in addition to ``HOME``, ``LOGNAME``, ``PATH``, ``SHELL``, ``TERM``
            and ``USER``; a `Secret` is replaced by the value in *secrets*.
        headers: Headers for each request; a `Secret` is replaced in the same way.
        secrets: The values of the host's secrets, by name.
        cwd: The working directory of the program.
        plain_http: Permit sending secrets to another machine unencrypted: headers with a `Secret`, and the headers
            ``Authorization``, ``Cookie`` and ``Proxy-Authorization``.
        trusted: Call the tools without approval.
        trust_annotations: Accept the server's annotations about the effects of its tools; tools that are annotated as
            read-only then need no approval.
        select: Patterns of the tools to load, such as ``files.read_*``. None loads all.
        skip: Leave out tools that cannot be loaded; ``skipped`` contains the reasons.
        accepted: A file that `McpServer.accept` wrote, or definitions by name on the server. Only these tools are
            loaded, and a call fails if the server's definition differs.
        timeout: Timeout of a call, and of opening the connection, in seconds.
        formats: Check the standard formats of strings in the server's schemas, such as ``date-time``. The string itself
            is sent unchanged.
        confine: Run the program confined. Its environment is *env* alone, and all that it starts ends with it.
        read: Files and directories that a confined program may read, besides itself and the software of the system.
        write: Files and directories that a confined program may read, write and delete.
        network: Whether a confined program may use the network.
        roots: Send the server the directory of the sandbox when it asks for it during a call.
        sampling: Let the server use the host's model during a call; the tools then need ``model:use``.
        auth: An ``httpx2.Auth`` that authorizes each request to the URL, such as the SDK's ``OAuthClientProvider``.
        oauth: Authorize each request to the URL with the access token of an earlier `login`, or with one for a machine;
            True stands for ``OAuth()``. A `Secret` in it is replaced by the value in *secrets*.
        resources: ``"tools"`` adds tools that list and read the resources and prompts of the server:
            ``list_resources``, ``list_resource_templates``, ``read_resource``, ``list_prompts`` and ``get_prompt``.
            They need ``mcp:read:GROUP/resources`` or ``mcp:read:GROUP/prompts``.
        description_chars: The maximum length of a description that models read, in characters; it is then on one line.
            None for complete descriptions with their lines. The default is None with *accepted*, and 1,000 without it.
        openings: Decides when the server may be started or reached again; by default five times a minute.

    Raises:
        SpecError: With every problem found in the arguments, or in the tools. A server whose definitions contain a
            secret it received is rejected.
        PluginError: ``mcp.start``: the server cannot be reached, or its tools cannot be read within *timeout*.
            ``mcp.login``: it requires a login.
    """
    word = canonical(group)
    exposed = [] if plain_http else [*secret_headers(headers or {}), *(["Authorization"] if auth or oauth else [])]
    access = Access(tuple(os.fspath(each) for each in read), tuple(os.fspath(each) for each in write), network)
    faults = [*location_problems(command, url, exposed), *_group_faults(word, timeout)]
    if auth is not None and (command or not callable(getattr(auth, "async_auth_flow", None))):
        faults.append("auth: expected an httpx2.Auth, with a url")
    settings = OAuth() if oauth is True else oauth or None
    faults += oauth_problems(settings, url, headers or {}, auth)
    if resources not in (None, "tools"):
        faults.append("resources: expected 'tools' or None")
    if description_chars not in (None, UNSET) and not is_count(description_chars):
        faults.append("description_chars: expected a positive integer")
    faults += access_problems(url, {"confine": confine, "read": access.read, "write": access.write, "network": network})
    taken_env, taken_headers = (
        resolve_secrets(name, settings or {}, secrets or {}, faults)
        for name, settings in (("env", env), ("headers", headers))
    )
    if settings is not None:
        settings = resolve_client_secret(settings, secrets or {}, faults)
    if faults:
        raise SpecError(SUBJECT, faults)
    if not _is_installed():
        raise SpecError(SUBJECT, [f"the MCP SDK is not installed; install it with: {install_hint('mcp')}"])
    place = Location(
        tuple(command),
        url,
        taken_env,
        taken_headers,
        None if cwd is None else os.fspath(cwd),
        AnswerSettings(word, roots, sampling),
        access if confine else None,
        auth,
        settings,
    )
    connection = Connection(place.dialogue, timeout, openings)
    if description_chars is UNSET:
        description_chars = MAX_DESCRIPTION_CHARS if accepted is None else None
    trust = Trust(trusted, trust_annotations, formats, sampling, description_chars)
    server = load_tools(connection, word, trust, accepted, select, skip, resources == "tools")
    values = (*(env or {}).values(), *(headers or {}).values())
    told = [
        *_definitions_with_secrets(
            server.definitions, [(secrets or {})[each.name] for each in values if isinstance(each, Secret)]
        )
    ]
    if told:
        server.close()
        raise SpecError(f"{SUBJECT} {word}", told)
    return server


def _definitions_with_secrets(definitions: file.Definitions, secrets: Iterable[str]) -> Iterable[str]:
    """Yield the definitions that contain a secret the server received, because models would read it."""
    received = SecretSet()
    for secret in secrets:
        if len(secret) >= MIN_SECRET_CHARS:
            received.add(secret)
    known = Redactor(received)
    for name, each in definitions.items():
        if known.plain(dict(each.data)) != each.data:
            yield f"{known.text(quote_untrusted(name))}: contains a secret that was passed to the server"


def group_of(group: str, timeout: float) -> str:
    """Return the canonical group of a server's tools, or raise a `SpecError` if it or the timeout is invalid."""
    word = canonical(group)
    faults = list(_group_faults(word, timeout))
    if faults:
        raise SpecError(SUBJECT, faults)
    return word


def _group_faults(group: str, timeout: float) -> Iterable[str]:
    if not is_group(group):
        yield f"group: {quote_untrusted(group)} is not a valid group name"
    if not is_seconds(timeout):
        yield "timeout: expected a positive, finite number of seconds"


def _is_installed() -> bool:
    """Return whether the SDK is installed, without importing it."""
    try:
        return find_spec("mcp") is not None
    except ValueError:
        return False


def load_tools(
    connection: Connection,
    group: str,
    belief: Trust,
    accepted: str | os.PathLike[str] | Mapping[str, Definition] | None,
    select: str | Iterable[str] | None,
    skip: bool,
    adds_resources: bool = False,
) -> McpServer:
    """Return the server at the other end of a connection, with the tools chosen as in `from_mcp`; close it on an error.

    Args:
        adds_resources: Whether to add the tools for resources and prompts.

    Raises:
        SpecError: With every problem found in the tools.
        PluginError: The server cannot be reached, or its tools cannot be read in time.
    """
    deadline: float | None = None
    try:
        if accepted is None:
            deadline = monotonic() + connection.seconds
            listing = _listing(connection, group)
        else:
            listing = file.Listing(accepted if isinstance(accepted, Mapping) else file.read(accepted))
        chosen = _selected([*listing.definitions, *listing.faults], group, select)
        skipped = [f"{quote_untrusted(name)}: {each}" for name in chosen for each in listing.faults.get(name, ())]
        definitions = [listing.definitions[name] for name in chosen if name in listing.definitions]
        tools = tools_of(definitions, group, connection, belief, skipped, deadline)
        if adds_resources:
            taken = {each.name for each in tools}
            added = resource_tools(connection, group, belief.trusted)
            tools += [each for each in added if each.name not in taken]
            skipped += [f"{each.name}: is the name of a tool of the server" for each in added if each.name in taken]
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
    """Return the names on the server of the tools that a pattern matches."""
    if select is None:
        return names
    patterns = [select] if isinstance(select, str) else list(select)
    chosen: set[str] = set()
    for pattern in patterns:
        matches = name_matcher(pattern)
        some = {name for name in names if matches(f"{group}.{to_snake_case(name)}")}
        if not some:
            raise SpecError(f"{SUBJECT} {group}", [f"select: no tool matches {quote_untrusted(pattern)}"])
        chosen |= some
    return [name for name in names if name in chosen]


def list_definitions(connection: Connection, group: str) -> file.Definitions:
    """Return the current definitions of a server, or raise a `PluginError` if it cannot be reached."""
    return dict(_listing(connection, group).definitions)


def _listing(connection: Connection, group: str) -> file.Listing:
    try:
        found: file.Listing = connection.asked_now(lambda dialogue: dialogue.listing())
    except ToolFailed as error:
        raise PluginError(f"{SUBJECT} {group}", error.text, code=error.code) from error
    return found
