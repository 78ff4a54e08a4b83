"""Options that a user can add so that a refused or failed call succeeds."""

from __future__ import annotations

from neuroscript.engine.explanation.remedies import Refused, remedy_of, shell_quote
from neuroscript.errors import CallError


def advice(error: Refused, *, shows_tracebacks: bool = True) -> str:
    """Return one message with the error of a call and the option that permits it, or ``""``.

    Args:
        shows_tracebacks: Whether the traceback of a failed tool is printed anyway.
    """
    todo = action(error, shows_tracebacks=shows_tracebacks)
    return f"{_reason(error)}; {todo}" if todo else error.remedy


def action(error: Refused, *, shows_tracebacks: bool = True) -> str:
    """Return the option that permits a call, or ``""`` if no option helps."""
    remedy = remedy_of(error)
    option = "" if remedy is None else remedy.option
    match error.code:
        case "policy.capability" if option:
            return f"grant it with {option}"
        case "policy.trust":
            return f"pass {option}"
        case "policy.approval" if option:
            return f"approve it at a terminal, or pass {option}"
        case "policy.approval":
            return f"approve it at a terminal, or add {shell_quote(error.tool)} to allow in the policy file"
        case "policy.not_allowed":
            return f"add {shell_quote(error.tool)} to allow in the policy file, and to --allow if you use that option"
        case _ if not shows_tracebacks and getattr(error, "is_logged", False):
            return "add --traceback to see where"
    return ""


def _reason(error: Refused) -> str:
    if error.code == "policy.capability":
        return error.remedy.removesuffix(f"; {_python_grants(error)}")
    if error.code == "policy.approval":
        return f"{error.tool}: needs approval"
    if error.code == "policy.not_allowed":
        return f"{error.tool}: not matched by any allow pattern"
    return str(error) if isinstance(error, CallError) else f"{error.tool}: {error.text}"


def _python_grants(error: Refused) -> str:
    return f"grant it with grants={getattr(error, 'grants', ())!r}"
