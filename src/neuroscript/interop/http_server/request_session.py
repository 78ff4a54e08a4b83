"""The session of one request, which has no variables or handles of earlier requests.

Requests share what they have read, because rules about information flow would otherwise never apply.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from neuroscript.coercion.scalars import Handle
from neuroscript.coercion.types import ArgType
from neuroscript.engine.session import Session
from neuroscript.errors import ToolFailed
from neuroscript.runtime.state import Handles, Variables, handle_id
from neuroscript.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from neuroscript.flow.state import SessionFlow


@attrs.frozen
class Stateless:
    """Why a service stores nothing between requests.

    Attributes:
        code: The code of the error if a tool sets a variable or works with handles.
        reason: Why, for its message.
    """

    code: str
    reason: str

    def refuse_handles(self, tool: str) -> ToolFailed:
        """Return the error for a tool that takes or returns handles."""
        return ToolFailed(f"works with handles, but {self.reason}", tool=tool, code=self.code, retry="host")


def request_session(shared: Session, stateless: Stateless, id: str = "") -> Session:
    """Return a session for one request, with the tools, the policy and the counters of another session.

    Args:
        shared: The session that the requests of a client share.
        stateless: Why variables and handles are not stored.
        id: The id in records; by default a random one.
    """
    session = Session(shared._entries, id, host=shared.host, ledger=shared.ledger)
    session.memory.variables = RequestVariables(shared.host.variables, shared.host.constants, stateless)
    session.memory.flow = shared.memory.flow  # a request carries what earlier ones have read
    session.memory.handles = RequestHandles(shared.memory.flow, stateless)
    return session


def session_id(name: str) -> str:
    """Return the id of a new session of a named client, such as ``alice/3f9a1c2b``, or ``""`` for a random one."""
    return f"{name}/{os.urandom(8).hex()}" if name else ""


def uses_handles(spec: ToolSpec) -> bool:
    """Return whether a tool takes or returns handles."""
    return ArgType.HANDLE in (spec.return_type, *(each.type for each in spec.args))


class RequestVariables(Variables):
    """Variables that cannot be set, because they would be lost after the request.

    Args:
        variables: The variables of the host.
        constants: The constants of the host.
        stateless: The error of `set`.
    """

    def __init__(self, variables: Mapping[str, Any], constants: Mapping[str, Any], stateless: Stateless) -> None:
        super().__init__(variables, constants)
        self._stateless = stateless

    def set(self, name: str, value: object) -> None:
        """Raise an error.

        Raises:
            ToolFailed: Always, with the code of a service that stores nothing.
        """
        raise ToolFailed(f"cannot set variables: {self._stateless.reason}", code=self._stateless.code, retry="host")

    def update(self, name: str, change: object) -> Any:
        """Raise the error of `set`."""
        self.set(name, change)


class RequestHandles(Handles):
    """Handles that are released with the request.

    Args:
        flow: What the requests know about information flow, or None.
        stateless: Why handles of earlier requests are unknown.
    """

    def __init__(self, flow: SessionFlow | None, stateless: Stateless) -> None:
        super().__init__()
        self._flow = flow
        self._stateless = stateless

    def get(self, handle: Handle | str, kind: str) -> Any:
        """Return the object that a handle of this request refers to.

        Raises:
            ToolFailed: As for `Handles.get`; the message says that earlier handles have been released.
        """
        if self.kind(handle) is None:
            raise ToolFailed(f"this handle is unknown: {self._stateless.reason}", code="handle.unknown", retry="host")
        return super().get(handle, kind)

    def release(self, handle: Handle | str) -> bool:
        """Release an object and forget its labels, and return whether it was stored."""
        if self._flow is not None:
            self._flow.handles.pop(handle_id(handle), None)
        return super().release(handle)
