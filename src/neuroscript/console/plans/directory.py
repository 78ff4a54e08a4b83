"""The directory with plan files and traces: only its own regular files, of a bounded size and number.

A file is found by its name. A name with a directory, a hidden name and a link that leaves the directory are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import attrs
from starlette.requests import Request

from neuroscript.console.routing import console_of
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.io.text_files import read_text_file
from neuroscript.workflow.plan.file import plan_of_json, plan_of_toml, problem_lines
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.trace.file import save_trace, trace_of_json
from neuroscript.workflow.trace.trace import Trace

MAX_PLAN_BYTES: Final = 1024 * 1024
"""Maximum size of a plan that is shown, in bytes."""

MAX_LISTED_BYTES: Final = 64 * 1024
"""Maximum size of a plan that a list reads, in bytes; of a larger one it shows only the name."""

MAX_TRACE_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a trace that is shown, in bytes."""

MAX_FILES: Final = 2_000
"""Maximum number of files that are listed."""

TRACE: Final = re.compile(r'\s*\{\s*"trace"\s*:')
"""The beginning of a trace, which distinguishes it from a plan in JSON."""

HEAD_BYTES: Final = 200
"""Number of bytes that are read to find out what a file contains."""

OTHERS: Final = re.compile(r"[^A-Za-z0-9_-]+")
"""Characters that the name of a new file does not have."""

Kind = Literal["plan", "trace"]


@attrs.frozen
class StoredFile:
    """A file of the directory.

    Attributes:
        name: Its name, without a directory.
        kind: Whether it contains a plan or a trace.
        size: In bytes.
        changed: When it was changed, in seconds since 1970.
    """

    name: str
    kind: Kind
    size: int
    changed: float


@attrs.frozen
class PlanSource:
    """The content of a plan file.

    Attributes:
        name: The name of the file.
        text: Its text.
        plan: The plan, or None if the text is not a valid one.
        error: Why it is invalid, or None.
    """

    name: str
    text: str
    plan: Plan | None
    error: SpecError | None = None

    @property
    def problems(self) -> tuple[tuple[int, str], ...]:
        """The line and the text of each problem of an invalid plan."""
        if self.error is None:
            return ()
        lines = self.error.lines or (1,) * len(self.error.problems)
        return tuple(zip(lines, self.error.problems, strict=False))

    def located(self, problems: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
        """Return the line and the text of each problem of `check`; JSON has no lines, so they are 1."""
        lines = problem_lines(self.text, problems) if not self.name.lower().endswith(".json") else (1,) * len(problems)
        return tuple(zip(lines, problems, strict=True))


@attrs.frozen
class PlanDirectory:
    """A directory with plan files and traces."""

    path: Path

    def files(self, kind: Kind) -> list[StoredFile]:
        """Return the files of a kind: plans sorted by name, traces with the newest first."""
        found = [file for file in self._files() if file.kind == kind]
        return sorted(found, key=lambda file: file.name if kind == "plan" else (-file.changed, file.name))

    def _files(self) -> Iterator[StoredFile]:
        try:
            names = sorted(each.name for each in self.path.iterdir() if _is_named_as_ours(each.name))
        except OSError:
            return
        for name in names[:MAX_FILES]:
            path = self.find(name)
            if path is None:
                continue
            try:
                status = path.stat()
                kind: Kind = "trace" if _is_trace(path) else "plan"
            except OSError:
                continue
            yield StoredFile(name, kind, status.st_size, status.st_mtime)

    def find(self, name: str) -> Path | None:
        """Return the real path of a regular file of the directory, or None."""
        if not _is_named_as_ours(name) or name != Path(name).name or "\0" in name or "\\" in name:
            return None
        try:
            root, path = self.path.resolve(strict=True), (self.path / name).resolve(strict=True)
            return path if path.is_relative_to(root) and path.is_file() else None
        except (OSError, RuntimeError, ValueError):
            return None

    def plan(self, name: str) -> PlanSource | None:
        """Return a plan file, valid or not, or None if no file has this name."""
        path = self.find(name)
        if path is None:
            return None
        try:
            text = read_text_file(path, quote_untrusted(name), MAX_PLAN_BYTES)
        except SpecError as error:
            return PlanSource(name, "", None, error)
        try:
            read = plan_of_json if name.lower().endswith(".json") else plan_of_toml
            return PlanSource(name, text, read(text, source=name))
        except SpecError as error:
            return PlanSource(name, text, None, error)

    def trace(self, name: str) -> Trace | None:
        """Return the trace in a file, or None if there is no file with this name.

        Raises:
            SpecError: It is not a valid trace, or it is too large.
        """
        path = self.find(name)
        if path is None:
            return None
        text = read_text_file(path, quote_untrusted(name), MAX_TRACE_BYTES)
        return trace_of_json(text, source=quote_untrusted(name))

    def save(self, trace: Trace) -> str:
        """Write a trace to a new file named after its plan and its run, and return the name.

        Raises:
            OSError: It cannot be written.
        """
        name = trace_file_name(trace)
        save_trace(trace, self.path / name)
        return name


def trace_file_name(trace: Trace) -> str:
    """Return a name for the file of a trace, of its plan and its run; it consists of harmless characters."""
    plan = OTHERS.sub("-", trace.plan).strip("-")[:60] or "plan"
    return f"{plan}.{OTHERS.sub('-', trace.run)[:64]}.trace.json"


def directory_of(request: Request) -> PlanDirectory | None:
    """Return the directory of the console that a request is for, or None if it has none."""
    path = console_of(request).settings.plans
    return None if path is None else PlanDirectory(path)


def _is_named_as_ours(name: str) -> bool:
    return name.lower().endswith((".toml", ".json")) and not name.startswith(".")


def _is_trace(path: Path) -> bool:
    if path.suffix.lower() != ".json":
        return False
    with path.open("rb") as file:
        return TRACE.match(file.read(HEAD_BYTES).decode("utf-8-sig", "replace")) is not None
