"""The words of the command: subcommands, options, and what is left for a tool.

The words behind ``call NAME`` belong to the tool, so argparse never sees them: ``-1.5e3`` is a value, not an option.

Source: issue "The contract runs", command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, Final

from neuroscript.cli.env.options import (
    KEEPING,
    LOCKED,
    WORLD,
    add_keeping,
    add_servers,
    add_tools,
    add_world,
    locked_words,
)
from neuroscript.cli.terminal.argument_parser import NothingAsked, Parser, unknown_command
from neuroscript.cli.terminal.arguments import TRACEBACK, add_subparser, seconds
from neuroscript.cli.terminal.exit_codes import UsageError

COMMANDS: Final = (
    *("list", "show", "call", "execute", "run", "approve", "policy", "audit", "replay", "trace"),
    *("plugins", "index", "new", "lint", "doctor"),
    *("export", "stubs", "docs"),
    *("ask", "chat", "plan", "models", "mcp"),
    *("worker", "runs"),
    *("completion", "help"),
)
QUESTIONS: Final = ("check", "explain")
"""What ``policy`` can be asked."""

SHELLS: Final = ("bash", "zsh", "fish")
FLAGS: Final = frozenset(
    {"--json", "--strict", "--trusted", "--create", "--dry-run", "--watch", LOCKED, TRACEBACK, "-h", "--help"}
)
TOP: Final = ("-h", "--help", "--version")
"""The options that stand before a command."""

INPUT: Final = "--input-json"
TIMEOUT: Final = "--timeout"
VALUED: Final = frozenset({INPUT, TIMEOUT, *WORLD, *KEEPING})
NAME: Final = "NAME"
EXIT_CODES: Final = """\
exit codes:
  0 ok   1 the tool or the model failed, or a trail is not intact
  2 usage, no such tool or model, unreadable input
  3 the arguments do not fit   4 refused by policy or limit   5 internal, or the output was cut off
  124 timeout   130 interrupted
"""

CALL: Final = """\
Words behind NAME are its arguments. A word is key=value only when key is an argument of that tool;
behind -- every word is a value; a word that begins with - and is no option is a value too. Values
are texts, and the tool's types decide what becomes of them: '["a", "b"]' is a list where a list is
wanted, null or an empty text leaves out what may be left out."""

EXECUTE: Final = """\
Each line is a call as the API of a model sends it, OpenAI Chat or Responses, Anthropic or Gemini, or
{"id", "name", "arguments"}. Each gives one line with its result, in the same order; a bad line gives
an error and stops nothing. Exits 0 when every line ran, else with the code of the first that did not."""

APPROVE: Final = """\
The call runs if it is approved, and only if its tool, what may run here, and the call itself are still
what they were when it was put aside: give the same options. FILE is removed once the call is approved,
or rejected with --reject; it stays where nobody answers, the answer is no, or it is interrupted.
Exits as call does."""

REPLAY: Final = """\
Calls of pure tools are run again, up to the first that does not give what was recorded; all others are
counted. Exits 0 when nothing differs, 1 when something does, 2 when lines could not be read."""

POLICY: Final = """\
What may run is what the options and a file say together. The file is FILE of --policy, or else
neuroscript.toml in your own configuration directory, if it is there; none of the working directory
is read unless it is named. --grant, --deny and --trusted add to the file; with --allow only those
tools run that the file allows too; what either denies is refused."""

CHECK: Final = """\
Tells which rules have no effect (patterns that match no tool, grants that cover no tool's need, an
--allow of tools that can never run) and which tools can never run, and why. Exits 1 when a rule has
no effect, 2 when the file can not be read or is wrong, else 0."""

EXPLAIN: Final = """\
Tells what each gate says of a call, and which rule decides; runs nothing. The words behind NAME are
its arguments, as those of call. Without any, what they decide is left open."""

Completer = Callable[..., Iterable[str]]


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Return the command, its options, and for those about one call also ``words`` and ``values``.

    Raises:
        UsageError: The words are not such as the command can be given.
        HelpAsked: They ask for help.
    """
    command = ["call"] if [*argv[:1]] == ["call"] else ["policy", "explain"]
    if [*argv[: len(command)]] != command:
        return _without_tool_words(argv)
    options, words, values = split(argv[len(command) :])
    parser = build(command[0])
    namespace = parser.parse_args([*command, NAME, *locked_words(options)])
    if not words and not values:
        raise UsageError(f"the name of a tool is missing (see neuroscript {' '.join(command)} --help)")
    if words and words[0].startswith("-"):
        parser.parse_args([*command, NAME, words[0]])
    namespace.name = (words or values)[0]
    namespace.words, namespace.values = (words[1:], values) if words else ([], values[1:])
    return namespace


def _help(words: Sequence[str]) -> argparse.Namespace:
    """Raise the help of the command that *words* begin with, or of all of them without any."""
    if words and words[0] not in COMMANDS:
        raise unknown_command(words[0], COMMANDS, "show")
    return parsed([*words, "--help"])


def _without_tool_words(argv: Sequence[str]) -> argparse.Namespace:
    if not argv:
        raise NothingAsked(build().format_help())
    _check_command(argv)
    words, program = _apart(argv)
    namespace = build(argv[0]).parse_args(locked_words(words))
    if namespace.command == "help":
        return _help(namespace.words)
    if program is not None:
        namespace.server = program
    if namespace.command is None and not namespace.version:
        raise UsageError(f"a command is missing: {', '.join(COMMANDS)} (see neuroscript --help)")
    if namespace.command == "policy" and namespace.question is None:
        raise UsageError(f"a question is missing: {', '.join(QUESTIONS)} (see neuroscript policy --help)")
    if namespace.command in ("mcp", "runs") and namespace.action is None:
        words = import_module(f"neuroscript.cli.{OTHERS[namespace.command].partition(':')[0]}").ACTIONS
        raise UsageError(f"an action is missing: {', '.join(words)} (see neuroscript {namespace.command} --help)")
    return namespace


def _check_command(argv: Sequence[str]) -> None:
    """Raise a `UsageError` where the first word is no command, or is an option that belongs to one."""
    first = argv[0]
    if not first.startswith("-") and first not in COMMANDS:
        raise unknown_command(first, COMMANDS)
    command = next((word for word in argv[1:] if word in COMMANDS), None)
    if first.startswith("-") and first not in TOP and command is not None:
        option = first.partition("=")[0]
        raise UsageError(
            f"{option} stands before the command; write it after: neuroscript {command} {option} "
            f"(see neuroscript {command} --help)"
        )


def _apart(argv: Sequence[str]) -> tuple[Sequence[str], list[str] | None]:
    """Return the words without those of a program behind ``--``, which ``mcp tools`` takes as they are."""
    if [*argv[:2]] != ["mcp", "tools"] or "--" not in argv:
        return argv, None
    at = argv.index("--")
    return argv[:at], [*argv[at + 1 :]]


def split(argv: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the options of ``call`` itself, the words before ``--``, and the values behind it.

    >>> split(["math.add", "-1.5e3", "--json", "--", "--json"])
    (['--json'], ['math.add', '-1.5e3'], ['--json'])
    """
    options: list[str] = []
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word == "--":
            return options, words, list(rest)
        if word in VALUED:
            options.extend([word, *islice(rest, 1)])
        elif word in FLAGS or (word.startswith("--") and word.partition("=")[0] in {LOCKED, *VALUED}):
            options.append(word)
        else:
            words.append(word)
    return options, words, []


def build(only: str = "", tool_names: Completer | None = None, keys: Completer | None = None) -> Parser:
    """Return the parser of the command.

    Args:
        only: The one subcommand that is needed, for each costs; all of them where it is none.
        tool_names: Completes the name of a tool in a shell.
        keys: Completes ``key=`` for an argument of the tool that stands before it.
    """
    parser = Parser(
        prog="neuroscript",
        description="Find tools, look at them and call them, by hand or as a model asked for it.",
        epilog=EXIT_CODES,
        formatter_class=_layout,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="show the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in [only] if only in COMMANDS else COMMANDS:
        if name in OTHERS:
            room, _, add = OTHERS[name].partition(":")
            getattr(import_module(f"neuroscript.cli.{room}"), add)(commands, _layout)
        else:
            OURS[name](commands, tool_names, keys)
    return parser


def _layout(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=20)


def _command(commands: Any, name: str, help: str, *, json_help: str, description: str = "") -> Parser:
    parser: Parser = add_subparser(commands, _layout, name, help, json_help=json_help, description=description)
    return parser


def _add_list(commands: Any, *_: Completer | None) -> None:
    parser = _command(commands, "list", "list the tools", json_help="an array of names, signatures and descriptions")
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="names to list, as in 'math.*'; * crosses dots")
    add_tools(parser)
    add_servers(parser)


def _add_show(commands: Any, tool_names: Completer | None, _: Completer | None) -> None:
    parser = _command(commands, "show", "show all of one tool", json_help="its spec and its policy")
    add_tools(parser)
    add_servers(parser)
    _add_name(parser, tool_names)


def _add_name(parser: Parser, tool_names: Completer | None) -> None:
    action: Any = parser.add_argument("name", metavar=NAME, help="a tool, in any spelling: math.add, math__add")
    action.completer = tool_names


def _add_call(commands: Any, tool_names: Completer | None, keys: Completer | None) -> None:
    parser = _command(
        commands, "call", "call a tool", json_help="the whole result, or the error, in one line", description=CALL
    )
    parser.usage = "neuroscript call [OPTION ...] NAME [VALUE|key=value ...] [-- VALUE ...]"
    _add_tool_words(parser, tool_names, keys)
    add_keeping(parser)
    _add_dry_run(parser)
    parser.add_argument(TIMEOUT, metavar="S", type=seconds, help="how many seconds the call may take")
    parser.add_argument(
        "--watch", action="store_true", help="call again whenever a plugin of a file changes, until it is interrupted"
    )


def _add_tool_words(parser: Parser, tool_names: Completer | None, keys: Completer | None) -> None:
    """Add what describes one call and the world of it."""
    parser.add_argument("--strict", action="store_true", help="take exact types alone, and repair nothing")
    parser.add_argument(
        INPUT,
        metavar="JSON|FILE",
        help="take the arguments from JSON, an object or array, or from a file of it; - is stdin",
    )
    add_world(parser, tool_names)
    _add_name(parser, tool_names)
    action: Any = parser.add_argument("words", nargs="*", metavar="VALUE|key=value", help="the arguments of the tool")
    action.completer = keys


def _add_dry_run(parser: Parser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="run nothing; say what would, what would be refused, and why"
    )


def _add_execute(commands: Any, tool_names: Completer | None, _: Completer | None) -> None:
    parser = _command(
        commands,
        "execute",
        "run tool calls, one in each line",
        json_help="one result in each line (as without it)",
        description=EXECUTE,
    )
    parser.add_argument("--strict", action="store_true", help="take exact types alone, and repair nothing")
    parser.add_argument("--report", action="store_true", help="show people what became of each call, and exit 0")
    add_world(parser, tool_names)
    add_keeping(parser)
    _add_dry_run(parser)
    parser.add_argument(TIMEOUT, metavar="S", type=seconds, help="how many seconds each call may take")
    parser.add_argument("file", metavar="FILE", help="JSON lines; - is stdin")


def _add_approve(commands: Any, tool_names: Completer | None, _: Completer | None) -> None:
    parser = _command(
        commands,
        "approve",
        "answer a call that waits for its approval",
        json_help="the whole result, or the error, in one line",
        description=APPROVE,
    )
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--yes", action="store_true", help="approve it, and ask nobody")
    answers.add_argument("--reject", metavar="REASON", help="reject it, and tell the model this reason")
    add_world(parser, tool_names)
    add_keeping(parser)
    parser.add_argument("file", metavar="FILE", help="what --suspend, or an application, has put aside")


def _add_replay(commands: Any, *_: Completer | None) -> None:
    parser = _command(
        commands, "replay", "run recorded calls again", json_help="what differs, and the counts", description=REPLAY
    )
    add_tools(parser)
    parser.add_argument("file", metavar="RECORDING", help="a file of recorded calls; - is stdin")


def _add_policy(commands: Any, tool_names: Completer | None, keys: Completer | None) -> None:
    parser: Parser = commands.add_parser(
        "policy",
        help="look at what may run",
        description=f"Look at what may run, and why.\n\n{POLICY}",
        formatter_class=_layout,
        allow_abbrev=False,
    )
    questions = parser.add_subparsers(dest="question", metavar="QUESTION", title="questions")
    check = _command(
        questions, "check", "find rules without effect", json_help="all of it in one line", description=CHECK
    )
    add_world(check, tool_names)
    explain = _command(
        questions, "explain", "tell what decides a call", json_help="each gate in one line", description=EXPLAIN
    )
    explain.usage = "neuroscript policy explain [OPTION ...] NAME [VALUE|key=value ...] [-- VALUE ...]"
    _add_tool_words(explain, tool_names, keys)


def _add_completion(commands: Any, *_: Completer | None) -> None:
    parser = _command(
        commands, "completion", "print what makes a shell complete words", json_help="the shell and its script"
    )
    action: Any = parser.add_argument("shell", metavar="SHELL", help=", ".join(SHELLS))
    action.completer = lambda **_: SHELLS


def _add_help(commands: Any, *_: Completer | None) -> None:
    parser = _command(commands, "help", "show this help, or that of a command", json_help="")
    action: Any = parser.add_argument("words", nargs="*", metavar="COMMAND", help="the command, such as call")
    action.completer = lambda **_: COMMANDS


OURS: Final[Mapping[str, Callable[[Any, Completer | None, Completer | None], None]]] = {
    "list": _add_list,
    "show": _add_show,
    "call": _add_call,
    "execute": _add_execute,
    "approve": _add_approve,
    "policy": _add_policy,
    "replay": _add_replay,
    "completion": _add_completion,
    "help": _add_help,
}
"""What adds the commands whose words are here, each called with the completers of words."""

OTHERS: Final[Mapping[str, str]] = {
    "run": "plans.options:add_run",
    "plan": "plans.options:add_plan",
    "audit": "audit.options:add_audit",
    "trace": "plans.trace:add_trace",
    "plugins": "plugins.options:add_inspection",
    "index": "plugins.options:add_index",
    "new": "plugins.publisher_options:add_new",
    "lint": "plugins.publisher_options:add_lint",
    "doctor": "doctor.command:add_doctor",
    "export": "tools.options:add_export",
    "stubs": "tools.options:add_stubs",
    "docs": "tools.options:add_docs",
    "ask": "chat.options:add_ask",
    "chat": "chat.options:add_chat",
    "models": "chat.models:add_models",
    "mcp": "mcp.options:add_mcp",
    "worker": "plans.durable_options:add_worker",
    "runs": "plans.durable_options:add_runs",
}
"""What adds the commands whose words have a room of their own; no room is loaded for the words of another."""
