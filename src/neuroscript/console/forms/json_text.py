"""The arguments of a form as JSON text, without secrets, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.types import ELEMENTS, VALUES
from neuroscript.console.forms.controls import is_open, item_spec, value_spec
from neuroscript.console.forms.names import ROOT
from neuroscript.console.forms.reader import SECRET_KEY, FormProblem, parse_shallow_json
from neuroscript.io.text import NotJSON
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
    args: Sequence[ArgSpec],
    text: str,
    secrets: Mapping[str, Any],
    *,
    variadic: bool = False,
    hides_unknown: bool = False,
) -> ParsedArguments:
    """Return the arguments in JSON text.

    Args:
        secrets: The secrets of the form by the name of their field, in place of ``{"$secret": NAME}``.
        hides_unknown: Whether a name that is not an argument can be that of a secret.
    """
    try:
        data = parse_shallow_json(text) if text.strip() else {}
    except NotJSON as error:
        return ParsedArguments({}, {}, (FormProblem("", f"not JSON: {error.hint}"),))
    if not isinstance(data, dict):
        return ParsedArguments({}, {}, (FormProblem("", "not a JSON object with the arguments by name"),))
    arguments = _with_changed_secrets(args, data, partial(_fill, secrets=secrets), variadic=variadic)
    shown = mask_arguments(args, data, variadic=variadic, hides_unknown=hides_unknown)
    return ParsedArguments(arguments, shown)


def mask_arguments(
    args: Sequence[ArgSpec], arguments: Mapping[str, Any], *, variadic: bool = False, hides_unknown: bool = False
) -> dict[str, Any]:
    """Return arguments with ``{"$secret": ""}`` in place of each secret.

    A name that is not an argument can be a misspelled secret, so its value is replaced too if there are secrets.
    """
    found = _with_changed_secrets(args, arguments, _mask, variadic=variadic)
    names = {arg.name for arg in args}
    if hides_unknown or any(arg.holds_secret for arg in args):
        return {name: value if name in names else _mask(value) for name, value in found.items()}
    return found


def _mask(value: Any) -> Any:
    return value if value is None or _is_placeholder(value) else {SECRET_KEY: HIDDEN}


def _with_changed_secrets(
    args: Sequence[ArgSpec], arguments: Mapping[str, Any], change: Callable[[Any], Any], *, variadic: bool
) -> dict[str, Any]:
    """Return arguments with each secret, and nothing else, replaced by what a function returns for it."""
    rules = {arg.name: arg for arg in args if arg.holds_secret}
    last = args[-1] if variadic and args else None
    found = {}
    for name, value in arguments.items():
        rule = rules.get(name)
        if rule is not None and rule is last and isinstance(value, (list, tuple)):
            found[name] = [_changed(rule, each, change) for each in value]
        else:
            found[name] = value if rule is None else _changed(rule, value, change)
    return found


def _changed(rule: ArgSpec, value: Any, change: Callable[[Any], Any]) -> Any:
    if not rule.holds_secret:
        return value
    if rule.secret or rule.any_of or _is_placeholder(value):
        return change(value)
    if rule.type in ELEMENTS and isinstance(value, (list, tuple)):
        if rule.prefix_items and len(value) != len(rule.prefix_items):
            return change(value)
        return [_changed(item_spec(rule, index), each, change) for index, each in enumerate(value)]
    if rule.type in VALUES and isinstance(value, dict) and not (rule.key_spec and rule.key_spec.holds_secret):
        keys, others = {key.name: key for key in rule.keys}, value_spec(rule) if is_open(rule) else None
        rules = {key: keys.get(key, others) for key in value}  # an unknown key can be a misspelled secret
        return {key: change(each) if (one := rules[key]) is None else _changed(one, each, change)
                for key, each in value.items()}  # fmt: skip
    return change(value)


def _is_placeholder(value: Any) -> bool:
    """Return whether a value stands for a secret: the name of its field, or ``""``."""
    if not isinstance(value, dict) or value.keys() != {SECRET_KEY}:
        return False
    name = value[SECRET_KEY]
    return isinstance(name, str) and (name == HIDDEN or name.startswith(f"{ROOT}."))


def _fill(value: Any, secrets: Mapping[str, Any]) -> Any:
    """Return a secret argument with the secrets of the form in place of what stands for them."""
    if _is_placeholder(value):
        return secrets.get(value[SECRET_KEY], value)
    if isinstance(value, dict):
        return {key: _fill(each, secrets) for key, each in value.items()}
    if isinstance(value, list):
        return [_fill(each, secrets) for each in value]
    return value
