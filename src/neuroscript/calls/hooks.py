"""The hooks of one engine, flattened: gates that are asked, observers that are told, each a plain function.

Source: contract section 5; design.md, rules 4 and 5; performance.md part 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.values import copied
from neuroscript.errors import PolicyError, Retry, is_interrupt
from neuroscript.io.text import escaped
from neuroscript.policy.execution_policy import Decision
from neuroscript.policy.refusals import fault
from neuroscript.runtime.interfaces import Logger
from neuroscript.runtime.records import PendingCall
from neuroscript.tools.hookspecs import CLOSED, DECIDE, FINISHED, REGISTERED, STARTED, Hook, Plugins

LONGEST: Final = 500
"""How many characters of a hook's sentence a caller is told."""

GONE: Final = Hook("no longer there", "of a call that began before")
"""What stands for the hook of a function that hooks which came since do not hold."""

Function = Callable[..., Any]


class Hooks:
    """The hooks of an engine, as tuples of plain functions in pluggy's order: of plugins given later first.

    Args:
        plugins: Modules and objects that have hooks.

    Attributes:
        plugins: They themselves, in the order in which they were given.
        names: What they are called.
        deciders: What is asked of a call; `refusal` asks them.
        started: What is told when a call begins, with its record.
        finished: What is told when it has ended or was refused, with its record.
        registered: What is told of a new tool, with its `ToolInfo` and its origin.
        closed: What is told when the engine is closed, with the tools that were left behind.

    Raises:
        PluginError: One is no plugin: it has no hook, or one that could never be called as it is meant. All that is
            wrong with it is said.
        SpecError: *plugins* are none, but something else.

    >>> from neuroscript import hookimpl
    >>> class Careful:
    ...     @hookimpl
    ...     def neuroscript_decide(self):
    ...         return "not today"
    >>> hooks = Hooks([Careful()])
    >>> hooks.names, len(hooks.deciders), hooks.started
    (('Careful',), 1, ())
    """

    def __init__(self, plugins: Iterable[object] = ()) -> None:
        self._hooks: dict[int, Hook] = {}
        self._told: dict[Hook, object] = {}
        found = Plugins(plugins)
        self.plugins, self.names = found.given, found.names
        self.deciders = self._functions(found, DECIDE)
        self.started = self._functions(found, STARTED)
        self.finished = self._functions(found, FINISHED)
        self.registered = self._functions(found, REGISTERED)
        self.closed = self._functions(found, CLOSED)

    def __bool__(self) -> bool:
        """Whether there is anybody to ask or to tell; a plugin may bring toolsets alone."""
        return bool(self.deciders or self.started or self.finished or self.registered or self.closed)

    def _functions(self, found: Plugins, name: str) -> tuple[Function, ...]:
        functions = found.of(name)
        self._hooks.update((id(function), hook) for hook, function in functions.items())
        return tuple(functions.values())

    def refusal(self, call: PendingCall) -> PolicyError | None:
        """Return why the first hook refuses a call, or None where each lets it pass.

        A KeyboardInterrupt of the main thread passes; whatever else a hook raises refuses.
        """
        alone = len(self.deciders) == 1
        for decide in self.deciders:
            gate = f"hook {self._hooks[id(decide)].plugin}"
            try:
                refused = _refused(decide(call if alone else _copy(call)), call.tool, gate)
            except BaseException as error:
                if is_interrupt(error):
                    raise
                refused = _raised(error, call.tool, gate)
            if refused is not None:
                return refused
        return None

    def failed(self, function: Function, error: BaseException, logger: Logger) -> str:
        """Log once that a function of `started`, `finished`, `registered` or `closed` has failed.

        Args:
            function: An item of one of these tuples, of this object or of an earlier one.
            error: What it raised; a KeyboardInterrupt of the main thread is raised again.
            logger: The host's; whether it works does not affect the call.

        Returns:
            The hook and its plugin, or ``""`` if a failure of it was logged before.
        """
        if is_interrupt(error):
            raise error
        hook = self._hooks.get(id(function), GONE)
        token = object()
        if self._told.setdefault(hook, token) is not token:
            return ""
        with suppress(Exception):
            sentence = "the hook %s of the plugin %s failed (%s); further failures of it are not logged"
            logger.error(sentence, hook.name, hook.plugin, type_name(error))
        return f"the hook {hook.name} of the plugin {hook.plugin}"


def _copy(call: PendingCall) -> PendingCall:
    """Return the call with a copy of its arguments, so that no hook meets what another made of them."""
    return attrs.evolve(call, arguments={name: copied(value) for name, value in call.arguments.items()})


def _refused(answer: Any, tool: str, gate: str) -> PolicyError | None:
    """Return the refusal that an answer is, if it is one."""
    match answer:
        case None | True:
            return None
        case str():
            return _error(answer, tool, gate)
        case Decision(allowed=True):
            return None
        case Decision(allowed=False) | PolicyError():
            return _error(answer.text, tool, gate, answer.need, answer.retry)
        case _:
            text = f"denied because a check returned {type_name(answer)} ({gate})"
            return PolicyError(text, tool=tool, code="policy.fault", rule=gate)


def _raised(error: BaseException, tool: str, gate: str) -> PolicyError:
    if not isinstance(error, PolicyError):
        return fault(tool, gate, error)
    refused = _error(error.text, tool, gate, error.need, error.retry)
    refused.__cause__ = error
    return refused


def _error(text: object, tool: str, gate: str, need: str = "", retry: Retry | None = None) -> PolicyError:
    sentence = escaped(str.__str__(text)[:LONGEST]).strip() if isinstance(text, str) else ""
    return PolicyError(
        sentence or "is refused by a hook", tool=tool, code="policy.hook", need=need, rule=gate, retry=retry
    )
