"""What a host permits: patterns of tools, trust, approval, and the words of a refusal."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import (
    Approval,
    ApprovalRequest,
    ArgType,
    Capability,
    ExecutionPolicy,
    Grant,
    PolicyError,
    SpecError,
    ToolPolicy,
    ToolSpec,
)
from neuroscript.policy.refusals import MissingNeeds, refusal
from neuroscript.policy.templates import Template

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "authority.md").read_text()
PATTERNS = re.findall(r"^\| `([^`]+)` \| ([^|]*)\| ([^|]*)\|$", PAGE, re.MULTILINE)

NAMES = ("math.add", "math.add_all", "fs.read", "fs.read_all", "fs.deep.read", "fs_evil.read", "my.fs.read", "system.io.read",
         "audio.play", "tools.run")  # fmt: skip
MATCHES = {
    "*": NAMES,
    "math.add": ("math.add",),
    "tool.math.add": ("math.add",),
    "Tool.TOOL.Math.Add": ("math.add",),
    "fs.*": ("fs.read", "fs.read_all", "fs.deep.read"),
    "tool.fs.*": ("fs.read", "fs.read_all", "fs.deep.read"),
    "fs*": ("fs.read", "fs.read_all", "fs.deep.read", "fs_evil.read"),
    "*fs.read": ("fs.read", "my.fs.read"),
    "*.read": ("fs.read", "fs.deep.read", "fs_evil.read", "my.fs.read", "system.io.read"),
    "*.fs.*": ("my.fs.read",),
    "*io*": ("system.io.read", "audio.play"),
    "tool*": ("tools.run",),
}


def permits(policy: ExecutionPolicy, name: str, needs: ToolPolicy = ToolPolicy()) -> bool:  # noqa: B008
    """Return whether a tool may run, regardless of its arguments."""
    return policy.precheck(name, needs) is None


@pytest.mark.parametrize(("pattern", "name"), list(itertools.product(MATCHES, NAMES)))
def test_a_pattern_matches_whole_canonical_names(pattern: str, name: str) -> None:
    """120 pairs, each for allow and for deny."""
    expected = name in MATCHES[pattern]

    assert expected is permits(ExecutionPolicy(allow=(pattern,)), name)
    assert expected is not permits(ExecutionPolicy(deny=(pattern,)), name)


@pytest.mark.parametrize(("pattern", "matching", "others"), PATTERNS)
def test_each_row_about_patterns_is_true(pattern: str, matching: str, others: str) -> None:
    """In the table of the page."""
    policy = ExecutionPolicy(allow=(pattern,))

    assert all(permits(policy, name) for name in re.findall("`([^`]+)`", matching))
    assert not any(permits(policy, name) for name in re.findall("`([^`]+)`", others))


@pytest.mark.parametrize(
    ("policy", "needs", "expected"),
    [
        (ExecutionPolicy(), ToolPolicy(), None),
        (ExecutionPolicy(), ToolPolicy(capabilities=("fs:read:{path}",)), None),
        (ExecutionPolicy(), ToolPolicy(requires_trust=True),
         ("g.t: requires a trusted host", "policy.trust", "trust", "trust")),
        (ExecutionPolicy(trusted=True), ToolPolicy(requires_trust=True), None),
        (ExecutionPolicy(deny=("x.y", "g.*", "*")), ToolPolicy(),
         ("g.t: is denied by the host", "policy.denied", "", "g.*")),
        (ExecutionPolicy(allow=("G.T",), deny=("tool.g.t",)), ToolPolicy(),
         ("g.t: is denied by the host", "policy.denied", "", "g.t")),
        (ExecutionPolicy(allow=("x.y", "g")), ToolPolicy(),
         ("g.t: is not allowed by the host", "policy.not_allowed", "", "allow")),
        (ExecutionPolicy(allow=()), ToolPolicy(),
         ("g.t: is not allowed by the host", "policy.not_allowed", "", "allow")),
        (ExecutionPolicy(trusted=True, grants=("*:*:*",)), ToolPolicy(requires_approval=True),
         ("g.t: requires approval, but there is no approver", "policy.approval", "approval", "approval")),
    ],
)  # fmt: skip
def test_a_verdict_contains_its_reason(policy: ExecutionPolicy, needs: ToolPolicy, expected: Any) -> None:
    """As text and as data; only the denying pattern is included."""
    for name in ("g.t", "Tool.G.T"):
        verdict = policy.precheck(name, needs)

        message = verdict and (str(verdict), verdict.code, verdict.need, verdict.rule)
        assert expected == message
        assert verdict is None or (verdict.tool, verdict.number, verdict.retry) == ("g.t", 1003, "host")


ORDER = {
    "policy.trust": {"trusted": False},
    "policy.denied": {"deny": ("g.t",)},
    "policy.not_allowed": {"allow": ()},
}


@pytest.mark.parametrize("wrong", [each for count in (1, 2, 3) for each in itertools.combinations(ORDER, count)])
def test_rules_are_checked_in_order(wrong: tuple[str, ...]) -> None:
    """Trust, deny, allow, approval: the error is that of the first one that fails."""
    settings: dict[str, Any] = {"trusted": True}
    for code in wrong:
        settings |= ORDER[code]

    verdict = ExecutionPolicy(**settings).precheck("g.t", ToolPolicy(requires_trust=True, requires_approval=True))

    assert isinstance(verdict, PolicyError)
    assert (verdict.code, verdict.retry) == (next(code for code in ORDER if code in wrong), "host")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"allow": "fs.*"}, "allow must be a collection of strings, not str"),
        ({"deny": (5,)}, "deny[0] must be a string, not int"),
        ({"allow": ("",)}, "allow:  is not a valid pattern; use a name, or a pattern such as fs.*"),
        ({"deny": ("fs.[ab]", "fs/*")}, "deny: fs.[ab] is not a valid pattern; use a name, or a pattern such as fs.*; deny: fs/* "
         "is not a valid pattern; use a name, or a pattern such as fs.*"),
        ({"deny": ("fs:delete:*",)}, "deny: fs:delete:* is not a valid pattern; use a name, or a pattern such as fs.*"),
        ({"grants": "fs:read:*"}, "grants must be a collection of strings or Grants, not str"),
        ({"grants": (Capability.parse("fs:read"),)}, "grants[0] must be a string or a Grant, not Capability"),
        ({"grants": ("fs:read",)}, "a grant needs a scope; write fs:read:* for the whole resource"),
        ({"trusted": 1}, "trusted must be True or False, not int"),
        ({"allow": None, "grants": ("fs", "net:read:a*"), "trusted": "no"}, "allow must be a collection of strings, not None; fs is not a "
         "capability; write resource:verb[,verb][:scope[,scope]], such as fs:read:data/a.txt; a* is not a valid scope for net: * in a host matches whole labels; write *.example.com; trusted must be True or False, not str"),
    ],
)  # fmt: skip
def test_an_invalid_policy_is_refused(settings: dict[str, Any], text: str) -> None:
    """With every problem; otherwise a typo would silently deny nothing."""
    with pytest.raises(SpecError) as caught:
        ExecutionPolicy(**settings)

    assert f"execution policy: {text}" == str(caught.value)


def test_a_pattern_is_at_most_as_long_as_a_name() -> None:
    """So each tool can be named."""
    spec = ToolSpec("t", "g" * 510)
    longest = spec.full_name

    assert not permits(ExecutionPolicy(deny=(longest,)), longest)
    assert ExecutionPolicy(preapproved=(longest,)).preapproved == (longest,)
    with pytest.raises(SpecError) as caught:
        ExecutionPolicy(deny=(f"{longest}t",))
    message = f"deny: {'g' * 64}… is not a valid pattern; use a name, or a pattern such as fs.*"
    assert f"execution policy: {message}" == str(caught.value)
    with pytest.raises(SpecError):
        ToolSpec("tt", "g" * 510)


def test_a_policy_is_a_value() -> None:
    """Equivalent policies are equal, and policies are immutable."""
    first = ExecutionPolicy(allow=["TOOL.FS.*", "fs.*"], grants=["FS:read:*"])
    second = ExecutionPolicy(allow=("fs.*",), grants=(Grant.parse("fs:read:*"),))

    assert first == second
    assert hash(first) == hash(second)
    assert repr(second) == (
        "ExecutionPolicy(allow=('fs.*',), deny=(), "
        "grants=(Grant(resource='fs', verbs=('read',), scopes=('*',)),), trusted=False, "
        "limits=None, preapproved=(), approver=None, within=None, otherwise='refuse', flow=(), labels=(), "
        "trust_textless=False, isolate=None)"
    )
    with pytest.raises(AttributeError):
        first.trusted = True  # type: ignore[misc]


def test_patterns_that_match_no_tool_are_reported() -> None:
    """A typo in a deny pattern would otherwise permit the tool."""
    policy = ExecutionPolicy(allow=("math.*", "maths.*"), deny=("Tool.fs.delete", "fs.rm"))

    assert policy.unmatched(["math.add", "tool.fs.Delete"]) == ("maths.*", "fs.rm")
    assert policy.unmatched([]) == ("math.*", "maths.*", "fs.delete", "fs.rm")


@pytest.mark.parametrize(
    ("grant", "needs", "is_used"),
    [
        ("fs:read:data/**", ["fs:read:data/a"], True),
        ("fs:read:data/**", ["fs:read:{path}"], True),
        ("*:*:*", ["fs:read:{path}"], True),
        ("fs:*:data/**", ["fs:write:logs/a", "fs:write:logs/a,data/a"], True),
        ("fs:read:data/**", ["fs:read:logs/a"], False),
        ("fs:read:data/a", ["fs:read:data/**"], False),
        ("fs:read:data/**", ["fs:read"], False),
        ("fs:write:data/**", ["fs:read:{path}"], False),
        ("net:read:*", ["fs:read:{path}"], False),
        ("fs:read:*", [], False),
    ],
)
def test_grants_that_cover_no_need_are_reported(grant: str, needs: list[str], is_used: bool) -> None:
    """A grant may cover any value of an argument."""
    policy = ExecutionPolicy(grants=(grant,))

    assert policy.unused(needs) == (() if is_used else policy.grants)


def test_the_first_uncovered_need_is_reported() -> None:
    """As a single need."""
    policy = ExecutionPolicy(grants=("fs:read:data/**", "fs:write:data/out/*"))
    needs = [Capability.parse("fs:read:data/a"), Capability.parse("fs:read,write:data/out/a,data/b")]

    assert policy.uncovered_need(needs) == Capability.parse("fs:write:data/b")
    assert policy.uncovered_need(needs[:1]) is None
    assert policy.uncovered_need([]) is None
    assert ExecutionPolicy().uncovered_need([Capability.parse("pure:use")]) == Capability.parse("pure:use")


@pytest.mark.parametrize(
    ("template", "value", "message"),
    [
        ("fs:read:{x}", "data/a.txt", "fs:read:data/a.txt"),
        ("fs:read:{x}/**", "data", "fs:read:data/**"),
        ("fs:read:{x}", None, "fs:read"),
        ("fs:read:{x}", "a" * 100, f"fs:read:{'a' * 64}…"),
        ("env:read:{x}", "hunter2", "env:read"),
        ("net:read:{x.host}", "http://hunter2.com", "net:read"),
    ],
)
def test_a_refusal_contains_the_need_and_no_argument_value(template: str, value: Any, message: str) -> None:
    """Only a path in the sandbox is shown, truncated to 64 characters."""
    (need,) = Template.parse(template, {"x": ArgType.STRING}).fill([value])

    error = refusal("g.t", MissingNeeds((need,)))

    assert f"g.t: needs {message}" == str(error)
    assert ("policy.capability", "host", message, "grants") == (error.code, error.retry, error.need, error.rule)


@pytest.mark.parametrize("value", ["../hunter2", "/home/hunter2", "a\x00b"])
def test_a_path_that_cannot_be_granted_is_an_error_for_the_caller(value: str) -> None:
    """It is refused for its form and not repeated; another argument may work."""
    (need,) = Template.parse("fs:read:{x}", {"x": ArgType.STRING}).fill([value])

    error = refusal("g.t", MissingNeeds((need,)))

    message = "needs fs:read for a scope that no grant can cover, such as a path that leaves the sandbox"
    assert f"g.t: {message}" == str(error)
    assert ("policy.capability", "fs:read", "model") == (error.code, error.need, error.retry)


patterns = st.lists(
    st.text("ab.*", min_size=1, max_size=5) | st.sampled_from(["*", "a.b", "a.*", "*.b", "tool.a.*"]), max_size=4
)
names = st.sampled_from(["a.b", "a.a", "b.a", "b.b", "a.b.a", "aa.b", "tool.a.b"])


@given(patterns, patterns, patterns, names, st.booleans())
def test_more_deny_patterns_never_permit_and_more_allow_patterns_never_refuse(
    allow: list[str], deny: list[str], more: list[str], name: str, trust: bool
) -> None:
    """For any patterns."""
    needs = ToolPolicy(requires_trust=trust)
    before = permits(ExecutionPolicy(allow=allow, deny=deny, trusted=True), name, needs)

    assert before or not permits(ExecutionPolicy(allow=allow, deny=[*deny, *more], trusted=True), name, needs)
    assert not before or permits(ExecutionPolicy(allow=[*allow, *more], deny=deny, trusted=True), name, needs)
    assert not permits(ExecutionPolicy(allow=[*allow, *more], deny=["*"], trusted=True), name, needs)


class Prompt:
    """A host's approver without a hash."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prompt)

    def __call__(self, request: ApprovalRequest) -> Approval:
        return Approval.reject()

    def ask(self, request: ApprovalRequest) -> Approval:
        """Answer as the object itself does."""
        return Approval.reject()


def test_each_approver_is_listed_once() -> None:
    """Objects are compared by identity, and the methods of one object by their name."""
    first, second = Prompt(), Prompt()
    for inner, outer, expected in (
        (first, first, [first]),
        (first, second, [first, second]),
        (first.ask, first.ask, [first.ask]),
        (first.ask, second.ask, [first.ask, second.ask]),
    ):
        policy = ExecutionPolicy(approver=outer).narrowed(approver=inner)
        for found in (policy.approvers("a.b"), policy.approvers_of(policy.layers)):
            assert found is not None
            assert [*map(identity, expected)] == [*map(identity, found)]


def identity(approver: Any) -> tuple[int, str]:
    """Return which object an approver is, and which of its methods."""
    return id(getattr(approver, "__self__", approver)), getattr(approver, "__name__", "")
