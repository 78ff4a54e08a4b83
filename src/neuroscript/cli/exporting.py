"""``neuroscript export``: tools as others read them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from neuroscript.cli.exits import OK, UsageError
from neuroscript.cli.gathering import gathered
from neuroscript.cli.output import Output
from neuroscript.display import shown
from neuroscript.spec import ToolSpec


class Exported(NamedTuple):
    """Tools in one format: as a text, and as plain data for programs."""

    text: str
    data: Any


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
    from neuroscript.promptform import to_prompt

    text = to_prompt(specs)
    return Exported(text, text)


def _jsonschema(specs: Sequence[ToolSpec], options: Namespace) -> Exported:
    import json

    from neuroscript.schema import result_schema, spec_to_schema

    tools = [
        {
            "name": spec.full_name,
            "description": spec.description,
            "input_schema": spec_to_schema(spec, exact=not options.plain),
            "output_schema": result_schema(spec),
        }
        for spec in specs
    ]
    return Exported(json.dumps(tools, indent=2), tools)


FORMATS: Final[Mapping[str, Callable[[Sequence[ToolSpec], Namespace], Exported]]] = {
    "jsonschema": _jsonschema,
    "prompt": _prompt,
}
"""What tools can be exported as, and what writes them so."""
