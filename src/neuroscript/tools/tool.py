"""A tool: what it promises, the function that keeps the promise, and what it needs; and tools in a set.

Source: contract section 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import attrs

from neuroscript._version import is_api
from neuroscript.coercion.context import RESULT, ROOT, Walk
from neuroscript.coercion.parameters import (
    FUNCTION,
    STRING,
    STRINGS,
    Form,
    field_problems,
    instance,
    optional,
    require,
    sequence,
)
from neuroscript.coercion.values import exact
from neuroscript.errors import UNSET, ArgumentError, SpecError
from neuroscript.names import is_word
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.binding import bind, bind_named
from neuroscript.spec.callables import by_position, is_coroutine
from neuroscript.spec.tool_spec import RUNTIME, Example, ToolSpec

Function = TypeVar("Function", bound=Callable[..., Any])


NEEDS_NOTHING: Final = ToolPolicy()


# What parameters and fields have to be

API: Final = Form("two whole numbers, as in (1, 0)", lambda version: isinstance(version, tuple), is_api)


ITEMS: Final = Form("a list or tuple", lambda items: isinstance(items, (list, tuple)))


WRAP: Final = "a function becomes a tool by @toolset.tool, or by tool(function, group='my')"
"""What to do with a function where tools are wanted."""


POLICY: Final = instance(ToolPolicy, "write ToolPolicy(...)")


SPEC: Final = instance(ToolSpec)


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
        secrets: Values of its function that nobody may see, such as a key that its arguments no longer name.
        injection: How it came to have fewer arguments than its function was written for, or None.
        templates: What it needs, as what fills it from the arguments of a call.

    Raises:
        SpecError: The function's parameters are not ``rt`` and the spec's names in order (a function that takes
            ``*values`` may call them as it likes), an example does not bind, or a need names no argument of the tool.
    """

    spec: ToolSpec
    func: Callable[..., Any]
    policy: ToolPolicy = NEEDS_NOTHING
    secrets: tuple[Any, ...] = attrs.field(default=(), kw_only=True, eq=False, repr=False)
    injection: Any = attrs.field(default=None, kw_only=True, eq=False, repr=False)
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
        return is_coroutine(self.func.func if isinstance(self.func, WithoutRuntime) else self.func)

    # Arguments that its host gives

    @property
    def injected(self) -> Mapping[str, Any]:
        """Where each argument comes from that no caller sees, by name."""
        if self.injection is None:
            return {}
        from neuroscript.tools.injection import injected

        return injected(self)

    def injecting(self, /, **sources: Any) -> ToolImplementation:
        """Return the tool without some of its arguments; this one stays what it is.

        Args:
            sources: By name of an argument where its value comes from in each call: a `Value`, a `Resolver`, a
                `Variable`, a `State` or a `Secret`. It is coerced as one that a caller sends in lax mode.

        Raises:
            SpecError: With all that is wrong: it has no such argument, a `Value` does not fit, an argument has a class,
                or the function of a `Resolver` has to be awaited and that of the tool has not.
        """
        from neuroscript.runtime.masking import secret_values
        from neuroscript.tools.injection import injecting

        made: ToolImplementation = injecting(self, sources, secret_values)
        return made

    def restoring(self, /, *names: str) -> ToolImplementation:
        """Return the tool with some of its injected arguments back, for callers to set; other changes stay.

        Where nothing else was changed, restoring all of them gives the very tool that it was.

        Raises:
            SpecError: One of them is not injected, or none is named.
        """
        from neuroscript.tools.injection import restoring

        require(self.name, names=(names, STRINGS))
        from neuroscript.runtime.masking import secret_values

        made: ToolImplementation = restoring(self, names, secret_values)
        return made


def _faults(tool: ToolImplementation) -> Iterator[str]:
    faults = [*field_problems(tool, spec=SPEC, func=FUNCTION, policy=POLICY, secrets=ITEMS)]
    if faults:
        yield from faults
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
    wanted = [RUNTIME, *(arg.name for arg in tool.spec.args)]
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
    from neuroscript.policy.templates import Template

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
        if walk.noted:
            from neuroscript.coercion.problems import sentences

            yield from (f"its result does not fit: {problem}" for problem in sentences(walk))


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
    description: str = "",
    when_to_use: str = "",
    category: str = "",
    examples: tuple[Example, ...] = (),
) -> ToolImplementation:
    """Return the tool that a function describes by its annotations and its docstring.

    Args:
        func: What is called: a function, a coroutine function, a generator, a method of an instance, a class method, a
            partial, an object with ``__call__``; with or without ``rt`` as its first parameter. It is not changed, and
            what a partial has fixed is no argument of the tool.
        group: The group of the tool.
        name: The tool's name, where it is not the function's.
        description: What it does, where that is not what the docstring says.

    Raises:
        SpecError: An annotation names no ArgType, or something else can not be read; it says what to write.

    Source: contract section 1; design.md, "a tool, two ways".
    """
    options = {"name": name, "policy": policy, "description": description, "when_to_use": when_to_use}
    require_options("tool", **options, category=category, examples=examples, func=func, group=group)
    from neuroscript.spec.signature import read  # not for tools that are written out by hand

    found = read(func)
    if name is None and not is_word(found.name.lower()):
        raise SpecError(found.name, ['this is no name of a tool; give one, as in name="count"'])
    spec = ToolSpec(
        name or found.name,
        group,
        found.args,
        return_type=found.return_type,
        return_nullable=found.return_nullable,
        description=description or found.described.summary,
        return_help=found.described.returns,
        error_conditions=found.described.raises,
        variadic=found.variadic,
        stream=found.stream,
        when_to_use=when_to_use,
        category=category,
        examples=examples,
    )
    if found.by_name:
        return ToolImplementation(spec, by_position(func, found.parameters, takes_runtime=found.takes_runtime), policy)
    return ToolImplementation(spec, func if found.takes_runtime else WithoutRuntime(func), policy)


OPTIONS: Final = {
    "func": FUNCTION,
    "group": STRING,
    "name": optional(STRING),
    "policy": POLICY,
    "description": STRING,
    "when_to_use": STRING,
    "category": STRING,
    "examples": sequence(instance(Example), "Examples"),
}
"""What each option has to be that says how a function becomes a tool."""


def require_options(subject: str, **options: Any) -> None:
    """Raise a `SpecError` for options that are not what `OPTIONS` says."""
    require(subject, **{name: (value, OPTIONS[name]) for name, value in options.items()})


from_function = tool
"""`tool`, by the name that it has among its neighbours: `from_code`, and the importers."""
