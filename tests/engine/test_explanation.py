"""Explanations of policies as data: sentences, comparisons, remedies, and explained calls."""

from __future__ import annotations

from typing import Annotated

import pytest

from neuroscript import (
    Arg,
    Engine,
    ExecutionPolicy,
    FlowLabels,
    Host,
    Isolation,
    Limits,
    PolicyError,
    ToolCall,
    ToolPolicy,
    Toolset,
)
from neuroscript.config.policy_file import policy_of_toml
from neuroscript.engine.explanation.checks import Explanation, explain
from neuroscript.engine.explanation.comparison import Verdict, compare
from neuroscript.engine.explanation.description import Group, describe
from neuroscript.engine.explanation.remedies import remedy_of
from neuroscript.engine.explanation.tool_sources import source_of

tools = Toolset("box")


@tools.tool(policy=ToolPolicy(capabilities=("fs:read:{path}",), effects=("reads",)))
def read(path: str) -> str:
    """Return the path."""
    return path


@tools.tool(policy=ToolPolicy(capabilities=("net:write:{key}",)))
def send(key: Annotated[str, Arg("Who pays.", secret=True)]) -> bool:
    """Return True."""
    return True


@tools.tool(policy=ToolPolicy(requires_trust=True))
def trusted() -> bool:
    """Return True."""
    return True


@tools.tool(policy=ToolPolicy(requires_approval=True))
def approved() -> bool:
    """Return True."""
    return True


@tools.tool(policy=ToolPolicy(effects=("pure",)))
def add(a: int, b: int) -> int:
    """Return the sum."""
    return a + b


def engine_of(policy: ExecutionPolicy, **options: object) -> Engine:
    return Engine(toolsets=tools, policy=policy, plugins="none", **options)  # type: ignore[arg-type]


def texts(policy: ExecutionPolicy, group: Group) -> list[tuple[str, str, int | None, int]]:
    return [(each.text, each.rule, each.tools, each.layer) for each in describe(policy, ["box.read", "box.add"])[group]]


def explained(engine: Engine, name: str, arguments: object = None) -> Explanation:
    tool = engine.tools[name]
    call = None if arguments is None else ToolCall(name, arguments)  # type: ignore[arg-type]
    return explain(engine, tool, source_of(engine, name), call)


# Sentences


def test_patterns_and_defaults_of_a_policy_are_sentences() -> None:
    """Each has the rule as the policy writes it, and the number of tools that it matches."""
    policy = ExecutionPolicy(allow=("box.*", "box.add"), deny=("*.read",), preapproved=("box.add",))

    assert texts(policy, "run") == [
        ("Each tool that matches box.* may run.", "allow: box.*", 2, 0),
        ("box.add may run.", "allow: box.add", 1, 0),
    ]
    assert texts(policy, "approval") == [
        ("box.add runs without an approval, even if it requires one.", "preapproved: box.add", 1, 0)
    ]
    assert [each[:3] for each in texts(policy, "refused")] == [
        ("Each tool that matches *.read may not run, even if another pattern allows it.", "deny: *.read", 1),
        ("Tools that no pattern allows may not run.", "allow", None),
        ("Tools that require a trusted host may not run.", "", None),
        ("Tools that require an approval and are not preapproved may not run: there is no approver.", "", None),
    ]


@pytest.mark.parametrize(
    ("grant", "text"),
    [
        ("fs:read,write:data/**", "Tools may read files and write files matching data/**."),
        ("fs:*:a,b", "Tools may read files, write files and delete files matching a or b."),
        ("net:read:api.example.com:443", "Tools may read from the network at api.example.com:443."),
        ("env:read:HOME", "Tools may read environment variables named HOME."),
        ("*:*:*", "Tools may do anything with every resource."),
        ("shop:buy,sell:*", "Tools may buy shop and sell shop."),
        ("shop:*:x", "Tools may do anything with shop matching x."),
    ],
)
def test_grant_is_a_sentence(grant: str, text: str) -> None:
    """Unknown resources and verbs are named as they are."""
    assert [each[0] for each in texts(ExecutionPolicy(grants=(grant,)), "grants")] == [text]


def test_limits_are_sentences() -> None:
    """Every limit that is set has one; the depth always has one."""
    limits = Limits(calls=5, tool_calls={"box.add": 0, "box.read": 2}, rates={"*": "3/hour"}, money={"EUR": "0.50"})

    assert [each[:2] for each in texts(ExecutionPolicy(limits=limits), "limits")] == [
        ("At most 5 calls in a session.", "limits.calls: 5"),
        ("Nested calls may be at most 16 deep.", ""),
        ("box.add may not be called.", "limits.tool_calls: box.add = 0"),
        ("box.read may be called at most 2 times in a session.", "limits.tool_calls: box.read = 2"),
        ("All tools that match * together may be called at most 3 times in any hour.", "limits.rates: * = 3/hour"),
        ("All calls may cost at most 0.50 EUR.", "limits.money: EUR = 0.50"),
    ]


def test_flow_rules_and_labels_are_sentences() -> None:
    """A label with braces is text, not a placeholder."""
    labels = (FlowLabels("box.read", sources=("private",), sinks=(), declassifies=("untrusted",)),)

    assert [each[0] for each in texts(ExecutionPolicy(flow="lethal-trifecta", labels=labels), "flow")] == [
        "After a session has read data that is untrusted and private, a call that leaves the user's organization "
        "or is published needs an approval.",
        "box.read: its results carry private; it sends its arguments to nothing; it removes untrusted.",
    ]


def test_sentences_name_the_layer_that_has_the_rule() -> None:
    """The innermost policy is layer 0; the defaults of an outer layer apply too."""
    policy = ExecutionPolicy(isolate=Isolation(tools=("box.read",))).narrowed(allow=("box.add",), isolate=None)

    assert [(each[0], each[3]) for each in texts(policy, "run")] == [
        ("box.add may run.", 0),
        ("Every tool may run unless another rule refuses it.", 1),
    ]
    assert [(each[0], each[3]) for each in texts(policy, "isolation")] == [
        ("box.read runs in a worker process.", 1),
        ("A worker may use 1073741824 bytes of memory.", 1),
    ]


# Comparisons


def test_comparison_lists_tools_with_another_verdict() -> None:
    """A tool that another pattern allows is not a difference; a wider grant is."""
    before = policy_of_toml("policy.deny = ['box.add']\npolicy.grants = ['fs:read:a']")
    after = policy_of_toml("policy.allow = ['box.*']\npolicy.grants = ['fs:read:**']\npolicy.trusted = true")
    with engine_of(before) as engine:
        found = compare(before, after, engine.tools, engine.aliases)

    assert [(each.tool, each.before, each.after, each.is_wider) for each in found.tools] == [
        ("box.add", Verdict("refused", "box.add", "is denied by the host"), Verdict("runs", "box.*"), True),
        (
            "box.read",
            Verdict("depends", "*", "within fs:read:a"),
            Verdict("depends", "box.*", "within fs:read:**"),
            False,
        ),
        ("box.trusted", Verdict("refused", "trust", "requires a trusted host"), Verdict("runs", "box.*"), True),
    ]
    assert [each.text for each in found.added["grants"]] == ["Tools may read files matching **."]
    assert [each.text for each in found.removed["grants"]] == ["Tools may read files matching a."]


def test_tool_that_never_runs_for_two_reasons_does_not_differ() -> None:
    """The consequence is the same."""
    before, after = ExecutionPolicy(deny=("box.trusted",)), ExecutionPolicy(allow=("box.add",), trusted=True)
    with engine_of(before) as engine:
        found = compare(before, after, engine.tools)

    assert [each.tool for each in found.tools] == []


def test_equal_policies_do_not_differ() -> None:
    policy = ExecutionPolicy(deny=("box.read",), approver=print)
    with engine_of(policy) as engine:
        found = compare(policy, policy, engine.tools)

    assert (found.tools, found.added, found.removed) == ((), {}, {})


# Remedies


@pytest.mark.parametrize(
    ("policy", "tool", "option", "toml", "python"),
    [
        (
            ExecutionPolicy(),
            "box.read",
            "--grant 'fs:read:it'\"'\"'s \"a\"'",
            '[policy]\ngrants = ["fs:read:it\'s \\"a\\""]',
            "grants=('fs:read:it\\'s \"a\"',)",
        ),
        (ExecutionPolicy(), "box.trusted", "--trusted", "[policy]\ntrusted = true", "trusted=True"),
        (
            ExecutionPolicy(),
            "box.approved",
            "--preapproved 'box.approved'",
            '[policy]\npreapproved = ["box.approved"]',
            "preapproved=('box.approved',)",
        ),
        (
            ExecutionPolicy(allow=("x.*",)),
            "box.trusted",
            "--trusted",
            "[policy]\ntrusted = true",
            "trusted=True",
        ),
        (
            ExecutionPolicy(allow=("x.*",)),
            "box.approved",
            "--allow 'box.approved'",
            '[policy]\nallow = ["box.approved"]',
            "allow=('box.approved',)",
        ),
        (ExecutionPolicy(deny=("*.approved",)), "box.approved", "", "", ""),
        (
            ExecutionPolicy(allow=(), otherwise="ask"),
            "box.approved",
            "",
            '[policy]\nallow = ["box.approved"]',
            "allow=('box.approved',)",
        ),
    ],
)
def test_remedy_permits_the_call(policy: ExecutionPolicy, tool: str, option: str, toml: str, python: str) -> None:
    """The policy file and the Python arguments of the remedy change the decision."""
    arguments = {"path": 'it\'s "a"'} if tool == "box.read" else {}
    with engine_of(policy) as engine:
        decision = explained(engine, tool, arguments).decision
    remedy = remedy_of(decision)

    assert remedy is not None
    assert (remedy.option, remedy.toml, remedy.python) == (option, toml, python)
    if toml and policy == ExecutionPolicy():
        for changed in (policy_of_toml(toml), eval(f"ExecutionPolicy({python})")):
            with engine_of(changed) as engine:
                assert explained(engine, tool, arguments).decision.allowed


def test_remedies_of_denials_and_limits_are_sentences() -> None:
    """They have no option, because there is no option that removes a rule."""
    with engine_of(ExecutionPolicy(deny=("box.*",))) as engine:
        denied = remedy_of(explained(engine, "box.add", {"a": 1, "b": 2}).decision)
    with engine_of(ExecutionPolicy(limits=Limits(calls=0))) as engine:
        limited = remedy_of(explained(engine, "box.add", {"a": 1, "b": 2}).decision)

    assert denied is not None
    assert (denied.text, denied.option) == ("remove the pattern 'box.*' from deny", "")
    assert limited is not None
    assert limited.text == "raise the limit, or start a new session"
    assert remedy_of(PolicyError("refused", code="policy.rejected")) is None


# Explained calls


def test_explanation_has_a_sentence_for_a_call_and_for_a_tool() -> None:
    with engine_of(ExecutionPolicy(grants=("fs:read:**",))) as engine:
        assert explained(engine, "box.read", {"path": "a"}).text == "box.read: would run (allowed by *)"
        assert explained(engine, "box.read").text == "box.read: may run, depending on its arguments"
        assert explained(engine, "box.trusted").text == "box.trusted: can never run: requires a trusted host"
        assert explained(engine, "box.add", {"a": "x", "b": 2}).text == (
            "box.add: invalid arguments: a: expected int, got str (a string must be a decimal integer, such as 42)"
        )


def test_explanation_of_a_session_uses_its_narrower_policy() -> None:
    """The session of a visitor may permit less than its engine."""
    with engine_of(ExecutionPolicy(grants=("fs:read:**",))) as engine:
        session = engine.session().narrowed(allow=["box.add"])
        tool, source = engine.tools["box.read"], source_of(engine, "box.read")
        found = explain(session, tool, source, ToolCall("box.read", {"path": "a"}))

    assert not found.decision.allowed
    assert [(each.name, each.outcome) for each in found.checks if each.outcome == "refuses"] == [("allow", "refuses")]


def test_explanation_contains_no_secret() -> None:
    """Neither the value of a secret argument, nor a secret of the host in another argument."""
    host = Host(secrets={"crm": "hunter2-of-the-host"})
    with engine_of(ExecutionPolicy(grants=("fs:read:**", "net:*:*")), host=host) as engine:
        found = [
            explained(engine, "box.send", {"key": "hunter2-of-the-caller"}),
            explained(engine, "box.read", {"path": "hunter2-of-the-host/a"}),
        ]

    assert "hunter2" not in repr(found)
