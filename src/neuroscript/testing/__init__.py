"""Test kit for authors of toolsets: a scripted Runtime, contract checks for every tool, and a fuzzer.

Names are imported on first use; hypothesis is loaded only by `fuzz_toolset`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.testing.checks.check import CHECKS, CheckCase, ChecksFailed, Report, check_toolset, checks_for
    from neuroscript.testing.checks.check_case import ContractCheck, Violation
    from neuroscript.testing.checks.setup import Setup
    from neuroscript.testing.checks.trials import ENTRY_POINTS
    from neuroscript.testing.fake import FakeRuntime, ScriptError
    from neuroscript.testing.fuzzing import fuzz_toolset
    from neuroscript.testing.installed import installed_toolsets

__all__ = [
    "CHECKS",
    "ENTRY_POINTS",
    "CheckCase",
    "ChecksFailed",
    "ContractCheck",
    "FakeRuntime",
    "Report",
    "ScriptError",
    "Setup",
    "Violation",
    "check_toolset",
    "checks_for",
    "fuzz_toolset",
    "installed_toolsets",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "checks.check": "CHECKS CheckCase ChecksFailed Report check_toolset checks_for",
        "checks.check_case": "ContractCheck Violation",
        "checks.setup": "Setup",
        "checks.trials": "ENTRY_POINTS",
        "fake": "FakeRuntime ScriptError",
        "fuzzing": "fuzz_toolset",
        "installed": "installed_toolsets",
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
