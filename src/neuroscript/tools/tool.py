"""The tool class: a spec, its function and its policy; and creation of tools from functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from neuroscript._version import is_api
from neuroscript.coercion.constraints import coerce_present
from neuroscript.coercion.context import RESULT, ROOT, CoercionPass
from neuroscript.coercion.parameters import (
    BY_NAME,
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
from neuroscript.coercion.scalars import AnyContent
from neuroscript.coercion.types import ArgType
from neuroscript.coercion.values import coerce_value
from neuroscript.errors import UNSET, ArgumentError, SpecError
from neuroscript.names import is_word
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.binding import bind, bind_named
from neuroscript.spec.callables import by_position, is_coroutine
from neuroscript.spec.tool_spec import RUNTIME, Example, ToolSpec

if TYPE_CHECKING:
    from neuroscript.spec.served import Prompt, Resource

Function = TypeVar("Function", bound=Callable[..., Any])


NEEDS_NOTHING: Final = ToolPolicy()


# Forms of parameters and fields

API: Final = Form("two integers, such as (1, 0)", lambda version: isinstance(version, tuple), is_api)


ITEMS: Final = Form("a list or tuple", lambda items: isinstance(items, (list, tuple)))


WRAP: Final = "turn a function into a tool with @toolset.tool, or with tool(function, group='my')"
"""The hint for a function in place of a tool."""


POLICY: Final = instance(ToolPolicy, "use ToolPolicy(...)")


SPEC: Final = instance(ToolSpec)


@attrs.frozen(eq=False, repr=False)
class WithoutRuntime:
    """An adapter for functions without a Runtime parameter."""

    func: Callable[..., Any]

    def __call__(self, rt: object, *values: Any) -> Any:
        return self.func(*values)


@attrs.frozen(eq=False, repr=False)
class Observation:
    """What observes the function of a tool in this process, even if another process runs the function.

    Attributes:
        tool: The tool that is observed.
        around: Takes a function ``func(rt, *values)``, and returns one that observes its calls.
    """

    tool: ToolImplementation
    around: Callable[[Callable[..., Any]], Callable[..., Any]]


OBSERVATION: Final = "__neuroscript_observation__"
"""The attribute of an observing function with its `Observation`."""


def observation_of(tool: ToolImplementation) -> Observation | None:
    """Return what observes the function of a tool, or None."""
    func = tool.func.func if isinstance(tool.func, WithoutRuntime) else tool.func
    found: Observation | None = getattr(func, OBSERVATION, None)
    return found


@attrs.frozen
class ToolImplementation:
    """A spec, the function that implements it, and its policy.

    Attributes:
        spec: The spec of the tool.
        func: Called as ``func(rt, *values)`` with one exact value for each argument; it may be a coroutine function.
        policy: The capabilities and conditions that the tool needs.
        secrets: Values of the function that must never be displayed, such as an injected key.
        injection: The record of injected arguments, or None.
        classes: What loads the spec of an argument with its class, by name, for a tool whose *spec* has no classes.
        templates: The needs of the tool as templates that the arguments of a call fill in.

    Raises:
        SpecError: The parameters of the function are not ``rt`` and the argument names in order (a function with
            ``*values`` may use other names), an example is invalid, or a need refers to an unknown argument.
    """

    spec: ToolSpec
    func: Callable[..., Any]
    policy: ToolPolicy = NEEDS_NOTHING
    secrets: tuple[Any, ...] = attrs.field(default=(), kw_only=True, eq=False, repr=False)
    injection: Any = attrs.field(default=None, kw_only=True, eq=False, repr=False)
    classes: Mapping[str, Callable[[], Any]] = attrs.field(factory=dict, kw_only=True, eq=False, repr=False)
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
        """Whether the function must be awaited."""
        return is_coroutine(self.func.func if isinstance(self.func, WithoutRuntime) else self.func)

    # Injected arguments

    @property
    def injected(self) -> Mapping[str, Any]:
        """The source of each injected argument, by name."""
        if self.injection is None:
            return {}
        from neuroscript.tools.injection import injected_sources

        return injected_sources(self)

    def with_injected(self, /, **sources: Any) -> ToolImplementation:
        """Return the tool without some of its arguments; this tool is not changed.

        Args:
            sources: For each argument name, the source of its value in each call: a `Value`, `Resolver`, `Variable`,
                `State` or `Secret`. The value is coerced like an argument in lax mode.

        Raises:
            SpecError: With every problem: an unknown argument, an invalid `Value`, or an async `Resolver` for a tool
                with a regular function.
        """
        from neuroscript.runtime.masking import secret_values
        from neuroscript.tools.injection import with_injected

        made: ToolImplementation = with_injected(self, sources, secret_values)
        return made

    def with_exposed(self, /, *names: str) -> ToolImplementation:
        """Return the tool with some injected arguments visible to callers again. Other changes are preserved.

        If nothing else was changed, restoring all of them returns the original tool.

        Raises:
            SpecError: One of them is not injected, or there are no names.
        """
        from neuroscript.tools.injection import with_exposed

        require(self.name, names=(names, STRINGS))
        from neuroscript.runtime.masking import secret_values

        made: ToolImplementation = with_exposed(self, names, secret_values)
        return made


def _faults(tool: ToolImplementation) -> Iterator[str]:
    faults = [*field_problems(tool, spec=SPEC, func=FUNCTION, policy=POLICY, secrets=ITEMS, classes=BY_NAME)]
    if faults:
        yield from faults
        return
    yield from _parameter_faults(tool)
    yield from _need_faults(tool)
    for index, example in enumerate(tool.spec.examples):
        yield from (f"example {index + 1}: {fault}" for fault in _example_faults(tool.spec, example))


def _parameter_faults(tool: ToolImplementation) -> Iterator[str]:
    if isinstance(tool.func, WithoutRuntime):  # the spec was derived from it
        return
    try:
        parameters = list(inspect.signature(tool.func).parameters.values())
    except (TypeError, ValueError):
        yield "func must be a function with a readable signature"
        return
    wanted = [RUNTIME, *(arg.name for arg in tool.spec.args)]
    free = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    positional = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if needed:
        yield f"func is called with positional arguments, but {', '.join(needed)} is keyword-only"
    if tool.spec.variadic and not free:
        yield f"the spec is variadic; func must take *{wanted[-1]}"
    elif (free and positional != wanted[: len(positional)]) or (not free and positional != wanted):
        yield f"func must take ({', '.join(wanted)}), not ({', '.join(map(str, parameters))})"


def _need_faults(tool: ToolImplementation) -> Iterator[str]:
    if not tool.policy.capabilities:  # avoids an import for most tools
        return
    from neuroscript.policy.templates import Template

    types = {arg.name: arg for arg in tool.spec.args}
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
        yield f"its arguments are valid, but {expected} was expected"
    if example.result is not UNSET:
        walk = CoercionPass(RESULT)
        fit_result(walk, spec, example.result)
        if walk.noted:
            from neuroscript.coercion.problems import sentences

            yield from (f"its result does not fit: {problem}" for problem in sentences(walk, spec.returns))


def fit_result(walk: CoercionPass, spec: ToolSpec, result: object) -> Any:
    """Return a result as the exact value of the spec's return type; problems are recorded in *walk*.

    Of content for a return type other than `any`, the structured content must be such a value.
    """
    if result is None and spec.return_nullable:
        return None
    if isinstance(result, AnyContent):
        return _fit_content(walk, spec, result)
    return _fit_value(walk, spec, result)


def _fit_value(walk: CoercionPass, spec: ToolSpec, result: object) -> Any:
    if spec.returns is not None:
        from neuroscript.spec.instances import plain_result

        return walk.limited(coerce_present, spec.returns, plain_result(spec, result), ROOT)
    return walk.limited(coerce_value, spec.return_type, result, ROOT)


def _fit_content(walk: CoercionPass, spec: ToolSpec, result: Any) -> Any:
    """Return content whose structured content is the exact value of the spec's return type."""
    from neuroscript.coercion.content import Content  # few results need it

    is_any = spec.return_type is ArgType.ANY and spec.returns is None
    if type(result) is not Content or result.structured is UNSET or is_any:
        return _fit_value(walk, spec, result)
    walk.limited(coerce_value, ArgType.ANY, result, ROOT)
    structured = fit_result(walk, spec, result.data["structuredContent"])
    return result if walk.noted else Content(*result.blocks, structured=structured, meta=result.meta)


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
    resource: Resource | None = None,
    prompt: Prompt | None = None,
) -> ToolImplementation:
    """Return the tool for a function, derived from its annotations and docstring.

    Args:
        func: A function, coroutine function, generator, bound method, class method, partial or object with
            ``__call__``, with or without ``rt`` as its first parameter. It is not modified. Parameters that a partial
            has set are not arguments of the tool.
        group: The group of the tool.
        name: The name of the tool, if it differs from the function's.
        policy: The capabilities and conditions that the tool needs.
        description: What the tool does, instead of the summary of the docstring.
        resource: Serve the tool as this resource.
        prompt: Serve the tool as this prompt.

    Raises:
        SpecError: An annotation is not supported, or something else cannot be read; the message says what to use
            instead.
    """
    options = {"name": name, "policy": policy, "description": description, "when_to_use": when_to_use}
    require_options("tool", **options, category=category, examples=examples, func=func, group=group)
    from neuroscript.spec.signature import read  # not needed for tools with an explicit spec

    found = read(func)
    if name is None and not is_word(found.name.lower()):
        raise SpecError(found.name, ['this is not a valid tool name; give one, as in name="count"'])
    spec = ToolSpec(
        name or found.name,
        group,
        found.args,
        return_type=found.return_type,
        returns=found.returns,
        return_nullable=found.return_nullable,
        description=description or found.described.summary,
        return_help=found.described.returns,
        error_conditions=found.described.raises,
        variadic=found.variadic,
        stream=found.stream,
        when_to_use=when_to_use,
        category=category,
        examples=examples,
        resource=resource,
        prompt=prompt,
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
"""The expected form of each option of `tool`."""


def require_options(subject: str, **options: Any) -> None:
    """Raise a `SpecError` for options that do not have the form in `OPTIONS`."""
    require(subject, **{name: (value, OPTIONS[name]) for name, value in options.items()})


from_function = tool
"""An alias of `tool`, consistent with `from_code` and the importers."""
