"""Approvals on the command line: whoever sits at the terminal is asked, wherever the streams lead, and nobody else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import ROOT, Ran, command, process
from tests.terminals import Terminal

from neuroscript import Engine, PendingApproval

PLUGIN = '''
"""Tools that need an approval; each says in the file "ran" that it ran."""

from pathlib import Path

from neuroscript import Runtime, ToolPolicy


def ran(*values):
    with Path("ran").open("a") as file:
        print(*values, file=file)
    return len(values)


def register(registrar):
    tools = registrar.toolset("p")
    asks = ToolPolicy(requires_approval=True, effects=("deletes",))

    @tools.tool(policy=asks)
    def delete(path: str, force: bool = False) -> int:
        """Delete a file of the shop."""
        return ran("delete", path, force)

    @tools.tool(policy=asks)
    def wipe() -> int:
        """Delete all of them."""
        return ran("wipe")

    @tools.tool(policy=asks)
    def both(rt: Runtime) -> int:
        """Delete one, and then all."""
        return ran("both") + rt.call_tool("p.delete", ("a",)) + rt.call_tool("p.wipe")

    @tools.tool(policy=ToolPolicy(timeout=20.0))
    def within(rt: Runtime) -> int:
        """Delete one in a thread."""
        return rt.call_tool("p.delete", ("a",))
'''

CARD = """\
tool:      p.delete\r
about:     | Delete a file of the shop.\r
effects:   deletes\r
arguments: | path = "a"\r
           | force = false\r
y: yes, once   s: yes, in this session   m: other arguments\r
n: no, or "n because ..." to say why     x: no, and stop the session\r
Allow p.delete? [n] """

NEEDS = "needs an approval, and nobody here can give it"
REFUSED = "neuroscript: p.delete: needs an approval; answer at a terminal, or pass --preapproved 'p.delete'\n"

BEGIN = """
import io, os, sys
sys.path.insert(0, {root!r})
from neuroscript.cli import main

def piped(text):
    reading, writing = os.pipe()
    os.write(writing, text)
    os.close(writing)
    os.dup2(reading, 0)

def into(name, *descriptors):
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for each in descriptors:
        os.dup2(file, each)

{before}
sys.exit(main({words!r}))
"""

WAITS = """
import time
print("ready", flush=True)
while not os.path.exists("typed"):
    time.sleep(0.001)
"""
"""Code of a process that waits until somebody has typed something."""


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a plugin."""
    (tmp_path / "tools.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Takes the words of a command, and gives the terminal on which it was typed."""
    terminals: list[Terminal] = []

    def typed(*words: str, before: str = "") -> Terminal:
        all_words = [words[0], "-p", "tools.py", *words[1:]]
        terminals.append(Terminal(BEGIN.format(root=str(ROOT), before=before, words=all_words)))
        return terminals[-1]

    yield typed
    for each in terminals:
        each.child.kill()
        each.child.wait()


def ended(seen: Terminal, code: int) -> str:
    """Return what comes until a command has ended, which is to be with a code."""
    rest = seen.rest().replace("\r\n", "\n")
    seen.close(code)
    return rest


def ran() -> list[str]:
    """Return what has run."""
    return Path("ran").read_text().splitlines() if Path("ran").exists() else []


def away(*words: str, stdin: bytes = b"") -> Ran:
    """Run a command that stands at no terminal."""
    count = 2 if words[0] == "policy" else 1
    return command(*words[:count], "-p", "tools.py", *words[count:], stdin=stdin, make_engine=None)


def call_line(name: str = "p.delete", *arguments: Any) -> bytes:
    return json.dumps({"id": "1", "name": name, "arguments": arguments}).encode() + b"\n"


# At a terminal


def test_a_call_is_shown_and_runs_when_it_is_approved(terminal: Callable[..., Terminal]) -> None:
    """The card, the question, and the result."""
    seen = terminal("call", "p.delete", "a")
    asked = seen.see("[n] ")
    seen.type("y\n")

    assert (f"{'-' * 79}\r\n{CARD}", "y\n3\n") == (asked, ended(seen, 0))
    assert ["delete a False"] == ran()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("\n", "was not approved"),
        ("n because it is in use\n", "was not approved: it is in use"),
        ("x\n", "was not approved, and the session was stopped"),
        ("\x04", "was not approved: there was no answer: the input ended before an answer came"),
    ],
)
def test_any_other_answer_refuses(answer: str, said: str, terminal: Callable[..., Terminal]) -> None:
    """With 4, and the reason."""
    seen = terminal("call", "p.delete", "a")
    seen.see("[n] ")
    seen.type(answer)

    assert f"neuroscript: p.delete: {said}" == ended(seen, 4).splitlines()[-1]
    assert [] == ran()


def test_other_arguments_go_through_the_line_again(terminal: Callable[..., Terminal]) -> None:
    """They are what runs, and what does not fit is refused as ever."""
    seen = terminal("call", "p.delete", "a")
    seen.see("[n] ")
    seen.type("m\n")
    seen.see("}: ")
    seen.type('{"path": "b", "force": "true"}\n')

    assert "3" == ended(seen, 0).splitlines()[-1]
    assert ["delete b True"] == ran()


@pytest.mark.parametrize("name", ["p.delete", "p.within"])
def test_an_interrupt_at_the_question_ends_the_command(name: str, terminal: Callable[..., Terminal]) -> None:
    """130, one line, and nothing has run; also where a tool asks whose time is limited."""
    seen = terminal("call", name, *(["a"] if name == "p.delete" else []))
    seen.see("[n] ")
    seen.interrupt()

    assert "^Cneuroscript: interrupted\n" == ended(seen, 130)
    assert [] == ran()


def test_what_was_approved_for_the_session_is_not_asked_again(terminal: Callable[..., Terminal]) -> None:
    """A file of calls is one session."""
    Path("calls").write_bytes(call_line("p.delete", "a") * 3)
    seen = terminal("execute", "calls", before="into('results', 1)")
    seen.see("[n] ")
    seen.type("s\n")

    assert "s\n" == ended(seen, 0)
    assert ["delete a False"] * 3 == ran()


def test_a_stop_refuses_all_further_calls_of_the_file(terminal: Callable[..., Terminal]) -> None:
    """Those that need no approval too."""
    Path("calls").write_bytes(call_line("math.add", 1, 2) + call_line("p.delete", "a") + call_line("math.add", 1, 2))
    seen = terminal("execute", "calls", before="into('results', 1)")
    seen.see("[n] ")
    seen.type("x\n")

    assert "x\n" == ended(seen, 4)
    results = [json.loads(line) for line in Path("results").read_text().splitlines()]
    assert [True, "policy.stopped", "policy.stopped"] == [each["ok"] or each["error"]["code"] for each in results]


# Where the streams lead


def test_calls_from_a_pipe_are_asked_about_on_the_terminal(terminal: Callable[..., Terminal]) -> None:
    """No line of the pipe is an answer, even if it looks like one."""
    calls = call_line("p.delete", "a") + b"y\n" + call_line("p.delete", "b")
    seen = terminal("execute", "-", before=f"piped({calls!r}); into('results', 1)")
    first = seen.see("[n] ")
    seen.type("n\n")
    second = seen.see("[n] ")
    seen.type("y\n")

    assert 'path = "a"' in first
    assert 'path = "b"' in second
    assert "y\n" == ended(seen, 4)
    results = [json.loads(line) for line in Path("results").read_text().splitlines()]
    assert ["policy.rejected", "arg.not_json", 3] == [
        each["value"] if each["ok"] else each["error"]["code"] for each in results
    ]
    assert ["delete b False"] == ran()


@pytest.mark.parametrize(
    "before", ["into('all', 1)", "into('all', 2)", "into('all', 1, 2)", "piped(b''); into('all', 1)"]
)
def test_a_question_goes_to_the_terminal_and_not_to_a_file(before: str, terminal: Callable[..., Terminal]) -> None:
    """Wherever results and sentences go, as long as one of the streams is the terminal."""
    seen = terminal("call", "p.delete", "a", before=before)
    asked = seen.see("[n] ")
    seen.type("y\n")
    ended(seen, 0)

    assert asked.endswith(CARD)
    assert Path("all").read_text() in ("3\n", "")
    assert ["delete a False"] == ran()


def test_a_command_with_no_stream_at_a_terminal_asks_nobody(terminal: Callable[..., Terminal]) -> None:
    """It belongs to one, but a program has called it, or it was sent to the background."""
    seen = terminal("call", "p.delete", "a", before="piped(b'y\\n'); into('all', 1, 2)")

    assert "" == ended(seen, 4)
    assert Path("all").read_text() == REFUSED


def test_what_was_typed_before_the_question_is_no_answer(terminal: Callable[..., Terminal]) -> None:
    """Whoever types ahead has not seen it."""
    seen = terminal("call", "p.delete", "a", before=WAITS)
    seen.see("ready\r\n")
    os.write(seen.ours, b"y\n")
    Path("typed").touch()
    seen.see("[n] ")
    seen.type("n\n")

    assert "neuroscript: p.delete: was not approved" == ended(seen, 4).splitlines()[-1]


# At none


@pytest.mark.parametrize(
    "words", [("call", "p.delete", "a"), ("call", "--json", "p.delete", "a"), ("execute", "calls"), ("execute", "-")]
)
def test_without_a_terminal_it_is_refused(words: tuple[str, ...]) -> None:
    """By a sentence on stderr or a result as JSON, and 4; an answer from a pipe does not count, as in a dry run."""
    Path("calls").write_bytes(call_line("p.delete", "a"))
    stdin = call_line("p.delete", "a") if "-" in words else b"y\ny\n"

    done = away(*words, stdin=stdin)
    dry = away(*words, "--dry-run", stdin=stdin)

    assert (4, 4) == (done.code, dry.code)
    if words == ("call", "p.delete", "a"):
        assert (done.out, done.err) == ("", REFUSED)
        assert dry.out == f"p.delete: would be refused: {NEEDS} (policy.approval, by approval)\n"
        assert dry.err == REFUSED
    else:
        assert json.loads(done.out)["error"]["message"] == f"p.delete: {NEEDS}"
        assert json.loads(dry.out)["text"] == NEEDS
        assert (done.err, dry.err) == ("", "")
    assert [] == ran()


def test_a_process_without_a_terminal_refuses() -> None:
    """Of its own, with pipes and nothing else."""
    done = process("call", "-p", str(Path("tools.py").absolute()), "p.delete", "a", stdin=b"y\n")

    assert Ran(4, "", REFUSED) == done


# Without being asked


def test_a_preapproved_tool_runs_unasked() -> None:
    """What the words name adds to what the file names; of others nothing is said."""
    Path("policy.toml").write_text("policy.preapproved = ['p.wipe']\n")

    assert Ran(0, "3\n") == away("call", "--preapproved", "p.delete", "p.delete", "a")
    assert Ran(0, "3\n") == away("call", "--preapproved=TOOL.P.Delete", "p.delete", "a")
    assert 4 == away("call", "--policy", "policy.toml", "--preapproved", "p.delete", "p.both").code
    words = ("--preapproved", "p.both", "--policy", "policy.toml", "--preapproved", "p.delete")
    assert Ran(0, "5\n") == away("call", *words, "p.both")
    assert Ran(0, "5\n") == away("call", *words, "--allow", "p.*", "p.both")


def test_a_preapproval_is_of_an_exact_name() -> None:
    """A pattern is a mistake, and a name of no tool is told."""
    text = "execution policy: preapproved: p.* is not the exact name of a tool; no pattern counts here"
    assert Ran(2, "", f"neuroscript: {text}\n") == away("call", "--preapproved", "p.*", "p.delete", "a")
    ran = away("call", "--preapproved", "p.delet", "math.add", "1", "2")
    assert Ran(0, "3.0\n", "neuroscript: warning: no tool here is touched by --preapproved p.delet\n") == ran


@pytest.mark.parametrize("words", [(), ("--allow", "p.*"), ("--policy", "policy.toml", "--profile", "narrow")])
def test_a_policy_is_looked_at_as_if_somebody_sat_there(words: tuple[str, ...]) -> None:
    """What it says of a call does not depend on where the question is asked."""
    Path("policy.toml").write_text("policy.profiles.narrow.allow = ['p.*', 'math.*']\n")
    checked = away("policy", "check", "--json", *words)
    explained = json.loads(away("policy", "explain", "--json", *words, "p.delete", "a").out)
    preapproved = away("policy", "explain", *words, "--preapproved", "p.delete", "p.delete", "a").out

    assert "p.delete" not in [each["tool"] for each in json.loads(checked.out)["never"]]
    assert ("asks", "approval") == next(
        (each["says"], each["rule"]) for each in explained["gates"] if each["name"] == "approval"
    )
    assert (True, True) == (explained["outcome"]["allowed"], explained["outcome"]["asks"])
    assert "preapproved" in preapproved
    assert "p.delete: would run" in preapproved


def test_a_dry_run_at_a_terminal_says_that_it_would_ask(terminal: Callable[..., Terminal]) -> None:
    """And asks nobody."""
    seen = terminal("call", "--dry-run", "p.delete", "a")

    assert "p.delete: would ask for an approval (* allows it)\n" == ended(seen, 0)


# Put aside


def put_aside(*words: str) -> str:
    """Put a call aside and return its file."""
    done = away("call", "--suspend", "waiting", *words, *(() if words else ("p.delete", "a")))
    (file,) = Path("waiting").iterdir()
    assert 4 == done.code
    assert file.name in done.err
    return str(file)


def test_a_call_that_was_put_aside_runs_once_when_it_is_approved() -> None:
    """Its file is private, and gone before it runs; a second answer finds none."""
    file = put_aside()
    assert 0o600 == Path(file).stat().st_mode & 0o777
    assert [] == ran()

    assert Ran(0, "3\n") == away("approve", "--yes", file)
    text = f"can not read {file}: no such file or directory"
    assert Ran(2, "", f"neuroscript: {text}\n") == away("approve", "--yes", file)
    assert ["delete a False"] == ran()


def test_whoever_sits_there_is_asked_about_a_call_that_was_put_aside(terminal: Callable[..., Terminal]) -> None:
    """With the card that the call would have had; a no leaves the file where it is, and so does an interrupt."""
    file = put_aside()

    for answer, code in (("n\n", 4), ("\x03", 130), ("y\n", 0)):
        assert Path(file).exists()
        seen = terminal("approve", file)
        assert seen.see("[n] ").endswith(CARD)
        seen.type(answer)
        ended(seen, code)

    assert not Path(file).exists()
    assert ["delete a False"] == ran()


def test_a_rejection_is_told_to_the_model_and_ends_the_wait() -> None:
    """As the result that the call has."""
    file = put_aside()
    done = away("approve", "--json", "--reject", "not today", file)

    assert (4, "p.delete: was not approved: not today") == (done.code, json.loads(done.out)["error"]["message"])
    assert not Path(file).exists()
    assert [] == ran()


def test_an_approval_is_none_of_calls_within() -> None:
    """Those wait in files of their own, or are refused where nobody can be asked."""
    file = put_aside("p.both")
    assert 4 == away("approve", "--yes", "--suspend", "within", file).code
    (nested,) = Path("within").iterdir()
    assert ("p.delete", ["both"]) == (PendingApproval.load(nested).tool, ran())

    file = put_aside("p.both")
    assert 4 == away("approve", "--yes", file).code
    assert ["both", "both"] == ran()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--trusted",), 4, "needs a new approval because these have changed: policy"),
        (
            ("--preapproved", "p.delete"),
            4,
            "needs a new approval because these have changed: policy",
        ),
        (("--deny", "p.*"), 4, "denied by the pattern 'p.*' of deny"),
    ],
)
def test_an_answer_counts_under_the_policy_that_was_asked(words: tuple[str, ...], code: int, said: str) -> None:
    """Other options make it another question; the file stays."""
    file = put_aside()

    assert Ran(code, "", f"neuroscript: p.delete: {said}\n") == away("approve", "--yes", *words, file)
    assert Path(file).exists()
    assert [] == ran()


def test_an_answer_counts_for_the_tool_that_was_asked_about(world: Path) -> None:
    """One that has changed is another one."""
    file = put_aside()
    (world / "tools.py").write_text(PLUGIN.replace("Delete a file of the shop.", "Delete files."))
    done = away("approve", "--yes", file)

    said = "needs a new approval because these have changed: fingerprint, digest"
    assert Ran(4, "", f"neuroscript: p.delete: {said}\n") == done


def test_an_application_of_another_session_is_answered_too() -> None:
    """The session is that of the file; what the host permits has to be the same."""
    from neuroscript import ExecutionPolicy, PolicyError, suspending

    with Engine(policy=ExecutionPolicy(approver=suspending("waiting"))) as engine:
        engine.load_plugin("tools.py")
        with engine.session(id="alice") as session, pytest.raises(PolicyError, match=r"is waiting for approval"):
            session.call("p.delete", ("a",))
    (file,) = Path("waiting").iterdir()

    assert Ran(0, "3\n") == away("approve", "--yes", str(file))


def test_a_file_that_others_can_change_is_no_request() -> None:
    """Nor is one that is none at all."""
    file = put_aside()
    Path(file).chmod(0o644)

    assert (2, "") == (away("approve", "--yes", file).code, away("approve", "--yes", file).out)
    for other in ("tools.py", "nowhere", ".", "-", "a\0b"):
        assert 2 == away("approve", "--yes", other).code
    assert 2 == away("approve", "--yes", "--reject", "no", file).code
    assert 2 == away("approve", "--yes").code
    assert [] == ran()


def test_a_directory_that_can_not_be_written_refuses(world: Path) -> None:
    """Nothing waits then, and nothing runs."""
    done = away("call", "--suspend", "tools.py", "p.delete", "a")

    assert 4 == done.code
    assert "it cannot wait for approval: its file cannot be written" in done.err
