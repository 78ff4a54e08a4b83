"""Findings of the static checks and their codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

CODES: Final[Mapping[str, str]] = {
    "lint.syntax": "A file cannot be parsed as Python.",
    "lint.name": "The name of a tool, a group or a toolset is invalid.",
    "lint.description": "A tool has no description, or the description is not a sentence.",
    "lint.argument": "An argument has no description, or a description refers to an unknown argument.",
    "lint.annotation": "A parameter or a result has no annotation, or one that is not an ArgType.",
    "lint.parameter": "The function's parameters do not match the tool: `rt` first, then the arguments, by position.",
    "lint.default": "A default is mutable, so one call can affect the next.",
    "lint.labels": "Declared sources or sinks contradict effects or capabilities.",
    "lint.no-labels": "Suggestion: declare labels, because the effects imply some, or nothing is declared.",
    "lint.print": "A tool uses the terminal directly instead of its Runtime.",
    "lint.undeclared-access": "A tool uses files, programs, the network or environment variables without a capability.",
    "lint.raw-files": "Suggestion: declare `raw_files`, because a tool opens files of the sandbox by path.",
    "lint.import-effect": "Importing the module has a side effect.",
    "lint.swallow": "An exception handler hides refusals.",
    "lint.submodule": "A submodule of neuroscript is imported; only the names of the root package are stable.",
    "lint.engine": "A tool imports the engine.",
    "lint.project": "`pyproject.toml` cannot be read, or does not depend on neuroscript.",
    "lint.entry-point": "An entry point refers to something that does not exist, or there is no entry point.",
    "lint.group": "A group belongs to a distribution of this project.",
    "lint.py-typed": "A package has no `py.typed` marker.",
}
"""Every code and its meaning."""


@attrs.frozen(order=True)
class Finding:
    """One problem in the sources.

    Attributes:
        file: The file, relative to the checked path as passed.
        line: The line, from 1, or 0 for the file as a whole.
        code: One of `CODES`.
        message: The problem, and how to fix it.
    """

    file: str
    line: int
    code: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.code} {self.message}"
