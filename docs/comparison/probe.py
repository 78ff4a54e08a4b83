#!/usr/bin/env python3
"""Observe one framework: ``probe.py FRAMEWORK`` prints the cells of its column as JSON.

It runs in an environment that contains this framework. ``run.py`` makes these environments and calls it. A module
``with_FRAMEWORK`` makes the calls through the framework's own API; this module makes the tools, and judges what their
functions receive.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from missing import Missing

# ruff: noqa: S102, S105, T201

HERE: Final = Path(__file__).parent
Tool = Callable[..., Any]


class Framework(Protocol):
    """What a module ``with_FRAMEWORK`` contains."""

    def call(self, tool: Tool, arguments: dict[str, Any]) -> str | None:
        """Call a tool as a model does, and return the error that the model receives, if any."""

    def call_with_rule(self, tool: Tool, arguments: dict[str, Any]) -> list[Any]:
        """Call a tool behind a rule that allows everything, and return the ``account`` of each call that it sees."""

    def call_nested(self, inner: Tool) -> None:
        """Call a tool that calls *inner* in the framework's way, behind a rule that denies ``inner``."""

    def call_limited(self, tool: Tool, seconds: float) -> float | None:
        """Call a tool with a time limit, or raise `Missing`.

        Returns:
            When the caller continued, as `time.monotonic` counts, or None if that is now.
        """

    def edited_log(self, tool: Tool, directory: Path) -> bool:
        """Call a tool, change a record of the log, and return whether the log detects it; or raise `Missing`."""

    def served(self) -> list[str]:
        """Serve a tool, a resource and a prompt over MCP as far as possible, and return what a client can list."""

    def has_provider(self, name: str) -> bool:
        """Return whether the framework has a client for this provider of models."""


PROVIDERS: Final = (
    "anthropic", "azure", "bedrock", "cohere", "deepseek", "google",
    "groq", "mistral", "ollama", "openai", "together", "xai",
)  # fmt: skip
LIMIT_SECONDS, BLOCKED_SECONDS = 0.2, 2.0


def main(name: str) -> None:
    """Print the cells of one framework, by row."""
    framework: Any = importlib.import_module(f"with_{name}")
    cells = {title: cell_of(observe, framework) for title, observe in ROWS.items()}
    print(json.dumps(cells))


def cell_of(observe: Callable[[Framework], str], framework: Framework) -> str:
    """Return what a row says about a framework."""
    try:
        return observe(framework)
    except Missing as missing:
        return str(missing)


# The rows


def real_calls(framework: Framework) -> str:
    """Send each call of ``model_calls.json`` to a function with its signature."""
    outcomes = [outcome_of(framework, case) for case in model_calls()]
    return f"{outcomes.count('right')} / {outcomes.count('wrong type')}"


def clean_errors(framework: Framework) -> str:
    """Send a string for an int, and a name that the function does not have; search the errors for the string."""
    secret = "4111-1111-1111"

    def pay(card: int) -> str:
        """Pay."""
        return f"paid by {type(card).__name__}"

    errors = [framework.call(pay, arguments) or "" for arguments in ({"card": secret}, {"card": 1, "pin": secret})]
    return "no" if any(secret in error for error in errors) else "yes"


def seen_by_rule(framework: Framework) -> str:
    """Send ``"1"`` for an int, and compare what the rule and the function receive."""
    received: list[Any] = []

    def transfer(account: int) -> str:
        """Transfer."""
        received.append(account)
        return "done"

    seen = framework.call_with_rule(transfer, {"account": "1"})
    assert len(seen) == len(received) == 1
    return "yes" if [*map(repr, seen)] == [*map(repr, received)] else "no"


def nested(framework: Framework) -> str:
    """Observe whether the function of the denied tool runs."""
    ran: list[bool] = []

    def inner() -> str:
        """Run."""
        ran.append(True)
        return "ran"

    framework.call_nested(inner)
    return "no" if ran else "yes"


def time_limit(framework: Framework) -> str:
    """Measure when the caller of a function that blocks continues."""

    def block() -> str:
        """Block."""
        time.sleep(BLOCKED_SECONDS)
        return "done"

    started = time.monotonic()
    continued = framework.call_limited(block, LIMIT_SECONDS) or time.monotonic()
    return "yes" if continued - started < (LIMIT_SECONDS + BLOCKED_SECONDS) / 2 else "no"


def edited_log(framework: Framework) -> str:
    """Change a record of the log."""

    def refund(euros: int) -> str:
        """Refund."""
        return "done"

    with tempfile.TemporaryDirectory() as directory:
        return "yes" if framework.edited_log(refund, Path(directory)) else "no"


def served(framework: Framework) -> str:
    """Ask the server for its tools, resources and prompts."""
    return ", ".join(framework.served())


def providers(framework: Framework) -> str:
    """Count the providers with a client that the framework brings or loads."""
    return str(sum(map(framework.has_provider, PROVIDERS)))


ROWS: Final[dict[str, Callable[[Framework], str]]] = {
    "71 calls of real models with wrong types: repaired / passed on unrepaired": real_calls,
    "Errors for the model are free of argument values": clean_errors,
    "A rule sees the value that the function receives": seen_by_rule,
    "A denied tool stays denied inside another tool": nested,
    "A time limit frees the caller of a blocking function": time_limit,
    "The log of calls detects a changed record": edited_log,
    "Its MCP server offers": served,
    "Providers of models, of 12": providers,
}


# The calls of real models

ZERO: Final[dict[str, Any]] = {"string": "", "integer": 0, "float": 0.0, "boolean": False, "array": [], "dict": {}}
PYTHON: Final = {"string": "str", "integer": "int", "float": "float", "boolean": "bool", "dict": "dict[str, Any]"}


def model_calls() -> list[dict[str, Any]]:
    """Return the recorded calls."""
    calls: list[dict[str, Any]] = json.loads((HERE / "model_calls.json").read_text())["calls"]
    return calls


def outcome_of(framework: Framework, case: dict[str, Any]) -> str:
    """Return ``right``, ``refused``, ``wrong type`` or ``other value``."""
    received: list[dict[str, Any]] = []
    framework.call(tool_of(case, received), case["arguments"])
    if not received:
        return "refused"
    (values,) = received
    schemas = case["parameters"]["properties"]
    if not all(has_type(values[name], schema) for name, schema in schemas.items()):
        return "wrong type"
    is_right = all(is_accepted(values[name], name, case) for name in schemas)
    return "right" if is_right else "other value"


def tool_of(case: dict[str, Any], received: list[dict[str, Any]]) -> Tool:
    """Return a function with the signature of a recorded call. It appends its arguments to *received*."""
    schemas = case["parameters"]["properties"]
    required = case["parameters"].get("required", [])
    ordered = [name for name in schemas if name in required] + [name for name in schemas if name not in required]
    parameters = [
        f"{name}: {annotation_of(schemas[name])}" + ("" if name in required else f" = {default_of(name, case)!r}")
        for name in ordered
    ]
    names = ", ".join(f"{name!r}: {name}" for name in ordered)
    body = f"    '''Answer.'''\n    received.append({{{names}}})\n    return 'ok'"
    namespace: dict[str, Any] = {"received": received, "Any": Any, "Literal": Literal, "__name__": __name__}
    exec(f"def tool({', '.join(parameters)}) -> str:\n{body}", namespace)
    tool: Tool = namespace["tool"]
    return tool


def annotation_of(schema: dict[str, Any]) -> str:
    """Return the annotation of a schema."""
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    if schema["type"] == "array":
        return f"list[{annotation_of(schema['items'])}]" if "items" in schema else "list[Any]"
    return PYTHON[schema["type"]]


def default_of(name: str, case: dict[str, Any]) -> Any:
    """Return a default of the declared type: a value that the checker accepts, or the zero of the type."""
    schema = case["parameters"]["properties"][name]
    accepted = [each for each in case["accepted"].get(name, []) if each != ""]
    typed = [each for each in accepted if has_type(each, schema)]
    return typed[0] if typed else schema.get("enum", [ZERO[schema["type"]]])[0]


def has_type(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value has the annotated type, at each depth that the annotation describes."""
    if "enum" in schema:
        return type(value) is str and value in schema["enum"]
    if schema["type"] == "array":
        return type(value) is list and ("items" not in schema or all(has_type(each, schema["items"]) for each in value))
    return type(value) is type(ZERO[schema["type"]])


def is_accepted(value: Any, name: str, case: dict[str, Any]) -> bool:
    """Return whether the checker accepts the value; it marks parameters that may be omitted with an empty string."""
    accepted = case["accepted"].get(name, [""])
    was_omitted = case["arguments"].get(name) is None
    if was_omitted and "" in accepted and name not in case["parameters"].get("required", []):
        return bool(value == default_of(name, case))
    return any(is_same(value, each) for each in accepted)


def is_same(value: Any, accepted: Any) -> bool:
    """Compare a value as the checker does: without the case and the punctuation of strings."""
    if isinstance(value, str) and isinstance(accepted, str):
        return plain(value) == plain(accepted)
    if isinstance(value, list) and isinstance(accepted, list):
        return len(value) == len(accepted) and all(map(is_same, value, accepted))
    if isinstance(value, dict) and isinstance(accepted, dict):
        return value.keys() <= accepted.keys() and all(
            any(is_same(value.get(key, ""), each) for each in choices) for key, choices in accepted.items()
        )
    return bool(value == accepted)


def plain(text: str) -> str:
    return text.translate(str.maketrans("'", '"', " ,./-_*^")).lower()


if __name__ == "__main__":
    main(sys.argv[1])
