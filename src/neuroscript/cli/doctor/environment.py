"""Checks of the kernel, of the terminal, and of the environment variables that affect a command."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import Final

from neuroscript.cli.doctor.check import Finding
from neuroscript.cli.env.choices import NO_AUTOLOAD_VARIABLE, PLUGINS_VARIABLE
from neuroscript.io.text import is_terminal
from neuroscript.isolation.confinement import available

VARIABLES: Final = (
    *(PLUGINS_VARIABLE, NO_AUTOLOAD_VARIABLE, "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"),
    *("NO_COLOR", "COLUMNS", "PYTHONPATH", "PYTHONIOENCODING"),
)
"""The variables that affect a command."""


def isolation(options: Namespace) -> Iterator[Finding]:
    """Check which layers of the confinement of isolated tools work here."""
    reasons = available()
    missing = [name for name, reason in reasons.items() if reason]
    if not missing:
        yield Finding("confinement", "ok", "all layers work here")
    else:
        are = "is" if len(missing) == 1 else "are"
        text = f"{', '.join(missing)} {are} not available here ({reasons[missing[0]]})"
        yield Finding("confinement", "optional", text, "neuroscript isolation check")


def terminal(options: Namespace) -> Iterator[Finding]:
    """Check whether the user can be asked for approval."""
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    found = [name for name, stream in streams.items() if is_terminal(stream)]
    if found:
        yield Finding("terminal", "ok", f"{', '.join(found)}: tools can ask for approval")
    else:
        text = "stdin, stdout and stderr are not terminals, so tools cannot ask for approval"
        yield Finding("terminal", "optional", text, "neuroscript call --suspend DIR …")


def environment(options: Namespace) -> Iterator[Finding]:
    """Report the variables that are set, without their values."""
    for name in VARIABLES:
        if name in os.environ:
            yield Finding(name, "ok", "is set" if os.environ[name] else "is set but empty")
