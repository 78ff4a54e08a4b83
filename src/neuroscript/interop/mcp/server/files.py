"""Files of the sandbox as resources: two tools that list and read them, and the patterns of what is served.

Both run through the pipeline like all tools: the policy must grant ``fs:read`` for what they list and read, and their
results are labelled and recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final

import attrs

from neuroscript.coercion.parameters import STRINGS, require
from neuroscript.engine.engine import Engine
from neuroscript.engine.session import Session
from neuroscript.errors import CallError, LimitError, PolicyError, SandboxError, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.capabilities import Capability
from neuroscript.policy.paths import canonical_path, relative
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import DirEntry, Runtime, ToolCall
from neuroscript.sandbox.listing import Pattern, split
from neuroscript.spec.served import Resource
from neuroscript.tools.toolset import Toolset

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of a file that is served, in bytes."""

MAX_FILES: Final = 10_000
"""Maximum number of files that are listed."""

FILE: Final = Resource("sandbox:///{+path}", title="File of the sandbox", subscribable=True)
"""The URIs of files. Paths are relative to the sandbox, so no URI shows where the sandbox is."""

LIST_NAME: Final = "resources.list_files"
READ_NAME: Final = "resources.read_file"

toolset = Toolset("resources")
"""The tools that `serve` adds to an engine whose files it serves."""


def _reading(need: str) -> ToolPolicy:
    return ToolPolicy(capabilities=(need,), effects=("reads", "idempotent"), sources=("private",), sinks=())


@toolset.resource(
    FILE.uri, title=FILE.title, subscribable=FILE.subscribable, name="read_file", policy=_reading("fs:read:{path}")
)
def read_file(rt: Runtime, path: str) -> Any:
    """Return the content of a file: a string if it is UTF-8, otherwise bytes.

    Args:
        path: The file, relative to the sandbox.

    Raises:
        LimitError: limit.fs_bytes, if the file is larger than 4 MiB.
    """
    with rt.fs.open(path, "rb") as file:  # its size may change before it is read
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise LimitError(f"the file has more than the {MAX_FILE_BYTES} bytes that are served", code="limit.fs_bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


@toolset.resource("sandbox-files:///{+directory}?pattern={pattern}", policy=_reading("fs:read:{directory}/**"))
def list_files(rt: Runtime, directory: str, pattern: str) -> list[dict[str, Any]]:
    """List the files of a directory whose paths match a pattern.

    Args:
        directory: The directory, relative to the sandbox.
        pattern: A pattern of paths below the directory, such as ``**/*.md``.

    Returns:
        The path, size in bytes and time of the last modification of each file, at most 10,000.
    """
    files = [each for each in rt.fs.glob(f"{directory}/{pattern}") if each.kind == "file"]
    return [{"path": each.path, "size": each.size, "modified": each.modified} for each in files[:MAX_FILES]]


@attrs.frozen
class ServedFiles:
    """The files that are served: those that match one of the patterns and that the policy lets clients read.

    Attributes:
        patterns: Patterns of paths relative to the sandbox, such as ``docs/**``.

    Raises:
        SpecError: With every problem of the patterns.
    """

    patterns: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        require("serve", resources=(self.patterns, STRINGS))
        faults = [f"resources: {problem}" for each in self.patterns for problem in _pattern_faults(each)]
        if faults:
            raise SpecError("serve", faults)

    def add_tools(self, engine: Engine) -> tuple[str, ...]:
        """Add the tools that list and read the files to an engine, unless it has them, and return their names."""
        if [engine.tools.get(each.name) for each in toolset] != [*toolset]:
            engine.register(toolset)
        return (READ_NAME, LIST_NAME)

    def __contains__(self, path: str) -> bool:
        try:
            names = relative(path)
        except SandboxError:
            return False
        return any(_matches(pattern, names) for pattern in self._matchers)

    @cached_property
    def _matchers(self) -> list[Pattern]:
        return [Pattern.of(relative(each)) for each in self.patterns]

    async def found(self, session: Session) -> list[dict[str, Any]]:
        """Return the facts about each file, sorted by path; a pattern that the policy does not cover lists nothing."""
        found: dict[str, dict[str, Any]] = {}
        for each in self.patterns:
            start, rest = split(relative(each))
            args = {"directory": canonical_path(start), "pattern": "/".join(rest)}
            result = await session.aexecute(ToolCall(LIST_NAME, args))
            if isinstance(result.value, list):
                found |= {file["path"]: file for file in result.value}
        return [found[path] for path in sorted(found)]

    def entries(self, session: Session) -> list[DirEntry]:
        """Return the entry of each file, to detect changes; this reads no content and makes no record."""
        files = session.sandbox.files(_may_read(session), lambda what, count: None)
        found: dict[str, DirEntry] = {}
        for each in self.patterns:
            try:
                found |= {file.path: file for file in files.glob(each) if file.kind == "file"}
            except (CallError, SandboxError):
                continue
        return [found[path] for path in sorted(found)][:MAX_FILES]


def _pattern_faults(pattern: str) -> Iterable[str]:
    try:
        if not relative(pattern):
            yield f"{quote_untrusted(pattern)} matches no file; use a pattern such as docs/**"
    except SandboxError as error:
        yield str(error)


def _matches(pattern: Pattern, names: tuple[str, ...]) -> bool:
    states = pattern.first()
    for name in names:
        states = pattern.after(states, name)
    return pattern.fits(states)


def _may_read(session: Session) -> Any:
    def may(verb: str, path: str) -> None:
        need = Capability.literal("fs", verb, path)
        if session.policy.uncovered_need([need]) is not None:
            raise PolicyError(f"needs {need}", tool=READ_NAME, code="policy.capability")

    return may
