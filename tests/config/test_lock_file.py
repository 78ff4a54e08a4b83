"""The lock file: its content, its problems, and differences from installed distributions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import ArgSpec, Engine, Example, SpecError, ToolPolicy, ToolSpec
from neuroscript.cli.env.options import LOCK_FILE
from neuroscript.config.lock_file import FILE, MAX_FILE_BYTES, Lock
from neuroscript.config.pinned import Pinned, PinnedTool, compare, summarise
from neuroscript.config.tool_diff import Definition
from neuroscript.tools.fingerprints import fingerprint

evolve = attrs.evolve


def pinned_tool(name: str, *args: ArgSpec, policy: ToolPolicy | None = None, **fields: Any) -> PinnedTool:
    """Return a tool as it is pinned."""
    spec = ToolSpec(name.rpartition(".")[2], name.rpartition(".")[0], args, **fields)
    return PinnedTool.of(Definition(spec, policy or ToolPolicy()))


def pinned(*names: str, version: str = "1.0", **fields: Any) -> Pinned:
    """Return a distribution with these tools."""
    return Pinned("Acme.Tools", version, {name: pinned_tool(name) for name in names}, **fields)


HARD = pinned_tool(
    "acme.hard",
    ArgSpec("path", "string", default='"\\\n\x1b[2J\u202e é'),
    ArgSpec("options", "map", default=None, nullable=True, keys=(ArgSpec("deep", "any", default=[None, {"a": 1.5}]),)),
    ArgSpec("blob", "blob", default=b"\xff\x00"),
    examples=(Example((), None), Example({"path": "x"}, error="tool.failed", note="…")),
    policy=ToolPolicy(capabilities=("fs:read:{path}",), effects=("reads",), timeout=2.5),
)
WHOLE = Lock(
    (
        Pinned("zeta", "2.0", {"zeta.a": pinned_tool("zeta.a")}, {"zeta.old": "zeta.a"}, ("neuroscript_decide",)),
        Pinned("Acme.Tools", "1.0", {"acme.hard": HARD, "acme.b": pinned_tool("acme.b")}),
        Pinned("empty", "?", is_isolated=True),
    )
)


# Files


def test_a_lock_survives_a_round_trip(tmp_path: Path) -> None:
    """Through an ASCII file with line breaks."""
    file = tmp_path / "neuroscript.lock"

    WHOLE.write(file)

    assert Lock.read(file) == WHOLE
    assert file.read_bytes().isascii()
    assert file.read_text().count("\n") > 50
    assert [each.name for each in Lock.read(file).distributions] == ["Acme.Tools", "empty", "zeta"]


def test_equal_locks_have_the_same_text() -> None:
    """For any order of their parts."""
    turned = Lock(
        tuple(evolve(each, tools=dict(reversed(each.tools.items()))) for each in reversed(WHOLE.distributions))
    )

    assert turned.text == WHOLE.text == Lock.of_text(WHOLE.text).text


def test_every_tool_that_is_installed_can_be_locked() -> None:
    """With the fingerprint that the engine's own approvals are tied to."""
    with Engine() as engine:
        tools = {name: PinnedTool.of(Definition(tool.spec, tool.policy)) for name, tool in engine.tools.items()}
        lock = Lock((Pinned("all", "1.0", tools),))

        assert Lock.of_text(lock.text) == lock
        assert {name: tool.fingerprint for name, tool in tools.items()} == {
            name: fingerprint(tool) for name, tool in engine.tools.items()
        }


def test_a_file_that_cannot_be_written_is_unchanged(tmp_path: Path) -> None:
    """No other file remains."""
    file = tmp_path / "neuroscript.lock"
    file.mkdir()

    with pytest.raises(OSError):
        WHOLE.write(file)

    assert [*tmp_path.iterdir()] == [file]
    assert [*file.iterdir()] == []


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """A process that has the file open continues to read the old content."""
    file = tmp_path / "neuroscript.lock"
    file.write_text("what was there")
    with file.open() as opened:
        WHOLE.write(file)

        assert opened.read() == "what was there"
    assert [*tmp_path.iterdir()] == [file]


def test_a_file_without_marks_of_isolation_is_valid() -> None:
    """As older versions write it; a distribution that is not isolated is not marked."""
    lock = Lock.of_text(json.dumps(locked()))

    assert [each.is_isolated for each in lock.distributions] == [False]
    assert "isolated" not in lock.text
    assert Lock.of_text(json.dumps(locked(isolated=False))) == lock
    assert Lock.of_text(json.dumps(locked(isolated=True))) != lock


def test_code_that_is_no_longer_isolated_is_a_breaking_change() -> None:
    """More isolation is no difference."""
    free, isolated = pinned("acme.b"), pinned("acme.b", is_isolated=True)

    assert [str(each) for each in compare(isolated, free)] == ["isolated: the policy no longer isolates its code"]
    assert [each.change.kind for each in compare(isolated, free)] == ["breaking"]
    assert compare(free, isolated) == ()


# Problems


def problem_of(data: Any) -> list[str]:
    """Return the error for a lock with these data."""
    with pytest.raises(SpecError) as raised:
        Lock.of_text(data if isinstance(data, str) else json.dumps(data))
    assert raised.value.subject == "neuroscript.lock"
    return list(raised.value.problems)


def locked(**changed: Any) -> dict[str, Any]:
    """Return the data of a lock whose distribution *acme* has other fields."""
    tool = pinned_tool("acme.b")
    good = {"version": "1.0", "tools": {"acme.b": {"fingerprint": tool.fingerprint, **tool.data}}}
    return {"lock": 1, "distributions": {"acme": {**good, **changed}}}


def with_tool(**changed: Any) -> dict[str, Any]:
    """Return the data of a lock whose one tool has other fields."""
    tool = pinned_tool("acme.b")
    return locked(tools={"acme.b": {"fingerprint": tool.fingerprint, **tool.data, **changed}})


SPEC = pinned_tool("acme.b").data["spec"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", ["line 1, column 1 is not JSON"]),
        ("{", ["line 1, column 2 is not JSON"]),
        ("[" * 100_000, ["the JSON text nests too deeply"]),
        ('{"lock": 1, "lock": 1}', ["the JSON text contains a duplicate key"]),
        ('{"lock": NaN}', ["NaN is not a JSON number"]),
        ("[]", ["must be a JSON object, not list"]),
        ({"distributions": {}}, ["lock: must be 1, the supported version of the format"]),
        ({"lock": 2, "future": 1}, ["lock: must be 1, the supported version of the format"]),
        ({"lock": True, "distributions": {}}, ["lock: must be 1, the supported version of the format"]),
        ({"lock": 1}, ["distributions: must be a JSON object"]),
        (
            {"lock": 1, "distribution": {}, "distributions": {}},
            ["distribution: unknown key; did you mean distributions?"],
        ),
        (
            {"lock": 1, "distributions": {"acme": 5}},
            [
                "distributions.acme: must be a JSON object",
                "distributions.acme.version: must be a string",
                "distributions.acme.tools: must be a JSON object",
            ],
        ),
        (locked(hook=[]), ["distributions.acme.hook: unknown key; did you mean hooks?"]),
        (locked(version=1.0), ["distributions.acme.version: must be a string"]),
        (locked(isolated=1), ["distributions.acme.isolated: must be true or false"]),
        (locked(isolated=None), ["distributions.acme.isolated: must be true or false"]),
        (locked(hooks=["a", "a"]), ["distributions.acme.hooks: must be an array of unique strings"]),
        (locked(hooks=[{}]), ["distributions.acme.hooks: must be an array of unique strings"]),
        (
            locked(aliases={"acme.c": "acme.d"}),
            ['distributions.acme.aliases."acme.c": must be the name of a tool of this distribution'],
        ),
        (
            with_tool(fingerprint="0" * 64),
            [
                'distributions.acme.tools."acme.b": the fingerprint does not match the definition; one of them was edited'
            ],
        ),
        (
            with_tool(spec={**SPEC, "description": "another"}),
            [
                'distributions.acme.tools."acme.b": the fingerprint does not match the definition; one of them was edited'
            ],
        ),
        (
            with_tool(spec={**SPEC, "name": "c", "fullname": "acme.c"}),
            ['distributions.acme.tools."acme.b": contains the definition of another tool'],
        ),
        (with_tool(spec={**SPEC, "argss": []}), ['distributions.acme.tools."acme.b": unknown keys argss @ ToolSpec']),
        (with_tool(policy=None), ['distributions.acme.tools."acme.b": expected dict, got None @ ToolPolicy']),
        (with_tool(extra=1), ['distributions.acme.tools."acme.b".extra: unknown key']),
    ],
)
def test_a_problem_is_reported_with_its_path(data: Any, expected: list[str]) -> None:
    """Never with a traceback."""
    assert problem_of(data) == expected


def test_all_problems_are_reported_at_once() -> None:
    """Of every distribution, and a name in two spellings."""
    data = locked(version=None, hooks=5)
    data["distributions"]["Acme"] = data["distributions"]["acme"]

    assert problem_of(data) == [
        "distributions.acme.version: must be a string",
        "distributions.acme.hooks: must be an array of unique strings",
        "distributions.Acme.version: must be a string",
        "distributions.Acme.hooks: must be an array of unique strings",
        "distributions.acme: appears twice, in different spellings",
        "distributions.Acme: appears twice, in different spellings",
    ]


def test_a_definition_that_nests_without_end_is_a_fault() -> None:
    """Not a crash."""
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    arg = {"name": "a", "type": "any", "required": False, "description": "", "defaultValue": deep}

    (problem,) = problem_of(with_tool(spec={**SPEC, "args": [arg]}))

    assert problem.startswith('distributions.acme.tools."acme.b": ')


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_no_damage_is_a_crash(data: st.DataObject) -> None:
    """Any value in any place of a sound file: it is read, or refused with sentences."""
    whole = json.loads(WHOLE.text)
    at: Any = whole
    while True:
        key = data.draw(st.sampled_from([*at]) if isinstance(at, dict) else st.integers(0, len(at) - 1))
        if not isinstance(at[key], (dict, list)) or not at[key] or data.draw(st.booleans()):
            at[key] = data.draw(json_values)
            break
        at = at[key]

    try:
        lock = Lock.of_text(json.dumps(whole))
    except SpecError as error:
        assert error.problems
    else:
        assert Lock.of_text(lock.text) == lock


def test_a_missing_too_large_or_invalid_file_is_reported(tmp_path: Path) -> None:
    """With its name."""
    file = tmp_path / "neuroscript.lock"
    with pytest.raises(SpecError, match=r"neuroscript\.lock: cannot be read: no such file or directory$"):
        Lock.read(file)
    file.write_bytes(b" " * (MAX_FILE_BYTES + 1))
    with pytest.raises(SpecError, match=rf"has more than {MAX_FILE_BYTES} bytes$"):
        Lock.read(file)
    file.write_bytes(b'{"lock": 1,\n"\xff"}')
    with pytest.raises(SpecError, match=r"neuroscript\.lock:2: is not UTF-8 text$"):
        Lock.read(file)


# Differences


def lines(old: Pinned, new: Pinned) -> list[str]:
    """Return the differences as a person reads them."""
    return [f"{each.change.kind} {each}" for each in compare(old, new)]


GONE = ArgSpec("n", "int")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (pinned("acme.b"), pinned("acme.b"), []),
        (pinned("acme.b"), pinned("acme.b", version="1.1"), ["compatible version: changed from 1.0 to 1.1"]),
        (pinned("acme.b"), pinned("acme.b", "acme.c"), ["compatible acme.c: a new tool"]),
        (pinned("acme.b", "acme.c"), pinned("acme.b"), ["breaking acme.c: the tool was removed"]),
        (
            pinned("acme.b"),
            pinned("acme.c", aliases={"acme.b": "acme.c"}),
            ["compatible acme.b: fullname: was renamed to acme.c"],
        ),
        (
            pinned("acme.b", aliases={"acme.a": "acme.b"}),
            pinned("acme.c", aliases={"acme.a": "acme.c", "acme.b": "acme.c"}),
            ["compatible acme.b: fullname: was renamed to acme.c"],
        ),
        (
            pinned("acme.b", aliases={"acme.a": "acme.b"}),
            pinned("acme.b"),
            ["breaking aliases.acme.a: is no longer an alias of a tool"],
        ),
        (
            pinned("acme.b", "acme.c", aliases={"acme.a": "acme.b"}),
            pinned("acme.b", "acme.c", aliases={"acme.a": "acme.c"}),
            ["breaking aliases.acme.a: refers to another tool"],
        ),
        (
            pinned("acme.b"),
            pinned("acme.b", aliases={"acme.a": "acme.b"}),
            ["compatible aliases.acme.a: is now an alias of a tool"],
        ),
        (
            pinned("acme.b"),
            pinned("acme.b", hooks=("neuroscript_call_finished",)),
            [
                "breaking hooks.neuroscript_call_finished: now has this hook, which is notified of calls or decides about them"
            ],
        ),
        (
            pinned("acme.b", hooks=("neuroscript_decide",)),
            pinned("acme.b"),
            ["breaking hooks.neuroscript_decide: no longer has this hook, which may have refused calls"],
        ),
        (
            evolve(pinned(), tools={"acme.b": pinned_tool("acme.b", GONE)}),
            pinned("acme.b"),
            ["breaking acme.b: args.n: the argument was removed"],
        ),
    ],
)
def test_changes_of_a_distribution_are_reported(old: Pinned, new: Pinned, expected: list[str]) -> None:
    """Its version, its tools, their old names, its hooks."""
    assert lines(old, new) == expected


def test_a_distribution_that_differs_from_its_lock_is_refused() -> None:
    """For any spelling of its name; the error counts the changes, and names the first."""
    lock = Lock((pinned("acme.b", "acme.c", "acme.d"),))

    same = evolve(pinned("acme.b", "acme.c", "acme.d"), name="acme_tools")
    unknown = lock.refusal(evolve(same, name="acme"))
    changed = lock.refusal(pinned("acme.e", "acme.f", version="2.0"))

    assert lock.refusal(same) is None
    assert unknown is not None
    assert changed is not None
    assert (unknown.code, str(unknown)) == ("plugin.locked", "acme 1.0: is not in neuroscript.lock")
    assert (changed.code, str(changed)) == (
        "plugin.locked",
        "Acme.Tools 2.0: does not match neuroscript.lock: 3 breaking and 3 compatible changes "
        "(acme.b: the tool was removed; acme.c: the tool was removed; acme.d: the tool was removed; and 3 more)",
    )


def test_one_change_is_one_change() -> None:
    """And no more."""
    differences = compare(pinned(version="1.0"), pinned(version="1.1"))

    assert summarise(differences) == "1 compatible change (version: changed from 1.0 to 1.1)"


def test_a_locked_distribution_that_is_not_installed_is_missing() -> None:
    """With its locked name; distributions that the host excludes do not count."""
    (error,) = WHOLE.missing(["acme-tools", "Zeta"])

    assert (error.code, str(error)) == ("plugin.missing", "empty ?: is in neuroscript.lock but not installed")


def test_the_command_and_the_lock_use_the_same_file_name() -> None:
    """The command has its own copy, so that it need not import locks."""
    assert LOCK_FILE == FILE
