"""A handle for one tool: its state, its calls and its representations.

The tool itself is a `ToolImplementation`. Bound arguments are read from the state in each call and are not stored
elsewhere. Calls go through an engine, like all calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from time import perf_counter
from typing import Any, Self

from neuroscript.coercion.types import ArgType
from neuroscript.config.mcp_servers import SECONDS
from neuroscript.engine.engine import Engine
from neuroscript.errors import UNSET, CallError, SpecError
from neuroscript.formats.json_schema import result_schema
from neuroscript.formats.prompt import to_prompt
from neuroscript.interop.agentheaven import mcp as protocol
from neuroscript.interop.agentheaven import signature as reading
from neuroscript.interop.agentheaven import source_code as writing
from neuroscript.interop.agentheaven.result import RESULT, ToolResult, main_value, wrap
from neuroscript.interop.agentheaven.schemas import arguments_schema, strict_schema
from neuroscript.interop.agentheaven.state import copied_state, set_default
from neuroscript.interop.functions import set_metadata
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.definition import inspection_tool
from neuroscript.interop.mcp.client.host_services import HostClient
from neuroscript.io.near_names import near
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.from_code import made_from
from neuroscript.tools.injection_sources import State
from neuroscript.tools.tool import NEEDS_NOTHING, ToolImplementation
from neuroscript.tools.toolset import Toolset


class ToolSpec:
    """A tool with the API that AgentHeaven documents; its ``tool.spec`` is what this project calls a ToolSpec.

    ``ToolSpec(tool)`` accepts any `ToolImplementation`; ``@ToolSpec(name="…")`` creates a handle from a function, with
    the options of `from_function`.

    Args:
        tool: The tool.
        name: Its name; the default is the name in its spec.
        examples: Its examples; the default are those in its spec.
        output_schema: The JSON Schema of the result, if the author supplies one.
        permits: The policy of the handle's own engine; the default permits nothing.

    Raises:
        SpecError: *tool* is not a `ToolImplementation`.

    Attributes:
        name: The name of the tool.
        examples: Example calls from its author. Items of type `Example` are also in its spec.
    """

    def __new__(cls, tool: ToolImplementation | None = None, /, **options: Any) -> Any:
        """Return a handle, or a decorator if there is no tool yet."""
        return partial(cls.from_function, **options) if tool is None else super().__new__(cls)

    def __init__(
        self,
        tool: ToolImplementation,
        /,
        *,
        name: str | None = None,
        examples: Iterable[Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        permits: ExecutionPolicy | None = None,
    ) -> None:
        if not isinstance(tool, ToolImplementation):
            raise SpecError(
                "ToolSpec", ["expected a ToolImplementation; use ToolSpec.from_function(…), or @ToolSpec()"]
            )
        self.name = name or tool.spec.name
        self.examples = list(tool.spec.examples if examples is None else examples)
        self._output_schema = output_schema
        self._permits = permits
        self._host_client: HostClient | None = None
        self._unbound_tool = tool
        self._binds: dict[str, str] = {}
        self._state: dict[str, Any] = {}
        self._bound: ToolImplementation | None = None
        self._engine: Engine | None = None

    # Constructors

    @classmethod
    def from_function(
        cls,
        func: Callable[..., Any],
        parse_docstring: bool = True,
        examples: Iterable[Any] | None = None,
        *,
        name: str | None = None,
        description: str = "",
        output_schema: Mapping[str, Any] | None = None,
        group: str = reading.GROUP,
        policy: ToolPolicy = NEEDS_NOTHING,
    ) -> Self:
        """Return a tool for a function, a method or a callable object.

        All parameters need annotations. A bare ``list`` or ``dict`` may contain anything, and a result without an
        annotation may be anything.

        Args:
            parse_docstring: Parse the docstring for the description of the tool and its arguments; otherwise the whole
                docstring is the description. Nothing in it is ever evaluated.
            examples: Example calls, which are stored; each `Example` is validated against the arguments now.
            name: The name; the default is the name of the function.
            description: The description; the default comes from the docstring.
            output_schema: The JSON Schema of the result, which is used unchanged.
            group: The group of the tool in an engine.
            policy: The policy of the tool.

        Raises:
            SpecError: The function cannot be a tool; the message says what to change.
        """
        kept = None if examples is None else list(examples)
        found = reading.tool_of(
            func,
            parse_docstring=parse_docstring,
            name=name,
            description=description,
            group=group,
            policy=policy,
            examples=kept or (),
        )
        own = name or getattr(func, "__name__", None)
        return cls(found, name=own, examples=kept, output_schema=output_schema)

    @classmethod
    def from_code(
        cls, code: str, func_name: str | None = None, env: Mapping[str, Any] | None = None, **options: Any
    ) -> Self:
        """Return a tool for a function in Python source code; **the code is executed**, as by `from_code`.

        Args:
            options: The options of `from_function`.
        """
        return made_from(code, func_name, env, partial(cls.from_function, **options))

    @classmethod
    def from_mcp(cls, tool: Any, *, group: str = reading.GROUP) -> Self:
        """Return the tool for an MCP definition: an ``mcp.types.Tool``, or its wire format as plain data.

        It can be inspected and exported to models. Calling it needs a connection to its server: load the server with
        `neuroscript.interop.mcp.from_mcp`, and create handles of its tools with ``ToolSpec(tool)``.

        Raises:
            SpecError: It is not a definition, or it is invalid; with every problem found.
        """
        from neuroscript.llm.wire.sdk_data import to_plain_data

        try:
            data = to_plain_data(tool)
        except RecursionError:  # Definition.of_data rejects data that is nested so deeply
            data = tool
        except ValueError:  # raised by the object of the SDK
            raise SpecError("definition", ["nests deeper than the SDK supports"]) from None
        definition = Definition.of_data(data)
        return cls(
            inspection_tool(definition, group), name=definition.name, output_schema=definition.data.get("outputSchema")
        )

    @classmethod
    def from_fastmcp(cls, tool: Any, *, group: str = reading.GROUP, timeout: float = SECONDS) -> Self:
        """Return a FastMCP tool of this process: a ``fastmcp.tools.Tool``, or a function decorated as one.

        Calls through the handle are permitted. An engine that `tool` is registered in requires the capability
        ``mcp:call:…`` and an approval, as for all third-party tools. To load a whole server, whose tools need other
        capabilities, use `neuroscript.interop.fastmcp.from_fastmcp`.

        Args:
            timeout: Timeout of a call, in seconds.

        Raises:
            SpecError: With every problem found.
            ModuleNotFoundError: The extra ``fastmcp`` is not installed.
        """
        return cls._foreign(*protocol.process_tool(tool, group, timeout))

    @classmethod
    async def from_client(
        cls, client: Any, tool_name: str, *, group: str = reading.GROUP, timeout: float = SECONDS
    ) -> Self:
        """Return a tool of the server that a client is connected to.

        Calls go through that client, on its event loop: await `acall` and `aexec` there. Permissions are as for
        `from_fastmcp`.

        Args:
            client: A connected session or client of the MCP SDK, or a connected FastMCP client.
            tool_name: The name of the tool on the server.
            timeout: Timeout of a call, and of listing the tools, in seconds.

        Raises:
            SpecError: The server has no such tool, or the tool is invalid; with every problem found.
            ToolFailed: The server does not list its tools.
            ModuleNotFoundError: The extra ``mcp`` is not installed.
        """
        tool, definition, connection = await protocol.client_tool(client, tool_name, group, timeout)
        made = cls._foreign(tool, definition)
        made._host_client = connection
        return made

    @classmethod
    def _foreign(cls, tool: ToolImplementation, definition: Definition) -> Self:
        """Return the handle of an MCP tool, under its name on the server."""
        schema = definition.data.get("outputSchema")
        return cls(tool, name=definition.name, output_schema=schema, permits=protocol.permissive_policy(tool))

    def clone(self) -> Self:
        """Return a handle for the same tool, with a copy of the state and the bindings."""
        made: Self = self._handle_on(self._unbound_tool)
        made._binds, made._state = dict(self._binds), copied_state(self._state)
        return made

    __copy__ = clone

    def __deepcopy__(self, memo: object) -> Self:
        """Return a clone; only maps and lists in the state are copied."""
        return self.clone()

    # Bindings

    @property
    def state(self) -> dict[str, Any]:
        """The state that supplies bound arguments in each call; it may be changed or replaced."""
        return self._state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._state = state

    @property
    def binds(self) -> dict[str, str]:
        """The state key of each bound argument, by argument name."""
        return dict(self._binds)

    def bind(self, param: str, state_key: str | None = None, default: Any = UNSET) -> Self:
        """Supply an argument from the state, so that callers neither see nor set it; return this handle.

        Args:
            state_key: The key in the state; ``config.api.key`` refers to nested maps. The default is the argument name.
            default: A value to store under the key if it is missing.

        Raises:
            SpecError: The argument does not exist, or the state cannot contain the key.
        """
        names = [arg.name for arg in self._unbound_tool.spec.args]
        if param not in names:
            alike = near(param, names)
            hint = f" (did you mean {' or '.join(alike)}?)" if alike else ""
            raise SpecError(self._unbound_tool.name, [f"it has no argument {quote_untrusted(param)}{hint}"])
        source = State(self._present, state_key or param)
        self._unbound_tool.with_injected(**{param: source})  # raise an error now if it cannot be injected
        if default is not UNSET:
            set_default(self._state, source.key, default)
        self._binds[param] = source.key
        self._clear_cache()
        return self

    def unbind(self, param: str) -> Self:
        """Let callers set an argument again; return this handle. The state and unbound arguments do not change."""
        if self._binds.pop(param, None) is not None:
            self._clear_cache()
        return self

    def _present(self) -> Mapping[str, Any]:
        return self._state

    @property
    def tool(self) -> ToolImplementation:
        """The tool as callers see it, without the bound arguments; it can be registered in an engine."""
        if self._bound is None:
            sources = {name: State(self._present, key) for name, key in self._binds.items()}
            self._bound = self._unbound_tool.with_injected(**sources) if sources else self._unbound_tool
        return self._bound

    @property
    def binded(self) -> ToolSpec:
        """A handle for the tool without the bound arguments; this handle if there are none."""
        return self._handle_on(self.tool) if self._binds else self

    def _handle_on(self, tool: ToolImplementation) -> Any:
        schema, permits = self._output_schema, self._permits
        made = type(self)(tool, name=self.name, examples=self.examples, output_schema=schema, permits=permits)
        made._host_client = self._host_client
        return made

    def _clear_cache(self) -> None:
        """Discard what was derived from the bindings; values are never cached."""
        self._bound = None
        self._engine = None

    # Calls

    @property
    def engine(self) -> Engine:
        """The engine that runs the tool: the handle's own one, created when it is first needed.

        It grants nothing except what an MCP or FastMCP tool needs. To run any other tool that needs capabilities,
        register it in an engine of the host: ``Engine(toolsets=[Toolset("mine", (handle.tool,))], policy=…)``.
        """
        if self._engine is None:
            toolset = Toolset(self.tool.spec.group, (self.tool,))
            self._engine = Engine(plugins="none", toolsets=[toolset], policy=self._permits)
        return self._engine

    def _waited_for(self) -> Engine:
        """Return the engine for a blocking call, or raise an error if the call would deadlock."""
        if self._host_client is not None:
            self._host_client.refuse_to_wait(self.tool.name)
        return self.engine

    def __call__(self, /, **arguments: Any) -> Any:
        """Do the same as `call`."""
        return self.call(**arguments)

    def call(self, /, **arguments: Any) -> Any:
        """Call the tool and return the main value of its result; also works while an event loop is running.

        Raises:
            CallError: A subclass for each kind of failure.
        """
        return main_value(self._output_schema, self._waited_for().call_named(self.tool.name, arguments))

    async def acall(self, /, **arguments: Any) -> Any:
        """Do the same as `call`, without blocking the event loop."""
        return main_value(self._output_schema, await self.engine.acall_named(self.tool.name, arguments))

    def exec(self, /, **arguments: Any) -> ToolResult:
        """Call the tool and return its result or its error, and the duration; never raise a `CallError`."""
        started = perf_counter()
        try:
            value = self._waited_for().call_named(self.tool.name, arguments)
        except CallError as error:
            return ToolResult(error=error, seconds=perf_counter() - started)
        return ToolResult(wrap(self._output_schema, value), seconds=perf_counter() - started)

    async def aexec(self, /, **arguments: Any) -> ToolResult:
        """Do the same as `exec`, without blocking the event loop."""
        started = perf_counter()
        try:
            value = await self.engine.acall_named(self.tool.name, arguments)
        except CallError as error:
            return ToolResult(error=error, seconds=perf_counter() - started)
        return ToolResult(wrap(self._output_schema, value), seconds=perf_counter() - started)

    def available(self) -> bool:
        """Return whether the tool can be called; this is always True."""
        return True

    def to_function(self) -> Callable[..., Any]:
        """Return a function that calls the tool, with its arguments as parameters.

        Raises:
            ValueError: The name of an argument is not a valid Python name.
        """
        parameters = writing.signature_of(self.tool.spec)

        def function(*args: Any, **named: Any) -> Any:
            return self.call(**parameters.bind(*args, **named).arguments)

        return set_metadata(function, self.name, self.docstring, parameters)

    # Representations

    @property
    def description(self) -> str:
        """The description of the tool."""
        return self.tool.spec.description

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments that are not bound."""
        return arguments_schema(self.tool.spec)

    @property
    def params(self) -> dict[str, Any]:
        """The JSON Schemas of these arguments, by name."""
        properties: dict[str, Any] = self.input_schema.get("properties", {})
        return properties

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured content of a result; None if its type is unknown."""
        if self._output_schema is not None:
            return deepcopy(dict(self._output_schema))
        if self.tool.spec.return_type is ArgType.ANY:
            return None
        schema = deepcopy(result_schema(self.tool.spec))
        result = {"type": "array", "items": schema} if self.tool.spec.stream is True else schema
        return {"type": "object", "properties": {RESULT: result}}

    @property
    def docstring(self) -> str:
        """The documentation of the tool as a docstring in Google style."""
        return writing.docstring(self.tool.spec)

    @property
    def code(self) -> str:
        """The tool as the source code of a function stub.

        Raises:
            SpecError: The name of an argument is not a valid Python name.
        """
        return writing.definition(self.name, self.tool.spec)

    def signature(self, /, **arguments: Any) -> str:
        """Return the source code of a call with these arguments.

        Raises:
            ArgumentError: An argument is unknown or invalid.
        """
        return writing.call_text(self.name, self.tool.spec, arguments)

    def to_prompt(self) -> str:
        """Return what a model needs to know to call the tool, as text."""
        spec = self.tool.spec
        return to_prompt(spec).replace(spec.full_name, self.name)

    def to_jsonschema(self, /, **extra: Any) -> dict[str, Any]:
        """Return the tool in the format of OpenAI's Responses API.

        With ``strict``, a model's arguments always match the schema; optional arguments are then required and nullable.
        ``strict`` is False if the schema cannot be converted.

        Args:
            extra: Members to add or replace.
        """
        schema = self.input_schema
        strict = strict_schema(schema)
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": schema if strict is None or not extra.get("strict", True) else strict,
            "strict": strict is not None,
            **extra,
        }

    def to_mcp(self) -> Any:
        """Return the tool as an ``mcp.types.Tool``, without the bound arguments.

        Raises:
            ModuleNotFoundError: The extra ``mcp`` is not installed.
        """
        return protocol.mcp_tool(self.tool, self.name, self.input_schema, self._output_schema)

    def to_fastmcp(self) -> Any:
        """Return the tool for ``server.add_tool`` of FastMCP, without the currently bound arguments.

        Its calls go through the current `engine`. They use the state, and only the engine coerces their arguments.

        Raises:
            ModuleNotFoundError: The extra ``fastmcp`` is not installed.
        """
        return protocol.fastmcp_tool(self.engine, self.tool, self.name, self.input_schema, self._output_schema)

    def __repr__(self) -> str:
        """Return the name and the bound arguments, without values from the state."""
        bound = f", bound: {', '.join(self._binds)}" if self._binds else ""
        return f"<ToolSpec {self.name}{bound}>"
