"""Folders, registry files and the registry of Smith."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.interop.smith_tools import Scripted, call_tool, metadata, node, plan, tools, write_tool

from neuroscript import (
    ArgSpec,
    Engine,
    PluginError,
    ReturnError,
    SpecError,
    ToolFailed,
    ToolImplementation,
    Toolset,
    ToolSpec,
)
from neuroscript.interop.smith import (
    ToolsRegistry,
    from_smith,
    load_file,
    load_folder,
    load_registry,
    metadata_of,
    plan_task,
    problems_of,
    write_registry,
)
from neuroscript.interop.smith.tool_files import ToolFiles


def test_sm_27_entries_without_a_module_are_found_by_their_name(tmp_path: Path) -> None:
    """As in the document, where authors add METADATA by hand."""
    write_tool(tmp_path, "WEATHER_FETCHER.py", metadata())
    (tmp_path / "registry.json").write_text(json.dumps({"tools": [metadata()]}))

    assert ["weather_fetcher"] == load_registry(tmp_path / "registry.json").list_tool_names()


def test_sm_27_a_registry_can_be_written_and_loaded(tmp_path: Path) -> None:
    """It has a version, auto_generated, and METADATA with a module for each file."""
    write_tool(tmp_path, "b.py", metadata(notes=["é"]))
    write_tool(tmp_path, "a.py", metadata(name="other", dangerous=True))
    write_registry(tmp_path / "registry.json", load_folder(tmp_path))
    written = json.loads((tmp_path / "registry.json").read_text())
    registry = load_registry(tmp_path / "registry.json")

    assert {
        "version": "1.0",
        "auto_generated": True,
        "tools": [metadata(name="other", dangerous=True, module="a"), metadata(notes=["é"], module="b")],
    } == written
    assert (written["tools"], (), ()) == (registry.get_tools_registry(), registry.errors, registry.drift)


def test_sm_27_differences_between_files_and_registry_are_reported(tmp_path: Path) -> None:
    """With their paths; the file applies."""
    write_tool(tmp_path, "a.py", metadata(notes=[1, 2], domain="web"))
    write_tool(tmp_path, "b.py", metadata(name="unlisted"))
    listed = metadata(module="a", notes=[1, 2, 3], output_type="text", dangerous=0)
    listed["parameters"] = {"type": "object", "properties": {"city": {"type": "number"}}, "required": []}
    (tmp_path / "registry.json").write_text(json.dumps({"tools": [listed, metadata(name="gone", module="gone")]}))
    registry = load_registry(tmp_path / "registry.json")
    same = "differs between the file and the registry"

    assert (
        "b.py: is not in the registry",
        f"weather_fetcher: dangerous: {same}",
        f"weather_fetcher: parameters['properties']['city']['type']: {same}",
        "weather_fetcher: parameters['required'][0]: is only in the file",
        "weather_fetcher: notes[2]: is only in the registry",
        "weather_fetcher: domain: is only in the file",
        "weather_fetcher: output_type: is only in the registry",
    ) == registry.drift
    assert [f"{tmp_path}/registry.json: tools[1]['module']: gone matches no file in the folder"] == [
        *map(str, registry.errors)
    ]
    assert "string" == registry.get_tool_by_name("weather_fetcher")["parameters"]["properties"]["city"]["type"]


@pytest.mark.parametrize("in_file", [True, False])
def test_sm_27_a_tool_is_dangerous_if_its_file_or_the_registry_says_so(tmp_path: Path, in_file: bool) -> None:
    """A difference never removes an approval."""
    write_tool(tmp_path, "a.py", metadata(dangerous=in_file))
    (tmp_path / "registry.json").write_text(json.dumps({"tools": [metadata(module="a", dangerous=not in_file)]}))
    registry = load_registry(tmp_path / "registry.json")

    assert [True] == [tool.policy.requires_approval for tool in registry.toolset]
    assert registry.get_tool_by_name("weather_fetcher")["dangerous"]
    assert ("weather_fetcher: dangerous: differs between the file and the registry",) == registry.drift


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "line 1, column 2 is not JSON"),
        ("[]", "expected an object with tools, got list"),
        ("{}", "tools: expected a list of METADATA, got nothing"),
        (
            '{"tools": [5, {"name": ""}, {"name": "a", "module": 5}]}',
            "tools[0]: expected METADATA, got int; tools[1]['name']: expected the name of the tool, got an empty string; "
            "tools[2]['module']: expected the name of a file, got int",
        ),
    ],
    ids=["broken", "list", "empty", "entries"],
)
def test_sm_27_an_invalid_registry_is_refused_with_every_problem(tmp_path: Path, text: str, expected: str) -> None:
    """Nothing is imported."""
    path = tmp_path / "registry.json"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        load_registry(path)

    assert f"{path}: {expected}" == str(caught.value)


def test_sm_27_a_module_cannot_leave_its_folder(tmp_path: Path) -> None:
    """It must be the name of a file in the folder; unlisted files are not imported."""
    inside = tmp_path / "inside"
    inside.mkdir()
    write_tool(tmp_path, "evil.py", metadata(), "raise SystemExit\n")
    write_tool(inside, "unlisted.py", metadata(), "raise SystemExit\n")
    (inside / "registry.json").write_text(json.dumps({"tools": [metadata(module="../evil")]}))
    registry = load_registry(inside / "registry.json")

    assert ([], 1) == (registry.list_tool_names(), len(registry.errors))
    assert ("unlisted.py: is not in the registry",) == registry.drift


@pytest.mark.parametrize(
    ("raised", "expected", "code"),
    [
        ("RuntimeError", "cannot be loaded: RuntimeError (bad.py, line 3)", "plugin.import"),
        ("SystemExit", "cannot be loaded: SystemExit (bad.py, line 3)", "plugin.exit"),
    ],
)
def test_sm_27_metadata_that_raise_do_not_affect_other_files(
    tmp_path: Path, raised: str, expected: str, code: str
) -> None:
    """The module is removed."""
    bad, modules = tmp_path / "bad.py", set(sys.modules)
    bad.write_text(f"class Odd(dict):\n    def get(self, *key):\n        raise {raised}\nMETADATA = Odd()\n")
    write_tool(tmp_path, "good.py", metadata())
    registry = load_folder(tmp_path)
    added = {each for each in set(sys.modules) - modules if "_bad_" in each}

    assert (["weather_fetcher"], set()) == (registry.list_tool_names(), added)
    assert [(f"{bad}: {expected}", code)] == [(str(each), each.code) for each in registry.errors]


def test_sm_27_a_file_that_other_users_can_change_is_not_imported(tmp_path: Path) -> None:
    """As in every folder of plugins."""
    path = write_tool(tmp_path, "a.py", metadata(), "raise SystemExit\n")
    path.chmod(0o666)
    registry = load_folder(tmp_path)

    assert ([], ["plugin.unsafe"]) == (registry.list_tool_names(), [each.code for each in registry.errors])


def test_sm_27_entries_that_are_not_files_are_reported(tmp_path: Path) -> None:
    """Broken links, recursive links, and pipes, which are not opened."""
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "knot.py").symlink_to(tmp_path / "knot.py")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    reason = "no such Python file or package (a directory with __init__.py)"

    assert [f"{tmp_path}/{name}.py: {reason}" for name in ("gone", "knot", "pipe")] == [
        *map(str, load_folder(tmp_path).errors)
    ]


def test_sm_27_a_file_of_two_entries_is_refused(tmp_path: Path) -> None:
    """It is not imported."""
    write_tool(tmp_path, "a.py", metadata(), "raise SystemExit\n")
    write_tool(tmp_path, "b.py", metadata(name="b"))
    entries = [metadata(module="a"), metadata(name="b"), metadata(name="other", module="A.py")]
    (tmp_path / "registry.json").write_text(json.dumps({"tools": entries}))
    registry = load_registry(tmp_path / "registry.json")

    assert (["b"], ()) == (registry.list_tool_names(), registry.drift)
    assert [f"{tmp_path}/registry.json: tools[0] and tools[2] refer to the same file, a.py"] * 2 == [
        *map(str, registry.errors)
    ]


@pytest.mark.parametrize("name", ["my.tool", "smith.tools.x", "x.py"])
def test_sm_27_a_written_registry_loads_for_any_file_name(tmp_path: Path, name: str) -> None:
    """Even if the name looks like a package or has a suffix."""
    write_tool(tmp_path, f"{name}.py", metadata())
    write_registry(tmp_path / "registry.json", load_folder(tmp_path))
    registry = load_registry(tmp_path / "registry.json")

    assert (["weather_fetcher"], (), ()) == (registry.list_tool_names(), registry.errors, registry.drift)


def test_sm_27_a_registry_that_other_users_can_change_is_refused(tmp_path: Path) -> None:
    """No file is imported."""
    write_tool(tmp_path, "a.py", metadata(), "raise SystemExit\n")
    path = tmp_path / "registry.json"
    path.write_text(json.dumps({"tools": [metadata(module="a")]}))
    path.chmod(0o666)
    with pytest.raises(PluginError) as caught:
        load_registry(path)

    reason = f"it is not loaded: other users can write to {path}; run 'chmod go-w' to fix this"
    assert (f"{path}: {reason}", "plugin.unsafe") == (str(caught.value), caught.value.code)


def test_sm_27_a_missing_or_unsafe_folder_is_refused(tmp_path: Path) -> None:
    """As a whole, at once."""
    with pytest.raises(PluginError) as caught:
        load_folder(tmp_path / "none")
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    open_folder.chmod(0o777)
    with pytest.raises(PluginError) as unsafe:
        load_folder(open_folder)

    assert f"{tmp_path}/none: it cannot be read (FileNotFoundError)" == str(caught.value)
    assert "plugin.unsafe" == unsafe.value.code


def test_sm_27_every_tool_of_an_engine_can_be_written() -> None:
    """Its METADATA are valid, and describe its arguments."""
    with Engine() as engine:
        found = [metadata_of(tool) for tool in engine.tools.values()]
        add = metadata_of(engine.tools["math.add"], function="run_addition")

    assert [] == [each["name"] for each in found if problems_of(each)]
    assert len(found) > 50
    assert ("math__add", "run_addition", False) == (add["name"], add["function"], add["dangerous"])
    assert {"num1", "num2"} == set(add["parameters"]["required"])


def test_sm_27_tools_with_the_same_name_are_not_written(tmp_path: Path) -> None:
    """No file is created."""
    tool = ToolImplementation(ToolSpec("ping", "net", (ArgSpec("host", "string"),)), lambda rt, host: None)  # type: ignore[arg-type]
    with pytest.raises(SpecError) as caught:
        write_registry(tmp_path / "registry.json", [tool, tool])
    write_registry(tmp_path / "other.json", [tool])

    assert f"{tmp_path}/registry.json: several tools have the name net__ping" == str(caught.value)
    assert ["other.json"] == [each.name for each in tmp_path.iterdir()]
    assert [metadata_of(tool)] == json.loads((tmp_path / "other.json").read_text())["tools"]


def test_sm_28_a_planner_receives_the_public_metadata() -> None:
    """Name, description, function and parameters."""
    model = Scripted([json.dumps(plan(node()))])
    found = plan_task("How is it in Rome?", tools(), model)
    shown = json.loads(model.requests[0][0].content.partition("Tools:\n")[2])

    assert {"status": "success", **plan(node())} == found
    assert [{"name", "description", "function", "parameters"}] == [set(each) for each in shown]
    assert ["system", "user"] == [turn.role for turn in model.requests[0]]
    assert "How is it in Rome?" == model.requests[0][1].content


def test_sm_29_a_changed_file_is_loaded_again_after_a_reset(tmp_path: Path) -> None:
    """Tools that an engine already has are unchanged."""
    write_tool(tmp_path, "a.py", metadata())
    registry = load_folder(tmp_path)
    (before,) = registry.toolset
    write_tool(tmp_path, "a.py", metadata(), "def run_weather(city):\n    return city.upper()\n")

    assert "Rome" == call_tool(registry.toolset.tools[0], {"city": "Rome"})
    registry.reset_cache()
    assert "ROME" == call_tool(registry.toolset.tools[0], {"city": "Rome"})
    assert "Rome" == call_tool(before, {"city": "Rome"})


def test_sm_32_a_tool_can_be_added_to_a_running_engine(tmp_path: Path) -> None:
    """Without changing either of them."""
    with Engine(plugins="none") as engine:
        engine.register(Toolset("smith", (load_file(write_tool(tmp_path, "a.py", metadata())),)))

        assert "Rome" == engine.call("smith.weather_fetcher", ("Rome",))


def generate() -> Iterator[int]:
    """Yield a number."""
    yield 1


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (b"x", "result: expected a JSON value, got bytes"),
        ({"a": [1, {2}]}, "result['a'][1]: expected a JSON value, got set"),
        ({"a": float("inf")}, "result['a']: expected a JSON value, got a number that is not finite"),
        ({1: 2}, "result: expected a JSON value, got int as a key"),
        (generate(), "result: expected a JSON value, got generator"),
        ([object(), {3}], "result[0]: expected a JSON value, got object; "
                          "result[1]: expected a JSON value, got set"),
    ],
    ids=["bytes", "nested", "infinite", "key", "stream", "several"],
)  # fmt: skip
def test_sm_33_a_result_that_is_not_json_is_an_error_with_paths(result: Any, expected: str) -> None:
    """Each path, and no value."""

    def run_weather(city: str) -> Any:
        return result

    with pytest.raises(ToolFailed) as caught:
        call_tool(from_smith(metadata(), run_weather), {"city": "Rome"})

    assert (f"smith.weather_fetcher: {expected}", "return.type", "never") == (
        str(caught.value),
        caught.value.code,
        caught.value.retry,
    )


def test_sm_33_a_generator_is_refused_and_closed() -> None:
    """Even if it is referenced elsewhere."""
    generator = (each for each in "ab")
    next(generator)

    def run_weather(city: str) -> Any:
        return generator

    with pytest.raises(ToolFailed):
        call_tool(from_smith(metadata(), run_weather), {"city": "Rome"})

    assert None is generator.gi_frame


def test_sm_33_json_results_are_returned() -> None:
    """A tuple becomes a list; the engine refuses a recursive list."""

    def run_weather(city: str) -> Any:
        return {"a": (1, 2.5, None, True), "b": city}

    def run_endless(city: str) -> Any:
        endless: list[Any] = []
        endless.append(endless)
        return endless

    assert {"a": [1, 2.5, None, True], "b": "Rome"} == call_tool(from_smith(metadata(), run_weather), {"city": "Rome"})
    with pytest.raises(ReturnError, match="at most 64 levels"):
        call_tool(from_smith(metadata(function="run_endless"), run_endless), {"city": "Rome"})


def test_sm_60_changing_metadata_later_has_no_effect(tmp_path: Path) -> None:
    """Neither by the tool itself nor in copies that a host receives."""
    code = "def run_weather(city):\n    METADATA['parameters'].clear()\n    return len(METADATA['parameters'])\n"
    write_tool(tmp_path, "a.py", metadata(), code)
    registry = load_folder(tmp_path)
    changed = call_tool(registry.tool("weather_fetcher"), {"city": "Rome"})
    registry.get_tools_registry()[0]["parameters"].clear()

    assert (0, metadata(module="a")) == (changed, registry.get_tool_by_name("weather_fetcher"))


def test_sm_60_a_concurrent_reset_does_not_affect_a_reader() -> None:
    """Before any line of the reader."""
    registry = ToolsRegistry("smith", lambda: ToolFiles((), ()))
    code = ToolsRegistry.contents.fget.__code__  # type: ignore[attr-defined]

    def resetting(frame: FrameType, event: str, arg: object) -> Any:
        registry.reset_cache()
        return resetting

    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: resetting if frame.f_code is code else None)
    try:
        found = registry.list_tool_names()
    finally:
        sys.settrace(before)

    assert [] == found


def test_sm_60_the_registry_has_the_methods_of_smith(tmp_path: Path) -> None:
    """It returns copies of METADATA; an unknown name is a ValueError with Smith's message."""
    write_tool(tmp_path, "b.py", metadata())
    registry = load_folder(tmp_path)
    registry.get_tools_registry()[0]["parameters"].clear()

    assert [metadata(module="b")] == registry.get_tools_registry()
    assert metadata(module="b") == registry.get_tool_by_name("weather_fetcher")
    assert "smith.weather_fetcher" == registry.tool("weather_fetcher").name
    with pytest.raises(ValueError) as caught:
        registry.get_tool_by_name("nope")
    assert "Tool 'nope' not found in registry" == str(caught.value)

    (tmp_path / "b.py").unlink()
    assert ["weather_fetcher"] == registry.list_tool_names()
    registry.reset_cache()
    assert [] == registry.list_tool_names()
