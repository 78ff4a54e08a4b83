"""``neuroscript export``: export tools as JSON Schema, as a prompt, or for the API of a model."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from neuroscript.cli.env.tools import collect_tools
from neuroscript.cli.terminal.exit_codes import OK, UsageError
from neuroscript.cli.terminal.output import Output
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.tool_spec import ToolSpec


class ExportedTools(NamedTuple):
    """Tools in one format, as a string and as plain data for ``--json``."""

    text: str
    data: Any


Format = Callable[[Sequence[ToolSpec], Namespace], ExportedTools]
"""A function that exports tools in one format."""


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """Print the tools that match the pattern, or all without one, and return the exit code.

    Raises:
        UsageError: The format is unknown, or no tool matches.
        SpecError: JSON cannot represent an example of a spec.
    """
    if options.format not in FORMATS:
        known = ", ".join(FORMATS)
        raise UsageError(
            f"unknown format {quote_untrusted(options.format)}; choose from {known} (see neuroscript export --help)"
        )
    found = collect_tools(options, output, make_engine)
    exported = FORMATS[options.format]([tool.spec for tool in found.tools], options)
    if options.json:
        output.json(exported.data)
    else:
        output.text(exported.text)
    return OK


def _prompt(specs: Sequence[ToolSpec], options: Namespace) -> ExportedTools:
    from neuroscript.formats.prompt import to_prompt

    text = to_prompt(specs)
    return ExportedTools(text, text)


def _jsonschema(specs: Sequence[ToolSpec], options: Namespace) -> ExportedTools:
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
    """Return the function that exports tools for one API; its module is imported when it is called."""

    def exported(specs: Sequence[ToolSpec], _: Namespace) -> ExportedTools:
        from importlib import import_module

        return _as_json(import_module(f"neuroscript.llm.wire.{neighbour}").to_tools(specs, **options))

    return exported


def _as_json(tools: Any) -> ExportedTools:
    import json

    return ExportedTools(json.dumps(tools, indent=2), tools)


FORMATS: Final[Mapping[str, Format]] = {
    "jsonschema": _jsonschema,
    "prompt": _prompt,
    "openai": _for_api("openai"),
    "openai-responses": _for_api("openai", api="responses"),
    "anthropic": _for_api("anthropic"),
    "gemini": _for_api("gemini"),
}
"""The export formats and their functions."""
