"""Scaffolding of a new distribution from a template: its names, and its files, which are written all or not at all."""

from __future__ import annotations

import json
import keyword
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from neuroscript import __version__
from neuroscript._imports import PUBLISHED
from neuroscript._version import RUNTIME_API
from neuroscript.discovery.catalog import FIRST_PARTY, owner_of
from neuroscript.discovery.installed import normalize_name
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_path, quote_untrusted
from neuroscript.names import canonical, is_word

NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""Valid names of distributions."""


MAX_GROUP_CHARS: Final = 50
"""Maximum number of characters in a group, so that the wire names of its tools have at most 64."""


@attrs.frozen
class Names:
    """The names of a distribution and its parts.

    Attributes:
        distribution: The name of the distribution, normalised as in PEP 503.
        module: The name of its module.
        group: The group of its tools.
    """

    distribution: str
    module: str
    group: str


def derive_names(name: str, group: str | None = None) -> Names:
    """Derive the names of a distribution and its parts, which may be invalid.

    >>> derive_names("Acme.Weather")
    Names(distribution='acme-weather', module='acme_weather', group='acme_weather')
    """
    distribution = normalize_name(name)
    module = distribution.replace("-", "_")
    return Names(distribution, module, module if group is None else canonical(group))


def faults(name: str, names: Names) -> Iterator[str]:
    """Yield the reasons why these names are invalid.

    Args:
        name: The name of the distribution as passed.
    """
    if NAME.fullmatch(name) is None:
        quoted = quote_untrusted(name)
        yield f"{quoted} is not a valid name of a distribution; use letters and digits, with - . or _ between them"
        return
    yield from _module_faults(names)
    yield from _group_faults(names)


def _module_faults(names: Names) -> Iterator[str]:
    module = quote_untrusted(names.module)
    if names.distribution == "neuroscript" or names.distribution in FIRST_PARTY:
        yield f"{names.distribution} is a distribution of this project; choose another name"
    elif keyword.iskeyword(names.module):
        yield f"the module would be called {module}, which is a Python keyword"
    elif not names.module.isidentifier():
        yield f"the module would be called {module}, which cannot be imported; start the name with a letter"
    elif names.module in sys.stdlib_module_names:
        yield f"the module would be called {module}, which is in the standard library; choose another name"


def _group_faults(names: Names) -> Iterator[str]:
    words = names.group.split(".")
    owner = owner_of(names.group)
    if not all(map(is_word, words)):
        yield (
            f"{quote_untrusted(names.group)} is not a valid name of a group; "
            "set one with --group: lower-case letters, digits and single underscores, starting with a letter"
        )
    elif owner is not None:
        yield f"the group {quote_untrusted(words[0])} belongs to {owner}; choose another one with --group"
    elif len(names.group) > MAX_GROUP_CHARS:
        long = f"a group of more than {MAX_GROUP_CHARS} characters"
        yield f"{long} leaves no room for the names of tools; set one with --group"


INSTALL: Final = "pip install -e '.[test]'"
"""Installs a distribution that finds neuroscript on an index."""


WHEEL: Final = "wheels/neuroscript-*.whl"
"""The wheel of neuroscript in the new distribution, until neuroscript is on an index."""


WHEEL_NOTE: Final = """
neuroscript is not on a package index yet. Copy its wheel into `wheels/` and commit it, because CI needs it too. In a
checkout of neuroscript, `python3 dev.py wheels` builds it in `dist/`.
"""


def install_command(*, with_wheel: bool) -> str:
    """Return the command that installs a new distribution for development, from its own directory.

    Until neuroscript is published, pip must find it in the environment, also as the requirement of the build. The build
    is therefore not isolated, because pip would search for the requirement on an index.

    Args:
        with_wheel: Whether to install neuroscript too, from the wheel in the distribution.
    """
    if PUBLISHED:
        return INSTALL
    builders = f"{WHEEL} hatchling editables" if with_wheel else "hatchling editables"
    return f"pip install {builders} && {INSTALL.replace('install', 'install --no-build-isolation', 1)}"


TEMPLATE: Final = Path(__file__).with_name("template")


FILES: Final[Mapping[str, str]] = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    ".gitignore": "gitignore",
    ".github/workflows/test.yml": "test.yml",
    "src/<<module>>/__init__.py": "__init__.py",
    "src/<<module>>/py.typed": "py.typed",
    "tests/conftest.py": "conftest.py",
    "tests/test_toolset.py": "test_toolset.py",
}
"""The template of each file in a distribution."""


WORD: Final = re.compile(r"<<(\w+)>>")


AUTHOR: Final = re.compile(
    r"(?P<name>[^<>]*[^<>\s])\s*(<(?P<email>[^<>\s@]+@[^<>\s@]+)>)?|<(?P<alone>[^<>\s@]+@[^<>\s@]+)>"
)


def create(name: str, directory: Path | None = None, *, group: str | None = None, author: str = "") -> Path:
    """Write a new distribution with a toolset, and return its directory.

    Args:
        name: The name of the distribution, in any spelling.
        directory: The directory to create, which may exist if it is empty. By default it is created in the working
            directory, with the name of the distribution.
        group: The group of its tools; by default the name of its module.
        author: The author, as in ``Ada <ada@example.org>``; if empty, no author is set.

    Raises:
        SpecError: If the distribution cannot be written. The error lists every problem, and nothing is written.
        OSError: If the system refuses to write it. Nothing remains, except new parent directories.
    """
    names = derive_names(name, group)
    target = (Path(names.distribution) if directory is None else directory).absolute()
    found = [*faults(name, names), *_directory_faults(target), *_author_faults(author)]
    if found:
        raise SpecError("new toolset", found)
    texts = render_files(names, author)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=".neuroscript-new-", dir=target.parent))
    try:
        _fill(beside / "whole", texts)
        if target.is_dir():
            target.rmdir()
        (beside / "whole").rename(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return target


def render_files(names: Names, author: str = "") -> dict[str, str]:
    """Return the contents of each file by its path in the distribution."""
    words = {
        "distribution": names.distribution,
        "module": names.module,
        "group": names.group,
        "authors": _authors(author),
        "version": __version__,
        "install": install_command(with_wheel=True),
        "wheel_note": "" if PUBLISHED else WHEEL_NOTE,
        "api": str(RUNTIME_API),
    }
    texts = {path: (TEMPLATE / f"{source}.txt").read_text("utf-8") for path, source in FILES.items()}
    return {_render(path, words): _render(text, words) for path, text in texts.items()}


def _render(text: str, words: Mapping[str, str]) -> str:
    return WORD.sub(lambda match: words[match[1]], text)


def _fill(root: Path, texts: Mapping[str, str]) -> None:
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8", newline="\n")


def _directory_faults(target: Path) -> Iterator[str]:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        yield f"{quote_path(str(target))} exists and is not a directory; choose another one with --directory"
    elif target.is_dir() and any(target.iterdir()):
        yield f"{quote_path(str(target))} is not empty; choose another one with --directory"


def _author_faults(author: str) -> Iterator[str]:
    if author and (AUTHOR.fullmatch(author) is None or not author.isprintable()):
        yield "an author is a name, an email address in < >, or both, such as 'Ada <ada@example.org>'"


def _authors(author: str) -> str:
    match = AUTHOR.fullmatch(author)
    if match is None:
        return ""
    given = {"name": match["name"], "email": match["email"] or match["alone"]}
    pairs = ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items() if value)
    return f"authors = [{{ {pairs} }}]\n"
