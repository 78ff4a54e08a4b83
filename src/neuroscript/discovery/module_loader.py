"""Code of a file or a package under a name that nothing else has, as it was at one moment.

All sources of a package are read before any of them runs, and its modules come from there alone. So two of one name do
not meet, and what was loaded before a change never meets what comes after it, however late it imports its other half.

Source: contract section 7, level C.
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
"""What the names of such modules begin with."""

INIT: Final = "__init__.py"
TRIES: Final = 5
"""How often sources are read again that change while they are read."""


class NoSource(Exception):
    """There is no such file of Python, and no such package."""


@attrs.frozen(eq=False, repr=False)
class Source:
    """One module as it stood on the disk."""

    path: Path
    data: bytes

    @property
    def is_package(self) -> bool:
        """Whether other modules stand below it."""
        return self.path.name == INIT


@attrs.define(eq=False, repr=False)
class Code:
    """A file or a package as it was when it was read.

    Attributes:
        name: Its name as a module, another one each time.
        sources: What each of its modules is made of, by its whole name.
        modules: Those that were made so far, by their whole names.
    """

    name: str
    sources: dict[str, Source]
    modules: dict[str, ModuleType] = attrs.field(factory=dict)

    def run(self) -> ModuleType:
        """Make its module, and return it; where it raises something, nothing of it is left."""
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
        """Give its names back, when no call is under way; whoever still holds a function finds the others by them."""
        for name in self.sources:
            sys.modules.pop(name, None)


def read(file: str | os.PathLike[str]) -> Code:
    """Return the code of a file of Python, or of a directory with an ``__init__.py``, without running it.

    Raises:
        NoSource: There is none, or it does not stop changing.
    """
    path = Path(file).absolute()
    name = f"{PREFIX}{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}_{os.urandom(8).hex()}"
    before = _sources(path, name)
    for _ in range(TRIES):
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
    """Yield the modules of a package, and of the packages below it."""
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
    """Makes one module of some code; one that was made before stays what it is."""

    code: Code
    path: str

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module if it was made before."""
        return self.code.modules.get(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module that is new."""
        name = module.__name__
        if name in self.code.modules:
            return
        module.__dict__["__neuroscript_code__"] = self.code  # the code lives as long as a function of it
        self.code.modules[name] = module
        try:
            super().exec_module(module)
        except BaseException:
            del self.code.modules[name]
            raise

    def get_code(self, fullname: str) -> CodeType:
        """Return what runs."""
        return compile(self.code.sources[fullname].data, self.path, "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        """Return the text as it was when it was read, for tracebacks."""
        from importlib.util import decode_source

        return decode_source(self.code.sources[fullname].data)

    def is_package(self, fullname: str) -> bool:
        """Tell whether other modules stand below one."""
        return self.code.sources[fullname].is_package

    def get_resource_reader(self, fullname: str) -> Any:
        """Return what reads the other files beside a module, as they are now."""
        from importlib.resources.readers import FileReader

        return FileReader(self)  # type: ignore[arg-type]


class Finder(MetaPathFinder):
    """Finds the modules of code that somebody still holds; the interpreter asks it after all others.

    Attributes:
        codes: By their names. It holds none of them itself.
    """

    def __init__(self) -> None:
        self.codes: WeakValueDictionary[str, Code] = WeakValueDictionary()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module comes from, or None where it is none of these."""
        code = self.codes.get(fullname.partition(".")[0]) if fullname.startswith(PREFIX) else None
        source = None if code is None else code.sources.get(fullname)
        if code is None or source is None:
            return None
        origin = str(source.path)
        spec = ModuleSpec(fullname, Loader(code, origin), origin=origin, is_package=source.is_package)
        spec.has_location = True
        return spec


FINDER: Final = Finder()
"""The one of this interpreter, whose modules are one table too; it is there from the first plugin on."""
