"""Asking at a terminal whether a call may run: one question at a time, and whatever is no clear answer refuses.

Source: contract section 5; reliability.md T20 and part 4.6.
"""

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
from neuroscript.io.text import NotJSON, escaped, is_terminal, parsed, shown
from neuroscript.runtime.prompter import alone_on, encoding_of, noninteractive, typed, write_out

if sys.platform == "win32":
    import msvcrt
else:
    import termios

WIDEST: Final = 80
NARROWEST: Final = 40
"""In cells; on a narrower terminal the lines would be broken where what a caller wrote could pass for one of ours."""

TRIES: Final = 3
"""How often an answer may not be understood."""

ANSWERS: Final = """\
y: yes, once   s: yes, in this session   m: other arguments
n: no, or "n because ..." to say why     x: no, and stop the session
"""
AGAIN: Final = "answer with y, s, m, n or x\n"
NOBODY: Final = "nobody can be asked: no terminal is there"


class TerminalApprover:
    """Shows a call on a terminal and asks whether it may run; refuses by default, and whenever it can not ask.

    The answers: ``y`` this once, ``s`` whenever this session makes the same call, ``m`` with other arguments, ``n`` or
    nothing no, ``n because …`` no and why, ``x`` no and the session makes no further call. What was typed before the
    question stood there is no answer. Secret arguments are not shown.

    Args:
        stdin: Where answers come from, a terminal; None is ``sys.stdin`` at the time of the question.
        output: Where questions go, a terminal; None is ``sys.stderr`` at that time.
    """

    def __init__(self, stdin: TextIO | None = None, output: TextIO | None = None) -> None:
        require("TerminalApprover", stdin=(stdin, optional(INPUT)), output=(output, optional(OUTPUT)))
        self._stdin = stdin
        self._output = output

    def __call__(self, request: ApprovalRequest) -> Approval:
        """Return the answer of whoever sits there, or a rejection that says why there is none.

        Raises:
            KeyboardInterrupt: Ctrl-C.
        """
        stdin = sys.stdin if self._stdin is None else self._stdin
        output = sys.stderr if self._output is None else self._output
        if not is_terminal(stdin) or not is_terminal(output):
            return Approval.reject(NOBODY)
        with alone_on(stdin):
            try:
                return _asked(_Talk(stdin, output), request)
            except PromptError as error:
                return Approval.reject(f"nobody has answered: {error}")
            except (OSError, ValueError):  # it went away, or was closed, before it was asked
                return Approval.reject(NOBODY)


@attrs.frozen
class _Talk:
    """A terminal on which one question stands."""

    stdin: TextIO
    output: TextIO

    @property
    def columns(self) -> int:
        """How many cells its lines have, as far as they are used."""
        columns = os.get_terminal_size(self.output.fileno()).columns or WIDEST
        if columns < NARROWEST:
            raise noninteractive(f"the terminal has fewer than {NARROWEST} columns")
        return min(columns, WIDEST)

    def answer(self, text: str) -> str:
        """Write *text*, forget what was typed before, and return the next line without the blanks around it."""
        write_out(text, self.output)
        _forget(self.stdin.fileno())
        line = typed(self.stdin)
        if not line.endswith(b"\n"):
            raise PromptError("the input ended before an answer came", code="prompt.eof")
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
            raise noninteractive("the terminal is not there any more") from None
        if not waits_for_lines:
            raise noninteractive("another program has the terminal")


def _asked(talk: _Talk, request: ApprovalRequest) -> Approval:
    ask = f"Allow {shown(request.tool)}? [n] "
    text = f"{card(request, talk.columns, encoding_of(talk.output))}{ANSWERS}{ask}"
    for _ in range(TRIES):
        word, _, rest = talk.answer(text).partition(" ")
        match word.lower(), rest:
            case "y", "":
                return Approval.approve()
            case "s", "":
                return Approval.approve(for_session=True)
            case "m", "":
                return _modified(talk, request)
            case "n" | "", _:
                return Approval.reject(_reason(rest))
            case "x", _:
                return Approval.stop(_reason(rest))
        text = f"{AGAIN}{ask}"
    return Approval.reject(f"no answer was understood in {TRIES} tries")


def _reason(rest: str) -> str:
    return escaped(rest.strip().removeprefix("because").strip())


def _modified(talk: _Talk, request: ApprovalRequest) -> Approval:
    """Take other arguments, all by name in one line of JSON; secret ones that are not among them stay as they are."""
    text = ask = 'Other arguments, all of them in one line, such as {"name": "value"}: '
    for _ in range(TRIES):
        line = talk.answer(text)
        if not line:
            return Approval.reject("no other arguments were given")
        arguments, fault = _object(line)
        if not fault:
            kept = {name: value for name, value in request.arguments.items() if name in request.secrets}
            return Approval.modify({**kept, **arguments})
        text = f"{fault}\n{ask}"
    return Approval.reject(f"no other arguments were understood in {TRIES} tries")


def _object(line: str) -> tuple[Mapping[str, Any], str]:
    """Return what a line of JSON says, and what is wrong with it, or ``""``."""
    try:
        arguments = parsed(line)
    except NotJSON as error:
        return {}, error.hint
    return (arguments, "") if type(arguments) is dict else ({}, "that is no JSON object")
