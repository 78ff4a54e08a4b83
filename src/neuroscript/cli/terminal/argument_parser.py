"""An argparse parser that raises its errors, the options of every command, and suggestions for misspellings."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.io.text import quote_untrusted

TRACEBACK: Final = "--traceback"
"""The option that shows the Python traceback of a failure."""

MAX_MESSAGE_CHARS: Final = 200
"""Characters of a message that are shown, because a message may repeat arguments of the user."""

OTHER_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("describe", "info", "inspect"), "show"),
    **dict.fromkeys(("tools", "search", "find"), "list"),
    "invoke": "call",
    "version": "--version",
}
"""Command names of other tools, and their equivalents here."""


class HelpRequested(Exception):
    """The user asked for help; the message is the help text."""


class NoArguments(UsageError):
    """The command was called without arguments; the message is the help text."""


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises instead of printing and exiting."""

    def error(self, message: str) -> NoReturn:
        """Raise a `UsageError` with *message* and a reference to the help."""
        shortened = message if len(message) <= MAX_MESSAGE_CHARS else f"{message[:MAX_MESSAGE_CHARS]}…"
        raise UsageError(f"{shortened} (see {self.prog} --help)")

    def print_help(self, file: object = None) -> NoReturn:
        """Raise the help."""
        raise HelpRequested(self.format_help())

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Return the options, or raise a `UsageError` with the first unknown argument."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            option = next((word for word in unknown if word.startswith("-")), None)
            self.error(f"unexpected argument {unknown[0]}" if option is None else self.unknown_option(option))
        return found, []

    def unknown_option(self, word: str) -> str:
        """Return the message for an unknown option, without its value."""
        option = word.partition("=")[0]
        return f"unknown option {option}{near_option(option, self._option_string_actions)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise an error that names the nearest choice; argparse calls this for each value."""
        if action.choices is None or value in action.choices:
            return
        from neuroscript.io.near_names import did_you_mean

        choices = [str(each) for each in action.choices]
        if action.option_strings:
            raise argparse.ArgumentError(
                action, f"expected one of {', '.join(choices)}{did_you_mean(str(value), choices)}"
            )
        hint = did_you_mean(str(value), choices) or f"; choose from {', '.join(choices)}"
        what = str(action.metavar or action.dest).lower()
        raise argparse.ArgumentError(None, f"unknown {what} {value}{hint}")


def add_subparser(
    commands: Any, layout: Any, name: str, help: str, *, json_help: str = "", description: str = ""
) -> Any:
    """Add a subcommand and return its parser, which has the class of the parent parser.

    Args:
        commands: The return value of ``add_subparsers`` of the parent parser.
        layout: The formatter class of the help.
        help: One line in lower case that says what the command does; it also opens the description.
        json_help: The help of ``--json``; without it the command has no such option.
        description: Further paragraphs of the description.
    """
    parser = commands.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.\n\n{description}".strip(),
        formatter_class=layout,
        allow_abbrev=False,
    )
    if json_help:
        parser.add_argument("--json", action="store_true", help=json_help)
    parser.add_argument(
        TRACEBACK,
        action="store_true",
        default=argparse.SUPPRESS,
        help="show the Python traceback of each failure on stderr",
    )
    return parser


def seconds(text: str) -> float:
    """Return a string as a number of seconds above 0.

    Raises:
        argparse.ArgumentTypeError: It is not a finite number above 0.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("expected a number of seconds above 0")
    return number


def whole(text: str) -> int:
    """Return a string as an integer, 0 or more.

    Raises:
        argparse.ArgumentTypeError: It is not such a number.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError("expected a non-negative integer")
    return int(text)


def unknown_command(word: str, commands: Collection[str], todo: str = "call") -> UsageError:
    """Return the error for an unknown command.

    Args:
        todo: The command to suggest if *word* looks like the name of a tool.
    """
    name = quote_untrusted(word)
    if "." in word.strip(".") or "__" in word.strip("_"):
        return UsageError(
            f"{name} is not a command; to {todo} a tool: neuroscript {todo} {name} (see neuroscript --help)"
        )
    from neuroscript.io.near_names import did_you_mean

    other = OTHER_NAMES.get(word.lower())
    hint = did_you_mean(word, commands) if other is None else f"; did you mean {other}?"
    return UsageError(f"unknown command {name}{hint} (see neuroscript --help)")


def near_option(option: str, known: Iterable[str]) -> str:
    """Return a suggestion with the most similar known option, or ``""``; leading dashes are not compared.

    >>> near_option("--jsn", ["--json", "--help"])
    '; did you mean --json?'
    """
    from neuroscript.io.near_names import did_you_mean

    names = {each.lstrip("-"): each for each in known}
    return did_you_mean(option.lstrip("-"), names, names.__getitem__)
