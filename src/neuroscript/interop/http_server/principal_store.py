"""What the requests of each principal share, bounded in number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from neuroscript.errors import ToolFailed
from neuroscript.interop.http_server.principals import Principal, principal_key

if TYPE_CHECKING:
    from neuroscript.engine.session import Session
    from neuroscript.flow.state import SessionFlow

MAX_PRINCIPALS: Final = 10_000
"""Maximum number of principals, with different scopes each, whose shared state is stored."""

Key = tuple[str, frozenset[str]]
"""A principal, and those scopes of its credentials that permit something."""

Shared = TypeVar("Shared")


class PrincipalStore(Generic[Shared]):
    """What the requests of each principal share. Credentials with other scopes share only what has been read.

    Args:
        make: Returns what the requests of a new principal share.
        scopes: The scopes that permit something; others change nothing, and would multiply the limits of a principal.
        has_flow_rules: Whether there are rules about information flow, which need what every principal has read.
        code: The code of the error if there are too many principals.
    """

    def __init__(
        self, make: Callable[[Principal], Shared], scopes: Iterable[str], *, has_flow_rules: bool, code: str
    ) -> None:
        self._make = make
        self._scopes = frozenset(scopes)
        self._has_flow_rules = has_flow_rules
        self._code = code
        self._shared: dict[Key, Shared] = {}
        self._flows: dict[str, SessionFlow] = {}

    def find(self, principal: Principal) -> Shared | None:
        """Return what the requests of a known principal share, or None."""
        return self._shared.get(self._key(principal))

    def get(self, principal: Principal) -> Shared:
        """Return what the requests of a principal share.

        Raises:
            ToolFailed: There are too many principals, and rules about information flow.
        """
        key = self._key(principal)
        found = self._shared.get(key)
        if found is None:
            self._make_room()
            found = self._shared[key] = self._make(principal)
        return found

    def share_flow(self, principal: Principal, session: Session) -> None:
        """Let a session share what all sessions of a principal have read, because the same user could combine it."""
        if session.memory.flow is not None:
            session.memory.flow = self._flows.setdefault(principal_key(principal), session.memory.flow)

    def _make_room(self) -> None:
        """Forget the principal that came first if there are too many.

        Raises:
            ToolFailed: There are rules about information flow.
        """
        if len(self._shared) < MAX_PRINCIPALS:
            return
        if self._has_flow_rules or self._flows:
            raise ToolFailed("the server has too many clients", code=self._code, retry="host")
        del self._shared[next(iter(self._shared))]

    def _key(self, principal: Principal) -> Key:
        return principal_key(principal), principal.scopes & self._scopes
