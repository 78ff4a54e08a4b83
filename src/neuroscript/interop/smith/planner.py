"""A model asked for a plan of Smith's until it fits; nothing of the plan is run.

Source: Smith's planner.md; seed-systems.md rows SM-28, SM-49, SM-50.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from neuroscript.coercion.parameters import STRING, WHOLE, require, shaped
from neuroscript.errors import LLMError, SpecError
from neuroscript.interop.smith.plan_check import checked_tools, plan_problems, read_plan
from neuroscript.runtime.interfaces import LLM, Turn
from neuroscript.runtime.replies import turn_of

SHOWN: Final = ("name", "description", "function", "parameters")
"""What a model is told of a tool."""

MODEL: Final = shaped("a model", "ask")

RULES: Final = """\
You write plans. Answer with one JSON object and nothing besides:
{"nodes": [{"id": 0, "tool": "…", "function": "…", "inputs": {}, "depends_on": [], "retry": 0, "timeout": 60,
"on_fail": "halt"}], "final_output_node": 0}

- Each node is one call of a tool below, by its name, its function and its parameters.
- Ids are whole numbers. A node depends on nodes with smaller ids alone.
- {{STEPS.0}} in an input stands for the result of node 0, {{STEPS.0.price}} for a part of it; depends_on has that node.
- retry is how often a failed call is made again, timeout its seconds, on_fail "halt" or "continue".
- If there can be no such plan, answer {"status": "error", "error": "why"}.

Tools:
"""


def plan_task(request: str, tools: Iterable[Mapping[str, Any]], llm: LLM, *, attempts: int = 3) -> dict[str, Any]:
    """Return the plan that a model makes of a request, sound by `plan_problems`, or why there is none.

    A plan that does not fit goes back to the model with every problem; an answer that is no JSON goes back once more,
    for its writing alone.

    Args:
        request: What is to be done.
        tools: METADATA; a model is told name, description, function and parameters.
        attempts: How many plans are looked at.

    Returns:
        The plan with its ``status``; or ``{"status": "error", "error": …}``, whoever found that there is none.

    Raises:
        SpecError: A parameter has the wrong type.
    """
    require("plan_task", request=(request, STRING), llm=(llm, MODEL), attempts=(attempts, WHOLE))
    known = [*checked_tools("plan_task", tools)]
    told = json.dumps([{key: each[key] for key in SHOWN if key in each} for each in known], indent=2)
    turns = [Turn("system", f"{RULES}{told}"), Turn("user", request)]
    reason = "no plan was asked for"
    for _ in range(attempts):
        try:
            plan, answered = _answer(turns, llm)
        except LLMError as error:
            return _failed(error.text)
        problems = plan if isinstance(plan, tuple) else plan_problems(plan, known)
        if not problems:
            return {"status": "success", **plan}
        reason = problems[0]
        complaint = f"That plan does not fit: {' '.join(problems)} Answer with the whole plan, mended."
        turns += (answered, Turn("user", complaint))
    return _failed(reason)


def _answer(turns: list[Turn], llm: LLM) -> tuple[Any, Turn]:
    """Return what a model answers, or what is wrong with its writing, and the turn."""
    answered = turn_of(llm.ask(turns), "ask")
    try:
        return read_plan(answered.content), answered
    except SpecError as error:
        complaint = f"That is no JSON: {error.problems[0]}. Answer with the same object, mended."
    answered = turn_of(llm.ask([*turns, answered, Turn("user", complaint)]), "ask")
    try:
        return read_plan(answered.content), answered
    except SpecError as error:
        return (f"{error.problems[0]}.",), answered


def _failed(reason: str) -> dict[str, Any]:
    return {"status": "error", "error": f"Unable to build valid plan. Reason: {reason}"}
