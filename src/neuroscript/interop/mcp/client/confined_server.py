"""The command of a server that runs confined."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import Final

from neuroscript.interop.mcp.client.location import Access
from neuroscript.isolation.confined_programs import CHANGE, READ, launch_words, require_layers

LAYERS: Final = ("landlock", "seccomp")
"""What the system must provide. Without them, a server could read and send everything."""

NODE_MODULES: Final = "node_modules"


def confined_command(
    command: Sequence[str], env: Mapping[str, str], cwd: str | None, access: Access
) -> tuple[str, ...]:
    """Return the command that runs a server confined.

    Raises:
        OSError: The program does not exist.
        ToolFailed: ``isolation.unavailable``: this system cannot confine it.
    """
    require_layers(LAYERS)
    name, *args = command
    here = Path(cwd or ".").absolute()
    files: list[tuple[str, Sequence[str]]] = [(str(path), READ) for path in _script_places(args, here)]
    files += ((str(here / path), READ) for path in access.read)
    files += ((str(here / path), CHANGE) for path in access.write)
    program = _program(name, here, env)
    words = launch_words(program, files, network=access.network, require=LAYERS, environment=tuple(env))
    return (*words, name, *args)


def _program(name: str, here: Path, env: Mapping[str, str]) -> str:
    """Return the absolute path of a program; links are not resolved, because a virtual environment is found by them."""
    found = here / name if os.sep in name else shutil.which(name, path=env.get("PATH"))
    if found is None or not Path(found).is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return str(Path(found).absolute())


def _script_places(args: Iterable[str], here: Path) -> Iterator[Path]:
    """Yield the script that a server runs, and the directory or the packages that it belongs to."""
    script = next((here / each for each in args if not each.startswith("-")), None)
    if script is None or not script.is_file():
        return
    for each in (script, script.resolve()):
        yield each
        if NODE_MODULES in each.parts:
            yield Path(*each.parts[: each.parts.index(NODE_MODULES) + 1])
        shared = (Path("~").expanduser(), Path(gettempdir()))
        if not any(place.resolve().is_relative_to(each.parent) for place in shared):
            yield each.parent
