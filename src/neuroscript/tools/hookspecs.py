"""Hooks: where a plugin brings tools or refuses a call, and what it is told of calls, of tools and of an engine's end.

A plugin is a module, or an object whose class has such methods; `hookimpl` marks each. A hook is a plain function that
takes the arguments that it wants of those below, by their names; nobody awaits it. It is called on the thread of the
call, so what takes long is better put aside.

pluggy registers and orders them, and whatever it would pass over in silence is a fault here: a gate that is never asked
stands open. What is called then are plain functions (`hooks.py`), for a call must not pay pluggy's dispatch.

Source: contract section 5; design.md, rules 4 and 5; peers.md row "hook raising an unexpected error"; performance.md
part 2.
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
from neuroscript.io.text import shown
from neuroscript.runtime.interfaces import ToolInfo
from neuroscript.runtime.records import CallRecord, PendingCall
from neuroscript.tools.toolset import Toolset

PROJECT: Final = "neuroscript"
PREFIX: Final = f"{PROJECT}_"

hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as a hook; ``tryfirst=True`` and ``trylast=True`` move it within the order."""


@hookspec
def neuroscript_toolsets() -> Iterable[Toolset]:  # type: ignore[empty-body]
    """Bring tools that are computed; asked once, when the plugin is added to an engine.

    Returns:
        A list of toolsets. The engine takes all their tools, or, where something is wrong with one, nothing of the
        plugin.

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
    """Refuse a call, or let it pass; asked when it fits and nothing else has refused it.

    Args:
        call: The call with the very values that its tool would get; what is changed in it changes nothing.

    Returns:
        None or True to let it pass, or a sentence that says why not. A `Decision` or a `PolicyError` says besides who
        could make the call succeed. Whatever else is returned refuses, and so does whatever is raised: a gate that
        does not work stays shut. Its sentence may be read by a model, and holds no value that must not be.

    The first hook that refuses decides, with the code ``policy.hook``, or ``policy.fault`` where it does not work.

    >>> class NoLargeRefunds:
    ...     @hookimpl
    ...     def neuroscript_decide(self, call):
    ...         if call.tool == "shop.refund" and call.arguments["euros"] > 100:
    ...             return "a refund of more than 100 euros is given by people"
    """


@hookspec
def neuroscript_call_started(record: CallRecord) -> None:
    """Take notice that a call begins; its tool runs next, whatever this does.

    Args:
        record: Of the kind ``"intent"``; its code is ``""``.

    >>> class Announcing:
    ...     @hookimpl
    ...     def neuroscript_call_started(self, record):
    ...         print(f"{record.tool}, {record.depth} deep")
    """


@hookspec
def neuroscript_call_finished(record: CallRecord) -> None:
    """Take notice that a call has ended, or was refused; it ends like this, whatever this does.

    Args:
        record: Of the kind ``"outcome"``, or ``"refused"`` where the call never began, with its code.

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
    """Take notice of a tool that an engine has from now on.

    Args:
        tool: Its spec and its policy. There is no function in it: the engine's line is the only way to call it.
        origin: The distribution or file that brought it, or ``host``.

    >>> class Pinned:
    ...     @hookimpl
    ...     def neuroscript_tool_registered(self, tool, origin):
    ...         print(f"{tool.spec.full_name} comes from {origin}")
    """


@hookspec
def neuroscript_engine_closed(left: tuple[str, ...]) -> None:
    """Take notice that an engine has been closed; nothing more is told of it.

    Args:
        left: The tools whose calls had not ended, in order.

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
"""What each hook is called with, in order."""

PLACES: Final = ("tryfirst", "trylast")
"""What `hookimpl` may say of a hook's place in the order."""

Function = Callable[..., Any]


@attrs.frozen
class Hook:
    """One hook of one plugin, by their names."""

    plugin: str
    name: str


class Plugins:
    """Plugins, looked through and registered.

    Args:
        plugins: Modules and objects that have hooks.

    Attributes:
        given: They themselves, in the order in which they were given.
        names: What they are called.

    Raises:
        PluginError: One is no plugin; all that is wrong with it is said.
        SpecError: *plugins* are none, but something else.
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
                raise PluginError(name, "it is given twice")
            self._add(plugin, name)

    def of(self, hook: str) -> dict[Hook, Function]:
        """Return the functions of one hook in pluggy's order; no two are one object, and each takes all arguments."""
        found = reversed(getattr(self._manager.hook, hook).get_hookimpls())
        hooks = [Hook(each.plugin_name, hook) for each in found]
        return {each: self._functions[each] for each in hooks}

    @property
    def options(self) -> dict[str, dict[str, bool]]:
        """The hooks that there are, and of each whether it wants to be the first or the last of them."""
        found = ((name, getattr(self._manager.hook, name).get_hookimpls()) for name in ARGUMENTS)
        return {name: {each: getattr(hooks[0], each) for each in PLACES} for name, hooks in found if hooks}

    def _new_name(self, plugin: object) -> str:
        """Return what a plugin is called; a second one of that name is called by its number, too."""
        own = plugin.__name__ if isinstance(plugin, (ModuleType, type)) else type_name(plugin)
        names = (shown(own) if number == 1 else f"{shown(own)} {number}" for number in range(1, sys.maxsize))
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
            if isinstance(error, ValueError) and self._manager.is_registered(plugin):  # it equals one
                raise PluginError(name, "it is given twice") from error
            raise PluginError(name, f"its hooks can not be looked at ({type_name(error)})") from error
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
    """A function of a plugin that is marked as a hook: where it was found, which hook it is, and pluggy's options."""

    attribute: str
    hook: str
    function: Any
    options: Mapping[str, Any]

    @property
    def takes(self) -> tuple[str, ...]:
        """The arguments that it wants."""
        return tuple(inspect.signature(self.function).parameters)

    def direct(self) -> Function:
        """Return the function itself where it takes all arguments of the hook in order, else one that picks."""
        wanted = ARGUMENTS[self.hook]
        return self.function if self.takes[: len(wanted)] == wanted else self.picking()

    def picking(self) -> Function:
        """Return a function of its own that takes all arguments of the hook, and hands on those that are wanted."""
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
    """Yield a sentence for each hook that pluggy would pass over in silence, and so leave a gate open."""
    marked = {each.attribute for each in found}
    for name in dir(plugin):
        if name in marked or not name.startswith(PREFIX):
            continue
        if name in ARGUMENTS or inspect.isroutine(inspect.getattr_static(plugin, name)):
            yield f"{name} is no function that @hookimpl marks"
    if not found:
        yield "it has no hook; @hookimpl marks one"


def _faults(found: list[_Marked]) -> Iterator[str]:
    seen: set[str] = set()
    for each in found:
        if each.hook not in ARGUMENTS:
            if not each.options.get("optionalhook"):
                alike = near(each.hook, ARGUMENTS)
                hint = f"; did you mean {alike[0]}?" if alike else ""
                yield f"no hook is called {shown(each.hook)}{hint}"
            continue
        if each.hook in seen:
            yield f"it has {each.hook} twice"
        seen.add(each.hook)
        yield from _form_faults(each)


def _form_faults(each: _Marked) -> Iterator[str]:
    function = each.function
    if each.options.get("wrapper") or each.options.get("hookwrapper"):
        yield f"{each.hook} is a wrapper, which could swallow what another plugin refuses; write a plain function"
    elif any(is_kind(function) for is_kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)):
        yield f"{each.hook} is a coroutine function, and nobody awaits a hook; write a plain function"
    elif inspect.isgeneratorfunction(function):
        yield f"{each.hook} is a generator function, of which nothing would run; write a plain function"
    elif not callable(function):
        yield f"{each.hook} can not be called"
    elif not all(_is_given(each.hook, parameter) for parameter in inspect.signature(function).parameters.values()):
        wanted = ", ".join(ARGUMENTS[each.hook])
        yield f"{each.hook} may take ({wanted}), not ({', '.join(map(shown, each.takes))})"


def _is_given(hook: str, parameter: inspect.Parameter) -> bool:
    """Tell whether a parameter gets what its name says; one that has a default and no such name is left alone."""
    positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    if parameter.name in ARGUMENTS[hook]:
        return positional and parameter.default is parameter.empty
    return parameter.default is not parameter.empty
