"""``neuroscript run``: a plan from a file, its inputs from words, and what it gives.

Source: issue "Plans", command line.
"""

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
from neuroscript.cli.env.engine import MakeEngine, opened
from neuroscript.cli.plans.progress import Display, display_of
from neuroscript.cli.terminal.exit_codes import FAILED, MODEL_CODES, OK, USAGE, UsageError, exit_code_of
from neuroscript.cli.terminal.inputs import STDIN, is_json_text, json_of, text_of
from neuroscript.cli.terminal.output import Output, reason_of
from neuroscript.cli.terminal.remedies import action, advice
from neuroscript.coercion.context import type_name
from neuroscript.coercion.plain_data import plain
from neuroscript.engine.engine import Engine
from neuroscript.errors import ArgumentError, Problem, SpecError
from neuroscript.io.text import NotJSON, parsed, shown, shown_path
from neuroscript.workflow.plan.file import load_plan, plan_of_json, plan_of_toml
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.plan.validation import check
from neuroscript.workflow.runner import Watch
from neuroscript.workflow.runner import run as run_plan
from neuroscript.workflow.trace.trace import NodeTrace, Trace

Drive = Callable[[Engine, Watch | None], Trace]
"""Runs a plan with the tools of an engine, tells who watches of its steps, and returns what it has done."""

PATIENCE: Final = 5.0
"""Seconds that an interrupted run is given to tell how far it came."""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Run a plan, write what it gives or say why it failed, and return the exit code.

    Raises:
        UsageError: A file can not be read or written, an input is no ``KEY=VALUE``, or DBOS is not installed.
        SpecError: The plan is wrong, or the database can not be used.
        ArgumentError: The inputs do not fit.
        LLMError: There is no model for its synthesis.
    """
    if options.run_id is not None and options.durable is None:
        raise UsageError("--run-id is for durable runs; give --durable too")
    plan = _plan(options.file)
    inputs = given(plan, options)
    if options.check:
        with _model(plan, options) as model, opened(make_engine, output, options, llm=model) as engine:
            return _told_of_check(check(engine, plan), options, output)
    name = "" if options.durable is None else options.run_id or os.urandom(8).hex()
    left: SimpleQueue[Trace] | None = None if name else SimpleQueue()
    drive = _here(plan, inputs, options, left) if left is not None else _durably(plan, inputs, options, name)
    try:
        return driven(plan, drive, options, output, make_engine, name, left)
    except SpecError as error:
        if error.subject != plan.subject:
            raise
        return _told_of_check(error.problems, options, output)


def driven(
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
    """Have a plan run, write what it gives or say why it failed, and return the exit code.

    Args:
        drive: Runs it.
        name: What the run is called, where that is to be told before anything of it can be lost.
        left: Where its trace is found when it is interrupted; that of a durable one stands in its database.
        is_made_here: Whether this process makes the calls, so that it could show the traceback of a tool.
    """
    display = display_of(plan)
    with (
        _model(plan, options) as model,
        opened(make_engine, output, options, _asking(display, options, output), model) as engine,
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
        return _told(plan, trace, options, output, is_made_here)
    finally:  # also where nobody takes the output
        _save(trace, options.save)


def _plan(name: str) -> Plan:
    if name != STDIN:
        return load_plan(name)
    text = text_of(STDIN)
    read = plan_of_json if text.lstrip()[:1] == "{" else plan_of_toml
    return read(text, source="the standard input")


def _model(plan: Plan, options: Namespace) -> AbstractContextManager[Any]:
    """Return the model that is lent to the plan, where it needs one or the words name one."""
    if not plan.synthesis and options.model is None and options.base_url is None:
        return nullcontext()
    from neuroscript.cli.chat.conversation import reached

    return reached(options)


def _asking(display: Display | None, options: Namespace, output: Output) -> Approver | None:
    """Return who is asked for approvals where something is drawn on the terminal; None is whom the words name."""
    if display is None:
        return None
    from neuroscript.cli.env.approvers import approver

    return display.asked_by(approver(vars(options), output))


# What it is given


def given(plan: Plan, options: Namespace) -> dict[str, Any]:
    """Return the inputs of a plan by name, as the words or a file give them.

    Raises:
        UsageError: They are given both ways, or can not be read.
        ArgumentError: One is given twice.
    """
    if options.input_json is None:
        return _of_words(plan, options.input)
    if options.input:
        raise UsageError("the inputs are words (--input) or a file (--input-json), not both")
    if options.input_json == STDIN == options.file:
        raise UsageError("the plan and its inputs can not both come from the standard input")
    title = "--input-json" if is_json_text(options.input_json) else shown_path(options.input_json)
    try:
        text = json_of(options.input_json)
        data = parsed(text)
    except NotJSON as error:
        hints = [f"{title} is no JSON: {error.hint}", *quote_hints(text)]
        raise UsageError("; ".join(hints)) from None
    if not isinstance(data, dict):
        raise UsageError(f"{title}: expected an object of inputs, got {type_name(data)}")
    return data


def _of_words(plan: Plan, words: list[str]) -> dict[str, str]:
    keys = sorted((arg.name for arg in plan.inputs), key=len, reverse=True)  # for a key may hold "=" itself
    pairs: list[tuple[str, str]] = []
    for word in words:
        key = next((key for key in keys if word.startswith(f"{key}=")), word.partition("=")[0])
        if "=" not in word:
            raise UsageError(f"--input {shown(word)}: expected KEY=VALUE")
        pairs.append((key, word[len(key) + 1 :]))
    counts = Counter(key for key, _ in pairs)
    problems = [
        Problem(key, "arg.duplicate", "one value", f"{count} values") for key, count in counts.items() if count > 1
    ]
    if problems:
        raise ArgumentError(problems, tool=plan.signature.full_name)
    return dict(pairs)


# The run


def _here(plan: Plan, inputs: Mapping[str, Any], options: Namespace, left: SimpleQueue[Trace]) -> Drive:
    """Return what runs a plan in this process."""
    return lambda engine, watch: run_plan(engine, plan, inputs, parallel=options.parallel, watch=watch, left=left.put)


def _durably(plan: Plan, inputs: Mapping[str, Any], options: Namespace, name: str) -> Drive:
    """Return what runs a plan so that it can be gone on with."""
    try:
        from neuroscript.workflow.durable import run_durably
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from None
    return lambda engine, watch: run_durably(
        engine, plan, inputs, options.durable, parallel=options.parallel, watch=watch, run_id=name
    )


def _advise(failed: list[NodeTrace], output: Output, is_made_here: bool) -> None:
    """Say what the user can type so that the calls which failed may run."""
    for sentence in dict.fromkeys(advice(error) for error in output.refusals if action(error)):
        output.say(sentence)
    has_traceback = is_made_here and any(node.error and node.error["code"] == "tool.failed" for node in failed)
    if has_traceback and not output.shows_tracebacks:
        output.say("--traceback shows where a tool failed")


def _save_what_is(left: SimpleQueue[Trace], file: str, output: Output) -> None:
    try:
        _save(left.get(timeout=PATIENCE), file)
    except Empty:
        output.say("the trace could not be saved: the run does not end")


def _save(trace: Trace, file: str | None) -> None:
    if file is None:
        return
    from neuroscript.workflow.trace.file import save_trace

    try:
        save_trace(trace, file)
    except (OSError, ValueError) as error:
        raise UsageError(f"can not write {shown_path(file)}: {reason_of(error)}") from None


# What is told


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

    return "the standard input" if options.file == STDIN else shown(Path(options.file).name)


def _told(plan: Plan, trace: Trace, options: Namespace, output: Output, is_made_here: bool) -> int:
    """Write the output of a plan and the answer to it, say what failed, and return the exit code."""
    if options.json:
        from neuroscript.workflow.trace.file import trace_to_data

        output.json(trace_to_data(trace))
    elif trace.answer:
        output.text(trace.answer)
    elif isinstance(trace.output, str):
        output.text(trace.output)
    elif trace.status == "succeeded" or trace.output is not None:
        output.json(plain(trace.output))
    halted = {node.name for node in plan.nodes if node.on_fail == "halt"}
    failed = [node for node in trace.nodes if node.status == "failed"]
    for node in failed:
        assert node.error is not None
        went_on = "" if node.name in halted else " (the plan went on)"
        output.say(f"{node.name}: {node.error['message']}{went_on}")
    _advise(failed, output, is_made_here)
    if trace.error is None:
        return OK
    unstarted = sum(node.status == "unstarted" for node in trace.nodes)
    output.say(f"the plan failed: {trace.error['message']}" + (f"; {unstarted} not started" if unstarted else ""))
    first = next((node.error for node in failed if node.name in halted and node.error), None)
    if first is not None:
        return exit_code_of(first)
    return MODEL_CODES.get(trace.error["code"], FAILED)
