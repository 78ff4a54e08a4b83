"""Properties of information flow, for generated policies, plans and strings."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flow.mail_tools import ADDRESS, MAIL, PAGE, engine_with, toolset
from tests.flow.mail_tools import run as call

from neuroscript import Approval, Engine, ExecutionPolicy, FlowLabels, FlowRule, Session
from neuroscript.policy.flow_rules import STRICTNESS, find_flows, flow_of
from neuroscript.workflow import Plan, plan_from_data, run

NOTHING: Final = FlowRule(["host:none"], ["outside"], "refuse")
"""A rule that matches no label of these tools; the session tracks labels because of it."""

LABELS: Final = st.lists(st.sampled_from(["untrusted", "private", "private:mail", "crm:x"]), unique=True)


# Labels are monotone, and exact in plans

INPUTS: Final = ("a", "b", "c")
Graph = list[tuple[list[int], list[str], bool]]
"""For each node: the nodes before it and the inputs that it refers to, and whether it does so through a map."""


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Return a plan as the references of its nodes."""
    count = draw(st.integers(1, 5))
    return [
        (
            draw(st.lists(st.integers(0, index - 1), unique=True, max_size=2)) if index else [],
            draw(st.lists(st.sampled_from(INPUTS), unique=True, max_size=2)),
            draw(st.booleans()),
        )
        for index in range(count)
    ]


def plan_of(graph: Graph) -> Plan:
    """Return the plan of a graph."""
    return plan_from_data(
        {"nodes": dict(map(node_of, range(len(graph)), graph)), "inputs": dict.fromkeys(INPUTS, "string")}
    )


def node_of(index: int, references: tuple[list[int], list[str], bool]) -> tuple[str, dict[str, Any]]:
    """Return the name and the data of a node."""
    nodes, inputs, is_map = references
    text = " ".join(["of", *(f"${{n{each}}}" for each in nodes), *(f"${{input.{each}}}" for each in inputs)])
    if is_map:
        return f"n{index}", {"tool": "t.upper", "map": ["first", text], "inputs": {"text": "${item}"}}
    return f"n{index}", {"tool": "t.upper", "inputs": {"text": text}}


def labels_of_nodes(graph: Graph, labels: dict[str, list[str]]) -> list[tuple[str, ...]]:
    """Return the labels of each node in a run."""
    with engine_with(NOTHING) as engine:
        trace = run(engine, plan_of(graph), dict.fromkeys(INPUTS, "text"), labels=labels)
    return [node.labels for node in trace.nodes]


def reachable_labels(graph: Graph, labels: dict[str, list[str]]) -> list[tuple[str, ...]]:
    """Return the labels of the inputs that each node refers to, directly or through other nodes."""
    found: list[set[str]] = []
    for nodes, inputs, _ in graph:
        of_inputs = (labels.get(each, []) for each in inputs)
        found.append(set().union(*(found[each] for each in nodes), *of_inputs))
    return [tuple(sorted(each)) for each in found]


OF_INPUTS: Final = st.dictionaries(st.sampled_from(INPUTS), LABELS)


@settings(deadline=None, max_examples=60)
@given(graphs(), OF_INPUTS, OF_INPUTS)
def test_nodes_carry_the_labels_that_reach_them_and_more_input_gives_no_fewer(
    graph: Graph, labels: dict[str, list[str]], more: dict[str, list[str]]
) -> None:
    joined = {name: [*labels.get(name, []), *more.get(name, [])] for name in {*labels, *more}}
    fewer, all_of_them = labels_of_nodes(graph, labels), labels_of_nodes(graph, joined)

    assert fewer == reachable_labels(graph, labels)
    assert all_of_them == reachable_labels(graph, joined)
    assert all(set(few) <= set(many) for few, many in zip(fewer, all_of_them, strict=True))


LONG_TEXTS: Final = (PAGE, MAIL, ADDRESS, "4471-beta-gamma")
TEXTS: Final = st.sampled_from([*LONG_TEXTS, "vault", "see you at noon", "nothing"])
READ: Final = st.lists(st.tuples(TEXTS, LABELS), max_size=4)


@settings(deadline=None, max_examples=100)
@given(READ, READ, TEXTS, st.sampled_from(LONG_TEXTS), TEXTS)
def test_more_labelled_text_gives_no_fewer_labels(
    read: list[tuple[str, list[str]]], more: list[tuple[str, list[str]]], text: str, long: str, other: str
) -> None:
    """A long text is found within other text too; of a short one, only the whole argument is compared."""

    def labels(documents: list[tuple[str, list[str]]], argument: str) -> set[str]:
        with engine_with(NOTHING) as engine:
            for document, names in documents:
                engine.add_labelled(document, names)
            return set(call(engine, "upper", argument).labels)

    assert labels(read, text) <= labels([*read, *more], text)
    assert labels(read, long) <= labels(read, f"{other} {long}")


# Narrowing

THEN: Final = st.sampled_from(["ask", "refuse", "allow"])
RULES: Final = st.builds(
    FlowRule,
    st.lists(
        st.sampled_from(["untrusted", "private", "private:mail", "*", "untrusted+private"]), min_size=1, max_size=2
    ),
    st.lists(st.sampled_from(["outside", "storage", "*"]), min_size=1, max_size=2),
    THEN,
    st.sampled_from(["values", "session"]),
)
SINKS: Final = st.lists(st.sampled_from(["outside", "storage"]), unique=True)
NAMES: Final = st.lists(st.sampled_from(["untrusted", "private", "private:mail", "private:wiki"]), unique=True)


@given(st.lists(RULES, max_size=4), NAMES, NAMES)
def test_further_labels_never_make_a_decision_less_strict(
    rules: list[FlowRule], names: list[str], more: list[str]
) -> None:
    """A session can add labels to a tool, so they must not reach an exception of the engine."""

    def strictness(labels: list[str]) -> int:
        found = find_flows(ExecutionPolicy(flow=rules).layers, ["outside"], labels, labels)
        return max((STRICTNESS[flow.then] for flow in found), default=0)

    assert strictness(names) <= strictness([*names, *more])


PATTERNS: Final = st.sampled_from(["*", "t.*", "t.send", "t.upper", "t.summary"])
HOST_LABELS: Final = st.builds(
    FlowLabels, PATTERNS, sources=st.none() | LABELS, sinks=st.none() | SINKS, declassifies=LABELS
)


def approve(request: Any) -> Approval:
    return Approval.approve()


POLICIES: Final = st.builds(
    ExecutionPolicy,
    allow=st.lists(PATTERNS, min_size=1, max_size=2),
    deny=st.lists(PATTERNS.filter(lambda pattern: pattern not in ("*", "t.*")), max_size=1),
    trusted=st.booleans(),
    approver=st.sampled_from([None, approve]),
    otherwise=st.sampled_from(["refuse", "ask"]),
    flow=st.lists(RULES, max_size=3),
    labels=st.lists(HOST_LABELS, max_size=2),
    trust_textless=st.booleans(),
    grants=st.just(("fs:*:*",)),
)
CALLS: Final = st.sampled_from(
    [
        ("send", [ADDRESS, "hello"]),
        ("send", ["ada@home.example", MAIL]),
        ("upper", [PAGE]),
        ("summary", [f"{MAIL} {PAGE}"]),
        ("page", []),
        ("is_new", []),
    ]
)


def strictness(session: Session, name: str, args: list[str]) -> int:
    """Return 0 for a call that may run, 1 for one that needs an approval, and 2 for one that is refused."""
    decision = session.check([{"name": f"t.{name}", "arguments": args}])[0]
    return int(decision.needs_approval) if decision.allowed else 2


@settings(deadline=None, max_examples=300)
@given(POLICIES, POLICIES, READ, CALLS)
def test_narrowing_never_allows_more(
    outer: ExecutionPolicy, inner: ExecutionPolicy, read: list[tuple[str, list[str]]], called: tuple[str, list[str]]
) -> None:
    name, args = called
    with Engine(policy=outer, toolsets=toolset, plugins="none") as engine:
        narrowed = engine.narrowed(inner)
        for document, labels in read:
            engine.add_labelled(document, labels)
        before, after = strictness(engine, name, args), strictness(narrowed, name, args)
        assert before <= after

        whole, within = call(engine, name, *args), call(narrowed, name, *args)
        assert whole.ok or not within.ok
        if within.ok and outer.has_flow_rules:
            assert set(whole.labels) <= set(within.labels)


@settings(deadline=None, max_examples=100)
@given(POLICIES, st.lists(PATTERNS, max_size=2), CALLS, st.sampled_from(["refuse", "ask"]))
def test_allow_list_never_allows_more(
    policy: ExecutionPolicy, allow: list[str], called: tuple[str, list[str]], otherwise: Any
) -> None:
    name, args = called
    with Engine(policy=policy, toolsets=toolset, plugins="none") as engine:
        narrowed = engine.narrowed(allow=allow, otherwise=otherwise)

        assert strictness(engine, name, args) <= strictness(narrowed, name, args)
        is_listed = any(pattern in ("*", "t.*", f"t.{name}") for pattern in allow)
        if not is_listed:
            assert strictness(narrowed, name, args) >= (1 if otherwise == "ask" else 2)


DECLARED: Final = {tool.name: tool.policy for tool in toolset}


@settings(deadline=None, max_examples=300)
@given(POLICIES, POLICIES, st.sampled_from(sorted(DECLARED)))
def test_enclosed_policy_removes_no_labels(outer: ExecutionPolicy, inner: ExecutionPolicy, tool: str) -> None:
    whole, within = (flow_of(policy, tool, DECLARED[tool]) for policy in (outer, inner.inside(outer)))

    assert set(whole.sources) <= set(within.sources)
    assert set(whole.sinks) <= set(within.sinks)
    assert set(within.declassifies) <= set(whole.declassifies)
