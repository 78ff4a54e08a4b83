"""What the scopes of an access token permit: a policy for each scope, and their sum for a token with several."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from neuroscript.errors import SpecError
from neuroscript.interop.http_server.principals import Refusal
from neuroscript.interop.http_server.protected_resource import ProtectedResource, scope_problems
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.execution_policy import ExecutionPolicy

SUMMED: Final = ("allow", "grants", "preapproved")
"""The fields of a policy that only permit; the sum of several policies has the items of each."""

ScopeTable = Mapping[str, Any] | str | Iterable[str]
"""What a scope permits: fields of an `ExecutionPolicy` by name, or one pattern or several of tools."""


class ScopePolicies:
    """What each scope permits, always within the policy of the service.

    The sum of several scopes permits the tools of each, with the grants of each. Fields that restrict, such as ``deny``
    and ``limits``, all apply.

    Args:
        tables: What each scope permits, as a mapping or as pairs, in which a scope can occur several times.

    Raises:
        SpecError: A scope or a policy is invalid; each problem is listed.

    >>> scopes = ScopePolicies({"notes:read": "notes.read_*", "notes:write": "notes.*"})
    >>> scopes.policy(["notes:read"], ExecutionPolicy()).allow
    ('notes.read_*',)
    """

    def __init__(self, tables: Mapping[str, ScopeTable] | Iterable[tuple[str, ScopeTable]]) -> None:
        pairs = tables.items() if isinstance(tables, Mapping) else tables
        pairs = [*pairs] if isinstance(pairs, Iterable) else [pairs]
        if not all(isinstance(each, tuple) and len(each) == 2 for each in pairs):
            raise SpecError("scopes", ["expected a mapping, or pairs of a scope and what it permits"])
        self._tables = [(scope, _fields(table)) for scope, table in pairs]
        faults = scope_problems(self.names)
        for scope, table in self._tables:
            try:
                ExecutionPolicy().narrowed(**table)  # each field by itself; sums would hide wrong types
            except SpecError as error:
                faults += [f"{quote_untrusted(str(scope))}: {problem}" for problem in error.problems]
        if faults:
            raise SpecError("scopes", faults)

    @property
    def names(self) -> tuple[str, ...]:
        """The scopes, in order."""
        return tuple(dict.fromkeys(scope for scope, _ in self._tables))

    def permits(self, scopes: Collection[str]) -> bool:
        """Return whether one of these scopes permits anything."""
        return any(scope in self.names for scope in scopes)

    def policy(self, scopes: Collection[str], within: ExecutionPolicy) -> ExecutionPolicy:
        """Return what these scopes permit together, within the policy of a service."""
        return combined(within, [table for scope, table in self._tables if scope in scopes])

    def needed(self, tool: str, within: ExecutionPolicy) -> tuple[str, ...]:
        """Return the first scope that permits a tool that the service permits, as a tuple; empty if none does.

        Args:
            tool: Its canonical name.
        """
        if not within.allowing(tool):
            return ()
        found = (scope for scope in self.names if self.policy([scope], within).allowing(tool))
        return tuple(scope for scope, _ in zip(found, range(1)))  # noqa: B905


def missing_scopes(resource: ProtectedResource | None, held: Collection[str], needed: Sequence[str]) -> Refusal:
    """Return the response to a request whose credentials lack scopes.

    Args:
        resource: What clients learn about authorization, or None if they need no access tokens.
        held: The scopes of the credentials.
        needed: The scopes that the request needs.
    """
    if resource is None:
        return Refusal(403, "the credentials lack a scope that is required", 'Bearer error="insufficient_scope"')
    return resource.insufficient_scope([*sorted(resource.held(held)), *needed])


def resource_with_scopes(authenticator: Any, scopes: ScopePolicies | None) -> ProtectedResource | None:
    """Return what clients learn about authorization, with all scopes of a service; None without access tokens."""
    resource: ProtectedResource | None = getattr(authenticator, "protected_resource", None)
    if resource is not None and scopes is not None:
        resource = authenticator.protected_resource = resource.with_scopes(scopes.names)
    return resource


def _fields(table: ScopeTable) -> Mapping[str, Any]:
    """Return the fields of a policy; patterns of tools stand for ``allow``."""
    fields = table if isinstance(table, Mapping) else {"allow": table}
    return {name: _items(each) if name in SUMMED else each for name, each in fields.items()}


def _items(value: object) -> object:
    """Return a string, or what can be iterated, as a tuple; another value is an error of the policy."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, Iterable) else value


def combined(policy: ExecutionPolicy, tables: Sequence[Mapping[str, Any]]) -> ExecutionPolicy:
    """Return the sum of some tables within a policy; without a table, nothing is permitted.

    Args:
        tables: Fields of an `ExecutionPolicy` by name. What a table does not have is as in *policy*; a table without
            ``allow`` permits all tools.

    Raises:
        SpecError: A field is invalid.
    """
    if not tables:
        return policy.narrowed(allow=(), otherwise="refuse")
    summed = {field: _sum(field, policy, tables) for field in SUMMED}
    trusted = any(table.get("trusted", policy.trusted) for table in tables)
    asks = any(table.get("otherwise") == "ask" for table in tables)
    found = policy.narrowed(**summed, trusted=trusted, otherwise="ask" if asks else "refuse")
    for table in tables:
        restricting = {name: each for name, each in table.items() if name not in (*SUMMED, "trusted", "otherwise")}
        if restricting:
            found = found.narrowed(**restricting)
    return found


def _sum(field: str, policy: ExecutionPolicy, tables: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    default = ("*",) if field == "allow" else getattr(policy, field)
    given = (table.get(field, default) for table in tables)
    return tuple(dict.fromkeys(each for items in given for each in items))
