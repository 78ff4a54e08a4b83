"""The entry points of an engine: lookup, refusals, variables and execute."""

from __future__ import annotations

import json
import pickle
import threading
from typing import Any

import attrs
import pytest
from tests.engine.simple_engines import add, engine_of, tools_of

from neuroscript import (
    ArgSpec,
    ArgType,
    ArgumentError,
    CoercionError,
    Engine,
    PolicyError,
    RegistryError,
    Repair,
    Runtime,
    SpecError,
    ToolCall,
    ToolFailed,
    ToolNotFound,
    ToolPolicy,
    ToolResult,
    Toolset,
    ToolSpec,
    result_to_data,
)


@pytest.mark.parametrize("name", ["g.add", "G.Add", "tool.g.add", "TOOL.tool.G.ADD"])
def test_tool_is_found_under_every_spelling_of_its_name(name: str) -> None:
    """Case and a leading ``tool.`` do not matter."""
    engine = engine_of()

    assert [engine.call(name, (1, 2)), engine.call_named(name, {"a": 1, "b": 2})] == [3.0, 3.0]
    assert engine.call(name, [1, 2]) == 3.0, "the second time it is remembered"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.ad", "unknown tool g.ad; did you mean g.add?"),
        ("g__add", "unknown tool g__add; did you mean g.add?"),
        ("x" * 100, f"unknown tool {'x' * 64}…"),
        ("\x1b[2J", "unknown tool \\x1b[2J"),
        (5, "unknown tool <int>"),
        (["g.add"], "unknown tool <list>"),
    ],
)
def test_unknown_tool_is_reported_with_similar_names(name: Any, text: str) -> None:
    """Any type of name is handled."""
    with pytest.raises(ToolNotFound) as caught:
        engine_of().call(name)

    assert text == str(caught.value)
    assert ("tool.not_found", 3, "model") == (caught.value.code, caught.value.number, caught.value.retry)


class Telling(str):
    """A string that records hashing and comparisons."""

    def __hash__(self) -> int:
        raise AssertionError("hashed")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")


def test_name_of_a_str_subclass_runs_no_code() -> None:
    """It is read through the slots of the base type, like an argument."""
    assert engine_of().call(Telling("g.add"), (1, 2)) == 3.0


def test_refused_call_is_refused_before_its_arguments_are_checked() -> None:
    """The default policy allows tools without needs; a refusal reveals nothing about arguments and suggests nothing."""
    tools = Toolset("g")
    policies = {
        "trust": ToolPolicy(requires_trust=True, capabilities=("fs:read",), requires_approval=True),
        "approval": ToolPolicy(requires_approval=True),
    }
    for name, policy in policies.items():
        tools.add(ToolSpec(name, "g", (ArgSpec("path", ArgType.STRING),)), lambda rt, path: path, policy)
    engine = engine_of(tools)
    texts = {
        "trust": "g.trust: requires a trusted host",
        "approval": "g.approval: requires approval, but there is no approver",
    }

    for name, text in texts.items():
        with pytest.raises(PolicyError) as caught:
            engine.call(f"g.{name}", (1, 2, 3))

        assert text == str(caught.value)
        assert (f"policy.{name}", 1003, "host") == (caught.value.code, caught.value.number, caught.value.retry)
    with pytest.raises(ToolNotFound) as missing:
        engine.call("g.trus")
    assert missing.value.near == ()


def test_toolset_with_a_name_conflict_is_refused_as_a_whole() -> None:
    """None of its tools is registered."""
    engine = engine_of()
    second = tools_of(new=add, add=add)

    with pytest.raises(RegistryError) as caught:
        engine.register(second)

    assert "already registered: g.add" == str(caught.value)
    assert [*engine.tools] == ["g.add"]


def test_single_tool_can_be_registered_later() -> None:
    """The mapping of tools is a read-only snapshot."""
    engine = engine_of()
    before = engine.tools
    engine.register(tools_of(later=add).tools[0])

    assert [*before] == ["g.add"]
    assert [*engine.tools] == ["g.add", "g.later"]
    assert engine.call("g.later", (1, 1)) == 2.0
    with pytest.raises(TypeError):
        engine.tools["g.x"] = engine.tools["g.add"]  # type: ignore[index]


def test_remembered_spellings_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model may spell a name in thousands of ways."""
    monkeypatch.setattr("neuroscript.engine.session.MAX_CACHED_SPELLINGS", 50)
    engine = engine_of()

    for length in range(200):
        assert engine.call("tool." * length + "g.add", (1, 2)) == 3.0

    assert len(engine._positional) <= 60


def test_two_engines_share_nothing() -> None:
    """They share neither tools nor variables."""

    def put(rt: Runtime, value: int) -> None:
        rt.set_var("x", value)

    def get(rt: Runtime) -> int | None:
        return rt.get_var("x")

    one, two = engine_of(tools_of(put=put, get=get)), engine_of(tools_of(put=put, get=get))
    one.call("g.put", (1,))

    assert [one.call("g.get"), two.call("g.get")] == [1, None]


def test_invalid_engine_option_is_a_spec_error() -> None:
    for options, text in (
        ({"mode": "loose"}, "Engine: mode must be 'lax' or 'strict'"),
        ({"plugins": "some"}, "Engine: plugins must be 'installed', 'none' or a collection of names of distributions"),
    ):
        with pytest.raises(SpecError) as caught:
            Engine(**options)  # type: ignore[arg-type]

        assert text == str(caught.value)


def test_strict_mode_accepts_exact_types_only() -> None:
    """It is meant for hosts whose callers are programs."""
    with pytest.raises(ArgumentError) as caught:
        engine_of(mode="strict").call("g.add", ("1", 2))

    assert [problem.code for problem in caught.value.problems] == ["coercion.type", "coercion.type"]


# Variables and output


def test_variables_are_copied_in_and_out() -> None:
    """A tool that changes its copy does not change the variable."""
    seen: list[Any] = []

    def use(rt: Runtime) -> None:
        mine = {"list": [1]}
        rt.set_var("v", mine)
        mine["list"].append(2)
        rt.get_var("v")["list"].append(3)
        seen.append(rt.get_var("v"))
        seen.append(rt.get_var("nothing", "default"))
        seen.append(rt.update_var("v", lambda old: old["list"] + [4]))

    engine_of(tools_of(use=use)).call("g.use")

    assert seen == [{"list": [1]}, "default", [1, 4]]


def test_variable_holds_plain_values_only() -> None:
    """An instance of another class is refused, and the tool fails."""

    def use(rt: Runtime) -> None:
        rt.set_var("v", object())

    with pytest.raises(ToolFailed) as caught:
        engine_of(tools_of(use=use)).call("g.use")

    assert isinstance(caught.value.__cause__, CoercionError)


def test_update_var_is_atomic_under_threads() -> None:
    """A losing thread repeats its update."""

    def count(rt: Runtime) -> None:
        rt.update_var("n", lambda old: (old or 0) + 1)

    engine = engine_of(tools_of(count=count))
    threads = [threading.Thread(target=lambda: [engine.call("g.count") for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert engine.memory.variables.get("n", 0) == 4000


def test_println_writes_one_escaped_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Line breaks and terminal sequences in it have no effect."""

    def say(rt: Runtime) -> None:
        rt.println("two\nlines", 5, None, "\x1b[2J")

    engine_of(tools_of(say=say)).call("g.say")

    assert capsys.readouterr().out == "two\\nlines 5 None \\x1b[2J\n"


# execute


def test_execute_reports_repairs() -> None:
    """Each repair gives types and a path."""

    def total(xs: list[int], scale: float = 1.0, note: str | None = None) -> float:
        return sum(xs) * scale

    engine = engine_of(tools_of(total=total))
    result = engine.execute(ToolCall("g__total", '{"xs": [1, "2", 3.0], "scale": 2}', id="call-1"))

    assert result == attrs.evolve(
        ToolResult("call-1", "g.total", 12.0),
        repairs=(Repair("xs[1]", "str", "int"), Repair("xs[2]", "float", "int"), Repair("scale", "int", "float")),
        seconds=result.seconds,
    )
    assert result.ok
    assert result.seconds > 0


@pytest.mark.parametrize(
    ("arguments", "repairs"),
    [
        (("1", 2), [("a", "str", "float")]),
        ([1.0, None], []),
        ({"a": 1.0, "b": "null"}, [("b", "str", "None")]),
        ('["1"]', [("a", "str", "float")]),
        ({"a": 1.0, "m": '{"k": 1}'}, [("m", "str", "dict")]),
        ({"a": 1.0, "m": {"k": "1"}}, [("m['k']", "str", "int")]),
        ({"a": 1.0, "more": ["1", 2]}, [("more[0]", "str", "int")]),
        ((1.0, None, None, "1", 2.0), [("more[0]", "str", "int"), ("more[1]", "float", "int")]),
    ],
)
def test_each_conversion_is_a_repair(arguments: Any, repairs: list[tuple[str, str, str]]) -> None:
    """This covers positional, named, nested, JSON and variadic values; a correct value produces none."""
    tools = Toolset("g")
    args = (
        ArgSpec("a", ArgType.FLOAT),
        ArgSpec("b", ArgType.INT, required=False),
        ArgSpec("m", ArgType.MAP_STRING_INT, required=False),
        ArgSpec("more", ArgType.INT, required=False),
    )
    tools.add(ToolSpec("t", "g", args, variadic=True), lambda rt, *values: None)

    result = engine_of(tools).execute(ToolCall("g.t", arguments))

    assert result.error is None
    assert repairs == [(repair.where, repair.got, repair.became) for repair in result.repairs]


class Hostile(dict[Any, Any]):
    """A dict whose methods fail."""

    def fail(self, *args: object) -> Any:
        raise AssertionError("called")

    __contains__ = __getitem__ = __iter__ = __len__ = get = items = keys = values = fail


class Guarded(str):
    """A key that may not be hashed or compared after it was stored."""

    __slots__ = ("is_stored",)

    def __hash__(self) -> int:
        assert not hasattr(self, "is_stored")
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        return not hasattr(self, "is_stored") and super().__eq__(other)


def test_repairs_run_no_code_of_a_caller() -> None:
    """Maps and keys of other classes are read through the slots of the built-in types."""
    tools = Toolset("g")
    tools.add(ToolSpec("t", "g", (ArgSpec("m", ArgType.MAP_STRING_INT),)), lambda rt, m: None)
    key = Guarded("k")
    sent = Hostile({"m": {key: "1"}})
    key.is_stored = True  # type: ignore[attr-defined]

    result = engine_of(tools).execute(ToolCall("g.t", sent))

    assert (None, (Repair("m['k']", "str", "int"),)) == (result.error, result.repairs)


@pytest.mark.parametrize(
    ("call", "code", "retry", "text"),
    [
        (ToolCall("g.nothing"), "tool.not_found", "model", "unknown tool g.nothing"),
        (ToolCall("g.add", "{"), "arg.not_json", "model",
         "g.add: expected arguments as JSON, got str (line 1, column 2 is not JSON)"),
        (ToolCall("g.add", '{"a": 1, "a": 2}'), "arg.duplicate_key", "model",
         "g.add: expected arguments as JSON, got str (the JSON text contains a duplicate key)"),
        (ToolCall("g.add", "5"), "arg.type", "model", "g.add: expected a JSON object or array of arguments, got int"),
        (ToolCall("g.add", 5), "arg.type", "model", "g.add: expected a list or tuple of arguments, got int"),  # type: ignore[arg-type]
        (ToolCall("g.add", ""), "arg.missing", "model",
         "g.add: a: expected float, got nothing; b: expected float, got nothing"),
        (ToolCall(None), "tool.not_found", "model", "unknown tool <None>"),  # type: ignore[arg-type]
        (ToolCall("g.fail"), "tool.failed", "never", "g.fail: the tool failed (ZeroDivisionError)"),
    ],
)  # fmt: skip
def test_execute_never_raises_a_call_error(call: ToolCall, code: str, retry: str, text: str) -> None:
    """A model loop receives the error as data."""

    def fail() -> None:
        1 / 0  # noqa: B018

    result = engine_of(tools_of(add=add, fail=fail)).execute(call)

    assert result.error is not None
    assert (code, retry, text) == (result.error.code, result.error.retry, str(result.error))
    assert json.loads(json.dumps(result_to_data(result)))["error"]["message"] == text


def test_result_is_written_as_plain_data() -> None:
    """Bytes become base64, keys become strings, and an error includes its problems."""
    good = ToolResult(
        "1", "g.t", {"b": b"hi", "n": [1.0], 7: None}, repairs=(Repair("a", "str", "int"),), seconds=0.1234567
    )
    bad = engine_of().execute(ToolCall("g.add", ("x",), id="2"))

    assert result_to_data(good) == {
        "id": "1",
        "tool": "g.t",
        "ok": True,
        "value": {"b": {"$base64": "aGk="}, "n": [1.0], "7": None},
        "repairs": [{"where": "a", "got": "str", "became": "int"}],
        "seconds": 0.123457,
    }
    assert result_to_data(bad)["error"] == {
        "code": "arg.invalid",
        "number": 4,
        "retry": "model",
        "message": "g.add: a: expected float, got str (a string must be a decimal number, such as -1.5e3); "
        "b: expected float, got nothing",
        "problems": [
            {
                "where": "a",
                "code": "coercion.format",
                "expected": "float",
                "got": "str",
                "hint": "a string must be a decimal number, such as -1.5e3",
            },
            {"where": "b", "code": "arg.missing", "expected": "float", "got": "nothing", "hint": ""},
        ],
    }


def test_errors_can_be_pickled() -> None:
    """The copy has the same message and attributes."""
    engine = engine_of()
    for call in (ToolCall("g.add", ("x",)), ToolCall("g.nothing")):
        error = engine.execute(call).error

        copy = pickle.loads(pickle.dumps(error))

        assert (type(copy), repr(copy)) == (type(error), repr(error))
        assert (copy.code, copy.retry) == (error.code, error.retry)  # type: ignore[union-attr]
        assert copy.retry == "model"
