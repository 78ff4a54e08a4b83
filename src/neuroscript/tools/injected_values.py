"""What a function gets for arguments that no caller gives: taken in the call, checked, and held to the policy.

Source: issue "Authoring", injected arguments; seed-systems.md rows AH-13, AH-70.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.constraints import ABSENT, absent, further, given
from neuroscript.coercion.context import LAX, ROOT, Walk, type_name
from neuroscript.coercion.problems import Rules, problems_of
from neuroscript.coercion.rule_text import expected
from neuroscript.coercion.values import copied
from neuroscript.errors import LISTED, UNSET, ArgumentError, CallError, LentError, Problem, ToolFailed
from neuroscript.io.text import shown
from neuroscript.policy.templates import Template
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.injection_sources import Lacking, Late, Resolver

SecretValues = Callable[[ToolSpec, Sequence[Any]], Iterable[Any]]
"""Gives the secret ones of the values of a spec."""

WHOSE: Final = "its host gives this argument"
"""What a caller is told, who can do nothing about it."""


def exact_of(arg: ArgSpec, value: object, many: bool) -> tuple[Any, list[Problem | str]]:
    """Return the exact value of an argument, and what is wrong with it; `UNSET` stands for none that is given."""
    walk = Walk(LAX)
    faults: list[Problem | str] = []
    rules = Rules((arg,), further=arg) if many else Rules(whole=arg)
    if many:
        items = list(value) if isinstance(value, (list, tuple)) else [] if value is UNSET else [value]
        exact: Any = [walk.limited(further, arg, each, ((None, arg.name), index)) for index, each in enumerate(items)]
        faults = ["at least one value is needed"] if arg.required and not items else []
    else:
        exact = absent(walk, arg, ROOT) if value is UNSET else walk.limited(given, arg, value, ROOT)
    return None if exact is ABSENT else exact, [*faults, *problems_of(walk, rules)[:LISTED]]


@attrs.frozen(eq=False, repr=False)
class Filling:
    """Arguments that no caller sees.

    Attributes:
        spec: The tool with them.
        fixed: The exact value of each that always has the same, by its place.
        late: Where each of the others comes from, by its place.
        templates: The needs that are known in a call alone.
        others: The needs in which none of the late ones is named.
        secret_values: Gives the secret ones of the values of a spec.
    """

    spec: ToolSpec
    fixed: dict[int, Any]
    late: dict[int, Late]
    templates: tuple[Template, ...]
    others: tuple[Template, ...]
    secret_values: SecretValues

    @property
    def last(self) -> int:
        """How many arguments stand before those of a variadic tool."""
        return len(self.spec.args) - self.spec.variadic

    def is_tail(self, index: int) -> bool:
        """Tell whether an argument is the variadic one."""
        return self.spec.variadic and index == self.last

    @property
    def has_tail(self) -> bool:
        """Whether the variadic argument is one of them."""
        return self.spec.variadic and (self.last in self.fixed or self.last in self.late)

    def secrets(self) -> tuple[Any, ...]:
        """Return the values that are secret, or what is secret in them, of those that are known."""
        return tuple(each for index, value in self.fixed.items() for each in self._secret_in(index, value))

    def _secret_in(self, index: int, value: Any) -> Iterable[Any]:
        only = attrs.evolve(self.spec, args=(self.spec.args[index],), variadic=False, examples=(), schema="")
        return [each for item in self._items(index, value) for each in self.secret_values(only, [item])]

    def _items(self, index: int, value: Any) -> list[Any]:
        return value if self.is_tail(index) else [value]

    def values(self, rt: Any, visible: Sequence[Any]) -> list[Any]:
        """Return all values for the function, those that no caller gave fresh.

        Raises:
            ToolFailed: The host gives nothing for one of them, or nothing that fits.
            PolicyError: With these values the tool needs what it may not.
        """
        if not self.late:
            return [*self._woven(self.fixed, visible)]
        return self._settled(rt, {index: self._asked(index, rt) for index in self.late}, visible)

    async def awaited(self, rt: Any, visible: Sequence[Any]) -> list[Any]:
        """Return the same for a function that is awaited; what a resolver gives may have to be awaited too."""
        found = {}
        for index in self.late:
            raw = self._asked(index, rt)
            if isinstance(self.late[index], Resolver) and inspect.isawaitable(raw):
                try:
                    raw = await raw
                except Exception as error:
                    raise self._failure(index, error) from error
            found[index] = raw
        return self._settled(rt, found, visible)

    def _asked(self, index: int, rt: Any) -> Any:
        """Return what a source gives, or the `Lacking` that says what is not there."""
        try:
            return self.late[index].found(rt)
        except Lacking as lacking:
            return lacking
        except Exception as error:
            raise self._failure(index, error) from error

    def _failure(self, index: int, error: Exception) -> Exception:
        """Return what is told of a source that raised something; what it says to a caller on purpose stays."""
        if isinstance(error, (CallError, LentError)):
            return error
        return self._refusal("inject.failed", [(index, f"its source failed ({type_name(error)})")])

    def _refusal(self, code: str, faults: Iterable[tuple[int, str]]) -> ToolFailed:
        texts = [f"{shown(self.spec.args[index].name)}: {fault} ({WHOSE})" for index, fault in faults]
        return ToolFailed("; ".join(texts), code=code, retry="host")

    def _settled(self, rt: Any, found: dict[int, Any], visible: Sequence[Any]) -> list[Any]:
        """Return all values, where those that were found fit and the tool may do what they lead to."""
        fresh = dict(self.fixed)
        faults: list[tuple[int, str]] = []
        for index, raw in found.items():
            fresh[index], problems = self._fitted(index, raw)
            faults.extend((index, each) for each in problems)
        if faults:
            is_there = not any(isinstance(raw, Lacking) for raw in found.values())
            raise self._refusal("inject.invalid" if is_there else "inject.missing", faults)
        self._hide(rt, fresh)
        values = [*self._woven(fresh, visible)]
        self._hold_to_needs(rt, values)
        return values

    def _fitted(self, index: int, raw: Any) -> tuple[Any, list[str]]:
        """Return the exact value of what was found, and what is wrong with it."""
        arg = self.spec.args[index]
        if isinstance(raw, Lacking):
            return None, [f"expected {expected(arg)}, got nothing, for {raw}"]
        try:
            exact, problems = exact_of(arg, raw, self.is_tail(index))
            return exact, [*map(_fault, problems)]
        except Exception as error:  # it was changed while it was read
            raise self._failure(index, error) from error
        finally:
            if inspect.iscoroutine(raw):  # which nobody is going to await
                raw.close()

    def _hide(self, rt: Any, fresh: Mapping[int, Any]) -> None:
        """Let nobody see the secret ones of the values from now on."""
        hide = getattr(rt, "_hide", None)
        for index in self.late:
            if hide is not None and self.spec.args[index].holds_secret:
                for each in self._secret_in(index, fresh[index]):
                    hide(each)

    def _hold_to_needs(self, rt: Any, values: Sequence[Any]) -> None:
        """Hold the tool to what it needs for these values; raise a `PolicyError` where it may not have that."""
        try:
            needs = [need for template in self.templates for need in template.fill(values)]
        except ArgumentError as error:
            places = {arg.name: index for index, arg in enumerate(self.spec.args)}
            faults = [(places[each.where.partition("[")[0]], _fault(each)) for each in error.problems]
            raise self._refusal("inject.invalid", faults) from None
        for need in needs:
            rt.require(need)
        confine = getattr(rt, "_confine", None)
        if confine is not None and needs:
            confine(needs, [need for template in self.others for need in template.fill(values)])

    def _woven(self, fresh: Mapping[int, Any], visible: Iterable[Any]) -> Iterator[Any]:
        rest = iter(visible)
        for index in range(self.last):
            yield copied(fresh[index]) if index in fresh else next(rest)
        yield from copied(fresh[self.last]) if self.has_tail else rest


def _fault(problem: Problem | str) -> str:
    """Return what is wrong, without the place in the value: its keys are the host's."""
    return problem if isinstance(problem, str) else f"expected {problem.expected}, got {problem.got}"


def filled(func: Callable[..., Any], filling: Filling, is_coroutine: bool) -> Callable[..., Any]:
    """Return a function of the visible arguments alone."""
    if is_coroutine:

        async def awaited(rt: Any, *values: Any) -> Any:
            return await func(rt, *await filling.awaited(rt, values))

        return awaited

    def called(rt: Any, *values: Any) -> Any:
        return func(rt, *filling.values(rt, values))

    return called
