"""The limits of the policy, and how much of each is used."""

from __future__ import annotations

import attrs

from neuroscript.engine.engine import Engine
from neuroscript.engine.session import Session
from neuroscript.policy.counters import format_amount


@attrs.frozen
class LimitRow:
    """One limit.

    Attributes:
        name: Such as ``calls of math.add``.
        used: The current usage.
        most: The limit.
        percent: How much of it is used, from 0 to 100.
        is_shared: Whether all sessions of the engine count; otherwise only this browser does.
    """

    name: str
    used: str
    most: str
    percent: int
    is_shared: bool


def limit_rows(engine: Engine, session: Session) -> list[LimitRow]:
    """Return the limits that count the calls of a session: its own, then those of the engine."""
    if session.ledger is None:
        return []
    shared = 0 if engine.ledger is None else len(engine.ledger.usage)
    rows = session.ledger.usage
    return [
        LimitRow(
            each.name,
            format_amount(each.used),
            format_amount(each.most),
            min(100, int(100 * each.used / each.most)) if each.most else 100,
            index >= len(rows) - shared,
        )
        for index, each in enumerate(rows)
    ]
