"""``ask`` and ``aask``: one typed answer without tools, from a host and inside a tool of a real engine."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.llm.scripted_models import Script, asks, says
from tests.llm.server import APIS, Api, ModelServer, hangs, refuses, status
from tests.llm.server import says as replies

import neuroscript
from neuroscript import (
    ArgSpec,
    CallError,
    CallTimeout,
    Engine,
    ExecutionPolicy,
    Host,
    Limits,
    MemoryAudit,
    Runtime,
    SpecError,
    ToolCall,
    ToolPolicy,
    Toolset,
    Turn,
    aask,
    ask,
)
from neuroscript.llm import ConversationError, converse
from neuroscript.llm import Model as Client
from neuroscript.testing.replay import Replayed, replay

SECRET = "s3cr3t-value-0123"


@dataclass
class Item:
    name: str
    day: date


TEA = Item("tea", date(2020, 1, 31))
TEA_TEXT = '[{"name": "tea", "day": "2020-01-31"}]'


def awaited(*args: Any, **options: Any) -> Any:
    """Return the result of ``aask``."""
    return asyncio.run(aask(*args, **options))


BOTH = pytest.mark.parametrize("function", [ask, awaited], ids=["sync", "awaited"])


# Hosts


@BOTH
@pytest.mark.parametrize("api", APIS)
def test_answer_is_an_instance(function: Any, api: Api, server: ModelServer, reach: Callable[..., Client]) -> None:
    """The model receives the schema, but no tools."""
    server.script(replies(f"```json\n{TEA_TEXT}\n```"))

    assert [TEA] == function(reach(api), "What is delivered?", answer=list[Item])
    (request,) = server.requests
    assert "JSON Schema" in str(request.body) and "tools" not in request.body


@BOTH
def test_any_text_is_accepted_without_a_type(function: Any) -> None:
    model = Script([says("Ada.")])
    history = (Turn("user", "Hi"), says("Hello."))

    assert function(model, "Who?", system="Be brief.", history=history) == "Ada."
    assert model.received == [(Turn("system", "Be brief."), *history, Turn("user", "Who?"))]


@BOTH
def test_invalid_answer_goes_back_with_its_problems(function: Any) -> None:
    model = Script([says('[{"name": "tea", "day": "soon"}]'), says(TEA_TEXT)])

    assert [TEA] == function(model, "What?", answer=list[Item])
    request = model.received[1][-1]
    assert request.role == "user" and "answer[0]['day']" in request.content and "soon" not in request.content


@BOTH
def test_last_invalid_answer_is_an_error_without_values(function: Any) -> None:
    model = Script([says("hunter2")] * 3)

    with pytest.raises(ConversationError) as caught:
        function(model, "How many?", answer=int, attempts=2)

    error = caught.value
    assert (error.code, error.retry, len(model.received)) == ("llm.answer", "never", 2)
    assert error.text.startswith("none of 2 turns gave a valid answer: answer: expected ") and "hunter2" not in str(
        error
    )
    assert [turn.role for turn in error.conversation.turns] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]


@BOTH
def test_null_is_an_answer(function: Any) -> None:
    assert function(Script([says("null")]), "Which?", answer=Item | None) is None


@BOTH
def test_calls_that_the_model_requests_do_not_run(function: Any) -> None:
    with pytest.raises(ConversationError) as caught:
        function(Script([asks(("math.add", [1, 2]))]), "Go.")

    assert (caught.value.code, caught.value.retry) == ("llm.call_limit", "host")


@BOTH
def test_errors_of_the_model_are_typed(function: Any, server: ModelServer, reach: Callable[..., Client]) -> None:
    """A refusal and a status keep their codes; any other exception of a model is ``llm.failed`` with its cause."""
    server.script(refuses(), status(401))
    client = reach("openai-chat")
    broken: Any = Script([ZeroDivisionError()])

    codes = []
    for model in (client, client, broken):
        with pytest.raises(ConversationError) as caught:
            function(model, "Go.", answer=int)
        codes.append((caught.value.code, caught.value.retry))

    assert codes == [("llm.refused", "never"), ("llm.auth", "host"), ("llm.failed", "host")]
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@BOTH
def test_failed_conversation_has_its_usage(function: Any, server: ModelServer, reach: Callable[..., Client]) -> None:
    server.script(replies("no"), replies("no"))

    with pytest.raises(ConversationError) as caught:
        function(reach("openai-chat"), "Go.", answer=int, attempts=2)

    assert caught.value.conversation.usage.output_tokens > 0 and len(caught.value.conversation.replies) == 2


@BOTH
def test_invalid_parameters_are_listed_at_once(function: Any) -> None:
    with pytest.raises(SpecError) as caught:
        function(None, 1, answer=5, attempts=0)

    problems = caught.value.problems
    assert [problem.split(" ")[0] for problem in problems] == ["llm", "attempts", "prompt", "answer"]


def test_cancelled_request_is_abandoned() -> None:
    """The caller does not wait for the model."""
    free, started = threading.Event(), threading.Event()

    class Slow(Script):
        def ask(self, turns: Sequence[Turn]) -> Turn:
            started.set()
            free.wait(20)
            return says("late")

    async def cancel() -> None:
        task = asyncio.ensure_future(aask(Slow([]), "Go."))
        await asyncio.to_thread(started.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert not free.is_set()
    free.set()


def test_names_are_exported_twice() -> None:
    """Hosts find them beside ``converse``, authors beside ``Runtime``."""
    assert (neuroscript.ask, neuroscript.aask) == (neuroscript.llm.ask, neuroscript.llm.aask)


# Tools

USING = ToolPolicy(capabilities=("model:use", "secret:read:key"))


def engine_with(
    model: Any,
    *,
    policy: ToolPolicy = USING,
    grants: Sequence[str] | None = None,
    limits: Limits | None = None,
    secrets: Any = {"key": SECRET},  # noqa: B006 - not changed
    **options: Any,
) -> Engine:
    """Return an engine whose tools ask for a list of items."""
    toolset = Toolset("t")

    @toolset.tool(policy=policy)
    def items(rt: Runtime, about: str) -> list[Item]:
        """Return what a model knows.

        Args:
            about: The subject.
        """
        return ask(rt.llm, about, answer=list[Item], attempts=2)

    @toolset.tool(policy=policy)
    async def later(rt: Runtime, about: str) -> list[Item]:
        """Return what a model knows.

        Args:
            about: The subject.
        """
        return await aask(rt.llm, about, answer=list[Item], attempts=2)

    @toolset.tool(policy=policy)
    def leaks(rt: Runtime) -> int:
        """Send a secret to a model."""
        return ask(rt.llm, f"Count {rt.secret('key')}.", system=rt.secret("key"), answer=int, attempts=2)

    @toolset.tool(policy=policy)
    def spends(rt: Runtime) -> int:
        """Reserve a request for each attempt, and a price."""
        rt.spend("net_calls", 2)
        rt.spend("EUR", "0.10")
        return ask(rt.llm, "How many?", answer=int, attempts=2)

    @toolset.tool(policy=policy)
    def tokens(rt: Runtime) -> list[int]:
        """Return the tokens of two replies that are not valid."""
        try:
            return [ask(rt.llm, "How many?", answer=int, attempts=2)]
        except ConversationError as error:
            usage = error.conversation.usage
            return [usage.input_tokens, usage.output_tokens]

    @toolset.tool(policy=policy)
    def token(rt: Runtime) -> str:
        """Print a secret answer."""
        answer: str = ask(rt.llm, "Which token?", answer=ArgSpec("token", "string", secret=True))
        rt.println(answer)
        return answer

    host = Host(llm=model, secrets=secrets, stdout=options.pop("stdout", None))
    permitted = ["model:use:*", "secret:read:*"] if grants is None else grants
    rules = ExecutionPolicy(grants=permitted, limits=limits or Limits())
    return Engine(toolsets=[toolset], plugins="none", host=host, policy=rules, **options)


TOOLS = pytest.mark.parametrize("name", ["t.items", "t.later"])


@TOOLS
def test_tool_receives_instances(name: str, server: ModelServer, reach: Callable[..., Client]) -> None:
    server.script(replies("none"), replies(TEA_TEXT))

    with engine_with(reach("openai-chat")) as engine:
        result = asyncio.run(engine.acall(name, ["tea"]))

    assert result == [{"name": "tea", "day": "2020-01-31"}]
    assert len(server.requests) == 2


@TOOLS
@pytest.mark.parametrize(
    ("policy", "grants"), [(ToolPolicy(), None), (USING, ["secret:read:*"])], ids=["undeclared", "not granted"]
)
def test_model_needs_its_capability(
    name: str, policy: ToolPolicy, grants: list[str] | None, server: ModelServer, reach: Callable[..., Client]
) -> None:
    """No request is sent."""
    with (
        engine_with(reach("openai-chat"), policy=policy, grants=grants) as engine,
        pytest.raises(CallError) as caught,
    ):
        asyncio.run(engine.acall(name, ["tea"]))

    assert (caught.value.code.startswith("policy."), caught.value.retry) == (True, "host")
    assert server.requests == []


def test_secrets_are_redacted_in_every_request(server: ModelServer, reach: Callable[..., Client]) -> None:
    """This includes the request that sends an invalid answer back."""
    server.script(replies(f"It is {SECRET}"), replies("5"))

    with engine_with(reach("openai-chat")) as engine:
        assert engine.call("t.leaks") == 5

    assert len(server.requests) == 2
    assert not any(SECRET in str(request.body) for request in server.requests)


def test_error_leaves_the_tool_without_secrets(server: ModelServer, reach: Callable[..., Client]) -> None:
    """Its code survives; neither the caller nor the audit log sees the secret or the answers."""
    server.script(replies(f"It is {SECRET}"), replies("hunter2"))
    audit = MemoryAudit()

    with engine_with(reach("openai-chat"), audit=audit) as engine:
        result = engine.execute(ToolCall("t.leaks", []))

    assert result.error is not None
    assert (result.error.code, result.error.retry) == ("llm.answer", "never")
    for text in (str(result.error), repr(vars(result.error)), repr(audit.records)):
        assert SECRET not in text and "hunter2" not in text


@pytest.mark.parametrize("secrets", [{}, {"key": SECRET}], ids=["no secrets", "secrets"])
def test_tokens_are_counted_in_a_tool(secrets: Any, server: ModelServer, reach: Callable[..., Client]) -> None:
    server.script(replies("no"), replies("no"))

    with engine_with(reach("openai-chat"), secrets=secrets) as engine:
        assert engine.call("t.tokens") == [20, 6]


def test_model_without_usage_answers_a_tool_with_secrets() -> None:
    """It has no ``reply``, and neither has ``rt.llm``."""
    model = Script([says("no"), says("5")])

    with engine_with(model) as engine:
        assert engine.call("t.leaks") == 5

    assert SECRET not in str(model.received)


def test_secret_answer_is_not_redacted(server: ModelServer, reach: Callable[..., Client]) -> None:
    """``ask`` has no session that could register it; ``converse`` has one."""
    answer, output = "t0ken-value-4567", StringIO()
    server.script(replies(answer), replies(answer))
    client = reach("openai-chat")

    with engine_with(client, secrets={}, stdout=output) as engine:
        assert engine.call("t.token") == answer
        assert (engine.secrets, output.getvalue()) == (None, f"{answer}\n")
        converse(engine, "Which token?", tools=(), answer=ArgSpec("token", "string", secret=True))
        assert engine.secrets is not None and answer not in engine.secrets.text(answer)


# Limits


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(calls=1), "limit.calls"),
        (Limits(net_calls=3), "limit.net_calls"),
        (Limits(money={"EUR": "0.19"}), "limit.money"),
    ],
    ids=["calls", "net_calls", "money"],
)
def test_limits_count_what_the_tool_spends(
    limits: Limits, code: str, server: ModelServer, reach: Callable[..., Client]
) -> None:
    """The second call is refused before its first request."""
    server.script(replies("no"), replies("5"))

    with engine_with(reach("openai-chat"), limits=limits) as engine:
        assert engine.call("t.spends") == 5
        result = engine.execute(ToolCall("t.spends", []))

    assert result.error is not None
    assert (result.error.code, result.error.retry, len(server.requests)) == (code, "host", 2)


@TOOLS
def test_requests_of_a_model_are_not_counted(name: str, server: ModelServer, reach: Callable[..., Client]) -> None:
    """As those of ``rt.llm.ask``: two requests are one call, and no network request of the tool."""
    server.script(replies("none"), replies(TEA_TEXT))

    with engine_with(reach("openai-chat"), limits=Limits(calls=1, net_calls=0, net_bytes=0)) as engine:
        assert len(asyncio.run(engine.acall(name, ["tea"]))) == 1

    assert len(server.requests) == 2


@TOOLS
def test_limited_time_ends_a_call_during_a_request(
    name: str, server: ModelServer, reach: Callable[..., Client]
) -> None:
    server.script(hangs(20, reply=replies(TEA_TEXT)))

    with (
        engine_with(reach("openai-chat", timeout=30.0), limits=Limits(seconds=0.2)) as engine,
        pytest.raises(CallTimeout) as caught,
    ):
        asyncio.run(engine.acall(name, ["tea"]))

    assert (caught.value.code, caught.value.retry) == ("call.timeout", "later")


# Recordings

MODEL_EFFECT = ToolPolicy(effects=("model",), capabilities=USING.capabilities)


@TOOLS
def test_recording_has_the_result_and_a_replay_asks_nothing(
    name: str, tmp_path: Path, server: ModelServer, reach: Callable[..., Client]
) -> None:
    """Neither invalid replies nor the prompt are recorded; a tool with the effect ``model`` is not replayed."""
    path = tmp_path / "calls.jsonl"
    server.script(replies("hunter2"), replies(TEA_TEXT))

    with engine_with(reach("openai-chat"), policy=MODEL_EFFECT, recording=path) as engine:
        asyncio.run(engine.acall(name, ["tea"]))
    with engine_with(reach("openai-chat"), policy=MODEL_EFFECT) as engine:
        assert replay(path, engine) == Replayed(skipped=1)

    (line,) = map(json.loads, path.read_text().splitlines())
    assert (line["args"], line["result"]) == (["tea"], [{"name": "tea", "day": "2020-01-31"}])
    assert "hunter2" not in str(line) and len(server.requests) == 2


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        ([replies("hunter2")] * 2, {"code": "llm.answer"}),
        ([replies(TEA_TEXT.replace("tea", SECRET))], {"not_recorded": "secret"}),
    ],
    ids=["no valid answer", "answer with a secret"],
)
def test_recording_has_no_invalid_and_no_secret_answer(
    steps: Any, end: dict[str, str], tmp_path: Path, server: ModelServer, reach: Callable[..., Client]
) -> None:
    path = tmp_path / "calls.jsonl"
    server.script(*steps)

    with engine_with(reach("openai-chat"), policy=MODEL_EFFECT, recording=path) as engine:
        engine.execute(ToolCall("t.items", ["tea"]))

    text = path.read_text()
    assert end.items() <= json.loads(text).items()
    assert "hunter2" not in text and SECRET not in text and "result" not in json.loads(text)


def test_host_without_a_model_is_reported() -> None:
    with engine_with(None) as engine, pytest.raises(CallError) as caught:
        engine.call("t.items", ["tea"])

    assert (caught.value.code, caught.value.retry) == ("llm.no_model", "host")
