"""Files of the sandbox to suggest for arguments that are paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from neuroscript.engine.session import Session
from neuroscript.errors import NeuroScriptError, PolicyError
from neuroscript.policy.capabilities import Capability
from neuroscript.policy.templates import named_in
from neuroscript.policy.tool_policy import ToolPolicy

MAX_FILES: Final = 100
MAX_DIRECTORIES: Final = 20


def path_suggestions(session: Session, policy: ToolPolicy) -> Callable[[str], Sequence[str]]:
    """Return a function that returns the files to suggest for the argument with a name.

    Only files that the policy of the session lets a tool read are listed.
    """
    needs = [need for need in policy.capabilities if need.startswith("fs:")]
    names = frozenset(name.partition(".")[0] for need in needs for name in named_in(need))
    found: list[str] | None = None

    def suggest(argument: str) -> Sequence[str]:
        nonlocal found
        if argument not in names:
            return ()
        if found is None:
            found = _files(session)
        return found

    return suggest


def _files(session: Session) -> list[str]:
    def may(verb: str, path: str) -> None:
        if session.policy.uncovered_need((Capability.literal("fs", verb, path),)) is not None:
            raise PolicyError("is not granted", need=f"fs:{verb}")

    found: list[str] = []
    waiting, seen = [""], 0
    try:
        files = session.sandbox.files(may, lambda what, amount: None)
        while waiting and len(found) < MAX_FILES and seen < MAX_DIRECTORIES:
            seen += 1
            try:
                entries = files.list(waiting.pop(0))
            except NeuroScriptError:  # it may not be read, or was deleted meanwhile
                continue
            for entry in entries:
                if entry.is_dir:
                    waiting.append(entry.path)
                else:
                    found.append(entry.path)
    except (NeuroScriptError, OSError):  # there is no sandbox
        return []
    return found[:MAX_FILES]
