"""A gateway: the engine with the tools of all servers and toolsets, and one MCP service for each client.

Each client has a service of its own, so that sessions, tasks, request states and limits of two clients never meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from fnmatch import fnmatchcase
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from neuroscript._imports import missing_extra
from neuroscript.config.gateway_file import ClientTable, GatewayFile
from neuroscript.discovery.installed import Distribution, installed_distributions
from neuroscript.engine.engine import Engine
from neuroscript.errors import SpecError
from neuroscript.gateway.servers import Servers
from neuroscript.interop.http_server.addresses import is_loopback
from neuroscript.interop.http_server.principals import (
    BEARER_RULE,
    TOKEN,
    Authenticator,
    FirstOf,
    Principal,
    StaticTokens,
)
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import quote_untrusted
from neuroscript.runtime.host import Host
from neuroscript.runtime.interfaces import Logger
from neuroscript.runtime.secret_forms import MIN_SECRET_CHARS

try:
    from neuroscript.interop.mcp import Service, ask_client, serve
except ImportError as error:
    raise missing_extra("a gateway needs the SDK of MCP", "gateway", error) from None

if TYPE_CHECKING:
    from neuroscript.gateway.metrics import Metrics
    from neuroscript.interop.http_server.access_tokens import JWTAuthenticator

SUBJECT: Final = "gateway"
"""The subject of errors."""

DEFAULT_CLIENT: Final = "client"
"""The name of the only client if a file has no table for it."""

USERS: Final = "users"
"""The name of what users with access tokens are served."""

MIN_TOKEN_CHARS: Final = 16
"""Minimum length of a client's token, in characters, because it must not be guessed."""


@attrs.frozen(eq=False)
class GatewayClient:
    """One client of a gateway.

    Attributes:
        table: Its settings.
        service: What it is served.
    """

    table: ClientTable
    service: Service


class Gateway:
    """The parts of a running gateway; close it, or use it in a ``with`` statement.

    Args:
        file: The settings.
        environ: The environment variables, of which those that the file names as secrets are read.
        logger: The logger of the engine and its servers.

    Attributes:
        file: The settings.
        engine: The engine with all tools.
        servers: The servers.
        clients: The clients, by name.
        metrics: The metrics, or None.
        tokens: Finds out who sends a request; None if no client has a token.
        users: The users with access tokens together, each with what the scopes of its token permit; None without an
            issuer.

    Raises:
        SpecError: With every problem found in the settings.
        AuditError: The audit log cannot be used.
        OSError: The audit log cannot be opened.
        ModuleNotFoundError: The extra ``gateway`` is not installed.
    """

    def __init__(self, file: GatewayFile, environ: Mapping[str, str], logger: Logger | None = None) -> None:
        self.file = file
        tables = file.clients or (ClientTable(DEFAULT_CLIENT),)
        problems = [*_address_problems(file)]
        tokens = {} if file.settings.listen is None else dict(_tokens(tables, environ, problems))
        plugins = _plugins(file.settings.toolsets, problems)
        if problems:
            raise SpecError(SUBJECT, problems)
        access_tokens = _access_tokens(file)
        self.protected_resource = None if access_tokens is None else access_tokens.protected_resource
        static: Authenticator | None = StaticTokens(tokens) if tokens else None
        accepted: list[Authenticator] = [each for each in (static, access_tokens) if each is not None]
        self.tokens = FirstOf(*accepted) if len(accepted) > 1 else next(iter(accepted), None)
        self.metrics: Metrics | None = None
        with ExitStack() as opened:
            self.engine = opened.enter_context(self._engine(environ, logger, plugins))
            problems = [*_group_problems(self.engine, file)]
            if problems:
                raise SpecError(SUBJECT, problems)
            log, accepts_new = self.engine.host.logger_of("gateway"), file.settings.accept == "first"
            self.servers = Servers(self.engine, file.servers, log, accepts_new)
            if file.settings.metrics:
                from neuroscript.gateway.metrics import Metrics

                self.metrics = Metrics(lambda: self.servers.states)
                self.engine.add_hooks(self.metrics)
            named = [each for each in tables if each.token is not None or not each.scopes or access_tokens is None]
            self.clients = {each.name: GatewayClient(each, self._service(each)) for each in named}
            self.users = None if access_tokens is None else GatewayClient(ClientTable(USERS), self._users_service())
            opened.callback(self.servers.close)
            self.servers.start()
            self._opened = opened.pop_all()

    def _engine(self, environ: Mapping[str, str], logger: Logger | None, plugins: Mapping[str, Any]) -> Engine:
        settings = self.file.settings
        names = {name for each in self.file.servers for name in each.secrets}
        secrets = {name: environ[name] for name in names if len(environ.get(name, "")) >= MIN_SECRET_CHARS}
        host = Host(secrets=secrets, logger=logger, sandbox_dir=settings.sandbox or None)
        policy = attrs.evolve(self.file.policy, approver=ask_client)
        return Engine(policy=policy, host=host, audit=settings.audit or (), **plugins)

    def _service(self, table: ClientTable) -> Service:
        settings = self.file.settings
        return serve(
            self.engine,
            name=settings.name,
            names=settings.names,
            policy=self.engine.policy.narrowed(**table.changes),
            client=table.name,
            instructions=settings.instructions,
            search_above=settings.search_above,
        )

    def _users_service(self) -> Service:
        """Return what users with access tokens are served; what one does is unknown to the others."""
        settings = self.file.settings
        service = serve(
            self.engine,
            name=settings.name,
            names=settings.names,
            instructions=settings.instructions,
            search_above=settings.search_above,
            scopes=[(scope, each.changes) for each in self.file.clients for scope in each.scopes],
        )
        if self.protected_resource is not None and service.principals.scopes is not None:
            self.protected_resource = self.protected_resource.with_scopes(service.principals.scopes.names)
        return service

    def client_of(self, principal: Principal | None) -> GatewayClient | None:
        """Return the client that sent a request, or None.

        Args:
            principal: Who sent it; None if no client has a token.
        """
        if principal is None:
            return next(iter(self.clients.values())) if self.tokens is None and len(self.clients) == 1 else None
        return self.clients.get(principal.name, self.users)

    def close(self) -> None:
        """End the servers, and close the engine."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


# Problems of the settings that depend on the machine


def _address_problems(file: GatewayFile) -> Iterator[str]:
    """Yield the problems of clients without tokens."""
    listen = file.settings.listen
    if listen is None:
        return
    if not file.clients and not is_loopback(listen[0]):
        yield "gateway.listen: other machines can reach this address; add a table [client.NAME] with a token"
    for each in file.clients:
        is_known = each.token is not None or (each.scopes and file.settings.issuer)
        if not is_known and (len(file.clients) > 1 or not is_loopback(listen[0])):
            yield f"client.{each.name}: needs a token, because other clients or machines can reach the gateway"


def _access_tokens(file: GatewayFile) -> JWTAuthenticator | None:
    """Return what verifies the access tokens of an issuer, or None."""
    settings = file.settings
    if not settings.issuer:
        return None
    from neuroscript.interop.http_server.access_tokens import JWTAuthenticator

    scopes = [scope for each in file.clients for scope in each.scopes]
    return JWTAuthenticator(issuer=settings.issuer, audience=settings.audience, scopes=scopes)


def _tokens(
    tables: Iterable[ClientTable], environ: Mapping[str, str], problems: list[str]
) -> Iterator[tuple[str, Principal]]:
    """Yield the tokens of clients with their principals, and note every problem; no text contains a token."""
    owners: dict[str, str] = {}
    for each in tables:
        if each.token is None:
            continue
        place, variable = f"client.{each.name}.token", quote_untrusted(each.token.name)
        token = environ.get(each.token.name, "").strip()
        if not token:
            problems.append(f"{place}: the environment variable {variable} is not set, or is empty")
        elif len(token) < MIN_TOKEN_CHARS:
            problems.append(f"{place}: {variable} has fewer than {MIN_TOKEN_CHARS} characters")
        elif not TOKEN.fullmatch(token):
            problems.append(f"{place}: {variable}: {BEARER_RULE}")
        elif owners.setdefault(token, each.name) != each.name:
            problems.append(f"{place}: {variable} has the same value as the token of {owners[token]}")
        else:
            yield token, Principal(each.name, frozenset(each.scopes))


def _plugins(patterns: tuple[str, ...], problems: list[str]) -> dict[str, Any]:
    """Return the keyword arguments of an engine that load the installed entry points with matching names."""
    if not patterns:
        return {"plugins": "none"}
    found = installed_distributions()
    names = {entry.name for each in found for entry in each.entry_points}
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            hint = did_you_mean(pattern, names)
            problems.append(f"gateway.toolsets: no installed entry point matches {quote_untrusted(pattern)}{hint}")

    def is_wanted(name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    def has_wanted(each: Distribution) -> bool:
        return any(is_wanted(entry.name) for entry in each.entry_points)

    return {
        "plugins": [each.name for each in found if has_wanted(each)] or "none",
        "without": sorted(name for name in names if not is_wanted(name)),
    }


def _group_problems(engine: Engine, file: GatewayFile) -> Iterator[str]:
    """Yield the servers whose group belongs to an installed toolset, to whose tools rules about the group apply."""
    taken = {name.rpartition(".")[0] for name in engine.tools}
    for each in file.servers:
        if each.group in taken:
            group = quote_untrusted(each.group)
            yield f"mcp.{each.name}: {group} is the group of an installed toolset; set another group"
