"""The tools of an engine, by any spelling of their names: each with its line, and what the line may count on.

Source: contract section 2.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any
from weakref import WeakSet

from neuroscript.binding import bound
from neuroscript.display import shown
from neuroscript.errors import ToolNotFound
from neuroscript.frames import CallFrame
from neuroscript.host import Host
from neuroscript.lent import CallRuntime
from neuroscript.line import Compiled, Line
from neuroscript.names import canonical, near
from neuroscript.policy import ExecutionPolicy
from neuroscript.registry import Registry
from neuroscript.running import drive
from neuroscript.runtime import ToolInfo
from neuroscript.threads import Threads
from neuroscript.tools import ToolImplementation
from neuroscript.walk import Coercion, type_name


class Entry:
    """A tool that may be called: its line, and the line as a function, which is compiled when it is first wanted."""

    def __init__(self, line: Line, threads: Threads) -> None:
        self.line = line
        self._threads = threads
        self._makers: dict[bool, Callable[[CallFrame], Compiled]] = {}

    def function(self, by_name: bool, root: CallFrame) -> Compiled:
        """Return the line as a function of arguments in order, or by name.

        Args:
            root: Where its calls from outside stand.
        """
        maker = self._makers.get(by_name)
        if maker is None:
            careful = self._careful(by_name)
            direct = self.line.is_direct
            maker = self._makers[by_name] = (
                self.line.compiled(careful, by_name) if direct else partial(_from_outside, careful)
            )
        return maker(root)

    def _careful(self, by_name: bool) -> Compiled:
        """Return the way through the steps, as a function of the same form as a compiled line."""
        line, threads = self.line, self._threads
        spec, coercion = line.tool.spec, line.coercion

        def careful(given: object, frame: CallFrame) -> Any:
            return drive(line.steps(bound(spec, coercion, given, by_name=by_name), frame), threads)

        return careful


def _from_outside(careful: Compiled, root: CallFrame) -> Compiled:
    def line(given: object, frame: CallFrame = root) -> Any:
        return careful(given, frame)

    return line


class Entries:
    """What all sessions of one engine share.

    Attributes:
        host: What the host lends.
        policy: What the host permits.
        registry: All tools, at this moment.
        threads: The threads of the engine.
        sessions: The sessions that somebody still holds.
        running: The calls that are carried out in steps.
        is_closed: Whether no further call begins.
        is_over: Whether calls that have not ended are left behind.
    """

    def __init__(self, host: Host, policy: ExecutionPolicy, coercion: Coercion) -> None:
        self.host = host
        self.policy = policy
        self.registry = Registry()
        self.threads = Threads()
        self.sessions: WeakSet[Any] = WeakSet()
        self.running: set[CallFrame] = set()
        self.is_closed = False
        self.is_over = False
        self._coercion = coercion
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()
        self._sandbox: Any = None
        self._infos: tuple[Registry, Mapping[str, ToolInfo]] = (self.registry, MappingProxyType({}))
        if host.sandbox_dir is not None:
            self._sandbox = self._opened()

    @property
    def count(self) -> int:
        """How many tools there are."""
        return len(self.registry.tools)

    def register(self, added: tuple[ToolImplementation, ...], origin: str) -> None:
        """Add tools: all of them, or a `RegistryError` and none."""
        with self._lock:
            self.registry = self.registry.with_tools(added, origin)

    def of(self, spelling: str | None, name: object) -> Entry:
        """Return the tool that a spelling means, if it may be called.

        Args:
            spelling: The name as a text, or None where *name* is none.

        Raises:
            ToolNotFound: There is none, or the host does not permit any of that name.
            PolicyError: It needs what the host does not give.
        """
        if spelling is None:
            raise ToolNotFound(f"<{type_name(name)}>")
        tools = self.registry.tools
        tool = tools.get(canonical(spelling))
        if tool is None:
            raise ToolNotFound(shown(spelling), near(spelling, self.infos))
        refused = self.policy.verdict(tool.name, tool.policy)
        if refused is not None:
            raise refused
        entry = self._entries.get(tool.name)
        if entry is None:
            entry = self._entries.setdefault(
                tool.name, Entry(Line(tool, self._coercion, self.policy, CallRuntime), self.threads)
            )
        return entry

    @property
    def infos(self) -> Mapping[str, ToolInfo]:
        """The tools that may be called, by canonical name, without their functions."""
        registry, infos = self._infos
        if registry is not self.registry:
            registry = self.registry
            infos = MappingProxyType(
                {
                    name: ToolInfo(tool.spec, tool.policy, registry.origins[name])
                    for name, tool in sorted(registry.tools.items())
                    if self.policy.verdict(name, tool.policy) is None
                }
            )
            self._infos = registry, infos
        return infos

    @property
    def sandbox(self) -> Any:
        """The sandbox; that of a host which names none is opened when it is first needed.

        Raises:
            SandboxError: It can not be used.
        """
        if self._sandbox is None:
            with self._lock:
                self._sandbox = self._sandbox or self._opened()
        return self._sandbox

    def _opened(self) -> Any:
        from neuroscript.sandbox import Sandbox

        return Sandbox(self.host.directory())

    def close(self) -> None:
        """Leave behind what still runs, stop the threads and close the sandbox."""
        self.is_closed = self.is_over = True
        self.threads.close()
        with self._lock:
            if self._sandbox is not None:
                self._sandbox.close()
