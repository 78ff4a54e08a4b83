"""Plugins with hooks: which are accepted, and the order of their calls."""

from __future__ import annotations

import inspect
import logging
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import attrs
import pluggy
import pytest
from tests.calls.hook_calls import Answering, Telling, call, record

from neuroscript import PluginError, SpecError, hookimpl
from neuroscript.calls.hooks import Hooks
from neuroscript.runtime.records import CallRecord, PendingCall
from neuroscript.tools import hookspecs
from neuroscript.tools.hookspecs import ARGUMENTS

# Calls of hooks and their order


def test_each_hook_is_in_its_tuple() -> None:
    """As a plain function with all arguments in order."""
    received: list[Any] = []
    plugin = Telling(received)
    hooks = Hooks([plugin])

    hooks.started[0](record())
    hooks.finished[0](record("tool.failed"))
    hooks.registered[0]("info", "host")
    hooks.closed[0](("shop.refund",))

    assert [
        ("started", "shop.refund"),
        ("finished", "tool.failed"),
        ("registered", "info", "host"),
        ("closed", ("shop.refund",)),
    ] == received
    assert ((plugin,), ("Telling",), ()) == (hooks.plugins, hooks.names, hooks.deciders)
    assert (plugin.neuroscript_call_started,) == hooks.started


def test_no_plugin_is_no_hook() -> None:
    """So that nothing is paid for."""
    hooks = Hooks()

    assert [()] * 7 == [
        hooks.plugins, hooks.names, hooks.deciders, hooks.started, hooks.finished, hooks.registered, hooks.closed
    ]  # fmt: skip
    assert hooks.refusal(call()) is None


def test_the_order_is_that_of_pluggy() -> None:
    """A plugin may request a position; among the others, later plugins come first."""
    received: list[str] = []

    def plugin(name: str, **options: bool) -> object:
        @hookimpl(specname="neuroscript_call_started", **options)
        def tell() -> None:
            received.append(name)

        module = ModuleType(name)
        module.tell = tell  # type: ignore[attr-defined]
        return module

    manager = pluggy.PluginManager("neuroscript")
    plugins = [plugin("a"), plugin("b", trylast=True), plugin("c", tryfirst=True), plugin("d")]
    for each in Hooks(plugins).started:
        each(record())
    flattened = received[:]
    received.clear()
    for each in plugins:
        manager.register(each)
    manager.hook.neuroscript_call_started(record=record())

    assert ["c", "d", "a", "b"] == flattened == received


class Few:
    """A plugin that accepts fewer arguments, or in another order."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    @hookimpl
    def neuroscript_decide(self) -> str:
        return "never"

    @hookimpl
    def neuroscript_tool_registered(self, origin: str, tool: Any) -> None:
        self.told.append((origin, tool))

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord, more: int = 5) -> None:
        self.told.append((record.tool, more))


def test_a_hook_receives_the_arguments_that_it_names() -> None:
    """As in pluggy; a parameter with a default keeps it."""
    plugin = Few()
    hooks = Hooks([plugin])

    hooks.registered[0]("info", "host")
    hooks.started[0](record())

    assert [("host", "info"), ("shop.refund", 5)] == plugin.told
    assert "shop.refund: never" == str(hooks.refusal(call()))


FILE = """
from neuroscript import hookimpl

@hookimpl
def neuroscript_decide(call):
    return None if call.depth == 1 else "not so deep"
"""


def test_a_module_is_a_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its functions are hooks."""
    (tmp_path / "gate_of_a_test.py").write_text(FILE)
    monkeypatch.syspath_prepend(str(tmp_path))
    hooks = Hooks([import_module("gate_of_a_test")])

    assert hooks.refusal(call()) is None
    assert "shop.refund: not so deep" == str(hooks.refusal(attrs.evolve(call(), depth=2)))


class Static:
    """A plugin whose class has functions without an instance."""

    @staticmethod
    @hookimpl
    def neuroscript_decide(call: PendingCall) -> str:
        return f"static {call.depth}"


class OfClass:
    """A plugin whose class is the plugin's state."""

    @classmethod
    @hookimpl
    def neuroscript_decide(cls, call: PendingCall) -> str:
        return cls.__name__


@pytest.mark.parametrize(
    ("plugin", "text"),
    [(Static, "static 1"), (Static(), "static 1"), (OfClass, "OfClass"), (OfClass(), "OfClass")],
    ids=["static, class", "static, object", "of class, class", "of class, object"],
)
def test_functions_of_a_class_are_hooks(plugin: object, text: str) -> None:
    """Where they need no instance, the class itself may be the plugin."""
    refused = Hooks([plugin]).refusal(call())

    assert refused is not None
    assert text == refused.text


def test_a_function_can_serve_several_plugins_and_hooks(caplog: pytest.LogCaptureFixture) -> None:
    """Each is known by the name of its plugin."""

    @hookimpl
    def broken(record: CallRecord) -> None:
        raise ValueError

    def plugin(name: str) -> ModuleType:
        module = ModuleType(name)
        module.neuroscript_call_started = module.neuroscript_call_finished = broken  # type: ignore[attr-defined]
        return module

    hooks = Hooks([plugin("one"), plugin("two")])
    for each in (*hooks.started, *hooks.finished):
        hooks.failed(each, ValueError(), logging.getLogger("test"))

    assert [
        "the hook neuroscript_call_started of the plugin two",
        "the hook neuroscript_call_started of the plugin one",
        "the hook neuroscript_call_finished of the plugin two",
        "the hook neuroscript_call_finished of the plugin one",
    ] == [message.partition(" failed")[0] for message in caplog.messages]


# Invalid plugins


class Unmarked:
    def neuroscript_decide(self, call: PendingCall) -> str:
        return "never"


class Misspelt:
    @hookimpl
    def neuroscript_descide(self, call: PendingCall) -> str:
        return "never"

    def neuroscript_help(self) -> None: ...


class Wrapping:
    @hookimpl(wrapper=True)
    def neuroscript_decide(self, call: PendingCall) -> Any:
        yield
        return None

    @hookimpl(hookwrapper=True)
    def neuroscript_call_started(self, record: CallRecord) -> Any:
        yield


class Waiting:
    @hookimpl
    async def neuroscript_decide(self, call: PendingCall) -> str:
        return "never"

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord) -> Any:
        yield


class OtherArguments:
    @hookimpl
    def neuroscript_decide(self, pending: PendingCall) -> str:
        return "never"

    @hookimpl
    def neuroscript_call_started(self, record: CallRecord | None = None) -> None: ...

    @hookimpl
    def neuroscript_call_finished(self, *, record: CallRecord) -> None: ...

    @hookimpl
    def neuroscript_tool_registered(self, *arguments: Any) -> None: ...


class Twice:
    @hookimpl
    def neuroscript_decide(self, call: PendingCall) -> str:
        return "never"

    @hookimpl(specname="neuroscript_decide")
    def other(self, call: PendingCall) -> str:
        return "never"


class Hostile:
    @hookimpl
    def neuroscript_decide(self, call: PendingCall) -> str:
        return "never"

    def __dir__(self) -> Any:
        raise RuntimeError("secret")


WRAPPER = "is a wrapper, which could override another plugin's refusal; use a plain function"


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        pytest.param(object(), "object: it has no hooks; mark one with @hookimpl", id="an object"),
        pytest.param(None, "None: it has no hooks; mark one with @hookimpl", id="None"),
        pytest.param(
            Unmarked(),
            "Unmarked: neuroscript_decide is not marked with @hookimpl; it has no hooks; mark one with @hookimpl",
            id="a gate that would never be asked",
        ),
        pytest.param(
            Misspelt(),
            "Misspelt: neuroscript_help is not marked with @hookimpl; "
            "unknown hook neuroscript_descide; did you mean neuroscript_decide?",
            id="another name",
        ),
        pytest.param(
            Wrapping(), f"Wrapping: neuroscript_call_started {WRAPPER}; neuroscript_decide {WRAPPER}", id="wrappers"
        ),
        pytest.param(
            Waiting(),
            "Waiting: neuroscript_call_started is a generator function, whose body would never run; use a plain function"
            "; neuroscript_decide is a coroutine function, but hooks are not awaited; use a plain function"
            "",
            id="functions that would not run",
        ),
        pytest.param(
            OtherArguments(),
            "OtherArguments: neuroscript_call_finished may take (record), not (record); "
            "neuroscript_call_started may take (record), not (record); "
            "neuroscript_decide may take (call), not (pending); "
            "neuroscript_tool_registered may take (tool, origin), not (arguments)",
            id="other arguments",
        ),
        pytest.param(Answering, "Answering: neuroscript_decide may take (call), not (self, call)", id="a class"),
        pytest.param(Twice(), "Twice: it has neuroscript_decide twice", id="one hook twice"),
        pytest.param(Hostile(), "Hostile: its hooks cannot be inspected (RuntimeError)", id="it cannot be inspected"),
        pytest.param(
            SimpleNamespace(neuroscript_decide=5),
            "SimpleNamespace: neuroscript_decide is not marked with @hookimpl; "
            "it has no hooks; mark one with @hookimpl",
            id="a number",
        ),
    ],
)
def test_an_invalid_plugin_is_refused_with_all_problems(plugin: object, text: str) -> None:
    """Each contains the name of the plugin."""
    with pytest.raises(PluginError) as caught:
        Hooks([plugin])

    assert text == str(caught.value)


def test_a_function_in_an_object_is_called_as_it_is() -> None:
    """It gets the call, but not the object that contains it."""

    @hookimpl
    def neuroscript_decide(call: PendingCall) -> str:
        return call.tool

    refused = Hooks([SimpleNamespace(neuroscript_decide=neuroscript_decide)]).refusal(call())

    assert "shop.refund: shop.refund" == str(refused)


def test_an_optional_hook_of_a_later_version_is_ignored() -> None:
    """If its plugin marks it as optional."""

    class Newer:
        @hookimpl(optionalhook=True)
        def neuroscript_tomorrow(self, weather: str) -> None: ...

        @hookimpl
        def neuroscript_decide(self) -> str:
            return "never"

    assert "shop.refund: never" == str(Hooks([Newer()]).refusal(call()))


@attrs.frozen
class Equal:
    """A plugin that equals every other of its class."""

    @hookimpl
    def neuroscript_decide(self) -> None: ...


@pytest.mark.parametrize("other", [False, True], ids=["the same", "an equal one"])
def test_a_duplicate_plugin_is_refused(other: bool) -> None:
    """pluggy itself would notice it only in some cases."""
    plugin = Equal()

    with pytest.raises(PluginError) as caught:
        Hooks([plugin, Equal() if other else plugin])

    assert "Equal 2: it was passed twice" == str(caught.value)


@pytest.mark.parametrize("plugins", ["acme", 5, Answering(None)], ids=["a string", "a number", "a plugin alone"])
def test_plugins_are_passed_as_a_list(plugins: Any) -> None:
    """A single one too."""
    with pytest.raises(SpecError) as caught:
        Hooks(plugins)

    assert f"hooks: expected a list of plugins, got {type(plugins).__name__}" == str(caught.value)


SPECS = {
    name: tuple(inspect.signature(spec).parameters)
    for name, spec in vars(hookspecs).items()
    if hasattr(spec, f"{hookspecs.PROJECT}_spec")
}
"""The hooks that pluggy knows, with their arguments."""


def documented(pattern: str) -> dict[str, tuple[str, ...]]:
    """Return the hooks whose signatures are in certain lines of the page for plugin authors."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "hooks.md").read_text()
    lines = "\n".join(re.findall(pattern, page, re.MULTILINE))
    return {name: tuple(filter(None, taken.split(", "))) for name, taken in re.findall(r"`(\w+)\((.*?)\)`", lines)}


def test_each_hook_is_called_with_its_specified_arguments() -> None:
    """All hooks are in the specification."""
    assert SPECS == ARGUMENTS


@pytest.mark.parametrize("pattern", [r"^\| `neuroscript_.*", r"^## `.*"], ids=["the table", "the sections"])
def test_each_hook_is_documented_with_its_arguments(pattern: str) -> None:
    """And no other one, in the order of the specification."""
    assert [*ARGUMENTS.items()] == [*documented(pattern).items()]


def test_each_hook_is_documented_with_an_example() -> None:
    """The specification documents each hook, so editors can show it."""
    texts = {name: inspect.getdoc(getattr(hookspecs, name)) or "" for name in SPECS}

    assert [] == [name for name, text in texts.items() if "@hookimpl" not in text or f"def {name}(" not in text]


def test_the_marker_imports_pluggy_and_an_engine_does_not() -> None:
    """An engine without hooks does not need it."""
    code = (
        "import sys; from neuroscript import Engine; Engine(plugins='none').close();"
        "print('pluggy' in sys.modules); from neuroscript import hookimpl; print('pluggy' in sys.modules)"
    )

    assert "False\nTrue\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
