"""Approvals, errors and modules of the functions of Smith."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import re
import sys
from pathlib import Path

import pytest
from tests.interop.smith_tools import called, engine_of, file_of, metadata, run_weather

from neuroscript import (
    Engine,
    ExecutionPolicy,
    Host,
    PluginError,
    PolicyError,
    SpecError,
    ToolFailed,
    ToolImplementation,
    ToolPolicy,
    Toolset,
    ToolSpec,
)
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.interop.smith import from_smith, load_file, load_folder, load_registry, metadata_of

# Approval


def test_sm_15_a_tool_that_is_not_dangerous_runs() -> None:
    """Without any grant; the document lets such a tool look, and do no more."""
    tool = from_smith(metadata(), run_weather)

    assert "sunny in Berlin" == called(tool, {"city": "Berlin"})
    assert (("net", "reads"), False) == (tool.policy.effects, tool.policy.requires_approval)


def test_sm_16_a_dangerous_tool_runs_only_for_a_user_who_says_so() -> None:
    """By its very name, or call by call; a pattern is not enough, and a no is a no."""
    tool = from_smith(metadata(dangerous=True), run_weather)
    asked: list[ApprovalRequest] = []

    def answered(request: ApprovalRequest) -> Approval:
        asked.append(request)
        return Approval.approve() if request.arguments["city"] == "Rome" else Approval.reject()

    for policy in (None, ExecutionPolicy(allow=("smith.*",))):
        with pytest.raises(PolicyError, match="requires approval, but there is no approver"):
            called(tool, {"city": "Berlin"}, policy)
    with pytest.raises(PolicyError) as caught:
        called(tool, {"city": "Berlin"}, ExecutionPolicy(approver=answered))
    named = ExecutionPolicy(preapproved=("smith.weather_fetcher",))
    approving = ExecutionPolicy(approver=answered)

    assert ("policy.rejected", "never") == (caught.value.code, caught.value.retry)
    assert "sunny in Berlin" == called(tool, {"city": "Berlin"}, named)
    assert "sunny in Rome" == called(tool, {"city": "Rome"}, approving)
    assert [{"city": "Berlin"}, {"city": "Rome"}] == [each.arguments for each in asked]


def test_sm_16_a_policy_of_the_host_takes_no_approval_away() -> None:
    """It says what else a tool needs."""
    policy = ToolPolicy(capabilities=("net:write:api.example",), effects=("net",))
    calm, dangerous = (from_smith(metadata(dangerous=each), run_weather, policy=policy) for each in (False, True))

    assert (policy, True) == (calm.policy, dangerous.policy.requires_approval)
    assert policy.capabilities == dangerous.policy.capabilities


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (ToolPolicy(effects=("net", "reads")), False),
        (ToolPolicy(effects=("writes",)), True),
        (ToolPolicy(effects=("deletes",)), True),
        (ToolPolicy(effects=("exec",)), True),
        (ToolPolicy(requires_approval=True), True),
        (ToolPolicy(requires_trust=True), True),
    ],
    ids=str,
)
def test_sm_17_a_tool_of_ours_that_changes_things_is_dangerous_there(policy: ToolPolicy, expected: bool) -> None:
    """And one that asks for approval or for trust."""
    tool = ToolImplementation(ToolSpec("tidy", "house"), lambda rt: None, policy)

    assert expected is metadata_of(tool)["dangerous"]


# Errors


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise ValueError('no such city')", "ValueError: no such city"),
        ("raise ValueError('a\\n b\\x1b[2J')", "ValueError: a b\\x1b[2J"),
        ("raise RuntimeError", "RuntimeError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('no such city')", "SystemExit: no such city"),
    ],
    ids=["text", "lines", "silent", "expression", "end"],
)
def test_sm_21_an_error_of_a_tool_is_told_with_its_type_and_its_text(tmp_path: Path, code: str, expected: str) -> None:
    """One line of it; the exception itself is the cause."""
    tool = load_file(file_of(tmp_path, "a.py", metadata(), f"def run_weather(city):\n    {code}\n"))
    with pytest.raises(ToolFailed) as caught:
        called(tool, {"city": "Berlin"})

    assert (f"smith.weather_fetcher: {expected}", "tool.failed", "model") == (
        str(caught.value),
        caught.value.code,
        caught.value.retry,
    )
    assert expected.partition(":")[0] == type(caught.value.__cause__).__name__


def test_sm_21_what_a_tool_says_itself_in_our_words_passes_and_an_error_without_a_text_is_its_type() -> None:
    """So is its code; a SpecError is reported like any other exception."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise ValueError

    def raising(error: Exception) -> ToolFailed:
        def run_weather(city: str) -> None:
            raise error

        with pytest.raises(ToolFailed) as caught:
            called(from_smith(metadata(), run_weather), {"city": "Rome"})
        return caught.value

    own = raising(ToolFailed("closed on Mondays", code="weather.closed", retry="later"))

    assert ("closed on Mondays", "weather.closed", "later") == (own.text, own.code, own.retry)
    assert "SpecError: a: b" == raising(SpecError("a", ["b"])).text
    assert "Broken" == raising(Broken()).text


def test_sm_21_a_coroutine_function_is_awaited_and_its_errors_are_told_alike() -> None:
    """From both worlds."""

    async def run_weather(city: str) -> str:
        await asyncio.sleep(0)
        if city == "Nowhere":
            raise ValueError("no such city")
        return city

    tool = from_smith(metadata(), run_weather)
    with engine_of(tool) as engine:
        assert "Rome" == asyncio.run(engine.acall_named(tool.name, {"city": "Rome"}))
    with pytest.raises(ToolFailed, match="ValueError: no such city"):
        called(tool, {"city": "Nowhere"})


def test_sm_21_a_secret_of_the_host_is_hidden_in_what_a_tool_says() -> None:
    """An exception is no way out for it."""

    def run_weather(city: str) -> str:
        raise ValueError(f"refused for {city}")

    tool = from_smith(metadata(), run_weather)
    with Engine(
        plugins="none", toolsets=[Toolset("smith", (tool,))], host=Host(secrets={"k": "sesame-open-42-now"})
    ) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call_named(tool.name, {"city": "sesame-open-42-now"})

    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    ("secret", "before"),
    [("sesame-open-42-now", "y" * 990), ("-----BEGIN KEY-----\nMIIabc\n  MIIdef\n-----END KEY-----\n", "")],
    ids=["far behind", "of several lines"],
)
def test_sm_21_no_part_of_a_secret_is_left_where_a_text_is_made_one_line(secret: str, before: str) -> None:
    """Nor where it is long."""

    def run_weather(city: str) -> str:
        raise ValueError(f"{before}no such key: {secret}!")

    host = Host(secrets={"k": secret})
    tool = from_smith(metadata(), run_weather)
    with Engine(plugins="none", toolsets=[Toolset("smith", (tool,))], host=host) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call_named(tool.name, {"city": "Rome"})

    assert caught.value.text.replace("[secret] !", "[secret]!") == f"ValueError: {before}no such key: [secret]!"


def test_sm_22_a_function_that_is_not_there_is_refused_when_it_is_loaded_and_the_others_are_there(
    tmp_path: Path,
) -> None:
    """With the name of the file."""
    path = file_of(tmp_path, "bad.py", metadata(function="weather", name="bad"))
    file_of(tmp_path, "good.py", metadata())
    registry = load_folder(tmp_path)

    assert ["weather_fetcher"] == registry.list_tool_names()
    assert [(f"{path}: function: the file has no function weather; did you mean run_weather?", "plugin.spec")] == [
        (str(each), each.code) for each in registry.errors
    ]


@pytest.mark.parametrize(
    "module", ["smith.tools.weather", "WEATHER", "weather.py", "Weather", "smith.tools.WEATHER.py"]
)
def test_sm_23_a_module_is_found_however_it_is_written(tmp_path: Path, module: str) -> None:
    """Without the package, without the ending, in capitals or not."""
    file_of(tmp_path, "WEATHER.py", metadata())
    (tmp_path / "registry.json").write_text(json.dumps({"tools": [metadata(module=module)]}))
    registry = load_registry(tmp_path / "registry.json")

    assert (["weather_fetcher"], (), ()) == (registry.list_tool_names(), registry.errors, registry.drift)


def test_sm_23_what_can_not_be_imported_is_a_plugin_error(tmp_path: Path) -> None:
    """An ImportError, any other, an end of the interpreter, broken Python, and no file; the cause is the original."""
    codes = {
        "a.py": (
            "import no_such_module",
            "ModuleNotFoundError: No module named 'no_such_module' (a.py, line 1)",
            "plugin.import",
        ),
        "b.py": ("\n1 / 0", "ZeroDivisionError: division by zero (b.py, line 2)", "plugin.import"),
        "c.py": ("raise SystemExit", "SystemExit (c.py, line 1)", "plugin.exit"),
        "d.py": ("def", "SyntaxError: invalid syntax (d.py, line 1)", "plugin.import"),
    }
    before = set(sys.modules)
    for name, (code, reason, kind) in codes.items():
        (tmp_path / name).write_text(code)
        with pytest.raises(PluginError) as caught:
            load_file(tmp_path / name)
        assert (f"{tmp_path}/{name}: cannot be loaded: {reason}", kind) == (str(caught.value), caught.value.code)
        assert re.split("[: ]", reason)[0] == type(caught.value.__cause__).__name__
    with pytest.raises(PluginError, match="no such Python file or package"):
        load_file(tmp_path / "z.py")

    assert set(sys.modules) <= before


def test_sm_23_the_name_of_a_module_is_given_back_when_its_tool_is_gone(tmp_path: Path) -> None:
    """And not before: its function may import late."""
    before = set(sys.modules)
    tool = load_file(file_of(tmp_path, "a.py", metadata()))
    during = set(sys.modules) - before
    assert "Rome" == called(tool, {"city": "Rome"})
    del tool
    gc.collect()

    assert 1 == len([name for name in during if name.startswith("neuroscript_plugin_a_")])
    assert not [name for name in during if name.startswith("neuroscript_plugin_a_") and name in sys.modules]


def test_sm_24_a_file_is_plain_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever imports it needs nothing of ours, and has the function."""
    (tmp_path / "smith" / "tools").mkdir(parents=True)
    file_of(tmp_path / "smith" / "tools", "WEATHER_FETCHER.py", metadata())
    monkeypatch.syspath_prepend(str(tmp_path))

    found = importlib.import_module("smith.tools.WEATHER_FETCHER").run_weather("Berlin")

    for name in ("smith.tools.WEATHER_FETCHER", "smith.tools", "smith"):
        sys.modules.pop(name, None)
    assert "Berlin" == found
