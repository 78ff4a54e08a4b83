"""What was found, and the codes by which it is known.

Source: issue "Plugins", the publisher's kit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

CODES: Final[Mapping[str, str]] = {
    "lint.syntax": "A file can not be read as Python.",
    "lint.name": "The name of a tool, a group or a toolset is none that can be called.",
    "lint.description": "A tool is not described in a sentence.",
    "lint.argument": "An argument is not described, or something is that is no argument.",
    "lint.annotation": "A parameter or a result has no annotation, or one that names no ArgType.",
    "lint.parameter": "The function can not be called as the tool is: `rt` first, then the arguments, by position.",
    "lint.default": "A default can be changed, and then is another one for the next call.",
    "lint.print": "A tool talks to the terminal past its Runtime.",
    "lint.outside": "A tool reaches files, programs, the network or the environment with no need that says so.",
    "lint.import-effect": "Importing the module does something.",
    "lint.swallow": "An error is swallowed, and with it a refusal.",
    "lint.submodule": "Something is imported from within neuroscript; only its root keeps its names.",
    "lint.engine": "A tool imports the engine.",
    "lint.project": "`pyproject.toml` can not be read, or does not depend on neuroscript.",
    "lint.entry-point": "An entry point names what is not there, or there is none.",
    "lint.group": "A group belongs to a distribution of this project.",
    "lint.typed": "A package does not say that it is typed.",
}
"""Every code, and what it means."""


@attrs.frozen(order=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        file: Where, as the path was given.
        line: In which line, from 1; 0 where it is the file as a whole.
        code: One of `CODES`.
        sentence: What is wrong, and what to write instead.
    """

    file: str
    line: int
    code: str
    sentence: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.code} {self.sentence}"
