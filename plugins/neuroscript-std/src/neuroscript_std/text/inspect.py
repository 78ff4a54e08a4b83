"""The ``str.inspect`` tool: a short, readable representation of any value for debugging."""

from __future__ import annotations

import datetime
from typing import Any, Final

import attrs

from neuroscript import ArgSpec, ArgType, Example, Handle, Runtime, ToolPolicy, Toolset, ToolSpec
from neuroscript_std.text.size import require_within_limit

CUT: Final = "..."
"""The marker for truncated content."""

toolset = Toolset("str")


def _inspect(rt: Runtime, input_variable: Any, max_length: int, max_depth: int) -> str:
    return require_within_limit(_View(max_length).text(input_variable, max_depth))


toolset.add(
    ToolSpec(
        "inspect",
        "str",
        (
            ArgSpec(
                "input_variable", ArgType.ANY, nullable=True, description="The value to represent; None is allowed."
            ),
            ArgSpec(
                "max_length",
                ArgType.INT,
                default=128,
                minimum=len(CUT),
                description="Maximum characters shown of each string and key, including the dots.",
            ),
            ArgSpec(
                "max_depth",
                ArgType.INT,
                default=5,
                minimum=0,
                description="Maximum nesting levels of lists and maps; deeper values are shown as three dots.",
            ),
        ),
        return_type=ArgType.STRING,
        description=(
            "Return a readable representation of a value for debugging, with long strings and deep levels truncated."
        ),
        when_to_use="Use it for debugging; to produce output for programs, use str.tojsonstring.",
        return_help="Strings in double quotes with escapes, sorted keys, None as <nil>, bytes as their length.",
        error_conditions="ToolFailed: str.too_large.",
        examples=(
            Example(({"b": [1, 2.5, None], "a": "x\n"},), '{"a":"x\\n", "b":[1, 2.5, <nil>]}'),
            Example(("abcdefghij", 6), '"abc..."'),
            Example(({"one": {"two": 2}}, 128, 1), '{"one":...}'),
            Example(("abc", 2), error="coercion.bounds"),
        ),
    ),
    _inspect,
    ToolPolicy(effects=("pure",)),
)


@attrs.frozen(eq=False, repr=False)
class _View:
    """Renders values, each string cut to *longest* characters."""

    longest: int

    def text(self, value: Any, levels: int) -> str:
        match value:
            case None:
                return "<nil>"
            case bool():
                return "true" if value else "false"
            case str():
                return self.quoted(value)
            case list() | dict():
                return self.inside(value, levels) if levels > 0 else CUT
            case bytes():
                return f"<{len(value)} bytes>"
            case datetime.datetime():
                return f"<{value.isoformat()}>"
            case Handle():
                return f"<handle {value.id}>"
            case _:
                return repr(value)

    def inside(self, value: list[Any] | dict[str, Any], levels: int) -> str:
        if isinstance(value, list):
            return f"[{', '.join(self.text(each, levels - 1) for each in value)}]"
        pairs = (f"{self.quoted(key)}:{self.text(value[key], levels - 1)}" for key in sorted(value))
        return f"{{{', '.join(pairs)}}}"

    def quoted(self, text: str) -> str:
        shown = text if len(text) <= self.longest else text[: self.longest - len(CUT)] + CUT
        escapes = {ord(each): _escape(each) for each in set(shown) if not each.isprintable() or each in '"\\'}
        return f'"{shown.translate(escapes)}"'


def _escape(character: str) -> str:
    return '\\"' if character == '"' else character.encode("unicode_escape").decode()
