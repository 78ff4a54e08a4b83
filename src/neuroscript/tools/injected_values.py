"""Values of injected arguments at call time: resolved, coerced, and checked against the policy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard

import attrs

from neuroscript.coercion.constraints import (
    ABSENT,
    coerce_argument,
    coerce_present,
    coerce_trailing,
    default_argument,
)
from neuroscript.coercion.context import LAX, RESULT, ROOT, CoercionPass, type_name
from neuroscript.coercion.problems import Rules, problems_of
from neuroscript.coercion.rule_text import expected_text
from neuroscript.coercion.values import copy_exact
from neuroscript.errors import MAX_LISTED_PROBLEMS, UNSET, ArgumentError, CallError, HostError, Problem, ToolFailed
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.templates import Template
from neuroscript.spec.instances import maker_of, plain_default
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.injection_sources import Late, MissingValue, Resolver
from neuroscript.tools.instance_makers import NO_CLASSES, LoadClass, instance_makers

SecretValues = Callable[[ToolSpec, Sequence[Any]], Iterable[Any]]
"""Returns the secret values among the values of a spec."""

SET_BY_HOST: Final = "the host supplies this argument"
"""Tells the caller that only the host can fix the problem."""


def coerce_injected(arg: ArgSpec, value: object, many: bool) -> tuple[Any, list[Problem | str]]:
    """Return the exact value of an argument and its problems. `UNSET` means that there is no value.

    The host may pass instances of the classes in the spec, or plain values.
    """
    if value is not UNSET and (arg.cls is not None or arg.nested):
        value = [plain_default(arg, each) for each in value] if many and _is_list(value) else plain_default(arg, value)
    walk = CoercionPass(LAX)
    faults: list[Problem | str] = []
    rules = Rules((arg,), further=arg) if many else Rules(whole=arg)
    if many:
        items = list(value) if _is_list(value) else [] if value is UNSET else [value]
        exact: Any = [
            walk.limited(coerce_trailing, arg, each, ((None, arg.name), index)) for index, each in enumerate(items)
        ]
        faults = ["at least one value is required"] if arg.required and not items else []
    else:
        exact = default_argument(walk, arg, ROOT) if value is UNSET else walk.limited(coerce_argument, arg, value, ROOT)
    return None if exact is ABSENT else exact, [*faults, *problems_of(walk, rules)[:MAX_LISTED_PROBLEMS]]


def _is_list(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, (list, tuple))


def instance_problems(arg: ArgSpec, exact: Any, many: bool) -> list[Problem | str]:
    """Return the problems that the classes in a spec have with an exact value."""
    make = maker_of(arg, "")
    try:
        for each in exact if many and make is not None else [exact]:
            if make is not None:
                make(each)
    except ArgumentError as error:
        return [*error.problems]
    return []


@attrs.frozen(eq=False, repr=False)
class InjectedArguments:
    """The injected arguments of a tool.

    Attributes:
        spec: The full spec, including injected arguments.
        fixed: The exact values of arguments with a constant value, by position.
        late: The sources of the other arguments, by position.
        templates: The needs that depend on values known only during a call.
        others: The needs that do not.
        secret_values: Returns the secret values among the values of a spec.
        classes: What loads the classes that the spec does not name, by the name of the argument.
    """

    spec: ToolSpec
    fixed: dict[int, Any]
    late: dict[int, Late]
    templates: tuple[Template, ...]
    others: tuple[Template, ...]
    secret_values: SecretValues
    classes: Mapping[str, LoadClass] = NO_CLASSES
    _makers: Mapping[int, Callable[[Any], Any]] = attrs.field(init=False)

    @_makers.default
    def _find_makers(self) -> Mapping[int, Callable[[Any], Any]]:
        """Return what creates the instances in each injected argument that has some."""
        return instance_makers(self.spec, (*self.templates, *self.others), self.classes)

    @property
    def last(self) -> int:
        """The number of arguments before the variadic one."""
        return len(self.spec.args) - self.spec.variadic

    def is_tail(self, index: int) -> bool:
        """Return whether an argument is the variadic one."""
        return self.spec.variadic and index == self.last

    @property
    def has_tail(self) -> bool:
        """Whether the variadic argument is injected."""
        return self.spec.variadic and (self.last in self.fixed or self.last in self.late)

    def secrets(self) -> tuple[Any, ...]:
        """Return the secret values, or the secret parts of values, among the constants."""
        return tuple(each for index, value in self.fixed.items() for each in self._secret_in(index, value))

    def _secret_in(self, index: int, value: Any) -> Iterable[Any]:
        only = attrs.evolve(self.spec, args=(self.spec.args[index],), variadic=False, examples=(), schema="")
        return [each for item in self._items(index, value) for each in self.secret_values(only, [item])]

    def _items(self, index: int, value: Any) -> list[Any]:
        return value if self.is_tail(index) else [value]

    def values(self, rt: Any, visible: Sequence[Any]) -> list[Any]:
        """Return all values for the function, with fresh values for the injected arguments.

        Raises:
            ToolFailed: The host supplies no value for an argument, or an invalid one.
            PolicyError: With these values, the tool needs a capability that is not granted.
        """
        if not self.late:
            return [*self._woven(self.fixed, visible)]
        return self._settled(rt, {index: self._asked(index, rt) for index in self.late}, visible)

    async def awaited(self, rt: Any, visible: Sequence[Any]) -> list[Any]:
        """Return the same for a coroutine function; the result of a resolver is awaited if necessary."""
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
        """Return the value from a source, or the `MissingValue` exception that names what is missing."""
        try:
            return self.late[index].found(rt)
        except MissingValue as lacking:
            return lacking
        except Exception as error:
            raise self._failure(index, error) from error

    def _failure(self, index: int, error: Exception) -> Exception:
        """Return the error for a failed source. An error that the source raised for the caller is unchanged."""
        if isinstance(error, (CallError, HostError)):
            return error
        return self._refusal("inject.failed", [(index, f"its source failed ({type_name(error)})")])

    def _refusal(self, code: str, faults: Iterable[tuple[int, str]]) -> ToolFailed:
        texts = [f"{quote_untrusted(self.spec.args[index].name)}: {fault} ({SET_BY_HOST})" for index, fault in faults]
        return ToolFailed("; ".join(texts), code=code, retry="host")

    def _settled(self, rt: Any, found: dict[int, Any], visible: Sequence[Any]) -> list[Any]:
        """Return all values if the resolved ones are valid and the tool has the capabilities that they require."""
        fresh = dict(self.fixed)
        faults: list[tuple[int, str]] = []
        for index, raw in found.items():
            fresh[index], problems = self._fitted(index, raw)
            faults.extend((index, each) for each in problems)
        if faults:
            is_there = not any(isinstance(raw, MissingValue) for raw in found.values())
            raise self._refusal("inject.invalid" if is_there else "inject.missing", faults)
        self._hide(rt, fresh)
        if self.templates:
            self._hold_to_needs(rt, self._exact(fresh, visible))
        return [*self._woven(fresh, visible)]

    def _exact(self, fresh: Mapping[int, Any], visible: Iterable[Any]) -> list[Any]:
        """Return the exact value of each argument; the visible ones arrive as instances."""
        rest, found = iter(visible), []
        for index in range(self.last):
            found.append(fresh[index] if index in fresh else _exact_value(self._with_class(index), next(rest)))
        if self.has_tail:
            return [*found, *fresh[self.last]]
        return [*found, *(_exact_value(self._with_class(self.last), each) for each in rest)]

    def _with_class(self, index: int) -> ArgSpec:
        arg = self.spec.args[index]
        load = self.classes.get(arg.name)
        return arg if load is None else load() or arg

    def _fitted(self, index: int, raw: Any) -> tuple[Any, list[str]]:
        """Return the exact value of a resolved value, and its problems."""
        arg = self.spec.args[index]
        if isinstance(raw, MissingValue):
            return None, [f"expected {expected_text(arg)}, got nothing: {raw}"]
        try:
            exact, problems = coerce_injected(arg, raw, self.is_tail(index))
            problems = problems or instance_problems(arg, exact, self.is_tail(index))
            return exact, [*map(_fault, problems)]
        except Exception as error:  # another thread changed it during the coercion
            raise self._failure(index, error) from error
        finally:
            if inspect.iscoroutine(raw):  # close it, because nothing will await it
                raw.close()

    def _hide(self, rt: Any, fresh: Mapping[int, Any]) -> None:
        """Register the secret values for redaction."""
        hide = getattr(rt, "_hide", None)
        for index in self.late:
            if hide is not None and self.spec.args[index].holds_secret:
                for each in self._secret_in(index, fresh[index]):
                    hide(each)

    def _hold_to_needs(self, rt: Any, values: Sequence[Any]) -> None:
        """Check the capabilities that the tool needs for these values; raise a `PolicyError` if one is not granted."""
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
            yield self._instance(index, copy_exact(fresh[index])) if index in fresh else next(rest)
        yield from (self._instance(self.last, each) for each in copy_exact(fresh[self.last])) if self.has_tail else rest

    def _instance(self, index: int, exact: Any) -> Any:
        make = self._makers.get(index)
        try:
            return exact if make is None else make(exact)
        except ArgumentError as error:  # of a class that rejects what it has accepted, or that is not loaded before
            raise self._refusal("inject.invalid", [(index, _fault(each)) for each in error.problems]) from error


def _exact_value(arg: ArgSpec, value: Any) -> Any:
    if value is None or (arg.cls is None and not arg.nested):
        return value
    return CoercionPass(RESULT).limited(coerce_present, arg, plain_default(arg, value), ROOT)


def _fault(problem: Problem | str) -> str:
    """Return a problem without the place within the value, because its keys belong to the host."""
    return problem if isinstance(problem, str) else f"expected {problem.expected}, got {problem.got}"


def fill_function(func: Callable[..., Any], filling: InjectedArguments, is_coroutine: bool) -> Callable[..., Any]:
    """Return a function that takes only the visible arguments."""
    if is_coroutine:

        async def awaited(rt: Any, *values: Any) -> Any:
            return await func(rt, *await filling.awaited(rt, values))

        return awaited

    def called(rt: Any, *values: Any) -> Any:
        return func(rt, *filling.values(rt, values))

    return called
