"""Which tools of a session somebody else's loop is offered, what is told of them, and the calls that come back."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from copy import deepcopy

import pytest

from neuroscript import (
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
from neuroscript.llm.offered_tools import Offered, offered
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
        """Count coins, and return how many there have been."""
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


def named(tools: tuple[Offered, ...]) -> list[str]:
    return [each.name for each in tools]


def test_all_tools_that_a_session_permits_are_offered(engine: Engine) -> None:
    """A denied one is not among them."""
    assert named(offered(engine, subject="loop")) == ["bank__count", "mail__send"]


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
def test_those_are_offered_that_patterns_name(engine: Engine, patterns: str | list[str], names: list[str]) -> None:
    """One text is one pattern, and no pattern is no tool."""
    assert named(offered(engine, patterns, subject="loop")) == names


def test_all_patterns_that_match_nothing_are_told_at_once(engine: Engine) -> None:
    """A denied tool is nothing that may be called, whatever stands beside it."""
    with pytest.raises(SpecError) as raised:
        offered(engine, ("*", "bank.rob", "mail.*", "post.*"), subject="loop")

    assert str(raised.value) == (
        "loop: tools: bank.rob matches no tool that may be called here; "
        "tools: post.* matches no tool that may be called here"
    )


def test_what_is_no_pattern_is_refused(engine: Engine) -> None:
    """As in every other place that takes patterns."""
    with pytest.raises(SpecError) as raised:
        offered(engine, "mail.[", subject="loop")

    assert str(raised.value) == (
        "execution policy: allow: mail.[ is not a valid pattern; use a name, or a pattern such as fs.*"
    )


def test_what_was_chosen_can_not_be_widened(engine: Engine) -> None:
    """Neither by a call of another tool, nor by offering what was offered once more."""
    (send,) = offered(engine, "mail.*", subject="loop")
    result = send.session.execute(ToolCall("bank.count", {"coins": 1}))
    with pytest.raises(SpecError) as raised:
        offered(send.session, "bank.*", subject="loop")

    assert result.error is not None
    assert (result.error.code, result.error.retry) == ("policy.not_allowed", "host")
    assert str(raised.value) == "loop: tools: bank.* matches no tool that may be called here"
    assert named(offered(send.session, subject="loop")) == ["mail__send"]
    assert RAN == []


def test_a_denied_tool_is_refused_whoever_asks(engine: Engine) -> None:
    """Its name leads to nothing, and the refusal is kept."""
    (count, _) = offered(engine, subject="loop")
    result = count.session.execute(ToolCall("bank__rob", {}))

    assert result.error is not None
    assert (result.error.code, result.error.retry, RAN) == ("policy.denied", "host", [])
    assert [refusal.about.tool for refusal in engine.refusals] == ["bank.rob"]


def test_what_is_told_holds_no_default_of_a_secret(engine: Engine) -> None:
    """No model needs it, and the tool gets it all the same."""
    (send,) = offered(engine, "mail.*", subject="loop")

    assert send.description == "Send a letter."
    assert send.schema["properties"]["key"] == {"type": ["string", "null"], "writeOnly": True}
    assert "sesame1" not in repr(send.schema)
    assert send.execute({"to": "Ann"}).value == "sent to Ann"


@pytest.mark.parametrize(("tool", "argument"), [("bank.count", "coins"), ("mail.send", "to")])
def test_a_schema_is_a_copy_of_your_own(engine: Engine, tool: str, argument: str) -> None:
    """At every level, whether there is a secret in it or not: a framework may write into it."""
    (asked,) = offered(engine, tool, subject="loop")
    first, before = asked.schema, deepcopy(asked.schema)
    first["properties"][argument]["type"] = "null"
    first["properties"]["more"] = {}

    assert asked.schema == before
    assert asked.schema["properties"].keys() < first["properties"].keys()


def test_calls_are_those_of_the_session(engine: Engine) -> None:
    """Its variables, its limits and its trail hold, in both worlds."""
    with engine.session() as session:
        (count,) = offered(session, "bank.*", subject="loop")
        results = [count.execute('{"coins": "2"}', id="a"), asyncio.run(count.aexecute({"coins": 3}, id="b"))]
        results += [count.execute({"coins": 1}), count.execute({"coins": 1})]

    assert [(each.id, each.tool, each.value) for each in results[:2]] == [
        ("a", "bank.count", 2),
        ("b", "bank.count", 5),
    ]
    assert [each.ok for each in results] == [True, True, True, False]
    assert count.text(results[3]).startswith("error limit.tool: ")


def test_errors_call_tools_what_the_model_calls_them(engine: Engine) -> None:
    """The argument is named, and a near name is one that the model can use."""
    (send,) = offered(engine, "mail.*", subject="loop")
    wrong, unknown = send.execute({"to": 3}), send.session.execute(ToolCall("mail__sent", {}))

    assert send.text(wrong) == "error coercion.type: to: expected string, got int. Fix the arguments and call again."
    assert send.text(unknown) == (
        "error tool.not_found: no tool with this name is available; did you mean mail__send? "
        "Fix the arguments and call again."
    )


def test_an_error_is_a_text_that_a_loop_can_send() -> None:
    """A tool may say what no UTF-8 holds, as a name of a file may; it would end the run of its loop."""
    tools = Toolset("disk")

    @tools.tool()
    def read(rt: Runtime) -> str:
        raise ToolFailed("no file a\udcff")

    with Engine(toolsets=[tools], plugins="none") as engine:
        (asked,) = offered(engine, subject="loop")
        text = asked.text(asked.execute({}))

    assert text == ("error tool.failed: no file a\\udcff. This call cannot succeed; do not repeat it.")


def test_two_tools_of_one_name_are_refused() -> None:
    """A tool may be called as another one is cut to; both are named, before any model is told of them."""
    tools, long = Toolset("g"), ToolSpec("x" * 70, "g")
    wire = WireNames().wire(long.full_name)
    tools.add(long, lambda rt: None)
    tools.add(ToolSpec(wire.removeprefix("g__"), "g"), lambda rt: None)
    with Engine(toolsets=[tools], plugins="none") as engine, pytest.raises(RegistryError) as raised:
        offered(engine, subject="loop")

    assert str(raised.value).endswith(f"would both be named {wire}")


def test_a_long_name_is_cut_and_found_again() -> None:
    """The model's name is not the tool's, and an error too calls it what the model does."""
    tools, name = Toolset("long"), "x" * 70
    tools.add(ToolSpec(name, "long", return_type=ArgType.INT), lambda rt: 7)
    with Engine(toolsets=[tools], plugins="none") as engine:
        (tool,) = offered(engine, subject="loop")
        unknown = tool.text(tool.session.execute(ToolCall(f"long__{name}y", {})))

        assert (len(tool.name), tool.execute({}).value, tool.names.tool(tool.name)) == (64, 7, f"long.{name}")
        assert f"did you mean {tool.name}?" in unknown


def test_an_engine_without_tools_offers_none() -> None:
    """Everything that there is may be nothing, which is no mistake."""
    with Engine(plugins="none") as engine:
        assert offered(engine, subject="loop") == offered(engine, ("*", "*"), subject="loop") == ()


def test_what_was_offered_ends_with_its_session(engine: Engine) -> None:
    """Nothing runs for a caller who has gone."""
    with engine.session() as session:
        (count,) = offered(session, "bank.*", subject="loop")
    result = count.execute({"coins": 1})

    assert result.error is not None
    assert (result.error.code, result.error.retry, RAN) == ("engine.closed", "never", [])


def test_what_is_offered_no_more_is_kept_by_nobody(engine: Engine) -> None:
    """A loop may offer tools anew in each of its turns."""
    gone = weakref.ref(offered(engine, "mail.*", subject="loop")[0].session)
    gc.collect()

    assert gone() is None
