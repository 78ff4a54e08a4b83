"""Bound arguments and calls of a ToolSpec of AgentHeaven."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest
from tests.interop.agentheaven_tools import action as action
from tests.interop.agentheaven_tools import search as search
from tests.interop.agentheaven_tools import user_action

from neuroscript import ArgumentError, SpecError, ToolFailed
from neuroscript.interop.agentheaven import ToolResult, ToolSpec

# Bound arguments


def test_ah_09_bound_argument_is_optional(action: ToolSpec) -> None:
    """Its value comes from the state."""
    assert "User user123 performed: login" == action(action="login")


def test_ah_10_bind_returns_the_handle() -> None:
    """Bindings can be chained."""
    handle = ToolSpec.from_function(user_action)

    assert handle is handle.bind("user_id", None, "u").bind("action", default="login")
    assert "User u performed: login" == handle()


def test_ah_11_bound_argument_is_hidden_from_schemas(action: ToolSpec) -> None:
    """It is also hidden from the docstring, the code, the signature and the prompt."""
    texts = (action.docstring, action.code, action.signature(), action.to_prompt(), str(action.to_jsonschema()))

    assert {
        "type": "object",
        "properties": {"action": {"type": "string"}},
        "required": ["action"],
    } == action.input_schema
    assert not [text for text in texts if "user_id" in text]


def test_ah_12_bind_stores_the_default_only_if_the_state_has_no_value(action: ToolSpec) -> None:
    """Without an explicit key, the state key is the name of the argument."""
    action.bind("user_id", default="other")

    assert ({"user_id": "user123"}, {"user_id": "user_id"}) == (action.state, action.binds)
    assert {"user_id": "user123"} == action.bind("action").state


def test_ah_13_state_change_applies_to_the_next_call(action: ToolSpec) -> None:
    """Even after a first call; upstream would still use the previous value."""
    action(action="login")
    action.state["user_id"] = "user456"

    assert "User user456 performed: logout" == action(action="logout")


def test_ah_14_dotted_key_is_a_path_in_the_state() -> None:
    """The whole state can be replaced, even after calls."""
    handle = ToolSpec.from_function(user_action).bind("user_id", "config.api.key", "default_key")

    assert {"config": {"api": {"key": "default_key"}}} == handle.state
    assert "User default_key performed: a" == handle(action="a")

    handle.state = {"config": {"api": {"key": "mine"}}}

    assert "User mine performed: a" == handle(action="a")


def test_ah_14_bind_rejects_a_path_through_a_value_that_is_not_a_map() -> None:
    """A default does not replace an existing value."""
    handle = ToolSpec.from_function(user_action)
    handle.state = {"config": "text"}

    with pytest.raises(SpecError, match="config is not a map"):
        handle.bind("user_id", "config.api.key", "k")
    assert ({"config": "text"}, {}) == (handle.state, handle.binds)


def test_ah_14_missing_state_is_an_error_for_the_host(action: ToolSpec) -> None:
    """The model cannot supply the value."""
    action.state.clear()
    with pytest.raises(ToolFailed) as caught:
        action(action="a")

    assert "host" == caught.value.retry
    assert str(caught.value) == (
        "agentheaven.user_action: user_id: expected string, got nothing: the state has no user_id (the host supplies this argument)"
    )


def test_ah_15_unbound_argument_is_required_again(action: ToolSpec) -> None:
    """The state is unchanged, and an unknown name is ignored."""
    action.unbind("nope")
    action.unbind(param="user_id")

    with pytest.raises(ArgumentError, match="user_id: expected string, got nothing"):
        action(action="x")
    assert {"user_id": "user123"} == action.state


def test_ah_16_bind_rejects_an_unknown_argument(action: ToolSpec) -> None:
    """Later calls are not affected."""
    with pytest.raises(SpecError) as caught:
        action.bind("acton")

    assert "agentheaven.user_action: it has no argument acton (did you mean action?)" == str(caught.value)
    assert "User user123 performed: x" == action(action="x")


def test_ah_17_caller_cannot_set_a_bound_argument(action: ToolSpec) -> None:
    """The tool has no such argument for the caller."""
    with pytest.raises(ArgumentError, match="user_id: expected only action, got an unknown name"):
        action(action="x", user_id="mallory")


# Calls


def test_ah_18_call_returns_the_main_value(search: ToolSpec) -> None:
    """The return value of the function."""
    assert {"results": ["a"]} == search.call(query="a", limit=1)


def test_ah_19_calling_a_handle_equals_its_call_method(search: ToolSpec) -> None:
    """The shorthand in the document."""
    assert search.call(query="a", limit=3) == search(query="a", limit=3)


def test_ah_20_arguments_are_keyword_only(search: ToolSpec) -> None:
    """A positional argument is a TypeError before the tool is called."""
    with pytest.raises(TypeError, match="positional"):
        search("x")  # type: ignore[misc]


def test_ah_20_argument_may_have_any_name() -> None:
    """Including names of the method's own parameters, such as ``self``."""

    def odd(self: str, name: str) -> str:
        return self + name

    handle = ToolSpec.from_function(functools.partial(odd), name="odd")

    assert "ab" == handle.call(self="a", name="b") == handle(self="a", name="b")


def test_ah_21_exec_returns_content_time_and_error(search: ToolSpec) -> None:
    """An error is part of the result, as in the document."""
    good, bad = search.exec(query="x", limit=1), search.exec(limit=1)

    assert isinstance(good, ToolResult)
    assert ({"result": {"results": ["x"]}}, None, True) == (good.structured_content, good.error, good.ok)
    assert good.seconds > 0
    assert (None, False) == (bad.structured_content, bad.ok)
    assert "agentheaven.search_database: query: expected string, got nothing" == str(bad.error)


def test_ah_22_acall_returns_the_result_of_call(search: ToolSpec) -> None:
    """For coroutine functions too."""

    async def wait(text: str) -> str:
        """Wait.

        Returns:
            str: The text.
        """
        await asyncio.sleep(0)
        return text

    assert search(query="a") == asyncio.run(search.acall(query="a"))
    assert "a" == asyncio.run(ToolSpec.from_function(wait).acall(text="a"))


def test_ah_23_aexec_returns_the_result_of_exec(search: ToolSpec) -> None:
    """The content, or the error."""
    good, bad = asyncio.run(search.aexec(query="a", limit=1)), asyncio.run(search.aexec(limit=1))

    assert search.exec(query="a", limit=1).structured_content == good.structured_content
    assert str(search.exec(limit=1).error) == str(bad.error)
    assert good.seconds > 0


def test_ah_24_value_of_a_schema_with_one_property_is_that_property() -> None:
    """With several properties, or without a schema, the value is the whole result."""

    def pair(a: int) -> dict[str, Any]:
        return {"a": a, "b": 2}

    def schema(*names: str) -> dict[str, Any]:
        return {"type": "object", "properties": {name: {} for name in names}}

    one = ToolSpec.from_function(pair, output_schema=schema("a"))
    two = ToolSpec.from_function(pair, output_schema=schema("a", "b"))

    assert (1, {"a": 1, "b": 2}) == (one(a=1), one.exec(a=1).structured_content)
    assert {"a": 1, "b": 2} == two(a=1) == two.exec(a=1).structured_content
    assert {"a": 1, "b": 2} == ToolSpec.from_function(pair)(a=1)


def test_ah_24_without_an_output_schema_the_value_is_returned() -> None:
    """Upstream raises an AttributeError."""

    def untyped(a: int):  # type: ignore[no-untyped-def]
        return [a]

    handle = ToolSpec.from_function(untyped)

    assert (None, [1], {"result": [1]}) == (handle.output_schema, handle(a=1), handle.exec(a=1).structured_content)


def test_ah_25_call_in_a_running_loop_works(search: ToolSpec) -> None:
    """For functions and for coroutine functions."""

    async def later(text: str) -> str:
        await asyncio.sleep(0)
        return text

    async def within() -> tuple[Any, Any]:
        return search(query="a", limit=1), ToolSpec.from_function(later)(text="b")

    assert ({"results": ["a"]}, "b") == asyncio.run(within())
