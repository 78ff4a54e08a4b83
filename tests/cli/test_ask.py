"""``neuroscript ask`` with a real model server, and with real processes and a real terminal where needed."""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, CommandResult, asked_of, command, process, start
from tests.cli.test_approvals import PLUGIN
from tests.llm.server import APIS, ModelReply, ModelServer, asks, call, cut_after, hangs, html, refuses, says, status
from tests.terminals import PATIENCE, Terminal

from neuroscript.cli.chat.answer_types import EXPECTED

ADD = call("math__add", {"num1": "2", "num2": 3})
ADDED = """\
neuroscript: calls math.add {"num1": "2", "num2": 3}
neuroscript: math.add: 5.0 (repaired num1: str -> float, num2: int -> float)
"""
LOGIN = '''
"""A tool that takes a secret."""

from neuroscript import ArgSpec, ArgType, ToolSpec


def register(registrar):
    args = (ArgSpec("user", ArgType.STRING), ArgSpec("password", ArgType.STRING, secret=True))
    spec = ToolSpec("login", "s", args, return_type=ArgType.BOOL)
    registrar.toolset("s").add(spec, lambda rt, user, password: True)
'''
HOSTILE = "a\x1b]0;b\x07\x1b[2J\x9b5m\r\u202ec\td\ne"

UNREADABLE = (
    *("number", "", "list[", "list[1:2]", "list[number]", "list[]", "print('x')", "int + str", "int.real", "int()"),
    *("Literal[1.5]", "Literal[...]", "...", "'int'", "lambda: 1", "[int]", "int | 5", "list[*int]", "(" * 300),
    *("int |" * 300, "list[" * 250 + "int" + "]" * 250),
)
"""Types that are refused with a hint."""

SHOP = '''
"""A module with a class."""

from dataclasses import dataclass
from datetime import date

print("imported")


@dataclass
class Item:
    name: str
    day: date
'''


def ask(server: ModelServer, *words: str, stdin: bytes = b"", api: str = "openai-chat") -> CommandResult:
    """Ask the model of a server in this process, because a new process needs a second to import the model library."""
    return command(*asked_of(server, "ask", *words, api=api), stdin=stdin, make_engine=None)


# Answers


@pytest.mark.parametrize("words", [(), ("--no-stream",)], ids=["streamed", "whole"])
@pytest.mark.parametrize("api", APIS)
def test_answer_goes_to_stdout_and_calls_to_stderr(api: str, words: tuple[str, ...], server: ModelServer) -> None:
    """This works with all three APIs; text before a call has its own lines."""
    server.script(asks(ADD, call("nope__x"), text="Let me see."), says("It is\nfive."))

    result = ask(server, "--tools", "math.*", *words, "How much is it?", api=api)

    assert (result.code, result.out) == (0, "Let me see.\nIt is\nfive.\n")
    assert result.err == (
        f"{ADDED}neuroscript: calls nope.x {{}}\n"
        "neuroscript: nope.x: error tool.not_found: no tool with this name is available. "
        "Fix the arguments and call again.\n"
    )
    assert [request.streamed for request in server.requests] == [not words] * 2


def test_no_tool_is_offered_without_the_option(server: ModelServer) -> None:
    """A tool that the model calls anyway does not run."""
    server.script(asks(ADD), says("no"))

    result = ask(server, "How much?")

    assert (result.code, result.out) == (0, "no\n")
    assert "error tool.not_found" in result.err or "error policy" in result.err
    assert "tools" not in server.requests[0].body


@pytest.mark.parametrize("api", APIS)
def test_model_searches_for_tools_above_the_number(api: str, server: ModelServer) -> None:
    """With all three APIs; the tools that it finds are in its next request."""
    search = call("tools__search", {"query": "add two numbers", "limit": 1})
    server.script(asks(search), asks(ADD), says("five"))

    result = ask(server, "--tools", "math.*", "--search-above", "5", "How much is it?", api=api)

    assert (result.code, result.out) == (0, "five\n")
    assert "neuroscript: tools.search: You can now call: math__add\n" in result.err
    assert result.err.endswith(ADDED)
    bodies = [json.dumps(request.body["tools"]) for request in server.requests]
    assert [("tools__search" in body, "math__add" in body, "math__sqrt" in body) for body in bodies] == [
        (True, False, False), (True, True, False), (True, True, False),
    ]  # fmt: skip


def test_only_matching_tools_are_offered(server: ModelServer) -> None:
    """The option can be repeated."""
    server.script(says("ok"))

    ask(server, "--tools", "math.add", "--tools", "math.sq*", "hi")

    names = [tool["function"]["name"] for tool in server.requests[0].body["tools"]]
    assert names == ["math__add", "math__sqrt"]


@pytest.mark.parametrize("granted", [True, False])
def test_tool_may_use_the_model_with_a_grant(granted: bool, server: ModelServer) -> None:
    """It uses the model of the command, and needs only its capability."""
    grant = ("--grant", "model:use:*") if granted else ()
    between = [says("seven")] if granted else []
    server.script(asks(call("llm__ask", {"prompt": "Name a prime."})), *between, says("done"))

    result = ask(server, "--tools", "llm.*", *grant, "Ask the user.")

    assert (result.code, result.out) == (0, "done\n")
    reported = "llm.ask: seven\n" if granted else "llm.ask: error policy.capability: "
    assert reported in result.err
    assert len(server.requests) == 2 + granted


@pytest.mark.parametrize("words", [(), ("-",)], ids=["none", "-"])
def test_prompt_is_read_from_a_pipe(words: tuple[str, ...], server: ModelServer) -> None:
    """It may have several lines; the last newline is removed."""
    server.script(says("ok"))

    result = ask(server, "--system", "Be short.", *words, stdin="How\nmuch é?\n".encode())

    assert result == CommandResult(0, "ok\n")
    assert server.requests[0].body["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "How\nmuch é?"},
    ]


def test_only_the_typed_answer_is_printed(server: ModelServer) -> None:
    """An answer that does not fit goes back to the model, and is not printed."""
    server.script(says("Five!"), says("```json\n5\n```"))

    assert ask(server, "--answer-type", "int", "How much?") == CommandResult(0, "5\n")
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("text", "said", "printed"),
    [
        ("list[int]", '["1", 2]', "[1,2]"),
        ("dict[str, float]", '{"a": "1.5"}', '{"a":1.5}'),
        ("int | None", "null", "null"),
        ("Optional[int]", "7", "7"),
        ("Literal['a', 'b:c']", "b:c", "b:c"),
        ("Literal[-1, 'auto']", "-1", "-1"),
        ("date", "2020-01-31", "2020-01-31"),
        ("tuple[int, ...]", "[1]", "[1]"),
        ("set[str]", '["a", "a"]', '["a"]'),
        ("list[dict[str, Decimal]]", '[{"a": 1.50}]', '[{"a":"1.5"}]'),
    ],
)
def test_answer_type_may_be_an_annotation(text: str, said: str, printed: str, server: ModelServer) -> None:
    """The printed answer is plain data."""
    server.script(says(said))

    result = ask(server, "--answer-type", text, "Which?")

    assert (result.code, result.out.replace(": ", ":").replace(", ", ",")) == (0, printed + "\n")


@pytest.mark.parametrize("text", ["list[shop:Item]", "shop:Item | list[shop:Item]"])
def test_answer_type_may_be_a_class_of_the_environment(
    text: str, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its module prints is not part of the answer."""
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "")  # an engine reads distributions anew for each search path
    server.script(says('[{"name": "tea", "day": "soon"}]'), says('[{"name": "tea", "day": "2020-01-31"}]'))

    try:
        result = ask(server, "--answer-type", text, "What?")
    finally:
        sys.modules.pop("shop", None)

    assert (result.code, json.loads(result.out)) == (0, [{"name": "tea", "day": "2020-01-31"}])
    assert result.err.startswith("imported\n")


def test_module_that_fails_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text("raise SystemExit(7)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    result = command("ask", "--answer-type", "broken:Item", "hi", make_engine=None)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("neuroscript: argument --answer-type: cannot import broken (SystemExit)")


def test_environment_selects_the_model_and_the_key(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The OpenAI key is not sent to another server."""
    server.script(says("a"), says("b"))
    words = ("ask", "--base-url", server.base_url(), "hi")
    monkeypatch.setenv("NEUROSCRIPT_MODEL", "small")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")

    command(*words, make_engine=None)
    monkeypatch.setenv("NEUROSCRIPT_MODEL_KEY", "sk-mine")
    command(*words, make_engine=None)

    assert [request.body["model"] for request in server.requests] == ["small", "small"]
    keys = [request.headers["Authorization"] for request in server.requests]
    assert ("canary" not in keys[0], keys[1]) == (True, "Bearer sk-mine")


def test_json_prints_the_whole_conversation(server: ModelServer) -> None:
    """stderr does not change."""
    server.script(asks(call("math__add", {"num1": "2", "num2": 3}, "c1"), text="Well."), says("five"))

    result = ask(server, "--tools", "math.*", "--json", "hi")

    data = json.loads(result.out)
    assert type(data["turns"][2]["tool_results"][0].pop("seconds")) is float
    assert (result.code, result.err) == (0, ADDED)
    assert data == {
        "answer": "five",
        "turns": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "Well.",
                "tool_calls": [{"id": "c1", "name": "math.add", "arguments": '{"num1": "2", "num2": 3}'}],
            },
            {
                "role": "tool",
                "content": "",
                "tool_results": [
                    {
                        "id": "c1",
                        "tool": "math.add",
                        "ok": True,
                        "value": 5.0,
                        "repairs": [
                            {"where": "num1", "got": "str", "became": "float"},
                            {"where": "num2", "got": "int", "became": "float"},
                        ],
                    }
                ],
            },
            {"role": "assistant", "content": "five"},
        ],
        "usage": {"input_tokens": 20, "output_tokens": 6},
        "retries": [],
    }


def test_retries_are_reported(server: ModelServer) -> None:
    """They are in the JSON output too."""
    server.script(status(503), says("ok"))

    result = ask(server, "--json", "hi")

    assert result.err.startswith("neuroscript: retrying in 0.") and result.err.endswith(" s (llm.server)\n")
    assert ["llm.server"] == [each["code"] for each in json.loads(result.out)["retries"]]


# Failures

FAILURES = {
    "html": (html(), 1, "llm.format", "host", 1),
    "auth": (status(401), 1, "llm.auth", "host", 1),
    "cut": (cut_after(900, ModelReply("one two three four five six seven"), True), 1, "llm.incomplete", "later", 1),
    "refused": (refuses(), 1, "llm.refused", "never", 1),
    "no end": (asks(ADD), 4, "llm.turn_limit", "host", 3),
    "silence": (hangs(20), 124, "llm.timeout", "later", 1),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_failure_has_a_message_an_exit_code_and_a_transcript(kind: str, server: ModelServer, tmp_path: Path) -> None:
    """This includes limits, for which the requests are counted; there is never a traceback."""
    step, code, word, retry, count = FAILURES[kind]
    server.script(forever=step)
    file = tmp_path / "transcript.txt"
    limits = ("--max-turns", "3", "--timeout", "1" if kind == "silence" else "20")

    result = ask(server, *limits, "--tools", "math.add", "--json", "--transcript", str(file), "hi")

    data = json.loads(result.out)
    assert (result.code, data["error"]["code"], data["error"]["retry"]) == (code, word, retry)
    assert result.err.splitlines()[-1] == f"neuroscript: {data['error']['message']} ({word}, retry: {retry})"
    assert len(server.requests) == count
    assert "Traceback" not in result.err
    kept = file.read_text().splitlines()
    assert (kept[0], kept[-1]) == ("user: hi", f"ended: {data['error']['message']} ({word}, retry: {retry})")
    assert ("assistant: one two" in file.read_text()) is (kind == "cut")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ["--model", "nosuch"],
            "unknown model nosuch; to list the known models, run: neuroscript models list",
            id="model",
        ),
        pytest.param(
            ["--api", "anthropic", "--model", "x"],
            "no key for this model; set ANTHROPIC_API_KEY, or run: llm keys set anthropic",
            id="key",
        ),
        pytest.param([], "no key for this model; set OPENAI_API_KEY, or run: llm keys set openai", id="default"),
    ],
)
def test_unusable_model_is_a_usage_error(words: list[str], message: str) -> None:
    """It is reported before a request; --json prints a value too."""
    result = command("ask", *words, "--json", "hi", make_engine=None)

    assert (result.code, json.loads(result.out)["error"]["message"]) == (2, message)
    assert result.err.startswith(f"neuroscript: {message} (llm.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--base-url", "http://\x01", "hi"], "argument --base-url: expected a URL such as http://127.0.0.1:8080/v1"),
        (["--base-url", "nowhere", "hi"], "argument --base-url: expected a URL such as http://127.0.0.1:8080/v1"),
        (["--base-url", "http://[", "hi"], "argument --base-url: expected a URL such as http://127.0.0.1:8080/v1"),
        (["--max-turns", "0", "hi"], "argument --max-turns: expected a positive integer"),
        (["--search-above", "-1", "hi"], "argument --search-above: expected a non-negative integer"),
        (["--timeout", "nan", "hi"], "argument --timeout: expected a number of seconds above 0"),
        *((["--answer-type", text, "hi"], f"argument --answer-type: {EXPECTED}") for text in UNREADABLE),
        (["--answer-type", "complex:x", "hi"], "argument --answer-type: cannot import complex (ModuleNotFoundError)"),
        (["--answer-type", "list[json:Nothing]", "hi"], "argument --answer-type: json:Nothing does not exist"),
        (["--answer-type", "json:dumps", "hi"], f"argument --answer-type: {EXPECTED}"),
        ([" "], "the prompt is empty"),
        ([], "the prompt is empty"),
        (["--base-url", "http://127.0.0.1:9", "--tools", "zz*", "hi"], "--tools zz* matches no tool that may be called here"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_refused(words: list[str], message: str) -> None:
    """The exit code is 2, and no request is sent."""
    result = command("ask", *words, make_engine=None)

    assert (result.code, result.out) == (2, "")
    assert result.err.removesuffix("\n").removesuffix(" (see neuroscript ask --help)") == f"neuroscript: {message}"


def test_there_is_no_option_for_a_key() -> None:
    """It would be visible in the process list and in the history of the shell."""
    result = command("ask", "--key", "sk-canary", "hi", make_engine=None)

    assert (result.code, result.out) == (2, "")
    assert result.err == "neuroscript: unknown option --key (see neuroscript ask --help)\n"


@pytest.mark.parametrize("missing", ["llm", "openai"])
def test_missing_package_is_reported_with_the_install_command(missing: str, tmp_path: Path) -> None:
    """The installation has only the core."""
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError({missing!r}, name={missing!r})\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    words = ("--base-url", "http://127.0.0.1:9", "--model", "x") if missing == "openai" else ()

    result = process("ask", *words, "hi", PYTHONPATH=path, NEUROSCRIPT_PLUGINS="")

    assert (result.code, "install it with: pip install " in result.err, "Traceback" in result.err) == (
        2,
        True,
        False,
    ), result


@pytest.mark.slow
def test_interrupt_writes_the_transcript(server: ModelServer, tmp_path: Path) -> None:
    """It contains the calls, their results in order, and the beginning of the answer, but no secrets."""
    (tmp_path / "login.py").write_text(LOGIN)
    login = call("s__login", {"user": "eve", "password": "canary-12345678"}, "c1")
    server.script(asks(login, ADD), hangs(20, 700, ModelReply("one two three four five six seven eight nine ten")))
    file = tmp_path / "transcript.txt"
    words = ("-p", str(tmp_path / "login.py"), "--tools", "s.*", "--tools", "math.add", "--transcript", str(file), "hi")
    child = start(*asked_of(server, "ask", *words))
    assert child.stdout is not None
    output = child.stdout.read(3)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)

    assert (output, child.returncode, err.decode().splitlines()[-1]) == (b"one", 130, "neuroscript: interrupted")
    assert b"neuroscript: calls s.login (its arguments are secret)\n" in err
    lines = file.read_text().splitlines()
    assert (b"canary" in err, "canary" in file.read_text()) == (False, False)
    assert lines[0] == "user: hi"
    assert lines[1].startswith("assistant: calls s.login ") and "eve" in lines[1]
    assert lines[2] == 'assistant: calls math.add {"num1": "2", "num2": 3}'
    assert lines[3].partition(" (")[0] == "tool: s.login: true"
    assert lines[4] == "tool: math.add: 5.0 (repaired num1: str -> float, num2: int -> float)"
    assert lines[5].startswith("assistant: one") and lines[6:] == ["ended: interrupted"]


def test_closed_output_ends_the_command(server: ModelServer) -> None:
    """No further call is made."""
    server.script(asks(ADD, text="Let me add."), says("never asked for"))

    words = asked_of(server, "ask", "--tools", "math.*", "hi")
    result = process(*words, shell="| true; exit ${PIPESTATUS[0]}", before="sleep 0;")

    assert result.code == 5
    assert len(server.requests) == 1


# On a terminal

BEGIN = """
import sys
sys.path.insert(0, {root!r})
from neuroscript.cli import main
sys.exit(main({words!r}))
"""


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Start a command with a plugin on a terminal, and return the terminal."""
    (tmp_path / "tools.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "")
    terminals: list[Terminal] = []

    def typed(*words: str) -> Terminal:
        terminals.append(Terminal(BEGIN.format(root=str(ROOT), words=words)))
        return terminals[-1]

    yield typed
    for each in terminals:
        each.child.kill()
        each.child.wait()


def wait_for_output(seen: Terminal, text: str) -> str:
    """Wait until a string has been printed, whatever follows it, and return the output."""
    all_of_it = b""
    while text.encode() not in all_of_it:
        assert select.select([seen.ours], [], [], PATIENCE)[0], all_of_it
        all_of_it += os.read(seen.ours, 1024)
    return all_of_it.decode()


@pytest.mark.slow
def test_text_is_streamed_and_cannot_control_the_terminal(
    terminal: Callable[..., Terminal], server: ModelServer
) -> None:
    """The first piece appears before the server sends the rest; text, calls and tool names are escaped."""
    answer = f"one two three four five six seven eight nine ten {HOSTILE}"
    server.script(asks(call("a\x1b[31m", {HOSTILE: HOSTILE}), text=HOSTILE), hangs(20, 700, ModelReply(answer)))
    seen = terminal(*asked_of(server, "ask", "hi"))
    shown = wait_for_output(seen, "one ")
    threading.Timer(0, server.reset).start()
    shown += seen.rest()
    seen.close(0)

    escaped = r"a\x1b]0;b\x07\x1b[2J\x9b5m\r\u202ec" + "\td\r\ne\r\n"
    assert shown.startswith(escaped) and shown.endswith(f"ten {escaped}")
    assert shown.replace("\r\n", "").replace("\t", "").isprintable()


@pytest.mark.slow
def test_call_is_approved_at_the_terminal(
    terminal: Callable[..., Terminal], server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prompt is the usual one; the model receives the result or the refusal.

    A spinner is shown while the model works, and is removed before the text.
    """
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    calls = asks(call("p__delete", {"path": "a"}), call("p__delete", {"path": "b"}))
    server.script(calls, hangs(20, 0, ModelReply("done")))
    seen = terminal(*asked_of(server, "ask", "-p", "tools.py", "--tools", "p.*", "hi"))
    seen.see("[n] ")
    seen.type("y\n")
    seen.see("[n] ")
    seen.type("n because it is mine\n")
    wait_for_output(seen, "waiting for the model")
    while len(server.requests) < 2:
        time.sleep(0.01)
    request = server.requests[1]
    threading.Timer(0, server.reset).start()
    rest = seen.rest()
    seen.close(0)

    assert rest.endswith("\x1b[2Kdone\r\n")
    assert Path("ran").read_text() == "delete a False\n"
    reported = [each["content"] for each in request.body["messages"] if each["role"] == "tool"]
    assert (reported[0], "it is mine" in reported[1]) == ("3", True)


def test_transcript_is_private(server: ModelServer, tmp_path: Path) -> None:
    """It contains prompts and arguments, so other users cannot read it."""
    server.script(says("ok"))
    ask(server, "--transcript", str(tmp_path / "t"), "hi")

    assert (tmp_path / "t").read_text() == "user: hi\nassistant: ok\n"
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o600
