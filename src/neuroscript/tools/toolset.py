"""Toolsets and the registry: an immutable snapshot that maps canonical names to tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, overload

import attrs

from neuroscript._version import FIRST_API
from neuroscript.coercion.parameters import (
    STRING,
    Form,
    instance,
    mapping_form,
    require,
    sequence,
)
from neuroscript.errors import PluginError, RegistryError, SpecError, ToolFailed
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical, is_full_name, is_group_name
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import ArgSpec, Example, ToolSpec, has_fields
from neuroscript.tools.tool import API, NEEDS_NOTHING, WRAP, Function, ToolImplementation, require_options, tool

if TYPE_CHECKING:
    from neuroscript.io.near_names import NearNames


CHOICE: Final = Form("a pattern (a string) or a function", callable)


IMPLEMENTATIONS: Final = sequence(instance(ToolImplementation, WRAP), "ToolImplementations")


class Toolset:
    """A mutable collection of tools that are delivered together. An engine uses a snapshot of it.

    Args:
        name: The name of the set, and the group of tools created with `tool`.
        tools: The initial tools.
        origin: Who provides it, unless the engine is given another origin.
        runtime_api: The `RUNTIME_API` that the tools were written for; the first version by default.

    Raises:
        SpecError: An argument is invalid.
        RegistryError: Two of the tools have the same name.
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
            raise SpecError(f"toolset {quote_untrusted(name)}", ["the name is not a valid group name"])
        self.origin = origin
        self.runtime_api = runtime_api
        self._tools: dict[str, ToolImplementation] = {}
        self._aliases: dict[str, str] = {}
        for each in tools:
            self._put(each)

    def add(self, spec: ToolSpec, func: Callable[..., Any], policy: ToolPolicy = NEEDS_NOTHING) -> ToolImplementation:
        """Add a tool with this *spec*, *func* and *policy*, and return it.

        Raises:
            SpecError: The tool is invalid.
            RegistryError: The set already has a tool with that name.
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
        """Add the tool for a function, and return the function unchanged.

        Use it as a decorator, ``@toolset.tool``, or with options, ``@toolset.tool(name="count")``. The options are
        those of `tool`; the group defaults to the name of the set.

        Returns:
            The function; without a function, a decorator.

        Raises:
            SpecError: The function cannot be a tool, or an option has the wrong type.
            RegistryError: The set already has a tool with that name.
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

    def resource(
        self,
        uri: str,
        /,
        *,
        title: str = "",
        media_type: str = "",
        subscribable: bool = False,
        as_tool: bool = False,
        name: str | None = None,
        policy: ToolPolicy = NEEDS_NOTHING,
        description: str = "",
    ) -> Callable[[Function], Function]:
        """Add the tool for a function that is served as a resource; use it as a decorator.

        Reading the resource calls the tool, with the variables of the URI as its arguments.

        Args:
            uri: The URI or URI template; this and the options up to *as_tool* are those of `Resource`.
            name: This and the other options are those of `tool`.

        Raises:
            SpecError: The URI is malformed, its variables are not the arguments of the function, the set already has
                a resource with this URI, or the function cannot be a tool.
            RegistryError: The set already has a tool with that name.
        """
        from neuroscript.spec.served import Resource

        served = Resource(uri, title=title, media_type=media_type, subscribable=subscribable, as_tool=as_tool)
        options: dict[str, Any] = {"group": self.name, "name": name, "policy": policy, "description": description}
        require_options(f"toolset {self.name}", **options)

        def added(func: Function) -> Function:
            self._put(tool(func, **options, resource=served))
            return func

        return added

    def prompt(
        self,
        *,
        title: str = "",
        as_tool: bool = False,
        name: str | None = None,
        policy: ToolPolicy = NEEDS_NOTHING,
        description: str = "",
    ) -> Callable[[Function], Function]:
        """Add the tool for a function that is served as a prompt; use it as a decorator.

        Args:
            title: This and *as_tool* are the options of `Prompt`.
            name: This and the other options are those of `tool`.

        Raises:
            SpecError: The function cannot be a tool, or an option has the wrong type.
            RegistryError: The set already has a tool with that name.
        """
        from neuroscript.spec.served import Prompt

        served = Prompt(title=title, as_tool=as_tool)
        options: dict[str, Any] = {"group": self.name, "name": name, "policy": policy, "description": description}
        require_options(f"toolset {self.name}", **options)

        def added(func: Function) -> Function:
            self._put(tool(func, **options, prompt=served))
            return func

        return added

    @property
    def tools(self) -> tuple[ToolImplementation, ...]:
        """The tools, in the order in which they were added."""
        return tuple(self._tools.values())

    def copies(self) -> tuple[ToolImplementation, ...]:
        """Return copies of the tools that later changes to the set or to its specs do not affect.

        Raises:
            SpecError: A tool was changed after it was added, or it, its spec or its policy is an instance of a
                subclass.
        """
        faults: list[str] = []
        copies = []
        for name, each in self._tools.items():
            copy = _copy(each)
            if copy is None or copy.name != name:
                faults.append(f"{name} was changed after it was added")
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
        """Add a previous name of a tool, which callers can still use. A policy that denies the old name still applies.

        Args:
            old: The previous name. Its first use logs a warning.
            new: A tool of this set.

        Raises:
            RegistryError: The tool does not exist, or the old name refers to another tool.
        """
        require(f"toolset {self.name}", old=(old, STRING), new=(new, STRING))
        old, tool = canonical(old), self._named(new)
        if not is_full_name(old):
            raise SpecError(f"toolset {self.name}", [f"{quote_untrusted(old)} is not a valid tool name"])
        if old in self._tools or self._aliases.get(old, tool.name) != tool.name:
            other = self._aliases.get(old, old)
            raise RegistryError(
                f"toolset {self.name}: {old} refers to {other} and cannot be an old name of {tool.name}"
            )
        self._aliases[old] = tool.name

    @property
    def aliases(self) -> Mapping[str, str]:
        """Old names, and the current canonical name for each."""
        return dict(self._aliases)

    # Modified copies

    def prefixed(self, prefix: str) -> Toolset:
        """Return the set with *prefix* before the group of each tool, and before each old name."""
        from neuroscript.tools.derived import rename_tools

        require(f"toolset {self.name}", prefix=(prefix, STRING))
        group = canonical(f"{prefix}.").removesuffix(".")
        pairs = [(each, rename_tools(each, f"{group}.{each.name}")) for each in self]
        return self._changed(pairs, f"{group}.{self.name}", lambda old: f"{group}.{old}")

    def renamed(self, names: Mapping[str, str]) -> Toolset:
        """Return the set with new names for some tools.

        Args:
            names: The new name for each current name: a full name, or a word to keep the group.

        Raises:
            RegistryError: Two tools would have the same name, or a tool does not exist.
        """
        from neuroscript.tools.derived import full_name, rename_tools

        require(f"toolset {self.name}", names=(names, mapping_form(STRING, "strings")))
        changed = {self._named(old).name: full_name(self._named(old), new) for old, new in names.items()}
        return self._changed((each, rename_tools(each, changed.get(each.name, each.name))) for each in self)

    def filtered(self, chosen: str | Callable[[ToolImplementation], object]) -> Toolset:
        """Return the set with only the tools that match a pattern such as ``fs.read_*``, or that a function accepts."""
        if isinstance(chosen, str):
            from neuroscript.tools.derived import name_matcher

            matches = name_matcher(chosen)
            return self._changed((each, each) for each in self if matches(each.name))
        require(f"toolset {self.name}", chosen=(chosen, CHOICE))
        return self._changed((each, each) for each in self if chosen(each))

    def with_policy(self, pattern: str, /, **changes: Any) -> Toolset:
        """Return the set with a changed policy for the tools that match a pattern.

        Args:
            changes: New values for fields of `ToolPolicy`; the others are unchanged.

        Raises:
            RegistryError: The pattern matches no tool.
            SpecError: A field does not exist or its value is invalid.
        """
        from neuroscript.tools.derived import with_policy

        return self._mapped(pattern, lambda each: with_policy(each, changes))

    def with_docs(self, pattern: str, /, **docs: str) -> Toolset:
        """Return the set with changed descriptions for the tools that match a pattern.

        Args:
            docs: The new descriptions by field: ``description``, ``when_to_use``, ``return_help``, ``category``,
                ``error_conditions`` or ``deprecated``.
        """
        from neuroscript.tools.derived import with_docs

        require(f"toolset {self.name}", docs=(docs, mapping_form(STRING, "strings")))
        return self._mapped(pattern, lambda each: with_docs(each, docs))

    def with_fixed(self, tool: str, /, **values: Any) -> Toolset:
        """Return the set with constant values for some arguments of a tool; callers can neither see nor set them.

        The needs of the tool are updated with the values, and examples with other values are dropped.

        Args:
            tool: The name of the tool.
            values: The constant for each argument name. It is coerced once and copied for each call.

        Raises:
            RegistryError: The tool does not exist.
            SpecError: The tool has no such argument, or a value does not fit.
        """
        from neuroscript.tools.injection_sources import Value

        return self.with_injected(tool, **{name: Value(value) for name, value in values.items()})

    def with_injected(self, tool: str, /, **sources: Any) -> Toolset:
        """Return the set with injected arguments for a tool; see `ToolImplementation.with_injected`.

        Raises:
            RegistryError: The tool does not exist.
            SpecError: An argument cannot be injected.
        """
        chosen = self._named(tool)
        return self._changed((each, each.with_injected(**sources) if each is chosen else each) for each in self)

    def with_exposed(self, tool: str, /, *names: str) -> Toolset:
        """Return the set with some injected arguments restored; see `ToolImplementation.with_exposed`.

        Raises:
            RegistryError: The tool does not exist.
            SpecError: One of them is not injected, or there are no names.
        """
        chosen = self._named(tool)
        return self._changed((each, each.with_exposed(*names) if each is chosen else each) for each in self)

    def _mapped(self, pattern: str, change: Callable[[ToolImplementation], ToolImplementation]) -> Toolset:
        from neuroscript.tools.derived import name_matcher

        require(f"toolset {self.name}", pattern=(pattern, STRING))
        matches = name_matcher(pattern)
        if not any(matches(each.name) for each in self):
            raise RegistryError(f"toolset {self.name} has no tool that matches {quote_untrusted(pattern)}")
        return self._changed((each, change(each) if matches(each.name) else each) for each in self)

    def _changed(
        self,
        pairs: Iterable[tuple[ToolImplementation, ToolImplementation]],
        name: str = "",
        alias: Callable[[str], str] = str,
    ) -> Toolset:
        """Return a set with the second tool of each pair, and with the old names of these tools."""
        from neuroscript.tools.derived import unique

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
            raise RegistryError(f"toolset {self.name} has no tool called {quote_untrusted(canonical(name))}")
        return found

    def _put(self, each: ToolImplementation) -> ToolImplementation:
        if each.name in self._aliases:
            raise RegistryError(f"toolset {self.name}: {each.name} is an old name of {self._aliases[each.name]}")
        if each.spec.resource is not None:
            self._check_uri(each, each.spec.resource.uri)
        if self._tools.setdefault(each.name, each) is not each:
            raise RegistryError(f"toolset {self.name} has two tools called {each.name}")
        return each

    def _check_uri(self, new: ToolImplementation, uri: str) -> None:
        for each in self:
            if each.spec.resource is not None and each.spec.resource.uri == uri:
                raise SpecError(f"toolset {self.name}", [f"{each.name} and {new.name} are served as the same resource"])


TOOLS: Final = Form(
    "a Toolset or a ToolImplementation",
    lambda tools: isinstance(tools, (Toolset, ToolImplementation)),
    hint=WRAP,
)
"""The objects that an engine or a registrar can register."""


def _copy(tool: ToolImplementation) -> ToolImplementation | None:
    """Return a tool rebuilt from checked parts, or None if a part is not valid."""
    try:
        _be(tool, ToolImplementation)
        _be(tool.spec, ToolSpec)
        _be(tool.policy, ToolPolicy)
        returns = tool.spec.returns and _arg_copy(tool.spec.returns)
        spec = attrs.evolve(tool.spec, args=tuple(map(_arg_copy, tool.spec.args)), returns=returns)
        return attrs.evolve(tool, spec=spec, policy=attrs.evolve(tool.policy))
    except SpecError:
        return None


def _arg_copy(arg: ArgSpec) -> ArgSpec:
    _be(arg, ArgSpec)
    if not arg.has_parts:
        return attrs.evolve(arg)
    parts: dict[str, Any] = {name: tuple(map(_arg_copy, getattr(arg, name))) for name in ("prefix_items", "any_of")}
    parts |= {name: part and _arg_copy(part) for name in _PARTS if (part := getattr(arg, name)) is not None}
    if arg.cls is None or not has_fields(arg.cls):
        parts["keys"] = tuple(map(_arg_copy, arg.keys))
    else:
        parts["keys"] = ()  # they are derived from the class again
    return attrs.evolve(arg, **parts)


_PARTS: Final = ("items", "value_spec", "key_spec")


def _be(part: object, cls: type) -> None:
    """Reject instances of subclasses, because they could return different values each time."""
    if type(part) is not cls:
        raise SpecError("tool", [f"expected a {cls.__name__}, got {type(part).__name__}"])


HOST: Final = "host"
"""The origin of tools that no plugin provides."""


class ListedTool(Protocol):
    """A tool, or the known facts about a tool that is not loaded yet."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def policy(self) -> ToolPolicy: ...


def load_tool(tool: Any) -> ToolImplementation:
    """Return the tool itself, loading it if necessary.

    Raises:
        PluginError: It cannot be loaded.
    """
    found: ToolImplementation = tool if isinstance(tool, ToolImplementation) else tool.load()
    return found


def implementation(tool: Any) -> ToolImplementation:
    """Return a tool. If it is not loaded yet, its function loads it on the first call.

    Raises:
        PluginError: The known spec or policy is invalid.
    """
    found: ToolImplementation = tool if isinstance(tool, ToolImplementation) else tool.implementation
    return found


def entry_of(tool: Any) -> str:
    """Return the name of the entry point that provides a tool, or ``""`` if it is not known from an index."""
    return "" if isinstance(tool, ToolImplementation) else str(tool.source.entry.name)


def failure(tool: str, error: PluginError) -> ToolFailed:
    """Return the error of a call whose tool cannot be loaded. The reason is only for the host, in the cause."""
    failed = ToolFailed(f"cannot be loaded ({error.code})", tool=tool, code=error.code, retry="host")
    failed.remedy = f"{tool}: cannot be loaded: {error}"
    return failed


def by_needs(tools: Iterable[ListedTool]) -> list[str]:
    """Return the names of tools, starting with those without needs because most callers may call them."""
    return [tool.name for tool in sorted(tools, key=_needs)]


def _needs(tool: ListedTool) -> bool:
    try:
        policy = tool.policy
    except PluginError:  # it cannot be loaded
        return True
    return bool(policy.capabilities) or policy.requires_trust or policy.requires_approval


@attrs.frozen(eq=False, repr=False)
class Registry:
    """All tools of an engine at one moment.

    Attributes:
        tools: The tools by canonical name; read-only.
        origins: The distribution or file that provides each tool, or `HOST`.
        aliases: Old names, and the current canonical name for each.
    """

    tools: Mapping[str, ListedTool] = MappingProxyType({})
    origins: Mapping[str, str] = MappingProxyType({})
    aliases: Mapping[str, str] = MappingProxyType({})

    def with_tools(
        self, added: Iterable[ListedTool], origin: str = HOST, aliases: Mapping[str, str] = MappingProxyType({})
    ) -> Registry:
        """Return a registry that also contains *added*. If one of them cannot be added, none is.

        Args:
            aliases: Old names of *added*.

        Raises:
            RegistryError: A name is already used, by a tool or as an old name; the message lists all such names.
        """
        tools, new = dict(self.tools), tuple(added)
        taken = [tool.name for tool in new if tools.setdefault(tool.name, tool) is not tool]
        known = {**self.aliases, **aliases}
        taken.extend(old for old in known if old in tools)
        taken.extend(old for old, name in aliases.items() if self.aliases.get(old, name) != name)
        if taken:
            raise RegistryError(f"already registered: {', '.join(dict.fromkeys(taken))}")
        origins = {**self.origins, **dict.fromkeys((tool.name for tool in new), origin)}
        return Registry(MappingProxyType(tools), MappingProxyType(origins), MappingProxyType(known))

    def without(self, origin: str) -> Registry:
        """Return a registry without the tools of *origin* and their old names."""
        tools = {name: tool for name, tool in self.tools.items() if self.origins[name] != origin}
        origins = {name: each for name, each in self.origins.items() if name in tools}
        aliases = {old: name for old, name in self.aliases.items() if name in tools}
        return Registry(MappingProxyType(tools), MappingProxyType(origins), MappingProxyType(aliases))

    def named(self, name: str) -> ListedTool | None:
        """Return the tool with this current or old canonical name."""
        return self.tools.get(name) or self.tools.get(self.aliases.get(name, ""))

    def old_names(self, name: str) -> tuple[str, ...]:
        """Return the old names of a tool."""
        return tuple(self._old_names.get(name, ()))

    @cached_property
    def near_names(self) -> NearNames:
        """The index of all tool names, for suggestions."""
        from neuroscript.io.near_names import NearNames

        return NearNames(by_needs(self.tools.values()))

    @cached_property
    def _old_names(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for old, now in self.aliases.items():
            found.setdefault(now, []).append(old)
        return found
