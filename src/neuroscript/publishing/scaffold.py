"""What a new distribution is called: itself, its module, its group of tools; and what none may be called.

Source: PEP 503 (names of distributions), PEP 8 (names of modules), contract section 1 (groups).

A new distribution, whole or not at all.

Source: contract section 7; issue "Plugins", the publisher's kit.
"""

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

from neuroscript._version import RUNTIME_API
from neuroscript.discovery.catalog import FIRST_PARTY, owner_of
from neuroscript.discovery.installed import normalised
from neuroscript.errors import SpecError
from neuroscript.io.text import shown, shown_path
from neuroscript.names import canonical, is_word

NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""Of distributions."""


LONGEST: Final = 50
"""Characters of a group, so that the names of its tools have no more than 64 on the wire."""


@attrs.frozen
class Names:
    """What a distribution and its parts are called.

    Attributes:
        distribution: As PEP 503 spells it.
        module: What is imported.
        group: The group of its tools.
    """

    distribution: str
    module: str
    group: str


def named(name: str, group: str | None = None) -> Names:
    """Return what a distribution of that name and its parts are called; they may be such as can not be.

    >>> named("Acme.Weather")
    Names(distribution='acme-weather', module='acme_weather', group='acme_weather')
    """
    distribution = normalised(name)
    module = distribution.replace("-", "_")
    return Names(distribution, module, module if group is None else canonical(group))


def faults(name: str, names: Names) -> Iterator[str]:
    """Yield a sentence for each reason why nothing can be called so.

    Args:
        name: The name as it was given.
    """
    if NAME.fullmatch(name) is None:
        yield f"{shown(name)} is no name of a distribution; write letters, digits, and - . or _ between them"
        return
    yield from _module_faults(names)
    yield from _group_faults(names)


def _module_faults(names: Names) -> Iterator[str]:
    module = shown(names.module)
    if names.distribution == "neuroscript" or names.distribution in FIRST_PARTY:
        yield f"{names.distribution} is a distribution of this project; take a name of your own"
    elif keyword.iskeyword(names.module):
        yield f"the module would be called {module}, which is a word of Python"
    elif not names.module.isidentifier():
        yield f"the module would be called {module}, which can not be imported; begin the name with a letter"
    elif names.module in sys.stdlib_module_names:
        yield f"the module would be called {module}, as one of Python's own; take a longer name"


def _group_faults(names: Names) -> Iterator[str]:
    words = names.group.split(".")
    owner = owner_of(names.group)
    if not all(map(is_word, words)):
        yield (
            f"{shown(names.group)} is no name of a group; "
            "give one with --group: small letters, digits and single _, a letter first"
        )
    elif owner is not None:
        yield f"the group {shown(words[0])} belongs to {owner}; give another one with --group"
    elif len(names.group) > LONGEST:
        yield f"a group of more than {LONGEST} characters leaves no place for names of tools; give one with --group"


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
"""Each file of a distribution, and which template it is made of."""


WORD: Final = re.compile(r"<<(\w+)>>")


AUTHOR: Final = re.compile(
    r"(?P<name>[^<>]*[^<>\s])\s*(<(?P<email>[^<>\s@]+@[^<>\s@]+)>)?|<(?P<alone>[^<>\s@]+@[^<>\s@]+)>"
)


def create(name: str, directory: Path | None = None, *, group: str | None = None, author: str = "") -> Path:
    """Write a distribution with a toolset, and return its directory.

    Args:
        name: What it is called, in any spelling.
        directory: What is made; it may be there, but empty. None is one of its name in the working directory.
        group: The group of its tools; None is its module's name.
        author: Who wrote it, as in ``Ada <ada@example.org>``; nobody is named where it is empty.

    Raises:
        SpecError: With everything that keeps it from being written; nothing is, then.
        OSError: The system refuses to write it; nothing of it is left, but for new directories above it.
    """
    names = named(name, group)
    target = (Path(names.distribution) if directory is None else directory).absolute()
    found = [*faults(name, names), *_directory_faults(target), *_author_faults(author)]
    if found:
        raise SpecError("new toolset", found)
    texts = written(names, author)
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


def written(names: Names, author: str = "") -> dict[str, str]:
    """Return the text of each file by its path in the distribution."""
    from neuroscript import __version__

    words = {
        "distribution": names.distribution,
        "module": names.module,
        "group": names.group,
        "authors": _authors(author),
        "version": __version__,
        "api": str(RUNTIME_API),
    }
    texts = {path: (TEMPLATE / f"{source}.txt").read_text("utf-8") for path, source in FILES.items()}
    return {_filled(path, words): _filled(text, words) for path, text in texts.items()}


def _filled(text: str, words: Mapping[str, str]) -> str:
    return WORD.sub(lambda match: words[match[1]], text)


def _fill(root: Path, texts: Mapping[str, str]) -> None:
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8", newline="\n")


def _directory_faults(target: Path) -> Iterator[str]:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        yield f"{shown_path(str(target))} is there and no directory; name another one with --directory"
    elif target.is_dir() and any(target.iterdir()):
        yield f"{shown_path(str(target))} is there and not empty; name another one with --directory"


def _author_faults(author: str) -> Iterator[str]:
    if author and (AUTHOR.fullmatch(author) is None or not author.isprintable()):
        yield "an author is a name, an address in < >, or both, as in 'Ada <ada@example.org>'"


def _authors(author: str) -> str:
    match = AUTHOR.fullmatch(author)
    if match is None:
        return ""
    given = {"name": match["name"], "email": match["email"] or match["alone"]}
    pairs = ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items() if value)
    return f"authors = [{{ {pairs} }}]\n"
