"""Answers to requests for approval that are typed on a terminal."""

from __future__ import annotations

import ast
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest
from tests.approval.approval_cases import ASK, BEGIN, Desk, answered, request
from tests.terminals import Terminal, wait_until_asleep, wait_until_it_reads

from neuroscript import Approval, TerminalApprover

OTHERS = 'New arguments, all of them on one line, for example {"name": "value"}: '
NO_TERMINAL = Approval.reject("there is no terminal to ask for an approval")
ENDED = Approval.reject("there was no answer: the input ended before an answer was received")


def type_line(seen: Terminal, line: str) -> None:
    """Wait for a question, and answer it."""
    seen.see(ASK)
    seen.type(f"{line}\n")


# Answers


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y", Approval.approve()),
        (" Y \t", Approval.approve()),
        ("s", Approval.approve(for_session=True)),
        ("n", Approval.reject()),
        ("", Approval.reject()),
        ("   ", Approval.reject()),
        ("n because the file is in use", Approval.reject("the file is in use")),
        ("n try data/b.txt", Approval.reject("try data/b.txt")),
        ("N because \x1b[2J\u202ewhy", Approval.reject("\\x1b[2J\\u202ewhy")),
        ("x", Approval.stop()),
        ("x because it goes round in circles", Approval.stop("it goes round in circles")),
    ],
    ids=ascii,
)
def test_answer_is_one_letter(terminal: Any, line: str, expected: Approval) -> None:
    """Case and surrounding blanks do not matter; a rejection may include a reason."""
    seen = terminal()

    type_line(seen, line)

    assert expected == answered(seen)


def test_flow_is_approved_once_only(terminal: Any) -> None:
    """An answer for the session is neither offered nor accepted."""
    seen = terminal("ask(flows=('sends untrusted data from web.get (call 3) to outside',))")

    assert "y: yes, once   m: other arguments\r\nn: no, or" in seen.see(ASK)
    seen.type("s\n")
    assert seen.see(ASK).endswith(f"answer with y, m, n or x\r\n{ASK}")
    seen.type("y\n")

    assert Approval.approve() == answered(seen)


@pytest.mark.parametrize(
    "line", ["yes please", "y y", "yy", "s,y", "\u0443", "\uff59", "\ufeffy", "\x1b[200~y", "ok", "1", "true", "Yes!"]
)
def test_other_answers_are_asked_again(terminal: Any, line: str) -> None:
    """Whole words, letters of other scripts and trailing characters never permit a call."""
    seen = terminal()

    type_line(seen, line)
    assert seen.see(ASK).endswith(f"answer with y, s, m, n or x\r\n{ASK}")
    seen.type("n\n")

    assert Approval.reject() == answered(seen)


def test_three_invalid_answers_reject(terminal: Any) -> None:
    """The approver does not ask forever."""
    seen = terminal()

    for line in ("ja", "oui", "si"):
        type_line(seen, line)

    assert Approval.reject("no valid answer in 3 tries") == answered(seen)


# Changed arguments


def test_changed_arguments_are_typed_as_json(terminal: Any) -> None:
    """The user types all arguments by name; a line that is not an object is explained and asked for again."""
    seen = terminal()

    type_line(seen, "m")
    seen.see(OTHERS)
    seen.type('{"path": data}\n')
    assert "line 1, column 10 is not JSON\r\n" in seen.see(OTHERS)
    seen.type('["data/b.txt"]\n')
    assert "expected a JSON object\r\n" in seen.see(OTHERS)
    seen.type('{"path": "data/ü.txt", "force": true}\n')

    assert Approval.modify({"path": "data/ü.txt", "force": True}) == answered(seen)


@pytest.mark.parametrize(
    "line", ['{"a": 1, "a": 2}', '{"a": NaN}', '"text"', "null", "{", f'{{"a": "{"b" * 5000}"}}', "y"], ids=range(7)
)
def test_three_invalid_argument_lines_reject(terminal: Any, line: str) -> None:
    """Duplicate keys, invalid numbers, non-objects and lines longer than the terminal's limit are never guessed at."""
    seen = terminal()

    type_line(seen, "m")
    for _ in range(3):
        seen.see(OTHERS)
        seen.type(f"{line}\n")

    assert Approval.reject("no valid arguments in 3 tries") == answered(seen)


def test_empty_argument_line_rejects(terminal: Any) -> None:
    seen = terminal()

    type_line(seen, "m")
    seen.see(OTHERS)
    seen.type("\n")

    assert Approval.reject("no new arguments were entered") == answered(seen)


def test_secret_arguments_stay_unless_they_are_typed(terminal: Any) -> None:
    """The user does not see secret values, so they cannot be required to type them again."""
    arguments = {"path": "a", "token": "hunter2", "key": "k1"}
    seen = terminal(f"ask(arguments={arguments}, secrets=frozenset(('token', 'key')))")

    type_line(seen, "m")
    seen.see(OTHERS)
    seen.type('{"path": "b", "key": "k2"}\n')

    assert Approval.modify({"token": "hunter2", "key": "k2", "path": "b"}) == answered(seen)


# Type-ahead, end of input and interrupts

LATER = "print('ready', flush=True); signal.sigwait([signal.SIGUSR1]); ask()"


@pytest.mark.parametrize("ahead", ["y\n", "y\ny\ny\ny\n", "y", "\x04", "m\n{}\n", "y\n" * 1000], ids=range(6))
def test_type_ahead_is_not_an_answer(terminal: Any, ahead: str) -> None:
    """Whole lines, partial lines and the end of the input are discarded."""
    seen = terminal(LATER)
    seen.mute()
    seen.see("ready\r\n")
    os.write(seen.ours, ahead.encode())

    seen.child.send_signal(signal.SIGUSR1)
    type_line(seen, "n because this came later")

    assert Approval.reject("this came later") == answered(seen)


def test_type_ahead_before_a_repeated_question_is_not_an_answer(terminal: Any) -> None:
    """Of several pasted lines, only the first answers the question."""
    seen = terminal()
    seen.mute()

    type_line(seen, "what\ny\ny")
    type_line(seen, "m\n{}")
    seen.see(OTHERS)
    seen.type("what\n{}\n")
    seen.see(OTHERS)
    seen.type("\n")

    assert Approval.reject("no new arguments were entered") == answered(seen)


@pytest.mark.parametrize("keys", ["\x04", "y\x04\x04"], ids=["ctrl-d", "ctrl-d-in-a-line"])
@pytest.mark.parametrize("before", ["", "what\n", "m\n"], ids=ascii)
def test_end_of_input_rejects(terminal: Any, keys: str, before: str) -> None:
    """A letter without a newline is not an answer."""
    seen = terminal()

    seen.see(ASK)
    if before:
        seen.type(before)
        seen.see(OTHERS if before == "m\n" else ASK)
    seen.type(keys)

    assert ENDED == answered(seen)


def test_ctrl_c_interrupts_and_the_terminal_stays_usable(terminal: Any) -> None:
    """The next question can be asked afterwards."""
    seen = terminal("ask(); ask()")

    seen.see(ASK)
    seen.type("y\x03")
    assert "=> interrupted <=" in seen.see(ASK)
    seen.type("y\n")

    assert Approval.approve() == answered(seen)


AT_ONCE = """
answers = {}
def approve(tool):
    answers[tool] = approver(ApprovalRequest(**{**FIELDS, "tool": tool})).verdict
def prompt(tool):
    answers[tool] = ConsolePrompter().ask(f"Allow {tool}? [n]")
threads = [threading.Thread(target=each, args=(tool,)) for tool, each in (("a.one", approve), ("b.two", SECOND))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("=>", answers, "<=")
"""


@pytest.mark.parametrize("second", ["approve", "prompt"])
def test_one_question_at_a_time_is_shown_on_a_terminal(terminal: Any, second: str) -> None:
    """An answer can never apply to a question that another part of the process asked in between."""
    seen = terminal(AT_ONCE.replace("SECOND", second))
    requests = []

    for answer in ("y\n", "n\n"):
        requests += re.findall(r"Allow ([a-z.]+)\?", seen.see("[n] "))
        wait_until_it_reads(seen.child.pid)
        wait_until_asleep(seen.child.pid)
        assert ([], [], []) == select.select([seen.ours], [], [], 0)
        seen.type(answer)
    shown = ast.literal_eval(seen.see("<=\r\n").split("=> ")[1].removesuffix(" <=\r\n"))

    words = {"a.one": ("approve", "reject"), "b.two": {"approve": ("approve", "reject"), "prompt": ("y", "n")}[second]}
    assert ["a.one", "b.two"] == sorted(requests)
    assert {requests[0]: words[requests[0]][0], requests[1]: words[requests[1]][1]} == shown


# No terminal


def written(desk: Desk) -> bytes:
    """Return the output that reached the screen."""
    return os.read(desk.ours, 65536) if select.select([desk.ours], [], [], 0)[0] else b""


def test_both_ends_must_be_a_terminal(desk: Desk, tmp_path: Path) -> None:
    """Pipes, files, devices and custom streams are refused, and nothing is shown."""
    pipe, filling = os.pipe()
    os.write(filling, b"y\ny\n")
    (tmp_path / "yes").write_text("y\n")
    with os.fdopen(pipe) as piped, (tmp_path / "yes").open() as file, Path(os.devnull).open() as nothing:
        for stdin in (piped, file, nothing, io.StringIO("y\n")):
            assert NO_TERMINAL == TerminalApprover(stdin, desk.output)(request())
    with (tmp_path / "out").open("w") as file, os.fdopen(filling, "w") as piped:
        for output in (file, piped, io.StringIO()):
            assert NO_TERMINAL == TerminalApprover(desk.stdin, output)(request())
    assert b"" == (tmp_path / "out").read_bytes()
    assert b"" == written(desk)


def test_closed_or_missing_stream_rejects(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """This covers explicit streams, the standard streams, and a descriptor that was closed under its stream."""
    closed = io.StringIO()
    closed.close()
    ours, theirs = pty.openpty()
    orphan = os.fdopen(theirs, "r+b", buffering=0, closefd=False)
    os.close(theirs)
    os.close(ours)

    for stdin, output in ((closed, desk.output), (desk.stdin, closed), (orphan, desk.output), (desk.stdin, orphan)):
        assert NO_TERMINAL == TerminalApprover(stdin, output)(request())  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", None)
    assert NO_TERMINAL == TerminalApprover(None, desk.output)(request())
    monkeypatch.setattr(sys, "stderr", None)
    assert NO_TERMINAL == TerminalApprover(desk.stdin, None)(request())


@pytest.mark.parametrize("redirection", ["<&-", "2>&-", "</dev/null", "2>/dev/null", "<&- 2>&-"])
def test_process_without_a_terminal_rejects_at_once(redirection: str) -> None:
    """There is no traceback, even if the other streams are terminals."""
    ours, theirs = pty.openpty()
    os.write(ours, b"y\n")
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, f"{BEGIN}\nask()"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        timeout=60,
    )
    os.close(theirs)
    os.close(ours)

    assert (f"=> ['reject', '{NO_TERMINAL.reason}', None, False] <=\n", 0) == (done.stdout.decode(), done.returncode)


@pytest.mark.parametrize("while_it_waits", [False, True], ids=["before", "while-it-waits"])
def test_vanished_terminal_rejects(while_it_waits: bool) -> None:
    """The user closed the window, and no signal ended the process."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", f"{BEGIN}\n{LATER}"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    assert child.stdout is not None
    assert b"ready\n" == child.stdout.readline()
    if while_it_waits:
        child.send_signal(signal.SIGUSR1)
        while not select.select([ours], [], [], 60)[0] or b"[n] " not in os.read(ours, 65536):
            pass
        wait_until_it_reads(child.pid)
    os.close(ours)
    child.send_signal(signal.SIGUSR1)

    assert "=> ['reject', 'there " in child.communicate(timeout=60)[0].decode()
    assert 0 == child.returncode


def test_terminal_in_raw_mode_rejects(desk: Desk) -> None:
    """A full-screen program reads single keys, so its input must never answer a question."""
    settings = termios.tcgetattr(desk.stdin)
    settings[3] &= ~termios.ICANON
    termios.tcsetattr(desk.stdin, termios.TCSANOW, settings)
    os.write(desk.ours, b"y\n")

    answer = TerminalApprover(desk.stdin, desk.output)(request())

    assert Approval.reject("there was no answer: another program uses the terminal") == answer


def test_too_narrow_terminal_rejects(desk: Desk) -> None:
    """The terminal would wrap lines, so caller-supplied text could start a line of its own."""
    termios.tcsetwinsize(desk.stdin, (24, 39))

    answer = TerminalApprover(desk.stdin, desk.output)(request())

    assert Approval.reject("there was no answer: the terminal has fewer than 40 columns") == answer
    assert b"" == written(desk)
