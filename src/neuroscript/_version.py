"""Which Runtime this is, and which one a toolset was written for.

Source: contract sections 4 and 7.
"""

from __future__ import annotations

from typing import Any, Final

RUNTIME_API: Final = (1, 0)
"""The version of `Runtime`: a new member raises the second number, a changed one the first."""

FIRST_API: Final = (1, 0)
"""The `RUNTIME_API` of those who do not say which one they were written for."""


def is_api(version: object) -> bool:
    """Tell whether *version* can be that of a Runtime: two integers."""
    return type(version) is tuple and len(version) == 2 and all(type(part) is int and part >= 0 for part in version)


def misfit(declared: Any) -> str:
    """Return why what was made for the Runtime *declared* can not run with this one, or ``""``."""
    if not is_api(declared):
        return "declares a runtime_api that is not two integers"
    if declared[0] == RUNTIME_API[0] and declared[1] <= RUNTIME_API[1]:
        return ""
    wanted, here = (".".join(map(str, version)) for version in (declared, RUNTIME_API))
    return f"was made for the runtime API {wanted}, and this is {here}"
