"""Graphs and timelines as parts of pages: colours by class only, links to the rows, and states that replace a box."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.workflow.drawn import SVG

from neuroscript.workflow import Attempt, NodeTrace, Trace, plan_of_toml
from neuroscript.workflow.plan.file import problem_lines
from neuroscript.workflow.trace.inline_svg import (
    inline_box,
    inline_graph,
    inline_timeline,
    plan_box,
    plan_picture,
    trace_picture,
)

PLAN = plan_of_toml("""\
[nodes.get]
tool = "web.get"
retry = 2
timeout = 5
inputs = { url = "x" }

[nodes.each]
tool = "text.trim"
map = "${get}"
when = { value = "${get}", equals = 1 }
on_fail = "continue"
inputs = { text = "${item}" }
""")

TRACE = Trace(
    run="r",
    plan="p",
    digest="0" * 64,
    inputs={},
    status="failed",
    nodes=(
        NodeTrace("a", "web.<get>", "succeeded", attempts=(Attempt(1, None, 5.0, 0.5),)),
        NodeTrace("b", "fs.write", "unstarted", ("a",)),
    ),
    started=5.0,
    seconds=0.5,
)


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def test_graph_of_a_plan_has_a_link_for_each_node() -> None:
    """With what the plan says about the node; there are no styles, scripts or colours."""
    text = inline_graph(plan_picture(PLAN), 'Graph of "p"')
    root = parsed(text)
    links = {each.get("href"): each for each in root.iter(f"{SVG}a")}

    assert [*links] == ["#node-get", "#node-each"]
    assert root.get("aria-label") == 'Graph of "p"'
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles == [
        "get: web.get, up to 2 retries, at most 5 s",
        "each: text.trim, conditional, once for each item, may fail",
    ]
    assert [each.get("data-from") for each in root.iter(f"{SVG}path") if each.get("class") == "edge"] == ["get"]
    assert not {"style", "fill", "stroke"} & {name for each in root.iter() for name in each.attrib}
    assert not {f"{SVG}style", f"{SVG}script"} & {each.tag for each in root.iter()}


def test_box_of_a_node_shows_its_state() -> None:
    """The replaced box has the place and the width of the one in the picture."""
    picture = plan_picture(PLAN, has_states=True)
    before, after = (
        parsed(f"<svg >{inline_box(picture, plan_box(PLAN['get'], *state))}</svg>")
        for state in ((), ("succeeded", "12.5 ms"))
    )

    boxes = [each.find(f"{SVG}rect") for each in (before, after)]
    places = [{name: each.get(name) for name in ("x", "y", "width", "height")} for each in boxes if each is not None]
    assert places[0] == places[1]
    assert [each is not None and each.get("stroke-dasharray") for each in boxes] == ["4 3", None]
    assert [each.text for each in after.iter(f"{SVG}text")] == [
        "get",
        "web.get",
        "succeeded",
        "12.5 ms",
        "up to 2 retries, at most 5 s",
    ]


def test_graph_shows_the_present_boxes() -> None:
    box = plan_box(PLAN["get"], "running")

    assert '<rect class="running"' in inline_graph(plan_picture(PLAN), "Graph", {"get": box})
    assert '<rect class="running"' not in inline_graph(plan_picture(PLAN), "Graph")


def test_trace_has_a_graph_and_a_timeline() -> None:
    """Text from the trace is escaped."""
    graph, times = inline_graph(trace_picture(TRACE), "Graph"), inline_timeline(TRACE, "Times")

    assert "web.&lt;get&gt;" in graph
    assert parsed(times).get("role") == "img"
    assert [each.get("data-node") for each in parsed(times).iter(f"{SVG}g")] == ["a", "b"]


def test_lines_of_problems_are_found() -> None:
    """In tables, in arrays of tables, and for a place that is not in the text."""
    text = '[[nodes]]\nname = "a"\ntool = "x.y"\n\n[[nodes]]\nname = "b"\ntool = "x.z"\n[nodes.inputs]\nkey = 1\n'
    problems = ["nodes.b.tool: unknown", "nodes.b.inputs.key: wrong", "nodes.b.inputs: missing", "output: no"]

    assert problem_lines(text, problems) == (7, 9, 8, 1)
    assert problem_lines("[nodes.a]\ntool = 1\n", ["nodes.a.tool: wrong", "nodes.c.tool: unknown"]) == (2, 1)
    assert problem_lines("no = TOML =", ["nodes.a: wrong"]) == (1,)
