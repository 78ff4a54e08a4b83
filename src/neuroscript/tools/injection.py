"""Arguments that no caller sees or sets, for their host gives them: a tool without them.

What is known when the tool is made goes into its needs. A tool is taken as `attrs` sees it, so that this stands below
the tools themselves; `filling` has what its function gets.

Source: issue "Authoring", injected arguments; seed-systems.md rows AH-9 to AH-17, AH-47, AH-70.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.types import ELEMENTS
from neuroscript.errors import UNSET, SpecError
from neuroscript.io.near_names import near
from neuroscript.io.text import shown
from neuroscript.policy.capabilities import parts
from neuroscript.policy.scopes import Unfit, literal
from neuroscript.policy.templates import FITTING, Template, place_of, slots
from neuroscript.spec.tool_spec import ArgSpec, Example, ToolSpec
from neuroscript.tools.injected_values import Filling, SecretValues, exact_of, filled
from neuroscript.tools.injection_sources import Late, Resolver, Secret, Source, Value

OF_ARGUMENTS: Final = ("arg.", "coercion.", "limit.")
"""How the codes of errors begin that arguments alone make."""


@attrs.frozen(eq=False, repr=False)
class Injection:
    """How a tool came to have fewer arguments.

    Attributes:
        base: The tool with all of them.
        sources: By the name of each that was taken out, where it comes from.
        needs: What the tool needed from then on.
    """

    base: Any
    sources: Mapping[str, Source]
    needs: tuple[str, ...]


def injecting(tool: Any, sources: Mapping[str, Source], secret_values: SecretValues) -> Any:
    """Return a tool without some of its arguments; its function gets for them what *sources* give in each call.

    Raises:
        SpecError: With all that is wrong: it has no such argument, a value does not fit, an argument is made into an
            instance of a class, or a coroutine function is to give an argument of a function that is none.
    """
    if not sources:
        return tool
    spec: ToolSpec = tool.spec
    fixed = _bound(tool, sources)
    late = {index: source for index, arg in enumerate(spec.args) if isinstance(source := sources.get(arg.name), Late)}
    filling = Filling(spec, fixed, late, *_templates(tool, late), secret_values)
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
        func=filled(tool.func, filling, tool.is_coroutine),
        policy=policy,
        secrets=(*tool.secrets, *filling.secrets()),
        injection=Injection(tool, dict(sources), policy.capabilities),
    )


def restoring(tool: Any, names: Sequence[str], secret_values: SecretValues) -> Any:
    """Return a tool in which callers set these arguments again; other changes that were made since then stay.

    Raises:
        SpecError: One of them is not injected, or none is named.
    """
    sources = injected(tool)
    faults = [f"{shown(name)} is not injected{_alike(name, sources)}" for name in names if name not in sources]
    if faults or not names:
        raise SpecError(tool.name, faults or ["name the arguments that callers are to set again"])
    while tool.injection is not None:
        tool = _base(tool)
    left = {name: source for name, source in sources.items() if name not in names}
    return injecting(tool, left, secret_values)


def injected(tool: Any) -> dict[str, Source]:
    """Return where each argument comes from that a tool does not show, by name."""
    if tool.injection is None:
        return {}
    return {**injected(tool.injection.base), **tool.injection.sources}


def _base(tool: Any) -> Any:
    """Return what a tool was before, with the name, the words and the policy that it has by now.

    Of needs that were changed since then none is lost, for some may name what callers set again.
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
    """Return the schema that others wrote, without some of the arguments."""
    if not spec.schema:
        return ""
    from neuroscript.coercion.json_schema import without

    schema = without(spec.schema, names)
    if schema is None:
        text = "its schema asks something of several arguments together; none can be injected"
        raise SpecError(spec.full_name, [text])
    return schema


def _bound(tool: Any, sources: Mapping[str, Any]) -> dict[int, Any]:
    """Return the exact value of each argument that always has the same, by its place; of a variadic one a list."""
    spec: ToolSpec = tool.spec
    names, gone = [arg.name for arg in spec.args], injected(tool)
    faults = [_unknown(name, names, gone) for name in sources if name not in names]
    found: dict[int, Any] = {}
    for index, arg in enumerate(spec.args):
        if arg.name not in sources:
            continue
        source = sources[arg.name]
        faults.extend(_faults(arg, source, tool.is_coroutine))
        if isinstance(source, Value) and arg.cls is None:
            found[index], problems = exact_of(arg, source.value, spec.variadic and index == len(names) - 1)
            faults.extend(f"{arg.name}: {each}" for each in problems)
    if faults:
        raise SpecError(spec.full_name, faults)
    return found


def _unknown(name: str, names: Sequence[str], gone: Mapping[str, Source]) -> str:
    if name in gone:
        return f"{shown(name)} is injected already; restore it first"
    return f"it has no argument {shown(name)}{_alike(name, names)}"


def _alike(name: str, names: Iterable[str]) -> str:
    alike = near(name, names)
    return f" (did you mean {' or '.join(alike)}?)" if alike else ""


def _faults(arg: ArgSpec, source: object, is_coroutine: bool) -> Iterator[str]:
    if not isinstance(source, Source):
        yield f"{arg.name}: expected a source, such as Value(…) or Variable(…), got {type_name(source)}"
    elif arg.cls is not None:
        yield f"{arg.name} is made into a {arg.cls.__name__}; it can not be hidden"
    elif isinstance(source, Resolver) and source.is_coroutine and not is_coroutine:
        yield f"{arg.name}: a resolver that is awaited is for a tool whose function is a coroutine function"


def _templates(tool: Any, places: Iterable[int]) -> tuple[tuple[Template, ...], tuple[Template, ...]]:
    """Return the templates of the needs that are known in a call alone, and those of the others."""
    names = {arg.name: index for index, arg in enumerate(tool.spec.args)}
    found: tuple[list[Template], list[Template]] = ([], [])
    for text, template in zip(tool.policy.capabilities, tool.templates, strict=True):
        named = {names[_argument(name, names)] for scope in parts(text)[2] for _, name in slots(scope) if name}
        found[named.isdisjoint(places)].append(template)
    return tuple(found[0]), tuple(found[1])


def _argument(name: str, known: Mapping[str, Any]) -> str:
    """Return the argument that a place of a template names; an argument's own name may hold a dot."""
    return name if name in known else name.rpartition(".")[0]


# What is left of examples and needs


def _example(example: Example, filling: Filling) -> Example | None:
    """Return an example without these arguments; None where it says something of them that may not be so.

    What comes of a call is not known where a value of it is not.
    """
    args, fixed, last = filling.spec.args, filling.fixed, filling.last
    hidden = {*fixed, *filling.late}
    for index in hidden:
        exact, faults = exact_of(args[index], _said(filling, example.args, index), index == last)
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


def _said(filling: Filling, given: Sequence[Any] | Mapping[str, Any], index: int) -> Any:
    """Return what an example says of an argument, or `UNSET`; of a variadic one all that it says."""
    if isinstance(given, Mapping):
        return given.get(filling.spec.args[index].name, UNSET)
    return given[index:] if filling.is_tail(index) else [*given[index : index + 1], UNSET][0]


def _needs(texts: Iterable[str], filling: Filling) -> Iterator[str]:
    """Yield what stands for the needs of a tool, and those of its sources."""
    for text in texts:
        yield from _need(text, filling)
    for source in filling.late.values():
        if isinstance(source, Secret):
            yield f"secret:read:{literal(source.name)}"


def _need(text: str, filling: Filling) -> Iterator[str]:
    """Yield what stands for a need: known values are filled in, and ``*`` stands for those that are not.

    A slice of no elements leaves none.
    """
    resource, verbs, scopes = parts(text)
    head = f"{resource}:{','.join(verbs)}"
    if not scopes:
        yield head
    for scope in scopes:
        for each in _scopes(scope, filling):
            yield head if each is None else f"{head}:{each}"


def _scopes(scope: str, filling: Filling) -> Iterator[str | None]:
    """Yield a scope with the values in it, None for the whole resource, as a template is filled."""
    texts: list[str | None] = [""]
    for text, name in slots(scope):
        pieces = [text] if name is None else _pieces(name, filling)
        texts = [None if None in (before, each) else f"{before}{each}" for before in texts for each in pieces]
    yield from (text or None for text in texts)


def _pieces(name: str, filling: Filling) -> list[str | None]:
    """Return what stands for a place of a template: its values, or the place itself where callers fill it."""
    places = {arg.name: index for index, arg in enumerate(filling.spec.args)}
    known = _argument(name, places)
    index = places[known]
    if index in filling.late:
        return ["*"]
    if index not in filling.fixed:
        return [f"{{{name}}}"]
    arg, value = filling.spec.args[index], filling.fixed[index]
    many = filling.is_tail(index) or arg.type in ELEMENTS
    items = value if many and value is not None else [value]
    return [_scope_text(filling.spec, arg, each, known != name) for each in items]


def _scope_text(spec: ToolSpec, arg: ArgSpec, value: Any, is_place: bool) -> str | None:
    """Return a value as it stands in a scope, escaped, so that it is read as what it is."""
    if value is None:
        return None
    try:
        return place_of(value) if is_place else FITTING[arg.element](value)
    except Unfit as error:
        raise SpecError(spec.full_name, [f"{arg.name}: expected {error}"]) from None
