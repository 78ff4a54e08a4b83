"""Parts of an engine and of its calls: clear alternatives are accepted, and other values are refused with their name."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuroscript import (
    Engine,
    ExecutionPolicy,
    FileAudit,
    Host,
    PendingApproval,
    Recording,
    RegistryError,
    SpecError,
    SqliteAudit,
    ToolCall,
    Toolset,
    ToolSpec,
    tool,
)

tools = Toolset("shop")


@tools.tool
def order(item: str, count: int = 1) -> str:
    """Order something."""
    return f"{count} {item}"


WRAP = "turn a function into a tool with @toolset.tool, or with tool(function, group='my')"


def engine_of(**parts: Any) -> Engine:
    return Engine(plugins="none", toolsets=[tools], **parts)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: Engine(policy={}),  # type: ignore[arg-type]
            "Engine: policy must be an ExecutionPolicy, or None, not dict; "
            "write ExecutionPolicy(...) or load_policy(path)",
        ),
        (
            lambda: Engine(toolsets=[order]),  # type: ignore[list-item]
            f"Engine: toolsets[0] must be a Toolset or a ToolImplementation, not function; {WRAP}",
        ),
        (
            lambda: Engine(toolsets=[tools, "shop"], audit=5, recording={}),  # type: ignore[list-item, arg-type]
            f"Engine: toolsets[1] must be a Toolset or a ToolImplementation, not str; {WRAP}; "
            "audit must be a collection of paths or audit logs, not int; "
            "recording must be a path or a Recording, or None, not dict",
        ),
        (
            lambda: Engine(audit=[print]),  # type: ignore[list-item]
            "Engine: audit[0] must be a path, or an audit log (an object with write and close), "
            "not builtin_function_or_method",
        ),
        (
            lambda: Engine(host=Host, plugins="all"),  # type: ignore[arg-type]
            "Engine: host must be a Host, or None, not type; write Host(...); "
            "plugins must be 'installed', 'none' or a collection of names of distributions",
        ),
        (
            lambda: Engine(adapters={"datetime": str}),  # type: ignore[dict-item]
            "Engine: adapters must be a mapping of functions by class, or None, not dict",
        ),
        (
            lambda: Host(logger=print, clock=None, stdout="out.txt"),  # type: ignore[arg-type]
            "host: logger must be a logging.Logger (an object with debug, info, warning and error), or None, "
            "not builtin_function_or_method; "
            "stdout must be a text stream (an object with write), or None, not str; "
            "clock must be a function, not None",
        ),
        (
            lambda: engine_of().register(order),  # type: ignore[arg-type]
            f"register: tools must be a Toolset or a ToolImplementation, not function; {WRAP}",
        ),
        (
            lambda: engine_of().session(id=5, policy="deny"),  # type: ignore[arg-type]
            "session: id must be a string, not int; policy must be an ExecutionPolicy, or None, not str; "
            "write ExecutionPolicy(...) or load_policy(path)",
        ),
        (
            lambda: engine_of().execute("shop.order"),  # type: ignore[arg-type]
            "execute: call must be a ToolCall, or a dict of name, arguments and id, not str; "
            "neuroscript.llm.wire.read_call reads the calls of model APIs",
        ),
        (
            lambda: engine_of().execute({"function": {"name": "shop.order"}}),
            "execute: call must be a ToolCall, or a dict of name, arguments and id; "
            "neuroscript.llm.wire.read_call reads the calls of model APIs",
        ),
        (
            lambda: engine_of().execute({"name": "shop.order", "id": 5}),
            "execute: id must be a string, not int",
        ),
        (
            lambda: engine_of().execute(ToolCall("shop.order"), timeout="5"),  # type: ignore[arg-type]
            "execute: timeout must be a positive, finite number of seconds, not str",
        ),
        (
            lambda: engine_of().check(["shop.order"]),  # type: ignore[list-item]
            "check: calls[0] must be a ToolCall, or a dict of name, arguments and id, not str; "
            "neuroscript.llm.wire.read_call reads the calls of model APIs",
        ),
        (lambda: engine_of().close("now"), "close: grace must be a non-negative number of seconds, not str"),  # type: ignore[arg-type]
    ],
    ids=lambda each: each[:60] if isinstance(each, str) else "",
)
def test_wrong_part_is_refused_at_once_with_advice(make: Callable[[], object], text: str) -> None:
    """One error gives every wrong part and never a value."""
    with pytest.raises(SpecError) as caught:
        make()

    assert text == str(caught.value)


def test_one_toolset_and_single_tools_are_accepted_as_toolsets() -> None:
    """A toolset keeps its old names and its origin."""
    named = Toolset("shop", tools.tools, origin="acme")
    named.alias("shop.buy", "shop.order")
    with Engine(plugins="none", toolsets=named) as engine:
        assert "1 tea" == engine.call("shop.buy", ("tea",))
        assert "acme" == engine.infos["shop.order"].origin
    for given in (tool(order, group="more"), [tool(order, group="more")]):
        with Engine(plugins="none", toolsets=given) as engine:
            assert "2 tea" == engine.call("more.order", ("tea", 2))


def test_paths_are_opened_as_audit_logs_and_recordings(tmp_path: Path) -> None:
    """The suffix selects a database or JSON lines; the engine closes the files that it opened."""
    lines, database, calls = tmp_path / "log.jsonl", tmp_path / "log.db", tmp_path / "calls.jsonl"
    with engine_of(audit=[str(lines), database], recording=calls) as engine:
        engine.call("shop.order", ("tea",))

    kinds = [json.loads(line)["kind"] for line in lines.read_text().splitlines()]
    assert ["intent", "outcome"] == kinds
    with sqlite3.connect(database) as connection:
        assert [("shop.order", "ok")] == connection.execute("SELECT tool, code FROM calls").fetchall()
    connection.close()
    assert "1 tea" == json.loads(calls.read_text())["result"]
    assert not open_files(tmp_path)


def test_one_path_is_one_audit_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its characters are not paths."""
    monkeypatch.chdir(tmp_path)
    with engine_of(audit="log.jsonl", recording="calls.jsonl") as engine:
        engine.call("shop.order", ("tea",))

    assert ["calls.jsonl", "log.jsonl"] == sorted(each.name for each in tmp_path.iterdir())
    with engine_of(audit=FileAudit("log.jsonl"), recording=Recording("calls.jsonl")) as engine:
        engine.call("shop.order", ("tea",))

    assert 4 == len((tmp_path / "log.jsonl").read_text().splitlines())
    assert 2 == len((tmp_path / "calls.jsonl").read_text().splitlines())


def test_failed_constructor_closes_the_files_that_it_opened(tmp_path: Path) -> None:
    """The constructor opens the files before it finds that two toolsets use one name."""
    with pytest.raises(RegistryError):
        Engine(
            plugins="none",
            toolsets=[tools, tool(order, group="shop")],
            audit=[tmp_path / "log.jsonl", tmp_path / "log.db"],
            recording=tmp_path / "calls.jsonl",
        )

    assert 3 <= len([*tmp_path.iterdir()])
    assert not open_files(tmp_path)


def open_files(directory: Path) -> list[str]:
    """Return the open files of this process below a directory."""
    paths = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    return [each for each in paths if each.startswith(str(directory))]


def test_dict_is_accepted_as_a_tool_call() -> None:
    """The result is the same in sync and async code and for a check; the arguments may be JSON text."""
    with engine_of() as engine:
        call = {"name": "shop__order", "arguments": '{"item": "tea", "count": "2"}', "id": "7"}
        results = [engine.execute(call), asyncio.run(engine.aexecute(call)), engine.execute(ToolCall(**call))]

        assert [("7", "2 tea")] * 3 == [(each.id, each.value) for each in results]
        assert "1 tea" == engine.execute({"name": "shop.order", "arguments": ["tea"]}).value
        assert [True, False] == [each.allowed for each in engine.check([call, {"name": "shop.sell"}])]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({"name": 5}, "tool.not_found"),
        ({"name": "shop.order", "arguments": 5}, "arg.type"),
        ({"name": "shop.order", "arguments": "{"}, "arg.not_json"),
    ],
    ids=["a name", "arguments", "JSON"],
)
def test_invalid_dict_call_is_an_error_result(call: dict[str, Any], code: str) -> None:
    """The model receives the error, as for a ToolCall."""
    with engine_of() as engine:
        error = engine.execute(call).error

    assert error is not None
    assert (code, "model") == (error.code, error.retry)
    same = engine_of().execute(ToolCall(**call)).error
    assert str(same) == str(error)


def test_policy_is_narrowed_by_its_fields_only() -> None:
    """A misspelled field would permit what it was meant to deny."""
    with pytest.raises(SpecError) as caught:
        ExecutionPolicy().narrowed(deni=("fs.*",), within=None)

    assert str(caught.value) == (
        "execution policy: unknown field deni, within; "
        "the fields are allow, deny, grants, trusted, limits, preapproved, approver, otherwise, flow, labels, "
        "trust_textless, isolate"
    )


@pytest.mark.parametrize("path", ["a\0b", "a\ud800"], ids=["null character", "surrogate"])
@pytest.mark.parametrize(
    ("name", "parameter", "take"),
    [
        ("FileAudit", "path", lambda path: FileAudit(path)),
        ("SqliteAudit", "path", lambda path: SqliteAudit(path)),
        ("FileAudit", "path", lambda path: Engine(plugins="none", audit=path)),
        ("pending approval", "path", lambda path: PendingApproval.load(path)),
        ("load_plugins", "directory", lambda path: Engine(plugins="none").load_plugins(path)),
    ],
)
def test_invalid_file_path_is_refused(name: str, parameter: str, take: Any, path: str) -> None:
    """The operating system raises a plain ValueError without the name of a parameter."""
    with pytest.raises(SpecError) as caught:
        take(path)

    rule = "a path without null characters and lone surrogates"
    assert str(caught.value) == f"{name}: {parameter} must be {rule}"


class Float64(float):
    """A subclass of float, like numpy's."""


def test_numbers_of_subclasses_are_accepted() -> None:
    """This covers timeouts, grace and progress; a bool is still refused."""
    received: list[Any] = []
    found = Toolset("n")
    found.add(ToolSpec("t", "n"), lambda rt: rt.progress(Float64(0.5), Float64(1)))
    with Engine(plugins="none", toolsets=[found], host=Host(progress=received.append)) as engine:
        engine.call("n.t", timeout=Float64(5))
        assert engine.execute(ToolCall("n.t"), timeout=Float64(5)).ok
        with pytest.raises(SpecError) as caught:
            engine.execute(ToolCall("n.t"), timeout=True)
        assert engine.close(Float64(1)) == ()

    assert str(caught.value) == "execute: timeout must be a positive, finite number of seconds, not bool"
    assert [(each.done, each.total) for each in received] == [(0.5, 1.0)] * 2
