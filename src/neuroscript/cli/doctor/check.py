"""The finding of one check, without values of environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final, Literal

import attrs

from neuroscript.io.text import quote_path

State = Literal["ok", "optional", "warning", "broken"]

DIRECTORIES: Final = (
    *("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TEMP", "VIRTUAL_ENV"),
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"),
)
"""Variables with directories; in paths, their names replace their values."""

MIN_VALUE_CHARS: Final = 2
"""Minimum characters of a replaced value, because ``/`` occurs in every path."""


@attrs.frozen
class Finding:
    """The finding of one check.

    Attributes:
        subject: The checked part.
        state: ``optional`` is not set up, which may be intended; ``warning`` works with restrictions; ``broken`` is
            in use and does not work.
        text: The details.
        fix: The command that fixes it, or ``""``.
    """

    subject: str
    state: State
    text: str
    fix: str = ""


def with_variable_names(finding: Finding) -> Finding:
    """Return a finding in which names of variables replace their directories."""
    return attrs.evolve(
        finding,
        subject=_with_variables(finding.subject),
        text=_with_variables(finding.text),
        fix=_with_variables(finding.fix),
    )


def place(path: str | os.PathLike[str]) -> str:
    """Return a path for display."""
    return quote_path(_with_variables(os.fspath(path)))


def word(path: str | os.PathLike[str]) -> str:
    """Return a path quoted for a shell, so that variables in it are still expanded."""
    text = re.sub(r'(["\\$`])', r"\\\1", os.fspath(path))
    return text if re.fullmatch(r"[\w./:@+-]+", text) else f'"{text}"'


def _with_variables(text: str) -> str:
    for name, value in _directories():
        text = re.sub(rf"(?<![\w.-]){re.escape(value)}(?![\w.-])", f"${name}", text)
    return text


def _directories() -> Iterator[tuple[str, str]]:
    """Yield the variables that are set, the longest value first."""
    found = [(name, os.environ.get(name, "").rstrip("/\\")) for name in DIRECTORIES]
    yield from sorted((each for each in found if len(each[1]) >= MIN_VALUE_CHARS), key=lambda each: -len(each[1]))
