"""The areas of the console, in the order of the navigation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from neuroscript.console.approvals.routes import ROUTES as APPROVALS
from neuroscript.console.audit.routes import ROUTES as AUDIT
from neuroscript.console.console import Console
from neuroscript.console.policy.routes import ROUTES as POLICY


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
    Area("approvals", "Approvals", APPROVALS),
    Area("audit", "Audit", AUDIT),
    Area("policy", "Policy", POLICY),
)
"""All areas."""
