"""Our tools as functions in one framework, which is installed where this program runs; prints the results."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal

from neuroscript import Engine, Toolset, to_function

shop = Toolset("shop")


@shop.tool
def order(
    item: Annotated[str, "What to order."],
    count: Annotated[int, "How many."] = 1,
    mode: Literal["fast", "slow"] = "fast",
    tags: Annotated[list[str] | None, "Words for it."] = None,
    extra: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Order an item."""
    return {"item": item, "count": count, "mode": mode, "tags": tags, "extra": extra}


@shop.tool
def total(first: int, *more: int) -> int:
    """Add numbers."""
    return first + sum(more)


@shop.tool
async def later(seconds: float) -> float:
    """Wait, and return the time."""
    return seconds


engine = Engine(plugins="none", toolsets=shop)
Made = tuple[str, dict[str, Any], Callable[[dict[str, Any]], Any]]
"""What a framework calls a tool, the JSON Schema of each of its arguments, and what calls it with arguments."""


def smolagents(function: Callable[..., Any]) -> Made:
    from smolagents import tool

    made = tool(function)
    return made.name, made.inputs, lambda args: made(**args)


def autogen_core(function: Callable[..., Any]) -> Made:
    from autogen_core import CancellationToken
    from autogen_core.tools import FunctionTool

    made = FunctionTool(function, description=str(function.__doc__))
    properties = made.schema["parameters"]["properties"]
    return made.name, properties, lambda args: asyncio.run(made.run_json(args, CancellationToken()))


def agno(function: Callable[..., Any]) -> Made:
    from agno.tools.function import Function, FunctionCall

    made = Function.from_callable(function)
    made.process_entrypoint()

    def call(args: dict[str, Any]) -> Any:
        done = FunctionCall(function=made, arguments=args)
        result = asyncio.run(done.aexecute()) if asyncio.iscoroutinefunction(function) else done.execute()
        if result.status != "success":
            raise ValueError(result.error)
        return result.result

    return made.name, made.parameters["properties"], call


def dspy(function: Callable[..., Any]) -> Made:
    import dspy

    made = dspy.Tool(function)
    if asyncio.iscoroutinefunction(function):
        return made.name, made.args, lambda args: asyncio.run(made.acall(**args))
    return made.name, made.args, lambda args: made(**args)


def llama_index_core(function: Callable[..., Any]) -> Made:
    from llama_index.core.tools import FunctionTool

    is_async = asyncio.iscoroutinefunction(function)
    made = FunctionTool.from_defaults(**{"async_fn" if is_async else "fn": function})

    def call(args: dict[str, Any]) -> Any:
        return (asyncio.run(made.acall(**args)) if is_async else made.call(**args)).raw_output

    return made.metadata.name, made.metadata.get_parameters_dict()["properties"], call


def haystack_ai(function: Callable[..., Any]) -> Made:
    from haystack.tools import create_tool_from_function

    made = create_tool_from_function(function)
    if asyncio.iscoroutinefunction(function):
        return made.name, made.parameters["properties"], lambda args: asyncio.run(made.invoke_async(**args))
    return made.name, made.parameters["properties"], lambda args: made.invoke(**args)


def crewai(function: Callable[..., Any]) -> Made:
    from crewai.tools import tool

    made = tool(function.__name__)(function)
    properties = made.args_schema.model_json_schema()["properties"]
    if asyncio.iscoroutinefunction(function):
        return made.name, properties, lambda args: asyncio.run(made.arun(**args))
    return made.name, properties, lambda args: made.run(**args)


def strands_agents(function: Callable[..., Any]) -> Made:
    from strands import tool

    made: Any = tool(function)

    async def call(args: dict[str, Any]) -> Any:
        use = {"toolUseId": "1", "name": made.tool_name, "input": args}
        *_, last = [each async for each in made.stream(use, {})]
        result = last["tool_result"]
        if result["status"] != "success":
            raise ValueError(result["content"][0]["text"])
        return json.loads(result["content"][0]["text"])

    return made.tool_name, made.tool_spec["inputSchema"]["json"]["properties"], lambda args: asyncio.run(call(args))


def google_adk(function: Callable[..., Any]) -> Made:
    from google.adk.tools import FunctionTool

    made = FunctionTool(function)
    properties = made._get_declaration().parameters_json_schema["properties"]
    return made.name, properties, lambda args: asyncio.run(made.run_async(args=args, tool_context=None))


def semantic_kernel(function: Callable[..., Any]) -> Made:
    from semantic_kernel import Kernel
    from semantic_kernel.functions import KernelArguments, KernelFunctionFromMethod, kernel_function

    marked = kernel_function(name=function.__name__, description=function.__doc__)(function)
    made = KernelFunctionFromMethod(marked, plugin_name="ours")
    properties = {
        each.name: {**each.schema_data, **({"description": each.description} if each.description else {})}
        for each in made.metadata.parameters
    }

    def call(args: dict[str, Any]) -> Any:
        result = asyncio.run(Kernel().invoke(made, KernelArguments(**args)))
        return None if result is None else result.value

    return made.name, properties, call


def main(framework: str) -> None:
    """Print the name, the arguments and the results of our tools in a framework."""
    make: Callable[[Callable[..., Any]], Made] = globals()[framework.replace("-", "_")]
    name, properties, call = make(to_function(engine, "shop.order"))
    _, _, add = make(to_function(engine, "shop.total"))
    facts = {
        "name": name,
        "types": {each: type_of(schema) for each, schema in properties.items()},
        "described": [each for each, schema in properties.items() if "." in schema.get("description", "")],
        "ordered": call({"item": "tea", "count": 2, "tags": ["a"], "extra": {"k": 1}}),
        "added": add({"first": 1, "more": [2, 3]}),
        "awaited": outcome(lambda: make(to_function(engine, "shop.later", is_async=True))[2]({"seconds": 0.5})),
        "refused": outcome(lambda: call({"item": "tea", "mode": "odd"})),
    }
    print(json.dumps(facts))


def type_of(schema: dict[str, Any]) -> str:
    """Return the type in a JSON Schema, or the first of several."""
    return str(schema.get("type") or schema["anyOf"][0]["type"])


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the type of the exception."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__


if __name__ == "__main__":
    main(sys.argv[1])
