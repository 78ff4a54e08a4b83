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
from neuroscript._imports import install_hint
from neuroscript.llm import model, models
from neuroscript.runtime.replies import Usage

HI = (Turn("user", "hi"),)
ADD = ToolSpec("add", "math", args=(ArgSpec("a", ArgType.INT), ArgSpec("b", ArgType.INT)))

NAMES: dict[Api, str] = {"openai-chat": "gpt-4o-mini", "openai-responses": "gpt-5", "anthropic": "claude-haiku-4.5"}


@pytest.fixture
def at_home(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """The server, in the place of the vendors' own servers."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai-chat"))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url("anthropic"))
    return server


@pytest.mark.parametrize("api", NAMES)
def test_name_selects_api_and_environment_key(api: Api, at_home: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK itself does not retry."""
    monkeypatch.setenv("ANTHROPIC_API_KEY" if api == "anthropic" else "OPENAI_API_KEY", "sk-canary")
    at_home.script(status(500), status(500), says("ready"))

    with model(NAMES[api], backoff=0.001, max_tokens=9) as client:
        reply = client.reply(HI)

    assert (reply.turn.content, [each.code for each in reply.retries]) == ("ready", ["llm.server"] * 2)
    assert [each.api for each in at_home.requests] == [api] * 3
    assert "sk-canary" in str(at_home.requests[0].headers)
    assert "max_tokens" not in at_home.requests[0].body or api == "anthropic"


def test_api_argument_allows_unknown_models(at_home: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, a new model."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    at_home.script(says("new"))

    with model("gpt-new", api="openai-chat") as client:
        assert client.ask(HI).content == "new"

    assert at_home.requests[0].headers["Authorization"] == "Bearer sk-canary"


def test_key_comes_from_llm_store(at_home: ModelServer, no_keys: Path) -> None:
    """Under the name of the service."""
    (no_keys / "keys.json").write_text(json.dumps({"openai": "sk-stored"}))
    at_home.script(says("ok"), says("ok"))

    with model("gpt-4o-mini") as known, model("gpt-new", api="openai-chat") as named:
        assert (known.ask(HI).content, named.ask(HI).content) == ("ok", "ok")

    assert [each.headers["Authorization"] for each in at_home.requests] == ["Bearer sk-stored"] * 2


def test_address_configured_in_llm_is_used(server: ModelServer, no_keys: Path) -> None:
    """With the name that its server knows, and without a key."""
    entry = {"model_id": "local", "model_name": "tiny", "api_base": server.base_url(), "supports_tools": True}
    (no_keys / "extra-openai-models.yaml").write_text(json.dumps([entry]))
    server.script(asks(call("math__add", {"a": 1, "b": 2})))

    with model("local", max_tokens=9) as client:
        assert [each.name for each in client.ask_with_tools(HI, [ADD]).tool_calls] == ["math.add"]

    body = server.requests[0].body
    assert (body["model"], body["max_tokens"]) == ("tiny", 9)


def test_embedding_model_is_found_by_name(at_home: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other setting is needed."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")

    with model("3-small") as client:
        assert client.embed("tea") == [0.5, -1.0, 2.0]


@pytest.mark.parametrize(
    ("name", "settings", "code", "text"),
    [
        (
            "no\nsuch",
            {},
            "llm.unknown_model",
            "unknown model no\\nsuch; to list the known models, run: neuroscript models list",
        ),
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
def test_unusable_model_is_reported_at_once(name: str, settings: dict[str, Any], code: str, text: str) -> None:
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
            f"the package llm, which resolves model names, is not installed; install it with: {install_hint('llm')}",
        ),
        (
            "openai",
            {"base_url": "http://127.0.0.1:1"},
            f"the SDK of OpenAI is not installed; install it with: {install_hint('llm')}",
        ),
        (
            "anthropic",
            {"base_url": "http://127.0.0.1:1", "api": "anthropic"},
            f"the SDK of Anthropic is not installed; install it with: {install_hint('anthropic')}",
        ),
    ],
)
def test_missing_package_is_named(
    package: str, settings: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(LLMError) as caught:
        model("tiny", **settings)

    assert (str(caught.value), caught.value.code, caught.value.retry) == (text, "llm.not_installed", "host")


class Parrot(llm.Model):
    """A model of an ``llm`` plugin: it calls a tool once and then repeats the result."""

    model_id = "parrot"
    can_stream = True
    supports_tools = True

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        """Reply to the last message."""
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
        """Register the parrot."""
        register(Parrot(), aliases=("polly",))


@pytest.fixture
def parrot() -> Iterator[str]:
    """The name of a model that an ``llm`` plugin registers."""
    plugin = Plugin()
    pm.register(plugin)
    yield "polly"
    pm.unregister(plugin)


def test_plugin_model_calls_tools(parrot: str) -> None:
    """The package itself runs no tool; its own messages are sent back to it."""
    client = model(parrot)
    received: list[str] = []

    first = client.reply(HI, [ADD])
    result = ToolResult("p1", "math.add", 5)
    second = client.reply([*HI, first.turn, Turn("tool", tool_results=(result,))], [ADD], on_text=received.append)

    assert (client.api, first.stop, first.usage) == ("llm", "tools", Usage(7, 2))
    assert [(each.name, each.arguments, each.id) for each in first.turn.tool_calls] == [
        ("math.add", {"a": "2", "b": 3}, "p1")
    ]
    assert (second.turn.content, second.stop, received) == ("it is 5", "end", ["it is ", "5"])


def test_foreign_history_is_converted_for_plugin(parrot: str) -> None:
    """Its calls have no messages of the package."""
    turns = [
        *HI,
        Turn("assistant", "well", (parrots_call(),)),
        Turn("tool", tool_results=(ToolResult("x", "math.add", 4),)),
    ]

    assert model(parrot).ask(turns).content == "it is 4"


def test_foreign_call_arguments_are_converted_for_plugin(parrot: str) -> None:
    """A map is unchanged; JSON text of other APIs is decoded."""
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
    """Return a call that another model requested."""
    return ToolCall("math.add", {"a": 2, "b": 2}, id="x")


@pytest.mark.parametrize(
    ("message", "text", "code", "retry"),
    [
        ("fail", "the plugin for this model failed (ValueError)", "llm.format", "host"),
        ("nothing", "the model returned an empty reply", "llm.empty", "later"),
        ("endless", "the model's reply was not complete after 0.2 s", "llm.timeout", "later"),
    ],
)
def test_plugin_error_message_is_not_shown(parrot: str, message: str, text: str, code: str, retry: str) -> None:
    """It may contain what was sent."""
    with pytest.raises(LLMError) as caught:
        model(parrot, backoff=0.001, total_timeout=0.2).ask([Turn("user", message)])

    assert (str(caught.value), caught.value.code, caught.value.retry) == (text, code, retry)
    assert caught.value.__context__ is None


def test_known_lists_models_with_requirements(parrot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without network access."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    known = {each.name: each for each in models.list_models()}

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


def test_check_makes_one_small_request(server: ModelServer) -> None:
    """It returns success or failure."""
    server.script(says("ready"), status(401, word="invalid_api_key"))

    with model("tiny", base_url=server.base_url()) as client:
        good, bad = models.check(client), models.check(client)

    assert (good.ok, good.name, good.api, good.usage) == (True, "tiny", "OpenAI Chat", Usage(10, 3))
    assert bad.error is not None
    assert (bad.ok, bad.error.code, bad.error.retry) == (False, "llm.auth", "host")
    assert len(server.requests) == 2
