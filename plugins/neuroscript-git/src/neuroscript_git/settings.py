"""The safe settings of a repository's configuration, and the configuration file that git reads instead.

Only known, safe settings are copied. Everything that could name a program, a file or another configuration is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from neuroscript import ToolFailed
from neuroscript_git.validation import REMOTE, URL, is_ref

SWITCHES: Final = re.compile(r"core\.(?:filemode|ignorecase|precomposeunicode)")
ENDINGS: Final = {"core.autocrlf": ("true", "false", "input"), "core.eol": ("lf", "crlf", "native")}
PERSON: Final = re.compile(r"user\.(?:name|email)")
PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f<>\"\\]{1,255}")
FORMATS: Final = {"core.repositoryformatversion": ("0", "1"), "extensions.objectformat": ("sha1",)}
FIXED: Final = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tlogallrefupdates = true\n"


@attrs.frozen
class Settings:
    """The retained settings of a configuration.

    Attributes:
        plain: Settings without a subsection, such as ``user.name``.
        remotes: The URL of each remote, by name.
        tracked: The remote and the upstream branch of each branch, by name.
    """

    plain: Mapping[str, str]
    remotes: Mapping[str, str]
    tracked: Mapping[str, tuple[str, str]]

    def text(self) -> str:
        """Return the configuration file for git."""
        return "".join((FIXED, *self._lines()))

    def _lines(self) -> Iterator[str]:
        for name, value in self.plain.items():
            section, _, key = name.partition(".")
            yield f'[{section}]\n\t{key} = "{value}"\n'
        for name, url in self.remotes.items():
            yield f'[remote "{name}"]\n\turl = "{url}"\n\tfetch = "+refs/heads/*:refs/remotes/{name}/*"\n'
        for name, (remote, branch) in self.tracked.items():
            yield f'[branch "{name}"]\n\tremote = "{remote}"\n\tmerge = "refs/heads/{branch}"\n'


def parse_settings(listed: str) -> Settings:
    """Parse the output of ``git config --list -z`` and return the settings to retain.

    Raises:
        ToolFailed: git.format, if the repository cannot be read without a dropped setting.
    """
    settings = dict(_pairs(listed))
    _require_format(settings)
    plain = {name: value for name, value in settings.items() if _is_kept(name, value)}
    remotes = {name: url for name, url in _subsections(settings, "remote", "url") if _is_remote(name, url)}
    merges = dict(_subsections(settings, "branch", "merge"))
    tracked = {
        name: (remote, merges.get(name, "").removeprefix("refs/heads/"))
        for name, remote in _subsections(settings, "branch", "remote")
        if remote in remotes and is_ref(name) and '"' not in name
    }
    return Settings(
        plain, remotes, {name: each for name, each in tracked.items() if is_ref(each[1]) and '"' not in each[1]}
    )


def _pairs(listed: str) -> Iterator[tuple[str, str]]:
    for pair in listed.split("\0"):
        name, _, value = pair.partition("\n")
        yield name, value


def _require_format(settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        strange = name.startswith("extensions.") or name in FORMATS
        if strange and value not in FORMATS.get(name, ()):
            raise ToolFailed("the repository has an unsupported format", code="git.format", retry="host")
    if settings.get("core.bare", "false").lower() not in ("false", "no", "off", "0"):
        raise ToolFailed("the repository is bare and has no working tree", code="git.format", retry="model")


def _is_kept(name: str, value: str) -> bool:
    if SWITCHES.fullmatch(name):
        return value.lower() in ("true", "false")
    if name in ENDINGS:
        return value.lower() in ENDINGS[name]
    return PERSON.fullmatch(name) is not None and PLAIN.fullmatch(value) is not None


def _subsections(settings: Mapping[str, str], section: str, key: str) -> Iterator[tuple[str, str]]:
    """Yield the subsection and the value of each setting with that section and key."""
    for full, value in settings.items():
        first, _, rest = full.partition(".")
        name, _, last = rest.rpartition(".")
        if (first, last) == (section, key) and name:
            yield name, value


def _is_remote(name: str, url: str) -> bool:
    return REMOTE.fullmatch(name) is not None and URL.fullmatch(url) is not None
