"""A tool from the text of its function, which is run: for texts that a host would import, and for no others.

Source: issue "Authoring from Python", ``from_code``; AH-8 of seed-systems.md.
"""

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
from neuroscript.io.text import shown
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.tool_spec import Example
from neuroscript.tools.tool import NEEDS_NOTHING, ToolImplementation, require_options, tool

Made = TypeVar("Made")

PREFIX: Final = "neuroscript_code_"
"""What the names of the modules begin with that texts become."""

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
    """Return the tool that a function describes which stands in a text of Python.

    **The text is run, here and now, with everything that this process may do.** No policy, grant or sandbox stands
    before that. Nothing but a call of this function does it: no plugin, no importer, no docstring, no annotation.

    The text is a module of its own, with one namespace, so that its functions find each other and themselves. It stays
    in ``sys.modules``, as a file that was imported does, and its lines are shown in tracebacks.

    Args:
        text: What a module would hold.
        func_name: Which function is meant; it may be left out where the text has one only that does not begin with
            ``_`` and is not imported.
        env: What the text finds under these names; it is not changed.
        group: The group of the tool; this and all that follows is as for `tool`.

    Raises:
        SpecError: The text is no Python, raises something, has no such function, or there can be no such tool.

    >>> half = from_code("def half(n: float) -> float: return n / 2", group="sums")
    >>> half.name, half.func(None, 3.0)
    ('sums.half', 1.5)

    Source: contract section 1; AH-8.
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
    text: str, func_name: str | None, env: Mapping[str, Any] | None, make: Callable[[Callable[..., Any]], Made]
) -> Made:
    """Return what *make* makes of the function that stands in a text of Python; **the text is run**, as above.

    Raises:
        SpecError: The text is no Python, raises something or has no such function, or nothing can be made of it.
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
    """Return a module of a new name in which the text has been run; where that raises, nothing of it is left."""
    module = ModuleType(f"{PREFIX}{os.urandom(8).hex()}")
    module.__dict__.update(env, __name__=module.__name__, __file__=_file(module))
    code = _compiled(text, _file(module))
    sys.modules[module.__name__] = module
    linecache.cache[_file(module)] = (len(text), None, text.splitlines(keepends=True), _file(module))
    try:
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        _forget(module)
        raise SpecError(WHERE, [f"the text raised {type_name(error)}"]) from error
    except BaseException:
        _forget(module)
        raise
    return module


def _compiled(text: str, file: str) -> CodeType:
    try:
        return compile(text, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = "" if error.lineno is None else f", line {error.lineno}"
        raise SpecError(WHERE, [f"the text is no Python: {error.msg}{line}"]) from error
    except (ValueError, MemoryError, RecursionError) as error:  # a null character, or more than the parser holds
        raise SpecError(WHERE, [f"the text is no Python ({type_name(error)})"]) from error


def _file(module: ModuleType) -> str:
    """Return what stands for the file of a module: the angle brackets say that there is none."""
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
    names = ", ".join(map(shown, own))
    if func_name is not None:
        return f"no callable named {shown(func_name)}; {f'there is {names}' if own else 'there is none'}"
    if own:
        return f"multiple callables found: {names}; say which one is meant by func_name"
    return "no callable found; write a function, as in def count(text: str) -> int"
