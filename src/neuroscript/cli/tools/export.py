"""``neuroscript export``: tools as others read them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from neuroscript.cli.env.tools import gathered
from neuroscript.cli.terminal.exit_codes import OK, UsageError
from neuroscript.cli.terminal.output import Output
from neuroscript.io.text import shown
from neuroscript.spec.tool_spec import ToolSpec


class Exported(NamedTuple):
    """Tools in one format: as a text, and as plain data for programs."""

    text: str
    data: Any


Format = Callable[[Sequence[ToolSpec], Namespace], Exported]
"""What writes tools in one format."""


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """Write the tools that match the pattern, all without one, and return the exit code.

    Raises:
        UsageError: There is no such format, or no tool matches.
        SpecError: A spec has an example for which JSON has no word.
    """
    if options.format not in FORMATS:
        known = ", ".join(FORMATS)
        raise UsageError(
            f"no format is called {shown(options.format)}; there are {known} (see neuroscript export --help)"
        )
    found = gathered(options, output, make_engine)
    exported = FORMATS[options.format]([tool.spec for tool in found.tools], options)
    if options.json:
        output.json(exported.data)
    else:
        output.text(exported.text)
    return OK


def _prompt(specs: Sequence[ToolSpec], options: Namespace) -> Exported:
    from neuroscript.formats.prompt import to_prompt

    text = to_prompt(specs)
    return Exported(text, text)


def _jsonschema(specs: Sequence[ToolSpec], options: Namespace) -> Exported:
    from neuroscript.formats.json_schema import result_schema, spec_to_schema

    tools = [
        {
            "name": spec.full_name,
            "description": spec.description,
            "input_schema": spec_to_schema(spec, exact=not options.plain),
            "output_schema": result_schema(spec),
        }
        for spec in specs
    ]
    return _as_json(tools)


def _for_api(neighbour: str, **options: Any) -> Format:
    """Return what writes tools for one API, by the module of that neighbour, which is loaded when it is asked."""

    def exported(specs: Sequence[ToolSpec], _: Namespace) -> Exported:
        from importlib import import_module

        return _as_json(import_module(f"neuroscript.llm.wire.{neighbour}").to_tools(specs, **options))

    return exported


def _as_json(tools: Any) -> Exported:
    import json

    return Exported(json.dumps(tools, indent=2), tools)


FORMATS: Final[Mapping[str, Format]] = {
    "jsonschema": _jsonschema,
    "prompt": _prompt,
    "openai": _for_api("openai"),
    "openai-responses": _for_api("openai", api="responses"),
    "anthropic": _for_api("anthropic"),
    "gemini": _for_api("gemini"),
}
"""What tools can be exported as, and what writes them so."""
