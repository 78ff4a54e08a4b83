"""What can be called as a tool, and what its function receives; and what is refused, with what to write instead."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import attrs
import pytest

from neuroscript import Arg, Engine, Runtime, SpecError, ToolFailed, Toolset, from_function, tool
from neuroscript._imports import install_hint

Mode = Literal["lax", "strict"]
MODES = ("lax", "strict")


def plain(a: int, b: int = 2) -> list[int]:
    """Return what came."""
    return [a, b]


def with_rt(rt: Runtime, a: int, b: int = 2) -> list[int]:
    """Return what came, and speak."""
    rt.logger.info("called")
    return [a, b]


def by_name(a: int, *, b: int = 2, c: int) -> list[int]:
    """Return what came, some of it by name."""
    return [a, b, c]


def by_name_with_rt(rt: Runtime, *, a: int, b: int = 2) -> list[int]:
    """Return what came, all of it by name."""
    rt.logger.info("called")
    return [a, b]


async def awaited_by_name(a: int, /, *, b: int = 2) -> list[int]:
    """Return what came, later."""
    await asyncio.sleep(0)
    return [a, b]


def with_rest(a: int, *rest: int, b: int = 2) -> list[int]:
    """Return what came, the rest last."""
    return [a, b, *rest]


def given(f: int, a: int, b: int = 2, *, c: int = 3) -> list[int]:
    """Return what came.

    Args:
        f: Fixed.
        a: Given.
        c: By name.
    """
    return [f, a, b, c]


class Shelf:
    """Things that are called."""

    def __init__(self, n: int) -> None:
        self.n = n

    def method(self, a: int, b: int = 2) -> list[int]:
        """Return what came."""
        return [self.n, a, b]

    def method_with_rt(self, rt: Runtime, a: int) -> list[int]:
        """Return what came."""
        return [self.n, a]

    async def later(self, a: int, *, b: int = 2) -> list[int]:
        """Return what came, later."""
        return [self.n, a, b]

    @classmethod
    def of_class(cls, a: int) -> list[int]:
        """Return what came."""
        return [a, len(cls.__name__)]

    @staticmethod
    def of_none(a: int) -> list[int]:
        """Return what came."""
        return [a]

    def __call__(self, a: int, *, b: int = 2) -> list[int]:
        """Return what came."""
        return [self.n, a, b]


class Later:
    """Be awaited."""

    async def __call__(self, rt: Runtime, a: int) -> list[int]:
        return [a]


@functools.lru_cache
def cached(a: int) -> list[int]:
    """Return what came, once."""
    return [a]


CALLABLES: dict[str, tuple[Callable[..., Any], str, list[str], list[int], list[int]]] = {
    "function": (plain, "plain", ["a", "b"], [1], [1, 2]),
    "function with rt": (with_rt, "with_rt", ["a", "b"], [1, 5], [1, 5]),
    "keyword only": (by_name, "by_name", ["a", "b", "c"], [1, 5, 6], [1, 5, 6]),
    "keyword only with rt": (by_name_with_rt, "by_name_with_rt", ["a", "b"], [1], [1, 2]),
    "keyword only coroutine": (awaited_by_name, "awaited_by_name", ["a", "b"], [1], [1, 2]),
    "keyword only and the rest": (with_rest, "with_rest", ["a", "b", "rest"], [1, 5, 6, 7], [1, 5, 6, 7]),
    "method": (Shelf(9).method, "method", ["a", "b"], [1], [9, 1, 2]),
    "method with rt": (Shelf(9).method_with_rt, "method_with_rt", ["a"], [1], [9, 1]),
    "coroutine method": (Shelf(9).later, "later", ["a", "b"], [1, 4], [9, 1, 4]),
    "class method": (Shelf.of_class, "of_class", ["a"], [1], [1, 5]),
    "static method": (Shelf.of_none, "of_none", ["a"], [1], [1]),
    "static method as it is declared": (vars(Shelf)["of_none"], "of_none", ["a"], [1], [1]),
    "object": (Shelf(8), "shelf", ["a", "b"], [1, 3], [8, 1, 3]),
    "awaited object": (Later(), "later", ["a"], [1], [1]),
    "cached": (cached, "cached", ["a"], [1], [1]),
    "partial by place": (functools.partial(given, 7), "given", ["a", "b", "c"], [1, 2, 4], [7, 1, 2, 4]),
    "partial by name": (functools.partial(given, 7, b=8), "given", ["a", "c"], [1, 4], [7, 1, 8, 4]),
    "partial of the first": (functools.partial(given, f=7), "given", ["a", "b", "c"], [1, 5, 6], [7, 1, 5, 6]),
    "partial of a partial": (
        functools.partial(functools.partial(given, a=6), 7),
        "given",
        ["b", "c"],
        [],
        [7, 6, 2, 3],
    ),
    "partial with rt": (functools.partial(with_rt, b=7), "with_rt", ["a"], [1], [1, 7]),
    "partial of a coroutine": (functools.partial(awaited_by_name, b=7), "awaited_by_name", ["a"], [1], [1, 7]),
    "partial of an awaited object": (functools.partial(Later()), "later", ["a"], [1], [1]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CALLABLES)
def test_whatever_can_be_called_can_be_a_tool(name: str, mode: Mode) -> None:
    """Its arguments in order, and the exact values that it receives, through every entry point."""
    func, word, names, args, expected = CALLABLES[name]
    made = tool(func, group="g")
    named = dict(zip(names, args, strict=False))
    if made.spec.variadic:
        named[names[-1]] = args[len(names) - 1 :]  # type: ignore[assignment]

    with Engine(toolsets=[Toolset("g", (made,))], plugins="none", mode=mode) as engine:
        results = [
            engine.call(made.name, args),
            engine.call_named(made.name, named),
            asyncio.run(_acall(engine, made.name, args)),
        ]

    assert (made.spec.name, [arg.name for arg in made.spec.args]) == (word, names)
    assert results == [expected, expected, expected]
    assert made.spec.description.startswith("Return what came") or word in ("shelf", "later")


async def _acall(engine: Engine, name: str, args: list[int]) -> Any:
    return await engine.acall(name, args)


def test_from_function_is_tool() -> None:
    """One function under two names."""
    assert from_function is tool


def test_an_object_is_described_by_its_call_or_by_its_class() -> None:
    """What stands nearer to the call goes first."""
    assert [tool(each, group="g").spec.description for each in (Shelf(1), Later())] == [
        "Return what came.",
        "Be awaited.",
    ]


def test_what_a_partial_has_fixed_can_not_be_set_or_seen() -> None:
    """It is not an argument, nor a default."""

    def fetch(url: str, key: str, *, user: str) -> str:
        """Fetch.

        Args:
            url: Where.
            key: The key.
            user: Who.
        """
        return f"{url} {len(key)} {user}"

    made = tool(functools.partial(fetch, key="k-31337", user="u-31337"), group="g")

    with Engine(toolsets=[Toolset("g", (made,))], plugins="none") as engine:
        assert engine.call("g.fetch", ["x"]) == "x 7 u-31337"
        with pytest.raises(ValueError) as caught:
            engine.call_named("g.fetch", {"url": "x", "key": "mine", "user": "me"})
    assert "31337" not in repr(made.spec)
    assert str(caught.value) == (
        "g.fetch: key: expected only url, got an unknown name of type str; user: expected only url, "
        "got an unknown name of type str"
    )


class Counter:
    """Streams of methods."""

    def up(self, to: int) -> Iterator[int]:
        """Count."""
        yield from range(to)

    async def down(self, *, start: int) -> AsyncIterator[int]:
        """Count down."""
        for n in range(start, 0, -1):
            yield n


@pytest.mark.parametrize(
    ("func", "expected"),
    [
        (Counter().up, [0, 1, 2]),
        (Counter().down, [3, 2, 1]),
        (functools.partial(Counter.up, Counter()), [0, 1, 2]),
        (functools.partial(Counter().down), [3, 2, 1]),
    ],
    ids=["method", "async by name", "partial", "async partial"],
)
def test_a_generator_of_any_kind_is_a_stream(func: Callable[..., Any], expected: list[int]) -> None:
    """Read item by item, or collected by a call."""
    made = tool(func, group="g")

    with Engine(toolsets=[Toolset("g", (made,))], plugins="none") as engine:
        assert (list(engine.stream(made.name, [3])), engine.call(made.name, ["3"])) == (expected, expected)
    assert (made.spec.stream, made.spec.return_type) == (True, "int")


def test_failing_tool_called_by_name_has_the_same_error() -> None:
    """Its own error is the cause."""

    def fail(*, a: int) -> int:
        return a // 0

    with Engine(toolsets=[Toolset("g", (tool(fail, group="g"),))], plugins="none") as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("g.fail", [1])

    assert type(caught.value.__cause__) is ZeroDivisionError


Stream = vars(typing)["AsyncIterator"]
"""As typing has it."""


def yielding() -> list[int]:
    yield 1  # type: ignore[misc]


def late_rt(a: int, rt: Runtime) -> int:
    return a


def bare_stream() -> Iterator:  # type: ignore[type-arg]
    yield 1


def old_stream() -> Stream:
    return iter(())


def bounded_result() -> __import__("typing").Annotated[str, Arg(minimum=1)]:  # type: ignore[valid-type]
    return "1"


def anonymous() -> Callable[..., Any]:
    func = lambda a: a  # noqa: E731
    func.__annotations__ = {"a": int, "return": int}
    return func


@pytest.mark.parametrize(
    ("func", "text"),
    [
        (Shelf, "Shelf: is a class; use a function that creates an instance"),
        (5, "tool: func must be a function, not int"),
        (vars(Shelf)["of_class"], "tool: func must be a function, not classmethod"),
        (Shelf.method, "method: self: this is an unbound method; pass a bound one, such as tool(thing.method)"),
        (anonymous(), '<lambda>: this is not a valid tool name; give one, as in name="count"'),
        (yielding, "yielding: the result: the function yields; use Iterator[T] or AsyncIterator[T]"),
        (late_rt, "late_rt: rt: is the Runtime; make it the first parameter"),
        (bare_stream, "bare_stream: the result: Iterator has no item type; use Iterator[T]; the result: the function yields; use Iterator[T] or AsyncIterator[T]"
         ""),
        (old_stream, "old_stream: the result: AsyncIterator has no item type; use AsyncIterator[T]"),
        (bounded_result, "bounded_result: the result: minimum and maximum are not valid for string"),
    ],
    ids=lambda each: each.split(":")[0] if isinstance(each, str) else "",
)  # fmt: skip
def test_what_can_not_be_a_tool_is_refused(func: Any, text: str) -> None:
    """With a sentence that says what to write."""
    with pytest.raises(SpecError) as caught:
        tool(func, group="g")

    assert text == str(caught.value)


def test_a_lambda_with_annotations_needs_a_name() -> None:
    """And is a tool with one."""
    made = tool(anonymous(), group="g", name="same", description="Give it back.")

    assert (made.name, made.spec.description) == ("g.same", "Give it back.")


def test_a_decorator_of_a_set_leaves_each_function_as_it_is() -> None:
    """Also where it takes values by name."""
    tools = Toolset("g")

    assert tools.tool(description="Do.")(by_name) is by_name
    assert by_name(1, c=3) == [1, 2, 3]
    assert tools.tools[0].spec.description == "Do."


def test_a_decorator_needs_no_parentheses() -> None:
    """With options or without, and as a plain call, it adds the same tool."""
    tools = Toolset("text")

    @tools.tool
    def one(text: str) -> str:
        """Return a string."""
        return text

    @tools.tool()
    def two(text: str) -> str:
        """Return a string."""
        return text

    assert tools.tool(one, name="three") is one
    assert "a" == one("a") == two("a")
    assert ["text.one", "text.two", "text.three"] == [each.name for each in tools]
    first, *others = (attrs.evolve(each.spec, name="same") for each in tools)
    assert [first, first] == others


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda tools: tools.tool("shout"), "tool: func must be a function, not str"),
        (lambda tools: tools.tool(name=5), "toolset text: name must be a string, or None, not int"),
        (
            lambda tools: tools.tool(policy={}),
            "toolset text: policy must be a ToolPolicy, not dict; use ToolPolicy(...)",
        ),
    ],
    ids=["a name without its keyword", "a name of another type", "a policy as a dict"],
)
def test_a_decorator_with_a_wrong_option_fails_before_there_is_a_function(use: Any, text: str) -> None:
    """At the line that says it, not where the function is defined."""
    with pytest.raises(SpecError) as caught:
        use(Toolset("text"))

    assert text == str(caught.value)


def test_one_instance_serves_all_calls() -> None:
    """A bound method keeps what its object holds."""

    class Till:
        total = 0

        def pay(self, amount: int) -> int:
            self.total += amount
            return self.total

    with Engine(toolsets=[Toolset("g", (tool(Till().pay, group="g"),))], plugins="none") as engine:
        assert [engine.call("g.pay", [2]), engine.call("g.pay", [3])] == [2, 5]


EVIL = "__import__('os').environ.__setitem__('NEUROSCRIPT_RAN', '1')"
STYLES = {
    "google": f"Do.\n\nArgs:\n    a (int, optional): It. Defaults to {EVIL}.\n",
    "numpy": f"Do.\n\nParameters\n----------\na : int, default {EVIL}\n    It. Defaults to {EVIL}.\n",
    "sphinx": f"Do.\n\n:param a: It. Defaults to {EVIL}.\n:type a: {EVIL}\n",
}


def test_without_the_extra_a_docstring_of_another_style_is_refused() -> None:
    """With what to install; nothing is dropped silently."""
    code = (
        "import sys\nsys.modules['docstring_parser'] = None\nfrom neuroscript import SpecError, tool\n"
        f"def do(a: int) -> None: {STYLES['sphinx']!r}\n"
        "try: tool(do, group='g')\nexcept SpecError as error: print(error)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert (
        done.stdout == f"do: its docstring is not in Google style; to read other styles: {install_hint('functions')}\n"
    )


@pytest.mark.parametrize("style", STYLES)
def test_nothing_in_a_docstring_is_evaluated(style: str) -> None:
    """Neither defaults nor types: AgentHeaven's parser ran them."""
    code = (
        "import os\nfrom typing import Annotated, Literal\nfrom neuroscript import tool\n"
        f"def do(a: Annotated[Literal[{EVIL!r}], {EVIL!r}] = {EVIL!r}) -> None: ...\n"
        f"do.__doc__ = {STYLES[style]!r}\n"
        "spec = tool(do, group='g').spec\n"
        "assert spec.description == 'Do.' and 'NEUROSCRIPT_RAN' not in os.environ\n"
        "print(spec.args[0].choices[0])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == f"{EVIL}\n"
