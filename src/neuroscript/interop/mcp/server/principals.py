"""What each principal of a service may do: its policy, its name in audit records, and what its requests share."""

from __future__ import annotations

from typing import Any

import attrs

from neuroscript.interop.http_server import PRINCIPAL
from neuroscript.interop.http_server.principal_store import PrincipalStore
from neuroscript.interop.http_server.principals import Principal
from neuroscript.interop.http_server.scope_policies import ScopePolicies
from neuroscript.interop.mcp.server.client_session import Access, Client
from neuroscript.interop.mcp.server.tool_search import ToolSearch


@attrs.define(eq=False)
class PrincipalAccess:
    """What the requests of one principal share.

    Attributes:
        access: What it may do.
        common: What its requests without a handshake share, after the first one.
    """

    access: Access
    common: Client | None = None


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
        names, has_flow_rules = () if scopes is None else scopes.names, access.policy.has_flow_rules
        self._store = PrincipalStore(self._new_access, names, has_flow_rules=has_flow_rules, code="mcp.refused")

    def access(self, context: Any) -> Access:
        """Return what the sender of a request may do; without a principal, scopes permit nothing.

        Args:
            context: The context of the request, from the SDK.
        """
        principal = _principal(context)
        if not self.are_separate or (principal is None and self.scopes is None):
            return self._access
        return self._store.get(principal or Principal("")).access

    def common(self, context: Any) -> Client | None:
        """Return what the requests of a principal without a handshake share; None if all clients share it.

        Tokens with different scopes share what has been read, because the same user could combine it.
        """
        if self.access(context) is self._access:
            return None
        principal = _principal(context) or Principal("")
        shared = self._store.get(principal)
        if shared.common is None:
            shared.common = shared.access.open(None)
            self._store.share_flow(principal, shared.common.session)
        return shared.common

    def missing_scopes(self, tool: str, principal: Principal) -> tuple[str, ...]:
        """Return the scope that a principal needs for a tool; empty if it has it, or if no scope permits the tool.

        Args:
            tool: The canonical name of the tool.
        """
        if self.scopes is None:
            return ()
        known = self._store.find(principal)
        policy = self.scopes.policy(principal.scopes, self._access.policy) if known is None else known.access.policy
        return () if policy.allowing(tool) else self.scopes.needed(tool, self._access.policy)

    def _new_access(self, principal: Principal) -> PrincipalAccess:
        base = self._access
        policy = base.policy if self.scopes is None else self.scopes.policy(principal.scopes, base.policy)
        search = None if base.search is None else ToolSearch(base.search.above)  # its index has the tools of one policy
        access = Access.of(base.engine, ("*",), base.style, policy, base.name or principal.name, search)
        return PrincipalAccess(access)


def _principal(context: Any) -> Principal | None:
    """Return the principal of a request over HTTP, or None."""
    found: Principal | None = None if context.request is None else context.request.scope.get(PRINCIPAL)
    return found
