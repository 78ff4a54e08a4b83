"""Injected arguments: hidden from callers, with values from each source."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from tests.tools.injected_tools import SOURCES, engine_of, refused_by, sample, through_steps, with_variables

from neuroscript import (
    UNSET,
    ArgSpec,
    ArgType,
    ArgumentError,
    Example,
    ExecutionPolicy,
    Host,
    Resolver,
    Runtime,
    Secret,
    SpecError,
    State,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Value,
    Variable,
)
from neuroscript.testing import FakeRuntime

# What callers see


@pytest.mark.parametrize(
    "source",
    [Value("acme"), Variable("t"), State({"t": "acme"}, "t"), Resolver(lambda rt: "acme")],
    ids=SOURCES,
)
@pytest.mark.parametrize("name", ["find", "awaited", "letters"])
def test_an_injected_argument_is_gone_and_can_not_be_set(name: str, source: Any) -> None:
    """By name it is unknown, by position there is one too many; the text is that of any such argument."""
    tools = sample().with_injected(f"crm.{name}", tenant=source)
    with engine_of(tools, host=with_variables(t="acme")) as engine:
        spec = engine.tools[f"crm.{name}"].spec
        plain = Toolset("crm")
        plain.add(attrs.evolve(spec, examples=()), lambda rt, *values: "")
        with engine_of(plain) as other:
            for given in ({"name": "x", "tenant": "evil"}, ["evil", "x", 1, 1]):
                own = refused_by(lambda given=given: through_steps(engine, f"crm.{name}", given))
                assert str(own) == str(refused_by(lambda given=given: through_steps(other, f"crm.{name}", given)))
                assert isinstance(own, ArgumentError)

    assert "tenant" not in [arg.name for arg in spec.args]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (Value(" acme"), " acme"),
        (Variable("t"), "acme"),
        (State({"config": {"api": {"key": "k1"}}}, "config.api.key"), "k1"),
        (State(lambda: {"t": "acme"}, "t"), "acme"),
        (Resolver(lambda rt: rt.get_var("t") * 2), "acmeacme"),
        (Secret("crm"), "open sesame"),
    ],
    ids=["value", "variable", "state", "made-state", "resolver", "secret"],
)
@pytest.mark.parametrize("name", ["find", "awaited", "letters"])
def test_each_source_gives_its_value_in_every_kind_of_call(name: str, source: Any, expected: str) -> None:
    """Compiled, in steps, awaited, as a stream, by name and by position, of functions of all kinds."""
    host = Host(variables={"t": "acme"}, secrets={"crm": "open sesame"})
    policy = ExecutionPolicy(grants=["secret:read:crm"])
    wanted = {"find": [expected, "x", 10], "awaited": f"{expected}/x", "letters": [*expected, "x"]}[name]
    with engine_of(sample().with_injected(f"crm.{name}", tenant=source), host=host, policy=policy) as engine:
        full = f"crm.{name}"
        ways = [
            engine.call(full, ["x"]),
            engine.call_named(full, {"name": "x"}),
            asyncio.run(engine.acall(full, ["x"])),
            asyncio.run(engine.acall_named(full, {"name": "x"})),
            through_steps(engine, full, ["x"]),
            engine.call(full, ["x"], timeout=20),
        ]

    assert ways == [wanted] * 6


def test_examples_lose_the_argument_and_what_depended_on_it() -> None:
    """A result is not known where a value is not; an example that is about the argument goes."""
    examples = sample().with_injected("crm.find", tenant=Variable("t")).tools[0].spec.examples

    assert [(each.args, each.result, each.error) for each in examples] == [
        (("x",), UNSET, ""),
        ({"name": "x", "limit": 3}, UNSET, ""),
        (("x", 500), UNSET, "coercion.bounds"),
        ((), UNSET, "arg.missing"),
    ]


def test_what_can_not_be_injected_is_said_at_once() -> None:
    """All of it, with near names."""
    tool = sample().tools[0]

    async def later(rt: Runtime) -> str:
        return ""

    with pytest.raises(SpecError) as caught:
        tool.with_injected(tenent=Variable("t"), limit=Value(100), name="x", tenant=Resolver(later))
    assert str(caught.value) == (
        "crm.find: it has no argument tenent (did you mean tenant?); "
        "tenant: an async resolver requires a tool with an async function; "
        "name: expected a source, such as Value(…) or Variable(…), got str; "
        "limit: expected int from 1 to 99, got int out of bounds"
    )
    with pytest.raises(SpecError) as caught:
        tool.with_injected(tenant=Variable("t")).with_injected(tenant=Variable("u"))
    assert str(caught.value) == "crm.find: tenant is already injected; restore it first"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Variable(""), "Variable: name must be a non-empty string"),
        (lambda: Secret(5), "Secret: name must be a non-empty string, not int"),  # type: ignore[arg-type]
        (lambda: State({}, "a..b"), "State: key must be names separated by dots, such as config.api.key"),
        (
            lambda: State([], "a"),
            "State: mapping must be a mapping with string keys, or a function that returns one, not list",
        ),  # type: ignore[arg-type]
        (lambda: Resolver("x"), "Resolver: resolve must be a function, not str"),  # type: ignore[arg-type]
    ],
)
def test_a_source_that_can_give_nothing_can_not_be(make: Callable[[], object], text: str) -> None:
    """Said when it is made."""
    with pytest.raises(SpecError) as caught:
        make()

    assert str(caught.value) == text


def test_injected_argument_of_a_class_is_an_instance() -> None:
    """The host provides its fields; what does not fit is the host's fault, and no value is in the error."""

    @attrs.frozen
    class Point:
        x: int

    tools = Toolset("g")
    tools.add(ToolSpec("t", "g", (ArgSpec("at", ArgType.MAP, cls=Point),)), lambda rt, at: at.x)
    derived = tools.with_injected("g.t", at=Variable("at"))
    with engine_of(derived) as engine:
        assert 5 == engine.session(variables={"at": {"x": "5"}}).call("g.t")
        error = refused_by(lambda: engine.session(variables={"at": {"x": "hunter2"}}).call("g.t"))

    assert ("inject.invalid", "host") == (error.code, error.retry)
    assert "hunter2" not in str(error)


def test_nothing_injected_is_the_same_tool() -> None:
    """There is nothing to take out."""
    tool = sample().tools[0]

    assert tool.with_injected() is tool


# What the function gets


@pytest.mark.parametrize("way", [lambda e, *a: e.call(*a), through_steps], ids=["compiled", "steps"])
@pytest.mark.parametrize(
    ("source", "code", "text"),
    [
        (Variable("gone"), "inject.missing", "expected string of at least 2 characters, got nothing: the session has no variable gone"),
        (State({"config": {"x": 1}}, "config.api.key"), "inject.missing", "expected string of at least 2 characters, got nothing: the state has no config.api"),
        (State({"config": 5}, "config.api"), "inject.missing", "expected string of at least 2 characters, got nothing: the state has no config.api"),
        (Variable("number"), "inject.invalid", "expected string of at least 2 characters, got int"),
        (Variable("short"), "inject.invalid", "expected string of at least 2 characters, got 1 character"),
        (Variable("nil"), "inject.invalid", "expected string of at least 2 characters, got None"),
        (Resolver(lambda rt: UNSET), "inject.invalid", "expected string of at least 2 characters, got nothing"),
        (Resolver(lambda rt: {}["canary"]), "inject.failed", "its source failed (KeyError)"),
        (State(lambda: 1 / 0, "a"), "inject.failed", "its source failed (ZeroDivisionError)"),  # type: ignore[arg-type, return-value]
    ],
    ids=lambda each: getattr(each, "name", None) or str(each)[:20],
)  # fmt: skip
def test_what_the_host_owes_is_the_hosts_fault(way: Any, source: Any, code: str, text: str) -> None:
    """The error names the argument and says that the caller cannot set it; it contains no value."""
    host = with_variables(number=123456789, short="ÿ", nil=None)
    with engine_of(sample().with_injected("crm.find", tenant=source), host=host) as engine:
        error = refused_by(lambda: way(engine, "crm.find", ["x"]))

    assert str(error) == f"crm.find: tenant: {text} (the host supplies this argument)"
    assert (type(error), error.code, error.retry) == (ToolFailed, code, "host")


def test_all_problems_are_listed_without_the_keys_of_the_host() -> None:
    """The keys in a value are the host's too."""
    tools = Toolset("g")
    arguments = (ArgSpec("a", ArgType.MAP_STRING_INT), ArgSpec("b", ArgType.SLICE_INT), ArgSpec("c", ArgType.BOOL))
    tools.add(ToolSpec("t", "g", arguments), lambda rt, a, b, c: 1)
    made = tools.with_injected("g.t", a=Variable("a"), b=Variable("b"), c=Variable("c"))
    with engine_of(made, host=with_variables(a={"canary": "x"}, b=["y"])) as engine:
        error = refused_by(lambda: engine.call("g.t"))

    assert str(error) == (
        "g.t: a: expected int, got str (the host supplies this argument); "
        "b: expected int, got str (the host supplies this argument); "
        "c: expected bool, got nothing: the session has no variable c (the host supplies this argument)"
    )
    assert (error.code, error.retry) == ("inject.missing", "host")


def test_a_value_is_coerced_as_an_argument_is() -> None:
    """And one that is not given has its default."""
    tools = sample().with_injected("crm.find", limit=Variable("limit"))
    for given, got in (("7", 7), (7.0, 7), (None, 10)):
        with engine_of(tools, host=with_variables(limit=given)) as engine:
            assert engine.call("crm.find", ["aa", "x"]) == ["aa", "x", got]
    with engine_of(sample().with_injected("crm.find", limit=Resolver(lambda rt: UNSET))) as engine:
        assert engine.call("crm.find", ["aa", "x"]) == ["aa", "x", 10]


def test_a_state_is_looked_up_at_each_call() -> None:
    """Changed within, or replaced as a whole: the next call has what is there then."""

    @attrs.define
    class Handle:
        state: dict[str, Any]

    handle = Handle({"user": {"id": "first"}})
    tools = sample().with_injected("crm.find", tenant=State(lambda: handle.state, "user.id"))
    fixed = sample().with_injected("crm.find", tenant=State(handle.state, "user.id"))
    with engine_of(tools) as engine, engine_of(fixed) as other:
        assert engine.call("crm.find", ["x"])[0] == other.call("crm.find", ["x"])[0] == "first"
        handle.state["user"]["id"] = "second"
        assert engine.call("crm.find", ["x"])[0] == other.call("crm.find", ["x"])[0] == "second"
        handle.state = {"user": {"id": "third"}}
        assert engine.call("crm.find", ["x"])[0] == "third"
        del handle.state["user"]
        error = refused_by(lambda: engine.call("crm.find", ["x"]))
        assert (error.code, error.retry) == ("inject.missing", "host")


def test_what_a_tool_gets_is_not_what_the_host_holds() -> None:
    """A tool that changes it changes nothing for the next one, nor in the state."""
    tools = Toolset("g")
    spec = ToolSpec("t", "g", (ArgSpec("items", ArgType.SLICE_ANY),))
    tools.add(spec, lambda rt, items: items.append(1) or items[0].append(2) or len(items))
    state = {"items": [[0]]}
    with engine_of(tools.with_injected("g.t", items=State(state, "items"))) as engine:
        assert [engine.call("g.t"), engine.call("g.t")] == [2, 2]

    assert state == {"items": [[0]]}


def test_a_resolver_may_be_awaited_for_a_coroutine_tool() -> None:
    """A tool that is not async does not accept a coroutine, and the coroutine is closed."""

    async def later(rt: Runtime) -> str:
        await asyncio.sleep(0)
        return str(rt.get_var("t"))

    async def failing(rt: Runtime) -> str:
        raise ValueError("canary")

    host = with_variables(t="acme")
    for source in (Resolver(later), Resolver(lambda rt: later(rt)), Resolver(lambda rt: "acme")):
        with engine_of(sample().with_injected("crm.awaited", tenant=source), host=host) as engine:
            assert engine.call("crm.awaited", ["x"]) == "acme/x"
            assert asyncio.run(engine.acall("crm.awaited", ["x"])) == "acme/x"
    with engine_of(sample().with_injected("crm.awaited", tenant=Resolver(failing))) as engine:
        error = refused_by(lambda: engine.call("crm.awaited", ["x"]))
        assert str(error) == "crm.awaited: tenant: its source failed (ValueError) (the host supplies this argument)"
    with engine_of(sample().with_injected("crm.find", tenant=Resolver(lambda rt: later(rt)))) as engine:
        error = refused_by(lambda: engine.call("crm.find", ["x"]))
        assert (
            str(error)
            == "crm.find: tenant: expected string of at least 2 characters, got coroutine (the host supplies this argument)"
        )


def test_further_values_can_come_from_the_host() -> None:
    """The tool is not variadic then; a single one may stand without a list."""
    tools = Toolset("g")
    spec = ToolSpec("join", "g", (ArgSpec("sep", ArgType.STRING), ArgSpec("parts", ArgType.STRING)), variadic=True,
                    return_type=ArgType.STRING, examples=(Example(("-", "a", "b"), "a-b"),))  # fmt: skip
    tools.add(spec, lambda rt, sep, *parts: sep.join(parts))

    with engine_of(tools.with_injected("g.join", parts=Variable("p")), host=with_variables(p=["a", "b"])) as engine:
        assert engine.call("g.join", ["-"]) == "a-b"
        assert [each.args for each in engine.tools["g.join"].spec.examples] == [("-",)]
    with engine_of(tools.with_injected("g.join", sep=Variable("p")), host=with_variables(p="+")) as engine:
        assert engine.call("g.join", ["a", "b"]) == "a+b"
    with engine_of(tools.with_injected("g.join", parts=Variable("p")), host=with_variables(p=[])) as engine:
        error = refused_by(lambda: engine.call("g.join", ["-"]))
        assert str(error) == "g.join: parts: at least one value is required (the host supplies this argument)"


# Whose values they are


def test_two_sessions_at_once_never_see_each_others_variables() -> None:
    """Each call has those of its own session, however many threads are at it."""
    tools = sample().with_injected("crm.find", tenant=Variable("t"))
    wrong: list[object] = []
    with engine_of(tools) as engine:
        start = threading.Barrier(4)

        def many(tenant: str) -> None:
            session = engine.session(variables={"t": tenant})
            start.wait()
            for count in range(300):
                name = f"n{count}"
                if session.call("crm.find", [name]) != [tenant, name, 10]:
                    wrong.append(tenant)

        threads = [threading.Thread(target=many, args=(f"tenant{index}",)) for index in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    assert wrong == []


def test_calls_within_have_the_hosts_values_too() -> None:
    """The tool that calls can set them no more than anybody else, and a variable that it sets is seen."""
    tools = sample().with_injected("crm.find", tenant=Variable("t"))

    @tools.tool()
    def outer(rt: Runtime, tenant: str) -> list[Any]:
        """Call the other one."""
        first = rt.call_tool("crm.find", ["x"])
        rt.set_var("t", tenant)
        return [first, rt.call_tool_named("crm.find", {"name": "y"})]

    @tools.tool()
    def cheat(rt: Runtime) -> list[Any]:
        """Try to set what is the host's."""
        found: list[Any] = rt.call_tool_named("crm.find", {"name": "y", "tenant": "evil"})
        return found

    @tools.tool()
    def without(rt: Runtime) -> list[Any]:
        """Call it where the host gives nothing."""
        found: list[Any] = rt.call_tool("crm.find", ["x"])
        return found

    with engine_of(tools, host=with_variables(t="acme")) as engine:
        assert engine.call("crm.outer", ["other"]) == [["acme", "x", 10], ["other", "y", 10]]
        error = refused_by(lambda: engine.call("crm.cheat"))
        assert (error.code, error.retry) == ("tool.failed", "never")
    with engine_of(tools) as engine:
        error = refused_by(lambda: engine.call("crm.without"))
        assert str(error) == "crm.without: its call of crm.find failed (inject.missing)"


# Making and unmaking


def test_restoring_gives_the_very_tool_again() -> None:
    """Whatever the order in which arguments were taken out."""
    tool = sample().tools[0]
    both = tool.with_injected(tenant=Variable("t"), limit=Value(3))
    after = tool.with_injected(limit=Value(3)).with_injected(tenant=Variable("t"))

    for made in (both, after):
        assert made.injected == {"tenant": Variable("t"), "limit": Value(3)}
        assert made.with_exposed("tenant", "limit") is tool
        half = made.with_exposed("tenant")
        assert half.injected == {"limit": Value(3)}
        assert half.spec == tool.with_injected(limit=Value(3)).spec
        assert half.with_exposed("limit") is tool
    assert tool.injected == {}
    tools = sample()
    assert [*tools.with_injected("crm.find", tenant=Variable("t")).with_exposed("crm.find", "tenant")] == [*tools]


def test_what_was_changed_since_then_stays() -> None:
    """A name, words, and needs: of those that name the argument none is lost."""
    tools = Toolset("net")
    spec = ToolSpec("get", "net", (ArgSpec("host", ArgType.STRING), ArgSpec("path", ArgType.STRING)))
    tools.add(spec, lambda rt, host, path: host + path, ToolPolicy(capabilities=("net:read:{host}",)))
    made = (
        tools.with_injected("net.get", host=Variable("host"))
        .renamed({"net.get": "load"})
        .with_docs("*", description="Load it.")
        .with_policy("*", requires_trust=True, capabilities=("net:read:*.example.com",))
    )
    tool = made.with_exposed("net.load", "host").tools[0]

    assert (tool.name, tool.spec.description, tool.policy.requires_trust) == ("net.load", "Load it.", True)
    assert [arg.name for arg in tool.spec.args] == ["host", "path"]
    assert tool.policy.capabilities == ("net:read:*.example.com", "net:read:{host}")
    assert tool.func is tools.tools[0].func


def test_only_what_is_injected_can_be_restored() -> None:
    """By its name, or a near one is said."""
    tool = sample().tools[0].with_injected(tenant=Variable("t"))
    for names, text in (
        (("tenent",), "crm.find: tenent is not injected (did you mean tenant?)"),
        (("limit", "tenant"), "crm.find: limit is not injected"),
        ((), "crm.find: name the arguments to restore"),
    ):
        with pytest.raises(SpecError) as caught:
            tool.with_exposed(*names)
        assert str(caught.value) == text


def test_tools_made_of_one_do_not_know_of_each_other() -> None:
    """Each has its own sources; the tool that they were made of is as it was."""
    tools = sample()
    states = [{"t": "one"}, {"t": "two"}]
    made = [tools.with_injected("crm.find", tenant=State(state, "t")) for state in states]
    with engine_of(made[0]) as first, engine_of(made[1]) as second, engine_of(tools) as plain:
        states[0]["t"] = "other"
        assert first.call("crm.find", ["x"])[0] == "other"
        assert second.call("crm.find", ["x"])[0] == "two"
        assert plain.call("crm.find", ["own", "x"])[0] == "own"


def test_a_tool_that_is_injected_is_tested_with_a_script() -> None:
    """Its function takes the Runtime and what callers give."""
    tool = sample().tools[0].with_injected(tenant=Variable("t"))
    with FakeRuntime(variables={"t": "acme"}) as rt:
        assert tool.func(rt, "x", 3) == ["acme", "x", 3]
