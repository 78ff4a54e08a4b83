"""Lazy package attributes, so that using one module does not import the others, and errors for missing extras.

The root package contains the same code inline because every program imports it first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

PUBLISHED: Final[bool] = False
"""Whether this project's distributions are on the public package index.

Until a maintainer sets it, no message names them without a path, because pip would install what a stranger registered.
"""

OWN_EXTRAS: Final = ("std", "fs", "git", "http", "shell")
"""The extras that install another distribution of this project: ``neuroscript-std`` and so on."""

WHEELS_HINT: Final = "the command that `python3 dev.py wheels` prints in a checkout of neuroscript"
"""What to use where this project's distributions cannot be found."""


def lazy_getattr(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` function of a package.

    Args:
        package: The ``__name__`` of the package.
        homes: The public names of each module, separated by spaces, by module name.
    """
    rooms = {name: room for room, names in homes.items() for name in names.split()}

    def found(name: str) -> Any:
        if name not in rooms:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import sys
        from importlib import import_module

        thing = getattr(import_module(f"{package}.{rooms[name]}"), name)
        setattr(sys.modules[package], name, thing)
        return thing

    return found


def install_hint(extra: str) -> str:
    """Return the command that installs an extra of this package where the package is installed now.

    The command contains the path of the checkout or wheel that the package comes from. No distribution of this project
    is searched for on an index, unless they are published.
    """
    from pathlib import Path

    checkout = Path(__file__).parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "plugins").is_dir():
        return _from_directory(extra, checkout, is_editable=True)
    path, is_editable = direct_path("neuroscript") or (checkout, False)
    if path.suffix == ".whl":
        return _from_wheel(extra, path)
    if (path / "pyproject.toml").is_file():
        return _from_directory(extra, path, is_editable=is_editable)
    return f'pip install "neuroscript[{extra}]"' if PUBLISHED else _without_own_names(extra)


def direct_path(distribution: str) -> tuple[Path, bool] | None:
    """Return the local file or directory from which an installer took a distribution, and whether it is editable.

    Returns:
        A pair of a `pathlib.Path` that exists and a boolean, or None if the distribution came from elsewhere.
    """
    import json
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import distribution as find
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        source = json.loads(find(distribution).read_text("direct_url.json") or "{}")
        url = urlsplit(source.get("url", ""))
        path = Path(url2pathname(url.path))
        is_local = url.scheme == "file" and path.exists()
        return (path, bool(source.get("dir_info", {}).get("editable"))) if is_local else None
    except (PackageNotFoundError, ValueError, AttributeError, OSError):  # damaged metadata says nothing about a source
        return None


def _from_directory(extra: str, directory: Path, *, is_editable: bool) -> str:
    """Return the command for a directory with sources, and with the sources of the distribution for an own extra."""
    paths = [_quoted(directory, extra)]
    if extra in OWN_EXTRAS:
        plugin = directory / "plugins" / f"neuroscript-{extra}"
        if not plugin.is_dir():
            return WHEELS_HINT
        paths.append(_quoted(plugin))
    return " ".join(["pip install", *(f"-e {path}" if is_editable else path for path in paths)])


def _from_wheel(extra: str, wheel: Path) -> str:
    """Return the command for a wheel; the constraints beside it name the wheels of the other distributions."""
    constraints = wheel.with_name("constraints.txt")
    if constraints.is_file() and f"neuroscript-{OWN_EXTRAS[0]} @ file:" in constraints.read_text("utf-8", "replace"):
        return f"pip install -c {_quoted(constraints)} {_quoted(wheel, extra)}"
    return WHEELS_HINT if extra in OWN_EXTRAS else f"pip install {_quoted(wheel, extra)}"


def _without_own_names(extra: str) -> str:
    """Return the command that installs only the libraries of an extra."""
    import re
    from importlib.metadata import PackageNotFoundError, requires

    try:
        found = (line.partition(";") for line in requires("neuroscript") or ())
    except PackageNotFoundError:
        return WHEELS_HINT
    marker = re.compile(rf"""\s*extra == ['"]{re.escape(extra)}['"]""")
    libraries = [f'"{name.strip()}"' for name, _, condition in found if marker.fullmatch(condition)]
    return WHEELS_HINT if extra in OWN_EXTRAS or not libraries else " ".join(["pip install", *libraries])


def _quoted(path: Path, extra: str = "") -> str:
    """Return a path with an extra as one word of a shell."""
    import os
    import shlex

    word = f"{path}[{extra}]" if extra else str(path)
    return f'"{word}"' if os.name == "nt" else shlex.quote(word)


def missing_extra(what: str, extra: str, error: ImportError) -> ModuleNotFoundError:
    """Return the error for a feature whose extra is not installed.

    Args:
        what: What needs which package, for example ``tracing needs OpenTelemetry``.
        error: The exception that the import raised.

    >>> missing_extra("tracing needs OpenTelemetry", "otel", ImportError())
    ModuleNotFoundError("tracing needs OpenTelemetry; install it with: pip install ...[otel]'")
    """
    return ModuleNotFoundError(f"{what}; install it with: {install_hint(extra)}", name=error.name)
