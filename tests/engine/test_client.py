"""Tools as attributes of a client: every call is a call of the session, whatever the tools and arguments are named."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    Engine,
    ExecutionPolicy,
    MemoryAudit,
    PolicyError,
    ToolImplementation,
    ToolNotFound,
    ToolPolicy,
    ToolSpec,
    aclient,
    client,
)


def tool(name: str, *args: ArgSpec, policy: ToolPolicy | None = None, **options: Any) -> ToolImplementation:
    """Return a tool that returns its arguments as a list, or yields them as a stream."""
    group, _, last = name.rpartition(".")
    spec = ToolSpec(last, group, args, return_type=ArgType.ANY, return_nullable=True, **options)
    func = (lambda rt, *values: iter(values)) if spec.stream else (lambda rt, *values: [*values])
    return ToolImplementation(spec, func, policy or ToolPolicy())


NUMBER = ArgSpec("number", ArgType.INT)
WORDS = tuple(ArgSpec(name, ArgType.STRING, required=False, default=name) for name in ("from", "user-id", "self", "x"))

TOOLS = (
    tool("a.one", NUMBER),
    tool("a.b", NUMBER),
    tool("a.b.c", NUMBER),
    tool("a.import", NUMBER),
    tool("a.import_", NUMBER, ArgSpec("more", ArgType.INT)),
    tool("class.words", *WORDS),
    tool("a.further", ArgSpec("sep", ArgType.STRING), ArgSpec("parts", ArgType.STRING, required=False), variadic=True),
    tool("a.items", NUMBER, ArgSpec("more", ArgType.INT, default=9), stream=True),
    tool("a.secret", NUMBER, policy=ToolPolicy(capabilities=("fs:read:x",))),
)


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine with these tools."""
    with engine_of() as engine:
        yield engine


def engine_of(**options: Any) -> Engine:
    """Return an engine with these tools."""
    engine = Engine(plugins="none", policy=ExecutionPolicy(deny=("a.one",)), **options)
    for each in TOOLS:
        engine.register(each)
    return engine


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(lambda tools: tools.a.b(1), [1], id="a tool that is a group too"),
        pytest.param(lambda tools: tools.a.b.c("2"), [2], id="a tool within it"),
        pytest.param(lambda tools: tools.a.b.c(number=2), [2], id="by name"),
        pytest.param(lambda tools: tools.a.import_(3), [3], id="a keyword"),
        pytest.param(lambda tools: tools.a.import__(3, more=4), [3, 4], id="a name like that of a keyword"),
        pytest.param(lambda tools: getattr(tools.a, "import")(3), [3], id="a keyword as it is"),
        pytest.param(lambda tools: tools.class_.words(), ["from", "user-id", "self", "x"], id="defaults"),
        pytest.param(
            lambda tools: tools.class_.words("1", user_id="2", self="3", x="4"), ["1", "2", "3", "4"], id="odd names"
        ),
        pytest.param(
            lambda tools: tools.class_.words(from_="1"), ["1", "user-id", "self", "x"], id="a keyword by name"
        ),
        pytest.param(
            lambda tools: tools.class_.words(**{"from": "1", "user-id": "2"}), ["1", "2", "self", "x"], id="own names"
        ),
        pytest.param(lambda tools: tools.a.further("-"), ["-"], id="none further"),
        pytest.param(lambda tools: tools.a.further("-", "b", "c"), ["-", "b", "c"], id="further ones"),
        pytest.param(lambda tools: tools.a.further("-", parts=["b", "c"]), ["-", "b", "c"], id="further ones by name"),
        pytest.param(lambda tools: list(tools.a.items(1)), [1, 9], id="a stream"),
        pytest.param(lambda tools: list(tools.a.items(1, more=2)), [1, 2], id="a stream by name"),
    ],
)
def test_tool_is_called_like_a_function(engine: Engine, call: Any, expected: list[Any]) -> None:
    """Positional and named arguments work, for an engine and a session."""
    assert call(client(engine)) == expected
    assert call(client(engine.session())) == expected


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        pytest.param(
            lambda tools: tools.a.b(1, number=2), ArgumentError,
            "a.b: number: expected one value, got 2 values", id="twice",
        ),
        pytest.param(
            lambda tools: tools.class_.words(**{"from": "1", "from_": "2"}), ArgumentError,
            "class.words: from: expected one value, got 2 values", id="twice by name",
        ),
        pytest.param(
            lambda tools: tools.a.b(1, 2, number=2), ArgumentError,
            "a.b: expected at most 1 arguments, got 2", id="too many",
        ),
        pytest.param(
            lambda tools: tools.a.b(numbr=2), ArgumentError,
            "a.b: number: expected int, got nothing; "
            "numbr: expected only number, got an unknown name of type int (did you mean number?)", id="an unknown name",
        ),
        pytest.param(lambda tools: tools.a.bb(1), ToolNotFound, "unknown tool a.bb; did you mean a.b?", id="an unknown tool"),
        pytest.param(lambda tools: tools(1), ToolNotFound, "unknown tool ", id="no tool at all"),
        pytest.param(lambda tools: tools.a.one("x", nonsense=1), PolicyError, None, id="a refused tool tells nothing"),
        pytest.param(lambda tools: tools.a.secret(1), PolicyError, None, id="a need"),
    ],
)  # fmt: skip
def test_refused_call_raises_the_error_of_the_session(
    engine: Engine, call: Any, error: type[Exception], text: str | None
) -> None:
    with pytest.raises(error) as caught:
        call(client(engine))

    assert text is None or str(caught.value) == text


def test_every_call_is_audited_as_a_session_call() -> None:
    """A client cannot bypass the pipeline, and each call leaves one record."""
    audit = MemoryAudit()
    with engine_of(audit=audit) as engine:
        session = engine.session(id="alice")
        client(session).a.b(1)
        list(client(session).a.items(number=1))
        with pytest.raises(PolicyError):
            client(session).a.one(1)

    assert [(each.kind, each.tool, each.session) for each in audit.records] == [
        ("outcome", "a.b", "alice"),
        ("outcome", "a.items", "alice"),
        ("refused", "a.one", "alice"),
    ]


def test_awaited_calls_give_the_same(engine: Engine) -> None:
    """Results, streams and errors are equal."""

    async def main() -> list[Any]:
        tools = aclient(engine)
        items: AsyncIterator[Any] = tools.a.items(1, more=2)
        with pytest.raises(ToolNotFound):
            await tools.a.nothing()
        return [await tools.a.b(1), await tools.a.b(number="2"), [item async for item in items]]

    assert asyncio.run(main()) == [[1], [2], [1, 2]]


def test_dir_lists_callable_tools(engine: Engine) -> None:
    """Shell completion omits refused tools and shows valid identifiers."""
    tools = client(engine)

    assert dir(tools) == ["a", "class_"]
    assert dir(tools.a) == ["b", "further", "import_", "import__", "items", "secret"]
    assert (repr(tools), repr(tools.a.b)) == ("<tools>", "<tools a.b>")


@pytest.mark.parametrize("name", ["_x", "__wrapped__", "_ipython_display_", "__deepcopy__"])
def test_unknown_names_are_not_attributes(engine: Engine, name: str) -> None:
    """Code that probes for special attributes must not call a tool."""
    assert not hasattr(client(engine), name)


def test_changed_tool_is_called_in_its_current_form(engine: Engine) -> None:
    """The client caches nothing."""
    held = client(engine).later.tool
    with pytest.raises(ToolNotFound):
        held(1)
    engine.register(tool("later.tool", NUMBER))

    assert held(1) == [1]
