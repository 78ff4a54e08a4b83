"""Test kit for authors of toolsets: a scripted Runtime, contract checks for every tool, and a fuzzer.

Names are imported on first use; hypothesis is loaded only by `fuzz_toolset`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy

if TYPE_CHECKING:
    from neuroscript.testing.checks.check import LAWS, LawCase, LawsBroken, Report, check_toolset, laws_of
    from neuroscript.testing.checks.check_case import Law, Violation
    from neuroscript.testing.checks.setup import Setup
    from neuroscript.testing.checks.trials import DOORS
    from neuroscript.testing.fake import FakeRuntime, ScriptError
    from neuroscript.testing.fuzzing import fuzz_toolset

__all__ = [
    "DOORS",
    "LAWS",
    "FakeRuntime",
    "Law",
    "LawCase",
    "LawsBroken",
    "Report",
    "ScriptError",
    "Setup",
    "Violation",
    "check_toolset",
    "fuzz_toolset",
    "laws_of",
]

__getattr__ = lazy(
    __name__,
    {
        "checks.check": "LAWS LawCase LawsBroken Report check_toolset laws_of",
        "checks.check_case": "Law Violation",
        "checks.setup": "Setup",
        "checks.trials": "DOORS",
        "fake": "FakeRuntime ScriptError",
        "fuzzing": "fuzz_toolset",
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
