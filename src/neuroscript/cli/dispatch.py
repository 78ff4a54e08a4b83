"""Run one command from its arguments to its exit code, and report every error without a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from neuroscript import __version__
from neuroscript.cli.parser import parse_arguments
from neuroscript.cli.terminal.argument_parser import TRACEBACK, HelpRequested, NoArguments
from neuroscript.cli.terminal.exit_codes import INTERNAL, OK, UsageError, exit_code
from neuroscript.cli.terminal.output import Output, OutputClosed, OutputError
from neuroscript.errors import MAX_LISTED_PROBLEMS, NeuroScriptError, SpecError, ToolNotFound

MODULES: Final = {
    "list": "tools.list",
    "show": "tools.show",
    "call": "calls.call",
    "execute": "calls.execute",
    "run": "plans.run_plan",
    "plan": "plans.plan",
    "approve": "calls.approve",
    "replay": "calls.replay",
    "trace": "plans.trace",
    "policy check": "policy.check",
    "policy explain": "policy.explain",
    "audit": "audit.command",
    "plugins": "plugins.command",
    "new": "plugins.new",
    "lint": "plugins.lint",
    "index": "plugins.index",
    "export": "tools.export",
    "doctor": "doctor.command",
    "isolation": "isolation.command",
    "stubs": "tools.stubs",
    "docs": "tools.docs",
    "ask": "chat.ask",
    "chat": "chat.chat",
    "models": "chat.models",
    "mcp serve": "mcp.serve",
    "mcp config": "mcp.config",
    "mcp tools": "mcp.tools",
    "mcp login": "mcp.login",
    "mcp logout": "mcp.login",
    "gateway": "gateway.command",
    "openapi serve": "openapi.serve",
    "web": "web.command",
    "worker": "plans.worker",
    **{f"runs {action}": "plans.durable_runs" for action in ("list", "show", "resume", "cancel", "prune")},
    "completion": "completion",
}
"""The module of each command, below `neuroscript.cli`; only the module of the current command is imported."""


def run(argv: Sequence[str], make_engine: Callable[..., Any] | None = None) -> int:
    """Run the command in *argv* and return its exit code."""
    output = Output(sys.stdout, sys.stderr)
    try:
        if "_ARGCOMPLETE" in os.environ:
            from neuroscript.cli.completion import complete

            complete(make_engine)
        if [*argv[:1]] == [TRACEBACK]:
            output.shows_tracebacks, argv = True, argv[1:]
        code = _carried_out(argv, output, make_engine)
    except OutputClosed:
        code = INTERNAL
    except NoArguments as help:
        output.say_lines(str(help).rstrip("\n"))
        code = exit_code(help)
    except BaseException as error:
        for sentence in _sentences(error):
            output.say(sentence)
        for note in getattr(error, "__notes__", ()) if isinstance(error, ToolNotFound) else ():
            output.say(note)
        output.say_help(getattr(error, "code", None))
        output.say_traceback(error)
        code = exit_code(error)
    output.settle()
    return code


def _carried_out(argv: Sequence[str], output: Output, make_engine: Callable[..., Any] | None) -> int:
    try:
        options = parse_arguments(argv)
    except HelpRequested as help:
        output.write(str(help))
        return OK
    output.shows_tracebacks = output.shows_tracebacks or getattr(options, "traceback", False)
    if options.version:
        output.write(f"neuroscript {__version__}\n")
        return OK
    part = {"policy": "question", "mcp": "action", "openapi": "action", "runs": "action"}.get(options.command)
    name = f"{options.command} {getattr(options, part)}" if part else options.command
    command = import_module(f"neuroscript.cli.{MODULES[name]}")
    code: int = command.run(options, output, make_engine)
    return code


def _sentences(error: BaseException) -> list[str]:
    """Return the message of an error, or for an invalid file one per invalid line, at most `MAX_LISTED_PROBLEMS`."""
    if not isinstance(error, SpecError) or not error.lines:
        return [_sentence(error)]
    more = len(error.sentences) - MAX_LISTED_PROBLEMS
    return [*error.sentences[:MAX_LISTED_PROBLEMS], *([f"{error.subject}: and {more} more"] if more > 0 else [])]


def _sentence(error: BaseException) -> str:
    match error:
        case KeyboardInterrupt():
            return "interrupted"
        case NeuroScriptError() | UsageError():
            return str(error)
        case OutputError():
            return f"cannot write the results: {error}"
        case _:
            return f"internal error: {type(error).__name__} {_origin(error)}; please report it"


def _origin(error: BaseException) -> str:
    """Return the file and line where an error was raised, for the bug report."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    file = os.path.basename(trace.tb_frame.f_code.co_filename)  # noqa: PTH119
    return f"at {file}:{trace.tb_lineno}"
