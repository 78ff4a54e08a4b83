"""Tools from Python source code. The source is executed, so use this only for code that you would import."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import CodeType, ModuleType
from typing import Any, Final, TypeVar

from neuroscript.coercion.context import type_name
from neuroscript.coercion.parameters import BY_NAME, STRING, optional, require
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import Example
from neuroscript.tools.tool import NEEDS_NOTHING, ToolImplementation, require_options, tool

Made = TypeVar("Made")

PREFIX: Final = "neuroscript_code_"
"""The prefix of the names of the modules that are created."""

WHERE: Final = "from_code"


def from_code(
    text: str,
    func_name: str | None = None,
    env: Mapping[str, Any] | None = None,
    *,
    group: str,
    name: str | None = None,
    policy: ToolPolicy = NEEDS_NOTHING,
    description: str = "",
    when_to_use: str = "",
    category: str = "",
    examples: tuple[Example, ...] = (),
) -> ToolImplementation:
    """Execute Python source and return the tool for a function in it.

    **The source runs immediately and with all permissions of this process.** No policy, grant or sandbox applies. Only
    a direct call of this function runs source code; no plugin, importer, docstring or annotation does.

    The source becomes a separate module with its own namespace, so its functions can call each other and themselves.
    The module stays in ``sys.modules`` like any imported file, and its lines appear in tracebacks.

    Args:
        text: The source code of a module.
        func_name: The function to use. It may be omitted if the source defines exactly one function whose name does not
            start with ``_``; imported functions do not count.
        env: Names that are available to the source. The mapping is not modified.
        group: The group of the tool; this and the following arguments are the same as for `tool`.

    Raises:
        SpecError: The source is not valid Python, raises an exception or lacks the function, or the tool is invalid.

    >>> half = from_code("def half(n: float) -> float: return n / 2", group="sums")
    >>> half.name, half.func(None, 3.0)
    ('sums.half', 1.5)
    """
    options = {"group": group, "name": name, "policy": policy, "description": description, "when_to_use": when_to_use}
    require_options(WHERE, **options, category=category, examples=examples)
    make = partial(
        tool,
        group=group,
        name=name,
        policy=policy,
        description=description,
        when_to_use=when_to_use,
        category=category,
        examples=examples,
    )
    return made_from(text, func_name, env, make)


def made_from(
    text: str,
    func_name: str | None,
    env: Mapping[str, Any] | None,
    make: Callable[[Callable[..., Any]], Made],
) -> Made:
    """Execute Python source and return the result of *make* for a function in it. **The source is executed**, as above.

    Raises:
        SpecError: The source is not valid Python, raises an exception or lacks the function, or *make* fails.
    """
    require(WHERE, text=(text, STRING), func_name=(func_name, optional(STRING)), env=(env, optional(BY_NAME)))
    given = dict(env or {})
    module = _run(text, given)
    try:
        return make(_chosen(module, func_name, given))
    except SpecError:
        _forget(module)
        raise


def _run(text: str, env: dict[str, Any]) -> ModuleType:
    """Return a new module in which the source has been executed; if it raises, nothing is left behind."""
    module = ModuleType(f"{PREFIX}{os.urandom(8).hex()}")
    module.__dict__.update(env, __name__=module.__name__, __file__=_file(module))
    code = _compiled(text, _file(module))
    sys.modules[module.__name__] = module
    linecache.cache[_file(module)] = (len(text), None, text.splitlines(keepends=True), _file(module))
    try:
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        _forget(module)
        raise SpecError(WHERE, [f"the source raised {type_name(error)}"]) from error
    except BaseException:
        _forget(module)
        raise
    return module


def _compiled(text: str, file: str) -> CodeType:
    try:
        return compile(text, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = "" if error.lineno is None else f", line {error.lineno}"
        raise SpecError(WHERE, [f"the source is not valid Python: {error.msg}{line}"]) from error
    except (
        ValueError,
        MemoryError,
        RecursionError,
    ) as error:  # a null character, or source that exceeds the limits of the parser
        raise SpecError(WHERE, [f"the source is not valid Python ({type_name(error)})"]) from error


def _file(module: ModuleType) -> str:
    """Return the pseudo file name of a module; angle brackets mark that there is no file."""
    return f"<{module.__name__}>"


def _forget(module: ModuleType) -> None:
    sys.modules.pop(module.__name__, None)
    linecache.cache.pop(_file(module), None)


def _chosen(module: ModuleType, func_name: str | None, env: Mapping[str, Any]) -> Callable[..., Any]:
    made: dict[str, Callable[..., Any]] = {
        name: each
        for name, each in vars(module).items()
        if callable(each) and not isinstance(each, type) and (name not in env or env[name] is not each)
    }
    own = [name for name, each in made.items() if getattr(each, "__module__", "") == module.__name__ and name[0] != "_"]
    if func_name is None and len(own) == 1:
        func_name = own[0]
    if func_name is not None and func_name in made:
        return made[func_name]
    raise SpecError(WHERE, [_missing(func_name, own)])


def _missing(func_name: str | None, own: list[str]) -> str:
    names = ", ".join(map(quote_untrusted, own))
    if func_name is not None:
        others = f"available: {names}" if own else "the source defines none"
        return f"no callable named {quote_untrusted(func_name)}; {others}"
    if own:
        return f"multiple callables found: {names}; choose one with func_name"
    return "no callable found; define a function, such as def count(text: str) -> int"
