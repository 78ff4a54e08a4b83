"""A tool: what it promises, the function that keeps the promise, and what it needs; and tools in a set.

Source: contract section 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import attrs

from neuroscript import signature
from neuroscript.binding import bind, bind_named
from neuroscript.display import shown
from neuroscript.errors import UNSET, ArgumentError, RegistryError, SpecError
from neuroscript.names import canonical, is_word
from neuroscript.needs import ToolPolicy
from neuroscript.spec import Example, ToolSpec
from neuroscript.values import exact
from neuroscript.walk import RESULT, ROOT, Walk

Function = TypeVar("Function", bound=Callable[..., Any])

NEEDS_NOTHING: Final = ToolPolicy()


@attrs.frozen(eq=False, repr=False)
class WithoutRuntime:
    """A function that does not want to see the Runtime, in the form in which a tool's function is called."""

    func: Callable[..., Any]

    def __call__(self, rt: object, *values: Any) -> Any:
        return self.func(*values)


@attrs.frozen
class ToolImplementation:
    """A spec, the function that carries it out, and what that needs of a host.

    Attributes:
        spec: What the tool promises.
        func: Called as ``func(rt, *values)``, one exact value for each argument; it may be a coroutine function.
        policy: What it needs.
        templates: The same, as what fills it from the arguments of a call.

    Raises:
        SpecError: The function's parameters are not ``rt`` and the spec's names in order (a function that takes
            ``*values`` may call them as it likes), an example does not bind, or a need names no argument of the tool.
    """

    spec: ToolSpec
    func: Callable[..., Any]
    policy: ToolPolicy = NEEDS_NOTHING
    templates: tuple[Any, ...] = attrs.field(init=False, eq=False, repr=False, default=())

    def __attrs_post_init__(self) -> None:
        faults = list(_faults(self))
        if faults:
            raise SpecError(self.spec.full_name if isinstance(self.spec, ToolSpec) else "tool", faults)

    @property
    def name(self) -> str:
        """The canonical name, ``group.name``."""
        return self.spec.full_name

    @property
    def is_coroutine(self) -> bool:
        """Whether the function is to be awaited."""
        func = self.func.func if isinstance(self.func, WithoutRuntime) else self.func
        return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(type(func).__call__)


def _faults(tool: ToolImplementation) -> Iterator[str]:
    if not isinstance(tool.spec, ToolSpec) or not isinstance(tool.policy, ToolPolicy):
        yield "a tool is made of a ToolSpec, a function and a ToolPolicy"
        return
    yield from _parameter_faults(tool)
    yield from _need_faults(tool)
    for index, example in enumerate(tool.spec.examples):
        yield from (f"example {index + 1}: {fault}" for fault in _example_faults(tool.spec, example))


def _parameter_faults(tool: ToolImplementation) -> Iterator[str]:
    if isinstance(tool.func, WithoutRuntime):  # the spec has been read off it
        return
    try:
        parameters = list(inspect.signature(tool.func).parameters.values())
    except (TypeError, ValueError):
        yield "func must be a function whose parameters can be read"
        return
    wanted = [signature.RUNTIME, *(arg.name for arg in tool.spec.args)]
    free = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    positional = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if needed:
        yield f"func is called by position, but asks for {', '.join(needed)} by name"
    if tool.spec.variadic and not free:
        yield f"the spec is variadic; func must take *{wanted[-1]}"
    elif (free and positional != wanted[: len(positional)]) or (not free and positional != wanted):
        yield f"func must take ({', '.join(wanted)}), not ({', '.join(map(str, parameters))})"


def _need_faults(tool: ToolImplementation) -> Iterator[str]:
    if not tool.policy.capabilities:  # most tools need nothing, and then nothing is loaded for it
        return
    from neuroscript.templates import Template

    types = {arg.name: arg.type for arg in tool.spec.args}
    templates = []
    for need in tool.policy.capabilities:
        try:
            templates.append(Template.parse(need, types, variadic=tool.spec.variadic))
        except SpecError as error:
            yield f"policy: {error}"
    object.__setattr__(tool, "templates", tuple(templates))


def _example_faults(spec: ToolSpec, example: Example) -> Iterator[str]:
    expected = example.error if example.error.startswith(("arg.", "coercion.", "limit.")) else ""
    try:
        by_name = isinstance(example.args, Mapping)
        bind_named(spec, example.args) if by_name else bind(spec, example.args)  # type: ignore[arg-type]
    except ArgumentError as error:
        if error.code != expected:
            yield f"its arguments do not fit: {error}"
        return
    if expected:
        yield f"its arguments fit, and {expected} was expected"
    if example.result is not UNSET:
        walk = Walk(RESULT)
        fit_result(walk, spec, example.result)
        yield from (f"its result does not fit: {problem}" for problem in walk.problems())


def fit_result(walk: Walk, spec: ToolSpec, result: object) -> Any:
    """Return a result as the exact value of the spec's return type; what does not fit is noted in *walk*."""
    if result is None and spec.return_nullable:
        return None
    return walk.limited(exact, spec.return_type, result, ROOT)


def tool(
    func: Callable[..., Any],
    *,
    group: str,
    name: str | None = None,
    policy: ToolPolicy = NEEDS_NOTHING,
    when_to_use: str = "",
    category: str = "",
    examples: tuple[Example, ...] = (),
) -> ToolImplementation:
    """Return the tool that a function describes by its annotations and its docstring.

    Args:
        func: A function or coroutine function, with or without ``rt`` as its first parameter; it is not changed.
        group: The group of the tool.
        name: The tool's name, where it is not the function's.

    Raises:
        SpecError: An annotation names no ArgType, or something else can not be read; it says what to write.

    Source: contract section 1; design.md, "a tool, two ways".
    """
    found = signature.read(func)
    spec = ToolSpec(
        name or found.name,
        group,
        found.args,
        return_type=found.return_type,
        return_nullable=found.return_nullable,
        description=found.described.summary,
        return_help=found.described.returns,
        error_conditions=found.described.raises,
        variadic=found.variadic,
        stream=found.stream,
        when_to_use=when_to_use,
        category=category,
        examples=examples,
    )
    return ToolImplementation(spec, func if found.takes_runtime else WithoutRuntime(func), policy)


class Toolset:
    """Tools that are delivered together; it collects until an engine takes its snapshot.

    Args:
        name: What the set is called, and the group of tools that are made with `tool`.
        tools: The tools to begin with.
    """

    def __init__(self, name: str, tools: tuple[ToolImplementation, ...] = ()) -> None:
        self.name = canonical(name)
        if not all(map(is_word, self.name.split("."))):
            raise SpecError(f"toolset {shown(name)}", ["its name is not that of a group"])
        self._tools: dict[str, ToolImplementation] = {}
        for each in tools:
            self._put(each)

    def add(self, spec: ToolSpec, func: Callable[..., Any], policy: ToolPolicy = NEEDS_NOTHING) -> ToolImplementation:
        """Add the tool that *spec*, *func* and *policy* make, and return it.

        Raises:
            SpecError: There can be no such tool.
            RegistryError: The set has a tool of that name.
        """
        return self._put(ToolImplementation(spec, func, policy))

    def tool(
        self,
        *,
        name: str | None = None,
        group: str | None = None,
        policy: ToolPolicy = NEEDS_NOTHING,
        when_to_use: str = "",
        category: str = "",
        examples: tuple[Example, ...] = (),
    ) -> Callable[[Function], Function]:
        """Return a decorator that adds the tool that a function describes, and leaves the function as it is."""

        def added(func: Function) -> Function:
            self._put(
                tool(
                    func,
                    group=group or self.name,
                    name=name,
                    policy=policy,
                    when_to_use=when_to_use,
                    category=category,
                    examples=examples,
                )
            )
            return func

        return added

    @property
    def tools(self) -> tuple[ToolImplementation, ...]:
        """The tools so far, in the order in which they came."""
        return tuple(self._tools.values())

    def __iter__(self) -> Iterator[ToolImplementation]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Toolset({self.name!r}, {len(self)} tools)"

    def _put(self, each: ToolImplementation) -> ToolImplementation:
        if self._tools.setdefault(each.name, each) is not each:
            raise RegistryError(f"toolset {self.name} has two tools called {each.name}")
        return each
