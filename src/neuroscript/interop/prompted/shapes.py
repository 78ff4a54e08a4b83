"""A JSON value that is a call, and what can be made of a text that should have been one.

Source: the templates of Hermes, Llama, Mistral and Qwen; contract section 6.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

import attrs

from neuroscript.jsontext import NotJSON, parsed

NAMES: Final = ("name", "tool", "function")
ARGUMENTS: Final = ("arguments", "parameters", "args")
BESIDE: Final = frozenset({"id", "type", "call_id"})
"""What may stand beside the name and the arguments of a call that no marker announces."""

NAMED: Final = re.compile(r'"(?:name|tool|function)"\s*+:\s*+"([^"\\\n]{1,128})"')
GIVEN: Final = re.compile(r'"(?:arguments|parameters|args)"\s*+:\s*+')


@attrs.frozen
class Asked:
    """A call as a model wrote it.

    Attributes:
        name: As the model spells it; ``""`` where it gave none.
        arguments: A map, a list, or a text that is not yet, or no, JSON.
    """

    name: str
    arguments: Any


def asked(value: Any) -> Asked | None:
    """Return the call that a decoded value is, or None."""
    if not isinstance(value, Mapping):
        return None
    value = inner(value)
    named = next((key for key in NAMES if isinstance(value.get(key), str) and value[key]), "")
    given = next((key for key in ARGUMENTS if key in value), "")
    arguments = value[given] if given else {}
    if not named or not isinstance(arguments, (dict, list, str, type(None))):
        return None
    return Asked(value[named], {} if arguments is None else arguments)


def inner(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the map with the members of a call: OpenAI's shape has it under ``function``."""
    found = value.get("function")
    return found if isinstance(found, Mapping) else value


def is_plainly(value: Any, known: Collection[str]) -> bool:
    """Tell whether a value that no marker announces is a call: it has the members of one and no others.

    Args:
        known: The names of tools; a call without arguments is one of these.
    """
    found = asked(value)
    if found is None:
        return False
    members = inner(value)
    others = members.keys() - BESIDE
    if any(key in members for key in ARGUMENTS):
        return len(others) == 2
    return len(others) == 1 and found.name in known


def announced(text: str) -> list[Asked]:
    """Return the calls in a text that a marker announces.

    All that is no call is one call at the end, which has the whole text for its arguments: a model is told of it once.
    """
    try:
        value = parsed(text)
    except NotJSON:
        return [damaged(text)]
    values = value if isinstance(value, list) and value else [value]
    calls = [found for found in map(_announced, values) if found is not None]
    return calls if len(calls) == len(values) else [*calls, damaged(text)]


def _announced(value: Any) -> Asked | None:
    found = asked(value)
    is_call = found is not None and inner(value).keys() <= {*BESIDE, *NAMES, *ARGUMENTS}
    return found if is_call else None


def parameters(text: str) -> dict[str, str]:
    """Return the arguments that stand in marks of their own, each a text; none where there is anything else.

    >>> parameters("<parameter=num1>\\n2\\n</parameter>")
    {'num1': '2'}
    """
    before, *parts = text.split("<parameter=")
    found: dict[str, str] = {}
    for part in parts:
        name, _, rest = part.partition(">")
        value, closing, after = rest.partition("</parameter>")
        if before.strip() or after.strip() or not closing or name in found:
            return {}
        found[name] = value.removeprefix("\n").removesuffix("\n")
    return found


def damaged(text: str) -> Asked:
    """Return the call that a damaged text asks for, as far as it can be told.

    >>> damaged('{"name": "math__add", "arguments": {"num1": 2,}}')
    Asked(name='math__add', arguments='{"num1": 2,}}')
    """
    named = NAMED.search(text)
    given = GIVEN.search(text)
    return Asked(named[1] if named else "", (text[given.end() :] if given else text).strip())
