"""Plans written by a model, which receives the tools, the format, and the problems of each attempt.

Nothing of the plan runs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Final

from neuroscript.calls.steps import Invocation
from neuroscript.coercion.parameters import STRING, require
from neuroscript.coercion.types import ArgType
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError, LLMError, SpecError
from neuroscript.formats.prompt import to_prompt
from neuroscript.io.text import first
from neuroscript.llm.offered_tools import narrow_session, offered_infos
from neuroscript.llm.structured_output import answer_spec, exact_answer
from neuroscript.runtime.interfaces import AskedModel, Turn
from neuroscript.runtime.replies import turn_of
from neuroscript.workflow.plan.file import plan_from_data
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.plan.parameters import MODEL, NUMBER, PATTERNS, SESSION
from neuroscript.workflow.plan.validation import check

FORM: Final = """\
You write plans of tool calls. A plan is one JSON object. Answer with that object and nothing else:

{
  "name": "a short name",
  "inputs": {"city": {"type": "string", "default": "Oslo"}},
  "nodes": {
    "fetch": {"tool": "GROUP.NAME", "inputs": {"where": "${input.city}"}, "retry": {"count": 2}, "timeout": 30},
    "each": {"tool": "GROUP.NAME", "map": "${fetch.items}", "inputs": {"text": "${item.title}"}},
    "report": {"tool": "GROUP.NAME", "when": {"succeeded": "fetch"}, "inputs": {"text": "${fetch.count} found"}}
  },
  "output": {"all": "${each}"}
}

- A node is one call: "tool", and "inputs", its arguments by name. Leave out all other keys that you do not need.
- "${node}" is the result of a node, "${node.key[0]}" a part of it, "${input.name}" an input of the plan. If a string is
  only a reference, the value keeps its type; within other text it becomes text. The nodes that a node refers to run
  before it; "depends_on" lists further nodes that must run before it. No node may depend on itself, directly or
  indirectly.
- "map" runs a node once for each item of a list, with "${item}" and "${index}"; its result is the list of results.
- "when" is a reference to true or false, {"value": V, W: V} with W one of equals, ne, above, at_least, below,
  at_most, in, contains, empty, or {"succeeded": node}, {"failed": node}, {"all": [...]}, {"any": [...]},
  {"not": ...}.
- "on_fail" is "halt" (the default) or "continue", which lets the other nodes go on after a failure.
- "inputs" of the plan and "output" are optional. Without "output", the plan returns the results of its last nodes.

Call only these tools:

"""

MAX_LISTED_PROBLEMS: Final = 100
"""Maximum number of problems in one message to the model."""

RETRY_PROMPT: Final = "This plan cannot run here:\n{}\nAnswer again with the complete plan."


def make_plan(
    session: Session, llm: AskedModel, goal: str, *, tools: str | Iterable[str] = "*", attempts: int = 3
) -> Plan:
    """Ask a model for a plan that reaches *goal* and can run in a session.

    Args:
        session: An engine, or one of its sessions. The model sees the tools that its policy permits.
        goal: The purpose of the plan, in words.
        tools: Patterns over canonical names that select from the permitted tools.
        attempts: Maximum number of plans that the model may write.

    Raises:
        SpecError: If the last attempt is invalid too, with its problems, or if a pattern matches no tool.
        LLMError: If the model did not reply.
    """
    steps = _steps(session, goal, tools, attempts, llm)
    turns = next(steps)
    while True:
        try:
            turns = steps.send(turn_of(llm.ask(turns), "ask").content)
        except StopIteration as done:
            plan: Plan = done.value
            return plan


async def amake_plan(
    session: Session, llm: AskedModel, goal: str, *, tools: str | Iterable[str] = "*", attempts: int = 3
) -> Plan:
    """Return what `make_plan` returns, without blocking the event loop."""
    steps = _steps(session, goal, tools, attempts, llm)
    turns = next(steps)
    while True:
        invocation = Invocation("plan", lambda turns=turns: _ask_model(llm, turns), (), "waits")
        reply = (await session._shared.threads.awaitable(invocation)).result()
        if isinstance(reply, LLMError):
            raise reply
        try:
            turns = steps.send(reply)
        except StopIteration as done:
            plan: Plan = done.value
            return plan


def _ask_model(llm: AskedModel, turns: Sequence[Turn]) -> str | LLMError:
    """Return the model's reply, or its error."""
    try:
        return turn_of(llm.ask(turns), "ask").content
    except LLMError as error:
        return error


def _steps(
    session: Session, goal: str, tools: str | Iterable[str], attempts: int, llm: AskedModel
) -> Generator[list[Turn], str, Plan]:
    """Yield the turns to send to the model, and return the valid plan."""
    parts = {"session": (session, SESSION), "goal": (goal, STRING), "llm": (llm, MODEL)}
    require("planned", **parts, tools=(tools, PATTERNS), attempts=(attempts, NUMBER))
    within = narrow_session(session, (tools,) if isinstance(tools, str) else tuple(tools), "plan")
    if attempts < 1:
        raise SpecError("plan", ["attempts must be 1 or more"])
    tools_text = to_prompt(info.spec for info in offered_infos(within))
    turns = [Turn("system", FORM + tools_text), Turn("user", goal)]
    problems: tuple[str, ...] = ()
    for _ in range(attempts):
        reply = yield turns
        try:
            plan = plan_from_data(exact_answer(answer_spec(ArgType.MAP), reply))
        except ArgumentError as error:
            problems = tuple(map(str, error.problems))
        except SpecError as error:
            problems = error.problems
        else:
            problems = check(within, plan, llm)
            if not problems:
                return plan
        complaint = RETRY_PROMPT.format("\n".join(f"- {problem}" for problem in first(problems, MAX_LISTED_PROBLEMS)))
        turns = [*turns, Turn("assistant", reply), Turn("user", complaint)]
    raise SpecError("plan", problems)
