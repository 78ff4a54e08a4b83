"""A plan from a model: it is told of the tools and of the form, and of each problem with its plan until it fits.

Nothing of the plan runs.

Source: issue "Plans", a planner; Smith's planner, rows SM-49 and SM-50.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Final

from neuroscript.calls.steps import Body
from neuroscript.coercion.parameters import STRING, require
from neuroscript.coercion.types import ArgType
from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError, LLMError, SpecError
from neuroscript.formats.prompt import to_prompt
from neuroscript.io.text import first
from neuroscript.llm.offered_tools import narrowed
from neuroscript.llm.structured_output import answer_spec, exact_answer
from neuroscript.runtime.interfaces import LLM, Turn
from neuroscript.runtime.replies import turn_of
from neuroscript.workflow.plan.file import plan_from_data
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.plan.parameters import MODEL, NUMBER, PATTERNS, SESSION
from neuroscript.workflow.plan.validation import check

FORM: Final = """\
You make plans of tool calls. A plan is one JSON object, and you answer with it and nothing besides:

{
  "name": "a short name",
  "inputs": {"city": {"type": "string", "default": "Oslo"}},
  "nodes": {
    "fetch": {"tool": "GROUP.NAME", "inputs": {"where": "${input.city}"}, "retry": {"count": 2}, "timeout": 30},
    "each": {"tool": "GROUP.NAME", "map": "${fetch.items}", "inputs": {"text": "${item.title}"}},
    "told": {"tool": "GROUP.NAME", "when": {"succeeded": "fetch"}, "inputs": {"text": "${fetch.count} found"}}
  },
  "output": {"all": "${each}"}
}

- A node is one call: "tool", and "inputs", its arguments by name. Leave out every other key that you do not need.
- "${node}" is what a node gave, "${node.key[0]}" a part of it, "${input.name}" an input of the plan. Alone in a text it
  keeps its type; within other text it becomes text. What a node refers to runs before it; "depends_on" is a list of
  further nodes that do. No node may need itself, directly or by way of others.
- "map" runs a node once for each item of a list, with "${item}" and "${index}"; it gives the list of the results.
- "when" is a reference to true or false, {"value": V, W: V} with W one of equals, differs, above, at_least, below,
  at_most, among, contains, empty, or {"succeeded": node}, {"failed": node}, {"all": [...]}, {"any": [...]},
  {"not": ...}.
- "on_fail" is "halt", as it is where it is left out, or "continue": then the others go on.
- "inputs" of the plan and "output" may be left out; without it the plan gives what its last nodes gave.

Call only these tools:

"""

MOST_TOLD: Final = 100
"""How many problems a model is told of at once."""

AGAIN: Final = "That is no plan that can run here:\n{}\nAnswer again, with the whole plan."


def planned(session: Session, llm: LLM, goal: str, *, tools: str | Iterable[str] = "*", attempts: int = 3) -> Plan:
    """Return a plan for a goal that a model has made, and that can run in a session.

    Args:
        session: An engine, or one of its sessions: what its policy permits is what the model is told of.
        goal: What the plan is for, in words.
        tools: Patterns over canonical names: which tools it may use, of those that may be called at all.
        attempts: How many plans the model may make.

    Raises:
        SpecError: The last of them does not fit either, with its problems; or a pattern matches no tool.
        LLMError: The model gave no answer.
    """
    steps = _steps(session, goal, tools, attempts, llm)
    turns = next(steps)
    while True:
        try:
            turns = steps.send(turn_of(llm.ask(turns), "ask").content)
        except StopIteration as done:
            plan: Plan = done.value
            return plan


async def aplanned(
    session: Session, llm: LLM, goal: str, *, tools: str | Iterable[str] = "*", attempts: int = 3
) -> Plan:
    """Return what `planned` returns, without holding up the loop that awaits it."""
    steps = _steps(session, goal, tools, attempts, llm)
    turns = next(steps)
    while True:
        asked = Body("plan", lambda turns=turns: _asked(llm, turns), (), "waits")
        said = (await session._world.threads.awaitable(asked)).result()
        if isinstance(said, LLMError):
            raise said
        try:
            turns = steps.send(said)
        except StopIteration as done:
            plan: Plan = done.value
            return plan


def _asked(llm: LLM, turns: Sequence[Turn]) -> str | LLMError:
    """Return what a model says, or its error as it is."""
    try:
        return turn_of(llm.ask(turns), "ask").content
    except LLMError as error:
        return error


def _steps(
    session: Session, goal: str, tools: str | Iterable[str], attempts: int, llm: LLM
) -> Generator[list[Turn], str, Plan]:
    """Yield what a model is asked, and return the plan that fits."""
    parts = {"session": (session, SESSION), "goal": (goal, STRING), "llm": (llm, MODEL)}
    require("planned", **parts, tools=(tools, PATTERNS), attempts=(attempts, NUMBER))
    within = narrowed(session, (tools,) if isinstance(tools, str) else tuple(tools), "plan")
    if attempts < 1:
        raise SpecError("plan", ["attempts must be 1 or more"])
    told = to_prompt(info.spec for info in within.infos.values())
    turns = [Turn("system", FORM + told), Turn("user", goal)]
    problems: tuple[str, ...] = ()
    for _ in range(attempts):
        said = yield turns
        try:
            plan = plan_from_data(exact_answer(answer_spec(ArgType.MAP), said))
        except ArgumentError as error:
            problems = tuple(map(str, error.problems))
        except SpecError as error:
            problems = error.problems
        else:
            problems = check(within, plan, llm)
            if not problems:
                return plan
        complaint = AGAIN.format("\n".join(f"- {problem}" for problem in first(problems, MOST_TOLD)))
        turns = [*turns, Turn("assistant", said), Turn("user", complaint)]
    raise SpecError("plan", problems)
