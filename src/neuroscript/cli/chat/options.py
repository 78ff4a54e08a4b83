"""The words of ``neuroscript ask`` and ``chat``: which model, which of the tools it may call, and how far it may go."""

from __future__ import annotations

import argparse
from typing import Any, Final

from neuroscript.cli.chat.models import APIS, KEYS, MODEL, address
from neuroscript.cli.env.options import add_keeping, add_world
from neuroscript.cli.terminal.arguments import add_subparser, seconds

ASK: Final = f"""\
The answer goes to the standard output, as it comes; calls, what came of them and retries are told in
short lines on the other one. The model may call no tool but those of --tools. Without PROMPT, or for
-, the prompt is read from the standard input. Exits 0 when there is an answer, whatever became of the
calls on the way.

{KEYS}"""

CHAT: Final = f"""\
All turns share one session: variables, handles and approvals last until the end. A line that begins
with / is a command, see /help; // begins a prompt with a /. Ctrl-C ends the present turn, Ctrl-D the
chat. Where the standard input is no terminal, each of its lines is a prompt or a command, and the
exit code is that of the first turn that failed.

{KEYS}"""


def add_ask(commands: Any, layout: Any) -> None:
    """Add ``ask`` to the *commands* of the parser."""
    json_help = "all of the conversation in one line, also where it failed"
    parser = add_subparser(commands, layout, "ask", "ask a model", json_help=json_help, description=ASK)
    _add_talk(parser)
    parser.add_argument(
        "prompt", nargs="?", metavar="PROMPT", type=clean, help="what the model is asked, as one word; - is stdin"
    )


def add_chat(commands: Any, layout: Any) -> None:
    """Add ``chat`` to the *commands* of the parser."""
    json_help = "all of the conversation in one line, at the end, and nothing before"
    _add_talk(add_subparser(commands, layout, "chat", "talk with a model", json_help=json_help, description=CHAT))


def _add_talk(parser: Any) -> None:
    option = parser.add_argument
    option("--tools", metavar="PATTERN", action="append", default=[], help="let the model call these, as in 'math.*'")
    option(
        "--model", metavar="NAME", type=clean, help=f"which one; else that of {MODEL}, else the default model of llm"
    )
    option("--base-url", metavar="URL", type=address, help="the address of a server that follows an API")
    option("--api", choices=APIS, default="", help=f"what is spoken there: {', '.join(APIS)}; else the first")
    option("--system", metavar="TEXT", type=clean, default="", help="how the model is to answer")
    option("--answer", metavar="TYPE", type=answer, help="take no answer but one of this type, as in int or []string")
    option("--turns", metavar="N", type=count, default=16, help="how many replies are asked for, at most; else 16")
    option("--calls", metavar="N", type=count, default=64, help="how many calls are made, at most; else 64")
    option("--timeout", metavar="S", type=seconds, help="how many seconds an answer may take, with all its calls")
    option("--no-stream", action="store_true", help="ask for the whole reply, not for its pieces")
    option("--transcript", metavar="FILE", help="write down what was said and done, also where it failed")
    option("--strict", action="store_true", help="take exact types alone, and repair nothing")
    add_world(parser, None)
    add_keeping(parser)


def clean(text: str) -> str:
    """Return words of a user as Unicode; what is none in them is replaced.

    >>> clean("caf\\udce9")
    'caf\ufffd\ufffd\ufffd'
    """
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def answer(text: str) -> str:
    """Return the type of an answer.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    from neuroscript.coercion.types import ArgType

    if text not in [each.value for each in ArgType]:
        raise argparse.ArgumentTypeError("expected the type of an argument, such as int or []string")
    return text


def count(text: str) -> int:
    """Return a whole number above 0.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError("expected a whole number above 0")
    return int(text)
