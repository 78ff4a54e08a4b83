"""Isolation of tools: which ones run in worker processes, and what these processes may use."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Final, Literal

import attrs

from neuroscript.coercion.parameters import FLAG, SECONDS, STRING, STRINGS, Form, field_problems, optional, require
from neuroscript.errors import SpecError
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical
from neuroscript.policy.scopes import Covers, InvalidScope, covers, key_of, tool_matcher
from neuroscript.policy.tool_policy import as_names, pattern_problems, unique_values

LAYERS: Final = ("landlock", "seccomp", "pidns", "netns", "ipcns", "mountns", "userns", "capabilities", "rlimits")
"""What a worker can be confined by, for `Isolation.require`."""

MAX_COUNT: Final = 2**63 - 1
"""The largest resource limit that a system accepts."""

COUNT: Final = Form(
    "a positive integer",
    lambda value: type(value) is int,
    lambda value: 0 < value <= MAX_COUNT,
    rule="a positive integer of at most 63 bits",
)

TOOL_PATTERNS: Final = ("tools", "exclude", "network")
"""The fields of `Isolation` that contain patterns of tools."""

SEPARATORS: Final = re.compile(r"[-_.]+")
"""Characters that are equal in the names of distributions, see PEP 503."""

PARENTS: Final = re.compile(r"\A(\.\./)+")
"""The start of a path that leads to a parent directory."""


@attrs.frozen(kw_only=True)
class Isolation:
    """Which tools run in worker processes, and what these processes may use.

    Attributes:
        tools: Patterns of tools whose function runs in a worker process.
        exclude: Patterns of tools that run in the process of the host although *tools* matches them. They have no
            effect on *plugins*.
        plugins: Patterns of distributions, entry points and plugin files. The host never imports their code, and all
            their tools are isolated. ``*`` also matches ``/``. A path that does not start with ``/`` may start at any
            directory, so ``acme.py`` matches every file with this name.
        reuse: Whether a worker runs several calls; False starts a new worker for each call.
        network: Patterns of isolated tools whose workers keep the network. The kernel can restrict ports, not hosts.
        require: Layers of `LAYERS` without which no worker is started.
        workers: Maximum number of workers of an engine.
        idle_seconds: Seconds after which an idle worker ends.
        max_calls: Number of calls after which a worker is replaced.
        memory_bytes: Maximum size of the address space of a worker in bytes.
        cpu_seconds: Maximum processor time of a worker in seconds; None means no limit.
        open_files: Maximum number of open files of a worker.
        start_seconds: Maximum number of seconds to wait for a free worker, and to start one, including the import of
            the toolset.
        programs: Whether the programs that tools of the host start, such as those of ``shell.execute``, are confined
            like workers. *network*, *require* and the limits of memory, time and files apply to them too.

    Raises:
        SpecError: If a field is invalid. The error lists every problem.

    >>> isolation = Isolation(tools=("acme.*",), plugins=("weather-tools", "plugins/*.py"))
    >>> isolation.isolates("acme.search", "acme 1.0"), isolation.isolates_import("acme 1.0")
    (True, False)
    >>> isolation.isolates("math.add", "./plugins/math.py"), isolation.isolates_import("Weather_Tools 2.1")
    (True, True)
    """

    tools: tuple[str, ...] = attrs.field(default=(), converter=as_names)
    exclude: tuple[str, ...] = attrs.field(default=(), converter=as_names)
    plugins: tuple[str, ...] = attrs.field(default=(), converter=as_names)
    reuse: bool = True
    network: tuple[str, ...] = attrs.field(default=(), converter=as_names)
    require: tuple[str, ...] = attrs.field(default=(), converter=as_names)
    workers: int = 8
    idle_seconds: float = 60
    max_calls: int = 1000
    memory_bytes: int = 1024**3
    cpu_seconds: int | None = None
    open_files: int = 256
    start_seconds: float = 30
    programs: bool = False
    _matchers: dict[str, tuple[Covers, ...]] = attrs.field(init=False, eq=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        faults = [fault for field in TOOL_PATTERNS for fault in pattern_problems(self, field, "acme.*")]
        faults += (*_plugin_faults(self), *_layer_faults(self))
        faults.extend(
            field_problems(
                self,
                reuse=FLAG,
                workers=COUNT,
                idle_seconds=SECONDS,
                max_calls=COUNT,
                memory_bytes=COUNT,
                cpu_seconds=optional(COUNT),
                open_files=COUNT,
                start_seconds=SECONDS,
                programs=FLAG,
            )
        )
        if faults:
            raise SpecError("isolation", faults)
        for field in TOOL_PATTERNS:
            self._matchers[field] = tuple(map(tool_matcher, getattr(self, field)))
        self._matchers["plugins"] = tuple(matcher for pattern in self.plugins for matcher in _origin_matchers(pattern))

    def isolates(self, tool: str, origin: str, entry: str = "", old: Collection[str] = ()) -> bool:
        """Return whether the function of a tool runs in a worker process.

        Args:
            tool: Its name.
            origin: The distribution or the file that provides it.
            entry: The name of the entry point that provides it, or ``""``.
            old: Its former names; a tool that was isolated by one of them stays isolated.
        """
        if type(tool) is not str or not STRINGS.holds(old):
            require("isolation", tool=(tool, STRING), old=(old, STRINGS))
        return self._isolates_function(canonical(tool), old) or self.isolates_import(origin, entry)

    def _isolates_function(self, tool: str, old: Collection[str]) -> bool:
        """Return whether a pattern isolates a tool that is not excluded.

        If the pattern matches former names alone, then these have to be excluded. Otherwise a tool could leave its
        process by taking a name that is excluded.
        """
        for matches in self._matchers["tools"]:
            named = [tool] if matches(tool) else [each for each in map(canonical, old) if matches(each)]
            if not all(self._matches("exclude", each) for each in named):
                return True
        return False

    def isolates_import(self, origin: str, entry: str = "") -> bool:
        """Return whether the host never imports the code of a distribution or a file.

        Args:
            origin: The distribution, as a name and a version, or the path of the file.
            entry: The name of an entry point of the distribution, or ``""``.
        """
        if type(origin) is not str or type(entry) is not str:
            require("isolation", origin=(origin, STRING), entry=(entry, STRING))
        return bool(self.plugins) and any(self._matches("plugins", name) for name in _names_of(origin, entry))

    def keeps_network(self, tool: str) -> bool:
        """Return whether the worker of a tool keeps the network, if the tool is isolated."""
        if type(tool) is not str:
            require("isolation", tool=(tool, STRING))
        return self._matches("network", canonical(tool))

    def _matches(self, field: str, name: str) -> bool:
        return any(matches(name) for matches in self._matchers[field])


@attrs.frozen(kw_only=True)
class IsolationOf:
    """How one tool is isolated under a policy: the strictest settings of the layers that isolate it.

    Attributes:
        isolates_import: Whether the host never imports its code.
        keeps_network: Whether its workers keep the network.
        reuse: As in `Isolation`, like the other attributes.
    """

    isolates_import: bool
    keeps_network: bool
    reuse: bool
    require: tuple[str, ...]
    workers: int
    idle_seconds: float
    max_calls: int
    memory_bytes: int
    cpu_seconds: int | None
    open_files: int
    start_seconds: float

    @property
    def part(self) -> Literal["import", "function"]:
        """What of the tool is isolated: the import of its code too, or its function alone."""
        return "import" if self.isolates_import else "function"


def strictest(
    layers: Sequence[Isolation], tool: str, origin: str, entry: str = "", old: Sequence[str] = ()
) -> IsolationOf | None:
    """Return how a tool is isolated, or None if no layer isolates it.

    Args:
        tool: Its name.
        origin: The distribution or the file that provides it.
        entry: The name of the entry point that provides it, or ``""``.
        old: Its former names; a tool that was isolated by one of them stays isolated.
    """
    found = [layer for layer in layers if layer.isolates(tool, origin, entry, old)]
    if not found:
        return None
    return _combined(found, tool, isolates_import=any(each.isolates_import(origin, entry) for each in found))


def strictest_for_programs(layers: Sequence[Isolation], tool: str) -> IsolationOf | None:
    """Return how the programs of a tool in the host's process are confined, or None if no layer confines them."""
    found = [layer for layer in layers if layer.programs]
    return _combined(found, tool, isolates_import=False) if found else None


def _combined(found: Sequence[Isolation], tool: str, *, isolates_import: bool) -> IsolationOf:
    named = {layer for each in found for layer in each.require}
    return IsolationOf(
        isolates_import=isolates_import,
        keeps_network=all(each.keeps_network(tool) for each in found),
        reuse=all(each.reuse for each in found),
        require=tuple(layer for layer in LAYERS if layer in named),
        workers=min(each.workers for each in found),
        idle_seconds=min(each.idle_seconds for each in found),
        max_calls=min(each.max_calls for each in found),
        memory_bytes=min(each.memory_bytes for each in found),
        cpu_seconds=min((each.cpu_seconds for each in found if each.cpu_seconds is not None), default=None),
        open_files=min(each.open_files for each in found),
        start_seconds=min(each.start_seconds for each in found),
    )


def _names_of(origin: str, entry: str) -> Iterator[str]:
    """Yield the names by which a pattern can match an origin, in lower case."""
    name = origin.rpartition(" ")[0] or origin  # without the version, or the number of a plugin that is loaded twice
    yield from (each.lower() for each in (origin, SEPARATORS.sub("-", name), entry))
    with suppress(OSError):  # the working directory may have been deleted
        yield from (os.path.abspath(each).replace(os.sep, "/").lower() for each in (origin, name))  # noqa: PTH100


def _origin_matchers(pattern: str) -> Iterator[Covers]:
    """Yield matchers of a pattern as written, as the name of a distribution, and as a path below any directory.

    Raises:
        InvalidScope: The pattern is invalid.
    """
    path = posixpath.normpath(pattern)
    path = path if path.startswith("/") else f"*/{PARENTS.sub('', path)}"
    for each in (pattern, SEPARATORS.sub("-", pattern), path):
        yield covers("plugin", key_of("plugin", each))


def _plugin_faults(isolation: Isolation) -> Iterator[str]:
    if not STRINGS.holds(isolation.plugins):
        yield from STRINGS.problems("plugins", isolation.plugins)
        return
    patterns = unique_values(isolation.plugins)
    object.__setattr__(isolation, "plugins", patterns)
    for pattern in patterns:
        reason = "use a distribution, an entry point, or a path such as plugins/*.py"
        try:
            is_valid = [*_origin_matchers(pattern)] and pattern and not pattern.startswith("~")
        except InvalidScope as error:
            is_valid, reason = False, str(error)
        if not is_valid:
            yield f"plugins: {quote_untrusted(pattern) or 'an empty string'} is not a valid pattern; {reason}"


def _layer_faults(isolation: Isolation) -> Iterator[str]:
    if not STRINGS.holds(isolation.require):
        yield from STRINGS.problems("require", isolation.require)
        return
    names = unique_values(isolation.require)
    object.__setattr__(isolation, "require", names)
    for name in names:
        if name not in LAYERS:
            hint = did_you_mean(name, LAYERS) or f"; the layers are {', '.join(LAYERS)}"
            yield f"require: {quote_untrusted(name)} is not a layer{hint}"
