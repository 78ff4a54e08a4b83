"""Injected arguments: the host supplies their values, and callers can neither see nor set them.

Constant values are also filled into the needs of the tool. Tools are handled as generic attrs classes, so that this
module does not depend on the tool class; `injected_values` resolves the values in each call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.errors import UNSET, ArgumentError, SpecError
from neuroscript.io.near_names import near
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.capabilities import parts
from neuroscript.policy.scopes import literal
from neuroscript.policy.templates import Template, argument_in, scope_texts, slots
from neuroscript.spec.tool_spec import ArgSpec, Example, ToolSpec
from neuroscript.tools.injected_values import (
    InjectedArguments,
    SecretValues,
    coerce_injected,
    fill_function,
    instance_problems,
)
from neuroscript.tools.injection_sources import Late, Resolver, Secret, Source, Value

OF_ARGUMENTS: Final = ("arg.", "coercion.", "limit.")
"""The prefixes of error codes that depend only on arguments."""


@attrs.frozen(eq=False, repr=False)
class Injection:
    """The record of a tool's injected arguments.

    Attributes:
        base: The tool with all arguments.
        sources: The source of each injected argument, by name.
        needs: The needs of the tool after the injection.
    """

    base: Any
    sources: Mapping[str, Source]
    needs: tuple[str, ...]


def with_injected(tool: Any, sources: Mapping[str, Source], secret_values: SecretValues) -> Any:
    """Return a tool without some of its arguments; *sources* supply their values in each call.

    Raises:
        SpecError: With every problem: an unknown argument, an invalid value, or an async resolver for a tool with a
            regular function.
    """
    if not sources:
        return tool
    spec: ToolSpec = tool.spec
    fixed = _bound(tool, sources)
    late = {index: source for index, arg in enumerate(spec.args) if isinstance(source := sources.get(arg.name), Late)}
    filling = InjectedArguments(spec, fixed, late, *_templates(tool, late), secret_values, tool.classes)
    policy = attrs.evolve(tool.policy, capabilities=tuple(_needs(tool.policy.capabilities, filling)))
    return attrs.evolve(
        tool,
        spec=attrs.evolve(
            spec,
            args=tuple(arg for arg in spec.args if arg.name not in sources),
            schema=_schema_without(spec, sources),
            variadic=spec.variadic and not filling.has_tail,
            examples=tuple(filter(None, (_example(each, filling) for each in spec.examples))),
        ),
        func=fill_function(tool.func, filling, tool.is_coroutine),
        policy=policy,
        secrets=(*tool.secrets, *filling.secrets()),
        injection=Injection(tool, dict(sources), policy.capabilities),
    )


def with_exposed(tool: Any, names: Sequence[str], secret_values: SecretValues) -> Any:
    """Return a tool in which callers set these arguments again. Other changes since the injection are preserved.

    Raises:
        SpecError: One of them is not injected, or there are no names.
    """
    sources = injected_sources(tool)
    faults = [
        f"{quote_untrusted(name)} is not injected{_alike(name, sources)}" for name in names if name not in sources
    ]
    if faults or not names:
        raise SpecError(tool.name, faults or ["name the arguments to restore"])
    while tool.injection is not None:
        tool = _base(tool)
    left = {name: source for name, source in sources.items() if name not in names}
    return with_injected(tool, left, secret_values)


def injected_sources(tool: Any) -> dict[str, Source]:
    """Return the source of each injected argument, by name."""
    if tool.injection is None:
        return {}
    return {**injected_sources(tool.injection.base), **tool.injection.sources}


def _base(tool: Any) -> Any:
    """Return the tool before injection, with its current name, descriptions and policy.

    Needs that were changed in the meantime are all preserved, because some may refer to restored arguments.
    """
    base, now = tool.injection.base, tool.policy
    needs = base.policy.capabilities
    if now.capabilities != tool.injection.needs:
        needs = (*now.capabilities, *needs)
    of_base = {name: getattr(base.spec, name) for name in ("args", "variadic", "examples", "schema")}
    spec = attrs.evolve(tool.spec, **of_base)
    policy = attrs.evolve(now, capabilities=needs)
    return base if (spec, policy) == (base.spec, base.policy) else attrs.evolve(base, spec=spec, policy=policy)


def _schema_without(spec: ToolSpec, names: Mapping[str, Any]) -> str:
    """Return the imported schema without some of the arguments."""
    if not spec.schema:
        return ""
    from neuroscript.coercion.schema_inspection import without_properties

    schema = without_properties(spec.schema, names)
    if schema is None:
        text = "its schema constrains several arguments together, so none can be injected"
        raise SpecError(spec.full_name, [text])
    return schema


def _bound(tool: Any, sources: Mapping[str, Any]) -> dict[int, Any]:
    """Return the exact value of each constant argument, by position; a list for a variadic one."""
    spec: ToolSpec = tool.spec
    names, gone = [arg.name for arg in spec.args], injected_sources(tool)
    faults = [_unknown(name, names, gone) for name in sources if name not in names]
    found: dict[int, Any] = {}
    for index, arg in enumerate(spec.args):
        if arg.name not in sources:
            continue
        source = sources[arg.name]
        faults.extend(_faults(arg, source, tool.is_coroutine))
        if isinstance(source, Value):
            many = spec.variadic and index == len(names) - 1
            found[index], problems = coerce_injected(arg, source.value, many)
            problems = problems or instance_problems(arg, found[index], many)
            faults.extend(f"{arg.name}: {each}" for each in problems)
    if faults:
        raise SpecError(spec.full_name, faults)
    return found


def _unknown(name: str, names: Sequence[str], gone: Mapping[str, Source]) -> str:
    if name in gone:
        return f"{quote_untrusted(name)} is already injected; restore it first"
    return f"it has no argument {quote_untrusted(name)}{_alike(name, names)}"


def _alike(name: str, names: Iterable[str]) -> str:
    alike = near(name, names)
    return f" (did you mean {' or '.join(alike)}?)" if alike else ""


def _faults(arg: ArgSpec, source: object, is_coroutine: bool) -> Iterator[str]:
    if not isinstance(source, Source):
        yield f"{arg.name}: expected a source, such as Value(…) or Variable(…), got {type_name(source)}"
    elif isinstance(source, Resolver) and source.is_coroutine and not is_coroutine:
        yield f"{arg.name}: an async resolver requires a tool with an async function"


def _templates(tool: Any, places: Iterable[int]) -> tuple[tuple[Template, ...], tuple[Template, ...]]:
    """Return the templates of needs that depend on values known only during a call, and the other templates."""
    names = {arg.name: index for index, arg in enumerate(tool.spec.args)}
    found: tuple[list[Template], list[Template]] = ([], [])
    for text, template in zip(tool.policy.capabilities, tool.templates, strict=True):
        named = {names[argument_in(name, names)] for scope in parts(text)[2] for _, name in slots(scope) if name}
        found[named.isdisjoint(places)].append(template)
    return tuple(found[0]), tuple(found[1])


# Examples and needs without the injected arguments


def _example(example: Example, filling: InjectedArguments) -> Example | None:
    """Return an example without these arguments, or None if it states values for them that may differ.

    The result of a call is unknown if one of its values is.
    """
    args, fixed, last = filling.spec.args, filling.fixed, filling.last
    hidden = {*fixed, *filling.late}
    for index in hidden:
        exact, faults = coerce_injected(args[index], _said(filling, example.args, index), index == last)
        if faults or (index in fixed and ascii(exact) != ascii(fixed[index])):
            return None
    if filling.late and example.error and not example.error.startswith(OF_ARGUMENTS):
        return None
    result = UNSET if filling.late else example.result
    if isinstance(example.args, Mapping):
        names = {args[index].name for index in hidden}
        left = {name: each for name, each in example.args.items() if name not in names}
        return attrs.evolve(example, args=left, result=result)
    kept = [each for index, each in enumerate(example.args) if min(index, last) not in hidden]
    return attrs.evolve(example, args=tuple(kept), result=result)


def _said(filling: InjectedArguments, given: Sequence[Any] | Mapping[str, Any], index: int) -> Any:
    """Return the value of an argument in an example, or `UNSET`; for a variadic argument, all of its values."""
    if isinstance(given, Mapping):
        return given.get(filling.spec.args[index].name, UNSET)
    return given[index:] if filling.is_tail(index) else [*given[index : index + 1], UNSET][0]


def _needs(texts: Iterable[str], filling: InjectedArguments) -> Iterator[str]:
    """Yield the updated needs of a tool, and those of its sources."""
    for text in texts:
        yield from _need(text, filling)
    for source in filling.late.values():
        if isinstance(source, Secret):
            yield f"secret:read:{literal(source.name)}"


def _need(text: str, filling: InjectedArguments) -> Iterator[str]:
    """Yield the updated forms of a need: constants are filled in, and ``*`` replaces values that are not yet known.

    An empty slice yields nothing.
    """
    resource, verbs, scopes = parts(text)
    head = f"{resource}:{','.join(verbs)}"
    if not scopes:
        yield head
    for scope in scopes:
        for each in _scopes(scope, filling):
            yield head if each is None else f"{head}:{each}"


def _scopes(scope: str, filling: InjectedArguments) -> Iterator[str | None]:
    """Yield each scope with its values filled in; None means the whole resource."""
    texts: list[str | None] = [""]
    for text, name in slots(scope):
        pieces = [text] if name is None else _pieces(name, filling)
        texts = [None if None in (before, each) else f"{before}{each}" for before in texts for each in pieces]
    yield from (text or None for text in texts)


def _pieces(name: str, filling: InjectedArguments) -> list[str | None]:
    """Return the replacements for a placeholder: its values, or the placeholder itself if callers fill it."""
    places = {arg.name: index for index, arg in enumerate(filling.spec.args)}
    index = places[argument_in(name, places)]
    if index in filling.late:
        return ["*"]
    if index not in filling.fixed:
        return [f"{{{name}}}"]
    spec, value = filling.spec, filling.fixed[index]
    values = [*[None] * index, *(value if filling.is_tail(index) else [value])]
    try:
        return scope_texts(name, {arg.name: arg for arg in spec.args}, spec.variadic, values)
    except ArgumentError as error:
        expected = error.problems[0].expected
        raise SpecError(spec.full_name, [f"{spec.args[index].name}: expected {expected}"]) from None
