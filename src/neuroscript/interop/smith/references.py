"""References in a plan to results of earlier steps: ``{{STEPS.0}}`` and ``{{STEPS.0.price.usd}}``.

References inside results are never resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.context import Where, place
from neuroscript.coercion.parameters import BY_NAME, Form, require
from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import UNSET, ArgumentError, Problem
from neuroscript.io.text import json_text, quote_untrusted

REFERENCE: Final = re.compile(r"\{\{\s*STEPS\b([^{}]*)\}\}")
"""Text that is intended as a reference."""

WRITTEN: Final = re.compile(r"\.([0-9]{1,9})((?:\.[^.\s]+)*)\s*")
"""The rest of a reference after ``STEPS``: the id of a step, and a path in its result."""

STEPS: Final = Form("a mapping of ids to results", lambda value: isinstance(value, Mapping))

MAX_DEPTH: Final = 64
"""Maximum nesting depth of inputs."""


def resolve(inputs: Mapping[str, Any], steps: Mapping[int, Any]) -> dict[str, Any]:
    """Return the inputs of a node with its references resolved.

    A string that consists of one reference is replaced by the value itself. Within a longer string, a reference is
    replaced by its text, which is JSON for a value that is not a string. In a payload ``{"status": …, "result": …}``,
    or with ``results``, the reference refers to the inner value.

    Args:
        steps: The result of each successful step, or its payload, by id.

    Raises:
        ArgumentError: With every unresolved reference, ``plan.reference``.
        SpecError: A parameter is not a mapping.

    >>> resolve({"city": "in {{STEPS.0.name}}", "all": "{{STEPS.0}}"}, {0: {"name": "Oslo"}})
    {'city': 'in Oslo', 'all': {'name': 'Oslo'}}
    """
    require("resolved", inputs=(inputs, BY_NAME), steps=(steps, STEPS))
    problems: list[Problem] = []
    found = {name: _replaced(each, steps, (None, name), problems) for name, each in inputs.items()}
    if problems:
        raise ArgumentError(problems)
    return found


def referred_steps(inputs: object) -> frozenset[int]:
    """Return the ids of the steps that inputs refer to.

    >>> sorted(referred_steps({"a": "{{STEPS.2}}", "b": ["{{STEPS.0.x}} and {{STEPS.2.y}}"]}))
    [0, 2]
    """
    references = (_reference(match) for text in _texts(inputs) for match in REFERENCE.finditer(text))
    return frozenset(each.step for each in references if each.step is not None)


def parts_of(text: str) -> Iterator[str | tuple[int, tuple[str, ...]]]:
    """Yield the literal parts of a string and its references, each a step and a path, in order.

    A reference without a valid step is a literal part here; `is_unreadable` detects it.

    >>> list(parts_of("in {{STEPS.0.name}}!"))
    ['in ', (0, ('name',)), '!']
    """
    at = 0
    for match in REFERENCE.finditer(text):
        reference = _reference(match)
        if reference.step is not None:
            if match.start() > at:
                yield text[at : match.start()]
            yield reference.step, reference.path
            at = match.end()
    if at < len(text):
        yield text[at:]


def is_unreadable(inputs: object) -> bool:
    """Return whether inputs contain text that is intended as a reference but has no valid step."""
    return any(_reference(match).step is None for text in _texts(inputs) for match in REFERENCE.finditer(text))


def refers(inputs: object) -> bool:
    """Return whether inputs contain a reference, even an unresolvable one."""
    return any(REFERENCE.search(text) for text in _texts(inputs))


@attrs.frozen
class _Reference:
    """The content of a reference: the id of a step, or None if it is invalid, and a path."""

    step: int | None
    path: tuple[str, ...] = ()


def _reference(match: re.Match[str]) -> _Reference:
    written = WRITTEN.fullmatch(match[1])
    return _Reference(int(written[1]), tuple(written[2].split(".")[1:])) if written else _Reference(None)


def _texts(value: object) -> Iterator[str]:
    rest = [value]
    while rest:
        match rest.pop():
            case str() as text:
                yield text
            case dict() as parts:
                rest.extend(parts.values())
            case list() as items:
                rest.extend(items)


def _replaced(value: Any, steps: Mapping[int, Any], where: Where, problems: list[Problem], depth: int = 1) -> Any:
    """Return a value with its references resolved; record the ones that cannot be resolved."""
    if depth > MAX_DEPTH:
        problems.append(Problem(place(where), "limit.depth", f"at most {MAX_DEPTH} levels", "more"))
        return value
    match value:
        case dict():
            return {key: _replaced(each, steps, (where, key), problems, depth + 1) for key, each in value.items()}
        case list():
            return [_replaced(each, steps, (where, at), problems, depth + 1) for at, each in enumerate(value)]
        case str():
            whole = REFERENCE.fullmatch(value.strip())
            if whole:
                return _referred(whole, steps, where, problems)
            return REFERENCE.sub(lambda match: _text(_referred(match, steps, where, problems)), value)
        case _:
            return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(to_plain(value))


def _referred(match: re.Match[str], steps: Mapping[int, Any], where: Where, problems: list[Problem]) -> Any:
    """Return the value of a reference. If it has no value, record a problem and return ``""``."""
    reference = _reference(match)
    if reference.step is None:
        expected, got = "a reference such as {{STEPS.0}} or {{STEPS.0.price}}", "another string"
    elif reference.step not in steps:
        expected, got = f"a result of step {reference.step}", "nothing"
    else:
        value = _lookup(steps[reference.step], reference.path)
        if value is not UNSET:
            return value
        expected, got = f"{quote_untrusted('.'.join(reference.path))} in the result of step {reference.step}", "nothing"
    problems.append(Problem(place(where), "plan.reference", expected, got))
    return ""


def _lookup(payload: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path of a result, else of its payload, else `UNSET`."""
    result = _result(payload)
    found = _followed(result, path)
    return _followed(payload, path) if found is UNSET and result is not payload else found


def _result(payload: Any) -> Any:
    if isinstance(payload, dict) and "status" in payload:
        return next((payload[key] for key in ("result", "results") if key in payload), payload)
    return payload


def _followed(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        match value:
            case dict() if key in value:
                value = value[key]
            case list() if key.isascii() and key.isdecimal() and len(key) < 10 and int(key) < len(value):
                value = value[int(key)]
            case _:
                return UNSET
    return value
