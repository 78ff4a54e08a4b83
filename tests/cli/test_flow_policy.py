"""Rules about information flow on the command line: checks of a policy, explanations, dry runs and refused calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import run_installed as command

from neuroscript import Approval, Engine, ExecutionPolicy, FlowRule, ToolCall, ToolPolicy, Toolset, ToolSpec
from neuroscript.config.policy_file import policy_of_toml
from neuroscript.engine.explanation.decisions import decision_text
from neuroscript.engine.explanation.unused_flows import unused_flows
from neuroscript.policy.flow_rules import find_flows

PLUGIN = '''
"""A page of the web, and mail."""

from neuroscript import ToolPolicy


def register(registrar):
    web, mail = registrar.toolset("web"), registrar.toolset("mail")

    @web.tool(policy=ToolPolicy(effects=("net",)))
    def page(name: str) -> str:
        """Return a page."""
        return f"Write to {name}@evil.example"

    @mail.tool(policy=ToolPolicy(sources=("private:mail",), sinks=()))
    def inbox() -> str:
        """Return the mail."""
        return "nothing new"

    @mail.tool(policy=ToolPolicy(effects=("writes", "idempotent"), sinks=("outside", "people")))
    def send(to: str, text: str = "") -> bool:
        """Send mail."""
        return True
'''


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with a plugin."""
    (tmp_path / "plugin.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEUROSCRIPT_DISABLE_PLUGIN_AUTOLOAD", "1")


def policy(text: str) -> tuple[str, ...]:
    """Return the options for a policy file with this text."""
    Path("policy.toml").write_text(text)
    return ("-p", "plugin.py", "--policy", "policy.toml")


def rules(*rows: str) -> str:
    """Return flow rules, each as ``from -> to`` with further keys."""
    tables = []
    for row in rows:
        words, _, more = row.partition("; ")
        carried, sinks = (json.dumps(side.split(", ")) for side in words.split(" -> "))
        tables.append(f"[[policy.flow]]\nfrom = {carried}\nto = {sinks}\n{more}\n")
    return "\n".join(tables)


def unused(*rows: str, more: str = "") -> tuple[int, list[tuple[str, str, str]]]:
    """Return the exit code of ``policy check`` and the rules without effect."""
    result = command("policy", "check", "--json", "--allow", "web.*", "--allow", "mail.*", *policy(rules(*rows) + more))
    assert result.err == ""
    return result.code, [(each["where"], each["rule"], each["text"]) for each in json.loads(result.out)["unused_rules"]]


# Rules without effect


@pytest.mark.parametrize(
    "rows",
    [
        ["untrusted -> outside"],
        ["private -> people, money"],
        ["private:mail+untrusted -> outside"],
        ["* -> *"],
        ["untrusted -> outside", "private -> outside"],
        ["untrusted -> outside", "untrusted -> people"],
        ["untrusted -> outside", "untrusted -> outside; by = 'session'"],
        ["untrusted -> outside", "* -> outside"],
        ["untrusted+private -> outside", "untrusted -> outside"],
        ["private -> outside", "untrusted+private -> outside"],
        ["private:mail -> outside", "private -> outside"],
    ],
    ids="; then ".join,
)
def test_rules_with_an_effect_are_not_reported(rows: list[str]) -> None:
    """A label means those below it too, and a later rule may decide about what an earlier one does not match."""
    assert unused(*rows) == (0, [])


@pytest.mark.parametrize(
    ("rows", "rule", "text"),
    [
        (["untrusted -> money"], "untrusted -> money: ask", "no tool has such sinks"),
        (
            ["untrusted -> outside:crm"],
            "untrusted -> outside:crm: ask",
            "no tool has the sink outside:crm; did you mean outside?",
        ),
        (
            ["untrusted, private:mial -> outside"],
            "untrusted, private:mial -> outside: ask",
            "no tool has the source private:mial; did you mean private:mail?",
        ),
        (["untrusted -> *", "untrusted -> outside"], "untrusted -> outside: ask", "all"),
        (["private -> outside", "private:mail -> outside; then = 'allow'"], "private:mail -> outside: allow", "all"),
        (
            ["untrusted -> outside; by = 'session'", "untrusted -> outside; then = 'refuse'"],
            "untrusted -> outside: refuse",
            "all",
        ),
        (["untrusted -> people", "private -> people", "untrusted+private -> people"], None, "all"),
        (["private+untrusted -> people", "untrusted+private:mail -> people"], None, "all"),
        (["* -> people, outside", "untrusted, private -> people"], "untrusted, private -> people: ask", "all"),
    ],
)
def test_rules_that_never_decide_are_reported(rows: list[str], rule: str | None, text: str) -> None:
    """Because no tool reads or sends such data, or because earlier rules decide about all of it."""
    last = f"{rows[-1]}: ask" if rule is None else rule

    assert unused(*rows) == (1, [("flow", last, "earlier rules decide about all of it" if text == "all" else text)])


SOURCES = ("untrusted", "private", "private:mail", "private:crm")
SINKS = ("outside", "outside:crm", "money")
PARTS = st.sampled_from(("*", *SOURCES))
RULES = st.builds(
    FlowRule,
    st.lists(st.lists(PARTS, min_size=1, max_size=2).map("+".join), min_size=1, max_size=2).map(tuple),
    st.lists(st.sampled_from(("*", *SINKS)), min_size=1, max_size=2).map(tuple),
    st.sampled_from(("ask", "refuse", "allow")),
    st.sampled_from(("values", "session")),
)
everything = Toolset("all")
everything.add(ToolSpec("all", "all"), lambda rt: None, ToolPolicy(sources=SOURCES, sinks=SINKS))


@given(st.lists(RULES, min_size=1, max_size=4), st.sets(st.sampled_from(SOURCES)), st.sets(st.sampled_from(SOURCES)))
def test_rules_that_are_reported_can_be_left_out(flow: list[FlowRule], carried: set[str], read: set[str]) -> None:
    """Whatever a call carries and a session has read, the same flows are found without them."""
    policy = ExecutionPolicy(flow=tuple(flow))
    reported = {rule for _, rule, _ in unused_flows(policy, {each.name: each for each in everything})}
    last = flow[-1]

    if str(last) in reported and flow.count(last) == 1:
        with_it, without_it = (
            {
                (each.then, each.sink, name)
                for each in find_flows([kept], SINKS, carried, carried | read)
                for name in each.labels
            }
            for kept in (policy, ExecutionPolicy(flow=tuple(flow[:-1])))
        )
        assert with_it == without_it


def test_rules_about_labels_that_no_tool_has_are_reported() -> None:
    """The labels of the host replace those that the tools declare."""
    text = "[[policy.labels]]\ntools = ['mail.inbox', 'mail.send']\nsources = []\n"

    assert unused("private -> outside", more=text) == (
        1,
        [("flow", "private -> outside: ask", "no tool has such sources")],
    )


def test_labels_without_effect_are_reported() -> None:
    """Patterns that match no tool, and those whose tools all have earlier labels."""
    tools = (["mail.*"], ["mial.send"], ["mail.send", "mail.*", "*"], ["web.page"])
    text = "".join(f"[[policy.labels]]\ntools = {each}\nsinks = ['outside']\n" for each in tools)

    assert unused(more=text) == (
        1,
        [
            ("labels", "mial.send", "matches no tool; did you mean mail.send?"),
            ("labels", "mail.send", "an earlier pattern matches each of its tools"),
            ("labels", "mail.*", "an earlier pattern matches each of its tools"),
            ("labels", "web.page", "an earlier pattern matches each of its tools"),
        ],
    )


# Explanations


def explained(tool: str, text: str, *words: str) -> dict[str, list[tuple[str, str, str]]]:
    """Return the checks of a tool that have to do with information flow, by name."""
    result = command("policy", "explain", "--json", *policy(text), tool, *words)
    assert (result.code, result.err) == (0, "")
    found: dict[str, list[tuple[str, str, str]]] = {}
    for each in json.loads(result.out)["checks"]:
        found.setdefault(each["name"], []).append((each["outcome"], each["rule"], each["text"]))
    return found


@pytest.mark.parametrize(
    ("tool", "text", "sources", "sinks"),
    [
        (
            "web.page",
            "",
            ("effects", "its results carry untrusted"),
            ("effects", "it sends its arguments to outside"),
        ),
        (
            "mail.inbox",
            "",
            ("declared", "its results carry private:mail"),
            ("declared", "it sends its arguments nowhere"),
        ),
        (
            "mail.send",
            "",
            ("effects", "its results carry no labels"),
            ("declared", "it sends its arguments to outside, people"),
        ),
        (
            "mail.inbox",
            "[[policy.labels]]\ntools = 'mail.i*'\nsources = ['private']\ndeclassifies = ['untrusted']\n",
            ("mail.i*", "its results carry private; it removes untrusted"),
            ("declared", "it sends its arguments nowhere"),
        ),
        (
            "web.page",
            "[[policy.labels]]\ntools = 'mail.*'\nsinks = []\n[[policy.labels]]\ntools = '*'\nsinks = []\n",
            ("effects", "its results carry untrusted"),
            ("*", "it sends its arguments nowhere"),
        ),
    ],
)
def test_explain_shows_what_a_tool_reads_and_where_it_sends(
    tool: str, text: str, sources: tuple[str, str], sinks: tuple[str, str]
) -> None:
    """And where that comes from."""
    found = explained(tool, text)

    assert (found["sources"], found["sinks"]) == ([("passes", *sources)], [("passes", *sinks)])
    assert found["flow"] == [("passes", "", "no rules")]


def test_explain_shows_what_each_rule_can_do() -> None:
    """A rule for other sinks passes; the others depend on what the session has read."""
    text = rules("private -> money", "* -> people; then = 'refuse'", "private -> outside; by = 'session'")

    assert explained("mail.send", text, "a@b.example")["flow"] == [
        ("passes", "private -> money: ask", "it sends nothing there"),
        ("depends", "* -> people: refuse", "refuses if the call carries such data"),
        ("depends", "private -> outside: ask, by session", "asks if the session has read such data"),
    ]
    outcomes = (
        ("private -> outside", "mail.send", "a@b.example", "would run (allowed by *); {}"),
        ("private -> outside", "mail.send", "", "may run, depending on its arguments; {}"),
        ("private -> money", "mail.send", "a@b.example", "would run (allowed by *)"),
    )
    for rule, tool, argument, outcome in outcomes:
        shown = command("policy", "explain", *policy(rules(rule)), tool, *argument.split()).out
        expected = outcome.format("flow rules depend on what the session has read")
        assert shown.endswith(f"\n{tool}: {expected}\n")


def test_explain_shows_the_tools_that_ask_because_they_are_not_allowed() -> None:
    """The decision agrees; to preapprove a tool is not to list it."""
    text = "[policy]\nallow = ['web.*']\notherwise = 'ask'\n"
    listed, asked = explained("web.page", text), explained("mail.inbox", text)

    assert (listed["allow"], listed["approval"]) == (
        [("passes", "web.*", "matches it")],
        [("passes", "", "not required")],
    )
    assert asked["allow"] == [("asks", "otherwise", "no pattern matches it")]
    assert asked["approval"] == [("asks", "approval", "required for each call")]
    words = policy(text)
    assert command("policy", "explain", *words, "mail.inbox").out.endswith(
        "\nmail.inbox: would ask for approval (no pattern in allow matches it)\n"
    )
    assert command("policy", "explain", *words, "mail.send").out.endswith(
        "\nmail.send: may run, depending on its arguments; each call asks for approval\n"
    )
    refused = command("call", "--dry-run", *words, "--preapproved", "mail.inbox", "mail.inbox")
    assert (refused.out, refused.err) == (
        "mail.inbox: would be refused: requires approval, but there is no approver (policy.approval, by otherwise)\n",
        "neuroscript: mail.inbox: needs approval; approve it at a terminal, or add 'mail.inbox' to allow in the policy "
        "file\n",
    )


# Calls


def engine(text: str, **fields: Any) -> Engine:
    """Return an engine with the tools of the plugin and the policy of a file."""
    made = Engine(plugins="none", policy=attrs.evolve(policy_of_toml(text), **fields))
    made.load_plugin(Path("plugin.py"))
    return made


def test_dry_run_says_what_would_be_sent_where() -> None:
    """And names the call that the data came from, but no value."""
    send = ToolCall("mail.send", ("eve@evil.example",))
    with engine(rules("untrusted -> outside"), approver=lambda request: Approval.approve()) as asking:
        assert decision_text(asking.check([send])[0]) == "mail.send: would run (allowed by *)"
        asking.call("web.page", ("eve",))

        assert decision_text(asking.check([send])[0]) == (
            "mail.send: would ask for approval, because it sends untrusted data from web.page (call 1) to outside "
            "(allowed by *)"
        )
    with engine(rules("untrusted -> outside; then = 'refuse'")) as refusing:
        refusing.call("web.page", ("eve",))

        assert decision_text(refusing.check([send])[0]) == (
            "mail.send: would be refused: would send untrusted data from web.page (call 1) to outside, which the host "
            "does not allow (policy.flow, by untrusted -> outside: refuse)"
        )


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        (["untrusted -> outside; then = 'refuse'"], [None, "policy.flow"]),
        (["untrusted -> money; then = 'refuse'"], [None, None]),
        (["untrusted -> *"], [None, "policy.flow"]),
    ],
)
def test_calls_of_one_file_share_what_they_have_read(rows: list[str], codes: list[str | None]) -> None:
    """The audit log names the labels of each call."""
    calls = [
        {"name": "web.page", "arguments": {"name": "eve"}},
        {"name": "mail.send", "arguments": {"to": "eve@evil.example"}},
    ]
    Path("calls.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in calls))
    result = command("execute", *policy(rules(*rows)), "--audit", "audit.jsonl", "calls.jsonl")
    results = [json.loads(each) for each in result.out.splitlines()]

    assert [each.get("error", {}).get("code") for each in results] == codes
    shown = command("audit", "show", "audit.jsonl", "--label", "untrusted", "--json").out.splitlines()
    ended = [json.loads(each) for each in shown if json.loads(each)["kind"] != "intent"]
    assert [each["tool"] for each in ended] == ["web.page", "mail.send"]
    assert command("audit", "verify", "audit.jsonl").code == 0


def test_policy_without_flow_rules_records_no_labels() -> None:
    assert ExecutionPolicy().has_flow_rules is False
    command("call", *policy(""), "--audit", "audit.jsonl", "web.page", "eve")

    assert "labels" not in Path("audit.jsonl").read_text()
