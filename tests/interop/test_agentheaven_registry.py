"""The ToolRegistry of AgentHeaven, and clones, examples and functions of a ToolSpec."""

from __future__ import annotations

import copy
import inspect
import typing

import pytest
from tests.interop.agentheaven_tools import Base, Extended, search_database
from tests.interop.agentheaven_tools import action as action
from tests.interop.agentheaven_tools import search as search

from neuroscript import ArgumentError, Example, ReturnError, SpecError, ToolFailed
from neuroscript.interop.agentheaven import ToolRegistry, ToolSpec, reg_toolspec

# The registry


def test_ah_38_a_mixin_gives_a_class_tools() -> None:
    """Those that are marked, and no others."""
    assert ["search", "add_item"] == list(Base().to_toolspecs())


def test_ah_39_the_decorator_is_written_with_arguments_or_without() -> None:
    """An option that there is not is refused where it is written."""
    assert ["search", "add_item"] == Base().list_toolspecs()
    with pytest.raises(TypeError):
        reg_toolspec(nope=1)  # type: ignore[call-overload]


def test_ah_40_a_class_is_looked_at_when_it_is_made() -> None:
    """Mixins that know nothing of registries count, and static and class methods, in either order of marks."""

    class Mixin:
        @reg_toolspec
        def mixed(self) -> str:
            return "mixed"

    class Whole(Mixin, ToolRegistry):
        @reg_toolspec
        @staticmethod
        def outside(x: int) -> int:
            return x

        @staticmethod
        @reg_toolspec
        def inside(x: int) -> int:
            return x

        @classmethod
        @reg_toolspec
        def made(cls) -> str:
            return cls.__name__

    handles = Whole().to_toolspecs()

    assert ["mixed", "outside", "inside", "made"] == list(handles)
    assert ("mixed", 1, 2, "Whole") == (
        handles["mixed"](),
        handles["outside"](x=1),
        handles["inside"](x=2),
        handles["made"](),
    )


def test_ah_41_what_was_said_is_kept_in_toolspecs() -> None:
    """Of the class, not of its instances."""
    assert ["search", "add_item"] == list(Base._toolspecs)
    assert {} == ToolRegistry._toolspecs


def test_ah_42_a_tool_is_made_when_it_is_asked_for() -> None:
    """A method that can be none spoils neither its class nor the others."""

    class Partly(ToolRegistry):
        @reg_toolspec
        def good(self) -> int:
            return 1

        @reg_toolspec
        def bad(self, thing: object) -> int:
            return 2

    assert 1 == Partly().toolspec("good")()
    with pytest.raises(SpecError, match="thing: object is not supported"):
        Partly().toolspec("bad")


def test_ah_43_each_tool_is_of_its_instance_and_new() -> None:
    """Its ``self`` is in no schema."""
    one, two = Base(42), Base(99)

    assert ([42, "a", 1], [99, "a", 1]) == tuple(each.toolspec("search")(query="a", limit=1) for each in (one, two))
    assert ["query", "limit"] == list(one.to_toolspecs()["search"].params)
    assert one.to_toolspecs()["search"] is not one.to_toolspecs()["search"]


def test_ah_44_names_are_listed_as_they_are_defined_inherited_ones_first() -> None:
    """Upstream loses those of the classes above."""
    assert ["search", "add_item", "extra"] == Extended(7).list_toolspecs()
    assert ([7, "a", 1], 7) == (
        Extended(7).to_toolspecs()["search"](query="a", limit=1),
        Extended(7).toolspec("extra")(),
    )


def test_ah_44_a_class_takes_away_or_changes_what_is_above_it() -> None:
    """The last registration of a name wins."""

    class Less(Base):
        add_item = None  # type: ignore[assignment]

        @reg_toolspec
        def search(self, query: str) -> str:  # type: ignore[override]
            return query.upper()

    assert ["search"] == Less().list_toolspecs()
    assert "A" == Less().toolspec("search")(query="a")


def test_ah_45_a_method_stays_a_method() -> None:
    """It is called as it was."""
    assert [5, "a", 10] == Base(5).search("a")


def test_ah_46_options_are_those_of_from_function() -> None:
    """What is said of the result spoils no call."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    class Said(ToolRegistry):
        @reg_toolspec(description="Custom description", examples=[1], output_schema=schema, name="other")
        def count(self) -> int:
            return 1

    handle = Said().toolspec("count")

    assert ("Custom description", [1], schema, "other") == (
        handle.description,
        handle.examples,
        handle.output_schema,
        handle.name,
    )
    assert 1 == handle()


# Advanced


def test_ah_47_a_clone_has_a_state_of_its_own(action: ToolSpec) -> None:
    """Its calls are separate; nested maps of the state are copied, other objects are shared."""
    thing = object()
    action.bind("action", "deep.er", "login").state.update(thing=thing, items=[[1]])
    for other in (action.clone(), copy.copy(action), copy.deepcopy(action)):
        other.state["user_id"] = "different_user"
        other.state["deep"]["er"] = "logout"
        other.state["items"][0].append(2)

        assert "User different_user performed: logout" == other() == other.exec().structured_content["result"]  # type: ignore[index]
        assert thing is other.state["thing"]
    action.clone().unbind("action")

    assert ("User user123 performed: login", [[1]]) == (action(), action.state["items"])


def test_ah_48_binded_is_the_tool_without_what_is_bound(action: ToolSpec, search: ToolSpec) -> None:
    """A handle on which nothing is bound is its own; a change of the state counts there too."""
    binded = action.binded
    action.state["user_id"] = "u"

    assert (["action"], "User u performed: a") == (list(binded.params), binded(action="a"))
    assert search is search.binded


def test_ah_49_the_cache_can_be_cleared_and_need_not(action: ToolSpec) -> None:
    """What is bound or not shows in everything at once."""
    before = (action.docstring, action.code, action.input_schema)
    action(action="a")
    action.unbind("user_id")
    after = (action.docstring, action.code, action.input_schema)
    action(action="a", user_id="u")
    action.bind("user_id")
    assert "User user123 performed: a" == action(action="a")
    action._clear_cache()

    assert "user_id" in after[0] and "user_id" in after[1] and "user_id" in after[2]["properties"]
    assert before == (action.docstring, action.code, action.input_schema)
    assert "User user123 performed: a" == action(action="a")


def test_ah_50_examples_are_kept_and_shown() -> None:
    """Our examples are checked when the tool is created, and appear in the prompt."""
    example = Example({"query": "a", "limit": 1}, {"results": ["a"]})
    handle = ToolSpec.from_function(search_database, examples=[example, {"anything": 1}])

    assert [example, {"anything": 1}] == handle.examples == handle.clone().examples
    assert 'Example: {"name": "search_database", "arguments": {"query": "a", "limit": 1}}' in handle.to_prompt()
    with pytest.raises(SpecError, match="example 1"):
        ToolSpec.from_function(search_database, examples=[Example({"nope": 1})])


def test_ah_51_what_is_missing_unknown_or_wrong_raises(search: ToolSpec) -> None:
    """All of it at once, and a failure of the function as a failure of the tool."""

    def failing(text: str) -> str:
        raise ValueError(text)

    with pytest.raises(ArgumentError) as caught:
        search(limit="x", nope=1)
    with pytest.raises(ToolFailed) as failed:
        ToolSpec.from_function(failing)(text="secret")

    assert {"query", "limit", "nope"} == {each.where for each in caught.value.problems}
    assert "secret" not in str(failed.value)


def test_ah_51_a_result_that_is_not_what_was_promised_raises() -> None:
    """A function that says int returns one."""

    def lying() -> int:
        return "1"  # type: ignore[return-value]

    with pytest.raises(ReturnError):
        ToolSpec.from_function(lying)()


def test_ah_52_an_argument_without_a_hint_is_refused() -> None:
    """The document advises against it; upstream then takes anything. Raises of a docstring is kept."""

    def untyped(query, limit=10):  # type: ignore[no-untyped-def]
        return query

    def told(a: int) -> int:
        """Count.

        Raises:
            ValueError: When a is invalid
        """
        return a

    with pytest.raises(SpecError, match="query: has no annotation; use str"):
        ToolSpec.from_function(untyped)
    assert "Raises:\n    ValueError: When a is invalid" in ToolSpec.from_function(told).docstring


def test_ah_54_a_tool_of_this_process_is_available(search: ToolSpec) -> None:
    """It always can be called."""
    assert search.available()


def test_ah_55_a_function_with_the_parameters_of_the_tool(search: ToolSpec) -> None:
    """By position too; what does not fit it is a TypeError, as of any function."""
    function = search.to_function()

    assert ("search_database", search.docstring) == (function.__name__, function.__doc__)
    assert {"results": ["a", "a"]} == function("a", 2) == function("a", limit="2")
    with pytest.raises(TypeError):
        function()


def test_ah_55_what_must_be_given_after_what_need_not_is_given_by_name() -> None:
    """As Python asks of a signature."""

    def odd(a: int = 1, *, b: int, c: int = 3) -> int:
        return a + b + c

    function = ToolSpec.from_function(odd).to_function()

    assert "(a: int = 1, *, b: int, c: int = 3) -> int" == str(inspect.signature(function))
    assert {"a": int, "b": int, "c": int, "return": int} == typing.get_type_hints(function)
    assert 6 == function(1, b=2)


def test_ah_56_the_class_is_a_decorator() -> None:
    """With the options of from_function."""

    @ToolSpec(name="plus", description="Adds.")
    def add(a: int, b: int) -> int:
        return a + b

    assert isinstance(add, ToolSpec)
    assert ("plus", "Adds.", 3) == (add.name, add.description, add(a=1, b=2))


def test_ah_57_one_tool_of_a_registry_by_name() -> None:
    """An unknown one is a KeyError."""
    assert [1, "a", 10] == Base(1).toolspec("search")(query="a")
    with pytest.raises(KeyError):
        Base(1).toolspec("nope")
