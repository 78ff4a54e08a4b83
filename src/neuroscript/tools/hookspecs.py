"""Hook specifications: how plugins contribute tools, refuse calls, and observe calls, tools and the end of an engine.

A plugin is a module, or an object whose class defines hook methods; each is marked with `hookimpl`. A hook is a plain
function that accepts any of the documented arguments by name. It is not awaited. It runs on the thread of the call, so
it must hand off slow work.

pluggy registers and orders the hooks. Mistakes that pluggy ignores raise an error here, because a decision hook that is
never called would permit every call. Calls invoke plain functions and so avoid the cost of pluggy's dispatch.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import attrs
import pluggy

from neuroscript.coercion.context import type_name
from neuroscript.errors import PluginError, SpecError
from neuroscript.io.near_names import near
from neuroscript.io.text import quote_untrusted
from neuroscript.runtime.interfaces import ToolInfo
from neuroscript.runtime.records import CallRecord, PendingCall
from neuroscript.tools.toolset import Toolset

PROJECT: Final = "neuroscript"
PREFIX: Final = f"{PROJECT}_"

hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as a hook; ``tryfirst=True`` and ``trylast=True`` change its place in the order."""


@hookspec
def neuroscript_toolsets() -> Iterable[Toolset]:  # type: ignore[empty-body]
    """Provide computed tools. It is called once, when the plugin is added to an engine.

    Returns:
        A list of toolsets. If one of them is invalid, the engine uses nothing of the plugin.

    >>> from neuroscript import Toolset, ToolSpec
    >>> class Stations:
    ...     def __init__(self, names):
    ...         self.names = names
    ...
    ...     @hookimpl
    ...     def neuroscript_toolsets(self):
    ...         return [self.station(name) for name in self.names]
    ...
    ...     def station(self, name):
    ...         toolset = Toolset(name)
    ...         toolset.add(ToolSpec("name", name), lambda rt: name.title())
    ...         return toolset
    """


@hookspec
def neuroscript_decide(call: PendingCall) -> object:
    """Refuse or permit a call. It is called if the arguments are valid and no other rule has refused the call.

    Args:
        call: The call with the exact values for the tool. Changes to it have no effect.

    Returns:
        None or True to permit the call, or a sentence with the reason for refusing it. A `Decision` or a `PolicyError`
        can also say who can make the call succeed. Any other result, and any exception, refuses the call, so a broken
        hook never permits one. A model may read the sentence, so it must not contain confidential values.

    The first hook that refuses decides, with the code ``policy.hook``, or ``policy.check_failed`` if it is broken.

    >>> class NoLargeRefunds:
    ...     @hookimpl
    ...     def neuroscript_decide(self, call):
    ...         if call.tool == "shop.refund" and call.arguments["euros"] > 100:
    ...             return "a refund of more than 100 euros is given by people"
    """


@hookspec
def neuroscript_call_started(record: CallRecord) -> None:
    """Observe the start of a call. The tool runs next, whatever this hook does.

    Args:
        record: A record of kind ``"intent"`` with the code ``""``.

    >>> class Announcing:
    ...     @hookimpl
    ...     def neuroscript_call_started(self, record):
    ...         print(f"{record.tool}, {record.depth} deep")
    """


@hookspec
def neuroscript_call_finished(record: CallRecord) -> None:
    """Observe the end or refusal of a call. The outcome does not depend on this hook.

    Args:
        record: A record of kind ``"outcome"``, or ``"refused"`` if the call never started, with its code.

    >>> class Failures:
    ...     def __init__(self):
    ...         self.codes = []
    ...
    ...     @hookimpl
    ...     def neuroscript_call_finished(self, record):
    ...         if record.code != "ok":
    ...             self.codes.append((record.tool, record.code))
    """


@hookspec
def neuroscript_tool_registered(tool: ToolInfo, origin: str) -> None:
    """Observe that a tool was added to an engine.

    Args:
        tool: The spec and policy. It contains no function, because tools can be called only through the engine.
        origin: The distribution or file that provides the tool, or ``host``.

    >>> class Pinned:
    ...     @hookimpl
    ...     def neuroscript_tool_registered(self, tool, origin):
    ...         print(f"{tool.spec.full_name} comes from {origin}")
    """


@hookspec
def neuroscript_engine_closed(left: tuple[str, ...]) -> None:
    """Observe that an engine was closed. No other hook is called for it afterwards.

    Args:
        left: The names of tools whose calls had not ended, in order.

    >>> class Farewell:
    ...     @hookimpl
    ...     def neuroscript_engine_closed(self, left):
    ...         print("left behind:", ", ".join(left) or "nothing")
    """


TOOLSETS: Final = "neuroscript_toolsets"
DECIDE: Final = "neuroscript_decide"
STARTED: Final = "neuroscript_call_started"
FINISHED: Final = "neuroscript_call_finished"
REGISTERED: Final = "neuroscript_tool_registered"
CLOSED: Final = "neuroscript_engine_closed"

ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    TOOLSETS: (),
    DECIDE: ("call",),
    STARTED: ("record",),
    FINISHED: ("record",),
    REGISTERED: ("tool", "origin"),
    CLOSED: ("left",),
}
"""The arguments of each hook, in order."""

PLACES: Final = ("tryfirst", "trylast")
"""The options of `hookimpl` for the order."""

Function = Callable[..., Any]


@attrs.frozen
class Hook:
    """One hook of one plugin, by name."""

    plugin: str
    name: str


class Plugins:
    """Validated and registered plugins.

    Args:
        plugins: Modules and objects that have hooks.

    Attributes:
        given: The plugins, in the order in which they were passed.
        names: Their names.

    Raises:
        PluginError: One of them is not a valid plugin; the message contains every problem.
        SpecError: *plugins* is not a list of plugins.
    """

    def __init__(self, plugins: Iterable[object]) -> None:
        self.names: tuple[str, ...] = ()
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(sys.modules[__name__])
        self._functions: dict[Hook, Function] = {}
        self.given = tuple(_several(plugins))
        for index, plugin in enumerate(self.given):
            name = self._new_name(plugin)
            if any(plugin is each for each in self.given[:index]):
                raise PluginError(name, "it was passed twice")
            self._add(plugin, name)

    def of(self, hook: str) -> dict[Hook, Function]:
        """Return the functions for one hook in pluggy's order. Each is a distinct object and accepts all arguments."""
        found = reversed(getattr(self._manager.hook, hook).get_hookimpls())
        hooks = [Hook(each.plugin_name, hook) for each in found]
        return {each: self._functions[each] for each in hooks}

    @property
    def options(self) -> dict[str, dict[str, bool]]:
        """The hooks, and whether each is to be called first or last."""
        found = ((name, getattr(self._manager.hook, name).get_hookimpls()) for name in ARGUMENTS)
        return {name: {each: getattr(hooks[0], each) for each in PLACES} for name, hooks in found if hooks}

    def _new_name(self, plugin: object) -> str:
        """Return the name of a plugin, with a number if another plugin has the same name."""
        own = plugin.__name__ if isinstance(plugin, (ModuleType, type)) else type_name(plugin)
        names = (
            quote_untrusted(own) if number == 1 else f"{quote_untrusted(own)} {number}"
            for number in range(1, sys.maxsize)
        )
        name = next(name for name in names if name not in self.names)
        self.names += (name,)
        return name

    def _add(self, plugin: object, name: str) -> None:
        try:
            found = [*_marked(plugin, self._manager)]
            faults = [*_unmarked(plugin, found), *_faults(found)]
            if not faults:
                self._manager.register(plugin, name)
        except Exception as error:
            if isinstance(error, ValueError) and self._manager.is_registered(
                plugin
            ):  # it compares equal to a registered one
                raise PluginError(name, "it was passed twice") from error
            raise PluginError(name, f"its hooks cannot be inspected ({type_name(error)})") from error
        if faults:
            raise PluginError(name, "; ".join(faults))
        for each in found:
            if each.hook in ARGUMENTS:
                taken = any(each.function is function for function in self._functions.values())
                self._functions[Hook(name, each.hook)] = each.picking() if taken else each.direct()


def _several(plugins: Any) -> Iterable[object]:
    if not isinstance(plugins, Iterable) or isinstance(plugins, (str, bytes)):
        raise SpecError("hooks", [f"expected a list of plugins, got {type_name(plugins)}"])
    return plugins


@attrs.frozen(eq=False)
class _Marked:
    """A function marked as a hook: where it was found, which hook it implements, and pluggy's options."""

    attribute: str
    hook: str
    function: Any
    options: Mapping[str, Any]

    @property
    def takes(self) -> tuple[str, ...]:
        """The arguments that it accepts."""
        return tuple(inspect.signature(self.function).parameters)

    def direct(self) -> Function:
        """Return the function itself if it accepts all arguments of the hook in order, otherwise an adapter."""
        wanted = ARGUMENTS[self.hook]
        return self.function if self.takes[: len(wanted)] == wanted else self.picking()

    def picking(self) -> Function:
        """Return an adapter that accepts all arguments of the hook and passes on those that the function accepts."""
        wanted, function = ARGUMENTS[self.hook], self.function
        places = [wanted.index(name) for name in self.takes if name in wanted]

        def picking(*arguments: Any) -> Any:
            return function(*[arguments[place] for place in places])

        return picking


def _marked(plugin: object, manager: pluggy.PluginManager) -> Iterator[_Marked]:
    for attribute in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, attribute)
        if options is not None:
            named: Mapping[str, Any] = {**options}
            yield _Marked(attribute, named.get("specname") or attribute, getattr(plugin, attribute), named)


def _unmarked(plugin: object, found: list[_Marked]) -> Iterator[str]:
    """Yield a sentence for each hook that pluggy would ignore, because an ignored decision hook permits every call."""
    marked = {each.attribute for each in found}
    for name in dir(plugin):
        if name in marked or not name.startswith(PREFIX):
            continue
        if name in ARGUMENTS or inspect.isroutine(inspect.getattr_static(plugin, name)):
            yield f"{name} is not marked with @hookimpl"
    if not found:
        yield "it has no hooks; mark one with @hookimpl"


def _faults(found: list[_Marked]) -> Iterator[str]:
    seen: set[str] = set()
    for each in found:
        if each.hook not in ARGUMENTS:
            if not each.options.get("optionalhook"):
                alike = near(each.hook, ARGUMENTS)
                hint = f"; did you mean {alike[0]}?" if alike else ""
                yield f"unknown hook {quote_untrusted(each.hook)}{hint}"
            continue
        if each.hook in seen:
            yield f"it has {each.hook} twice"
        seen.add(each.hook)
        yield from _form_faults(each)


def _form_faults(each: _Marked) -> Iterator[str]:
    function = each.function
    if each.options.get("wrapper") or each.options.get("hookwrapper"):
        yield f"{each.hook} is a wrapper, which could override another plugin's refusal; use a plain function"
    elif any(is_kind(function) for is_kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)):
        yield f"{each.hook} is a coroutine function, but hooks are not awaited; use a plain function"
    elif inspect.isgeneratorfunction(function):
        yield f"{each.hook} is a generator function, whose body would never run; use a plain function"
    elif not callable(function):
        yield f"{each.hook} is not callable"
    elif not all(_is_given(each.hook, parameter) for parameter in inspect.signature(function).parameters.values()):
        wanted = ", ".join(ARGUMENTS[each.hook])
        yield f"{each.hook} may take ({wanted}), not ({', '.join(map(quote_untrusted, each.takes))})"


def _is_given(hook: str, parameter: inspect.Parameter) -> bool:
    """Return whether a parameter is valid: a hook argument without a default, or another name with a default."""
    positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    if parameter.name in ARGUMENTS[hook]:
        return positional and parameter.default is parameter.empty
    return parameter.default is not parameter.empty
