"""The tools of an engine under one policy, by any spelling of their names, each with its pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import attrs

from neuroscript.calls.compiler import UNDECIDED, CompiledCall, compile_binder, compile_exact, compile_pipeline
from neuroscript.calls.drivers import ThreadSource, drive
from neuroscript.calls.pipeline import CallPipeline
from neuroscript.calls.steps import CallFrame
from neuroscript.coercion.context import type_name
from neuroscript.engine.call_runtime import CallRuntime, CountedRuntime
from neuroscript.engine.shared import Shared, ToolsSnapshot
from neuroscript.errors import CallError, LimitError, PluginError, PolicyError, ToolFailed, ToolNotFound
from neuroscript.io.text import quote_untrusted
from neuroscript.names import MAX_SPELLING_CHARS, canonical
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.runtime.interfaces import ToolInfo
from neuroscript.spec.binding import bind_arguments
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import HOST, ListedTool, Registry, entry_of, failure, implementation, load_tool

if TYPE_CHECKING:
    from neuroscript.calls.gate import Gate
    from neuroscript.calls.observers import Observers
    from neuroscript.isolation.pipeline import IsolatedFunction
    from neuroscript.runtime.secret_set import SecretSet

    IsolatedTool = tuple[ToolImplementation, IsolatedFunction]


DEFAULT_MAX_DEPTH: Final = 16
"""Maximum depth of nested calls if no limit is set."""


class BoundTool:
    """A tool that may be called: its pipeline, and the pipeline as a function, which is compiled on first use."""

    def __init__(self, pipeline: CallPipeline, source: ThreadSource) -> None:
        self.pipeline = pipeline
        self._source = source
        self._makers: dict[bool, Callable[[CallFrame], CompiledCall]] = {}
        self._exact_maker: Callable[[CallFrame], CompiledCall] | None = None

    def function(self, by_name: bool, root: CallFrame) -> CompiledCall:
        """Return the pipeline as a function of arguments in order, or by name.

        Args:
            root: The frame of its calls from outside.
        """
        maker = self._makers.get(by_name)
        if maker is None:
            fallback = self._fallback(by_name)
            direct = self.pipeline.is_direct
            maker = self._makers[by_name] = (
                compile_pipeline(self.pipeline, fallback, by_name) if direct else partial(_from_outside, fallback)
            )
        return maker(root)

    def exact_function(self, root: CallFrame) -> CompiledCall:
        """Return the pipeline as a function of arguments by name, which returns `UNDECIDED` if they need repairs."""
        if not self.pipeline.is_direct or self.pipeline.tracks_flow:
            return _undecided
        if self._exact_maker is None:
            self._exact_maker = compile_exact(self.pipeline)
        return self._exact_maker(root)

    def _fallback(self, by_name: bool) -> CompiledCall:
        """Return a function with the signature of a compiled pipeline that runs the steps."""
        pipeline, source = self.pipeline, self._source
        spec, coercion = pipeline.tool.spec, pipeline.coercion

        def unwatched(given: object, frame: CallFrame) -> Any:
            if frame.session.secrets is not None:
                return fallback(given, frame)
            return drive(pipeline.steps(bind_arguments(spec, coercion, given, by_name=by_name), frame), source)

        def fallback(given: object, frame: CallFrame) -> Any:
            values = pipeline.bind(frame, given, by_name)
            return drive(pipeline.steps(values, frame, pipeline.repairs(given, values)), source)

        return unwatched if pipeline.gate is None else fallback


def _from_outside(fallback: CompiledCall, root: CallFrame) -> CompiledCall:
    def run_steps(given: object, frame: CallFrame = root) -> Any:
        return fallback(given, frame)

    return run_steps


def _undecided(given: object) -> Any:
    return UNDECIDED


class ToolView:
    """The tools of an engine as one policy permits them.

    Attributes:
        shared: What does not depend on the policy.
        policy: What the host permits.
        depth: How deep calls may be nested.
        tracks_flow: Whether the policy has rules about information flow.
    """

    def __init__(self, shared: Shared, policy: ExecutionPolicy) -> None:
        self.shared = shared
        self.policy = policy
        self.depth: int = policy.least("depth", DEFAULT_MAX_DEPTH)
        self.tracks_flow = policy.has_flow_rules
        self._isolates = policy.isolates
        self._is_gated = shared.is_watched or policy.counts or self.tracks_flow
        self._entries: dict[str, BoundTool] = {}
        self._gates: dict[str, Gate] = {}
        self._infos: tuple[Registry, Mapping[str, ToolInfo]] = (Registry(), MappingProxyType({}))
        self._isolated: dict[str, tuple[ListedTool, IsolatedTool]] = {}
        shared.views.add(self)

    def narrowed(self, policy: ExecutionPolicy | None) -> ToolView:
        """Return the same tools under a policy that is within this one; None means this one."""
        return self if policy is None else ToolView(self.shared, policy.inside(self.policy))

    def forget(self) -> None:
        """Compile the tools again when they are next called, because hooks or observers have changed."""
        self._is_gated = self.shared.is_watched or self.policy.counts or self.tracks_flow
        self._gates = {}
        self._entries = {}  # last, so that a pipeline in the new dict has a new gate

    @cached_property
    def secrets(self) -> SecretSet:
        """The secrets of the host that can be guessed and that this policy permits tools to read, a `SecretSet`."""
        return self.shared.known_secrets().granted(self.policy)

    @property
    def count(self) -> int:
        """The number of tools."""
        return len(self.shared.registry.tools)

    def of(self, spelling: str | None, name: object, registry: Registry) -> BoundTool:
        """Return the tool that a spelling refers to, if it may be called.

        Args:
            spelling: The name as a string, or None if *name* is not one.
            registry: The tools; a call that began before they changed still has the former ones.

        Raises:
            ToolNotFound: There is no such tool, or the host does not permit any with this name.
            PolicyError: It needs what the host does not grant.
            ToolFailed: Its distribution cannot be loaded.
        """
        if spelling is None:
            raise ToolNotFound(f"<{type_name(name)}>")
        asked = canonical(spelling)
        listed = registry.named(asked)
        if listed is None:
            raise ToolNotFound(quote_untrusted(spelling), self._near(spelling, registry))
        try:
            isolated = self._isolated_tool(listed, registry) if self._isolates else None
            tool = self._admitted(listed, registry) if isolated is None else isolated[0]
        except PluginError as error:
            raise failure(listed.name, error) from error
        if asked != tool.name or tool.spec.deprecated:
            self._warn(tool, asked)
        entries = self._entries  # replaced, with what is added to it, if something changes meanwhile
        entry = entries.get(tool.name)
        if entry is None or entry.pipeline.tool is not tool:
            gate = self.gate(tool) if self._is_gated else None
            runtime: type[CallRuntime] = CallRuntime if gate is None else CountedRuntime
            kind: Callable[..., CallPipeline] = CallPipeline
            if self.tracks_flow:
                from neuroscript.calls.flow_pipeline import FlowPipeline as kind  # noqa: N813
                from neuroscript.engine.flow_runtime import FlowRuntime as runtime  # noqa: N813
            if isolated is not None:
                from neuroscript.isolation.pipeline import isolated_kind

                kind = isolated_kind(isolated[1], tracks_flow=self.tracks_flow)
            pipeline = kind(tool, self.shared.coercion, self.policy, runtime, gate)
            entry = entries[tool.name] = BoundTool(pipeline, self.shared)
        return entry

    def _isolated_tool(self, listed: ListedTool, registry: Registry) -> IsolatedTool | None:
        """Return a tool that may run in a worker, which the host then does not load, or None."""
        origin = registry.origins.get(listed.name, HOST)
        settings = self.policy.isolation_of(listed.name, origin, entry_of(listed), registry.old_names(listed.name))
        settings = settings or getattr(listed, "isolation", None)  # what the host has not imported, it never runs
        if settings is None:
            return None
        refused = self._refusal(listed, registry)
        if refused is not None:
            raise refused
        known = self._isolated.get(listed.name)
        if known is None or known[0] is not listed:
            from neuroscript.isolation.pipeline import isolated_tool
            from neuroscript.isolation.tool_source import CannotImport

            try:
                made = isolated_tool(listed, self.shared.pool, settings)
            except CannotImport as error:
                failed = ToolFailed("cannot be isolated", tool=listed.name, code="isolation.import", retry="host")
                failed.remedy = str(error)
                raise failed from error
            known = self._isolated[listed.name] = listed, made
        return known[1]

    def _admitted(self, listed: ListedTool, registry: Registry) -> ToolImplementation:
        """Return a tool that may run, and load it if necessary."""
        refused = self._refusal(listed, registry)
        if refused is not None:
            raise refused
        return load_tool(listed)

    def _permitted(self) -> Iterator[str]:
        """Return the names of the tools that may run."""
        registry = self.shared.registry
        return (name for name in registry.tools if self._may_run(name, registry))

    def _near(self, spelling: str, registry: Registry) -> tuple[str, ...]:
        """Return at most three tools that may run and whose names are similar to an unknown one."""
        if len(spelling) > MAX_SPELLING_CHARS:
            return ()
        return registry.near_names.near(spelling, lambda name: self._may_run(name, registry))

    def _may_run(self, name: str, registry: Registry) -> bool:
        try:
            return self._refusal(registry.tools[name], registry) is None
        except PluginError:  # it is in plugin_errors
            return False

    def _refusal(self, tool: ListedTool, registry: Registry) -> PolicyError | None:
        """Return why a tool may not run at all; a tool that is denied by an old name stays denied."""
        refused = self.policy.precheck(tool.name, tool.policy)
        if refused is None and registry.aliases:
            denials = (self.policy.denial(old, tool.name) for old in registry.old_names(tool.name))
            refused = next((each for each in denials if each is not None), None)
        return refused

    def _warn(self, tool: ToolImplementation, asked: str) -> None:
        if asked != tool.name:
            self.shared.warn(tool.name, asked, f"{asked} is an old name of {tool.name}")
        if tool.spec.deprecated:
            self.shared.warn(tool.name, tool.name, f"{tool.name} is deprecated: {tool.spec.deprecated}")

    def gate(self, tool: ToolImplementation) -> Gate:
        """Return the checks and observers of a tool."""
        gates = self._gates
        gate = gates.get(tool.name)
        if gate is None or gate.tool is not tool:
            from neuroscript.calls.gate import Gate

            kind: type[Gate] = Gate
            if self.tracks_flow:
                from neuroscript.calls.flow_pipeline import FlowGate

                kind = FlowGate
            origin = self.shared.registry.origins.get(tool.name, HOST)
            gate = gates[tool.name] = kind(tool, origin, self.policy, self.shared.watch)
        return gate

    def refused(self, frame: CallFrame, error: CallError, values: tuple[Any, ...] | None = None) -> CallError:
        """Report that the call of *frame* was refused, and return *error*."""
        if not (self.shared.is_watched or isinstance(error, (PolicyError, LimitError))):
            return error
        told: Observers | Gate = self.shared.watch
        with suppress(KeyError, PluginError):
            told = self.gate(implementation(self.shared.registry.tools[frame.tool]))
        return told.refused(frame, error, values)

    @property
    def infos(self) -> Mapping[str, ToolInfo]:
        """The tools that may be called, by canonical name, without their functions."""
        registry, infos = self._infos
        if registry is not self.shared.registry:
            registry = self.shared.registry
            known: dict[str, ToolInfo] = {}
            for name in sorted(self._permitted()):
                tool = registry.tools[name]
                with suppress(PluginError):  # it is in plugin_errors
                    known[name] = ToolInfo(tool.spec, tool.policy, registry.origins[name])
            infos = MappingProxyType(known)
            self._infos = registry, infos
        return infos


class SessionTool:
    """A tool as one session calls it.

    Attributes:
        pipeline: Its pipeline.
        frame: The frame of its calls from outside.
    """

    def __init__(self, entry: BoundTool, frame: CallFrame) -> None:
        self.pipeline = entry.pipeline
        self.frame = frame
        self._entry = entry
        self._functions: dict[bool, CompiledCall] = {}

    @cached_property
    def bind(self) -> Callable[[object], tuple[Any, ...]]:
        """Returns the exact values of arguments by name, without calling the tool."""
        return compile_binder(self.pipeline.tool.spec, self.pipeline.coercion)

    @cached_property
    def exact(self) -> CompiledCall:
        """Runs the pipeline for arguments by name, or returns `UNDECIDED` if they need repairs."""
        return self._entry.exact_function(self.frame)

    def function(self, by_name: bool) -> CompiledCall:
        """Return the pipeline as a function of arguments in order, or by name."""
        function = self._functions.get(by_name)
        if function is None:
            function = self._functions[by_name] = self._entry.function(by_name, self.frame)
        return function


@attrs.frozen(eq=False, repr=False)
class NameCache:
    """A session's cache of the tools of one snapshot; when the tools change, the session starts a new one.

    A call that still writes into an old cache does no harm.

    Attributes:
        moment: The tools.
        known: Each tool as this session calls it, by the spellings that were used.
        positional: Their lines, for arguments in order.
        named: Their lines, for arguments by name.
        sent: Each tool by the spellings that models used.
    """

    moment: ToolsSnapshot
    known: dict[str, SessionTool] = attrs.field(factory=dict)
    positional: dict[str, CompiledCall] = attrs.field(factory=dict)
    named: dict[str, CompiledCall] = attrs.field(factory=dict)
    sent: dict[str, SessionTool] = attrs.field(factory=dict)
