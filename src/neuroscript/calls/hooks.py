"""The hooks of one engine as plain functions: those that may refuse calls, and those that observe them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.values import copy_exact
from neuroscript.errors import PolicyError, Retry, is_interrupt
from neuroscript.io.text import escape
from neuroscript.policy.execution_policy import Decision
from neuroscript.policy.refusals import check_failed_error
from neuroscript.runtime.interfaces import Logger
from neuroscript.runtime.records import PendingCall
from neuroscript.tools.hookspecs import CLOSED, DECIDE, FINISHED, REGISTERED, STARTED, Hook, Plugins

MAX_REASON_CHARS: Final = 500
"""Characters of a hook's text that a caller sees."""

REMOVED_HOOK: Final = Hook("no longer there", "of a call that began before")
"""Stands for the hook of a function that is no longer registered, in a call that began before."""

Function = Callable[..., Any]


class Hooks:
    """The hooks of an engine, as tuples of plain functions in pluggy's order: later plugins first.

    Args:
        plugins: Modules and objects that have hooks.

    Attributes:
        plugins: The plugins, in the order of registration.
        names: The names of the plugins.
        deciders: May refuse a call; `refusal` calls them.
        started: Called with the record of a call that starts.
        finished: Called with the record of a call that has ended or was refused.
        registered: Called with the `ToolInfo` of a new tool, and its origin.
        closed: Called when the engine is closed, with the tools that were abandoned.

    Raises:
        PluginError: A plugin has no hook, or one with a wrong signature; all problems are listed.
        SpecError: *plugins* has the wrong type.

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
        """Return whether there is any hook; a plugin may provide only toolsets."""
        return bool(self.deciders or self.started or self.finished or self.registered or self.closed)

    def _functions(self, found: Plugins, name: str) -> tuple[Function, ...]:
        functions = found.of(name)
        self._hooks.update((id(function), hook) for hook, function in functions.items())
        return tuple(functions.values())

    def refusal(self, call: PendingCall) -> PolicyError | None:
        """Return why the first hook refuses a call, or None if all let it pass.

        A KeyboardInterrupt of the main thread passes; any other exception of a hook refuses the call.
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
            logger: The host's logger; whether it works does not affect the call.

        Returns:
            The hook and its plugin, or ``""`` if a failure of it was logged before.
        """
        if is_interrupt(error):
            raise error
        hook = self._hooks.get(id(function), REMOVED_HOOK)
        token = object()
        if self._told.setdefault(hook, token) is not token:
            return ""
        with suppress(Exception):
            sentence = "the hook %s of the plugin %s failed (%s); further failures of it are not logged"
            logger.error(sentence, hook.name, hook.plugin, type_name(error))
        return f"the hook {hook.name} of the plugin {hook.plugin}"


def _copy(call: PendingCall) -> PendingCall:
    """Return the call with a copy of its arguments, so that no hook sees the changes of another."""
    return attrs.evolve(call, arguments={name: copy_exact(value) for name, value in call.arguments.items()})


def _refused(answer: Any, tool: str, gate: str) -> PolicyError | None:
    """Return the refusal that an answer stands for, or None."""
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
            return PolicyError(text, tool=tool, code="policy.check_failed", rule=gate)


def _raised(error: BaseException, tool: str, gate: str) -> PolicyError:
    if not isinstance(error, PolicyError):
        return check_failed_error(tool, gate, error)
    refused = _error(error.text, tool, gate, error.need, error.retry)
    refused.__cause__ = error
    return refused


def _error(text: object, tool: str, gate: str, need: str = "", retry: Retry | None = None) -> PolicyError:
    sentence = escape(str.__str__(text)[:MAX_REASON_CHARS]).strip() if isinstance(text, str) else ""
    return PolicyError(
        sentence or "was refused by a hook", tool=tool, code="policy.hook", need=need, rule=gate, retry=retry
    )
