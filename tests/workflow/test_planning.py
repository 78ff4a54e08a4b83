"""The planner: a model writes a plan and receives its problems until it is valid; nothing of it runs."""

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
from neuroscript.workflow import Plan, amake_plan, make_plan, plan_from_data, run
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
    """A model that returns fixed replies, one for each request."""

    texts: list[str | Exception]
    received: list[list[Turn]] = attrs.Factory(list)

    def ask(self, turns: Sequence[Turn]) -> Turn:
        self.received.append([*turns])
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
    return await amake_plan(*given, **named)


WAYS = [
    pytest.param(make_plan, id="sync"),
    pytest.param(lambda *given, **named: asyncio.run(_awaited(*given, **named)), id="async"),
]


@pytest.mark.parametrize("way", WAYS)
def test_model_receives_problems_until_plan_is_valid(way: Callable[..., Plan], engine: Engine) -> None:
    """Text that is not a JSON object, a cycle, an unknown tool and an invalid argument; the final plan runs."""
    twice = '{"nodes": {"a": 1, "a": 2}}'
    texts = ["I would go to Oslo.", twice, '{"nodes": 1e999}', json.dumps(KNOT), json.dumps(UNFIT)]
    script = Script([*texts, f"So:\n```json\n{json.dumps(GOOD)}\n```"])

    plan = way(engine, script, "Book two days in Oslo.", attempts=6)
    before = [*ran]
    complaints = [turns[-1].content.splitlines()[1:-1] for turns in script.received[1:]]

    assert [] == before
    assert [
        ['- answer: expected map, got str (write a JSON object, such as {"key": "value"})'],
        ["- answer: expected map, got str (the JSON text contains a duplicate key)"],
        ["- answer['nodes']: expected float, got float (the number must be finite)"],
        ["- nodes.a: depends on itself: a < b < a"],
        [
            "- nodes.a.tool: unknown tool trips.fined; did you mean trips.find?",
            "- nodes.b.inputs.days: expected int, got str (a string must be a decimal integer, such as 42)",
        ],
    ] == complaints
    assert "2 days in Oslo" == run(engine, plan).output


def test_prompt_contains_permitted_tools_and_format(engine: Engine) -> None:
    """A plan with a tool that is not permitted is invalid."""
    script = Script([json.dumps(GOOD), json.dumps({"nodes": {"find": GOOD["nodes"]["find"]}})])

    plan = make_plan(engine, script, "Find a trip.", tools="trips.f*")
    system = script.received[0][0].content

    assert "trips.find(city: string) -> map" in system and '"nodes": {' in system
    assert "trips.book" not in system and "str.toupper" not in system
    assert "- nodes.book.tool: " in script.received[1][-1].content
    assert ["trips.find"] == [node.tool for node in plan.nodes]


def test_format_in_prompt_is_a_valid_plan() -> None:
    """The example in the prompt can be parsed."""
    shown = FORM[FORM.index("{") : FORM.index("\n}\n") + 2].replace("GROUP.NAME", "trips.find")

    plan = plan_from_data(json.loads(shown))

    assert (["fetch", "each", "report"], ("fetch",)) == ([node.name for node in plan.nodes], plan["report"].needs)


def test_denied_tools_are_neither_offered_nor_accepted() -> None:
    """The model does not see them."""
    script = Script([json.dumps(GOOD)])

    with (
        Engine(toolsets=[trips], policy=ExecutionPolicy(deny=("trips.book",))) as engine,
        pytest.raises(SpecError) as e,
    ):
        make_plan(engine, script, "Book.", attempts=1)

    assert "trips.book(" not in script.received[0][0].content
    assert ("plan: nodes.book.tool: trips.book: is denied by the host",) == e.value.sentences


def test_last_problems_are_raised_after_all_attempts(engine: Engine) -> None:
    """The default is three attempts."""
    script = Script([json.dumps(KNOT)] * 4)

    with pytest.raises(SpecError) as raised:
        make_plan(engine, script, "Go.")

    assert (3, ("nodes.a: depends on itself: a < b < a",)) == (len(script.received), raised.value.problems)


@pytest.mark.parametrize("way", WAYS)
def test_model_error_propagates(way: Callable[..., Plan], engine: Engine) -> None:
    """No plan is returned."""
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
def test_invalid_arguments_are_rejected_before_request(more: dict[str, Any], problem: str, engine: Engine) -> None:
    """So that no tokens are spent."""
    script = Script([])

    with pytest.raises(SpecError) as raised:
        make_plan(engine, script, "Go.", **more)

    assert ((problem,), []) == (raised.value.problems, script.received)


def test_planner_works_with_http_model(engine: Engine, server: ModelServer) -> None:
    """The request has the format of the API."""
    server.script(says(json.dumps(KNOT)), says(json.dumps(GOOD)))

    with model("tiny", base_url=server.base_url(), api="openai-chat", backoff=0.001) as client:
        plan = make_plan(engine, client, "Book two days in Oslo.")
    roles = [each["role"] for each in server.requests[1].body["messages"]]

    assert ["find", "book"] == [node.name for node in plan.nodes]
    assert ["system", "user", "assistant", "user"] == roles


def test_model_receives_at_most_hundred_problems(engine: Engine) -> None:
    """And the number of the others."""
    nodes = {f"n{number}": {"tool": "none"} for number in range(300)}
    script = Script([json.dumps({"nodes": nodes}), json.dumps(KNOT)])

    with pytest.raises(SpecError):
        make_plan(engine, script, "Go.", attempts=2)
    lines = script.received[1][-1].content.splitlines()

    assert ("- nodes.n99.tool: unknown tool none", "- and 200 more") == (lines[100], lines[101])
