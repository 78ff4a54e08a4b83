"""Looks at what is around the command: the terminal, and the variables of the environment that change what it does."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Final

from neuroscript.cli.doctor.check import Look
from neuroscript.cli.env.choices import NO_AUTOLOAD, ONLY
from neuroscript.io.text import is_terminal

VARIABLES: Final = (
    *(ONLY, NO_AUTOLOAD, "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"),
    *("NO_COLOR", "COLUMNS", "PYTHONPATH", "PYTHONIOENCODING"),
)
"""What changes what a command does."""


def terminal(options: Namespace) -> Iterator[Look]:
    """Look whether somebody can be asked."""
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    found = [name for name, stream in streams.items() if is_terminal(stream)]
    if found:
        yield Look("terminal", "ok", f"at {', '.join(found)}: approvals can be asked for")
    else:
        text = "none at stdin, stdout and stderr: nobody can be asked for an approval"
        yield Look("terminal", "optional", text, "neuroscript call --suspend DIR …")


def environment(options: Namespace) -> Iterator[Look]:
    """Tell which variables are set, and never to what."""
    for name in VARIABLES:
        if name in os.environ:
            yield Look(name, "ok", "is set" if os.environ[name] else "is set, and is empty")
