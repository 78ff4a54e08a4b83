"""A call as the command line, Python, MCP and curl write it, with placeholders for secrets."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.plain_data import to_plain
from neuroscript.console.forms.reader import SECRET_KEY
from neuroscript.io.text import json_text
from neuroscript.spec.tool_spec import ToolSpec

PLACEHOLDER: Final = "YOUR_SECRET"
"""What stands for each secret."""


@attrs.frozen
class CodeSample:
    """A call in one notation.

    Attributes:
        id: A name for the id of its element.
        title: What it is for.
        text: The code.
    """

    id: str
    title: str
    text: str


def samples_of(spec: ToolSpec, shown: Mapping[str, Any]) -> tuple[CodeSample, ...]:
    """Return a call in each notation.

    Args:
        shown: The arguments with ``{"$secret": NAME}`` in place of each secret.
    """
    arguments = {name: _without_secrets(value) for name, value in shown.items()}
    text = json_text(to_plain(arguments))
    return (
        CodeSample("cli", "Command line", _command(spec, text)),
        CodeSample("python", "Python", _python(spec, arguments)),
        CodeSample("mcp", "MCP", _request(spec, arguments)),
        CodeSample("curl", "curl", _curl(spec, text)),
    )


def _without_secrets(value: Any) -> Any:
    match value:
        case dict() if value.keys() == {SECRET_KEY}:
            return PLACEHOLDER
        case dict():
            return {key: _without_secrets(each) for key, each in value.items()}
        case list() | tuple():
            return [_without_secrets(each) for each in value]
        case _:
            return value


def _command(spec: ToolSpec, text: str) -> str:
    words = ["neuroscript", "call", spec.full_name]
    return shlex.join(words if text == "{}" else [*words, "--input-json", text])


def _python(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    lines = "".join(f"        {name!r}: {value!r},\n" for name, value in arguments.items())
    given = f"{{\n{lines}    }}" if lines else "{}"
    call = f"engine.call_named({spec.full_name!r}, {given})"
    return f"from neuroscript import Engine\n\nwith Engine() as engine:\n    {call}"


def _request(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    params = {"name": spec.wire_name, "arguments": to_plain(arguments)}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(request, indent=2)


def _curl(spec: ToolSpec, text: str) -> str:
    path = spec.full_name.replace(".", "/")
    words = ["curl", "-H", "Content-Type: application/json", "-d", text, f"http://127.0.0.1:8000/{path}"]
    return f"# with: neuroscript openapi serve --http 127.0.0.1:8000\n{shlex.join(words)}"
