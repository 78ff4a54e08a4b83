"""The tools that a command describes, from the indexes of installed distributions or from an engine."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from neuroscript.cli.env.choices import (
    NO_AUTOLOAD_VARIABLE,
    confined_imports,
    files,
    may_name_servers,
    plugin_keywords,
    warn,
)
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.output import Output
from neuroscript.discovery.package_index import IndexedTool
from neuroscript.errors import PluginError, SpecError
from neuroscript.io.user_cache import plugins_directory


class ToolSelection(NamedTuple):
    """Tools sorted by name, each a `ToolInfo`, and a mapping from aliases to canonical names."""

    tools: list[Any]
    aliases: dict[str, str]


def collect_tools(options: Namespace, output: Output, make_engine: Any) -> ToolSelection:
    """Return the tools whose canonical names match the pattern, or all without one, including those that may not run.

    Raises:
        UsageError: No tool matches.
    """
    found = (
        _of_indexes(options, output) if is_indexed(options, make_engine) else _of_engine(options, output, make_engine)
    )
    names = [tool.spec.full_name for tool in found.tools]
    tools = [tool for tool in found.tools if matches(tool.spec.full_name, options.pattern)]
    if not tools:
        raise UsageError(no_match_message(options.pattern, names))
    return ToolSelection(sorted(tools, key=lambda tool: tool.spec.full_name), found.aliases)


def is_indexed(options: Namespace, make_engine: Any) -> bool:
    """Return whether all tools come from installed distributions, so that their indexes suffice."""
    settings = vars(options)
    if make_engine is not None or settings.get("locked") is not None:
        return False
    own = None if os.environ.get(NO_AUTOLOAD_VARIABLE) else plugins_directory()
    is_more = files(settings) or settings.get("plugins_dir") or (own and os.path.isdir(own))  # noqa: PTH112
    return not (is_more or may_name_servers(settings, is_own=True))


class ListedEntry(NamedTuple):
    """A tool of an installed distribution, from its index, with its distribution, its entry point and its aliases."""

    tool: IndexedTool
    origin: str
    entry: str
    aliases: list[str]


def iter_indexed_tools(settings: Mapping[str, Any], output: Output) -> Iterator[ListedEntry]:
    """Yield each indexed tool of installed distributions."""
    from neuroscript.discovery.catalog import iter_offers

    keywords = plugin_keywords(settings)
    without = keywords.get("without", [])
    warn(without, output)
    only = keywords.get("plugins")
    with confined_imports(settings) as imports:
        offers = [*iter_offers([] if only == "none" else only, without, imports=imports)]
    for found in offers:
        if isinstance(found, PluginError):
            output.say(f"warning: {found}")
            continue
        for entry in found.entries:
            for tool in entry.tools:
                aliases = sorted(old for old, name in found.aliases.items() if name == tool.name)
                yield ListedEntry(tool, str(found.distribution), entry.name, aliases)


def matches(name: str, pattern: str | None) -> bool:
    """Return whether the name of a tool matches a pattern; None matches every name."""
    return pattern is None or fnmatchcase(name, pattern.lower())


def no_match_message(pattern: str | None, names: Iterable[str]) -> str:
    """Return the message for a pattern that matches none of *names*."""
    from neuroscript.cli.terminal.tool_hints import no_match

    return no_match(pattern, tuple(names))


def _of_indexes(options: Namespace, output: Output) -> ToolSelection:
    from neuroscript.policy.tool_policy import ToolPolicy
    from neuroscript.runtime.interfaces import ToolInfo
    from neuroscript.tools.serialization import spec_from_data

    tools: list[Any] = []
    aliases: dict[str, str] = {}
    for tool, origin, _, old in iter_indexed_tools(vars(options), output):
        try:
            tools.append(ToolInfo(spec_from_data(tool.spec), ToolPolicy(**tool.policy), origin))
        except (SpecError, TypeError):
            output.say(f"warning: {origin}: {tool.name} does not match its index and is skipped")
        aliases |= dict.fromkeys(old, tool.name)
    return ToolSelection(tools, aliases)


def _of_engine(options: Namespace, output: Output, make_engine: Any) -> ToolSelection:
    from neuroscript.cli.env.engine import open_engine
    from neuroscript.runtime.interfaces import ToolInfo

    with open_engine(make_engine, output, options) as engine:
        return ToolSelection(
            [ToolInfo(tool.spec, tool.policy, "") for tool in engine.tools.values()], dict(engine.aliases)
        )
