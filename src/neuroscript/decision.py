"""Whether a call may run, and what decided it.

Source: contract section 5; upstream's makers ask for such a preflight (upstream.md part 11).
"""

from __future__ import annotations

from typing import Final

import attrs

from neuroscript.checks import FLAG, STRING, STRINGS, instance, one_of, require, require_fields
from neuroscript.errors import RETRIES, CallError, PolicyError, Retry

REFUSAL: Final = instance(CallError)
RETRY: Final = one_of(*RETRIES)


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
        remedy: What the host can change so that the call may run, or ``""``; for people, not for a model.
        needs: Everything that it lacks, with scopes.
        grants: The narrowest grants that would permit it, where it lacks some.
    """

    tool: str
    allowed: bool
    rule: str = ""
    code: str = ""
    need: str = ""
    text: str = ""
    retry: Retry = "never"
    asks: bool = False
    remedy: str = ""
    needs: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        texts = dict.fromkeys(("tool", "rule", "code", "need", "text", "remedy"), STRING)
        require_fields("decision", self, allowed=FLAG, retry=RETRY, asks=FLAG, needs=STRINGS, grants=STRINGS, **texts)

    @classmethod
    def of(cls, error: CallError, tool: str = "") -> Decision:
        """Return the refusal that an error is."""
        require("decision", error=(error, REFUSAL), tool=(tool, STRING))
        text = str(error).removeprefix(f"{error.tool}: ")
        decision = cls(error.tool or tool, False, code=error.code, text=text, retry=error.retry, remedy=error.remedy)
        if not isinstance(error, PolicyError):
            return decision
        return attrs.evolve(decision, rule=error.rule, need=error.need, needs=error.needs, grants=error.grants)
