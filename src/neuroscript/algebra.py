"""Tools made of others: another name, another policy, arguments that no caller sees; the function stays what it is.

A tool is taken as `attrs` sees it, so that this stands below the tools themselves.

Source: issue "Plugins", toolset algebra; peers.md row 1f.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.argtypes import ELEMENTS
from neuroscript.capability import parts
from neuroscript.coercion import ABSENT, absent, further, given
from neuroscript.display import shown
from neuroscript.errors import UNSET, RegistryError, SpecError
from neuroscript.names import canonical, is_word
from neuroscript.needs import ToolPolicy
from neuroscript.scopes import Unfit, is_tool_pattern, tool_matcher
from neuroscript.spec import ArgSpec, Example, ToolSpec
from neuroscript.templates import FITTING, place_of, slots
from neuroscript.values import copied
from neuroscript.walk import LAX, ROOT, Walk

TEXTS: Final = ("description", "when_to_use", "return_help", "category", "error_conditions", "deprecated")
"""Fields of a spec that are words alone."""

SecretValues = Callable[[ToolSpec, Sequence[Any]], Iterable[Any]]


def matching(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a canonical name matches a glob, in which ``*`` crosses dots, as policies have it.

    Raises:
        SpecError: It is no such pattern.
    """
    glob = canonical(pattern) if isinstance(pattern, str) else ""
    if not is_tool_pattern(glob):
        raise SpecError("pattern", [f"{shown(str(pattern))} matches no tool; write a name, or a pattern such as fs.*"])
    return tool_matcher(glob)


def unique(names: Iterable[tuple[str, str]], where: str) -> None:
    """Raise a `RegistryError` where two tools would have one name.

    Args:
        names: What each was called, and what it is to be called.
        where: The toolset, for the error.
    """
    taken: dict[str, str] = {}
    for old, new in names:
        other = taken.setdefault(new, old)
        if other != old:
            raise RegistryError(f"{where}: {other} and {old} would both be called {new}")


def renamed(tool: Any, name: str) -> Any:
    """Return a tool under another canonical name, or raise a `SpecError` where that is none."""
    group, _, word = name.rpartition(".")
    return attrs.evolve(tool, spec=attrs.evolve(tool.spec, group=group, name=word))


def full_name(tool: Any, new: str) -> str:
    """Return the canonical name that *new* gives to a tool: a whole one, or a word in the group that it has."""
    name = canonical(new) if isinstance(new, str) else ""
    if not all(map(is_word, name.split("."))):
        raise SpecError(tool.name, [f"{shown(str(new))} is no name of a tool"])
    return name if "." in name else f"{tool.spec.group}.{name}"


def with_policy(tool: Any, changes: Mapping[str, Any]) -> Any:
    """Return a tool with other needs; an unknown field is a `SpecError`."""
    unknown = [name for name in changes if name not in {field.name for field in attrs.fields(ToolPolicy)}]
    if unknown:
        raise SpecError(tool.name, [f"{', '.join(map(shown, unknown))}: a ToolPolicy has no such field"])
    return attrs.evolve(tool, policy=attrs.evolve(tool.policy, **changes))


def described(tool: Any, texts: Mapping[str, str]) -> Any:
    """Return a tool with other words of description; an unknown field is a `SpecError`."""
    unknown = [name for name in texts if name not in TEXTS]
    if unknown:
        raise SpecError(tool.name, [f"{', '.join(map(shown, unknown))}: only {', '.join(TEXTS)} can be described"])
    return attrs.evolve(tool, spec=attrs.evolve(tool.spec, **texts))


def hiding(tool: Any, values: Mapping[str, Any], secret_values: SecretValues) -> Any:
    """Return a tool without some of its arguments; its function gets *values* for them, as exact values.

    Args:
        secret_values: Gives the secret ones of the values of a spec.

    Raises:
        SpecError: It has no such argument, a value does not fit, or an argument is made into an instance of a class.
    """
    spec: ToolSpec = tool.spec
    hidden = _Hidden(spec, _bound(spec, values))
    left = tuple(arg for arg in spec.args if arg.name not in values)
    needs = tuple(dict.fromkeys(need for text in tool.policy.capabilities for need in hidden.needs(text)))
    return attrs.evolve(
        tool,
        spec=attrs.evolve(
            spec,
            args=left,
            variadic=spec.variadic and hidden.tail is None,
            examples=tuple(filter(None, map(hidden.example, spec.examples))),
        ),
        func=_filled(tool.func, hidden, tool.is_coroutine),
        policy=attrs.evolve(tool.policy, capabilities=needs),
        secrets=(*tool.secrets, *hidden.secrets(secret_values)),
    )


def _bound(spec: ToolSpec, values: Mapping[str, Any]) -> dict[int, Any]:
    """Return the exact value of each hidden argument by its place; of a variadic one a list of them."""
    places = {arg.name: index for index, arg in enumerate(spec.args)}
    faults = [f"it has no argument {shown(name)}" for name in values if name not in places]
    found: dict[int, Any] = {}
    for name, index in places.items():
        if name in values:
            arg = spec.args[index]
            value, problems = _exact(arg, values[name], spec.variadic and index == len(spec.args) - 1)
            faults.extend(
                problems if arg.cls is None else [f"{name} is made into a {arg.cls.__name__}; it can not be hidden"]
            )
            found[index] = value
    if faults:
        raise SpecError(spec.full_name, faults)
    return found


def _exact(arg: ArgSpec, value: object, many: bool) -> tuple[Any, list[str]]:
    """Return the exact value of an argument, and what is wrong with it; `UNSET` stands for none that is given."""
    walk = Walk(LAX)
    if many and value is not UNSET:
        items = list(value) if isinstance(value, (list, tuple)) else [value]
        exact: Any = [walk.limited(further, arg, each, (ROOT, index)) for index, each in enumerate(items)]
        faults = ["at least one value is needed"] if arg.required and not items else []
    elif many:
        exact, faults = [], ["at least one value is needed"] if arg.required else []
    else:
        exact = absent(walk, arg, ROOT) if value is UNSET else walk.limited(given, arg, value, ROOT)
        faults = []
    return None if exact is ABSENT else exact, [f"{arg.name}: {each}" for each in (*faults, *walk.problems())]


@attrs.frozen(eq=False, repr=False)
class _Hidden:
    """Arguments that no caller sees.

    Attributes:
        spec: The tool as it was.
        values: The exact value of each by its place.
    """

    spec: ToolSpec
    values: dict[int, Any]

    @property
    def fixed(self) -> int:
        """How many arguments stand before those of a variadic tool."""
        return len(self.spec.args) - self.spec.variadic

    @property
    def tail(self) -> list[Any] | None:
        """The hidden values of a variadic argument, or None."""
        return self.values.get(self.fixed)

    def secrets(self, secret_values: SecretValues) -> tuple[Any, ...]:
        """Return the values of those that are secret, or what is secret in them."""
        args = tuple(self.spec.args[index] for index in self.values)
        values = [value for index, value in self.values.items() if index != self.fixed]
        return tuple(secret_values(attrs.evolve(self.spec, args=args, variadic=False), [*values, *(self.tail or ())]))

    def woven(self, visible: Iterable[Any]) -> Iterator[Any]:
        """Yield all values for the function, those that are hidden fresh."""
        rest = iter(visible)
        for index in range(self.fixed):
            yield copied(self.values[index]) if index in self.values else next(rest)
        yield from rest if self.tail is None else copied(self.tail)

    def example(self, example: Example) -> Example | None:
        """Return an example without the hidden arguments; None where it says something else of one of them."""
        for index, value in self.values.items():
            exact, faults = _exact(self.spec.args[index], self._said(example.args, index), index == self.fixed)
            if faults or ascii(exact) != ascii(value):
                return None
        names = {self.spec.args[index].name for index in self.values}
        if isinstance(example.args, Mapping):
            return attrs.evolve(example, args={name: each for name, each in example.args.items() if name not in names})
        kept = [each for index, each in enumerate(example.args) if min(index, self.fixed) not in self.values]
        return attrs.evolve(example, args=tuple(kept))

    def _said(self, args: Sequence[Any] | Mapping[str, Any], index: int) -> Any:
        if isinstance(args, Mapping):
            return args.get(self.spec.args[index].name, UNSET)
        return args[index:] if self.spec.variadic and index == self.fixed else [*args[index : index + 1], UNSET][0]

    def needs(self, text: str) -> Iterator[str]:
        """Yield what stands for a need when the values are known; a slice of no elements leaves none."""
        resource, verbs, scopes = parts(text)
        head = f"{resource}:{','.join(verbs)}"
        if not scopes:
            yield head
        for scope in scopes:
            for each in self._scopes(scope):
                yield head if each is None else f"{head}:{each}"

    def _scopes(self, scope: str) -> Iterator[str | None]:
        """Yield a scope with the values in it, None for the whole resource, as a template is filled."""
        texts: list[str | None] = [""]
        for piece, name in slots(scope):
            texts = [
                None if None in (text, each) else f"{text}{each}" for text in texts for each in self._piece(piece, name)
            ]
        yield from (text or None for text in texts)

    def _piece(self, piece: str, name: str | None) -> list[str | None]:
        if name is None:
            return [piece]
        place = {arg.name: index for index, arg in enumerate(self.spec.args)}
        known = name if name in place else name.rpartition(".")[0]
        if place[known] not in self.values:
            return [f"{{{name}}}"]
        index = place[known]
        arg, value = self.spec.args[index], self.values[index]
        many = (self.spec.variadic and index == self.fixed) or arg.type in ELEMENTS
        items = value if many and value is not None else [value]
        return [_scope_text(self.spec, arg, each, known != name) for each in items]


def _scope_text(spec: ToolSpec, arg: ArgSpec, value: Any, is_place: bool) -> str | None:
    """Return a value as it stands in a scope, escaped, so that it is read as what it is."""
    if value is None:
        return None
    try:
        return place_of(value) if is_place else FITTING[arg.element](value)
    except Unfit as error:
        raise SpecError(spec.full_name, [f"{arg.name}: expected {error}"]) from None


def _filled(func: Callable[..., Any], hidden: _Hidden, is_coroutine: bool) -> Callable[..., Any]:
    """Return a function of the visible arguments alone."""
    if is_coroutine:

        async def awaited(rt: Any, *values: Any) -> Any:
            return await func(rt, *hidden.woven(values))

        return awaited

    def called(rt: Any, *values: Any) -> Any:
        return func(rt, *hidden.woven(values))

    return called
