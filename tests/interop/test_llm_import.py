"""Tools and toolboxes of ``llm`` in an engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import llm
import pytest
from tests.interop.llm_calls import GIF, WRONG, times
from tests.interop.llm_models import Scripted

from neuroscript import Engine, ExecutionPolicy, PolicyError, SpecError, ToolFailed, ToolPolicy, Toolset
from neuroscript.interop.llm import from_llm, to_llm
from neuroscript.policy.labels import ALL_SINKS, ALL_SOURCES

GRANTING = ExecutionPolicy(grants=["llm:call:*/*"])
"""A policy that grants all tools of ``llm``; those that need an approval are still refused."""


class Store(llm.Toolbox):
    """The stock of a shop."""

    prepared = 0

    def __init__(self, tea: int = 0) -> None:
        self._tea = tea
        self._log: list[str] = []

    def prepare(self) -> None:
        """Add one more tool."""
        self._log.append("prepared")
        self.add_tool(self._history)

    def add(self, tea: int) -> int:
        """Add to the stock."""
        self._tea += tea
        return self._tea

    def _history(self) -> list[str]:
        return self._log


def test_a_function_receives_exact_values_under_our_policy() -> None:
    """Each call needs an approval unless the host trusts the function."""
    with Engine(toolsets=[from_llm(times, group="words")], plugins="none", policy=GRANTING) as engine:
        with pytest.raises(PolicyError) as caught:
            engine.call_named("words.times", {"text": "a", "count": 2})
        untrusted = engine.tools["words.times"]
    with Engine(toolsets=[from_llm(times, group="words", trusted=True)], plugins="none", policy=GRANTING) as engine:
        result = engine.call_named("words.times", {"text": "ab", "count": "2"})
        spec = engine.tools["words.times"].spec
    with Engine(toolsets=[from_llm(times, group="words", trusted=True)], plugins="none") as engine:
        with pytest.raises(PolicyError) as ungranted:
            engine.call_named("words.times", {"text": "ab", "count": "2"})
    declared = from_llm(times, group="words", policy=ToolPolicy(effects=("pure",)))

    assert (caught.value.code, caught.value.retry, result, spec.description) == (
        "policy.approval",
        "host",
        "abab",
        "Repeat a string.",
    )
    assert untrusted.policy == ToolPolicy(
        capabilities=("llm:call:words/times",),
        effects=("net", "reads", "writes", "deletes"),
        requires_approval=True,
        sources=ALL_SOURCES,
        sinks=ALL_SINKS,
    )
    assert (ungranted.value.code, ungranted.value.retry) == ("policy.capability", "host")
    assert declared.tools[0].policy == ToolPolicy(effects=("pure",))


def test_a_toolbox_has_state_and_is_prepared_once() -> None:
    """An instance retains its configuration; a class is instantiated without one."""
    store = Store(tea=3)
    with Engine(
        toolsets=[from_llm(store, group="shop", trusted=True), from_llm([Store], group="empty", trusted=True)],
        plugins="none",
        policy=GRANTING,
    ) as engine:
        results = [engine.call_named("shop.add", {"tea": "2"}), engine.call_named("shop.add", {"tea": 1})]
        other = engine.call("empty.add", [1])
        names = sorted(engine.tools)
        history = engine.call("shop.history")
    from_llm(store, group="again")

    assert (results, other, history) == ([5, 6], 1, ["prepared"])
    assert names == ["empty.add", "empty.history", "shop.add", "shop.history"]
    assert store._log == ["prepared"]


class Exiting(llm.Toolbox):
    """A toolbox that exits during its preparation."""

    async def prepare_async(self) -> None:
        """Exit."""
        raise SystemExit(3)


def test_a_toolbox_that_exits_during_preparation_is_not_prepared() -> None:
    """The caller sees the exit, as without a coroutine."""
    box = Exiting()
    with pytest.raises(SystemExit):
        from_llm(box, group="g")

    assert not box._async_prepared


class Later(llm.Toolbox):
    """A toolbox with an asynchronous preparation."""

    async def prepare_async(self) -> None:
        """Add the only tool."""

        async def shout(text: str) -> str:
            await asyncio.sleep(0)
            return text.upper()

        self.add_tool(shout)


@pytest.mark.parametrize("in_loop", [False, True], ids=["alone", "loop"])
def test_an_asynchronous_preparation_is_awaited(in_loop: bool) -> None:
    """With or without a running loop; coroutine functions are awaited."""

    async def load() -> Toolset:
        return from_llm(Later, group="later", trusted=True)

    toolset = asyncio.run(load()) if in_loop else from_llm(Later, group="later", trusted=True)

    with Engine(toolsets=[toolset], plugins="none", policy=GRANTING) as engine:
        assert engine.call("later.shout", ["tea"]) == "TEA"


def test_an_imported_toolbox_can_be_exported_again() -> None:
    """It is used in the loop of ``llm``, with exact values that ``llm`` alone would not pass."""
    model = Scripted([("shop__add", {"tea": "2"})], [("shop__add", {"tea": "two"})], "")
    with Engine(toolsets=[from_llm(Store, group="shop", trusted=True)], plugins="none", policy=GRANTING) as engine:
        model.chain("", tools=to_llm(engine, tools="shop.add")).text()

    assert model.results == ["2", WRONG.replace("count", "tea")]


def test_omitted_arguments_use_the_defaults_of_the_function() -> None:
    """None is None, and a list has exact items."""

    def order(tea: int, price: float = 2.5, notes: list[int] | None = None) -> str:
        return repr((tea, price, notes))

    with Engine(toolsets=[from_llm(order, group="g", trusted=True)], plugins="none", policy=GRANTING) as engine:
        assert engine.call_named("g.order", {"tea": "1"}) == "(1, 2.5, None)"
        assert engine.call_named("g.order", {"tea": 1, "price": 3, "notes": [1]}) == "(1, 3.0, [1])"


def test_attachments_are_returned_and_never_fetched() -> None:
    """Without attachments the result is the output, as ``llm`` would write it."""

    def draw() -> llm.ToolOutput:
        found = [llm.Attachment(type="image/gif", content=GIF), llm.Attachment(url="http://127.0.0.1:1/a.png")]
        return llm.ToolOutput({"drawn": 2}, found)

    def plain() -> llm.ToolOutput:
        return llm.ToolOutput(output=(1, Path("a")))

    with Engine(toolsets=[from_llm([draw, plain], group="g", trusted=True)], plugins="none", policy=GRANTING) as engine:
        picture, other = engine.call("g.draw"), engine.call("g.plain")

    assert picture["output"] == {"drawn": 2}
    assert picture["attachments"] == [
        {"media_type": "image/gif", "data": GIF},
        {"media_type": None, "url": "http://127.0.0.1:1/a.png"},
    ]
    assert other == [1, repr(Path("a"))]


@pytest.mark.parametrize(
    ("error", "code", "text", "retry"),
    [
        (ValueError("PRIVATE"), "tool.failed", "", "never"),
        (llm.CancelToolCall("not now"), "llm.cancelled", "the tool cancelled the call: not now", "never"),
        (llm.CancelToolCall(), "llm.cancelled", "the tool cancelled the call", "never"),
        (llm.PauseChain(), "llm.paused", "the tool requested a pause, which is not supported here", "host"),
    ],
    ids=["bug", "cancelled", "silent", "paused"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_an_exception_of_a_tool_becomes_a_typed_error(
    error: Exception, code: str, text: str, retry: str, is_async: bool
) -> None:
    """The message of an unexpected exception is dropped."""

    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    tool = llm.Tool("fail", implementation=fail_later if is_async else fail)
    with Engine(toolsets=[from_llm(tool, group="g", trusted=True)], plugins="none", policy=GRANTING) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("g.fail")

    assert (caught.value.code, caught.value.retry) == (code, retry)
    assert "PRIVATE" not in str(caught.value) and text in str(caught.value)


def test_a_function_that_requests_the_call_receives_it() -> None:
    """With the exact values; callers do not see the argument."""

    def tell(text: str, llm_tool_call: llm.ToolCall) -> str:
        return f"{llm_tool_call.name} {llm_tool_call.arguments} {text}"

    with Engine(toolsets=[from_llm(tell, group="g", trusted=True)], plugins="none", policy=GRANTING) as engine:
        assert [arg.name for arg in engine.tools["g.tell"].spec.args] == ["text"]
        assert engine.call("g.tell", ["a"]) == "tell {'text': 'a'} a"


def test_an_untrusted_description_is_one_safe_line() -> None:
    """Of a tool and of its arguments."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "x\n\x1b[2J"}}}
    tool = llm.Tool("f", "Do\nthis\x1b[2J" + "!" * 2000, schema, lambda a: a)

    (taken,) = from_llm(tool, group="g").tools

    assert taken.spec.description.startswith("Do this\\x1b[2J!!!") and len(taken.spec.description) == 1000
    assert taken.spec.args[0].description == "x \\x1b[2J"


class Needy(llm.Toolbox):
    """A toolbox that needs settings, and is refused without them."""

    def __init__(self, place: str) -> None:
        self._place = place


def test_a_built_in_function_can_be_called() -> None:
    """Its parameters are unknown, so none of them requests the call."""
    tool = llm.Tool("made", None, {"type": "object", "properties": {"a": {"type": "integer"}}}, dict)
    with Engine(toolsets=[from_llm(tool, group="far", trusted=True)], plugins="none", policy=GRANTING) as engine:
        assert engine.call_named("far.made", {"a": "1"}) == {"a": 1}


def test_a_schema_that_is_too_deep_is_refused() -> None:
    """With a clear message."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(500):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(SpecError) as caught:
        from_llm(llm.Tool("deep", None, schema, lambda a: a), group="g")

    assert caught.value.problems == ("deep: #: nests deeper than 64 levels",)


def test_all_unsupported_tools_are_reported_at_once() -> None:
    """Each with its name."""
    other = llm.Tool("times", implementation=lambda: 1)
    lost = llm.Tool("lost")
    far = llm.ServerSideTool({"type": "search"})
    strange = llm.Tool("日", implementation=lambda: 1)
    odd = llm.Tool("odd", None, {"type": "array"}, lambda: 1)

    with pytest.raises(SpecError) as caught:
        from_llm([times, other, lost, far, strange, odd, lambda: 1, Needy], group="g")
    with pytest.raises(SpecError) as group:
        from_llm(times, group="no group")

    assert caught.value.problems == (
        "ServerSideTool: runs on the server of the model provider, not here",
        "日: cannot be used as a name; expected ASCII letters or digits",
        "<lambda>: cannot be loaded (ValueError)",
        "Needy: cannot be loaded (TypeError)",
        "times and times have the same name here, times; load each into a separate group",
        "lost: has no implementation in this process",
        "odd: #: the arguments of a tool are an object; write type: object",
    )
    assert str(group.value) == "toolset no group: the name is not a valid group name"
