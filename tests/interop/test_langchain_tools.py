"""LangChain's tools under our contract: their arguments, their results and their needs."""

from __future__ import annotations

import asyncio
import decimal
from typing import Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)
from pydantic import AliasChoices, BaseModel, Field, field_validator
from tests.interop.langchain_agent import asking, run

from neuroscript import Engine, ExecutionPolicy, SpecError, ToolCall, ToolPolicy, ToolResult, Value, Variable
from neuroscript.interop.langchain import from_langchain, to_langchain
from neuroscript.policy.labels import ALL_SINKS, ALL_SOURCES

ALL = ExecutionPolicy(grants=("langchain:call:far/*",))
SEEN: list[Any] = []
"""What the functions below were called with."""


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    SEEN.append((a, b))
    return a + b


class Repeat(BaseTool):
    """A tool with arguments that LangChain does not check."""

    name: str = "repeatText"
    description: str = "Repeat a string."

    def _run(self, text: str, times: int) -> str:
        SEEN.append((text, times))
        return text * times


def engine_of(*tools: BaseTool, policy: ExecutionPolicy = ALL, **options: Any) -> Engine:
    """Return an engine with LangChain's tools, which are trusted, and an empty record."""
    SEEN.clear()
    toolset = from_langchain(tools, group="far", **{"trusted": True, **options})
    return Engine(toolsets=[toolset], plugins="none", policy=policy)


def call_tool(each: BaseTool, name: str, /, **arguments: Any) -> ToolResult:
    """Return the result of calling a tool."""
    with engine_of(each) as engine:
        return engine.execute(ToolCall(f"far.{name}", arguments))


def error_of(result: ToolResult) -> tuple[str, str, str]:
    """Return the code of an error, who can fix it, and the message."""
    assert result.error is not None
    return result.error.code, result.error.retry, str(result.error)


# Arguments


def test_a_function_receives_exact_values_and_returns_its_own() -> None:
    """Not the text that LangChain would make of it."""
    assert (call_tool(add, "add", a="2").value, SEEN) == (3, [(2, 1)])


def test_an_unchecked_tool_also_receives_exact_values() -> None:
    """LangChain alone passes everything unchanged."""
    with pytest.raises(TypeError):
        Repeat().invoke({"text": "a", "times": "2"})

    assert call_tool(Repeat(), "repeat_text", text="a", times="2").value == "aa"
    assert SEEN == [("a", 2)]


def test_a_tool_with_one_string_has_one_argument() -> None:
    """It is called as LangChain calls it."""
    shout = Tool(name="shout", func=str.upper, description="Shout.")

    assert call_tool(shout, "shout", tool_input="a").value == "A"


def test_a_schema_as_data_is_the_contract() -> None:
    """LangChain does not check these; we enforce the whole schema."""
    schema = {
        "type": "object",
        "properties": {"code": {"type": "string", "pattern": "^[A-Z]+$"}, "n": {"type": "integer"}},
        "required": ["code", "n"],
    }
    each = StructuredTool.from_function(lambda code, n: [code, n], name="take", description="Take.", args_schema=schema)

    assert call_tool(each, "take", code="AB", n="2").value == ["AB", 2]
    assert error_of(call_tool(each, "take", code="ab", n=2)) == (
        "schema.pattern",
        "model",
        "far.take: code: expected a string that matches ^[A-Z]+$, got str of length 2",
    )


def test_a_pydantic_model_is_the_contract_and_makes_its_own_types() -> None:
    """The function receives what its model makes of exact values."""

    class Item(BaseModel):
        name: str

    class Order(BaseModel):
        items: list[Item]
        count: int = Field(default=1, ge=1)

    def order(items: list[Item], count: int) -> str:
        return f"{count} {type(items[0]).__name__} {items[0].name}"

    each = StructuredTool.from_function(order, description="Order.", args_schema=Order)

    assert call_tool(each, "order", items='[{"name": "tea"}]', count="2").value == "2 Item tea"
    assert error_of(call_tool(each, "order", items=[{}], count=0)) == (
        "arg.invalid",
        "model",
        "far.order: items[0]['name']: expected string, got nothing; "
        "count: expected int of at least 1, got int out of bounds",
    )


def test_an_argument_with_an_alias_arrives() -> None:
    """LangChain sends models the field's name, and its own check would drop that."""

    class Span(BaseModel):
        start: int = Field(alias="from")
        end: int = Field(default=9, validation_alias=AliasChoices("to", "until"))
        step: int = 1

    each = StructuredTool.from_function(
        lambda start, end, step: [start, end, step], name="span", description="Span.", args_schema=Span
    )

    class ByName(Span, validate_by_alias=False, validate_by_name=True):
        pass

    named = each.model_copy(update={"args_schema": ByName})

    assert call_tool(named, "span", start="1", end="5").value == [1, 5, 1]
    assert call_tool(each, "span", start="1", end="5").value == [1, 5, 1]
    assert call_tool(each, "span", start="1", step=2).value == [1, 9, 2]


def test_unknown_arguments_are_refused() -> None:
    """LangChain alone would drop them."""
    text = "far.add: c: expected only a, b, got an unknown name of type int"

    assert error_of(call_tool(add, "add", a=1, c=2)) == ("arg.unknown", "model", text)


def test_a_coroutine_is_awaited_and_cancelled() -> None:
    """A LangChain tool that only has a coroutine function."""
    ended: list[str] = []

    @tool
    async def wait(seconds: float) -> str:
        """Wait."""
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "waited"

    async def both(engine: Engine) -> str:
        value = await engine.acall("far.wait", (0,))
        task = asyncio.create_task(engine.acall("far.wait", (60,)))
        await asyncio.sleep(0)
        while not engine._running:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=10)
        return f"{value}, {task.cancelled()}"

    with engine_of(wait) as engine:
        assert (engine.call("far.wait", ("0",)), asyncio.run(both(engine))) == ("waited", "waited, True")


# Arguments that are hidden from models


@tool
def note(text: str, user: Annotated[str, InjectedToolArg], config: RunnableConfig) -> str:
    """Note something."""
    return f"{user}: {text}, {sorted(config)[:1]}"


def test_arguments_that_langchain_hides_come_from_the_host() -> None:
    """Like any injected argument; the configuration of the run is LangChain's own."""
    with (
        engine_of(note, injected={"user": Variable("user")}) as engine,
        engine.session(variables={"user": "ann"}) as session,
    ):
        assert [arg.name for arg in session.infos["far.note"].spec.args] == ["text"]
        assert session.call("far.note", ("tea",)) == "ann: tea, ['callbacks']"


def test_a_model_cannot_set_a_hidden_argument() -> None:
    """Nor if it has a default, which applies if the host passes nothing."""

    @tool
    def sign(text: str, user: Annotated[str, InjectedToolArg] = "guest") -> str:
        """Sign something."""
        return f"{text}, {user}"

    text = "far.sign: user: expected only text, got an unknown name of type str"

    assert call_tool(sign, "sign", text="tea").value == "tea, guest"
    assert error_of(call_tool(sign, "sign", text="tea", user="ann")) == ("arg.unknown", "model", text)
    with engine_of(sign, injected={"user": Value("ann")}) as engine:
        assert engine.call("far.sign", ("tea",)) == "tea, ann"


def test_arguments_that_look_like_a_call_are_arguments() -> None:
    """LangChain would unpack them, and skip our checks."""
    schema = {"type": "object", "properties": {"type": {"type": "string"}, "id": {}, "args": {"type": "object"}}}
    each = StructuredTool.from_function(lambda **given: given, name="tell", description="Tell.", args_schema=schema)
    result = call_tool(each, "tell", type="tool_call", id="c", args={"hidden": 1})

    assert result.value == '{"type": "tool_call", "id": "c", "args": {"hidden": 1}}'


def test_callbacks_of_the_enclosing_run_receive_the_call() -> None:
    """A call inside a LangChain run belongs to that run."""
    received: list[str] = []

    class Listener(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, **more: Any) -> None:
            received.append(serialized["name"])

    with engine_of(add) as engine:
        outer = RunnableLambda(lambda a: engine.call("far.add", (a,)))
        value = outer.invoke("2", {"callbacks": [Listener()]})

    assert (value, received) == (3, ["add"])


def test_a_tool_receives_the_id_of_its_call() -> None:
    """A unique id for each call."""

    @tool
    def ticket(id: Annotated[str, InjectedToolCallId]) -> str:
        """Return a ticket."""
        return id

    first, second = call_tool(ticket, "ticket").value, call_tool(ticket, "ticket").value

    assert (len(first), first == second) == (16, False)


# Results


def test_content_is_the_result_and_the_artifact_is_dropped() -> None:
    """The artifact is for LangChain's own callbacks."""

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, object]:
        """Search."""
        return f"1 hit for {query}", object()

    assert call_tool(search, "search", query="tea").value == "1 hit for tea"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (decimal.Decimal("1.5"), "1.5"),
        (ToolMessage("as a message", tool_call_id="c"), "as a message"),
        ({"a": [1, None]}, {"a": [1, None]}),
        (None, None),
    ],
    ids=["no plain value", "message", "map", "none"],
)
def test_plain_values_are_unchanged_and_others_become_strings(value: Any, message: Any) -> None:
    """LangChain shows a model the same string."""

    @tool
    def give() -> Any:
        """Return a value."""
        return value

    assert call_tool(give, "give").value == message


@pytest.mark.parametrize("handled", [False, True], ids=["raised", "handled"])
def test_an_error_for_the_model_is_passed_on(handled: bool) -> None:
    """On one line, escaped and truncated, even if LangChain's tool does not handle it."""

    def fail() -> str:
        raise ToolException("no tea\n\x1b[2J" + "!" * 2_000)

    each = StructuredTool.from_function(fail, description="Fail.", handle_tool_error=handled)
    code, retry, text = error_of(call_tool(each, "fail"))

    assert (code, retry) == ("tool.failed", "model")
    assert (text[:30], len(text)) == ("far.fail: no tea \\x1b[2J!!!!!!", 1_010)


@pytest.mark.parametrize(
    ("handled", "message", "retry"),
    [(False, "the tool failed (ValidationError)", "never"), ("give an even number", "give an even number", "model")],
    ids=["raised", "handled"],
)
def test_validation_errors_of_pydantic_models_are_only_passed_on_by_the_tool(
    handled: Any, message: str, retry: str
) -> None:
    """Pydantic's message repeats values, so it is not passed on by default."""

    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("must be even")
            return n

    each = StructuredTool.from_function(
        lambda n: n, name="halve", description="Halve.", args_schema=Even, handle_validation_error=handled
    )

    assert error_of(call_tool(each, "halve", n=3)) == ("tool.failed", retry, f"far.halve: {message}")


def test_any_other_error_is_a_fault_of_the_tool() -> None:
    """Its message is dropped, because it may contain anything."""

    @tool
    def fail() -> str:
        """Fail."""
        raise ValueError("secret")

    result = call_tool(fail, "fail")

    assert error_of(result) == ("tool.failed", "never", "far.fail: the tool failed (ValueError)")


# Needs


def test_by_default_each_call_needs_a_grant_and_an_approval() -> None:
    """As for the tools of an MCP server."""
    (given,) = from_langchain([add], group="far")

    assert given.policy == ToolPolicy(
        capabilities=("langchain:call:far/add",),
        effects=("net", "reads", "writes", "deletes"),
        requires_approval=True,
        sources=ALL_SOURCES,
        sinks=ALL_SINKS,
    )


def test_without_a_grant_or_an_approval_nothing_runs() -> None:
    """Trust only replaces the approval."""
    with engine_of(add, policy=ExecutionPolicy()) as without, engine_of(add, trusted=False) as unapproved:
        results = [each.execute(ToolCall("far.add", {"a": 1})) for each in (without, unapproved)]

    assert [error_of(each)[:2] for each in results] == [("policy.capability", "host"), ("policy.approval", "host")]
    assert SEEN == []


def test_a_host_may_declare_the_needs() -> None:
    """They then apply to each of the tools."""
    (given,) = from_langchain([add], group="far", policy=ToolPolicy(effects=("pure",)))

    assert given.policy == ToolPolicy(effects=("pure",))


def test_a_denied_tool_stays_denied_on_its_way_back_to_langchain() -> None:
    """A LangChain tool that is exported to LangChain again has our contract and our policy."""
    with engine_of(add, Repeat(), policy=ExecutionPolicy(grants=ALL.grants, deny=("far.repeat_text",))) as engine:
        back = to_langchain(engine)
        answers = run(back, asking(("far__add", {"a": "2"}), ("far__repeat_text", {"text": "a", "times": 1})))

    assert [each.name for each in back] == ["far__add"]
    assert [(each.content, each.artifact) for each in answers] == [
        ("3", 3),
        ("Error: far__repeat_text is not a valid tool, try one of [far__add].", None),
    ]


# Unsupported tools


def test_untrusted_strings_are_escaped_and_truncated() -> None:
    """In the tool and its arguments."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "One\n\x1b[2J"}}}
    each = StructuredTool.from_function(
        lambda a: a, name="t", description="Two\n\x1b[2J" + "!" * 2_000, args_schema=schema
    )
    (given,) = from_langchain([each], group="far")

    assert (given.spec.description[:15], len(given.spec.description)) == ("Two \\x1b[2J!!!!", 1_000)
    assert given.spec.args[0].description == "One \\x1b[2J"


def test_one_tool_is_imported_like_several() -> None:
    """A tool is iterable, and would yield its fields."""
    assert [each.name for each in from_langchain(add, group="far")] == ["far.add"]


def nested(levels: int) -> dict[str, Any]:
    """Return a schema of maps in maps."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (nested(500), "#: nests deeper than 64 levels"),
        ({"type": "object", "properties": None}, "#/properties: expected schemas by name"),
        ({"type": "object", "properties": 3}, "#/properties: expected schemas by name"),
        (
            {"type": "object", "properties": {"config": {}, "a": {}}},
            "config: LangChain reserves this name; rename the argument",
        ),
    ],
    ids=["deep", "null", "number", "kept name"],
)
def test_an_unsupported_schema_is_refused(schema: dict[str, Any], problem: str) -> None:
    """With a clear message, for any data."""
    each = StructuredTool.from_function(lambda **given: given, name="t", description="T.", args_schema=schema)
    with pytest.raises(SpecError) as caught:
        from_langchain([each], group="far")

    assert caught.value.problems == (f"t: {problem}",)


def test_all_unsupported_tools_are_reported_at_once() -> None:
    """Each with the name of the tool."""
    odd = StructuredTool.from_function(lambda: 1, name="???", description="Odd.")
    schema = {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}
    lost = StructuredTool.from_function(lambda a: a, name="lost", description="Lost.", args_schema=schema)
    twin = StructuredTool.from_function(lambda: 1, name="Add", description="Twin.")
    given: list[Any] = [add, twin, odd, lost, note, print]
    with pytest.raises(SpecError) as caught:
        from_langchain(given, group="far", injected={"unknown": Variable("x")})

    assert caught.value.problems == (
        "tools: expected LangChain tools, got builtin_function_or_method",
        "???: cannot be used as a name; expected ASCII letters or digits",
        "add and Add have the same name here, add; leave out all but one",
        "lost: #/properties/a/$ref: no such schema in this document",
        "note: user: the host must supply it; set its source with injected",
        "injected: no tool has a hidden argument unknown",
    )


def test_a_group_must_be_a_valid_name() -> None:
    """As everywhere."""
    with pytest.raises(SpecError) as caught:
        from_langchain([add], group="far away")

    assert str(caught.value) == "toolset far away: the name is not a valid group name"
