"""What a server may ask during a call: answers of the user, the sandbox and the model, and servers that misuse it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ElicitResult
from tests.interop import mcp_asking as asking
from tests.interop.mcp_asking import form

from neuroscript import Engine, ExecutionPolicy, Host, PromptError, SpecError, ToolCall, Turn
from neuroscript.interop.mcp import from_mcp

VERSIONS: Final = ("2025-06-18", "2025-11-25", "2026-07-28")
POLICY: Final = ExecutionPolicy(grants=("mcp:call:far/*", "model:use:*"))


class Scripted:
    """A prompter with prepared answers; it records the prompts."""

    def __init__(self, *answers: str) -> None:
        self.answers = [*answers]
        self.prompts: list[str] = []

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return the next answer."""
        self.prompts.append(prompt)
        if not self.answers:
            raise PromptError("there is no user", code="prompt.noninteractive")
        return self.answers.pop(0)


class Held:
    """A prompter that waits until it is released."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return an answer as soon as it is released."""
        self.begun.set()
        assert self.released.wait(20)
        return "late"


class Model:
    """A model that repeats the last turn."""

    def __init__(self) -> None:
        self.asked: list[list[Turn]] = []

    def ask(self, turns: Any) -> Turn:
        """Return the last turn as the model's."""
        self.asked.append([*turns])
        return Turn("assistant", turns[-1].content)


@contextmanager
def engine_of(version: str, prompter: Any, *, timeout: float = 20, llm: Any = None, **options: Any) -> Iterator[Engine]:
    """Yield an engine with the tools of a server that asks."""
    sandbox = options.pop("sandbox", None)
    server = from_mcp(asking.command(version), group="far", trusted=True, timeout=timeout, **options)
    host = Host(prompter=prompter, llm=llm, **({"sandbox_dir": sandbox} if sandbox else {}))
    with Engine(plugins="none", hooks=[server], policy=POLICY, host=host) as engine:
        yield engine


def answers(engine: Engine, *rounds: dict[str, Any]) -> Any:
    """Return the answers to the questions of the last round."""
    result = engine.execute(ToolCall("far.ask", {"rounds": [*rounds]}))
    assert result.error is None, result.error
    found = json.loads(result.value)
    return found[-1] if isinstance(found, list) else found


def ask(engine: Engine, question: dict[str, Any]) -> Any:
    """Return the answer to one question."""
    return answers(engine, {"q": question})["q"]


WORDS: Final = {"type": "string", "title": "Name", "description": "of\nthe\x1b[2J tea", "minLength": 2}
COUNT: Final = {"type": "integer", "minimum": 1, "default": 3}
SIZE: Final = {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]}
KINDS: Final = {"type": "array", "items": {"type": "string", "enum": ["green", "black"]}, "maxItems": 2}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_user_fills_in_a_form(version: str) -> None:
    """One prompt for each field, whose values have the requested types; the server's text is sanitized."""
    prompter = Scripted("oolong", "", "Large", "yes", "2.50", "green, black")
    question = form(
        "Tell\nme", name=WORDS, count=COUNT, size=SIZE, hot={"type": "boolean"}, price={"type": "number"}, kinds=KINDS
    )
    with engine_of(version, prompter) as engine:
        answer = ask(engine, question)

    values = {"name": "oolong", "count": 3, "size": "l", "hot": True, "price": 2.5, "kinds": ["green", "black"]}
    head = "The MCP server far asks:"
    assert answer == {"action": "accept", "content": values}
    assert prompter.prompts == [
        f"{head} Tell me (/decline to decline) Name (of the\\x1b[2J tea):",
        f"{head} count [default: 3]:",
        f"{head} size [one of Small, Large]:",
        f"{head} hot [yes/no]:",
        f"{head} price:",
        f"{head} kinds [some of green, black]:",
    ]


def test_an_invalid_answer_is_asked_again() -> None:
    """With the reason, and a limited number of times."""
    prompter = Scripted("x", "0", "2", "x", "x", "x", "unused")
    with engine_of("2026-07-28", prompter) as engine:
        first = ask(engine, form(n=COUNT))
        second = ask(engine, form(n=COUNT))

    assert (first, second) == ({"action": "accept", "content": {"n": 2}}, {"action": "cancel"})
    assert prompter.answers == ["unused"]
    assert prompter.prompts[1] == (
        "Invalid: expected int of at least 1, got str (a string must be a decimal integer, such as 42). "
        "The MCP server far asks: Which? (/decline to decline) n [default: 3]:"
    )


REPLIES: Final = {
    "the user declines": (("/decline",), {"action": "decline"}),
    "there is no user": ((), {"action": "decline"}),
    "an optional field is left out": (("",), {"action": "accept", "content": {}}),
}


@pytest.mark.parametrize(("typed", "answer"), REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_form_can_be_declined(version: str, typed: tuple[str, ...], answer: Any) -> None:
    """The call goes on, because the server decides what follows."""
    question = form(a={"type": "string"})
    del question["params"]["requestedSchema"]["required"]
    with engine_of(version, Scripted(*typed)) as engine:
        assert ask(engine, question) == answer


def test_a_title_precedes_a_value() -> None:
    """The user reads only titles, so an answer never means the choice with another title."""
    field = {"type": "string", "enum": ["b", "a"], "enumNames": ["a", "B"]}
    with engine_of("2025-11-25", Scripted("a", "B", "b")) as engine:
        found = [ask(engine, form(a=field))["content"]["a"] for _ in range(3)]

    assert found == ["b", "a", "a"]


def test_an_optional_field_of_a_library_is_filled_in() -> None:
    """It is described as a union with null."""
    field = {"anyOf": [{"type": "integer"}, {"type": "null"}], "title": "Cups"}
    with engine_of("2025-11-25", Scripted("2")) as engine:
        assert ask(engine, form(cups=field)) == {"action": "accept", "content": {"cups": 2}}


def test_a_form_without_fields_is_a_confirmation() -> None:
    """Every answer but a yes declines."""
    with engine_of("2026-07-28", Scripted("yes", "", "no")) as engine:
        found = [ask(engine, form())["action"] for _ in range(3)]

    assert found == ["accept", "decline", "decline"]


def test_the_user_opens_an_address() -> None:
    """Nothing is opened; only https is shown."""
    prompter = Scripted("yes", "no")

    def question(url: str) -> dict[str, Any]:
        return {"method": "elicitation/create", "params": {"mode": "url", "message": "Pay", "url": url}}

    with engine_of("2026-07-28", prompter) as engine:
        found = [
            ask(engine, question(url)) for url in ("https://a.example/x", "https://a.example/x", "http://a.example/x")
        ]

    assert found == [{"action": "accept"}, {"action": "decline"}, {"action": "decline"}]
    assert prompter.prompts[0] == (
        "The MCP server far asks: Pay Open https://a.example/x if you trust it. Is it open? [yes/no]"
    )
    assert len(prompter.prompts) == 2


UNSUPPORTED: Final = {
    "many fields": {f"f{n}": {"type": "string"} for n in range(21)},
    "many choices": {"a": {"type": "string", "enum": [f"c{n}" for n in range(101)]}},
    "a recursive schema": {"a": {"$ref": "#/properties/a"}},
    "an object": {"a": {"type": "object"}},
    "several types": {"a": {"type": ["string", "integer"]}},
    "a list of anything": {"a": {"type": "array"}},
    "a wrong rule": {"a": {"type": "string", "minLength": "x"}},
    "a wrong union": {"a": {"anyOf": 5}},
    "a long schema": {"a": {"type": "string", "description": "x" * 70_000}},
}


@pytest.mark.parametrize("properties", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_an_unsupported_form_is_declined(properties: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Without a prompt; the host's log says why."""
    prompter = Scripted("unused")
    with caplog.at_level(logging.WARNING, "neuroscript"), engine_of("2026-07-28", prompter) as engine:
        answer = ask(engine, form(**properties))

    assert (answer, prompter.prompts) == ({"action": "decline"}, [])
    assert [each.message.partition(":")[0] for each in caplog.records] == [
        "a question of the MCP server was not answered"
    ]


def test_a_pattern_of_a_form_is_not_evaluated() -> None:
    """The protocol has none; this one would take centuries."""
    pattern = {"type": "string", "pattern": "^(a+)+$"}
    with engine_of("2025-11-25", Scripted("a" * 60 + "!")) as engine:
        assert ask(engine, form(a=pattern))["action"] == "accept"


# Roots and samples


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_the_sandbox_is_a_root_if_the_host_permits_it(version: str, tmp_path: Path) -> None:
    """The server otherwise does not know of it."""
    with engine_of(version, Scripted(), roots=True, sandbox=tmp_path) as engine:
        assert ask(engine, {"method": "roots/list"}) == {"roots": [{"uri": tmp_path.as_uri(), "name": "sandbox"}]}


def test_a_server_that_asked_for_the_sandbox_too_early_asks_again(tmp_path: Path) -> None:
    """Before any call, there is no sandbox. The first call notifies the server, and waits for its question."""
    with engine_of("2025-11-25", Scripted(), roots=True, sandbox=tmp_path) as engine:
        _, early, now = json.loads(engine.call("far.answers", []))

    assert early == {"code": -1, "message": "the client refused the request"}
    assert now == {"roots": [{"uri": tmp_path.as_uri(), "name": "sandbox"}]}


def sample(*texts: str, **more: Any) -> dict[str, Any]:
    """Return the request for a sample of the model."""
    messages = [{"role": "user", "content": {"type": "text", "text": each}} for each in texts]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 2, **more}}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_model_is_sampled_if_the_host_permits_it(version: str) -> None:
    """Its answer is cut to the requested tokens."""
    model = Model()
    with engine_of(version, Scripted(), sampling=True, llm=model) as engine:
        answer = ask(engine, sample("Which", "tea is best?", systemPrompt="Be brief."))

    assert answer == {
        "role": "assistant",
        "content": {"type": "text", "text": "tea is b"},
        "model": "host",
        "stopReason": "maxTokens",
    }
    assert model.asked == [[Turn("system", "Be brief."), Turn("user", "Which"), Turn("user", "tea is best?")]]


PICTURE: Final = {"role": "user", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}}
NOT_OFFERED: Final = {
    "roots": ({"method": "roots/list"}, "asks for roots/list, which the client does not offer"),
    "a sample": (sample("a"), "asks for sampling/createMessage, which the client does not offer"),
}
REFUSED_SAMPLES: Final = {
    "tools": (sample("a", tools=[]), "asks for a sample of the model with tools, which the client does not offer"),
    "a picture": (sample(messages=[PICTURE]), "asks for a sample of the model from content that is not text"),
    "a long text": (sample("x" * 100_001), "asks for a sample of the model from more than 100000 characters"),
}


@pytest.mark.parametrize(("question", "reason"), NOT_OFFERED.values(), ids=NOT_OFFERED)
def test_what_the_host_does_not_permit_is_refused(question: dict[str, Any], reason: str) -> None:
    """Older servers receive an error, and newer ones end the call."""
    with engine_of("2025-11-25", Scripted(), llm=Model()) as engine:
        assert ask(engine, question)["message"] in {"List roots not supported", "Sampling not supported"}
    with engine_of("2026-07-28", Scripted(), llm=Model()) as engine:
        result = engine.execute(ToolCall("far.ask", {"rounds": [{"q": question}]}))

    assert str(result.error) == f"far.ask: the server's answer {reason}"


@pytest.mark.parametrize(("question", "reason"), REFUSED_SAMPLES.values(), ids=REFUSED_SAMPLES)
def test_a_sample_beyond_the_limits_is_refused(question: dict[str, Any], reason: str) -> None:
    """Older servers do not receive the reason."""
    model = Model()
    with engine_of("2025-11-25", Scripted(), sampling=True, llm=model) as engine:
        assert ask(engine, question) == {"code": -1, "message": "the client refused the request"}
    with engine_of("2026-07-28", Scripted(), sampling=True, llm=model) as engine:
        result = engine.execute(ToolCall("far.ask", {"rounds": [{"q": question}]}))

    assert str(result.error) == f"far.ask: the server's answer {reason}"
    assert model.asked == []


def test_sampling_needs_a_grant_and_a_model() -> None:
    """Of the calling tool."""
    with from_mcp(asking.command("2026-07-28"), group="far", trusted=True, sampling=True) as server:
        policy = ExecutionPolicy(grants=("mcp:call:far/*",))
        with Engine(plugins="none", toolsets=[server.toolset], policy=policy) as engine:
            refused = engine.execute(ToolCall("far.ask", {"rounds": []})).error
        with Engine(plugins="none", toolsets=[server.toolset], policy=POLICY) as engine:
            missing = engine.execute(ToolCall("far.ask", {"rounds": [{"q": sample("a")}]})).error

    assert refused and (refused.code, refused.retry) == ("policy.capability", "host")
    assert str(missing) == "far.ask: the host provides no model"


# Which call a question belongs to


def test_a_question_outside_any_call_is_declined() -> None:
    """No user is prompted for it."""
    prompter = Scripted("unused")
    with engine_of("2025-11-25", prompter) as engine:
        assert json.loads(engine.call("far.answers", []))[0] == {"action": "decline"}

    assert prompter.prompts == []


def test_a_question_of_one_of_several_calls_is_declined() -> None:
    """Over standard streams, older protocols do not say which one it belongs to."""
    prompter = Scripted("unused")
    with engine_of("2025-11-25", prompter) as engine, ThreadPoolExecutor(1) as other:
        held = other.submit(engine.call, "far.hold", [])
        found = ask(engine, form(a={"type": "string"}))
        while held.done() and found["action"] == "accept":  # the other call came later
            held = other.submit(engine.call, "far.hold", [])
            found = ask(engine, form(a={"type": "string"}))

        assert (found, held.result(20)) == ({"action": "decline"}, '"held"')


def test_each_call_over_http_gets_its_own_questions() -> None:
    """They come on the stream of the call, so sessions of several users can share a connection."""
    hosts = {name: Host(prompter=Scripted(name)) for name in ("ann", "bob")}
    with asking.served() as (url, _), from_mcp(url=url, group="far", trusted=True) as server:
        with Engine(plugins="none", toolsets=[server.toolset], policy=POLICY) as engine, ThreadPoolExecutor(2) as both:
            calls = {name: both.submit(engine.session(host=host).call, "far.ask", []) for name, host in hosts.items()}
            found = {name: json.loads(call.result(20))["content"]["a"] for name, call in calls.items()}

    assert found == {"ann": "ann", "bob": "bob"}


def test_a_question_passes_through_our_own_server(tmp_path: Path) -> None:
    """It reaches the user of the client that called, who sees which server asks."""
    asked: list[str] = []

    async def typed(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": "oolong"})

    async def called() -> Any:
        command = ["-m", "neuroscript", "mcp", "serve", "--policy", str(tmp_path / "p.toml")]
        place = stdio_client(StdioServerParameters(command=sys.executable, args=command, env={**os.environ}))
        async with Client(place, mode="legacy", elicitation_callback=typed) as client:
            return await client.call_tool("far__ask", {"rounds": [{"q": form(a={"type": "string"})}]})

    words = json.dumps(asking.command("2026-07-28"))
    (tmp_path / "p.toml").write_text(f"policy.grants = ['mcp:call:*']\n[mcp.far]\ncommand = {words}\ntrusted = true\n")
    result = asyncio.run(called())

    assert json.loads(result.content[0].text) == {"q": {"action": "accept", "content": {"a": "oolong"}}}
    assert asked == ["The MCP server far asks: Which? (/decline to decline) a:"]


# Misuse


def test_a_question_ends_with_its_call() -> None:
    """The answer comes too late, and the server is still usable."""
    prompter = Held()
    with engine_of("2025-11-25", prompter, timeout=2) as engine:
        result = engine.execute(ToolCall("far.ask", {"rounds": [{"q": form(a={"type": "string"})}]}))
        prompter.released.set()

        assert result.error and (result.error.code, result.error.retry) == ("call.timeout", "later")
        assert json.loads(engine.call("far.answers", []))[0] == {"action": "decline"}


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_server_that_asks_without_end_is_stopped(version: str, caplog: pytest.LogCaptureFixture) -> None:
    """After a limited number of prompts, and with a single message in the log."""
    prompter = Scripted(*(["a"] * 100))
    with caplog.at_level(logging.WARNING, "neuroscript"), engine_of(version, prompter, timeout=2) as engine:
        error = engine.execute(ToolCall("far.ask_forever", {})).error

    assert error is not None
    if version == "2026-07-28":
        assert (str(error), len(prompter.prompts)) == (
            "far.ask_forever: the server's answer asks for input more than 10 times",
            10,
        )
    else:
        assert (error.code, error.retry, len(prompter.prompts)) == ("call.timeout", "later", 20)
        assert [each.message for each in caplog.records if "question" in each.message] == [
            "a question of the MCP server was refused: the server's answer asks more than 20 questions in one call"
        ]


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_server_that_dies_in_a_question_ends_the_call(version: str) -> None:
    """At once, although the user has not answered."""
    prompter = Held()
    with engine_of(version, prompter) as engine:
        error = engine.execute(ToolCall("far.die", {})).error
        prompter.released.set()

    assert error and (error.code, error.retry) == ("mcp.closed", "later")


def test_a_stream_without_end_is_left_with_its_call() -> None:
    """The server notices."""
    with asking.served() as (url, gone), from_mcp(url=url, group="far", trusted=True, timeout=2) as server:
        with Engine(plugins="none", toolsets=[server.toolset], policy=POLICY) as engine:
            error = engine.execute(ToolCall("far.endless", {})).error
            gone.get(timeout=20)

    assert error and (error.code, error.retry) == ("call.timeout", "later")


def test_a_call_with_headers_of_an_old_schema_lists_the_tools_again() -> None:
    """Before the next call, because the server did not report the change."""
    with engine_of("2026-07-28", Scripted()) as engine:
        engine.call("far.answers", [])
        error = engine.execute(ToolCall("far.mismatch", {})).error

        assert str(error) == "far.mismatch: the server refused: the headers do not match"
        assert engine.call("far.mismatch", []) == "1"


def test_a_request_state_is_limited() -> None:
    """It is sent back with each round."""
    with engine_of("2026-07-28", Scripted()) as engine:
        error = engine.execute(ToolCall("far.huge_state", {})).error

    assert str(error) == "far.huge_state: the server's answer has a request state of more than 65536 characters"


def test_an_unknown_type_of_result_is_refused() -> None:
    """It is not an empty result; see MCP 2026-07-28, "ResultType"."""
    with engine_of("2026-07-28", Scripted()) as engine:
        error = engine.execute(ToolCall("far.odd_result", {})).error

    assert str(error) == "far.odd_result: the server's answer has an unsupported result type"


def test_a_round_without_questions_is_repeated() -> None:
    """With the state unchanged."""
    with engine_of("2026-07-28", Scripted("tea")) as engine:
        assert answers(engine, {}, {"q": form(a={"type": "string"})}) == {
            "q": {"action": "accept", "content": {"a": "tea"}}
        }


# Tasks


def run_task(engine: Engine, *states: dict[str, Any], **more: Any) -> Any:
    """Return the result of a tool that runs as a task with these states."""
    return engine.execute(ToolCall("far.task", {"states": [*states], **more}))


WORKING: Final = {"status": "working", "statusMessage": "half"}


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_task_is_polled_until_it_ends(version: str) -> None:
    """The messages about its status are the progress of the call."""
    seen: list[tuple[float, str]] = []
    with from_mcp(asking.command(version), group="far", trusted=True) as server:
        host = Host(progress=lambda each: seen.append((each.done, each.text)))
        with Engine(plugins="none", toolsets=[server.toolset], policy=POLICY, host=host) as engine:
            result = run_task(
                engine, WORKING, WORKING, {"status": "working", "statusMessage": "x" * 5_000}, {"status": "completed"}
            )

    assert (result.error, result.value, seen) == (None, "[]", [(1, "half"), (2, f"{'x' * 999}…")])


def test_a_task_asks() -> None:
    """Each question is answered once, although each state repeats it."""
    prompter = Scripted("tea", "unused")
    question = {"status": "input_required", "inputRequests": {"q": form(a={"type": "string"})}}
    with engine_of("2026-07-28", prompter) as engine:
        result = run_task(engine, WORKING, question, question, {"status": "completed"})

    assert (result.error, json.loads(result.value)) == (None, [{"q": {"action": "accept", "content": {"a": "tea"}}}])
    assert prompter.answers == ["unused"]


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_task_that_never_ends_is_cancelled_with_its_call(version: str, tmp_path: Path) -> None:
    """The server receives a request to cancel it."""
    file = tmp_path / "cancelled"
    with engine_of(version, Scripted(), timeout=1) as engine:
        result = run_task(engine, WORKING, file=str(file))
        assert result.error and (result.error.code, result.error.retry) == ("call.timeout", "later")
        for _ in range(200):
            if file.exists():
                break
            threading.Event().wait(0.05)

    assert file.read_text() == "cancelled"


def test_a_task_that_asks_in_vain_is_cancelled(tmp_path: Path) -> None:
    """Its call fails with the error of the host."""
    file = tmp_path / "cancelled"
    question = {"status": "input_required", "inputRequests": {"q": sample("a")}}
    with engine_of("2026-07-28", Scripted(), sampling=True) as engine:
        error = run_task(engine, question, WORKING, file=str(file)).error

    assert (str(error), file.read_text()) == ("far.task: the host provides no model", "cancelled")


ENDS: Final = {
    "cancelled": ({"status": "cancelled"}, "mcp.refused", "host", "the server has cancelled the task"),
    "failed": (
        {"status": "failed", "error": {"code": -32603, "message": "no\ntea"}},
        "mcp.refused",
        "host",
        "the server refused: no tea",
    ),
    "unknown": ({"status": "lost"}, "mcp.answer", "never", "the server's answer contains an invalid task"),
}


@pytest.mark.parametrize(("state", "code", "retry", "text"), ENDS.values(), ids=ENDS)
def test_a_task_that_does_not_complete_fails(state: Any, code: str, retry: str, text: str, tmp_path: Path) -> None:
    """With the reason of the server."""
    with engine_of("2026-07-28", Scripted()) as engine:
        error = run_task(engine, WORKING, state, file=str(tmp_path / "unused")).error

    assert error and (error.code, error.retry, error.text) == (code, retry, text)


def test_an_invalid_task_is_an_error() -> None:
    """It has no id."""
    with engine_of("2026-07-28", Scripted()) as engine:
        error = engine.execute(ToolCall("far.odd_task", {})).error

    assert str(error) == "far.odd_task: the server's answer contains an invalid task"


# Authorization


def test_an_authorization_is_for_a_url() -> None:
    """An object of another kind is refused."""
    with pytest.raises(SpecError) as caught:
        from_mcp(url="http://127.0.0.1:1/mcp", group="far", auth=object())

    assert caught.value.problems == ("auth: expected an httpx2.Auth, with a url",)
