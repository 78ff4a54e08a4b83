"""Plans as data: their keys, references and conditions, and the rejection of invalid plans."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from neuroscript import ArgSpec, ArgType, SpecError
from neuroscript.workflow import Node, Plan, Retry, load_plan, plan_from_data, plan_of_json, plan_of_toml, plan_to_data
from neuroscript.workflow.plan.conditions import ComparisonError, Condition
from neuroscript.workflow.plan.references import Template, UnresolvedReference

BROKEN = """
nam = "x"
[inputs.city]
type = "strin"
[nodes.a]
tool = "t.add"
retry = { count = -1, on = ["X"], tries = 2 }
when = 3
inputs = { a = "${b.x", b = 1, c = ["${b["] }
[nodes.b]
tool = ""
timeout = 0
depend_on = ["a"]
[nodes.item]
tool = "t.add"
on_fail = "stop"
"""

WRONG_WHEN = (
    "expected a reference, a table with value and one of equals, ne, above, at_least, below, at_most, in, "
    "contains, empty, a table with one of succeeded, failed, skipped and a node, or a table with all, any or not"
)


def test_error_lists_every_problem_with_its_line() -> None:
    """Keys, types, references and conditions."""
    with pytest.raises(SpecError) as caught:
        plan_of_toml(BROKEN, source="plan.toml")

    assert [
        "plan.toml:2: nam: unknown key; did you mean name?",
        *["plan.toml:3: inputs.city: " + caught.value.problems[1].removeprefix("inputs.city: ")],
        "plan.toml:7: nodes.a.retry.tries: unknown key",
        "plan.toml:7: nodes.a.retry.count: must be an integer from 0 to 100",
        "plan.toml:7: nodes.a.retry.on: must be a list of codes such as tool.failed or llm.*, or later",
        f"plan.toml:8: nodes.a.when: {WRONG_WHEN}",
        "plan.toml:9: nodes.a.inputs.a: the reference to b is invalid; write $${ for a literal ${",
        "plan.toml:9: nodes.a.inputs.c[0]: the reference to b is invalid; write $${ for a literal ${",
        "plan.toml:11: nodes.b.tool must be the name of a tool",
        "plan.toml:12: nodes.b.timeout must be a positive, finite number of seconds",
        "plan.toml:13: nodes.b.depend_on: unknown key; did you mean depends_on?",
        "plan.toml:14: nodes.item.name must be a letter or _, then letters, digits, _ and -, at most 64, and none of "
        "index, input, item, trace",
        "plan.toml:16: nodes.item.on_fail must be halt or continue",
    ] == sorted(caught.value.sentences, key=lambda each: int(each.split(":")[1]))
    assert caught.value.problems[1].startswith("inputs.city: strin is not an ArgType; use one of string, int")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("", ["nodes: must have at least one node"], id="nothing"),
        pytest.param(
            '[nodes.a]\ntool = "t"\ninputs = { x = "${b.x} ${zz}", y = "${input.q}" }\n[nodes.b]\ntool = "t"\n'
            'depends_on = ["nn"]\n[nodes.c]\ntool = "t"\nwhen = { failed = "gone" }',
            [
                "nodes.a.inputs.x: unknown node zz",
                "nodes.a.inputs.y: the plan has no input q",
                "nodes.b: needs the unknown node nn",
                "nodes.c: needs the unknown node gone",
            ],
            id="dangling",
        ),
        pytest.param(
            '[nodes.a]\ntool = "t"\ninputs = { x = "${b}" }\n[nodes.b]\ntool = "t"\ndepends_on = ["a"]\n'
            '[nodes.c]\ntool = "t"\nwhen = { value = "${c}", equals = 1 }',
            ["nodes.c: depends on itself: c < c", "nodes.a: depends on itself: a < b < a"],
            id="two-cycles",
        ),
        pytest.param(
            'output = "${item}"\n[nodes.a]\ntool = "t"\ninputs = { x = "${item}" }\n'
            '[nodes.b]\ntool = "t"\nmap = "${index}"',
            [
                "nodes.a.inputs.x: item is only available in the inputs of a node with map",
                "nodes.b.map: index is only available in the inputs of a node with map",
            ],
            id="no-map",
        ),
        pytest.param(
            'output = ["${item}", "${b}"]\n[nodes.a]\ntool = "t"',
            [
                "output[0]: item is only available in the inputs of a node with map",
                "output[1]: unknown node b",
            ],
            id="output",
        ),
        pytest.param(
            '[inputs]\nx = "int"\n[nodes.a]\ntool = "t"\nmap = [1]\ninputs = { x = "${item}", y = "${input.x}" }\n'
            'depends_on = ["item"]\nwhen = { succeeded = "input" }',
            ["nodes.a: needs the unknown node item", "nodes.a: needs the unknown node input"],
            id="reserved",
        ),
        pytest.param(
            'output = { a = 2020-01-01 }\n[nodes.a]\ntool = "t"',
            ["output.a: expected a plain value, got date"],
            id="date",
        ),
        pytest.param(
            'output = [inf]\n[nodes.a]\ntool = "t"\ninputs = { x = nan }',
            ["nodes.a.inputs.x: expected a finite number"],
            id="not-finite",
        ),
        pytest.param("nodes = 3", ["nodes: must be a table, [nodes]"], id="no-table"),
        pytest.param(
            'name = 3\nnodes = [{ name = "a", tool = "t" }, { name = "a", tool = "t" }, 5]',
            ["name: expected a string, got int", "nodes[2]: must be a table, [nodes[2]]"],
            id="a-list",
        ),
    ],
)
def test_inconsistent_plan_is_rejected(text: str, problems: list[str]) -> None:
    """Each problem has its path; checks of the whole plan run only if each part is valid."""
    with pytest.raises(SpecError) as caught:
        plan_of_toml(text)

    assert sorted(problems) == sorted(each for each in caught.value.problems if "name must be" not in each)


def test_duplicate_node_name_is_rejected() -> None:
    """In every notation."""
    with pytest.raises(SpecError) as caught:
        plan_of_json('{"nodes": [{"name": "a", "tool": "t"}, {"name": "a", "tool": "t"}]}')

    assert str(caught.value) == "plan: nodes.a: the name is used twice"


def nested(depth: int, inner: Any, wrapped: Callable[[Any], Any]) -> Any:
    """Return a value inside a number of containers."""
    for _ in range(depth):
        inner = wrapped(inner)
    return inner


HOSTILE: list[dict[str, Any]] = [
    {"tool": 3, "inputs": []},
    {"tool": "t", "depends_on": 5},
    {"tool": "t", "depends_on": [[1]]},
    {"tool": "t", "timeout": 10**400},
    {"tool": "t", "inputs": {"x": {1: 2, "b": 3}}},
    {"tool": "t", "inputs": {"x": {1}}},
    {"tool": "t", None: 1},
    {"tool": "t", "retry": {None: 1}},
    {"tool": "t", "inputs": {"x": nested(900, 1, lambda each: [each])}},
    {"tool": "t", "inputs": {"x": '${a["\\q"]}'}},
    {"tool": "t", "when": nested(900, True, lambda each: {"not": each})},
]


@pytest.mark.parametrize(
    "data", [None, [], 3, "x", {None: 1}, {"nodes": {None: {}}}, *({"nodes": {"a": each}} for each in HOSTILE)]
)
def test_any_data_is_accepted_or_rejected_with_spec_error(data: Any) -> None:
    """No other error is raised."""
    with pytest.raises(SpecError):
        plan_from_data(data)


def test_recursive_data_is_too_deep() -> None:
    """Like any data beyond the nesting limit."""
    endless: list[Any] = []
    endless += [endless, endless]
    with pytest.raises(SpecError) as caught:
        plan_from_data({"nodes": {"a": {"tool": "t", "when": {"value": 1, "in": endless}}}})

    assert caught.value.problems == ("nodes.a.when.in: nests deeper than 100 levels",)


def test_quoted_key_is_json_string() -> None:
    """Otherwise the error names its place."""
    with pytest.raises(SpecError) as caught:
        plan_of_json(json.dumps({"nodes": {"a": {"tool": "t", "inputs": {"x": '${b["\\q"]}'}}}}))

    assert caught.value.problems == ("nodes.a.inputs.x: expected a quoted key to be a JSON string",)


WHOLE = Plan(
    name="whole",
    description="Everything that a plan can say.",
    inputs=(
        ArgSpec("n", ArgType.INT, required=False, default=3, minimum=1),
        ArgSpec("unit", ArgType.STRING, required=False, default="", description="Of what."),
    ),
    nodes=(
        Node(name="a", tool="t.one", inputs={"x": "${input.n}", "blob": b"\x00"}, timeout=1.5, rerun=True),
        Node(
            name="b",
            tool="t.two",
            inputs={"each": "${item.name} of ${a[0].total}"},
            map="${a}",
            when={"any": [{"value": "${a}", "empty": False}, {"not": {"succeeded": "a"}}]},
            retry=Retry(count=2, backoff=0.5, on=("llm.*",)),
            on_fail="continue",
            depends_on=("a",),
            description="Second.",
        ),
    ),
    output={"b": "${b}"},
    synthesis="Say it.",
)


def test_plan_survives_round_trip_through_data() -> None:
    """Also through JSON; default values are left out."""
    plain = Plan(nodes=(Node(name="a", tool="t"),))
    again = plan_of_json(json.dumps(plan_to_data(WHOLE)))

    assert {"nodes": {"a": {"tool": "t"}}} == plan_to_data(plain)
    assert plan_to_data(WHOLE) == plan_to_data(again)
    assert [node.needs for node in again.nodes] == [(), ("a",)]
    assert again.inputs == WHOLE.inputs


def test_equal_plans_have_equal_digest() -> None:
    """However seconds are written and keys are ordered."""
    toml = plan_of_toml(
        '[nodes.a]\ntool = "t"\nretry = { count = 1, backoff = 1 }\ntimeout = 30\ninputs = { x = 1, y = 2.0 }'
    )
    data = {"inputs": {"y": 2.0, "x": 1}, "timeout": 30.0, "retry": {"factor": 2, "count": 1}, "tool": "t"}

    assert plan_from_data({"nodes": {"a": data}}).digest == toml.digest
    assert plan_from_data(plan_to_data(toml)).digest == toml.digest
    assert plan_from_data({"nodes": {"a": data | {"timeout": 31}}}).digest != toml.digest


def test_plan_is_independent_of_its_sources() -> None:
    """Changes to the mappings that it was made of do not affect its digest, its data or its run."""
    inputs: dict[str, Any] = {"x": [1], "y": MappingProxyType({"z": (2,)})}
    plan = Plan(nodes=(Node(name="a", tool="t", inputs=MappingProxyType(inputs)),), output=inputs["x"])
    data = {"nodes": {"a": {"tool": "t", "inputs": {"x": [1], "y": {"z": [2]}}}}, "output": [1]}

    inputs["x"].append(2)
    inputs["w"] = []

    assert (plan_to_data(plan), plan.digest) == (data, plan_from_data(data).digest)


def test_file_suffix_selects_format(tmp_path: Any) -> None:
    """JSON and TOML give the same plan."""
    (tmp_path / "p.toml").write_text('[nodes.a]\ntool = "math.add"\ninputs = { a = 1, b = 2.5 }')
    (tmp_path / "p.json").write_text('{"nodes": {"a": {"tool": "math.add", "inputs": {"a": 1, "b": 2.5}}}}')

    assert load_plan(tmp_path / "p.toml") == load_plan(tmp_path / "p.json")
    with pytest.raises(SpecError, match=r"gone\.toml: cannot be read: no such file or directory"):
        load_plan(tmp_path / "gone.toml")


VALUES = {
    "a": {"list": [1, {"key": True}], "odd key": 1.5, "7": "seven", "text": "é"},
    "b": None,
    "c": {1: "one", "2": "two"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$${a}", "${a}"),
        ("$5 and $", "$5 and $"),
        ("${b}", None),
        ("${a.list[0]}", 1),
        ("${a.list[-1].key}", True),
        ("${a.list.1.key}", True),
        ('${a["odd key"]}', 1.5),
        ("${a.7}", "seven"),
        ("${c[1]} ${c[2]}", "one two"),
        ("${a.text}: ${a.list} ${b}", 'é: [1, {"key": true}] null'),
        ("$${${a.7}", "${seven"),
        ("costs $$${a.list[0]}", "costs $1"),
        ("$$$${b}", "$${b}"),
    ],
)
def test_reference_resolves_to_value_or_text(text: str, expected: Any) -> None:
    """To the value itself if it is alone, otherwise to text."""
    faults: list[str] = []
    template = Template.of(text, "x", faults)

    assert (expected, []) == (template.fill(lambda reference: reference.within(VALUES[reference.root])), faults)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${a.gone}", "a has no gone"),
        ("${a.list[2]}", "a.list has no [2]"),
        ("${a.list[-3]}", "a.list has no [-3]"),
        ("${a.list.key}", "a.list has no key"),
        ("${a.text.x}", "a.text has no x"),
        ("${b.x[0]}", "b has no x"),
        ('${a["odd key"].x}', 'a["odd key"] has no x'),
        ('${a.list["²"]}', 'a.list has no ["\\u00b2"]'),
        ("${a.list." + "9" * 5000 + "}", f'a.list has no ["{"9" * 62}…'),
    ],
)
def test_unresolved_reference_names_missing_step(text: str, expected: str) -> None:
    """The error contains no value."""
    with pytest.raises(UnresolvedReference) as caught:
        Template.of(text, "x", []).fill(lambda reference: reference.within(VALUES[reference.root]))

    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (True, True),
        ("${yes}", True),
        ({"value": "${three}", "equals": 3}, True),
        ({"value": "${yes}", "equals": 1}, False),
        ({"value": "${three}", "ne": "${three}"}, False),
        ({"value": "${three}", "above": 3}, False),
        ({"value": "${three}", "at_least": 3.0}, True),
        ({"value": "${word}", "below": "x"}, True),
        ({"value": "${three}", "at_most": 2}, False),
        ({"value": "${word}", "in": ["apple", "pear"]}, True),
        ({"value": ["${word}"], "contains": "apple"}, True),
        ({"value": "${word}", "contains": "ppl"}, True),
        ({"value": "${yes}", "in": [1, 2]}, False),
        ({"value": [1, 2], "contains": "${yes}"}, False),
        ({"value": [{"a": 1}], "equals": [{"a": "${yes}"}]}, False),
        ({"value": [{"a": 3}], "equals": [{"a": "${three}"}]}, True),
        ({"value": [], "empty": True}, True),
        ({"value": "${word}", "empty": True}, False),
        ({"failed": "n"}, True),
        ({"succeeded": "n"}, False),
        ({"all": ["${yes}", {"not": {"skipped": "n"}}]}, True),
        ({"any": [{"not": "${yes}"}, {"succeeded": "n"}]}, False),
    ],
)
def test_condition_is_true_or_false(data: Any, expected: bool) -> None:
    """By values, by the status of a node, or by a combination."""
    values = {"yes": True, "three": 3, "word": "apple"}
    faults: list[str] = []
    condition = Condition.of(data, "when", faults)

    assert (expected, []) == (condition.holds(lambda each: values[each.root], lambda name: "failed"), faults)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("${word}", "expected true or false, got str"),
        ({"value": "${word}", "above": 3}, "above compares two numbers or two strings, got str and int"),
        ({"value": True, "below": 3}, "below compares two numbers or two strings, got bool and int"),
        ({"value": 3, "contains": 3}, "contains does not support int and int"),
        ({"value": 3, "in": 3}, "in does not support int and int"),
        ({"value": 3, "empty": True}, "empty does not support int and bool"),
        ({"value": "", "empty": 1}, "empty must be true or false, got int"),
    ],
)
def test_incomparable_values_are_an_error(data: Any, expected: str) -> None:
    """The message names types, never a value."""
    with pytest.raises(ComparisonError) as caught:
        Condition.of(data, "when", []).holds(lambda _: "apple", lambda _: "failed")

    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "data", [3, None, "no reference", "${a} and ${b}", [], {}, {"value": 1}, {"all": []}, {"failed": 3}, {"is": True}]
)
def test_invalid_condition_is_rejected(data: Any) -> None:
    """The error lists the valid forms."""
    faults: list[str] = []
    Condition.of(data, "when", faults)

    assert [f"when: {WRONG_WHEN}"] == faults


def test_zero_backoff_stays_zero() -> None:
    """With any factor; a pause beyond the range of floats is the longest one."""
    assert [Retry(count=9, backoff=each, factor=1e300).pause(9) for each in (0, 1)] == [0.0, 60.0]
