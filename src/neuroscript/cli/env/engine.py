"""The engine of one command: made when it is needed, closed when the command ends, its broken plugins told of."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, Literal, TextIO

from neuroscript.cli.env.choices import NO_AUTOLOAD, choice, files, warn
from neuroscript.cli.env.mcp_servers import join, lent, tables
from neuroscript.cli.env.policy import stated, without_effect
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.logger import logger_for
from neuroscript.cli.terminal.output import Output
from neuroscript.engine.engine import Engine
from neuroscript.errors import PluginError, ToolNotFound
from neuroscript.io.near_names import near
from neuroscript.io.text import shown, shown_path
from neuroscript.io.user_cache import plugins_directory
from neuroscript.names import from_wire
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.runtime.host import Host
from neuroscript.runtime.interfaces import LLM
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import by_needs

MakeEngine = Callable[..., Engine]
Mode = Literal["lax", "strict"]

LONG: Final = 19
"""How many digits no number of bytes has."""

RUNNING: Final = ("call", "execute", "run", "approve", "ask", "chat", "mcp", "worker", "runs")
"""The commands that run tools as the words permit it."""


@contextmanager
def opened(
    make_engine: MakeEngine | None,
    output: Output,
    options: Namespace,
    asking: Callable[..., Any] | None = None,
    llm: LLM | None = None,
) -> Iterator[Engine]:
    """Lend an engine as *options* describe it, and warn of each plugin that could not be loaded.

    Args:
        asking: Who is asked for approvals; None is whom *options* name.
        llm: The model that is lent to tools which may use one.

    Raises:
        UsageError: The sandbox that they name does not exist, a trail can not be kept, or a number is none.
        PluginError: A plugin that *options* name can not be loaded.
        SandboxError: The sandbox that they name can not be used.
        SpecError: A grant or a pattern is none, or the policy file is wrong.
    """
    settings = vars(options)
    policy = _policy(settings, output, asking)
    servers = tables(settings, make_engine is None, output)
    mode: Mode = "strict" if settings.get("strict") else "lax"
    with _stdin_for_prompts(settings) as stdin, _kept(settings, output) as keywords:
        sandbox = _sandbox(settings)
        logger = logger_for(output)
        host = Host(sandbox_dir=sandbox, stdin=stdin, llm=llm, secrets=lent(servers), logger=logger)
        keywords = {**keywords, **choice(settings), **_locked(settings), **_spilling(settings)}
        warn(keywords.get("without", []), output)
        with (make_engine or Engine)(mode=mode, policy=policy, host=host, **keywords) as engine:
            for error in engine.plugin_errors:
                _warn_of_plugin(error, output)
            for file in files(settings):
                engine.load_plugin(file)
            for directory in directories(settings, is_own=make_engine is None):
                for error in engine.load_plugins(directory):
                    _warn_of_plugin(error, output)
            if servers:
                join(engine, servers, output)
            if settings["command"] in RUNNING:
                _warn(without_effect(settings, engine), output)
            yield engine


def _warn_of_plugin(error: PluginError, output: Output) -> None:
    output.say(f"warning: {error}")
    output.say_traceback(error)


def _sandbox(settings: Mapping[str, Any]) -> str | None:
    """Return the sandbox that the options name, if the command runs tools; it must exist unless they create it.

    Raises:
        UsageError: It does not exist, or `--create` has nothing to create.
    """
    directory: str | None = settings.get("sandbox")
    creates = settings.get("create", False)
    if directory is None:
        if creates:
            raise UsageError("--create creates the directory of --sandbox; add --sandbox DIR")
        return None
    if settings["command"] == "policy":
        return None
    if not creates and not os.path.exists(directory):  # noqa: PTH110
        where = shown_path(directory)
        raise UsageError(f"--sandbox: {where} does not exist; correct the path, or add --create to create it")
    return directory if _runs(settings) else None


def _locked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of an engine that takes nothing but what is locked, where that is wanted."""
    if settings.get("locked") is None:
        return {}
    from neuroscript.config.lock_file import Lock

    return {"lock": Lock.read(settings["locked"]), "strict": True}


def _spilling(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of an engine that writes large results to files, where that is wanted."""
    given = settings.get("spill")
    if given is None:
        return {}
    from neuroscript.calls.spill import Spill

    if not (given.isascii() and given.isdigit() and len(given) < LONG):
        raise UsageError("--spill takes a number of bytes, such as 100000")
    return {"spill": Spill(over=int(given), most=max(int(given), Spill().most))}


def directories(settings: Mapping[str, Any], is_own: bool) -> list[str]:
    """Return the directories of plugins: the user's own, if there is one, and those that are named.

    What is locked are distributions, so with a lock the user's own directory is left out, for nobody names it.

    Args:
        is_own: Whether the command is ours; that of a host loads what the host says.
    """
    is_wanted = is_own and settings.get("locked") is None and not os.environ.get(NO_AUTOLOAD)
    own = plugins_directory() if is_wanted else None
    is_there = own is not None and os.path.isdir(own)  # noqa: PTH112
    return [*([own] if own is not None and is_there else []), *(settings.get("plugins_dir") or ())]


def _policy(settings: Mapping[str, Any], output: Output, asking: Callable[..., Any] | None) -> ExecutionPolicy:
    if "allow" not in settings:
        return ExecutionPolicy()
    if asking is None:
        from neuroscript.cli.env.approvers import approver

        asking = approver(settings, output)
    return stated(settings, asking)


def _kept(settings: Mapping[str, Any], output: Output) -> AbstractContextManager[dict[str, Any]]:
    """Open what is to be kept of calls; where none is made, nothing is."""
    is_asked = any(settings.get(name) is not None for name in ("audit", "audit_key", "record"))
    if not is_asked or not _runs(settings):
        return nullcontext({})
    from neuroscript.cli.env.audit import kept

    return kept(settings, output)


def _runs(settings: Mapping[str, Any]) -> bool:
    """Tell whether the command runs tools, or only looks at what would be: then it makes no sandbox."""
    return not settings.get("dry_run") and settings["command"] != "policy"


def _warn(words: Iterable[str], output: Output) -> None:
    idle = ", ".join(map(shown, words))
    if idle:
        output.say(f"warning: no tool here is touched by {idle}")


def _stdin_for_prompts(settings: Mapping[str, Any]) -> AbstractContextManager[TextIO | None]:
    """Lend what answers come from: nothing, where the command itself reads the process's input."""
    if "-" in (settings.get("file"), settings.get("input_json"), settings.get("prompt")):
        from pathlib import Path

        return Path(os.devnull).open()
    return nullcontext()


def meant(engine: Engine, name: str) -> ToolImplementation | None:
    """Return the tool that *name* means, now or since it had another one, or None."""
    asked = from_wire(name)
    return engine.tools.get(engine.aliases.get(asked, asked))


def found(engine: Engine, name: str, *, is_own: bool) -> ToolImplementation:
    """Return the tool that *name* means, whether or not it may be called.

    Args:
        is_own: Whether the command is ours; the command of a host loads what the host decides.

    Raises:
        ToolNotFound: There is none; near names stand in it, and its notes say what else helps.
    """
    tool = meant(engine, name)
    if tool is None:
        from neuroscript.cli.terminal.tool_hints import tool_hints

        error = ToolNotFound(shown(from_wire(name)), near(name, by_needs(engine.tools.values())))
        for hint in tool_hints(name, engine.tools, is_own=is_own):
            error.add_note(hint)
        raise error
    return tool


def old_names(engine: Engine, tool: ToolImplementation) -> list[str]:
    """Return the names that a tool had before, by which it is still found."""
    return sorted(old for old, name in engine.aliases.items() if name == tool.name)
