"""``neuroscript completion``: shell completion with argcomplete, which is imported only here."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from neuroscript._imports import missing_extra
from neuroscript.cli.env.choices import plugin_keywords
from neuroscript.cli.env.engine import MakeEngine, find_tool
from neuroscript.cli.parser import SHELLS, build
from neuroscript.cli.terminal.exit_codes import OK, UsageError
from neuroscript.cli.terminal.output import Output
from neuroscript.engine.engine import Engine
from neuroscript.io.text import quote_untrusted


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Write the completion script of a shell and return the exit code.

    Raises:
        UsageError: The shell is unknown, or argcomplete is not installed.
    """
    if options.shell not in SHELLS:
        raise UsageError(f"unknown shell {quote_untrusted(options.shell)}; choose from {', '.join(SHELLS)}")
    try:
        from argcomplete.shell_integration import shellcode
    except ModuleNotFoundError as error:
        raise UsageError(str(missing_extra("completion needs argcomplete", "cli", error))) from None
    script = shellcode(["neuroscript"], shell=options.shell)
    if options.json:
        output.json({"shell": options.shell, "script": script})
    else:
        output.write(f"{script.rstrip()}\n")
    return OK


def complete(make_engine: MakeEngine | None) -> None:
    """Write the completions that the shell requests and exit the process; return if argcomplete is not installed."""
    try:
        from argcomplete import autocomplete
    except ModuleNotFoundError:
        return

    def tool_names(prefix: str, **_: Any) -> Iterable[str]:
        with (make_engine or Engine)(**plugin_keywords({})) as engine:
            return [name for name in engine.tools if name.startswith(prefix)]

    def keys(parsed_args: Namespace, **_: Any) -> Iterable[str]:
        with (make_engine or Engine)(**plugin_keywords({})) as engine:
            tool = find_tool(engine, parsed_args.name or "")
            return [f"{arg.name}=" for arg in tool.spec.args] if tool else []

    autocomplete(build("", tool_names, keys), always_complete_options="long")
