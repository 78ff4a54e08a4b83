"""The toolbox ``NeuroScript`` for the command ``llm``: installed tools, as far as the user's policy permits.

``llm -T NeuroScript`` offers all tools, ``llm -T 'NeuroScript("math.*")'`` some of them. The engine is configured like
that of ``neuroscript mcp serve``. ``llm`` imports this module with its other plugins, so it imports the rest lazily.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any
from weakref import finalize

from neuroscript._imports import missing_extra

try:
    import llm
except ImportError as error:
    raise missing_extra("the toolbox for llm needs that package", "llm", error) from None


@llm.hookimpl
def register_tools(register: Callable[..., None]) -> None:
    """Register the toolbox with ``llm``."""
    register(NeuroScript)


class NeuroScript(llm.Toolbox):
    """Installed tools of neuroscript, as far as the user's policy permits.

    Args:
        tools: Patterns of canonical names, such as ``math.*``; separate several in one string by spaces.
        policy: A policy file (TOML); None means the user's own.
        profile: A profile of that file.
    """

    def __init__(self, tools: str | Sequence[str] = "*", policy: str | None = None, profile: str | None = None) -> None:
        with ExitStack() as stack:
            self._offered = _click_errors(lambda: _offered(stack, tools, policy, profile))
            self._close = finalize(self, stack.pop_all().close)

    def tools(self) -> Iterable[llm.Tool]:
        """Return the tools that may be called."""
        from neuroscript.interop.llm.export import tool_of

        yield from (tool_of(each, self) for each in self._offered)
        yield from self._extra_tools


def _offered(stack: ExitStack, tools: Any, policy: str | None, profile: str | None) -> list[Any]:
    """Return the tools of an engine that *stack* closes, each an `OfferedTool`."""
    from neuroscript.cli.env.engine import open_engine
    from neuroscript.cli.parser import parse_arguments
    from neuroscript.cli.terminal.output import Output
    from neuroscript.errors import SpecError
    from neuroscript.llm.offered_tools import offer_tools

    patterns = tools.split() if isinstance(tools, str) else tools
    if not isinstance(patterns, list | tuple) or not all(isinstance(each, str) for each in patterns):
        raise SpecError("llm", ["tools: expected patterns as strings, such as math.*"])
    words = [f"--{name}={each}" for name, each in (("policy", policy), ("profile", profile)) if each is not None]
    engine = stack.enter_context(
        open_engine(None, Output(sys.stdout, sys.stderr), parse_arguments(["mcp", "serve", *words]))
    )
    return with_toolbox_prefix(offer_tools(engine, patterns, subject="llm"))


def with_toolbox_prefix(tools: Iterable[Any]) -> list[Any]:
    """Return tools with the name prefix of their toolbox, by which ``llm -c`` finds the toolbox again.

    Raises:
        RegistryError: Two tools would have the same name; the error contains both.
    """
    import attrs

    from neuroscript.runtime.wire_names import WireNames, truncate

    under = {each.info.spec.full_name: each for each in tools}
    names = WireNames.under({name: truncate(f"{NeuroScript.__name__}_{each.name}") for name, each in under.items()})
    return [attrs.evolve(each, name=names.wires[name], names=names) for name, each in under.items()]


def _click_errors(make: Callable[[], Any]) -> Any:
    """Return the value of *make*; errors in arguments or policy become one-line errors of ``llm``."""
    from click import ClickException

    from neuroscript.cli.terminal.exit_codes import UsageError
    from neuroscript.errors import NeuroScriptError

    try:
        return make()
    except (NeuroScriptError, UsageError) as error:
        failed = ClickException(str(error))
    raise failed
