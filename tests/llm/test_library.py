"""Models by the names that the package ``llm`` knows, with its keys and its plugins."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import llm
import pytest
from llm.plugins import pm
from tests.llm.server import Api, ModelServer, asks, call, says, status

from neuroscript import ArgSpec, ArgType, LLMError, ToolCall, ToolResult, ToolSpec, Turn
from neuroscript.llm import model, models
from neuroscript.runtime.replies import Usage

HI = (Turn("user", "hi"),)
ADD = ToolSpec("add", "math", args=(ArgSpec("a", ArgType.INT), ArgSpec("b", ArgType.INT)))

NAMES: dict[Api, str] = {"openai-chat": "gpt-4o-mini", "openai-responses": "gpt-5", "anthropic": "claude-haiku-4.5"}


@pytest.fixture
def at_home(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """The server, where the SDKs take it for the APIs' own."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai-chat"))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url("anthropic"))
    return server


@pytest.mark.parametrize("api", NAMES)
def test_a_name_means_an_api(api: Api, at_home: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the key of the environment goes there; the SDK itself tries nothing again."""
    monkeypatch.setenv("ANTHROPIC_API_KEY" if api == "anthropic" else "OPENAI_API_KEY", "sk-canary")
    at_home.script(status(500), status(500), says("ready"))

    with model(NAMES[api], pause=0.001, max_tokens=9) as client:
        reply = client.reply(HI)

    assert (reply.turn.content, [each.code for each in reply.retries]) == ("ready", ["llm.server"] * 2)
    assert [each.api for each in at_home.requests] == [api] * 3
    assert "sk-canary" in str(at_home.requests[0].headers)
    assert "max_tokens" not in at_home.requests[0].body or api == "anthropic"


def test_an_api_can_be_named_for_a_model_that_llm_does_not_know(
    at_home: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came out yesterday."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    at_home.script(says("new"))

    with model("gpt-new", api="openai-chat") as client:
        assert client.ask(HI).content == "new"

    assert at_home.requests[0].headers["Authorization"] == "Bearer sk-canary"


def test_a_key_may_stand_in_the_store_of_llm(at_home: ModelServer, no_keys: Path) -> None:
    """By the name of the service."""
    (no_keys / "keys.json").write_text(json.dumps({"openai": "sk-stored"}))
    at_home.script(says("ok"), says("ok"))

    with model("gpt-4o-mini") as known, model("gpt-new", api="openai-chat") as named:
        assert (known.ask(HI).content, named.ask(HI).content) == ("ok", "ok")

    assert [each.headers["Authorization"] for each in at_home.requests] == ["Bearer sk-stored"] * 2


def test_an_address_that_llm_was_told_of_is_used(server: ModelServer, no_keys: Path) -> None:
    """With the name that its server knows, and without a key."""
    entry = {"model_id": "local", "model_name": "tiny", "api_base": server.base_url(), "supports_tools": True}
    (no_keys / "extra-openai-models.yaml").write_text(json.dumps([entry]))
    server.script(asks(call("math__add", {"a": 1, "b": 2})))

    with model("local", max_tokens=9) as client:
        assert [each.name for each in client.ask_with_tools(HI, [ADD]).tool_calls] == ["math.add"]

    body = server.requests[0].body
    assert (body["model"], body["max_tokens"]) == ("tiny", 9)


def test_an_embedding_has_a_model_of_its_own(at_home: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name alone."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")

    with model("3-small") as client:
        assert client.embed("tea") == [0.5, -1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "settings", "code", "text"),
    [
        ("no\nsuch", {}, "llm.unknown", "unknown model no\\nsuch; to list the known models, run: neuroscript models list"),
        (
            "gpt-4o-mini",
            {},
            "llm.key",
            "no key for this model; set OPENAI_API_KEY, or run: llm keys set openai",
        ),
        (
            "claude-haiku-4.5",
            {},
            "llm.key",
            "no key for this model; set ANTHROPIC_API_KEY, or run: llm keys set anthropic",
        ),
        (
            "gpt-new",
            {"api": "openai-responses"},
            "llm.key",
            "no key for this model; set OPENAI_API_KEY, or run: llm keys set openai",
        ),
    ],
    ids=["unknown", "openai", "anthropic", "api"],
)
def test_what_can_not_be_reached_is_told_at_once(name: str, settings: dict[str, Any], code: str, text: str) -> None:
    """With what the host can do."""
    with pytest.raises(LLMError) as caught:
        model(name, **settings)

    assert (str(caught.value), caught.value.code, caught.value.retry) == (text, code, "host")
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("package", "settings", "text"),
    [
        (
            "llm",
            {},
            "the package llm, which resolves model names, is not installed; "
            'install it with: pip install "neuroscript[llm]"',
        ),
        (
            "openai",
            {"base_url": "http://127.0.0.1:1"},
            'the SDK of OpenAI is not installed; install it with: pip install "neuroscript[llm]"',
        ),
        (
            "anthropic",
            {"base_url": "http://127.0.0.1:1", "api": "anthropic"},
            'the SDK of Anthropic is not installed; install it with: pip install "neuroscript[anthropic]"',
        ),
    ],
)
def test_a_package_that_is_missing_is_named(
    package: str, settings: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the line that installs it."""
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(LLMError) as caught:
        model("tiny", **settings)

    assert (str(caught.value), caught.value.code, caught.value.retry) == (text, "llm.missing", "host")


class Parrot(llm.Model):
    """A model as a plugin of ``llm`` brings one: it asks for a tool once, and then says what came of it."""

    model_id = "parrot"
    can_stream = True
    supports_tools = True

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        """Say something about the last message."""
        last = prompt.messages[-1]
        if last.role == "tool":
            yield from ("it is ", last.parts[0].output)
        elif prompt.tools:
            response.add_tool_call(llm.ToolCall(prompt.tools[0].name, {"a": "2", "b": 3}, "p1"))
        elif last.parts[0].text == "arguments":
            parts = [part for message in prompt.messages for part in message.parts]
            yield json.dumps([part.arguments for part in parts if hasattr(part, "arguments")])
        elif last.parts[0].text == "fail":
            raise ValueError("PRIVATE")
        elif last.parts[0].text == "endless":
            yield from repeat("and ")
        elif last.parts[0].text != "nothing":
            yield from ("so", " be it")
        response.set_usage(input=7, output=2)


class Plugin:
    """A plugin of ``llm``."""

    @llm.hookimpl
    def register_models(self, register: Any) -> None:
        """Bring the parrot."""
        register(Parrot(), aliases=("polly",))


@pytest.fixture
def parrot() -> Iterator[str]:
    """The name of a model that a plugin of ``llm`` brings."""
    plugin = Plugin()
    pm.register(plugin)
    yield "polly"
    pm.unregister(plugin)


def test_a_plugin_of_llm_brings_a_model_that_calls_tools(parrot: str) -> None:
    """No tool is run by the package; its own messages go back to it."""
    client = model(parrot)
    heard: list[str] = []

    first = client.reply(HI, [ADD])
    result = ToolResult("p1", "math.add", 5)
    second = client.reply([*HI, first.turn, Turn("tool", tool_results=(result,))], [ADD], on_text=heard.append)

    assert (client.api, first.stop, first.usage) == ("llm", "tools", Usage(7, 2))
    assert [(each.name, each.arguments, each.id) for each in first.turn.tool_calls] == [
        ("math.add", {"a": "2", "b": 3}, "p1")
    ]
    assert (second.turn.content, second.stop, heard) == ("it is 5", "end", ["it is ", "5"])


def test_a_conversation_from_elsewhere_is_told_to_a_plugin(parrot: str) -> None:
    """Its calls have no messages of the package."""
    turns = [
        *HI,
        Turn("assistant", "well", (parrots_call(),)),
        Turn("tool", tool_results=(ToolResult("x", "math.add", 4),)),
    ]

    assert model(parrot).ask(turns).content == "it is 4"


def test_arguments_of_calls_from_elsewhere_reach_a_plugin(parrot: str) -> None:
    """A map as it is, and what other APIs send as text by what it says."""
    calls = (ToolCall("math.add", {"a": 1}, id="x"), ToolCall("math.add", '{"a": 2}', id="y"))
    results = tuple(ToolResult(call.id, "math.add", 1) for call in calls)
    turns = [
        *HI,
        Turn("assistant", tool_calls=calls),
        Turn("tool", tool_results=results),
        Turn("user", "arguments"),
    ]

    assert model(parrot).ask(turns).content == '[{"a": 1}, {"a": 2}]'


def parrots_call() -> Any:
    """Return a call that another model asked for."""
    return ToolCall("math.add", {"a": 2, "b": 2}, id="x")


@pytest.mark.parametrize(
    ("said", "text", "code", "retry"),
    [
        ("fail", "the plugin for this model failed (ValueError)", "llm.format", "host"),
        ("nothing", "the model returned an empty reply", "llm.empty", "later"),
        ("endless", "the model's reply was not complete after 0.2 s", "llm.timeout", "later"),
    ],
)
def test_what_goes_wrong_in_a_plugin_is_told_without_its_text(
    parrot: str, said: str, text: str, code: str, retry: str
) -> None:
    """It may hold what was sent."""
    with pytest.raises(LLMError) as caught:
        model(parrot, pause=0.001, longest=0.2).ask([Turn("user", said)])

    assert (str(caught.value), caught.value.code, caught.value.retry) == (text, code, retry)
    assert caught.value.__context__ is None


def test_models_are_listed_with_what_they_need(parrot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    known = {each.name: each for each in models.known()}

    polly, mini, embedder = known["parrot"], known["gpt-4o-mini"], known["text-embedding-3-small"]
    assert (polly.aliases, polly.api, polly.has_tools, polly.has_key, polly.variable) == (
        ("polly",),
        "llm",
        True,
        True,
        "",
    )
    assert (mini.api, mini.has_tools, mini.has_key, mini.variable) == ("openai-chat", True, False, "OPENAI_API_KEY")
    assert (embedder.api, embedder.has_tools) == ("openai-embeddings", False)
    assert all(each.has_key for each in known.values() if each.api == "anthropic")
    assert "sk-canary" not in repr(known)


def test_a_check_is_one_small_request(server: ModelServer) -> None:
    """It tells what came of it, whatever that was."""
    server.script(says("ready"), status(401, word="invalid_api_key"))

    with model("tiny", base_url=server.base_url()) as client:
        good, bad = models.check(client), models.check(client)

    assert (good.ok, good.name, good.api, good.usage) == (True, "tiny", "OpenAI Chat", Usage(10, 3))
    assert bad.error is not None
    assert (bad.ok, bad.error.code, bad.error.retry) == (False, "llm.auth", "host")
    assert len(server.requests) == 2
