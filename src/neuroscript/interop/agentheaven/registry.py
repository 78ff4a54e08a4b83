"""Methods that are tools of the instances of their class."""

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
"""The attribute of a function that contains its tool options."""


@attrs.frozen
class Options:
    """The options of a marked method: arguments of `ToolSpec.from_function`."""

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
    """Mark a method as a tool, without changing the method; use ``@reg_toolspec`` or ``@reg_toolspec(…)``.

    Args:
        options: Options of `ToolSpec.from_function`.

    Raises:
        TypeError: An option is unknown.
    """
    said = Options(**options)

    def marked(method: Any) -> Any:
        setattr(method, MARK, said)
        return method

    return marked if func is None else marked(func)


class ToolRegistry:
    """A base class that turns marked methods, including inherited ones, into tools of its instances.

    Names that begin with ``_`` are ignored. A subclass overrides its base classes: an unmarked method, or None, under
    the same name removes a tool.
    """

    _toolspecs: ClassVar[dict[str, Options]] = {}
    """The options of each tool method by name, in the order of definition."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Collect the marked methods."""
        super().__init_subclass__(**options)
        names = {name: None for each in reversed(cls.__mro__) for name in vars(each) if not name.startswith("_")}
        marks = {name: _mark(inspect.getattr_static(cls, name)) for name in names}
        cls._toolspecs = {name: mark for name, mark in marks.items() if mark is not None}

    def toolspec(self, name: str) -> ToolSpec:
        """Return a new handle for the tool of a method.

        Raises:
            KeyError: There is no tool with that name.
            SpecError: The method cannot be a tool; the message says what to change.
        """
        options = attrs.asdict(self._toolspecs[name], recurse=False)
        return ToolSpec.from_function(getattr(self, name), **options)

    def to_toolspecs(self) -> dict[str, ToolSpec]:
        """Return a new handle for each tool, by name; ``self`` of the methods is this instance."""
        return {name: self.toolspec(name) for name in self._toolspecs}

    def list_toolspecs(self) -> list[str]:
        """Return the names of the tools, in the order of definition."""
        return list(self._toolspecs)


def _mark(method: Any) -> Options | None:
    """Return the options of a method; static and class methods may have been marked before they were converted."""
    found = getattr(method, MARK, None) or getattr(getattr(method, "__wrapped__", None), MARK, None)
    return found if isinstance(found, Options) else None
