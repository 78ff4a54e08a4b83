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
    Recorder,
    SQLQueryTool,
    StreamLinesTool,
    engine_of,
    invoker_of,
    make_spec,
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


def test_nsf_45_invoker_looks_up_validates_and_calls_a_tool() -> None:
    """By name; inputs are validated strictly, and the engine calls the tool. A stream is an iterator."""
    with invoker_of(SQLQueryTool(), StreamLinesTool(), Recorder(ToolResponse(False, "x", {"n": 1}))) as invoker:
        with pytest.raises(ValueError, match=r"^Input 'limit' expected integer, got str$"):
            invoker.invoke("sql_query", {"query": "q", "limit": "2"})
        assert ToolResponse(True, "DB engine not available.") == invoker.invoke("sql_query", {"query": "q"})
        assert ToolResponse(False, "x", {"n": 1}) == invoker.invoke("recorder", {"text": "a"})
        assert ["a"] == list(invoker.invoke("stream_lines", {"lines": ["a"]}).observation)


def test_nsf_45_a_native_tool_with_the_same_name_has_no_final_answer() -> None:
    """The state of the previous call does not affect this one."""
    tool = Recorder(ToolResponse(True, iter("ab")))
    own = Toolset("neurosurfer")
    own.tool(name="echo")(plain_echo)
    with engine_of(tool) as engine:
        engine.register(own)
        invoker = Invoker(engine, Toolkit([tool, EchoTool()]))
        assert ["a", "b"] == list(invoker.invoke("recorder", {"text": "x"}).observation)
        assert ToolResponse(False, "hi") == invoker.invoke("echo", {"text": "hi"})


def test_nsf_45_a_native_stream_with_the_same_name_loses_no_item() -> None:
    """No tool of neurosurfer is declared as a stream."""

    def echo(text: str) -> Iterator[str]:
        """Yield the letters of a string."""
        yield from text

    own = Toolset("neurosurfer")
    own.tool()(echo)
    with Engine(plugins="none", toolsets=[own]) as engine:
        answer = Invoker(engine, Toolkit([EchoTool()])).invoke("echo", {"text": "abc"})

        assert ["a", "b", "c"] == list(answer.observation)


def test_nsf_45_a_refused_call_does_not_run() -> None:
    """The engine's policy applies, and a refusal is not retried."""
    tool = Recorder(ToolResponse(True, "x"))
    with engine_of(tool, policy=ExecutionPolicy()) as engine, pytest.raises(PolicyError):
        Invoker(engine, Toolkit([tool])).invoke("recorder", {"text": "a"})

    assert {} == tool.inputs


def test_nsf_46_extras_are_passed_to_the_next_call_only() -> None:
    """Extras of that call replace them."""
    first = Recorder(ToolResponse(False, "a", {"cursor": 1, "page": 1}), "first")
    second = Recorder(ToolResponse(False, "b", {"page": 2}), "second")
    with invoker_of(first, second) as invoker:
        seen = []
        invoker.invoke("first", {"text": "x"})
        for _ in range(3):
            invoker.invoke("second", {"text": "y"})
            seen.append(second.inputs)

    assert [
        {"text": "y", "cursor": 1, "page": 1},
        {"text": "y", "page": 2},
        {"text": "y", "page": 2},
    ] == seen


def test_nsf_56_undeclared_inputs_are_pruned_if_allowed() -> None:
    """Otherwise they are refused."""
    tool = Recorder(ToolResponse(True, "x"))
    with invoker_of(tool) as invoker:
        invoker.invoke("recorder", {"text": "a", "more": 1})
    with invoker_of(tool, allow_input_pruning=False) as invoker:
        with pytest.raises(ValueError, match=r"^Unexpected inputs for recorder: \['more'\]$"):
            invoker.invoke("recorder", {"text": "a", "more": 1})

    assert {"text": "a"} == tool.inputs


def test_nsf_57_a_repair_runs_once_and_its_result_is_validated() -> None:
    """For unknown tools and invalid inputs."""
    errors: list[str] = []

    def repair(tool: str, inputs: Mapping[str, Any], error: ValueError) -> tuple[str, dict[str, Any]]:
        errors.append(str(error))
        return "echo", {"text": "fixed"} if len(errors) < 3 else {"text": 5}

    with invoker_of(EchoTool(), repair=repair) as invoker:
        assert "fixed" == invoker.invoke("ecco", {"text": "a"}).observation
        assert "fixed" == invoker.invoke("echo", {"text": 1}).observation
        with pytest.raises(ValueError, match=r"^Input 'text' expected string, got int$"):
            invoker.invoke("echo", {})

    assert [
        "Unknown tool 'ecco'",
        "Input 'text' expected string, got int",
        "Missing required input: text",
    ] == errors


def test_nsf_57_every_kind_of_invalid_call_can_be_repaired() -> None:
    """Inputs that are not an object, and tools without a name."""
    errors: list[str] = []

    def repair(tool: str, inputs: Mapping[str, Any], error: ValueError) -> tuple[str, dict[str, Any]]:
        errors.append(str(error))
        return "echo", {"text": "fixed"}

    sent: list[Any] = [("echo", ["a"]), ("echo", None), ("echo", "a"), (["echo"], {}), (None, {})]
    with invoker_of(EchoTool(), repair=repair) as invoker:
        answers = [invoker.invoke(tool, inputs).observation for tool, inputs in sent]

    assert ["fixed"] * 5 == answers
    assert [f"Inputs for echo expected object, got {name}" for name in ("list", "NoneType", "str")] == errors[:3]
    assert ["Unknown tool of type list", "Unknown tool of type None"] == errors[3:]


def test_nsf_58_invalid_numbers_of_attempts_and_delays_are_refused() -> None:
    """Both are reported when the invoker is created."""
    with engine_of(EchoTool()) as engine, pytest.raises(SpecError) as caught:
        Invoker(engine, Toolkit([EchoTool()]), max_tool_errors=-1, backoff_sec=float("nan"))

    assert "Invoker: max_tool_errors: expected 0 or more; backoff_sec: expected 0 or more" == str(caught.value)


def test_nsf_58_a_failing_tool_is_retried_twice_with_increasing_delays() -> None:
    """The third attempt may succeed."""
    waited: list[float] = []
    tool = Boom(2)
    with invoker_of(tool, backoff_sec=0.5, wait=waited.append) as invoker:
        answer = invoker.invoke("boom", {"text": "a"})

    assert (ToolResponse(False, "a at last"), 3, [0.5, 1.0]) == (answer, tool.calls, waited)


def test_nsf_58_an_error_for_the_host_is_not_retried() -> None:
    """There is one call and no delay."""
    waited: list[float] = []
    tool = Boom(9, ToolFailed("no such table", retry="host"))
    with invoker_of(tool, Recorder("text"), wait=waited.append) as invoker:
        errors = [invoker.invoke(name, {"text": "a"}).observation for name in ("boom", "recorder")]

    assert [
        "[tool:boom] failed after retries: no such table",
        "[tool:recorder] failed after retries: result: expected a ToolResponse, got str",
    ] == errors
    assert (1, []) == (tool.calls, waited)


def test_nsf_59_a_repeated_failure_becomes_an_observation() -> None:
    """It is not final, and contains the message of the exception."""
    tool = Boom(9)
    with invoker_of(tool) as invoker:
        answer = invoker.invoke("boom", {"text": "a"})

    assert (ToolResponse(False, "[tool:boom] failed after retries: kaput"), 3) == (answer, tool.calls)


def test_nsf_59_a_failure_shows_its_message_without_secrets() -> None:
    """A ToolFailed has a message for callers."""
    with invoker_of(Boom(9, ToolFailed("come back later")), max_tool_errors=0) as invoker:
        meant = invoker.invoke("boom", {"text": "a"}).observation
    boom = Boom(9, RuntimeError("the key is hush-hush-4711-now"))
    with engine_of(boom, host=Host(secrets={"key": "hush-hush-4711-now"})) as engine:
        hidden = Invoker(engine, Toolkit([boom]), max_tool_errors=0).invoke("boom", {"text": "a"}).observation

    assert "[tool:boom] failed after retries: come back later" == meant
    assert "[tool:boom] failed after retries: the key is [secret]" == hidden


def test_nsf_59_an_exception_without_a_message_is_shown_as_its_type() -> None:
    """The agent continues."""

    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    with invoker_of(Boom(9, Silent()), max_tool_errors=1) as invoker:
        answer = invoker.invoke("boom", {"text": "a"})

    assert ToolResponse(False, "[tool:boom] failed after retries: Silent") == answer


def test_nsf_45_changing_a_spec_later_has_no_effect() -> None:
    """Neither on validation nor on the call."""
    tool = Recorder(ToolResponse(True, "x"))
    with invoker_of(tool) as invoker:
        tool.spec.inputs[0].type = "decimal"
        tool.spec.inputs.append(ToolParam("more", "string", "d"))
        answer = invoker.invoke("recorder", {"text": "a"})

    assert (ToolResponse(True, "x"), {"text": "a"}) == (answer, tool.inputs)


# The toolkit


def test_nsf_49_a_toolkit_contains_its_tools() -> None:
    """It may be empty."""
    assert [] == list(Toolkit().registry)
    assert ["echo", "sql_query"] == list(Toolkit(tools=[EchoTool(), SQLQueryTool()], logger=None).registry)
    with engine_of() as engine:
        engine.register(from_neurosurfer(Toolkit([EchoTool()]), trusted=True))
        assert "a" == engine.call("neurosurfer.echo", ("a",))


def test_nsf_50_registry_and_specs_are_mappings_by_name() -> None:
    """The registry has the same tool object."""
    toolkit = Toolkit([tool := EchoTool()])

    assert ({"echo": tool}, {"echo": EchoTool.spec}) == (toolkit.registry, toolkit.specs)


@pytest.mark.parametrize(
    ("thing", "name"),
    [(SimpleNamespace(spec=EchoTool.spec), "SimpleNamespace"), (object(), "object"), (EchoTool, "ABCMeta")],
    ids=["spec", "nothing", "class"],
)
def test_nsf_51_an_object_that_is_not_a_tool_is_refused(thing: Any, name: str) -> None:
    """The error contains its type."""
    with pytest.raises(TypeError) as caught:
        Toolkit().register_tool(thing)
    with pytest.raises(SpecError) as taken:
        from_neurosurfer(thing)

    assert f"Invalid tool type: {name}. Expected a subclass of BaseTool." == str(caught.value)
    expected = "expected a neurosurfer tool, which is an instance with a spec"
    assert f"from_neurosurfer neurosurfer: tools: {expected}, got {name}" == str(taken.value)


def test_nsf_52_a_duplicate_name_is_refused() -> None:
    """The toolkit is unchanged."""
    toolkit = Toolkit([EchoTool()])
    with pytest.raises(ValueError) as caught:
        toolkit.register_tool(EchoTool())

    assert ("Tool 'echo' is already registered.", ["echo"]) == (str(caught.value), list(toolkit.specs))


def test_nsf_53_a_modified_spec_is_validated_again() -> None:
    """When the tool is registered."""
    tool = Recorder(ToolResponse(True, "x"))
    tool.spec.inputs.append(ToolParam("text", "string", "again"))
    with pytest.raises(ValueError, match=r"^recorder has duplicate input 'text'\.$"):
        Toolkit([tool])
    with pytest.raises(SpecError, match=r"Recorder: recorder has duplicate input 'text'\.$"):
        from_neurosurfer(tool)


def test_nsf_54_a_toolkit_describes_its_tools() -> None:
    """In exactly the documented format."""
    smoke = ToolSpec("echo", "Echo", "smoke", [ToolParam("text", "string", "d")], ToolReturn("string", "r"))

    assert (
        "### `echo`\nEcho\n**When to use**: smoke\n**Inputs**:\n- `text`: string (required) — d\n"
        "**Returns**: string — r\n\n"
        "### `calculator`\nPerforms arithmetic operations\n"
        "**When to use**: Use when you must compute a numeric result\n**Inputs**:\n"
        "- `operation`: string (required) — add|sub|mul|div\n- `a`: number (required) — Left operand\n"
        "- `b`: number (required) — Right operand\n**Returns**: number — Result of the operation\n"
    ) == Toolkit([Careless(smoke), Careless(make_spec())]).get_tools_description()


def test_nsf_55_a_registration_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """By the logger of the module, or by an explicit one."""
    caplog.set_level(logging.INFO)
    Toolkit([EchoTool()])
    Toolkit([EchoTool()], logger=logging.getLogger("mine"))

    assert [
        ("neuroscript.interop.neurosurfer.toolkit", "Registered tool: echo"),
        ("mine", "Registered tool: echo"),
    ] == [(each.name, each.getMessage()) for each in caplog.records]
