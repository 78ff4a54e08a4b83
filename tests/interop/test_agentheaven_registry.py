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


def test_ah_38_registry_mixin_provides_tools_of_marked_methods() -> None:
    """Other methods are not tools."""
    assert ["search", "add_item"] == list(Base().to_toolspecs())


def test_ah_39_decorator_works_with_and_without_arguments() -> None:
    """An unknown option is rejected at the decorator."""
    assert ["search", "add_item"] == Base().list_toolspecs()
    with pytest.raises(TypeError):
        reg_toolspec(nope=1)  # type: ignore[call-overload]


def test_ah_40_class_definition_collects_marked_methods() -> None:
    """Mixins without a registry, static methods and class methods count, with the decorators in either order."""

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


def test_ah_41_toolspecs_holds_the_registrations() -> None:
    """They belong to the class, not to its instances."""
    assert ["search", "add_item"] == list(Base._toolspecs)
    assert {} == ToolRegistry._toolspecs


def test_ah_42_tool_is_created_on_request() -> None:
    """An unsupported method affects neither its class nor the other tools."""

    class Partly(ToolRegistry):
        @reg_toolspec
        def good(self) -> int:
            return 1

        @reg_toolspec
        def bad(self, thing: complex) -> int:
            return 2

    assert 1 == Partly().toolspec("good")()
    with pytest.raises(SpecError, match="thing: complex is not supported"):
        Partly().toolspec("bad")


def test_ah_43_each_instance_gets_new_tools() -> None:
    """The schemas do not contain ``self``."""
    one, two = Base(42), Base(99)

    assert ([42, "a", 1], [99, "a", 1]) == tuple(each.toolspec("search")(query="a", limit=1) for each in (one, two))
    assert ["query", "limit"] == list(one.to_toolspecs()["search"].params)
    assert one.to_toolspecs()["search"] is not one.to_toolspecs()["search"]


def test_ah_44_names_are_in_order_of_definition_with_inherited_ones_first() -> None:
    """Upstream omits inherited tools."""
    assert ["search", "add_item", "extra"] == Extended(7).list_toolspecs()
    assert ([7, "a", 1], 7) == (
        Extended(7).to_toolspecs()["search"](query="a", limit=1),
        Extended(7).toolspec("extra")(),
    )


def test_ah_44_subclass_can_remove_or_override_a_tool() -> None:
    """The last registration of a name wins."""

    class Less(Base):
        add_item = None  # type: ignore[assignment]

        @reg_toolspec
        def search(self, query: str) -> str:  # type: ignore[override]
            return query.upper()

    assert ["search"] == Less().list_toolspecs()
    assert "A" == Less().toolspec("search")(query="a")


def test_ah_45_marked_method_can_still_be_called() -> None:
    """With its own defaults, as before."""
    assert [5, "a", 10] == Base(5).search("a")


def test_ah_46_options_are_those_of_from_function() -> None:
    """An output schema does not affect calls."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    class Counter(ToolRegistry):
        @reg_toolspec(description="Custom description", examples=[1], output_schema=schema, name="other")
        def count(self) -> int:
            return 1

    handle = Counter().toolspec("count")

    assert ("Custom description", [1], schema, "other") == (
        handle.description,
        handle.examples,
        handle.output_schema,
        handle.name,
    )
    assert 1 == handle()


# Advanced


def test_ah_47_clone_has_its_own_state(action: ToolSpec) -> None:
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


def test_ah_48_binded_is_the_tool_without_its_bound_arguments(action: ToolSpec, search: ToolSpec) -> None:
    """A handle without bindings returns itself; a change of the state applies to it too."""
    binded = action.binded
    action.state["user_id"] = "u"

    assert (["action"], "User u performed: a") == (list(binded.params), binded(action="a"))
    assert search is search.binded


def test_ah_49_binding_applies_without_clearing_the_cache(action: ToolSpec) -> None:
    """Binding and unbinding change the docstring, the code and the schema at once; clearing the cache works too."""
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


def test_ah_50_examples_are_stored_and_shown() -> None:
    """Our examples are checked when the tool is created, and appear in the prompt."""
    example = Example({"query": "a", "limit": 1}, {"results": ["a"]})
    handle = ToolSpec.from_function(search_database, examples=[example, {"anything": 1}])

    assert [example, {"anything": 1}] == handle.examples == handle.clone().examples
    assert 'Example: {"name": "search_database", "arguments": {"query": "a", "limit": 1}}' in handle.to_prompt()
    with pytest.raises(SpecError, match="example 1"):
        ToolSpec.from_function(search_database, examples=[Example({"nope": 1})])


def test_ah_51_invalid_arguments_raise_one_error(search: ToolSpec) -> None:
    """It lists all problems; an exception of the function is a failure of the tool."""

    def failing(text: str) -> str:
        raise ValueError(text)

    with pytest.raises(ArgumentError) as caught:
        search(limit="x", nope=1)
    with pytest.raises(ToolFailed) as failed:
        ToolSpec.from_function(failing)(text="secret")

    assert {"query", "limit", "nope"} == {each.where for each in caught.value.problems}
    assert "secret" not in str(failed.value)


def test_ah_51_result_of_the_wrong_type_raises() -> None:
    """The function is annotated with int and returns a string."""

    def lying() -> int:
        return "1"  # type: ignore[return-value]

    with pytest.raises(ReturnError):
        ToolSpec.from_function(lying)()


def test_ah_52_argument_without_a_type_hint_is_rejected() -> None:
    """Upstream accepts any value for it. The Raises section of a docstring is retained."""

    def untyped(query, limit=10):  # type: ignore[no-untyped-def]
        return query

    def documented(a: int) -> int:
        """Count.

        Raises:
            ValueError: When a is invalid
        """
        return a

    with pytest.raises(SpecError, match="query: has no annotation; use str"):
        ToolSpec.from_function(untyped)
    assert "Raises:\n    ValueError: When a is invalid" in ToolSpec.from_function(documented).docstring


def test_ah_54_tool_of_this_process_is_available(search: ToolSpec) -> None:
    """It can always be called."""
    assert search.available()


def test_ah_55_to_function_has_the_parameters_of_the_tool(search: ToolSpec) -> None:
    """Positional arguments work; an invalid call is a TypeError, as for any function."""
    function = search.to_function()

    assert ("search_database", search.docstring) == (function.__name__, function.__doc__)
    assert {"results": ["a", "a"]} == function("a", 2) == function("a", limit="2")
    with pytest.raises(TypeError):
        function()


def test_ah_55_required_parameter_after_an_optional_one_is_keyword_only() -> None:
    """Python requires this of a signature."""

    def odd(a: int = 1, *, b: int, c: int = 3) -> int:
        return a + b + c

    function = ToolSpec.from_function(odd).to_function()

    assert "(a: int = 1, *, b: int, c: int = 3) -> int" == str(inspect.signature(function))
    assert {"a": int, "b": int, "c": int, "return": int} == typing.get_type_hints(function)
    assert 6 == function(1, b=2)


def test_ah_56_class_is_a_decorator() -> None:
    """It accepts the options of from_function."""

    @ToolSpec(name="plus", description="Adds.")
    def add(a: int, b: int) -> int:
        return a + b

    assert isinstance(add, ToolSpec)
    assert ("plus", "Adds.", 3) == (add.name, add.description, add(a=1, b=2))


def test_ah_57_toolspec_returns_one_tool_by_name() -> None:
    """An unknown name is a KeyError."""
    assert [1, "a", 10] == Base(1).toolspec("search")(query="a")
    with pytest.raises(KeyError):
        Base(1).toolspec("nope")
