"""Browsers that are signed in: each has its own engine session and activities, and is known by a cookie."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from hashlib import sha256
from secrets import token_urlsafe
from time import monotonic
from typing import Final, TypeVar

import attrs

from neuroscript.console.activities import Activities
from neuroscript.console.caller_host import caller_host
from neuroscript.console.rate_limits import TokenBucket
from neuroscript.console.users import User
from neuroscript.engine.engine import Engine
from neuroscript.engine.session import Session

IDLE_SECONDS: Final = 8 * 3600.0
"""Seconds without a request after which a browser must sign in again."""

MAX_VISITORS: Final = 200
"""Maximum number of browsers. For a new one, the user with the most browsers loses the one that was idle longest."""

ACTIONS_PER_SECOND: Final = 20.0
"""Requests per second of one browser that may change something."""

MAX_ACTIONS: Final = 100
"""Maximum number of such requests in a burst."""


MAX_STREAMS: Final = 50
"""Maximum number of event streams of one browser, which opens at most six to one address."""

T = TypeVar("T")


@attrs.define(eq=False)
class Visitor:
    """One browser that is signed in.

    Attributes:
        user: Who has signed in.
        id: A name of the browser that is not a secret; audit records contain it as the id of the session.
        csrf: The token that each form of this browser must contain.
        theme: The theme that the user has chosen: ``light``, ``dark``, or ``""`` for that of the system.
        activities: The work that this browser has started.
        streams: The number of event streams that it receives.
    """

    user: User
    engine: Engine = attrs.field(repr=False)
    id: str = attrs.field(factory=lambda: f"web-{token_urlsafe(6)}")
    csrf: str = attrs.field(factory=lambda: token_urlsafe(24), repr=False)
    theme: str = ""
    activities: Activities = attrs.field(factory=Activities)
    bucket: TokenBucket = attrs.field(factory=lambda: TokenBucket(ACTIONS_PER_SECOND, MAX_ACTIONS), repr=False)
    last_seen: float = attrs.field(factory=monotonic)
    streams: int = 0
    _session: Session | None = attrs.field(default=None, init=False, repr=False)

    @property
    def session(self) -> Session:
        """The engine session of this browser, with its own variables and limits."""
        if self._session is None or self._session.is_closed:
            self._session = self.engine.session(id=self.id, host=caller_host(self.engine.host))
        return self._session

    async def counted(self, events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """Yield the events of a stream, which is counted meanwhile."""
        self.streams += 1
        try:
            async with aclosing(events):
                async for each in events:
                    yield each
        finally:
            self.streams -= 1

    def close(self) -> None:
        """Cancel the activities, and close the engine session."""
        self.activities.close()
        if self._session is not None:
            self._session.close()


class Visitors:
    """The browsers that are signed in, by the digest of their cookie."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Visitor] = OrderedDict()

    def __iter__(self) -> Iterator[Visitor]:
        return iter(tuple(self._known.values()))

    def add(self, visitor: Visitor) -> str:
        """Add a browser, and return the value of its cookie."""
        cookie = token_urlsafe(32)
        while len(self._known) >= MAX_VISITORS:
            self.remove(self._superfluous())
        self._known[_digest(cookie)] = visitor
        return cookie

    def _superfluous(self) -> Visitor:
        """Return the browser to sign out, so that a user who signs in again and again signs out no other user."""
        ((busiest, _),) = Counter(each.user for each in self).most_common(1)
        return next(each for each in self if each.user == busiest)

    def find(self, cookie: str) -> Visitor | None:
        """Return the browser with a cookie, or None if it is unknown or was idle for too long."""
        key = _digest(cookie)
        visitor = self._known.get(key)
        if visitor is None:
            return None
        now = monotonic()
        if now - visitor.last_seen > IDLE_SECONDS:
            self.remove(visitor)
            return None
        visitor.last_seen = now
        self._known.move_to_end(key)
        return visitor

    def remove(self, visitor: Visitor) -> None:
        """Sign a browser out, and cancel its activities."""
        for key in [key for key, each in self._known.items() if each is visitor]:
            del self._known[key]
        visitor.close()

    def close(self) -> None:
        """Sign all browsers out."""
        for visitor in self:
            self.remove(visitor)


def _digest(cookie: str) -> str:
    return sha256(cookie.encode("utf-8", "replace")).hexdigest()
