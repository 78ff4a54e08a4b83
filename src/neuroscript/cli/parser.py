"""The words of the command: subcommands, options, and what is left for a tool.

The words behind ``call NAME`` belong to the tool, so argparse never sees them: ``-1.5e3`` is a value, not an option.

Source: issue "The contract runs", command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final, NoReturn

from neuroscript.cli.exits import UsageError
from neuroscript.display import shown
from neuroscript.names import near

COMMANDS: Final = ("list", "show", "call", "execute", "completion")
SHELLS: Final = ("bash", "zsh", "fish")
FLAGS: Final = frozenset({"--json", "--strict", "--trusted", "-h", "--help"})
INPUT: Final = "--input-json"
VALUED: Final = frozenset({INPUT, "-p", "--plugin", "--allow", "--deny", "--grant", "--sandbox"})
NAME: Final = "NAME"
LONGEST: Final = 200
"""How many characters of argparse's sentences are shown; they repeat words of the caller."""

EXIT_CODES: Final = """\
exit codes:
  0 ok   1 the tool failed   2 usage, no such tool, unreadable input   3 the arguments do not fit
  4 refused by policy or limit   5 internal, or the output was cut off   124 timeout   130 interrupted
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

Completer = Callable[..., Iterable[str]]


class HelpAsked(Exception):
    """Somebody asked for help; the text is the help."""


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises where others print and exit."""

    def error(self, message: str) -> NoReturn:
        """Raise a `UsageError` with *message* and where to read on."""
        cut = message if len(message) <= LONGEST else f"{message[:LONGEST]}…"
        raise UsageError(f"{cut} (see {self.prog} --help)")

    def print_help(self, file: object = None) -> NoReturn:
        """Raise the help."""
        raise HelpAsked(self.format_help())


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Return the command, its options, and for ``call`` also ``words`` and ``values``.

    Raises:
        UsageError: The words are not such as the command can be given.
        HelpAsked: They ask for help.
    """
    if not argv or argv[0] != "call":
        return _without_tool_words(argv)
    options, words, values = split(argv[1:])
    namespace = build("call").parse_args(["call", NAME, *options])
    if not words and not values:
        raise UsageError("the name of a tool is missing (see neuroscript call --help)")
    namespace.name = (words or values)[0]
    namespace.words, namespace.values = (words[1:], values) if words else ([], values[1:])
    return namespace


def _without_tool_words(argv: Sequence[str]) -> argparse.Namespace:
    if argv and not argv[0].startswith("-") and argv[0] not in COMMANDS:
        alike = near(argv[0], COMMANDS)
        hint = f"; did you mean {' or '.join(alike)}?" if alike else ""
        raise UsageError(f"no command is called {shown(argv[0])}{hint} (see neuroscript --help)")
    namespace = build(argv[0] if argv else "").parse_args(argv)
    if namespace.command is None and not namespace.version:
        raise UsageError(f"a command is missing: {', '.join(COMMANDS)} (see neuroscript --help)")
    return namespace


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
        elif word in FLAGS or (word.startswith("--") and word.partition("=")[0] in VALUED):
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
        match name:
            case "list":
                _add_list(commands)
            case "show":
                _add_show(commands, tool_names)
            case "call":
                _add_call(commands, tool_names, keys)
            case "execute":
                _add_execute(commands)
            case _:
                _add_completion(commands)
    return parser


def _layout(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=20)


def _command(commands: Any, name: str, help: str, *, json_help: str, description: str = "") -> Parser:
    parser: Parser = commands.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.\n\n{description}".strip(),
        formatter_class=_layout,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help=json_help)
    return parser


def _add_list(commands: Any) -> None:
    parser = _command(commands, "list", "list the tools", json_help="an array of names, signatures and descriptions")
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="names to list, as in 'math.*'; * crosses dots")
    _add_plugins(parser)


def _add_show(commands: Any, tool_names: Completer | None) -> None:
    parser = _command(commands, "show", "show all of one tool", json_help="its spec and its policy")
    _add_plugins(parser)
    _add_name(parser, tool_names)


def _add_name(parser: Parser, tool_names: Completer | None) -> None:
    action: Any = parser.add_argument("name", metavar=NAME, help="a tool, in any spelling: math.add, math__add")
    action.completer = tool_names


def _add_call(commands: Any, tool_names: Completer | None, keys: Completer | None) -> None:
    parser = _command(
        commands, "call", "call a tool", json_help="the whole result, or the error, in one line", description=CALL
    )
    parser.usage = "neuroscript call [OPTION ...] NAME [VALUE|key=value ...] [-- VALUE ...]"
    parser.add_argument("--strict", action="store_true", help="take exact types alone, and repair nothing")
    parser.add_argument(
        INPUT, metavar="FILE", help="take the arguments from a file, a JSON object or array; - is stdin"
    )
    _add_world(parser)
    _add_name(parser, tool_names)
    action: Any = parser.add_argument("words", nargs="*", metavar="VALUE|key=value", help="the arguments of the tool")
    action.completer = keys


def _add_execute(commands: Any) -> None:
    parser = _command(
        commands,
        "execute",
        "run tool calls, one in each line",
        json_help="one result in each line (as without it)",
        description=EXECUTE,
    )
    parser.add_argument("--strict", action="store_true", help="take exact types alone, and repair nothing")
    parser.add_argument("--report", action="store_true", help="show people what became of each call, and exit 0")
    _add_world(parser)
    parser.add_argument("file", metavar="FILE", help="JSON lines; - is stdin")


def _add_plugins(parser: Parser) -> None:
    parser.add_argument(
        "-p", "--plugin", metavar="FILE", action="append", default=[], help="add the tools of a file of Python"
    )


def _add_world(parser: Parser) -> None:
    """Add what a host would say in code: further tools, what they may do, and where."""
    _add_plugins(parser)
    for name, metavar, help in (
        ("--allow", "PATTERN", "let only these tools run, as in 'math.*'"),
        ("--deny", "PATTERN", "let these tools not run; it beats --allow"),
        ("--grant", "GRANT", "let tools do this, as in fs:read:inbox/**"),
    ):
        parser.add_argument(name, metavar=metavar, action="append", default=[], help=help)
    parser.add_argument("--trusted", action="store_true", help="let tools run that require trust")
    parser.add_argument("--sandbox", metavar="DIR", help="the directory that tools see; else one of yours, apart")


def _add_completion(commands: Any) -> None:
    parser = _command(
        commands, "completion", "print what makes a shell complete words", json_help="the shell and its script"
    )
    action: Any = parser.add_argument("shell", metavar="SHELL", help=", ".join(SHELLS))
    action.completer = lambda **_: SHELLS
