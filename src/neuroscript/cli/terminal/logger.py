"""The log of one command on stderr: warnings and errors of tools, and tracebacks if they are enabled."""

from __future__ import annotations

import sys
from typing import Any, Final

from neuroscript.cli.terminal.output import Output
from neuroscript.io.tracebacks import LOGGER
from neuroscript.policy.refusals import LOGGER as REFUSALS
from neuroscript.policy.refusals import Refusal
from neuroscript.runtime.redacting_proxies import message_of

WARNING: Final = 30
"""The lowest level that is shown."""

MAX_REFUSALS: Final = 20
"""Maximum refusals stored for a command that reports them when it ends."""

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "exception": 40, "critical": 50}


def logger_for(output: Output) -> Any:
    """Return the logger of a command, or None if the application has configured `logging` itself."""
    logging = sys.modules.get("logging")
    if logging is not None and logging.getLogger("neuroscript").hasHandlers():
        return None
    if output.is_server:
        from neuroscript.cli.terminal.server_log import server_logger

        return server_logger(output)
    return CommandLogger(output)


class CommandLogger:
    """The subset of `logging.Logger` that a command needs; it escapes control characters."""

    def __init__(self, output: Output, name: str = "") -> None:
        self._output = output
        self._name = name

    def getChild(self, suffix: str) -> CommandLogger:  # noqa: N802
        """Return the logger of a tool, or of tracebacks."""
        return CommandLogger(self._output, suffix)

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802
        """Return whether messages of a level are shown."""
        if self._name == REFUSALS:
            return True
        return level >= WARNING and (self._name != LOGGER or self._output.shows_tracebacks)

    def __getattr__(self, name: str) -> Any:
        """Return the method that logs a message of one level."""
        if name not in LEVELS:
            raise AttributeError(name)
        return lambda msg, *args, **_: self.log(LEVELS[name], msg, *args)

    def log(self, level: int, msg: object, *args: object, **_: Any) -> None:
        """Write a message."""
        if not self.isEnabledFor(level):
            return
        message = message_of(msg, args)
        if self._name == LOGGER:
            self._output.say_lines(message)
        elif self._name != REFUSALS or self._output.is_server:
            self._output.say(message)
        elif args and isinstance(args[0], Refusal) and len(self._output.refusals) < MAX_REFUSALS:
            self._output.refusals.append(args[0].error)
