"""Stubs held against mypy in its strict mode, and against the engine: what the types allow runs, what they refuse fails."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.generator import Generator

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CallError,
    Engine,
    ExecutionPolicy,
    Handle,
    ToolImplementation,
    ToolSpec,
    bind,
    client,
)
from neuroscript.errors import UNSET
from neuroscript.formats.python_names import attribute, parameters, word
from neuroscript.formats.stubs import stub

pytest.importorskip("mypy")

ROOT = Path(__file__).parents[2]

USE = """\
from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from neuroscript import Engine, Handle, aclient, client

if TYPE_CHECKING:
    from stub_of_tools import AsyncTools, Tools


"""
"""How a program begins that uses a stub."""


def refused_lines(directory: Path, stub_text: str, program: str) -> dict[int, str]:
    """Return what mypy says of the lines of a program, and fail if it says anything of the stub."""
    (directory / "stub_of_tools.pyi").write_text(stub_text, "utf-8")
    (directory / "use.py").write_text(program, "utf-8")
    cache = str(ROOT / ".mypy_cache")
    options = ["--strict", "--no-error-summary", "--hide-error-context", "--cache-dir", cache, "--config-file", ""]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "stub_of_tools.pyi", "use.py"],
        cwd=directory,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    found = [re.fullmatch(r"use\.py:(\d+): (.*)", line) for line in done.stdout.splitlines()]
    assert None not in found, done.stdout[:2000]
    return {int(match[1]): match[2] for match in found if match and not match[2].startswith("note")}


def using(lines: list[str]) -> str:
    """Return a program with each of these lines in a function."""
    return USE + "\n".join(["def use(engine: Engine, tools: Tools, later: AsyncTools) -> None:", *lines]) + "\n"


# The tools of this project

RIGHT = """\
total: float = tools.math.add(2, 3)
rounded: float = tools.math.round(2.675, digits=2)
greatest: float = tools.math.max(1, 2, 3)
parts: list[str] = tools.str.split("a b", " ")
names: list[dict[str, Any]] = tools.fs.list("inbox")
made: Tools = client(engine)
"""

WRONG = """\
tools.math.add("2", 3)
tools.math.add(2)
tools.math.add(2, 3, 4)
tools.math.add(2, third=3)
tools.math.max()
tools.math.max("a")
tools.math.max(numbers_1=1)
tools.math.ad(2, 3)
tools.maths.add(2, 3)
text: str = tools.math.add(2, 3)
later.math.add(2, 3) + 1
tools.str.split(5, " ")
"""


@pytest.mark.full
def test_the_stub_of_all_tools_here_is_accepted_and_tells_right_from_wrong(tmp_path: Path) -> None:
    """Of every installed tool of this project; each wrong line is refused, and no other. The stub of no tools is valid."""
    with Engine() as engine:
        text = stub(tool.spec for tool in engine.tools.values())
    right, wrong = RIGHT.splitlines(), WRONG.splitlines()
    (tmp_path / "stub_of_no_tools.pyi").write_text(stub([]), "utf-8")
    further = ["    from stub_of_no_tools import Tools as NoTools", "    empty: NoTools"]
    program = using([*(f"    {line}" for line in (*right, *wrong)), *further])
    start = len(USE.splitlines()) + 2

    found = refused_lines(tmp_path, text, program)

    assert [*range(start + len(right), start + len(right) + len(wrong))] == sorted(found), found


def test_what_the_stub_of_our_tools_allows_runs() -> None:
    """The lines above through a real client, and the wrong ones that are calls fail there too."""
    with Engine(policy=ExecutionPolicy(grants=("fs:read:*",))) as engine:
        tools = client(engine)

        assert (tools.math.add(2, 3), tools.math.round(2.675, digits=2), tools.math.max(1, 2, 3)) == (5.0, 2.68, 3.0)
        assert tools.str.split("a b", " ") == ["a", "b"]
        for wrong in (lambda: tools.math.add(2), lambda: tools.math.max(), lambda: tools.maths.add(2, 3)):
            with pytest.raises(CallError):
                wrong()


# Generated tools

WORDS = ("a", "b", "list", "str", "int", "dict", "float", "property", "import", "import_", "class", "none", "any")
ODD = (
    "x",
    "self",
    "from",
    "from_",
    "user-id",
    "user_id",
    "2nd",
    "__x",
    "_",
    "é",
    "ﬁ",
    "a.b",
    "list",
    "type",
    "None",
    "x=1",
    "*",
)
COUNT = 200


def generated(rng: Generator, index: int) -> ToolSpec:
    """Return the spec of one tool: odd names, groups within tools, any types, some of them streams or variadic."""
    spec = rng.spec(rng.randint(0, 4))
    names = rng.sample(ODD, len(spec.args))
    args = tuple(
        attrs.evolve(arg, name=name, description=rng.choice(TEXTS)) for arg, name in zip(spec.args, names, strict=True)
    )
    group = ".".join(rng.choice(WORDS) for _ in range(rng.randint(1, 2)))
    kind = rng.choice([*ArgType])
    return ToolSpec(
        rng.choice((*WORDS, f"t{index}")),
        group,
        args,
        return_type=kind,
        return_nullable=rng.random() < 0.3,
        variadic=spec.variadic,
        stream=rng.random() < 0.2,
        description=rng.choice(TEXTS),
        deprecated=rng.choice(("", "use 'b' or \"c\"\\")) if rng.random() < 0.2 else "",
    )


TEXTS = ("", "Do it.", 'A """ quote\\', "\\", '"', "line\nimport os\n\x00\u2028\ud7ff", "\\N{DASH} \\x é")


def specs() -> list[ToolSpec]:
    """Return as many specs of different names as are wanted."""
    rng, found = Generator(6), {}
    for index in range(10 * COUNT):
        spec = generated(rng, index)
        found.setdefault(spec.full_name, spec)
    return list(found.values())[:COUNT]


def fitting(rng: Generator, arg: ArgSpec, further: bool = False) -> Any:
    """Return a value of the types that a stub has for an argument; bounds may refuse it."""
    is_empty = not arg.required and not further and (arg.default is UNSET or arg.default is None)
    if (arg.nullable or is_empty) and rng.random() < 0.2:
        return None
    if arg.keys:
        maps = [_map(rng, arg) for _ in range(rng.randint(0, 2))]
        return maps if arg.type is ArgType.SLICE_MAP else _map(rng, arg)
    if arg.choices:
        chosen = rng.choice(arg.choices)
        return chosen if arg.type is arg.element else [chosen]
    return rng.choice(VALUES[arg.type])


def _map(rng: Generator, arg: ArgSpec) -> dict[str, Any]:
    others = {"another": [1]} if arg.extra_keys else {}
    return {key.name: fitting(rng, key) for key in arg.keys if key.required or rng.random() < 0.5} | others


VALUES: dict[ArgType, tuple[Any, ...]] = {
    ArgType.STRING: ("", "a", "é\n"),
    ArgType.INT: (0, -1, 3),
    ArgType.FLOAT: (0.5, 2, -1.5),
    ArgType.BOOL: (True, False),
    ArgType.MAP: ({}, {"a": [1]}),
    ArgType.MAP_STRING_ANY: ({}, {"a": None}),
    ArgType.MAP_STRING_STRING: ({}, {"a": "b"}),
    ArgType.MAP_STRING_INT: ({}, {"a": 1}),
    ArgType.MAP_STRING_FLOAT: ({}, {"a": 1, "b": 0.5}),
    ArgType.MAP_STRING_BOOL: ({}, {"a": True}),
    ArgType.MAP_ANY_ANY: ({}, {1: {"b": 1}}),
    ArgType.SLICE: ([], [1, "a", None]),
    ArgType.LIST: ([], [[1]]),
    ArgType.SLICE_ANY: ([], [1, "a"]),
    ArgType.SLICE_STRING: ([], ["a"]),
    ArgType.SLICE_INT: ([], [1, 2]),
    ArgType.SLICE_FLOAT: ([], [1, 2.5]),
    ArgType.SLICE_BOOL: ([], [True]),
    ArgType.SLICE_MAP: ([], [{"a": 1}]),
    ArgType.BLOB: (b"", b"\x00"),
    ArgType.EMBEDDING: ([1.5], [1, 2], array("f", [0.5])),
    ArgType.HANDLE: ("tree-1", Handle("tree-1")),
    ArgType.NODEID: ("N_1", {"_version": "N_2"}),
    ArgType.ENTITYID: ("E_1", {"id": "E_2"}),
    ArgType.ANY: (None, 1, "a", [b"x"]),
    ArgType.NIL: (None,),
}


def path_of(spec: ToolSpec) -> str:
    """Return how a tool is written behind ``tools``."""
    return ".".join(map(attribute, spec.full_name.split(".")))


def right_calls(rng: Generator, spec: ToolSpec) -> list[str]:
    """Return calls that a stub allows, as the engine does: in order, by name, and with as little as may be."""
    for _ in range(20):
        fixed = [fitting(rng, arg) for arg in spec.args]
        if spec.variadic:
            each = attrs.evolve(spec.args[-1], required=True)
            fixed = [*fixed[:-1], fitting(rng, each, True), fitting(rng, each, True)]
        try:
            bind(spec, fixed)
        except ArgumentError:  # bounds, or None of what may not be one of many
            continue
        if spec.variadic:
            return [written(spec, fixed, {})]
        named = dict(zip(parameters(spec), fixed, strict=True))
        least = {name: named[name] for name, arg in zip(parameters(spec), spec.args, strict=True) if arg.required}
        in_order = [] if any_left_out_before(spec) else [written(spec, fixed, {})]
        return [*in_order, written(spec, [], named), written(spec, [], least)]
    return []


def any_left_out_before(spec: ToolSpec) -> bool:
    """Tell whether an argument may be left out before one that may not: then those are given by name."""
    needed = [bool(arg.required) for arg in spec.args]
    return needed != sorted(needed, reverse=True)


def written(spec: ToolSpec, values: list[Any], named: dict[str, Any]) -> str:
    """Return a call as a line of Python."""
    given = [*map(repr, values), *(f"{name}={value!r}" for name, value in named.items())]
    return f"tools.{path_of(spec)}({', '.join(given)})"


def wrong_calls(rng: Generator, spec: ToolSpec, right: str) -> Iterator[str]:
    """Yield calls that are wrong in one thing."""
    call = right.removesuffix(")")
    comma = "" if call.endswith("(") else ", "
    yield f"{call}{comma}no_such_argument=1)"
    if not spec.variadic:
        yield f"tools.{path_of(spec)}({', '.join(['None'] * (len(spec.args) + 1))})"
    if any(arg.required for arg in spec.args):
        yield f"tools.{path_of(spec)}()"
    yield f"tools.{path_of(spec)}.no_such_tool()" if not spec.stream else f"tools.{path_of(spec)}_no()"
    for name, arg in zip(parameters(spec), spec.args, strict=True):
        is_last = spec.variadic and arg is spec.args[-1]
        if arg.type is not ArgType.ANY and not is_last and not spec.variadic:
            others = {each: value for each, value in named_of(right).items() if each != name}
            yield f"tools.{path_of(spec)}({', '.join([*(f'{each}={value}' for each, value in others.items()), f'{name}=object()'])})"


def named_of(call: str) -> dict[str, str]:
    """Return the named arguments of a line of Python."""
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    return {each.arg: ast.unparse(each.value) for each in tree.keywords if each.arg is not None}


@pytest.mark.slow
def test_generated_stubs_allow_what_runs_and_refuse_what_does_not(tmp_path: Path) -> None:
    """200 specs in one stub: each right line is accepted and runs through a client, each wrong one is refused by both."""
    rng = Generator(7)
    found = specs()
    right = [(spec, line) for spec in found for line in right_calls(rng, spec)]
    last = {spec.full_name: (spec, line) for spec, line in right}
    wrong = [line for spec, line in last.values() for line in wrong_calls(rng, spec, line)]
    program = using([f"    {line}" for line in (*(line for _, line in right), *wrong)])
    start = len(USE.splitlines()) + 2

    refused = refused_lines(tmp_path, stub(found), program)

    assert len(found) == COUNT
    assert (len(right) > 300, len(wrong) > 600) == (True, True)
    assert len(last) >= 0.95 * COUNT
    lines = program.splitlines()
    assert [(lines[number - 1], text) for number, text in refused.items() if number < start + len(right)] == []
    accepted = set(range(start + len(right), start + len(right) + len(wrong))) - set(refused)
    assert [lines[number - 1] for number in sorted(accepted)] == []

    tools = [
        ToolImplementation(attrs.evolve(spec, return_type="any", return_nullable=True), func(spec)) for spec in found
    ]
    with Engine(plugins="none") as engine:
        for tool in tools:
            engine.register(tool)
        scope = {"tools": client(engine), "Handle": Handle, "array": array}
        for _, line in right:
            list(eval(line, scope) or ())
        for line in wrong:
            with pytest.raises(CallError):
                list(eval(line, scope) or ())


def func(spec: ToolSpec) -> Any:
    """Return a function that takes the arguments of a tool and gives nothing."""
    if spec.stream:
        return lambda rt, *values: iter(())
    return lambda rt, *values: None


# Its text


def test_the_order_of_the_specs_does_not_matter() -> None:
    """The same tools give the same text."""
    found = specs()

    assert stub(found) == stub(reversed(found))


@settings(max_examples=examples(200), deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=("Cs",)), max_size=40),
    default=st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
)
def test_no_text_of_a_tool_is_code(text: str, default: str) -> None:
    """Whatever a description, a default, a choice or a key holds: the stub is Python of the same shape."""

    def made(words: str, choice: str) -> str:
        arg = ArgSpec("x", ArgType.STRING, description=words, choices=(choice, "b"), default=choice)
        spec = ToolSpec(
            "t", "g", (arg,), description=words, when_to_use=words, return_help=words, deprecated="d" + words
        )
        return stub([spec])

    assert shape(made("words", "a")) == shape(made(f"a{text}words", default or "a"))


def shape(source: str) -> str:
    """Return the tree of a source without its constants."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = 0
    return ast.dump(tree)


@pytest.mark.parametrize("name", ["add", "import", "import_", "class", "class_", "none", "match", "a_"])
def test_an_attribute_means_the_word_that_it_was_made_of(name: str) -> None:
    """And it can be written behind a dot."""
    assert word(attribute(name)) == name
    ast.parse(f"tools.{attribute(name)}")


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.from_regex(r"""[^\s{}\[\]()'"`]{1,12}""", fullmatch=True).filter(str.isprintable), unique=True, max_size=6
    )
)
def test_parameters_are_names_and_nobody_elses(names: list[str]) -> None:
    """Whatever arguments are called: as many parameters, each of which can be given by name, in a class too."""
    spec = ToolSpec("t", "g", tuple(ArgSpec(name, ArgType.INT) for name in names))
    found = parameters(spec)

    assert [*found.values()] == names
    for name in found:
        scope: dict[str, Any] = {}
        exec(f"class C:\n  def f(this, {name}): return {name}\nvalue = C().f({name}=5)", scope)
        assert scope["value"] == 5
