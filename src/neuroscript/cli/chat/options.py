"""Options of ``neuroscript ask`` and ``neuroscript chat``."""

from __future__ import annotations

import argparse
from typing import Any, Final

from neuroscript.cli.chat.models import APIS, KEYS, MODEL, address
from neuroscript.cli.env.options import add_environment, add_recording
from neuroscript.cli.terminal.argument_parser import add_subparser, seconds, whole

ASK: Final = f"""\
The answer is printed to stdout as it arrives. Tool calls, their results and retries are printed to
stderr in short lines. The model may call only the tools of --tools. Without PROMPT, or with -, the
prompt is read from stdin. Exits 0 if there is an answer, even if tool calls failed.

{KEYS}"""

CHAT: Final = f"""\
All turns share one session: variables, handles and approvals last until the chat ends. A line that
begins with / is a command (see /help); write // to begin a prompt with /. Ctrl-C interrupts the current
turn, Ctrl-D ends the chat. If stdin is not a terminal, each line is a prompt or a command, and the exit
code is that of the first turn that failed.

{KEYS}"""


def add_ask(commands: Any, layout: Any) -> None:
    """Add ``ask`` to the *commands* of the parser."""
    json_help = "print the whole conversation as one line of JSON, even if it fails"
    parser = add_subparser(commands, layout, "ask", "send a prompt to a model", json_help=json_help, description=ASK)
    _add_talk(parser)
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", type=clean, help="the prompt, in quotes; - is stdin")


def add_chat(commands: Any, layout: Any) -> None:
    """Add ``chat`` to the *commands* of the parser."""
    json_help = "print only the whole conversation as one line of JSON at the end"
    _add_talk(add_subparser(commands, layout, "chat", "chat with a model", json_help=json_help, description=CHAT))


def _add_talk(parser: Any) -> None:
    option = parser.add_argument
    option(
        "--tools",
        metavar="PATTERN",
        action="append",
        default=[],
        help="let the model call matching tools, such as 'math.*'; default: none",
    )
    option("--model", metavar="NAME", type=clean, help=f"the model; default: {MODEL}, then the default model of llm")
    option("--base-url", metavar="URL", type=address, help="base URL of a model server")
    option("--api", choices=APIS, default="", help=f"API of the model server: {', '.join(APIS)}; default: the first")
    option("--system", metavar="TEXT", type=clean, default="", help="the system prompt")
    option("--answer-type", metavar="TYPE", type=answer, help="require an answer of this type, such as list[int]")
    option("--max-turns", metavar="N", type=count, default=16, help="maximum replies of the model; default 16")
    option("--max-calls", metavar="N", type=count, default=64, help="maximum tool calls; default 64")
    option("--search-above", metavar="N", type=whole, help="if there are more tools, let the model search for them")
    option("--timeout", metavar="S", type=seconds, help="time limit of an answer with all its calls, in seconds")
    option("--no-stream", action="store_true", help="request whole replies instead of a stream")
    option("--transcript", metavar="FILE", help="write the transcript to a file, even if the command fails")
    option("--strict", action="store_true", help="accept only exact types; convert nothing")
    add_environment(parser, None)
    add_recording(parser)


def clean(text: str) -> str:
    """Return an argument as valid Unicode, with undecodable bytes replaced.

    >>> clean("caf\\udce9")
    'caf\ufffd\ufffd\ufffd'
    """
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def answer(text: str) -> Any:
    """Return the type that *text* describes.

    Raises:
        argparse.ArgumentTypeError: It describes none.
    """
    from neuroscript.cli.chat.answer_types import answer_type

    return answer_type(text)


def count(text: str) -> int:
    """Return a string as an integer above 0.

    Raises:
        argparse.ArgumentTypeError: It is not such a number.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError("expected a positive integer")
    return int(text)
