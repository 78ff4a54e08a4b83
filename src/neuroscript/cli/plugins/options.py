"""The words of ``neuroscript plugins``: what is asked about what is installed."""

from __future__ import annotations

import argparse
from typing import Any, Final

from neuroscript.cli.env.options import LOCK_FILE, add_plugins
from neuroscript.cli.terminal.arguments import add_subparser
from neuroscript.discovery.package_index import FILE

ACTIONS: Final = ("list", "show", "check", "lock", "diff")

PLUGINS: Final = """\
A plugin is an installed distribution that offers toolsets or hooks. list and show read what is
installed, and import nothing of it. NEUROSCRIPT_PLUGINS=NAME,… lets only these be loaded, of which
@coding is a bundle, NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD=1 none, -p no:NAME all but that one."""

CHECK: Final = """\
Loads each plugin in a process of its own, and tells of each whether an engine takes it, and why not.
Exits 1 where one can not be used, else 0."""

LOCK: Final = """\
Writes down the distributions that are installed, their versions, and the whole definition of each of
their tools; --locked then takes nothing else. Exits 1, and writes nothing, where one can not be used."""

DIFF: Final = """\
Tells what is not as it was when it was locked, and whether that is compatible or breaks something.
Exits 0 where nothing differs, 1 where something does, 2 where the file can not be read or is wrong."""


INDEX: Final = """\
Loads an installed distribution in a process of its own, and writes down its tools in its package,
with which they are to be shipped: an engine then knows them, and loads them when they are called.
A project that is built by hatchling needs no such file, but the hook: [tool.hatch.build.hooks.neuroscript]"""


def add_inspection(commands: Any, layout: Any) -> None:
    """Add the command with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "plugins", "look at what is installed", description=PLUGINS)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    _action(actions, layout, "list", "list the plugins", "an array of names, versions and entry points")
    show = _action(actions, layout, "show", "show all of one plugin", "the same, and where it lies")
    show.add_argument("name", metavar="NAME", help="a distribution, in any spelling")
    check = _action(actions, layout, "check", "load each plugin, apart", "what came of each, and of all", CHECK)
    check.add_argument("names", nargs="*", metavar="NAME", help="distributions; all that are chosen, if none is named")
    check.add_argument("--seconds", metavar="N", type=_seconds, help="how long each may take; 10 if not given")
    lock = _action(actions, layout, "lock", "write down what is installed", "what was locked, or why not", LOCK)
    lock.add_argument("names", nargs="*", metavar="NAME", help="lock only these anew, and leave the others in the file")
    lock.add_argument("--output", metavar="FILE", default=LOCK_FILE, help=f"the file; {LOCK_FILE} if not given")
    diff = _action(actions, layout, "diff", "tell what changed since", "each change and its kind, and the counts", DIFF)
    diff.add_argument("file", nargs="?", metavar="FILE", default=LOCK_FILE, help=f"{LOCK_FILE} if not given")


def add_index(commands: Any, layout: Any) -> None:
    """Add ``index`` to the *commands* of the parser."""
    parser = add_subparser(
        commands,
        layout,
        "index",
        "write what a distribution ships of its tools",
        json_help="the file, how many tools it tells of, and whether it was current",
        description=INDEX,
    )
    parser.add_argument("name", metavar="NAME", help="an installed distribution, in any spelling")
    parser.add_argument("--output", metavar="FILE", help=f"the file; {FILE} in the package if not given")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the file is not current")


def _action(actions: Any, layout: Any, name: str, help: str, json_help: str, description: str = "") -> Any:
    parser = add_subparser(actions, layout, name, help, json_help=json_help, description=description)
    add_plugins(parser)
    return parser


def _seconds(word: str) -> float:
    if not word.isascii() or not word.isdigit() or not 0 < int(word[:5]) <= 3600:
        raise argparse.ArgumentTypeError("expected a whole number from 1 to 3600")
    return float(word)
