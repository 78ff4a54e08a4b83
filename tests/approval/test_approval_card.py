"""The approval card: it shows the whole call, and no call can forge it."""

from __future__ import annotations

import datetime
import os
import re
import termios
import threading
import unicodedata
from array import array
from typing import Any

import pytest
from tests.approval.approval_cases import ASK, Desk, answered, request

from neuroscript import Approval, TerminalApprover
from neuroscript.approval.card import LABEL_CELLS, MAX_NEEDS, card


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


@pytest.mark.parametrize(
    ("chars", "row_count", "is_cut"), [(66 * 6, 6, False), (66 * 6 + 1, 6, True), (66 * 5, 5, False)]
)
def test_only_text_beyond_the_last_row_is_cut(chars: int, row_count: int, is_cut: bool) -> None:
    """Text that fills six rows is complete."""
    shown = card(request(description="x" * chars), 80)

    assert shown.count(f"{'x' * 66}\n") == row_count
    assert ("(cut; " in shown) is is_cut


def test_approval_card_of_a_minimal_call() -> None:
    """It says that there are no arguments or effects, and counts the needs that it leaves out."""
    needs = tuple(f"fs:read:{number}" for number in range(MAX_NEEDS + 3))

    lines = card(request(description="", arguments={}, effects=(), needs=needs), 80).splitlines()

    assert ["tool:      fs.delete", "needs:     | fs:read:0"] == lines[1:3]
    assert [f"           | fs:read:{MAX_NEEDS - 1}", "           (and 3 more)"] == lines[MAX_NEEDS + 1 : MAX_NEEDS + 3]
    assert ["effects:   none", "arguments: none"] == lines[MAX_NEEDS + 3 :]


def test_approval_card_shows_what_the_call_sends_where() -> None:
    """One line for each flow; long ones continue below, and only a name that is too long is cut."""
    flows = (
        "sends untrusted data from web.get (call 3) to outside",
        f"sends private:mail and untrusted data from mail.{'x' * 40} (call 12) to people",
        f"sends private:mail data from mail.{'y' * 62} (call 13) to people",
    )

    assert card(request(flows=flows, above=("plan.run",)), 80).splitlines()[4:] == [
        "effects:   deletes",
        "flow:      sends untrusted data from web.get (call 3) to outside",
        "           sends private:mail and untrusted data from",
        f"            mail.{'x' * 40} (call 12) to people",
        "           sends private:mail data from",
        f"            mail.{'y' * 60}",
        "           yy",
        "            (call 13) to people",
        "called by: plan.run",
        'arguments: | path = "data/a.txt"',
    ]


@pytest.mark.parametrize("columns", range(30, 90))
def test_flow_cannot_imitate_an_argument(columns: int) -> None:
    """A host may use a name from outside as the origin of data."""
    sentence = f"sends untrusted data from {'x' * 20} | to = | \u5bbd\u5bbd\u5bbd| | to : to outside"
    lines = card(request(flows=(sentence,), arguments={}), columns).splitlines()

    assert lines[-1] == "arguments: none"
    flow = lines[lines.index("effects:   deletes") + 1 : -1]
    assert not [line for line in flow if line[LABEL_CELLS : LABEL_CELLS + 2] in ("| ", ": ")]
    assert "".join(line[LABEL_CELLS:].replace(" ", "") for line in flow) == sentence.replace(" ", "")


def test_flow_is_shown_on_any_terminal() -> None:
    """A host may name the origin of data in any script."""
    shown = card(request(flows=("sends private data from caf\u00e9\nneeds: | to outside",)), 80, "ascii")

    assert "flow:      sends private data from caf\\xe9\\nneeds: | to outside\n" in shown


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
