"""Limits on how often something may happen."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Final


class TokenBucket:
    """Permits a number of events per second, and more in a burst.

    Args:
        rate: Events per second.
        burst: Maximum number of events at once.
        clock: Returns seconds.

    >>> bucket = TokenBucket(1.0, 2, clock=lambda: 0.0)
    >>> [bucket.take() for _ in range(3)]
    [True, True, False]
    """

    def __init__(self, rate: float, burst: int, *, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._left = float(burst)
        self._at = clock()

    def take(self) -> bool:
        """Return whether one more event is permitted now, and count it."""
        if not self.has():
            return False
        self._left -= 1
        return True

    def has(self) -> bool:
        """Return whether one more event is permitted now."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left >= 1


MAX_PEERS: Final = 1_000
"""Maximum number of addresses that `PeerBuckets` remembers."""


class PeerBuckets:
    """A bucket for each address, and one for all of them together.

    Args:
        rate: Events per second of one address.
        burst: Maximum number of events of one address at once; all addresses together have ten times as many.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._all = TokenBucket(rate * 10, burst * 10)
        self._peers: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, peer: str) -> bool:
        """Return whether one more event of an address is permitted now, and count it."""
        bucket = self._peers.pop(peer, None) or TokenBucket(self._rate, self._burst)
        self._peers[peer] = bucket
        if len(self._peers) > MAX_PEERS:
            self._peers.popitem(last=False)
        return bucket.take() and self._all.take()

    def has(self, peer: str) -> bool:
        """Return whether one more event of an address is permitted now."""
        bucket = self._peers.get(peer)
        return self._all.has() and (bucket is None or bucket.has())
