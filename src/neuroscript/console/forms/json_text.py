"""The arguments of a form as JSON text, without secrets, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.types import ELEMENTS, VALUES
from neuroscript.console.forms.controls import item_spec, value_spec
from neuroscript.console.forms.reader import SECRET_KEY, FormProblem
from neuroscript.io.text import NotJSON, parse_json
from neuroscript.spec.tool_spec import ArgSpec

HIDDEN: Final = ""
"""The name in place of a secret that is in no field; it must be entered again."""


@attrs.frozen
class ParsedArguments:
    """Arguments that were written as JSON.

    Attributes:
        arguments: The arguments, with secrets from the fields of the form.
        shown: The same, without secrets.
        problems: What is wrong with the text.
    """

    arguments: dict[str, Any] = attrs.field(repr=False)
    shown: dict[str, Any] = attrs.field(repr=False)
    problems: tuple[FormProblem, ...] = ()


def write_arguments(shown: Mapping[str, Any]) -> str:
    """Return arguments as JSON text of several lines, in which each character is visible."""
    text = json.dumps(to_plain(dict(shown)), ensure_ascii=False, indent=2)
    if text.replace("\n", "").isprintable():
        return text
    hidden = {each for each in text if each != "\n" and not each.isprintable()}
    return text.translate({ord(each): json.dumps(each)[1:-1] for each in hidden})


def read_arguments(
    args: Sequence[ArgSpec], text: str, secrets: Mapping[str, Any], *, variadic: bool = False
) -> ParsedArguments:
    """Return the arguments in JSON text.

    Args:
        secrets: The secrets of the form by the name of their field, in place of ``{"$secret": NAME}``.
    """
    try:
        data = parse_json(text) if text.strip() else {}
    except NotJSON as error:
        return ParsedArguments({}, {}, (FormProblem("", f"not JSON: {error.hint}"),))
    if not isinstance(data, dict):
        return ParsedArguments({}, {}, (FormProblem("", "not a JSON object with the arguments by name"),))
    secret = {arg.name for arg in args if arg.holds_secret}  # elsewhere a page would show the secret
    arguments = {name: _with_secrets(each, secrets) if name in secret else each for name, each in data.items()}
    return ParsedArguments(arguments, mask_arguments(args, data, variadic=variadic))


def mask_arguments(args: Sequence[ArgSpec], arguments: Mapping[str, Any], *, variadic: bool = False) -> dict[str, Any]:
    """Return arguments with ``{"$secret": ""}`` in place of each secret."""
    rules = {arg.name: arg for arg in args if arg.holds_secret}
    last = args[-1] if variadic and args else None
    found = {}
    for name, value in arguments.items():
        rule = rules.get(name)
        if rule is not None and rule is last and isinstance(value, (list, tuple)):
            found[name] = [_masked(rule, each) for each in value]
        else:
            found[name] = value if rule is None else _masked(rule, value)
    return found


def _masked(rule: ArgSpec, value: Any) -> Any:
    if not rule.holds_secret or value is None or _is_placeholder(value):
        return value
    if rule.secret or rule.any_of:
        return {SECRET_KEY: HIDDEN}
    if rule.type in ELEMENTS and isinstance(value, (list, tuple)):
        if rule.prefix_items and len(value) != len(rule.prefix_items):
            return {SECRET_KEY: HIDDEN}
        return [_masked(item_spec(rule, index), each) for index, each in enumerate(value)]
    if rule.type in VALUES and isinstance(value, dict) and not (rule.key_spec and rule.key_spec.holds_secret):
        keys, others = {key.name: key for key in rule.keys}, value_spec(rule)
        return {key: _masked(keys.get(key, others), each) for key, each in value.items()}
    return {SECRET_KEY: HIDDEN}


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {SECRET_KEY} and isinstance(value[SECRET_KEY], str)


def _with_secrets(value: Any, secrets: Mapping[str, Any]) -> Any:
    if _is_placeholder(value):
        return secrets.get(value[SECRET_KEY], value)
    if isinstance(value, dict):
        return {key: _with_secrets(each, secrets) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_secrets(each, secrets) for each in value]
    return value
