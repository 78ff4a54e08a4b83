"""Alternative spellings of a path, URL or other scope: no capability is bypassed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.system.spellings import NUMBERS, ROWS, WAYS, Forbidden, Lying, Probe, Text, by_hook, label

from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    Capability,
    Engine,
    ExecutionPolicy,
    Grant,
    Host,
    PolicyError,
    Runtime,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.coercion.types import ELEMENTS
from neuroscript.policy.templates import SCOPE_TYPES
from neuroscript.runtime.records import PendingCall
from neuroscript.tools.hookspecs import hookimpl

SCOPED = [row for row in ROWS if ELEMENTS.get(row.type, row.type) in SCOPE_TYPES and row.value is not None]


def scopes_of(value: Any) -> tuple[str, ...]:
    """Return a value as it is written in a grant."""
    values = value if type(value) is list else [value]
    return tuple(str(each).lower() for each in values)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", SCOPED, ids=label)
def test_capability_of_an_argument_covers_the_value_that_the_function_receives(row: Forbidden, way: str) -> None:
    """A grant of the value admits every spelling, and a grant of another value admits none.

    Calls from a tool without needs are the exception: tools below it have no permissions.
    """
    for granted in (row.other, row.value):
        passes = granted is row.value and way != "from within"
        grants = tuple(f"account:use:{scope}" for scope in scopes_of(granted))
        probe = Probe(row, needs=("account:use:{x}",), policy=ExecutionPolicy(grants=grants))
        for value in row.spellings:
            assert ("" if passes else "policy.capability") == probe.end(way, value), f"{value!r} of {type(value)}"
        assert len(probe.received) == (len(row.spellings) if passes else 0)


SECRET = "the secret of the other directory"
FORBIDDEN_PATHS = (
    "secret/key", "./secret/key", "secret//key", "secret/./key", "secret/../secret/key", "data/../secret/key",
    "data/./../secret//key", "data/a/../../secret/key", "secret/key/", "secret/key/.", "./data/..//secret/key",
    "/secret/key", "//secret/key", "../ROOT/secret/key", "data/../../ROOT/secret/key", "data\\..\\secret\\key",
    "data/%2e%2e/secret/key", "data/..%2fsecret/key", "data/\u200b../secret/key", "data/\u2025/secret/key",
    "data/\uff0e\uff0e/secret/key", "data/..\x00/secret/key", "data/.. /secret/key", "file:secret/key", "~/secret/key",
    "data/link/key", "data/linked", "data/{x}/../../secret/key", "data/**/../../secret/key", "data/*", "data,secret/key",
    Text("secret/key"), Lying("data/../secret/key"), "*", "**", "", ".", "data/..", "SECRET/key",
)  # fmt: skip
FREE_PATHS = (
    "data/free", "./data/free", "data//free", "data/./free", "data/../data/free", "secret/../data/free", "data/a/../free",
    Text("data/free"), Lying("data/free"),
)  # fmt: skip


@attrs.frozen
class Files:
    """A sandbox with a granted directory and another one, and a tool that reads."""

    base: Path
    got: list[str] = attrs.field(factory=list)

    def engine(self, needs: str, **options: Any) -> Engine:
        root = self.base / "ROOT"
        for name, text in (("data/free", "free"), ("secret/key", SECRET), ("data/a/x", "")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        (root / "data" / "link").symlink_to("../secret")
        (root / "data" / "linked").symlink_to("../secret/key")
        toolset = Toolset("g")

        def read(rt: Runtime, x: str) -> None:
            self.got.append(rt.fs.read_text(x))

        asks = "approver" in options
        policy = ExecutionPolicy(grants=("fs:read:data/**",) if needs != "all" else ("fs:read:*",), **options)
        arg = ArgSpec("x", ArgType.STRING)
        toolset.add(ToolSpec("t", "g", (arg,), return_type=ArgType.NIL), read,
                    ToolPolicy(capabilities=("fs:read" if needs == "whole" else "fs:read:{x}",), requires_approval=asks))  # fmt: skip
        return Engine(toolsets=[toolset], plugins="none", policy=policy, host=Host(sandbox_dir=root))


def test_path_outside_the_grant_is_not_readable_by_any_alias(tmp_path: Path) -> None:
    """The grant is ``data/**``; dots, slashes, links, other alphabets, absolute paths and globs do not help."""
    files = Files(tmp_path)
    absolute = os.fspath(tmp_path / "ROOT" / "secret" / "key")
    with files.engine("path") as engine:
        for path in (*FORBIDDEN_PATHS, absolute, f"data/{absolute}", f"/{absolute}"):
            with pytest.raises(CallError):
                engine.call("g.t", (path,))
            assert files.got == [], f"{path!r}"
        for path in FREE_PATHS:
            engine.call("g.t", (path,))
            assert files.got.pop() == "free"


def test_tool_that_needs_a_whole_resource_does_not_run_with_a_partial_grant(tmp_path: Path) -> None:
    """The host grants a part of the resource, so every spelling of a path is refused."""
    files = Files(tmp_path)
    with files.engine("whole") as engine:
        for path in (*FORBIDDEN_PATHS, *FREE_PATHS):
            with pytest.raises(PolicyError) as caught:
                engine.call("g.t", (path,))
            assert (caught.value.code, caught.value.retry) == ("policy.capability", "host")
    assert files.got == []


def test_approver_that_compares_a_need_with_a_grant_recognizes_every_path_alias(tmp_path: Path) -> None:
    """A `Grant` compares paths as the sandbox opens them, so one grant covers all spellings."""
    files = Files(tmp_path)
    refused = Grant.parse("fs:read:secret/**")
    requests: list[str] = []

    def approver(request: ApprovalRequest) -> Approval:
        (need,) = request.needs
        requests.append(need)
        return Approval.reject() if refused.covers(Capability.parse(need)) else Approval.approve()

    with files.engine("all", approver=approver) as engine:
        for path in FORBIDDEN_PATHS:
            with pytest.raises(CallError):
                engine.call("g.t", (path,))
            assert files.got == [], f"{path!r}"
        for path in FREE_PATHS:
            engine.call("g.t", (path,))
            assert files.got.pop() == "free"
    assert len(requests) > len(FREE_PATHS)


@pytest.mark.parametrize("kind", ["approver", "hook"])
def test_rule_sees_the_same_need_for_every_path_alias(tmp_path: Path, kind: str) -> None:
    """It is the complete path as it will be opened, so a rule may compare the strings of needs."""
    received: list[str] = []

    class Gate:
        @hookimpl
        def neuroscript_decide(self, call: PendingCall) -> None:
            received.extend(map(str, call.needs))

    def approver(request: ApprovalRequest) -> Approval:
        received.extend(request.needs)
        return Approval.approve()

    name = "n" * 100
    aliases = (f"data/{name}", f"./data/{name}", f"data//{name}", f"data/../data/./{name}", Lying(f"data/{name}"))
    options: dict[str, Any] = {"hooks": [Gate()]} if kind == "hook" else {"asks": True}
    policy = ExecutionPolicy(grants=("fs:read:*",), approver=approver)
    probe = Probe(Forbidden(ArgType.STRING, "", (), (), ""), needs=("fs:read:{x}",), policy=policy, **options)

    for alias in aliases:
        assert probe.end("in order", alias) == ""

    assert received == [f"fs:read:data/{name}"] * len(aliases)


@pytest.mark.parametrize("kind", ["approver", "hook"])
def test_rule_sees_the_same_need_for_every_spelling_of_a_url(kind: str) -> None:
    """It is the host and port that a client would connect to."""
    received: list[str] = []

    class Gate:
        @hookimpl
        def neuroscript_decide(self, call: PendingCall) -> None:
            received.extend(map(str, call.needs))

    def approver(request: ApprovalRequest) -> Approval:
        received.extend(request.needs)
        return Approval.approve()

    urls = ("http://good.example", "HTTP://GOOD.EXAMPLE.", "http://x@good.example:80/a", "ws://good.example")
    options: dict[str, Any] = {"hooks": [Gate()]} if kind == "hook" else {"asks": True}
    policy = ExecutionPolicy(grants=("net:read:*",), approver=approver)
    probe = Probe(Forbidden(ArgType.STRING, "", (), (), ""), needs=("net:read:{x.host}",), policy=policy, **options)

    for url in urls:
        assert probe.end("in order", url) == ""

    assert received == ["net:read:good.example:80"] * len(urls)


PLACES = (
    "http://evil.example/", "HTTP://EVIL.EXAMPLE", "http://evil.example.", "http://Evil.Example.:80/x?y#z",
    "http://good.example@evil.example/", "http://a:b@evil.example:80", "http://evil.example:0080/", "ws://evil.example",
    "http://good.example\\@evil.example/",
    "http://evil\u3002example/", "http://\uff45vil.example/", "//evil.example", "evil.example", "http:evil.example",
    "http://evil.example:443", "http://evil.example:99999", "http://[::ffff:1.2.3.4]/", "http:///evil.example",
    "http://good.example%2eevil.example/", "http://good.example.evil.example/", "http://evil.example\t.good.example",
    Text("http://evil.example/"), Lying("http://evil.example/"), "", " http://evil.example/",
)  # fmt: skip
GOOD_PLACES = ("http://good.example/", "HTTP://GOOD.example.", "http://x@good.example:80/a", "ws://good.example",
               "http://good.example?@evil.example", Text("http://good.example"))  # fmt: skip


def test_host_without_a_grant_is_not_reachable_by_any_spelling_of_a_url() -> None:
    """The host that a client would connect to is compared; a URL that clients could read differently is invalid."""
    policy = ExecutionPolicy(grants=("net:read:good.example:80",))
    probe = Probe(Forbidden(ArgType.STRING, "", (), (), ""), needs=("net:read:{x.host}",), policy=policy)

    for url in PLACES:
        assert probe.end("in order", url) in ("policy.capability", "arg"), f"{url!r}"
    assert probe.received == []
    for url in GOOD_PLACES:
        assert probe.end("in order", url) == "", f"{url!r}"


def test_value_with_scope_syntax_needs_only_itself() -> None:
    """``*``, ``:``, ``,``, braces and backslashes in a value are literal, so the need is neither broader nor narrower."""
    signs = ("*", "a,b", "a:b", "a*", "?", "{x}", "a\\", "\\*", "**", "[ab]", "guest,admin", "guest:admin", "gue*t", "")
    policy = ExecutionPolicy(grants=("account:use:guest", "account:use:a", "account:use:b"))
    probe = Probe(Forbidden(ArgType.STRING, "", (), (), ""), needs=("account:use:{x}",), policy=policy)

    for sign in signs:
        assert probe.end("in order", sign) == "policy.capability"
    assert probe.received == []
    assert probe.end("in order", "guest") == ""


@pytest.mark.parametrize("kind", ["hook", "capability"])
@pytest.mark.parametrize("spelling", NUMBERS, ids=lambda each: f"{type(each).__name__} {each!r}")
def test_arguments_from_an_approver_are_bound_again_and_seen_by_every_rule(spelling: Any, kind: str) -> None:
    """Values from ``modify`` are coerced, and checked against the grants and hooks."""

    def approver(request: ApprovalRequest) -> Approval:
        return Approval.modify({"x": spelling})

    grant = "account:use:2" if kind == "capability" else "account:use:*"
    options = by_hook(1, []) if kind == "hook" else {}
    policy = ExecutionPolicy(approver=approver, grants=(grant,))
    probe = Probe(ROWS[1], asks=True, needs=("account:use:{x}",), policy=policy, **options)

    assert f"policy.{kind}" == probe.end("in order", 2)
    assert probe.received == []
