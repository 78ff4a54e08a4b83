"""The last answer of a model as an exact value: what it is told to give, and what it gave.

Source: contract section 3; issue "Models", ``answer=``.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from neuroscript.argtypes import ArgType
from neuroscript.binding import bind_named
from neuroscript.errors import ArgumentError
from neuroscript.jsontext import NotJSON, parsed
from neuroscript.schema import spec_to_schema
from neuroscript.spec import ArgSpec, ToolSpec

FENCED: Final = re.compile(r"```[a-z]*[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)
"""A block that a model puts around JSON."""


def answer_spec(answer: ArgType | str | ArgSpec) -> ToolSpec:
    """Return the spec of which a model's answer is the only argument.

    Raises:
        SpecError: *answer* is no type of an argument.
    """
    arg = answer if isinstance(answer, ArgSpec) else ArgSpec("answer", ArgType(answer))
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

    A text is what it is; anything else is read as JSON, also where it stands in the only fenced block of the answer.

    Raises:
        ArgumentError: It does not fit, with every problem.
    """
    (arg,) = spec.args
    try:
        return bind_named(spec, {arg.name: text if arg.type is ArgType.STRING else _read(text)})[0]
    except ArgumentError as error:
        raise ArgumentError(error.problems) from None  # as no tool is meant


def _read(text: str) -> Any:
    blocks = FENCED.findall(text)
    candidates = [text, blocks[0]] if len(blocks) == 1 else [text]
    for candidate in candidates:
        try:
            return parsed(candidate)
        except NotJSON:
            continue
    return candidates[-1].strip()


def complaint(error: ArgumentError) -> str:
    """Return what a model is told of an answer that did not fit."""
    return f"That answer does not fit: {error}. Answer again."
