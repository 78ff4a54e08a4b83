"""Decisions about calls as sentences."""

from __future__ import annotations

from neuroscript.policy.execution_policy import Decision


def decision_text(decision: Decision) -> str:
    """Return the decision about a call as a sentence.

    >>> decision_text(Decision("math.add", True, rule="math.*"))
    'math.add: would run (allowed by math.*)'
    """
    if decision.allowed:
        why = f", because it {' and '.join(decision.flows)}" if decision.flows else ""
        outcome = f"would ask for approval{why}" if decision.needs_approval else "would run"
        by = f"allowed by {decision.rule}" if decision.rule else "no pattern in allow matches it"
        return f"{decision.tool}: {outcome} ({by})"
    if is_about_arguments(decision):
        return f"{decision.tool}: invalid arguments: {decision.text}"
    rule = f", by {decision.rule}" if decision.rule else ""
    return f"{decision.tool}: would be refused: {decision.text} ({decision.code}{rule})"


def is_about_arguments(decision: Decision) -> bool:
    """Return whether a call is refused because its arguments are invalid, which can have codes of limits too."""
    group = decision.code.partition(".")[0]
    return not decision.allowed and group not in ("policy", "tool", "engine") and decision.rule != "limits"
