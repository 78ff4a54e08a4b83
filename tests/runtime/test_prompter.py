"""Questions at the console: real pipes, real devices, real terminals, and processes that have none of them."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.terminals import Terminal, read_until, wait_until_asleep

from neuroscript import PromptError
from neuroscript.runtime.prompter import MAX_ANSWER_BYTES, ConsolePrompter, Prompter

NOBODY = ("there is no terminal, pipe or file to read an answer from", "prompt.noninteractive", "host")
NO_OUTPUT = ("there is no output to write the prompt to", "prompt.noninteractive", "host")
ENDED = ("the input ended before an answer was received", "prompt.eof", "host")
TOO_LONG = ("the answer is longer than 65536 bytes", "prompt.too_long", "host")

ASK = """
from neuroscript import PromptError
from neuroscript.runtime.prompter import ConsolePrompter

prompter = ConsolePrompter()

def ask(prompt="Name?", **options):
    try:
        print(repr(prompter.ask(prompt, **options)), flush=True)
    except PromptError as error:
        print(error.code, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def refused(prompter: Prompter, *, secret: bool = False) -> tuple[str, str, str]:
    """Return the error that the caller of the prompter receives."""
    with pytest.raises(PromptError) as caught:
        prompter.ask("Name?", secret=secret)
    return str(caught.value), caught.value.code, caught.value.retry


def open_pipe(data: bytes) -> io.TextIOWrapper:
    """Return the reading end of a pipe that contains *data*, with its writing end closed."""
    ours, theirs = os.pipe()
    threading.Thread(target=fill, args=(theirs, data)).start()
    return os.fdopen(ours, encoding="utf-8")


def fill(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as pipe:
        pipe.write(data)


# Piped answers


def test_piped_answers_are_read_one_by_one() -> None:
    """With any line end, empty lines, and a last line without an end; afterwards the input has ended."""
    with open_pipe("Ada\n\r\n  blanks stay \r\ngrüße\nlast".encode()) as stdin:
        prompter = ConsolePrompter(stdin, io.StringIO())
        answers = [prompter.ask("?") for _ in range(5)]

        assert ["Ada", "", "  blanks stay ", "grüße", "last"] == answers
        assert ENDED == refused(prompter) == refused(prompter)


def test_input_after_the_answer_is_not_read() -> None:
    """A second prompter, and a later reader of the descriptor, find the remaining input."""
    with open_pipe(b"first\nsecond\nrest of it\n") as stdin:
        answers = [ConsolePrompter(stdin, io.StringIO()).ask("?") for _ in range(2)]

        assert ["first", "second"] == answers
        assert b"rest of it\n" == os.read(stdin.fileno(), 100)


def test_a_nonblocking_descriptor_is_awaited() -> None:
    """Another process that shares the pipe can set it; an answer in two parts is still one answer."""
    answers_out, answers_in = os.pipe()
    questions_out, questions_in = os.pipe()
    os.set_blocking(answers_out, False)

    def answer() -> None:
        read_until(questions_out, b"Name? ")
        for part in (b"Gr\xc3", b"\xbc\xc3\x9fe\n"):
            os.write(answers_in, part)
            wait_until_read(answers_out)

    human = threading.Thread(target=answer)
    human.start()
    with os.fdopen(answers_out, encoding="utf-8") as stdin, os.fdopen(questions_in, "w") as output:
        assert "Grüße" == ConsolePrompter(stdin, output).ask("Name?")
        human.join()
    os.close(answers_in)
    os.close(questions_out)


def wait_until_read(pipe: int) -> None:
    """Wait until a pipe is empty."""
    while any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))):
        pass


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"\xff\xfe\n", "\ufffd\ufffd"), (b"ab\xc3\n", "ab\ufffd"), (b"\xed\xa0\x80\n", "\ufffd\ufffd\ufffd")],
    ids=["no-utf8", "cut", "surrogate"],
)
def test_invalid_unicode_is_replaced(data: bytes, expected: str) -> None:
    """An answer is a valid string; the next one is complete."""
    with open_pipe(data + b"next\n") as stdin:
        prompter = ConsolePrompter(stdin, io.StringIO())

        assert [expected, "next"] == [prompter.ask("?"), prompter.ask("?")]


def test_an_answer_may_have_the_maximum_length() -> None:
    """65,536 bytes, with or without a line end."""
    with open_pipe(b"a" * MAX_ANSWER_BYTES + b"\n" + b"b" * MAX_ANSWER_BYTES) as stdin:
        prompter = ConsolePrompter(stdin, io.StringIO())

        assert ["a" * MAX_ANSWER_BYTES, "b" * MAX_ANSWER_BYTES] == [prompter.ask("?"), prompter.ask("?")]


@pytest.mark.parametrize(
    "length", [MAX_ANSWER_BYTES + 1, 2 * MAX_ANSWER_BYTES, 2 * MAX_ANSWER_BYTES + 1, 3 * MAX_ANSWER_BYTES]
)
def test_a_longer_answer_is_refused_and_dropped(length: int) -> None:
    """No part of it becomes the next answer."""
    with open_pipe(b"a" * length + b"\nnext\n" + b"b" * length) as stdin:
        prompter = ConsolePrompter(stdin, io.StringIO())

        assert TOO_LONG == refused(prompter)
        assert "next" == prompter.ask("?")
        assert TOO_LONG == refused(prompter)
        assert ENDED == refused(prompter)


def test_answers_can_come_from_a_file(tmp_path: Path) -> None:
    """A regular file is read like a pipe."""
    (tmp_path / "answers").write_text("one\ntwo\n")
    with (tmp_path / "answers").open() as stdin:
        prompter = ConsolePrompter(stdin, io.StringIO())

        assert ["one", "two"] == [prompter.ask("?"), prompter.ask("?", secret=True)]


def test_answers_can_come_from_a_socket() -> None:
    """Some hosts use sockets instead of pipes for child processes."""
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile(encoding="utf-8") as stdin:
        theirs.sendall(b"one\n")

        assert "one" == ConsolePrompter(stdin, io.StringIO()).ask("?")


@pytest.mark.parametrize(
    "stdin",
    [io.StringIO("one\ntwo"), io.TextIOWrapper(io.BytesIO(b"one\ntwo"), encoding="utf-8")],
    ids=["text", "bytes"],
)
def test_answers_can_come_from_a_stream_without_a_descriptor(stdin: Any) -> None:
    """As hosts without a console provide it."""
    prompter = ConsolePrompter(stdin, io.StringIO())

    assert ["one", "two"] == [prompter.ask("?"), prompter.ask("?", secret=True)]
    assert ENDED == refused(prompter)


# No user to ask


def test_a_closed_input_has_no_answer() -> None:
    """A closed stream, or one whose descriptor is closed."""
    with Path(os.devnull).open() as closed:
        pass
    ours, theirs = os.pipe()
    with os.fdopen(ours, closefd=False) as orphan:
        os.close(ours)
        os.close(theirs)

        assert NOBODY == refused(ConsolePrompter(closed, io.StringIO()))
        assert NOBODY == refused(ConsolePrompter(orphan, io.StringIO()))


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_device_that_is_not_a_terminal_has_no_answer(device: str) -> None:
    """Neither an empty nor an endless one, and no question is written."""
    output = io.StringIO()
    with Path(device).open() as stdin:
        assert NOBODY == refused(ConsolePrompter(stdin, output))
        assert NOBODY == refused(ConsolePrompter(stdin, output), secret=True)
    assert "" == output.getvalue()


def test_no_question_is_asked_without_a_readable_output(tmp_path: Path) -> None:
    """A closed output, a full disk and a pipe without a reader; the answer is not consumed."""
    closed = io.StringIO()
    closed.close()
    ours, theirs = os.pipe()
    os.close(ours)
    with open_pipe(b"one\n") as stdin:
        assert NO_OUTPUT == refused(ConsolePrompter(stdin, closed))
        for descriptor in (theirs, os.open("/dev/full", os.O_WRONLY)):
            output = io.TextIOWrapper(io.FileIO(descriptor, "w"), write_through=True)
            assert NO_OUTPUT == refused(ConsolePrompter(stdin, output))
            output.close()
        assert "one" == ConsolePrompter(stdin, io.StringIO()).ask("?")


@pytest.mark.parametrize(
    ("redirections", "expected"),
    [
        ("</dev/null", "prompt.noninteractive"),
        ("<&-", "prompt.noninteractive"),
        ("2>&-", "prompt.noninteractive"),
        ("<&- 2>&-", "prompt.noninteractive"),
    ],
)
@pytest.mark.parametrize("secret", [False, True])
def test_a_process_without_a_console_receives_an_error(redirections: str, expected: str, secret: bool) -> None:
    """At once, and without a traceback."""
    command = f'exec "$0" -c "$1" {redirections}'
    code = f"{ASK}\nask(secret={secret})"

    done = subprocess.run(
        ["sh", "-c", command, sys.executable, code], input=b"Ada\n", capture_output=True, timeout=60, check=False
    )

    assert (f"{expected}\n".encode(), b"", 0) == (done.stdout, done.stderr, done.returncode)


def test_a_process_reads_answers_from_its_pipe() -> None:
    """Questions are only written to stderr, for any encodings of the process."""
    code = f"{ASK}\nask('Name →'); ask(); ask(secret=True); ask()"
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1:strict"}

    done = subprocess.run(
        [sys.executable, "-c", code], input="ä\nb\nc".encode("latin-1"), capture_output=True, env=environment
    )

    assert ["'ä'", "'b'", "'c'", "prompt.eof"] == done.stdout.decode("latin-1").splitlines()
    assert "Name \\u2192 Name? Name? Name? " == done.stderr.decode("latin-1")


def test_the_current_streams_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompter that was created before the host replaced its streams uses the new ones."""
    prompter = ConsolePrompter()
    monkeypatch.setattr(sys, "stdin", io.StringIO("Ada\n"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    assert "Ada" == prompter.ask("Name?")
    assert "Name? " == sys.stderr.getvalue()  # type: ignore[attr-defined]


# Output


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Name?", "Name? "),
        ("Name: ", "Name: "),
        ("Grüße, 名前 →\n", "Grüße, 名前 → "),
        ("\x1b[2J\x1b]0;title\x07x", "\\x1b[2J\\x1b]0;title\\x07x "),
        ("Delete?\rKeep?", "Delete?\\rKeep? "),
        ("a\nAllow? yes", "a\\nAllow? yes "),
        ("a\u202ecba\u2066\u200f", "a\\u202ecba\\u2066\\u200f "),
        ("pay\u200bpal\u200d\ufeff\u00ad", "pay\\u200bpal\\u200d\\ufeff\\xad "),
        ("\x9b2J\x85\u2028", "\\x9b2J "),
        ("\ud800", "\\ud800 "),
    ],
    ids=ascii,
)
def test_a_question_cannot_control_the_terminal(prompt: str, expected: str) -> None:
    """It is one line, and control characters are escaped."""
    output = io.StringIO()

    ConsolePrompter(io.StringIO("\n"), output).ask(prompt)

    assert expected == output.getvalue()


def test_one_question_at_a_time(full_counts: bool) -> None:
    """Each of eight threads receives the answer to its own question, because questions wait for previous answers."""
    rounds, threads = (1000 if full_counts else 50), 8
    answers_out, answers_in = os.pipe()
    questions_out, questions_in = os.pipe()
    wrong: list[tuple[int, str]] = []

    with os.fdopen(answers_out) as stdin, os.fdopen(questions_in, "w") as output:
        prompter = ConsolePrompter(stdin, output)

        def ask(number: int) -> None:
            for _ in range(rounds):
                answer = prompter.ask(f"{number} of eight?")
                if answer != f"answer to {number}":
                    wrong.append((number, answer))

        workers = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for _ in range(rounds * threads):
            question = read_until(questions_out, b"? ").decode()
            os.write(answers_in, f"answer to {question.removesuffix(' of eight? ')}\n".encode())
        for worker in workers:
            worker.join()

    for descriptor in (answers_in, questions_out):
        os.close(descriptor)
    assert [] == wrong


# Terminals


@pytest.fixture
def terminal() -> Iterator[Any]:
    """Return a function that runs code in a process with a terminal."""
    terminals: list[Terminal] = []

    def started(code: str) -> Terminal:
        terminals.append(Terminal(f"{ASK}\n{code}"))
        return terminals[-1]

    yield started
    for each in terminals:
        each.close()


def test_a_terminal_echoes_an_answer(terminal: Any) -> None:
    """Unless it is a secret."""
    seen = terminal("ask()")

    seen.see("Name? ")
    assert seen.echoes
    seen.type("Adx\x7fa\n")

    assert "Adx\b \ba\r\n'Ada'\r\n" == seen.see("'Ada'\r\n")


def test_a_secret_is_not_echoed(terminal: Any) -> None:
    """Only its line end is; afterwards the terminal echoes again."""
    seen = terminal("ask(secret=True); ask('Again?')")

    assert "Name? " == seen.see("Name? ")
    assert not seen.echoes
    seen.type("hunter2\n")
    assert "\r\n'hunter2'\r\nAgain? " == seen.see("Again? ")
    assert seen.echoes
    seen.type("Ada\n")

    assert "Ada\r\n'Ada'\r\n" == seen.see("'Ada'\r\n")


def test_the_echo_of_a_terminal_is_restored(terminal: Any) -> None:
    """Whether it was on or off."""
    seen = terminal("ask(secret=True); ask('Again?')")
    settings = termios.tcgetattr(seen.theirs)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(seen.theirs, termios.TCSANOW, settings)

    seen.see("Name? ")
    assert termios.tcgetattr(seen.theirs)[3] == settings[3] | termios.ECHONL
    seen.type("a\n")
    seen.see("Again? ")
    assert termios.tcgetattr(seen.theirs) == settings
    seen.type("b\n")
    seen.see("'b'\r\n")


@pytest.mark.parametrize("secret", [False, True])
@pytest.mark.parametrize(
    ("keys", "expected"),
    [("\x03", "interrupted"), ("\x04", "prompt.eof"), ("a\x04\x04", "'a'")],
    ids=["ctrl-c", "ctrl-d", "ctrl-d-in-a-line"],
)
def test_control_keys_end_a_question(terminal: Any, secret: bool, keys: str, expected: str) -> None:
    """Ctrl-C interrupts, Ctrl-D ends the input for this question only; the terminal is restored."""
    seen = terminal(f"ask(secret={secret}); ask('Again?')")

    seen.see("Name? ")
    assert secret is not seen.echoes
    seen.type(keys)
    assert expected in seen.see("Again? ")
    assert seen.echoes
    seen.type("Ada\n")
    seen.see("'Ada'\r\n")


def test_type_ahead_is_the_next_answer(terminal: Any) -> None:
    """Also for a secret: no line is lost."""
    seen = terminal("ask(); ask(secret=True); ask('Again?')")

    seen.see("Name? ")
    seen.type("one\ntwo\nthree\n")

    result = re.findall(r"'(\w+)'", seen.see("'three'\r\n"))
    assert ["one", "two", "three"] == result


@pytest.mark.parametrize("secret", [False, True])
def test_a_closed_terminal_ends_a_question(secret: bool) -> None:
    """A process that receives no signal gets an error without a traceback."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", f"{ASK}\nask(secret={secret})"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    read_until(ours, b"Name? ")
    os.close(ours)

    assert child.communicate(timeout=60)[0].decode() in ("prompt.eof\n", "prompt.noninteractive\n")
    assert 0 == child.returncode


IN_A_THREAD = """
import signal, threading
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
threading.Thread(target=ask, kwargs={"secret": True}, daemon=True).start()
signal.sigwait([signal.SIGUSR1])
"""


def test_the_echo_is_restored_if_a_thread_still_waits_for_a_secret(terminal: Any) -> None:
    """An interrupted process ends while its thread waits for the answer."""
    seen = terminal(IN_A_THREAD)

    seen.see("Name? ")
    assert not seen.echoes
    wait_until_asleep(seen.child.pid)  # a thread that still writes when the process ends would abort it
    seen.child.send_signal(signal.SIGUSR1)
    seen.child.wait(60)

    assert seen.echoes
