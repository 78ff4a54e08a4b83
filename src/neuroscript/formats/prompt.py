"""Tool descriptions as text, for models without native tool calls and for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from neuroscript.coercion.parameters import FUNCTION, as_tuple, collection, instance, require
from neuroscript.errors import UNSET
from neuroscript.formats.one_line import inner_rules, return_text, rule_phrase, signature, to_json
from neuroscript.io.text import escape, one_line
from neuroscript.spec.binding import by_name
from neuroscript.spec.tool_spec import ArgSpec, Example, ToolSpec

SPECS: Final = collection(instance(ToolSpec), "ToolSpecs")


def to_prompt(specs: ToolSpec | Iterable[ToolSpec], *, spelt: Callable[[str], str] = str) -> str:
    """Return everything that a model needs to call tools, sorted by name.

    Each tool starts on a new line with its name and signature. All text by its author is on indented lines, so no
    description can look like another tool. Examples are calls in the format of ``neuroscript execute`` and
    `Engine.execute`.

    Args:
        specs: One spec or several.
        spelt: Returns the form in which a canonical name is written; unchanged by default.

    Returns:
        Text without a final newline, ``""`` if there are no tools. The order of *specs* does not matter.

    >>> from neuroscript import ArgSpec
    >>> args = [ArgSpec("host", "string")]
    >>> print(to_prompt(ToolSpec("ping", "net", args, description="Ask whether a host is there.")))
    net.ping(host: string) -> any
      Ask whether a host is there.
      Arguments:
        host: string, required.
    """
    given = (specs,) if isinstance(specs, ToolSpec) else as_tuple(specs)
    require("to_prompt", specs=(given, SPECS), spelt=(spelt, FUNCTION))
    found = [specs] if isinstance(specs, ToolSpec) else sorted(given, key=lambda spec: spec.full_name)
    return "\n\n".join("\n".join(_lines(spec, spelt(spec.full_name))) for spec in found)


def _lines(spec: ToolSpec, name: str) -> Iterator[str]:
    yield f"{name}{signature(spec)}"
    for title, text in (
        ("", spec.description),
        ("Deprecated: ", spec.deprecated),
        ("When to use: ", spec.when_to_use),
    ):
        if text.strip():
            yield f"  {title}{one_line(text)}"
    if spec.args:
        yield "  Arguments:"
        yield from (f"    {line}" for line in _arguments(spec))
    if spec.return_help.strip():
        yield f"  Returns: {return_text(spec)}. {one_line(spec.return_help)}"
    if spec.error_conditions.strip():
        yield f"  Errors: {one_line(spec.error_conditions)}"
    yield from (f"  {_example(spec, name, example)}" for example in spec.examples)


def _arguments(spec: ToolSpec) -> Iterator[str]:
    for index, arg in enumerate(spec.args):
        yield _argument(arg.name, arg, spec.variadic and index == len(spec.args) - 1)
        yield from (_argument(path, key) for path, key in inner_rules(arg, arg.name))


def _argument(path: str, arg: ArgSpec, further: bool = False) -> str:
    return f"{path}: {one_line(f'{rule_phrase(arg, further)}. {arg.description}')}"


def _example(spec: ToolSpec, name: str, example: Example) -> str:
    args = example.args if isinstance(example.args, dict) else by_name(spec, tuple(example.args))
    call = to_json({"name": name, "arguments": example.args if args is None else args})
    end = f" fails with {escape(example.error)}" if example.error else ""
    if not end and example.result is not UNSET:
        end = f" returns {to_json(example.result)}"
    note = f" ({one_line(example.note)})" if example.note.strip() else ""
    return f"Example: {call}{end}{note}"
