"""``neuroscript chat``: the lines of a pipe, and whoever sits at a real terminal."""

from __future__ import annotations

import json
import os
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import ROOT, Ran, asked_of, command, process
from tests.cli.test_approvals import PLUGIN
from tests.cli.test_ask import ADD, ADDED, BEGIN, HOSTILE, came
from tests.llm.server import APIS, ModelServer, Said, asks, call, hangs, html, refuses, says, status
from tests.terminals import Terminal, wait_until_asleep

COUNTS = '''
"""A tool that counts its calls in a variable of the session."""

from neuroscript import Runtime


def register(registrar):
    tools = registrar.toolset("n")

    @tools.tool()
    def next(rt: Runtime) -> int:
        """Count on."""
        return rt.update_var("n", lambda n: (n or 0) + 1)
'''


def chat(server: ModelServer, *words: str, lines: str) -> Ran:
    """Send lines into a chat with the model of a server, in this process."""
    return command(*asked_of(server, "chat", *words), stdin=lines.encode(), make_engine=None)


def sent(server: ModelServer, index: int) -> list[tuple[str, Any]]:
    """Return the messages of one request to OpenAI Chat."""
    return [(each["role"], each["content"]) for each in server.requests[index].body["messages"]]


# Lines of a pipe


@pytest.mark.parametrize("api", APIS)
def test_each_line_of_a_pipe_is_a_turn_of_one_conversation(api: str, server: ModelServer) -> None:
    """In each of the three APIs; nothing is written but the answers, and blank lines are none."""
    server.script(asks(ADD), says("five"), says("as I said"))

    words = asked_of(server, "chat", "--tools", "math.*", api=api)
    ran = process(*words, stdin=b"How much?\n\n  \nSure?")

    assert ran == Ran(0, "five\nas I said\n", ADDED)
    body = json.dumps(server.requests[2].body)
    assert all(text in body for text in ("How much?", "five", "Sure?", "5.0"))


def test_the_session_lasts_as_long_as_the_chat(server: ModelServer, tmp_path: Path) -> None:
    """What one turn puts into a variable, the next one finds, also after /clear."""
    (tmp_path / "counts.py").write_text(COUNTS)
    server.script(*[asks(call("n__next")), says("ok")] * 3)

    ran = chat(server, "-p", str(tmp_path / "counts.py"), "--tools", "n.*", lines="a\nb\n/clear\nc\n")

    assert [line for line in ran.err.splitlines() if "n.next: " in line] == [
        f"neuroscript: n.next: {number}" for number in (1, 2, 3)
    ]
    assert sent(server, 4) == [("user", "c")]


def test_a_turn_that_fails_leaves_no_half_behind(server: ModelServer) -> None:
    """A prompt of which nothing came is forgotten; calls that were made stay with their results; the chat goes on."""
    server.script(says("one"), refuses(), asks(ADD), html(), says("two"))

    ran = chat(server, "--tools", "math.add", lines="a\nb\nc\nd\n")

    assert (ran.code, ran.out.replace("no\n", "")) == (1, "one\ntwo\n")
    assert [line.partition("(")[2] for line in ran.err.splitlines() if "retry" in line] == [
        "llm.refused, retry: never)",
        "llm.format, retry: host)",
    ]
    assert sent(server, 4) == [
        ("user", "a"),
        ("assistant", "one"),
        ("user", "c"),
        ("assistant", None),
        ("tool", "5.0"),
        ("user", "d"),
    ]


def test_calls_that_were_not_made_are_forgotten(server: ModelServer) -> None:
    """For a call without its result is refused by every API."""
    server.script(asks(ADD, ADD), says("fine"))

    ran = chat(server, "--tools", "math.add", "--calls", "1", lines="a\nb\n")

    assert (ran.code, ran.out) == (4, "fine\n")
    assert sent(server, 1) == [("user", "b")]


def test_retry_asks_the_last_prompt_as_if_it_had_not_been_asked(server: ModelServer) -> None:
    """Whether it was answered or not."""
    server.script(says("one"), says("two"), status(400), says("three"), says("four"))

    ran = chat(server, "--system", "Be short.", lines="a\n/retry\nb\n/retry\nc\n")

    assert ran.out == "one\ntwo\nthree\nfour\n"
    assert sent(server, 1) == [("system", "Be short."), ("user", "a")]
    assert sent(server, 3) == [("system", "Be short."), ("user", "a"), ("assistant", "two"), ("user", "b")]


def test_commands_tell_of_the_chat(server: ModelServer, tmp_path: Path) -> None:
    """On the stream of the sentences; what begins with two strokes is a prompt."""
    server.script(says("one"))
    file = tmp_path / "said"

    ran = chat(
        server,
        "--tools",
        "math.sqrt",
        lines=f"//help\n/tools\n/usage\n/save {file}\n/save\n/hlp\n/help\n/quit\nnever\n",
    )

    assert (ran.code, ran.out, sent(server, 0)) == (2, "one\n", [("user", "/help")])
    assert ran.err.splitlines()[:6] == [
        "neuroscript: math.sqrt  Give the square root of a number.",
        "neuroscript: 10 tokens in, 3 out",
        "neuroscript: wrote 2 turns",
        "neuroscript: /save needs the name of a file",
        "neuroscript: there is no command /hlp; /help tells which there are",
        "neuroscript: /tools      the tools that the model may call",
    ]
    assert file.read_text() == "user: /help\nassistant: one\n"


def test_commands_before_anything_was_asked(server: ModelServer) -> None:
    """Say so."""
    ran = chat(server, lines="/retry\n/usage\n/tools\n")

    assert ran == Ran(
        2,
        "",
        "neuroscript: nothing was asked yet\n"
        "neuroscript: 0 tokens in, 0 out\n"
        "neuroscript: the model may call no tool; --tools names some\n",
    )


def test_all_of_a_chat_is_one_value_of_json(server: ModelServer, tmp_path: Path) -> None:
    """At its end; the transcript has the same turns."""
    server.script(says("one"), says("two"))

    ran = chat(server, "--json", "--transcript", str(tmp_path / "t"), lines="a\nb\n")

    assert (ran.code, json.loads(ran.out)) == (
        0,
        {
            "answer": "two",
            "turns": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "one"},
                {"role": "user", "content": "b"},
                {"role": "assistant", "content": "two"},
            ],
            "usage": {"input_tokens": 20, "output_tokens": 6},
            "retries": [],
        },
    )
    assert (tmp_path / "t").read_text() == "user: a\nassistant: one\nuser: b\nassistant: two\n"


def test_lines_that_are_no_text_are_told_and_left_out(server: ModelServer) -> None:
    """The others are prompts."""
    server.script(says("one"))

    ran = process(*asked_of(server, "chat"), stdin=b"\xff\xfe\na\n")

    assert ran == Ran(2, "one\n", "neuroscript: line 1 is not UTF-8 text\n")


def test_a_chat_without_a_key_does_not_begin() -> None:
    """And says what to do."""
    ran = process("chat", "--api", "anthropic", "--model", "x", stdin=b"a\n")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("neuroscript: there is no key for this model; set ANTHROPIC_API_KEY")


# At a terminal


@pytest.fixture
def seat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: ModelServer) -> Iterator[Callable[..., Terminal]]:
    """Takes further words, and gives the terminal of a chat, which has a plugin."""
    (tmp_path / "tools.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("INPUTRC", "/dev/null")
    terminals: list[Terminal] = []

    def sat(*words: str) -> Terminal:
        all_words = asked_of(server, "chat", "-p", "tools.py", *words)
        terminals.append(Terminal(BEGIN.format(root=str(ROOT), words=all_words)))
        settings = termios.tcgetattr(terminals[-1].theirs)
        settings[3] |= termios.NOFLSH  # or the system might drop with Ctrl-C what is written just then
        termios.tcsetattr(terminals[-1].theirs, termios.TCSANOW, settings)
        return terminals[-1]

    yield sat
    for each in terminals:
        each.child.kill()
        each.child.wait()


def at_prompt(seen: Terminal, keys: str) -> str:
    """Wait for the prompt, press keys, and return what came before it."""
    told = seen.see("you> ")
    os.write(seen.ours, keys.encode())
    return told.removesuffix("you> ").replace("\r\n", "\n")


def last(seen: Terminal, code: int = 0) -> str:
    """Return what comes until a chat has ended, which is to be with a code."""
    rest = seen.rest().replace("\r\n", "\n")
    seen.close(code)
    return rest


def test_whoever_sits_there_types_and_reads(seat: Callable[..., Terminal], server: ModelServer) -> None:
    """Lines can be edited, and one of before comes again with the key that goes up; Ctrl-D ends it."""
    server.script(says("one"), says("two"))
    seen = seat()
    assert "/help tells of the commands, Ctrl-D ends\n" in at_prompt(seen, "hex\x7fy\x01s\n")
    assert at_prompt(seen, "\x10\n").endswith("one\n")
    assert at_prompt(seen, "\x04").endswith("two\n")

    assert last(seen) == "\n"
    assert sent(server, 1) == [("user", "shey"), ("assistant", "one"), ("user", "shey")]


def test_an_approval_for_the_session_lasts_over_turns(seat: Callable[..., Terminal], server: ModelServer) -> None:
    """The question stands between what is said, and is asked once."""
    delete = asks(call("p__delete", {"path": "a"}))
    server.script(delete, says("gone"), delete, says("gone again"))
    seen = seat("--tools", "p.delete")
    at_prompt(seen, "delete a\n")
    seen.see("[n] ")
    seen.type("s\n")
    assert at_prompt(seen, "and again\n").endswith("gone\n")
    assert at_prompt(seen, "/quit\n").endswith("gone again\n")

    assert last(seen) == "/quit\n"
    assert Path("ran").read_text() == "delete a False\n" * 2


def test_ctrl_c_stops_the_turn_and_not_the_chat(seat: Callable[..., Terminal], server: ModelServer) -> None:
    """While the model speaks, at a question, and at the prompt; what was done before stays known."""
    server.script(
        asks(ADD),
        hangs(20, 700, Said("one two three four five six seven eight nine ten")),
        asks(call("p__wipe")),
        says("fine"),
    )
    seen = seat("--tools", "p.*", "--tools", "math.add")
    at_prompt(seen, "speak\n")
    came(seen, "one ")
    os.write(seen.ours, b"\x03")
    assert at_prompt(seen, "wipe\n").endswith("\nneuroscript: this turn was interrupted\n")
    seen.see("[n] ")
    seen.interrupt()
    assert at_prompt(seen, "dropped").endswith("neuroscript: this turn was interrupted\n")
    came(seen, "dropped")
    wait_until_asleep(seen.child.pid)
    os.write(seen.ours, b"\x03")
    at_prompt(seen, "last\n")
    assert at_prompt(seen, "\x04").endswith("fine\n")

    assert last(seen) == "\n"
    assert not Path("ran").exists()
    assert sent(server, 3) == [("user", "speak"), ("assistant", None), ("tool", "5.0"), ("user", "last")]


def test_an_error_is_told_and_the_chat_goes_on(seat: Callable[..., Terminal], server: ModelServer) -> None:
    """Its code at the end is that of who ended it."""
    server.script(html(), says("fine"))
    seen = seat()
    at_prompt(seen, "a\n")
    assert "(llm.format, retry: host)\n" in at_prompt(seen, "/retry\n")
    assert at_prompt(seen, "\x04").endswith("fine\n")

    assert last(seen) == "\n"


def test_nothing_that_a_model_says_steers_the_terminal_of_a_chat(
    seat: Callable[..., Terminal], server: ModelServer
) -> None:
    """Of its text, of its calls and of their names."""
    server.script(asks(call("a\x1b[31m", {HOSTILE: HOSTILE}), text=HOSTILE), says(HOSTILE))
    seen = seat()
    at_prompt(seen, "a\n")
    told = at_prompt(seen, "\x04")
    last(seen)

    assert r"a\x1b]0;b\x07\x1b[2J\x9b5m\r\u202ec" + "\td\ne\n" in told
    assert told.replace("\n", "").replace("\t", "").isprintable()
