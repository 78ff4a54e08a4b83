"""Names that are spelled like another name: what a caller is offered, and how much work that takes."""

from __future__ import annotations

from difflib import get_close_matches
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.work import calls_in, steps_in

from neuroscript import Engine, ExecutionPolicy, Session, ToolPolicy, Toolset, ToolSpec
from neuroscript.errors import ToolNotFound
from neuroscript.io.near_names import NearNames, near

TOOLS = [
    *("math.abs", "math.add", "math.max", "math.sqrt", "math.subtract", "str.length", "str.split", "list.length"),
    *("list.get", "var.get", "tree.getnode", "git.add", "git.commit", "git.push", "fs.list", "fs.read", "fs.stat"),
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("add", ("math.add", "git.add"), id="a last segment"),
        pytest.param("plus.add", ("math.add", "git.add"), id="another group"),
        pytest.param("maths.add", ("math.add",), id="a misspelled group"),
        pytest.param("math.plus", ("math.add",), id="a word that means the same"),
        pytest.param("math.minus", ("math.subtract",), id="another one"),
        pytest.param("cat", ("list.get", "var.get", "fs.read"), id="the same without a group"),
        pytest.param("http.plus", (), id="a word that means the same in another group"),
        pytest.param("str.lenght", ("str.length",), id="a misspelled last segment"),
        pytest.param("lenght", ("str.length", "list.length"), id="the same without a group"),
        pytest.param("kv.get", ("var.get", "list.get"), id="a group that does not exist"),
        pytest.param("tree.get", ("tree.getnode", "list.get", "var.get"), id="the whole name"),
        pytest.param("MATH.SQR", ("math.sqrt",), id="another case"),
        pytest.param("zzz", (), id="nothing"),
        pytest.param("", (), id="empty"),
        pytest.param("math.add" + "x" * 10_000, (), id="far too long"),
    ],
)
@pytest.mark.parametrize("others", [0, 3_000])
def test_near_names_of_tools(name: str, expected: tuple[str, ...], others: int) -> None:
    """The answer does not depend on how many other tools there are."""
    many = [*TOOLS, *(f"other{index}.thing{index}" for index in range(others))]

    assert expected == near(name, many)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("colr", ("color", "colour")), ("Colour", ("colour",)), ("plus", ()), ("", ())],
)
def test_near_names_without_groups(name: str, expected: tuple[str, ...]) -> None:
    """Arguments and commands have no group, and no other word means the same as theirs."""
    assert expected == near(name, ["colour", "add", "price", "color"][:: 1 if name != "Colour" else 2])


def test_names_keep_their_own_case() -> None:
    """A choice is offered as its author wrote it."""
    assert near("read", ["WRITE", "READ"]) == ("READ",)


def many_names(seed: int) -> list[str]:
    """Return 250 names of eight letters, most of which are like others."""
    random = Random(seed)
    words = ["".join(random.choices("abcdefgh", k=random.randint(3, 8))) for _ in range(500)]
    return sorted({f"{group}.{word}" for group, word in zip(words[::2], words[1::2], strict=True)})


@given(st.integers(0, 2**32), st.data())
def test_a_typo_finds_its_name_among_many(seed: int, data: st.DataObject) -> None:
    """The index finds what a search through all names would: one letter less, doubled or exchanged."""
    names = many_names(seed)
    name = data.draw(st.sampled_from(names))
    at = data.draw(st.integers(0, len(name) - 2))
    typo = data.draw(
        st.sampled_from(
            [name[:at] + name[at + 1 :], name[:at] + name[at] + name[at:], name[:at] + "x" + name[at + 1 :]]
        )
    )
    best = get_close_matches(typo, names, n=1, cutoff=0.85)

    assert not best or near(typo, names)


@pytest.mark.parametrize("pattern", ["many.tool{}", "group{}.tool", "g{}.get_item"])
def test_a_search_does_the_same_work_in_an_index_of_any_size(pattern: str) -> None:
    """Also where all names share their last segment, or all but a few letters."""
    work = []
    for count in (10_000, 20_000):
        names = NearNames([pattern.format(index) for index in range(count)])
        names.near("x")  # builds the index
        work.append(steps_in(lambda names=names: names.near(pattern.format(77) + "x")))

    assert work[1] < 1.2 * work[0]


def test_building_an_index_is_linear() -> None:
    """Twice the names take twice the steps."""
    few, many = (
        steps_in(lambda count=count: near("x", [f"group{index}.tool" for index in range(count)]))
        for count in (1_000, 2_000)
    )

    assert many < 2.2 * few


def engine_of(count: int) -> Engine:
    """Return an engine with so many tools."""
    tools = Toolset("many")
    for index in range(count):
        tools.add(ToolSpec(f"tool{index}", "many"), lambda rt: None)
    return Engine(toolsets=[tools], plugins="none")


def unknown(engine: Session, name: str) -> ToolNotFound:
    """Return the error of a call of a tool that does not exist."""
    with pytest.raises(ToolNotFound) as caught:
        engine.call(name)
    return caught.value


def test_an_engine_builds_the_index_of_its_tools_once() -> None:
    """The second unknown name is cheap, however many tools there are; new tools are found."""
    work = []
    for count in (2_000, 4_000):
        with engine_of(count) as engine:
            first = calls_in(lambda engine=engine: unknown(engine, "many.tol1"))
            second = calls_in(lambda engine=engine: unknown(engine, "many.tol2"))
            assert second < first / 5
            work.append(second)
            engine.register(Toolset("added", (_tool("unlike", "many"),)))
            assert unknown(engine, "many.unlik").near == ("many.unlike",)

    assert work[1] < 1.5 * work[0]


def _tool(name: str, group: str, **policy: object):  # type: ignore[no-untyped-def]
    tools = Toolset(group)
    tools.add(ToolSpec(name, group), lambda rt: None, ToolPolicy(**policy))  # type: ignore[arg-type]
    return tools.tools[0]


def test_a_tool_that_may_not_run_is_not_offered_however_many_there_are() -> None:
    """All sessions share one index, and each is offered what its own policy permits."""
    with engine_of(5_000) as engine:
        engine.register(Toolset("few", (_tool("tool77", "few"),)))
        narrow = engine.session(policy=ExecutionPolicy(allow=("few.*",)))

        assert unknown(engine, "tool77").near == ("many.tool77", "few.tool77", "many.tool177")
        assert unknown(narrow, "tool77").near == unknown(narrow, "fwe.tool77").near == ("few.tool77",)
        work = calls_in(lambda: unknown(engine.session(policy=ExecutionPolicy(deny=("many.*",))), "many.tol1"))

    assert work < 40_000


def test_tools_that_need_nothing_are_offered_first() -> None:
    """Most callers may call them; a tool that the policy refuses is not offered."""
    tools = [
        Toolset("git", (_tool("add", "git", capabilities=("fs:write:*",)),)),
        Toolset("math", (_tool("add", "math"),)),
        Toolset("vault", (_tool("add", "vault", requires_trust=True),)),
    ]

    with Engine(toolsets=tools, plugins="none") as engine:
        error = unknown(engine, "add")

    assert str(error) == "unknown tool add; did you mean math.add or git.add?"
    assert (error.code, error.retry, error.near) == ("tool.not_found", "model", ("math.add", "git.add"))
