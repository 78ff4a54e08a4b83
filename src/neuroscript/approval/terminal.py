"""Approval at a terminal: one prompt at a time; anything but a clear yes refuses the call."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO

import attrs

from neuroscript.approval.card import card
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.coercion.parameters import INPUT, OUTPUT, optional, require
from neuroscript.errors import PromptError
from neuroscript.io.text import NotJSON, escape, is_terminal, parse_json, quote_untrusted
from neuroscript.runtime.prompter import encoding_of, noninteractive, read_typed_line, terminal_lock, write_out

if sys.platform == "win32":
    import msvcrt
else:
    import termios

MAX_WIDTH_CELLS: Final = 80
MIN_WIDTH_CELLS: Final = 40
"""In cells; a narrower terminal would break lines so that text of a caller could imitate the prompt."""

MAX_ATTEMPTS: Final = 3
"""Maximum number of invalid answers."""

ANSWERS: Final = """\
y: yes, once   s: yes, in this session   m: other arguments
n: no, or "n because ..." to say why     x: no, and stop the session
"""
RETRY_PROMPT: Final = "answer with y, s, m, n or x\n"
FOR_SESSION: Final = ("s: yes, in this session   ", "s, ")
"""The parts about the session, which are left out where an approval is for one call alone."""
NO_TERMINAL: Final = "there is no terminal to ask for an approval"


class TerminalApprover:
    """Shows a call on a terminal and asks whether it may run. It refuses by default, and if it cannot ask.

    The answers: ``y`` approves this call once, ``s`` approves the same call for the whole session, ``m`` changes the
    arguments, ``n`` or an empty line refuses the call, ``n because …`` refuses it with a reason, and ``x`` refuses it
    and every further call of the session. ``s`` is not offered for a call with `ApprovalRequest.flows`. Type-ahead is
    discarded. Secret arguments are not shown.

    Args:
        stdin: A terminal for answers; None means ``sys.stdin`` at the time of the prompt.
        output: A terminal for prompts; None means ``sys.stderr`` at that time.
    """

    def __init__(self, stdin: TextIO | None = None, output: TextIO | None = None) -> None:
        require("TerminalApprover", stdin=(stdin, optional(INPUT)), output=(output, optional(OUTPUT)))
        self._stdin = stdin
        self._output = output

    def __call__(self, request: ApprovalRequest) -> Approval:
        """Return the user's answer, or a rejection with the reason if there is no user to answer.

        Raises:
            KeyboardInterrupt: The user pressed Ctrl-C.
        """
        stdin = sys.stdin if self._stdin is None else self._stdin
        output = sys.stderr if self._output is None else self._output
        if not is_terminal(stdin) or not is_terminal(output):
            return Approval.reject(NO_TERMINAL)
        with terminal_lock(stdin):
            try:
                return _ask(_Terminal(stdin, output), request)
            except PromptError as error:
                return Approval.reject(f"there was no answer: {error}")
            except (OSError, ValueError):  # the terminal was closed before the prompt
                return Approval.reject(NO_TERMINAL)


@attrs.frozen
class _Terminal:
    """A terminal that shows one prompt."""

    stdin: TextIO
    output: TextIO

    @property
    def columns(self) -> int:
        """The number of cells used on its lines."""
        columns = os.get_terminal_size(self.output.fileno()).columns or MAX_WIDTH_CELLS
        if columns < MIN_WIDTH_CELLS:
            raise noninteractive(f"the terminal has fewer than {MIN_WIDTH_CELLS} columns")
        return min(columns, MAX_WIDTH_CELLS)

    def answer(self, text: str) -> str:
        """Write *text*, discard type-ahead, and return the next line without surrounding spaces."""
        write_out(text, self.output)
        _forget(self.stdin.fileno())
        line = read_typed_line(self.stdin)
        if not line.endswith(b"\n"):
            raise PromptError("the input ended before an answer was received", code="prompt.eof")
        return line.decode(encoding_of(self.stdin), "replace").strip()


if sys.platform == "win32":

    def _forget(descriptor: int) -> None:
        while msvcrt.kbhit():
            msvcrt.getwch()

else:

    def _forget(descriptor: int) -> None:
        """Drop what was typed so far, and refuse a terminal that gives single keys: a program draws on it."""
        try:
            termios.tcflush(descriptor, termios.TCIFLUSH)
            waits_for_lines = termios.tcgetattr(descriptor)[3] & termios.ICANON
        except termios.error:
            raise noninteractive("the terminal is gone") from None
        if not waits_for_lines:
            raise noninteractive("another program uses the terminal")


def _ask(talk: _Terminal, request: ApprovalRequest) -> Approval:
    ask = f"Allow {quote_untrusted(request.tool)}? [n] "
    answers, retry = ANSWERS, RETRY_PROMPT
    if request.flows:
        answers, retry = (text.replace(part, "") for text, part in zip((answers, retry), FOR_SESSION, strict=True))
    text = f"{card(request, talk.columns, encoding_of(talk.output))}{answers}{ask}"
    for _ in range(MAX_ATTEMPTS):
        word, _, rest = talk.answer(text).partition(" ")
        match word.lower(), rest:
            case "y", "":
                return Approval.approve()
            case "s", "" if not request.flows:
                return Approval.approve(for_session=True)
            case "m", "":
                return _ask_arguments(talk, request)
            case "n" | "", _:
                return Approval.reject(_reason(rest))
            case "x", _:
                return Approval.stop(_reason(rest))
        text = f"{retry}{ask}"
    return Approval.reject(f"no valid answer in {MAX_ATTEMPTS} tries")


def _reason(rest: str) -> str:
    return escape(rest.strip().removeprefix("because").strip())


def _ask_arguments(talk: _Terminal, request: ApprovalRequest) -> Approval:
    """Ask for new arguments, all by name on one line of JSON; secret ones that are left out stay unchanged."""
    text = ask = 'New arguments, all of them on one line, for example {"name": "value"}: '
    for _ in range(MAX_ATTEMPTS):
        line = talk.answer(text)
        if not line:
            return Approval.reject("no new arguments were entered")
        arguments, fault = _object(line)
        if not fault:
            secret_arguments = {name: value for name, value in request.arguments.items() if name in request.secrets}
            return Approval.modify({**secret_arguments, **arguments})
        text = f"{fault}\n{ask}"
    return Approval.reject(f"no valid arguments in {MAX_ATTEMPTS} tries")


def _object(line: str) -> tuple[Mapping[str, Any], str]:
    """Return the object that a line of JSON contains, and what is wrong with it, or ``""``."""
    try:
        arguments = parse_json(line)
    except NotJSON as error:
        return {}, error.hint
    return (arguments, "") if type(arguments) is dict else ({}, "expected a JSON object")
