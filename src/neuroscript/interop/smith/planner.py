"""A planner that asks a model for a Smith plan until it is valid; it does not execute the plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from neuroscript.coercion.parameters import STRING, WHOLE, object_form, require
from neuroscript.errors import LLMError, SpecError
from neuroscript.interop.smith.plan_check import checked_tools, plan_problems, read_plan
from neuroscript.runtime.interfaces import LLM, Turn
from neuroscript.runtime.replies import turn_of

METADATA_KEYS: Final = ("name", "description", "function", "parameters")
"""The METADATA keys that a model receives."""

MODEL: Final = object_form("a model", "ask")

RULES: Final = """\
You write plans. Answer with one JSON object and nothing else:
{"nodes": [{"id": 0, "tool": "…", "function": "…", "inputs": {}, "depends_on": [], "retry": 0, "timeout": 60,
"on_fail": "halt"}], "final_output_node": 0}

- Each node is one call of a tool below, by its name, its function and its parameters.
- Ids are integers. A node may only depend on nodes with smaller ids.
- {{STEPS.0}} in an input stands for the result of node 0, {{STEPS.0.price}} for part of it; list node 0 in depends_on.
- retry is the number of retries of a failed call, timeout is in seconds, on_fail is "halt" or "continue".
- If no such plan is possible, answer {"status": "error", "error": "why"}.

Tools:
"""


def plan_task(request: str, tools: Iterable[Mapping[str, Any]], llm: LLM, *, attempts: int = 3) -> dict[str, Any]:
    """Return the plan of a model for a request, validated by `plan_problems`, or why the model made no plan.

    An invalid plan is returned to the model with every problem. A reply that is not JSON is returned once more, to
    correct its syntax only.

    Args:
        request: The task.
        tools: METADATA; the model receives name, description, function and parameters.
        attempts: Maximum number of plans.

    Returns:
        The plan with its ``status``; or ``{"status": "error", "error": …}`` if the model reports that there is no plan,
        or none was valid.

    Raises:
        SpecError: A parameter has the wrong type.
    """
    require("plan_task", request=(request, STRING), llm=(llm, MODEL), attempts=(attempts, WHOLE))
    known = [*checked_tools("plan_task", tools)]
    metadata = json.dumps([{key: each[key] for key in METADATA_KEYS if key in each} for each in known], indent=2)
    turns = [Turn("system", f"{RULES}{metadata}"), Turn("user", request)]
    reason = "no attempts were allowed"
    for _ in range(attempts):
        try:
            plan, answered = _answer(turns, llm)
        except LLMError as error:
            return _failed(error.text)
        problems = plan if isinstance(plan, tuple) else plan_problems(plan, known)
        if not problems:
            return {"status": "success", **plan}
        reason = problems[0]
        complaint = f"The plan is not valid: {' '.join(problems)} Answer with the whole corrected plan."
        turns += (answered, Turn("user", complaint))
    return _failed(reason)


def _answer(turns: list[Turn], llm: LLM) -> tuple[Any, Turn]:
    """Return the reply of a model and its turn; if it is not JSON, the problem in place of the reply."""
    answered = turn_of(llm.ask(turns), "ask")
    try:
        return read_plan(answered.content), answered
    except SpecError as error:
        complaint = f"This is not valid JSON: {error.problems[0]}. Answer with the same object, corrected."
    answered = turn_of(llm.ask([*turns, answered, Turn("user", complaint)]), "ask")
    try:
        return read_plan(answered.content), answered
    except SpecError as error:
        return (f"{error.problems[0]}.",), answered


def _failed(reason: str) -> dict[str, Any]:
    return {"status": "error", "error": f"Unable to build valid plan. Reason: {reason}"}
