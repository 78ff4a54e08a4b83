"""The llm toolset, called through engines with a custom model."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from neuroscript import Engine, ExecutionPolicy, Host, LLMError, ToolFailed, ToolSpec, Turn

GRANTED = ExecutionPolicy(grants=["model:use:*"])


@pytest.fixture
def asking(parrot: Any) -> Iterator[Engine]:
    """An engine whose host provides the parrot model."""
    with Engine(plugins=["neuroscript-std"], host=Host(llm=parrot), policy=GRANTED) as engine:
        yield engine


def test_system_prompt_comes_first(asking: Engine, parrot: Any) -> None:
    """It is omitted if it is empty."""
    assert asking.call("llm.ask", ["hello"]) == "HELLO"
    assert asking.call_named("llm.ask", {"system": "be brief", "prompt": "you"}) == "YOU"

    assert parrot.asked == [(Turn("user", "hello"),), (Turn("system", "be brief"), Turn("user", "you"))]


def test_choose_returns_tool_calls_without_running_them(asking: Engine, parrot: Any) -> None:
    """Arguments by name, in order or as JSON; running the first one would fail."""
    result = asking.call("llm.choose", ["which?", ["math.add", "math.subtract", "math.divide"]])

    assert result == [
        {"id": "add", "name": "math.add", "arguments": {"num1": 1}},
        {"id": "subtract", "name": "math.subtract", "arguments": [1, 2]},
        {"id": "divide", "name": "math.divide", "arguments": '{"num1": 1}'},
    ]
    assert asking.call("llm.choose", ["which?", []]) == []
    assert parrot.asked == [(Turn("user", "which?"),)] * 2


@pytest.mark.parametrize("name", ["math.plus", "crypto.signjwt", "", "Math.Add"])
def test_choose_accepts_only_available_tools(asking: Engine, parrot: Any, name: str) -> None:
    """The model is not called if a tool is unknown or refused by the host."""
    with pytest.raises(ToolFailed) as caught:
        asking.call("llm.choose", ["which?", ["math.add", name]])

    text = "llm.choose: tools[1]: expected the canonical name of an available tool, got another string"
    assert (text, "llm.unknown_tool", "model") == (str(caught.value), caught.value.code, caught.value.retry)
    assert parrot.asked == []


def test_embedding_is_that_of_the_model(asking: Engine) -> None:
    """As 32-bit floats."""
    result = asking.call("llm.embed", ["abc"])

    assert (result.typecode, list(result)) == ("f", [3.0, 0.5])


def test_log_contains_roles_and_lengths(asking: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """And no content."""
    with caplog.at_level(logging.DEBUG):
        asking.call("llm.ask", ["canary", "canaries"])
        asking.call("llm.choose", ["canary", ["math.add"]])
        asking.call("llm.embed", ["canary"])

    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        ("neuroscript.llm.ask", "INFO", "system: 8 characters, 0 calls"),
        ("neuroscript.llm.ask", "INFO", "user: 6 characters, 0 calls"),
        ("neuroscript.llm.ask", "INFO", "assistant: 6 characters, 0 calls"),
        ("neuroscript.llm.choose", "INFO", "user: 6 characters, 0 calls"),
        ("neuroscript.llm.choose", "INFO", "assistant: 7 characters, 1 calls"),
        ("neuroscript.llm.embed", "INFO", "user: 6 characters, 0 calls"),
    ]


class Silent:
    """A model whose provider refuses."""

    def ask(self, turns: Sequence[Turn]) -> Turn:
        raise LLMError("the model is not reached", code="llm.auth", retry="host")

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        return self.ask(turns)

    def embed(self, text: str) -> Sequence[float]:
        return self.ask([])  # type: ignore[return-value]


CALLS = {"llm.ask": ["?"], "llm.choose": ["?", ["math.add"]], "llm.embed": ["?"]}


@pytest.mark.parametrize(("tool", "args"), CALLS.items(), ids=CALLS)
@pytest.mark.parametrize(
    ("model", "code", "text"),
    [(None, "llm.no_model", "the host provides no model"), (Silent(), "llm.auth", "the model is not reached")],
    ids=["no model", "a model that fails"],
)
def test_model_errors_keep_their_code(tool: str, args: list[Any], model: Any, code: str, text: str) -> None:
    """Whether or not the host provides a model."""
    with Engine(plugins=["neuroscript-std"], host=Host(llm=model), policy=GRANTED) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call(tool, args)

    assert (f"{tool}: {text}", code, "host") == (str(caught.value), caught.value.code, caught.value.retry)
