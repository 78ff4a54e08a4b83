"""The engine of one command: made when it is needed, closed when the command ends, its broken plugins told of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from neuroscript.cli.output import Output
from neuroscript.display import shown
from neuroscript.engine import Engine
from neuroscript.errors import ToolNotFound
from neuroscript.names import from_wire, near
from neuroscript.tools import ToolImplementation

MakeEngine = Callable[..., Engine]


@contextmanager
def opened(make_engine: MakeEngine | None, output: Output, *, strict: bool = False) -> Iterator[Engine]:
    """Lend an engine, and warn of each plugin that could not be loaded."""
    with (make_engine or Engine)(mode="strict" if strict else "lax") as engine:
        for error in engine.plugin_errors:
            output.say(f"warning: {error}")
        yield engine


def found(engine: Engine, name: str) -> ToolImplementation:
    """Return the tool that *name* means, whether or not it may be called.

    Raises:
        ToolNotFound: There is none; near names stand in it.
    """
    tool = engine.tools.get(from_wire(name))
    if tool is None:
        raise ToolNotFound(shown(name), near(name, engine.tools))
    return tool
