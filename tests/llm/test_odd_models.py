"""Models that violate their protocol: the error says what a model must return."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs
import pytest
from tests.llm.scripted_models import EntryPoints, Script, made, says

from neuroscript import LLMError, ToolCall, Turn
from neuroscript.interop.smith.planner import plan_task
from neuroscript.llm import ConversationError, converse
from neuroscript.llm.wire.prompted import PromptedModel
from neuroscript.runtime.replies import Reply
from neuroscript.workflow import amake_plan, make_plan


@pytest.fixture(params=["sync", "awaited"])
def talk(request: pytest.FixtureRequest) -> Any:
    """``converse`` or ``aconverse``."""
    return getattr(EntryPoints, request.param)


@attrs.frozen
class Returning:
    """A model that returns a given object."""

    found: Any

    def ask(self, turns: Sequence[Turn]) -> Any:
        return self.found

    def ask_with_tools(self, turns: Sequence[Turn], tools: Any) -> Any:
        return self.found

    def embed(self, text: str) -> Sequence[float]:
        return []


@attrs.frozen
class Replying:
    """A model whose ``reply`` returns a given object."""

    found: Any

    def reply(self, turns: Any, tools: Any = (), on_text: Any = None, on_retry: Any = None) -> Any:
        return self.found


@attrs.frozen
class Raising:
    """A model that raises a given exception."""

    error: BaseException

    def reply(self, turns: Any, tools: Any = (), on_text: Any = None, on_retry: Any = None) -> Any:
        raise self.error


@attrs.define
class Posing:
    """An object that claims to be of another class."""

    content: str = "Well."
    tool_calls: tuple[Any, ...] = ()


WRONG: Final = {
    "None": (None, "None"),
    "a string": ("Well.", "str"),
    "a dict": ({"role": "assistant", "content": "Well."}, "dict"),
    "a list": ([Turn("assistant", "Well.")], "list"),
    "a class": (Turn, "type"),
    "a coroutine": (None, "coroutine"),
    "an object like a turn": (Posing(), "Posing"),
}


async def late() -> Turn:
    """A turn that must be awaited."""
    return says("Well.")


def found(case: str) -> Any:
    """Return the value that a model returns."""
    return late() if case == "a coroutine" else WRONG[case][0]


def failed(talk: Any, model: Any, **options: Any) -> ConversationError:
    """Return the error of a conversation."""
    with pytest.raises(ConversationError) as caught:
        talk(made(), "Go.", model=model, **options)
    assert (caught.value.code, caught.value.retry) == ("llm.failed", "host")
    assert [turn.content for turn in caught.value.conversation.turns] == ["Go."]
    return caught.value


@pytest.mark.parametrize("case", WRONG)
def test_model_must_return_turn(talk: Any, case: str) -> None:
    """The error names the method and the type of the returned object."""
    kind = WRONG[case][1]

    values = [found(case) for _ in range(3)]
    of_tools, of_none = failed(talk, Returning(values[0])), failed(talk, Returning(values[1]), tools=())
    of_reply = failed(talk, Replying(values[2]))
    for each in values:
        if case == "a coroutine":
            each.close()

    assert of_tools.text == f"the model returned {kind}; its ask_with_tools must return a neuroscript.Turn"
    assert of_none.text == f"the model returned {kind}; its ask must return a neuroscript.Turn"
    assert of_reply.text == f"the model returned {kind}; its reply must return a neuroscript.runtime.replies.Reply"


REPLIES: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "no turn": ({"turn": None}, "turn must be a Turn, not None"),
    "another stop": ({"stop": "tool_use"}, "stop must be 'end', 'tools', 'length' or 'refused'"),
    "a count": ({"usage": 7}, "usage must be an Usage, not int"),
    "a number of retries": ({"retries": 2}, "retries must be a list or tuple of Retrieds, not int"),
    "no seconds": ({"seconds": None}, "seconds must be a non-negative number of seconds, not None"),
}


@pytest.mark.parametrize("case", REPLIES)
def test_reply_fields_are_validated(talk: Any, case: str) -> None:
    """A reply is created without checks and validated once."""
    fields, problem = REPLIES[case]

    error = failed(talk, Replying(Reply(**{"turn": says("Well."), **fields})))

    assert error.text == f"the model returned a Reply whose {problem}"


ERRORS: Final[dict[str, Callable[[], BaseException]]] = {
    "an exit": lambda: SystemExit(3),
    "the end of an iterator": lambda: StopIteration(7),
    "a cancellation": asyncio.CancelledError,
    "the end of a generator": GeneratorExit,
    "an error of its own": lambda: type("Odd", (BaseException,), {})(),
}


@pytest.mark.parametrize("case", ERRORS)
def test_model_exception_becomes_llm_error(talk: Any, case: str) -> None:
    """It ends neither the process nor the event loop."""
    error = ERRORS[case]()

    assert failed(talk, Raising(error)).text == f"the model failed ({type(error).__name__})"


def test_interrupt_propagates() -> None:
    """A keyboard interrupt ends more than the conversation."""
    with pytest.raises(KeyboardInterrupt):
        converse(made(), "Go.", model=Raising(KeyboardInterrupt()))


# Other callers of a model


def test_other_callers_say_what_model_must_return() -> None:
    """Plans, and models that receive tools in a prompt."""
    text = "the model returned dict; its ask must return a neuroscript.Turn"
    model: Any = Returning({"content": "Well."})
    with made() as engine:
        loops = (
            lambda: make_plan(engine, model, "Go."),
            lambda: asyncio.run(amake_plan(engine, model, "Go.")),
            lambda: PromptedModel(model).reply([Turn("user", "Go.")]),
        )
        for loop in loops:
            with pytest.raises(LLMError) as caught:
                loop()
            assert (caught.value.text, caught.value.code, caught.value.retry) == (text, "llm.failed", "host")
        assert plan_task("Go.", (), model)["error"].endswith(text)


# Calls with the same id


def calls(*ids: Any) -> Turn:
    """Return a turn with a call for each id."""
    return Turn("assistant", tool_calls=tuple(ToolCall("t__note", [f"n{at}"], id=id) for at, id in enumerate(ids)))


def test_only_first_call_with_an_id_runs(talk: Any) -> None:
    """The others have a result that says so, in their positions."""
    log: list[str] = []
    model = Script([calls("a", "b", "a", "a", "c"), says("Done.")])

    conversation = talk(made(log=log), "Go.", model=model)

    assert log == ["n0", "n1", "n4"]
    assert [(each.id, each.value) for each in conversation.results] == [
        ("a", "n0"),
        ("b", "n1"),
        ("a", None),
        ("a", None),
        ("c", "n4"),
    ]
    for at in (2, 3):
        error = conversation.results[at].error
        text = "not called, because an earlier call of this turn has the same id; use a new id for each call"
        assert (str(error), error.code, error.retry) == (f"t.note: {text}", "call.duplicate_id", "model")


def test_repeated_ids_are_rejected_for_parallel_calls(talk: Any) -> None:
    """For read-only tools."""
    turn = Turn("assistant", tool_calls=tuple(ToolCall("t.look", [text], id="a") for text in "xyz"))

    conversation = talk(made(), "Go.", model=Script([turn, says("Done.")]))

    assert [each.value for each in conversation.results] == ["x", None, None]


def test_ids_may_repeat_in_other_turns_or_be_missing(talk: Any) -> None:
    """Many models send no ids or count from 1 in each turn."""
    log: list[str] = []

    talk(made(log=log), "Go.", model=Script([calls("a", "", ""), calls("a"), says("Done.")]))

    assert log == ["n0", "n1", "n2", "n0"]


def test_repeated_calls_count_towards_limit(talk: Any) -> None:
    """A model cannot request endless calls with one id."""
    with pytest.raises(ConversationError) as caught:
        talk(made(), "Go.", model=Script([calls(*"aaaa")]), calls=3)

    assert (caught.value.code, caught.value.retry) == ("llm.call_limit", "host")


@pytest.mark.parametrize("call", [ToolCall(None, []), ToolCall(7, []), ToolCall("t.note", 7, id=[])], ids=str)  # type: ignore[arg-type]
def test_call_with_wrong_types_has_error_result(talk: Any, call: ToolCall) -> None:
    """As from `execute`."""
    conversation = talk(made(), "Go.", model=Script([Turn("assistant", tool_calls=(call,)), says("Done.")]))

    assert [each.ok for each in conversation.results] == [False]
