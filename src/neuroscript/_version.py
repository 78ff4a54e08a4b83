"""The version of the Runtime, and the check whether a toolset is compatible with it."""

from __future__ import annotations

from typing import Any, Final

RUNTIME_API: Final = (1, 2)
"""The version of `Runtime`. A new member increments the second number, a changed member the first."""

FIRST_API: Final = (1, 0)
"""The version of toolsets that do not declare a ``runtime_api``."""


def is_api(version: object) -> bool:
    """Return whether *version* is a valid version of a Runtime: two non-negative integers."""
    return type(version) is tuple and len(version) == 2 and all(type(part) is int and part >= 0 for part in version)


def misfit(declared: Any) -> str:
    """Return why a toolset for the Runtime *declared* is incompatible with this one, or ``""``."""
    if not is_api(declared):
        return "declares a runtime_api that is not a pair of integers"
    if declared[0] == RUNTIME_API[0] and declared[1] <= RUNTIME_API[1]:
        return ""
    wanted, here = (".".join(map(str, version)) for version in (declared, RUNTIME_API))
    return f"requires runtime API {wanted}, but this is {here}"
