"""``neuroscript run``: run a plan from a file with inputs from options, and print its output."""

from __future__ import annotations

import os
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from queue import Empty, SimpleQueue
from typing import Any, Final

from neuroscript.approval.request import Approver
from neuroscript.cli.calls.hints import quote_hints
from neuroscript.cli.env.engine import MakeEngine, open_engine
from neuroscript.cli.plans.progress import Display, display_of
from neuroscript.cli.terminal.exit_codes import (
    CANCELLED,
    FAILED,
    MODEL_CODES,
    OK,
    USAGE,
    UsageError,
    exit_code_of,
    require_extra,
)
from neuroscript.cli.terminal.inputs import STDIN, is_json_text, json_of, text_of
from neuroscript.cli.terminal.output import Output, reason_of
from neuroscript.cli.terminal.remedies import action, advice
from neuroscript.coercion.context import type_name
from neuroscript.coercion.plain_data import to_plain
from neuroscript.engine.engine import Engine
from neuroscript.errors import ArgumentError, Problem, SpecError
from neuroscript.io.text import NotJSON, parse_json, quote_path, quote_untrusted
from neuroscript.workflow.plan.file import load_plan, plan_of_json, plan_of_toml
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.plan.validation import check
from neuroscript.workflow.runner import Watch
from neuroscript.workflow.runner import run as run_plan
from neuroscript.workflow.trace.trace import NodeTrace, Trace

Drive = Callable[[Engine, Watch | None], Trace]
"""A function that runs a plan with the tools of an engine, reports its steps to a watcher, and returns its trace."""

INTERRUPT_GRACE_SECONDS: Final = 5.0
"""Seconds to wait for the trace of an interrupted run."""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Run a plan, print its output or its errors, and return the exit code.

    Raises:
        UsageError: A file cannot be read or written, an input is not ``KEY=VALUE``, or an extra is not installed.
        SpecError: The plan is invalid, or the database cannot be used.
        ArgumentError: The inputs are invalid.
        LLMError: There is no model for its synthesis.
    """
    if options.run_id is not None and options.durable is None:
        raise UsageError("--run-id needs --durable; add --durable URL")
    plan = _plan(options.file)
    inputs = inputs_of(plan, options)
    if options.check:
        with _model(plan, options) as model, open_engine(make_engine, output, options, llm=model) as engine:
            return _told_of_check(check(engine, plan), options, output)
    name = "" if options.durable is None else options.run_id or os.urandom(8).hex()
    left: SimpleQueue[Trace] | None = None if name else SimpleQueue()
    drive = _local_runner(plan, inputs, options, left) if left is not None else _durably(plan, inputs, options, name)
    try:
        return drive_plan(plan, drive, options, output, make_engine, name, left)
    except SpecError as error:
        if error.subject != plan.subject:
            raise
        return _told_of_check(error.problems, options, output)


def drive_plan(
    plan: Plan,
    drive: Drive,
    options: Namespace,
    output: Output,
    make_engine: MakeEngine | None,
    name: str = "",
    left: SimpleQueue[Trace] | None = None,
    *,
    is_made_here: bool = True,
) -> int:
    """Run a plan with *drive*, print its output or its errors, and return the exit code.

    Args:
        drive: The function that runs the plan.
        name: The id of a durable run, which is printed before the run starts.
        left: The queue with the trace of an interrupted run; a durable run stores its trace in the database.
        is_made_here: Whether this process runs the calls, so that it can show the traceback of a tool.
    """
    display = display_of(plan)
    with (
        _model(plan, options) as model,
        open_engine(make_engine, output, options, _asking(display, options, output), model) as engine,
    ):
        if name:
            output.say(f"run {name}")
        try:
            with output.tools_aside(options.json), nullcontext() if display is None else display.drawn():
                trace = drive(engine, None if display is None else display.watch)
        except KeyboardInterrupt:
            if options.save is not None and left is not None:
                _save_what_is(left, options.save, output)
            raise
    try:
        return _print_outcome(plan, trace, options, output, is_made_here)
    finally:  # even if the output cannot be written
        _save(trace, options.save)


def _plan(name: str) -> Plan:
    if name != STDIN:
        return load_plan(name)
    text = text_of(STDIN)
    read = plan_of_json if text.lstrip()[:1] == "{" else plan_of_toml
    return read(text, source="standard input")


def _model(plan: Plan, options: Namespace) -> AbstractContextManager[Any]:
    """Return the model for the plan, if the plan needs one or an option names one."""
    if not plan.synthesis and options.model is None and options.base_url is None:
        return nullcontext()
    from neuroscript.cli.chat.conversation import open_model

    return open_model(options)


def _asking(display: Display | None, options: Namespace, output: Output) -> Approver | None:
    """Return an approver that works with the progress display, or None for the approver of the options."""
    if display is None:
        return None
    from neuroscript.cli.env.approvers import approver

    return display.asked_by(approver(vars(options), output))


# The inputs


def inputs_of(plan: Plan, options: Namespace) -> dict[str, Any]:
    """Return the inputs of a plan by name, from ``--input`` or ``--input-json``.

    Raises:
        UsageError: Both options are used, or the inputs cannot be read.
        ArgumentError: An input occurs twice.
    """
    if options.input_json is None:
        return _of_words(plan, options.input)
    if options.input:
        raise UsageError("pass the inputs with --input or with --input-json, not both")
    if options.input_json == STDIN == options.file:
        raise UsageError("the plan and its inputs cannot both come from standard input")
    title = "--input-json" if is_json_text(options.input_json) else quote_path(options.input_json)
    try:
        text = json_of(options.input_json)
        data = parse_json(text)
    except NotJSON as error:
        hints = [f"{title} is not JSON: {error.hint}", *quote_hints(text)]
        raise UsageError("; ".join(hints)) from None
    if not isinstance(data, dict):
        raise UsageError(f"{title}: expected an object of inputs, got {type_name(data)}")
    return data


def _of_words(plan: Plan, words: list[str]) -> dict[str, str]:
    keys = sorted((arg.name for arg in plan.inputs), key=len, reverse=True)  # a name may contain "=" itself
    pairs: list[tuple[str, str]] = []
    for word in words:
        key = next((key for key in keys if word.startswith(f"{key}=")), word.partition("=")[0])
        if "=" not in word:
            raise UsageError(f"--input {quote_untrusted(word)}: expected KEY=VALUE")
        pairs.append((key, word[len(key) + 1 :]))
    counts = Counter(key for key, _ in pairs)
    problems = [
        Problem(key, "arg.duplicate", "one value", f"{count} values") for key, count in counts.items() if count > 1
    ]
    if problems:
        raise ArgumentError(problems, tool=plan.signature.full_name)
    return dict(pairs)


# The run


def _local_runner(plan: Plan, inputs: Mapping[str, Any], options: Namespace, left: SimpleQueue[Trace]) -> Drive:
    """Return the function that runs a plan in this process only."""
    return lambda engine, watch: run_plan(engine, plan, inputs, parallel=options.parallel, watch=watch, left=left.put)


def _durably(plan: Plan, inputs: Mapping[str, Any], options: Namespace, name: str) -> Drive:
    """Return the function that runs a plan durably, so that it can be resumed."""
    with require_extra():
        from neuroscript.workflow.durable import run_durably
    return lambda engine, watch: run_durably(
        engine, plan, inputs, options.durable, parallel=options.parallel, watch=watch, run_id=name
    )


def _advise(failed: list[NodeTrace], output: Output, is_made_here: bool) -> None:
    """Print the options that permit the refused calls, and how to see the traceback of a failed tool."""
    for sentence in dict.fromkeys(advice(error) for error in output.refusals if action(error)):
        output.say(sentence)
    has_traceback = is_made_here and any(node.error and node.error["code"] == "tool.failed" for node in failed)
    if has_traceback and not output.shows_tracebacks:
        output.say("add --traceback to see where a tool failed")


def _save_what_is(left: SimpleQueue[Trace], file: str, output: Output) -> None:
    try:
        _save(left.get(timeout=INTERRUPT_GRACE_SECONDS), file)
    except Empty:
        output.say("cannot save the trace: the run has not ended")


def _save(trace: Trace, file: str | None) -> None:
    if file is None:
        return
    from neuroscript.workflow.trace.file import save_trace

    try:
        save_trace(trace, file)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {quote_path(file)}: {reason_of(error)}") from None


# The output


def _told_of_check(problems: tuple[str, ...], options: Namespace, output: Output) -> int:
    if options.json:
        output.json({"ok": not problems, "problems": [*problems]})
    elif not problems:
        output.text(f"{_title(options)} can run here")
    for problem in problems:
        output.say(f"{_title(options)}: {problem}")
    return USAGE if problems else OK


def _title(options: Namespace) -> str:
    from pathlib import Path

    return "standard input" if options.file == STDIN else quote_untrusted(Path(options.file).name)


def _print_outcome(plan: Plan, trace: Trace, options: Namespace, output: Output, is_made_here: bool) -> int:
    """Print the output of a plan, or its answer if it has one, and its errors; return the exit code."""
    if options.json:
        from neuroscript.workflow.trace.file import trace_to_data

        output.json(trace_to_data(trace))
    elif trace.answer:
        output.text(trace.answer)
    elif isinstance(trace.output, str):
        output.text(trace.output)
    elif trace.status == "succeeded" or trace.output is not None:
        output.json(to_plain(trace.output))
    halted = {node.name for node in plan.nodes if node.on_fail == "halt"}
    failed = [node for node in trace.nodes if node.status == "failed"]
    for node in failed:
        assert node.error is not None
        went_on = "" if node.name in halted else " (the plan continued)"
        output.say(f"{node.name}: {node.error['message']}{went_on}")
    _advise(failed, output, is_made_here)
    if trace.error is None:
        return OK
    unstarted = sum(node.status == "unstarted" for node in trace.nodes)
    why = trace.error["message"] if trace.status == "cancelled" else f"the plan failed: {trace.error['message']}"
    output.say(why + (f"; {unstarted} not started" if unstarted else ""))
    if trace.status == "cancelled":
        return CANCELLED
    first = next((node.error for node in failed if node.name in halted and node.error), None)
    if first is not None:
        return exit_code_of(first)
    return MODEL_CODES.get(trace.error["code"], FAILED)
