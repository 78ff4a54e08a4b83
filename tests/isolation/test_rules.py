"""Kernel rules that are compiled from the grants of a call: never more than the grants permit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.isolation.raw_tools import raw

from neuroscript import Capability, Engine, ExecutionPolicy, Grant, Host, ToolFailed
from neuroscript.isolation.rules import file_rules
from neuroscript.sandbox import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    root = tmp_path / "sandbox"
    for name in ("data/a", "data/b", "data/deep/c", "other/d", "any1"):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"in {name}")
    outside = tmp_path / "outside"
    outside.write_text("outside")
    (root / "data/link").symlink_to(outside)
    (root / "data/up").symlink_to("../other")
    return root


@pytest.fixture
def engine(sandbox: Path) -> Iterator[Engine]:
    policy = ExecutionPolicy(grants=("fs:*:*", "shell:exec:*"), isolate=("raw.*",))
    with Engine(toolsets=raw, plugins="none", policy=policy, host=Host(sandbox_dir=str(sandbox))) as made:
        yield made


def test_granted_file_is_readable_by_path_and_no_other(engine: Engine) -> None:
    assert engine.call("raw.read", ["data/a", "data/a"]) == "in data/a"
    for path in ("data/b", "other/d", "data/link", "../outside", "data/../other/d", "/etc/passwd"):
        assert engine.call("raw.read", ["data/a", path]) == "PermissionError", path


def test_each_set_of_rules_has_workers_of_its_own(engine: Engine) -> None:
    for name in ("a", "b", "a", "b"):
        assert engine.call("raw.read", [f"data/{name}", f"data/{name}"]) == f"in data/{name}"
    assert engine.call("raw.read", ["data/a", "data/b"]) == "PermissionError"


@pytest.mark.parametrize("permitted", ["data", "data/missing", "data/link"])
def test_rule_exists_only_for_a_file_that_the_grant_means(engine: Engine, permitted: str) -> None:
    assert engine.call("raw.read", [permitted, "data/a"]) == "PermissionError"


def test_directory_is_usable_as_far_as_the_grants_permit(engine: Engine) -> None:
    uses = [("data/a", "read"), ("data", "list"), ("data/deep", "list"), ("data/new", "write"), ("data/new", "delete")]
    assert [engine.call("raw.use", ["data", *use]) for use in uses] == [
        "in data/a", "a,b,deep,link,up", "c", "3", "deleted",
    ]  # fmt: skip
    for use in (
        ("other/d", "read"),
        ("other", "list"),
        ("data/link", "read"),
        ("data/up/d", "write"),
        ("new", "write"),
    ):
        assert engine.call("raw.use", ["data", *use]) == "PermissionError", use


def test_globs_within_a_name_are_reachable_through_the_runtime_alone(engine: Engine) -> None:
    assert engine.call("raw.by_glob", ["data/a"]) == "PermissionError in data/a"
    assert engine.call("raw.by_glob", ["any1"]) == "PermissionError in any1"


def test_tool_without_the_declaration_has_no_file_by_path(engine: Engine) -> None:
    assert engine.call("raw.undeclared", ["data", "data/a"]) == "PermissionError"
    with pytest.raises(ToolFailed, match=r"ToolPolicy\(raw_files=True\)") as caught:
        engine.call("raw.pin", ["data"])
    assert (caught.value.code, caught.value.retry) == ("isolation.raw_files", "host")


def test_library_that_opens_files_works(engine: Engine, sandbox: Path) -> None:
    assert engine.call("raw.database", ["data"]) == [1, 2]
    assert (sandbox / "data/own.db").exists()


def test_directory_that_is_replaced_by_a_link_stays_closed(engine: Engine, sandbox: Path) -> None:
    assert engine.call("raw.use", ["data", "data/a", "read"]) == "in data/a"
    (sandbox / "data").rename(sandbox / "moved")
    (sandbox / "data").symlink_to(sandbox.parent)
    assert engine.call("raw.use", ["data", "data/outside", "read"]) == "PermissionError"


def test_only_the_granted_program_can_be_executed(engine: Engine) -> None:
    assert engine.call("raw.run", ["echo", "echo"]) == "x\n"
    assert engine.call("raw.run", ["echo", "cat"]) == "PermissionError"
    assert engine.call("raw.run", ["no-such-program", "echo"]) == "PermissionError"


SEGMENTS = some.sampled_from(["data", "other", "deep", "a", "b", "c", "d", "*", "**", "?", "a*", "any1", "missing"])
SCOPES = some.lists(SEGMENTS, min_size=1, max_size=3).map("/".join)
NEEDS = some.lists(
    some.builds(
        lambda verb, scope: Capability("fs", (verb,), (scope,)), some.sampled_from(["read", "write", "delete"]), SCOPES
    ),
    max_size=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NEEDS)
def test_rules_permit_no_more_than_the_needs(sandbox: Path, needs: list[Capability]) -> None:
    """Whatever a rule permits, the needs cover for every file that is there."""
    grants = [Grant.of(need) for need in needs]
    box = Sandbox(str(sandbox))
    with file_rules(needs, lambda: box, raw_files=True) as rules:
        for rule in rules:
            top = Path(os.readlink(f"/proc/self/fd/{rule.descriptor}"))
            assert (os.stat(top).st_dev, os.stat(top).st_ino) == rule.identity
            for path in [top, *(top.rglob("*") if top.is_dir() else [])]:
                for word in rule.words:
                    verb = {"list": "read"}.get(word, word)
                    needed = Capability.literal("fs", verb, path.relative_to(sandbox).as_posix())
                    assert any(grant.covers(needed) for grant in grants), (needed, needs)
    box.close()


def test_rules_without_the_declaration_open_nothing(sandbox: Path) -> None:
    def refuse() -> Any:
        raise AssertionError("the sandbox is not needed")

    with file_rules([Capability("fs", ("read",), ("**",))], refuse, raw_files=False) as rules:
        assert rules == ()


def test_descriptors_of_rules_are_closed(sandbox: Path) -> None:
    box = Sandbox(str(sandbox))
    before = len(os.listdir("/proc/self/fd"))
    needs = [Capability("fs", ("read", "write"), ("data/a", "data/**", "data/b", "**"))] * 3
    with file_rules(needs, lambda: box, raw_files=True) as rules:
        assert len(rules) == 4
    assert len(os.listdir("/proc/self/fd")) == before
    box.close()
