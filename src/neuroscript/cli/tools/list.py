"""``neuroscript list``: list the available tools, one per line.

If all tools come from installed distributions, the command reads only their indexes and creates no engine.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from neuroscript.cli.env.tools import is_indexed, iter_indexed_tools, matches, no_match_message
from neuroscript.cli.terminal.exit_codes import OK
from neuroscript.cli.terminal.output import Output, Rows, cell
from neuroscript.cli.terminal.printing import show


class ListedTool(NamedTuple):
    """A listed tool."""

    name: str
    signature: str
    description: str
    deprecated: str
    aliases: list[str]

    @property
    def text(self) -> str:
        """The notes and the description, in one line."""
        old = ", ".join(self.aliases)
        notes = [f"(deprecated: {self.deprecated})" * bool(self.deprecated), f"(alias: {old})" * bool(old)]
        return " ".join(filter(None, (*notes, self.description))).replace("\n", " ")

    @property
    def data(self) -> dict[str, Any]:
        """The tool as plain data."""
        data = self._asdict()
        return {key: value for key, value in data.items() if value or key not in ("deprecated", "aliases")}


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """List the tools whose canonical names match the pattern, or all without one, and return the exit code."""
    is_installed = is_indexed(options, make_engine)
    found = sorted(_indexed(vars(options), output) if is_installed else _registered(options, output, make_engine))
    tools = [tool for tool in found if matches(tool.name, options.pattern)]
    if not tools:
        output.say(no_match_message(options.pattern, [tool.name for tool in found]))
    if options.json:
        output.json([tool.data for tool in tools])
    elif tools:
        rows = ((cell(tool.name, "name"), cell(tool.signature), cell(tool.text, "dim")) for tool in tools)
        show([Rows(tuple(rows), wrapped=False)], output)
    return OK


def _indexed(settings: Mapping[str, Any], output: Output) -> Iterator[ListedTool]:
    """Yield the tools of installed distributions, from their indexes."""
    for tool, _, aliases in iter_indexed_tools(settings, output):
        description, deprecated = (str(tool.spec.get(key, "")) for key in ("description", "deprecated"))
        yield ListedTool(tool.name, tool.signature, description, deprecated, aliases)


def _registered(options: Namespace, output: Output, make_engine: Any) -> Iterator[ListedTool]:
    """Yield the tools of an engine."""
    from neuroscript.cli.env.engine import aliases_of, open_engine
    from neuroscript.formats.one_line import signature

    with open_engine(make_engine, output, options) as engine:
        for tool in engine.tools.values():
            spec = tool.spec
            yield ListedTool(tool.name, signature(spec), spec.description, spec.deprecated, aliases_of(engine, tool))
