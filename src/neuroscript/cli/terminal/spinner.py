"""What a terminal shows while a model is waited for: a turning sign where rich is installed, else nothing."""

from __future__ import annotations

import sys
from typing import Any, Final

import attrs

from neuroscript.io.text import is_terminal

TEXT: Final = "waiting for the model"


@attrs.define
class Waiting:
    """A sign on the terminal that the sentences go to; it is gone before anything else is written there.

    Attributes:
        wanted: Whether there is to be one.
    """

    wanted: bool
    _live: Any = None

    def start(self) -> None:
        """Show it, where somebody looks."""
        if self.wanted and self._live is None and is_terminal(sys.stderr):
            self._live = _sign()
            if self._live is not None:
                self._live.start()

    def stop(self) -> None:
        """Take it away, if it is there."""
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
