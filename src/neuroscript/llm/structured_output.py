"""The final answer of a model, typed: the instruction, the parsing, the instance, and the request to correct it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from neuroscript.coercion.parameters import Form
from neuroscript.coercion.types import ArgType
from neuroscript.errors import ArgumentError, SpecError
from neuroscript.formats.json_schema import spec_to_schema
from neuroscript.io.text import NotJSON, parse_json
from neuroscript.spec.annotations import UnsupportedAnnotation, hint_of, is_annotation
from neuroscript.spec.binding import bind_named
from neuroscript.spec.instances import maker_of
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec, argument

OPENED: Final = re.compile(r"```[a-z]*[ \t]*\n")
CLOSED: Final = re.compile(r"\n[ \t]*```")
"""The start and the end of a fenced block that a model may put around JSON."""


ANSWER: Final = Form(
    "an ArgType, its name, an ArgSpec or an annotation, such as a class",
    lambda answer: isinstance(answer, (str, ArgSpec)) or is_annotation(answer),
)


def answer_spec(answer: Any) -> ToolSpec:
    """Return a spec whose only argument is the model's answer.

    Args:
        answer: An `ArgType`, its name, an `ArgSpec`, or an annotation that a parameter of a tool may have.

    Raises:
        SpecError: If *answer* is not a valid argument type.
    """
    if isinstance(answer, ArgSpec):
        return ToolSpec("answer", "model", (answer,))
    if isinstance(answer, str):
        return ToolSpec("answer", "model", (ArgSpec("answer", cast(ArgType, answer)),))
    try:
        return ToolSpec("answer", "model", (argument("answer", hint_of(answer)),))
    except UnsupportedAnnotation as error:
        raise SpecError("answer", [str(error)]) from error


def instruction(spec: ToolSpec) -> str:
    """Return the instruction for the requested answer, or ``""`` if any text is accepted."""
    (arg,) = spec.args
    schema = dict(spec_to_schema(spec, exact=False)["properties"][arg.name])
    if schema == {"type": "string"} and not arg.format:
        return ""
    return f"Give your final answer as JSON that matches this JSON Schema, and nothing else: {json.dumps(schema)}"


def exact_answer(spec: ToolSpec, text: str) -> Any:
    """Return the model's answer as the exact value that *spec* requires.

    An unconstrained string answer is used as it is. Any other answer is parsed as JSON, also if it is in the only
    fenced block of the reply. A string that was requested as JSON may come without quotes.

    Raises:
        ArgumentError: If the answer is invalid, with every problem.
    """
    (arg,) = spec.args
    try:
        return bind_named(spec, {arg.name: _parse_value(spec, arg, text)})[0]
    except ArgumentError as error:
        raise ArgumentError(error.problems, found=error.total) from None  # without the name of a tool


def answer_instance(spec: ToolSpec, exact: Any) -> Any:
    """Return an exact answer as instances of the classes that were requested, at every depth.

    Raises:
        ArgumentError: If a class rejects its values, with every problem.
    """
    (arg,) = spec.args
    make = maker_of(arg, "")
    return exact if make is None else make(exact)


def _parse_value(spec: ToolSpec, arg: ArgSpec, text: str) -> Any:
    """Return the value in *text*; text that is not JSON is used as a string, which may be valid."""
    if arg.type is ArgType.STRING:
        otherwise = _candidates(text)[-1].strip() if arg.format else text
        value = _parse_json(text, otherwise) if instruction(spec) else text
        return value if type(value) is str or (value is None and (arg.nullable or not arg.required)) else otherwise
    return _parse_json(text, _candidates(text)[-1].strip())


def _parse_json(text: str, otherwise: str) -> Any:
    for candidate in _candidates(text):
        try:
            return parse_json(candidate)
        except NotJSON:
            continue
    return otherwise


def _candidates(text: str) -> list[str]:
    blocks = [*_blocks(text)]
    return [text, blocks[0]] if len(blocks) == 1 else [text]


def _blocks(text: str) -> Iterator[str]:
    """Yield the content of each fenced block. Two searches stay linear; one combined expression would be quadratic."""
    at = 0
    while (opened := OPENED.search(text, at)) and (closed := CLOSED.search(text, opened.end())):
        yield text[opened.end() : closed.start()]
        at = closed.end()


def correction_request(error: ArgumentError) -> str:
    """Return the message that asks a model to correct an invalid answer."""
    return f"That answer is invalid: {error}. Answer again."
