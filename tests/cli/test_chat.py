"""``neuroscript chat`` with lines from a pipe, and on a real terminal."""

from __future__ import annotations

import json
import os
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import ROOT, CommandResult, asked_of, command, process
from tests.cli.test_approvals import PLUGIN
from tests.cli.test_ask import ADD, ADDED, BEGIN, HOSTILE, wait_for_output
from tests.llm.server import APIS, ModelReply, ModelServer, asks, call, hangs, html, refuses, says, status
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


def chat(server: ModelServer, *words: str, lines: str, api: str = "openai-chat") -> CommandResult:
    """Send lines to a chat with the model of a server, in this process."""
    return command(*asked_of(server, "chat", *words, api=api), stdin=lines.encode(), make_engine=None)


def sent(server: ModelServer, index: int) -> list[tuple[str, Any]]:
    """Return the messages of one request to OpenAI Chat."""
    return [(each["role"], each["content"]) for each in server.requests[index].body["messages"]]


# With a pipe


@pytest.mark.parametrize("api", APIS)
def test_each_line_of_a_pipe_is_a_turn(api: str, server: ModelServer) -> None:
    """This works with all three APIs; only the answers are printed, and blank lines are ignored."""
    server.script(asks(ADD), says("five"), says("as I said"))

    result = chat(server, "--tools", "math.*", lines="How much?\n\n  \nSure?", api=api)

    assert result == CommandResult(0, "five\nas I said\n", ADDED)
    body = json.dumps(server.requests[2].body)
    assert all(text in body for text in ("How much?", "five", "Sure?", "5.0"))


def test_session_lasts_for_the_whole_chat(server: ModelServer, tmp_path: Path) -> None:
    """A variable of one turn exists in the next one, even after /clear."""
    (tmp_path / "counts.py").write_text(COUNTS)
    server.script(*[asks(call("n__next")), says("ok")] * 3)

    result = chat(server, "-p", str(tmp_path / "counts.py"), "--tools", "n.*", lines="a\nb\n/clear\nc\n")

    assert [line for line in result.err.splitlines() if "n.next: " in line] == [
        f"neuroscript: n.next: {number}" for number in (1, 2, 3)
    ]
    assert sent(server, 4) == [("user", "c")]


def test_failed_turn_keeps_only_completed_calls(server: ModelServer) -> None:
    """A prompt without calls is discarded; calls remain with their results; the chat continues."""
    server.script(says("one"), refuses(), asks(ADD), html(), says("two"))

    result = chat(server, "--tools", "math.add", lines="a\nb\nc\nd\n")

    assert (result.code, result.out.replace("no\n", "")) == (1, "one\ntwo\n")
    assert [line.partition("(")[2] for line in result.err.splitlines() if "retry" in line] == [
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


def test_calls_that_were_not_made_are_discarded(server: ModelServer) -> None:
    """Every API refuses a call without a result."""
    server.script(asks(ADD, ADD), says("fine"))

    result = chat(server, "--tools", "math.add", "--max-calls", "1", lines="a\nb\n")

    assert (result.code, result.out) == (4, "fine\n")
    assert sent(server, 1) == [("user", "b")]


def test_retry_replaces_the_last_turn(server: ModelServer) -> None:
    """It works whether or not the prompt was answered."""
    server.script(says("one"), says("two"), status(400), says("three"), says("four"))

    result = chat(server, "--system", "Be short.", lines="a\n/retry\nb\n/retry\nc\n")

    assert result.out == "one\ntwo\nthree\nfour\n"
    assert sent(server, 1) == [("system", "Be short."), ("user", "a")]
    assert sent(server, 3) == [("system", "Be short."), ("user", "a"), ("assistant", "two"), ("user", "b")]


def test_chat_commands_print_to_stderr(server: ModelServer, tmp_path: Path) -> None:
    """A line that begins with two slashes is a prompt."""
    server.script(says("one"))
    file = tmp_path / "said"

    result = chat(
        server,
        "--tools",
        "math.sqrt",
        lines=f"//help\n/tools\n/usage\n/save {file}\n/save\n/hlp\n/help\n/quit\nnever\n",
    )

    assert (result.code, result.out, sent(server, 0)) == (2, "one\n", [("user", "/help")])
    assert result.err.splitlines()[:6] == [
        "neuroscript: math.sqrt  Calculate the square root of a number.",
        "neuroscript: 10 tokens in, 3 out",
        "neuroscript: wrote 2 turns",
        "neuroscript: expected a file name: /save FILE",
        "neuroscript: unknown command /hlp; /help lists the commands",
        "neuroscript: /tools      list the tools that the model may call",
    ]
    assert file.read_text() == "user: /help\nassistant: one\n"


def test_chat_commands_work_before_the_first_prompt(server: ModelServer) -> None:
    result = chat(server, lines="/retry\n/usage\n/tools\n")

    assert result == CommandResult(
        2,
        "",
        "neuroscript: there is no prompt to retry\n"
        "neuroscript: 0 tokens in, 0 out\n"
        "neuroscript: the model may not call any tools; allow some with --tools PATTERN\n",
    )


def test_json_prints_the_whole_chat(server: ModelServer, tmp_path: Path) -> None:
    """It is printed at the end; the transcript has the same turns."""
    server.script(says("one"), says("two"))

    result = chat(server, "--json", "--transcript", str(tmp_path / "t"), lines="a\nb\n")

    assert (result.code, json.loads(result.out)) == (
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


@pytest.mark.slow
def test_invalid_lines_are_reported_and_skipped(server: ModelServer) -> None:
    """The other lines are prompts, here of a separate process that reads from a pipe."""
    server.script(says("one"))

    result = process(*asked_of(server, "chat"), stdin=b"\xff\xfe\na\n")

    assert result == CommandResult(2, "one\n", "neuroscript: line 1 is not UTF-8 text\n")


def test_chat_needs_a_key() -> None:
    """The message says what to do."""
    result = command("chat", "--api", "anthropic", "--model", "x", stdin=b"a\n", make_engine=None)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("neuroscript: no key for this model; set ANTHROPIC_API_KEY")


# With a terminal


@pytest.fixture
def seat(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: ModelServer) -> Iterator[Callable[..., Terminal]]:
    """Start a chat with a plugin on a terminal, and return the terminal."""
    (tmp_path / "tools.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("INPUTRC", "/dev/null")
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "neuroscript-std")
    terminals: list[Terminal] = []

    def sat(*words: str) -> Terminal:
        all_words = asked_of(server, "chat", "-p", "tools.py", *words)
        terminals.append(Terminal(BEGIN.format(root=str(ROOT), words=all_words)))
        settings = termios.tcgetattr(terminals[-1].theirs)
        settings[3] |= termios.NOFLSH  # otherwise Ctrl-C may discard output that is being written
        termios.tcsetattr(terminals[-1].theirs, termios.TCSANOW, settings)
        return terminals[-1]

    yield sat
    for each in terminals:
        each.child.kill()
        each.child.wait()


def at_prompt(seen: Terminal, keys: str) -> str:
    """Wait for the prompt, press keys, and return the output before it."""
    shown = seen.see("you> ")
    os.write(seen.ours, keys.encode())
    return shown.removesuffix("you> ").replace("\r\n", "\n")


def last(seen: Terminal, code: int = 0) -> str:
    """Return the output until a chat exits with a code."""
    rest = seen.rest().replace("\r\n", "\n")
    seen.close(code)
    return rest


@pytest.mark.slow
def test_lines_can_be_edited_at_the_terminal(seat: Callable[..., Terminal], server: ModelServer) -> None:
    """The up key recalls an earlier line; Ctrl-D ends the chat."""
    server.script(says("one"), says("two"))
    seen = seat()
    assert "/help lists the commands, Ctrl-D ends the chat\n" in at_prompt(seen, "hex\x7fy\x01s\n")
    assert at_prompt(seen, "\x10\n").endswith("one\n")
    assert at_prompt(seen, "\x04").endswith("two\n")

    assert last(seen) == "\n"
    assert sent(server, 1) == [("user", "shey"), ("assistant", "one"), ("user", "shey")]


@pytest.mark.slow
def test_session_approval_lasts_over_turns(seat: Callable[..., Terminal], server: ModelServer) -> None:
    """The prompt appears once, between the answers."""
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


def test_ctrl_c_interrupts_the_turn_and_not_the_chat(seat: Callable[..., Terminal], server: ModelServer) -> None:
    """This holds during an answer, at an approval prompt and at the chat prompt; completed calls remain."""
    server.script(
        asks(ADD),
        hangs(20, 700, ModelReply("one two three four five six seven eight nine ten")),
        asks(call("p__wipe")),
        says("fine"),
    )
    seen = seat("--tools", "p.*", "--tools", "math.add")
    at_prompt(seen, "speak\n")
    wait_for_output(seen, "one ")
    os.write(seen.ours, b"\x03")
    assert at_prompt(seen, "wipe\n").endswith("\nneuroscript: the turn was interrupted\n")
    seen.see("[n] ")
    seen.interrupt()
    assert at_prompt(seen, "dropped").endswith("neuroscript: the turn was interrupted\n")
    wait_for_output(seen, "dropped")
    wait_until_asleep(seen.child.pid)
    os.write(seen.ours, b"\x03")
    at_prompt(seen, "last\n")
    assert at_prompt(seen, "\x04").endswith("fine\n")

    assert last(seen) == "\n"
    assert not Path("ran").exists()
    assert sent(server, 3) == [("user", "speak"), ("assistant", None), ("tool", "5.0"), ("user", "last")]


@pytest.mark.slow
def test_error_is_reported_and_the_chat_continues(seat: Callable[..., Terminal], server: ModelServer) -> None:
    """At a terminal, the exit code is 0. Text, calls and tool names are escaped, so they cannot control the terminal."""
    server.script(html(), asks(call("a\x1b[31m", {HOSTILE: HOSTILE}), text=HOSTILE), says(HOSTILE))
    seen = seat()
    at_prompt(seen, "a\n")
    assert "(llm.format, retry: host)\n" in at_prompt(seen, "/retry\n")
    reported = at_prompt(seen, "\x04")

    assert last(seen) == "\n"
    escaped = r"a\x1b]0;b\x07\x1b[2J\x9b5m\r\u202ec" + "\td\ne\n"
    assert escaped in reported and reported.endswith(escaped)
    assert reported.replace("\n", "").replace("\t", "").isprintable()


def test_typed_answer_is_plain_data_in_json(server: ModelServer) -> None:
    """Classes are used for the check only."""
    server.script(says("2020-01-31"))

    result = chat(server, "--json", "--answer-type", "date | None", lines="When?\n")

    assert (result.code, json.loads(result.out)["answer"]) == (0, "2020-01-31")
