"""The words of ``neuroscript models``: which models there are, and whether one answers."""

from __future__ import annotations

import argparse
import os
from typing import Any, Final

from neuroscript.cli.subparsers import add_subparser
from neuroscript.paths import LOCAL, is_address

ACTIONS: Final = ("list", "check")
APIS: Final = ("openai-chat", "openai-responses", "anthropic")
"""What a server can be told to speak."""

LIST: Final = """\
Those that the package llm and its plugins know, with what each needs; no network is asked. With
--base-url, those that the server of that address lists."""

CHECK: Final = """\
Makes one small request, and tells what came of it. With --base-url and without NAME, the first model
that the server lists is asked. Exits 0 where it answered, 1 where it did not, 2 where there is no such
model or no key."""

MODEL: Final = "NEUROSCRIPT_MODEL"
"""Names the model of whoever names none with ``--model``."""

KEY: Final = "NEUROSCRIPT_MODEL_KEY"
"""The key for the server of ``--base-url``, which is sent no other."""

KEYS: Final = f"""\
A key comes from the environment or from the store of llm (llm keys set NAME), never from a word. A
server that --base-url names is sent {KEY} alone, and nothing where it is not set."""


def add_models(commands: Any, layout: Any) -> None:
    """Add the command with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "models", "look at the models that can be asked", description=KEYS)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    listed = _action(actions, layout, "list", "list the models", "an array of names and what they need", LIST)
    listed.add_argument("name", nargs="?", metavar="PATTERN", help="names to list, as in 'gpt-*'")
    check = _action(actions, layout, "check", "ask a model", "what came of it, in one line", CHECK)
    check.add_argument("name", nargs="?", metavar="NAME", help="a name or an alias; with --base-url its server's name")


def _action(actions: Any, layout: Any, name: str, help: str, json_help: str, description: str) -> Any:
    parser = add_subparser(actions, layout, name, help, json_help=json_help, description=description)
    parser.add_argument(
        "--base-url",
        metavar="URL",
        type=address,
        help=f"the address of a server, as {LOCAL}",
    )
    parser.add_argument("--api", metavar="API", choices=APIS, default="", help=f"what it speaks: {', '.join(APIS)}")
    return parser


def own_key(base_url: str | None) -> str | None:
    """Return the key for the server of an address, if one is named and the environment has one for it."""
    return os.environ.get(KEY) or None if base_url else None


def address(text: str) -> str:
    """Return the address of a server.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not is_address(text):
        raise argparse.ArgumentTypeError(f"expected an address such as {LOCAL}")
    return text
