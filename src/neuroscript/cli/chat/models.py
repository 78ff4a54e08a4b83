"""The words of ``neuroscript models``: which models there are, and whether one answers.

``neuroscript models``: which models there are, what each needs, and whether one answers.

Source: issue "Models", command line.
"""

from __future__ import annotations

import argparse
import os
from argparse import Namespace
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from neuroscript.cli.terminal.arguments import add_subparser
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.output import Output, Rows, cell
from neuroscript.cli.terminal.printing import show
from neuroscript.errors import LLMError
from neuroscript.io.text import shown
from neuroscript.policy.paths import LOCAL, is_address

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


SLOWEST = 30.0
"""For how many seconds a server may be silent."""


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """List models, or ask one, and return the exit code.

    Raises:
        UsageError: No action is named, there is no such model or no key, or a package is missing.
    """
    try:
        match options.action:
            case "list":
                return _list(options, output)
            case "check":
                return _check(options, output)
    except LLMError as error:
        raise UsageError(str(error)) from None
    raise UsageError("an action is missing: list, check (see neuroscript models --help)")


def _list(options: Namespace, output: Output) -> int:
    if options.base_url:
        with _opened(options, "") as server:
            found: list[dict[str, Any]] = [{"name": name} for name in server.names()]
    else:
        found = [*_known()]
    chosen = [each for each in found if _is_named(each, options.name)]
    if not chosen:
        output.say(f"no model is called {shown(options.name)}" if options.name else "there are no models")
    if options.json:
        output.json(chosen)
    elif chosen:
        show([Rows(tuple(_row(each) for each in chosen), wrapped=False)], output)
    return OK


def _known() -> Iterator[dict[str, Any]]:
    from neuroscript.llm import models

    for each in models.known():
        needs = {"has_tools": each.has_tools, "has_key": each.has_key, "key_variable": each.variable}
        yield {"name": each.name, "aliases": [*each.aliases], "api": each.api, **needs}


def _is_named(known: dict[str, Any], pattern: str | None) -> bool:
    return pattern is None or any(fnmatchcase(name, pattern) for name in (known["name"], *known.get("aliases", ())))


def _row(known: dict[str, Any]) -> tuple[Any, ...]:
    if "api" not in known:
        return (cell(known["name"], "name"),)
    aliases = ", ".join(known["aliases"])
    key = "" if known["has_key"] else f"no key: set {known['key_variable']}" if known["key_variable"] else "no key"
    notes = ("" if known["has_tools"] else "no tools", key, f"(alias: {aliases})" if aliases else "")
    return cell(known["name"], "name"), cell(known["api"]), cell("; ".join(filter(None, notes)), "dim")


def _check(options: Namespace, output: Output) -> int:
    from neuroscript.llm import models

    with _opened(options, _name(options)) as model:
        checked = models.check(model)
    error = checked.error
    if options.json:
        told = {"ok": checked.ok, "model": checked.name, "api": checked.api, "seconds": round(checked.seconds, 3)}
        usage = {"input_tokens": checked.usage.input_tokens, "output_tokens": checked.usage.output_tokens}
        wrong = error and {"code": error.code, "retry": error.retry, "text": error.text}
        output.json({**told, "usage": usage, "error": wrong})
    elif error is None:
        tokens = f"{checked.usage.input_tokens} + {checked.usage.output_tokens} tokens"
        output.text(f"{shown(checked.name)} answers ({checked.api}, {checked.seconds:.2f} s, {tokens})")
    else:
        output.text(f"{shown(checked.name)} does not answer: {error.text} ({error.code})")
    return OK if checked.ok else FAILED


def _name(options: Namespace) -> str:
    """Return the model that is meant: the one that is named, else the first that the server of an address lists."""
    if options.name:
        return str(options.name)
    if not options.base_url:
        raise UsageError("a model is missing: give NAME, or --base-url (see neuroscript models check --help)")
    with _opened(options, "") as server:
        names: list[str] = server.names()
    if not names:
        raise UsageError("the server lists no models; give NAME")
    return names[0]


def _opened(options: Namespace, name: str) -> Any:
    from neuroscript.llm import model

    return model(
        name,
        base_url=options.base_url or "",
        api=options.api,
        key=own_key(options.base_url),
        timeout=SLOWEST,
        attempts=1,
    )
