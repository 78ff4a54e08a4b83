"""``neuroscript call``: one tool call from the arguments of a shell, and its result."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import attrs

from neuroscript.cli.calls.dry_run import code_of, decide, decision_to_data
from neuroscript.cli.calls.stream import StreamSummary, print_stream, streaming_tool_name
from neuroscript.cli.env.engine import MakeEngine, find_tool, open_engine
from neuroscript.cli.env.mcp_servers import accept_hint
from neuroscript.cli.terminal.exit_codes import OK, UsageError, exit_code
from neuroscript.cli.terminal.inputs import json_of
from neuroscript.cli.terminal.output import Output
from neuroscript.cli.terminal.remedies import action, advice
from neuroscript.coercion.plain_data import readable_text, to_plain
from neuroscript.engine.engine import Engine
from neuroscript.engine.explanation.decisions import decision_text
from neuroscript.errors import ArgumentError, Problem
from neuroscript.policy.execution_policy import Decision
from neuroscript.runtime.interfaces import ToolCall, ToolResult
from neuroscript.spec.binding import bind_named
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.tools.serialization import result_to_data
from neuroscript.tools.tool import ToolImplementation


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Call one tool, print its result or its error, and return the exit code.

    With ``--watch`` the call is repeated whenever a plugin changes, until it is interrupted.

    Raises:
        UsageError: The arguments are on the command line and in ``--input-json``, the file cannot be read, or there
            is nothing to watch.
    """
    text = file_arguments(options)
    if options.watch:
        _call_again(options, output, make_engine, text)
    with open_engine(make_engine, output, options) as engine, output.tools_aside(options.json):
        became = _became(engine, options, text, output)
        hints = _hints(engine, options, became, text, make_engine is None)
    code = _print_outcome(became, options, output)
    for hint in hints:
        output.say(hint)
    return code


def _hints(engine: Engine, options: Namespace, became: object, text: str | None, is_own: bool) -> list[str]:
    if isinstance(became, StreamSummary) or getattr(became, "ok", False):
        return []
    from neuroscript.cli.calls.hints import call_hints

    return call_hints(engine, options, became, text, is_own=is_own)


def _call_again(options: Namespace, output: Output, make_engine: MakeEngine | None, text: str | None) -> NoReturn:
    from neuroscript.cli.env.reload import wait, watcher

    watched = watcher(options, is_own=make_engine is None)
    with open_engine(make_engine, output, options) as engine, output.tools_aside(options.json):
        while True:
            _print_outcome(_became(engine, options, text, output), options, output)
            wait(watched, engine, output)
    raise AssertionError


def _became(
    engine: Engine, options: Namespace, text: str | None, output: Output
) -> ToolResult | StreamSummary | Decision:
    """Return the result of the call, or with ``--dry-run`` the decision about it."""
    call = call_of(engine, options, text)
    if options.dry_run:
        return decide(engine, call)
    if not isinstance(call, ToolCall):
        return call
    tool = streaming_tool_name(engine, call.name)
    return engine.execute(call, options.timeout) if tool is None else print_stream(engine, tool, call, options, output)


def _print_outcome(became: ToolResult | StreamSummary | Decision, options: Namespace, output: Output) -> int:
    if isinstance(became, Decision):
        return _foreseen(became, options, output)
    if isinstance(became, ToolResult):
        return print_result(became, options, output)
    if options.json:
        output.json(became.data)
    return OK


def file_arguments(options: Namespace) -> str | None:
    """Return the JSON text of ``--input-json``, or None without that option.

    Raises:
        UsageError: There are arguments on the command line too, or the file cannot be read.
    """
    if options.input_json is None:
        return None
    if options.words or options.values:
        raise UsageError("pass the arguments on the command line or with --input-json, not both")
    return json_of(options.input_json)


def _foreseen(decision: Decision, options: Namespace, output: Output) -> int:
    if options.json:
        output.json(decision_to_data(decision))
    else:
        output.text(decision_text(decision))
        if action(decision):
            output.say(advice(decision))
    return code_of(decision)


def print_result(result: ToolResult, options: Namespace, output: Output) -> int:
    """Print the result or the error of a call, and return the exit code."""
    if options.json:
        output.json(result_to_data(result))
    elif result.error is not None:
        output.say(advice(result.error, shows_tracebacks=output.shows_tracebacks) or str(result.error))
        if result.error.code == "mcp.changed":
            _say_how(result.tool, options, output)
        output.say_help(result.error.code)
    elif (text := readable_text(result.value)) is not None:
        output.text(text)
    else:
        output.json(to_plain(result.value))
    return OK if result.error is None else exit_code(result.error)


def _say_how(tool: str, options: Namespace, output: Output) -> None:
    sentence = accept_hint(vars(options), tool, output)
    if sentence:
        output.say(sentence)


def call_of(engine: Engine, options: Namespace, text: str | None) -> ToolCall | ToolResult:
    """Return the call that the options describe, or an error result if the arguments are inconsistent.

    Args:
        text: The arguments as JSON text; None if they are on the command line.
    """
    if text is not None:
        return ToolCall(options.name, text)
    tool = find_tool(engine, options.name)
    if tool is None or tool.name not in engine.infos:
        return ToolCall(options.name)
    return call_from_arguments(tool, options)


def call_from_arguments(tool: ToolImplementation, options: Namespace) -> ToolCall | ToolResult:
    """Return the call of *tool* with the command-line arguments, or an error result if they are inconsistent."""
    arguments_by_name = arguments(tool.spec, options.words, options.values)
    if not arguments_by_name.problems:
        return ToolCall(
            options.name, arguments_by_name.named if arguments_by_name.named else arguments_by_name.positional
        )
    return ToolResult("", tool.name, error=ArgumentError(_all_problems(tool.spec, arguments_by_name), tool=tool.name))


def _all_problems(spec: ToolSpec, call_arguments: CallArguments) -> list[Problem]:
    try:
        bind_named(spec, call_arguments.named)
    except ArgumentError as error:
        return [*call_arguments.problems, *error.problems]
    return [*call_arguments.problems]


@attrs.frozen
class CallArguments:
    """The arguments of a call from the command line.

    Attributes:
        positional: The values in order, if all arguments are positional.
        named: The values by name, if at least one argument is ``key=value``.
        problems: Surplus and duplicate arguments.
    """

    positional: tuple[str, ...] = ()
    named: Mapping[str, Any] = attrs.field(factory=dict)
    problems: tuple[Problem, ...] = ()


def arguments(spec: ToolSpec, words: Sequence[str], values: Sequence[str] = ()) -> CallArguments:
    """Return the arguments of a tool from the command line.

    Args:
        words: Each is ``key=value`` if ``key`` is an argument of the tool, otherwise a positional value.
        values: Further positional values. Positional values are assigned to the first arguments, in order.
    """
    named: list[tuple[str, str]] = []
    positional: list[str] = []
    keys = sorted((arg.name for arg in spec.args), key=len, reverse=True)  # a name may contain "=" itself
    for word in words:
        key = next((key for key in keys if word.startswith(f"{key}=")), None)
        if key is None:
            positional.append(word)
        else:
            named.append((key, word[len(key) + 1 :]))
    positional.extend(values)
    return _together(spec, positional, named) if named else CallArguments(tuple(positional))


def _together(spec: ToolSpec, positional: Sequence[str], named: Sequence[tuple[str, str]]) -> CallArguments:
    """Return positional and named values as named arguments, with a problem for each duplicate."""
    fixed = spec.args[:-1] if spec.variadic else spec.args
    pairs: list[tuple[str, Any]] = [*zip((arg.name for arg in fixed), positional, strict=False)]
    further = positional[len(fixed) :]
    problems: list[Problem] = []
    if further and spec.variadic:
        pairs.append((spec.args[-1].name, list(further)))
    elif further:
        problems.append(Problem("", "arg.count", f"at most {len(fixed)} arguments", str(len(positional) + len(named))))
    pairs.extend(named)
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            problems.append(Problem(name, "arg.duplicate", "one value", f"{count} values"))
    return CallArguments(named=dict(pairs), problems=tuple(problems))
