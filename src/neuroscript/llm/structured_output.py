"""The last answer of a model as an exact value: what it is told to give, and what it gave.

Source: contract section 3; issue "Models", ``answer=``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from neuroscript.coercion.types import ArgType
from neuroscript.errors import ArgumentError
from neuroscript.formats.json_schema import spec_to_schema
from neuroscript.io.text import NotJSON, parsed
from neuroscript.spec.binding import bind_named
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec

OPENED: Final = re.compile(r"```[a-z]*[ \t]*\n")
CLOSED: Final = re.compile(r"\n[ \t]*```")
"""The two ends of a block that a model puts around JSON."""


def answer_spec(answer: ArgType | str | ArgSpec) -> ToolSpec:
    """Return the spec of which a model's answer is the only argument.

    Raises:
        SpecError: *answer* is no type of an argument.
    """
    arg = answer if isinstance(answer, ArgSpec) else ArgSpec("answer", cast(ArgType, answer))
    return ToolSpec("answer", "model", (arg,))


def instruction(spec: ToolSpec) -> str:
    """Return what a model is told of the answer that it shall give, ``""`` where any text will do."""
    (arg,) = spec.args
    schema = dict(spec_to_schema(spec, exact=False)["properties"][arg.name])
    if schema == {"type": "string"}:
        return ""
    return f"Give your last answer as JSON that fits this JSON Schema, and nothing besides: {json.dumps(schema)}"


def exact_answer(spec: ToolSpec, text: str) -> Any:
    """Return what a model answered as the exact value that *spec* asks for.

    A text of which nothing else is asked is what it is; anything else is read as JSON, also where it stands in the only
    fenced block of the answer. A text that was asked for as JSON may come without quotes.

    Raises:
        ArgumentError: It does not fit, with every problem.
    """
    (arg,) = spec.args
    try:
        return bind_named(spec, {arg.name: _given(spec, arg, text)})[0]
    except ArgumentError as error:
        raise ArgumentError(error.problems, found=error.total) from None  # as no tool is meant


def _given(spec: ToolSpec, arg: ArgSpec, text: str) -> Any:
    """Return the value that a text gives; one of no JSON is a text itself, which may fit."""
    if arg.type is ArgType.STRING:
        said = _said(text, text) if instruction(spec) else text
        return said if type(said) is str or (said is None and (arg.nullable or not arg.required)) else text
    return _said(text, _candidates(text)[-1].strip())


def _said(text: str, otherwise: str) -> Any:
    for candidate in _candidates(text):
        try:
            return parsed(candidate)
        except NotJSON:
            continue
    return otherwise


def _candidates(text: str) -> list[str]:
    blocks = [*_blocks(text)]
    return [text, blocks[0]] if len(blocks) == 1 else [text]


def _blocks(text: str) -> Iterator[str]:
    """Yield what stands in each fenced block; two searches, for one expression takes the square of the time."""
    at = 0
    while (opened := OPENED.search(text, at)) and (closed := CLOSED.search(text, opened.end())):
        yield text[opened.end() : closed.start()]
        at = closed.end()


def complaint(error: ArgumentError) -> str:
    """Return what a model is told of an answer that did not fit."""
    return f"That answer does not fit: {error}. Answer again."
