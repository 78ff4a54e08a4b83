"""Remedies of refused calls: what to change, as the command line, a policy file and Python write it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs

from neuroscript.errors import CallError
from neuroscript.policy.execution_policy import Decision

Refused = CallError | Decision
"""A refused call: its error, or the decision about it."""


@attrs.frozen
class Remedy:
    """What a host can change so that a refused call may run.

    Attributes:
        text: What to do, as a sentence without the details below.
        option: The options of the command line, or ``""`` if none helps.
        toml: The lines of a policy file, or ``""``.
        python: The arguments of `ExecutionPolicy`, or ``""``.
    """

    text: str
    option: str = ""
    toml: str = ""
    python: str = ""


def remedy_of(error: Refused) -> Remedy | None:
    """Return what permits a refused call, or None if no setting of a policy does."""
    grants = tuple(getattr(error, "grants", ()))
    rule = getattr(error, "rule", "")
    match error.code:
        case "policy.capability" if grants:
            return _list_remedy("grant what it needs", "grants", grants, options("--grant", grants))
        case "policy.trust":
            return Remedy("trust the tool", "--trusted", "[policy]\ntrusted = true", "trusted=True")
        case "policy.approval" if rule == "otherwise":
            return _list_remedy("provide an approver, or allow the tool", "allow", (error.tool,), "")
        case "policy.approval":
            option = options("--preapproved", [error.tool])
            text = "provide an approver, or let the tool run without an approval"
            return _list_remedy(text, "preapproved", (error.tool,), option)
        case "policy.not_allowed":
            option = options("--allow", [error.tool])
            return _list_remedy("allow the tool, in addition to what is allowed", "allow", (error.tool,), option)
        case "policy.denied":
            return Remedy(f"remove the pattern {rule!r} from deny")
        case "policy.flow":
            return Remedy("change the rule about information flow that decides")
        case code if rule.startswith("limits") or code.startswith("limit."):
            return Remedy("raise the limit, or start a new session")
    return None


def _list_remedy(text: str, field: str, values: Sequence[str], option: str) -> Remedy:
    """Return the remedy that adds values to a list of a policy."""
    items = ", ".join(map(toml_string, values))
    return Remedy(text, option, f"[policy]\n{field} = [{items}]", f"{field}={tuple(values)!r}")


def toml_string(text: str) -> str:
    r"""Return a string as TOML writes it.

    >>> print(toml_string('a "b"'))
    "a \"b\""
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


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
