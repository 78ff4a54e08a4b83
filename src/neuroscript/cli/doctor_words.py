"""The words of ``neuroscript doctor``: what is looked at besides what is there anyway."""

from __future__ import annotations

import argparse
from typing import Any, Final

from neuroscript.cli.subparsers import add_subparser
from neuroscript.cli.world_words import add_plugins

DOCTOR: Final = """\
Checks versions, extras, plugins, the sandbox, your directories, the policy in use, programs, the
terminal and the environment, and prints one line that corrects each fault. Optional parts that are
not set up are no fault. Plugins are loaded in processes of their own. No value of the environment
is shown. Exits with 1 if something that is chosen does not work, else with 0."""

LONGEST: Final = 3600
"""How many seconds may be given to each plugin."""


def add_doctor(commands: Any, layout: Any) -> None:
    """Add the command to the *commands* of the parser."""
    help = "find what is missing, and what mends it"
    parser = add_subparser(commands, layout, "doctor", help, json_help="all of it in one line", description=DOCTOR)
    add_plugins(parser)
    parser.add_argument("--policy", metavar="FILE", help="look at this policy file; else at your own")
    parser.add_argument("--profile", metavar="NAME", help="and at this profile of it")
    parser.add_argument("--sandbox", metavar="DIR", help="look at this directory; else at your own sandbox")
    parser.add_argument("--seconds", metavar="N", type=_seconds, help="how long each plugin may take; 10 if not given")


def _seconds(word: str) -> float:
    if not word.isascii() or not word.isdigit() or not 0 < int(word[:5]) <= LONGEST:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {LONGEST}")
    return float(word)
