"""What each principal of a service may do: its policy, its name in audit records, and what its requests share."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.errors import ToolFailed
from neuroscript.interop.http_server import PRINCIPAL
from neuroscript.interop.http_server.principals import Principal
from neuroscript.interop.http_server.scope_policies import ScopePolicies
from neuroscript.interop.mcp.server.client_session import Access, Client
from neuroscript.interop.mcp.server.request_states import principal_key
from neuroscript.interop.mcp.server.tool_search import ToolSearch

MAX_PRINCIPALS: Final = 10_000
"""Maximum number of principals, with different scopes each, whose shared state is stored."""

Key = tuple[str, frozenset[str]]
"""A principal, and those scopes of its token that permit something."""


class Principals:
    """The access of each principal to a service.

    Args:
        access: What all clients together may do.
        scopes: What each scope permits, or None if every principal may do everything.

    Attributes:
        scopes: The same.
        are_separate: Whether principals have sessions and names of their own. Otherwise, all clients are one.
    """

    def __init__(self, access: Access, scopes: ScopePolicies | None) -> None:
        self.scopes = scopes
        self.are_separate = scopes is not None
        self._access = access
        self._accesses: dict[Key, Access] = {}
        self._common: dict[Key, Client] = {}
        self._flows: dict[str, Any] = {}

    def access(self, context: Any) -> Access:
        """Return what the sender of a request may do; without a principal, scopes permit nothing.

        Args:
            context: The context of the request, from the SDK.
        """
        principal = _principal(context)
        if not self.are_separate or (principal is None and self.scopes is None):
            return self._access
        principal = principal or Principal("")
        key = self._key(principal)
        if key not in self._accesses:
            self._make_room()
            self._accesses[key] = self._new_access(principal)
        return self._accesses[key]

    def common(self, context: Any) -> Client | None:
        """Return what the requests of a principal without a handshake share; None if all clients share it.

        Tokens with different scopes share what has been read, because the same user could combine it.
        """
        access = self.access(context)
        if access is self._access:
            return None
        principal = _principal(context) or Principal("")
        key = self._key(principal)
        client = self._common.get(key)
        if client is None:
            client = self._common[key] = access.open(None)
            client.session.memory.flow = self._flows.setdefault(key[0], client.session.memory.flow)
        return client

    def missing_scopes(self, tool: str, principal: Principal) -> tuple[str, ...]:
        """Return the scope that a principal needs for a tool; empty if it has it, or if no scope permits the tool.

        Args:
            tool: The canonical name of the tool.
        """
        if self.scopes is None:
            return ()
        known = self._accesses.get(self._key(principal))
        policy = self.scopes.policy(principal.scopes, self._access.policy) if known is None else known.policy
        return () if policy.allowing(tool) else self.scopes.needed(tool, self._access.policy)

    def _key(self, principal: Principal) -> Key:
        """Return what a principal shares; other scopes change nothing, and would multiply its limits."""
        known = () if self.scopes is None else self.scopes.names
        return principal_key(principal), principal.scopes.intersection(known)

    def _new_access(self, principal: Principal) -> Access:
        base = self._access
        policy = base.policy if self.scopes is None else self.scopes.policy(principal.scopes, base.policy)
        search = None if base.search is None else ToolSearch(base.search.above)  # its index has the tools of one policy
        return Access.of(base.engine, ("*",), base.style, policy, base.name or principal.name, search)

    def _make_room(self) -> None:
        """Forget the principal that came first if there are too many.

        Raises:
            ToolFailed: There are rules about information flow, which need what every principal has read.
        """
        if len(self._accesses) < MAX_PRINCIPALS:
            return
        if self._access.policy.has_flow_rules:
            raise ToolFailed("the server has too many clients", code="mcp.refused", retry="host")
        oldest = next(iter(self._accesses))
        del self._accesses[oldest]
        self._common.pop(oldest, None)
        self._flows.pop(oldest[0], None)


def _principal(context: Any) -> Principal | None:
    """Return the principal of a request over HTTP, or None."""
    found: Principal | None = None if context.request is None else context.request.scope.get(PRINCIPAL)
    return found
