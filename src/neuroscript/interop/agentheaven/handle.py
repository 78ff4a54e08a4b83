"""A handle on one tool: its state, its calls, and all that can be written of it.

The tool itself is a `ToolImplementation`. What is bound is taken from the state in each call, and nothing of it is
kept; a call goes through an engine, as every call does.

Source: AgentHeaven's document of ToolSpec; seed-systems.md rows AH-2 to AH-37, AH-47 to AH-58.
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
from neuroscript.interop.agentheaven.result import RESULT, ToolResult, main_value, wrapped
from neuroscript.interop.agentheaven.schemas import arguments_schema, strictly
from neuroscript.interop.agentheaven.state import copied_state, set_default
from neuroscript.interop.functions import described
from neuroscript.interop.mcp.client.accepted_definitions import Definition
from neuroscript.interop.mcp.client.host_services import Lent
from neuroscript.io.near_names import near
from neuroscript.io.text import shown
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.from_code import made_from
from neuroscript.tools.injection_sources import State
from neuroscript.tools.tool import NEEDS_NOTHING, ToolImplementation
from neuroscript.tools.toolset import Toolset


class ToolSpec:
    """A tool under the names of AgentHeaven's document; what the house calls a ToolSpec is its `tool.spec`.

    ``ToolSpec(tool)`` takes any `ToolImplementation`; ``@ToolSpec(name="…")`` makes a function into a handle, with the
    options of `from_function`.

    Args:
        tool: The tool.
        name: What it is called, where that is not the name of its spec.
        examples: What is kept as its examples.
        output_schema: The JSON Schema of the result, where its author gives one.
        permits: What its own engine permits; nothing, where nobody says.

    Raises:
        SpecError: That is no tool.

    Attributes:
        name: What it is called.
        examples: Calls of it, as its author gave them. Those that are `Example` stand in its spec, too.
    """

    def __new__(cls, tool: ToolImplementation | None = None, /, **options: Any) -> Any:
        """Return a handle, or a decorator where there is no tool yet."""
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
                "ToolSpec", ["expected a ToolImplementation; write ToolSpec.from_function(…), or @ToolSpec()"]
            )
        self.name = name or tool.spec.name
        self.examples = list(tool.spec.examples if examples is None else examples)
        self._output_schema = output_schema
        self._permits = permits
        self._lent: Lent | None = None
        self._whole = tool
        self._binds: dict[str, str] = {}
        self._state: dict[str, Any] = {}
        self._bound: ToolImplementation | None = None
        self._engine: Engine | None = None

    # Where handles come from

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
        """Return the tool that a function is: it, a method or an object that is called.

        Annotations are needed for all of its parameters. A bare ``list`` or ``dict`` is one of anything, and a result
        of which nothing is said may be anything.

        Args:
            parse_docstring: Whether its docstring tells what it does and what its arguments are; else it is the
                description as it stands. Nothing in it is ever evaluated.
            examples: Calls of it, which are kept; each `Example` is tried against the arguments now.
            name: What it is called, where that is not the function's name.
            description: What it does, where that is not what the docstring says.
            output_schema: The JSON Schema of its result, which is handed on as it is.
            group: The group of the tool, for engines that it is registered in.
            policy: What it needs.

        Raises:
            SpecError: It can not be a tool; it says what to write.
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
        """Return the tool of a function that stands in a text of Python; **the text is run**, as `from_code` says.

        Args:
            options: Those of `from_function`.
        """
        return made_from(code, func_name, env, partial(cls.from_function, **options))

    @classmethod
    def from_mcp(cls, tool: Any, *, group: str = reading.GROUP) -> Self:
        """Return the tool that a definition of MCP describes: an ``mcp.types.Tool``, or plain data as the wire has it.

        It can be looked at and written for models. To call it takes a connection to its server, which the tools of
        `neuroscript.interop.mcp.from_mcp` have; ``ToolSpec(tool)`` makes handles of those.

        Raises:
            SpecError: That is no definition, or with everything about it that can not be taken.
        """
        from neuroscript.interop.mcp.client.definition import described
        from neuroscript.llm.wire.sdk_data import dumped

        try:
            data = dumped(tool)
        except RecursionError:  # what is that deep is refused for it
            data = tool
        except ValueError:  # of the SDK's object
            raise SpecError("definition", ["nests deeper than its SDK can tell"]) from None
        definition = Definition.of_data(data)
        return cls(
            described(definition, group), name=definition.name, output_schema=definition.data.get("outputSchema")
        )

    @classmethod
    def from_fastmcp(cls, tool: Any, *, group: str = reading.GROUP, timeout: float = SECONDS) -> Self:
        """Return a tool of FastMCP, which runs in this process: a ``fastmcp.tools.Tool``, or a function that is one.

        Calls by the handle are permitted. An engine that `tool` is registered in asks for the grant ``mcp:call:…`` and
        an approval, as for all foreign tools; the tools of a whole server, with other needs, are those of
        `neuroscript.interop.fastmcp.from_fastmcp`.

        Args:
            timeout: Seconds that a call may take.

        Raises:
            SpecError: With everything about it that can not be taken.
            ModuleNotFoundError: The extra ``fastmcp`` is not installed.
        """
        return cls._foreign(*protocol.process_tool(tool, group, timeout))

    @classmethod
    async def from_client(
        cls, client: Any, tool_name: str, *, group: str = reading.GROUP, timeout: float = SECONDS
    ) -> Self:
        """Return a tool of the server that a client is connected to.

        Calls go over that client, on the loop that it lives on: await `acall` and `aexec` there. Who may call it is as
        for `from_fastmcp`.

        Args:
            client: One that is connected: a session or a client of the SDK of MCP, or a client of FastMCP.
            tool_name: What the server calls the tool.
            timeout: Seconds that a call may take, and the answer to which tools there are.

        Raises:
            SpecError: The server has no such tool, or with everything about it that can not be taken.
            ToolFailed: The server does not say what its tools are.
            ModuleNotFoundError: The extra ``mcp`` is not installed.
        """
        tool, definition, connection = await protocol.client_tool(client, tool_name, group, timeout)
        made = cls._foreign(tool, definition)
        made._lent = connection
        return made

    @classmethod
    def _foreign(cls, tool: ToolImplementation, definition: Definition) -> Self:
        """Return the handle of a tool that a server has, under the server's name of it."""
        schema = definition.data.get("outputSchema")
        return cls(tool, name=definition.name, output_schema=schema, permits=protocol.permitting(tool))

    def clone(self) -> Self:
        """Return a handle on the same tool, with a state and bindings of its own."""
        made: Self = self._handle_on(self._whole)
        made._binds, made._state = dict(self._binds), copied_state(self._state)
        return made

    __copy__ = clone

    def __deepcopy__(self, memo: object) -> Self:
        """Return a clone; what the state holds besides maps and lists is not copied."""
        return self.clone()

    # What is bound

    @property
    def state(self) -> dict[str, Any]:
        """What bound arguments are taken from in each call; it may be changed, and replaced as a whole."""
        return self._state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._state = state

    @property
    def binds(self) -> dict[str, str]:
        """Where in the state each bound argument stands, by its name."""
        return dict(self._binds)

    def bind(self, param: str, state_key: str | None = None, default: Any = UNSET) -> Self:
        """Take an argument from the state from now on, so that no caller sees or sets it, and return this handle.

        Args:
            state_key: Where it stands in the state, ``config.api.key`` for a map within a map within a map; by default
                under its own name.
            default: What is put there, if nothing stands there yet.

        Raises:
            SpecError: There is no such argument, or the state can not hold it there.
        """
        names = [arg.name for arg in self._whole.spec.args]
        if param not in names:
            alike = near(param, names)
            hint = f" (did you mean {' or '.join(alike)}?)" if alike else ""
            raise SpecError(self._whole.name, [f"it has no argument {shown(param)}{hint}"])
        source = State(self._present, state_key or param)
        self._whole.injecting(**{param: source})  # whatever is wrong with it is found now
        if default is not UNSET:
            set_default(self._state, source.key, default)
        self._binds[param] = source.key
        self._clear_cache()
        return self

    def unbind(self, param: str) -> Self:
        """Let callers set an argument again, and return this handle; the state stays, and so does what is not bound."""
        if self._binds.pop(param, None) is not None:
            self._clear_cache()
        return self

    def _present(self) -> Mapping[str, Any]:
        return self._state

    @property
    def tool(self) -> ToolImplementation:
        """The tool as its callers see it: without the arguments that are bound. An engine can register it."""
        if self._bound is None:
            sources = {name: State(self._present, key) for name, key in self._binds.items()}
            self._bound = self._whole.injecting(**sources) if sources else self._whole
        return self._bound

    @property
    def binded(self) -> ToolSpec:
        """The tool without the arguments that are bound, as a handle; this one, where none is."""
        return self._handle_on(self.tool) if self._binds else self

    def _handle_on(self, tool: ToolImplementation) -> Any:
        schema, permits = self._output_schema, self._permits
        made = type(self)(tool, name=self.name, examples=self.examples, output_schema=schema, permits=permits)
        made._lent = self._lent
        return made

    def _clear_cache(self) -> None:
        """Forget what is made of the bindings; values are never kept."""
        self._bound = None
        self._engine = None

    # Calls

    @property
    def engine(self) -> Engine:
        """The engine that runs the tool: this handle's own, made when it is first needed.

        It grants nothing, but what a tool of MCP or FastMCP needs. Any other tool that needs something is registered in
        an engine of its host: ``Engine(toolsets=[Toolset("mine", (handle.tool,))], policy=…)``.
        """
        if self._engine is None:
            toolset = Toolset(self.tool.spec.group, (self.tool,))
            self._engine = Engine(plugins="none", toolsets=[toolset], policy=self._permits)
        return self._engine

    def _waited_for(self) -> Engine:
        """Return the engine for a caller that waits, and refuse where that would wait for itself."""
        if self._lent is not None:
            self._lent.refuse_to_wait(self.tool.name)
        return self.engine

    def __call__(self, /, **arguments: Any) -> Any:
        """Return what `call` returns."""
        return self.call(**arguments)

    def call(self, /, **arguments: Any) -> Any:
        """Call the tool and return the main value of its result; a loop that runs here is no hindrance.

        Raises:
            CallError: One of its kinds says what went wrong.
        """
        return main_value(self._output_schema, self._waited_for().call_named(self.tool.name, arguments))

    async def acall(self, /, **arguments: Any) -> Any:
        """Return what `call` returns, without holding up the loop that awaits it."""
        return main_value(self._output_schema, await self.engine.acall_named(self.tool.name, arguments))

    def exec(self, /, **arguments: Any) -> ToolResult:
        """Call the tool and return its result or its error, and how long it took; a `CallError` is never raised."""
        started = perf_counter()
        try:
            value = self._waited_for().call_named(self.tool.name, arguments)
        except CallError as error:
            return ToolResult(error=error, seconds=perf_counter() - started)
        return ToolResult(wrapped(self._output_schema, value), seconds=perf_counter() - started)

    async def aexec(self, /, **arguments: Any) -> ToolResult:
        """Return what `exec` returns, without holding up the loop that awaits it."""
        started = perf_counter()
        try:
            value = await self.engine.acall_named(self.tool.name, arguments)
        except CallError as error:
            return ToolResult(error=error, seconds=perf_counter() - started)
        return ToolResult(wrapped(self._output_schema, value), seconds=perf_counter() - started)

    def available(self) -> bool:
        """Tell whether the tool can be called; one of this process always can."""
        return True

    def to_function(self) -> Callable[..., Any]:
        """Return a function with the arguments of the tool as its parameters, which calls it.

        Raises:
            ValueError: A name of an argument is no name in Python.
        """
        parameters = writing.signature_of(self.tool.spec)

        def function(*args: Any, **named: Any) -> Any:
            return self.call(**parameters.bind(*args, **named).arguments)

        return described(function, self.name, self.docstring, parameters)

    # What can be written of it

    @property
    def description(self) -> str:
        """What the tool does."""
        return self.tool.spec.description

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments that are not bound."""
        return arguments_schema(self.tool.spec)

    @property
    def params(self) -> dict[str, Any]:
        """The JSON Schema of each of them by name."""
        properties: dict[str, Any] = self.input_schema.get("properties", {})
        return properties

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured content of a result; None where its type is not known."""
        if self._output_schema is not None:
            return deepcopy(dict(self._output_schema))
        if self.tool.spec.return_type is ArgType.ANY:
            return None
        schema = deepcopy(result_schema(self.tool.spec))
        result = {"type": "array", "items": schema} if self.tool.spec.stream is True else schema
        return {"type": "object", "properties": {RESULT: result}}

    @property
    def docstring(self) -> str:
        """What the tool does, takes and returns, in Google's style."""
        return writing.docstring(self.tool.spec)

    @property
    def code(self) -> str:
        """The tool as the text of a function that does nothing.

        Raises:
            SpecError: A name of an argument is no name in Python.
        """
        return writing.definition(self.name, self.tool.spec)

    def signature(self, /, **arguments: Any) -> str:
        """Return a call with these arguments as it would be made.

        Raises:
            ArgumentError: An argument is unknown, or does not fit.
        """
        return writing.call_text(self.name, self.tool.spec, arguments)

    def to_prompt(self) -> str:
        """Return all that a model has to know to call the tool, as a text."""
        spec = self.tool.spec
        return to_prompt(spec).replace(spec.full_name, self.name)

    def to_jsonschema(self, /, **extra: Any) -> dict[str, Any]:
        """Return the tool as OpenAI's Responses API takes it.

        ``strict`` says that a model's arguments will be held to the schema; then an argument that may be left out is
        required, and may be null. Where the schema has no such form it is False.

        Args:
            extra: Further members, or other ones.
        """
        schema = self.input_schema
        strict = strictly(schema)
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": schema if strict is None or not extra.get("strict", True) else strict,
            "strict": strict is not None,
            **extra,
        }

    def to_mcp(self) -> Any:
        """Return the tool as MCP has it, an ``mcp.types.Tool``, without the arguments that are bound.

        Raises:
            ModuleNotFoundError: The extra ``mcp`` is not installed.
        """
        return protocol.mcp_tool(self.tool, self.name, self.input_schema, self._output_schema)

    def to_fastmcp(self) -> Any:
        """Return the tool as FastMCP has it, for ``server.add_tool``, without the arguments that are bound now.

        Its calls go through `engine` as it is now. They follow the state, and are coerced by our line alone.

        Raises:
            ModuleNotFoundError: The extra ``fastmcp`` is not installed.
        """
        return protocol.fastmcp_tool(self.engine, self.tool, self.name, self.input_schema, self._output_schema)

    def __repr__(self) -> str:
        """Return its name and what is bound; nothing of its state."""
        bound = f", bound: {', '.join(self._binds)}" if self._binds else ""
        return f"<ToolSpec {self.name}{bound}>"
