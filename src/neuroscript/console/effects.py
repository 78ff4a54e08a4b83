"""Which tools a browser may run: without ``run_effects`` only those that declare that they change nothing.

The policy of the session enforces this, so it also holds for the calls that a tool makes itself.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from neuroscript.policy.tool_policy import EFFECTS, LASTING_EFFECTS, WRITE_EFFECTS, ToolPolicy

if TYPE_CHECKING:
    from neuroscript.console.console import Console
    from neuroscript.console.visitor import Visitor
    from neuroscript.engine.engine import Engine
    from neuroscript.engine.session import Session

HARMLESS_EFFECTS: Final = EFFECTS - LASTING_EFFECTS - WRITE_EFFECTS
"""Effects that change nothing and reach no other machine."""

DESCRIPTIVE_EFFECTS: Final = frozenset({"idempotent"})
"""Effects that say nothing about what a tool does."""


def is_harmless(policy: ToolPolicy) -> bool:
    """Return whether a tool declares that it changes nothing; one without declared effects does not.

    >>> is_harmless(ToolPolicy(effects=("reads",))), is_harmless(ToolPolicy(effects=("reads", "writes")))
    (True, False)
    >>> is_harmless(ToolPolicy())
    False
    """
    effects = frozenset(policy.effects)
    return bool(effects - DESCRIPTIVE_EFFECTS) and effects <= HARMLESS_EFFECTS


def is_held_back(console: Console, policy: ToolPolicy) -> bool:
    """Return whether a console does not run a tool, because it has effects or declares none."""
    return not console.settings.run_effects and not is_harmless(policy)


def harmless_tools(engine: Engine) -> Collection[str]:
    """Return the names of the tools that declare that they change nothing."""
    return tuple(name for name, tool in engine.tools.items() if is_harmless(tool.policy))


def runnable_session(visitor: Visitor, console: Console) -> Session:
    """Return the session with which a browser runs tools.

    Call it anew for each call, chat turn and plan run: it permits the tools that are harmless now, so a tool that is
    registered later is refused until then.
    """
    session = visitor.session
    if console.settings.run_effects:
        return session
    return session.narrowed(allow=harmless_tools(console.engine))
