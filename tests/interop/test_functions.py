"""A tool as a Python function: what frameworks read from it, and the results of its calls."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import json
import typing
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest

from neuroscript import (
    Approval,
    Arg,
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    Engine,
    ExecutionPolicy,
    Host,
    PolicyError,
    Runtime,
    SpecError,
    ToolFailed,
    ToolNotFound,
    ToolPolicy,
    Toolset,
    ToolSpec,
    to_function,
)

shop = Toolset("shop")


@shop.tool
def order(
    item: Annotated[str, "What to order."],
    count: Annotated[int, Arg("How many.", minimum=1)] = 1,
    mode: Literal["fast", "slow"] = "fast",
    tags: list[str] | None = None,
    note: Annotated[str | None, "A word to the shop."] = None,
) -> dict[str, Any]:
    """Order an item.

    Returns:
        The order as it was taken.

    Raises:
        shop.closed: The shop is closed.
    """
    return {"item": item, "count": count, "mode": mode, "tags": tags, "note": note}


@shop.tool
def total(first: float, *more: float) -> float:
    """Add numbers."""
    return first + sum(more)


@shop.tool
async def later(seconds: float) -> float:
    """Wait."""
    await asyncio.sleep(0)
    return seconds


@shop.tool
def pages(last: int) -> Iterator[str]:
    """Give pages."""
    yield from (f"page {number}" for number in range(1, last + 1))


@shop.tool
def fails() -> None:
    """Fail."""
    raise ToolFailed("the shop is closed", code="shop.closed", retry="later")


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(plugins="none", toolsets=shop) as made:
        yield made


def test_name_docstring_signature_and_annotations_say_the_same(engine: Engine) -> None:
    """The annotations are real types, including the descriptions that some frameworks read from them."""
    function = to_function(engine, "tool.Shop.Order")

    assert ("shop__order", "shop__order") == (function.__name__, function.__qualname__)
    assert function.__doc__ == (
        "Order an item.\n"
        "\n"
        "Args:\n"
        "    item: What to order. (string, required)\n"
        "    count: How many. (int of at least 1, default 1)\n"
        "    mode: (string, one of 'fast', 'slow', default \"fast\")\n"
        "    tags: (list of string, default null, may be null)\n"
        "    note: A word to the shop. (string, default null, may be null)\n"
        "\n"
        "Returns:\n"
        "    The order as it was taken.\n"
        "\n"
        "Raises:\n"
        "    shop.closed: The shop is closed."
    )
    types = {
        "item": str,
        "count": int,
        "mode": Literal["fast", "slow"],
        "tags": Optional[list[str]],
        "note": Optional[str],
        "return": dict[str, Any],
    }
    assert types == typing.get_type_hints(function)
    with_extras = {**types, "item": Annotated[str, "What to order."], "count": Annotated[int, "How many."]}
    assert with_extras == typing.get_type_hints(function, include_extras=True) == function.__annotations__
    signature = inspect.signature(function)
    defaults = {"item": inspect.Parameter.empty, "count": 1, "mode": "fast", "tags": None, "note": None}
    assert defaults == {each.name: each.default for each in signature.parameters.values()}
    assert with_extras == {
        **{each.name: each.annotation for each in signature.parameters.values()},
        "return": signature.return_annotation,
    }
    assert not inspect.iscoroutinefunction(function)


def test_arguments_are_accepted_by_position_by_name_and_as_models_send_them(engine: Engine) -> None:
    """None for an optional argument means that it is omitted."""
    function = to_function(engine, "shop.order")
    expected = {"item": "tea", "count": 2, "mode": "slow", "tags": None, "note": None}

    assert expected == function("tea", 2, "slow")
    assert expected == function(item="tea", count="2", mode="slow", tags=None, note=None)
    assert {**expected, "tags": ["a"]} == function("tea", tags='["a"]', mode="slow", count=2.0)


@pytest.mark.parametrize(
    ("args", "named", "text"),
    [
        ((), {}, "shop.order: item: expected string, got nothing"),
        (("tea",), {"count": 0}, "shop.order: count: expected int of at least 1, got int out of bounds"),
        (("tea",), {"size": 5}, "shop.order: size: expected only item, count, mode, tags, note, got an unknown name of type int"),
    ],
    ids=["missing", "out of bounds", "unknown"],
)  # fmt: skip
def test_an_invalid_argument_raises_the_error_for_the_model(
    engine: Engine, args: tuple[Any, ...], named: dict[str, Any], text: str
) -> None:
    """The function raises it; most frameworks show its message to the model."""
    with pytest.raises(ArgumentError) as caught:
        to_function(engine, "shop.order")(*args, **named)

    assert (text, "model") == (str(caught.value), caught.value.retry)


def test_a_call_that_python_rejects_is_a_type_error(engine: Engine) -> None:
    """Too many arguments, or a duplicate."""
    function = to_function(engine, "shop.order")

    with pytest.raises(TypeError):
        function("tea", 1, "fast", None, None, "more")
    with pytest.raises(TypeError):
        function("tea", item="coffee")


def test_a_failure_of_the_tool_keeps_its_code(engine: Engine) -> None:
    """It also says who can fix it."""
    with pytest.raises(ToolFailed) as caught:
        to_function(engine, "shop.fails")()

    assert ("shop.closed", "later", "shop.fails: the shop is closed") == (
        caught.value.code,
        caught.value.retry,
        str(caught.value),
    )


def test_an_async_function_is_a_coroutine_function(engine: Engine) -> None:
    """For any tool; a synchronous function of a coroutine tool waits for the result."""
    awaited = to_function(engine, "shop.order", name="order", is_async=True)
    waited = to_function(engine, "shop.later")

    assert inspect.iscoroutinefunction(awaited)
    assert "order" == awaited.__name__
    assert "tea" == asyncio.run(awaited("tea"))["item"]
    assert 0.5 == waited(0.5)

    async def within() -> float:
        found: float = waited(seconds=1)
        return found

    assert 1.0 == asyncio.run(within())


def test_variadic_values_are_one_list(engine: Engine) -> None:
    """Frameworks pass arguments by name."""
    function = to_function(engine, "shop.total")

    assert "(first: float, more: Optional[list[float]] = None) -> float" == str(inspect.signature(function))
    assert 6.0 == function(1, [2, "3"])
    assert 1.0 == function(first=1) == function(first=1, more=None)


def test_a_stream_is_the_list_of_its_items(engine: Engine) -> None:
    """As its annotation says."""
    function = to_function(engine, "shop.pages")

    assert list[str] == typing.get_type_hints(function)["return"]
    assert ["page 1", "page 2"] == function(2)


def made(spec: ToolSpec, func: Callable[..., Any], **parts: Any) -> Callable[..., Any]:
    """Return the function of a tool with an explicit spec."""
    toolset = Toolset(spec.group)
    toolset.add(spec, func)
    return to_function(Engine(plugins="none", toolsets=toolset, **parts), spec.full_name)


def test_names_that_are_not_identifiers_are_changed() -> None:
    """The tool receives them under their original names."""
    names = ("from", "user-id", "2nd")
    spec = ToolSpec("send", "mail", tuple(ArgSpec(name, ArgType.INT) for name in names), return_type=ArgType.SLICE_INT)
    function = made(spec, lambda rt, *values: list(values))

    assert ["from_", "user_id", "arg_2nd"] == list(inspect.signature(function).parameters)
    assert [1, 2, 3] == function(from_=1, user_id=2, arg_2nd=3)


def test_required_parameters_after_optional_ones_are_keyword_only() -> None:
    """Python requires this; the order does not change."""
    spec = ToolSpec(
        "odd", "g", (ArgSpec("a", ArgType.INT, default=1), ArgSpec("b", ArgType.INT)), return_type=ArgType.INT
    )
    function = made(spec, lambda rt, a, b: a * 10 + b)

    assert "(a: int = 1, *, b: int) -> int" == str(inspect.signature(function))
    assert 12 == function(b=2)
    assert 32 == function(3, b=2)


@pytest.mark.parametrize("kind", [each for each in ArgType if each is not ArgType.VOID], ids=str)
def test_each_type_has_a_json_annotation(kind: ArgType) -> None:
    """For arguments and results: the annotation is a type that can become a JSON Schema."""
    from pydantic import TypeAdapter

    spec = ToolSpec("same", "g", (ArgSpec("x", kind, required=False),), return_type=kind, return_nullable=True)
    hints = typing.get_type_hints(made(spec, lambda rt, x: x))

    for hint in hints.values():
        assert TypeAdapter(hint).json_schema()


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (ArgType.BLOB, "tea", {"$base64": "dGVh"}),
        (ArgType.EMBEDDING, [0.5, 1], [0.5, 1.0]),
        (ArgType.MAP_STRING_INT, {"a": "1"}, {"a": 1}),
        (ArgType.ANY, {"at": datetime.datetime(2030, 1, 2)}, {"at": "2030-01-02T00:00:00"}),
        (ArgType.ANY, [b"tea"], [{"$base64": "dGVh"}]),
    ],
    ids=str,
)
def test_results_are_json_values(kind: ArgType, given: Any, expected: Any) -> None:
    """Frameworks write them as JSON or as text."""
    spec = ToolSpec("same", "g", (ArgSpec("x", kind),), return_type=kind)

    result = made(spec, lambda rt, x: x)(given)

    assert expected == result == json.loads(json.dumps(result))


def test_a_default_is_json_and_a_secret_one_is_hidden() -> None:
    """The signature goes to a model; without an argument the tool uses its own default."""
    args = (
        ArgSpec("vector", ArgType.EMBEDDING, default=[0.5]),
        ArgSpec("pin", ArgType.STRING, default="canary-1234", secret=True),
    )
    seen: list[Any] = []
    function = made(ToolSpec("t", "g", args, return_type=ArgType.NIL), lambda rt, *values: seen.extend(values))

    function(pin=None)
    signature = inspect.signature(function)

    assert [[0.5], None] == [each.default for each in signature.parameters.values()]
    assert "canary" not in f"{signature}{function.__doc__}"
    assert [array("f", [0.5]), "canary-1234"] == seen


def test_a_result_contains_no_secret_and_policy_applies(tmp_path: Path) -> None:
    """A framework shows the result to a model; each call is checked like any other."""
    toolset = Toolset("g")

    @toolset.tool(policy=ToolPolicy(capabilities=("secret:read:pin",), requires_approval=True))
    def tell(rt: Runtime) -> str:
        """Return the PIN."""
        return f"it is {rt.secret('pin')}"

    requests: list[str] = []

    def approve(request: Any) -> Approval:
        requests.append(request.tool)
        return Approval.approve() if len(requests) == 1 else Approval.reject("not twice")

    policy = ExecutionPolicy(grants=("secret:read:pin",), approver=approve)
    host = Host(secrets={"pin": "correct horse battery"}, sandbox_dir=tmp_path)
    with Engine(plugins="none", toolsets=toolset, policy=policy, host=host) as engine:
        function = to_function(engine, "g.tell")

        assert "it is [secret]" == function()
        with pytest.raises(PolicyError) as caught:
            function()

    assert ("policy.rejected", "never") == (caught.value.code, caught.value.retry)
    with pytest.raises(CallError) as closed:
        function()
    assert ("engine.closed", "never") == (closed.value.code, closed.value.retry)


def test_unknown_and_denied_tools_fail_when_the_function_is_made(engine: Engine) -> None:
    """Invalid names do too."""
    with pytest.raises(ToolNotFound) as missing:
        to_function(engine, "shop.ordr")
    with pytest.raises(PolicyError) as denied:
        to_function(engine.session(policy=ExecutionPolicy(deny=("shop.*",))), "shop.order")
    with pytest.raises(SpecError) as caught:
        to_function(engine, "shop.order", name="my order")

    assert ("shop.order", "model") == (missing.value.near[0], missing.value.retry)
    assert ("policy.denied", "host") == (denied.value.code, denied.value.retry)
    assert "to_function: name must be a name in Python, or empty" == str(caught.value)


# Frameworks that the tests install anyway


def langchain(function: Callable[..., Any]) -> tuple[Any, Any]:
    from langchain_core.tools import StructuredTool

    tool = StructuredTool.from_function(function, parse_docstring=True)
    return tool.args, tool.invoke({"item": "tea", "count": 2})


def fastmcp(function: Callable[..., Any]) -> tuple[Any, Any]:
    from fastmcp.tools import Tool

    tool = Tool.from_function(function)
    result = asyncio.run(tool.run({"item": "tea", "count": 2}))
    return tool.parameters["properties"], result.structured_content


def pydantic_ai(function: Callable[..., Any]) -> tuple[Any, Any]:
    from pydantic_ai import Tool

    tool = Tool(function, takes_ctx=False)
    schema = tool.function_schema
    return schema.json_schema["properties"], function(**schema.validator.validate_python({"item": "tea", "count": 2}))


def openai_agents(function: Callable[..., Any]) -> tuple[Any, Any]:
    from agents.function_schema import function_schema

    schema = function_schema(function, strict_json_schema=False)
    args, named = schema.to_call_args(schema.params_pydantic_model(item="tea", count=2))
    return schema.params_json_schema["properties"], function(*args, **named)


@pytest.mark.parametrize("framework", [langchain, fastmcp, pydantic_ai, openai_agents])
def test_frameworks_accept_the_function(
    engine: Engine, framework: Callable[[Callable[..., Any]], tuple[dict[str, Any], Any]]
) -> None:
    """Types, descriptions and defaults reach their schemas, and the call reaches the tool."""
    properties, result = framework(to_function(engine, "shop.order"))

    assert ["item", "count", "mode", "tags", "note"] == list(properties)
    assert ("string", "integer") == (properties["item"]["type"], properties["count"]["type"])
    assert "What to order." in properties["item"]["description"]
    assert ["fast", "slow"] == properties["mode"]["enum"]
    assert 1 == properties["count"]["default"]
    assert {"item": "tea", "count": 2, "mode": "fast", "tags": None, "note": None} == result
