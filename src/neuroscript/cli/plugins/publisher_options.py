"""Options of ``neuroscript new`` and ``neuroscript lint``, the commands for toolset authors."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.cli.terminal.argument_parser import add_subparser

KINDS: Final = ("toolset",)
"""The kinds of projects that ``new`` creates."""

NEW: Final = """\
NAME is the name of the distribution, in any spelling. acme-weather creates a directory of that name with
pyproject.toml, a package acme_weather with two tools, tests with all contract checks, a README and a CI
file, and prints the commands that install it and run its tests. Either all files are written or none."""

LINT: Final = """\
PATH is a Python file, the directory of a package, or the directory of a distribution with
pyproject.toml. lint only reads the source code; to load and run the tools, use plugins check and the
contract checks of neuroscript.testing. To ignore a finding, end the line with
# neuroscript: ignore[lint.undeclared-access]. Exits 1 if there are findings, otherwise 0."""


def add_new(commands: Any, layout: Any) -> None:
    """Add ``new`` with its kinds to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "new", "create a new distribution with tools")
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", title="kinds")
    toolset = add_subparser(
        kinds,
        layout,
        "toolset",
        "create a distribution with a toolset",
        json_help="print its directory, names and files as JSON",
        description=NEW,
    )
    toolset.add_argument("--directory", metavar="DIR", help="directory to create; default ./NAME")
    toolset.add_argument("--group", metavar="WORD", help="group of the tools; default: the name of the package")
    toolset.add_argument("--author", metavar="AUTHOR", default="", help="the author, such as 'Ada <ada@example.org>'")
    toolset.add_argument("name", metavar="NAME", help="name of the distribution, such as acme-weather")


def add_lint(commands: Any, layout: Any) -> None:
    """Add ``lint`` to the *commands* of the parser."""
    parser = add_subparser(
        commands,
        layout,
        "lint",
        "find problems in the source code of a toolset",
        json_help="print the findings and counts as JSON",
        description=LINT,
    )
    parser.add_argument(
        "path", metavar="PATH", help="a Python file, a package or a distribution; . is the working directory"
    )
