"""Contract checks of a tool's spec and policy."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from neuroscript.coercion.types import BUILTINS, ArgType
from neuroscript.errors import UNSET
from neuroscript.formats.one_line import inner_rules
from neuroscript.policy.labels import label_contradictions
from neuroscript.testing.checks.check_case import ContractCheck
from neuroscript.testing.checks.trials import Bench
from neuroscript.tools.tool import ToolImplementation, WithoutRuntime

MAX_NAME_CHARS: Final = 64
"""Maximum number of characters in a tool name for model APIs."""

NAME: Final = re.compile(r"\b[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+\b")
SENTENCE: Final = re.compile(r"[A-Z].*[.]", re.DOTALL)

SECRETS: Final = frozenset(
    {"password", "passwd", "passphrase", "secret", "api_key", "apikey", "access_token", "private_key", "secret_key"}
)
"""Names of arguments that usually hold secrets."""

ENGINES: Final = ("arg.", "coercion.", "limit.", "policy.", "return.")
"""Prefixes of error codes that the engine itself raises."""

EFFECT_OF: Final = {
    "fs:write": "writes",
    "fs:delete": "deletes",
    "fs:read": "reads",
    "net:read": "net",
    "net:write": "net",
    "shell:exec": "exec",
    "model:use": "model",
}
"""The effect that goes with a capability."""


def _name(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if len(tool.spec.wire_name) > MAX_NAME_CHARS:
        size = len(tool.spec.wire_name)
        yield f"its name has {size} characters on the wire, but models accept at most {MAX_NAME_CHARS}"


def _description(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if SENTENCE.fullmatch(tool.spec.description) is None:
        yield "its description is not a sentence; write one in the imperative, such as 'Return the title of a page.'"


def _arguments(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    yield from (f"argument {arg.name} has no description" for arg in tool.spec.args if not arg.description)


def _keys(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    for arg in tool.spec.args:
        yield from (f"key {key.name} of {arg.name} has no description" for key in arg.keys if not key.description)


def _result(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if not tool.spec.return_help and tool.spec.return_type not in (ArgType.NIL, ArgType.VOID):
        yield "return_help is missing; say what the result means"


def _missing_when_to_use(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if not tool.spec.when_to_use:
        yield "when_to_use is missing; say when to choose this tool"


def _unknown_references(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    names = {each.name for each in bench.tools}
    groups = {each.spec.group for each in bench.tools}
    for name in sorted(set(NAME.findall(tool.spec.when_to_use)) - names):
        if name.rpartition(".")[0] in groups:
            yield f"when_to_use mentions {name}, which does not exist"


def _distinct(bench: Bench, tool: None) -> Iterator[str]:
    for what in ("description", "when_to_use"):
        counted = Counter(text for each in bench.tools if (text := getattr(each.spec, what)))
        for text in (text for text, count in counted.items() if count > 1):
            names = [each.name for each in bench.tools if getattr(each.spec, what) == text]
            yield f"{' and '.join(names)} have the same {what}, so a model cannot choose between them"


def is_refused(tool: ToolImplementation) -> bool:
    """Return whether a tool runs only on a host that trusts or approves it, so that its examples cannot succeed."""
    return tool.policy.requires_trust or tool.policy.requires_approval


def _shown(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if is_refused(tool):
        if not tool.spec.examples:
            yield "it has no example"
    elif all(example.error for example in tool.spec.examples):
        yield "it has no example of a call that succeeds"


def _failing(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if tool.spec.args and not any(example.error for example in tool.spec.examples):
        yield "it has no example of a call that fails; add one with its error code"


def _results(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    for index, example in enumerate(tool.spec.examples, 1):
        if "pure" in tool.policy.effects and example.result is UNSET and not example.error:
            yield f"example {index} declares no result, but a pure tool always returns the same one"


def _conditions(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    codes = {example.error for example in tool.spec.examples if example.error}
    own = sorted(code for code in codes if not code.startswith(ENGINES))
    if own and not tool.spec.error_conditions:
        yield f"error_conditions does not say when it fails with {', '.join(own)}"


def _secrets(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    args = tool.spec.args
    for arg in (*args, *(key for each in args for _, key in inner_rules(each, each.name))):
        if arg.name.lower().replace("-", "_") in SECRETS and not arg.holds_secret:
            yield f"{arg.name} is not marked as secret, so its values appear in audit logs"


def _effects(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    for need in tool.policy.capabilities:
        resource, verbs, *_ = need.split(":")
        for verb in verbs.split(","):
            effect = EFFECT_OF.get(f"{resource}:{verb}")
            if effect is not None and effect not in tool.policy.effects:
                yield f"it needs {resource}:{verb}, but its effects do not include {effect}"


def _labels(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    policy = tool.policy
    yield from label_contradictions(policy)
    if tool.spec.args and policy.sinks == () and "net" in policy.effects:
        yield "sinks is empty, but a tool with the effect net sends its arguments; declare where, such as outside"


def _annotations(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if isinstance(tool.func, WithoutRuntime):
        return
    try:
        parameters = list(inspect.signature(tool.func, eval_str=True).parameters.values())[1:]
    except Exception:  # annotations that exist for type checkers only
        return
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return
    for arg, parameter in zip(tool.spec.args, parameters, strict=False):
        wanted: Any = parameter.annotation
        if wanted in PLAIN and arg.cls is None and BUILTINS.get(arg.type) is not wanted:
            yield f"{arg.name} is declared as {arg.type}, but the function expects {wanted.__name__}"


PLAIN: Final = (str, int, float, bool, bytes, list, dict)
"""Annotations that correspond to one exact type."""

CHECKS: Final = (
    ContractCheck("wire-name-length", "The wire name has at most 64 characters.", _name),
    ContractCheck("described", "The description is a sentence.", _description),
    ContractCheck("arguments-described", "Each argument has a description.", _arguments),
    ContractCheck("keys-described", "Each key of a map has a description.", _keys),
    ContractCheck("result-described", "`return_help` says what a result means.", _result),
    ContractCheck("when-to-use", "`when_to_use` says when to choose the tool.", _missing_when_to_use),
    ContractCheck(
        "mentioned-tools-exist",
        "The tools of the toolset's groups that `when_to_use` mentions exist.",
        _unknown_references,
    ),
    ContractCheck("distinct", "No two tools have the same description or `when_to_use`.", _distinct, of_all=True),
    ContractCheck("success-example", "An example shows a call that succeeds.", _shown),
    ContractCheck("failure-example", "A tool with arguments has an example of a call that fails.", _failing),
    ContractCheck("results-declared", "Each successful example of a pure tool declares its result.", _results),
    ContractCheck(
        "failures-described",
        "`error_conditions` is set if an example fails with an error code of the tool.",
        _conditions,
    ),
    ContractCheck("secrets-marked", "An argument with the name of a secret is marked `secret`.", _secrets),
    ContractCheck(
        "effects-match-capabilities", "A tool that needs a capability declares the corresponding effect.", _effects
    ),
    ContractCheck("labels-match", "Declared sources and sinks do not contradict effects or capabilities.", _labels),
    ContractCheck("types-match", "Plain annotations of the function match the declared types.", _annotations),
)
