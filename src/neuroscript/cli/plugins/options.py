"""Options of ``neuroscript plugins`` and ``neuroscript index``."""

from __future__ import annotations

import argparse
from typing import Any, Final

from neuroscript.cli.env.options import LOCK_FILE, add_plugins
from neuroscript.cli.terminal.argument_parser import add_subparser
from neuroscript.discovery.package_index import FILE

ACTIONS: Final = ("list", "show", "check", "lock", "diff")

PLUGINS: Final = """\
A plugin is an installed distribution with toolsets or hooks. list and show read its metadata and import
nothing. NEUROSCRIPT_PLUGINS=NAME,… enables only these plugins; @coding is a bundle of several.
NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD=1 disables all others, and -p no:NAME disables one."""

CHECK: Final = """\
Loads each plugin in a separate process, and prints whether it can be used, and if not, why. Exits 1 if
a plugin cannot be used, otherwise 0."""

LOCK: Final = """\
Writes the installed distributions, their versions and the full definitions of their tools to a lock
file. With --locked, a command loads nothing else. If a plugin cannot be used, exits 1 and writes nothing."""

DIFF: Final = """\
Shows the differences between the lock file and the installed plugins, and whether each is compatible or
breaking. Exits 0 if nothing differs, 1 if something does, 2 if the file cannot be read or is invalid."""


INDEX: Final = """\
Loads an installed distribution in a separate process, and writes an index of its tools to its package.
Ship the index with the package: an engine then knows the tools and loads the code when one is called.
A project that is built with hatchling can use the build hook [tool.hatch.build.hooks.neuroscript] instead."""


def add_inspection(commands: Any, layout: Any) -> None:
    """Add ``plugins`` with its actions to the *commands* of the parser."""
    help = "list, check and lock installed plugins"
    parser = add_subparser(commands, layout, "plugins", help, description=PLUGINS)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    _action(actions, layout, "list", "list the plugins", "print a JSON array of names, versions and entry points")
    show = _action(actions, layout, "show", "show the details of a plugin", "print a JSON object with its entry points")
    show.add_argument("name", metavar="NAME", help="a distribution, in any spelling")
    check = _action(actions, layout, "check", "check that plugins can be loaded", "print the results as JSON", CHECK)
    check.add_argument("names", nargs="*", metavar="NAME", help="distributions to check; default: all enabled ones")
    check.add_argument("--timeout", metavar="N", type=_seconds, help="time limit of each plugin; default 10")
    lock = _action(actions, layout, "lock", "write the lock file", "print the locked plugins or the errors", LOCK)
    lock.add_argument("names", nargs="*", metavar="NAME", help="update only these and leave the others unchanged")
    lock.add_argument("--output", metavar="FILE", default=LOCK_FILE, help=f"the lock file; default {LOCK_FILE}")
    diff = _action(actions, layout, "diff", "compare with the lock file", "print the changes and their counts", DIFF)
    diff.add_argument("file", nargs="?", metavar="FILE", default=LOCK_FILE, help=f"the lock file; default {LOCK_FILE}")


def add_index(commands: Any, layout: Any) -> None:
    """Add ``index`` to the *commands* of the parser."""
    parser = add_subparser(
        commands,
        layout,
        "index",
        "write the tool index of a distribution",
        json_help="print the file, the number of tools, and whether the file was current",
        description=INDEX,
    )
    parser.add_argument("name", metavar="NAME", help="an installed distribution, in any spelling")
    parser.add_argument("--output", metavar="FILE", help=f"write to this file; default {FILE} in the package")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the file is not current")


def _action(actions: Any, layout: Any, name: str, help: str, json_help: str, description: str = "") -> Any:
    parser = add_subparser(actions, layout, name, help, json_help=json_help, description=description)
    add_plugins(parser)
    return parser


def _seconds(word: str) -> float:
    if not word.isascii() or not word.isdigit() or not 0 < int(word[:5]) <= 3600:
        raise argparse.ArgumentTypeError("expected an integer from 1 to 3600")
    return float(word)
