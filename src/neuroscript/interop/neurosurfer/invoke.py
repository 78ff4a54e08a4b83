"""Tool calls for neurosurfer agents: validate the inputs, call the tool with retries, and return its response."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from time import sleep
from typing import Any, Final

from neuroscript.calls.steps import END
from neuroscript.coercion.context import type_name
from neuroscript.engine.session import Session
from neuroscript.errors import CallError, HostError, SpecError, ToolFailed
from neuroscript.interop.foreign import message_of
from neuroscript.interop.neurosurfer.base_tool import ToolResponse
from neuroscript.interop.neurosurfer.load import GROUP
from neuroscript.interop.neurosurfer.spec_text import spec_of
from neuroscript.interop.neurosurfer.variables import ANSWER, extra_value, release
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical, to_snake_case

ArgumentRepair = Callable[[str, Mapping[str, Any], ValueError], tuple[str, dict[str, Any]]]
"""Receives a tool, its inputs and the error in them; returns a tool and inputs to use instead."""

DEFAULT_RESPONSE_DATA: Final[Mapping[str, Any]] = {"final_answer": False, "extras": (), "stream": False}
"""The response data of a tool that is not from neurosurfer."""


class Invoker:
    """Calls tools like a neurosurfer agent, in a session whose engine has the tools from `from_neurosurfer`.

    Policy, limits and audit are those of the session. The extras of a call are available to the next call only.

    Args:
        session: An engine or a session; use a separate invoker for each.
        toolkit: A toolkit of this package or of neurosurfer; its current specs apply, as in the session.
        group: The group under which the tools were registered.
        max_tool_errors: Maximum number of retries of a failed tool; failures that only the host can fix are not
            retried.
        backoff_sec: Delay before the first retry in seconds; each further delay is longer by the same amount.
        allow_input_pruning: Drop undeclared inputs instead of rejecting them.
        repair: Called once for invalid inputs, to return others; these are validated too.
        wait: Waits for a number of seconds.

    Raises:
        SpecError: A tool is invalid, or a number is below 0.
    """

    def __init__(
        self,
        session: Session,
        toolkit: Any,
        *,
        group: str = GROUP,
        max_tool_errors: int = 2,
        backoff_sec: float = 0.8,
        allow_input_pruning: bool = True,
        repair: ArgumentRepair | None = None,
        wait: Callable[[float], object] = sleep,
    ) -> None:
        counts = {"max_tool_errors": max_tool_errors, "backoff_sec": backoff_sec}
        faults = [f"{name}: expected 0 or more" for name, each in counts.items() if not each >= 0]
        if faults:
            raise SpecError("Invoker", faults)
        self._session = session
        specs = deepcopy([*map(spec_of, toolkit.registry.values())])
        self._specs = {spec.name: spec for spec in specs}
        self._group = group
        self._max_tool_errors = max_tool_errors
        self._backoff_sec = backoff_sec
        self._allow_input_pruning = allow_input_pruning
        self._repair = repair
        self._wait = wait
        self._extras: frozenset[str] = frozenset()

    def invoke(self, tool: str, inputs: Mapping[str, Any]) -> ToolResponse:
        """Validate the inputs of a tool, call it, and return its response.

        A tool that fails every time gives the response ``[tool:NAME] failed after retries: …``, which is not final. If
        the observation is a generator, the tool continues as it is read, and ends when it is closed.

        Raises:
            ValueError: The tool is unknown, or the inputs are invalid; nothing was called.
            CallError: The call was refused or timed out; neither is retried.
        """
        name, checked = self._checked(tool, inputs)
        for failures in range(1, self._max_tool_errors + 2):
            try:
                return self._called(name, checked)
            except ToolFailed as error:
                failed = error
            if failed.retry == "host":
                break
            if failures <= self._max_tool_errors:
                self._wait(self._backoff_sec * failures)
        return ToolResponse(False, f"[tool:{name}] failed after retries: {self._reason(failed)}")

    def _checked(self, tool: str, inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        try:
            return tool, self._check_inputs(tool, inputs)
        except ValueError as error:
            if self._repair is None:
                raise
            tool, inputs = self._repair(tool, inputs, error)
        return tool, self._check_inputs(tool, inputs)

    def _check_inputs(self, tool: object, inputs: Any) -> dict[str, Any]:
        """Return a copy of the inputs if they are valid; a model may have sent anything."""
        if not isinstance(tool, str):
            raise ValueError(f"Unknown tool of type {type_name(tool)}")
        spec = self._specs.get(tool)
        if spec is None:
            raise ValueError(f"Unknown tool '{quote_untrusted(tool)}'")
        if isinstance(inputs, Mapping):
            known = {each.name for each in spec.inputs}
            inputs = {name: each for name, each in inputs.items() if name in known or not self._allow_input_pruning}
        return spec.check_inputs(inputs)

    def _called(self, tool: str, inputs: dict[str, Any]) -> ToolResponse:
        variables, handles = self._session.memory.variables, self._session.memory.handles
        variables.drop(ANSWER)
        name = f"{self._group}.{to_snake_case(tool)}"
        items = self._session.stream(name, inputs)
        try:
            first = next(items, END)
        except BaseException:
            self._give_up(frozenset(variables.get(ANSWER, DEFAULT_RESPONSE_DATA)["extras"]) - self._extras)
            raise
        data = variables.get(ANSWER, None) or {**DEFAULT_RESPONSE_DATA, "stream": self._gives_items(name)}
        extras = frozenset(data["extras"])
        self._give_up(self._extras - extras)
        self._extras = extras
        given = {name: extra_value(handles, variables.get(name, None)) for name in data["extras"]}
        return ToolResponse(data["final_answer"], _remaining_items(first, items) if data["stream"] else first, given)

    def _gives_items(self, name: str) -> bool:
        """Return whether the session's tool with this name is a stream, for tools that are not from neurosurfer."""
        info = self._session.infos.get(canonical(name))
        return info is not None and info.spec.stream is True

    def _give_up(self, names: frozenset[str]) -> None:
        """Remove these extras, so that no later call receives them."""
        variables, handles = self._session.memory.variables, self._session.memory.handles
        for name in names:
            release(handles, variables.get(name, None))
            variables.drop(name)

    def _reason(self, error: ToolFailed) -> str:
        """Return the original message of a failure without secrets; the host's own agent loop may read it."""
        cause, secrets = error.__cause__, self._session.secrets
        text = error.text
        if cause is not None and not isinstance(cause, (CallError, HostError)):
            text = message_of(cause) or type_name(cause)
        return text if secrets is None else str(secrets.text(text))


def _remaining_items(first: Any, items: Iterator[Any]) -> Iterator[Any]:
    """Yield the items of a stream whose first item was read; closing this generator ends the tool."""
    try:
        if first is not END:
            yield first
            yield from items
    finally:
        items.close()  # type: ignore[attr-defined]
