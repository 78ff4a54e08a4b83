"""The argument parser of the command: subcommands, options and the arguments of a tool.

Everything after ``call NAME`` belongs to the tool and bypasses argparse: ``-1.5e3`` is a value, not an option.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, Final

from neuroscript.cli.env.options import (
    ENVIRONMENT_OPTIONS,
    LOCKED,
    RECORDING_OPTIONS,
    add_environment,
    add_recording,
    add_servers,
    add_tools,
    with_lock_value,
)
from neuroscript.cli.terminal.argument_parser import (
    TRACEBACK,
    HelpRequested,
    NoArguments,
    Parser,
    add_subparser,
    seconds,
    unknown_command,
)
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.io.text import quote_untrusted

POLICY_ACTIONS: Final = ("check", "explain")
"""The actions of ``policy``."""

SHELLS: Final = ("bash", "zsh", "fish")
FLAGS: Final = frozenset(
    {"--json", "--strict", "--trusted", "--create-sandbox", "--dry-run", "--watch", LOCKED, TRACEBACK, "-h", "--help"}
)
TOP_LEVEL_OPTIONS: Final = ("-h", "--help", "--version")
"""The options that are valid before a command."""

INPUT_OPTION: Final = "--input-json"
TIMEOUT: Final = "--timeout"
OPTIONS_WITH_VALUE: Final = frozenset({INPUT_OPTION, TIMEOUT, *ENVIRONMENT_OPTIONS, *RECORDING_OPTIONS})
NAME: Final = "NAME"
EXIT_CODES: Final = """\
exit codes:
  0 success   1 the tool or the model failed, or an audit log is not intact
  2 usage error, unknown tool or model, or unreadable input
  3 invalid arguments   4 refused by policy or limit   5 internal error, or incomplete output
  6 the durable run was cancelled   124 timeout   130 interrupted
"""

CALL: Final = """\
Everything after NAME is passed to the tool. key=value sets the argument called key if the tool has
one; anything else is a positional value, including a word that begins with - and is not an option of
call, and everything after --. The tool's types convert each value: '["a", "b"]' becomes a list where
the tool expects a list, and null or an empty string omits an optional argument."""

EXECUTE: Final = """\
Each line is one tool call in the format of OpenAI Chat Completions, OpenAI Responses, Anthropic or
Gemini, or {"id", "name", "arguments"}. Each call produces one line with its result, in the same
order; an invalid line produces an error, and the next line is read. Exits 0 if every call succeeds,
otherwise with the exit code of the first that fails."""

APPROVE: Final = """\
Shows the call, asks at the terminal, and runs the call if you approve it. The tool, the policy and the
call must be the same as when the call was suspended, so pass the same options. FILE is deleted once
the call is approved, or rejected with --reject; it remains if the answer at the terminal is no, or if
the prompt is interrupted. Exits as call does."""

REPLAY: Final = """\
Runs the recorded calls of pure tools again, up to the first whose result differs, and counts the
others. Exits 0 if no result differs, 1 if one does, 2 if lines cannot be read."""

POLICY: Final = """\
The options and a policy file together decide what may run. The file is that of --policy, otherwise
neuroscript.toml in your configuration directory if it exists; the working directory is not searched.
--grant, --deny, --isolate and --trusted add to the file. With --allow, a tool runs only if both allow
it. A tool that either denies is refused."""

CHECK: Final = """\
Lists rules without effect (patterns that match no tool, grants that no tool needs, and --allow patterns
that match only tools that can never run), the tools that can never run, with the reason, and how many
tools run in worker processes. Exits 1 if a rule has no effect, 2 if the file cannot be read or is
invalid, otherwise 0."""

EXPLAIN: Final = """\
Shows the outcome of each check for a call and the rule that decides it, without running anything.
Arguments follow NAME, as in call. Without arguments, checks that depend on them are shown as open."""

Completer = Callable[..., Iterable[str]]


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Return the command and its options, and for commands that take one call also ``words`` and ``values``.

    Raises:
        UsageError: The arguments are invalid.
        HelpRequested: The user asked for help.
    """
    command = ["call"] if [*argv[:1]] == ["call"] else ["policy", "explain"]
    if [*argv[: len(command)]] != command:
        return _without_tool_words(argv)
    options, words, values = split(argv[len(command) :])
    parser = build(command[0])
    namespace = parser.parse_args([*command, NAME, *with_lock_value(options)])
    if not words and not values:
        raise UsageError(f"expected the name of a tool (see neuroscript {' '.join(command)} --help)")
    if words and words[0].startswith("-"):
        parser.parse_args([*command, NAME, words[0]])
    namespace.name = (words or values)[0]
    namespace.words, namespace.values = (words[1:], values) if words else ([], values[1:])
    return namespace


def _help(words: Sequence[str]) -> argparse.Namespace:
    """Raise the help of the command or the error code in *words*, or of the whole program without any."""
    if words and words[0] not in COMMANDS:
        raise _help_about_code(words[0]) or unknown_command(words[0], COMMANDS, "show")
    return parse_arguments([*words, "--help"])


def _help_about_code(word: str) -> HelpRequested | UsageError | None:
    """Return the explanation of an error code, an error for a misspelled one, or None for any other word."""
    if "." not in word:
        return None
    from neuroscript.cli.error_help import help_text, near_code

    text = help_text(word)
    if text:
        return HelpRequested(text)
    code = near_code(word)
    return UsageError(f"unknown error code {quote_untrusted(word)}; did you mean {code}?") if code else None


def _without_tool_words(argv: Sequence[str]) -> argparse.Namespace:
    if not argv:
        raise NoArguments(build().format_help())
    _check_command(argv)
    words, program = _split_server_command(argv)
    namespace = build(argv[0]).parse_args(with_lock_value(words))
    if namespace.command == "help":
        return _help(namespace.words)
    if program is not None:
        namespace.server = program
    if namespace.command is None and not namespace.version:
        raise UsageError(f"expected a command: {', '.join(COMMANDS)} (see neuroscript --help)")
    if namespace.command == "policy" and namespace.question is None:
        raise UsageError(f"expected an action: {', '.join(POLICY_ACTIONS)} (see neuroscript policy --help)")
    if namespace.command in ("mcp", "openapi", "runs") and namespace.action is None:
        module = str(COMMANDS[namespace.command]).partition(":")[0]
        words = import_module(f"neuroscript.cli.{module}").ACTIONS
        raise UsageError(f"expected an action: {', '.join(words)} (see neuroscript {namespace.command} --help)")
    return namespace


def _check_command(argv: Sequence[str]) -> None:
    """Raise a `UsageError` if the first argument is an unknown command, or an option that belongs after one."""
    first = argv[0]
    if not first.startswith("-") and first not in COMMANDS:
        raise unknown_command(first, COMMANDS)
    command = next((word for word in argv[1:] if word in COMMANDS), None)
    if first.startswith("-") and first not in TOP_LEVEL_OPTIONS and command is not None:
        option = first.partition("=")[0]
        raise UsageError(
            f"{option} must follow the command: neuroscript {command} {option} (see neuroscript {command} --help)"
        )


def _split_server_command(argv: Sequence[str]) -> tuple[Sequence[str], list[str] | None]:
    """Return the arguments before ``--`` and, for ``mcp tools``, the command line of the server after it."""
    if [*argv[:2]] != ["mcp", "tools"] or "--" not in argv:
        return argv, None
    at = argv.index("--")
    return argv[:at], [*argv[at + 1 :]]


def split(argv: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the options of ``call`` itself, the words before ``--``, and the values after it.

    >>> split(["math.add", "-1.5e3", "--json", "--", "--json"])
    (['--json'], ['math.add', '-1.5e3'], ['--json'])
    """
    options: list[str] = []
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word == "--":
            return options, words, list(rest)
        if word in OPTIONS_WITH_VALUE:
            options.extend([word, *islice(rest, 1)])
        elif word in FLAGS or (word.startswith("--") and word.partition("=")[0] in {LOCKED, *OPTIONS_WITH_VALUE}):
            options.append(word)
        else:
            words.append(word)
    return options, words, []


def build(only: str = "", tool_names: Completer | None = None, keys: Completer | None = None) -> Parser:
    """Return the parser of the command.

    Args:
        only: The only subcommand to build, because each one costs time; any other string builds them all.
        tool_names: Completes the name of a tool in a shell.
        keys: Completes ``key=`` for an argument of the tool that precedes it.
    """
    parser = Parser(
        prog="neuroscript",
        description="Find, inspect and call tools, from a shell or as requested by a model.",
        epilog=EXIT_CODES,
        formatter_class=_layout,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="show the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in [only] if only in COMMANDS else COMMANDS:
        add = COMMANDS[name]
        if isinstance(add, str):
            module, _, function = add.partition(":")
            getattr(import_module(f"neuroscript.cli.{module}"), function)(commands, _layout)
        else:
            add(commands, tool_names, keys)
    return parser


def _layout(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=20)


def _command(commands: Any, name: str, help: str, *, json_help: str, description: str = "") -> Parser:
    parser: Parser = add_subparser(commands, _layout, name, help, json_help=json_help, description=description)
    return parser


def _add_list(commands: Any, *_: Completer | None) -> None:
    parser = _command(
        commands, "list", "list the tools", json_help="print a JSON array of names, signatures and descriptions"
    )
    parser.add_argument(
        "pattern", nargs="?", metavar="PATTERN", help="list only matching names, such as 'math.*'; * also matches dots"
    )
    parser.add_argument("--search", metavar="WORDS", help="list the tools that fit these words best, at most 10")
    add_tools(parser)
    add_servers(parser)


def _add_show(commands: Any, tool_names: Completer | None, _: Completer | None) -> None:
    parser = _command(commands, "show", "show the details of a tool", json_help="print its spec and policy as JSON")
    add_tools(parser)
    add_servers(parser)
    _add_name(parser, tool_names)


def _add_name(parser: Parser, tool_names: Completer | None) -> None:
    action: Any = parser.add_argument("name", metavar=NAME, help="the tool, in any spelling: math.add, math__add")
    action.completer = tool_names


def _add_call(commands: Any, tool_names: Completer | None, keys: Completer | None) -> None:
    parser = _command(
        commands,
        "call",
        "call a tool",
        json_help="print the full result or error as one line of JSON",
        description=CALL,
    )
    parser.usage = "neuroscript call [OPTION ...] NAME [VALUE|key=value ...] [-- VALUE ...]"
    _add_tool_words(parser, tool_names, keys)
    add_recording(parser)
    _add_dry_run(parser)
    parser.add_argument(TIMEOUT, metavar="S", type=seconds, help="time limit of the call, in seconds")
    parser.add_argument(
        "--watch", action="store_true", help="repeat the call whenever a local plugin changes, until interrupted"
    )


def _add_tool_words(parser: Parser, tool_names: Completer | None, keys: Completer | None) -> None:
    """Add the arguments of one call and the options of its environment."""
    parser.add_argument("--strict", action="store_true", help="accept only exact types; convert nothing")
    parser.add_argument(
        INPUT_OPTION,
        metavar="JSON|FILE",
        help="read the arguments from a JSON object or array, or from a file that contains one; - is stdin",
    )
    add_environment(parser, tool_names)
    _add_name(parser, tool_names)
    action: Any = parser.add_argument("words", nargs="*", metavar="VALUE|key=value", help="the arguments of the tool")
    action.completer = keys


def _add_dry_run(parser: Parser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="run nothing; print whether each call would run or be refused, and why"
    )


def _add_execute(commands: Any, tool_names: Completer | None, _: Completer | None) -> None:
    parser = _command(
        commands,
        "execute",
        "run tool calls from a file of JSON lines",
        json_help="has no effect; results are always JSON",
        description=EXECUTE,
    )
    parser.add_argument("--strict", action="store_true", help="accept only exact types; convert nothing")
    parser.add_argument("--report", action="store_true", help="print a readable report of the calls, and exit 0")
    add_environment(parser, tool_names)
    add_recording(parser)
    _add_dry_run(parser)
    parser.add_argument(TIMEOUT, metavar="S", type=seconds, help="time limit of each call, in seconds")
    parser.add_argument("file", metavar="FILE", help="a file of JSON lines; - is stdin")


def _add_approve(commands: Any, tool_names: Completer | None, _: Completer | None) -> None:
    parser = _command(
        commands,
        "approve",
        "approve or reject a suspended call",
        json_help="print the full result or error as one line of JSON",
        description=APPROVE,
    )
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--yes", action="store_true", help="approve the call without asking")
    answers.add_argument("--reject", metavar="REASON", help="reject the call, with this reason for the model")
    add_environment(parser, tool_names)
    add_recording(parser)
    parser.add_argument("file", metavar="FILE", help="the file of a call that --suspend or an application suspended")


def _add_replay(commands: Any, *_: Completer | None) -> None:
    parser = _command(
        commands,
        "replay",
        "run recorded calls again and compare the results",
        json_help="print the counts and the difference as JSON",
        description=REPLAY,
    )
    add_tools(parser)
    parser.add_argument("file", metavar="RECORDING", help="a file of recorded calls; - is stdin")


def _add_policy(commands: Any, tool_names: Completer | None, keys: Completer | None) -> None:
    parser: Parser = commands.add_parser(
        "policy",
        help="check a policy, or explain its decision about a call",
        description=f"Show what may run, and why.\n\n{POLICY}",
        formatter_class=_layout,
        allow_abbrev=False,
    )
    questions = parser.add_subparsers(dest="question", metavar="ACTION", title="actions")
    check = _command(
        questions, "check", "find rules without effect", json_help="print the result as JSON", description=CHECK
    )
    add_environment(check, tool_names)
    explain = _command(
        questions,
        "explain",
        "show which rules decide a call",
        json_help="print every check and the outcome as JSON",
        description=EXPLAIN,
    )
    explain.usage = "neuroscript policy explain [OPTION ...] NAME [VALUE|key=value ...] [-- VALUE ...]"
    _add_tool_words(explain, tool_names, keys)


def _add_completion(commands: Any, *_: Completer | None) -> None:
    parser = _command(
        commands,
        "completion",
        "print the completion script of a shell",
        json_help="print the shell and its script as JSON",
    )
    action: Any = parser.add_argument("shell", metavar="SHELL", help=", ".join(SHELLS))
    action.completer = lambda **_: SHELLS


def _add_help(commands: Any, *_: Completer | None) -> None:
    parser = _command(commands, "help", "show this help, or explain a command or an error code", json_help="")
    action: Any = parser.add_argument(
        "words",
        nargs="*",
        metavar="COMMAND|CODE",
        help="a command, such as call, or an error code, such as policy.trust",
    )
    action.completer = lambda **_: tuple(COMMANDS)  # argcomplete takes a mapping for names with descriptions


COMMANDS: Final[Mapping[str, str | Callable[[Any, Completer | None, Completer | None], None]]] = {
    "list": _add_list,
    "show": _add_show,
    "call": _add_call,
    "execute": _add_execute,
    "run": "plans.options:add_run",
    "approve": _add_approve,
    "policy": _add_policy,
    "audit": "audit.options:add_audit",
    "replay": _add_replay,
    "trace": "plans.trace:add_trace",
    "plugins": "plugins.options:add_inspection",
    "index": "plugins.options:add_index",
    "new": "plugins.publisher_options:add_new",
    "lint": "plugins.publisher_options:add_lint",
    "doctor": "doctor.command:add_doctor",
    "isolation": "isolation.command:add_isolation",
    "export": "tools.options:add_export",
    "stubs": "tools.options:add_stubs",
    "docs": "tools.options:add_docs",
    "ask": "chat.options:add_ask",
    "chat": "chat.options:add_chat",
    "plan": "plans.options:add_plan",
    "models": "chat.models:add_models",
    "mcp": "mcp.options:add_mcp",
    "gateway": "gateway.options:add_gateway",
    "web": "web.options:add_web",
    "openapi": "openapi.options:add_openapi",
    "worker": "plans.durable_options:add_worker",
    "runs": "plans.durable_options:add_runs",
    "completion": _add_completion,
    "help": _add_help,
}
"""The functions that add the commands, in the order of the help.

A function of this module is called with the shell completers. The module of any other is imported only for its own
command, below `neuroscript.cli`.
"""
