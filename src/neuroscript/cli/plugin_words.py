"""The words of ``neuroscript plugins``: what is asked about what is installed."""

from __future__ import annotations

import argparse
from typing import Any, Final

from neuroscript.cli.world_words import add_plugins

ACTIONS: Final = ("list", "show", "check")

PLUGINS: Final = """\
A plugin is an installed distribution that offers toolsets or hooks. list and show read what is
installed, and import nothing of it. NEUROSCRIPT_PLUGINS=NAME,… lets only these be loaded,
NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD=1 none, -p no:NAME all but that one."""

CHECK: Final = """\
Loads each plugin in a process of its own, and tells of each whether an engine takes it, and why not.
Exits 1 where one can not be used, else 0."""


def add_inspection(commands: Any, layout: Any) -> None:
    """Add the command with its actions to the *commands* of the parser."""
    parser = commands.add_parser(
        "plugins",
        help="look at what is installed",
        description=f"Look at what is installed.\n\n{PLUGINS}",
        formatter_class=layout,
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    _action(actions, layout, "list", "list the plugins", "an array of names, versions and entry points")
    show = _action(actions, layout, "show", "show all of one plugin", "the same, and where it lies")
    show.add_argument("name", metavar="NAME", help="a distribution, in any spelling")
    check = _action(actions, layout, "check", "load each plugin, apart", "what came of each, and of all", CHECK)
    check.add_argument("names", nargs="*", metavar="NAME", help="distributions; all that are chosen, if none is named")
    check.add_argument("--seconds", metavar="N", type=_seconds, help="how long each may take; 10 if not given")


def _action(actions: Any, layout: Any, name: str, help: str, json_help: str, description: str = "") -> Any:
    parser = actions.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.\n\n{description}".strip(),
        formatter_class=layout,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help=json_help)
    add_plugins(parser)
    return parser


def _seconds(word: str) -> float:
    if not word.isascii() or not word.isdigit() or not 0 < int(word[:5]) <= 3600:
        raise argparse.ArgumentTypeError("expected a whole number from 1 to 3600")
    return float(word)
