"""What each client of the HTTP service may do: the session that its requests share, and the document that it reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.engine.engine import Engine
from neuroscript.engine.session import Session
from neuroscript.interop.http_server.principal_store import PrincipalStore
from neuroscript.interop.http_server.principals import Principal
from neuroscript.interop.http_server.scope_policies import ScopePolicies
from neuroscript.interop.openapi.export import described_specs, is_empty, path_of, to_openapi
from neuroscript.spec.tool_spec import ToolSpec

MAX_DOCUMENTS: Final = 100
"""Maximum number of documents for different scopes that are stored."""

REQUEST_CODE: Final = "openapi.request"
"""The code of a request that is not a call."""


@attrs.frozen(eq=False)
class Offer:
    """The tools at one time.

    Attributes:
        infos: The tools of the session, by whose identity a change is noticed.
        specs: The specs of the tools that can be called, by path.
        document: The document, as JSON.
    """

    infos: Mapping[str, Any]
    specs: Mapping[str, ToolSpec]
    document: bytes


@attrs.define(eq=False)
class Catalog:
    """The tools that a policy permits, and their document.

    Attributes:
        session: A session under this policy, which makes no calls.
        title: The title of the document.
        has_token: Whether requests need a token.
    """

    session: Session
    title: str
    has_token: bool
    _known: Offer | None = None

    def offer(self) -> Offer:
        """Return the tools that can be called now."""
        infos = self.session.infos
        if self._known is None or self._known.infos is not infos:
            specs = {path_of(spec): spec for spec in described_specs(self.session)}
            described = list(specs.values())
            if self.session.spills:  # a large result is then replaced by a string
                described = [
                    spec if is_empty(spec) else attrs.evolve(spec, return_type="any", returns=None)
                    for spec in described
                ]
            document = to_openapi(described, title=self.title, token=self.has_token)
            self._known = Offer(infos, specs, json.dumps(document, ensure_ascii=False).encode())
        return self._known


@attrs.frozen(eq=False)
class Client:
    """One client of the service, or all clients if they are not separate.

    Attributes:
        session: What its requests share; it makes no calls itself.
        catalog: The tools that it may call.
        name: The name of the client in records, or ``""``.
    """

    session: Session
    catalog: Catalog
    name: str = ""


class Clients:
    """The clients of a service.

    Args:
        engine: The engine that runs the calls.
        shared: A session under the policy of the service.
        title: The title of the document.
        has_token: Whether requests need a token.
        are_separate: Whether each principal has its own limits, labels and name in records.
        scopes: What each scope permits, or None if every principal may do everything.

    Attributes:
        all: What all clients together may do.
    """

    def __init__(
        self,
        engine: Engine,
        shared: Session,
        title: str,
        *,
        has_token: bool,
        are_separate: bool,
        scopes: ScopePolicies | None,
    ) -> None:
        self._engine = engine
        self.all = Client(shared, Catalog(shared, title, has_token))
        self._are_separate = are_separate
        self._scopes = scopes
        self._catalogs: dict[frozenset[str], Catalog] = {}
        has_flow_rules = shared.policy.has_flow_rules
        self._names = frozenset() if scopes is None else frozenset(scopes.names)
        self._store = PrincipalStore(self._new_client, self._names, has_flow_rules=has_flow_rules, code=REQUEST_CODE)

    def client(self, principal: Principal | None) -> Client:
        """Return the client that sent a request.

        Raises:
            ToolFailed: There are too many clients, and rules about information flow.
        """
        return self._store.get(principal) if self._are_separate and principal is not None else self.all

    def missing(self, client: Client, principal: Principal | None, path: str) -> tuple[str, ...]:
        """Return the scopes of which a request to a path needs one; empty if it has it, or if no scope permits it."""
        if self._scopes is None or principal is None:
            return ()
        if not self._scopes.permits(principal.scopes):
            return self._scopes.names
        spec = self.all.catalog.offer().specs.get(path)
        if spec is None or client.session.policy.allowing(spec.full_name):
            return ()
        return self._scopes.needed(spec.full_name, self.all.session.policy)

    def _new_client(self, principal: Principal) -> Client:
        """Return a new client, which shares with others the tools, but neither counters nor what has been read."""
        shared, scopes = self.all.session, self._scopes
        policy = shared.policy if scopes is None else scopes.policy(principal.scopes, shared.policy)
        session = self._engine.session(policy=policy, host=shared.host, id=principal.name)
        self._store.share_flow(principal, session)
        return Client(session, self._catalog(session, principal), principal.name)

    def _catalog(self, session: Session, principal: Principal) -> Catalog:
        """Return the catalog of a client, which all clients with the same scopes share."""
        if self._scopes is None:
            return self.all.catalog
        known = frozenset(principal.scopes).intersection(self._scopes.names)
        if known not in self._catalogs:
            if len(self._catalogs) >= MAX_DOCUMENTS:
                del self._catalogs[next(iter(self._catalogs))]
            self._catalogs[known] = Catalog(session, self.all.catalog.title, self.all.catalog.has_token)
        return self._catalogs[known]
