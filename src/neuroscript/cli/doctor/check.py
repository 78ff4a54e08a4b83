"""What a look at one thing finds, said without any value of the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final, Literal

import attrs

from neuroscript.io.text import shown_path

State = Literal["ok", "optional", "warning", "broken"]

DIRECTORIES: Final = (
    *("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TEMP", "VIRTUAL_ENV"),
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"),
)
"""Variables whose values are directories in which others lie; in a path their names stand for them."""

SHORTEST: Final = 2
"""How many characters such a value has at least: ``/`` would be found everywhere."""


@attrs.frozen
class Look:
    """What was found.

    Attributes:
        subject: What was looked at.
        state: ``optional`` is not set up, and may well not be wanted; ``warning`` works, but not as one may expect;
            ``broken`` was chosen and does not work.
        text: What there is to say of it.
        mend: The line that mends it, where there is one.
    """

    subject: str
    state: State
    text: str
    mend: str = ""


def discreet(look: Look) -> Look:
    """Return a look in which the names of variables stand for the directories that they hold."""
    return attrs.evolve(look, subject=_named(look.subject), text=_named(look.text), mend=_named(look.mend))


def place(path: str | os.PathLike[str]) -> str:
    """Return a path as it is shown."""
    return shown_path(_named(os.fspath(path)))


def word(path: str | os.PathLike[str]) -> str:
    """Return a path as a word for a shell, in which the names of variables stand for what they hold."""
    text = re.sub(r'(["\\$`])', r"\\\1", os.fspath(path))
    return text if re.fullmatch(r"[\w./:@+-]+", text) else f'"{text}"'


def _named(text: str) -> str:
    for name, value in _directories():
        text = re.sub(rf"(?<![\w.-]){re.escape(value)}(?![\w.-])", f"${name}", text)
    return text


def _directories() -> Iterator[tuple[str, str]]:
    """Yield those variables that are set, the longest value first."""
    found = [(name, os.environ.get(name, "").rstrip("/\\")) for name in DIRECTORIES]
    yield from sorted((each for each in found if len(each[1]) >= SHORTEST), key=lambda each: -len(each[1]))
