"""A planner: a model makes a plan, and is told of each problem until it fits; nothing of it runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest
from tests.llm.fixtures import no_keys as no_keys
from tests.llm.fixtures import running as running
from tests.llm.fixtures import server as server
from tests.llm.server import ModelServer, says

from neuroscript import Engine, ExecutionPolicy, LLMError, Runtime, SpecError, Toolset, ToolSpec, Turn
from neuroscript.llm import model
from neuroscript.workflow import Plan, aplanned, plan_from_data, planned, run
from neuroscript.workflow.plan.planner import FORM

ran: list[str] = []
trips = Toolset("trips")


@trips.tool()
def find(rt: Runtime, city: str) -> dict[str, Any]:
    """Find trips to a city."""
    ran.append("find")
    return {"city": city, "days": [1, 2]}


@trips.tool()
def book(rt: Runtime, city: str, days: int) -> str:
    """Book a trip."""
    ran.append("book")
    return f"{days} days in {city}"


@attrs.define
class Script:
    """A model that says what a test wrote down, one text for each time that it is asked."""

    texts: list[str | Exception]
    heard: list[list[Turn]] = attrs.Factory(list)

    def ask(self, turns: Sequence[Turn]) -> Turn:
        self.heard.append([*turns])
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return Turn("assistant", text)

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        return self.ask(turns)

    def embed(self, text: str) -> Sequence[float]:
        raise LLMError("embeds nothing")


GOOD = {
    "nodes": {
        "find": {"tool": "trips.find", "inputs": {"city": "Oslo"}},
        "book": {"tool": "trips.book", "inputs": {"city": "${find.city}", "days": "${find.days[1]}"}},
    }
}
KNOT = {
    "nodes": {
        "a": {"tool": "trips.find", "inputs": {"city": "${b}"}},
        "b": {"tool": "trips.find", "inputs": {"city": "${a.city}"}},
    }
}
UNFIT = {
    "nodes": {
        "a": {"tool": "trips.fined", "inputs": {"city": "Oslo"}},
        "b": {"tool": "trips.book", "inputs": {"city": "Oslo", "days": "many"}},
    }
}


@pytest.fixture
def engine() -> Any:
    ran.clear()
    with Engine(toolsets=[trips]) as engine:
        yield engine


async def _awaited(*given: Any, **named: Any) -> Plan:
    return await aplanned(*given, **named)


WAYS = [
    pytest.param(planned, id="sync"),
    pytest.param(lambda *given, **named: asyncio.run(_awaited(*given, **named)), id="async"),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_model_is_told_of_every_problem_until_its_plan_fits(way: Callable[..., Plan], engine: Engine) -> None:
    """Texts that are no JSON object, a cycle, a tool that is not there, an argument that does not fit; then it runs."""
    twice = '{"nodes": {"a": 1, "a": 2}}'
    texts = ["I would go to Oslo.", twice, '{"nodes": 1e999}', json.dumps(KNOT), json.dumps(UNFIT)]
    script = Script([*texts, f"So:\n```json\n{json.dumps(GOOD)}\n```"])

    plan = way(engine, script, "Book two days in Oslo.", attempts=6)
    before = [*ran]
    complaints = [turns[-1].content.splitlines()[1:-1] for turns in script.heard[1:]]

    assert [] == before
    assert [
        ['- answer: expected map, got str (write a JSON object, such as {"key": "value"})'],
        ["- answer: expected map, got str (the JSON text contains a duplicate key)"],
        ["- answer['nodes']: expected float, got float (the number must be finite)"],
        ["- nodes.a: needs itself, by way of a < b < a"],
        [
            "- nodes.a.tool: unknown tool trips.fined; did you mean trips.find?",
            "- nodes.b.inputs.days: expected int, got str (a string must be a decimal integer, such as 42)",
        ],
    ] == complaints
    assert "2 days in Oslo" == run(engine, plan).output


def test_the_model_knows_the_tools_that_may_be_called_and_the_form(engine: Engine) -> None:
    """And none that it may not; a plan with such a tool is one that can not run."""
    script = Script([json.dumps(GOOD), json.dumps({"nodes": {"find": GOOD["nodes"]["find"]}})])

    plan = planned(engine, script, "Find a trip.", tools="trips.f*")
    system = script.heard[0][0].content

    assert "trips.find(city: string) -> map" in system and '"nodes": {' in system
    assert "trips.book" not in system and "str.toupper" not in system
    assert "- nodes.book.tool: " in script.heard[1][-1].content
    assert ["trips.find"] == [node.tool for node in plan.nodes]


def test_the_form_that_a_model_is_shown_is_a_plan() -> None:
    """What it is told to write is what is read."""
    shown = FORM[FORM.index("{") : FORM.index("\n}\n") + 2].replace("GROUP.NAME", "trips.find")

    plan = plan_from_data(json.loads(shown))

    assert (["fetch", "each", "told"], ("fetch",)) == ([node.name for node in plan.nodes], plan["told"].needs)


def test_what_the_policy_refuses_is_no_plan() -> None:
    """Nor is it among the tools that the model is told of."""
    script = Script([json.dumps(GOOD)])

    with (
        Engine(toolsets=[trips], policy=ExecutionPolicy(deny=("trips.book",))) as engine,
        pytest.raises(SpecError) as e,
    ):
        planned(engine, script, "Book.", attempts=1)

    assert "trips.book(" not in script.heard[0][0].content
    assert ("plan: nodes.book.tool: trips.book: is denied by the host",) == e.value.sentences


def test_when_the_attempts_are_over_the_last_problems_are_told(engine: Engine) -> None:
    """Three, where nobody says another number."""
    script = Script([json.dumps(KNOT)] * 4)

    with pytest.raises(SpecError) as raised:
        planned(engine, script, "Go.")

    assert (3, ("nodes.a: needs itself, by way of a < b < a",)) == (len(script.heard), raised.value.problems)


@pytest.mark.parametrize("way", WAYS)
def test_an_error_of_the_model_is_its_own(way: Callable[..., Plan], engine: Engine) -> None:
    """No plan is made, and it is raised as it is."""
    error = LLMError("it is asleep", code="llm.rate", retry="later")

    with pytest.raises(LLMError) as raised:
        way(engine, Script([error]), "Go.")

    assert raised.value is error


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"tools": "boats.*"}, "tools: boats.* matches no tool that may be called here"),
        ({"attempts": 0}, "attempts must be 1 or more"),
    ],
)
def test_what_can_not_come_to_a_plan_is_told_before_anything_is_asked(
    more: dict[str, Any], problem: str, engine: Engine
) -> None:
    """So that no model is paid for it."""
    script = Script([])

    with pytest.raises(SpecError) as raised:
        planned(engine, script, "Go.", **more)

    assert ((problem,), []) == (raised.value.problems, script.heard)


def test_a_model_over_http_makes_a_plan(engine: Engine, server: ModelServer) -> None:
    """What it is asked goes over the wire as that API has it."""
    server.script(says(json.dumps(KNOT)), says(json.dumps(GOOD)))

    with model("tiny", base_url=server.base_url(), api="openai-chat", pause=0.001) as client:
        plan = planned(engine, client, "Book two days in Oslo.")
    roles = [each["role"] for each in server.requests[1].body["messages"]]

    assert ["find", "book"] == [node.name for node in plan.nodes]
    assert ["system", "user", "assistant", "user"] == roles


def test_of_very_many_problems_a_model_is_told_the_first_hundred(engine: Engine) -> None:
    """And how many more there are; a model reads no million characters."""
    nodes = {f"n{number}": {"tool": "none"} for number in range(300)}
    script = Script([json.dumps({"nodes": nodes}), json.dumps(KNOT)])

    with pytest.raises(SpecError):
        planned(engine, script, "Go.", attempts=2)
    lines = script.heard[1][-1].content.splitlines()

    assert ("- nodes.n99.tool: unknown tool none", "- and 200 more") == (lines[100], lines[101])
