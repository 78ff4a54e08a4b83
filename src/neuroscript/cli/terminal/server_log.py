"""The log of a server on stderr: warnings of tools, refusals with the option that permits the call, and tracebacks."""

from __future__ import annotations

import logging

from neuroscript.cli.terminal.logger import CommandLogger
from neuroscript.cli.terminal.output import Output
from neuroscript.cli.terminal.remedies import advice
from neuroscript.io.user_cache import APPLICATION
from neuroscript.policy.refusals import Refusal


class ServerHandler(logging.Handler):
    """A handler that writes messages like `CommandLogger`, and adds the required options to refusals."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._logger = CommandLogger(output)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        message = record.getMessage()
        refusal = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if isinstance(refusal, Refusal):
            message = advice(refusal.error) or message
        self._logger.getChild(record.name.rpartition(".")[2]).log(record.levelno, "%s", message)


def server_logger(output: Output) -> logging.Logger:
    """Return the logger of this application at level INFO, with a handler that writes to *output*."""
    logger = logging.getLogger(APPLICATION)
    logger.addHandler(ServerHandler(output))
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return logger
