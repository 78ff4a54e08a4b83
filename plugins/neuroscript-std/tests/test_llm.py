"""The llm toolset, through engines that lend a model of the tests' own, as an embedder lends one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from neuroscript import Engine, ExecutionPolicy, Host, LLMError, ToolFailed, ToolSpec, Turn

GRANTED = ExecutionPolicy(grants=["model:use:*"])


@pytest.fixture
def asking(parrot: Any) -> Iterator[Engine]:
    """An engine that lends the parrot."""
    with Engine(plugins=["neuroscript-std"], host=Host(llm=parrot), policy=GRANTED) as engine:
        yield engine


def test_a_model_is_asked_in_turns(asking: Engine, parrot: Any) -> None:
    """What is said of the system comes first, and only if something is said."""
    assert asking.call("llm.ask", ["hello"]) == "HELLO"
    assert asking.call_named("llm.ask", {"system": "be brief", "prompt": "you"}) == "YOU"

    assert parrot.asked == [(Turn("user", "hello"),), (Turn("system", "be brief"), Turn("user", "you"))]


def test_a_choice_gives_the_calls_as_the_model_wrote_them(asking: Engine, parrot: Any) -> None:
    """By name, in order or as JSON text; none of them is made, for then the first would fail."""
    came = asking.call("llm.choose", ["which?", ["math.add", "math.subtract", "math.divide"]])

    assert came == [
        {"id": "add", "name": "math.add", "arguments": {"num1": 1}},
        {"id": "subtract", "name": "math.subtract", "arguments": [1, 2]},
        {"id": "divide", "name": "math.divide", "arguments": '{"num1": 1}'},
    ]
    assert asking.call("llm.choose", ["which?", []]) == []
    assert parrot.asked == [(Turn("user", "which?"),)] * 2


@pytest.mark.parametrize("name", ["math.plus", "crypto.signjwt", "", "Math.Add"])
def test_a_choice_is_among_tools_that_may_be_called(asking: Engine, parrot: Any, name: str) -> None:
    """The model is not asked where one is unknown, or refused by this host."""
    with pytest.raises(ToolFailed) as caught:
        asking.call("llm.choose", ["which?", ["math.add", name]])

    text = "llm.choose: tools[1]: expected the canonical name of a tool that may be called here, got another text"
    assert (text, "llm.unknown_tool", "model") == (str(caught.value), caught.value.code, caught.value.retry)
    assert parrot.asked == []


def test_an_embedding_has_the_numbers_of_the_model(asking: Engine) -> None:
    """As 32-bit floats."""
    came = asking.call("llm.embed", ["abc"])

    assert (came.typecode, list(came)) == ("f", [3.0, 0.5])


def test_the_log_tells_who_spoke_and_how_much(asking: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """And nothing of what was said."""
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
    [(None, "llm.none", "the host provides no model"), (Silent(), "llm.auth", "the model is not reached")],
    ids=["no model", "a model that fails"],
)
def test_a_model_that_does_not_answer_is_told_by_its_own_code(
    tool: str, args: list[Any], model: Any, code: str, text: str
) -> None:
    """Whatever the host lends, or nothing."""
    with Engine(plugins=["neuroscript-std"], host=Host(llm=model), policy=GRANTED) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call(tool, args)

    assert (f"{tool}: {text}", code, "host") == (str(caught.value), caught.value.code, caught.value.retry)
