"""A page for each group of the first-party tools, and one for the options of all commands."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import PurePosixPath

from docs._ext.source import ROOT, Pages, toctree

from neuroscript import Engine
from neuroscript.cli.parser import EXIT_CODES, build
from neuroscript.formats.markdown import page, prose


def tool_pages() -> Pages:
    """Return the page of each group of tools.

    Raises:
        PluginError: A distribution is not installed, or cannot be loaded.
    """
    pages: Pages = {}
    for plugin in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        distribution = plugin.parent.name
        with Engine(plugins=[distribution], strict=True) as engine:
            infos = sorted(engine.infos.values(), key=lambda info: (info.spec.group, info.spec.name))
            for group, members in groupby(infos, key=lambda info: info.spec.group):
                pages[f"toolsets/{distribution}/{group}.md"] = page(group, members, engine.aliases)
    return pages


def groups_of(distribution: str, pages: Pages) -> str:
    """Return the list of the groups of tools of a distribution, for the end of its page."""
    names = sorted(PurePosixPath(name).stem for name in pages if name.startswith(f"toolsets/{distribution}/"))
    return "\n## All tools\n" + toctree([f"{name} <{distribution}/{name}>" for name in names], ":maxdepth: 1")


def command_page() -> str:
    """Return the page with the options of each command, from the parser."""
    intro = (
        "# Options of all commands\n\nThis page is generated from the parser: it lists each command with its arguments"
        " and options. The\n[command line](command-line.md) explains them, with examples."
    )
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}  # the page must not depend on the terminal
    return "\n\n".join([intro, *_commands(build()), "## Exit codes of all commands", _fenced(EXIT_CODES)]) + "\n"


def _commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the blocks of each command below a parser, in the order of the help."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _command(command)
                yield from _commands(command)


def _command(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"{'#' * (len(parser.prog.split()))} `{parser.prog}`"
    yield from (prose(each) for each in (parser.description or "").split("\n\n") if each)
    yield _fenced(parser.format_usage())
    for group in parser._action_groups:
        rows = [*_rows(parser, group)]
        if rows:
            yield "\n".join([f"| {group.title} | meaning |", "| --- | --- |", *rows])


def _rows(parser: argparse.ArgumentParser, group: argparse._ArgumentGroup) -> Iterator[str]:
    for action in group._group_actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (f"| `{each.dest}` | {prose(each.help or '')} |" for each in action._get_subactions())
        elif action.help != argparse.SUPPRESS and "--help" not in action.option_strings:
            name = parser._get_formatter()._format_action_invocation(action).replace("|", "\\|")
            yield f"| `{name}` | {prose(parser._get_formatter()._expand_help(action))} |"


def _fenced(text: str) -> str:
    return f"```text\n{text.strip()}\n```"
