"""Options that a user can add so that a refused or failed call succeeds."""

from __future__ import annotations

from collections.abc import Sequence

from neuroscript.errors import CallError
from neuroscript.policy.execution_policy import Decision

RefusedCommand = CallError | Decision


def advice(error: RefusedCommand, *, shows_tracebacks: bool = True) -> str:
    """Return one message with the error of a call and the option that permits it, or ``""``.

    Args:
        shows_tracebacks: Whether the traceback of a failed tool is printed anyway.
    """
    todo = action(error, shows_tracebacks=shows_tracebacks)
    return f"{_reason(error)}; {todo}" if todo else error.remedy


def action(error: RefusedCommand, *, shows_tracebacks: bool = True) -> str:
    """Return the option that permits a call, or ``""`` if no option helps."""
    grants = getattr(error, "grants", ())
    match error.code:
        case "policy.capability" if grants:
            return f"grant it with {options('--grant', grants)}"
        case "policy.trust":
            return "pass --trusted"
        case "policy.approval" if getattr(error, "rule", "") == "otherwise":
            return f"approve it at a terminal, or add {shell_quote(error.tool)} to allow in the policy file"
        case "policy.approval":
            return f"approve it at a terminal, or pass {options('--preapproved', [error.tool])}"
        case "policy.not_allowed":
            return f"add {shell_quote(error.tool)} to allow in the policy file, and to --allow if you use that option"
        case _ if not shows_tracebacks and getattr(error, "is_logged", False):
            return "add --traceback to see where"
    return ""


def _reason(error: RefusedCommand) -> str:
    if error.code == "policy.capability":
        return error.remedy.removesuffix(f"; {_python_grants(error)}")
    if error.code == "policy.approval":
        return f"{error.tool}: needs approval"
    if error.code == "policy.not_allowed":
        return f"{error.tool}: not matched by any allow pattern"
    return str(error) if isinstance(error, CallError) else f"{error.tool}: {error.text}"


def _python_grants(error: RefusedCommand) -> str:
    return f"grant it with grants={getattr(error, 'grants', ())!r}"


def options(name: str, values: Sequence[str]) -> str:
    """Return an option with each of several values, quoted for a shell.

    >>> print(options("--grant", ["fs:read:a/**", r"fs:read:it's\\*"]))
    --grant 'fs:read:a/**' --grant 'fs:read:it'"'"'s\\*'
    """
    return " ".join(f"{name} {shell_quote(each)}" for each in values)


def shell_quote(word: str) -> str:
    """Return a string in single quotes for a shell."""
    inner = word.replace("'", "'\"'\"'")
    return f"'{inner}'"
