"""Check what prevents a program from outliving its call on this machine."""

from __future__ import annotations

import os
import sys
from typing import Final

from neuroscript_shell.programs import SandboxFence
from neuroscript_shell.running import Confinement, Launch, run

TIMEOUT_SECONDS: Final = 10.0
"""Timeout of the check, whose program does nothing."""

EXPLANATIONS: Final[dict[Confinement, str]] = {
    "namespace": "each program runs in a PID namespace, and no process of it outlives the call",
    "landlock": "Landlock keeps each program from signalling its supervisor; "
    "only resource limits and cgroups could still stop that",
    "tree": "a program that kills or stops its supervisor can outlive the call: "
    "the system offers neither unprivileged user namespaces nor Landlock with signals (Linux 6.12)",
}

NO_FENCE: Final = SandboxFence("", (-1, -1))
"""A fence around no directory, because the check runs nothing from a caller."""


def check() -> tuple[bool, str]:
    """Run a program that does nothing, and return whether the kernel stops programs from outliving a call, and how.

    Raises:
        ToolFailed: No program can be run.
    """
    confinement = confinement_here()
    return confinement != "tree", EXPLANATIONS[confinement]


def confinement_here() -> Confinement:
    """Return what confines the programs that this process runs.

    Raises:
        ToolFailed: No program can be run.
    """
    words = ("python", "-I", "-S", "-c", "")
    launch = Launch(sys.executable, words, {}, os.path.abspath(os.sep), "", TIMEOUT_SECONDS, 0)
    return run(launch, NO_FENCE, lambda: False).confinement
