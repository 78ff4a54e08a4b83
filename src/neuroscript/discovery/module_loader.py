"""Loading of a file or package under a unique module name, from a snapshot of its sources.

All sources of a package are read before any of them runs, and its modules are loaded only from this snapshot. Packages
with the same name do not conflict, and code loaded before a change never mixes with newer code, even if it imports
other modules later.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final
from weakref import WeakValueDictionary

import attrs

PREFIX: Final = "neuroscript_plugin_"
"""The prefix of the generated module names."""

INIT: Final = "__init__.py"
MAX_READS: Final = 5
"""Maximum number of times that sources are read again because they changed while they were read."""


class NoSource(Exception):
    """The Python file or package does not exist."""


@attrs.frozen(eq=False, repr=False)
class Source:
    """The source of one module at the time of reading."""

    path: Path
    data: bytes

    @property
    def is_package(self) -> bool:
        """Whether it can contain other modules."""
        return self.path.name == INIT


@attrs.define(eq=False, repr=False)
class Code:
    """A snapshot of a file or package.

    Attributes:
        name: Its unique module name.
        sources: The source of each of its modules, by full name.
        modules: The modules created so far, by full name.
    """

    name: str
    sources: dict[str, Source]
    modules: dict[str, ModuleType] = attrs.field(factory=dict)

    def run(self) -> ModuleType:
        """Create and return its module; if it raises, nothing is left behind."""
        from importlib import import_module

        FINDER.codes[self.name] = self
        if FINDER not in sys.meta_path:
            sys.meta_path.append(FINDER)
        try:
            return import_module(self.name)
        except BaseException:
            self.retire()
            raise

    def retire(self) -> None:
        """Release its module names once no call is running. Functions still in use keep access to their modules."""
        for name in self.sources:
            sys.modules.pop(name, None)


def read(file: str | os.PathLike[str]) -> Code:
    """Return a snapshot of a Python file, or of a directory with an ``__init__.py``, without executing it.

    Raises:
        NoSource: It does not exist, or keeps changing.
    """
    path = Path(file).absolute()
    name = f"{PREFIX}{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}_{os.urandom(8).hex()}"
    before = _sources(path, name)
    for _ in range(MAX_READS):
        sources = _sources(path, name)
        if {key: each.data for key, each in sources.items()} == {key: each.data for key, each in before.items()}:
            return Code(name, sources)
        before = sources
    raise NoSource


def _sources(path: Path, name: str) -> dict[str, Source]:
    try:
        files = {name: path} if path.is_file() and path.suffix == ".py" else dict(_modules(path, name))
        return {key: Source(each, each.read_bytes()) for key, each in files.items()}
    except OSError:
        raise NoSource from None


def _modules(directory: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Yield the modules of a package and its subpackages."""
    if not (directory / INIT).is_file():
        raise NoSource
    yield name, directory / INIT
    for each in sorted(directory.iterdir()):
        if each.suffix == ".py" and each.stem.isidentifier() and each.name != INIT and each.is_file():
            yield f"{name}.{each.stem}", each
        elif each.name.isidentifier() and (each / INIT).is_file():
            yield from _modules(each, f"{name}.{each.name}")


@attrs.frozen(eq=False, repr=False)
class Loader(InspectLoader):
    """Creates one module of a snapshot; a module that already exists is reused."""

    code: Code
    path: str

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module if it already exists."""
        return self.code.modules.get(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the code of a new module."""
        name = module.__name__
        if name in self.code.modules:
            return
        module.__dict__["__neuroscript_code__"] = self.code  # keeps the snapshot alive as long as one of its functions
        self.code.modules[name] = module
        try:
            super().exec_module(module)
        except BaseException:
            del self.code.modules[name]
            raise

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled code."""
        return compile(self.code.sources[fullname].data, self.path, "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        """Return the source at the time of reading, for tracebacks."""
        from importlib.util import decode_source

        return decode_source(self.code.sources[fullname].data)

    def is_package(self, fullname: str) -> bool:
        """Return whether a module can contain other modules."""
        return self.code.sources[fullname].is_package

    def get_resource_reader(self, fullname: str) -> Any:
        """Return a reader for other files next to a module, in their current state."""
        from importlib.resources.readers import FileReader

        return FileReader(self)  # type: ignore[arg-type]


class Finder(MetaPathFinder):
    """Finds the modules of snapshots that are still in use; the interpreter calls it after all other finders.

    Attributes:
        codes: The snapshots by name, as weak references.
    """

    def __init__(self) -> None:
        self.codes: WeakValueDictionary[str, Code] = WeakValueDictionary()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module, or None if it belongs to no snapshot."""
        code = self.codes.get(fullname.partition(".")[0]) if fullname.startswith(PREFIX) else None
        source = None if code is None else code.sources.get(fullname)
        if code is None or source is None:
            return None
        origin = str(source.path)
        spec = ModuleSpec(fullname, Loader(code, origin), origin=origin, is_package=source.is_package)
        spec.has_location = True
        return spec


FINDER: Final = Finder()
"""The finder of this interpreter, because ``sys.modules`` is global too. It is installed with the first plugin."""
