"""The protection of request states: who can read them, for what each is valid, and how often.

The SDK encrypts a state and binds it to the method, the name, the arguments, the client and a time. The server adds the
digests of the policy and of the tool's definition, and records which states have been used.

See MCP 2026-07-28, "Multi Round-Trip Requests", server requirements.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript._imports import missing_extra
from neuroscript.coercion.parameters import SECONDS, Form, as_tuple, object_form, optional, require_fields
from neuroscript.errors import SpecError
from neuroscript.interop.http_server import PRINCIPAL
from neuroscript.interop.http_server.principals import principal_key
from neuroscript.interop.mcp.server.rounds import Round, State, may_repeat
from neuroscript.interop.mcp.server.used_states import UsedStates, UsedStatesInMemory

try:
    from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity, authenticated_principal
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

DEFAULT_STATE_SECONDS: Final = 600.0
"""Time for a user to answer, in seconds."""

MIN_KEY_BYTES: Final = 32
"""Minimum size of a key, in bytes."""

CLOCK_SECONDS: Final = 60.0
"""How much the clocks of servers may differ, in seconds."""

KEYS: Final = Form(
    f"strings or bytes of at least {MIN_KEY_BYTES} bytes",
    lambda keys: type(keys) is tuple and all(type(each) in (str, bytes) for each in keys),
    lambda keys: all(len(_bytes(each)) >= MIN_KEY_BYTES for each in keys),
)
USED: Final = object_form("a record of used states", "claim")


@attrs.frozen(kw_only=True)
class RequestStates:
    """How a server protects the states that clients of protocol 2026-07-28 return with their answers.

    Attributes:
        keys: Secrets of at least 32 bytes. The first one encrypts, and all decrypt. Servers that answer for each other
            need the same keys. Without keys, the server makes one, and refuses the states of every other server.
        used: The record of used states. Without keys, the default is the memory of the process. With keys, the servers
            need a common record; without it, only calls that change nothing can be approved.
        seconds: How long a state is valid, in seconds.

    Raises:
        SpecError: A part is invalid; each problem is listed.
    """

    keys: tuple[str | bytes, ...] = attrs.field(default=(), converter=as_tuple, repr=False)
    used: UsedStates | None = attrs.field(
        default=attrs.Factory(lambda self: None if self.keys else UsedStatesInMemory(), takes_self=True)
    )
    seconds: float = DEFAULT_STATE_SECONDS

    def __attrs_post_init__(self) -> None:
        require_fields("request states", self, keys=KEYS, used=optional(USED), seconds=SECONDS)
        if len({*self.keys}) < len(self.keys):
            raise SpecError("request states", ["keys: two are equal"])

    def boundary(self, name: str) -> RequestStateBoundary:
        """Return the middleware that encrypts and verifies the states of a server.

        Args:
            name: The name of the server; other servers refuse its states even if they have its keys.
        """
        keys = [_bytes(key) for key in self.keys] or [os.urandom(MIN_KEY_BYTES)]
        return RequestStateBoundary(
            RequestStateSecurity(keys=keys, ttl=self.seconds, bind_principal=principal_of), default_audience=name
        )

    def opened(self, params: Any, effects: tuple[str, ...]) -> Round:
        """Return the round of a request, whose state the middleware has verified.

        Args:
            params: The parameters of the request.
            effects: The effects of what it runs.
        """
        state = None if params.request_state is None else State.of(params.request_state)
        answers = params.input_responses or {}
        responses = {
            key: each.model_dump(by_alias=True, mode="json", exclude_none=True) for key, each in answers.items()
        }
        return Round(state, responses, may_repeat(effects), self.used is not None)

    def question(self, round: Round, subject: Mapping[str, str]) -> dict[str, Any]:
        """Return the result that asks the client, whose state the middleware encrypts; see `Round.result`."""
        return round.result(subject, time.time() + self.seconds)

    async def use(self, state: State) -> None:
        """Record that a state is used.

        Raises:
            Exception: An ``MCPError`` of the SDK: it was used before.
        """
        if self.used is None:
            return
        if not await asyncio.to_thread(self.used.claim, state.id, state.expires + CLOCK_SECONDS):
            raise MCPError(INVALID_PARAMS, "requestState was already used", {"reason": "used_request_state"})


def _bytes(key: str | bytes) -> bytes:
    return key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key


def changed(state: State, subject: Mapping[str, str]) -> str:
    """Return the names of the digests that have changed since a state was made, for a message; empty if none has."""
    return ", ".join(name for name, digest in subject.items() if state.subject.get(name) != digest)


def principal_of(context: Any) -> str | None:
    """Return what the states and tasks of a request are bound to: the guard's principal, or that of the SDK."""
    if context.request is None:
        return None
    principal = context.request.scope.get(PRINCIPAL)
    return authenticated_principal(context) if principal is None else principal_key(principal)


def scopes_of(context: Any) -> frozenset[str]:
    """Return the scopes of the token of a request; empty without one."""
    principal = None if context.request is None else context.request.scope.get(PRINCIPAL)
    return frozenset() if principal is None else principal.scopes
