"""The tools of a session that are offered to an external loop: their descriptions, and the calls that come back."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from copy import deepcopy

import pytest

from neuroscript import (
    Approval,
    ArgSpec,
    ArgType,
    Engine,
    ExecutionPolicy,
    Limits,
    MemoryAudit,
    RegistryError,
    Runtime,
    SpecError,
    ToolCall,
    ToolFailed,
    Toolset,
    ToolSpec,
)
from neuroscript.llm.offered_tools import OfferedTool, offer_tools
from neuroscript.runtime.wire_names import WireNames

RAN: list[str] = []


@pytest.fixture
def engine() -> Iterator[Engine]:
    RAN.clear()
    policy = ExecutionPolicy(deny=("bank.rob",), limits=Limits(tool_calls={"bank.count": 3}))
    with Engine(toolsets=[bank(), mail()], plugins="none", policy=policy, audit=MemoryAudit()) as engine:
        yield engine


def bank() -> Toolset:
    tools = Toolset("bank")

    @tools.tool()
    def count(rt: Runtime, coins: int) -> int:
        """Count coins, and return the total."""
        RAN.append("count")
        total: int = rt.update_var("counted", lambda counted: (counted or 0) + coins)
        return total

    @tools.tool()
    def rob(rt: Runtime) -> None:
        RAN.append("rob")

    return tools


def mail() -> Toolset:
    tools = Toolset("mail")
    args = (
        ArgSpec("to", ArgType.STRING),
        ArgSpec("key", ArgType.STRING, secret=True, required=False, default="sesame1"),
    )
    spec = ToolSpec("send", "mail", args, return_type=ArgType.STRING, description="Send a letter.")
    tools.add(spec, lambda rt, to, key: f"sent to {to}")
    return tools


def named(tools: tuple[OfferedTool, ...]) -> list[str]:
    return [each.name for each in tools]


def test_all_permitted_tools_of_a_session_are_offered(engine: Engine) -> None:
    """Denied ones are not included."""
    assert named(offer_tools(engine, subject="loop")) == ["bank__count", "mail__send"]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ("mail.*", ["mail__send"]),
        (["mail.send", "bank.count"], ["bank__count", "mail__send"]),
        ("tool.Mail.Send", ["mail__send"]),
        (("*", "mail.*"), ["bank__count", "mail__send"]),
        ((), []),
    ],
    ids=["a pattern", "several names", "another spelling", "everything", "nothing"],
)
def test_patterns_select_the_offered_tools(engine: Engine, patterns: str | list[str], names: list[str]) -> None:
    """A string is one pattern, and an empty list selects nothing."""
    assert named(offer_tools(engine, patterns, subject="loop")) == names


def test_all_patterns_without_a_match_are_reported_at_once(engine: Engine) -> None:
    """A denied tool is not callable, so its pattern does not match."""
    with pytest.raises(SpecError) as raised:
        offer_tools(engine, ("*", "bank.rob", "mail.*", "post.*"), subject="loop")

    assert str(raised.value) == (
        "loop: tools: bank.rob matches no tool that may be called here; "
        "tools: post.* matches no tool that may be called here"
    )


def test_an_invalid_pattern_is_refused(engine: Engine) -> None:
    """As everywhere that accepts patterns."""
    with pytest.raises(SpecError) as raised:
        offer_tools(engine, "mail.[", subject="loop")

    assert str(raised.value) == (
        "execution policy: allow: mail.[ is not a valid pattern; use a name, or a pattern such as fs.*"
    )


def test_a_selection_cannot_be_widened(engine: Engine) -> None:
    """Neither by a call of another tool, nor by offering the selection again."""
    (send,) = offer_tools(engine, "mail.*", subject="loop")
    result = send.session.execute(ToolCall("bank.count", {"coins": 1}))
    with pytest.raises(SpecError) as raised:
        offer_tools(send.session, "bank.*", subject="loop")

    assert result.error is not None
    assert (result.error.code, result.error.retry) == ("policy.not_allowed", "host")
    assert str(raised.value) == "loop: tools: bank.* matches no tool that may be called here"
    assert named(offer_tools(send.session, subject="loop")) == ["mail__send"]
    assert RAN == []


def test_a_selection_does_not_ask_about_other_tools() -> None:
    """Even if the policy of the host asks about tools that it does not allow."""
    policy = ExecutionPolicy(allow=(), otherwise="ask", approver=lambda request: Approval.approve())
    with Engine(toolsets=[bank(), mail()], plugins="none", policy=policy) as engine:
        (count,) = offer_tools(engine, "bank.count", subject="test")

        assert {*count.session.infos} == {"bank.count"}


def test_a_denied_tool_is_always_refused(engine: Engine) -> None:
    """Its name is unknown, and the refusal is recorded."""
    (count, _) = offer_tools(engine, subject="loop")
    result = count.session.execute(ToolCall("bank__rob", {}))

    assert result.error is not None
    assert (result.error.code, result.error.retry, RAN) == ("policy.denied", "host", [])
    assert [refusal.about.tool for refusal in engine.refusals] == ["bank.rob"]


def test_descriptions_contain_no_default_of_a_secret(engine: Engine) -> None:
    """Models do not need it, and the tool still receives it."""
    (send,) = offer_tools(engine, "mail.*", subject="loop")

    assert send.description == "Send a letter."
    assert send.schema["properties"]["key"] == {"type": ["string", "null"], "writeOnly": True}
    assert "sesame1" not in repr(send.schema)
    assert send.execute({"to": "Ann"}).value == "sent to Ann"


@pytest.mark.parametrize(("tool", "argument"), [("bank.count", "coins"), ("mail.send", "to")])
def test_a_schema_is_a_separate_copy(engine: Engine, tool: str, argument: str) -> None:
    """At every level, with or without secrets: a framework may modify it."""
    (request,) = offer_tools(engine, tool, subject="loop")
    first, before = request.schema, deepcopy(request.schema)
    first["properties"][argument]["type"] = "null"
    first["properties"]["more"] = {}

    assert request.schema == before
    assert request.schema["properties"].keys() < first["properties"].keys()


def test_calls_belong_to_the_session(engine: Engine) -> None:
    """They use its variables, limits and audit log, in sync and async code."""
    with engine.session() as session:
        (count,) = offer_tools(session, "bank.*", subject="loop")
        results = [count.execute('{"coins": "2"}', id="a"), asyncio.run(count.aexecute({"coins": 3}, id="b"))]
        results += [count.execute({"coins": 1}), count.execute({"coins": 1})]

    assert [(each.id, each.tool, each.value) for each in results[:2]] == [
        ("a", "bank.count", 2),
        ("b", "bank.count", 5),
    ]
    assert [each.ok for each in results] == [True, True, True, False]
    assert count.text(results[3]).startswith("error limit.tool_calls: ")


def test_errors_use_the_names_that_the_model_knows(engine: Engine) -> None:
    """The argument is named, and the suggested name is one that the model can use."""
    (send,) = offer_tools(engine, "mail.*", subject="loop")
    wrong, unknown = send.execute({"to": 3}), send.session.execute(ToolCall("mail__sent", {}))

    assert send.text(wrong) == "error coercion.type: to: expected string, got int. Fix the arguments and call again."
    assert send.text(unknown) == (
        "error tool.not_found: no tool with this name is available; did you mean mail__send? "
        "Fix the arguments and call again."
    )


def test_an_error_is_encodable() -> None:
    """A tool may return surrogates, as in a file name, which would end the run of the loop."""
    tools = Toolset("disk")

    @tools.tool()
    def read(rt: Runtime) -> str:
        raise ToolFailed("no file a\udcff")

    with Engine(toolsets=[tools], plugins="none") as engine:
        (request,) = offer_tools(engine, subject="loop")
        text = request.text(request.execute({}))

    assert text == ("error tool.failed: no file a\\udcff. This call cannot succeed; do not repeat it.")


def test_two_tools_with_one_name_are_refused() -> None:
    """The name of a tool may equal another's truncated name; the error names both before a model sees them."""
    tools, long = Toolset("g"), ToolSpec("x" * 70, "g")
    wire = WireNames().wire(long.full_name)
    tools.add(long, lambda rt: None)
    tools.add(ToolSpec(wire.removeprefix("g__"), "g"), lambda rt: None)
    with Engine(toolsets=[tools], plugins="none") as engine, pytest.raises(RegistryError) as raised:
        offer_tools(engine, subject="loop")

    assert str(raised.value).endswith(f"would both be named {wire}")


def test_a_long_name_is_truncated_and_resolved() -> None:
    """The model's name differs from the tool's, and errors use the model's name."""
    tools, name = Toolset("long"), "x" * 70
    tools.add(ToolSpec(name, "long", return_type=ArgType.INT), lambda rt: 7)
    with Engine(toolsets=[tools], plugins="none") as engine:
        (tool,) = offer_tools(engine, subject="loop")
        unknown = tool.text(tool.session.execute(ToolCall(f"long__{name}y", {})))

        assert (len(tool.name), tool.execute({}).value, tool.names.tool(tool.name)) == (64, 7, f"long.{name}")
        assert f"did you mean {tool.name}?" in unknown


def test_an_engine_without_tools_offers_none() -> None:
    """Selecting all of no tools is not an error."""
    with Engine(plugins="none") as engine:
        assert offer_tools(engine, subject="loop") == offer_tools(engine, ("*", "*"), subject="loop") == ()


def test_offered_tools_end_with_their_session(engine: Engine) -> None:
    """Nothing runs for a closed session."""
    with engine.session() as session:
        (count,) = offer_tools(session, "bank.*", subject="loop")
    result = count.execute({"coins": 1})

    assert result.error is not None
    assert (result.error.code, result.error.retry, RAN) == ("engine.closed", "never", [])


def test_discarded_offers_are_released(engine: Engine) -> None:
    """A loop may offer tools again in each of its turns."""
    gone = weakref.ref(offer_tools(engine, "mail.*", subject="loop")[0].session)
    gc.collect()

    assert gone() is None
