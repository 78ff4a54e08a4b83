"""``neuroscript models``: list the available models with their requirements, and check whether one answers."""

from __future__ import annotations

import argparse
import os
from argparse import Namespace
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from neuroscript.cli.terminal.argument_parser import add_subparser
from neuroscript.cli.terminal.exit_codes import FAILED, OK, UsageError
from neuroscript.cli.terminal.output import Output, Rows, cell
from neuroscript.cli.terminal.printing import show
from neuroscript.errors import LLMError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.paths import EXAMPLE_URL, is_address

ACTIONS: Final = ("list", "check")


APIS: Final = ("openai-chat", "openai-responses", "anthropic")
"""The APIs of a model server."""


LIST: Final = """\
Lists the models of the package llm and its plugins, with their requirements, without using the network.
With --base-url, lists the models of that server."""


CHECK: Final = """\
Sends one small request and prints the outcome. With --base-url and without NAME, it uses the first
model that the server lists. Exits 0 if the model answers, 1 if it does not, 2 if the model is unknown
or has no key."""


MODEL: Final = "NEUROSCRIPT_MODEL"
"""The environment variable with the default for ``--model``."""


KEY: Final = "NEUROSCRIPT_MODEL_KEY"
"""The environment variable with the key for the server of ``--base-url``, which receives no other key."""


KEYS: Final = f"""\
API keys come from the environment or from the key store of llm (llm keys set NAME), never from an
option. A server of --base-url receives only the key in {KEY}, if it is set."""


def add_models(commands: Any, layout: Any) -> None:
    """Add the command with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "models", "list models, or check whether one answers", description=KEYS)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    listed = _action(actions, layout, "list", "list the models", "print a JSON array of models", LIST)
    listed.add_argument("name", nargs="?", metavar="PATTERN", help="list only matching names, such as 'gpt-*'")
    check = _action(actions, layout, "check", "check whether a model answers", "print the outcome as JSON", CHECK)
    check.add_argument(
        "name", nargs="?", metavar="NAME", help="a model name or alias; with --base-url, a name on that server"
    )


def _action(actions: Any, layout: Any, name: str, help: str, json_help: str, description: str) -> Any:
    parser = add_subparser(actions, layout, name, help, json_help=json_help, description=description)
    parser.add_argument(
        "--base-url",
        metavar="URL",
        type=address,
        help=f"base URL of a model server, such as {EXAMPLE_URL}",
    )
    parser.add_argument("--api", metavar="API", choices=APIS, default="", help=f"API of the server: {', '.join(APIS)}")
    return parser


def own_key(base_url: str | None) -> str | None:
    """Return the key in the environment for the server of *base_url*, or None."""
    return os.environ.get(KEY) or None if base_url else None


def address(text: str) -> str:
    """Return *text* if it is the URL of a server.

    Raises:
        argparse.ArgumentTypeError: It is not.
    """
    if not is_address(text):
        raise argparse.ArgumentTypeError(f"expected a URL such as {EXAMPLE_URL}")
    return text


SILENCE_TIMEOUT_SECONDS = 30.0
"""Seconds to wait for a response of the server."""


def run(options: Namespace, output: Output, make_engine: Any) -> int:
    """List models or check one, and return the exit code.

    Raises:
        UsageError: There is no action, the model is unknown, there is no key for it, or a package is missing.
    """
    try:
        match options.action:
            case "list":
                return _list(options, output)
            case "check":
                return _check(options, output)
    except LLMError as error:
        raise UsageError(str(error)) from None
    raise UsageError("expected an action: list, check (see neuroscript models --help)")


def _list(options: Namespace, output: Output) -> int:
    if options.base_url:
        with _opened(options, "") as server:
            found: list[dict[str, Any]] = [{"name": name} for name in server.names()]
    else:
        found = [*_known_models()]
    chosen = [each for each in found if _is_named(each, options.name)]
    if not chosen:
        output.say(f"no model matches {quote_untrusted(options.name)}" if options.name else "no models are available")
    if options.json:
        output.json(chosen)
    elif chosen:
        show([Rows(tuple(_row(each) for each in chosen), wrapped=False)], output)
    return OK


def _known_models() -> Iterator[dict[str, Any]]:
    from neuroscript.llm import models

    for each in models.list_models():
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
        data = {"ok": checked.ok, "model": checked.name, "api": checked.api, "seconds": round(checked.seconds, 3)}
        usage = {"input_tokens": checked.usage.input_tokens, "output_tokens": checked.usage.output_tokens}
        wrong = error and {"code": error.code, "retry": error.retry, "text": error.text}
        output.json({**data, "usage": usage, "error": wrong})
    elif error is None:
        tokens = f"{checked.usage.input_tokens} + {checked.usage.output_tokens} tokens"
        output.text(f"{quote_untrusted(checked.name)} answers ({checked.api}, {checked.seconds:.2f} s, {tokens})")
    else:
        output.text(f"{quote_untrusted(checked.name)} does not answer: {error.text} ({error.code})")
    return OK if checked.ok else FAILED


def _name(options: Namespace) -> str:
    """Return the name of the model: the argument, otherwise the first model that the server lists."""
    if options.name:
        return str(options.name)
    if not options.base_url:
        raise UsageError("expected NAME or --base-url (see neuroscript models check --help)")
    with _opened(options, "") as server:
        names: list[str] = server.names()
    if not names:
        raise UsageError("the server lists no models; add NAME")
    return names[0]


def _opened(options: Namespace, name: str) -> Any:
    from neuroscript.llm import model

    return model(
        name,
        base_url=options.base_url or "",
        api=options.api,
        key=own_key(options.base_url),
        timeout=SILENCE_TIMEOUT_SECONDS,
        attempts=1,
    )
