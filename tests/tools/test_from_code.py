"""Tools from source code: each has its own namespace and file name, and only a host can create one."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from neuroscript import Engine, Example, SpecError, ToolFailed, ToolPolicy, Toolset, from_code
from neuroscript.tools.from_code import PREFIX

SOURCES = Path(__file__).parents[2] / "src" / "neuroscript"

HELPED = """
from __future__ import annotations

import enum
from dataclasses import dataclass
from math import trunc

class Colour(enum.Enum):
    RED = "red"

@dataclass
class Box:
    size: int
    colour: Colour = Colour.RED

def _factorial(n: int) -> int:
    return 1 if n < 2 else n * _factorial(n - 1)

def area(box: Box, *, by: float = STEP) -> str:
    '''Say how large a box is.

    Args:
        box: Which.
    '''
    return f"{trunc(_factorial(box.size) * by)} {box.colour.name}"
"""


def test_a_text_is_a_module_of_its_own() -> None:
    """Recursion, helpers, classes, imports and what the host has given, all in one namespace; the tool is like others."""
    env = {"STEP": 1.5}
    made = from_code(HELPED, None, env, group="texts", policy=ToolPolicy(effects=("pure",)),
                     examples=(Example(({"size": 3},), "9 RED"),))  # fmt: skip

    with Engine(toolsets=[Toolset("texts", (made,))], plugins="none") as engine:
        assert engine.call("texts.area", [{"size": "5", "colour": "red"}]) == "180 RED"
        assert engine.call_named("texts.area", {"box": {"size": 2}, "by": 10}) == "20 RED"
        with pytest.raises(ValueError):
            engine.call("texts.area", [{"size": 5, "colour": "blue"}])
    assert env == {"STEP": 1.5}
    assert (made.spec.description, made.spec.args[0].description) == ("Say how large a box is.", "Which.")


def test_two_texts_do_not_meet() -> None:
    """Each has names of its own, also where both say the same."""
    text = "count = [0]\ndef tick() -> int:\n    count[0] += 1\n    return count[0]\n"
    first, second = from_code(text, group="a"), from_code(text, group="b")

    with Engine(toolsets=[Toolset("a", (first,)), Toolset("b", (second,))], plugins="none") as engine:
        assert [engine.call(name) for name in ("a.tick", "a.tick", "b.tick")] == [1, 2, 1]
    assert first.func.func.__module__ != second.func.func.__module__  # type: ignore[attr-defined]


def test_a_function_is_chosen_by_its_name() -> None:
    """Where there are several, or it is called like a helper."""
    text = "def one() -> int: return 1\ndef two() -> int: return one() + 1\ndef _three() -> int: return two() + 1\n"

    made = [from_code(text, name, group="g", name="n", description="Give it.") for name in ("one", "two", "_three")]

    assert [each.func(None) for each in made] == [1, 2, 3]
    assert {(each.name, each.spec.description) for each in made} == {("g.n", "Give it.")}


def test_a_coroutine_and_a_stream_may_stand_in_a_text() -> None:
    """As in a file."""
    later = from_code("async def later(n: int) -> int: return n", group="g")
    up = from_code("from typing import Iterator\ndef up(n: int) -> Iterator[int]: yield from range(n)", group="g")

    with Engine(toolsets=[Toolset("g", (later, up))], plugins="none") as engine:
        assert (engine.call("g.later", [3]), list(engine.stream("g.up", [3]))) == (3, [0, 1, 2])


def test_a_traceback_shows_the_line_of_the_text() -> None:
    """And `inspect.getsource` the function."""
    text = "# A file.\ndef fail(n: int) -> int:\n    return n // 0  # here\n"
    made = from_code(text, group="g")
    linecache.checkcache()

    with Engine(toolsets=[Toolset("g", (made,))], plugins="none") as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("g.fail", [1])

    shown = "".join(traceback.format_exception(caught.value.__cause__))
    function = made.func.func  # type: ignore[attr-defined]
    assert f'File "<{function.__module__}>", line 3, in fail\n    return n // 0  # here\n' in shown
    assert inspect.getsource(function) == "def fail(n: int) -> int:\n    return n // 0  # here\n"
    assert inspect.getmodule(function) is sys.modules[function.__module__]


@pytest.mark.parametrize(
    ("text", "name", "problem"),
    [
        ("x = 1", None, "no callable found; define a function, such as def count(text: str) -> int"),
        ("", None, "no callable found; define a function, such as def count(text: str) -> int"),
        ("class A: ...\nfrom math import trunc\ndef _f() -> int: return 1", None,
         "no callable found; define a function, such as def count(text: str) -> int"),
        ("def f() -> int: return 1\ndef g() -> int: return 1", None,
         "multiple callables found: f, g; choose one with func_name"),
        ("def f() -> int: return 1\ndef g() -> int: return 1", "zz", "no callable named zz; available: f, g"),
        ("f = 5", "f", "no callable named f; the source defines none"),
        ("", "given", "no callable named given; the source defines none"),
        ("class A: ...", "A", "no callable named A; the source defines none"),
        ("\ndef f(", None, "the source is not valid Python: '(' was never closed, line 2"),
        ("1 / 0", None, "the source raised ZeroDivisionError"),
        ("raise SystemExit(3)", None, "the source raised SystemExit"),
        (b"def f() -> int: return 1", None, "text must be a string, not bytes"),
    ],
)  # fmt: skip
def test_invalid_source_code_is_a_spec_error(text: Any, name: str | None, problem: str) -> None:
    """And nothing of it is left."""
    before = remains()

    with pytest.raises(SpecError) as caught:
        from_code(text, name, {"given": len}, group="g")

    assert (str(caught.value), remains()) == (f"from_code: {problem}", before)


def test_function_that_cannot_be_a_tool_is_a_spec_error() -> None:
    """And nothing of its text is left."""
    before = remains()

    with pytest.raises(SpecError) as caught:
        from_code("def f(a: complex) -> int: return 1", group="g")

    assert (str(caught.value), remains()) == ("f: a: complex is not supported; use list[float]", before)


def test_an_interrupt_leaves_nothing_and_passes() -> None:
    """Ctrl-C during compilation is not reported as invalid Python."""
    before = remains()

    with pytest.raises(KeyboardInterrupt):
        from_code("raise KeyboardInterrupt", group="g")

    assert remains() == before


def remains() -> set[str]:
    """Return the file names of all code that is loaded or whose lines are cached."""
    return {name for name in (*sys.modules, *linecache.cache) if name.strip("<").startswith(PREFIX)}


def test_nothing_of_ours_runs_a_text() -> None:
    """No module names it but the root, and the handle of AgentHeaven, for those who ask for it there."""
    naming = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if names_it(path)}

    assert naming == {"__init__.py", "interop/agentheaven/handle.py"}


def names_it(path: Path) -> bool:
    """Return whether the code of a module imports or mentions it; docstrings do not count."""
    text = path.read_text()
    if "snippets" not in text and "from_code" not in text:
        return False
    kinds = (ast.ImportFrom, ast.Import, ast.Name, ast.Attribute)
    mentions = [ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    return any("snippets" in each or "from_code" in each for each in mentions)
