"""The areas of the console, in the order of the navigation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from neuroscript.console.approvals.routes import ROUTES as APPROVALS
from neuroscript.console.audit.routes import ROUTES as AUDIT
from neuroscript.console.chat.routes import ROUTES as CHAT
from neuroscript.console.console import Console
from neuroscript.console.health.routes import ROUTES as HEALTH
from neuroscript.console.plans.routes import ROUTES as PLANS
from neuroscript.console.policy.routes import ROUTES as POLICY
from neuroscript.console.tools.routes import ROUTES as TOOLS


@attrs.frozen
class Area:
    """A part of the console with an entry in the navigation.

    Attributes:
        name: The first part of the names of its routes.
        title: Its text in the navigation.
        routes: Its routes; one of them is called ``NAME.index``.
        is_shown: Returns whether a console has it.
    """

    name: str
    title: str
    routes: tuple[Any, ...]
    is_shown: Callable[[Console], bool] = lambda _: True


AREAS: Final = (
    Area("tools", "Tools", TOOLS),
    Area("approvals", "Approvals", APPROVALS),
    Area("chat", "Chat", CHAT, lambda console: console.settings.model is not None),
    Area("audit", "Audit", AUDIT),
    Area("plans", "Plans", PLANS, lambda console: bool(console.settings.plans or console.settings.runs)),
    Area("policy", "Policy", POLICY),
    Area("health", "Health", HEALTH),
)
"""All areas."""
