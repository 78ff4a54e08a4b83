"""``neuroscript list``: the tools there are, one in each line."""

from __future__ import annotations

from argparse import Namespace
from fnmatch import fnmatchcase
from typing import Any

from neuroscript.cli.exits import OK
from neuroscript.cli.opening import MakeEngine, old_names, opened
from neuroscript.cli.output import Output
from neuroscript.cli.pages import Rows, cell
from neuroscript.cli.printing import show
from neuroscript.cli.signatures import signature
from neuroscript.display import shown
from neuroscript.engine import Engine
from neuroscript.tools import ToolImplementation


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """List the tools whose canonical names match the pattern, all without one, and return the exit code."""
    with opened(make_engine, output, options) as engine:
        tools = [tool for name, tool in sorted(engine.tools.items()) if _matches(name, options.pattern)]
        if not tools:
            output.say(_nothing(options.pattern, [*engine.tools]))
        if options.json:
            output.json([_data(tool, engine) for tool in tools])
        elif tools:
            show([_rows(tools, engine)], output)
    return OK


def _told(tool: ToolImplementation, engine: Engine) -> str:
    old = ", ".join(old_names(engine, tool))
    notes = [f"(deprecated: {tool.spec.deprecated})" * bool(tool.spec.deprecated), f"(alias: {old})" * bool(old)]
    return " ".join(filter(None, (*notes, tool.spec.description)))


def _matches(name: str, pattern: str | None) -> bool:
    return pattern is None or fnmatchcase(name, pattern.lower())


def _nothing(pattern: str | None, names: list[str]) -> str:
    if pattern is None:
        return "there are no tools; the distribution neuroscript-std brings the first ones"
    group = pattern.lower().rstrip(".")
    hint = f"; did you mean '{group}.*'?" if any(name.startswith(f"{group}.") for name in names) else ""
    return f"no tool matches {shown(pattern)}{hint}"


def _data(tool: ToolImplementation, engine: Engine) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": tool.name,
        "signature": signature(tool.spec),
        "description": tool.spec.description,
        "deprecated": tool.spec.deprecated,
        "aliases": old_names(engine, tool),
    }
    return {key: value for key, value in data.items() if value or key not in ("deprecated", "aliases")}


def _rows(tools: list[ToolImplementation], engine: Engine) -> Rows:
    rows = [
        (cell(tool.name, "name"), cell(signature(tool.spec)), cell(_told(tool, engine).replace("\n", " "), "dim"))
        for tool in tools
    ]
    return Rows(tuple(rows), wrapped=False)
