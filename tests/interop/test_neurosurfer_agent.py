"""The toolkit of neurosurfer, and the invoker, which calls its tools as an agent does."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from tests.interop.neurosurfer_tools import (
    Boom,
    Careless,
    EchoTool,
    Giving,
    SQLQueryTool,
    StreamLinesTool,
    engine_of,
    invoker_of,
    specified,
)

from neuroscript import Engine, ExecutionPolicy, Host, PolicyError, SpecError, ToolFailed, Toolset
from neuroscript.interop.neurosurfer import (
    Invoker,
    Toolkit,
    ToolParam,
    ToolResponse,
    ToolReturn,
    ToolSpec,
    from_neurosurfer,
)

# The agent


def plain_echo(text: str) -> str:
    """Echo, as a native tool."""
    return text


def test_nsf_45_the_steps_of_a_call_come_in_their_order() -> None:
    """Chosen by name, inputs looked at strictly, called by the line, answered, streamed."""
    with invoker_of(SQLQueryTool(), StreamLinesTool(), Giving(ToolResponse(False, "x", {"n": 1}))) as invoker:
        with pytest.raises(ValueError, match=r"^Input 'limit' expected integer, got str$"):
            invoker.invoke("sql_query", {"query": "q", "limit": "2"})
        assert ToolResponse(True, "DB engine not available.") == invoker.invoke("sql_query", {"query": "q"})
        assert ToolResponse(False, "x", {"n": 1}) == invoker.invoke("giving", {"text": "a"})
        assert ["a"] == list(invoker.invoke("stream_lines", {"lines": ["a"]}).observation)


def test_nsf_45_a_tool_of_another_kind_under_that_name_is_no_final_answer() -> None:
    """What was said of the call before is not said of this one."""
    tool = Giving(ToolResponse(True, iter("ab")))
    own = Toolset("neurosurfer")
    own.tool(name="echo")(plain_echo)
    with engine_of(tool) as engine:
        engine.register(own)
        invoker = Invoker(engine, Toolkit([tool, EchoTool()]))
        assert ["a", "b"] == list(invoker.invoke("giving", {"text": "x"}).observation)
        assert ToolResponse(False, "hi") == invoker.invoke("echo", {"text": "hi"})


def test_nsf_45_a_stream_of_another_kind_under_that_name_loses_no_item() -> None:
    """No tool of neurosurfer declares this."""

    def echo(text: str) -> Iterator[str]:
        """Give the letters of a text."""
        yield from text

    own = Toolset("neurosurfer")
    own.tool()(echo)
    with Engine(plugins="none", toolsets=[own]) as engine:
        answer = Invoker(engine, Toolkit([EchoTool()])).invoke("echo", {"text": "abc"})

        assert ["a", "b", "c"] == list(answer.observation)


def test_nsf_45_a_call_that_is_refused_is_not_made() -> None:
    """The policy is that of the engine, and a refusal is not tried again."""
    tool = Giving(ToolResponse(True, "x"))
    with engine_of(tool, policy=ExecutionPolicy()) as engine, pytest.raises(PolicyError):
        Invoker(engine, Toolkit([tool])).invoke("giving", {"text": "a"})

    assert {} == tool.given


def test_nsf_46_extras_serve_the_next_call_of_an_agent_and_are_gone_after_it() -> None:
    """Those of the next one take their place."""
    first = Giving(ToolResponse(False, "a", {"cursor": 1, "page": 1}), "first")
    second = Giving(ToolResponse(False, "b", {"page": 2}), "second")
    with invoker_of(first, second) as invoker:
        seen = []
        invoker.invoke("first", {"text": "x"})
        for _ in range(3):
            invoker.invoke("second", {"text": "y"})
            seen.append(second.given)

    assert [
        {"text": "y", "cursor": 1, "page": 1},
        {"text": "y", "page": 2},
        {"text": "y", "page": 2},
    ] == seen


def test_nsf_56_inputs_that_are_not_declared_are_left_out_if_the_agent_lets_that_be() -> None:
    """Else they are refused."""
    tool = Giving(ToolResponse(True, "x"))
    with invoker_of(tool) as invoker:
        invoker.invoke("giving", {"text": "a", "more": 1})
    with invoker_of(tool, allow_input_pruning=False) as invoker:
        with pytest.raises(ValueError, match=r"^Unexpected inputs for giving: \['more'\]$"):
            invoker.invoke("giving", {"text": "a", "more": 1})

    assert {"text": "a"} == tool.given


def test_nsf_57_an_agent_repairs_a_call_once_and_what_it_makes_is_looked_at_too() -> None:
    """Of an unknown tool and of bad inputs."""
    told: list[str] = []

    def repair(tool: str, inputs: Mapping[str, Any], error: ValueError) -> tuple[str, dict[str, Any]]:
        told.append(str(error))
        return "echo", {"text": "mended"} if len(told) < 3 else {"text": 5}

    with invoker_of(EchoTool(), repair=repair) as invoker:
        assert "mended" == invoker.invoke("ecco", {"text": "a"}).observation
        assert "mended" == invoker.invoke("echo", {"text": 1}).observation
        with pytest.raises(ValueError, match=r"^Input 'text' expected string, got int$"):
            invoker.invoke("echo", {})

    assert [
        "Unknown tool 'ecco'",
        "Input 'text' expected string, got int",
        "Missing required input: text",
    ] == told


def test_nsf_57_whatever_a_model_has_sent_can_be_repaired() -> None:
    """Inputs that are no object, and a tool that has no name."""
    told: list[str] = []

    def repair(tool: str, inputs: Mapping[str, Any], error: ValueError) -> tuple[str, dict[str, Any]]:
        told.append(str(error))
        return "echo", {"text": "mended"}

    sent: list[Any] = [("echo", ["a"]), ("echo", None), ("echo", "a"), (["echo"], {}), (None, {})]
    with invoker_of(EchoTool(), repair=repair) as invoker:
        answers = [invoker.invoke(tool, inputs).observation for tool, inputs in sent]

    assert ["mended"] * 5 == answers
    assert [f"Inputs for echo expected object, got {name}" for name in ("list", "NoneType", "str")] == told[:3]
    assert ["Unknown tool of type list", "Unknown tool of type None"] == told[3:]


def test_nsf_58_attempts_and_pauses_are_numbers_that_there_are() -> None:
    """Both are looked at when the invoker is made."""
    with engine_of(EchoTool()) as engine, pytest.raises(SpecError) as caught:
        Invoker(engine, Toolkit([EchoTool()]), max_tool_errors=-1, backoff_sec=float("nan"))

    assert "Invoker: max_tool_errors: expected 0 or more; backoff_sec: expected 0 or more" == str(caught.value)


def test_nsf_58_a_tool_that_fails_is_called_twice_again_with_more_time_between() -> None:
    """So that a third attempt may give the answer."""
    waited: list[float] = []
    tool = Boom(2)
    with invoker_of(tool, backoff_sec=0.5, wait=waited.append) as invoker:
        answer = invoker.invoke("boom", {"text": "a"})

    assert (ToolResponse(False, "a at last"), 3, [0.5, 1.0]) == (answer, tool.calls, waited)


def test_nsf_58_a_tool_that_its_host_has_to_mend_is_not_called_again() -> None:
    """The call is not made three times, and nothing waits."""
    waited: list[float] = []
    tool = Boom(9, ToolFailed("no such table", retry="host"))
    with invoker_of(tool, Giving("text"), wait=waited.append) as invoker:
        told = [invoker.invoke(name, {"text": "a"}).observation for name in ("boom", "giving")]

    assert [
        "[tool:boom] failed after retries: no such table",
        "[tool:giving] failed after retries: result: expected a ToolResponse, got str",
    ] == told
    assert (1, []) == (tool.calls, waited)


def test_nsf_59_a_tool_that_goes_on_failing_is_answered_for() -> None:
    """Not finally; with what it raised."""
    tool = Boom(9)
    with invoker_of(tool) as invoker:
        answer = invoker.invoke("boom", {"text": "a"})

    assert (ToolResponse(False, "[tool:boom] failed after retries: kaput"), 3) == (answer, tool.calls)


def test_nsf_59_what_the_tool_means_to_say_is_said_and_no_secret_is() -> None:
    """The text of a ToolFailed is its own."""
    with invoker_of(Boom(9, ToolFailed("come back later")), max_tool_errors=0) as invoker:
        meant = invoker.invoke("boom", {"text": "a"}).observation
    boom = Boom(9, RuntimeError("the key is hush-hush-4711-now"))
    with engine_of(boom, host=Host(secrets={"key": "hush-hush-4711-now"})) as engine:
        hidden = Invoker(engine, Toolkit([boom]), max_tool_errors=0).invoke("boom", {"text": "a"}).observation

    assert "[tool:boom] failed after retries: come back later" == meant
    assert "[tool:boom] failed after retries: the key is [secret]" == hidden


def test_nsf_59_an_exception_that_can_not_say_anything_is_told_by_its_type() -> None:
    """The agent goes on."""

    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    with invoker_of(Boom(9, Silent()), max_tool_errors=1) as invoker:
        answer = invoker.invoke("boom", {"text": "a"})

    assert ToolResponse(False, "[tool:boom] failed after retries: Silent") == answer


def test_nsf_45_a_spec_that_is_changed_later_changes_no_call() -> None:
    """Neither what an agent looks at nor what the engine takes."""
    tool = Giving(ToolResponse(True, "x"))
    with invoker_of(tool) as invoker:
        tool.spec.inputs[0].type = "decimal"
        tool.spec.inputs.append(ToolParam("more", "string", "d"))
        answer = invoker.invoke("giving", {"text": "a"})

    assert (ToolResponse(True, "x"), {"text": "a"}) == (answer, tool.given)


# The toolkit


def test_nsf_49_a_toolkit_has_the_tools_that_it_is_given() -> None:
    """None, where it is given none."""
    assert [] == list(Toolkit().registry)
    assert ["echo", "sql_query"] == list(Toolkit(tools=[EchoTool(), SQLQueryTool()], logger=None).registry)
    with engine_of() as engine:
        engine.register(from_neurosurfer(Toolkit([EchoTool()]), trusted=True))
        assert "a" == engine.call("neurosurfer.echo", ("a",))


def test_nsf_50_tools_and_specs_are_found_by_name() -> None:
    """Those of the very tool."""
    toolkit = Toolkit([tool := EchoTool()])

    assert ({"echo": tool}, {"echo": EchoTool.spec}) == (toolkit.registry, toolkit.specs)


@pytest.mark.parametrize(
    ("thing", "name"),
    [(SimpleNamespace(spec=EchoTool.spec), "SimpleNamespace"), (object(), "object"), (EchoTool, "ABCMeta")],
    ids=["spec", "nothing", "class"],
)
def test_nsf_51_what_is_no_tool_is_refused(thing: Any, name: str) -> None:
    """By its type."""
    with pytest.raises(TypeError) as caught:
        Toolkit().register_tool(thing)
    with pytest.raises(SpecError) as taken:
        from_neurosurfer(thing)

    assert f"Invalid tool type: {name}. Expected a subclass of BaseTool." == str(caught.value)
    expected = "expected a neurosurfer tool, which is an instance with a spec"
    assert f"from_neurosurfer neurosurfer: tools: {expected}, got {name}" == str(taken.value)


def test_nsf_52_a_name_that_is_taken_is_refused() -> None:
    """The toolkit is what it was."""
    toolkit = Toolkit([EchoTool()])
    with pytest.raises(ValueError) as caught:
        toolkit.register_tool(EchoTool())

    assert ("Tool 'echo' is already registered.", ["echo"]) == (str(caught.value), list(toolkit.specs))


def test_nsf_53_a_spec_that_was_changed_since_is_looked_at_again() -> None:
    """Where the tool is registered."""
    tool = Giving(ToolResponse(True, "x"))
    tool.spec.inputs.append(ToolParam("text", "string", "again"))
    with pytest.raises(ValueError, match=r"^giving has duplicate input 'text'\.$"):
        Toolkit([tool])
    with pytest.raises(SpecError, match=r"Giving: giving has duplicate input 'text'\.$"):
        from_neurosurfer(tool)


def test_nsf_54_a_toolkit_describes_its_tools() -> None:
    """To the letter."""
    smoke = ToolSpec("echo", "Echo", "smoke", [ToolParam("text", "string", "d")], ToolReturn("string", "r"))

    assert (
        "### `echo`\nEcho\n**When to use**: smoke\n**Inputs**:\n- `text`: string (required) — d\n"
        "**Returns**: string — r\n\n"
        "### `calculator`\nPerforms arithmetic operations\n"
        "**When to use**: Use when you must compute a numeric result\n**Inputs**:\n"
        "- `operation`: string (required) — add|sub|mul|div\n- `a`: number (required) — Left operand\n"
        "- `b`: number (required) — Right operand\n**Returns**: number — Result of the operation\n"
    ) == Toolkit([Careless(smoke), Careless(specified())]).get_tools_description()


def test_nsf_55_a_registration_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """By the logger of the module, or by the one that is given."""
    caplog.set_level(logging.INFO)
    Toolkit([EchoTool()])
    Toolkit([EchoTool()], logger=logging.getLogger("mine"))

    assert [
        ("neuroscript.interop.neurosurfer.toolkit", "Registered tool: echo"),
        ("mine", "Registered tool: echo"),
    ] == [(each.name, each.getMessage()) for each in caplog.records]
