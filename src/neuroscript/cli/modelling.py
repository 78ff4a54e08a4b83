"""``neuroscript models``: which models there are, what each needs, and whether one answers.

Source: issue "Models", command line.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from neuroscript.cli.exits import FAILED, OK, UsageError
from neuroscript.cli.model_words import own_key
from neuroscript.cli.output import Output
from neuroscript.cli.pages import Rows, cell
from neuroscript.cli.printing import show
from neuroscript.display import shown
from neuroscript.errors import LLMError

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
