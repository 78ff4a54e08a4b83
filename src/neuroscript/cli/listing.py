"""``neuroscript list``: the tools there are, one in each line.

Where nothing but installed distributions brings them, their indexes say all that is shown: no engine is made.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from neuroscript.cli.choosing import NO_AUTOLOAD, choice, files, warn
from neuroscript.cli.exits import OK
from neuroscript.cli.output import Output
from neuroscript.cli.pages import Rows, cell
from neuroscript.cli.printing import show
from neuroscript.directories import plugins_directory
from neuroscript.display import shown
from neuroscript.errors import PluginError


class Told(NamedTuple):
    """What is told of a tool."""

    name: str
    signature: str
    description: str
    deprecated: str
    aliases: list[str]

    @property
    def text(self) -> str:
        """All but its name and its signature, in one line."""
        old = ", ".join(self.aliases)
        notes = [f"(deprecated: {self.deprecated})" * bool(self.deprecated), f"(alias: {old})" * bool(old)]
        return " ".join(filter(None, (*notes, self.description))).replace("\n", " ")

    @property
    def data(self) -> dict[str, Any]:
        """The same as plain data."""
        data = self._asdict()
        return {key: value for key, value in data.items() if value or key not in ("deprecated", "aliases")}


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """List the tools whose canonical names match the pattern, all without one, and return the exit code."""
    settings = vars(options)
    is_installed = make_engine is None and not _further(settings)
    found = sorted(_indexed(settings, output) if is_installed else _registered(options, output, make_engine))
    tools = [tool for tool in found if _matches(tool.name, options.pattern)]
    if not tools:
        output.say(_nothing(options.pattern, [tool.name for tool in found]))
    if options.json:
        output.json([tool.data for tool in tools])
    elif tools:
        rows = ((cell(tool.name, "name"), cell(tool.signature), cell(tool.text, "dim")) for tool in tools)
        show([Rows(tuple(rows), wrapped=False)], output)
    return OK


def _further(settings: Mapping[str, Any]) -> bool:
    """Tell whether something else than installed distributions brings tools, or an engine has to look at them."""
    if settings.get("locked") is not None:
        return True
    own = None if os.environ.get(NO_AUTOLOAD) else plugins_directory()
    return bool(files(settings) or settings.get("plugins_dir") or (own and os.path.isdir(own)))  # noqa: PTH112


def _indexed(settings: Mapping[str, Any], output: Output) -> Iterator[Told]:
    """Yield the tools of installed distributions, as their indexes tell of them."""
    from neuroscript.catalog import offered

    keywords = choice(settings)
    without = keywords.get("without", [])
    warn(without, output)
    only = keywords.get("plugins")
    for found in offered([] if only == "none" else only, without):
        if isinstance(found, PluginError):
            output.say(f"warning: {found}")
            continue
        for tool in (tool for entry in found.entries for tool in entry.tools):
            aliases = sorted(old for old, name in found.aliases.items() if name == tool.name)
            description, deprecated = (str(tool.spec.get(key, "")) for key in ("description", "deprecated"))
            yield Told(tool.name, tool.signature, description, deprecated, aliases)


def _registered(options: Namespace, output: Output, make_engine: Any) -> Iterator[Told]:
    """Yield the tools of an engine."""
    from neuroscript.cli.opening import old_names, opened
    from neuroscript.synopsis import signature

    with opened(make_engine, output, options) as engine:
        for tool in engine.tools.values():
            spec = tool.spec
            yield Told(tool.name, signature(spec), spec.description, spec.deprecated, old_names(engine, tool))


def _matches(name: str, pattern: str | None) -> bool:
    return pattern is None or fnmatchcase(name, pattern.lower())


def _nothing(pattern: str | None, names: list[str]) -> str:
    if pattern is None:
        return "there are no tools; the distribution neuroscript-std brings the first ones"
    group = pattern.lower().rstrip(".")
    hint = f"; did you mean '{group}.*'?" if any(name.startswith(f"{group}.") for name in names) else ""
    return f"no tool matches {shown(pattern)}{hint}"
