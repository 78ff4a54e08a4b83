"""Policy files: their fields, their profiles, and problems with a line and a path."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from neuroscript import (
    Engine,
    ExecutionPolicy,
    FlowLabels,
    FlowRule,
    Isolation,
    SpecError,
    ToolCall,
    ToolPolicy,
    Toolset,
    load_policy,
)
from neuroscript.config.policy_file import MAX_FILE_BYTES, policy_of_toml, profile_names
from neuroscript.policy.flow_rules import FLOW_PROFILES
from neuroscript.policy.limits import Limits

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted(DOCS.glob("*/*.md"))]
EXAMPLES = [
    (f"{page.name} {index}", text)
    for page in PAGES
    for index, text in enumerate(re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL))
    if not text.startswith(("[project", "[build-system", "[checks"))  # for pyproject.toml and for Schemathesis
] + [(path.name, path.read_text()) for path in sorted(DOCS.glob("examples/*.toml")) if path.name != "schemathesis.toml"]

WHOLE = """\
[policy]
allow = ["fs.*", "tool.Math.*"]      # groups
deny = [
    "*.delete",  # whatever is allowed
]
grants = ["fs:read:inbox/**"]
trusted = true
preapproved = ["fs.write"]

[policy.limits]
calls = 100
tool_calls = {"fs.move" = 0}
rates = {"http.*" = "60/minute"}
money = {EUR = 0.10}
seconds = 2.5

[policy.profiles.careful]
deny = ["*.delete", "*.write"]
trusted = false

[policy.profiles.careful.limits]
calls = 3

[policy.profiles.idle]
allow = []
"""


def faults(text: str, profile: str | None = None) -> list[str]:
    """Return the problems of a policy file."""
    with pytest.raises(SpecError) as caught:
        policy_of_toml(text, source="neuroscript.toml", profile=profile)
    return [*caught.value.sentences]


def test_a_file_has_the_fields_of_a_policy(tmp_path: Path) -> None:
    """With exact decimals."""
    path = tmp_path / "neuroscript.toml"
    path.write_text(WHOLE)

    limits = Limits(
        calls=100, tool_calls={"fs.move": 0}, rates={"http.*": "60/minute"}, money={"EUR": Decimal("0.10")}, seconds=2.5
    )
    expected = ExecutionPolicy(
        allow=("fs.*", "math.*"),
        deny=("*.delete",),
        grants=("fs:read:inbox/**",),
        trusted=True,
        limits=limits,
        preapproved=("fs.write",),
    )
    assert expected == load_policy(path) == load_policy(str(path)) == policy_of_toml(WHOLE)


def test_a_profile_replaces_the_keys_that_it_sets() -> None:
    """Including single limits; other keys are unchanged."""
    base, careful, idle = (policy_of_toml(WHOLE, profile=name) for name in (None, "careful", "idle"))

    assert careful == attrs.evolve(
        base, deny=("*.delete", "*.write"), trusted=False, limits=attrs.evolve(base.limits, calls=3)
    )
    assert idle == attrs.evolve(base, allow=())


ISOLATION = """\
[policy.isolation]
tools = ["Tool.Acme.*"]
plugins = ["acme-tools", "plugins/*.py"]
network = ["acme.get"]
require = ["landlock"]
workers = 2
idle_seconds = 2.5
cpu_seconds = 10
programs = true

[policy.profiles.careful.isolation]
plugins = []
reuse = false

[policy.profiles.idle]
deny = ["*"]
"""


def test_a_file_has_the_settings_of_isolation() -> None:
    """A profile replaces the keys that it sets; other keys are unchanged."""
    base = Isolation(
        tools=["acme.*"],
        plugins=["acme-tools", "plugins/*.py"],
        network=["acme.get"],
        require=["landlock"],
        workers=2,
        idle_seconds=2.5,
        cpu_seconds=10,
        programs=True,
    )

    assert policy_of_toml(ISOLATION) == ExecutionPolicy(isolate=base)
    assert policy_of_toml(ISOLATION, profile="careful").isolate == attrs.evolve(base, plugins=[], reuse=False)
    assert policy_of_toml(ISOLATION, profile="idle").isolate == base
    assert type(base.idle_seconds) is type(policy_of_toml(ISOLATION).isolate.idle_seconds)  # type: ignore[union-attr]


def test_an_empty_table_isolates_nothing() -> None:
    assert policy_of_toml("[policy.isolation]\n") == ExecutionPolicy()


FLOW = """\
[policy]
allow = ["mail.*"]
otherwise = "ask"
trust_textless = true

[[policy.flow]]
from = ["untrusted", "private:mail+untrusted"]
to = ["outside", "money"]
then = "refuse"
by = "session"

[[policy.flow]]
from = ["*"]
to = ["*"]

[[policy.labels]]
tools = "mail.*"
sources = ["private:mail"]
sinks = []

[[policy.labels]]
tools = ["web.*", "Tool.Feed.Read"]
sources = ["untrusted"]
declassifies = ["private"]

[policy.profiles.named]
otherwise = "refuse"
flow = "rule-of-two"
labels = []

[[policy.profiles.own.flow]]
from = ["private"]
to = ["outside:crm"]
then = "allow"

[[policy.profiles.own.labels]]
tools = ["*"]
"""


def test_a_file_has_flow_rules_and_labels() -> None:
    """Several patterns may share labels; rules and labels keep their order."""
    policy = policy_of_toml(FLOW)

    assert policy == ExecutionPolicy(
        allow=("mail.*",),
        otherwise="ask",
        trust_textless=True,
        flow=(
            FlowRule(("untrusted", "private:mail+untrusted"), ("outside", "money"), "refuse", "session"),
            FlowRule(("*",), ("*",), "ask", "values"),
        ),
        labels=(
            FlowLabels("mail.*", sources=("private:mail",), sinks=()),
            FlowLabels("web.*", sources=("untrusted",), declassifies=("private",)),
            FlowLabels("feed.read", sources=("untrusted",), declassifies=("private",)),
        ),
    )


def test_a_profile_replaces_flow_rules_labels_and_otherwise() -> None:
    """Each key as a whole; a name stands for the rules of a built-in profile."""
    base, named, own = (policy_of_toml(FLOW, profile=name) for name in (None, "named", "own"))

    assert named == attrs.evolve(base, otherwise="refuse", flow=FLOW_PROFILES["rule-of-two"], labels=())
    assert own == attrs.evolve(
        base, flow=(FlowRule(("private",), ("outside:crm",), "allow"),), labels=(FlowLabels("*"),)
    )


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "[policy]\n", "[mcp.a]\ncommand = ['x']\n", "[policy.limits]\n", "\ufeff"]
)
def test_an_empty_file_is_the_default_policy(text: str, tmp_path: Path) -> None:
    """It permits tools without needs; a table of MCP servers does not change it."""
    (tmp_path / "p.toml").write_text(text)

    assert ExecutionPolicy() == load_policy(tmp_path / "p.toml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[policy]\n\nalow = []", ["3: policy.alow: unknown key; did you mean allow?"]),
        ("[polcy]", ["1: polcy: unknown key; did you mean policy?"]),
        ("x = 1", ["1: x: unknown key"]),
        ("policy = 1", ["1: policy: must be a table, [policy]"]),
        ("[[policy]]", ["1: policy: must be a table, [policy]"]),
        ("[policy]\ncalls = 3", ["2: policy.calls: is a limit; write it under [policy.limits]"]),
        ("[policy]\nlimits = 3", ["2: policy.limits: must be a table, [policy.limits]"]),
        ("[policy.limit]", ["1: policy.limit: unknown key; did you mean limits?"]),
        ("[policy]\nallow = 'fs.*'", ["2: policy.allow: must be an array of strings, in brackets"]),
        ("[policy]\nallow = {a = 1}", ["2: policy.allow: must be an array of strings, in brackets"]),
        (
            '[policy]\ndeny = [\n  "fs.*", # ["\n  "a b",\n  7,\n\n  """\nx[y]""",\n]',
            [
                "4: policy.deny[1]: a b is not a valid pattern; use a name, or a pattern such as fs.*",
                "5: policy.deny[2]: must be a string, in quotes",
                "7: policy.deny[3]: x[y] is not a valid pattern; use a name, or a pattern such as fs.*",
            ],
        ),
        (
            '[policy]\ngrants = ["fs:read:*",\n"fs:read",\n\n"fs:read:[a]", "what"]',
            [
                "3: policy.grants[1]: a grant needs a scope; write fs:read:* for the whole resource",
                r"5: policy.grants[2]: [a] is not a valid scope for fs: character classes are not supported; write \[ for a bracket",
                "5: policy.grants[3]: what is not a capability; write resource:verb[,verb][:scope[,scope]], such as fs:read:data/a.txt",
            ],
        ),
        (
            '[policy]\npreapproved = ["fs.*"]',
            ["2: policy.preapproved[0]: fs.* is not the exact name of a tool; patterns are not supported here"],
        ),
        ('[policy]\ntrusted = "yes"', ["2: policy.trusted: must be true or false"]),
        ("[policy]\ntrusted = 1", ["2: policy.trusted: must be true or false"]),
        ("[policy.limits]\n\ncalls = 1.5", ["3: policy.limits.calls: must be a non-negative integer, not 1.5"]),
        ("[policy.limits]\ncalls = true", ["2: policy.limits.calls: must be a non-negative integer, not True"]),
        ("[policy.limits]\ncalls = []", ["2: policy.limits.calls: must be a non-negative integer, not list"]),
        ("[policy.limits]\ncalls = -1", ["2: policy.limits.calls: must be a non-negative integer, not -1"]),
        ("[policy.limits]\ncals = 1", ["2: policy.limits.cals: unknown key; did you mean calls?"]),
        ("[policy.limits]\ndepth = 0", ["2: policy.limits.depth: must be an integer from 1 to 64, not 0"]),
        ("[policy.limits]\nseconds = nan", ["2: policy.limits.seconds: must be a number above 0, not NaN"]),
        ("[policy.limits]\nsleep = inf", ["2: policy.limits.sleep: must be a number of 0 or more, not Infinity"]),
        ("[policy.limits]\nrates = 3", ["2: policy.limits.rates: must be a table, [policy.limits.rates]"]),
        (
            '[policy.limits]\nrates = {"http.*" = "1/fortnight", "a b" = "1/day"}',
            [
                '2: policy.limits.rates."http.*": write calls/period, such as 60/minute; a period is second, minute, hour or day',
                '2: policy.limits.rates."a b": a b is not a valid pattern; use a name, or a pattern such as http.*',
            ],
        ),
        (
            '[policy.limits.tool_calls]\nok = 1\nfs.delete = 0\n"fs.*" = 1\n"fs.read" = "2"',
            [
                '3: policy.limits.tool_calls.fs: contains names; put a name with a dot in quotes: "fs.delete"',
                '4: policy.limits.tool_calls."fs.*": fs.* is not the name of a tool; use rates for patterns',
                '5: policy.limits.tool_calls."fs.read": must be a non-negative integer, not 2',
            ],
        ),
        (
            "[policy]\nlimits.money = {EUR = -1, eur = 2}",
            [
                "2: policy.limits.money.EUR: must be a number, 0 or more, not -1",
                "2: policy.limits.money.eur: eur is not a currency; write three capital letters, such as EUR",
            ],
        ),
        (
            "[policy.profiles.a]\ndeni = []\n[policy.profiles.a.limits]\ncalls = 'x'\n[policy.profiles.b.profiles]",
            [
                "2: policy.profiles.a.deni: unknown key; did you mean deny?",
                "4: policy.profiles.a.limits.calls: must be a non-negative integer, not x",
                "5: policy.profiles.b.profiles: unknown key",
            ],
        ),
        ("[policy]\ntrust_textless = 'yes'", ["2: policy.trust_textless: must be true or false"]),
        ("[policy]\notherwise = 'allow'", ["2: policy.otherwise: must be 'refuse' or 'ask'"]),
        ("[policy]\notherwise = true", ["2: policy.otherwise: must be 'refuse' or 'ask', not bool"]),
        (
            "[policy]\nflow = 'rule-of-too'",
            ["2: policy.flow: rule-of-too is not a profile (untrusted-text, lethal-trifecta, rule-of-two)"],
        ),
        (
            "[policy]\nflow = {from = ['*']}",
            ["2: policy.flow: must be tables, [[policy.flow]], or the name of a profile, in quotes"],
        ),
        (
            "[policy.profiles.a]\nflow = [\n'rule-of-two']",
            [
                "3: policy.profiles.a.flow[0]: must be tables, [[policy.profiles.a.flow]], or the name of a profile, in quotes"
            ],
        ),
        (
            """[[policy.flow]]
from = ["untrusted", "privat", 3, "untrusted+privat"]
to = []
thn = "ask"

[[policy.flow]]
from = "untrusted"
then = "asks"
by = 4
""",
            [
                "2: policy.flow[0].from[1]: 'privat' is not one of untrusted, private; a label of your own has a colon, such as private:mail",
                "2: policy.flow[0].from[2]: must be a string, in quotes",
                "2: policy.flow[0].from[3]: 'privat' is not one of untrusted, private; a label of your own has a colon, such as private:mail",
                "3: policy.flow[0].to: is empty; write '*' for all",
                "4: policy.flow[0].thn: unknown key; did you mean then?",
                "6: policy.flow[1]: to is missing",
                "7: policy.flow[1].from: must be an array of strings, in brackets",
                "8: policy.flow[1].then: must be 'allow', 'ask' or 'refuse'",
                "9: policy.flow[1].by: must be 'values' or 'session', not int",
            ],
        ),
        ("[policy]\nlabels = 'mail'", ["2: policy.labels: must be tables, [[policy.labels]]"]),
        (
            """[[policy.labels]]
source = []
[[policy.labels]]
tools = "a b"
sources = ["outside"]
sinks = ["outside", "private"]
declassifies = "untrusted"
[[policy.labels]]
tools = []
[[policy.labels]]
tools = [
  "mail.*",
  "x y",
]
""",
            [
                "1: policy.labels[0]: tools is missing",
                "2: policy.labels[0].source: unknown key; did you mean sources?",
                "4: policy.labels[1].tools: a b is not a valid pattern; use a name, or a pattern such as mail.*",
                "5: policy.labels[1].sources[0]: 'outside' is not one of untrusted, private; a label of your own has a colon, such as private:mail",
                "6: policy.labels[1].sinks[1]: 'private' is not one of outside, public, money, people, code, storage; a label of your own has a colon, such as outside:crm",
                "7: policy.labels[1].declassifies: must be an array of strings, in brackets",
                "9: policy.labels[2].tools: is empty; write '*' for all",
                "13: policy.labels[3].tools[1]: x y is not a valid pattern; use a name, or a pattern such as mail.*",
            ],
        ),
        (
            """[policy.isolation]
tools = ["acme.*",
  "a b"]
plugin = []
require = ["landlok"]
reuse = 1
idle_seconds = 0.0
workers = 2.5
memory_bytes = "1G"
programs = 1
[policy.profiles.x]
isolate = ["a"]
isolation = 3
""",
            [
                "3: policy.isolation.tools[1]: a b is not a valid pattern; use a name, or a pattern such as acme.*",
                "4: policy.isolation.plugin: unknown key; did you mean plugins?",
                "5: policy.isolation.require[0]: landlok is not a layer; did you mean landlock?",
                "6: policy.isolation.reuse: must be true or false",
                "7: policy.isolation.idle_seconds: must be a positive, finite number of seconds",
                "8: policy.isolation.workers: must be a positive integer, not float",
                "9: policy.isolation.memory_bytes: must be a positive integer, not str",
                "10: policy.isolation.programs: must be true or false",
                "12: policy.profiles.x.isolate: unknown key; did you mean isolation?",
                "13: policy.profiles.x.isolation: must be a table, [policy.profiles.x.isolation]",
            ],
        ),
        ("[policy]\nprofiles = []", ["2: policy.profiles: must be a table, [policy.profiles]"]),
        ("[policy.profiles]\na = 1", ["2: policy.profiles.a: must be a table, [policy.profiles.a]"]),
        ("[policy]\nallow = [\n'a'\n'b']", ["4: unclosed array, at column 1"]),
        ('[policy]\n"\\u001b[2J\\u202e" = 1', ['2: policy."\\x1b[2J\\u202e": unknown key']),
    ],
)
def test_each_fault_has_its_line_and_its_name(text: str, expected: list[str]) -> None:
    """All of them at once, in the order of the lines."""
    assert [f"neuroscript.toml:{each}" for each in expected] == faults(text)


def test_all_problems_of_all_tables_are_reported_at_once() -> None:
    """Including those of unselected profiles, and a missing profile."""
    text = "[other]\n[policy]\ntrusted = 0\n[policy.limits]\ncalls = 'x'\n[policy.profiles.careful]\nallow = 3\n"

    assert [
        "neuroscript.toml:1: other: unknown key",
        "neuroscript.toml:3: policy.trusted: must be true or false",
        "neuroscript.toml:5: policy.limits.calls: must be a non-negative integer, not x",
        "neuroscript.toml:6: policy.profiles.carful: unknown profile; did you mean careful?",
        "neuroscript.toml:7: policy.profiles.careful.allow: must be an array of strings, in brackets",
    ] == sorted(faults(text, "carful"))


@pytest.mark.parametrize("profile", ["", "x", "policy", "limits"])
def test_a_missing_profile_is_a_problem(profile: str) -> None:
    """A typo never grants more than intended."""
    (fault,) = faults("[policy]\nallow = []\n", profile)

    assert fault.endswith(": unknown profile")


def test_the_error_has_its_parts() -> None:
    """The file name, the problems, and the lines; it can be pickled."""
    with pytest.raises(SpecError) as caught:
        policy_of_toml("[policy]\nallow = 1\ndeny = 2", source="p.toml")
    error: Any = pickle.loads(pickle.dumps(caught.value))

    problems = tuple(f"policy.{name}: must be an array of strings, in brackets" for name in ("allow", "deny"))
    assert ("p.toml", problems, (2, 3)) == (error.subject, error.problems, error.lines)
    assert f"p.toml:2: {problems[0]}; p.toml:3: {problems[1]}" == str(error) == str(caught.value)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda path: None, "p.toml: cannot be read: no such file or directory"),
        (lambda path: path.mkdir(), "p.toml: cannot be read: is a directory"),
        (lambda path: os.mkfifo(path), "p.toml: cannot be read: it is not a regular file"),
        (lambda path: path.symlink_to(path), "p.toml: cannot be read: too many levels of symbolic links"),
        (lambda path: path.symlink_to("/dev/zero"), "p.toml: has more than 1048576 bytes"),
        (lambda path: path.write_bytes(b"#" * (MAX_FILE_BYTES + 1)), "p.toml: has more than 1048576 bytes"),
        (lambda path: path.write_bytes(b"[policy]\n# \xff"), "p.toml:2: is not UTF-8 text"),
        (lambda path: path.write_bytes("[policy]".encode("utf-16")), "p.toml:1: is not UTF-8 text"),
        (lambda path: path.write_bytes(b"\0" * 100), "p.toml:1: invalid statement, at column 1"),
    ],
    ids=["missing", "directory", "pipe", "loop", "endless", "large", "bytes", "utf-16", "zeros"],
)
def test_a_file_that_can_not_be_read_is_a_fault(make: Any, text: str, tmp_path: Path) -> None:
    """Nothing blocks, and the error does not contain the name of the directory."""
    make(tmp_path / "p.toml")
    with pytest.raises(SpecError) as caught:
        load_policy(tmp_path / "p.toml")

    assert text == str(caught.value)


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    """One byte below the limit; an empty device can be read too."""
    (tmp_path / "p.toml").write_bytes(b'policy.deny = ["x"]\n'.ljust(MAX_FILE_BYTES, b"#"))

    assert load_policy(tmp_path / "p.toml").deny == ("x",)
    assert load_policy("/dev/null") == ExecutionPolicy()


def test_reading_never_waits() -> None:
    """A terminal without input returns nothing immediately."""
    ours, theirs = os.openpty()
    try:
        with pytest.raises(SpecError, match=r": cannot be read: no data is available yet$"):
            load_policy(os.ttyname(theirs))
    finally:
        os.close(ours)
        os.close(theirs)


def test_at_most_a_hundred_problems_are_listed() -> None:
    """The others are counted."""
    text = "[policy]\n" + "".join(f"alow{index} = 1\n" for index in range(5_000))

    assert len(faults(text)) == 101
    assert faults(text)[-2].startswith("neuroscript.toml:101: policy.alow99: unknown key")
    assert faults(text)[-1] == "neuroscript.toml: and 4900 more"


def test_a_file_narrows_the_policy_of_a_program() -> None:
    """Each of the two policies must permit a call."""
    ceiling = ExecutionPolicy(deny=("math.add",), grants=("fs:read:data/**",))
    policy = attrs.evolve(policy_of_toml('policy.allow = ["math.*"]\npolicy.grants = ["fs:*:*"]'), within=ceiling)

    needs = ToolPolicy()
    assert [policy.precheck(f"math.{name}", needs) is None for name in ("add", "max")] == [False, True]
    assert policy.precheck("str.concat", needs) is not None


@pytest.mark.parametrize(("name", "text"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_the_examples_of_the_documents_are_right(name: str, text: str) -> None:
    """Each block of TOML that states a policy is one, with each of its profiles."""
    import tomllib

    for profile in (None, *tomllib.loads(text).get("policy", {}).get("profiles", {})):
        assert isinstance(policy_of_toml(text, source=name, profile=profile), ExecutionPolicy)


def test_examples_exist() -> None:
    """Otherwise the test above would test nothing."""
    assert len(EXAMPLES) >= 3


def test_a_call_does_not_import_the_file_parser() -> None:
    """Nor the TOML library."""
    code = (
        "import sys\nfrom neuroscript import Engine\nEngine(plugins='none').close()\n"
        "print([name for name in sys.modules if name in ('tomllib', 'neuroscript.config.policy_file', 'neuroscript.io.toml')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


# Dry runs

RUNS: list[str] = []
shop = Toolset("shop")


@shop.tool(policy=ToolPolicy(capabilities=("fs:write:{path}",)))
def put(path: str, count: int = 1) -> str:
    """Write something."""
    RUNS.append(path)
    return path


@shop.tool(policy=ToolPolicy(requires_approval=True))
def buy(item: str) -> str:
    """Buy something."""
    RUNS.append(item)
    return item


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ToolCall("shop.put", ("data/a",)), ("shop.put", True, "shop.*", "", "never", False)),
        (ToolCall("shop__put", '{"path": "data/a", "count": "2"}'), ("shop.put", True, "shop.*", "", "never", False)),
        (
            ToolCall("tool.Shop.Put", {"path": "data/../b"}),
            ("shop.put", False, "grants", "policy.capability", "host", False),
        ),
        (
            ToolCall("shop.put", {"path": "data/a", "count": "x"}),
            ("shop.put", False, "", "coercion.format", "model", False),
        ),
        (ToolCall("shop.put", ""), ("shop.put", False, "", "arg.missing", "model", False)),
        (ToolCall("shop.put", "{"), ("shop.put", False, "", "arg.not_json", "model", False)),
        (ToolCall("shop.put", 5), ("shop.put", False, "", "arg.type", "model", False)),  # type: ignore[arg-type]
        (ToolCall("shop.buy", ("tea",)), ("shop.buy", True, "shop.*", "", "never", True)),
        (ToolCall("shop.steal"), ("shop.steal", False, "", "tool.not_found", "model", False)),
        (ToolCall("math.add", (1, 2)), ("math.add", False, "allow", "policy.not_allowed", "host", False)),
        (ToolCall("\x1b" * 100), ("\\x1b" * 64 + "…", False, "", "tool.not_found", "model", False)),
        (ToolCall(None), ("None", False, "", "tool.not_found", "model", False)),  # type: ignore[arg-type]
    ],
)
def test_a_call_is_decided_before_it_runs(call: ToolCall, expected: tuple[Any, ...]) -> None:
    """As if it were executed, in every spelling; nothing runs and no approval is requested."""
    RUNS.clear()

    def approver(request: object) -> Any:
        raise AssertionError("no approval is requested")

    policy = ExecutionPolicy(allow=("shop.*",), grants=("fs:write:data/**",), approver=approver)
    with Engine(policy=policy, toolsets=[shop]) as engine:
        (decision,) = engine.check([call])
        assert (decision,) == engine.session().check(iter([call]))

        assert expected == (
            decision.tool,
            decision.allowed,
            decision.rule,
            decision.code,
            decision.retry,
            decision.needs_approval,
        )
        if not decision.allowed:
            error = engine.execute(call).error
            assert error is not None
            assert (error.code, error.retry) == (decision.code, decision.retry)
            assert str(error).removeprefix(f"{error.tool}: ") == decision.text
    assert RUNS == []


def test_an_engine_that_is_closed_refuses_them_all() -> None:
    """As it refuses calls."""
    engine = Engine(toolsets=[shop], plugins="none")
    engine.close()

    assert [(each.code, each.retry) for each in engine.check([ToolCall("shop.put"), ToolCall("x")])] == [
        ("engine.closed", "never")
    ] * 2
    assert engine.check([]) == ()


def test_names_of_profiles_are_listed(tmp_path: Path) -> None:
    """In the order of the file; a file with problems has none."""
    (tmp_path / "a.toml").write_text(WHOLE)
    (tmp_path / "b.toml").write_text("[policy]\ndeny = []\n[policy.profiles.z]\n[policy.profiles.a]\n")
    (tmp_path / "c.toml").write_text("[policy.profiles.z]\ndenny = []\n")

    assert profile_names(tmp_path / "a.toml")[0] == "careful"
    assert profile_names(tmp_path / "b.toml") == ("z", "a")
    with pytest.raises(SpecError):
        profile_names(tmp_path / "c.toml")
