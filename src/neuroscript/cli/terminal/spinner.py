"""A spinner on the terminal while a model is working, if rich is installed."""

from __future__ import annotations

import sys
from typing import Any, Final

import attrs

from neuroscript.io.text import is_terminal

TEXT: Final = "waiting for the model"


@attrs.define
class Spinner:
    """A spinner on stderr, which must be stopped before anything else is written there.

    Attributes:
        wanted: Whether the spinner is enabled.
    """

    wanted: bool
    _live: Any = None

    def start(self) -> None:
        """Show the spinner if it is enabled and stderr is a terminal."""
        if self.wanted and self._live is None and is_terminal(sys.stderr):
            self._live = _sign()
            if self._live is not None:
                self._live.start()

    def stop(self) -> None:
        """Remove the spinner if it is shown."""
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()


def _sign() -> Any:
    try:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner
    except ModuleNotFoundError:
        return None
    console = Console(stderr=True)
    return Live(Spinner("dots", TEXT), console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
