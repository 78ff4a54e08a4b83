"""Approval of calls on real terminals, without a terminal, and in files that are answered later."""

from __future__ import annotations

import ast
import datetime
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import unicodedata
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.terminals import Terminal, wait_until_asleep, wait_until_it_reads

from neuroscript import Approval, ApprovalRequest, FileApprover, Handle, PendingApproval, SpecError, TerminalApprover
from neuroscript.approval.card import LABEL_CELLS, MAX_NEEDS, card

FIELDS: dict[str, Any] = {
    "tool": "fs.delete",
    "description": "Delete a file of the sandbox.",
    "arguments": {"path": "data/a.txt"},
    "secrets": frozenset(),
    "needs": ("fs:delete:data/a.txt",),
    "effects": ("deletes",),
    "session": "alice",
    "depth": 1,
    "above": (),
    "fingerprint": "1" * 64,
    "policy": "2" * 64,
    "digest": "3" * 64,
}
ASK = "Allow fs.delete? [n] "
OTHERS = 'New arguments, all of them on one line, for example {"name": "value"}: '
NOBODY = Approval.reject("there is no terminal to ask for an approval")
ENDED = Approval.reject("there was no answer: the input ended before an answer was received")

BEGIN = f"""
import json, os, signal, sys, threading
from neuroscript import Approval, ApprovalRequest, ConsolePrompter, TerminalApprover

FIELDS = {FIELDS!r}
approver = TerminalApprover()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

def ask(**fields):
    try:
        answer = approver(ApprovalRequest(**{{**FIELDS, **fields}}))
    except KeyboardInterrupt:
        print("=> interrupted <=", flush=True)
    else:
        told = [answer.verdict, answer.reason, answer.arguments, answer.for_session]
        print("=>", ascii(told), "<=", flush=True)
"""


def request(**fields: Any) -> ApprovalRequest:
    """Return the standard request with some fields changed."""
    return ApprovalRequest(**{**FIELDS, **fields})


@pytest.fixture
def terminal() -> Iterator[Callable[[str], Terminal]]:
    """Run the code of a process in a terminal."""
    terminals: list[Terminal] = []

    def started(code: str = "ask()") -> Terminal:
        terminals.append(Terminal(f"{BEGIN}\n{code}"))
        return terminals[-1]

    yield started
    for each in terminals:
        each.close()


def answered(seen: Terminal) -> Approval:
    """Return the approver's decision for an answer."""
    told = re.search(r"=> (.*) <=", seen.see("<=\r\n"))
    assert told is not None
    verdict, reason, arguments, for_session = ast.literal_eval(told[1])
    return Approval(verdict, reason, arguments, for_session)


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
told = {}
def approve(tool):
    told[tool] = approver(ApprovalRequest(**{**FIELDS, "tool": tool})).verdict
def prompt(tool):
    told[tool] = ConsolePrompter().ask(f"Allow {tool}? [n]")
threads = [threading.Thread(target=each, args=(tool,)) for tool, each in (("a.one", approve), ("b.two", SECOND))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("=>", told, "<=")
"""


@pytest.mark.parametrize("second", ["approve", "prompt"])
def test_one_question_at_a_time_is_shown_on_a_terminal(terminal: Any, second: str) -> None:
    """An answer can never apply to a question that another part of the process asked in between."""
    seen = terminal(AT_ONCE.replace("SECOND", second))
    asked = []

    for answer in ("y\n", "n\n"):
        asked += re.findall(r"Allow ([a-z.]+)\?", seen.see("[n] "))
        wait_until_it_reads(seen.child.pid)
        wait_until_asleep(seen.child.pid)
        assert ([], [], []) == select.select([seen.ours], [], [], 0)
        seen.type(answer)
    told = ast.literal_eval(seen.see("<=\r\n").split("=> ")[1].removesuffix(" <=\r\n"))

    words = {"a.one": ("approve", "reject"), "b.two": {"approve": ("approve", "reject"), "prompt": ("y", "n")}[second]}
    assert ["a.one", "b.two"] == sorted(asked)
    assert {asked[0]: words[asked[0]][0], asked[1]: words[asked[1]][1]} == told


# No terminal


@attrs.frozen
class Desk:
    """The two ends of a terminal in this process: one for approvers, one for the user."""

    ours: int
    stdin: io.TextIOWrapper
    output: io.TextIOWrapper


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A terminal at which nothing is typed."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r") as stdin, os.fdopen(os.dup(theirs), "w") as output:
        yield Desk(ours, stdin, output)
    os.close(ours)


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
            assert NOBODY == TerminalApprover(stdin, desk.output)(request())
    with (tmp_path / "out").open("w") as file, os.fdopen(filling, "w") as piped:
        for output in (file, piped, io.StringIO()):
            assert NOBODY == TerminalApprover(desk.stdin, output)(request())
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
        assert NOBODY == TerminalApprover(stdin, output)(request())  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stdin", None)
    assert NOBODY == TerminalApprover(None, desk.output)(request())
    monkeypatch.setattr(sys, "stderr", None)
    assert NOBODY == TerminalApprover(desk.stdin, None)(request())


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

    assert (f"=> ['reject', '{NOBODY.reason}', None, False] <=\n", 0) == (done.stdout.decode(), done.returncode)


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


# What is shown


def test_approval_card_shows_the_whole_call() -> None:
    """It lists the tool, its description, needs, effects, caller and arguments by name."""
    arguments = {
        "path": "data/a.txt",
        "token": "hunter2",
        "tags": ["a", None, 1.5],
        "sizes": {1: True},
        "raw": b"\x00y",
        "when": [datetime.datetime(2025, 1, 2)],
        "vector": array("f", [0.5]),
        "text": "x" * 1000,
    }
    shown = card(
        request(
            description="Delete a file. It does not come back once that has been done, so be sure that it is the one.",
            arguments=arguments,
            secrets=frozenset({"token"}),
            needs=("fs:delete:data/a.txt", "net:write:hunter2.example.com"),
            effects=("deletes", "net"),
            above=("plan.step", "plan.run"),
        ),
        80,
    )

    rows = [f"           : {'x' * 66}"] * 5
    assert shown.splitlines() == [
        "-" * 79,
        "tool:      fs.delete",
        "about:     | Delete a file. It does not come back once that has been done, so b",
        "           : e sure that it is the one.",
        "needs:     | fs:delete:data/a.txt",
        "           | net:write:[secret]",
        "effects:   deletes, net",
        "called by: plan.step < plan.run",
        'arguments: | path = "data/a.txt"',
        "           | token = [secret]",
        '           | tags = ["a", null, 1.5]',
        "           | sizes = {1: True}",
        "           | raw = b'\\x00y'",
        "           | when = [datetime.datetime(2025, 1, 2, 0, 0)]",
        "           | vector = array('f', [0.5])",
        f'           | text = "{"x" * 58}',
        *rows,
        "           (cut; 1009 characters in all)",
    ]


def test_approval_card_of_a_minimal_call() -> None:
    """It says that there are no arguments or effects, and counts the needs that it leaves out."""
    needs = tuple(f"fs:read:{number}" for number in range(MAX_NEEDS + 3))

    lines = card(request(description="", arguments={}, effects=(), needs=needs), 80).splitlines()

    assert ["tool:      fs.delete", "needs:     | fs:read:0"] == lines[1:3]
    assert [f"           | fs:read:{MAX_NEEDS - 1}", "           (and 3 more)"] == lines[MAX_NEEDS + 1 : MAX_NEEDS + 3]
    assert ["effects:   none", "arguments: none"] == lines[MAX_NEEDS + 3 :]


@pytest.mark.parametrize(
    ("secret", "need", "expected"),
    [
        ("Hunter2", "env:read:HUNTER2", "env:read:[secret]"),
        (4711, "net:read:a.com:4711", "net:read:[secret]"),
        (["a"], "fs:read:b", "fs:read:[secret]"),
        ("", "fs:read:b", "fs:read:b"),
        (None, "fs:read:b", "fs:read:b"),
        (True, "fs:read:True", "fs:read:True"),
        ("hunter2", "fs:read:b", "fs:read:b"),
        ("read", "fs:read", "fs:read:[secret]"),
    ],
)
def test_need_with_a_secret_is_masked(secret: Any, need: str, expected: str) -> None:
    """A secret that is not a string can appear there in any form."""
    shown = card(request(arguments={"key": secret}, secrets=frozenset({"key"}), needs=(need,)), 80)

    assert f"needs:     | {expected}\n" in shown
    assert "           | key = [secret]\n" in shown or "arguments: | key = [secret]\n" in shown


def test_terminal_shows_no_secret(terminal: Any) -> None:
    """A typed secret is hidden as well."""
    seen = terminal("ask(arguments={'token': 'hunter2'}, secrets=frozenset({'token'}), needs=('env:read:hunter2',))")

    screen = seen.see(ASK)
    seen.type("n\n")
    answered(seen)

    assert "hunter2" not in screen
    assert "token = [secret]" in screen


SPOOFS = [
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b[1A\x1b[2Kneeds:     | nothing",
    "\x1b[8mhidden\x1b[0m",
    "\x1b[?1049h",
    "\x1bc",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1bP$q\x1b\\",
    "\x9b2J",
    "\x9d0;title\x9c",
    "\rtool:      io.print",
    "\ntool:      io.print",
    "\r\nAllow io.print? [n] y",
    "\x0b\x0c",
    "\b" * 40 + "approved",
    "\x7f\x7f",
    "\x00nul",
    "\x0e\x0f",
    "\x05",
    "a\u202etxt.exe",
    "\u202d\u2066\u2067\u2068\u2069\u202c",
    "\u200e\u200f\u061c",
    "pay\u200bpal",
    "a\u200c\u200db\u2060\ufeff",
    "soft\u00adhyphen",
    "\u2028tool: io.print\u2029",
    "\u0085next line",
    "\U000e0041\U000e007f",
    "\ufe0e\ufe0f\U000e0100",
    "\u115f\u1160\u3164\uffa0",
    "\u2800" * 90 + "approved",
    "\u034f\u17b4\u180b",
    "Z" + "\u0300\u0301\u0302\u0303" * 30,
    "\u20dd\u0489",
    "\ud800\udfff",
    "\ue000\U000f0000",
    "\u00a0\u3000\u2003wide blanks",
    "x" * 66 + "tool:      io.print" + " " * 60 + "approved by the host",
    "名" * 200 + "tool: io.print",
    "=> ['approve', '', None, False] <=\nAllow fs.delete? [n] y\n=> approved",
    "(cut; 4 characters in all)\n(and 3 more)",
    "| path = 'other'\n: more",
    "😀" * 100 + "\U0001f1e9\U0001f1ea" * 40,
    "e\u0301 שלום नमस्ते",
    "A" * 100_000,
]
"""Caller- or author-supplied strings that try to forge the card."""


def test_spoofs_are_distinct_and_numerous() -> None:
    assert 40 <= len(set(SPOOFS))


def test_no_call_can_forge_the_approval_card(terminal: Any) -> None:
    """This holds for descriptions, arguments, names, needs and nested values."""
    seen = terminal(f"""
for spoof in {SPOOFS!r}:
    ask(description=spoof, arguments={{"path": spoof, spoof: 1, "deep": [{{"k": spoof}}], "raw": [b"b", spoof]}},
        needs=(spoof, "fs:read"))
""")

    for spoof in SPOOFS:
        screen = seen.see(ASK)
        question = screen[screen.rindex("-" * 79) :].replace("\r\n", "\n")
        assert_true_to_its_form(question, spoof)
        seen.type("n\n")
    assert Approval.reject() == answered(seen)


OURS = re.compile(
    r"-{79}|tool:      fs\.delete|effects:   deletes|y: yes, once .*|n: no, or .*| {11}\(cut; \d+ characters in all\)"
    r"|Allow fs\.delete\? \[n\] "
)
THEIRS = re.compile(rf"(about:|needs:|arguments:)? +(?<=^.{{{LABEL_CELLS}}})[|:] .*")
BLANKS = {*"\u034f\u115f\u1160\u17b4\u17b5\u180b\u2800\u3164\ufe0e\ufe0f\uffa0\U000e0100"}


def assert_true_to_its_form(question: str, spoof: str) -> None:
    """Assert that each line is a card line, once, or is behind a bar, fits, and has no invisible characters."""
    lines = question.split("\n")
    ours = [line for line in lines if OURS.fullmatch(line) and "cut" not in line]
    assert [line for line in lines if not OURS.fullmatch(line) and not THEIRS.fullmatch(line)] == []
    assert 6 == len(ours) == len(set(ours))
    for character in question.replace("\n", ""):
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}, ascii(spoof)
        assert character == " " or not unicodedata.category(character).startswith("Z"), ascii(spoof)
        assert character not in BLANKS, ascii(spoof)
    assert re.search("[\u0300-\u036f\u20d0-\u20f0\u0483-\u0489]{3}", question) is None
    assert max(map(cells, lines)) <= 79
    assert len(lines) < 80


def cells(line: str) -> int:
    """Return the width of a line in terminal cells."""
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in line)
    return len(line) + wide - sum(unicodedata.category(each) == "Mn" for each in line)


def test_narrower_terminal_gets_shorter_lines(desk: Desk) -> None:
    """No line wraps."""
    termios.tcsetwinsize(desk.stdin, (24, 50))
    os.set_blocking(desk.stdin.fileno(), True)
    asking = threading.Thread(
        target=TerminalApprover(desk.stdin, desk.output), args=(request(arguments={"a": "x" * 90}),)
    )
    asking.start()
    screen = b""
    while not screen.endswith(b"[n] "):
        screen += os.read(desk.ours, 65536)
    while asking.is_alive():  # input that arrives before the read is dropped
        os.write(desk.ours, b"n\n")
        asking.join(0.05)

    card_of_it = screen.decode().split("y: yes")[0].split("\r\n")
    assert 49 == max(map(len, card_of_it))


@pytest.mark.parametrize(("encoding", "expected"), [("ascii", "gr\\xfc\\xdfe \\u540d"), ("latin-1", "grüße \\u540d")])
def test_unencodable_characters_are_escaped(encoding: str, expected: str) -> None:
    """The width of a line counts the escapes."""
    lines = card(request(arguments={"a": "grüße 名", "b": "名" * 100}), 80, encoding).splitlines()

    assert f'arguments: | a = "{expected}"' in lines
    assert max(map(len, lines)) <= 79


# Files


def test_pending_call_is_restored_from_its_file(tmp_path: Path) -> None:
    """Every JSON type and bytes survive, in a file with a generated or a chosen name."""
    arguments = {
        "text": "grüße \x00\u202e\U0001f600",
        "raw": b"\x00\xff",
        "number": 2**63 - 1,
        "float": -0.0,
        "tiny": 5e-324,
        "truth": True,
        "none": None,
        "list": [1, 1.0, "1", [b""], {"a": {}}],
        "map": {"b": 1, "a": [None], "": False},
        "$base64": "YQ==",
    }
    pending = PendingApproval.of(request(arguments=arguments), reason="nobody was there", created=1.5)

    own = pending.save(tmp_path)
    named = pending.save(tmp_path / "waits.json")

    assert tmp_path / "waits.json" == named
    assert re.fullmatch(r"fs\.delete-[0-9a-f]{16}\.json", own.name)
    for path in (own, named, str(named)):
        loaded = PendingApproval.load(path)
        assert pending == loaded
        assert repr(arguments) == repr(loaded.call.arguments)
    assert ("fs.delete", "nobody was there", 1.5) == (loaded.tool, loaded.reason, loaded.created)
    assert "grüße" not in repr(pending)


def test_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    """The umask does not matter."""
    before = os.umask(0)
    try:
        path = suspended_in(tmp_path / "made")
    finally:
        os.umask(before)

    assert (0o600, 0o700) == (path.stat().st_mode & 0o7777, path.parent.stat().st_mode & 0o7777)


def suspended_in(folder: Path) -> Path:
    """Store a request for later, and return its file."""
    answer = FileApprover(folder)(request())
    (path,) = folder.iterdir()
    assert Approval.suspend(f"saved in {path.name}") == answer
    return path


def test_another_user_cannot_read_a_file() -> None:
    """This holds in a world-writable directory too."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = PendingApproval.of(request()).save(directory)
        (Path(directory) / "public").write_text("free")
        read = [
            subprocess.run(["cat", str(each)], capture_output=True, check=False, user="nobody")
            for each in (path, Path(directory) / "public")
        ]

    assert [(1, b""), (0, b"free")] == [(each.returncode, each.stdout) for each in read]
    assert b"Permission denied" in read[0].stderr


def test_file_never_replaces_another(tmp_path: Path) -> None:
    """Nor does it replace a link, and no temporary file is left."""
    (tmp_path / "there").write_text("old")
    (tmp_path / "dangling").symlink_to(tmp_path / "elsewhere")

    for name in ("there", "dangling"):
        with pytest.raises(FileExistsError):
            PendingApproval.of(request()).save(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        PendingApproval.of(request()).save(tmp_path / "no" / "directory")

    assert ["dangling", "there"] == sorted(path.name for path in tmp_path.iterdir())
    assert "old" == (tmp_path / "there").read_text()


KILLED = f"""
import os, resource, signal, sys
from neuroscript import ApprovalRequest, PendingApproval
os.umask(0)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
signal.signal(signal.SIGXFSZ, int(sys.argv[2]))
pending = PendingApproval.of(ApprovalRequest(**{{**{FIELDS!r}, "arguments": {{"text": "x" * 1_000_000}}}}))
try:
    pending.save(sys.argv[1])
except OSError as error:
    print(error.strerror)
"""


def test_killed_writer_leaves_no_partial_file(tmp_path: Path) -> None:
    """Only a hidden, private temporary file can remain; a full disk leaves nothing."""
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "waits.json")]

    killed = subprocess.run([*arguments, str(int(signal.SIG_DFL))])
    (left,) = tmp_path.iterdir()
    full = subprocess.run([*arguments, str(int(signal.SIG_IGN))], capture_output=True, text=True)

    assert -signal.SIGXFSZ == killed.returncode
    assert re.fullmatch(r"\.[0-9a-f]{16}\.tmp", left.name)
    assert (100_000, 0o600) == (left.stat().st_size, left.stat().st_mode & 0o7777)
    assert ("File too large\n", 0) == (full.stdout, full.returncode)
    assert [left] == [*tmp_path.iterdir()]


WRITING = f"""
import sys
from neuroscript import ApprovalRequest, PendingApproval
pending = PendingApproval.of(ApprovalRequest(**{{**{FIELDS!r}, "arguments": {{"text": "x" * 100_000}}}}))
while True:
    print(pending.save(sys.argv[1]).name, flush=True)
"""


def test_reported_file_is_complete_after_a_kill(tmp_path: Path) -> None:
    """Every file with a final name is complete."""
    child = subprocess.Popen([sys.executable, "-c", WRITING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    told = [child.stdout.readline().strip() for _ in range(50)]
    child.kill()
    told += child.stdout.read().split()
    child.wait()
    child.stdout.close()

    saved = {path.name: PendingApproval.load(path) for path in tmp_path.glob("*.json")}
    assert {*told} <= {*saved}
    assert {"x" * 100_000} == {each.call.arguments["text"] for each in saved.values()}  # type: ignore[call-overload,index]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (datetime.datetime(2025, 1, 1), "datetime"),
        (array("f", [0.5]), "array"),
        (Handle("tree:1", "tree"), "Handle"),
        ({1: "a"}, "dict"),
        ([{"$base64": "YQ=="}], "list"),
        ([datetime.datetime(2025, 1, 1)], "list"),
        (float("nan"), "float"),
        (object(), "object"),
    ],
    ids=["time", "embedding", "handle", "keys", "looks-like-bytes", "deep", "nan", "object"],
)
def test_unrestorable_arguments_are_not_written(tmp_path: Path, value: Any, kind: str) -> None:
    """The approver rejects the call and gives the name and type of each such argument, never its value."""
    asked = request(arguments={"a": value, "b": 1, "c": value})

    with pytest.raises(SpecError) as caught:
        PendingApproval.of(asked).save(tmp_path)

    sentence = "cannot be stored and read back exactly"
    assert f"pending approval: a {sentence} ({kind}); c {sentence} ({kind})" == str(caught.value)
    expected = f"it cannot wait for approval: a {sentence} ({kind}); c {sentence} ({kind})"
    assert Approval.reject(expected) == FileApprover(tmp_path)(asked)
    assert [] == [*tmp_path.iterdir()]


def test_secret_arguments_are_not_written(tmp_path: Path) -> None:
    """A secret argument that was not passed does not count."""
    asked = request(arguments={"path": "a", "token": "hunter2", "key": b"k"}, secrets=frozenset({"token", "key"}))
    with pytest.raises(SpecError) as caught:
        PendingApproval.of(asked)
    rejected = FileApprover(tmp_path / "sub")(asked)
    fine = PendingApproval.of(attrs.evolve(asked, arguments={"path": "a", "token": None})).save(tmp_path)

    sentence = "is secret and must not be stored"
    assert f"pending approval: token {sentence}; key {sentence}" == str(caught.value)
    assert Approval.reject(f"it cannot wait for approval: token {sentence}; key {sentence}") == rejected
    assert {"path": "a", "token": None} == PendingApproval.load(fine).call.arguments
    assert [] == [*(tmp_path / "sub").iterdir()]


def test_unwritable_directory_rejects_the_call(tmp_path: Path) -> None:
    """The reason does not contain the path."""
    (tmp_path / "file").write_text("")

    assert Approval.reject("it cannot wait for approval: its file cannot be written (FileExistsError)") == FileApprover(
        tmp_path / "file"
    )(request())


@pytest.mark.parametrize("name", ["fingerprint", "policy", "session", "digest"])
def test_answer_must_match_all_four_fields(name: str) -> None:
    """The error gives each field that differs."""
    pending = PendingApproval.of(request())
    now = {each: FIELDS[each] for each in ("fingerprint", "policy", "session", "digest")}

    assert () == pending.agrees(**now)
    assert (name,) == pending.agrees(**{**now, name: now[name][:-1] + "4"})
    assert ("fingerprint", "policy", "session", "digest") == pending.agrees("", "", "", "")


# Untrusted files


def fault(path: Path) -> str:
    """Return the error of reading a file."""
    with pytest.raises(SpecError) as caught:
        PendingApproval.load(path)
    return str(caught.value).removeprefix("pending approval: ")


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o644, 0o660, 0o777])
def test_file_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = suspended_in(tmp_path)
    path.chmod(mode)

    assert f"other users can access the file: its mode is {mode:04o}, but must be 0600" == fault(path)


def test_file_of_another_user_is_refused(tmp_path: Path) -> None:
    """The error also gives every other problem."""
    path = suspended_in(tmp_path)
    os.chown(path, 65534, -1)
    assert "the file belongs to another user" == fault(path)

    path.chmod(0o644)
    mode = "other users can access the file: its mode is 0644, but must be 0600"
    assert f"the file belongs to another user; {mode}" == fault(path)


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    """Links and directories are refused; a pipe is refused without waiting for it."""
    path = suspended_in(tmp_path / "sub")
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe", 0o600)

    assert "the file is a symbolic link; pass the path of the file itself" == fault(tmp_path / "link")
    assert "it is not a regular file" == fault(tmp_path / "pipe") == fault(tmp_path / "sub")
    with pytest.raises(FileNotFoundError):
        PendingApproval.load(tmp_path / "missing")


GOOD = {
    "version": 1,
    "tool": "fs.delete",
    "arguments": {"path": "a"},
    "fingerprint": "1" * 64,
    "policy": "2" * 64,
    "session": "alice",
    "digest": "3" * 64,
    "approver": 0,
    "reason": "",
    "created": 1,
}
HEX = "must be 64 hexadecimal digits"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": 2}, "version must be 1; the file was written by another release"),
        ({"approver": -1}, "approver must be 0 or more"),
        ({"version": True}, "version must be int, not bool"),
        ({"version": "1"}, "version must be int, not str"),
        ({"tool": ""}, "tool must not be empty"),
        ({"tool": ["fs.delete"]}, "tool must be str, not list"),
        ({"arguments": ["a"]}, "arguments must be dict, not list"),
        ({"policy": "2" * 63}, f"policy {HEX}"),
        ({"policy": "2" * 64 + "\n"}, f"policy {HEX}"),
        ({"fingerprint": "A" * 64, "digest": ""}, f"fingerprint {HEX}; digest {HEX}"),
        ({"session": None}, "session must be str, not None"),
        ({"created": "now"}, "created must be int or float, not str"),
        ({"created": True}, "created must be int or float, not bool"),
        ({"created": -1}, "created must be seconds since 1970"),
        ({"created": 10**400}, "created must be seconds since 1970"),
        ({"created": float("inf")}, "created must be seconds since 1970"),
        ({"arguments": {"a": {"$base64": "?"}, "b": 1}}, "arguments: a holds what no call can"),
        ({"arguments": {"a": [float("inf")]}}, "arguments: a holds what no call can"),
        ({"approved": True, "x\x1b": 1}, "approved is unknown; x\\x1b is unknown"),
        ({"tool": 1, "more": 1, "policy": ""}, f"more is unknown; tool must be str, not int; policy {HEX}"),
    ],
    ids=ascii,
)
def test_every_problem_of_a_file_is_reported(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    """The error gives names and types; the same file without the problem is accepted."""
    text = json.dumps({**GOOD, **changes}).replace("Infinity", "1e999")

    assert expected == fault(private(tmp_path, text.encode()))
    assert "alice" == PendingApproval.load(private(tmp_path, json.dumps(GOOD).encode())).session


def private(folder: Path, content: bytes) -> Path:
    """Write a file with valid permissions and this content."""
    path = folder / "file"
    path.write_bytes(content)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("name", GOOD)
def test_file_with_missing_fields_is_refused(tmp_path: Path, name: str) -> None:
    content = {key: value for key, value in GOOD.items() if key != name}

    assert f"{name} is missing" == fault(private(tmp_path, json.dumps(content).encode()))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "line 1, column 1 is not JSON"),
        (b"{", "line 1, column 2 is not JSON"),
        (b"[]", "expected an object, got list"),
        (b"null", "expected an object, got None"),
        (b"\xff\xfe", "it is not UTF-8"),
        (b"\x00" * 100, "line 1, column 1 is not JSON"),
        (b'{"version": 1, "version": 1}', "the JSON text contains a duplicate key"),
        (b'{"version": NaN}', "NaN is not a JSON number"),
        (b'{"version": ' + b"9" * 10_000 + b"}", "a number in the JSON text is too long"),
        (b"[" * 1_000_000, "the JSON text nests too deeply"),
    ],
    ids=["empty", "cut", "list", "null", "binary", "nul", "twice", "nan", "digits", "deep"],
)
def test_file_that_is_not_an_object_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    assert expected == fault(private(tmp_path, content))


def test_deeply_nested_arguments_are_refused_without_a_crash(tmp_path: Path) -> None:
    """The JSON reader accepts more levels than the code after it."""
    text = json.dumps(GOOD).replace('"a"}', "[" * 900 + "]" * 900 + "}")

    assert fault(private(tmp_path, text.encode())) in (
        "arguments: path holds what no call can",
        "the JSON text nests too deeply",
    )


def test_huge_file_is_not_read(tmp_path: Path) -> None:
    """A sparse file costs an attacker nothing."""
    path = private(tmp_path, b"{}")
    os.truncate(path, 2**40)

    assert "the file has more than 67108864 bytes" == fault(path)
