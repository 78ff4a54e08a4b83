"""``neuroscript list``: list the available tools, one per line.

If all tools come from installed distributions, the command reads only their indexes and creates no engine.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from neuroscript.cli.env.choices import isolation_in_use
from neuroscript.cli.env.tools import is_indexed, iter_indexed_tools, matches, no_match_message
from neuroscript.cli.terminal.exit_codes import OK
from neuroscript.cli.terminal.output import Output, Rows, cell
from neuroscript.cli.terminal.printing import show
from neuroscript.errors import SpecError

MAX_FOUND: Final = 10
"""Maximum number of tools that a search lists."""


class ListedTool(NamedTuple):
    """A listed tool; *spec* is its `ToolSpec`, or the data of one."""

    name: str
    signature: str
    description: str
    deprecated: str
    aliases: list[str]
    isolated: str = ""
    spec: Any = None

    @property
    def text(self) -> str:
        """The notes and the description, in one line."""
        old = ", ".join(self.aliases)
        notes = [
            f"(deprecated: {self.deprecated})" * bool(self.deprecated),
            f"(alias: {old})" * bool(old),
            f"(isolated: {self.isolated})" * bool(self.isolated),
        ]
        return " ".join(filter(None, (*notes, self.description))).replace("\n", " ")

    @property
    def data(self) -> dict[str, Any]:
        """The tool as plain data."""
        data = self._asdict()
        del data["spec"]
        return {key: value for key, value in data.items() if value or key not in ("deprecated", "aliases", "isolated")}


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """List the tools whose canonical names match the pattern, or all without one, and return the exit code.

    With ``--search``, these are only the tools that fit the words best, the best one first.
    """
    is_installed = is_indexed(options, make_engine)
    listed = _indexed(vars(options), output) if is_installed else _registered(options, output, make_engine)
    found = sorted(listed, key=lambda tool: tool[:-1])
    tools = [tool for tool in found if matches(tool.name, options.pattern)]
    if tools and options.search is not None:
        tools = _search(tools, options.search)
        if not tools:
            output.say("no tool contains any of these words")
    elif not tools:
        output.say(no_match_message(options.pattern, [tool.name for tool in found]))
    if options.json:
        output.json([tool.data for tool in tools])
    elif tools:
        rows = ((cell(tool.name, "name"), cell(tool.signature), cell(tool.text, "dim")) for tool in tools)
        show([Rows(tuple(rows), wrapped=False)], output)
    return OK


def _search(tools: list[ListedTool], words: str) -> list[ListedTool]:
    """Return the tools that fit the words best, the best one first; tools with an invalid index are not found."""
    from neuroscript.tools.search import ToolIndex
    from neuroscript.tools.serialization import spec_from_data

    by_name: dict[str, ListedTool] = {}
    specs: list[Any] = []
    for tool in tools:
        with suppress(SpecError):
            spec = spec_from_data(tool.spec) if isinstance(tool.spec, Mapping) else tool.spec
            specs.append(spec)
            by_name[spec.full_name] = tool
    return [by_name[spec.full_name] for spec in ToolIndex(specs).search(words, MAX_FOUND)]


def _indexed(settings: Mapping[str, Any], output: Output) -> Iterator[ListedTool]:
    """Yield the tools of installed distributions, from their indexes."""
    isolation = isolation_in_use(settings)
    for tool, origin, entry, aliases in iter_indexed_tools(settings, output):
        description, deprecated = (str(tool.spec.get(key, "")) for key in ("description", "deprecated"))
        isolated = "" if isolation is None else _isolated(isolation, tool.name, (origin, entry, tuple(aliases)))
        yield ListedTool(tool.name, tool.signature, description, deprecated, aliases, isolated, tool.spec)


def _isolated(isolation: Any, tool: str, source: tuple[str, str, tuple[str, ...]]) -> str:
    """Return what of a tool is isolated: ``import``, ``function``, or ``""`` for nothing."""
    from neuroscript.policy.isolation import strictest

    found = strictest([isolation], tool, *source)
    return "" if found is None else found.part


def _registered(options: Namespace, output: Output, make_engine: Any) -> Iterator[ListedTool]:
    """Yield the tools of an engine."""
    from neuroscript.cli.env.engine import aliases_of, open_engine
    from neuroscript.engine.explanation.tool_sources import source_of
    from neuroscript.formats.one_line import signature

    with open_engine(make_engine, output, options) as engine:
        isolation = engine.policy.isolate
        for tool in engine.tools.values():
            spec = tool.spec
            isolated = "" if isolation is None else _isolated(isolation, tool.name, source_of(engine, tool.name))
            aliases = aliases_of(engine, tool)
            yield ListedTool(tool.name, signature(spec), spec.description, spec.deprecated, aliases, isolated, spec)
