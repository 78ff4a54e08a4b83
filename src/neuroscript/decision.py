"""Whether a call may run, and what decided it.

Source: contract section 5; upstream's makers ask for such a preflight (upstream.md part 11).
"""

from __future__ import annotations

import attrs

from neuroscript.errors import CallError, PolicyError, Retry


@attrs.frozen
class Decision:
    """Whether a call may run, and what decided it.

    Attributes:
        tool: The canonical name of the tool, or the name that was asked for where there is none.
        allowed: Whether it may run.
        rule: The pattern, the word or the hook that decided; of a call that may run, the pattern that allows it.
        code: Of the refusal, for example ``policy.denied``, or ``""``.
        need: What the call needs and was not permitted, or ``""``.
        text: The refusal in words, or ``""``.
        retry: Who can make the call succeed.
        asks: Whether somebody has to approve it first.
    """

    tool: str
    allowed: bool
    rule: str = ""
    code: str = ""
    need: str = ""
    text: str = ""
    retry: Retry = "never"
    asks: bool = False

    @classmethod
    def of(cls, error: CallError, tool: str = "") -> Decision:
        """Return the refusal that an error is."""
        rule, need = (error.rule, error.need) if isinstance(error, PolicyError) else ("", "")
        text = str(error).removeprefix(f"{error.tool}: ")
        return cls(error.tool or tool, False, rule, error.code, need, text, error.retry)
