"""Methods of a class that are tools of its instances.

Source: seed-systems.md rows AH-38 to AH-46, AH-57.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, TypeVar, overload

import attrs

from neuroscript.interop.agentheaven.handle import ToolSpec
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.tool import NEEDS_NOTHING

Function = TypeVar("Function", bound=Callable[..., Any])

MARK: Final = "_toolspec"
"""The attribute of a function that says how it is to be a tool."""


@attrs.frozen
class Options:
    """What was said of a method when it was marked: arguments of `ToolSpec.from_function`."""

    name: str | None = None
    parse_docstring: bool = True
    description: str = ""
    output_schema: Mapping[str, Any] | None = None
    examples: Iterable[Any] | None = None
    policy: ToolPolicy = NEEDS_NOTHING


@overload
def reg_toolspec(func: Function, /) -> Function: ...


@overload
def reg_toolspec(
    *,
    name: str | None = None,
    parse_docstring: bool = True,
    description: str = "",
    output_schema: Mapping[str, Any] | None = None,
    examples: Iterable[Any] | None = None,
    policy: ToolPolicy = NEEDS_NOTHING,
) -> Callable[[Function], Function]: ...


def reg_toolspec(func: Any = None, /, **options: Any) -> Any:
    """Mark a method as a tool; it stays the method that it is. ``@reg_toolspec`` and ``@reg_toolspec(…)`` both do.

    Args:
        options: What `ToolSpec.from_function` is to be told.

    Raises:
        TypeError: There is no such option.
    """
    said = Options(**options)

    def marked(method: Any) -> Any:
        setattr(method, MARK, said)
        return method

    return marked if func is None else marked(func)


class ToolRegistry:
    """What gives the instances of a class tools: its marked methods, those of the classes it is made of included.

    A name that begins with ``_`` is no tool. What a class says of a name goes before what the classes above it say, so
    that a method without a mark, or None, takes a tool away.
    """

    _toolspecs: ClassVar[dict[str, Options]] = {}
    """By name of each method that is a tool what was said of it, in the order in which they were defined."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Look for marked methods."""
        super().__init_subclass__(**options)
        names = {name: None for each in reversed(cls.__mro__) for name in vars(each) if not name.startswith("_")}
        marks = {name: _mark(inspect.getattr_static(cls, name)) for name in names}
        cls._toolspecs = {name: mark for name, mark in marks.items() if mark is not None}

    def toolspec(self, name: str) -> ToolSpec:
        """Return the tool that a method is, as a new handle.

        Raises:
            KeyError: There is none of that name.
            SpecError: The method can not be a tool; it says what to write.
        """
        options = attrs.asdict(self._toolspecs[name], recurse=False)
        return ToolSpec.from_function(getattr(self, name), **options)

    def to_toolspecs(self) -> dict[str, ToolSpec]:
        """Return a new handle of each tool by name; their ``self`` is this instance."""
        return {name: self.toolspec(name) for name in self._toolspecs}

    def list_toolspecs(self) -> list[str]:
        """Return the names of the tools, in the order in which they were defined."""
        return list(self._toolspecs)


def _mark(method: Any) -> Options | None:
    """Return what was said of a method; a static or a class method may have been marked before it was one."""
    found = getattr(method, MARK, None) or getattr(getattr(method, "__wrapped__", None), MARK, None)
    return found if isinstance(found, Options) else None
