"""Hints for a failed call: what its arguments were probably meant to be, such as an option or JSON."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator
from typing import Final

from neuroscript.cli.calls.dry_run import code_of
from neuroscript.cli.env.engine import find_tool
from neuroscript.cli.terminal.argument_parser import near_option
from neuroscript.cli.terminal.exit_codes import ARGUMENTS
from neuroscript.cli.terminal.inputs import is_json_text
from neuroscript.cli.terminal.tool_hints import tool_hints
from neuroscript.engine.engine import Engine
from neuroscript.errors import ArgumentError, ToolNotFound
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.execution_policy import Decision
from neuroscript.runtime.interfaces import ToolResult
from neuroscript.spec.tool_spec import ToolSpec

SEARCHED_CHARS: Final = 10_000
"""Characters of a string that are searched for quotes."""

NOT_QUOTED: Final = re.compile(r"[\[{,:]\s*'|[{,]\s*[A-Za-z_]\w*\s*:")
"""A string in single quotes, or a key without quotes, in a string that was meant as JSON."""

KEY: Final = re.compile(r"[A-Za-z_]\w{0,63}")
"""A string that looks like the name of an argument."""

EXAMPLE: Final = """'{"name": "value"}'"""


def call_hints(engine: Engine, options: Namespace, became: object, text: str | None, *, is_own: bool) -> list[str]:
    """Return hints about a call that failed; none if a program reads the results.

    Args:
        became: The result of the call, or the decision about it.
        text: The arguments as JSON text; None if they are on the command line.
        is_own: Whether this is the ``neuroscript`` command, not an application's own.
    """
    if options.json:
        return []
    if _is_unknown(became):
        return tool_hints(options.name, engine.tools, options.words, is_own=is_own)
    if not _is_misfit(became):
        return []
    if text is not None:
        return [*quote_hints(text)]
    tool = find_tool(engine, options.name)
    return [] if tool is None else _word_hints(tool.spec, options)


def quote_hints(text: str) -> Iterator[str]:
    """Yield a hint about double quotes for a string that was meant as JSON and lacks them."""
    if is_json_text(text) and NOT_QUOTED.search(text[:SEARCHED_CHARS]):
        yield f"JSON requires double quotes around keys and strings: {EXAMPLE}"


def _is_unknown(became: object) -> bool:
    if isinstance(became, Decision):
        return became.code == ToolNotFound.CODE
    return isinstance(became, ToolResult) and isinstance(became.error, ToolNotFound)


def _is_misfit(became: object) -> bool:
    if isinstance(became, Decision):
        return code_of(became) == ARGUMENTS
    return isinstance(became, ToolResult) and isinstance(became.error, ArgumentError)


def _word_hints(spec: ToolSpec, options: Namespace) -> list[str]:
    return [*_option_hints(spec, options), *_key_hints(spec, options), *_json_hints(spec, options)]


def _option_hints(spec: ToolSpec, options: Namespace) -> Iterator[str]:
    """Yield a hint about the first argument that looks like an option."""
    from neuroscript.cli.parser import FLAGS, OPTIONS_WITH_VALUE

    for word in options.words:
        if word.startswith("--") and word[2:3].isalpha():
            option = word.partition("=")[0]
            name = option[2:].replace("-", "_")
            is_argument = any(arg.name == name for arg in spec.args)
            hint = f"; write {name}=VALUE" if is_argument else near_option(option, sorted(FLAGS | OPTIONS_WITH_VALUE))
            yield f"{quote_untrusted(option)} is not an option of call, so it was passed as a value{hint}"
            return


def _key_hints(spec: ToolSpec, options: Namespace) -> Iterator[str]:
    """Yield a hint about the first argument that looks like ``key=value`` but has an unknown key.

    The message does not repeat the argument, because it may be a value, such as Base64 with its padding.
    """
    names = [arg.name for arg in spec.args]
    for number, word in enumerate(options.words, 1):
        key, _, value = word.partition("=")
        if value.strip("=") and KEY.fullmatch(key) and not any(word.startswith(f"{name}=") for name in names):
            hint = did_you_mean(key, names) or f"; its arguments are {', '.join(names)}" * bool(names)
            yield f"argument {number} looks like key=value, but {spec.full_name} has no argument with that name{hint}"
            return


def _json_hints(spec: ToolSpec, options: Namespace) -> Iterator[str]:
    """Yield a hint about arguments that contain JSON."""
    if len(options.words) == 1 and options.words[0].lstrip().startswith("{"):
        quotes = f"; JSON requires double quotes: {EXAMPLE}" if [*quote_hints(options.words[0])] else ""
        yield f"to pass all arguments as JSON: neuroscript call {spec.full_name} --input-json '{{...}}'{quotes}"
        return
    keys = tuple(f"{arg.name}=" for arg in spec.args)
    for word in options.words:
        key = next((key for key in keys if word.startswith(key)), "")
        for hint in quote_hints(word.removeprefix(key)):
            yield hint
            return
