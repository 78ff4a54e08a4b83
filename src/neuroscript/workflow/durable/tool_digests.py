"""The versions of tools: a worker makes a call only with the version of the tool that the run was checked with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from neuroscript.engine.session import Session
from neuroscript.errors import CallError
from neuroscript.names import canonical
from neuroscript.tools.fingerprints import fingerprint
from neuroscript.workflow.plan.model import Plan


@attrs.frozen
class ToolVersion:
    """A tool by its name, as the plan spells it, and the SHA-256 of its definition; None for any version."""

    tool: str
    digest: str | None


class ToolDigests:
    """The digests of the tools of a session; each is computed once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[str, tuple[Any, str]] = {}

    def of(self, name: str) -> str | None:
        """Return the digest of a tool, or None if the session does not have it or may not call it."""
        if canonical(name) not in self._session.infos:  # a refusal would be in the audit log
            return None
        try:
            tool = self._session._entry(name).pipeline.tool
        except CallError:
            return None
        known = self._known.get(name)
        if known is None or known[0] is not tool:
            known = self._known[name] = (tool, fingerprint(tool))
        return known[1]

    def has(self, version: ToolVersion) -> bool:
        """Return whether the session has a tool in this version."""
        if type(version.tool) is not str or not version.tool:
            return True  # an invalid row; the worker that claims it ends it
        digest = self.of(version.tool)
        return digest is not None and version.digest in (None, digest)

    def of_plan(self, plan: Plan) -> dict[str, str | None]:
        """Return the digest of each tool of a plan, by name."""
        return {name: self.of(name) for name in sorted({node.tool for node in plan.nodes})}


def versions_text(versions: Iterable[ToolVersion]) -> str:
    """Return versions of tools as they are stored."""
    return json.dumps(sorted([each.tool, each.digest or ""] for each in versions))


def has_version(lacking: str | None, version: ToolVersion) -> bool:
    """Return whether a worker may have a version of a tool, according to what it lacks."""
    try:
        missing = json.loads(lacking or "[]")
    except ValueError:
        missing = []
    return type(missing) is not list or [version.tool, version.digest or ""] not in missing


def changed_tools(stored: str | None, current: Mapping[str, str | None]) -> list[str]:
    """Return the tools of a run that have changed since it was checked, in alphabetical order.

    Args:
        stored: The digests that are stored with the run, as JSON; None if it was started by an older version.
    """
    try:
        before = json.loads(stored or "{}")
    except ValueError:
        return []
    return [tool for tool, digest in current.items() if type(before) is dict and before.get(tool, digest) != digest]
