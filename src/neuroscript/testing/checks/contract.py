"""Laws of what a tool says of itself, which are read off its spec and its policy.

Source: issue "Plugins", the publisher's kit; contract sections 1 and 5.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from neuroscript.coercion.types import BUILTINS, ArgType
from neuroscript.errors import UNSET
from neuroscript.testing.checks.check_case import Law
from neuroscript.testing.checks.trials import Bench
from neuroscript.tools.tool import ToolImplementation, WithoutRuntime

LONGEST: Final = 64
"""Characters of a tool's name that the APIs of models take."""

NAME: Final = re.compile(r"\b[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+\b")
SENTENCE: Final = re.compile(r"[A-Z].*[.]", re.DOTALL)

SECRETS: Final = frozenset(
    {"password", "passwd", "passphrase", "secret", "api_key", "apikey", "access_token", "private_key", "secret_key"}
)
"""Names of arguments whose values nobody may see."""

ENGINES: Final = ("arg.", "coercion.", "limit.", "policy.", "return.")
"""Codes of errors that the engine raises by itself."""

EFFECT_OF: Final = {
    "fs:write": "writes",
    "fs:delete": "deletes",
    "fs:read": "reads",
    "net:read": "net",
    "net:write": "net",
    "shell:exec": "exec",
    "model:use": "model",
}
"""What somebody does who needs this."""


def _name(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if len(tool.spec.wire_name) > LONGEST:
        yield f"its name has {len(tool.spec.wire_name)} characters on the wire, and models take {LONGEST}"


def _description(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if SENTENCE.fullmatch(tool.spec.description) is None:
        yield "its description is no sentence: begin it with a capital and end it with a full stop"


def _arguments(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    yield from (f"argument {arg.name} has no description" for arg in tool.spec.args if not arg.description)


def _keys(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    for arg in tool.spec.args:
        yield from (f"key {key.name} of {arg.name} has no description" for key in arg.keys if not key.description)


def _result(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if not tool.spec.return_help and tool.spec.return_type not in (ArgType.NIL, ArgType.VOID):
        yield "return_help does not say what the result means"


def _when(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if not tool.spec.when_to_use:
        yield "when_to_use does not say when it is the right tool"


def _others(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    names = {each.name for each in bench.tools}
    groups = {each.spec.group for each in bench.tools}
    for name in sorted(set(NAME.findall(tool.spec.when_to_use)) - names):
        if name.rpartition(".")[0] in groups:
            yield f"when_to_use names {name}, and there is no such tool"


def _distinct(bench: Bench, tool: None) -> Iterator[str]:
    for what in ("description", "when_to_use"):
        counted = Counter(text for each in bench.tools if (text := getattr(each.spec, what)))
        for text in (text for text, count in counted.items() if count > 1):
            names = [each.name for each in bench.tools if getattr(each.spec, what) == text]
            yield f"{' and '.join(names)} have one {what}, so that nobody can choose between them"


def is_refused(tool: ToolImplementation) -> bool:
    """Tell whether only a host that trusts or approves it lets a tool run, so that its examples can not show more."""
    return tool.policy.requires_trust or tool.policy.requires_approval


def _shown(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if is_refused(tool):
        if not tool.spec.examples:
            yield "it has no example"
    elif all(example.error for example in tool.spec.examples):
        yield "it has no example of a call that goes well"


def _failing(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if tool.spec.args and not any(example.error for example in tool.spec.examples):
        yield "it has no example of a call that fails; give one with the code of its error"


def _results(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    for index, example in enumerate(tool.spec.examples, 1):
        if "pure" in tool.policy.effects and example.result is UNSET and not example.error:
            yield f"example {index} leaves its result open, and a pure tool always gives the same"


def _conditions(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    codes = {example.error for example in tool.spec.examples if example.error}
    own = sorted(code for code in codes if not code.startswith(ENGINES))
    if own and not tool.spec.error_conditions:
        yield f"error_conditions does not say when it fails with {', '.join(own)}"


def _secrets(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    for arg in (part for each in tool.spec.args for part in (each, *each.keys)):
        if arg.name.lower().replace("-", "_") in SECRETS and not arg.holds_secret:
            yield f"{arg.name} is not marked as secret, so that its values are seen in records"


def _effects(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    for need in tool.policy.capabilities:
        resource, verbs, *_ = need.split(":")
        for verb in verbs.split(","):
            effect = EFFECT_OF.get(f"{resource}:{verb}")
            if effect is not None and effect not in tool.policy.effects:
                yield f"it needs {resource}:{verb}, and {effect} is not among its effects"


def _annotations(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if isinstance(tool.func, WithoutRuntime):
        return
    try:
        parameters = list(inspect.signature(tool.func, eval_str=True).parameters.values())[1:]
    except Exception:  # annotations for type checkers alone
        return
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return
    for arg, parameter in zip(tool.spec.args, parameters, strict=False):
        wanted: Any = parameter.annotation
        if wanted in PLAIN and arg.cls is None and BUILTINS.get(arg.type) is not wanted:
            yield f"{arg.name} is declared as {arg.type}, and the function expects {wanted.__name__}"


PLAIN: Final = (str, int, float, bool, bytes, list, dict)
"""Annotations that mean one exact type."""

LAWS: Final = (
    Law("name-fits", "A name has at most 64 characters where it is sent to a model.", _name),
    Law("described", "The description is a sentence.", _description),
    Law("arguments-described", "Each argument has a description.", _arguments),
    Law("keys-described", "Each key of a map has a description.", _keys),
    Law("result-described", "`return_help` says what a result means.", _result),
    Law("when-to-use", "`when_to_use` says when the tool is the right one.", _when),
    Law("others-exist", "A tool that `when_to_use` names in a group of the toolset is there.", _others),
    Law("distinct", "No two tools are described alike.", _distinct, of_all=True),
    Law("success-shown", "An example shows a call that goes well.", _shown),
    Law("failure-shown", "A tool that takes arguments shows a call that fails.", _failing),
    Law("results-shown", "Each good example of a pure tool says what it gives.", _results),
    Law(
        "failures-described", "`error_conditions` is there where an example fails with a code of its own.", _conditions
    ),
    Law("secrets-marked", "An argument that is called like a secret is `secret`.", _secrets),
    Law("effects-of-needs", "Whoever needs a capability has the effect that goes with it.", _effects),
    Law("types-agree", "A plain annotation of the function is the type that is declared.", _annotations),
)
