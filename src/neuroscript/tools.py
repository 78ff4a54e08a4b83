"""A tool: what it promises, the function that keeps the promise, and what it needs; and tools in a set.

Source: contract section 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar, overload

import attrs

from neuroscript.binding import bind, bind_named
from neuroscript.callables import by_position, is_coroutine
from neuroscript.checks import (
    FUNCTION,
    STRING,
    STRINGS,
    Form,
    field_problems,
    instance,
    mapping,
    optional,
    require,
    sequence,
)
from neuroscript.display import shown
from neuroscript.errors import UNSET, ArgumentError, RegistryError, SpecError
from neuroscript.names import canonical, is_full_name, is_group_name, is_word
from neuroscript.needs import ToolPolicy
from neuroscript.spec import RUNTIME, ArgSpec, Example, ToolSpec
from neuroscript.values import exact
from neuroscript.versions import FIRST_API, is_api
from neuroscript.walk import RESULT, ROOT, Walk

Function = TypeVar("Function", bound=Callable[..., Any])

NEEDS_NOTHING: Final = ToolPolicy()

# What parameters and fields have to be

API: Final = Form("two whole numbers, as in (1, 0)", lambda version: isinstance(version, tuple), is_api)
CHOICE: Final = Form("a pattern (a string) or a function", callable)
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
        from neuroscript.injection import injected

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
        from neuroscript.injection import injecting
        from neuroscript.masking import secret_values

        made: ToolImplementation = injecting(self, sources, secret_values)
        return made

    def restoring(self, /, *names: str) -> ToolImplementation:
        """Return the tool with some of its injected arguments back, for callers to set; other changes stay.

        Where nothing else was changed, restoring all of them gives the very tool that it was.

        Raises:
            SpecError: One of them is not injected, or none is named.
        """
        from neuroscript.injection import restoring

        require(self.name, names=(names, STRINGS))
        from neuroscript.masking import secret_values

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
        if walk.noted:
            from neuroscript.problems import sentences

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
    from neuroscript.signature import read  # not for tools that are written out by hand

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


IMPLEMENTATIONS: Final = sequence(instance(ToolImplementation, WRAP), "ToolImplementations")


class Toolset:
    """Tools that are delivered together; it collects until an engine takes its snapshot.

    Args:
        name: What the set is called, and the group of tools that are made with `tool`.
        tools: The tools to begin with.
        origin: Who brings it, where an engine is not told otherwise.
        runtime_api: The `RUNTIME_API` that the tools were written for. One that says nothing is of the first one.

    Raises:
        SpecError: There can be no such set.
        RegistryError: Two of the tools have one name.
    """

    def __init__(
        self,
        name: str,
        tools: tuple[ToolImplementation, ...] = (),
        *,
        origin: str = "",
        runtime_api: tuple[int, int] = FIRST_API,
    ) -> None:
        require(
            "toolset",
            name=(name, STRING),
            tools=(tools, IMPLEMENTATIONS),
            origin=(origin, STRING),
            runtime_api=(runtime_api, API),
        )
        self.name = canonical(name)
        if not is_group_name(self.name):
            raise SpecError(f"toolset {shown(name)}", ["its name is not that of a group"])
        self.origin = origin
        self.runtime_api = runtime_api
        self._tools: dict[str, ToolImplementation] = {}
        self._aliases: dict[str, str] = {}
        for each in tools:
            self._put(each)

    def add(self, spec: ToolSpec, func: Callable[..., Any], policy: ToolPolicy = NEEDS_NOTHING) -> ToolImplementation:
        """Add the tool that *spec*, *func* and *policy* make, and return it.

        Raises:
            SpecError: There can be no such tool.
            RegistryError: The set has a tool of that name.
        """
        return self._put(ToolImplementation(spec, func, policy))

    @overload
    def tool(
        self,
        func: Function,
        /,
        *,
        name: str | None = None,
        group: str | None = None,
        policy: ToolPolicy = NEEDS_NOTHING,
        description: str = "",
        when_to_use: str = "",
        category: str = "",
        examples: tuple[Example, ...] = (),
    ) -> Function: ...
    @overload
    def tool(
        self,
        func: None = None,
        /,
        *,
        name: str | None = None,
        group: str | None = None,
        policy: ToolPolicy = NEEDS_NOTHING,
        description: str = "",
        when_to_use: str = "",
        category: str = "",
        examples: tuple[Example, ...] = (),
    ) -> Callable[[Function], Function]: ...
    def tool(
        self,
        func: Function | None = None,
        /,
        *,
        name: str | None = None,
        group: str | None = None,
        policy: ToolPolicy = NEEDS_NOTHING,
        description: str = "",
        when_to_use: str = "",
        category: str = "",
        examples: tuple[Example, ...] = (),
    ) -> Function | Callable[[Function], Function]:
        """Add the tool that a function describes, and leave the function as it is.

        Use it as a decorator, ``@toolset.tool``, or with options, ``@toolset.tool(name="count")``. The options are
        those of `tool`; the group is by default the name of the set.

        Returns:
            The function; without a function, a decorator.

        Raises:
            SpecError: The function cannot be a tool, or an option has the wrong type.
            RegistryError: The set has a tool of that name.
        """
        options: dict[str, Any] = {
            "group": self.name if group in (None, "") else group,
            "name": name,
            "policy": policy,
            "description": description,
            "when_to_use": when_to_use,
            "category": category,
            "examples": examples,
        }
        require_options(f"toolset {self.name}", **options)

        def added(func: Function) -> Function:
            self._put(tool(func, **options))
            return func

        return added if func is None else added(func)

    @property
    def tools(self) -> tuple[ToolImplementation, ...]:
        """The tools so far, in the order in which they came."""
        return tuple(self._tools.values())

    def copies(self) -> tuple[ToolImplementation, ...]:
        """Return the tools so far as copies, which nothing reaches that is done to the set or to its specs later on.

        Raises:
            SpecError: A tool is not what it was when it was added, or it, its spec or its policy is of another class.
        """
        faults: list[str] = []
        copies = []
        for name, each in self._tools.items():
            copy = _copy(each)
            if copy is None or copy.name != name:
                faults.append(f"{name} is not what it was when it was added")
            else:
                copies.append(copy)
        if faults:
            raise SpecError(f"toolset {self.name}", faults)
        return tuple(copies)

    def __iter__(self) -> Iterator[ToolImplementation]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Toolset({self.name!r}, {len(self)} tools)"

    # Old names

    def alias(self, old: str, new: str) -> None:
        """Let a tool be found by a name that it had before; what is denied under that name stays denied.

        Args:
            old: The name that callers may still use; they are warned of it once.
            new: A tool of this set.

        Raises:
            RegistryError: There is no such tool, or the old name means something else.
        """
        require(f"toolset {self.name}", old=(old, STRING), new=(new, STRING))
        old, tool = canonical(old), self._named(new)
        if not is_full_name(old):
            raise SpecError(f"toolset {self.name}", [f"{shown(old)} is no name of a tool"])
        if old in self._tools or self._aliases.get(old, tool.name) != tool.name:
            other = self._aliases.get(old, old)
            raise RegistryError(f"toolset {self.name}: {old} means {other}, and can not be an old name of {tool.name}")
        self._aliases[old] = tool.name

    @property
    def aliases(self) -> Mapping[str, str]:
        """Old names, and the canonical name that each now means."""
        return dict(self._aliases)

    # Sets made of this one, which stays as it is

    def prefixed(self, prefix: str) -> Toolset:
        """Return the set with *prefix* before the group of each tool, and before each old name."""
        from neuroscript.algebra import renamed

        require(f"toolset {self.name}", prefix=(prefix, STRING))
        group = canonical(f"{prefix}.").removesuffix(".")
        pairs = [(each, renamed(each, f"{group}.{each.name}")) for each in self]
        return self._changed(pairs, f"{group}.{self.name}", lambda old: f"{group}.{old}")

    def renamed(self, names: Mapping[str, str]) -> Toolset:
        """Return the set with other names for some tools.

        Args:
            names: By its present name what a tool is to be called: a whole name, or a word that leaves it its group.

        Raises:
            RegistryError: Two tools would have one name, or there is no such tool.
        """
        from neuroscript.algebra import full_name, renamed

        require(f"toolset {self.name}", names=(names, mapping(STRING, "strings")))
        changed = {self._named(old).name: full_name(self._named(old), new) for old, new in names.items()}
        return self._changed((each, renamed(each, changed.get(each.name, each.name))) for each in self)

    def filtered(self, chosen: str | Callable[[ToolImplementation], object]) -> Toolset:
        """Return the set with those tools that a pattern such as ``fs.read_*`` matches, or a function accepts."""
        if isinstance(chosen, str):
            from neuroscript.algebra import matching

            matches = matching(chosen)
            return self._changed((each, each) for each in self if matches(each.name))
        require(f"toolset {self.name}", chosen=(chosen, CHOICE))
        return self._changed((each, each) for each in self if chosen(each))

    def with_policy(self, pattern: str, /, **changes: Any) -> Toolset:
        """Return the set with other needs for the tools that a pattern matches.

        Args:
            changes: Fields of `ToolPolicy` by name; the others stay.

        Raises:
            RegistryError: The pattern matches none.
            SpecError: There is no such field, or it does not fit.
        """
        from neuroscript.algebra import with_policy

        return self._mapped(pattern, lambda each: with_policy(each, changes))

    def described(self, pattern: str, /, **texts: str) -> Toolset:
        """Return the set with other words for the tools that a pattern matches.

        Args:
            texts: By name: ``description``, ``when_to_use``, ``return_help``, ``category``, ``error_conditions`` or
                ``deprecated``.
        """
        from neuroscript.algebra import described

        require(f"toolset {self.name}", texts=(texts, mapping(STRING, "strings")))
        return self._mapped(pattern, lambda each: described(each, texts))

    def hiding(self, tool: str, /, **values: Any) -> Toolset:
        """Return the set with a tool that has fewer arguments: no caller sees or sets those that get a value here.

        Its needs are those that the values leave, and examples that say something else of them are dropped.

        Args:
            tool: Its name.
            values: By name of an argument what the function always gets; it is coerced now and copied for each call.

        Raises:
            RegistryError: There is no such tool.
            SpecError: It has no such argument, or a value does not fit.
        """
        from neuroscript.sources import Value

        return self.injecting(tool, **{name: Value(value) for name, value in values.items()})

    def injecting(self, tool: str, /, **sources: Any) -> Toolset:
        """Return the set with a tool whose host gives it some arguments, see `ToolImplementation.injecting`.

        Raises:
            RegistryError: There is no such tool.
            SpecError: It can not be.
        """
        chosen = self._named(tool)
        return self._changed((each, each.injecting(**sources) if each is chosen else each) for each in self)

    def restoring(self, tool: str, /, *names: str) -> Toolset:
        """Return the set with a tool that has some of its arguments back, see `ToolImplementation.restoring`.

        Raises:
            RegistryError: There is no such tool.
            SpecError: One of them is not injected, or none is named.
        """
        chosen = self._named(tool)
        return self._changed((each, each.restoring(*names) if each is chosen else each) for each in self)

    def _mapped(self, pattern: str, change: Callable[[ToolImplementation], ToolImplementation]) -> Toolset:
        from neuroscript.algebra import matching

        require(f"toolset {self.name}", pattern=(pattern, STRING))
        matches = matching(pattern)
        if not any(matches(each.name) for each in self):
            raise RegistryError(f"toolset {self.name} has no tool that {shown(pattern)} matches")
        return self._changed((each, change(each) if matches(each.name) else each) for each in self)

    def _changed(
        self,
        pairs: Iterable[tuple[ToolImplementation, ToolImplementation]],
        name: str = "",
        alias: Callable[[str], str] = str,
    ) -> Toolset:
        """Return a set of the second of each pair, with the old names of those that are left."""
        from neuroscript.algebra import unique

        names, tools = {}, []
        for old, new in pairs:
            names[old.name] = new.name
            tools.append(new)
        unique(names.items(), f"toolset {self.name}")
        changed = Toolset(name or self.name, tuple(tools), origin=self.origin)
        for old_name, tool_name in self._aliases.items():
            if tool_name in names:
                changed.alias(alias(old_name), names[tool_name])
        return changed

    def _named(self, name: str) -> ToolImplementation:
        require(f"toolset {self.name}", tool=(name, STRING))
        found = self._tools.get(canonical(name))
        if found is None:
            raise RegistryError(f"toolset {self.name} has no tool called {shown(canonical(name))}")
        return found

    def _put(self, each: ToolImplementation) -> ToolImplementation:
        if each.name in self._aliases:
            raise RegistryError(f"toolset {self.name}: {each.name} is an old name of {self._aliases[each.name]}")
        if self._tools.setdefault(each.name, each) is not each:
            raise RegistryError(f"toolset {self.name} has two tools called {each.name}")
        return each


TOOLS: Final = Form(
    "a Toolset or a ToolImplementation",
    lambda tools: isinstance(tools, (Toolset, ToolImplementation)),
    hint=WRAP,
)
"""What an engine and a registrar register."""


def _copy(tool: ToolImplementation) -> ToolImplementation | None:
    """Return a tool whose parts have been checked and made anew, or None where they are not such as we make."""
    try:
        _be(tool, ToolImplementation)
        _be(tool.spec, ToolSpec)
        _be(tool.policy, ToolPolicy)
        spec = attrs.evolve(tool.spec, args=tuple(map(_arg_copy, tool.spec.args)))
        return attrs.evolve(tool, spec=spec, policy=attrs.evolve(tool.policy))
    except SpecError:
        return None


def _arg_copy(arg: ArgSpec) -> ArgSpec:
    _be(arg, ArgSpec)
    return attrs.evolve(arg, keys=() if arg.cls is not None else tuple(map(_arg_copy, arg.keys)))


def _be(part: object, cls: type) -> None:
    """Refuse an object of a subclass, which may be something else each time that it is looked at."""
    if type(part) is not cls:
        raise SpecError("tool", [f"expected a {cls.__name__}, got {type(part).__name__}"])
