"""The tools of AgentDojo's suites as a toolset."""

from __future__ import annotations

from typing import Any

import attrs
from agentdojo.functions_runtime import Function, FunctionsRuntime
from pydantic_core import to_jsonable_python

from neuroscript import Runtime, ToolFailed, ToolImplementation, Toolset, spec_from_schema


@attrs.define
class World:
    """The environment on which the tools of a suite work.

    Attributes:
        functions: AgentDojo's functions.
        environment: The environment of the current play.
        calls: How many calls have reached a function in it.
    """

    functions: FunctionsRuntime
    environment: Any = None
    calls: int = 0

    def enter(self, environment: Any) -> None:
        """Start a play in another environment."""
        self.environment = environment
        self.calls = 0


def toolset_of(group: str, world: World) -> Toolset:
    """Return a toolset that calls AgentDojo's functions on the environment of a world."""
    return Toolset(group, tuple(_tool(group, function, world) for function in world.functions.functions.values()))


def _tool(group: str, function: Function[Any, Any], world: World) -> ToolImplementation:
    schema = function.parameters.model_json_schema()
    spec = spec_from_schema(function.name, schema, group=group, description=function.description)
    names = [arg.name for arg in spec.args]

    def called(rt: Runtime, *values: Any) -> Any:
        world.calls += 1
        arguments = dict(zip(names, values, strict=True))
        try:
            result, _ = world.functions.run_function(world.environment, function.name, arguments, raise_on_error=True)
        except Exception as error:
            raise ToolFailed(f"{type(error).__name__}: {error}") from error  # as a model of AgentDojo reads it
        return to_jsonable_python(result)

    return ToolImplementation(spec, called)
