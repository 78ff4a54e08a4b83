"""The engine of one command: made when it is needed, closed when the command ends, its broken plugins told of."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, TextIO

from neuroscript.cli.output import Output
from neuroscript.display import shown
from neuroscript.engine import Engine
from neuroscript.errors import ToolNotFound
from neuroscript.host import Host
from neuroscript.names import from_wire, near
from neuroscript.policy import ExecutionPolicy
from neuroscript.tools import ToolImplementation

MakeEngine = Callable[..., Engine]
Mode = Literal["lax", "strict"]


@contextmanager
def opened(make_engine: MakeEngine | None, output: Output, options: Namespace) -> Iterator[Engine]:
    """Lend an engine as *options* describe it, and warn of each plugin that could not be loaded.

    Raises:
        PluginError: A plugin that *options* name can not be loaded.
        SandboxError: The sandbox that they name can not be used.
        SpecError: A grant or a pattern is none.
    """
    settings = vars(options)
    policy = ExecutionPolicy(
        allow=settings.get("allow") or ("*",),
        deny=settings.get("deny") or (),
        grants=settings.get("grant") or (),
        trusted=settings.get("trusted", False),
    )
    mode: Mode = "strict" if settings.get("strict") else "lax"
    with _stdin_for_prompts(settings) as stdin:
        host = Host(sandbox_dir=settings.get("sandbox"), stdin=stdin)
        with (make_engine or Engine)(mode=mode, policy=policy, host=host) as engine:
            for error in engine.plugin_errors:
                output.say(f"warning: {error}")
            for file in settings.get("plugin") or ():
                engine.load_plugin(file)
            yield engine


def _stdin_for_prompts(settings: Mapping[str, Any]) -> AbstractContextManager[TextIO | None]:
    """Lend what answers come from: nothing, where the command itself reads the process's input."""
    if "-" in (settings.get("file"), settings.get("input_json")):
        from pathlib import Path

        return Path(os.devnull).open()
    return nullcontext()


def found(engine: Engine, name: str) -> ToolImplementation:
    """Return the tool that *name* means, whether or not it may be called.

    Raises:
        ToolNotFound: There is none; near names stand in it.
    """
    tool = engine.tools.get(from_wire(name))
    if tool is None:
        raise ToolNotFound(shown(name), near(name, engine.tools))
    return tool
