"""Loading of a single entry point: it is imported completely or rejected with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import attrs

from neuroscript._version import FIRST_API, misfit
from neuroscript.coercion.context import type_name
from neuroscript.discovery.installed import TOOLSETS, Distribution, EntryPoint
from neuroscript.errors import PluginError, RegistryError, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.io.tracebacks import error_summary
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import Toolset


@attrs.frozen(eq=False, repr=False)
class LoadedEntry:
    """The content of an entry point.

    Attributes:
        entry: The entry point.
        sets: Its toolsets.
        tools: Copies of its tools, in order.
        aliases: Old names of its tools, and the current name for each.
        api: The versions of the Runtime that its toolsets and its plugin require.
        plugin: Its hook plugin, or None.
    """

    entry: EntryPoint
    sets: tuple[Toolset, ...]
    tools: tuple[ToolImplementation, ...]
    aliases: Mapping[str, str]
    api: tuple[tuple[int, int], ...]
    plugin: object


def loaded_entry(distribution: Distribution, entry: EntryPoint) -> LoadedEntry:
    """Import an entry point of a distribution and return its content, if all of it is valid.

    Raises:
        PluginError: Something is invalid. KeyboardInterrupt is not caught.
    """
    offered = _offered(distribution, entry)
    plugin: object = None
    own: tuple[Any, ...] = ()
    if entry.group != TOOLSETS:
        plugin, toolsets = offered, _computed(distribution, entry, offered)
        own = (getattr(plugin, "runtime_api", FIRST_API),)
    elif isinstance(offered, Toolset):
        toolsets = (offered,)
    else:
        _refuse(distribution, entry, "plugin.object", f"is not a Toolset but a {type_name(offered)}")
    return LoadedEntry(
        entry,
        toolsets,
        tuple(tool for each in toolsets for tool in _copies(distribution, entry, each)),
        {old: name for each in toolsets for old, name in each.aliases.items()},
        (*own, *(each.runtime_api for each in toolsets)),
        plugin,
    )


def _refuse(
    distribution: Distribution, entry: EntryPoint, code: str, reason: str, cause: BaseException | None = None
) -> NoReturn:
    text = f"entry point {quote_untrusted(entry.name)} {reason}"
    raise PluginError(str(distribution), text, code=code) from cause


def _offered(distribution: Distribution, entry: EntryPoint) -> Any:
    """Import the object that an entry point refers to."""
    from importlib import import_module

    if not entry.module:
        _refuse(distribution, entry, "plugin.object", "must have the form module:object")
    try:
        offered: Any = import_module(entry.module)
        for name in filter(None, entry.attribute.split(".")):
            offered = getattr(offered, name)
    except KeyboardInterrupt:
        raise
    except (SpecError, RegistryError) as error:
        code = "plugin.spec" if isinstance(error, SpecError) else "plugin.duplicate"
        _refuse(distribution, entry, code, f"cannot be loaded: {error}", error)
    except BaseException as error:
        code = "plugin.import" if isinstance(error, Exception) else "plugin.exit"
        _refuse(distribution, entry, code, f"cannot be loaded: {error_summary(error)}", error)
    return offered


def _computed(distribution: Distribution, entry: EntryPoint, plugin: object) -> tuple[Toolset, ...]:
    """Return the toolsets that a hook plugin computes."""
    _check_api(distribution, entry, getattr(plugin, "runtime_api", FIRST_API))
    try:
        return toolsets_from_hooks((plugin,))
    except PluginError as error:
        _refuse(distribution, entry, "plugin.hook", f"cannot be used: {error.reason}", error)


def toolsets_from_hooks(plugins: Iterable[object]) -> tuple[Toolset, ...]:
    """Return the toolsets from the hook ``neuroscript_toolsets`` of plugins, in the order of the hooks.

    Raises:
        PluginError: One is not a valid plugin, or its hook fails or returns something else.
        SpecError: *plugins* is not a list of plugins.
    """
    from neuroscript.tools import hookspecs

    toolsets: list[Toolset] = []
    for hook, function in hookspecs.Plugins(plugins).of(hookspecs.TOOLSETS).items():
        try:
            results = [*function()]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise PluginError(hook.plugin, f"{hook.name} failed: {_summary(error)}", code="plugin.hook") from error
        wrong = [type_name(each) for each in results if not isinstance(each, Toolset)]
        if wrong:
            raise PluginError(hook.plugin, f"{hook.name} returned {wrong[0]} instead of a Toolset", code="plugin.hook")
        toolsets += results
    return tuple(toolsets)


def _summary(error: BaseException) -> str:
    """Return the full message of our own errors, and the message, file and line of others."""
    return str(error) if isinstance(error, (SpecError, RegistryError)) else error_summary(error)


def _copies(distribution: Distribution, entry: EntryPoint, toolset: Toolset) -> tuple[ToolImplementation, ...]:
    """Return immutable copies of the tools of a set."""
    try:
        _check_api(distribution, entry, toolset.runtime_api)
        return toolset.copies()
    except (KeyboardInterrupt, PluginError):
        raise
    except BaseException as error:
        _refuse(distribution, entry, "plugin.spec", f"cannot be used: {_summary(error)}", error)


def _check_api(distribution: Distribution, entry: EntryPoint, declared: Any) -> None:
    """Reject plugins for another major version of the Runtime, or for members that this version does not have."""
    reason = misfit(declared)
    if reason:
        _refuse(distribution, entry, "plugin.api", reason)
