"""Plugins whose code the host does not import: confined processes import them, and report which tools they contain.

The reports are not trusted: their size and form are checked, and every definition is built again from plain data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from time import monotonic, time_ns
from typing import Any, Final

import attrs

from neuroscript.discovery.installed import Distribution
from neuroscript.discovery.lazy_tools import NOT_IMPORTED, Deferred
from neuroscript.discovery.local_plugins import NO_SOURCE, LoadedPlugin
from neuroscript.discovery.module_loader import Code, NoSource, read
from neuroscript.discovery.package_index import IndexedEntry, entries_of, parse_entry
from neuroscript.discovery.probe import Report, slowness
from neuroscript.errors import PluginError, SpecError, ToolFailed, shorten_text
from neuroscript.io.text import NotJSON, parse_json, quote_path
from neuroscript.isolation.frames import ProtocolError
from neuroscript.isolation.pool import Pool, WorkerRules
from neuroscript.isolation.tool_source import ToolSource, package_paths, source_of_code
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.policy.isolation import IsolationOf
from neuroscript.tools.fingerprints import fingerprint

MAX_REPORT_CHARS: Final = 16 * 1024 * 1024
"""Maximum length of a report."""

MAX_REPORT_VALUES: Final = 1_000_000
"""Maximum number of values in a report."""

CODE: Final = re.compile(r"plugin\.[a-z_]{1,40}")
"""The codes of errors that a process may report."""

INVALID: Final = "the process that imported it sent an invalid report"


class ConfinedImports:
    """Imports plugins in confined processes, as a policy says.

    Args:
        pool: Returns the pool that starts the processes; it is called when there is something to import.
    """

    def __init__(self, policy: ExecutionPolicy, pool: Callable[[], Pool]) -> None:
        self._policy = policy
        self._pool = pool

    # Distributions

    def of_entry(self, distribution: Distribution, name: str) -> IsolationOf | None:
        """Return the settings of the workers that import an entry point, or None if the host imports it."""
        return self._settings(str(distribution), name)

    def isolated(self, distribution: Distribution) -> tuple[str, ...]:
        """Return the names of the entry points of a distribution that the policy isolates."""
        names = (each.name for each in distribution.entry_points)
        return tuple(name for name in names if self.of_entry(distribution, name) is not None)

    def reports(self, found: Sequence[Distribution]) -> Iterator[Report]:
        """Yield a report of each distribution, which a confined process imports."""
        for each in found:
            settings = (self.of_entry(each, point.name) for point in each.entry_points)
            yield self._report(each, next(filter(None, settings)))

    def _report(self, distribution: Distribution, settings: IsolationOf) -> Report:
        modules = dict.fromkeys(point.module for point in distribution.entry_points if point.module)
        paths = tuple(dict.fromkeys(path for module in modules for path in package_paths(module)))
        data = (*distribution[:4], tuple(map(tuple, distribution.entry_points)))
        source = ToolSource("entry", str(distribution), data, paths)
        began, start = time_ns(), monotonic()
        try:
            entries = entries_of(self._described(source, settings), distribution)
            if entries is None:
                raise PluginError("", INVALID, code="plugin.index")
        except PluginError as error:
            return Report(distribution, roots=paths, code=error.code, reason=error.reason, began=began)
        seconds = round(monotonic() - start, 3)
        return Report(distribution, entries, paths, seconds, *slowness(seconds), began)

    # Files

    def of_file(self, path: str | os.PathLike[str]) -> IsolationOf | None:
        """Return the settings of the workers that import a plugin file or package, or None if the host imports it."""
        return self._settings(os.fspath(path), "")

    def plugin(self, path: str | os.PathLike[str], origin: str, settings: IsolationOf) -> LoadedPlugin:
        """Return the tools of a plugin file or package, which a confined process imports.

        Raises:
            PluginError: It cannot be imported there, or the report of the process is not valid.
        """
        try:
            code = read(path)
            entry = parse_entry(self._described(source_of_code(code), settings))
            if entry is None:
                raise PluginError("", INVALID, code="plugin.index")
            tools = tuple(_tools(IsolatedFile(origin, code, entry, settings)))
        except NoSource:
            raise PluginError(quote_path(origin), NO_SOURCE) from None
        except PluginError as error:
            raise PluginError(quote_path(origin), error.reason, code=error.code) from None
        return LoadedPlugin(path, origin, tools, entry.aliases, code, settings)

    # Processes

    def _settings(self, origin: str, entry: str) -> IsolationOf | None:
        """Return the settings of workers for a plugin, or None if no layer isolates its import."""
        found = self._policy.isolation_of("", origin, entry)
        return found if found is not None and found.isolates_import else None

    def _described(self, source: ToolSource, settings: IsolationOf) -> Any:
        """Return what a confined process reports about a source, as data of unknown form.

        Raises:
            PluginError: It cannot be imported, or there is no report.
        """
        rules = WorkerRules(
            source,
            loads_confined=True,
            reuse=False,
            memory_bytes=settings.memory_bytes,
            cpu_seconds=settings.cpu_seconds,
            open_files=settings.open_files,
            require=tuple(settings.require),
        )
        try:
            message = self._pool().describe(rules, settings)
        except ToolFailed as error:
            raise PluginError("", f"cannot be imported, because {error.text}", code="plugin.process") from None
        except TimeoutError:
            text = f"was not imported within {settings.start_seconds:g} seconds"
            raise PluginError("", text, code="plugin.timeout") from None
        except EOFError as error:
            how = f" ({error})" if str(error) else ""
            raise PluginError("", f"ended its process while it was imported{how}", code="plugin.exit") from None
        except ProtocolError:
            raise PluginError("", INVALID, code="plugin.index") from None
        return _data(message)


def _data(message: list[Any]) -> Any:
    """Return the data in a report, or raise the error in it."""
    match message:
        case ["described", "", "", str(text)] if len(text) <= MAX_REPORT_CHARS:
            try:
                return parse_json(text, MAX_REPORT_VALUES)
            except NotJSON:
                pass
        case ["described", str(code), str(reason), ""] if CODE.fullmatch(code):
            raise PluginError("", shorten_text(reason) or INVALID, code=code)
    raise PluginError("", INVALID, code="plugin.index")


@attrs.frozen(eq=False, repr=False)
class IsolatedFile:
    """A plugin file or package that only workers import.

    Attributes:
        origin: Its name.
        code: The snapshot of its sources, a `module_loader.Code`; it is never executed here.
        entry: The index of its tools.
        isolation: The settings of the workers that import it.
    """

    origin: str
    code: Code
    entry: IndexedEntry
    isolation: IsolationOf
    is_pinned: bool = attrs.field(init=False, default=False)

    def tool(self, name: str) -> Any:
        """Raise the error that says that this process has no function of its tools."""
        raise PluginError(quote_path(self.origin), NOT_IMPORTED, code="plugin.isolated")

    def stale(self, name: str) -> PluginError:
        """Return the error for a definition that is not valid."""
        return PluginError(quote_path(self.origin), f"{INVALID}: {name}", code="plugin.index")


def _tools(file: IsolatedFile) -> Iterator[Deferred]:
    """Yield the tools of a plugin, each built and compared with its fingerprint.

    Raises:
        PluginError: A definition is not valid.
    """
    for indexed in file.entry.tools:
        tool = Deferred(file, indexed)
        try:
            is_same = fingerprint(tool.implementation) == tool.fingerprint
        except SpecError:
            is_same = False
        if not is_same:
            raise file.stale(tool.name)
        yield tool
    unknown = [name for name in file.entry.aliases.values() if name not in {tool.name for tool in file.entry.tools}]
    if unknown:
        raise file.stale(unknown[0])
