"""The engine of one command, created from its options and closed when the command ends."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, Literal, TextIO

from neuroscript.cli.env.choices import NO_AUTOLOAD_VARIABLE, files, isolation_in_use, plugin_keywords, warn
from neuroscript.cli.env.mcp_servers import add_servers, secrets_of, tables
from neuroscript.cli.env.policy import idle_options, policy_of
from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.logger import logger_for
from neuroscript.cli.terminal.output import Output
from neuroscript.config.mcp_servers import ServerTable
from neuroscript.engine.engine import Engine
from neuroscript.errors import PluginError, ToolNotFound
from neuroscript.io.near_names import near
from neuroscript.io.text import quote_path, quote_untrusted
from neuroscript.io.user_cache import plugins_directory
from neuroscript.names import from_wire
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.runtime.host import Host
from neuroscript.runtime.interfaces import LLM
from neuroscript.tools.tool import ToolImplementation
from neuroscript.tools.toolset import by_needs

MakeEngine = Callable[..., Engine]
Mode = Literal["lax", "strict"]

MAX_SIZE_DIGITS: Final = 19
"""Digits from which a number of bytes is rejected."""

COMMANDS_THAT_RUN_TOOLS: Final = (
    "call",
    "execute",
    "run",
    "approve",
    "ask",
    "chat",
    "mcp",
    "openapi",
    "web",
    "worker",
    "runs",
)
"""The commands that run tools as far as the options permit it."""


@contextmanager
def open_engine(
    make_engine: MakeEngine | None,
    output: Output,
    options: Namespace,
    asking: Callable[..., Any] | None = None,
    llm: LLM | None = None,
    servers: tuple[ServerTable, ...] | None = None,
) -> Iterator[Engine]:
    """Open an engine as *options* describe it, and warn about each plugin that could not be loaded.

    Args:
        asking: The approver; None means the one that *options* describe.
        llm: The model provided to tools that may use one.
        servers: The MCP servers; None means those of the policy file.

    Raises:
        UsageError: The sandbox does not exist, the audit log cannot be written, or a number is invalid.
        PluginError: A plugin in *options* cannot be loaded.
        SandboxError: The sandbox cannot be used.
        SpecError: A grant, a pattern or the policy file is invalid.
    """
    settings = vars(options)
    policy = _policy(settings, output, asking)
    servers = tables(settings, make_engine is None, output) if servers is None else servers
    mode: Mode = "strict" if settings.get("strict") else "lax"
    with _stdin_for_prompts(settings) as stdin, _open_sinks(settings, output) as keywords:
        sandbox = _sandbox(settings)
        logger = logger_for(output)
        host = Host(sandbox_dir=sandbox, stdin=stdin, llm=llm, secrets=secrets_of(servers), logger=logger)
        keywords = {**keywords, **plugin_keywords(settings), **_locked(settings), **_spilling(settings)}
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
                add_servers(engine, servers, output)
            if settings["command"] in COMMANDS_THAT_RUN_TOOLS:
                _warn(idle_options(settings, engine), output)
            yield engine


def _warn_of_plugin(error: PluginError, output: Output) -> None:
    output.say(f"warning: {error}")
    output.say_traceback(error)


def _sandbox(settings: Mapping[str, Any]) -> str | None:
    """Return the sandbox directory of the options if the command runs tools; it must exist or be created.

    Raises:
        UsageError: It does not exist, or ``--create-sandbox`` is used without ``--sandbox``.
    """
    directory: str | None = settings.get("sandbox")
    creates = settings.get("create_sandbox", False)
    if directory is None:
        if creates:
            raise UsageError("--create-sandbox creates the directory of --sandbox; add --sandbox DIR")
        return None
    if settings["command"] == "policy":
        return None
    if not creates and not os.path.exists(directory):  # noqa: PTH110
        where = quote_path(directory)
        raise UsageError(f"--sandbox: {where} does not exist; correct the path, or add --create-sandbox to create it")
    return directory if _runs(settings) else None


def _locked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of an engine that loads only locked plugins, or none without ``--locked``."""
    if settings.get("locked") is None:
        return {}
    from neuroscript.config.lock_file import Lock

    return {"lock": Lock.read(settings["locked"]), "strict": True}


def _spilling(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of an engine that writes large results to files, or none without ``--spill``."""
    threshold = settings.get("spill")
    if threshold is None:
        return {}
    from neuroscript.calls.spill import Spill

    if not (threshold.isascii() and threshold.isdigit() and len(threshold) < MAX_SIZE_DIGITS):
        raise UsageError("--spill takes a number of bytes, such as 100000")
    return {"spill": Spill(threshold_bytes=int(threshold), max_bytes=max(int(threshold), Spill().max_bytes))}


def directories(settings: Mapping[str, Any], is_own: bool) -> list[str]:
    """Return the plugin directories: the user's own, if it exists, and those of ``--plugins-dir``.

    A lock file covers only distributions, so ``--locked`` excludes the user's own directory.

    Args:
        is_own: Whether this is the ``neuroscript`` command; an application's command loads no directory implicitly.
    """
    is_wanted = is_own and settings.get("locked") is None and not os.environ.get(NO_AUTOLOAD_VARIABLE)
    own = plugins_directory() if is_wanted else None
    is_there = own is not None and os.path.isdir(own)  # noqa: PTH112
    return [*([own] if own is not None and is_there else []), *(settings.get("plugins_dir") or ())]


def _policy(settings: Mapping[str, Any], output: Output, asking: Callable[..., Any] | None) -> ExecutionPolicy:
    if "allow" not in settings:
        return ExecutionPolicy(isolate=isolation_in_use(settings))
    if asking is None:
        from neuroscript.cli.env.approvers import approver

        asking = approver(settings, output)
    return policy_of(settings, asking)


def _open_sinks(settings: Mapping[str, Any], output: Output) -> AbstractContextManager[dict[str, Any]]:
    """Open the audit log and the recording of the command, or neither if the command makes no calls."""
    is_asked = any(settings.get(name) is not None for name in ("audit", "audit_key", "record"))
    if not is_asked or not _runs(settings):
        return nullcontext({})
    from neuroscript.cli.env.audit import open_sinks

    return open_sinks(settings, output)


def _runs(settings: Mapping[str, Any]) -> bool:
    """Return whether the command runs tools; if it only predicts what would happen, it needs no sandbox."""
    return not settings.get("dry_run") and settings["command"] != "policy"


def _warn(words: Iterable[str], output: Output) -> None:
    idle = ", ".join(map(quote_untrusted, words))
    if idle:
        output.say(f"warning: no available tool matches {idle}")


def _stdin_for_prompts(settings: Mapping[str, Any]) -> AbstractContextManager[TextIO | None]:
    """Open the source of answers to prompts: an empty file if the command itself reads standard input."""
    if "-" in (settings.get("file"), settings.get("input_json"), settings.get("prompt")):
        from pathlib import Path

        return Path(os.devnull).open()
    return nullcontext()


def find_tool(engine: Engine, name: str) -> ToolImplementation | None:
    """Return the tool with a name or alias in any spelling, or None."""
    requested = from_wire(name)
    return engine.tools.get(engine.aliases.get(requested, requested))


def require_tool(engine: Engine, name: str, *, is_own: bool) -> ToolImplementation:
    """Return the tool with a name or alias, whether or not it may be called.

    Args:
        is_own: Whether this is the ``neuroscript`` command, not an application's own.

    Raises:
        ToolNotFound: The tool is unknown; the error lists similar names, and its notes contain hints.
    """
    tool = find_tool(engine, name)
    if tool is None:
        from neuroscript.cli.terminal.tool_hints import tool_hints

        error = ToolNotFound(quote_untrusted(from_wire(name)), near(name, by_needs(engine.tools.values())))
        for hint in tool_hints(name, engine.tools, is_own=is_own):
            error.add_note(hint)
        raise error
    return tool


def aliases_of(engine: Engine, tool: ToolImplementation) -> list[str]:
    """Return the aliases of a tool: its former names, which still work."""
    return sorted(old for old, name in engine.aliases.items() if name == tool.name)
