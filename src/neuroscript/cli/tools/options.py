"""Options of ``neuroscript export``, ``stubs`` and ``docs``."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.cli.env.options import add_servers, add_tools
from neuroscript.cli.terminal.argument_parser import add_subparser

FORMATS: Final = ("jsonschema", "prompt", "openai", "openai-responses", "anthropic", "gemini")
"""The export formats."""

EXPORT: Final = """\
jsonschema is an array of {"name", "description", "input_schema", "output_schema"}. prompt is text for
models without tool calling: it describes each tool, with examples as calls for neuroscript execute.
openai (Chat Completions), openai-responses, anthropic and gemini are the value of "tools" in a request
to that API."""

STUBS: Final = """\
The stub contains the protocols Tools and AsyncTools, with each tool as a method of its group. They are
the types of neuroscript.client(engine) and neuroscript.aclient(engine). Tools from an index are not
imported."""

DOCS: Final = """\
Writes GROUP.md for each group of tools, or prints all pages to stdout without --output. If a file with
such a name exists that neuroscript docs did not write, the command fails and writes nothing."""


def add_export(commands: Any, layout: Any) -> None:
    """Add ``export`` to the *commands* of the parser."""
    json_help = "print one line of JSON; the prompt format becomes a JSON string"
    parser = add_subparser(
        commands,
        layout,
        "export",
        "export tools for other programs and for models",
        json_help=json_help,
        description=EXPORT,
    )
    parser.add_argument("format", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("--plain", action="store_true", help="omit the extensions of neuroscript from JSON schemas")
    _add_pattern(parser)
    add_tools(parser)
    add_servers(parser)


def add_stubs(commands: Any, layout: Any) -> None:
    """Add ``stubs`` to the *commands* of the parser."""
    parser = add_subparser(
        commands,
        layout,
        "stubs",
        "write type stubs of the tools",
        json_help="print the file, the number of tools, and whether the file was current",
        description=STUBS,
    )
    parser.add_argument(
        "--output", metavar="FILE", default="-", help="write to this file, such as tools.pyi; default -, stdout"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the file is not current")
    _add_pattern(parser)
    add_tools(parser)
    add_servers(parser)


def add_docs(commands: Any, layout: Any) -> None:
    """Add ``docs`` to the *commands* of the parser."""
    parser = add_subparser(
        commands,
        layout,
        "docs",
        "write a Markdown page for each group of tools",
        json_help="print the files, and which of them were not current",
        description=DOCS,
    )
    parser.add_argument("--output", metavar="DIR", help="write the pages to this directory, and create it if needed")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is not current")
    _add_pattern(parser)
    add_tools(parser)
    add_servers(parser)


def _add_pattern(parser: Any) -> None:
    parser.add_argument(
        "pattern", nargs="?", metavar="PATTERN", help="only matching tools, such as 'math.*'; * also matches dots"
    )
