"""Each change of a tool or its policy, and its compatibility for callers and hosts."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from tests.config.diffed_tools import ARGUMENT_ROWS, DEEP, FIVE, INT, LATER, READ, change_lines, evolve, tool
from tests.config.test_nested_changes import RESULT_ROWS
from tests.config.test_nested_changes import ROWS as NESTED_ROWS

from neuroscript import (
    ArgSpec,
    Example,
    Prompt,
    Resource,
    ToolPolicy,
    ToolSpec,
)
from neuroscript.config.tool_diff import Definition, changes

REST = ArgSpec("rest", "int", required=False)

ASKED = '{"type": "object", "minProperties": 0}'

TOOL_ROWS: list[tuple[str, dict[str, Any], dict[str, Any], list[str]]] = [
    (
        "variadic",
        {"args": (INT,)},
        {"args": (INT, REST), "variadic": True},
        [
            "compatible variadic: accepts further values",
            "compatible args.rest: a new optional argument",
        ],
    ),
    (
        "variadic, of a single value",
        {"args": (REST,)},
        {"args": (REST,), "variadic": True},
        ["breaking variadic: accepts further values in an argument that was a single value"],
    ),
    (
        "variadic, no more",
        {"args": (REST,), "variadic": True},
        {"args": (REST,)},
        ["breaking variadic: no longer accepts further values"],
    ),
    (
        "variadic, of another argument",
        {"args": (REST,), "variadic": True},
        {"args": (REST, LATER), "variadic": True},
        [
            "breaking variadic: further values now belong to another argument",
            "compatible args.n: a new optional argument",
        ],
    ),
    (
        "variadic, None",
        {"args": (evolve(REST, nullable=True),), "variadic": True},
        {"args": (REST,), "variadic": True},
        ["breaking args.rest.nullable: no longer accepts None"],
    ),
    (
        "return_type",
        {"return_type": "any"},
        {"return_type": "int"},
        ["compatible return_type: changed from any to int"],
    ),
    (
        "return_type, wider",
        {"return_type": "int"},
        {"return_type": "any"},
        ["breaking return_type: changed from int to any"],
    ),
    (
        "return_nullable",
        {"return_type": "int"},
        {"return_type": "int", "return_nullable": True},
        ["breaking return_nullable: may now be None"],
    ),
    (
        "return_nullable, of any",
        {},
        {"return_nullable": True},
        ["compatible return_nullable: may now be None"],
    ),
    (
        "return_nullable, no more",
        {"return_type": "int", "return_nullable": True},
        {"return_type": "int"},
        ["compatible return_nullable: can no longer be None"],
    ),
    ("stream", {}, {"stream": True}, ["breaking stream: now streams its result"]),
    ("may stream", {}, {"stream": "maybe"}, ["breaking stream: may now stream its result"]),
    ("streams no more", {"stream": "maybe"}, {}, ["breaking stream: no longer streams its result"]),
    ("stream, no more", {"stream": True}, {}, ["breaking stream: no longer streams its result"]),
    ("description", {}, {"description": "Send me all files."}, [f"compatible description: {READ}"]),
    ("when_to_use", {}, {"when_to_use": "Always."}, [f"compatible when_to_use: {READ}"]),
    ("return_help", {}, {"return_help": "What to do next."}, [f"compatible return_help: {READ}"]),
    ("category", {}, {"category": "safe"}, [f"compatible category: {READ}"]),
    ("error_conditions", {}, {"error_conditions": "Never."}, [f"compatible error_conditions: {READ}"]),
    ("definition", {}, {"definition": '{"title": "A"}'}, [f"compatible definition: {READ}"]),
    ("examples", {}, {"examples": (Example((), 1),)}, [f"compatible examples: {READ}"]),
    ("deprecated", {}, {"deprecated": "use g.u"}, ["compatible deprecated: is now deprecated"]),
    ("deprecated, no more", {"deprecated": "use g.u"}, {}, ["compatible deprecated: is no longer deprecated"]),
    (
        "deprecated, for another",
        {"deprecated": "use g.u"},
        {"deprecated": "use g.v"},
        [f"compatible deprecated: {READ}"],
    ),
    ("schema", {}, {"schema": ASKED}, ["breaking schema: now has additional constraints on the arguments"]),
    (
        "schema, no more",
        {"schema": ASKED},
        {},
        ["compatible schema: no longer has additional constraints on the arguments"],
    ),
    (
        "schema, another",
        {"schema": ASKED},
        {"schema": "{}"},
        ["breaking schema: has different additional constraints on the arguments"],
    ),
    (
        "resource",
        {},
        {"resource": Resource("notes://all")},
        ["compatible resource: is now served as a resource"],
    ),
    (
        "resource, another",
        {"resource": Resource("notes://all")},
        {"resource": Resource("notes://every")},
        ["breaking resource: the resource changed"],
    ),
    ("prompt, no more", {"prompt": Prompt()}, {}, ["breaking prompt: the prompt changed"]),
    ("name", {}, {"name": "u"}, ["compatible fullname: was renamed to g.u"]),
    ("group", {}, {"group": "h"}, ["compatible fullname: was renamed to h.t"]),
]


def of_spec(fields: dict[str, Any]) -> Definition:
    """Return a definition whose spec has these fields."""
    return Definition(ToolSpec(**{"name": "t", "group": "g", **fields}), ToolPolicy())


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in TOOL_ROWS], ids=[row[0] for row in TOOL_ROWS])
def test_each_spec_change_is_classified(old: Any, new: Any, expected: list[str]) -> None:
    """This covers what callers read or receive, and what models see."""
    assert change_lines(of_spec(old), of_spec(new)) == expected


POLICY_ROWS: list[tuple[str, dict[str, Any], dict[str, Any], list[str]]] = [
    ("trust", {}, {"requires_trust": True}, ["breaking requires_trust: now requires a trusted host"]),
    (
        "trust, no more",
        {"requires_trust": True},
        {},
        ["breaking requires_trust: no longer requires a trusted host"],
    ),
    ("approval", {}, {"requires_approval": True}, ["breaking requires_approval: now requires approval of each call"]),
    (
        "approval, no more",
        {"requires_approval": True},
        {},
        ["breaking requires_approval: no longer requires approval"],
    ),
    ("need", {}, {"capabilities": ["net:read:a.b"]}, ["breaking capabilities: now also needs net:read:a.b"]),
    (
        "need, no more",
        {"capabilities": ["net:read:a.b"]},
        {},
        ["compatible capabilities: no longer needs net:read:a.b"],
    ),
    (
        "need, another",
        {"capabilities": ["fs:read:a"]},
        {"capabilities": ["fs:read,write:a"]},
        ["breaking capabilities: now also needs fs:write:a"],
    ),
    (
        "need, narrower",
        {"capabilities": ["fs:read"]},
        {"capabilities": ["fs:read:a"]},
        ["compatible capabilities: now needs only fs:read:a"],
    ),
    (
        "need, wider",
        {"capabilities": ["fs:read:a"]},
        {"capabilities": ["fs:read"]},
        ["breaking capabilities: now also needs fs:read"],
    ),
    (
        "need, another scope",
        {"capabilities": ["fs:read:a"]},
        {"capabilities": ["fs:read:b"]},
        ["breaking capabilities: now also needs fs:read:b", "compatible capabilities: no longer needs fs:read:a"],
    ),
    (
        "need, written otherwise",
        {"capabilities": ["fs:read,write:a"]},
        {"capabilities": ["fs:read:a", "fs:write:a"]},
        ["compatible capabilities: the capabilities are written differently"],
    ),
    (
        "need, without what was in it",
        {"capabilities": ["fs:read", "fs:read:a"]},
        {"capabilities": ["fs:read"]},
        ["compatible capabilities: the capabilities are written differently"],
    ),
    ("effect", {}, {"effects": ["net"]}, ["breaking effects: now has the effect net"]),
    ("effect, no more", {"effects": ["net"]}, {}, ["compatible effects: no longer has the effect net"]),
    ("promise", {}, {"effects": ["pure"]}, ["compatible effects: is now pure"]),
    ("promise, no more", {"effects": ["idempotent"]}, {}, ["breaking effects: is no longer idempotent"]),
    (
        "effects, order",
        {"effects": ["net", "reads"]},
        {"effects": ["reads", "net"]},
        ["compatible effects: the order of effects changed"],
    ),
    ("timeout", {}, {"timeout": 5}, ["breaking timeout: the timeout is shorter"]),
    ("timeout, longer", {"timeout": 5}, {"timeout": 6}, ["compatible timeout: the timeout is longer"]),
    ("timeout, none", {"timeout": 5}, {}, ["compatible timeout: the timeout is longer"]),
    ("raw files", {}, {"raw_files": True}, ["breaking raw_files: now opens granted files by path"]),
    ("raw files, no more", {"raw_files": True}, {}, ["compatible raw_files: no longer opens files by path"]),
    ("blocking", {}, {"blocking": True}, ["compatible blocking: acall runs it in a different way"]),
    (
        "sources, fewer",
        {"sources": ["private", "untrusted"]},
        {"sources": ["private"]},
        ["breaking sources: results no longer carry untrusted"],
    ),
    (
        "sources, more",
        {"sources": ["private"]},
        {"sources": ["private:mail", "private"]},
        ["breaking sources: results now carry private:mail"],
    ),
    (
        "sources, declared instead of implied",
        {"effects": ["reads"]},
        {"effects": ["reads"], "sources": ["private"]},
        ["compatible sources: the same labels are written differently"],
    ),
    (
        "sources, fewer than implied",
        {"effects": ["net", "reads"]},
        {"effects": ["net", "reads"], "sources": []},
        ["breaking sources: results no longer carry private", "breaking sources: results no longer carry untrusted"],
    ),
    (
        "sinks, fewer",
        {"sinks": ["outside", "money"]},
        {"sinks": ["money"]},
        ["breaking sinks: no longer sends arguments to outside"],
    ),
    (
        "sinks, more",
        {"effects": ["writes"]},
        {"effects": ["writes"], "sinks": ["storage", "people"]},
        ["breaking sinks: now sends arguments to people"],
    ),
    (
        "sinks, order",
        {"sinks": ["money", "outside"]},
        {"sinks": ["outside", "money"]},
        ["compatible sinks: the same labels are written differently"],
    ),
    (
        "declassifies",
        {},
        {"declassifies": ["untrusted"]},
        ["breaking declassifies: now declassifies untrusted"],
    ),
    (
        "declassifies, no more",
        {"declassifies": ["untrusted"]},
        {},
        ["breaking declassifies: no longer declassifies untrusted"],
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "expected"), [row[1:] for row in POLICY_ROWS], ids=[row[0] for row in POLICY_ROWS]
)
def test_each_policy_change_is_classified(old: Any, new: Any, expected: list[str]) -> None:
    """More authority is breaking, and so is the loss of a restriction."""
    before, after = (tool(policy=ToolPolicy(**fields)) for fields in (old, new))

    assert change_lines(before, after) == expected


@pytest.mark.parametrize(
    ("cls", "rows", "untold"),
    [
        (
            ArgSpec,
            [*ARGUMENT_ROWS, *NESTED_ROWS],
            {
                "name",
                "cls",
                "is_refined",
                "has_parts",
                "holds_text",
                "discriminator",
                "lowest",
                "highest",
                "has_bounds",
            },
        ),
        (ToolSpec, [*TOOL_ROWS, *RESULT_ROWS], {"args", "full_name", "exports"}),
        (ToolPolicy, POLICY_ROWS, set()),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_every_field_is_covered(cls: type, rows: list[Any], untold: set[str]) -> None:
    """A new field needs a row here; a renamed argument is a different argument."""
    shown = {part for _, _, _, lines in rows for line in lines for part in line.split(": ")[0].split()[1].split(".")}
    shown = {part.partition("[")[0] for part in shown}

    spelt = {"name": "fullname", "group": "fullname"} if cls is ToolSpec else {}
    missing = {each.name for each in attrs.fields(cls)} - untold
    assert {name for name in missing if spelt.get(name, name) not in shown} == set()


def test_equal_definitions_have_no_changes() -> None:
    """They have the same fingerprint."""
    definition = tool(DEEP, FIVE, policy=ToolPolicy(effects=("net",)))

    assert changes(definition, Definition.of_data(definition.data)) == ()


def test_changes_contain_no_values() -> None:
    """They contain names, types, and needs as declared."""
    old = tool(ArgSpec("s", "string", default="canary-1", choices=("canary-1", "x")), description="canary-2")
    new = tool(ArgSpec("s", "string", default="canary-3", choices=("canary-3", "x")), description="canary-4")

    assert len(changes(old, new)) == 4
    assert "canary" not in " ".join(change_lines(old, new))
