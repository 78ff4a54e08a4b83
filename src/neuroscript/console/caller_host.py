"""The input and output of tools that a browser runs: their progress, log and output go to the page of the call.

Which call that is, is known from the context: each activity sets a listener, and the threads of its tools inherit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from logging import DEBUG, ERROR, INFO, WARNING
from typing import Any, Final, Protocol

import attrs

from neuroscript.errors import PromptError
from neuroscript.runtime.host import Host, Progress
from neuroscript.runtime.redacting_proxies import message_of


class CallListener(Protocol):
    """Receives what the tools of one activity report, from any thread."""

    def progress(self, progress: Progress) -> None:
        """Receive the progress of a call."""

    def log(self, level: str, text: str) -> None:
        """Receive a message that a tool has logged or printed.

        Args:
            level: ``debug``, ``info``, ``warning``, ``error``, or ``output`` for what it has printed.
        """


_LISTENER: Final[ContextVar[CallListener | None]] = ContextVar("neuroscript.console.listener", default=None)


@contextmanager
def listening(listener: CallListener) -> Iterator[None]:
    """Send what the tools report that are called within the block, also on other threads, to a listener."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def caller_host(host: Host) -> Host:
    """Return the host for the session of a browser.

    Tools cannot prompt on the terminal of the server, and print to the page of their call. Without a listener, their
    progress, log and output go where those of the engine's host go.
    """
    return Host(
        logger=ListeningLogger(host, ""),
        stdout=ListeningOutput(host),  # type: ignore[arg-type]
        stderr=host.stderr,
        prompter=NoPrompter(),
        progress=ListeningProgress(host),
    )


class NoPrompter:
    """Refuses prompts: the user of a browser cannot answer them yet."""

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Raise a `PromptError`."""
        raise PromptError("tools that the web console runs cannot prompt a user", code="prompt.noninteractive")


@attrs.frozen
class ListeningProgress:
    """Passes progress to the listener, and to what receives it otherwise."""

    host: Host

    def __call__(self, progress: Progress) -> None:
        """Report the progress of a call."""
        listener = _LISTENER.get()
        if listener is not None:
            listener.progress(progress)
        if self.host.progress is not None:
            self.host.progress(progress)


@attrs.frozen
class ListeningOutput:
    """A text stream whose text goes to the listener, or else to the output of the host."""

    host: Host

    def write(self, text: str) -> int:
        """Write text, and return the number of characters."""
        listener = _LISTENER.get()
        if listener is None:
            return self.host.output.write(text)
        if text.strip():
            listener.log("output", text.rstrip("\n"))
        return len(text)

    def flush(self) -> None:
        """Flush the output of the host."""
        if _LISTENER.get() is None:
            self.host.output.flush()


@attrs.frozen
class ListeningLogger:
    """A logger that passes messages to the listener, and to the logger of the host."""

    host: Host
    tool: str

    def getChild(self, suffix: str) -> ListeningLogger:  # noqa: N802
        """Return the logger of a tool."""
        return ListeningLogger(self.host, f"{self.tool}.{suffix}" if self.tool else suffix)

    def debug(self, msg: object, *args: object, **options: Any) -> None:
        """Log a message at level DEBUG."""
        self.log(DEBUG, msg, *args, **options)

    def info(self, msg: object, *args: object, **options: Any) -> None:
        """Log a message at level INFO."""
        self.log(INFO, msg, *args, **options)

    def warning(self, msg: object, *args: object, **options: Any) -> None:
        """Log a message at level WARNING."""
        self.log(WARNING, msg, *args, **options)

    def error(self, msg: object, *args: object, **options: Any) -> None:
        """Log a message at level ERROR."""
        self.log(ERROR, msg, *args, **options)

    def log(self, level: int, msg: object, *args: object, **options: Any) -> None:
        """Log a message at a level."""
        name = _NAMES[max((each for each in _NAMES if each <= level), default=DEBUG)]
        listener = _LISTENER.get()
        if listener is not None:
            listener.log(name, message_of(msg, args))
        getattr(self.host.logger_of(self.tool), name)(msg, *args, **options)


_NAMES: Final = {DEBUG: "debug", INFO: "info", WARNING: "warning", ERROR: "error"}
