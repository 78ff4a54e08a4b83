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
from tests.interop.smith_tools import call_tool, engine_of, metadata, run_weather, write_tool

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
from neuroscript.policy.labels import ALL_SINKS, ALL_SOURCES, sinks_of, sources_of

# Approval


def test_sm_15_a_tool_that_is_not_dangerous_needs_no_approval() -> None:
    """Nor a grant; in the document such a tool only reads."""
    tool = from_smith(metadata(), run_weather)

    assert "sunny in Berlin" == call_tool(tool, {"city": "Berlin"})
    assert (("net", "reads"), False) == (tool.policy.effects, tool.policy.requires_approval)
    assert (("private", "untrusted"), ("outside",)) == (sources_of(tool.policy), sinks_of(tool.policy))


def test_sm_16_a_dangerous_tool_needs_an_approval() -> None:
    """By its full name in advance or for each call; a pattern is not enough."""
    tool = from_smith(metadata(dangerous=True), run_weather)
    requests: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Approval:
        requests.append(request)
        return Approval.approve() if request.arguments["city"] == "Rome" else Approval.reject()

    for policy in (None, ExecutionPolicy(allow=("smith.*",))):
        with pytest.raises(PolicyError, match="requires approval, but there is no approver"):
            call_tool(tool, {"city": "Berlin"}, policy)
    with pytest.raises(PolicyError) as caught:
        call_tool(tool, {"city": "Berlin"}, ExecutionPolicy(approver=approve))
    named = ExecutionPolicy(preapproved=("smith.weather_fetcher",))
    approving = ExecutionPolicy(approver=approve)

    assert ("policy.rejected", "never") == (caught.value.code, caught.value.retry)
    assert (ALL_SOURCES, ALL_SINKS) == (tool.policy.sources, tool.policy.sinks)
    assert "sunny in Berlin" == call_tool(tool, {"city": "Berlin"}, named)
    assert "sunny in Rome" == call_tool(tool, {"city": "Rome"}, approving)
    assert [{"city": "Berlin"}, {"city": "Rome"}] == [each.arguments for each in requests]


def test_sm_16_a_policy_of_the_host_does_not_remove_the_approval() -> None:
    """It adds other needs."""
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
def test_sm_17_our_tools_with_side_effects_are_dangerous_in_smith(policy: ToolPolicy, expected: bool) -> None:
    """Tools that require approval or trust too."""
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
def test_sm_21_an_exception_becomes_an_error_with_its_type_and_message(
    tmp_path: Path, code: str, expected: str
) -> None:
    """On one line; the exception itself is the cause."""
    tool = load_file(write_tool(tmp_path, "a.py", metadata(), f"def run_weather(city):\n    {code}\n"))
    with pytest.raises(ToolFailed) as caught:
        call_tool(tool, {"city": "Berlin"})

    assert (f"smith.weather_fetcher: {expected}", "tool.failed", "model") == (
        str(caught.value),
        caught.value.code,
        caught.value.retry,
    )
    assert expected.partition(":")[0] == type(caught.value.__cause__).__name__


def test_sm_21_a_tool_failure_is_unchanged_and_an_exception_without_a_message_is_its_type() -> None:
    """Including its code; a SpecError is reported like any other exception."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise ValueError

    def raising(error: Exception) -> ToolFailed:
        def run_weather(city: str) -> None:
            raise error

        with pytest.raises(ToolFailed) as caught:
            call_tool(from_smith(metadata(), run_weather), {"city": "Rome"})
        return caught.value

    own = raising(ToolFailed("closed on Mondays", code="weather.closed", retry="later"))

    assert ("closed on Mondays", "weather.closed", "later") == (own.text, own.code, own.retry)
    assert "SpecError: a: b" == raising(SpecError("a", ["b"])).text
    assert "Broken" == raising(Broken()).text


def test_sm_21_a_coroutine_function_is_awaited() -> None:
    """From sync and async code; its errors are the same."""

    async def run_weather(city: str) -> str:
        await asyncio.sleep(0)
        if city == "Nowhere":
            raise ValueError("no such city")
        return city

    tool = from_smith(metadata(), run_weather)
    with engine_of(tool) as engine:
        assert "Rome" == asyncio.run(engine.acall_named(tool.name, {"city": "Rome"}))
    with pytest.raises(ToolFailed, match="ValueError: no such city"):
        call_tool(tool, {"city": "Nowhere"})


def test_sm_21_a_secret_is_redacted_in_an_error() -> None:
    """An exception cannot reveal it."""

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
def test_sm_21_a_secret_is_redacted_before_a_message_is_shortened(secret: str, before: str) -> None:
    """Also if it has several lines."""

    def run_weather(city: str) -> str:
        raise ValueError(f"{before}no such key: {secret}!")

    host = Host(secrets={"k": secret})
    tool = from_smith(metadata(), run_weather)
    with Engine(plugins="none", toolsets=[Toolset("smith", (tool,))], host=host) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call_named(tool.name, {"city": "Rome"})

    assert caught.value.text.replace("[secret] !", "[secret]!") == f"ValueError: {before}no such key: [secret]!"


def test_sm_22_a_missing_function_is_refused_and_other_files_are_loaded(
    tmp_path: Path,
) -> None:
    """The error names the file."""
    path = write_tool(tmp_path, "bad.py", metadata(function="weather", name="bad"))
    write_tool(tmp_path, "good.py", metadata())
    registry = load_folder(tmp_path)

    assert ["weather_fetcher"] == registry.list_tool_names()
    assert [(f"{path}: function: the file has no function weather; did you mean run_weather?", "plugin.spec")] == [
        (str(each), each.code) for each in registry.errors
    ]


@pytest.mark.parametrize(
    "module", ["smith.tools.weather", "WEATHER", "weather.py", "Weather", "smith.tools.WEATHER.py"]
)
def test_sm_23_a_module_may_be_written_in_several_ways(tmp_path: Path, module: str) -> None:
    """Without the package, without the suffix, in any case."""
    write_tool(tmp_path, "WEATHER.py", metadata())
    (tmp_path / "registry.json").write_text(json.dumps({"tools": [metadata(module=module)]}))
    registry = load_registry(tmp_path / "registry.json")

    assert (["weather_fetcher"], (), ()) == (registry.list_tool_names(), registry.errors, registry.drift)


def test_sm_23_a_file_that_cannot_be_imported_is_a_plugin_error(tmp_path: Path) -> None:
    """For any exception, invalid syntax, or a missing file; the cause is the original."""
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


def test_sm_23_a_module_is_released_with_its_tool(tmp_path: Path) -> None:
    """Not earlier, because its function may import lazily."""
    before = set(sys.modules)
    tool = load_file(write_tool(tmp_path, "a.py", metadata()))
    during = set(sys.modules) - before
    assert "Rome" == call_tool(tool, {"city": "Rome"})
    del tool
    gc.collect()

    assert 1 == len([name for name in during if name.startswith("neuroscript_plugin_a_")])
    assert not [name for name in during if name.startswith("neuroscript_plugin_a_") and name in sys.modules]


def test_sm_24_a_file_is_plain_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be imported without this library."""
    (tmp_path / "smith" / "tools").mkdir(parents=True)
    write_tool(tmp_path / "smith" / "tools", "WEATHER_FETCHER.py", metadata())
    monkeypatch.syspath_prepend(str(tmp_path))

    found = importlib.import_module("smith.tools.WEATHER_FETCHER").run_weather("Berlin")

    for name in ("smith.tools.WEATHER_FETCHER", "smith.tools", "smith"):
        sys.modules.pop(name, None)
    assert "Berlin" == found
