"""Installed distributions, loaded: in order, by choice, each whole or not at all; a broken one is named, and why.

Source: contract section 7, level A; reliability.md part 4.3; peers.md, lessons of plugin hosts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NoReturn

import attrs

from neuroscript.display import shown
from neuroscript.errors import PluginError, RegistryError, SpecError
from neuroscript.installed import TOOLSETS, Distribution, EntryPoint, distributions, normalised
from neuroscript.runtime import RUNTIME_API
from neuroscript.tools import FIRST_API, ToolImplementation, Toolset, is_api
from neuroscript.walk import type_name

FIRST_PARTY: Final[Mapping[str, frozenset[str]]] = {
    "neuroscript-std": frozenset(
        {"crypto", "error", "handle", "io", "list", "llm", "math", "meta", "shape", "str", "time", "tree", "var"}
    ),
    "neuroscript-fs": frozenset({"fs"}),
    "neuroscript-git": frozenset({"git"}),
    "neuroscript-http": frozenset({"http"}),
    "neuroscript-shell": frozenset({"shell", "os"}),
}
"""The distributions of this project, and the groups that no other one may use, whether or not they are installed."""


@attrs.frozen(eq=False, repr=False)
class Loaded:
    """What a distribution brings.

    Attributes:
        distribution: It.
        tools: Copies of its tools, in order.
        toolsets: The names of its toolsets.
        aliases: Old names of its tools, with the names that they have now.
        plugins: Its plugins of hooks.
    """

    distribution: Distribution
    tools: tuple[ToolImplementation, ...]
    toolsets: tuple[str, ...]
    aliases: Mapping[str, str]
    plugins: tuple[object, ...]


def loaded(
    only: Collection[str] | None, without: Collection[str] = (), taken: Mapping[str, str] | None = None
) -> Iterator[Loaded | PluginError]:
    """Yield what each chosen distribution brings, or why it can not be used, in the order of `chosen`.

    Args:
        only: The names of the distributions that may be loaded; None means all of them.
        without: Distributions and entry points that are left out.
        taken: The tools that there are, with who brought them.
    """
    found, problems = chosen(distributions(), only, without)
    claims = Claims(taken or {})
    for each in found:
        try:
            claims.entry_points(each)
            brought = load(each)
            claims.tools(each, [tool.name for tool in brought.tools], brought.toolsets)
            yield brought
        except PluginError as error:
            yield error
    yield from problems


def chosen(
    found: Iterable[Distribution], only: Collection[str] | None, without: Collection[str] = ()
) -> tuple[list[Distribution], list[PluginError]]:
    """Return the distributions that are to be loaded, in order, and the names that mean none.

    Our own come first, then those of *only* in its order, else all in the order of their names.
    """
    names = sorted(only) if isinstance(only, AbstractSet) else [*(only or ())]
    wanted = [normalised(name) for name in names]
    found = [each for each in found if only is None or each.key in wanted]
    left = [_cut(each, without) for each in found]
    order = sorted((each for each in left if each.entry_points), key=lambda each: _rank(each, wanted))
    known = {each.key for each in found}
    missing = [name for name, key in zip(names, wanted, strict=True) if key not in known]
    reason = "is not installed, or offers no toolset"
    return order, [PluginError(shown(name), reason, code="plugin.missing") for name in missing]


def _rank(distribution: Distribution, wanted: list[str]) -> tuple[bool, int, str]:
    place = wanted.index(distribution.key) if wanted else 0
    return distribution.key not in FIRST_PARTY, place, distribution.key


def _cut(distribution: Distribution, without: Collection[str]) -> Distribution:
    """Return a distribution without the entry points that are left out; all of them, if it is left out itself."""
    if distribution.key in map(normalised, without):
        return attrs.evolve(distribution, entry_points=())
    left = tuple(each for each in distribution.entry_points if each.name not in without)
    return attrs.evolve(distribution, entry_points=left)


class Claims:
    """Who has which entry points and tools: the first one that is not broken.

    Args:
        tools: The tools that there are, with who brought them.
    """

    def __init__(self, tools: Mapping[str, str]) -> None:
        self._tools = dict(tools)
        self._entries: dict[tuple[str, str], str] = {}

    def entry_points(self, distribution: Distribution) -> None:
        """Look whether an entry point of a distribution is there already; nothing has to be imported for that.

        Raises:
            PluginError: One is.
        """
        for each in distribution.entry_points:
            owner = self._entries.get((each.group, each.name))
            if owner is not None:
                reason = f"its entry point {shown(each.name)} is called as that of {owner}"
                raise PluginError(str(distribution), reason, code="plugin.entry")

    def tools(self, distribution: Distribution, tools: Sequence[str], toolsets: Iterable[str]) -> None:
        """Take note of all that a distribution brings.

        Raises:
            PluginError: It uses a group of ours, or brings a tool that there is, or one twice. Nothing is noted then.
        """
        for group in sorted({*toolsets, *(tool.rpartition(".")[0] for tool in tools)}):
            owner = _owner(group)
            if owner not in (None, distribution.key):
                reason = f"uses the name {shown(group)}, which belongs to {owner}"
                raise PluginError(str(distribution), reason, code="plugin.shadow")
        own: set[str] = set()
        for tool in tools:
            owner = str(distribution) if tool in own else self._tools.get(tool)
            if owner is not None:
                raise PluginError(str(distribution), f"claims {tool}, which {owner} has", code="plugin.duplicate")
            own.add(tool)
        self._tools.update(dict.fromkeys(tools, str(distribution)))
        self._entries.update(((each.group, each.name), str(distribution)) for each in distribution.entry_points)


def _owner(group: str) -> str | None:
    """Return the distribution of ours that a group belongs to."""
    first = group.partition(".")[0]
    return next((key for key, groups in FIRST_PARTY.items() if first in groups), None)


def load(distribution: Distribution) -> Loaded:
    """Import what a distribution offers, and return it when all of it is sound.

    Raises:
        PluginError: Something of it is not; a KeyboardInterrupt passes.
    """
    tools: list[ToolImplementation] = []
    aliases: dict[str, str] = {}
    names: list[str] = []
    plugins: list[object] = []
    for entry in distribution.entry_points:
        offered = _offered(distribution, entry)
        if entry.group == TOOLSETS:
            if not isinstance(offered, Toolset):
                _refuse(distribution, entry, "plugin.object", f"is no Toolset but a {type_name(offered)}")
            toolsets: tuple[Toolset, ...] = (offered,)
        else:
            toolsets = _computed(distribution, entry, offered)
            plugins.append(offered)
        for toolset in toolsets:
            tools += _copies(distribution, entry, toolset)
            names.append(toolset.name)
            aliases |= toolset.aliases
    return Loaded(distribution, tuple(tools), tuple(names), aliases, tuple(plugins))


def _refuse(
    distribution: Distribution, entry: EntryPoint, code: str, reason: str, cause: BaseException | None = None
) -> NoReturn:
    text = f"entry point {shown(entry.name)} {reason}"
    raise PluginError(str(distribution), text, code=code) from cause


def _offered(distribution: Distribution, entry: EntryPoint) -> Any:
    """Import the object that an entry point means."""
    from importlib import import_module

    if not entry.module:
        _refuse(distribution, entry, "plugin.object", "is not written as module:object")
    try:
        offered: Any = import_module(entry.module)
        for name in filter(None, entry.attribute.split(".")):
            offered = getattr(offered, name)
    except KeyboardInterrupt:
        raise
    except (SpecError, RegistryError) as error:
        code = "plugin.spec" if isinstance(error, SpecError) else "plugin.duplicate"
        _refuse(distribution, entry, code, f"can not be loaded ({error})", error)
    except BaseException as error:
        code = "plugin.import" if isinstance(error, Exception) else "plugin.exit"
        _refuse(distribution, entry, code, f"can not be loaded ({type_name(error)})", error)
    return offered


def _computed(distribution: Distribution, entry: EntryPoint, plugin: object) -> tuple[Toolset, ...]:
    """Return the toolsets that a plugin of hooks computes."""
    _check_api(distribution, entry, getattr(plugin, "runtime_api", FIRST_API))
    try:
        return computed((plugin,))
    except PluginError as error:
        _refuse(distribution, entry, "plugin.hook", f"can not be used ({error.reason})", error)


def computed(plugins: Iterable[object]) -> tuple[Toolset, ...]:
    """Return the toolsets that plugins bring by their hook ``neuroscript_toolsets``, in the order of the hooks.

    Raises:
        PluginError: One is no plugin, or its hook fails or gives something else.
        SpecError: *plugins* are none, but something else.
    """
    from neuroscript import hookspecs

    toolsets: list[Toolset] = []
    for hook, function in hookspecs.Plugins(plugins).of(hookspecs.TOOLSETS).items():
        try:
            given = [*function()]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise PluginError(hook.plugin, f"{hook.name} failed ({_told(error)})", code="plugin.hook") from error
        wrong = [type_name(each) for each in given if not isinstance(each, Toolset)]
        if wrong:
            raise PluginError(hook.plugin, f"{hook.name} gave no Toolset but a {wrong[0]}", code="plugin.hook")
        toolsets += given
    return tuple(toolsets)


def _told(error: BaseException) -> str:
    """Return our own sentences whole, and of all else the type."""
    return str(error) if isinstance(error, (SpecError, RegistryError)) else type_name(error)


def _copies(distribution: Distribution, entry: EntryPoint, toolset: Toolset) -> tuple[ToolImplementation, ...]:
    """Return the tools of a set, as they are at this moment and stay."""
    try:
        _check_api(distribution, entry, toolset.runtime_api)
        return toolset.copies()
    except (KeyboardInterrupt, PluginError):
        raise
    except BaseException as error:
        _refuse(distribution, entry, "plugin.spec", f"can not be used ({_told(error)})", error)


def _check_api(distribution: Distribution, entry: EntryPoint, declared: Any) -> None:
    """Refuse what was made for a Runtime of another major version, or for members that this one has not."""
    if not is_api(declared):
        _refuse(distribution, entry, "plugin.api", "declares a runtime_api that is not two whole numbers")
    if declared[0] != RUNTIME_API[0] or declared[1] > RUNTIME_API[1]:
        wanted, here = (".".join(map(str, version)) for version in (declared, RUNTIME_API))
        _refuse(distribution, entry, "plugin.api", f"was made for the runtime API {wanted}, and this is {here}")
