"""FakeRuntime: what the script provides to a tool, what is recorded, and the errors of a wrong script."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from neuroscript import CallError, LLMError, PolicyError, Runtime, SpecError, ToolCall, Turn
from neuroscript.testing import FakeRuntime, ScriptError

MEMBERS = sorted(name for name in vars(Runtime) if not name.startswith("_"))


def greet(rt: Runtime, name: str) -> str:
    """Stand for the function of a tool; a type checker sees whether a `FakeRuntime` is a `Runtime`."""
    rt.println(f"hello, {name}")
    return rt.prompt_user("and you?")


@pytest.mark.parametrize("name", MEMBERS)
def test_fake_runtime_has_every_member(name: str) -> None:
    """Properties are properties, and methods take the same parameters."""
    mine, theirs = vars(FakeRuntime)[name], vars(Runtime)[name]

    assert type(mine) is type(theirs)
    if not isinstance(theirs, property):
        assert inspect.signature(mine) == inspect.signature(theirs)


def test_script_is_provided_and_output_is_recorded() -> None:
    """Tests can inspect printed lines and prompts."""
    with FakeRuntime(answers=["Ada"]) as rt:
        answer = greet(rt, "Bob")

    assert "Ada" == answer
    assert ["hello, Bob"] == rt.lines
    assert ["and you?"] == rt.prompts


def test_files_variables_and_secrets_behave_as_in_real_host() -> None:
    """Files are in a temporary directory; variables are copied when stored and when read."""
    with FakeRuntime(files={"a/b.txt": "x", "c": None}, variables={"n": [1]}, secrets={"key": "secret"}) as rt:
        rt.fs.write_text("c/d.txt", rt.fs.read_text("a/b.txt") + rt.secret("key"))
        rt.get_var("n").append(2)
        rt.update_var("n", lambda n: [*n, 3])

        assert "xsecret" == rt.fs.read_text("c/d.txt")
        assert [1, 3] == rt.get_var("n")
        assert ("n",) == rt.variables


def test_model_replies_are_scripted() -> None:
    """A reply is a string, a turn or an error; requests are recorded."""
    requests = [Turn("user", "hello")]
    with FakeRuntime(model=["hi", Turn("assistant", "there"), LLMError("no")]) as rt:
        messages = [rt.llm.ask(requests).content, rt.llm.ask(requests).content]
        with pytest.raises(LLMError):
            rt.llm.ask(requests)

    assert ["hi", "there"] == messages
    assert [tuple(requests)] * 3 == rt.turns


def test_results_of_other_tools_are_scripted() -> None:
    """A result is a value, an error or a function of the arguments."""
    with FakeRuntime(calls={"a.b": 5, "a.c": lambda args: args["x"], "a.d": CallError("no", code="tool.failed")}) as rt:
        given = [rt.call_tool("a.b", [1]), rt.call_tool_named("a.c", {"x": 7})]
        with pytest.raises(CallError):
            rt.call_tool("a.d")

    assert [5, 7] == given
    assert [ToolCall("a.b", (1,)), ToolCall("a.c", {"x": 7}), ToolCall("a.d", ())] == rt.called


def test_clock_is_scripted() -> None:
    """Random numbers are the same in every test."""
    with FakeRuntime(clock=5) as still, FakeRuntime(clock=[1, 2]) as going:
        assert [5.0, 5.0, 1.0, 2.0] == [still.now(), still.now(), going.now(), going.now()]
        assert still.random.random() == going.random.random()


def test_missing_grant_is_refused() -> None:
    """By default a test grants everything."""
    with FakeRuntime(grants=["fs:read:data/**"], files={"notes.txt": "x"}) as rt, pytest.raises(PolicyError):
        rt.fs.read_text("notes.txt")


def test_closed_runtime_refuses_everything() -> None:
    """It behaves like a real Runtime after its call."""
    with FakeRuntime() as rt:
        rt.is_cancelled = True
        assert rt.cancelled
    with pytest.raises(CallError) as caught:
        rt.println("late")

    assert ("runtime.closed", "never") == (caught.value.code, caught.value.retry)


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (
            lambda rt: rt.prompt_user("who?"),
            "the tool asks the user, but the script has no more: all 0 of answers are used",
        ),
        (
            lambda rt: rt.llm.ask([Turn("user", "x")]),
            "the tool asks the model, but the script has no more: all 0 of model are used",
        ),
        (
            lambda rt: rt.call_tool("a.b"),
            "the tool calls a.b, but the script has no result for it: calls={...}",
        ),
    ],
    ids=["prompt", "model", "call"],
)
def test_exhausted_script_raises_on_exit(use: Callable[[FakeRuntime], object], text: str) -> None:
    """The error is raised again at the end of the context, even if the tool caught it."""
    with pytest.raises(ScriptError) as at_end, FakeRuntime() as rt:
        with pytest.raises(ScriptError) as at_once:
            use(rt)
        assert text == str(at_once.value)

    assert text == str(at_end.value)


def test_unused_script_raises_on_exit() -> None:
    """Otherwise a tool that no longer prompts would go unnoticed."""
    with pytest.raises(ScriptError) as caught, FakeRuntime(answers=["a", "b"], model=["c"]) as rt:
        rt.prompt_user("?")

    assert "the tool did not use the whole script: 1 of answers and 1 of model left" == str(caught.value)


def test_string_is_not_a_script() -> None:
    """A string would be read as a sequence of characters."""
    with pytest.raises(SpecError) as caught:
        FakeRuntime(answers="yes")

    assert "FakeRuntime: answers must be a list or tuple of strings, not str" == str(caught.value)
