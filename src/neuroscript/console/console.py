"""The state of one console: its engine, its settings, and the browsers that are signed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from secrets import token_urlsafe
from time import monotonic
from typing import Any, Final

import attrs
from starlette.requests import HTTPConnection

from neuroscript.config.mcp_servers import ServerTable
from neuroscript.console.inbox import EndedRequest, Inbox
from neuroscript.console.rate_limits import PeerBuckets
from neuroscript.console.users import LOCAL_USER, User
from neuroscript.console.visitor import Visitor, Visitors
from neuroscript.console.work_threads import WorkThreads
from neuroscript.engine.engine import Engine
from neuroscript.runtime.interfaces import AskedModel

LINK_SECONDS: Final = 600.0
"""Seconds for which a link for another browser is valid."""

MAX_LINKS: Final = 20
"""Maximum number of links of one user that wait to be opened."""


@attrs.frozen(kw_only=True)
class Settings:
    """The parameters of `neuroscript.console.app`."""

    run_effects: bool = False
    is_local: bool = True
    users: tuple[User, ...] = ()
    authenticate: Callable[[HTTPConnection], User | None] | None = attrs.field(default=None, repr=False)
    audit: tuple[Path, ...] = ()
    audit_key: bytes | None = attrs.field(default=None, repr=False)
    approvals: Path | None = None
    plans: Path | None = None
    runs: str | None = attrs.field(default=None, repr=False)
    policy_file: Path | None = None
    model: AskedModel | None = attrs.field(default=None, repr=False)
    inbox: Inbox | None = attrs.field(default=None, repr=False)
    checks: Callable[[], Mapping[str, Sequence[Any]]] | None = attrs.field(default=None, repr=False)
    servers: tuple[ServerTable, ...] = attrs.field(default=(), repr=False)
    lock: Path | None = None


@attrs.define(eq=False)
class Console:
    """One console.

    Attributes:
        engine: The engine whose tools it shows.
        settings: How it was created.
        visitors: The browsers that are signed in.
        answered: How suspended calls were answered here, by the names of their files; only the last ones.
        threads: Run tools and jobs that can be slow.
        failures: Counts attempts to sign in that failed, by address.
    """

    engine: Engine
    settings: Settings
    visitors: Visitors = attrs.field(factory=Visitors)
    answered: dict[str, EndedRequest] = attrs.field(factory=dict, repr=False)
    threads: WorkThreads = attrs.field(factory=WorkThreads, repr=False)
    failures: PeerBuckets = attrs.field(factory=lambda: PeerBuckets(0.2, 10), repr=False)
    _links: dict[str, tuple[User, float]] = attrs.field(factory=dict, repr=False)

    def create_link_token(self, user: User = LOCAL_USER, *, seconds: float | None = None) -> str:
        """Return a token with which one browser can sign in once.

        Args:
            seconds: For how long it is valid; None means until it is used.
        """
        token = token_urlsafe(24)
        self._links = {key: each for key, each in self._links.items() if each[1] > monotonic()}
        for oldest in [key for key, each in self._links.items() if each[0] == user][: 1 - MAX_LINKS]:
            del self._links[oldest]
        self._links[token] = user, float("inf") if seconds is None else monotonic() + seconds
        return token

    def use_link(self, token: str) -> User | None:
        """Return the user of a link and make the link invalid; None if it is invalid already."""
        user, until = self._links.pop(token, (None, 0.0))
        return user if until > monotonic() else None

    def sign_in(self, user: User) -> tuple[Visitor, str]:
        """Add a browser of a user, and return it with the value of its cookie."""
        visitor = Visitor(user, self.engine)
        return visitor, self.visitors.add(visitor)
