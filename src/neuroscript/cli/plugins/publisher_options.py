"""The words of ``neuroscript new`` and ``neuroscript lint``: what the publishers of toolsets ask for."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.cli.terminal.arguments import add_subparser

KINDS: Final = ("toolset",)
"""What can be new."""

NEW: Final = """\
NAME is the distribution, in any spelling: acme-weather becomes a directory of that name with
pyproject.toml, a package acme_weather with two tools, tests that hold them to every law, a README and
a file for CI. pip install -e '.[test]' and pytest pass in it as it is. Nothing is written unless all
of it can be."""

LINT: Final = """\
PATH is a file of Python, the directory of a package, or that of a distribution, with pyproject.toml.
Its sources are read, and nothing of it is imported or run: plugins check and the laws of
neuroscript.testing do that. A line that ends in # neuroscript: ignore[lint.outside] is meant to be so.
Exits 1 when something is found, else 0."""


def add_new(commands: Any, layout: Any) -> None:
    """Add ``new`` with what it can write to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "new", "begin a distribution with tools")
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", title="kinds")
    toolset = add_subparser(
        kinds,
        layout,
        "toolset",
        "write a complete distribution",
        json_help="its directory, its names and its files",
        description=NEW,
    )
    toolset.add_argument("--directory", metavar="DIR", help="make this directory; else NAME in the working directory")
    toolset.add_argument("--group", metavar="WORD", help="the group of its tools; else the name of the package")
    toolset.add_argument("--author", metavar="AUTHOR", default="", help="who wrote it: 'Ada <ada@example.org>'")
    toolset.add_argument("name", metavar="NAME", help="what it is called, as in acme-weather")


def add_lint(commands: Any, layout: Any) -> None:
    """Add ``lint`` to the *commands* of the parser."""
    parser = add_subparser(
        commands,
        layout,
        "lint",
        "find faults in the sources of a toolset",
        json_help="the findings, and how much was read",
        description=LINT,
    )
    parser.add_argument("path", metavar="PATH", help="a file, a package or a distribution; . is this directory")
