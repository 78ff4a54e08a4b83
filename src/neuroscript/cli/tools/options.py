"""The words of ``neuroscript export``, ``stubs`` and ``docs``, which tell others what tools there are."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.cli.env.options import add_servers, add_tools
from neuroscript.cli.terminal.arguments import add_subparser

FORMATS: Final = ("jsonschema", "prompt", "openai", "openai-responses", "anthropic", "gemini")
"""What tools can be exported as."""

EXPORT: Final = """\
FORMAT jsonschema is an array of {"name", "description", "input_schema", "output_schema"}; prompt is a
text for models that know no tool calls: all of each tool, and its examples as calls that neuroscript
execute takes. openai (Chat Completions), openai-responses, anthropic and gemini are what stands under
"tools" in a request to that API."""

STUBS: Final = """\
The stub has the protocols Tools and AsyncTools, with each tool as a method of its group; they are the
types of what neuroscript.client(engine) and neuroscript.aclient(engine) return. Nothing is imported of
tools that bring an index."""

DOCS: Final = """\
Writes GROUP.md for each group of tools, or all pages to the standard output where no directory is
named. A file of that name that neuroscript docs has not written is left alone, and nothing is written
then."""


def add_export(commands: Any, layout: Any) -> None:
    """Add ``export`` to the *commands* of the parser."""
    json_help = "the same; of a text, a JSON text of it"
    parser = add_subparser(
        commands, layout, "export", "write the tools down for others", json_help=json_help, description=EXPORT
    )
    parser.add_argument("format", metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument("--plain", action="store_true", help="leave out of schemas what only neuroscript reads")
    _add_pattern(parser)
    add_tools(parser)
    add_servers(parser)


def add_stubs(commands: Any, layout: Any) -> None:
    """Add ``stubs`` to the *commands* of the parser."""
    parser = add_subparser(
        commands,
        layout,
        "stubs",
        "write the types of the tools",
        json_help="the file, how many tools it has, and whether it was current",
        description=STUBS,
    )
    parser.add_argument(
        "--output", metavar="FILE", default="-", help="write this file, NAME.pyi; else, or for -, stdout"
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
        "write a page for each group of tools",
        json_help="the files, and which of them were not current",
        description=DOCS,
    )
    parser.add_argument("--output", metavar="DIR", help="write the pages there; it is made where it is missing")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is not current")
    _add_pattern(parser)
    add_tools(parser)
    add_servers(parser)


def _add_pattern(parser: Any) -> None:
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="names of tools, as in 'math.*'; * crosses dots")
